"""Tests of `byokg.graph.paths`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.graph.columnar.folder import Arrays
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.paths import Growth, follow, follow_all, grow, labels, paths_of, start
from byokg.graph.property_view import viewed
from byokg.graph.store import Direction, EdgeBatch, GraphStore, NodeArray, RelationArray
from byokg.types import EntityId
from tests.graph.contract import edge, ids, node
from tests.graph.test_own_store import OwnStore

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

    @pytest.mark.parametrize(("most", "kept"), [(17, 10), (16, 9), (11, 5), (1, 1)])
    def test_of_the_relations_of_a_hub_so_many_edges_are_looked_at_that_all_stay_few(
        self, most: int, kept: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # hub -r-> 10 leaves, hub -s-> 6 others, hub -t-> a
        leads_to = {"r": [f"leaf {n}" for n in range(10)], "s": [f"other {n}" for n in range(6)], "t": ["a"]}
        graph = ColumnarGraph.from_triples(("hub", label, end) for label, ends in leads_to.items() for end in ends)
        monkeypatch.setattr("byokg.graph.paths._MOST_EDGES", most)
        growth = grow(graph, start(number(graph, "hub")), [0], NONE, 10)
        assert spelled_growth(graph, growth) == [((label,), ends[:kept]) for label, ends in leads_to.items()]

    def test_a_hub_that_several_metapaths_reach_counts_for_each(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # a -r-> hub, a -s-> hub, hub -t-> 10 leaves: 10 edges are 20 for two metapaths, and the way back counts, too.
        leaves = [f"leaf {n}" for n in range(10)]
        graph = ColumnarGraph.from_triples(
            [("a", "r", "hub"), ("a", "s", "hub"), *(("hub", "t", leaf) for leaf in leaves)]
        )
        growth = grow(graph, start(number(graph, "a")), [0], NONE, 10)
        monkeypatch.setattr("byokg.graph.paths._MOST_EDGES", 12)
        found = spelled_growth(graph, grow(graph, growth, [0, 1], graph.numbers(ids("a")), 10))
        assert found == [(("r", "t"), leaves[:4]), (("s", "t"), leaves[:4])]

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
        walks = follow(graph, ids(source), path, avoid=graph.ids(known))
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


@given(
    TRIPLES, st.lists(st.lists(st.sampled_from(["r", "^r", "s", "^s", "t"]), max_size=3), min_size=1), st.integers(1, 3)
)
def test_metapaths_followed_together_lead_where_each_leads_alone(
    triples: list[tuple[str, str, str]], asked: list[list[str]], most: int
) -> None:
    graph = ColumnarGraph.from_triples([*triples, ("a", "r", "a"), ("b", "s", "c"), ("c", "t", "d")])
    avoid = ids("b")
    for cap in (None, most):
        together = follow_all(graph, ids("a"), asked, cap, cap, avoid)
        alone = [follow(graph, ids("a"), path, cap, cap, avoid) for path in asked]
        for one, other in zip(together, alone, strict=True):
            assert (one.metapath, one.ends.tolist(), one.counts.tolist(), one.truncated) == (
                other.metapath,
                other.ends.tolist(),
                other.counts.tolist(),
                other.truncated,
            )
        assert paths_of([(one, one.ends) for one in together]) == [other.paths(other.ends) for other in alone]


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


class FarNumbers(OwnStore):
    """A graph whose node numbers are spread over 62 bits, as those of a store over the network may be."""

    FACTOR = 1 << 58

    def ids(self, nodes: NodeArray) -> list[EntityId]:
        return self._graph.ids(nodes // self.FACTOR)

    def edges(
        self, nodes: NodeArray, direction: Direction = Direction.BOTH, relations: RelationArray | None = None
    ) -> EdgeBatch:
        batch = self._graph.edges(nodes // self.FACTOR, direction, relations)
        head, tail = (end.astype(np.int64) * self.FACTOR for end in (batch.head, batch.tail))
        return replace(batch, head=head, tail=tail)


@pytest.mark.parametrize("properties", [False, True])
@pytest.mark.parametrize("hub_cap", [2, 3, 4])
def test_of_a_hub_no_more_edges_are_read_than_walked(
    properties: bool, hub_cap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byokg.graph.pathql.expander._BISECT_FROM", 0)
    read: list[int] = []

    def batch(arrays: Arrays, *given: Any) -> EdgeBatch:
        read.append(len(given[3]))
        return made(arrays, *given)

    made = Arrays.batch
    monkeypatch.setattr(Arrays, "batch", batch)
    edges = [edge("hub", label, f"{label}{n}") for label in "rs" for n in range(3)]
    nodes = [node("hub", size=3) if properties else node("hub"), *(node(one.tail) for one in edges)]
    graph = ColumnarGraph.from_records(nodes, edges)
    walks = follow(viewed(graph), ids("hub"), ["r"], hub_cap=hub_cap)
    assert graph.ids(walks.ends) == ids("r0", "r1", "r2")[:hub_cap]
    assert walks.truncated == (hub_cap < 3)
    assert all(count <= hub_cap + 1 for count in read)


def test_a_step_is_walked_along_its_twin_as_well_and_a_fact_stored_twice_counts_once() -> None:
    # film -by-> director, director -made-> film: Alien both ways, Jaws and Duel one way each.
    triples = [("Scott", "made", "Alien"), ("Alien", "by", "Scott"), ("Jaws", "by", "Scott"), ("Scott", "made", "Duel")]
    graph = ColumnarGraph.from_triples([*triples, *((film, "year", "1979") for film in ("Alien", "Jaws", "Duel"))])
    twins = {"made": "by", "by": "made"}
    for step in ("made", "^by"):
        alone, walks = (follow(graph, ids("Scott"), [step], twins=some) for some in ({}, twins))
        assert len(alone.ends) == 2
        assert sorted(graph.ids(walks.ends)) == ["Alien", "Duel", "Jaws"] and walks.counts.tolist() == [1, 1, 1]
        ends = {path.end: path.triples[0].relation for path in walks.paths(walks.ends)}
        assert (ends[EntityId("Jaws")], ends[EntityId("Duel")]) == ("by", "made")
    assert follow(graph, ids("Scott"), ["made", "year"], twins=twins).counts.tolist() == [3]
