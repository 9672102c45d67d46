"""Tests of `byokg.llm.messages`."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from byokg.llm.messages import Call, Message, ToolCall

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
