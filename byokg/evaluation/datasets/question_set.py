"""A published data set in one of its layouts: read when first asked for, and the graph that goes with it.

Reads published question files as records: JSON, JSON lines, CSV and Parquet, each plain or compressed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as parquet

from byokg.errors import ConfigError, DatasetError
from byokg.evaluation.datasets.base import Example, locate, read_bytes, read_text
from byokg.evaluation.datasets.folder import by_name

_ROWS_AT_ONCE = 64
"""Rows of a Parquet file that are Python objects at the same time; each may hold thousands of triples."""


@dataclass(frozen=True)
class Record:
    """One question as it stands in its file."""

    path: Path
    place: int
    """Its line, or its position among the records, from 1."""
    fields: Mapping[str, Any]

    def wrong(self, reason: str) -> DatasetError:
        """Return the error that says what is wrong with this record."""
        return DatasetError(self.path, self.place, reason)

    def text(self, *names: str) -> str:
        """Return the first of these fields that is there, as text.

        Raises:
            DatasetError: none of them holds text or a whole number.
        """
        for name in names:
            value = self.fields.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)
            if isinstance(value, str) and value.strip():
                return value
        raise self.wrong(f"has no text in {' or '.join(names)}; it holds {', '.join(self.fields)}")

    def several(self, name: str) -> Sequence[Any]:
        """Return a list; none where the field is absent. Raises `DatasetError` where it is something else."""
        value = self.fields.get(name)
        if value is None:
            return ()
        if not isinstance(value, list | tuple | set | frozenset):
            raise self.wrong(f"field {name!r} should be a list, not {value!r}")
        return sorted(value, key=lambda each: (str(type(each)), each)) if isinstance(value, set | frozenset) else value

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return a mapping; an empty one where the field is absent. Raises `DatasetError` if it is something else."""
        value = self.fields.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.wrong(f"field {name!r} should be a mapping, not {value!r}")
        return value


@dataclass(frozen=True)
class RecordFile:
    """A question file's records and the digest of its content."""

    path: Path
    checksum: str
    """sha256 hex digest of the decompressed bytes; of several Parquet files, of all of them in order."""
    records: Sequence[Record]


def read_records(path: Path) -> RecordFile:
    """Read a whole file of JSON, JSON lines (`.jsonl`) or CSV.

    A JSON file is a list of records, or an object that holds such a list in one of its fields (`Questions`).

    Raises:
        DatasetError: the file cannot be read, or is not of that kind.
    """
    kind = path.with_suffix("").suffix if path.suffix in (".xz", ".gz") else path.suffix
    if kind == ".jsonl":
        text = read_text(path)
        return RecordFile(path, text.checksum, [_line(path, number, line) for number, line in text.lines])
    content = read_bytes(path)
    checksum = hashlib.sha256(content).hexdigest()
    try:
        decoded = content.decode("utf-8-sig")
        if kind == ".csv":
            rows = csv.DictReader(io.StringIO(decoded, newline=""), strict=True)
            return RecordFile(path, checksum, [Record(path, rows.line_num, row) for row in rows])
        found = json.loads(decoded)
    except (ValueError, csv.Error) as error:
        raise DatasetError(
            path, None, f"is not {kind.removeprefix('.').upper() or 'JSON'} in UTF-8 ({error})"
        ) from error
    if isinstance(found, dict):
        found = next((value for value in found.values() if isinstance(value, list)), None)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise DatasetError(path, None, "is not a JSON list of objects, nor an object that holds one")
    return RecordFile(path, checksum, [Record(path, place, each) for place, each in enumerate(found, start=1)])


def stream_lines(path: Path) -> tuple[str, Iterator[Record]]:
    """Return the checksum of a file of JSON lines, and its records one at a time. Raises `DatasetError`."""
    text = read_text(path)
    return text.checksum, (_line(path, number, line) for number, line in text.lines)


def stream_parquet(paths: Sequence[Path]) -> tuple[str, Iterator[Record]]:
    """Return the checksum of Parquet files, and their rows one at a time. Raises `DatasetError`."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(read_bytes(path))

    def rows() -> Iterator[Record]:
        for path in paths:
            place = 0
            try:
                for batch in parquet.ParquetFile(path).iter_batches(_ROWS_AT_ONCE):
                    for row in batch.to_pylist():
                        place += 1
                        yield Record(path, place, row)
            except (pa.ArrowException, OSError) as error:
                raise DatasetError(path, None, f"cannot be read as Parquet ({error}); fetch it again") from error

    return digest.hexdigest(), rows()


def _line(path: Path, number: int, line: str) -> Record:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise DatasetError(path, number, f"is not JSON ({error})") from error
    if not isinstance(record, dict):
        raise DatasetError(path, number, "is not a JSON object")
    return Record(path, number, record)


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
