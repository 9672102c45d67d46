"""Finding the number of an id among millions without holding them in a Python dict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bytes = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_BLOCK_BYTES = 1 << 23

_FEW = 12
"""Up to this many ids, plain Python beats the fixed cost of Arrow calls."""


class IdIndex:
    """A column of N distinct ids, and their hashes in ascending order; all of it may be memory-mapped.

    The hash of bytes b_0, b_1, … is the sum of (b_i + 1) · F^i modulo 2^64, which numpy computes for a whole column.
    It only narrows the search: a lookup compares the ids themselves, so equal hashes do no harm.
    """

    def __init__(self, ids: pa.LargeStringArray, hashes: UInt64, order: npt.NDArray[np.int32]) -> None:
        """Use hashes that are sorted already; `order` holds the position of the id behind each."""
        self.hashes = hashes
        self.order = order
        self._ids = ids
        self._offsets, self._bytes = string_buffers(ids)

    @classmethod
    def build(cls, ids: pa.LargeStringArray) -> IdIndex:
        """Hash and sort a column of ids."""
        hashes = _hash_column(ids)
        order = np.argsort(hashes, kind="stable").astype(np.int32)
        return cls(ids, hashes[order], order)

    def __len__(self) -> int:
        return len(self.hashes)

    def find(self, entity: str) -> int:
        """Return the position of an id, or -1."""
        try:
            data = entity.encode()
        except UnicodeEncodeError:  # a lone surrogate, which no stored id holds
            return -1
        value = _hash_one(data)
        slot = int(self.hashes.searchsorted(value))
        while slot < len(self) and self.hashes[slot] == value:
            number = int(self.order[slot])
            if self._bytes[self._offsets[number] : self._offsets[number + 1]].tobytes() == data:
                return number
            slot += 1
        return -1

    def find_all(self, entities: Sequence[str]) -> npt.NDArray[np.int32]:
        """Return the position of each id, -1 where there is none: (len(entities),)."""
        if len(entities) <= _FEW or len(self) == 0:
            return np.array([self.find(entity) for entity in entities], np.int32)
        try:
            wanted = pa.array(entities, pa.large_string())
        except UnicodeEncodeError:
            return np.array([self.find(entity) for entity in entities], np.int32)
        slots = np.minimum(self.hashes.searchsorted(_hash_column(wanted)), len(self) - 1)
        found: npt.NDArray[np.int32] = self.order[slots]
        equal = pc.equal(self._ids.take(pa.array(found)), wanted).to_numpy(zero_copy_only=False)
        for position in np.flatnonzero(~equal).tolist():  # unknown, or behind another id of equal hash
            found[position] = self.find(entities[position])
        return found

    def get(self, numbers: Int64) -> list[str]:
        """Return the id at each position."""
        if len(numbers) > _FEW:
            many: list[str] = self._ids.take(pa.array(numbers)).to_pylist()
            return many
        starts, stops = self._offsets[numbers].tolist(), self._offsets[numbers + 1].tolist()
        return [self._bytes[start:stop].tobytes().decode() for start, stop in zip(starts, stops, strict=True)]


def string_buffers(strings: pa.LargeStringArray) -> tuple[Int64, Bytes]:
    """View a column of N strings as its offsets (N + 1,) and its bytes, without copying."""
    _, offsets, data = strings.buffers()
    if len(strings) == 0:
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int64, len(strings) + 1, strings.offset * 8)
    return bounds, np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def _powers(length: int) -> UInt64:
    factors = np.full(length, _FACTOR, np.uint64)
    factors[:1] = 1
    return np.multiply.accumulate(factors)


_POWERS = _powers(1024)


def _powers_to(length: int) -> UInt64:
    return _POWERS[:length] if length <= len(_POWERS) else _powers(length)


def _hash_one(data: bytes) -> np.uint64:
    values = np.frombuffer(data, np.uint8).astype(np.uint64) + 1
    return np.uint64(values.dot(_powers_to(len(data))))


def _hash_column(strings: pa.LargeStringArray) -> UInt64:
    offsets, data = string_buffers(strings)
    hashes = np.zeros(len(strings), np.uint64)
    start = 0
    while start < len(strings):
        # In blocks, because every byte is widened to eight for a moment.
        stop = int(np.searchsorted(offsets, offsets[start] + _BLOCK_BYTES, "right")) - 1
        stop = min(max(stop, start + 1), len(strings))
        local = offsets[start : stop + 1] - offsets[start]
        lengths = np.diff(local)
        values = data[offsets[start] : offsets[stop]].astype(np.uint64)
        values += 1
        values *= _powers_to(int(lengths.max()))[np.arange(len(values)) - np.repeat(local[:-1], lengths)]
        filled = np.flatnonzero(lengths)
        if len(filled):
            hashes[start + filled] = np.add.reduceat(values, local[filled])
        start = stop
    return hashes
