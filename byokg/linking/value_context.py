"""Which property a question means, among those with equal or similar values: by the words around the mention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from byokg.arrays import Float64
from byokg.graph.store import Schema
from byokg.index.embedders import Embedder, exact
from byokg.text.labels import split_label
from byokg.text.names import FUNCTION_WORDS, WORD, fold, related, singular, split_words
from byokg.text.synonyms import UNRELATED, synonyms

_ALIKE = 0.3
"""Cosine below which a word does not mean a label."""
_STEM, _SYNONYM = 0.9, 0.8
"""Worth of a word that shares a stem with a label, and of a synonym of one word; an equal one has 1."""
_WHOLE = 0.15
"""Weight of how many words of a property's name the question has."""
_PROPERTY, _TYPE = 0.1, 0.04
"""What each word between a mention and a cue takes off the cue's worth, for properties and for types."""
_FAR = 0.2
"""Worth of cues that are farther away."""
_TYPE_SHARE = 0.6
"""Weight of the type beside the property."""
_NEXT = 0.3
"""Worth of a word for a type next to the property's."""
_BEHIND = 1
"""Words that a cue behind the mention counts as farther away."""


@dataclass(frozen=True, slots=True)
class QuestionWord:
    """A word of a question, or a code of several parts (`5-(210)690-9847`)."""

    start: int
    end: int
    folded: str
    code: bool = False


def question_words(question: str) -> list[QuestionWord]:
    """Split a question into words; what has digits and signs between its parts stays whole."""
    words: list[QuestionWord] = []
    at = 0
    for chunk in question.split():
        start = question.index(chunk, at)
        at = start + len(chunk)
        parts = [(start + found.start(), start + found.end()) for found in WORD.finditer(chunk)]
        if len(parts) > 1 and _is_code(chunk[parts[0][0] - start : parts[-1][1] - start]):
            parts = [(parts[0][0], parts[-1][1])]
            words.append(QuestionWord(*parts[0], fold(question[parts[0][0] : parts[0][1]]), True))
        else:
            words += [QuestionWord(first, last, fold(question[first:last])) for first, last in parts]
    return words


def _is_code(text: str) -> bool:
    """True if signs within a text part digits from digits, or it is an address of mail or a net."""
    words = WORD.findall(text)
    numeric = sum(word[0].isdigit() or word[-1].isdigit() for word in words)
    return "@" in text or numeric == len(words)


@dataclass(frozen=True, slots=True)
class _LabelWords:
    """Words of a type or property."""

    text: str
    words: frozenset[str]
    """In the singular, and all of them joined (`postcode`)."""


@lru_cache(1 << 12)
def _label(name: str) -> _LabelWords:
    words = [singular(word) for word in split_words(split_label(name.replace("_", " ")))]
    return _LabelWords(" ".join(words), frozenset((*words, "".join(words))))


