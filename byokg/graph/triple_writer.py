"""Writing a saved graph from a stream of numbered triples, however many there are.

Triples go to a scratch file as they come. They are then sorted in portions small enough for memory, each holding all
edges of a range of heads, and later of tails, and appended to the files that `ColumnarGraph.save` would write: the
same bytes. In memory are the entities' texts and one portion at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from byokg.graph.columnar import edge_width, relation_width, write_batch, write_graph_meta
from byokg.graph.edge_order import Int64, Numbers, incoming_order, ranges, sort_distinct
from byokg.graph.id_index import sorted_hashes
from byokg.graph.interner import Interner
from byokg.graph.store import RelationSchema, Schema

Triples = npt.NDArray[np.int32]
"""(E, 3) head, relation and tail numbers."""

_PORTION = 1 << 24
"""Edges sorted at once, about 30 bytes each; more only where one node has more."""

_SCAN = 1 << 21
"""Edges read at once from a file that is being scanned."""

_SCRATCH = "triples.scratch"
_HEADER_BYTES = 128


def write_triples(
    blocks: Iterable[Triples], entities: Interner, relations: Interner, source: Mapping[str, Any], folder: Path
) -> None:
    """Write the graph of some triples, each once; repetitions are counted in `meta.json`.

    Args:
        blocks: triples whose numbers `entities` and `relations` have given by the time the last block has come.
        entities: texts of the nodes.
        relations: relation labels.
        source: what the graph is made from; read after the last block.
        folder: an empty folder to write into.
    """
    scratch = folder / _SCRATCH
    try:
        given = _spill(blocks, scratch)
        labels: list[str] = relations.strings.to_pylist()
        out_counts, in_counts, relation_counts = _write_edges(folder, scratch, len(entities), len(labels))
    finally:
        scratch.unlink(missing_ok=True)
    kept = int(relation_counts.sum())
    np.save(folder / "out_index.npy", ranges(out_counts))
    np.save(folder / "in_index.npy", ranges(in_counts))
    _write_way_back(folder, in_counts, kept)
    hashes, order = sorted_hashes(entities.hashes)
    np.save(folder / "id_hash.npy", hashes)
    np.save(folder / "id_order.npy", order)
    write_batch(folder / "nodes.arrow", pa.RecordBatch.from_arrays([entities.strings], ["id"]))
    untyped = ("",)
    schema = Schema(
        {"": len(entities)} if len(entities) else {},
        tuple(RelationSchema(*row, untyped, untyped) for row in zip(labels, relation_counts.tolist(), strict=True)),
        {},
    )
    write_graph_meta(folder, len(entities), kept, given - kept, source, schema)


def _spill(blocks: Iterable[Triples], scratch: Path) -> int:
    count = 0
    with scratch.open("wb") as file:
        for block in blocks:
            block.tofile(file)
            count += len(block)
    return count


def _write_edges(folder: Path, scratch: Path, node_count: int, relation_count: int) -> tuple[Int64, Int64, Int64]:
    """Write the edges by (head, relation, tail); return how many there are of each head, tail and relation."""
    given = np.zeros(node_count, np.int64)
    for block in _scan_triples(scratch):
        given += np.bincount(block[:, 0], minlength=node_count)
    of_head, of_tail = np.zeros(node_count, np.int64), np.zeros(node_count, np.int64)
    of_relation = np.zeros(relation_count, np.int64)
    with (
        _ArrayFile(folder / "head.npy", np.int32) as heads,
        _ArrayFile(folder / "relation.npy", relation_width(relation_count)) as relations,
        _ArrayFile(folder / "tail.npy", np.int32) as tails,
    ):
        for low, high in _portions(given):
            chosen = [block[(block[:, 0] >= low) & (block[:, 0] < high)] for block in _scan_triples(scratch)]
            portion = np.concatenate(chosen)
            del chosen
            head, relation, tail = sort_distinct(portion[:, 0] - low, portion[:, 1], portion[:, 2])
            del portion
            of_head[low:high] = np.bincount(head, minlength=high - low)
            of_relation += np.bincount(relation, minlength=relation_count)
            of_tail += np.bincount(tail, minlength=node_count)
            heads.append(head + low)
            relations.append(relation)
            tails.append(tail)
    return of_head, of_tail, of_relation


def _write_way_back(folder: Path, in_counts: Int64, edge_count: int) -> None:
    """Write the edge numbers by (tail, relation, edge)."""
    with _ArrayFile(folder / "in_edge.npy", edge_width(edge_count)) as file:
        for low, high in _portions(in_counts):
            edges, relations, tails = [], [], []
            columns = (_scan_array(folder / "relation.npy"), _scan_array(folder / "tail.npy"))
            start = 0
            for relation, tail in zip(*columns, strict=True):
                chosen = np.flatnonzero((tail >= low) & (tail < high))
                edges.append((chosen + start).astype(file.kind))
                relations.append(relation[chosen])
                tails.append(tail[chosen] - low)
                start += len(tail)
            order = incoming_order(np.concatenate(relations), np.concatenate(tails))
            file.append(np.concatenate(edges)[order])


def _portions(counts: Int64) -> Iterator[tuple[int, int]]:
    """Cut nodes into ranges that have up to a portion of edges each, or one node with more. None without edges."""
    ends = counts.cumsum()
    low, done = 0, 0
    while low < len(ends) and done < ends[-1]:
        high = max(int(np.searchsorted(ends, done + _PORTION, "right")), low + 1)
        yield low, high
        low, done = high, int(ends[high - 1])


def _scan_triples(scratch: Path) -> Iterator[Triples]:
    with scratch.open("rb") as file:
        while len(block := np.fromfile(file, np.int32, 3 * _SCAN)):
            yield block.reshape(-1, 3)


def _scan_array(path: Path) -> Iterator[Numbers]:
    with path.open("rb") as file:
        np.lib.format.read_magic(file)
        _, _, kind = np.lib.format.read_array_header_1_0(file)
        while len(block := np.fromfile(file, kind, _SCAN)):
            yield block


class _ArrayFile:
    """A `.npy` file that grows; its bytes are those of `np.save`."""

    def __init__(self, path: Path, kind: type[np.integer]) -> None:
        self.kind = kind
        self._path = path
        self._file: BinaryIO = path.open("wb")
        self._count = 0

    def __enter__(self) -> _ArrayFile:
        self._file.write(bytes(_HEADER_BYTES))
        return self

    def append(self, numbers: Numbers) -> None:
        numbers.astype(self.kind).tofile(self._file)
        self._count += len(numbers)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file as file:
            file.seek(0)
            description = {"descr": np.dtype(self.kind).str, "fortran_order": False, "shape": (self._count,)}
            np.lib.format.write_array_header_1_0(file, description)
