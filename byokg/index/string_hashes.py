"""Columns of strings, and 64-bit hashes by which one is found among millions without a Python object for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from byokg.arrays import Int64

Bytes = npt.NDArray[np.uint8]
Texts: TypeAlias = pa.StringArray | pa.LargeStringArray
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]

_PRIMES = (987090887, 817224911)
_SPREAD, _MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1
_WORD = 4
_LOW_BYTES = np.array([(1 << (8 * count)) - 1 for count in range(_WORD + 1)], np.uint32)
_BLOCK_BYTES = 1 << 18
"""Number of strings hashed together, so that intermediate arrays stay in the processor's cache."""

_LONG = 512
"""Bytes from which an id is hashed alone: few are that long, and all others would wait for them."""

_NARROW_BYTES = 1 << 31

_KEYS, _UPPER = 1 << 20, np.uint64(0xFFFFFFFF << 32)
"""Strings or hashes that are worked on at once, and which bits of them are kept."""

# pa.array(…) would import pandas, if installed: half a second for nothing.


def positions(numbers: npt.NDArray[np.integer]) -> pa.Array:
    """View N numbers as an Arrow column, to take the rows at these positions."""
    held = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(pa.from_numpy_dtype(held.dtype), len(held), [None, pa.py_buffer(held)])


def texts_column(texts: Sequence[str]) -> pa.LargeStringArray:
    """Return N texts as an Arrow column. Raises `UnicodeEncodeError` for a lone surrogate."""
    data = [text.encode() for text in texts]
    bounds = np.cumsum([0, *map(len, data)], dtype=np.int64)
    return pa.LargeStringArray.from_buffers(len(data), pa.py_buffer(bounds), pa.py_buffer(b"".join(data)))


def string_buffers(strings: Texts) -> tuple[npt.NDArray[Any], Bytes]:
    """View a column of N strings as its offsets (N + 1,), of 32 or 64 bits, and its bytes, without copying."""
    kind: type[np.integer] = np.int32 if strings.type == pa.string() else np.int64
    _, offsets, data = strings.buffers()
    if len(strings) == 0:
        return np.zeros(1, kind), np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, kind, len(strings) + 1, strings.offset * np.dtype(kind).itemsize)
    return bounds, np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def narrow(strings: pa.LargeStringArray) -> Texts:
    """Return a column with offsets of 32 bits if its texts fit: below 2 GiB in all."""
    offsets, _ = string_buffers(strings)
    fits = int(offsets[-1]) - int(offsets[0]) < _NARROW_BYTES
    found: Texts = strings.cast(pa.string()) if fits else strings
    return found


# Hashing: the bytes of a string are one little-endian number. Its remainders by two primes are 60 bits that plain
# Python gets in a moment for one string and numpy for a column, word by word; the length tells trailing zeros apart.


def hash_one(data: bytes) -> int:
    """Return the hash of one string: what `hash_column` gives for it."""
    number = int.from_bytes(data, "little")
    value = (number % _PRIMES[0] << 32 | number % _PRIMES[1]) + len(data)
    return value * _SPREAD & _MASK


def hash_column(strings: Texts) -> UInt64:
    """Return a 64-bit hash of each of N strings: (N,). The upper bits are the better ones."""
    hashes = np.empty(len(strings), np.uint64)
    for first in range(0, len(strings), _KEYS):
        offsets, data = string_buffers(strings.slice(first, _KEYS))
        offsets = offsets.astype(np.int64, copy=False)
        start, count = 0, len(offsets) - 1
        while start < count:
            # In blocks, because the bytes are copied for a moment to make room for the last word.
            stop = int(np.searchsorted(offsets, offsets[start] + _BLOCK_BYTES, "right")) - 1
            stop = min(max(stop, start + 1), count)
            block = offsets[start : stop + 1] - offsets[start]
            hashes[first + start : first + stop] = _hash_block(block, data[offsets[start] :])
            start = stop
    return hashes


def _hash_block(offsets: Int64, data: Bytes) -> UInt64:
    padded = np.concatenate((data[: offsets[-1]], np.zeros(_WORD, np.uint8)))
    words = np.ndarray((len(padded) - _WORD + 1,), "<u4", padded, 0, (1,))  # one starts at every byte
    starts, lengths = offsets[:-1], np.diff(offsets)
    hashed = np.flatnonzero((lengths > 0) & (lengths < _LONG))
    further = (lengths[hashed] - 1) // _WORD
    hashed = hashed[np.argsort(-further.astype(np.int16), kind="stable")]  # those of most words first
    last = (lengths[hashed] - 1) // _WORD * _WORD
    place = starts[hashed] + last
    digits = words[place] & _LOW_BYTES[lengths[hashed] - last]
    remainders = [np.zeros(len(hashed), np.uint64) for _ in _PRIMES]
    # One word of each string at a time, from the last one on, as long as it has more.
    for count in np.bincount(further)[::-1].cumsum()[::-1].tolist():
        if count < len(place):
            place = place[:count]
        for rest, prime in zip(remainders, _PRIMES, strict=True):
            some = rest[:count]
            some <<= np.uint64(32)
            some |= digits[:count]
            some %= np.uint64(prime)
        place -= _WORD
        digits = words[np.maximum(place, 0)]
    hashes = np.zeros(len(lengths), np.uint64)
    hashes[hashed] = remainders[0] << np.uint64(32) | remainders[1]
    hashes += lengths.astype(np.uint64)
    hashes *= np.uint64(_SPREAD)
    for number in np.flatnonzero(lengths >= _LONG).tolist():
        hashes[number] = hash_one(data[offsets[number] : offsets[number + 1]].tobytes())
    return hashes


def upper_halves(hashes: UInt64) -> UInt32:
    """Return the better half of each hash. Small numbers are searched for in half the memory."""
    return (hashes >> np.uint64(32)).astype(np.uint32)


def sort_hashes(hashes: UInt64) -> tuple[UInt32, npt.NDArray[np.int32]]:
    """Return the upper halves of N hashes, ascending, and their positions, ascending among equal ones.

    Takes 16 bytes a hash beside the hashes, the result included.
    """
    keys = hash_keys(hashes)
    pairs = keys.view("<u4").reshape(-1, 2)
    return np.ascontiguousarray(pairs[:, 1]), np.ascontiguousarray(pairs[:, 0]).view(np.int32)


def hash_keys(hashes: UInt64) -> UInt64:
    """Return in ascending order, for each of N hashes, its upper half and behind it its position: (N,)."""
    keys: UInt64 = np.arange(len(hashes), dtype="<u8")
    for start in range(0, len(keys), _KEYS):
        keys[start : start + _KEYS] |= hashes[start : start + _KEYS] & _UPPER
    keys.sort()
    return keys
