"""Translation of the exceptions of model services' libraries into our errors. The only file with their names.

No provider's package is imported: each library has its own tree, which changes between versions, but all of them carry
the status, headers and body of the service's reply. Without a reply, the names of the classes separate timeouts from
broken connections and from unreadable replies.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from byokg.errors import (
    LlmAuthFailed,
    LlmBadReply,
    LlmContextExceeded,
    LlmError,
    LlmInvalidRequest,
    LlmOverloaded,
    LlmRateLimited,
    LlmTimeout,
    LlmUnavailable,
)

_LONGEST_TEXT = 300
_DEEPEST_CHAIN = 8

_BY_NAME: Sequence[tuple[re.Pattern[str], type[LlmError]]] = (
    (re.compile(r"Credential|SSOToken|TokenRetrieval|LoginRefresh"), LlmAuthFailed),
    (
        re.compile(r"JSONDecode|ResponseParser|ResponseValidation|Decod|Checksum|InvalidHeaders|InvalidPayload"),
        LlmBadReply,
    ),
    (re.compile(r"Timeout|TimedOut", re.IGNORECASE), LlmTimeout),
    (
        re.compile(
            r"Connect|Protocol|Network|Transport|IncompleteRead|ReadError|WriteError|Proxy|SSL|HTTPClient|Dropped|Closed"
        ),
        LlmUnavailable,
    ),
)
"""Meaning of names of exceptions, and of their base classes, for failures without a reply of the service."""

_PLAIN = frozenset({object, BaseException, Exception, ValueError, TypeError, OSError, RuntimeError})

_BY_STATUS: Mapping[int, type[LlmError]] = {
    **dict.fromkeys((401, 403), LlmAuthFailed),
    **dict.fromkeys((408, 409), LlmUnavailable),
    **dict.fromkeys((503, 529), LlmOverloaded),
    429: LlmRateLimited,
}

_READING = re.compile(r"parse|format_output|create_chat_result|convert_dict_to_message|generate_from_stream")
"""Functions of the libraries that read a reply: a ValueError from there is about the reply, not about the request."""

_CODES: Mapping[type[LlmError], str] = {
    LlmOverloaded: "overloaded_error modelnotreadyexception serviceunavailableexception",
    LlmRateLimited: "rate_limit_error throttlingexception",
    LlmAuthFailed: "authentication_error permission_error billing_error insufficient_quota",
    LlmUnavailable: "api_error timeout_error server_error modeltimeoutexception modelerrorexception "
    "modelstreamerrorexception internalserverexception",
}
_BY_CODE = {code: meaning for meaning, codes in _CODES.items() for code in codes.split()}
"""Services' own names of failures, in lower case: more specific than the status, and all that a stream has."""

_TOO_LONG = re.compile(
    r"(?:context|model) ?_?(?:length|window|size)|maximum context|(?:prompt|input) is too long", re.IGNORECASE
)
"""Services' messages on a prompt that does not fit, which have no status or code in common."""

_HINTS: Sequence[tuple[str, str]] = (
    ("response_format", "the server takes no JSON schema; use llm.structured=grammar (llama.cpp) or none"),
    ("logits_all", "start the server with --logits_all true, or leave llm.logprobs out"),
)
"""Words of a server that reports an impossible request as its own fault (HTTP 500), and the next step."""

_KEY_SHAPES = re.compile(r"\b(?:sk-|lsv2_|hf_)[\w*-]{6,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|(?i:\bBearer )[\w.~+/=-]{16,}")
_AWS_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK")


