"""Tests of `byokg.evaluation.metrics`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.evaluation.metrics import mcnemar, paired_difference


@pytest.mark.parametrize(
    ("won", "lost", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (6, 1, 2 * (1 + 7) / 2**7),  # the ways to have 0 or 1 of 7
        (10, 0, 2 / 2**10),
        (5, 5, 1.0),
    ],
)
def test_mcnemar_is_the_binomial_tail_twice(won: int, lost: int, p: float) -> None:
    assert mcnemar(won, lost) == pytest.approx(p)


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_a_probability_and_knows_no_sides(won: int, lost: int) -> None:
    assert 0.0 < mcnemar(won, lost) <= 1.0
    assert mcnemar(won, lost) == mcnemar(lost, won)


def test_mcnemar_takes_many_questions() -> None:
    assert mcnemar(5200, 4800) == pytest.approx(6.6e-5, rel=0.05)  # normal approximation: z = 399 / 100 = 3.99


def test_a_binary_metric_is_tested_by_mcnemar_and_others_by_the_bootstrap() -> None:
    first = np.array([[0.0, 0.2], [0.0, 0.4], [1.0, 1.0], [1.0, 0.0]])
    second = np.array([[1.0, 0.4], [0.0, 0.4], [1.0, 1.0], [0.0, 0.5]])
    binary, graded = paired_difference(first, second, (np.ones((4, 2)), np.ones((4, 2))))
    assert (binary.value, binary.won, binary.lost, binary.test, binary.p) == (0.0, 1, 1, "McNemar", 1.0)
    assert graded.value == pytest.approx(0.7 / 4)
    assert (graded.won, graded.lost, graded.test) == (2, 0, "bootstrap")
    assert graded.ci95[0] <= graded.value <= graded.ci95[1]


def test_the_interval_is_as_wide_as_theory_says() -> None:
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
