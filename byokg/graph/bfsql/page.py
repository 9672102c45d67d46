"""Which part of a subgraph one response shows: its order, bounds, and the cursor that leads on.

Nodes are ordered by hops, then by degree within the subgraph (the highest first), then by id. Edges follow their later
end: an edge belongs to the response that shows its second node. So pages put together are the whole, and no edge has
an end that was not shown. Edges between the same two nodes go by direction, predicate, and number in the store.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from byokg.errors import RequestInvalid
from byokg.graph.bfsql.topology import Reach, Subgraph
from byokg.graph.store import GraphStore
from byokg.types import EntityId

Int64 = npt.NDArray[np.int64]

_CURSOR = re.compile(r"n(\d{1,18})-e(\d{1,18})-([0-9a-f]{12})")


@dataclass(frozen=True)
class Ordered:
    """The first C nodes of a subgraph in the order of responses, and the K edges among them, not yet in order."""

    ids: Sequence[EntityId]
    """Of the nodes: C."""
    edges: Int64
    """(K,) where in `Subgraph.edges` each stands."""
    head: Int64
    """(K,) where among the ordered nodes the head of each edge stands."""
    tail: Int64
    later: Int64
    """(K,) where the later end of each edge stands."""

    def edges_before(self, nodes: Int64) -> Int64:
        """Return how many edges have both ends among the first nodes, for each of some numbers of nodes."""
        return np.searchsorted(np.sort(self.later), nodes)


@dataclass(frozen=True)
class Place:
    """How much of a subgraph was shown before."""

    nodes: int = 0
    edges: int = 0


def ordered(store: GraphStore, subgraph: Subgraph, count: int) -> Ordered:
    """Put the first `count` nodes of a subgraph into order, and find the edges among them.

    Args:
        store: where it comes from; asked for the ids of these nodes and of those that tie with the last.
        subgraph: N nodes and E edges.
        count: N at most.
    """
    total = len(subgraph.nodes)
    count = min(count, total)
    if count == 0:
        nothing = np.empty(0, np.int64)
        return Ordered([], nothing, nothing, nothing, nothing)
    degrees = subgraph.degrees
    most = degrees.max()
    key = subgraph.hops * (most + 1) + most - degrees
    first = np.flatnonzero(key <= np.partition(key, count - 1)[count - 1])
    ids = store.ids(subgraph.nodes[first])
    keys = key[first].tolist()
    sequence = sorted(range(len(first)), key=lambda at: (keys[at], ids[at]))[:count]
    order = first[sequence]
    rank = np.zeros(total, np.int64)
    rank[order] = np.arange(count)
    among = np.zeros(total, np.bool_)
    among[order] = True
    edges = subgraph.edges
    kept = np.flatnonzero(among.take(edges.head) & among.take(edges.tail))
    head, tail = rank[edges.head[kept]], rank[edges.tail[kept]]
    return Ordered([ids[at] for at in sequence], kept, head, tail, np.maximum(head, tail))


def ordered_edges(store: GraphStore, subgraph: Subgraph, order: Ordered, count: int) -> Int64:
    """Return the edges among the first `count` nodes, by their later end and then by the earlier one.

    Returns:
        (L,) positions among the edges of `order`.
    """
    among = np.flatnonzero(order.later < count)
    head, tail, rows = order.head[among], order.tail[among], order.edges[among]
    labels = _label_order(store.relations, subgraph.edges.relation[rows])
    keys = (subgraph.edges.edge[rows], labels, tail, head, np.minimum(head, tail), order.later[among])
    return among[np.lexsort(keys)]


def _label_order(labels: Sequence[str], relations: npt.NDArray[np.integer]) -> Int64:
    """Return numbers that sort edges by the spelling of their relation, which all stores share: (E,)."""
    distinct, inverse = np.unique(relations, return_inverse=True)
    named = [labels[number] for number in distinct.tolist()]
    rank = np.empty(len(named), np.int64)
    rank[sorted(range(len(named)), key=named.__getitem__)] = np.arange(len(named))
    return rank[inverse]


# Cursors


def fingerprint(kind: str, seeds: Sequence[str], reach: Reach, subgraph: Subgraph) -> str:
    """Return what a cursor remembers of the subgraph it leads through, so that it is used for no other."""
    said = [
        kind,
        sorted(set(seeds)),
        *(_plain(value) for value in astuple(reach)),
        len(subgraph.nodes),
        len(subgraph.edges),
    ]
    return hashlib.sha256(json.dumps(said, ensure_ascii=False).encode()).hexdigest()[:12]


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    return sorted(value) if isinstance(value, frozenset) else value


def write_cursor(place: Place, mark: str) -> str:
    """Write where to go on."""
    return f"n{place.nodes}-e{place.edges}-{mark}"


def read_cursor(text: str, mark: str) -> Place:
    """Read where to go on.

    Raises:
        RequestInvalid: it is no cursor, or that of another request, or the graph has changed since.
    """
    found = _CURSOR.fullmatch(text.strip())
    if found is None:
        raise RequestInvalid([f"cursor: {text[:80]!r} is none; copy truncated.cursor of the response before"])
    if found[3] != mark:
        raise RequestInvalid(
            [
                f"cursor: {text!r} belongs to another subgraph; keep seeds, hops and what changes the nodes reached as "
                "they were, or ask again without a cursor"
            ]
        )
    return Place(int(found[1]), int(found[2]))
