"""What can go wrong between a client and a language model, and how often it should."""

from __future__ import annotations

import random
import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Literal, get_args

Fault = Literal[
    "rate_limit",  # 429 with retry-after
    "overloaded",  # 529, or what the protocol has for it
    "server_error",  # 500
    "hang",  # nothing comes, and the connection stays
    "drop",  # the connection ends before a byte is sent
    "cut",  # it ends in the middle of the body
    "malformed",  # the body is broken JSON
    "half_stream",  # a stream ends in good order, but without its end
    "wrong_type",  # an HTML page with status 200
    "drip",  # one byte after the other, for longer than anybody waits
]

FAULTS: tuple[Fault, ...] = get_args(Fault)


@dataclass
class Faults:
    """Decides which request meets which fault.

    `planned` come first, one for each request. After them, each of `kinds` strikes with the probability `rate`: 0.05
    for two kinds lets every tenth request fail. The choice is seeded. `retry_after` is what 429 answers ask for.
    """

    planned: deque[Fault] = field(default_factory=deque)
    kinds: tuple[Fault, ...] = ()
    rate: float = 0.0
    seed: int = 0
    retry_after: str = "0"
    met: Counter[Fault] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._lock = threading.Lock()

    def next(self) -> Fault | None:
        """Return the fault of the next request; None for none."""
        with self._lock:
            fault: Fault | None = None
            if self.planned:
                fault = self.planned.popleft()
            elif self.kinds:
                place = int(self._random.random() / self.rate) if self.rate else len(self.kinds)
                fault = self.kinds[place] if place < len(self.kinds) else None
            if fault is not None:
                self.met[fault] += 1
            return fault
