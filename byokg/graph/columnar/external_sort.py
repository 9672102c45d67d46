"""Edges on disk while a graph is built, in a file for each range of nodes, so that a range is read without the others.

`Scratch` keeps the edges in the order in which they came, by ranges of heads; `Links` keeps numbered edges, sorted by
head, by ranges of tails. `ArrayFile` is an array that grows, `RowsFile` one of rows, `TextsFile` a column of texts,
`StoredArray` an array of which nothing stays in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from byokg.arrays import Int64, Integers
from byokg.graph.columnar.schema import convert, join_batches
from byokg.index.vocabulary import string_buffers

RANGE_BITS = 17
"""Nodes share a file when their numbers differ in these lowest bits only."""

READ = 1 << 21
"""Edges read at once."""

_HEADER_BYTES = 128
_EDGE_BYTES = 32
"""What sorting takes for one edge, without its properties."""

Triples = npt.NDArray[np.int32]


class Chosen(NamedTuple):
    """The edges of some heads, in the order in which they came."""

    triples: Triples
    """(E, 3) head, twice the relation (and 1 for an undirected edge), tail."""
    apart: Int64 | None
    properties: pa.RecordBatch | None

    def of(self, rows: Int64) -> Chosen:
        """Return some of them."""
        apart = None if self.apart is None else self.apart[rows]
        return Chosen(
            self.triples[rows], apart, None if self.properties is None else self.properties.take(pa.array(rows))
        )


class Scratch:
    """Edges in the order in which they came."""

    def __init__(self, folder: Path) -> None:
        """Use a folder for files whose names end in `.scratch`."""
        self.folder = folder
        self._rows: dict[int, list[tuple[int, bool]]] = {}
        """For each range of heads, the edges of each block, and whether they have properties."""
        self._marked = False
        self.undirected = False
        """True if any edge is undirected."""

    def state(self) -> dict[str, Any]:
        """Return the state for `go_on`, which restores the present edges and none that come later."""
        sizes = {path.name: path.stat().st_size for path in self.folder.glob("*-*.scratch")}
        rows = sorted(self._rows.items())
        return {"rows": rows, "marked": self._marked, "undirected": self.undirected, "sizes": sizes}

    def go_on(self, state: Mapping[str, Any]) -> None:
        """Restore the edges of a `state`, which stand in the same folder."""
        for path in self.folder.glob("*-*.scratch"):
            if path.name in state["sizes"]:
                os.truncate(path, state["sizes"][path.name])
            else:
                path.unlink()
        self._marked, self.undirected = state["marked"], state["undirected"]
        self._rows = {number: [(count, has) for count, has in rows] for number, rows in state["rows"]}

    @property
    def count(self) -> int:
        """Return how many edges there are."""
        return sum(self._in_range().values())

    def _in_range(self) -> dict[int, int]:
        return {number: sum(count for count, _ in rows) for number, rows in self._rows.items()}

    def portions(self, nodes: int, most: int) -> Iterator[tuple[int, int]]:
        """Cut so many nodes into ranges that are the heads of up to `most` edges each, or one node with more."""

        def given(number: int) -> Int64:
            heads = (part.triples[:, 0] for part in self._parts(number, described=False))
            return _counted(heads, number)

        return _portions(self._in_range(), nodes, most, given)

    def row_bytes(self) -> int:
        """Return about how many bytes one edge takes while it is sorted."""
        size = sum(path.stat().st_size for path in self.folder.glob("properties-*.scratch"))
        return _EDGE_BYTES + size // max(self.count, 1)

    def add(
        self,
        triples: Triples,
        apart: Int64 | None,
        properties: pa.RecordBatch | None,
        undirected: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Write edges behind those that came before; `undirected` is None if none of them is."""
        if not len(triples):
            return
        self._marked = apart is not None
        triples = triples.astype(np.int32)
        triples[:, 1] <<= 1
        if undirected is not None:
            triples[:, 1] |= undirected
            self.undirected |= bool(undirected.any())
        for number, rows in _by_range(triples[:, 0]):
            with self._path("triples", number).open("ab") as file:
                triples[rows].tofile(file)
            if apart is not None:
                with self._path("apart", number).open("ab") as file:
                    apart[rows].tofile(file)
            if properties is not None:
                some = properties if isinstance(rows, slice) else properties.take(pa.array(rows))
                with (
                    self._path("properties", number).open("ab") as file,
                    pa.ipc.new_stream(file, properties.schema) as writer,
                ):
                    writer.write_batch(some)
            count = len(triples) if isinstance(rows, slice) else len(rows)
            self._rows.setdefault(number, []).append((count, properties is not None))

    def between(self, low: int, high: int, types: Mapping[str, pa.DataType]) -> Chosen:
        """Return all edges whose head is in a range, with their properties as columns of the types given."""
        triples, marks, batches = [np.empty((0, 3), np.int32)], [np.empty(0, np.int64)], []
        for number in range(low >> RANGE_BITS, ((high - 1) >> RANGE_BITS) + 1):
            for part in self._parts(number, bool(types)):
                if not _is_within(number, low, high):
                    part = part.of(np.flatnonzero((part.triples[:, 0] >= low) & (part.triples[:, 0] < high)))
                triples.append(part.triples)
                if part.apart is not None:
                    marks.append(part.apart)
                if types:
                    batches.append(convert(part.properties, types, len(part.triples)))
        of_edges = join_batches(batches, types) if types else None
        return Chosen(np.concatenate(triples), np.concatenate(marks) if self._marked else None, of_edges)

    def _parts(self, number: int, described: bool) -> Iterator[Chosen]:
        """Yield the blocks of a range of heads as they came; without properties, some of them at once."""
        rows = self._rows.get(number, [])
        if not described:
            total = sum(count for count, _ in rows)
            rows = [(min(READ, total - start), False) for start in range(0, total, READ)]
        if not rows:
            return
        with ExitStack() as opened:
            triples = opened.enter_context(self._path("triples", number).open("rb"))
            apart = opened.enter_context(self._path("apart", number).open("rb")) if self._marked else None
            path = self._path("properties", number)
            properties = opened.enter_context(pa.OSFile(str(path))) if path.exists() else None
            for count, has in rows:
                yield Chosen(
                    np.fromfile(triples, np.int32, 3 * count).reshape(-1, 3),
                    None if apart is None else np.fromfile(apart, np.int64, count),
                    _read_batch(properties) if has else None,
                )

    def _path(self, kind: str, number: int) -> Path:
        return self.folder / f"{kind}-{number}.scratch"


