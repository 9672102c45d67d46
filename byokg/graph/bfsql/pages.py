"""In which order a subgraph is shown, how much of it on one page, and what the rest is folded into.

Edges come before other edges where a filter matches them (or the far end), where their predicate is more relevant to
the question, where they are nearer to the seeds, and where their far end has more edges within the subgraph; then by
ids, predicate, and number in the store. Each end is shown before the first edge that it belongs to; nodes without any
edge, and a few seeds, before all. So pages put together are the whole, and no edge has an end that was not shown.

What the first page has no room for is folded: a count and a sample for each predicate and direction. Where a filter
says what matters, only that is listed, and the stubs are folded unless all of them fit.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from enum import Enum
from functools import cached_property
from heapq import nsmallest

import numpy as np
import numpy.typing as npt

from byokg.errors import RequestInvalid
from byokg.graph.bfsql.protocol import (
    Json,
    Selection,
    article_node,
    clipped,
    compact,
    full_edge,
    full_node,
    stub_edge,
    stub_node,
)
from byokg.graph.bfsql.topology import Int64, Reach, Subgraph
from byokg.graph.bfsql.values import about
from byokg.graph.stopping import check
from byokg.graph.store import GraphStore, SavedGraph
from byokg.text import estimate_tokens
from byokg.types import NO_PROPERTIES, EntityId, Node

Ranks = npt.NDArray[np.int64]
"""(R,) for each relation of the store its place by relevance to a question, 0 for the most relevant."""

Relevance = Callable[[str], Ranks]

_FEW_SEEDS = 10
"""So many are shown first, whether or not an edge of them is."""

_TYPED = 1 << 14
"""Nodes whose types are read to find out which edges lead to one that was asked for: the nearest."""

_FOLD_TOKENS, _FOLD_SHARE = 500, 3
"""What folded groups may take, and their part of a page's room."""

_SAMPLE, _LOOKED_AT = 2, 64
"""Nodes shown of a folded group, and nodes of the same number of edges that they are chosen from by id."""

_LEAST_NODE = estimate_tokens(compact(stub_node(Node(EntityId(""), ""))))
"""What the smallest node takes."""
_LIKELY_EDGE = 8 + estimate_tokens(compact(stub_edge(EntityId(""), "", EntityId(""))))
_LIKELY_GROUP = 16 + estimate_tokens(compact({"predicate": "", "direction": "out", "count": 1, "sample": [{"id": ""}]}))
"""Items with ids of some letters: more are not put into order for a page, though they might fit."""

_RANK_BITS, _HOP_BITS = 16, 6
_MOST_HOPS = (1 << _HOP_BITS) - 1


# Order


