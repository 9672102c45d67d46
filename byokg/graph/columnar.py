"""The default graph store: flat arrays in compressed sparse row form, in memory or memory-mapped from a folder.

Edges are sorted by (head, relation, tail, input order) and numbered in that order, so a node's outgoing edges are
one slice. A second index lists the edge numbers by (tail, relation, head, edge) for the way back.

A folder holds `meta.json` (counts, schema, where the graph came from, checksums), one `.npy` file for each array,
`nodes.arrow` (id, name, type), and properties in `node_properties.arrow` and `edge_properties.arrow` where there
are any. Equal input gives equal bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from byokg.errors import EntityNotFound, GraphCorrupt, GraphError, RelationNotFound
from byokg.graph.edge_order import incoming_order, ranges, sort_distinct, sort_order
from byokg.graph.folder import new_folder, read_meta, verify_checksums, write_meta
from byokg.graph.id_index import IdIndex
from byokg.graph.store import Direction, EdgeBatch, NodeArray, PropertySchema, RelationArray, RelationSchema, Schema
from byokg.types import NO_PROPERTIES, EntityId, Node, Properties, Triple, Value

Int64 = npt.NDArray[np.int64]

_EXAMPLES, _EXAMPLE_ROWS, _EXAMPLE_LENGTH = 3, 16, 60
"""Values of a property that the schema shows, rows it looks at for them, and characters in one."""

_BISECT_FROM = 8192
"""Edges from which a relation filter searches each node's sorted range before it reads whole ranges."""


@dataclass(frozen=True)
class _Arrays:
    """Topology and id index of a graph with N nodes and E edges; one `.npy` file each."""

    head: npt.NDArray[np.int32]
    """(E,) node each edge starts at; edges sorted by head, relation, tail, input order."""
    relation: RelationArray
    """(E,) uint16 below 65,536 relations, otherwise int32."""
    tail: npt.NDArray[np.int32]
    """(E,) node each edge ends at."""
    out_index: Int64
    """(N + 1,) the edges out of node n are numbered out_index[n] up to out_index[n + 1]."""
    in_index: Int64
    """(N + 1,) the edges into node n stand in `in_edge` from in_index[n] up to in_index[n + 1]."""
    in_edge: npt.NDArray[np.integer]
    """(E,) edge numbers sorted by tail, relation, head, edge; int32 while they fit."""
    id_hash: npt.NDArray[np.uint64]
    """(N,) hashes of the node ids, ascending."""
    id_order: npt.NDArray[np.int32]
    """(N,) node number behind each entry of `id_hash`."""


