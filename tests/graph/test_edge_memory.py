"""Edges that were asked for are remembered, and nobody can tell from the answers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.read_cache import EdgeMemory
from byokg.graph.store import Direction, EdgeBatch, NodeArray, NumberSpace, RelationArray

NODES = "abcde"
edges = st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from("rst"), st.sampled_from(NODES)), max_size=15)
requests = st.lists(
    st.tuples(
        st.lists(st.integers(0, 4), max_size=6),
        st.sampled_from(Direction),
        st.none() | st.lists(st.integers(0, 2), max_size=3),
    ),
    max_size=6,
)


def graph(triples: list[tuple[str, str, str]]) -> ColumnarGraph:
    """Return a graph that has every node and relation, whatever the triples."""
    return ColumnarGraph.from_triples(
        [*((node, "r", node) for node in NODES), ("a", "s", "a"), ("a", "t", "a"), *triples]
    )


def columns(batch: EdgeBatch) -> list[list[int]]:
    return [each.tolist() for each in (batch.head, batch.relation, batch.tail, batch.edge, batch.origin, batch.inverse)]


@given(edges, requests, st.sampled_from([0, 20, 1000]))
def test_every_answer_is_the_one_the_store_gives(
    triples: list[tuple[str, str, str]],
    asked: list[tuple[list[int], Direction, list[int] | None]],
    max_edges: int,
) -> None:
    store = graph(triples)
    memory = EdgeMemory(NumberSpace("test"), max_edges)
    for nodes, direction, chosen in asked:
        numbers, relations = np.array(nodes, np.int64), None if chosen is None else np.array(chosen, np.int64)
        got = memory.edges(numbers, direction, relations, store.edges)
        assert columns(got) == columns(store.edges(numbers, direction, relations))


class Counting:
    """Counts which nodes are asked for."""

    def __init__(self, store: ColumnarGraph) -> None:
        self.store = store
        self.asked: list[list[int]] = []

    def __call__(self, nodes: NodeArray, direction: Direction, relations: RelationArray | None) -> EdgeBatch:
        self.asked.append(nodes.tolist())
        return self.store.edges(nodes, direction, relations)


def test_only_nodes_whose_edges_are_not_held_are_asked_for() -> None:
    ask, memory = Counting(graph([("a", "s", "b")])), EdgeMemory(NumberSpace("test"))
    memory.edges(np.array([0, 1]), Direction.BOTH, None, ask)
    memory.edges(np.array([1, 0]), Direction.OUT, np.array([1]), ask)
    memory.edges(np.array([0, 2]), Direction.IN, np.array([1]), ask)
    memory.edges(np.array([2]), Direction.IN, np.array([1]), ask)
    memory.edges(np.array([2]), Direction.IN, np.array([0]), ask)
    assert ask.asked == [[0, 1], [2], [2]]
    memory.forget()
    memory.edges(np.array([0]), Direction.OUT, None, ask)
    assert ask.asked[3:] == [[0]]


def test_what_was_not_asked_for_longest_is_forgotten_first() -> None:
    ask, memory = Counting(graph([])), EdgeMemory(NumberSpace("test"), max_edges=15)  # node 1 counts 1 edge, and 4
    for node in (1, 2, 3, 1, 4, 1, 2):
        memory.edges(np.array([node]), Direction.OUT, None, ask)
    assert ask.asked == [[1], [2], [3], [4], [2]]
