"""The files of a saved graph: arrays, Arrow batches, and `meta.json`, against which they are checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from byokg.arrays import Int64, Integers
from byokg.errors import GraphCorrupt, GraphExists, GraphNotFound
from byokg.files import find_changed, find_missing, list_files, user_cache, write_file, write_json
from byokg.graph.cancellation import check
from byokg.graph.columnar.node_types import NO_FURTHER, FurtherTypes
from byokg.graph.columnar.schema import EdgeColumns
from byokg.graph.sorted_ids import changes, distinct, finder, portions, sample_positions, spread
from byokg.graph.store import Direction, EdgeBatch, InducedEdges, NumberSpace, RelationArray, RelationCounts, Schema
from byokg.types import Language

META = "meta.json"
FORMAT = "byokg-columnar"
VERSION = 7
_READABLE = (6, VERSION)
"""Version 6 has no undirected edges, and a single type of each node."""

NODES = "nodes.arrow"
NO_COLUMNS = pa.RecordBatch.from_arrays([], [])
"""Placeholder for `NODES` if nodes have neither types nor names other than their ids."""

ENGINE_FOLDERS: dict[Language, str] = {"cypher": "arcadedb", "sparql": "oxigraph"}
"""Where in the folder the query engine for each language lies, if it was built."""

BATCH_ROWS = 1 << 20
"""Edges whose properties stand together in a file; any graph's can be written without holding them all."""


SMALL_BYTES = 1 << 20
"""A graph of fewer bytes is read through whenever it is opened, which costs a millisecond or two."""

_LOOKED_AT_ONCE = 1 << 15
"""Edges whose far ends are looked up together, unless one node has more: as many as stay in a processor's cache."""

COUNTED_AT_ONCE = 1 << 20
"""Edges whose far ends or relations are collected together, unless one node has more."""

_REMEMBERED_FROM = 1 << 23
"""Edges of a graph from which samples of them are remembered."""

_STATES = 7
"""Copies of one graph that are remembered to be whole, beside the latest."""

_OWN = "meta_sha256"
_KEYS = ("nodes", "edges", "dropped_duplicates", "source", "schema", "files", _OWN)


def refuse_taken(folder: str | Path, overwrite: bool) -> None:
    """Raise `GraphExists` unless `folder` is absent, empty, or a graph that may be overwritten."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise GraphExists(folder, "a file is there; choose another folder")
    if not folder.exists() or next(folder.iterdir(), None) is None:
        return
    if not _is_ours(folder):
        raise GraphExists(folder, "the folder is not empty and holds no graph; choose another folder")
    if not overwrite:
        raise GraphExists(folder, "a graph is already there; pass overwrite=True or choose another folder")


def _is_ours(folder: Path) -> bool:
    """True if a folder is a graph, possibly of another version or damaged: a rebuild replaces those."""
    try:
        return bool(json.loads((folder / META).read_bytes()).get("format") == FORMAT)
    except (OSError, ValueError, AttributeError):
        return False


def write_meta(
    folder: Path, nodes: int, edges: int, dropped_duplicates: int, source: Mapping[str, Any], schema: Schema
) -> None:
    """Write `meta.json`, the last file of a graph's folder, when all others are complete."""
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "nodes": nodes,
        "edges": edges,
        "dropped_duplicates": dropped_duplicates,
        "source": source,
        "schema": asdict(schema),
        "files": list_files(folder),
    }
    meta[_OWN] = _digest(meta)
    write_json(folder / META, meta)
    _mark(folder, meta)


