"""Tests of `byokg.offline.training.calibration`."""

from __future__ import annotations

import numpy as np
import pytest

from byokg.evaluation.significance import auroc, calibration_error
from byokg.offline.calibration import AGAINST, NAMES, LogisticCalibrator
from byokg.offline.training.calibration import Judged, cross_fitted, fit_confidence, probabilities

SHARE, GAP, LONG = (NAMES.index(name) for name in ("vote_share", "score_margin", "too_many_hops"))


def answers(count: int, seed: int, **slopes: float) -> Judged:
    """Draw answers whose odds of being right follow from some signs."""
    chance = np.random.default_rng(seed)
    signs = np.zeros((count, len(NAMES)))
    signs[:, [SHARE, GAP, LONG]] = chance.normal(size=(count, 3))
    odds = sum(slope * signs[:, NAMES.index(name)] for name, slope in slopes.items())
    return Judged(signs, (chance.random(count) < 1 / (1 + np.exp(-odds))).astype(np.float64))


def test_what_speaks_for_an_answer_is_found() -> None:
    fitted = fit_confidence([(1.0, answers(4000, 0, vote_share=2.0, too_many_hops=-1.0))])
    assert fitted.weights[SHARE] > -fitted.weights[LONG] > 0.5
    assert abs(fitted.weights[GAP]) < 0.1
    asked = answers(4000, 1, vote_share=2.0, too_many_hops=-1.0)
    chances = probabilities(fitted, asked)
    assert auroc(chances, asked.right) > 0.8 and calibration_error(chances, asked.right) < 0.05


def test_no_feature_has_the_wrong_sign_on_unknown_graphs() -> None:
    fitted = fit_confidence([(1.0, answers(1000, 0, vote_share=-2.0, too_many_hops=2.0, score_margin=1.0))])
    assert fitted.weights[SHARE] == fitted.weights[LONG] == 0 < fitted.weights[GAP]
    assert "too_many_hops" in AGAINST


@pytest.mark.parametrize(("count", "nearer"), [(4, True), (4000, False)])
def test_few_answers_leave_weights_where_they_were(count: int, nearer: bool) -> None:
    near = LogisticCalibrator(0.5, (1.0,) * len(NAMES), (0.0,) * len(NAMES))
    fitted = fit_confidence([(1.0, answers(count, 0, vote_share=-2.0))], near)
    assert (abs(fitted.weights[SHARE] - 1) < abs(fitted.weights[SHARE] + 2)) == nearer


def test_without_answers_nothing_changes() -> None:
    near = LogisticCalibrator(0.5, (1.0,) * len(NAMES), (0.0,) * len(NAMES))
    assert fit_confidence([(1.0, Judged(np.empty((0, len(NAMES))), np.empty(0)))], near) == near


def test_what_is_held_out_is_judged_by_what_was_fitted_on_the_rest() -> None:
    # Fold 0 is all wrong and fold 1 all right: who saw it would know.
    signs = np.zeros((40, len(NAMES)))
    folds = np.arange(40) % 2
    held, none = Judged(signs, folds.astype(np.float64)), Judged(signs[:0], np.empty(0))
    near = LogisticCalibrator(0.0, (0.0,) * len(NAMES), (0.0,) * len(NAMES))
    chances = cross_fitted(held, folds, none, near)
    assert chances[folds == 0].min() > 0.5 > chances[folds == 1].max()


def test_sets_count_what_they_are_worth() -> None:
    right, wrong = (answers(50, 0, vote_share=0.0) for _ in range(2))
    right, wrong = Judged(right.features, np.ones(50)), Judged(wrong.features, np.zeros(50))
    sure, unsure = (fit_confidence([(worth, right), (1.0, wrong)]) for worth in (9.0, 1 / 9))
    assert probabilities(sure, right).mean() > 0.8 and probabilities(unsure, right).mean() < 0.2
