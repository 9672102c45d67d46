"""Graphs in Parquet files: edges in columns head, relation and tail, and nodes, if there are any files of these, in id.

A node may have columns name and type, too; `columns` lists the other names that all of these may have, in any case. A
type may be a list of texts, and a column types of such lists gives further ones. An
edge without a relation is `related_to` its tail. All other columns are properties. Whole numbers, floats, truth values,
dates and texts keep their types, decimals become floats, times the text of ISO 8601, and lists and records their
JSON. Ids that are whole numbers become text. If no file holds nodes, the ends of edges are the nodes; if edges then
have no properties either, exact repetitions are dropped and counted. Else both ends of every edge must be among the
nodes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as parquet

from byokg.arrays import Integers
from byokg.errors import ImportFailed
from byokg.files import TextFile
from byokg.graph.columnar.node_types import cells_of_lists, cells_of_texts, join_cells
from byokg.graph.columnar.schema import TEXT, Clash, blank, property_batch
from byokg.graph.columnar.writer import EdgeBlock, ahead
from byokg.graph.importers.columns import Column, edge_header, node_header, read_directions
from byokg.graph.importers.table_stream import DEFAULT_RELATION, NAME, TYPE, TableStream, common_types, same_label
from byokg.graph.importers.tables import columns_read

_ROWS = 1 << 18
"""Rows read together."""

_SAMPLE = 1000
"""Rows sampled to decide the columns' content."""

_INDEX = "__index_level_0__"
"""Where pandas writes the numbers of rows."""


@dataclass(frozen=True)
class _TableFile:
    """A file of nodes or of edges, and the columns that it has."""

    path: Path
    file: parquet.ParquetFile
    columns: Sequence[Column]

    def position(self, role: str) -> int | None:
        """Return the position of the column that holds something, if there is one."""
        return next((column.position for column in self.columns if column.role == role), None)

    def properties(self) -> Iterator[tuple[str, int, pa.DataType]]:
        """Yield the key, the position and the type of each column that describes nodes or edges."""
        of_types, kinds = self.type_positions(), self.file.schema_arrow.types
        if of_types:
            yield TYPE, of_types[0], TEXT
        for column in self.columns:
            if column.role == "name":
                yield NAME, column.position, TEXT
            elif column.position not in of_types and column.role == "property" and column.name != _INDEX:
                yield column.name, column.position, _kept(kinds[column.position])

    def type_positions(self) -> list[int]:
        """Return the positions of the columns that hold types of nodes: that of the first type, and lists."""
        if self.position("id") is None:
            return []
        kinds, first = self.file.schema_arrow.types, self.position("type")
        lists = [
            column.position
            for column in self.columns
            if column.role == "property" and column.name == "types" and _lists_texts(kinds[column.position])
        ]
        return lists if first is None else [first, *lists]


