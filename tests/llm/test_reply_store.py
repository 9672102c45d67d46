"""Tests of `byokg.llm.reply_store`."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import ReplyStoreError
from byokg.llm.messages import (
    Call,
    Message,
    Reply,
    ReplyStore,
    ReplyToken,
    ToolCall,
    Usage,
    call_record,
    read_call,
    read_reply,
    reply_record,
)
from byokg.llm.reply_store import Mode, RecordedReplies

ROOT = Path(__file__).resolve().parents[2]

SYSTEM = "Use the schema below. " * 20
"""Long enough to be kept apart."""


def call(question: str = "Who directed Heat?", **changes: object) -> Call:
    """Return a call about a question."""
    made = Call(
        "anthropic",
        "claude-sonnet-5",
        (Message("system", SYSTEM, cache=True), Message("user", question)),
        {"temperature": 0.0, "max_tokens": 1000},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


TOOLS = Call(
    "openai",
    "gpt-5",
    (
        Message("user", "Look it up."),
        Message("assistant", "", (ToolCall("call_9", "search", {"q": "Heat", "k": 3, "deep": [None, True, 1.5]}),)),
        Message("tool", "Michael Mann", call_id="call_9"),
    ),
)

REPLY = Reply("Michael Mann", usage=Usage(500, 4, 300, 100), model="claude-sonnet-5-20260630", seconds=0.5, retries=1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where the store lies."""
    return tmp_path / "deep" / "replies.sqlite"


@pytest.fixture
def store(file: Path) -> Iterator[RecordedReplies]:
    """Return an empty store."""
    with RecordedReplies(file) as store:
        yield store


def test_a_reply_comes_back_as_it_was_recorded(store: RecordedReplies, file: Path) -> None:
    kept: ReplyStore = store
    assert kept.get(call()) is None
    kept.put(call(), REPLY)
    assert kept.get(call()) == REPLY
    with RecordedReplies(file, "replay") as other:
        assert other.get(call()) == REPLY
        assert other.get(call("Who starred in Heat?")) is None
        assert len(other) == 1


@pytest.mark.parametrize(
    "other",
    [
        call(provider="bedrock"),
        call(model="claude-sonnet-5-5"),
        call(sample=1),
        call(parameters={"temperature": 0.5, "max_tokens": 1000}),
        call(parameters={"temperature": 0.0}),
        call("Who directed Heat? "),
        call(messages=(Message("system", f"{SYSTEM}!"), Message("user", "Who directed Heat?"))),
    ],
)
def test_whatever_decides_a_reply_makes_another_call(store: RecordedReplies, other: Call) -> None:
    store.put(call(), REPLY)
    assert store.get(other) is None
    assert store.nearest(other)


def test_marks_for_prompt_caching_and_ids_of_tool_calls_change_nothing(store: RecordedReplies) -> None:
    store.put(call(), REPLY)
    unmarked = call(messages=tuple(replace(message, cache=False) for message in call().messages))
    assert store.get(unmarked) == REPLY
    store.put(TOOLS, REPLY)
    user, assistant, tool = TOOLS.messages
    renamed = replace(
        TOOLS,
        messages=(
            user,
            replace(assistant, tool_calls=(replace(assistant.tool_calls[0], id="x"),)),
            replace(tool, call_id="x"),
        ),
    )
    assert store.get(renamed) == REPLY


def test_the_first_reply_stays(store: RecordedReplies) -> None:
    store.put(call(), REPLY)
    store.put(call(), Reply("Somebody else"))
    assert store.get(call()) == REPLY


def test_record_asks_anew_but_once_in_a_process(store: RecordedReplies, file: Path) -> None:
    store.put(call(), REPLY)
    with RecordedReplies(file, "record") as recording:
        assert recording.get(call()) is None
        recording.put(call(), Reply("second"))
        assert recording.get(call()) == Reply("second")
        recording.put(call(), Reply("third"))
        assert recording.get(call()) == Reply("second")
    assert store.get(call()) == Reply("second")


def test_off_touches_nothing(tmp_path: Path) -> None:
    with RecordedReplies(tmp_path / "none" / "replies.sqlite", "off") as off:
        off.put(call(), REPLY)
        assert off.get(call()) is None and not off.replay_only
    assert list(tmp_path.iterdir()) == []


