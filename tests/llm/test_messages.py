"""Tests of `byokg.llm.messages`."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from byokg.errors import LlmBadReply
from byokg.llm.chat_models import ScriptedChatModel
from byokg.llm.messages import Call, Message, Reply, ToolCall, Usage, estimated_tokens, from_langchain, to_langchain

CALL = Call(
    provider="anthropic",
    model="claude-test",
    messages=(
        Message("system", "Be brief.", cache=True),
        Message("user", "Who directed «Heat»?"),
        Message("assistant", "", tool_calls=(ToolCall("toolu_7", "look", {"id": "Q42", "deep": True}),)),
        Message("tool", "Michael Mann", call_id="toolu_7"),
    ),
    parameters={"temperature": 0.0, "max_tokens": 256},
)


def test_the_key_of_a_call_never_changes() -> None:
    assert CALL.canonical == (
        '{"messages":[{"call":null,"role":"system","text":"Be brief.","tool_calls":[]},'
        '{"call":null,"role":"user","text":"Who directed \\u00abHeat\\u00bb?","tool_calls":[]},'
        '{"call":null,"role":"assistant","text":"","tool_calls":[[0,"look",{"deep":true,"id":"Q42"}]]},'
        '{"call":0,"role":"tool","text":"Michael Mann","tool_calls":[]}],'
        '"model":"claude-test","parameters":{"max_tokens":256,"temperature":0},"provider":"anthropic",'
        '"sample":0,"version":1}'
    )
    assert CALL.key == "1f283a67e942dc035c6038e19179fc8b9ddb59ff9a1c041ba9c8ffef60453ace"


@pytest.mark.parametrize(
    "same",
    [
        replace(CALL, parameters={"max_tokens": 256.0, "temperature": 0}),
        replace(CALL, messages=tuple(replace(message, cache=not message.cache) for message in CALL.messages)),
        replace(
            CALL,
            messages=(
                *CALL.messages[:2],
                Message("assistant", "", (ToolCall("call_x", "look", {"deep": True, "id": "Q42"}),)),
                Message("tool", "Michael Mann", call_id="call_x"),
            ),
        ),
    ],
    ids=["numbers and order", "cache marks", "made-up ids"],
)
def test_what_decides_no_reply_is_no_part_of_the_key(same: Call) -> None:
    assert same.key == CALL.key


@pytest.mark.parametrize(
    "other",
    [
        replace(CALL, provider="bedrock"),
        replace(CALL, model="claude-test-2"),
        replace(CALL, sample=1),
        replace(CALL, parameters={}),
        replace(CALL, parameters={"temperature": 0.0, "max_tokens": 257}),
        replace(CALL, messages=CALL.messages[:2]),
        replace(CALL, messages=(replace(CALL.messages[0], text="Be brief. "), *CALL.messages[1:])),
        replace(CALL, messages=(replace(CALL.messages[0], role="user"), *CALL.messages[1:])),
        replace(CALL, messages=(*CALL.messages[:3], replace(CALL.messages[3], call_id=None))),
    ],
)
def test_everything_that_decides_a_reply_is_part_of_the_key(other: Call) -> None:
    assert other.key != CALL.key


def test_true_is_not_one() -> None:
    assert Call("p", "m", (), {"a": True}).key != Call("p", "m", (), {"a": 1}).key


def test_text_that_has_no_encoding_has_a_key() -> None:
    assert json.loads(Call("p", "m", (Message("user", "\ud800"),)).canonical)["messages"][0]["text"] == "\ud800"


def test_numbers_without_a_value_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        Call("p", "m", (), {"temperature": math.nan}).key  # noqa: B018


def test_a_cache_mark_does_not_tell_messages_apart() -> None:
    assert Message("user", "a", cache=True) == Message("user", "a")


# LangChain's messages


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
