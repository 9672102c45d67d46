"""Scores of predictions under several metric profiles, and paired comparison of runs over the same questions.

All profiles score the same predictions with the same resampled questions. One more profile uses a language model as
judge: right, partly right, wrong.

A comparison of two runs reports differences, intervals and the questions won and lost.

If questions are repeated, since a language model may answer differently each time, every prediction counts in every
mean. Intervals and tests draw a question with all its repeats, so they include the variance between questions and
within them. Drawing repeats within a drawn question as well would count the latter twice (Davison and Hinkley,
"Bootstrap Methods and their Application" (1997), "Hierarchical data").

Source: ByoKG-RAG (arXiv:2507.04127v1), "Metrics" (Text2Cypher), for the judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import comb, sqrt

import numpy as np

from byokg.errors import LlmUnusable, RunError
from byokg.evaluation.cases import Case
from byokg.evaluation.comparability import comparison_key, find_differences
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.metrics import Estimate, Stage, count_stages, estimates_of, normalise
from byokg.evaluation.profiles import Metric, Profile
from byokg.evaluation.run_folder import Run, changed_settings
from byokg.evaluation.runner import outcome
from byokg.evaluation.significance import (
    PAIRED_RESAMPLES,
    RESAMPLES,
    Codes,
    Difference,
    Values,
    cluster_codes,
    cluster_sums,
    effective_n,
    holm,
    intervals,
    paired_difference,
)
from byokg.llm.messages import prompt_messages
from byokg.llm.model import LanguageModel
from byokg.llm.parsing import read_score
from byokg.llm.reply_blocks import reply_schema
from byokg.prompts import PromptLibrary

JUDGE = "judge"

_VERDICT = reply_schema(["reason", "score"])
"""Name of its profile, of its prompt, and of the stage that it is counted under."""


@dataclass(frozen=True)
class GroupFigures:
    """Means over the `n` questions of one group, by metric."""

    n: int
    figures: Mapping[str, float]


@dataclass(frozen=True)
class ProfileScores:
    """Scores of predictions under one profile.

    `n` questions are in every mean. `skipped` questions have no prediction and the profile leaves such out;
    `unscorable` ones lack the compared field. `failed` ones have no prediction, counted or skipped.
    """

    profile: Profile
    n: int
    skipped: int
    unscorable: int
    failed: int
    estimates: Mapping[str, Estimate]
    """By metric; empty if no question is counted."""
    groups: Mapping[str, GroupFigures]
    """By group of the profile, in the order of their names; empty if there is one group only."""
    values: Values
    """(N, M) of N questions and M metrics, 0 if a question is not counted."""
    weights: Values
    """(N, M), how much each value counts in its mean; 0 if a question is not counted."""
    clusters: int
    """Clusters that the counted questions form; `n` if each stands alone."""
    effective_n: float
    """Effective number of independent questions, if a cluster is answered alike."""


def score_cases(
    cases: Sequence[Case], profiles: Sequence[Profile], seed: int = 0, resamples: int = RESAMPLES
) -> list[ProfileScores]:
    """Score every case under every profile.

    Args:
        cases: questions with gold answers and predictions, at least one, with distinct ids.
        profiles: in the order wanted.
        seed: of the bootstrap, which draws the same questions for all profiles.
        resamples: bootstrap samples drawn.

    Raises:
        ValueError: there are no cases.
    """
    if not cases:
        raise ValueError("there are no questions to score")
    tables = [_table(cases, profile) for profile in profiles]
    values = np.hstack([table[0] for table in tables])
    weights = np.hstack([table[1] for table in tables])
    low, high = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    counted = np.flatnonzero(weights.sum(axis=0))
    codes = cluster_codes([case.cluster for case in cases])
    if len(counted):
        low[counted], high[counted] = intervals(values[:, counted], seed, resamples, weights[:, counted], codes)
    scored = []
    column = 0
    for profile, table in zip(profiles, tables, strict=True):
        ends = slice(column, column + len(profile.metrics))
        scored.append(_scores(cases, profile, *table, codes, low[ends], high[ends]))
        column = ends.stop
    return scored


def weighted_means(values: Values, weights: Values) -> Values:
    """Return the mean of each column, (M,); 0 for a column without weight."""
    total = weights.sum(axis=0)
    means: Values = (values * weights).sum(axis=0) / np.where(total > 0, total, 1.0)
    return means


def _table(cases: Sequence[Case], profile: Profile) -> tuple[Values, Values]:
    """Return values and weights, (N, M) each."""
    values = np.zeros((len(cases), len(profile.metrics)))
    weights = np.zeros_like(values)
    pooled = [column for column, metric in enumerate(profile.metrics) if metric.pooled]
    for row, case in enumerate(cases):
        if case.has_outcome:
            if profile.scorable(case):
                values[row] = profile.score(case)
                weights[row] = 1.0
        elif profile.nulls == "zero" and profile.scorable(case):
            weights[row] = 1.0
        if pooled and weights[row, 0]:
            weights[row, pooled] = profile.weigh(case)
    return values, weights


def _scores(
    cases: Sequence[Case], profile: Profile, values: Values, weights: Values, codes: Codes, low: Values, high: Values
) -> ProfileScores:
    counted = weights[:, 0] > 0
    without = np.array([not case.has_outcome for case in cases])
    n = int(counted.sum())
    skipped = int((without & ~counted).sum()) if profile.nulls == "skipped" else 0
    means = weighted_means(values, weights)
    return ProfileScores(
        profile=profile,
        n=n,
        skipped=skipped,
        unscorable=len(cases) - n - skipped,
        failed=int(without.sum()),
        estimates=estimates_of((each.name for each in profile.metrics), means, low, high) if n else {},
        groups=_groups(cases, profile, values, weights),
        values=values,
        weights=weights,
        clusters=len(np.unique(codes[counted])),
        effective_n=effective_n(codes[counted]) if n else 0.0,
    )


def group_rows(cases: Sequence[Case], profile: Profile) -> dict[str, list[int]]:
    """Return the positions of the cases in each group of a profile, in the order of the groups' names."""
    rows: dict[str, list[int]] = {}
    for row, case in enumerate(cases):
        for group in profile.groups(case):
            rows.setdefault(group, []).append(row)
    return dict(sorted(rows.items()))


