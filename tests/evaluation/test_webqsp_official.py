"""Tests of `byokg.evaluation.profiles`."""

from __future__ import annotations

import pytest

from byokg.evaluation.cases import Case
from byokg.evaluation.profiles import WEBQSP_OFFICIAL


def test_webqsp_takes_the_reading_that_fits_best() -> None:
    # Said a, b. Against {a, b, c}: P 1, R 2/3, F1 4/5. Against {a}: P 1/2, R 1, F1 2/3.
    case = Case("q", ("A",), ("A", "B"), answer_ids=("a", "b"), gold_ids=("a",), parses=(("a",), ("a", "b", "c")))
    assert WEBQSP_OFFICIAL.score(case) == pytest.approx((4 / 5, 1.0, 2 / 3, 0.0))


def test_webqsp_counts_nothing_said_of_nothing_expected_as_right() -> None:
    assert WEBQSP_OFFICIAL.score(Case("q", ("A",), parses=((), ("a",)))) == (1.0, 1.0, 1.0, 1.0)
    assert WEBQSP_OFFICIAL.score(Case("q", ("A",), gold_ids=("a",))) == (0.0, 1.0, 0.0, 0.0)


def test_a_value_that_is_no_node_stands_under_its_name() -> None:
    case = Case("q", ("1999",), ("1999", "Oslo"), answer_ids=(None, "o"), gold_ids=("1999",))
    assert case.ranked_ids == ("1999", "o")
    assert WEBQSP_OFFICIAL.score(case) == pytest.approx((2 / 3, 0.5, 1.0, 0.0))


def test_names_are_not_scored() -> None:
    names = Case("q", ("Oslo",), ("Oslo",), gold_ids=("o",))
    assert not WEBQSP_OFFICIAL.scorable(names)
    # Nothing was predicted, which is scored as such.
    assert WEBQSP_OFFICIAL.scorable(Case("q", ("Oslo",), gold_ids=("o",)))
