"""Aliases of names by general rules: Jamaica for `jamaican`, Saint Paul for `st paul`.

An alias counts only if some node has it, so a rule may return too many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from byokg.text.names import ARTICLES, FUNCTION_WORDS, fold_words, leads_with_article, normalize_name, singular

_PLACES = Path(__file__).resolve().parent.parent / "data" / "words" / "places.txt"

_SHORT = {"st": "saint", "mt": "mount", "ft": "fort"}
"""Beginnings of names that are written in full or not."""
_LONG = {long: short for short, long in _SHORT.items()}
_WITHIN = _SHORT | {"us": "united states", "uk": "united kingdom", "ny": "new york", "la": "los angeles"}
"""Expansions of abbreviations within a longer name."""
_ABBREVIATED = frozenset(_WITHIN) | frozenset(_LONG)
TITLES = frozenset("king queen prince princess emperor empress pope president sir lord lady saint dr mr mrs ms".split())
_ALSO_A_WORD = 2
"""Letters of an abbreviation that must be written in capitals (`us`); a longer one is hardly a word of its own."""
_SHORTEST = 3
"""Letters of a word that has no other number."""
_SURELY = 7
"""Letters of a word in `-an` that is likely to be of a place in `-a`."""


@dataclass(frozen=True)
class _Places:
    """Content of `places.txt`."""

    names: Mapping[str, Sequence[str]]
    """All names of the place that a folded name is of,"""
    people: Mapping[str, Sequence[str]]
    """or a folded word for its people and things."""
    capitals: frozenset[str]
    """Folded names that must be written in capitals."""
    last: frozenset[str]
    """The last words of all these."""


@lru_cache(1)
def _places() -> _Places:
    names: dict[str, list[str]] = defaultdict(list)
    people: dict[str, list[str]] = defaultdict(list)
    capitals: set[str] = set()
    for line in _PLACES.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        own, words = (part.strip().split(", ") for part in line.split(":"))
        for table, texts in ((names, own if len(own) > 1 else ()), (people, filter(None, words))):
            for text in texts:
                table[normalize_name(text)] += own
        capitals.update(normalize_name(name) for name in own if name.isupper() and len(name) <= _ALSO_A_WORD)
    return _Places(names, people, frozenset(capitals), frozenset(key.split()[-1] for key in (*names, *people)))


def hints(word: str) -> bool:
    """True if a folded word may end a text that has an alias, or abbreviate a part of it."""
    return word in _ABBREVIATED or word in _places().last or word.endswith(("an", "ans"))


def stands_within(word: str) -> bool:
    """True if a folded word is an abbreviation within a longer name (`st`), or has one (`saint`)."""
    return word in _ABBREVIATED


@lru_cache(1 << 12)
def other_names(text: str) -> tuple[str, ...]:
    """Return aliases of a text, most of which are in no graph.

    They are its `full_names`, the place of a demonym (`jamaican`, `the germans`), and its language.

    >>> other_names("armenian")
    ('Armenia', 'Armenian language')
    >>> other_names("the UK")[0], other_names("Alien")
    ('United Kingdom', ())
    """
    words = fold_words(text)
    if not any(map(hints, words)):
        return ()
    words = words[leads_with_article(words) :]
    key = " ".join(words)
    found = list(_places().people.get(key, ()))
    if words and (place := _of_place(words[-1])):
        found.append(" ".join([*words[:-1], place]).title())
    if found:
        found.append(f"{key.title()} language")
    return tuple(dict.fromkeys((*full_names(text), *found)))


@lru_cache(1 << 12)
def full_names(text: str) -> tuple[str, ...]:
    """Return the full names of a text.

    They are those of a place (`the us`, `UK`; without an article only in capitals), and the text with abbreviations
    written in full (`st paul`, `ny giants`), or `saint`, `mount` and `fort` abbreviated.

    >>> full_names("the USSR"), full_names("mt everest"), full_names("us")
    (('Soviet Union',), ('Mount Everest',), ())
    """
    words = fold_words(text)
    article = leads_with_article(words)
    words = words[article:]
    key, places = " ".join(words), _places()
    found = [*places.names.get(key, ())] if key not in places.capitals or article or text.isupper() else []
    if len(words) > 1:
        found += [" ".join(table.get(word, word) for word in words).title() for table in (_WITHIN, _LONG)]
    return tuple(name for name in dict.fromkeys(found) if normalize_name(name) != key)


_NUMERALS = dict(zip("ii iii iv v vi vii viii ix x".split(), map(str, range(2, 11)), strict=True))
_ROMAN = {digit: roman for roman, digit in _NUMERALS.items()}
_MOST_WORDS = 12
"""Words of a text that is respelt."""


def respelt_words(word: str) -> tuple[str, ...]:
    """Return other forms of a folded word: its other number, a digit for a Roman numeral or the other way about."""
    if word in _NUMERALS or word in _ROMAN:
        return (_NUMERALS.get(word) or _ROMAN[word],)
    if len(word) <= _SHORTEST or word in FUNCTION_WORDS or not word.isalpha():
        return ()
    one = singular(word)
    return (one,) if one != word else (f"{word}s",)


@lru_cache(1 << 12)
def respellings(text: str) -> tuple[str, ...]:
    """Return a text of two or more words with one word in another form each.

    >>> respellings("World War 2"), respellings("Supreme Courts")
    (('worlds war 2', 'world war ii'), ('supremes courts', 'supreme court'))
    """
    words = fold_words(text)
    if not 1 < len(words) <= _MOST_WORDS:
        return ()
    return tuple(
        " ".join([*words[:at], form, *words[at + 1 :]]) for at, word in enumerate(words) for form in respelt_words(word)
    )


def _of_place(word: str) -> str:
    """Return the place in `-a` of a demonym (`armenians`); empty for other words."""
    word = word.removesuffix("s")
    return word[:-1] if word.endswith("ian") or (word.endswith("an") and len(word) >= _SURELY) else ""


def untitled(text: str) -> str:
    """Return a text without its leading article and titles; itself if it has none, or nothing else.

    >>> untitled("King George VI"), untitled("the steelers"), untitled("queen"), untitled("lord of the flies")
    ('George VI', 'steelers', 'queen', 'lord of the flies')
    """
    words = text.split()
    left = 0
    while left + 1 < len(words) and (
        words[left].casefold() in ARTICLES
        or (words[left].casefold().rstrip(".") in TITLES and words[left + 1].casefold() not in FUNCTION_WORDS)
    ):
        left += 1
    return " ".join(words[left:]) if left else text
