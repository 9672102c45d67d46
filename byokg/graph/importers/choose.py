"""Importing graphs: which file is read how, and graphs that Python libraries hold.

| source                                  | content                                                              |
|-----------------------------------------|----------------------------------------------------------------------|
| `.txt`, `.tsv`, `.csv`, `.edges`, …     | edges in the dialect that `dialects` finds, with a header or without |
| any of these without a header           | head, relation, tail, perhaps with times; or two ends (`tables`)     |
| `.jsonl`                                | one triple, node or edge a line (`json_lines`)                       |
| `.nt`, `.ttl`, `.rdf`, `.owl`, `.jsonld` | RDF (`rdf`; needs `byokg[sparql]`)                                   |
| `.json`, `.gexf`, `.gml`, `.dot`, `.net` | JSON of many programs, and other documents (`documents`)             |
| `.obo`, `.sif`, Wikidata's `.json` dump  | ontologies, interactions, entities, line by line (`documents`)       |
| `.cypher`                                | statements that create a graph (`cypher_script`)                     |
| `.graphml`                              | nodes and edges with typed properties (`graphml`)                    |
| `.parquet`                              | edges, with columns such as head, relation and tail (`parquet`)      |
| folder with `edges*.parquet`            | edges, and with `nodes*.parquet` nodes, with properties (`parquet`)  |
| `.yaml`, folder with `graph.yaml`       | tables whose columns that file explains, or a source with options    |
| folder with `nodes*.csv`, `edges*.csv`  | nodes and edges with properties, or edges alone (`tables`)           |
| folder of `neo4j-admin import` files    | `.csv` or `.tsv` files known by their headers (`tables`)             |
| folder with one file                    | named `kb`, `graph` or `triples`, or the only table in it            |
| folder of RDF files and no others       | all of them together, whatever they are named                        |

`formats` has one table of them. Each file may be compressed as `.gz`, `.xz`, `.bz2` or `.zst`, and a `.zip` holds
any of these; in it, names that lead out of the folder, links, encrypted members and endless content are refused.
`columns` lists the names of columns that are known. In files of edges alone exact repetitions are dropped and counted,
an entity's id is its name, and it has no type.

Tables may be split into several files (`nodes-1.csv`, `nodes-2.csv`, …), and a header may stand alone in a file named
`X_header.csv` or `X-header.csv` beside `X.csv`, `X1.csv`, …. A missing name is the id. The same row may come twice,
another row with the same id may not. Both ends of an edge must be among the nodes; parallel edges are all kept. An
empty cell means that the node or edge lacks the property. A bool is `true` or `false`, a date `2001-09-30`.
"""

from __future__ import annotations

import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from byokg.errors import ConfigError, ImportFailed
from byokg.files import TextFile, in_bytes, new_folder, remove_folder, uncompressed
from byokg.graph.columnar.folder import META, refuse_taken
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.writer import SCRATCH, GraphStream, ReadWhole, collect, is_interrupted, write_graph
from byokg.graph.importers.delimited import RecordFile
from byokg.graph.importers.dialects import DETECTED, ENDINGS, TableOptions
from byokg.graph.importers.formats import BY_SERVER, Opening, find_format, has_format
from byokg.graph.importers.table_stream import TableStream
from byokg.graph.importers.tables import (
    MAPPING,
    PropertyTables,
    Table,
    edge_table,
    is_marked,
    is_node_header,
    mapped_files,
    mapped_tables,
    node_table,
    read_mapping,
    several_spaces,
    source_of,
)
from byokg.graph.importers.triples import TripleFile

ZIP = ".zip"

_READ_BYTES = 1 << 20
_MOST_FILES = 10_000
_PLAIN_BYTES, _MOST_RATIO = 1 << 26, 200
"""An archive that unpacks to more than the first is refused once it has grown so many times."""


