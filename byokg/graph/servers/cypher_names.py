"""Ids, names and labels of nodes behind a server with openCypher."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.errors import ConfigError, GraphError, QueryFailed, QueryTimeout
from byokg.graph.read_cache import digest
from byokg.graph.servers.base import NumberingStore, patiently
from byokg.graph.servers.cypher_schema import (
    CypherServer,
    ServerNode,
    node_pattern,
    order_types,
    quote,
    union_all,
    writable,
)
from byokg.text.names import encodable, split_words
from byokg.types import NO_PROPERTIES, EntityId, Node, Value

_NAMING = ("name", "title", "label")

_LABELS_TOGETHER = 50
"""Labels per round trip."""

_FUZZY_FROM = 3
"""Letters from which a word may be misspelt."""

_INTEGER = re.compile(r"0|-?[1-9]\d{0,17}")


def guess_name_property(properties: Iterable[str]) -> str | None:
    """Choose the property that holds a node's name: `name`, `title` or `label`, or one that ends so (`companyName`)."""
    by_folded = {key.casefold(): key for key in sorted(properties, reverse=True)}
    for wanted in _NAMING:
        if wanted in by_folded:
            return by_folded[wanted]
    for wanted in _NAMING:
        for folded, key in sorted(by_folded.items()):
            if folded.endswith(wanted):
                return key
    return None


