"""The words of relation labels: a label's own name and its namespace, and what it says of what it leads from and to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from byokg.text import FUNCTION_WORDS, LABEL_PARTS, singular, split_label, split_words

_NOT_ACTING = frozenset(
    "order number member chapter center centre river water letter paper chapter offer color".split()
)
"""Words that only end like those for people who do something."""


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


def acting(word: str) -> bool:
    """Tell whether a word names the one who acts: `manager`, `author`."""
    return len(word) > 4 and word.endswith(("er", "or", "ist", "ian")) and word not in _NOT_ACTING


def doing(words: Sequence[str]) -> str:
    """Return the verb that the words of a relation begin with, for what its heads do; empty where there is none.

    >>> doing("plays in club".split()), doing("is aged".split()), doing("played by".split())
    ('play', '', '')
    """
    first = words[0]
    return singular(first) if len(first) > _SHORTEST and first.endswith("s") and words[-1] != "by" else ""


def done_by(noun: str) -> frozenset[str]:
    """Return the verbs, one of them a word at most, for what a noun names the doer of: `players` play.

    >>> sorted(done_by("players")), sorted(done_by("runner")), done_by("city")
    (['play', 'playe'], ['run', 'runn', 'runne'], frozenset())
    """
    noun = singular(noun)
    if not acting(noun) or not noun.endswith(("er", "or")):
        return frozenset()
    stem = noun[:-2]
    return frozenset({stem, noun[:-1], *([stem[:-1]] if stem[-1] == stem[-2] else ())})


_SHORTEST = 3
"""Letters of a verb with its ending that is too short to be told from others: `has`."""

_TYING = frozenset("of for to in on at with from by".split())


def names_head(words: Sequence[str]) -> bool:
    """Tell whether the words of a relation name the one it leads from: `capital of`, `is a vector for`.

    >>> [names_head(label.split()) for label in ("part of", "is a vector for", "belongs to the family of", "lives in")]
    [True, True, False, False]
    """
    if words[:1] in (["is"], ["are"]) and words[1:2] in (["a"], ["an"], ["the"]):
        return words[-1] in _TYING
    verb = len(words) > 2 and words[0].endswith("s") and words[1] in _TYING
    return words[-1] == "of" and not verb


def content_words(words: Sequence[str]) -> list[str]:
    """Return the words that say something; all, where none does."""
    return [word for word in words if word not in FUNCTION_WORDS] or list(words)
