"""Tying relation labels that a language model wrote to those of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from rapidfuzz import fuzz, process

from byokg.errors import ConfigError
from byokg.index.embedder import Embedder
from byokg.index.normalize import normalize_name
from byokg.types import INVERSE

MatchMethod = Literal["exact", "folded", "fuzzy", "dense"]

_REMEMBERED = 1 << 14


@dataclass(frozen=True)
class RelationMatch:
    """What a written label was taken for."""

    written: str
    """Without the sign of inversion."""
    relation: str
    method: MatchMethod
    score: float
    """In [0, 1]; 1 when equal, also after folding."""


class RelationMatcher:
    """Finds the relation that a written label means: exactly, folded, by letters, then by meaning.

    Args:
        relations: R labels of the graph; of equally good ones the first counts.
        embedder: compares meanings; None compares letters only.
        fuzzy_cutoff: lowest similarity in letters, in [0, 1].
        dense_cutoff: lowest cosine.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Path Retrieval".
    Differs: the paper follows only labels that the graph has; models misspell and shorten them.
    """

    def __init__(
        self,
        relations: Sequence[str],
        embedder: Embedder | None = None,
        fuzzy_cutoff: float = 0.86,
        dense_cutoff: float = 0.7,
    ) -> None:
        for name, value in (("fuzzy_cutoff", fuzzy_cutoff), ("dense_cutoff", dense_cutoff)):
            if not 0 <= value <= 1:
                raise ConfigError(f"{name}={value} is no similarity; use a number from 0 to 1")
        self._relations = tuple(dict.fromkeys(relations))
        self._known = frozenset(self._relations)
        self._texts = [_folded(relation) for relation in self._relations]
        self._folded: dict[str, str] = {}
        for text, relation in zip(self._texts, self._relations, strict=True):
            self._folded.setdefault(text, relation)
        self._fuzzy_cutoff = fuzzy_cutoff
        self._dense_cutoff = dense_cutoff
        self._embedder = embedder
        self._vectors = embedder.encode(self._texts) if embedder is not None and self._relations else None
        self.match = lru_cache(_REMEMBERED)(self._match)
        """Return what a written label means, None when nothing is like it; see the class."""

    def nearest(self, written: str, count: int = 3) -> list[str]:
        """Return the `count` relations most like a label: in meaning where there is an embedder, else in letters."""
        text = _folded(written.removeprefix(INVERSE).strip())
        if self._embedder is not None and self._vectors is not None:
            scores = self._vectors @ self._embedder.encode([text])[0]
        else:
            scores = np.array([fuzz.ratio(text, each) for each in self._texts])
        # Rounded, so that the order does not hang on the last digit of a sum.
        order = np.argsort(-np.round(scores, 6), kind="stable")[:count].tolist()
        return [self._relations[at] for at in order]

    def _match(self, written: str) -> RelationMatch | None:
        written = written.removeprefix(INVERSE).strip()
        if written in self._known:
            return RelationMatch(written, written, "exact", 1.0)
        text = _folded(written)
        if not text:
            return None
        if text in self._folded:
            return RelationMatch(written, self._folded[text], "folded", 1.0)
        found = process.extractOne(text, self._texts, scorer=fuzz.ratio, score_cutoff=100 * self._fuzzy_cutoff)
        if found is not None:
            return RelationMatch(written, self._relations[found[2]], "fuzzy", found[1] / 100)
        if self._embedder is None or self._vectors is None:
            return None
        cosines = self._vectors @ self._embedder.encode([text])[0]
        best = int(np.argmax(cosines))
        if cosines[best] < self._dense_cutoff:
            return None
        return RelationMatch(written, self._relations[best], "dense", min(1.0, float(cosines[best])))


def _folded(label: str) -> str:
    """Fold case and the marks that join words: `directedBy`, `DIRECTED_BY` and `directed by` are one."""
    spaced = "".join(
        f" {char}" if char.isupper() and at and label[at - 1].islower() else char for at, char in enumerate(label)
    )
    return normalize_name(spaced)
