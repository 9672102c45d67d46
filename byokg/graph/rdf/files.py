"""RDF files: read quad by quad or in blocks of columns, and any columnar graph written as RDF.

pyoxigraph reads all but N-Triples, which `ntriples` does. RDF survives import and export unchanged.

OWL restrictions are read as edges: `X subClassOf [onProperty p; someValuesFrom C]` becomes `X p C`, within
intersections, too, whose named members become superclasses; the nameless nodes are dropped. Classes that are defined in
other ways stay as they are.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.parsers import expat

from byokg.errors import ImportFailed, import_extra
from byokg.files import TextFile, uncompressed
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.rdf import ntriples
from byokg.graph.rdf.literals import EXACT_TYPES, Literal, of_value
from byokg.graph.rdf.ntriples import QUADS, START, BadLines, FilePosition, LiteralTypes, QuadBlock, columns
from byokg.graph.rdf.terms import (
    EDGE,
    NAME_PREDICATES,
    RDF,
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
from byokg.graph.store import ALL_VALUES, Direction
from byokg.types import EntityId, Node, Properties, Value

_OWL = "http://www.w3.org/2002/07/owl#"
_SUBCLASS = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
_DEFINING = (_SUBCLASS, f"{_OWL}equivalentClass")
_FILLERS = [f"{_OWL}{name}" for name in ("someValuesFrom", "allValuesFrom", "hasValue", "onClass")]
_FIRST, _REST, _NIL = f"{RDF}first", f"{RDF}rest", f"{RDF}nil"
_READ_BYTES = 1 << 20


def defines_restrictions(file: TextFile) -> bool:
    """Return True if a document names OWL's namespace and restrictions. Raises `ImportFailed`."""
    with file.reading(), file.open() as stream:
        before = stream.read(_READ_BYTES)
        if _OWL.encode() not in before:
            return False
        while before and b"Restriction" not in before:
            more = stream.read(_READ_BYTES)
            before = before[-20:] + more if more else b""
        return bool(before)


def read_restrictions(quads: Iterator[Any]) -> Iterator[Any]:
    """Yield pyoxigraph's quads, restrictions changed as described above; those of nameless nodes come last."""
    pyoxigraph = import_extra("pyoxigraph", "sparql", "reading RDF")
    definitions = _Definitions(pyoxigraph)
    uses: list[Any] = []
    for quad in quads:
        if isinstance(quad.subject, pyoxigraph.BlankNode):
            definitions.about.setdefault(quad.subject, []).append(quad)
        elif isinstance(quad.object, pyoxigraph.BlankNode):
            uses.append(quad)
        else:
            yield quad
    dropped: set[Any] = set()
    for quad in uses:
        seen: set[Any] = set()
        edges = definitions.edges(quad.object, seen) if quad.predicate.value in _DEFINING else None
        if edges is None:
            yield quad
            continue
        dropped |= seen
        for predicate, end in edges:
            yield pyoxigraph.Quad(quad.subject, predicate, end, quad.graph_name)
    for subject, about in definitions.about.items():
        if subject not in dropped:
            yield from about


class _Definitions:
    """The quads about the nameless nodes of a document."""

    def __init__(self, pyoxigraph: Any) -> None:
        self._pyoxigraph = pyoxigraph
        self.about: dict[Any, list[Any]] = {}

    def edges(self, node: Any, seen: set[Any]) -> list[tuple[Any, Any]] | None:
        """Return property and class of the edges that a nameless class stands for; None if it is another definition.

        The nameless nodes of the definition are added to `seen`.
        """
        if node in seen:
            return None
        seen.add(node)
        said = {quad.predicate.value: quad.object for quad in self.about.get(node, ())}
        relation = said.get(f"{_OWL}onProperty")
        filler = next((said[key] for key in _FILLERS if key in said), None)
        if isinstance(relation, self._pyoxigraph.NamedNode) and filler is not None:
            ends = self._named(filler, seen)
            return None if ends is None else [(relation, end) for end in ends]
        members = self._members(said.get(f"{_OWL}intersectionOf"), seen)
        edges: list[tuple[Any, Any]] = []
        for member in members or ():
            if isinstance(member, self._pyoxigraph.BlankNode):
                inner = self.edges(member, seen)
                if inner is None:
                    return None
                edges += inner
            else:
                edges.append((self._pyoxigraph.NamedNode(_SUBCLASS), member))
        return edges or None

    def _named(self, filler: Any, seen: set[Any]) -> list[Any] | None:
        """Return the classes or the value of a restriction; the members of a nameless union or intersection."""
        if not isinstance(filler, self._pyoxigraph.BlankNode):
            return [filler]
        seen.add(filler)
        said = {quad.predicate.value: quad.object for quad in self.about.get(filler, ())}
        listed = next((said[key] for key in (f"{_OWL}unionOf", f"{_OWL}intersectionOf") if key in said), None)
        members = self._members(listed, seen)
        named = members and not any(isinstance(member, self._pyoxigraph.BlankNode) for member in members)
        return members if named else None

    def _members(self, node: Any, seen: set[Any]) -> list[Any] | None:
        """Return the members of an RDF list; None if it is none."""
        found: list[Any] = []
        while isinstance(node, self._pyoxigraph.BlankNode) and node not in seen:
            seen.add(node)
            said = {quad.predicate.value: quad.object for quad in self.about.get(node, ())}
            found.append(said.get(_FIRST))
            node = said.get(_REST)
        return found if node is not None and getattr(node, "value", "") == _NIL and None not in found else None


