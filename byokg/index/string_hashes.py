"""64-bit hashes of columns of strings, and of one string, without a Python object for each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

_PRIMES = (987090887, 817224911)
_SPREAD, _MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1
_WORD = 4
_LOW_BYTES = np.array([(1 << (8 * count)) - 1 for count in range(_WORD + 1)], np.uint32)
_BLOCK_BYTES = 1 << 24

_LONG = 512
"""Bytes from which an id is hashed alone: few are that long, and all others would wait for them."""


def string_buffers(strings: pa.LargeStringArray) -> tuple[Int64, Bytes]:
    """View a column of N strings as its offsets (N + 1,) and its bytes, without copying."""
    _, offsets, data = strings.buffers()
    if len(strings) == 0:
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int64, len(strings) + 1, strings.offset * 8)
    return bounds, np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


# Hashing: the bytes of a string are one little-endian number. Its remainders by two primes are 60 bits that plain
# Python gets in a moment for one string and numpy for a column, word by word; the length tells trailing zeros apart.


def hash_one(data: bytes) -> int:
    """Return the hash of one string: what `hash_column` gives for it."""
    number = int.from_bytes(data, "little")
    value = (number % _PRIMES[0] << 32 | number % _PRIMES[1]) + len(data)
    return value * _SPREAD & _MASK


def hash_column(strings: pa.LargeStringArray) -> UInt64:
    """Return a 64-bit hash of each of N strings: (N,). The upper bits are the better ones."""
    offsets, data = string_buffers(strings)
    hashes = np.empty(len(strings), np.uint64)
    start = 0
    while start < len(strings):
        # In blocks, because the bytes are copied for a moment to make room for the last word.
        stop = int(np.searchsorted(offsets, offsets[start] + _BLOCK_BYTES, "right")) - 1
        stop = min(max(stop, start + 1), len(strings))
        hashes[start:stop] = _hash_block(offsets[start : stop + 1] - offsets[start], data[offsets[start] :])
        start = stop
    return hashes


def _hash_block(offsets: Int64, data: Bytes) -> UInt64:
    padded = np.concatenate((data[: offsets[-1]], np.zeros(_WORD, np.uint8)))
    words = np.ndarray((len(padded) - _WORD + 1,), "<u4", padded, 0, (1,))  # one starts at every byte
    starts, lengths = offsets[:-1], np.diff(offsets)
    live = np.flatnonzero((lengths > 0) & (lengths < _LONG))
    last = (lengths[live] - 1) // _WORD * _WORD
    digits = words[starts[live] + last] & _LOW_BYTES[lengths[live] - last]
    remainders = np.zeros((2, len(lengths)), np.uint64)
    while len(live):
        for row, prime in enumerate(_PRIMES):
            remainders[row, live] = (remainders[row, live] << np.uint64(32) | digits) % np.uint64(prime)
        kept = last > 0
        live, last = live[kept], last[kept] - _WORD
        digits = words[starts[live] + last]
    hashes: UInt64 = remainders[0] << np.uint64(32) | remainders[1]
    hashes += lengths.astype(np.uint64)
    hashes *= np.uint64(_SPREAD)
    for number in np.flatnonzero(lengths >= _LONG).tolist():
        hashes[number] = hash_one(data[offsets[number] : offsets[number + 1]].tobytes())
    return hashes
