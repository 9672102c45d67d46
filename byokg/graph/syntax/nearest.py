"""The existing names nearest to a wrong one, for messages."""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz import fuzz


def nearest_names(name: str, known: Iterable[str], count: int = 3, cutoff: float = 60.0) -> list[str]:
    """Return up to `count` of the known names, the most similar first.

    Similarity goes from 0 to 100: how much of the spelling is shared, or nearly as much where all words of one name
    are in the other. Case and signs between words do not count.
    """
    asked = _folded(name)
    scored = sorted((-_similarity(asked, _folded(candidate)), candidate) for candidate in set(known))
    return [candidate for score, candidate in scored[:count] if -score >= cutoff]


def _similarity(one: str, other: str) -> float:
    return max(fuzz.ratio(one, other), 0.9 * fuzz.token_set_ratio(one, other))


def _folded(name: str) -> str:
    return "".join(character if character.isalnum() else " " for character in name.casefold())
