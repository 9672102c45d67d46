"""The subgraph around a question: the likeliest candidate queries are run, one after the other, until there is enough.

`SubgraphRetriever` enumerates candidates around the linked entities, lets a ranker order them, and runs them in the
graph's Cypher engine, or walks the graph if it has none. `found_nodes` describes the results for a language model: for
each node the patterns that led to it, and its data.

Source: GraphRAFT (arXiv:2504.05478), "Finetuning LLM as local subgraph reasoner".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from byokg.arrays import Float64, Int64
from byokg.errors import QueryFailed, at_least
from byokg.graph.guard.tokens import tokenise_cypher
from byokg.graph.property_view import without_values
from byokg.graph.store import Direction, GraphStore, QueryableGraph, QueryLimits
from byokg.graph.value_indexes import nodes_holding
from byokg.retrieval.candidates import (
    Anchor,
    Attribute,
    CandidateQuery,
    CandidateRanker,
    Conditions,
    Leg,
    QueryHop,
    Templates,
    literal,
    name_in_cypher,
)
from byokg.retrieval.enumerate_candidates import CandidateFinder
from byokg.text.dates import DATE
from byokg.text.names import on_one_line
from byokg.types import Cell, EntityId, Evidence, Feedback, Node, NodeCell, Request, RowsEvidence, Value, best_first

RETRIEVER = "subgraph"


class SubgraphRetriever:
    """Runs the candidate queries that are likeliest to answer a question; the result of each is evidence.

    Args:
        store: the graph; its Cypher engine runs the queries if it has one.
        ranker: orders the candidates.
        templates: kinds of candidates; None takes the defaults.
        queries: candidates whose results are kept, at most.
        nodes: distinct nodes after which no further candidate is run; those that find nothing new are left out. None
            keeps all that the ranker returns, for one that chooses a few.
        anchors: linked entities that candidates start from, at most.
        timeout_s: time limit of a query; one that takes longer is left out.

    Raises:
        ConfigError: a setting leaves nothing.
    """

    def __init__(
        self,
        store: GraphStore,
        ranker: CandidateRanker,
        templates: Templates | None = None,
        queries: int = 10,
        nodes: int | None = 20,
        anchors: int = 10,
        timeout_s: float = 10.0,
    ) -> None:
        at_least(1, "finds nothing", queries=queries, nodes=nodes or 1, anchors=anchors)
        self._store = store = without_values(store)
        self._finder = CandidateFinder(store, templates)
        self._ranker = ranker
        self._queries = queries
        self._nodes = nodes
        self._anchors = anchors
        self._engine = next((engine for engine in store.engines if engine.language == "cypher"), None)
        self._limits = QueryLimits(timeout_s, max_rows=10_000)

    def retrieve(self, request: Request) -> list[Evidence]:
        """Return the results of the likeliest candidates that return something new, in the order of the ranking."""
        values = request.linked.values
        named = {value.mention for value in values}
        entities = [one for one in request.linked.entities if one.method != "value" or one.mention not in named]
        anchors = best_first(entities)[: self._anchors]
        text = request.question.text
        if not anchors and not values:
            return []
        found = self._finder.find(anchors, conditions=Conditions.of(text, values))
        if not found.items:
            return []
        evidence: list[Evidence] = []
        met: set[object] = set()
        ran = 0
        for position, score in self._ranker.rank(text, found.items):
            kept = sum(isinstance(item, RowsEvidence) for item in evidence)
            if kept >= self._queries or (self._nodes is not None and len(met) >= self._nodes):
                break
            one = found.items[position]
            ran += 1
            try:
                rows, truncated = self._run(one)
            except QueryFailed as error:
                evidence.append(Feedback(RETRIEVER, 0.0, subject=one.query, problem=str(error)))
                continue
            fresh = [cell for cell in rows if _key(cell) not in met]
            if not fresh and (self._nodes is not None or not rows):
                continue
            met.update(map(_key, fresh))
            column = "count" if one.count else one.asked or "node"
            cells = tuple((cell,) for cell in rows)
            evidence.append(RowsEvidence(RETRIEVER, score, "cypher", one.query, (column,), cells, truncated))
        got = {"candidates": len(found.items), "ran": ran, "nodes": len(met), "truncated": list(found.truncated)}
        given = {"anchors": anchors, **({"values": [str(value) for value in values]} if values else {})}
        request.note(RETRIEVER, given, got)
        return evidence

    def _run(self, one: CandidateQuery) -> tuple[list[Cell], bool]:
        """Return the results of a candidate, those of most walks first, and whether some were cut off."""
        if self._engine is not None:
            return _queried(self._engine, one, self._limits)
        ids = results(self._store, one)
        if one.count:
            return [len(ids)], False
        kept = ids[: self._limits.max_rows]
        nodes = self._store.nodes(kept)
        if one.asked:
            held = [node.properties[one.asked] for node in nodes if one.asked in node.properties]
            return list(dict.fromkeys(held)), len(kept) < len(ids)
        cells: list[Cell] = [
            NodeCell(node.id, node.name, node.type, node.properties, node.further_types) for node in nodes
        ]
        return cells, len(kept) < len(ids)


def _queried(engine: QueryableGraph, one: CandidateQuery, limits: QueryLimits) -> tuple[list[Cell], bool]:
    rows = engine.run(one.text, one.parameters, limits)
    return [row[0] for row in rows.rows if isinstance(row[0], NodeCell | int) or one.asked], rows.truncated


def _key(cell: Cell) -> object:
    return cell.id if isinstance(cell, NodeCell) else cell


# Walks of a candidate without an engine


def results(store: GraphStore, candidate: CandidateQuery) -> list[EntityId]:
    """Return the nodes that a candidate finds, those of most walks first, then by id; conditions included.

    Raises:
        EntityNotFound: an anchor is not in the store.
    """
    anchors = np.asarray(store.numbers([leg.anchor.id for leg in candidate.legs if leg.anchor.id]), np.int64)
    walk = _StepWalker(store, candidate.directed)
    tail = candidate.tail
    (nodes, walks), *further = (walk.leg(_starts(store, leg.anchor), leg) for leg in candidate.legs)
    for others, more in further:
        nodes, left, right = np.intersect1d(nodes, others, return_indices=True)
        walks = walks[left] * more[right]
    kept = ~np.isin(nodes, anchors)
    nodes, walks = nodes[kept], walks[kept]
    if tail:
        nodes, walks = walk.hop(nodes, walks, tail[0])
        kept = ~np.isin(nodes, anchors)
        nodes, walks = nodes[kept], walks[kept]
    ids = store.ids(nodes)
    order = sorted(range(len(ids)), key=lambda at: (-walks[at], ids[at]))
    ids = [ids[at] for at in order]
    if not (candidate.end_type or candidate.end_values or candidate.period or candidate.extreme):
        return ids
    edges: dict[EntityId, list[int]] = {}
    if any(told is not None and told[0].place == "edge" for told in (candidate.period, candidate.extreme)):
        for node, number in zip(store.ids(walk.last[0]), walk.last[1].tolist(), strict=True):
            edges.setdefault(node, []).append(number)
    return _fulfilling(store, candidate, ids, edges)


def _starts(store: GraphStore, anchor: Anchor) -> Int64:
    """Return the nodes that an anchor is, ascending: (S,)."""
    if anchor.id:
        return np.asarray(store.numbers([anchor.id]), np.int64)
    held = [nodes_holding(store, anchor.type, key, value, Templates().described) for key, value in anchor.values]
    return np.asarray(reduce(np.intersect1d, held), np.int64)


_NONE, _NO_WALKS = np.empty(0, np.int64), np.empty(0)


class _StepWalker:
    """Walks steps as a Cypher MATCH does: no edge twice, and not back to the anchor."""

    def __init__(self, store: GraphStore, directed: bool) -> None:
        self._store = store
        self._directed = directed
        self.last = _NONE, _NONE
        """Of each edge that was walked last the node it leads to, and its number."""

    def leg(self, starts: Int64, leg: Leg) -> tuple[Int64, Float64]:
        """Return distinct nodes, ascending, with the number of walks to each."""
        steps = leg.steps
        nodes, walks = starts, np.ones(len(starts))
        left, before = nodes[:0], walks[:0]
        for at, step in enumerate(steps):
            if at < (2 if leg.anchor.id else 1) or step.relation != steps[at - 1].relation:
                left, before = left[:0], before[:0]
            same_way = at > 0 and step.direction is steps[at - 1].direction
            onwards = self._directed and same_way and step.direction is not Direction.BOTH
            found = self.hop(nodes, walks, step, left, before, onwards)
            left, before = nodes, walks
            kept = np.ones(len(found[0]), np.bool_)
            if at and leg.anchor.id:
                kept = found[0] != starts[0]
            nodes, walks = found[0][kept], found[1][kept]
        return nodes, walks

    def hop(
        self,
        nodes: Int64,
        walks: Float64,
        step: QueryHop,
        left: Int64 = _NONE,
        before: Float64 = _NO_WALKS,
        onwards: bool = False,
    ) -> tuple[Int64, Float64]:
        """Return the ends of one step, ascending, with the number of walks.

        Args:
            nodes: present ends of walks, ascending, and
            walks: number of walks at each.
            step: the hop.
            left: the nodes before the last step over the same relation, ascending: a walk does not return by its edge;
                and
            before: number of walks at each of them.
            onwards: True if the last hop took the same direction, so that only a loop can be walked again.
        """
        origin, other, edge = self._edges(nodes, step)
        counts = walks[origin]
        if len(left):
            place = np.minimum(np.searchsorted(left, other), len(left) - 1)
            back = (left[place] == other) & ((other == nodes[origin]) | (not onwards))
            counts = counts - np.where(back, before[place], 0.0)
        kept = np.flatnonzero(counts > 0)
        reached, group = np.unique(other[kept], return_inverse=True)
        self.last = other[kept], edge[kept]
        return reached, np.bincount(group, counts[kept], len(reached)).astype(np.float64)

    def _edges(self, nodes: Int64, step: QueryHop) -> tuple[Int64, Int64, Int64]:
        direction = step.direction if self._directed else Direction.BOTH
        number = np.array([self._store.relations.index(step.relation)])
        batch = self._store.edges(nodes, direction, number)
        other = batch.other.astype(np.int64)
        once = np.arange(len(other))
        if direction is Direction.BOTH:
            once = np.flatnonzero(~(batch.inverse & (other == nodes[batch.origin])))
        return batch.origin[once], other[once], batch.edge[once]


def _fulfilling(
    store: GraphStore, candidate: CandidateQuery, ids: list[EntityId], edges: dict[EntityId, list[int]]
) -> list[EntityId]:
    """Keep the nodes that fulfil a candidate's conditions; `edges` are those to each, if conditions use them."""
    nodes = store.nodes(ids)
    if candidate.end_type:
        nodes = [node for node in nodes if candidate.end_type in node.types]
    for key, value in candidate.end_values:
        nodes = [node for node in nodes if node.properties.get(key) == value]
    if candidate.period:
        attribute, period = candidate.period
        nodes = [node for node in nodes if any(map(period.holds, values(store, node, attribute, edges)))]
    if candidate.extreme:
        attribute, highest = candidate.extreme
        told = [(list(values(store, node, attribute, edges)), node) for node in nodes]
        best = [(max(held) if highest else min(held), node) for held, node in told if held]
        if best:
            value = (max if highest else min)(held for held, _ in best)
            return [min(node.id for held, node in best if held == value)]
        return []
    return [node.id for node in nodes]


