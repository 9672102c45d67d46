"""Edges around nodes for retrievers: within limits, by relevant relations, and through mediators.

A mediator is a node without a name that stands for an event or a role. `France → governing_officials → m.0abc` means
nothing by itself; the mediator's other edges give office and holder (`continuations`). `neighbourhood` collects the
edges of the best relations within some hops; `expand_relations` follows given relations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float64, Int64
from byokg.graph.sorted_ids import changes, contains, distinct, rank_of, rows_at
from byokg.graph.store import Direction, EdgeBatch, GraphStore, NodeArray, RelationCounts
from byokg.graph.traversal import Caps, expand, join, relation_numbers, triples
from byokg.text.names import is_identifier
from byokg.types import INVERSE, EntityId, Metapath, Path, PathEvidence, Triple, TripleEvidence

MOST_EDGES = 100
"""Edges of a mediator that are looked at: those of an event are few."""


@dataclass(frozen=True)
class Continuations:
    """How A edges that end in a mediator go on from there."""

    edges: EdgeBatch
    """Edges of all mediators, found from these."""
    rows: list[Int64]
    """For each of the A edges, rows of `edges` that lead on to a node with a name, in edge order."""


def is_named(store: GraphStore, nodes: NodeArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the N nodes with a name of their own, neither blank nor an identifier: (N,)."""
    asked = distinct(nodes)
    names = store.names_at(asked)
    named = np.array([bool(name.strip()) and not is_identifier(name) for name in names], np.bool_)
    return named[np.searchsorted(asked, nodes)]


def continuations(store: GraphStore, reached: EdgeBatch, mediators: NodeArray) -> Continuations:
    """Return the continuations of edges behind the mediator at one of their ends, in one read of the store.

    Args:
        store: the graph.
        reached: A edges.
        mediators: (A,) the end of each that is the mediator.
    """
    asked = distinct(mediators)
    edges = expand(store, asked, caps=Caps(MOST_EDGES)).edges
    other = edges.other
    useful = is_named(store, other)
    start = reached.head + reached.tail - mediators
    place = np.searchsorted(asked, mediators)
    owner, row = rows_at(edges.origin, place)
    kept = useful[row] & (edges.edge[row] != reached.edge[owner]) & (other[row] != start[owner])
    row, ends = row[kept], np.cumsum(np.bincount(owner[kept], minlength=len(place))).tolist()
    return Continuations(edges, [row[begin:end] for begin, end in zip([0, *ends], ends, strict=False)])


def join_triples(first: Triple, second: Triple) -> Path:
    """Return the walk over two edges that share a node, beginning at the end of the first that they do not share."""
    middle = first.tail if first.tail in (second.head, second.tail) else first.head
    if first.undirected and middle == first.head:
        first = first.turned()
    if second.undirected and middle == second.tail:
        second = second.turned()
    inverse = (middle == first.head, middle == second.tail)
    return Path(first.tail if inverse[0] else first.head, (first, second), inverse)


def metapath(path: Path) -> Metapath:
    """Return the relations of a walk, with the sign of inversion for steps from tail to head."""
    steps: Sequence[tuple[Triple, bool]] = list(zip(path.triples, path.inverse, strict=True))
    return tuple(f"{INVERSE}{triple.relation}" if inverse else triple.relation for triple, inverse in steps)


def as_evidence(retriever: str, score: float, edges: Sequence[Triple]) -> TripleEvidence | PathEvidence:
    """Return one edge as a triple, or two edges that share a mediator as the path over both."""
    if len(edges) == 1:
        return TripleEvidence(retriever, score, edges[0])
    path = join_triples(*edges)
    return PathEvidence(retriever, score, path.source, metapath(path), (path.end,), (path,))


Rate = Callable[[Int64], Float64]
"""Rates the relevance of some relations to the question."""


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

    Relations are read from the store as counts, before any edge is read, so a hub costs no more than its relations, and
    then the edges of the kept ones.

    Args:
        store: the graph.
        sources: node numbers.
        hops: extent, in both directions; 1 or more.
        top_relations: relations to keep (k_r).
        rate: called once about each relation that occurs.
        limits: of the reads.
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
    edges, cut = _level_edges(store, levels, relations, limits)
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
    batch, cut = expand(store, levels[-1], Direction.BOTH, chosen, Caps(per_relation=limits.per_relation))
    other = batch.other[_by_rank(batch, chosen)]
    for level in levels:
        other = other[~contains(level, other)]
    first = np.sort(np.unique(other, return_index=True)[1])
    return np.sort(other[first[: limits.nodes]]), cut or enough < len(order) or len(first) > limits.nodes


