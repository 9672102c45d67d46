"""Whether a question asks for a value, and of which property: values are no answers to any other question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from byokg.arrays import Bools, Float64
from byokg.graph.property_view import FIRST_VALUE, PropertyView, name_of_value
from byokg.offline.constraints import QueryConstraints, asked_part, period_role
from byokg.offline.lexicon import adjectives, load_lexicon, measured_by, rule
from byokg.offline.parse import ParsedQuestion
from byokg.offline.schema_linking import PropertyLinker, RelationSimilarity, looks_dated, measure
from byokg.text.names import FUNCTION_WORDS, QUESTION_WORDS


@dataclass(frozen=True)
class LiteralThresholds:
    """Thresholds of literal answers."""

    named: float = 0.8
    """Similarity from which a word names a property."""
    measured: float = 0.45
    """The same for questions of height, length or age, and so for some number."""
    sample: int = 32
    """Sampled values of each property."""


_SETTINGS = LiteralThresholds()

_DATES = frozenset({"year", "years", "date", "dates"})


class LiteralAnswerDetector:
    """Detects questions for a literal, and its property.

    Args:
        view: the graph with values as nodes.
        steps: schema linking.
        properties: compares words with names of properties.
    """

    def __init__(self, view: PropertyView, steps: RelationSimilarity, properties: PropertyLinker) -> None:
        self._steps = steps
        self._property_linker = properties
        self.first = view.real_relations
        self._labels = list(view.relations)[self.first :]
        self._roles = np.array([period_role(label.rpartition(".")[2]) for label in self._labels], np.str_)
        self.owners = np.array([view.owners.get(number, -1) for number in range(self.first, len(view.relations))])
        """Relation whose edges have each property; -1 for properties of nodes."""
        self._of_edges = self.owners >= 0
        batch = view.sample_edges(_SETTINGS.sample)
        values = batch.tail >= FIRST_VALUE
        names = [name_of_value(id) for id in view.ids(batch.tail[values])]
        of = batch.relation[values] - self.first
        size = np.maximum(1, np.bincount(of, minlength=len(self._labels)))
        numbers = np.array([measure(name) is not None for name in names], np.float64)
        dates = np.array([looks_dated(name) for name in names], np.float64)
        self._numbers = np.bincount(of, numbers, len(self._labels)) / size > 0.5
        self._dates = np.bincount(of, dates, len(self._labels)) / size > 0.5

    def detect(self, parsed: ParsedQuestion, constraints: QueryConstraints) -> tuple[Bools, bool]:
        """Return for each property whether its values may be the answer: (V,), and whether nothing else may."""
        words = [
            word
            for word, masked in zip(parsed.words, parsed.masked, strict=True)
            if not masked and word not in FUNCTION_WORDS and word not in QUESTION_WORDS
        ]
        focus = {parsed.words[place] for place in parsed.answer_type_span or parsed.head_nouns}
        if parsed.wh_word == "when" or _DATES & focus:
            allowed = self._meant_dates(parsed)
            return allowed, bool(allowed.any())
        nouns = _asked_measure(parsed) or _named_measures(focus)
        if nouns:
            allowed = self._numbers & (self._likeness(nouns) >= _SETTINGS.measured)
            return allowed, bool(allowed.any())
        if constraints.count:
            allowed = self._numbers & (self._likeness(measured_by(constraints.counted)) >= _SETTINGS.named)
            return allowed, constraints.counted != "people" and constraints.counted in load_lexicon("order")["units"]
        allowed = np.zeros(len(self._labels), np.bool_)
        for word in words:
            allowed |= self._steps.label_similarity(word)[2 * self.first :: 2] >= _SETTINGS.named
        allowed &= ~self._of_edges | ~self._dates
        for place in np.flatnonzero(allowed & self._of_edges).tolist():
            # The bare relation, as in «what it activates», takes nodes, and not their confidence.
            name = self._labels[place].rpartition(".")[2]
            allowed[place] = any(self._property_linker.likeness(word, name) >= _SETTINGS.named for word in words)
        return allowed, False

    def _meant_dates(self, parsed: ParsedQuestion) -> Bools:
        """Return the dates that may be asked for: of a period the end that the verb means, of births no other edges."""
        part = asked_part(" ".join(parsed.unmasked))
        other = {"begin": "end_keys", "end": "begin_keys"}.get(part, "none")
        meant = self._dates & (self._roles != other)
        for word in load_lexicon("time")["events"].keys() & parsed.unmasked:
            named = self._steps.label_similarity(word)[2 * self.first :: 2] >= _SETTINGS.named
            meant &= ~self._of_edges | named
        return meant if meant.any() else self._dates.copy()

    def _likeness(self, nouns: Sequence[str]) -> Float64:
        """Return the largest similarity of each property's name to some nouns: (V,)."""
        likeness = self._property_linker.likeness
        return np.array([max(likeness(noun, label) for noun in nouns) for label in self._labels])


@rule("measure of how", "how high is {X}", lambda parsed: ())
def _asked_measure(parsed: ParsedQuestion) -> tuple[str, ...]:
    """Return what «how high» asks for."""
    words = parsed.words
    for place, word in enumerate(words[:-1]):
        if word == "how" and not parsed.masked[place]:
            adjective = adjectives().get(words[place + 1])
            if adjective is not None:
                return (*words[-1:], *adjective.nouns) if words[-2:-1] == ("in",) else adjective.nouns  # in pages
            if words[place + 1] == "much":
                return ("price", "cost", "salary", "weight", "amount")
    return ()


@rule("synonyms of measures", "what is the altitude of {X}", lambda words: ())
def _named_measures(words: frozenset[str] | set[str]) -> tuple[str, ...]:
    """Return synonyms of a measure: `altitude` is `elevation`, too."""
    for group in load_lexicon("order")["adjective"]:
        if "dates" not in group and not words.isdisjoint(group["nouns"]):
            named = [noun for noun in group["nouns"] if noun in words]
            return (*named, *(noun for noun in group["nouns"] if noun not in words))
    return ()
