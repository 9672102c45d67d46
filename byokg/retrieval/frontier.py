"""One hop of an exploration: which relations its nodes have, and the edges of those that were chosen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from byokg.graph.store import Direction, EdgeBatch, GraphStore, NodeArray
from byokg.graph.traversal import join, select, triples
from byokg.index.identifiers import is_identifier
from byokg.types import EntityId, Triple

Int64 = npt.NDArray[np.int64]

_MEDIATOR_EDGES = 50
"""A node without a name that has more edges is no mediator."""

_SHOWN_THROUGH = 10
"""Edges of one mediator that are shown."""


@dataclass(frozen=True)
class Frontier:
    """The N nodes that an exploration stands on, and how many edges of each relation they have."""

    ids: tuple[EntityId, ...]
    numbers: NodeArray
    """(N,)"""
    counts: tuple[Mapping[int, tuple[int, int]], ...]
    """For each node, relation number to edges that go out and come in; by relation number."""

    @classmethod
    def of(cls, store: GraphStore, ids: Sequence[EntityId]) -> Frontier:
        """Ask the store about nodes. Raises `EntityNotFound`."""
        numbers = store.numbers(ids)
        groups = store.relation_counts(numbers)
        counts: list[dict[int, tuple[int, int]]] = [{} for _ in ids]
        for origin, relation, inverse, count in zip(
            groups.origin.tolist(),
            groups.relation.tolist(),
            groups.inverse.tolist(),
            groups.count.tolist(),
            strict=True,
        ):
            out, into = counts[origin].get(relation, (0, 0))
            counts[origin][relation] = (out, into + count) if inverse else (out + count, into)
        return cls(tuple(ids), numbers, tuple(dict(sorted(of.items())) for of in counts))


@dataclass(frozen=True)
class TooMany:
    """Edges of one relation and direction that were not looked at, since the node has too many of them."""

    id: EntityId
    relation: int
    inverse: bool
    count: int


@dataclass(frozen=True)
class Found:
    """What a hop found."""

    triples: tuple[tuple[Triple, int], ...]
    """Each with the place, from 0, that the relation which led to it has among those chosen; by that place, then by
    node of the frontier. A mediator's edges follow the one that led to it."""
    ends: tuple[EntityId, ...]
    """Nodes reached, each once; of mediators those that they lead to."""
    too_many: tuple[TooMany, ...]
    left_out: int
    """Edges of the chosen relations, and of mediators, that were looked at and not kept."""


def expand_relations(
    store: GraphStore,
    frontier: Frontier,
    chosen: Sequence[Sequence[int]],
    max_triples: int,
    hub_cap: int,
    known: Collection[EntityId] = (),
) -> Found:
    """Follow chosen relations both ways, and through mediators: nodes without a name that stand for an event or a role.

    The limit is shared evenly: first one edge of each relation and direction at each node, then a second, and so on;
    edges to known nodes go first.

    Args:
        store: graph to read; asked for edges once or, where a relation has too many, once more for that node.
        frontier: N nodes.
        chosen: relation numbers for each of them, the most important first: (N,) sequences.
        max_triples: triples to keep.
        hub_cap: edges of one relation and direction at one node from which on none is looked at.
        known: nodes to which an edge is worth more.
    """
    batch, too_many = _edges(store, frontier, chosen, hub_cap)
    ranked = _ranked(chosen)
    kept = select(batch, _shared(store, batch, ranked, max_triples, known))
    others = store.ids(kept.other)
    mediators = _mediators(store, [id for id in dict.fromkeys(others) if id not in frontier.ids])
    walks: list[_Walk] = []
    seen: set[int] = set()
    left, cut = max_triples, 0
    for triple, relation, origin, other in zip(
        triples(store, kept), kept.relation.tolist(), kept.origin.tolist(), others, strict=True
    ):
        if left == 0 or triple.edge in seen:
            continue
        source = frontier.ids[origin]
        onwards = [
            (edge, end)
            for edge, end in mediators.get(other, ())
            if end != source and edge.edge not in seen and edge.edge != triple.edge
        ]
        through = onwards[: min(left - 1, _SHOWN_THROUGH)]
        cut += len(onwards) - len(through)
        seen |= {triple.edge, *(edge.edge for edge, _ in through)}
        left -= 1 + len(through)
        walks.append(
            _Walk(
                ranked.index(relation),
                origin,
                (triple, *(edge for edge, _ in through)),
                tuple(end for _, end in through) or (other,),
            )
        )
    walks.sort(key=lambda walk: (walk.place, walk.origin))
    return Found(
        triples=tuple((triple, walk.place) for walk in walks for triple in walk.triples),
        ends=tuple(dict.fromkeys(end for walk in walks for end in walk.ends)),
        too_many=too_many,
        left_out=len(set(batch.edge.tolist()) - seen) + cut,
    )


