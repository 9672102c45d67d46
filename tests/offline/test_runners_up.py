"""Tests of `byokg.offline.answerer`, and of what follows an unsure answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.offline import answerer
from byokg.offline.answerer import UNSURE, Ranked, RunnerUpSettings, runners_up
from byokg.offline.pipeline import offline_pipeline
from byokg.types import AnswerItem, EntityId, Question
from tests.linking.graphs import EMBEDDER


@pytest.fixture(autouse=True)
def nearly_surely_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answerer, "_RUNNERS", RunnerUpSettings(none_right=0.3))


def ranked(*candidates: tuple[float, Sequence[str]]) -> list[Ranked]:
    """Make candidates of scores and names; each cites its own evidence."""
    return [
        (score, [AnswerItem(name, EntityId(name), score, (f"e{number}",), 1) for name in names])
        for number, (score, names) in enumerate(candidates, 1)
    ]


def follow(probability: float, *candidates: tuple[float, Sequence[str]]) -> list[str]:
    return [item.name for item in runners_up(ranked(*candidates), probability)]


def test_a_next_best_that_is_nearly_as_likely_follows() -> None:
    assert follow(0.4, (5.0, ["Ann"]), (4.9, ["Bob"])) == ["Bob"]
    assert follow(0.4, (5.0, ["Ann"]), (1.0, ["Bob"])) == []
    assert follow(0.9, (5.0, ["Ann"]), (4.9, ["Bob"])) == []
    assert follow(0.4, (5.0, ["Ann"])) == []


def test_one_more_costs_many_answers_little_and_many_more_cost_one_a_lot() -> None:
    many = [f"city {number}" for number in range(20)]
    assert follow(0.45, (5.0, many), (4.5, ["Bob"])) == ["Bob"]
    assert follow(0.45, (5.0, ["Bob"]), (4.5, many)) == []
    towns = [f"town {number}" for number in range(21)]
    assert follow(0.3, (5.0, many), (5.0, towns[:20])) == towns[:20]
    assert follow(0.3, (5.0, many), (5.0, towns)) == []  # nobody reads as many


def test_what_says_the_same_is_no_rival_and_rivals_that_agree_count_together() -> None:
    assert follow(0.4, (5.0, ["Ann", "Bob"]), (5.0, ["Ann"])) == []
    assert follow(0.4, (5.0, ["Ann", "Bob"]), (5.0, ["Ann", "Bob", "Cyd"])) == []
    apart = follow(0.4, (5.0, ["Ann"]), (4.2, ["Bob"]), (4.2, ["Cyd"]), (4.2, ["Dan"]))
    assert apart == []
    assert follow(0.4, (5.0, ["Ann"]), (4.2, ["Bob"]), (4.2, ["Bob"]), (4.2, ["Bob"])) == ["Bob"]


def test_each_keeps_its_citation_and_has_its_own_probability() -> None:
    found = runners_up(ranked((5.0, ["Ann"]), (4.9, ["Bob", "Ann"]), (4.8, ["Cyd"])), 0.3)
    assert [(item.name, item.citations) for item in found][:1] == [("Cyd", ("e3",))]
    assert all(0 < item.score < 0.7 for item in found)


@pytest.mark.parametrize("question", ["what about hub", "who is the director of alone"])
def test_only_an_unsure_answer_is_followed(question: str) -> None:
    # hub -r1-> a … hub -r9-> i; alone -director-> z
    rivals = [("hub", f"relation {letter}", letter) for letter in "ab"]
    graph = ColumnarGraph.from_triples([*rivals, ("alone", "director", "z")])
    answer = offline_pipeline(Parts(graph, embedder=EMBEDDER)).run(Question("q", question))
    first, *others = answer.items
    assert bool(others) == (first.score < UNSURE)
    assert ("next best" in answer.note) == bool(others)
    evidence = {item.id for one in answer.rounds for item in one.evidence}
    assert all(set(item.citations) <= evidence and item.score < 1 - first.score for item in others)
