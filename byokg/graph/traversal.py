"""Traversal of any `GraphStore`: one hop, or k hops. `paths` follows metapaths, and `pathql` searches paths.

`expand` is the step of all that read edges within caps. Each function reads edges from the store once per hop, for any
fan-out, and works on arrays. A dead end is an empty result, not an error. If a limit left something out, the result is
`truncated`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.errors import RelationNotFound, StoresMixed
from byokg.graph.cancellation import check
from byokg.graph.sorted_ids import contains, distinct, group_of
from byokg.graph.store import Direction, EdgeBatch, GraphStore, NodeArray, NumberSpace, RelationArray
from byokg.types import EntityId, Triple

# One hop


def neighbours(
    store: GraphStore,
    ids: Collection[EntityId],
    direction: Direction = Direction.BOTH,
    relations: Collection[str] | None = None,
) -> EdgeBatch:
    """Return the edges that touch some entities; `triples` spells them out.

    Args:
        store: graph to read.
        ids: entities; `EdgeBatch.origin` counts them in the order given.
        direction: which edges, seen from the entities.
        relations: labels to keep; None keeps all.

    Raises:
        EntityNotFound: an id is not in the store.
        RelationNotFound: a label is not in the store.
    """
    return store.edges(store.numbers(ids), direction, relation_numbers(store, relations))


def triples(store: GraphStore, batch: EdgeBatch) -> list[Triple]:
    """Spell out edges with ids, labels and properties, in the order of the batch."""
    labels = store.relations
    return [
        Triple(head, labels[relation], tail, edge, properties, undirected)
        for head, relation, tail, edge, properties, undirected in zip(
            store.ids(batch.head),
            batch.relation.tolist(),
            store.ids(batch.tail),
            batch.edge.tolist(),
            store.edge_properties(batch.edge),
            [False] * len(batch) if batch.undirected is None else batch.undirected.tolist(),
            strict=True,
        )
    ]


def relation_numbers(store: GraphStore, labels: Collection[str] | None) -> RelationArray | None:
    """Return the number of each label, None for None. Raises `RelationNotFound`."""
    return None if labels is None else np.array([_relation_number(store, label) for label in labels], np.int64)


def _relation_number(store: GraphStore, label: str) -> int:
    try:
        return store.relations.index(label)
    except ValueError as error:
        raise RelationNotFound(label, store.name, store.relations) from error


@dataclass(frozen=True)
class Caps:
    """How many edges are read out of one node, the first in edge order; None for all."""

    per_node: int | None = None
    per_relation: int | None = None
    """Edges of one relation and direction."""


UNCAPPED = Caps()


class Expansion(NamedTuple):
    """The edges around some nodes."""

    edges: EdgeBatch
    truncated: bool
    """True if a cap left something out."""


def expand(
    store: GraphStore,
    nodes: NodeArray,
    direction: Direction = Direction.BOTH,
    relations: RelationArray | None = None,
    caps: Caps = UNCAPPED,
) -> Expansion:
    """Read the edges around some nodes within caps, in one call to the store.

    Args:
        store: graph to read.
        nodes: (N,) node numbers.
        direction: which edges, seen from the nodes.
        relations: numbers of relations to keep; None keeps all.
        caps: edges of each node at most.

    Raises:
        CallStopped: the work is cancelled.
        EntityNotFound: a node number is out of range.
        RelationNotFound: a relation number is out of range.
    """
    check()
    if caps.per_node and caps.per_relation is None and relations is None:
        return Expansion(*store.first_edges(nodes, direction, caps.per_node))
    if caps.per_relation is not None and (relations is None or len(relations) == 1) and has_many_edges(store, nodes):
        edges = store.capped_edges(nodes, direction, relations, caps.per_relation + 1)
    else:
        edges = store.edges(nodes, direction, relations)
    edges, truncated = edges.cap(caps.per_relation, per_relation=True)
    edges, more = edges.cap(caps.per_node)
    return Expansion(edges, truncated or more)


_MANY = 1 << 13
"""Edges of some nodes from which on a cap is applied before they are read."""


def has_many_edges(store: GraphStore, nodes: NodeArray) -> bool | None:
    """True if edges of a few relations are better read alone, so many touch some nodes; None if that is unknown."""
    degrees = store.degrees(nodes)
    return None if degrees is None else int(degrees.sum()) > _MANY


# Several hops, any relation


@dataclass(frozen=True)
class ReachedEdges:
    """The E edges within some hops of the sources, each once, by hop and then in edge order."""

    truncated_hops: tuple[bool, ...]
    """For each hop taken, whether a cap left something out."""
    edges: EdgeBatch
    """`origin` counts `nodes`, from which each edge was found."""
    hops: Int64
    """(E,) the hop at which each edge was found, from 1."""
    nodes: NodeArray
    """The expanded nodes: the sources, then those reached with fewer hops than allowed."""

    @property
    def truncated(self) -> bool:
        """True if any hop left something out."""
        return any(self.truncated_hops)


def k_hop_edges(
    store: GraphStore,
    ids: Collection[EntityId],
    hops: int,
    direction: Direction = Direction.BOTH,
    relations: Collection[str] | None = None,
    per_hop_cap: int | None = None,
    per_node_cap: int | None = None,
    per_relation_cap: int | None = None,
) -> ReachedEdges:
    """Find every edge within `hops` hops; `triples` spells them out.

    Args:
        store: graph to read.
        ids: where to start.
        hops: edges to walk at most.
        direction: which edges to walk, seen from the node left.
        relations: labels to walk; None walks all.
        per_hop_cap: new nodes to go on from after each hop, those of lowest number.
        per_node_cap: edges to walk out of one node, the first in edge order.
        per_relation_cap: edges of one relation and direction to walk out of one node, the first in edge order.

    Returns:
        The edges walked. Where one is met from both of its ends, the first time counts.

    Raises:
        EntityNotFound: an id is not in the store.
        RelationNotFound: a label is not in the store.
    """
    wanted, caps = relation_numbers(store, relations), Caps(per_node_cap, per_relation_cap)
    frontier = distinct(store.numbers(ids))
    left = frontier[:0]
    walked: list[tuple[EdgeBatch, Int64]] = []
    cuts: list[bool] = []
    nodes = [left]
    for _ in range(hops):
        batch, cut = expand(store, frontier, direction, wanted, caps)
        cuts.append(cut)
        if direction is Direction.BOTH and not any(cuts):
            # An edge to a node left earlier was met from there; one inside the frontier is met from both ends now.
            rows = (group_of((frontier, left), batch.other) + batch.inverse < 2).nonzero()[0]
        else:
            rows = np.arange(len(batch))
        walked.append((batch, rows))
        nodes.append(frontier)
        if len(cuts) == hops:
            break
        left = distinct(np.concatenate((left, frontier)))
        frontier = distinct(batch.other)
        frontier = frontier[~contains(left, frontier)]
        if per_hop_cap is not None and len(frontier) > per_hop_cap:
            frontier, cuts[-1] = frontier[:per_hop_cap], True
        if len(frontier) == 0:
            break
    edges, hop_of = join(walked, [len(frontier) for frontier in nodes[1:]])
    if (direction is Direction.BOTH and any(cuts)) or edges.undirected is not None:
        # Caps may have left out an edge at one of its ends, so every edge is looked at; undirected ones have two.
        first = np.sort(np.unique(edges.edge, return_index=True)[1])
        edges, hop_of = edges.take(first), hop_of[first]
    return ReachedEdges(tuple(cuts), edges, hop_of, np.concatenate(nodes))


def join(parts: Sequence[tuple[EdgeBatch, Int64]], sizes: Sequence[int]) -> tuple[EdgeBatch, Int64]:
    """Concatenate rows of one store's batches, as if all their nodes had been requested together.

    Args:
        parts: batches of the store, with the rows to keep.
        sizes: number of nodes of each request, so that `origin` can continue counting.

    Returns:
        The batch, and for each edge its part, counted from 1: (E,).

    Raises:
        StoresMixed: they come from two stores.
    """
    counts = [len(rows) for _, rows in parts]
    bounds = np.cumsum([0, *counts]).tolist()

    def column(name: str, kind: type[np.generic] = np.int64) -> npt.NDArray[Any]:
        arrays = [getattr(batch, name) for batch, _ in parts]
        whole = np.empty(bounds[-1], np.result_type(*arrays) if arrays else kind)
        for array, (_, rows), start, stop in zip(arrays, parts, bounds, bounds[1:], strict=False):
            if array.dtype == whole.dtype:
                np.take(array, rows, out=whole[start:stop], mode="clip")  # "raise" would take through a copy
            else:
                whole[start:stop] = array.take(rows)
        return whole

    origin = column("origin")
    for start, stop, before in zip(bounds, bounds[1:], np.cumsum([0, *sizes]).tolist(), strict=False):
        origin[start:stop] += before
    edges = EdgeBatch(
        column("head"),
        column("relation"),
        column("tail"),
        column("edge"),
        origin,
        column("inverse", np.bool_),
        _one_space([batch for batch, _ in parts]),
        _undirected(parts),
    )
    return edges, np.repeat(np.arange(1, len(parts) + 1), counts)


def _undirected(parts: Sequence[tuple[EdgeBatch, Int64]]) -> npt.NDArray[np.bool_] | None:
    """Return True for each undirected edge among rows of batches: (E,); None if there are none."""
    if all(batch.undirected is None for batch, _ in parts):
        return None
    flags = (np.zeros(len(batch), np.bool_) if batch.undirected is None else batch.undirected for batch, _ in parts)
    return np.concatenate([some[rows] for some, (_, rows) in zip(flags, parts, strict=True)])


def _one_space(batches: Sequence[EdgeBatch]) -> NumberSpace | None:
    """Return whose numbers these batches hold, all of them the same store's."""
    spaces = {id(batch.space): batch.space for batch in batches}
    if len(spaces) > 1:
        one, other = (space.store if space else "no store" for space in list(spaces.values())[:2])
        raise StoresMixed(one, other)
    return batches[0].space if batches else None
