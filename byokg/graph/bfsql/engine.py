"""Answering BFS-QL requests on any graph store.

    {"seeds": ["PERSON:12345"], "max_hops": 1, "edge_filter": {"predicates": ["AUTHORED"]}}

Topology and presentation are apart: seeds, hops and the options that say so in their descriptions decide which nodes
and edges are in the subgraph; filters decide which of them are shown in full; bounds decide how many a response holds.

Source: "A BFS-based graph query language" (BFS-QL).
Differs: an omitted filter means all data. The article's Example 2 has stubs for all edges without any edge filter,
against its own "Query Format"; ask for that with an empty list of predicates.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byokg.graph.bfsql.clipping import clipped, fitting_items
from byokg.graph.bfsql.page import Ordered, Place, fingerprint, ordered, ordered_edges, read_cursor, write_cursor
from byokg.graph.bfsql.request import BfsRequest, IntersectRequest, Selection
from byokg.graph.bfsql.response import Json, compact, full_edge, full_node, stub_edge, stub_node
from byokg.graph.bfsql.seeds import Nearest, known_seeds
from byokg.graph.bfsql.topology import Reach, Subgraph, breadth_first, intersection
from byokg.graph.schema_text import estimate_tokens
from byokg.graph.store import GraphStore, NodeArray
from byokg.graph.syntax.nearest import nearest_names
from byokg.types import NO_PROPERTIES, EntityId, Node

Int64 = npt.NDArray[np.int64]

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
    after: Place
    bounds: list[str]
    """Those that were reached."""


def _page(store: GraphStore, subgraph: Subgraph, request: Selection, mark: str, room: int | None) -> _Page:
    """Show nodes and edges from where the cursor points, as many as the bounds allow."""
    total = len(subgraph.nodes)
    before = read_cursor(request.cursor, mark) if request.cursor is not None else Place(min(request.offset, total))
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
    after = Place(before.nodes + len(nodes), first_edge + len(edges))
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
