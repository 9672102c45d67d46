"""Tests of `byokg.llm.failures`."""

from __future__ import annotations

from byokg.llm.failures import Deadline


def test_what_is_left_shrinks_and_ends_at_nothing() -> None:
    now = 100.0
    deadline = Deadline.after(5.0, lambda: now)
    assert deadline.left_s == 5.0
    now = 103.0
    assert deadline.left_s == 2.0
    now = 200.0
    assert deadline.left_s == 0.0
