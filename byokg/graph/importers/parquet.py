"""Graphs in Parquet files: edges in columns head, relation and tail, and nodes, if there are any files of these, in id.

A node may have columns name and type, too; all other columns are properties. Whole numbers, floats, truth values, dates
and texts stay what they are, decimals become floats, times the text of ISO 8601, and lists and records their JSON. Ids
that are whole numbers become text. Where no file holds nodes, the ends of edges are the nodes; if edges then have no
properties either, exact repetitions are dropped and counted. Else both ends of every edge must be among the nodes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

from byokg.errors import ImportFailed
from byokg.files import TextFile
from byokg.graph.columnar.ids import Interner, row_by_row
from byokg.graph.columnar.schema import (
    TEXT,
    NodeColumns,
    Numbers,
    blank,
    converted,
    joined,
    merge_repeated,
    of_all_nodes,
    property_batch,
    without_null,
)
from byokg.graph.columnar.writer import EdgeBlock, ahead

_ROWS = 1 << 18
"""Rows read together."""

_ENDS = ("head", "relation", "tail")


class ParquetTables:
    """Files of nodes and of edges; a `GraphStream`. The nodes are held, the edges pass through."""

    left_out = 0

    def __init__(self, name: str, nodes: Sequence[Path], edges: Sequence[Path]) -> None:
        """Read the schemas. Raises `ImportFailed` where a column is missing, or two files disagree."""
        self.name = name
        self._node_files = [_opened(path, ("id",)) for path in nodes]
        self._edge_files = [_opened(path, _ENDS) for path in edges]
        self._node_types = _types(self._node_files, ("id",))
        self._node_types |= {key: TEXT for key in ("name", "type") if key in self._node_types}
        self._edge_types = _types(self._edge_files, _ENDS)
        self._ids, self._labels = Interner(), Interner()
        self._content: dict[str, pa.Array] = {}

    @property
    def distinct(self) -> bool:
        """Tell whether repetitions are left out: where neither nodes nor edges are described."""
        return not self._node_files and not self._edge_types

    def blocks(self) -> Iterator[EdgeBlock]:
        """Read the nodes, and yield the edges. Raises `ImportFailed`, naming file and row."""
        self._read_nodes()
        for path, file in self._edge_files:
            for row, batch in ahead(_batches(path, file)):
                ends = [_ids(path, row, batch, key) for key in _ENDS]
                both = pa.concat_arrays([ends[0], ends[2]]).dictionary_encode()
                triples = np.empty((batch.num_rows, 3), np.int32)
                if self._node_files:
                    found = self._ids.find(both.dictionary)[row_by_row(both)].reshape(-1, 2)
                    if (found < 0).any():
                        self._refuse_unknown(path, row, ends, found)
                    triples[:, [0, 2]] = found
                else:
                    triples[:, [0, 2]] = self._ids.encode(both.dictionary, row_by_row(both)).reshape(-1, 2)
                labels = ends[1].dictionary_encode()
                triples[:, 1] = self._labels.encode(labels.dictionary, labels.indices.to_numpy())
                yield EdgeBlock(triples, property_batch(_values(path, batch, _ENDS)))

    def nodes(self) -> NodeColumns:
        """Return the nodes."""
        content, ids = dict(self._content), self._ids.strings
        names, types = content.pop("name", None), content.pop("type", None)
        return NodeColumns(
            ids,
            names=None if names is None else pc.coalesce(pc.if_else(pc.equal(names, ""), None, names), ids),
            types=None if types is None else without_null(types.dictionary_encode()),
            properties=of_all_nodes(content),
            hashes=self._ids.hashes,
        )

    def relations(self) -> list[str]:
        """Return the relation labels."""
        labels: list[str] = self._labels.strings.to_pylist()
        return labels

    def property_types(self) -> Mapping[str, pa.DataType]:
        """Return the edges' properties."""
        return self._edge_types

    def source(self) -> dict[str, Any]:
        """Return what a graph's `source` says about the files."""
        paths = [path for path, _ in (*self._node_files, *self._edge_files)]
        return {"kind": "Parquet", "files": [TextFile(path).description() for path in paths]}

    def _read_nodes(self) -> None:
        numbers: list[Numbers] = [np.empty(0, np.int32)]
        parts: list[pa.RecordBatch] = []
        for path, file in self._node_files:
            for row, batch in ahead(_batches(path, file)):
                coded = _ids(path, row, batch, "id").dictionary_encode()
                numbers.append(self._ids.encode(coded.dictionary, coded.indices.to_numpy()))
                content = property_batch(_values(path, batch, ("id",)))
                parts.append(converted(content, self._node_types, batch.num_rows))
        held, codes = joined(parts, self._node_types), np.concatenate(numbers)
        if len(self._ids) < len(codes):
            kept, clash = merge_repeated(codes, len(self._ids), held)
            if clash:
                entity = self._ids.strings[clash.number].as_py()
                values = [held.column(clash.key)[at].as_py() for at in (clash.before, clash.row)]
                reason = f"node id {entity!r} stands in rows {clash.before + 1:,} and {clash.row + 1:,} of the nodes"
                reason += f", with {clash.key} {values[0]!r} and {values[1]!r}; keep one of the two"
                raise ImportFailed(self._node_files[-1][0], None, reason)
            held = held.take(pa.array(kept)) if self._node_types else held
        self._content = dict(zip(self._node_types, held.columns, strict=True))

    def _refuse_unknown(self, path: Path, row: int, ends: Sequence[pa.Array], found: Numbers) -> None:
        at = int((found < 0).any(axis=1).argmax())
        side = 0 if found[at, 0] < 0 else 1
        end = ends[2 * side][at].as_py()
        reason = f"row {row + at + 1:,}: {('head', 'tail')[side]} {end!r} is no id in the files of nodes; "
        raise ImportFailed(path, None, reason + "add the node or correct it")