def _level_edges(
    store: GraphStore, levels: list[NodeArray], relations: Int64, limits: Limits
) -> tuple[EdgeBatch, bool]:
    """Return the edges of some relations that touch the nodes of each level."""
    parts, truncated = [], False
    for level in levels:
        batch, cut = expand(store, level, Direction.BOTH, relations, Caps(per_relation=limits.per_relation))
        parts.append((batch, _by_rank(batch, relations)))
        truncated |= cut
    edges, _ = join(parts, [len(level) for level in levels])
    first = np.sort(np.unique(edges.edge, return_index=True)[1])
    return edges.take(first[: limits.edges]), truncated or len(first) > limits.edges


def _by_rank(batch: EdgeBatch, relations: Int64) -> Int64:
    """Return the rows of a batch by the place of their relation among some, and then as they stand."""
    rank = np.zeros(int(relations.max(initial=-1)) + 1, np.int64)
    rank[relations] = np.arange(len(relations))
    return np.argsort(rank[batch.relation], kind="stable")


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
class HopResult:
    """Result of a hop."""

    triples: tuple[tuple[Triple, int], ...]
    """Each with the place, from 0, that the relation which led to it has among those chosen; by that place, then by
    node of the frontier. A mediator's edges follow the one that led to it."""
    ends: tuple[EntityId, ...]
    """Nodes reached, each once; of mediators those that they lead to."""
    too_many: tuple[TooMany, ...]
    left_out: int
    """Edges of the chosen relations, and of mediators, that were looked at and not kept."""
    cut: Mapping[int, tuple[bool, int]]
    """For each kept edge of a chosen relation: whether it was found from its tail, and how many edges of the same
    relation and direction at the same node were not kept."""


def expand_relations(
    store: GraphStore,
    frontier: Frontier,
    chosen: Sequence[Sequence[int]],
    max_triples: int,
    hub_cap: int,
    known: Collection[EntityId] = (),
) -> HopResult:
    """Follow chosen relations both ways, and through mediators: nodes without a name that stand for an event or a role.

    The limit is shared evenly: first one edge of each relation and direction at each node, then a second, and so on;
    edges to known nodes go first.

    Args:
        store: graph to read; read once or, if a relation has too many edges, once more for that node.
        frontier: N nodes.
        chosen: relation numbers for each of them, the most important first: (N,) sequences.
        max_triples: triples to keep.
        hub_cap: edges of one relation and direction at one node from which on none is read.
        known: nodes whose edges are preferred.
    """
    batch, too_many = _edges(store, frontier, chosen, hub_cap)
    ranked = _ranked(chosen)
    kept = batch.take(_shared(store, batch, ranked, max_triples, known))
    others = store.ids(kept.other)
    mediators = mediators_among(store, [id for id in dict.fromkeys(others) if id not in frontier.ids])
    walks: list[_FrontierEdge] = []
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
            _FrontierEdge(
                ranked.index(relation),
                origin,
                (triple, *(edge for edge, _ in through)),
                tuple(end for _, end in through) or (other,),
            )
        )
    walks.sort(key=lambda walk: (walk.place, walk.origin))
    return HopResult(
        triples=tuple((triple, walk.place) for walk in walks for triple in walk.triples),
        ends=tuple(dict.fromkeys(end for walk in walks for end in walk.ends)),
        too_many=too_many,
        left_out=len(set(batch.edge.tolist()) - seen) + cut,
        cut=_cut(batch, seen),
    )


def _cut(batch: EdgeBatch, seen: Collection[int]) -> dict[int, tuple[bool, int]]:
    """Return for each kept edge its direction, and how many of its relation, node and direction were not kept."""
    kept = np.isin(batch.edge, np.array(sorted(seen), np.int64))
    key = (batch.origin.astype(np.int64) << 32 | batch.relation.astype(np.int64)) << 1 | batch.inverse
    _, group = np.unique(key, return_inverse=True)
    missing = np.bincount(group, ~kept)[group].astype(np.int64)
    rows = np.flatnonzero(kept)
    found = zip(batch.edge[rows].tolist(), batch.inverse[rows].tolist(), missing[rows].tolist(), strict=True)
    cut: dict[int, tuple[bool, int]] = {}
    for edge, inverse, count in found:
        cut.setdefault(edge, (inverse, count))
    return cut


