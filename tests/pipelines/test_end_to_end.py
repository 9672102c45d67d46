"""All parts together over atlas: ArcadeDB runs the queries, and a script plays a good language model and a bad one.

`atlas/trace.jsonl` and `atlas/predictions.jsonl` show what a run records. After a change that is meant, write them anew
with BYOKG_WRITE_SNAPSHOTS=1 and read the difference before committing it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from byokg.pipelines.byokg import Rounds
from byokg.pipelines.loop import ENDED
from byokg.types import Answer, Evidence, Feedback, PathEvidence, Question, RowsEvidence
from tests.pipelines.atlas.run import QUESTIONS, pipeline, record

if TYPE_CHECKING:
    from byokg.graph.engines.arcadedb import ArcadeStore

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "atlas"
RECORDS = ("trace.jsonl", "predictions.jsonl")

pytest.importorskip("arcadedb_embedded", reason="needs arcadedb-embedded: pip install 'byokg[cypher]'")


@pytest.fixture(scope="module")
def answers(atlas_store: ArcadeStore) -> Mapping[str, Answer]:
    asked = pipeline(atlas_store)
    return {id: asked.run(Question("ask", text)) for id, text in QUESTIONS.items()}


def retrieved(answer: Answer, number: int = 0) -> set[str]:
    """Return which retrievers found something in a round."""
    return {item.retriever for item in answer.rounds[number].evidence if not isinstance(item, Feedback)}


def problems(answer: Answer, number: int = 0) -> list[str]:
    return [item.problem for item in answer.rounds[number].evidence if isinstance(item, Feedback)]


def named(answer: Answer) -> list[tuple[str, bool]]:
    return [(item.name, item.grounded) for item in answer.items]


# A good model


def test_every_retriever_finds_something_and_answers_cite_it(answers: Mapping[str, Answer]) -> None:
    answer = answers["good"]
    assert retrieved(answer) == {"path", "query", "agentic", "text", "bfsql"}
    assert named(answer) == [
        ("Euro", True),
        ("Russian ruble", True),
        ("Swedish krona", True),
        ("Icelandic króna", False),
    ]
    # The agent wrote FINISH: no second round, though the script has one.
    assert [step.got["because"] for step in answer.rounds[-1].steps if step.stage == ENDED] == [
        "a retriever has finished"
    ]
    assert len(answer.rounds) == 1


def test_a_question_that_names_nothing_is_answered_by_its_query(answers: Mapping[str, Answer]) -> None:
    answer = answers["no-entity"]
    assert answer.rounds[0].linked.entities == ()
    (rows,) = (item for item in answer.rounds[0].evidence if isinstance(item, RowsEvidence))
    assert rows.rows == (("Nile", 6650),)
    assert named(answer) == [("Nile", True)]


def test_the_second_round_corrects_the_query_of_the_first(answers: Mapping[str, Answer]) -> None:
    answer = answers["two-rounds"]
    assert any("no relation type 'has_won'; nearest: won" in problem for problem in problems(answer))
    assert "query" not in retrieved(answer, 0) and "query" in retrieved(answer, 1)
    (rows,) = (item for item in answer.rounds[1].evidence if isinstance(item, RowsEvidence))
    assert rows.rows == (("Brian Mulroney",),)
    assert named(answer) == [("Brian Mulroney", True)]


def test_queries_first_corrects_a_query_before_anything_else_is_retrieved(atlas_store: ArcadeStore) -> None:
    asked = Question("ask", QUESTIONS["two-rounds"])
    assert len(pipeline(atlas_store, rounds=Rounds(queries=2)).run(asked).rounds) == 2  # its rows are the answer
    answer = pipeline(atlas_store, rounds=Rounds(queries=2, stop_when="nothing_new")).run(asked)
    assert [{item.retriever for item in one.evidence} for one in answer.rounds[:2]] == [{"query"}, {"query"}]
    assert any("no relation type 'has_won'; nearest: won" in problem for problem in problems(answer, 0))
    assert retrieved(answer, 0) == set() and retrieved(answer, 1) == {"query"}
    # The rest then has the rows in its prompt, and starts from whom it names.
    assert [one.name for one in answer.rounds[2].linked.entities] == ["Canada"]
    assert retrieved(answer, 2) >= {"path", "agentic", "text", "bfsql"}
    assert named(answer) == [("Brian Mulroney", True)]


# A bad one


def test_relations_by_other_names_are_tied_to_the_graph_s_where_they_can_be(answers: Mapping[str, Answer]) -> None:
    answer = answers["wrong-relations"]
    walked = {item.relations for item in answer.rounds[0].evidence if isinstance(item, PathEvidence)}
    assert ("located_in", "borders", "currency") in walked
    told = " ".join(problems(answer))
    assert "no relation 'has_neighbour', nearest: borders" in told and "no relation type 'LOCATED_IN'" in told
    assert named(answer) == [("Euro", True)]


def test_entities_that_do_not_exist_are_linked_to_nothing(answers: Mapping[str, Answer]) -> None:
    answer = answers["invented-entities"]
    assert [(one.linked.entities, one.linked.drafts) for one in answer.rounds] == [((), ())] * 2
    assert named(answer) == [("Mount Joffer", False)]


def test_queries_that_are_none_or_write_are_refused_and_fed_back(
    answers: Mapping[str, Answer], atlas_store: ArcadeStore
) -> None:
    answer = answers["invalid-queries"]
    assert any("this is SQL" in problem for problem in problems(answer, 0))
    assert any("DETACH DELETE removes from the graph" in problem for problem in problems(answer, 1))
    assert len(atlas_store.run('MATCH (n {name: "Brazzaville"}) RETURN n').rows) == 1
    assert named(answer) == []


@pytest.mark.parametrize("id", ["empty-tags", "prose"])
def test_a_reply_that_says_nothing_is_no_error(answers: Mapping[str, Answer], id: str) -> None:
    answer = answers[id]
    assert retrieved(answer) == {"text"}  # which looks at the question alone
    assert (problems(answer), named(answer)) == ([], [])
    assert [len(each.evidence) > 0 for each in answer.rounds] == [True, False]


# What is recorded


def test_a_run_records_what_the_golden_files_show(atlas_store: ArcadeStore, tmp_path: Path) -> None:
    for workers in (1, 2, 8):
        record(atlas_store, tmp_path / str(workers), workers)
        for name in RECORDS:
            if os.environ.get("BYOKG_WRITE_SNAPSHOTS"):
                shutil.copyfile(tmp_path / str(workers) / name, GOLDEN / name)
            assert (tmp_path / str(workers) / name).read_text("utf-8") == (GOLDEN / name).read_text("utf-8")


def test_neither_hash_seed_nor_workers_change_a_byte(tmp_path: Path) -> None:
    counts = ("3", "5")
    subprocess.run(
        [sys.executable, "-m", "tests.pipelines.atlas.run", str(tmp_path / "run"), *counts],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "4242"},
        cwd=ROOT,
        check=True,
    )
    for workers in counts:
        for name in RECORDS:
            assert (tmp_path / "run" / workers / name).read_bytes() == (GOLDEN / name).read_bytes()


# Ablations


def contents(answer: Answer, *left_out: str) -> list[tuple[str, str]]:
    """Return what the first round found, without numbers, leaving some retrievers out."""
    found = answer.rounds[0].evidence
    return [(item.retriever, _content(item)) for item in found if item.retriever not in left_out]


def _content(item: Evidence) -> str:
    return repr({key: value for key, value in vars(item).items() if key != "id"})


@pytest.mark.parametrize("name", ["path", "query", "agentic", "text", "bfsql"])
def test_a_retriever_that_is_switched_off_is_all_that_is_missing(
    name: str, answers: Mapping[str, Answer], atlas_store: ArcadeStore
) -> None:
    from tests.pipelines.atlas.run import RETRIEVERS

    without = pipeline(atlas_store, retrievers={**RETRIEVERS, name: None}).run(Question("ask", QUESTIONS["good"]))
    assert contents(without) == contents(answers["good"], name)
    assert contents(answers["good"]) != contents(without)


class TestTasksLeftOut:
    """Norway borders Finland, Russia and Sweden; drafts are Euro and Swedish krona."""

    def without(self, task: str, store: ArcadeStore) -> Answer:
        tasks = [each for each in ("entities", "paths", "query", "answers", "bfsql") if each != task]
        return pipeline(store, tasks=tasks).run(Question("ask", QUESTIONS["good"]))

    def test_without_paths_only_those_to_drafts_are_left(
        self, answers: Mapping[str, Answer], atlas_store: ArcadeStore
    ) -> None:
        answer = self.without("paths", atlas_store)
        paths = [item for item in answer.rounds[0].evidence if isinstance(item, PathEvidence)]
        assert {item.ends for item in paths} == {("currency/euro",), ("currency/swedish-krona",)}
        assert contents(answer, "path") == contents(answers["good"], "path")

    def test_without_a_query_there_are_no_rows(self, answers: Mapping[str, Answer], atlas_store: ArcadeStore) -> None:
        assert contents(self.without("query", atlas_store)) == contents(answers["good"], "query")

    def test_without_drafts_no_path_leads_to_one(self, answers: Mapping[str, Answer], atlas_store: ArcadeStore) -> None:
        answer = self.without("answers", atlas_store)
        assert answer.rounds[0].linked.drafts == ()
        assert contents(answer, "path") == contents(answers["good"], "path")
        paths = [item for item in answers["good"].rounds[0].evidence if isinstance(item, PathEvidence)]
        assert [item for item in contents(answer) if item[0] == "path"] == [
            ("path", _content(item)) for item in paths if not self.to_a_draft(item)
        ]

    @staticmethod
    def to_a_draft(item: PathEvidence) -> bool:
        # Written paths reach all three currencies at once, or countries.
        return item.ends in (("currency/euro",), ("currency/swedish-krona",))

    def test_without_a_request_the_subgraph_is_chosen_from_the_question(
        self, answers: Mapping[str, Answer], atlas_store: ArcadeStore
    ) -> None:
        answer = self.without("bfsql", atlas_store)
        assert contents(answer, "bfsql") == contents(answers["good"], "bfsql")
        assert contents(answer) != contents(answers["good"])

    def test_without_entities_drafts_are_all_that_is_linked(
        self, answers: Mapping[str, Answer], atlas_store: ArcadeStore
    ) -> None:
        answer = self.without("entities", atlas_store)
        linked = answer.rounds[0].linked
        assert linked.entities == () and linked.drafts == answers["good"].rounds[0].linked.drafts
        assert not [item for item in contents(answer) if item[0] == "path"]
        for name in ("query", "text"):
            assert [item for item in contents(answer) if item[0] == name] == [
                item for item in contents(answers["good"]) if item[0] == name
            ]
