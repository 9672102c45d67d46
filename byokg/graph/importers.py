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
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from byokg.errors import ImportFailed
from byokg.graph.columnar import ColumnarGraph
from byokg.graph.delimited import RecordFile, TextFile, uncompressed
from byokg.graph.folder import META, new_folder, refuse_taken
from byokg.graph.graph_stream import GraphStream, collected
from byokg.graph.graph_writer import write_graph
from byokg.graph.json_lines import JsonLinesFile
from byokg.graph.property_tables import PropertyTables, Table, is_marked, is_node_header, several_spaces, table
from byokg.graph.table_mapping import MAPPING, mapped_files, mapped_tables
from byokg.graph.triple_file import TripleFile

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
    with new_folder(out, overwrite) as partial:
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
        from byokg.graph.rdf import RdfFile

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
