"""Nodes and edges of a BFS-QL request: breadth-first search from seeds, and intersection of several seeds.

    {"seeds": ["PERSON:12345"], "max_hops": 1, "edge_filter": {"predicates": ["AUTHORED"]}}

Topology and presentation are apart. Seeds, hops and the options in `SearchScope` decide the subgraph: the nodes within
some edges of the seeds, and every edge among them. Everything else decides the presentation (`pages`).

Source: "A BFS-based graph query language" (BFS-QL).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.graph.bfsql.protocol import Selection
from byokg.graph.cancellation import check
from byokg.graph.sorted_ids import contains, distinct
from byokg.graph.store import Direction, EdgeBatch, GraphStore, InducedEdges, NodeArray
from byokg.graph.traversal import expand
from byokg.types import Properties, of_any

_AT_ONCE = 1 << 16
"""Nodes walked from between two looks at whether anybody still waits."""

CONFIDENCE, MENTIONS = "confidence", "total_mentions"
"""Properties that `min_confidence` and `min_mentions` read."""


@dataclass(frozen=True)
class SearchScope:
    """How far a search goes, and through what."""

    max_hops: int
    direction: Direction = Direction.BOTH
    """Which edges are walked, seen from the node left. Edges are shown in stored orientation all the same."""
    excluded_types: frozenset[str] = frozenset()
    """Nodes of these types are neither shown nor walked through, unless they are seeds."""
    min_confidence: float | None = None
    """Edges of lower confidence are neither shown nor walked; those without a confidence stay."""
    min_mentions: int | None = None
    """Nodes of fewer mentions are neither shown nor walked through, unless they are seeds; those without a number
    stay."""
    max_degree: int | None = None
    """Nodes with more edges are shown but not walked through, unless they are seeds."""

    @classmethod
    def of(cls, selection: Selection, hops: int) -> SearchScope:
        """Return the reach of a request."""
        return cls(
            hops,
            Direction(selection.direction),
            selection.excluded_types,
            selection.min_confidence,
            selection.min_mentions,
            selection.max_degree,
        )

    def restrictions(self) -> list[str]:
        """Return the restrictions of the subgraph beyond seeds and hops."""
        said = [] if self.direction is Direction.BOTH else [f"direction={self.direction.value}"]
        if self.excluded_types:
            said.append(f"exclude_entity_types={','.join(sorted(self.excluded_types))}")
        for name in ("min_confidence", "min_mentions", "max_degree"):
            if (value := getattr(self, name)) is not None:
                said.append(f"{name}={value}")
        return said


@dataclass(frozen=True)
class Subgraph:
    """N nodes, and the E edges that have both ends among them, each once."""

    nodes: NodeArray
    """(N,) node numbers, by hops and then by number."""
    hops: Int64
    """(N,) the fewest edges from any seed; of an intersection from the seed that is farthest away."""
    edges: InducedEdges

    @cached_property
    def degrees(self) -> Int64:
        """Return how many edges of the subgraph touch each node: (N,). A self-loop counts twice."""
        return self.edges.outgoing + np.bincount(self.edges.tail, minlength=len(self.nodes))

    def batch(self, rows: Int64) -> EdgeBatch:
        """Return some of the edges, in the given order, as a store does: found from their heads among the nodes."""
        head = self.edges.head[rows].astype(np.int64)
        return EdgeBatch(
            self.nodes[head],
            self.edges.relation[rows],
            self.nodes[self.edges.tail[rows]],
            self.edges.edge[rows].astype(np.int64),
            head,
            np.zeros(len(head), np.bool_),
            undirected=None if self.edges.undirected is None else self.edges.undirected[rows],
        )


def breadth_first(store: GraphStore, seeds: NodeArray, reach: SearchScope) -> Subgraph:
    """Return the nodes within some hops of any seed, with every edge among them, parallel ones and those of the last
    hop too.

    Args:
        store: graph to read; one call for each hop and one more, for any fan-out.
        seeds: (S,) node numbers.
        reach: extent of the search.

    Source: "A BFS-based graph query language" (BFS-QL), "Topology and presentation are orthogonal".
    """
    nodes, hops = _reached(store, seeds, reach)
    return _induced(store, nodes, hops, reach)


def intersection(store: GraphStore, seeds: NodeArray, reach: SearchScope) -> Subgraph:
    """Return the nodes within some hops of every seed, with every edge among them.

    Args:
        store: graph to read.
        seeds: (S,) node numbers, one or more.
        reach: extent of the search from each.
    """
    order = np.argsort(store.relation_counts(seeds).degrees(len(seeds)), kind="stable")
    nodes, hops = _reached_in_order(store, seeds[order[:1]], reach)
    for at in order[1:].tolist():  # the smallest neighbourhood first, and never more than two of them in memory
        others, taken = _reached_in_order(store, seeds[at : at + 1], reach)
        kept = np.flatnonzero(contains(others, nodes))
        nodes = nodes[kept]
        hops = np.maximum(hops[kept], taken[np.searchsorted(others, nodes)])
        if len(nodes) == 0:
            break
    order = np.lexsort((nodes, hops))
    return _induced(store, nodes[order], hops[order], reach)


def _reached_in_order(store: GraphStore, seeds: NodeArray, reach: SearchScope) -> tuple[NodeArray, Int64]:
    """Return what `_reached` does, by node number."""
    nodes, hops = _reached(store, seeds, reach)
    order = np.argsort(nodes, kind="stable")
    return nodes[order], hops[order]


def _reached(store: GraphStore, seeds: NodeArray, reach: SearchScope) -> tuple[NodeArray, Int64]:
    """Return the nodes within some hops, and how many each takes."""
    frontier = seen = distinct(seeds)
    rings = [frontier]
    for hop in range(reach.max_hops):
        if reach.max_degree is not None and hop > 0:
            frontier = frontier[store.relation_counts(frontier).degrees(len(frontier)) <= reach.max_degree]
        found = [_behind(store, frontier[at : at + _AT_ONCE], reach) for at in range(0, len(frontier), _AT_ONCE)]
        fresh = distinct(np.concatenate(found)) if len(found) > 1 else found[0] if found else frontier[:0]
        fresh = fresh[~contains(seen, fresh)]
        if len(fresh) == 0:
            break
        seen = distinct(np.concatenate((seen, fresh)))
        frontier = _admitted(store, fresh, reach)
        rings.append(frontier)
    return np.concatenate(rings), np.repeat(np.arange(len(rings)), [len(ring) for ring in rings])


def _behind(store: GraphStore, nodes: NodeArray, reach: SearchScope) -> NodeArray:
    """Return the other ends of the edges that are walked from some nodes, ascending."""
    if reach.min_confidence is None:
        check()
        return store.far_ends(nodes, reach.direction)
    batch = expand(store, nodes, reach.direction).edges
    return distinct(batch.take(_confident(store, batch.edge, reach.min_confidence)).other)


def _induced(store: GraphStore, nodes: NodeArray, hops: Int64, reach: SearchScope) -> Subgraph:
    """Add the edges that have both ends among the nodes."""
    check()
    edges = _outward(store.edges_among(nodes, reach.direction), len(nodes))
    if reach.min_confidence is not None:
        rows = _confident(store, edges.edge, reach.min_confidence)
        outgoing = np.bincount(edges.head[rows], minlength=len(nodes))
        undirected = None if edges.undirected is None else edges.undirected[rows]
        edges = InducedEdges(outgoing, edges.tail[rows], edges.relation[rows], edges.edge[rows], undirected)
    return Subgraph(nodes, hops, edges)


def _outward(edges: InducedEdges, nodes: int) -> InducedEdges:
    """Return the undirected ones of some edges from the end that stands first among the nodes, nearer to the seeds."""
    if edges.undirected is None:
        return edges
    head, tail = edges.head.astype(np.int64), edges.tail.astype(np.int64)
    turned = edges.undirected & (tail < head)
    head, tail = np.where(turned, tail, head), np.where(turned, head, tail)
    order = np.lexsort((edges.edge, tail, edges.relation, head))
    outgoing = np.bincount(head, minlength=nodes)
    return InducedEdges(outgoing, tail[order], edges.relation[order], edges.edge[order], edges.undirected[order])


def _confident(store: GraphStore, edges: npt.NDArray[np.integer], least: float) -> Int64:
    """Return the positions of the edges without a confidence below the minimum."""
    said = store.edge_properties(edges.astype(np.int64))
    return np.array([at for at, properties in enumerate(said) if not _below(properties, CONFIDENCE, least)], np.int64)


def _admitted(store: GraphStore, nodes: NodeArray, reach: SearchScope) -> NodeArray:
    """Leave out the nodes of excluded types or few mentions."""
    if not reach.excluded_types and reach.min_mentions is None:
        return nodes
    least = reach.min_mentions or 0
    kept = [
        at
        for at, node in enumerate(store.nodes(store.ids(nodes)))
        if not of_any(node, reach.excluded_types) and not _below(node.properties, MENTIONS, least)
    ]
    return nodes[np.array(kept, np.int64)]


def _below(properties: Properties, name: str, least: float) -> bool:
    """True if a property is a number that is too low; False for text and None."""
    value = properties.get(name)
    return isinstance(value, int | float) and value < least
