"""Pages of a subgraph, in the order of `order`, with a cursor to the next.

Items beyond the first page are folded: counted and sampled by predicate and direction. With a filter, only matching
items are listed, and the stubs are folded unless all of them fit.

A value of a node's predicate is the node at the other end of an edge. A mediator is a node without a name that stands
for an event or a role: `France → governing_officials → m.0abc` means nothing by itself, so a mediator comes with the
values of its own predicates, `about`.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import nsmallest
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.errors import RequestInvalid
from byokg.graph.bfsql.order import WAYS, Ranks, SubgraphOrder, SubgraphPrefix
from byokg.graph.bfsql.protocol import (
    EDGE_FIELDS,
    Json,
    NeighborsRequest,
    SearchScope,
    Selection,
    Subgraph,
    article_node,
    clip,
    compact,
    full_edge,
    full_node,
    item_tokens,
    stub_edge,
    stub_node,
)
from byokg.graph.cancellation import check
from byokg.graph.sorted_ids import contains, distinct
from byokg.graph.store import Direction, EdgeBatch, GraphStore, NodeArray, Schema
from byokg.graph.traversal import relation_numbers
from byokg.text.names import estimate_tokens, is_identifier
from byokg.types import NO_PROPERTIES, EntityId, Node

_MEDIATOR_EDGES = 50
"""A node without a name that has more edges is no mediator."""

MEDIATORS, _ABOUT, _NAMES = 40, 6, 3
"""Mediators of a page with a description, predicates of each, and values of each of these."""

_READ = 20_000
"""Edges of one predicate and direction that are fetched for a few examples."""


def is_nameless(node: Node) -> bool:
    """True if a node has no name of its own, but a blank or an identifier."""
    return not node.name.strip() or is_identifier(node.name)


def nameless(nodes: Sequence[Node], asked: npt.NDArray[np.bool_] | None = None) -> list[int]:
    """Return the positions of nodes without a name, of the given ones: (N,), None for all."""
    looked_at = range(len(nodes)) if asked is None else asked.nonzero()[0].tolist()
    return [at for at in looked_at if is_nameless(nodes[at])]


def about(
    store: GraphStore, numbers: NodeArray, places: Sequence[int], known: NodeArray, ranks: Int64 | None
) -> Iterator[tuple[int, Json]]:
    """Yield descriptions of mediators among some nodes: the names at their other ends, by predicate.

    Args:
        store: the graph, read at most four times.
        numbers: (N,) node numbers.
        places: positions of nodes without a name, of which the first `MEDIATORS` are described.
        known: node numbers left out of descriptions, such as the seeds.
        ranks: (R,) places of relations by relevance; None takes them by label.

    Yields:
        The position of a mediator, and its values: those of the most relevant predicates.
    """
    places = places[:MEDIATORS]
    if not places:
        return
    own = numbers[np.array(places)]
    small = np.flatnonzero(store.relation_counts(own).degrees(len(own)) <= _MEDIATOR_EDGES)
    batch = store.edges(own[small], Direction.BOTH)
    batch = batch.take(np.flatnonzero(~contains(distinct(known), batch.other)))
    ends = store.ids(batch.other)
    names = {node.id: node.name for node in store.nodes(list(dict.fromkeys(ends))) if not is_nameless(node)}
    labels = store.relations
    found: dict[int, dict[tuple[int, str, bool], dict[str, None]]] = {}
    rows = zip(batch.origin.tolist(), batch.relation.tolist(), batch.inverse.tolist(), ends, strict=True)
    for origin, relation, inverse, end in rows:
        if (name := names.get(end)) is None:
            continue
        said = found.setdefault(origin, {})
        if inverse and any(name in some for (_, _, back), some in said.items() if not back):
            continue  # many graphs hold each edge in both directions
        rank = 0 if ranks is None else int(ranks[relation])
        said.setdefault((rank, labels[relation], inverse), {})[name] = None
    for origin, said in found.items():
        chosen = sorted(said)[:_ABOUT]
        texts = {f"^{label}" if back else label: _few(list(said[rank, label, back])) for rank, label, back in chosen}
        yield places[int(small[origin])], texts


def _few(names: Sequence[str]) -> str | list[str]:
    """Return one name as it is, and of several the first."""
    return names[0] if len(names) == 1 else list(names[:_NAMES])


@dataclass(frozen=True)
class PredicateValues:
    """The values of one predicate of a node, in one direction."""

    predicate: str
    direction: str
    """`out` if the node is the subject, `in` if it is the object, `both` if the edges are undirected."""
    count: int
    values: list[Json]
    """Each a node, with the properties of the edge; in the order of ids. Empty if there are too many to read."""

    def as_json(self, start: int, stop: int) -> Json:
        """Return some of the values."""
        return {
            "predicate": self.predicate,
            "direction": self.direction,
            "count": self.count,
            "values": self.values[start:stop],
        }


def groups(
    store: GraphStore, node: EntityId, request: NeighborsRequest, ranks: Int64 | None
) -> list[tuple[int, bool, int]]:
    """Return predicate, direction and number of the edges of a node, in the order of output.

    Requested predicates keep the request's order; others go by relevance, then the rarer first, since they inform more.

    Raises:
        RelationNotFound: a predicate is not in the graph.
    """
    numbers = store.numbers([node])
    wanted = relation_numbers(store, request.predicates or None)
    order = {} if wanted is None else {number: at for at, number in enumerate(wanted.tolist())}
    counts = store.relation_counts(numbers)
    columns = (counts.relation.tolist(), counts.inverse.tolist(), counts.count.tolist())
    met = [group for group in zip(*columns, strict=True) if wanted is None or group[0] in order]
    found = [group for group in met if request.direction == "both" or group[1] == (request.direction == "in")]
    if request.direction == "in":  # undirected edges come in as well, and are counted as edges that go out
        either = set(store.undirected_relations().tolist()) & {relation for relation, *_ in met}
        coming = {relation: len(store.edges(numbers, Direction.IN, np.array([relation]))) for relation in either}
        found = [group for group in found if group[0] not in either]
        found += [(relation, True, count) for relation, count in coming.items() if count]
    labels = store.relations

    def key(group: tuple[int, bool, int]) -> tuple[object, ...]:
        relation, inverse, count = group
        rank = order.get(relation, 0) if ranks is None or order else int(ranks[relation])
        return rank, count if not order else 0, labels[relation], inverse

    return sorted(found, key=key)


def values(
    store: GraphStore, node: EntityId, group: tuple[int, bool, int], few: int | None, ranks: Int64 | None
) -> PredicateValues:
    """Return the values of one group: all of them, or the first few.

    Args:
        store: the graph.
        node: owner of the values.
        group: predicate, direction and number of edges, as `groups` returns them.
        few: wanted number of examples; None reads everything.
        ranks: for descriptions of mediators.
    """
    relation, inverse, count = group
    check()
    direction, label = Direction.IN if inverse else Direction.OUT, store.relations[relation]
    way = "in" if inverse else "out"
    if relation in store.undirected_relations() and store.schema().relations[relation].symmetric:
        way = "both"
    if few is not None and count > _READ:
        return PredicateValues(label, way, count, [])
    batch = store.edges(store.numbers([node]), direction, np.array([relation]))
    ids = store.ids(batch.other)
    edges = batch.edge.tolist()
    order = sorted(range(len(ids)), key=lambda at: (ids[at], edges[at]))[:few]
    return PredicateValues(label, way, count, _items(store, batch.take(np.array(order, np.int64)), node, ranks))


def _items(store: GraphStore, batch: EdgeBatch, node: EntityId, ranks: Int64 | None) -> list[Json]:
    """Return the far ends of some edges, with the edges' properties."""
    numbers = batch.other
    nodes = store.nodes(store.ids(numbers))
    fields: Collection[str] = EDGE_FIELDS
    items = []
    for end, said in zip(nodes, store.edge_properties(batch.edge), strict=True):
        properties = {key: value for key, value in full_edge(node, "", end.id, said).items() if key not in fields}
        items.append({**stub_node(end), **properties})
    for at, told in about(store, numbers, nameless(nodes), store.numbers([node]), ranks):
        items[at]["about"] = told
    return items


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
