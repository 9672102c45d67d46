"""Statements that run through a node without a name: a mediator, which stands for an event or a role.

`France → governing_officials → m.0abc` says nothing by itself; with the mediator's other edges it says who held which
office.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byokg.graph.node_sets import distinct
from byokg.graph.store import Direction, EdgeBatch, GraphStore, NodeArray
from byokg.graph.traversal import cap
from byokg.index.identifiers import is_identifier
from byokg.types import INVERSE, Metapath, Path, Triple

Int64 = npt.NDArray[np.int64]

MOST_EDGES = 100
"""Edges of a mediator that are looked at: those of an event are few."""


@dataclass(frozen=True)
class Continuations:
    """How A edges that end in a mediator go on from there."""

    edges: EdgeBatch
    """Edges of all mediators, found from these."""
    rows: list[Int64]
    """For each of the A edges, rows of `edges` that lead on to a node with a name, in edge order."""


def is_named(store: GraphStore, nodes: NodeArray) -> npt.NDArray[np.bool_]:
    """Tell which of N nodes have a name of their own, neither blank nor an identifier: (N,)."""
    asked = distinct(nodes)
    names = [node.name for node in store.nodes(store.ids(asked))]
    named = np.array([bool(name.strip()) and not is_identifier(name) for name in names], np.bool_)
    return named[np.searchsorted(asked, nodes)]


def continuations(store: GraphStore, reached: EdgeBatch, mediators: NodeArray) -> Continuations:
    """Find how edges go on behind the mediator at one of their ends; the store is asked once, whatever their number.

    Args:
        store: the graph.
        reached: A edges.
        mediators: (A,) which of its two ends is the mediator.
    """
    asked = distinct(mediators)
    edges, _ = cap(store.edges(asked, Direction.BOTH), MOST_EDGES, per_relation=False)
    other = edges.other
    useful = is_named(store, other)
    bounds = np.searchsorted(edges.origin, np.arange(len(asked) + 1))
    start = reached.head + reached.tail - mediators
    rows = []
    for edge, place, near in zip(
        reached.edge.tolist(), np.searchsorted(asked, mediators).tolist(), start.tolist(), strict=True
    ):
        of_it = slice(bounds[place], bounds[place + 1])
        kept = useful[of_it] & (edges.edge[of_it] != edge) & (other[of_it] != near)
        rows.append(bounds[place] + np.flatnonzero(kept))
    return Continuations(edges, rows)


def joined(first: Triple, second: Triple) -> Path:
    """Return the walk over two edges that share a node, beginning at the end of the first that they do not share."""
    middle = first.tail if first.tail in (second.head, second.tail) else first.head
    inverse = (middle == first.head, middle == second.tail)
    return Path(first.tail if inverse[0] else first.head, (first, second), inverse)


def metapath(path: Path) -> Metapath:
    """Return the relations of a walk, with the sign of inversion where it goes from tail to head."""
    steps: Sequence[tuple[Triple, bool]] = list(zip(path.triples, path.inverse, strict=True))
    return tuple(f"{INVERSE}{triple.relation}" if inverse else triple.relation for triple, inverse in steps)
