"""The KG-Linker without a language model: relation paths grown from entities and ranked by schema linking."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import combinations, islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from byokg.arrays import Bools, Float32, Int64, Integers
from byokg.errors import ConfigError, EntityNotFound, at_least
from byokg.graph.inverses import twin_steps, unite_steps
from byokg.graph.paths import Growth, grow, labels, start
from byokg.graph.property_view import PropertyView
from byokg.graph.store import GraphStore, NodeArray
from byokg.linking.entities import EntityLinker
from byokg.offline.answer_type import LiteralAnswerDetector
from byokg.offline.lexicon import rule
from byokg.offline.mentions import MentionSpotter
from byokg.offline.parse import ParsedQuestion, parse_question
from byokg.offline.parse_constraints import parse_constraints
from byokg.offline.path_scorer import MAX_HOPS, PathFeatures, PathScorer, QuestionScorer, Weights, logarithms
from byokg.text.names import locate, split_label, split_words
from byokg.types import Artifacts, Context, EntityId, JoinedPaths, Mention, Node, ProposedPath, Question

if TYPE_CHECKING:
    from byokg.offline.planner import Planner


@dataclass(frozen=True)
class LinkerSettings:
    """Limits of proposed metapaths."""

    constrained: int = 3
    """Factor on the number of metapaths for a question with constraints: only some support these."""
    further_choices: int = 3
    """Choices at a node beside its steps: to stop, and two steps that a small graph may lack."""
    dated: float = 0.5
    """Share of years among the ends of a step from which it leads to dates."""
    varied: int = 80
    """Metapaths of each length and topic that varied proposals are chosen from."""
    per_first: int = 3
    """Varied proposals with one first relation, as long as there are others."""
    known: float = 0.9
    """Share of ends in common with a varied proposal of as many edges, at which another one adds nothing."""
    named: int = 3
    """Varied proposals that are walked because the question names them."""
    longer: float = 2.5
    """Log-odds that a varied proposal loses for each hop beyond the first."""
    far: float = 7.5
    """Log-odds below the best one at which a proposal is left out; of varied ones not the"""
    least: int = 4
    """first ones."""
    joined: int = 24
    """Metapaths of each length and topic that are paired with those of another topic."""


_SETTINGS = LinkerSettings()


@dataclass(frozen=True)
class _Topic:
    """One node that one mention may mean."""

    node: int
    id: EntityId
    mention: int


_Grown = tuple[_Topic, Growth, PathFeatures]


@dataclass(frozen=True)
class _Joins:
    """Pairs of metapaths in two parts of a growth that end in the same nodes."""

    one: int
    other: int
    """Numbers of the parts."""
    pairs: Int64
    """(J, 2) places in either part."""
    aligned: PathFeatures


@dataclass(frozen=True)
class ScoredCandidates:
    """The P metapaths that were scored for a question."""

    parsed: ParsedQuestion
    growths: list[Growth]
    """The metapaths in parts, with the nodes they reach."""
    features: Float32
    """(P, F) in the order of `Weights`."""
    named: npt.NDArray[np.bool_]
    """(P,) whether they end at nodes that have names."""
    joined: Float32
    """(J, F) features of pairs from two mentions that end in the same nodes, and"""
    common: list[NodeArray]
    """these nodes, for each pair."""
    topics: list[EntityId]
    """Where each part starts; empty for a node that was given in the place of the question's own."""


@dataclass(frozen=True)
class GrowthLimits:
    """Limits of grown and proposed metapaths.

    Args:
        max_hops: edges a metapath may have, 1 to 3; an edge to a nameless node and the edge out of it make one hop
            for the scorer, and still two edges here.
        beam: metapaths extended at each hop; those that end at a nameless node are always extended.
        top_k: metapaths proposed for each topic entity.
        sample: nodes sampled in each step of growing.
        varied: whether proposals of one topic differ in meaning and in their first relations, and shorter ones are
            preferred: for a reader of their evidence. A ranking of answers counts those of one meaning as votes.

    Raises:
        ConfigError: a limit is out of range.
    """

    max_hops: int = MAX_HOPS
    beam: int = 32
    top_k: int = 10
    sample: int = 256
    varied: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.max_hops <= MAX_HOPS:
            raise ConfigError(
                f"max_hops={self.max_hops} is out of range; the offline linker walks 1 to {MAX_HOPS} hops"
            )
        at_least(1, "finds nothing", beam=self.beam, sample=self.sample, top_k=self.top_k)