class Order:
    """The order of one subgraph for one request.

    Args:
        store: where it comes from.
        subgraph: N nodes and E edges.
        request: whose filters say what matters.
        ranks: of the relations; None where no question was asked.
    """

    def __init__(self, store: GraphStore, subgraph: Subgraph, request: Selection, ranks: Ranks | None) -> None:
        self._store, self._subgraph, self.ranks = store, subgraph, ranks
        self._types, self._predicates = request.full_types, request.full_predicates
        edges, hops = subgraph.edges, np.minimum(subgraph.hops, _MOST_HOPS).astype(np.int8)
        head, tail = hops.take(edges.head), hops.take(edges.tail)
        self.way = (head > tail).view(np.int8) + ((head == tail).view(np.int8) << 1)
        """(E,) 0 for an edge that leads away from the seeds, 1 towards them, 2 between nodes that are equally far."""
        self.hops = np.minimum(head, tail)
        """(E,) how far its nearer end is."""
        self._both_hops = self.hops.astype(np.int32) << _HOP_BITS | np.maximum(head, tail)

    def far(self, rows: Int64) -> npt.NDArray[np.integer]:
        """Return which end of some edges is farther from the seeds, as positions among the nodes."""
        edges = self._subgraph.edges
        return np.where(self.way[rows] == 1, edges.head[rows], edges.tail[rows])

    def near(self, rows: Int64) -> npt.NDArray[np.integer]:
        """Return the other end of some edges."""
        edges = self._subgraph.edges
        return np.where(self.way[rows] == 1, edges.tail[rows], edges.head[rows])

    @cached_property
    def _wanted_nodes(self) -> npt.NDArray[np.bool_]:
        """Tell which nodes are of a type asked for, as far as that was looked at: (N,)."""
        found = np.zeros(len(self._subgraph.nodes), np.bool_)
        if self._types:
            nodes = self._store.nodes(self._store.ids(self._subgraph.nodes[:_TYPED]))
            found[: len(nodes)] = [node.type in self._types for node in nodes]
        return found

    @cached_property
    def relation_keys(self) -> npt.NDArray[np.int32]:
        """Return a number for each relation, lower for those that come before: (R,)."""
        keys = np.zeros(len(self._store.relations), np.int32)
        if self._predicates is not None:
            keys += np.array([label not in self._predicates for label in self._store.relations], np.int32)
            keys <<= 1 + _RANK_BITS
        if self.ranks is not None:
            keys |= np.minimum(self.ranks, (1 << _RANK_BITS) - 1).astype(np.int32)
        return keys

    @cached_property
    def keys(self) -> npt.NDArray[np.integer]:
        """Return a number for each edge, lower for those that come before: (E,). Only degree and id are left to say."""
        edges = self._subgraph.edges
        if self._types is None and not self.relation_keys.any():
            return self._both_hops
        keys = self.relation_keys.take(edges.relation).astype(np.int64)
        if self._types is not None:
            keys += (~self._wanted_nodes.take(self.far(np.arange(len(edges))))).astype(np.int64) << _RANK_BITS
        return keys << 2 * _HOP_BITS | self._both_hops

    @cached_property
    def matching(self) -> int:
        """Return how many edges are what some filter asks for; they come first. All are where there is no filter."""
        filters = (self._predicates is not None) * 2 + (self._types is not None)
        stubbed = filters << _RANK_BITS + 2 * _HOP_BITS
        return len(self.keys) if not filters else int((self.keys < stubbed).sum())

    def refined(self, rows: Int64) -> Int64:
        """Return for some edges of the same key a number, lower for those whose far end has more edges."""
        return -self._subgraph.degrees.take(self.far(rows))

    def rows(self, count: int) -> Int64:
        """Return the first edges, in order, as positions among those of the subgraph: (count,)."""
        keys = self.keys
        count = min(count, len(keys))
        if count == 0:
            return np.empty(0, np.int64)
        bound = np.partition(keys, count - 1)[count - 1] if count < len(keys) else keys.max()
        before, tied = np.flatnonzero(keys < bound), np.flatnonzero(keys == bound)
        if (lacking := count - len(before)) < len(tied):
            tied = self._first(tied, lacking)
        rows = np.concatenate((before, tied))
        edges, labels = self._subgraph.edges, self._store.relations
        columns = zip(
            keys[rows].tolist(),
            self.refined(rows).tolist(),
            self._store.ids(self._subgraph.nodes[self.far(rows)]),
            self._store.ids(self._subgraph.nodes[self.near(rows)]),
            [labels[number] for number in edges.relation[rows].tolist()],
            self.way[rows].tolist(),
            edges.edge[rows].tolist(),
            strict=True,
        )
        sequence = [at for _, at in sorted(zip(columns, range(len(rows)), strict=True))]
        return rows[sequence[:count]]

    def _first(self, tied: Int64, count: int) -> Int64:
        """Leave out of edges of the same key most of those that are not among the first `count`."""
        degrees = self.refined(tied)
        bound = np.partition(degrees, count - 1)[count - 1]
        before, tied = tied[degrees < bound], tied[degrees == bound]
        ids = self._store.ids(self._subgraph.nodes[self.far(tied)])
        last = nsmallest(count - len(before), ids)[-1]
        return np.concatenate((before, tied[[at for at, id in enumerate(ids) if id <= last]]))

    @cached_property
    def leading(self) -> Int64:
        """Return the nodes that come before all edges: those without one, and the seeds where they are few."""
        subgraph = self._subgraph
        seeds = subgraph.hops == 0
        first = subgraph.degrees == 0
        if seeds.sum() <= _FEW_SEEDS:
            first |= seeds
        places = np.flatnonzero(first)
        ids = self._store.ids(subgraph.nodes[places])
        marks = zip((~self._wanted_nodes[places]).tolist(), subgraph.hops[places].tolist(), ids, strict=True)
        order = [at for _, at in sorted(zip(marks, range(len(places)), strict=True))]
        return places[order]


