"""Calls and replies of language models: as records, as JSON, and as LangChain's messages.

`Call.key` identifies a call. Everything that decides a reply is part of it, and nothing else: not
the identifiers that services give to messages, not the marks for prompt caching, not addresses, keys or timeouts.

`ReplyStore` and `Meter` are the protocols of `LanguageModel` for storing replies and counting calls.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

from byokg.errors import LlmBadReply
from byokg.prompts import Filled
from byokg.text.names import encodable

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"

Role = Literal["system", "user", "assistant", "tool"]

Stop = Literal["end", "length", "refusal", "tool", "other"]
"""Why a model stopped: finished, at its token limit, refusing, asking for a tool, or something else."""

KEY_VERSION = 1
"""Part of every key; raised when the canonical form below changes, so that no old reply is taken for a new call's."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one call; all at least 0.

    `input_tokens` counts the whole prompt, whether it was read from a prompt cache, written to one, or neither.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True)
class ToolCall:
    """A tool call that a model asks for. `id` ties the tool's answer to it."""

    id: str
    name: str
    arguments: Mapping[str, JSON]


@dataclass(frozen=True)
class Message:
    """One message of a conversation, the same for all providers.

    `call_id` is the id of the tool call that a message of role `tool` answers. `cache` is True if everything up to the
    end of this message will be sent repeatedly, so a provider that can should keep it; it changes no reply, so it is no
    part of a message's identity.
    """

    role: Role
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    cache: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Call:
    """A model call: everything that decides a reply.

    `sample` separates several replies to the same messages. `parameters` are the model's (temperature, max_tokens,
    extra body, tools, …), never keys, addresses or timeouts.
    """

    provider: str
    model: str
    messages: tuple[Message, ...]
    parameters: Mapping[str, JSON] = field(default_factory=lambda: MappingProxyType({}))
    sample: int = 0

    @cached_property
    def key(self) -> str:
        """Identify the call in stores: 64 hexadecimal digits.

        Raises:
            ValueError: a parameter is a number that is not finite.
            TypeError: a parameter is nothing that JSON can hold.
        """
        return hashlib.sha256(self.canonical.encode("ascii")).hexdigest()

    @cached_property
    def prompt_digest(self) -> str:
        """Return a digest of the messages, independent of the model: 16 hexadecimal digits."""
        said = json.dumps([[message.role, message.text] for message in self.messages])
        return hashlib.sha256(said.encode("ascii")).hexdigest()[:16]

    @property
    def canonical(self) -> str:
        """Return the text behind the key: ASCII JSON with sorted keys and without white space.

        The ids of tool calls are replaced by their position in the conversation: services make them up at random.
        """
        order: dict[str, int] = {}
        for message in self.messages:
            for call in message.tool_calls:
                order.setdefault(call.id, len(order))
        messages = [
            {
                "role": message.role,
                "text": message.text,
                "tool_calls": [[order[call.id], call.name, _canonical(call.arguments)] for call in message.tool_calls],
                "call": None if message.call_id is None else order.get(message.call_id, message.call_id),
            }
            for message in self.messages
        ]
        record = {
            "version": KEY_VERSION,
            "provider": self.provider,
            "model": self.model,
            "messages": messages,
            "parameters": _canonical(self.parameters),
            "sample": self.sample,
        }
        return json.dumps(record, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True)
