"""Numbers for strings as they come.

`Interner` is a hash table made of arrays for the texts of an import, a column at a time. `Numbering` gives out numbers
for stores that have none, such as servers.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Bytes, Int64, Integers, UInt64
from byokg.index.vocabulary import hash_column, positions, string_buffers

Kind = TypeVar("Kind", bound=np.generic)

_UNKNOWN = -1
"""Stands for the number of a string that has none."""
_FREE = np.uint64((1 << 64) - 1)
"""Marks a free slot."""
_HALF = np.uint64(32)
_SLOTS_AT_FIRST = 1 << 10
_AT_ONCE = 1 << 16
"""Number of strings looked up or inserted together, so that their data stays in the cache."""
_ZEROS = 1 << 20
"""Bytes written at once where space cannot be reserved."""


class Interner:
    """Gives each distinct string a number, in order of first appearance.

    N strings of B bytes in all take B + 16 N bytes, and up to 22 N more for the table, which is never more than three
    quarters full. A slot holds half of a hash above a number. Strings are found by hash and then compared, so equal
    hashes do no harm.
    """

    def __init__(self, stem: Path | None = None, count: int = 0) -> None:
        """Start empty, or with the strings that another one kept.

        Args:
            stem: files that hold all but the table, which the system may then take out of memory, have this name and
                an ending each; None keeps everything in memory.
            count: how many of the strings in these files to take; those behind are overwritten.
        """
        self._stem, self._count = stem, count
        self._maps: dict[str, mmap.mmap] = {}
        self._hashes: UInt64 = self._room(np.empty(0, np.uint64), "hashes", max(count, _SLOTS_AT_FIRST))
        self._offsets: Int64 = self._room(np.empty(0, np.int64), "offsets", max(count, _SLOTS_AT_FIRST) + 1)
        self._offsets[0] = 0
        size = max(int(self._offsets[count]), _SLOTS_AT_FIRST)
        self._bytes: Bytes = self._room(np.empty(0, np.uint8), "bytes", size)
        self._slots: UInt64 = np.full(_SLOTS_AT_FIRST, _FREE)
        self._settled = 0

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
        fresh = np.flatnonzero(numbers == _UNKNOWN)
        if len(fresh):
            numbers[fresh] = np.arange(self._count, self._count + len(fresh), dtype=np.int32)
            self._append(strings.take(pa.array(fresh)), hashes[fresh])
        return numbers

    def encode(self, strings: pa.LargeStringArray, codes: Integers) -> npt.NDArray[np.int32]:
        """Return the number of the string behind each code; new strings get theirs in the order of the codes.

        Args:
            strings: (S,) different from each other; those without a code get no number.
            codes: (C,) positions in `strings`.
        """
        first = np.full(len(strings), len(codes))
        first[codes[::-1]] = np.arange(len(codes))[::-1]  # of repeated assignments the last one stays
        met = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))]
        numbers = np.empty(len(strings), np.int32)
        numbers[met] = self.numbers(strings.take(pa.array(met)))
        return numbers[codes]

    def met(self, strings: pa.LargeStringArray) -> npt.NDArray[np.int32] | None:
        """Return the number of each of S strings, which may repeat, -1 for unknown ones.

        None if deduplication first would be quicker: few of them can be known.
        """
        return self.find(strings) if 2 * self._count >= len(strings) else None

    def find(self, strings: pa.LargeStringArray) -> npt.NDArray[np.int32]:
        """Return the number of each of S strings, -1 for those that have none."""
        return self._find(strings, hash_column(strings))

    def release(self) -> None:
        """Give back the table, which is made again should a string be looked for."""
        self._slots, self._settled = np.full(_SLOTS_AT_FIRST, _FREE), 0

    def set_aside(self) -> None:
        """Release the memory of mapped files; the next access reads them again, as a rule from the system's cache."""
        if hasattr(mmap, "MADV_DONTNEED"):  # Windows releases pages by itself
            for mapped in self._maps.values():
                mapped.madvise(mmap.MADV_DONTNEED)

    def _find(self, strings: pa.LargeStringArray, hashes: UInt64) -> npt.NDArray[np.int32]:
        self._settle_all()
        numbers = np.full(len(hashes), _UNKNOWN, np.int32)
        for start in range(0, len(hashes), _AT_ONCE):
            some = hashes[start : start + _AT_ONCE]
            searched, places, tags = np.arange(start, start + len(some)), self._home(some), some << _HALF
            while len(searched):
                found = self._slots[places]
                taken = np.flatnonzero(found != _FREE)
                searched, places, tags, found = searched[taken], places[taken], tags[taken], found[taken]
                equal = np.flatnonzero((found ^ tags) >> _HALF == 0)
                known = found[equal].astype(np.uint32).astype(np.int32)
                same = self._same(known, strings, searched[equal])
                equal = equal[same]
                numbers[searched[equal]] = known[same]
                other = np.ones(len(searched), np.bool_)
                other[equal] = False
                searched, places, tags = searched[other], self._next(places[other]), tags[other]
        return numbers

    def _same(self, numbers: npt.NDArray[np.int32], strings: pa.LargeStringArray, rows: Int64) -> npt.NDArray[np.bool_]:
        """Compare known strings with some of a column: (len(rows),)."""
        if not len(rows):
            return np.empty(0, np.bool_)
        alike = pc.equal(self.strings.take(positions(numbers)), strings.take(positions(rows)))
        same: npt.NDArray[np.bool_] = alike.to_numpy(zero_copy_only=False)
        return same

    def _append(self, strings: pa.LargeStringArray, hashes: UInt64) -> None:
        offsets, data = string_buffers(strings)
        start, stop = self._count, self._count + len(hashes)
        begin = int(self._offsets[start])
        end = begin + int(offsets[-1] - offsets[0])
        self._hashes = self._room(self._hashes, "hashes", stop)
        self._offsets = self._room(self._offsets, "offsets", stop + 1)
        self._bytes = self._room(self._bytes, "bytes", end)
        self._hashes[start:stop] = hashes
        self._offsets[start + 1 : stop + 1] = offsets[1:] - offsets[0] + begin
        self._bytes[begin:end] = data[offsets[0] : offsets[-1]]
        self._count = stop
        self._settle_all()

    def _settle_all(self) -> None:
        """Put all numbers that are not in the table there, which grows if it must."""
        if 4 * self._count > 3 * len(self._slots):
            self._slots = np.empty(0, np.uint64)  # goes before the longer one comes
            self._slots = np.full(1 << (4 * self._count // 3).bit_length(), _FREE)
            self._settled = 0
        for start in range(self._settled, self._count, _AT_ONCE):
            self._settle(start, min(start + _AT_ONCE, self._count))
        self._settled = self._count

    def _room(self, array: npt.NDArray[Kind], ending: str, count: int) -> npt.NDArray[Kind]:
        """Return the array, or a longer one that has room for `count` elements and half as many more."""
        if count <= len(array):
            return array
        room = count + count // 2
        if self._stem is None:
            longer = np.empty(room, array.dtype)
            longer[: len(array)] = array
            return longer
        path = self._stem.with_name(f"{self._stem.name}.{ending}")
        with path.open("ab+") as file:
            _reserve(file, room * array.itemsize)
            self._maps[ending] = mmap.mmap(file.fileno(), room * array.itemsize)
        mapped: npt.NDArray[Kind] = np.frombuffer(self._maps[ending], array.dtype)
        return mapped

    def _settle(self, start: int, stop: int) -> None:
        """Put some numbers that are not in the table into the next free slot from where each belongs."""
        hashes = self._hashes[start:stop]
        places, entries = self._home(hashes), hashes << _HALF | np.arange(start, stop, dtype=np.uint64)
        while len(entries):
            free = self._slots[places] == _FREE
            self._slots[places[free]] = entries[free]  # of several that want one slot, one gets it
            lost = self._slots[places] != entries
            entries, places = entries[lost], self._next(places[lost])

    def _home(self, hashes: UInt64) -> Int64:
        return (hashes >> np.uint64(65 - len(self._slots).bit_length())).astype(np.int64)

    def _next(self, places: Int64) -> Int64:
        return (places + 1) & (len(self._slots) - 1)


def _reserve(file: BinaryIO, size: int) -> None:
    """Make a file that long, and take the space: on a disk that is full, writing to a hole would be fatal."""
    if hasattr(os, "posix_fallocate"):  # neither macOS nor Windows has it
        if file.tell() < size:
            os.posix_fallocate(file.fileno(), 0, size)
        return
    while (missing := size - file.tell()) > 0:
        file.write(bytes(min(missing, _ZEROS)))
    file.flush()


def first_rows(codes: Integers, count: int) -> Int64:
    """Return the row where each of `count` codes occurs first."""
    first = np.empty(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of repeated assignments the last one stays
    return first


def row_by_row(pairs: pa.DictionaryArray) -> Integers:
    """Return the codes of E heads and then E tails as head, tail, head, tail, …: (2 E,)."""
    codes: Integers = pairs.indices.to_numpy().reshape(2, -1).T.ravel()
    return codes


Key = TypeVar("Key", bound=Hashable)


class Numbering(Generic[Key]):
    """Gives each key the next number when it is first added; threads may share it.

    Numbers count from 0 and mean something within the store that owns the numbering only.
    """

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: Key) -> bool:
        return key in self._numbers

    def add(self, keys: Iterable[Key]) -> npt.NDArray[np.int64]:
        """Return the number of each key, in the order given; new keys get the next numbers in that order."""
        asked = list(keys)
        with self._lock:
            fresh = [key for key in dict.fromkeys(asked) if key not in self._numbers]
            self._numbers.update(zip(fresh, range(len(self._keys), len(self._keys) + len(fresh)), strict=True))
            self._keys += fresh
            return np.fromiter(map(self._numbers.__getitem__, asked), np.int64, len(asked))

    def key(self, number: int) -> Key:
        """Return the key of a number. Raises `IndexError` for one that was not given out."""
        if number < 0:
            raise IndexError(number)
        return self._keys[number]

    def keys(self, start: int = 0) -> Sequence[Key]:
        """Return the keys numbered so far, from `start` on."""
        return self._keys[start:]