class ParquetTables(TableStream):
    """Files of nodes and of edges; a `GraphStream`."""

    def __init__(self, name: str, nodes: Sequence[Path], edges: Sequence[Path]) -> None:
        """Read the schemas. Raises `ImportFailed` if a column is missing, or two files disagree."""
        super().__init__(name)
        self._node_files = [_opened(path, True) for path in nodes]
        self._edge_files = [_opened(path, False) for path in edges]
        if _ends_are_names(self._node_files, self._edge_files):
            self._node_files = [replace(one, columns=_by_name(one.columns)) for one in self._node_files]
        self._node_types, self._edge_types = (
            common_types((one.path, {key: kind for key, _, kind in one.properties()}) for one in files)
            for files in (self._node_files, self._edge_files)
        )
        self.distinct = not self._node_files and not self._edge_types

    def blocks(self) -> Iterator[EdgeBlock]:
        """Read the nodes, and yield the edges. Raises `ImportFailed`, naming file and row."""
        self._read_nodes()
        for one in self._edge_files:
            for row, batch in ahead(_batches(one.path, one.file)):
                ends = [_ids(one, row, batch, role) for role in ("head", "tail")]
                both = pa.concat_arrays(ends).dictionary_encode()
                numbers = self._numbers(both, known=bool(self._node_files))
                if (numbers < 0).any():
                    self._refuse_unknown(one.path, row, ends, numbers)
                labels = same_label(DEFAULT_RELATION, len(batch))
                if one.position("relation") is not None:
                    labels = _ids(one, row, batch, "relation").dictionary_encode()
                undirected = _undirected(one, row, batch)
                properties = property_batch(_read_properties(one, batch))
                yield EdgeBlock(self._triples(numbers, labels), properties, undirected=undirected)

    def property_types(self) -> Mapping[str, pa.DataType]:
        """Return the edges' properties."""
        return self._edge_types

    def _origin(self) -> dict[str, Any]:
        """Return the entry of the files in a graph's `source`."""
        files = []
        for one in (*self._node_files, *self._edge_files):
            kinds = {key: _SHOWN.get(kind, "text") for key, _, kind in one.properties()}
            told = f"Parquet; {columns_read(one.columns, DEFAULT_RELATION, kinds)}"
            rows = one.file.metadata.num_rows
            files.append(TextFile(one.path).description() | {"read_as": told, "rows": rows})
        return {"kind": "Parquet", "files": files}

    def _read_nodes(self) -> None:
        for one in self._node_files:
            for row, batch in ahead(_batches(one.path, one.file)):
                self._add_nodes(_ids(one, row, batch, "id").dictionary_encode(), _read_properties(one, batch))
        self._merge_nodes(self._node_types)

    def _clash(self, clash: Clash, held: pa.RecordBatch) -> ImportFailed:
        entity = self._ids.strings[clash.number].as_py()
        values = [held.column(clash.key)[at].as_py() for at in (clash.before, clash.row)]
        reason = f"node id {entity!r} stands in rows {clash.before + 1:,} and {clash.row + 1:,} of the nodes"
        reason += f", with {clash.key.removeprefix(chr(0))} {values[0]!r} and {values[1]!r}; keep one of the two"
        return ImportFailed(self._node_files[-1].path, None, reason)

    def _refuse_unknown(self, path: Path, row: int, ends: Sequence[pa.Array], found: Integers) -> None:
        at = int((found < 0).any(axis=1).argmax())
        side = 0 if found[at, 0] < 0 else 1
        end = ends[side][at].as_py()
        reason = f"row {row + at + 1:,}: {('head', 'tail')[side]} {end!r} is no id in the files of nodes; "
        raise ImportFailed(path, None, reason + "add the node or correct it")


def _ends_are_names(nodes: Sequence[_TableFile], edges: Sequence[_TableFile]) -> bool:
    """True if edges end at names of nodes and at none of their ids, as Microsoft's GraphRAG writes them."""
    if any(one.position("name") is None for one in nodes) or not nodes:
        return False
    heads = {head for one in edges for head in _column_texts(one, "head", _SAMPLE)}
    if any(not heads.isdisjoint(_column_texts(one, "id")) for one in nodes):
        return False
    return bool(heads) and heads <= {name for one in nodes for name in _column_texts(one, "name")}


def _column_texts(one: _TableFile, role: str, rows: int = _ROWS) -> Iterator[str]:
    """Yield the values of a column; with fewer `rows` than usual, those of the first rows."""
    name = one.file.schema_arrow.names[one.position(role) or 0]
    batches = one.file.iter_batches(rows, columns=[name])
    for batch in batches if rows == _ROWS else islice(batches, 1):
        yield from map(str, batch.column(0).drop_null().to_pylist())


def _by_name(columns: Sequence[Column]) -> list[Column]:
    """Return columns of nodes whose names are their ids."""
    own = [replace(column, role="property") if column.role == "id" else column for column in columns]
    return [*own, *(replace(column, role="id") for column in columns if column.role == "name")]


def _opened(path: Path, nodes: bool) -> _TableFile:
    try:
        file = parquet.ParquetFile(path)
        rows = _sampled(file)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ImportFailed(path, None, f"cannot be read as Parquet ({error}); write or fetch it again") from error
    names = file.schema_arrow.names
    for name in names:
        if names.count(name) > 1:
            raise ImportFailed(path, None, f"has {names.count(name)} columns {name!r}; rename one")
    listed = ", ".join(names)
    if nodes:
        columns = node_header(names, rows)
        if columns is None:
            raise ImportFailed(path, None, f"has no column 'id' among {listed}; rename the one that identifies nodes")
        return _TableFile(path, file, columns)
    header = edge_header(names, rows)
    if header is None and {"question", "graph"} <= set(names):
        reason = (
            f"holds questions, each with a graph of its own; ask them with: byokg eval dataset=rog dataset.root={path}"
        )
        raise ImportFailed(path, None, reason)
    if header is None:
        reason = f"has no two columns for the ends of edges among {listed}; name them head, relation and tail"
        raise ImportFailed(path, None, f"{reason}, or source, relation and target")
    if header.rivals:
        reason = f"columns {' and '.join(map(repr, header.rivals))} may each hold the relation; rename one relation"
        raise ImportFailed(path, None, reason)
    return _TableFile(path, file, header.columns)


