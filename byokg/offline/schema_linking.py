"""Schema linking: similarity of question words to relations and their ranges.

`RelationSimilarity` compares words with the steps of a graph; a step is a relation walked one way, numbered as in
`graph.paths`. All statistics come from the graph at hand: relation labels, node types if there are any, and a sample of
the names at the ends of each relation.

`SampledStatistics` reads all relations and a sample of their edges once. That takes minutes on a server, where listing
the relations alone takes seconds: `SchemaStatistics` holds only relations and ends that walks have met.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float32, Float64, Int64
from byokg.graph.inverses import inverse_relations
from byokg.graph.paths import Growth
from byokg.graph.property_view import PropertyView
from byokg.graph.sorted_ids import contains, distinct
from byokg.graph.store import Direction, GraphStore
from byokg.index.embedders import Embedder, compare_rows, exact, unit_rows
from byokg.offline.lexicon import cached, rule
from byokg.offline.parse import Role
from byokg.text.names import (
    FUNCTION_WORDS,
    UNRELATED,
    Lexicon,
    is_identifier,
    label_words,
    related,
    relation_text,
    singular,
    split_words,
    synonyms,
)
from byokg.types import INVERSE, Metapath


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
        self.backward_mask = cached(self.cached_words)(self._led_against)
        """Returns a mask of steps that a word in a syntactic role leads against: (S,)."""
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

    @rule("antonyms", "which drugs should not be given to {Tom}", lambda self, _: np.zeros(2 * len(self.labels), bool))
    def antonym_mask(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Mask steps whose relation is an antonym of some words: (S,).

        `Contraindicated in` matches `contraindicated`, a synonym (`avoid`), or a `not`; in a prohibition
        (`which drugs should not be given to X`), `indicated for` does not match.
        """
        relations = np.zeros(len(self.labels), np.bool_)
        if not self._antonyms:
            return np.repeat(relations, 2)
        forbidden = is_prohibition(words)
        alike = {singular(word) for word in words}.union(
            *(synonyms().get(singular(word), UNRELATED).alike for word in words)
        )
        for number, (opposite, others) in self._antonyms.items():
            if forbidden:
                relations[list(others)] = True
            elif NEGATIONS.isdisjoint(words) and singular(opposite) not in alike:
                relations[number] = not any(word.startswith(NEGATING) and related(word, opposite) for word in words)
        return np.repeat(relations, 2)

    @rule("direction by syntax", "who reports to {Tom}", lambda self, *_: np.zeros(2 * len(self.own), bool))
    def _led_against(self, word: str, use: str, outward: bool) -> npt.NDArray[np.bool_]:
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


Labels = Sequence[tuple[Sequence[str], Sequence[str]]]
"""Words of each relation's namespace, and of its own name."""

Pairs = tuple[Int64, Int64]
"""Parallel arrays: a place in an array of nodes, and a relation; each pair once, ascending."""


@dataclass(frozen=True)
class StepEnds:
    """P pairs of a step and a node that it leads to, of N nodes."""

    steps: Int64
    """(P,)"""
    nodes: Int64
    """(N,) node numbers."""
    places: Int64
    """(P,) places in `nodes`."""


_NO_ENDS = StepEnds(*(np.empty(0, np.int64) for _ in range(3)))


