"""Folding names and mentions so that spelling habits do not keep them apart.

English words that say little by themselves.

Recognising strings that are machine identifiers, not names: what a person would never say.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

FUNCTION_WORDS = frozenset(
    "a an the of in on at by to for from with and or is are was were be been am do does did done has have had "
    "having that this these those there as into also it its their his her he she they them i you me my your we "
    "us our can could would should will s".split()
)


_IDENTIFIER = re.compile(
    r"[mg]\.[0-9a-z_]{2,}"  # Freebase MID
    r"|/[mg]/[0-9a-z_]{2,}"
    r"|[QP][1-9][0-9]{2,}"  # Wikidata
    r"|_:.+"  # RDF blank node
    r"|(?i:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",  # UUID
)


def is_identifier(text: str) -> bool:
    """Tell whether a string is a Freebase MID, a Wikidata id, a blank node label or a UUID.

    A node whose name is one has no name of its own: in Freebase mostly a mediator (CVT) node that stands for an
    event or a role between other nodes.
    """
    return _IDENTIFIER.fullmatch(text) is not None


_MARKS = "".join(chr(code) for code in range(0x300, 0x10000) if unicodedata.category(chr(code)).startswith("M"))
"""Combining marks: accents, and the vowel signs of many Asian scripts. Python's `\\w` leaves them out."""

WORD = re.compile(rf"[^\W_]+(?:[{_MARKS}]+[^\W_]*)*")
"""A run of letters and digits, with the marks that stand on them."""

ARTICLES = frozenset(("the", "a", "an"))


def normalize_name(text: str) -> str:
    """Fold case, accents, punctuation and a leading English article, and collapse spaces.

    Folding twice gives the same as folding once. A text of punctuation alone keeps its characters, so that it can
    still be told from others.

    >>> normalize_name("The  Côte-d'Ivoire")
    'cote d ivoire'
    """
    words = fold_words(text)
    return " ".join(words[leads_with_article(words) :])


def fold_words(text: str) -> list[str]:
    """Return the folded words of a text, a leading article among them; of punctuation alone, its pieces.

    >>> fold_words("The  Côte-d'Ivoire")
    ['the', 'cote', 'd', 'ivoire']
    """
    return WORD.findall(text.casefold() if text.isascii() else fold(text)) or text.split()


def leads_with_article(words: Sequence[str]) -> bool:
    """Tell whether folded words start with an article that a name can do without.

    Only one that no other follows, so that folding twice changes nothing and A. A. Milne keeps his initials.
    """
    return len(words) > 1 and words[0] in ARTICLES and not (len(words) > 2 and words[1] in ARTICLES)


def fold(text: str) -> str:
    """Fold case and accents; everything else stays."""
    letters = unicodedata.normalize("NFKD", text).translate(_WITHOUT_ACCENTS)
    return unicodedata.normalize("NFKC", letters.casefold())


class _WithoutAccents(dict[int, str | None]):
    """A table for `str.translate`, filled with the characters that occur."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        self[code] = None if _is_accent(character) else character
        return self[code]


_WITHOUT_ACCENTS = _WithoutAccents()


def _is_accent(char: str) -> bool:
    """Tell whether a character is a mark that people leave out.

    The classes kept make another letter: Indic nuktas and viramas, Japanese voicing, Thai and Lao vowels and tones.
    """
    combining = unicodedata.combining(char)
    return combining > 0 and not 7 <= combining <= 9 and not 84 <= combining <= 132