@dataclass(frozen=True)
class _Sequence:
    """The beginning of a subgraph in order: nodes, and edges that each come behind both of their ends."""

    nodes: Int64
    rows: Int64
    later: Int64
    """For each edge, which node of `nodes` it comes behind."""

    @classmethod
    def of(cls, order: Order, leading: Int64, rows: Int64) -> _Sequence:
        ends = np.concatenate((leading, np.stack((order.near(rows), order.far(rows)), axis=1).ravel()))
        distinct, first, group = np.unique(ends, return_index=True, return_inverse=True)
        sequence = np.argsort(first, kind="stable")
        rank = np.empty(len(distinct), np.int64)
        rank[sequence] = np.arange(len(distinct))
        later = rank[group[len(leading) :]].reshape(-1, 2).max(axis=1, initial=0)
        return cls(distinct[sequence].astype(np.int64), rows, np.maximum.accumulate(later))


# Cursors


_CURSOR = re.compile(r"n(\d{1,18})-e(\d{1,18})-([0-9a-f]{12})")


@dataclass(frozen=True)
class Position:
    """How much of a subgraph was shown before."""

    nodes: int = 0
    edges: int = 0


def graph_mark(store: GraphStore) -> str:
    """Return what tells one graph from another: its checksum, and of one without files its name and counts."""
    if isinstance(store, SavedGraph) and store.checksum is not None:
        return store.checksum
    schema = store.schema()
    counts = sorted((relation.name, relation.count) for relation in schema.relations)
    return json.dumps([store.name, sorted(schema.node_types.items()), counts], ensure_ascii=False)


def fingerprint(store: GraphStore, kind: str, *asked: object) -> str:
    """Return what a cursor remembers of the graph and the request it leads through, so that it is used for no other."""
    said = [kind, graph_mark(store), [_plain(each) for each in asked]]
    return hashlib.sha256(json.dumps(said, ensure_ascii=False).encode()).hexdigest()[:12]


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Reach):
        return [_plain(each) for each in astuple(value)]
    if isinstance(value, frozenset):
        return sorted(value)
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def write_cursor(place: Position, mark: str) -> str:
    """Write where to go on."""
    return f"n{place.nodes}-e{place.edges}-{mark}"


def read_cursor(text: str, mark: str) -> Position:
    """Read where to go on.

    Raises:
        RequestInvalid: it is no cursor, or that of another request or another graph.
    """
    found = _CURSOR.fullmatch(text.strip())
    if found is None:
        raise RequestInvalid([f"cursor: {text[:80]!r} is none; copy truncated.cursor of the response before"])
    if found[3] != mark:
        raise RequestInvalid(
            [
                f"cursor: {text!r} belongs to another graph or request; keep all arguments as they were, "
                "or ask again without a cursor"
            ]
        )
    return Position(int(found[1]), int(found[2]))


# Pages


@dataclass(frozen=True)
class Page:
    """What one response shows."""

    nodes: list[Json]
    edges: list[Json]
    folded: list[Json]
    after: Position
    bounds: list[str]
    """Those that were reached."""
    unfolded: int
    """Groups that no room was left for."""
    matching_left: int
    """Edges that filters ask for and that come after those shown."""