class OfflineLinker:
    """Proposes mentions and metapaths for a question, by the graph's content and the meaning of its labels.

    Metapaths are grown from the topic entities hop by hop, in both directions, keeping the most promising; only
    those that exist are proposed. Every length competes with every other, which decides the number of hops.

    Args:
        store: the graph.
        entities: links mentions.
        spotter: finds mentions when the question comes without topic entities.
        scorer: scores metapaths against the question.
        limits: of metapaths.
        literals: detects properties as answers, if `store` is a `PropertyView`.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "KG-Linker", whose artifacts it writes.
    Differs: writes no query, no draft answers and no BFS-QL; it has a single round.
    """

    def __init__(
        self,
        store: GraphStore,
        entities: EntityLinker,
        spotter: MentionSpotter,
        scorer: PathScorer,
        limits: GrowthLimits = GrowthLimits(),
        literals: LiteralAnswerDetector | None = None,
    ) -> None:
        self._store, self._entities, self._spotter, self.scorer = store, entities, spotter, scorer
        self._limits, self._literals = limits, literals
        self._edges = store.store if isinstance(store, PropertyView) else store

    @property
    def store(self) -> GraphStore:
        """Return the walked graph: with values as nodes and properties as relations, if it has them."""
        return self._store

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Return mentions, and metapaths best first, each with the entity it starts from.

        Raises:
            EntityNotFound: none of the topic entities given with the question is in the store.
            ConfigError: the hop count given with the question is out of range.
        """
        if context.rounds:
            return Artifacts(finished=True)
        if question.hops is not None and not 1 <= question.hops <= MAX_HOPS:
            raise ConfigError(
                f"question {question.id!r} asks for {question.hops} hops; the offline linker walks 1 to {MAX_HOPS}"
            )
        _, mentions, scorer, grown = self._explore(question)
        more = 1 if parse_constraints(question.text, mentions).plain else _SETTINGS.constrained
        paths, joined = self._ranked(question.text, scorer, grown, question.hops, more * self._limits.top_k)
        return Artifacts(mentions=mentions, paths=paths, joined=joined)

    def score_candidates(self, question: Question, start: tuple[Mention, int] | None = None) -> ScoredCandidates:
        """Return the scored candidates of a question, for training and diagnosis.

        Args:
            question: the question.
            start: a mention, and the node to grow from, in place of the question's own.
        """
        parsed, _, scorer, grown = self._explore(question, start)
        none = np.empty((0, len(fields(Weights))), np.float32)
        if not grown:
            return ScoredCandidates(parsed, [], none, np.empty(0, np.bool_), none, [], [])
        joins = self._joins(scorer, grown)
        features = scorer.features([*(part for *_, part in grown), *(part.aligned for part in joins)])
        growths = [growth for _, growth, _ in grown]
        named = np.concatenate([~scorer.nameless(growth.steps[:, -1]) for growth in growths])
        common = [
            np.intersect1d(growths[part.one].reached(first), growths[part.other].reached(second))
            for part in joins
            for first, second in part.pairs.tolist()
        ]
        scored, joined = features[: len(named)], features[len(named) :]
        return ScoredCandidates(parsed, growths, scored, named, joined, common, [topic.id for topic, *_ in grown])

    def _explore(
        self, question: Question, start: tuple[Mention, int] | None = None
    ) -> tuple[ParsedQuestion, tuple[Mention, ...], QuestionScorer, list[_Grown]]:
        """Read the question and grow metapaths out of every topic entity."""
        if start is None:
            mentions, topics = self._mentions(question)
        else:
            mentions, topics = [(start[0], start[0].text)], [_Topic(start[1], EntityId(""), 0)]
        missing = [name for mention, name in mentions if mention.start < 0]
        constraints = parse_constraints(question.text, [mention for mention, _ in mentions])
        named = [mention for mention, _ in mentions]
        rest = constraints.rest if self._literals is None else constraints.path_text
        parsed = parse_question(rest, named, missing, self.scorer.steps.has_relation, lambda: self._types(topics))
        values, only = (None, False) if self._literals is None else self._literals.detect(parsed, constraints)
        scorer = self.scorer.question(parsed)
        grown: list[_Grown] = []
        for topic in topics:
            others = [other.node for other in topics if other.mention != topic.mention]
            avoid = np.unique(np.array([topic.node, *others], np.int64))
            grown += [(topic, *level) for level in self._grow(scorer, topic.node, avoid, question.hops, values)]
        if only and self._literals is not None:
            grown = self._with_values(grown, 2 * self._literals.first)
        return parsed, tuple(mention for mention, _ in mentions), scorer, grown

    def _with_values(self, grown: list[_Grown], first: int) -> list[_Grown]:
        """Keep the metapaths that end at values or dates, if there are any."""
        kept = []
        for topic, growth, aligned in grown:
            last = growth.steps[:, -1]
            rows = np.flatnonzero((last >= first) | (self.scorer.steps.years[last] > _SETTINGS.dated))
            if len(rows):
                kept.append((topic, growth.taken(rows), aligned.taken(rows)))
        return kept or grown

    def _mentions(self, question: Question) -> tuple[list[tuple[Mention, str]], list[_Topic]]:
        """Return each mention with the name of its entity, and the start nodes."""
        if question.topic_ids:
            mentions = [locate(node.name, question.text, (node.id,)) for node in self._given(question)]
        else:
            mentions = self._spotter.spot(question.text)
        linked = self._entities.link_all(mentions, question.text)
        ids = [candidate.id for candidates in linked for candidate in candidates]
        numbers = iter(self._store.numbers(ids).tolist())
        topics: dict[int, _Topic] = {}  # a node that two mentions may mean is walked from once
        for position, candidates in enumerate(linked):
            for candidate in candidates:
                node = next(numbers)
                topics.setdefault(node, _Topic(node, candidate.id, position))
        named = [(mention, found[0].name if found else "") for mention, found in zip(mentions, linked, strict=True)]
        return named, list(topics.values())

    def _types(self, topics: Sequence[_Topic]) -> set[str]:
        """Return the class nouns of the topics from their types: the last word of each (`region`); none on a server."""
        ids = [] if self.scorer.steps.statistics.grows else [topic.id for topic in topics if topic.id]
        types = {type for node in self._store.nodes(ids) for type in node.types}
        return {words[-1] for type in types if (words := split_words(split_label(type)))}

    def _given(self, question: Question) -> list[Node]:
        """Return the given topic entities that the graph has; a question needs one of them at least."""
        topics = list(dict.fromkeys(question.topic_ids))
        try:
            return self._store.nodes(topics)
        except EntityNotFound:
            if len(topics) == 1:
                raise
        known: list[Node] = []
        missing: EntityNotFound | None = None
        for topic in topics:
            try:
                known += self._store.nodes([topic])
            except EntityNotFound as error:
                missing = missing or error
        if missing is not None and not known:
            raise missing
        return known

    def _grow(
        self, scorer: QuestionScorer, topic: int, avoid: Int64, hops: int | None, values: Bools | None = None
    ) -> list[tuple[Growth, PathFeatures]]:
        """Grow metapaths out of one topic entity: one entry a hop; `values` are the properties that may end one."""
        store = self._edges if values is None or not values.any() else self._store
        growth, chosen, levels = start(topic), np.zeros(1, np.int64), []
        choices = np.zeros((1, 0), np.float32)
        most = self._limits.max_hops if hops is None else hops
        for hop in range(1, most + 1):
            growth = grow(store, growth, chosen, avoid, self._limits.sample)
            if values is not None and store is self._store:
                value = growth.steps[:, -1] // 2 - len(self._edges.relations)
                allowed = (value < 0) | values[np.maximum(value, 0)]
                if hop > 1 and self._literals is not None:  # no value of edges beyond the one that led here
                    own = self._literals.owners[np.maximum(value, 0)]
                    allowed &= (value < 0) | (own != growth.steps[:, -2] // 2)
                if hop > 2:  # what was left is nothing to read a value off
                    allowed &= (value < 0) | (growth.steps[:, -2] != growth.steps[:, -3] ^ 1)
                growth = growth.taken(np.flatnonzero(allowed))
            if len(growth) == 0:
                break
            scorer.observe(growth)
            ways = logarithms(np.bincount(growth.parents) + _SETTINGS.further_choices)
            choices = np.concatenate((choices[growth.parents], ways[growth.parents, None]), axis=1)
            aligned = scorer.extract_features(growth.steps, choices)
            levels.append((growth, aligned))
            if hop < most:
                nameless = scorer.nameless(growth.steps[:, -1])
                beam_score = np.where(nameless, np.inf, scorer.beam_score([aligned])[0])
                if self._store is not self._edges:
                    beam_score[growth.steps[:, -1] >= 2 * len(self._edges.relations)] = -np.inf
                order = np.argsort(-beam_score, kind="stable")
                chosen = np.sort(order[: self._limits.beam + int(nameless.sum())])
        return levels

    @rule("joined paths", "which films of {Tom} star {Ann}", lambda self, scorer, grown: [])
    def _joins(self, scorer: QuestionScorer, grown: Sequence[_Grown]) -> list[_Joins]:
        """Pair metapaths of two mentions that end in the same nodes."""
        if len({topic.mention for topic, *_ in grown}) < 2:
            return []
        tops = []
        for (_, growth, _), beam_score in zip(grown, scorer.beam_score([part for *_, part in grown]), strict=True):
            kept = np.flatnonzero(~scorer.nameless(growth.steps[:, -1]))
            tops.append(np.sort(kept[np.argsort(-beam_score[kept], kind="stable")[: _SETTINGS.joined]]))
        found = []
        for one, other in combinations(range(len(grown)), 2):
            if grown[one][0].mention != grown[other][0].mention:
                pairs = _meeting(grown[one][1], tops[one], grown[other][1], tops[other])
                if len(pairs):
                    found.append(_Joins(one, other, pairs, scorer.join(grown[one][2], grown[other][2], pairs)))
        return found

    def _ranked(
        self, question: str, scorer: QuestionScorer, grown: Sequence[_Grown], hops: int | None, top_k: int
    ) -> tuple[tuple[ProposedPath, ...], tuple[JoinedPaths, ...]]:
        """Return the best metapaths of each topic, and the best pairs that meet, with the metapaths of these."""
        if not grown:
            return (), ()
        joins = self._joins(scorer, grown)
        scored = scorer.scores([*(part for *_, part in grown), *(part.aligned for part in joins)])

        if self.scorer.planner is not None:
            prior = [scores / self.scorer.own_unit for scores in scored]
            scored = _planned(self._store, self.scorer.planner, question, scorer, grown, joins, prior)

        def path(part: int, row: int) -> ProposedPath:
            topic, growth, _ = grown[part]
            return ProposedPath(labels(self._store, growth.steps[row]), float(scored[part][row]), topic.id)

        of_topic: dict[int, list[int]] = defaultdict(list)
        for part, (topic, growth, _) in enumerate(grown):
            if hops is None or growth.steps.shape[1] == hops:
                of_topic[topic.node].append(part)
        meeting: list[tuple[float, _Joins, int]] = []
        for each, scores in zip(joins, scored[len(grown) :], strict=True):
            lengths = [grown[part][1].steps.shape[1] for part in (each.one, each.other)]
            if hops is None or sum(lengths) == hops or lengths == [hops, hops]:
                order = np.argsort(-scores, kind="stable")[:top_k]
                meeting += [(float(scores[row]), each, row) for row in order.tolist()]
        joined = [
            JoinedPaths((path(each.one, each.pairs[row, 0]), path(each.other, each.pairs[row, 1])), score)
            for score, each, row in sorted(meeting, key=lambda pair: -pair[0])[:top_k]
        ]
        tops: list[ProposedPath] = []
        for own in of_topic.values():
            lengths, unit = [(grown[part][1], scored[part]) for part in own], self.scorer.unit
            if self._limits.varied:
                chosen = _choose_varied(scorer, self._united, unit, lengths, top_k)
            else:
                chosen = _choose_best(scorer, unit, lengths, top_k)
            tops += (path(own[place], row) for place, row in chosen)
        paths = dict.fromkeys([*tops, *(path for two in joined for path in two.paths)])
        return tuple(sorted(paths, key=lambda path: -path.score)), tuple(joined)

    @cached_property
    def _united(self) -> Int64:
        return unite_steps(twin_steps(self._edges, self._store.relations))


def _planned(
    store: GraphStore,
    planner: Planner,
    question: str,
    scorer: QuestionScorer,
    grown: Sequence[_Grown],
    joins: Sequence[_Joins],
    prior: Sequence[Float32],
) -> list[Float32]:
    """Return the scores of metapaths, and of pairs that meet, by a planner; `prior` are those without it, in nats."""
    names = [node.name for node in store.nodes([topic.id for topic, *_ in grown])]
    parts = []
    for name, (_, growth, _) in zip(names, grown, strict=True):
        rows = np.flatnonzero(~scorer.nameless(growth.steps[:, -1]))
        parts.append((name, rows, [labels(store, growth.steps[row]) for row in rows.tolist()]))
    return planner.rescore(question, parts, [(each.one, each.other, each.pairs) for each in joins], prior)


def _choose_best(
    scorer: QuestionScorer, unit: float, parts: Sequence[tuple[Growth, Float32]], top_k: int
) -> list[tuple[int, int]]:
    """Choose the best metapaths of one topic, of equal ones the shorter; arguments as for `_choose_varied`.

    Those far below the best are left out: no ranking of answers considers their ends.
    """
    found: list[tuple[float, int, int]] = []
    for part, (growth, scores) in enumerate(parts):
        kept = np.flatnonzero(~scorer.nameless(growth.steps[:, -1]))
        order = kept[np.argsort(-scores[kept], kind="stable")][:top_k]
        found += zip(scores[order].tolist(), [part] * len(order), order.tolist(), strict=True)
    found.sort(key=lambda each: -each[0])  # stable
    return [(part, row) for score, part, row in found[:top_k] if score >= found[0][0] - _SETTINGS.far * unit]


def _choose_varied(
    scorer: QuestionScorer, united: Int64, unit: float, parts: Sequence[tuple[Growth, Float32]], top_k: int
) -> list[tuple[int, int]]:
    """Choose metapaths of one topic, those of one meaning once.

    First the topic's own relations that the question names, then by score, shorter ones first; at most
    `LinkerSettings.per_first` with one first relation, unless there are too few others. Bad ones are left out, and
    those that lead where a better one of as many edges does.

    Args:
        scorer: of the question.
        united: (S,) the step that stands for each step and the one along its twin.
        unit: score units per nat.
        parts: metapaths of each length, and their scores.
        top_k: how many to choose.

    Returns:
        Part and row of each.
    """
    found: dict[tuple[int, ...], tuple[bool, float, int, int]] = {}
    for part, (growth, scores) in enumerate(parts):
        kept = np.flatnonzero(~scorer.nameless(growth.steps[:, -1]))
        order = kept[np.argsort(-scores[kept], kind="stable")][: _SETTINGS.varied]
        steps = growth.steps[order]
        hops = steps.shape[1] - scorer.nameless(steps[:, :-1]).sum(axis=1)
        unsaid = (hops > 1) | ~scorer.named(steps[:, 0])
        loss = _SETTINGS.longer * unit * (hops - 1) - scores[order]
        keys = map(tuple, united[steps].tolist())
        for key, *rank in zip(keys, unsaid.tolist(), loss.tolist(), order.tolist(), strict=True):
            found.setdefault(key, (rank[0], rank[1], part, rank[2]))
    by_worth = sorted(found, key=lambda meant: found[meant][1])
    said = [meant for meant in sorted(found, key=lambda meant: found[meant][:2]) if not found[meant][0]]
    ahead = dict.fromkeys([*said[: _SETTINGS.named], *by_worth])
    first: Counter[int] = Counter()
    chosen: list[tuple[int, ...]] = []
    spare: list[tuple[int, ...]] = []
    reached: dict[int, list[Integers]] = defaultdict(list)
    for meant in ahead:
        if len(chosen) == top_k:
            break
        if first[meant[0]] == _SETTINGS.per_first:
            spare.append(meant)
            continue
        part, row = found[meant][2:]
        ends = parts[part][0].reached(row)
        if not any(_leads_nowhere_else(ends, others) for others in reached[part]):
            reached[part].append(ends)
            first[meant[0]] += 1
            chosen.append(meant)
    rows = [found[meant][2:] for meant in islice((*chosen, *spare), top_k)]
    fits = [float(parts[part][1][row]) for part, row in rows]
    least = max(fits, default=0.0) - _SETTINGS.far * unit
    return [one for place, one in enumerate(rows) if place < _SETTINGS.least or fits[place] >= least]


def _leads_nowhere_else(ends: Integers, others: Integers) -> bool:
    """True if nearly all of some nodes, ascending, are among others that are not many more."""
    if 2 * len(ends) < len(others):
        return False
    return len(np.intersect1d(ends, others, assume_unique=True)) >= _SETTINGS.known * len(ends)


def _meeting(one: Growth, some: Int64, other: Growth, others: Int64) -> Int64:
    """Find which metapaths end in the same nodes: (J, 2) their places."""
    if not len(some) or not len(others):
        return np.empty((0, 2), np.int64)
    parts = []
    for growth, chosen in ((one, some), (other, others)):
        reached = [growth.reached(path) for path in chosen.tolist()]
        owner = np.repeat(np.arange(len(chosen)), [len(ends) for ends in reached])
        parts.append((owner, np.concatenate(reached)))
    common = np.intersect1d(parts[0][1], parts[1][1])
    tables = []
    for (owner, ends), chosen in zip(parts, (some, others), strict=True):
        table = np.zeros((len(chosen), len(common)), np.float32)
        place = np.minimum(np.searchsorted(common, ends), max(0, len(common) - 1))
        inside = common[place] == ends if len(common) else np.zeros(len(ends), np.bool_)
        table[owner[inside], place[inside]] = 1
        tables.append(table)
    first, second = np.nonzero(tables[0] @ tables[1].T)  # whole numbers, so exact in any order
    return np.stack((some[first], others[second]), axis=1)