class SchemaStatistics:
    """Relations of a graph, and the nodes that they lead to: those that walks have met, as on a server.

    Args:
        store: the graph.
        near: ends of each step that are read, evenly spread over their ids, so that results depend on the graph alone.
    """

    grows = True
    """True if walks add relations and ends."""

    def __init__(self, store: GraphStore, near: int = 8) -> None:
        self.store = store
        self._near = near

    @property
    def relations(self) -> Sequence[str]:
        """Return the labels of the relations known so far, by number."""
        return self.store.met_relations

    def list_relations(self) -> None:
        """Number all relations of the graph, by a request for their list."""
        len(self.store.relations)

    def inverses(self) -> Mapping[str, frozenset[str]]:
        """Return for each label the relations that store the same facts the other way; empty if unknown."""
        return {}

    def verbs(self, labels: Labels) -> Sequence[str]:
        """Return the verb of each relation's heads, here of its label; empty for a relation without one."""
        return [leading_verb(own) for _, own in labels]

    def ends(self) -> StepEnds:
        """Return the ends known before a walk."""
        return _NO_ENDS

    def observe(self, ends: StepEnds, growth: Growth) -> StepEnds:
        """Return ends with those of metapaths added, as far as these were missing."""
        owner = np.repeat(growth.steps[:, -1], np.diff(growth.bounds))
        fresh = ~np.isin(owner, ends.steps)
        if not fresh.any():
            return ends
        met, place = np.unique(np.asarray(growth.ends, np.int64)[fresh], return_inverse=True)
        by_id = np.argsort(np.argsort(np.array(self.store.ids(met), object), kind="stable"), kind="stable")
        pairs = distinct(owner[fresh] * len(met) + by_id[place])
        step, rank = pairs // len(met), pairs % len(met)
        first = np.searchsorted(step, step)
        size, at = np.searchsorted(step, step, "right") - first, np.arange(len(step)) - first
        kept = at * self._near // size != (at - 1) * self._near // size
        step, new = step[kept], met[np.argsort(by_id)][rank[kept]]
        nodes, places = np.unique(np.concatenate((ends.nodes[ends.places], new)), return_inverse=True)
        return StepEnds(np.concatenate((ends.steps, step)), nodes, places)

    def outgoing(self, nodes: Int64, typed: bool) -> Pairs:
        """Return the relations out of nodes; of typed ones none. A server counts faster than it returns edges."""
        if typed:
            return _NO_ENDS.steps, _NO_ENDS.places
        counts = self.store.relation_counts(nodes)
        return _distinct_pairs(counts.origin[~counts.inverse], counts.relation[~counts.inverse])

    def incoming(self, nodes: Int64) -> Pairs:
        """Return the relations into nodes; here none, since they would take a request for each question."""
        return _NO_ENDS.steps, _NO_ENDS.places

    def step_count(self, steps: Int64) -> int:
        """Return the number of steps, here of those with ends."""
        return len(np.unique(steps))


