"""Dialects of delimited text, detected from the beginning of a file: encoding, separator, quotes, comments.

A separator fits if all records have the same number of fields by it. Tabs come before all others; of others, that of
the file's ending (`.csv`, `.txt`: `|`) counts if it gives three fields or a header of known names. If several fit in
different ways, the file is refused until `TableOptions` decides. (`csv.Sniffer` finds another separator or none for one
in eight of the forms that the tests hold, so `csv` only parses here.)
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from byokg.errors import ConfigError, ImportFailed
from byokg.files import TextFile, open_decompressed, uncompressed
from byokg.graph.importers.columns import edge_header, is_number, node_header

ENDINGS = {
    ".txt": "|",
    ".csv": ",",
    ".tsv": "\t",
    ".tab": "\t",
    ".psv": "|",
    ".edges": "",
    ".edgelist": "",
    ".dat": "",
    ".sif": "\t",
}
"""Endings of delimited files and the separator that each promises, if any."""

SEPARATOR_NAMES = {"|": "'|'", "\t": "a tab", ",": "','", ";": "';'", " ": "a space"}
_SHORT_NAMES = {"|": "'|'", "\t": "tab", ",": "comma", ";": "semicolon", " ": "space"}
_GIVEN = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}

_HEAD_BYTES, _GROWTH, _LONGEST_BYTES = 1 << 16, 16, 1 << 27
"""How much of a file is looked at; so many times as much while a single record is longer."""

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_COMMENTS = ("#", "%")
_STATED = re.compile(r"%\s*(sym|asym|bip)\b|#\s*(un)?directed graph\b", re.IGNORECASE)
_STATED_UNDIRECTED = re.compile(r"%\s*sym\b|#\s*undirected graph\b", re.IGNORECASE)
"""Comments of KONECT and SNAP."""
_HINT = re.compile(r'"?sep=([,;|\t])"?[\r\n]*')
_COUNTED = re.compile(r"\w*2id\.\w+")
"""Names of OpenKE's files, whose first line counts the others."""

_UNCLOSED = "unexpected end of data"
"""Error of `csv` for a quoted field without an end."""

Record = tuple[int, list[str]]
"""Line and fields."""


@dataclass(frozen=True)
class TableOptions:
    """Decisions about delimited files that are otherwise detected.

    Args:
        columns: roles of the columns of edges, from left to right: `source`, `relation`, `target`, the name of a
            property, with its kind if it has one (`weight:float`), or `-` to leave a column out. Or pairs of these
            and the names in a header: `source=person`, `target=company`.
        header: True if the first record names the columns; None detects it.
        delimiter: one of `,` `;` `|` `tab` `space`; empty detects it.
        comment: start of comment lines; empty if there are none, None detects it.
        undirected: True if edges lead both ways, unless a column states their direction.
        names: display templates of node types, see `display_names.parse_templates`; those of other types are chosen.
        language: tag of the language of names in RDF, where a node has them in several.

    Raises:
        ConfigError: the delimiter or the comment is not one character.
    """

    columns: tuple[str, ...] = ()
    header: bool | None = None
    delimiter: str = ""
    comment: str | None = None
    undirected: bool = False
    names: tuple[tuple[str, str], ...] = ()
    language: str = "en"

    def __post_init__(self) -> None:
        if self.delimiter and self.separator not in SEPARATOR_NAMES:
            raise ConfigError(f"delimiter {self.delimiter!r} is none of , ; | tab space")
        if self.comment and len(self.comment) != 1:
            raise ConfigError(f"comment {self.comment!r} is not one character, such as #")

    @property
    def separator(self) -> str:
        """Return the delimiter as a character."""
        return _GIVEN.get(self.delimiter.lower(), self.delimiter)


DETECTED = TableOptions()
"""Options that decide nothing."""


