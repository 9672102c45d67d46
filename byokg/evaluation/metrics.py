"""The `strict` metric profile, means with intervals, and where questions are lost.

Strict means normalised answers compared as whole strings, never as substrings. An answer is right when its normalised
name equals a normalised gold name. Names decide: data sets give their gold answers as names, some give ids for part of
them, and answers such as years or counts are no nodes at all. So two nodes with one name count once, as one answer.
Three kinds of answers are right under another spelling (`match_gold`): the node that a gold answer's id names; a number
with the six significant digits of a gold one, since sums differ between engines and some write `112492.0`; and the key
of a node that has no other name, or its id (`10307` or `Order:10307` for `Order 10307`, and the reverse). No other
property makes a node right: a person is no surname.

Pipelines hand over answers best first: by score descending, then by the number of walks that support
the answer descending, then in node order. Metrics need that order for Hits@1 only, which looks at the
first answer; all others treat the answers as a set.

Every question counts in every metric, with one denominator: a question without an outcome (failed or
skipped) scores zero and is counted. It is also attributed to the first stage that lost it (linked, retrieved, shown,
cited, answered), so these counts add up to the number of questions.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import lru_cache
from typing import Literal, TypeVar, get_args

import numpy as np

from byokg.evaluation.significance import RESAMPLES, Codes, Values, cluster_codes, effective_n, intervals
from byokg.text.tabular import TableView, Tabular
from byokg.types import Support

Stage = Literal["failed", "not_linked", "not_retrieved", "not_shown", "not_cited", "not_answered", "answered"]
"""`failed`: there is no outcome. `not_linked`: none of the annotated topic entities was linked. `not_retrieved`: no
gold answer is in the evidence. `not_shown`: one is, but did not fit into the prompt that was answered.
`not_cited`: it stood there, but no answer rests on evidence that holds it. `not_answered`: one does, and no answer is
right. `answered`: an answer is right (Hit), be it one that the evidence does not hold."""

STAGES: tuple[Stage, ...] = get_args(Stage)

METRICS = ("hit", "hits@1", "precision", "recall", "f1", "em")
"""Names in reports, in the order of the fields of `Scores`."""

RETRIEVAL_METRICS = ("recall@1", "recall@5", "recall@10", "recall@20", "recall", "shown", "support", "tokens")
"""Names in reports; see `retrieval_metrics`."""

GROUNDING_METRICS = ("answered", "supported", "citation_precision", "citation_recall")
"""Names in reports; see `Grounding`."""

PROFILE = "strict"

_RANKS = (1, 5, 10, 20, None)
_DRAWN, _DIGITS = 100, 6
"""Points of a curve at most, and digits of each."""


UNSTATED = "(none)"
"""Where the breakdowns put questions that state no type, or no hop count."""

_NOT_A_WORD = re.compile(r"[^\w\s]|_")
_THOUSANDS = re.compile("(?<=\\d)[,'\u2019](?=\\d{3}(?!\\d))")
_ARTICLES = frozenset(("a", "an", "the"))
_DASH = re.compile("[\u2010-\u2015\u2212]")
_KEPT = frozenset("#%")
_DECIMAL = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?")
"""A number; digits behind a leading zero are a code."""
_SIX_DIGITS = 1e-6


def stage(hit: bool, failed: bool, linked: float | None, retrieved: Retrieved | None) -> Stage:
    """Attribute one question.

    Args:
        hit: any answer is right.
        failed: the question has no outcome.
        linked: share of its topic entities that were linked, in [0, 1]; None if they were granted or are not annotated,
            so that none can be lost.
        retrieved: stage reached by each gold answer; None if not recorded.
    """
    if failed:
        return "failed"
    if hit:
        return "answered"
    if retrieved is None or not retrieved.recall():
        return "not_linked" if linked == 0.0 else "not_retrieved"
    if retrieved.shown is not None and not any(retrieved.shown):
        return "not_shown"
    return "not_cited" if retrieved.cited is not None and not any(retrieved.cited) else "not_answered"


def count_stages(stages: Iterable[Stage]) -> dict[Stage, int]:
    """Count the questions of each stage, all stages in their order."""
    counts = dict.fromkeys(STAGES, 0)
    for each in stages:
        counts[each] += 1
    return counts


@dataclass(frozen=True)
class Retrieved:
    """Which gold answers the evidence of one question contains, as its prediction records it."""

    ranks: tuple[int | None, ...]
    """For each distinct gold answer, the rank from 1 of the first evidence item with it; None if none has it."""
    support: tuple[int, int] | None = None
    """Annotated triples in the evidence, and annotated triples in all; None if none are annotated."""
    tokens: int | None = None
    """Tokens of graph context in the last prompt; None if no prompt had any."""
    shown: tuple[bool, ...] | None = None
    """For each of `ranks`, whether the answer stood in the prompt that was answered; None if no model answered."""
    cited: tuple[bool, ...] | None = None
    """For each of `ranks`, whether the answers rest on evidence that holds it; None if that was not recorded."""

    def recall(self, k: int | None = None) -> float:
        """Return the share of gold answers that the first k items hold, in [0, 1]; of all items without k."""
        found = sum(rank is not None and (k is None or rank <= k) for rank in self.ranks)
        return found / len(self.ranks)


@dataclass(frozen=True)
class Grounding:
    """Support of the answers to one question, as its prediction records it."""

    support: tuple[Support, ...]
    """Of each answer, best first; empty if the question was not answered."""
    cited: int
    """Lines of evidence cited, for all answers together."""
    right: int
    """Those among them that hold the answer that they are cited for."""

    @property
    def precision(self) -> float | None:
        """Return the share of citations that hold their answer, in [0, 1]; None if nothing was cited."""
        return self.right / self.cited if self.cited else None

    @property
    def recall(self) -> float | None:
        """Return the share of answers cited rightly among those that the evidence holds; None if it holds none."""
        held = sum(each != "unsupported" for each in self.support)
        return self.support.count("supported") / held if held else None


@dataclass(frozen=True)
class Selective:
    """Accuracy of a system that answers only with a minimal support or score."""

    least: Support | float
    """Minimal support, or score, of the first answer; other questions count as not answered."""
    coverage: float
    """Share of questions answered, in [0, 1]."""
    accuracy: float
    """Share of these whose first answer is right, in [0, 1]; 0 if none is answered."""


@dataclass(frozen=True)
class Scores:
    """Scores of one question; every field is in [0, 1]."""

    hit: float
    """1 if any predicted answer is right."""
    hits_at_1: float
    """1 if the first predicted answer is right."""
    precision: float
    """Right answers over distinct predicted answers; 0 when nothing is predicted."""
    recall: float
    """Right answers over distinct gold answers."""
    f1: float
    """Harmonic mean of this question's precision and recall; 0 when nothing is right."""
    em: float
    """1 if predicted and gold answers are equal as sets."""


