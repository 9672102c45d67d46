"""Graphs as streams of numbered edges, written to a folder whatever their size, or held in memory.

An importer hands over a `GraphStream`: blocks of numbered edges, and then the nodes and relations behind the numbers.
It is used up once, by `collected`, which holds the graph in memory, or by `write_graph`. Both give the same graph, to
the byte.

`write_graph` puts the edges into scratch files as they come. It then sorts them in portions small enough for memory,
each with all edges of a range of heads, and later of tails, and appends them to the files that `ColumnarGraph.save`
would write. In memory are the nodes and one portion at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from byokg.graph.columnar.folder import BatchFile, edge_width, map_batches, relation_width, write_meta, write_nodes
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.ids import hash_column, sorted_hashes
from byokg.graph.columnar.schema import NodeColumns, converted, count_schema, joined, property_batch
from byokg.graph.int_sets import Int64, Numbers, first_of_each, incoming_order, ranges, sort_distinct, sort_order

T = TypeVar("T")

Triples = npt.NDArray[np.int32]
"""(E, 3) head, relation and tail numbers."""


@dataclass(frozen=True)
class EdgeBlock:
    """B edges, as they stand in a file."""

    triples: Triples
    properties: pa.RecordBatch | None = None
    """B rows; columns may differ from block to block, and are converted to the stream's `property_types`."""
    apart: npt.NDArray[np.int64] | None = None
    """(B,) in a stream without repetitions: edges of the same triple that differ in this are no repetitions."""


class GraphStream(Protocol):
    """A source being read. Everything but `name` means something only when the last block has come."""

    @property
    def name(self) -> str:
        """What to call the graph in messages."""

    @property
    def distinct(self) -> bool:
        """Whether repetitions of an edge are left out, and counted."""

    @property
    def left_out(self) -> int:
        """How many repetitions are not among the blocks any more."""

    def blocks(self) -> Iterator[EdgeBlock]:
        """Yield the edges. Raises `ImportFailed`, at any block, when the source cannot become a graph."""

    def nodes(self) -> NodeColumns:
        """Return the nodes, whose numbers the edges hold."""

    def relations(self) -> Sequence[str]:
        """Return the labels behind relation numbers."""

    def property_types(self) -> Mapping[str, pa.DataType]:
        """Return the columns that edge properties have, in order: each holds what any block gave it."""

    def source(self) -> dict[str, Any]:
        """Return what the graph is made from."""


def collected(stream: GraphStream) -> ColumnarGraph:
    """Read a stream into memory. Raises `ImportFailed`."""
    blocks = list(stream.blocks())
    types = stream.property_types()
    triples = np.concatenate([np.empty((0, 3), np.int32), *(block.triples for block in blocks)])
    properties = joined([converted(block.properties, types, len(block.triples)) for block in blocks], types)
    marks = [block.apart for block in blocks if block.apart is not None]
    return ColumnarGraph.assemble(
        stream.name,
        stream.nodes(),
        stream.relations(),
        triples,
        dict(zip(types, properties.columns, strict=True)),
        np.concatenate(marks) if marks else None,
        source=stream.source(),
        distinct=stream.distinct,
        dropped_duplicates=stream.left_out,
    )


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the same items, making the next one in a thread while one is worked on."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


_PORTION_BYTES = 1 << 29
"""Size of the edges sorted at once, whose sorting takes some times as much; more only where one node has more."""

_EDGE_BYTES = 32
"""What sorting takes for one edge, without its properties."""

_SCAN = 1 << 21
"""Edges read at once from a file that is being scanned."""

_HEADER_BYTES = 128
_EDGE_PROPERTIES = "edge_properties.arrow"


def write_graph(stream: GraphStream, folder: Path) -> None:
    """Write a graph.

    Args:
        stream: the graph, not yet read.
        folder: an empty folder to write into.

    Raises:
        ImportFailed: the source of the stream cannot become a graph.
        OSError: the disk is full, for instance.
    """
    scratch = _Scratch(folder)
    try:
        scratch.fill(stream.blocks())
        nodes, labels = stream.nodes(), stream.relations()
        out_counts, in_counts = _write_edges(folder, scratch, stream, len(nodes.ids), len(labels))
    finally:
        scratch.remove()
    kept = int(out_counts.sum())
    np.save(folder / "out_index.npy", ranges(out_counts))
    np.save(folder / "in_index.npy", ranges(in_counts) + kept)
    hashes, order = sorted_hashes(hash_column(nodes.ids) if nodes.hashes is None else nodes.hashes)
    np.save(folder / "id_hash.npy", hashes)
    np.save(folder / "id_order.npy", order)
    del hashes, order
    batch, properties = nodes.batch(), property_batch(nodes.properties)
    write_nodes(folder, batch, properties)
    relation, other = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("relation", "other"))
    of_edges = map_batches(folder / _EDGE_PROPERTIES) if stream.property_types() else []
    schema = count_schema(relation, other, batch, properties, of_edges, labels)
    dropped = scratch.count - kept + stream.left_out
    write_meta(folder, len(nodes.ids), kept, dropped, stream.source(), schema)


