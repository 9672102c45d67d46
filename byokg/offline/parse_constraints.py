"""Constraints and aggregations of a question: count, superlative, time, comparison, set difference.

`parse_constraints` removes these from a question's words, so that the rest is a path question (`which countries border
Austria`), and returns the operations on its ends. Words of a mention are never parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from byokg.offline.lexicon import (
    HIDDEN,
    SILENT,
    adjectives,
    cached,
    comparative,
    dated_by,
    greatest,
    load_lexicon,
    measured_by,
    measured_by_verb,
    number_value,
    pattern,
    rule,
    superlative,
)
from byokg.offline.parse import ParsedQuestion, parse_question
from byokg.offline.schema_linking import FORBIDDING
from byokg.text.names import FUNCTION_WORDS, QUESTION_WORDS, WORD, singular
from byokg.text.values import read_literal
from byokg.types import Mention

PeriodPart = Literal["any", "begin", "end"]
"""Which end of a period is meant: any time in it, its beginning, its end."""


@dataclass(frozen=True)
class TemporalConstraint:
    """A period that something has to fall into; both ends belong to it, None is open."""

    first: str | None
    last: str | None
    edge: PeriodPart = "any"
    near: str = ""
    """The word that it stands with (`born` after 1950)."""
    strict: bool = False
    """Whether the ends themselves are left out."""
    words: str = ""
    """Words of the question."""
    mentions: tuple[int, ...] = ()
    """Mentions of the event whose time it is (`when Ada joined Acme`), in place of dates."""


@dataclass(frozen=True)
class Superlative:
    """The most or the least of something."""

    nouns: tuple[str, ...]
    """Compared property, as words; none compares dates."""
    most: bool
    place: int = 1
    dates: bool = False
    """True if dates are compared when there is no number."""
    words: str = ""
    edge: PeriodPart = "any"
    """End of a period that is ordered, if only one is."""
    counted: bool = False
    """Whether the nouns may also name things to count (`the most neighbours`)."""
    size: int = 1
    """Number of best ones, those of ties beside them (`top 5`); with more than one, the place is 1."""
    frequent: bool = False
    """True for a comparison of frequencies (`the most common surname`)."""


@dataclass(frozen=True)
class Threshold:
    """A number that something has to be above or below."""

    nouns: tuple[str, ...]
    more: bool
    value: float
    mention: int | None = None
    """The mention whose own value it is, in place of a number."""
    dates: bool = False
    words: str = ""


@dataclass(frozen=True)
class SuccessorConstraint:
    """Who is next to a mention in time."""

    mentions: tuple[int, ...]
    """Who that may be, the likeliest first."""
    step: Literal[-1, 0, 1]
    """After, before, or at the same time."""
    years: int | None = None
    """Just so many years apart, or else next in order."""
    words: str = ""


@dataclass(frozen=True)
class QueryConstraints:
    """Constraints and aggregation beside the path."""

    rest: str
    """The question without the words that were read, as long as it was."""
    count: str = ""
    """Words of a count; empty without one."""
    counted: str = ""
    """Noun of the counted things."""
    order: Superlative | None = None
    times: tuple[TemporalConstraint, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    next: SuccessorConstraint | None = None
    without: tuple[int, ...] = ()
    """Mentions that are taken away."""
    lacking: str = ""
    """Negated property of the answers (`no land border`)."""
    union: tuple[int, ...] = ()
    """Mentions of which either is enough."""
    verify: bool = False
    """Whether it asks for yes or no about two mentions."""
    grouped: str = ""
    """Noun of the groups, if the question asks for one result of each (`the average price per city`)."""
    measure: tuple[int, int] = (0, 0)
    """First and last character of a superlative's measure in `rest` (`by area`), the latter exclusive."""

    @property
    def path_text(self) -> str:
        """Return the rest without the measure of a superlative."""
        start, end = self.measure
        return f"{self.rest[:start]}{' ' * (end - start)}{self.rest[end:]}"

    @property
    def plain(self) -> bool:
        """True if the question is a path question only."""
        return self == QueryConstraints(self.rest)


