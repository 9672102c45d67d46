"""Sending again what may succeed later: exponential backoff with jitter that honours what the service asks for."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import tenacity

from byokg.errors import ConfigError, LlmDeadline, LlmError
from byokg.llm.deadline import Deadline

T = TypeVar("T")


@dataclass(frozen=True)
class RetryPolicy:
    """How often and after which waits a call is repeated.

    Before repetition n (from 0) it waits `first_wait_s · 2ⁿ`, at most `longest_wait_s`, of which a random part of up
    to one half is left out so that many workers do not return at the same moment. Where the service asks for a wait
    (`retry-after`), it is at least that one. A service that asks for more than `longest_asked_s` is not waited for.

    `sleep` and `random` (from [0, 1)) may be replaced, so that tests neither wait nor vary.

    Raises:
        ConfigError: fewer than one attempt, or a negative wait.
    """

    attempts: int = 6
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    longest_asked_s: float = 600.0
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ConfigError(f"attempts of a language model are {self.attempts}; give 1 (never repeat) or more")
        for name in ("first_wait_s", "longest_wait_s", "longest_asked_s"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} of a retry policy is {getattr(self, name)}; give 0 or more seconds")

    def wait_s(self, repetition: int, error: BaseException) -> float:
        """Return the seconds to wait before a repetition, counted from 0."""
        backoff = min(self.longest_wait_s, self.first_wait_s * 2.0 ** min(repetition, 60))  # 2 ** 1024 is no float
        asked = getattr(error, "retry_after_s", None) or 0.0
        return max(asked * (1 + self.random() / 10), backoff * (1 - self.random() / 2))

    def run(self, attempt: Callable[[], T], model: str, deadline: Deadline | None = None) -> tuple[T, int]:
        """Make attempts until one succeeds.

        Args:
            attempt: what to do; an `LlmError` that is `retryable` repeats it, anything else it raises ends it.
            model: named by the error when time is up.
            deadline: no wait goes beyond it.

        Returns:
            What the attempt returned, and how many repetitions it took.

        Raises:
            LlmError: the last attempt's, with `retries` filled in.
            LlmDeadline: the next attempt would come too late; the last failure is its cause.
        """

        made = 0

        def counted() -> T:
            nonlocal made
            made += 1
            return attempt()

        def hopeless(state: tenacity.RetryCallState) -> bool:
            asked = getattr(_error(state), "retry_after_s", None) or 0.0
            return state.attempt_number >= self.attempts or asked > self.longest_asked_s

        def too_late(state: tenacity.RetryCallState) -> bool:
            return deadline is not None and state.upcoming_sleep >= deadline.left_s

        def give_up(state: tenacity.RetryCallState) -> T:
            error = _error(state)
            if hopeless(state):
                raise error
            raise LlmDeadline(model, f"no time is left for another attempt; the last one: {error}") from error

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, LlmError) and error.retryable),
            wait=lambda state: self.wait_s(state.attempt_number - 1, _error(state)),
            stop=lambda state: hopeless(state) or too_late(state),
            sleep=self.sleep,
            retry_error_callback=give_up,
        )
        try:
            return retrying(counted), made - 1
        except LlmError as error:
            error.retries = made - 1
            raise


def _error(state: tenacity.RetryCallState) -> BaseException:
    """Return what the last attempt raised."""
    assert state.outcome is not None
    error = state.outcome.exception()
    assert error is not None
    return error
