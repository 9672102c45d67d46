r"""Delimited text files: records read by Arrow, and triples with or without a time.

Files ending in `.txt` separate fields by `|`, `.tsv` by tabs, both without quoting; `.csv` by commas with the quoting
of RFC 4180. Each may be compressed as `.gz`, `.xz` or `.zst`. Text is UTF-8, with or without a byte order mark; lines
end in `\n` or `\r\n`, and empty ones are skipped. Where something is wrong, the file is read again line by line in
Python, to name the line and the reason.

`TripleFile` numbers entities and relations while the file is read, in order of first appearance, reading line by line,
head before tail.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from byokg.errors import ImportFailed
from byokg.files import TextFile, uncompressed
from byokg.graph.columnar.ids import Interner, row_by_row
from byokg.graph.columnar.schema import KINDS, TEXT, NodeColumns, Numbers, Problem, blank, typed, whole, without_null
from byokg.graph.columnar.writer import EdgeBlock, Triples, ahead
from byokg.index.string_hashes import positions

_SEPARATORS = {".txt": "|", ".tsv": "\t", ".csv": ","}
_SEPARATOR_NAMES = {"|": "'|'", "\t": "a tab", ",": "','"}

_BLOCK_BYTES = 1 << 26
"""How much of a file is handed on at once; more only where a single record is longer."""

_PARSE_BYTES, _GROWTH, _LONGEST_BYTES = 1 << 22, 16, 1 << 27
"""Arrow parses a file in pieces of this size, then in pieces so many times as large while a record is longer."""

_AROUND_QUOTES = b',"\r\n'
_QUOTING = "close every quote, and double the quotes inside a quoted field"


@dataclass(frozen=True)
class RecordFile(TextFile):
    """A text file of records."""

    separator: str
    titled: bool = True
    """Whether the first record is a header."""
    cut: bool = False
    """Whether a record may have more fields than the first one; the surplus is dropped. Read slowly."""

    @classmethod
    def at(cls, path: Path, left_out: frozenset[int] = frozenset()) -> RecordFile:
        """Tell from its name how a file separates fields. Raises `ImportFailed` for an unknown ending."""
        plain = uncompressed(path)
        if plain.suffix.lower() not in _SEPARATORS:
            known = ", ".join(_SEPARATORS)
            reason = (
                f"the name does not tell the format; end it in one of {known}, and then .gz, .xz or .zst if compressed"
            )
            raise ImportFailed(path, None, reason)
        return cls(path, _SEPARATORS[plain.suffix.lower()], left_out=left_out)

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
        held: list[pa.RecordBatch] = []
        schema = pa.schema(list(zip(names, types, strict=True)))
        size = 0
        for batch in self._batches(names, schema):
            held.append(batch)
            size += batch.nbytes
            if size >= _BLOCK_BYTES:
                yield pa.Table.from_batches(held)
                held, size = [], 0
        yield pa.Table.from_batches(held, schema)
        self.check_quotes()

    def _batches(self, names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the records after the header as Arrow reads them, in pieces that grow where a record is longer."""
        parse = arrow_csv.ParseOptions(
            delimiter=self.separator, quote_char='"' if self.quoted else False, newlines_in_values=self.quoted
        )
        convert = arrow_csv.ConvertOptions(column_types=schema, null_values=[""], strings_can_be_null=True)
        piece_bytes, done = _PARSE_BYTES, 0
        while True:
            read = arrow_csv.ReadOptions(column_names=None if self.titled else names, block_size=piece_bytes)
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
        return self.open() if self.left_out or uncompressed(self.path) != self.path else pa.OSFile(str(self.path))

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