ZERO = Scores(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class QuestionScores:
    """Scores of one question, with the keys of the breakdowns."""

    scores: Scores
    failed: bool = False
    type: str = ""
    hops: int | None = None
    linked: float | None = None
    """Share of the annotated topic entities that were linked, in [0, 1]; None if none had to be found."""
    retrieved: Retrieved | None = None
    """Which gold answers the evidence contains; None if that was not recorded."""
    grounding: Grounding | None = None
    """Support of the answers; None if not recorded."""
    score: float | None = None
    """How sure the system is of its first answer; None if there is none, or that was not recorded."""
    cluster: str = ""
    """Shared by questions that belong together; empty if the question stands alone."""

    @property
    def stage(self) -> Stage:
        """Return the stage that lost the question, if any."""
        return stage(self.scores.hit > 0, self.failed, self.linked, self.retrieved)


@dataclass(frozen=True)
class Estimate:
    """A mean over questions and its 95 % interval; shares are in [0, 1].

    The interval is the percentile bootstrap's, over clusters, or Wilson's if all questions have 0 or all have 1: no
    resample of these would ever differ from the others.
    """

    value: float
    ci95: tuple[float, float]


Name = TypeVar("Name", str, int)


def estimates_of(
    names: Iterable[Name], means: Iterable[float], low: Iterable[float], high: Iterable[float]
) -> dict[Name, Estimate]:
    """Return estimates by name, given means and the ends of their intervals; those without a name are left out."""
    columns = zip(names, means, low, high, strict=False)
    return {name: Estimate(float(mean), (float(lower), float(upper))) for name, mean, lower, upper in columns}


@dataclass(frozen=True)
class PartEstimate(Estimate):
    """A mean over the `n` questions that have such a figure, which need not be all."""

    n: int


@dataclass(frozen=True)
class Summary:
    """Means over one group of questions; `failed` of its `n` questions have no outcome and score zero."""

    n: int
    failed: int
    estimates: Mapping[str, Estimate]
    linked: PartEstimate | None = None
    """Mean share of topic entities linked; None if no question had any to link. It has a denominator of its own."""
    retrieval: Mapping[str, PartEstimate] = field(default_factory=dict)
    """By names of `RETRIEVAL_METRICS`, those that any question has; empty if no evidence was recorded."""
    median_tokens: float | None = None
    """Of the questions that `retrieval` averages tokens over, as ByoKG-RAG reports them; None if there are none."""
    loss: Mapping[Stage, int] = field(default_factory=dict)
    """Questions by the stage that lost them, all stages in order; empty if no evidence was recorded."""
    grounding: Mapping[str, PartEstimate] = field(default_factory=dict)
    """By names of `GROUNDING_METRICS`, those that any question has: `answered` is the share of questions with answers,
    `supported` that of these whose first answer is supported; citations are averaged over questions that have any."""
    clusters: int | None = None
    """Clusters that the questions form; None if each stands alone."""
    effective_n: float | None = None
    """Effective number of independent questions, if a cluster is answered alike; None if each stands alone."""


@dataclass(frozen=True, repr=False)
class Metrics(Tabular):
    """Means over all questions, and over those of each type and hop count.

    The breakdowns are empty when no question states a type (a hop count); when only some do, the
    others stand under `UNSTATED`.

    >>> outcomes = [QuestionScores(score([answer], ["Seine"])) for answer in ("Seine", "Rhine")]
    >>> aggregate(outcomes).overall.estimates["hits@1"].value
    0.5
    """

    overall: Summary
    by_type: Mapping[str, Summary]
    by_hops: Mapping[str, Summary]

    def _table(self) -> TableView:
        groups = {"all": self.overall, **self.by_type, **{f"hops: {hops}": one for hops, one in self.by_hops.items()}}
        rows = [
            (name, one.n, one.failed, *(one.estimates[metric].value for metric in METRICS))
            for name, one in groups.items()
        ]
        overall = self.overall
        told = ", ".join(f"{name} {100 * overall.estimates[name].value:.1f} %" for name in ("hit", "hits@1", "f1"))
        summary = f"{overall.n:,} questions, {overall.failed:,} failed: {told}"
        return TableView(summary, ("questions", "n", "failed", *METRICS), rows)


@lru_cache(maxsize=1 << 17)
def normalise(text: str) -> str:
    """Return the form in which two spellings of one answer are equal.

    Unicode NFKC and case folding; punctuation and invisible format characters are removed, `_` becomes a space,
    the words a, an and the are removed, white space collapses. Letters, combining marks and digits of all scripts
    stay, and so do distinctive signs: symbols (`C++`), `#` and `%`, a minus sign before a number
    and marks inside one (`3.5` is not `35`), save separators of thousands (`1,000`). A text of removable characters
    alone (`!!!`, `The The`) only loses case and outer white space.

    Returns:
        The normalised text; normalising it again changes nothing. Empty only for blank text.
    """
    # NFKC would turn an acute accent typed for an apostrophe into a space and a combining mark.
    composed = unicodedata.normalize("NFKC", text.replace("\u00b4", "'"))
    folded = _DASH.sub("-", " ".join(unicodedata.normalize("NFKC", composed.casefold()).split()))
    kept = _THOUSANDS.sub("", unicodedata.normalize("NFKC", _NOT_A_WORD.sub(_mark, folded)))
    return " ".join(word for word in kept.split() if word not in _ARTICLES) or folded


def _mark(match: re.Match[str]) -> str:
    """Return the normal form of a character that is neither a letter, a digit nor white space."""
    mark, text = match[0], match.string
    category = unicodedata.category(mark)
    if category == "Pc":
        return " "
    if category[0] != "P":
        return "" if category in ("Sk", "Cf", "Cc") else mark
    start, end = match.span()
    if text[end : end + 1].isdigit():
        word_so_far = text[text.rfind(" ", 0, start) + 1 : start]
        if word_so_far[-1:].isdigit() or (mark == "-" and not any(map(str.isalnum, word_so_far))):
            return mark
    return mark if mark in _KEPT else ""


def match_gold(
    answers: Sequence[str],
    gold: Sequence[str],
    ids: Sequence[str | None] = (),
    gold_ids: Sequence[str] = (),
    keys: Sequence[str | None] = (),
) -> list[str]:
    """Return answers under the names of the gold answers that they are; the others as they are.

    Args:
        answers: predicted names, A of them.
        gold: gold names, G of them.
        ids: the node of each answer, None for values: A of them, or none if unknown.
        gold_ids: the node of each gold answer; not considered unless there are G of them.
        keys: of each answer that is a node without a name of its own, its other spelling, by the key or with the type:
            A of them, or none.
    """
    by_id = dict(zip(gold_ids, gold, strict=True)) if len(gold_ids) == len(gold) else {}
    known = {normalise(name): name for name in gold}
    numbers = {number: name for name in gold if (number := _number(name)) is not None}
    matched = []
    for at, answer in enumerate(answers):
        id, key = (some[at] if some else None for some in (ids, keys))
        if id in by_id:
            matched.append(by_id[id])
        elif normalise(answer) in known:
            matched.append(answer)
        elif key is not None and (spelled := {normalise(key), normalise(id or "")} & known.keys()):
            matched.append(known[min(spelled)])
        else:
            number = None if id is not None else _number(answer)
            same = (name for other, name in numbers.items() if number is not None and _same_number(number, other))
            matched.append(next(same, answer))
    return matched


def _number(text: str) -> float | None:
    return float(text) if _DECIMAL.fullmatch(text.strip()) else None


def _same_number(one: float, other: float) -> bool:
    """Return True for numbers that are equal to six significant digits; two whole ones must be equal."""
    whole = one.is_integer() and other.is_integer()
    return one == other if whole else math.isclose(one, other, rel_tol=_SIX_DIGITS)


def score(answers: Sequence[str], gold: Iterable[str]) -> Scores:
    """Score one question.

    Args:
        answers: predicted names, best first; names that normalise alike count once.
        gold: gold names, at least one.

    Returns:
        The six scores; all zero when nothing is predicted.

    Raises:
        ValueError: there is no gold answer, so nothing could be right.
    """
    right = {normalise(name) for name in gold}
    if not right:
        raise ValueError("a question without gold answers cannot be scored; data sets refuse such questions")
    if not answers:
        return ZERO
    predicted = {normalise(name) for name in answers}
    matched = len(predicted & right)
    return Scores(
        hit=float(matched > 0),
        hits_at_1=float(normalise(answers[0]) in right),
        precision=matched / len(predicted),
        recall=matched / len(right),
        f1=2 * matched / (len(predicted) + len(right)),
        em=float(predicted == right),
    )


def aggregate(outcomes: Sequence[QuestionScores], seed: int = 0, resamples: int = RESAMPLES) -> Metrics:
    """Average over all questions and over each type and hop count.

    Args:
        outcomes: one per question, failed ones included; at least one.
        seed: of the bootstrap; the same outcomes in the same order and the same seed give the same figures.
        resamples: bootstrap samples drawn for each group.

    Raises:
        ValueError: there are no outcomes.
    """
    if not outcomes:
        raise ValueError("there are no questions to average over")
    recorded = any(outcome.retrieved is not None for outcome in outcomes)
    rests = any(outcome.grounding is not None for outcome in outcomes)
    table = np.array(
        [(*astuple(one.scores), *_parts(one, recorded), *_grounding(one, rests)) for one in outcomes], np.float64
    )
    codes = cluster_codes([outcome.cluster for outcome in outcomes])
    types: dict[str, list[int]] = {}
    hops: dict[int | None, list[int]] = {}
    for row, outcome in enumerate(outcomes):
        types.setdefault(outcome.type or UNSTATED, []).append(row)
        hops.setdefault(outcome.hops, []).append(row)

    def summary(rows: Sequence[int]) -> Summary:
        return _summary([outcomes[row] for row in rows], table[rows], codes[rows], recorded, seed, resamples)

    return Metrics(
        overall=_summary(outcomes, table, codes, recorded, seed, resamples),
        by_type={} if types.keys() == {UNSTATED} else {key: summary(types[key]) for key in sorted(types)},
        by_hops={}
        if hops.keys() == {None}
        else {
            UNSTATED if key is None else str(key): summary(hops[key])
            for key in sorted(hops, key=lambda key: (key is None, key or 0))
        },
    )


def _parts(outcome: QuestionScores, recorded: bool) -> tuple[float | None, ...]:
    """Return the figures that not every question has: linking, and the metrics of retrieval."""
    found = outcome.retrieved
    if not recorded:
        return (outcome.linked, *(None for _ in RETRIEVAL_METRICS))
    if found is None:
        return (outcome.linked, *(0.0 for _ in _RANKS), None, None, None)
    support = None if found.support is None else found.support[0] / found.support[1]
    shown = None if found.shown is None else sum(found.shown) / len(found.shown)
    return (outcome.linked, *(found.recall(k) for k in _RANKS), shown, support, found.tokens)


def selective(outcomes: Sequence[QuestionScores]) -> tuple[Selective, ...]:
    """Return the selective-accuracy curve: coverage and accuracy, the most cautious first.

    Empty if support was not recorded, or no answer has any.
    """
    firsts = [one.grounding.support[0] if one.grounding and one.grounding.support else None for one in outcomes]
    if not any(first in ("supported", "found") for first in firsts):
        return ()
    points = []
    levels: tuple[Support, ...] = get_args(Support)
    for place, level in enumerate(levels):
        answered = [one for one, first in zip(outcomes, firsts, strict=True) if first in levels[: place + 1]]
        right = sum(one.scores.hits_at_1 for one in answered)
        points.append(Selective(level, len(answered) / len(outcomes), right / len(answered) if answered else 0.0))
    return tuple(points)


def selective_by_score(outcomes: Sequence[QuestionScores]) -> tuple[Selective, ...]:
    """Return the selective-accuracy curve by the score of first answers, the most cautious first.

    Unanswered questions are covered by no score, so the curve ends at the share of answered ones. Empty if all answers
    have one score, or none.
    """
    answered = [(one.score, one.scores.hits_at_1) for one in outcomes if one.score is not None]
    if len({score for score, _ in answered}) < 2:
        return ()
    score, right = np.array(sorted(answered, key=lambda pair: (-pair[0], pair[1]))).T
    ends = np.flatnonzero(np.append(score[1:] != score[:-1], True))  # equal scores are answered together
    drawn = ends[np.unique(np.linspace(0, len(ends) - 1, min(_DRAWN, len(ends))).round().astype(np.intp))]
    mean = right.cumsum() / np.arange(1, len(right) + 1)
    return tuple(
        Selective(*(round(float(part), _DIGITS) for part in (score[end], (end + 1) / len(outcomes), mean[end])))
        for end in drawn.tolist()
    )


def _grounding(outcome: QuestionScores, recorded: bool) -> tuple[float | None, ...]:
    """Return the figures of `GROUNDING_METRICS`."""
    found = outcome.grounding
    if found is None:
        return (0.0 if recorded else None, None, None, None)
    supported = float(found.support[0] == "supported") if found.support else None
    return (float(bool(found.support)), supported, found.precision, found.recall)


def _summary(
    outcomes: Sequence[QuestionScores], table: Values, codes: Codes, recorded: bool, seed: int, resamples: int
) -> Summary:
    stated = ~np.isnan(table)
    values = np.where(stated, table, 0.0)
    counts = stated.sum(axis=0)
    means = values.sum(axis=0) / np.maximum(counts, 1)
    low, high = intervals(values, seed, resamples, stated.astype(np.float64), codes)
    sizes = np.unique(codes, return_counts=True)[1]

    def part(column: int) -> PartEstimate | None:
        if not counts[column]:
            return None
        return PartEstimate(float(means[column]), (float(low[column]), float(high[column])), int(counts[column]))

    first = len(METRICS)
    columns = {name: column for column, name in enumerate((*RETRIEVAL_METRICS, *GROUNDING_METRICS), start=first + 1)}
    parts = {name: one for name, column in columns.items() if (one := part(column)) is not None}
    tokens = table[stated[:, columns["tokens"]], columns["tokens"]]
    return Summary(
        n=len(outcomes),
        failed=sum(outcome.failed for outcome in outcomes),
        estimates=estimates_of(METRICS, means, low, high),
        linked=part(first),
        retrieval={name: parts[name] for name in RETRIEVAL_METRICS if name in parts},
        median_tokens=float(np.median(tokens)) if len(tokens) else None,
        loss=count_stages(outcome.stage for outcome in outcomes) if recorded else {},
        grounding={name: parts[name] for name in GROUNDING_METRICS if name in parts},
        clusters=len(sizes) if len(sizes) < len(outcomes) else None,
        effective_n=effective_n(codes) if len(sizes) < len(outcomes) else None,
    )
