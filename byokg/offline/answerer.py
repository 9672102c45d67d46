"""Answers extracted from path evidence, and the probability that the first one is right, on any graph.

The probability is that of the candidate by the ranker (`ranking`), less for parts of the question that it does not use
and for namesakes. `scripts/fit_confidence.py` fits the ranker on questions of several graphs, and `byokg fit` on those
of one graph.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from byokg.graph.property_view import is_value, value_name
from byokg.graph.store import GraphStore
from byokg.offline.aggregation import grouping
from byokg.offline.answer_type import AnswerTypePredictor, is_literal_of
from byokg.offline.lexicon import rule
from byokg.offline.parse_constraints import expected_literal, parse_constraints
from byokg.offline.question_coverage import QuestionCoverage, immaterial, quoted
from byokg.offline.ranking import AnswerRanker, Candidate
from byokg.pipelines.answers import ConfidenceEstimate
from byokg.text.names import is_identifier
from byokg.types import AnswerItem, ComputedEvidence, Context, EntityId, Mention, PathEvidence, Question, Step


class ExtractiveAnswerer:
    """Returns the nodes of the likeliest candidate, each citing its evidence.

    A candidate is the ends of a metapath, or the common ends of several from different mentions («which country borders
    X and speaks Y»), if the linker proposes that pair. Nodes without a name are no answers. Without a ranker,
    candidates are ordered by the score of the linker.

    Args:
        store: source of the names of nodes.
        answer_types: predicts the answer type.
        ranker: orders candidates; thread-safe.
    """

    def __init__(
        self, store: GraphStore, answer_types: AnswerTypePredictor | None = None, ranker: AnswerRanker | None = None
    ) -> None:
        self._store, self._answer_types, self._ranker = store, answer_types, ranker
        self._last: tuple[tuple[object, ...], tuple[Candidate, ...]] = ((), ())

    def answer(self, question: Question, context: Context) -> list[AnswerItem]:
        """Return the computed result, else the ends of the best path evidence.

        Empty if there is neither, the question names a value that is nowhere, or it asks for one result per group.
        """
        if any(one.artifacts.unknown for one in context.rounds) or grouping(self._store, context):
            return []
        for item in context.evidence:
            if isinstance(item, ComputedEvidence):
                return self._computed(item)
        return next((self.items(one) for one in self.ranked(context)), [])

    def ranked(self, context: Context) -> Iterator[Candidate]:
        """Yield the possible answers, the best first, without nameless nodes.

        A question for a date or a number is answered by nothing else.
        """
        asked, _ = expected_literal(context.question, context.rounds[0].artifacts.mentions if context.rounds else ())
        for one in self.candidates(context):
            nodes = [node for node in self._store.nodes(one.nodes) if not is_identifier(node.name)]
            if asked and 2 * sum(is_literal_of(node.name, asked) for node in nodes) <= len(nodes):
                continue
            if nodes:
                yield one.narrowed(tuple(node.id for node in nodes))

    def items(self, candidate: Candidate) -> list[AnswerItem]:
        """Return the answers of a candidate."""
        cited = candidate.evidence_ids
        return [
            AnswerItem(node.name, None if is_value(node.id) else node.id, candidate.score, cited, len(cited))
            for node in self._store.nodes(candidate.nodes)
        ]

    def names(self, nodes: Sequence[EntityId]) -> list[str]:
        """Return the names of nodes."""
        return [node.name for node in self._store.nodes(nodes)]

    def candidates(self, context: Context, without: Collection[Mention] = ()) -> Sequence[Candidate]:
        """Return the answer candidates, best first: the ends of each metapath, and common ends of several.

        Args:
            context: the evidence.
            without: mentions whose metapaths are ignored.
        """
        # A round without evidence, entities and joined paths changes no candidate.
        kept = (one for one in context.rounds if one.evidence or one.linked.entities or one.artifacts.joined)
        key = (context.question, *kept)
        known, ranked = self._last
        if known != key or without:
            ranked = tuple(self._ranked(context, without))
            self._last = self._last if without else (key, ranked)
        return ranked

    def _ranked(self, context: Context, without: Collection[Mention]) -> list[Candidate]:
        linked = [entity for earlier in context.rounds for entity in earlier.linked.entities]
        left_out = {one.id for one in linked if one.mention in without}
        left_out -= {one.id for one in linked if one.mention not in without}
        found = [item for item in context.evidence if isinstance(item, PathEvidence) and item.source not in left_out]
        text, mentions = context.question, context.rounds[0].artifacts.mentions if context.rounds else ()
        types = self._answer_types
        ends: Sequence[tuple[EntityId, ...]] = [item.ends for item in found]
        if types is not None:
            ends = types.filter_paths_by_gender(text, mentions, self._store, found)
        single = [Candidate(item.score, some, (item,)) for item, some in zip(found, ends, strict=True)]
        candidates = sorted([*self._agreeing(found, context), *single], key=lambda one: -one.score)
        if types is not None:
            fits = types.may_answer(text, [one.nodes for one in candidates])
            candidates = [one for one, fit in zip(candidates, fits, strict=True) if fit] or candidates
            kept = types.filter_by_gender(text, mentions, [one.nodes for one in candidates])
            candidates = [one.narrowed(nodes) for one, nodes in zip(candidates, kept, strict=True)]
        return candidates if self._ranker is None else self._ranker.rank(context, candidates)

    def _computed(self, item: ComputedEvidence) -> list[AnswerItem]:
        citations = (item.id, *item.uses)
        least = "at least " if item.operation == "count" and item.truncated else ""
        values = [
            AnswerItem(f"{least}{value_name(value)}", None, item.score, citations, len(citations))
            for value in item.values
        ]
        nodes = self._store.nodes(item.nodes)
        return [*values, *(AnswerItem(node.name, node.id, item.score, citations, len(citations)) for node in nodes)]

    @rule("common ends", "which films of {Tom} star {Ann}", lambda self, found, context: [])
    def _agreeing(self, found: list[PathEvidence], context: Context) -> list[Candidate]:
        """Return the common ends of proposed pairs of metapaths."""
        walked = {(item.source, item.relations): item for item in found}
        agreeing: list[Candidate] = []
        proposed = (two for each in context.rounds for two in each.artifacts.joined)
        for joined in sorted(proposed, key=lambda two: -two.score):
            one, other = (walked.get((path.source or EntityId(""), path.relations)) for path in joined.paths)
            if one is None or other is None:
                continue
            ends = frozenset(other.ends)
            if nodes := tuple(end for end in one.ends if end in ends):
                agreeing.append(Candidate(joined.score, nodes, (one, other)))
        return agreeing


@dataclass(frozen=True)
class RunnerUpSettings:
    """Limits of n-best answers."""

    candidates: int = 2
    """Candidates that follow."""
    answers: int = 20
    """Answers of a candidate that follows; one with more does not."""
    none_right: float = 5.0
    """Odds that no candidate is right if the first one is not, relative to one as good as the best."""
    same: float = 0.5
    """Share of two candidates' answers that are common if they agree."""


