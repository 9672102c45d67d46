"""N-Triples and N-Quads without graphs: blocks of lines, which all cores read at once, as columns.

Plain lines `subject predicate object .` are split without a Python object for each; pyoxigraph reads each of the
others. The result does not depend on the number of cores. A `QuadBlock` holds a block's columns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Bools
from byokg.errors import ImportFailed, import_extra
from byokg.files import TextFile
from byokg.graph.columnar.schema import TEXT
from byokg.graph.columnar.writer import map_ahead
from byokg.graph.rdf.literals import Literal
from byokg.graph.rdf.terms import RDF, RDF_REIFIES, XSD
from byokg.index.vocabulary import positions

QUADS = 1 << 16
"""Quads of pyoxigraph's put into columns together."""


class LiteralTypes:
    """Numbers for the datatypes and languages of literals, in order of appearance."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []
        """Datatype and language."""
        self._numbers: dict[tuple[str, str], int] = {}

    def number(self, datatype: str, language: str) -> int:
        """Return the number of a datatype and language; new ones get the next one."""
        key = datatype, language
        number = self._numbers.setdefault(key, len(self.pairs))
        if number == len(self.pairs):
            self.pairs.append(key)
        return number


@dataclass(frozen=True)
class QuadBlock:
    """Q quads in the order of the file, as columns. Nodes are written as ids: IRIs, and `_:b1`."""

    subject: pa.DictionaryArray
    predicate: pa.DictionaryArray
    end: pa.DictionaryArray
    """The object: an id, or the text of a literal."""
    kind: npt.NDArray[np.int32]
    """Where the object is a literal, the number that `LiteralTypes` gave to its datatype and language; else -1."""
    graph: pa.DictionaryArray | None = None
    """Empty for the default graph; None if all quads are in it."""
    statements: tuple[int, ...] = ()
    """Rows whose subject is a statement about a triple that is no quad here: the one that the next row spells out."""
    mentioned: npt.NDArray[np.bool_] | None = None
    """Rows that are such triples, or that only mention their subject, but are not in the file as quads."""
    lost: int = 0
    """Quads without a columnar form: triples as objects of predicates other than `rdf:reifies`."""


def columns(quads: Sequence[Any], scope: str, kinds: LiteralTypes) -> QuadBlock:
    """Put pyoxigraph's quads into columns; labels of blank nodes begin with `scope`."""
    pyoxigraph = import_extra("pyoxigraph", "sparql", "reading RDF")
    named, default = pyoxigraph.NamedNode, pyoxigraph.DefaultGraph
    rows: list[tuple[str, str, str, int, str]] = []
    statements: list[int] = []
    mentioned: list[int] = []
    lost = 0

    def id_of(term: Any) -> str:
        value: str = term.value
        return value if isinstance(term, named) else f"_:{scope}{value}"

    for subject, predicate, end, graph in quads:
        head, label = id_of(subject), predicate.value
        where = "" if isinstance(graph, default) else id_of(graph)
        if isinstance(end, pyoxigraph.Literal):
            literal = literal_of(end)
            rows.append((head, label, literal.text, kinds.number(literal.datatype, literal.language), where))
        elif not isinstance(end, pyoxigraph.Triple):
            rows.append((head, label, id_of(end), -1, where))
        else:
            mentioned.append(len(rows))
            inner = end.object
            told = label == RDF_REIFIES and not isinstance(inner, pyoxigraph.Literal | pyoxigraph.Triple)
            lost += label != RDF_REIFIES
            if label == RDF_REIFIES:
                statements.append(len(rows))
            rows.append((head, label, head, -1, ""))
            if told:
                mentioned.append(len(rows))
                rows.append((id_of(end.subject), end.predicate.value, id_of(inner), -1, ""))
    heads, labels, ends, numbers, graphs = zip(*rows, strict=True)
    marks = np.zeros(len(rows), np.bool_)
    marks[mentioned] = True
    return QuadBlock(
        subject=pa.array(heads, TEXT).dictionary_encode(),
        predicate=pa.array(labels, TEXT).dictionary_encode(),
        end=pa.array(ends, TEXT).dictionary_encode(),
        kind=np.array(numbers, np.int32),
        graph=pa.array(graphs, TEXT).dictionary_encode() if any(graphs) else None,
        statements=tuple(statements),
        mentioned=marks if mentioned else None,
        lost=lost,
    )


