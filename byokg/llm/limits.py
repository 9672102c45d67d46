"""How much is asked of one provider at a time: calls at once, and tokens in a minute."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from byokg.errors import ConfigError, LlmDeadline
from byokg.llm.deadline import Deadline

WINDOW_S = 60.0


@dataclass
class Spent:
    """Tokens of one call that began at `at`: an estimate until `settle` replaces it."""

    at: float
    tokens: int

    def settle(self, tokens: int) -> None:
        """Replace the estimate by what the service counted."""
        self.tokens = tokens


class Limits:
    """Makes calls wait while a provider's limits are reached. Models that share one share its limits.

    The token limit holds for every 60 seconds, counted by when a call begins: a call waits until what began in the
    last minute, and its own estimate, fit together. A single call above the limit goes through when it is alone.

    Args:
        concurrency: calls under way at the same time; None for any number.
        tokens_per_minute: tokens in and out; None for any number.
        sleep: waits that many seconds; replaced in tests together with `clock`.
        clock: seconds from any fixed moment.

    Raises:
        ConfigError: a limit is below 1.
    """

    def __init__(
        self,
        concurrency: int | None = None,
        tokens_per_minute: int | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for name, value in (("concurrency", concurrency), ("tokens_per_minute", tokens_per_minute)):
            if value is not None and value < 1:
                raise ConfigError(f"{name} of a language model is {value}; give 1 or more, or null for no limit")
        self._slots = None if concurrency is None else threading.BoundedSemaphore(concurrency)
        self._tokens_per_minute = tokens_per_minute
        self._sleep = sleep
        self._clock = clock
        self._turn = threading.Lock()  # one waits for tokens at a time, so a big call is not overtaken for ever
        self._window: deque[Spent] = deque()

    @contextmanager
    def slot(self, tokens: int, model: str, deadline: Deadline | None = None) -> Iterator[Spent]:
        """Wait for the limits, and hold one place while the body runs.

        Args:
            tokens: estimate of what the call will use.
            model: named by the error when time is up.
            deadline: how long to wait at most.

        Yields:
            The call's tokens, to be settled when the service has counted them.

        Raises:
            LlmDeadline: no place came free in time.
        """
        if not self._acquire(self._slots, deadline):
            raise LlmDeadline(model, "no time is left; every one of llm.concurrency calls was still under way")
        try:
            yield self._spend(tokens, model, deadline)
        finally:
            if self._slots is not None:
                self._slots.release()

    @staticmethod
    def _acquire(lock: threading.Lock | threading.Semaphore | None, deadline: Deadline | None) -> bool:
        if lock is None:
            return True
        return lock.acquire() if deadline is None else lock.acquire(timeout=deadline.left_s)

    def _spend(self, tokens: int, model: str, deadline: Deadline | None) -> Spent:
        """Wait until the tokens fit into the last minute, and enter them."""
        limit = self._tokens_per_minute
        if limit is None:
            return Spent(0.0, tokens)
        late = LlmDeadline(model, f"no time is left to wait for llm.tokens_per_minute={limit:,}")
        if not self._acquire(self._turn, deadline):
            raise late
        try:
            while True:
                now = self._clock()
                while self._window and now - self._window[0].at >= WINDOW_S:
                    self._window.popleft()
                if not self._window or tokens + sum(spent.tokens for spent in self._window) <= limit:
                    spent = Spent(now, tokens)
                    self._window.append(spent)
                    return spent
                # At most a second, since replies settle to less meanwhile; at least so long that time passes at all.
                wait = max(0.001, min(1.0, self._window[0].at + WINDOW_S - now))
                if deadline is not None and wait > deadline.left_s:
                    raise late
                self._sleep(wait)
        finally:
            self._turn.release()
