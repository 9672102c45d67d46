"""Tests of `byokg.graph.paths`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import EntityNotFound, RelationNotFound
from byokg.graph import paths as path_search
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.paths import Growth, PairPaths, grow, labels, shortest_paths, start
from byokg.graph.store import Direction, EdgeBatch, GraphStore, NodeArray, RelationArray
from byokg.graph.traversal import follow_metapath
from byokg.types import EntityId, Path
from tests.graph.contract import edge, ids, node


def spelled(path: Path) -> str:
    """Write a path as `a r> b <s c`."""
    text = str(path.source)
    for triple, inverse, after in zip(path.triples, path.inverse, path.nodes[1:], strict=True):
        text += f" <{triple.relation} {after}" if inverse else f" {triple.relation}> {after}"
    return text


def found(pairs: list[PairPaths]) -> dict[str, list[str]]:
    return {f"{pair.source}{pair.target}": [spelled(path) for path in pair.paths] for pair in pairs}


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
        assert [(pair.source, pair.target) for pair in pairs] == [("a", "d"), ("a", "e"), ("c", "d"), ("c", "e")]

    def test_paths_carry_edge_numbers_and_properties(self, graph: ColumnarGraph) -> None:
        [pair] = shortest_paths(graph, ids("b"), ids("e"), direction=Direction.OUT)
        assert [triple.properties for triple in pair.paths[0].triples] == [{"since": 1990}, {}]
        [again] = shortest_paths(graph, ids("e"), ids("b"), direction=Direction.IN)
        numbers = [triple.edge for triple in pair.paths[0].triples]
        assert [triple.edge for triple in again.paths[0].triples] == numbers[::-1]

    def test_more_paths_come_shortest_first_and_in_edge_order(self, graph: ColumnarGraph) -> None:
        pairs = shortest_paths(graph, ids("a"), ids("d"), k=5, direction=Direction.OUT)
        assert found(pairs) == {"ad": ["a r> b r> d", "a s> c r> d"]}
        pairs = shortest_paths(graph, ids("a"), ids("e"), k=3)
        assert found(pairs) == {"ae": ["a <r e", "a r> b r> d s> e", "a s> c r> d s> e"]}

    def test_parallel_edges_are_different_paths(self) -> None:
        graph = ColumnarGraph.from_records([node("a"), node("b")], [edge("a", "r", "b", n=1), edge("a", "r", "b", n=2)])
        [pair] = shortest_paths(graph, ids("a"), ids("b"), k=3)
        assert [path.triples[0].properties for path in pair.paths] == [{"n": 1}, {"n": 2}]
        assert len(shortest_paths(graph, ids("a"), ids("b"))[0].paths) == 1

    def test_the_length_is_limited(self, graph: ColumnarGraph) -> None:
        for hops, expected in ((2, []), (3, ["a r> b r> d s> e"])):
            pairs = shortest_paths(graph, ids("a"), ids("e"), max_hops=hops, direction=Direction.OUT)
            assert found(pairs) == {"ae": expected}
            assert not pairs[0].truncated

    def test_relations_restrict_what_is_walked(self, graph: ColumnarGraph) -> None:
        assert found(shortest_paths(graph, ids("a"), ids("c"), relations=["r"])) == {"ac": ["a r> b r> d <r c"]}
        with pytest.raises(RelationNotFound, match="'q'"):
            shortest_paths(graph, ids("a"), ids("c"), relations=["q"])

    def test_a_node_has_one_path_of_no_edges_to_itself(self, graph: ColumnarGraph) -> None:
        assert found(shortest_paths(graph, ids("a"), ids("a"), k=3)) == {"aa": ["a"]}

    def test_a_self_loop_is_on_no_path(self) -> None:
        graph = ColumnarGraph.from_triples([("a", "r", "a"), ("a", "r", "b"), ("b", "r", "b")])
        assert found(shortest_paths(graph, ids("a"), ids("b"), k=9)) == {"ab": ["a r> b"]}

    def test_no_path_no_source_and_no_target_are_empty_results(self, graph: ColumnarGraph) -> None:
        assert found(shortest_paths(graph, ids("a"), ids("f"))) == {"af": []}
        assert shortest_paths(graph, [], ids("a")) == shortest_paths(graph, ids("a"), []) == []

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
        [pair] = shortest_paths(graph, ids("h"), ids("t"), direction=Direction.OUT, per_node_cap=2)
        assert pair.paths == () and pair.truncated
        [pair] = shortest_paths(graph, ids("h"), ids("t"), direction=Direction.OUT, per_node_cap=4)
        assert spelled(pair.paths[0]) == "h r> x3 r> t" and not pair.truncated


class TestAllPaths:
    def test_all_paths_that_visit_no_node_twice_are_found(self, graph: ColumnarGraph) -> None:
        [pair] = shortest_paths(graph, ids("a"), ids("d"), k=11, max_hops=5)
        assert [spelled(path) for path in pair.paths] == ["a r> b r> d", "a s> c r> d", "a <r e <s d"]
        assert not pair.truncated


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


@settings(max_examples=300, deadline=None)
@given(any_edges, any_ends, any_ends, st.integers(1, 6), st.integers(0, 5), st.sampled_from(list(Direction)))
def test_the_paths_are_the_first_ones_that_a_plain_search_lists(
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
    pairs = shortest_paths(graph, ids(*map(str, sources)), ids(*map(str, targets)), k, max_hops, direction=direction)
    for pair in pairs:
        expected = naive(edges, int(pair.source), int(pair.target), max_hops, direction)
        assert [tuple(triple.edge for triple in path.triples) for path in pair.paths] == expected[:k]
        assert all(path.end == pair.target for path in pair.paths)
        assert not pair.truncated


def test_a_search_through_more_partial_paths_than_are_kept_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_search, "_ROWS", (2, 4))
    #   a -> x1..x5 -> h, and h -> x1..x5 (ways back), h -> t: many walks of five edges, most of them visiting h twice
    edges = [("a", "r", f"x{n}") for n in range(5)] + [(f"x{n}", "r", "h") for n in range(5)]
    edges += [("h", "r", f"x{n}") for n in range(5)] + [("h", "r", "t")]
    graph = ColumnarGraph.from_triples(edges)
    [pair] = shortest_paths(graph, ids("a"), ids("t"), k=6, max_hops=5, direction=Direction.OUT)
    assert [len(path.triples) for path in pair.paths] == [3] * 5
    assert pair.truncated


#   Alien -directed_by-> Scott <-directed_by- Blade
#   Alien -starred-> Weaver <-starred- Aliens -directed_by-> Cameron
FILMS = [
    ("Alien", "directed_by", "Scott"),
    ("Blade", "directed_by", "Scott"),
    ("Alien", "starred", "Weaver"),
    ("Aliens", "starred", "Weaver"),
    ("Aliens", "directed_by", "Cameron"),
]

NONE = np.empty(0, np.int64)

Spelled = list[tuple[tuple[str, ...], list[str]]]


@pytest.fixture
def films() -> ColumnarGraph:
    return ColumnarGraph.from_triples(FILMS)


def number(store: GraphStore, name: str) -> int:
    return int(store.numbers(ids(name))[0])


def spelled_growth(store: GraphStore, growth: Growth) -> Spelled:
    """Write each metapath as (labels, ids of its ends)."""
    return [
        (labels(store, steps), list(map(str, store.ids(growth.reached(path)))))
        for path, steps in enumerate(growth.steps)
    ]


class TestStart:
    def test_it_is_one_metapath_without_steps(self, films: ColumnarGraph) -> None:
        growth = start(number(films, "Weaver"))
        assert len(growth) == 1
        assert spelled_growth(films, growth) == [((), ["Weaver"])]


class TestGrow:
    def test_steps_go_both_ways_and_come_in_order(self, films: ColumnarGraph) -> None:
        growth = grow(films, start(number(films, "Alien")), [0], NONE, 10)
        assert spelled_growth(films, growth) == [(("directed_by",), ["Scott"]), (("starred",), ["Weaver"])]
        growth = grow(films, growth, [0, 1], NONE, 10)
        assert spelled_growth(films, growth) == [
            (("directed_by", "^directed_by"), ["Alien", "Blade"]),
            (("starred", "^starred"), ["Alien", "Aliens"]),
        ]

    def test_nodes_to_avoid_are_not_come_to(self, films: ColumnarGraph) -> None:
        alien = number(films, "Alien")
        growth = grow(films, start(alien), [0], np.array([alien]), 10)
        growth = grow(films, growth, [0, 1], np.array([alien, number(films, "Aliens")]), 10)
        assert spelled_growth(films, growth) == [(("directed_by", "^directed_by"), ["Blade"])]

    def test_only_the_chosen_are_lengthened_in_the_order_chosen(self, films: ColumnarGraph) -> None:
        first = grow(films, start(number(films, "Alien")), [0], NONE, 10)
        assert spelled_growth(films, grow(films, first, [1], NONE, 10)) == [
            (("starred", "^starred"), ["Alien", "Aliens"])
        ]
        assert [path for path, _ in spelled_growth(films, grow(films, first, [1, 0], NONE, 10))] == [
            ("starred", "^starred"),
            ("directed_by", "^directed_by"),
        ]

    def test_parallel_edges_and_self_loops_reach_a_node_once(self) -> None:
        graph = ColumnarGraph.from_triples([("a", "r", "a"), ("a", "r", "b")])
        growth = grow(graph, start(number(graph, "a")), [0], NONE, 10)
        assert spelled_growth(graph, growth) == [(("r",), ["a", "b"]), (("^r",), ["a"])]

    def test_a_dead_end_grows_into_nothing(self, films: ColumnarGraph) -> None:
        scott = number(films, "Scott")
        everything = films.numbers(ids("Alien", "Blade"))
        dead = grow(films, start(scott), [0], everything, 10)
        assert (len(dead), dead.steps.shape, dead.bounds.tolist()) == (0, (0, 1), [0])
        assert len(grow(films, dead, [], everything, 10)) == 0
        assert len(grow(films, start(scott), [], NONE, 10)) == 0

    def test_a_sample_is_spread_over_what_was_reached(self) -> None:
        # hub -r-> l0 … l9; each leaf li -s-> ti. Of 10 leaves 4 are looked at: the 1st, 4th, 7th and 10th.
        graph = ColumnarGraph.from_triples(
            [*(("hub", "r", f"l{i}") for i in range(10)), *((f"l{i}", "s", f"t{i}") for i in range(10))]
        )
        hub = np.array([number(graph, "hub")])
        growth = grow(graph, start(int(hub[0])), [0], hub, 4)
        assert len(growth.reached(0)) == 10
        assert spelled_growth(graph, grow(graph, growth, [0], hub, 4)) == [(("r", "s"), ["t0", "t3", "t6", "t9"])]

    def test_node_numbers_of_any_size_give_the_same(self, films: ColumnarGraph) -> None:
        far = cast(GraphStore, FarNumbers(films))
        scott = number(films, "Scott")
        near_growth, far_growth = start(scott), start(scott * FarNumbers.FACTOR)
        for _ in range(3):
            near_growth = grow(films, near_growth, range(len(near_growth)), NONE, 10)
            far_growth = grow(far, far_growth, range(len(far_growth)), NONE, 10)
            assert far_growth.steps.tolist() == near_growth.steps.tolist()
            assert far_growth.bounds.tolist() == near_growth.bounds.tolist()
            assert (far_growth.ends // FarNumbers.FACTOR).tolist() == near_growth.ends.tolist()


TRIPLES = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from("rst"), st.sampled_from("abcdef")), min_size=1, max_size=20
)


@given(TRIPLES, st.sets(st.sampled_from("abcdef"), max_size=2), st.integers(1, 3))
def test_growing_lists_exactly_the_metapaths_that_exist(
    triples: list[tuple[str, str, str]], avoid: set[str], hops: int
) -> None:
    graph = ColumnarGraph.from_triples(triples)
    source = triples[0][0]
    known = graph.numbers(ids(*sorted(avoid & set(graph.entities()))))
    growth = start(number(graph, source))
    for _ in range(hops):
        growth = grow(graph, growth, range(len(growth)), known, 100)
    expected = enumerated(triples, source, avoid, hops)
    assert {path: set(ends) for path, ends in spelled_growth(graph, growth)} == expected
    assert len(growth) == len(expected)
    assert all(len(set(ends)) == len(ends) for _, ends in spelled_growth(graph, growth))
    for path, ends in spelled_growth(graph, growth):  # and the traversal agrees
        walks = follow_metapath(graph, ids(source), path, avoid=graph.ids(known))
        assert set(graph.ids(walks.ends)) == set(ends)


@given(TRIPLES, st.integers(1, 3))
def test_a_sample_finds_a_subset(triples: list[tuple[str, str, str]], sample: int) -> None:
    graph = ColumnarGraph.from_triples(triples)
    whole = sampled = start(number(graph, triples[0][0]))
    for _ in range(3):
        whole = grow(graph, whole, range(len(whole)), NONE, 100)
        sampled = grow(graph, sampled, range(len(sampled)), NONE, sample)
    ends = dict(spelled_growth(graph, whole))
    assert all(set(some) <= set(ends[path]) for path, some in spelled_growth(graph, sampled))


def test_labels_mark_steps_against_the_arrow(films: ColumnarGraph) -> None:
    # A step is twice the relation number, plus one against the arrow.
    directed, starred = films.relations.index("directed_by"), films.relations.index("starred")
    assert labels(films, [2 * starred + 1, 2 * directed]) == ("^starred", "directed_by")
    assert labels(films, np.empty(0, np.int64)) == ()


def enumerated(
    triples: Iterable[tuple[str, str, str]], source: str, avoid: Collection[str], hops: int
) -> dict[tuple[str, ...], set[str]]:
    """List metapaths and what they reach, one edge at a time."""
    found: dict[tuple[str, ...], set[str]] = {(): {source}}
    for _ in range(hops):
        longer: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for path, reached in found.items():
            for head, relation, tail in triples:
                if head in reached and tail not in avoid:
                    longer[(*path, relation)].add(tail)
                if tail in reached and head not in avoid:
                    longer[(*path, f"^{relation}")].add(head)
        found = longer
    return found


class FarNumbers:
    """A graph whose node numbers are spread over 62 bits, as those of a store over the network may be."""

    FACTOR = 1 << 58

    def __init__(self, graph: ColumnarGraph) -> None:
        self._graph = graph

    @property
    def relations(self) -> Sequence[str]:
        return self._graph.relations

    def ids(self, nodes: NodeArray) -> list[EntityId]:
        return self._graph.ids(nodes // self.FACTOR)

    def edges(
        self, nodes: NodeArray, direction: Direction = Direction.BOTH, relations: RelationArray | None = None
    ) -> EdgeBatch:
        batch = self._graph.edges(nodes // self.FACTOR, direction, relations)
        head, tail = (end.astype(np.int64) * self.FACTOR for end in (batch.head, batch.tail))
        return replace(batch, head=head, tail=tail)