def literal_of(term: Any) -> Literal:
    """Return what pyoxigraph calls a literal as one of ours."""
    return Literal(term.value, term.datatype.value, (term.language or "").lower())


# Terms that are surely what pyoxigraph would make of them; it looks at all others.
_WIDE = r"\x{a0}-\x{d7ff}\x{f900}-\x{fdcf}\x{fdf0}-\x{ffef}"
_PLAIN_IRI = (
    rf"[A-Za-z][A-Za-z0-9+.-]*:(?://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@/{_WIDE}-]|%[0-9A-Fa-f]{{2}})*)?|"
    rf"[A-Za-z0-9._~!$&'()*+,;=:@{_WIDE}-]+)(?:#[A-Za-z0-9._~!$&'()*+,;=:@/{_WIDE}-]*)?"
)
_PLAIN_NODE = rf"^(?:<{_PLAIN_IRI}>|_:[A-Za-z0-9_]+)$"
_PLAIN_PREDICATE = rf"^<{_PLAIN_IRI}>$"
_PLAIN_LITERAL = (
    rf'^"(?P<text>[^"\\\\]*)"(?:@(?P<language>[A-Za-z]{{2,3}}(?:-[A-Za-z]{{2,4}})?)|\^\^<(?P<datatype>{_PLAIN_IRI})>)?$'
)
_PLACE = "Parser error "
"""Start of pyoxigraph's report of a place within a line, up to a colon."""


class FilePosition(NamedTuple):
    """How far a file has been read."""

    bytes: int
    lines: int


START = FilePosition(0, 0)


class BadLines:
    """Lines that are no statements, of which some may be left out."""

    def __init__(self, most: int = 0, told: Callable[[ImportFailed], object] | None = None) -> None:
        self.found: list[tuple[str, int, str]] = []
        """File, line and reason of each so far."""
        self._most, self._told = most, told

    def meet(self, path: Path, line: int, reason: str) -> None:
        """Take note of one. Raises `ImportFailed` for the first that is too many."""
        error = ImportFailed(path, line, reason)
        if len(self.found) >= self._most:
            raise error
        self.found.append((str(path), line, reason))
        if self._told is not None:
            self._told(error)

    def again(self, found: Sequence[tuple[str, int, str]]) -> None:
        """Take note of those that another process has left out."""
        for path, line, reason in found:
            self.meet(Path(path), line, reason)


def blocks(
    path: Path, scope: str, kinds: LiteralTypes, bad: BadLines, start: FilePosition = START
) -> Iterator[tuple[QuadBlock, FilePosition]]:
    """Yield the statements of a file, with the position reached.

    Args:
        path: the file.
        scope: prefix of the labels of blank nodes.
        kinds: numbers the datatypes and languages of literals.
        bad: True if a bad line may be left out.
        start: position to continue from.

    Raises:
        ImportFailed: one bad line more than allowed, or the file cannot be read.
    """
    done = start
    for read in map_ahead(lambda text: _read_lines(text, scope), _from(path, start.bytes), os.cpu_count() or 1):
        for place, reason in read.bad:
            bad.meet(path, done.lines + place + 1, reason)
        numbers = np.array([kinds.number(*pair) for pair in read.kinds] + [-1], np.int32)
        done = FilePosition(done.bytes + read.bytes, done.lines + read.lines)
        for block in read.blocks:
            yield replace(block, kind=numbers[block.kind]), done


def _from(path: Path, start: int) -> Iterator[bytes]:
    """Yield blocks of whole lines behind the first `start` bytes of a text, which are whole lines."""
    for text in TextFile(path).line_blocks():
        if start < len(text):
            yield text[start:]
        start = max(start - len(text), 0)


@dataclass(frozen=True)
class _Read:
    """Content of some lines."""

    blocks: Sequence[QuadBlock]
    """Kinds count `kinds`."""
    kinds: Sequence[tuple[str, str]]
    bad: Sequence[tuple[int, str]]
    """Lines that are no statement, counted from 0, and why."""
    lines: int
    bytes: int


