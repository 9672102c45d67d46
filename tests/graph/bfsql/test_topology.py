"""Tests of `byokg.graph.bfsql.engine`."""

from __future__ import annotations

from typing import Any

import pytest

from byokg.graph.bfsql.protocol import SearchScope, breadth_first, intersection
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.store import Direction
from tests.graph.bfsql.graphs import small
from tests.graph.contract import edge, ids, node


def around(store: ColumnarGraph, *seeds: str, hops: int = 1, **options: Any) -> dict[str, int]:
    """Return the hops of each node reached."""
    found = breadth_first(store, store.numbers(ids(*seeds)), SearchScope(hops, **options))
    return dict(zip(store.ids(found.nodes), found.hops.tolist(), strict=True))


def edges(store: ColumnarGraph, *seeds: str, hops: int = 1, **options: Any) -> list[str]:
    """Return the edges of the subgraph, spelled and sorted."""
    found = breadth_first(store, store.numbers(ids(*seeds)), SearchScope(hops, **options))
    heads, tails = store.ids(found.nodes[found.edges.head]), store.ids(found.nodes[found.edges.tail])
    labels = [store.relations[number] for number in found.edges.relation.tolist()]
    return sorted(f"{head} {label} {tail}" for head, label, tail in zip(heads, labels, tails, strict=True))


class TestReach:
    def test_edges_are_walked_both_ways_and_each_node_has_its_fewest_hops(self) -> None:
        assert around(small(), "a", hops=2) == {"a": 0, "b": 1, "c": 1, "d": 2}

    def test_no_hops_reach_the_seeds_and_the_edges_among_them(self) -> None:
        assert around(small(), "a", "b", hops=0) == {"a": 0, "b": 0}
        assert edges(small(), "a", "b", hops=0) == ["a r b", "a s b", "a s b", "b s b"]

    def test_edges_between_nodes_of_the_last_hop_are_there(self) -> None:
        assert "b r c" in edges(small(), "a")

    def test_parallel_edges_and_loops_are_each_there(self) -> None:
        assert edges(small(), "a") == ["a r b", "a s b", "a s b", "b r c", "b s b", "c s a"]

    def test_no_seeds_reach_nothing(self) -> None:
        assert around(small()) == {} and edges(small()) == []

    def test_a_node_that_stands_alone_reaches_itself(self) -> None:
        assert around(small(), "f", hops=3) == {"f": 0}


class TestWhatChangesTopology:
    def test_walking_out_only_keeps_all_edges_among_what_is_reached(self) -> None:
        assert around(small(), "b", direction=Direction.OUT) == {"b": 0, "c": 1}
        assert around(small(), "b", direction=Direction.OUT, hops=2) == {"b": 0, "c": 1, "a": 2, "d": 2}
        assert "a r b" in edges(small(), "b", direction=Direction.OUT, hops=2)

    def test_walking_back_keeps_stored_orientation(self) -> None:
        assert around(small(), "c", direction=Direction.IN) == {"c": 0, "b": 1}
        assert edges(small(), "c", direction=Direction.IN) == ["b r c", "b s b"]

    def test_excluded_types_are_neither_shown_nor_walked_through(self) -> None:
        assert around(small(), "a", hops=3, excluded_types=frozenset(["Y"])) == {"a": 0, "b": 1}

    def test_a_seed_of_an_excluded_type_stays(self) -> None:
        assert around(small(), "c", excluded_types=frozenset(["Y"])) == {"c": 0, "a": 1, "b": 1}

    def test_edges_below_a_confidence_are_neither_shown_nor_walked_and_those_that_say_none_stay(self) -> None:
        assert around(small(), "c", min_confidence=0.7) == {"c": 0, "b": 1, "d": 1}
        assert edges(small(), "a", hops=2, min_confidence=0.7) == ["a r b", "a s b", "a s b", "b r c", "b s b"]

    def test_nodes_of_fewer_mentions_are_left_out_and_those_that_say_none_stay(self) -> None:
        # a - b - c and a - d - c, b mentioned once, d three times
        store = ColumnarGraph.from_records(
            [node("a"), node("b", total_mentions=1), node("c"), node("d", total_mentions=3)],
            [edge("a", "r", "b"), edge("b", "r", "c"), edge("a", "r", "d"), edge("d", "r", "c")],
        )
        assert around(store, "a", hops=2, min_mentions=2) == {"a": 0, "d": 1, "c": 2}
        assert around(store, "b", hops=1, min_mentions=2) == {"b": 0, "a": 1, "c": 1}

    def test_hubs_are_reached_but_not_walked_through_unless_they_are_seeds(self) -> None:
        # seed - hub, and hub has four more neighbours, one of which the seed knows by way of x as well
        store = ColumnarGraph.from_triples(
            [("seed", "r", "hub"), *(("hub", "r", f"n{at}") for at in range(4)), ("seed", "r", "x"), ("x", "r", "n0")]
        )
        assert around(store, "seed", hops=2, max_degree=4) == {"seed": 0, "hub": 1, "x": 1, "n0": 2}
        assert "hub r n0" in edges(store, "seed", hops=2, max_degree=4)
        assert len(around(store, "hub", max_degree=1)) == 6

    @pytest.mark.parametrize(
        ("reach", "said"),
        [
            (SearchScope(1), []),
            (SearchScope(1, Direction.OUT), ["direction=out"]),
            (
                SearchScope(1, excluded_types=frozenset("YX"), min_confidence=0.5, min_mentions=2, max_degree=9),
                ["exclude_entity_types=X,Y", "min_confidence=0.5", "min_mentions=2", "max_degree=9"],
            ),
        ],
    )
    def test_what_changes_topology_is_said(self, reach: SearchScope, said: list[str]) -> None:
        assert reach.restrictions() == said


class TestIntersection:
    def test_it_holds_what_is_near_every_seed_with_the_farthest_hops(self) -> None:
        store = small()
        found = intersection(store, store.numbers(ids("a", "d")), SearchScope(1))
        assert store.ids(found.nodes) == ["c"] and found.hops.tolist() == [1]
        found = intersection(store, store.numbers(ids("a", "d")), SearchScope(2))
        assert dict(zip(store.ids(found.nodes), found.hops.tolist(), strict=True)) == {"c": 1, "a": 2, "b": 2, "d": 2}


def test_degrees_count_edges_of_the_subgraph_and_a_loop_twice() -> None:
    store = small()
    found = breadth_first(store, store.numbers(ids("a")), SearchScope(1))
    assert dict(zip(store.ids(found.nodes), found.degrees.tolist(), strict=True)) == {"a": 4, "b": 6, "c": 2}
