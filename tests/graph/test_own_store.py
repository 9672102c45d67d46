"""A store with the few methods that are needed; the others are inherited, and agree with those of arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from byokg.arrays import Int64
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.exporter import copy_graph, export_graph
from byokg.graph.importers.choose import import_graph
from byokg.graph.pathql.evaluate import paths
from byokg.graph.store import Direction, EdgeBatch, GraphStore, NodeArray, RelationArray
from byokg.types import EntityId, Node, Properties, Triple
from tests.graph.contract import GraphStoreContract, Make, edge, ids, node, undirected


class OwnStore(GraphStore):
    """A graph behind the needed methods, and that for properties of edges."""

    name = "own"

    def __init__(self, graph: ColumnarGraph) -> None:
        self._graph = graph

    @property
    def relations(self) -> Sequence[str]:
        return self._graph.relations

    def entities(self) -> Iterator[EntityId]:
        return self._graph.entities()

    def nodes(self, ids: Collection[EntityId]) -> list[Node]:
        return self._graph.nodes(ids)

    def edges(
        self, nodes: NodeArray, direction: Direction = Direction.BOTH, relations: RelationArray | None = None
    ) -> EdgeBatch:
        return self._graph.edges(nodes, direction, relations)

    def edge_properties(self, edges: Int64) -> list[Properties]:
        return self._graph.edge_properties(edges)


class TestContract(GraphStoreContract):
    @pytest.fixture
    def make(self) -> Make:
        def make(nodes: Sequence[Node], edges: Sequence[Triple]) -> GraphStore:
            return OwnStore(ColumnarGraph.from_records(nodes, edges))

        return make


#   a -r-> b twice      b - c      c -s-> a      d - d      c -r-> c      e stands alone
@pytest.fixture
def graph() -> ColumnarGraph:
    return ColumnarGraph.from_records(
        [node("a", "T", size=1), node("b", "U"), node("c", "U", size=2), node("d"), node("e", "T")],
        [
            edge("a", "r", "b", since=1990),
            edge("a", "r", "b", since=2001),
            undirected("b", "knows", "c"),
            edge("c", "s", "a"),
            undirected("d", "knows", "d"),
            edge("c", "r", "c"),
        ],
    )


def columns(batch: EdgeBatch) -> list[list[int]]:
    return [np.asarray(column).tolist() for name, column in vars(batch).items() if name != "space"]


def test_inherited_methods_agree_with_those_of_arrays(graph: ColumnarGraph) -> None:
    own = OwnStore(graph)
    nodes = graph.numbers(ids("c", "a", "b", "d"))
    assert own.numbers(ids("c", "a")).tolist() == graph.numbers(ids("c", "a")).tolist()
    assert own.ids(nodes) == graph.ids(nodes)
    assert own.names_of_nodes().to_pylist() == graph.names_of_nodes().to_pylist()
    assert own.named(["c", "nobody"]) == [graph.numbers(ids("c")).tolist(), []]
    for direction in Direction:
        mine, cut = own.first_edges(nodes, direction, 2)
        theirs, cut_there = graph.first_edges(nodes, direction, 2)
        assert (columns(mine), cut) == (columns(theirs), cut_there)
        assert own.far_ends(nodes, direction).tolist() == graph.far_ends(nodes, direction).tolist()
        among = own.edges_among(nodes, direction), graph.edges_among(nodes)
        assert sorted(among[0].edge.tolist()) == sorted(among[1].edge.tolist())
    assert columns(own.sample_edges(10)) == columns(graph.sample_edges(10))
    counts, counted = own.relation_counts(nodes), graph.relation_counts(nodes)
    assert [each.tolist() for each in vars(counts).values()] == [each.tolist() for each in vars(counted).values()]


def test_an_inherited_schema_is_that_of_a_copy(graph: ColumnarGraph) -> None:
    schema, counted = OwnStore(graph).schema(), graph.schema()
    assert (schema.node_types, schema.node_properties) == (counted.node_types, counted.node_properties)
    found, expected = (
        [
            (one.name, one.count, one.domain, one.range, one.properties, one.undirected)
            for one in sorted(each.relations, key=lambda one: one.name)
        ]
        for each in (schema, counted)
    )
    assert found == expected
    copied = copy_graph(OwnStore(graph))
    assert copied.schema().node_types == counted.node_types
    assert [tuple(copied.nodes([id])) for id in copied.entities()] == [tuple(graph.nodes([id])) for id in "abcde"]  # type: ignore[list-item]


def test_values_are_counted_and_looked_up_without_an_index(graph: ColumnarGraph) -> None:
    own = OwnStore(graph)
    assert own.distinct_values("U", "size", 5) == ([(2, 1)], True)
    assert own.ids(own.holders("U", "size", 2, 5)) == ["c"]
    assert len(own.holders("T", "size", 2, 5)) == 0


def test_undirected_edges_of_a_store_are_exported_as_such(graph: ColumnarGraph, tmp_path: Path) -> None:
    own = OwnStore(graph)
    assert own.undirected_relations().tolist() == graph.undirected_relations().tolist()
    export_graph(own, tmp_path / "out")
    assert import_graph(tmp_path / "out").topology.undirected is not None


def test_a_trail_walks_an_undirected_edge_once() -> None:
    ends = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "d")]
    graph = ColumnarGraph.from_records(
        [node(id) for id in "abcd"], [undirected(one, "k", other) for one, other in ends]
    )
    query = "PATHS SHORTEST TRAIL START ?x = :a END ?y VIA :k"
    assert list(paths(OwnStore(graph), query)) == list(paths(graph, query))


def test_a_sample_of_edges_is_read_once(graph: ColumnarGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    own = OwnStore(graph)
    sample = own.sample_edges(2)
    monkeypatch.setattr(own, "edges", None)
    assert own.sample_edges(2) is sample
