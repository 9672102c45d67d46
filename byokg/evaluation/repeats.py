"""Repeated questions, since a language model may answer differently each time.

Every prediction of such a run counts in every mean. Intervals and tests draw a question with all its repeats, so they
include the variance between questions and within them. Drawing repeats within a drawn question as well would count the
latter twice (Davison and Hinkley, "Bootstrap Methods and their Application" (1997), "Hierarchical data").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb, sqrt

import numpy as np

from byokg.evaluation.cases import Case
from byokg.evaluation.compare import score_cases
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.metrics import Estimate, normalise
from byokg.evaluation.profiles import Profile
from byokg.evaluation.significance import RESAMPLES, cluster_codes, intervals

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
        pass_at={
            k: Estimate(float(passed[:, at].mean()), (float(low[at]), float(high[at]))) for at, k in enumerate(ks)
        },
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
