"""Candidate generation for fuzzy matching: the few of millions of names worth a letter-by-letter comparison.

Each word of the text expands to itself and similar words of the vocabulary (`Vocabulary.alike`). Names are weighed by
the letters that they share with the text through such words: first over the lists of names with the rarest of them,
then exactly for the candidates found, with all words. That weight bounds the parts of the WRatio scorer from above but
for letters that unrelated words share by chance:

- whole names: 2 · common / letters of both
- words as sets: 0.95 · the same, over the shared words and either side
- parts, if one side is 1.5 times as long: 0.9 · common / letters of the shorter, and 0.855 for any shared word

The short cuts rest on that: names made of few of the text's words are looked up by their hash, since their lists would
be long and their words few; and of the names that share a word and are of very different length, which all score the
same, only some are taken.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float64, Int64
from byokg.index.name_table import MASK, NameArrays, NameTable, members, word_hashes
from byokg.index.vocabulary import LONGEST_WORD, Vocabulary
from byokg.text.names import ARTICLES, TITLES

SET, PART, FAR_PART = 0.95, 0.9, 0.6
"""What WRatio takes off for words as sets, for parts, and for parts of names more than eight times as long."""

FAR, VERY_FAR = 1.5, 8.0
"""Ratios of lengths from which WRatio compares parts."""

_HALF, _LOW = 32, (1 << 32) - 1

_MOST_WORDS = 24
"""Words of a text that are looked at: the rarest, should there be more."""
_SURELY_LISTED = 2
"""Of words like one of the text, how many are listed however many names they have."""
_READ, _READ_SHARE = 30_000, 32
"""Entries of lists that are read for one text at most, besides one for so many rows; of longer lists, those of the
names that are nearest in length."""
_LOOK_UP = 16
"""How many entries of a list are read in the time in which a row is looked up in it."""
_ADDED_UP = 1 << 22
"""Names up to which letters are added up in an array with a place for each."""
_LETTER_BITS, _NUMBER_BITS = 10, 6
"""Bits that hold the letters of a word, and which word of a text it is."""
_SET_WORDS = 8
"""Words of a text whose sets, and whose parts, are looked up."""
_FAR_NAMES = 4
"""Names with one word of the text that are taken of each: much shorter ones and much longer ones."""
_SHORT = 5
"""Letters up to which a word is looked up with two letters swapped."""
_TORN = 6
"""Words, about, that the text has if its spaces stand elsewhere; they are looked for beside those it has."""
_SMALL = 4096
"""Words of a vocabulary in which names that differ in one word are many."""


@dataclass(frozen=True)
class Effort:
    """How far to look."""

    listed: int
    """Similar words whose names are listed, at most; the others count only in names that come up."""
    likeness: float
    """Least likeness of a word whose names are listed."""
    covered: float
    """Share of a text's letters from which no further lists are read: a name without the words so far has lost."""
    needed: float
    """Share of the letters in the lists read that a name must have."""
    weighed: int
    """Names all of whose words are looked at, about."""
    given: int
    """Names of like length that are proposed, at most; of others, half as many."""
    everywhere: bool
    """Search effort: whether words of the vocabulary may be misspelt, too, if the text has a word that is in no
    name."""


USUAL = Effort(listed=6, likeness=0.6, covered=0.55, needed=0.5, weighed=400, given=50, everywhere=False)
WIDE = Effort(listed=64, likeness=0.5, covered=1.0, needed=0.2, weighed=6_000, given=500, everywhere=True)
"""For texts that no name resembles well."""


@dataclass(frozen=True)
class _Guesses:
    """Vocabulary words for one word of a text, the most similar first."""

    words: Int64
    """(S,) word numbers."""
    common: Int64
    """(S,) letters in common."""
    listed: int
    """How many of them are looked up in the lists of names; the others count in names that come up."""

    @property
    def most(self) -> int:
        """Return the letters that are covered at best."""
        return int(self.common.max(initial=0))


