"""What a search for names gives: the seam between the name indexes and whoever links mentions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class NameMatch:
    """A name that resembles what was asked for."""

    owner: int
    """Number of what bears the name: a node's number in its graph. Several names may have one owner, and one name
    several owners, each of them a match of its own."""
    name: str
    """As it was given to the index."""
    score: float
    """In [0, 1]; 1 is equal (after folding, or in direction)."""


class NameSearch(Protocol):
    """Finds names approximately: by letters (`names`) or by meaning (`dense`)."""

    def search(self, texts: Sequence[str], k: int) -> list[list[NameMatch]]:
        """Return the k best matches of each text, best first, never flattened across texts.

        A list is shorter where fewer names exist or pass the index's cutoff, and empty for a text of nothing that
        can be compared (empty, punctuation, control characters).
        """
