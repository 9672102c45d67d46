"""Words that mean nearly the same: by stem, as far as English endings go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float32]

_SUFFIXES = frozenset(
    "s es ed d ing er ers or ors ion ions ation ations ment ments al ally ly ness ship ships y ies ied ten en "
    "n tes ted tor tors ter ters ting ance ances ence ent ant ants ive ives ress e le able ist ists ism ian "
    "ians ity ical ic ics iage ages age red ring ren rian rians ional ish ese".split()
) | {""}
"""Endings of English words: `written` and `writers` are related because they part after `writ`."""

_STEM = 4
"""Letters of a stem that need no further proof."""

_HALF = 4
"""Letters of the first half of a compound (`home|town`)."""


class Lexicon:
    """A list of words, searched for the relatives of another word.

    Args:
        words: N words, casefolded and distinct.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self._beginning: dict[str, list[int]] = defaultdict(list)
        self._containing: dict[str, list[int]] = defaultdict(list)
        for position, word in enumerate(self.words):
            self._beginning[word[:3]].append(position)
            for cut in _halves(word):
                self._containing[word[cut : cut + 3]].append(position)

    def kin(self, word: str, derived: float) -> Float:
        """Say how each word is related to `word`: (N,) 1 where equal, `derived` where the stem is shared, else 0."""
        starts = [word[:3], *(word[cut : cut + 3] for cut in _halves(word))]
        near = {position for start in starts for position in self._beginning.get(start, ())}
        near.update(self._containing.get(word[:3], ()))
        out = np.zeros(len(self.words), np.float32)
        for position in near:
            if self.words[position] == word:
                out[position] = 1.0
            elif related(word, self.words[position]):
                out[position] = derived
        return out


def related(word: str, other: str) -> bool:
    """Tell whether two words share a stem, as a whole or as the second half of a compound.

    >>> related("written", "writers"), related("screenwriter", "written"), related("start", "star")
    (True, True, False)
    """
    return (
        _same_stem(word, other)
        or any(_same_stem(word[cut:], other) for cut in _halves(word) if len(other) >= _STEM)
        or any(_same_stem(other[cut:], word) for cut in _halves(other) if len(word) >= _STEM)
    )


def _halves(word: str) -> range:
    """Return where the second half of a compound may begin."""
    return range(_HALF, len(word) - _STEM + 1)


def _same_stem(word: str, other: str) -> bool:
    """Tell whether two words differ in English endings alone."""
    same = 0
    for here, there in zip(word, other, strict=False):
        if here != there:
            break
        same += 1
    return any(
        stem >= 3
        and word[stem:] in _SUFFIXES
        and other[stem:] in _SUFFIXES
        and (stem >= _STEM or min(len(word), len(other)) <= stem + 2)
        for stem in (same, same - 1)
    )
