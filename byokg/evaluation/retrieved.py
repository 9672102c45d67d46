"""What of a question's gold answers is in its evidence, as a run records it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Retrieved:
    """What the evidence of one question holds; recorded with its prediction."""

    ranks: tuple[int | None, ...]
    """For each distinct gold answer, the rank from 1 of the first evidence item that holds it; None where none does."""
    support: tuple[int, int] | None = None
    """How many of how many annotated triples are in the evidence; None where none is annotated."""
    tokens: int | None = None
    """Of graph context in the last prompt; None where no prompt had any."""

    def recall(self, k: int | None = None) -> float:
        """Return the share of gold answers that the first k items hold, in [0, 1]; of all items without k."""
        found = sum(rank is not None and (k is None or rank <= k) for rank in self.ranks)
        return found / len(self.ranks)
