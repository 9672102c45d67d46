"""What turns text into vectors."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

_LONGEST_NAME = 100


class Embedder(Protocol):
    """Encodes texts as unit vectors, so that a dot product is a cosine."""

    @property
    def name(self) -> str:
        """Identify model and settings, for caches and run records."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return (N, D) float32 with rows of length 1; a text without any known token gives a zero row."""


def unit_rows(vectors: npt.ArrayLike) -> Vectors:
    """Scale every row to length 1.

    Args:
        vectors: (N, D) numbers of any real type.

    Returns:
        (N, D) float32; a row of zeros stays zero.
    """
    wide: npt.NDArray[np.float64] = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    scaled: Vectors = (wide / np.where(lengths == 0, 1.0, lengths)).astype(np.float32)
    return scaled


def folder_name(embedder: str) -> str:
    """Return a folder's name for an embedder's name: the same where that can be one, else readable and distinct.

    >>> folder_name("static-128-int8-65d26be1dd0e")
    'static-128-int8-65d26be1dd0e'
    """
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", embedder)[:_LONGEST_NAME].strip("-.")
    if readable and readable == embedder:
        return embedder
    return f"{readable or 'embedder'}-{hashlib.sha256(embedder.encode()).hexdigest()[:12]}"