def _opened(path: Path, needed: Sequence[str]) -> tuple[Path, parquet.ParquetFile]:
    try:
        file = parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise ImportFailed(path, None, f"cannot be read as Parquet ({error}); write or fetch it again") from error
    names = file.schema_arrow.names
    for key in needed:
        if names.count(key) != 1:
            reason = f"has {names.count(key) or 'no'} columns {key!r} among {', '.join(names)}; it needs one of each of"
            raise ImportFailed(path, None, f"{reason} {', '.join(needed)}: rename a column")
    return path, file


def _types(files: Sequence[tuple[Path, parquet.ParquetFile]], fixed: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the columns that several files have together, as we keep them."""
    common: dict[str, pa.DataType] = {}
    for path, file in files:
        for field in file.schema_arrow:
            if field.name in fixed:
                continue
            kind = _kept(field.type)
            before = common.setdefault(field.name, kind)
            if {before, kind} == {pa.int64(), pa.float64()}:
                common[field.name] = pa.float64()
            elif before != kind:
                reason = f"column {field.name!r} is {kind} here and {before} in another file; give it one type"
                raise ImportFailed(path, None, reason)
    return common


def _kept(kind: pa.DataType) -> pa.DataType:
    """Return what a column of this type is kept as."""
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


def _ids(path: Path, row: int, batch: pa.RecordBatch, key: str) -> pa.Array:
    column = batch.column(batch.schema.names.index(key))
    kind = _kept(column.type)
    if kind not in (TEXT, pa.int64()) or pa.types.is_nested(column.type):
        raise ImportFailed(path, None, f"column {key!r} holds {column.type}; make it texts or whole numbers")
    texts = _as_kept(path, key, column, TEXT)
    if problem := blank(key, texts.dictionary_encode()):
        raise ImportFailed(path, None, f"row {row + problem.row + 1:,}: the {key} is empty; fill it in or drop the row")
    return texts


def _values(path: Path, batch: pa.RecordBatch, fixed: Sequence[str]) -> dict[str, pa.Array]:
    return {
        key: _as_kept(path, key, column, TEXT if key in ("name", "type") and fixed == ("id",) else _kept(column.type))
        for key, column in zip(batch.schema.names, batch.columns, strict=True)
        if key not in fixed
    }


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
