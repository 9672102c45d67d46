"""Confidence of the first answer: the probability that it is right, on any graph.

`Confidence` uses features that are independent of graph and question set: agreement among candidates, score margin,
unused schema words, linking certainty, answer type, unexecuted constraints. A
logistic function turns them into a probability. `scripts/fit_confidence.py` fits it on questions of several graphs, and
`byokg fit` on those of one graph.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from heapq import nsmallest
from itertools import islice
from pathlib import Path

import numpy as np

from byokg.errors import ConfigError
from byokg.files import write_json
from byokg.offline.answer_type import AnswerTypePredictor
from byokg.offline.parse import ParsedQuestion
from byokg.offline.parse_constraints import expected_literal, parse_constraints, parse_path_question
from byokg.offline.question_coverage import QuestionCoverage, immaterial, quoted
from byokg.offline.rerank import Candidate
from byokg.offline.runners_up import Ranked, runners_up
from byokg.offline.schema_linking import RelationSimilarity
from byokg.pipelines.confidence import ConfidenceEstimate
from byokg.text.labels import split_label
from byokg.text.names import singular, split_words
from byokg.types import (
    AnswerItem,
    ComputedEvidence,
    Context,
    EntityId,
    LinkedEntity,
    Mention,
    PathEvidence,
    Question,
)


@dataclass(frozen=True)
class FeatureLimits:
    """Limits of the calibration features."""

    margin: float = 6.0
    """Units beyond which a margin carries no more information."""
    floor: float = 0.01
    """Smallest share of an answer, so that its odds are finite."""
    compared: int = 40
    """Best candidates that are compared."""
    ends: int = 30
    """Ends of a candidate that are compared."""
    agreeing: int = 5
    """Best candidates among which those that hold the same node are counted."""
    ranked: int = 25
    """Best candidates that may follow an unsure answer."""
    same: float = 0.5
    """Share of two candidates' ends that are common if they agree."""
    without_path: float = 0.5
    """Score, in hundreds, of a computed result without a path."""


_LIMITS = FeatureLimits()

FITTED = Path(__file__).resolve().parent.parent / "data" / "confidence.json"
"""The weights that ship with the package."""

UNIT = 10.0
"""Score units of a relevant difference: margins are expressed in it."""

UNSURE = 0.5
"""Probability below which an answer is reported as unsure."""

_ANYTHING = frozenset(("thing", "things"))
"""Placeholder for an unspecified answer type."""

_ODDS_ALONE = math.log((1 + _LIMITS.floor) / _LIMITS.floor)
"""Logarithm of the odds of an answer that nothing competes with."""

_ONE_WAY = math.log(2)
"""The sign of an answer that one candidate holds."""


@dataclass(frozen=True)
class CalibrationFeatures:
    """Calibration features of a first answer; shares are in [0, 1]."""

    vote_share: float = 0.0
    """The share, among all candidates, of those that answer the same, or that hold the one of its nodes that most hold,
    whichever is more, as the logarithm of its odds."""
    agreeing_paths: float = 0.0
    """Logarithm of one more than how many of the five best candidates hold the one of its nodes that most hold."""
    score_margin: float = 0.0
    """By how much its path beats the mean of the next nine."""
    score: float = 0.0
    """The score of its path, in hundreds."""
    unused_schema_words: float = 0.0
    """How many words of the question it does not explain that another relation of the graph would explain."""
    intermediate_type_match: float = 0.0
    """Excess of the last step's similarity to another noun of the question over that to the answer-type noun."""
    type_match: float = 0.0
    """Whether the path's ends are of the answer type: 1, or -1; 0 if no type has such a name."""
    unexecuted_constraint: float = 0.0
    """Whether something should have been worked out, and was not."""
    linking_uncertainty: float = 0.0
    """How far the least sure link of the answer's mentions is from certain."""
    too_few_hops: float = 0.0
    """Whether an odd number of hops is missing, of one for each link of the question; two may go there and back."""
    too_many_hops: float = 0.0
    """Whether its path has more hops than the question has links and words that may be links."""
    name_ambiguity: float = 0.0
    """How much the node that it starts from looks like several things under one name."""


AGAINST = frozenset(
    "unused_schema_words unexecuted_constraint linking_uncertainty intermediate_type_match too_few_hops too_many_hops "
    "name_ambiguity".split()
)
"""Features that count against an answer; all others count for it."""

NAMES = tuple(field.name for field in fields(CalibrationFeatures))


