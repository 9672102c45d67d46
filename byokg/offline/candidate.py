"""Answer candidates."""

from __future__ import annotations

from dataclasses import dataclass

from byokg.types import EntityId, PathEvidence


@dataclass(frozen=True)
class Candidate:
    """Nodes that may be the answer, with the paths that lead to all of them."""

    score: float
    nodes: tuple[EntityId, ...]
    paths: tuple[PathEvidence, ...] = ()

    @property
    def evidence_ids(self) -> tuple[str, ...]:
        """Return the ids of the paths, in order."""
        return tuple(path.id for path in self.paths)
