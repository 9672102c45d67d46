"""Names found by meaning, by comparing a mention with all of them: exact, and quick enough up to some 100,000 names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from byokg.index.embedder import Embedder
from byokg.index.name_match import NameMatch


class ScannedNames:
    """Compares texts with every name; implements `NameSearch`.

    Args:
        names: the name of every owner, by owner number.
        embedder: turns names and texts into vectors.
    """

    def __init__(self, names: Iterable[str], embedder: Embedder) -> None:
        self._names = list(names)
        self._embedder = embedder
        self._vectors = embedder.encode(self._names)

    def search(self, texts: Sequence[str], k: int) -> list[list[NameMatch]]:
        """Return the k names nearest to each text, best first, equal ones by owner; only those of cosine above 0."""
        found = []
        for cosines in self._embedder.encode(list(texts)) @ self._vectors.T:
            order = np.argsort(-cosines, kind="stable")[:k].tolist()
            some = [NameMatch(at, self._names[at], min(1.0, float(cosines[at]))) for at in order if cosines[at] > 0]
            found.append(some)
        return found