@contextmanager
def unpacked(source: Path) -> Iterator[Path]:
    """Give a source itself, or of an archive the folder that holds its content, removed afterwards.

    Raises:
        ImportFailed: the archive is damaged or not safe; errors inside name the archive and the file in it.
    """
    if source.suffix.lower() != ZIP or not source.is_file():
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="byokg-") as name:
        folder = Path(name)
        try:
            _extract(source, folder)
            yield _content(folder)
        except ImportFailed as error:
            inner = Path(error.file)
            place = source / inner.relative_to(folder) if inner.is_relative_to(folder) else inner
            raise ImportFailed(place, error.line, error.reason.replace(name, str(source))) from error


def _content(folder: Path) -> Path:
    """Return the only file in a folder, or the folder that holds several, at any depth."""
    while True:
        inside = [path for path in folder.iterdir() if not path.name.startswith(".")]
        if len(inside) != 1:
            return folder
        if not inside[0].is_dir():
            return inside[0]
        folder = inside[0]


def _extract(source: Path, folder: Path) -> None:
    try:
        with zipfile.ZipFile(source) as archive:
            members = [one for one in archive.infolist() if not one.is_dir() and _is_content(one.filename)]
            if len(members) > _MOST_FILES:
                reason = (
                    f"holds {len(members):,} files, at most {_MOST_FILES:,} are unpacked; unpack it and give the folder"
                )
                raise ImportFailed(source, None, reason)
            left = max(_PLAIN_BYTES, source.stat().st_size * _MOST_RATIO)
            for member in members:
                left -= _unpack(source, archive, member, folder, left)
    except (zipfile.BadZipFile, LookupError, ValueError, RuntimeError, EOFError, zlib.error, OSError) as error:
        reason = (
            f"cannot be unpacked ({error or type(error).__name__}); fetch it again, or unpack it and give the folder"
        )
        raise ImportFailed(source, None, reason) from error


def _is_content(name: str) -> bool:
    """True unless a file is hidden, or one that macOS adds."""
    return not any(part.startswith((".", "__MACOSX")) and part != ".." for part in PurePosixPath(name).parts)


