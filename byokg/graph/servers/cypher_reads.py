"""Requests to a server with openCypher: query texts for nodes and edges, and the keys of nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from byokg.errors import GraphError, QueryTimeout, QueryTooLarge
from byokg.graph.servers.base import patiently
from byokg.graph.servers.cypher_schema import CypherServer, edge_pattern, quote, union_all, writable
from byokg.types import EntityId, Value

LABELS_TOGETHER = 50
"""Labels per round trip."""

TOGETHER = 10_000
"""Node ids sent in one round trip."""

_INTEGER = re.compile(r"0|-?[1-9]\d{0,17}")


class CypherReads:
    """Asks a server about nodes and edges, and keeps the keys of the nodes that were met.

    Args:
        server: executes the queries.
        timeout_s: for each round trip.
        id_property: the property that identifies a node; None takes the server's own ids.
    """

    def __init__(self, server: CypherServer, timeout_s: float, id_property: str | None) -> None:
        self.server, self.timeout_s, self.id_property = server, timeout_s, id_property
        self.met = False
        """True if the server has answered, so that it is worth waiting for."""
        self.entities: dict[str, EntityId] = {}
        """Keys of nodes by the server's ids."""
        self._elements: dict[EntityId, str] = {}
        self._together = TOGETHER
        self._bare: bool | None = None

    def refresh(self) -> None:
        """Forget whether all nodes have labels."""
        self._bare = None

    def ask(self, text: str, parameters: Mapping[str, Any], timeout_s: float | None = None) -> Sequence[Sequence[Any]]:
        timeout_s = self.timeout_s if timeout_s is None else timeout_s
        rows = patiently(lambda left_s: self.server.ask(text, parameters, left_s), timeout_s, self.met).rows
        self.met = True
        return rows

    def entity_of(self, variable: str) -> str:
        """Return the Cypher expression of the identifying property of the node in `variable`."""
        if self.id_property is None:
            return "null"
        return f"{variable}.{quote(self.id_property)}"

    def identity_of(self, variable: str) -> tuple[str, str]:
        """Write the two expressions that `_remember` takes."""
        return f"{self.server.identity}({variable})", self.entity_of(variable)

    def identified(self, variable: str) -> str:
        """Write them as columns."""
        return "{} AS element, {} AS entity".format(*self.identity_of(variable))

    def element(self, entity: EntityId) -> str:
        """Return the server's id of a node that was met."""
        return self._elements.get(entity, entity)

    def remember(self, elements: Sequence[str], values: Sequence[Any]) -> list[EntityId]:
        """Return the keys of some nodes, given the server's ids and the values of the identifying property."""
        if self.id_property is None:
            return cast(list[EntityId], list(elements))
        entities = []
        for element, value in zip(elements, values, strict=True):
            entity = EntityId(element if value is None else str(plain_value(value)))
            if self._elements.setdefault(entity, element) != element:
                raise GraphError(
                    f"two nodes of {self.server.name} have the value {entity!r} in {self.id_property!r}; choose a "
                    "property that identifies nodes, or none, which takes the server's own ids"
                )
            self.entities[element] = entity
            entities.append(entity)
        return entities

    def look_up(self, entities: Sequence[EntityId], list_labels: Callable[[], Sequence[str]]) -> list[EntityId]:
        """Look up nodes by their keys, and return the existing ones in the given order."""
        found: set[EntityId] = set()
        if self.id_property is not None:
            rows = self._by_property(self.id_property, entities, list_labels())
            found.update(self.remember([row[0] for row in rows], [row[1] for row in rows]))
        missing = [entity for entity in entities if entity not in found]
        if missing:
            rows = self.ask(f"{self.server.anchor} RETURN {self.identified('n')}", {"ids": missing})
            if self.id_property is not None:
                rows = [row for row in rows if row[1] is None]  # the others are known by their property only
            found.update(self.remember([row[0] for row in rows], [row[1] for row in rows]))
        return [entity for entity in entities if entity in found]

    def _by_property(self, name: str, entities: Sequence[EntityId], labels: Sequence[str]) -> Sequence[Sequence[Any]]:
        """Find nodes by the property that identifies them: label by label, because indexes belong to labels."""
        # The graph may hold numbers where ids here are text.
        values = [*entities, *(int(entity) for entity in entities if _INTEGER.fullmatch(entity))]
        rows: list[Sequence[Any]] = []
        by_label = 0 < len(labels) <= LABELS_TOGETHER and all(map(writable, labels))
        if by_label:
            parts = [
                f"MATCH (n:{quote(label)}) WHERE n.{quote(name)} IN $values RETURN {self.identified('n')}"
                for label in labels
            ]
            rows = [*self.ask("\nUNION\n".join(parts), {"values": values})]
        missing = len({str(value) for _, value in rows}) < len(set(entities))
        if missing and not (by_label and self._all_labelled()):
            text = f"MATCH (n) WHERE n.{quote(name)} IN $values RETURN {self.identified('n')}"
            rows = [*self.ask(text, {"values": values})]
        return rows

    def _all_labelled(self) -> bool:
        """True if every node has a label, so that no lookup has to scan all nodes."""
        if self._bare is None:
            text = "MATCH (n) WHERE size(labels(n)) = 0 RETURN 1 AS one LIMIT 1"
            self._bare = bool(self.ask(text, {}))
        return not self._bare

    def hop_rows(
        self, elements: Sequence[str], labels: Sequence[str] | None, inverses: Sequence[bool]
    ) -> Sequence[Sequence[Any]]:
        """Fetch the edges of some nodes: origin, inverse, relation, edge, other end, its key, properties.

        Servers send lists more than twice as fast as rows, but have to hold a list before they send it.
        """
        parameters = {"ids": elements, "types": labels or []}
        try:
            grouped = self.ask(union_all(self._hop(labels, inverse, True) for inverse in inverses), parameters)
        except QueryTooLarge:
            return self.ask(union_all(self._hop(labels, inverse, False) for inverse in inverses), parameters)
        return [
            (origin, inverse, relation, *edge)
            for inverse, groups in grouped
            for origin, relation, edges in groups
            for edge in edges
        ]

    def _hop(self, labels: Sequence[str] | None, inverse: bool, grouped: bool) -> str:
        """Write the query for the edges out of (or into) `n`."""
        identity = self.server.identity
        columns = {
            "edge": f"{identity}(r)",
            "other": f"{identity}(m)",
            "entity": self.entity_of("m"),
            "properties": "properties(r)",
        }
        matched = f"{self.server.anchor} MATCH {edge_pattern('n', 'm', labels, 'types', inverse)}"
        way = f"{'true' if inverse else 'false'} AS inverse"
        if grouped:
            edges = f"collect([{', '.join(columns.values())}]) AS edges"
            return (
                f"{matched} WITH {identity}(n) AS origin, type(r) AS relation, {edges} "
                f"RETURN {way}, collect([origin, relation, edges]) AS groups"
            )
        returned = ", ".join(f"{value} AS {name}" for name, value in columns.items())
        return f"{matched} RETURN {identity}(n) AS origin, {way}, type(r) AS relation, {returned}"

    def hop_counts(self, inverse: bool) -> str:
        """Write the query that counts the edges out of (or into) `n` by relation."""
        return (
            f"{self.server.anchor} MATCH {edge_pattern('n', 'm', None, 'types', inverse)} RETURN "
            f"{self.server.identity}(n) AS origin, {'true' if inverse else 'false'} AS inverse, "
            "type(r) AS relation, count(r) AS edges"
        )

    def spread_edges(self) -> str:
        """Write the query for some edges of each relation, by one look at all edges."""
        identity, head, tail = self.server.identity, "startNode(r)", "endNode(r)"
        return (
            "MATCH ()-[r]->() WITH type(r) AS relation, collect(r) AS l "
            "WITH relation, l, CASE WHEN size(l) < $wanted THEN size(l) ELSE $wanted END AS taken "
            "UNWIND range(0, taken - 1) AS k WITH relation, l[k * size(l) / taken] AS r "
            f"RETURN {identity}({head}), {self.entity_of(head)}, {identity}(r), relation, {identity}({tail}), "
            f"{self.entity_of(tail)}, properties(r)"
        )

    def some_edges(self, relation: str, number: int, count: int) -> str:
        """Write the query for some edges of one relation."""
        identity = self.server.identity
        return (
            f"MATCH {edge_pattern('a', 'b', [relation], f'list{number}')} WITH a, r, b LIMIT {count} RETURN "
            f"{identity}(a) AS head, {self.entity_of('a')} AS head_entity, {identity}(r) AS edge, "
            f"type(r) AS relation, {identity}(b) AS tail, {self.entity_of('b')} AS tail_entity, "
            "properties(r) AS properties"
        )

    def frequent_values(self, type: str, property: str, most: int) -> Sequence[Sequence[Any]]:
        """Return the values of a property that most nodes of a label have, with their numbers; none if unwritable."""
        if not all(map(writable, filter(None, (type, property)))):
            return []
        value = f"n.{quote(property)}"
        return self.ask(
            f"{_of_type(type)} {value} IS NOT NULL WITH {value} AS value, count(n) AS nodes "
            f"RETURN value, nodes ORDER BY nodes DESC, value LIMIT {most}",
            {},
        )

    def holders(self, type: str, property: str, value: Value, most: int) -> Sequence[Sequence[Any]]:
        """Return the identities of up to `most` nodes of a label with a value of a property."""
        if not all(map(writable, filter(None, (type, property)))):
            return []
        text = f"{_of_type(type)} n.{quote(property)} = $value RETURN {self.identified('n')} LIMIT {most}"
        return self.ask(text, {"value": value})

    def in_parts(
        self, keys: Sequence[str], ask: Callable[[Sequence[str]], Sequence[Sequence[Any]]]
    ) -> list[Sequence[Any]]:
        """Ask about many keys, so many at once as the server's own time limit allows."""
        found: list[Sequence[Any]] = []
        start = 0
        while start < len(keys):
            part = keys[start : start + self._together]
            try:
                found.extend(ask(part))
            except QueryTimeout as error:
                if len(part) == 1 or error.timeout_s >= self.timeout_s:
                    raise  # it took all of our own time
                self._together = max(1, len(part) // 4)
                continue
            start += len(part)
        return found


def plain_value(value: Any) -> Value:
    """Return a property as one of the kinds that properties have; lists and maps become JSON text."""
    if isinstance(value, bool | int | float | str):
        return value
    return json.dumps(value, ensure_ascii=False)


def natural(text: str) -> tuple[int, str]:
    """Order ids with counters at the end as they were counted: `x:9` before `x:10`."""
    return len(text), text


def _of_type(type: str) -> str:
    """Write the beginning of a query for the nodes `n` with a label, or with none, up to its condition."""
    return f"MATCH (n:{quote(type)}) WHERE" if type else "MATCH (n) WHERE size(labels(n)) = 0 AND"