def test_replay_writes_nothing_and_needs_a_file(store: RecordedReplies, file: Path, tmp_path: Path) -> None:
    store.put(call(), REPLY)
    with RecordedReplies(file, "replay") as replaying:
        assert replaying.replay_only
        with pytest.raises(ReplyStoreError, match="open for replaying only; use mode auto"):
            replaying.put(call("another"), REPLY)
    with pytest.raises(ReplyStoreError, match=r"none\.sqlite: does not exist, so nothing can be replayed"):
        RecordedReplies(tmp_path / "none.sqlite", "replay")
    assert not (tmp_path / "none.sqlite").exists()


def test_a_file_in_a_folder_that_takes_no_writes_can_be_replayed(store: RecordedReplies, file: Path) -> None:
    store.put(call(), REPLY)
    store.close()
    file.parent.chmod(0o555)
    try:
        with RecordedReplies(file, "replay") as replaying:
            assert replaying.get(call()) == REPLY
    finally:
        file.parent.chmod(0o755)


texts = st.text(st.characters(codec=None, exclude_categories=[]), max_size=300)
tool_calls = st.lists(
    st.builds(
        ToolCall, st.text(), st.text(), st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | texts)
    ),
    max_size=2,
).map(tuple)


@given(
    st.lists(st.builds(Message, st.sampled_from(["system", "user", "assistant"]), texts, tool_calls), max_size=3).map(
        tuple
    ),
    st.builds(
        Reply,
        texts,
        tool_calls,
        st.sampled_from(["end", "length", "refusal", "tool", "other"]),
        st.builds(Usage, *[st.integers(0, 10**9)] * 4),
        texts,
        st.floats(0, 1e6),
        st.integers(0, 9),
    ),
)
@settings(max_examples=25)
def test_any_text_survives(store: RecordedReplies, messages: tuple[Message, ...], reply: Reply) -> None:
    asked = Call("p", "m", messages)
    assert read_call(call_record(asked)) == asked
    assert read_reply(reply_record(reply)) == reply
    store.put(asked, reply, "stage")
    with store._writing() as connection:
        connection.execute("UPDATE replies SET recorded = 7 WHERE key = ?", (bytes.fromhex(asked.key),))
    first = store.get(asked)
    [found] = store.recorded([asked.key])
    # Another example may have come first that differs in ids of tool calls only.
    assert (found.call.key, found.reply, found.stage, found.recorded) == (asked.key, first, "stage", 7)
    assert [message.text for message in found.call.messages] == [message.text for message in messages]


def test_names_may_hold_lone_surrogates(store: RecordedReplies) -> None:
    asked = call(provider="p\ud800", model="m\udfff\0", parameters={"stop": ["\ud800"]})
    store.expect(asked, "stage \ud800")
    assert store.pending() == [(asked, "stage \ud800")]
    store.put(asked, replace(REPLY, model="\ud800"), "stage \ud800")
    assert store.get(asked) == replace(REPLY, model="\ud800")
    assert [(each.call, each.stage) for each in store.recorded()] == [(asked, "stage \ud800")]
    [count] = store.counts()
    assert (count.provider, count.model, count.stage) == ("p\ud800", "m\udfff\0", "stage \ud800")
    assert store.prune(models=["m\udfff\0"]) == 1


def test_texts_that_prompts_share_are_kept_once(store: RecordedReplies, file: Path) -> None:
    for number in range(100):
        store.put(call(f"question {number}"), REPLY)
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT count(*) FROM texts").fetchone() == (1,)
    assert sum(1 for each in store.recorded() if each.call.messages[0].text == SYSTEM) == 100


