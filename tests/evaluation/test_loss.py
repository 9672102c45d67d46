"""Tests of `byokg.evaluation.metrics`."""

from __future__ import annotations

import pytest

from byokg.evaluation.metrics import STAGES, Stage, count_stages, stage


@pytest.mark.parametrize(
    ("hit", "failed", "linked", "retrieved", "expected"),
    [
        (False, True, 0.0, False, "failed"),
        (False, False, 0.0, False, "not_linked"),
        (False, False, 0.5, False, "not_retrieved"),  # one of two topics is enough to go on
        (False, False, None, False, "not_retrieved"),  # granted topics cannot be lost
        (False, False, 1.0, True, "not_answered"),
        (False, False, 0.0, True, "not_answered"),  # found without them
        (True, False, 1.0, True, "answered"),
        (True, False, 0.0, False, "answered"),  # the model knew
    ],
)
def test_a_question_is_lost_at_the_first_stage_that_fails(
    hit: bool, failed: bool, linked: float | None, retrieved: bool, expected: Stage
) -> None:
    assert stage(hit, failed, linked, retrieved) == expected


def test_all_stages_are_counted_in_order() -> None:
    counts = count_stages(["answered", "failed", "answered"])
    assert tuple(counts) == STAGES
    assert counts == {"failed": 1, "not_linked": 0, "not_retrieved": 0, "not_answered": 0, "answered": 2}
