"""Questions in English for walks through a graph, from relation labels and node types.

`labels` gives the nouns and verbs, which become noun phrases and questions here. Steps nest as phrases (`the capital of
the country that borders Chad`). A verb whose subject has a clause of its own is hard to read (`that the river that
flows into Lake Chad flows through`); there the known part comes first: `Given the river that flows into Lake Chad,
which countries does it flow through?`
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache

from byokg.evaluation.datasets.labels import RelationPhrases, article, many, plural, read_label, words_of
from byokg.graph.store import Schema

_PEOPLE = frozenset("person people actor director author artist laureate politician player".split())
_AMOUNTS = frozenset("assets coordinates costs earnings expenses losses profits revenues savings wages".split())


@dataclass(frozen=True)
class RelationStep:
    """One relation walked from head to tail, or back."""

    number: int
    label: str
    inverse: bool


@dataclass(frozen=True)
class _Phrase:
    """Words for what some steps lead to."""

    head: str
    """A name or pronoun, or an article and a noun."""
    tail: str = ""
    """Modifier after the noun: `of Chad`, `that borders Chad`."""
    several: bool = False
    clauses: int = 0
    """Verbs that stand in it."""
    name: bool = False
    """Whether it is the name of a node."""
    open: bool = False
    """Whether it ends with a verb that its object went before: `the country that Chad borders`."""

    def __str__(self) -> str:
        return f"{self.head} {self.tail}" if self.tail else self.head


class Phrases:
    """Words for walks through one graph.

    Args:
        schema: relations with the node types at their ends.
        dates: relations and properties whose values are dates.
    """

    def __init__(self, schema: Schema, dates: Collection[str] = ()) -> None:
        self._relations = schema.relations_by_name
        self._dates = frozenset(dates)
        self._said = cache(self._read_phrases)

    def sayable(self, label: str) -> bool:
        """True if the words of a label make sense by themselves: False for `is_a_category`."""
        return self._said(label).sayable

    def domain(self, label: str) -> str:
        """Return the noun for the heads of a relation, from schema or label; empty if unknown."""
        return self._said(label).domain

    def _read_phrases(self, label: str) -> RelationPhrases:
        relation = self._relations.get(label)
        domain = range_ = ""
        if relation is not None:
            domain, range_ = (words_of(ends[0]) if len(ends) == 1 else "" for ends in (relation.domain, relation.range))
        return read_label(label, domain, range_, label in self._dates)

    def _kind(self, noun: str, plurals: bool) -> str:
        return plural(noun or "thing") if plurals else noun or "thing"

    # Phrases

    def _next(self, start: _Phrase, step: RelationStep, plurals: bool, first: bool = False) -> _Phrase:
        """Return a noun phrase for the ends of a step from another phrase."""
        said = self._said(step.label)
        if first and not step.inverse and not said.verb:
            noun = plural(said.noun) if plurals else said.noun
            return _Phrase(f"{_possessive(start.head)} {noun}", "", plurals or many(noun))
        return self._about(start, step, plurals)

    def _about(self, start: _Phrase, step: RelationStep, plurals: bool, whole: bool = False) -> _Phrase:
        """Return a noun phrase of a noun and its modifier.

        With `whole`, the modifier is a whole clause: `that is located in` in place of `located in`.
        """
        said, verb = self._said(step.label), self._said(step.label).verb
        if not step.inverse:
            if verb is None or (said.noun and start.clauses):
                noun = plural(said.noun) if plurals else said.noun
                return replace(start, head=f"the {noun}", tail=f"of {start}", several=plurals or many(noun), name=False)
            kind = f"the {self._kind(said.range, plurals)}"
            what = f"that {start} {verb.several if start.several else verb.one}"
            return _Phrase(kind, what, plurals, start.clauses + 1, open=True)
        kind = f"the {self._kind(said.domain, plurals)}"
        if verb is None:
            among = many(said.noun) or start.several
            what = f"whose {plural(said.noun)} include {start}" if among else f"whose {said.noun} is {start}"
        else:
            what = verb.behind if verb.behind and not whole else f"that {verb.several if plurals else verb.one}"
            what += f" {_object(start, said)}"
        return _Phrase(kind, what, plurals, start.clauses + 1, open=start.open)

    # Questions

    def _last(self, start: _Phrase, step: RelationStep, answers: int, given: Sequence[_Phrase] = ()) -> tuple[str, ...]:
        """Return questions for the ends of one step from the given phrase."""
        said, plurals = self._said(step.label), answers > 1
        named = _given(f"Name {self._next(start, step, plurals)}.", given)
        if step.inverse:
            return (_given(self._which_head(start, said, plurals), given), named)
        if said.verb is None:
            found = self._next(start, step, plurals)
            who = "Who" if any(word in _PEOPLE for word in said.noun.split()) else "What"
            return (_given(f"{who} {'are' if found.several else 'is'} {found}?", given), named)
        more = (*given, start)
        if start.clauses:
            named = _given(f"Name {self._about(_pronoun(more), step, plurals)}.", more)
        noun = said.verb.rest[0].startswith(("a ", "an ", "the "))
        if start.open or start.clauses > 1 or (start.clauses and noun):
            return (_given(self._which_tail(_pronoun(more), said, plurals), more), named)
        return (_given(self._which_tail(start, said, plurals), given), named)

    def _which_tail(self, start: _Phrase, said: RelationPhrases, plurals: bool) -> str:
        """Ask for the object of a verb."""
        assert said.verb is not None
        what = f"Which {self._kind(said.range, plurals)}" if said.range else "What"
        return f"{what} {said.verb.auxiliaries[start.several]} {start} {said.verb.rest[start.several]}?"

    def _which_head(self, start: _Phrase, said: RelationPhrases, plurals: bool) -> str:
        """Return questions for the subject of a verb, or for the owner of a noun."""
        kind = self._kind(said.domain, plurals)
        if kind in ("person", "people"):
            return f"Who {self._predicate(start, said, False, plurals)}?"
        if said.domain:
            return f"Which {kind} {self._predicate(start, said, plurals, plurals)}?"
        return f"What {self._predicate(start, said, False, False)}?"

    def _predicate(self, start: _Phrase, said: RelationPhrases, several: bool, plurals: bool) -> str:
        """Return the predicate of heads, in the plural if there are several."""
        if said.verb is not None:
            return f"{said.verb.several if several else said.verb.one} {_object(start, said)}"
        has = "have" if several else "has"
        among = many(said.noun) or start.several
        its = "their" if plurals else "its"
        its = f"among {its} {plural(said.noun)}" if among else f"as {its} {said.noun}"
        return f"{has} {its} {start}" if start.open else f"{has} {start} {its}"

    def chain(self, name: str, steps: Sequence[RelationStep], answers: int) -> tuple[str, ...]:
        """Return questions for the ends of some steps from a node of this name."""
        inner, given = _Phrase(name, name=True), []
        for place, step in enumerate(steps[:-1]):
            said = self._said(step.label)
            if not step.inverse and said.verb and not said.noun and inner.clauses:
                given.append(inner)
                inner = _pronoun(given)
            inner = self._next(inner, step, plurals=False, first=place == 0)
        return self._last(inner, steps[-1], answers, given)

    def conjunction(
        self, one: tuple[str, RelationStep], two: tuple[str, RelationStep], answers: int
    ) -> tuple[str, ...]:
        """Return questions for what two steps lead to, each from its own node."""
        plurals = answers > 1
        if one[1] == two[1]:
            if not one[1].inverse:
                return self._shared(one, two, plurals)
            said = self._said(one[1].label)
            left, right = (_object(_Phrase(name, name=True), said) for name, _ in (one, two))
            denied = said.verb is not None and re.search(r"\b(can)?not ", said.verb.one)
            both = _Phrase(f"either {left} or {right}" if denied else f"both {left} and {right}", several=True)
            return self._last(both, one[1], answers)
        starts = [(_Phrase(name, name=True), step) for name, step in (one, two)]
        here, there = (self._about(*start, plurals) for start in starts)
        things = f"the {self._kind('', plurals)}"
        relative = not any(part.tail.startswith("of ") for part in (here, there))
        are = "are" if plurals else "is"
        if here.head == there.head or (relative and things in (here.head, there.head)):
            head = there.head if here.head == things else here.head
            if any(part.tail.startswith(("that ", "whose ")) for part in (here, there)):
                here, there = (self._about(*start, plurals, whole=True) for start in starts)
            who = "Who" if head in ("the person", "the people") else "What"
            noun = f"{head} {here.tail} and {there.tail}"
            return (f"{who} {are} {noun}?", f"Name {noun}.")
        are = "are" if here.several and there.several else "is"
        they = "are" if here.several else "is"
        return (f"What {are} both {here} and {there}?", f"Name {here} that {they} also {there}.")

    def _shared(self, one: tuple[str, RelationStep], two: tuple[str, RelationStep], plurals: bool) -> tuple[str, ...]:
        said = self._said(one[1].label)
        names = f"{one[0]} and {two[0]}"
        if said.verb is None:
            return (f"Which {said.noun} do {names} share?", f"Name the {said.noun} that {names} have in common.")
        both = _Phrase(f"both {names}", several=True)
        noun = f"the {self._kind(said.range, plurals)} that {both} {said.verb.several}"
        return (self._which_tail(both, said, plurals), f"Name {noun}.")

    def count(self, name: str, step: RelationStep) -> tuple[str, ...]:
        """Return questions for how many nodes a step leads to."""
        said, start = self._said(step.label), _Phrase(name, name=True)
        noun = str(self._next(start, step, plurals=True))
        second = f"What is the number of {noun.removeprefix('the ')}?"
        if step.inverse:
            kinds = self._kind(said.domain, True)
            return (f"How many {kinds} {self._predicate(start, said, True, True)}?", second)
        if said.verb is None:
            return (f"How many {plural(said.noun)} does {name} have?", second)
        asked = self._which_tail(start, replace(said, range=said.range or "thing"), True)
        return (f"How many {asked.removeprefix('Which ')}", second)

    def _measure(self, label: str, dated: bool) -> str:
        """Return the words of a value, without its unit: `length_km` is `length`."""
        said = self._said(label)
        words = said.noun or (f"date {words_of(label)}" if dated else words_of(label))
        return re.sub(r" (km2|m2|km|cm|mm|m|kg|ft|mi)$", "", re.sub(r"((date|year|time)) date$", r"\1", words))

    def by_value(
        self, name: str, step: RelationStep, measure: str, dated: bool, reduce: str, answers: int
    ) -> tuple[str, ...]:
        """Return questions for those among several nodes whose value is an extreme, or after or before a year."""
        value = self._measure(measure, dated)
        group = self._next(_Phrase(name, name=True), step, plurals=True)
        if reduce in ("greatest", "least"):
            most = f"{_extreme(reduce, dated)[1]} {_counted(value)}"
            return (f"Which of {group} has the {most}?", f"Of {group}, which has the {most}?")
        word, _, year = reduce.partition(" ")
        have = "have" if answers > 1 else "has"
        later = "later" if word == "after" else "earlier"
        return (
            f"Which of {group} {have} {article(value)} {value} {word} {year}?",
            f"Of {group}, which {have} {article(value)} {value} {later} than {year}?",
        )

    def comparison(self, names: tuple[str, str], measure: str, dated: bool, reduce: str) -> tuple[str, ...]:
        """Return questions for which of two nodes has the larger or smaller value."""
        value, more = _counted(self._measure(measure, dated)), _extreme(reduce, dated)[0]
        one, two = names
        return (f"Which has the {more} {value}, {one} or {two}?", f"Of {one} and {two}, which has the {more} {value}?")


def _object(phrase: _Phrase, said: RelationPhrases) -> str:
    """Return the object of a verb with the label's noun: `the city Rome`, `the city that borders Ostia`."""
    if phrase.name and said.named:
        return f"{said.named} {phrase}"
    if not said.named or phrase.head == f"the {said.range}" or phrase.head.startswith(("both ", "either ")):
        return str(phrase)
    if phrase.head == "the thing":
        return str(replace(phrase, head=f"the {said.range}"))
    return f"the {said.range} that is {phrase}"


def _extreme(reduce: str, dated: bool) -> tuple[str, str]:
    if dated:
        return ("later", "latest") if reduce == "greatest" else ("earlier", "earliest")
    return ("greater", "greatest") if reduce == "greatest" else ("smaller", "smallest")


def _counted(value: str) -> str:
    """Return the counted form of a plural noun: `number of units in stock`."""
    return f"number of {value}" if many(value) and value.split()[0] not in _AMOUNTS else value


def _possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def _pronoun(given: Sequence[_Phrase]) -> _Phrase:
    """Return the pronoun for the last given phrase."""
    last = given[-1]
    word = "the latter" if len(given) > 1 else "they" if last.several else "it"
    return _Phrase("this person" if last.head == "the person" and len(given) == 1 else word, several=last.several)


def _given(text: str, given: Sequence[_Phrase]) -> str:
    """Put the given phrase before a question; of two, the second is marked as another one."""
    if not given:
        return text
    first, *others = map(str, given)
    known = [first, *(re.sub(r"\bthat (it|they|this person) ", "that the former ", other, count=1) for other in others)]
    return f"Given {' and '.join(known)}, {text[0].lower()}{text[1:]}"
