"""Value linking: the property values that a question names, with type and property (`Person.surname = Powell`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product, takewhile

import numpy as np

from byokg.arrays import Float64
from byokg.errors import at_least
from byokg.graph.store import GraphStore, Schema
from byokg.graph.value_indexes import value_index
from byokg.index.embedders import Embedder, StaticEmbedder, exact, shipped_embedder
from byokg.index.values import ValueIndex, ValueMatch, ValueMention
from byokg.text.names import (
    FUNCTION_WORDS,
    QUESTION_WORDS,
    UNRELATED,
    WORD,
    fold,
    locate,
    related,
    singular,
    split_label,
    split_words,
    synonyms,
)
from byokg.text.values import canonical_forms

_RUN = 4
"""Words of a date."""
_BESIDE = 7
"""Words beside a misspelt one that may belong to its value."""
_LETTERS = 4
"""Letters of a word from which on a value may be misspelt."""
_MISSPELT = 0.74
"""Lowest score of a misspelt value."""
_CONTEXT = 0.15
"""Weight of the question's words beside the likeness of a value."""
_FREQUENT = 0.003
"""Weight of each doubling of a value's nodes, which decides between otherwise equal values, up to ten."""
_KEPT = 5
"""Matches that are kept of one mention, at most."""
_RANKED = 24
"""Matches that the question may reorder."""
_CUED = 0.6
"""Fit of a property from which on an everyday word in small letters may be its value."""
_TYPED = 0.4
"""The same of a type for the values of categories."""
_MEASURED, _YEAR = 0.4, 4
"""Fit of a property from which on a number is its value, and digits of a number that may be a year."""
_MEANT, _MEANT_REST = 0.78, 0.63
"""Lowest cosines of a category with words that mean it, and with those of them that are no words of the schema."""
_MEANT_PAIR = 0.7
"""Lowest cosine of two words with a category that is made of words of the schema."""
_CATEGORIES = 100
"""Distinct values of a property up to which they are compared by meaning."""
_PHRASE = 6
"""Words that are compared with categories together, at most."""


