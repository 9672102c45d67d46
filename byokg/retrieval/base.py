"""What every retriever is given and gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from byokg.types import Artifacts, Context, Evidence, Linked, Question, Step


@dataclass(frozen=True)
class Request:
    """All that a round knows; a retriever reads what it needs."""

    question: Question
    artifacts: Artifacts
    linked: Linked
    context: Context
    steps: list[Step] = field(default_factory=list, compare=False)
    """What retrievers did in this round, in order; they add to it with `note`."""

    def note(self, stage: str, given: Mapping[str, object], got: Mapping[str, object]) -> None:
        """Record a step for the trace; `given` and `got` hold what JSON can."""
        self.steps.append(Step(stage, given, got))


class Retriever(Protocol):
    """Fetches evidence from the graph."""

    def retrieve(self, request: Request) -> Sequence[Evidence]:
        """Return evidence, best first; nothing found is an empty sequence, not an error."""
