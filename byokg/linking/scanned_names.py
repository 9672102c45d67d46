"""Names found by meaning, by comparing a mention with all of them: exact, and quick enough up to some 100,000 names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock

import numpy as np

from byokg.index.embedder import Embedder, Vectors
from byokg.index.name_match import NameMatch


class ScannedNames:
    """Compares texts with every name; implements `NameSearch`.

    Args:
        names: gives the name of every owner, by owner number; asked once, at the first search.
        embedder: turns names and texts into vectors.
    """

    def __init__(self, names: Callable[[], Iterable[str]], embedder: Embedder) -> None:
        self._read = names
        self._embedder = embedder
        self._held: tuple[list[str], Vectors] | None = None
        self._lock = Lock()

    def search(self, texts: Sequence[str], k: int) -> list[list[NameMatch]]:
        """Return the k names nearest to each text, best first, equal ones by owner; only those of cosine above 0."""
        names, vectors = self._names()
        found = []
        for cosines in self._embedder.encode(list(texts)) @ vectors.T:
            order = np.argsort(-cosines, kind="stable")[:k].tolist()
            found.append([NameMatch(at, names[at], min(1.0, float(cosines[at]))) for at in order if cosines[at] > 0])
        return found

    def _names(self) -> tuple[list[str], Vectors]:
        with self._lock:
            if self._held is None:
                names = list(self._read())
                self._held = names, self._embedder.encode(names)
            return self._held