@dataclass(frozen=True)
class Dialect:
    """How a delimited text is written."""

    separator: str
    quote: str = ""
    """Possible quotes of fields."""
    encoding: str = ""
    """Encoding that the text is converted from; empty for UTF-8."""
    comment: str = ""
    """Character that begins the lines of comments."""
    runs: bool = False
    """True if any number of blanks separates two fields."""
    padded: bool = False
    """True if a space follows each separator."""
    counted: bool = False
    """True if the first record counts the others."""
    hinted: bool = False
    """True if the first line states the separator, as Excel reads it: `sep=;`."""
    names: tuple[str, ...] = ()
    """Header that stands in a comment."""
    undirected: bool = False
    """True if a comment states that edges lead both ways."""

    def __str__(self) -> str:
        parts = [_SHORT_NAMES[self.separator]]
        plain_quote = '"' if self.separator in ",;" else ""
        if self.quote != plain_quote:
            parts.append(f"quote {self.quote}" if self.quote else "no quotes")
        if self.encoding:
            parts.append(self.encoding.upper())
        if self.comment:
            parts.append(f"comments {self.comment}")
        if self.padded:
            parts.append("spaces behind separators dropped")
        return ", ".join(parts)


class _Head(NamedTuple):
    """The beginning of a file."""

    encoding: str
    lines: list[str]
    whole: bool
    """True if that is all of the file."""


class _DialectFit(NamedTuple):
    """Result of a dialect on the beginning of a file."""

    dialect: Dialect
    records: list[Record]
    width: int
    regular: bool
    """True if all records have the same width, of two fields or more."""

    @property
    def fields(self) -> list[str]:
        """Return the first record."""
        return self.records[0][1] if self.records else []

    @property
    def titled(self) -> bool:
        """Return True if the first record names columns of edges or nodes."""
        below = [fields for _, fields in self.records[1:]]
        fields = [field.strip() for field in self.fields]
        return bool(below) and (edge_header(fields, below) is not None or node_header(fields, below) is not None)


def promised_separator(path: Path) -> str:
    """Return the separator that the ending of a file's name promises. Raises `ImportFailed` for an unknown ending."""
    ending = uncompressed(path).suffix.lower()
    if ending not in ENDINGS:
        known = ", ".join(ENDINGS)
        reason = f"a table needs an ending, one of {known}, and then .gz, .xz, .bz2 or .zst if compressed"
        raise ImportFailed(path, None, f"{reason}; rename the file")
    return ENDINGS[ending]


def detect_dialect(file: TextFile, options: TableOptions = DETECTED) -> Dialect:
    """Find out how a file is written, once while it is unchanged. Raises `ImportFailed` if several ways fit."""
    with file.reading():
        now = file.path.stat()
    return _detected(file, options, now.st_mtime_ns, now.st_size)


@lru_cache(maxsize=256)
def _detected(file: TextFile, options: TableOptions, changed: int, size: int) -> Dialect:
    promised = promised_separator(file.path)
    head = _read_head(file)
    comment = _find_comment(head.lines) if options.comment is None else options.comment
    lines = _without_comments(head.lines, comment)
    hint = _HINT.fullmatch(lines[0]) if lines else None
    if hint:
        lines[0] = "\n"
    given = options.separator or (hint[1] if hint else "")
    fits = {
        separator: _fit(file.path, separator, lines, head.whole)
        for separator in ([given] if given else ["\t", "|", ";", ",", " "])
    }
    chosen = _choose(file.path, fits, promised)
    if options.comment is None and comment:
        chosen = _with_comments(file.path, chosen, comment, head)
    elif comment:
        chosen = chosen._replace(dialect=replace(chosen.dialect, comment=comment))
    return replace(chosen.dialect, encoding=head.encoding, hinted=hint is not None)


