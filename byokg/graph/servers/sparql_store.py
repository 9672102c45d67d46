"""A graph behind SPARQL 1.1: the common part of all RDF stores."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from byokg.errors import EntityNotFound, GraphError, QueryFailed, QueryInvalid
from byokg.graph.columnar.ids import Numbering
from byokg.graph.guard.guard import check_sparql
from byokg.graph.guard.sparql import addressable, complete
from byokg.graph.rdf.literals import ENGLISH
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
from byokg.graph.read_cache import CachedSchema, around, digest
from byokg.graph.servers import sparql_text as sparql
from byokg.graph.servers.base import NumberingStore
from byokg.graph.servers.sparql_reads import (
    Naming,
    RdfNames,
    SparqlClient,
    SparqlReads,
    Stated,
    group_values,
    read_triple,
)
from byokg.graph.servers.sparql_schema import SAMPLE, Question, look_at
from byokg.graph.servers.sparql_text import Binding, read_literal, values_of
from byokg.graph.store import Direction, EdgeBatch, NodeArray, QueryLimits, RelationArray, Rows, Schema
from byokg.text.names import encodable
from byokg.types import NO_PROPERTIES, Cell, EntityId, Language, Node, Properties, Value

_TYPES_SPELLED = 40
"""Types whose IRI the notes for query writers list."""

_WRITTEN = 50
"""Relations that a property path is made of, at most."""
_WINDOWS = 50
"""Places of relations sampled in one request."""
_STATEMENTS = 100_000
"""Edges whose properties are remembered."""


class SparqlStore(NumberingStore):
    """An RDF graph behind a client for SPARQL 1.1.

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
        client: SparqlClient,
        prefixes: Prefixes | None = None,
        languages: Collection[str] | None = None,
        naming: Naming | None = None,
        language: str = "",
    ) -> None:
        """Set up an empty numbering.

        Args:
            client: sends the queries.
            prefixes: abbreviations of labels; None takes the well known ones.
            languages: tags of the texts to read, beside untagged ones; None reads all.
            naming: predicates of names and types; None chooses all by the graph's content.
            language: tag of the language of names, where a node has them in several; empty takes the first of
                `languages`, or English.
        """
        super().__init__(client.name, client.timeout_s)
        prefixes, naming = prefixes or Prefixes(), naming or Naming()
        self._client = client
        first = next(iter(languages or ()), ENGLISH)
        self._reads = SparqlReads(client, naming, languages, (language or first).lower())
        self._names = RdfNames(self._reads, prefixes)
        self._key = digest(*client.key, dict(prefixes.namespaces), naming.names, naming.types)
        self._labels: list[str] = []
        self._labelling = threading.RLock()
        self._edges: Numbering[tuple[int, int, int, str]] = Numbering()
        self._node_total: int | None = None
        self._classes: Sequence[str] | None = None
        self._statements: dict[str, Properties] = {}
        self._pages_read: dict[str, EdgeBatch] = {}

    def _let_go(self) -> None:
        self._client.close()

    def _cache_key(self) -> str:
        return self._key

    # GraphStore

    @property
    def prefixes(self) -> Prefixes:
        """Return how IRIs and labels turn into each other."""
        return self._names.prefixes

    @property
    def met_relations(self) -> Sequence[str]:
        return self._labels

    def _list_relations(self) -> None:
        """Number all relations: by one scan of the graph, if the schema has not been read."""
        if self._schema is None:
            self._number_relations(self._find_relations())

    @property
    def relation_iris(self) -> Sequence[str]:
        """Return the IRI behind each of `relations`."""
        return self._relations.keys()[: len(self.relations)]

    @property
    def naming_iris(self) -> Sequence[str]:
        """Return the IRIs of predicates of names and classes, none of which is a relation."""
        words = self._reads.words()
        return (*words.names, *words.aliases, *words.types)

    def schema(self) -> Schema:
        """Return node types and relations; of a sample, with its counts, if the endpoint cannot count them all."""
        self._await_schema()
        with self._schema_lock:
            fingerprint = self._take_kept()
            if self._schema is None:
                try:
                    self._schema = self._read_schema(None)
                except QueryFailed:
                    self._schema = self._read_schema(SAMPLE)
                if self._cache is not None:
                    extra = {
                        "prefixes": dict(self._names.prefixes.namespaces),
                        "relations": list(self._relations.keys()),
                        "classes": list(self._classes or ()),
                        "nodes": self._node_total,
                    }
                    self._cache.keep(self._key, self._name, fingerprint, CachedSchema(self._schema, extra))
            return self._schema

    def _take_kept(self) -> str | None:
        """Take over the schema that was kept, if it still counts; return the fingerprint that it has to have."""
        if self._schema is not None or self._cache is None:
            return None
        fingerprint = self._client.fingerprint()
        kept = self._cache.find(self._key, fingerprint)
        self._schema = self._use(kept) if kept else None
        return fingerprint

    def _find_relations(self) -> list[str]:
        """Return the IRIs of all relations, sorted: those that were kept lately, else all that there are.

        Where it is dear to look at all objects, one triple of a predicate stands for all of them. A relation that is
        missed so gets its number when it is met.
        """
        if self._cache is None:
            return sorted(self._reads.counted("e"))
        if self.holds_schema():
            self._take_kept()
            if self._schema is not None:
                return list(self._relations.keys())
        key = digest(self._key, "relations")
        if kept := self._cache.find(key, None):
            return [str(iri) for iri in kept.extra["relations"]]
        words = self._reads.words()
        if self._client.samples_predicates and not words.reified:
            rows = self._reads.gather("?p ?edge", lambda _: sparql.predicate_samples(), [""])
            found = sorted(row["p"]["value"] for row in rows if row["edge"]["value"] == "true")
        else:
            found = sorted(self._reads.counted("e"))
        self._cache.keep(key, self._name, None, CachedSchema(None, {"relations": found}))
        return found

    def _use(self, kept: CachedSchema) -> Schema | None:
        """Take over a schema that was kept, with its prefixes; None where relations have got other labels already."""
        try:
            prefixes = Prefixes(dict(kept.extra["prefixes"]))
            relations, classes = ([str(iri) for iri in kept.extra[key]] for key in ("relations", "classes"))
        except (KeyError, TypeError, ValueError):
            return None
        if kept.schema is None:
            return None
        names = [relation.name for relation in kept.schema.relations]
        if len(names) != len(relations):
            return None
        if any(name not in (prefixes.label(iri), iri) for name, iri in zip(names, relations, strict=True)):
            return None
        if not len(self._relations):
            self._names.prefixes = prefixes
        numbers = self._number_relations(relations).tolist()
        if len(self._labels) != len(names) or any(
            self._labels[number] != name for number, name in zip(numbers, names, strict=True)
        ):
            return None
        self._classes = tuple(classes)
        total = kept.extra.get("nodes")
        self._node_total = total if isinstance(total, int) else None
        in_order = [kept.schema.relations[place] for place in np.argsort(numbers)]
        return replace(kept.schema, relations=tuple(in_order))

    def refresh(self) -> None:
        """Forget the schema, nodes and edges, so that they are read again on demand. Numbers stay as they are."""
        super().refresh()
        self._reads.refresh()
        self._node_total = self._classes = None
        self._statements, self._pages_read = {}, {}

    @property
    def node_count(self) -> int | None:
        """Count the nodes; None if the store cannot count them."""
        if self._node_total is None:
            try:
                rows, _ = self._client.select(
                    "?count", sparql.node_count(self._reads.words().reified), self._client.timeout_s
                )
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
            rows = self._reads.gather("?t ?count", lambda _: sparql.type_counts(self._reads.words(), None), [""])
            self._classes = tuple(sorted({row["t"]["value"] for row in rows}))
        return self._classes

    def entities(self) -> Iterator[EntityId]:
        """Yield each entity once, heads and tails alike, in node-number order."""
        known = len(self._nodes)
        yield from map(node_id, self._nodes.keys()[:known])
        for iris in self._counted_out(self._reads.every_node()):
            numbers = self._nodes.add(iris)
            yield from (node_id(iri) for iri, number in zip(iris, numbers.tolist(), strict=True) if number >= known)

    def numbers(self, ids: Collection[EntityId]) -> NodeArray:
        """Return the node number of each id: (N,) int64. Raises `EntityNotFound` for an unknown one."""
        iris = [self._iri(entity) for entity in ids]
        unseen = [iri for iri in dict.fromkeys(iris) if iri not in self._nodes]
        if unseen:
            found = self._reads.existing(unseen)
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
        words, wanted = self._reads.words(), list(dict.fromkeys(iri for iri in iris if addressable(iri)))
        described = self._names.describe(self._reads.descriptions(wanted, words))
        unseen = [iri for iri in wanted if iri not in self._nodes and iri not in described]
        found = self._reads.existing(unseen) if unseen else set()
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
        words = self._reads.words()
        found: dict[str, list[Binding]] = {}
        literals = self._reads.counted("l")
        for types, counts in ((True, dict.fromkeys((*words.types, RDF_TYPE), 1)), (False, literals)):
            for predicates in self._reads.in_groups(counts):
                for row in self._reads.all_values(predicates, types):
                    found.setdefault(row["n"]["value"], []).append(row)
        self._names.class_names(
            row["v"]["value"] for rows in found.values() for row in rows if row["k"]["value"] in words.types
        )
        for iris in self._nodes_of(found):
            self._nodes.add(iris)
            described = self._names.describe(row for iri in iris for row in found.pop(iri, ()))
            yield [Node(node_id(iri), *described.get(iri, (fallback_name(iri), "", NO_PROPERTIES, ()))) for iri in iris]

    def _nodes_of(self, found: Collection[str]) -> Iterable[list[str]]:
        """Return the IRIs of all nodes, given those with properties or types.

        The others are ends of edges, which are read for it and kept until `all_edges`: a search for nodes takes an
        engine as long as returning all edges. It is needed if a node may have nothing but some text or blank node.
        """
        if self._reads.languages is not None or self._reads.words().reified or self._reads.counted("b"):
            return self._reads.every_node()
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
        reified = self._reads.words().reified
        counts, others = self._reads.counted("e"), {**self._reads.counted("l"), **self._reads.counted("b")}
        self._number_relations(sorted(counts))
        for pure in (True, False):
            for relations in self._reads.in_groups(
                {iri: n for iri, n in counts.items() if (iri not in others) is pure}
            ):
                batch = self._pages_read.get(relations[0])
                if batch is None:
                    triples = self._reads.every_edge(relations, reified, pure)
                    head, relation, tail, edge = self._numbered(triples)
                    batch = self._sampled(head, relation, tail, edge, np.lexsort((edge, relation)))
                    self._pages_read[relations[0]] = batch
                yield batch

    def _fetch_edges(self, nodes: NodeArray, direction: Direction, relations: RelationArray | None) -> EdgeBatch:
        """Ask for edges."""
        asked = np.asarray(nodes, np.int64)
        wanted = None if relations is None else self._relation_keys(relations)
        iris = [self._nodes.key(number) for number in np.unique(asked).tolist()]
        triples: Sequence[Stated] = []
        if iris and wanted != []:
            triples = self._reads.edges_of([iri for iri in iris if addressable(iri)], direction, wanted)
        head, relation, tail, edge = self._numbered(triples)
        return around(asked, direction, head, relation, tail, edge, self._space)

    def reached(
        self, node: int, direction: Direction, relations: RelationArray, limit: int, timeout_s: float
    ) -> NodeArray | None:
        """Return the nodes that edges lead to, which a property path finds."""
        iri, wanted = self._nodes.key(node), self._relation_keys(relations)
        if not (addressable(iri) and 0 < len(wanted) <= _WRITTEN):
            return None
        try:
            rows, _ = self._client.select("?m", sparql.reached(iri, direction, wanted), timeout_s, (limit + 1, None))
        except QueryFailed:
            return None
        return None if len(rows) > limit else self._nodes.add(sorted(set(values_of(rows, "m"))))

    def _count_edges(self, keys: Sequence[str]) -> Sequence[tuple[str, str, bool, int]]:
        return self._reads.count_edges(keys)

    def edge_properties(self, edges: npt.NDArray[np.int64]) -> list[Properties]:
        """Return the properties of each edge number, in the order given. Raises `GraphError` for an unknown one."""
        try:
            statements = [self._edges.key(number)[3] for number in np.asarray(edges).tolist()]
        except IndexError as error:
            raise GraphError(f"{self._name} gave out no edge number {error}") from error
        unknown = [iri for iri in dict.fromkeys(statements) if iri and iri not in self._statements]
        found = group_values(self._reads.gather("?n ?k ?v", sparql.statements, unknown)) if unknown else {}
        known = {iri: self._statements[iri] for iri in statements if iri in self._statements}
        known |= {iri: self._names.properties(found[iri]) if iri in found else NO_PROPERTIES for iri in unknown}
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
            rows = self._reads.gather("?s ?p ?o", sparql.some_edges, windows, batch_size=_WINDOWS)
        head, relation_numbers, tail, edge = self._numbered(map(read_triple, rows))
        order = np.lexsort((edge, relation_numbers))
        rank = np.arange(len(order)) - np.searchsorted(relation_numbers[order], relation_numbers[order])
        return self._sampled(head, relation_numbers, tail, edge, order[rank < per_relation])

    # Names

    @property
    def names_key(self) -> str:
        """Return a key that differs between graphs with other ids or names."""
        return digest(
            self._name, self._reads.naming.names, self._reads.naming.aliases, list(self._reads.languages or ())
        )

    def named(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the numbers of the nodes that are called just so, for each text."""
        words = self._reads.words()
        predicates = (*words.names, *words.aliases)
        tags = tuple(
            dict.fromkeys((self._reads.language, ENGLISH, *(tag.lower() for tag in self._reads.languages or ())))
        )
        sought = [text for text in dict.fromkeys(texts) if encodable(text) == text]
        if not predicates:
            return [[] for _ in texts]
        rows = self._reads.gather("?n ?v", lambda batch: sparql.called(batch, predicates, tags), sought)
        by_name: dict[str, set[str]] = {}
        for row in rows:
            by_name.setdefault(row["v"]["value"], set()).add(row["n"]["value"])
        return [self._nodes.add(sorted(by_name.get(text, ()))).tolist() for text in texts]

    def named_pages(self) -> Iterator[list[tuple[EntityId, str]]]:
        """Yield ids with their names and further names, in pages."""
        yield from map(list, self._counted_out(self._named_pages(), ended=False))

    def _named_pages(self) -> Iterator[list[tuple[EntityId, str]]]:
        words = self._reads.words()
        seen: set[str] = set()
        for predicate in (*words.names, *words.aliases):
            for rows in self._reads.texts(predicate):
                page = [(iri, text) for iri, text in rows if text]
                seen.update(iri for iri, _ in page)
                yield [(node_id(iri), text) for iri, text in page if not iri.startswith(EDGE)]
        for iris in self._reads.every_node():
            yield [(node_id(iri), fallback_name(iri)) for iri in iris if iri not in seen]

    # QueryStore

    def distinct_values(self, type: str, property: str, most: int) -> tuple[list[tuple[Value, int]], bool]:
        """Return the most frequent values of a property with their numbers of nodes, and whether these are all."""
        where = sparql.frequent_values(self._values(type, property), most)
        rows, whole = self._client.select("?v ?count", where, self._client.timeout_s)
        found: Counter[Value] = Counter()
        for row in rows:
            found[read_literal(row["v"]).value] += int(row["count"]["value"])
        return list(found.items()), whole and len(rows) < most

    def holders(self, type: str, property: str, value: Value, most: int) -> NodeArray:
        """Return the nodes of a type with a value of a property."""
        text = str(value).lower() if isinstance(value, bool) else str(value)
        where = f"{{ SELECT DISTINCT ?n WHERE {{ {self._values(type, property, text)} }} LIMIT {most} }}"
        rows = self._client.select("?n", where, self._client.timeout_s)[0]
        return np.unique(self._nodes.add(sorted(values_of(rows, "n"))))

    def _values(self, type: str, property: str, text: str | None = None) -> str:
        """Match the values of a property at the nodes of a type."""
        called = self._names.class_names(self.class_iris)
        classes = [iri for iri in self.class_iris if called[iri] == type] if type else []
        return sparql.values_of_type(self._reads.words(), classes, self._names.prefixes.expand(property), text)

    @property
    def language(self) -> Language:
        """Return the language of `run`."""
        return "sparql"

    @property
    def notes(self) -> str:
        """Return the notation of the schema's names in queries: relations and types by prefix, nodes by IRI."""
        words = self._reads.words()
        naming = self.prefixes.spelled(words.names[0] if words.names else RDFS_LABEL)
        lines = [f"In SPARQL, {naming} is a node's name. Prefixes need not be declared."]
        if any(iri.startswith(TERM) for iri in (*self.relation_iris, *self.class_iris)):
            example = next((label for label in self.relations if not label.isidentifier()), "is a")
            lines.append(
                "A relation, property or type NAME without a prefix is kg:NAME, percent-encoded "
                f"({example} is {self.prefixes.spelled(self.prefixes.expand(example))}); the node with the id ID is "
                "node:ID, an id that is an IRI is <IRI>."
            )
        named = self._names.class_names(self.class_iris)
        spelled = [f"{named[iri]} is {self.prefixes.spelled(iri)}" for iri in self._classes_by_prefix(named)]
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
            limits: time and rows; of more rows than the engine sorts, the first are returned.

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
        try:
            return self._run(text, parameters or {}, limits)
        except QueryInvalid as error:
            most = self._client.sortable_rows(str(error), limits.max_rows)
            if most <= 0:
                raise
            return self._run(text, parameters or {}, replace(limits, max_rows=most))

    def _run(self, text: str, parameters: Mapping[str, Cell], limits: QueryLimits) -> Rows:
        checked = check_sparql(text, limits.max_rows + 1)
        until = time.monotonic() + limits.timeout_s
        self._reads.words(limits.timeout_s)
        query = complete(checked.text, parameters, self._names.prefixes)
        table = self._client.query(query, limits)
        if table.truth is not None:
            return Rows(("answer",), ((table.truth,),)) if limits.max_rows > 0 else Rows(("answer",), (), True)
        bindings = table.bindings[: limits.max_rows]
        cells = self._names.cells(bindings, max(until - time.monotonic(), 0.1))
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
                label = self._names.label(iri)
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

    # Schema

    def _read_schema(self, sample: int | None) -> Schema:
        """Count types and relations, over all triples or the first `sample` of them."""
        words = self._reads.words()
        found = look_at(self._ask_all, words, sample, self._client.repeats, self._reading)
        self._number_relations(sorted(found.relations))
        self._classes = tuple(sorted(found.types.keys() - {""}))
        self._node_total = found.nodes
        names = self._names.class_names(self._classes)
        naming = words.names[0] if words.names else RDFS_LABEL
        labels = zip(self._relations.keys(), self._labels, strict=True)
        return found.schema(labels, self._names.label, names.__getitem__, naming)

    def _ask_all(self, questions: Sequence[Question]) -> list[list[Binding]]:
        """Run some queries and return all rows of each."""
        return list(
            self._client.map(lambda question: self._reads.gather(question[0], lambda _: question[1], [""]), questions)
        )


def _windows(count: int, wanted: int, places: int = 4) -> list[tuple[int, int]]:
    """Return (edges to leave out, edges to take) at some places spread over a relation's `count` edges."""
    if count <= wanted:
        return [(0, count)]
    places = min(places, wanted)
    sizes = [wanted // places + (place < wanted % places) for place in range(places)]
    return [(place * count // places, size) for place, size in enumerate(sizes)]