def _unpack(source: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path, most: int) -> int:
    """Unpack one file; return its size. Raises `ImportFailed` if it has more bytes than allowed, or is not safe."""
    place = PurePosixPath(member.filename.replace("\\", "/"))
    if place.is_absolute() or ".." in place.parts or ":" in place.parts[0]:
        raise ImportFailed(source, None, f"the file {member.filename!r} leads out of the archive; this is not safe")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise ImportFailed(source, None, f"{member.filename!r} is a link; this is not safe: unpack the archive by hand")
    target = folder.joinpath(*place.parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with archive.open(member) as content, target.open("wb") as file:
        while data := content.read(_READ_BYTES):
            size += len(data)
            if size > most:
                reason = f"{member.filename!r} unpacks to more than {_MOST_RATIO} times the archive's size"
                raise ImportFailed(source, None, f"{reason}, as if to fill the disk; unpack it by hand if you trust it")
            file.write(data)
    return size


MEMORY = 1 << 32
"""Default memory of a build, in bytes."""

_PORTIONS, _LEAST_PORTION = 32, 1 << 20
"""Share of the memory for the edges that are sorted at once, and their least size."""

TRIPLE_NAMES = ("kb.txt", "graph.tsv", "graph.csv")
DELIMITED_ENDINGS = tuple(ENDINGS)
PARQUET = ".parquet"
RDF_ENDINGS = (".nt", ".nq", ".ttl", ".trig", ".n3", ".jsonld", ".rdf", ".xml", ".owl")

_ALONE = re.compile(r"(kb|graph|triples)\.\w+")


def _compile_names(names: str, before: str = "(?:.* )?") -> re.Pattern[str]:
    return re.compile(rf"{before}\[?(?:{names})\]?([-_]?[0-9]+|[-_].+)?\.\w+", re.IGNORECASE)


_NODES = (_compile_names("nodes"), _compile_names("vertices|entities"), _compile_names("nodes", r".*[-_]"))
_EDGES = (
    _compile_names("edges"),
    _compile_names("relationships|relations|links|arcs"),
    _compile_names("edges", r".*[-_]"),
)
"""Names of tables, those that Gephi gives (`Lesmis [Nodes].csv`) among them; each counts if no table has an earlier."""

_PARQUETS = (("nodes", "edges"), ("(?:create_final_)?entities", "(?:create_final_)?relationships"))
"""How the names of Parquet files of nodes and of edges begin; Microsoft's GraphRAG writes the others."""
_HEADER = re.compile(r"(.+)[-_]header\.\w+")


def build_graph(
    source: str | Path, out: str | Path, overwrite: bool = False, options: TableOptions = DETECTED
) -> ColumnarGraph:
    """Import `source`, save it as a graph folder, and open that.

    Edges may be more than fit into memory: they are read, sorted and written in portions.

    Args:
        source: a file or folder as described at the top of this module.
        out: folder to write; appears only when complete.
        overwrite: replace a graph that is already there. Anything else is never replaced.
        options: how delimited files are read, as far as that is not detected.

    Returns:
        The graph; its `source` states under `files` how each table was read (`read_as`), and how many `rows` it holds.

    Raises:
        ImportFailed: the source cannot become a graph; names file, line and reason.
        GraphExists: `out` is taken.
        MissingExtra: the source is RDF and pyoxigraph is not installed.
    """
    with graph_folder(source, out, overwrite, options=options) as partial:
        import_into(source, partial, options=options)
    return ColumnarGraph.open(out)


@contextmanager
def graph_folder(
    source: str | Path,
    out: str | Path,
    overwrite: bool = False,
    edge_properties: bool = True,
    options: TableOptions = DETECTED,
) -> Iterator[Path]:
    """Give a folder for `import_into` and further files of the graph, and rename it to `out` afterwards.

    It is empty, or holds the leftovers of an interrupted or killed build of the same source: `import_into` continues
    from these, as far as the format can. `edge_properties` and `options` are those of `import_into`.

    Raises:
        GraphExists: `out` is taken.
        GraphError: the place is not writable, or the disk is full.
    """
    refuse_taken(out, overwrite)
    key = _key(Path(source), edge_properties, options)
    with new_folder(out, overwrite, refuse_taken, lambda left: is_interrupted(left, key)) as partial:
        yield partial
        remove_folder(partial / SCRATCH)


def _key(source: Path, edge_properties: bool, options: TableOptions) -> list[object]:
    """Return a key of a source and its reading options, which changes if the source is replaced; empty if there is
    none."""
    try:
        found = [(path, path.stat()) for path in source_files(source)]
    except (ImportFailed, OSError):
        return []
    files = [[str(path.resolve()), one.st_size, one.st_mtime_ns] for path, one in found]
    return [*files, edge_properties, asdict(options)]


def import_into(
    source: str | Path,
    folder: Path,
    skip_bad: int = 0,
    skipped: Callable[[ImportFailed], object] | None = None,
    memory: int = MEMORY,
    progress: Callable[[str, int], object] | None = None,
    edge_properties: bool = True,
    options: TableOptions = DETECTED,
) -> ColumnarGraph:
    """Import `source` into a folder that is being made, and open it there.

    Args:
        source: a file or folder as described at the top of this module.
        folder: target, as given by `graph_folder`.
        skip_bad: number of bad lines to leave out: of triples, N-Triples, JSON lines, and files of nodes and of edges,
            but no header. But for N-Triples, the source is read once more for each of them.
        skipped: called with each, as the error that it would have been.
        memory: bytes to work with, about; the texts of nodes and relations are held beyond, if they need more.
        progress: called with the phase and the number of edges done, now and then.
        edge_properties: True to keep edges' properties (times, sources); without them, edges that differ in nothing
            else are repetitions.
        options: decisions about delimited files that are otherwise detected.

    Raises:
        ImportFailed: as `build_graph`; there is one bad line more than may be left out.
    """
    left_out, bad = dict[str, frozenset[int]](), list[ImportFailed]()
    portion = max(memory // _PORTIONS, _LEAST_PORTION)
    streamed = True
    with unpacked(Path(source)) as files:
        found = _find(files)
        while True:
            try:
                stream = _stream(found, left_out, options, streamed, skip_bad, bad.append)
                key = None if left_out else _key(Path(source), edge_properties, options)
                write_graph(stream, folder, key, portion, progress, edge_properties)
                if skipped:
                    for met in bad:
                        skipped(met)
                return ColumnarGraph.open(folder)
            except ReadWhole:
                streamed = False
                bad.clear()
            except ImportFailed as error:
                count = sum(map(len, left_out.values()))
                if count >= skip_bad or error.line is None or not _has_lines(found, Path(error.file), error.line):
                    raise
                if skipped:
                    skipped(error)
                left_out[error.file] = left_out.get(error.file, frozenset()) | {error.line}
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _has_lines(found: _SourceFiles, file: Path, line: int) -> bool:
    """True if a line of a file is a record that can be left out."""
    if found.mapping or not find_format(file).lines:
        return False
    return line > 1 or find_format(file).name != "delimited"


def import_graph(source: str | Path, options: TableOptions = DETECTED) -> ColumnarGraph:
    """Read `source` into memory.

    Args:
        source: a file or folder as described at the top of this module.
        options: how delimited files are read, as far as that is not detected.

    Raises:
        ImportFailed: the source cannot become a graph; names file, line and reason.
        MissingExtra: the source is RDF and pyoxigraph is not installed.

    >>> from byokg import atlas
    >>> import_graph(atlas().graph_source()).node_count
    2639
    """
    with unpacked(Path(source)) as files:
        return collect(_stream(_find(files), {}, options), str(source))


def files_read(graph: ColumnarGraph) -> list[str]:
    """Return a line for each file of an imported graph that was read by its columns: how, and how many rows it has."""
    files = [file for file in graph.source.get("files", ()) if "read_as" in file]
    lines = [f"{file['name']}: {file['read_as']}; {file['rows']:,} row{'s'[: file['rows'] != 1]}" for file in files]
    return ["".join(sign if sign.isprintable() else " " for sign in line) for line in lines]


def source_files(source: str | Path) -> list[Path]:
    """Return the files that `import_graph` would read, in a fixed order. Raises `ImportFailed` as it would."""
    if Path(source).suffix.lower() == ZIP:
        return [Path(source)]
    found = _find(Path(source))
    if found.mapping:
        return mapped_files(found.mapping)
    headers = [header for header in found.headers.values() if header]
    files = [found.alone, *found.further] if found.alone else sorted({*found.nodes, *found.edges, *headers})
    return [found.given, *files] if found.given else files


def _stream(
    found: _SourceFiles,
    left_out: Mapping[str, frozenset[int]],
    options: TableOptions,
    streamed: bool = False,
    skip_bad: int = 0,
    skipped: Callable[[ImportFailed], object] | None = None,
) -> GraphStream:
    """Prepare to read a source.

    Args:
        found: its files.
        left_out: lines of each file that are left out.
        options: decisions about delimited files.
        streamed: N-Triples are read without holding their edges, if possible.
        skip_bad: bad lines of N-Triples to leave out at most.
        skipped: called with each.

    Raises:
        ConfigError: display templates are given for a source whose nodes have no properties.
    """
    stream = _unnamed_stream(found, left_out, options, streamed, skip_bad, skipped)
    if isinstance(stream, TableStream):
        stream.given_names = {**stream.given_names, **dict(options.names)}
    elif options.names:
        raise ConfigError(f"the nodes of {found.source} have no properties that --name could write; leave it out")
    return stream


def _unnamed_stream(
    found: _SourceFiles,
    left_out: Mapping[str, frozenset[int]],
    options: TableOptions,
    streamed: bool,
    skip_bad: int,
    skipped: Callable[[ImportFailed], object] | None,
) -> GraphStream:
    options = found.options if options == DETECTED else options
    if found.mapping:
        return mapped_tables(found.mapping)
    if found.edges and _ending(found.edges[0]) == PARQUET:
        from byokg.graph.importers.parquet import ParquetTables

        return ParquetTables(str(found.source), found.nodes, found.edges)
    if not found.alone and found.nodes:
        return PropertyTables(str(found.source), *found.tables(left_out, options))
    if not found.alone:
        return TripleFile(str(found.source), found.edge_tables(left_out, options))
    opening = Opening((found.alone, *found.further), left_out, options, streamed, skip_bad, skipped)
    return find_format(found.alone).open(opening)


# Which files of a folder are the graph


@dataclass(frozen=True)
class _SourceFiles:
    """Files of a source: one file alone, or a mapping, or files of nodes and of edges."""

    source: Path
    alone: Path | None = None
    further: Sequence[Path] = ()
    """RDF files that are one graph with the one in `alone`."""
    mapping: Path | None = None
    nodes: Sequence[Path] = ()
    edges: Sequence[Path] = ()
    headers: Mapping[Path, Path | None] = field(default_factory=dict)
    """For each file of nodes or edges, the file that holds its header, if another one does."""
    options: TableOptions = DETECTED
    """Those that `graph.yaml` gives."""
    given: Path | None = None
    """The `graph.yaml` that names the source."""

    def tables(
        self, left_out: Mapping[str, frozenset[int]], options: TableOptions
    ) -> tuple[list[Table], list[Table], dict[str, Any], bool]:
        """Read the headers; return nodes, edges, the graph's `source`, and whether ids have spaces."""
        nodes = [
            node_table(RecordFile.at(path, left_out.get(str(path), frozenset()), options), self._header(path))
            for path in self.nodes
        ]
        edges = self.edge_tables(left_out, options)
        files = dict.fromkeys(header for header in self.headers.values() if header) | dict.fromkeys(self.nodes)
        files |= dict.fromkeys(self.edges)
        source = {"kind": "nodes and edges", "files": [TextFile(path).description() for path in files]}
        return nodes, edges, source, several_spaces([*nodes, *edges])

    def edge_tables(self, left_out: Mapping[str, frozenset[int]], options: TableOptions) -> list[Table]:
        """Read the headers of files of edges."""
        return [
            edge_table(RecordFile.at(path, left_out.get(str(path), frozenset()), options), options, self._header(path))
            for path in self.edges
        ]

    def _header(self, path: Path) -> RecordFile | None:
        header = self.headers.get(path)
        return RecordFile.at(header) if header else None


def _find(source: Path) -> _SourceFiles:
    if not source.exists():
        raise ImportFailed(source, None, "no such file or folder")
    if not source.is_dir():
        mapped = source.suffix.lower() in (".yaml", ".yml")
        if _ending(source) == PARQUET:
            return _SourceFiles(source, edges=[source])
        return _mapped(source) if mapped else _SourceFiles(source, alone=source)
    if (source / META).exists():
        raise ImportFailed(source, None, "this is a built graph already; open it, or give the files it was built from")
    if (source / MAPPING).exists():
        return _mapped(source / MAPPING)
    present = sorted((path for path in source.iterdir() if not path.name.startswith(".")), key=in_bytes)
    for kinds in _PARQUETS:
        parts = [[path for path in present if re.fullmatch(rf"{kind}.*\.parquet", path.name)] for kind in kinds]
        if parts[1]:
            return _SourceFiles(source, nodes=parts[0], edges=parts[1])
    if any(path.name.startswith("neostore") for path in (*present, *source.glob("*/neostore*"))):
        raise ImportFailed(source, None, f"this is a store of Neo4j's own; {BY_SERVER}")
    alone = [path for path in present if _is_alone(path)]
    nodes, edges, headers = _tables([path for path in present if path not in alone], bool(alone))
    found = [*nodes, *edges, *alone]
    _refuse_copies(source, found)
    if edges and not alone:
        return _SourceFiles(source, nodes=nodes, edges=edges, headers=headers)
    if len(alone) == 1 and not nodes and not edges:
        return _SourceFiles(source, alone=alone[0])
    if not found and present and all(_ending(path) in RDF_ENDINGS for path in present):
        _refuse_copies(source, present)
        return _SourceFiles(source, alone=present[0], further=present[1:])
    delimited = [path for path in present if _ending(path) in DELIMITED_ENDINGS]
    if not found and len(delimited) == 1:
        return _SourceFiles(source, alone=delimited[0])
    others = [path for path in present if path.is_file() and has_format(path) and path not in delimited]
    others = [path for path in others if not path.name.startswith("questions")]
    if not found and not delimited and len(others) == 1:
        return _find(others[0])
    if not found:
        if len(delimited) > 1:
            listed, ending = ", ".join(path.name for path in delimited[:5]), _ending(delimited[0])
            reason = f"holds {len(delimited)} tables ({listed}), and none is named edges{ending}; name one file"
            reason += f", rename those of edges edges-1{ending}, edges-2{ending}, …, or describe them in graph.yaml"
            raise ImportFailed(source, None, f"{reason}: byokg graph sniff {source} --write")
        if len(others) > 1:
            listed = ", ".join(path.name for path in others[:5])
            reason = f"holds {len(others)} files that are graphs each ({listed}); name one file"
            raise ImportFailed(source, None, reason)
        known = f"{', '.join(TRIPLE_NAMES)}, graph.jsonl, graph.nt, graph.graphml"
        reason = f"holds neither nodes.csv with edges.csv nor edges.parquet nor one of {known}"
        raise ImportFailed(source, None, f"{reason} (also .gz, .xz, .bz2, .zst)")
    names = ", ".join(path.name for path in found)
    if not alone:
        raise ImportFailed(source, None, f"holds {names} but no edges.csv; both are needed")
    raise ImportFailed(source, None, f"holds several graphs ({names}); name one file, or keep one graph in a folder")


def _mapped(mapping: Path) -> _SourceFiles:
    """Return the tables that a `graph.yaml` explains, or the source that it names with its options."""
    content = read_mapping(mapping)
    if "source" not in content:
        return _SourceFiles(mapping.parent, mapping=mapping)
    place, options = source_of(mapping, content)
    found = _find(place)
    return replace(found, options=options, given=mapping)


def _is_alone(path: Path) -> bool:
    """True if a file is a whole graph, by its name."""
    name = uncompressed(path).name.lower()
    return bool(_ALONE.fullmatch(name)) and has_format(path) and _ending(path) != PARQUET


def _tables(paths: Iterable[Path], beside: bool) -> tuple[list[Path], list[Path], dict[Path, Path | None]]:
    """Sort out which files hold nodes, which edges, and where their headers are; `beside` another graph, by name."""
    tables = [path for path in paths if _ending(path) in DELIMITED_ENDINGS and path.is_file()]
    alone = {path: match.group(1) for path in tables if (match := _HEADER.fullmatch(uncompressed(path).name))}
    nodes: list[Path] = []
    edges: list[Path] = []
    headers: dict[Path, Path | None] = {}
    names = [uncompressed(path).name for path in tables if path not in alone]
    nodes_named, edges_named = (
        tiers[0] if beside else next((one for one in tiers if any(map(one.fullmatch, names))), tiers[0])
        for tiers in (_NODES, _EDGES)
    )
    for path in tables:
        if path in alone:
            continue
        name = uncompressed(path).name
        header = next((header for header, stem in alone.items() if name.startswith(stem)), None)
        fields = _first_fields(header or path)
        if is_marked(fields):
            (nodes if is_node_header(fields) else edges).append(path)
        elif nodes_named.fullmatch(name):
            nodes.append(path)
        elif edges_named.fullmatch(name):
            edges.append(path)
        else:
            continue
        headers[path] = header
    return nodes, edges, headers


def _first_fields(path: Path) -> list[str]:
    try:
        return RecordFile.at(path).first("a header")[1]
    except ImportFailed:  # not one of ours, or reported when it is read
        return []


def _refuse_copies(source: Path, found: Sequence[Path]) -> None:
    names: dict[str, str] = {}
    for path in found:
        other = names.setdefault(uncompressed(path).name, path.name)
        if other != path.name:
            raise ImportFailed(source, None, f"holds several graphs ({other}, {path.name}); keep one of the two files")


def _ending(path: Path) -> str:
    return uncompressed(path).suffix.lower()
