"""Reading graphs with undirected edges: each is stored once, and walked from either end as an edge out of that end.

So an edge `a - b` is among the edges out of `a`, as (a, b), and among those out of `b`, as (b, a), under one number. In
both directions it is met once at each end. A loop has one end: it is read like a directed one.
"""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from byokg.arrays import Bools, Int64, Integers
from byokg.graph.columnar.folder import Arrays, slots
from byokg.graph.sorted_ids import changes
from byokg.graph.store import Direction, EdgeBatch, NumberSpace, RelationCounts

_BISECTED = 64
"""Edges of a node for each relation wanted from which on these are bisected for, rather than all edges read."""

_KEY_BITS = 63

Number = TypeVar("Number", bound=np.integer)
Triples: TypeAlias = npt.NDArray[Number]


def lower_end_first(triples: Triples[Number], undirected: Bools) -> Triples[Number]:
    """Return (E, 3) edges, the undirected ones from the end of lower number, so that each repetition is exact."""
    turned = np.flatnonzero(undirected & (triples[:, 0] > triples[:, 2]))
    if not len(turned):
        return triples
    triples = triples.copy()
    triples[turned] = triples[turned][:, ::-1]
    return triples


def undirected_arrays(flags: Bools | None, relation: Integers, back: Int64, relations: int) -> dict[str, Bools]:
    """Return the fields of `Arrays` for undirected edges, as far as a graph has any.

    Args:
        flags: (E,) the undirected edges, in the order of their numbers; None if there are none.
        relation: (E,) their relations.
        back: (E,) the numbers of the edges on the way back.
        relations: how many there are.
    """
    if flags is None:
        return {}
    counts = np.bincount(relation[flags], minlength=relations)
    found = {"undirected": counts > 0}
    if (found["undirected"] & (counts < np.bincount(relation, minlength=relations))).any():
        found["undirected_edges"] = np.concatenate((flags, flags[back]))
    return found


def read_edges(
    arrays: Arrays,
    nodes: Int64,
    direction: Direction,
    relations: Int64 | None,
    space: NumberSpace,
    most: int | None = None,
) -> EdgeBatch:
    """Return the edges touching some nodes, in the order of `EdgeBatch`.

    Args:
        arrays: of a graph with undirected edges.
        nodes: requested nodes.
        direction: of the edges.
        relations: wanted ones, ascending and distinct; None for all.
        space: numbering of nodes and edges.
        most: edges to read of each relation and direction of each node; None reads all.
    """
    both = arrays.undirected_relations()
    parts = []
    for way in (Direction.OUT, Direction.IN):
        own = direction in (way, Direction.BOTH)
        wanted = relations if own else both if relations is None else relations[np.isin(relations, both)]
        segment, slot = _slots(arrays, nodes, way, wanted, most)  # by node and slot, each once
        relation = arrays.relation.take(slot)
        if wanted is not None:
            allowed = np.zeros(arrays.relation_count, np.bool_)
            allowed[wanted] = True
            kept = np.flatnonzero(allowed.take(relation))
            segment, slot, relation = segment.take(kept), slot.take(kept), relation.take(kept)
        far, near = arrays.other.take(slot).astype(np.int64), nodes.take(segment)
        undirected = arrays.are_undirected(slot, relation)
        turnable = undirected & (far != near)
        if not own:
            kept = np.flatnonzero(turnable)
            segment, slot, far, near = (column.take(kept) for column in (segment, slot, far, near))
            relation = relation.take(kept)
            undirected, turnable = undirected.take(kept), turnable.take(kept)
        edge = slot if way is Direction.OUT else arrays.numbers_of(slot, near)
        inverse = np.full(len(slot), direction is Direction.IN or way is Direction.IN)
        if direction is not Direction.IN:
            inverse &= ~turnable
        parts.append((segment, inverse, relation, near, far, edge, undirected))
    origin, inverse, relation, near, far, edge, undirected = (
        np.concatenate(columns) for columns in zip(*parts, strict=True)
    )
    order = _order(origin, inverse, relation, far, edge)
    origin, inverse, near, far = origin[order], inverse[order], near[order].astype(np.int32), far[order]
    far = far.astype(np.int32)
    head, tail = np.where(inverse, far, near), np.where(inverse, near, far)
    batch = EdgeBatch(head, relation[order], tail, edge[order], origin, inverse, space, undirected[order])
    return batch.cap(most, per_relation=True)[0]


