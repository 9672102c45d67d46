"""A graph behind a server with openCypher: the common part of Neo4j and Neptune.

A `CypherServer` sends query text and converts results into plain values. Everything else is here: the texts of
queries, the numbering of nodes and edges, keys and names of nodes, and the conversion of results into cells.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from byokg.arrays import Int64
from byokg.errors import (
    EntityNotFound,
    GraphError,
    QueryTimeout,
    QueryTooLarge,
)
from byokg.graph.columnar.ids import Numbering
from byokg.graph.guard.guard import check_cypher
from byokg.graph.read_cache import CachedSchema, around, digest
from byokg.graph.servers.base import patiently
from byokg.graph.servers.cypher_names import CypherNames, guess_name_property, natural, plain_value
from byokg.graph.servers.cypher_schema import (
    Catalogue,
    CypherServer,
    Records,
    ServerEdge,
    ServerNode,
    ServerPath,
    edge_pattern,
    plain_parameters,
    read_schema,
    records_in,
    union_all,
)
from byokg.graph.store import (
    Direction,
    EdgeBatch,
    NodeArray,
    QueryLimits,
    RelationArray,
    Rows,
    Schema,
)
from byokg.text.names import encodable
from byokg.types import NO_PROPERTIES, Cell, EdgeCell, EntityId, Language, Node, NodeCell, PathCell, Properties

_TOGETHER = 10_000
"""Node ids sent in one round trip."""

_SAMPLED_ROWS = 20_000
"""Rows of one round trip when edges are sampled."""

_LISTED = 2_000_000
"""Edges that a server may look at to sample all relations at once."""

_SPREAD = 20
"""How many times as many edges as wanted are looked at, so that a sample is spread over them."""


class CypherStore(CypherNames):
    """Implements `GraphStore` and `QueryStore` on a `CypherServer`. Threads may share it.

    Numbers of nodes and edges are given out in the order of first use, and are valid within this object only. They
    never
    change: `refresh` forgets the schema, nodes and their edges, a new store forgets everything.
    """

    def __init__(
        self,
        server: CypherServer,
        id_property: str | None = None,
        name_property: str | None = None,
        timeout_s: float = 60.0,
        vector_index: str | None = None,
    ) -> None:
        """See `CypherNames`."""
        super().__init__(server, id_property, name_property, timeout_s, vector_index)
        self._edges: Numbering[str] = Numbering()
        self._edge_properties: dict[str, Properties] = {}
        self._together = _TOGETHER
        self._sizes = (0, 0)

    def _let_go(self) -> None:
        self._server.close()

    @property
    def identity(self) -> str:
        """Return the function that gives the server's own id of a node, in queries."""
        return self._server.identity

    def elements(self, ids: Collection[EntityId]) -> list[str]:
        """Return the server's own id of each node. Raises `EntityNotFound`."""
        self.numbers(ids)
        return [self._element(id) for id in ids]

    def name_property(self, label: str) -> str | None:
        """Return the property that most likely holds the names of nodes with a label."""
        names = self._known_schema().node_properties.get(label, ())
        return self._name_property or guess_name_property(names)

    # What GraphStore asks

    @property
    def met_relations(self) -> Sequence[str]:
        return self._relations.keys()

    def _list_relations(self) -> None:
        """Number all relation types: those that the server lists, if the schema has not been read."""
        if self._schema is None:
            names = patiently(lambda left_s: self._server.relations(left_s), self._timeout_s, self._met)
            self._relations.add(sorted(names))

    def schema(self) -> Schema:
        """Return labels and relation types with counts, read once; see `cypher_schema` and `refresh`.

        The property that identifies nodes is left out. A node with several labels counts for each of them.
        """
        schema, left_out = self._known_schema(), {self.id_property, *self._left_out()}
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
        for page in self._counted_out(self._server.node_pages(self._identity_of("n"), self._timeout_s)):
            self._meet([element for element, _ in page], [value for _, value in page])
            # In number order whoever else is numbering nodes at the same time.
            for entity in self._nodes.keys(given):
                yield EntityId(entity)
                given += 1
        yield from map(EntityId, self._nodes.keys(given))

    def all_edges(self) -> Iterator[EdgeBatch]:
        """Yield every edge once, in pages."""
        head, tail = self._identity_of("a"), self._identity_of("b")
        columns = (*head, f"{self._server.identity}(r)", "type(r)", *tail, "properties(r)")
        for page in self._server.edge_pages(columns, self._timeout_s):
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
        for start in range(0, len(unknown), _TOGETHER):
            self._look_up(unknown[start : start + _TOGETHER])
        for entity in unknown:
            if entity not in self._nodes:
                raise EntityNotFound(entity, self.name)
        return self._nodes.add(asked)

    def _read_nodes(self, ids: Sequence[EntityId]) -> list[Node]:
        """Ask for names, types and properties. Raises `EntityNotFound`."""
        self.numbers(ids)
        found: dict[EntityId, Node] = {}
        elements = [self._element(entity) for entity in ids]
        text = f"{self._server.anchor} RETURN n"
        rows = self._in_parts(elements, lambda part: self._ask(text, {"ids": part}))
        self._count_labels(stored for (stored,) in rows)
        for (stored,) in rows:
            node = self._node(stored)
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
        elements = [self._element(EntityId(self._nodes.key(number))) for number in numbers]
        rows: Sequence[Sequence[Any]] = []
        if numbers and labels != []:
            rows = self._in_parts(elements, lambda part: self._hop_rows(part, labels, inverses))
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
        key_of = {self._element(EntityId(key)): key for key in keys}
        elements = list(key_of)
        text = union_all(self._hop_counts(inverse) for inverse in (False, True))
        counted: list[tuple[str, str, bool, int]] = []
        for start in range(0, len(elements), _TOGETHER):
            rows = self._ask(text, {"ids": elements[start : start + _TOGETHER]})
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
            return self._as_batch(self._ask(self._spread_edges(), {"wanted": per_relation}))
        together = max(1, _SAMPLED_ROWS // max(looked_at, 1))
        found: dict[str, list[Sequence[Any]]] = {relation: [] for relation in relations}
        for start in range(0, len(relations), together):
            group = relations[start : start + together]
            text = union_all(self._some_edges(relation, number, looked_at) for number, relation in enumerate(group))
            for row in self._ask(text, {f"list{number}": [relation] for number, relation in enumerate(group)}):
                found[row[3]].append(row)
        rows: list[Sequence[Any]] = []
        for relation in relations:
            some = sorted(found[relation], key=lambda row: natural(row[2]))
            taken = min(per_relation, len(some))
            rows.extend(some[rank * len(some) // taken] for rank in range(taken))
        return self._as_batch(rows)

    # What QueryStore asks

    @property
    def language(self) -> Language:
        """Return the language of `run`."""
        return "cypher"

    @property
    def notes(self) -> str:
        """Return nothing: a server's names stand in its schema as queries write them."""
        return ""

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
            table = patiently(ask, limits.timeout_s, self._met)
            self._met = True
            self._resolve(table.rows, max(deadline - time.monotonic(), 0.001))
            self._count_labels(each for each in records_in(table.rows) if isinstance(each, ServerNode))
        except QueryTimeout as error:
            raise QueryTimeout(limits.timeout_s) from error  # the last round trip had less
        rows = tuple(tuple(self._cell(value) for value in row) for row in table.rows)
        return Rows(table.columns, rows, table.truncated)

    # Schema

    def _known_schema(self) -> Schema:
        self._await_schema()
        with self._schema_lock:
            if self._schema is None:
                catalogue, schema = patiently(lambda _: self._find_schema(), self._timeout_s)
                self._relations.add(relation.name for relation in schema.relations)
                places = {name: place for place, name in enumerate(self._relations.keys())}
                ordered = sorted(schema.relations, key=lambda relation: places[relation.name])
                self._label_counts = dict(schema.node_types)
                self._sizes = catalogue.nodes, catalogue.edges
                self._schema = replace(schema, relations=tuple(ordered))
            return self._schema

    def _cache_key(self) -> str:
        return digest(self.name)

    def _find_schema(self) -> tuple[Catalogue, Schema]:
        """Return what there is, and its schema: the one that was kept, if there is still the same."""
        catalogue = self._server.catalogue(self._timeout_s)
        counts = catalogue.nodes, catalogue.edges, sorted(catalogue.labels), sorted(catalogue.relations)
        key, fingerprint = self._cache_key(), digest(*counts)
        kept = self._cache.find(key, fingerprint) if self._cache else None
        if kept is not None and kept.schema is not None:
            return catalogue, kept.schema
        schema = read_schema(self._server, self._timeout_s, catalogue=catalogue, reading=self._reading)
        if self._cache is not None:
            self._cache.keep(key, self.name, fingerprint, CachedSchema(schema))
        return catalogue, schema

    # Query texts

    def _hop_rows(
        self, elements: Sequence[str], labels: Sequence[str] | None, inverses: Sequence[bool]
    ) -> Sequence[Sequence[Any]]:
        """Fetch the edges of some nodes: origin, inverse, relation, edge, other end, its key, properties.

        Servers send lists more than twice as fast as rows, but have to hold a list before they send it.
        """
        parameters = {"ids": elements, "types": labels or []}
        try:
            grouped = self._ask(union_all(self._hop(labels, inverse, True) for inverse in inverses), parameters)
        except QueryTooLarge:
            return self._ask(union_all(self._hop(labels, inverse, False) for inverse in inverses), parameters)
        return [
            (origin, inverse, relation, *edge)
            for inverse, groups in grouped
            for origin, relation, edges in groups
            for edge in edges
        ]

    def _hop(self, labels: Sequence[str] | None, inverse: bool, grouped: bool) -> str:
        """Write the query for the edges out of (or into) `n`."""
        identity = self._server.identity
        columns = {
            "edge": f"{identity}(r)",
            "other": f"{identity}(m)",
            "entity": self._entity("m"),
            "properties": "properties(r)",
        }
        matched = f"{self._server.anchor} MATCH {edge_pattern('n', 'm', labels, 'types', inverse)}"
        way = f"{'true' if inverse else 'false'} AS inverse"
        if grouped:
            edges = f"collect([{', '.join(columns.values())}]) AS edges"
            return (
                f"{matched} WITH {identity}(n) AS origin, type(r) AS relation, {edges} "
                f"RETURN {way}, collect([origin, relation, edges]) AS groups"
            )
        returned = ", ".join(f"{value} AS {name}" for name, value in columns.items())
        return f"{matched} RETURN {identity}(n) AS origin, {way}, type(r) AS relation, {returned}"

    def _hop_counts(self, inverse: bool) -> str:
        """Write the query that counts the edges out of (or into) `n` by relation."""
        return (
            f"{self._server.anchor} MATCH {edge_pattern('n', 'm', None, 'types', inverse)} RETURN "
            f"{self._server.identity}(n) AS origin, {'true' if inverse else 'false'} AS inverse, "
            "type(r) AS relation, count(r) AS edges"
        )

    def _spread_edges(self) -> str:
        """Write the query for some edges of each relation, by one look at all edges."""
        identity, head, tail = self._server.identity, "startNode(r)", "endNode(r)"
        return (
            "MATCH ()-[r]->() WITH type(r) AS relation, collect(r) AS l "
            "WITH relation, l, CASE WHEN size(l) < $wanted THEN size(l) ELSE $wanted END AS taken "
            "UNWIND range(0, taken - 1) AS k WITH relation, l[k * size(l) / taken] AS r "
            f"RETURN {identity}({head}), {self._entity(head)}, {identity}(r), relation, {identity}({tail}), "
            f"{self._entity(tail)}, properties(r)"
        )

    def _some_edges(self, relation: str, number: int, count: int) -> str:
        """Write the query for some edges of one relation."""
        identity = self._server.identity
        return (
            f"MATCH {edge_pattern('a', 'b', [relation], f'list{number}')} WITH a, r, b LIMIT {count} RETURN "
            f"{identity}(a) AS head, {self._entity('a')} AS head_entity, {identity}(r) AS edge, "
            f"type(r) AS relation, {identity}(b) AS tail, {self._entity('b')} AS tail_entity, "
            "properties(r) AS properties"
        )

    def _in_parts(
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
                if len(part) == 1 or error.timeout_s >= self._timeout_s:
                    raise  # it took all of our own time
                self._together = max(1, len(part) // 4)
                continue
            start += len(part)
        return found

    # Identity

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

    # Cells

    def _resolve(self, rows: Sequence[Sequence[Any]], timeout_s: float) -> None:
        """Look up the keys of edge ends that were returned without them."""
        if self.id_property is None:
            return
        wanted: dict[str, None] = {}
        for record in records_in(rows):
            if isinstance(record, ServerNode):
                self._remember([record.element], [record.properties.get(self.id_property)])
            else:
                wanted |= {record.start: None, record.end: None}
        missing = [element for element in wanted if element not in self._entities]
        text = f"{self._server.anchor} RETURN {self._identified('n')}"
        for start in range(0, len(missing), _TOGETHER):
            found = self._ask(text, {"ids": missing[start : start + _TOGETHER]}, timeout_s)
            self._remember([row[0] for row in found], [row[1] for row in found])

    def _cell(self, value: Any) -> Cell:
        if isinstance(value, ServerNode):
            return self._node_cell(value)
        if isinstance(value, ServerEdge):
            return self._edge(value)
        if isinstance(value, ServerPath):
            return PathCell(tuple(map(self._node_cell, value.nodes)), tuple(map(self._edge, value.edges)))
        if isinstance(value, list | tuple):
            return tuple(self._cell(item) for item in value)
        if isinstance(value, Mapping):
            return {str(key): self._cell(item) for key, item in value.items()}
        return cast(Cell, value)

    def _node_cell(self, value: ServerNode) -> NodeCell:
        node = self._node(value)
        return NodeCell(node.id, node.name, node.type, node.properties, node.further_types)

    def _edge(self, edge: ServerEdge) -> EdgeCell:
        head, tail = (self._entities.get(end, EntityId(end)) for end in (edge.start, edge.end))
        properties = {key: plain_value(value) for key, value in sorted(edge.properties.items())}
        return EdgeCell(head, edge.type, tail, properties or NO_PROPERTIES)
