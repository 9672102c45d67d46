"""What a provider's library raises, as our errors. The only file that knows their exceptions.

No provider's package is imported: each library has its own tree, which changes between versions, but all of them carry
the status, headers and body of what the service said. Where nothing was said, the names of the classes tell timeouts
from broken connections and from replies that cannot be read.

The time a question may take altogether, shared by all its calls.

Sending again what may succeed later: exponential backoff with jitter that honours what the service asks for.

How much is asked of one provider at a time: calls at once, and tokens in a minute.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

import tenacity

from byokg.errors import (
    ConfigError,
    LlmAuthFailed,
    LlmBadReply,
    LlmDeadline,
    LlmError,
    LlmInvalidRequest,
    LlmOverloaded,
    LlmRateLimited,
    LlmTimeout,
    LlmUnavailable,
)

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel


@dataclass(frozen=True)
class Deadline:
    """A moment after which nothing is waited for. `at` is a reading of `clock`, in seconds."""

    at: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """Return the moment that many seconds from now."""
        return cls(clock() + seconds, clock)

    @property
    def left_s(self) -> float:
        """Return the seconds that are left; 0 when it has passed."""
        return max(0.0, self.at - self.clock())

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Make this the deadline of all that is asked inside, in this thread, without handing it on."""
        token = _HELD.set(self)
        try:
            yield
        finally:
            _HELD.reset(token)

    @staticmethod
    def held() -> Deadline | None:
        """Return the deadline that is held where this is called; None when there is none."""
        return _HELD.get()


_HELD: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


_LONGEST_TEXT = 300
_DEEPEST_CHAIN = 8

_TIMEOUT = re.compile(r"Timeout|TimedOut", re.IGNORECASE)
_CONNECTION = re.compile(
    r"Connect|Protocol|Network|Transport|IncompleteRead|ReadError|WriteError|Proxy|SSL|HTTPClient|Dropped|Closed"
)
_UNREADABLE = re.compile(r"JSONDecode|ResponseParser|ResponseValidation|Decod|Checksum|InvalidHeaders|InvalidPayload")
_CREDENTIALS = re.compile(r"Credential|SSOToken|TokenRetrieval|LoginRefresh")
_READING = re.compile(r"parse|format_output|create_chat_result|convert_dict_to_message|generate_from_stream")
"""Functions of the libraries that read a reply: a ValueError from there is about the reply, not about the request."""

_CODES: Mapping[str, type[LlmError]] = {
    "overloaded_error": LlmOverloaded,
    "rate_limit_error": LlmRateLimited,
    "api_error": LlmUnavailable,
    "timeout_error": LlmUnavailable,
    "server_error": LlmUnavailable,
    "authentication_error": LlmAuthFailed,
    "permission_error": LlmAuthFailed,
    "billing_error": LlmAuthFailed,
    "insufficient_quota": LlmAuthFailed,
    "throttlingexception": LlmRateLimited,
    "modelnotreadyexception": LlmOverloaded,
    "serviceunavailableexception": LlmOverloaded,
    "modeltimeoutexception": LlmUnavailable,
    "modelerrorexception": LlmUnavailable,
    "modelstreamerrorexception": LlmUnavailable,
    "internalserverexception": LlmUnavailable,
}
"""What services call their failures, in lower case: it says more than the status, and is all a stream has."""

_KEY_SHAPES = re.compile(r"\b(?:sk-|lsv2_|hf_)[\w*-]{6,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|(?i:\bBearer )[\w.~+/=-]{16,}")
_AWS_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK")


