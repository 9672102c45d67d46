"""Similarity of question words to relation labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float32, Float64, Int64
from byokg.graph.store import GraphStore
from byokg.index.embedders import Embedder, compare_rows, exact
from byokg.offline.lexicon import rule
from byokg.text.names import FUNCTION_WORDS, UNRELATED, Lexicon, label_words, related, relation_text, singular, synonyms

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class LabelLimits:
    """Lengths in relation labels."""

    verb: int = 3
    """Letters of an inflected verb too short to be distinctive: `has`."""
    heads: int = 48
    """Heads of each relation that are sampled for their incoming relations."""
    antonym: int = 5
    """Common first letters of a word and its antonym without prefix: `indication`, `contraindicated`."""


_LABEL_LIMITS = LabelLimits()

_NOT_ACTING = frozenset(
    "order number member chapter center centre river water letter paper chapter offer color".split()
)
"""Words that only end like those for people who do something."""


def is_agent_noun(word: str) -> bool:
    """True for an agent noun: `manager`, `author`."""
    return len(word) > 4 and word.endswith(("er", "or", "ist", "ian")) and word not in _NOT_ACTING


def leading_verb(words: Sequence[str]) -> str:
    """Return the leading verb of a relation label (`plays_in_club` -> `play`), or "".

    >>> [leading_verb(label.split()) for label in ("plays in club", "is aged", "played by")]
    ['play', '', '']
    """
    first = words[0]
    return singular(first) if len(first) > _LABEL_LIMITS.verb and first.endswith("s") and words[-1] != "by" else ""


def agent_noun_verbs(noun: str) -> frozenset[str]:
    """Return candidate verb stems of an agent noun (`players` -> `play`); at most one is a real word.

    >>> [sorted(agent_noun_verbs(noun)) for noun in ("players", "runner", "city")]
    [['play', 'playe'], ['run', 'runn', 'runne'], []]
    """
    noun = singular(noun)
    if not is_agent_noun(noun) or not noun.endswith(("er", "or")):
        return frozenset()
    stem = noun[:-2]
    return frozenset({stem, noun[:-1], *([stem[:-1]] if stem[-1] == stem[-2] else ())})


NEGATING = ("contra", "non", "un")
"""Prefixes of antonyms."""

NEGATIONS = frozenset("not never no without cannot nor neither".split())
"""Negations."""

FORBIDDING = frozenset("must should shall may can ca could ought mustn shouldn couldn".split())
"""Modals that express a prohibition with `not`."""


def is_prohibition(words: Sequence[str]) -> bool:
    """True if a question asks for prohibited things: `should not take X`, `can't be combined with X`."""
    pairs = pairwise(words)
    return "cannot" in words or any(one in FORBIDDING and other in ("not", "never", "t") for one, other in pairs)


def antonym_relations(labels: Sequence[Sequence[str]]) -> dict[int, tuple[str, frozenset[int]]]:
    """Return antonym relations with the antonymous word, and the relations they oppose.

    >>> antonym_relations([["indication"], ["contraindicated"], ["universities"], ["sites"], ["not", "recommended"]])
    {1: ('contraindicated', frozenset({0})), 4: ('not', frozenset())}
    """
    beginning: dict[str, set[int]] = defaultdict(set)
    for number, label in enumerate(labels):
        for word in label:
            beginning[word[: _LABEL_LIMITS.antonym]].add(number)
    found = dict[int, tuple[str, frozenset[int]]]()
    for number, label in enumerate(labels):
        for word in label:
            rests = (word.removeprefix(start) for start in NEGATING if word.startswith(start))
            plain = [rest[: _LABEL_LIMITS.antonym] for rest in rests if len(rest) > _LABEL_LIMITS.verb]
            others = frozenset().union(*(beginning.get(rest, ()) for rest in plain)) - {number}
            if others or word in NEGATIONS:
                found[number] = word, others
    return found


_TYING = frozenset("of for to in on at with from by".split())


def label_names_head(words: Sequence[str]) -> bool:
    """True if a relation label names its head: `capital of`, `is a vector for`.

    >>> [label_names_head(label.split()) for label in ("part of", "is a vector for", "belongs to the family of")]
    [True, True, False]
    """
    if words[:1] in (["is"], ["are"]) and words[1:2] in (["a"], ["an"], ["the"]):
        return words[-1] in _TYING
    verb = len(words) > 2 and words[0].endswith("s") and words[1] in _TYING
    return words[-1] == "of" and not verb


def content_words(words: Sequence[str]) -> list[str]:
    """Return the content words; all words, if there are none."""
    return [word for word in words if word not in FUNCTION_WORDS] or list(words)


def subject_verbs(store: GraphStore, labels: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[str]:
    """Return the leading verb of each relation, an activity of its heads: `plays_in_club`; empty if there is none.

    If several begin with one verb, it is no activity of heads with another class name from their incoming relations:
    with `plays_in_club` and `plays_in_league` only those are players that no `…_club` leads to.

    Args:
        store: the graph.
        labels: the words of each relation's namespace, and its own.
    """
    verbs = [leading_verb(own) for _, own in labels]
    often = Counter(filter(None, verbs))
    among = [number for number, verb in enumerate(verbs) if often[verb] > 1]
    if not among:
        return verbs
    batch, otherwise = store.sample_edges(_LABEL_LIMITS.heads), set[int]()
    calls = np.array([_calls(own) for _, own in labels], np.bool_)
    doers: dict[str, list[int]] = defaultdict(list)
    for number, (_, own) in enumerate(labels):
        for verb in agent_noun_verbs(own[-1]):
            doers[verb].append(number)
    bounds = np.searchsorted(batch.relation, [(number, number + 1) for number in among])  # edges come by relation
    for number, (first, last) in zip(among, bounds.tolist(), strict=True):
        naming = calls.copy()
        naming[doers[verbs[number]]] = False
        heads = np.unique(batch.head[first:last]).astype(np.int64)
        counts = store.relation_counts(heads)
        called = np.unique(counts.origin[counts.inverse & naming[counts.relation]])
        if 2 * len(called) >= len(heads):
            otherwise.add(number)
    told = {verbs[number] for number in among if number not in otherwise}
    return ["" if number in otherwise and verb in told else verb for number, verb in enumerate(verbs)]


def _calls(own: Sequence[str]) -> bool:
    """True if a relation label names its tail: `club`, `plays in club`, not `captained by`."""
    return (
        not label_names_head(own)
        and own[-1] not in FUNCTION_WORDS
        and not own[-1].endswith("ed")
        and not leading_verb(own[-1:])
    )


@dataclass(frozen=True)
class WordSettings:
    """How words are compared with words; found on the dev splits of MetaQA, WebQSP and atlas."""

    cache_bytes: int = 64 << 20
    """Memory of the similarities of words."""
    derived: float = 0.6
    """Added to the cosine of two words that share a stem."""
    synonym: float = 0.5
    """Added to the cosine of two words that name the same kind of relation (`wife`, `spouse`)."""
    namespace: float = 0.5
    """Weight of a word in a relation's namespace against one in its own name (`film.director.film`)."""
    threshold: float = 0.3
    """Similarities up to here count as none; the rest is stretched to [0, 1]."""

    def raise_cosines(self, cosines: Float64, kin: Float64) -> Float64:
        """Raise the cosines of relatives: (N,) and (N,) to (N,), at most 1; an equal word has 1."""
        nearer: Float64 = np.where(kin >= 1, 1.0, np.minimum(1.0, cosines + kin))
        return nearer

    def kinship(self, lexicon: Lexicon, word: str) -> Float64:
        """Return the bonus on the cosine of each word of a lexicon: 1 for an equal one, less for a related one."""
        kin = np.zeros(len(lexicon.words))
        for place in lexicon.related(word):
            kin[place] = 1.0 if lexicon.words[place] == word else self.derived
        for place in lexicon.singular(synonyms().get(singular(word), UNRELATED).alike):
            kin[place] = max(kin[place], self.synonym)
        return kin

    def stretch(self, similarity: Float64) -> Float32:
        """Map similarities above the threshold to (0, 1], others to 0."""
        stretched: Float32 = np.clip((similarity - self.threshold) / (1 - self.threshold), 0, 1).astype(np.float32)
        return stretched


