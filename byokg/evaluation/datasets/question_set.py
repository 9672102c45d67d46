"""A published data set in one of its layouts: read when first asked for, and the graph that goes with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from byokg.errors import ConfigError, DatasetError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.folder import by_name
from byokg.evaluation.datasets.record_file import RecordFile
from byokg.evaluation.datasets.text import locate

Ids = Literal["ids", "names"]

NO_ANSWER = "no gold answer"


@dataclass(frozen=True)
class Loaded:
    """What a question file holds."""

    file: RecordFile
    examples: tuple[Example, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)


class QuestionSet:
    """The questions of one split, with the graph they are asked of; a `Dataset`.

    Args:
        name: of the set and the part of it, for tables.
        read: reads the question file; called once, when its content is first asked for.
        graph: finds the graph's source, or raises `DatasetError`.
        ids: with "names", topics and answers are looked for in the graph by their names.
        write: writes the graph's published files as a folder that `byokg graph build` takes; None where it takes them
            as they are.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], Loaded],
        graph: Callable[[], Path],
        ids: Ids = "ids",
        write: Callable[[Path], None] | None = None,
    ) -> None:
        if ids not in ("ids", "names"):
            raise ConfigError(f"dataset.ids is 'ids' or 'names', not {ids!r}")
        self._name, self._read, self._graph, self._ids, self._write = name, read, graph, ids, write

    @property
    def name(self) -> str:
        """Return the set's name and split."""
        return self._name

    @property
    def checksum(self) -> str:
        """Return the sha256 hex digest of the question file's content (decompressed)."""
        return self._loaded.file.checksum

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
        return self._graph()

    def write_graph(self, out: Path) -> None:
        """Write the set's own graph as a folder that `byokg graph build` takes.

        Raises:
            ConfigError: it takes the published files as they are, or the set comes without a graph.
            DatasetError: a file is missing or malformed.
        """
        if self._write is None:
            raise ConfigError(
                f"{self._name} has no graph files that need converting; name its graph with dataset.graph="
            )
        self._write(out)

    @cached_property
    def _loaded(self) -> Loaded:
        loaded = self._read()
        if not loaded.examples:
            raise DatasetError(loaded.file.path, None, "holds no question that can be scored; check dataset.split")
        counts = Counter(example.id for example in loaded.examples)
        [(id, count)] = counts.most_common(1)
        if count > 1:
            raise DatasetError(loaded.file.path, None, f"has {count} questions with the id {id!r}; ids must be unique")
        if self._ids == "ids":
            return loaded
        return Loaded(loaded.file, tuple(map(by_name, loaded.examples)), loaded.left_out)


def scorable(file: RecordFile, examples: Iterable[Example]) -> Loaded:
    """Return the examples that have gold answers, and count the others."""
    read = list(examples)
    kept = tuple(example for example in read if example.answers)
    left_out = {NO_ANSWER: len(read) - len(kept)} if len(kept) < len(read) else {}
    return Loaded(file, kept, left_out)


def graph_finder(root: str | Path, graph: str | Path | None, *names: str, convert: str = "") -> Callable[[], Path]:
    """Return a function that returns `graph` where it is given, or else the first of `names` that lies in `root`.

    With `convert`, what `QuestionSet.write_graph` writes is looked for in the folder of that name, too.
    """

    def find() -> Path:
        if graph is None:
            path = locate(Path(root), *names)
            if path is not None:
                return path
            if convert:
                if (written := Path(root) / convert).is_dir():
                    return written
                reason = (
                    f"its graph has to be converted once: byokg data graph KEY=VALUE… --out {written}, with the "
                    "dataset settings of this run"
                )
                raise DatasetError(root, None, reason)
            held = f"none of {', '.join(names)} lies there" if names else "these questions come without one"
            reason = f"has no graph: {held}; name one with dataset.graph=PATH or graph.path=DIR"
            raise DatasetError(root, None, reason)
        if not Path(graph).exists():
            raise DatasetError(graph, None, "is not there; dataset.graph names the graph's file or folder")
        return Path(graph)

    return find


def one_of(setting: str, value: str, known: Sequence[str]) -> str:
    """Return the value. Raises `ConfigError` unless it is one of those known."""
    if value not in known:
        raise ConfigError(f"{setting} is one of {', '.join(known)}, not {value!r}")
    return value
