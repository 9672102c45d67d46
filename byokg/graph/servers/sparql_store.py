"""What every RDF store has in common: the two protocols, answered by SPARQL."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from byokg.errors import EntityNotFound, GraphError, QueryFailed
from byokg.graph.columnar.ids import Numbering
from byokg.graph.guard.guard import check_sparql
from byokg.graph.guard.sparql import Sent, addressable, complete
from byokg.graph.rdf.terms import (
    EDGE,
    GENERIC_TYPES,
    RDF_TYPE,
    RDFS_LABEL,
    TERM,
    Prefixes,
    fallback_name,
    listed,
    local_name,
    node_id,
    node_iri,
    preferred,
)
from byokg.graph.read_cache import around
from byokg.graph.servers import sparql_text as sparql
from byokg.graph.servers.base import NumberingStore
from byokg.graph.servers.sparql_text import Binding, SparqlResult, Term, best_name, best_type, parts_of, read_literal
from byokg.graph.store import (
    ALL_VALUES,
    Direction,
    EdgeBatch,
    NodeArray,
    PropertySchema,
    QueryLimits,
    RelationArray,
    RelationSchema,
    Rows,
    Schema,
)
from byokg.text import encodable
from byokg.types import NO_PROPERTIES, Cell, EntityId, Language, Node, NodeCell, Properties, Value

Key = TypeVar("Key")

_TYPES_SPELLED = 40
"""Types of which the notes for query writers tell the IRI."""

SAMPLE = 100_000
"""Triples that the schema is read from when reading all takes too long."""

_BATCH = 1000
"""Nodes asked about in one request."""
_WINDOWS = 50
"""Places of relations sampled in one request."""
_STATEMENTS = 100_000
"""Edges whose properties are remembered."""
_SHORT = 40
"""Characters of a value that may be an example."""
_NODE_PAGE = 100_000
"""Nodes listed in one request where not all come at once."""


class SparqlStore(NumberingStore):
    """An RDF graph behind SPARQL 1.1; implements `GraphStore` and `QueryStore`.

    Nodes are the IRIs that stand at an end of an edge or have a property or type; `sparql_text` says what an edge is.
    A node's id is its IRI (see `iris` for graphs that are no RDF). Its name is the English or untagged `rdfs:label`,
    else `skos:prefLabel` or `schema:name`, else the last part of the IRI. Its type is the local name of its class: the
    first by IRI where it has several, leaving out `owl:Thing` and its like. Relations and properties are labelled
    `dbo:birthPlace`; `prefixes` undoes that, and may be used undeclared in queries.

    A property with several values holds the preferred one (English, untagged, others; then in text order), and all of
    them stand under the same key with `[]` after it, as Turtle writes them.

    Blank nodes are left out, since they cannot be asked about: their labels hold within one answer only.

    Numbers are given out as nodes, relations and edges are met, so they depend on what was asked before.
    """

    def __init__(self, name: str, prefixes: Prefixes, languages: Collection[str] | None, timeout_s: float) -> None:
        """Set up an empty numbering.

        Args:
            name: which graph this is, for messages.
            prefixes: how to write labels.
            languages: tags of the texts to read, beside untagged ones; None reads all.
            timeout_s: how long each request of the traversal may take.
        """
        super().__init__(name, timeout_s)
        self._prefixes = prefixes
        self._languages = languages
        self._edges: Numbering[tuple[int, int, int, str]] = Numbering()
        self._labels: list[str] = []
        self._labelling = threading.RLock()
        self._reified: bool | None = None
        self._repeats = False
        self._classes: Sequence[str] | None = None
        self._statements: dict[str, Properties] = {}

    # How a store is asked

    @abstractmethod
    def _select(
        self, variables: str, where: str, timeout_s: float, page: tuple[int, int | None] | None = None
    ) -> tuple[Sequence[Binding], bool]:
        """Run a query of ours and return its rows, and whether they are all there are.

        `page` asks for so many rows from some offset on, in order, or with the offset None for any of them.
        """

    @abstractmethod
    def _query(self, query: Sent, limits: QueryLimits) -> SparqlResult:
        """Run a checked query of a user and return up to one row more than allowed."""

    # GraphStore

    @property
    def prefixes(self) -> Prefixes:
        """Return how IRIs and labels turn into each other."""
        return self._prefixes

    @property
    def relations(self) -> Sequence[str]:
        """Return relation labels; a relation number is a position in this list, which may grow at its end."""
        if self._schema is None:
            self.schema()
        return tuple(self._labels)

    @property
    def relation_iris(self) -> Sequence[str]:
        """Return the IRI behind each of `relations`."""
        return self._relations.keys()[: len(self.relations)]

    def schema(self) -> Schema:
        """Return node types and relations with counts; asked once, then remembered until `refresh`."""
        if self._schema is None:
            self._schema = self._read_schema(None)
        return self._schema

    def refresh(self) -> None:
        """Forget the schema and edges, so that they are read anew when asked for next. Numbers stay as they are."""
        super().refresh()
        self._reified = None
        self._classes = None
        self._statements = {}

    @property
    def node_count(self) -> int | None:
        """Count the nodes; None where the store cannot count them."""
        try:
            where = f"{{ SELECT (COUNT(?n) AS ?count) WHERE {{ {sparql.every_node(self._has_statements())} }} }}"
            rows, _ = self._select("?count", where, self._timeout_s)
        except QueryFailed:
            return None
        return int(rows[0]["count"]["value"])

    @property
    def edge_count(self) -> int | None:
        """Return how many edges there are; None where the schema is that of a sample."""
        schema = self.schema()
        return None if schema.sampled else sum(relation.count for relation in schema.relations)

    @property
    def class_iris(self) -> Sequence[str]:
        """Return the IRIs of the classes that the schema counts; asked for where the schema was not read here."""
        self.schema()
        if self._classes is None:
            self._classes = self._class_iris(self._gather("?t ?count", lambda _: sparql.type_counts(None), [""]))
        return self._classes

    @staticmethod
    def _class_iris(rows: Iterable[Binding]) -> Sequence[str]:
        return tuple(sorted({row["t"]["value"] for row in rows}))

    def entities(self) -> Iterator[EntityId]:
        """Yield each entity once, heads and tails alike, in node-number order."""
        known = len(self._nodes)
        yield from map(node_id, self._nodes.keys()[:known])
        for iris in self._every_node():
            numbers = self._nodes.add(iris)
            yield from (node_id(iri) for iri, number in zip(iris, numbers.tolist(), strict=True) if number >= known)

    def numbers(self, ids: Collection[EntityId]) -> NodeArray:
        """Return the node number of each id: (N,) int64. Raises `EntityNotFound` for an unknown one."""
        iris = [self._iri(entity) for entity in ids]
        unseen = [iri for iri in dict.fromkeys(iris) if iri not in self._nodes]
        if unseen:
            reified = self._has_statements()
            found = {
                row["n"]["value"] for row in self._gather("?n", lambda batch: sparql.existing(batch, reified), unseen)
            }
            for entity, iri in zip(ids, iris, strict=True):
                if iri not in self._nodes and iri not in found:
                    raise EntityNotFound(entity, self._name)
        return self._nodes.add(iris)

    def ids(self, nodes: NodeArray) -> list[EntityId]:
        """Return the id of each node number. Raises `EntityNotFound` for a number that was not given out."""
        return [node_id(self._nodes.key(number)) for number in self._check_nodes(nodes).tolist()]

    def nodes(self, ids: Collection[EntityId]) -> list[Node]:
        """Return name, type and properties, in the order asked. Raises `EntityNotFound`."""
        asked = list(ids)
        self.numbers(asked)
        iris = [self._iri(entity) for entity in asked]
        rows = self._gather(
            "?n ?k ?v", lambda batch: sparql.described(batch, self._languages), list(dict.fromkeys(iris))
        )
        described = self._describe(rows)
        return [
            Node(entity, *described.get(iri, (fallback_name(iri), "", NO_PROPERTIES)))
            for entity, iri in zip(asked, iris, strict=True)
        ]

    def _fetch_edges(self, nodes: NodeArray, direction: Direction, relations: RelationArray | None) -> EdgeBatch:
        """Ask for edges."""
        asked = np.asarray(nodes, np.int64)
        wanted = None if relations is None else self._relation_keys(relations)
        iris = [self._nodes.key(number) for number in np.unique(asked).tolist()]
        reified = self._has_statements()
        rows: Sequence[Binding] = []
        if iris and wanted != []:
            rows = self._gather(
                "?s ?p ?o ?e" if reified else "?s ?p ?o",
                lambda batch: sparql.edges(batch, direction, wanted, reified),
                [iri for iri in iris if addressable(iri)],
            )
        head, relation, tail, edge = self._numbered(rows)
        return around(asked, direction, head, relation, tail, edge, self._space)

    def _count_edges(self, keys: Sequence[str]) -> Sequence[tuple[str, str, bool, int]]:
        """Ask for the number of edges by node, relation, and whether they come in."""
        reified = self._has_statements()
        rows = self._gather(
            "?n ?p ?way ?edges",
            lambda batch: sparql.touching_counts(batch, reified),
            [iri for iri in keys if addressable(iri)],
        )
        return [
            (row["n"]["value"], row["p"]["value"], row["way"]["value"] == "in", int(row["edges"]["value"]))
            for row in rows
            if "n" in row  # some stores give one row of nothing for a group of nothing
        ]

    def edge_properties(self, edges: npt.NDArray[np.int64]) -> list[Properties]:
        """Return the properties of each edge number, in the order asked. Raises `GraphError` for an unknown one."""
        try:
            statements = [self._edges.key(number)[3] for number in np.asarray(edges).tolist()]
        except IndexError as error:
            raise GraphError(f"{self._name} gave out no edge number {error}") from error
        unknown = [iri for iri in dict.fromkeys(statements) if iri and iri not in self._statements]
        found = self._collect(self._gather("?n ?k ?v", sparql.statements, unknown)) if unknown else {}
        known = {iri: self._statements[iri] for iri in statements if iri in self._statements}
        known |= {iri: self._properties(found[iri]) if iri in found else NO_PROPERTIES for iri in unknown}
        if len(self._statements) > _STATEMENTS:
            self._statements = {}
        self._statements |= known
        return [known.get(iri, NO_PROPERTIES) for iri in statements]

    def sample_edges(self, per_relation: int) -> EdgeBatch:
        """Return up to `per_relation` edges of each relation, by relation, from four places spread over its edges."""
        schema, rows = self.schema(), list[Binding]()
        if per_relation > 0:
            windows = []
            for relation in schema.relations:
                iri = self._relations.key(self._labels.index(relation.name))
                windows += [(iri, *window) for window in _windows(relation.count, per_relation)]
            rows = self._gather("?s ?p ?o", sparql.some_edges, windows, batch_size=_WINDOWS)
        head, relation_numbers, tail, edge = self._numbered(rows)
        order = np.lexsort((edge, relation_numbers))
        rank = np.arange(len(order)) - np.searchsorted(relation_numbers[order], relation_numbers[order])
        return self._sampled(head, relation_numbers, tail, edge, order[rank < per_relation])

    # QueryStore

    @property
    def language(self) -> Language:
        """Say which language `run` takes."""
        return "sparql"

    @property
    def notes(self) -> str:
        """Say how the schema's names are written in queries: relations and types by prefix, nodes by IRI."""
        lines = ["In SPARQL, rdfs:label is a node's name. Prefixes need not be declared."]
        if any(iri.startswith(TERM) for iri in (*self.relation_iris, *self.class_iris)):
            example = next((label for label in self.relations if not label.isidentifier()), "is a")
            lines.append(
                "A relation, property or type NAME without a prefix is kg:NAME, percent-encoded "
                f"({example} is {self._prefixes.spelled(self._prefixes.expand(example))}); the node with the id ID is "
                "node:ID, an id that is an IRI is <IRI>."
            )
        spelled = [f"{local_name(iri)} is {self._prefixes.spelled(iri)}" for iri in self._classes_by_prefix()]
        if spelled:
            lines.append(f"Types: {'; '.join(spelled)}.")
        return "\n".join(lines) + "\n"

    def _classes_by_prefix(self) -> list[str]:
        """Return the classes of which the schema shows less than a query has to write, most nodes first."""
        counts = self.schema().node_types
        named = [iri for iri in self.class_iris if not iri.startswith(TERM) and iri not in GENERIC_TYPES]
        return sorted(named, key=lambda iri: (-counts.get(local_name(iri), 0), iri))[:_TYPES_SPELLED]

    def run(self, text: str, parameters: Mapping[str, Cell] | None = None, limits: QueryLimits | None = None) -> Rows:
        """Run one SELECT query, or an ASK query, which gives one row.

        Args:
            text: SPARQL 1.1; `prefixes` need not be declared.
            parameters: values for variables, named without `?`. A parameter cannot be selected.
            limits: time and rows.

        Returns:
            Nodes as `NodeCell`, relations and classes as their labels, literals as values; dates and texts in any
            language as `str`; unbound variables as None.

        Raises:
            QueryRefused: the text is not one reading query, or calls another service.
            QueryInvalid: the engine does not understand it.
            QueryTimeout: it took longer than the limits allow.
            QueryTooLarge: it needed more memory than allowed, or its answer is too big.
            StoreUnavailable: the store could not be reached.
        """
        limits = limits or QueryLimits()
        checked = check_sparql(text, limits.max_rows + 1)
        until = time.monotonic() + limits.timeout_s
        query = complete(checked.text, parameters or {}, self._prefixes)
        table = self._query(query, limits)
        if table.truth is not None:
            return Rows(("answer",), ((table.truth,),)) if limits.max_rows > 0 else Rows(("answer",), (), True)
        bindings = table.bindings[: limits.max_rows]
        cells = self._cells(bindings, max(until - time.monotonic(), 0.1))
        rows = tuple(tuple(cells(row[name]) if name in row else None for name in table.variables) for row in bindings)
        return Rows(table.variables, rows, table.cut or len(table.bindings) > limits.max_rows)

    # Asking, in batches

    def _gather(
        self,
        variables: str,
        where: Callable[[Sequence[Key]], str],
        keys: Sequence[Key],
        timeout_s: float | None = None,
        batch_size: int = _BATCH,
    ) -> list[Binding]:
        """Return all rows for all keys, whatever the store cuts off: keys are halved, and one key's rows paged."""
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        found: list[Binding] = []
        waiting = [keys[start : start + batch_size] for start in range(0, len(keys), batch_size)][::-1]
        while waiting:
            batch = waiting.pop()
            rows, complete = self._select(variables, where(batch), timeout_s)
            if complete:
                found += rows
            elif len(batch) > 1:
                middle = len(batch) // 2
                waiting += [batch[middle:], batch[:middle]]
            else:
                found += self._paged(variables, where(batch), max(len(rows), 1), timeout_s)
        return found

    def _paged(self, variables: str, where: str, page: int, timeout_s: float) -> Iterator[Binding]:
        """Yield the rows page by page until one is empty: a short page may be one that was cut."""
        offset = 0
        while rows := self._select(variables, where, timeout_s, (page, offset))[0]:
            yield from rows
            offset += len(rows)

    def _every_node(self) -> Iterator[list[str]]:
        """Yield the IRIs of all nodes in text order, in as few lists as the store allows."""
        reified = self._has_statements()
        rows, complete = self._select("?n", sparql.every_node(reified), self._timeout_s)
        if complete:
            iris = _values(rows, "n")
            yield sorted(iri for iri in iris if not iri.startswith(EDGE))
            return
        last = ""
        # Each page starts after the last IRI of the one before, so it does not matter how many the store cuts off.
        while iris := _values(
            self._select("?n", sparql.every_node(reified, last), self._timeout_s, (_NODE_PAGE, 0))[0], "n"
        ):
            yield [iri for iri in iris if not iri.startswith(EDGE)]
            last = max(iris)

    def _has_statements(self) -> bool:
        if self._reified is None:
            rows, _ = self._select("?e", sparql.any_statement(), self._timeout_s, (1, None))
            self._reified = bool(rows)
        return self._reified

    # Numbers

    def _iri(self, entity: str) -> str:
        if encodable(entity) != entity:
            raise EntityNotFound(entity, self._name)  # which no IRI can hold
        return entity if entity in self._nodes else node_iri(entity)

    def _number_relations(self, keys: Iterable[str]) -> npt.NDArray[np.int64]:
        """Number relations, and give a label to each new one: its IRI where another one has its label already."""
        numbers = self._relations.add(keys)
        with self._labelling:
            for iri in self._relations.keys(len(self._labels)):
                label = self._label(iri)
                self._labels.append(iri if label in self._labels else label)
        return numbers

    def _label(self, iri: str) -> str:
        """Return the label of a relation or property; a namespace that is met for the first time gets a prefix."""
        label = self._prefixes.label(iri)
        if label == iri:
            with self._labelling:
                self._prefixes = self._prefixes.covering([iri])
                label = self._prefixes.label(iri)
        return label

    def _numbered(self, rows: Iterable[Binding]) -> tuple[npt.NDArray[np.int64], ...]:
        """Turn rows of ?s ?p ?o ?e into numbers of heads, relations, tails and edges, one of each for each edge."""
        triples: set[tuple[str, str, str]] = set()
        statements: dict[tuple[str, str, str], set[str]] = {}
        for row in rows:
            triple = (row["s"]["value"], row["p"]["value"], row["o"]["value"])
            if "e" in row:
                statements.setdefault(triple, set()).add(row["e"]["value"])
            else:
                triples.add(triple)
        lost = {iri for iri in {iri for triple in triples for iri in triple} if not addressable(iri)}
        # Rows come in an order of the store's own; sorted, equal requests get equal numbers.
        found: list[tuple[str, str, str, str]] = []
        for triple in sorted(triples):
            if triple in statements:
                found += [(*triple, iri) for iri in sorted(statements[triple], key=lambda iri: (len(iri), iri))]
            elif not lost or lost.isdisjoint(triple):
                found.append((*triple, ""))
        head = self._nodes.add(row[0] for row in found)
        relation = self._number_relations(row[1] for row in found)
        tail = self._nodes.add(row[2] for row in found)
        keys = zip(head.tolist(), relation.tolist(), tail.tolist(), (row[3] for row in found), strict=True)
        return head, relation, tail, self._edges.add(keys)

    # Names, types, properties

    @staticmethod
    def _collect(rows: Iterable[Binding]) -> dict[str, dict[str, list[Term]]]:
        """Group rows of ?n ?k ?v by node and predicate, in text order and without repetitions."""
        found: dict[str, dict[str, dict[tuple[str, ...], Term]]] = {}
        for row in rows:
            value = row["v"]
            mark = (value["value"], value.get("datatype", ""), value.get("xml:lang", ""), value["type"])
            found.setdefault(row["n"]["value"], {}).setdefault(row["k"]["value"], {})[mark] = value
        return {
            node: {key: [values[mark] for mark in sorted(values)] for key, values in sorted(keys.items())}
            for node, keys in found.items()
        }

    def _describe(self, rows: Iterable[Binding]) -> dict[str, tuple[str, str, Properties]]:
        """Return name, type and properties of each node in rows of ?n ?k ?v."""
        described = {}
        for iri, values in self._collect(rows).items():
            classes = [term["value"] for term in values.pop(RDF_TYPE, ())]
            named = best_name(values)
            properties = self._properties(values)
            if named is not None and properties.get(label := self._label(named[0])) == named[1].text:
                properties = {key: value for key, value in properties.items() if key != label}
            name = fallback_name(iri) if named is None else named[1].text
            described[iri] = (name, best_type(classes), properties or NO_PROPERTIES)
        return described

    def _properties(self, values: Mapping[str, Sequence[Term]]) -> Properties:
        properties: dict[str, Value] = {}
        for key, terms in values.items():
            label = self._label(key)
            literals = [read_literal(term) for term in terms]
            properties[label] = preferred(literals).value
            if len(literals) > 1:
                properties[label + ALL_VALUES] = listed(literals)
        return properties

    def _cells(self, bindings: Sequence[Binding], timeout_s: float) -> Callable[[Term], Cell]:
        """Return what turns the terms of some rows into cells, once the names behind their IRIs have been asked."""
        iris = {term["value"]: None for row in bindings for term in parts_of(row.values()) if term["type"] == "uri"}
        asked = [iri for iri in iris if addressable(iri) and not iri.startswith((TERM, EDGE))]
        rows = self._gather("?n ?k ?v", lambda batch: sparql.met(batch, self._languages), asked, timeout_s)
        texts = {row["n"]["value"] for row in rows if "k" not in row}
        nodes = self._describe(row for row in rows if "k" in row)

        def cell(term: Term) -> Cell:
            if term["type"] == "triple":
                parts = term["value"]
                return [cell(parts[name]) for name in ("subject", "predicate", "object")]
            if term["type"] == "bnode":
                return f"_:{term['value']}"
            if term["type"] != "uri":
                return read_literal(term).value
            iri = term["value"]
            if iri in texts or iri.startswith((TERM, EDGE)):
                return self._prefixes.label(iri)
            return NodeCell(node_id(iri), *nodes.get(iri, (fallback_name(iri), "", NO_PROPERTIES)))

        return cell

    # Schema

    def _read_schema(self, sample: int | None) -> Schema:
        """Count types and relations, over all triples or the first `sample` of them."""

        def ask(variables: str, where: str) -> list[Binding]:
            return self._gather(variables, lambda _: where, [""])

        reified = self._has_statements()
        counts = Counter[str]()
        for row in ask("?p ?count", sparql.relation_counts(sample, reified, self._repeats)):
            counts[row["p"]["value"]] += int(row["count"]["value"])
        if reified:
            for row in ask("?p ?count", sparql.parallel_counts()):
                if row["p"]["value"] in counts:
                    counts[row["p"]["value"]] += int(float(row["count"]["value"]))
        domains: dict[str, Counter[str]] = {}
        ranges: dict[str, Counter[str]] = {}
        for row in ask("?p ?from ?to ?count", sparql.relation_types(sample, reified, self._repeats)):
            for ends, end in ((domains, "from"), (ranges, "to")):
                kind = local_name(row[end]["value"]) if end in row else ""
                ends.setdefault(row["p"]["value"], Counter())[kind] += int(row["count"]["value"])
        edge_details: dict[str, list[PropertySchema]] = {}
        if reified:
            for row in ask("?p ?k ?least ?most", sparql.edge_properties()):
                edge_details.setdefault(row["p"]["value"], []).append(self._detail(row))
        types = Counter[str]()
        classes = ask("?t ?count", sparql.type_counts(sample))
        for row in classes:
            types[local_name(row["t"]["value"])] += int(row["count"]["value"])
        if sample is None:
            for row in ask("?count", sparql.untyped_count(reified)):
                types[""] += int(row["count"]["value"])
        types = +types
        node_details: dict[str, list[PropertySchema]] = {}
        for row in ask("?t ?k ?least ?most", sparql.node_properties(sample, reified)):
            if row["k"]["value"] != RDFS_LABEL:
                kind = local_name(row["t"]["value"]) if "t" in row else ""
                node_details.setdefault(kind, []).append(self._detail(row))
        details = {kind: _each_once(found) for kind, found in sorted(node_details.items())}
        self._number_relations(sorted(counts))
        self._classes = self._class_iris(classes)
        relations = []
        for iri, label in zip(self._relations.keys(), self._labels, strict=True):
            of_edges = _each_once(edge_details.get(iri, []))
            domain, range_ = (_by_count(ends.get(iri, Counter())) for ends in (domains, ranges))
            names = tuple(detail.name for detail in of_edges)
            relations.append(RelationSchema(label, counts[iri], domain, range_, names, of_edges))
        return Schema(
            node_types=dict(sorted(types.items(), key=lambda item: (-item[1], item[0]))),
            relations=tuple(relations),
            node_properties={kind: tuple(detail.name for detail in found) for kind, found in details.items()},
            node_property_details=details,
            sampled="" if sample is None else f"{sample:,} triples: all counts are theirs, and anything may be missing",
        )

    def _detail(self, row: Binding) -> PropertySchema:
        """Describe the property in a row of ?k ?least ?most; an engine may find no least value among mixed ones."""
        found = [read_literal(row[name]) for name in ("least", "most") if name in row]
        kinds = {literal.kind for literal in found}
        examples = tuple(dict.fromkeys(literal.value for literal in found if len(literal.text) <= _SHORT))
        return PropertySchema(self._label(row["k"]["value"]), kinds.pop() if len(kinds) == 1 else "", examples)


def _windows(count: int, wanted: int, places: int = 4) -> list[tuple[int, int]]:
    """Return (edges to leave out, edges to take) at some places spread over a relation's `count` edges."""
    if count <= wanted:
        return [(0, count)]
    places = min(places, wanted)
    sizes = [wanted // places + (place < wanted % places) for place in range(places)]
    return [(place * count // places, size) for place, size in enumerate(sizes)]


def _values(rows: Iterable[Binding], variable: str) -> list[str]:
    return [row[variable]["value"] for row in rows]


def _each_once(details: Iterable[PropertySchema]) -> tuple[PropertySchema, ...]:
    """Sort properties by name; of two with one name, which different classes may give, the first stays."""
    return tuple({detail.name: detail for detail in sorted(details, key=lambda detail: detail.name)[::-1]}.values())[
        ::-1
    ]


def _by_count(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(counts, key=lambda kind: (-counts[kind], kind)))