def _sampled(file: parquet.ParquetFile) -> list[list[str]]:
    """Return the first rows as texts: values that may name a relation or a direction, and of others that they are."""
    batch = next(file.iter_batches(_SAMPLE), None)
    columns = [] if batch is None else [_read_texts(column) for column in batch.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _read_texts(column: pa.Array) -> list[str]:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind):
        try:
            return ["" if value is None else str(value) for value in column.to_pylist()]
        except UnicodeDecodeError:  # reported when all rows are read
            pass
    return ["x" if valid else "" for valid in column.is_valid().to_pylist()]


_SHOWN = {pa.int64(): "int", pa.float64(): "float", pa.bool_(): "bool", pa.date32(): "date"}


def _kept(kind: pa.DataType) -> pa.DataType:
    """Return the storage type of a column of this type."""
    if pa.types.is_dictionary(kind):
        return _kept(kind.value_type)
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pa.float64()
    return pa.bool_() if pa.types.is_boolean(kind) else pa.date32() if pa.types.is_date(kind) else TEXT


def _batches(path: Path, file: parquet.ParquetFile) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of a file in portions, each with how many come before it."""
    row = 0
    try:
        for batch in file.iter_batches(_ROWS):
            yield row, batch
            row += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise ImportFailed(path, None, f"cannot be read as Parquet ({error}); write or fetch it again") from error


def _ids(one: _TableFile, row: int, batch: pa.RecordBatch, role: str) -> pa.Array:
    position = one.position(role)
    column, name = batch.column(position), batch.schema.names[position]
    kind = _kept(column.type)
    if kind not in (TEXT, pa.int64()) or pa.types.is_nested(column.type):
        raise ImportFailed(one.path, None, f"column {name!r} holds {column.type}; make it texts or whole numbers")
    texts = _as_kept(one.path, name, column, TEXT)
    if problem := blank(role, texts.dictionary_encode()):
        reason = f"row {row + problem.row + 1:,}: the {role} is empty; fill it in or drop the row"
        raise ImportFailed(one.path, None, reason)
    return texts


def _undirected(one: _TableFile, row: int, batch: pa.RecordBatch) -> npt.NDArray[np.bool_] | None:
    """Return which edges are undirected; None if none is."""
    position = one.position("direction")
    if position is None:
        return None
    texts = _as_kept(one.path, "direction", batch.column(position), TEXT)
    flags, problem = read_directions(texts)
    if problem:
        raise ImportFailed(one.path, None, f"row {row + problem.row + 1:,}: {problem.reason}")
    return flags


def _lists_texts(kind: pa.DataType) -> bool:
    return bool((pa.types.is_list(kind) or pa.types.is_large_list(kind)) and _kept(kind.value_type) == TEXT)


def _read_properties(one: _TableFile, batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return {
        key: _type_cells(one, batch) if key == TYPE else _as_kept(one.path, key, batch.column(position), kind)
        for key, position, kind in one.properties()
    }


def _type_cells(one: _TableFile, batch: pa.RecordBatch) -> pa.Array:
    """Return all types of nodes, as cells of `node_types`."""
    cells = None
    for column in map(batch.column, one.type_positions()):
        lists = _lists_texts(column.type)
        own = cells_of_lists(column) if lists else cells_of_texts(_as_kept(one.path, "type", column, TEXT))
        cells = join_cells(cells, own)
    return cells


def _as_kept(path: Path, key: str, column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        if pa.types.is_timestamp(column.type) or pa.types.is_time(column.type):
            texts = [None if value is None else value.isoformat() for value in column.to_pylist()]
            return pa.array(texts, TEXT)
        if pa.types.is_nested(column.type) or pa.types.is_duration(column.type):
            values = column.to_pylist()
            texts = [None if value is None else json.dumps(value, ensure_ascii=False, default=str) for value in values]
            return pa.array(texts, TEXT)
        cast = column.cast(kind)
        cast.validate(full=kind == TEXT)  # bytes need not be UTF-8
        return cast
    except (pa.ArrowException, ValueError) as error:
        raise ImportFailed(path, None, f"column {key!r}: {error}; store it as text") from error
