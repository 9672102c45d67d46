"""The same work wanted by several threads at the same time is done once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Generic, TypeVar

from byokg.errors import LlmDeadline
from byokg.llm.deadline import Deadline

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Does work once per key at a time; who comes meanwhile waits for its outcome."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[T]] = {}

    def run(self, key: str, work: Callable[[], T], model: str, deadline: Deadline | None = None) -> tuple[T, bool]:
        """Do the work, or wait for whoever does it already.

        An error of the work is everybody's, with one exception: when the one who works ran out of its own time or was
        interrupted, the next one starts anew.

        Returns:
            The outcome, and whether the caller did the work itself.

        Raises:
            LlmDeadline: the caller's time was over before the outcome came.
        """
        while True:
            with self._lock:
                flight = self._under_way.get(key)
                leads = flight is None
                if flight is None:
                    flight = self._under_way[key] = Future()
            if leads:
                return self._lead(key, work, flight), True
            try:
                return flight.result(None if deadline is None else deadline.left_s), False
            except FutureTimeout as error:
                if flight.done():
                    raise  # the work itself raised it
                raise LlmDeadline(model, "no time is left; the same call was under way already") from error
            except (LlmDeadline, _Interrupted):
                continue

    def _lead(self, key: str, work: Callable[[], T], flight: Future[T]) -> T:
        try:
            outcome = work()
        except BaseException as error:
            self._land(key)
            flight.set_exception(error if isinstance(error, Exception) else _Interrupted())
            raise
        self._land(key)
        flight.set_result(outcome)
        return outcome

    def _land(self, key: str) -> None:
        with self._lock:
            del self._under_way[key]


class _Interrupted(Exception):
    """Whoever did the work was stopped, not the work."""