class _Chosen(NamedTuple):
    """Some edges of a scan."""

    triples: Triples
    apart: Int64 | None
    properties: pa.RecordBatch | None


class _Scratch:
    """Edges in the order in which they came, on disk."""

    def __init__(self, folder: Path) -> None:
        self._triples, self._apart = folder / "triples.scratch", folder / "apart.scratch"
        self._properties = folder / "properties.scratch"
        self._sizes: list[int] = []
        self._described: list[bool] = []
        """Which blocks have properties."""

    @property
    def count(self) -> int:
        """Return how many edges there are."""
        return sum(self._sizes)

    @property
    def row_bytes(self) -> int:
        """Return about how many bytes one edge takes while it is sorted."""
        size = self._properties.stat().st_size if self._properties.exists() else 0
        return _EDGE_BYTES + size // max(self.count, 1)

    def fill(self, blocks: Iterator[EdgeBlock]) -> None:
        """Write all edges."""
        with (
            self._triples.open("wb") as triples,
            self._apart.open("wb") as apart,
            pa.OSFile(str(self._properties), "wb") as properties,
        ):
            for block in blocks:
                block.triples.tofile(triples)
                self._sizes.append(len(block.triples))
                self._described.append(block.properties is not None)
                if block.apart is not None:
                    block.apart.tofile(apart)
                if block.properties is not None:
                    with pa.ipc.new_stream(properties, block.properties.schema) as writer:
                        writer.write_batch(block.properties)

    def heads(self) -> Iterator[Numbers]:
        """Yield the heads, block by block."""
        for block in self._scan_triples():
            yield block[:, 0]

    def _scan_triples(self) -> Iterator[Triples]:
        with self._triples.open("rb") as file:
            for size in self._sizes:
                yield np.fromfile(file, np.int32, 3 * size).reshape(-1, 3)

    def between(self, low: int, high: int, types: Mapping[str, pa.DataType]) -> _Chosen:
        """Return all edges whose head is in a range, with their properties as columns of the types given."""
        triples, marks, batches = [np.empty((0, 3), np.int32)], [np.empty(0, np.int64)], []
        marked = self._apart.stat().st_size > 0
        with self._apart.open("rb") as apart, pa.OSFile(str(self._properties), "rb") as properties:
            for block, described in zip(self._scan_triples(), self._described, strict=True):
                rows = np.flatnonzero((block[:, 0] >= low) & (block[:, 0] < high))
                triples.append(block[rows])
                if marked:
                    marks.append(np.fromfile(apart, np.int64, len(block))[rows])
                if types:
                    chosen = _read_rows(properties, rows) if described else None
                    batches.append(converted(chosen, types, len(rows)))
        of_edges = joined(batches, types) if types else None
        return _Chosen(np.concatenate(triples), np.concatenate(marks) if marked else None, of_edges)

    def remove(self) -> None:
        """Delete the files."""
        for path in (self._triples, self._apart, self._properties):
            path.unlink(missing_ok=True)


def _read_rows(file: pa.NativeFile, rows: Int64) -> pa.RecordBatch:
    """Read the next block of properties, and return some of its rows."""
    with pa.ipc.open_stream(file) as reader:
        batch = reader.read_all().combine_chunks()
    return pa.RecordBatch.from_arrays(
        [pa.concat_arrays(column.chunks).take(pa.array(rows)) for column in batch.columns], schema=batch.schema
    )


