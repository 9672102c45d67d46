r"""Text files of records: read by Arrow, and searched line by line in Python where something is wrong.

Files ending in `.txt` separate fields by `|`, `.tsv` by tabs, both without quoting; `.csv` by commas with the quoting
of RFC 4180. Each may be compressed as `.gz`, `.xz` or `.zst`. Text is UTF-8, with or without a byte order mark; lines
end in `\n` or `\r\n`, and empty ones are skipped.

Cells of imported files: texts as Arrow columns, turned into numbers, truth values and dates, or refused by line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import lzma
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from byokg.errors import ImportFailed
from byokg.files import sha256

COMPRESSIONS = ("", ".gz", ".xz", ".zst")

_SEPARATORS = {".txt": "|", ".tsv": "\t", ".csv": ","}
_SEPARATOR_NAMES = {"|": "'|'", "\t": "a tab", ",": "','"}

_BLOCK_BYTES = 1 << 26
"""How much of a file is held at once; more only where a single record is longer."""

_LINES_BYTES = 1 << 24
"""The same for text that may have to be read line by line."""

_PARSE_BYTES = 1 << 22
"""Arrow parses a block in pieces of this size; a record longer than that asks for one piece."""

_BLANK = re.compile(rb"[\r\n]*")
_UNDECODED = re.compile("[\udc80-\udcff]")
_AROUND_QUOTES = b',"\r\n'
_QUOTING = "close every quote, and double the quotes inside a quoted field"


def uncompressed(path: Path) -> Path:
    """Return the path without the ending of a compression."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSIONS[1:] else path


