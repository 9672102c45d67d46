"""How alike two names are, as thefuzz says: rapidfuzz's WRatio of the processed strings."""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz import fuzz, process
from rapidfuzz.utils import default_process

from byokg.index.name_candidates import FAR
from byokg.index.normalize import fold

_WHOLE = 4
"""A name of fewer letters is never found as a part of a longer text; such a text only as a whole word of a name."""


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
    return [(at, score / 100) for name, score, at in found if score > 0 and not _chance(text, name)]


def _chance(text: str, name: str) -> bool:
    """Tell whether a name so short that it is part of anything was found as a part, or such a text in a part."""
    if min(len(text), len(name)) >= 2 * _WHOLE:
        return False
    name = compared(name)
    shorter, longer = sorted((len(text), len(name)))
    if shorter >= _WHOLE or longer < FAR * shorter:
        return False
    return len(name) < len(text) or text not in name.split()
