"""What rates how well texts fit a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from byokg.index.embedder import Embedder

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

    Args:
        embedder: encodes both.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        """Identify the embedder."""
        return f"bi-encoder-{self._embedder.name}"

    def score(self, question: str, texts: Sequence[str]) -> Scores:
        """Return cosines, rounded to six decimals: (N,) in [-1, 1]; 0 where the embedder knows no word."""
        if not texts:
            return np.zeros(0)
        vectors = self._embedder.encode([question, *texts])
        # Not `@`, whose sums depend on how many rows there are.
        cosines: Scores = np.einsum("ij,j->i", vectors[1:], vectors[0]).astype(np.float64)
        return np.round(cosines, 6)
