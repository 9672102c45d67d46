"""The formats of graphs: one table of their names, endings, marks in the content, and readers.

The ending of a name decides, and the content where several formats have an ending, or none has it. `.gz`, `.xz`, `.bz2`
and `.zst` behind an ending are decompressed, and `.zip` is unpacked by `choose`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from byokg.errors import ImportFailed
from byokg.files import TextFile, open_decompressed, uncompressed
from byokg.graph.columnar.writer import GraphStream
from byokg.graph.importers import documents
from byokg.graph.importers.cypher_script import read_cypher
from byokg.graph.importers.delimited import RecordFile
from byokg.graph.importers.dialects import ENDINGS, TableOptions
from byokg.graph.importers.json_lines import JsonLinesFile
from byokg.graph.importers.table_stream import RecordReader, Records, RecordStream
from byokg.graph.importers.tables import PropertyTables, edge_table, end_tables
from byokg.graph.importers.triples import TripleFile

_HEAD_BYTES = 1 << 16
"""How much of a file is looked at."""

COMPRESSED = "and then .gz, .xz, .bz2 or .zst if compressed"


@dataclass(frozen=True)
class Opening:
    """Input of a reader."""

    paths: Sequence[Path]
    """One file; of RDF, several that are one graph."""
    left_out: Mapping[str, frozenset[int]]
    """Lines of each file that are left out."""
    options: TableOptions
    streamed: bool = False
    """True if N-Triples are read without holding their edges, if possible."""
    skip_bad: int = 0
    """Bad lines of N-Triples to leave out at most."""
    skipped: Callable[[ImportFailed], object] | None = None
    """Called with each."""


@dataclass(frozen=True)
class Format:
    """A format of files that are whole graphs."""

    name: str
    endings: tuple[str, ...]
    library: str
    """Package that parses it."""
    open: Callable[[Opening], GraphStream]
    mark: re.Pattern[bytes] | None = None
    """Found in the first bytes of its files; None for a format that only endings show."""
    lines: bool = False
    """True if each line is a record, which can be left out."""


def find_format(path: Path) -> Format:
    """Return the format of a file. Raises `ImportFailed` with the reason if it is none."""
    ending = uncompressed(path).suffix.lower()
    for pattern, reason in _REFUSED:
        if re.fullmatch(pattern, path.name.lower()):
            raise ImportFailed(path, None, reason)
    named, head = [one for one in FORMATS if ending in one.endings], read_head(path)
    for mark, reason in _REFUSED_CONTENT:
        if mark.search(head):
            raise ImportFailed(path, None, reason)
    if len(named) == 1 and ending not in _SHARED:
        return named[0]
    found = next((one for one in named or FORMATS if one.mark and one.mark.search(head)), None)
    found = found or next((one for one in named if one.mark is None), None)
    if found is None and not head:
        raise ImportFailed(path, None, "the file is empty; fetch or export it again")
    if found is None:
        begun = head[:40].decode(errors="replace").split("\n")[0]
        what = f"no format has the ending {ending!r}" if ending else "the name has no ending"
        reason = f"{what}, and the content, which begins with {begun!r}, shows none; end the name in one of"
        raise ImportFailed(path, None, f"{reason} {', '.join(known_endings())}, .yaml, .zip, {COMPRESSED}")
    return found


def known_endings() -> list[str]:
    """Return all endings, in the order of the table."""
    return list(dict.fromkeys(ending for one in FORMATS for ending in one.endings))


def has_format(path: Path) -> bool:
    """True if the ending of a file is that of a format."""
    return uncompressed(path).suffix.lower() in known_endings()


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed. Raises `ImportFailed`."""
    with TextFile(path).reading(), open_decompressed(path) as stream:
        return stream.read(_HEAD_BYTES)


def _delimited(opening: Opening) -> GraphStream:
    path, options = opening.paths[0], opening.options
    file = RecordFile.at(path, opening.left_out.get(str(path), frozenset()), options)
    table = edge_table(file, options)
    if ends := end_tables(table):
        source = {"kind": "edges that describe their ends", "files": [TextFile(path).description()]}
        return PropertyTables(str(path), *ends, source, spaced=False)
    return TripleFile(str(path), [table])


def _json_lines(opening: Opening) -> GraphStream:
    path = opening.paths[0]
    return JsonLinesFile(path, opening.left_out.get(str(path), frozenset()))


def _rdf(opening: Opening) -> GraphStream:
    from byokg.graph.rdf.importer import RdfFile, TripleStream
    from byokg.graph.rdf.ntriples import BadLines

    paths = tuple(opening.paths)
    kind = TripleStream if opening.streamed and TripleStream.fits(paths) else RdfFile
    file = kind(*paths, bad=BadLines(opening.skip_bad, opening.skipped))
    file.language = opening.options.language
    return file


def _graphml(opening: Opening) -> GraphStream:
    from byokg.graph.importers.graphml import GraphmlFile

    return GraphmlFile(opening.paths[0])


def _parquet(opening: Opening) -> GraphStream:
    from byokg.graph.importers.parquet import ParquetTables

    return ParquetTables(str(opening.paths[0]), [], opening.paths)


