"""Fitting the ranker of candidates: how much each feature counts, from answers that are known to be right or wrong.

The weights maximise the likelihood of the right candidates of a question among all, by a softmax over sharpened
log-odds, and that of the first candidate of each question being right or wrong, by its log-odds. numpy alone, and sums
on a grid: the same answers make the same weights on every CPU.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float64
from byokg.evaluation.metrics import normalise
from byokg.offline.answerer import Confidence
from byokg.offline.path_ranker import on_grid, product
from byokg.offline.ranking import AGAINST, NAMES, CandidateFeatures, RankingWeights
from byokg.offline.training.path_weights import CandidateSet
from byokg.offline.training.ranker import exponential
from byokg.types import AnswerItem, Context


@dataclass(frozen=True)
class RankingFit:
    """Settings of the fit."""

    ridge: float = 0.001
    """Penalty on weights of features of average spread."""
    prior: float = 8.0
    """Questions that count as much as the prior's weights."""
    sharpness: float = 2.0
    """Factor on the log-odds in the softmax: candidates of one question differ more surely than questions."""
    soft: float = 0.02
    """Share of right candidates that a wrong choice counts as: no question is worth giving up all others."""
    calibration: float = 4.0
    """Worth of calibrated probabilities against the order."""
    spread: float = 0.02
    """Least standard deviation that a feature is divided by."""
    steps: int = 300
    """Gradient steps."""
    rate: float = 0.05
    """First learning rate; falls linearly."""
    digits: int = 4
    """Decimals of written weights."""


_FIT = RankingFit()


def judged(judge: Confidence, context: Context, items: Sequence[AnswerItem], gold: Collection[str]) -> CandidateSet:
    """Return the candidates of an answered question, right ones by the normalised names of its gold answers."""
    found = judge.candidates(context, items)
    right = [float(normalise(name) in gold) for name, _ in found]
    return CandidateSet(np.array([astuple(one.features) for _, one in found]), np.array(right))


_MOMENTS = (0.9, 0.99)


def fit_ranking(
    sets: Sequence[tuple[float, Sequence[CandidateSet]]], near: RankingWeights | None = None
) -> RankingWeights:
    """Return the maximum-likelihood weights.

    Args:
        sets: candidates of each question in the order of `CandidateFeatures`, right ones 1, and the total weight of
            each set; one candidate alone is an answer that is not ranked.
        near: weights of the prior, which counts the more, the fewer questions there are. Without it each feature keeps
            the sign that it must have: otherwise features that separate the few training graphs would decide on others.
    """
    parts = [(one, worth / len(asked)) for worth, asked in sets for one in asked]
    if not parts and near is not None:
        return near
    features = np.concatenate([one.features for one, _ in parts])
    right = np.concatenate([one.right for one, _ in parts])
    sizes = np.array([len(one.right) for one, _ in parts])
    starts, owner = np.cumsum(sizes) - sizes, np.repeat(np.arange(len(sizes)), sizes)
    worth = np.array([share for _, share in parts])
    worth = on_grid(worth / worth.sum(), 40)
    middle = product(on_grid(worth / sizes, 40)[owner][None, :], features)[0]
    spread = np.sqrt(product(on_grid(worth / sizes, 40)[owner][None, :], (features - middle) ** 2)[0])
    spread = np.maximum(spread, _FIT.spread)
    rows = on_grid((features - middle) / spread, 12)
    ways = np.array([-1.0 if name in AGAINST else 1.0 for name in NAMES])
    centre, bias, ridge = np.zeros(len(NAMES)), 0.0, _FIT.ridge
    if near is not None:
        centre = np.array(near.weights) * spread
        bias = near.bias + float((np.array(near.weights) * (middle - np.array(near.middle))).sum())
        ridge = _FIT.prior / len(parts)
    weights, first, second = centre.copy(), np.zeros(len(NAMES) + 1), np.zeros(len(NAMES) + 1)
    for number in range(1, _FIT.steps + 1):
        odds = rows @ on_grid(weights, 16)
        slope = _order_slope(_FIT.sharpness * odds, right, starts, owner, worth) * _FIT.sharpness
        best = np.lexsort((-odds, owner))[starts]
        error = _FIT.calibration * worth * (_chance(odds[best] + bias) - right[best])
        np.add.at(slope, best, error)
        gradient = np.append(rows.T @ on_grid(slope, 33) + 2 * ridge * (weights - centre), on_grid(error, 33).sum())
        first = _MOMENTS[0] * first + (1 - _MOMENTS[0]) * gradient
        second = _MOMENTS[1] * second + (1 - _MOMENTS[1]) * gradient * gradient
        step = first / (1 - _MOMENTS[0] ** number) / (np.sqrt(second / (1 - _MOMENTS[1] ** number)) + 1e-9)
        step *= _FIT.rate * (1 - (number - 1) / _FIT.steps)
        weights, bias = weights - step[:-1], bias - float(step[-1])
        if near is None:
            weights = ways * np.maximum(0.0, ways * weights)
    return RankingWeights(_rounded([bias])[0], _rounded(weights / spread), _rounded(middle))


def _order_slope(
    scores: Float64, right: Float64, starts: npt.NDArray[np.int64], owner: npt.NDArray[np.int64], worth: Float64
) -> Float64:
    """Return the slope of the loss of the softmax over each question's candidates by their scores: (C,)."""
    chance = on_grid(exponential(scores - np.maximum.reduceat(scores, starts)[owner]), 30)
    chance = on_grid(chance / np.add.reduceat(chance, starts)[owner], 30)
    drawn = on_grid(chance * right, 30)
    total = np.add.reduceat(drawn, starts)
    share = total / (total + _FIT.soft)
    slope: Float64 = (chance * share[owner] - drawn / (total + _FIT.soft)[owner]) * worth[owner]
    return slope


def first_answers(fitted: RankingWeights, asked: Sequence[CandidateSet]) -> tuple[Float64, Float64]:
    """Return the probability of the first candidate of each question, and 1 for right ones: (N,) each."""
    chances, right = [], []
    for one in asked:
        odds = [fitted.odds(CandidateFeatures(*row)) for row in one.features.tolist()]
        first = max(range(len(odds)), key=odds.__getitem__)
        chances.append(odds[first])
        right.append(one.right[first])
    return _chance(np.array(chances, np.float64)), np.array(right, np.float64)


def cross_fitted(
    held_out: Sequence[CandidateSet], folds: npt.NDArray[np.int64], others: Sequence[CandidateSet], near: RankingWeights
) -> tuple[Float64, Float64]:
    """Return `first_answers` of N questions by weights that were not fitted on them.

    Args:
        held_out: N questions.
        folds: (N,) a number shared by questions that are judged together, by weights fitted on all that have another.
        others: questions that all weights are fitted on.
        near: weights that these stay near.
    """
    chances, right = np.zeros((2, len(held_out)))
    for fold in sorted(set(folds.tolist())):
        parts = [at for at, other in enumerate(folds.tolist()) if other == fold]
        rest = [one for one, other in zip(held_out, folds.tolist(), strict=True) if other != fold]
        fitted = fit_ranking([(1.0, [*others, *rest])], near)
        chances[parts], right[parts] = first_answers(fitted, [held_out[at] for at in parts])
    return chances, right


def _chance(odds: Float64) -> Float64:
    power = exponential(-np.abs(odds))
    chance: Float64 = np.where(odds >= 0, 1.0, power) / (1 + power)
    return chance


def _rounded(values: Sequence[float] | Float64) -> tuple[float, ...]:
    return tuple(round(float(value), _FIT.digits) + 0.0 for value in values)