def _groups(cases: Sequence[Case], profile: Profile, values: Values, weights: Values) -> dict[str, GroupFigures]:
    counted = np.flatnonzero(weights[:, 0]).tolist()
    members = group_rows([cases[row] for row in counted], profile)
    names = [metric.name for metric in profile.metrics]
    figures = {}
    for group, places in members.items():
        rows = [counted[place] for place in places]
        means = weighted_means(values[rows], weights[rows]).tolist()
        figures[group] = GroupFigures(len(rows), dict(zip(names, means, strict=True)))
    return figures if len(figures) > 1 else {}


@dataclass(frozen=True)
class Verdicts:
    """Verdicts of the judge."""

    model: str
    scores: dict[str, float]
    """1, 0.5 or 0, by question id, for questions with a prediction. An empty prediction is 0 without a call."""
    unreadable: tuple[str, ...]
    """Ids of questions to which no score was given; they count as 0."""


def judge_cases(
    cases: Sequence[Case],
    model: LanguageModel,
    prompts: PromptLibrary | None = None,
    workers: int = 1,
    on_progress: Callable[[int], None] | None = None,
) -> Verdicts:
    """Judge every case that has a prediction.

    The expected answer is the result of the gold query if the data set has one, else the gold answers.

    Args:
        cases: questions with gold answers and predictions.
        model: the judge; its store records the replies.
        prompts: the prompts; None takes those of the package.
        workers: number of cases judged concurrently.
        on_progress: called with the number of judged cases.

    Raises:
        LlmError: a call of the judge failed for good.
    """
    prompt = (prompts or PromptLibrary())[JUDGE]

    def judge(case: Case) -> float | None:
        filled = prompt.fill(question=case.question, expected=_expected(case), given=case.text)
        try:
            reply = model.reply(prompt_messages(filled), stage=JUDGE, question_id=case.id, schema=_VERDICT)
            return read_score(reply.text)
        except LlmUnusable:
            return None

    predicted = [case for case in cases if case.has_outcome]
    asked = [case for case in predicted if case.text.strip()]
    scores = {case.id: 0.0 for case in predicted}
    unreadable = []
    with ThreadPoolExecutor(workers, thread_name_prefix="judge") as pool:
        for done, (case, verdict) in enumerate(zip(asked, pool.map(judge, asked), strict=True), start=1):
            if verdict is None:
                unreadable.append(case.id)
            else:
                scores[case.id] = verdict
            if on_progress is not None:
                on_progress(done)
    return Verdicts(model.name, scores, tuple(unreadable))


