"""Questions with their gold answers, and what an evaluation setting lets a pipeline see of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from byokg.graph.store import GraphStore
from byokg.types import Cell, EntityId, Question


@dataclass(frozen=True)
class Example:
    """One question with its gold answers and annotations.

    Gold answers stay here: a pipeline gets `asked(...)`, a `Question` without them.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    answer_ids: tuple[EntityId, ...] = ()
    topic_entities: tuple[str, ...] = ()
    topic_ids: tuple[EntityId, ...] = ()
    hops: int | None = None
    split: str = ""
    type: str = ""
    answer_type: str = ""
    """What kind of thing the answers are, where the set says so (CronQuestions: `entity` or `time`)."""
    aliases: tuple[tuple[str, ...], ...] = ()
    """Other names of each answer, parallel to `answers`; empty where the set lists none."""
    parses: tuple[tuple[str, ...], ...] = ()
    """Answer ids of each annotated reading of the question (WebQSP); empty where there is one reading only."""
    support: tuple[tuple[str, str, str], ...] = ()
    """Annotated triples that an answer rests on: head, relation, tail, as the set writes them."""
    query: str = ""
    """Annotated graph query whose result is the answer."""
    rows: tuple[tuple[Cell, ...], ...] = ()
    """Result of `query`: texts, numbers, truth values, None, and tuples and mappings of these."""

    def asked(
        self, entities: Literal["gold", "linked"] = "linked", hops: Literal["gold", "predicted"] = "predicted"
    ) -> Question:
        """Return what the pipeline may see: the text, plus only the annotations that are granted."""
        return Question(
            id=self.id,
            text=self.question,
            topic_ids=self.topic_ids if entities == "gold" else (),
            hops=self.hops if hops == "gold" else None,
        )


class Dataset(Protocol):
    """Named questions over one graph."""

    @property
    def name(self) -> str:
        """Name the set and the part of it, for tables (`metaqa 2-hop test`)."""

    @property
    def checksum(self) -> str:
        """Return the sha256 hex digest of the question file's content (decompressed)."""

    def examples(self) -> Sequence[Example]:
        """Return all examples of the chosen split, in file order. Raises `DatasetError`."""

    def left_out(self) -> Mapping[str, int]:
        """Return how many questions of the file are not among the examples though the split has them, by reason.

        A published set may hold questions without gold answers, which nobody can score.
        """

    def graph_source(self) -> Path:
        """Return the file or folder that `byokg graph build` would take for this set's graph."""


@runtime_checkable
class SubgraphDataset(Dataset, Protocol):
    """Questions that each bring a graph of their own."""

    def subgraph(self, id: str) -> GraphStore:
        """Return the graph of one question, held in memory. Raises `DatasetError` for an unknown id."""
