"""Tests of `byokg cache`."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from byokg.cli.language_model import replies_file
from byokg.evaluation.records import TRACE, record_answer
from byokg.llm.messages import Call, Message, Reply, Usage
from byokg.llm.reply_store import RecordedReplies
from byokg.llm.usage import AnsweredCall, QuestionUsage
from byokg.types import Answer, Spending
from tests.cli.conftest import Run

REPLY = Reply("Michael Mann", usage=Usage(1200, 4, 1000))


def call(text: str, model: str = "claude-sonnet-5") -> Call:
    """Return a call."""
    return Call("anthropic", model, (Message("user", text),))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a file with three replies, where the command looks for it."""
    with RecordedReplies(replies_file()) as replies:
        replies.put(call("a"), REPLY, "link")
        replies.put(call("b"), REPLY, "answer")
        replies.put(call("c", "claude-haiku-5-5"), REPLY, "answer")
        replies.expect(call("d"))
    assert replies_file() == tmp_path / "cache" / "byokg" / "replies.sqlite"
    return replies_file()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run folder whose one question used the reply to `a`."""
    folder = tmp_path / "run"
    folder.mkdir()
    usage = QuestionUsage({"link": Spending()}, (AnsweredCall("link", call("a")),))
    (folder / TRACE).write_bytes(record_answer(Answer("q1", (), ()), 0.1, usage).trace)
    return folder


def test_what_is_recorded_is_counted(byokg: Run, store: Path) -> None:
    shown = byokg("cache", "stats")
    assert shown.code == 0
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert "anthropic claude-haiku-5-5 answer 1 1,200 1,000 4" in lines
    assert "anthropic claude-sonnet-5 link 1 1,200 1,000 4" in lines
    assert lines[-2].startswith(f"3 replies in {store} (0.")
    assert lines[-1] == "pending: 1 more; take them in with: byokg cache import FILE"
    record = json.loads(byokg("cache", "stats", "--json").out)
    assert (record["replies"], record["pending"], len(record["counts"])) == (3, 1, 3)


def test_replies_travel_from_one_file_to_another(byokg: Run, store: Path, run: Path, tmp_path: Path) -> None:
    assert byokg("cache", "export", tmp_path / "all.jsonl").out == f"exported 3 replies to {tmp_path / 'all.jsonl'}\n"
    assert byokg("cache", "export", tmp_path / "run.jsonl.gz", "--run", run).out.startswith("exported 1 reply to")
    other = ("--store", tmp_path / "deep" / "other.sqlite")
    assert byokg("cache", "import", tmp_path / "run.jsonl.gz", *other).out.endswith("run.jsonl.gz: 1 new, 0 known\n")
    assert byokg("cache", "import", tmp_path / "all.jsonl", *other).out.endswith("all.jsonl: 2 new, 1 known\n")
    assert json.loads(byokg("cache", "stats", "--json", *other).out)["replies"] == 3


def test_conflicts_and_failures_of_an_import_are_listed(byokg: Run, store: Path, tmp_path: Path) -> None:
    byokg("cache", "export", tmp_path / "all.jsonl")
    other = tmp_path / "other.sqlite"
    with RecordedReplies(other) as replies:
        replies.put(call("a"), Reply("mine"))
    shown = byokg("cache", "import", tmp_path / "all.jsonl", "--store", other).out
    assert "2 new, 0 known, 1 there with another reply, kept as they were\n" in shown
    assert f"another reply: {call('a').key}\n" in shown
    assert "replaced" in byokg("cache", "import", tmp_path / "all.jsonl", "--store", other, "--overwrite").out
    with RecordedReplies(other, "replay") as replies:
        assert replies.get(call("a")) == REPLY
    batch = tmp_path / "batch.jsonl"
    batch.write_text(json.dumps({"custom_id": call("d").key, "result": {"type": "expired"}}))
    shown = byokg("cache", "import", batch).out
    assert "0 new, 0 known, 1 without a reply\n" in shown and "expired" in shown
    assert shown.endswith("pending: 1 more\n")


def test_replies_are_removed_by_model_age_and_use(byokg: Run, store: Path, run: Path) -> None:
    assert byokg("cache", "prune", "--older-than", "1h").out.startswith("removed 0 replies")
    assert byokg("cache", "prune", "--model", "claude-haiku-5-5", "--dry-run").out == "1 reply would go\n"
    assert byokg("cache", "prune", "--model", "claude-haiku-5-5").out.startswith("removed 1 reply (")
    assert byokg("cache", "prune", "--not-used-by", run).out.startswith("removed 1 reply (")
    with RecordedReplies(store, "replay") as replies:
        assert [each.call for each in replies.recorded()] == [call("a")]
    with sqlite3.connect(store) as file:
        file.execute("UPDATE replies SET recorded = recorded - 90 * 86400")
    assert byokg("cache", "prune", "--older-than", "13w").out.startswith("removed 0 replies")
    assert byokg("cache", "prune", "--older-than", "30d").out.startswith("removed 1 reply")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("stats", "--store", "none.sqlite"), "no recorded replies in 'none.sqlite'; name their file with --store"),
        (("stats", "--store", "notes.txt"), "ReplyStoreError: notes.txt"),
        (("prune",), "nothing says what to remove"),
        (("prune", "--older-than", "soon"), "--older-than soon is no age; write hours, days or weeks"),
        (("export", "x.jsonl", "--run", "none"), "no trace.jsonl in 'none'"),
        (("import", "none.jsonl"), "none.jsonl: cannot be read"),
        (("import", "notes.txt"), "notes.txt:1: is no reply"),
    ],
)
def test_mistakes_are_named_in_one_line(byokg: Run, store: Path, words: tuple[str, ...], message: str) -> None:
    Path("notes.txt").write_text("nothing of that kind, at some length\n" * 50)
    failed = byokg("cache", *words)
    assert failed.code == 2 and failed.out == ""
    assert message in failed.err and failed.err.count("\n") == 1
    assert not Path("none.sqlite").exists()


def test_relative_cache_folders_are_ignored() -> None:
    assert replies_file({"XDG_CACHE_HOME": "here"}) == Path.home() / ".cache" / "byokg" / "replies.sqlite"
