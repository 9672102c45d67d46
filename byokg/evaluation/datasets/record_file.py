"""Reads published question files as records: JSON, JSON lines, CSV and Parquet, each plain or compressed."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from byokg.errors import DatasetError
from byokg.evaluation.datasets.text import read_bytes, read_text

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