def as_llm_error(
    error: Exception, model: str, secrets: tuple[str, ...] = (), now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> LlmError:
    """Say in our terms what went wrong.

    Args:
        error: what the chat model raised.
        model: our name of the model.
        secrets: texts that must not be repeated.
        now: the time that a `retry-after` with a date counts from.

    Returns:
        The error to raise, from its cause: that is `error`, or nothing where `error` repeats a secret.
    """
    found = error if isinstance(error, LlmError) else _translated(error, model, secrets, now)
    leaks = any(_without_secrets(str(each), secrets) != str(each) for each in _chain(error))
    # A traceback shows the texts of all causes.
    found.__cause__ = None if leaks or found is error else error
    return found


def filtered(error: Exception) -> bool:
    """Tell whether a filter of the service took the reply away, or the prompt: that is a refusal, not a failure."""
    return _Said(error).code == "content_filter" or (
        isinstance(error, ValueError) and "content filter being triggered" in str(error)  # AzureChatOpenAI's words
    )


def known_secrets(chat_model: BaseChatModel, environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the secrets that a chat model sends, as far as they can be found; longest first."""
    found = {environment[name] for name in _AWS_SECRETS if environment.get(name)}
    for name in type(chat_model).model_fields:
        value = getattr(chat_model, name, None)
        reveal = getattr(value, "get_secret_value", None)
        if callable(reveal):
            found.add(str(reveal()))
        elif name == "default_headers" and isinstance(value, Mapping):
            found |= {str(each) for each in value.values()}
    return tuple(sorted((each for each in found if len(each) >= 8), key=lambda each: (-len(each), each)))


def _translated(error: Exception, model: str, secrets: tuple[str, ...], now: Callable[[], datetime]) -> LlmError:
    said = _Said(error)
    reason = _without_secrets(_reason(error, said), secrets)
    kind = _kind(error, said)
    if issubclass(kind, LlmUnavailable | LlmRateLimited):
        return kind(model, reason, retry_after_s(said.headers, now()))
    if kind is LlmAuthFailed:
        return kind(model, f"{reason}; check the key (byokg doctor says which are set)")
    return kind(model, reason)


class _Said:
    """What the service said about a failure: the first status, headers and body along the chain of exceptions."""

    def __init__(self, error: BaseException) -> None:
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self.code = ""
        self.text = ""
        for each in _chain(error):
            response = getattr(each, "response", None)
            if isinstance(response, Mapping):  # botocore
                metadata = response.get("ResponseMetadata") or {}
                self._add(metadata.get("HTTPStatusCode"), metadata.get("HTTPHeaders"), response.get("Error"))
            else:
                status = getattr(each, "status_code", None) or getattr(response, "status_code", None)
                self._add(status, getattr(response, "headers", None), getattr(each, "body", None))

    def _add(self, status: object, headers: object, body: object) -> None:
        if self.status is None and isinstance(status, int):
            self.status = status
        if not self.headers and isinstance(headers, Mapping):
            self.headers = {str(name).lower(): str(value) for name, value in headers.items()}
        if not isinstance(body, Mapping):
            return
        inner = body.get("error")
        inner = inner if isinstance(inner, Mapping) else body
        self.code = self.code or str(inner.get("code") or inner.get("Code") or inner.get("type") or "")
        self.text = self.text or str(inner.get("message") or inner.get("Message") or "")


def _kind(error: Exception, said: _Said) -> type[LlmError]:
    """Decide which of our errors it is."""
    named = _CODES.get(said.code.lower())
    if named is not None:
        return named
    status = said.status
    if status is not None and status >= 400:
        if status in (401, 403):
            return LlmAuthFailed
        if status == 429:
            return LlmRateLimited
        if status in (503, 529):
            return LlmOverloaded
        return LlmUnavailable if status in (408, 409) or status >= 500 else LlmInvalidRequest
    chain = list(_chain(error))
    names = [base.__name__ for each in chain for base in type(each).__mro__ if base not in _PLAIN]
    if any(_CREDENTIALS.search(name) for name in names) or "authentication method" in str(error):
        return LlmAuthFailed
    if any(_UNREADABLE.search(name) for name in names) or any(isinstance(each, json.JSONDecodeError) for each in chain):
        return LlmBadReply
    if any(_TIMEOUT.search(name) for name in names) or any(isinstance(each, TimeoutError) for each in chain):
        return LlmTimeout
    if any(_CONNECTION.search(name) for name in names) or any(isinstance(each, ConnectionError) for each in chain):
        return LlmUnavailable
    if isinstance(error, AttributeError | LookupError) or (status is not None and status < 400):
        return LlmBadReply
    if isinstance(error, ValueError | TypeError) and _while_reading(error):
        return LlmBadReply
    if "APIError" in names or getattr(error, "is_retryable", False) is True:
        return LlmUnavailable
    return LlmInvalidRequest


_PLAIN = frozenset({object, BaseException, Exception, ValueError, TypeError, OSError, RuntimeError})


def _while_reading(error: Exception) -> bool:
    """Tell whether an exception comes from where a library reads a reply."""
    frame = error.__traceback__
    while frame is not None:
        if _READING.search(frame.tb_frame.f_code.co_name):
            return True
        frame = frame.tb_next
    return False


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes, outermost first."""
    seen = 0
    each: BaseException | None = error
    while each is not None and seen < _DEEPEST_CHAIN:
        yield each
        seen += 1
        each = each.__cause__ or each.__context__


def _reason(error: Exception, said: _Said) -> str:
    """Write one line: the status, and what the service says, or the exception's own text."""
    text = " ".join((said.text or str(error)).split())
    text = text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
    if said.status is not None:
        name = f" {said.code}" if said.code and said.code not in text else ""
        return f"HTTP {said.status}{name}: {text}"
    # Some libraries hide the cause behind "Connection error."
    root = list(_chain(error))[-1]
    why = " ".join(str(root).split())
    because = f" ({type(root).__name__}: {why})" if why not in text else ""
    return f"{type(error).__name__}: {text}{because}"


def _without_secrets(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, "…")
    return _KEY_SHAPES.sub("…", text)


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Read how long a service wants to be left alone.

    Args:
        headers: by lower-case name; `retry-after-ms`, or `retry-after` in seconds or as an HTTP date.
        now: what a date is counted from.

    Returns:
        Seconds, at least 0; None when it does not say, or says something unreadable.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - now).total_seconds())


