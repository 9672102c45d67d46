"""Execution of BFS-QL requests on any graph store, the most relevant items first and on the first page.

Source: "A BFS-based graph query language" (BFS-QL).
Differs: an omitted filter means all data. The article's Example 2 has stubs for all edges without any edge filter,
against its own "Query Format"; an empty list of predicates gives that. Stubs have names, nodes without a type none, and
a response is a page in the order of `pages`; with `strict` it is the article's, whole and in its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from byokg.errors import EntityNotFound, RequestInvalid
from byokg.graph.bfsql.order import Ranks, Relevance
from byokg.graph.bfsql.pages import fingerprint, page, read_cursor, write_cursor
from byokg.graph.bfsql.protocol import (
    BfsRequest,
    IntersectRequest,
    Json,
    SearchScope,
    Selection,
    Subgraph,
    breadth_first,
    compact,
    fitting_items,
    intersection,
)
from byokg.graph.guard.allowlist import nearest_names
from byokg.graph.store import GraphStore, NodeArray
from byokg.graph.value_indexes import values_at_hand
from byokg.text.names import estimate_tokens, normalize_name
from byokg.types import EntityId, Node

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
        seeds: ids, or names that one node has.
        nearest: finds nodes for the first few others; None finds none.
    """
    asked = [EntityId(seed) for seed in dict.fromkeys(seeds)]
    errors: list[Json] = []
    while True:
        try:
            store.numbers(asked)
            return list(dict.fromkeys(asked)), errors
        except EntityNotFound as error:
            at = asked.index(EntityId(error.entity))
            found = nearest(error.entity) if nearest is not None and len(errors) < _HELPED else []
            named = [node.id for node in found if normalize_name(node.name) == normalize_name(error.entity)]
            asked[at : at + 1] = named if len(named) == 1 else []
            if len(named) != 1:
                errors.append(_seed_error(error.entity, found, len(named)))


def _seed_error(seed: str, found: Sequence[Node], named: int) -> Json:
    """Return the error for a seed that is not in the graph, with similar nodes, some of which may have it as name."""
    problem = "several nodes have the name" if named else "no node has the id"
    step = "use the id of one of the nearest nodes" if found else "find ids with search_entities"
    return {
        "seed": seed,
        "message": f"{problem} {seed[:_SHOWN]!r}; {step}",
        "nearest": [{"id": node.id, "entity_type": node.type, "name": node.name} for node in found],
    }


_FRAME_TOKENS = 100
"""Tokens of a response beside its items, seeds, errors and warnings: counts, and a truncated block with its cursor."""

_NEAREST = 3
"""Values that are proposed in place of one that no node has."""

Selected = TypeVar("Selected", bound=Selection)

_MOST_WARNINGS = 10
"""Unknown types, and unknown predicates, that are named."""


def bfs_query(
    store: GraphStore,
    request: BfsRequest,
    nearest: Nearest | None = None,
    relevance: Relevance | None = None,
    strict: bool = False,
) -> Json:
    """Return the subgraph around some seeds, as JSON (see docs/bfs-ql.md).

    Args:
        store: the graph.
        request: the parsed request.
        nearest: proposes nodes for unknown seeds; None proposes none.
        relevance: ranks predicates for the request's question; None takes them as equal.
        strict: respond as the article does: its fields only, the whole subgraph, and every seed has to exist.

    Raises:
        RequestInvalid: the cursor belongs to another request; or a seed is unknown, with `strict`.
    """
    seeds, errors = known_seeds(store, request.seeds, nearest)
    reach = SearchScope.of(request, request.max_hops)
    subgraph = breadth_first(store, store.numbers(seeds), reach)
    return _response(store, request, reach, seeds, errors, subgraph, relevance, strict)


def intersect_subgraphs(
    store: GraphStore, request: IntersectRequest, nearest: Nearest | None = None, relevance: Relevance | None = None
) -> Json:
    """Return the nodes within `k` edges of every seed, and the edges among them.

    Where a seed is not in the graph nothing is near all of them, so the subgraph is empty. Arguments and errors are
    those of `bfs_query`.
    """
    seeds, errors = known_seeds(store, request.seeds, nearest)
    reach = SearchScope.of(request, request.k)
    numbers: NodeArray = store.numbers(seeds)
    subgraph = breadth_first(store, numbers[:0], reach) if errors else intersection(store, numbers, reach)
    return _response(store, request, reach, seeds, errors, subgraph, relevance)