class SampledStatistics(SchemaStatistics):
    """Statistics of a graph in files: all relations, and a sample of their ends.

    Args:
        store: the graph.
        sample: sampled edges of each relation.
    """

    grows = False

    def __init__(self, store: GraphStore, sample: int = 48) -> None:
        super().__init__(store)
        self._relations: Sequence[str] = store.relations
        self._plain = store.store if isinstance(store, PropertyView) else store
        self._sample = sample

    @property
    def relations(self) -> Sequence[str]:
        """Return the labels of all relations."""
        return self._relations

    def list_relations(self) -> None:
        """Do nothing: all relations have numbers."""

    def inverses(self) -> Mapping[str, frozenset[str]]:
        """Return for each label the relations that store the same facts the other way."""
        return inverse_relations(self._plain)

    def verbs(self, labels: Labels) -> Sequence[str]:
        """Return the verb of each relation's heads, as far as sampled heads agree."""
        return subject_verbs(self.store, labels)

    def ends(self) -> StepEnds:
        """Sample the ends of each step."""
        batch = self.store.sample_edges(self._sample)
        ends, place = np.unique(np.concatenate((batch.tail, batch.head)), return_inverse=True)
        step = np.concatenate((2 * batch.relation.astype(np.int64), 2 * batch.relation.astype(np.int64) + 1))
        if batch.undirected is not None:  # either step leads to either end
            twice = np.concatenate((batch.undirected, batch.undirected))
            step, place = np.concatenate((step, step[twice] ^ 1)), np.concatenate((place, place[twice]))
        many = max(1, len(ends))
        pairs = distinct(step * many + place)
        return StepEnds(pairs // many, ends.astype(np.int64), pairs % many)

    def observe(self, ends: StepEnds, growth: Growth) -> StepEnds:
        """Return the same ends: a sample of all is known."""
        return ends

    def outgoing(self, nodes: Int64, typed: bool) -> Pairs:
        """Return the relations out of nodes."""
        batch = self.store.capped_edges(nodes, Direction.OUT, None, 1)
        return _distinct_pairs(batch.origin, batch.relation)

    def incoming(self, nodes: Int64) -> Pairs:
        """Return the relations into nodes."""
        counts = self.store.relation_counts(nodes)
        return _distinct_pairs(counts.origin[counts.inverse], counts.relation[counts.inverse])

    def step_count(self, steps: Int64) -> int:
        """Return the number of all steps."""
        return 2 * len(self.relations)


def _distinct_pairs(owner: npt.NDArray[np.integer], relation: npt.NDArray[np.integer]) -> Pairs:
    """Return each pair of an owner and a relation once, ascending."""
    many = int(relation.max(initial=0)) + 1
    pairs = distinct(owner.astype(np.int64) * many + relation)
    return pairs // many, pairs % many


_YEAR = re.compile(r"-?\d{4}(-\d\d(-\d\d)?)?")

_VECTORS = 1 << 12
"""Words whose vectors are cached: a transformer takes 10 ms for each, and every word is compared twice."""


@dataclass(frozen=True)
class SimilaritySettings(WordSettings):
    """How words are compared with steps; all found on the dev splits of MetaQA, WebQSP and atlas."""

    kinds: int = 8
    """Node kinds kept for a step, the most frequent ones."""
    names: float = 0.57
    """Weight of resembling the names at the end of a step against resembling the relation."""
    profile: float = 1.0
    """Weight of similarity to the other relations of the range, if nodes have no types."""
    called: float = 0.9
    """Weight of similarity to a relation into the range, which names it (`author`)."""
    common: float = 0.2
    """Types reached by more than this share of steps are uninformative (`topic`); typed nodes are exempt."""
    enough: float = 0.35
    """Share of a step's ends from which a kind counts fully."""
    either_way: float = 0.1
    """Share of a relation's tails that have it, too, from which it may be meant either way."""


class RelationSimilarity:
    """Compares words with the S = 2 · R steps of a graph with R relations; thread-safe.

    Args:
        store: the graph.
        embedder: encodes words, names and relations.
        settings: weights and thresholds.
        statistics: of the relations and their ends; None samples the graph. Statistics that grow are read by `observe`,
            for walked steps, and `refresh`, for further relations.
        names: encodes relations and names at their ends in the place of `embedder`, with equal vectors: a disk cache.
    """

    def __init__(
        self,
        store: GraphStore,
        embedder: Embedder,
        settings: SimilaritySettings | None = None,
        statistics: SchemaStatistics | None = None,
        names: Embedder | None = None,
    ) -> None:
        self.settings = settings or SimilaritySettings()
        self.statistics = statistics or SampledStatistics(store)
        self._store = store
        self._embedder = names or embedder
        self._vector = lru_cache(_VECTORS)(lambda word: exact(embedder.encode([word])[0]))
        self._read_relations()
        self._latest = [self]
        self._ends = self.statistics.ends()
        self._read_ends()

    def refresh(self) -> RelationSimilarity:
        """Return steps with all relations numbered so far, without statistics of the ends of new ones."""
        if self._latest[0].count < 2 * len(self.statistics.relations):
            grown = copy(self._latest[0])
            grown._read_ends()
            self._latest[0] = grown
        return self._latest[0]

    def observe(self, growth: Growth) -> RelationSimilarity:
        """Return these steps with statistics of the ends of metapaths, as far as these were missing."""
        ends = self.statistics.observe(self._ends, growth)
        if ends is self._ends:
            return self
        other = copy(self)
        other._ends = ends
        other._read_ends()
        return other

    @property
    def labels(self) -> Sequence[str]:
        """Return what each relation is called: (R,)."""
        return self.relations.labels

    def encode_path(self, metapath: Metapath) -> list[int]:
        """Return the steps of a metapath, those that are known."""
        steps = []
        for label in metapath:
            plain = label.removeprefix(INVERSE)
            turned = plain != label and (plain in self.number or label not in self.number)
            number = self.number.get(plain if turned else label)
            if number is not None:
                steps.append(2 * number + turned)
        return steps

    def hops(self, walk: Sequence[int]) -> int:
        """Return how many hops the steps of a metapath make: two that are joined by a nameless node make one."""
        return len(walk) - int((self.nameless[list(walk[:-1])] > 0.5).sum())

    def has_relation(self, word: str) -> bool:
        """True if a word, a synonym, or a word for the other end names a relation of the graph."""
        self.statistics.list_relations()
        kin = synonyms().get(singular(word), UNRELATED)
        return self.refresh().relations.has_any({singular(word)} | kin.alike | kin.converse)

    def label_similarity(self, word: str) -> Float32:
        """Return how much a word resembles the relation of each step: (S,) in [0, 1]."""
        return self.relations.similarity(word)

    def type_similarity(self, word: str) -> Float32:
        """Return how much a word resembles what each step leads to, by kind or by name: (S,) in [0, 1]."""
        return self._compared(word)[0]

    def range_similarity(self, word: str) -> Float32:
        """Return the similarity of each step's range and a noun: (S,) in [0, 1].

        The range counts by its type; besides, a relation's own name names its tail (`capital`), and its namespace its
        head (`film.…`).
        """
        return self._compared(word)[1]

    def instance_similarity(self, word: str) -> Float32:
        """Return the cosine of a word with the names each step leads to: (S,) in [-1, 1]."""
        return self._compared(word)[2]

    def direction_mismatch(self, word: str, role: Role) -> npt.NDArray[np.bool_]:
        """Mask relations whose direction contradicts the word's syntactic role: (S,) bool.

        Only those of ambiguous direction: the tails of a relation have it, too (`reports to`), and the node does not
        decide the direction; symmetric ones (`borders`) are exempt.
        """
        if not role.use:
            return np.zeros(self.count, np.bool_)
        return self.relations.backward_mask(word, role.use, role.outward) & self._either_way

    def _compute(self, word: str) -> tuple[Float32, Float32, Float32]:
        settings = self.settings
        vector = self._vector(word)
        own, namespace, turned = self.relations.parts(word)
        done = np.isin(self._doing, list(agent_noun_verbs(word)))
        heads = self.relations.names_head | done
        own, turned = np.where(heads, turned, own), np.where(heads, np.maximum(own, done), turned)
        kin = np.append(settings.kinship(self._kind_lexicon, word), 0.0)
        kinds = settings.raise_cosines(compare_rows(self._kind_vectors, vector), kin[self._kind_numbers].max(axis=1))
        kind = (np.maximum(np.append(kinds, 0.0), 0.0)[self._step_kinds] * self._kind_weights).max(axis=1)
        if self._heads is not None and done.any():
            kind = np.maximum(kind, self._does(np.flatnonzero(done)))
        instance_similarity = compare_rows(self.name_vectors, vector)
        end = np.maximum(settings.names * instance_similarity, kind)
        reach = np.maximum(np.stack((own, np.maximum(namespace, turned)), axis=1).ravel(), end)
        return settings.stretch(end), settings.stretch(reach), instance_similarity.astype(np.float32)

    def _does(self, relations: Int64) -> Float64:
        """Return how surely the ends of each step are heads of some relations: (S,) in [0, 1]."""
        assert self._heads is not None
        step, place, size, owner, relation = self._heads
        heads = distinct(owner[np.isin(relation, relations)])
        share = np.bincount(step, np.isin(place, heads), self.count) / size
        return np.minimum(1.0, share / self.settings.enough)

    # Compared texts

    def _read_relations(self) -> None:
        """Read the labels of all relations that have numbers by now."""
        store, relations = self._store, tuple(self.statistics.relations)
        self.count = 2 * len(relations)
        self.number: Mapping[str, int] = {label: number for number, label in enumerate(relations)}
        """The number of each relation, by its label."""
        meanings = store.meanings if isinstance(store, PropertyView) else {}
        labels = [meanings.get(number, label) for number, label in enumerate(relations)]
        self.relations = LabelSimilarity(labels, self._embedder, self._vector, self.settings)
        self._doing = np.array(self.statistics.verbs(self.relations.words), object)
        inverses = self.statistics.inverses()
        self._symmetric = np.array([label in inverses.get(label, ()) for label in relations], np.bool_)

    def _read_ends(self) -> None:
        """Learn of each step: a name vector, kinds, and the shares of identifiers and years."""
        step, ends, place = self._ends.steps, self._ends.nodes, self._ends.places
        nodes = self._store.nodes(self._store.ids(ends))
        types = [node.types for node in nodes]
        outgoing = self.statistics.outgoing(ends, any(types))
        if self.count < 2 * len(self.statistics.relations):
            self._read_relations()  # of which some were met since, the last of them just now
        self._compared = lru_cache(self.relations.cached_words)(self._compute)
        identifiers = np.array([is_identifier(node.name) for node in nodes], np.bool_)
        years = np.array([_YEAR.fullmatch(node.name) is not None for node in nodes], np.bool_)
        size = np.maximum(1, np.bincount(step, minlength=self.count))
        self.nameless: Float32 = (np.bincount(step, identifiers[place], self.count) / size).astype(np.float32)
        """(S,) share of ends that have no name of their own."""
        self.years: Float32 = (np.bincount(step, years[place], self.count) / size).astype(np.float32)
        """(S,) share of ends that are years or dates."""
        vectors = exact(self._embedder.encode([node.name for node in nodes]))
        vectors[identifiers] = 0
        self.name_vectors = exact(unit_rows(sum_rows(vectors[place], step, self.count)))
        """(S, D) one vector for the names at the end of each step."""
        again = self._again(outgoing, step, place, size)
        self._either_way = np.repeat((again[::2] >= self.settings.either_way) & ~self._symmetric, 2)
        self._heads = None if any(types) else (step, place, size, *outgoing)
        """Input of `_does`, if nodes have no types: the ends of each step, and the relations out of them."""
        names = sorted({name for some in types for name in some})
        self._types = {name: number for number, name in enumerate(names)}
        if names:
            self._set_kinds(names, *_typed(types, names), step, place, size, common=1.0)
        elif any(self.relations.namespace):
            names = sorted({" ".join(words) for words in self.relations.namespace if words})
            owner, kind = self._namespaces(outgoing, names)
            self._set_kinds(names, owner, kind, step, place, size, self.settings.common)
        else:
            self._set_profiles(outgoing, self.statistics.incoming(ends), len(ends), step, place, size)

    def _again(self, outgoing: Pairs, step: Int64, place: Int64, size: Int64) -> Float64:
        """Return the share of the ends of each step that its relation leads out of: (S,)."""
        owner, relation = outgoing
        many = max(1, self.count)
        leads = contains(owner * many + relation, place * many + (step >> 1))
        return np.bincount(step, leads, self.count) / size

    def _namespaces(self, outgoing: Pairs, names: Sequence[str]) -> Pairs:
        """Return pairs of an end and a namespace among its outgoing relations, each pair once."""
        number = {name: position for position, name in enumerate(names)}
        of_relation = np.array([number.get(" ".join(words), -1) for words in self.relations.namespace], np.int64)
        owner, relation = outgoing
        kind = of_relation[relation]
        pairs = distinct((owner * len(names) + kind)[kind >= 0])
        return pairs // len(names), pairs % len(names)

    def _set_kinds(
        self, names: Sequence[str], owner: Int64, kind: Int64, step: Int64, place: Int64, size: Int64, common: float
    ) -> None:
        """Keep the most frequent kinds of each step.

        Args:
            names: K kinds.
            owner: an end, ascending, and
            kind: a kind it is of; parallel.
            step: a step, and
            place: an end it leads to; parallel.
            size: (S,) ends of each step.
            common: share of steps above which a kind is left out.
        """
        first, last = np.searchsorted(owner, place), np.searchsorted(owner, place + 1)
        counts = last - first
        row = np.repeat(np.arange(len(place)), counts)
        found = kind[np.arange(len(row)) + (first - (np.cumsum(counts) - counts))[row]]
        keys, times = np.unique(step[row] * len(names) + found, return_counts=True)
        step_of, kind_of = keys // len(names), keys % len(names)
        share = times / size[step_of]
        steps = max(1, self.statistics.step_count(step))
        spread = np.bincount(kind_of[share > 0.15], minlength=len(names)) / steps
        kept = (spread <= common)[kind_of]
        step_of, kind_of, share = step_of[kept], kind_of[kept], share[kept]
        order = np.lexsort((kind_of, -share, step_of))
        step_of, kind_of, share = step_of[order], kind_of[order], share[order]
        rank = np.arange(len(step_of)) - np.searchsorted(step_of, step_of)
        top = rank < self.settings.kinds
        self._step_kinds = np.full((self.count, self.settings.kinds), len(names), np.int64)
        self._kind_weights = np.zeros((self.count, self.settings.kinds), np.float32)
        self._step_kinds[step_of[top], rank[top]] = kind_of[top]
        self._kind_weights[step_of[top], rank[top]] = np.minimum(1.0, share[top] / self.settings.enough)
        self._kind_vectors = exact(self._embedder.encode(list(names)))
        self._kind_lexicon, (self._kind_numbers,) = number_words([content_words(split_words(name)) for name in names])

    def _set_profiles(
        self, outgoing: Pairs, incoming: Pairs, ends: int, step: Int64, place: Int64, size: Int64
    ) -> None:
        """Describe the ends of each step by their relations, in the absence of types.

        One profile a step is the mean of the relations out of its ends. One profile a relation is its tails: the
        `performer` of songs is one wherever else he occurs.
        """
        owner, relation = outgoing
        profile = sum_rows(self.relations.own_vectors[relation], owner, ends)
        having = np.bincount(owner, minlength=ends) > 0
        share = np.bincount(step, having[place], self.count) / size
        owner, relation = incoming
        tells = ~self._either_way[2 * relation]  # children are people, as are their parents: a part played, no kind
        owner, relation = owner[tells], relation[tells]
        numbered = sorted({f"{number:08d}" for number in range(len(self.relations.own))})
        self._set_kinds(numbered, owner, relation, step, place, size, common=1.0)
        profiles = exact(unit_rows(sum_rows(profile[place], step, self.count)))
        relations = len(self.relations.own)
        self._kind_vectors = np.concatenate((self.relations.own_vectors, profiles))
        self._kind_lexicon, (self._kind_numbers,) = number_words([*self.relations.own, *([[]] * self.count)])
        own = self._step_kinds == np.arange(self.count)[:, None] / 2  # a step's own name is no further word
        self._kind_weights[own] = 0
        called = np.where(self._step_kinds == relations, relations + self.count, self._step_kinds)
        self._step_kinds = np.concatenate((called, relations + np.arange(self.count)[:, None]), axis=1)
        weights = (self.settings.called * self._kind_weights, (self.settings.profile * share)[:, None])
        self._kind_weights = np.concatenate(weights, axis=1).astype(np.float32)


def _typed(types: Sequence[Sequence[str]], names: Sequence[str]) -> Pairs:
    """Return the place of an end and the number of a type of it, for each type of each end."""
    number = {name: position for position, name in enumerate(names)}
    pairs = [(position, number[name]) for position, some in enumerate(types) for name in some]
    owner, kind = np.array(pairs, np.int64).reshape(-1, 2).T
    return owner, kind


def sum_rows(rows: Float64, group: Int64, groups: int) -> Float64:
    """Add up the rows of each group: (N, D) and (N,) to (groups, D)."""
    out = np.zeros((groups, rows.shape[1]))
    if len(rows):
        order = np.argsort(group, kind="stable")
        present, first = np.unique(group[order], return_index=True)
        out[present] = np.add.reduceat(rows[order], first)
    return out
