"""Fitting how sure offline answers are: how much each sign counts, from answers that are known to be right or wrong.

numpy alone, and sums on a grid: the same answers make the same weights on every CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float64
from byokg.offline.calibration import AGAINST, NAMES, CalibrationFeatures, LogisticCalibrator
from byokg.offline.path_ranker import on_grid, product
from byokg.offline.training.ranker import exponential


@dataclass(frozen=True)
class CalibrationFit:
    """Settings of the calibration fit."""

    ridge: float = 0.01
    """Penalty on weights of features of average spread."""
    prior: float = 8.0
    """Answers that count as much as the prior's weights."""
    steps: int = 500
    """Gradient steps."""
    digits: int = 4
    """Decimals of written weights."""


_SETTINGS = CalibrationFit()


@dataclass(frozen=True)
class Judged:
    """Answers to a set of questions."""

    features: Float64
    """(N, F) in the order of `CalibrationFeatures`."""
    right: Float64
    """(N,) 1 for a right first answer, else 0."""

    def __add__(self, other: Judged) -> Judged:
        return Judged(np.concatenate((self.features, other.features)), np.concatenate((self.right, other.right)))

    def taken(self, rows: npt.NDArray[np.bool_]) -> Judged:
        """Return some of the answers."""
        return Judged(self.features[rows], self.right[rows])


def fit_confidence(sets: Sequence[tuple[float, Judged]], near: LogisticCalibrator | None = None) -> LogisticCalibrator:
    """Return the maximum-likelihood weights, by accelerated gradient descent.

    Args:
        sets: answers, and the total weight of each set.
        near: weights of the prior, which counts the more, the fewer answers there are. Without it each feature keeps
            the sign that it must have: otherwise features that separate the few training graphs would decide on others.
    """
    sets = [(worth, judged) for worth, judged in sets if len(judged.right)]
    if not sets and near is not None:
        return near
    signs, right = (
        np.concatenate(parts) for parts in zip(*((one.features, one.right) for _, one in sets), strict=True)
    )
    parts = [np.full(len(judged.right), worth / len(judged.right)) for worth, judged in sets]
    weight = np.concatenate(parts)
    weight = on_grid(weight / weight.sum(), 40)
    middle = _sums(weight, signs)
    spread = np.sqrt(_sums(weight, (signs - middle) ** 2)) + 1e-6
    rows = (signs - middle) / spread
    way = np.array([-1.0 if name in AGAINST else 1.0 for name in NAMES])
    start, bias, ridge = np.zeros(len(NAMES)), 0.0, _SETTINGS.ridge
    if near is not None:
        start = np.array(near.weights) * spread
        bias = near.bias + float((np.array(near.weights) * (middle - np.array(near.middle))).sum())
        ridge = _SETTINGS.prior / len(right)
    rate = 1 / ((len(NAMES) + 1) / 4 + ridge)  # below the curvature bound of the objective, so that no step is too long
    found, ahead, ahead_bias, speed = start, start, bias, 1.0
    for _ in range(_SETTINGS.steps):
        error = weight * (_chance(product(rows, ahead[:, None])[:, 0] + ahead_bias) - right)
        stepped = ahead - rate * (_sums(error, rows) + ridge * (ahead - start))
        if near is None:
            stepped = way * np.maximum(0.0, way * stepped)
        stepped_bias = ahead_bias - rate * float(on_grid(error, 40).sum())
        faster = (1 + np.sqrt(1 + 4 * speed * speed)) / 2
        ahead = stepped + (speed - 1) / faster * (stepped - found)
        ahead_bias = stepped_bias + (speed - 1) / faster * (stepped_bias - bias)
        found, bias, speed = stepped, stepped_bias, faster
    return LogisticCalibrator(_rounded([bias])[0], _rounded(found / spread), _rounded(middle))


def probabilities(fitted: LogisticCalibrator, judged: Judged) -> Float64:
    """Return how sure weights are of each answer: (N,) in [0, 1]."""
    return np.array([fitted.probability(CalibrationFeatures(*row)) for row in judged.features.tolist()], np.float64)


def cross_fitted(held_out: Judged, folds: npt.NDArray[np.int64], others: Judged, near: LogisticCalibrator) -> Float64:
    """Return how sure weights are of answers that they were not fitted on: (N,).

    Args:
        held_out: N answers.
        folds: (N,) a number shared by answers that are judged together, by weights fitted on all that have another.
        others: answers that all weights are fitted on.
        near: weights that these stay near.
    """
    chances = np.zeros(len(held_out.right))
    for fold in np.unique(folds):
        own = folds == fold
        fitted = fit_confidence([(1.0, others + held_out.taken(~own))], near)
        chances[own] = probabilities(fitted, held_out.taken(own))
    return chances


def _chance(odds: Float64) -> Float64:
    power = exponential(-np.abs(odds))
    chance: Float64 = np.where(odds >= 0, 1.0, power) / (1 + power)
    return chance


def _sums(weight: Float64, rows: Float64) -> Float64:
    sums: Float64 = product(weight[None, :], rows)[0]
    return sums


def _rounded(values: Sequence[float] | Float64) -> tuple[float, ...]:
    return tuple(round(float(value), _SETTINGS.digits) + 0.0 for value in values)