@dataclass(frozen=True)
class TextFile:
    """A text file in UTF-8, compressed or not."""

    path: Path

    def description(self) -> dict[str, Any]:
        """Return name, size and checksum, as the graph's `source` keeps them."""
        with self.reading():
            return {"name": self.path.name, "bytes": self.path.stat().st_size, "sha256": sha256(self.path)}

    def line_blocks(self) -> Iterator[bytes]:
        """Yield the text in blocks of whole lines, without its byte order mark."""
        block = b""
        with self.reading(), self.open() as stream:
            first = True
            while read := stream.read(_LINES_BYTES):
                block += read.removeprefix(codecs.BOM_UTF8) if first else read
                first = False
                if end := block.rfind(b"\n") + 1:
                    yield block[:end]
                    block = block[end:]
        if block:
            yield block

    def check_text(self, line: int, text: str) -> None:
        """Raise `ImportFailed` where bytes that are not UTF-8 came as lone surrogates."""
        if not text.isascii() and (found := _UNDECODED.search(text)):
            byte = ord(found.group()) - 0xDC00
            raise ImportFailed(self.path, line, f"byte 0x{byte:02x} is not UTF-8; convert the file to UTF-8")

    def open(self) -> BinaryIO:
        """Open the decompressed bytes."""
        ending = self.path.suffix.lower()
        if ending == ".gz":
            return cast(BinaryIO, gzip.open(self.path, "rb"))
        if ending == ".xz":
            return cast(BinaryIO, lzma.open(self.path, "rb"))
        if ending == ".zst":
            return cast(BinaryIO, pa.input_stream(str(self.path), compression="zstd"))
        return self.path.open("rb")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Translate what goes wrong below the level of records."""
        try:
            yield
        except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise ImportFailed(self.path, None, f"cannot be read: {error.strerror}") from error
            reason = f"the compressed data is damaged ({error}); fetch or compress the file again"
            raise ImportFailed(self.path, None, reason) from error


@dataclass(frozen=True)
class RecordFile(TextFile):
    """A text file of records."""

    separator: str
    titled: bool = True
    """Whether the first record is a header."""
    cut: bool = False
    """Whether a record may have more fields than the first one; the surplus is dropped. Read slowly."""

    @classmethod
    def at(cls, path: Path) -> RecordFile:
        """Tell from its name how a file separates fields. Raises `ImportFailed` for an unknown ending."""
        plain = uncompressed(path)
        if plain.suffix.lower() not in _SEPARATORS:
            known = ", ".join(_SEPARATORS)
            reason = (
                f"the name does not tell the format; end it in one of {known}, and then .gz, .xz or .zst if compressed"
            )
            raise ImportFailed(path, None, reason)
        return cls(path, _SEPARATORS[plain.suffix.lower()])

    @property
    def quoted(self) -> bool:
        """Tell whether quotes have a meaning."""
        return self.separator == ","

    def first(self, expected: str) -> tuple[int, list[str]]:
        """Return line and fields of the first record. Raises `ImportFailed`, naming what was expected, without one."""
        for line, fields in self.records():
            self._check_fields(line, fields)
            return line, fields
        raise ImportFailed(self.path, None, f"the file is empty; expected {expected}")

    def read(self, fields: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table:
        """Read all records after the header, as `blocks` does, into one table."""
        return pa.concat_tables(self.blocks(fields, types))

    def blocks(self, fields: Sequence[str], types: Sequence[pa.DataType]) -> Iterator[pa.Table]:
        """Read the records after the header some at a time, so that a file of any size fits into memory.

        Args:
            fields: (C,) the first record; column names are taken from it where it is the header.
            types: (C,) Arrow type of each column.

        Yields:
            Tables of C columns, at least one; empty fields are null.

        Raises:
            ImportFailed: a record has another number of fields, bytes that are not UTF-8, or misplaced quotes. The
                last may be noticed only after all blocks, so nothing is certain before the end.
        """
        names = list(fields) if self.titled else [str(number) for number in range(len(fields))]
        if self.cut:
            yield self._cut_table(names, types)
            return
        parse = arrow_csv.ParseOptions(
            delimiter=self.separator, quote_char='"' if self.quoted else False, newlines_in_values=self.quoted
        )
        convert = arrow_csv.ConvertOptions(
            column_types=dict(zip(names, types, strict=True)), null_values=[""], strings_can_be_null=True
        )
        titled = self.titled
        for text in self._texts():
            for piece_bytes in (_PARSE_BYTES, len(text)):
                read = arrow_csv.ReadOptions(column_names=None if titled else names, block_size=piece_bytes)
                try:
                    table = arrow_csv.read_csv(pa.BufferReader(text), read, parse, convert)
                    break
                except pa.ArrowInvalid as error:
                    failure = error
                    if "straddling" not in str(error):
                        self._explain(len(fields), failure)
            else:
                self._explain(len(fields), failure)
            titled = False
            yield table
        self.check_quotes()

    def _cut_table(self, names: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table:
        rows = []
        for line, fields in itertools.islice(self.records(), int(self.titled), None):
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
        with self.reading(), io.TextIOWrapper(self.open(), "utf-8-sig", "surrogateescape", newline="") as text:
            if not self.quoted:
                for line, content in enumerate(text, 1):
                    if content := content.rstrip("\r\n"):
                        yield line, content.split(self.separator)
                return
            reader, line = csv.reader(text, strict=True), 1
            limit = csv.field_size_limit(1 << 30)
            try:
                for fields in reader:
                    if fields:
                        yield line, fields
                    line = reader.line_num + 1
            except csv.Error as error:
                raise ImportFailed(self.path, line, f"the quoting is wrong: {error}; {_QUOTING}") from error
            finally:
                csv.field_size_limit(limit)

    def line_of(self, row: int) -> int:
        """Return the line on which record `row` starts, counting from 0 after the header."""
        line, _ = next(itertools.islice(self.records(), row + self.titled, None))
        return line

    def ragged(self, width: int, line: int, fields: Sequence[str]) -> ImportFailed:
        """Say that a record should have `width` fields, and what may help."""
        reason = f"expected {width} fields separated by {_SEPARATOR_NAMES[self.separator]}, found {len(fields)}"
        for suffix, separator in _SEPARATORS.items():
            if len(fields) == 1 and fields[0].count(separator) == width - 1:
                other = _SEPARATOR_NAMES[separator]
                hint = f"{other} would give {width}: correct the line, or name the file {suffix}"
                return ImportFailed(self.path, line, f"{reason}; {hint}")
        if len(fields) < width:
            hint = "complete the line or delete it"
        elif self.quoted:
            hint = 'put values that contain a comma in quotes, as in "a, b"'
        else:
            hint = "a value cannot contain the separator here: use a .csv file with quotes"
        return ImportFailed(self.path, line, f"{reason}; {hint}")

    def _explain(self, width: int, failure: pa.ArrowInvalid) -> NoReturn:
        """Find the record that Arrow could not read, and say what is wrong with it."""
        for line, fields in self.records():
            self._check_fields(line, fields)
            if len(fields) != width:
                raise self.ragged(width, line, fields)
        raise ImportFailed(self.path, None, f"Arrow cannot read it: {failure}") from failure

    def check_quotes(self) -> None:
        """Refuse quotes that Arrow reads past as if nothing were wrong: never closed ones, and those text follows."""
        if self.quoted:
            with self.reading(), self.open() as stream:
                offset = misplaced_quote(stream)
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

    def _texts(self) -> Iterator[pa.Buffer]:
        """Yield the decompressed text in blocks of whole records.

        In Arrow's own memory: its threads may still read ahead after an error, and some versions crash when that
        reaches bytes that Python owns and has let go of.
        """
        block = b""
        with self.reading(), self.open() as stream:
            while read := stream.read(_BLOCK_BYTES):
                block += read
                if end := last_record_end(block, self.quoted):
                    if not _BLANK.fullmatch(block, 0, end):
                        yield arrow_buffer(memoryview(block)[:end])
                    # Arrow skips the empty line, but not a byte order mark behind it: one counts at the start only.
                    block = b"\n" + block[end:]
        if not _BLANK.fullmatch(block):
            yield arrow_buffer(memoryview(block))


def last_record_end(block: bytes, quoted: bool) -> int:
    """Return the number of bytes up to the last newline that ends a record, 0 without one.

    Args:
        block: text that starts with a record.
        quoted: whether newlines between quotes are part of a field.
    """
    if not quoted or b'"' not in block:
        return block.rfind(b"\n") + 1
    text = np.frombuffer(block, np.uint8)
    newlines, quotes = np.flatnonzero(text == ord("\n")), np.flatnonzero(text == ord('"'))
    ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    return int(ends[-1]) + 1 if len(ends) else 0


def arrow_buffer(text: memoryview) -> pa.Buffer:
    buffer = pa.allocate_buffer(len(text))
    memoryview(buffer).cast("B")[:] = text
    return buffer


def misplaced_quote(stream: BinaryIO, block_bytes: int = 1 << 22) -> int | None:
    """Find the first quote that RFC 4180 does not allow.

    Every second quote closes a quoted field or is the first of a doubled one, so a quote's neighbour tells it all.

    Args:
        stream: the text of a CSV file.
        block_bytes: how much to read at once.

    Returns:
        Its offset in bytes; the last opening quote where one is never closed; None where all is well.
    """
    offset, opened, inside, last = 0, 0, False, b","
    while data := stream.read(block_bytes):
        if offset == 0 and data.startswith(codecs.BOM_UTF8):
            data = b",,," + data[3:]  # a field may start after the mark
        if last == b'"' and not inside and data[0] not in _AROUND_QUOTES:
            return offset - 1
        if b'"' in data:
            window = np.frombuffer(last + data, np.uint8)
            places = np.flatnonzero(window[1:] == ord('"')) + 1
            opening = (np.arange(len(places)) + inside) % 2 == 0
            neighbours = window[np.where(opening, places - 1, np.minimum(places + 1, len(data)))]
            wrong = places[~np.isin(neighbours, np.frombuffer(_AROUND_QUOTES, np.uint8))]
            if len(wrong):
                return offset + int(wrong[0]) - 1
            if opening.any():
                opened = offset + int(places[opening][-1]) - 1
            inside ^= len(places) % 2 == 1
        offset, last = offset + len(data), data[-1:]
    return opened if inside else None


Int64 = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.integer]

TEXT = pa.large_string()

KINDS: dict[str, tuple[pa.DataType, str | None, str]] = {
    "string": (pa.large_string(), None, "text"),
    "int": (pa.int64(), r"^-?[0-9]+$", "a whole number such as 42, within 64 bits"),
    "float": (pa.float64(), r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$", "a finite number such as 4.2"),
    "bool": (pa.bool_(), r"^(?i:true|false)$", "true or false"),
    "date": (
        pa.date32(),
        r"^([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)-[0-9]{2}-[0-9]{2}$",
        "a date such as 2001-09-30, years 0001 to 9999",
    ),
    "flag": (pa.bool_(), r"^[01]$", "1 for true or 0 for false"),
}
"""Kind of a column: how it is stored, what a cell must look like, and how to say that."""


@dataclass(frozen=True, order=True)
class Problem:
    """Why one record cannot be used; records count from 0."""

    row: int
    reason: str


def raise_first(file: RecordFile, problems: Sequence[Problem | None], rows: int = 0) -> None:
    """Report the earliest of the problems in a part of a file before which there are so many rows, if any."""
    found = [problem for problem in problems if problem]
    if found:
        file.check_quotes()  # what looks like a strange cell may be half of one
        first = min(found)
        raise ImportFailed(file.path, file.line_of(rows + first.row), first.reason)


def typed(name: str, kind: str, texts: pa.ChunkedArray) -> tuple[pa.Array, Problem | None]:
    """Convert a column of texts to one of `KINDS`; return the values, or the first cell that is none."""
    type_, pattern, wording = KINDS[kind]
    if pattern is None:
        return whole(texts, type_), None
    fits = pc.match_substring_regex(texts, pattern)
    bad = whole(pc.invert(pc.fill_null(fits, True)), pa.bool_())
    if not bad.true_count:
        try:
            if type_ == pa.bool_():
                values = whole(pc.equal(pc.utf8_lower(texts), "1" if kind == "flag" else "true"), type_)
            else:
                values = whole(texts.cast(type_), type_)
        except pa.ArrowInvalid:
            bad = pa.array([text is not None and not _casts(text, type_) for text in texts.to_pylist()])
        else:
            if kind != "float":
                return values, None
            bad = pc.invert(pc.fill_null(pc.is_finite(values), True))
            if not bad.true_count:
                return values, None
    row = pc.index(bad, True).as_py()
    return None, Problem(row, f"{texts[row].as_py()!r} in column {name!r} is not {wording}; correct the cell")


def _casts(text: str, kind: pa.DataType) -> bool:
    try:
        pa.scalar(text).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def blank(name: str, coded: pa.DictionaryArray) -> Problem | None:
    """Find the first cell that is empty or holds only white space."""
    empty = pc.equal(pc.utf8_trim_whitespace(coded.dictionary), "").to_numpy(zero_copy_only=False)
    if not empty.any() and not coded.null_count:
        return None
    rows = coded.is_null().to_numpy(zero_copy_only=False)
    rows[~rows] = empty[coded.indices.drop_null().to_numpy()]
    return Problem(int(rows.argmax()), f"the {name} is empty; fill it in or delete the line")


# Columns


def whole(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Return a chunked column as one array, also when it has no chunks at all."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], kind)


def without_null(coded: pa.DictionaryArray) -> pa.DictionaryArray:
    """Replace null by the empty text."""
    if not coded.null_count:
        return coded
    dictionary = pa.concat_arrays([coded.dictionary, pa.array([""], coded.dictionary.type)])
    return pa.DictionaryArray.from_arrays(pc.fill_null(coded.indices, len(dictionary) - 1), dictionary)


# Numbering


def first_rows(codes: Numbers, count: int) -> Int64:
    """Return the row where each of `count` codes occurs first."""
    first = np.empty(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of repeated assignments the last one stays
    return first


def number(coded: pa.DictionaryArray) -> tuple[pa.Array, Numbers]:
    """Return distinct values in order of first appearance, and which one each row holds."""
    codes = coded.indices.to_numpy()
    return _in_order(coded.dictionary, codes, first_rows(codes, len(coded.dictionary)))


def number_pairs(pairs: pa.DictionaryArray) -> tuple[pa.Array, Numbers]:
    """Number heads and tails together, in order of first appearance reading row by row, head before tail.

    Args:
        pairs: (2 E,) first all heads, then all tails.

    Returns:
        The distinct values, and which one each row holds: (E, 2).
    """
    codes, rows = pairs.indices.to_numpy(), len(pairs) // 2
    # First in reading order: head of row r has place 2 r, tail 2 r + 1. Assigned from the last place to the first,
    # because of repeated assignments the last one stays.
    first = np.empty(len(pairs.dictionary), np.int64)
    places = np.arange(2 * rows - 1, -1, -1)
    first[codes.reshape(2, rows).T.ravel()[::-1]] = places
    values, numbers = _in_order(pairs.dictionary, codes, first)
    return values, numbers.reshape(2, rows).T


def _in_order(values: pa.Array, codes: Numbers, first: Int64) -> tuple[pa.Array, Numbers]:
    order = np.argsort(first)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return values.take(pa.array(order)), rank[codes]


# Repetitions


class Clash(NamedTuple):
    """Two rows for one node that say different things."""

    row: int
    before: int
    """The row that stands first."""
    number: int
    """Of the node."""
    key: str
    """A column in which they differ."""


def distinct_rows(codes: Numbers, count: int, content: pa.RecordBatch) -> tuple[Int64, Clash | None]:
    """Return the row where each of `count` nodes occurs first, and the first later row with other content, if any."""
    rows = first_rows(codes, count)
    first = rows[codes]
    later = np.flatnonzero(first != np.arange(len(codes)))
    found: list[tuple[int, str]] = []
    for key, column in zip(content.schema.names, content.columns, strict=True):
        here, there = column.take(pa.array(later)), column.take(pa.array(first[later]))
        both_lack = pc.and_(here.is_null(), there.is_null())
        same = pc.or_(pc.fill_null(pc.equal(here, there), False), both_lack).to_numpy(zero_copy_only=False)
        found += [(position, key) for position in np.flatnonzero(~same)[:1].tolist()]
    if not found:
        return rows, None
    position, key = min(found, key=lambda one: one[0])
    row = int(later[position])
    return rows, Clash(row, int(first[row]), int(codes[row]), key)