class Confidence:
    """Estimates the probability that the first answer of the offline pipeline is right; thread-safe.

    Args:
        steps: schema linking.
        candidates: answer candidates, best first, of all evidence.
        answer_types: predicts the answer type.
        ranked: possible answers, the best first, with scores; without it nothing follows an unsure answer.
        unit: score units of a relevant difference.
        weights: file of weights of `byokg fit`, or `scripts/fit_confidence.py`; None takes those of the package.
        coverage: finds the parts of the question that an answer does not use, which lower its probability; None looks
            for none.

    Raises:
        ConfigError: the weights cannot be read.
    """

    def __init__(
        self,
        steps: RelationSimilarity,
        candidates: Callable[[Context, Collection[Mention]], Sequence[Candidate]],
        answer_types: AnswerTypePredictor,
        ranked: Callable[[Context], Iterable[Ranked]] | None = None,
        unit: float = UNIT,
        weights: str | Path | None = None,
        coverage: QuestionCoverage | None = None,
    ) -> None:
        self._coverage = coverage
        self._steps = steps
        self._candidates = candidates
        self._answer_types = answer_types
        self._ranked = ranked
        self._unit = unit
        self.weights = read_weights(FITTED if weights is None else Path(weights))

    def estimate(self, question: Question, context: Context, items: Sequence[AnswerItem]) -> ConfidenceEstimate:
        """Return the confidence of the first answer, the missing support, and the runners-up if it is unsure."""
        signs = self.features(question, context, items)
        probability = self.weights.probability(signs)
        further: tuple[AnswerItem, ...] = ()
        worked_out = any(isinstance(item, ComputedEvidence) for item in context.evidence)
        if probability < UNSURE and self._ranked is not None and not worked_out:
            further = runners_up(islice(self._ranked(context), _LIMITS.ranked), probability, self._unit)
        if self._coverage is None:
            return ConfidenceEstimate(probability, self._missing(signs), further, unsure=probability < UNSURE)
        parts, other = self._coverage.unused(context, items), self._coverage.ambiguous(context, items)
        probability = min(probability, 1 / other.fitting) * immaterial(parts)
        further = () if other.namesakes else further  # answers of a namesake are about something else
        unsure = probability < UNSURE
        return ConfidenceEstimate(probability, self._missing(signs), further, quoted(parts), other.taken, unsure)

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

    def features(self, question: Question, context: Context, items: Sequence[AnswerItem]) -> CalibrationFeatures:
        """Return the calibration features of the first answer."""
        first = context.rounds[0]
        mentions = first.artifacts.mentions
        constraints = parse_constraints(question.text, mentions)
        by_id = {item.id: item for item in context.evidence}
        computed = next((item for item in context.evidence if isinstance(item, ComputedEvidence)), None)
        cited = items[0].citations if computed is None else computed.uses
        paths = [item for id in cited if isinstance(item := by_id.get(id), PathEvidence)]
        if computed is not None and not paths:
            # A fact about nodes that the question names: no path among many.
            return CalibrationFeatures(
                vote_share=_ODDS_ALONE,
                agreeing_paths=_ONE_WAY,
                score_margin=_LIMITS.margin,
                score=_LIMITS.without_path,
                type_match=self._kind(question.text, mentions, [item.id for item in items if item.id is not None]),
                unexecuted_constraint=float(computed.truncated),
                linking_uncertainty=_doubt(first.linked.entities),
            )
        parsed, walks = parse_path_question(question.text, mentions, self._steps.has_relation), self._walks(paths)
        used = {path.source for path in paths}
        return replace(
            self._among(context, cited),
            **self._words(parsed, walks, self._known(context), _worked_out(computed)),
            **self._length(parsed, walks),
            linking_uncertainty=1 - min((one.score for one in first.linked.entities if one.id in used), default=1.0),
            name_ambiguity=self._steps.statistics.name_ambiguity(tuple(dict.fromkeys(path.source for path in paths))),
            type_match=self._kind(question.text, mentions, _common(paths)),
            unexecuted_constraint=float(not constraints.plain if computed is None else computed.truncated),
        )

    def _among(self, context: Context, cited: Sequence[str]) -> CalibrationFeatures:
        """Compare the answer with the other candidates."""
        candidates = self._candidates(context, ())
        if not candidates:
            return CalibrationFeatures()
        alike = {one.evidence_ids: one for one in reversed(candidates)}
        # Of several paths with the same meaning, the first one is judged.
        own = alike.get(tuple(cited)) or alike.get(tuple(cited[:1])) or candidates[0]
        units = [one.score / self._unit for one in candidates]
        score = own.score / self._unit
        following = sorted((unit for unit in units if unit <= score), reverse=True)[1:10]
        gap = score - sum(following) / len(following) if following else _LIMITS.margin
        agreeing = _holding(own, candidates[: _LIMITS.agreeing], lambda score: 1.0)
        return CalibrationFeatures(
            vote_share=_agreement(own, candidates[: _LIMITS.compared], self._unit),
            agreeing_paths=math.log(1 + max(agreeing.values(), default=0.0)),
            score_margin=min(_LIMITS.margin, gap),
            score=own.score / 100 * UNIT / self._unit,
        )

    def _walks(self, paths: Iterable[PathEvidence]) -> list[list[int]]:
        """Return the steps of each path."""
        return [self._steps.refresh().encode_path(path.relations) for path in paths]

    def _known(self, context: Context) -> Sequence[int] | None:
        """Return the steps that the question could mean: None for all, if they are known without a request."""
        if not self._steps.statistics.grows:
            return None
        found = self._walks(item for item in context.evidence if isinstance(item, PathEvidence))
        return sorted({step for walk in found for step in walk})

    def _words(
        self, parsed: ParsedQuestion, walks: Sequence[Sequence[int]], known: Sequence[int] | None, done: Collection[str]
    ) -> dict[str, float]:
        """Measure mutual coverage of steps and question.

        Args:
            parsed: the question parse.
            walks: the steps of each path behind the answer.
            known: possible steps, None for all.
            done: words of executed operations.
        """
        of = self._steps.refresh()
        steps = sorted({step for walk in walks for step in walk})
        lasts = sorted({walk[-1] for walk in walks if walk})
        unused = 0.0
        for place in parsed.content_tokens:
            word, in_span = parsed.words[place], place in parsed.answer_type_span
            if singular(word) in done:
                continue
            means, ends = np.maximum(of.label_similarity(word), of.type_similarity(word)), of.range_similarity(word)
            best = max(
                [float(means[step]) for step in steps] + [float(ends[step]) for step in lasts if in_span], default=0.0
            )
            elsewhere = np.maximum(means, ends) if in_span else means
            elsewhere = elsewhere if known is None else elsewhere[known]
            unused += max(0.0, float(elsewhere.max(initial=0.0)) - best)
        asked = [parsed.words[place] for place in parsed.answer_type_span]
        passed = [parsed.words[place] for place in parsed.intermediate_nouns]
        reach, midway = (
            max((float(of.range_similarity(word)[step]) for word in words for step in lasts), default=0.0)
            for words in (asked, passed)
        )
        typed = lasts and asked and _ANYTHING.isdisjoint(asked)
        return {
            "unused_schema_words": unused,
            "intermediate_type_match": max(0.0, midway - reach) if typed else 0.0,
        }

    def _length(self, parsed: ParsedQuestion, walks: Iterable[Sequence[int]]) -> dict[str, float]:
        """Compare the hops of the longest path with the links between the question's phrases."""
        of = self._steps.refresh()
        hops = max((of.hops(walk) for walk in walks if walk), default=0)
        if not hops:
            return {}
        return {
            "too_few_hops": float(max(0, parsed.links - hops) % 2),
            "too_many_hops": float(hops > parsed.most_hops),
        }

    def _kind(self, text: str, mentions: tuple[Mention, ...], ends: Sequence[EntityId]) -> float:
        asked = self._answer_types.predict(text, mentions, [ends])
        if not ends or not asked.types or not asked.exact:
            return 0.0
        # A person for who, or a place for where, is merely compatible.
        return float(len(asked.types) == 1) if self._answer_types.is_compatible(ends, asked) else -1.0

    def _missing(self, signs: CalibrationFeatures) -> str:
        """Describe the strongest evidence against an answer."""
        against = {name: -part for name, part in self.weights.parts(signs).items() if name in _SAID}
        worst = max(against, key=lambda name: against[name])
        return _SAID[worst] if against[worst] > 0 else "nothing speaks for it in particular"