@dataclass(frozen=True)
class _Walk:
    """An edge, and what its mediator leads to if it ends at one."""

    place: int
    """Of its relation among those chosen."""
    origin: int
    triples: tuple[Triple, ...]
    ends: tuple[EntityId, ...]


def _ranked(chosen: Sequence[Sequence[int]]) -> list[int]:
    """Return each chosen relation once: those that are some node's first, then those that are some node's second, …"""
    longest = max(map(len, chosen), default=0)
    return list(dict.fromkeys(of[place] for place in range(longest) for of in chosen if place < len(of)))


def _edges(
    store: GraphStore, frontier: Frontier, chosen: Sequence[Sequence[int]], hub_cap: int
) -> tuple[EdgeBatch, tuple[TooMany, ...]]:
    """Fetch the chosen edges; of nodes where a relation has too many, each direction by itself without these."""
    union = _ranked(chosen)
    too_many = tuple(
        TooMany(id, relation, bool(inverse), counts[relation][inverse])
        for id, counts, relations in zip(frontier.ids, frontier.counts, chosen, strict=True)
        for relation in relations
        for inverse in (0, 1)
        if relation in counts and counts[relation][inverse] > hub_cap
    )
    hubs = {
        at
        for at, counts in enumerate(frontier.counts)
        if any(max(counts.get(relation, (0, 0))) > hub_cap for relation in union)
    }
    asked = [([at for at in range(len(frontier.ids)) if at not in hubs], Direction.BOTH, union)]
    for at in sorted(hubs):
        for inverse, direction in enumerate((Direction.OUT, Direction.IN)):
            asked.append(([at], direction, [r for r in chosen[at] if 0 < frontier.counts[at][r][inverse] <= hub_cap]))
    asked = [(nodes, direction, relations) for nodes, direction, relations in asked if nodes and relations]
    parts, positions = [], [np.empty(0, np.int64)]
    for nodes, direction, relations in asked:
        batch = store.edges(frontier.numbers[nodes], direction, np.array(sorted(relations), np.int64))
        parts.append((batch, np.arange(len(batch))))
        positions.append(np.array(nodes, np.int64))
    joined, _ = join(parts, [len(nodes) for nodes, _, _ in asked])
    joined = replace(joined, origin=np.concatenate(positions)[joined.origin])
    # A relation may have been chosen at one node only.
    wide = len(store.relations)
    wanted = [at * wide + relation for at, relations in enumerate(chosen) for relation in relations]
    rows = np.flatnonzero(np.isin(joined.origin * wide + joined.relation, np.array(wanted, np.int64)))
    return select(joined, rows), too_many


def _shared(
    store: GraphStore, batch: EdgeBatch, ranked: Sequence[int], limit: int, known: Collection[EntityId]
) -> Int64:
    """Return `limit` rows at most: the first of each relation, node and direction, then the second of each, …"""
    place_of = np.zeros(len(store.relations), np.int64)
    place_of[list(ranked)] = np.arange(len(ranked))
    place = place_of[batch.relation]
    favoured = np.isin(batch.other, store.numbers(known))
    order = np.lexsort((~favoured, batch.inverse, batch.origin, place))
    groups = np.stack((place, batch.origin, batch.inverse))[:, order]
    starts = np.flatnonzero(np.concatenate(([True], (groups[:, 1:] != groups[:, :-1]).any(axis=0)))[: len(order)])
    sizes = np.diff(starts, append=len(order))
    turn = np.arange(len(order)) - np.repeat(starts, sizes)
    return order[np.argsort(turn, kind="stable")[:limit]]


def _mediators(store: GraphStore, ids: Sequence[EntityId]) -> dict[EntityId, list[tuple[Triple, EntityId]]]:
    """Return the nodes without a name that join others which have one: their edges to these, each with its far end."""
    nameless = [node.id for node in store.nodes(ids) if is_identifier(node.name)]
    if not nameless:
        return {}
    numbers = store.numbers(nameless)
    small = np.flatnonzero(store.relation_counts(numbers).degrees(len(nameless)) <= _MEDIATOR_EDGES)
    batch = store.edges(numbers[small])
    others = store.ids(batch.other)
    named = {node.id for node in store.nodes(list(dict.fromkeys(others))) if not is_identifier(node.name)}
    found: dict[EntityId, list[tuple[Triple, EntityId]]] = {}
    for triple, origin, other in zip(triples(store, batch), batch.origin.tolist(), others, strict=True):
        if other in named:
            found.setdefault(nameless[small[origin]], []).append((triple, other))
    return found
