"""The default graph store: flat arrays in compressed sparse row form, in memory or memory-mapped from a folder.

Edges are sorted by (head, relation, tail, input order) and numbered in that order, so a node's outgoing edges are
one slice. Behind them stands every edge again for the way back, sorted by (tail, relation, head, edge), so its incoming
edges are one slice, too. Each of these 2 E places is a slot. The numbers of incoming edges stand beside them, or are
searched for if a graph was built without (`--no-edge-properties`).

A folder holds `meta.json` (counts, schema, source, checksums), one `.npy` file for each array, ids (`node_ids`), and,
if there are any, names and types in `nodes.arrow`, properties of nodes (`node_properties`), and those of edges in
`edge_properties.arrow`, in batches of `BATCH_ROWS` edges. Equal input gives equal bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from tokenize import TokenError
from typing import Any, cast
from weakref import proxy

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from byokg.arrays import Int64
from byokg.errors import EntityNotFound, GraphCorrupt, GraphError, GraphNotFound, RelationNotFound
from byokg.files import new_folder
from byokg.graph.columnar.folder import (
    BATCH_ROWS,
    NO_COLUMNS,
    NODES,
    Arrays,
    BatchFile,
    edge_width,
    map_array,
    map_batches,
    read_meta,
    refuse_taken,
    relation_width,
    sample_edges,
    slots,
    stamp,
    verify_checksums,
    write_meta,
    write_nodes,
)
from byokg.graph.columnar.node_ids import IdColumn, IdIndex, write_ids
from byokg.graph.columnar.node_properties import NodeProperties, write_properties
from byokg.graph.columnar.node_types import NodeTypes, read_types, write_types
from byokg.graph.columnar.schema import (
    Labels,
    NodeColumns,
    count_schema,
    of_all_nodes,
    property_batch,
    property_columns,
    read_rows,
    text_column,
)
from byokg.graph.columnar.undirected import (
    count_relations,
    lower_end_first,
    read_edges,
    read_first_edges,
    undirected_arrays,
)
from byokg.graph.sorted_ids import (
    incoming_order,
    ranges,
    sort_edges,
)
from byokg.graph.store import (
    Direction,
    EdgeBatch,
    GraphStore,
    InducedEdges,
    NodeArray,
    NodeCache,
    NumberSpace,
    RelationArray,
    RelationCounts,
    Schema,
    schema_from_json,
)
from byokg.index.string_hashes import Texts, positions
from byokg.types import EntityId, Node, Properties, Triple

_TRIES = 20
"""How often a folder is opened that is replaced by another process meanwhile."""

_BISECT_FROM = 8192
"""Edges from which a relation filter searches each node's sorted range before it reads whole ranges."""