def _read_lines(text: bytes, scope: str) -> _Read:
    """Read some whole lines."""
    size, kinds, bad = len(text), LiteralTypes(), list[tuple[int, str]]()
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    if not text.endswith(b"\n"):
        text += b"\n"
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1
    offsets = pa.py_buffer(np.concatenate((np.zeros(1, np.int64), ends)))
    octets = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends), [None, offsets, pa.py_buffer(text)])
    rows = np.arange(len(ends))
    try:
        lines = octets.cast(TEXT)  # which looks whether it is UTF-8
    except pa.ArrowInvalid:
        sound = np.array([_is_utf8(line) for line in octets.to_pylist()], np.bool_)
        bad += [(row, "the line is not UTF-8; correct the file") for row in np.flatnonzero(~sound).tolist()]
        rows = rows[sound]
        lines = octets.take(positions(rows)).cast(TEXT)
    parts = (  # Freebase has tabs, which may stand in texts, too
        pc.split_pattern_regex(lines, "[ \t]", max_splits=2)
        if b"\t" in text
        else pc.split_pattern(lines, " ", max_splits=2)
    )
    whole: Bools = pc.list_value_length(parts).to_numpy(zero_copy_only=False) == len(("subject", "predicate", "object"))
    block, plain = _split_plain(parts if whole.all() else parts.filter(pa.array(whole)), scope, kinds)
    whole[whole] = plain
    if whole.all():
        return _Read([block], kinds.pairs, bad, len(ends), size)
    others, wrong = _others(lines, rows, np.flatnonzero(~whole))
    bad = sorted([*bad, *wrong])
    mixed = _mixed(block, rows[whole], others, scope, kinds)
    if mixed is None:  # there are statements about statements: all lines are read as one
        left_out = {row for row, _ in bad}
        kinds = LiteralTypes()
        quads = [
            quad
            for row, line in zip(rows.tolist(), lines.to_pylist(), strict=True)
            if row not in left_out
            for quad in _parsed(line)
        ]
        some = [columns(quads[at : at + QUADS], scope, kinds) for at in range(0, len(quads), QUADS)]
        return _Read(some, kinds.pairs, bad, len(ends), size)
    return _Read([mixed], kinds.pairs, bad, len(ends), size)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _parsed(line: str) -> list[Any]:
    """Return pyoxigraph's quads of a line: none of a comment."""
    pyoxigraph = import_extra("pyoxigraph", "sparql", "reading RDF")
    return list(pyoxigraph.parse(line.encode(), pyoxigraph.RdfFormat.N_TRIPLES))


def _others(
    lines: pa.LargeStringArray, rows: npt.NDArray[np.int64], odd: npt.NDArray[np.int64]
) -> tuple[list[tuple[int, Any]], list[tuple[int, str]]]:
    """Read some lines one by one; return their quads with the rows of these, and the rows that are bad, and why."""
    quads, wrong = list[tuple[int, Any]](), list[tuple[int, str]]()
    for row, line in zip(rows[odd].tolist(), lines.take(positions(odd)).to_pylist(), strict=True):
        try:
            quads += [(row, quad) for quad in _parsed(line)]
        except SyntaxError as error:
            reason = error.msg.partition(": ")[2] if error.msg.startswith(_PLACE) else error.msg
            wrong.append((row, f"{reason}; correct the file"))
        except MemoryError:  # the parser takes no more than 16 MB
            reason = f"it has {len(line):,} letters; a line as long is read only if it is a statement without escapes"
            wrong.append((row, f"{reason}; correct the file"))
    return quads, wrong


def _mixed(
    block: QuadBlock, rows: npt.NDArray[np.int64], others: Sequence[tuple[int, Any]], scope: str, kinds: LiteralTypes
) -> QuadBlock | None:
    """Put quads among those of a block, by their rows; None if there are statements about statements."""
    if not others:
        return block
    odd = columns([quad for _, quad in others], scope, kinds)
    if odd.mentioned is not None:
        return None
    order = np.argsort(np.concatenate((rows, np.array([row for row, _ in others]))), kind="stable")

    def together(name: str) -> pa.DictionaryArray:
        both = [getattr(part, name).dictionary_decode() for part in (block, odd)]
        return pa.concat_arrays(both).take(positions(order)).dictionary_encode()

    kind = np.concatenate((block.kind, odd.kind))[order]
    return QuadBlock(together("subject"), together("predicate"), together("end"), kind)


