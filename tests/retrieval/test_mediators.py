"""Tests of `byokg.retrieval.frontier`."""

from __future__ import annotations

import numpy as np

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.traversal import neighbours, triples
from byokg.retrieval.frontier import MOST_EDGES, continuations, is_named, join_triples, metapath
from byokg.types import EntityId, Node, Triple
from tests.linking.graphs import marriages

GRAPH = marriages()


def onward(graph: ColumnarGraph, start: str, relation: str, mediator: str) -> list[Triple]:
    """Return what lies behind the mediator that an edge of `start` ends in."""
    batch = neighbours(graph, [EntityId(start)], relations=[relation])
    further = continuations(graph, batch, graph.numbers([EntityId(mediator)] * len(batch)))
    return [triple for rows in further.rows for triple in triples(graph, further.edges.take(rows))]


def test_a_name_of_its_own_is_neither_blank_nor_an_identifier() -> None:
    graph = ColumnarGraph.from_records([Node(EntityId("a"), name) for name in ["Ann"]], [])
    assert is_named(graph, np.array([0, 0])).tolist() == [True, True]
    assert is_named(GRAPH, GRAPH.numbers([EntityId(id) for id in ("m.0m1", "Ann", "m.0m1")])).tolist() == [
        False,
        True,
        False,
    ]
    blank = ColumnarGraph.from_records([Node(EntityId("b"), " ")], [])
    assert is_named(blank, np.array([0])).tolist() == [False]


def test_an_edge_goes_on_behind_a_mediator_in_all_directions_but_back() -> None:
    # Ann -spouse_s-> m.0m1 -spouse-> Bob, m.0m1 -from-> 1999
    assert [(triple.relation, triple.tail) for triple in onward(GRAPH, "Ann", "people.person.spouse_s", "m.0m1")] == [
        ("people.marriage.spouse", "Bob"),
        ("people.marriage.from", "1999"),
    ]
    assert [(triple.head, triple.relation) for triple in onward(GRAPH, "Bob", "people.marriage.spouse", "m.0m1")] == [
        ("m.0m1", "people.marriage.from"),
        ("Ann", "people.person.spouse_s"),
    ]


def test_an_edge_that_ends_at_another_mediator_does_not_go_on_there() -> None:
    # Ann -r-> m.01 -s-> m.02 -t-> Bob
    graph = ColumnarGraph.from_triples([("Ann", "r", "m.01"), ("m.01", "s", "m.02"), ("m.02", "t", "Bob")])
    assert onward(graph, "Ann", "r", "m.01") == []


def test_a_second_edge_between_the_same_two_is_no_way_on() -> None:
    graph = ColumnarGraph.from_triples([("Ann", "r", "m.01"), ("Ann", "s", "m.01"), ("m.01", "t", "Bob")])
    assert [triple.tail for triple in onward(graph, "Ann", "r", "m.01")] == ["Bob"]


def test_of_a_nameless_hub_only_some_edges_are_looked_at() -> None:
    graph = ColumnarGraph.from_triples(
        [("Ann", "r", "m.0hub"), *(("m.0hub", "s", f"person {number}") for number in range(5 * MOST_EDGES))]
    )
    assert len(onward(graph, "Ann", "r", "m.0hub")) == MOST_EDGES


def test_two_edges_make_a_walk_from_the_first_ones_free_end() -> None:
    first, second = (
        triples(GRAPH, neighbours(GRAPH, [EntityId("m.0m1")], relations=["people.marriage.spouse"])),
        (triples(GRAPH, neighbours(GRAPH, [EntityId("Ann")], relations=["people.person.spouse_s"]))),
    )
    path = join_triples(first[0], second[0])
    assert (path.nodes, path.inverse) == (("Bob", "m.0m1", "Ann"), (True, True))
    assert metapath(path) == ("^people.marriage.spouse", "^people.person.spouse_s")
    assert metapath(join_triples(second[0], first[0])) == ("people.person.spouse_s", "people.marriage.spouse")
