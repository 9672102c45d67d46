"""Names, labels and properties of nodes behind a server with openCypher, and the cells of its answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from byokg.errors import ConfigError, QueryFailed, QueryTimeout
from byokg.graph.servers.base import patiently
from byokg.graph.servers.cypher_reads import LABELS_TOGETHER, TOGETHER, CypherReads, plain_value
from byokg.graph.servers.cypher_schema import (
    ServerEdge,
    ServerNode,
    ServerPath,
    node_pattern,
    order_types,
    quote,
    records_in,
    union_all,
    writable,
)
from byokg.graph.store import Schema
from byokg.text.names import encodable, split_words
from byokg.types import NO_PROPERTIES, Cell, EdgeCell, EntityId, Node, NodeCell, PathCell

_NAMING = ("name", "title", "label")

_FUZZY_FROM = 3
"""Letters from which a word may be misspelt."""


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
        self._vectors: tuple[str, str] | None = None
        self._listed_labels: Sequence[str] | None = None
        self._text_indexes: Sequence[str] | None = None

    def refresh(self) -> None:
        """Forget the schema, labels and indexes, so that they are read again on demand."""
        self.schema = self._listed_labels = self._text_indexes = self._vectors = None

    def name_property(self, label: str) -> str | None:
        """Return the property that most likely holds the names of nodes with a label, by the schema."""
        names = () if self.schema is None else self.schema.node_properties.get(label, ())
        return self._name_property or guess_name_property(names)

    def key(self) -> tuple[str | None, ...]:
        """Return what distinguishes graphs with other ids or names."""
        return self._reads.server.name, self._reads.id_property, self._name_property

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
        name = identity if naming is None else str(properties[naming])
        kept = {key: value for key, value in properties.items() if key not in (self._reads.id_property, naming)}
        return Node(identity, name, first, kept or NO_PROPERTIES, tuple(further))

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
        """Return the properties that are no one's to read: vectors."""
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
        _, key = self._find_vectors()
        return self._reads.ask(
            "UNWIND range(0, size($vectors) - 1) AS at "
            "CALL db.index.vector.queryNodes($index, $k, $vectors[at]) YIELD node AS n "
            f"RETURN {self.node_columns('n')}, n.{quote(key)} AS vector, at",
            {"index": self.vector_index, "k": k, "vectors": vectors.tolist()},
        )


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
