"""What every retriever is given and gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from byokg.types import Artifacts, Context, Evidence, Linked, Question


@dataclass(frozen=True)
class Request:
    """All that a round knows; a retriever reads what it needs."""

    question: Question
    artifacts: Artifacts
    linked: Linked
    context: Context


class Retriever(Protocol):
    """Fetches evidence from the graph."""

    def retrieve(self, request: Request) -> Sequence[Evidence]:
        """Return evidence, best first; nothing found is an empty sequence, not an error."""
