r"""Delimited text files: records read by Arrow in the dialect that `dialects` finds.

Fields are separated by commas or semicolons with the quoting of RFC 4180, by tabs, bars, spaces or any blanks without
quoting unless the file shows it. Each may be compressed as `.gz`, `.xz`, `.bz2` or `.zst`. Text is UTF-8, with or
without a byte order mark, or UTF-16 with one; lines end in `\n` or `\r\n`, and empty ones and comments are skipped.
Where something is wrong, the file is read again line by line in Python, to name the line and the reason.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from byokg.errors import ImportFailed
from byokg.files import TextFile, uncompressed
from byokg.graph.columnar.schema import Problem
from byokg.graph.importers.dialects import (
    DETECTED,
    SEPARATOR_NAMES,
    Dialect,
    TableOptions,
    detect_dialect,
    filtered,
    read_records,
    with_single_tabs,
    without_comments,
)

_BLOCK_BYTES = 1 << 26
"""Amount of a file per batch; more only for a single longer record."""

_PARSE_BYTES, _GROWTH, _LONGEST_BYTES = 1 << 22, 16, 1 << 27
"""Arrow parses a file in pieces of this size, then in pieces so many times as large while a record is longer."""

_SAMPLE = 1000
"""Records sampled to decide the columns' content."""

_QUOTING = "close every quote, and double the quotes inside a quoted field"


