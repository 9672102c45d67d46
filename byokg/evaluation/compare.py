"""Scores predictions under several metric profiles, and puts runs over the same questions side by side.

All profiles score the same predictions with the same resampled questions. One more has a language model judge the
answers: right, right in part, wrong.

Of two runs: what differs, by how much, and on which questions. Of a published figure: what keeps it from being compared
with a run of ours.

Source: ByoKG-RAG (arXiv:2507.04127v1), "Metrics" (Text2Cypher), for the judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

import numpy as np
import yaml

from byokg.errors import ConfigError, LlmUnusable, RunError
from byokg.evaluation.cases import Case
from byokg.evaluation.metrics import (
    PAIRED_RESAMPLES,
    RESAMPLES,
    Difference,
    Estimate,
    Values,
    bootstrap,
    paired_difference,
)
from byokg.evaluation.profiles import Metric, Profile
from byokg.evaluation.run_folder import METRICS_FILE, Run, changed_settings
from byokg.llm.messages import prompt_messages
from byokg.llm.model import LanguageModel
from byokg.llm.parsing import read_score
from byokg.prompts import PromptLibrary

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
    cases: Sequence[Case], profile: Profile, values: Values, weights: Values, low: Values, high: Values
) -> ProfileScores:
    counted = weights[:, 0] > 0
    without = np.array([not case.has_outcome for case in cases])
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


_SETTINGS_LEFT_OUT = ("hash", "schema", "questions.", "code.commit")


@dataclass(frozen=True)
class Anchor:
    """One published figure."""

    dataset: str
    system: str
    model: str
    """The language model it asks, where that is stated."""
    metric: str
    value: float
    """In [0, 1]."""
    profile: str | None
    """Which of our profiles makes the same figure; None if the publication does not say how it scores."""
    n: int
    """Questions that it was measured on."""
    graph: str
    entities: Literal["gold", "linked"] | None
    """Whether topic entities were given; None if that is not stated."""
    trained: bool
    """Whether the system was trained on questions of this kind."""
    source: str
    checked: bool
    """Whether the figure was read in its source."""
    unlike: str = ""
    """Why nobody can ask the same questions."""


def read_anchors(dataset: str) -> list[Anchor]:
    """Return what was published about a data set, in the order of the file.

    Args:
        dataset: the beginning of its name: `webqsp`, `metaqa`, `metaqa 2-hop`.

    Raises:
        ConfigError: nothing is known about such a data set.
    """
    groups = yaml.safe_load((resources.files("byokg.evaluation") / "anchors.yaml").read_text("utf-8"))
    known = [anchor for group in groups for anchor in _anchors(group)]
    wanted = _words(dataset)
    found = [anchor for anchor in known if _words(anchor.dataset)[: len(wanted)] == wanted and wanted]
    if not found:
        names = ", ".join(dict.fromkeys(anchor.dataset for anchor in known))
        raise ConfigError(f"--anchors {dataset}: nothing published is recorded about it; there is {names}")
    return found


def obstacles(anchor: Anchor, dataset: str, n: int, entities: str, published_graph: bool) -> tuple[str, ...]:
    """Return why a run cannot be compared with a published figure; empty if it can.

    Args:
        anchor: the figure.
        dataset: name of the run's data set.
        n: questions of the run.
        entities: whether the run's topic entities were `gold` or `linked`.
        published_graph: whether the user says that the run's graph is the published one; no file tells.
    """
    found = []
    words = _words(anchor.dataset)
    if _words(dataset)[: len(words)] != words:
        found.append(f"these runs asked {dataset!r}")
    elif n != anchor.n:
        found.append(f"{anchor.n:,} questions there, {n:,} here")
    if anchor.unlike:
        found.append(anchor.unlike)
    if anchor.profile is None:
        found.append("how it was scored is not known")
    if anchor.entities is not None and anchor.entities != entities:
        found.append(f"topic entities {anchor.entities} there, {entities} here")
    if not published_graph:
        found.append(f"the graph there is {anchor.graph}; nothing says that ours is the same")
    if not anchor.checked:
        found.append("the figure was not checked in its source")
    return tuple(found)


def _anchors(group: dict[str, Any]) -> list[Anchor]:
    shared = {key: value for key, value in group.items() if key != "figures"}
    return [
        Anchor(**shared, system=each["system"], model=each.get("model", ""), value=round(each["value"] / 100, 6))
        for each in group["figures"]
    ]


def _words(name: str) -> list[str]:
    return re.findall(r"[\w-]+", name.casefold())


@dataclass(frozen=True)
class TypeDifference:
    """Two runs on the `n` questions of one group, in one metric."""

    n: int
    first: float
    second: float
    difference: Difference


@dataclass(frozen=True)
class Comparison:
    """What the second run does otherwise than the first, on the questions of both."""

    first: Run
    second: Run
    scores: tuple[ProfileScores, ProfileScores]
    """On the same questions: those that the profile counts in both runs."""
    left_out: int
    """Questions of both runs that the profile does not count in one of them: skipped, or lacking what it compares."""
    metric: str
    """The one that the breakdown and the lists are about."""
    differences: Mapping[str, Difference]
    """By metric of the profile."""
    by_type: Mapping[str, TypeDifference]
    won: tuple[str, ...]
    """Ids of the questions on which the second run has the higher value."""
    lost: tuple[str, ...]
    settings: Mapping[str, tuple[str, str]]
    """What the two runs were told differently, by dotted name."""


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
        profile: how all are scored.
        metric: what the breakdown and the lists are about; the profile's first without one.
        force: compare runs that `differing` objects to, on the questions that they share.
        seed: of the bootstrap.
        resamples: drawn for each comparison and group.

    Raises:
        RunError: there are fewer than two runs, the profile has no such metric, the runs are not about the same
            questions and `force` is not set, or they share no question that the profile can score.
    """
    if len(runs) < 2:
        raise RunError("there is nothing to compare one run with; give two run folders or more")
    names = [each.name for each in profile.metrics]
    metric = metric or names[0]
    if metric not in names:
        raise RunError(f"profile {profile.name} has no metric {metric!r}; it has {', '.join(names)}")
    first, *others = runs
    for other in others:
        reasons = differing(first, other)
        if reasons and not force:
            raise RunError(
                f"{first.name!r} and {other.name!r} cannot be compared: {'; '.join(reasons)}; "
                "--force compares the questions that they share"
            )
    return [_compared(first, other, profile, metric, seed, resamples) for other in others]


