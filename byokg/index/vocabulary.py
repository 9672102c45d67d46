"""The distinct words of millions of names; columns of strings, and 64-bit hashes by which one is found among millions.

`Vocabulary` looks them up exactly, by how they start, and by likeness: words that resemble a misspelt one share pairs
of neighbouring letters with it (*bigrams*, in which the ends of a word count as letters), so an inverted index from
bigrams to words proposes some hundred of them, whose letters are compared.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz import process
from rapidfuzz.distance import LCSseq

from byokg.arrays import Bytes, Int32, Int64, Integers, UInt64

Texts: TypeAlias = pa.StringArray | pa.LargeStringArray
UInt32 = npt.NDArray[np.uint32]

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


LONGEST_WORD = 64
"""Letters up to which words are looked for by likeness."""

_END = "\n"
_COMPARED = 192
"""Words whose letters are compared, of those that share most bigrams."""

_MANY = 4096
"""Number of candidate words above which those with few shared bigrams are dropped before the similarity is computed."""

_KEPT = 64
_LIKE = 0.5
"""Similar words that are kept at most, and their least share of common letters: 2 · common / letters of both."""

_LONGEST_LIKE = int(LONGEST_WORD * (2 / _LIKE - 1))
_REMEMBERED = 4096
_KEY = 8


@dataclass(frozen=True)
class WordArrays:
    """V words in the order of their UTF-8 bytes, and the bigrams they hold; one file each."""

    key: UInt64
    """(V,) the first eight bytes of each word as one big-endian number, hence ascending."""
    letters: npt.NDArray[np.uint8]
    """(V,) letters of each word; 255 stands for more."""
    bigram: UInt64
    """(B,) bigrams that occur, ascending: first letter · 2³² + second letter."""
    bigram_bounds: Int64
    """(B + 1,) the words with bigram b stand in `bigram_words` from bigram_bounds[b] up to bigram_bounds[b + 1]."""
    bigram_words: Int32
    """Word numbers, ascending for each bigram, none twice."""


@dataclass(frozen=True)
class Alike:
    """Words like a given one, the most similar first."""

    words: Int32
    """(S,) word numbers."""
    common: npt.NDArray[np.uint8]
    """(S,) letters that each has in common with the given word, in the same order."""
    likeness: npt.NDArray[np.float64]
    """(S,) 2 · common / letters of both, in [0, 1]."""


class Vocabulary:
    """V distinct words, numbered in the order of their UTF-8 bytes."""

    def __init__(self, words: pa.LargeStringArray, arrays: WordArrays) -> None:
        self._words = words
        self.arrays = arrays
        _, offsets, data = words.buffers()
        self._offsets: Int64 = (
            np.frombuffer(offsets, np.int64, len(words) + 1, words.offset * 8) if len(words) else np.zeros(1, np.int64)
        )
        self._data: Bytes = np.frombuffer(data, np.uint8) if len(words) and data else np.empty(0, np.uint8)
        # Words come again: in the next question, and in the next piece of the same one.
        self.alike = lru_cache(_REMEMBERED)(self._alike)
        self.number = lru_cache(_REMEMBERED)(self._number)

    @classmethod
    def build(cls, words: pa.LargeStringArray) -> Vocabulary:
        """Index words that are distinct, not empty, and sorted by their UTF-8 bytes."""
        _, offsets, data = words.buffers()
        count = len(words)
        bounds = np.frombuffer(offsets, np.int64, count + 1, words.offset * 8) if count else np.zeros(1, np.int64)
        octets = np.frombuffer(data, np.uint8) if count and data else np.empty(0, np.uint8)
        sizes = np.diff(bounds)
        key = np.zeros(count, np.uint64)
        for place in range(_KEY):
            key <<= np.uint64(8)
            longer = np.flatnonzero(sizes > place)
            key[longer] |= octets[bounds[longer] + place]
        letters = pc.utf8_length(words).to_numpy().astype(np.int64) if count else np.zeros(0, np.int64)
        bigram, bigram_bounds, bigram_words = _bigrams(words, letters)
        arrays = WordArrays(
            key=key,
            letters=np.minimum(letters, 255).astype(np.uint8),
            bigram=bigram,
            bigram_bounds=bigram_bounds,
            bigram_words=bigram_words,
        )
        return cls(words, arrays)

    @property
    def words(self) -> pa.LargeStringArray:
        """Return all words."""
        return self._words

    def __len__(self) -> int:
        return len(self._words)

    def _number(self, word: str) -> int:
        """Return the number of a word, -1 for a text that is none."""
        return int(self.find([word])[0])

    def find(self, words: Sequence[str]) -> Int64:
        """Return the number of each word, -1 for unknown ones: (len(words),)."""
        texts = [word.encode(errors="surrogatepass") for word in words]
        keys = np.array([int.from_bytes(text[:_KEY].ljust(_KEY, b"\0"), "big") for text in texts], np.uint64)
        if not len(self):
            return np.full(len(texts), -1, np.int64)
        found = self.arrays.key.searchsorted(keys)
        found[self.arrays.key[np.minimum(found, len(self) - 1)] != keys] = -1
        # Words of one key are the same if they are short and equally long; zeros may end a word of punctuation.
        for position, text in enumerate(texts):
            start = int(found[position])
            if start >= 0 and (len(text) >= _KEY or self._offsets[start + 1] - self._offsets[start] != len(text)):
                stop = int(self.arrays.key.searchsorted(keys[position], "right"))
                at = bisect_left(range(stop), text, start, key=self._bytes)
                found[position] = at if at < stop and self._bytes(at) == text else -1
        return found

    def starting(self, beginnings: Sequence[str]) -> list[tuple[int, int]]:
        """Return the range of numbers of the words that start with each text, as far as its first eight bytes."""
        texts = [beginning.encode(errors="surrogatepass")[:_KEY] for beginning in beginnings]
        # No UTF-8 holds the byte 255.
        ends = [int.from_bytes(text.ljust(_KEY, end), "big") for end in (b"\0", b"\xff") for text in texts]
        starts = self.arrays.key.searchsorted(np.array(ends[: len(texts)], np.uint64)).tolist()
        stops = self.arrays.key.searchsorted(np.array(ends[len(texts) :], np.uint64), "right").tolist()
        return list(zip(starts, stops, strict=True))

    def containing(self, letter: str) -> Int32:
        """Return the numbers of the words that hold a letter, some of them more than once."""
        first = np.array([ord(letter) << 32, ord(letter) + 1 << 32], np.uint64)
        start, stop = self.arrays.bigram_bounds[self.arrays.bigram.searchsorted(first)].tolist()
        return self.arrays.bigram_words[start:stop]

    def _alike(self, word: str) -> Alike:
        """Return the words that have most letters in common with a word, itself among them if it is here.

        Words of more than `LONGEST_WORD` letters have none.
        """
        arrays = self.arrays
        if not word or len(word) > LONGEST_WORD or not len(self):
            return Alike(np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0))
        codes = np.array(sorted(set(_codes(_END + word + _END).tolist())), np.uint64)
        slots = arrays.bigram.searchsorted(codes)
        slots = np.minimum(slots, len(arrays.bigram) - 1)
        slots = slots[arrays.bigram[slots] == codes].tolist()
        lists = [arrays.bigram_words[arrays.bigram_bounds[slot] : arrays.bigram_bounds[slot + 1]] for slot in slots]
        if not lists:
            return Alike(np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0))
        counts = np.zeros(len(self), np.uint8)
        np.add.at(counts, np.concatenate(lists), np.uint8(1))
        # A wrong letter spoils two bigrams and two swapped ones three; words that share less come too many.
        found = np.flatnonzero(counts >= max(1, len(codes) // 2 - 1))
        if len(found) > _COMPARED:
            found = self._sharing_most(found, counts, len(codes))
        texts = self._words.take(positions(found)).to_pylist()
        common = process.cdist([word], texts, scorer=LCSseq.similarity, dtype=np.uint8)[0] if texts else np.empty(0)
        likeness = 2 * common.astype(np.float64) / (len(word) + arrays.letters[found].astype(np.int64))
        order = np.lexsort((found, -likeness))[:_KEPT]
        order = order[likeness[order] >= _LIKE]
        return Alike(found[order].astype(np.int32), common[order].astype(np.uint8), likeness[order])

    def _sharing_most(self, found: Int64, counts: Bytes, bigrams: int) -> Int64:
        """Return the `_COMPARED` words of most likeness by bigrams: 2 · shared / those of both; of equals the first.

        Args:
            found: more words than that, ascending.
            counts: (V,) how many bigrams each word of the vocabulary shares with a word of
            bigrams: so many.
        """

        def alike(words: Int64) -> npt.NDArray[np.float64]:
            return 2 * counts[words].astype(np.int64) / (bigrams + 1 + self.arrays.letters[words].astype(np.int64))

        if len(found) > _MANY:
            shared = counts[found]
            enough = int(np.flatnonzero(np.bincount(shared)[::-1].cumsum()[::-1] >= _COMPARED)[-1])
            edge = np.partition(alike(found[shared >= enough]), -_COMPARED)[-_COMPARED]
            # A word has at least the bigrams that it shares, so those that share few do not reach the edge.
            least = next(least for least in range(1, enough + 1) if 2 * least / (bigrams + least) >= edge)
            found = found[shared >= least]
        likeness = alike(found)
        edge = np.partition(likeness, -_COMPARED)[-_COMPARED]
        above, level = found[likeness > edge], found[likeness == edge]
        return np.sort(np.concatenate((above, level[: _COMPARED - len(above)])))

    def _bytes(self, number: int) -> bytes:
        return self._data[self._offsets[number] : self._offsets[number + 1]].tobytes()


def _bigrams(words: pa.LargeStringArray, letters: Int64) -> tuple[UInt64, Int64, Int32]:
    """Return the bigrams that occur in V words, the start of each word's bigrams, and the words.

    Words too long to be similar to any of up to `LONGEST_WORD` letters are left out.
    """
    held = np.flatnonzero(letters <= _LONGEST_LIKE)
    codes = _codes(_END + "".join(word + _END for word in words.take(positions(held)).to_pylist()))
    # A word of L letters has L + 1 bigrams; each but the last of all words ends at the start of the next one.
    owner = np.repeat(held, letters[held] + 1)
    bigram, number = np.unique(codes[: len(owner)], return_inverse=True)
    bounds, holders = group(number, owner, len(bigram))
    return bigram, bounds, holders.astype(np.int32)


def _codes(text: str) -> UInt64:
    """Return each two neighbouring letters of a text as one number."""
    points = np.frombuffer(text.encode("utf-32-le", errors="surrogatepass"), np.uint32).astype(np.uint64)
    codes: UInt64 = points[:-1] << np.uint64(32) | points[1:]
    return codes


def ranges(counts: Integers) -> Int64:
    """Return where ranges of given lengths start and end, one after the other: (len(counts) + 1,)."""
    return np.concatenate((np.zeros(1, np.int64), counts.cumsum(dtype=np.int64)))


def group(keys: Integers, values: Integers, count: int) -> tuple[Int64, Integers]:
    """Collect the values of each key from 0 to `count` - 1.

    Args:
        keys: (N,) in any order.
        values: (N,) one for each.

    Returns:
        (count + 1,) ranges of keys in the values, and the values, ascending for each key, none twice.
    """
    order = np.lexsort((values, keys))
    keys, values = keys[order], values[order]
    first = np.ones(len(keys), np.bool_)
    first[1:] = (keys[1:] != keys[:-1]) | (values[1:] != values[:-1])
    return ranges(np.bincount(keys[first], minlength=count)), values[first]
