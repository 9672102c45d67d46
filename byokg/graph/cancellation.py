"""Cancellation of work: a client that gave up, a time limit, a server that shuts down.

    stop = CancelToken(timeout_s=30)
    with stop.work():          # in the thread that works
        bfs_query(...)         # raises CallStopped once `stop.end()` was called, or the time is over

Long loops call `check`, which costs a tenth of a microsecond without a token.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from byokg.errors import CallStopped


class CancelToken:
    """Cancellation token of some work. Any thread may cancel it.

    Args:
        timeout_s: seconds until it is cancelled; None waits for `end`.
    """

    __slots__ = ("_ended", "_until")

    def __init__(self, timeout_s: float | None = None) -> None:
        self._until = None if timeout_s is None else time.monotonic() + timeout_s
        self._ended = False

    def end(self) -> None:
        """Let the work end at its next `check`."""
        self._ended = True

    @property
    def over(self) -> bool:
        """True if the work is cancelled."""
        return self._ended or (self._until is not None and time.monotonic() > self._until)

    def left_s(self, most: float) -> float:
        """Return the seconds that are left, `most` at most and 0 at least."""
        left = most if self._until is None else min(most, self._until - time.monotonic())
        return 0.0 if self._ended else max(0.0, left)

    @contextmanager
    def work(self) -> Iterator[None]:
        """Let `check` in this thread look here."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)


_CURRENT: ContextVar[CancelToken | None] = ContextVar("byokg_stop", default=None)


def check() -> None:
    """Raise `CallStopped` if the work of this thread is cancelled."""
    stop = _CURRENT.get()
    if stop is not None and stop.over:
        raise CallStopped


def left_s(most: float) -> float:
    """Return the seconds that the work of this thread may still take, `most` at most."""
    stop = _CURRENT.get()
    return most if stop is None else stop.left_s(most)
