"""Synonyms of everyday English words, which ship with the package."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from byokg.text.names import singular

_SYNONYMS = Path(__file__).resolve().parent.parent / "data" / "words" / "synonyms.txt"

_DOUBLING = re.compile(r"[^aeiou]*[aeiou][bdgmnprt]|(?:ad|com|per|sub)mit|enrol")
"""Verbs whose last letter is doubled: those of one short syllable, and some that are stressed on the last."""


@dataclass(frozen=True)
class SynonymSet:
    """Words for the same kind of relation as one word, in the singular."""

    alike: frozenset[str] = frozenset()
    """Words for the same end, or for the relation itself."""
    converse: frozenset[str] = frozenset()
    """Words for the other end: `parent` of `child`."""


UNRELATED = SynonymSet()


@cache
def synonyms() -> Mapping[str, SynonymSet]:
    """Return the synonyms of each everyday word, from the list that ships with the package."""
    alike: dict[str, set[str]] = defaultdict(set)
    opposite: dict[str, set[str]] = defaultdict(set)
    for line in _SYNONYMS.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        sides = [set(map(singular, _written(side.split()))) for side in line.split("|")]
        for side, other in zip(sides, reversed(sides), strict=True):
            for word in side:
                if len(sides) == 1:
                    alike[word] |= side
                else:
                    opposite[word] |= other
    return {word: SynonymSet(frozenset(alike[word]), frozenset(opposite[word])) for word in {*alike, *opposite}}


def _written(words: Sequence[str]) -> list[str]:
    return [form for word in words for form in (verb_forms(word[:-1]) if word[-1] == "~" else [word])]


def verb_forms(verb: str) -> list[str]:
    """Return the regular forms of an English verb.

    >>> verb_forms("supply"), verb_forms("commit")
    (['supply', 'supplies', 'supplied', 'supplying'], ['commit', 'commits', 'committed', 'committing'])
    """
    if verb.endswith("e"):
        return [verb, f"{verb}s", f"{verb}d", f"{verb[:-1]}ing"]
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return [verb, f"{verb[:-1]}ies", f"{verb[:-1]}ied", f"{verb}ing"]
    stem = verb + verb[-1] if _DOUBLING.fullmatch(verb) else verb
    third = f"{verb}es" if verb.endswith(("s", "x", "ch", "sh")) else f"{verb}s"
    return [verb, third, f"{stem}ed", f"{stem}ing"]