def page(
    store: GraphStore,
    subgraph: Subgraph,
    request: Selection,
    before: Position | None,
    room: int | None,
    ranks: Ranks | None = None,
    strict: bool = False,
) -> Page:
    """Show a subgraph from some position, as much of it as the bounds allow.

    Args:
        store: where it comes from.
        subgraph: N nodes and E edges.
        request: says what matters, and how much may be shown.
        before: what the cursor says; None where there is none.
        room: tokens for all items; None for any number.
        ranks: see `Order`.
        strict: write items as the article does.
    """
    order = Order(store, subgraph, request, ranks)
    total = len(subgraph.edges)
    most_edges = total if room is None else room // _LIKELY_EDGE + 1
    most_edges = min(most_edges, request.max_edges or total)
    first = before or Position()
    laid = _laid_out(order, subgraph, first, request, most_edges)
    if before is None and request.offset:
        skipped = min(request.offset, len(laid.nodes))
        first = Position(skipped, int(np.searchsorted(laid.later, skipped)))
    most_nodes = request.most_nodes
    last_node = len(laid.nodes) if most_nodes is None else min(len(laid.nodes), first.nodes + most_nodes)
    rows = laid.rows[first.edges : first.edges + most_edges]
    later = laid.later[first.edges : first.edges + most_edges]
    rows = rows[: int(np.searchsorted(later, last_node))]
    if room is not None:
        last_node = min(last_node, first.nodes + room // _LEAST_NODE + 1)
    nodes = _shown_nodes(store, subgraph, laid.nodes[first.nodes : last_node], request, ranks, strict)
    edges = _shown_edges(store, subgraph, rows, request)
    counts = fitting = len(nodes), len(edges)
    sizes = _Sizes(nodes), _Sizes(edges)
    behind = np.maximum(later[: len(rows)] - first.nodes, 0).tolist()
    if room is not None:
        fitting = _fitting(*sizes, counts, behind, room)
    whole = first.nodes + fitting[0] == len(subgraph.nodes) and first.edges + fitting[1] == total
    folding = before is None and not request.offset and not strict and not whole
    kept = room
    if folding and room is not None:
        # What matters is listed; the rest is folded, which needs a part of the room.
        kept = room - min(_FOLD_TOKENS, room // _FOLD_SHARE)
        listed = min(len(edges), order.matching)
        needed = int(later[listed - 1]) + 1 if listed else len(order.leading)
        fitting = _fitting(*sizes, (min(needed, len(nodes)), listed), behind, kept)
    nodes, edges = nodes[: fitting[0]], edges[: fitting[1]]
    if kept is not None and len(nodes) + len(edges) == 1:  # which came whatever its size
        nodes, edges = ([clipped(item, kept) for item in items] for items in (nodes, edges))
    after = Position(first.nodes + len(nodes), first.edges + len(edges))
    folded, unfolded = _folded(store, subgraph, order, rows[: len(edges)], room) if folding else ([], 0)
    cut = most_nodes is not None and after.nodes == first.nodes + most_nodes < len(subgraph.nodes)
    bounds = {
        "limit": cut and most_nodes == request.limit,
        "max_nodes": cut and most_nodes == request.max_nodes,
        "max_edges": len(edges) == request.max_edges and after.edges < total,
    }
    reached = [name for name, is_reached in bounds.items() if is_reached]
    if not reached or fitting != counts:
        reached.append("budget_tokens")
    return Page(nodes, edges, folded, after, reached, unfolded, max(0, order.matching - after.edges))


def _laid_out(order: Order, subgraph: Subgraph, first: Position, request: Selection, most_edges: int) -> _Sequence:
    """Put as many edges into order as a page may need, with the nodes that belong to them."""
    total, leading = len(subgraph.edges), order.leading
    bound = request.most_nodes
    wanted_nodes = None if bound is None else max(first.nodes, request.offset) + bound
    wanted = total if request.offset and bound is None else min(total, first.edges + most_edges)
    if wanted_nodes is not None:
        wanted = min(wanted, first.edges + 2 * wanted_nodes + 64)
    while True:
        check()
        laid = _Sequence.of(order, leading, order.rows(wanted))
        lacking = wanted_nodes is not None and len(laid.nodes) < wanted_nodes
        if not lacking or wanted >= min(total, first.edges + most_edges):
            return laid
        wanted = min(total, first.edges + most_edges, 4 * wanted)


def _shown_nodes(
    store: GraphStore,
    subgraph: Subgraph,
    places: Int64,
    request: Selection,
    ranks: Ranks | None,
    strict: bool,
) -> list[Json]:
    """Return some nodes, in full or as stubs; mediators with what they stand for."""
    wanted = frozenset() if request.topology_only else request.full_types
    numbers = subgraph.nodes[places]
    nodes = store.nodes(store.ids(numbers))
    full = [wanted is None or node.type in wanted for node in nodes]
    if strict:
        return [article_node(node, each) for node, each in zip(nodes, full, strict=True)]
    items = [full_node(node) if each else stub_node(node) for node, each in zip(nodes, full, strict=True)]
    inner = subgraph.hops[places] > 0
    for at, said in about(store, numbers, nodes, inner, subgraph.nodes[subgraph.hops == 0], ranks):
        items[at]["about"] = said
    return items


def _shown_edges(store: GraphStore, subgraph: Subgraph, rows: Int64, request: Selection) -> list[Json]:
    """Return some edges, in full or as stubs."""
    wanted = frozenset() if request.topology_only else request.full_predicates
    batch = subgraph.batch(rows)
    relations = list(map(store.relations.__getitem__, batch.relation.tolist()))
    full = [at for at, relation in enumerate(relations) if wanted is None or relation in wanted]
    properties = [NO_PROPERTIES] * len(relations)
    for at, said in zip(full, store.edge_properties(batch.edge[full]), strict=True):
        properties[at] = said
    return list(map(full_edge, store.ids(batch.head), relations, store.ids(batch.tail), properties))


class _Sizes(dict[int, int]):
    """What items take, by their position, with a comma; worked out when asked for."""

    def __init__(self, items: Sequence[Json]) -> None:
        super().__init__()
        self._items = items

    def __missing__(self, at: int) -> int:
        """Return the tokens of one item."""
        self[at] = size = estimate_tokens(compact(self._items[at])) + 1
        return size


def _fitting(nodes: _Sizes, edges: _Sizes, counts: tuple[int, int], later: Sequence[int], room: int) -> tuple[int, int]:
    """Return how many nodes and edges fit, each node followed by the edges that lead back from it; one always does.

    Args:
        nodes: the tokens of each.
        edges: the tokens of each.
        counts: how many nodes and edges may be shown.
        later: for each edge the position of its later end among the nodes, 0 where that was shown before.
        room: tokens.
    """
    shown, (all_nodes, all_edges) = 0, counts
    for at in range(all_nodes + 1):
        if at < all_nodes:
            room -= nodes[at]
            if room < 0 and (at > 0 or shown > 0):
                return at, shown
        while shown < all_edges and later[shown] <= at:
            room -= edges[shown]
            if room < 0 and (all_nodes > 0 or shown > 0):
                return min(at + 1, all_nodes), shown
            shown += 1
    return all_nodes, shown


# Folds


def _folded(
    store: GraphStore, subgraph: Subgraph, order: Order, shown: Int64, room: int | None
) -> tuple[list[Json], int]:
    """Count the edges that are not shown by predicate and direction, the most relevant first, each with a sample.

    Returns:
        The groups that there is room for, and how many more there are.
    """
    labels = store.relations
    width = 3 * max(1, len(labels))
    cell = order.hops * np.int32(width) + subgraph.edges.relation * np.int32(3) + order.way
    size = width * (int(order.hops.max(initial=0)) + 1)
    by_hop = (np.bincount(cell, minlength=size) - np.bincount(cell[shown], minlength=size)).reshape(-1, width)
    counts = by_hop.sum(axis=0)
    present = np.flatnonzero(counts)
    present = present[
        np.array(sorted(range(len(present)), key=[labels[at // 3] for at in present.tolist()].__getitem__), np.int64)
    ]
    nearest = (by_hop[:, present] > 0).argmax(axis=0)
    ranked = np.lexsort((-counts[present], nearest, order.relation_keys[present // 3]))
    left = min(_FOLD_TOKENS, (room or _FOLD_SHARE * _FOLD_TOKENS) // _FOLD_SHARE)
    first = ranked[: min(left // _LIKELY_GROUP + 1, 255)]
    likely = present[first].tolist()
    chosen = np.zeros(by_hop.size, np.uint8)
    chosen[nearest[first] * width + present[first]] = np.arange(1, len(likely) + 1)
    number = chosen.take(cell)
    number[shown] = 0
    rows = np.flatnonzero(number)
    rows = rows[np.argsort(number[rows], kind="stable")]
    groups = np.split(rows, np.searchsorted(number[rows], np.arange(2, len(likely) + 1))) if likely else []
    samples = _samples(store, subgraph, order, groups)
    folded: list[Json] = []
    for at, sample in zip(likely, samples, strict=True):
        direction = ("out", "in", "level")[at % 3]
        item = {"predicate": labels[at // 3], "direction": direction, "count": int(counts[at]), "sample": sample}
        left -= estimate_tokens(compact(item)) + 1
        if left < 0:
            break
        folded.append(item)
    return folded, len(ranked) - len(folded)


def _samples(store: GraphStore, subgraph: Subgraph, order: Order, groups: Sequence[Int64]) -> list[list[Json]]:
    """Return the far ends of the first edges of each group; of mediators with what they stand for."""
    check()
    chosen: list[list[EntityId]] = []
    for rows in groups:
        if len(rows) > _SAMPLE:
            keys = order.refined(rows)
            rows = rows[keys <= np.partition(keys, _SAMPLE - 1)[_SAMPLE - 1]][:_LOOKED_AT]
        chosen.append(nsmallest(_SAMPLE, store.ids(subgraph.nodes[np.unique(order.far(rows))])))
    nodes = store.nodes([id for ids in chosen for id in ids])
    items = [{key: value for key, value in stub_node(node).items() if key != "entity_type"} for node in nodes]
    numbers = store.numbers([node.id for node in nodes])
    everything, seeds = np.ones(len(nodes), np.bool_), subgraph.nodes[subgraph.hops == 0]
    for at, said in about(store, numbers, nodes, everything, seeds, order.ranks):
        items[at]["about"] = dict(list(said.items())[:1])
    each = iter(items)
    return [[next(each) for _ in ids] for ids in chosen]
