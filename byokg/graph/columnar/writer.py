"""Graphs as streams of numbered edges, written to a folder whatever their size, or held in memory.

An importer hands over a `GraphStream`: blocks of numbered edges, and then the nodes and relations behind the numbers.
It is used up once, by `collect`, which holds the graph in memory, or by `write_graph`. Both give the same graph, to
the byte.

`write_graph` puts the edges as they come into scratch files, one for each range of heads, and writes the nodes. It
then sorts the edges in portions small enough for memory, appends them to the files that `ColumnarGraph.save` would
write, and puts them into scratch files by ranges of tails, for the way back. In memory are first the texts of nodes and
relations, and then a number for each node and one portion of edges. Each edge is read and written a fixed number of
times, whatever their number.
"""

from __future__ import annotations

import json
import mmap
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from byokg.files import write_json
from byokg.graph.columnar.assembly import EdgeTable, assemble_parts
from byokg.graph.columnar.external_sort import ArrayFile, Chosen, Links, Scratch, StoredArray
from byokg.graph.columnar.folder import (
    NO_COLUMNS,
    NODES,
    VERSION,
    BatchFile,
    edge_width,
    map_array,
    map_batches,
    relation_width,
    write_meta,
    write_nodes,
)
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.node_ids import write_ids
from byokg.graph.columnar.node_properties import NodeProperties, write_properties
from byokg.graph.columnar.node_types import NO_FURTHER, FurtherTypes
from byokg.graph.columnar.schema import EdgeColumns, NodeColumns, convert, count_schema, join_batches
from byokg.graph.columnar.undirected import lower_end_first
from byokg.graph.sorted_ids import SortedEdges, incoming_order, sort_edges
from byokg.index.vocabulary import hash_column, sort_hashes

S = TypeVar("S")
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
    undirected: npt.NDArray[np.bool_] | None = None
    """(B,) the edges that lead both ways; None if none of them does."""

    def canonical(self, distinct: bool) -> EdgeBlock:
        """Return the block of a stream, without repetitions if `distinct`, as it is sorted.

        An undirected edge may be listed from either end; repetitions are equal once it is listed from the lower one.
        """
        if self.undirected is None or not distinct:
            return self
        return replace(self, triples=lower_end_first(self.triples, self.undirected))


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
        """Return the origin of the graph."""


class ReadWhole(Exception):
    """The stream has to begin again, with all of the source held in memory."""


@runtime_checkable
class ResumableStream(GraphStream, Protocol):
    """A source that can be read on from where another process came to."""

    def keep_in(self, folder: Path, state: Mapping[str, Any] | None) -> None:
        """Keep texts in files in `folder`; with a returned `state`, restore those kept until then.

        Called before anything is read. `blocks` then yields the rest.
        """

    def set_aside(self) -> None:
        """Release the memory of texts in files, until they are needed."""

    def state(self) -> Mapping[str, Any]:
        """Return, as JSON, how much of the source the blocks hold that were yielded so far."""


def collect(stream: GraphStream, name: str = "") -> ColumnarGraph:
    """Read a stream into memory, under another name if one is given. Raises `ImportFailed`."""
    blocks = list(stream.blocks())
    flags = [np.zeros(len(one.triples), np.bool_) if one.undirected is None else one.undirected for one in blocks]
    types = stream.property_types()
    triples = np.concatenate([np.empty((0, 3), np.int32), *(block.triples for block in blocks)])
    properties = join_batches([convert(block.properties, types, len(block.triples)) for block in blocks], types)
    marks = [block.apart for block in blocks if block.apart is not None]
    parts = assemble_parts(
        stream.nodes(),
        stream.relations(),
        EdgeTable(
            triples,
            dict(zip(types, properties.columns, strict=True)),
            np.concatenate(marks) if marks else None,
            np.concatenate([np.empty(0, np.bool_), *flags]),
        ),
        source=stream.source(),
        distinct=stream.distinct,
        dropped_duplicates=stream.left_out,
    )
    return ColumnarGraph(name or stream.name, parts)


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the same items, making the next one in a thread while one is worked on."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


