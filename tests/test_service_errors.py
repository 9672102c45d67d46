"""Tests of `byokg.service_errors`: what no server can be made to say, and the reading of headers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from byokg.errors import (
    LlmAuthFailed,
    LlmBadReply,
    LlmError,
    LlmInvalidRequest,
    LlmOverloaded,
    LlmRateLimited,
    LlmTimeout,
    LlmUnavailable,
)
from byokg.llm.chat_models import ScriptedChatModel
from byokg.service_errors import as_llm_error, is_filtered, known_secrets, retry_after_s

NOW = datetime(2026, 10, 21, 7, 28, 0, tzinfo=UTC)


class Refused(Exception):
    """What an HTTP client raises."""

    def __init__(self, status_code: int, body: object = None, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"Error code: {status_code}")
        self.status_code = status_code
        self.body = body
        self.response = type("Response", (), {"status_code": status_code, "headers": headers or {}})()


class AwsError(Exception):
    """What botocore raises."""

    def __init__(self, status: int, code: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(code)
        self.response = {
            "Error": {"Code": code, "Message": "said"},
            "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": headers or {}},
        }


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Refused(400), LlmInvalidRequest),
        (Refused(401), LlmAuthFailed),
        (Refused(403), LlmAuthFailed),
        (Refused(404), LlmInvalidRequest),
        (Refused(408), LlmUnavailable),
        (Refused(413), LlmInvalidRequest),
        (Refused(429), LlmRateLimited),
        (Refused(429, {"error": {"code": "insufficient_quota", "message": "pay"}}), LlmAuthFailed),
        (Refused(500), LlmUnavailable),
        (Refused(503), LlmOverloaded),
        (Refused(529), LlmOverloaded),
        (Refused(200, {"error": {"type": "overloaded_error", "message": "in a stream"}}), LlmOverloaded),
        (Refused(200), LlmBadReply),
        (AwsError(429, "ThrottlingException"), LlmRateLimited),
        (AwsError(400, "ThrottlingException"), LlmRateLimited),
        (AwsError(408, "ModelTimeoutException"), LlmUnavailable),
        (AwsError(424, "ModelErrorException"), LlmUnavailable),
        (AwsError(429, "ModelNotReadyException"), LlmOverloaded),
        (AwsError(400, "ValidationException"), LlmInvalidRequest),
        (AwsError(403, "AccessDeniedException"), LlmAuthFailed),
        (type("NoCredentialsError", (Exception,), {})("Unable to locate credentials"), LlmAuthFailed),
        (type("ReadTimeoutError", (Exception,), {})("read timed out"), LlmTimeout),
        (TimeoutError("timed out"), LlmTimeout),
        (type("EndpointConnectionError", (Exception,), {})("no route"), LlmUnavailable),
        (ConnectionResetError("reset"), LlmUnavailable),
        (KeyError("choices"), LlmBadReply),
        (ValueError("temperature is not supported"), LlmInvalidRequest),
        (RuntimeError("CUDA out of memory"), LlmInvalidRequest),
    ],
)
def test_failures_have_our_names(error: Exception, kind: type[LlmError]) -> None:
    found = as_llm_error(error, "p/m")
    assert type(found) is kind
    assert found.__cause__ is error


def test_a_filter_is_no_failure() -> None:
    assert is_filtered(Refused(400, {"error": {"code": "content_filter", "message": "The prompt was filtered."}}))
    assert not is_filtered(Refused(400, {"error": {"code": "invalid_request", "message": "content_filter"}}))


def test_our_own_errors_stay_as_they_are() -> None:
    error = LlmInvalidRequest("p/m", "no rule fits")
    assert as_llm_error(error, "p/m") is error


def test_what_the_service_says_is_in_the_message() -> None:
    body = {"error": {"type": "invalid_request_error", "message": "max_tokens:\n  too large"}}
    assert str(as_llm_error(Refused(400, body), "p/m")) == (
        "p/m: HTTP 400 invalid_request_error: max_tokens: too large"
    )


def test_the_wait_that_is_asked_for_is_kept() -> None:
    for error in (
        Refused(429, headers={"Retry-After": "7"}),
        AwsError(429, "ThrottlingException", {"retry-after": "7"}),
    ):
        found = as_llm_error(error, "p/m")
        assert isinstance(found, LlmRateLimited)
        assert found.retry_after_s == 7.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 -0000"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:00:00 GMT"}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, NOW) == seconds


@given(st.text(max_size=40))
def test_no_retry_after_breaks_the_reading(text: str) -> None:
    seconds = retry_after_s({"retry-after": text}, NOW)
    assert seconds is None or seconds >= 0


def test_a_secret_that_is_repeated_is_cut_out_of_message_and_causes() -> None:
    error = Refused(401, {"error": {"message": "wrong key not-a-usual-key-1"}})
    found = as_llm_error(error, "p/m", ("not-a-usual-key-1",))
    assert "wrong key …" in str(found)
    inner = RuntimeError("sent Authorization: Bearer abcdefgh12345678")
    error.__cause__ = inner
    found = as_llm_error(error, "p/m")
    assert found.__cause__ is None


def test_the_secrets_of_a_chat_model_are_found() -> None:
    class Model(ScriptedChatModel):
        api_key: SecretStr = SecretStr("first-secret")
        default_headers: dict[str, str] | None = None

    environment = {"AWS_SECRET_ACCESS_KEY": "the-third-secret", "HOME": "/home/someone"}
    model = Model(default_headers={"X-Team": "another-secret", "X-Short": "a"})
    assert known_secrets(model, environment) == ("the-third-secret", "another-secret", "first-secret")
