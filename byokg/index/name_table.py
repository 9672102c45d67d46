"""Names as rows of word numbers: the arrays under a name index, and how they are made.

A row is one distinct spelling. Rows are ordered by the letters they have, so names of like length stand together, in
each list of names with a word, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.index.name_words import split_names
from byokg.index.normalize import ARTICLES
from byokg.index.vocabulary import Vocabulary

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.integer]

MASK = (1 << 64) - 1
_MIXING = ((33, 0x9E3779B97F4A7C15), (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
"""Shifts and factors of the finalizer of SplitMix64."""


@dataclass(frozen=True)
class NameArrays:
    """R rows with T words altogether, and their E owners; V words. One file each.

    Ranges: the words of row r are `words[word_bounds[r] : word_bounds[r + 1]]`, and so on.
    """

    letters: npt.NDArray[np.uint16]
    """(R,) letters of the folded words of each row with a space between two, ascending; 65,535 stands for more."""
    word_bounds: Integers
    """(R + 1,) ranges of rows in `words`."""
    words: npt.NDArray[np.int32]
    """(T,) word numbers, as they stand in the names."""
    holder_bounds: Integers
    """(V + 1,) ranges of words in `holders`."""
    holders: npt.NDArray[np.int32]
    """Rows that hold each word, ascending, none twice."""
    longest: npt.NDArray[np.uint16]
    """(V,) words of the longest name that starts with a word; a leading article is no part of a name here."""
    hashes: UInt64
    """(R,) hashes of the sets of words in the names, ascending: sums of `word_hashes`."""
    hash_rows: npt.NDArray[np.int32]
    """(R,) the row behind each entry of `hashes`."""
    owner_bounds: Integers
    """(R + 1,) ranges of rows in `owners`."""
    owners: Integers
    """(E,) who bears each name, ascending in each row, none twice."""


@dataclass(frozen=True)
class NameTable:
    """Rows, their spellings, and the vocabulary their words are numbered in."""

    spellings: pa.LargeStringArray
    """(R,) names as they were given."""
    vocabulary: Vocabulary
    arrays: NameArrays

    @classmethod
    def build(cls, names: pa.LargeStringArray, owners: Int64) -> NameTable:
        """Make a table of E names and their owners; blank names and nulls are left out.

        Args:
            names: (E,) names; the same may come several times.
            owners: (E,) who bears each, 0 or greater; the same may come several times.
        """
        coded = names.dictionary_encode()
        spellings = coded.dictionary
        texts, counts = split_names(spellings)
        # Words are numbered in the order of their bytes.
        coded_words = texts.dictionary_encode()
        order = pc.sort_indices(coded_words.dictionary).to_numpy()
        number = np.empty(len(order), np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)
        vocabulary = Vocabulary.build(coded_words.dictionary.take(pa.array(order)))
        words = number[coded_words.indices.to_numpy()] if len(texts) else np.empty(0, np.int32)
        sizes = pc.utf8_length(vocabulary.words).to_numpy().astype(np.int64) if len(vocabulary) else np.empty(0)
        letters = _sums(sizes[words], counts) + counts - 1
        del coded_words, texts

        rows = np.flatnonzero(counts)  # blank names have no word
        rows = rows[np.argsort(letters[rows], kind="stable")]
        row_of = np.full(len(counts), -1, np.int64)
        row_of[rows] = np.arange(len(rows))
        word_bounds, words = _rearranged(words, counts, rows)
        counts = counts[rows]
        holder_bounds, holders = _holders(words, counts, len(vocabulary))
        skip = _leading_articles(words, word_bounds[:-1], counts, vocabulary)
        hashes = np.zeros(len(rows), np.uint64)
        np.add.at(hashes, holders, np.repeat(word_hashes(np.arange(len(vocabulary))), np.diff(holder_bounds)))
        hash_order = np.argsort(hashes, kind="stable")
        owner_bounds, owned = _owners(row_of, coded.indices, owners, len(rows))
        return cls(
            spellings.take(pa.array(rows)),
            vocabulary,
            NameArrays(
                letters=np.minimum(letters[rows], np.iinfo(np.uint16).max).astype(np.uint16),
                word_bounds=_narrow(word_bounds),
                words=words.astype(np.int32),
                holder_bounds=_narrow(holder_bounds),
                holders=holders,
                longest=_longest(words, word_bounds[:-1] + skip, counts - skip, len(vocabulary)),
                hashes=hashes[hash_order],
                hash_rows=hash_order.astype(np.int32),
                owner_bounds=_narrow(owner_bounds),
                owners=_narrow(owned),
            ),
        )

    def __len__(self) -> int:
        return len(self.spellings)

    def holders(self, word: int) -> npt.NDArray[np.int32]:
        """Return the rows that hold a word, ascending."""
        bounds = self.arrays.holder_bounds
        return self.arrays.holders[int(bounds[word]) : int(bounds[word + 1])]

    def frequency(self, words: Integers) -> Int64:
        """Return how many rows hold each word."""
        bounds = self.arrays.holder_bounds
        return bounds[words + 1].astype(np.int64) - bounds[words]

    def rows_of(self, hashes: UInt64) -> Int64:
        """Return the rows whose sets of words have one of some hashes."""
        known = self.arrays.hashes
        if not len(known):
            return np.empty(0, np.int64)
        starts = known.searchsorted(hashes)
        starts = starts[known[np.minimum(starts, len(known) - 1)] == hashes]
        if not len(starts):
            return np.empty(0, np.int64)
        stops = known.searchsorted(known[starts], "right")
        return self.arrays.hash_rows[members(starts, stops - starts)].astype(np.int64)

    def words_of(self, row: int) -> list[int]:
        """Return the words of a row."""
        bounds = self.arrays.word_bounds
        numbers: list[int] = self.arrays.words[int(bounds[row]) : int(bounds[row + 1])].tolist()
        return numbers


def word_hashes(words: Integers) -> UInt64:
    """Return a hash of each word number. The hash of a set of words is the sum of theirs, modulo 2⁶⁴."""
    values = words.astype(np.uint64) + np.uint64(1)
    for shift, factor in _MIXING:
        values = (values ^ values >> np.uint64(shift)) * np.uint64(factor)
    return values ^ values >> np.uint64(31)


def set_hash(words: Iterable[int]) -> int:
    """Return the hash of a set of word numbers, in plain Python: quicker for a few."""
    total = 0
    for word in words:
        value = word + 1
        for shift, factor in _MIXING:
            value = (value ^ value >> shift) * factor & MASK
        total += value ^ value >> 31
    return total & MASK


def ranges(counts: Int64) -> Int64:
    """Return where ranges of given lengths start and end, one after the other: (len(counts) + 1,)."""
    return np.concatenate((np.zeros(1, np.int64), counts.cumsum(dtype=np.int64)))


def members(starts: Int64, counts: Int64) -> Int64:
    """Return the positions in each of several ranges, one after the other: (sum of counts,)."""
    before = counts.cumsum() - counts
    return np.arange(int(counts.sum()), dtype=np.int64) + np.repeat(starts - before, counts)


def _sums(values: Int64, counts: Int64) -> Int64:
    """Return the sum of each of several ranges that follow each other."""
    bounds = ranges(counts)
    before = ranges(values)
    return before[bounds[1:]] - before[bounds[:-1]]


def _rearranged(words: Integers, counts: Int64, rows: Int64) -> tuple[Int64, Integers]:
    """Put ranges of words into another order; return their new bounds, and the words."""
    starts = ranges(counts)[:-1]
    return ranges(counts[rows]), words[members(starts[rows], counts[rows])]


def _holders(words: Integers, counts: Int64, word_count: int) -> tuple[Int64, npt.NDArray[np.int32]]:
    """Return for each word the rows that hold it."""
    rows = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    order = np.argsort(words, kind="stable")
    words, rows = words[order], rows[order]
    if len(words):  # a word that stands in a row twice
        first = np.ones(len(words), np.bool_)
        first[1:] = (words[1:] != words[:-1]) | (rows[1:] != rows[:-1])
        words, rows = words[first], rows[first]
    return ranges(np.bincount(words, minlength=word_count)), rows


def _leading_articles(words: Integers, starts: Int64, counts: Int64, vocabulary: Vocabulary) -> Int64:
    """Return 1 for each row that starts with an article it can do without: see `leads_with_article`."""
    is_article = np.zeros(len(vocabulary) + 1, np.bool_)
    numbers = vocabulary.find(sorted(ARTICLES))
    is_article[numbers[numbers >= 0]] = True
    if not len(words):
        return np.zeros(len(counts), np.int64)
    last = len(words) - 1
    second = is_article[words[np.minimum(starts + 1, last)]]
    return (is_article[words[starts]] & (counts > 1) & ~(second & (counts > 2))).astype(np.int64)


def _longest(words: Integers, starts: Int64, counts: Int64, word_count: int) -> npt.NDArray[np.uint16]:
    longest = np.zeros(word_count, np.uint16)
    if len(words):
        np.maximum.at(longest, words[starts], np.minimum(counts, np.iinfo(np.uint16).max).astype(np.uint16))
    return longest


def _owners(row_of: Int64, codes: pa.Int32Array, owners: Int64, row_count: int) -> tuple[Int64, Int64]:
    """Return the distinct owners of each row, ascending; `codes` says which name each entry has, null none."""
    known = codes.is_valid().to_numpy(zero_copy_only=False)
    rows = row_of[codes.fill_null(0).to_numpy()] if len(row_of) else np.full(len(codes), -1)
    known &= rows >= 0
    rows, owners = rows[known], owners[known]
    order = np.lexsort((owners, rows))
    rows, owners = rows[order], owners[order]
    if len(rows):
        first = np.ones(len(rows), np.bool_)
        first[1:] = (rows[1:] != rows[:-1]) | (owners[1:] != owners[:-1])
        rows, owners = rows[first], owners[first]
    return ranges(np.bincount(rows, minlength=row_count)), owners


def _narrow(values: Int64) -> Integers:
    """Return numbers as int32 where all fit."""
    return values.astype(np.int32) if values.max(initial=0) <= np.iinfo(np.int32).max else values
