"""A preview of a source: its reading, and a `graph.yaml` of it to edit.

A file whose lines are records is sampled if it is large. Tables that no rule makes a graph of are explained by a
`graph.yaml` that is guessed: a table with a column of distinct values holds nodes, a column named like another table or
its key holds edges to that, several in a cell among them, and a table with two such columns and no key of its own holds
edges. A file of records that hold no edges is such a table, too.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import yaml

from byokg.errors import ImportFailed
from byokg.files import TextFile, in_bytes, uncompressed
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.schema import TEXT
from byokg.graph.importers.choose import DELIMITED_ENDINGS, ZIP, files_read, import_graph, source_files
from byokg.graph.importers.columns import InferredKinds, node_header, words
from byokg.graph.importers.delimited import RecordFile
from byokg.graph.importers.dialects import DETECTED, TableOptions
from byokg.graph.importers.formats import Format, find_format
from byokg.graph.importers.tables import MAPPING, OF_NODES, edge_table
from byokg.graph.store import Direction

SAMPLED_FROM, _SAMPLE_BYTES = 1 << 26, 1 << 23
"""Size of files from which on they are sampled, and of the sample, in bytes."""


@dataclass(frozen=True)
class Sniffed:
    """The reading of a source."""

    format: str
    """Name of the format, and the library that parses it."""
    graph: ColumnarGraph
    """The graph of the source, or of the sample."""
    sampled: bool
    """True if the graph is that of the beginning of a file."""
    files: Sequence[str]
    """How each table was read."""
    mapping: Mapping[str, Any]
    """Content of a `graph.yaml` that says the same."""
    left_out: Sequence[str] = ()
    """Tables that no guess explains."""


def sniff(source: str | Path, options: TableOptions = DETECTED) -> Sniffed:
    """Read a source, or a sample of it, and describe it. Raises `ImportFailed` as `import_graph` does."""
    place = Path(source)
    tables = _loose_tables(place, options)
    if tables:
        folder, mapping = place if place.is_dir() else place.parent, _guessed(tables)
        with tempfile.TemporaryDirectory(prefix="byokg-") as temporary:
            written = Path(temporary) / MAPPING
            written.write_bytes(mapping_text({"folder": str(folder.resolve()), **mapping}).encode())
            graph = import_graph(written)
        read = {file["name"] for file in graph.source["files"]}
        left_out = [table.name for table in tables if not read & {table.name, table.path.name}]
        return Sniffed("tables, explained by a guess (Arrow)", graph, False, files_read(graph), mapping, left_out)
    whole = place.is_dir() or place.suffix.lower() in (ZIP, ".yaml", ".yml")
    form = None if whole else find_format(place)
    with _sample(place, form) as part:
        graph = import_graph(part, options)
    name = f"{form.name} ({form.library})" if form else str(graph.source.get("kind", "folder"))
    found: dict[str, Any] = {"source": place.name}
    if form and form.name == "delimited":
        found |= _decisions(place, options)
    if templates := dict(graph.display_names):
        found["names"] = templates
    return Sniffed(name, graph, part != place, files_read(graph), found)


def mapping_text(mapping: Mapping[str, Any]) -> str:
    """Write the content of a `graph.yaml`."""
    return yaml.safe_dump(dict(mapping), sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)


@contextmanager
def _sample(place: Path, form: Format | None) -> Iterator[Path]:
    """Give the beginning of a large file whose lines are records, as a file of its own; else the file itself."""
    by_line = form is not None and (form.lines or form.name in ("Wikidata JSON", "SIF"))
    if not by_line or place.stat().st_size <= SAMPLED_FROM:
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="byokg-") as folder:
        part = Path(folder) / uncompressed(place).name
        with TextFile(place).reading(), TextFile(place).open() as stream:
            data = stream.read(_SAMPLE_BYTES)
        part.write_bytes(data[: data.rfind(b"\n") + 1] or data)
        yield part


def _decisions(place: Path, options: TableOptions) -> dict[str, Any]:
    """Return the decisions about a delimited file of edges that are otherwise detected."""
    file = RecordFile.at(place, options=options)
    table = edge_table(file, options)
    shown = {"head": "source", "tail": "target", "relation": "relation"}
    roles = {column.position: shown.get(column.role, column.name) for column in table.columns}
    named = {} if table.file.titled else {"columns": [roles.get(at, "-") for at in range(len(table.fields))]}
    separator = {"\t": "tab", " ": "space"}.get(file.dialect.separator, file.dialect.separator)
    return {
        **named,
        "header": table.file.titled,
        "delimiter": separator,
        "comment": file.dialect.comment,
        "undirected": table.undirected,
    }


# Tables that were not made for graphs


@dataclass(frozen=True)
class _LooseTable:
    """A table with its sample."""

    path: Path
    fields: Sequence[str]
    rows: Sequence[Sequence[str]]
    key: str
    """The column that identifies its rows; empty if none does."""
    distinct: Sequence[str]
    """Columns whose values are all distinct."""
    cells: Mapping[str, pa.Array]
    """The sample by column; null where a cell is empty."""
    texts: Collection[str]
    """Columns whose values are no numbers, dates or the like."""
    values: Callable[[str, str], frozenset[str]]
    """Returns the values of a column in the sample; several of a cell where a separator stands between them."""

    @property
    def name(self) -> str:
        """Return the file's name, uncompressed."""
        return uncompressed(self.path).name

    @property
    def type(self) -> str:
        """Return the type of its nodes."""
        return _singular(self.name.partition(".")[0]).title().replace("_", "").replace("-", "")


