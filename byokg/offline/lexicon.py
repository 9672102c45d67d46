"""The words that ask for a count, an order, a time or a difference: `byokg/data/operators` has a file for each idea.

Hand-made rules are functions with a name, an example, and a result without it. A rule that is left out returns the
result of a pipeline without it, so that its worth can be measured (`benchmarks/ablate_offline.py`); one that changes a
result has fired, which traces record.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache, wraps
from importlib.resources import files
from typing import Any, TypeVar, cast

import numpy as np

from byokg.errors import ConfigError
from byokg.text.names import FUNCTION_WORDS, QUESTION_WORDS, verb_forms
from byokg.text.values import read_literal

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


@dataclass(frozen=True)
class NamedRule:
    """A hand-made rule."""

    name: str
    effect: str
    """One sentence: the first line of the function's docstring."""
    example: str
    """A question on which it may fire; mentions stand in braces."""
    place: str
    """Module and function."""


RULES: dict[str, NamedRule] = {}
"""By name, in the order of import; see `all_rules`."""

_NONE: frozenset[str] = frozenset()
_left_out: ContextVar[frozenset[str]] = ContextVar("left_out", default=_NONE)
_fired: ContextVar[set[str] | None] = ContextVar("fired", default=None)


def rule(name: str, example: str, otherwise: Callable[..., object]) -> Callable[[F], F]:
    """Make a function a rule.

    Args:
        name: unique, in the terms of the glossary.
        example: a question on which it may fire, with mentions in braces.
        otherwise: called with the same arguments, returns the result without the rule.
    """

    def register(function: F) -> F:
        effect = (function.__doc__ or "").partition("\n")[0]
        assert name not in RULES or RULES[name].place == f"{function.__module__}.{function.__qualname__}", name
        RULES[name] = NamedRule(name, effect, example, f"{function.__module__}.{function.__qualname__}")

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> object:
            if name in _left_out.get():
                return otherwise(*args, **kwargs)
            before = otherwise(*args, **kwargs) if (fired := _fired.get()) is not None else None
            result: object = function(*args, **kwargs)
            if fired is not None and result is not before and not _equal(result, before):
                fired.add(name)
            return result

        return cast("F", run)

    return register


def _equal(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


def cached(size: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Return a cache for a function that calls rules: a result is reused with equal rules, and its rules fire again."""

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @lru_cache(size)
        def remember(
            _: frozenset[str], recorded: bool, args: tuple[Any, ...], **kwargs: Any
        ) -> tuple[T, frozenset[str]]:
            if not recorded:
                return function(*args, **kwargs), _NONE
            with record() as fired:
                return function(*args, **kwargs), frozenset(fired)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> T:
            fired = _fired.get()
            result, again = remember(_left_out.get(), fired is not None, args, **kwargs)
            if fired is not None:
                fired |= again
            return result

        return call

    return decorate


@contextmanager
def leave_out(names: Collection[str]) -> Iterator[None]:
    """Leave rules out within the block."""
    token = _left_out.set(_left_out.get() | frozenset(names))
    try:
        yield
    finally:
        _left_out.reset(token)


@contextmanager
def record() -> Iterator[set[str]]:
    """Yield the names of the rules that fire within the block, to which they are added as they do."""
    outer, fired = _fired.get(), set[str]()
    token = _fired.set(fired)
    try:
        yield fired
    finally:
        _fired.reset(token)
        if outer is not None:
            outer |= fired


def rule_hook(left_out: Collection[str]) -> Callable[[str], AbstractContextManager[dict[str, Any]]]:
    """Return a hook for stages that leaves rules out, and puts the fired ones into a stage's results, as `rules`.

    Raises `ConfigError` for a name that no rule has.
    """
    check_names(left_out)

    @contextmanager
    def hook(stage: str) -> Iterator[dict[str, Any]]:
        results: dict[str, Any] = {}
        with leave_out(left_out), record() as fired:
            yield results
        results["rules"] = sorted(fired)

    return hook


def check_names(names: Collection[str]) -> None:
    """Raise `ConfigError` for a name that no rule has."""
    for name in names:
        if name not in RULES and name not in all_rules():
            near = get_close_matches(name, RULES, 1)
            raise ConfigError(f"no rule {name!r}; {f'did you mean {near[0]!r}' if near else 'see docs/offline.md'}")


def all_rules() -> dict[str, NamedRule]:
    """Return all rules by name, in alphabetical order; imports the modules that hold them."""
    package = importlib.import_module("byokg.offline")
    for module in pkgutil.iter_modules(package.__path__, "byokg.offline."):
        if not module.ispkg:
            importlib.import_module(module.name)
    return dict(sorted(RULES.items()))


SILENT = FUNCTION_WORDS | QUESTION_WORDS
"""Words that name nothing in a graph."""

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
