"""Pages of a subgraph, in the order of `order`, with a cursor to the next.

Items beyond the first page are folded (see `folds`). With a filter, only matching items are listed, and the stubs are
folded unless all of them fit.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from weakref import WeakKeyDictionary

import numpy as np

from byokg.arrays import Int64
from byokg.errors import RequestInvalid
from byokg.graph.bfsql.folds import FOLD_SHARE, FOLD_TOKENS, fold_edges
from byokg.graph.bfsql.order import Ranks, SubgraphOrder, SubgraphPrefix
from byokg.graph.bfsql.protocol import (
    Json,
    Selection,
    article_node,
    clip,
    compact,
    full_edge,
    full_node,
    item_tokens,
    stub_edge,
    stub_node,
)
from byokg.graph.bfsql.topology import SearchScope, Subgraph
from byokg.graph.bfsql.values import MEDIATORS, about, nameless
from byokg.graph.cancellation import check
from byokg.graph.store import GraphStore, Schema
from byokg.text.names import estimate_tokens
from byokg.types import NO_PROPERTIES, EntityId, Node

_LEAST_NODE = estimate_tokens(compact(stub_node(Node(EntityId(""), ""))))
"""Tokens of the smallest node."""
_LIKELY_EDGE = 8 + estimate_tokens(compact(stub_edge(EntityId(""), "", EntityId(""))))
"""A small edge, with ids of some letters: more are not put into order for a page, though they might fit."""

_AT_ONCE = 64
"""Items that are written together, and their sizes worked out."""


# Cursors


_CURSOR = re.compile(r"n(\d{1,18})-e(\d{1,18})-([0-9a-f]{12})")


@dataclass(frozen=True)
class PagePosition:
    """How much of a subgraph was shown before."""

    nodes: int = 0
    edges: int = 0


def graph_mark(store: GraphStore) -> str:
    """Return the identity of a graph: its checksum, or without files its name and counts."""
    if (checksum := store.checksum) is not None:
        return checksum
    schema = store.schema()
    known = _MARKS.get(store)
    if known is None or known[0] is not schema:
        counts = sorted((relation.name, relation.count) for relation in schema.relations)
        said = json.dumps([store.name, sorted(schema.node_types.items()), counts], ensure_ascii=False)
        known = _MARKS[store] = schema, hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()
    return known[1]


_MARKS: WeakKeyDictionary[GraphStore, tuple[Schema, str]] = WeakKeyDictionary()
"""Marks of graphs without files: there may be thousands of relations to read for one."""


def fingerprint(store: GraphStore, kind: str, *asked: object) -> str:
    """Return the fingerprint of graph and request in a cursor, which is valid for no other."""
    said = [kind, graph_mark(store), [_simplify_value(each) for each in asked]]
    return hashlib.sha256(_SAID.encode(said).encode()).hexdigest()[:12]


_SAID = json.JSONEncoder(ensure_ascii=False)


def _simplify_value(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, SearchScope):
        return [_simplify_value(each) for each in vars(value).values()]
    if isinstance(value, frozenset):
        return sorted(value)
    return [_simplify_value(each) for each in value] if isinstance(value, list | tuple) else value


def write_cursor(place: PagePosition, mark: str) -> str:
    """Write where to go on."""
    return f"n{place.nodes}-e{place.edges}-{mark}"


def read_cursor(text: str, mark: str) -> PagePosition:
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
    return PagePosition(int(found[1]), int(found[2]))


# Pages


@dataclass(frozen=True)
class Page:
    """Content of one response."""

    nodes: list[Json]
    edges: list[Json]
    folded: list[Json]
    after: PagePosition
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
    before: PagePosition | None,
    room: int | None,
    ranks: Ranks | None = None,
    strict: bool = False,
) -> Page:
    """Return a subgraph's items from some position, as many as the bounds allow.

    Args:
        store: the graph.
        subgraph: N nodes and E edges.
        request: filters and bounds.
        before: position of the cursor; None without one.
        room: tokens for all items; None for any number.
        ranks: see `SubgraphOrder`.
        strict: write items as the article does.
    """
    order, total = SubgraphOrder(store, subgraph, request, ranks), len(subgraph.edges)
    most_edges = min(total if room is None else room // _LIKELY_EDGE + 1, request.max_edges or total)
    first = before or PagePosition()
    laid = _laid_out(order, subgraph, first, request, most_edges)
    if before is None and request.offset:
        skipped = min(request.offset, len(laid.nodes))
        first = PagePosition(skipped, int(np.searchsorted(laid.later, skipped)))
    most_nodes = request.most_nodes
    last_node = len(laid.nodes) if most_nodes is None else min(len(laid.nodes), first.nodes + most_nodes)
    rows, later = (each[first.edges : first.edges + most_edges] for each in (laid.rows, laid.later))
    rows = rows[: int(np.searchsorted(later, last_node))]
    if room is not None:
        last_node = min(last_node, first.nodes + room // _LEAST_NODE + 1)
    places = laid.nodes[first.nodes : last_node]
    listing = _Nodes(store, subgraph, places, request, ranks, strict), _Edges(store, subgraph, rows, request)
    counts = fitting = len(places), len(rows)
    behind = np.maximum(later[: len(rows)] - first.nodes, 0).tolist()
    if room is not None:
        fitting = _fitting(*listing, counts, behind, room)
    whole = first.nodes + fitting[0] == len(subgraph.nodes) and first.edges + fitting[1] == total
    folding = before is None and not request.offset and not strict and not whole
    kept = room
    if folding and room is not None:
        # Matching items are listed; the rest is folded, which needs a part of the room.
        kept = room - min(FOLD_TOKENS, room // FOLD_SHARE)
        listed = min(len(rows), order.matching)
        needed = int(later[listed - 1]) + 1 if listed else len(order.leading)
        fitting = _fitting(*listing, (min(needed, len(places)), listed), behind, kept)
    nodes, edges = (items.first(count) for items, count in zip(listing, fitting, strict=True))
    if kept is not None and len(nodes) + len(edges) == 1:  # which came whatever its size
        nodes, edges = ([clip(item, kept) for item in items] for items in (nodes, edges))
    after = PagePosition(first.nodes + len(nodes), first.edges + len(edges))
    groups, unfolded = fold_edges(store, subgraph, order, rows[: len(edges)], room) if folding else ([], 0)
    cut = most_nodes is not None and after.nodes == first.nodes + most_nodes < len(subgraph.nodes)
    reached = [name for name in ("limit", "max_nodes") if cut and most_nodes == getattr(request, name)]
    if len(edges) == request.max_edges and after.edges < total:
        reached.append("max_edges")
    if not reached or fitting != counts:
        reached.append("budget_tokens")
    return Page(nodes, edges, groups, after, reached, unfolded, max(0, order.matching - after.edges))


def _laid_out(
    order: SubgraphOrder, subgraph: Subgraph, first: PagePosition, request: Selection, most_edges: int
) -> SubgraphPrefix:
    """Put as many edges into order as a page may need, with the nodes that belong to them."""
    total, leading = len(subgraph.edges), order.leading
    bound = request.most_nodes
    wanted_nodes = None if bound is None else max(first.nodes, request.offset) + bound
    wanted = total if request.offset and bound is None else min(total, first.edges + most_edges)
    if wanted_nodes is not None:
        wanted = min(wanted, first.edges + 2 * wanted_nodes + 64)
    while True:
        check()
        laid = SubgraphPrefix.of(order, leading, order.rows(wanted))
        lacking = wanted_nodes is not None and len(laid.nodes) < wanted_nodes
        if not lacking or wanted >= min(total, first.edges + most_edges):
            return laid
        wanted = min(total, first.edges + most_edges, 4 * wanted)


class _Items(ABC):
    """Items of a page, written in batches on demand: most often, half of them fit."""

    def __init__(self, places: Int64) -> None:
        self._places = places
        self._items: list[Json] = []
        self._sizes: list[int] = []

    @abstractmethod
    def written(self, places: Int64) -> list[Json]:
        """Write the items that come next."""

    def first(self, count: int) -> list[Json]:
        """Return the first items."""
        if len(self._items) < count:
            self._items += self.written(self._places[len(self._items) : count])
        return self._items[:count]

    def size(self, at: int) -> int:
        """Return the tokens of one item, with a comma."""
        while at >= (known := len(self._sizes)):
            items = self.first(min(known + _AT_ONCE, len(self._places)))[known:]
            self._sizes += [size + 1 for size in item_tokens(items)]
        return self._sizes[at]


class _Nodes(_Items):
    """Nodes, in full or as stubs; mediators with their descriptions."""

    def __init__(
        self,
        store: GraphStore,
        subgraph: Subgraph,
        places: Int64,
        request: Selection,
        ranks: Ranks | None,
        strict: bool,
    ) -> None:
        super().__init__(places)
        self._store, self._subgraph, self._ranks, self._strict = store, subgraph, ranks, strict
        self._request = request
        self._seeds = int(np.searchsorted(subgraph.hops, 0, "right"))
        self._untold = MEDIATORS

    def written(self, places: Int64) -> list[Json]:
        """Write nodes, mediators among the first ones with their descriptions."""
        numbers = self._subgraph.nodes[places]
        nodes = self._store.nodes(self._store.ids(numbers))
        full = [not self._request.topology_only and self._request.shows_in_full(node) for node in nodes]
        if self._strict:
            return list(map(article_node, nodes, full))
        items = [full_node(node) if each else stub_node(node) for node, each in zip(nodes, full, strict=True)]
        mediators = nameless(nodes, places >= self._seeds)[: self._untold]
        self._untold -= len(mediators)
        seeds = self._subgraph.nodes[: self._seeds]
        for at, said in about(self._store, numbers, mediators, seeds, self._ranks):
            items[at]["about"] = said
        return items


class _Edges(_Items):
    """Edges, in full or as stubs."""

    def __init__(self, store: GraphStore, subgraph: Subgraph, rows: Int64, request: Selection) -> None:
        super().__init__(rows)
        self._store, self._subgraph = store, subgraph
        self._wanted = frozenset() if request.topology_only else request.full_predicates

    def written(self, places: Int64) -> list[Json]:
        """Write edges."""
        store, wanted = self._store, self._wanted
        batch = self._subgraph.batch(places)
        relations = list(map(store.relations.__getitem__, batch.relation.tolist()))
        if wanted is None:
            properties = store.edge_properties(batch.edge)
        else:
            full = [at for at, relation in enumerate(relations) if relation in wanted]
            properties = [NO_PROPERTIES] * len(relations)
            for at, said in zip(full, store.edge_properties(batch.edge[full]), strict=True):
                properties[at] = said
        ends = store.ids(np.concatenate((batch.head, batch.tail)))
        columns = (ends[: len(relations)], relations, ends[len(relations) :], properties)
        if batch.undirected is None:
            return list(map(full_edge, *columns))
        return list(map(full_edge, *columns, batch.undirected.tolist()))


def _fitting(nodes: _Items, edges: _Items, counts: tuple[int, int], later: Sequence[int], room: int) -> tuple[int, int]:
    """Return the number of nodes and edges that fit, each node followed by its edges to earlier ones; at least one.

    Args:
        nodes: possible nodes.
        edges: possible edges.
        counts: largest numbers of nodes and edges.
        later: for each edge the position of its later end among the nodes, 0 if that was shown before.
        room: tokens.
    """
    shown, (all_nodes, all_edges) = 0, counts
    for at in range(all_nodes + 1):
        if at < all_nodes:
            room -= nodes.size(at)
            if room < 0 and (at > 0 or shown > 0):
                return at, shown
        while shown < all_edges and later[shown] <= at:
            room -= edges.size(shown)
            if room < 0 and (all_nodes > 0 or shown > 0):
                return min(at + 1, all_nodes), shown
            shown += 1
    return all_nodes, shown
