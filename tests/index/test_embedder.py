"""Tests of `byokg.index.embedders`."""

from __future__ import annotations

import numpy as np

from byokg.index.embedders import compare_rows, exact, unit_rows


def test_rows_are_scaled_to_length_one_and_keep_their_direction() -> None:
    rows = unit_rows([[3, 4], [0, -2]])
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.0, -1.0]], atol=1e-7)


def test_a_zero_row_stays_zero() -> None:
    np.testing.assert_array_equal(unit_rows([[0.0, 0.0], [1.0, 0.0]]), [[0, 0], [1, 0]])


def test_no_rows_stay_no_rows() -> None:
    assert unit_rows(np.zeros((0, 5))).shape == (0, 5)


def test_rows_are_compared_with_a_vector_however_many_there_are() -> None:
    rows = exact(unit_rows(np.random.default_rng(0).normal(size=(5000, 128))))
    assert np.array_equal(compare_rows(rows, rows[0]), rows @ rows[0])
    assert compare_rows(rows[:0], rows[0]).shape == (0,)
