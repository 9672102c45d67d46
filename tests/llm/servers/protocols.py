"""How Anthropic, Bedrock and OpenAI write requests, replies, streams and errors.

Each protocol turns a request into an `Asked`, and an `Answered` into bytes. Tokens are words.
"""

from __future__ import annotations

import binascii
import json
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from tests.llm.servers.http import Request, Response

JSON_TYPE = {"Content-Type": "application/json"}
STREAM_TYPE = {"Content-Type": "text/event-stream"}


@dataclass(frozen=True)
class Asked:
    """What a request wants, whatever the protocol: the texts of its messages by role, system prompts among them."""

    model: str
    messages: tuple[tuple[str, str], ...]
    stream: bool
    body: Mapping[str, Any]

    @property
    def prompt(self) -> str:
        """Return the text of the last message."""
        return self.messages[-1][1]


@dataclass(frozen=True)
class Answered:
    """What to reply. `stop` is `end`, `length`, `refusal` or `tool`."""

    text: str
    stop: str = "end"
    tool_calls: tuple[tuple[str, str, Mapping[str, Any]], ...] = ()
    """Id, name and arguments."""
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True)
class ServiceError:
    """A failure that the service reports. `kind` is `rate_limit`, `overloaded`, `server`, `invalid` or `auth`."""

    kind: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Dialect(Protocol):
    """One protocol."""

    def serves(self, path: str) -> bool:
        """Tell whether a path belongs to this protocol."""

    def refusal(self, request: Request, secret: str) -> ServiceError | None:
        """Return what is wrong with the credentials; None when they are right."""

    def asked(self, request: Request) -> Asked:
        """Read a request. Raises ValueError, KeyError or TypeError when it is none."""

    def whole(self, asked: Asked, answered: Answered) -> Response:
        """Write a reply in one piece."""

    def stream(self, asked: Asked, answered: Answered) -> Response:
        """Write a reply as a stream: one piece for each event, the last one ends it."""

    def error(self, error: ServiceError) -> Response:
        """Write an error."""


def words(text: str) -> int:
    """Count tokens."""
    return len(text.split())


def _json(status: int, record: object, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status, json.dumps(record).encode(), {**JSON_TYPE, **(headers or {})})


