"""Graphs in tables that were not made for graphs: a file `graph.yaml` says what each column means.

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

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from byokg.errors import ImportFailed
from byokg.graph.cells import KINDS
from byokg.graph.delimited import COMPRESSIONS, RecordFile, TextFile
from byokg.graph.property_tables import Column, PropertyTables, Table

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
        for position, field in enumerate(fields):
            if field in fields[:position]:
                raise ImportFailed(file.path, line, f"column {field!r} stands twice in the header; rename one")
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