class ValueLinker:
    """Finds the values that a question names. Threads may share it.

    Args:
        store: the graph.
        index: its values; None takes `value_index`.
        embedder: compares words with labels and categories; None takes the shipped one.
        edges: also link values of edges by `link_text`.
    """

    def __init__(
        self,
        store: GraphStore,
        index: ValueIndex | None = None,
        embedder: StaticEmbedder | None = None,
        edges: bool = False,
    ) -> None:
        self.index = value_index(store) if index is None else index
        self._linked = [self.index, *([value_index(store, of_edges=True)] if edges else [])]
        self._embedder = embedder or shipped_embedder()
        schema = store.schema()
        self._context = ValueContext(self._embedder, schema)
        self._everyday = lru_cache(1 << 13)(lambda word: len(self._embedder.tokens(word)[0]) == 1)
        labels = {label for one in self.index.properties() for label in (one.type, one.property)}
        labels |= {relation.name for relation in schema.relations}
        self._schema_words = frozenset(
            singular(word) for label in labels for word in split_words(split_label(label.replace("_", " ")))
        )

    def find_mentions(self, question: str, limit: int = 10) -> tuple[ValueMention, ...]:
        """Return the values in a question, in its order; none overlap.

        Found are values that stand in the question, numbers, dates and times in any format, misspelt values around
        words that are no everyday words, and categories in other words. Of overlapping mentions the longest wins,
        less what it differs from its value.

        Args:
            question: its text.
            limit: mentions at most.

        Raises:
            ConfigError: `limit` is out of range.
        """
        at_least(1, "finds nothing", limit=limit)
        words = question_words(question)
        found = [*self._equal(question, words), *self._formatted(question, words)]
        found += self._misspelt(question, words, found)
        found += self._meant(question, words, found)
        found.sort(key=lambda one: (-(one.end - one.start) * one.score**2, one.start))
        kept: list[ValueMention] = []
        for mention in found:
            if all(mention.end <= other.start or mention.start >= other.end for other in kept):
                kept.append(mention)
        return tuple(sorted(kept[:limit], key=lambda mention: mention.start))

    def link_text(
        self,
        text: str,
        question: str = "",
        limit: int = 10,
        types: Collection[str] | None = None,
        properties: Collection[str] | None = None,
    ) -> tuple[ValueMatch, ...]:
        """Return the values that a mention may mean, best first.

        Args:
            text: the mention.
            question: its context, which decides between properties with the same value.
            limit: matches at most.
            types: node types, and relations, to look at; None for all.
            properties: likewise.

        Raises:
            ConfigError: `limit` is out of range.
        """
        at_least(1, "finds nothing", limit=limit)
        mention = locate(text, question)
        most = max(limit, _RANKED)
        matches = [index.find(text, types=types, properties=properties, limit=most) for index in self._linked]
        equal = any(one.exact for some in matches for one in some)
        found = [one for some in matches for one in some if one.exact or not equal]
        return self._ranked(found, question_words(question), mention.start, mention.end)[:limit]

    def _is_schema_word(self, word: str) -> bool:
        """True if a folded word names a type, property or relation, in part."""
        return singular(word) in self._schema_words

    # Ranking

    def _ranked(
        self, found: Sequence[ValueMatch], words: Sequence[QuestionWord], start: int, end: int
    ) -> tuple[ValueMatch, ...]:
        """Return the matches of a text in the order that the question gives them."""
        fits = {
            key: self._context.fit(words, start, end, *key)
            for key in dict.fromkeys((match.type, match.property) for match in found)
        }

        def worth(match: ValueMatch) -> float:
            frequency = _FREQUENT * min(match.count.bit_length(), 10)
            return match.score + _CONTEXT * fits[match.type, match.property] + frequency

        return tuple(sorted(found, key=lambda match: -worth(match)))

    def _mention(
        self, question: str, words: Sequence[QuestionWord], start: int, end: int, least: float
    ) -> list[ValueMention]:
        """Return the mention of a span, if its best match reaches a score."""
        text = question[start:end]
        best: dict[tuple[str, str], ValueMatch] = {}
        for match in self._ranked(self.index.find(text, limit=_RANKED), words, start, end):
            if match.score >= least:
                best.setdefault((match.type, match.property), match)
        matches = tuple(best.values())[:_KEPT]
        return [ValueMention(text, start, end, matches)] if matches else []

    # Detection

    def _equal(self, question: str, words: Sequence[QuestionWord]) -> list[ValueMention]:
        """Return the runs of words that are values, also in the singular."""
        found = []
        for first, word in enumerate(words):
            forms = [word.folded] if word.code else [word.folded, singular(word.folded)]
            longest = 1 if word.code else max(map(self.index.starting, forms))
            for last in range(first, min(len(words), first + longest)):
                span = words[first : last + 1]
                start, end = span[0].start, span[-1].end
                if not any(_tells(each.folded) for each in span) and not _is_acronym(question[start:end]):
                    continue
                mention = self._mention(question, words, start, end, 0.99)
                if mention and (len(span) > 1 or self._is_named(question, mention[0], words)):
                    found += mention
        return found

    def _is_named(self, question: str, mention: ValueMention, words: Sequence[QuestionWord]) -> bool:
        """True unless a single word is a word of the schema, or one of everyday in small letters."""
        text, best = mention.text, mention.matches[0]
        if text.isdecimal():
            return self._is_measured(question, mention, words)
        if text == best.value or any(map(str.isdigit, text)):
            return True
        if self._is_schema_word(text.casefold()):
            return False
        capitals = any(map(str.isupper, question[1:]))
        small = text == text.casefold() and str(best.value) != str(best.value).casefold()
        if not (small and capitals and self._everyday(text.casefold())):
            return True
        around = words, mention.start, mention.end
        kept = self.index.property(best.type, best.property)
        return self._context.cued(*around, best.property) >= _CUED or (
            kept is not None and kept.kind == "categorical" and self._context.cued(*around, best.type) >= _TYPED
        )

    def _is_measured(self, question: str, mention: ValueMention, words: Sequence[QuestionWord]) -> bool:
        """True for a number that is the value of a property, by the words around it.

        They name the property, or for a year its type; for an id the last word of the property (`user ID 7`). A hyphen
        joins it to its unit (`45-second`). Before a type, another number counts nodes (`3 products`, `3 most expensive
        products`), unless it may be a year.
        """
        joined = question[mention.end : mention.end + 1] == "-"
        if not joined and len(mention.text) != _YEAR and self._context.names_type(words, mention.end):
            return False
        best = mention.matches[0]
        kept = self.index.property(best.type, best.property)
        around = words, mention.start, mention.end
        if kept is not None and kept.kind == "identifier":
            last = split_words(split_label(best.property.replace("_", " ")))[-1:]
            return bool(last) and self._context.cued(*around, last[0]) >= _CUED
        if joined or self._context.cued(*around, best.property, but_types=True) >= _MEASURED:
            return True
        return len(mention.text) == _YEAR and self._context.cued(*around, best.type) >= _TYPED

    def _formatted(self, question: str, words: Sequence[QuestionWord]) -> list[ValueMention]:
        """Return the numbers, dates and times of a question that are values in another format."""
        found = []
        for first in range(len(words)):
            for last in range(first, min(len(words), first + _RUN)):
                start, end = words[first].start, words[last].end
                text = question[start:end]
                if any(map(str.isdigit, text)) and canonical_forms(text):
                    mention = self._mention(question, words, start, end, 1.0)
                    found += [one for one in mention if not text.isdecimal() or self._is_measured(question, one, words)]
        return found

    def _misspelt(
        self, question: str, words: Sequence[QuestionWord], known: Sequence[ValueMention]
    ) -> list[ValueMention]:
        """Return the runs of words that resemble values, around words that are no part of known ones."""
        found = []
        for at, word in enumerate(words):
            if any(word.start < mention.end and word.end > mention.start for mention in known):
                continue
            if word.folded.isdecimal():
                continue
            if word.code or any(map(str.isdigit, word.folded)):
                runs = [(first, at) for first in range(max(0, at - 1), at + 1)] + [(at, at + 1)]
                for first, last in runs:
                    if last < len(words) and (first == last or not canonical_forms(word.folded)):
                        found += self._mention(question, words, words[first].start, words[last].end, _MISSPELT)
            elif self._strange(question, word):
                found += self._around(question, words, at)
        return found

    def _strange(self, question: str, word: QuestionWord) -> bool:
        """True if a word may be misspelt: one with a capital within a sentence, or none of everyday."""
        if len(word.folded) < _LETTERS - 1 or not _tells(word.folded) or self._is_schema_word(word.folded):
            return False
        capital = word.start > 0 and question[word.start].isupper()
        return capital or (len(word.folded) >= _LETTERS and not self._everyday(word.folded))

    def _around(self, question: str, words: Sequence[QuestionWord], at: int) -> list[ValueMention]:
        """Return the best run around a misspelt word."""
        runs = [
            (first, last)
            for first, last in product(
                range(max(0, at - _BESIDE), at + 1), range(at, min(len(words), at + _BESIDE + 1))
            )
            if _tells(words[first].folded) and _tells(words[last].folded)
        ]
        texts = [question[words[first].start : words[last].end] for first, last in runs]
        scores = self.index.nearest(texts, words[at].folded)
        best = max(range(len(runs)), key=lambda place: (scores[place], -len(texts[place])))
        if scores[best] <= 0:
            return []
        first, last = runs[best]
        return self._mention(question, words, words[first].start, words[last].end, _MISSPELT)

    # Meaning

    @cached_property
    def _categories(self) -> tuple[list[tuple[str, str, str, int]], Float64]:
        """Return the values of categories, and their vectors."""
        few = [one for one in self.index.properties() if one.kind == "categorical" and one.distinct <= _CATEGORIES]
        values = [
            (match.type, match.property, match.value, match.count)
            for one in few
            for match in self.index.values(one.type, one.property, _CATEGORIES)
            if isinstance(match.value, str) and len(split_words(match.value)) > 1
        ]
        vectors = self._embedder.encode([value for _, _, value, _ in values])
        return values, exact(vectors)

    def _meant(self, question: str, words: Sequence[QuestionWord], known: Iterable[ValueMention]) -> list[ValueMention]:
        """Return the best phrase for each property whose values are categories, if it means one of them."""
        values, vectors = self._categories
        if not values:
            return []
        taken = {at for at, word in enumerate(words) for one in known if one.start <= word.start < one.end}
        runs = [
            (first, last)
            for first in range(len(words))
            for last in range(first, min(len(words), first + _PHRASE))
            if taken.isdisjoint(range(first, last + 1)) and self._is_phrase(words[first : last + 1])
        ]
        if not runs:
            return []
        texts = [question[words[first].start : words[last].end] for first, last in runs]
        rests = [
            " ".join(word.folded for word in words[first : last + 1] if not self._is_schema_word(word.folded))
            for first, last in runs
        ]
        cosines = exact(self._embedder.encode(texts)) @ vectors.T
        rest = exact(self._embedder.encode(rests)) @ vectors.T
        pair = np.array([[last - first == 1] for first, last in runs])
        plain = np.array([all(map(self._is_schema_word, split_words(value))) for _, _, value, _ in values])
        meant = ((cosines >= _MEANT) & (rest >= _MEANT_REST)) | (pair & plain & (cosines >= _MEANT_PAIR))
        found: dict[tuple[str, str], ValueMention] = {}
        best: dict[tuple[str, str], float] = {}
        for run, value in zip(*np.nonzero(meant), strict=True):
            type, property, stored, count = values[value]
            score = float(cosines[run, value])
            if score > best.get((type, property), 0.0):
                best[type, property] = score
                match = ValueMatch(type, property, stored, min(score, 0.98), False, count)
                first, last = runs[run]
                found[type, property] = ValueMention(texts[run], words[first].start, words[last].end, (match,))
        return list(found.values())

    def _is_phrase(self, words: Sequence[QuestionWord]) -> bool:
        """True if words begin and end with telling ones, and some are no words of the schema."""
        return (
            _tells(words[0].folded)
            and _tells(words[-1].folded)
            and any(_tells(word.folded) and not self._is_schema_word(word.folded) for word in words)
        )


def _is_acronym(text: str) -> bool:
    """True for a text in capitals: `US` is no pronoun."""
    return len(text) > 1 and text.isupper()


def _tells(word: str) -> bool:
    return word not in FUNCTION_WORDS and word not in QUESTION_WORDS


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
_DESCRIBED = 3
"""Distance in words from a count to the type that it counts, at most (`3 most expensive products`)."""
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

    def names_type(self, words: Sequence[QuestionWord], end: int) -> bool:
        """True if a word for a type follows a mention that ends there, next to it or behind what describes the type."""
        after = [word.folded for word in words if word.start >= end][:_DESCRIBED]
        return any(singular(word) in self._types for word in takewhile(_tells, after))

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
