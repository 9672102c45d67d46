"""Names as rows of word numbers: the arrays under a name index, and how they are made.

`split_names` splits a column of names into folded words, millions at a time. In a `NameTable`, a row is one distinct
spelling; rows are ordered by how many letters they have, so names of similar length stand together, also among the
names with one word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Int32, Int64, Integers, UInt64
from byokg.index.vocabulary import (
    Texts,
    Vocabulary,
    group,
    hash_column,
    hash_keys,
    positions,
    ranges,
    sort_hashes,
    upper_halves,
)
from byokg.text.names import ARTICLES, WORD, fold_words

_SPACE = ord(" ")
_BLOCK = 1 << 18
"""Names that are worked on at once."""

_GROUPED = 1 << 23
"""Words in names whose holders are collected at once, unless there are more of one word."""

# What ASCII bytes become: letters small, digits as they are, all others a space. Bytes of other characters stay.
_FOLDED = np.arange(256, dtype=np.uint8)
for _byte in range(128):
    _FOLDED[_byte] = ord(chr(_byte).lower()) if chr(_byte).isalnum() else _SPACE


def split_names(names: pa.LargeStringArray) -> tuple[pa.LargeStringArray, Int64]:
    """Split N names into words as `fold_words` does.

    Returns:
        The words of all names, one name after another, and the number of words in each: (N,).
    """
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
    # A word starts after a character that is no part of a word, or of another name.
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


MASK = (1 << 64) - 1
_MIXING = ((33, 0x9E3779B97F4A7C15), (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
"""Shifts and factors of the finalizer of SplitMix64."""


@dataclass(frozen=True)
class NameArrays:
    """R rows with T words altogether, and their owners, R + F; V words. One file each.

    Ranges: the words of row r are `words[word_bounds[r] : word_bounds[r + 1]]`, and so on.
    """

    letters: npt.NDArray[np.unsignedinteger]
    """(R,) letters of the folded words of each row with a space between two, ascending; uint8 if all are below 255,
    else uint16, whose highest value stands for more."""
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
    hashes: npt.NDArray[np.uint32]
    """(R,) hashes of the sets of words in the names, ascending: the upper halves of sums of `word_hashes`."""
    hash_rows: npt.NDArray[np.int32]
    """(R,) the row behind each entry of `hashes`."""
    owners: Integers
    """(R,) who bears each name; of several the lowest."""
    further_rows: npt.NDArray[np.int32]
    """(F,) the row of each further owner, ascending."""
    further_owners: Integers
    """(F,) who bears these names besides, ascending in each row, none twice."""


Keep = Callable[[str, Any], Any]


def _held(_name: str, array: Any) -> Any:
    """Keep an array in memory."""
    return array


@dataclass(frozen=True)
class NameTable:
    """R rows, their spellings, and the vocabulary their words are numbered in."""

    names: Texts
    """Names as they were given, those of all rows among them."""
    places: Integers | None
    """(R,) position among the names of the spelling of each row; None if names and rows are the same."""
    vocabulary: Vocabulary
    arrays: NameArrays

    @classmethod
    def build(cls, names: Texts, owners: Integers | None = None, keep: Keep = _held) -> NameTable:
        """Make a table of E names and their owners; blank names and nulls are left out.

        Beside the names it takes about 45 bytes for each, and as much for arrays that `keep` does not move elsewhere.

        Args:
            names: (E,) names; the same may come several times.
            owners: (E,) owner of each, 0 or greater; the same may come several times. None numbers the names in
                their order.
            keep: called with the name of each array of `NameArrays`, and the array; its return value is used from then
                on, such as the same array mapped from a file.
        """
        spelling, first = _distinct(names)
        vocabulary, words, counts = _words(names, first)
        rows, letters = _by_length(vocabulary, words, counts)
        row_of = np.full(len(counts) + 1, -1, np.int32)  # nulls, whose number is -1, look at the last place
        row_of[rows] = np.arange(len(rows), dtype=np.int32)
        bearing = row_of[spelling]  # the row of each entry that has a name; -1 if that is blank
        places = first[rows]
        del spelling, first, row_of
        owner, further_rows, further = _owners(bearing, places, owners)
        del bearing
        owner, further = keep("owners", owner), keep("further_owners", further)
        further_rows = keep("further_rows", further_rows)
        places = owner if owners is None else places
        widest = np.uint8 if letters.max(initial=0) < np.iinfo(np.uint8).max else np.uint16
        letters = keep("letters", np.minimum(letters[rows], np.iinfo(widest).max).astype(widest))
        word_bounds, words = _rearranged(words, counts, rows)
        del rows, counts
        word_bounds, words = keep("word_bounds", word_bounds), keep("words", words)
        longest = keep("longest", _longest(words, word_bounds, vocabulary))
        holder_bounds, holders, hashes = _holders(words, word_bounds, len(vocabulary))
        holder_bounds, holders = keep("holder_bounds", holder_bounds), keep("holders", holders)
        upper, order = sort_hashes(hashes)
        del hashes
        upper, order = keep("hashes", upper), keep("hash_rows", order)
        arrays = NameArrays(
            letters, word_bounds, words, holder_bounds, holders, longest, upper, order, owner, further_rows, further
        )
        return cls(names, places, vocabulary, arrays)

    def __len__(self) -> int:
        return len(self.arrays.owners)

    def spelled(self, rows: Integers) -> list[str]:
        """Return the names in some rows as they were given."""
        spelled: list[str] = self.names.take(positions(rows if self.places is None else self.places[rows])).to_pylist()
        return spelled

    def spellings(self) -> Texts:
        """Return the names in all rows: (R,)."""
        return self.names if self.places is None else self.names.take(positions(self.places))

    def bearers(self, rows: Integers) -> tuple[Int64, Int64]:
        """Return the owners of some rows, and for each of them the position of its row in `rows`."""
        first, own = self.arrays.owners[rows].astype(np.int64), np.arange(len(rows))
        if not len(self.arrays.further_rows):
            return first, own
        sought = rows.astype(np.int32)  # as what is searched, or numpy would convert whole columns
        starts = self.arrays.further_rows.searchsorted(sought)
        counts = self.arrays.further_rows.searchsorted(sought, "right") - starts
        more = self.arrays.further_owners[members(starts, counts)].astype(np.int64)
        return np.concatenate((first, more)), np.concatenate((own, np.repeat(own, counts)))

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
        known, hashes = self.arrays.hashes, np.unique(hashes)
        if not len(known):
            return np.empty(0, np.int64)
        sought = upper_halves(hashes)
        starts = known.searchsorted(sought)
        here = np.flatnonzero(known[np.minimum(starts, len(known) - 1)] == sought)
        if not len(here):
            return np.empty(0, np.int64)
        starts = starts[here]
        counts = known.searchsorted(sought[here], "right") - starts
        rows: Int64 = self.arrays.hash_rows[members(starts, counts)].astype(np.int64)
        whole: Int64 = rows[self._hashes(rows) == np.repeat(hashes[here], counts)]
        return whole

    def _hashes(self, rows: Int64) -> UInt64:
        """Return the whole hashes of the sets of words in some rows."""
        starts = self.arrays.word_bounds[rows].astype(np.int64)
        counts = self.arrays.word_bounds[rows + 1] - starts
        key = np.repeat(np.arange(len(rows)), counts) << 32 | self.arrays.words[members(starts, counts)]
        key = np.unique(key)
        hashes = np.zeros(len(rows), np.uint64)
        np.add.at(hashes, key >> 32, word_hashes(key & 0xFFFFFFFF))
        return hashes

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


def members(starts: Int64, counts: Int64) -> Int64:
    """Return the positions in each of several ranges, one after the other: (sum of counts,)."""
    before = counts.cumsum() - counts
    return np.arange(int(counts.sum()), dtype=np.int64) + np.repeat(starts - before, counts)


def _distinct(names: Texts) -> tuple[Int32, Int32]:
    """Number the different names in the order in which they come.

    Returns:
        (E,) the number of each name, -1 for null, and where each stands first. Names whose hashes begin alike are
        compared.
    """
    keys = hash_keys(hash_column(names))
    shared = np.zeros(len(names), np.bool_)
    for start in range(0, len(keys) - 1, _BLOCK):
        some = keys[start : start + _BLOCK + 1]
        same = np.flatnonzero(some[1:] >> np.uint64(32) == some[:-1] >> np.uint64(32))
        shared[some[same] & np.uint64(0xFFFFFFFF)] = shared[some[same + 1] & np.uint64(0xFFFFFFFF)] = True
    del keys
    leader = np.arange(len(names), dtype=np.int32)
    repeated = np.flatnonzero(shared).astype(np.int32)
    coded = names.take(positions(repeated)).dictionary_encode()
    codes = coded.indices.fill_null(-1).to_numpy()
    known = codes >= 0
    first = np.empty(len(coded.dictionary), np.int32)
    first[codes[known][::-1]] = repeated[known][::-1]  # of repeated assignments the last one stays
    leader[repeated[known]] = first[codes[known]]
    if names.null_count:
        leader[names.is_null().to_numpy(zero_copy_only=False)] = -1
    leads = leader == np.arange(len(names))
    number = leads.cumsum(dtype=np.int32) - np.int32(1)
    return np.where(leader >= 0, number[leader], np.int32(-1)), np.flatnonzero(leads).astype(np.int32)


def _owners(bearing: Int32, places: Int32, owners: Integers | None) -> tuple[Integers, Int32, Integers]:
    """Return the lowest owner of each row, and rows and numbers of all others, ascending and none twice.

    Args:
        bearing: (E,) the row of each entry, -1 for none.
        places: (R,) the first entry of each row.
        owners: (E,) who bears each; None numbers the entries.
    """
    if owners is None:
        further = np.ones(len(bearing), np.bool_)
        further[places] = False
        further &= bearing >= 0
        others = np.flatnonzero(further).astype(np.int32)
        order = np.argsort(bearing[others], kind="stable")
        return places, bearing[others[order]], others[order]
    entries = np.flatnonzero(bearing >= 0)
    bounds, owned = group(bearing[entries], owners[entries], len(places))
    rows = np.repeat(np.arange(len(places), dtype=np.int32), np.diff(bounds))
    further = np.ones(len(owned), np.bool_)
    further[bounds[:-1]] = False
    owned = _narrow(owned)
    return owned[bounds[:-1]], rows[further], owned[further]


def _words(names: Texts, first: Int32) -> tuple[Vocabulary, Int32, Int32]:
    """Split S different names; return their words in the order of bytes, (T,) the words of all, and (S,) how many."""
    counts = np.zeros(len(first), np.int32)
    coded = [pa.array([], pa.large_string()).dictionary_encode()]
    for start in range(0, len(first), _BLOCK):
        texts, some = split_names(names.take(positions(first[start : start + _BLOCK])).cast(pa.large_string()))
        counts[start : start + _BLOCK] = some
        coded.append(texts.dictionary_encode())
    chunks = pa.chunked_array(coded).unify_dictionaries().chunks
    del coded
    spelt = chunks[0].dictionary
    order = pc.sort_indices(spelt).to_numpy()
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    words = np.empty(sum(map(len, chunks)), np.int32)
    at = 0
    for chunk in chunks:
        words[at : at + len(chunk)] = number[chunk.indices.to_numpy()]
        at += len(chunk)
    return Vocabulary.build(spelt.take(pa.array(order))), words, counts


def _by_length(vocabulary: Vocabulary, words: Int32, counts: Int32) -> tuple[Int32, Int32]:
    """Return the names that have words, those of fewer letters first, and (S,) the letters of each."""
    sizes = pc.utf8_length(vocabulary.words).to_numpy().astype(np.int64) if len(vocabulary) else np.zeros(0, np.int64)
    letters = counts - 1
    at = 0
    for start in range(0, len(counts), _BLOCK):
        some = counts[start : start + _BLOCK]
        total = int(some.sum())
        before = ranges(sizes[words[at : at + total]])
        bounds = ranges(some)
        letters[start : start + _BLOCK] += (before[bounds[1:]] - before[bounds[:-1]]).astype(np.int32)
        at += total
    rows = np.flatnonzero(counts).astype(np.int32)  # blank names have no word
    lengths = letters[rows]
    narrow = lengths.astype(np.uint16) if lengths.max(initial=0) < 1 << 16 else lengths  # which sorts quicker
    return rows[np.argsort(narrow, kind="stable")], letters


def _rearranged(words: Int32, counts: Int32, rows: Int32) -> tuple[Integers, Int32]:
    """Put ranges of words into another order; return their new bounds, and the words."""
    starts = _narrow(ranges(counts)[:-1])
    bounds = _narrow(ranges(counts[rows]))
    found = np.empty(int(bounds[-1]), np.int32)
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        taken = words[members(starts[some].astype(np.int64), counts[some].astype(np.int64))]
        found[bounds[start] : bounds[start] + len(taken)] = taken
    return bounds, found


def _longest(words: Int32, bounds: Integers, vocabulary: Vocabulary) -> npt.NDArray[np.uint16]:
    """Return the words of the longest name that starts with each word, which may be behind an article."""
    is_article = np.zeros(len(vocabulary) + 1, np.bool_)
    numbers = vocabulary.find(sorted(ARTICLES))
    is_article[numbers[numbers >= 0]] = True
    longest = np.zeros(len(vocabulary), np.uint16)
    for first in range(0, len(bounds) - 1, _BLOCK):
        starts, stops = bounds[first:-1][:_BLOCK], bounds[first + 1 :][:_BLOCK]
        counts = stops - starts
        # As `leads_with_article` says of one name.
        second = is_article[words[np.minimum(starts + 1, len(words) - 1)]]
        skip = is_article[words[starts]] & (counts > 1) & ~(second & (counts > 2))
        behind = np.minimum(counts - skip, np.iinfo(np.uint16).max).astype(np.uint16)
        np.maximum.at(longest, words[starts + skip], behind)
    return longest


def _holders(words: Int32, bounds: Integers, word_count: int) -> tuple[Integers, Int32, UInt64]:
    """Return the rows that hold each word, ascending and none twice, behind their bounds; and the hash of each row."""
    row_of_word = np.repeat(np.arange(len(bounds) - 1, dtype=np.int32), np.diff(bounds))
    hashes = np.zeros(len(bounds) - 1, np.uint64)
    counts, found, filled = np.zeros(word_count, np.int64), np.empty(len(words), np.int32), 0
    ends = np.bincount(words, minlength=word_count).cumsum()
    low = 0
    while low < word_count:
        done = int(ends[low - 1]) if low else 0
        high = max(int(np.searchsorted(ends, done + _GROUPED, "right")), low + 1)
        # All at once, usually: only what is too much is looked at in parts.
        here = slice(None) if high - low == word_count else np.flatnonzero((words >= low) & (words < high))
        key = words[here].astype(np.int64) << 32 | row_of_word[here]
        key.sort()
        key = key[np.concatenate(([True], key[1:] != key[:-1]))]
        word, row = key >> 32, key & 0xFFFFFFFF
        counts[low:high] = np.bincount(word - low, minlength=high - low)
        np.add.at(hashes, row, word_hashes(word))
        found[filled : filled + len(row)] = row
        low, filled = high, filled + len(row)
    return _narrow(ranges(counts)), found[:filled], hashes


def _narrow(values: Integers) -> Integers:
    """Return numbers as int32 if all fit."""
    return values.astype(np.int32) if values.max(initial=0) <= np.iinfo(np.int32).max else values
