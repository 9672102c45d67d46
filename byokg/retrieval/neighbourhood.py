"""The triples around linked entities, of the relations that matter: at hubs too, whose edges nobody could read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byokg.graph.node_sets import contains, distinct
from byokg.graph.store import Direction, EdgeBatch, GraphStore, NodeArray, RelationCounts
from byokg.graph.traversal import cap, join, select

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]

Rate = Callable[[Int64], Float64]
"""Says how well each of some relations fits the question."""


@dataclass(frozen=True)
class Limits:
    """How much of a neighbourhood is read."""

    per_relation: int
    """Edges of one node, relation and direction, the first in edge order."""
    nodes: int
    """Nodes to go on from after each hop, those behind the best relations."""
    edges: int
    """Edges in all, those of the fewest hops and then of the best relations."""


@dataclass(frozen=True)
class Neighbourhood:
    """The edges within some hops of the sources, of the best relations there."""

    edges: EdgeBatch
    """Each edge once, by hop, then best relation first, then in edge order."""
    levels: tuple[NodeArray, ...]
    """The nodes whose edges were looked at, ascending: the sources, then those one hop away, and so on."""
    relations: Int64
    """(K,) the relations kept, best first, equal ones by number."""
    rated: int
    """How many relations there are within these hops."""
    truncated: bool
    """Whether a limit left something out."""


def neighbourhood(
    store: GraphStore, sources: NodeArray, hops: int, top_relations: int, rate: Rate, limits: Limits
) -> Neighbourhood:
    """Collect the edges of the best relations around some nodes.

    Which relations there are is asked of the store as counts, before any edge is read, so a hub costs no more than its
    relations, and then the edges of those that were kept.

    Args:
        store: the graph.
        sources: node numbers.
        hops: how far to go, in both directions; 1 or more.
        top_relations: relations to keep (k_r).
        rate: asked once about each relation that occurs.
        limits: what is read at most.
    """
    levels: list[NodeArray] = [distinct(sources)]
    scores: dict[int, float] = {}
    truncated = False
    for hop in range(hops):
        counts = store.relation_counts(levels[-1])
        new = np.array([each for each in distinct(counts.relation).tolist() if each not in scores], np.int64)
        scores.update(zip(new.tolist(), rate(new).tolist(), strict=True))
        if hop + 1 < hops:
            reached, cut = _reached(store, levels, counts, scores, limits)
            truncated |= cut
            levels.append(reached)
    kept = sorted(scores, key=lambda each: (-scores[each], each))[:top_relations]
    relations = np.array(kept, np.int64)
    edges, cut = _edges(store, levels, relations, limits)
    return Neighbourhood(edges, tuple(levels), relations, len(scores), truncated or cut)


def _reached(
    store: GraphStore, levels: list[NodeArray], counts: RelationCounts, scores: dict[int, float], limits: Limits
) -> tuple[NodeArray, bool]:
    """Return the nodes one hop on, and whether some were left out."""
    totals = np.bincount(counts.relation, np.minimum(counts.count, limits.per_relation))
    order = sorted(distinct(counts.relation).tolist(), key=lambda each: (-scores[each], each))
    # As many relations as it takes to have enough nodes: others need not be read at all.
    enough = int(np.searchsorted(totals[order].cumsum(), limits.nodes)) + 1 if order else 0
    chosen = np.array(order[:enough], np.int64)
    batch, cut = cap(store.edges(levels[-1], Direction.BOTH, chosen), limits.per_relation, per_relation=True)
    other = batch.other[_by_rank(batch, chosen)]
    for level in levels:
        other = other[~contains(level, other)]
    first = np.sort(np.unique(other, return_index=True)[1])
    return np.sort(other[first[: limits.nodes]]), cut or enough < len(order) or len(first) > limits.nodes


def _edges(store: GraphStore, levels: list[NodeArray], relations: Int64, limits: Limits) -> tuple[EdgeBatch, bool]:
    """Return the edges of some relations that touch the nodes of each level."""
    parts, truncated = [], False
    for level in levels:
        batch, cut = cap(store.edges(level, Direction.BOTH, relations), limits.per_relation, per_relation=True)
        parts.append((batch, _by_rank(batch, relations)))
        truncated |= cut
    edges, _ = join(parts, [len(level) for level in levels])
    first = np.sort(np.unique(edges.edge, return_index=True)[1])
    return select(edges, first[: limits.edges]), truncated or len(first) > limits.edges


def _by_rank(batch: EdgeBatch, relations: Int64) -> Int64:
    """Return the rows of a batch by the place of their relation among some, and then as they stand."""
    rank = np.zeros(int(relations.max(initial=-1)) + 1, np.int64)
    rank[relations] = np.arange(len(relations))
    return np.argsort(rank[batch.relation], kind="stable")