FORMATS = {
    ".nt": "N_TRIPLES",
    ".nq": "N_QUADS",
    ".ttl": "TURTLE",
    ".trig": "TRIG",
    ".rdf": "RDF_XML",
    ".owl": "RDF_XML",
    ".xml": "RDF_XML",
    ".n3": "N3",
    ".jsonld": "JSON_LD",
    ".json": "JSON_LD",
}
"""Ending of a file's name to pyoxigraph's name for its format."""

_LABELLED = ("N_TRIPLES", "N_QUADS")
"""Formats in which every blank node has a label."""

_INVALID = re.compile(r"(\S.*?) is not a? ?valid")
"""How a message begins that names a wrong value."""

_PLACE = re.compile(r"^Parser error (at|between) line .*?: ")
"""pyoxigraph's report of a place, which is relative to a block."""


_HEAD_BYTES = 1 << 20
"""Part of a document that declares its entities and namespaces."""


class Document:
    """An RDF file being read; `prefixes` are those declared so far, so all of them once the quads have been read."""

    def __init__(
        self, path: Path, format: str, scope: str = "", kinds: LiteralTypes | None = None, bad: BadLines | None = None
    ) -> None:
        self._path = path
        self._scope = scope
        self._format = format
        self.prefixes: dict[str, str] = {}
        self.kinds = kinds or LiteralTypes()
        self.bad = bad or BadLines()

    def blocks(self, start: FilePosition = START) -> Iterator[tuple[QuadBlock, FilePosition]]:
        """Yield the quads as columns, and how far the file has been read with them.

        Args:
            start: where to go on; N-Triples only.

        Raises:
            ImportFailed: for the first quad that is none, or, of N-Triples, for one more than may be left out.
        """
        if self._format == "N_TRIPLES":
            yield from ntriples.blocks(self._path, self._scope, self.kinds, self.bad, start)
            return
        quads = self.quads()
        while some := list(islice(quads, QUADS)):
            yield columns(some, self._scope, self.kinds), START

    def quads(self) -> Iterator[Any]:
        """Yield pyoxigraph's quads, blank nodes relabelled so that the same file gives the same labels."""
        pyoxigraph = import_extra("pyoxigraph", "sparql", "reading RDF")
        labelled = self._format in _LABELLED
        relabel = _Relabelling(pyoxigraph)
        # Relative IRIs are resolved against the file's name alone: its place must not show in ids.
        base = None if labelled else f"file:///{quote(self._path.name)}"
        file = TextFile(self._path)
        if self._format == "RDF_XML":
            _refuse_entities(file)
        restricted = not labelled and defines_restrictions(file)
        with file.reading(), file.open() as stream:
            parsed = self._parse(stream, base)
            for quad in read_restrictions(parsed) if restricted else parsed:
                yield quad if labelled else relabel.quad(quad)

    def _line_of(self, reason: str) -> int | None:
        """Find the line of a fault in RDF/XML, which the parser does not report."""
        file, parser = TextFile(self._path), expat.ParserCreate()
        try:
            with file.reading(), file.open() as stream:
                parser.ParseFile(stream)
        except expat.ExpatError as error:
            return error.lineno
        found = _INVALID.match(reason)
        if found is None:
            return None
        with file.reading(), file.open() as stream:
            lines = [number for number, line in enumerate(stream, 1) if found[1].encode() in line]
        return lines[0] if len(lines) == 1 else None

    def _parse(self, stream: Any, base: str | None, lines: int = 0) -> Iterator[Any]:
        """Yield pyoxigraph's quads of a stream, before which there were so many lines."""
        pyoxigraph = import_extra("pyoxigraph", "sparql", "reading RDF")
        parser = pyoxigraph.parse(stream, getattr(pyoxigraph.RdfFormat, self._format), base_iri=base)
        while True:
            try:
                quad = next(parser, None)
            except SyntaxError as error:
                line = None if error.lineno is None else error.lineno + lines
                reason = _PLACE.sub("", error.msg)
                if "LoadDocumentCallback" in reason:
                    reason = "its @context is an address, and nothing is fetched; write the context into the file"
                    raise ImportFailed(self._path, line, reason) from error
                if line is None and self._format == "RDF_XML":
                    line = self._line_of(reason)
                raise ImportFailed(self._path, line, f"{reason}; correct the file") from error
            if quad is None:
                break
            yield quad
        self.prefixes = dict(parser.prefixes)


