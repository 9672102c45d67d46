"""Answering BFS-QL requests on any graph store.

    {"seeds": ["PERSON:12345"], "max_hops": 1, "edge_filter": {"predicates": ["AUTHORED"]}}

Topology and presentation are apart. Seeds, hops and the options that say so in their descriptions decide which nodes
and edges are in the subgraph: breadth-first search from the seeds, and every edge among what was reached. Filters
decide which of them are shown in full, and bounds how many one response holds.

Nodes are ordered by hops, then by degree within the subgraph (the highest first), then by id. Edges follow their later
end: an edge belongs to the response that shows its second node. So pages put together are the whole, and no edge has
an end that was not shown. Edges between the same two nodes go by direction, predicate, and number in the store.

Source: "A BFS-based graph query language" (BFS-QL).
Differs: an omitted filter means all data. The article's Example 2 has stubs for all edges without any edge filter,
against its own "Query Format"; ask for that with an empty list of predicates.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import astuple, dataclass
from enum import Enum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from byokg.errors import EntityNotFound, RequestInvalid
from byokg.graph.bfsql.protocol import (
    BfsRequest,
    IntersectRequest,
    Json,
    Selection,
    clipped,
    compact,
    fitting_items,
    full_edge,
    full_node,
    stub_edge,
    stub_node,
)
from byokg.graph.guard.allowlist import nearest_names
from byokg.graph.int_sets import contains, distinct, positions
from byokg.graph.store import Direction, EdgeBatch, GraphStore, InducedEdges, InducingStore, NodeArray
from byokg.graph.traversal import select
from byokg.text import estimate_tokens
from byokg.types import NO_PROPERTIES, EntityId, Node, Properties

Int64 = npt.NDArray[np.int64]

CONFIDENCE, MENTIONS = "confidence", "total_mentions"
"""Properties that `min_confidence` and `min_mentions` read."""


@dataclass(frozen=True)
class Reach:
    """How far a search goes, and through what."""

    max_hops: int
    direction: Direction = Direction.BOTH
    """Which edges are walked, seen from the node left. Edges are shown in stored orientation all the same."""
    excluded_types: frozenset[str] = frozenset()
    """Nodes of these types are neither shown nor walked through, unless they are seeds."""
    min_confidence: float | None = None
    """Edges of lower confidence are neither shown nor walked; those that say none stay."""
    min_mentions: int | None = None
    """Nodes of fewer mentions are neither shown nor walked through, unless they are seeds; those that say none stay."""
    max_degree: int | None = None
    """Nodes with more edges are shown but not walked through, unless they are seeds."""

    @classmethod
    def of(cls, selection: Selection, hops: int) -> Reach:
        """Return what a request says about it."""
        return cls(
            hops,
            Direction(selection.direction),
            selection.excluded_types,
            selection.min_confidence,
            selection.min_mentions,
            selection.max_degree,
        )

    def restrictions(self) -> list[str]:
        """Say what makes the subgraph another one than seeds and hops alone would."""
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
        count = len(self.nodes)
        return np.bincount(self.edges.head, minlength=count) + np.bincount(self.edges.tail, minlength=count)

    def batch(self, rows: Int64) -> EdgeBatch:
        """Return some of the edges, in the order asked, as a store does: found from their heads among the nodes."""
        head = self.edges.head[rows].astype(np.int64)
        return EdgeBatch(
            self.nodes[head],
            self.edges.relation[rows],
            self.nodes[self.edges.tail[rows]],
            self.edges.edge[rows].astype(np.int64),
            head,
            np.zeros(len(head), np.bool_),
        )


def breadth_first(store: GraphStore, seeds: NodeArray, reach: Reach) -> Subgraph:
    """Find what is within some hops of any seed, with every edge among it, parallel ones and those of the last hop too.

    Args:
        store: graph to read; asked once for each hop and once more, whatever the fan-out.
        seeds: (S,) node numbers.
        reach: how far to go.

    Source: "A BFS-based graph query language" (BFS-QL), "Topology and presentation are orthogonal".
    """
    nodes, hops = _reached(store, seeds, reach)
    return _induced(store, nodes, hops, reach)


def intersection(store: GraphStore, seeds: NodeArray, reach: Reach) -> Subgraph:
    """Find what is within some hops of every seed, with every edge among it.

    Args:
        store: graph to read.
        seeds: (S,) node numbers, one or more.
        reach: how far to go from each.
    """
    around = [_reached(store, seeds[at : at + 1], reach) for at in range(len(seeds))]
    nodes = distinct(around[0][0])
    for reached, _ in around[1:]:
        nodes = nodes[contains(distinct(reached), nodes)]
    hops = np.max([hops[positions(reached, nodes)] for reached, hops in around], axis=0)
    order = np.lexsort((nodes, hops))
    return _induced(store, nodes[order], hops[order], reach)


def _reached(store: GraphStore, seeds: NodeArray, reach: Reach) -> tuple[NodeArray, Int64]:
    """Return the nodes within some hops, and how many each takes."""
    frontier = seen = distinct(seeds)
    rings = [frontier]
    for hop in range(reach.max_hops):
        if reach.max_degree is not None and hop > 0:
            frontier = frontier[store.relation_counts(frontier).degrees(len(frontier)) <= reach.max_degree]
        batch = store.edges(frontier, reach.direction)
        if reach.min_confidence is not None:
            batch = select(batch, _confident(store, batch.edge, reach.min_confidence))
        fresh = distinct(batch.other)
        fresh = fresh[~contains(seen, fresh)]
        if len(fresh) == 0:
            break
        seen = distinct(np.concatenate((seen, fresh)))
        frontier = _admitted(store, fresh, reach)
        rings.append(frontier)
    return np.concatenate(rings), np.repeat(np.arange(len(rings)), [len(ring) for ring in rings])


def _induced(store: GraphStore, nodes: NodeArray, hops: Int64, reach: Reach) -> Subgraph:
    """Add the edges that have both ends among the nodes."""
    edges = _among(store, nodes, reach.direction)
    if reach.min_confidence is not None:
        rows = _confident(store, edges.edge, reach.min_confidence)
        edges = InducedEdges(edges.head[rows], edges.tail[rows], edges.relation[rows], edges.edge[rows])
    return Subgraph(nodes, hops, edges)


def _among(store: GraphStore, nodes: NodeArray, searched: Direction) -> InducedEdges:
    """Return the edges that have both ends among the nodes, which were found by walking in one direction or both."""
    if isinstance(store, InducingStore):
        return store.edges_among(nodes)
    back = searched is Direction.IN  # what servers remember of the search is then the edges that come in
    batch = store.edges(nodes, Direction.IN if back else Direction.OUT)
    other = positions(nodes, batch.other)
    rows = np.flatnonzero(other >= 0)
    far, near = other.take(rows), batch.origin.take(rows)
    head, tail = (far, near) if back else (near, far)
    return InducedEdges(head, tail, batch.relation.take(rows), batch.edge.take(rows))


def _confident(store: GraphStore, edges: npt.NDArray[np.integer], least: float) -> Int64:
    """Return the positions of the edges that do not say that they are less certain than wanted."""
    said = store.edge_properties(edges.astype(np.int64))
    return np.array([at for at, properties in enumerate(said) if not _below(properties, CONFIDENCE, least)], np.int64)


def _admitted(store: GraphStore, nodes: NodeArray, reach: Reach) -> NodeArray:
    """Leave out the nodes that are excluded by what they are."""
    if not reach.excluded_types and reach.min_mentions is None:
        return nodes
    least = reach.min_mentions or 0
    kept = [
        at
        for at, node in enumerate(store.nodes(store.ids(nodes)))
        if node.type not in reach.excluded_types and not _below(node.properties, MENTIONS, least)
    ]
    return nodes[np.array(kept, np.int64)]


def _below(properties: Properties, name: str, least: float) -> bool:
    """Tell whether a property says a number that is too low; text and nothing say none."""
    value = properties.get(name)
    return isinstance(value, int | float) and value < least


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
class Position:
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


def write_cursor(place: Position, mark: str) -> str:
    """Write where to go on."""
    return f"n{place.nodes}-e{place.edges}-{mark}"


def read_cursor(text: str, mark: str) -> Position:
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
    return Position(int(found[1]), int(found[2]))


_HELPED = 20
"""Seeds that names are searched for: whoever has more unknown ones has no ids of this graph."""

_SHOWN = 80
"""Characters of a seed in a message."""

Nearest = Callable[[str], Sequence[Node]]
"""Finds nodes whose names are like a text, the most similar first."""


def known_seeds(store: GraphStore, seeds: Iterable[str], nearest: Nearest | None) -> tuple[list[EntityId], list[Json]]:
    """Return the seeds that are in the graph, each once, and an error for each other one (see `response.SeedError`).

    Args:
        store: the graph.
        seeds: ids, or what somebody took for ids.
        nearest: proposes nodes for the first few others; None proposes none.
    """
    asked = [EntityId(seed) for seed in dict.fromkeys(seeds)]
    lost: list[str] = []
    while True:
        try:
            store.numbers(asked)
            break
        except EntityNotFound as error:
            asked = [seed for seed in asked if seed != error.entity]
            lost.append(error.entity)
    return asked, [_seed_error(seed, nearest if at < _HELPED else None) for at, seed in enumerate(lost)]


def _seed_error(seed: str, nearest: Nearest | None) -> Json:
    """Say that a seed is not in the graph, and which nodes may have been meant."""
    found = [] if nearest is None else nearest(seed)
    step = "use the id of one of the nearest nodes" if found else "find ids with search_entities"
    return {
        "seed": seed,
        "message": f"no node has the id {seed[:_SHOWN]!r}; {step}",
        "nearest": [{"id": node.id, "entity_type": node.type, "name": node.name} for node in found],
    }


_FRAME_TOKENS = 90
"""What a response takes beside its items, seeds, errors and warnings: counts, and a truncated block with its cursor."""

_MOST_WARNINGS = 10
"""Unknown types, and unknown predicates, that are named."""

_LEAST_NODE = estimate_tokens(compact(stub_node(Node(EntityId(""), ""))))
_LEAST_EDGE = estimate_tokens(compact(stub_edge(EntityId(""), "", EntityId(""))))
"""What the smallest items take."""


def bfs_query(store: GraphStore, request: BfsRequest, nearest: Nearest | None = None) -> Json:
    """Return the subgraph around some seeds, as JSON holds it (see `response.BfsResponse`).

    Args:
        store: the graph.
        request: what is asked for.
        nearest: proposes nodes for seeds that are not in the graph; None proposes none.

    Raises:
        RequestInvalid: the cursor is not one of this request's.
    """
    seeds, errors = known_seeds(store, request.seeds, nearest)
    reach = Reach.of(request, request.max_hops)
    subgraph = breadth_first(store, store.numbers(seeds), reach)
    return _response(store, request, "max_hops", reach, seeds, errors, subgraph)


def intersect_subgraphs(store: GraphStore, request: IntersectRequest, nearest: Nearest | None = None) -> Json:
    """Return the nodes within `k` edges of every seed, and the edges among them (see `response.IntersectResponse`).

    Where a seed is not in the graph nothing is near all of them, so the subgraph is empty.

    Args:
        store: the graph.
        request: what is asked for.
        nearest: as for `bfs_query`.

    Raises:
        RequestInvalid: the cursor is not one of this request's.
    """
    seeds, errors = known_seeds(store, request.seeds, nearest)
    reach = Reach.of(request, request.k)
    numbers: NodeArray = store.numbers(seeds)
    subgraph = breadth_first(store, numbers[:0], reach) if errors else intersection(store, numbers, reach)
    return _response(store, request, "k", reach, seeds, errors, subgraph)


def _response(
    store: GraphStore,
    request: BfsRequest | IntersectRequest,
    hops: str,
    reach: Reach,
    seeds: Sequence[EntityId],
    errors: Sequence[Json],
    subgraph: Subgraph,
) -> Json:
    """Show one page of a subgraph."""
    response: Json = {
        "seeds": list(request.seeds),
        hops: reach.max_hops,
        "node_count": len(subgraph.nodes),
        "edge_count": len(subgraph.edges),
        "nodes": [],
        "edges": [],
    }
    mark = fingerprint(hops, seeds, reach, subgraph)
    budget = request.budget_tokens
    half = None if budget is None else (budget - _FRAME_TOKENS - estimate_tokens(compact(response))) // 2
    told = len(errors) if half is None else fitting_items(errors, half)
    more = [f"{len(errors) - told} more seeds are not in the graph"] if told < len(errors) else []
    said = {
        "restricted_by": reach.restrictions(),
        "errors": list(errors[:told]),
        "warnings": more + _unknown_names(store, request),
    }
    response.update({name: value for name, value in said.items() if value})
    room = None if budget is None else max(0, budget - _FRAME_TOKENS - estimate_tokens(compact(response)))
    page = _page(store, subgraph, request, mark, room)
    response["nodes"], response["edges"] = page.nodes, page.edges
    nodes_left, edges_left = len(subgraph.nodes) - page.after.nodes, len(subgraph.edges) - page.after.edges
    if nodes_left > 0 or edges_left > 0:
        response["truncated"] = {
            "by": page.bounds,
            "nodes_left": nodes_left,
            "edges_left": edges_left,
            "cursor": write_cursor(page.after, mark),
        }
    return response


@dataclass(frozen=True)
class _Page:
    """What one response shows."""

    nodes: list[Json]
    edges: list[Json]
    after: Position
    bounds: list[str]
    """Those that were reached."""


def _page(store: GraphStore, subgraph: Subgraph, request: Selection, mark: str, room: int | None) -> _Page:
    """Show nodes and edges from where the cursor points, as many as the bounds allow."""
    total = len(subgraph.nodes)
    before = read_cursor(request.cursor, mark) if request.cursor is not None else Position(min(request.offset, total))
    most = request.most_nodes
    last_node = last_wanted = total if most is None else min(total, before.nodes + most)
    if room is not None:
        last_node = min(last_wanted, before.nodes + room // _LEAST_NODE + 1)  # more cannot fit
    order = ordered(store, subgraph, last_node)
    first_edge = before.edges
    if request.cursor is None and before.nodes:
        first_edge = int(order.edges_before(np.array(before.nodes)))
    edges_wanted = min(len(order.edges), first_edge + (request.max_edges or len(order.edges)))
    if room is not None:
        last_node = _bounded(order, before.nodes, last_node, first_edge, room)
    rows = ordered_edges(store, subgraph, order, last_node)[first_edge:edges_wanted]
    if room is not None:
        rows = rows[: room // _LEAST_EDGE + 1]
    nodes = _shown_nodes(store, order.ids[before.nodes : last_node], request)
    edges = _shown_edges(store, subgraph, order, rows, request)
    if room is not None:
        later = np.maximum(order.later[rows] - before.nodes, 0)
        fitting = _fitting(nodes, edges, later.tolist(), room)
        nodes, edges = nodes[: fitting[0]], edges[: fitting[1]]
        if len(nodes) + len(edges) == 1:  # which came whatever its size
            nodes, edges = ([clipped(item, room) for item in items] for items in (nodes, edges))
    after = Position(before.nodes + len(nodes), first_edge + len(edges))
    cut = after.nodes == last_wanted < total
    bounds = {
        "limit": cut and most == request.limit,
        "max_nodes": cut and most == request.max_nodes,
        "max_edges": after.edges == edges_wanted < len(order.edges),
        "budget_tokens": after.nodes < last_wanted or after.edges < edges_wanted,
    }
    return _Page(nodes, edges, after, [name for name, reached in bounds.items() if reached])


def _bounded(order: Ordered, start: int, stop: int, first_edge: int, room: int) -> int:
    """Return up to which node items may fit, were all of them as small as can be."""
    counts = np.arange(start + 1, stop + 1)
    edges = np.maximum(order.edges_before(counts) - first_edge, 0)
    least = (counts - start) * _LEAST_NODE + edges * _LEAST_EDGE
    return min(stop, start + int(np.searchsorted(least, room, "right")) + 1)


def _shown_nodes(store: GraphStore, ids: Sequence[EntityId], request: Selection) -> list[Json]:
    """Return some nodes, in full or as stubs."""
    wanted = frozenset() if request.topology_only else request.full_types
    return [full_node(node) if wanted is None or node.type in wanted else stub_node(node) for node in store.nodes(ids)]


def _shown_edges(store: GraphStore, subgraph: Subgraph, order: Ordered, rows: Int64, request: Selection) -> list[Json]:
    """Return some of the edges among the ordered nodes, in full or as stubs."""
    wanted = frozenset() if request.topology_only else request.full_predicates
    places = order.edges[rows]
    relations = list(map(store.relations.__getitem__, subgraph.edges.relation[places].tolist()))
    full = [at for at, relation in enumerate(relations) if wanted is None or relation in wanted]
    properties = [NO_PROPERTIES] * len(relations)
    numbers = subgraph.edges.edge[places[full]].astype(np.int64)
    for at, said in zip(full, store.edge_properties(numbers), strict=True):
        properties[at] = said
    heads, tails = (map(order.ids.__getitem__, ends[rows].tolist()) for ends in (order.head, order.tail))
    return list(map(full_edge, heads, relations, tails, properties))


def _fitting(nodes: Sequence[Json], edges: Sequence[Json], later: Sequence[int], room: int) -> tuple[int, int]:
    """Return how many nodes and edges fit, each node followed by the edges that lead back from it; one always does.

    Args:
        later: for each edge the position of its later end among the nodes, 0 where that was shown before.
    """
    shown = 0
    for at in range(len(nodes) + 1):
        if at < len(nodes):
            room -= estimate_tokens(compact(nodes[at])) + 1
            if room < 0 and (at > 0 or shown > 0):
                return at, shown
        while shown < len(edges) and later[shown] <= at:
            room -= estimate_tokens(compact(edges[shown])) + 1
            if room < 0 and (len(nodes) > 0 or shown > 0):
                return min(at + 1, len(nodes)), shown
            shown += 1
    return len(nodes), shown


def _unknown_names(store: GraphStore, request: Selection) -> list[str]:
    """Say which types and predicates of a request the graph does not have, since they match nothing."""
    types = (request.full_types or frozenset()) | request.excluded_types
    predicates = request.full_predicates or frozenset()
    asked: list[tuple[str, frozenset[str], Collection[str]]] = [
        ("entity type", types, store.schema().node_types if types else ()),
        ("predicate", predicates, store.relations),
    ]
    warnings = []
    for kind, names, known in asked:
        unknown = sorted(name for name in names if name not in known)
        if len(unknown) > _MOST_WARNINGS:
            warnings.append(f"{len(unknown)} of {len(names)} names are no {kind} in the graph; see describe_schema")
        for name in unknown[:_MOST_WARNINGS]:
            near = ", ".join(map(repr, nearest_names(name, known)))
            step = f"nearest: {near}" if near else "see describe_schema"
            warnings.append(f"no {kind} {name!r} in the graph, so it matches nothing; {step}")
    return warnings
