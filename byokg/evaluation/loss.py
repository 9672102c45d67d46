"""Where along the way each question is lost: not linked, linked but not retrieved, retrieved but not answered.

A question is attributed to the first stage that lost it, so the counts add up to the number of questions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

Stage = Literal["failed", "not_linked", "not_retrieved", "not_answered", "answered"]
"""`failed`: there is no outcome. `not_linked`: none of the annotated topic entities was linked. `not_retrieved`: no
gold answer is in the evidence. `not_answered`: one is, but no answer is right. `answered`: an answer is right (Hit), be
it one that the evidence does not hold."""

STAGES: tuple[Stage, ...] = get_args(Stage)


def stage(hit: bool, failed: bool, linked: float | None, retrieved: bool) -> Stage:
    """Attribute one question.

    Args:
        hit: any answer is right.
        failed: the question has no outcome.
        linked: share of its topic entities that were linked, in [0, 1]; None where they were granted or are not
            annotated, so that none can be lost.
        retrieved: any gold answer is in the evidence.
    """
    if failed:
        return "failed"
    if hit:
        return "answered"
    if retrieved:
        return "not_answered"
    return "not_linked" if linked == 0.0 else "not_retrieved"


def count_stages(stages: Iterable[Stage]) -> dict[Stage, int]:
    """Count the questions of each stage, all stages in their order."""
    counts = dict.fromkeys(STAGES, 0)
    for each in stages:
        counts[each] += 1
    return counts