def _loose_tables(place: Path, options: TableOptions) -> list[_LooseTable]:
    """Return the tables of a folder that is no graph by its names of files, or the one of a file that holds no edges;
    none for another source, or for a file about which something is decided."""
    if place.is_file() and options == DETECTED and uncompressed(place).suffix.lower() in DELIMITED_ENDINGS:
        try:
            edge_table(RecordFile.at(place))
        except ImportFailed as error:
            alone = _with_keys([_loose_table(place)]) if OF_NODES in error.reason else []
            return [table for table in alone if table.key and len(table.fields) > 1]
        return []
    if not place.is_dir() or (place / MAPPING).exists():
        return []
    paths = [path for path in place.iterdir() if uncompressed(path).suffix.lower() in DELIMITED_ENDINGS]
    if len(paths) < 2:
        return []
    try:
        source_files(place)
    except ImportFailed as error:
        if "tables" not in error.reason and "edges.csv" not in error.reason:
            raise
        return _with_keys([_loose_table(path) for path in sorted(paths, key=in_bytes) if not path.name.startswith(".")])
    return []


def _loose_table(path: Path) -> _LooseTable:
    (_, fields), *rows = RecordFile.at(path).sample() or [(1, [])]
    records = [row for _, row in rows]
    stem = uncompressed(path).name.partition(".")[0]
    distinct = [
        name
        for at, name in enumerate(fields)
        if records and len({row[at] for row in records if at < len(row) and row[at]}) == len(records)
    ]
    header = node_header(fields, records)
    named = next((column.name for column in header or () if column.role == "id"), "")
    own = (*words(_singular(stem)), "id")
    key = next((name for name in distinct if words(name) in (own, ("id",)) or name == named), "")

    @cache
    def values(column: str, separator: str) -> frozenset[str]:
        at = fields.index(column)
        cells = (row[at] for row in records if at < len(row) and row[at])
        parts = (map(str.strip, cell.split(separator)) if separator else (cell,) for cell in cells)
        return frozenset(chain.from_iterable(parts))

    cells = {
        name: pa.array([row[at] or None if at < len(row) else None for row in records], TEXT)
        for at, name in enumerate(fields)
    }
    texts = [name for name, kind in _kinds(fields, [cells]).items() if kind == "string"]
    return _LooseTable(path, fields, records, key, distinct, cells, texts, values)


def _with_keys(tables: Sequence[_LooseTable]) -> list[_LooseTable]:
    """Choose the key of each table of nodes: the first distinct column that others refer to, ids before names.

    A table that has no id and joins no others is identified by its first column.
    """
    by_id = [table for table in tables if table.key]
    found = []
    for table in tables:
        joined = [one.column for one in _foreign_keys(table, by_id)]
        if not table.key and len(joined) > 1:
            found.append(table)
            continue
        free = [name for name in table.distinct if name not in joined]
        own = table.key or next((name for name in free if name == table.fields[0]), "")
        names = dict.fromkeys((own, *(name for name in free if name in table.texts)))
        candidates = [replace(table, key=name) for name in names if name]
        others = [other for other in tables if other is not table]
        referred = (one for one in candidates if any(True for other in others for _ in _foreign_keys(other, [one])))
        found.append(next(referred, replace(table, key=own)))
    return found