class ColumnarGraph(GraphStore):
    """A directed, labelled multigraph in flat arrays.

    Make one with `open`, `from_triples`, `from_records`, or `importers.choose.import_graph`. Nothing changes after
    construction, so threads may share it.
    """

    def __init__(
        self,
        name: str,
        arrays: Arrays,
        ids: IdColumn,
        nodes: pa.RecordBatch,
        node_properties: NodeProperties,
        edge_properties: Sequence[pa.RecordBatch],
        schema: Schema,
        source: Mapping[str, Any],
        dropped_duplicates: int,
        folder: Path | None = None,
        files: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._name = name
        self._space = NumberSpace(name)
        self._samples: dict[int, EdgeBatch] = {}
        self._arrays = arrays
        self._nodes = nodes
        self.node_types = NodeTypes(nodes, arrays.further_types)
        """The types of all nodes."""
        self._ids = IdIndex(ids, arrays.id_hash, arrays.id_order)
        self._node_properties = node_properties
        ours = proxy(self)  # a graph that held itself would keep its files mapped after use
        self._memory = NodeCache(lambda ids: list(ours._read_nodes(ids)))
        self._edge_properties = edge_properties
        self._schema = schema
        self._relations = Labels(relation.name for relation in schema.relations)
        self._folder = folder
        self._files = dict(files or {})
        self.source = dict(source)
        """Source of the graph: kind, and name, size and SHA-256 of each file."""
        self.dropped_duplicates = dropped_duplicates
        """How many exact repetitions of a triple were left out."""

    def __repr__(self) -> str:
        return (
            f"<ColumnarGraph {self._name}: {self.node_count:,} nodes, {self.edge_count:,} edges, "
            f"{len(self._relations):,} relations>"
        )

    @classmethod
    def open(cls, folder: str | Path) -> ColumnarGraph:
        """Map a saved graph read-only. Costs milliseconds whatever its size; `verify` checks the content.

        Raises:
            GraphNotFound: there is no graph in `folder`.
            GraphCorrupt: files are missing, cut short, or of another format.
        """
        folder = Path(folder)
        for _ in range(_TRIES):
            before = stamp(folder)
            try:
                graph = cls._map(folder)
            except (GraphCorrupt, GraphNotFound):
                if stamp(folder) == before:
                    raise
            else:
                if stamp(folder) == before:
                    return graph
        raise GraphCorrupt(folder, "another process keeps replacing it")

    @classmethod
    def _map(cls, folder: Path) -> ColumnarGraph:
        meta = read_meta(folder)
        files, edge_properties = meta["files"], "edge_properties.arrow"
        try:
            names = [field.name for field in fields(Arrays) if field.default is MISSING or f"{field.name}.npy" in files]
            arrays = Arrays(**{name: map_array(folder / f"{name}.npy") for name in names})
            arrays.check(meta["nodes"], meta["edges"])
            return cls(
                name=str(folder),
                arrays=arrays,
                ids=IdColumn.map(folder, files, meta["nodes"]),
                nodes=map_batches(folder / NODES)[0] if NODES in files else NO_COLUMNS,
                node_properties=NodeProperties.map(folder, files),
                edge_properties=map_batches(folder / edge_properties) if edge_properties in files else (),
                schema=schema_from_json(meta["schema"]),
                source=meta["source"],
                dropped_duplicates=meta["dropped_duplicates"],
                folder=folder,
                files=files,
            )
        # numpy reports a faulty header of a .npy file with the errors of Python's own parser and tokenizer.
        except (OSError, ValueError, LookupError, TypeError, SyntaxError, TokenError, pa.ArrowException) as error:
            raise GraphCorrupt(folder, str(error)) from error

    @classmethod
    def from_triples(
        cls, triples: Iterable[tuple[str, str, str]], name: str = "memory", undirected: Collection[str] = ()
    ) -> ColumnarGraph:
        """Hold (head, relation, tail) triples in memory; exact repetitions are dropped and counted.

        Edges of the relations in `undirected` lead both ways; one that is listed from either end is repeated.

        Raises:
            GraphError: a text holds half of a surrogate pair.
        """
        ids: dict[str, int] = {}
        labels: dict[str, int] = {}
        codes = [
            (ids.setdefault(head, len(ids)), labels.setdefault(label, len(labels)), ids.setdefault(tail, len(ids)))
            for head, label, tail in triples
        ]
        nodes, numbers = NodeColumns(text_column(list(ids))), np.array(codes, np.int64).reshape(-1, 3)
        both_ways = np.array([label in undirected for label in labels], np.bool_)
        return cls.assemble(
            name,
            nodes,
            list(labels),
            numbers,
            source={"kind": "triples in memory"},
            distinct=True,
            undirected=both_ways.take(numbers[:, 1]),
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

        Edges are numbered anew: `Triple.edge` of the input is ignored. `source` describes the origin, and
        `dropped_duplicates` is the number of repeated triples left out before.

        Raises:
            EntityNotFound: an edge ends at a node that is not among `nodes`.
            GraphError: an id occurs twice, one property holds values of several types, or a text is no UTF-8.
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
        types, further = read_types(text_column([write_types(node.types) for node in node_list]))
        described = NodeColumns(
            ids=text_column([node.id for node in node_list]),
            names=text_column([node.name for node in node_list]),
            types=types,
            properties=of_all_nodes(property_columns([node.properties for node in node_list])),
            further=further,
        )
        return cls.assemble(
            name,
            described,
            list(labels),
            codes,
            property_columns([edge.properties for edge in edge_list]),
            source=source or {"kind": "records in memory"},
            dropped_duplicates=dropped_duplicates,
            undirected=np.array([edge.undirected for edge in edge_list], np.bool_),
        )

    @classmethod
    def assemble(
        cls,
        name: str,
        nodes: NodeColumns,
        relations: Sequence[str],
        triples: npt.NDArray[np.integer],
        properties: Mapping[str, pa.Array] | None = None,
        apart: npt.NDArray[np.integer] | None = None,
        *,
        source: Mapping[str, Any],
        distinct: bool = False,
        dropped_duplicates: int = 0,
        undirected: npt.NDArray[np.bool_] | None = None,
    ) -> ColumnarGraph:
        """Sort and index edges whose nodes and relations are already numbered.

        Args:
            name: the graph's name in messages.
            nodes: N nodes; a node's number is its position.
            relations: R relation labels, all different.
            triples: (E, 3) head, relation and tail numbers.
            properties: columns of E values, null if an edge lacks the property.
            apart: (E,) edges of the same triple that differ in this are no repetitions; the first of those equal in
                this too stays. Needed with `distinct` if edges have properties.
            source: origin of the graph.
            distinct: leave out repetitions of the same triple.
            dropped_duplicates: repetitions that were left out before.
            undirected: (E,) True for undirected edges; with `distinct`, listing one from its other end repeats it.

        Raises:
            GraphError: a relation label is no text that UTF-8 can hold.
        """
        text_column(relations)
        flags = undirected if undirected is not None and undirected.any() else None
        if flags is not None and distinct:
            triples = lower_end_first(triples, flags)
        head, relation, tail, flags, order = sort_edges(
            triples[:, 0], triples[:, 1], triples[:, 2], flags, apart, distinct
        )
        if order is not None:
            properties = {key: column.take(pa.array(order)) for key, column in (properties or {}).items()}
        index = IdIndex.build(nodes.ids)
        back = incoming_order(relation, tail)
        arrays = Arrays(
            relation=np.concatenate((relation, relation[back])).astype(relation_width(len(relations)), copy=False),
            other=np.concatenate((tail, head[back])).astype(np.int32, copy=False),
            out_index=ranges(np.bincount(head, minlength=len(nodes.ids))),
            in_index=ranges(np.bincount(tail, minlength=len(nodes.ids))) + len(head),
            in_edge=back.astype(edge_width(len(head))),
            id_hash=index.hashes,
            id_order=index.order,
            **undirected_arrays(flags, relation, back, len(relations)),
            type_node=nodes.further.node if len(nodes.further) else None,
            type_number=nodes.further.type if len(nodes.further) else None,
        )
        batch, of_nodes = nodes.batch(), NodeProperties.collect(nodes.properties, len(nodes.ids))
        of_edges = [held] if (held := property_batch(properties or {})) else []
        counted = batch, of_nodes.columns(), of_edges
        return cls(
            name=name,
            arrays=arrays,
            ids=index.ids,
            nodes=batch,
            node_properties=of_nodes,
            edge_properties=of_edges,
            schema=count_schema(arrays.edge_columns, len(index), *counted, relations, nodes.further),
            source=source,
            dropped_duplicates=dropped_duplicates + len(triples) - len(head),
        )

    # What GraphStore asks

    @property
    def name(self) -> str:
        """Return the graph's name for messages: its folder, or the given name."""
        return self._name

    @property
    def relations(self) -> Sequence[str]:
        """Return relation labels; a relation number is a position in this list."""
        return self._relations

    def schema(self) -> Schema:
        """Return node types and relations with counts. Untyped nodes stand under the type ``""``.

        A node of several types counts for each of them, and an edge for all types of its ends.
        """
        return self._schema

    def entities(self) -> Iterator[EntityId]:
        """Yield each entity once, heads and tails alike, in node-number order."""
        for some in self._ids.ids.blocks(1 << 16):
            yield from some.to_pylist()

    def numbers(self, ids: Collection[EntityId]) -> NodeArray:
        """Return the node number of each id: (N,) int32. Raises `EntityNotFound` for an unknown one."""
        asked = list(ids)
        numbers = self._ids.find_all(asked)
        if asked and numbers.min() < 0:
            raise EntityNotFound(asked[int(numbers.argmin())], self._name)
        return numbers

    def ids(self, nodes: NodeArray) -> list[EntityId]:
        """Return the id of each node number."""
        return cast(list[EntityId], self._ids.ids.get(self._checked(nodes)))

    def nodes(self, ids: Collection[EntityId]) -> list[Node]:
        """Return nodes with name, type and properties, in the order of `ids`. Raises `EntityNotFound`."""
        return self._memory.nodes(list(ids))

    def names_of_nodes(self) -> Texts:
        """Return the name of each node: (N,), as a column that may be mapped from a file."""
        return self._nodes.column("name") if "name" in self._nodes.schema.names else self._ids.ids.texts

    def names_at(self, nodes: NodeArray) -> list[str]:
        """Return the name of each node number, in the order given. Raises `EntityNotFound` when out of range."""
        return cast(list[str], self.names_of_nodes().take(positions(self._checked(nodes))).to_pylist())

    def _read_nodes(self, ids: Sequence[EntityId]) -> list[Node]:
        numbers = self.numbers(ids)
        rows, columns = positions(numbers), self._nodes.schema.names
        names = self._nodes.column("name").take(rows).to_pylist() if "name" in columns else ids
        types, further = self.node_types.of_nodes(numbers)
        properties = self._node_properties.of_nodes(numbers)
        return [Node(*row) for row in zip(ids, names, types, properties, further, strict=True)]

    def edges(
        self, nodes: NodeArray, direction: Direction = Direction.BOTH, relations: RelationArray | None = None
    ) -> EdgeBatch:
        """Return the edges touching `nodes`, optionally of some relations only. See `EdgeBatch` for the order.

        Raises:
            EntityNotFound: a node number is out of range.
            RelationNotFound: a relation number is out of range.
        """
        numbers = self._checked(nodes)
        if self._arrays.undirected is not None:
            wanted = None if relations is None else self._checked_relations(relations)
            return read_edges(self._arrays, numbers, direction, wanted, self._space)
        return self._edges(numbers, direction, *self._arrays.slots_of(numbers, direction), relations)

    def first_edges(self, nodes: NodeArray, direction: Direction, most: int) -> tuple[EdgeBatch, bool]:
        """Return up to `most` edges of each node, and whether that left any out."""
        numbers = self._checked(nodes)
        if self._arrays.undirected is not None:
            return read_first_edges(self._arrays, numbers, direction, self._space, most)
        starts, stops = self._arrays.slots_of(numbers, direction)
        counts, step = stops - starts, 2 if direction is Direction.BOTH else 1
        kept = np.minimum(counts, most)
        if step > 1:  # outgoing edges come first
            kept[1::2] = np.minimum(kept[1::2], most - kept[0::2])
        return self._edges(numbers, direction, starts, starts + kept, None), bool((kept < counts).any())

    def degrees(self, nodes: NodeArray) -> Int64:
        """Return how many edges touch each of `nodes`: (N,). Raises `EntityNotFound` when out of range."""
        starts, stops = self._arrays.slots_of(self._checked(nodes), Direction.BOTH)
        degrees: Int64 = (stops - starts).reshape(-1, 2).sum(axis=1)
        return degrees

    def capped_edges(
        self,
        nodes: NodeArray,
        direction: Direction = Direction.BOTH,
        relations: RelationArray | None = None,
        *,
        most: int,
    ) -> EdgeBatch:
        """Return the edges touching `nodes`, of each relation of each node at most so many."""
        numbers, arrays = self._checked(nodes), self._arrays
        if arrays.undirected is not None:
            wanted = None if relations is None else self._checked_relations(relations)
            return read_edges(arrays, numbers, direction, wanted, self._space, most)
        starts, stops = arrays.slots_of(numbers, direction)
        if relations is None:
            which, starts, stops = arrays.runs(starts, stops)
        else:
            wanted = self._checked_relations(relations)
            which = np.arange(len(starts)).repeat(len(wanted))
            starts, stops = arrays.narrow(starts, stops, wanted)
        run, slot = slots(starts, np.minimum(stops, starts + most))
        return arrays.batch(numbers, direction, which.take(run), slot, arrays.relation.take(slot), self._space)

    def _edges(
        self, numbers: Int64, direction: Direction, starts: Int64, stops: Int64, relations: RelationArray | None
    ) -> EdgeBatch:
        """Return the edges in segments; a segment is the range of one node in one direction, or a part of it."""
        arrays = self._arrays
        split, wanted = 1, None
        if relations is not None:
            wanted = self._checked_relations(relations)
            if int((stops - starts).sum()) > _BISECT_FROM + 64 * len(starts) * len(wanted):
                starts, stops = arrays.narrow(starts, stops, wanted)
                split, wanted = len(wanted), None
        segment, slot = slots(starts, stops)
        relation = arrays.relation.take(slot)
        if wanted is not None:
            kept = self._among(relation, wanted)
            relation, slot, segment = relation.take(kept), slot.take(kept), segment.take(kept)
        if split > 1:
            segment //= split
        return arrays.batch(numbers, direction, segment, slot, relation, self._space)

    def far_ends(self, nodes: NodeArray, direction: Direction = Direction.BOTH) -> NodeArray:
        """Return the other ends of the edges that touch `nodes`, each once, ascending: (N,) int32.

        Raises:
            EntityNotFound: a node number is out of range.
        """
        return self._arrays.far_ends(self._checked(nodes), direction)

    def edges_among(self, nodes: NodeArray, direction: Direction = Direction.OUT) -> InducedEdges:
        """Return the edges with both ends among `nodes`, by position of the head, relation, tail, edge number.

        Args:
            nodes: (N,) node numbers, distinct, in any order.

        Raises:
            EntityNotFound: a node number is out of range.
        """
        return self._arrays.edges_among(self._checked(nodes))

    def _among(self, relation: RelationArray, wanted: Int64) -> Int64:
        """Return the positions of wanted relations."""
        if len(wanted) == 1:
            return np.flatnonzero(relation == wanted[0])
        allowed = np.zeros(len(self._relations), np.bool_)
        allowed[wanted] = True
        return np.flatnonzero(allowed.take(relation))

    def relation_counts(self, nodes: NodeArray) -> RelationCounts:
        """Return how many edges of each relation touch each of `nodes`. Raises `EntityNotFound` when out of range."""
        arrays, numbers = self._arrays, self._checked(nodes)
        return arrays.relation_counts(numbers) if arrays.undirected is None else count_relations(arrays, numbers)

    def undirected_relations(self) -> RelationArray:
        """Return the relations that have undirected edges, ascending."""
        return self._arrays.undirected_relations()

    def every_node(self) -> NodeArray:
        """Return the numbers of all nodes: (N,)."""
        return np.arange(self.node_count)

    def some_holders(self, most: int) -> Int64:
        """Return up to `most` nodes of each property that few nodes have."""
        return self._node_properties.some_holders(most)

    def edge_properties(self, edges: Int64) -> list[Properties]:
        """Return the properties of each edge number, in the order given. Raises `GraphError` when out of range."""
        numbers = np.asarray(edges, np.int64)
        if len(numbers) and int(numbers.view(np.uint64).max()) >= self.edge_count:
            raise GraphError(f"no edge of number {_first_outside(numbers, self.edge_count)} in {self._name}")
        return read_rows(self._edge_properties, numbers, BATCH_ROWS)

    def sample_edges(self, per_relation: int) -> EdgeBatch:
        """Return up to `per_relation` edges of each relation, spread evenly over its edges, by relation."""
        if (known := self._samples.get(per_relation)) is not None:
            return known
        arrays = self._arrays
        relation = arrays.relation[: self.edge_count]
        edge = sample_edges(relation, len(self._relations), per_relation, self.checksum)
        head = (np.searchsorted(arrays.out_index, edge, "right") - 1).astype(np.int32)
        forward = np.zeros(len(edge), np.bool_)
        place = np.arange(len(edge))
        undirected = None if arrays.undirected is None else arrays.are_undirected(edge, relation[edge])
        sample = EdgeBatch(head, relation[edge], arrays.other[edge], edge, place, forward, self._space, undirected)
        self._samples[per_relation] = sample  # a scan of all edges takes seconds in a large graph
        return sample

    # Additions of this store to the protocol

    @property
    def columnar(self) -> ColumnarGraph:
        """Return the graph itself."""
        return self

    @property
    def node_count(self) -> int:
        """Return the number of nodes."""
        return len(self._ids)

    @property
    def edge_count(self) -> int:
        """Return the number of edges."""
        return self._arrays.edge_count

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

    @property
    def outgoing(self) -> tuple[Int64, RelationArray, NodeArray]:
        """Return all edges without a copy, in the order of their numbers.

        Node n has the edges from bounds[n] up to bounds[n + 1], where bounds is (N + 1,); of each edge there are the
        relation and the tail, (E,) both.
        """
        arrays = self._arrays
        return arrays.out_index, arrays.relation[: self.edge_count], arrays.other[: self.edge_count]

    @property
    def topology(self) -> Arrays:
        """Return all edges in both orders, without a copy."""
        return self._arrays

    @property
    def node_columns(self) -> tuple[pa.RecordBatch, NodeProperties]:
        """Return without a copy the columns name and first type, as far as there are any, and the properties."""
        return self._nodes, self._node_properties

    @property
    def node_ids(self) -> IdColumn:
        """Return the ids of all nodes, in the order of their numbers."""
        return self._ids.ids

    @property
    def edge_columns(self) -> Sequence[pa.RecordBatch]:
        """Return without a copy the properties of edges, by number, in batches; empty without properties."""
        return self._edge_properties

    def degree(self, nodes: NodeArray, direction: Direction = Direction.BOTH) -> Int64:
        """Return how many edges touch each node: (N,). A self-loop counts once in each direction.

        OUT and IN count undirected edges in the orientation in which they are stored.
        """
        starts, stops = self._arrays.slots_of(self._checked(nodes), direction)
        counts = stops - starts
        return counts.reshape(-1, 2).sum(axis=1) if direction is Direction.BOTH else counts

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the graph to `folder`: completely, or not at all.

        Args:
            folder: made with its parents. Files go to a hidden sibling first, which is renamed into place.
            overwrite: replace a graph that is already there. Anything else is never replaced.

        Raises:
            GraphExists: `folder` is taken.
        """
        with new_folder(folder, overwrite, refuse_taken) as partial:
            self.write_into(partial)

    def write_into(self, folder: Path) -> None:
        """Write the graph into an empty folder that is being made: nothing makes it appear complete or not at all."""
        for field in fields(Arrays):
            if (array := getattr(self._arrays, field.name)) is not None:
                with (folder / f"{field.name}.npy").open("wb") as file:
                    np.save(file, array, allow_pickle=False)
        if self.node_ids.spaces is None:
            write_ids(folder, self.node_ids.texts, "name" not in self._nodes.schema.names)
        else:
            self.node_ids.write(folder)
        write_nodes(folder, self._nodes)
        write_properties(folder, self._node_properties.columns(), self.node_count)
        if self._edge_properties:
            with BatchFile(folder / "edge_properties.arrow", self._edge_properties[0].schema) as file:
                for batch in self._edge_properties:
                    file.append(batch)
        write_meta(folder, self.node_count, self.edge_count, self.dropped_duplicates, self.source, self._schema)

    def verify(self) -> None:
        """Read every file of a saved graph and compare its checksum.

        Raises:
            GraphCorrupt: a file has changed.
        """
        if self._folder is not None:
            verify_checksums(self._folder, self._files)

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
        count = len(self._relations)
        if len(wanted) and (wanted[0] < 0 or wanted[-1] >= count):
            raise RelationNotFound(f"number {_first_outside(wanted, count)}", self._name, self._relations)
        return wanted


def _first_outside(numbers: Int64, count: int) -> int:
    return int(numbers[(numbers < 0) | (numbers >= count)][0])