def _response(
    store: GraphStore,
    request: BfsRequest | IntersectRequest,
    reach: SearchScope,
    seeds: Sequence[EntityId],
    errors: Sequence[Json],
    subgraph: Subgraph,
    relevance: Relevance | None,
    strict: bool = False,
) -> Json:
    """Show one page of a subgraph."""
    request, unheld = grounded(store, request)
    hops = "max_hops" if isinstance(request, BfsRequest) else "k"
    ranks: Ranks | None = relevance(request.question) if relevance is not None and request.question else None
    response: Json = {
        "seeds": list(request.seeds),
        hops: reach.max_hops,
        "node_count": len(subgraph.nodes),
        "edge_count": len(subgraph.edges),
        "nodes": [],
        "edges": [],
    }
    if strict:
        if errors:
            raise RequestInvalid([f"seeds: {error['message']}" for error in errors])
        whole = page(store, subgraph, request, None, None, ranks, strict=True)
        return {**response, "nodes": whole.nodes, "edges": whole.edges}
    filters: list[object] = [request.full_types, request.full_predicates, request.question if ranks is not None else ""]
    filters += [f"{key}={value}" for key, value in sorted(request.full_values.items())]
    counts = [len(subgraph.nodes), len(subgraph.edges)]
    mark = fingerprint(store, hops, sorted(set(seeds)), reach, counts, filters)
    before = read_cursor(request.cursor, mark) if request.cursor else None
    budget = request.budget_tokens
    half = None if budget is None else (budget - _FRAME_TOKENS - estimate_tokens(compact(response))) // 2
    told = len(errors) if half is None else fitting_items(errors, half)
    more = [f"{len(errors) - told} more seeds are not in the graph"] if told < len(errors) else []
    said = {
        "restricted_by": reach.restrictions(),
        "errors": list(errors[:told]),
        "warnings": more + _unknown_names(store, request) + unheld,
    }
    response.update({name: value for name, value in said.items() if value})
    room = None if budget is None else max(0, budget - _FRAME_TOKENS - estimate_tokens(compact(response)))
    shown = page(store, subgraph, request, before, room, ranks)
    response["nodes"], response["edges"] = shown.nodes, shown.edges
    if shown.folded:
        response["folded"] = shown.folded
    nodes_left, edges_left = len(subgraph.nodes) - shown.after.nodes, len(subgraph.edges) - shown.after.edges
    if nodes_left > 0 or edges_left > 0:
        response["truncated"] = {
            "by": shown.bounds,
            "matching_left": shown.matching_left,
            "nodes_left": nodes_left,
            "edges_left": edges_left,
            **({"predicates_left": shown.unfolded} if shown.unfolded else {}),
            "cursor": write_cursor(shown.after, mark),
        }
    return response


def grounded(store: GraphStore, request: Selected) -> tuple[Selected, list[str]]:
    """Compare the values of a node filter with those of the graph.

    Returns:
        The request with values as the graph holds them (`7` for `"7"`), and for each value that no node has a message
        with the nearest ones. Values of a server that have not been read are left as they are.
    """
    if request.node_filter is None or not request.full_values:
        return request, []
    index = values_at_hand(store)
    known = sorted({name for names in store.schema().node_properties.values() for name in names})
    values, warnings = dict(request.full_values), []
    for name, value in request.full_values.items():
        if name not in known:
            near = ", ".join(map(repr, nearest_names(name, known))) or "none"
            warnings.append(f"no property {name!r} in the graph, so it matches nothing; nearest: {near}")
        elif index is not None:
            found = index.find(str(value), types=request.full_types, properties=[name], limit=_NEAREST)
            if found and found[0].exact:
                values[name] = found[0].value
            elif all(one.whole for one in index.properties() if one.property == name):
                near = "; ".join(f"{one.value!r} ({one.type}, {one.count:,})" for one in found) or "none"
                warnings.append(f"no node has {name} = {value!r}, so it matches nothing; nearest: {near}")
    filtered = request.node_filter.model_copy(update={"properties": values})
    return request.model_copy(update={"node_filter": filtered}), warnings


def _unknown_names(store: GraphStore, request: Selection) -> list[str]:
    """Return warnings for types and predicates of a request that the graph does not have, since they match nothing."""
    types = (request.full_types or frozenset()) | request.excluded_types
    known = store.schema().node_types if types else ()
    predicates = request.full_predicates or frozenset()
    return unknown_names("entity type", types, known) + unknown_names("predicate", predicates, store.relations)


def unknown_names(kind: str, names: frozenset[str], known: Collection[str]) -> list[str]:
    """Return a warning for unknown names, with the nearest existing ones."""
    unknown = sorted(names.difference(known))
    warnings = []
    if len(unknown) > _MOST_WARNINGS:
        warnings.append(f"{len(unknown)} of {len(names)} names are no {kind} in the graph; see describe_schema")
    for name in unknown[:_MOST_WARNINGS]:
        near = ", ".join(map(repr, nearest_names(name, known)))
        step = f"nearest: {near}" if near else "see describe_schema"
        warnings.append(f"no {kind} {name!r} in the graph, so it matches nothing; {step}")
    return warnings