def map_ahead(work: Callable[[S], T], items: Iterator[S], threads: int) -> Iterator[T]:
    """Yield what some work makes of each item, in order, while threads are at the next ones."""
    with ThreadPoolExecutor(threads) as pool:
        waiting = deque(pool.submit(work, item) for item in islice(items, 2 * threads))
        while waiting:
            done = waiting.popleft().result()
            waiting.extend(pool.submit(work, item) for item in islice(items, 1))
            yield done


_LINK_BYTES = 32
"""What sorting takes for one edge on the way back."""

SCRATCH = ".building"
"""Folder of unfinished files, and of the checkpoint."""

_STATE, _STATE_VERSION = "state.json", 4
_KEPT_EVERY_S = 20.0
"""Seconds of work that are done again, at most, when reading goes on after it was interrupted."""

_MAPPED_PORTIONS = 8
"""Portions of edges whose bytes texts in files may take of the memory while edges are read."""

_EDGE_PROPERTIES, _FLAGS = "edge_properties.arrow", "undirected_edges.npy"


def write_graph(
    stream: GraphStream,
    folder: Path,
    key: object = None,
    portion_bytes: int = 1 << 27,
    progress: Callable[[str, int], object] | None = None,
    edge_properties: bool = True,
) -> None:
    """Write a graph, or the rest of one.

    Args:
        stream: the graph, not yet read.
        folder: an empty folder to write into, or one that `is_interrupted` accepts. It keeps, besides the graph, a
            folder named `SCRATCH`, to be deleted at the end.
        key: identity, as JSON, of the source and the reader; see `is_interrupted`.
        portion_bytes: of edges that are sorted at once, unless one node has more; sorting takes some times as much.
        progress: called with the current phase and the number of edges done, now and then.
        edge_properties: True if edges keep properties, and the way back the numbers of edges.

    Raises:
        ImportFailed: the source of the stream cannot become a graph.
        ReadWhole: it must be read in another way; the folder must be emptied before.
        OSError: the disk is full, for instance.
    """
    work = _Work(folder, key, progress or (lambda _doing, _edges: None))
    if work.phase == _WRITTEN:
        return
    scratch = Scratch(work.scratch)
    work.read(stream, scratch, edge_properties, _MAPPED_PORTIONS * portion_bytes)
    if work.phase == _READ:
        count = _write_nodes(stream.nodes(), folder)
        work.keep(_SORTING, stream, scratch, nodes=count)
    count, labels = work.nodes, stream.relations()
    types = stream.property_types() if edge_properties else {}
    number = edge_width(scratch.count) if edge_properties else None
    links = Links(work.scratch, number, relation_width(2 * len(labels)))
    kept = _write_edges(folder, scratch, links, count, stream, types, portion_bytes, work.progress)
    _write_way_back(folder, links, count, kept, portion_bytes, work.progress)
    batch = map_batches(path)[0] if (path := folder / NODES).exists() else NO_COLUMNS
    properties = NodeProperties.map(folder, {path.name for path in folder.iterdir()}).columns()
    of_edges = map_batches(folder / _EDGE_PROPERTIES) if types else []
    further = NO_FURTHER
    if (folder / "type_node.npy").exists():
        further = FurtherTypes(*(map_array(folder / f"{name}.npy") for name in ("type_node", "type_number")))
    schema = count_schema(_edge_columns(folder), count, batch, properties, of_edges, labels, further)
    write_meta(folder, count, kept, scratch.count - kept + stream.left_out, stream.source(), schema)
    work.finish()


def is_interrupted(folder: Path, key: object) -> bool:
    """True if `write_graph` can continue in a folder: work on the same source left by another process.

    Files of a process may be lost when the machine stops, so leftovers from before its start are not used.
    """
    try:
        state = json.loads((folder / SCRATCH / _STATE).read_bytes())
    except (OSError, ValueError):
        return False
    return bool(state.get("key") == json.loads(json.dumps(_full_key(key))))


def _full_key(key: object) -> list[object]:
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        started = ""
    return [VERSION, _STATE_VERSION, started, key]


