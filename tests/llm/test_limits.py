"""Tests of `byokg.llm.failures`."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.errors import ConfigError, LlmDeadline
from byokg.llm.failures import WINDOW_S, Deadline, Limits


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_no_more_calls_than_allowed_are_under_way() -> None:
    limits = Limits(concurrency=3)
    lock = threading.Lock()
    under_way, most = 0, 0
    full = threading.Barrier(3)

    def call(number: int) -> None:
        nonlocal under_way, most
        with limits.slot(1, "m"):
            with lock:
                under_way += 1
                most = max(most, under_way)
            full.wait(timeout=10)  # three at a time pass, and only if three are let in
            with lock:
                under_way -= 1

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(call, range(12)))
    assert most == 3


def test_who_finds_no_place_in_time_is_told_so() -> None:
    limits = Limits(concurrency=1)
    with (
        limits.slot(1, "m"),
        pytest.raises(LlmDeadline, match=r"llm\.concurrency"),
        limits.slot(1, "m", Deadline.after(0.01)),
    ):
        pass


def test_a_place_comes_free_after_an_error() -> None:
    limits = Limits(concurrency=1)
    with pytest.raises(ZeroDivisionError), limits.slot(1, "m"):
        raise ZeroDivisionError
    with limits.slot(1, "m", Deadline.after(0.01)):
        pass


def test_tokens_of_a_minute_are_waited_for() -> None:
    clock = Clock()
    limits = Limits(tokens_per_minute=100, sleep=clock.sleep, clock=clock)
    began = []
    for tokens in (60, 40, 10, 90, 5):
        with limits.slot(tokens, "m"):
            began.append(clock.now)
        clock.now += 10.0
    # 60 + 40 fill the first minute; at 60 the first leaves it; 90 more need the 40 of second 10 to leave, too.
    assert began == [0.0, 10.0, 60.0, 70.0, 120.0]


def test_what_was_really_used_counts() -> None:
    clock = Clock()
    limits = Limits(tokens_per_minute=100, sleep=clock.sleep, clock=clock)
    with limits.slot(90, "m") as spent:
        spent.settle(10)
    with limits.slot(90, "m"):
        assert clock.now == 0.0


def test_a_call_above_the_limit_goes_through_alone() -> None:
    clock = Clock()
    limits = Limits(tokens_per_minute=100, sleep=clock.sleep, clock=clock)
    with limits.slot(500, "m"):
        assert clock.now == 0.0
    with limits.slot(1, "m"):
        assert clock.now == WINDOW_S


def test_tokens_that_come_too_late_are_not_waited_for() -> None:
    clock = Clock()
    limits = Limits(tokens_per_minute=10, sleep=clock.sleep, clock=clock)
    with limits.slot(10, "m"):
        pass
    deadline = Deadline.after(30.0, clock)
    with pytest.raises(LlmDeadline, match="tokens_per_minute=10"), limits.slot(10, "m", deadline):
        pass
    assert clock.now <= 30.0


@given(st.lists(st.tuples(st.integers(1, 150), st.floats(0, 90)), max_size=30))
def test_no_minute_holds_more_tokens_than_allowed(calls: list[tuple[int, float]]) -> None:
    clock = Clock()
    limits = Limits(tokens_per_minute=100, sleep=clock.sleep, clock=clock)
    began: list[tuple[float, int]] = []
    for tokens, pause in calls:
        with limits.slot(tokens, "m"):
            began.append((clock.now, tokens))
        clock.now += pause
    for at, _ in began:
        inside = [tokens for other, tokens in began if at - WINDOW_S + 1e-6 < other <= at]  # times are rounded
        assert len(inside) == 1 or sum(inside) <= 100


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"tokens_per_minute": 0}])
def test_limits_that_allow_nothing_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Limits(**wrong)  # type: ignore[arg-type]