T = TypeVar("T")


@dataclass(frozen=True)
class RetryPolicy:
    """How often and after which waits a call is repeated.

    Before repetition n (from 0) it waits `first_wait_s · 2ⁿ`, at most `longest_wait_s`, of which a random part of up
    to one half is left out so that many workers do not return at the same moment. Where the service asks for a wait
    (`retry-after`), it is at least that one. A service that asks for more than `longest_asked_s` is not waited for.

    `sleep` and `random` (from [0, 1)) may be replaced, so that tests neither wait nor vary.

    Raises:
        ConfigError: fewer than one attempt, or a negative wait.
    """

    attempts: int = 6
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    longest_asked_s: float = 600.0
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ConfigError(f"attempts of a language model are {self.attempts}; give 1 (never repeat) or more")
        for name in ("first_wait_s", "longest_wait_s", "longest_asked_s"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} of a retry policy is {getattr(self, name)}; give 0 or more seconds")

    def wait_s(self, repetition: int, error: BaseException) -> float:
        """Return the seconds to wait before a repetition, counted from 0."""
        backoff = min(self.longest_wait_s, self.first_wait_s * 2.0 ** min(repetition, 60))  # 2 ** 1024 is no float
        asked = getattr(error, "retry_after_s", None) or 0.0
        return max(asked * (1 + self.random() / 10), backoff * (1 - self.random() / 2))

    def run(self, attempt: Callable[[], T], model: str, deadline: Deadline | None = None) -> tuple[T, int]:
        """Make attempts until one succeeds.

        Args:
            attempt: what to do; an `LlmError` that is `retryable` repeats it, anything else it raises ends it.
            model: named by the error when time is up.
            deadline: no wait goes beyond it.

        Returns:
            What the attempt returned, and how many repetitions it took.

        Raises:
            LlmError: the last attempt's, with `retries` filled in.
            LlmDeadline: the next attempt would come too late; the last failure is its cause.
        """

        made = 0

        def counted() -> T:
            nonlocal made
            made += 1
            return attempt()

        def hopeless(state: tenacity.RetryCallState) -> bool:
            asked = getattr(_error(state), "retry_after_s", None) or 0.0
            return state.attempt_number >= self.attempts or asked > self.longest_asked_s

        def too_late(state: tenacity.RetryCallState) -> bool:
            return deadline is not None and state.upcoming_sleep >= deadline.left_s

        def give_up(state: tenacity.RetryCallState) -> T:
            error = _error(state)
            if hopeless(state):
                raise error
            raise LlmDeadline(model, f"no time is left for another attempt; the last one: {error}") from error

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, LlmError) and error.retryable),
            wait=lambda state: self.wait_s(state.attempt_number - 1, _error(state)),
            stop=lambda state: hopeless(state) or too_late(state),
            sleep=self.sleep,
            retry_error_callback=give_up,
        )
        try:
            return retrying(counted), made - 1
        except LlmError as error:
            error.retries = made - 1
            raise


