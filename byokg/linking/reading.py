"""How the offline KG-Linker reads a question: which words count, what is asked for, and in which order to walk.

The word lists are English function words, nothing about any data set.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from byokg.index.function_words import FUNCTION_WORDS
from byokg.index.normalize import WORD, normalize_name
from byokg.types import EntityId, Mention

QUESTION_WORDS = frozenset("who whom whose what which when where how why".split())

REQUESTS = frozenset("name list give find show tell".split())
"""Words that ask for what follows when the question has no question word (`Name the capitals of …`)."""

AUXILIARIES = frozenset(
    "is are was were be do does did has have had the a an of some all me can could many much".split()
)
"""Words between a question word and the noun it asks for (`what is the language …`)."""

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

    @property
    def unmasked(self) -> tuple[str, ...]:
        """Return the words outside mentions."""
        return tuple(word for word, hidden in zip(self.words, self.masked, strict=True) if not hidden)


def split_words(text: str) -> list[str]:
    """Return the casefolded runs of letters and digits."""
    return [word.casefold() for word in WORD.findall(text)]


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
    parts = {part for name in names for part in split_words(name)} - FUNCTION_WORDS
    for position, word in enumerate(words):
        if word not in FUNCTION_WORDS and word not in QUESTION_WORDS:
            masked[position] |= word in parts or (
                len(word) > 3 and any(fuzz.ratio(word, part) >= _SIMILAR for part in parts)
            )
    asks, focus = _focus(words, masked)
    content = [
        position
        for position, word in enumerate(words)
        if not masked[position] and word not in FUNCTION_WORDS and word not in QUESTION_WORDS
    ]
    body = [position for position in content if position not in focus]
    return Reading(
        words=words,
        masked=tuple(masked),
        asks=asks,
        focus=tuple(focus),
        orders=_orders(body, [position for position, hidden in enumerate(masked) if hidden], len(words)),
        phrase=_phrases(words, masked, content),
    )


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
    focus: list[int] = []
    while (
        position < len(words)
        and len(focus) < _FOCUS_WORDS
        and not masked[position]
        and words[position] not in FUNCTION_WORDS
        and words[position] not in QUESTION_WORDS
    ):
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


def locate(name: str, text: str, ids: tuple[EntityId, ...] = ()) -> Mention:
    """Return the mention of a name: where its name stands in the text, if it does, whatever the accents."""
    spans = list(WORD.finditer(text))
    wanted = [normalize_name(word) for word in WORD.findall(name)]
    words = [normalize_name(span.group()) for span in spans]
    for first in range(len(words) - len(wanted) + 1 if wanted else 0):
        if words[first : first + len(wanted)] == wanted:
            start, end = spans[first].start(), spans[first + len(wanted) - 1].end()
            return Mention(text[start:end], start, end, ids)
    return Mention(name, ids=ids)
