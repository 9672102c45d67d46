"""The existing names nearest to a wrong one, for messages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from rapidfuzz import fuzz, process

_SIGNS = re.compile(r"[\W_]")


def nearest_names(name: str, known: Iterable[str], count: int = 3, cutoff: float = 60.0) -> list[str]:
    """Return up to `count` of the known names, the most similar first.

    Similarity goes from 0 to 100: how much of the spelling is shared, or nearly as much where all words of one name
    are in the other. Case and signs between words do not count.
    """
    candidates = sorted(set(known))
    asked, folded = [_folded(name)], list(map(_folded, candidates))
    spelling = process.cdist(asked, folded, scorer=fuzz.ratio, dtype=np.float64)[0]
    words = process.cdist(asked, folded, scorer=fuzz.token_set_ratio, dtype=np.float64)[0]
    scores = np.maximum(spelling, 0.9 * words)
    return [candidates[at] for at in np.argsort(-scores, kind="stable")[:count].tolist() if scores[at] >= cutoff]


@lru_cache(1 << 14)
def _folded(name: str) -> str:
    return _SIGNS.sub(" ", name.casefold())
