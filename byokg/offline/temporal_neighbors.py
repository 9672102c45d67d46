"""Predecessors and successors in time, and times of relations between two nodes, from dates of edges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from byokg.arrays import Int64
from byokg.graph.store import Direction, GraphStore
from byokg.offline.constraints import QueryConstraints, SuccessorConstraint
from byokg.offline.execute import Outcome, listing
from byokg.offline.lexicon import load_lexicon
from byokg.offline.property_linking import PropertyLinker
from byokg.offline.temporal import adjacent, period
from byokg.text.dates import Day, Period, read_date
from byokg.text.labels import split_label
from byokg.text.names import split_words
from byokg.types import EntityId, Value

_RIVALRIES = 100
"""Edges of a node whose other ends are looked at for who is next to it: each is a call to the store."""


class TemporalNeighbors:
    """Finds temporal neighbours; thread-safe.

    Args:
        store: the graph, without values as nodes.
        properties: compares words with the labels of relations.
    """

    def __init__(self, store: GraphStore, properties: PropertyLinker) -> None:
        self._store = store
        self._property_linker = properties

    def following(
        self, asked: SuccessorConstraint, source: Sequence[EntityId], others: Sequence[EntityId], near: str
    ) -> Outcome | None:
        """Return the temporal neighbour of a node: among those with an edge of the same relation to the same node.

        Args:
            asked: direction in time.
            source: candidate nodes.
            others: further nodes of the question; the common node is one of them if it can be.
            near: the question's words, to choose among relations.
        """
        best: tuple[float, Outcome] | None = None
        schema = self._store.schema()
        dated = [number for number, relation in enumerate(schema.relations) if relation.properties]
        if not dated:
            return None
        for node in source:
            batch = self._store.edges(self._store.numbers([node]), Direction.BOTH, np.array(dated))
            held = [period(properties) for properties in self._store.edge_properties(batch.edge)]
            shared = self._store.ids(batch.other)
            timed = [place for place, one in enumerate(held) if one is not None and one.start is not None]
            wanted = [place for place in timed if shared[place] in others] or timed
            for place in wanted[:_RIVALRIES]:
                own = held[place]
                if own is None or own.start is None:
                    continue
                if asked.step == 0 and not own.point:
                    continue
                relation = int(batch.relation[place])
                way = Direction.OUT if batch.inverse[place] else Direction.IN
                around = self._store.edges(batch.other[place : place + 1], way, np.array([relation]))
                rivals = [
                    (other, one)
                    for other, one in zip(
                        self._store.ids(around.other),
                        map(period, self._store.edge_properties(around.edge)),
                        strict=True,
                    )
                    if one is not None and one.start is not None and other != node
                ]
                chosen = adjacent(asked, own, rivals)
                if not chosen:
                    continue
                label = schema.relations[relation].name
                score = max((self._property_linker.likeness(word, label) for word in near.split()), default=0.0)
                names = self._names([node, shared[place], *chosen])
                how = {1: "next after", -1: "last before", 0: "at the same time as"}[asked.step]
                text = f"{label} {names[1]} {how} {names[0]} ({_year(own)}): {listing(names[2:])}"
                if best is None or score > best[0]:
                    best = score, Outcome("sequence", text, tuple(chosen))
        return best[1] if best else None

    def between(
        self, constraints: QueryConstraints, one: Sequence[EntityId], other: Sequence[EntityId]
    ) -> Outcome | None:
        """Return the time of the relation between two nodes, by the edges between them."""
        schema = self._store.schema()
        dated = [number for number, relation in enumerate(schema.relations) if relation.properties]
        if not dated:
            return None
        for node in one:
            batch = self._store.edges(self._store.numbers([node]), Direction.BOTH, np.array(dated))
            far = self._store.ids(batch.other)
            places = [place for place, id in enumerate(far) if id in other]
            order = constraints.order
            ends = constraints.when == "end" if order is None or order.edge == "any" else order.edge == "end"
            told = self._dates(batch.edge[places], ends)
            if not told:
                continue
            if order is not None:
                told = told[-1:] if order.most else told[:1]
            label = schema.relations[int(batch.relation[places[0]])].name
            names = self._names([node, far[places[0]]])
            text = f"{label} of {names[0]} and {names[1]}: {', '.join(map(str, told))}"
            return Outcome("property", text, values=tuple(told))
        return None

    def _dates(self, edges: Int64, ends: bool) -> list[Value]:
        """Return begin or end dates of edges, as stored, in order; a single date is both."""
        found: dict[Value, Day] = {}
        roles = (load_lexicon("time")["end_keys" if ends else "begin_keys"], load_lexicon("time")["point_keys"])
        for properties in self._store.edge_properties(edges):
            for keys in roles:
                own = {
                    value: read.start
                    for key, value in properties.items()
                    if set(split_words(split_label(key))) & set(keys)
                    and (read := read_date(value)) is not None
                    and read.start
                }
                if own:
                    found |= own
                    break
        return sorted(found, key=lambda value: found[value])

    def _names(self, nodes: Sequence[EntityId]) -> list[str]:
        return [node.name for node in self._store.nodes(list(nodes))]


def _year(held: Period) -> str:
    return "" if held.start is None else str(held.start[0])
