"""Which metapaths exist out of a node: grown hop by hop, a chosen few at a time, one store call a hop.

Made for ranking metapaths before any of them is followed to the end: the nodes kept at each hop are a sample where
there are many, so a step out of a hub's far corner can be missed, and ends are not complete. Follow the metapath
that wins with `traversal.follow_metapath`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byokg.graph.store import Direction, GraphStore, NodeArray
from byokg.types import INVERSE, Metapath

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Growth:
    """P metapaths of L steps out of one node, each with the nodes it reaches.

    A step is `2 * relation number + 1` when walked from tail to head, `2 * relation number` otherwise.
    """

    steps: Int64
    """(P, L) steps."""
    bounds: Int64
    """(P + 1,) metapath p reaches ends[bounds[p]] up to ends[bounds[p + 1]]."""
    ends: NodeArray
    """Distinct node numbers of each metapath, ascending."""

    def __len__(self) -> int:
        return len(self.steps)

    def reached(self, path: int) -> NodeArray:
        """Return the nodes at the end of one metapath."""
        return self.ends[self.bounds[path] : self.bounds[path + 1]]


def start(node: int) -> Growth:
    """Return the one metapath of no steps, standing at `node`."""
    return Growth(np.empty((1, 0), np.int64), np.array([0, 1]), np.array([node], np.int64))


def grow(store: GraphStore, growth: Growth, chosen: Sequence[int] | Int64, avoid: NodeArray, sample: int) -> Growth:
    """Lengthen some metapaths by every step that exists out of where they end.

    Args:
        store: graph to read, asked once.
        growth: what was reached so far.
        chosen: positions in `growth` of the metapaths to lengthen, C of them.
        avoid: node numbers that walks do not come back to (the topic entities).
        sample: nodes of each metapath to go on from; where there are more, this many spread evenly over them.

    Returns:
        The lengthened metapaths, in the order of `chosen`, then by step. Metapaths that reach nothing are left out.
    """
    frontiers = []
    for path in chosen:
        reached = growth.reached(int(path))
        if len(reached) > sample:
            reached = reached[np.linspace(0, len(reached) - 1, sample).astype(np.int64)]
        frontiers.append(reached)
    sizes = [len(frontier) for frontier in frontiers]
    nothing = Growth(np.empty((0, growth.steps.shape[1] + 1), np.int64), np.zeros(1, np.int64), np.empty(0, np.int64))
    if sum(sizes) == 0:
        return nothing
    # A node may stand in many frontiers; its edges are fetched once, and then repeated for each.
    nodes, place = np.unique(np.concatenate(frontiers), return_inverse=True)
    batch = store.edges(nodes, Direction.BOTH)
    other = batch.other.astype(np.int64)
    step = batch.relation.astype(np.int64) << 1 | batch.inverse
    kept = np.ones(len(other), np.bool_)
    for node in np.asarray(avoid).tolist():
        kept &= other != node
    other, step, origin = other[kept], step[kept], batch.origin[kept]
    first, last = np.searchsorted(origin, (place, place + 1))
    counts = last - first
    edge = np.arange(counts.sum()) + np.repeat(first - counts.cumsum() + counts, counts)
    other, step, owner = other[edge], step[edge], np.repeat(np.repeat(np.arange(len(sizes)), sizes), counts)
    if len(other) == 0:
        return nothing
    # Owner, step and end in one integer: sorting values is far quicker than sorting by several columns.
    node_bits, step_bits = int(other.max()).bit_length(), int(step.max()).bit_length()
    if node_bits + step_bits + len(sizes).bit_length() > 63:
        order = np.lexsort((other, step, owner))
        group, other = (owner << step_bits | step)[order], other[order]
        fresh = np.ones(len(group), np.bool_)
        fresh[1:] = (group[1:] != group[:-1]) | (other[1:] != other[:-1])
        group, other = group[fresh], other[fresh]
    else:
        key = (owner << step_bits | step) << node_bits | other
        key.sort()
        fresh = np.ones(len(key), np.bool_)
        np.not_equal(key[1:], key[:-1], out=fresh[1:])
        key = key[fresh]
        group, other = key >> node_bits, key & ((1 << node_bits) - 1)
    bounds = np.concatenate(([0], np.flatnonzero(group[1:] != group[:-1]) + 1, [len(group)]))
    first = group[bounds[:-1]]
    parents = np.asarray(chosen, np.int64)[first >> step_bits]
    steps = np.concatenate((growth.steps[parents], (first & ((1 << step_bits) - 1))[:, None]), axis=1)
    return Growth(steps, bounds, other)


def labels(store: GraphStore, steps: Sequence[int] | Int64) -> Metapath:
    """Spell out the steps of one metapath as relation labels."""
    return tuple(
        f"{INVERSE}{store.relations[step >> 1]}" if step & 1 else store.relations[step >> 1]
        for step in np.asarray(steps).tolist()
    )
