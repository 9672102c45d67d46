"""Tests of `byokg.llm.messages`."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from byokg.errors import LlmBadReply
from byokg.llm.chat_models import ScriptedChatModel
from byokg.llm.messages import Message, Reply, ToolCall, Usage, estimated_tokens, from_langchain, to_langchain

SCRIPTED = ScriptedChatModel()


class Strict(ScriptedChatModel):
    """A chat model whose service always says why a reply ends."""

    @property
    def _llm_type(self) -> str:
        return "openai-chat"


def read(content: str | list[Any] = "text", chat_model: ScriptedChatModel = SCRIPTED, **fields: Any) -> Reply:
    """Read a LangChain message as a reply."""
    return from_langchain(AIMessage(content, **fields), chat_model, "p/m", 1.5)


def test_messages_keep_role_text_and_tool_calls() -> None:
    call = ToolCall("c1", "look", {"id": "Q1"})
    written = to_langchain(
        [
            Message("system", "s"),
            Message("user", "u"),
            Message("assistant", "a", (call,)),
            Message("tool", "t", call_id="c1"),
        ],
        None,
    )
    assert written == [
        SystemMessage("s"),
        HumanMessage("u"),
        AIMessage("a", tool_calls=[{"name": "look", "args": {"id": "Q1"}, "id": "c1", "type": "tool_call"}]),
        ToolMessage("t", tool_call_id="c1"),
    ]


def test_marks_are_written_as_the_provider_wants_them() -> None:
    messages = [Message("system", "stable", cache=True), Message("user", "u")]
    block = {"type": "text", "text": "stable"}
    assert to_langchain(messages, None)[0].content == "stable"
    assert to_langchain(messages, "anthropic")[0].content == [{**block, "cache_control": {"type": "ephemeral"}}]
    assert to_langchain(messages, "bedrock")[0].content == [block, {"cachePoint": {"type": "default"}}]
    assert [message.content for message in to_langchain(messages, "anthropic")[1:]] == ["u"]


def test_of_too_many_marks_the_last_four_count_and_blank_texts_get_none() -> None:
    messages = [Message("user", str(number), cache=True) for number in range(6)] + [Message("user", " ", cache=True)]
    marked = [isinstance(message.content, list) for message in to_langchain(messages, "anthropic")]
    assert marked == [False, False, True, True, True, True, False]


@pytest.mark.parametrize(
    ("metadata", "stop"),
    [
        ({"stop_reason": "end_turn"}, "end"),
        ({"stop_reason": "max_tokens"}, "length"),
        ({"stop_reason": "model_context_window_exceeded"}, "length"),
        ({"stop_reason": "refusal"}, "refusal"),
        ({"stop_reason": "tool_use"}, "tool"),
        ({"stop_reason": "pause_turn"}, "other"),
        ({"stopReason": "guardrail_intervened"}, "refusal"),
        ({"stopReason": "content_filtered"}, "refusal"),
        ({"finish_reason": "stop"}, "end"),
        ({"finish_reason": "length"}, "length"),
        ({"finish_reason": "content_filter"}, "refusal"),
        ({"finish_reason": "tool_calls"}, "tool"),
        ({"finish_reason": "MAX_TOKENS"}, "length"),
        ({"done_reason": "stop"}, "end"),
        ({}, "end"),
    ],
)
def test_reasons_have_our_names(metadata: dict[str, str], stop: str) -> None:
    assert read(response_metadata=metadata).stop == stop


def test_a_reply_without_a_reason_is_broken_where_there_always_is_one() -> None:
    with pytest.raises(LlmBadReply, match="did not say why it ends"):
        read(chat_model=Strict(), response_metadata={"finish_reason": None})


def test_a_refusal_in_its_own_field_is_one() -> None:
    reply = read("", additional_kwargs={"refusal": "I will not."}, response_metadata={"finish_reason": "stop"})
    assert (reply.stop, reply.text) == ("refusal", "I will not.")


def test_text_comes_from_all_its_blocks_and_thoughts_stay_out() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hmm"},
        {"type": "text", "text": "one "},
        {"type": "tool_use", "id": "c", "name": "n", "input": {}},
        {"type": "text", "text": "two"},
    ]
    assert read(blocks).text == "one two"


def test_tokens_are_counted_whole_and_by_their_way_through_the_cache() -> None:
    def usage(**details: int) -> Usage:
        counts = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107, "input_token_details": details}
        return read(usage_metadata=counts).usage

    assert usage(cache_read=60, cache_creation=30) == Usage(100, 7, 60, 30)
    assert usage(cache_creation=0, ephemeral_5m_input_tokens=20, ephemeral_1h_input_tokens=5) == Usage(100, 7, 0, 25)
    assert read().usage == Usage()


def test_the_model_is_the_one_that_the_service_names() -> None:
    assert read(response_metadata={"model_name": "claude-test-20260101"}).model == "claude-test-20260101"
    assert read().model == "p/m"


def test_tool_calls_that_are_no_json_are_no_reply_unless_cut_off() -> None:
    wrong = [{"name": "look", "args": '{"id": ', "id": "c", "error": None, "type": "invalid_tool_call"}]
    with pytest.raises(LlmBadReply, match="no JSON"):
        read("", invalid_tool_calls=wrong, response_metadata={"finish_reason": "tool_calls"})
    assert read("", invalid_tool_calls=wrong, response_metadata={"finish_reason": "length"}).stop == "length"


def test_a_token_is_guessed_to_be_four_bytes() -> None:
    assert estimated_tokens([Message("user", "a" * 40), Message("user", "é" * 20)], {}) == 21