def misplaced_quote(stream: BinaryIO, block_bytes: int = 1 << 22) -> int | None:
    """Find the first quote that RFC 4180 does not allow.

    Every second quote closes a quoted field or is the first of a doubled one, so a quote's neighbour tells it all.

    Args:
        stream: the text of a CSV file.
        block_bytes: how much to read at once.

    Returns:
        Its offset in bytes, that of the last opening quote if it is never closed; None if all are allowed.
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


def raise_first(file: RecordFile, problems: Sequence[Problem | None], rows: int = 0) -> None:
    """Report the earliest of the problems in a part of a file before which there are so many rows, if any."""
    found = [problem for problem in problems if problem]
    if found:
        file.check_quotes()  # what looks like a strange cell may be half of one
        first = min(found)
        raise ImportFailed(file.path, file.line_of(rows + first.row), first.reason)


# Triples


TRIPLE_COLUMNS = ("head", "relation", "tail")
TIME_COLUMNS = {4: (*TRIPLE_COLUMNS, "time"), 5: (*TRIPLE_COLUMNS, "start", "end")}
"""Columns by their number, where triples have times."""

_YEAR = r"-?[0-9]{1,6}"
_DAY = r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?([T ][0-9:.]+(Z|[+-][0-9:]+)?)?"
_TIME = re.compile(rf"({_YEAR}|{_DAY})?")


class TripleFile:
    """A file whose lines are head, relation and tail, or these with one or two times; a `GraphStream`."""

    distinct = True
    left_out = 0

    def __init__(self, path: Path, left_out: frozenset[int] = frozenset()) -> None:
        """Read the first line. Raises `ImportFailed` when it is neither a header nor a triple."""
        self.file = RecordFile.at(path, left_out)
        self._entities, self._relations, self._rows = Interner(), Interner(), 0
        line, self._fields = self.file.first("lines of head, relation, tail")
        names = tuple(field.strip().lower() for field in self._fields)
        self._columns = TIME_COLUMNS.get(len(names), TRIPLE_COLUMNS)
        titled = names[:3] == TRIPLE_COLUMNS
        if titled and names != self._columns:
            reason = (
                "the header has property columns other than time, or start and end; "
                "name the file edges.csv, add a nodes.csv, and import the folder"
            )
            raise ImportFailed(path, line, reason)
        times = self._fields[3:]
        if len(names) != len(self._columns) or not (titled or all(map(_TIME.fullmatch, times))):
            raise self.file.ragged(len(TRIPLE_COLUMNS), line, self._fields)
        self.file = replace(self.file, titled=titled)
        names = self._columns[len(TRIPLE_COLUMNS) :]
        self._times = _Times(self.file, names) if names else None

    @property
    def name(self) -> str:
        """Name the file."""
        return str(self.file.path)

    def keep_in(self, folder: Path, state: Mapping[str, Any] | None) -> None:
        """Keep texts in files; see `ResumableStream`."""
        known = state or {"rows": 0, "entities": 0, "relations": 0}
        self._rows = known["rows"]
        self._entities = Interner(folder / "entities", known["entities"])
        self._relations = Interner(folder / "relations", known["relations"])
        if self._times:
            self._times.keep_in(folder, known.get("times"))

    def set_aside(self) -> None:
        """Give back the memory of texts in files; see `ResumableStream`."""
        self._entities.set_aside()

    def state(self) -> dict[str, Any]:
        """Return how many lines and texts there were so far."""
        counts = {"rows": self._rows, "entities": len(self._entities), "relations": len(self._relations)}
        return counts | ({"times": self._times.state()} if self._times else {})

    def blocks(self) -> Iterator[EdgeBlock]:
        """Yield the edges. Raises `ImportFailed` for a line that is no triple, or whose time is none."""
        known = self._rows
        for table in ahead(self.file.blocks(self._fields, [TEXT] * len(self._fields))):
            fresh = table.slice(min(known, table.num_rows))
            known -= table.num_rows - fresh.num_rows
            if not fresh.num_rows:
                continue
            triples = self._numbered(fresh, self._rows)
            times = self._times.read(fresh.columns[3:], self._rows) if self._times else None
            self._rows += fresh.num_rows
            yield EdgeBlock(triples, *(times or ()))
        if self._rows == 0:
            raise ImportFailed(self.file.path, None, "holds no triples; expected lines of head, relation, tail")

    def nodes(self) -> NodeColumns:
        """Return the entities, once: they are not kept."""
        entities, self._entities = self._entities, Interner()
        return NodeColumns(entities.strings, hashes=entities.hashes, set_aside=entities.set_aside)

    def relations(self) -> list[str]:
        """Return the relation labels."""
        labels: list[str] = self._relations.strings.to_pylist()
        return labels

    def property_types(self) -> Mapping[str, pa.DataType]:
        """Return the columns that hold times."""
        return self._times.types() if self._times else {}

    def source(self) -> dict[str, Any]:
        """Return what a graph's `source` says about the file."""
        return {"kind": "triples with time" if self._times else "triples", "files": [self.file.description()]}

    def _numbered(self, table: pa.Table, rows: int) -> Triples:
        """Return head, relation and tail numbers of some lines, before which there were so many."""
        head, relation, tail = (whole(column, TEXT) for column in table.columns[:3])
        met, coded = self._met(head, tail)
        labels = relation.dictionary_encode()
        if blank("", coded) or blank("", labels):
            columns = zip(TRIPLE_COLUMNS, (head, relation, tail), strict=True)
            raise_first(self.file, [blank(name, column.dictionary_encode()) for name, column in columns], rows)
        if met is None:
            numbers: Numbers = self._entities.encode(coded.dictionary, row_by_row(coded))
        else:
            met[met < 0] = self._entities.encode(coded.dictionary, coded.indices.to_numpy())
            numbers = met
        triples = np.empty((table.num_rows, 3), np.int32)
        triples[:, [0, 2]] = numbers.reshape(-1, 2)
        triples[:, 1] = self._relations.encode(labels.dictionary, labels.indices.to_numpy())
        return triples

    def _met(self, head: pa.Array, tail: pa.Array) -> tuple[Numbers | None, pa.DictionaryArray]:
        """Return head, tail, head, tail, … of E lines as numbers, -1 for those that have none yet, and what these are.

        Without numbers, the others are all heads and then all tails.
        """
        ends = pa.concat_arrays([head, tail])
        found = None if ends.null_count else self._entities.met(ends)
        if found is None:
            return None, ends.dictionary_encode()
        numbers = found.reshape(2, -1).T.ravel()
        fresh = np.flatnonzero(numbers < 0)
        return numbers, ends.take(positions((fresh & 1) * len(head) + (fresh >> 1))).dictionary_encode()


