"""Tests of `byokg.llm.batch` and `byokg.llm.batch`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from byokg.errors import LlmInvalidRequest, ReplyPending
from byokg.llm.batch import (
    ANTHROPIC,
    OPENAI,
    OWN,
    PendingCall,
    PendingCalls,
    anthropic_params,
    openai_body,
    remove_requests,
    write_requests,
)
from byokg.llm.messages import JSON, Call, Message, Reply, ToolCall
from byokg.llm.model import LanguageModel
from byokg.llm.replies import RecordedReplies

TOOL: dict[str, JSON] = {
    "name": "bfs",
    "description": "Walk.",
    "parameters": {"type": "object", "properties": {"hops": {}}},
}

TALK = Call(
    "anthropic",
    "claude",
    (
        Message("system", "Answer.", cache=True),
        Message("user", "Who?"),
        Message("assistant", "Let me see.", (ToolCall("t1", "bfs", {"hops": 2}),)),
        Message("tool", "Ann", call_id="t1"),
        Message("user", "And now?"),
    ),
    {"max_tokens": 50, "temperature": 0, "tools": [TOOL]},
)


def ask(text: str = "Who?") -> Call:
    return Call("anthropic", "claude", (Message("user", text),), {"max_tokens": 50})


def test_a_call_is_written_as_anthropic_takes_it() -> None:
    assert anthropic_params(TALK) == {
        "model": "claude",
        "max_tokens": 50,
        "temperature": 0,
        "tools": [{"name": "bfs", "description": "Walk.", "input_schema": TOOL["parameters"]}],
        "system": [{"type": "text", "text": "Answer.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Who?"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "id": "t1", "name": "bfs", "input": {"hops": 2}},
                ],
            },
            {
                "role": "user",  # speakers take turns, so the tool's answer and the next question are one message
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "Ann"},
                    {"type": "text", "text": "And now?"},
                ],
            },
        ],
    }


def test_a_call_is_written_as_openai_takes_it() -> None:
    body = openai_body(TALK)
    assert body["tools"] == [{"type": "function", "function": TOOL}]
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool", "user"]
    assert body["messages"][2]["tool_calls"][0]["function"] == {"name": "bfs", "arguments": '{"hops": 2}'}
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "t1", "content": "Ann"}


def test_the_three_files_name_each_request_by_its_key(tmp_path: Path) -> None:
    calls = [PendingCall(ask("one"), "answer", "q1"), PendingCall(ask("two\n“é”"), "kg_linker", "q2")]
    write_requests(calls, tmp_path / "requests")
    read = {
        name: [json.loads(line) for line in (tmp_path / "requests" / name).read_text("utf-8").splitlines()]
        for name in (OWN, ANTHROPIC, OPENAI)
    }
    keys = [each.call.key for each in calls]
    assert [line["id"] for line in read[OWN]] == [line["custom_id"] for line in read[ANTHROPIC]] == keys
    assert read[OWN][1] == {
        "id": keys[1],
        "question": "q2",
        "stage": "kg_linker",
        "provider": "anthropic",
        "model": "claude",
        "messages": [{"role": "user", "text": "two\n“é”"}],
        "parameters": {"max_tokens": 50},
        "sample": 0,
    }
    assert read[OPENAI][0]["url"] == "/v1/chat/completions"
    remove_requests(tmp_path / "requests")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_puts_calls_aside_sends_nothing_until_the_reply_is_there(tmp_path: Path) -> None:
    store = RecordedReplies(tmp_path / "replies.sqlite")
    pending = PendingCalls(store)
    model = LanguageModel(None, "anthropic", "claude", {"max_tokens": 50}, store=store, pending=pending)
    for question in ("q2", "q1"):
        with pytest.raises(ReplyPending, match=question):
            model.reply([Message("user", f"Who is {question}?")], stage="answer", question_id=question)
    with pytest.raises(ReplyPending):
        model.reply([Message("user", "Who is q1?")], stage="answer", question_id="q1")
    taken = pending.take()
    assert [each.question_id for each in taken] == ["q1", "q2"] and len(pending) == 0
    store.put(taken[0].call, Reply("Ann"))
    assert model.reply([Message("user", "Who is q1?")], stage="answer", question_id="q1").text == "Ann"


def test_a_call_that_was_not_answered_for_good_is_an_error_at_once(tmp_path: Path) -> None:
    store = RecordedReplies(tmp_path / "replies.sqlite")
    pending = PendingCalls(store)
    model = LanguageModel(None, "anthropic", "claude", {"max_tokens": 50}, store=store, pending=pending)
    with pytest.raises(ReplyPending):
        model.reply([Message("user", "Who?")], stage="answer", question_id="q1")
    (each,) = pending.take()
    pending.failed[each.call.key] = "errored: prompt is too long"
    with pytest.raises(LlmInvalidRequest, match="too long"):
        model.reply([Message("user", "Who?")], stage="answer", question_id="q1")
