"""Folds: counts and samples, by predicate and direction, of the items that do not fit on a page."""

from __future__ import annotations

from heapq import nsmallest

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.graph.bfsql.order import WAYS, SubgraphOrder
from byokg.graph.bfsql.protocol import Json, compact, stub_node
from byokg.graph.bfsql.topology import Subgraph
from byokg.graph.bfsql.values import about, nameless
from byokg.graph.cancellation import check
from byokg.graph.store import GraphStore
from byokg.text.names import estimate_tokens
from byokg.types import EntityId

FOLD_TOKENS, FOLD_SHARE = 500, 3
"""What folded groups may take, and their part of a page's room."""

_SAMPLE, _LOOKED_AT = 2, 64
"""Nodes shown of a folded group, and edges to nodes of equal degree that they are chosen from by id."""

_LIKELY_GROUP = 16 + estimate_tokens(compact({"predicate": "", "direction": "out", "count": 1, "sample": [{"id": ""}]}))
"""A group with ids of some letters: no more groups are looked at, though they might fit."""

_MOST_GROUPS = np.iinfo(np.uint8).max


def fold_edges(
    store: GraphStore, subgraph: Subgraph, order: SubgraphOrder, shown: Int64, room: int | None
) -> tuple[list[Json], int]:
    """Count the edges that are not shown by predicate and direction, the most relevant first, each with a sample.

    Returns:
        The groups that there is room for, and how many more there are.
    """
    labels = store.relations
    counts = order.counts - np.bincount(order.class_of(shown), minlength=len(order.counts))
    kept = counts.nonzero()[0]
    groups, of = np.unique(order.relation[kept] * len(WAYS) + order.way[kept], return_inverse=True)
    total = np.bincount(of, counts[kept], len(groups)).astype(np.int64)
    nearest = np.full(len(groups), np.iinfo(np.int64).max)
    np.minimum.at(nearest, of, order.hops[kept])
    relations, ways = np.divmod(groups, len(WAYS))
    left = min(FOLD_TOKENS, (room or FOLD_SHARE * FOLD_TOKENS) // FOLD_SHARE)
    most = min(left // _LIKELY_GROUP + 1, _MOST_GROUPS)
    ranks = order.relation_keys[relations]
    ranked = np.lexsort((-total, nearest, ranks))
    if most < len(groups):  # labels decide among equal ones alone
        bound = ranked[most - 1]
        after = ranked[most:]
        equal = (ranks[after] == ranks[bound]) & (nearest[after] == nearest[bound]) & (total[after] == total[bound])
        ranked = ranked[: most + int(equal.sum())]
    columns = (ranks, nearest, -total, relations, ways)
    told = zip(*(column[ranked].tolist() for column in columns), ranked.tolist(), strict=True)
    spelled = sorted((*before, labels[relation], way, at) for *before, relation, way, at in told)
    first = np.array([at for *_, at in spelled[:most]], np.int64)
    number = np.zeros(len(groups), np.uint8)
    number[first] = np.arange(1, len(first) + 1)
    marks = np.zeros(len(counts), np.uint8)
    marks[kept] = np.where(order.hops[kept] == nearest[of], number[of], 0)
    samples = _samples(store, subgraph, order, marks, shown, len(first))
    found: list[Json] = []
    for at, sample in zip(first.tolist(), samples, strict=True):
        label, way = labels[int(relations[at])], WAYS[int(ways[at])]
        item = {"predicate": label, "direction": way, "count": int(total[at]), "sample": sample}
        left -= estimate_tokens(compact(item)) + 1
        if left < 0:
            break
        found.append(item)
    return found, len(groups) - len(found)


def _samples(
    store: GraphStore, subgraph: Subgraph, order: SubgraphOrder, marks: npt.NDArray[np.uint8], shown: Int64, groups: int
) -> list[list[Json]]:
    """Return the far ends of the first edges of each group; for mediators their descriptions.

    Args:
        store: the graph.
        subgraph: N nodes and E edges.
        order: that of its edges, C classes of them.
        marks: (C,) the group of each class, counted from 1; 0 for none.
        shown: edges that are left out.
        groups: number of groups; each has an edge.
    """
    check()
    if not groups:
        return []
    rows, group = order.marked(marks)
    is_left = np.ones(len(subgraph.edges), np.bool_)
    is_left[shown] = False
    left = is_left.take(rows).nonzero()[0]
    left = left[np.argsort(group[left], kind="stable")]
    rows, group = rows[left], group[left]
    starts = np.searchsorted(group, np.arange(1, groups + 1))
    sizes = np.diff(starts, append=len(rows))
    far = order.far(rows)
    keys = -subgraph.degrees.take(far)
    # The second lowest key of each group, equal ones apart, bounds its first two edges.
    least = np.minimum.reduceat(keys, starts)
    lowest = keys == least.repeat(sizes)
    second = np.minimum.reduceat(np.where(lowest, 0, keys), starts)
    bound = np.where(np.add.reduceat(lowest, starts, dtype=np.int64) < _SAMPLE, second, least)
    kept = (keys <= bound.repeat(sizes)).nonzero()[0]
    begins = np.searchsorted(kept, starts)
    kept = kept[np.arange(len(kept)) - begins.repeat(np.diff(begins, append=len(kept))) < _LOOKED_AT]
    numbers = subgraph.nodes[far[kept]]
    ends: list[dict[EntityId, int]] = [{} for _ in range(groups)]
    for at, id, node in zip(group[kept].tolist(), store.ids(numbers), numbers.tolist(), strict=True):
        ends[at - 1][id] = node
    chosen = [nsmallest(_SAMPLE, each) for each in ends]
    nodes = store.nodes([id for ids in chosen for id in ids])
    items = [{key: value for key, value in stub_node(node).items() if key != "entity_type"} for node in nodes]
    own = np.array([ends[at][id] for at, ids in enumerate(chosen) for id in ids], numbers.dtype)
    seeds = subgraph.nodes[: np.searchsorted(subgraph.hops, 0, "right")]
    for at, said in about(store, own, nameless(nodes), seeds, order.ranks):
        items[at]["about"] = dict(list(said.items())[:1])
    each_item = iter(items)
    return [[next(each_item) for _ in ids] for ids in chosen]
