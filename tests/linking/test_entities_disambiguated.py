"""Tests of `byokg.linking.entities`."""

from __future__ import annotations

import numpy as np
import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.entities import ContextScorer, EntityLinker
from byokg.types import EntityId, Mention, Node, Triple
from tests.linking.graphs import EMBEDDER

# Seven nodes named Jordan. What tells them apart:
#   country -government.country.capital-> amman     river -geography.river.mouth-> sea
#   player -sports.athlete.team-> bulls             singer -music.artist.album-> record
#   shoe -business.product.manufacturer-> maker     city <-people.person.place_of_birth- ann
#   nobody: an unnamed type, and no edge
JORDANS = {
    "country": "Country",
    "river": "River",
    "player": "Basketball player",
    "singer": "",
    "shoe": "",
    "city": "",
    "nobody": "",
}
FACTS = [
    ("country", "government.country.capital", "amman"),
    ("river", "geography.river.mouth", "sea"),
    ("player", "sports.athlete.team", "bulls"),
    ("singer", "music.artist.album", "record"),
    ("shoe", "business.product.manufacturer", "maker"),
    ("ann", "people.person.place_of_birth", "city"),
]


@pytest.fixture
def jordans() -> ColumnarGraph:
    others = {tail for _, _, tail in FACTS if tail not in JORDANS} | {"ann"}
    return ColumnarGraph.from_records(
        [
            *(Node(EntityId(id), "Jordan", type) for id, type in JORDANS.items()),
            *(Node(EntityId(id), id.capitalize()) for id in sorted(others)),
        ],
        [Triple(EntityId(head), relation, EntityId(tail)) for head, relation, tail in FACTS],
    )


def fits(graph: ColumnarGraph, question: str, mention: Mention) -> dict[str, float]:
    scorer = ContextScorer(graph, EMBEDDER)
    ids = [EntityId(id) for id in JORDANS]
    around = scorer.around(graph.relation_counts(graph.numbers(ids)), list(JORDANS.values()))
    found = scorer.fit(question, mention, around, range(len(ids)))
    return dict(zip(JORDANS, found.tolist(), strict=True))


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("What is the capital of Jordan?", "country"),
        ("Where is the mouth of the Jordan?", "river"),
        ("Which team does Jordan play for?", "player"),
        ("Which basketball players are called Jordan?", "player"),
        ("Name an album by Jordan", "singer"),
        ("Who is the manufacturer of the Jordan?", "shoe"),
        ("Who was born in Jordan?", "city"),
    ],
)
def test_the_question_tells_seven_namesakes_apart(jordans: ColumnarGraph, question: str, meant: str) -> None:
    linker = EntityLinker(jordans, "exact", top_k=7, disambiguate=True, embedder=EMBEDDER)
    start = question.index("Jordan")
    found = linker.candidates(Mention("Jordan", start, start + 6), question)
    assert found[0].id == meant
    assert {one.id for one in found} == set(JORDANS)
    assert found[0].context is not None and found[0].context > (found[1].context or 0.0)
    assert all(one.method == "exact" and 0 <= one.score <= 1 for one in found)


def test_a_relation_counts_from_both_of_its_ends_and_a_node_without_any_has_none(jordans: ColumnarGraph) -> None:
    found = fits(jordans, "Who was born in Jordan?", Mention("Jordan", 16, 22))
    assert found["city"] > 0
    assert found["nobody"] == 0.0


def test_the_mention_itself_says_nothing(jordans: ColumnarGraph) -> None:
    # "capital" would point at the country if it did not belong to the mention.
    assert set(fits(jordans, "Capital", Mention("Capital", 0, 7)).values()) == {0.0}
    assert set(fits(jordans, "the capital", Mention("Capital")).values()) == {0.0}


@pytest.mark.parametrize("question", ["", "Jordan", "?!", "who is the", "😀 \x00 \u202e"])
def test_a_question_that_says_nothing_rates_all_alike(jordans: ColumnarGraph, question: str) -> None:
    assert set(fits(jordans, question, Mention("Jordan")).values()) == {0.0}


def test_a_perfect_fit_rates_one(jordans: ColumnarGraph) -> None:
    assert fits(jordans, "capital of Jordan", Mention("Jordan", 11, 17))["country"] == pytest.approx(1.0)


def test_a_fit_is_what_a_cosine_has_above_03_stretched_to_one() -> None:
    # Of the question, "harbour" alone says something; the node is described by its type alone.
    graph = ColumnarGraph.from_records([Node(EntityId("x"), "Jordan", "port")], [])
    scorer = ContextScorer(graph, EMBEDDER)
    around = scorer.around(graph.relation_counts(graph.numbers([EntityId("x")])), [["port"]])
    cosine = float(np.dot(*EMBEDDER.encode(["harbour", "port"])))
    assert cosine > 0.3
    found = scorer.fit("harbour of Jordan", Mention("Jordan", 11, 17), around, [0])
    assert found[0] == pytest.approx((cosine - 0.3) / 0.7, abs=1e-6)


def test_by_default_the_fit_is_a_fifth_of_the_score(jordans: ColumnarGraph) -> None:
    linker = EntityLinker(jordans, "exact", top_k=7, disambiguate=True, embedder=EMBEDDER)
    found = linker.candidates(Mention("Jordan", 19, 25), "Which team does the Jordan play for?")
    assert [one.score for one in found] == [pytest.approx(0.8 + 0.2 * (one.context or 0.0)) for one in found]


def test_without_disambiguation_words_around_the_mention_count_nothing(jordans: ColumnarGraph) -> None:
    linker = EntityLinker(jordans, "exact", top_k=7, disambiguate=False, embedder=EMBEDDER)
    found = linker.candidates(Mention("Jordan", 19, 25), "Which team does the Jordan play for?")
    assert [(one.context, one.score) for one in found] == [(None, 1.0)] * 7


def test_a_hub_is_read_by_relations_not_by_edges() -> None:
    graph = ColumnarGraph.from_triples([("hub", "film.film.starring", f"a{number}") for number in range(5000)])
    scorer = ContextScorer(graph, EMBEDDER)
    around = scorer.around(graph.relation_counts(graph.numbers([EntityId("hub")])), [""])
    assert around.bounds.tolist() == [0, 2]  # `starring` and `film starring`
    assert scorer.fit("who starred in it", Mention("it", 15, 17), around, [0]).dtype == np.float32
