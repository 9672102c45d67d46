"""Questions with their gold answers, and what an evaluation setting lets a pipeline see of them.

`Dataset` is what an evaluation asks for, `QuestionSet` what all data sets of this package are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, cast, runtime_checkable

from byokg.errors import ConfigError, DatasetError
from byokg.evaluation.datasets.question_files import Record, RecordFile, locate
from byokg.graph.store import GraphStore
from byokg.types import Cell, EntityId, Question

Ids = Literal["ids", "names"]

NO_ANSWER = "no gold answer"


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
    """What kind of thing the answers are, if the set says so (CronQuestions: `entity` or `time`)."""
    aliases: tuple[tuple[str, ...], ...] = ()
    """Other names of each answer, parallel to `answers`; empty if the set lists none."""
    parses: tuple[tuple[str, ...], ...] = ()
    """Answer ids of each annotated reading of the question (WebQSP); empty if there is one reading only."""
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


def named_example(
    id: str, question: str, answers: Mapping[str, str], topics: Mapping[str, str], **more: Any
) -> Example:
    """Return an example whose answers and topics are given as names by id, the other fields as `Example` has them."""
    return Example(
        id=id,
        question=question,
        answers=tuple(answers.values()),
        answer_ids=tuple(map(EntityId, answers)),
        topic_entities=tuple(topics.values()),
        topic_ids=tuple(map(EntityId, topics)),
        **more,
    )


def by_name(example: Example) -> Example:
    """Return the example for a graph whose node ids are names."""
    return replace(
        example,
        topic_ids=tuple(map(EntityId, example.topic_entities)),
        answer_ids=tuple(map(EntityId, example.answers)),
    )


def is_by_name(examples: Sequence[Example]) -> bool:
    """Tell whether all ids of gold answers, if there are any, are their names."""
    given = [example for example in examples if example.answer_ids]
    return bool(given) and all(example.answer_ids == example.answers for example in given)


def as_cell(value: Any) -> Cell:
    """Return a value read from JSON as a cell of a result: lists become tuples."""
    if isinstance(value, list | tuple):
        return tuple(map(as_cell, value))
    if isinstance(value, dict):
        return {str(key): as_cell(each) for key, each in value.items()}
    return cast(Cell, value)


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
        """Return how many questions of the split are not among the examples, by reason.

        A published set may hold questions without gold answers, which nobody can score.
        """

    def graph_source(self) -> Path:
        """Return the file or folder that `byokg graph build` would take for this set's graph."""


@runtime_checkable
class SubgraphDataset(Dataset, Protocol):
    """Questions that each bring a graph of their own."""

    def subgraph(self, id: str) -> GraphStore:
        """Return the graph of one question, held in memory. Raises `DatasetError` for an unknown id."""


@dataclass(frozen=True)
class Loaded:
    """What a question file holds."""

    path: Path
    checksum: str
    examples: tuple[Example, ...]
    left_out: Mapping[str, int]


def reason_without_answer(record: Record, example: Example) -> str:
    """Return why a question cannot be scored; empty if it can."""
    return "" if example.answers else NO_ANSWER


def load(
    file: RecordFile,
    example: Callable[[Record], Example],
    keep: Callable[[Record], bool] = lambda record: True,
    leave_out: Callable[[Record, Example], str] = reason_without_answer,
) -> Loaded:
    """Read the questions of a file.

    Args:
        file: the file, opened.
        example: makes an example of a record.
        keep: tells whether a record belongs to the wanted part of the set.
        leave_out: returns the reason for which an example is left out, and counted; empty for the others.

    Raises:
        DatasetError: a record is malformed, or two have the same id.
    """
    places: dict[str, int] = {}
    examples: list[Example] = []
    left_out: Counter[str] = Counter()
    for record in filter(keep, file.records):
        made = example(record)
        if made.id in places:
            first = f"{record.path.name}:{places[made.id]}"
            raise record.wrong(f"id {made.id!r} is already used in {first}; ids must be unique")
        places[made.id] = record.place
        if reason := leave_out(record, made):
            left_out[reason] += 1
        else:
            examples.append(made)
    return Loaded(file.path, file.checksum, tuple(examples), dict(left_out))


