"""Tests of `byokg.llm.batch`: files of requests, and batches against a local server that speaks their protocol."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byokg.errors import LlmAuthFailed, LlmError, LlmInvalidRequest, ReplyPending
from byokg.llm.batch import (
    ANTHROPIC,
    JOURNAL,
    OPENAI,
    OWN,
    AnthropicBatches,
    Batch,
    PendingCall,
    PendingCalls,
    anthropic_params,
    openai_body,
    remove_requests,
    write_requests,
)
from byokg.llm.messages import JSON, Call, Message, Reply, ToolCall
from byokg.llm.model import LanguageModel
from byokg.llm.reply_store import RecordedReplies
from byokg.llm.retry import RetryPolicy
from tests.llm.servers.model_server import SECRET, ModelServer
from tests.llm.servers.protocols import Answered

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


# Batches


def waiting(*questions: str) -> list[PendingCall]:
    return [
        PendingCall(
            Call("anthropic", "claude-test", (Message("system", "Answer.", cache=True), Message("user", question))),
            "answer",
            question,
        )
        for question in questions
    ]


@pytest.fixture
def store(tmp_path: Path) -> RecordedReplies:
    return RecordedReplies(tmp_path / "replies.sqlite")


@pytest.fixture
def batches(server: ModelServer, store: RecordedReplies, tmp_path: Path) -> Callable[..., AnthropicBatches]:
    def make(key: str = SECRET) -> AnthropicBatches:
        import anthropic

        client = anthropic.Anthropic(api_key=key, base_url=server.url, max_retries=0)
        policy = RetryPolicy(attempts=3, sleep=lambda seconds: None)
        return AnthropicBatches(client, store, tmp_path / "run", "anthropic/claude-test", 0.0, policy, lambda s: None)

    return make


def expect(store: RecordedReplies, calls: list[PendingCall]) -> list[PendingCall]:
    for each in calls:
        store.expect(each.call, each.stage)
    return calls


def test_all_calls_go_in_one_batch_and_their_replies_into_the_store(
    server: ModelServer, store: RecordedReplies, batches: Callable[..., AnthropicBatches], tmp_path: Path
) -> None:
    calls = expect(store, waiting("one", "two", "three"))
    notes: list[str] = []
    server.batches.looks = 3
    assert batches().answer(calls, notes.append) == {}
    assert len(server.batches.all) == 1
    for each in calls:
        reply = store.get(each.call)
        assert reply is not None and reply.text.startswith("reply ") and reply.usage.input_tokens > 0
    assert notes == [
        "batch msgbatch_0001: 3 requests sent",
        "batch msgbatch_0001: 0 of 3 done",
        "batch msgbatch_0001: 3 replies, 0 failed",
    ]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [JOURNAL]


def test_what_is_in_the_store_already_is_not_sent(
    server: ModelServer, store: RecordedReplies, batches: Callable[..., AnthropicBatches]
) -> None:
    calls = expect(store, waiting("one", "two"))
    batches().answer(calls[:1], lambda note: None)
    batches().answer(calls, lambda note: None)
    assert [len(batch.requests) for batch in server.batches.all.values()] == [1, 1]


def test_a_process_that_died_while_waiting_goes_on_with_the_same_batch(
    server: ModelServer, store: RecordedReplies, batches: Callable[..., AnthropicBatches]
) -> None:
    calls = expect(store, waiting("one", "two"))
    server.batches.looks = 100

    class Killed(BaseException):
        pass

    def die(seconds: float) -> None:
        raise Killed

    first = batches()
    first._sleep = die
    with pytest.raises(Killed):
        first.answer(calls, lambda note: None)
    server.batches.looks = 1
    batches().answer(calls, lambda note: None)
    assert len(server.batches.all) == 1
    assert all(store.get(each.call) is not None for each in calls)


@pytest.mark.parametrize("accepted", [True, False])
def test_a_process_that_died_while_sending_finds_out_whether_the_batch_was_accepted(
    server: ModelServer,
    store: RecordedReplies,
    batches: Callable[..., AnthropicBatches],
    tmp_path: Path,
    accepted: bool,
) -> None:
    calls = expect(store, waiting("one", "two"))
    batches().answer(calls if accepted else expect(store, waiting("other")), lambda note: None)
    journal = tmp_path / "run" / JOURNAL
    intent = json.loads(journal.read_text().splitlines()[0])
    assert intent["id"] == ""
    # As a kill leaves it: the intent alone, of a batch with two requests.
    journal.write_text(json.dumps({**intent, "requests": 2}) + "\n" + '{"digest": "torn')
    fresh = RecordedReplies(tmp_path / "fresh.sqlite")
    again = batches()
    again._store = fresh
    again.answer(expect(fresh, calls), lambda note: None)
    assert len(server.batches.all) == (1 if accepted else 2)
    assert all(fresh.get(each.call) is not None for each in calls)


def test_lone_surrogates_are_sent_as_question_marks_and_received_as_they_are(
    server: ModelServer, store: RecordedReplies, batches: Callable[..., AnthropicBatches]
) -> None:
    server.answer = lambda asked: Answered(f"half \ud800 of {asked.messages[-1][1]}")
    calls = expect(store, waiting("one \udfff"))
    assert batches().answer(calls, lambda note: None) == {}
    reply = store.get(calls[0].call)
    assert reply is not None and reply.text == "half \ud800 of one ?"


def test_requests_that_are_not_answered_are_reported_by_key(
    server: ModelServer, store: RecordedReplies, batches: Callable[..., AnthropicBatches]
) -> None:
    calls = expect(store, waiting("one", "two", "three"))
    server.batches.fails = {calls[0].call.key: "errored", calls[1].call.key: "expired"}
    failed = batches().answer(calls, lambda note: None)
    assert failed == {calls[0].call.key: "errored: this one cannot be answered", calls[1].call.key: "expired"}
    assert store.get(calls[2].call) is not None


def test_a_wrong_key_is_said_and_is_in_no_file(
    store: RecordedReplies, batches: Callable[..., AnthropicBatches], tmp_path: Path
) -> None:
    with pytest.raises(LlmAuthFailed) as error:
        batches("sk-wrong-0987654321").answer(expect(store, waiting("one")), lambda note: None)
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"sk-wrong" not in written and "sk-wrong" not in str(error.value)


def test_a_connection_that_breaks_while_sending_does_not_send_twice(
    server: ModelServer, store: RecordedReplies, batches: Callable[..., AnthropicBatches]
) -> None:
    calls = expect(store, waiting("one", "two"))
    sender: Any = batches()
    create = sender._client.messages.batches.create
    broken = iter([True, False])

    class Broken:
        def __getattr__(self, name: str) -> Any:
            return getattr(batches()._client.messages.batches, name)

        def create(self, requests: Any) -> Any:
            sent = create(requests=requests)
            if next(broken):
                import anthropic

                raise anthropic.APIConnectionError(request=None)  # type: ignore[arg-type]
            return sent

    sender._client = type("Client", (), {"messages": type("Messages", (), {"batches": Broken()})()})()
    sender.answer(calls, lambda note: None)
    assert len(server.batches.all) == 1


def test_a_service_that_is_gone_is_an_error_and_the_batch_is_sent_later(
    server: ModelServer, store: RecordedReplies, batches: Callable[..., AnthropicBatches], tmp_path: Path
) -> None:
    calls = expect(store, waiting("one"))
    import anthropic

    client = anthropic.Anthropic(api_key=SECRET, base_url="http://127.0.0.1:9", max_retries=0)
    gone = batches()
    gone._client = client
    with pytest.raises(LlmError):
        gone.answer(calls, lambda note: None)
    batches().answer(calls, lambda note: None)
    assert len(server.batches.all) == 1 and store.get(calls[0].call) is not None
    latest = [Batch(**json.loads(line)) for line in (tmp_path / "run" / JOURNAL).read_text().splitlines()]
    assert latest[-1].done
