"""Files of edges alone: triples with or without a time, edge lists with properties; the ends of edges are the nodes.

`TripleFile` numbers entities and relations while files are read, in order of first appearance, reading line by line,
head before tail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Int64, Integers
from byokg.errors import ImportFailed
from byokg.graph.columnar.ids import Interner, row_by_row
from byokg.graph.columnar.schema import (
    KINDS,
    TEXT,
    NodeColumns,
    Problem,
    blank,
    property_batch,
    typed,
    whole,
    without_null,
)
from byokg.graph.columnar.writer import EdgeBlock, Triples, ahead
from byokg.graph.importers.columns import InferredKinds
from byokg.graph.importers.delimited import RecordFile, raise_first
from byokg.graph.importers.table_stream import common_types, same_label
from byokg.graph.importers.tables import (
    DAY,
    EDGE_COLUMNS,
    YEAR,
    Table,
    describe,
    inferred_types,
    property_types,
    to_infer,
    undirected_edges,
)
from byokg.index.string_hashes import UInt64, hash_column, positions


class TripleFile:
    """Files whose lines are edges, with times and properties or without; a `GraphStream`."""

    distinct = True
    left_out = 0

    def __init__(self, name: str, tables: Sequence[Table]) -> None:
        """Name the files. Raises `ImportFailed` if they give columns of one name several types."""
        self.name, self._tables = name, tables
        self._entities, self._relations = Interner(), Interner()
        self._rows = [0] * len(tables)
        self._types = common_types((one.file.path, property_types(one)) for one in tables)
        self._kinds = InferredKinds(to_infer(tables))
        times = [column.name for column in tables[0].columns if column.role == "time"]
        self._times = _Times(tables[0].file, times) if times else None
        for one in tables[1:]:
            if [column.name for column in one.columns if column.role == "time"] != times:
                reason = "has columns of times and another file has not; give both a header that names the columns"
                raise ImportFailed(one.file.path, None, reason)

    def keep_in(self, folder: Path, state: Mapping[str, Any] | None) -> None:
        """Keep texts in files; see `ResumableStream`."""
        known = state or {"rows": [0] * len(self._tables), "entities": 0, "relations": 0}
        self._rows = list(known["rows"])
        self._entities = Interner(folder / "entities", known["entities"])
        self._relations = Interner(folder / "relations", known["relations"])
        if state:
            self._kinds.resume(state["kinds"])
        if self._times:
            self._times.keep_in(folder, known.get("times"))

    def set_aside(self) -> None:
        """Give back the memory of texts in files; see `ResumableStream`."""
        self._entities.set_aside()

    def state(self) -> dict[str, Any]:
        """Return how many lines and texts there were so far."""
        counts: dict[str, Any] = {
            "rows": list(self._rows),
            "entities": len(self._entities),
            "relations": len(self._relations),
        }
        counts["kinds"] = self._kinds.state()
        return counts | ({"times": self._times.state()} if self._times else {})

    def blocks(self) -> Iterator[EdgeBlock]:
        """Yield the edges. Raises `ImportFailed` for a line that is no edge, or whose time is none."""
        for number, one in enumerate(self._tables):
            known = self._rows[number]
            for table in ahead(one.file.blocks(one.fields, [TEXT] * len(one.fields))):
                fresh = table.slice(min(known, table.num_rows))
                known -= table.num_rows - fresh.num_rows
                if fresh.num_rows:
                    block = self._block(one, fresh, self._rows[number])
                    self._rows[number] += fresh.num_rows
                    yield block
        if not any(self._rows):
            reason = "holds no triples; expected lines of head, relation, tail"
            raise ImportFailed(self._tables[0].file.path, None, reason)

    def _block(self, one: Table, table: pa.Table, rows: int) -> EdgeBlock:
        """Return the edges of some lines, before which the file has so many."""
        columns: dict[str, list[pa.ChunkedArray]] = {}
        properties: dict[str, pa.Array] = {}
        marks: list[UInt64] = []
        problems: list[Problem | None] = []
        for column in one.columns:
            texts = table.column(column.position)
            if column.role != "property":
                columns.setdefault(column.role, []).append(texts)
                continue
            held = whole(texts, TEXT)
            marks.append(_hashes(held))
            if column.kind:
                held, problem = typed(column.name, column.kind, texts)
                problems.append(problem)
            elif column.name in self._kinds.names:
                self._kinds.see(column.name, held)
            properties[column.name] = held
        triples = self._numbered(one, columns, rows)
        raise_first(one.file, problems, rows)
        undirected = undirected_edges(one, columns.get("direction", []), rows, len(triples))
        if self._times:
            return EdgeBlock(triples, *self._times.read(columns["time"], rows), undirected)
        apart = reduce(_mixed, marks, np.zeros(len(triples), np.uint64)).view(np.int64)
        return EdgeBlock(triples, property_batch(properties), apart if self._types else None, undirected)

    def nodes(self) -> NodeColumns:
        """Return the entities, once: they are not kept."""
        entities, self._entities = self._entities, Interner()
        return NodeColumns(entities.strings, hashes=entities.hashes, set_aside=entities.set_aside)

    def relations(self) -> list[str]:
        """Return the relation labels."""
        labels: list[str] = self._relations.strings.to_pylist()
        return labels

    def property_types(self) -> Mapping[str, pa.DataType]:
        """Return the columns that hold times and other properties."""
        return self._times.types() if self._times else inferred_types(self._types, self._kinds)

    def source(self) -> dict[str, Any]:
        """Return the entry of the files in a graph's `source`."""
        files = [
            one.file.description() | describe(one, self._kinds, rows)
            for one, rows in zip(self._tables, self._rows, strict=True)
        ]
        return {"kind": "triples with time" if self._times else "triples", "files": files}

    def _numbered(self, one: Table, columns: Mapping[str, Sequence[pa.ChunkedArray]], rows: int) -> Triples:
        """Return head, relation and tail numbers of some lines, before which there were so many."""
        head, tail = (whole(columns[role][0], TEXT) for role in ("head", "tail"))
        met, coded = self._met(head, tail)
        if "relation" in columns:
            labels = whole(columns["relation"][0], TEXT).dictionary_encode()
        else:
            labels = same_label(one.label, len(head))
        if blank("", coded) or blank("", labels):
            found = {
                role: whole(columns[role][0], TEXT).dictionary_encode() for role in EDGE_COLUMNS if role in columns
            }
            raise_first(one.file, [blank(role, column) for role, column in found.items()], rows)
        if met is None:
            numbers: Integers = self._entities.encode(coded.dictionary, row_by_row(coded))
        else:
            met[met < 0] = self._entities.encode(coded.dictionary, coded.indices.to_numpy())
            numbers = met
        triples = np.empty((len(head), 3), np.int32)
        triples[:, [0, 2]] = numbers.reshape(-1, 2)
        triples[:, 1] = self._relations.encode(labels.dictionary, labels.indices.to_numpy())
        return triples

    def _met(self, head: pa.Array, tail: pa.Array) -> tuple[Integers | None, pa.DictionaryArray]:
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