def values(store: GraphStore, node: Node, attribute: Attribute, edges: dict[EntityId, list[int]]) -> Iterator[Value]:
    """Yield the values that an attribute has for a node."""
    if attribute.place == "node":
        if attribute.key in node.properties:
            yield node.properties[attribute.key]
    elif attribute.place == "edge":
        held = store.edge_properties(np.array(edges.get(node.id, []), np.int64))
        yield from (one[attribute.key] for one in held if attribute.key in one)
    else:
        number = np.array([store.relations.index(attribute.key)])
        batch = store.edges(store.numbers([node.id]), Direction.BOTH, number)
        for other in store.nodes(store.ids(batch.other)):
            if other.id != node.id and DATE.fullmatch(other.name):
                yield other.name


# As text


@dataclass(frozen=True)
class FoundNode:
    """A node that queries found."""

    cell: NodeCell
    patterns: tuple[str, ...]
    """What led to it, likeliest first."""
    evidence: tuple[str, ...]
    """Ids of the evidence that holds it, in the same order."""

    def text(self) -> str:
        """Return patterns, name and details, as Figure 4 of the paper shows a node."""
        lines = [f"pattern: [{', '.join(self.patterns)}]", f"name: {on_one_line(self.cell.name)}"]
        if self.cell.properties:
            lines.append(f"details: {json.dumps(dict(self.cell.properties), ensure_ascii=False)}")
        return "\n".join(lines)


