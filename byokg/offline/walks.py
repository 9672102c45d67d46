"""All walks along a metapath, with the nodes and edges of every hop: for results that depend on more than the ends."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.graph.sorted_ids import distinct, rows_at
from byokg.graph.store import Direction, GraphStore
from byokg.graph.traversal import Caps, expand
from byokg.types import INVERSE, EntityId, Metapath


@dataclass(frozen=True)
class WalkLimits:
    """Limits of enumerated walks."""

    walks: int = 50_000
    """Walks of a metapath; one with more is skipped."""
    sample: int = 32
    """Sampled edges of a relation, for the number of ends per node."""


LIMITS = WalkLimits()


@dataclass(frozen=True)
class WalkTable:
    """W walks of L hops."""

    steps: tuple[int, ...]
    """(L,) twice the number of each relation, plus one if it is walked from tail to head."""
    nodes: Int64
    """(W, L + 1) node numbers."""
    edges: Int64
    """(W, L) edge numbers."""

    def __len__(self) -> int:
        return len(self.nodes)

    def taken(self, rows: Int64 | npt.NDArray[np.bool_]) -> WalkTable:
        """Return some of the walks."""
        return WalkTable(self.steps, self.nodes[rows], self.edges[rows])


def walk_table(
    store: GraphStore, source: EntityId, metapath: Metapath, avoid: Collection[EntityId] = ()
) -> WalkTable | None:
    """Walk a metapath out of a node, a call to the store for each hop; None if there are too many walks.

    Args:
        store: the graph.
        source: start node.
        metapath: relations of the graph, with a leading `^` for one walked from tail to head.
        avoid: nodes that walks do not enter.
    """
    number = {label: place for place, label in enumerate(store.relations)}
    nodes = np.asarray(store.numbers([source]), np.int64)[:, None]
    edges = np.empty((1, 0), np.int64)
    avoided = np.asarray(store.numbers(list(avoid)), np.int64)
    steps: list[int] = []
    for step in metapath:
        label = step.removeprefix(INVERSE)
        turned = step != label and (label in number or step not in number)
        relation = number[label if turned else step]
        steps.append(2 * relation + turned)
        here, place = np.unique(nodes[:, -1], return_inverse=True)
        direction = Direction.IN if turned else Direction.OUT
        batch = expand(store, here, direction, np.array([relation]), Caps(per_relation=LIMITS.walks + 1)).edges
        if np.bincount(batch.origin, minlength=len(here))[place].sum() > LIMITS.walks:
            return None
        row, taken = rows_at(batch.origin, place)
        other = batch.other.astype(np.int64)[taken]
        nodes = np.concatenate((nodes[row], other[:, None]), axis=1)
        edges = np.concatenate((edges[row], batch.edge.astype(np.int64)[taken, None]), axis=1)
        kept = ~np.isin(other, avoided)
        nodes, edges = nodes[kept], edges[kept]
    return WalkTable(tuple(steps), nodes, edges)


def branching(store: GraphStore, share: float = 0.0) -> frozenset[int]:
    """Return the steps with several ends per node, from a sample; on a server, which is not sampled, all steps.

    Only those count with several ends for more than a `share` of the nodes, in [0, 1]. A step is twice the number of
    its relation, plus one if it is walked from tail to head.
    """
    if store.remote:
        return frozenset(range(2 * len(store.relations)))
    sample = store.sample_edges(LIMITS.sample)
    counts = store.relation_counts(distinct(np.concatenate((sample.head, sample.tail)).astype(np.int64)))
    step = 2 * counts.relation.astype(np.int64) + counts.inverse
    several = np.bincount(step, counts.count > 1)
    return frozenset(np.flatnonzero(several > share * np.bincount(step)).tolist())