class Documents:
    """RDF files being read one after the other; blank nodes of one are not those of another."""

    def __init__(self, paths: Sequence[Path], bad: BadLines | None = None) -> None:
        """Get ready. Raises `ImportFailed` as `read_rdf` does."""
        several = len(paths) > 1
        self.kinds, self.bad = LiteralTypes(), bad or BadLines()
        scopes = [f"f{number}." if several else "" for number in range(1, len(paths) + 1)]
        shared = self.kinds, self.bad
        self._all = [read_rdf(path, scope, *shared) for path, scope in zip(paths, scopes, strict=True)]

    @property
    def prefixes(self) -> dict[str, str]:
        """Return the prefixes declared so far; of one declared twice, the first namespace."""
        return {name: space for document in reversed(self._all) for name, space in document.prefixes.items()}

    def blocks(self, number: int = 0, start: FilePosition = START) -> Iterator[tuple[QuadBlock, int, FilePosition]]:
        """Yield the quads of all files as columns, the number of the file, and how far it has been read with them.

        Args:
            number: file to go on with.
            start: where in it.

        Raises:
            ImportFailed: as `Document.blocks`.
        """
        for at, document in enumerate(self._all[number:], number):
            for block, position in document.blocks(start if at == number else START):
                yield block, at, position


def read_rdf(
    path: str | Path, scope: str = "", kinds: LiteralTypes | None = None, bad: BadLines | None = None
) -> Document:
    """Prepare to read an RDF file; the labels of blank nodes begin with `scope`.

    Raises `ImportFailed` when its ending is of no format, or it is missing.
    """
    path = Path(path)
    format = _format(path)
    if format is None:
        endings = ", ".join(FORMATS)
        reason = (
            f"no RDF format has the ending {path.suffix!r}; end the name in one of {endings}, and then .gz, .xz or .zst"
        )
        raise ImportFailed(path, None, reason)
    if not path.is_file():
        raise ImportFailed(path, None, "no such file")
    return Document(path, format, scope, kinds, bad)


def _format(path: Path) -> str | None:
    return FORMATS.get(uncompressed(path).suffix.lower())


def _refuse_entities(file: TextFile) -> None:
    """Refuse entities that hold others, which can fill the memory, or lie elsewhere. Raises `ImportFailed`."""
    parser = expat.ParserCreate()

    def declared(name: str, parameter: bool, value: str | None, *more: object) -> None:
        if value is None or "&" in value or "%" in value:
            reason = f"the entity {name!r} refers to others or to a file, which is not safe to read; write it out"
            raise ImportFailed(file.path, parser.CurrentLineNumber, reason)

    parser.EntityDeclHandler = declared
    with (
        file.reading(),
        file.open() as stream,
        suppress(expat.ExpatError, LookupError),
    ):  # of which pyoxigraph reports more
        parser.Parse(stream.read(_HEAD_BYTES))


class _Relabelling:
    """Gives blank nodes the labels b1, b2, …: the parser's own differ from run to run if the file has none."""

    def __init__(self, pyoxigraph: Any) -> None:
        self._pyoxigraph = pyoxigraph
        self._changed = (pyoxigraph.BlankNode, pyoxigraph.Triple)
        self._new: dict[str, Any] = {}

    def quad(self, quad: Any) -> Any:
        subject, predicate, end, graph = quad
        if isinstance(subject, self._changed) or isinstance(end, self._changed) or isinstance(graph, self._changed):
            return self._pyoxigraph.Quad(self._term(subject), predicate, self._term(end), self._term(graph))
        return quad

    def _term(self, term: Any) -> Any:
        if isinstance(term, self._pyoxigraph.BlankNode):
            if term.value not in self._new:
                self._new[term.value] = self._pyoxigraph.BlankNode(f"b{len(self._new) + 1}")
            return self._new[term.value]
        if isinstance(term, self._pyoxigraph.Triple):
            return self._pyoxigraph.Triple(self._term(term.subject), term.predicate, self._term(term.object))
        return term


# Writing


_CHUNK = 10_000
_CACHED = 1 << 18


def graph_prefixes(graph: ColumnarGraph) -> Prefixes:
    """Return the prefixes behind the labels of a graph that was RDF; the usual ones for any other."""
    return Prefixes(graph.source["prefixes"]) if graph.source.get("kind") == "rdf" else Prefixes()


def graph_quads(graph: ColumnarGraph) -> Iterator[Any]:
    """Write a graph as RDF, quad by quad, all in the default graph.

    RDF graphs get their own IRIs, languages and datatypes back, and nodes that had no name the end of their IRI as
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
            for label in node.types:
                yield quad(entity, name(RDF_TYPE), name(iris.type(label)))
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
