"""Tests of `byokg.llm.retry`."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.errors import ConfigError, LlmAuthFailed, LlmDeadline, LlmError, LlmOverloaded, LlmRateLimited
from byokg.llm.retry import WINDOW_S, Deadline, RateLimits, RetryPolicy


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def policy(self, **settings: float | int) -> RetryPolicy:
        """Return a policy that leaves nothing out of a wait."""
        return RetryPolicy(sleep=self.sleep, random=lambda: 0.0, **settings)  # type: ignore[arg-type]

    def deadline(self, seconds: float) -> Deadline:
        return Deadline.after(seconds, lambda: self.now)


# Deadlines


def test_what_is_left_shrinks_and_ends_at_nothing() -> None:
    now = 100.0
    deadline = Deadline.after(5.0, lambda: now)
    assert deadline.left_s == 5.0
    now = 103.0
    assert deadline.left_s == 2.0
    now = 200.0
    assert deadline.left_s == 0.0


# Repetition


def failing(*errors: LlmError) -> Callable[[], str]:
    """Return an attempt that raises each error once, and succeeds then."""
    left: Iterator[LlmError] = iter(errors)

    def attempt() -> str:
        for error in left:
            raise error
        return "done"

    return attempt


def busy(retry_after_s: float | None = None) -> LlmRateLimited:
    return LlmRateLimited("m", "busy", retry_after_s)


def test_a_first_success_waits_for_nothing() -> None:
    clock = Clock()
    assert clock.policy().run(failing(), "m") == ("done", 0)
    assert clock.waits == []


def test_waits_double_up_to_the_longest() -> None:
    clock = Clock()
    attempt = failing(*(busy() for _ in range(5)))
    assert clock.policy(first_wait_s=1.0, longest_wait_s=5.0).run(attempt, "m") == ("done", 5)
    assert clock.waits == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_at_least_what_the_service_asks_for_is_waited() -> None:
    clock = Clock()
    clock.policy().run(failing(busy(30.0), busy(0.5)), "m")
    assert clock.waits == [30.0, 2.0]


def test_a_service_that_asks_for_too_long_is_not_waited_for() -> None:
    clock = Clock()
    with pytest.raises(LlmRateLimited) as caught:
        clock.policy(longest_asked_s=60.0).run(failing(busy(3600.0)), "m")
    assert clock.waits == []
    assert caught.value.retries == 0


def test_the_last_error_says_how_often_it_was_tried() -> None:
    clock = Clock()
    with pytest.raises(LlmOverloaded, match=r"m: 3 \(given up after 3 attempts\)") as caught:
        clock.policy(attempts=3).run(failing(busy(), busy(), LlmOverloaded("m", "3"), busy()), "m")
    assert caught.value.retries == 2
    assert len(clock.waits) == 2


def test_what_cannot_pass_is_not_repeated() -> None:
    clock = Clock()
    with pytest.raises(LlmAuthFailed) as caught:
        clock.policy().run(failing(busy(), LlmAuthFailed("m", "wrong key"), busy()), "m")
    assert caught.value.retries == 1


def test_errors_that_are_not_ours_go_through() -> None:
    def attempt() -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Clock().policy().run(attempt, "m")


def test_no_wait_goes_beyond_the_deadline() -> None:
    clock = Clock()
    attempt = failing(*(busy() for _ in range(9)))
    with pytest.raises(LlmDeadline, match="no time is left for another attempt; the last one: m: busy") as caught:
        clock.policy().run(attempt, "m", clock.deadline(4.0))
    assert clock.waits == [1.0, 2.0]
    assert caught.value.retries == 2
    assert isinstance(caught.value.__cause__, LlmRateLimited)


@given(st.integers(0, 2000), st.floats(0, 1, exclude_max=True), st.none() | st.floats(0, 1e6))
def test_jitter_takes_at_most_half_and_never_comes_before_it_may(
    repetition: int, chance: float, asked: float | None
) -> None:
    policy = RetryPolicy(first_wait_s=1.0, longest_wait_s=60.0, random=lambda: chance)
    full = min(60.0, 2.0 ** min(repetition, 10))
    wait = policy.wait_s(repetition, busy(asked))
    assert wait >= (asked or 0.0)
    assert max(full / 2, asked or 0.0) <= wait <= max(full, (asked or 0.0) * 1.1)


def test_the_same_seed_gives_the_same_waits() -> None:
    def waits() -> list[float]:
        policy = RetryPolicy(random=random.Random(7).random)
        return [policy.wait_s(n, busy()) for n in range(5)]

    assert waits() == waits()
    assert len(set(waits())) == 5


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"first_wait_s": -1.0}, {"longest_wait_s": -0.1}])
def test_impossible_policies_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        RetryPolicy(**wrong)  # type: ignore[arg-type]


# Limits


def test_no_more_calls_than_allowed_are_under_way() -> None:
    limits = RateLimits(concurrency=3)
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
    limits = RateLimits(concurrency=1)
    with (
        limits.slot(1, "m"),
        pytest.raises(LlmDeadline, match=r"llm\.concurrency"),
        limits.slot(1, "m", Deadline.after(0.01)),
    ):
        pass


def test_a_place_comes_free_after_an_error() -> None:
    limits = RateLimits(concurrency=1)
    with pytest.raises(ZeroDivisionError), limits.slot(1, "m"):
        raise ZeroDivisionError
    with limits.slot(1, "m", Deadline.after(0.01)):
        pass


def test_tokens_of_a_minute_are_waited_for() -> None:
    clock = Clock()
    limits = RateLimits(tokens_per_minute=100, sleep=clock.sleep, clock=clock)
    began = []
    for tokens in (60, 40, 10, 90, 5):
        with limits.slot(tokens, "m"):
            began.append(clock.now)
        clock.now += 10.0
    # 60 + 40 fill the first minute; at 60 the first leaves it; 90 more need the 40 of second 10 to leave, too.
    assert began == [0.0, 10.0, 60.0, 70.0, 120.0]


def test_what_was_really_used_counts() -> None:
    clock = Clock()
    limits = RateLimits(tokens_per_minute=100, sleep=clock.sleep, clock=clock)
    with limits.slot(90, "m") as spent:
        spent.settle(10)
    with limits.slot(90, "m"):
        assert clock.now == 0.0


def test_a_call_above_the_limit_goes_through_alone() -> None:
    clock = Clock()
    limits = RateLimits(tokens_per_minute=100, sleep=clock.sleep, clock=clock)
    with limits.slot(500, "m"):
        assert clock.now == 0.0
    with limits.slot(1, "m"):
        assert clock.now == WINDOW_S


def test_tokens_that_come_too_late_are_not_waited_for() -> None:
    clock = Clock()
    limits = RateLimits(tokens_per_minute=10, sleep=clock.sleep, clock=clock)
    with limits.slot(10, "m"):
        pass
    deadline = Deadline.after(30.0, clock)
    with pytest.raises(LlmDeadline, match="tokens_per_minute=10"), limits.slot(10, "m", deadline):
        pass
    assert clock.now <= 30.0


@given(st.lists(st.tuples(st.integers(1, 150), st.floats(0, 90)), max_size=30))
def test_no_minute_holds_more_tokens_than_allowed(calls: list[tuple[int, float]]) -> None:
    clock = Clock()
    limits = RateLimits(tokens_per_minute=100, sleep=clock.sleep, clock=clock)
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
        RateLimits(**wrong)  # type: ignore[arg-type]