def _read_batch(file: pa.NativeFile) -> pa.RecordBatch:
    """Read the next block of properties."""
    with pa.ipc.open_stream(file) as reader:
        batches = list(reader)
    return batches[0]


def _by_range(nodes: Integers) -> Iterator[tuple[int, Int64 | slice]]:
    """Yield each range that some nodes are of, and their rows in order."""
    numbers = nodes >> RANGE_BITS
    last = int(numbers.max())
    if last == int(numbers.min()):
        yield last, slice(None)
        return
    narrow = numbers.astype(np.uint16) if last < 1 << 16 else numbers  # which sorts in one pass or two
    order = np.argsort(narrow, kind="stable")
    counts = np.bincount(numbers)
    ends = counts.cumsum()
    for number in counts.nonzero()[0].tolist():
        yield number, order[ends[number] - counts[number] : ends[number]]


def _is_within(number: int, low: int, high: int) -> bool:
    """True if all nodes of a range lie between others."""
    return low <= number << RANGE_BITS and number + 1 << RANGE_BITS <= high


def _counted(ends: Iterable[Integers], number: int) -> Int64:
    """Count the edges at each node of a range."""
    counts = np.zeros(1 << RANGE_BITS, np.int64)
    for some in ends:
        counts += np.bincount(some - (number << RANGE_BITS), minlength=len(counts))
    return counts