def found_nodes(evidence: Sequence[Evidence], most: int | None = None) -> list[FoundNode]:
    """Return the nodes in the results of queries, each once: those of the likeliest query first, in its order.

    Values and counts are nodes without an id.
    """
    items: dict[tuple[EntityId, str], list[RowsEvidence]] = {}
    cells: dict[tuple[EntityId, str], NodeCell] = {}
    for item in evidence:
        if isinstance(item, RowsEvidence) and item.retriever == RETRIEVER:
            for (cell,) in item.rows:
                found = cell if isinstance(cell, NodeCell) else NodeCell(EntityId(""), str(cell))
                cells.setdefault((found.id, found.name), found)
                items.setdefault((found.id, found.name), []).append(item)
    return [
        FoundNode(cells[key], tuple(pattern(one.query, cells[key]) for one in own), tuple(one.id for one in own))
        for key, own in list(items.items())[:most]
    ]


def describe_nodes(nodes: Sequence[FoundNode], budget_tokens: int, count_tokens: Callable[[str], int]) -> list[str]:
    """Return the texts of nodes, as many as a budget of tokens allows; the first is cut if it is too long alone."""
    texts: list[str] = []
    left = budget_tokens
    for node in nodes:
        text = node.text()
        size = count_tokens(text)
        if size > left:
            if not texts:
                texts.append(text[: max(1, len(text) * left // size)])
            break
        texts.append(text)
        left -= size
    return texts


def pattern(query: str, cell: NodeCell) -> str:
    """Return the graph pattern of a candidate's query, with the node that was found in the place of the target; of one
    that returns values or a count the whole query."""
    if not cell.id:
        return query
    tokens, _ = tokenise_cypher(query)
    keys = [token.key for token in tokens]
    target = tokens[keys.index("RETURN") + (2 if "DISTINCT" in keys else 1)].text
    label = f":{name_in_cypher(cell.type)}" if cell.type else ""
    parts: list[str] = []
    starts = [at for at, key in enumerate(keys) if key == "MATCH"]
    for start in starts:
        stop = next(at for at in range(start + 1, len(keys)) if keys[at] in ("WHERE", "MATCH", "RETURN"))
        first, last = tokens[start + 1].start, tokens[stop - 1].stop
        text, moved = query[first:last], 0
        for at in range(start + 2, stop):
            if tokens[at].text == target and keys[at - 1] == "(":
                told = f"{'' if keys[at + 1] == ':' else label} {{name: {literal(cell.name)}}}"
                end = at + 2 if keys[at + 1] == ":" else at
                place = tokens[end].stop - first + moved
                text = text[:place] + told + text[place:]
                moved += len(told)
        parts.append(text)
    return ", ".join(parts)