def asked_part(text: str) -> PeriodPart:
    """Return the end of a period that a question means by its verbs: `joined`, `left`."""
    named: tuple[PeriodPart, ...] = ("begin", "end")
    return next((part for part in named if pattern(f"{part}s").search(text)), "any")


@dataclass(frozen=True)
class ConstraintLimits:
    """Limits of constraint parsing."""

    age: int = 200
    """Number below which something is so many years old; others are years."""
    characters: int = 1000
    """Characters of a question; a longer text is parsed as a path question, since patterns take quadratic time."""


_LIMITS = ConstraintLimits()

_YEAR = re.compile(r"[12]\d{3},?")

_TRIGGERS = re.compile(
    r"\d{4}|^\W*(?:is|are|was|were|do|does|did|has|have|had)\b|\b(?:many|number|count|most|least|fewest|more|less|fewer|over|above|under|below|than|first|last|latest|"
    r"earliest|best|top|recent|recently|newest|final|after|before|when|followed|succeed\w*|follow|preced\w*|replace\w*|"
    r"predecessor|successor|take\s+over|took\s+over|same|share\w*|together|alongside|beside|jointly|year|not|never|"
    r"without|except|excluding|leaving|other|apart|no|lacking|or|and|aside|outside|often|times|\w+est|\w+n't|per|each|"
    r"every|grouped|broken)\b|n't|\bby\s+[a-z]+\W*$|[,;]\s+(?:by|as|per|under|according|in)\b",
    re.IGNORECASE,
)
"""Pattern of any aggregation or constraint: a quick check that spares most questions the rest."""

_QUOTES = str.maketrans(dict.fromkeys('"“”«»„', " "))
"""Marks around names, without meaning."""

_BOUND = re.compile(r"\b(?:before|after|since|until|till|than|prior to)\s+(?:the\s+)?(?:year\s+)?$", re.IGNORECASE)
"""Words after which a date bounds a time, and is no topic, though a node may have its name."""

_COMPARED_BY = re.compile(r"\b(?:by|on|per)\s+(?:the\s+|its\s+|their\s+|total\s+)*$", re.IGNORECASE)
"""Words after which a number of things is a measure, and not the answer: `ordered by the number of films`."""


def parse_constraints(text: str, mentions: Sequence[Mention]) -> QueryConstraints:
    """Parse the constraints and aggregation of a question.

    Args:
        text: the question.
        mentions: its mentions; those without a place in the text are left out of account.

    Returns:
        The constraints; none if the text is longer than 1,000 characters.
    """
    return _read(text, tuple(mentions))


@cached(1 << 8)
def _read(text: str, mentions: tuple[Mention, ...]) -> QueryConstraints:
    if len(text) > _LIMITS.characters or _TRIGGERS.search(text) is None:
        return QueryConstraints(text)
    return _ConstraintParser(text, mentions).constraints()


class _Remainder:
    """Unparsed rest of a question: `_left` has spaces in place of parsed words, and marks in place of mentions."""

    def __init__(self, text: str, mentions: Sequence[Mention]) -> None:
        self._text = text
        self._mentions = mentions
        hidden = list((text.lower() if len(text.lower()) == len(text) else text).translate(_QUOTES))
        for mention in mentions:
            if mention.start >= 0 and not (_iso(mention.text) and _BOUND.search(text[: mention.start])):
                hidden[mention.start : mention.end] = HIDDEN * (mention.end - mention.start)
        self._whole = self._left = "".join(hidden)
        self._kept = list(text)
        self._measure = (0, 0)

    def _take(self, start: int, end: int, instead: str = "") -> None:
        """Remove parsed words; mentions stay. `instead` stands at its start."""
        for at in range(start, end):
            if self._whole[at] != HIDDEN:
                self._kept[at] = " "
        if instead and end - start >= len(instead):
            self._kept[start : start + len(instead)] = instead
        self._left = (
            self._left[:start]
            + "".join(mark if mark == HIDDEN else " " for mark in self._left[start:end])
            + self._left[end:]
        )

    def _mention_at(self, start: int, end: int) -> int | None:
        """Return the last mention that lies within a stretch."""
        within = [number for number, one in enumerate(self._mentions) if start <= one.start and one.end <= end]
        return within[-1] if within else None

    def _word_before(self, start: int) -> str:
        """Return the content word right before a place; mentions are skipped."""
        words = WORD.findall(self._left[:start].replace(HIDDEN, " "))
        telling = [word for word in words[-6:] if word not in SILENT]
        return telling[-1] if telling else ""