def _order(origin: Int64, inverse: Bools, relation: Integers, far: Int64, edge: Int64) -> Int64:
    """Return the order that `EdgeBatch` promises: (E,)."""
    side = origin << 1 | inverse
    bits = [int(column.max(initial=0)).bit_length() for column in (side, relation, far)]
    if sum(bits) > _KEY_BITS:
        return np.lexsort((edge, far, relation, side))
    # Two columns are sorted more quickly than four.
    return np.lexsort((edge, (side << bits[1] | relation) << bits[2] | far))


def _slots(
    arrays: Arrays, nodes: Int64, way: Direction, relations: Int64 | None, most: int | None
) -> tuple[Int64, Int64]:
    """Return position of the node and slot of the edges out of nodes, or into them; others may be among them."""
    starts, stops = arrays.slots_of(nodes, way)
    which = np.arange(len(nodes))
    if relations is not None and (most is not None or (stops - starts).sum() > _BISECTED * len(nodes) * len(relations)):
        which = which.repeat(len(relations))
        starts, stops = arrays.narrow(starts, stops, relations)
    elif most is not None:
        which, starts, stops = arrays.runs(starts, stops)
    if most is not None:
        some = np.flatnonzero(starts < stops)
        which, starts, stops = which[some], starts[some], stops[some]
        relation = arrays.relation.take(starts).astype(np.int64)
        either = np.isin(relation, arrays.undirected_relations())
        capped = np.minimum(stops, starts + most)
        if arrays.undirected_edges is not None:  # of a relation of both kinds, those wanted may stand anywhere
            stops = np.where(either, stops, capped)
        else:  # loops are capped apart
            first, last = arrays.leading_to(starts, stops, relation, nodes.take(which))
            first, last = np.maximum(first, capped)[either], np.minimum(last, first + most)[either]
            which, starts = np.concatenate((which, which[either])), np.concatenate((starts, first))
            stops = np.concatenate((capped, np.maximum(first, last)))
    segment, slot = slots(starts, stops)
    return which.take(segment), slot


def count_relations(arrays: Arrays, nodes: Int64) -> RelationCounts:
    """Return how many edges of each relation touch each of some nodes; undirected ones go out of both ends."""
    which, start, stop = arrays.runs(*arrays.slots_of(nodes, Direction.BOTH))
    relation = arrays.relation.take(start).astype(np.int64)
    origin, inverse, count = which >> 1, (which & 1).astype(np.bool_), stop - start
    rows = np.flatnonzero(inverse & np.isin(relation, arrays.undirected_relations()))
    near = nodes.take(origin[rows])
    if arrays.undirected_edges is None:
        first, last = arrays.leading_to(start[rows], stop[rows], relation[rows], near)
        turned = count[rows] - (last - first)
    else:
        run, slot = slots(start[rows], stop[rows])
        kept = arrays.undirected_edges.take(slot) & (arrays.other.take(slot) != near.take(run))
        turned = np.bincount(run[kept], minlength=len(rows))
    count[rows] -= turned
    origin, relation = np.concatenate((origin, origin[rows])), np.concatenate((relation, relation[rows]))
    inverse = np.concatenate((inverse, np.zeros(len(rows), np.bool_)))
    count = np.concatenate((count, turned))
    order = np.lexsort((relation, inverse, origin))
    order = order[count[order] > 0]
    groups = np.flatnonzero(changes(origin[order] << 1 | inverse[order], relation[order]))
    first = order[groups]
    total = np.add.reduceat(count[order], groups) if len(groups) else count[:0]
    return RelationCounts(origin[first], relation[first], inverse[first], total)


def read_first_edges(
    arrays: Arrays, nodes: Int64, direction: Direction, space: NumberSpace, most: int
) -> tuple[EdgeBatch, bool]:
    """Return up to `most` edges of each node, the first in the order of `EdgeBatch`, and whether any were left out."""
    return read_edges(arrays, nodes, direction, None, space, most + 1).cap(most)