class ReplyToken:
    """A token of a reply, its log-probability (natural, at most 0), and those of the likeliest tokens in its place."""

    text: str
    logprob: float
    alternatives: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Reply:
    """A model's reply. `model` is the service's name of the model, `seconds` the time of the last attempt.

    `tokens` are those of the text if `llm.logprobs` is set and the service has log-probabilities; else there are none.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    stop: Stop = "end"
    usage: Usage = Usage()
    model: str = ""
    seconds: float = 0.0
    retries: int = 0
    tokens: tuple[ReplyToken, ...] = ()


class ReplyStore(Protocol):
    """Keeps replies by call. Used from many threads at the same time."""

    @property
    def replay_only(self) -> bool:
        """True if a call without a reply must fail (`ReplyMissing`): nothing may be sent."""

    def get(self, call: Call) -> Reply | None:
        """Return the reply kept for a call; None if there is none, or if replies are to be requested anew."""

    def put(self, call: Call, reply: Reply, stage: str = "") -> None:
        """Keep a reply. It was paid for: it is on disk when this returns. `stage` is its purpose."""

    def nearest(self, call: Call) -> str:
        """Describe in a few words how the most similar call with a reply differs; empty if there is none."""


class Meter(Protocol):
    """Counts calls, tokens and money, and stops a run at its budget. Used from many threads at the same time.

    A call that is sent runs through `before`, then one of `after` and `failed`; a replayed one through `after` alone.
    """

    def before(self, call: Call, stage: str, question_id: str) -> None:
        """Reserve the cost of a call.

        Raises:
            BudgetExceeded: it would go over the budget; the call is not sent.
        """

    def after(self, call: Call, reply: Reply, stage: str, question_id: str, replayed: bool) -> None:
        """Count a call that was answered, well or not (`reply.stop`); a replayed reply costs nothing."""

    def failed(self, call: Call, retries: int, stage: str, question_id: str) -> None:
        """Count a call that was sent `1 + retries` times without an answer; release what `before` reserved."""


def _canonical(value: JSON) -> JSON:
    """Return a JSON value of plain dicts and lists in which equal numbers look alike (1.0 as 1)."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _canonical(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_canonical(entry) for entry in value]
    return value


# Calls and replies as JSON, in the store and in exports


def call_record(call: Call) -> dict[str, Any]:
    """Return a call as JSON holds it."""
    messages = []
    for message in call.messages:
        record: dict[str, Any] = {"role": message.role, "text": message.text}
        if message.tool_calls:
            record["tool_calls"] = [tool_record(tool) for tool in message.tool_calls]
        if message.call_id is not None:
            record["call_id"] = message.call_id
        messages.append(record)
    return {
        "provider": call.provider,
        "model": call.model,
        "messages": messages,
        "parameters": call.parameters,
        "sample": call.sample,
    }


def reply_record(reply: Reply) -> dict[str, Any]:
    """Return a reply as JSON holds it."""
    tools = {"tool_calls": [tool_record(tool) for tool in reply.tool_calls]} if reply.tool_calls else {}
    return {
        "text": reply.text,
        **tools,
        "stop": reply.stop,
        "usage": asdict(reply.usage),
        "model": reply.model,
        "seconds": reply.seconds,
        "retries": reply.retries,
        **({"tokens": token_records(reply.tokens)} if reply.tokens else {}),
    }


def token_records(tokens: Sequence[ReplyToken]) -> list[list[Any]]:
    """Return tokens as JSON holds them: text, log-probability, alternatives."""
    return [[token.text, token.logprob, dict(token.alternatives)] for token in tokens]


def read_tokens(records: Sequence[Any]) -> tuple[ReplyToken, ...]:
    """Read what `token_records` writes. Raises ValueError or TypeError if it is none."""
    return tuple(
        ReplyToken(_checked(text, str, "text"), float(logprob), {name: float(value) for name, value in others.items()})
        for text, logprob, others in records
    )


def tool_record(tool: ToolCall) -> dict[str, Any]:
    """Return a tool call as JSON holds it."""
    return {"id": tool.id, "name": tool.name, "arguments": tool.arguments}


def read_call(record: Mapping[str, Any]) -> Call:
    """Read what `call_record` writes.

    Raises:
        ValueError, KeyError, TypeError: it is none.
    """
    messages = tuple(
        Message(
            _one_of(message["role"], get_args(Role)),
            _checked(message["text"], str, "text"),
            tuple(map(read_tool_call, message.get("tool_calls", ()))),
            message.get("call_id"),
        )
        for message in record["messages"]
    )
    provider, model = (_checked(record[name], str, "text") for name in ("provider", "model"))
    return Call(provider, model, messages, _checked(record["parameters"], Mapping, "mapping"), int(record["sample"]))


