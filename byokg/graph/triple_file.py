"""Files of triples, with or without a time: read a block at a time while entities and relations are numbered.

Numbers are given in order of first appearance, reading line by line, head before tail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from byokg.errors import ImportFailed
from byokg.graph.cells import (
    KINDS,
    TEXT,
    Numbers,
    Problem,
    blank,
    number_pairs,
    raise_first,
    typed,
    whole,
    without_null,
)
from byokg.graph.delimited import RecordFile
from byokg.graph.graph_stream import EdgeBlock, NodeColumns, Triples, ahead
from byokg.graph.interner import Interner

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

    def __init__(self, path: Path) -> None:
        """Read the first line. Raises `ImportFailed` when it is neither a header nor a triple."""
        self.file = RecordFile.at(path)
        self._entities, self._relations = Interner(), Interner()
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

    def blocks(self) -> Iterator[EdgeBlock]:
        """Yield the edges. Raises `ImportFailed` for a line that is no triple, or whose time is none."""
        rows = 0
        for table in ahead(self.file.blocks(self._fields, [TEXT] * len(self._fields))):
            triples = self._numbered(table, rows)
            times = self._times.read(table.columns[3:], rows) if self._times else None
            yield EdgeBlock(triples, *(times or ()))
            rows += table.num_rows
        if rows == 0:
            raise ImportFailed(self.file.path, None, "holds no triples; expected lines of head, relation, tail")

    def nodes(self) -> NodeColumns:
        """Return the entities."""
        return NodeColumns(self._entities.strings, hashes=self._entities.hashes)

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
        ends, labels = pa.concat_arrays([head, tail]).dictionary_encode(), relation.dictionary_encode()
        if blank("", ends) or blank("", labels):
            columns = zip(TRIPLE_COLUMNS, (head, relation, tail), strict=True)
            raise_first(self.file, [blank(name, column.dictionary_encode()) for name, column in columns], rows)
        distinct, end_rows = number_pairs(ends)
        triples = np.empty((table.num_rows, 3), np.int32)
        triples[:, [0, 2]] = self._entities.numbers(distinct)[end_rows]
        triples[:, 1] = self._relations.numbers(labels.dictionary)[labels.indices.to_numpy()]
        return triples


class _Times:
    """The columns that say when an edge holds: years are int, days date, and a mixture with other times text."""

    def __init__(self, file: RecordFile, names: Sequence[str]) -> None:
        self._file, self._names = file, names
        self._kinds: dict[str, list[str]] = {name: ["int", "date", "string"] for name in names}
        """What each column may still be, best first."""
        self._strange: dict[str, Problem] = {}
        """The first cell of each column that is neither a year nor a date; a long number is, in a column of numbers."""
        self._texts = Interner()

    def read(self, columns: Sequence[pa.ChunkedArray], rows: int) -> tuple[pa.RecordBatch, Numbers]:
        """Return times as texts, and for each row a number that says which they are; rows count those before."""
        marks = np.zeros(len(columns[0]), np.int64)
        texts = [whole(column, TEXT) for column in columns]
        coded = [column.dictionary_encode() for column in texts]
        raise_first(self._file, [self._check(*column, rows) for column in zip(self._names, coded, strict=True)])
        for column in map(without_null, coded):
            marks = marks << 32 | self._texts.numbers(column.dictionary)[column.indices.to_numpy()]
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