def test_what_is_recorded_is_listed_by_key_and_counted_by_stage(store: RecordedReplies) -> None:
    store.put(call("a"), REPLY, "link")
    store.put(call("b"), REPLY, "link")
    store.put(call("c"), REPLY, "answer")
    store.put(TOOLS, Reply("ok"))
    keys = [each.call.key for each in store.recorded()]
    assert keys == sorted(keys) and len(keys) == 4
    assert [each.call for each in store.recorded([TOOLS.key])] == [TOOLS]
    found = [(count.provider, count.model, count.stage, count.replies, count.usage) for count in store.counts()]
    assert found == [
        ("anthropic", "claude-sonnet-5", "answer", 1, Usage(500, 4, 300, 100)),
        ("anthropic", "claude-sonnet-5", "link", 2, Usage(1000, 8, 600, 200)),
        ("openai", "gpt-5", "", 1, Usage()),
    ]
    assert store.counts()[1].characters == 2 * len("Michael Mann")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            call(messages=(Message("system", f"{SYSTEM[:40]}X{SYSTEM[41:]}"), call().messages[1])),
            "prompt text changed at character 41",
        ),
        (call(model="claude-opus-5"), "model is claude-opus-5, recorded was claude-sonnet-5"),
        (call(parameters={"temperature": 0.5, "max_tokens": 1000}), "temperature is 0.5, recorded was 0.0"),
        (call(sample=2), "sample is 2, recorded was 0"),
        (
            call("Who directed Ali?"),
            "text of the user message changed at character 14: ' directed Ali?', recorded was ' directed Heat?'",
        ),
        (call(messages=call().messages[1:]), "1 messages, recorded were 2; message 1 is of role user"),
    ],
)
def test_a_miss_is_explained_by_the_nearest_recorded_call(store: RecordedReplies, asked: Call, said: str) -> None:
    assert store.nearest(asked) == ""
    store.put(call(), REPLY)
    store.put(Call("openai", "gpt-5", (Message("user", "Hello"),)), REPLY)
    assert store.nearest(asked).startswith(said)


def test_pruning_removes_what_fulfils_every_condition_and_the_texts_nobody_uses(
    store: RecordedReplies, file: Path
) -> None:
    store.put(call("a"), REPLY)
    store.put(call("b"), REPLY)
    store.put(call("c", model="claude-haiku-5-5"), REPLY)
    store.put(TOOLS, REPLY)
    with pytest.raises(ValueError, match="condition"):
        store.prune()
    assert store.prune(before=0.0) == 0
    assert store.prune(models=["claude-sonnet-5"], keep=[call("a").key], dry_run=True) == 1
    assert len(store) == 4
    assert store.prune(models=["claude-sonnet-5"], keep=[call("a").key]) == 1
    assert [each is not None for each in map(store.get, (call("a"), call("b"), TOOLS))] == [True, False, True]
    assert store.prune(keep=[TOOLS.key]) == 2
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT count(*) FROM texts").fetchone() == (0,)
    assert [each.call for each in store.recorded()] == [TOOLS]
    assert store.prune(before=1e12) == 1


def test_calls_that_wait_for_a_reply_are_remembered_until_it_comes(store: RecordedReplies, file: Path) -> None:
    store.expect(call("b"), "link")
    store.expect(call("b"), "link")
    store.expect(call("a"), "answer")
    with RecordedReplies(file) as other:
        assert sorted(other.pending(), key=repr) == sorted([(call("a"), "answer"), (call("b"), "link")], key=repr)
        other.put(call("a"), REPLY)
    assert store.pending() == [(call("b"), "link")]
    store.expect(call("a"), "answer")
    assert store.pending() == [(call("b"), "link")]
    store.put(call("c"), REPLY)
    assert store.prune(before=1e12) == 2
    assert store.pending() == [(call("b"), "link")]  # its prompt's text is still used


def test_many_threads_read_and_write(store: RecordedReplies) -> None:
    def work(number: int) -> Reply | None:
        store.put(call(f"question {number % 50}"), replace(REPLY, text=f"answer {number % 50}"))
        return store.get(call(f"question {number % 50}"))

    with ThreadPoolExecutor(32) as pool:
        found = list(pool.map(work, range(400)))
    assert [reply.text for reply in found if reply] == [f"answer {number % 50}" for number in range(400)]
    assert len(store) == 50


WRITER = """
import sys
from byokg.llm.messages import Call, Message, Reply
from byokg.llm.reply_store import RecordedReplies
store = RecordedReplies(sys.argv[1])
print("ready", flush=True)
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    store.put(Call("p", "m", (Message("user", f"question {number}"),)), Reply(f"answer {number}"))
    print(number, flush=True)
"""


