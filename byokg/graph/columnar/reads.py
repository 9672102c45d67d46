"""Reading the edges of nodes from arrays: all, the first ones, or some of each relation."""

from __future__ import annotations

import numpy as np

from byokg.arrays import Int64, Integers
from byokg.graph.columnar.folder import Arrays, slots
from byokg.graph.columnar.undirected import read_edges, read_first_edges
from byokg.graph.store import Direction, EdgeBatch, NumberSpace

_BISECT_FROM = 8192
"""Edges from which a relation filter searches each node's sorted range before it reads whole ranges."""


def touching_edges(
    arrays: Arrays, nodes: Int64, direction: Direction, wanted: Int64 | None, space: NumberSpace
) -> EdgeBatch:
    """Return the edges touching nodes, of some relations only or of all; `wanted` is ascending and distinct."""
    if arrays.undirected is not None:
        return read_edges(arrays, nodes, direction, wanted, space)
    starts, stops = arrays.slots_of(nodes, direction)
    split = 1
    if wanted is not None and int((stops - starts).sum()) > _BISECT_FROM + 64 * len(starts) * len(wanted):
        starts, stops = arrays.narrow(starts, stops, wanted)
        split, wanted = len(wanted), None
    segment, slot = slots(starts, stops)
    relation = arrays.relation.take(slot)
    if wanted is not None:
        kept = np.flatnonzero(relation == wanted[0]) if len(wanted) == 1 else _places_of(relation, wanted)
        relation, slot, segment = relation.take(kept), slot.take(kept), segment.take(kept)
    if split > 1:
        segment //= split
    return arrays.batch(nodes, direction, segment, slot, relation, space)


def first_touching_edges(
    arrays: Arrays, nodes: Int64, direction: Direction, space: NumberSpace, most: int
) -> tuple[EdgeBatch, bool]:
    """Return up to `most` edges of each node, and whether that left any out."""
    if arrays.undirected is not None:
        return read_first_edges(arrays, nodes, direction, space, most)
    starts, stops = arrays.slots_of(nodes, direction)
    counts, step = stops - starts, 2 if direction is Direction.BOTH else 1
    kept = np.minimum(counts, most)
    if step > 1:  # outgoing edges come first
        kept[1::2] = np.minimum(kept[1::2], most - kept[0::2])
    segment, slot = slots(starts, starts + kept)
    batch = arrays.batch(nodes, direction, segment, slot, arrays.relation.take(slot), space)
    return batch, bool((kept < counts).any())


def capped_touching_edges(
    arrays: Arrays, nodes: Int64, direction: Direction, wanted: Int64 | None, space: NumberSpace, most: int
) -> EdgeBatch:
    """Return the edges touching nodes, of each relation of each node at most so many."""
    if arrays.undirected is not None:
        return read_edges(arrays, nodes, direction, wanted, space, most)
    starts, stops = arrays.slots_of(nodes, direction)
    if wanted is None:
        which, starts, stops = arrays.runs(starts, stops)
    else:
        which = np.arange(len(starts)).repeat(len(wanted))
        starts, stops = arrays.narrow(starts, stops, wanted)
    run, slot = slots(starts, np.minimum(stops, starts + most))
    return arrays.batch(nodes, direction, which.take(run), slot, arrays.relation.take(slot), space)


def _places_of(relation: Integers, wanted: Int64) -> Int64:
    """Return the places of wanted relations."""
    allowed = np.zeros(int(max(relation.max(initial=0), wanted.max(initial=0))) + 1, np.bool_)
    allowed[wanted] = True
    return np.flatnonzero(allowed.take(relation))


def numbered_edges(arrays: Arrays, edge: Int64, space: NumberSpace) -> EdgeBatch:
    """Return edges by their numbers, in stored orientation; `origin` counts them."""
    relation = arrays.relation[edge]
    head = (np.searchsorted(arrays.out_index, edge, "right") - 1).astype(np.int32)
    undirected = None if arrays.undirected is None else arrays.are_undirected(edge, relation)
    forward = np.zeros(len(edge), np.bool_)
    return EdgeBatch(head, relation, arrays.other[edge], edge, np.arange(len(edge)), forward, space, undirected)
