"""When a call is sent: deadlines of questions, repetition after failures that may pass, limits of a provider."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

import tenacity

from byokg.errors import LlmDeadline, LlmError, at_least

T = TypeVar("T")


@dataclass(frozen=True)
class Deadline:
    """The moment when a question's time is over. `at` is a reading of `clock`, in seconds."""

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
    def apply(self) -> Iterator[None]:
        """Make this the deadline of every call made inside, in this thread, without passing it as an argument."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    @staticmethod
    def current() -> Deadline | None:
        """Return the deadline that is being held; None if there is none."""
        return _CURRENT.get()


_CURRENT: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def set_sample(number: int) -> Iterator[None]:
    """Make every call inside, in this thread, ask for the sample of this number (from 0) of the model's replies."""
    token = _SAMPLE.set(number)
    try:
        yield
    finally:
        _SAMPLE.reset(token)


def current_sample() -> int:
    """Return the number of the current sample; 0 if none is set."""
    return _SAMPLE.get()


_SAMPLE: ContextVar[int] = ContextVar("sample", default=0)


@contextmanager
def set_question(question_id: str) -> Iterator[None]:
    """Count every call inside, in this thread, as one for this question, whatever the stage that makes it passes."""
    token = _QUESTION.set(question_id)
    try:
        yield
    finally:
        _QUESTION.reset(token)


def current_question() -> str | None:
    """Return the id of the question that is being answered; None if there is none."""
    return _QUESTION.get()


_QUESTION: ContextVar[str | None] = ContextVar("question", default=None)


@contextmanager
def receive_tokens(receive: Callable[[str, str], object]) -> Iterator[None]:
    """Call a function with stage and text of all that language models write inside, in this thread, as they do."""
    token = _TOKENS.set(receive)
    try:
        yield
    finally:
        _TOKENS.reset(token)


def token_receiver() -> Callable[[str, str], object] | None:
    """Return the function that receives tokens; None if there is none."""
    return _TOKENS.get()


_TOKENS: ContextVar[Callable[[str, str], object] | None] = ContextVar("tokens", default=None)


@dataclass(frozen=True)
class RetryPolicy:
    """How often a call is repeated, and how long to wait before.

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
        at_least(1, "asks nothing", attempts=self.attempts)
        waits = {"first_wait_s": self.first_wait_s, "longest_wait_s": self.longest_wait_s}
        at_least(0, "is no time to wait", **waits, longest_asked_s=self.longest_asked_s)

    def wait_s(self, repetition: int, error: BaseException) -> float:
        """Return the seconds to wait before a repetition, counted from 0."""
        backoff = min(self.longest_wait_s, self.first_wait_s * 2.0 ** min(repetition, 60))  # 2 ** 1024 is no float
        return max(_asked_s(error) * (1 + self.random() / 10), backoff * (1 - self.random() / 2))

    def run(self, attempt: Callable[[], T], model: str, deadline: Deadline | None = None) -> tuple[T, int]:
        """Make attempts until one succeeds.

        Args:
            attempt: the call; an `LlmError` that is `retryable` repeats it, any other exception ends it.
            model: named by the error when time is up.
            deadline: no wait goes beyond it.

        Returns:
            The attempt's result, and the number of repetitions.

        Raises:
            LlmError: the last attempt's, with `retries` filled in.
            LlmDeadline: the next attempt would come too late; the last failure is its cause.
        """

        made = 0

        def counted() -> T:
            nonlocal made
            made += 1
            return attempt()

        def in_time(state: tenacity.RetryCallState) -> None:
            error = _failure(state)
            if deadline is not None and state.upcoming_sleep >= deadline.left_s:
                raise LlmDeadline(model, f"no time is left for another attempt; the last one: {error}") from error

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(self._passes),
            wait=lambda state: self.wait_s(state.attempt_number - 1, _failure(state)),
            stop=tenacity.stop_after_attempt(self.attempts),
            before_sleep=in_time,
            sleep=self.sleep,
            reraise=True,
        )
        try:
            return retrying(counted), made - 1
        except LlmError as error:
            error.retries = made - 1
            raise

    def _passes(self, error: BaseException) -> bool:
        return isinstance(error, LlmError) and error.retryable and _asked_s(error) <= self.longest_asked_s


def _asked_s(error: BaseException) -> float:
    return getattr(error, "retry_after_s", None) or 0.0


def _failure(state: tenacity.RetryCallState) -> BaseException:
    """Return the exception of the last attempt."""
    error = state.outcome.exception() if state.outcome is not None else None
    assert error is not None
    return error


WINDOW_S = 60.0


@dataclass
class Spent:
    """Tokens of one call that began at `at`: an estimate until `settle` replaces it."""

    at: float
    tokens: int

    def settle(self, tokens: int) -> None:
        """Replace the estimate by the service's count."""
        self.tokens = tokens


class RateLimits:
    """Makes calls wait while a provider's limits are reached. Models with the same object share the limits.

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
        limits = {"concurrency": concurrency, "tokens_per_minute": tokens_per_minute}
        at_least(1, "asks nothing, as null would not", **{name: one for name, one in limits.items() if one is not None})
        self._slots = threading.Semaphore(concurrency or sys.maxsize)
        self._tokens_per_minute = tokens_per_minute
        self._sleep = sleep
        self._clock = clock
        self._turn = threading.Semaphore()  # one waits for tokens at a time, so a big call is not overtaken for ever
        self._window: deque[Spent] = deque()

    @contextmanager
    def slot(self, tokens: int, model: str, deadline: Deadline | None = None) -> Iterator[Spent]:
        """Wait for the limits, and hold one place while the body runs.

        Args:
            tokens: estimated tokens of the call.
            model: named by the error when time is up.
            deadline: end of the wait.

        Yields:
            The call's tokens, to be settled when the service has counted them.

        Raises:
            LlmDeadline: no place came free in time.
        """
        late = LlmDeadline(model, "no time is left; every one of llm.concurrency calls was still under way")
        with _taken(self._slots, deadline, late):
            yield self._spend(tokens, model, deadline)

    def _spend(self, tokens: int, model: str, deadline: Deadline | None) -> Spent:
        """Wait until the tokens fit into the last minute, and enter them."""
        limit = self._tokens_per_minute
        if limit is None:
            return Spent(0.0, tokens)
        late = LlmDeadline(model, f"no time is left to wait for llm.tokens_per_minute={limit:,}")
        with _taken(self._turn, deadline, late):
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


@contextmanager
def _taken(semaphore: threading.Semaphore, deadline: Deadline | None, late: LlmDeadline) -> Iterator[None]:
    if not semaphore.acquire(timeout=None if deadline is None else deadline.left_s):
        raise late
    try:
        yield
    finally:
        semaphore.release()
