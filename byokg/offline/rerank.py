"""Reranking of answer candidates whose paths fit a question about equally well.

Three criteria that a path alone does not have: further neighbours of nameless nodes on the way (an office holder's
nameless node leads to the office and the years, too), the number of fitting paths with the same end, and the similarity
of names to the question. Paths with the same meaning by inverse relations make one answer.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.graph.property_view import is_value
from byokg.graph.store import Direction, GraphStore
from byokg.index.embedders import Embedder, exact
from byokg.offline.path_scorer import UNIT, PathScorer
from byokg.offline.rules import rule
from byokg.offline.temporal import period
from byokg.offline.walks import walk_table
from byokg.text.dates import Period, read_periods
from byokg.text.names import FUNCTION_WORDS, QUESTION_WORDS, is_identifier, split_words
from byokg.types import INVERSE, Context, EntityId, Metapath, Node, PathEvidence


@dataclass(frozen=True)
class RerankSettings:
    """Thresholds and limits of reranking; odds are natural logarithms."""

    compared: int = 10
    """Best candidates that are compared."""
    margin: float = 3.0
    """Log-odds below the best candidate at which a candidate no longer votes."""
    per_vote: float = 0.75
    """Log-odds per vote: paths to the same end share most of their evidence."""
    role: float = 1.25
    """Log-odds that a word of average importance beside a nameless node adds."""
    voters: int = 1000
    """Ends of a candidate that are counted."""
    named: int = 30
    """Ends whose names are compared with the question."""
    name: float = 0.05
    """Votes of a name equal to the question's words."""
    nameless: int = 2000
    """Nameless nodes of a path whose neighbours are read; of more none is."""
    edges: int = 100
    """Edges read of each relation of such a node."""


_SETTINGS = RerankSettings()


@dataclass(frozen=True)
class Candidate:
    """Nodes that may be the answer, with the paths that lead to all of them."""

    score: float
    nodes: tuple[EntityId, ...]
    paths: tuple[PathEvidence, ...] = ()

    @property
    def evidence_ids(self) -> tuple[str, ...]:
        """Return the ids of the paths, in order."""
        return tuple(path.id for path in self.paths)


