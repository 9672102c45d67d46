"""Folding names and mentions so that spelling habits do not keep them apart."""

from __future__ import annotations

import re
import unicodedata

_MARKS = "".join(chr(code) for code in range(0x300, 0x10000) if unicodedata.category(chr(code)).startswith("M"))
"""Combining marks: accents, and the vowel signs of many Asian scripts. Python's `\\w` leaves them out."""

WORD = re.compile(rf"[^\W_]+(?:[{_MARKS}]+[^\W_]*)*")
"""A run of letters and digits, with the marks that stand on them."""

_ARTICLE = re.compile("(?:the|an|a) (?!(?:the|an|a) )")
"""Only one that no other follows, so that folding twice changes nothing and A. A. Milne keeps his initials."""


def normalize_name(text: str) -> str:
    """Fold case, accents, punctuation and a leading English article, and collapse spaces.

    Folding twice gives the same as folding once. A text of punctuation alone keeps its characters, so that it can
    still be told from others.

    >>> normalize_name("The  Côte-d'Ivoire")
    'cote d ivoire'
    """
    words = " ".join(WORD.findall(text.casefold() if text.isascii() else _fold(text)))
    return words[article.end() :] if (article := _ARTICLE.match(words)) else words or text.strip()


def _fold(text: str) -> str:
    letters = "".join(char for char in unicodedata.normalize("NFKD", text) if not _is_accent(char))
    return unicodedata.normalize("NFKC", letters.casefold())


def _is_accent(char: str) -> bool:
    """Tell whether a character is a mark that people leave out.

    The classes kept make another letter: Indic nuktas and viramas, Japanese voicing, Thai and Lao vowels and tones.
    """
    combining = unicodedata.combining(char)
    return combining > 0 and not 7 <= combining <= 9 and not 84 <= combining <= 132
