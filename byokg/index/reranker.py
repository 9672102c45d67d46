"""What rates how well texts fit a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from byokg.index.embedder import Embedder, Vectors

Scores = npt.NDArray[np.float64]


class Reranker(Protocol):
    """Rates texts against a question; scores of two rerankers do not compare."""

    @property
    def name(self) -> str:
        """Identify model and settings, for run records."""

    def score(self, question: str, texts: Sequence[str]) -> Scores:
        """Return how well each of N texts fits, higher is better: (N,) float64."""


class BiEncoder:
    """Rates by cosine, question and text encoded apart: the quickest reranker, and it needs no model of its own.

    Vectors of texts are remembered, since the relations around entities are much the same from question to question.
    Safe to share between threads.

    Args:
        embedder: encodes both.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}

    @property
    def name(self) -> str:
        """Identify the embedder."""
        return f"bi-encoder-{self._embedder.name}"

    def score(self, question: str, texts: Sequence[str]) -> Scores:
        """Return cosines, rounded to six decimals: (N,) in [-1, 1]; 0 where the embedder knows no word."""
        if not texts:
            return np.zeros(0)
        # Not `@`, whose sums depend on how many rows there are.
        cosines = np.vecdot(self._vectors(texts), self._vectors([question])[0])
        rounded: Scores = np.round(cosines.astype(np.float64), 6)
        return rounded

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        known = self._known
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if len(known) + len(new) > _REMEMBERED:
            # Another thread may still be reading the old one.
            known, new = {}, list(dict.fromkeys(texts))
        known.update(zip(new, self._embedder.encode(new), strict=True))
        self._known = known
        return np.stack([known[text] for text in texts])


_REMEMBERED = 1 << 14
