"""Reading graph files into a `ColumnarGraph`: which file is read how.

| source                                  | content                                                              |
|-----------------------------------------|----------------------------------------------------------------------|
| `kb.txt`, any `.txt`                    | `head|relation|tail`, no quoting                                     |
| `graph.tsv`, any `.tsv`                 | head, relation, tail separated by tabs, no quoting                   |
| `graph.csv`, any `.csv`                 | head,relation,tail with the quoting of RFC 4180                      |
| any of these with 4 or 5 columns        | head, relation, tail and time, or start and end (`triple_file`)      |
| `.jsonl`                                | one triple, node or edge a line (`json_lines`)                       |
| `.nt`, `.nq`, `.ttl`, `.trig`, `.rdf`, … | RDF (`rdf`; needs `byokg[sparql]`)                                   |
| `.yaml`, folder with `graph.yaml`       | tables whose columns that file explains (`table_mapping`)            |
| folder with `nodes*.csv`, `edges*.csv`  | nodes and edges with properties (`property_tables`)                  |
| folder of `neo4j-admin import` files    | `.csv` or `.tsv` files known by their headers (`property_tables`)    |
| folder with one file                    | named `kb`, `graph` or `triples`, and ending as above                |

Each file may be compressed as `.gz`, `.xz` or `.zst`; `delimited` tells more about the text. A triple file may start
with the line head, relation, tail. Its exact repetitions are dropped and counted, an entity's id is its name, and it
has no type.

Tables may be split into several files (`nodes-1.csv`, `nodes-2.csv`, …), and a header may stand alone in a file named
`X_header.csv` or `X-header.csv` beside `X.csv`, `X1.csv`, …. A missing name is the id. The same row may come twice,
another row with the same id may not. Both ends of an edge must be among the nodes; parallel edges are all kept. An
empty cell means that the node or edge lacks the property. A bool is `true` or `false`, a date `2001-09-30`.

Graphs in tables that were not made for graphs: a file `graph.yaml` says what each column means.

    nodes:
      Product:                                # the type
        file: products.csv
        id: productID                         # the node's id is `Product:<productID>`
        name: productName                     # may be left out: then the id is the name
        kinds: {unitPrice: float, discontinued: flag}
        leave_out: [picture]
    edges:
      PART_OF: {file: products.csv, head: {Product: productID}, tail: {Category: categoryID}}
      ORDERS:
        file: order-details.csv
        head: {Order: orderID}
        tail: {Product: productID}
        properties: {quantity: int, discount: string}
    files:
      orders.csv: {surplus: drop}

A table of nodes gives one node a row, and every column is a property unless it is left out; kinds are string (where
nothing is said), int, float, bool, flag (1 or 0) and date. Empty cells are no property. A table of edges gives one edge
a row, from the node whose id stands in one column to that in another; a foreign key is an edge out of the table it
stands in. It has the properties that are listed. `missing: skip` leaves out rows where an end is empty or no node;
otherwise they are refused. A type or relation that comes from several tables is a list of such entries.

The tables lie beside `graph.yaml`, or in the folder it names as `folder`.

`surplus: drop` reads a file by position whose records may have more fields than the header, as a plain import does
where commas were not quoted: the surplus fields are dropped, so the values before them may stand in the wrong column.
How many records that are is kept in the graph's `source`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from byokg.errors import ImportFailed
from byokg.files import COMPRESSIONS, TextFile, new_folder, uncompressed
from byokg.graph.columnar.folder import META, refuse_taken
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.schema import KINDS
from byokg.graph.columnar.writer import GraphStream, collected, write_graph
from byokg.graph.importers.delimited import RecordFile
from byokg.graph.importers.json_lines import JsonLinesFile
from byokg.graph.importers.tables import Column, PropertyTables, Table, is_marked, is_node_header, several_spaces, table
from byokg.graph.importers.triples import TripleFile

MAPPING = "graph.yaml"

_NODE_KEYS = ("file", "id", "name", "kinds", "leave_out")
_EDGE_KEYS = ("file", "head", "tail", "properties", "missing")


def mapped_tables(mapping: Path) -> PropertyTables:
    """Read a mapping and the headers of the tables that it names. Raises `ImportFailed`."""
    reader = _Reader(mapping)
    nodes, edges = reader.tables()
    source = {"kind": "mapped tables", "files": reader.descriptions()}
    return PropertyTables(str(mapping.parent), nodes, edges, source, spaced=True)


def mapped_files(mapping: Path) -> list[Path]:
    """Return the mapping and the files it names. Raises `ImportFailed`."""
    reader = _Reader(mapping)
    reader.tables()
    return [mapping, *(file.path for file in reader.files.values())]


class _Reader:
    """The content of a mapping, checked key by key."""

    def __init__(self, mapping: Path) -> None:
        self.mapping = mapping
        self.files: dict[str, RecordFile] = {}
        try:
            content = yaml.safe_load(mapping.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ImportFailed(mapping, None, f"cannot be read: {error}") from error
        self._content = self._mapping("the file", content, ("nodes", "edges", "files", "folder"))
        self._options = {
            name: self._mapping(f"files: {name}", options, ("surplus",))
            for name, options in self._mapping("files", self._content.get("files", {})).items()
        }

    def tables(self) -> tuple[list[Table], list[Table]]:
        """Return the tables of nodes and of edges, in the order written."""
        nodes = [
            self._nodes(type_, entry)
            for type_, entries in self._mapping("nodes", self._content.get("nodes")).items()
            for entry in (entries if isinstance(entries, list) else [entries])
        ]
        types = {table.label for table in nodes}
        edges = [
            self._edges(relation, entry, types)
            for relation, entries in self._mapping("edges", self._content.get("edges")).items()
            for entry in (entries if isinstance(entries, list) else [entries])
        ]
        for name in self._options:
            if name not in self.files:
                raise self._wrong(f"files: {name}", "no table uses this file")
        return nodes, edges

    def descriptions(self) -> list[dict[str, Any]]:
        """Describe the mapping and its files for a graph's `source`."""
        found = [TextFile(self.mapping).description()]
        for file in self.files.values():
            found.append(file.description())
            if file.cut:
                found[-1]["cut_records"] = file.surplus()
        return found

    def _nodes(self, type_: str, entry: object) -> Table:
        place = f"nodes: {type_}"
        entry = self._mapping(place, entry, _NODE_KEYS)
        file, fields = self._file(place, entry)
        kinds = self._mapping(f"{place}: kinds", entry.get("kinds", {}))
        left_out = entry.get("leave_out", [])
        if not isinstance(left_out, list):
            raise self._wrong(f"{place}: leave_out", "it is a list of columns")
        for name in left_out:
            self._position(f"{place}: leave_out", file, fields, name)
        columns = [Column(self._position(f"{place}: id", file, fields, entry.get("id")), ":ID", "id", space=type_)]
        if "name" in entry:
            columns.append(Column(self._position(f"{place}: name", file, fields, entry["name"]), ":NAME", "name"))
        for name in kinds:
            self._position(f"{place}: kinds", file, fields, name)
        for position, name in enumerate(fields):
            if name not in left_out:
                kind = self._kind(f"{place}: kinds: {name}", kinds.get(name, "string"))
                columns.append(Column(position, name, "property", kind))
        return Table(file, fields, columns, type_)

    def _edges(self, relation: str, entry: object, types: set[str]) -> Table:
        place = f"edges: {relation}"
        entry = self._mapping(place, entry, _EDGE_KEYS)
        file, fields = self._file(place, entry)
        columns = []
        for role in ("head", "tail"):
            end = self._mapping(f"{place}: {role}", entry.get(role))
            if len(end) != 1 or not end.keys() <= types:
                raise self._wrong(f"{place}: {role}", f"it is {{TYPE: COLUMN}} with one of the types {sorted(types)}")
            [(type_, name)] = end.items()
            columns.append(Column(self._position(f"{place}: {role}", file, fields, name), role, role, space=type_))
        properties = self._mapping(f"{place}: properties", entry.get("properties", {}))
        for name, kind in properties.items():
            position = self._position(f"{place}: properties", file, fields, name)
            columns.append(Column(position, name, "property", self._kind(f"{place}: properties: {name}", kind)))
        if entry.get("missing", "refuse") not in ("refuse", "skip"):
            raise self._wrong(f"{place}: missing", "it is refuse or skip")
        return Table(file, fields, columns, relation, partial=entry.get("missing") == "skip")

    def _file(self, place: str, entry: Mapping[str, Any]) -> tuple[RecordFile, list[str]]:
        name = entry.get("file")
        if not isinstance(name, str):
            raise self._wrong(f"{place}: file", "name the file that holds the table")
        if name not in self.files:
            folder = self.mapping.parent / str(self._content.get("folder", ""))
            found = [path for ending in COMPRESSIONS if (path := folder / f"{name}{ending}").is_file()]
            if not found:
                raise self._wrong(f"{place}: file", f"there is no {folder / name} (nor .gz, .xz, .zst)")
            surplus = self._options.get(name, {}).get("surplus", "refuse")
            if surplus not in ("refuse", "drop"):
                raise self._wrong(f"files: {name}: surplus", "it is refuse or drop")
            self.files[name] = replace(RecordFile.at(found[0]), cut=surplus == "drop")
        file = self.files[name]
        line, fields = file.first("a header")
        for position, column in enumerate(fields):
            if column in fields[:position]:
                raise ImportFailed(file.path, line, f"column {column!r} stands twice in the header; rename one")
        return file, fields

    def _position(self, place: str, file: RecordFile, fields: Sequence[str], name: object) -> int:
        if name not in fields:
            raise self._wrong(place, f"{file.path.name} has no column {name!r}; it has {', '.join(fields)}")
        return fields.index(str(name))

    def _kind(self, place: str, kind: object) -> str:
        if kind not in KINDS:
            raise self._wrong(place, f"{kind!r} is no kind; kinds are {', '.join(KINDS)}")
        return str(kind)

    def _mapping(self, place: str, value: object, keys: Sequence[str] | None = None) -> dict[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise self._wrong(place, f"a mapping of names is needed, found {value!r}")
        for key in value:
            if keys is not None and key not in keys:
                raise self._wrong(place, f"unknown key {key!r}; keys are {', '.join(keys)}")
        return value

    def _wrong(self, place: str, reason: str) -> ImportFailed:
        return ImportFailed(self.mapping, None, f"{place}: {reason}")


TRIPLE_NAMES = ("kb.txt", "graph.tsv", "graph.csv")
TABLE_ENDINGS = (".csv", ".tsv")
DELIMITED_ENDINGS = (".txt", *TABLE_ENDINGS)
JSON_ENDINGS = (".jsonl", ".ndjson")
RDF_ENDINGS = (".nt", ".nq", ".ttl", ".trig", ".rdf", ".xml", ".owl")

_ALONE = re.compile(r"(kb|graph|triples)\.\w+")
_NODES, _EDGES = re.compile(r"nodes([-_]?[0-9]+|[-_].+)?\.[ct]sv"), re.compile(r"edges([-_]?[0-9]+|[-_].+)?\.[ct]sv")
_HEADER = re.compile(r"(.+)[-_]header\.[ct]sv")


def build_graph(source: str | Path, out: str | Path, overwrite: bool = False) -> ColumnarGraph:
    """Import `source`, save it as a graph folder, and open that.

    Edges may be more than fit into memory: they are read, sorted and written in portions.

    Args:
        source: a file or folder as described at the top of this module.
        out: folder to write; appears only when complete.
        overwrite: replace a graph that is already there. Anything else is never replaced.

    Raises:
        ImportFailed: the source cannot become a graph; names file, line and reason.
        GraphExists: `out` is taken.
        MissingExtra: the source is RDF and pyoxigraph is not installed.
    """
    refuse_taken(out, overwrite)
    with new_folder(out, overwrite, refuse_taken) as partial:
        import_into(source, partial)
    return ColumnarGraph.open(out)


def import_into(source: str | Path, folder: Path) -> ColumnarGraph:
    """Import `source` into an empty folder that is being made, and open it there. Raises what `build_graph` does."""
    write_graph(_stream(_find(Path(source))), folder)
    return ColumnarGraph.open(folder)


def import_graph(source: str | Path) -> ColumnarGraph:
    """Read `source` into memory.

    Args:
        source: a file or folder as described at the top of this module.

    Raises:
        ImportFailed: the source cannot become a graph; names file, line and reason.
        MissingExtra: the source is RDF and pyoxigraph is not installed.
    """
    return collected(_stream(_find(Path(source))))


def source_files(source: str | Path) -> list[Path]:
    """Return the files that `import_graph` would read, in a fixed order. Raises `ImportFailed` as it would."""
    found = _find(Path(source))
    if found.mapping:
        return mapped_files(found.mapping)
    headers = [header for header in found.headers.values() if header]
    return [found.alone] if found.alone else sorted({*found.nodes, *found.edges, *headers})


def _stream(found: _Found) -> GraphStream:
    if found.mapping:
        return mapped_tables(found.mapping)
    if not found.alone:
        return PropertyTables(str(found.source), *found.tables())
    ending = _ending(found.alone)
    if ending in RDF_ENDINGS:
        from byokg.graph.rdf.importer import RdfFile

        return RdfFile(found.alone)
    return JsonLinesFile(found.alone) if ending in JSON_ENDINGS else TripleFile(found.alone)


# Which files of a folder are the graph


@dataclass(frozen=True)
class _Found:
    """What a source consists of: one file alone, or a mapping, or files of nodes and of edges."""

    source: Path
    alone: Path | None = None
    mapping: Path | None = None
    nodes: Sequence[Path] = ()
    edges: Sequence[Path] = ()
    headers: Mapping[Path, Path | None] = field(default_factory=dict)
    """For each file of nodes or edges, the file that holds its header, if another one does."""

    def tables(self) -> tuple[list[Table], list[Table], dict[str, Any], bool]:
        """Read the headers; return nodes, edges, what the graph says it is made from, and whether ids have spaces."""
        nodes, edges = (
            [table(RecordFile.at(path), kind, self._header(path)) for path in paths]
            for kind, paths in ((True, self.nodes), (False, self.edges))
        )
        files = dict.fromkeys(header for header in self.headers.values() if header) | dict.fromkeys(self.nodes)
        files |= dict.fromkeys(self.edges)
        source = {"kind": "nodes and edges", "files": [TextFile(path).description() for path in files]}
        return nodes, edges, source, several_spaces([*nodes, *edges])

    def _header(self, path: Path) -> RecordFile | None:
        header = self.headers.get(path)
        return RecordFile.at(header) if header else None


def _find(source: Path) -> _Found:
    if not source.exists():
        raise ImportFailed(source, None, "no such file or folder")
    if not source.is_dir():
        mapped = source.suffix.lower() in (".yaml", ".yml")
        return _Found(source, mapping=source) if mapped else _Found(source, alone=source)
    if (source / META).exists():
        raise ImportFailed(source, None, "this is a built graph already; open it, or give the files it was built from")
    if (source / MAPPING).exists():
        return _Found(source, mapping=source / MAPPING)
    present = sorted(path for path in source.iterdir() if not path.name.startswith("."))
    alone = [path for path in present if _is_alone(path)]
    nodes, edges, headers = _tables(path for path in present if path not in alone)
    found = [*nodes, *edges, *alone]
    _refuse_copies(source, found)
    if nodes and edges and not alone:
        return _Found(source, nodes=nodes, edges=edges, headers=headers)
    if len(alone) == 1 and not nodes and not edges:
        return _Found(source, alone=alone[0])
    if not found:
        known = f"{', '.join(TRIPLE_NAMES)}, graph.jsonl, graph.nt"
        reason = f"holds neither nodes.csv with edges.csv nor one of {known} (also .gz, .xz, .zst)"
        raise ImportFailed(source, None, reason)
    names = ", ".join(path.name for path in found)
    if not alone:
        lacking = "edges.csv" if nodes else "nodes.csv"
        raise ImportFailed(source, None, f"holds {names} but no {lacking}; both are needed")
    raise ImportFailed(source, None, f"holds several graphs ({names}); name one file, or keep one graph in a folder")


def _is_alone(path: Path) -> bool:
    """Tell from its name whether a file is a whole graph."""
    name = uncompressed(path).name.lower()
    return bool(_ALONE.fullmatch(name)) and _ending(path) in (*DELIMITED_ENDINGS, *JSON_ENDINGS, *RDF_ENDINGS)


def _tables(paths: Iterable[Path]) -> tuple[list[Path], list[Path], dict[Path, Path | None]]:
    """Sort out which files hold nodes, which edges, and where their headers are."""
    tables = [path for path in paths if _ending(path) in TABLE_ENDINGS and path.is_file()]
    alone = {path: match.group(1) for path in tables if (match := _HEADER.fullmatch(uncompressed(path).name))}
    nodes: list[Path] = []
    edges: list[Path] = []
    headers: dict[Path, Path | None] = {}
    for path in tables:
        if path in alone:
            continue
        name = uncompressed(path).name
        header = next((header for header, stem in alone.items() if name.startswith(stem)), None)
        fields = _first_fields(header or path)
        if is_marked(fields):
            (nodes if is_node_header(fields) else edges).append(path)
        elif _NODES.fullmatch(name):
            nodes.append(path)
        elif _EDGES.fullmatch(name):
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
