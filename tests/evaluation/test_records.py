"""Tests of `byokg.evaluation.records`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from byokg.errors import EntityNotFound, RunError
from byokg.evaluation.metrics import Grounding, Retrieved
from byokg.evaluation.records import (
    CONFIG,
    PREDICTIONS,
    TIMINGS,
    TRACE,
    Failure,
    LinkedTopics,
    Prediction,
    line_id,
    parse_prediction,
    read_config,
    read_predictions,
    read_trace,
    read_usage,
    record_answer,
    record_failure,
    reply_keys,
)
from byokg.llm.messages import Call, Message
from byokg.llm.usage import AnsweredCall, QuestionUsage
from byokg.types import (
    Answer,
    AnswerItem,
    AnswerRow,
    Artifacts,
    Consumption,
    EdgeCell,
    EntityId,
    Evidence,
    Linked,
    LinkedEntity,
    LinkedLiteral,
    LinkMatch,
    Mention,
    NodeCell,
    PathEvidence,
    ProposedPath,
    Round,
    RowsEvidence,
    Spending,
    Step,
    Triple,
)
from byokg.types import Path as Walk

# m -bore-> e1 … e25;  e1 -in-> z (since 1999)
M, Z = EntityId("m"), EntityId("z")
ENDS = tuple(EntityId(f"e{number}") for number in range(1, 26))
HOP = Triple(M, "bore", ENDS[0], 4)
BACK = Triple(ENDS[0], "in", Z, 7, {"since": 1999, "share": 0.1234567})
MENTION = Mention("Zürich", 10, 16)


def answer(*evidence: Evidence) -> Answer:
    """Return an answer of one round with this evidence."""
    round_ = Round(
        number=0,
        artifacts=Artifacts(mentions=(MENTION,), paths=(ProposedPath(("bore",), 0.123456789, M),)),
        linked=Linked(
            (LinkedEntity(Z, "Zürich", MENTION, "exact", 1.0, (LinkMatch("exact", "Zürich", 1.0, 1),)),),
            literals=(LinkedLiteral(1999, "year", Mention("1999", 20, 24)),),
        ),
        evidence=evidence,
    )
    items = (AnswerItem("Ann “A” Abt", ENDS[0], 0.9, ("e1",)), AnswerItem("1999", None, 0.5))
    return Answer("q-1", items, (round_,), seconds={"link": 0.25})


def path_evidence(walk: Walk) -> PathEvidence:
    """Return what the metapath `bore` reaches from m, shown by one walk."""
    return PathEvidence("path", 1 / 3, id="e1", source=M, relations=("bore",), ends=ENDS, paths=(walk,))


def test_a_prediction_is_one_line_with_its_fields_in_order() -> None:
    assert record_answer(answer(), 1.5).predictions.decode() == (
        '{"schema":1,"id":"q-1","status":"ok","answers":["Ann “A” Abt","1999"],"answer_ids":["e1",null],'
        '"grounded":[true,false],"citations":[["e1"],[]],"scores":[0.9,0.5],"error":null,"linked":null,'
        '"drafts":[],"retrieved":null,"grounding":{"support":["found","unsupported"],"cited":0,"right":0}}\n'
    )


def test_a_prediction_says_which_of_the_topics_that_had_to_be_found_any_round_linked() -> None:
    lines = record_answer(answer(), 1.5, topics=[Z, M, Z])
    assert b'"linked":{"gold":["z","m"],"found":["z"]},' in lines.predictions
    assert parse_prediction(lines.predictions, "here").linked == LinkedTopics(("z", "m"), ("z",))


def test_a_failed_question_linked_none_of_its_topics() -> None:
    line = record_failure("q-1", ValueError("no"), 0.5, topics=[Z]).predictions
    assert parse_prediction(line, "here").linked == LinkedTopics(("z",), ())


def test_a_prediction_written_before_linking_was_recorded_is_read() -> None:
    line = record_answer(answer(), 1.5, topics=[Z]).predictions
    before = line.replace(b',"linked":{"gold":["z"],"found":["z"]}', b"")
    assert before != line
    assert parse_prediction(before, "here").linked is None


def test_a_prediction_written_before_scores_were_is_read() -> None:
    line = record_answer(answer(), 1.5).predictions
    before = line.replace(b',"scores":[0.9,0.5]', b"")
    assert before != line
    assert parse_prediction(before, "here").scores == ()


def test_a_failed_prediction_names_the_error() -> None:
    assert record_failure("q-1", EntityNotFound("m", "g"), 0.5).predictions.decode() == (
        '{"schema":1,"id":"q-1","status":"failed","answers":[],"answer_ids":[],"grounded":[],"citations":[],"scores":[],'
        '"error":{"type":"EntityNotFound","message":"no entity \'m\' in g; '
        'stores take ids; byokg link finds those of a name"},"linked":null,'
        '"drafts":[],"retrieved":null,"grounding":null}\n'
    )


def test_a_memory_address_is_cut_from_an_error_since_it_differs_between_runs() -> None:
    lines = record_failure("q", TypeError("unhashable <object at 0x7f3a5c01d2e0>, code 0x1F"), 0.0)
    assert b"unhashable <object at 0x\xe2\x80\xa6>, code 0x1F" in lines.predictions


def test_the_trace_shows_artifacts_links_and_evidence() -> None:
    evidence = path_evidence(Walk(Z, (BACK, HOP), (True, True)))
    (round_,) = json.loads(record_answer(answer(evidence), 1.5).trace)["rounds"]
    mention = {"text": "Zürich", "start": 10, "end": 16, "ids": []}
    year = {"text": "1999", "start": 20, "end": 24, "ids": []}
    assert round_ == {
        "number": 0,
        "artifacts": {
            "mentions": [mention],
            "paths": [{"relations": ["bore"], "score": 0.123457, "source": "m", "directed": True}],
            "queries": [],
            "draft_answers": [],
            "bfsql": None,
            "joined": [],
            "finished": False,
        },
        "linked": {
            "entities": [
                {
                    "id": "z",
                    "name": "Zürich",
                    "mention": mention,
                    "method": "exact",
                    "score": 1.0,
                    "matches": [{"method": "exact", "name": "Zürich", "score": 1.0, "rank": 1}],
                    "context": None,
                }
            ],
            "drafts": [],
            "literals": [{"value": 1999, "kind": "year", "mention": year}],
            "values": [],
        },
        "evidence": [
            {
                "kind": "PathEvidence",
                "id": "e1",
                "retriever": "path",
                "round": 0,
                "score": 0.333333,
                "source": "m",
                "relations": ["bore"],
                "ends": [f"e{number}" for number in range(1, 21)],
                "n_ends": 25,
                "paths": [
                    [["e1", "in", "z", 7, True, {"since": 1999, "share": 0.1234567}], ["m", "bore", "e1", 4, True]]
                ],
                "truncated": False,
                "asked": False,
            }
        ],
        "steps": [],
    }


def test_the_trace_shows_what_retrievers_noted_and_the_answers() -> None:
    told = answer()
    step = Step("agentic", {"frontier": ["m"], "scores": [1 / 3]}, {"selected": {"bore": np.float32(0.5)}})
    trace = json.loads(record_answer(replace(told, rounds=(replace(told.rounds[0], steps=(step,)),)), 1.5).trace)
    assert trace["rounds"][0]["steps"] == [
        {"stage": "agentic", "given": {"frontier": ["m"], "scores": [0.333333]}, "got": {"selected": {"bore": 0.5}}}
    ]
    assert trace["answers"] == [
        {"name": "Ann “A” Abt", "id": "e1", "score": 0.9, "citations": ["e1"], "cited": 0, "miscited": []},
        {"name": "1999", "id": None, "score": 0.5, "citations": [], "cited": 0, "miscited": []},
    ]


def test_a_prediction_has_the_rows_of_its_query_without_the_properties_of_nodes() -> None:
    node = NodeCell(M, "Mo", "City", {"population": 3})
    rows = (AnswerRow((node, 1.5)), AnswerRow((None, (float("inf"), {"to": EdgeCell(M, "in", Z)}))))
    line = record_answer(replace(answer(), columns=("c", "n"), rows=rows), 1.0).predictions
    found = parse_prediction(line, "here")
    assert found.columns == ("c", "n")
    edge = {"head": "m", "relation": "in", "tail": "z", "properties": {}}
    assert found.rows == (({"node": "m", "name": "Mo", "type": "City"}, 1.5), (None, ("inf", {"to": edge})))
    assert b'"rows"' not in record_answer(answer(), 1.0).predictions


def test_of_many_rows_the_first_are_written() -> None:
    rows = tuple((number,) for number in range(30))
    item = RowsEvidence("query", 1.0, language="cypher", query="RETURN 1", columns=("n",), rows=rows)
    [written] = json.loads(record_answer(answer(item), 1.5).trace)["rounds"][0]["evidence"]
    assert (len(written["rows"]), written["n_rows"]) == (20, 30)
    assert "unseen" not in written


def test_the_trace_shows_what_each_call_was_for_and_which_evidence_its_prompt_showed(tmp_path: Path) -> None:
    first = Call("p", "m", (Message("user", "Who?"),))
    second = Call("p", "m", (Message("system", "[e9] is how a fact begins"), Message("user", "[e3] a → r → b\n[e1] c")))
    usage = QuestionUsage({}, (AnsweredCall("kg_linker", first), AnsweredCall("answer", second)))
    line = record_answer(answer(), 1.5, usage).trace
    assert json.loads(line)["calls"] == [
        {"stage": "kg_linker", "prompt": first.prompt_digest, "shown": [], "reply": first.key},
        {"stage": "answer", "prompt": second.prompt_digest, "shown": ["e3", "e1"], "reply": second.key},
    ]
    (tmp_path / TRACE).write_bytes(line)
    assert read_trace(tmp_path, "q-1") == json.loads(line)
    with pytest.raises(RunError, match="no question 'q-2'; there are q-1"):
        read_trace(tmp_path, "q-2")


def test_evidence_of_any_kind_is_written_with_all_its_fields() -> None:
    @dataclass(frozen=True)
    class RowEvidence(Evidence):
        rows: tuple[tuple[str, int], ...]
        walk: Walk

    evidence = RowEvidence("query", 0.5, id="e2", round=1, rows=(("Bern", 1191),), walk=Walk(M, (HOP,), (False,)))
    (round_,) = json.loads(record_answer(answer(evidence), 1.5).trace)["rounds"]
    assert round_["evidence"] == [
        {
            "kind": "RowEvidence",
            "id": "e2",
            "retriever": "query",
            "round": 1,
            "score": 0.5,
            "rows": [["Bern", 1191]],
            "walk": [["m", "bore", "e1", 4, False]],
        }
    ]


def test_numbers_of_numpy_are_written_as_numbers() -> None:
    walk = Walk(M, (Triple(M, "bore", ENDS[0], np.int64(4)),), (np.bool_(False),))  # type: ignore[arg-type]
    evidence = replace(path_evidence(walk), score=np.float32(1 / 3))  # type: ignore[arg-type]
    (round_,) = json.loads(record_answer(answer(evidence), 1.5).trace)["rounds"]
    assert round_["evidence"][0]["score"] == 0.333333
    assert round_["evidence"][0]["paths"] == [[["m", "bore", "e1", 4, False]]]


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        record_answer(answer(Evidence("path", float("inf"))), 1.5)
    with pytest.raises(TypeError, match="a set cannot be written to the trace"):
        record_answer(answer(Evidence({"path"}, 0.0)), 1.5)  # type: ignore[arg-type]


def test_what_differs_between_equal_runs_is_in_the_timings_alone() -> None:
    one, other = record_answer(answer(), 1.5), record_answer(answer(), 2.5)
    assert (one.predictions, one.trace) == (other.predictions, other.trace)
    assert one.timings == b'{"schema":1,"id":"q-1","seconds":{"link":0.25,"total":1.5}}\n'
    assert record_failure("q-1", ValueError(), 0.5).timings == b'{"schema":1,"id":"q-1","seconds":{"total":0.5}}\n'


def test_what_language_models_took_is_written_where_any_was_asked(tmp_path: Path) -> None:
    took = {"link": Spending(Consumption(1, 10, 2, seconds=0.5, usd=0.25), failed=1, retries=3)}
    calls = [AnsweredCall("link", Call("p", "m", (Message("user", text),))) for text in "abc"]
    counted = record_answer(answer(), 1.5, QuestionUsage(took, tuple(calls[:2])))
    reported = record_answer(replace(answer(), usage=took), 1.5)
    assert reported.timings == counted.timings
    assert json.loads(counted.timings)["usage"]["link"]["asked"] == {
        "calls": 1,
        "input_tokens": 10,
        "output_tokens": 2,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "seconds": 0.5,
        "usd": 0.25,
        "unpriced": 0,
    }
    lost = record_failure("q-2", ValueError(), 0.5, QuestionUsage(took, tuple(calls[2:])))
    plain = record_answer(answer(), 1.5)
    assert b"calls" not in plain.trace and b"usage" not in plain.timings
    (tmp_path / TIMINGS).write_bytes(counted.timings + lost.timings + plain.timings)
    (tmp_path / TRACE).write_bytes(counted.trace + lost.trace + plain.trace)
    assert read_usage(tmp_path) == [took, took, {}]
    assert reply_keys(tmp_path) == {one.call.key for one in calls}


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"usage": {"link": {}}}', b'{"usage": {"link": {"asked": {"x": 1}}}}', b"null"]
)
def test_a_broken_timing_is_named(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(RunError, match=rf"no {TIMINGS} in .*; give the folder that an evaluation wrote"):
        read_usage(tmp_path)
    (tmp_path / TIMINGS).write_bytes(record_answer(answer(), 1.5).timings + line + b"\n")
    with pytest.raises(RunError, match=rf"{TIMINGS}:2: is no record of a run"):
        read_usage(tmp_path)


def test_a_prediction_reads_back(tmp_path: Path) -> None:
    lines = [record_answer(answer(), 1.5), record_failure("q-2", ValueError("no"), 0.5)]
    (tmp_path / PREDICTIONS).write_bytes(b"".join(line.predictions for line in lines))
    assert list(read_predictions(tmp_path)) == [
        Prediction(
            "q-1",
            "ok",
            ("Ann “A” Abt", "1999"),
            ("e1", None),
            (True, False),
            (("e1",), ()),
            (0.9, 0.5),
            None,
            grounding=Grounding(("found", "unsupported"), 0, 0),
        ),
        Prediction("q-2", "failed", error=Failure("ValueError", "no")),
    ]


@pytest.mark.parametrize("id", ["q", 'say "hi"', "back\\slash", "Zürich", "tab\t", "half \ud83d", "new\nline"])
def test_the_question_of_a_whole_line_is_known(id: str) -> None:
    lines = record_failure(id, ValueError("no"), 0.0)
    for line in (lines.predictions, lines.trace, lines.timings):
        assert line_id(line, "here") == id
        assert line.count(b"\n") == 1


def test_a_torn_line_is_no_record() -> None:
    line = record_answer(answer(), 1.5).predictions
    assert all(line_id(line[:cut], "here") is None for cut in range(len(line)))
    assert line_id(b"\0" * 40 + b"\n", "here") is None
    assert line_id(line[:60] + b"\0" * 20 + line[80:], "here") is None


def test_lines_of_a_newer_version_are_refused_with_their_place() -> None:
    line = record_answer(answer(), 1.5).predictions.replace(b'"schema":1', b'"schema":2')
    with pytest.raises(RunError, match="here:3: schema 2, this byokg reads up to 1; upgrade"):
        line_id(line, "here:3")
    with pytest.raises(RunError, match="here:3: schema 2, this byokg reads up to 1; upgrade"):
        parse_prediction(line, "here:3")


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b'{"schema":1,"id":"q"}', b"\xff"])
def test_a_line_that_is_no_prediction_is_refused_with_its_place(line: bytes) -> None:
    with pytest.raises(RunError, match="here:3: is not a prediction"):
        parse_prediction(line, "here:3")


def test_files_that_are_missing_or_broken_are_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no predictions\.jsonl in"):
        list(read_predictions(tmp_path))
    with pytest.raises(RunError, match=r"no config\.yaml in"):
        read_config(tmp_path)
    for text in ("a: [", "- a", ""):
        (tmp_path / CONFIG).write_text(text)
        with pytest.raises(RunError, match=r"config\.yaml: "):
            read_config(tmp_path)


def test_what_the_evidence_holds_and_the_first_drafts_are_recorded_and_read_back() -> None:
    drafted = replace(
        answer(),
        rounds=(
            Round(0, Artifacts(draft_answers=("Bern", "Basel")), Linked(), ()),
            Round(1, Artifacts(draft_answers=("Genf",)), Linked(), ()),
        ),
    )
    found = Retrieved((1, None), (2, 3), 120)
    line = record_answer(drafted, 1.5, retrieved=found).predictions
    assert b'"drafts":["Bern","Basel"],"retrieved":{"ranks":[1,null],"support":[2,3],"tokens":120,"shown":null,' in line
    read = parse_prediction(line, "here")
    assert (read.drafts, read.retrieved) == (("Bern", "Basel"), found)
