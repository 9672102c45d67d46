"""Calls put aside: what a run waits for, to be answered together later."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from byokg.llm.records import Call
from byokg.llm.replies import RecordedReplies


@dataclass(frozen=True)
class PendingCall:
    """A call without a reply yet, and what it is for."""

    call: Call
    stage: str
    question_id: str


class PendingCalls:
    """Collects calls from many threads; each call once, whoever asks for it.

    Args:
        store: told which replies to expect, so that they can be imported by key.
    """

    def __init__(self, store: RecordedReplies) -> None:
        self.store = store
        self.failed: dict[str, str] = {}
        """Keys of calls that will never be answered, with the reasons."""
        self._calls: dict[str, PendingCall] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call: Call, stage: str, question_id: str) -> None:
        """Put a call aside."""
        with self._lock:
            if call.key in self._calls:
                return
            self._calls[call.key] = PendingCall(call, stage, question_id)
        self.store.expect(call, stage)

    def take(self) -> list[PendingCall]:
        """Return what was collected, in an order that does not depend on threads, and begin anew."""
        with self._lock:
            taken, self._calls = self._calls, {}
        return sorted(taken.values(), key=lambda each: (each.question_id, each.stage, each.call.key))