class LabelSimilarity:
    """Compares words with the labels of R relations, of S = 2 · R steps.

    Args:
        labels: the relations' labels, or the meanings of their properties.
        embedder: encodes labels.
        vector: returns the vector of a word.
        settings: weights and thresholds.
    """

    def __init__(
        self, labels: Sequence[str], embedder: Embedder, vector: Callable[[str], Float64], settings: WordSettings
    ) -> None:
        self.labels = labels
        """(R,) what each relation is called."""
        self.words = [label_words(label) for label in labels]
        """(R,) words of the namespace, and of the relation's own name."""
        self._vector = vector
        self._settings = settings
        self._acts = np.array([own[-1] == "by" or is_agent_noun(own[-1]) for _, own in self.words], np.bool_)
        self.names_head = np.array([label_names_head(own) for _, own in self.words], np.bool_)
        self.own = [content_words(own) for _, own in self.words]
        self.namespace = [content_words(namespace) for namespace, _ in self.words]
        self._antonyms = antonym_relations(self.own)
        self._lexicon, numbers = number_words(self.own, self.namespace)
        self._own_numbers, self._namespace_numbers = (np.ascontiguousarray(each.T) for each in numbers)
        self._word_vectors = exact(embedder.encode(self._lexicon.words))
        self.own_vectors = exact(embedder.encode([" ".join(own) for _, own in self.words]))
        self.text_vectors: Float64 = exact(embedder.encode([relation_text(label) for label in labels]))
        """(R, D) one vector for each relation with its namespace."""
        self.cached_words = max(64, settings.cache_bytes // (16 * max(1, 2 * len(labels))))
        self.parts = lru_cache(self.cached_words)(self._parts)
        """Returns the similarity of a word to each relation's own name, its namespace, and the name of its other end.

        Each is (R,). The name of a relation names its tail (`parent`), but not one with `of` (`part_of`).
        """
        self.similarity = lru_cache(self.cached_words)(self._similarity)
        """Returns how much a word resembles the relation of each step: (S,) in [0, 1]."""

    def _similarity(self, word: str) -> Float32:
        own, namespace, turned = self.parts(word)
        either = np.maximum(own, namespace)
        both = np.maximum(either, turned)
        alike = self._lexicon.singular(synonyms().get(singular(word), UNRELATED).alike)
        either = np.where(np.isin(self._own_numbers, alike).any(axis=0), both, either)  # `belong` has both meanings
        along, back = np.where(self.names_head, both, either), np.where(self.names_head, either, both)
        return self._settings.stretch(np.stack((along, back), axis=1).ravel())

    def _parts(self, word: str) -> tuple[Float64, Float64, Float64]:
        vector, settings = self._vector(word), self._settings
        alike = settings.raise_cosines(compare_rows(self._word_vectors, vector), settings.kinship(self._lexicon, word))
        alike = np.append(alike, -1.0)  # for the padding
        own = np.maximum(alike[self._own_numbers].max(axis=0), compare_rows(self.own_vectors, vector))
        converse = np.zeros(len(self._lexicon.words) + 1)
        converse[self._lexicon.singular(synonyms().get(singular(word), UNRELATED).converse)] = settings.synonym
        turned = np.where(converse[self._own_numbers].max(axis=0) > 0, np.minimum(1.0, own + settings.synonym), 0.0)
        return own, settings.namespace * alike[self._namespace_numbers].max(axis=0), turned

    def has_any(self, words: Collection[str]) -> bool:
        """True if a label has one of some words, in the singular."""
        return bool(self._lexicon.singular(words))

    @rule(
        "antonyms",
        "which drugs should not be given to {Tom}",
        lambda self, words: np.zeros(2 * len(self.labels), np.bool_),
    )
    def antonym_mask(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Mask steps whose relation is an antonym of some words: (S,).

        `Contraindicated in` matches `contraindicated`, a synonym (`avoid`), or a `not`; in a prohibition
        (`which drugs should not be given to X`), `indicated for` does not match.
        """
        relations, forbidden = np.zeros(len(self.labels), np.bool_), is_prohibition(words)
        alike = {singular(word) for word in words}.union(
            *(synonyms().get(singular(word), UNRELATED).alike for word in words)
        )
        for number, (opposite, others) in self._antonyms.items():
            if forbidden:
                relations[list(others)] = True
            elif NEGATIONS.isdisjoint(words) and singular(opposite) not in alike:
                relations[number] = not any(word.startswith(NEGATING) and related(word, opposite) for word in words)
        return np.repeat(relations, 2)

    @rule(
        "direction by syntax",
        "who reports to {Tom}",
        lambda self, word, use, outward: np.zeros(2 * len(self.own), np.bool_),
    )
    def backward_mask(self, word: str, use: str, outward: bool) -> npt.NDArray[np.bool_]:
        """Mask steps that a word in a syntactic role leads against, whatever the relation: (S,).

        `The boss of X` goes along a relation, `employees reporting to X` against it. Labels with an agent noun
        (`managed by`, `manager`) turn a verb for its activity (`who manages X`), labels that name the other end
        (`manager of`) the noun.

        Args:
            word: the word.
            use: its role, see `parse.Use`.
            outward: its direction, see `parse.Role`.
        """
        along = np.full(len(self.own), outward)
        kin = np.isin(self._own_numbers, self._lexicon.related(word)).any(axis=0)
        if use == "noun":
            converse = self._lexicon.singular(synonyms().get(singular(word), UNRELATED).converse)
            other = np.isin(self._own_numbers, converse).any(axis=0) & ~kin
            turned = (self.names_head ^ other) | (kin & ~self._acts & is_agent_noun(word))
        elif use == "active":
            turned = self._acts
        else:
            turned = kin & ~self._acts & (use == "passive")
        backward = ~(along ^ turned)
        return np.stack((backward, ~backward), axis=1).ravel()


def number_words(*lists: Sequence[Sequence[str]]) -> tuple[Lexicon, list[Int64]]:
    """Make a lexicon of all words, and turn each list of words into numbers, filled up with -1."""
    lexicon = Lexicon(sorted({word for words in lists for row in words for word in row}))
    number = {word: position for position, word in enumerate(lexicon.words)}
    return lexicon, [_padded([[number[word] for word in row] for row in words]) for words in lists]


def _padded(rows: Sequence[Sequence[int]]) -> Int64:
    """Return the rows as one array, filled up with -1."""
    out = np.full((len(rows), max(1, max(map(len, rows), default=1))), -1, np.int64)
    for position, row in enumerate(rows):
        out[position, : len(row)] = row
    return out
