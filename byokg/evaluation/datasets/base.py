"""Questions with their gold answers, and what an evaluation setting lets a pipeline see of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from byokg.types import EntityId, Question, Value


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
    rows: tuple[tuple[Value | None, ...], ...] = ()
    """Result of `query`."""

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

    def graph_source(self) -> Path:
        """Return the file or folder that `byokg graph build` would take for this set's graph."""