@dataclass(frozen=True)
class RecordFile(TextFile):
    """A text file of records."""

    dialect: Dialect
    titled: bool = True
    """Whether the first record is a header."""
    cut: bool = False
    """Whether a record may have more fields than the first one; the surplus is dropped. Read slowly."""

    @classmethod
    def at(cls, path: Path, left_out: frozenset[int] = frozenset(), options: TableOptions = DETECTED) -> RecordFile:
        """Find the dialect of a file. Raises `ImportFailed` for an unknown ending, or if several dialects fit."""
        dialect = detect_dialect(TextFile(path, left_out=left_out), options)
        return cls(path, dialect, left_out=left_out)

    @property
    def separator(self) -> str:
        """Return the character between two fields."""
        return "\t" if self.dialect.runs else self.dialect.separator

    @property
    def quoted(self) -> bool:
        """True if quotes have a meaning."""
        return bool(self.dialect.quote)

    def open(self) -> BinaryIO:
        """Open the decompressed text in UTF-8, without its comments."""
        stream: Any = super().open()
        if self.dialect.comment:
            stream = filtered(stream, without_comments(self.dialect))
        if self.dialect.runs:
            stream = filtered(stream, with_single_tabs)
        return cast(BinaryIO, stream)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn any error while reading a file into `ImportFailed`."""
        try:
            with super().reading():
                yield
        except UnicodeError as error:
            reason = f"is damaged or not in {self.dialect.encoding.upper()} ({error}); convert the file to UTF-8"
            raise ImportFailed(self.path, None, reason) from error

    def _decoded(self, stream: BinaryIO) -> BinaryIO:
        if not self.dialect.encoding:
            return stream
        decoded = pa.transcoding_input_stream(pa.input_stream(stream), self.dialect.encoding, "utf-8")
        return io.BufferedReader(decoded) if self.left_out else cast(BinaryIO, decoded)

    def first(self, expected: str) -> tuple[int, list[str]]:
        """Return line and fields of the first record. Raises `ImportFailed`, naming the expected fields, without
        one."""
        for line, fields in itertools.islice(self.records(), self._skipped, None):
            self._check_fields(line, fields)
            return line, fields
        raise ImportFailed(self.path, None, f"the file is empty; expected {expected}")

    def sample(self) -> list[tuple[int, list[str]]]:
        """Return line and fields of the first records, header included, up to one whose quotes are wrong."""
        found: list[tuple[int, list[str]]] = []
        try:
            for record in itertools.islice(self.records(), self._skipped, _SAMPLE):
                found.append(record)
        except ImportFailed:
            if not found:
                raise
        return found

    def read(self, fields: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table:
        """Read all records after the header, as `blocks` does, into one table."""
        return pa.concat_tables(self.blocks(fields, types))

    def blocks(self, fields: Sequence[str], types: Sequence[pa.DataType]) -> Iterator[pa.Table]:
        """Read the records after the header some at a time, so that a file of any size fits into memory.

        Args:
            fields: (C,) the first record.
            types: (C,) Arrow type of each column.

        Yields:
            Tables of C columns, named by their numbers, at least one; empty fields are null.

        Raises:
            ImportFailed: a record has another number of fields, bytes that are not UTF-8, or misplaced quotes. The
                last may be noticed only after all blocks, so nothing is certain before the end.
        """
        names = [str(number) for number in range(len(fields))]
        if self.cut:
            yield self._cut_table(names, types)
            return
        held: list[pa.RecordBatch] = []
        schema = pa.schema(list(zip(names, types, strict=True)))
        size = 0
        for batch in self._batches(names, schema):
            held.append(_trimmed(batch) if self.dialect.padded else batch)
            size += batch.nbytes
            if size >= _BLOCK_BYTES:
                yield pa.Table.from_batches(held)
                held, size = [], 0
        yield pa.Table.from_batches(held, schema)
        self.check_quotes()

    def _batches(self, names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the records after the header as Arrow reads them, in pieces that grow with a longer record."""
        skipped = self._rows_before()
        if skipped is None:
            return
        parse = arrow_csv.ParseOptions(
            delimiter=self.separator, quote_char=self.dialect.quote or False, newlines_in_values=self.quoted
        )
        convert = arrow_csv.ConvertOptions(column_types=schema, null_values=[""], strings_can_be_null=True)
        piece_bytes, done = _PARSE_BYTES, 0
        while True:
            read = arrow_csv.ReadOptions(column_names=names, block_size=piece_bytes, skip_rows_after_names=skipped)
            known = done
            try:
                with (
                    self.reading(),
                    self._stream() as stream,
                    arrow_csv.open_csv(stream, read, parse, convert) as reader,
                ):
                    for batch in reader:
                        fresh = batch.slice(min(known, batch.num_rows))
                        known -= batch.num_rows - fresh.num_rows
                        done += fresh.num_rows
                        yield fresh
                return
            except pa.ArrowInvalid as error:
                if "straddling" not in str(error) or piece_bytes > _LONGEST_BYTES:
                    self._explain(len(names), error)
            piece_bytes *= _GROWTH

    def _stream(self) -> Any:
        """Open the decompressed bytes as Arrow reads them fastest."""
        dialect = self.dialect
        changed = self.left_out or dialect.encoding or dialect.comment or dialect.runs
        return self.open() if changed or uncompressed(self.path) != self.path else pa.OSFile(str(self.path))

    @property
    def _records_before(self) -> int:
        """Return how many records come before the first one that counts."""
        return int(self.titled) + self._skipped

    @property
    def _skipped(self) -> int:
        """Return how many records come before the header, if there is one."""
        return int(self.dialect.counted) + int(self.dialect.hinted)

    def _rows_before(self) -> int | None:
        """Return how many records and empty lines come before the first record that counts; None if none counts."""
        before = list(itertools.islice(self._spans(), self._records_before + 1))
        if len(before) <= self._records_before:
            return None
        *skipped, (line, _, _) = before
        return line - 1 - sum(end - start for start, end, _ in skipped) if skipped else 0

    def _cut_table(self, names: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table:
        rows = []
        for line, fields in itertools.islice(self.records(), self._records_before, None):
            self._check_fields(line, fields)
            if len(fields) < len(names):
                raise self.ragged(len(names), line, fields)
            rows.append([field or None for field in fields[: len(names)]])
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
        return pa.Table.from_arrays(arrays, list(names))

    def surplus(self) -> int:
        """Count the records that have more fields than the first one."""
        widths = [len(fields) for _, fields in self.records()]
        return sum(width > widths[0] for width in widths)

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield (line, fields) of each record, slowly; bytes that are not UTF-8 come as lone surrogates."""
        for line, _, fields in self._spans():
            yield line, fields

    def _spans(self) -> Iterator[tuple[int, int, list[str]]]:
        """Yield first line, last line and fields of each record."""
        strip = str.strip if self.dialect.padded else str
        dialect = replace(self.dialect, runs=False, separator=self.separator)
        line, limit = 1, csv.field_size_limit(1 << 30)
        with self.reading(), io.TextIOWrapper(self.open(), "utf-8-sig", "surrogateescape", newline="") as text:
            try:
                for start, stop, fields in read_records(dialect, text):
                    if fields:
                        yield start, stop, [strip(field) for field in fields]
                    line = stop + 1
            except csv.Error as error:
                raise ImportFailed(self.path, line, f"the quoting is wrong: {error}; {_QUOTING}") from error
            finally:
                csv.field_size_limit(limit)

    def line_of(self, row: int) -> int:
        """Return the line on which record `row` starts, counting from 0 after the header."""
        line, _ = next(itertools.islice(self.records(), row + self._records_before, None))
        return line

    def ragged(self, width: int, line: int, fields: Sequence[str]) -> ImportFailed:
        """Return the error that a record should have `width` fields, with a remedy."""
        separated = SEPARATOR_NAMES[self.dialect.separator]
        reason = f"expected {width} fields separated by {separated}, found {len(fields)}"
        for separator, other in SEPARATOR_NAMES.items():
            if len(fields) == 1 and fields[0].count(separator) == width - 1:
                hint = f"{other} would give {width}: correct the line, or decide with --delimiter"
                return ImportFailed(self.path, line, f"{reason}; {hint}")
        if len(fields) < width:
            hint = "complete the line or delete it"
        elif self.dialect.quote == '"' and self.separator == ",":
            hint = 'put values that contain a comma in quotes, as in "a, b"'
        else:
            hint = "a value cannot contain the separator here: use a .csv file with quotes"
        return ImportFailed(self.path, line, f"{reason}; {hint}")

    def _explain(self, width: int, failure: pa.ArrowInvalid) -> NoReturn:
        """Find the record that Arrow could not read, and return its error."""
        for number, (line, fields) in enumerate(self.records()):
            self._check_fields(line, fields)
            if len(fields) != width and number >= self._records_before:
                raise self.ragged(width, line, fields)
        raise ImportFailed(self.path, None, f"Arrow cannot read it: {failure}") from failure

    def check_quotes(self) -> None:
        """Refuse quotes that Arrow reads past as if nothing were wrong: never closed ones, and those text follows."""
        if self.quoted:
            with self.reading(), self.open() as stream:
                offset = misplaced_quote(stream, around=f"{self.separator}{self.dialect.quote}")
            if offset is not None:
                line = self._line_at(offset)
                raise ImportFailed(self.path, line, f"a quote is misplaced or never closed; {_QUOTING}")

    def _check_fields(self, line: int, fields: Sequence[str]) -> None:
        for field in fields:
            self.check_text(line, field)

    def _line_at(self, offset: int) -> int:
        """Return the line in which byte `offset` stands."""
        with self.reading(), self.open() as stream:
            before = stream.read(offset)
        return 1 + before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")


def _trimmed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Drop white space around texts; nothing else is no text."""
    columns = [pc.utf8_trim_whitespace(column) for column in batch.columns]
    texts = [pc.if_else(pc.equal(column, ""), None, column) for column in columns]
    return pa.RecordBatch.from_arrays(texts, schema=batch.schema)


def misplaced_quote(stream: BinaryIO, block_bytes: int = 1 << 22, around: str = ',"') -> int | None:
    """Find the first quote that RFC 4180 does not allow.

    Every second quote closes a quoted field or is the first of a doubled one, so a quote's neighbour decides.

    Args:
        stream: the text of a CSV file.
        block_bytes: amount to read at once.
        around: the separator and the quote.

    Returns:
        Its offset in bytes, that of the last opening quote if it is never closed; None if all are allowed.
    """
    separator, quote = (one.encode() for one in around)
    neighbours_allowed = b"".join((separator, quote, b"\r\n"))
    offset, opened, inside, last = 0, 0, False, separator
    while data := stream.read(block_bytes):
        if offset == 0 and data.startswith(codecs.BOM_UTF8):
            data = 3 * separator + data[3:]  # a field may start after the mark
        if last == quote and not inside and data[0] not in neighbours_allowed:
            return offset - 1
        if quote in data:
            window = np.frombuffer(last + data, np.uint8)
            places = np.flatnonzero(window[1:] == ord(quote)) + 1
            opening = (np.arange(len(places)) + inside) % 2 == 0
            neighbours = window[np.where(opening, places - 1, np.minimum(places + 1, len(data)))]
            wrong = places[~np.isin(neighbours, np.frombuffer(neighbours_allowed, np.uint8))]
            if len(wrong):
                return offset + int(wrong[0]) - 1
            if opening.any():
                opened = offset + int(places[opening][-1]) - 1
            inside ^= len(places) % 2 == 1
        offset, last = offset + len(data), data[-1:]
    return opened if inside else None


def raise_first(file: RecordFile, problems: Sequence[Problem | None], rows: int = 0) -> None:
    """Report the earliest of the problems in a part of a file before which there are so many rows, if any."""
    found = [problem for problem in problems if problem]
    if found:
        file.check_quotes()  # an apparently odd cell may be half of one
        first = min(found)
        raise ImportFailed(file.path, file.line_of(rows + first.row), first.reason)
