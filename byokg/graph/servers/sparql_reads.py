"""Reading an RDF graph by IRIs: its client, requests in batches and pages, edges, and names and properties of nodes."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from byokg.errors import QueryInvalid, QueryTooLarge
from byokg.graph.guard.sparql import Sent, addressable
from byokg.graph.rdf.literals import listed, preferred
from byokg.graph.rdf.terms import (
    ALIAS_PREDICATES,
    EDGE,
    NAME_PREDICATES,
    RDF_SUBJECT,
    RDF_TYPE,
    TERM,
    TYPE_PREDICATES,
    Prefixes,
    fallback_name,
    local_name,
    node_id,
)
from byokg.graph.servers import sparql_text as sparql
from byokg.graph.servers.sparql_text import (
    Binding,
    NamePredicates,
    SparqlResult,
    Term,
    best_name,
    classes_of,
    parts_of,
    read_literal,
    values_of,
)
from byokg.graph.store import ALL_VALUES, Direction, QueryLimits
from byokg.types import NO_PROPERTIES, Cell, NodeCell, Properties, Value

Item = TypeVar("Item")
Result = TypeVar("Result")
Key = TypeVar("Key")

Stated: TypeAlias = tuple[str, str, str, str]
"""IRIs of head, relation, tail, and of the statement about them, empty if there is none."""

_TOGETHER = 200
"""Predicates per request."""

MOST_ROWS = 100_000
"""Rows of an answer."""


class SparqlClient(ABC):
    """Sends query text to one RDF graph. Its attributes decide how a store writes and divides its queries."""

    batch = 1000
    """Nodes per request."""
    lookup = sparql.PLAIN
    joins = joins_all = False
    """Whether the engine gives the edges of some nodes, or of all, faster as one text than row by row."""
    repeats = False
    """True if a triple may stand in several graphs."""
    samples_predicates = False
    """True if one triple of each predicate is found faster than all objects."""

    def __init__(self, name: str, timeout_s: float, key: Sequence[object] = ()) -> None:
        """Begin.

        Args:
            name: the graph, for messages.
            timeout_s: limit of each request of the traversal.
            key: identity of the graph, for caches; empty takes the name.
        """
        self.name, self.timeout_s = name, timeout_s
        self.key = tuple(key) or (name,)

    @abstractmethod
    def select(
        self, variables: str, where: str, timeout_s: float, page: tuple[int, int | None] | None = None
    ) -> tuple[Sequence[Binding], bool]:
        """Run a query of ours and return its rows, and whether they are all there are.

        `page` asks for so many rows from some offset on, in order, or with the offset None for any of them.
        """

    @abstractmethod
    def query(self, query: Sent, limits: QueryLimits) -> SparqlResult:
        """Run a checked query of a user and return up to one row more than allowed."""

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterable[Result]:
        """Do something for each item, perhaps several at a time, and return the results in order."""
        return [work(item) for item in items]

    def settle(self, timeout_s: float | None) -> bool:
        """Adapt to the server after the first answer; True if it reads other graphs from now on."""
        return False

    def page_rows(self) -> int:
        """Return how many rows one request may give."""
        return MOST_ROWS

    def sortable_rows(self, problem: str, wanted: int) -> int:
        """Return how many rows the engine sorts if it refused to sort more; 0 if that was not the problem."""
        return 0

    def fingerprint(self) -> str | None:
        """Return a mark that a change of the graph changes; None if the engine gives none quickly."""
        return None

    def close(self) -> None:  # noqa: B027
        """Release connections and processes."""


@dataclass(frozen=True)
class Naming:
    """IRIs of the predicates that name nodes and give them types; None chooses those that the graph has.

    Known vocabularies are RDF Schema, SKOS, schema.org, FOAF, Freebase, Wikidata and DBpedia.
    """

    names: Sequence[str] | None = None
    """Best first."""
    aliases: Sequence[str] | None = None
    types: Sequence[str] | None = None
    """A node has all types that they lead to, those of the first of them first."""


class SparqlReads:
    """Reads nodes and edges of an RDF graph through a client, whatever limits of rows the server has.

    Args:
        client: sends the queries.
        naming: predicates of names and types; None chooses by the content of the graph.
        languages: tags of the texts to read, beside untagged ones; None reads all.
        language: tag of the language of names, where a node has them in several.
    """

    def __init__(self, client: SparqlClient, naming: Naming, languages: Collection[str] | None, language: str) -> None:
        self.client, self.naming, self.languages, self.language = client, naming, languages, language
        self._vocabulary: NamePredicates | None = None
        self._kinds: Mapping[str, Mapping[str, int]] | None = None

    def refresh(self) -> None:
        """Forget the predicates, so that they are read again on demand."""
        self._vocabulary = self._kinds = None

    # Requests

    def texts(self, predicate: str) -> Iterator[list[tuple[str, str]]]:
        """Yield IRIs with their texts under a predicate, in pages."""
        if self.client.joins_all:
            with suppress(QueryInvalid, QueryTooLarge):
                where = sparql.joined_values(predicate, self.languages)
                groups = [row for page in self.pages("?tail ?count ?ends", where) for row in page]
                lines = sorted(line for row in groups for line in joined_ends(row, "\n"))
                yield [(iri, text) for iri, _, text in (line.partition(sparql.BETWEEN) for line in lines)]
                return
        for rows in self.pages("?n ?v", sparql.all_values([predicate], False, self.languages)):
            yield [(row["n"]["value"], row["v"]["value"]) for row in rows]

    def all_values(self, predicates: Sequence[str], types: bool) -> Iterator[Binding]:
        """Yield the values of some predicates for all nodes, ?n ?k ?v: classes, or else literals."""
        if self.client.joins_all:
            with suppress(QueryInvalid, QueryTooLarge):
                yield from list(self._joined_classes(predicates) if types else self._joined_literals(predicates))
                return
        for rows in self.pages("?n ?k ?v", sparql.all_values(predicates, types, self.languages)):
            yield from rows

    def _joined_classes(self, predicates: Sequence[str]) -> Iterator[Binding]:
        for page in self.pages("?near ?k ?count ?ends", sparql.joined_classes(predicates)):
            for row in page:
                class_ = {"type": "uri", "value": row["near"]["value"]}
                for iri in joined_ends(row):
                    yield {"n": {"type": "uri", "value": iri}, "k": row["k"], "v": class_}

    def _joined_literals(self, predicates: Sequence[str]) -> Iterator[Binding]:
        for page in self.pages("?tail ?k ?lang ?count ?ends", sparql.joined_tagged(predicates, self.languages)):
            for row in page:
                for line in joined_ends(row, "\n"):
                    iri, _, text = line.partition(sparql.BETWEEN)
                    value = {"type": "literal", "value": text, "xml:lang": row["lang"]["value"]}
                    yield {"n": {"type": "uri", "value": iri}, "k": row["k"], "v": value}
        for rows in self.pages("?n ?k ?v", sparql.untagged_values(predicates)):
            yield from rows

    def gather(
        self,
        variables: str,
        where: Callable[[Sequence[Key]], str],
        keys: Sequence[Key],
        timeout_s: float | None = None,
        batch_size: int | None = None,
        count: Callable[[Sequence[Key]], Mapping[Key, int]] | None = None,
    ) -> list[Binding]:
        """Return all rows for all keys, in spite of row limits: keys are divided, and one key's rows paged.

        With `count`, which returns the number of rows of each key, keys are divided by that, else halved.
        """
        limit_s = self.client.timeout_s if timeout_s is None else timeout_s
        size = batch_size or self.client.batch

        def ask(batch: Sequence[Key], counted: bool = False) -> Sequence[Binding]:
            rows, whole = self.client.select(variables, where(batch), limit_s)
            if whole:
                return rows
            if len(batch) == 1:
                return [row for page in self._in_pages(variables, where(batch), max(len(rows), 1)) for row in page]
            middle = len(batch) // 2
            parts = [batch[:middle], batch[middle:]]
            if count is not None and not counted and rows:
                parts = _divided(batch, count(batch), len(rows))
            return [row for part in parts for row in ask(part, True)]

        batches = [keys[start : start + size] for start in range(0, len(keys), size)]
        return [row for rows in self.client.map(ask, batches) for row in rows]

    def pages(self, variables: str, where: str) -> Iterator[Sequence[Binding]]:
        """Yield all rows of a pattern: together, if the store gives them so, else in pages."""
        rows, whole = self.client.select(variables, where, self.client.timeout_s)
        if whole:
            yield rows
        else:
            yield from self._in_pages(variables, where, max(len(rows), 1))

    def _in_pages(self, variables: str, where: str, page: int) -> Iterator[Sequence[Binding]]:
        """Yield rows page by page until one is empty: a short page may be one that was cut."""
        offset = 0
        while rows := self.client.select(variables, where, self.client.timeout_s, (page, offset))[0]:
            yield rows
            offset += len(rows)

    def every_node(self) -> Iterator[list[str]]:
        """Yield the IRIs of all nodes in text order, in as few lists as the store allows."""
        if self.client.joins_all and not self.words().reified:
            with suppress(QueryInvalid, QueryTooLarge):
                groups = [row for page in self.pages("?tail ?count ?ends", sparql.joined_nodes()) for row in page]
                yield sorted(iri for row in groups for iri in joined_ends(row) if not iri.startswith(EDGE))
                return
        where = sparql.every_node(self.words().reified)
        rows, whole = self.client.select("?n", where, self.client.timeout_s)
        pages = (
            [sorted(rows, key=lambda row: str(row["n"]["value"]))]
            if whole
            else self._in_pages("?n", where, max(len(rows), 1))
        )
        for page in pages:
            yield [iri for iri in values_of(page, "n") if not iri.startswith(EDGE)]

    def words(self, timeout_s: float | None = None) -> NamePredicates:
        """Return the predicates of names and types: those of the settings, else those of the graph."""
        if self._vocabulary is None:
            self._vocabulary = self._choose_predicates(timeout_s)
            if self.client.settle(timeout_s):
                self._vocabulary = self._choose_predicates(timeout_s)
        return self._vocabulary

    def _choose_predicates(self, timeout_s: float | None) -> NamePredicates:
        given = self.naming
        known = [*NAME_PREDICATES, *ALIAS_PREDICATES, *(iri for group in TYPE_PREDICATES for iri in group)]
        rows = self.client.select("?k", sparql.present([*known, RDF_SUBJECT]), timeout_s or self.client.timeout_s)[0]
        here = set(values_of(rows, "k"))

        def chosen(wanted: Sequence[str] | None, candidates: Sequence[str]) -> tuple[str, ...]:
            return tuple(iri for iri in candidates if iri in here) if wanted is None else tuple(wanted)

        groups = [chosen(None, group) for group in TYPE_PREDICATES]
        types = given.types or next((group for group in groups if group), (RDF_TYPE,))
        return NamePredicates(
            chosen(given.names, NAME_PREDICATES),
            chosen(given.aliases, ALIAS_PREDICATES),
            tuple(types),
            RDF_SUBJECT in here,
        )

    def descriptions(self, iris: Sequence[str], words: NamePredicates) -> list[Binding]:
        """Return the literals and classes of nodes, ?n ?k ?v."""
        return self.gather(
            "?n ?k ?v", lambda batch: sparql.describe(batch, words, self.languages, self.client.lookup), iris
        )

    def every_edge(self, relations: Sequence[str], reified: bool, pure: bool) -> Sequence[Stated]:
        """Ask for all edges of some relations."""
        if self.client.joins_all and pure and not reified:
            with suppress(QueryInvalid, QueryTooLarge):
                triples: list[Stated] = []
                for page in self.pages("?near ?p ?count ?ends", sparql.joined_edges(relations)):
                    for row in page:
                        predicate, tail = row["p"]["value"], row["near"]["value"]
                        triples += [(head, predicate, tail, "") for head in joined_ends(row)]
                return triples
        where = sparql.all_edges(relations, reified, pure)
        variables = "?s ?p ?o ?e" if reified else "?s ?p ?o"
        return [read_triple(row) for page in self.pages(variables, where) for row in page]

    def counted(self, kind: str) -> Mapping[str, int]:
        """Return how many triples of each predicate are edges ("e"), end in literals ("l"), or are neither ("b")."""
        if self._kinds is None:
            where = sparql.predicate_kinds(self.words().reified, self.client.repeats)
            rows = self.gather("?p ?kind ?count", lambda _: where, [""])
            kinds: dict[str, dict[str, int]] = {}
            for row in rows:
                if "p" in row:
                    kinds.setdefault(row["kind"]["value"], {})[row["p"]["value"]] = int(row["count"]["value"])
            self._kinds = kinds
        return self._kinds.get(kind, {})

    def in_groups(self, counts: Mapping[str, int]) -> Iterator[list[str]]:
        """Yield predicates in groups of which one request gives all rows, if it can."""
        group: list[str] = []
        rows = 0
        for predicate, count in sorted(counts.items()):
            if group and (rows + count > self.client.page_rows() or len(group) == _TOGETHER):
                yield group
                group, rows = [], 0
            group.append(predicate)
            rows += count
        if group:
            yield group

    def existing(self, iris: Sequence[str]) -> set[str]:
        """Return those that are nodes."""
        reified = self.words().reified
        asked = [iri for iri in iris if addressable(iri)]
        return set(values_of(self.gather("?n", lambda batch: sparql.existing(batch, reified), asked), "n"))

    def edges_of(self, iris: Sequence[str], direction: Direction, wanted: Sequence[str] | None) -> Sequence[Stated]:
        """Ask for the edges of nodes."""
        reified = self.words().reified
        if self.client.joins and not reified:
            with suppress(QueryInvalid, QueryTooLarge):
                return self._joined_edges_of(iris, direction, wanted)
        rows = self.gather(
            "?s ?p ?o ?e" if reified else "?s ?p ?o",
            lambda batch: sparql.edges(batch, direction, wanted, reified, self.client.lookup),
            iris,
            count=self._degrees,
        )
        return list(map(read_triple, rows))

    def _joined_edges_of(
        self, iris: Sequence[str], direction: Direction, wanted: Sequence[str] | None
    ) -> Sequence[Stated]:
        """Ask for the edges of nodes, those of one relation at one end in one text. Raises `QueryInvalid`."""
        variables = "?near ?p ?way ?count ?ends"
        triples: list[Stated] = []
        rows = self.gather(
            variables, lambda batch: sparql.grouped_edges(batch, direction, wanted, self.client.lookup), iris
        )
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
        for iri, _, _, count in self.count_edges(iris):
            degrees[iri] = degrees.get(iri, 0) + count
        return degrees

    def count_edges(self, keys: Sequence[str]) -> Sequence[tuple[str, str, bool, int]]:
        """Ask for the number of edges by node, relation, and whether they come in."""
        reified = self.words().reified
        rows = self.gather(
            "?n ?p ?way ?edges",
            lambda batch: sparql.touching_counts(batch, reified, self.client.lookup),
            [iri for iri in keys if addressable(iri)],
        )
        return [
            (row["n"]["value"], row["p"]["value"], row["way"]["value"] == "in", int(row["edges"]["value"]))
            for row in rows
            if "n" in row  # some stores give one row of nothing for a group of nothing
        ]


def read_triple(row: Binding) -> Stated:
    """Read a row of ?s ?p ?o ?e."""
    return row["s"]["value"], row["p"]["value"], row["o"]["value"], row["e"]["value"] if "e" in row else ""


def joined_ends(row: Binding, between: str = sparql.BETWEEN) -> list[str]:
    """Return the IRIs that were joined. Raises `QueryInvalid` if their number differs from the count."""
    ends = sparql.split(row, between)
    if ends is None:
        raise QueryInvalid("the engine cuts long texts")
    return ends


def _divided(keys: Sequence[Key], rows: Mapping[Key, int], most: int) -> list[Sequence[Key]]:
    """Divide keys so that each part has fewer than so many rows, if it is not a single key; in order."""
    parts: list[list[Key]] = [[]]
    held = 0
    for key in keys:
        if parts[-1] and held + rows.get(key, 0) >= most:
            parts.append([])
            held = 0
        parts[-1].append(key)
        held += rows.get(key, 0)
    return list(parts) if len(parts) > 1 else [keys[: len(keys) // 2], keys[len(keys) // 2 :]]


class RdfNames:
    """Reads names, types and properties out of literals, and abbreviates IRIs.

    Args:
        reads: reads literals and classes.
        prefixes: abbreviations of labels; a namespace that is met for the first time gets one.
    """

    def __init__(self, reads: SparqlReads, prefixes: Prefixes) -> None:
        self._reads = reads
        self.prefixes = prefixes
        self._labelling = threading.RLock()
        self._called: dict[str, str] = {}

    def class_names(self, classes: Iterable[str]) -> Mapping[str, str]:
        """Return the names of classes: the end of their IRI, or their label if that end has no meaning (Freebase)."""
        words = self._reads.words()
        unknown = [iri for iri in dict.fromkeys(classes) if iri not in self._called]
        if unknown and words.names_classes:
            asked = [iri for iri in unknown if addressable(iri)]
            bare = NamePredicates(words.names, (), (RDF_TYPE,))
            for iri, values in group_values(self._reads.descriptions(asked, bare)).items():
                if found := best_name(values, words.names, self._reads.language):
                    self._called[iri] = found[1].text
        for iri in unknown:
            self._called.setdefault(iri, local_name(iri))
        return self._called

    def label(self, iri: str) -> str:
        """Return the label of a relation or property; a namespace that is met for the first time gets a prefix."""
        label = self.prefixes.label(iri)
        if label == iri:
            with self._labelling:
                self.prefixes = self.prefixes.covering([iri])
                label = self.prefixes.label(iri)
        return label

    def describe(self, rows: Iterable[Binding]) -> dict[str, tuple[str, str, Properties, tuple[str, ...]]]:
        """Return name, first type, properties and further types of each node in rows of ?n ?k ?v."""
        words, described = self._reads.words(), {}
        collected = group_values(rows)
        classes = {iri: classes_of(values, words.types) for iri, values in collected.items()}
        called = self.class_names(iri for found in classes.values() for iri in found)
        for iri, values in collected.items():
            literals = {
                key: found
                for key, terms in values.items()
                if key != RDF_TYPE and (found := [term for term in terms if term["type"] != "uri"])
            }
            named = best_name(literals, words.names, self._reads.language)
            properties = self.properties(literals)
            if named is not None and properties.get(label := self.label(named[0])) == named[1].text:
                properties = {key: value for key, value in properties.items() if key != label}
            name = fallback_name(iri) if named is None else named[1].text
            first, *further = dict.fromkeys(called[class_] for class_ in classes[iri]) or [""]
            described[iri] = (name, first, properties or NO_PROPERTIES, tuple(further))
        return described

    def properties(self, values: Mapping[str, Sequence[Term]]) -> Properties:
        properties: dict[str, Value] = {}
        for key, terms in values.items():
            label = self.label(key)
            literals = [read_literal(term) for term in terms]
            properties[label] = preferred(literals, self._reads.language).value
            if len(literals) > 1:
                properties[label + ALL_VALUES] = listed(literals)
        return properties

    def cells(self, bindings: Sequence[Binding], timeout_s: float) -> Callable[[Term], Cell]:
        """Return a converter of the terms of some rows into cells, with the names behind their IRIs looked up."""
        words = self._reads.words()
        iris = {term["value"]: None for row in bindings for term in parts_of(row.values()) if term["type"] == "uri"}
        asked = [iri for iri in iris if addressable(iri) and not iri.startswith((TERM, EDGE))]
        rows = self._reads.gather(
            "?n ?k ?v",
            lambda batch: sparql.met(batch, words, self._reads.languages, self._reads.client.lookup),
            asked,
            timeout_s,
        )
        texts = {row["n"]["value"] for row in rows if "k" not in row}
        nodes = self.describe(row for row in rows if "k" in row)

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
                return self.prefixes.label(iri)
            return NodeCell(node_id(iri), *nodes.get(iri, (fallback_name(iri), "", NO_PROPERTIES, ())))

        return cell


def group_values(rows: Iterable[Binding]) -> dict[str, dict[str, list[Term]]]:
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
