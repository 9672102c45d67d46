"""The words that ask for a count, an order, a time or a difference: `byokg/data/operators` has a file for each idea."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
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


_MONTH = "(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_DATE = (
    rf"(?:\d{{1,2}}\s+{_MONTH}\s+\d{{4}}|{_MONTH}\s+\d{{1,2}},?\s+\d{{4}}|{_MONTH}\s+\d{{4}}|\d{{4}}-\d\d(?:-\d\d)?"
    r"|[12]\d{3}s?)(?![\d,.]*\d)"
)


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


class Patterns:
    """The patterns that are made of the word lists."""

    def __init__(self) -> None:
        self._read_counts_and_times(load_lexicon("count"), load_lexicon("time"))
        self._read_orders(load_lexicon("order"))
        self._read_clauses(load_lexicon("time"), load_lexicon("sets"))

    def _read_counts_and_times(self, count: Mapping[str, Any], time: Mapping[str, Any]) -> None:
        self.count = _made(rf"{any_of(count['asks'])}")
        dates = rf"(?P<a>{_DATE})"
        self.between = _made(
            rf"{any_of(time['between'])}\s+(?:the\s+)?(?:years\s+)?{dates}\s*{_loose(time['and'])}\s*(?:the\s+year\s+)?(?P<b>{_DATE})"
        )
        self.years = _made(rf"{dates}\s*{_loose(time['and'])}\s*(?P<b>{_DATE})")
        self.after = _made(
            rf"(?P<since>{any_of(time['since'])})?(?P<after>{any_of(time['after'])})?\s+{dates}(?:\s+{any_of(time['on'])})?"
        )
        self.before = _made(rf"(?P<until>{any_of(time['until'])})?(?P<before>{any_of(time['before'])})?\s+{dates}")
        self.at = _made(rf"(?:{any_of(time['at'])}\s+)?(?:the\s+)?{dates}")
        self.begins, self.ends = _made(any_of(time["begins"])), _made(any_of(time["ends"]))

    def _read_orders(self, order: Mapping[str, Any]) -> None:
        comparison = rf"(?P<more>{any_of(order['more'])})|(?P<fewer>{any_of(order['fewer'])})|(?P<word>[a-z]+er)\s+than"
        units = any_of(order["units"])
        self.threshold = _made(
            rf"(?:{comparison})\s+(?P<number>{number_pattern()})\s*(?P<unit>{units}|[a-z]+)?(?:\s+in\s+(?:size|area|population))?"
        )
        self.than = _made(rf"(?:more\s+(?P<adjective>[a-z]+)|(?P<word>[a-z]+er))\s+than\s+(?P<named>{NAMED})")
        most, least = any_of(order["most"]), any_of(order["least"])
        ordinal = rf"(?:(?P<ordinal>{any_of(order['ordinals'])})[\s-]+)?"
        self.most = _made(rf"(?:the\s+)?{ordinal}(?:(?P<most>{most})|(?P<least>{least}))\s+(?P<noun>[a-z]+)")
        self.done_most = _made(
            rf"\b(?:is|are|was|were|been|being|gets?|got)\s+(?P<verb>[a-z]+ed)\s+(?:the\s+)?(?:(?P<most>{most})|{least})"
            r"(?:\s+(?:often|frequently|times))?(?!\s+[a-z]+s\b)\b"
        )
        self.any_other = _made(
            r"(?:(?P<adverb>more|fewer|less)\s+(?P<noun>[a-z]+)|(?P<word>[a-z]+er))\s+than\s+(?:any|all|every)(?:\s+the)?(?:\s+others?|\s+else)?(?:\s+(?:one|there|[a-z]+))?"
        )
        self.superlative = _made(
            rf"(?:the\s+)?{ordinal}\b(?P<word>[a-z]+est|best)\b(?:-(?P<of>[a-z]+)|\s+(?P<noun>[a-z]+))?"
        )
        self.first = _made(
            rf"(?:the\s+)?(?:(?P<first>{any_of(order['first'])})|(?P<last>{any_of(order['last'])}))(?!\s+(?:name|names|lady|language|nations?|minister|class)\b)"
        )
        self.by = _made(
            r"\b(?:by|in\s+terms\s+of|measured\s+by|according\s+to|in)\s+(?:its\s+|their\s+)?(?:total\s+|land\s+|surface\s+)?(?P<noun>[a-z]+\s+(?:date|year|time|price|cost|number)|area|size|population|length|height|depth|elevation|size|surface|[a-z]+)\b"
        )
        self.comparative = _made(
            rf"\b(?:the\s+)?(?:(?P<amount>more|fewer|less)\s+(?:(?P<unit>{units})|(?P<adjective>[a-z]+))|(?P<word>[a-z]+er))\b"
        )
        verbs = any_of(form for verb in order["verbs"] for form in verb_forms(verb))
        money = r"(?:\s+(?:money|at\s+the\s+box\s+office))*"
        counted = r"[a-z]+s|people"  # `scored the most goals`
        self.verb_most = _made(
            rf"(?P<verb>{verbs})\s+(?:the\s+)?(?:(?P<most>most)|least){money}\b(?!\s+(?:{counted})\b)"
        )
        self.verb_more = _made(
            rf"(?P<verb>{verbs})\s+(?:(?P<more>more)|less){money}\b(?!\s+(?:than\s+\d|(?:{counted})\b))"
        )
        self.several = _made(r"\b(?P<amount>more|fewer|less)\s+(?P<noun>[a-z]+s|children|people|men|women)\b")
        self.having = _made(
            rf"\b(?:has|have|had|having|with)\s+(?:the|an?)\s+(?P<word>[a-z]+)\s+"
            rf"(?P<phrase>[a-z][a-z\s-]*[a-z])(?=\s*(?:[,?.;{HIDDEN}]|$))"
        )

    def _read_clauses(self, time: Mapping[str, Any], sets: Mapping[str, Any]) -> None:
        self.of_date = _made(r"\b(?:has|have|had|having|with)\s+(?:the|an?)\s+[a-z][a-z\s]*$")
        self.verifying = _made(
            rf"[^\w{HIDDEN}]*(?:is|are|was|were|do|does|did|has|have|had|can|could|may)\b"
            r"(?!.*\bor\b)(?!.*[,;:\u2013-]\s*(?:and\s+)?(?:if\s+so,?\s+)?(?:which|what|who|where|when)\b)"
        )
        self.sooner = _made(
            rf"\b(?:(?P<event>{any_of(time['events'])}|[a-z]+ed)\s+)?(?P<way>earlier|later|first|sooner|before)\b"
        )
        events = rf"(?P<event>{any_of(time['events'])}|[a-z]{{3,}}ed)\b"
        self.event_after = _made(rf"^\s*-?\s*(?:[a-z]+\s+){{0,2}}?(?:to\s+be\s+|to\s+|was\s+|were\s+)?{events}")
        self.event_before = _made(rf"\b{events}\s*$")
        self.next = [(_made(any_of(time["next"])), 1), (_made(any_of(time["previous"])), -1)]
        # What «has a year after 1994» has it of its own.
        own = "".join(rf"(?<!\b{has}\s)" for has in ("has", "have", "had", "having", "with"))
        self.year = [(_made(own + any_of(time["year_after"])), 1), (_made(own + any_of(time["year_before"])), -1)]
        self.same = _made(any_of(time["same"]))
        self.shared = _made(any_of(time["shared"]))
        self.when = _made(rf"{any_of(time['when'])}\s+(?P<named>{NAMED})(?P<rest>[^,?.;]*)")
        self.without = _made(any_of(sets["without"]))
        self.negation = _made(any_of(sets["not"]).replace(r"\bn't", "n't"))
        self.no = _made(rf"{any_of(sets['no'])}\s+(?P<thing>[a-z]+(?:\s+[a-z]+)?)")
        self.not_done = _made(rf"\b(?:do|does|did)\s+not\s+(?P<thing>[a-z]+)(?!\s*{HIDDEN})")
        self.year_asked = _made(any_of(time["asks"]))
        self.grouped = _made(rf"{any_of(sets['each'])}\s+(?P<noun>[a-z]+)|(?<!ed )\bby\s+(?P<by>[a-z]+)\W*$")
        self.aggregate = _made(any_of(sets["aggregates"]))
        self.either = _made(rf"(?P<a>{NAMED})\s*,?\s+or\s+(?:(?:in|of|for|with|by)\s+)?(?P<b>{NAMED})")
        self.pair = _made(rf"(?P<a>{NAMED})\s*,?\s+(?:or|and)\s+(?P<b>{NAMED})")


def _made(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _loose(phrases: Sequence[str]) -> str:
    return "(?:" + "|".join(re.escape(each) for each in sorted(phrases, key=lambda each: -len(each))) + ")"


@cache
def patterns() -> Patterns:
    """Return the patterns, which are made once."""
    return Patterns()