def differing(first: Run, second: Run) -> tuple[str, ...]:
    """Return why two runs are not about the same questions, scored alike; empty if they are."""
    reasons = []
    mine, theirs = ({example.id: example for example in run.questions} for run in (first, second))
    if first.dataset["name"] != second.dataset["name"]:
        reasons.append(f"one asked {first.dataset['name']!r}, the other {second.dataset['name']!r}")
    elif first.dataset != second.dataset:
        reasons.append(f"the question files of {first.dataset['name']!r} differ")
    if mine.keys() != theirs.keys():
        reasons.append(
            f"the questions differ ({len(mine.keys() & theirs.keys()):,} in both, "
            f"{len(mine.keys() - theirs.keys()):,} and {len(theirs.keys() - mine.keys()):,} in one alone)"
        )
    changed = [id for id in mine if id in theirs and mine[id].answers != theirs[id].answers]
    if changed:
        reasons.append(f"the gold answers of {len(changed):,} questions differ ({changed[0]!r} first)")
    for run in (first, second):
        if run.metrics is None:
            reasons.append(f"{run.name!r} is not finished: it has no {METRICS_FILE}")
    return tuple(reasons)


def _compared(first: Run, second: Run, profile: Profile, metric: str, seed: int, resamples: int) -> Comparison:
    theirs = {case.id: case for case in second.cases}
    cases = [case for case in first.cases if case.id in theirs]
    if not cases:
        raise RunError(f"{first.name!r} and {second.name!r} share no question; compare runs over the same data set")
    before, after = _scored(cases, theirs, profile, seed)
    counted = (before.weights[:, 0] > 0) & (after.weights[:, 0] > 0)
    if not counted.any():
        raise RunError(f"profile {profile.name} can score none of the questions in both runs; use --profile strict")
    shared = len(cases)
    if not counted.all():
        cases = [case for case, counts in zip(cases, counted, strict=True) if counts]
        before, after = _scored(cases, theirs, profile, seed)
    names = [each.name for each in profile.metrics]
    column = names.index(metric)
    one, other = before.values[:, column], after.values[:, column]

    def difference(rows: Sequence[int]) -> list[Difference]:
        weights = before.weights[rows], after.weights[rows]
        return paired_difference(before.values[rows], after.values[rows], weights, seed, resamples)

    def in_group(group: str, rows: Sequence[int]) -> TypeDifference:
        first_mean, second_mean = (scores.groups[group].figures[metric] for scores in (before, after))
        return TypeDifference(len(rows), first_mean, second_mean, difference(rows)[column])

    rows = group_rows(cases, profile)
    return Comparison(
        first=first,
        second=second,
        scores=(before, after),
        left_out=shared - len(cases),
        metric=metric,
        differences=dict(zip(names, difference(range(len(cases))), strict=True)),
        by_type={group: in_group(group, rows[group]) for group in before.groups},
        won=tuple(case.id for case, better in zip(cases, other > one, strict=True) if better),
        lost=tuple(case.id for case, worse in zip(cases, other < one, strict=True) if worse),
        settings={
            key: values
            for key, values in changed_settings(first.config, second.config).items()
            if not key.startswith(_SETTINGS_LEFT_OUT)
        },
    )


def _scored(
    cases: Sequence[Case], theirs: Mapping[str, Case], profile: Profile, seed: int
) -> tuple[ProfileScores, ProfileScores]:
    [before] = score_cases(cases, [profile], seed)
    [after] = score_cases([theirs[case.id] for case in cases], [profile], seed)
    return before, after