class CypherNames(NumberingStore):
    """Lookup of nodes by their identifying and naming properties."""

    def __init__(
        self,
        server: CypherServer,
        id_property: str | None = None,
        name_property: str | None = None,
        timeout_s: float = 60.0,
        vector_index: str | None = None,
    ) -> None:
        """Read a graph through a server.

        Args:
            server: executes the queries.
            id_property: the property that identifies a node: unique, better indexed. Nodes without it, or all
                nodes if it is None, are identified by the server's own id.
            name_property: the property that holds a node's name; None, or a node without it, means the guess of
                `guess_name_property` for its type, and the id if there is none.
            timeout_s: for each round trip that is not part of `run`.
            vector_index: a vector index of the server over nodes, with the vectors of their names by the linking
                embedder; None uses none. The vectors are left out of the nodes' properties.
        """
        super().__init__(server.name, timeout_s)
        self._server = server
        self.id_property = id_property
        """The property that identifies nodes; None if the server's own ids do."""
        self._name_property = name_property
        self._vector_index = vector_index
        self._vectors: tuple[str, str] | None = None
        self._elements: dict[EntityId, str] = {}
        self._entities: dict[str, EntityId] = {}
        self._label_counts: dict[str, int] = {}
        self._met = False
        self._listed_labels: Sequence[str] | None = None
        self._text_indexes: Sequence[str] | None = None
        self._bare: bool | None = None

    # Asking

    def _ask(self, text: str, parameters: Mapping[str, Any], timeout_s: float | None = None) -> Sequence[Sequence[Any]]:
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        rows = patiently(lambda left_s: self._server.ask(text, parameters, left_s), timeout_s, self._met).rows
        self._met = True
        return rows

    def _entity(self, variable: str) -> str:
        """Return the Cypher expression of the identifying property of the node in `variable`."""
        if self.id_property is None:
            return "null"
        return f"{variable}.{quote(self.id_property)}"

    def _identity_of(self, variable: str) -> tuple[str, str]:
        """Write the two expressions that `_remember` takes."""
        return f"{self._server.identity}({variable})", self._entity(variable)

    def _identified(self, variable: str) -> str:
        """Write them as columns."""
        return "{} AS element, {} AS entity".format(*self._identity_of(variable))

    # Identity

    def _element(self, entity: EntityId) -> str:
        """Return the server's id of a node that was met."""
        return self._elements.get(entity, entity)

    def _remember(self, elements: Sequence[str], values: Sequence[Any]) -> list[EntityId]:
        """Return the keys of some nodes, given the server's ids and the values of the identifying property."""
        if self.id_property is None:
            return cast(list[EntityId], list(elements))
        entities = []
        for element, value in zip(elements, values, strict=True):
            entity = EntityId(element if value is None else str(plain_value(value)))
            if self._elements.setdefault(entity, element) != element:
                raise GraphError(
                    f"two nodes of {self.name} have the value {entity!r} in {self.id_property!r}; choose a property "
                    "that identifies nodes, or none, which takes the server's own ids"
                )
            self._entities[element] = entity
            entities.append(entity)
        return entities

    def _meet(self, elements: Sequence[str], values: Sequence[Any]) -> Int64:
        """Return the numbers of nodes; new ones are numbered in the order of their keys."""
        entities = self._remember(elements, values)
        self._nodes.add(sorted({entity for entity in entities if entity not in self._nodes}, key=natural))
        return self._nodes.add(entities)

    def _look_up(self, entities: Sequence[EntityId]) -> None:
        """Look up nodes by their keys, and number the existing ones in the given order."""
        found: set[EntityId] = set()
        if self.id_property is not None:
            rows = self._by_property(self.id_property, entities)
            found.update(self._remember([row[0] for row in rows], [row[1] for row in rows]))
        missing = [entity for entity in entities if entity not in found]
        if missing:
            rows = self._ask(f"{self._server.anchor} RETURN {self._identified('n')}", {"ids": missing})
            if self.id_property is not None:
                rows = [row for row in rows if row[1] is None]  # the others are known by their property only
            found.update(self._remember([row[0] for row in rows], [row[1] for row in rows]))
        self._nodes.add(entity for entity in entities if entity in found)

    def _by_property(self, name: str, entities: Sequence[EntityId]) -> Sequence[Sequence[Any]]:
        """Find nodes by the property that identifies them: label by label, because indexes belong to labels."""
        # The graph may hold numbers where ids here are text.
        values = [*entities, *(int(entity) for entity in entities if _INTEGER.fullmatch(entity))]
        rows: list[Sequence[Any]] = []
        labels = self._labels()
        by_label = 0 < len(labels) <= _LABELS_TOGETHER and all(map(writable, labels))
        if by_label:
            parts = [
                f"MATCH (n:{quote(label)}) WHERE n.{quote(name)} IN $values RETURN {self._identified('n')}"
                for label in labels
            ]
            rows = [*self._ask("\nUNION\n".join(parts), {"values": values})]
        missing = len({str(value) for _, value in rows}) < len(set(entities))
        if missing and not (by_label and self._all_labelled()):
            text = f"MATCH (n) WHERE n.{quote(name)} IN $values RETURN {self._identified('n')}"
            rows = [*self._ask(text, {"values": values})]
        return rows

    def _all_labelled(self) -> bool:
        """True if every node has a label, so that no lookup has to scan all nodes."""
        if self._bare is None:
            text = "MATCH (n) WHERE size(labels(n)) = 0 RETURN 1 AS one LIMIT 1"
            self._bare = bool(self._ask(text, {}))
        return not self._bare

    def refresh(self) -> None:
        """Forget the schema, labels, nodes and edges, so that they are read again on demand."""
        super().refresh()
        self._listed_labels = self._text_indexes = self._bare = self._vectors = None

    def _labels(self) -> Sequence[str]:
        """Return the server's own list of labels."""
        if self._schema is not None:
            return sorted(label for label in self._schema.node_types if label)
        if self._listed_labels is None:
            labels = patiently(lambda left_s: self._server.labels(left_s), self._timeout_s, self._met)
            self._listed_labels = sorted(labels)
        return self._listed_labels

    # Nodes

    def all_nodes(self) -> Iterator[list[Node]]:
        """Yield every node once, in pages."""
        columns = (*self._identity_of("n"), "labels(n)", self._held("n"))
        for page in self._server.node_pages(columns, self._timeout_s):
            yield self._met_nodes(page)

    def _count_labels(self, nodes: Iterable[ServerNode]) -> None:
        """Count the labels of nodes that have several, of which the rarest is shown; one look-up for all."""
        several = {label for node in nodes if len(node.labels) > 1 for label in node.labels}
        unknown = sorted(several - self._label_counts.keys())
        for start in range(0, len(unknown), _LABELS_TOGETHER):
            some = unknown[start : start + _LABELS_TOGETHER]
            parts = [
                f"MATCH {node_pattern('n', label, f'label{place}')} RETURN $label{place} AS label, count(n) AS nodes"
                for place, label in enumerate(some)
            ]
            rows = self._ask(union_all(parts), {f"label{place}": label for place, label in enumerate(some)})
            self._label_counts |= dict(map(tuple, rows))

    def _node(self, node: ServerNode) -> Node:
        first, *further = order_types(node.labels, self._label_counts) or [""]
        left_out = self._left_out()
        properties = {key: plain_value(value) for key, value in sorted(node.properties.items()) if key not in left_out}
        identity = EntityId(str(properties.get(self.id_property or "", node.element)))
        chosen = self._name_property
        naming = chosen if chosen in properties else guess_name_property(properties)
        name = identity if naming is None else str(properties[naming])
        kept = {key: value for key, value in properties.items() if key not in (self.id_property, naming)}
        return Node(identity, name, first, kept or NO_PROPERTIES, tuple(further))

    # Names

    @property
    def names_key(self) -> str:
        """Return a key that differs between graphs with other ids or names."""
        return digest(self.name, self.id_property, self._name_property)

    def named(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the numbers of the nodes that are called just so, for each text."""
        sought = [text for text in dict.fromkeys(texts) if encodable(text) == text]
        found: dict[str, list[int]] = {}
        for node in self._called(sought):
            found.setdefault(node.name, []).append(int(self._nodes.add([node.id])[0]))
        return [sorted(dict.fromkeys(found.get(text, ()))) for text in texts]

    def _called(self, texts: Sequence[str]) -> list[Node]:
        """Return the nodes in which a property that may hold names holds one of some texts."""
        labels = [label for label in self._labels() if writable(label)]
        keys: dict[str, list[str]] = {}
        for label in labels:
            naming = list(_NAMING)
            if self._schema is not None:
                guess = guess_name_property(self._schema.node_properties.get(label, ()))
                naming = [guess] if guess else []
            keys[label] = [self._name_property] if self._name_property else naming
        if not 0 < sum(map(len, keys.values())) <= _LABELS_TOGETHER:
            keys = {"": sorted({key for of in keys.values() for key in of}) or list(_NAMING)}
        if self.id_property is not None:  # a node without a name is called by its id
            keys = {label: list(dict.fromkeys([*of, self.id_property])) for label, of in keys.items()}
        columns = self._node_columns("n")
        parts = [
            f"MATCH (n{f':{quote(label)}' if label else ''}) WHERE n.{quote(key)} IN $texts RETURN {columns}"
            for label, of in keys.items()
            for key in of
        ]
        return self._met_nodes(self._ask("\nUNION\n".join(parts), {"texts": list(texts)}))

    def _met_nodes(self, rows: Sequence[Sequence[Any]]) -> list[Node]:
        """Return the nodes in rows of the server's id, the key, labels, and properties; number them."""
        self._meet([row[0] for row in rows], [row[1] for row in rows])
        nodes = [ServerNode(row[0], tuple(sorted(row[2])), row[3]) for row in rows]
        self._count_labels(nodes)
        return [self._node(node) for node in nodes]

    def resembling(self, texts: Sequence[str], k: int) -> list[list[tuple[int, str]]] | None:
        """Return number and name of nodes that the server's full-text indexes find."""
        indexes = self._find_text_indexes()
        if not indexes:
            return None
        found: list[list[tuple[int, str]]] = []
        for text in texts:
            words = [f"{word}~" if len(word) >= _FUZZY_FROM else word for word in split_words(encodable(text))]
            hits: dict[int, str] = {}
            for name in indexes if words else ():
                rows = self._ask(
                    "CALL db.index.fulltext.queryNodes($index, $words, {limit: $k}) YIELD node AS n "
                    f"RETURN {self._node_columns('n')}",
                    {"index": name, "words": " ".join(words), "k": k},
                )
                for node in self._met_nodes(rows):
                    hits[int(self._nodes.add([node.id])[0])] = node.name
            found.append(list(hits.items()))
        return found

    def _find_text_indexes(self) -> Sequence[str]:
        """Return the full-text indexes over properties that may hold names; servers other than Neo4j have none."""
        if self._text_indexes is None:
            text = (
                "SHOW FULLTEXT INDEXES YIELD name, entityType, properties, state "
                "WHERE entityType = 'NODE' AND state = 'ONLINE' RETURN name, properties ORDER BY name"
            )
            try:
                rows = self._ask(text, {})
            except QueryFailed:
                rows = []
            chosen = self._name_property
            self._text_indexes = [
                name for name, keys in rows if (chosen in keys if chosen else guess_name_property(keys) is not None)
            ]
        return self._text_indexes

    # Vectors of names

    @property
    def vector_index(self) -> str | None:
        """Return the name of the vector index."""
        return self._vector_index

    def embedded(self, count: int) -> list[tuple[str, Sequence[float]]]:
        """Return name and vector of up to `count` nodes that have one."""
        label, key = self._find_vectors()
        pattern = f"MATCH (n:{quote(label)}) WHERE n.{quote(key)} IS NOT NULL WITH n LIMIT {count}"
        rows = self._ask(f"{pattern} RETURN {self._node_columns('n')}, n.{quote(key)} AS vector", {})
        return [(node.name, row[4]) for node, row in zip(self._met_nodes(rows), rows, strict=True)]

    def nearest(self, vectors: npt.NDArray[np.floating], k: int) -> list[list[tuple[int, str, Sequence[float]]]]:
        """Return number, name and vector of the nodes whose vectors are nearest to each."""
        _, key = self._find_vectors()
        found: list[list[tuple[int, str, Sequence[float]]]] = [[] for _ in vectors]
        rows = self._ask(
            "UNWIND range(0, size($vectors) - 1) AS at "
            "CALL db.index.vector.queryNodes($index, $k, $vectors[at]) YIELD node AS n "
            f"RETURN {self._node_columns('n')}, n.{quote(key)} AS vector, at",
            {"index": self._vector_index, "k": k, "vectors": vectors.tolist()},
        )
        for node, row in zip(self._met_nodes(rows), rows, strict=True):
            found[row[5]].append((int(self._nodes.add([node.id])[0]), node.name, row[4]))
        return found

    def _find_vectors(self) -> tuple[str, str]:
        """Return label and property of the vector index. Raises `ConfigError` if it is unusable."""
        if self._vectors is None:
            text = (
                "SHOW VECTOR INDEXES YIELD name, entityType, labelsOrTypes, properties, state "
                "WHERE entityType = 'NODE' RETURN name, labelsOrTypes, properties, state ORDER BY name"
            )
            try:
                there = {name: (labels[0], keys[0], state) for name, labels, keys, state in self._ask(text, {})}
            except QueryTimeout:
                raise
            except QueryFailed:
                there = {}
            if self._vector_index not in there:
                known = ", ".join(there) or "none"
                raise ConfigError(
                    f"{self.name} has no vector index {self._vector_index!r} over nodes; there is: {known}"
                )
            label, key, state = there[self._vector_index]
            if state != "ONLINE":
                raise ConfigError(
                    f"the vector index {self._vector_index!r} of {self.name} is {state.lower()}; "
                    "wait until it is online, or leave vector_index out"
                )
            self._vectors = label, key
        return self._vectors

    def _left_out(self) -> Collection[str]:
        """Return the properties that are no one's to read: vectors."""
        return () if self._vector_index is None else self._find_vectors()[1:]

    def _held(self, variable: str) -> str:
        """Write the properties of a node, without those that are left out."""
        left_out = "".join(f", {quote(key)}: null" for key in self._left_out())
        return f"{variable} {{.*{left_out}}}" if left_out else f"properties({variable})"

    def _node_columns(self, variable: str) -> str:
        """Write the columns that `_met_nodes` takes."""
        return f"{self._identified(variable)}, labels({variable}) AS labels, {self._held(variable)} AS held"

    def named_pages(self) -> Iterator[list[tuple[EntityId, str]]]:
        """Yield ids with their names, in pages."""
        for page in self._counted_out(self.all_nodes(), ended=False):
            yield [(node.id, node.name) for node in page]


def plain_value(value: Any) -> Value:
    """Return a property as one of the kinds that properties have; lists and maps become JSON text."""
    if isinstance(value, bool | int | float | str):
        return value
    return json.dumps(value, ensure_ascii=False)


def natural(text: str) -> tuple[int, str]:
    """Order ids with counters at the end as they were counted: `x:9` before `x:10`."""
    return len(text), text
