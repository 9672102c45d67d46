"""Ranking candidate queries without a language model: by what their relations mean for the question's words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from byokg.errors import at_least
from byokg.graph.store import Direction, GraphStore
from byokg.index.embedders import Embedder, StaticEmbedder
from byokg.linking.path_scorer import MAX_HOPS, PathScorer, QuestionScorer
from byokg.linking.relation_meaning import Steps
from byokg.retrieval.candidates import Anchor, Candidate, CandidateRanker, Leg
from byokg.text import locate, read_question, split_words
from byokg.types import Mention

_LOWEST = frozenset("first earliest oldest smallest lowest least fewest shortest nearest".split())
_SAID = 20.0
"""Worth of a condition that the question asks for, in the unit of path scores."""
_UNSAID = -10.0
"""Worth of one that it does not ask for."""

_Steps = tuple[int, ...]


class MeaningRanker:
    """Ranks candidates by the offline linker's path scorer, trained or not; implements `CandidateRanker`.

    Two paths that meet score as both do on average, and more for agreeing. Candidates that end at nodes without a name
    are left out, as are those of two entities that the same words of the question may mean.

    Args:
        relations: labels of the graph, as `GraphStore.relations` numbers them.
        scorer: scores paths.
        agreement: worth of two entities leading to the same node; that of `ExtractiveAnswerer`.
    """

    def __init__(self, relations: Sequence[str], scorer: PathScorer, agreement: float = 40.0) -> None:
        self._numbers = {label: number for number, label in enumerate(relations)}
        self._scorer = scorer
        self._agreement = agreement

    def rank(self, question: str, candidates: Sequence[Candidate]) -> list[tuple[int, float]]:
        """Return positions of candidates with scores, best first; equal ones in the order given."""
        anchors = dict.fromkeys(leg.anchor for one in candidates for leg in one.legs)
        mentions = {anchor: locate(anchor.name, question, (anchor.id,)) for anchor in anchors}
        missing = [anchor.name for anchor, mention in mentions.items() if mention.start < 0]
        scorer = self._scorer.question(read_question(question, list(mentions.values()), missing))
        asked = {position: [self._ways(leg, one) for leg in one.legs] for position, one in enumerate(candidates)}
        scores = _scores(scorer, {way for legs in asked.values() for ways in legs for way in ways})
        words = set(split_words(question))
        low = bool(_LOWEST & words)
        ranked = []
        for position, legs in asked.items():
            best = [max((scores[way] for way in ways if way in scores), default=None) for ways in legs]
            one = candidates[position]
            told = [score for score in best if score is not None]
            if len(told) < len(best) or (len(best) > 1 and _same(mentions, one)):
                continue
            score = sum(told) / len(told) + (self._agreement if len(told) > 1 else 0.0)
            ranked.append((position, score + self._conditions(one, words, low)))
        return sorted(ranked, key=lambda each: -each[1])

    def _ways(self, leg: Leg, candidate: Candidate) -> list[_Steps]:
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

    def _conditions(self, one: Candidate, words: set[str], low: bool) -> float:
        """Return what a candidate's conditions add, given what the question says."""
        score = _SAID if one.count else 0.0
        if one.end_type:
            score += _SAID if words & {*split_words(one.end_type)} else _UNSAID
        if one.year:
            score += _SAID
        if one.extreme:
            attribute, highest = one.extreme
            told = highest is not low
            score += _SAID / 2 if told and words & {*split_words(re.sub(r"[._/]", " ", attribute.key))} else _UNSAID
        return score


class Shortlist:
    """Has one ranker order all candidates, and another the first of them; implements `CandidateRanker`.

    Args:
        first: orders all; of those that the other leaves out, its order stands.
        then: orders the first ones, which is dear for many.
        shown: how many these are.
    """

    def __init__(self, first: CandidateRanker, then: CandidateRanker, shown: int = 50) -> None:
        at_least(1, "shows nothing", shown=shown)
        self._first, self._then, self._shown = first, then, shown

    def rank(self, question: str, candidates: Sequence[Candidate]) -> list[tuple[int, float]]:
        """Return what the second ranker chose with its scores, then the others with 0."""
        order = [position for position, _ in self._first.rank(question, candidates)]
        shown = order[: self._shown]
        if not shown:
            return []
        chosen = [(shown[place], score) for place, score in self._then.rank(question, [candidates[at] for at in shown])]
        taken = {position for position, _ in chosen}
        return [*chosen, *((position, 0.0) for position in order if position not in taken)]


def meaning_ranker(store: GraphStore, embedder: Embedder | None = None) -> MeaningRanker:
    """Make the untrained ranker for a graph, of which a sample is read; None takes the shipped embedder."""
    static = StaticEmbedder()
    embedder = embedder or static
    importance = lru_cache(1 << 14)(static.importance)
    return MeaningRanker(store.relations, PathScorer(Steps(store, embedder), embedder, importance=importance))


def _same(mentions: dict[Anchor, Mention], one: Candidate) -> bool:
    """Tell whether a candidate's two anchors stand at the same words."""
    first, second = (mentions[leg.anchor] for leg in one.legs)
    return first.start >= 0 and first.start < second.end and second.start < first.end


def _scores(scorer: QuestionScorer, paths: set[_Steps]) -> dict[_Steps, float]:
    """Return the scores of paths whose ends have names."""
    by_length = [sorted(path for path in paths if len(path) == hops) for hops in range(1, MAX_HOPS + 1)]
    tables = [np.array(rows, np.int64) for rows in by_length if rows]
    if not tables:
        return {}
    scores: dict[_Steps, float] = {}
    for table, told in zip(tables, scorer.scores([scorer.align(table) for table in tables]), strict=True):
        named = ~scorer.nameless(table[:, -1])
        for row in np.flatnonzero(named).tolist():
            scores[tuple(table[row].tolist())] = float(told[row])
    return scores
