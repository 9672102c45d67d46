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
from pathlib import Path
from typing import Any, cast
from weakref import proxy

import numpy as np

from byokg.arrays import Int64, Integers
from byokg.errors import EntityNotFound, GraphError, RelationNotFound
from byokg.files import new_folder
from byokg.graph.columnar.assembly import GraphParts, number_records, number_triples, open_parts, write_parts
from byokg.graph.columnar.folder import BATCH_ROWS, Arrays, refuse_taken, sample_edges, slots, verify_checksums
from byokg.graph.columnar.node_ids import IdColumn, IdIndex
from byokg.graph.columnar.node_types import NodeTypes
from byokg.graph.columnar.schema import Labels, read_rows
from byokg.graph.columnar.undirected import count_relations, read_edges, read_first_edges
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
)
from byokg.index.vocabulary import Texts, positions
from byokg.types import EntityId, Node, Properties, Triple

_BISECT_FROM = 8192
"""Edges from which a relation filter searches each node's sorted range before it reads whole ranges."""


class ColumnarGraph(GraphStore):
    """A directed, labelled multigraph in flat arrays.

    Make one with `open`, `from_triples`, `from_records`, or `importers.choose.import_graph`. Nothing changes after
    construction, so threads may share it.

    >>> graph = ColumnarGraph.from_triples([("France", "capital", "Paris"), ("Seine", "flows_through", "Paris")])
    >>> sorted(graph.entities()), list(graph.relations)
    (['France', 'Paris', 'Seine'], ['capital', 'flows_through'])
    """

    def __init__(
        self,
        name: str,
        parts: GraphParts,
        folder: Path | None = None,
        files: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._name = name
        self._space = NumberSpace(name)
        self._parts = parts
        self.topology = parts.arrays
        """All edges in both orders."""
        self.node_columns = parts.nodes, parts.node_properties
        """The columns name and first type, as far as there are any, and the properties."""
        self.edge_columns = parts.edge_properties
        """The properties of edges, by number, in batches; empty without properties."""
        self.dropped_duplicates = parts.dropped_duplicates
        """How many exact repetitions of a triple were left out."""
        self.node_types = NodeTypes(parts.nodes, parts.arrays.further_types)
        """The types of all nodes."""
        self._ids = IdIndex(parts.ids, parts.arrays.id_hash, parts.arrays.id_order)
        ours = proxy(self)  # a graph that held itself would keep its files mapped after use
        self._memory = NodeCache(lambda ids: list(ours._read_nodes(ids)), 1 << 15)
        self._relations = Labels(relation.name for relation in parts.schema.relations)
        self._folder = folder
        self._files = dict(files or {})
        self.source = dict(parts.source)
        """Source of the graph: kind, and name, size and SHA-256 of each file."""

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
        return cls(str(folder), *open_parts(Path(folder)))

    @classmethod
    def from_triples(
        cls, triples: Iterable[tuple[str, str, str]], name: str = "memory", undirected: Collection[str] = ()
    ) -> ColumnarGraph:
        """Hold (head, relation, tail) triples in memory; exact repetitions are dropped and counted.

        Edges of the relations in `undirected` lead both ways; one that is listed from either end is repeated.

        Raises:
            GraphError: a text holds half of a surrogate pair.
        """
        return cls(name, number_triples(triples, undirected))

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
        `dropped_duplicates` is the number of repeated triples left out before. Raises as `number_records`.
        """
        return cls(name, number_records(list(nodes), list(edges), source, dropped_duplicates))

    # Methods of GraphStore

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
        return self._parts.schema

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
        return self._parts.nodes.column("name") if "name" in self._parts.nodes.schema.names else self._ids.ids.texts

    def names_at(self, nodes: NodeArray) -> list[str]:
        """Return the name of each node number, in the order given. Raises `EntityNotFound` when out of range."""
        return cast(list[str], self.names_of_nodes().take(positions(self._checked(nodes))).to_pylist())

    def _read_nodes(self, ids: Sequence[EntityId]) -> list[Node]:
        numbers = self.numbers(ids)
        rows, columns = positions(numbers), self._parts.nodes.schema.names
        names = self._parts.nodes.column("name").take(rows).to_pylist() if "name" in columns else ids
        types, further = self.node_types.of_nodes(numbers)
        properties = self._parts.node_properties.of_nodes(numbers)
        return [Node(*row) for row in zip(ids, names, types, properties, further, strict=True)]

    def edges(
        self, nodes: NodeArray, direction: Direction = Direction.BOTH, relations: RelationArray | None = None
    ) -> EdgeBatch:
        """Return the edges touching `nodes`, optionally of some relations only. See `GraphStore.edges`."""
        numbers, wanted = self._checked(nodes), self._checked_relations(relations)
        return _touching_edges(self.topology, numbers, direction, wanted, self._space)

    def first_edges(self, nodes: NodeArray, direction: Direction, most: int) -> tuple[EdgeBatch, bool]:
        """Return up to `most` edges of each node, and whether that left any out."""
        return _first_touching_edges(self.topology, self._checked(nodes), direction, self._space, most)

    def degrees(self, nodes: NodeArray) -> Int64:
        """Return how many edges touch each of `nodes`: (N,). Raises `EntityNotFound` when out of range."""
        return self.degree(nodes)

    def capped_edges(
        self, nodes: NodeArray, direction: Direction, relations: RelationArray | None, most: int
    ) -> EdgeBatch:
        """Return the edges touching `nodes`, of each relation of each node at most so many."""
        numbers, wanted = self._checked(nodes), self._checked_relations(relations)
        return _capped_touching_edges(self.topology, numbers, direction, wanted, self._space, most)

    def far_ends(self, nodes: NodeArray, direction: Direction = Direction.BOTH) -> NodeArray:
        """Return the other ends of the edges that touch `nodes`, each once, ascending: (N,) int32."""
        return self.topology.far_ends(self._checked(nodes), direction)

    def edges_among(self, nodes: NodeArray, direction: Direction = Direction.OUT) -> InducedEdges:
        """Return the edges with both ends among `nodes`, by position of the head, relation, tail, edge number."""
        return self.topology.edges_among(self._checked(nodes))

    def relation_counts(self, nodes: NodeArray) -> RelationCounts:
        """Return how many edges of each relation touch each of `nodes`. Raises `EntityNotFound` when out of range."""
        arrays, numbers = self.topology, self._checked(nodes)
        return arrays.relation_counts(numbers) if arrays.undirected is None else count_relations(arrays, numbers)

    def undirected_relations(self) -> RelationArray:
        """Return the relations that have undirected edges, ascending."""
        return self.topology.undirected_relations()

    def every_node(self) -> NodeArray:
        """Return the numbers of all nodes: (N,)."""
        return np.arange(self.node_count)

    def some_holders(self, most: int) -> Int64:
        """Return up to `most` nodes of each property that few nodes have."""
        return self._parts.node_properties.some_holders(most)

    def edge_properties(self, edges: Int64) -> list[Properties]:
        """Return the properties of each edge number, in the order given. Raises `GraphError` when out of range."""
        numbers = np.asarray(edges, np.int64)
        if len(numbers) and int(numbers.view(np.uint64).max()) >= self.edge_count:
            raise GraphError(f"no edge of number {_first_outside(numbers, self.edge_count)} in {self._name}")
        return read_rows(self._parts.edge_properties, numbers, BATCH_ROWS)

    def sample_edges(self, per_relation: int) -> EdgeBatch:
        """Return up to `per_relation` edges of each relation, spread evenly over its edges, by relation."""
        if (known := self._samples.get(per_relation)) is not None:
            return known
        edge = sample_edges(self.outgoing[1], len(self._relations), per_relation, self.checksum)
        sample = _numbered_edges(self.topology, edge, self._space)
        self._samples[per_relation] = sample  # a scan of all edges takes seconds in a large graph
        return sample

    # Further methods of this store

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
        return self.topology.edge_count

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
        """Return without a copy bounds, (N + 1,), relations and tails, (E,): n has edges bounds[n] to bounds[n + 1]."""
        arrays = self.topology
        return arrays.out_index, arrays.relation[: self.edge_count], arrays.other[: self.edge_count]

    @property
    def node_ids(self) -> IdColumn:
        """Return the ids of all nodes, in the order of their numbers."""
        return self._ids.ids

    def degree(self, nodes: NodeArray, direction: Direction = Direction.BOTH) -> Int64:
        """Return how many edges touch each node: (N,). A self-loop counts once in each direction.

        OUT and IN count undirected edges in the orientation in which they are stored.
        """
        starts, stops = self.topology.slots_of(self._checked(nodes), direction)
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
        write_parts(folder, self._parts, self._ids.ids)

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

    def _checked_relations(self, relations: RelationArray | None) -> Int64 | None:
        """Return relation numbers ascending and distinct; None for None."""
        if relations is None:
            return None
        wanted = np.asarray(relations, np.int64)
        if len(wanted) > 1:
            wanted = np.unique(wanted)
        count = len(self._relations)
        if len(wanted) and (wanted[0] < 0 or wanted[-1] >= count):
            raise RelationNotFound(f"number {_first_outside(wanted, count)}", self._name, self._relations)
        return wanted


def _first_outside(numbers: Int64, count: int) -> int:
    return int(numbers[(numbers < 0) | (numbers >= count)][0])


# Edges of nodes


def _touching_edges(
    arrays: Arrays, nodes: Int64, direction: Direction, wanted: Int64 | None, space: NumberSpace
) -> EdgeBatch:
    """Return the edges touching nodes, of some relations only or of all; `wanted` is ascending and distinct."""
    if arrays.undirected is not None:
        return read_edges(arrays, nodes, direction, wanted, space)
    starts, stops = arrays.slots_of(nodes, direction)
    split = 1
    if wanted is not None and int((stops - starts).sum()) > _BISECT_FROM + 64 * len(starts) * len(wanted):
        starts, stops = arrays.narrow(starts, stops, wanted)
        split, wanted = len(wanted), None
    segment, slot = slots(starts, stops)
    relation = arrays.relation.take(slot)
    if wanted is not None:
        kept = np.flatnonzero(relation == wanted[0]) if len(wanted) == 1 else _places_of(relation, wanted)
        relation, slot, segment = relation.take(kept), slot.take(kept), segment.take(kept)
    if split > 1:
        segment //= split
    return arrays.batch(nodes, direction, segment, slot, relation, space)


def _first_touching_edges(
    arrays: Arrays, nodes: Int64, direction: Direction, space: NumberSpace, most: int
) -> tuple[EdgeBatch, bool]:
    """Return up to `most` edges of each node, and whether that left any out."""
    if arrays.undirected is not None:
        return read_first_edges(arrays, nodes, direction, space, most)
    starts, stops = arrays.slots_of(nodes, direction)
    counts, step = stops - starts, 2 if direction is Direction.BOTH else 1
    kept = np.minimum(counts, most)
    if step > 1:  # outgoing edges come first
        kept[1::2] = np.minimum(kept[1::2], most - kept[0::2])
    segment, slot = slots(starts, starts + kept)
    batch = arrays.batch(nodes, direction, segment, slot, arrays.relation.take(slot), space)
    return batch, bool((kept < counts).any())


def _capped_touching_edges(
    arrays: Arrays, nodes: Int64, direction: Direction, wanted: Int64 | None, space: NumberSpace, most: int
) -> EdgeBatch:
    """Return the edges touching nodes, of each relation of each node at most so many."""
    if arrays.undirected is not None:
        return read_edges(arrays, nodes, direction, wanted, space, most)
    starts, stops = arrays.slots_of(nodes, direction)
    if wanted is None:
        which, starts, stops = arrays.runs(starts, stops)
    else:
        which = np.arange(len(starts)).repeat(len(wanted))
        starts, stops = arrays.narrow(starts, stops, wanted)
    run, slot = slots(starts, np.minimum(stops, starts + most))
    return arrays.batch(nodes, direction, which.take(run), slot, arrays.relation.take(slot), space)


def _places_of(relation: Integers, wanted: Int64) -> Int64:
    """Return the places of wanted relations."""
    allowed = np.zeros(int(max(relation.max(initial=0), wanted.max(initial=0))) + 1, np.bool_)
    allowed[wanted] = True
    return np.flatnonzero(allowed.take(relation))


def _numbered_edges(arrays: Arrays, edge: Int64, space: NumberSpace) -> EdgeBatch:
    """Return edges by their numbers, in stored orientation; `origin` counts them."""
    relation = arrays.relation[edge]
    head = (np.searchsorted(arrays.out_index, edge, "right") - 1).astype(np.int32)
    undirected = None if arrays.undirected is None else arrays.are_undirected(edge, relation)
    forward = np.zeros(len(edge), np.bool_)
    return EdgeBatch(head, relation, arrays.other[edge], edge, np.arange(len(edge)), forward, space, undirected)
