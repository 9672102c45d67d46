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

    Args:
        embedder: encodes both.
        kept: vectors of texts that are kept, since a graph's relations come up in every question.
    """

    def __init__(self, embedder: Embedder, kept: int = 20_000) -> None:
        self._embedder = embedder
        self._kept = kept
        self._vectors: dict[str, Vectors] = {}

    @property
    def name(self) -> str:
        """Identify the embedder."""
        return f"bi-encoder-{self._embedder.name}"

    def score(self, question: str, texts: Sequence[str]) -> Scores:
        """Return cosines, rounded to six decimals: (N,) in [-1, 1]; 0 where the embedder knows no word."""
        if not texts:
            return np.zeros(0)
        # Not `@`, whose sums depend on how many rows there are.
        cosines: Scores = np.einsum("ij,j->i", self._encoded(texts), self._encoded([question])[0]).astype(np.float64)
        return np.round(cosines, 6)

    def _encoded(self, texts: Sequence[str]) -> Vectors:
        vectors = {text: found for text in texts if (found := self._vectors.get(text)) is not None}
        new = [text for text in dict.fromkeys(texts) if text not in vectors]
        if new:
            encoded = dict(zip(new, self._embedder.encode(new), strict=True))
            vectors |= encoded
            if len(self._vectors) + len(encoded) > self._kept:
                self._vectors = {}
            self._vectors.update(encoded)
        return np.concatenate([vectors[text] for text in texts]).reshape(len(texts), -1)  # quicker than `np.stack`