def best_number(text: str) -> tuple[int, int, int] | None:
    """Return the number of best ones (`top 5`, `the three longest`, 2 to 100) and its place; None without one.

    None as well in a text of more than 1,000 characters, which is parsed as a path question.
    """
    for match in pattern("best").finditer(text) if len(text) <= _LIMITS.characters else ():
        number = number_value(next(filter(None, match.groups())))
        after = WORD.findall(text[match.end() :].lower())
        said = match["top"] or match["ends"]
        said = said or any(word in ("most", "least", "fewest") or superlative(word) for word in after)
        if said and number is not None and 2 <= number <= 100 and number % 1 == 0:
            held = match["number"] or match["asked"] or match["ends"]
            start = match.start() if match["top"] else match.end() - len(held)
            return int(number), start, match.end()
    return None


class _SuperlativeParser(_Remainder):
    """Parser of orders: the most or the least of something, by a property, a count or a time."""

    @rule("superlative", "which river in {Peru} is the longest", lambda self: None)
    def _order(self) -> Superlative | None:
        """Read the most or the least of something."""
        match = pattern("verb_most").search(self._left)
        if match is not None:
            self._take(*match.span())
            return Superlative(measured_by_verb(match["verb"]), match["most"] is not None, words=match.group())
        match = pattern("done_most").search(self._left)
        if match is not None:
            self._take(*match.span())
            return Superlative((match["verb"],), match["most"] is not None, words=match.group(), counted=True)
        match = pattern("frequent").search(self._left)
        if match is not None:
            self._take(match.start(), match.start("noun"))
            return Superlative((match["noun"],), True, words=match.group(), counted=True, frequent=True)
        match = pattern("often").search(self._left)
        if match is not None:
            self._take(*match.span("most"))
            return Superlative((match["verb"],), True, words=match.group("most"), counted=True)
        match = pattern("most").search(self._left)
        if match is not None and match["noun"] not in FUNCTION_WORDS and match["noun"] not in ("recent", "recently"):
            adjective = adjectives().get(match["noun"])
            nouns = adjective.nouns if adjective is not None else measured_by(match["noun"])
            most = bool(match["most"]) != (adjective is not None and adjective.less)
            dates = adjective is not None and adjective.dates
            self._take(*match.span())
            nouns = self._by(nouns)
            return Superlative(nouns, most, _place(match["ordinal"]), dates, match.group(), counted=adjective is None)
        for match in pattern("superlative").finditer(self._left):
            adjective = superlative(match["word"].lower())
            if adjective is None:
                continue
            end = match.end("word")
            noun = match["noun"] or ""
            measured = tuple(load_lexicon("order")["units"].get(noun, ())) or ((noun,) if noun in _measures() else ())
            nouns = (*adjective.nouns, noun) if noun else adjective.nouns
            if match["of"]:  # the highest-priced
                nouns, end = (match["of"], *nouns), match.end()
            if measured:  # the largest population
                nouns, end = measured, match.end()
            self._take(match.start(), end)
            nouns = self._by(nouns)
            return Superlative(
                nouns, not adjective.less, _place(match["ordinal"]), adjective.dates, match.group("word")
            )
        return None

    @rule("several best", "what are the three longest rivers in {Peru}", lambda self: 1)
    def _size(self) -> int:
        """Read the number of best ones."""
        found = best_number(self._left)
        if found is None:
            return 1
        self._take(*found[1:])
        return found[0]

    def _ranked(self, order: Superlative | None, size: int) -> Superlative | None:
        """Return an order of several best ones: without another word, by the measure behind `by`."""
        if order is None:
            match = pattern("ranked").search(self._left)
            if match is None:
                return None
            noun = match["noun"] or match["end"]
            self._take(*match.span("noun" if match["noun"] else "end"))
            told = (word for word in noun.split() if word not in FUNCTION_WORDS)
            order = Superlative(tuple(dict.fromkeys((noun, *told))), True, words="top", counted=True)
        return replace(order, place=1, size=size, words=" ".join(order.words.removeprefix("the").split()))

    @rule("superlative of a property", "which film of {Tom} has the latest release date", lambda self, compared: None)
    def _having(self, compared: bool) -> Superlative | None:
        """Parse «has the latest start date»: the compared property, in words of the graph.

        One word may do if two are named.
        """
        match = pattern("having").search(self._left)
        most = None if match is None else greatest(match["word"])
        words = [] if match is None else match["phrase"].split()
        words = words[2:] if words[:2] in (["number", "of"], ["amount", "of"]) else words
        dates = words in (["year"], ["date"])
        if match is None or most is None or len(words) < 2 - (compared or dates):
            return None
        self._take(*match.span())
        told = (word for word in words if word not in FUNCTION_WORDS)
        nouns = tuple(dict.fromkeys((" ".join(words), *told)))
        return Superlative(nouns, most, dates=dates, words="" if compared else match["word"])

    @rule("measure of a superlative", "what is the largest country by area", lambda self, nouns: nouns)
    def _by(self, nouns: tuple[str, ...]) -> tuple[str, ...]:
        """Parse «by area», the compared property."""
        for match in pattern("by").finditer(self._left):
            noun = " ".join(match["noun"].split())
            if noun in _measures() or " " in noun:
                self._measure = match.span()
                return (noun,)
        return nouns

    @rule("first and last", "what was the first film of {Tom}", lambda self: None)
    def _by_time(self) -> Superlative | None:
        """Read first and last."""
        match = pattern("first").search(self._left)
        if match is None:
            return None
        after = self._left[match.end() :]
        event = pattern("event_before").search(self._left[: match.start()]) or pattern("event_after").search(after)
        self._take(*match.span())
        nouns = dated_by(event["event"]) if event is not None else ()
        birth = re.match(r"\s*(?:year\s+of\s+birth|date\s+of\s+birth|birth)", after)
        if birth is not None:
            nouns = dated_by("born")
            self._take(match.end(), match.end() + birth.end())
        if nouns == dated_by("born"):
            born = re.search(r"\b(?:was|were|is|to\s+be)?\s*born\b", self._left)
            if born is not None:
                self._take(*born.span())
        begins = match["first"] is not None or asked_part(self._whole) == "begin"
        edge: PeriodPart = "begin" if begins else "end"
        return Superlative(nouns, match["first"] is None, 1, True, match.group().strip(), edge)

    @rule("comparison of two mentions", "which is bigger, {Peru} or {Chile}", lambda self: None)
    def _compared(self) -> Superlative | None:
        """Parse «which is bigger, A or B»; its words are removed, since they mean nothing without the two."""
        verb = pattern("verb_more").search(self._left)
        if verb is not None:
            self._take(*verb.span())
            return Superlative(measured_by_verb(verb["verb"]), verb["more"] is not None)
        for match in pattern("comparative").finditer(self._left):
            if match["unit"]:
                self._take(*match.span())
                return Superlative(measured_by(" ".join(match["unit"].split())), match["amount"] == "more")
            adjective = adjectives().get(match["adjective"] or "") or comparative(match["word"] or "")
            if adjective is not None:
                noun = re.match(r"\s+(?P<noun>[a-z]+)", self._left[match.end() :])
                if noun is not None and noun["noun"] in _measures():  # the larger population
                    self._take(match.start(), match.end() + noun.end())
                    return Superlative((noun["noun"],), not adjective.less)
                self._take(*match.span())
                return Superlative(
                    adjective.nouns, adjective.less == (match["amount"] in ("less", "fewer")), 1, adjective.dates
                )
        several = pattern("several").search(self._left)
        if several is not None:
            self._take(*several.span("amount"))
            return Superlative((several["noun"],), several["amount"] == "more", counted=True)
        sooner = pattern("sooner").search(self._left)
        if sooner is not None:
            self._take(*sooner.span())
            nouns = dated_by(sooner["event"]) if sooner["event"] else ()
            return Superlative(nouns, sooner["way"] == "later", 1, dates=True)
        return None


