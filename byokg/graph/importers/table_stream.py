"""The parts that streams of tables share: nodes are held as columns, and edges pass through."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Integers
from byokg.errors import ImportFailed
from byokg.graph.columnar.ids import Interner, row_by_row
from byokg.graph.columnar.node_types import NO_FURTHER, read_types
from byokg.graph.columnar.schema import (
    TEXT,
    Clash,
    NodeColumns,
    convert,
    join_batches,
    merge_repeated,
    of_all_nodes,
    property_batch,
)
from byokg.graph.columnar.writer import Triples
from byokg.graph.display_names import name_nodes

DEFAULT_RELATION = "related_to"
"""Relation of edges that name none."""

NAME, TYPE = "\0name", "\0type"
"""Keys of names and types among the columns of nodes, which no property has."""


class TableStream(ABC):
    """A `GraphStream` of tables, without its blocks. The nodes are held, the edges pass through."""

    distinct = False
    left_out = 0

    def __init__(self, name: str) -> None:
        """Begin without nodes; `name` names the graph in messages."""
        self.name = name
        self._ids, self._labels = Interner(), Interner()
        self._codes: list[Integers] = [np.empty(0, np.int32)]
        self._parts: list[tuple[int, pa.RecordBatch | None]] = []
        self._content: dict[str, pa.Array] = {}
        self.given_names: Mapping[str, str] = {}
        """Display templates by type, see `display_names`; those of other types are chosen."""
        self.display_names: Mapping[str, str] = {}
        """Those of all types that have one, once the nodes were returned."""

    def nodes(self) -> NodeColumns:
        """Return the nodes. Raises `ConfigError` for a given template that does not fit."""
        content, ids = dict(self._content), self._ids.strings
        names, cells = content.pop(NAME, None), content.pop(TYPE, None)
        types, further = (None, NO_FURTHER) if cells is None else read_types(cells)
        names, content, self.display_names = name_nodes(ids, names, types, content, self.given_names)
        names = None if names is None else pc.coalesce(pc.if_else(pc.equal(names, ""), None, names), ids)
        return NodeColumns(ids, names, types, of_all_nodes(content), self._ids.hashes, further=further)

    def source(self) -> dict[str, Any]:
        """Return the graph's `source`."""
        told = self._origin()
        return told | {"display_names": dict(self.display_names)} if self.display_names else told

    @abstractmethod
    def _origin(self) -> dict[str, Any]:
        """Describe the files."""

    def relations(self) -> list[str]:
        """Return the relation labels."""
        labels: list[str] = self._labels.strings.to_pylist()
        return labels

    def _add_nodes(self, ids: pa.DictionaryArray, content: Mapping[str, pa.Array]) -> None:
        """Hold some nodes with their columns."""
        self._codes.append(self._ids.encode(ids.dictionary, ids.indices.to_numpy()))
        self._parts.append((len(ids), property_batch(content)))

    def _merge_nodes(self, types: Mapping[str, pa.DataType]) -> None:
        """Keep the first row of each id, in columns of these types. Raises the error of `_clash`."""
        held = join_batches([convert(part, types, rows) for rows, part in self._parts], types)
        codes = np.concatenate(self._codes)
        if not np.array_equal(codes, np.arange(len(self._ids))):
            kept, clash = merge_repeated(codes, len(self._ids), held)
            if clash:
                raise self._clash(clash, held)
            held = held.take(pa.array(kept)) if types else held
        self._content = dict(zip(types, held.columns, strict=True))
        self._parts.clear()

    @abstractmethod
    def _clash(self, clash: Clash, held: pa.RecordBatch) -> ImportFailed:
        """Return the error that a row contradicts an earlier one of its id."""

    def _numbers(self, ends: pa.DictionaryArray, known: bool) -> Integers:
        """Return head and tail of E edges, given all heads and then all tails: (E, 2); -1 for no node if `known`."""
        codes = row_by_row(ends)
        numbers = self._ids.find(ends.dictionary)[codes] if known else self._ids.encode(ends.dictionary, codes)
        return numbers.reshape(-1, 2)

    def _triples(self, ends: Integers, labels: pa.DictionaryArray) -> Triples:
        """Return edges, given the numbers of their ends, (E, 2), and their relations, (E,)."""
        triples = np.empty((len(ends), 3), np.int32)
        triples[:, [0, 2]] = ends
        triples[:, 1] = self._labels.encode(labels.dictionary, labels.indices.to_numpy())
        return triples


def same_label(label: str, count: int) -> pa.DictionaryArray:
    """Return one label for each of some edges."""
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([label], TEXT))


def common_types(tables: Iterable[tuple[Path, Mapping[str, pa.DataType]]]) -> dict[str, pa.DataType]:
    """Return the columns that several files have together. Raises `ImportFailed` if two do not fit."""
    common: dict[str, pa.DataType] = {}
    for path, types in tables:
        for key, kind in types.items():
            before = common.setdefault(key, kind)
            if {before, kind} == {pa.int64(), pa.float64()}:
                common[key] = pa.float64()
            elif before != kind:
                reason = f"column {key!r} is {kind} here and {before} in another file; give it one type"
                raise ImportFailed(path, None, reason)
    return common
