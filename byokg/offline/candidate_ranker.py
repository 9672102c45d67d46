"""Ranking of GraphRAFT's candidate queries by the path scorer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from byokg.graph.store import Direction, GraphStore
from byokg.index.embedders import Embedder, StaticEmbedder
from byokg.linking.parts import Parts
from byokg.offline.parse import parse_question
from byokg.offline.path_scorer import MAX_HOPS, PathScorer, QuestionScorer, logarithms, weights_for
from byokg.offline.schema_linking import RelationSimilarity
from byokg.retrieval.candidates import LOWEST, Anchor, CandidateQuery, Leg
from byokg.retrieval.subgraph import SubgraphRetriever
from byokg.text.names import locate, split_words
from byokg.types import Mention

_Steps = tuple[int, ...]


class MeaningRanker:
    """Ranks candidates by the offline linker's path scorer, trained or not; implements `CandidateRanker`.

    Two paths that meet score as both do on average, and more for agreeing. Conditions decide between candidates of
    equal paths: those that the question asks for come first, then none, then those that it does not ask for. Candidates
    that end at nodes without a name are left out, as are those of two entities that the same words of the question may
    mean.

    Args:
        relations: labels of the graph, as `GraphStore.relations` numbers them.
        scorer: scores paths.
        agreement: worth of two entities leading to the same node; that of `ExtractiveAnswerer`. On WebQSP's dev split
            0 costs a point of Hits@1, and 20 to 80 are the same, whether paths are scored with training or without.
    """

    def __init__(self, relations: Sequence[str], scorer: PathScorer, agreement: float = 40.0) -> None:
        self._numbers = {label: number for number, label in enumerate(relations)}
        self._scorer = scorer
        self._agreement = agreement

    def rank(self, question: str, candidates: Sequence[CandidateQuery]) -> list[tuple[int, float]]:
        """Return positions of candidates with scores, best first; equal ones in the order given."""
        anchors = dict.fromkeys(leg.anchor for one in candidates for leg in one.legs)
        mentions = {anchor: locate(anchor.name, question, (anchor.id,) if anchor.id else ()) for anchor in anchors}
        missing = [anchor.name for anchor, mention in mentions.items() if mention.start < 0]
        scorer = self._scorer.question(parse_question(question, list(mentions.values()), missing))
        asked = {position: [self._ways(leg, one) for leg in one.legs] for position, one in enumerate(candidates)}
        scores = _scores(scorer, {way for legs in asked.values() for ways in legs for way in ways})
        scores[()] = max(scores.values(), default=0.0)  # nodes with a value, if a property of theirs is asked for
        words = set(split_words(question))
        low = bool(LOWEST & words)
        ranked = []
        for position, legs in asked.items():
            best = [max((scores[way] for way in ways if way in scores), default=None) for ways in legs]
            one = candidates[position]
            told = [score for score in best if score is not None]
            if len(told) < len(best) or (len(best) > 1 and _same(mentions, one)):
                continue
            agreement = self._agreement if len(told) > 1 or one.end_values else 0.0
            score = sum(told) / len(told) + agreement
            if one.template == "holders" and not (one.asked or one.count):
                score -= 1.0
            ranked.append((position, score, self._asked(one, words, low)))
        return [(position, score) for position, score, _ in sorted(ranked, key=lambda each: (-each[1], -each[2]))]

    def _ways(self, leg: Leg, candidate: CandidateQuery) -> list[_Steps]:
        """Return the paths, as `graph.paths` numbers steps, that a leg and the tail may stand for."""
        steps = (*leg.steps, *candidate.tail)
        if len(steps) > MAX_HOPS:
            return []
        choices = []
        for step in steps:
            number = 2 * self._numbers[step.relation]
            choices.append([number] if step.direction is Direction.OUT else [number + 1])
            if step.direction is Direction.BOTH:
                choices[-1] = [number, number + 1]
        return list(product(*choices))

    def _asked(self, one: CandidateQuery, words: set[str], low: bool) -> int:
        """Return how many of a candidate's conditions the question asks for, less those that it does not."""
        told = [True for condition in (one.count, one.period, one.asked, one.end_values) if condition]
        if one.end_type and not one.end_values:
            told.append(bool(words & {*split_words(one.end_type)}))
        if one.extreme:
            attribute, highest = one.extreme
            said = words & {*split_words(re.sub(r"[._/]", " ", attribute.key))}
            told.append(highest is not low and bool(said))
        return sum(1 if asked else -1 for asked in told)


def meaning_ranker(store: GraphStore, embedder: Embedder | None = None) -> MeaningRanker:
    """Make the untrained ranker for a graph, of which a sample is read; None takes the shipped embedder."""
    static = StaticEmbedder()
    embedder = embedder or static
    importance = lru_cache(1 << 14)(static.importance)
    weights = weights_for(embedder)
    scorer = PathScorer(RelationSimilarity(store, embedder), embedder, weights, importance=importance)
    return MeaningRanker(store.relations, scorer)


def subgraph_retriever(
    parts: Parts, queries: int = 10, nodes: int = 20, anchors: int = 10, timeout_s: float = 10.0
) -> SubgraphRetriever:
    """Make a retriever of candidate queries in the order of schema linking, for any pipeline; see the class."""
    ranker = meaning_ranker(parts.store, parts.embedder)
    return SubgraphRetriever(parts.store, ranker, None, queries, nodes, anchors, timeout_s)


def _same(mentions: dict[Anchor, Mention], one: CandidateQuery) -> bool:
    """True if a candidate's two anchors come from the same words."""
    first, second = (mentions[leg.anchor] for leg in one.legs)
    return first.start >= 0 and first.start < second.end and second.start < first.end


def _scores(scorer: QuestionScorer, paths: set[_Steps]) -> dict[_Steps, float]:
    """Return the scores of paths whose ends have names."""
    by_length = [sorted(path for path in paths if len(path) == hops) for hops in range(1, MAX_HOPS + 1)]
    tables = [np.array(rows, np.int64) for rows in by_length if rows]
    if not tables:
        return {}
    scores: dict[_Steps, float] = {}
    steps: dict[_Steps, set[int]] = {}
    for path in paths:  # what there is to choose from, as far as it is among the candidates
        for place in range(len(path)):
            steps.setdefault(path[:place], set()).add(path[place])
    aligned = []
    for table in tables:
        sizes = [[1 + len(steps[tuple(row[:place])]) for place in range(len(row))] for row in table.tolist()]
        chosen = logarithms(np.array(sizes, np.int64).ravel()).reshape(table.shape)
        aligned.append(scorer.extract_features(table, chosen))
    for table, told in zip(tables, scorer.scores(aligned), strict=True):
        named = ~scorer.nameless(table[:, -1])
        for row in np.flatnonzero(named).tolist():
            scores[tuple(table[row].tolist())] = float(told[row])
    return scores