@dataclass(frozen=True)
class _FrontierEdge:
    """An edge, and the edge behind its mediator if it ends at one."""

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
    """Fetch the chosen edges; of nodes with too many of a relation, each direction by itself without these."""
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
        batch = expand(store, frontier.numbers[nodes], direction, np.array(sorted(relations), np.int64)).edges
        parts.append((batch, np.arange(len(batch))))
        positions.append(np.array(nodes, np.int64))
    joined, _ = join(parts, [len(nodes) for nodes, _, _ in asked])
    joined = replace(joined, origin=np.concatenate(positions)[joined.origin])
    # A relation may have been chosen at one node only.
    wide = len(store.relations)
    wanted = [at * wide + relation for at, relations in enumerate(chosen) for relation in relations]
    rows = np.flatnonzero(np.isin(joined.origin * wide + joined.relation, np.array(wanted, np.int64)))
    return joined.take(rows), too_many


def _shared(
    store: GraphStore, batch: EdgeBatch, ranked: Sequence[int], limit: int, known: Collection[EntityId]
) -> Int64:
    """Return `limit` rows at most: the first of each relation, node and direction, then the second of each, …"""
    place_of = np.zeros(len(store.relations), np.int64)
    place_of[list(ranked)] = np.arange(len(ranked))
    place = place_of[batch.relation]
    favoured = np.isin(batch.other, store.numbers(known))
    order = np.lexsort((~favoured, batch.inverse, batch.origin, place))
    turn = rank_of(changes(place[order], batch.origin[order] << 1 | batch.inverse[order]).cumsum())
    return order[np.argsort(turn, kind="stable")[:limit]]


def mediators_among(store: GraphStore, ids: Sequence[EntityId]) -> dict[EntityId, list[tuple[Triple, EntityId]]]:
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


_EVENTS = 60
"""Mediators of one node and relation whose edges are read."""

Event = tuple[EntityId, Sequence[Triple]]
"""A mediator and its edges: the one that a walk comes by, then the one that it leaves by, then the others."""


def events_on(
    store: GraphStore, walks: Sequence[PathEvidence], names: Mapping[EntityId, str]
) -> dict[str, list[Event]]:
    """Return the mediators that walks go through or end at, by the ids of these, with all of their edges.

    Args:
        store: graph to read, twice at most.
        walks: numbered items.
        names: of the nodes on their known walks, and of their ends.
    """
    passed: dict[str, dict[EntityId, tuple[EntityId, frozenset[EntityId]]]] = defaultdict(dict)
    """By item, each mediator with the node before it and those that may come behind it: none at the end."""
    wide = []
    for item in walks:
        for path in item.paths:
            for before, node, behind in zip(path.nodes, path.nodes[1:], path.nodes[2:], strict=False):
                if is_identifier(names[node]):
                    passed[item.id].setdefault(node, (before, frozenset((behind,))))
        if len(item.relations) == 1:
            last = (end for end in item.ends[:_EVENTS] if end in names and is_identifier(names[end]))
            passed[item.id] |= {end: (item.source, frozenset()) for end in last}
        elif any(path.nodes[1] in passed[item.id] for path in item.paths):
            wide.append(item)
    for item, nodes in zip(wide, _first_nodes(store, wide), strict=True):
        beyond = frozenset(item.ends if len(item.relations) == 2 else (path.nodes[2] for path in item.paths))
        passed[item.id] |= dict.fromkeys(nodes, (item.source, beyond))
    legs = mediators_among(store, list(dict.fromkeys(node for of in passed.values() for node in of)))
    events: dict[str, list[Event]] = {}
    for item in walks:
        along = {step.removeprefix(INVERSE) for step in item.relations}
        for node, (before, after) in passed[item.id].items():
            edges = sorted(legs.get(node, ()), key=lambda leg: leg[0].relation not in along)
            came = [edge for edge, other in edges if other == before]
            left = [edge for edge, other in edges if other != before and (not after or other in after)]
            if came and left:
                rest = [edge for edge, other in edges if other != before and after and other not in after]
                events.setdefault(item.id, []).append((node, [*came[:1], *left, *rest]))
    return events


def _first_nodes(store: GraphStore, items: Sequence[PathEvidence]) -> list[dict[EntityId, None]]:
    """Return the nodes that each walk's first relation leads to from its source, in either direction."""
    if not items:
        return []
    sources = list(dict.fromkeys(item.source for item in items))
    first = [item.relations[0].removeprefix(INVERSE) for item in items]
    numbers, caps = relation_numbers(store, sorted(set(first))), Caps(per_relation=_EVENTS)
    edges = expand(store, store.numbers(sources), relations=numbers, caps=caps).edges
    reached: dict[tuple[EntityId, str], dict[EntityId, None]] = defaultdict(dict)
    others = store.ids(edges.other)
    for origin, relation, other in zip(edges.origin.tolist(), edges.relation.tolist(), others, strict=True):
        reached[sources[origin], store.relations[relation]][other] = None
    return [reached[item.source, label] for item, label in zip(items, first, strict=True)]
