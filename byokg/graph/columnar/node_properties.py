"""Properties of nodes: a dense or sparse column for each.

A property that many nodes have is a column of all nodes, null for nodes without it. Any other property has a list of
its nodes and their values, and an index by node: a graph may have thousands of properties, most of which few of its
millions of nodes have. All of it may be memory-mapped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from byokg.arrays import Int64, Integers
from byokg.files import write_json
from byokg.graph.columnar.external_sort import ArrayFile
from byokg.graph.columnar.folder import map_array, relation_width, slots
from byokg.graph.columnar.schema import PropertyColumn, place, plain
from byokg.graph.sorted_ids import distinct
from byokg.index.vocabulary import positions
from byokg.types import NO_PROPERTIES, Properties, Value

_LEAST, _SHARE = 1 << 12, 8
"""Nodes of a graph from which a property may stand alone; it does if fewer than one in so many nodes has it."""

_AT_ONCE = 1 << 22
"""Values that are sorted by node together, about."""

_VALUES, _DIRECTORY = "node_values.arrow", "node_values.json"
_INDEX = ("value_node.npy", "value_property.npy", "value_row.npy")


class _Entries(NamedTuple):
    """The L values of properties that few nodes have, by node and then by property."""

    node: Integers
    """(L,) ascending."""
    property: Integers
    """(L,) number of a property."""
    row: Integers
    """(L,) where among the property's values it stands."""


_NO_ENTRIES = _Entries(np.empty(0, np.int32), np.empty(0, np.uint16), np.empty(0, np.int32))


class NodeProperties:
    """The properties of a graph's nodes, in order; safe to share between threads."""

    def __init__(
        self, names: Sequence[str], column: Callable[[int], PropertyColumn], whole: Collection[int], entries: _Entries
    ) -> None:
        """Hold the columns made by `collect` and `map`.

        Args:
            names: of the P properties.
            column: reads one, by number.
            whole: numbers of those that are columns of all nodes.
            entries: index by node of the others.
        """
        self.names = tuple(names)
        self._read, self._whole, self._entries = column, tuple(sorted(whole)), entries
        self._number = {name: number for number, name in enumerate(self.names)}
        self._known: dict[int, PropertyColumn] = {}

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def collect(cls, columns: Iterable[PropertyColumn], count: int) -> NodeProperties:
        """Hold the properties of N nodes in memory."""
        held = [_kept(column, count) for column in columns]
        parts = [_NO_ENTRIES, *_by_node([column.nodes for column in held], count)]
        entries = _Entries(*(np.concatenate(some) for some in zip(*parts, strict=True)))
        whole = [number for number, column in enumerate(held) if column.nodes is None]
        return cls([column.name for column in held], held.__getitem__, whole, entries)

    @classmethod
    def map(cls, folder: Path, files: Container[str]) -> NodeProperties:
        """Map the files written by `write_properties`.

        Args:
            folder: their place.
            files: names of the files that belong to the graph.

        Raises:
            ValueError, LookupError, TypeError: the files do not belong together.
            OSError: a file cannot be read.
        """
        if _DIRECTORY not in files:
            return cls((), _none, (), _NO_ENTRIES)
        places = [_Place(*place) for place in json.loads((folder / _DIRECTORY).read_bytes())]
        data = pa.memory_map(str(folder / _VALUES)).read_buffer()
        if sum(place.size for place in places) != data.size:
            raise ValueError(f"{_DIRECTORY} and {_VALUES} do not belong together")

        def column(number: int) -> PropertyColumn:
            place = places[number]
            batch = pa.ipc.open_stream(data.slice(place.start, place.size)).read_next_batch()
            nodes = None if place.whole else np.frombuffer(batch.column("node").buffers()[1], np.int32, batch.num_rows)
            return PropertyColumn(place.name, batch.column("value"), nodes)

        whole = [number for number, place in enumerate(places) if place.whole]
        entries = _Entries(*(map_array(folder / name) for name in _INDEX)) if _INDEX[0] in files else _NO_ENTRIES
        return cls([place.name for place in places], column, whole, entries)

    def column(self, name: str) -> PropertyColumn | None:
        """Return a property; None if there is none of that name."""
        number = self._number.get(name)
        return None if number is None else self._column(number)

    def columns(self) -> Iterator[PropertyColumn]:
        """Yield all properties."""
        return map(self._column, range(len(self)))

    def of_nodes(self, nodes: Integers) -> list[Properties]:
        """Return the properties of each of some nodes, by number; dates are ISO 8601 texts."""
        if not self.names:
            return [NO_PROPERTIES] * len(nodes)
        found: list[dict[str, Value]] = [{} for _ in range(len(nodes))]
        rows: dict[int, tuple[Sequence[int], Integers]] = {each: (range(len(nodes)), nodes) for each in self._whole}
        place, entry = slots(*(self._entries.node.searchsorted(nodes, side) for side in ("left", "right")))
        number = self._entries.property[entry]
        for each in np.unique(number).tolist():
            here = np.flatnonzero(number == each)
            rows[each] = place[here].tolist(), self._entries.row[entry[here]]
        for each in sorted(rows):
            places, taken = rows[each]
            for owner, value in zip(places, plain(self._column(each).values.take(positions(taken))), strict=True):
                if value is not None:
                    found[owner][self.names[each]] = value
        return [row or NO_PROPERTIES for row in found]

    def of_property(self, name: str, nodes: Integers) -> list[Value | None]:
        """Return the value of one property of each of some nodes, None for nodes without it; dates are ISO 8601
        texts."""
        column = self.column(name)
        if column is None or not len(column.values):
            return [None] * len(nodes)
        if column.nodes is None:
            return plain(column.values.take(positions(nodes)))
        place = np.minimum(column.nodes.searchsorted(nodes), len(column.nodes) - 1)
        has = column.nodes[place] == nodes
        return plain(column.values.take(pa.array(place, mask=~has)))

    def some_holders(self, most: int) -> Int64:
        """Return up to `most` nodes, spread evenly, of each property that few nodes have: distinct, ascending."""
        few = [column.nodes for column in self.columns() if column.nodes is not None]
        some = [nodes[np.linspace(0, len(nodes) - 1, min(most, len(nodes))).astype(np.int64)] for nodes in few]
        return distinct(np.concatenate([np.empty(0, np.int64), *some]))

    def rows(self, start: int, stop: int) -> dict[str, pa.Array]:
        """Return all properties of the nodes from one number up to another, as columns."""
        found = {}
        for column in self.columns():
            if column.nodes is None:
                found[column.name] = column.values.slice(start, stop - start)
            else:
                low, high = column.nodes.searchsorted([start, stop]).tolist()
                values = column.values.slice(low, high - low)
                found[column.name] = place(values, column.nodes[low:high] - start, stop - start)
        return found

    def _column(self, number: int) -> PropertyColumn:
        if number not in self._known:
            self._known[number] = self._read(number)
        return self._known[number]