class ValueContext:
    """Rates types and properties by the words of a question.

    Args:
        embedder: compares meanings of words and labels.
        schema: the graph's; a word for a type also counts a little for the types next to it, and words that a label
            joins (`postcode`) are taken together (`post code`).
    """

    def __init__(self, embedder: Embedder, schema: Schema) -> None:
        self._next: dict[str, frozenset[str]] = {}
        for relation in schema.relations:
            for one, others in ((relation.domain, relation.range), (relation.range, relation.domain)):
                for type in one:
                    self._next[type] = self._next.get(type, frozenset()) | frozenset(others)
        labels = {*schema.node_types, *(name for names in schema.node_properties.values() for name in names)}
        self._types = frozenset(word for type in schema.node_types for word in _label(type).words)
        self._joined = frozenset(word for label in labels for word in _label(label).words) | frozenset(synonyms())
        self._vector = lru_cache(1 << 13)(self._encoded)
        self._embedder = embedder
        self.likeness = lru_cache(1 << 15)(self._likeness)
        """Returns how well one or two words mean a label, in [0, 1]."""

    def fit(self, words: Sequence[QuestionWord], start: int, end: int, type: str, property: str) -> float:
        """Return how well the words around a mention fit a property of a type, in [0, 1].

        The nearest word that means the property counts, and less so the nearest other one that means the type.

        Args:
            words: those of the question.
            start: first character of the mention.
            end: the character behind it.
            type: a node type.
            property: name of a property.
        """
        cues = self._around(words, start, end)
        named = [max(_FAR, 1 - _PROPERTY * distance) * self.likeness(cue, property) for distance, cue in cues]
        typed = [max(_FAR, 1 - _TYPE * distance) * self._typed(cue, type) if type else 0.0 for distance, cue in cues]
        best = max((_joint(named, typed, place) for place in range(len(cues))), default=0.0)
        return best / (1 + _TYPE_SHARE) * (1 - _WHOLE + _WHOLE * self._covered(cues, property))

    def _covered(self, cues: Sequence[tuple[int, str]], property: str) -> float:
        """Return how well the words around a mention cover those of a property's name: 1 for a name of one word."""
        words = _label(property).text.split()
        if len(words) < 2 or not cues:
            return 1.0
        return sum(
            max(max(_FAR, 1 - _PROPERTY * distance) * self.likeness(cue, word) for distance, cue in cues)
            for word in words
        ) / len(words)

    def cued(self, words: Sequence[QuestionWord], start: int, end: int, label: str, but_types: bool = False) -> float:
        """Return how well the nearest word that means a type or property means it, in [0, 1].

        Args:
            words, start, end: as in `fit`.
            label: name of a type or property.
            but_types: leave out words that name types: `3 suppliers` is no `supplierID`.
        """
        cues = [
            (distance, cue)
            for distance, cue in self._around(words, start, end)
            if not (but_types and singular(cue) in self._types)
        ]
        worth = (max(_FAR, 1 - _PROPERTY * distance) * self.likeness(cue, label) for distance, cue in cues)
        return max(worth, default=0.0)

    def _typed(self, cue: str, type: str) -> float:
        """Return how well a word means a type, or less so one next to it in the graph."""
        own = self.likeness(cue, type)
        return max(own, *(_NEXT * self.likeness(cue, other) for other in self._next.get(type, ())), 0.0)

    def _around(self, words: Sequence[QuestionWord], start: int, end: int) -> list[tuple[int, str]]:
        """Return the words on both sides of a mention, with their distances."""
        before = [word.folded for word in words if word.end <= start][::-1]
        behind = [word.folded for word in words if word.start >= end]
        near = [(distance + _BEHIND, cue) for distance, cue in self._cues(behind, False)]
        return [*self._cues(before, True), *near]

    def _cues(self, side: Sequence[str], reverse: bool) -> list[tuple[int, str]]:
        """Return the words on one side of a mention, the nearest first, with their distances.

        Two words that mean something together (`last name`, `post code`) are one cue.
        """
        cues: list[tuple[int, str]] = []
        at = 0
        while at < len(side):
            pair = side[at : at + 2][::-1] if reverse else side[at : at + 2]
            if len(pair) == 2 and "".join(pair) in self._joined:
                cues.append((at, " ".join(pair)))
                at += 2
                continue
            if side[at] not in FUNCTION_WORDS:
                cues.append((at, side[at]))
            at += 1
        return cues

    def _likeness(self, cue: str, name: str) -> float:
        label = _label(name)
        joined, word = cue.replace(" ", ""), singular(cue)
        if word in label.words or joined in label.words:
            return 1.0
        alike = synonyms().get(singular(joined), UNRELATED).alike
        if not alike.isdisjoint(label.words):
            return 1.0 if joined != cue else _SYNONYM
        if any(len(one) > 3 and related(cue, one) for one in label.words):
            return _STEM
        cosine = float(self._vector(cue) @ self._vector(label.text))
        return cosine if cosine >= _ALIKE else 0.0

    def _encoded(self, text: str) -> Float64:
        return exact(self._embedder.encode([text])[0])


def _joint(named: Sequence[float], typed: Sequence[float], place: int) -> float:
    """Return the worth of one cue for the property, and of the best other for the type."""
    return named[place] + _TYPE_SHARE * max((*typed[:place], *typed[place + 1 :]), default=0.0)