_READING, _READ, _SORTING, _WRITTEN = "reading", "read", "sorting", "written"


class _Work:
    """How far the writing of a graph has come, kept in its folder."""

    def __init__(self, folder: Path, key: object, progress: Callable[[str, int], object]) -> None:
        self.scratch, self.progress = folder / SCRATCH, progress
        self._key = _full_key(key)
        self._state: dict[str, Any] = {}
        if key is not None and is_interrupted(folder, key):
            self._state = json.loads((self.scratch / _STATE).read_bytes())
        else:
            shutil.rmtree(self.scratch, ignore_errors=True)
            self.scratch.mkdir()

    @property
    def phase(self) -> str:
        """Return the present phase, or the last one."""
        return str(self._state.get("phase", _READING))

    @property
    def nodes(self) -> int:
        """Return how many nodes were written."""
        return int(self._state["nodes"])

    def read(self, stream: GraphStream, scratch: Scratch, edge_properties: bool, most_mapped: int) -> None:
        """Read the rest of a stream; bytes of mapped files stay in memory up to about `most_mapped`."""

        def add(block: EdgeBlock) -> None:
            said = (block.apart, block.properties) if edge_properties else (None, None)
            scratch.add(block.canonical(stream.distinct).triples, *said, block.undirected)
            self.progress("read", scratch.count)

        if not isinstance(stream, ResumableStream):
            self._state = {}
            for block in stream.blocks():
                add(block)
            self._state = {"phase": _READ}
            return
        stream.keep_in(self.scratch, self._state.get("stream"))
        if self._state:
            scratch.go_on(self._state["scratch"])
        if self.phase != _READING:
            return
        kept = time.monotonic()
        for block in stream.blocks():
            add(block)
            if _mapped_bytes() > most_mapped:
                stream.set_aside()
            if time.monotonic() - kept > _KEPT_EVERY_S:
                self.keep(_READING, stream, scratch)
                kept = time.monotonic()
        self.keep(_READ, stream, scratch)

    def keep(self, phase: str, stream: GraphStream, scratch: Scratch, nodes: int = 0) -> None:
        """Write down how far the work has come."""
        self._state = {"key": self._key, "phase": phase, "nodes": nodes}
        if isinstance(stream, ResumableStream):
            self._state |= {"stream": stream.state(), "scratch": scratch.state()}
            write_json(self.scratch / _STATE, self._state)

    def finish(self) -> None:
        """Write down that the graph is complete, and delete the rest."""
        write_json(self.scratch / _STATE, {"key": self._key, "phase": _WRITTEN})
        for path in self.scratch.iterdir():
            if path.name != _STATE:
                with suppress(PermissionError):  # Windows removes no mapped file: it goes with the folder
                    path.unlink()


