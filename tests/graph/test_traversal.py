from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import EntityNotFound, RelationNotFound
from byokg.graph import traversal
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.paths import follow
from byokg.graph.store import Direction
from byokg.graph.traversal import Caps, ReachedEdges, expand, k_hop_edges, neighbours, triples
from byokg.types import EntityId, Path, Triple
from tests.graph.contract import edge, ids, node, spelled

# Films and people:
#   Alien  -directed_by-> Scott     Blade -directed_by-> Scott     Titanic -directed_by-> Cameron
#   Aliens -directed_by-> Cameron
#   Alien  -starred-> Weaver        Aliens -starred-> Weaver       Titanic -starred-> Winslet
FILMS = [
    ("Alien", "directed_by", "Scott"),
    ("Alien", "starred", "Weaver"),
    ("Blade", "directed_by", "Scott"),
    ("Aliens", "directed_by", "Cameron"),
    ("Aliens", "starred", "Weaver"),
    ("Titanic", "directed_by", "Cameron"),
    ("Titanic", "starred", "Winslet"),
]


@pytest.fixture
def films() -> ColumnarGraph:
    return ColumnarGraph.from_triples(FILMS)


class TestExpand:
    @pytest.mark.parametrize("many", [0, 1 << 13], ids=["capped while read", "capped afterwards"])
    @settings(max_examples=40, deadline=None)
    @given(
        st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 4), st.booleans()), max_size=40),
        st.sampled_from(Direction),
        st.sampled_from((None, [1], [0, 2])),
        st.sampled_from((None, 1, 3)),
        st.sampled_from((None, 1, 2)),
    )
    def test_caps_keep_the_first_edges_of_each_node_and_relation(
        self,
        many: int,
        edges: list[tuple[int, int, int, bool]],
        direction: Direction,
        relations: list[int] | None,
        per_node: int | None,
        per_relation: int | None,
    ) -> None:
        made = [Triple(f"n{a}", f"r{r}", f"n{b}", undirected=both) for a, r, b, both in edges]  # type: ignore[arg-type]
        made += [Triple("n0", f"r{r}", "n1") for r in range(3)]  # type: ignore[arg-type]
        graph = ColumnarGraph.from_records([node(f"n{n}") for n in range(5)], made)
        wanted = None if relations is None else np.array(relations)
        whole = graph.edges(np.arange(5), direction, wanted)
        seen: Counter[tuple[int, ...]] = Counter()
        kept = []
        for row, (origin, inverse, relation) in enumerate(
            zip(whole.origin.tolist(), whole.inverse.tolist(), whole.relation.tolist(), strict=True)
        ):
            if per_relation is None or seen[origin, inverse, relation] < per_relation:
                seen[origin, inverse, relation] += 1
                if per_node is None or seen[origin,] < per_node:
                    seen[origin,] += 1
                    kept.append(row)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(traversal, "_MANY", many)
            found = expand(graph, np.arange(5), direction, wanted, Caps(per_node, per_relation))
        assert found.edges.edge.tolist() == whole.edge[kept].tolist()
        assert found.edges.origin.tolist() == whole.origin[kept].tolist()
        assert found.truncated == (len(kept) < len(whole))


class TestNeighbours:
    def test_it_takes_ids_and_labels(self, films: ColumnarGraph) -> None:
        batch = neighbours(films, ids("Weaver", "Alien"), relations=["starred"])
        assert spelled(films, batch) == [
            (0, True, "Alien", "starred", "Weaver"),
            (0, True, "Aliens", "starred", "Weaver"),
            (1, False, "Alien", "starred", "Weaver"),
        ]

    def test_direction_is_seen_from_the_entity(self, films: ColumnarGraph) -> None:
        assert len(neighbours(films, ids("Alien"), Direction.OUT)) == 2
        assert len(neighbours(films, ids("Alien"), Direction.IN)) == 0

    def test_unknown_entities_and_relations_raise(self, films: ColumnarGraph) -> None:
        with pytest.raises(EntityNotFound, match="'Predator'"):
            neighbours(films, ids("Predator"))
        with pytest.raises(RelationNotFound, match="nearest: 'directed_by'"):
            neighbours(films, ids("Alien"), relations=["directd_by"])

    def test_triples_spells_edges_out_with_number_and_properties(self) -> None:
        graph = ColumnarGraph.from_records([node("a"), node("b")], [edge("b", "r", "a"), edge("a", "s", "b", since=1)])
        assert triples(graph, neighbours(graph, ids("a"))) == [
            Triple(EntityId("a"), "s", EntityId("b"), 0, {"since": 1}),
            Triple(EntityId("b"), "r", EntityId("a"), 1),
        ]