class _Times:
    """The columns that say when an edge holds: years are int, days date, and a mixture with other times text."""

    def __init__(self, file: RecordFile, names: Sequence[str]) -> None:
        self._file, self._names = file, names
        self._kinds: dict[str, list[str]] = {name: ["int", "date", "string"] for name in names}
        """What each column may still be, best first."""
        self._strange: dict[str, Problem] = {}
        """The first cell of each column that is neither a year nor a date; a long number is, in a column of numbers."""
        self._texts = Interner()

    def keep_in(self, folder: Path, state: Mapping[str, Any] | None) -> None:
        """Keep texts in files; see `ResumableStream`."""
        self._texts = Interner(folder / "times", state["texts"] if state else 0)
        if state:
            self._kinds = dict(state["kinds"])
            self._strange = {name: Problem(*problem) for name, problem in state["strange"].items()}

    def state(self) -> dict[str, Any]:
        """Return what is known of the columns so far."""
        strange = {name: [problem.row, problem.reason] for name, problem in self._strange.items()}
        return {"texts": len(self._texts), "kinds": self._kinds, "strange": strange}

    def read(self, columns: Sequence[pa.ChunkedArray], rows: int) -> tuple[pa.RecordBatch, Numbers]:
        """Return times as texts, and for each row a number that says which they are; rows count those before."""
        marks = np.zeros(len(columns[0]), np.int64)
        texts = [whole(column, TEXT) for column in columns]
        coded = [column.dictionary_encode() for column in texts]
        raise_first(self._file, [self._check(*column, rows) for column in zip(self._names, coded, strict=True)])
        for column in map(without_null, coded):
            marks = marks << 32 | self._texts.encode(column.dictionary, column.indices.to_numpy())
        return pa.RecordBatch.from_arrays(texts, list(self._names)), marks

    def _check(self, name: str, coded: pa.DictionaryArray, rows: int) -> Problem | None:
        """Find out what a column may still be; return the cell that leaves nothing."""
        distinct = pa.chunked_array([coded.dictionary])
        fits = pc.match_substring_regex(distinct, f"^({_YEAR}|{_DAY})$").to_numpy()
        if not fits.all() and name not in self._strange:
            row = int(np.isin(pc.fill_null(coded.indices, -1).to_numpy(), np.flatnonzero(~fits)).argmax())
            reason = f"{name} {coded[row].as_py()!r} is neither a year nor an ISO 8601 date"
            self._strange[name] = Problem(rows + row, f"{reason}; correct the cell or empty it")
        self._kinds[name] = [
            kind
            for kind in self._kinds[name]
            if (fits.all() if kind == "string" else typed(name, kind, distinct)[1] is None)
        ]
        return None if self._kinds[name] else self._strange[name]

    def types(self) -> dict[str, pa.DataType]:
        """Return what each column holds."""
        return {name: KINDS[kinds[0]][0] for name, kinds in self._kinds.items()}
