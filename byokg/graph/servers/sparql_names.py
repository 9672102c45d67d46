"""Names, types and properties of nodes of RDF stores, for any vocabulary."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from byokg.errors import QueryInvalid, QueryTooLarge
from byokg.graph.guard.sparql import addressable
from byokg.graph.rdf.literals import listed, preferred
from byokg.graph.rdf.terms import (
    ALIAS_PREDICATES,
    EDGE,
    NAME_PREDICATES,
    RDF_SUBJECT,
    RDF_TYPE,
    TYPE_PREDICATES,
    Prefixes,
    fallback_name,
    local_name,
    node_id,
)
from byokg.graph.read_cache import digest
from byokg.graph.servers import sparql_text as sparql
from byokg.graph.servers.base import NumberingStore
from byokg.graph.servers.sparql_text import (
    Binding,
    NamePredicates,
    Term,
    best_name,
    classes_of,
    read_literal,
    values_of,
)
from byokg.graph.store import ALL_VALUES
from byokg.text.names import encodable
from byokg.types import NO_PROPERTIES, EntityId, Properties, Value

Key = TypeVar("Key")
Item = TypeVar("Item")
Result = TypeVar("Result")


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


class SparqlNames(NumberingStore):
    """Asks an RDF store in batches, and reads names, types and properties out of its literals."""

    def __init__(
        self,
        name: str,
        prefixes: Prefixes,
        languages: Collection[str] | None,
        timeout_s: float,
        naming: Naming | None = None,
    ) -> None:
        """Set up an empty numbering.

        Args:
            name: the graph, for messages.
            prefixes: abbreviations of labels.
            languages: tags of the texts to read, beside untagged ones; None reads all.
            timeout_s: limit of each request of the traversal.
            naming: predicates of names and types; None chooses all by the graph's content.
        """
        super().__init__(name, timeout_s)
        self._naming = naming or Naming()
        self._prefixes = prefixes
        self._languages = languages
        self._labels: list[str] = []
        self._labelling = threading.RLock()
        self._vocabulary: NamePredicates | None = None
        self._batch = 1000
        """Nodes per request."""
        self._called: dict[str, str] = {}
        self._lookup = sparql.PLAIN
        self._joins = self._joins_all = False
        """Whether the engine gives the edges of some nodes, or of all, faster as one text than row by row."""

    # Execution of requests

    @abstractmethod
    def _select(
        self, variables: str, where: str, timeout_s: float, page: tuple[int, int | None] | None = None
    ) -> tuple[Sequence[Binding], bool]:
        """Run a query of ours and return its rows, and whether they are all there are.

        `page` asks for so many rows from some offset on, in order, or with the offset None for any of them.
        """

    # Names

    def _map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterable[Result]:
        """Do something for each item, perhaps several at a time, and return the results in order."""
        return [work(item) for item in items]

    @property
    def names_key(self) -> str:
        """Return a key that differs between graphs with other ids or names."""
        return digest(self._name, self._naming.names, self._naming.aliases, sorted(self._languages or ()))

    def resembling(self, texts: Sequence[str], k: int) -> list[list[tuple[int, str]]] | None:
        """Return None: SPARQL knows no full-text index."""
        return None

    def named(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the numbers of the nodes that are called just so, for each text."""
        words = self._words()
        predicates = (*words.names, *words.aliases)
        tags = tuple(dict.fromkeys(("en", *(tag.lower() for tag in self._languages or ()))))
        sought = [text for text in dict.fromkeys(texts) if encodable(text) == text]
        if not predicates:
            return [[] for _ in texts]
        rows = self._gather("?n ?v", lambda batch: sparql.called(batch, predicates, tags), sought)
        by_name: dict[str, set[str]] = {}
        for row in rows:
            by_name.setdefault(row["v"]["value"], set()).add(row["n"]["value"])
        return [self._nodes.add(sorted(by_name.get(text, ()))).tolist() for text in texts]

    def named_pages(self) -> Iterator[list[tuple[EntityId, str]]]:
        """Yield ids with their names and further names, in pages."""
        yield from map(list, self._counted_out(self._named_pages(), ended=False))

    def _named_pages(self) -> Iterator[list[tuple[EntityId, str]]]:
        words = self._words()
        seen: set[str] = set()
        for predicate in (*words.names, *words.aliases):
            for rows in self._texts(predicate):
                page = [(iri, text) for iri, text in rows if text]
                seen.update(iri for iri, _ in page)
                yield [(node_id(iri), text) for iri, text in page if not iri.startswith(EDGE)]
        for iris in self._every_node():
            yield [(node_id(iri), fallback_name(iri)) for iri in iris if iri not in seen]

    def _texts(self, predicate: str) -> Iterator[list[tuple[str, str]]]:
        """Yield IRIs with their texts under a predicate, in pages."""
        if self._joins_all:
            with suppress(QueryInvalid, QueryTooLarge):
                where = sparql.joined_values(predicate, self._languages)
                groups = [row for page in self._pages("?tail ?count ?ends", where) for row in page]
                lines = sorted(line for row in groups for line in joined_ends(row, "\n"))
                yield [(iri, text) for iri, _, text in (line.partition(sparql.BETWEEN) for line in lines)]
                return
        for rows in self._pages("?n ?v", sparql.all_values([predicate], False, self._languages)):
            yield [(row["n"]["value"], row["v"]["value"]) for row in rows]

    def _all_values(self, predicates: Sequence[str], types: bool) -> Iterator[Binding]:
        """Yield the values of some predicates for all nodes, ?n ?k ?v: classes, or else literals."""
        if self._joins_all:
            with suppress(QueryInvalid, QueryTooLarge):
                yield from list(self._joined_classes(predicates) if types else self._joined_literals(predicates))
                return
        for rows in self._pages("?n ?k ?v", sparql.all_values(predicates, types, self._languages)):
            yield from rows

    def _joined_classes(self, predicates: Sequence[str]) -> Iterator[Binding]:
        for page in self._pages("?near ?k ?count ?ends", sparql.joined_classes(predicates)):
            for row in page:
                class_ = {"type": "uri", "value": row["near"]["value"]}
                for iri in joined_ends(row):
                    yield {"n": {"type": "uri", "value": iri}, "k": row["k"], "v": class_}

    def _joined_literals(self, predicates: Sequence[str]) -> Iterator[Binding]:
        for page in self._pages("?tail ?k ?lang ?count ?ends", sparql.joined_tagged(predicates, self._languages)):
            for row in page:
                for line in joined_ends(row, "\n"):
                    iri, _, text = line.partition(sparql.BETWEEN)
                    value = {"type": "literal", "value": text, "xml:lang": row["lang"]["value"]}
                    yield {"n": {"type": "uri", "value": iri}, "k": row["k"], "v": value}
        for rows in self._pages("?n ?k ?v", sparql.untagged_values(predicates)):
            yield from rows

    # Asking, in batches

    def _gather(
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
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        size = batch_size or self._batch

        def ask(batch: Sequence[Key], counted: bool = False) -> Sequence[Binding]:
            rows, whole = self._select(variables, where(batch), limit_s)
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
        return [row for rows in self._map(ask, batches) for row in rows]

    def _pages(self, variables: str, where: str) -> Iterator[Sequence[Binding]]:
        """Yield all rows of a pattern: together, if the store gives them so, else in pages."""
        rows, whole = self._select(variables, where, self._timeout_s)
        if whole:
            yield rows
        else:
            yield from self._in_pages(variables, where, max(len(rows), 1))

    def _in_pages(self, variables: str, where: str, page: int) -> Iterator[Sequence[Binding]]:
        """Yield rows page by page until one is empty: a short page may be one that was cut."""
        offset = 0
        while rows := self._select(variables, where, self._timeout_s, (page, offset))[0]:
            yield rows
            offset += len(rows)

    def _every_node(self) -> Iterator[list[str]]:
        """Yield the IRIs of all nodes in text order, in as few lists as the store allows."""
        if self._joins_all and not self._words().reified:
            with suppress(QueryInvalid, QueryTooLarge):
                groups = [row for page in self._pages("?tail ?count ?ends", sparql.joined_nodes()) for row in page]
                yield sorted(iri for row in groups for iri in joined_ends(row) if not iri.startswith(EDGE))
                return
        where = sparql.every_node(self._words().reified)
        rows, whole = self._select("?n", where, self._timeout_s)
        pages = (
            [sorted(rows, key=lambda row: str(row["n"]["value"]))]
            if whole
            else self._in_pages("?n", where, max(len(rows), 1))
        )
        for page in pages:
            yield [iri for iri in values_of(page, "n") if not iri.startswith(EDGE)]

    def _words(self, timeout_s: float | None = None) -> NamePredicates:
        """Return the predicates of names and types: those of the settings, else those of the graph."""
        if self._vocabulary is None:
            given = self._naming
            known = [*NAME_PREDICATES, *ALIAS_PREDICATES, *(iri for group in TYPE_PREDICATES for iri in group)]
            rows = self._select("?k", sparql.present([*known, RDF_SUBJECT]), timeout_s or self._timeout_s)[0]
            here = set(values_of(rows, "k"))

            def chosen(wanted: Sequence[str] | None, candidates: Sequence[str]) -> tuple[str, ...]:
                return tuple(iri for iri in candidates if iri in here) if wanted is None else tuple(wanted)

            groups = [chosen(None, group) for group in TYPE_PREDICATES]
            types = given.types or next((group for group in groups if group), (RDF_TYPE,))
            self._vocabulary = NamePredicates(
                chosen(given.names, NAME_PREDICATES),
                chosen(given.aliases, ALIAS_PREDICATES),
                tuple(types),
                RDF_SUBJECT in here,
            )
        return self._vocabulary

    def _class_names(self, classes: Iterable[str]) -> Mapping[str, str]:
        """Return the names of classes: the end of their IRI, or their label if that end has no meaning (Freebase)."""
        words = self._words()
        unknown = [iri for iri in dict.fromkeys(classes) if iri not in self._called]
        if unknown and words.names_classes:
            asked = [iri for iri in unknown if addressable(iri)]
            bare = NamePredicates(words.names, (), (RDF_TYPE,))
            rows = self._gather(
                "?n ?k ?v", lambda batch: sparql.describe(batch, bare, self._languages, self._lookup), asked
            )
            for iri, values in self._collect(rows).items():
                if found := best_name(values, words.names):
                    self._called[iri] = found[1].text
        for iri in unknown:
            self._called.setdefault(iri, local_name(iri))
        return self._called

    def _label(self, iri: str) -> str:
        """Return the label of a relation or property; a namespace that is met for the first time gets a prefix."""
        label = self._prefixes.label(iri)
        if label == iri:
            with self._labelling:
                self._prefixes = self._prefixes.covering([iri])
                label = self._prefixes.label(iri)
        return label

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

    def _describe(self, rows: Iterable[Binding]) -> dict[str, tuple[str, str, Properties, tuple[str, ...]]]:
        """Return name, first type, properties and further types of each node in rows of ?n ?k ?v."""
        words, described = self._words(), {}
        collected = self._collect(rows)
        classes = {iri: classes_of(values, words.types) for iri, values in collected.items()}
        called = self._class_names(iri for found in classes.values() for iri in found)
        for iri, values in collected.items():
            literals = {
                key: found
                for key, terms in values.items()
                if key != RDF_TYPE and (found := [term for term in terms if term["type"] != "uri"])
            }
            named = best_name(literals, words.names)
            properties = self._properties(literals)
            if named is not None and properties.get(label := self._label(named[0])) == named[1].text:
                properties = {key: value for key, value in properties.items() if key != label}
            name = fallback_name(iri) if named is None else named[1].text
            first, *further = dict.fromkeys(called[class_] for class_ in classes[iri]) or [""]
            described[iri] = (name, first, properties or NO_PROPERTIES, tuple(further))
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