def met(store: ColumnarGraph, reached: ReachedEdges) -> list[str]:
    return [*map(str, store.ids(reached.nodes))]


class TestNodesOfKHopEdges:
    def test_nodes_come_by_their_fewest_hops(self, films: ColumnarGraph) -> None:
        within = [met(films, k_hop_edges(films, ids("Scott"), hops)) for hops in range(1, 5)]
        assert within == [
            ["Scott"],
            ["Scott", "Alien", "Blade"],
            ["Scott", "Alien", "Blade", "Weaver"],
            ["Scott", "Alien", "Blade", "Weaver", "Aliens"],
        ]
        assert not k_hop_edges(films, ids("Scott"), 4).truncated

    def test_one_hop_leaves_the_sources_alone_each_once(self, films: ColumnarGraph) -> None:
        assert met(films, k_hop_edges(films, ids("Weaver", "Scott", "Weaver"), 1)) == ["Scott", "Weaver"]
        assert k_hop_edges(films, ids("Weaver", "Scott", "Weaver"), 0).truncated_hops == ()

    def test_it_stops_when_nothing_new_is_found(self, films: ColumnarGraph) -> None:
        reached = k_hop_edges(films, ids("Alien"), 9, Direction.OUT)
        assert met(films, reached) == ["Alien", "Scott", "Weaver"]
        assert reached.truncated_hops == (False, False)

    def test_relations_restrict_what_is_walked(self, films: ColumnarGraph) -> None:
        reached = k_hop_edges(films, ids("Cameron"), 3, relations=["directed_by"])
        assert set(met(films, reached)) == {"Cameron", "Aliens", "Titanic"}

    def test_a_cap_on_hops_keeps_the_lowest_numbers_and_says_so(self, films: ColumnarGraph) -> None:
        reached = k_hop_edges(films, ids("Alien"), 3, per_hop_cap=1)
        assert met(films, reached) == ["Alien", "Scott", "Blade"]
        assert reached.truncated_hops == (True, False, False)
        assert reached.truncated

    def test_a_cap_on_nodes_keeps_their_first_edges_and_says_so(self, films: ColumnarGraph) -> None:
        assert met(films, k_hop_edges(films, ids("Cameron"), 2, per_node_cap=1)) == ["Cameron", "Aliens"]
        assert k_hop_edges(films, ids("Cameron"), 1, per_node_cap=1).truncated_hops == (True,)

    def test_a_cap_on_relations_counts_for_each_node_relation_and_direction(self, films: ColumnarGraph) -> None:
        # Scott <-directed_by- Alien, Blade; Weaver <-starred- Alien, Aliens
        reached = k_hop_edges(films, ids("Scott", "Weaver"), 2, per_relation_cap=1)
        assert met(films, reached) == ["Scott", "Weaver", "Alien"]
        assert k_hop_edges(films, ids("Scott", "Weaver"), 1, per_relation_cap=1).truncated_hops == (True,)
        assert not k_hop_edges(films, ids("Scott", "Weaver"), 1, per_relation_cap=2).truncated


class TestKHopEdges:
    def test_edges_come_by_hop_and_each_once(self, films: ColumnarGraph) -> None:
        reached = k_hop_edges(films, ids("Scott"), 3)
        found = [(triple.head, triple.relation, triple.tail) for triple in triples(films, reached.edges)]
        assert found == [
            ("Alien", "directed_by", "Scott"),
            ("Blade", "directed_by", "Scott"),
            ("Alien", "starred", "Weaver"),
            ("Aliens", "starred", "Weaver"),
        ]
        assert reached.hops.tolist() == [1, 1, 2, 3]
        assert films.ids(reached.nodes[reached.edges.origin]) == ["Scott", "Scott", "Alien", "Weaver"]
        assert not reached.truncated

    def test_direction_is_seen_from_the_node_left(self, films: ColumnarGraph) -> None:
        assert len(k_hop_edges(films, ids("Scott"), 2, Direction.OUT).edges) == 0
        assert len(k_hop_edges(films, ids("Scott"), 2, Direction.IN).edges) == 2

    def test_an_edge_between_two_sources_and_a_self_loop_count_once(self) -> None:
        graph = ColumnarGraph.from_triples([("a", "r", "b"), ("b", "r", "a"), ("a", "r", "a")])
        reached = k_hop_edges(graph, ids("a", "b"), 2)
        assert sorted(reached.edges.edge.tolist()) == [0, 1, 2]

    def test_a_capped_edge_that_is_met_from_its_other_end_is_there(self, films: ColumnarGraph) -> None:
        # From Cameron only Aliens is walked; from Aliens both of its edges, directed_by again.
        reached = k_hop_edges(films, ids("Cameron"), 2, per_node_cap=1)
        found = [(triple.head, triple.relation, triple.tail) for triple in triples(films, reached.edges)]
        assert found == [("Aliens", "directed_by", "Cameron")]
        assert reached.truncated_hops == (True, True)

    def test_no_hops_and_no_sources_are_no_edges(self, films: ColumnarGraph) -> None:
        assert len(k_hop_edges(films, ids("Scott"), 0).edges) == 0
        assert len(k_hop_edges(films, [], 2).edges) == 0


