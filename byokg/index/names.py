"""Looking up names: exactly after folding, and approximately."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz, process

from byokg.index.name_match import NameMatch
from byokg.index.normalize import normalize_name

Int64 = npt.NDArray[np.int64]

_PART = 0.4
"""Least ratio of lengths at which a name and a text may resemble each other in part (`Obama`, `Barack Obama`)."""


class NameIndex:
    """Finds positions of names in a list; several positions may share a name.

    Args:
        names: N names; a position in this list is what lookups return.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._spellings = frozenset(names)
        self._rows: dict[str, int] = {}
        rows = np.array([self._rows.setdefault(normalize_name(name), len(self._rows)) for name in names], np.int64)
        self._folded = list(self._rows)
        # The positions of row r are _positions[_bounds[r]] up to _positions[_bounds[r + 1]].
        self._positions = np.argsort(rows, kind="stable")
        self._bounds = np.concatenate(([0], np.bincount(rows, minlength=len(self._rows)).cumsum()))
        self._words: set[str] = set()
        self._longest: dict[str, int] = {}
        for folded in self._folded:
            words = folded.split(" ")
            self._words.update(words)
            self._longest[words[0]] = max(len(words), self._longest.get(words[0], 0))

    def name(self, position: int) -> str:
        """Return the name at a position, as it was given."""
        return self._names[position]

    def spells(self, text: str) -> bool:
        """Tell whether some name is written exactly so."""
        return text in self._spellings

    def has_word(self, word: str) -> bool:
        """Tell whether a folded word occurs in some name."""
        return word in self._words

    def longest_from(self, word: str) -> int:
        """Return the number of words in the longest name that starts with a folded word; 0 when none does."""
        return self._longest.get(word, 0)

    def exact(self, text: str) -> Int64:
        """Return the positions of all names equal to `text` after folding, ascending."""
        folded = normalize_name(text)
        row = self._rows.get(folded) if folded else None
        return self._positions[:0] if row is None else self._at(row)

    def closest(self, text: str, cutoff: float = 0.86) -> NameMatch | None:
        """Return the name that has most letters in common with `text`, in the same order; the first of several.

        Args:
            text: what to look for; empty after folding finds nothing.
            cutoff: lowest score in [0, 1], of rapidfuzz's ratio: 2 · common letters / letters of both.
        """
        found = process.extractOne(normalize_name(text), self._folded, scorer=fuzz.ratio, score_cutoff=100 * cutoff)
        if found is None:
            return None
        position = int(self._at(found[2])[0])
        return NameMatch(position, self._names[position], found[1] / 100)

    def fuzzy(self, text: str, k: int = 3, cutoff: float = 0.86) -> list[NameMatch]:
        """Return the names most like `text`, best first; equal scores in list order.

        Letters are compared first, then words in any order, then parts: names with a part like the text or the
        other way round. The first comparison that finds something decides, since a short name is a part of too much.

        Args:
            text: what to look for; empty after folding finds nothing.
            k: matches to return at most.
            cutoff: lowest score in [0, 1], of rapidfuzz's ratio, token_sort_ratio and WRatio (the scorers of thefuzz).
        """
        folded = normalize_name(text)
        if not folded:
            return []
        found: list[tuple[str, float, int]] = []
        for scorer in (fuzz.ratio, fuzz.token_sort_ratio):
            found = found or process.extract(folded, self._folded, scorer=scorer, limit=k, score_cutoff=100 * cutoff)
        if not found:
            parts = process.extract(folded, self._folded, scorer=fuzz.WRatio, limit=None, score_cutoff=100 * cutoff)
            found = [part for part in parts if _PART <= len(part[0]) / len(folded) <= 1 / _PART]
        matches = chain.from_iterable(
            (NameMatch(int(position), self._names[position], score / 100) for position in self._at(row))
            for _, score, row in found
        )
        return list(islice(matches, k))

    def search(self, texts: Sequence[str], k: int, cutoff: float = 0.86) -> list[list[NameMatch]]:
        """Return what `fuzzy` finds for each of several texts."""
        return [self.fuzzy(text, k, cutoff) for text in texts]

    def _at(self, row: int) -> Int64:
        return self._positions[self._bounds[row] : self._bounds[row + 1]]