def _write_edges(
    folder: Path, scratch: _Scratch, stream: GraphStream, node_count: int, relation_count: int
) -> tuple[Int64, Int64]:
    """Write the edges, there and back, and their properties; return how many there are of each head and tail."""
    given = np.zeros(node_count, np.int64)
    for heads in scratch.heads():
        given += np.bincount(heads, minlength=node_count)
    of_head, of_tail = np.zeros(node_count, np.int64), np.zeros(node_count, np.int64)
    types = stream.property_types()
    with (
        _ArrayFile(folder / "relation.npy", relation_width(relation_count)) as relations,
        _ArrayFile(folder / "other.npy", np.int32) as others,
        BatchFile(folder / _EDGE_PROPERTIES, pa.schema(types.items())) as properties,
    ):
        for low, high in _portions(given, scratch.row_bytes):
            head, relation, tail = _sorted(scratch.between(low, high, types), low, stream.distinct, properties)
            of_head[low:high] = np.bincount(head, minlength=high - low)
            of_tail += np.bincount(tail, minlength=node_count)
            relations.append(relation)
            others.append(tail)
        _write_way_back(folder, ranges(of_head), of_tail, relations, others)
    return of_head, of_tail


def _sorted(chosen: _Chosen, low: int, distinct: bool, properties: BatchFile) -> tuple[Numbers, Numbers, Numbers]:
    """Sort a portion, whose heads come back counted from its first, and write its properties."""
    head, relation, tail = chosen.triples[:, 0] - low, chosen.triples[:, 1], chosen.triples[:, 2]
    if distinct and chosen.apart is None:
        return sort_distinct(head, relation, tail)
    order = sort_order(head, relation, tail)
    if chosen.apart is not None:
        order = first_of_each(order, head, relation, tail, chosen.apart)
    if chosen.properties is not None:
        properties.append(chosen.properties.take(pa.array(order)))
    return head[order], relation[order], tail[order]


def _write_way_back(
    folder: Path, out_index: Int64, in_counts: Int64, relations: _ArrayFile, others: _ArrayFile
) -> None:
    """Write all edges again by (tail, relation, edge)."""
    edge_count = int(out_index[-1])
    with _ArrayFile(folder / "in_edge.npy", edge_width(edge_count)) as file:
        for low, high in _portions(in_counts, _EDGE_BYTES):
            edges: list[Numbers] = []
            chosen_relations: list[Numbers] = []
            tails: list[Numbers] = []
            heads: list[Numbers] = []
            for start in range(0, edge_count, _SCAN):
                stop = min(start + _SCAN, edge_count)
                tail = others.read(start, stop)
                chosen = np.flatnonzero((tail >= low) & (tail < high))
                edges.append((chosen + start).astype(file.kind))
                chosen_relations.append(relations.read(start, stop)[chosen])
                tails.append(tail[chosen] - low)
                heads.append(_heads(out_index, start, stop)[chosen])
            edge, relation = np.concatenate(edges), np.concatenate(chosen_relations)
            order = incoming_order(relation, np.concatenate(tails))
            file.append(edge[order])
            relations.append(relation[order])
            others.append(np.concatenate(heads)[order])


def _heads(out_index: Int64, start: int, stop: int) -> Numbers:
    """Return the heads of the edges numbered from `start` up to `stop`."""
    first, last = (np.searchsorted(out_index, (start, stop - 1), "right") - 1).tolist()
    bounds = np.clip(out_index[first : last + 2], start, stop)
    return np.arange(first, last + 1, dtype=np.int32).repeat(np.diff(bounds))


def _portions(counts: Int64, row_bytes: int) -> Iterator[tuple[int, int]]:
    """Cut nodes into ranges that have up to a portion of edges each, or one node with more. None without edges."""
    ends = counts.cumsum()
    low, done = 0, 0
    while low < len(ends) and done < ends[-1]:
        high = max(int(np.searchsorted(ends, done + _PORTION_BYTES // row_bytes, "right")), low + 1)
        yield low, high
        low, done = high, int(ends[high - 1])


class _ArrayFile:
    """A `.npy` file that grows; its bytes are those of `np.save`."""

    def __init__(self, path: Path, kind: type[np.integer]) -> None:
        self.kind = kind
        self._path = path
        self._file: BinaryIO = path.open("wb+")
        self._count = 0

    def __enter__(self) -> _ArrayFile:
        self._file.write(bytes(_HEADER_BYTES))
        return self

    def append(self, numbers: Numbers) -> None:
        numbers.astype(self.kind, copy=False).tofile(self._file)
        self._count += len(numbers)

    def read(self, start: int, stop: int) -> Numbers:
        """Return some of the numbers that were appended."""
        self._file.flush()
        return np.fromfile(
            self._path, self.kind, stop - start, offset=_HEADER_BYTES + start * np.dtype(self.kind).itemsize
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file as file:
            file.seek(0)
            description = {"descr": np.dtype(self.kind).str, "fortran_order": False, "shape": (self._count,)}
            np.lib.format.write_array_header_1_0(file, description)