class TestFollow:
    def test_a_step_may_go_against_the_arrow(self, films: ColumnarGraph) -> None:
        # Weaver <- Alien -> Scott, Weaver <- Aliens -> Cameron
        walks = follow(films, ids("Weaver"), ["^starred", "directed_by"])
        assert films.ids(walks.ends) == ["Scott", "Cameron"]
        assert walks.counts.tolist() == [1.0, 1.0]
        assert not walks.truncated

    def test_ends_of_more_walks_come_first_then_lower_numbers(self) -> None:
        #   s -r-> x, y;  x -q-> u, v;  y -q-> v, w : v by two walks, u and w by one
        graph = ColumnarGraph.from_triples(
            [("s", "r", "x"), ("s", "r", "y"), ("x", "q", "u"), ("x", "q", "v"), ("y", "q", "w"), ("y", "q", "v")]
        )
        walks = follow(graph, ids("s"), ["r", "q"])
        assert graph.ids(walks.ends) == ["v", "u", "w"]
        assert walks.counts.tolist() == [2.0, 1.0, 1.0]

    def test_parallel_edges_are_walks_of_their_own(self) -> None:
        graph = ColumnarGraph.from_records(
            [node("a"), node("b"), node("c")],
            [edge("a", "r", "b", n=1), edge("a", "r", "c"), edge("a", "r", "c", n=2), edge("c", "s", "b")],
        )
        walks = follow(graph, ids("a"), ["r"])
        assert graph.ids(walks.ends) == ["c", "b"]
        assert walks.counts.tolist() == [2.0, 1.0]
        assert walks.path(int(walks.ends[1])).triples[0].properties == {"n": 1}

    def test_a_walk_may_come_back_to_where_it_started(self, films: ColumnarGraph) -> None:
        walks = follow(films, ids("Alien"), ["directed_by", "^directed_by"])
        assert films.ids(walks.ends) == ["Alien", "Blade"]

    def test_paths_are_concrete_walks_with_edge_numbers(self, films: ColumnarGraph) -> None:
        walks = follow(films, ids("Weaver"), ["^starred", "directed_by"])
        cameron = int(films.numbers(ids("Cameron"))[0])
        path = walks.path(cameron)
        batch = neighbours(films, ids("Aliens"), Direction.OUT)
        directed, starred = batch.edge.tolist()
        assert path == Path(
            EntityId("Weaver"),
            (
                Triple(EntityId("Aliens"), "starred", EntityId("Weaver"), starred),
                Triple(EntityId("Aliens"), "directed_by", EntityId("Cameron"), directed),
            ),
            (True, False),
        )
        assert path.nodes == ("Weaver", "Aliens", "Cameron")
        assert path.end == "Cameron"

    def test_paths_come_in_the_order_asked_and_are_the_same_each_time(self, films: ColumnarGraph) -> None:
        walks = follow(films, ids("Weaver", "Winslet"), ["^starred", "directed_by"])
        backwards = walks.ends[::-1]
        assert [path.end for path in walks.paths(backwards)] == films.ids(backwards)
        assert walks.paths(backwards) == walks.paths(backwards)
        assert walks.paths([]) == []

    def test_a_path_to_where_no_walk_ends_is_a_mistake_of_the_caller(self, films: ColumnarGraph) -> None:
        walks = follow(films, ids("Weaver"), ["^starred"])
        for name in ("Weaver", "Winslet", "Scott"):
            with pytest.raises(ValueError, match="no walk along"):
                walks.path(int(films.numbers(ids(name))[0]))

    def test_a_dead_end_is_an_empty_result(self, films: ColumnarGraph) -> None:
        walks = follow(films, ids("Scott"), ["directed_by", "starred"])
        assert len(walks.ends) == 0
        assert walks.paths([]) == []

    def test_no_hops_end_at_the_sources(self, films: ColumnarGraph) -> None:
        walks = follow(films, ids("Scott", "Alien", "Scott"), [])
        assert films.ids(walks.ends) == ["Alien", "Scott"]
        assert walks.path(int(walks.ends[0])) == Path(EntityId("Alien"), (), ())

    def test_unknown_sources_and_relations_raise_also_after_a_dead_end(self, films: ColumnarGraph) -> None:
        with pytest.raises(EntityNotFound, match="'Predator'"):
            follow(films, ids("Predator"), ["starred"])
        for step in ("stared", "^stared"):
            with pytest.raises(RelationNotFound, match=r"'stared'.*nearest: 'starred'"):
                follow(films, ids("Scott"), ["starred", step])

    def test_a_label_that_starts_with_a_caret_can_be_walked_both_ways(self) -> None:
        graph = ColumnarGraph.from_triples([("a", "^up", "b"), ("b", "r", "c")])
        assert graph.ids(follow(graph, ids("a"), ["^up"]).ends) == ["b"]
        assert graph.ids(follow(graph, ids("b"), ["^^up"]).ends) == ["a"]

    def test_a_frontier_cap_keeps_the_ends_of_most_walks_and_says_so(self) -> None:
        #   s -r-> x, y, z;  x, y -q-> v;  x -q-> t;  z -q-> w : v by two walks
        graph = ColumnarGraph.from_triples(
            [
                *(("s", "r", "x"), ("s", "r", "y"), ("s", "r", "z")),
                *(("x", "q", "t"), ("x", "q", "v"), ("y", "q", "v"), ("z", "q", "w")),
            ]
        )
        walks = follow(graph, ids("s"), ["r", "q"], max_frontier=3)
        assert not walks.truncated
        walks = follow(graph, ids("s"), ["r", "q"], max_frontier=2)
        assert graph.ids(walks.ends) == ["v", "t"]
        assert walks.truncated
        assert walks.path(int(walks.ends[1])).nodes == ("s", "x", "t")

    def test_a_hub_cap_keeps_the_first_edges_of_each_node_and_says_so(self, films: ColumnarGraph) -> None:
        walks = follow(films, ids("Scott", "Cameron"), ["^directed_by"], hub_cap=1)
        assert films.ids(walks.ends) == ["Alien", "Aliens"]
        assert walks.truncated
        assert not follow(films, ids("Scott", "Cameron"), ["^directed_by"], hub_cap=2).truncated


