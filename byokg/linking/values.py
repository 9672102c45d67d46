"""Value linking: the property values that a question names, with type and property (`Person.surname = Powell`)."""

from __future__ import annotations

from collections.abc import Sequence

from byokg.errors import at_least
from byokg.graph.store import GraphStore
from byokg.graph.value_indexes import value_index
from byokg.index.values import ValueIndex, ValueMatch, ValueMention
from byokg.text.names import FUNCTION_WORDS, QUESTION_WORDS, WORD, fold
from byokg.text.values import canonical_forms

_WINDOW = 4
"""Words of a date, and of a misspelt value."""
_LETTERS = 4
"""Letters of a word from which on a value may be misspelt."""
_MISSPELT = 0.8
"""Lowest score of a misspelt value."""
_ALIKE = 5
"""Matches that are kept of one mention, at most."""


class ValueLinker:
    """Finds the values that a question names. Threads may share it.

    Args:
        store: the graph.
        index: its values; None takes `value_index`.
    """

    def __init__(self, store: GraphStore, index: ValueIndex | None = None) -> None:
        self._store = store
        self.index = value_index(store) if index is None else index

    def find_mentions(self, question: str, limit: int = 10) -> tuple[ValueMention, ...]:
        """Return the values in a question, in its order; none overlap.

        Longer ones win over shorter ones, equal ones over numbers, dates and times in another format, these over
        misspelt ones.

        Args:
            question: its text.
            limit: mentions at most.

        Raises:
            ConfigError: `limit` is out of range.
        """
        at_least(1, "finds nothing", limit=limit)
        spans = [found.span() for found in WORD.finditer(question)]
        words = [fold(question[start:end]) for start, end in spans]
        found = [*self._equal(question, spans, words), *self._formatted(question, spans)]
        free = _uncovered(spans, found)
        found += self._misspelt(question, spans, words, free)
        found.sort(key=lambda mention: (-mention.score, mention.start - mention.end, mention.start))
        kept: list[ValueMention] = []
        for mention in found:
            if all(mention.end <= other.start or mention.start >= other.end for other in kept):
                kept.append(mention)
        return tuple(sorted(kept[:limit], key=lambda mention: mention.start))

    def _equal(self, question: str, spans: Sequence[tuple[int, int]], words: Sequence[str]) -> list[ValueMention]:
        """Return the runs of words that are values."""
        found = []
        for first, word in enumerate(words):
            for last in range(first, min(len(words), first + self.index.starting(word))):
                if any(map(_tells, words[first : last + 1])):
                    found += self._mention(question, spans[first][0], spans[last][1], 1.0)
        return found

    def _formatted(self, question: str, spans: Sequence[tuple[int, int]]) -> list[ValueMention]:
        """Return the numbers, dates and times of a question that are values in another format."""
        found = []
        for first in range(len(spans)):
            for last in range(first, min(len(spans), first + _WINDOW)):
                start, end = spans[first][0], spans[last][1]
                if canonical_forms(question[start:end]):
                    found += self._mention(question, start, end, 1.0)
        return found

    def _misspelt(
        self, question: str, spans: Sequence[tuple[int, int]], words: Sequence[str], free: Sequence[int]
    ) -> list[ValueMention]:
        """Return the runs of words that resemble values, around words that are no part of others."""
        found = []
        for first in free:
            for last in range(first, min(len(words), first + _WINDOW)):
                if last not in free:
                    break
                text = question[spans[first][0] : spans[last][1]]
                if len(text) >= _LETTERS and _tells(words[first]) and _tells(words[last]):
                    found += self._mention(question, spans[first][0], spans[last][1], _MISSPELT)
        return found

    def _mention(self, question: str, start: int, end: int, least: float) -> list[ValueMention]:
        """Return the mention of a span, if its best match reaches a score."""
        text = question[start:end]
        best: dict[tuple[str, str], ValueMatch] = {}
        for match in self.index.find(text):
            if match.score >= least:
                best.setdefault((match.type, match.property), match)
        matches = tuple(best.values())[:_ALIKE]
        return [ValueMention(text, start, end, matches)] if matches else []


def _tells(word: str) -> bool:
    return word not in FUNCTION_WORDS and word not in QUESTION_WORDS


def _uncovered(spans: Sequence[tuple[int, int]], mentions: Sequence[ValueMention]) -> list[int]:
    """Return the positions of words outside all mentions."""
    return [
        at
        for at, (start, end) in enumerate(spans)
        if all(end <= mention.start or start >= mention.end for mention in mentions)
    ]
