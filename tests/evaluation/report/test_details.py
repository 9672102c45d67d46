"""Tests of `byokg.evaluation.report.details`: what can be opened, and the names in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from byokg.errors import RunError
from byokg.evaluation.report.details import Details, read_details
from byokg.evaluation.report.summary import asked_by, read_reported
from byokg.evaluation.run_folder import Run
from byokg.graph.importers.choose import build_graph
from byokg.llm.messages import Call, Message, Reply, Usage
from byokg.llm.replies import RecordedReplies
from tests.evaluation.report.test_texts import restored, unpacked

CALL = Call("scripted", "script", (Message("system", "Answer from facts."), Message("user", "Who?\n\nWhere?" * 9)))


def values(details: Details, kind: str) -> list[Any]:
    """Return all values of a kind, texts put together."""
    kept = [line for block in details.texts.packed for line in unpacked(block)]
    return [restored(value, kept) for block in getattr(details, kind).packed for value in unpacked(block)]


def questions(runs: Sequence[Run], **options: Any) -> list[Any]:
    """Return the records of the runs' questions."""
    return values(read_details(runs, asked_by(runs), **options), "questions")


def test_a_question_has_gold_answers_and_each_runs_trace(runs: list[Run]) -> None:
    first, second, third, _, fifth = questions(runs)
    assert (first["question"], first["gold"]) == ("Who directed Heat?", ["Michael Mann"])
    base, other = first["runs"]
    assert base["answers"] == [{"name": "Michael Mann", "id": "p1", "score": 1.0, "citations": ["e1"], "right": True}]
    assert (base["found"], other["found"], other["answers"]) == ([True], [False], [])
    assert [item["kind"] for item in base["rounds"][0]["evidence"]] == [
        "PathEvidence", "PathEvidence", "TripleEvidence", "NodeEvidence",
    ]  # fmt: skip
    assert second["runs"][0]["found"] == [True, False]
    assert third["runs"][0]["answers"][0]["right"] is False
    assert fifth["runs"][0]["error"]["type"] == "GraphNotFound"


def test_nodes_are_named_by_what_the_trace_says_of_them(runs: list[Run]) -> None:
    # f1 was linked, p1 is an answer, p2 a node and a cell; of f2 nothing is said.
    assert questions(runs)[0]["names"] == {"p1": "Michael Mann", "f1": "Heat", "p2": "Al Pacino"}


def test_a_graph_names_all_nodes(runs: list[Run], tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,name\nf1,Heat\nf2,Ali\np1,Michael Mann\np2,Al Pacino\n", "utf-8")
    (tmp_path / "edges.csv").write_text("head,relation,tail\nf1,directed_by,p1\nf2,directed_by,p1\n", "utf-8")
    store = build_graph(tmp_path, tmp_path / "graph")
    assert questions(runs, store=store)[0]["names"]["f2"] == "Ali"


def with_trace(folder: Path, out: Path, before: bytes, after: bytes) -> list[Run]:
    """Return a copy of a run whose traces say something else."""
    shutil.copytree(folder, out)
    trace = out / "trace.jsonl"
    assert before in trace.read_bytes()
    trace.write_bytes(trace.read_bytes().replace(before, after, 1))
    return read_reported([out])


def test_prompts_and_replies_are_found_by_their_keys(folders: tuple[Path, Path], tmp_path: Path) -> None:
    calls = [{"stage": "answer", "shown": ["e1"], "reply": key} for key in (CALL.key, "0" * 64)]
    added = f'"calls":{json.dumps(calls)},"answers":'.encode()
    runs = with_trace(folders[0], tmp_path / "run", b'"answers":', added)
    with RecordedReplies(tmp_path / "replies.sqlite") as replies:
        replies.put(CALL, Reply("Michael Mann", usage=Usage(9, 2), seconds=0.5), "answer")
        details = read_details(runs, asked_by(runs), replies=replies)
    [call] = values(details, "calls")
    assert (call["model"], call["reply"], call["usage"]["input_tokens"]) == ("script", "Michael Mann", 9)
    assert call["messages"][1] == {"role": "user", "text": "Who?\n\nWhere?" * 9}
    its = values(details, "questions")[0]["runs"][0]
    assert its["calls"] == [
        {"stage": "answer", "shown": ["e1"], "call": 0},
        {"stage": "answer", "shown": ["e1"], "call": None},
    ]
    assert its["asked"] is True
    without = questions(runs)[0]["runs"][0]
    assert (without["asked"], [call["call"] for call in without["calls"]]) == (False, [None, None])


def test_a_trace_that_is_none_is_refused(folders: tuple[Path, Path], tmp_path: Path) -> None:
    runs = with_trace(folders[0], tmp_path / "run", b'"source":"f1"', b'"sauce":"f1"')
    with pytest.raises(RunError, match=r"the trace of question 'q1' in .* is no record of a run"):
        questions(runs)


def test_what_a_later_version_records_is_kept(folders: tuple[Path, Path], tmp_path: Path) -> None:
    rumour = b'"kind":"Rumour"'
    its = questions(with_trace(folders[0], tmp_path / "kind", b'"kind":"Feedback"', rumour))[0]["runs"][0]
    assert its["rounds"][1]["evidence"][1]["kind"] == "Rumour"
    weather = b'"weather":"fine","answers":'
    its = questions(with_trace(folders[0], tmp_path / "field", b'"answers":', weather))[0]["runs"][0]
    assert its["rest"] == {"weather": "fine"}
