"""Schema linking: similarity of question words to relations and their ranges.

`RelationSimilarity` compares words with the steps of a graph; a step is a relation walked one way, numbered as in
`graph.paths`. All statistics come from the graph at hand: relation labels, node types if there are any, and a sample of
the names at the ends of each relation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float32, Float64, Int64
from byokg.graph.inverses import inverse_relations
from byokg.graph.paths import Growth
from byokg.graph.property_view import PropertyView
from byokg.graph.sorted_ids import contains, distinct
from byokg.graph.store import Direction, GraphStore
from byokg.graph.traversal import steps_at_ends
from byokg.index.embedders import Embedder, exact, unit_rows
from byokg.offline.answer_type import AnswerType
from byokg.offline.parse import Role
from byokg.offline.relation_words import (
    NEGATING,
    NEGATIONS,
    agent_noun_verbs,
    antonym_relations,
    content_words,
    is_agent_noun,
    is_prohibition,
    label_names_head,
    leading_verb,
    subject_verbs,
)
from byokg.text.labels import label_words, relation_text
from byokg.text.names import Lexicon, is_identifier, related, singular, split_words
from byokg.text.synonyms import UNRELATED, synonyms
from byokg.types import INVERSE, EntityId, Metapath

_LED = 0.5
"""Share of the ends of a step that are of a type, relative to the threshold, from which it leads to that type."""

_YEAR = re.compile(r"-?\d{4}(-\d\d(-\d\d)?)?")

_CACHE_BYTES = 64 << 20
_VECTORS = 1 << 12
"""Words whose vectors are remembered: a transformer takes 10 ms for each, and every word is compared twice."""


@dataclass(frozen=True)
class SimilaritySettings:
    """How words are compared with steps; all found on the dev splits of MetaQA, WebQSP and atlas."""

    sample: int = 48
    """Sampled edges of each relation, for statistics of its ends."""
    near: int = 8
    """Sampled ends of each step if statistics are collected per question."""
    kinds: int = 8
    """Node kinds kept for a step, the most frequent ones."""
    derived: float = 0.6
    """Added to the cosine of two words that share a stem."""
    synonym: float = 0.5
    """Added to the cosine of two words that name the same kind of relation (`wife`, `spouse`)."""
    namespace: float = 0.5
    """Worth of a word in a relation's namespace against one in its own name (`film.director.film`)."""
    names: float = 0.57
    """Worth of resembling the names at the end of a step against resembling the relation."""
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
    usual: int = 16
    """Factor on the share of nodes with a single end of a step: only nearly all are informative."""
    single: float = 0.5
    """Least that the steps of a node to single ones count together."""
    threshold: float = 0.3
    """Similarities up to here count as none; the rest is stretched to [0, 1]."""