def _split_plain(parts: pa.LargeListArray, scope: str, kinds: LiteralTypes) -> tuple[QuadBlock, Bools]:
    """Return the plain ones among lines split into three, and their positions."""
    subject, predicate, rest = (pc.list_element(parts, at).dictionary_encode() for at in range(3))
    closed = _marks(pc.ends_with(rest.dictionary, " .\n")) | _marks(pc.ends_with(rest.dictionary, "\t.\n"))
    ends = pc.utf8_slice_codeunits(rest.dictionary, 0, -3)
    literal = _marks(pc.starts_with(ends, '"'))
    nodes, said = ends.filter(pa.array(~literal)), ends.filter(pa.array(literal))
    kind, texts, known = _literals(said, kinds)
    sound = closed.copy()
    sound[~literal] &= _fit(nodes, _PLAIN_NODE)
    sound[literal] &= known
    codes = [column.indices.to_numpy() for column in (subject, predicate, rest)]
    fit = [_fit(subject.dictionary, _PLAIN_NODE), _fit(predicate.dictionary, _PLAIN_PREDICATE), sound]
    plain = np.ones(len(parts), np.bool_)
    for marks, code in zip(fit, codes, strict=True):
        if not marks.all():
            plain &= marks[code]
    if not plain.all():
        codes = [code[plain] for code in codes]
    place, of_end = np.empty(len(ends), np.int64), np.full(len(ends), -1, np.int32)
    place[~literal], place[literal] = np.arange(len(nodes)), np.arange(len(nodes), len(ends))
    of_end[literal] = kind
    values = pa.concat_arrays([_ids(nodes, scope), texts]).take(positions(place)).dictionary_encode()
    return QuadBlock(
        subject=pa.DictionaryArray.from_arrays(codes[0], _ids(subject.dictionary, scope)),
        predicate=pa.DictionaryArray.from_arrays(codes[1], _ids(predicate.dictionary, scope)),
        # Each value once, as one text may be several literals.
        end=pa.DictionaryArray.from_arrays(values.indices.to_numpy()[codes[2]], values.dictionary),
        kind=of_end[codes[2]],
    ), plain


def _ids(terms: pa.Array, scope: str) -> pa.Array:
    """Take IRIs out of their angle brackets; blank nodes have none."""
    blank = pc.starts_with(terms, "_")
    inner = pc.utf8_slice_codeunits(terms, 1, -1)
    if not pc.any(blank).as_py():
        return inner
    return pc.if_else(blank, pc.replace_substring_regex(terms, "^_:", f"_:{scope}"), inner)


def _literals(terms: pa.Array, kinds: LiteralTypes) -> tuple[npt.NDArray[np.int32], pa.Array, Bools]:
    """Return kind and text of each literal, and which are written plainly; the others have none."""
    found = pc.extract_regex(terms, _PLAIN_LITERAL)
    known = _marks(found.is_valid())
    texts, languages, datatypes = (found.field(name) for name in ("text", "language", "datatype"))
    said = pc.binary_join_element_wise(datatypes, pc.utf8_lower(languages), pa.scalar("\0", TEXT)).dictionary_encode()
    numbers = []
    for one in said.dictionary.to_pylist():
        datatype, _, language = one.partition("\0") if one else ("", "", "")
        numbers.append(kinds.number(datatype or (RDF + "langString" if language else XSD + "string"), language))
    kind = np.zeros(len(terms), np.int32)
    kind[known] = np.array(numbers, np.int32)[said.indices.filter(pa.array(known)).to_numpy()]
    return kind, texts, known


def _fit(texts: pa.Array, pattern: str) -> Bools:
    return _marks(pc.match_substring_regex(texts, pattern))


def _marks(found: pa.Array) -> Bools:
    marks: Bools = found.to_numpy(zero_copy_only=False).astype(np.bool_)
    return marks