_RUNNERS = RunnerUpSettings()

Ranked = tuple[float, Sequence[AnswerItem]]
"""Log-odds, and the answers that would be given with them."""


@rule("n-best answers", "who founded {X}", lambda ranked, probability: ())
def runners_up(ranked: Iterable[Ranked], probability: float) -> tuple[AnswerItem, ...]:
    """Return further answers after those of the first candidate, each with the probability of its candidate.

    Constants were tuned on dev questions of WebQSP, CWQ, atlas, PathQuestion, MetaQA and made-up domains, so that F1
    gets no worse on any of them.

    Args:
        ranked: candidates, the first one first.
        probability: of the first one.
    """
    candidates = list(ranked)
    if len(candidates) < 2:
        return ()
    given = set(map(_key, candidates[0][1]))
    first, best = frozenset(given), max(score for score, _ in candidates)
    weights: dict[frozenset[str], float] = {}
    items: dict[frozenset[str], Sequence[AnswerItem]] = {}
    for score, answers in candidates[1:]:
        keys = frozenset(map(_key, answers))
        if not keys <= first and len(keys & first) < _RUNNERS.same * len(keys | first):
            weights[keys] = weights.get(keys, 0.0) + math.exp(score - best)
            items.setdefault(keys, answers)
    total = sum(weights.values()) + _RUNNERS.none_right
    likely = {keys: (1 - probability) * weight / total for keys, weight in weights.items()}

    def expected(keys: Collection[str]) -> float:
        worth = probability * _f1(keys, first) + sum(odds * _f1(keys, other) for other, odds in likely.items())
        return round(worth, 9)

    further: list[AnswerItem] = []
    for _ in range(_RUNNERS.candidates):
        open_ones = [keys for keys in likely if 0 < len(keys - given) <= _RUNNERS.answers]
        chosen = max(open_ones, key=lambda keys: expected(given | keys), default=None)
        if chosen is None or expected(given | chosen) <= expected(given):
            break
        further += [replace(item, score=likely[chosen]) for item in items[chosen] if _key(item) not in given]
        given |= chosen
    return tuple(further)


