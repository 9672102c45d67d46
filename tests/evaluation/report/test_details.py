"""Tests of `byokg.evaluation.report.page`: shared texts, and what can be opened of a question."""

from __future__ import annotations

import base64
import json
import shutil
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.errors import RunError
from byokg.evaluation.report.page import MARK, SHORT, Blocks, Details, Texts, packed, read_details
from byokg.evaluation.report.view import asked_by, read_reported
from byokg.evaluation.run_folder import Run
from byokg.graph.importers.choose import build_graph
from byokg.llm.messages import Call, Message, Reply, Usage
from byokg.llm.reply_store import RecordedReplies


def unpacked(text: str) -> Any:
    """Read what `packed` wrote."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


def lines(texts: Texts) -> list[str]:
    """Return all lines that are kept, by number."""
    texts.blocks.close()
    return [line for block in texts.blocks.packed for line in unpacked(block)]


def restored(value: Any, kept: list[str]) -> Any:
    """Put texts together again, as the page does."""
    if isinstance(value, str):
        if value.startswith(MARK):
            return "\n".join(kept[int(number, 36)] for number in value[1:].split(","))
        return value
    if isinstance(value, dict):
        return {name: restored(entry, kept) for name, entry in value.items()}
    return [restored(entry, kept) for entry in value] if isinstance(value, list) else value


def test_a_line_that_many_texts_share_is_kept_once() -> None:
    texts = Texts()
    shared = "You answer questions from facts that were retrieved."
    first, second = texts.shared([f"{shared}\nWho directed Heat?", f"{shared}\nWho wrote Ran?"])
    assert (first, second) == (f"{MARK}0,1", f"{MARK}0,2")
    assert lines(texts) == [shared, "Who directed Heat?", "Who wrote Ran?"]


def test_short_texts_stay_where_they_are() -> None:
    texts = Texts()
    value = {"name": "Heat", "year": 1995, "rest": [None, True, 0.5]}
    assert texts.shared(value) == value
    assert lines(texts) == []


def test_a_short_text_that_looks_like_a_reference_is_kept_apart() -> None:
    texts = Texts()
    assert texts.shared(f"{MARK}7") == f"{MARK}0"
    assert lines(texts) == [f"{MARK}7"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text() | st.text(min_size=SHORT, max_size=3 * SHORT),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_every_value_is_put_together_again(value: Any) -> None:
    texts = Texts()
    shared = unpacked(packed(texts.shared(value)))
    assert restored(shared, lines(texts)) == value


def test_half_a_character_survives_and_nothing_of_html_is_left() -> None:
    text = packed(["</script>", "\ud800", "<!--"])
    assert unpacked(text) == ["</script>", "\ud800", "<!--"]
    assert not set(text) & set("<>&'\"")


def test_blocks_say_where_they_start() -> None:
    blocks = Blocks()
    values = [str(number) * 100_000 for number in range(5)]
    assert [blocks.add(value) for value in values] == [0, 1, 2, 3, 4]
    blocks.close()
    assert blocks.starts == [0, 2, 4]
    assert [unpacked(block) for block in blocks.packed] == [values[:2], values[2:4], values[4:]]


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
    assert base["answers"] == [
        {"name": "Michael Mann", "id": "p1", "score": 1.0, "citations": ["e1"], "support": "found", "right": True}
    ]
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


def test_a_run_without_traces_is_refused(runs: list[Run], tmp_path: Path) -> None:
    without = replace(runs[0], folder=tmp_path)
    with pytest.raises(RunError, match=r"no trace\.jsonl"):
        read_details([without], asked_by([without]))


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