def read_reply(record: Mapping[str, Any]) -> Reply:
    """Read what `reply_record` writes; all but the text may be missing.

    Raises:
        ValueError, KeyError, TypeError: it is none.
    """
    usage = record.get("usage") or {}
    counted = {name: int(usage.get(name, 0)) for name in Usage.__dataclass_fields__}
    if min(counted.values()) < 0:
        raise ValueError("a number of tokens is below 0")
    return Reply(
        _checked(record["text"], str, "text"),
        tuple(map(read_tool_call, record.get("tool_calls", ()))),
        _one_of(record.get("stop", "end"), get_args(Stop)),
        Usage(**counted),
        _checked(record.get("model", ""), str, "text"),
        float(record.get("seconds", 0.0)),
        int(record.get("retries", 0)),
        read_tokens(record.get("tokens", ())),
    )


def read_tool_call(record: Mapping[str, Any]) -> ToolCall:
    """Read what `tool_record` writes.

    Raises:
        ValueError, KeyError, TypeError: it is none.
    """
    id, name = (_checked(record[name], str, "text") for name in ("id", "name"))
    return ToolCall(id, name, _checked(record["arguments"], Mapping, "mapping"))


def _checked(value: Any, kind: type, name: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {name}")
    return value


def _one_of(value: Any, allowed: Sequence[str]) -> Any:
    if value not in allowed:
        raise ValueError(f"{value!r} is none of {', '.join(allowed)}")
    return value


# Our messages as LangChain's, and its replies as ours


CacheMarks = Literal["anthropic", "bedrock"]
"""Marks of a prefix to cache: `cache_control` on a block, or a `cachePoint` after it."""

MOST_MARKS = 4
"""Marks that Anthropic and Bedrock accept in one request."""

_REASON_KEYS = ("stop_reason", "stopReason", "finish_reason", "done_reason")
"""Where LangChain's classes leave the reason: Anthropic, Bedrock, OpenAI, Ollama."""

_REASONS: Mapping[Stop, str] = {
    "end": "end_turn stop stop_sequence",
    "length": "max_tokens length model_context_window_exceeded",
    "refusal": "refusal content_filter content_filtered guardrail_intervened safety",
    "tool": "tool_use tool_calls function_call",
}
STOPS: Mapping[str, Stop] = {reason: stop for stop, reasons in _REASONS.items() for reason in reasons.split()}
"""Reasons for the end of a reply, as services name them."""

_SAY_WHY = frozenset({"anthropic-chat", "amazon_bedrock_converse_chat", "openai-chat", "azure-openai-chat"})
"""Kinds of chat models (`_llm_type`) whose services always give the reason: a reply without one was cut off."""

_MARKS: Mapping[str, CacheMarks] = {"anthropic-chat": "anthropic", "amazon_bedrock_converse_chat": "bedrock"}


def cache_marks(chat_model: BaseChatModel) -> CacheMarks | None:
    """Return the marks of a prefix to cache for a chat model's provider; None if it has none."""
    marks = _MARKS.get(chat_model._llm_type)
    if marks == "bedrock":
        # Bedrock refuses requests with cache points for models that know none.
        name = f"{getattr(chat_model, 'base_model_id', None)} {getattr(chat_model, 'model_id', '')}"
        return marks if "anthropic." in name or "amazon.nova" in name else None
    return marks


def cache_marked(messages: Sequence[Message]) -> list[int]:
    """Return the positions of the messages that end a stable prefix; of more than four the last four."""
    return [at for at, message in enumerate(messages) if message.cache and message.text.strip()][-MOST_MARKS:]


def to_langchain(messages: Sequence[Message], marks: CacheMarks | None) -> list[BaseMessage]:
    """Write messages as LangChain's.

    Args:
        messages: what to send, with `?` for each lone surrogate, which no service takes.
        marks: how to mark what `cache_marked` finds; None leaves the marks out.
    """
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    marked = cache_marked(messages) if marks else []
    written: list[BaseMessage] = []
    for position, message in enumerate(messages):
        text = encodable(message.text)
        content: Any = _marked(text, marks) if marks and position in marked else text
        if message.role == "system":
            written.append(SystemMessage(content))
        elif message.role == "user":
            written.append(HumanMessage(content))
        elif message.role == "tool":
            written.append(ToolMessage(content, tool_call_id=message.call_id or ""))
        else:
            calls = [
                {"name": call.name, "args": dict(call.arguments), "id": call.id, "type": "tool_call"}
                for call in message.tool_calls
            ]
            written.append(AIMessage(content, tool_calls=calls))
    return written


def from_langchain(message: AIMessage, chat_model: BaseChatModel, model: str, seconds: float) -> Reply:
    """Read a reply.

    Args:
        message: the chat model's message.
        chat_model: its kind decides whether a finish reason is mandatory.
        model: our name of the model, for the error, and if the service names none.
        seconds: duration of the call.

    Raises:
        LlmBadReply: the service gave no finish reason, or malformed token counts.
    """
    metadata = message.response_metadata
    reasons = [metadata[key] for key in _REASON_KEYS if metadata.get(key) is not None]
    if not reasons and chat_model._llm_type in _SAY_WHY:
        raise LlmBadReply(model, "the reply breaks off: the service did not say why it ends")
    refusal = message.additional_kwargs.get("refusal")
    stop: Stop = "end"
    if refusal:
        stop = "refusal"
    elif reasons:
        stop = STOPS.get(str(reasons[0]).lower(), "other")
    if message.invalid_tool_calls and stop != "length":
        raise LlmBadReply(model, f"arguments of a tool call are no JSON: {message.invalid_tool_calls[0].get('args')!r}")
    # Thinking before the answer is no part of the text.
    text = refusal if isinstance(refusal, str) and not message.text else str(message.text)
    calls = tuple(ToolCall(str(call["id"]), call["name"], call["args"]) for call in message.tool_calls)
    named = metadata.get("model_name") or metadata.get("model")
    tokens = _tokens(metadata.get("logprobs"), model)
    return Reply(text, calls, stop, _usage(message, model), str(named or model), seconds, tokens=tokens)


def estimated_tokens(messages: Sequence[Message], parameters: Mapping[str, JSON]) -> int:
    """Guess the tokens of a prompt, before anybody counts them: four bytes of text make about one."""
    size = sum(len(message.text.encode("utf-8", "replace")) for message in messages) + len(
        str(parameters.get("tools", ""))
    )
    return size // 4 + 1


_LEAST_LOGPROB = -9999.0
"""Log-probability of an impossible token, as OpenAI writes it: JSON has no infinity."""


def _tokens(logprobs: Any, model: str) -> tuple[ReplyToken, ...]:
    """Read the log-probabilities that a service adds to a reply; none if it adds none."""

    def read(entry: Mapping[str, Any]) -> tuple[str, float]:
        return str(entry["token"]), max(float(entry["logprob"]), _LEAST_LOGPROB)

    try:
        entries = (logprobs or {}).get("content") or ()
        return tuple(ReplyToken(*read(entry), dict(map(read, entry.get("top_logprobs") or ()))) for entry in entries)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise LlmBadReply(model, f"the log-probabilities of the reply cannot be read: {error!r}") from error


def _marked(text: str, marks: CacheMarks) -> list[dict[str, Any]]:
    block: dict[str, Any] = {"type": "text", "text": text}
    if marks == "anthropic":
        return [{**block, "cache_control": {"type": "ephemeral"}}]
    return [block, {"cachePoint": {"type": "default"}}]


def _usage(message: AIMessage, model: str) -> Usage:
    """Read the token counts; all 0 if the service gives none."""
    counts = message.usage_metadata
    if counts is None:
        return Usage()
    details: Mapping[str, Any] = counts.get("input_token_details") or {}
    # Anthropic's class splits cache writes by lifetime, and sets the sum to 0 then.
    written: int = sum(details.get(key) or 0 for key in ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"))
    usage = Usage(
        input_tokens=counts["input_tokens"],
        output_tokens=counts["output_tokens"],
        cache_read_tokens=details.get("cache_read") or 0,
        cache_write_tokens=written or details.get("cache_creation") or 0,
    )
    if min(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens) < 0:
        raise LlmBadReply(model, f"the service counts a negative number of tokens: {usage}")
    return usage


def prompt_messages(filled: Filled) -> list[Message]:
    """Return a prompt as messages; its system part is the same for many questions, so providers may keep it."""
    system = [Message("system", filled.system, cache=True)] if filled.system else []
    return [*system, Message("user", filled.user)]