class _ConstraintParser(_SuperlativeParser):
    """Parser of all constraints and aggregations of one question."""

    _says_or = False

    def constraints(self) -> QueryConstraints:
        """Parse one construct after the other: parsed words are not parsed again."""
        size = self._size()
        pairs = self._pair()
        following = self._next()
        thresholds = (*self._thresholds(), *self._than())
        order = self._having(bool(pairs)) or self._order()
        times = self._times()
        count, counted = self._count()
        if order is None and pairs:
            order = self._compared()
        if order is None and following is None:
            order = self._by_time()
        if size > 1:
            order = self._ranked(order, size)
            if order is not None and (ends := pattern("best_ends").search(self._left)):
                self._take(*ends.span())  # the first 3 products with the lowest price
        without, lacking = self._difference()
        self._qualify()
        union = pairs if pairs and self._says_or and (order is None or order.words) else ()
        if order is not None and pairs and not order.words:
            order = replace(order, words="compared")
        rest, verify, grouped = "".join(self._kept), self._verifies(), self._grouped(count, order)
        path = QueryConstraints(rest, count, counted, order, times, thresholds, following, without, lacking)
        return replace(path, union=union, verify=verify, grouped=grouped, measure=self._measure)

    @rule("groups", "how many films did each actor make", lambda self, count, order: "")
    def _grouped(self, count: str, order: Superlative | None) -> str:
        """Parse «the average price per city»: the noun of the groups of an aggregation."""
        match = pattern("grouped").search(self._whole)
        if match is None or not (count or order or pattern("aggregate").search(self._whole)):
            return ""
        # the largest by area, investigated by officers
        return match["noun"] or ("" if order or singular(match["by"]) != match["by"] else match["by"])

    @rule("pair of mentions", "which films star {Tom} or {Ann}", lambda self: ())
    def _pair(self) -> tuple[int, ...]:
        """Read «A or B» and «A and B»."""
        for name, says_or in (("either", True), ("pair", False)):
            found = pattern(name).search(self._left)
            if found is not None:
                one = self._mention_at(found.start("a"), found.end("a"))
                other = self._mention_at(found.start("b"), found.end("b"))
                if one is not None and other is not None:
                    self._says_or = says_or
                    return (one, other)
        return ()

    @rule("successor", "who was president after {Tom}", lambda self: None)
    def _next(self) -> SuccessorConstraint | None:
        """Read who comes next to a mention."""
        for name, step in (("year_after", 1), ("year_before", -1)):
            found = pattern(name).search(self._left)
            if found is not None and any(mention.start >= 0 for mention in self._mentions):
                starts = sorted((one.start, n) for n, one in enumerate(self._mentions) if one.start >= 0)
                order = [n for start, n in starts if start >= found.end() - 1]
                order += [n for start, n in starts if start < found.end() - 1]
                self._take(*found.span())
                return SuccessorConstraint(tuple(order), 1 if step > 0 else -1, 1, found.group())
        same = pattern("same").search(self._left)
        shared = pattern("shared").search(self._left)
        placed = [number for number, one in enumerate(self._mentions) if one.start >= 0]
        if placed and (same or (shared and len(placed) < 3)):
            found = same or shared
            assert found is not None
            if same:
                self._take(*same.span())
            return SuccessorConstraint((placed[-1] if same else placed[0],), 0, None, found.group())
        for name, step in (("next", 1), ("previous", -1)):
            found = pattern(name).search(self._left)
            if found is not None:
                mention = self._mention_at(*found.span())
                if mention is not None:
                    self._take(*found.span())
                    return SuccessorConstraint((mention,), 1 if step > 0 else -1, None, found.group())
        return None

    @rule("threshold", "which cities of {Peru} have more than 100,000 inhabitants", lambda self: ())
    def _thresholds(self) -> tuple[Threshold, ...]:
        """Read numbers that something has to be above or below."""
        found = []
        order = load_lexicon("order")
        for match in pattern("threshold").finditer(self._left):
            number = number_value(match["number"])
            adjective = comparative(match["word"]) if match["word"] else None
            unit = (match["unit"] or "").lower()
            dated = not unit or unit in SILENT
            if number is None or (match["word"] and adjective is None) or (dated and _YEAR.fullmatch(match["number"])):
                continue
            before = self._word_before(match.start())
            nouns: tuple[str, ...] = tuple(order["units"].get(" ".join(unit.split()), ()))
            end = match.end()
            if unit and not nouns and (unit in SILENT):
                end, unit = match.start("unit"), ""
            if not nouns and unit:
                nouns = (unit,)
            if adjective is not None and not nouns:
                nouns = adjective.nouns
            if adjective is not None and nouns and set(nouns) & set(adjective.nouns):
                nouns = tuple(noun for noun in nouns if noun in adjective.nouns)
            if not nouns:
                nouns = (before,) if before else ()
            more = bool(match["more"]) or (adjective is not None and not adjective.less)
            if adjective is not None and adjective.dates and number < _LIMITS.age:  # older than 30
                nouns, more = ("age",), adjective.less
            said = self._left[match.start() : end]
            found.append(Threshold(nouns, more, number, words=said.strip()))
            self._take(match.start(), end)
        return tuple(found)

    @rule("comparison with a mention", "which countries are larger than {Peru}", lambda self: ())
    def _than(self) -> tuple[Threshold, ...]:
        """Read «larger than Austria»."""
        match = pattern("than").search(self._left)
        if match is None:
            return ()
        adjective = adjectives().get(match["adjective"] or "") or comparative(match["word"] or "")
        mention = self._mention_at(match.start("named"), match.end("named"))
        if adjective is None or mention is None:
            return ()
        self._take(match.start(), match.start("named"))
        return (Threshold(adjective.nouns, not adjective.less, 0.0, mention, adjective.dates, match.group()),)

    @rule("dates", "which films of {Tom} came out after 1990", lambda self: ())
    def _times(self) -> tuple[TemporalConstraint, ...]:
        """Parse dates and their relations."""
        found: list[TemporalConstraint] = []
        for name in ("between", "years"):
            for match in pattern(name).finditer(self._left):
                found.append(self._test(match, _iso(match["a"]), _iso(match["b"])))
        for match in pattern("before").finditer(self._left):
            if match["until"] or match["before"]:
                found.append(self._test(match, None, _iso(match["a"]), strict=bool(match["before"])))
        for match in pattern("after").finditer(self._left):
            if match["since"] or match["after"]:
                found.append(self._test(match, _iso(match["a"]), None, strict=bool(match["after"])))
        for match in pattern("at").finditer(self._left):
            date = _iso(match["a"])
            decade = match["a"].endswith("s")
            found.append(self._test(match, date, f"{int(date) + 9}" if decade and date else date))
        return tuple(found) or self._event()

    @rule("time of an event", "who led {Peru} when {Tom} won {Heat}", lambda self: ())
    def _event(self) -> tuple[TemporalConstraint, ...]:
        """Read the time of an event: `who was president when Ada joined Acme`."""
        match = pattern("when").search(self._left)
        if match is None:
            return ()
        others = WORD.findall(f"{self._left[: match.start()]} {self._left[match.end() :]}".replace(HIDDEN, " "))
        if QUESTION_WORDS.isdisjoint(others) or set(others) <= SILENT:
            return ()
        start, end = match.span()
        mentions = tuple(number for number, one in enumerate(self._mentions) if start <= one.start and one.end <= end)
        near = " ".join(word for word in WORD.findall(match["event"]) if word not in FUNCTION_WORDS)
        self._take(start, end)
        return (TemporalConstraint(None, None, near=near, words=self._text[start:end].strip(), mentions=mentions),)

    def _test(
        self, match: re.Match[str], first: str | None, last: str | None, strict: bool = False
    ) -> TemporalConstraint:
        edge = asked_part(self._whole)
        near = self._word_before(match.start())
        if near == "born":
            edge = "any"
            born = re.search(r"\b(?:was\s+|were\s+)?born\s*$", self._left[: match.start()])
            if born is not None:
                self._take(*born.span())
        having = pattern("of_date").search(self._left[: match.start()])
        self._take(match.start() if having is None else having.start(), match.end())
        return TemporalConstraint(first, last, edge, near, strict, words=" ".join(match.group().split()))

    @rule("count", "how many films did {Tom} direct", lambda self: ("", ""))
    def _count(self) -> tuple[str, str]:
        """Parse the words of a count."""
        match = pattern("count").search(self._left)
        compared = match is not None and match.group()[:3] != "how"
        if match is None or (compared and _COMPARED_BY.search(self._left[: match.start()])):
            return "", ""
        words = WORD.findall(self._left[match.end() :])
        counted = next((word for word in words if word not in FUNCTION_WORDS), "")
        units = load_lexicon("order")["units"]
        counted = next((unit for unit in (" ".join(words[:2]), counted) if unit in units), counted)
        self._take(match.start(), match.end(), "which")
        return " ".join(match.group().split()), counted

    @rule("yes or no", "did {Tom} direct {Heat}", lambda self: False)
    def _verifies(self) -> bool:
        """Read «is A … B»."""
        placed = sum(mention.start >= 0 for mention in self._mentions)
        return placed == 2 and pattern("verifying").match(self._whole) is not None

    @rule("qualification at the end", "where was {Tom} born, by today's borders", lambda self: False)
    def _qualify(self) -> bool:
        """Remove a last phrase that qualifies the whole question and leads nowhere: `…, by today's borders`."""
        match = pattern("qualified").search(self._left)
        if match is None or QUESTION_WORDS.isdisjoint(WORD.findall(self._whole[: match.start()])):
            return False
        self._take(*match.span())
        return True

    def _until_other(self, start: int, last: int) -> int:
        """Return the end of the words about a mention: at the clause's end, or before another mention."""
        return min([last, *(one.start for one in self._mentions if start <= one.start)])

    @rule("difference", "which countries border {Peru} but not {Chile}", lambda self: ((), ""))
    def _difference(self) -> tuple[tuple[int, ...], str]:
        """Parse a subtrahend: mentions, or a negated property."""
        clauses = [(clause.start(), clause.end()) for clause in re.finditer(r"[^,;?]+", self._left)]
        taken: list[int] = []
        for name in ("without", "negation"):
            for match in pattern(name).finditer(self._left):
                if _FORBIDDING.search(self._left[: match.start()]):  # what must not be is nothing to take away
                    continue
                first, last = next(((a, b) for a, b in clauses if a <= match.start() < b), (0, len(self._left)))
                after = [n for n, one in enumerate(self._mentions) if match.end() <= one.start and one.end <= last]
                before = [n for n, one in enumerate(self._mentions) if first <= one.start and one.end <= match.start()]
                before = before if name == "negation" else []
                mention = after[0] if after else before[-1] if before else None
                if mention is not None and mention not in taken:
                    taken.append(mention)
                    own = self._mentions[mention]
                    if name == "without":
                        self._take(*match.span())
                    if own.start >= match.end():  # words about it are not about the answer
                        self._take(match.start(), own.end)
                        self._take(own.end, self._until_other(own.end, last))
                    else:
                        self._take(own.start, last)
        lacking = ""
        thing = pattern("no").search(self._left) or pattern("not_done").search(self._left)
        if thing is not None and not taken:
            match = thing
            words = [word for word in match["thing"].split() if word not in FUNCTION_WORDS and word != "single"]
            if words:
                lacking = " ".join(words)
                rest = re.match(
                    r"\s*(?:on\s+land|by\s+land|with\s+any\s+others?(?:\s+[a-z]+)?|any\s+others?(?:\s+[a-z]+)?|another(?:\s+[a-z]+)?|at\s+all|of\s+(?:its|their)\s+own|\s+)*",
                    self._left[match.end() :],
                )
                end = match.end() + (rest.end() if rest else 0)
                self._take(match.start(), end)
        return tuple(taken), lacking