def _common(paths: Sequence[PathEvidence]) -> Sequence[EntityId]:
    """Return the common ends of some paths, of the answer type or not; else those of the first."""
    if not paths:
        return ()
    others = [frozenset(path.ends) for path in paths[1:]]
    return [end for end in paths[0].ends if all(end in other for other in others)] or paths[0].ends


def _doubt(linked: Sequence[LinkedEntity]) -> float:
    """Return the uncertainty of the least certain mention, each by its best candidate."""
    best: dict[Mention, float] = {}
    for one in linked:
        best[one.mention] = max(best.get(one.mention, 0.0), one.score)
    return 1 - min(best.values(), default=1.0)


def _worked_out(computed: ComputedEvidence | None) -> Collection[str]:
    """Return the words that describe the executed operation: `longest by length of 12`."""
    return {singular(word) for word in split_words(split_label(computed.text))} if computed is not None else ()


def _agreement(own: Candidate, candidates: Sequence[Candidate], unit: float) -> float:
    """Return the share of the candidates' weight that agrees with one of them, or holds one of its nodes, as log
    odds."""
    best, ends = max(one.score for one in candidates), _some(own.nodes)
    total = same = 0.0
    for one in candidates:
        mass, theirs = math.exp((one.score - best) / unit), _some(one.nodes)
        total += mass
        if len(ends & theirs) >= _LIMITS.same * max(1, len(ends | theirs)):
            same += mass
    holding = _holding(own, candidates, lambda score: math.exp((score - best) / unit))
    share = max([same, *holding.values()]) / total
    return math.log((share + _LIMITS.floor) / (1 - share + _LIMITS.floor))


