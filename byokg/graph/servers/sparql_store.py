"""What every RDF store has in common: the two protocols, answered by SPARQL."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from byokg.errors import EntityNotFound, GraphError, QueryFailed, QueryInvalid, QueryTooLarge
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
    node_id,
    node_iri,
)
from byokg.graph.read_cache import around, digest
from byokg.graph.servers import sparql_text as sparql
from byokg.graph.servers.sparql_names import Naming, SparqlNames, joined_ends
from byokg.graph.servers.sparql_schema import Question, look_at
from byokg.graph.servers.sparql_text import Binding, SparqlResult, Term, parts_of, read_literal, values_of
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
from byokg.types import NO_PROPERTIES, Cell, EntityId, Language, Node, NodeCell, Properties

Key = TypeVar("Key")

Stated: TypeAlias = tuple[str, str, str, str]
"""IRIs of head, relation, tail, and of the statement about them, empty if there is none."""

_TYPES_SPELLED = 40
"""Types whose IRI the notes for query writers list."""

_BATCH = 1000
"""Nodes per request."""
_TOGETHER = 200
"""Predicates per request."""
_ROWS = 100_000
_WRITTEN = 50
"""Relations that a property path is made of, at most."""
"""Rows of an answer."""
_WINDOWS = 50
"""Places of relations sampled in one request."""
_STATEMENTS = 100_000
"""Edges whose properties are remembered."""


class SparqlStore(SparqlNames):
    """An RDF graph behind SPARQL 1.1; implements `GraphStore` and `QueryStore`.

    Nodes are the IRIs that stand at an end of an edge or have a property or type; `sparql_text` says what an edge is.
    A node's id is its IRI (see `terms` for graphs that are no RDF). Its name is the English or untagged literal of the
    first of `Naming.names` that it has, else the last part of the IRI. Its types are what its classes are
    called, by IRI, without `owl:Thing` and its like; the first is shown. Relations and properties are labelled
    `dbo:birthPlace`; `prefixes` undoes that, and may be used undeclared in queries.

    A property with several values holds the preferred one (English, untagged, others; then in text order), and all of
    them stand under the same key with `[]` after it, as Turtle writes them.

    Blank nodes are left out, since they cannot be asked about: their labels hold within one answer only.

    Numbers are given out as nodes, relations and edges are met, so they depend on what was asked before.
    """

    def __init__(
        self,
        name: str,
        prefixes: Prefixes,
        languages: Collection[str] | None,
        timeout_s: float,
        naming: Naming | None = None,
    ) -> None:
        """See `SparqlNames`."""
        super().__init__(name, prefixes, languages, timeout_s, naming)
        self._edges: Numbering[tuple[int, int, int, str]] = Numbering()
        self._node_total: int | None = None
        self._repeats = False
        self._classes: Sequence[str] | None = None
        self._statements: dict[str, Properties] = {}
        self._kinds: Mapping[str, Mapping[str, int]] | None = None
        self._pages_read: dict[str, EdgeBatch] = {}

    @abstractmethod
    def _query(self, query: Sent, limits: QueryLimits) -> SparqlResult:
        """Run a checked query of a user and return up to one row more than allowed."""

    def _cache_key(self) -> str:
        return digest(self._name)

    # GraphStore

    @property
    def prefixes(self) -> Prefixes:
        """Return how IRIs and labels turn into each other."""
        return self._prefixes

    @property
    def met_relations(self) -> Sequence[str]:
        return self._labels

    def _list_relations(self) -> None:
        """Number all relations: by one scan of the graph, if the schema has not been read."""
        if self._schema is None:
            self._number_relations(self._find_relations())

    def _find_relations(self) -> list[str]:
        """Return the IRIs of all relations, sorted."""
        return sorted(self._counted("e"))

    @property
    def relation_iris(self) -> Sequence[str]:
        """Return the IRI behind each of `relations`."""
        return self._relations.keys()[: len(self.relations)]

    @property
    def naming_iris(self) -> Sequence[str]:
        """Return the IRIs of predicates of names and classes, none of which is a relation."""
        words = self._words()
        return (*words.names, *words.aliases, *words.types)

    def schema(self) -> Schema:
        """Return node types and relations with counts; read once, then cached until `refresh`."""
        if self._schema is None:
            self._schema = self._read_schema(None)
        return self._schema

    def refresh(self) -> None:
        """Forget the schema, nodes and edges, so that they are read again on demand. Numbers stay as they are."""
        super().refresh()
        self._vocabulary = None
        self._node_total = None
        self._classes = self._kinds = None
        self._statements, self._pages_read = {}, {}

    @property
    def node_count(self) -> int | None:
        """Count the nodes; None if the store cannot count them."""
        if self._node_total is None:
            try:
                rows, _ = self._select("?count", sparql.node_count(self._words().reified), self._timeout_s)
            except QueryFailed:
                return None
            self._node_total = int(rows[0]["count"]["value"])
        return self._node_total

    @property
    def edge_count(self) -> int | None:
        """Return the number of edges; None if the schema is that of a sample."""
        schema = self.schema()
        return None if schema.sampled else sum(relation.count for relation in schema.relations)

    @property
    def class_iris(self) -> Sequence[str]:
        """Return the IRIs of the classes that the schema counts; read if the schema was not read here."""
        self.schema()
        if self._classes is None:
            rows = self._gather("?t ?count", lambda _: sparql.type_counts(self._words(), None), [""])
            self._classes = tuple(sorted({row["t"]["value"] for row in rows}))
        return self._classes

    def entities(self) -> Iterator[EntityId]:
        """Yield each entity once, heads and tails alike, in node-number order."""
        known = len(self._nodes)
        yield from map(node_id, self._nodes.keys()[:known])
        for iris in self._counted_out(self._every_node()):
            numbers = self._nodes.add(iris)
            yield from (node_id(iri) for iri, number in zip(iris, numbers.tolist(), strict=True) if number >= known)

    def numbers(self, ids: Collection[EntityId]) -> NodeArray:
        """Return the node number of each id: (N,) int64. Raises `EntityNotFound` for an unknown one."""
        iris = [self._iri(entity) for entity in ids]
        unseen = [iri for iri in dict.fromkeys(iris) if iri not in self._nodes]
        if unseen:
            found = self._existing(unseen)
            for entity, iri in zip(ids, iris, strict=True):
                if iri not in self._nodes and iri not in found:
                    raise EntityNotFound(entity, self._name)
        return self._nodes.add(iris)

    def ids(self, nodes: NodeArray) -> list[EntityId]:
        """Return the id of each node number. Raises `EntityNotFound` for a number that was not given out."""
        return [node_id(self._nodes.key(number)) for number in self._check_nodes(nodes).tolist()]

    def _read_nodes(self, ids: Sequence[EntityId]) -> list[Node]:
        """Ask for names, types and properties. Raises `EntityNotFound`."""
        iris = [self._iri(entity) for entity in ids]
        words, wanted = self._words(), list(dict.fromkeys(iri for iri in iris if addressable(iri)))
        rows = self._gather(
            "?n ?k ?v", lambda batch: sparql.describe(batch, words, self._languages, self._lookup), wanted
        )
        described = self._describe(rows)
        unseen = [iri for iri in wanted if iri not in self._nodes and iri not in described]
        found = self._existing(unseen) if unseen else set()
        for entity, iri in zip(ids, iris, strict=True):
            if iri not in self._nodes and iri not in described and iri not in found:
                raise EntityNotFound(entity, self._name)
        self._nodes.add(iris)
        return [
            Node(entity, *described.get(iri, (fallback_name(iri), "", NO_PROPERTIES, ())))
            for entity, iri in zip(ids, iris, strict=True)
        ]

    def all_nodes(self) -> Iterator[list[Node]]:
        """Yield every node once, in pages."""
        words = self._words()
        found: dict[str, list[Binding]] = {}
        literals = self._counted("l")
        for types, counts in ((True, dict.fromkeys((*words.types, RDF_TYPE), 1)), (False, literals)):
            for predicates in self._in_groups(counts):
                for row in self._all_values(predicates, types):
                    found.setdefault(row["n"]["value"], []).append(row)
        self._class_names(
            row["v"]["value"] for rows in found.values() for row in rows if row["k"]["value"] in words.types
        )
        for iris in self._nodes_of(found):
            self._nodes.add(iris)
            described = self._describe(row for iri in iris for row in found.pop(iri, ()))
            yield [Node(node_id(iri), *described.get(iri, (fallback_name(iri), "", NO_PROPERTIES, ()))) for iri in iris]

    def _nodes_of(self, found: Collection[str]) -> Iterable[list[str]]:
        """Return the IRIs of all nodes, given those with properties or types.

        The others are ends of edges, which are read for it and kept until `all_edges`: a search for nodes takes an
        engine as long as returning all edges. It is needed if a node may have nothing but some text or blank node.
        """
        if self._languages is not None or self._words().reified or self._counted("b"):
            return self._every_node()
        iris = set(found)
        for batch in self._edge_pages():
            ends = np.unique(np.concatenate((batch.head, batch.tail)))
            iris.update(self._nodes.key(number) for number in ends.tolist())
        return [sorted(iri for iri in iris if not iri.startswith(EDGE))]

    def all_edges(self) -> Iterator[EdgeBatch]:
        """Yield every edge once, in pages of whole relations."""
        yield from self._edge_pages()
        self._pages_read = {}

    def _edge_pages(self) -> Iterator[EdgeBatch]:
        """Yield every edge once, and cache it."""
        reified = self._words().reified
        counts, others = self._counted("e"), {**self._counted("l"), **self._counted("b")}
        self._number_relations(sorted(counts))
        for pure in (True, False):
            for relations in self._in_groups({iri: n for iri, n in counts.items() if (iri not in others) is pure}):
                batch = self._pages_read.get(relations[0])
                if batch is None:
                    triples = self._every_edge(relations, reified, pure)
                    head, relation, tail, edge = self._numbered(triples)
                    batch = self._sampled(head, relation, tail, edge, np.lexsort((edge, relation)))
                    self._pages_read[relations[0]] = batch
                yield batch

    def _every_edge(self, relations: Sequence[str], reified: bool, pure: bool) -> Sequence[Stated]:
        """Ask for all edges of some relations."""
        if self._joins_all and pure and not reified:
            with suppress(QueryInvalid, QueryTooLarge):
                triples: list[Stated] = []
                for page in self._pages("?near ?p ?count ?ends", sparql.joined_edges(relations)):
                    for row in page:
                        predicate, tail = row["p"]["value"], row["near"]["value"]
                        triples += [(head, predicate, tail, "") for head in joined_ends(row)]
                return triples
        where = sparql.all_edges(relations, reified, pure)
        variables = "?s ?p ?o ?e" if reified else "?s ?p ?o"
        return [_triple(row) for page in self._pages(variables, where) for row in page]

    def _counted(self, kind: str) -> Mapping[str, int]:
        """Return how many triples of each predicate are edges ("e"), end in literals ("l"), or are neither ("b")."""
        if self._kinds is None:
            where = sparql.predicate_kinds(self._words().reified, self._repeats)
            rows = self._gather("?p ?kind ?count", lambda _: where, [""])
            kinds: dict[str, dict[str, int]] = {}
            for row in rows:
                if "p" in row:
                    kinds.setdefault(row["kind"]["value"], {})[row["p"]["value"]] = int(row["count"]["value"])
            self._kinds = kinds
        return self._kinds.get(kind, {})

    def _in_groups(self, counts: Mapping[str, int]) -> Iterator[list[str]]:
        """Yield predicates in groups of which one request gives all rows, if it can."""
        group: list[str] = []
        rows = 0
        for predicate, count in sorted(counts.items()):
            if group and (rows + count > self._page_rows() or len(group) == _TOGETHER):
                yield group
                group, rows = [], 0
            group.append(predicate)
            rows += count
        if group:
            yield group

    def _page_rows(self) -> int:
        """Return how many rows one request may give."""
        return _ROWS

    def _existing(self, iris: Sequence[str]) -> set[str]:
        """Return those that are nodes."""
        reified = self._words().reified
        asked = [iri for iri in iris if addressable(iri)]
        return set(values_of(self._gather("?n", lambda batch: sparql.existing(batch, reified), asked), "n"))

    def _fetch_edges(self, nodes: NodeArray, direction: Direction, relations: RelationArray | None) -> EdgeBatch:
        """Ask for edges."""
        asked = np.asarray(nodes, np.int64)
        wanted = None if relations is None else self._relation_keys(relations)
        iris = [self._nodes.key(number) for number in np.unique(asked).tolist()]
        triples: Sequence[Stated] = []
        if iris and wanted != []:
            triples = self._edges_of([iri for iri in iris if addressable(iri)], direction, wanted)
        head, relation, tail, edge = self._numbered(triples)
        return around(asked, direction, head, relation, tail, edge, self._space)

    def _edges_of(self, iris: Sequence[str], direction: Direction, wanted: Sequence[str] | None) -> Sequence[Stated]:
        """Ask for the edges of nodes."""
        reified = self._words().reified
        if self._joins and not reified:
            with suppress(QueryInvalid, QueryTooLarge):
                return self._joined_edges_of(iris, direction, wanted)
        rows = self._gather(
            "?s ?p ?o ?e" if reified else "?s ?p ?o",
            lambda batch: sparql.edges(batch, direction, wanted, reified, self._lookup),
            iris,
            count=self._degrees,
        )
        return list(map(_triple, rows))

    def _joined_edges_of(
        self, iris: Sequence[str], direction: Direction, wanted: Sequence[str] | None
    ) -> Sequence[Stated]:
        """Ask for the edges of nodes, those of one relation at one end in one text. Raises `QueryInvalid`."""
        variables = "?near ?p ?way ?count ?ends"
        triples: list[Stated] = []
        rows = self._gather(variables, lambda batch: sparql.grouped_edges(batch, direction, wanted, self._lookup), iris)
        for row in rows:
            if "ends" not in row:
                continue  # some stores give one row of nothing for a group of nothing
            near, predicate = row["near"]["value"], row["p"]["value"]
            inverse = row["way"]["value"] == "in"
            triples += [
                (end, predicate, near, "") if inverse else (near, predicate, end, "") for end in joined_ends(row)
            ]
        return triples

    def _degrees(self, iris: Sequence[str]) -> Mapping[str, int]:
        """Return how many edges touch each node."""
        degrees: dict[str, int] = {}
        for iri, _, _, count in self._count_edges(iris):
            degrees[iri] = degrees.get(iri, 0) + count
        return degrees

    def reached(
        self, node: int, direction: Direction, relations: RelationArray, limit: int, timeout_s: float
    ) -> NodeArray | None:
        """Return the nodes that edges lead to, which a property path finds."""
        iri, wanted = self._nodes.key(node), self._relation_keys(relations)
        if not (addressable(iri) and 0 < len(wanted) <= _WRITTEN):
            return None
        try:
            rows, _ = self._select("?m", sparql.reached(iri, direction, wanted), timeout_s, (limit + 1, None))
        except QueryFailed:
            return None
        return None if len(rows) > limit else self._nodes.add(sorted(set(values_of(rows, "m"))))

    def _count_edges(self, keys: Sequence[str]) -> Sequence[tuple[str, str, bool, int]]:
        """Ask for the number of edges by node, relation, and whether they come in."""
        reified = self._words().reified
        rows = self._gather(
            "?n ?p ?way ?edges",
            lambda batch: sparql.touching_counts(batch, reified, self._lookup),
            [iri for iri in keys if addressable(iri)],
        )
        return [
            (row["n"]["value"], row["p"]["value"], row["way"]["value"] == "in", int(row["edges"]["value"]))
            for row in rows
            if "n" in row  # some stores give one row of nothing for a group of nothing
        ]

    def edge_properties(self, edges: npt.NDArray[np.int64]) -> list[Properties]:
        """Return the properties of each edge number, in the order given. Raises `GraphError` for an unknown one."""
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
        head, relation_numbers, tail, edge = self._numbered(map(_triple, rows))
        order = np.lexsort((edge, relation_numbers))
        rank = np.arange(len(order)) - np.searchsorted(relation_numbers[order], relation_numbers[order])
        return self._sampled(head, relation_numbers, tail, edge, order[rank < per_relation])

    # QueryStore

    @property
    def language(self) -> Language:
        """Return the language of `run`."""
        return "sparql"

    @property
    def notes(self) -> str:
        """Return the notation of the schema's names in queries: relations and types by prefix, nodes by IRI."""
        naming = self._prefixes.spelled(self._words().names[0] if self._words().names else RDFS_LABEL)
        lines = [f"In SPARQL, {naming} is a node's name. Prefixes need not be declared."]
        if any(iri.startswith(TERM) for iri in (*self.relation_iris, *self.class_iris)):
            example = next((label for label in self.relations if not label.isidentifier()), "is a")
            lines.append(
                "A relation, property or type NAME without a prefix is kg:NAME, percent-encoded "
                f"({example} is {self._prefixes.spelled(self._prefixes.expand(example))}); the node with the id ID is "
                "node:ID, an id that is an IRI is <IRI>."
            )
        named = self._class_names(self.class_iris)
        spelled = [f"{named[iri]} is {self._prefixes.spelled(iri)}" for iri in self._classes_by_prefix(named)]
        if spelled:
            lines.append(f"Types: {'; '.join(spelled)}.")
        return "\n".join(lines) + "\n"

    def _classes_by_prefix(self, called: Mapping[str, str]) -> list[str]:
        """Return the classes of which the schema shows less than a query has to write, most nodes first."""
        counts = self.schema().node_types
        named = [iri for iri in self.class_iris if not iri.startswith(TERM) and iri not in GENERIC_TYPES]
        return sorted(named, key=lambda iri: (-counts.get(called[iri], 0), iri))[:_TYPES_SPELLED]

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
        self._words(limits.timeout_s)
        query = complete(checked.text, parameters or {}, self._prefixes)
        table = self._query(query, limits)
        if table.truth is not None:
            return Rows(("answer",), ((table.truth,),)) if limits.max_rows > 0 else Rows(("answer",), (), True)
        bindings = table.bindings[: limits.max_rows]
        cells = self._cells(bindings, max(until - time.monotonic(), 0.1))
        rows = tuple(tuple(cells(row[name]) if name in row else None for name in table.variables) for row in bindings)
        return Rows(table.variables, rows, table.cut or len(table.bindings) > limits.max_rows)

    # Numbers

    def _iri(self, entity: str) -> str:
        if encodable(entity) != entity:
            raise EntityNotFound(entity, self._name)  # which no IRI can hold
        return entity if entity in self._nodes else node_iri(entity)

    def _number_relations(self, keys: Iterable[str]) -> npt.NDArray[np.int64]:
        """Number relations, and give a label to each new one: its IRI where another one has its label already."""
        numbers = self._relations.add(keys)
        with self._labelling:
            taken = set(self._labels)
            for iri in self._relations.keys(len(self._labels)):
                label = self._label(iri)
                self._labels.append(iri if label in taken else label)
                taken.add(label)
        return numbers

    def _numbered(self, rows: Iterable[Stated]) -> tuple[npt.NDArray[np.int64], ...]:
        """Turn triples into numbers of heads, relations, tails and edges, one of each for each edge."""
        triples: set[tuple[str, str, str]] = set()
        statements: dict[tuple[str, str, str], set[str]] = {}
        for *ends, statement in rows:
            triple = (ends[0], ends[1], ends[2])
            if statement:
                statements.setdefault(triple, set()).add(statement)
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

    def _cells(self, bindings: Sequence[Binding], timeout_s: float) -> Callable[[Term], Cell]:
        """Return a converter of the terms of some rows into cells, with the names behind their IRIs looked up."""
        words = self._words()
        iris = {term["value"]: None for row in bindings for term in parts_of(row.values()) if term["type"] == "uri"}
        asked = [iri for iri in iris if addressable(iri) and not iri.startswith((TERM, EDGE))]
        rows = self._gather(
            "?n ?k ?v", lambda batch: sparql.met(batch, words, self._languages, self._lookup), asked, timeout_s
        )
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
            return NodeCell(node_id(iri), *nodes.get(iri, (fallback_name(iri), "", NO_PROPERTIES, ())))

        return cell

    # Schema

    def _read_schema(self, sample: int | None) -> Schema:
        """Count types and relations, over all triples or the first `sample` of them."""
        words = self._words()
        found = look_at(self._ask_all, words, sample, self._repeats, self._reading)
        self._number_relations(sorted(found.relations))
        self._classes = tuple(sorted(found.types.keys() - {""}))
        self._node_total = found.nodes
        names = self._class_names(self._classes)
        naming = words.names[0] if words.names else RDFS_LABEL
        labels = zip(self._relations.keys(), self._labels, strict=True)
        return found.schema(labels, self._label, names.__getitem__, naming)

    def _ask_all(self, questions: Sequence[Question]) -> list[list[Binding]]:
        """Run some queries and return all rows of each."""
        return list(self._map(lambda question: self._gather(question[0], lambda _: question[1], [""]), questions))


def _triple(row: Binding) -> Stated:
    """Read a row of ?s ?p ?o ?e."""
    return row["s"]["value"], row["p"]["value"], row["o"]["value"], row["e"]["value"] if "e" in row else ""


def _windows(count: int, wanted: int, places: int = 4) -> list[tuple[int, int]]:
    """Return (edges to leave out, edges to take) at some places spread over a relation's `count` edges."""
    if count <= wanted:
        return [(0, count)]
    places = min(places, wanted)
    sizes = [wanted // places + (place < wanted % places) for place in range(places)]
    return [(place * count // places, size) for place, size in enumerate(sizes)]