def _mapped_bytes() -> int:
    """Return the memory of this process that maps files; 0 if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[2]) * mmap.PAGESIZE
    except OSError:
        return 0


def _write_nodes(nodes: NodeColumns, folder: Path) -> int:
    """Write the nodes and their index by id; return how many there are."""
    _write_index(nodes, folder)
    batch = nodes.batch()
    nodes.set_aside()
    write_ids(folder, nodes.ids, "name" not in batch.schema.names, nodes.set_aside)
    write_nodes(folder, batch)
    del batch
    if len(nodes.further):
        np.save(folder / "type_node.npy", nodes.further.node)
        np.save(folder / "type_number.npy", nodes.further.type)
    write_properties(folder, nodes.properties, len(nodes.ids))
    return len(nodes.ids)


def _write_index(nodes: NodeColumns, folder: Path) -> None:
    hashes, order = sort_hashes(hash_column(nodes.ids) if nodes.hashes is None else nodes.hashes)
    np.save(folder / "id_hash.npy", hashes)
    np.save(folder / "id_order.npy", order)


def _write_edges(
    folder: Path,
    scratch: Scratch,
    links: Links,
    node_count: int,
    stream: GraphStream,
    types: Mapping[str, pa.DataType],
    portion_bytes: int,
    progress: Callable[[str, int], object],
) -> int:
    """Write the edges by head, relation and tail, and their properties; return how many there are."""
    kept = 0
    counts = np.zeros((2, len(stream.relations())), np.int64)
    with (
        ArrayFile(folder / "out_index.npy", np.int64) as index,
        ExitStack() as opened,
        ArrayFile(folder / "relation.npy", relation_width(len(stream.relations()))) as relations,
        ArrayFile(folder / "other.npy", np.int32) as others,
        BatchFile(folder / _EDGE_PROPERTIES, pa.schema(types.items())) as properties,
    ):
        flags = opened.enter_context(ArrayFile(folder / _FLAGS, np.bool_)) if scratch.undirected else None
        index.append(np.zeros(1, np.int64))
        for low, high in scratch.portions(node_count, portion_bytes // scratch.row_bytes()):
            found = _sorted(scratch.between(low, high, types), low, stream.distinct, properties)
            head, relation, tail = found.head, found.relation, found.tail
            undirected = np.zeros(len(head), np.bool_) if found.undirected is None else found.undirected
            if flags is not None:
                flags.append(undirected)
                counts += [np.bincount(some, minlength=counts.shape[1]) for some in (relation, relation[undirected])]
            index.append(kept + np.bincount(head, minlength=high - low).cumsum())
            relations.append(relation)
            others.append(tail)
            links.add(kept, head + low, relation << 1 | undirected, tail)
            kept += len(head)
            progress("sorted", kept)
    if scratch.undirected:
        np.save(folder / "undirected.npy", counts[1] > 0)
        if ((counts[1] == 0) | (counts[1] == counts[0])).all():  # each relation is of one kind
            (folder / _FLAGS).unlink()
    return kept


def _edge_columns(folder: Path) -> EdgeColumns:
    """Return the edges that were written, without holding them."""
    relation, other = (StoredArray(folder / f"{name}.npy") for name in ("relation", "other"))
    undirected = np.load(path) if (path := folder / "undirected.npy").exists() else None
    return EdgeColumns(relation, other, undirected, StoredArray(path) if (path := folder / _FLAGS).exists() else None)


def _sorted(chosen: Chosen, low: int, distinct: bool, properties: BatchFile) -> SortedEdges:
    """Sort a portion, whose heads come back counted from its first, and write its properties."""
    head, code, tail = chosen.triples[:, 0] - low, chosen.triples[:, 1], chosen.triples[:, 2]
    flags = (code & 1).astype(np.bool_)
    found = sort_edges(head, code >> 1, tail, flags if flags.any() else None, chosen.apart, distinct)
    if chosen.properties is not None and found.order is not None:
        properties.append(chosen.properties.take(pa.array(found.order)))
    return found


def _write_way_back(
    folder: Path,
    links: Links,
    node_count: int,
    edge_count: int,
    portion_bytes: int,
    progress: Callable[[str, int], object],
) -> None:
    """Write all edges again by (tail, relation, edge), behind those that are there."""
    done = 0
    with (
        ArrayFile(folder / "in_index.npy", np.int64) as index,
        ArrayFile.more(folder / "relation.npy") as relations,
        ArrayFile.more(folder / "other.npy") as others,
        ExitStack() as opened,
    ):
        edges = flags = None
        if (folder / _FLAGS).exists():
            flags = opened.enter_context(ArrayFile.more(folder / _FLAGS))
        if links.numbered:
            edges = opened.enter_context(ArrayFile(folder / "in_edge.npy", edge_width(edge_count)))
        index.append(np.full(1, edge_count))
        for low, high in links.portions(node_count, portion_bytes // _LINK_BYTES):
            rows = links.between(low, high)
            tail = rows["tail"] - low
            index.append(edge_count + done + np.bincount(tail, minlength=high - low).cumsum())
            relation = rows["relation"] >> 1
            order = incoming_order(relation, tail)
            if edges is not None:
                edges.append(rows["edge"][order])
            if flags is not None:
                flags.append((rows["relation"][order] & 1).astype(np.bool_))
            relations.append(relation[order])
            others.append(rows["head"][order])
            links.forget(high)
            done += len(rows)
            progress("sorted for the way back", done)