def _read_head(file: TextFile) -> _Head:
    size = _HEAD_BYTES
    while True:
        with file.reading(), open_decompressed(file.path) as stream:
            data = _read_exactly(stream.read, size)
        whole = len(data) < size
        encoding = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "")
        decoder = codecs.getincrementaldecoder(encoding or "utf-8-sig")("replace" if encoding else "surrogateescape")
        lines = _LINE.findall(decoder.decode(data, whole))
        if not whole and lines:
            lines.pop()
        if whole or len(lines) > 1 or size >= _LONGEST_BYTES:
            blank = [number for number in file.left_out if number <= len(lines)]
            for number in blank:
                lines[number - 1] = "\n"
            return _Head(encoding, lines, whole)
        size *= _GROWTH


def _read_exactly(read: Callable[[int], bytes], size: int) -> bytes:
    parts: list[bytes] = []
    while size and (data := read(size)):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def _find_comment(lines: Sequence[str]) -> str:
    """Return the common start of the first lines if they may be comments, or any line begins with `#`."""
    first = next((line for line in lines if line.strip()), "")
    if first[:1] in _COMMENTS:
        return first[0]
    return "#" if any(line.startswith("#") for line in lines) else ""


def _without_comments(lines: Sequence[str], comment: str) -> list[str]:
    return ["\n" if comment and line.startswith(comment) else line for line in lines]


def _with_comments(path: Path, chosen: _DialectFit, comment: str, head: _Head) -> _DialectFit:
    """Decide whether lines that begin like comments are such: records of the same width may be edges."""
    found = [(number, line.rstrip("\r\n")) for number, line in enumerate(head.lines, 1) if line.startswith(comment)]
    if found[0][1].startswith("%%MatrixMarket"):
        raise ImportFailed(path, found[0][0], "this is a Matrix Market file; write its entries as source,target,weight")
    undirected = any(_STATED_UNDIRECTED.match(line) for _, line in found)
    commented = chosen._replace(dialect=replace(chosen.dialect, comment=comment, undirected=undirected))
    if not chosen.records:  # all lines begin with it
        fit = _choose(path, {one: _fit(path, one, head.lines, head.whole) for one in "\t|;, "}, ENDINGS[_suffix(path)])
        return fit
    dialect = replace(chosen.dialect, names=())
    like = []
    for number, line in found:
        text = line[len(comment) :].strip() if chosen.dialect.runs else line[len(comment) :].lstrip(f"{comment} ")
        fields = next(read_records(dialect, [text]), (1, 1, []))[2] or [""]
        if len(fields) == chosen.width and not _STATED.match(line):
            like.append((number, line, [field.strip() for field in fields]))
    first_record = chosen.records[0][0]
    below = [fields for _, fields in chosen.records]
    for number, line, fields in like:
        header = edge_header(fields, below)
        if number < first_record and header and not header.weak and (line[1:2] in (" ", "\t") or not header.strange):
            return commented._replace(dialect=replace(commented.dialect, names=tuple(fields)))
    if not like or all(re.match(rf"{comment}[{comment}!]", line) for _, line, _ in like):
        return commented
    if not any(line[1:2] in (" ", "\t") for _, line, _ in like) and len(like) == len(found):
        return chosen
    number, line, _ = like[0]
    reason = f"{line[:60]!r} may be a comment or a record; decide with --comment '{comment}' or --comment ''"
    raise ImportFailed(path, number, reason)


def _suffix(path: Path) -> str:
    return uncompressed(path).suffix.lower()


# Separators


def _fit(path: Path, separator: str, lines: Sequence[str], whole: bool) -> _DialectFit:
    """Read some lines by a separator, with quotes if these have a meaning."""
    runs = separator == " " and any(re.search(r"[ \t]{2}|^[ \t]|\t|[ \t]$", line.rstrip("\r\n")) for line in lines)
    if separator in ",;":
        fit = _measured(path, Dialect(separator, '"'), lines, whole)
        single = _measured(path, Dialect(separator, "'"), lines, whole)
        return single if single.regular and _all_quoted(lines, separator, "'") else fit
    plain = _measured(path, Dialect(separator, runs=runs), lines, whole)
    if runs or not any('"' in line or "'" in line for line in lines):
        return plain
    for quote in ('"', "'"):
        quoted = _measured(path, Dialect(separator, quote), lines, whole)
        if not quoted.regular:
            continue
        cells = [cell for _, fields in plain.records for cell in fields if cell and not is_number(cell)]
        enclosed = all(_is_enclosed(cell, quote) for cell in cells)
        titled = any(_is_enclosed(cell, quote) for cell in plain.fields) and quoted.titled
        if not plain.regular or enclosed or titled or (separator == " " and quoted.width != plain.width):
            return quoted
    return plain


