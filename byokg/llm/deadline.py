"""The time a question may take altogether, shared by all its calls."""

from __future__ import annotations

import time
from collections.abc import Callable
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