def _records(
    name: str,
    endings: Sequence[str],
    library: str,
    read: Callable[[TextFile], Records],
    mark: bytes | None = None,
    is_partial: bool = False,
) -> Format:
    reader = RecordReader(name, read, is_partial)
    pattern = None if mark is None else re.compile(mark, re.IGNORECASE)
    return Format(name, tuple(endings), library, partial(_record_stream, reader), pattern)


def _record_stream(reader: RecordReader, opening: Opening) -> GraphStream:
    return RecordStream(opening.paths[0], reader)


def _wikidata(opening: Opening) -> GraphStream:
    read = partial(documents.read_wikidata, language=opening.options.language.lower())
    return RecordStream(opening.paths[0], RecordReader("Wikidata JSON", read, partial=True, types_are_nodes=True))


_RDF_XML, _RDF_JSON = re.compile(rb"<(?:\w+:)?RDF\b"), re.compile(rb'"@(?:context|graph|id)"')

FORMATS: tuple[Format, ...] = (
    Format("delimited", tuple(ending for ending in ENDINGS if ending != ".sif"), "Arrow", _delimited, None, True),
    Format("Wikidata JSON", (".json",), "json", _wikidata, re.compile(
        rb'\A\s*\[?\s*\{"(?:type": ?"(?:item|property)"|pageid":|id": ?"[QP][0-9])[^\n]*"(?:labels|claims)":'
    )),
    Format("JSON lines", (".jsonl", ".ndjson", ".json"), "Arrow", _json_lines,
           re.compile(rb"\A\s*(?:\{[^\n]*\}|\[[^\n]*\])[ \t]*\r?\n\s*[\[{]"), True),
    Format("RDF", (".json", ".jsonld"), "pyoxigraph", _rdf, _RDF_JSON),
    _records("JSON document", [".json", ".cyjs"], "json", documents.read_json, rb"\A\s*[\[{]"),
    Format("GraphML", (".graphml", ".xml"), "expat", _graphml, re.compile(rb"<graphml\b")),
    _records("GEXF", [".gexf", ".xml"], "NetworkX", documents.read_gexf, rb"<gexf\b"),
    Format("RDF", (".nt", ".nq", ".ttl", ".trig", ".n3", ".rdf", ".xml", ".owl"), "pyoxigraph", _rdf, _RDF_XML),
    _records("GML", [".gml"], "NetworkX", documents.read_gml, rb"\A[^<{]*\bgraph\s*\["),
    _records("Pajek", [".net", ".paj"], "NetworkX", documents.read_pajek, rb"^\s*\*vertices\b"),
    _records("DOT", [".dot", ".gv"], "lark", documents.read_dot, rb"\A\s*(?:strict\s+)?(?:di)?graph\b[^\[{]*\{"),
    _records("OBO", [".obo"], "byokg", documents.read_obo, rb"\Aformat-version:", is_partial=True),
    _records("SIF", [".sif"], "byokg", documents.read_sif, is_partial=True),
    _records("Cypher script", [".cypher", ".cql", ".cyp"], "byokg", read_cypher,
             rb"(?:\A|\n)\s*(?::begin|CREATE\s*\(|MERGE\s*\(|UNWIND\s*\[)"),
    Format("Parquet", (".parquet",), "Arrow", _parquet, re.compile(rb"\APAR1")),
)  # fmt: skip

_SHARED = (".json", ".xml", ".owl")
"""Endings whose files are looked into."""

_SNIFF = "byokg graph sniff FOLDER --write"

BY_SERVER = "load it into Neo4j (neo4j-admin database load) and give the server's address, bolt://…"

_REFUSED = (
    (r".*\.(?:dump|backup)(?:\.\w+)?", f"a dump of Neo4j is read by Neo4j only; {BY_SERVER}"),
    (r".*\.xlsx?", f"an Excel workbook is not read; save its sheets as CSV in a folder: {_SNIFF}"),
    (r".*\.(?:ofn|owx|omn)", "OWL is read as RDF; convert it to RDF/XML or Turtle (`robot convert`)"),
    (r".*\.(?:tar|tgz|7z|rar)(?:\.\w+)?", "this archive is not read; unpack it and give the folder, or use .zip"),
)
"""Names of files that are refused, and the reason."""

_REFUSED_CONTENT = (
    (
        re.compile(
            rb"\A\s*(?:Prefix\(|Ontology\(|(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<Ontology\b|Prefix:|Ontology:)"
        ),
        "is OWL in another syntax than RDF; convert it to RDF/XML or Turtle (`robot convert --output FILE.owl`)",
    ),
    (
        re.compile(rb"\A\s*<(?:!DOCTYPE )?html\b", re.IGNORECASE),
        "is a page of HTML and no graph; fetch the file itself",
    ),
    (re.compile(rb"\ASQLite format 3\0"), f"is an SQLite database; export its tables as CSV to a folder: {_SNIFF}"),
    (re.compile(rb"\AD[ZG]V1"), f"a dump of Neo4j is read by Neo4j only; {BY_SERVER}"),
    (re.compile(rb"\A%PDF-"), "is a PDF and no graph; export the graph itself"),
    (
        re.compile(rb"\Aversion https://git-lfs"),
        "is a pointer of Git LFS and not the file; fetch it with `git lfs pull`",
    ),
)
"""Beginnings of files that are refused, and the reason."""