class _Lists(NamedTuple):
    """Lists of names for one word of the text, the most similar vocabulary word first."""

    starts: Int64
    """(L,) where each begins among `holders`."""
    counts: Int64
    """(L,) rows in each; an empty one may be among them."""
    common: npt.NDArray[np.uint16]
    """(L,) letters that each covers."""
    most: int
    """Letters that are covered at best."""

    @property
    def size(self) -> int:
        """Return how many rows there are in all."""
        return int(self.counts.sum())


class NameCandidates:
    """Proposes rows of a table; threads may share it."""

    def __init__(self, table: NameTable) -> None:
        self._table = table
        # Sums over all rows, zero between uses; each thread that is at it takes one.
        self._sums: deque[npt.NDArray[np.uint16]] = deque()

    def like(self, words: Sequence[str], text_length: int = 0, effort: Effort = USUAL) -> tuple[Int64, Float64]:
        """Return the rows that may score best against a text, most promising first.

        Args:
            words: the folded words of the text.
            text_length: of the text as compared, if longer than the words and the spaces between them.
            effort: breadth of the search.

        Returns:
            Rows, and about the highest score that each may have, in [0, 1].
        """
        table = self._table
        length = sum(map(len, words)) + len(words) - 1
        slots = list(dict.fromkeys(words))
        numbers = _Numbers(table.vocabulary, slots)
        if len(slots) > _MOST_WORDS:
            slots = _rarest(table, slots, numbers)
        guesses = self._guesses(slots, numbers, effort)
        known = np.array([number for slot in slots if (number := numbers.of(slot)) >= 0], np.int64)
        inside = self._inside(words, numbers)
        far = self._far(known, max(length, text_length))
        # With more guesses than words, no share of the text's letters is covered for certain.
        covered = math.inf if len(guesses) > len(slots) else effort.covered
        rows = [self._listed(guesses, length, replace(effort, covered=covered)), inside, far]
        found = _distinct(np.concatenate(rows))
        weights = self._weights(slots, numbers, guesses)
        bounds = self._bounds(found, weights, length, sum(map(len, slots)) + len(slots) - 1)
        # Parts for certain, if the order of words is right: ahead of those that may be parts.
        parts = found.searchsorted(inside)
        bounds[parts] = np.maximum(bounds[parts], PART + 0.02)
        # Of long names too much is expected: they must not crowd out the others.
        order = np.argsort(-bounds, kind="stable")
        close = _is_close(table.arrays.letters[found[order]].astype(np.int64), length)
        order = np.concatenate((order[close][: effort.given], order[~close][: effort.given // 2]))
        order = order[np.argsort(-bounds[order], kind="stable")]
        return found[order], bounds[order]

    def around(self, word: str, words: Sequence[str], share: float) -> Int64:
        """Return the rows that contain a match of one word, and have most letters from it and other words.

        Args:
            word: a folded word; the name must contain it or a similar one.
            words: folded words of which the rest of a name may consist, or of similar ones.
            share: of a name's letters that must come from these words, articles or titles, in [0, 1].
        """
        table = self._table
        slots = list(dict.fromkeys([word, *words]))
        numbers = _Numbers(table.vocabulary, slots)
        guesses = [self._guess(slot, numbers.of(slot), {}, WIDE) for slot in slots]
        weights = self._weights(slots, numbers, guesses)
        _count_left_out(table.vocabulary, weights)
        rows = np.concatenate([np.empty(0, np.int32), *map(table.holders, guesses[0].words.tolist())])
        rows = _distinct(rows[:_READ]).astype(np.int64)
        common, _ = self._common(rows, weights)
        kept: Int64 = rows[common >= share * table.arrays.letters[rows]]
        return kept

    # Vocabulary words for the words of a text

    def _guesses(self, slots: Sequence[str], numbers: _Numbers, effort: Effort) -> list[_Guesses]:
        """Return the vocabulary words for each word of a text, and its words after a split or join at spaces."""
        extra: list[dict[int, int]] = [{} for _ in slots]
        torn: dict[str, None] = {}
        for at, slot in enumerate(slots):
            splits = _pieces(slot) if numbers.of(slot) < 0 else []
            if at:
                joined = slots[at - 1] + slot
                if numbers.of(joined) >= 0:
                    extra[at][numbers.of(joined)] = len(joined)
                splits += [(joined[:cut], joined[cut:]) for cut in _cuts(slots[at - 1], slot)]
            for first, second in splits:
                if numbers.of(first) >= 0 and numbers.of(second) >= 0 and len(torn) < _TORN:
                    torn |= {first: None, second: None}
            if numbers.of(slot) < 0:
                for turned in _swap_letters(slot):
                    if numbers.of(turned) >= 0:
                        extra[at][numbers.of(turned)] = len(turned) - 1
        # Where some word is strange, the names of the others alone are listed; where none is, any may be wrong.
        # Initials are not strange.
        strange = not effort.everywhere and any(numbers.of(slot) < 0 and len(slot) > 1 for slot in slots)
        guesses = [
            self._guess(slot, number, more, effort if number < 0 or not strange else None)
            for slot, number, more in zip(slots, map(numbers.of, slots), extra, strict=True)
        ]
        return guesses + [self._guess(piece, numbers.of(piece), {}, None) for piece in torn if piece not in slots]

    def _guess(self, slot: str, number: int, extra: dict[int, int], effort: Effort | None) -> _Guesses:
        sure = {number: len(slot)} | extra if number >= 0 else extra
        words, common = (np.fromiter(values, np.int64, len(sure)) for values in (sure, sure.values()))
        if len(slot) == 1 or (effort is None and len(self._table.vocabulary) > _SMALL):
            return _Guesses(words, common, len(sure))
        alike = self._table.vocabulary.alike(slot)
        listed = min(effort.listed, int(np.count_nonzero(alike.likeness >= effort.likeness))) if effort else 0
        itself = int(number >= 0 and len(alike.words) > 0 and alike.words[0] == number)
        return _Guesses(
            np.concatenate((words, alike.words[itself:])),
            np.concatenate((common, alike.common[itself:])),
            len(sure) + max(listed - itself, 0),
        )

    def _weights(self, slots: Sequence[str], numbers: _Numbers, guesses: Sequence[_Guesses]) -> Int64:
        """Return for each word of the vocabulary the letters in common with the text, and 2³² · those if it is in it.

        A space is counted with each word.
        """
        vocabulary = self._table.vocabulary
        weights = np.zeros(len(vocabulary), np.int64)
        initials = [vocabulary.containing(slot) for slot in slots if len(slot) == 1]
        for words in initials:
            weights[words] += 1
        if initials:
            weights += weights > 0  # the space
        # Words may have an ending in the name, and the text may end inside one.
        for slot, (start, stop) in zip(slots, vocabulary.starting(slots), strict=True):
            weights[start:stop] = np.maximum(weights[start:stop], len(slot) + 1)
        for guess in guesses:
            weights[guess.words] = np.maximum(weights[guess.words], guess.common + np.int64(1))
        for slot in slots:
            if (number := numbers.of(slot)) >= 0:
                weights[number] = (1 << _HALF | 1) * (len(slot) + 1)
        return weights

    # Rows

    def _listed(self, guesses: Sequence[_Guesses], length: int, effort: Effort) -> Int64:
        """Return the rows that the lists of the rarest words agree on."""
        left, covered = _READ + len(self._table) // _READ_SHARE, 0
        bounds = self._table.arrays.holder_bounds
        words = np.concatenate([guess.words[: guess.listed] for guess in guesses])
        starts = bounds[words].astype(np.int64)
        counts = bounds[words + 1] - starts
        before = np.concatenate((np.zeros(1, np.int64), counts.cumsum()))
        ends = list(accumulate((guess.listed for guess in guesses), initial=0))
        sizes = np.diff(before[ends]).tolist()
        lists: list[_Lists] = []
        for at in sorted(range(len(guesses)), key=sizes.__getitem__):
            if covered >= effort.covered * length or left <= 0:
                break
            start, stop = ends[at : at + 2]
            if sizes[at] > left // 3:  # the best few whatever they cost, and what else fits
                within = int(np.count_nonzero(before[start + 1 : stop + 1] - before[start] <= left // 3))
                stop = start + max(within, min(_SURELY_LISTED, stop - start))
            common = guesses[at].common[: stop - start].astype(np.uint16)
            cut = _cut(self._table.arrays, starts[start:stop], counts[start:stop], length, left)
            lists.append(_Lists(*cut, common, guesses[at].most))
            left -= lists[-1].size
            covered += guesses[at].most
        needed = max(1, int(effort.needed * min(covered, length)))
        # Names in the last lists alone share too few letters: these lists are not read to look up a few rows in them.
        read, rest = len(lists), 0
        while read > 1 and rest + lists[read - 1].most < needed:
            size = sum(each.size for each in lists[: read - 1])
            if size * len(lists[read - 1].starts) * _LOOK_UP > lists[read - 1].size:
                break
            read -= 1
            rest += lists[read].most
        listed, values = self._summed(lists[:read])
        kept = values >= needed - rest
        listed, values = listed[kept], values[kept].astype(np.int64)
        for each in lists[read:]:
            values += _looked_up(self._table.arrays.holders, listed, each)
        if rest:
            kept = values >= needed
            listed, values = listed[kept], values[kept]
        if len(listed) > effort.weighed:
            # The words not read may be in all of them. What stands in several lists is here several times.
            letters = self._table.arrays.letters[listed].astype(np.float32)
            common = np.minimum(np.minimum(values + max(length - covered, 0), letters), length).astype(np.float32)
            as_set = np.where(letters < FAR * length, SET * 2, PART * 2) * common / (common + length)
            promise = np.where(letters < length, 0, as_set)
            np.maximum(promise, 2 * common / (letters + length), out=promise)
            edge = np.partition(promise, -effort.weighed)[-effort.weighed]
            listed = np.concatenate((listed[promise > edge], listed[promise == edge]))[: 4 * effort.weighed]
        return listed.astype(np.int64)

    def _summed(self, lists: Sequence[_Lists]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint16]]:
        """Return the rows in some lists, some of them several times, and the letters that the lists cover of each."""
        if len(self._table) > _ADDED_UP:
            return self._sorted_sums(lists)
        sums, touched = self._take(), [np.empty(0, np.int32)]
        for each in lists:
            rows, letters = self._read_lists(each)
            # A row with several words like one of the text counts once, with the best: it comes last.
            sums[rows] = sums.take(rows) + letters
            touched.append(rows)
        listed = np.concatenate(touched)
        values = sums.take(listed)
        sums[listed] = 0
        self._sums.append(sums)
        return listed, values

    def _sorted_sums(self, lists: Sequence[_Lists]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint16]]:
        """Do the same without an array as long as there are rows; each row comes once."""
        parts = [np.empty(0, np.int64)]
        for number, each in enumerate(lists):
            rows, letters = self._read_lists(each)
            key = rows.astype(np.int64)
            key <<= _NUMBER_BITS
            key |= number
            key <<= _LETTER_BITS
            key |= letters
            parts.append(key)
        key = np.concatenate(parts)
        key.sort()
        # Of a row's words like one of the text, the one of most letters counts: it comes last.
        key = key[np.append(_firsts(key >> _LETTER_BITS)[1:], np.ones(min(len(key), 1), np.bool_))]
        rows = key >> (_NUMBER_BITS + _LETTER_BITS)
        first = np.flatnonzero(_firsts(rows))
        values = np.add.reduceat(key & ((1 << _LETTER_BITS) - 1), first) if len(key) else key
        return rows[first].astype(np.int32), values.astype(np.uint16)

    def _read_lists(self, lists: _Lists) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint16] | np.uint16]:
        """Return the rows in some lists, the first list last, and how many letters each covers."""
        starts, counts, holders = lists.starts[::-1], lists.counts[::-1], self._table.arrays.holders
        if len(starts) == 1:
            return holders[int(starts[0]) : int(starts[0] + counts[0])], lists.common[0]
        return holders[members(starts, counts)], np.repeat(lists.common[::-1], counts)

    def _take(self) -> npt.NDArray[np.uint16]:
        try:
            return self._sums.pop()
        except IndexError:
            return np.zeros(len(self._table), np.uint16)

    def _inside(self, words: Sequence[str], numbers: _Numbers) -> Int64:
        """Return the rows that consist of the text's words, in any order, or of a part of it that may end in words."""
        words = words[:_SET_WORDS]
        known = [word for word in dict.fromkeys(words) if numbers.of(word) >= 0]
        parts = [
            [[piece for at in range(len(word)) if numbers.of(piece := word[at:]) >= 0] for word in words],
            [[piece for at in range(len(word)) if numbers.of(piece := word[: at + 1]) >= 0] for word in words],
        ]
        texts = list(dict.fromkeys(chain(known, *parts[0], *parts[1])))
        if not texts:
            return np.empty(0, np.int64)
        values = word_hashes(np.array([numbers.of(text) for text in texts]))
        sets = _subsets(len(known)) @ values[: len(known)]
        hashes = dict(zip(texts, values.tolist(), strict=True))
        pieces = [hashes[text] for text in texts[len(known) :]]
        for first, tails in enumerate(parts[0]):
            inner = 0
            for last in range(first + 1, len(words)):
                for tail in tails:
                    pieces += [hashes[tail] + inner + hashes[head] for head in parts[1][last] if head != tail]
                if words[last] not in hashes:
                    break
                inner += hashes[words[last]]
        return self._table.rows_of(np.append(sets, np.array([piece & MASK for piece in pieces], np.uint64)))

    def _far(self, known: Int64, length: int) -> Int64:
        """Return some rows with each word of the text that are much shorter or longer than it."""
        letters = self._table.arrays.letters
        limits = np.ceil(np.array([length / VERY_FAR, length / FAR, length * FAR, length * VERY_FAR]))
        # The types agree, or numpy would convert whole columns.
        bounds = letters.searchsorted(np.minimum(limits, np.iinfo(letters.dtype).max).astype(letters.dtype))
        bounds = bounds.astype(np.int32)
        found = [np.empty(0, np.int32)]
        for word in known.tolist():
            rows = self._table.holders(word)
            least, short, long, most = rows.searchsorted(bounds).tolist()
            found.append(rows[max(least, short - _FAR_NAMES) : short])
            found.append(rows[long : min(most, long + _FAR_NAMES)])
        return np.concatenate(found).astype(np.int64)

    def _common(self, rows: Int64, weights: Int64) -> tuple[Int64, Int64]:
        """Return the letters of each row that are in common with a text, and those in shared words, with spaces."""
        arrays = self._table.arrays
        if not len(rows):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        starts = arrays.word_bounds[rows].astype(np.int64)
        counts = arrays.word_bounds[rows + 1] - starts
        found = weights[arrays.words[members(starts, counts)]]
        sums = np.add.reduceat(found, counts.cumsum() - counts)
        return np.maximum((sums & _LOW) - 1, 0), np.maximum((sums >> _HALF) - 1, 0)

    def _bounds(self, rows: Int64, weights: Int64, length: int, set_length: int) -> Float64:
        """Return about the highest score that each row may have, in [0, 1], and a little for the letters in common."""
        common, shared = self._common(rows, weights)
        letters = self._table.arrays.letters[rows].astype(np.int64)
        shorter, longer = np.minimum(letters, length), np.maximum(letters, length)
        common = np.minimum(common, shorter)
        whole = 2 * common / (letters + length)
        as_set = SET * np.minimum(2 * shared / (shared + np.minimum(letters, set_length)), 1.0)
        # Words that are merely alike lie apart in most long names; those that are the same count twice.
        covered = (common + np.minimum(shared, shorter)) / (2 * shorter)
        part = np.maximum(PART * covered, np.where(shared > 0, PART * SET, 0.0))
        part = np.where(longer > VERY_FAR * shorter, part * FAR_PART / PART, part) + covered / 100
        return np.where(_is_close(letters, length), np.maximum(whole, as_set) + whole / 100, part)


_LEFT_OUT = sorted(ARTICLES | TITLES)


def _count_left_out(vocabulary: Vocabulary, weights: Int64) -> None:
    """Count the letters of articles and titles as found."""
    for word, number in zip(_LEFT_OUT, vocabulary.find(_LEFT_OUT).tolist(), strict=True):
        if number >= 0:
            weights[number] = max(weights[number], len(word) + 1)


def _rarest(table: NameTable, slots: Sequence[str], numbers: _Numbers) -> list[str]:
    """Return the words of a long text that fewest names hold."""
    found = np.array([numbers.of(slot) for slot in slots])
    frequency = np.where(found < 0, 0, table.frequency(np.maximum(found, 0)))
    return [slots[at] for at in np.sort(np.argsort(frequency, kind="stable")[:_MOST_WORDS]).tolist()]


def _cut(arrays: NameArrays, starts: Int64, counts: Int64, length: int, most: int) -> tuple[Int64, Int64]:
    """Return where lists start and how long they are; of longer ones than `most`, the rows nearest to a length."""
    starts, counts = starts.copy(), counts.copy()
    for at in np.flatnonzero(counts > most).tolist():
        # The types agree, or numpy would convert whole columns.
        letters = arrays.letters.dtype.type(min(length, np.iinfo(arrays.letters.dtype).max))
        middle = np.int32(arrays.letters.searchsorted(letters, "right"))
        rows = arrays.holders[int(starts[at]) : int(starts[at] + counts[at])]
        first = int(rows.searchsorted(middle)) - most // 2
        starts[at] += min(max(first, 0), len(rows) - most)
        counts[at] = most
    return starts, counts


def _looked_up(holders: npt.NDArray[np.int32], rows: npt.NDArray[np.int32], lists: _Lists) -> Int64:
    """Return the letters that some lists cover of each row."""
    letters = np.zeros(len(rows), np.int64)
    for start, count, common in zip(*(column[::-1].tolist() for column in lists[:3]), strict=True):
        held = holders[start : start + count]
        letters[held.take(held.searchsorted(rows), mode="clip") == rows] = common
    return letters


def _is_close(letters: Int64, length: int) -> npt.NDArray[np.bool_]:
    """Return a mask of names of similar length, which are compared as wholes."""
    close: npt.NDArray[np.bool_] = np.maximum(letters, length) < FAR * np.minimum(letters, length)
    return close


def _cuts(first: str, second: str) -> tuple[int, ...]:
    """Return the possible places of the space between two words, from the start of the first."""
    return tuple(cut for cut in (len(first) - 1, len(first) + 1) if 0 < cut < len(first) + len(second))


def _swap_letters(word: str) -> list[str]:
    """Return a short word with two neighbouring letters swapped, which leaves few of its bigrams."""
    if len(word) > _SHORT:
        return []
    return [word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)]


