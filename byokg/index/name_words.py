"""Splitting a column of names into folded words, millions at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.index.normalize import WORD, fold_words

Int64 = npt.NDArray[np.int64]

_SPACE = ord(" ")
_BLOCK = 1 << 20

# What ASCII bytes become: letters small, digits as they are, all others a space. Bytes of other characters stay.
_FOLDED = np.arange(256, dtype=np.uint8)
for _byte in range(128):
    _FOLDED[_byte] = ord(chr(_byte).lower()) if chr(_byte).isalnum() else _SPACE


def split_names(names: pa.LargeStringArray) -> tuple[pa.LargeStringArray, Int64]:
    """Split N names into words as `fold_words` does.

    Returns:
        The words of all names, one name after another, and the number of words in each: (N,).
    """
    words, counts = [], [np.empty(0, np.int64)]
    for start in range(0, len(names), _BLOCK):
        some, lengths = _split(names.slice(start, _BLOCK))
        words.append(some)
        counts.append(lengths)
    return pa.concat_arrays(words) if words else pa.array([], pa.large_string()), np.concatenate(counts)


def _split(names: pa.LargeStringArray) -> tuple[pa.LargeStringArray, Int64]:
    # Plain numpy knows ASCII alone; what folding makes of other names has letters and single spaces only.
    other = pc.invert(pc.string_is_ascii(names))
    plain = names
    if pc.any(other).as_py():
        folded = [_lettered(name) for name in names.filter(other).to_pylist()]
        plain = pc.replace_with_mask(names, other, pa.array(folded, pa.large_string()))
    words, counts = _split_plain(plain)
    odd = np.flatnonzero(counts == 0)
    pieces = [fold_words(name) for name in names.take(pa.array(odd)).to_pylist()]
    if any(pieces):  # names of punctuation alone
        counts[odd] = [len(some) for some in pieces]
        position = np.repeat(np.arange(len(counts)), counts)
        is_piece = np.isin(position, odd)
        order = np.empty(len(position), np.int64)
        order[~is_piece] = np.arange(len(words))
        order[is_piece] = len(words) + np.arange(int(is_piece.sum()))
        spelt = pa.array([piece for some in pieces for piece in some], pa.large_string())
        words = pa.concat_arrays([words, spelt]).take(pa.array(order))
    return words, counts


def _lettered(name: str) -> str:
    words = fold_words(name)
    return " ".join(words) if words and WORD.match(words[0]) else ""


def _split_plain(names: pa.LargeStringArray) -> tuple[pa.LargeStringArray, Int64]:
    """Split names at everything that is ASCII and neither letter nor digit."""
    _, offsets, data = names.buffers()
    if len(names) == 0 or data is None:
        return pa.array([], pa.large_string()), np.zeros(len(names), np.int64)
    bounds = np.frombuffer(offsets, np.int64, len(names) + 1, names.offset * 8)
    folded = _FOLDED[np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]]
    bounds = bounds - bounds[0]
    inside = folded != _SPACE
    # A word starts where nothing of a word, or another name, stands before.
    starts = inside.copy()
    starts[1:] &= ~inside[:-1]
    first = bounds[:-1][np.diff(bounds) > 0]
    starts[first] = inside[first]
    before = np.concatenate(([0], starts.cumsum()))
    counts = before[bounds[1:]] - before[bounds[:-1]]
    at = np.flatnonzero(starts)
    kept = np.concatenate(([0], inside.cumsum()))
    ends = np.append(kept[at], kept[-1]).astype(np.int64)
    words = pa.LargeStringArray.from_buffers(len(at), pa.py_buffer(ends), pa.py_buffer(folded[inside]))
    return words, counts
