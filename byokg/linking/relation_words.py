"""The words of relation labels, and which everyday words name the same kind of relation."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

from byokg.text import FUNCTION_WORDS, singular, split_label, split_words

_SEPARATORS = re.compile(r"[./#:]+")

_SYNONYMS = Path(__file__).resolve().parent.parent / "data" / "words" / "synonyms.txt"

_NOT_ACTING = frozenset(
    "order number member chapter center centre river water letter paper chapter offer color".split()
)
"""Words that only end like those for people who do something."""


@cache
def synonyms() -> Mapping[str, frozenset[str]]:
    """Return for everyday words the others that name the same kind of relation or thing; they ship with the package."""
    groups: dict[str, set[str]] = defaultdict(set)
    for line in _SYNONYMS.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            words = set(map(singular, line.split()))
            for word in words:
                groups[word] |= words
    return {word: frozenset(others) for word, others in groups.items()}


def label_words(label: str) -> tuple[list[str], list[str]]:
    """Split a relation label into the words of its namespace and its own (`film.director.film`, `birthPlace`)."""
    local = re.split(r"[/#]", label)[-1] if "://" in label else label
    segments = [segment for segment in _SEPARATORS.split(local) if segment]
    words = [split_words(split_label(segment)) for segment in segments]
    words = [segment for segment in words if segment] or [[label.casefold()]]
    return (words[-2] if len(words) > 1 else []), words[-1]


@lru_cache(1 << 16)
def relation_text(label: str) -> str:
    """Write a relation as words, with the last part of its namespace (`location.country.capital`: country capital)."""
    namespace, own = label_words(label)
    return " ".join((*namespace, *own))


def acting(word: str) -> bool:
    """Tell whether a word names the one who acts: `manager`, `author`."""
    return len(word) > 4 and word.endswith(("er", "or", "ist", "ian")) and word not in _NOT_ACTING


def content_words(words: Sequence[str]) -> list[str]:
    """Return the words that say something; all, where none does."""
    return [word for word in words if word not in FUNCTION_WORDS] or list(words)