class CandidateReranker:
    """Orders answer candidates; thread-safe.

    If nodes have types, these decide, and candidates stay as they are. Weights were tuned on dev
    questions of WebQSP, CWQ, atlas, MetaQA and PathQuestion.

    Args:
        store: the graph.
        scorer: source of nameless steps, of inverse relations, and of word weights.
        embedder: compares names with the question.
        unit: score units per nat.
    """

    def __init__(self, store: GraphStore, scorer: PathScorer, embedder: Embedder, unit: float = UNIT) -> None:
        self._store = store
        self._scorer = scorer
        self._embedder = embedder
        self._unit = unit
        self._behind = bool((scorer.steps.nameless > 0.5).any())
        self._vector = lru_cache(1 << 12)(lambda word: exact(embedder.encode([word])[0]))

    def rerank(self, context: Context, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return candidates with the best one first, its nodes in the order of the answer.

        Args:
            context: evidence for the question.
            candidates: answer candidates, best first.
        """
        if not candidates or any(map(is_value, candidates[0].nodes)) or self._typed(candidates[0]):
            return list(candidates)
        words, first = self._words(context), candidates[0]
        rest = [one for one in candidates[1:] if one.score <= first.score]
        compared = self._narrowed(context, words, [first, *rest[: _SETTINGS.compared - 1]])
        votes = self._votes(compared)
        ordered = sorted(compared, key=lambda one: -max((votes[node] for node in one.nodes), default=0.0))
        taken = {one.evidence_ids for one in compared}
        ranked = [*ordered, *(one for one in candidates if one.evidence_ids not in taken)]
        best = self._completed(ranked[: len(compared)])
        return [replace(best, nodes=self._sorted(best.nodes, votes, words)), *ranked[1:]]

    def _typed(self, candidate: Candidate) -> bool:
        """True if the first node of a candidate has a type."""
        return any(node.types for node in self._store.nodes(candidate.nodes[:1]))

    def _words(self, context: Context) -> list[str]:
        """Return the content words of the question outside its mentions."""
        first = context.rounds[0]
        named = {word for mention in first.artifacts.mentions for word in split_words(mention.text)}
        named |= {word for one in first.linked.entities for word in split_words(one.name)}
        left_out = named | FUNCTION_WORDS | QUESTION_WORDS
        return [
            word
            for word in dict.fromkeys(split_words(context.question))
            if word not in left_out and len(word) > 1 and not word.isdigit()
        ]

    # Inverse edges of the same fact

    @rule("inverse edges", "who are the children of {Tom}", lambda self, compared: compared[0])
    def _completed(self, compared: Sequence[Candidate]) -> Candidate:
        """Return the first candidate with the ends of those whose paths have the same meaning by inverse relations.

        If a graph stores a fact both ways (`parents`, `children`), either may lack some edges of the other. Inverse
        relations are unknown on a server.
        """
        best = compared[0]
        if len(best.paths) > 1:
            return best
        meant = best.paths[0].source, self._meaning(best.paths[0].relations)
        for one in compared[1:]:
            if len(one.paths) > 1 or (one.paths[0].source, self._meaning(one.paths[0].relations)) != meant:
                continue
            if not set(one.nodes) <= set(best.nodes) and not any(map(is_value, one.nodes)):
                nodes = tuple(dict.fromkeys((*best.nodes, *one.nodes)))
                best = Candidate(best.score, nodes, (*best.paths, *one.paths))
        return best

    def _meaning(self, relations: Metapath) -> tuple[tuple[str, bool], ...]:
        """Return one key for all metapaths of equal meaning: for each step a label, and whether it is inverted."""
        meant = []
        for step in relations:
            label, turned = step.removeprefix(INVERSE), step.startswith(INVERSE)
            twins = self._scorer.steps.statistics.inverses().get(label, ())
            meant.append(min([(label, turned), *((twin, not turned) for twin in twins)]))
        return tuple(meant)

    # Agreement

    def _votes(self, compared: Sequence[Candidate]) -> dict[EntityId, float]:
        """Count for each node the candidates that hold it, each by its likelihood against the best."""
        best = max(one.score for one in compared)
        votes: dict[EntityId, float] = defaultdict(float)
        for one in compared:
            below = (best - one.score) / self._unit
            if below <= _SETTINGS.margin:
                for node in one.nodes[: _SETTINGS.voters]:
                    votes[node] += math.exp(-below / _SETTINGS.per_vote)
        return defaultdict(float, {node: round(count, 6) for node, count in votes.items()})

    @rule("votes for nodes", "who played {X}", lambda self, ends, votes, words: ends)
    def _sorted(
        self, ends: tuple[EntityId, ...], votes: dict[EntityId, float], words: Sequence[str]
    ) -> tuple[EntityId, ...]:
        """Order nodes by their votes; of about as many, that with the nearest name first."""
        near: dict[EntityId, float] = {}
        order = sorted(ends, key=lambda end: -votes[end])
        if len(ends) > 1 and words:
            nodes = self._store.nodes(order[: _SETTINGS.named])
            near = dict(zip((node.id for node in nodes), self._nearness(nodes, words), strict=True))
        return tuple(sorted(order, key=lambda end: -(votes[end] + _SETTINGS.name * near.get(end, 0.0))))

    def _nearness(self, nodes: Sequence[Node], words: Sequence[str]) -> list[float]:
        if not nodes:
            return []
        said = np.stack([self._vector(word) for word in words])
        cosines = exact(self._embedder.encode([node.name for node in nodes])) @ said.T
        best: list[float] = cosines.max(axis=1).tolist()
        return best

    # Neighbours of nameless nodes on the way

    @rule(
        "neighbours of mediators", "who played {X} in {Heat}", lambda self, context, words, candidates: list(candidates)
    )
    def _narrowed(self, context: Context, words: Sequence[str], candidates: Sequence[Candidate]) -> list[Candidate]:
        """Promote candidates with a mediator whose neighbours match the question, and narrow them to it.

        No effect on a server, which would need requests for each path.
        """
        if not self._behind:
            return list(candidates)
        times = read_periods(context.question)
        said = [(word, self._scorer.importance(word)) for word in words]
        return [self._by_role(one, said, times) if len(one.paths) == 1 else one for one in candidates]

    def _by_role(self, candidate: Candidate, said: Sequence[tuple[str, float]], times: Sequence[Period]) -> Candidate:
        """Narrow a candidate to the walks through the nameless nodes that match the question best."""
        steps, path = self._scorer.steps, candidate.paths[0]
        passed = [
            place
            for place, label in enumerate(path.relations[:-1], 1)
            if (relation := steps.number.get(label.removeprefix(INVERSE))) is not None
            and steps.nameless[2 * relation + label.startswith(INVERSE)] > 0.5
        ]
        table = walk_table(self._store, path.source, path.relations) if passed else None
        if table is None:
            return candidate
        worth = np.zeros(len(table))
        for place in passed:
            nodes, at = np.unique(table.nodes[:, place], return_inverse=True)
            if len(nodes) <= _SETTINGS.nameless:
                own = {*table.nodes[:, place - 1].tolist(), *table.nodes[:, place + 1].tolist()}
                worth += self._worth(nodes, own, said, times)[at]
        best = float(worth.max(initial=0.0))
        kept = frozenset(self._store.ids(np.unique(table.nodes[worth == best, -1]))) if best > 0 else frozenset()
        ends = tuple(end for end in candidate.nodes if end in kept)
        score = candidate.score + _SETTINGS.role * self._unit * best
        return Candidate(score, ends, candidate.paths) if ends else candidate

    def _worth(
        self, nodes: Int64, own: Collection[int], said: Sequence[tuple[str, float]], times: Sequence[Period]
    ) -> npt.NDArray[np.float64]:
        """Return the share of the question in the other neighbours of nameless nodes: (N,), weighted by importance."""
        batch = self._store.capped_edges(nodes, Direction.BOTH, None, _SETTINGS.edges)
        other = batch.other.astype(np.int64)
        distinct, place = np.unique(other, return_inverse=True)
        names = [node.name for node in self._store.nodes(self._store.ids(distinct))]
        worths = np.array(
            [
                0.0 if number in own or is_identifier(name) else _share(split_words(name), said)
                for number, name in zip(distinct.tolist(), names, strict=True)
            ]
        )
        worth = np.zeros(len(nodes))
        np.maximum.at(worth, batch.origin, worths[place])
        if not times:
            return worth
        dates: dict[int, dict[str, str]] = defaultdict(dict)
        for node, relation, at in zip(batch.origin.tolist(), batch.relation.tolist(), place.tolist(), strict=True):
            dates[node][self._store.relations[relation].rpartition(".")[2]] = names[at]
        for node, properties in dates.items():
            held = period(properties)
            worth[node] += held is not None and any(_overlap(held, time) for time in times)
        return worth


def _share(name: Sequence[str], said: Sequence[tuple[str, float]]) -> float:
    """Return the share of some words in a name, weighted by importance."""
    return round(sum(worth for word, worth in said if word in name), 6)


def _overlap(one: Period, other: Period) -> bool:
    """True if two periods have a day in common."""
    early = one.last is None or other.start is None or other.start <= one.last
    late = other.last is None or one.start is None or one.start <= other.last
    return early and late
