"""Tests of `byokg.evaluation.significance`: intervals, clusters and tests of differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.evaluation.significance import (
    auroc,
    bootstrap,
    calibration_error,
    cluster_codes,
    effective_n,
    holm,
    mcnemar,
    paired_difference,
    wilson,
)


def test_the_interval_is_as_wide_as_theory_says() -> None:
    # The mean of 400 fair coins has a standard error of sqrt(0.25 / 400) = 0.025, so the interval is 0.5 ± 0.049.
    coins = np.repeat([[0.0], [1.0]], 200, axis=0)
    low, high = bootstrap(coins, seed=3, resamples=4000)
    assert low[0] == pytest.approx(0.451, abs=0.005)
    assert high[0] == pytest.approx(0.549, abs=0.005)


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for seed in range(200):
        low, high = bootstrap((generator.random((200, 1)) < 0.3).astype(np.float64), seed, resamples=300)
        covered += bool(low[0] <= 0.3 <= high[0])
    assert 180 <= covered <= 199


@given(st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=2), min_size=1, max_size=20), st.integers(0, 2**32))
def test_the_interval_lies_within_the_scores(rows: list[list[float]], seed: int) -> None:
    table = np.array(rows)
    low, high = bootstrap(table, seed, resamples=50)
    assert (low <= high).all()
    assert (low >= table.min(axis=0) - 1e-12).all()
    assert (high <= table.max(axis=0) + 1e-12).all()
    assert (high <= 1.0).all()


def test_the_bootstrap_depends_on_its_seed_alone() -> None:
    table = np.random.default_rng(1).random((50, 6))
    assert np.array_equal(bootstrap(table, seed=5), bootstrap(table, seed=5))
    assert not np.array_equal(bootstrap(table, seed=5), bootstrap(table, seed=6))


@pytest.mark.parametrize(
    ("won", "lost", "p"), [(0, 0, 1.0), (1, 0, 1.0), (6, 1, 2 * (1 + 7) / 2**7), (10, 0, 2 / 2**10), (5, 5, 1.0)]
)
def test_mcnemar_is_the_binomial_tail_twice(won: int, lost: int, p: float) -> None:
    assert mcnemar(won, lost) == mcnemar(lost, won) == pytest.approx(p)


def test_mcnemar_takes_many_questions() -> None:
    assert mcnemar(5200, 4800) == pytest.approx(6.5e-5, rel=0.05)  # normal approximation: z = 400 / 100


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=6))
def test_clusters_are_swapped_whole_and_of_equal_differences_more_clusters_ahead_are_further(ahead: list[int]) -> None:
    # A cluster has three questions, of which `ahead` are won by the second system, or lost.
    def further(way: tuple[int, ...]) -> tuple[int, int]:
        signed = [each * sign for each, sign in zip(ahead, way, strict=True)]
        return abs(sum(signed)), abs(sum(np.sign(signed)))

    ways = [further(way) for way in itertools.product((1, -1), repeat=len(ahead))]
    expected = sum(each >= further((1,) * len(ahead)) for each in ways) / len(ways)
    values = [[[float(place < side * each)] for each in ahead for place in range(3)] for side in (-1, 1)]
    even = np.ones((3 * len(ahead), 1))
    codes = np.repeat(np.arange(len(ahead)), 3)
    [one] = paired_difference(np.array(values[0]), np.array(values[1]), (even, even), codes=codes, resamples=2000)
    assert one.test == "permutation"
    assert one.p == pytest.approx(expected, abs=0.05)


def test_questions_that_belong_together_are_tested_together() -> None:
    # Three facts of four paraphrases each, all won: 12 questions apart, but a chance of one in eight.
    first, second = np.zeros((12, 1)), np.ones((12, 1))
    even = np.ones((12, 1))
    codes = cluster_codes([f"fact {number // 4}" for number in range(12)])
    [alone], [together] = (paired_difference(first, second, (even, even), codes=each) for each in (None, codes))
    assert alone.test == "McNemar"
    assert alone.p == pytest.approx(2 / 2**12)
    assert together.test == "permutation"
    assert together.p == pytest.approx(2 / 2**3, abs=0.02)
    assert (together.value, together.won, together.lost, together.clusters) == (1.0, 12, 0, (3, 0))


def test_a_question_without_a_cluster_stands_alone() -> None:
    assert cluster_codes(["a", "", "b", "a", ""]).tolist() == [0, 1, 2, 0, 3]
    assert effective_n(cluster_codes(["a", "a", "", ""])) == pytest.approx(16 / 6)
    assert effective_n(cluster_codes([""] * 5)) == 5.0


def test_clusters_of_one_question_change_nothing() -> None:
    table = np.random.default_rng(3).random((40, 2))
    codes = cluster_codes([str(number) for number in range(40)])
    assert np.array_equal(bootstrap(table, codes=codes), bootstrap(table))


@pytest.mark.parametrize(
    ("share", "n", "ends"), [(0.0, 10, (0.0, 0.2775)), (1.0, 10, (0.7225, 1.0)), (0.5, 100, (0.4038, 0.5962))]
)
def test_wilsons_interval(share: float, n: float, ends: tuple[float, float]) -> None:
    assert wilson(share, n) == pytest.approx(ends, abs=1e-4)


def test_holm_multiplies_the_smallest_by_the_number_of_comparisons() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


def test_a_binary_metric_is_tested_by_mcnemar_and_others_by_permutations() -> None:
    first = np.array([[0.0, 0.2], [0.0, 0.4], [1.0, 1.0], [1.0, 0.0]])
    second = np.array([[1.0, 0.4], [0.0, 0.4], [1.0, 1.0], [0.0, 0.5]])
    binary, graded = paired_difference(first, second, (np.ones((4, 2)), np.ones((4, 2))))
    assert (binary.value, binary.won, binary.lost, binary.test, binary.p) == (0.0, 1, 1, "McNemar", 1.0)
    assert graded.value == pytest.approx(0.7 / 4)
    assert (graded.won, graded.lost, graded.test) == (2, 0, "permutation")
    assert graded.ci95[0] <= graded.value <= graded.ci95[1]


def test_the_interval_is_as_wide_as_theory_says_for_differences() -> None:
    # 400 differences, 100 of +1 and 300 of 0: mean 0.25, standard error sqrt(0.25 · 0.75 / 400) = 0.02165.
    first, second = np.zeros((400, 1)), np.repeat([[1.0], [0.0]], [100, 300], axis=0)
    [one] = paired_difference(first, second, (np.ones((400, 1)), np.ones((400, 1))))
    assert one.ci95 == pytest.approx((0.25 - 1.96 * 0.02165, 0.25 + 1.96 * 0.02165), abs=0.004)


def test_equal_systems_rarely_differ() -> None:
    generator = np.random.default_rng(0)
    few = 0
    for seed in range(100):
        first, second = generator.random((80, 1)), generator.random((80, 1))
        [one] = paired_difference(first, second, (np.ones((80, 1)), np.ones((80, 1))), seed, resamples=300)
        few += one.p < 0.05
    assert few <= 12


def test_a_systems_difference_from_itself_is_none() -> None:
    values = np.random.default_rng(1).random((30, 2))
    for one in paired_difference(values, values, (np.ones((30, 2)), np.ones((30, 2))), resamples=100):
        assert (one.value, one.ci95, one.p, one.won, one.lost) == (0.0, (0.0, 0.0), 1.0, 0, 0)


def test_auroc_counts_pairs_of_a_right_and_a_wrong_answer_in_order() -> None:
    # Right: .9 .4; wrong: .5 .4. Pairs: .9>.5, .9>.4, .4<.5, .4=.4: 1 + 1 + 0 + ½ of 4.
    scores, right = np.array([0.9, 0.4, 0.5, 0.4]), np.array([1.0, 1.0, 0.0, 0.0])
    assert auroc(scores, right) == pytest.approx(2.5 / 4)
    assert auroc(-scores, right) == pytest.approx(1.5 / 4)
    assert np.isnan(auroc(scores, np.ones(4)))


def test_the_calibration_error_is_the_mean_gap_between_said_and_right() -> None:
    # Two say .95, one is right: a gap of .45. Two say .25, none is right: .25.
    assert calibration_error(np.array([0.95, 0.95, 0.25, 0.25]), np.array([1.0, 0.0, 0.0, 0.0])) == pytest.approx(0.35)
    assert calibration_error(np.array([1.0, 0.0]), np.array([1.0, 0.0])) == 0
    assert calibration_error(np.empty(0), np.empty(0)) == 0