# Against a naive implementation


@dataclass(frozen=True)
class Naive:
    """The same questions answered edge by edge in plain Python; an edge is (head, relation, tail)."""

    edges: list[tuple[int, int, int]]

    def steps(self, at: int, relations: Collection[int], inverse: bool) -> list[int]:
        """Return the far end of every edge of some relations out of one node, repeated for parallel edges."""
        found = []
        for head, relation, tail in self.edges:
            near, far = (tail, head) if inverse else (head, tail)
            if near == at and relation in relations:
                found.append(far)
        return found

    def walks(self, sources: Collection[int], metapath: list[tuple[int, bool]]) -> Counter[int]:
        counts = Counter(dict.fromkeys(sources, 1))
        for relation, inverse in metapath:
            reached: Counter[int] = Counter()
            for at, count in counts.items():
                for far in self.steps(at, [relation], inverse):
                    reached[far] += count
            counts = reached
        return counts

    def hops(self, sources: Collection[int], hops: int) -> dict[int, int]:
        found = dict.fromkeys(sources, 0)
        for hop in range(1, hops + 1):
            for at in [number for number, reached in found.items() if reached == hop - 1]:
                for inverse in (False, True):
                    for far in self.steps(at, range(9), inverse):
                        found.setdefault(far, hop)
        return found


NODES, RELATIONS = 7, 3
Edges = list[tuple[int, int, int]]
any_node = st.integers(0, NODES - 1)
any_edges = st.lists(st.tuples(any_node, st.integers(0, RELATIONS - 1), any_node), max_size=30)
any_sources = st.lists(any_node, max_size=4)


def graph_of(edges: Edges) -> ColumnarGraph:
    """Build a graph whose node and relation numbers are those of `edges`, whatever edges there are."""
    order = [(0, number, 0) for number in range(RELATIONS)]
    return ColumnarGraph.from_records(
        [node(str(number)) for number in range(NODES)],
        [edge(str(head), f"r{relation}", str(tail)) for head, relation, tail in order + edges],
    )


def naive_of(edges: Edges) -> Naive:
    return Naive([(0, number, 0) for number in range(RELATIONS)] + edges)


