"""Our messages as LangChain's, and LangChain's replies as ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from byokg.errors import LlmBadReply
from byokg.llm.records import JSON, Message, Reply, Stop, ToolCall, Usage

if TYPE_CHECKING:  # half a second to import, and a replayed run needs none of it
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage

CacheMarks = Literal["anthropic", "bedrock"]
"""How a provider is told what to keep: `cache_control` on a block, or a `cachePoint` after it."""

MOST_MARKS = 4
"""Marks that Anthropic and Bedrock accept in one request."""

_REASON_KEYS = ("stop_reason", "stopReason", "finish_reason", "done_reason")
"""Where LangChain's classes leave the reason: Anthropic, Bedrock, OpenAI, Ollama."""

_STOPS: Mapping[str, Stop] = {
    "end_turn": "end",
    "stop": "end",
    "stop_sequence": "end",
    "max_tokens": "length",
    "length": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "content_filter": "refusal",
    "content_filtered": "refusal",
    "guardrail_intervened": "refusal",
    "safety": "refusal",
    "tool_use": "tool",
    "tool_calls": "tool",
    "function_call": "tool",
}

_SAY_WHY = frozenset(
    {"anthropic-chat", "amazon_bedrock_converse_chat", "openai-chat", "azure-openai-chat"},
)
"""Kinds of chat models (`_llm_type`) whose services always say why a reply ends: one without a reason was cut."""

_MARKS: Mapping[str, CacheMarks] = {"anthropic-chat": "anthropic", "amazon_bedrock_converse_chat": "bedrock"}


def cache_marks(chat_model: BaseChatModel) -> CacheMarks | None:
    """Return how a chat model's provider is told what to keep; None when it cannot be told."""
    marks = _MARKS.get(chat_model._llm_type)
    if marks == "bedrock":
        # Bedrock refuses requests with cache points for models that know none.
        name = f"{getattr(chat_model, 'base_model_id', None)} {getattr(chat_model, 'model_id', '')}"
        return marks if "anthropic." in name or "amazon.nova" in name else None
    return marks


def to_langchain(messages: Sequence[Message], marks: CacheMarks | None) -> list[BaseMessage]:
    """Write messages as LangChain's.

    Args:
        messages: what to send; those with `cache` set end a stable prefix.
        marks: how to mark the prefix; None leaves the marks out. Of more than four marks the last four count.
    """
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    marked = [i for i, message in enumerate(messages) if message.cache and message.text.strip()][-MOST_MARKS:]
    written: list[BaseMessage] = []
    for position, message in enumerate(messages):
        content: Any = _marked(message.text, marks) if marks and position in marked else message.text
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
        message: what the chat model returned.
        chat_model: its kind says whether a reason for the end must be there.
        model: our name of the model, for the error, and where the service names none.
        seconds: how long it took.

    Raises:
        LlmBadReply: the service ended the reply without saying why, or gives counts that are no counts.
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
        stop = _STOPS.get(str(reasons[0]).lower(), "other")
    if message.invalid_tool_calls and stop != "length":
        raise LlmBadReply(model, f"arguments of a tool call are no JSON: {message.invalid_tool_calls[0].get('args')!r}")
    text = refusal if isinstance(refusal, str) and not _text(message.content) else _text(message.content)
    calls = tuple(ToolCall(str(call["id"]), call["name"], call["args"]) for call in message.tool_calls)
    named = metadata.get("model_name") or metadata.get("model")
    return Reply(text, calls, stop, _usage(message, model), str(named or model), seconds)


def estimated_tokens(messages: Sequence[Message], parameters: Mapping[str, JSON]) -> int:
    """Guess the tokens of a prompt, before anybody counts them: four bytes of text make about one."""
    size = sum(len(message.text.encode("utf-8", "replace")) for message in messages) + len(
        str(parameters.get("tools", ""))
    )
    return size // 4 + 1


def _marked(text: str, marks: CacheMarks) -> list[dict[str, Any]]:
    block: dict[str, Any] = {"type": "text", "text": text}
    if marks == "anthropic":
        return [{**block, "cache_control": {"type": "ephemeral"}}]
    return [block, {"cachePoint": {"type": "default"}}]


def _text(content: str | Sequence[str | Mapping[str, Any]]) -> str:
    """Join the text of a reply; what a model thinks before it answers is left out."""
    if isinstance(content, str):
        return content
    parts = [part if isinstance(part, str) else part.get("text") for part in content if _is_text(part)]
    return "".join(part for part in parts if isinstance(part, str))


def _is_text(part: str | Mapping[str, Any]) -> bool:
    return isinstance(part, str) or part.get("type") in ("text", None)


def _usage(message: AIMessage, model: str) -> Usage:
    """Read the token counts; all 0 where the service gives none."""
    counts = message.usage_metadata
    if counts is None:
        return Usage()
    details: Mapping[str, Any] = counts.get("input_token_details") or {}
    # Anthropic's class splits what was written by how long it is kept, and sets the sum to 0 then.
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