def _digest(meta: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the rest of `meta.json`."""
    said = {key: value for key, value in meta.items() if key != _OWN}
    return hashlib.sha256(json.dumps(said, ensure_ascii=False).encode(errors="surrogatepass")).hexdigest()


def read_meta(folder: Path) -> dict[str, Any]:
    """Read `meta.json`, and check that it and its files are unchanged.

    Reading all of a large graph's files takes seconds, so of one this is done only if the file system reports a change
    or copy since they were written or last verified, according to the user's cache folder.

    Raises:
        GraphNotFound: there is no `meta.json`.
        GraphCorrupt: it cannot be used, or a file is missing or changed.
    """
    try:
        meta = json.loads((folder / META).read_bytes())
    except (FileNotFoundError, NotADirectoryError, UnicodeEncodeError) as error:
        raise GraphNotFound(folder) from error
    except (OSError, ValueError, RecursionError) as error:
        raise GraphCorrupt(folder, f"{META}: {error}") from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise GraphCorrupt(folder, f"{META} does not say format {FORMAT!r}")
    if meta.get("version") not in _READABLE:
        known = " and ".join(map(str, _READABLE))
        raise GraphCorrupt(folder, f"it has format version {meta.get('version')!r}, this byokg reads {known}")
    lacking = [key for key in _KEYS if key not in meta]
    if lacking:
        raise GraphCorrupt(folder, f"{META} lacks {', '.join(lacking)}")
    if meta["version"] == _READABLE[0] and _had_several_types(meta):
        raise GraphCorrupt(folder, "it is of format version 6, which kept one type of nodes that have several")
    try:
        missing = find_missing(folder, meta["files"])
        if missing is None and not _is_marked(folder, meta):
            missing = find_changed(folder, meta["files"]) if _digest(meta) == meta[_OWN] else f"{META} has changed"
            if missing is None:
                _mark(folder, meta)
    except (AttributeError, KeyError, TypeError) as error:
        raise GraphCorrupt(folder, f"the list of files in {META} is damaged") from error
    if missing:
        raise GraphCorrupt(folder, missing)
    return meta


def _had_several_types(meta: Mapping[str, Any]) -> bool:
    """Return True if some nodes of a graph of version 6 had several types: as edges, or in a property."""
    try:
        edges = any(relation["name"] == "rdf:type" for relation in meta["schema"]["relations"])
        return edges or any("labels" in names for names in meta["schema"]["node_properties"].values())
    except (AttributeError, KeyError, TypeError):
        return False  # a damaged schema is an error of its own


def _state(folder: Path, meta: Mapping[str, Any]) -> str:
    """Return a digest of file-system metadata of a graph's files, which changes with their bytes."""
    found = [(folder / name).stat() for name in sorted((*meta["files"], META))]
    said = [(one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for one in found]
    return hashlib.sha256(repr(said).encode()).hexdigest()


def _states_file(meta: Mapping[str, Any]) -> Path:
    return user_cache() / "checked" / Path(str(meta[_OWN])).name


def _is_small(meta: Mapping[str, Any]) -> bool:
    return bool(sum(entry["bytes"] for entry in meta["files"].values()) < SMALL_BYTES)


def _is_marked(folder: Path, meta: Mapping[str, Any]) -> bool:
    """True if a graph's files are known to be unchanged: built here, or verified before."""
    with suppress(OSError, ValueError):
        if _is_small(meta):
            return False
        known = _states_file(meta).read_text("ascii").split()
        return _state(folder, meta) in known
    return False


def _mark(folder: Path, meta: Mapping[str, Any]) -> None:
    """Record that a graph's files are unchanged; no effect if the user's cache cannot be written."""
    file = _states_file(meta)
    with suppress(OSError):
        if _is_small(meta):
            return
        before = file.read_text("ascii", "replace").split()[-_STATES:] if file.exists() else []
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, (f"{state}\n".encode() for state in [*before, _state(folder, meta)]))


def stamp(folder: Path) -> tuple[int, ...]:
    """Return the difference between a graph and one that has replaced it; empty if there is no graph."""
    try:
        found = (folder / META).stat()
    except (OSError, UnicodeEncodeError):
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def verify_checksums(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    """Read every file, `meta.json` too, and compare its checksum. Raises `GraphCorrupt` for one that differs."""
    read_meta(folder)
    if changed := find_changed(folder, files):
        raise GraphCorrupt(folder, changed)


def sample_edges(relation: RelationArray, relations: int, most: int, checksum: str | None) -> Int64:
    """Return up to `most` edges of each relation, by relation, spread evenly over its edges.

    Looking through all edges of a large graph takes seconds, so the user's cache remembers which they are.

    Args:
        relation: (E,) the relation of each edge.
        relations: how many there are.
        most: edges of each.
        checksum: of the graph; None if it was never saved.
    """
    if checksum is None or len(relation) < _REMEMBERED_FROM:
        return sample_positions(relation, relations, most)
    file = user_cache() / "samples" / f"{checksum}-{most}.npy"
    with suppress(OSError, ValueError, EOFError):
        known = np.load(file, allow_pickle=False)
        if known.dtype == np.int64 and known.ndim == 1 and 0 <= known.min(initial=0) <= known.max() < len(relation):
            return cast(Int64, known)
    found = sample_positions(relation, relations, most)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        held = BytesIO()
        np.save(held, found, allow_pickle=False)
        write_file(file, [held.getvalue()])
    return found


@dataclass(frozen=True)
class Arrays:
    """Topology and id index of a graph with N nodes and E edges; one `.npy` file each."""

    relation: RelationArray
    """(2E,) uint16 below 65,536 relations, otherwise int32."""
    other: npt.NDArray[np.int32]
    """(2E,) the far end: the tail of each edge, by head, relation, tail, input order; and then, for the way back, the
    head of each edge by tail, relation, head, edge number."""
    out_index: Int64
    """(N + 1,) the edges out of node n have the slots out_index[n] up to out_index[n + 1], and so their numbers."""
    in_index: Int64
    """(N + 1,) the edges into node n have the slots in_index[n] up to in_index[n + 1]; from E on."""
    id_hash: npt.NDArray[np.uint32]
    """(N,) upper halves of the hashes of the node ids, ascending."""
    id_order: npt.NDArray[np.int32]
    """(N,) node number behind each entry of `id_hash`."""
    in_edge: npt.NDArray[np.integer] | None = None
    """(E,) number of the edge in slot E + i; int32 while they fit. None if not kept: a search replaces it."""
    undirected: npt.NDArray[np.bool_] | None = None
    """(R,) relations with undirected edges; None if no edge of the graph is undirected."""
    undirected_edges: npt.NDArray[np.bool_] | None = None
    """(2E,) the undirected edges, by slot; None unless a relation has directed edges as well."""
    type_node: npt.NDArray[np.int32] | None = None
    """(M,) nodes that have several types, ascending, once for each type after the first. None if there are none."""
    type_number: npt.NDArray[np.int32] | None = None
    """(M,) those types, as positions in the dictionary of the column `type`."""

    def check(self, nodes: int, edges: int) -> None:
        """Raise `ValueError` if the length of an array contradicts the number of nodes and edges."""
        lengths = {
            **dict.fromkeys(("relation", "other"), 2 * edges),
            **dict.fromkeys(("out_index", "in_index"), nodes + 1),
            **dict.fromkeys(("id_hash", "id_order"), nodes),
        }
        if self.in_edge is not None:
            lengths["in_edge"] = edges
        if self.undirected_edges is not None:
            lengths["undirected_edges"] = 2 * edges
        if self.type_node is not None and self.type_number is not None:
            lengths["type_number"] = len(self.type_node)
        for name, length in lengths.items():
            if (found := getattr(self, name).shape) != (length,):
                raise ValueError(f"{name}.npy holds an array of shape {found}, not ({length},)")

    @property
    def further_types(self) -> FurtherTypes:
        """Return the types of nodes besides their first."""
        if self.type_node is None or self.type_number is None:
            return NO_FURTHER
        return FurtherTypes(self.type_node, self.type_number)

    @property
    def edge_count(self) -> int:
        """Return E."""
        return len(self.other) // 2

    @property
    def edge_columns(self) -> EdgeColumns:
        """Return the edges without their ends' places."""
        return EdgeColumns(self.relation, self.other, self.undirected, self.undirected_edges)

    def undirected_relations(self) -> Int64:
        """Return the relations with undirected edges: ascending."""
        return np.empty(0, np.int64) if self.undirected is None else np.flatnonzero(self.undirected)

    @property
    def relation_count(self) -> int:
        """Return R; 0 for a graph without undirected edges, which does not keep it."""
        return 0 if self.undirected is None else len(self.undirected)

    def are_undirected(self, slot: Int64, relation: RelationArray) -> npt.NDArray[np.bool_]:
        """Return True for each slot of an undirected edge: (S,).

        Args:
            slot: (S,).
            relation: (S,) the relation in each slot.
        """
        if self.undirected is None:
            return np.zeros(len(slot), np.bool_)
        flags, places = (self.undirected, relation) if self.undirected_edges is None else (self.undirected_edges, slot)
        return flags.take(places)

    def leading_to(self, start: Int64, stop: Int64, relation: Integers, far: Integers) -> tuple[Int64, Int64]:
        """Return where the slots that lead to a node start and stop, in ranges of one relation each: (S,) each."""
        first = self._first_at_least(start, stop, relation, far)
        return first, self._first_at_least(first, stop, relation, far + 1)

    def numbers_of(self, slot: Int64, tail: Integers) -> Int64:
        """Return the numbers of the edges in some slots for the way back: (S,).

        Where these are not kept, each is found by bisection among the edges of its head, which costs some steps for
        each doubling of their number. Edges of one triple stand in the same order both ways.

        Args:
            slot: (S,) from E on.
            tail: (S,) the node that each slot is of.
        """
        if self.in_edge is not None:
            return self.in_edge.take(slot - self.edge_count).astype(np.int64)
        head, relation = self.other.take(slot).astype(np.int64), self.relation.take(slot)
        number = self._first_at_least(self.out_index.take(head), self.out_index.take(head + 1), relation, tail)
        before, first = slot - 1, self.in_index.take(tail)
        again = (slot > first) & (self.other.take(before) == head) & (self.relation.take(before) == relation)
        if len(repeated := again.nonzero()[0]):
            stop = slot.take(repeated)
            start = self._first_at_least(first.take(repeated), stop, relation.take(repeated), head.take(repeated))
            number[repeated] += stop - start
        return number

    def slots_of(self, nodes: Int64, direction: Direction) -> tuple[Int64, Int64]:
        """Return the first and last slots of each node's edges: (N,) each.

        In both directions they are (2N,): of each node, outgoing edges and then incoming ones.
        """
        if direction is not Direction.BOTH:
            index = self.out_index if direction is Direction.OUT else self.in_index
            return index[nodes], index[nodes + 1]
        starts, stops = np.empty(2 * len(nodes), np.int64), np.empty(2 * len(nodes), np.int64)
        starts[0::2], stops[0::2] = self.out_index[nodes], self.out_index[nodes + 1]
        starts[1::2], stops[1::2] = self.in_index[nodes], self.in_index[nodes + 1]
        return starts, stops

    def batch(
        self,
        nodes: Int64,
        direction: Direction,
        segment: Int64,
        slot: Int64,
        relation: RelationArray,
        space: NumberSpace,
    ) -> EdgeBatch:
        """Return the edges in some slots.

        Args:
            nodes: requested nodes.
            direction: of the edges.
            segment: (S,) of each slot, the position of its segment as `slots_of` counts them.
            slot: (S,) slots; the array may be overwritten.
            relation: (S,) their relations.
            space: numbering of nodes and edges.
        """
        both = direction is Direction.BOTH
        if both:
            inverse = (segment & 1).astype(np.bool_)
            segment >>= 1
        else:
            inverse = np.full(len(segment), direction is Direction.IN)
        far = self.other.take(slot)
        near = nodes.astype(np.int32).take(segment)
        if not both:
            if direction is Direction.OUT:
                return EdgeBatch(near, relation, far, slot, segment, inverse, space)
            edge = self.numbers_of(slot, near)
            return EdgeBatch(far, relation, near, edge, segment, inverse, space)
        incoming = inverse.nonzero()[0]  # a place at a time is several times slower by mask than by number
        slot[incoming] = self.numbers_of(slot.take(incoming), near.take(incoming))
        turn = (far - near) * inverse
        near += turn
        far -= turn
        return EdgeBatch(near, relation, far, slot, segment, inverse, space)

    def far_ends(self, nodes: Int64, direction: Direction) -> npt.NDArray[np.integer]:
        """Return the other ends of the edges that touch some nodes, each once, ascending."""
        found = self._ends(*self.slots_of(nodes, direction))
        if self.undirected is None or direction is Direction.BOTH:
            return found
        other_way = Direction.IN if direction is Direction.OUT else Direction.OUT
        ranges = self.narrow(*self.slots_of(nodes, other_way), self.undirected_relations())
        return distinct(np.concatenate((found, self._ends(*ranges, self.undirected_edges))))

    def _ends(
        self, starts: Int64, stops: Int64, allowed: npt.NDArray[np.bool_] | None = None
    ) -> npt.NDArray[np.integer]:
        """Return the far ends in some ranges of slots, each once, ascending; `allowed` by slot, None for all."""
        found: list[npt.NDArray[np.integer]] = [np.empty(0, np.int32)]
        counts = stops - starts
        for first, last in portions(counts, COUNTED_AT_ONCE):  # so that memory stays at these or one hub's
            check()
            count = counts[first:last]
            slot = np.arange(count.sum()) + (starts[first:last] - count.cumsum() + count).repeat(count)
            found.append(distinct(self.other.take(slot if allowed is None else slot[allowed.take(slot)])))
        return found[-1] if len(found) <= 2 else distinct(np.concatenate(found))

    def relation_counts(self, nodes: Int64) -> RelationCounts:
        """Return how many edges of each relation touch each of some nodes."""
        which, start, stop = self.runs(*self.slots_of(nodes, Direction.BOTH))
        relation = self.relation.take(start).astype(np.int64)
        return RelationCounts(which >> 1, relation, (which & 1).astype(np.bool_), stop - start)

    def runs(self, starts: Int64, stops: Int64) -> tuple[Int64, Int64, Int64]:
        """Return the extent of each relation's edges in some segments, each of one node in one direction.

        Memory does not grow with the edges of a hub: its relations are found by bisection.

        Returns:
            For each of R runs the position of its segment, and its first and last slot: (R,) each.
        """
        found: list[tuple[Int64, Int64, Int64]] = [(np.empty(0, np.int64),) * 3]
        for first, last in portions(stops - starts, COUNTED_AT_ONCE):
            check()
            if stops[first] - starts[first] > COUNTED_AT_ONCE:  # a hub, alone
                begin = self._changes(int(starts[first]), int(stops[first]))
                found.append((np.full(len(begin), first), begin, np.append(begin[1:], stops[first])))
            else:
                segment, slot = slots(starts[first:last], stops[first:last])
                groups = np.flatnonzero(changes(segment, self.relation.take(slot)))
                begin = slot[groups]
                found.append((segment[groups] + first, begin, begin + np.diff(groups, append=len(slot))))
        which, start, stop = (np.concatenate(column) for column in zip(*found, strict=True))
        return which, start, stop

    def _changes(self, start: int, stop: int) -> Int64:
        """Return the slots, of some that follow one another, in which a relation is met first; they are in order."""
        firsts = []
        while start < stop:
            firsts.append(start)
            start += int(np.searchsorted(self.relation[start:stop], self.relation[start], "right"))
        return np.array(firsts, np.int64)

    def edges_among(self, nodes: Int64) -> InducedEdges:
        """Return the edges with both ends among some nodes, which are distinct; see `InducedEdges`."""
        starts = self.out_index[nodes]
        counts = self.out_index[nodes + 1] - starts
        ends = counts.cumsum()
        total = int(ends[-1]) if len(ends) else 0
        find = finder(nodes, total)
        width = edge_width(self.edge_count)  # narrow arrays stay in the processor's cache
        shift = (starts - ends + counts).astype(width)
        columns = [np.empty(total, kind) for kind in (np.int32, self.relation.dtype, width)]
        outgoing = np.zeros(len(nodes), np.int64)
        first = read = found = 0
        while read < total:
            check()
            stop = max(first + 1, int(np.searchsorted(ends, read + _LOOKED_AT_ONCE, "right")))
            until, count = int(ends[stop - 1]), counts[first:stop]
            edge = np.arange(read, until, dtype=width)
            edge += shift[first:stop].repeat(count)
            far = find(self.other.take(edge))
            within = far >= 0
            some = count.nonzero()[0]
            begins = (ends[first:stop] - count - read).take(some)
            outgoing[first + some] = np.add.reduceat(within, begins, dtype=np.int32)
            kept = within.nonzero()[0]
            tail, relation, number = (column[found : found + len(kept)] for column in columns)
            far.take(kept, out=tail, mode="clip")  # straight into its place; none is out of bounds
            edge.take(kept, out=number, mode="clip")
            self.relation.take(number, out=relation, mode="clip")
            first, read, found = stop, until, found + len(kept)
        tail, relation, number = (column[:found] for column in columns)
        undirected = None if self.undirected is None else self.are_undirected(number, relation)
        return InducedEdges(outgoing, tail, relation, number, undirected)

    def narrow(self, starts: Int64, stops: Int64, wanted: Int64) -> tuple[Int64, Int64]:
        """Cut each of S segments into the R ranges that hold the wanted relations: (S * R,) starts and stops."""
        shape = (len(starts), len(wanted))
        lows = np.broadcast_to(starts[:, None], shape).ravel()
        highs = np.broadcast_to(stops[:, None], shape).ravel()
        return self.along(lows, highs, np.broadcast_to(wanted, shape).ravel())

    def along(self, starts: Int64, stops: Int64, relation: Int64) -> tuple[Int64, Int64]:
        """Cut each of S segments to the range that holds one relation, given for each: (S,) starts and stops."""
        starts = self._first_at_least(starts, stops, relation)
        return starts, self._first_at_least(starts, stops, relation + 1)

    def _first_at_least(self, low: Int64, high: Int64, relation: Integers, other: Integers | None = None) -> Int64:
        """Bisect all ranges at once for the first slot whose relation, and then far end, is at least the one sought."""
        last = len(self.relation) - 1
        for _ in range(int((high - low).max(initial=0)).bit_length()):
            middle = (low + high) >> 1
            open_ = low < high
            place = np.minimum(middle, last)
            met = self.relation.take(place)
            below = open_ & (met < relation)
            if other is not None:
                below |= open_ & (met == relation) & (self.other.take(place) < other)
            low = np.where(below, middle + 1, low)
            high = np.where(open_ & ~below, middle, high)
        return low


def slots(starts: Int64, stops: Int64) -> tuple[Int64, Int64]:
    """Return for each slot of some ranges, one range after the other, the position of its range, and the slot."""
    return spread(starts, stops - starts)


def write_nodes(folder: Path, nodes: pa.RecordBatch) -> None:
    """Write what `NodeColumns.batch` returned, if there are any columns."""
    if nodes.num_columns:
        with pa.OSFile(str(folder / NODES), "wb") as sink, pa.ipc.new_file(sink, nodes.schema) as writer:
            writer.write_batch(nodes)


class BatchFile:
    """`edge_properties.arrow` while it grows: rows come in any portions, and are written `BATCH_ROWS` at a time.

    No file is written where edges have no properties.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._waiting = schema.empty_table()
        self._open = ExitStack()
        if schema.names:
            sink = self._open.enter_context(pa.OSFile(str(path), "wb"))
            self._writer = self._open.enter_context(pa.ipc.new_file(sink, schema))

    def __enter__(self) -> BatchFile:
        return self

    def append(self, rows: pa.RecordBatch) -> None:
        """Write these rows behind those that came before."""
        self._waiting = pa.concat_tables([self._waiting, pa.Table.from_batches([rows])])
        while len(self._waiting) > BATCH_ROWS:
            self._write(self._waiting.slice(0, BATCH_ROWS))
            self._waiting = self._waiting.slice(BATCH_ROWS)

    def _write(self, rows: pa.Table) -> None:
        columns = [pa.concat_arrays([pa.array([], column.type), *column.chunks]) for column in rows.columns]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=rows.schema))

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Write the rest: at least one batch, so that an empty graph has its columns, too."""
        with self._open:
            if error is None and self._waiting.num_columns:
                self._write(self._waiting)


def relation_width(count: int) -> type[np.integer]:
    """Return the integer type that holds relation numbers below `count`."""
    return np.uint16 if count < 1 << 16 else np.int32


def edge_width(count: int) -> type[np.integer]:
    """Return the integer type that holds edge numbers below `count`."""
    return np.int32 if count < 1 << 31 else np.int64


def map_array(path: Path) -> npt.NDArray[Any]:
    """Map an array that `np.save` wrote."""
    # As a plain array: the memmap subclass would slow down every operation on it.
    array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    return array


def map_batches(path: Path) -> list[pa.RecordBatch]:
    """Map what `BatchFile` or `write_nodes` wrote."""
    file = pa.ipc.open_file(pa.memory_map(str(path)))
    return [file.get_batch(number) for number in range(file.num_record_batches)]