def rows(*columns: npt.NDArray[np.generic]) -> list[tuple[object, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


@settings(max_examples=50, deadline=None)
@given(any_edges, any_sources, st.sampled_from(list(Direction)), st.none() | st.sets(st.integers(0, RELATIONS - 1)))
def test_edges_agrees_with_looking_at_every_edge(
    edges: Edges, asked: list[int], direction: Direction, wanted: set[int] | None
) -> None:
    graph = graph_of(edges)
    numbered = sorted(naive_of(edges).edges)  # the edge number is the position in this order
    expected = []
    for origin, at in enumerate(asked):
        for number, (head, relation, tail) in enumerate(numbered):
            if wanted is not None and relation not in wanted:
                continue
            if head == at and direction is not Direction.IN:
                expected.append((origin, False, relation, tail, number, head, tail))
            if tail == at and direction is not Direction.OUT:
                expected.append((origin, True, relation, head, number, head, tail))
    relations = None if wanted is None else np.array(sorted(wanted), np.int64)
    batch = graph.edges(np.array(asked, np.int64), direction, relations)
    found = rows(batch.origin, batch.inverse, batch.relation, batch.other, batch.edge, batch.head, batch.tail)
    assert found == sorted(expected)


@settings(max_examples=50, deadline=None)
@given(any_edges, any_sources, st.lists(st.tuples(st.integers(0, RELATIONS - 1), st.booleans()), max_size=4))
def test_follow_agrees_with_walking_edge_by_edge(
    edges: Edges, sources: list[int], steps: list[tuple[int, bool]]
) -> None:
    graph = graph_of(edges)
    labels = [f"^r{number}" if inverse else f"r{number}" for number, inverse in steps]
    walks = follow(graph, ids(*map(str, sources)), labels)
    expected = naive_of(edges).walks(set(sources), steps)
    ranked = sorted(expected.items(), key=lambda item: (-item[1], item[0]))
    assert rows(walks.ends, walks.counts) == ranked
    for end, path in zip(walks.ends.tolist(), walks.paths(walks.ends), strict=True):
        assert int(path.source) in sources
        assert path.end == str(end)
        assert [triple.relation for triple in path.triples] == [label.removeprefix("^") for label in labels]
        assert path.inverse == tuple(inverse for _, inverse in steps)
        for position, triple in enumerate(path.triples):
            near = triple.tail if path.inverse[position] else triple.head
            assert near == path.nodes[position]
            assert triple in triples(graph, neighbours(graph, [triple.head], Direction.OUT))


@settings(max_examples=40, deadline=None)
@given(any_edges, any_sources, st.integers(0, 4))
def test_nodes_are_those_of_a_breadth_first_search_in_order_of_hops(
    edges: Edges, sources: list[int], hops: int
) -> None:
    reached = k_hop_edges(graph_of(edges), ids(*map(str, sources)), hops + 1)
    expected = naive_of(edges).hops(set(sources), hops)
    assert reached.nodes.tolist() == [number for _, number in sorted((hop, number) for number, hop in expected.items())]


@settings(max_examples=50, deadline=None)
@given(any_edges, any_sources, st.integers(0, 4), st.sampled_from(list(Direction)))
def test_k_hop_edges_are_those_that_touch_a_node_reached_before(
    edges: Edges, sources: list[int], hops: int, direction: Direction
) -> None:
    graph = graph_of(edges)
    asked = ids(*map(str, sources))
    reached = k_hop_edges(graph, asked, hops, direction)
    left = set(reached.nodes.tolist())
    expected = set()
    for number, (head, _, tail) in enumerate(sorted(naive_of(edges).edges)):
        if (head in left and direction is not Direction.IN) or (tail in left and direction is not Direction.OUT):
            expected.add(number)
    assert sorted(reached.edges.edge.tolist()) == sorted(expected)
    assert reached.hops.tolist() == sorted(reached.hops.tolist())
    origins = reached.nodes[reached.edges.origin]
    near = np.where(reached.edges.inverse, reached.edges.tail, reached.edges.head)
    assert origins.tolist() == near.tolist()


@settings(max_examples=40, deadline=None)
@given(any_edges, any_sources, st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_capped_edges_are_some_of_all_and_each_once(
    edges: Edges, sources: list[int], hops: int, per_hop: int, per_node: int, per_relation: int
) -> None:
    graph = graph_of(edges)
    asked = ids(*map(str, sources))
    whole = set(k_hop_edges(graph, asked, hops).edges.edge.tolist())
    capped = k_hop_edges(graph, asked, hops, per_hop_cap=per_hop, per_node_cap=per_node, per_relation_cap=per_relation)
    found = capped.edges.edge.tolist()
    assert len(found) == len(set(found))
    assert set(found) <= whole
    assert capped.truncated or set(found) == whole
