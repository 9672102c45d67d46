"""Tests of `byokg.llm.failures`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.errors import ConfigError, LlmAuthFailed, LlmDeadline, LlmError, LlmOverloaded, LlmRateLimited
from byokg.llm.failures import Deadline, RetryPolicy


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def policy(self, **settings: float | int) -> RetryPolicy:
        """Return a policy that leaves nothing out of a wait."""
        return RetryPolicy(sleep=self.sleep, random=lambda: 0.0, **settings)  # type: ignore[arg-type]

    def deadline(self, seconds: float) -> Deadline:
        return Deadline.after(seconds, lambda: self.now)


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