class _Numbers:
    """Word numbers of the words of a text, of their beginnings and ends, and of each two that follow each other."""

    def __init__(self, vocabulary: Vocabulary, slots: Sequence[str]) -> None:
        texts: dict[str, None] = dict.fromkeys(slots)
        for slot in slots[:_MOST_WORDS]:
            for at in range(1, min(len(slot), LONGEST_WORD)):
                texts[slot[:at]] = texts[slot[at:]] = None
        for first, second in pairwise(slots):
            joined = first + second
            texts[joined] = None
            for cut in _cuts(first, second):
                texts[joined[:cut]] = texts[joined[cut:]] = None
        texts |= dict.fromkeys(chain.from_iterable(map(_swap_letters, slots)))
        self._numbers: dict[str, int] = dict(zip(texts, vocabulary.find(list(texts)).tolist(), strict=True))

    def of(self, text: str) -> int:
        """Return the number of a word, -1 for a text that is none."""
        return self._numbers.get(text, -1)


def _pieces(word: str) -> list[tuple[str, str]]:
    """Return the ways to see two words in one: the space left out, or another letter written for it."""
    return [(word[:at], word[at + gap :]) for at in range(1, len(word)) for gap in (0, 1) if at + gap < len(word)]


def _distinct(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers ascending, each once; quicker than `np.unique` for some thousands."""
    rows = np.sort(rows)
    return rows[_firsts(rows)]


def _firsts(ascending: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return a mask of the numbers that are the first of their kind."""
    first = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    return first


@lru_cache
def _subsets(count: int) -> npt.NDArray[np.uint64]:
    """Return which of some things are in each of their subsets but the empty one: (2 ** count - 1, count)."""
    numbers = np.arange(1, 1 << count, dtype=np.uint64)
    return numbers[:, None] >> np.arange(count, dtype=np.uint64) & np.uint64(1)