def _is_enclosed(cell: str, quote: str) -> bool:
    return len(cell) > 1 and cell[0] == cell[-1] == quote


def _all_quoted(lines: Sequence[str], separator: str, quote: str) -> bool:
    """Return True if all fields but numbers, those of a header perhaps left out, are enclosed in a quote."""
    filled = [line for line in lines if line.strip()]
    below = filled[1:] or filled
    fields = [field.strip() for line in below for field in line.split(separator) if field.strip()]
    texts = [field for field in fields if not is_number(field)]
    return len(texts) > 1 and all(field.startswith(quote) or field.endswith(quote) for field in texts)


def _measured(path: Path, dialect: Dialect, lines: Sequence[str], whole: bool) -> _DialectFit:
    records, broken = _parsed_up_to(dialect, lines)
    if dialect.quote and not whole:  # the last record may go on
        records, broken = records[:-1] if not broken else records, broken.replace(_UNCLOSED, "")
    counted = False
    if len(records) > 1 and len(records[0][1]) == 1 < len(records[1][1]) and records[0][1][0].strip().isdigit():
        counted = _COUNTED.fullmatch(path.name.lower()) is not None
        if counted:
            dialect = replace(dialect, counted=True)
            records = records[1:]
    padded = not dialect.runs and _is_padded(records)
    if padded:
        dialect = replace(dialect, padded=True)
        records = [(line, [field.strip() for field in fields]) for line, fields in records]
    widths = Counter(len(fields) for _, fields in records[1:]) or Counter(len(fields) for _, fields in records)
    width = widths.most_common(1)[0][0] if widths else 0
    regular = not broken and width > 1 and len(widths) == 1 and _heads(records, width)
    return _DialectFit(dialect, records, width, regular)


def _parsed_up_to(dialect: Dialect, lines: Sequence[str]) -> tuple[list[Record], str]:
    """Return the records before the first wrong quote, and the reason why it is wrong, if there is one."""
    records: list[Record] = []
    try:
        for line, _, fields in read_records(dialect, lines):
            if fields:
                records.append((line, fields))
    except csv.Error as error:
        return records, str(error)
    return records, ""


def _heads(records: Sequence[Record], width: int) -> bool:
    """Return True if the first record is as wide as the others, except for separators at the end of lines."""
    first = records[0][1]
    if len(first) == width:
        return True
    if len(first) == width + 1:
        return not first[-1].strip()
    return len(first) == width - 1 and not any(fields[-1].strip() for _, fields in records[1:])


def _is_padded(records: Sequence[Record]) -> bool:
    further = [field for _, fields in records for field in fields[1:]]
    return bool(further) and all(field.startswith(" ") and field.strip() for field in further)


def read_records(dialect: Dialect, lines: Iterable[str]) -> Iterator[tuple[int, int, list[str]]]:
    """Yield first line, last line and fields of each record, without fields for empty ones.

    Raises `csv.Error` for a wrong quote in the record behind the last one.
    """
    if not dialect.quote:
        for number, line in enumerate(lines, 1):
            text = line.rstrip("\r\n")
            yield number, number, text.split() if dialect.runs else text.split(dialect.separator) if text else []
        return
    reader = csv.reader(iter(lines), delimiter=dialect.separator, quotechar=dialect.quote, strict=True)
    start = 1
    for fields in reader:
        yield start, reader.line_num, fields
        start = reader.line_num + 1


