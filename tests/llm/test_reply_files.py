"""Tests of `byokg.llm.reply_files`."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from byokg.errors import ReplyStoreError
from byokg.llm.messages import Call, Reply, ToolCall, Usage
from byokg.llm.reply_files import Imported, export_replies, import_replies
from byokg.llm.reply_store import RecordedReplies
from tests.llm.test_reply_store import REPLY, TOOLS, call

TOOL_REPLY = Reply("Let me look.", (ToolCall("t1", "search", {"q": "Heat"}),), "tool", Usage(10, 5), "m")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordedReplies]:
    """Return a store with three replies."""
    with RecordedReplies(tmp_path / "replies.sqlite") as store:
        store.put(call("a"), REPLY, "link")
        store.put(call("b \ud800 \u2028"), replace(REPLY, text="é \udfff\n"), "answer")
        store.put(TOOLS, TOOL_REPLY)
        yield store


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[RecordedReplies]:
    """Return a store to import into."""
    with RecordedReplies(tmp_path / "other.sqlite") as store:
        yield store


@pytest.mark.parametrize("name", ["replies.jsonl", "replies.jsonl.gz"])
def test_what_is_exported_can_be_imported_elsewhere_once(
    store: RecordedReplies, empty: RecordedReplies, tmp_path: Path, name: str
) -> None:
    assert export_replies(store, tmp_path / name) == 3
    assert import_replies(empty, tmp_path / name) == Imported(3, 0, ())
    assert import_replies(empty, tmp_path / name) == Imported(0, 3, ())
    assert list(empty.recorded()) == list(store.recorded())
    assert export_replies(empty, tmp_path / f"again-{name}") == 3
    assert (tmp_path / name).read_bytes() == (tmp_path / f"again-{name}").read_bytes()
    assert empty.get(TOOLS) == TOOL_REPLY


def test_an_export_may_be_compressed_by_others(store: RecordedReplies, empty: RecordedReplies, tmp_path: Path) -> None:
    export_replies(store, tmp_path / "replies.jsonl")
    (tmp_path / "replies.jsonl.xz").write_bytes(lzma.compress((tmp_path / "replies.jsonl").read_bytes()))
    assert import_replies(empty, tmp_path / "replies.jsonl.xz") == Imported(3, 0, ())


def test_an_export_is_one_reply_a_line_ordered_by_key(store: RecordedReplies, tmp_path: Path) -> None:
    export_replies(store, tmp_path / "all.jsonl")
    records = [json.loads(line) for line in (tmp_path / "all.jsonl").read_bytes().split(b"\n")[:-1]]
    assert [record["key"] for record in records] == sorted([call("a").key, call("b \ud800 \u2028").key, TOOLS.key])
    [record] = [record for record in records if record["key"] == call("a").key]
    assert list(record) == ["schema", "key", "stage", "recorded", "call", "reply"]
    assert record["stage"] == "link" and record["recorded"].endswith("Z")
    assert record["call"]["messages"][1] == {"role": "user", "text": "a"}
    assert record["call"]["parameters"] == {"temperature": 0.0, "max_tokens": 1000}
    assert record["reply"]["usage"] == {
        "input_tokens": 500,
        "output_tokens": 4,
        "cache_read_tokens": 300,
        "cache_write_tokens": 100,
    }


def test_the_replies_of_one_run_can_be_exported_alone(store: RecordedReplies, tmp_path: Path) -> None:
    assert export_replies(store, tmp_path / "run.jsonl", {call("a").key}) == 1
    with pytest.raises(ReplyStoreError, match="1 of the calls asked for have no reply here"):
        export_replies(store, tmp_path / "more.jsonl", {call("a").key, call("x").key})
    assert not (tmp_path / "more.jsonl").exists()
    with pytest.raises(ReplyStoreError, match="cannot be written: No such file or directory"):
        export_replies(store, tmp_path / "none" / "x.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir() if "partial" in path.name) == []


def test_conflicts_are_reported_and_what_was_there_stays(
    store: RecordedReplies, empty: RecordedReplies, tmp_path: Path
) -> None:
    empty.put(call("a"), Reply("mine"))
    export_replies(store, tmp_path / "all.jsonl")
    assert import_replies(empty, tmp_path / "all.jsonl") == Imported(2, 0, (call("a").key,))
    assert empty.get(call("a")) == Reply("mine")
    with RecordedReplies(empty.path, "record") as recording:
        assert import_replies(recording, tmp_path / "all.jsonl").conflicts == (call("a").key,)
    assert empty.get(call("a")) == REPLY


def broken(line: str) -> list[tuple[str, str]]:
    """Return ways in which a line can be wrong, and what is said about them."""
    record: dict[str, Any] = json.loads(line)
    return [
        (line[: len(line) // 2], "is no reply"),
        ("[1, 2]", "no JSON object"),
        ('{"question": "Who?"}', "neither 'key' with 'call', nor a call's key"),
        (json.dumps(record | {"key": "0" * 64}), "its call has key .*…, not 000000000000…: it was changed"),
        (json.dumps(record | {"schema": 99}), "schema 99, this byokg reads up to 1; upgrade"),
        (json.dumps({name: value for name, value in record.items() if name != "reply"}), "no 'reply' in it"),
        (json.dumps(record | {"reply": {"text": 5}}), "5 is no text"),
        (json.dumps(record | {"reply": {"text": "x", "stop": "tired"}}), "'tired' is none of end"),
        (json.dumps(record | {"reply": {"text": "x", "usage": {"input_tokens": -1}}}), "below 0"),
        (json.dumps(record | {"call": record["call"] | {"messages": [{"role": "boss", "text": ""}]}}), "'boss'"),
        (json.dumps({"id": "0" * 64, "text": "hi"}), "nobody waits for call 000000000000…"),
        ("[" * 100_000, "is no reply"),
    ]


def test_a_torn_or_foreign_line_is_named_and_nothing_is_imported(
    store: RecordedReplies, empty: RecordedReplies, tmp_path: Path
) -> None:
    export_replies(store, tmp_path / "all.jsonl", {call("a").key, TOOLS.key})
    good, other = (tmp_path / "all.jsonl").read_text("utf-8").splitlines()
    for bad, message in broken(good):
        (tmp_path / "bad.jsonl").write_text(f"{other}\n\n{bad}\n{good}\n", "utf-8")
        with pytest.raises(ReplyStoreError, match=rf"bad\.jsonl:3: .*{message}"):
            import_replies(empty, tmp_path / "bad.jsonl")
        assert len(empty) == 0
    (tmp_path / "bad.jsonl.gz").write_bytes(gzip.compress(good.encode())[:-20])
    (tmp_path / "worse.jsonl.gz").write_bytes(gzip.compress(good.encode())[:20] + b"\xff" * 40)
    (tmp_path / "bad.jsonl.xz").write_bytes(b"no such thing")
    for name in ("bad.jsonl.gz", "worse.jsonl.gz", "bad.jsonl.xz", "none.jsonl"):
        with pytest.raises(ReplyStoreError, match=f"{name}: cannot be read"):
            import_replies(empty, tmp_path / name)
    assert len(empty) == 0


def written(path: Path, *records: dict[str, Any]) -> Path:
    """Write records as JSON lines."""
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
    return path


def test_results_of_an_anthropic_batch_answer_the_calls_that_wait(empty: RecordedReplies, tmp_path: Path) -> None:
    calls = [call(name) for name in "abcde"]
    for each in calls:
        empty.expect(each, "link")

    def message(**changes: Any) -> dict[str, Any]:
        usage = {
            "input_tokens": 100,
            "output_tokens": 7,
            "cache_read_input_tokens": 40,
            "cache_creation_input_tokens": None,
        }
        content = [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "Michael "},
            {"type": "text", "text": "Mann"},
        ]
        made = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "usage": usage}
        return {"type": "succeeded", "message": {**made, "content": content, "stop_reason": "end_turn"} | changes}

    tool = [{"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "Heat"}}]
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    file = written(
        tmp_path / "results.jsonl",
        {"custom_id": calls[1].key, "result": message(stop_reason="max_tokens")},
        {"custom_id": calls[0].key, "result": message()},
        {"custom_id": calls[2].key, "result": message(content=tool, stop_reason="tool_use")},
        {"custom_id": calls[3].key, "result": {"type": "errored", "error": overloaded}},
        {"custom_id": calls[4].key, "result": {"type": "expired"}},
    )
    failed = ((calls[3].key, "errored: Overloaded"), (calls[4].key, "expired"))
    assert import_replies(empty, file) == Imported(3, 0, (), failed)
    assert empty.get(calls[0]) == Reply("Michael Mann", usage=Usage(140, 7, 40, 0), model="claude-sonnet-5")
    cut, tools = empty.get(calls[1]), empty.get(calls[2])
    assert cut is not None and cut.stop == "length"
    assert tools is not None and (tools.tool_calls, tools.stop) == ((ToolCall("t1", "search", {"q": "Heat"}),), "tool")
    assert {waiting.key for waiting, _ in empty.pending()} == {calls[3].key, calls[4].key}
    assert {each.stage for each in empty.recorded()} == {"link"}
    assert import_replies(empty, file) == Imported(0, 3, (), failed)


def test_the_output_of_an_openai_batch_answers_the_calls_that_wait(empty: RecordedReplies, tmp_path: Path) -> None:
    calls = [call(name) for name in "abcd"]
    for each in calls:
        empty.expect(each)

    def line(asked: Call, message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
        usage = {"prompt_tokens": 90, "completion_tokens": 6, "prompt_tokens_details": {"cached_tokens": 64}}
        body = {
            "model": "gpt-5-mini",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": usage,
        }
        response = {"status_code": 200, "request_id": "r", "body": body}
        return {"id": "batch_req_1", "custom_id": asked.key, "response": response, "error": None}

    function = {"id": "t1", "type": "function", "function": {"name": "search", "arguments": '{"q": "Heat"}'}}
    error = {"error": {"code": "rate_limit", "message": "slow down"}}
    file = written(
        tmp_path / "output.jsonl",
        line(calls[0], {"role": "assistant", "content": "Michael Mann", "refusal": None}),
        line(calls[1], {"role": "assistant", "content": None, "tool_calls": [function]}, "tool_calls"),
        line(calls[2], {"role": "assistant", "content": None, "refusal": "I cannot."}),
        {"id": "b", "custom_id": calls[3].key, "response": {"status_code": 429, "body": error}, "error": None},
    )
    assert import_replies(empty, file) == Imported(3, 0, (), ((calls[3].key, "rate_limit: slow down"),))
    assert empty.get(calls[0]) == Reply("Michael Mann", usage=Usage(90, 6, 64), model="gpt-5-mini")
    tools, refused = empty.get(calls[1]), empty.get(calls[2])
    assert tools is not None and tools.tool_calls == (ToolCall("t1", "search", {"q": "Heat"}),)
    assert refused is not None and (refused.text, refused.stop) == ("I cannot.", "refusal")


def test_replies_of_any_program_answer_the_calls_that_wait(empty: RecordedReplies, tmp_path: Path) -> None:
    empty.expect(call("a"), "link")
    empty.expect(call("b"), "link")
    file = written(
        tmp_path / "made.jsonl",
        {"id": call("a").key, "text": "Michael Mann"},
        {"id": call("b").key, "reply": {"text": "Ali", "stop": "length", "usage": {"output_tokens": 1}}},
    )
    assert import_replies(empty, file) == Imported(2, 0, ())
    assert empty.get(call("a")) == Reply("Michael Mann")
    assert empty.get(call("b")) == Reply("Ali", stop="length", usage=Usage(0, 1))
    assert empty.pending() == []
