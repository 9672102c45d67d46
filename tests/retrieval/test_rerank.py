"""Tests of `byokg.retrieval.text`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from byokg.errors import ConfigError, EntityNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.index.rerankers import Scores
from byokg.linking.parts import Parts
from byokg.retrieval.text import RerankRetriever
from byokg.types import (
    Artifacts,
    Context,
    EntityId,
    Linked,
    LinkedEntity,
    Mention,
    PathEvidence,
    Question,
    Request,
    TripleEvidence,
)
from tests.linking.graphs import EMBEDDER, countries, marriages


class WordCount:
    """Rates a text by how many words of the question it holds, and keeps what it was asked."""

    name = "word-count"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def score(self, question: str, texts: Sequence[str]) -> Scores:
        self.asked.append(list(texts))
        words = set(question.casefold().split())
        return np.array([len(words & set(text.casefold().split())) for text in texts], np.float64)


def request(question: str, *entities: str) -> Request:
    linked = tuple(LinkedEntity(EntityId(id), id, Mention(id), "given", 1.0) for id in entities)
    return Request(Question("q", question), Artifacts(), Linked(linked), Context())


def lines(found: Sequence[TripleEvidence | PathEvidence]) -> list[tuple[str, ...]]:
    return [
        (item.triple.head, item.triple.relation, item.triple.tail)
        if isinstance(item, TripleEvidence)
        else (item.source, *item.relations, *item.ends)
        for item in found
    ]


def test_relations_are_sifted_then_triples_and_the_second_reranker_chooses() -> None:
    # Around Peru within two hops: capital, official_language, borders. "capital of the neighbour Chile" keeps one.
    first, second = WordCount(), WordCount()
    retriever = RerankRetriever(
        Parts(countries(), embedder=EMBEDDER), first=first, second=second, k=2, top_relations=1, top_triples=3
    )
    found = retriever.retrieve(request("capital near Peru", "pe"))
    relations, texts = first.asked[0] + first.asked[1], first.asked[2]
    assert sorted(relations) == ["borders", "capital", "official language"]
    assert texts[0] == "Peru → capital → Lima"  # the nearest first
    assert all("→ capital →" in text for text in texts)
    assert len(second.asked[0]) == 3
    assert lines(found) == [("pe", "capital", "lima"), ("cl", "capital", "scl")]
    assert [item.score for item in found] == [2.0, 1.0]
    assert {item.retriever for item in found} == {"rerank"}


def test_equal_scores_keep_the_order_of_hops() -> None:
    retriever = RerankRetriever(Parts(countries(), embedder=EMBEDDER), first=WordCount(), second=WordCount(), k=3)
    found = retriever.retrieve(request("borders", "pt"))
    assert lines(found)[0] == ("pt", "borders", "es")


def test_a_mediator_is_read_through_as_one_statement() -> None:
    first = WordCount()
    retriever = RerankRetriever(Parts(marriages(), embedder=EMBEDDER), first=first, second=WordCount(), k=1)
    (item,) = retriever.retrieve(request("marriage spouse of Ann", "Ann"))
    assert "Ann → person spouse s → marriage spouse → Bob" in first.asked[-1]
    assert isinstance(item, PathEvidence)
    assert lines([item]) == [("Ann", "people.person.spouse_s", "people.marriage.spouse", "Bob")]
    assert item.paths[0].nodes == ("Ann", "m.0m1", "Bob")


def test_each_statement_is_rated_once_however_it_was_reached() -> None:
    first = WordCount()
    RerankRetriever(Parts(marriages(), embedder=EMBEDDER), first=first, second=WordCount()).retrieve(
        request("spouse", "Ann", "Bob")
    )
    assert len(first.asked[-1]) == len(set(first.asked[-1]))


def test_without_rerankers_embeddings_are_compared() -> None:
    found = RerankRetriever(Parts(countries(), embedder=EMBEDDER), k=1).retrieve(
        request("What is the capital of Peru?", "pe")
    )
    assert lines(found) == [("pe", "capital", "lima")]


def test_no_linked_entity_is_no_triple() -> None:
    assert RerankRetriever(Parts(countries(), embedder=EMBEDDER)).retrieve(request("capital of Peru")) == []


def test_an_entity_that_is_not_in_the_graph_is_named() -> None:
    with pytest.raises(EntityNotFound, match="'zz'"):
        RerankRetriever(Parts(countries(), embedder=EMBEDDER)).retrieve(request("capital?", "zz"))


def test_the_trace_tells_what_was_kept() -> None:
    asked = request("capital near Peru", "pe")
    RerankRetriever(
        Parts(countries(), embedder=EMBEDDER),
        first=WordCount(),
        second=WordCount(),
        k=2,
        top_relations=1,
        top_triples=3,
    ).retrieve(asked)
    (step,) = asked.steps
    assert (step.stage, step.given) == ("rerank", {"entities": ["pe"], "first": "word-count", "second": "word-count"})
    assert step.got == {
        "relations": 3,
        "kept_relations": ["capital"],
        "triples": 3,
        "kept_triples": 3,
        "found": 2,
        "truncated": False,
    }


def test_at_a_hub_few_texts_are_written_and_the_cut_is_told() -> None:
    hub = ColumnarGraph.from_triples([("hub", "likes", f"thing {number}") for number in range(5000)])
    first, asked = WordCount(), request("likes", "hub")
    RerankRetriever(Parts(hub, embedder=EMBEDDER), first=first, second=WordCount(), hub_cap=50).retrieve(asked)
    assert len(first.asked[-1]) == 50
    assert asked.steps[0].got["truncated"] is True


@pytest.mark.parametrize(
    "setting", ["k", "hops", "top_relations", "top_triples", "hub_cap", "max_nodes", "max_triples"]
)
def test_settings_that_keep_nothing_are_named(setting: str) -> None:
    given: dict[str, Any] = {setting: 0}
    with pytest.raises(ConfigError, match=f"{setting}=0"):
        RerankRetriever(Parts(countries(), embedder=EMBEDDER), **given)
