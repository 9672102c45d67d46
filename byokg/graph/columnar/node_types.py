"""Types of nodes: a column holds the first of each, and two arrays the further ones of nodes that have several.

A graph in which every node has one type has no such arrays. Importers write all types of a node in one text, a cell,
with `|` between them; a `|` within a type is `\\|`, and a backslash before one of both is `\\\\`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Int64, Integers, values_of
from byokg.graph.sorted_ids import distinct, spread

SEPARATOR = "|"
_ESCAPED = re.compile(r"[\\|]")
_PART = re.compile(r"((?:\\[\\|]|[^|])*)(?:\||$)")
_UNESCAPED = re.compile(r"\\([\\|])")


class FurtherTypes(NamedTuple):
    """The M types of nodes besides their first, by node and then in the order given."""

    node: npt.NDArray[np.int32]
    """(M,) ascending."""
    type: npt.NDArray[np.int32]
    """(M,) numbers of types."""

    def __len__(self) -> int:
        return len(self.node)


NO_FURTHER = FurtherTypes(np.empty(0, np.int32), np.empty(0, np.int32))


class NodeTypes:
    """The types of a graph's nodes; safe to share between threads."""

    def __init__(self, nodes: pa.RecordBatch, further: FurtherTypes) -> None:
        """Take the columns of `NodeColumns.batch`, and the further types."""
        self._first = nodes.column("type") if "type" in nodes.schema.names else None
        self.further = further

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Return the types; the number of each is its position."""
        return () if self._first is None else tuple(self._first.dictionary.to_pylist())

    @property
    def several(self) -> int:
        """Return how many nodes have several types."""
        return len(distinct(self.further.node))

    def of_nodes(self, nodes: Integers) -> tuple[list[str], list[tuple[str, ...]]]:
        """Return the first type of each of some nodes, empty where it has none, and its further types."""
        if self._first is None:
            return [""] * len(nodes), [()] * len(nodes)
        first = [self.labels[code] for code in self._codes[nodes].tolist()]
        if not len(self.further):
            return first, [()] * len(nodes)
        low, high = (self.further.node.searchsorted(nodes, side) for side in ("left", "right"))
        _, rows = spread(low, high - low)
        further = [self.labels[code] for code in self.further.type[rows].tolist()]
        ends = (high - low).cumsum().tolist()
        return first, [tuple(further[start:stop]) for start, stop in pairwise([0, *ends])]

    def codes_of(self, nodes: Integers) -> tuple[Int64, Int64]:
        """Return the number of every type of some nodes, and the position of its node among them.

        A node without a type has the number 0, whose label is empty if there are labels.
        """
        own = np.arange(len(nodes), dtype=np.int64)
        first = np.zeros(len(nodes), np.int64) if self._first is None else self._codes[nodes].astype(np.int64)
        if not len(self.further):
            return first, own
        low, high = (self.further.node.searchsorted(nodes, side) for side in ("left", "right"))
        place, rows = spread(low, high - low)
        return np.concatenate((first, self.further.type[rows].astype(np.int64))), np.concatenate((own, place))

    def members(self, label: str) -> Int64:
        """Return the nodes of a type, ascending."""
        if label not in self.labels:
            return np.empty(0, np.int64)
        code = self.labels.index(label)
        members = np.flatnonzero(self._codes == code)
        more = self.further.node[self.further.type == code]
        return np.sort(np.concatenate((members, more))) if len(more) else members

    @cached_property
    def sets(self) -> list[tuple[str, ...]]:
        """Return the different sets of types of the nodes that have several."""
        node, kind = self.further
        owner = distinct(node)
        counts = np.searchsorted(node, owner, "right") - np.searchsorted(node, owner)
        found: set[tuple[int, ...]] = set()
        for count in distinct(counts).tolist():
            some = owner[counts == count]
            rows = np.searchsorted(node, some)[:, None] + np.arange(count)
            codes = np.sort(np.column_stack((self._codes[some], kind[rows])), axis=1)
            group = np.zeros(len(some), np.int64)
            for column in codes.T:  # sorting rows as such takes many times as long
                _, place, group = np.unique(group * len(self.labels) + column, return_index=True, return_inverse=True)
            found.update(map(tuple, codes[place].tolist()))
        return [tuple(self.labels[code] for code in codes) for codes in sorted(found)]

    @property
    def _codes(self) -> Integers:
        assert self._first is not None
        codes: Integers = values_of(self._first.indices)
        return codes

    def cells(self, start: int, stop: int) -> pa.Array:
        """Return the types of a range of nodes as cells, null where a node has none; see `write_types`."""
        count = stop - start
        if self._first is None:
            return pa.nulls(count, pa.large_string())
        written = pa.array([write_types([label]) if label else None for label in self.labels], pa.large_string())
        cells = written.take(self._first.slice(start, count).indices)
        low, high = self.further.node.searchsorted([start, stop]).tolist()
        if low == high:
            return cells
        rows, begin = np.unique(self.further.node[low:high] - start, return_index=True)
        parts = written.take(pa.array(self.further.type[low:high]))
        lists = pa.LargeListArray.from_arrays(pa.array(np.append(begin, high - low), pa.int64()), parts)
        more = pc.binary_join(lists, pa.scalar(SEPARATOR, pa.large_string()))
        both = pc.binary_join_element_wise(cells.take(pa.array(rows)), more, pa.scalar(SEPARATOR, pa.large_string()))
        mask = np.zeros(count, np.bool_)
        mask[rows] = True
        return pc.replace_with_mask(cells, pa.array(mask), both)


def write_types(types: Iterable[str]) -> str:
    """Write types as a cell."""
    return SEPARATOR.join(_ESCAPED.sub(r"\\\g<0>", each) for each in types)


def split_cell(cell: str) -> tuple[str, ...]:
    """Return the distinct types in a cell, in order."""
    if SEPARATOR not in cell and "\\" not in cell:
        return (cell,) if cell else ()
    parts = (_UNESCAPED.sub(r"\1", part) for part in _PART.findall(cell))
    return tuple(dict.fromkeys(filter(None, parts)))


def cells_of_texts(texts: pa.Array) -> pa.Array:
    """Write texts, each of which is one type, as cells."""
    if pc.any(pc.match_substring_regex(texts, r"[\\|]")).as_py():
        for sign in ("\\", SEPARATOR):
            texts = pc.replace_substring(texts, sign, f"\\{sign}")
    return texts


def cells_of_lists(lists: pa.Array) -> pa.Array:
    """Write lists of texts as cells; the cell of a null list is null."""
    texts = pc.fill_null(lists.flatten().cast(pa.large_string()), "")
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    joined = pa.LargeListArray.from_arrays(pa.array(np.append(0, counts.cumsum()), pa.int64()), cells_of_texts(texts))
    cells = pc.binary_join(joined, pa.scalar(SEPARATOR, pa.large_string()))
    return pc.if_else(lists.is_valid(), cells, pa.scalar(None, pa.large_string()))


def join_cells(first: pa.Array | None, second: pa.Array) -> pa.Array:
    """Put the types of two cells into one, those of the first before the others."""
    if first is None:
        return second
    both = pc.binary_join_element_wise(first, second, pa.scalar(SEPARATOR, pa.large_string()))
    return pc.coalesce(both, first, second)


def split_cells(cells: pa.Array) -> tuple[pa.DictionaryArray, list[tuple[str, ...]]]:
    """Return the number of the cell of each node, and the types of each different cell."""
    coded = cells.dictionary_encode()
    return coded, [split_cell(cell) for cell in coded.dictionary.to_pylist()]


def rewrite_cells(cells: pa.Array, separator: str | None) -> pa.Array:
    """Return the types in cells with a separator between them, which no type may hold; with None, the first type."""
    coded, split = split_cells(cells)
    texts = [(separator.join(types) if separator else types[0]) if types else None for types in split]
    return pa.array(texts, pa.large_string()).take(coded.indices)


def lists_of_cells(cells: pa.Array) -> pa.Array:
    """Return the types in cells as lists, null for a null cell."""
    coded, split = split_cells(cells)
    return pa.array(split, pa.list_(pa.large_string())).take(coded.indices)


def read_types(cells: pa.Array) -> tuple[pa.DictionaryArray, FurtherTypes]:
    """Return the types of nodes, given their cells; those of a null cell are none.

    Each different cell is split once.
    """
    coded, split = split_cells(cells)
    codes = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy()
    if coded.null_count:
        split.append(())
    number = {label: at for at, label in enumerate(dict.fromkeys(label for types in split for label in types or ("",)))}
    first = np.array([number[types[0] if types else ""] for types in split], np.int32)
    counts = np.array([max(0, len(types) - 1) for types in split], np.int64)
    flat = np.array([number[label] for types in split for label in types[1:]], np.int32)
    nodes = np.flatnonzero(counts[codes])
    place, rows = spread((counts.cumsum() - counts)[codes[nodes]], counts[codes[nodes]])
    further = FurtherTypes(nodes[place].astype(np.int32), flat[rows])
    labels = pa.array(list(number), pa.large_string())
    return pa.DictionaryArray.from_arrays(pa.array(first[codes]), labels), further