def _error(state: tenacity.RetryCallState) -> BaseException:
    """Return what the last attempt raised."""
    assert state.outcome is not None
    error = state.outcome.exception()
    assert error is not None
    return error


WINDOW_S = 60.0


@dataclass
class Spent:
    """Tokens of one call that began at `at`: an estimate until `settle` replaces it."""

    at: float
    tokens: int

    def settle(self, tokens: int) -> None:
        """Replace the estimate by what the service counted."""
        self.tokens = tokens


class Limits:
    """Makes calls wait while a provider's limits are reached. Models that share one share its limits.

    The token limit holds for every 60 seconds, counted by when a call begins: a call waits until what began in the
    last minute, and its own estimate, fit together. A single call above the limit goes through when it is alone.

    Args:
        concurrency: calls under way at the same time; None for any number.
        tokens_per_minute: tokens in and out; None for any number.
        sleep: waits that many seconds; replaced in tests together with `clock`.
        clock: seconds from any fixed moment.

    Raises:
        ConfigError: a limit is below 1.
    """

    def __init__(
        self,
        concurrency: int | None = None,
        tokens_per_minute: int | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for name, value in (("concurrency", concurrency), ("tokens_per_minute", tokens_per_minute)):
            if value is not None and value < 1:
                raise ConfigError(f"{name} of a language model is {value}; give 1 or more, or null for no limit")
        self._slots = None if concurrency is None else threading.BoundedSemaphore(concurrency)
        self._tokens_per_minute = tokens_per_minute
        self._sleep = sleep
        self._clock = clock
        self._turn = threading.Lock()  # one waits for tokens at a time, so a big call is not overtaken for ever
        self._window: deque[Spent] = deque()

    @contextmanager
    def slot(self, tokens: int, model: str, deadline: Deadline | None = None) -> Iterator[Spent]:
        """Wait for the limits, and hold one place while the body runs.

        Args:
            tokens: estimate of what the call will use.
            model: named by the error when time is up.
            deadline: how long to wait at most.

        Yields:
            The call's tokens, to be settled when the service has counted them.

        Raises:
            LlmDeadline: no place came free in time.
        """
        if not self._acquire(self._slots, deadline):
            raise LlmDeadline(model, "no time is left; every one of llm.concurrency calls was still under way")
        try:
            yield self._spend(tokens, model, deadline)
        finally:
            if self._slots is not None:
                self._slots.release()

    @staticmethod
    def _acquire(lock: threading.Lock | threading.Semaphore | None, deadline: Deadline | None) -> bool:
        if lock is None:
            return True
        return lock.acquire() if deadline is None else lock.acquire(timeout=deadline.left_s)

    def _spend(self, tokens: int, model: str, deadline: Deadline | None) -> Spent:
        """Wait until the tokens fit into the last minute, and enter them."""
        limit = self._tokens_per_minute
        if limit is None:
            return Spent(0.0, tokens)
        late = LlmDeadline(model, f"no time is left to wait for llm.tokens_per_minute={limit:,}")
        if not self._acquire(self._turn, deadline):
            raise late
        try:
            while True:
                now = self._clock()
                while self._window and now - self._window[0].at >= WINDOW_S:
                    self._window.popleft()
                if not self._window or tokens + sum(spent.tokens for spent in self._window) <= limit:
                    spent = Spent(now, tokens)
                    self._window.append(spent)
                    return spent
                # At most a second, since replies settle to less meanwhile; at least so long that time passes at all.
                wait = max(0.001, min(1.0, self._window[0].at + WINDOW_S - now))
                if deadline is not None and wait > deadline.left_s:
                    raise late
                self._sleep(wait)
        finally:
            self._turn.release()