def _hashes(texts: pa.Array) -> UInt64:
    """Return a 64-bit hash of each text; null has its own. Only edges of one triple are compared by them."""
    return hash_column(pc.fill_null(texts, "\0"))


def _mixed(first: UInt64, second: UInt64) -> UInt64:
    """Return hashes of pairs."""
    return first * np.uint64(0x9E3779B97F4A7C15) ^ second


class _Times:
    """The columns of edges' validity times: years are int, days date, and a mixture with other times text."""

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
        """Return the state of the columns so far."""
        strange = {name: [problem.row, problem.reason] for name, problem in self._strange.items()}
        return {"texts": len(self._texts), "kinds": self._kinds, "strange": strange}

    def read(self, columns: Sequence[pa.ChunkedArray], rows: int) -> tuple[pa.RecordBatch, Int64]:
        """Return times as texts, and for each row its number among them; rows count those before."""
        marks: Int64 = np.zeros(len(columns[0]), np.int64)
        texts = [whole(column, TEXT) for column in columns]
        coded = [column.dictionary_encode() for column in texts]
        raise_first(self._file, [self._check(*column, rows) for column in zip(self._names, coded, strict=True)])
        for column in map(without_null, coded):
            marks = marks << 32 | self._texts.encode(column.dictionary, column.indices.to_numpy())
        return pa.RecordBatch.from_arrays(texts, list(self._names)), marks

    def _check(self, name: str, coded: pa.DictionaryArray, rows: int) -> Problem | None:
        """Return the possible kinds of a column; the cell that leaves none, if any."""
        distinct = pa.chunked_array([coded.dictionary])
        fits = pc.match_substring_regex(distinct, f"^({YEAR}|{DAY})$").to_numpy()
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