class RelationSimilarity:
    """Compares words with the S = 2 · R steps of a graph with R relations.

    Built once per graph from a sample of edges; thread-safe.

    Args:
        store: the graph.
        embedder: encodes words, names and relations.
        settings: weights and thresholds.
        names: encodes relations and names at their ends in the place of `embedder`, with equal vectors: a disk
            cache.
        lazy_schema: sample nothing; `observe` adds walked steps, `refresh` further relations. For servers,
            where a sample of every relation takes minutes, and a list of all of them seconds.
    """

    def __init__(
        self,
        store: GraphStore,
        embedder: Embedder,
        settings: SimilaritySettings | None = None,
        lazy_schema: bool = False,
        names: Embedder | None = None,
    ) -> None:
        self.settings = settings or SimilaritySettings()
        self.lazy_schema = lazy_schema
        self._store = store
        self._embedder = names or embedder
        self._vector = lru_cache(_VECTORS)(lambda word: exact(embedder.encode([word])[0]))
        self._read_relations()
        self._latest = [self]
        nothing = np.empty(0, np.int64)
        self._ends = (nothing, nothing, nothing) if lazy_schema else self._sampled_ends()
        self._read_ends()

    def refresh(self) -> RelationSimilarity:
        """Return steps with all relations numbered so far, without statistics of their ends.

        With per-question statistics, relations get numbers on first use.
        """
        if self.lazy_schema and self._latest[0].count < 2 * len(self._store.met_relations):
            grown = copy(self._latest[0])
            grown._read_ends()
            self._latest[0] = grown
        return self._latest[0]

    def observe(self, growth: Growth) -> RelationSimilarity:
        """Return these steps with statistics of the ends of metapaths, as far as these were missing.

        A few ends of each are sampled: evenly spread over their ids, so that the result depends on the graph alone.
        """
        steps, nodes, places = self._ends
        owner = np.repeat(growth.steps[:, -1], np.diff(growth.bounds))
        fresh = ~np.isin(owner, steps)
        if not fresh.any():
            return self
        nodes_met, place = np.unique(np.asarray(growth.ends, np.int64)[fresh], return_inverse=True)
        by_id = np.argsort(np.argsort(np.array(self._store.ids(nodes_met), object), kind="stable"), kind="stable")
        pairs = distinct(owner[fresh] * len(nodes_met) + by_id[place])
        step, rank = pairs // len(nodes_met), pairs % len(nodes_met)
        first = np.searchsorted(step, step)
        size, at = np.searchsorted(step, step, "right") - first, np.arange(len(step)) - first
        kept = at * self.settings.near // size != (at - 1) * self.settings.near // size
        step, new = step[kept], nodes_met[np.argsort(by_id)][rank[kept]]
        nodes, places = np.unique(np.concatenate((nodes[places], new)), return_inverse=True)
        other = copy(self)
        other._ends = np.concatenate((steps, step)), nodes, places
        other._read_ends()
        return other

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
        if self.lazy_schema:
            len(self._store.relations)  # has a server list its relations, which get numbers by it
        kin = synonyms().get(singular(word), UNRELATED)
        return bool(self.refresh()._lexicon.singular({singular(word)} | kin.alike | kin.converse))

    def name_ambiguity(self, ids: Sequence[EntityId]) -> float:
        """Return the ambiguity of nodes that may stand for several things of one name: in [0, 1], the largest.

        A film has one year; one with two may be two films. So it is the share, among the steps out of a node with a
        single end for nearly every other node, of those with several ends. Unavailable with per-question statistics.
        """
        if self.lazy_schema or not ids:
            return 0.0
        counts = self._store.relation_counts(self._store.numbers(ids))
        step = 2 * counts.relation.astype(np.int64) + counts.inverse
        weight = self._single[step]
        several = np.bincount(counts.origin, weight * (counts.count > 1), len(ids))
        whole = np.bincount(counts.origin, weight, len(ids))
        return round(float((several / np.maximum(self.settings.single, whole)).max()), 6)

    @cached_property
    def _single(self) -> Float64:
        """(S,) certainty that each step has a single end: its share in a sample, scaled by `usual`.

        A sample of edges has a node the oftener, the more edges it has, and so each counts the less.
        """
        batch, settings = self._store.sample_edges(self.settings.sample), self.settings
        ends, place = np.unique(np.concatenate((batch.head, batch.tail)).astype(np.int64), return_inverse=True)
        step = np.concatenate(steps_at_ends(batch))
        pairs = distinct((place * self.count + step)[step < self.edges])  # values are counted by node
        counts = self._store.relation_counts(ends)
        found = counts.origin.astype(np.int64) * self.count + 2 * counts.relation.astype(np.int64) + counts.inverse
        order = np.argsort(found)
        edges = counts.count[order][np.searchsorted(found[order], pairs)]
        step = pairs % self.count
        nodes = np.bincount(step, minlength=self.count)
        single = np.bincount(step, edges == 1, self.count)
        share = single / np.maximum(1e-9, np.bincount(step, 1 / edges, self.count))
        likely = share * nodes / (nodes + 1)
        return exact(np.multiply.reduce([likely] * settings.usual))  # a power differs from CPU to CPU

    def label_similarity(self, word: str) -> Float32:
        """Return how much a word resembles the relation of each step: (S,) in [0, 1]."""
        return self._explained(word)

    def type_similarity(self, word: str) -> Float32:
        """Return how much a word resembles what each step leads to, by kind or by name: (S,) in [0, 1]."""
        return self._compared(word)[0]

    def range_similarity(self, word: str) -> Float32:
        """Return the similarity of each step's range and a noun: (S,) in [0, 1].

        The range counts by its type; besides, a relation's own name names its tail (`capital`), and its namespace its
        head (`film.…`).
        """
        return self._compared(word)[1]

    def leads_to_type(self, kind: AnswerType) -> npt.NDArray[np.bool_]:
        """Mask steps into nodes of a type, as far as a sample of their ends reveals it: (S,)."""
        told = np.zeros(self.count, np.bool_)
        if kind.types:
            own = [self._types[name] for name in sorted(kind.types & self._types.keys())]
            told = np.asarray(np.isin(self._step_kinds, own).any(axis=1), np.bool_)
        elif kind and self._heads is not None:
            told = self._does(np.array(sorted(kind.heads), np.int64)) >= _LED
            told[[2 * number for number in kind.tails] + [2 * number + 1 for number in kind.heads]] = True
        return told

    def antonym_mask(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Mask steps whose relation is an antonym of some words: (S,).

        `Contraindicated in` matches `contraindicated`, a synonym (`avoid`), or a `not`; in a prohibition
        (`which drugs should not be given to X`), `indicated for` does not match.
        """
        relations, forbidden = np.zeros(self.count // 2, np.bool_), is_prohibition(words)
        alike = {singular(word) for word in words}.union(
            *(synonyms().get(singular(word), UNRELATED).alike for word in words)
        )
        for number, (opposite, others) in self._opposites.items():
            if forbidden:
                relations[list(others)] = True
            elif NEGATIONS.isdisjoint(words) and singular(opposite) not in alike:
                relations[number] = not any(word.startswith(NEGATING) and related(word, opposite) for word in words)
        return np.repeat(relations, 2)

    def instance_similarity(self, word: str) -> Float32:
        """Return the cosine of a word with the names each step leads to: (S,) in [-1, 1]."""
        return self._compared(word)[2]

    def direction_mismatch(self, word: str, tie: Role) -> npt.NDArray[np.bool_]:
        """Mask relations whose direction contradicts the word's syntactic role: (S,) bool.

        Only those of ambiguous direction: the tails of a relation have it, too (`reports to`), and the node does not
        decide the direction; symmetric ones (`borders`) are exempt. `The boss of X` goes along such a relation,
        `employees reporting to X` against it. Labels with an agent noun (`managed by`, `manager`) turn a verb for its
        activity (`who manages X`), labels that name the other end (`manager of`) the noun.
        """
        if not tie.use:
            return np.zeros(self.count, np.bool_)
        along = np.full(len(self._own), tie.outward)
        kin = np.isin(self._own_numbers, self._lexicon.related(word)).any(axis=1)
        if tie.use == "noun":
            opposite = self._lexicon.singular(synonyms().get(singular(word), UNRELATED).converse)
            other = np.isin(self._own_numbers, opposite).any(axis=1) & ~kin
            turned = (self._named_of ^ other) | (kin & ~self._acts & is_agent_noun(word))
        elif tie.use == "active":
            turned = self._acts
        else:
            turned = kin & ~self._acts & (tie.use == "passive")
        backward = ~(along ^ turned)
        return np.stack((backward, ~backward), axis=1).ravel() & self._either_way

    def _explain(self, word: str) -> Float32:
        own, namespace, turned = self._labelled(word)
        either = np.maximum(own, namespace)
        both = np.maximum(either, turned)
        alike = self._lexicon.singular(synonyms().get(singular(word), UNRELATED).alike)
        either = np.where(np.isin(self._own_numbers, alike).any(axis=1), both, either)  # `belong` has both meanings
        along, back = np.where(self._named_of, both, either), np.where(self._named_of, either, both)
        return self._stretched(np.stack((along, back), axis=1).ravel())

    def _labelled(self, word: str) -> tuple[Float64, Float64, Float64]:
        """Return the similarity of a word to each relation's own name, its namespace, and the name of its other end.

        Each is (R,). The name of a relation names its tail (`parent`), but not one with `of` (`part_of`).
        """
        vector = self._vector(word)
        cosines = _nearer(self._word_vectors @ vector, self._kin(self._lexicon, word))
        cosines = np.append(cosines, -1.0)  # for the padding
        own = np.maximum(cosines[self._own_numbers].max(axis=1), self._own_vectors @ vector)
        opposite = np.zeros(len(self._lexicon.words) + 1)
        opposite[self._lexicon.singular(synonyms().get(singular(word), UNRELATED).converse)] = self.settings.synonym
        turned = np.where(
            opposite[self._own_numbers].max(axis=1) > 0, np.minimum(1.0, own + self.settings.synonym), 0.0
        )
        return own, self.settings.namespace * cosines[self._namespace_numbers].max(axis=1), turned

    def _compute(self, word: str) -> tuple[Float32, Float32, Float32]:
        settings = self.settings
        vector = self._vector(word)
        own, namespace, turned = self._labelled(word)
        done = np.isin(self._doing, list(agent_noun_verbs(word)))
        heads = self._named_of | done
        own, turned = np.where(heads, turned, own), np.where(heads, np.maximum(own, done), turned)
        kin = np.append(self._kin(self._kind_lexicon, word), 0.0)
        kinds = _nearer(self._kind_vectors @ vector, kin[self._kind_numbers].max(axis=1))
        kind = (np.maximum(np.append(kinds, 0.0), 0.0)[self._step_kinds] * self._kind_weights).max(axis=1)
        if self._heads is not None and done.any():
            kind = np.maximum(kind, self._does(np.flatnonzero(done)))
        instance_similarity = self.name_vectors @ vector
        end = np.maximum(settings.names * instance_similarity, kind)
        reach = np.maximum(np.stack((own, np.maximum(namespace, turned)), axis=1).ravel(), end)
        return (
            self._stretched(end),
            self._stretched(reach),
            instance_similarity.astype(np.float32),
        )

    def _does(self, relations: Int64) -> Float64:
        """Return how surely the ends of each step are heads of some relations: (S,) in [0, 1]."""
        assert self._heads is not None
        step, place, size, owner, relation = self._heads
        heads = distinct(owner[np.isin(relation, relations)])
        share = np.bincount(step, np.isin(place, heads), self.count) / size
        return np.minimum(1.0, share / self.settings.enough)

    def _kin(self, lexicon: Lexicon, word: str) -> Float64:
        """Return the bonus on the cosine of each word of a lexicon: 1 for an equal one, less for a related one."""
        kin = np.zeros(len(lexicon.words))
        for place in lexicon.related(word):
            kin[place] = 1.0 if lexicon.words[place] == word else self.settings.derived
        for place in lexicon.singular(synonyms().get(singular(word), UNRELATED).alike):
            kin[place] = max(kin[place], self.settings.synonym)
        return kin

    def _stretched(self, similarity: Float64) -> Float32:
        """Map similarities above the threshold to (0, 1], others to 0."""
        threshold = self.settings.threshold
        stretched: Float32 = np.clip((similarity - threshold) / (1 - threshold), 0, 1).astype(np.float32)
        return stretched

    # Compared texts

    def _read_relations(self) -> None:
        """Learn the words of all relations that have numbers by now."""
        store, embedder = self._store, self._embedder
        relations = tuple(store.met_relations if self.lazy_schema else store.relations)
        self.count = 2 * len(relations)
        self.edges = 2 * (store.real_relations if isinstance(store, PropertyView) else len(relations))
        """Steps along edges; the others lead to the values of properties."""
        self.number: Mapping[str, int] = {label: number for number, label in enumerate(relations)}
        """The number of each relation, by its label."""
        meanings = store.meanings if isinstance(store, PropertyView) else {}
        named = [meanings.get(number, label) for number, label in enumerate(relations)]
        self.labels: Sequence[str] = named
        """(R,) what each relation is called."""
        labels = [label_words(label) for label in named]
        self._acts = np.array([own[-1] == "by" or is_agent_noun(own[-1]) for _, own in labels], np.bool_)
        self._named_of = np.array([label_names_head(own) for _, own in labels], np.bool_)
        self._doing = np.array(
            [leading_verb(own) for _, own in labels] if self.lazy_schema else subject_verbs(store, labels), object
        )
        turned = (
            {} if self.lazy_schema else inverse_relations(store.store if isinstance(store, PropertyView) else store)
        )
        self._same = np.array([label in turned.get(label, ()) for label in relations], np.bool_)
        self._own = [content_words(own) for _, own in labels]
        self._opposites = antonym_relations(self._own)
        self._namespace = [content_words(namespace) for namespace, _ in labels]
        self._lexicon, (self._own_numbers, self._namespace_numbers) = _numbered(self._own, self._namespace)
        self._word_vectors = exact(embedder.encode(self._lexicon.words))
        self._own_vectors = exact(embedder.encode([" ".join(own) for _, own in labels]))
        self.text_vectors: Float64 = exact(embedder.encode([relation_text(label) for label in named]))
        """(R, D) one vector for each relation with its namespace."""
        self._words = max(64, _CACHE_BYTES // (16 * max(1, self.count)))
        self._explained = lru_cache(self._words)(self._explain)

    def _sampled_ends(self) -> tuple[Int64, Int64, Int64]:
        """Sample edges: pairs of a step and the place of an end among nodes, as steps, nodes, places."""
        batch = self._store.sample_edges(self.settings.sample)
        ends, place = np.unique(np.concatenate((batch.tail, batch.head)), return_inverse=True)
        step = np.concatenate((2 * batch.relation.astype(np.int64), 2 * batch.relation.astype(np.int64) + 1))
        if batch.undirected is not None:  # either step leads to either end
            twice = np.concatenate((batch.undirected, batch.undirected))
            step, place = np.concatenate((step, step[twice] ^ 1)), np.concatenate((place, place[twice]))
        pairs = distinct(step * max(1, len(ends)) + place)  # a step and an end, each pair once
        return pairs // max(1, len(ends)), ends.astype(np.int64), pairs % max(1, len(ends))

    def _read_ends(self) -> None:
        """Learn of each step: a name vector, kinds, and the shares of identifiers and years."""
        step, ends, place = self._ends
        nodes = self._store.nodes(self._store.ids(ends))
        types = [node.types for node in nodes]
        nothing = np.empty(0, np.int64)
        outgoing = (nothing, nothing) if any(types) and self.lazy_schema else self._outgoing(ends)
        if self.lazy_schema and self.count < 2 * len(self._store.met_relations):
            self._read_relations()  # of which some were met since, the last of them just now
        self._compared = lru_cache(self._words)(self._compute)
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
        self._either_way = np.repeat((again[::2] >= self.settings.either_way) & ~self._same, 2)
        self._heads = None if any(types) else (step, place, size, *outgoing)
        """Input of `_does`, if nodes have no types: the ends of each step, and the relations out of them."""
        names = sorted({name for some in types for name in some})
        self._types = {name: number for number, name in enumerate(names)}
        if names:
            self._set_kinds(names, *_typed(types, names), step, place, size, common=1.0)
        elif any(self._namespace):
            names = sorted({" ".join(words) for words in self._namespace if words})
            owner, kind = self._namespaces(outgoing, names)
            self._set_kinds(names, owner, kind, step, place, size, self.settings.common)
        else:
            self._set_profiles(outgoing, self._incoming(ends), len(ends), step, place, size)

    def _again(self, outgoing: tuple[Int64, Int64], step: Int64, place: Int64, size: Int64) -> Float64:
        """Return the share of the ends of each step that its relation leads out of: (S,)."""
        owner, relation = outgoing
        many = max(1, self.count)
        leads = contains(owner * many + relation, place * many + (step >> 1))
        return np.bincount(step, leads, self.count) / size

    def _outgoing(self, nodes: Int64) -> tuple[Int64, Int64]:
        """Return pairs of a place in `nodes` and a relation out of that node, each pair once, ascending."""
        if self.lazy_schema:  # a server counts faster than it gives edges
            counts = self._store.relation_counts(nodes)
            owner, relation = counts.origin[~counts.inverse], counts.relation[~counts.inverse]
        else:
            batch = self._store.capped_edges(nodes, Direction.OUT, most=1)
            owner, relation = batch.origin, batch.relation
        many = int(relation.max(initial=0)) + 1
        pairs = distinct(owner.astype(np.int64) * many + relation)
        return pairs // many, pairs % many

    def _incoming(self, nodes: Int64) -> tuple[Int64, Int64]:
        """Return pairs of a place in `nodes` and a relation into that node, each pair once, ascending.

        None on a server, where that would be one more request for each question.
        """
        if self.lazy_schema:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        counts = self._store.relation_counts(nodes)
        many = max(1, self.count)
        pairs = distinct(counts.origin[counts.inverse] * many + counts.relation[counts.inverse])
        return pairs // many, pairs % many

    def _namespaces(self, outgoing: tuple[Int64, Int64], names: Sequence[str]) -> tuple[Int64, Int64]:
        """Return pairs of an end and a namespace among its outgoing relations, each pair once."""
        number = {name: position for position, name in enumerate(names)}
        of_relation = np.array([number.get(" ".join(words), -1) for words in self._namespace], np.int64)
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
        spread = np.bincount(kind_of[share > 0.15], minlength=len(names)) / max(
            1, len(np.unique(step)) if self.lazy_schema else self.count
        )
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
        self._kind_lexicon, (self._kind_numbers,) = _numbered([content_words(split_words(name)) for name in names])

    def _set_profiles(
        self,
        outgoing: tuple[Int64, Int64],
        incoming: tuple[Int64, Int64],
        ends: int,
        step: Int64,
        place: Int64,
        size: Int64,
    ) -> None:
        """Describe the ends of each step by their relations, in the absence of types.

        One profile a step is the mean of the relations out of its ends. One profile a relation is its tails: the
        `performer` of songs is one wherever else he occurs.
        """
        owner, relation = outgoing
        profile = sum_rows(self._own_vectors[relation], owner, ends)
        having = np.bincount(owner, minlength=ends) > 0
        share = np.bincount(step, having[place], self.count) / size
        owner, relation = incoming
        tells = ~self._either_way[2 * relation]  # children are people, as are their parents: a part played, no kind
        owner, relation = owner[tells], relation[tells]
        numbered = sorted({f"{number:08d}" for number in range(len(self._own))})
        self._set_kinds(numbered, owner, relation, step, place, size, common=1.0)
        profiles = exact(unit_rows(sum_rows(profile[place], step, self.count)))
        relations = len(self._own)
        self._kind_vectors = np.concatenate((self._own_vectors, profiles))
        self._kind_lexicon, (self._kind_numbers,) = _numbered([*self._own, *([[]] * self.count)])
        own = self._step_kinds == np.arange(self.count)[:, None] / 2  # a step's own name is no further word
        self._kind_weights[own] = 0
        called = np.where(self._step_kinds == relations, relations + self.count, self._step_kinds)
        self._step_kinds = np.concatenate((called, relations + np.arange(self.count)[:, None]), axis=1)
        weights = (self.settings.called * self._kind_weights, (self.settings.profile * share)[:, None])
        self._kind_weights = np.concatenate(weights, axis=1).astype(np.float32)


def _numbered(*lists: Sequence[Sequence[str]]) -> tuple[Lexicon, list[Int64]]:
    """Make a lexicon of all words, and turn each list of words into numbers, filled up with -1."""
    lexicon = Lexicon(sorted({word for words in lists for row in words for word in row}))
    number = {word: position for position, word in enumerate(lexicon.words)}
    return lexicon, [_padded([[number[word] for word in row] for row in words]) for words in lists]


def _nearer(cosines: Float64, kin: Float64) -> Float64:
    """Raise the cosines of relatives: (N,) and (N,) to (N,), at most 1; an equal word has 1."""
    nearer: Float64 = np.where(kin >= 1, 1.0, np.minimum(1.0, cosines + kin))
    return nearer


def _padded(rows: Sequence[Sequence[int]]) -> Int64:
    """Return the rows as one array, filled up with -1."""
    out = np.full((len(rows), max(1, max(map(len, rows), default=1))), -1, np.int64)
    for position, row in enumerate(rows):
        out[position, : len(row)] = row
    return out


def _typed(types: Sequence[Sequence[str]], names: Sequence[str]) -> tuple[Int64, Int64]:
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
