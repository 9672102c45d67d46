"""How alike two names are, as thefuzz says: rapidfuzz's WRatio of the processed strings."""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz import fuzz, process
from rapidfuzz.utils import default_process

from byokg.index.name_candidates import FAR
from byokg.index.normalize import fold

_WHOLE = 4
"""A name of fewer letters is not taken for a part of a longer text; such a text only for a whole word of a name."""


def compared(text: str) -> str:
    """Return what is compared of a name or mention: small letters and digits without accents, all else blank.

    thefuzz's `full_process`, where it leaves accents. Empty for a text without letters and digits.
    """
    return str(default_process(text if text.isascii() else fold(text)))


def scores(text: str, names: Sequence[str], least: float) -> list[tuple[int, float]]:
    """Compare a text with names.

    Args:
        text: what `compared` gives.
        names: N names as they are written.
        least: score in [0, 1] that is worth telling.

    Returns:
        Position and score of each name that reaches `least` and more than 0, in no order that may be relied on.
    """
    plain = [name if name.isascii() else fold(name) for name in names]
    found = process.extract(
        text, plain, scorer=fuzz.WRatio, processor=default_process, limit=None, score_cutoff=100 * least
    )
    scored = [(at, (_of_wholes(text, name) if _by_chance(text, name) else score) / 100) for name, score, at in found]
    return [(at, score) for at, score in scored if score > 0 and score >= least]


def _by_chance(text: str, name: str) -> bool:
    """Tell whether a name is so short that it is part of anything, or the text is and no whole word of the name."""
    if min(len(text), len(name)) >= 2 * _WHOLE:
        return False
    name = compared(name)
    shorter, longer = sorted((len(text), len(name)))
    if shorter >= _WHOLE or longer < FAR * shorter:
        return False
    return len(name) < len(text) or text not in name.split()


def _of_wholes(text: str, name: str) -> float:
    return float(fuzz.ratio(text, compared(name)))
