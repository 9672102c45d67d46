"""RDF files: read quad by quad or in blocks of columns, and any columnar graph written as RDF.

Whole blocks of simple N-Triples are read without a Python object for each quad; pyoxigraph reads all others. What was
RDF before comes back as it was.
"""

from __future__ import annotations

import functools
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.parsers import expat

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from byokg.errors import ImportFailed, import_extra
from byokg.files import TextFile, uncompressed
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.schema import TEXT, arrow_buffer
from byokg.graph.rdf.literals import EXACT_TYPES, Literal, of_value
from byokg.graph.rdf.terms import (
    EDGE,
    NAME_PREDICATES,
    RDF,
    RDF_OBJECT,
    RDF_PREDICATE,
    RDF_REIFIES,
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

FORMATS = {
    ".nt": "N_TRIPLES",
    ".nq": "N_QUADS",
    ".ttl": "TURTLE",
    ".trig": "TRIG",
    ".rdf": "RDF_XML",
    ".owl": "RDF_XML",
    ".xml": "RDF_XML",
}
"""Ending of a file's name to pyoxigraph's name for its format."""

_LABELLED = ("N_TRIPLES", "N_QUADS")
"""Formats in which every blank node has a label."""

_QUADS = 1 << 16
"""Quads of pyoxigraph's put into columns together."""

_PARSE_BYTES = 1 << 22
"""Arrow parses a block in pieces of this size."""

_BACK = "\x01"
"""A character that stands in no file of ours; where it does, the block is read by pyoxigraph."""

_INVALID = re.compile(r"(\S.*?) is not a? ?valid")
"""How a message begins that names a wrong value."""

_PLACE = re.compile(r"^Parser error (at|between) line .*?: ")
"""What pyoxigraph says of the place, which is one within a block."""

# Terms that are surely what pyoxigraph would make of them; it looks at all others.
_WIDE = r"\x{a0}-\x{d7ff}\x{f900}-\x{fdcf}\x{fdf0}-\x{ffef}"
_PLAIN_IRI = (
    rf"[A-Za-z][A-Za-z0-9+.-]*:(?://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/[A-Za-z0-9._~!$&'()*+,;=:@/{_WIDE}-]*)?|"
    rf"[A-Za-z0-9._~!$&'()*+,;=:@{_WIDE}-]+)(?:#[A-Za-z0-9._~!$&'()*+,;=:@/{_WIDE}-]*)?"
)
_PLAIN_NODE = rf"^(?:<{_PLAIN_IRI}>|_:[A-Za-z0-9_]+)$"
_PLAIN_PREDICATE = rf"^<{_PLAIN_IRI}>$"
_PLAIN_LITERAL = (
    rf'^"(?P<text>[^"\\\\]*)"(?:@(?P<language>[A-Za-z]{{2,3}}(?:-[A-Za-z]{{2,4}})?)|\^\^<(?P<datatype>{_PLAIN_IRI})>)?$'
)


@dataclass(frozen=True)
class QuadBlock:
    """Q quads in the order of the file, as columns. Nodes are written as ids: IRIs, and `_:b1`."""

    subject: pa.DictionaryArray
    predicate: pa.DictionaryArray
    end: pa.DictionaryArray
    """The object: an id, or the text of a literal."""
    kind: npt.NDArray[np.int32]
    """Where the object is a literal, the position of its datatype and language in `Document.kinds`; else -1."""
    graph: pa.DictionaryArray | None = None
    """Empty for the default graph; None if all quads are in it."""
    statements: tuple[int, ...] = ()
    """Rows whose subject is a statement about a triple that is no quad here: the one that the next row spells out."""
    mentioned: npt.NDArray[np.bool_] | None = None
    """Rows that are such triples, or that only mention their subject, but are not in the file as quads."""
    lost: int = 0
    """Quads that cannot be told otherwise: triples as objects of what is no `rdf:reifies`."""


class Document:
    """An RDF file being read; `prefixes` are those declared so far, so all of them once the quads have been read."""

    def __init__(self, path: Path, format: str, scope: str = "") -> None:
        self._path = path
        self._scope = scope
        self._format = format
        self.prefixes: dict[str, str] = {}
        self.kinds: list[tuple[str, str]] = []
        """Datatype and language of literals, in order of appearance."""
        self._kind_numbers: dict[tuple[str, str], int] = {}

    def share(self, other: Document) -> None:
        """Number datatypes and languages as another document does."""
        self.kinds, self._kind_numbers = other.kinds, other._kind_numbers

    def blocks(self) -> Iterator[QuadBlock]:
        """Yield the quads as columns. Raises `ImportFailed` for the first that is none."""
        if self._format != "N_TRIPLES":
            quads = self.quads()
            while some := list(islice(quads, _QUADS)):
                yield self._columns(some)
            return
        line = 1
        for text in TextFile(self._path).line_blocks():
            block = self._simple(text)
            if block is not None:
                yield block
            else:
                quads = self._parse(io.BytesIO(text), None, line - 1)
                while some := list(islice(quads, _QUADS)):
                    yield self._columns(some)
            line += text.count(b"\n")

    def _simple(self, text: bytes) -> QuadBlock | None:
        """Split lines of N-Triples into columns; None if one is not plainly `subject predicate object .`."""
        read = arrow_csv.ReadOptions(column_names=["line"], block_size=_PARSE_BYTES)
        parse = arrow_csv.ParseOptions(delimiter=_BACK, quote_char=False)
        try:
            convert = arrow_csv.ConvertOptions(column_types={"line": TEXT})
            lines = arrow_csv.read_csv(pa.BufferReader(arrow_buffer(memoryview(text))), read, parse, convert)
        except pa.ArrowInvalid:
            return None
        parts = pc.split_pattern(pa.concat_arrays([pa.array([], TEXT), *lines.column(0).chunks]), " ", max_splits=2)
        if not pc.all(pc.equal(pc.list_value_length(parts), 3)).as_py():
            return None
        subject, predicate, rest = (pc.list_element(parts, at).dictionary_encode() for at in range(3))
        if not pc.all(pc.ends_with(rest.dictionary, " .")).as_py():
            return None
        ends = pc.utf8_slice_codeunits(rest.dictionary, 0, -2)
        literal = pc.starts_with(ends, '"').to_numpy(zero_copy_only=False)
        nodes = ends.filter(pa.array(~literal))
        if not (_fit(subject.dictionary, _PLAIN_NODE) and _fit(nodes, _PLAIN_NODE)):
            return None
        if not _fit(predicate.dictionary, _PLAIN_PREDICATE):
            return None
        found = self._literals(ends.filter(pa.array(literal)))
        if found is None:
            return None
        kind = np.full(len(ends), -1, np.int32)
        kind[literal], texts = found
        place = np.empty(len(ends), np.int64)
        place[~literal], place[literal] = np.arange(len(nodes)), np.arange(len(nodes), len(ends))
        values = pa.concat_arrays([self._ids(nodes), texts]).take(pa.array(place))
        codes = rest.indices.to_numpy()
        return QuadBlock(
            subject=pa.DictionaryArray.from_arrays(subject.indices, self._ids(subject.dictionary)),
            predicate=pa.DictionaryArray.from_arrays(predicate.indices, self._ids(predicate.dictionary)),
            end=_coded(codes, values),
            kind=kind[codes],
        )

    def _ids(self, terms: pa.Array) -> pa.Array:
        """Take IRIs out of their angle brackets; blank nodes have none."""
        inner = pc.utf8_slice_codeunits(terms, 1, -1)
        if not self._scope:
            return pc.if_else(pc.starts_with(terms, "<"), inner, terms)
        blank = pc.replace_substring_regex(terms, "^_:", f"_:{self._scope}")
        return pc.if_else(pc.starts_with(terms, "<"), inner, blank)

    def _literals(self, terms: pa.Array) -> tuple[npt.NDArray[np.int32], pa.Array] | None:
        """Return kind and text of each of some literals, as N-Triples writes them; None if one is no literal."""
        found = pc.extract_regex(terms, _PLAIN_LITERAL)
        plain = found.is_valid().to_numpy(zero_copy_only=False)
        texts, languages, datatypes = (found.field(name) for name in ("text", "language", "datatype"))
        kinds = np.zeros(len(terms), np.int32)
        said = pc.binary_join_element_wise(
            datatypes, pc.utf8_lower(languages), pa.scalar("\0", TEXT)
        ).dictionary_encode()
        numbers = []
        for one in said.dictionary.to_pylist():
            datatype, _, language = (one or "\0").partition("\0")
            usual = RDF + "langString" if language else XSD + "string"
            numbers.append(self._kind(datatype or usual, language))
        if plain.any():
            kinds[plain] = np.array(numbers, np.int32)[said.indices.filter(pa.array(plain)).to_numpy()]
        if not plain.all():
            others = np.flatnonzero(~plain)
            lines = "".join(f"<x:s> <x:p> {term} .\n" for term in terms.take(pa.array(others)).to_pylist())
            pyoxigraph = import_extra("pyoxigraph", "sparql", "reading RDF")
            try:
                parsed = [quad.object for quad in pyoxigraph.parse(lines.encode(), pyoxigraph.RdfFormat.N_TRIPLES)]
            except SyntaxError:
                return None
            if len(parsed) != len(others) or not all(isinstance(term, pyoxigraph.Literal) for term in parsed):
                return None
            spelled = [_literal(term) for term in parsed]
            kinds[others] = [self._kind(literal.datatype, literal.language) for literal in spelled]
            texts = pc.replace_with_mask(texts, pa.array(~plain), pa.array([one.text for one in spelled], TEXT))
        return kinds, texts

    def _columns(self, quads: list[Any]) -> QuadBlock:
        """Put pyoxigraph's quads into columns."""
        pyoxigraph = import_extra("pyoxigraph", "sparql", "reading RDF")
        named, default = pyoxigraph.NamedNode, pyoxigraph.DefaultGraph
        rows: list[tuple[str, str, str, int, str]] = []
        statements: list[int] = []
        mentioned: list[int] = []
        lost = 0

        def id_of(term: Any) -> str:
            value: str = term.value
            return value if isinstance(term, named) else f"_:{self._scope}{value}"

        for subject, predicate, end, graph in quads:
            head, label = id_of(subject), predicate.value
            where = "" if isinstance(graph, default) else id_of(graph)
            if isinstance(end, pyoxigraph.Literal):
                literal = _literal(end)
                rows.append((head, label, literal.text, self._kind(literal.datatype, literal.language), where))
            elif not isinstance(end, pyoxigraph.Triple):
                rows.append((head, label, id_of(end), -1, where))
            else:
                mentioned.append(len(rows))
                inner = end.object
                told = label == RDF_REIFIES and not isinstance(inner, pyoxigraph.Literal | pyoxigraph.Triple)
                lost += label != RDF_REIFIES
                if label == RDF_REIFIES:
                    statements.append(len(rows))
                rows.append((head, label, head, -1, ""))
                if told:
                    mentioned.append(len(rows))
                    rows.append((id_of(end.subject), end.predicate.value, id_of(inner), -1, ""))
        heads, labels, ends, kinds, graphs = zip(*rows, strict=True)
        marks = np.zeros(len(rows), np.bool_)
        marks[mentioned] = True
        return QuadBlock(
            subject=pa.array(heads, TEXT).dictionary_encode(),
            predicate=pa.array(labels, TEXT).dictionary_encode(),
            end=pa.array(ends, TEXT).dictionary_encode(),
            kind=np.array(kinds, np.int32),
            graph=pa.array(graphs, TEXT).dictionary_encode() if any(graphs) else None,
            statements=tuple(statements),
            mentioned=marks if mentioned else None,
            lost=lost,
        )

    def _kind(self, datatype: str, language: str) -> int:
        key = datatype, language
        number = self._kind_numbers.setdefault(key, len(self.kinds))
        if number == len(self.kinds):
            self.kinds.append(key)
        return number

    def quads(self) -> Iterator[Any]:
        """Yield pyoxigraph's quads, blank nodes relabelled so that the same file gives the same labels."""
        pyoxigraph = import_extra("pyoxigraph", "sparql", "reading RDF")
        labelled = self._format in _LABELLED
        relabel = _Relabelling(pyoxigraph)
        # Relative IRIs are resolved against the file's name alone: where it lies must not show in ids.
        base = None if labelled else f"file:///{quote(self._path.name)}"
        file = TextFile(self._path)
        with file.reading(), file.open() as stream:
            for quad in self._parse(stream, base):
                yield quad if labelled else relabel.quad(quad)

    def _line_of(self, reason: str) -> int | None:
        """Find the line of what is wrong with RDF/XML, of which the parser tells none."""
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
                if line is None and self._format == "RDF_XML":
                    line = self._line_of(reason)
                raise ImportFailed(self._path, line, f"{reason}; correct the file") from error
            if quad is None:
                break
            yield quad
        self.prefixes = dict(parser.prefixes)


def _fit(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _coded(codes: npt.NDArray[np.integer], values: pa.Array) -> pa.DictionaryArray:
    """Return a dictionary-encoded column, each value once, as one text may be several literals."""
    distinct = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(distinct.indices.to_numpy()[codes], distinct.dictionary)


def _literal(term: Any) -> Literal:
    return Literal(term.value, term.datatype.value, (term.language or "").lower())


class Documents:
    """RDF files being read one after the other; blank nodes of one are not those of another."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Get ready. Raises `ImportFailed` as `read_rdf` does."""
        several = len(paths) > 1
        self._all = [read_rdf(path, f"f{number}." if several else "") for number, path in enumerate(paths, 1)]
        self.kinds = self._all[0].kinds
        for document in self._all:
            document.share(self._all[0])

    @property
    def prefixes(self) -> dict[str, str]:
        """Return the prefixes declared so far; of one declared twice, the first namespace."""
        return {name: space for document in reversed(self._all) for name, space in document.prefixes.items()}

    def blocks(self) -> Iterator[QuadBlock]:
        """Yield the quads of all files as columns. Raises `ImportFailed` for the first that is none."""
        return itertools.chain.from_iterable(document.blocks() for document in self._all)


def read_rdf(path: str | Path, scope: str = "") -> Document:
    """Get ready to read an RDF file; the labels of blank nodes begin with `scope`.

    Raises `ImportFailed` when its name does not tell a format, or it is missing.
    """
    path = Path(path)
    format = _format(path)
    if format is None:
        endings = ", ".join(FORMATS)
        reason = f"the name does not tell the RDF format; end it in one of {endings}, and then .gz, .xz or .zst"
        raise ImportFailed(path, None, reason)
    if not path.is_file():
        raise ImportFailed(path, None, "no such file")
    return Document(path, format, scope)


def _format(path: Path) -> str | None:
    return FORMATS.get(uncompressed(path).suffix.lower())


class _Relabelling:
    """Gives blank nodes the labels b1, b2, …: the parser's own differ from run to run where the file has none."""

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
