"""Files of edges alone: triples with or without a time, edge lists with properties; the ends of edges are the nodes.

`TripleFile` numbers entities and relations while files are read, in order of first appearance, reading line by line,
head before tail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Integers, UInt64
from byokg.errors import ImportFailed
from byokg.graph.columnar.ids import Interner, row_by_row
from byokg.graph.columnar.schema import KINDS, TEXT, NodeColumns, Problem, blank, property_batch, typed, whole
from byokg.graph.columnar.writer import EdgeBlock, Triples, ahead
from byokg.graph.importers.columns import InferredKinds
from byokg.graph.importers.delimited import raise_first
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
from byokg.index.vocabulary import hash_column, positions


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
        times = [column.name for column in tables[0].columns if column.role == "time"]
        self._types |= dict.fromkeys(times, TEXT)
        self._kinds = TimeKinds(times) if times else InferredKinds(to_infer(tables))
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

    def set_aside(self) -> None:
        """Give back the memory of texts in files; see `ResumableStream`."""
        self._entities.set_aside()

    def state(self) -> dict[str, Any]:
        """Return how many lines and texts there were so far."""
        return {
            "rows": list(self._rows),
            "entities": len(self._entities),
            "relations": len(self._relations),
            "kinds": self._kinds.state(),
        }

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
            if column.role not in ("property", "time"):
                columns.setdefault(column.role, []).append(texts)
                continue
            held = whole(texts, TEXT)
            marks.append(_hashes(held))
            if isinstance(self._kinds, TimeKinds):
                problems.append(self._kinds.read(column.name, held, rows))
            elif column.kind:
                held, problem = typed(column.name, column.kind, texts)
                problems.append(problem)
            elif column.name in self._kinds.names:
                self._kinds.see(column.name, held)
            properties[column.name] = held
        triples = self._numbered(one, columns, rows)
        raise_first(one.file, problems, rows)
        undirected = undirected_edges(one, columns.get("direction", []), rows, len(triples))
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
        return inferred_types(self._types, self._kinds)

    def source(self) -> dict[str, Any]:
        """Return the entry of the files in a graph's `source`."""
        files = [
            one.file.description() | describe(one, self._kinds, rows)
            for one, rows in zip(self._tables, self._rows, strict=True)
        ]
        return {"kind": "triples with time" if isinstance(self._kinds, TimeKinds) else "triples", "files": files}

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


class TimeKinds(InferredKinds):
    """The kinds of columns of times: years are int, days date, and a mixture with other times text."""

    _ORDER = dict.fromkeys(("int", "date", "string"), "")

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        self._strange: dict[str, tuple[int, str]] = {}
        """The first cell of each column that is neither a year nor a date; a long number is, in a column of numbers."""

    def read(self, name: str, texts: pa.Array, rows: int) -> Problem | None:
        """Narrow the kinds of a column by some of its cells, behind so many rows; return the cell that leaves none."""
        coded = texts.dictionary_encode()
        distinct = pa.chunked_array([coded.dictionary])
        fits = pc.match_substring_regex(distinct, f"^({YEAR}|{DAY})$").to_numpy()
        if not fits.all() and name not in self._strange:
            row = int(np.isin(pc.fill_null(coded.indices, -1).to_numpy(), np.flatnonzero(~fits)).argmax())
            reason = f"{name} {coded[row].as_py()!r} is neither a year nor an ISO 8601 date"
            self._strange[name] = rows + row, f"{reason}; correct the cell or empty it"
        self._kinds[name] = [
            kind
            for kind in self._kinds[name]
            if (fits.all() if kind == "string" else typed(name, kind, distinct)[1] is None)
        ]
        if self._kinds[name]:
            return None
        row, reason = self._strange[name]
        return Problem(row - rows, reason)

    def types(self) -> dict[str, pa.DataType]:
        """Return the Arrow types of the columns."""
        return {name: KINDS[kinds[0]][0] for name, kinds in self._kinds.items()}

    def state(self) -> dict[str, Any]:
        """Return the state so far, as JSON."""
        return super().state() | {"strange": self._strange}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned."""
        super().resume(state)
        self._strange = {name: (row, reason) for name, (row, reason) in state["strange"].items()}
