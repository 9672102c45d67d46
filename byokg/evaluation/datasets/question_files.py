"""Reads question files as records: text lines, JSON lines, JSON, CSV and Parquet, each plain or compressed."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byokg.errors import DatasetError

SUFFIXES = ("", ".xz", ".gz")

_ROWS_AT_ONCE = 64
"""Rows of a Parquet file that are Python objects at the same time; each may hold thousands of triples."""


@dataclass(frozen=True)
class TextFile:
    """A decompressed text file: its lines that are not blank, each with its number in the file."""

    path: Path
    checksum: str
    """sha256 hex digest of the decompressed bytes, the same whichever way the file is compressed."""
    lines: tuple[tuple[int, str], ...]
    """Line numbers, from 1, and contents without line ends."""


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

    def label(self, *names: str) -> str:
        """Return the first of these fields that holds anything, as text; empty if none does."""
        return next((str(self.fields[name]) for name in names if self.fields.get(name)), "")

    def several(self, name: str) -> Sequence[Any]:
        """Return a list; empty if the field is absent. Raises `DatasetError` if it is something else."""
        value = self.fields.get(name)
        return () if value is None else self.listed(name, value)

    def listed(self, name: str, value: object) -> Sequence[Any]:
        """Return a value of a field as a list, sets in order. Raises `DatasetError` if it is something else."""
        if isinstance(value, set | frozenset):
            return sorted(value, key=lambda each: (str(type(each)), each))
        if not isinstance(value, list | tuple):
            raise self.wrong(f"field {name!r} should be a list, not {value!r}")
        return value

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return a mapping; empty if the field is absent. Raises `DatasetError` if it is something else."""
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
    records: Iterable[Record]
    """Read while they are iterated, once."""


def locate(folder: Path, *names: str) -> Path | None:
    """Return the first of `names` that lies in `folder` plain, as `.xz` or as `.gz`; None if none does."""
    paths = (folder / (name + suffix) for name in names for suffix in SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def found(folder: Path, *names: str) -> Path:
    """Return what `locate` does.

    Raises:
        DatasetError: the folder holds none of them.
    """
    path = locate(folder, *names)
    if path is None:
        suffixes = ", ".join(filter(None, SUFFIXES))
        reason = f"holds no {' or '.join(names)} (nor {suffixes}); point dataset.root at the folder that does"
        raise DatasetError(folder, None, reason)
    return path


def read_bytes(path: Path) -> bytes:
    """Read a whole file, decompressed.

    Raises:
        DatasetError: the file cannot be read or decompressed.
    """
    unpack: Mapping[str, Callable[[bytes], bytes]] = {".xz": lzma.decompress, ".gz": gzip.decompress}
    try:
        return unpack.get(path.suffix, bytes)(path.read_bytes())
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise DatasetError(path, None, f"cannot be read ({error}); check the file, or fetch it again") from error


def read_text(path: Path) -> TextFile:
    """Read a whole UTF-8 file; a byte order mark and carriage returns at line ends are dropped.

    Raises:
        DatasetError: the file cannot be read or decompressed, or a line is not UTF-8.
    """
    content = read_bytes(path)
    lines = []
    for number, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        try:
            line = raw.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise DatasetError(path, number, f"is not UTF-8 ({error.reason}); convert the file to UTF-8") from error
        if line.strip():
            lines.append((number, line))
    return TextFile(path, hashlib.sha256(content).hexdigest(), tuple(lines))


def read_plain_lines(path: Path) -> RecordFile:
    """Read a file of text as one record a line, with the field `line`. Raises `DatasetError`."""
    text = read_text(path)
    return RecordFile(path, text.checksum, (Record(path, number, {"line": line}) for number, line in text.lines))


def read_json_lines(path: Path) -> RecordFile:
    """Read a file of JSON lines. Raises `DatasetError`."""
    text = read_text(path)
    return RecordFile(path, text.checksum, (_json_record(path, number, line) for number, line in text.lines))


def read_records(path: Path) -> RecordFile:
    """Read a whole file of JSON, JSON lines (`.jsonl`) or CSV.

    A JSON file is a list of records, or an object that holds such a list in one of its fields (`Questions`).

    Raises:
        DatasetError: the file cannot be read, or is not of that kind.
    """
    kind = path.with_suffix("").suffix if path.suffix in SUFFIXES[1:] else path.suffix
    if kind == ".jsonl":
        return read_json_lines(path)
    content = read_bytes(path)
    checksum = hashlib.sha256(content).hexdigest()
    try:
        decoded = content.decode("utf-8-sig")
        if kind == ".csv":
            rows = csv.DictReader(io.StringIO(decoded, newline=""), strict=True)
            return RecordFile(path, checksum, [Record(path, rows.line_num, row) for row in rows])
        held = json.loads(decoded)
    except (ValueError, csv.Error) as error:
        reason = f"is not {kind.removeprefix('.').upper() or 'JSON'} in UTF-8 ({error})"
        raise DatasetError(path, None, reason) from error
    if isinstance(held, dict):
        held = next((value for value in held.values() if isinstance(value, list)), None)
    return RecordFile(
        path, checksum, numbered(path, held, "is not a JSON list of objects, nor an object that holds one")
    )


def numbered(path: Path, held: object, otherwise: str) -> list[Record]:
    """Return a list of mappings as records. Raises `DatasetError` with the reason `otherwise` if it is none."""
    if not isinstance(held, list) or not all(isinstance(each, dict) for each in held):
        raise DatasetError(path, None, otherwise)
    return [Record(path, place, each) for place, each in enumerate(held, start=1)]


def read_parquet(paths: Sequence[Path]) -> RecordFile:
    """Read the rows of Parquet files, one after the other. Raises `DatasetError`."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    digest = hashlib.sha256()
    for path in paths:
        digest.update(read_bytes(path))

    def rows() -> Iterator[Record]:
        for path in paths:
            try:
                batches = parquet.ParquetFile(path).iter_batches(_ROWS_AT_ONCE)
                each = (row for batch in batches for row in batch.to_pylist())
                yield from (Record(path, place, row) for place, row in enumerate(each, start=1))
            except (pa.ArrowException, OSError) as error:
                raise DatasetError(path, None, f"cannot be read as Parquet ({error}); fetch it again") from error

    return RecordFile(paths[0], digest.hexdigest(), rows())


def _json_record(path: Path, number: int, line: str) -> Record:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise DatasetError(path, number, f"is not JSON ({error})") from error
    if not isinstance(record, dict):
        raise DatasetError(path, number, "is not a JSON object")
    return Record(path, number, record)