def _singular(name: str) -> str:
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def _guessed(tables: Sequence[_LooseTable]) -> dict[str, Any]:
    """Return the content of a `graph.yaml` that explains some tables. Raises `ImportFailed` if none holds nodes."""
    nodes = [table for table in tables if table.key]
    if not nodes:
        names = ", ".join(table.name for table in tables)
        reason = "no table has a column of distinct values, named like an id or the first; describe them in graph.yaml"
        raise ImportFailed(names, None, reason)
    found: dict[str, Any] = {"nodes": {}, "edges": {}}
    kinds = _common_kinds(tables)
    for table in nodes:
        entry: dict[str, Any] = {"file": table.name, "id": table.key}
        if own := {name: kinds[name] for name in table.fields if name in kinds}:
            entry["kinds"] = own
        if held := [one.column for one in _foreign_keys(table, nodes) if one.whole and one.column not in kinds]:
            entry["leave_out"] = held
        found["nodes"][table.type] = entry
    edges: list[tuple[str, dict[str, Any]]] = []
    for table in tables:
        links = list(_foreign_keys(table, nodes))
        if table.key:
            for link in links:
                ends = {"head": {table.type: table.key}, "tail": {link.to.type: link.column}}
                more = {"separator": link.separator} if link.separator else {}
                edges.append((link.relation, {"file": table.name, **ends, "missing": "skip", **more}))
        elif len(links) > 1:
            one, other, *_ = links
            ends = {"head": {one.to.type: one.column}, "tail": {other.to.type: other.column}}
            more = {"separator": other.separator} if other.separator else {}
            own = {name: kinds.get(name, "string") for name in table.fields if name not in (one.column, other.column)}
            entry = {"file": table.name, **ends, "missing": "skip", **more} | ({"properties": own} if own else {})
            edges.append((_relation(table.type), entry))
    counts = Counter(relation for relation, _ in edges)
    for relation, entry in edges:
        if counts[relation] > 1:
            found["edges"].setdefault(relation, []).append(entry)
        else:
            found["edges"][relation] = entry
    if wide := [table.name for table in tables if any(len(row) > len(table.fields) for row in table.rows)]:
        found["files"] = {name: {"surplus": "drop"} for name in wide}
    return found


def _relation(type_: str) -> str:
    """Return the name of a relation that a type names: `ORDER_DETAIL` of `OrderDetail`."""
    return "_".join(words(type_)).upper()


class _ForeignKey(NamedTuple):
    """A column of a table that holds keys of another one."""

    column: str
    to: _LooseTable
    separator: str
    """Text between several keys in a cell."""
    relation: str
    whole: bool
    """True for names, and cells of several keys, if all are keys of the other table: edges hold the whole column."""


def _foreign_keys(table: _LooseTable, nodes: Sequence[_LooseTable]) -> Iterator[_ForeignKey]:
    """Yield the columns of a table that hold keys of another one, by their names or, of texts, by all their values."""
    for column in table.fields:
        said = words(column)
        for other in nodes:
            key, type_ = words(other.key), other.type.lower()
            if column == table.key or (other is table and said == key):
                continue
            stem = said[:-1] if said[-1:] == ("id",) else said
            named = (said == key and said != ("id",)) or _singular("".join(stem[-1:])) in (type_, _singular(type_))
            keys = other.values(other.key, "")
            held, separator = max(((table.values(column, each), each) for each in _SEPARATORS), key=_shared_with(keys))
            shared = len(held & keys)
            most = shared >= max(_FEW, _MOST * len(held)) and column in table.texts
            if most or (named and shared and shared * 2 >= min(len(held), len(keys))):
                plain = said == key or (named and len(stem) == 1)
                relation = f"HAS_{_relation(other.type)}" if plain else "_".join(stem).upper()
                whole = held <= keys and (bool(separator) or said[-1:] != ("id",))
                yield _ForeignKey(column, other, separator, relation, whole)
                break


def _shared_with(keys: Set[str]) -> Callable[[tuple[Set[str], str]], int]:
    return lambda one: len(one[0] & keys)


_SEPARATORS = ("", "|", ";", ",")
"""Texts between the keys in a cell, the likeliest first."""

_FEW, _MOST = 3, 0.9
"""Values, and share of them, that a column whose name says nothing has in common with the key that it refers to."""


def _common_kinds(tables: Sequence[_LooseTable]) -> dict[str, str]:
    """Return the kinds of columns whose values are no texts in any table."""
    keys = {table.key for table in tables}
    names = dict.fromkeys(name for table in tables for name in table.fields if name not in keys)
    kinds = _kinds(names, [table.cells for table in tables])
    return {name: kind for name, kind in kinds.items() if kind != "string"}


def _kinds(names: Collection[str], samples: Sequence[Mapping[str, pa.Array]]) -> dict[str, str]:
    """Return the kind of the values of each column in all samples together."""
    inferred = InferredKinds(names)
    for cells in samples:
        for name, column in cells.items():
            if name in names:
                inferred.see(name, column)
    return {name: inferred.kind(name) for name in names}


def example_edges(graph: ColumnarGraph, count: int = 3) -> list[str]:
    """Return some edges of a graph as text, the first of the nodes in their order."""
    numbers = graph.numbers(list(graph.entities())[:1000])
    batch = graph.edges(numbers, Direction.OUT)
    ends = list(chain(graph.ids(batch.head[:count]), graph.ids(batch.tail[:count])))
    names = [node.name for node in graph.nodes(ends)]
    half = len(names) // 2
    labels = [graph.relations[number] for number in batch.relation[:count].tolist()]
    return [f"{names[at]} -[{label}]-> {names[half + at]}" for at, label in enumerate(labels)]
