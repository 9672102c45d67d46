"""Graphs that the tests of BFS-QL share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

import byokg
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.types import Node, Triple
from tests.graph.contract import edge, node

BIOMEDICAL = Path(byokg.__file__).parent / "data" / "biomedical"


def biomedical() -> ColumnarGraph:
    """Return the graph of the worked examples."""
    return import_graph(BIOMEDICAL)


def small() -> ColumnarGraph:
    """Return a triangle with a tail, parallel edges, a loop, and a node that stands alone."""
    #   a -r-> b -r-> c -s-> a      c -r-> d -r-> e      b -s-> b
    #   a -s-> b twice, in 1990 and in 2001              f stands alone
    return ColumnarGraph.from_records(
        [
            node("a", "X", size=1),
            node("b", "X"),
            node("c", "Y", id="own id", name="own name"),
            node("d", "Y"),
            node("e"),
            node("f", "Z"),
        ],
        [
            edge("a", "r", "b"),
            edge("b", "r", "c"),
            edge("c", "s", "a", confidence=0.5),
            edge("c", "r", "d", confidence=0.9),
            edge("d", "r", "e", subject="own subject"),
            edge("b", "s", "b"),
            edge("a", "s", "b", since=1990),
            edge("a", "s", "b", since=2001),
        ],
    )


@dataclass(frozen=True)
class Drawn:
    """A graph that hypothesis drew."""

    nodes: Sequence[Node]
    edges: Sequence[Triple]

    @property
    def store(self) -> ColumnarGraph:
        return ColumnarGraph.from_records(self.nodes, self.edges)

    def within(self, seeds: Sequence[str], hops: int) -> set[str]:
        """Return what is within some hops, found one edge after the other."""
        reached = set(seeds)
        for _ in range(hops):
            touching = [each for each in self.edges if {each.head, each.tail} & reached]
            reached |= {end for each in touching for end in (each.head, each.tail)}
        return reached


NAMES = [f"n{number}" for number in range(8)]


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    """Draw eight nodes of three types, and up to sixteen edges of three relations; some are parallel, some loops."""
    nodes = [node(name, draw(st.sampled_from(["", "X", "Y"])), size=at) for at, name in enumerate(NAMES)]
    ends = st.sampled_from(NAMES)
    triples = draw(st.lists(st.tuples(ends, st.sampled_from("rst"), ends), max_size=16))
    return Drawn(nodes, [edge(*triple, number=at) for at, triple in enumerate(triples)])


seeds = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)
hops = st.integers(0, 3)
filters = st.fixed_dictionaries(
    {},
    optional={
        "node_filter": st.one_of(
            st.none(),
            st.just({}),
            st.fixed_dictionaries({"entity_types": st.lists(st.sampled_from(["X", "Y", "", "Q"]))}),
        ),
        "edge_filter": st.one_of(
            st.none(), st.just({}), st.fixed_dictionaries({"predicates": st.lists(st.sampled_from("rstq"))})
        ),
        "topology_only": st.booleans(),
    },
)
