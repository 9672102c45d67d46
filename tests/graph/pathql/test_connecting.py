"""Tests of `connecting`: the shortest paths between given nodes as a path query."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import EntityNotFound, RelationNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.pathql.evaluate import paths
from byokg.graph.pathql.query import Selector, connecting
from byokg.graph.pathql.result import PathResult
from byokg.graph.pathql.search import PathLimits
from byokg.graph.store import Direction
from byokg.types import EntityId, Path
from tests.graph.contract import edge, ids, node


def spelled(path: Path) -> str:
    """Write a path as `a r> b <s c`."""
    text = str(path.source)
    for triple, inverse, after in zip(path.triples, path.inverse, path.nodes[1:], strict=True):
        text += f" <{triple.relation} {after}" if inverse else f" {triple.relation}> {after}"
    return text


def found(result: PathResult) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    for each in result:
        paths.setdefault(each.start + each.end, []).append(spelled(each.path))
    return paths


def shortest_paths(
    graph: ColumnarGraph,
    sources: list[EntityId],
    targets: list[EntityId],
    k: int = 1,
    max_hops: int = 4,
    relations: list[str] | None = None,
    direction: Direction = Direction.BOTH,
    hub_cap: int | None = None,
) -> PathResult:
    query = connecting(sources, targets, k, max_hops, relations, direction)
    return paths(graph, query, PathLimits(hub_cap=hub_cap))


#   a -r-> b -r-> d -s-> e        a -s-> c -r-> d        e -r-> a        f stands alone
@pytest.fixture
def graph() -> ColumnarGraph:
    return ColumnarGraph.from_records(
        [node(name) for name in "abcdef"],
        [
            edge("a", "r", "b"),
            edge("b", "r", "d", since=1990),
            edge("d", "s", "e"),
            edge("a", "s", "c"),
            edge("c", "r", "d"),
            edge("e", "r", "a"),
        ],
    )


class TestShortestPaths:
    def test_edges_are_walked_either_way_unless_told_otherwise(self, graph: ColumnarGraph) -> None:
        assert found(shortest_paths(graph, ids("a"), ids("e"))) == {"ae": ["a <r e"]}
        out = shortest_paths(graph, ids("a"), ids("e"), direction=Direction.OUT)
        assert found(out) == {"ae": ["a r> b r> d s> e"]}
        back = shortest_paths(graph, ids("e"), ids("a"), direction=Direction.IN)
        assert found(back) == {"ea": ["e <s d <r b <r a"]}

    def test_each_pair_of_source_and_target_has_its_own_path(self, graph: ColumnarGraph) -> None:
        pairs = shortest_paths(graph, ids("a", "c"), ids("d", "e"), direction=Direction.OUT)
        assert found(pairs) == {
            "ad": ["a r> b r> d"],
            "ae": ["a r> b r> d s> e"],
            "cd": ["c r> d"],
            "ce": ["c r> d s> e"],
        }

    def test_paths_carry_edge_numbers_and_properties(self, graph: ColumnarGraph) -> None:
        [path] = shortest_paths(graph, ids("b"), ids("e"), direction=Direction.OUT)
        assert [triple.properties for triple in path.path.triples] == [{"since": 1990}, {}]
        [again] = shortest_paths(graph, ids("e"), ids("b"), direction=Direction.IN)
        numbers = [triple.edge for triple in path.path.triples]
        assert [triple.edge for triple in again.path.triples] == numbers[::-1]

    def test_more_paths_come_shortest_first_and_in_edge_order(self, graph: ColumnarGraph) -> None:
        pairs = shortest_paths(graph, ids("a"), ids("d"), k=5, direction=Direction.OUT)
        assert found(pairs) == {"ad": ["a r> b r> d", "a s> c r> d"]}
        pairs = shortest_paths(graph, ids("a"), ids("e"), k=3)
        assert found(pairs) == {"ae": ["a <r e", "a r> b r> d s> e", "a s> c r> d s> e"]}

    def test_parallel_edges_are_different_paths(self) -> None:
        graph = ColumnarGraph.from_records([node("a"), node("b")], [edge("a", "r", "b", n=1), edge("a", "r", "b", n=2)])
        both = shortest_paths(graph, ids("a"), ids("b"), k=3)
        assert [path.path.triples[0].properties for path in both] == [{"n": 1}, {"n": 2}]
        assert len(shortest_paths(graph, ids("a"), ids("b"))) == 1

    def test_the_length_is_limited(self, graph: ColumnarGraph) -> None:
        for hops, expected in ((2, {}), (3, {"ae": ["a r> b r> d s> e"]})):
            pairs = shortest_paths(graph, ids("a"), ids("e"), max_hops=hops, direction=Direction.OUT)
            assert found(pairs) == expected
            assert not pairs.truncated

    def test_relations_restrict_what_is_walked(self, graph: ColumnarGraph) -> None:
        assert found(shortest_paths(graph, ids("a"), ids("c"), relations=["r"])) == {"ac": ["a r> b r> d <r c"]}
        with pytest.raises(RelationNotFound, match="'q'"):
            shortest_paths(graph, ids("a"), ids("c"), relations=["q"])

    def test_a_node_has_one_path_of_no_edges_to_itself(self, graph: ColumnarGraph) -> None:
        assert found(shortest_paths(graph, ids("a"), ids("a"), k=3)) == {"aa": ["a"]}

    def test_a_self_loop_is_on_no_path(self) -> None:
        graph = ColumnarGraph.from_triples([("a", "r", "a"), ("a", "r", "b"), ("b", "r", "b")])
        assert found(shortest_paths(graph, ids("a"), ids("b"), k=9)) == {"ab": ["a r> b"]}

    def test_nodes_apart_have_no_path(self, graph: ColumnarGraph) -> None:
        assert found(shortest_paths(graph, ids("a"), ids("f"))) == {}

    def test_an_unknown_entity_is_named(self, graph: ColumnarGraph) -> None:
        with pytest.raises(EntityNotFound, match="'z'"):
            shortest_paths(graph, ids("a"), ids("z"))

    def test_a_source_named_twice_counts_once(self, graph: ColumnarGraph) -> None:
        assert len(shortest_paths(graph, ids("a", "b", "a"), ids("d", "d"))) == 2

    def test_a_cap_says_that_it_may_have_hidden_a_path(self) -> None:
        #   h -r-> x1, x2, x3;  x3 -r-> t;  t has four edges into it from y1, y2, y3 and x3
        graph = ColumnarGraph.from_triples(
            [("h", "r", f"x{n}") for n in (1, 2, 3)] + [(f"y{n}", "r", "t") for n in (1, 2, 3)] + [("x3", "r", "t")]
        )
        capped = shortest_paths(graph, ids("h"), ids("t"), direction=Direction.OUT, hub_cap=2)
        assert len(capped) == 0 and capped.truncated
        whole = shortest_paths(graph, ids("h"), ids("t"), direction=Direction.OUT, hub_cap=4)
        assert found(whole) == {"ht": ["h r> x3 r> t"]} and not whole.truncated


class TestAllPaths:
    def test_all_paths_that_visit_no_node_twice_are_found(self, graph: ColumnarGraph) -> None:
        every = shortest_paths(graph, ids("a"), ids("d"), k=11, max_hops=5)
        assert found(every) == {"ad": ["a r> b r> d", "a s> c r> d", "a <r e <s d"]}
        assert not every.truncated


# Against a naive implementation

NODES = 6
any_node = st.integers(0, NODES - 1)
any_edges = st.lists(st.tuples(any_node, st.integers(0, 1), any_node), max_size=14)
any_ends = st.lists(any_node, min_size=1, max_size=3, unique=True)


def naive(
    edges: list[tuple[int, int, int]], source: int, target: int, max_hops: int, direction: Direction
) -> list[tuple[int, ...]]:
    """List all simple paths as edge numbers, shortest first, then in the order of a depth-first search."""
    complete: list[tuple[int, ...]] = []

    def walk(at: int, visited: list[int], taken: list[int]) -> None:
        if at == target:
            complete.append(tuple(taken))
            return
        if len(taken) == max_hops:
            return
        steps = []
        for number, (head, relation, tail) in enumerate(edges):
            if head == at and direction is not Direction.IN:
                steps.append((False, relation, tail, number))
            if tail == at and direction is not Direction.OUT:
                steps.append((True, relation, head, number))
        for _, _, far, number in sorted(steps):
            if far not in visited:
                walk(far, [*visited, far], [*taken, number])

    walk(source, [source], [])
    return sorted(complete, key=len)  # stable: the order within one length stays


@settings(max_examples=100, deadline=None)
@given(any_edges, any_ends, any_ends, st.integers(1, 6), st.integers(0, 5), st.sampled_from(list(Direction)))
def test_the_paths_are_the_shortest_that_a_plain_search_lists(
    edges: list[tuple[int, int, int]],
    sources: list[int],
    targets: list[int],
    k: int,
    max_hops: int,
    direction: Direction,
) -> None:
    edges = sorted([(0, 0, 0), (0, 1, 0), *edges])  # so that relations and edges are numbered as here
    graph = ColumnarGraph.from_records(
        [node(str(number)) for number in range(NODES)],
        [edge(str(head), f"r{relation}", str(tail)) for head, relation, tail in edges],
    )
    result = shortest_paths(graph, ids(*map(str, sources)), ids(*map(str, targets)), k, max_hops, direction=direction)
    assert not result.truncated
    found: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for path in result:
        edges_of = tuple(triple.edge for triple in path.path.triples)
        found.setdefault((int(path.start), int(path.end)), []).append(edges_of)
    for source in sources:
        for target in targets:
            expected = naive(edges, source, target, max_hops, direction)
            got = found.get((source, target), [])
            assert list(map(len, got)) == list(map(len, expected[:k]))
            assert len(set(got)) == len(got) and set(got) <= set(expected)
    query = connecting(ids(*map(str, sources)), ids(*map(str, targets)), 1, max_hops, None, direction)
    every: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for path in paths(graph, replace(query, selector=Selector.ALL_SHORTEST)):
        edges_of = tuple(triple.edge for triple in path.path.triples)
        every.setdefault((int(path.start), int(path.end)), []).append(edges_of)
    for source in sources:
        for target in targets:
            expected = naive(edges, source, target, max_hops, direction)
            shortest = [path for path in expected if len(path) == len(expected[0])]
            assert sorted(every.get((source, target), [])) == sorted(shortest)
