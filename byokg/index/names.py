"""Looking up names: exactly after folding, and approximately."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz, process

from byokg.index.normalize import normalize_name

Int64 = npt.NDArray[np.int64]

_NONE: Int64 = np.empty(0, np.int64)


@dataclass(frozen=True)
class NameMatch:
    """A name that resembles what was asked for."""

    position: int
    """Where the name stands in the list the index was built from."""
    name: str
    score: float
    """In [0, 1]; 1 when equal after folding."""


class NameIndex:
    """Finds positions of names in a list; several positions may share a name.

    Args:
        names: N names; a position in this list is what lookups return.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        positions: dict[str, list[int]] = defaultdict(list)
        for position, name in enumerate(names):
            folded = normalize_name(name)
            if folded:
                positions[folded].append(position)
        self._positions = {folded: np.array(found, np.int64) for folded, found in positions.items()}
        self._folded = list(self._positions)
        self.longest = max((folded.count(" ") + 1 for folded in self._folded), default=0)
        """Words in the longest name."""

    def name(self, position: int) -> str:
        """Return the name at a position, as it was given."""
        return self._names[position]

    def exact(self, text: str) -> Int64:
        """Return the positions of all names equal to `text` after folding, ascending."""
        return self._positions.get(normalize_name(text), _NONE)

    def fuzzy(self, text: str, k: int = 3, cutoff: float = 0.86) -> list[NameMatch]:
        """Return the names most like `text`, best first; equal scores in list order.

        Args:
            text: what to look for; empty after folding finds nothing.
            k: distinct names to return at most; positions sharing a name come together.
            cutoff: lowest score in [0, 1], of rapidfuzz's WRatio (the scorer of thefuzz).
        """
        folded = normalize_name(text)
        if not folded:
            return []
        found = process.extract(folded, self._folded, scorer=fuzz.WRatio, limit=k, score_cutoff=100 * cutoff)
        return [
            NameMatch(position, self._names[position], score / 100)
            for name, score, _ in found
            for position in self._positions[name].tolist()
        ]
