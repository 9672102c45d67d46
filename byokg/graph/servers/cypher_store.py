"""A graph behind a server with openCypher: the common part of Neo4j and Neptune.

A `CypherServer` sends query text and converts results into plain values. Everything else is here: the texts of
queries, the numbering of nodes and edges, keys and names of nodes, and the conversion of results into cells.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.errors import EntityNotFound, GraphError, QueryTimeout, QueryTooLarge
from byokg.graph.columnar.ids import Numbering
from byokg.graph.guard.guard import check_cypher
from byokg.graph.read_cache import CachedSchema, around, digest
from byokg.graph.servers.base import NumberingStore, patiently
from byokg.graph.servers.cypher_reads import (
    LABELS_TOGETHER,
    TOGETHER,
    CypherCells,
    CypherNames,
    CypherReads,
    natural,
    plain_value,
)
from byokg.graph.servers.cypher_schema import (
    MAX_WRITTEN,
    Catalogue,
    CypherServer,
    Records,
    ServerNode,
    plain_parameters,
    reached_nodes,
    read_schema,
    records_in,
    shortest_paths,
    union_all,
    writable,
)
from byokg.graph.store import Direction, EdgeBatch, NodeArray, QueryLimits, RelationArray, Rows, Schema
from byokg.text.names import encodable
from byokg.types import NO_PROPERTIES, Cell, EntityId, Language, Node, Properties, Value

_SAMPLED_ROWS = 20_000
"""Rows of one round trip when edges are sampled."""

_LISTED = 2_000_000
"""Edges that a server may look at to sample all relations at once."""

_SPREAD = 20
"""How many times as many edges as wanted are looked at, so that a sample is spread over them."""


class CypherStore(NumberingStore):
    """A graph behind a `CypherServer`. Threads may share it.

    Numbers of nodes and edges are given out in the order of first use, and are valid within this object only. They
    never change: `refresh` forgets the schema, nodes and their edges, a new store forgets everything.
    """

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
        self._reads = CypherReads(server, timeout_s, id_property)
        self._names = CypherNames(self._reads, name_property, vector_index)
        self._cells = CypherCells(self._reads, self._names)
        self._edges: Numbering[str] = Numbering()
        self._edge_properties: dict[str, Properties] = {}
        self._sizes = (0, 0)

    def _let_go(self) -> None:
        self._server.close()

    def refresh(self) -> None:
        """Forget the schema, labels, nodes and edges, so that they are read again on demand."""
        super().refresh()
        self._reads.refresh()
        self._names.refresh()

    @property
    def identity(self) -> str:
        """Return the function that gives the server's own id of a node, in queries."""
        return self._server.identity

    def elements(self, ids: Collection[EntityId]) -> list[str]:
        """Return the server's own id of each node. Raises `EntityNotFound`."""
        self.numbers(ids)
        return [self._reads.element(id) for id in ids]

    def name_property(self, label: str) -> str | None:
        """Return the property that most likely holds the names of nodes with a label."""
        self._known_schema()
        return self._names.name_property(label)

    # Methods of GraphStore

    @property
    def display_names(self) -> Mapping[str, str]:
        """Return the display templates of labels without a property of names, each chosen by a sample of nodes."""
        nameless = [label for label in self._known_schema().node_types if label and not self.name_property(label)]
        found = {label: self._names.template(label) for label in nameless[:LABELS_TOGETHER]}
        return {label: template for label, template in found.items() if template}

    @property
    def met_relations(self) -> Sequence[str]:
        return self._relations.keys()

    def _list_relations(self) -> None:
        """Number all relation types: those that the server lists, if the schema has not been read."""
        if self._schema is None:
            names = patiently(lambda left_s: self._server.relations(left_s), self._reads.timeout_s, self._reads.met)
            self._relations.add(sorted(names))

    def schema(self) -> Schema:
        """Return labels and relation types with counts, read once; see `cypher_schema` and `refresh`.

        The property that identifies nodes is left out. A node with several labels counts for each of them.
        """
        schema, left_out = self._known_schema(), {self.id_property, *self._names.left_out()}
        names, details = dict(schema.node_properties), dict(schema.node_property_details)
        for label in schema.node_properties:
            names[label] = tuple(name for name in names[label] if name not in left_out)
            details[label] = tuple(detail for detail in details.get(label, ()) if detail.name not in left_out)
        return replace(
            schema,
            node_properties={label: kept for label, kept in names.items() if kept},
            node_property_details={label: kept for label, kept in details.items() if kept},
        )

    @property
    def node_count(self) -> int:
        """Return the server's number of nodes at the time of reading the schema."""
        self._known_schema()
        return self._sizes[0]

    @property
    def edge_count(self) -> int:
        """Return the server's number of edges at the time of reading the schema."""
        self._known_schema()
        return self._sizes[1]

    def entities(self) -> Iterator[EntityId]:
        """Yield each entity once, heads and tails alike, in node-number order."""
        given = 0
        for page in self._counted_out(self._server.node_pages(self._reads.identity_of("n"), self._reads.timeout_s)):
            self._meet([element for element, _ in page], [value for _, value in page])
            # In number order whoever else is numbering nodes at the same time.
            for entity in self._nodes.keys(given):
                yield EntityId(entity)
                given += 1
        yield from map(EntityId, self._nodes.keys(given))

    def all_nodes(self) -> Iterator[list[Node]]:
        """Yield every node once, in pages."""
        columns = (*self._reads.identity_of("n"), "labels(n)", self._names.held("n"))
        for page in self._server.node_pages(columns, self._reads.timeout_s):
            yield self._met_nodes(page)

    def all_edges(self) -> Iterator[EdgeBatch]:
        """Yield every edge once, in pages."""
        head, tail = self._reads.identity_of("a"), self._reads.identity_of("b")
        columns = (*head, f"{self._server.identity}(r)", "type(r)", *tail, "properties(r)")
        for page in self._server.edge_pages(columns, self._reads.timeout_s):
            yield self._as_batch(page)

    def _as_batch(self, rows: Sequence[Sequence[Any]]) -> EdgeBatch:
        """Number edges by rows of element and entity of the head, edge, relation, the same of the tail, properties."""
        ends = self._meet([row[i] for row in rows for i in (0, 4)], [row[i] for row in rows for i in (1, 5)])
        head, tail = ends[0::2], ends[1::2]
        relation = self._number_relations([row[3] for row in rows])
        edge = self._number_edges([row[2] for row in rows], head, relation, tail, [row[6] for row in rows])
        return self._sampled(head, relation, tail, edge, np.argsort(relation, kind="stable"))

    def numbers(self, ids: Collection[EntityId]) -> NodeArray:
        """Return the node number of each id: (N,) int64. Raises `EntityNotFound` for an unknown one."""
        asked = list(ids)
        unknown = [entity for entity in dict.fromkeys(asked) if entity not in self._nodes]
        if lost := next((entity for entity in unknown if encodable(entity) != entity), None):
            raise EntityNotFound(lost, self.name)  # no server can return it
        for start in range(0, len(unknown), TOGETHER):
            self._nodes.add(self._reads.look_up(unknown[start : start + TOGETHER], self._names.labels))
        for entity in unknown:
            if entity not in self._nodes:
                raise EntityNotFound(entity, self.name)
        return self._nodes.add(asked)

    def _read_nodes(self, ids: Sequence[EntityId]) -> list[Node]:
        """Ask for names, types and properties. Raises `EntityNotFound`."""
        self.numbers(ids)
        found: dict[EntityId, Node] = {}
        elements = [self._reads.element(entity) for entity in ids]
        text = f"{self._server.anchor} RETURN n"
        rows = self._reads.in_parts(elements, lambda part: self._reads.ask(text, {"ids": part}))
        self._names.count_labels(stored for (stored,) in rows)
        for (stored,) in rows:
            node = self._names.node(stored)
            found[node.id] = node
        for entity in ids:
            if entity not in found:  # deleted since it was numbered
                raise EntityNotFound(entity, self.name)
        return [found[entity] for entity in ids]

    def _fetch_edges(self, nodes: NodeArray, direction: Direction, relations: RelationArray | None) -> EdgeBatch:
        """Ask for edges."""
        asked = np.asarray(nodes, np.int64)
        labels = None if relations is None else self._relation_keys(relations)
        inverses = {Direction.OUT: (False,), Direction.IN: (True,), Direction.BOTH: (False, True)}[direction]
        numbers = np.unique(asked).tolist()
        elements = [self._reads.element(EntityId(self._nodes.key(number))) for number in numbers]
        rows: Sequence[Sequence[Any]] = []
        if numbers and labels != []:
            rows = self._reads.in_parts(elements, lambda part: self._reads.hop_rows(part, labels, inverses))
        here_of = dict(zip(elements, numbers, strict=True))
        others = self._meet([row[4] for row in rows], [row[5] for row in rows])
        here = np.array([here_of[row[0]] for row in rows], np.int64)
        inverse = np.array([row[1] for row in rows], np.bool_)
        head, tail = np.where(inverse, others, here), np.where(inverse, here, others)
        relation = self._number_relations([row[2] for row in rows])
        edge = self._number_edges([row[3] for row in rows], head, relation, tail, [row[6] for row in rows])
        _, once = np.unique(edge, return_index=True)  # an edge between two of the nodes is found from both
        return around(asked, direction, head[once], relation[once], tail[once], edge[once], self._space)

    def _count_edges(self, keys: Sequence[str]) -> Sequence[tuple[str, str, bool, int]]:
        """Ask for the number of edges by node, relation, and whether they come in."""
        key_of = {self._reads.element(EntityId(key)): key for key in keys}
        elements = list(key_of)
        text = union_all(self._reads.hop_counts(inverse) for inverse in (False, True))
        counted: list[tuple[str, str, bool, int]] = []
        for start in range(0, len(elements), TOGETHER):
            rows = self._reads.ask(text, {"ids": elements[start : start + TOGETHER]})
            counted += [(key_of[origin], relation, inverse, count) for origin, inverse, relation, count in rows]
        return counted

    def edge_properties(self, edges: Int64) -> list[Properties]:
        """Return the properties that each edge had when it was met. Raises `GraphError` for an unknown number."""
        numbers = np.asarray(edges, np.int64)
        outside = np.flatnonzero((numbers < 0) | (numbers >= len(self._edges)))
        if len(outside):
            raise GraphError(f"no edge of number {numbers[outside[0]]} was met in {self.name}")
        return [self._edge_properties.get(self._edges.key(number), NO_PROPERTIES) for number in numbers.tolist()]

    def sample_edges(self, per_relation: int) -> EdgeBatch:
        """Return up to `per_relation` edges of each relation, by relation.

        They are spread evenly over the relation's edges in the order of the server; in a graph of more edges than
        `_LISTED`, over the first of them, 20 times as many as are wanted: Cypher has no quick way to the others.
        """
        looked_at = max(per_relation, 0) * _SPREAD
        relations = [relation.name for relation in self._known_schema().relations] if looked_at else []
        if relations and self._server.samples_at_once and self._sizes[1] <= _LISTED:
            return self._as_batch(self._reads.ask(self._reads.spread_edges(), {"wanted": per_relation}))
        together = max(1, _SAMPLED_ROWS // max(looked_at, 1))
        found: dict[str, list[Sequence[Any]]] = {relation: [] for relation in relations}
        for start in range(0, len(relations), together):
            group = relations[start : start + together]
            text = union_all(
                self._reads.some_edges(relation, number, looked_at) for number, relation in enumerate(group)
            )
            for row in self._reads.ask(text, {f"list{number}": [relation] for number, relation in enumerate(group)}):
                found[row[3]].append(row)
        rows: list[Sequence[Any]] = []
        for relation in relations:
            some = sorted(found[relation], key=lambda row: natural(row[2]))
            taken = min(per_relation, len(some))
            rows.extend(some[rank * len(some) // taken] for rank in range(taken))
        return self._as_batch(rows)

    def shortest_paths(
        self,
        source: int,
        target: int,
        direction: Direction,
        relations: RelationArray | None,
        most: int | None,
        limit: int,
        timeout_s: float,
    ) -> npt.NDArray[np.int64] | None:
        """Return all shortest paths between two nodes, if the server finds them as a step-by-step search does."""
        labels = None if relations is None else self._relation_keys(relations)
        if labels is not None and not (len(labels) <= MAX_WRITTEN and all(map(writable, labels))):
            return None  # as a condition, it is tested after a search over all relations
        try:
            if source == target or most == 0 or not self._server.finds_shortest_paths(timeout_s):
                return None
            elements = [self._reads.element(EntityId(self._nodes.key(node))) for node in (source, target)]
            text = shortest_paths(direction, labels, most, limit, self._reads.entity_of)
            found = self._reads.ask(text, {"source": elements[0], "target": elements[1]}, timeout_s)
        except (QueryTimeout, QueryTooLarge):
            return None
        if len(found) >= limit:
            return None
        rows = [row for (path,) in found for row in path]
        ends = self._meet([row[i] for row in rows for i in (2, 4)], [row[i] for row in rows for i in (3, 5)])
        head, tail = ends[0::2], ends[1::2]
        relation = self._number_relations([row[1] for row in rows])
        edge = self._number_edges([row[0] for row in rows], head, relation, tail, [row[6] for row in rows])
        width = len(found[0][0]) if found else 0
        return np.stack((head, relation, tail, edge), axis=1).reshape(len(found), width, 4)

    def reached(
        self, node: int, direction: Direction, relations: RelationArray, limit: int, timeout_s: float
    ) -> npt.NDArray[np.int64] | None:
        """Return the far ends of edges; found by servers that visit each node once."""
        labels = self._relation_keys(relations)
        if not (labels and len(labels) <= MAX_WRITTEN and all(map(writable, labels))):
            return None
        try:
            if not self._server.finds_reached(timeout_s):
                return None
            text = reached_nodes(direction, labels, limit + 1, self._reads.entity_of("b"))
            found = self._reads.ask(text, {"source": self._reads.element(EntityId(self._nodes.key(node)))}, timeout_s)
        except (QueryTimeout, QueryTooLarge):
            return None
        return None if len(found) > limit else self._meet([row[0] for row in found], [row[1] for row in found])

    # Names

    @property
    def names_key(self) -> str:
        """Return a key that differs between graphs with other ids or names."""
        return digest(*self._names.key())

    def named(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the numbers of the nodes that are called just so, for each text."""
        sought = [text for text in dict.fromkeys(texts) if encodable(text) == text]
        found: dict[str, list[int]] = {}
        for node in self._met_nodes(self._names.called(sought)):
            found.setdefault(node.name, []).append(int(self._nodes.add([node.id])[0]))
        return [sorted(dict.fromkeys(found.get(text, ()))) for text in texts]

    def _met_nodes(self, rows: Sequence[Sequence[Any]]) -> list[Node]:
        """Return the nodes in rows of the server's id, the key, labels, and properties; number them."""
        self._meet([row[0] for row in rows], [row[1] for row in rows])
        nodes = [ServerNode(row[0], tuple(sorted(row[2])), row[3]) for row in rows]
        self._names.count_labels(nodes)
        return [self._names.node(node) for node in nodes]

    def resembling(self, texts: Sequence[str], k: int) -> list[list[tuple[int, str]]] | None:
        """Return number and name of nodes that the server's full-text indexes find."""
        if not self._names.text_indexes():
            return None
        found: list[list[tuple[int, str]]] = []
        for text in texts:
            hits: dict[int, str] = {}
            for rows in self._names.similar(text, k):
                for node in self._met_nodes(rows):
                    hits[int(self._nodes.add([node.id])[0])] = node.name
            found.append(list(hits.items()))
        return found

    @property
    def vector_index(self) -> str | None:
        """Return the name of the vector index."""
        return self._names.vector_index

    def embedded(self, count: int) -> list[tuple[str, Sequence[float]]]:
        """Return name and vector of up to `count` nodes that have one."""
        rows = self._names.embedded(count)
        return [(node.name, row[4]) for node, row in zip(self._met_nodes(rows), rows, strict=True)]

    def nearest(self, vectors: npt.NDArray[np.floating], k: int) -> list[list[tuple[int, str, Sequence[float]]]]:
        """Return number, name and vector of the nodes whose vectors are nearest to each."""
        found: list[list[tuple[int, str, Sequence[float]]]] = [[] for _ in vectors]
        rows = self._names.nearest(vectors, k)
        for node, row in zip(self._met_nodes(rows), rows, strict=True):
            found[row[5]].append((int(self._nodes.add([node.id])[0]), node.name, row[4]))
        return found

    def named_pages(self) -> Iterator[list[tuple[EntityId, str]]]:
        """Yield ids with their names, in pages."""
        for page in self._counted_out(self.all_nodes(), ended=False):
            yield [(node.id, node.name) for node in page]

    # Values

    def distinct_values(self, type: str, property: str, most: int) -> tuple[list[tuple[Value, int]], bool]:
        """Return the most frequent values of a property with their numbers of nodes, and whether these are all."""
        return _counted(self._reads.frequent_values(type, property, most), most)

    def distinct_edge_values(self, relation: str, property: str, most: int) -> tuple[list[tuple[Value, int]], bool]:
        """Return the most frequent values of a relation's property, likewise with their numbers of edges."""
        return _counted(self._reads.frequent_values(relation, property, most, of_edges=True), most)

    def holders(self, type: str, property: str, value: Value, most: int) -> NodeArray:
        """Return the nodes of a type with a value of a property."""
        rows = self._reads.holders(type, property, value, most)
        return np.unique(self._meet([row[0] for row in rows], [row[1] for row in rows]))

    # Queries

    @property
    def language(self) -> Language:
        """Return the language of `run`."""
        return "cypher"

    def run(self, text: str, parameters: Mapping[str, Cell] | None = None, limits: QueryLimits | None = None) -> Rows:
        """Run one reading query; see `QueryStore.run`.

        The guard checks the text first, then the planner if it can be trusted, then the server runs it.
        """
        limits = limits or QueryLimits()
        checked = check_cypher(text, limits.max_rows + 1).text
        values = plain_parameters(parameters)
        deadline = time.monotonic() + limits.timeout_s

        def ask(left_s: float) -> Records:
            self._server.check_plan(checked, values, left_s)
            return self._server.ask(checked, values, max(deadline - time.monotonic(), 0.001), limits.max_rows)

        try:
            table = patiently(ask, limits.timeout_s, self._reads.met)
            self._reads.met = True
            self._cells.resolve(table.rows, max(deadline - time.monotonic(), 0.001))
            self._names.count_labels(each for each in records_in(table.rows) if isinstance(each, ServerNode))
        except QueryTimeout as error:
            raise QueryTimeout(limits.timeout_s) from error  # the last round trip had less
        rows = tuple(tuple(self._cells.cell(value) for value in row) for row in table.rows)
        return Rows(table.columns, rows, table.truncated)

    # Schema

    def _known_schema(self) -> Schema:
        self._await_schema()
        with self._schema_lock:
            if self._schema is None:
                catalogue, schema = patiently(lambda _: self._find_schema(), self._reads.timeout_s)
                self._relations.add(relation.name for relation in schema.relations)
                places = {name: place for place, name in enumerate(self._relations.keys())}
                ordered = sorted(schema.relations, key=lambda relation: places[relation.name])
                self._names.label_counts = dict(schema.node_types)
                self._sizes = catalogue.nodes, catalogue.edges
                self._schema = self._names.schema = replace(schema, relations=tuple(ordered))
            return self._schema

    def _cache_key(self) -> str:
        return digest(self.name)

    def _find_schema(self) -> tuple[Catalogue, Schema]:
        """Return what there is, and its schema: the one that was kept, if there is still the same."""
        catalogue = self._server.catalogue(self._reads.timeout_s)
        counts = catalogue.nodes, catalogue.edges, sorted(catalogue.labels), sorted(catalogue.relations)
        key, fingerprint = self._cache_key(), digest(*counts)
        kept = self._cache.find(key, fingerprint) if self._cache else None
        if kept is not None and kept.schema is not None:
            return catalogue, kept.schema
        schema = read_schema(self._server, self._reads.timeout_s, catalogue=catalogue, reading=self._reading)
        if self._cache is not None:
            self._cache.keep(key, self.name, fingerprint, CachedSchema(schema))
        return catalogue, schema

    # Numbers

    def _meet(self, elements: Sequence[str], values: Sequence[Any]) -> Int64:
        """Return the numbers of nodes; new ones are numbered in the order of their keys."""
        entities = self._reads.remember(elements, values)
        self._nodes.add(sorted({entity for entity in entities if entity not in self._nodes}, key=natural))
        return self._nodes.add(entities)

    def _number_relations(self, keys: Sequence[str]) -> Int64:
        """Return the numbers of relations; new ones are numbered in the order of their labels."""
        self._relations.add(sorted(set(keys)))
        return self._relations.add(keys)

    def _number_edges(
        self, elements: Sequence[str], head: Int64, relation: Int64, tail: Int64, properties: Sequence[Any]
    ) -> Int64:
        """Return the numbers of edges; new ones are numbered by head, relation, tail, and then as the server does."""
        fresh = {}
        rows = zip(elements, head.tolist(), relation.tolist(), tail.tolist(), properties, strict=True)
        for element, *ends, held in rows:
            if element not in self._edges:
                fresh[element] = ends
                if held:
                    self._edge_properties[element] = {key: plain_value(value) for key, value in sorted(held.items())}
        same = Counter(map(tuple, fresh.values()))
        self._edges.add(
            sorted(fresh, key=lambda key: (fresh[key], natural(key) if same[tuple(fresh[key])] > 1 else ()))
        )
        return self._edges.add(elements)


def _counted(rows: Sequence[Sequence[Any]], most: int) -> tuple[list[tuple[Value, int]], bool]:
    """Return values with their numbers, equal ones together; True if there were fewer than `most` to read."""
    found: Counter[Value] = Counter()
    for value, number in rows:
        found[plain_value(value)] += number
    return list(found.items()), len(rows) < most
