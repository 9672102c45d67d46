"""An embedder whose cosines can be worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from byokg.index.embedders import Vectors, unit_rows


class WordAxes:
    """Gives each known word an axis of its own; a text is the sum of its words' axes, at length 1.

    So the cosine of two texts without repeated words is the number of known words that they share, over the square
    root of the product of their numbers of known words.
    """

    name = "word-axes"

    def __init__(self, words: str) -> None:
        self._axis = {word: axis for axis, word in enumerate(words.casefold().split())}

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return (N, D) unit rows; zeros for a text without a known word."""
        sums = np.zeros((len(texts), len(self._axis)))
        for row, text in enumerate(texts):
            for word in text.casefold().split():
                if word in self._axis:
                    sums[row, self._axis[word]] += 1
        return unit_rows(sums)