class QuestionSet:
    """The questions of one part of a data set, with the graph they are asked of; a `Dataset`.

    Args:
        name: of the set and the part of it, for tables.
        read: reads the question file; called once, when its content is first asked for.
        graph: file or folder of the graph; None takes the set's own.
        own_graph: finds the graph that comes with the questions, or raises `DatasetError`.
        ids: with "names", topics and answers are looked for in the graph by their names.
        write_graph: writes the graph's published files as a folder that `byokg graph build` takes; None if it takes
            them as they are.

    Raises:
        ConfigError: `ids` is neither "ids" nor "names".
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], Loaded],
        graph: str | Path | None,
        own_graph: Callable[[], Path],
        ids: Ids = "ids",
        write_graph: Callable[[Path], None] | None = None,
    ) -> None:
        if ids not in ("ids", "names"):
            raise ConfigError(f"dataset.ids is 'ids' or 'names', not {ids!r}")
        self._name, self._read, self._ids = name, read, ids
        self._graph, self._own_graph, self._write_graph = graph, own_graph, write_graph

    @property
    def name(self) -> str:
        """Return the set's name and split."""
        return self._name

    @property
    def checksum(self) -> str:
        """Return the sha256 hex digest of the question file's content (decompressed)."""
        return self._loaded.checksum

    def examples(self) -> tuple[Example, ...]:
        """Return the questions in file order.

        Raises:
            DatasetError: the file is missing, a record is malformed, two have the same id, or none is left.
        """
        return self._loaded.examples

    def left_out(self) -> Mapping[str, int]:
        """Return how many questions of the file are left out, by reason."""
        return self._loaded.left_out

    def graph_source(self) -> Path:
        """Return what `byokg graph build` takes. Raises `DatasetError`."""
        if self._graph is None:
            return self._own_graph()
        if not Path(self._graph).exists():
            raise DatasetError(self._graph, None, "is not there; dataset.graph names the graph's file or folder")
        return Path(self._graph)

    def write_graph(self, out: Path) -> None:
        """Write the set's own graph as a folder that `byokg graph build` takes.

        Raises:
            ConfigError: it takes the published files as they are, or the set comes without a graph.
            DatasetError: a file is missing or malformed.
        """
        if self._write_graph is None:
            raise ConfigError(
                f"the graph of {self._name} needs no conversion; build it as it is, or name another with dataset.graph="
            )
        self._write_graph(out)

    @cached_property
    def _loaded(self) -> Loaded:
        loaded = self._read()
        if not loaded.examples:
            raise DatasetError(loaded.path, None, "holds no question that can be scored; check dataset.split")
        return replace(loaded, examples=tuple(map(by_name, loaded.examples))) if self._ids == "names" else loaded


def graph_finder(root: str | Path, *names: str, convert: str = "") -> Callable[[], Path]:
    """Return a function that finds the first of `names` in `root`.

    With `convert`, what `QuestionSet.write_graph` writes is looked for in the folder of that name, too.
    """

    def find() -> Path:
        path = locate(Path(root), *names)
        if path is not None:
            return path
        if not convert:
            held = f"none of {', '.join(names)} lies there" if names else "these questions come without one"
            raise DatasetError(root, None, f"has no graph: {held}; name one with dataset.graph=PATH or graph.path=DIR")
        written = Path(root) / convert
        if not written.is_dir():
            reason = (
                f"its graph has to be converted once: byokg data graph KEY=VALUE… --out {written}, with the dataset "
                "settings of this run"
            )
            raise DatasetError(root, None, reason)
        return written

    return find


def one_of(setting: str, value: str, known: Sequence[str]) -> str:
    """Return the value. Raises `ConfigError` unless it is one of those known."""
    if value not in known:
        raise ConfigError(f"{setting} is one of {', '.join(known)}, not {value!r}")
    return value
