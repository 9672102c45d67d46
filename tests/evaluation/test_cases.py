"""Tests of `byokg.evaluation.cases`."""

from __future__ import annotations

import pytest

from byokg.errors import RunError
from byokg.evaluation.cases import join
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.records import Prediction

ASKED = (Example("a", "Where?", ("Oslo",), type="x"), Example("b", "Who?", ("Ann",), aliases=(("Annie",),)))


def test_cases_are_in_the_order_asked_and_a_missing_prediction_is_a_failed_one() -> None:
    first, second = join(ASKED, [Prediction("b", "ok", ("Ann",), ("n1",), drafts=("Bob",))])
    assert (first.id, first.status, first.answers, first.type) == ("a", "failed", (), "x")
    assert (second.answers, second.ranked_ids, second.drafts, second.aliases) == (
        ("Ann",),
        ("n1",),
        ("Bob",),
        (("Annie",),),
    )


def test_a_prediction_for_a_question_that_was_not_asked_is_refused() -> None:
    with pytest.raises(RunError, match="prediction for 'z'"):
        join(ASKED, [Prediction("z", "ok")])