def _holding(
    own: Candidate, candidates: Iterable[Candidate], worth: Callable[[float], float]
) -> Mapping[EntityId, float]:
    """Return for each node of a candidate the weight of the candidates that hold it."""
    ends = _some(own.nodes)
    held: dict[EntityId, float] = dict.fromkeys(ends, 0.0)
    for one in candidates:
        for end in ends.intersection(one.nodes):
            held[end] += worth(one.score)
    return held


def _some(ends: Sequence[EntityId]) -> set[EntityId]:
    """Return the ends with the smallest ids: which ones come first depends on how a store numbers nodes."""
    return set(ends if len(ends) <= _LIMITS.ends else nsmallest(_LIMITS.ends, ends))


_SAID = {
    "vote_share": "another answer fits almost as well",
    "agreeing_paths": "few of the paths that fit lead to it",
    "score_margin": "many paths fit about as well",
    "score": "no path fits the question well",
    "unused_schema_words": "its path leaves out something that the question asks for",
    "linking_uncertainty": "it is not sure what the question names",
    "type_match": "it is not of the kind that the question asks for",
    "intermediate_type_match": "it may be what the question passes on its way",
    "too_few_hops": "its path is shorter than what the question says",
    "too_many_hops": "its path goes on from where the question ends",
    "name_ambiguity": "it starts from what may be several things under one name",
    "unexecuted_constraint": "the question asks for more than a path, and that could not be worked out",
}
"""Descriptions of features against an answer, for those meaningful to a reader."""


@dataclass(frozen=True)
class LogisticCalibrator:
    """A logistic function of signs."""

    bias: float
    weights: tuple[float, ...]
    """In the order of `CalibrationFeatures`."""
    middle: tuple[float, ...]
    """Mean of each feature, the reference of its contribution."""

    def parts(self, signs: CalibrationFeatures) -> dict[str, float]:
        """Return the contribution of each feature to the log odds, relative to its mean."""
        values = vars(signs)
        return {
            name: weight * (values[name] - middle)
            for name, weight, middle in zip(NAMES, self.weights, self.middle, strict=True)
        }

    def probability(self, signs: CalibrationFeatures) -> float:
        """Return the probability."""
        # One after another, and math.exp: the same bytes on every CPU.
        odds = self.bias
        for part in self.parts(signs).values():
            odds += part
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, odds))))


@lru_cache(8)
def read_weights(file: Path) -> LogisticCalibrator:
    """Read weights. Raises `ConfigError` if the file has none for these features."""
    try:
        held = json.loads(file.read_text("utf-8"))
        weights, middle = held["weights"], held["middle"]
        return LogisticCalibrator(
            held["bias"], tuple(weights[name] for name in NAMES), tuple(middle[name] for name in NAMES)
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"no weights of a confidence can be read in {str(file)!r} ({error}); fit them anew with: "
            "byokg fit dataset=… --out DIR"
        ) from error


def save_weights(file: Path, fitted: LogisticCalibrator) -> None:
    """Write what `read_weights` reads."""
    named = {"weights": fitted.weights, "middle": fitted.middle}
    parts = {part: dict(zip(NAMES, values, strict=True)) for part, values in named.items()}
    write_json(file, {"bias": fitted.bias, **parts})
