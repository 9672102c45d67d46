"""A store of replies and a meter that live in memory."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from byokg.errors import BudgetExceeded
from byokg.llm.messages import Call, Reply


class MemoryReplies:
    """Keeps replies in a dictionary, and remembers how often each call was put."""

    def __init__(self, replay_only: bool = False) -> None:
        self.replay_only = replay_only
        self.replies: dict[str, Reply] = {}
        self.puts: list[str] = []
        self._lock = threading.Lock()

    def get(self, call: Call) -> Reply | None:
        """Return the reply kept for a call."""
        return self.replies.get(call.key)

    def nearest(self, call: Call) -> str:
        """Say nothing."""
        return ""

    def put(self, call: Call, reply: Reply, stage: str = "") -> None:
        """Keep a reply."""
        with self._lock:
            self.replies[call.key] = reply
            self.puts.append(call.key)


@dataclass
class CountingMeter:
    """Counts what happens, and lets at most `max_calls` be sent."""

    max_calls: int | None = None
    reserved: int = 0
    """Calls that were allowed, less those that failed."""
    sent: list[Reply] = field(default_factory=list)
    replayed: list[Reply] = field(default_factory=list)
    failures: list[tuple[str, int]] = field(default_factory=list)
    """Question and retries of each call without an answer."""
    stages: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def before(self, call: Call, stage: str, question_id: str) -> None:
        """Reserve one call."""
        with self._lock:
            if self.max_calls is not None and self.reserved >= self.max_calls:
                raise BudgetExceeded(call.model, f"budget.max_calls={self.max_calls} is used up")
            self.reserved += 1

    def after(self, call: Call, reply: Reply, stage: str, question_id: str, replayed: bool) -> None:
        """Count an answered call."""
        with self._lock:
            self.stages.add((stage, question_id))
            (self.replayed if replayed else self.sent).append(reply)

    def failed(self, call: Call, retries: int, stage: str, question_id: str) -> None:
        """Count an unanswered call."""
        with self._lock:
            self.reserved -= 1
            self.failures.append((question_id, retries))
