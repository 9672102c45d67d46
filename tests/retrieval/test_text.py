"""Tests of `byokg.retrieval.text`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from byokg.errors import ConfigError, IndexUnusable
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.name_indexes import build_dense
from byokg.index.embedders import Vectors
from byokg.linking.parts import Parts
from byokg.retrieval.text import TextRetriever
from byokg.types import (
    Artifacts,
    Context,
    EntityId,
    Evidence,
    Linked,
    Node,
    NodeEvidence,
    PathEvidence,
    Question,
    Request,
    Triple,
    TripleEvidence,
)
from tests.index.word_axes import WordAxes
from tests.linking.graphs import EMBEDDER, countries, marriages

# Words of `marriages`: to "place birth Ann", Ann scores 1/√3, `person place of birth` 2/√(3 · 3).
WORDS = WordAxes("ann bob cid dea eva lima cusco person spouse marriage place birth parents from 1999")


def request(question: str) -> Request:
    return Request(Question("q", question), Artifacts(), Linked(), Context())


def lines(found: Sequence[Evidence]) -> list[tuple[str, ...]]:
    return [
        (item.triple.head, item.triple.relation, item.triple.tail)
        if isinstance(item, TripleEvidence)
        else (item.source, *item.relations, *item.ends)
        for item in found
        if isinstance(item, TripleEvidence | PathEvidence)
    ]


def test_triples_come_with_the_sum_of_cosines_as_score() -> None:
    (item,) = TextRetriever(Parts(marriages(), embedder=WORDS), k=1).retrieve(request("place birth Ann"))
    assert isinstance(item, TripleEvidence)
    assert (item.triple.head, item.triple.relation, item.triple.tail) == ("Ann", "people.person.place_of_birth", "Lima")
    assert (item.retriever, item.triple.edge) == ("text", 1)
    assert item.score == pytest.approx(0.577 + 0.667, abs=1e-3)


def test_a_triple_that_ends_in_a_mediator_goes_on_to_names() -> None:
    # "Ann spouse": Ann 1/√2, `person spouse s` 1/2. Behind m.0m1: `marriage spouse` Bob 1/2, `marriage from` 1999 0.
    (first, second) = TextRetriever(Parts(marriages(), embedder=WORDS), k=1).retrieve(request("Ann spouse"))
    assert lines([first, second]) == [
        ("Ann", "people.person.spouse_s", "people.marriage.spouse", "Bob"),
        ("Ann", "people.person.spouse_s", "people.marriage.from", "1999"),
    ]
    assert isinstance(first, PathEvidence)
    assert first.paths[0].nodes == ("Ann", "m.0m1", "Bob")
    assert first.score == second.score == pytest.approx(0.707 + 0.5, abs=1e-3)


def test_as_many_ways_on_are_shown_as_asked_for() -> None:
    (alone,) = TextRetriever(Parts(marriages(), embedder=WORDS), k=1, through=1).retrieve(request("Ann spouse"))
    assert lines([alone]) == [("Ann", "people.person.spouse_s", "people.marriage.spouse", "Bob")]
    (bare,) = TextRetriever(Parts(marriages(), embedder=WORDS), k=1, through=0).retrieve(request("Ann spouse"))
    assert lines([bare]) == [("Ann", "people.person.spouse_s", "m.0m1")]


def test_both_halves_of_a_statement_are_shown_once() -> None:
    found = TextRetriever(Parts(marriages(), embedder=WORDS), k=8).retrieve(request("Ann spouse"))
    walked = [
        frozenset(triple.edge for triple in item.paths[0].triples) for item in found if isinstance(item, PathEvidence)
    ]
    assert len(walked) == len(set(walked)) == 4  # Ann-Bob, Ann-1999, Bob-1999, Cid-Dea


def test_a_later_round_does_not_look_for_the_same_again() -> None:
    retriever = TextRetriever(Parts(marriages(), embedder=WORDS), k=1)
    found = retriever.retrieve(request("place birth Ann"))
    later = Context().add(Artifacts(), Linked(), [found])
    assert retriever.retrieve(Request(Question("q", "place birth Ann"), Artifacts(), Linked(), later)) == []


def test_names_are_compared_and_not_ids() -> None:
    (item,) = TextRetriever(Parts(countries(), embedder=EMBEDDER), k=1).retrieve(request("capital of Peru"))
    assert lines([item]) == [("pe", "capital", "lima")]


def test_a_question_of_unknown_words_finds_nothing_and_says_so() -> None:
    asked = request("Zamunda?")
    assert TextRetriever(Parts(marriages(), embedder=WORDS)).retrieve(asked) == []
    assert "no word" in str(asked.steps[0].got["problem"])


def test_the_trace_says_how_far_down_the_scores_go() -> None:
    asked = request("place birth Ann")
    TextRetriever(Parts(marriages(), embedder=WORDS), k=1).retrieve(asked)
    assert asked.steps[0].given == {"k": 1}
    assert asked.steps[0].got == {"found": 1, "lowest_score": pytest.approx(1.244, abs=1e-3)}


class Remembering:
    """Embeds, and keeps what it was asked."""

    name = EMBEDDER.name

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return EMBEDDER.encode(texts)


def test_an_index_in_the_graphs_folder_is_used(tmp_path: Path) -> None:
    countries().save(tmp_path / "graph")
    build_dense(ColumnarGraph.open(tmp_path / "graph"), EMBEDDER)

    embedder = Remembering()
    (item,) = TextRetriever(Parts(ColumnarGraph.open(tmp_path / "graph"), embedder=embedder), k=1).retrieve(
        request("capital of Peru")
    )
    assert lines([item]) == [("pe", "capital", "lima")]
    assert "Peru" not in embedder.texts


def test_too_many_names_without_an_index_name_the_command_that_makes_one() -> None:
    with pytest.raises(IndexUnusable, match=r"more than 10 names; .*byokg graph embed"):
        TextRetriever(Parts(countries(), embedder=EMBEDDER), most_names=10).retrieve(request("capital of Peru"))


def test_threads_share_what_is_made_once() -> None:
    retriever = TextRetriever(Parts(countries(), embedder=EMBEDDER), k=3)
    found: list[list[Evidence]] = []
    threads = [Thread(target=lambda: found.append([*retriever.retrieve(request("capital of Peru"))])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize(("setting", "value"), [("k", 0), ("through", -1), ("most_names", 0)])
def test_settings_that_make_no_sense_are_named(setting: str, value: int) -> None:
    given: dict[str, Any] = {setting: value}
    with pytest.raises(ConfigError, match=f"{setting}={value}"):
        TextRetriever(Parts(countries(), embedder=EMBEDDER), **given)


def test_on_freebase_more_triples_are_taken_unless_their_number_is_said() -> None:
    def taken(relation: str, k: int | None) -> int:
        store = ColumnarGraph.from_triples([(f"film {n}", relation, f"person {n}") for n in range(60)])
        return len(TextRetriever(Parts(store, embedder=EMBEDDER), k=k).retrieve(request("Which person made the film?")))

    assert (taken("film.film.directed_by", None), taken("directed_by", None)) == (50, 10)
    assert taken("film.film.directed_by", 10) == 10


def test_nodes_of_the_best_triples_are_described_on_request() -> None:
    ids = ("Ann", "Bob", "Lima")
    nodes = [Node(EntityId(id), id, properties={"age": 40} if id != "Lima" else {}) for id in ids]
    edges = [Triple(EntityId(id), "birth", EntityId("Lima")) for id in ids[:2]]
    parts = Parts(ColumnarGraph.from_records(nodes, edges), embedder=WORDS)
    _, node = TextRetriever(parts, k=1, described=5).retrieve(request("birth Bob"))
    assert isinstance(node, NodeEvidence) and node.node == nodes[1]
    assert len(TextRetriever(parts, k=1).retrieve(request("birth Bob"))) == 1