def _key(item: AnswerItem) -> str:
    return item.id or item.name


def _f1(some: Collection[str], others: Collection[str]) -> float:
    return 2 * len(set(some).intersection(others)) / (len(some) + len(others))


@dataclass(frozen=True)
class ExplanationLimits:
    """Limits of runners-up and of candidates in the trace."""

    ranked: int = 25
    """Best candidates that may follow an unsure answer."""
    explained: int = 5
    """Best candidates in the trace."""
    nodes: int = 3
    """Nodes of each."""
    least: float = 0.1
    """Least contribution to the log-odds that is shown."""


_LIMITS = ExplanationLimits()

UNSURE = 0.5
"""Probability below which an answer is reported as unsure."""


class Confidence:
    """Estimates the probability that the first answer of the offline pipeline is right; thread-safe.

    Args:
        answerer: source of the candidates, best first.
        ranker: judges computed results without a path.
        coverage: finds the parts of the question that an answer does not use, which lower its probability; None looks
            for none.
    """

    def __init__(
        self, answerer: ExtractiveAnswerer, ranker: AnswerRanker, coverage: QuestionCoverage | None = None
    ) -> None:
        self._answerer, self.ranker, self._coverage = answerer, ranker, coverage

    def estimate(self, question: Question, context: Context, items: Sequence[AnswerItem]) -> ConfidenceEstimate:
        """Return the confidence of the first answer, the missing support, and the runners-up if it is unsure."""
        own = self._own(context, items)
        probability, further = own.probability, tuple[AnswerItem, ...]()
        worked_out = any(isinstance(item, ComputedEvidence) for item in context.evidence)
        if probability < UNSURE and not worked_out:
            rivals = islice(self._answerer.ranked(context), _LIMITS.ranked)
            further = runners_up(((one.odds, self._answerer.items(one)) for one in rivals), probability)
        ranked = [own, *(one for one in self._answerer.candidates(context) if own.paths and one is not own)]
        steps = tuple(map(self._explain, ranked[: _LIMITS.explained]))
        missing = self._missing(own)
        if self._coverage is None:
            return ConfidenceEstimate(
                probability, self._missing(own), further, unsure=probability < UNSURE, steps=steps
            )
        parts, other = self._coverage.unused(context, items), self._coverage.ambiguous(context, items)
        probability = min(probability, 1 / other.fitting) * immaterial(parts)
        further = () if other.namesakes else further  # answers of a namesake are about something else
        unsure = probability < UNSURE
        unrelated = not question.topic_ids and self._coverage.is_unrelated(context, items)
        taken = other.taken
        return ConfidenceEstimate(probability, missing, further, quoted(parts), taken, unsure, steps, unrelated)

    def candidates(self, context: Context, items: Sequence[AnswerItem]) -> list[tuple[str, Candidate]]:
        """Return the first name of each candidate, best first; of a computed result its own alone."""
        if any(isinstance(item, ComputedEvidence) for item in context.evidence):
            return [(items[0].name, self._own(context, items))]
        return [(self._answerer.items(one)[0].name, one) for one in self._answerer.ranked(context)]

    def _own(self, context: Context, items: Sequence[AnswerItem]) -> Candidate:
        """Return the candidate of the first of some answers."""
        by_id = {item.id: item for item in context.evidence}
        computed = next((item for item in context.evidence if isinstance(item, ComputedEvidence)), None)
        cited = items[0].citations if computed is None else computed.uses
        paths = tuple(id for id in cited if isinstance(by_id.get(id), PathEvidence))
        candidates = self._answerer.candidates(context)
        if computed is not None and not (paths and candidates):
            # A fact about nodes that the question names: no path among many.
            return self.ranker.judge(context, computed, [item.id for item in items if item.id is not None])
        alike = {one.evidence_ids: one for one in reversed(candidates)}
        return alike.get(paths) or alike.get(paths[:1]) or candidates[0]

    def explain_absence(self, context: Context) -> str:
        """Describe the missing support of an answer."""
        computed = [item for item in context.evidence if isinstance(item, ComputedEvidence)]
        if computed and not computed[-1].nodes and not computed[-1].values:
            return (
                computed[-1].text
                if computed[-1].operation == "verification"
                else f"nothing is left: {computed[-1].text}"
            )
        mentions = context.rounds[0].artifacts.mentions if context.rounds else ()
        if noun := parse_constraints(context.question, mentions).grouped:
            return f"the question asks for one result per {noun}; only a pipeline with a language model groups results"
        asked, words = expected_literal(context.question, mentions)
        if asked and any(isinstance(item, PathEvidence) for item in context.evidence):
            constraints = parse_constraints(context.question, mentions)
            phrases = [test.words for test in constraints.times] + [bound.words for bound in constraints.thresholds]
            limits = ", ".join(f'"{phrase}"' for phrase in phrases)
            unused = f"; not used: {limits}" if limits else ""
            return f"the question asks {words}, and no {asked} was found that fits it{unused}"
        linked = [one.name for earlier in context.rounds for one in earlier.linked.entities]
        if linked:
            return f"no path from {', '.join(map(repr, dict.fromkeys(linked)))} fits the question"
        named = [one.text for earlier in context.rounds for one in earlier.artifacts.mentions]
        if not named:
            return "nothing in the question names a node of the graph"
        return f"none of {', '.join(map(repr, dict.fromkeys(named)))} was found in the graph"

    def _explain(self, candidate: Candidate) -> Step:
        """Return the trace of a candidate: answers, evidence, probability, and contributions to its log-odds."""
        parts = self.ranker.weights.contributions(candidate.features)
        largest = sorted(parts, key=lambda name: -abs(parts[name]))
        names = self._answerer.names(candidate.nodes[: _LIMITS.nodes])
        given = {"answers": names, "of": len(candidate.nodes), "evidence": list(candidate.evidence_ids)}
        contributions = {name: round(parts[name], 2) for name in largest if abs(parts[name]) >= _LIMITS.least}
        got = {"probability": round(candidate.probability, 4), "contributions": contributions}
        return Step("candidate", given, got)

    def _missing(self, candidate: Candidate) -> str:
        """Describe the strongest evidence against a candidate."""
        parts = self.ranker.weights.contributions(candidate.features)
        worst = min(_SAID, key=lambda name: parts[name])
        return _SAID[worst] if parts[worst] < 0 else "nothing speaks for it in particular"


_SAID = {
    "agreement": "another answer fits almost as well",
    "margin": "many paths fit about as well",
    "score": "no path fits the question well",
    "unused_schema_words": "its path leaves out something that the question asks for",
    "linking_uncertainty": "it is not sure what the question names",
    "typed": "it is not of the kind that the question asks for",
    "called": "it is not of the kind that the question asks for",
    "intermediate_type_match": "it may be what the question passes on its way",
    "too_few_hops": "its path is shorter than what the question says",
    "too_many_hops": "its path goes on from where the question ends",
    "unexecuted_constraint": "the question asks for more than a path, and that could not be worked out",
}
"""Descriptions of features against an answer, for those meaningful to a reader."""
