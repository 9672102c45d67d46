"""Puts a walk through a graph into English words, from the labels of its relations and the types of its nodes.

A label is read as a noun (`capital`, `place_of_birth`, `has_genre`), as what is done to a thing (`directed_by`,
`located_in`, `part_of`), as what it does (`flows_into`), or as what it did (`won`). Of dotted labels as Freebase has
them (`film.film.directed_by`) the last part is read, and the part before says what such things are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from byokg.graph.store import Schema
from byokg.text import split_label

_PREPOSITIONS = frozenset("by in to into from of at for with on through under after about as".split())
_DONE = frozenset("won led made wrote held met ran built founded born held taught".split())
_DOES = frozenset(
    "borders knows likes owns contains includes plays speaks uses leads causes treats produces follows precedes cites "
    "writes teaches affects manages employs requires inhibits".split()
)
_PEOPLE = frozenset("person people actor director author artist laureate politician player".split())
_UNCOUNTED = frozenset("people children members series species genus fauna flora".split())

Reading = Literal["noun", "done", "does", "did"]


@dataclass(frozen=True)
class Step:
    """One relation walked from head to tail, or back."""

    number: int
    label: str
    inverse: bool


@dataclass(frozen=True)
class _Said:
    """How a relation is said."""

    reading: Reading
    words: str
    domain: str
    """What its heads are: `film`; empty if nothing is known."""
    range: str


def plural(noun: str) -> str:
    """Return the plural of a noun phrase: `place of birth` gives `places of birth`."""
    head, of, rest = noun.partition(" of ")
    first, _, last = head.rpartition(" ")
    if not many(head) and not last.endswith("ed"):
        if last == "person":
            last = "people"
        elif last == "child":
            last = "children"
        elif last.endswith("y") and last[-2:-1] not in "aeiou":
            last = f"{last[:-1]}ies"
        elif last.endswith(("s", "x", "z", "ch", "sh")) and not last.endswith("arch"):
            last = f"{last}es"
        else:
            last = f"{last}s"
    return f"{first} {last}".strip() + of + rest


def many(noun: str) -> bool:
    """Tell whether a noun phrase looks like a plural."""
    head = noun.partition(" of ")[0].rpartition(" ")[2]
    return head in _UNCOUNTED or (head.endswith("s") and not head.endswith(("ss", "us", "is")))


class Phrases:
    """Words for walks through one graph.

    Args:
        schema: relations with the node types at their ends.
    """

    def __init__(self, schema: Schema) -> None:
        self._relations = {relation.name: relation for relation in schema.relations}
        self._said = cache(self._read)

    def sayable(self, label: str) -> bool:
        """Tell whether a label has words that make sense by themselves: not `to_president`, nor digits alone."""
        words = self._said(label).words.split()
        return bool(words) and words[0] not in _PREPOSITIONS and any(map(str.isalpha, words))

    def domain(self, label: str) -> str:
        """Return what the heads of a relation are, as far as schema or label say; empty for nothing."""
        return self._said(label).domain

    def _read(self, label: str) -> _Said:
        relation = self._relations.get(label)
        dotted = re.fullmatch(r"\w+(\.\w+){2,}", label) is not None
        parts = re.split(r"[./#:]", label.rstrip("/#"))
        domain = range_ = ""
        if relation is not None:
            domain, range_ = (_words(ends[0]) if len(ends) == 1 else "" for ends in (relation.domain, relation.range))
        if not domain and dotted:
            domain = _words(parts[-2])
        words = _words(parts[-1]) or label
        first, _, last = words.rpartition(" ")
        begins = words.split()[0]
        if begins in ("has", "have", "in", "of", "with") and first:
            return _Said("noun", words.partition(" ")[2], domain, range_)
        if begins in _DOES and not first:
            return _Said("does", words, domain, range_)
        if last in _PREPOSITIONS and first:
            does = begins.endswith("s") and not begins.endswith("ss") and len(words.split()) == 2
            return _Said("does" if does else "done", words, domain, range_)
        if last in _DONE or (not first and last.endswith("ed")):
            return _Said("did", words, domain, range_)
        return _Said("noun", words, domain, range_)

    def _kind(self, noun: str, plurals: bool) -> str:
        return plural(noun or "thing") if plurals else noun or "thing"

    def _noun(self, name: str, step: Step, plurals: bool, first: bool = False) -> str:
        """Return a noun phrase for where a step leads from what another phrase names."""
        said = self._said(step.label)
        if first and not step.inverse and said.reading == "noun":
            return f"{_possessive(name)} {plural(said.words) if plurals else said.words}"
        return " ".join(self._parts(name, step, plurals))

    def _parts(self, name: str, step: Step, plurals: bool) -> tuple[str, str]:
        """Return a noun phrase as what it is about, and what is said of that."""
        said = self._said(step.label)
        words = said.words
        if not step.inverse:
            if said.reading == "noun":
                return f"the {plural(words) if plurals else words}", f"of {name}"
            verb = _being(_without(said.domain, words), False) if said.reading == "done" else words
            return f"the {self._kind(said.range, plurals)}", f"that {name} {verb}"
        kind = f"the {self._kind(said.domain, plurals)}"
        if said.reading == "noun":
            return kind, f"whose {words} {'include' if many(words) else 'is'} {name}"
        if said.reading == "done":
            if (rest := _without(said.domain, words)) != words:
                return kind, f"{rest} {name}"
            return kind, f"{words if not words.endswith(' of') else 'that ' + _being(words, plurals)} {name}"
        return kind, f"that {_base(words) if plurals and said.reading == 'does' else words} {name}"

    def _last(self, name: str, step: Step, answers: int) -> tuple[str, ...]:
        """Return questions for where one step leads."""
        said, plurals = self._said(step.label), answers > 1
        words = said.words
        noun = self._noun(name, step, plurals)
        are = "are" if plurals or (not step.inverse and said.reading == "noun" and many(words)) else "is"
        if not step.inverse:
            if said.reading == "noun":
                who = "Who" if any(word in _PEOPLE for word in words.split()) else "What"
                return (f"{who} {are} {noun}?", f"Name {noun}.")
            what = f"Which {plural(said.range) if plurals else said.range}" if said.range else "What"
            if said.reading == "done":
                is_, _, rest = _being(_without(said.domain, words), False).partition(" ")
                return (f"{what} {is_} {name} {rest}?", f"Name {noun}.")
            if said.reading == "does":
                return (f"{what} does {name} {_base(words)}?", f"Name {noun}.")
            return (f"{what} has {name} {words}?", f"Name {noun}.")
        kind = self._kind(said.domain, plurals)
        which = "Who" if kind in ("person", "people") else f"Which {kind}" if said.domain else "What"
        have = "have" if plurals and which != "Who" else "has"
        if said.reading == "noun":
            their = "their" if plurals else "its"
            its = f"among {their} {words}" if many(words) else f"as {their} {words}"
            return (f"{which} {have} {name} {its}?", f"Name {noun}.")
        if said.reading == "done":
            several = plurals and which != "Who"
            return (f"{which} {_being(_without(said.domain, words), several)} {name}?", f"Name {noun}.")
        verb = _base(words) if plurals and which.startswith("Which") and said.reading == "does" else words
        return (f"{which} {verb} {name}?", f"Name {noun}.")

    def chain(self, name: str, steps: Sequence[Step], answers: int) -> tuple[str, ...]:
        """Return questions that ask where some steps lead from a node of this name."""
        inner = name
        for place, step in enumerate(steps[:-1]):
            inner = self._noun(inner, step, plurals=False, first=place == 0)
        return self._last(inner, steps[-1], answers)

    def conjunction(self, one: tuple[str, Step], two: tuple[str, Step], answers: int) -> tuple[str, ...]:
        """Return questions for what two steps lead to, each from its own node."""
        are = "are" if answers > 1 else "is"
        if one[1] == two[1]:
            return (
                self._last(f"both {one[0]} and {two[0]}", one[1], answers) if one[1].inverse else self._shared(one, two)
            )
        left, right = self._parts(*one, answers > 1), self._parts(*two, answers > 1)
        things = f"the {self._kind('', answers > 1)}"
        relative = not any(part[1].startswith("of ") for part in (left, right))
        if left[0] == right[0] or (relative and things in (left[0], right[0])):
            noun = f"{right[0] if left[0] == things else left[0]} {left[1]} and {right[1]}"
            return (f"What {are} {noun}?", f"Name {noun}.")
        here, there = " ".join(left), " ".join(right)
        return (f"What {are} both {here} and {there}?", f"Name {here} that {are} also {there}.")

    def _shared(self, one: tuple[str, Step], two: tuple[str, Step]) -> tuple[str, ...]:
        said = self._said(one[1].label)
        names = f"{one[0]} and {two[0]}"
        if said.reading == "noun":
            return (f"Which {said.words} do {names} share?", f"Name the {said.words} that {names} have in common.")
        what = f"Which {said.range}" if said.range else "What"
        if said.reading == "done":
            return (
                f"{what} are both {names} {said.words}?",
                f"Name the {said.range or 'thing'} that {names} are {said.words}.",
            )
        verb = _base(said.words) if said.reading == "does" else said.words
        return (
            f"{what} do both {names} {verb}?" if said.reading == "does" else f"{what} have both {names} {verb}?",
            f"Name the {said.range or 'thing'} that both {names} {verb}.",
        )

    def count(self, name: str, step: Step) -> tuple[str, ...]:
        """Return questions for how many nodes a step leads to."""
        said = self._said(step.label)
        noun = self._noun(name, step, plurals=True)
        second = f"What is the number of {noun.removeprefix('the ')}?"
        if not step.inverse:
            if said.reading == "noun":
                return (f"How many {plural(said.words)} does {name} have?", second)
            things = plural(said.range or "thing")
            if said.reading == "done":
                is_, _, rest = _being(said.words, False).partition(" ")
                return (f"How many {things} {is_} {name} {rest}?", second)
            if said.reading == "does":
                return (f"How many {things} does {name} {_base(said.words)}?", second)
            return (f"How many {things} has {name} {said.words}?", second)
        kinds = self._kind(said.domain, plurals=True)
        if said.reading == "noun":
            its = f"among their {said.words}" if many(said.words) else f"as their {said.words}"
            return (f"How many {kinds} have {name} {its}?", second)
        if said.reading == "done":
            return (f"How many {kinds} {_being(_without(said.domain, said.words), True)} {name}?", second)
        return (f"How many {kinds} {_base(said.words) if said.reading == 'does' else said.words} {name}?", second)

    def _measure(self, label: str, dated: bool) -> str:
        """Return the words of a value, without its unit: `length_km` is `length`."""
        if self._said(label).reading == "did":
            return f"date {self._said(label).words}" if dated else self._said(label).words
        return re.sub(
            r" (km2|m2|km|cm|mm|m|kg|ft|mi)$", "", re.sub(r"((date|year|time)) date$", r"\1", self._said(label).words)
        )

    def by_value(self, name: str, step: Step, measure: str, dated: bool, reduce: str, answers: int) -> tuple[str, ...]:
        """Return questions for those among several nodes whose value is an extreme, or after or before a year."""
        value = self._measure(measure, dated)
        group = self._noun(name, step, plurals=True)
        if reduce in ("greatest", "least"):
            extreme = _extreme(reduce, dated)[1]
            return (f"Which of {group} has the {extreme} {value}?", f"Of {group}, which has the {extreme} {value}?")
        word, _, year = reduce.partition(" ")
        have = "have" if answers > 1 else "has"
        later = "later" if word == "after" else "earlier"
        return (
            f"Which of {group} {have} {_article(value)} {value} {word} {year}?",
            f"Of {group}, which {have} {_article(value)} {value} {later} than {year}?",
        )

    def comparison(self, names: tuple[str, str], measure: str, dated: bool, reduce: str) -> tuple[str, ...]:
        """Return questions for which of two nodes has the larger or smaller value."""
        value, more = self._measure(measure, dated), _extreme(reduce, dated)[0]
        one, two = names
        return (f"Which has the {more} {value}, {one} or {two}?", f"Of {one} and {two}, which has the {more} {value}?")


def _being(words: str, plurals: bool) -> str:
    """Return what is said of something with a form of `be`: `is located in`, `are tributaries of`, `is part of`."""
    noun, _, rest = words.partition(" of")
    if not words.endswith(" of") or " " in noun or noun in ("part", "head") or noun.endswith("ed") or rest.strip():
        return f"{'are' if plurals else 'is'} {words}"
    return f"are {plural(noun)} of" if plurals else f"is {_article(noun)} {noun} of"


def _without(kind: str, words: str) -> str:
    """Leave out that a lake is a lake: of what is `lake in` a country, `in` is enough."""
    begins, _, rest = words.partition(" ")
    return rest if begins == kind.rpartition(" ")[2] and rest != "of" else words


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" else "a"


def _extreme(reduce: str, dated: bool) -> tuple[str, str]:
    if dated:
        return ("later", "latest") if reduce == "greatest" else ("earlier", "earliest")
    return ("greater", "greatest") if reduce == "greatest" else ("smaller", "smallest")


def _possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def _base(words: str) -> str:
    """Return a verb without its ending: `flows into` gives `flow into`."""
    verb, space, rest = words.partition(" ")
    verb = f"{verb[:-3]}y" if verb.endswith("ies") else verb[:-1] if verb.endswith("s") else verb
    return verb + space + rest


def _words(label: str) -> str:
    """Return the words of a label in small letters; `spouse_s` is `spouse`."""
    words = " ".join(
        split_label(re.split(r"[./#:]", label.rstrip("/#"))[-1]).replace("_", " ").replace("-", " ").split()
    )
    return re.sub(r" s$", "", words.lower())