def writer(file: Path, first: int, last: int) -> subprocess.Popen[str]:
    """Start a process that records replies and says which it did."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(file), str(first), str(last)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_processes_that_start_at_the_same_time_share_one_new_file(file: Path) -> None:
    processes = [writer(file, 20 * start, 20 * start + 40) for start in range(4)]  # half of each is the next one's, too
    assert [process.wait() for process in processes] == [0] * 4
    for process in processes:
        assert process.stdout is not None
        process.stdout.close()
    with RecordedReplies(file, "replay") as store:
        assert len(store) == 100
        assert all(store.get(each.call) == each.reply for each in store.recorded())


def test_what_was_recorded_survives_a_kill(file: Path) -> None:
    process = writer(file, 0, 10**9)
    assert process.stdout is not None
    said = [next(process.stdout) for _ in range(30)]
    process.send_signal(signal.SIGKILL)
    said += process.stdout.readlines()
    process.wait()
    process.stdout.close()
    recorded = [int(line) for line in said if line.strip().isdigit()]
    with RecordedReplies(file) as store:
        for number in recorded:
            assert store.get(Call("p", "m", (Message("user", f"question {number}"),))) == Reply(f"answer {number}")
        store.put(call(), REPLY)


def test_a_store_works_on_in_a_forked_process(store: RecordedReplies) -> None:
    store.put(call("before"), REPLY)
    child = os.fork()
    if child == 0:
        try:
            store.put(call("child"), REPLY)
            os._exit(0 if store.get(call("before")) == REPLY else 1)
        except BaseException:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert store.get(call("child")) == REPLY


def test_a_write_that_fails_harms_nobody_else(store: RecordedReplies) -> None:
    poison = replace(REPLY, tool_calls=(ToolCall("1", "f", {"x": object()}),))  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        store.put(call("bad"), poison)
    started = threading.Barrier(8)

    def work(number: int) -> str:
        started.wait()
        try:
            store.put(call(f"q{number}"), poison if number % 4 == 0 else REPLY)
        except TypeError:
            return "refused"
        return "recorded"

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == ["refused" if number % 4 == 0 else "recorded" for number in range(8)]
    assert len(store) == 6


def test_other_files_are_refused_and_left_as_they_are(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to be taken for a header of one" * 20)
    with pytest.raises(
        ReplyStoreError, match=r"notes\.txt: recorded replies cannot be used \(file is not a database\)"
    ):
        RecordedReplies(text)
    foreign = tmp_path / "other.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE t (x)")
    modes: tuple[Mode, ...] = ("auto", "replay")
    for mode in modes:
        with pytest.raises(ReplyStoreError, match="database of something else"):
            RecordedReplies(foreign, mode)
    newer = tmp_path / "newer.sqlite"
    RecordedReplies(newer).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ReplyStoreError, match="has version 99, this byokg reads up to 2; upgrade"):
        RecordedReplies(newer)
    with pytest.raises(ReplyStoreError):
        RecordedReplies(tmp_path)


def test_tokens_are_kept_and_a_file_of_version_1_is_read_without(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    tokens = (ReplyToken(" Tokyo", -0.25, {" Tokyo": -0.25, " Osaka": -4.5}), ReplyToken("\n", -9999.0))
    with RecordedReplies(path) as store:
        store.put(call(), Reply(" Tokyo\n", tokens=tokens))
        store.put(call("other"), Reply("other"))
        assert store.get(call()) == Reply(" Tokyo\n", tokens=tokens)
        exported = next(each for each in store.recorded() if each.reply.tokens)
    assert read_reply(json.loads(json.dumps(reply_record(exported.reply)))) == exported.reply
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE replies DROP COLUMN tokens")
        connection.execute("PRAGMA user_version = 1")
    modes: tuple[Mode, ...] = ("replay", "auto")
    for mode in modes:
        with RecordedReplies(path, mode) as store:
            assert store.get(call()) == Reply(" Tokyo\n") and len(list(store.recorded())) == 2
            assert store.nearest(call("third"))
    with RecordedReplies(path) as store:
        store.put(call("third"), Reply("x", tokens=tokens))
        assert store.get(call("third")) == Reply("x", tokens=tokens)


def test_a_closed_store_says_so(store: RecordedReplies) -> None:
    store.close()
    store.close()
    with pytest.raises(ReplyStoreError, match="is closed, or off"):
        store.get(call())


def test_the_key_of_a_call_never_changes() -> None:
    # Replies that others published are found by these keys. A change here makes them all misses: raise KEY_VERSION.
    assert call().key == "818210da4dea2f81b6598fb36ab39935109fbee1380e3f2336a89cc0d6b3265b"
    assert TOOLS.key == "0a4682a3421840ab1952b6c57e6231ca4bcb5a1b31db9c94b50d42b5bfd59b49"
