"""Which relation of a graph a label means that somebody wrote, a language model for instance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from rapidfuzz import fuzz, process

from byokg.arrays import Float64
from byokg.errors import ConfigError
from byokg.index.embedders import Embedder, compare_rows, exact
from byokg.llm.shown_names import ShownNames
from byokg.text.labels import normalize_label
from byokg.types import INVERSE

MatchMethod = Literal["exact", "folded", "fuzzy", "dense"]

_REMEMBERED = 1 << 14


_UNPLAIN = re.compile(r"[^\w.:/ -]|\s[/-]|[/-]\s|\bthen\b|^[^:/]*/[^:]*$")


@dataclass(frozen=True)
class RelationMatch:
    """Match of a written label."""

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
        self._given = relations
        self._fuzzy_cutoff = fuzzy_cutoff
        self._dense_cutoff = dense_cutoff
        self._embedder = embedder
        self.match = lru_cache(_REMEMBERED)(self._match)
        """Return the relation for a written label, None if none is similar; see the class."""

    # Compared data is read on the first label that needs it.

    @cached_property
    def _relations(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._given))

    @cached_property
    def unplain(self) -> ShownNames:
        """Relations whose labels hold separators of path steps: arrows, commas, slashes."""
        return ShownNames(relation for relation in self._relations if _UNPLAIN.search(relation))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self._relations)

    @cached_property
    def _texts(self) -> list[str]:
        return [normalize_label(relation) for relation in self._relations]

    @cached_property
    def _folded(self) -> dict[str, str]:
        folded: dict[str, str] = {}
        for text, relation in zip(self._texts, self._relations, strict=True):
            folded.setdefault(text, relation)
        return folded

    @cached_property
    def _vectors(self) -> Float64 | None:
        return exact(self._embedder.encode(self._texts)) if self._embedder is not None and self._relations else None

    def nearest(self, written: str, count: int = 3) -> list[str]:
        """Return the `count` relations most like a label: in meaning with an embedder, else in letters."""
        text = normalize_label(written.removeprefix(INVERSE).strip())
        if self._embedder is not None and self._vectors is not None:
            scores = compare_rows(self._vectors, exact(self._embedder.encode([text])[0]))
        else:
            scores = np.array([fuzz.ratio(text, each) for each in self._texts])
        order = np.argsort(-scores, kind="stable")[:count].tolist()
        return [self._relations[at] for at in order]

    def spelled(self, written: str) -> bool:
        """True if a label is one of the graph's, exactly, folded, or but for a few letters."""
        match = self.match(written)
        return match is not None and match.method != "dense"

    def _match(self, written: str) -> RelationMatch | None:
        written = written.removeprefix(INVERSE).strip()
        if written in self._known:
            return RelationMatch(written, written, "exact", 1.0)
        text = normalize_label(written)
        if not text:
            return None
        if text in self._folded:
            return RelationMatch(written, self._folded[text], "folded", 1.0)
        found = process.extractOne(text, self._texts, scorer=fuzz.ratio, score_cutoff=100 * self._fuzzy_cutoff)
        if found is not None:
            return RelationMatch(written, self._relations[found[2]], "fuzzy", found[1] / 100)
        if self._embedder is None or self._vectors is None:
            return None
        cosines = compare_rows(self._vectors, exact(self._embedder.encode([text])[0]))
        best = int(np.argmax(cosines))
        if cosines[best] < self._dense_cutoff:
            return None
        return RelationMatch(written, self._relations[best], "dense", min(1.0, float(cosines[best])))
