"""Any columnar graph as RDF; what was RDF comes back as it was."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from byokg.errors import import_extra
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.rdf.iris import (
    EDGE,
    NAME_PREDICATES,
    RDF_OBJECT,
    RDF_PREDICATE,
    RDF_SUBJECT,
    RDF_TYPE,
    RDFS_LABEL,
    XSD,
    Prefixes,
    node_iri,
    term_iri,
)
from byokg.graph.rdf.literals import ALL_VALUES, EXACT_TYPES, Literal, of_value
from byokg.graph.store import Direction
from byokg.types import EntityId, Node, Properties, Value

_CHUNK = 10_000
_CACHED = 1 << 18


def graph_prefixes(graph: ColumnarGraph) -> Prefixes:
    """Return the prefixes behind the labels of a graph that was RDF; the usual ones for any other."""
    return Prefixes(graph.source["prefixes"]) if graph.source.get("kind") == "rdf" else Prefixes()


def graph_quads(graph: ColumnarGraph) -> Iterator[Any]:
    """Write a graph as RDF, quad by quad, all in the default graph.

    What was RDF gets its own IRIs, languages and datatypes back, and nodes that had no name the end of their IRI as
    `rdfs:label`. Otherwise nodes are `node:New%20York`, relations,
    properties and types `kg:directed%20by`, and names `rdfs:label`. An edge with properties, and each of several
    parallel ones, is described besides by `?e rdf:subject ?s ; rdf:predicate ?p ; rdf:object ?o ; kg:since 1990`.
    """
    pyoxigraph = import_extra("pyoxigraph", "sparql", "writing RDF")
    quad, named, iris = pyoxigraph.Quad, pyoxigraph.NamedNode, _Iris(graph)
    name = functools.cache(named)

    @functools.lru_cache(_CACHED)
    def entity_of(entity: str) -> Any:
        return named(node_iri(entity))

    def literal(value: Literal) -> Any:
        if value.language:
            return pyoxigraph.Literal(value.text, language=value.language)
        return pyoxigraph.Literal(value.text, datatype=name(value.datatype))

    parts = [named(iri) for iri in (RDF_SUBJECT, RDF_PREDICATE, RDF_OBJECT)]
    statement_count = 0
    for ids in _chunks(graph.entities()):
        entities = [entity_of(entity) for entity in ids]
        for entity, node in zip(entities, graph.nodes(ids), strict=True):
            for predicate, value in iris.facts(node):
                yield quad(entity, name(predicate), literal(value))
            if node.type:
                yield quad(entity, name(RDF_TYPE), name(iris.type(node.type)))
        batch = graph.edges(graph.numbers(ids), Direction.OUT)
        labels = [name(iris.term(label)) for label in graph.relations]
        tails = [entity_of(entity) for entity in graph.ids(batch.tail)]
        triples = list(zip(batch.origin.tolist(), batch.relation.tolist(), batch.tail.tolist(), strict=True))
        repeated = Counter(triples)
        for row, (triple, properties) in enumerate(zip(triples, graph.edge_properties(batch.edge), strict=True)):
            ends = (entities[triple[0]], labels[triple[1]], tails[row])
            yield quad(*ends)
            if properties or repeated[triple] > 1:
                statement_count += 1
                statement = named(f"{EDGE}{statement_count}")
                for part, end in zip(parts, ends, strict=True):
                    yield quad(statement, part, end)
                for predicate, value in iris.values(properties):
                    yield quad(statement, name(predicate), literal(value))


class _Iris:
    """How the labels and values of one graph are written."""

    def __init__(self, graph: ColumnarGraph) -> None:
        self._rdf = graph.source.get("kind") == "rdf"
        self._prefixes = graph_prefixes(graph)
        self._types: Mapping[str, str] = graph.source.get("types", {}) if self._rdf else {}
        self._kinds: Mapping[str, str] = graph.source.get("literals", {}) if self._rdf else {}
        self._names = [self._prefixes.label(iri) for iri in NAME_PREDICATES]
        self.term = functools.cache(self._prefixes.expand if self._rdf else term_iri)

    def type(self, label: str) -> str:
        """Return the class of a type."""
        return self._types.get(label) or self.term(label)

    def facts(self, node: Node) -> Iterator[tuple[str, Literal]]:
        """Yield (predicate, literal) for a node's name and properties."""
        properties = dict(node.properties)
        if not self._rdf:
            yield RDFS_LABEL, Literal(node.name)
        elif self._names[0] + ALL_VALUES not in properties and node.name not in (
            node.id,
            *(properties.get(key) for key in self._names),
        ):
            yield RDFS_LABEL, self._of_kind(self._names[0], node.name)
        yield from self.values(properties)

    def values(self, properties: Properties) -> Iterator[tuple[str, Literal]]:
        """Yield (predicate, literal) for properties."""
        for key, value in properties.items():
            if not self._rdf:
                yield self.term(key), of_value(value)
            elif key.endswith(ALL_VALUES):
                predicate = self.term(key.removesuffix(ALL_VALUES))
                for literal in parse_list(str(value)):
                    yield predicate, literal
            elif key + ALL_VALUES not in properties:
                yield self.term(key), self._of_kind(key, value)

    def _of_kind(self, key: str, value: Value) -> Literal:
        kind = self._kinds.get(key)
        if kind is None:
            return of_value(value)
        if kind.startswith("@"):
            return Literal(str(value), language=kind[1:])
        if isinstance(value, float) and kind in EXACT_TYPES:
            value = format(Decimal(repr(value)), "f" if kind == XSD + "decimal" else ".0f")
        return Literal(of_value(value).text, kind)


def parse_list(text: str) -> list[Literal]:
    """Read what `literals.listed` wrote."""
    pyoxigraph = import_extra("pyoxigraph", "sparql", "writing RDF")
    found = pyoxigraph.parse(f"<x:s> <x:p> {text} .", pyoxigraph.RdfFormat.TURTLE)
    literals = (quad.object for quad in found)
    return [Literal(literal.value, literal.datatype.value, (literal.language or "").lower()) for literal in literals]


def _chunks(ids: Iterable[EntityId]) -> Iterator[list[EntityId]]:
    waiting = iter(ids)
    while chunk := list(itertools.islice(waiting, _CHUNK)):
        yield chunk