def judge_profile(verdicts: Verdicts) -> Profile:
    """Return the verdicts as a metric profile, to stand beside others."""
    return Profile(
        name=JUDGE,
        source=f'ByoKG-RAG (arXiv:2507.04127v1), "Metrics" (Text2Cypher), judged by {verdicts.model}',
        metrics=(Metric("judged", "1, 0.5 or 0 as a language model judges the answer"),),
        score=lambda case: (verdicts.scores[case.id],),
    )


def _expected(case: Case) -> str:
    if case.rows:
        return "\n".join(" | ".join("null" if value is None else str(value) for value in row) for row in case.rows)
    return "\n".join(case.gold)


_SETTINGS_LEFT_OUT = ("hash", "schema", "questions.", "code.", "graph.checksum", "entities", "hops")
"""Keys of run records that carry no meaning in a comparison, and those that the comparison key states in words."""


@dataclass(frozen=True)
class TypeDifference:
    """Two runs on the `n` questions of one group, in one metric."""

    n: int
    first: float
    second: float
    difference: Difference
    holm: float
    """Its p value corrected for the number of groups."""


@dataclass(frozen=True)
class PerQuestion:
    """A run's values with one row a question."""

    cases: Sequence[Case]
    """The first of each question."""
    values: Values
    """(Q, M) of Q questions and M metrics; means over repeats."""
    weights: Values
    """(Q, M)"""


def per_question(cases: Sequence[Case], values: Values, weights: Values) -> PerQuestion:
    """Average values over the repeats of each question, in the order of the questions.

    Args:
        cases: N predictions.
        values: (N, M)
        weights: (N, M), how much each counts.
    """
    places: dict[str, int] = {}
    codes = np.array([places.setdefault(case.first_id, len(places)) for case in cases], np.intp)
    if len(places) == len(cases):
        return PerQuestion(cases, values, weights)
    total = cluster_sums(weights, codes)
    means = cluster_sums(values * weights, codes) / np.where(total > 0, total, 1.0)
    times = np.bincount(codes)[:, None]
    firsts = np.unique(codes, return_index=True)[1]
    return PerQuestion([cases[row] for row in firsts], means, total / times)


