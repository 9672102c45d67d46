"""Numbering distinct strings as they come, a column at a time, in a hash table made of arrays."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from byokg.graph.id_index import Bytes, Int64, UInt64, hash_column, string_buffers

Kind = TypeVar("Kind", bound=np.generic)

_FREE = -1
"""Marks a free slot, and a string without a number."""
_SLOTS_AT_FIRST = 1 << 10


class Interner:
    """Gives each distinct string a number, in order of first appearance.

    N strings of B bytes in all take B + 16 N bytes, and up to 16 N more for the table, which is never more than half
    full. Strings are found by hash and then compared, so equal hashes do no harm.
    """

    def __init__(self) -> None:
        self._count = 0
        self._hashes: UInt64 = np.empty(_SLOTS_AT_FIRST, np.uint64)
        self._offsets: Int64 = np.zeros(_SLOTS_AT_FIRST + 1, np.int64)
        self._bytes: Bytes = np.empty(_SLOTS_AT_FIRST, np.uint8)
        self._slots = np.full(_SLOTS_AT_FIRST, _FREE, np.int32)

    def __len__(self) -> int:
        return self._count

    @property
    def hashes(self) -> UInt64:
        """Return the hash of each string: (N,)."""
        return self._hashes[: self._count]

    @property
    def strings(self) -> pa.LargeStringArray:
        """Return the strings in the order of their numbers: (N,). Valid until more are added."""
        offsets = pa.py_buffer(self._offsets[: self._count + 1])
        data = pa.py_buffer(self._bytes[: self._offsets[self._count]])
        return pa.LargeStringArray.from_buffers(self._count, offsets, data)

    def numbers(self, strings: pa.LargeStringArray) -> npt.NDArray[np.int32]:
        """Return the number of each of S strings, which must differ from each other; new ones get the next numbers."""
        hashes = hash_column(strings)
        numbers = self._find(strings, hashes)
        fresh = np.flatnonzero(numbers == _FREE)
        if len(fresh):
            numbers[fresh] = np.arange(self._count, self._count + len(fresh), dtype=np.int32)
            self._append(strings.take(pa.array(fresh)), hashes[fresh])
        return numbers

    def find(self, strings: pa.LargeStringArray) -> npt.NDArray[np.int32]:
        """Return the number of each of S strings, -1 for those that have none."""
        return self._find(strings, hash_column(strings))

    def _find(self, strings: pa.LargeStringArray, hashes: UInt64) -> npt.NDArray[np.int32]:
        numbers = np.full(len(hashes), _FREE, np.int32)
        searched = np.arange(len(hashes))
        places = self._home(hashes)
        while len(searched):
            found = self._slots[places]
            taken = found != _FREE
            searched, places, found = searched[taken], places[taken], found[taken]
            equal = np.flatnonzero(self._hashes[found] == hashes[searched])
            equal = equal[self._same(found[equal], strings, searched[equal])]
            numbers[searched[equal]] = found[equal]
            other = np.ones(len(searched), np.bool_)
            other[equal] = False
            searched, places = searched[other], self._next(places[other])
        return numbers

    def _same(self, numbers: npt.NDArray[np.int32], strings: pa.LargeStringArray, rows: Int64) -> npt.NDArray[np.bool_]:
        """Compare known strings with some of a column, four bytes at a time: (len(rows),)."""
        offsets, data = string_buffers(strings)
        ours, theirs, lengths = self._offsets[numbers], offsets[rows], offsets[rows + 1] - offsets[rows]
        same: npt.NDArray[np.bool_] = self._offsets[numbers + 1] - ours == lengths
        # In words of eight bytes, or of what fits into a shorter string. The last word ends where the string ends, so
        # words may overlap and none reads past it.
        for width, longest in ((8, None), (4, 7), (1, 3)):
            live = np.flatnonzero(same & (lengths >= width) & (longest is None or lengths <= longest))
            known, given = _words(self._bytes, width), _words(data, width)
            at = 0
            while len(live):
                live = live[lengths[live] > at]
                place = np.minimum(at, lengths[live] - width)
                differ = known[ours[live] + place] != given[theirs[live] + place]
                same[live[differ]] = False
                live = live[~differ]
                at += width
        return same

    def _append(self, strings: pa.LargeStringArray, hashes: UInt64) -> None:
        offsets, data = string_buffers(strings)
        start, stop = self._count, self._count + len(hashes)
        begin = int(self._offsets[start])
        end = begin + int(offsets[-1] - offsets[0])
        self._hashes = _room(self._hashes, stop)
        self._offsets = _room(self._offsets, stop + 1)
        self._bytes = _room(self._bytes, end)
        self._hashes[start:stop] = hashes
        self._offsets[start + 1 : stop + 1] = offsets[1:] - offsets[0] + begin
        self._bytes[begin:end] = data[offsets[0] : offsets[-1]]
        self._count = stop
        if 2 * stop > len(self._slots):
            self._slots = np.full(1 << (2 * stop - 1).bit_length(), _FREE, np.int32)
            start = 0
        self._settle(np.arange(start, stop, dtype=np.int32))

    def _settle(self, numbers: npt.NDArray[np.int32]) -> None:
        """Put numbers that are not in the table into the next free slot from where each belongs."""
        places = self._home(self._hashes[numbers])
        while len(numbers):
            free = self._slots[places] == _FREE
            self._slots[places[free]] = numbers[free]  # of several that want one slot, one gets it
            lost = self._slots[places] != numbers
            numbers, places = numbers[lost], self._next(places[lost])

    def _home(self, hashes: UInt64) -> Int64:
        return (hashes >> np.uint64(65 - len(self._slots).bit_length())).astype(np.int64)

    def _next(self, places: Int64) -> Int64:
        return (places + 1) & (len(self._slots) - 1)


def _words(data: Bytes, width: int) -> npt.NDArray[np.unsignedinteger]:
    """View bytes as the words of some width that start at each of them."""
    count = max(len(data) - width + 1, 0)
    words: npt.NDArray[np.unsignedinteger] = np.ndarray((count,), f"<u{width}", data if count else None, 0, (1,))
    return words


def _room(array: npt.NDArray[Kind], count: int) -> npt.NDArray[Kind]:
    """Return the array, or a longer copy that has room for `count` elements and half as many more."""
    if count <= len(array):
        return array
    longer = np.empty(count + count // 2, array.dtype)
    longer[: len(array)] = array
    return longer
