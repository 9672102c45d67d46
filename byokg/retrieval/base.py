"""What every retriever is given and gives back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from byokg.types import Artifacts, Context, EntityId, Evidence, Linked, LinkedEntity, Mention, Question, Step


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


def best_first(*linked: Sequence[LinkedEntity]) -> list[EntityId]:
    """Return linked ids, each once: the first candidate of each mention, then the second of each, and so on.

    Args:
        linked: entities, and draft answers; of candidates of one rank those of an earlier sequence come first.
    """
    ranked: list[tuple[int, EntityId]] = []
    for candidates in linked:
        counts: Counter[Mention] = Counter()
        for one in candidates:
            ranked.append((counts[one.mention], one.id))
            counts[one.mention] += 1
    return list(dict.fromkeys(id for _, id in sorted(ranked, key=lambda each: each[0])))


class Retriever(Protocol):
    """Fetches evidence from the graph."""

    def retrieve(self, request: Request) -> Sequence[Evidence]:
        """Return evidence, best first; nothing found is an empty sequence, not an error."""
