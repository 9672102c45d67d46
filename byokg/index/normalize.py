"""Folding names and mentions so that spelling habits do not keep them apart."""

from __future__ import annotations

import re
import unicodedata

_NOT_WORD = re.compile(r"[\W_]+")
_ARTICLES = ("the ", "a ", "an ")


def normalize_name(text: str) -> str:
    """Fold case, accents, punctuation and a leading English article, and collapse spaces.

    A text of punctuation alone keeps its characters, casefolded, so that it can still be told from others.

    >>> normalize_name("The  Côte-d'Ivoire")
    'cote d ivoire'
    """
    folded = text.casefold()
    if not folded.isascii():
        decomposed = unicodedata.normalize("NFKD", folded)
        folded = "".join(char for char in decomposed if not unicodedata.combining(char))
    words = _NOT_WORD.sub(" ", folded).strip()
    for article in _ARTICLES:
        if words.startswith(article):
            return words[len(article) :].lstrip()
    return words or folded.strip()