def _portions(
    rows: Mapping[int, int], nodes: int, most: int, counted: Callable[[int], Int64]
) -> Iterator[tuple[int, int]]:
    """Cut nodes into ranges with up to `most` edges each, or one node with more.

    Args:
        rows: number of edges of each range of nodes.
        nodes: number of nodes.
        most: edges.
        counted: returns the number of edges of each node of a range; called for one that has too many.
    """
    low = held = 0
    for number in range((nodes - 1 >> RANGE_BITS) + 1):
        start, stop = number << RANGE_BITS, min(number + 1 << RANGE_BITS, nodes)
        count = rows.get(number, 0)
        if low < start and held + count > most:
            yield low, start
            low, held = start, 0
        held += count
        if count > most:
            ends = counted(number)[: stop - start].cumsum()
            while low < stop:
                before = int(ends[low - start - 1]) if low > start else 0
                high = max(start + int(np.searchsorted(ends, before + most, "right")), low + 1)
                yield low, high
                low = high
            held = 0
    if low < nodes:
        yield low, nodes


class Links:
    """Edges in the order of their numbers, by ranges of tails.

    The column `relation` holds twice the relation, and 1 more for an undirected edge.
    """

    def __init__(self, folder: Path, edge: type[np.integer] | None, relation: type[np.integer]) -> None:
        """Use a folder for files; `edge` is the type of edge numbers, None if they need not be kept."""
        self._folder, self.numbered = folder, edge is not None
        columns: list[Any] = [("relation", relation), ("tail", np.int32), ("head", np.int32)]
        self._kind = np.dtype([("edge", edge), *columns] if self.numbered else columns)
        self._counts: dict[int, int] = {}

    def add(self, first: int, head: Integers, relation: Integers, tail: Integers) -> None:
        """Write edges behind those that came before; `first` is the number of the first of them."""
        if not len(tail):
            return
        rows = np.empty(len(tail), self._kind)
        if self.numbered:
            rows["edge"] = np.arange(first, first + len(tail))
        rows["relation"], rows["tail"], rows["head"] = relation, tail, head
        for number, chosen in _by_range(tail):
            some = rows[chosen]
            with self._path(number).open("ab") as file:
                some.tofile(file)
            self._counts[number] = self._counts.get(number, 0) + len(some)

    def portions(self, nodes: int, most: int) -> Iterator[tuple[int, int]]:
        """Cut so many nodes into ranges that are the tails of up to `most` edges each, or one node with more."""
        return _portions(
            self._counts,
            nodes,
            most,
            lambda number: _counted((rows["tail"] for rows in self._read_chunks(number)), number),
        )

    def between(self, low: int, high: int) -> npt.NDArray[Any]:
        """Return all edges whose tail is in a range: rows of edge, relation, tail and head."""
        found = [np.empty(0, self._kind)]
        for number in range(low >> RANGE_BITS, ((high - 1) >> RANGE_BITS) + 1):
            for rows in self._read_chunks(number):
                within = _is_within(number, low, high)
                found.append(rows if within else rows[(rows["tail"] >= low) & (rows["tail"] < high)])
        return np.concatenate(found)

    def _read_chunks(self, number: int) -> Iterator[npt.NDArray[Any]]:
        if number in self._counts:
            with self._path(number).open("rb") as file:
                while len(rows := np.fromfile(file, self._kind, READ)):
                    yield rows

    def forget(self, below: int) -> None:
        """Delete the edges of tails below a number that starts a range."""
        for number in [number for number in self._counts if number + 1 << RANGE_BITS <= below]:
            self._path(number).unlink()
            del self._counts[number]

    def _path(self, number: int) -> Path:
        return self._folder / f"links-{number}.scratch"


class ArrayFile:
    """A `.npy` file that grows; its bytes are those of `np.save`."""

    def __init__(self, path: Path, kind: type[np.integer] | type[np.bool_]) -> None:
        """Make an empty one."""
        self._kind: npt.DTypeLike = kind
        self._file: BinaryIO = path.open("wb")
        self._file.write(bytes(_HEADER_BYTES))
        self._count = 0

    @classmethod
    def more(cls, path: Path) -> ArrayFile:
        """Go on with one that is there."""
        held = np.load(path, mmap_mode="r")
        file = cls.__new__(cls)
        file._kind, file._count = held.dtype, len(held)
        file._file = path.open("rb+")
        file._file.seek(0, os.SEEK_END)
        return file

    def __enter__(self) -> ArrayFile:
        return self

    def append(self, numbers: Integers | npt.NDArray[np.bool_]) -> None:
        """Write numbers behind those that came before."""
        numbers.astype(self._kind, copy=False).tofile(self._file)
        self._count += len(numbers)

    def __exit__(self, *_: object) -> None:
        """Write how many there are."""
        with self._file as file:
            file.seek(0)
            description = {"descr": np.dtype(self._kind).str, "fortran_order": False, "shape": (self._count,)}
            np.lib.format.write_array_header_1_0(file, description)


