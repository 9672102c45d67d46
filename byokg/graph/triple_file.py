"""Files of triples, with or without a time: read a block at a time while entities and relations are numbered.

Numbers are given in order of first appearance, reading line by line, head before tail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from byokg.errors import ImportFailed
from byokg.graph.cells import TEXT, Numbers, Problem, blank, number_pairs, raise_first, typed, whole
from byokg.graph.columnar import ColumnarGraph
from byokg.graph.delimited import RecordFile
from byokg.graph.interner import Interner
from byokg.graph.triple_writer import Triples

T = TypeVar("T")

TRIPLE_COLUMNS = ("head", "relation", "tail")
TIME_COLUMNS = {4: (*TRIPLE_COLUMNS, "time"), 5: (*TRIPLE_COLUMNS, "start", "end")}
"""Columns by their number, where triples have times."""

_YEAR = r"-?[0-9]{1,6}"
_DAY = r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?([T ][0-9:.]+(Z|[+-][0-9:]+)?)?"
_TIME = re.compile(rf"({_YEAR}|{_DAY})?")


class TripleFile:
    """A file whose lines are head, relation and tail, or these with one or two times."""

    def __init__(self, path: Path) -> None:
        """Read the first line. Raises `ImportFailed` when it is neither a header nor a triple."""
        self.file = RecordFile.at(path)
        self.entities, self.relations = Interner(), Interner()
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

    @property
    def timed(self) -> bool:
        """Tell whether lines have times."""
        return len(self._columns) > len(TRIPLE_COLUMNS)

    def blocks(self) -> Iterator[Triples]:
        """Yield (B, 3) head, relation and tail numbers. Raises `ImportFailed` for a line that is no triple."""
        for ends, end_rows, labels, label_rows in _ahead(self._coded()):
            block = np.empty((len(label_rows), 3), np.int32)
            block[:, [0, 2]] = self.entities.numbers(ends)[end_rows]
            block[:, 1] = self.relations.numbers(labels)[label_rows]
            yield block

    def graph(self) -> ColumnarGraph:
        """Read everything into memory. Exact repetitions are dropped and counted. Raises `ImportFailed`."""
        if self.timed:
            return self._timed_graph()
        head, relation, tail = np.concatenate(list(self.blocks())).T
        return ColumnarGraph.assemble(
            name=str(self.file.path),
            ids=self.entities.strings,
            relations=self.relations.strings.to_pylist(),
            head=head,
            relation=relation,
            tail=tail,
            drop_duplicates=True,
            source=self.source(),
        )

    def source(self) -> dict[str, Any]:
        """Return what a graph's `source` says about the file."""
        return {"kind": "triples with time" if self.timed else "triples", "files": [self.file.description()]}

    def _coded(self) -> Iterator[tuple[pa.Array, Numbers, pa.Array, Numbers]]:
        """Yield for each block its entities, which of them stand in each row (B, 2), and the same of relations (B,)."""
        rows = 0
        for table in self.file.blocks(self._fields, [TEXT] * len(self._fields)):
            yield self._coded_block(table, rows)
            rows += table.num_rows
        if rows == 0:
            raise ImportFailed(self.file.path, None, "holds no triples; expected lines of head, relation, tail")

    def _coded_block(self, table: pa.Table, rows: int) -> tuple[pa.Array, Numbers, pa.Array, Numbers]:
        head, relation, tail = (whole(column, TEXT) for column in table.columns[:3])
        ends, labels = pa.concat_arrays([head, tail]).dictionary_encode(), relation.dictionary_encode()
        if blank("", ends) or blank("", labels):
            columns = zip(TRIPLE_COLUMNS, (head, relation, tail), strict=True)
            problems = [blank(name, column.dictionary_encode()) for name, column in columns]
            raise_first(self.file, [replace(problem, row=problem.row + rows) for problem in problems if problem])
        return *number_pairs(ends), labels.dictionary, labels.indices.to_numpy()

    def _timed_graph(self) -> ColumnarGraph:
        table = self.file.read(self._fields, [TEXT] * len(self._fields))
        if table.num_rows == 0:
            raise ImportFailed(self.file.path, None, "holds no triples; expected lines of head, relation, tail")
        ids, ends, labels, relation = self._coded_block(table, 0)
        times = {}
        problems = []
        for name, texts in zip(self._columns[3:], table.columns[3:], strict=True):
            times[name], problem = _times(name, texts)
            problems.append(problem)
        raise_first(self.file, problems)
        codes = [_codes(whole(texts, TEXT)) for texts in table.columns[3:]]
        kept = _distinct_rows([ends[:, 0], relation, ends[:, 1], *codes])
        return ColumnarGraph.assemble(
            name=str(self.file.path),
            ids=ids,
            relations=labels.to_pylist(),
            head=ends[kept, 0],
            relation=relation[kept],
            tail=ends[kept, 1],
            edge_properties={name: column.take(pa.array(kept)) for name, column in times.items()},
            drop_duplicates=False,
            dropped_duplicates=table.num_rows - len(kept),
            source=self.source(),
        )


def _times(name: str, texts: pa.ChunkedArray) -> tuple[pa.Array, Problem | None]:
    """Read years as int, days as date, and a mixture with other ISO 8601 times as text."""
    for kind in ("int", "date"):
        values, problem = typed(name, kind, texts)
        if problem is None:
            return values, None
    fits = pc.fill_null(pc.match_substring_regex(texts, f"^({_YEAR}|{_DAY})$"), True)
    row = pc.index(fits, False).as_py()
    if row < 0:
        return whole(texts, TEXT), None
    found = texts[row].as_py()
    return None, Problem(row, f"{name} {found!r} is neither a year nor an ISO 8601 date; correct the cell or empty it")


def _codes(texts: pa.Array) -> Numbers:
    codes: Numbers = pc.fill_null(texts.dictionary_encode().indices, -1).to_numpy()
    return codes


def _distinct_rows(columns: list[Numbers]) -> Numbers:
    """Return the rows that repeat no earlier one, ascending."""
    order = np.lexsort(columns[::-1])
    fresh = np.zeros(len(order), np.bool_)
    fresh[:1] = True
    for column in columns:
        fresh[1:] |= np.diff(column[order]) != 0
    return np.sort(order[fresh])


def _ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the same items, making the next one in a thread while one is worked on."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item
