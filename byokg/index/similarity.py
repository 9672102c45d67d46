"""How similar all names are to one question, exactly: the best of them by one scan, any others when asked.

Unlike a search, nothing is approximate here and nobody is left out: what is not among the best has a similarity that
is known not to exceed a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byokg.errors import ConfigError
from byokg.index.dense import DenseNames
from byokg.index.embedder import Vectors

Int64 = npt.NDArray[np.int64]
Millionths = npt.NDArray[np.int32]

UNIT = 1_000_000
"""Similarities are whole millionths, so that sums of them are exact and equal ones are equal."""

_SLACK = 10
"""Millionths by which the scan's own sums may differ from those that count."""

_IN_SINGLE = 1 << 26
"""Numbers of all vectors up to which they are kept in single precision, too: 256 MB."""

_SAMPLE = 1 << 14
_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Best:
    """The owners of the names that are most similar to a question."""

    owners: Int64
    """(K,) ascending."""
    bound: int
    """No other owner of a name is more similar than this, in millionths."""


class Similarity:
    """Compares questions with the names of owners 0 to N - 1, as they are stored: in half precision.

    An owner without a name, or whose name has no token that the embedder knows, has a similarity of 0 to everything.

    Args:
        names: the index; owners are its numbers.
        owners: N, how many there are, named or not.
    """

    def __init__(self, names: DenseNames, owners: int) -> None:
        self._index = names.vectors
        stored = names.vectors.stored
        # Turning half precision into single takes longer than the products, so what is small is kept in single.
        self._stored = stored.astype(np.float32) if stored.size <= _IN_SINGLE else stored
        number, owner = names.owners
        rows = names.vectors.rows
        places = np.arange(len(names)) if rows is None else np.full(len(names), -1)
        if rows is not None:
            places[rows] = np.arange(len(rows))
        filled = places[number] >= 0
        self._bearers = owner[filled]
        self._bounds = np.searchsorted(places[number[filled]], np.arange(len(self._stored) + 1))
        self._place = np.full(owners, -1, np.int32)
        self._place[self._bearers[::-1]] = places[number[filled]][::-1]

    @property
    def owners(self) -> int:
        """Return how many owners there are."""
        return len(self._place)

    def __len__(self) -> int:
        """Return how many different names there are to compare with."""
        return len(self._stored)

    def of(self, question: Vectors, owners: npt.NDArray[np.integer]) -> Millionths:
        """Return the cosine of each owner's name with a question, in millionths.

        Args:
            question: (D,) unit vector.
            owners: (N,) numbers.

        Returns:
            (N,) in [-1,000,000, 1,000,000]; equal names have equal values, whatever else is asked for.
        """
        out = np.zeros(len(owners), np.int32)
        place = self._place[owners]
        filled = np.flatnonzero(place >= 0)
        for start in range(0, len(filled), _ROWS_AT_ONCE):
            part = filled[start : start + _ROWS_AT_ONCE]
            out[part] = millionths(self._stored[place[part]], question)
        return out

    def all(self, question: Vectors) -> Millionths:
        """Return what `of` would for every owner: (N,), each name compared once."""
        products = np.zeros(len(self) + 1, np.int32)  # the last one is for owners without a name, whose place is -1
        for start in range(0, len(self), _ROWS_AT_ONCE):
            part = slice(start, min(start + _ROWS_AT_ONCE, len(self)))
            products[part] = millionths(self._stored[part], question)
        return products.take(self._place, mode="wrap")

    def best(self, question: Vectors, names: int) -> Best:
        """Return the owners of the most similar names, by one scan over all of them.

        Args:
            question: (D,) unit vector.
            names: how many names, 1 or more; each may have several owners.
        """
        if names < 1:
            raise ConfigError(f"names={names} finds nothing; use 1 or more")
        wanted = min(names, len(self))
        if wanted == 0:
            return Best(np.zeros(0, np.int64), -UNIT)
        places, cosines = self._index.scan(question, wanted)
        chosen = np.sort(places)
        counts = self._bounds[chosen + 1] - self._bounds[chosen]
        at = np.repeat(self._bounds[chosen] - counts.cumsum() + counts, counts) + np.arange(counts.sum())
        least = -UNIT if wanted == len(self) else int(np.ceil(float(cosines[-1]) * UNIT)) + _SLACK
        return Best(np.sort(self._bearers[at]), least)

    def share_above(self, question: Vectors, least: int) -> float:
        """Estimate which share of the names is at least so similar, from a sample that is the same every time."""
        step = max(1, len(self) // _SAMPLE)
        sample = np.arange(0, len(self), step)
        if not len(sample):
            return 0.0
        return float((millionths(self._stored[sample], question) >= least).mean())


def millionths(vectors: npt.NDArray[np.floating], question: Vectors) -> Millionths:
    """Return the products of (N, D) vectors with a (D,) one, in millionths; each depends on its own row only."""
    # Not `@`, whose sums depend on how many rows there are.
    products: Vectors = np.vecdot(vectors.astype(np.float32, copy=False), question)
    rounded: Millionths = np.rint(products * np.float64(UNIT)).astype(np.int32)
    return rounded
