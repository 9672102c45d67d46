"""Requests to a server with openCypher: nodes and edges, keys and names of nodes, and the cells of answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from byokg.errors import ConfigError, GraphError, QueryFailed, QueryTimeout, QueryTooLarge
from byokg.graph.display_names import fill_one, names_another, sampled_template
from byokg.graph.servers.base import patiently
from byokg.graph.servers.cypher_schema import (
    CypherServer,
    ServerEdge,
    ServerNode,
    ServerPath,
    edge_pattern,
    node_pattern,
    order_types,
    quote,
    records_in,
    union_all,
    writable,
)
from byokg.graph.store import Schema
from byokg.text.names import encodable, split_words
from byokg.types import NO_PROPERTIES, Cell, EdgeCell, EntityId, Node, NodeCell, PathCell, Properties, Value

LABELS_TOGETHER = 50
"""Labels per round trip."""

TOGETHER = 10_000
"""Node ids sent in one round trip."""

_NAMING = ("name", "title", "label")

_FUZZY_FROM = 3
"""Letters from which a word may be misspelt."""

_SAMPLED = 1000
"""Nodes of a label that its display template is chosen by."""
_SORTED = 100_000
"""Nodes of a label up to which the sample is the first ones by id; of more, those that the server returns first."""
_TRIES = 3
"""Failed samples of a label after which its nodes keep their ids as names."""

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
        """Return the expressions of the server's id and the identifying property of a node, for `remember`."""
        return f"{self.server.identity}({variable})", self.entity_of(variable)

    def identified(self, variable: str) -> str:
        """Return both expressions as columns."""
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

    def frequent_values(self, type: str, property: str, most: int, of_edges: bool = False) -> Sequence[Sequence[Any]]:
        """Return the values of a property that most nodes of a label have, with their numbers; none if unwritable.

        With `of_edges`, those that most edges of a type have.
        """
        if not all(map(writable, filter(None, (type, property)))):
            return []
        value, pattern = f"n.{quote(property)}", f"MATCH ()-[n:{quote(type)}]->() WHERE" if of_edges else _of_type(type)
        return self.ask(
            f"{pattern} {value} IS NOT NULL WITH {value} AS value, count(n) AS nodes "
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


def guess_name_property(properties: Iterable[str]) -> str | None:
    """Choose the property that holds a node's name: `name`, `title` or `label`, or one that ends so (`companyName`).

    The name of something else (`shipName`) is none.
    """
    by_folded = {key.casefold(): key for key in sorted(properties, reverse=True)}
    for wanted in _NAMING:
        if wanted in by_folded:
            return by_folded[wanted]
    for wanted in _NAMING:
        for folded, key in sorted(by_folded.items()):
            if folded.endswith(wanted) and not names_another(key):
                return key
    return None


class CypherNames:
    """Reads names, labels and properties of nodes, and finds nodes by name.

    Args:
        reads: asks the server.
        name_property: the property that holds a node's name; None guesses it by `guess_name_property`.
        vector_index: a vector index of names, whose vectors are left out of the properties; None uses none.
    """

    def __init__(self, reads: CypherReads, name_property: str | None, vector_index: str | None) -> None:
        self._reads, self._name_property, self.vector_index = reads, name_property, vector_index
        self.schema: Schema | None = None
        """The schema, as soon as it was read."""
        self.label_counts: dict[str, int] = {}
        self.templates: dict[str, str] = {}
        """Display templates of labels without a property of names, as far as they were needed; empty for none."""
        self._failed: dict[str, int] = {}
        """Failed samples by label."""
        self._vectors: tuple[str, str] | None = None
        self._searches = True
        """False once the server has refused the clause SEARCH."""
        self._listed_labels: Sequence[str] | None = None
        self._text_indexes: Sequence[str] | None = None

    def refresh(self) -> None:
        """Forget the schema, labels and indexes, so that they are read again on demand."""
        self.schema = self._listed_labels = self._text_indexes = self._vectors = None
        self.templates, self._failed = {}, {}

    def name_property(self, label: str) -> str | None:
        """Return the property that most likely holds the names of nodes with a label, by the schema."""
        names = () if self.schema is None else self.schema.node_properties.get(label, ())
        return self._name_property or guess_name_property(names)

    def key(self) -> tuple[str | None, ...]:
        """Return a key that differs between graphs with other ids or names."""
        return self._reads.server.name, self._reads.id_property, self._name_property, "display names"

    def labels(self) -> Sequence[str]:
        """Return the server's own list of labels."""
        if self.schema is not None:
            return sorted(label for label in self.schema.node_types if label)
        if self._listed_labels is None:
            labels = patiently(lambda left_s: self._reads.server.labels(left_s), self._reads.timeout_s, self._reads.met)
            self._listed_labels = sorted(labels)
        return self._listed_labels

    def count_labels(self, nodes: Iterable[ServerNode]) -> None:
        """Count the labels of nodes that have several, of which the rarest is shown; one look-up for all."""
        several = {label for node in nodes if len(node.labels) > 1 for label in node.labels}
        unknown = sorted(several - self.label_counts.keys())
        for start in range(0, len(unknown), LABELS_TOGETHER):
            some = unknown[start : start + LABELS_TOGETHER]
            parts = [
                f"MATCH {node_pattern('n', label, f'label{place}')} RETURN $label{place} AS label, count(n) AS nodes"
                for place, label in enumerate(some)
            ]
            rows = self._reads.ask(union_all(parts), {f"label{place}": label for place, label in enumerate(some)})
            self.label_counts |= dict(map(tuple, rows))

    def node(self, node: ServerNode) -> Node:
        first, *further = order_types(node.labels, self.label_counts) or [""]
        left_out = self.left_out()
        properties = {key: plain_value(value) for key, value in sorted(node.properties.items()) if key not in left_out}
        identity = EntityId(str(properties.get(self._reads.id_property or "", node.element)))
        chosen = self._name_property
        naming = chosen if chosen in properties else guess_name_property(properties)
        name = "" if naming is None else str(properties[naming])
        if not name.strip():
            name = self._display_name(first, properties) or (identity if naming is None else name)
        kept = {key: value for key, value in properties.items() if key not in (self._reads.id_property, naming)}
        return Node(identity, name, first, kept or NO_PROPERTIES, tuple(further))

    def _display_name(self, label: str, properties: Properties) -> str:
        """Return the name of a node by the display template of its label; empty if there is none."""
        if not properties.keys() - {self._reads.id_property}:
            return ""
        template = self.template(label)
        return fill_one(template, properties) if template else ""

    def template(self, label: str) -> str:
        """Return the display template of a label, chosen by a sample of its nodes, once; empty for none.

        Also empty if the server refuses the sample, which is then asked for again.
        """
        if not writable(label):
            return ""
        if label not in self.templates:
            many = self.schema is not None and self.schema.node_types.get(label, 0) > _SORTED
            element, entity = self._reads.identity_of("n")
            order = "" if many else f"ORDER BY {element if self._reads.id_property is None else entity} "
            text = f"MATCH (n:{quote(label)}) WITH n {order}LIMIT {_SAMPLED} RETURN {self.held('n')}"
            try:
                rows = self._reads.ask(text, {})
            except QueryFailed:
                self._failed[label] = self._failed.get(label, 0) + 1
                if self._failed[label] < _TRIES:
                    return ""
                rows = []
            kept = [{key: plain_value(value) for key, value in row[0].items()} for row in rows]
            self.templates[label] = sampled_template(label, kept)
        return self.templates[label]

    def called(self, texts: Sequence[str]) -> Sequence[Sequence[Any]]:
        """Return rows of the nodes in which a property that may hold names holds one of some texts."""
        labels = [label for label in self.labels() if writable(label)]
        keys: dict[str, list[str]] = {}
        for label in labels:
            naming = list(_NAMING)
            if self.schema is not None:
                guess = guess_name_property(self.schema.node_properties.get(label, ()))
                naming = [guess] if guess else []
            keys[label] = [self._name_property] if self._name_property else naming
        if not 0 < sum(map(len, keys.values())) <= LABELS_TOGETHER:
            keys = {"": sorted({key for of in keys.values() for key in of}) or list(_NAMING)}
        if self._reads.id_property is not None:  # a node without a name is called by its id
            keys = {label: list(dict.fromkeys([*of, self._reads.id_property])) for label, of in keys.items()}
        columns = self.node_columns("n")
        parts = [
            f"MATCH (n{f':{quote(label)}' if label else ''}) WHERE n.{quote(key)} IN $texts RETURN {columns}"
            for label, of in keys.items()
            for key in of
        ]
        return self._reads.ask("\nUNION\n".join(parts), {"texts": list(texts)})

    def text_indexes(self) -> Sequence[str]:
        """Return the full-text indexes over properties that may hold names; servers other than Neo4j have none."""
        if self._text_indexes is None:
            text = (
                "SHOW FULLTEXT INDEXES YIELD name, entityType, properties, state "
                "WHERE entityType = 'NODE' AND state = 'ONLINE' RETURN name, properties ORDER BY name"
            )
            try:
                rows = self._reads.ask(text, {})
            except QueryFailed:
                rows = []
            chosen = self._name_property
            self._text_indexes = [
                name for name, keys in rows if (chosen in keys if chosen else guess_name_property(keys) is not None)
            ]
        return self._text_indexes

    def _find_vectors(self) -> tuple[str, str]:
        """Return label and property of the vector index. Raises `ConfigError` if it is unusable."""
        if self._vectors is None:
            text = (
                "SHOW VECTOR INDEXES YIELD name, entityType, labelsOrTypes, properties, state "
                "WHERE entityType = 'NODE' RETURN name, labelsOrTypes, properties, state ORDER BY name"
            )
            try:
                there = {name: (labels[0], keys[0], state) for name, labels, keys, state in self._reads.ask(text, {})}
            except QueryTimeout:
                raise
            except QueryFailed:
                there = {}
            if self.vector_index not in there:
                known = ", ".join(there) or "none"
                raise ConfigError(
                    f"{self._reads.server.name} has no vector index {self.vector_index!r} over nodes; there is: {known}"
                )
            label, key, state = there[self.vector_index]
            if state != "ONLINE":
                raise ConfigError(
                    f"the vector index {self.vector_index!r} of {self._reads.server.name} is {state.lower()}; "
                    "wait until it is online, or leave vector_index out"
                )
            self._vectors = label, key
        return self._vectors

    def left_out(self) -> Collection[str]:
        """Return the properties that nodes do not show: vectors."""
        return () if self.vector_index is None else self._find_vectors()[1:]

    def held(self, variable: str) -> str:
        """Write the properties of a node, without those that are left out."""
        left_out = "".join(f", {quote(key)}: null" for key in self.left_out())
        return f"{variable} {{.*{left_out}}}" if left_out else f"properties({variable})"

    def node_columns(self, variable: str) -> str:
        """Write the columns of a node: the server's id, the key, labels, and properties."""
        return f"{self._reads.identified(variable)}, labels({variable}) AS labels, {self.held(variable)} AS held"

    def similar(self, text: str, k: int) -> Iterator[Sequence[Sequence[Any]]]:
        """Yield rows of up to `k` nodes with names similar to a text, from each full-text index."""
        words = [f"{word}~" if len(word) >= _FUZZY_FROM else word for word in split_words(encodable(text))]
        for name in self.text_indexes() if words else ():
            yield self._reads.ask(
                "CALL db.index.fulltext.queryNodes($index, $words, {limit: $k}) YIELD node AS n "
                f"RETURN {self.node_columns('n')}",
                {"index": name, "words": " ".join(words), "k": k},
            )

    def embedded(self, count: int) -> Sequence[Sequence[Any]]:
        """Return rows of up to `count` nodes that have a vector, with the vector."""
        label, key = self._find_vectors()
        pattern = f"MATCH (n:{quote(label)}) WHERE n.{quote(key)} IS NOT NULL WITH n LIMIT {count}"
        return self._reads.ask(f"{pattern} RETURN {self.node_columns('n')}, n.{quote(key)} AS vector", {})

    def nearest(self, vectors: npt.NDArray[np.floating], k: int) -> Sequence[Sequence[Any]]:
        """Return rows of the nodes whose vectors are nearest to each, with the vector and the place of the request."""
        label, key = self._find_vectors()
        each = "UNWIND range(0, size($vectors) - 1) AS at "
        returned = f" RETURN {self.node_columns('n')}, n.{quote(key)} AS vector, at"
        given = {"k": k, "vectors": vectors.tolist()}
        if self._searches:  # the clause of Neo4j 2026.01, which deprecates the procedure
            index = quote(self.vector_index or "")
            clause = f"SEARCH n IN (VECTOR INDEX {index} FOR $vectors[at] LIMIT $k)"
            text = f"CYPHER 25 {each}CALL (at) {{ MATCH (n:{quote(label)}) {clause} RETURN n }}{returned}"
            try:
                return self._reads.ask(text, given)
            except QueryTimeout:
                raise
            except QueryFailed:
                self._searches = False
        call = "CALL db.index.vector.queryNodes($index, $k, $vectors[at]) YIELD node AS n"
        return self._reads.ask(f"{each}{call}{returned}", {"index": self.vector_index, **given})


class CypherCells:
    """Converts the values of an answer into cells."""

    def __init__(self, reads: CypherReads, names: CypherNames) -> None:
        self._reads, self._names = reads, names

    def resolve(self, rows: Sequence[Sequence[Any]], timeout_s: float) -> None:
        """Look up the keys of edge ends that were returned without them."""
        if self._reads.id_property is None:
            return
        wanted: dict[str, None] = {}
        for record in records_in(rows):
            if isinstance(record, ServerNode):
                self._reads.remember([record.element], [record.properties.get(self._reads.id_property)])
            else:
                wanted |= {record.start: None, record.end: None}
        missing = [element for element in wanted if element not in self._reads.entities]
        text = f"{self._reads.server.anchor} RETURN {self._reads.identified('n')}"
        for start in range(0, len(missing), TOGETHER):
            found = self._reads.ask(text, {"ids": missing[start : start + TOGETHER]}, timeout_s)
            self._reads.remember([row[0] for row in found], [row[1] for row in found])

    def cell(self, value: Any) -> Cell:
        if isinstance(value, ServerNode):
            return self._node_cell(value)
        if isinstance(value, ServerEdge):
            return self._edge(value)
        if isinstance(value, ServerPath):
            return PathCell(tuple(map(self._node_cell, value.nodes)), tuple(map(self._edge, value.edges)))
        if isinstance(value, list | tuple):
            return tuple(self.cell(item) for item in value)
        if isinstance(value, Mapping):
            return {str(key): self.cell(item) for key, item in value.items()}
        return cast(Cell, value)

    def _node_cell(self, value: ServerNode) -> NodeCell:
        node = self._names.node(value)
        return NodeCell(node.id, node.name, node.type, node.properties, node.further_types)

    def _edge(self, edge: ServerEdge) -> EdgeCell:
        head, tail = (self._reads.entities.get(end, EntityId(end)) for end in (edge.start, edge.end))
        properties = {key: plain_value(value) for key, value in sorted(edge.properties.items())}
        return EdgeCell(head, edge.type, tail, properties or NO_PROPERTIES)
