"""Reading a question: the words that say something, what kind of answer they ask for, and how they hang together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from byokg.text import FUNCTION_WORDS, QUESTION_WORDS, WORD, split_words
from byokg.types import Mention

REQUESTS = frozenset("name list give find show tell".split())
"""Words that ask for what follows when the question has no question word (`Name the capitals of …`)."""

AUXILIARIES = frozenset(
    "is are was were be do does did has have had the a an of some all me can could many much".split()
)
"""Words between a question word and the noun it asks for (`what is the language …`)."""

SHARING = frozenset("same share shares shared sharing also together common fellow besides".split())
"""Words that speak of what two things have in common (`films with the same director`), and name no relation."""

_EMPTY = frozenset({"name", "names"})
"""Words that say nothing before `of` (`the name of the currency of …`)."""

_SORTS = frozenset("kind kinds type types sort sorts".split())
"""Words that say nothing before `of` either, but where they are what is asked for (`what type of film is …`)."""

_BEING = frozenset("is are was were".split())

_BORDERS = frozenset("border borders boundary boundaries".split())
"""What neighbours share is nothing that they have in common."""

_PARTS = frozenset("kind kinds type types sort sorts part parts out one some all because die died made full".split())
"""Words before an `of` that is no link."""

_FOCUS_WORDS = 3
_SIMILAR = 85
"""Similarity in percent from which a question word counts as a misspelt word of a name (longer than 3 letters)."""


@dataclass(frozen=True)
class Reading:
    """A question as the path scorer sees it.

    `body` and `focus` are positions in `words`. The same body words are ordered in up to three ways, each a guess
    at how far from the topic entity a word's hop lies: by distance in the text; first leftwards then rightwards;
    first rightwards then leftwards.
    """

    words: tuple[str, ...]
    """Casefolded words of the question, W of them."""
    masked: tuple[bool, ...]
    """(W,) true where the word belongs to a mention."""
    asks: str
    """The question word, or empty."""
    focus: tuple[int, ...]
    """The noun phrase that names the kind of answer (`which *languages*`), at most three words."""
    orders: tuple[tuple[int, ...], ...]
    """Body words from near the topic entity to far."""
    phrase: tuple[int, ...]
    """(W,) a number shared by neighbouring content words, with nothing but question words between; 0 elsewhere."""
    shares: bool = False
    """Whether it speaks of what two things have in common (`the same`, `also`)."""
    links: int = 0
    """Nouns that are tied to what follows or precedes (`the *capital* of`, `her sister's *children*`)."""

    @property
    def unmasked(self) -> tuple[str, ...]:
        """Return the words outside mentions."""
        return tuple(word for word, hidden in zip(self.words, self.masked, strict=True) if not hidden)


def read_question(text: str, mentions: Sequence[Mention], names: Collection[str] = ()) -> Reading:
    """Take a question apart.

    Args:
        text: the question.
        mentions: pieces of it that name topic entities; those with a position are masked.
        names: names of topic entities that do not stand in the text as they are; words resembling theirs
            are masked.
    """
    spans = list(WORD.finditer(text))
    words = tuple(span.group().casefold() for span in spans)
    masked = [
        any(mention.start <= span.start() < mention.end for mention in mentions if mention.start >= 0) for span in spans
    ]
    words = _does(words)
    spans = spans[: len(words)]
    masked = masked[: len(words)]
    parts = {part for name in names for part in split_words(name)} - FUNCTION_WORDS
    for position, word in enumerate(words):
        if word not in FUNCTION_WORDS and word not in QUESTION_WORDS:
            masked[position] |= word in parts or (
                len(word) > 3 and any(fuzz.ratio(word, part) >= _SIMILAR for part in parts)
            )
    asks, focus = _focus(words, masked)
    sharing = [position for position in range(len(words)) if not masked[position] and _shares(words, position)]
    empty = {at for at in range(len(words) - 1) if _says_nothing(words, at, masked)}
    content = [
        position
        for position, word in enumerate(words)
        if not masked[position]
        and word not in FUNCTION_WORDS | QUESTION_WORDS
        and position not in sharing
        and position not in empty
    ]
    focus = [position for position in focus if position not in empty]
    body = [position for position in content if position not in focus]
    return Reading(
        words=words,
        masked=tuple(masked),
        asks=asks,
        focus=tuple(focus),
        orders=_orders(body, [position for position, hidden in enumerate(masked) if hidden], len(words)),
        phrase=_phrases(words, masked, content),
        links=sum(_links(words, position, masked) for position in range(1, len(words))),
        shares=any(words[position] != "also" or len(mentions) < 2 for position in sharing),
    )


def _shares(words: Sequence[str], position: int) -> bool:
    """Tell whether a word speaks of what two things have in common, as `same`, and `other` in `which other films`."""
    word = words[position]
    if word in SHARING and _BORDERS.intersection(words[position + 1 : position + 3]):
        return False
    return word in SHARING or (word in ("other", "others") and position > 0 and words[position - 1] in QUESTION_WORDS)


def _says_nothing(words: Sequence[str], position: int, masked: Sequence[bool]) -> bool:
    """Tell whether a word before `of` adds nothing to what follows: `the name of the currency`, `which type of music`.

    Only in `what type of film is Alien` it asks for the type: where a name follows the verb.
    """
    if words[position + 1] != "of" or masked[position]:
        return False
    if words[position] in _EMPTY:
        return True
    verbs = [place for place in range(position + 2, len(words)) if words[place] in _BEING and not masked[place]]
    after = verbs[0] + 1 if verbs else len(words)
    after += words[after : after + 1] == ("the",)
    return words[position] in _SORTS and not any(masked[after : after + 1])


def _links(words: Sequence[str], position: int, masked: Sequence[bool]) -> bool:
    """Tell whether an `of` or an `'s` ties a noun of the question to another."""
    if masked[position] or words[position] not in ("of", "s"):
        return False
    if words[position] == "of":
        noun = words[position - 1]
        return not masked[position - 1] and noun not in FUNCTION_WORDS | QUESTION_WORDS | _EMPTY | _PARTS
    owner, after = words[position - 1], position + 1
    return (
        after < len(words)
        and not masked[after]
        and words[after] not in FUNCTION_WORDS | QUESTION_WORDS
        and owner not in QUESTION_WORDS
    )


def _does(words: Sequence[str]) -> tuple[str, ...]:
    """Name what `what does X do (for a living)` asks for."""
    asked = list(words)
    until = len(asked)
    if asked[-3:] == ["for", "a", "living"] or asked[-2:] == ["for", "work"]:
        until = len(asked) - (3 if asked[-1] == "living" else 2)
    does = until and asked[until - 1] == "do" and "what" in asked[: until - 1]
    return (*asked[: until - 1], "profession") if does else tuple(asked)


def _focus(words: Sequence[str], masked: Sequence[bool]) -> tuple[str, list[int]]:
    """Find the question word and the noun phrase after it."""
    asking = [start for start, word in enumerate(words) if word in QUESTION_WORDS and not masked[start]]
    asking = asking or [start for start, word in enumerate(words) if word in REQUESTS and not masked[start]]
    if not asking:
        return "", []
    start = asking[0]
    word = words[start]
    position = start + 1
    while position < len(words) and words[position] in AUXILIARIES and not masked[position]:
        position += 1
    copula = position > start + 1 and words[start + 1] not in ("do", "does", "did")
    if word in ("when", "where", "why") or (word in ("who", "whom") and not copula):
        return word, []
    if position + 1 < len(words) and words[position] in _SORTS and _says_nothing(words, position, masked):
        position += 2
    focus: list[int] = []
    while (
        position < len(words)
        and len(focus) < _FOCUS_WORDS
        and not masked[position]
        and words[position] not in FUNCTION_WORDS
        and words[position] not in QUESTION_WORDS
    ):
        if not _shares(words, position):
            focus.append(position)
        position += 1
    return word, focus


def _orders(body: Sequence[int], topic: Sequence[int], count: int) -> tuple[tuple[int, ...], ...]:
    first = topic[0] if topic else count
    left = [position for position in reversed(body) if position < first]
    right = [position for position in body if position >= first]

    def distance(position: int) -> float:
        nearest = min((abs(position - other) for other in topic), default=count - position)
        return nearest - 0.1 * (position > first)  # of two equally near words, the one after the topic first

    orders = [tuple(sorted(body, key=distance)), tuple(left + right), tuple(right + left)]
    return tuple(dict.fromkeys(orders))


def _phrases(words: Sequence[str], masked: Sequence[bool], content: Sequence[int]) -> tuple[int, ...]:
    phrases = [0] * len(words)
    number, previous = 0, None
    for position in content:
        between = range(previous + 1, position) if previous is not None else None
        if between is None or any(masked[other] or words[other] not in QUESTION_WORDS for other in between):
            number += 1
        phrases[position] = number
        previous = position
    return tuple(phrases)
