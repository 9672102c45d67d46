"""The parts that streams of tables share: nodes are held as columns, and edges pass through.

A reader that yields nodes and edges one by one, in any order, becomes a `GraphStream` as well. Values of a property
that have several kinds become floats, if all are numbers, or else texts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Integers
from byokg.errors import GraphError, ImportFailed
from byokg.files import TextFile
from byokg.graph.columnar.ids import Interner, row_by_row
from byokg.graph.columnar.node_types import NO_FURTHER, SEPARATOR, read_types, write_types
from byokg.graph.columnar.schema import (
    TEXT,
    Clash,
    NodeColumns,
    convert,
    join_batches,
    merge_repeated,
    of_all_nodes,
    property_batch,
    property_columns,
    text_column,
)
from byokg.graph.columnar.writer import EdgeBlock, Triples
from byokg.graph.display_names import name_nodes
from byokg.types import Node, Properties, Triple, Value

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


_RECORDS = 1 << 16
"""Nodes and edges put into columns together."""


class Label(NamedTuple):
    """The name of a relation or a property that other records give by its id."""

    id: str
    text: str


Records: TypeAlias = Iterator[Node | Triple | Label]


@dataclass(frozen=True)
class RecordReader:
    """A format that is read record by record."""

    name: str
    read: Callable[[TextFile], Records]
    """Raises `ImportFailed`, naming the place."""
    partial: bool = False
    """True if some ends of edges may be described as nodes and others not."""
    types_are_nodes: bool = False
    """True if types are ids of nodes, whose names are shown."""


class RecordStream(TableStream):
    """The records of one file; a `GraphStream`."""

    def __init__(self, path: Path, reader: RecordReader) -> None:
        super().__init__(str(path))
        self._file, self._reader = TextFile(path), reader
        self._kinds: tuple[dict[str, pa.DataType], dict[str, pa.DataType]] = {}, {}
        """Types of the properties of nodes and of edges."""
        self._given: dict[str, str] = {}
        """Names of relations and properties by their ids."""
        self._edges = 0

    def blocks(self) -> Iterator[EdgeBlock]:
        """Yield the edges. Raises `ImportFailed`."""
        records = self._reader.read(self._file)
        try:
            with self._file.reading():
                while some := list(islice(records, _RECORDS)):
                    self._given |= {each.id: each.text for each in some if isinstance(each, Label)}
                    self._take_nodes([each for each in some if isinstance(each, Node)])
                    if edges := [each for each in some if isinstance(each, Triple)]:
                        yield self._block(edges)
        except GraphError as error:
            raise error if isinstance(error, ImportFailed) else self._wrong(str(error)) from error
        except RecursionError:
            raise self._wrong("brackets are nested too deep to be read; write such a value as a text") from None
        declared = np.zeros(len(self._ids), np.bool_)
        declared[np.concatenate(self._codes)] = True
        if not len(declared):
            raise self._wrong(f"holds no nodes and no edges of {self._reader.name}; check that it is the file meant")
        if declared.all():
            return
        missing = self._ids.strings.filter(pa.array(~declared))
        if not self._reader.partial and declared.any():
            reason = f"an edge ends at {missing[0].as_py()!r}, which is no node; add the node or correct it"
            raise self._wrong(reason)
        self._add_nodes(missing.dictionary_encode(), {})

    def _block(self, edges: Sequence[Triple]) -> EdgeBlock:
        ends = text_column([*(edge.head for edge in edges), *(edge.tail for edge in edges)]).dictionary_encode()
        triples = self._triples(
            self._numbers(ends, known=False), text_column([edge.relation for edge in edges]).dictionary_encode()
        )
        undirected = np.array([edge.undirected for edge in edges], np.bool_)
        columns = self._columns([edge.properties for edge in edges], self._kinds[1])
        self._edges += len(edges)
        return EdgeBlock(triples, property_batch(columns), undirected=undirected if undirected.any() else None)

    def _take_nodes(self, nodes: Sequence[Node]) -> None:
        if not nodes:
            return
        named = [None if node.name == node.id else node.name for node in nodes]
        content = {
            NAME: text_column(named),
            TYPE: text_column([write_types(node.types) for node in nodes]),
            **self._columns([node.properties for node in nodes], self._kinds[0]),
        }
        self._add_nodes(text_column([node.id for node in nodes]).dictionary_encode(), content)

    def _columns(self, rows: Sequence[Properties], kinds: dict[str, pa.DataType]) -> dict[str, pa.Array]:
        """Return properties as columns, and widen the kinds of all columns so far."""
        columns = property_columns(of_one_kind(rows))
        for key, column in columns.items():
            before = kinds.setdefault(key, column.type)
            if before != column.type:
                kinds[key] = pa.float64() if {before, column.type} == {pa.int64(), pa.float64()} else TEXT
        return columns

    def nodes(self) -> NodeColumns:
        """Return the nodes."""
        self._merge_nodes({NAME: TEXT, TYPE: TEXT, **self._kinds[0]})
        types = pc.fill_null(self._content[TYPE], "")
        if self._reader.types_are_nodes:
            types = self._named_types(types)
        labels = self._labels_by_id()
        self._content = {labels.get(key, key): column for key, column in self._content.items()} | {TYPE: types}
        if pc.all(pc.equal(types, "")).as_py():
            del self._content[TYPE]
        return super().nodes()

    def _named_types(self, cells: pa.Array) -> pa.Array:
        coded = cells.dictionary_encode()
        parts = [cell.split(SEPARATOR) for cell in coded.dictionary.to_pylist()]
        ids = pa.array(list(dict.fromkeys(id_ for part in parts for id_ in part)), TEXT)
        rows = self._ids.find(ids)
        names = pc.coalesce(self._content[NAME].take(pa.array(np.maximum(rows, 0))), ids).to_pylist()
        shown = {id_: name if row >= 0 else id_ for id_, name, row in zip(ids.to_pylist(), names, rows, strict=True)}
        texts = [write_types(list(dict.fromkeys(shown[id_] for id_ in part if id_))) for part in parts]
        return pa.array(texts, TEXT).take(coded.indices)

    def relations(self) -> list[str]:
        """Return the relation labels."""
        labels = self._labels_by_id()
        return [labels.get(label, label) for label in super().relations()]

    def _labels_by_id(self) -> dict[str, str]:
        """Return the names of relations and properties by id, with the id if several have one."""
        counts = Counter(self._given.values())
        return {id_: text if counts[text] == 1 else f"{text} ({id_})" for id_, text in self._given.items()}

    def property_types(self) -> Mapping[str, pa.DataType]:
        """Return the edges' properties."""
        return self._kinds[1]

    def _clash(self, clash: Clash, held: pa.RecordBatch) -> ImportFailed:
        entity = self._ids.strings[clash.number].as_py()
        key = {NAME: "names", TYPE: "types"}.get(clash.key, f"values of {clash.key!r}")
        return self._wrong(f"node id {entity!r} occurs twice, with different {key}; keep one of the two")

    def _origin(self) -> dict[str, Any]:
        rows = {"read_as": self._reader.name, "rows": len(self._ids) + self._edges}
        return {"kind": self._reader.name, "files": [self._file.description() | rows]}

    def _wrong(self, reason: str) -> ImportFailed:
        return ImportFailed(self._file.path, None, reason)


def of_one_kind(rows: Sequence[Properties]) -> Sequence[Properties]:
    """Return properties with the values of each key of one kind: texts, unless all are of one kind or numbers."""
    kinds: dict[str, set[type]] = {}
    for row in rows:
        for key, value in row.items():
            kinds.setdefault(key, set()).add(type(value))
    mixed = {key for key, found in kinds.items() if len(found) > 1 and found != {int, float}}
    mixed |= {key for key, found in kinds.items() if int in found and not _all_fit(rows, key)}
    if not mixed:
        return rows
    return [{key: spelled(value) if key in mixed else value for key, value in row.items()} for row in rows]


def _all_fit(rows: Sequence[Properties], key: str) -> bool:
    """True if all whole numbers of a property fit into 64 bits."""
    values = (row.get(key) for row in rows)
    return all(-(1 << 63) <= value < 1 << 63 for value in values if isinstance(value, int))


def spelled(value: Value) -> str:
    """Return a value as text."""
    return ("false", "true")[value] if isinstance(value, bool) else str(value)
