"""The time a question may take altogether, shared by all its calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Deadline:
    """A moment after which nothing is waited for. `at` is a reading of `clock`, in seconds."""

    at: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """Return the moment that many seconds from now."""
        return cls(clock() + seconds, clock)

    @property
    def left_s(self) -> float:
        """Return the seconds that are left; 0 when it has passed."""
        return max(0.0, self.at - self.clock())

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Make this the deadline of all that is asked inside, in this thread, without handing it on."""
        token = _HELD.set(self)
        try:
            yield
        finally:
            _HELD.reset(token)

    @staticmethod
    def held() -> Deadline | None:
        """Return the deadline that is held where this is called; None when there is none."""
        return _HELD.get()


_HELD: ContextVar[Deadline | None] = ContextVar("deadline", default=None)
