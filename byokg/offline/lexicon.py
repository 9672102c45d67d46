"""The words that ask for a count, an order, a time or a difference: `byokg/data/operators` has a file for each idea."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from byokg.text.synonyms import verb_forms
from byokg.text.values import read_literal

HIDDEN = "§"
"""Stands for each character of a mention, so that no word within a name is read as one of these."""

NAMED = rf"(?:the\s+|an?\s+)?{HIDDEN}+"
"""A mention, with its article."""


@cache
def load_lexicon(name: str) -> Mapping[str, Any]:
    """Return the word lists of one idea: `count`, `order`, `time`, `sets`, `kinds`, `parts` or `grammar`."""
    return tomllib.loads(files("byokg").joinpath(f"data/operators/{name}.toml").read_text("utf-8"))


def english_words(use: str) -> frozenset[str]:
    """Return the words of one syntactic use, in `grammar.toml`."""
    return frozenset(load_lexicon("grammar")[use].split())


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
    """Meaning of a comparing word."""

    word: str
    nouns: tuple[str, ...]
    less: bool = False
    """True if the most of it is the least of the nouns."""
    dates: bool = False
    """True if it compares dates when there is no number."""


def measured_by(thing: str) -> tuple[str, ...]:
    """Return the nouns for the quantity of a unit, or the noun itself."""
    return tuple(load_lexicon("order")["units"].get(thing, ())) or (thing,)


@cache
def adjectives() -> Mapping[str, Adjective]:
    """Return the adjectives by their plain, comparative and superlative forms."""
    order = load_lexicon("order")
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
    """Return the meaning of a superlative: one of the list, or any other word in `est`; None for other words."""
    known = adjectives().get(word)
    return known if known is not None and (word.endswith("est") or word == "best") else None


def comparative(word: str) -> Adjective | None:
    """Return the meaning of a comparative; None for words outside the list."""
    known = adjectives().get(word)
    return known if known is not None and (word.endswith(("er", "ter")) and word != known.word) else None


def measured_by_verb(verb: str) -> tuple[str, ...]:
    """Return the nouns of a verb of measure: `costs the most`."""
    return tuple(
        next(nouns for plain, nouns in load_lexicon("order")["verbs"].items() if verb.lower() in verb_forms(plain))
    )


def dated_by(event: str) -> tuple[str, ...]:
    """Return the name of an event's time, by its verb: `born`, `died`, or the verb itself."""
    return tuple(load_lexicon("time")["events"].get(" ".join(event.split()), ())) or (event,)


def greatest(word: str) -> bool | None:
    """True for the most of something (`the largest`, `the later`), False for the least; None for other words."""
    order = load_lexicon("order")
    if word in order["first"] or word in order["sooner"]:
        return False
    if word in order["last"] or word in order["later"]:
        return True
    adjective = superlative(word) or comparative(word)
    return None if adjective is None else not adjective.less


def _inflected(word: str, ending: str) -> str:
    if word.endswith("e"):
        return word + ending[1:]
    if word.endswith("y"):
        return f"{word[:-1]}i{ending}"
    short = re.fullmatch(r"[^aeiou]*[aeiou][bdgmnpt]", word) is not None
    return f"{word}{word[-1]}{ending}" if short else word + ending


@cache
def number_pattern() -> str:
    """Return a pattern for numbers in digits and words: `1.5 million`, `five hundred thousand`, `a dozen`."""
    order = load_lexicon("order")
    scale, short = any_of(order["scales"]), "|".join(order["short_scales"])
    words = any_of([word for word in order["numbers"] if order["numbers"][word] > 1 or word == "zero"])
    first = rf"(?:\d[\d,.]*(?:(?:{short})\b)?|{any_of(order['numbers'])}(?:\s+an?\b)?(?=\s+{scale})|{words}|\bone\b)"
    return rf"{first}(?:[\s-]+(?:and\s+)?(?:{scale}|{words}|\bone\b))*"


def number_value(text: str) -> float | None:
    """Return the number that a text is, in digits and words; None for any other text.

    >>> number_value("1.5 million"), number_value("five hundred thousand"), number_value("a few")
    (1500000.0, 500000.0, None)
    """
    order = load_lexicon("order")
    pieces = re.fullmatch(r"(?P<digits>[\d,.]*\d)?[,.]?(?P<rest>[^\d]*)", text.casefold().strip())
    if pieces is None:
        return None
    literal = read_literal(pieces["digits"]) if pieces["digits"] else None
    if literal is not None and isinstance(literal.value, str):
        return None
    whole, part = 0.0, None if literal is None else float(literal.value)
    for word in re.findall(r"[a-z]+", pieces["rest"]):
        scale = order["scales"].get(word) or (order["short_scales"].get(word) if literal is not None else None)
        if scale is not None:
            part = (1.0 if part is None else part) * scale
            whole, part = (whole + part, None) if scale >= 1000 else (whole, part)
        elif word in order["numbers"] and (part is None or word not in ("a", "an")):
            part = (part or 0.0) + order["numbers"][word]
        elif word not in ("and", "a", "an"):
            return None
    return whole + (part or 0.0) if whole or part is not None else None


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of `patterns.toml`, with its lists and parts filled in; the letter case does not matter."""
    return re.compile(_filled(load_lexicon("patterns")[name]), re.IGNORECASE)


def _filled(template: str) -> str:
    return re.sub(r"\{\{(.+?)\}\}", lambda found: _expansion(found[1]), template.replace("\\\n", ""))


def _expansion(name: str) -> str:
    """Return what a placeholder of `patterns.toml` stands for."""
    if "." not in name:
        made = {"HIDDEN": HIDDEN, "NAMED": NAMED, "NUMBER": number_pattern() if name == "NUMBER" else ""}
        return made[name] if name in made else _filled(load_lexicon("patterns")["parts"][name])
    file, _, key = name.lstrip("~+").partition(".")
    phrases = load_lexicon(file)[key]
    if name[0] == "~":
        return "(?:" + "|".join(re.escape(each) for each in sorted(phrases, key=lambda each: -len(each))) + ")"
    any_form = any_of(form for verb in phrases for form in verb_forms(verb)) if name[0] == "+" else any_of(phrases)
    return any_form.replace(r"\bn't", "n't")