_FORBIDDING = re.compile(rf"\b(?:{'|'.join(sorted(FORBIDDING))})\s*$", re.IGNORECASE)


@cache
def _measures() -> frozenset[str]:
    """Return all nouns that name a measure."""
    order = load_lexicon("order")
    named = {noun for group in order["adjective"] for noun in group["nouns"]}
    return frozenset(named | {noun for nouns in order["units"].values() for noun in nouns} | {"surface"})


def _place(ordinal: str | None) -> int:
    return 1 if not ordinal else int(load_lexicon("order")["ordinals"][ordinal.lower()])


def _iso(text: str) -> str | None:
    """Return a date as ISO 8601, of the given precision."""
    plain = " ".join(text.split()).removesuffix("s") if re.fullmatch(r"\d{4}s", text) else " ".join(text.split())
    literal = read_literal(plain)
    return None if literal is None else str(literal.value)


_ASKS_WHEN = re.compile(
    r"\W*(?:(?:in|on|at|by|since|until|from|and)\s+)?(?P<asks>when|(?:which|what)\s+(?:year|date|day|month))\b"
    r"(?!.*[,;]\s*(?:who|whom|whose|which|what|where|how)\b)",
    re.IGNORECASE,
)
_ASKS_LAST = re.compile(r"\b(?P<asks>when|(?:in\s+)?(?:which|what)\s+year)\W*$", re.IGNORECASE)
_ASKS_NUMBER = re.compile(r"\W*(?:[a-z]+\W+){0,3}?(?P<asks>how\s+(?:many|much))\b", re.IGNORECASE)


@rule("literal answer", "how many people live in {Paris}", lambda text, mentions: ("", ""))
def expected_literal(text: str, mentions: Sequence[Mention]) -> tuple[Literal["", "date", "number"], str]:
    """Return the words of a question for a date or a number: `when`, `how many`; empty for another question."""
    hidden = list(text)
    for one in mentions:
        if one.start >= 0:
            hidden[one.start : one.end] = HIDDEN * (one.end - one.start)
    plain = "".join(hidden)[: _LIMITS.characters]
    if found := _ASKS_WHEN.match(plain) or _ASKS_LAST.search(plain):
        return "date", " ".join(found["asks"].casefold().split())
    if found := _ASKS_NUMBER.match(plain):
        return "number", " ".join(found["asks"].casefold().split())
    return "", ""


@cached(1 << 8)
def parse_path_question(
    text: str, mentions: tuple[Mention, ...], known: Callable[[str], bool] | None = None
) -> ParsedQuestion:
    """Parse the rest of a question as a path question; `known` is as for `parse_question`."""
    missing = [mention.text for mention in mentions if mention.start < 0]
    return parse_question(parse_constraints(text, mentions).path_text, mentions, missing, known)