def as_llm_error(
    error: Exception, model: str, secrets: tuple[str, ...] = (), now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> LlmError:
    """Translate an exception of a library into ours.

    Args:
        error: the library's exception.
        model: our name of the model.
        secrets: texts that must not be repeated.
        now: reference time for a `retry-after` with a date.

    Returns:
        The error to raise, and its cause: `error`, or None if `error` repeats a secret.
    """
    found = error if isinstance(error, LlmError) else _translated(error, model, secrets, now)
    leaks = any(without_secrets(str(each), secrets) != str(each) for each in _chain(error))
    # A traceback shows the texts of all causes.
    found.__cause__ = None if leaks or found is error else error
    return found


def may_pass(error: Exception) -> bool:
    """True if the same request may succeed later: no connection, a timeout, a rate limit, a server's fault."""
    return issubclass(_kind(error, _ServiceReport(error)), LlmUnavailable | LlmRateLimited)


def is_filtered(error: Exception) -> bool:
    """True if a filter of the service removed the reply or the prompt: a refusal, not a failure."""
    return _ServiceReport(error).code == "content_filter" or (
        isinstance(error, ValueError) and "content filter being triggered" in str(error)  # AzureChatOpenAI's words
    )


def known_secrets(client: object, environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the secrets that one of LangChain's clients sends, as far as they can be found; longest first."""
    found = {environment[name] for name in _AWS_SECRETS if environment.get(name)}
    for name, value in getattr(client, "__dict__", {}).items():
        reveal = getattr(value, "get_secret_value", None)
        if callable(reveal):
            found.add(str(reveal()))
        elif name == "default_headers" and isinstance(value, Mapping):
            found |= {str(each) for each in value.values()}
    return tuple(sorted((each for each in found if len(each) >= 8), key=lambda each: (-len(each), each)))


def without_secrets(text: str, secrets: tuple[str, ...]) -> str:
    """Replace secrets in a text, and whatever has the shape of a key."""
    for secret in secrets:
        text = text.replace(secret, "…")
    return _KEY_SHAPES.sub("…", text)


def _translated(error: Exception, model: str, secrets: tuple[str, ...], now: Callable[[], datetime]) -> LlmError:
    said = _ServiceReport(error)
    reason = without_secrets(_reason(error, said), secrets)
    kind = _kind(error, said)
    if issubclass(kind, LlmUnavailable | LlmRateLimited):
        return kind(model, reason, retry_after_s(said.headers, now()))
    if kind is LlmAuthFailed:
        return kind(model, f"{reason}; check the key (byokg doctor says which are set)")
    hint = "".join(f"; {step}" for word, step in _HINTS if word in reason)
    return kind(model, f"{reason}{hint}")


class _ServiceReport:
    """The service's own report of a failure: the first status, headers and body along the chain of exceptions."""

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


def _kind(error: Exception, said: _ServiceReport) -> type[LlmError]:
    """Decide which of our errors it is."""
    if said.status is not None and said.status >= 400:
        if said.status not in (401, 403, 429) and _TOO_LONG.search(f"{said.code} {said.text}"):
            return LlmContextExceeded
        if said.status == 500 and any(word in said.text for word, _ in _HINTS):
            return LlmInvalidRequest
    named = _BY_CODE.get(said.code.lower())
    if named is not None:
        return named
    if said.status is not None and said.status >= 400:
        return _BY_STATUS.get(said.status, LlmUnavailable if said.status >= 500 else LlmInvalidRequest)
    names = [base.__name__ for each in _chain(error) for base in type(each).__mro__ if base not in _PLAIN]
    if "authentication method" in str(error):
        return LlmAuthFailed
    for pattern, kind in _BY_NAME:
        if any(map(pattern.search, names)):
            return kind
    if isinstance(error, AttributeError | LookupError) or said.status is not None:
        return LlmBadReply
    if isinstance(error, ValueError | TypeError) and _while_reading(error):
        return LlmBadReply
    if "APIError" in names or getattr(error, "is_retryable", False) is True:
        return LlmUnavailable
    return LlmInvalidRequest


def _while_reading(error: Exception) -> bool:
    """True if an exception was raised by a library's reader of replies."""
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


def _reason(error: Exception, said: _ServiceReport) -> str:
    """Return one line: the status, and the service's message or the exception's own text."""
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


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the delay that a service demands.

    Args:
        headers: by lower-case name; `retry-after-ms`, or `retry-after` in seconds or as an HTTP date.
        now: reference time for a date.

    Returns:
        Seconds, at least 0; None without a readable header.
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
