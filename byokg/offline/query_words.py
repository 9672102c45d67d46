"""Similarity of question words to the types, steps and properties of a typed schema."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from byokg.arrays import Float64
from byokg.index.embedders import Embedder, exact
from byokg.offline.lexicon import load_lexicon
from byokg.offline.query_schema import TypedSchema
from byokg.offline.query_settings import WORDS
from byokg.text.names import related, singular
from byokg.text.synonyms import UNRELATED, synonyms

_PERSONS = frozenset(
    "who whom whose someone anyone everyone somebody anybody everybody those folk folks named called guy".split()
)
_PLACES = frozenset(("where",))


class SchemaWords:
    """Compares the words of questions with the labels of a typed schema; thread-safe.

    Elements are numbered: first the types, then the relations, then the properties.
    """

    def __init__(self, schema: TypedSchema, embedder: Embedder) -> None:
        self._embedder = embedder
        relations = {step.relation: step.words for step in schema.steps}
        labels = [*schema.type_words, *(relations.get(at, ()) for at in range(len(schema.graph.relations)))]
        labels += [one.words for one in schema.properties]
        self.first_relation = len(schema.types)
        self.first_property = self.first_relation + len(schema.graph.relations)
        self.labels: tuple[tuple[str, ...], ...] = tuple(labels)
        self._vocabulary = sorted({word for label in labels for word in label})
        place = {word: at for at, word in enumerate(self._vocabulary)}
        self._of_label = [np.array([place[word] for word in label], np.int64) for label in labels]
        self._joined = ["".join(label) for label in labels]
        self._acronyms = ["".join(word[0] for word in label) for label in labels]
        vectors = embedder.encode([*self._vocabulary, *(" ".join(label) for label in labels)])
        self._vectors, self._label_vectors = np.split(exact(vectors), [len(self._vocabulary)])
        self._known = {*self._vocabulary, *self._joined}
        kinds = load_lexicon("kinds")
        self._personal = self._typed(" ".join(kinds["who"]).split())
        self._placed = self._typed(" ".join(kinds["where"]).split())
        self.of_word = lru_cache(WORDS.remembered)(self._compared)
        """Returns the similarity of a word to each label, in [0, 1]: (E,)."""

    def _typed(self, words: Sequence[str]) -> Float64:
        of_type = [singular(label[-1]) in words for label in self.labels[: self.first_relation]]
        return np.array([*of_type, *[False] * (len(self.labels) - self.first_relation)], np.float64)

    def _compared(self, word: str) -> Float64:
        plain, kin = singular(word), synonyms().get(singular(word), UNRELATED)
        vector = exact(self._embedder.encode([word])[0])
        words = _scaled(self._vectors @ vector)
        for at, other in enumerate(self._vocabulary):
            words[at] = max(words[at], _lexical(word, plain, other, kin.alike))
        labels = _scaled(self._label_vectors @ vector)
        for at, (places, joined) in enumerate(zip(self._of_label, self._joined, strict=True)):
            if not len(places):
                labels[at] = 0.0
                continue
            own = words[places].copy()
            own[:-1] *= WORDS.modifier
            labels[at] = max(labels[at], own.max(), WORDS.equal * (joined in (plain, word)))
        if word in _PERSONS:
            labels = np.maximum(labels, WORDS.person * self._personal)
        if word in _PLACES:
            labels = np.maximum(labels, WORDS.person * self._placed)
        return labels

    def table(self, words: Sequence[str]) -> Float64:
        """Return how well each element explains each word of a question, in [0, 1]: (E, W)."""
        compared = [self.of_word(word) for word in words]
        for at, joined in enumerate(one + singular(other) for one, other in pairwise(words)):
            if joined in synonyms() or joined in self._known:
                pair = self.of_word(joined)
                compared[at : at + 2] = [np.maximum(each, pair) for each in compared[at : at + 2]]
        explained = np.stack(compared, axis=1) if words else np.zeros((len(self.labels), 0))
        initials = "".join(word[0] for word in words)
        for at, label in enumerate(self.labels):
            for short in label:  # `LW` are the first letters of `lives with`
                if 2 <= len(short) <= 3 and short in initials and not _vowel(short):
                    begin = initials.index(short)
                    own = explained[at, begin : begin + len(short)]
                    np.maximum(own, WORDS.abbreviation, out=own)
        return explained


def _vowel(word: str) -> bool:
    return any(letter in "aeiouy" for letter in word)


def _scaled(cosines: Float64) -> Float64:
    return np.clip((cosines - WORDS.unlike) / (1 - WORDS.unlike), 0, 1) * WORDS.like


def _lexical(word: str, plain: str, other: str, alike: frozenset[str]) -> float:
    if word == other or plain == singular(other):
        return WORDS.equal
    if len(other) > 2 and len(word) > 3 and related(word, other):
        return WORDS.stem
    if singular(other) in alike:
        return WORDS.synonym
    if len(other) > 2 and len(word) > len(other) + 1 and word.startswith(other):
        return WORDS.abbreviation
    return 0.0