class ColumnarGraph:
    """A directed, labelled multigraph in flat arrays; implements `GraphStore`.

    Make one with `open`, `from_triples`, `from_records`, or `importers.import_graph`. Nothing changes after
    construction, so threads may share it.
    """

    def __init__(
        self,
        name: str,
        arrays: _Arrays,
        nodes: pa.RecordBatch,
        node_properties: pa.RecordBatch | None,
        edge_properties: pa.RecordBatch | None,
        schema: Schema,
        source: Mapping[str, Any],
        dropped_duplicates: int,
        folder: Path | None = None,
        files: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._name = name
        self._arrays = arrays
        self._nodes = nodes
        self._ids = IdIndex(nodes.column("id"), arrays.id_hash, arrays.id_order)
        self._node_properties = node_properties
        self._edge_properties = edge_properties
        self._schema = schema
        self._relations = tuple(relation.name for relation in schema.relations)
        self._folder = folder
        self._files = dict(files or {})
        self.source = dict(source)
        """What the graph was made from: kind, and name, size and SHA-256 of each file."""
        self.dropped_duplicates = dropped_duplicates
        """How many exact repetitions of a triple were left out."""

    def __repr__(self) -> str:
        return (
            f"<ColumnarGraph {self._name}: {self.node_count:,} nodes, {self.edge_count:,} edges, "
            f"{len(self._relations):,} relations>"
        )

    # Making one

    @classmethod
    def open(cls, folder: str | Path) -> ColumnarGraph:
        """Map a saved graph read-only. Costs milliseconds whatever its size; `verify` checks the content.

        Raises:
            GraphNotFound: there is no graph in `folder`.
            GraphCorrupt: files are missing, cut short, or of another format.
        """
        folder = Path(folder)
        meta = read_meta(folder)
        files, node_properties, edge_properties = meta["files"], "node_properties.arrow", "edge_properties.arrow"
        try:
            arrays = _Arrays(**{field.name: _map_array(folder / f"{field.name}.npy") for field in fields(_Arrays)})
            return cls(
                name=str(folder),
                arrays=arrays,
                nodes=_map_batch(folder / "nodes.arrow"),
                node_properties=_map_batch(folder / node_properties) if node_properties in files else None,
                edge_properties=_map_batch(folder / edge_properties) if edge_properties in files else None,
                schema=_schema_from_json(meta["schema"]),
                source=meta["source"],
                dropped_duplicates=meta["dropped_duplicates"],
                folder=folder,
                files=files,
            )
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise GraphCorrupt(folder, str(error)) from error

    @classmethod
    def from_triples(cls, triples: Iterable[tuple[str, str, str]], name: str = "memory") -> ColumnarGraph:
        """Hold (head, relation, tail) triples in memory; exact repetitions are dropped and counted."""
        ids: dict[str, int] = {}
        labels: dict[str, int] = {}
        codes = [
            (ids.setdefault(head, len(ids)), labels.setdefault(label, len(labels)), ids.setdefault(tail, len(ids)))
            for head, label, tail in triples
        ]
        head, relation, tail = np.array(codes, np.int64).reshape(-1, 3).T
        return cls.assemble(
            name=name,
            ids=pa.array(list(ids), pa.large_string()),
            relations=list(labels),
            head=head,
            relation=relation,
            tail=tail,
            drop_duplicates=True,
            source={"kind": "triples in memory"},
        )

    @classmethod
    def from_records(
        cls,
        nodes: Iterable[Node],
        edges: Iterable[Triple],
        name: str = "memory",
        source: Mapping[str, Any] | None = None,
        dropped_duplicates: int = 0,
    ) -> ColumnarGraph:
        """Hold nodes and edges with their properties in memory; parallel edges are all kept.

        Edges are numbered anew: `Triple.edge` of the input is ignored. `source` says what the graph is made from, and
        `dropped_duplicates` how many repetitions of a triple were left out before.

        Raises:
            EntityNotFound: an edge ends at a node that is not among `nodes`.
            GraphError: an id occurs twice, or one property holds values of several types.
        """
        node_list, edge_list = list(nodes), list(edges)
        ids: dict[str, int] = {}
        for number, node in enumerate(node_list):
            if ids.setdefault(node.id, number) != number:
                raise GraphError(f"node id {node.id!r} occurs twice in the records; give each node its own id")
        labels: dict[str, int] = {}
        codes = np.empty((len(edge_list), 3), np.int64)
        for row, edge in enumerate(edge_list):
            for end in (edge.head, edge.tail):
                if end not in ids:
                    raise EntityNotFound(end, "the nodes given to from_records")
            codes[row] = ids[edge.head], labels.setdefault(edge.relation, len(labels)), ids[edge.tail]
        return cls.assemble(
            name=name,
            ids=pa.array([node.id for node in node_list], pa.large_string()),
            names=pa.array([node.name for node in node_list], pa.large_string()),
            types=pa.array([node.type for node in node_list], pa.large_string()),
            node_properties=_property_columns([node.properties for node in node_list]),
            relations=list(labels),
            head=codes[:, 0],
            relation=codes[:, 1],
            tail=codes[:, 2],
            edge_properties=_property_columns([edge.properties for edge in edge_list]),
            drop_duplicates=False,
            source=source or {"kind": "records in memory"},
            dropped_duplicates=dropped_duplicates,
        )

    @classmethod
    def assemble(
        cls,
        *,
        name: str,
        ids: pa.LargeStringArray,
        relations: Sequence[str],
        head: npt.NDArray[np.integer],
        relation: npt.NDArray[np.integer],
        tail: npt.NDArray[np.integer],
        drop_duplicates: bool,
        source: Mapping[str, Any],
        names: pa.LargeStringArray | None = None,
        types: pa.Array | None = None,
        node_properties: Mapping[str, pa.Array] | None = None,
        edge_properties: Mapping[str, pa.Array] | None = None,
        dropped_duplicates: int = 0,
    ) -> ColumnarGraph:
        """Sort and index columns whose nodes and relations are already numbered.

        Args:
            name: what to call the graph in messages.
            ids: (N,) node ids, all different; a node's number is its position.
            relations: R relation labels, all different.
            head: (E,) node numbers.
            relation: (E,) relation numbers.
            tail: (E,) node numbers.
            drop_duplicates: leave out repetitions of the same (head, relation, tail); such a graph has no
                edge properties.
            source: what the graph is made from.
            names: (N,) node names; None says that the ids are the names.
            types: (N,) node types, plain or dictionary-encoded; None says that nodes are untyped.
            node_properties: columns of N values, null where a node lacks the property.
            edge_properties: columns of E values, in the order of `head`.
            dropped_duplicates: repetitions that were left out before.
        """
        edge_count = len(head)
        if drop_duplicates:
            head, relation, tail = sort_distinct(head, relation, tail)
        else:
            order = sort_order(head, relation, tail)
            head, relation, tail = head[order], relation[order], tail[order]
            edge_properties = {key: column.take(pa.array(order)) for key, column in (edge_properties or {}).items()}
        node_columns = {"id": ids}
        if names is not None and not names.equals(ids):
            node_columns["name"] = names
        if types is not None:
            node_columns["type"] = types if pa.types.is_dictionary(types.type) else types.dictionary_encode()
        index = IdIndex.build(ids)
        arrays = _Arrays(
            head=head.astype(np.int32),
            relation=relation.astype(relation_width(len(relations))),
            tail=tail.astype(np.int32),
            out_index=ranges(np.bincount(head, minlength=len(ids))),
            in_index=ranges(np.bincount(tail, minlength=len(ids))),
            in_edge=incoming_order(relation, tail).astype(edge_width(len(head))),
            id_hash=index.hashes,
            id_order=index.order,
        )
        nodes = _batch(node_columns)
        node_batch = _batch(node_properties) if node_properties else None
        edge_batch = _batch(edge_properties) if edge_properties else None
        return cls(
            name=name,
            arrays=arrays,
            nodes=nodes,
            node_properties=node_batch,
            edge_properties=edge_batch,
            schema=_schema(arrays, nodes, node_batch, edge_batch, relations),
            source=source,
            dropped_duplicates=dropped_duplicates + edge_count - len(head),
        )

    # What GraphStore asks

    @property
    def name(self) -> str:
        """Say which graph this is: its folder, or the name given."""
        return self._name

    @property
    def relations(self) -> Sequence[str]:
        """Return relation labels; a relation number is a position in this list."""
        return self._relations

    def schema(self) -> Schema:
        """Return node types and relations with counts. Untyped nodes stand under the type ``""``."""
        return self._schema

    def entities(self) -> Iterator[EntityId]:
        """Yield each entity once, heads and tails alike, in node-number order."""
        column = self._nodes.column("id")
        for start in range(0, len(column), 1 << 16):
            yield from column.slice(start, 1 << 16).to_pylist()

    def numbers(self, ids: Collection[EntityId]) -> NodeArray:
        """Return the node number of each id: (N,) int32. Raises `EntityNotFound` for an unknown one."""
        asked = list(ids)
        numbers = self._ids.find_all(asked)
        unknown = np.flatnonzero(numbers < 0)
        if len(unknown):
            raise EntityNotFound(asked[unknown[0]], self._name)
        return numbers

    def ids(self, nodes: NodeArray) -> list[EntityId]:
        """Return the id of each node number."""
        return cast(list[EntityId], self._ids.get(self._checked(nodes)))

    def nodes(self, ids: Collection[EntityId]) -> list[Node]:
        """Return name, type and properties, in the order asked. Raises `EntityNotFound`."""
        asked = list(ids)
        rows = pa.array(self.numbers(asked))
        columns = self._nodes.schema.names
        names = self._nodes.column("name").take(rows).to_pylist() if "name" in columns else asked
        types = self._nodes.column("type").take(rows).to_pylist() if "type" in columns else [""] * len(asked)
        properties = _rows(self._node_properties, rows)
        return [Node(*row) for row in zip(asked, names, types, properties, strict=True)]

    def edges(
        self, nodes: NodeArray, direction: Direction = Direction.BOTH, relations: RelationArray | None = None
    ) -> EdgeBatch:
        """Return the edges touching `nodes`, optionally of some relations only. See `EdgeBatch` for the order.

        Raises:
            EntityNotFound: a node number is out of range.
            RelationNotFound: a relation number is out of range.
        """
        numbers = self._checked(nodes)
        arrays = self._arrays
        # A segment is the range of one node in one direction: 2N of them when both are asked, interleaved.
        if direction is Direction.BOTH:
            starts = np.empty(2 * len(numbers), np.int64)
            stops = np.empty(2 * len(numbers), np.int64)
            starts[0::2], stops[0::2] = arrays.out_index[numbers], arrays.out_index[numbers + 1]
            starts[1::2], stops[1::2] = arrays.in_index[numbers], arrays.in_index[numbers + 1]
        else:
            index = arrays.out_index if direction is Direction.OUT else arrays.in_index
            starts, stops = index[numbers], index[numbers + 1]
        split = 1
        if relations is not None:
            wanted = self._checked_relations(relations)
            total = int((stops - starts).sum())
            if total > _BISECT_FROM + 64 * len(starts) * len(wanted):
                backward = self._backward(np.arange(len(starts)), direction)
                starts, stops = self._narrow(starts, stops, backward, wanted)
                split, relations = len(wanted), None
        counts = stops - starts
        bounds = counts.cumsum()
        segment = np.repeat(np.arange(len(counts)), counts)
        edge = np.arange(len(segment)) + (starts - bounds + counts)[segment]
        if split > 1:
            segment //= split
        inverse = self._backward(segment, direction)
        if direction is Direction.IN:
            edge = arrays.in_edge[edge].astype(np.int64)
        elif direction is Direction.BOTH:
            edge[inverse] = arrays.in_edge[edge[inverse]]
            segment >>= 1
        relation = arrays.relation[edge]
        if relations is not None:
            if len(wanted) == 1:
                kept = (relation == wanted[0]).nonzero()[0]
            else:
                allowed = np.zeros(len(self._relations), np.bool_)
                allowed[wanted] = True
                kept = allowed[relation].nonzero()[0]
            edge, relation, segment, inverse = edge[kept], relation[kept], segment[kept], inverse[kept]
        return EdgeBatch(arrays.head[edge], relation, arrays.tail[edge], edge, segment, inverse)

    def edge_properties(self, edges: Int64) -> list[Properties]:
        """Return the properties of each edge number, in the order asked. Raises `GraphError` when out of range."""
        numbers = np.asarray(edges, np.int64)
        if len(numbers) and int(numbers.view(np.uint64).max()) >= self.edge_count:
            raise GraphError(f"no edge of number {_first_outside(numbers, self.edge_count)} in {self._name}")
        return _rows(self._edge_properties, pa.array(numbers))

    def sample_edges(self, per_relation: int) -> EdgeBatch:
        """Return up to `per_relation` edges of each relation, spread evenly over its edges, by relation."""
        relation = self._arrays.relation
        order = np.argsort(relation, kind="stable")
        counts = np.bincount(relation, minlength=len(self._relations))
        taken = np.minimum(counts, per_relation)
        group = np.repeat(np.arange(len(counts)), taken)
        rank = np.arange(len(group)) - np.repeat(taken.cumsum() - taken, taken)
        position = (counts.cumsum() - counts)[group] + rank * counts[group] // np.maximum(taken[group], 1)
        edge = order[position]
        tell = np.zeros(len(edge), np.bool_)
        arrays = self._arrays
        return EdgeBatch(arrays.head[edge], relation[edge], arrays.tail[edge], edge, np.arange(len(edge)), tell)

    # What this store offers beyond the protocol

    @property
    def node_count(self) -> int:
        """Return the number of nodes."""
        return len(self._ids)

    @property
    def edge_count(self) -> int:
        """Return the number of edges."""
        return len(self._arrays.head)

    @property
    def folder(self) -> Path | None:
        """Return the folder it was opened from; None for a graph in memory."""
        return self._folder

    @property
    def checksum(self) -> str | None:
        """Return one SHA-256 over the checksums of all files as written; None for a graph that was never saved."""
        if not self._files:
            return None
        lines = "".join(f"{name} {entry['sha256']}\n" for name, entry in sorted(self._files.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    def degree(self, nodes: NodeArray, direction: Direction = Direction.BOTH) -> Int64:
        """Return how many edges touch each node: (N,). A self-loop counts once in each direction."""
        numbers = self._checked(nodes)
        degree = np.zeros(len(numbers), np.int64)
        if direction is not Direction.IN:
            degree += self._arrays.out_index[numbers + 1] - self._arrays.out_index[numbers]
        if direction is not Direction.OUT:
            degree += self._arrays.in_index[numbers + 1] - self._arrays.in_index[numbers]
        return degree

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the graph to `folder`: completely, or not at all.

        Args:
            folder: made with its parents. Files go to a hidden sibling first, which is renamed into place.
            overwrite: replace a graph that is already there. Anything else is never replaced.

        Raises:
            GraphExists: `folder` is taken.
        """
        with new_folder(folder, overwrite) as partial:
            self._write(partial)

    def verify(self) -> None:
        """Read every file of a saved graph and compare its checksum.

        Raises:
            GraphCorrupt: a file differs from what was written.
        """
        if self._folder is not None:
            verify_checksums(self._folder, self._files)

    # Inside

    def _checked(self, nodes: NodeArray) -> Int64:
        """Return node numbers as int64, refusing those that numpy would silently count from the end."""
        numbers = np.asarray(nodes, np.int64)
        if len(numbers) and int(numbers.view(np.uint64).max()) >= len(self._ids):
            raise EntityNotFound(f"number {_first_outside(numbers, len(self._ids))}", self._name)
        return numbers

    def _checked_relations(self, relations: RelationArray) -> Int64:
        """Return relation numbers ascending and distinct."""
        wanted = np.asarray(relations, np.int64)
        if len(wanted) > 1:
            wanted = np.unique(wanted)
        if len(wanted) and (wanted[0] < 0 or wanted[-1] >= len(self._relations)):
            number = _first_outside(wanted, len(self._relations))
            raise RelationNotFound(f"number {number}", self._name, self._relations)
        return wanted

    @staticmethod
    def _backward(segment: Int64, direction: Direction) -> npt.NDArray[np.bool_]:
        """Tell which segments are ranges of incoming edges."""
        if direction is Direction.BOTH:
            return (segment & 1).astype(np.bool_)
        return np.full(len(segment), direction is Direction.IN)

    def _narrow(
        self, starts: Int64, stops: Int64, backward: npt.NDArray[np.bool_], wanted: Int64
    ) -> tuple[Int64, Int64]:
        """Cut each of S segments into the R ranges that hold the wanted relations: (S * R,) starts and stops."""
        shape = (len(starts), len(wanted))
        lows = np.broadcast_to(starts[:, None], shape).ravel()
        highs = np.broadcast_to(stops[:, None], shape).ravel()
        flipped = np.broadcast_to(backward[:, None], shape).ravel()
        sought = np.broadcast_to(wanted, shape).ravel()
        starts = self._first_at_least(lows, highs, flipped, sought)
        return starts, self._first_at_least(starts, highs, flipped, sought + 1)

    def _first_at_least(self, low: Int64, high: Int64, backward: npt.NDArray[np.bool_], relation: Int64) -> Int64:
        """Bisect all ranges at once for the first slot whose relation is at least the one sought."""
        arrays, last = self._arrays, self.edge_count - 1
        for _ in range(int((high - low).max(initial=0)).bit_length()):
            middle = (low + high) >> 1
            slot = np.minimum(middle, last)
            edge = np.where(backward, arrays.in_edge[slot], slot)
            open_ = low < high
            below = open_ & (arrays.relation[edge] < relation)
            low = np.where(below, middle + 1, low)
            high = np.where(open_ & ~below, middle, high)
        return low

    def _write(self, folder: Path) -> None:
        for field in fields(_Arrays):
            with (folder / f"{field.name}.npy").open("wb") as file:
                np.save(file, getattr(self._arrays, field.name), allow_pickle=False)
        batches = {
            "nodes.arrow": self._nodes,
            "node_properties.arrow": self._node_properties,
            "edge_properties.arrow": self._edge_properties,
        }
        for name, batch in batches.items():
            if batch is not None:
                write_batch(folder / name, batch)
        write_graph_meta(folder, self.node_count, self.edge_count, self.dropped_duplicates, self.source, self._schema)


# What a folder holds beside the arrays


def write_batch(path: Path, batch: pa.RecordBatch) -> None:
    """Write columns so that `ColumnarGraph.open` can map them."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def write_graph_meta(
    folder: Path, nodes: int, edges: int, dropped_duplicates: int, source: Mapping[str, Any], schema: Schema
) -> None:
    """Write the last file of a graph's folder, when all others are complete."""
    content = {
        "nodes": nodes,
        "edges": edges,
        "dropped_duplicates": dropped_duplicates,
        "source": source,
        "schema": asdict(schema),
    }
    write_meta(folder, content)


def relation_width(count: int) -> type[np.integer]:
    """Return the integer type that holds relation numbers below `count`."""
    return np.uint16 if count < 1 << 16 else np.int32


def edge_width(count: int) -> type[np.integer]:
    """Return the integer type that holds edge numbers below `count`."""
    return np.int32 if count < 1 << 31 else np.int64


def _first_outside(numbers: Int64, count: int) -> int:
    return int(numbers[(numbers < 0) | (numbers >= count)][0])


def _property_columns(rows: Sequence[Properties]) -> dict[str, pa.Array]:
    """Turn property mappings into typed columns, null where a row lacks the key."""
    keys = dict.fromkeys(key for row in rows for key in row)
    kinds: dict[frozenset[type], pa.DataType] = {
        frozenset({str}): pa.large_string(),
        frozenset({bool}): pa.bool_(),
        frozenset({int}): pa.int64(),
        frozenset({float}): pa.float64(),
        frozenset({int, float}): pa.float64(),
    }
    columns = {}
    for key in keys:
        values = [row.get(key) for row in rows]
        found = frozenset(type(value) for value in values if value is not None)
        if found not in kinds:
            names = ", ".join(sorted(kind.__name__ for kind in found))
            raise GraphError(f"property {key!r} holds values of types {names}; give it one of str, int, float, bool")
        try:
            columns[key] = pa.array(values, kinds[found])
        except (OverflowError, pa.ArrowInvalid) as error:
            raise GraphError(
                f"property {key!r} holds a number that does not fit into 64 bits; store it as str"
            ) from error
    return columns


def _rows(batch: pa.RecordBatch | None, rows: pa.Array) -> list[Properties]:
    """Read properties row by row, leaving out what is null; dates become ISO 8601 strings."""
    if batch is None:
        return [NO_PROPERTIES] * len(rows)
    found: list[dict[str, Value]] = [{} for _ in range(len(rows))]
    for key, column in zip(batch.schema.names, batch.columns, strict=True):
        taken = column.take(rows)
        if pa.types.is_date(taken.type):
            taken = taken.cast(pa.string())
        for row, value in zip(found, taken.to_pylist(), strict=True):
            if value is not None:
                row[key] = value
    return [row or NO_PROPERTIES for row in found]


def _batch(columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _schema(
    arrays: _Arrays,
    nodes: pa.RecordBatch,
    node_properties: pa.RecordBatch | None,
    edge_properties: pa.RecordBatch | None,
    relations: Sequence[str],
) -> Schema:
    """Count node types, relations, the types at their ends, and who has which property."""
    if "type" in nodes.schema.names:
        types: list[str] = nodes.column("type").dictionary.to_pylist()
        codes = nodes.column("type").indices.to_numpy()
    else:
        types, codes = [""], np.zeros(nodes.num_rows, np.int32)
    type_counts = np.bincount(codes, minlength=len(types))
    edge_counts = np.bincount(arrays.relation, minlength=len(relations))
    domains = _ends(arrays.relation, codes[arrays.head], types, len(relations))
    ranges = _ends(arrays.relation, codes[arrays.tail], types, len(relations))
    of_types = _property_schemas(node_properties, codes, len(types))
    of_relations = _property_schemas(edge_properties, arrays.relation, len(relations))
    by_count = sorted((n for n in range(len(types)) if type_counts[n]), key=lambda n: (-type_counts[n], types[n]))
    return Schema(
        node_types={types[n]: int(type_counts[n]) for n in by_count},
        relations=tuple(
            RelationSchema(name, count, domain, range_, _names(found), found)
            for name, count, domain, range_, found in zip(
                relations, edge_counts.tolist(), domains, ranges, of_relations, strict=True
            )
        ),
        node_properties={types[n]: _names(of_types[n]) for n in by_count if of_types[n]},
        node_property_details={types[n]: of_types[n] for n in by_count if of_types[n]},
    )


def _names(properties: Sequence[PropertySchema]) -> tuple[str, ...]:
    return tuple(found.name for found in properties)


def _ends(
    relation: RelationArray, codes: npt.NDArray[np.integer], types: Sequence[str], relation_count: int
) -> list[tuple[str, ...]]:
    """List for each relation the node types at one of its ends, most frequent first, then by name."""
    pairs = relation.astype(np.int64) * len(types) + codes
    if relation_count * len(types) <= 4 * len(pairs) + 1_000_000:
        counts = np.bincount(pairs, minlength=relation_count * len(types))
        found = counts.nonzero()[0]
        counts = counts[found]
    else:
        found, counts = np.unique(pairs, return_counts=True)
    rows = [(*divmod(pair, len(types)), count) for pair, count in zip(found.tolist(), counts.tolist(), strict=True)]
    ends: list[list[str]] = [[] for _ in range(relation_count)]
    for number, code, _ in sorted(rows, key=lambda row: (row[0], -row[2], types[row[1]])):
        ends[number].append(types[code])
    return [tuple(names) for names in ends]


def _property_schemas(
    batch: pa.RecordBatch | None, group: npt.NDArray[np.integer], group_count: int
) -> list[tuple[PropertySchema, ...]]:
    """List for each group of rows the properties that at least one of them has, in column order."""
    found: list[list[PropertySchema]] = [[] for _ in range(group_count)]
    if batch is not None:
        group = group.astype(np.uint16) if group_count < 1 << 16 else group  # which sorts quicker
        for key, column in zip(batch.schema.names, batch.columns, strict=True):
            rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
            order = rows[np.argsort(group[rows], kind="stable")]
            counts = np.bincount(group[rows], minlength=group_count)
            stops = counts.cumsum()
            for number in counts.nonzero()[0].tolist():
                members = order[stops[number] - counts[number] : stops[number]]
                spread = members[np.linspace(0, len(members) - 1, min(len(members), _EXAMPLE_ROWS)).astype(np.int64)]
                found[number].append(PropertySchema(key, _kind(column.type), _examples(column.take(pa.array(spread)))))
    return [tuple(properties) for properties in found]


def _kind(type_: pa.DataType) -> str:
    return {pa.int64(): "int", pa.float64(): "float", pa.bool_(): "bool", pa.date32(): "date"}.get(type_, "string")


def _examples(values: pa.Array) -> tuple[Value, ...]:
    """Return the first few different values that are short."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.string())
    short = [value for value in values.to_pylist() if len(str(value)) <= _EXAMPLE_LENGTH]
    return tuple(dict.fromkeys(short))[:_EXAMPLES]


def _schema_from_json(data: Mapping[str, Any]) -> Schema:
    return Schema(
        node_types=data["node_types"],
        relations=tuple(
            RelationSchema(
                row["name"],
                row["count"],
                tuple(row["domain"]),
                tuple(row["range"]),
                tuple(row["properties"]),
                _details_from_json(row["property_details"]),
            )
            for row in data["relations"]
        ),
        node_properties={key: tuple(names) for key, names in data["node_properties"].items()},
        node_property_details={
            key: _details_from_json(details) for key, details in data["node_property_details"].items()
        },
    )


def _details_from_json(rows: Sequence[Mapping[str, Any]]) -> tuple[PropertySchema, ...]:
    return tuple(PropertySchema(row["name"], row["kind"], tuple(row["examples"])) for row in rows)


def _map_array(path: Path) -> npt.NDArray[Any]:
    # As a plain array: the memmap subclass would slow down every operation on it.
    array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    return array


def _map_batch(path: Path) -> pa.RecordBatch:
    return pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
