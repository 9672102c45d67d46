"""Tests of `byokg.retrieval.frontier`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from byokg.arrays import Int64
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.store import Direction, EdgeBatch, NodeArray, RelationArray
from byokg.graph.traversal import triples
from byokg.retrieval.frontier import Limits, Neighbourhood, Rate, neighbourhood
from byokg.types import EntityId

LIMITS = Limits(per_relation=100, nodes=100, edges=100)

# a -r-> b -s-> c -t-> d ; e -r-> a ; b -r-> b
CHAIN = ColumnarGraph.from_triples(
    [("a", "r", "b"), ("b", "s", "c"), ("c", "t", "d"), ("e", "r", "a"), ("b", "r", "b")]
)


def rate_of(graph: ColumnarGraph, scores: Mapping[str, float]) -> Rate:
    return lambda relations: np.array([scores.get(graph.relations[each], 0.0) for each in relations])


def around(
    graph: ColumnarGraph, start: str, hops: int, scores: Mapping[str, float], keep: int = 9, limits: Limits = LIMITS
) -> tuple[Neighbourhood, list[str]]:
    sources = graph.numbers([EntityId(start)])
    found = neighbourhood(graph, sources, hops, keep, rate_of(graph, scores), limits)
    return found, [f"{each.head} {each.relation} {each.tail}" for each in triples(graph, found.edges)]


def test_edges_come_by_hop_and_then_by_relation_both_ways() -> None:
    found, edges = around(CHAIN, "a", 2, {"s": 0.9, "r": 0.5})
    assert edges == ["a r b", "e r a", "b s c", "b r b"]
    assert [CHAIN.relations[each] for each in found.relations] == ["s", "r"]
    assert (found.rated, found.truncated) == (2, False)


def test_one_hop_is_what_touches_the_source() -> None:
    _, edges = around(CHAIN, "a", 1, {})
    assert edges == ["a r b", "e r a"]


def test_edges_of_relations_that_were_not_kept_are_walked_and_left_out() -> None:
    found, edges = around(CHAIN, "a", 2, {"s": 0.9}, keep=1)
    assert edges == ["b s c"]
    assert not found.truncated  # sifting is no cut


def test_each_relation_is_rated_once() -> None:
    asked: list[int] = []

    def rate(relations: Int64) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        asked.extend(relations.tolist())
        return np.zeros(len(relations))

    neighbourhood(CHAIN, CHAIN.numbers([EntityId("a")]), 3, 9, rate, LIMITS)
    assert sorted(asked) == [0, 1, 2]


def test_nothing_around_a_node_without_edges() -> None:
    graph = ColumnarGraph.from_triples([("a", "r", "b")])
    found = neighbourhood(graph, graph.numbers([]), 2, 9, rate_of(graph, {}), LIMITS)
    assert (len(found.edges), found.rated, found.truncated) == (0, 0, False)


class Watched(ColumnarGraph):
    """Remembers how many edges were asked for at once."""

    most = 0

    def edges(
        self, nodes: NodeArray, direction: Direction = Direction.BOTH, relations: RelationArray | None = None
    ) -> EdgeBatch:
        batch = super().edges(nodes, direction, relations)
        self.most = max(self.most, len(batch))
        return batch


class TestHubs:
    # hub -follows-> 5,000 fans; hub -wrote-> 10 books, each -printed_in-> a city
    GRAPH = Watched.from_triples(
        [
            *(("hub", "follows", f"fan {number}") for number in range(5000)),
            *(("hub", "wrote", f"book {number}") for number in range(10)),
            *((f"book {number}", "printed_in", f"city {number}") for number in range(10)),
        ]
    )
    SCORES: ClassVar = {"printed_in": 0.9, "wrote": 0.8, "follows": 0.1}

    def test_what_lies_behind_the_best_relations_is_reached_first(self) -> None:
        found, edges = around(self.GRAPH, "hub", 2, self.SCORES, keep=2, limits=Limits(100, nodes=10, edges=100))
        assert edges[:1] == ["hub wrote book 0"] and edges[10] == "book 0 printed_in city 0" and len(edges) == 20
        assert found.truncated

    def test_edges_of_relations_that_do_not_matter_are_not_even_read(self) -> None:
        assert isinstance(self.GRAPH, Watched)
        self.GRAPH.most = 0
        around(self.GRAPH, "hub", 2, self.SCORES, keep=2, limits=Limits(100, nodes=5, edges=100))
        assert self.GRAPH.most <= 20

    def test_of_one_relation_only_so_many_edges_are_kept(self) -> None:
        found, edges = around(self.GRAPH, "hub", 1, {}, limits=Limits(per_relation=3, nodes=9, edges=100))
        assert edges == [
            *(f"hub follows fan {number}" for number in range(3)),
            *(f"hub wrote book {n}" for n in range(3)),
        ]
        assert found.truncated

    def test_of_all_edges_those_of_fewest_hops_and_best_relations_are_kept(self) -> None:
        found, edges = around(self.GRAPH, "hub", 2, self.SCORES, keep=2, limits=Limits(100, nodes=100, edges=12))
        assert edges == [
            *(f"hub wrote book {number}" for number in range(10)),
            "book 0 printed_in city 0",
            "book 1 printed_in city 1",
        ]
        assert found.truncated