class RowsFile:
    """Rows of numbers that come in portions, in memory or in a file."""

    def __init__(self, width: int, path: Path | None = None, count: int = 0) -> None:
        """Start empty, or with the first `count` rows that another one kept in a file."""
        self._width, self._path, self._count = width, path, count
        self._held: list[Triples] = []
        if path is not None:
            path.touch()
            os.truncate(path, 4 * width * count)

    def __len__(self) -> int:
        return self._count

    def append(self, rows: Triples) -> None:
        """Put (R, width) rows behind those that came before."""
        self._count += len(rows)
        if self._path is None:
            self._held.append(rows)
        else:
            with self._path.open("ab") as file:
                rows.astype(np.int32, copy=False).tofile(file)

    def rows(self) -> Triples:
        """Return all rows: (R, width)."""
        if self._path is not None:
            stored = np.memmap(self._path, np.int32, "r", shape=(self._count, self._width)) if self._count else None
            return np.empty((0, self._width), np.int32) if stored is None else stored.view(np.ndarray)
        if len(self._held) != 1:
            self._held = [np.concatenate([np.empty((0, self._width), np.int32), *self._held])]
        return self._held[0]


class TextsFile:
    """A column of texts that come in portions, in memory or in two files."""

    def __init__(self, stem: Path | None = None) -> None:
        """Start empty; files have the name `stem` and an ending each, and replace existing ones."""
        self._held, self._stem, self._count, self._size = [pa.array([], pa.large_string())], stem, 0, 0
        if stem is not None:
            for path in self._paths(stem):
                path.write_bytes(b"")
            self._write(np.zeros(1, np.int64), np.empty(0, np.uint8))

    def append(self, texts: pa.LargeStringArray) -> None:
        """Put T texts behind those that came before."""
        if self._stem is None:
            self._held.append(texts)
            return
        offsets, data = string_buffers(texts)
        first, last = int(offsets[0]), int(offsets[-1])
        self._write(offsets[1:] - first + self._size, data[first:last])
        self._count, self._size = self._count + len(texts), self._size + last - first

    def column(self) -> pa.LargeStringArray:
        """Return all texts; mapped, if they are in files."""
        if self._stem is None or not self._size:
            return pa.concat_arrays([*self._held, pa.array([""] * self._count, pa.large_string())])
        offsets, data = (pa.memory_map(str(path)).read_buffer() for path in self._paths(self._stem))
        return pa.LargeStringArray.from_buffers(self._count, offsets, data)

    def _write(self, offsets: Int64, data: npt.NDArray[np.uint8]) -> None:
        assert self._stem is not None
        parts: list[Integers] = [offsets, data]
        for path, numbers in zip(self._paths(self._stem), parts, strict=True):
            with path.open("ab") as file:
                numbers.tofile(file)

    @staticmethod
    def _paths(stem: Path) -> tuple[Path, Path]:
        return stem.with_name(f"{stem.name}.offsets"), stem.with_name(f"{stem.name}.bytes")


class StoredArray:
    """An array that `ArrayFile` wrote, or a part of it; slices of it are read from the file, and mapped nowhere."""

    def __init__(self, path: Path, start: int = 0, stop: int | None = None) -> None:
        mapped = np.load(path, mmap_mode="r")
        self._path, self._kind = path, mapped.dtype
        self._start, self._stop = start, len(mapped) if stop is None else stop

    def __len__(self) -> int:
        return self._stop - self._start

    def __getitem__(self, part: slice) -> Integers:
        start, stop, _ = part.indices(len(self))
        offset = _HEADER_BYTES + (self._start + start) * self._kind.itemsize
        return np.fromfile(self._path, self._kind, max(stop - start, 0), offset=offset)