@dataclass(frozen=True)
class Comparison:
    """Differences of the second run from the first, on the questions of both.

    If a run repeats questions, a question's value is the mean over its repeats.
    """

    first: Run
    second: Run
    scores: tuple[ProfileScores, ProfileScores]
    """On the same questions, all repeats of them: those that the profile counts in both runs."""
    asked: tuple[PerQuestion, PerQuestion]
    """Values by question."""
    left_out: int
    """Questions of both runs that the profile excludes in one of them: skipped, or without the compared field."""
    metric: str
    """The one that the breakdown and the lists are about."""
    differences: Mapping[str, Difference]
    """By metric of the profile."""
    settings: Mapping[str, tuple[str, str]]
    """Settings that differ, by dotted name."""
    apart: tuple[str, ...] = ()
    """Other reasons against a comparison of figures: graph, questions, granted annotations, code; empty if none."""
    holm: Mapping[str, float] = field(default_factory=dict)
    """By metric, the p value corrected for the number of runs compared with the first."""
    seed: int = 0
    """Of the bootstrap; `resamples` are drawn for each group."""
    resamples: int = PAIRED_RESAMPLES

    @property
    def n(self) -> int:
        """Return the number of questions compared."""
        return len(self.asked[0].cases)

    @property
    def won(self) -> tuple[str, ...]:
        """Return the ids of the questions on which the second run has the higher value."""
        return self._ahead(1)

    @property
    def lost(self) -> tuple[str, ...]:
        """Return the ids of the questions on which the first run has the higher value."""
        return self._ahead(0)

    def _ahead(self, which: int) -> tuple[str, ...]:
        column = list(self.differences).index(self.metric)
        ahead = self.asked[which].values[:, column] > self.asked[1 - which].values[:, column]
        return tuple(case.id for case, better in zip(self.asked[0].cases, ahead, strict=True) if better)

    @cached_property
    def by_type(self) -> Mapping[str, TypeDifference]:
        """The differences in one metric by group of the profile."""
        first, second = (scores.groups for scores in self.scores)
        rows = group_rows(self.asked[0].cases, self.scores[0].profile)
        column = list(self.differences).index(self.metric)
        apart = [_differences(self.asked, rows[group], self.seed, self.resamples)[column] for group in first]
        found = {}
        for group, one, corrected in zip(first, apart, holm([each.p for each in apart]), strict=True):
            before, after = (groups[group].figures[self.metric] for groups in (first, second))
            found[group] = TypeDifference(len(rows[group]), before, after, one, corrected)
        return found

    @property
    def repeats(self) -> tuple[int, int]:
        """Return how often each run asks a question."""
        first, second = (len(scores.values) // self.n for scores in self.scores)
        return first, second

    @property
    def losses(self) -> tuple[Mapping[Stage, int], ...]:
        """Return by stage how many of the questions of both runs each of them lost; empty if none recorded evidence."""
        runs = (self.first, self.second)
        common = set.intersection(*({example.first_id for example in run.questions} for run in runs))
        outcomes = [
            [outcome(one, run.predictions.get(one.id)) for one in run.questions if one.first_id in common]
            for run in runs
        ]
        if not all(any(each.retrieved is not None for each in its) for its in outcomes):
            return ()
        return tuple(count_stages(each.stage for each in its) for its in outcomes)


def compare_runs(
    runs: Sequence[Run],
    profile: Profile,
    metric: str = "",
    force: bool = False,
    seed: int = 0,
    resamples: int = PAIRED_RESAMPLES,
) -> list[Comparison]:
    """Compare each run with the first.

    Args:
        runs: at least two.
        profile: scoring of all runs.
        metric: of the breakdown and the lists; empty takes the profile's first.
        force: compare runs in spite of the reasons that `find_differences` returns, on their shared questions.
        seed: of the bootstrap.
        resamples: number for each comparison and group.

    Raises:
        RunError: there are fewer than two runs, the profile has no such metric, the runs have different questions and
            `force` is not set, or they share no question that the profile can score.
    """
    if len(runs) < 2:
        raise RunError("there is nothing to compare one run with; give two run folders or more")
    names = [each.name for each in profile.metrics]
    metric = metric or names[0]
    if metric not in names:
        raise RunError(f"profile {profile.name} has no metric {metric!r}; it has {', '.join(names)}")
    first, *others = runs
    for other in others:
        reasons = find_differences(first, other)
        if reasons and not force:
            raise RunError(
                f"{first.name!r} and {other.name!r} cannot be compared: {'; '.join(reasons)}; "
                "--force compares the questions that they share"
            )
    compared = [compare_pair(first, other, profile, metric, seed, resamples) for other in others]
    corrected = {name: holm([one.differences[name].p for one in compared]) for name in names}
    return [replace(one, holm={name: corrected[name][place] for name in names}) for place, one in enumerate(compared)]


def compare_pair(
    first: Run, second: Run, profile: Profile, metric: str, seed: int = 0, resamples: int = PAIRED_RESAMPLES
) -> Comparison:
    """Compare two runs on the questions of both. Arguments as for `compare_runs`.

    Raises:
        RunError: they share no question that the profile can score.
    """
    mine, theirs = first.cases, second.cases
    common = {case.first_id for case in mine} & {case.first_id for case in theirs}
    if not common:
        raise RunError(f"{first.name!r} and {second.name!r} share no question; compare runs over the same data set")
    before, after, asked = _scored(mine, theirs, common, profile, seed)
    counted = (asked[0].weights[:, 0] > 0) & (asked[1].weights[:, 0] > 0)
    if not counted.any():
        raise RunError(f"profile {profile.name} can score none of the questions in both runs; use --profile strict")
    shared = len(common)
    if not counted.all():
        common = {case.first_id for case, counts in zip(asked[0].cases, counted, strict=True) if counts}
        before, after, asked = _scored(mine, theirs, common, profile, seed)
    differences = _differences(asked, range(len(asked[0].cases)), seed, resamples)
    return Comparison(
        first=first,
        second=second,
        scores=(before, after),
        asked=asked,
        left_out=shared - len(asked[0].cases),
        metric=metric,
        differences=dict(zip((each.name for each in profile.metrics), differences, strict=True)),
        settings={
            key: values
            for key, values in changed_settings(first.config, second.config).items()
            if not key.startswith(_SETTINGS_LEFT_OUT)
        },
        apart=comparison_key(first, profile.name).differences(comparison_key(second, profile.name)),
        seed=seed,
        resamples=resamples,
    )


def _differences(
    asked: tuple[PerQuestion, PerQuestion], rows: Sequence[int], seed: int, resamples: int
) -> list[Difference]:
    """Return the difference of each metric on some of the questions."""
    one, other = asked
    codes = cluster_codes([case.cluster for case in one.cases])
    counts = one.weights[rows], other.weights[rows]
    return paired_difference(one.values[rows], other.values[rows], counts, seed, resamples, codes[rows])


def _scored(
    mine: Sequence[Case], theirs: Sequence[Case], common: Collection[str], profile: Profile, seed: int
) -> tuple[ProfileScores, ProfileScores, tuple[PerQuestion, PerQuestion]]:
    """Score the questions of both runs; values by question follow the order of the first run."""
    order = {id: place for place, id in enumerate(dict.fromkeys(case.first_id for case in mine))}
    parts = [[case for case in cases if case.first_id in common] for cases in (mine, theirs)]
    for part in parts:
        part.sort(key=lambda case: order[case.first_id])
    before, after = (score_cases(part, [profile], seed)[0] for part in parts)
    asked = [per_question(part, one.values, one.weights) for part, one in zip(parts, (before, after), strict=True)]
    return before, after, (asked[0], asked[1])


_SHOWN = (1, 2, 3, 5, 10, 20, 50, 100)
"""k of pass@k, besides the number of repeats itself."""

_COUNTED = ("hits@1", "hit")
"""Metrics of a profile of which pass@k is counted, the first that it has; else that is the profile's first."""


def repeat(examples: Sequence[Example], times: int) -> list[Example]:
    """Return each question so many times, one after the other, with ids `ID`, `ID#2`, `ID#3`, …"""
    return [
        replace(example, id=f"{example.id}#{number + 1}", repeat=number) if number else example
        for example in examples
        for number in range(times)
    ]


@dataclass(frozen=True)
class RepeatFigures:
    """What asking each question several times shows under one metric profile."""

    questions: int
    repeats: int
    metric: str
    """Of which all but `majority` is: a reply is right if it is 1."""
    pass_at: Mapping[int, Estimate]
    """Chance that of k of the replies to a question at least one is right, mean over questions."""
    majority: Mapping[str, Estimate]
    """By metric, the score of the answers of most replies."""
    between: float
    """Standard deviation of the questions' own means, less what chance adds to it."""
    within: float
    """Standard deviation of the replies to one question."""
    one_round: float
    """Standard deviation of the figure of a run that asks these questions once."""
    always: float
    """Share of questions to which every reply is right; likewise `never`. To the others some are."""
    never: float


def repeat_figures(
    cases: Sequence[Case], profile: Profile, seed: int = 0, resamples: int = RESAMPLES
) -> RepeatFigures | None:
    """Return the figures of a run that asks each question several times; None of one that asks once.

    A reply without a prediction is not right.

    Source: pass@k without bias, Chen et al., "Evaluating Large Language Models Trained on Code" (arXiv:2107.03374v2),
        "Functional Correctness"; the majority, Wang et al., "Self-Consistency Improves Chain of Thought Reasoning"
        (arXiv:2203.11171v4); variances, the analysis of variance of one factor.
    """
    asked: dict[str, list[int]] = {}
    for row, case in enumerate(cases):
        asked.setdefault(case.first_id or case.id, []).append(row)
    times = min(map(len, asked.values()), default=1)
    if times < 2:
        return None
    names = [metric.name for metric in profile.metrics]
    metric = next((name for name in _COUNTED if name in names), names[0])
    [scored] = score_cases(cases, [profile], seed, 1)
    column = scored.values[:, names.index(metric)]
    replies = np.array([column[rows[:times]] for rows in asked.values()])
    right = (replies >= 1).sum(axis=1)
    ks = sorted({k for k in (*_SHOWN, times) if k <= times})
    passed = np.array([[pass_at(k, times, int(count)) for k in ks] for count in right])
    codes = cluster_codes([cases[rows[0]].cluster for rows in asked.values()])
    low, high = intervals(passed, seed, resamples, np.ones_like(passed), codes)
    [voted] = score_cases([majority([cases[row] for row in rows]) for rows in asked.values()], [profile], seed)
    within = float(replies.var(axis=1, ddof=1).mean())
    between = float(replies.mean(axis=1).var(ddof=1)) - within / times if len(replies) > 1 else 0.0
    return RepeatFigures(
        questions=len(asked),
        repeats=times,
        metric=metric,
        pass_at=estimates_of(ks, (column.mean() for column in passed.T), low, high),
        majority=voted.estimates,
        between=sqrt(max(0.0, between)),
        within=sqrt(within),
        one_round=sqrt(within / len(replies)),
        always=float((right == times).mean()),
        never=float((right == 0).mean()),
    )


def pass_at(k: int, n: int, right: int) -> float:
    """Return the chance that k of n replies, drawn without replacement, hold one of those that are right."""
    return 1.0 - comb(n - right, k) / comb(n, k)


def majority(cases: Sequence[Case]) -> Case:
    """Return the case of the answers on which most replies to one question agree.

    First stands the answer that most replies give first, of several the one that was given first; behind it what at
    least half of the replies with answers hold. A reply without an answer has no vote.
    """
    votes = [case for case in cases if case.has_outcome and case.answers]
    if not votes:
        return next((case for case in cases if case.has_outcome), cases[0])
    spelt: dict[str, tuple[str, str | None]] = {}
    held: Counter[str] = Counter()
    for case in votes:
        ids = case.answer_ids or (None,) * len(case.answers)
        for answer, id in zip(case.answers, ids, strict=True):
            spelt.setdefault(normalise(answer), (answer, id))
        held.update(dict.fromkeys(map(normalise, case.answers)).keys())
    [(first, _)] = Counter(normalise(case.answers[0]) for case in votes).most_common(1)
    others = [answer for answer, count in held.most_common() if 2 * count >= len(votes) and answer != first]
    chosen = [spelt[answer] for answer in (first, *others)]
    ids = tuple(id for _, id in chosen) if any(case.answer_ids for case in votes) else ()
    return replace(votes[0], id=cases[0].id, answers=tuple(name for name, _ in chosen), answer_ids=ids, reply=None)
