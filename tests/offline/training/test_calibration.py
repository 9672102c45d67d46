"""Tests of `byokg.offline.training.calibration`."""

from __future__ import annotations

import numpy as np
import pytest

from byokg.evaluation.significance import auroc, calibration_error
from byokg.offline.ranking import AGAINST, NAMES, RankingWeights
from byokg.offline.training.calibration import cross_fitted, first_answers, fit_ranking
from byokg.offline.training.path_weights import CandidateSet

SHARE, GAP, LONG = (NAMES.index(name) for name in ("agreement", "margin", "too_many_hops"))
NEAR = RankingWeights(0.5, (1.0,) * len(NAMES), (0.0,) * len(NAMES))


def answers(count: int, seed: int, **slopes: float) -> list[CandidateSet]:
    """Draw questions with one answer each, whose odds of being right follow from some features."""
    chance = np.random.default_rng(seed)
    features = np.zeros((count, len(NAMES)))
    features[:, [SHARE, GAP, LONG]] = chance.normal(size=(count, 3))
    odds = sum(slope * features[:, NAMES.index(name)] for name, slope in slopes.items())
    right = (chance.random(count) < 1 / (1 + np.exp(-odds))).astype(np.float64)
    return [CandidateSet(features[at : at + 1], right[at : at + 1]) for at in range(count)]


def constant(right: float, count: int = 50) -> list[CandidateSet]:
    return [CandidateSet(one.features, np.array([right])) for one in answers(count, 0, agreement=0.0)]


def test_what_speaks_for_an_answer_is_found() -> None:
    fitted = fit_ranking([(1.0, answers(4000, 0, agreement=2.0, too_many_hops=-1.0))])
    assert fitted.weights[SHARE] > -fitted.weights[LONG] > 0.5
    assert abs(fitted.weights[GAP]) < 0.1
    chances, right = first_answers(fitted, answers(4000, 1, agreement=2.0, too_many_hops=-1.0))
    assert auroc(chances, right) > 0.8 and calibration_error(chances, right) < 0.05


def test_what_separates_the_candidates_of_a_question_orders_them() -> None:
    # Of each two candidates the one that more paths lead to is right, which no question shows by itself.
    features = np.zeros((2, len(NAMES)))
    features[1, SHARE] = 1.0
    fitted = fit_ranking([(1.0, [CandidateSet(features, np.array([0.0, 1.0]))] * 20)])
    assert fitted.weights[SHARE] > 0.5


def test_no_feature_has_the_wrong_sign_on_unknown_graphs() -> None:
    fitted = fit_ranking([(1.0, answers(1000, 0, agreement=-2.0, too_many_hops=2.0, margin=1.0))])
    assert fitted.weights[SHARE] == fitted.weights[LONG] == 0 < fitted.weights[GAP]
    assert "too_many_hops" in AGAINST


@pytest.mark.parametrize(("count", "nearer"), [(4, True), (4000, False)])
def test_few_answers_leave_weights_where_they_were(count: int, nearer: bool) -> None:
    fitted = fit_ranking([(1.0, answers(count, 0, agreement=-2.0))], NEAR)
    assert (abs(fitted.weights[SHARE] - 1) < abs(fitted.weights[SHARE] + 2)) == nearer


def test_without_answers_nothing_changes() -> None:
    assert fit_ranking([(1.0, [])], NEAR) == NEAR


def test_what_is_held_out_is_judged_by_what_was_fitted_on_the_rest() -> None:
    # Fold 0 is all wrong and fold 1 all right: who saw it would know.
    features, folds = np.zeros((1, len(NAMES))), np.arange(40) % 2
    held = [CandidateSet(features, np.array([float(fold)])) for fold in folds]
    near = RankingWeights(0.0, (0.0,) * len(NAMES), (0.0,) * len(NAMES))
    chances, right = cross_fitted(held, folds, [], near)
    assert chances[folds == 0].min() > 0.5 > chances[folds == 1].max()
    assert right.tolist() == folds.tolist()


def test_sets_count_what_they_are_worth() -> None:
    sure, unsure = (fit_ranking([(worth, constant(1.0)), (1.0, constant(0.0))]) for worth in (9.0, 1 / 9))
    assert first_answers(sure, constant(1.0))[0].mean() > 0.8
    assert first_answers(unsure, constant(1.0))[0].mean() < 0.2
