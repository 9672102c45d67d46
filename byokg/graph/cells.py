"""Cells of imported files: texts as Arrow columns, turned into numbers, truth values and dates, or refused by line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.errors import ImportFailed
from byokg.graph.delimited import RecordFile

Int64 = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.integer]

TEXT = pa.large_string()

KINDS: dict[str, tuple[pa.DataType, str | None, str]] = {
    "string": (pa.large_string(), None, "text"),
    "int": (pa.int64(), r"^-?[0-9]+$", "a whole number such as 42, within 64 bits"),
    "float": (pa.float64(), r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$", "a finite number such as 4.2"),
    "bool": (pa.bool_(), r"^(?i:true|false)$", "true or false"),
    "date": (
        pa.date32(),
        r"^([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)-[0-9]{2}-[0-9]{2}$",
        "a date such as 2001-09-30, years 0001 to 9999",
    ),
    "flag": (pa.bool_(), r"^[01]$", "1 for true or 0 for false"),
}
"""Kind of a column: how it is stored, what a cell must look like, and how to say that."""


@dataclass(frozen=True, order=True)
class Problem:
    """Why one record cannot be used; records count from 0."""

    row: int
    reason: str


def raise_first(file: RecordFile, problems: Sequence[Problem | None], rows: int = 0) -> None:
    """Report the earliest of the problems in a part of a file before which there are so many rows, if any."""
    found = [problem for problem in problems if problem]
    if found:
        file.check_quotes()  # what looks like a strange cell may be half of one
        first = min(found)
        raise ImportFailed(file.path, file.line_of(rows + first.row), first.reason)


def typed(name: str, kind: str, texts: pa.ChunkedArray) -> tuple[pa.Array, Problem | None]:
    """Convert a column of texts to one of `KINDS`; return the values, or the first cell that is none."""
    type_, pattern, wording = KINDS[kind]
    if pattern is None:
        return whole(texts, type_), None
    fits = pc.match_substring_regex(texts, pattern)
    bad = whole(pc.invert(pc.fill_null(fits, True)), pa.bool_())
    if not bad.true_count:
        try:
            if type_ == pa.bool_():
                values = whole(pc.equal(pc.utf8_lower(texts), "1" if kind == "flag" else "true"), type_)
            else:
                values = whole(texts.cast(type_), type_)
        except pa.ArrowInvalid:
            bad = pa.array([text is not None and not _casts(text, type_) for text in texts.to_pylist()])
        else:
            if kind != "float":
                return values, None
            bad = pc.invert(pc.fill_null(pc.is_finite(values), True))
            if not bad.true_count:
                return values, None
    row = pc.index(bad, True).as_py()
    return None, Problem(row, f"{texts[row].as_py()!r} in column {name!r} is not {wording}; correct the cell")


def _casts(text: str, kind: pa.DataType) -> bool:
    try:
        pa.scalar(text).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def blank(name: str, coded: pa.DictionaryArray) -> Problem | None:
    """Find the first cell that is empty or holds only white space."""
    empty = pc.equal(pc.utf8_trim_whitespace(coded.dictionary), "").to_numpy(zero_copy_only=False)
    if not empty.any() and not coded.null_count:
        return None
    rows = coded.is_null().to_numpy(zero_copy_only=False)
    rows[~rows] = empty[coded.indices.drop_null().to_numpy()]
    return Problem(int(rows.argmax()), f"the {name} is empty; fill it in or delete the line")


# Columns


def whole(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Return a chunked column as one array, also when it has no chunks at all."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], kind)


def without_null(coded: pa.DictionaryArray) -> pa.DictionaryArray:
    """Replace null by the empty text."""
    if not coded.null_count:
        return coded
    dictionary = pa.concat_arrays([coded.dictionary, pa.array([""], coded.dictionary.type)])
    return pa.DictionaryArray.from_arrays(pc.fill_null(coded.indices, len(dictionary) - 1), dictionary)


# Numbering


def first_rows(codes: Numbers, count: int) -> Int64:
    """Return the row where each of `count` codes occurs first."""
    first = np.empty(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of repeated assignments the last one stays
    return first


def number(coded: pa.DictionaryArray) -> tuple[pa.Array, Numbers]:
    """Return distinct values in order of first appearance, and which one each row holds."""
    codes = coded.indices.to_numpy()
    return _in_order(coded.dictionary, codes, first_rows(codes, len(coded.dictionary)))


def number_pairs(pairs: pa.DictionaryArray) -> tuple[pa.Array, Numbers]:
    """Number heads and tails together, in order of first appearance reading row by row, head before tail.

    Args:
        pairs: (2 E,) first all heads, then all tails.

    Returns:
        The distinct values, and which one each row holds: (E, 2).
    """
    codes, rows = pairs.indices.to_numpy(), len(pairs) // 2
    # First in reading order: head of row r has place 2 r, tail 2 r + 1. Assigned from the last place to the first,
    # because of repeated assignments the last one stays.
    first = np.empty(len(pairs.dictionary), np.int64)
    places = np.arange(2 * rows - 1, -1, -1)
    first[codes.reshape(2, rows).T.ravel()[::-1]] = places
    values, numbers = _in_order(pairs.dictionary, codes, first)
    return values, numbers.reshape(2, rows).T


def _in_order(values: pa.Array, codes: Numbers, first: Int64) -> tuple[pa.Array, Numbers]:
    order = np.argsort(first)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return values.take(pa.array(order)), rank[codes]


# Repetitions


class Clash(NamedTuple):
    """Two rows for one node that say different things."""

    row: int
    before: int
    """The row that stands first."""
    number: int
    """Of the node."""
    key: str
    """A column in which they differ."""


def distinct_rows(codes: Numbers, count: int, content: pa.RecordBatch) -> tuple[Int64, Clash | None]:
    """Return the row where each of `count` nodes occurs first, and the first later row with other content, if any."""
    rows = first_rows(codes, count)
    first = rows[codes]
    later = np.flatnonzero(first != np.arange(len(codes)))
    found: list[tuple[int, str]] = []
    for key, column in zip(content.schema.names, content.columns, strict=True):
        here, there = column.take(pa.array(later)), column.take(pa.array(first[later]))
        both_lack = pc.and_(here.is_null(), there.is_null())
        same = pc.or_(pc.fill_null(pc.equal(here, there), False), both_lack).to_numpy(zero_copy_only=False)
        found += [(position, key) for position in np.flatnonzero(~same)[:1].tolist()]
    if not found:
        return rows, None
    position, key = min(found, key=lambda one: one[0])
    row = int(later[position])
    return rows, Clash(row, int(first[row]), int(codes[row]), key)