def _text(content: str | Sequence[Mapping[str, Any]] | None) -> str:
    """Return the text of a message's content."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(str(block.get("text", "")) for block in content)


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


class Anthropic:
    """`POST /v1/messages`."""

    _STOPS: Mapping[str, str] = {"end": "end_turn", "length": "max_tokens", "refusal": "refusal", "tool": "tool_use"}
    _ERRORS: Mapping[str, tuple[int, str]] = {
        "rate_limit": (429, "rate_limit_error"),
        "overloaded": (529, "overloaded_error"),
        "server": (500, "api_error"),
        "invalid": (400, "invalid_request_error"),
        "auth": (401, "authentication_error"),
        "missing": (404, "not_found_error"),
    }

    def serves(self, path: str) -> bool:
        return urlsplit(path).path == "/v1/messages"

    def refusal(self, request: Request, secret: str) -> ServiceError | None:
        # The client's version 2 sends it as a bearer; version 1 in a header of its own.
        key = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        # A careless service repeats what it was sent.
        return None if key == secret else ServiceError("auth", f"invalid API key {key}")

    def asked(self, request: Request) -> Asked:
        return self.read(json.loads(request.body))

    def read(self, body: Mapping[str, Any]) -> Asked:
        """Read the body of a request, or the `params` of one in a batch."""
        system = [("system", _text(body["system"]))] if body.get("system") else []
        turns = [(turn["role"], _text(turn["content"])) for turn in body["messages"]]
        if not turns or body["max_tokens"] < 1:
            raise ValueError("messages and max_tokens are required")
        return Asked(body["model"], (*system, *turns), bool(body.get("stream")), body)

    def message(self, asked: Asked, answered: Answered) -> dict[str, Any]:
        """Write a message object."""
        content: list[dict[str, Any]] = [{"type": "text", "text": answered.text}] if answered.text else []
        content += [
            {"type": "tool_use", "id": id, "name": name, "input": dict(arguments)}
            for id, name, arguments in answered.tool_calls
        ]
        sent = sum(words(text) for _, text in asked.messages)
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": content,
            "stop_reason": self._STOPS[answered.stop],
            "stop_sequence": None,
            "usage": {
                "input_tokens": sent - answered.cache_read - answered.cache_write,
                "output_tokens": words(answered.text),
                "cache_read_input_tokens": answered.cache_read,
                "cache_creation_input_tokens": answered.cache_write,
            },
        }

    def whole(self, asked: Asked, answered: Answered) -> Response:
        return _json(200, self.message(asked, answered))

    def stream(self, asked: Asked, answered: Answered) -> Response:
        message = self.message(asked, answered)
        stop, usage = message["stop_reason"], message["usage"]
        start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *(
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": half}}
                for half in _halves(answered.text)
            ),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ]
        pieces = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
        return Response(body=[*pieces[:-2], b"".join(pieces[-2:])], headers=STREAM_TYPE)

    def error(self, error: ServiceError) -> Response:
        status, kind = self._ERRORS[error.kind]
        return _json(status, {"type": "error", "error": {"type": kind, "message": error.message}}, error.headers)


class OpenAI:
    """`POST /v1/chat/completions`, also as Azure has it."""

    _PATH = re.compile(r"(/v1|/openai/v1|/openai/deployments/(?P<deployment>[^/]+))/chat/completions")
    _STOPS: Mapping[str, str] = {"end": "stop", "length": "length", "refusal": "content_filter", "tool": "tool_calls"}
    _ERRORS: Mapping[str, tuple[int, str]] = {
        "rate_limit": (429, "rate_limit_exceeded"),
        "overloaded": (503, "overloaded"),
        "server": (500, "server_error"),
        "invalid": (400, "invalid_request"),
        "auth": (401, "invalid_api_key"),
        "missing": (404, "model_not_found"),
    }

    def serves(self, path: str) -> bool:
        return self._PATH.fullmatch(urlsplit(path).path) is not None

    def refusal(self, request: Request, secret: str) -> ServiceError | None:
        key = request.headers.get("api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        return None if key == secret else ServiceError("auth", f"Incorrect API key provided: {key}")

    def asked(self, request: Request) -> Asked:
        body = json.loads(request.body)
        turns = tuple((turn["role"], _text(turn["content"])) for turn in body["messages"])
        if not turns:
            raise ValueError("messages are required")
        return Asked(body["model"], turns, bool(body.get("stream")), body)

    def _usage(self, asked: Asked, answered: Answered) -> dict[str, Any]:
        sent = sum(words(text) for _, text in asked.messages)
        return {
            "prompt_tokens": sent,
            "completion_tokens": words(answered.text),
            "total_tokens": sent + words(answered.text),
            "prompt_tokens_details": {"cached_tokens": answered.cache_read},
        }

    def whole(self, asked: Asked, answered: Answered) -> Response:
        message: dict[str, Any] = {"role": "assistant", "content": answered.text, "refusal": None}
        if answered.tool_calls:
            message["tool_calls"] = [
                {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
                for id, name, arguments in answered.tool_calls
            ]
        record = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": asked.model,
            "choices": [{"index": 0, "message": message, "finish_reason": self._STOPS[answered.stop]}],
            "usage": self._usage(asked, answered),
        }
        return _json(200, record)

    def stream(self, asked: Asked, answered: Answered) -> Response:
        def piece(choices: list[dict[str, Any]], **rest: object) -> bytes:
            record = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": asked.model}
            return f"data: {json.dumps({**record, 'choices': choices, **rest})}\n\n".encode()

        first, second = _halves(answered.text)
        deltas: list[tuple[dict[str, Any], str | None]] = [
            ({"role": "assistant", "content": first}, None),
            ({"content": second}, None),
            ({}, self._STOPS[answered.stop]),
        ]
        pieces = [piece([{"index": 0, "delta": delta, "finish_reason": reason}]) for delta, reason in deltas]
        end = pieces[-1] + piece([], usage=self._usage(asked, answered)) + b"data: [DONE]\n\n"
        return Response(body=[*pieces[:-1], end], headers=STREAM_TYPE)

    def error(self, error: ServiceError) -> Response:
        status, code = self._ERRORS[error.kind]
        record = {"error": {"message": error.message, "type": code, "param": None, "code": code}}
        return _json(status, record, error.headers)


class Bedrock:
    """`POST /model/{id}/converse` and `…/converse-stream`, signed with AWS's version 4."""

    ACCESS_KEY = "AKIDTESTTESTTESTTEST"
    REGION = "eu-test-1"

    _PATH = re.compile(r"/model/(?P<model>[^/]+)/converse(?P<stream>-stream)?")
    _AUTHORIZATION = re.compile(
        r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/\d+/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request, "
        r"SignedHeaders=(?P<headers>[^,]+), Signature=(?P<signature>[0-9a-f]+)"
    )
    _STOPS: Mapping[str, str] = {
        "end": "end_turn",
        "length": "max_tokens",
        "refusal": "content_filtered",
        "tool": "tool_use",
    }
    _ERRORS: Mapping[str, tuple[int, str]] = {
        "rate_limit": (429, "ThrottlingException"),
        "overloaded": (503, "ServiceUnavailableException"),
        "server": (500, "InternalServerException"),
        "invalid": (400, "ValidationException"),
        "auth": (403, "UnrecognizedClientException"),
        "missing": (404, "ResourceNotFoundException"),
    }

    def serves(self, path: str) -> bool:
        return self._PATH.fullmatch(urlsplit(path).path) is not None

    def refusal(self, request: Request, secret: str) -> ServiceError | None:
        """Compute the signature of the request anew, and compare."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        wrong = ServiceError("auth", "The security token included in the request is invalid.")
        found = self._AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
        if found is None or (found["key"], found["region"], found["service"]) != (
            self.ACCESS_KEY,
            self.REGION,
            "bedrock",
        ):
            return wrong
        headers = {name: request.headers[name] for name in found["headers"].split(";")}
        url = f"http://{request.headers['host']}{request.path}"
        unsigned = AWSRequest(request.method, url, headers=headers, data=request.body)
        unsigned.context["timestamp"] = request.headers["x-amz-date"]
        signer = SigV4Auth(Credentials(self.ACCESS_KEY, secret), "bedrock", self.REGION)
        signature = signer.signature(signer.string_to_sign(unsigned, signer.canonical_request(unsigned)), unsigned)
        return None if signature == found["signature"] else wrong

    def asked(self, request: Request) -> Asked:
        body = json.loads(request.body)
        found = self._PATH.fullmatch(urlsplit(request.path).path)
        assert found is not None
        system = [("system", _text(body["system"]))] if body.get("system") else []
        turns = [(turn["role"], _text(turn["content"])) for turn in body["messages"]]
        if not turns:
            raise ValueError("messages are required")
        return Asked(unquote(found["model"]), (*system, *turns), found["stream"] is not None, body)

    def _usage(self, asked: Asked, answered: Answered) -> dict[str, int]:
        sent = sum(words(text) for _, text in asked.messages)
        return {
            "inputTokens": sent - answered.cache_read - answered.cache_write,
            "outputTokens": words(answered.text),
            "totalTokens": sent + words(answered.text),
            "cacheReadInputTokens": answered.cache_read,
            "cacheWriteInputTokens": answered.cache_write,
        }

    def whole(self, asked: Asked, answered: Answered) -> Response:
        content: list[dict[str, Any]] = [{"text": answered.text}] if answered.text else []
        content += [
            {"toolUse": {"toolUseId": id, "name": name, "input": dict(arguments)}}
            for id, name, arguments in answered.tool_calls
        ]
        record = {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": self._STOPS[answered.stop],
            "usage": self._usage(asked, answered),
            "metrics": {"latencyMs": 1},
        }
        return _json(200, record)

    def stream(self, asked: Asked, answered: Answered) -> Response:
        events: list[tuple[str, dict[str, Any]]] = [
            ("messageStart", {"role": "assistant"}),
            *(
                ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": half}})
                for half in _halves(answered.text)
            ),
            ("contentBlockStop", {"contentBlockIndex": 0}),
            ("messageStop", {"stopReason": self._STOPS[answered.stop]}),
            ("metadata", {"usage": self._usage(asked, answered), "metrics": {"latencyMs": 1}}),
        ]
        pieces = [_event(kind, record) for kind, record in events]
        return Response(
            body=[*pieces[:-2], b"".join(pieces[-2:])], headers={"Content-Type": "application/vnd.amazon.eventstream"}
        )

    def error(self, error: ServiceError) -> Response:
        status, kind = self._ERRORS[error.kind]
        return _json(status, {"message": error.message}, {"x-amzn-ErrorType": kind, **error.headers})


def _event(kind: str, record: object) -> bytes:
    """Write one frame of AWS's event streams: lengths, checksum, headers, payload, checksum."""
    payload = json.dumps(record).encode()
    named = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in named.items()
    )
    prelude = struct.pack("!II", len(headers) + len(payload) + 16, len(headers))
    frame = prelude + struct.pack("!I", binascii.crc32(prelude)) + headers + payload
    return frame + struct.pack("!I", binascii.crc32(frame))
