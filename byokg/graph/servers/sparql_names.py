"""Names, types and properties of nodes of RDF stores, for any vocabulary."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from byokg.graph.guard.sparql import addressable
from byokg.graph.rdf.literals import listed, preferred
from byokg.graph.rdf.terms import EDGE, RDF_TYPE, TERM, Prefixes, fallback_name, local_name, node_id
from byokg.graph.servers import sparql_text as sparql
from byokg.graph.servers.sparql_reads import SparqlReads
from byokg.graph.servers.sparql_text import (
    Binding,
    NamePredicates,
    Term,
    best_name,
    classes_of,
    parts_of,
    read_literal,
)
from byokg.graph.store import ALL_VALUES
from byokg.types import NO_PROPERTIES, Cell, NodeCell, Properties, Value


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
                if found := best_name(values, words.names):
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
            named = best_name(literals, words.names)
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
            properties[label] = preferred(literals).value
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