def _choose(path: Path, fits: dict[str, _DialectFit], promised: str) -> _DialectFit:
    """Choose the separator. Raises `ImportFailed` if several fit."""
    regular = {separator: fit for separator, fit in fits.items() if fit.regular}
    if len(regular) > 1:
        regular.pop(" ", None)
    if promised in regular and (regular[promised].width > 2 or regular[promised].titled):
        return regular[promised]
    titled = [fit for fit in regular.values() if fit.titled]
    if len(titled) == 1:
        return titled[0]
    if "\t" in regular:
        return regular["\t"]
    if len(regular) == 1:
        return next(iter(regular.values()))
    if regular:
        ways = " or ".join(
            f"{SEPARATOR_NAMES[separator]} ({fit.width} fields: {' · '.join(fit.fields)[:60]})"
            for separator, fit in regular.items()
        )
        reason = f"fields may be separated by {ways}; decide with --delimiter ';', for example, or in graph.yaml with"
        reason += f" files: {{{path.name}: {{delimiter: ';'}}}}"
        raise ImportFailed(path, next(iter(regular.values())).records[0][0], reason)
    if promised in fits and len(fits[promised].fields) > 1:
        return fits[promised]
    wide = [fit for separator, fit in fits.items() if separator != " " and fit.width > 1 and len(fit.fields) > 1]
    best = max(wide, key=lambda fit: sum(len(fields) == fit.width for _, fields in fit.records), default=None)
    return best or fits.get(promised) or fits.get(",") or next(iter(fits.values()))


def filtered(stream: io.RawIOBase, change: Callable[[bytes], bytes]) -> io.BufferedReader:
    """Return a stream of the same lines, changed some at a time."""
    return io.BufferedReader(_Changed(stream, change), 1 << 20)


class _Changed(io.RawIOBase):
    """A stream whose lines are changed."""

    def __init__(self, stream: io.RawIOBase, change: Callable[[bytes], bytes]) -> None:
        self._stream, self._change = stream, change
        self._rest, self._waiting, self._ended = b"", memoryview(b""), False

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer; return the number of bytes."""
        while not self._waiting and not self._ended:
            data = self._stream.read(1 << 20) or b""
            self._ended = not data
            text = self._rest + data
            end = len(text) if self._ended else text.rfind(b"\n") + 1
            self._rest = text[end:]
            self._waiting = memoryview(self._change(text[:end]))
        count = min(len(buffer), len(self._waiting))
        buffer[:count] = self._waiting[:count]
        self._waiting = self._waiting[count:]
        return count

    def close(self) -> None:
        """Close the stream beneath, too."""
        self._stream.close()
        super().close()


def without_comments(dialect: Dialect) -> Callable[[bytes], bytes]:
    """Return a filter that empties the lines of comments, except within quotes."""
    mark = re.compile(rb"^(?:\xef\xbb\xbf)?" + re.escape(dialect.comment.encode()) + rb"[^\r\n]*", re.MULTILINE)
    quote = dialect.quote.encode()
    inside = False

    def change(text: bytes) -> bytes:
        nonlocal inside
        if not quote or (quote not in text and not inside):
            return mark.sub(b"", text)
        parts, at = [], 0
        for match in mark.finditer(text):
            if match.start() < at:
                continue
            inside ^= text.count(quote, at, match.start()) % 2 == 1
            parts.append(text[at : match.start()])
            if inside:
                parts.append(match.group())
                inside ^= match.group().count(quote) % 2 == 1
            at = match.end()
        inside ^= text.count(quote, at) % 2 == 1
        return b"".join([*parts, text[at:]])

    return change


_BLANKS, _EDGE_BLANKS = re.compile(rb"[ \t]+"), re.compile(rb"^[ \t]+|[ \t]+(?=\r?$)", re.MULTILINE)


def with_single_tabs(text: bytes) -> bytes:
    """Put one tab between the fields of lines that blanks separate."""
    return _BLANKS.sub(b"\t", _EDGE_BLANKS.sub(b"", text))
