"""Relation labels split into words and folded."""

from __future__ import annotations

import re
from functools import lru_cache

from byokg.text.names import normalize_name, split_words

_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Word boundary within camel case."""

LABEL_PARTS = re.compile(r"[./#:]+|__+")
"""Separators between a label's namespace and its own name: `film.film.genre`, `film__film__genre`, `http://…#genre`."""


def split_label(label: str) -> str:
    """Part the words that a label joins by capitals: `directedBy` is `directed By`, `URLPath` is `URL Path`."""
    return _CAPITALS.sub(" ", label)


def normalize_label(label: str) -> str:
    """Fold a label as `normalize_name` folds a name, its words parted: `directedBy` and `DIRECTED_BY` are one."""
    return normalize_name(split_label(label))


def label_words(label: str) -> tuple[list[str], list[str]]:
    """Split a relation label into the words of its namespace and its own (`film.director.film`, `birthPlace`)."""
    local = re.split(r"[/#]", label)[-1] if "://" in label else label
    segments = [segment for segment in LABEL_PARTS.split(local) if segment]
    words = [split_words(split_label(segment)) for segment in segments]
    words = [segment for segment in words if segment] or [[label.casefold()]]
    return (words[-2] if len(words) > 1 else []), words[-1]


@lru_cache(1 << 16)
def relation_text(label: str) -> str:
    """Write a relation as words, with the last part of its namespace (`location.country.capital`: country capital)."""
    namespace, own = label_words(label)
    return " ".join((*namespace, *own))
