"""The words that ask for a count, an order, a time or a difference: `byokg/data/operators` has a file for each idea."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

HIDDEN = "§"
"""Stands for each character of a mention, so that no word within a name is read as one of these."""

NAMED = rf"(?:the\s+|an?\s+)?{HIDDEN}+"
"""A mention, with its article."""


@cache
def idea(name: str) -> Mapping[str, Any]:
    """Return the word lists of one idea: `count`, `order`, `time` or `sets`."""
    return tomllib.loads(files("byokg").joinpath(f"data/operators/{name}.toml").read_text("utf-8"))


def any_of(phrases: Iterable[str]) -> str:
    """Return a pattern for any of some phrases, the longest first; `{}` in a phrase is a mention."""
    return "(?:" + "|".join(_phrase(each) for each in sorted(set(phrases), key=lambda each: (-len(each), each))) + ")"


def _phrase(phrase: str) -> str:
    pattern = r"\s+".join(re.escape(word).replace(r"\{\}", NAMED) for word in phrase.split())
    before = r"\b" if phrase[0].isalnum() else ""
    after = r"\b" if phrase[-1].isalnum() else ""
    return f"{before}{pattern}{after}"


@dataclass(frozen=True)
class Adjective:
    """What a word that compares is about."""

    word: str
    nouns: tuple[str, ...]
    less: bool = False
    """Whether the most of it is the least of what the nouns name."""
    dates: bool = False
    """Whether it compares dates where no number is found."""


@cache
def adjectives() -> Mapping[str, Adjective]:
    """Return the adjectives by their plain, comparative and superlative forms."""
    order = idea("order")
    plain = {
        word: Adjective(word, tuple(group["nouns"]), group.get("less", False), group.get("dates", False))
        for group in order["adjective"]
        for word in group["words"]
    }
    forms = dict(plain)
    for word, adjective in plain.items():
        for ending in ("er", "est"):
            forms[_inflected(word, ending)] = adjective
    forms |= {form: plain[word] for form, word in order["irregular"].items() if word in plain}
    return forms


def superlative(word: str) -> Adjective | None:
    """Return what a superlative is about: one of the list, or any other word in `est`; None where it is none."""
    known = adjectives().get(word)
    return known if known is not None and (word.endswith("est") or word == "best") else None


def comparative(word: str) -> Adjective | None:
    """Return what a comparative is about; None where a word is none of the list."""
    known = adjectives().get(word)
    return known if known is not None and (word.endswith(("er", "ter")) and word != known.word) else None


def _inflected(word: str, ending: str) -> str:
    if word.endswith("e"):
        return word + ending[1:]
    if word.endswith("y"):
        return f"{word[:-1]}i{ending}"
    short = re.fullmatch(r"[^aeiou]*[aeiou][bdgmnpt]", word) is not None
    return f"{word}{word[-1]}{ending}" if short else word + ending