class _Place(NamedTuple):
    """Where in the file of values a property stands."""

    name: str
    whole: bool
    """Whether it is a column of all nodes."""
    start: int
    size: int


def write_properties(folder: Path, columns: Iterable[PropertyColumn], count: int) -> None:
    """Write the properties of N nodes, one after the other; no file if there are none."""
    places: list[_Place] = []
    with pa.OSFile(str(folder / _VALUES), "wb") as sink:
        for column in columns:
            kept, start = _kept(column, count), sink.tell()
            parts = {} if kept.nodes is None else {"node": positions(kept.nodes)}
            parts["value"] = kept.values
            batch = pa.RecordBatch.from_arrays(list(parts.values()), list(parts))
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            places.append(_Place(kept.name, kept.nodes is None, start, sink.tell() - start))
    if not places:
        (folder / _VALUES).unlink()
        return
    write_json(folder / _DIRECTORY, places)
    if all(place.whole for place in places):
        return
    written = NodeProperties.map(folder, (_DIRECTORY,))
    kinds: list[type[np.integer]] = [np.int32, relation_width(len(places)), np.int32]
    with ExitStack() as opened:
        files = [opened.enter_context(ArrayFile(folder / name, kind)) for name, kind in zip(_INDEX, kinds, strict=True)]
        for entries in _by_node([column.nodes for column in written.columns()], count):
            for file, numbers in zip(files, entries, strict=True):
                file.append(numbers)


def _none(number: int) -> PropertyColumn:
    raise IndexError(number)


def _kept(column: PropertyColumn, count: int) -> PropertyColumn:
    """Return a property of a graph with N nodes as it is kept."""
    if count >= _LEAST and len(column.values) - column.values.null_count < count // _SHARE:
        nodes, values = column.held()
        return PropertyColumn(column.name, values, nodes)
    if column.nodes is None:
        return column
    return PropertyColumn(column.name, place(column.values, column.nodes, count))


def _by_node(nodes: Sequence[Integers | None], count: int) -> Iterator[_Entries]:
    """Yield the values of some properties by node, given the nodes of each, or None for a column of all nodes."""
    few = [(number, some) for number, some in enumerate(nodes) if some is not None]
    parts = -(-sum(len(some) for _, some in few) // _AT_ONCE)
    bounds = np.linspace(0, count, parts + 1).astype(np.int64).tolist()
    for low, high in pairwise(bounds):
        found = []
        for number, some in few:
            start, stop = some.searchsorted([low, high]).tolist()
            found.append((number, start, some[start:stop]))
        node = np.concatenate([some for _, _, some in found])
        sizes = [len(some) for _, _, some in found]
        property_ = np.repeat(np.array([number for number, _, _ in found]), sizes)
        row = np.concatenate([np.arange(start, start + len(some), dtype=np.int32) for _, start, some in found])
        order = np.argsort(node, kind="stable")
        yield _Entries(node[order], property_[order], row[order])
