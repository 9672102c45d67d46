"""Scores the same predictions under several metric profiles, all questions resampled alike.

One more profile has a language model judge the answers: right, right in part, wrong.
Source: ByoKG-RAG (arXiv:2507.04127v1), "Metrics" (Text2Cypher).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from byokg.errors import LlmUnusable
from byokg.evaluation.cases import Case
from byokg.evaluation.metrics import RESAMPLES, Estimate, Values, bootstrap
from byokg.evaluation.profiles import Metric, Profile
from byokg.llm.messages import prompt_messages
from byokg.llm.model import LanguageModel
from byokg.llm.parsing import read_score
from byokg.prompts.template import PromptLibrary

JUDGE = "judge"
"""Name of its profile, of its prompt, and of the stage that it is counted under."""


@dataclass(frozen=True)
class GroupFigures:
    """Means over the `n` questions of one group, by metric."""

    n: int
    figures: Mapping[str, float]


@dataclass(frozen=True)
class ProfileScores:
    """What predictions score under one profile.

    `n` questions are in every mean. Besides them, `skipped` have no prediction and the profile leaves such out, and
    `unscorable` lack what it compares. `failed` have no prediction, whether they are counted or skipped.
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
    if len(counted):
        low[counted], high[counted] = bootstrap(values[:, counted], seed, resamples, weights[:, counted])
    scored = []
    column = 0
    for profile, table in zip(profiles, tables, strict=True):
        ends = slice(column, column + len(profile.metrics))
        scored.append(_scores(cases, profile, *table, low[ends], high[ends]))
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
        if case.status == "ok":
            if profile.scorable(case):
                values[row] = profile.score(case)
                weights[row] = 1.0
        elif profile.nulls == "zero" and profile.scorable(case):
            weights[row] = 1.0
        if pooled and weights[row, 0]:
            weights[row, pooled] = profile.weigh(case)
    return values, weights


def _scores(
    cases: Sequence[Case], profile: Profile, values: Values, weights: Values, low: Values, high: Values
) -> ProfileScores:
    counted = weights[:, 0] > 0
    without = np.array([case.status != "ok" for case in cases])
    n = int(counted.sum())
    skipped = int((without & ~counted).sum()) if profile.nulls == "skipped" else 0
    means = weighted_means(values, weights)
    estimates = {
        metric.name: Estimate(float(mean), (float(lower), float(upper)))
        for metric, mean, lower, upper in zip(profile.metrics, means, low, high, strict=True)
    }
    return ProfileScores(
        profile=profile,
        n=n,
        skipped=skipped,
        unscorable=len(cases) - n - skipped,
        failed=int(without.sum()),
        estimates=estimates if n else {},
        groups=_groups(cases, profile, values, weights),
        values=values,
        weights=weights,
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
    """What the judge said of each question."""

    model: str
    scores: dict[str, float]
    """1, 0.5 or 0, by question id; of those that have a prediction. Nothing predicted is 0, and is not asked about."""
    unreadable: tuple[str, ...]
    """Ids of questions to which no score was given; they count as 0."""


def judge_cases(
    cases: Sequence[Case],
    model: LanguageModel,
    prompts: PromptLibrary | None = None,
    workers: int = 1,
    on_progress: Callable[[int], None] | None = None,
) -> Verdicts:
    """Ask about every case that has a prediction.

    The expected answer is the result of the gold query if the data set has one, else the gold answers.

    Args:
        cases: questions with gold answers and predictions.
        model: the judge; its replies are recorded as its store says.
        prompts: the prompts; None takes those that ship with the package.
        workers: cases judged at the same time.
        on_progress: told how many are judged.

    Raises:
        LlmError: the judge cannot be asked.
    """
    prompt = (prompts or PromptLibrary())[JUDGE]

    def judge(case: Case) -> float | None:
        filled = prompt.fill(question=case.question, expected=_expected(case), given=case.text)
        try:
            return read_score(model.reply(prompt_messages(filled), stage=JUDGE, question_id=case.id).text)
        except LlmUnusable:
            return None

    predicted = [case for case in cases if case.status == "ok"]
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
