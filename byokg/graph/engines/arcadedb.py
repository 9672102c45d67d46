"""Cypher over any graph: a columnar graph, loaded into an embedded ArcadeDB that runs in a process of its own.

    graph.save("films"); build_arcade(graph, "films")        # or: byokg graph build SRC --out films --cypher
    with ArcadeStore.open("films") as store:
        store.run("MATCH (n {name: 'Alien'})-[:directed_by]->(m) RETURN m.name")

`build_arcade` adds a folder `arcadedb` to the folder of the saved graph. Traversal is answered by the columnar arrays,
which are far quicker at it; query text goes to ArcadeDB. How the graph looks to a query:

- Every node has the label `Entity`, and each of its types as a further label.
- Every node has the properties `id` and `name`, both indexed, and its own ones under their own names. If nodes have
  properties `id` or `name` that differ from these, those keep their names, and ids and names of all nodes are
  `node_id` and `display_name`; nodes of types without such a property have them as `id` and `name`, too.
- Relations keep their labels, whatever characters they hold, and edges their properties; parallel edges are kept.
- Dates are text such as `2001-09-30`; `date(n.born).year` reads one.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import numpy.typing as npt

from byokg.errors import GraphCorrupt, GraphError, GraphExists, MissingExtra, OpenFileLimit
from byokg.files import Closing, new_folder, open_file_limits, write_json
from byokg.graph.columnar.folder import ENGINE_FOLDERS, META, refuse_taken
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb_names import BASE, NameMapping
from byokg.graph.engines.worker import Worker
from byokg.graph.guard.guard import check_cypher
from byokg.graph.servers.cypher_schema import plain_parameters
from byokg.graph.store import (
    Direction,
    EdgeBatch,
    NodeArray,
    QueryableGraph,
    QueryLimits,
    RelationArray,
    RelationCounts,
    Rows,
    Schema,
)
from byokg.types import Cell, EntityId, Language, Node, NodeCell, PathCell, Properties

if TYPE_CHECKING:
    from byokg.graph.engines.oxigraph import OxigraphStore
    from byokg.index.vocabulary import Texts

FOLDER = ENGINE_FOLDERS["cypher"]
BUILD = "build.json"
FORMAT = "byokg-arcadedb"
VERSION = 3

_ENGINE = "byokg.graph.engines.arcadedb_process:ArcadeEngine"
_SPARE_FILES = 300
"""Descriptors for the Java machine, its libraries, and Python."""

_BESIDE_HEAP_MB = 768
"""Memory of the worker beside Java's heap: code, buffers, threads, and Python with the rows of one result."""

_START_S = 300.0
"""Opening takes a millisecond or two for each relation, more on a busy machine."""

_BUILDING_MB = 4096
"""The same while it loads a graph, when Python also holds a block of edges and the address of each node."""


_ENV = {"ARCADEDB_JVM_ERROR_FILE": os.devnull, "ARCADEDB_JVM_ARGS": ""}


def build_arcade(graph: ColumnarGraph, out: str | Path, overwrite: bool = False, heap_mb: int = 1024) -> None:
    """Load a graph into ArcadeDB, in the folder where the graph is saved, so that `ArcadeStore.open` finds it.

    Args:
        graph: what to load. It is saved to `out` as well, unless just this graph is there already.
        out: folder of the graph; the database becomes its subfolder `arcadedb`. Either appears only when complete.
        overwrite: replace a graph or database that is already there.
        heap_mb: heap limit of the Java machine that loads.

    Raises:
        GraphExists: `out` holds something else, or this graph with a database.
        OpenFileLimit: the graph has more relations than files may be open.
        MissingExtra: ArcadeDB is not installed.
        StoreUnavailable: the loading process failed; says what it said last.
    """
    out = Path(out).absolute()
    refuse_missing()
    refuse_too_many(graph, names_of(graph))
    if not _holds(out, graph):
        with new_folder(out, overwrite, refuse_taken) as folder:
            graph.write_into(folder)
            _build(folder, folder / FOLDER, heap_mb)
        return
    place = out / FOLDER
    if place.exists() and not overwrite:
        raise GraphExists(place, "a database is already there; pass overwrite=True")
    mark = uuid.uuid4().hex[:12]
    partial, old = out / f".{FOLDER}.partial-{mark}", out / f".{FOLDER}.old-{mark}"
    try:
        _build(out, partial, heap_mb)
        if place.exists():
            place.rename(old)
        partial.rename(place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


class ArcadeStore(QueryableGraph, Closing):
    """A graph that also answers Cypher.

    Threads may share it; their queries take turns, and a query's time limit counts from its turn. Several processes
    may open the same folder. The engine's process is started by the first query, ends with `close`, and is killed and
    started anew when a query does not keep to its limits.
    """

    language: Language = "cypher"
    base_label = BASE
    """The label that every node has in queries."""

    def __init__(
        self,
        graph: ColumnarGraph,
        place: Path | None,
        names: NameMapping,
        heap_mb: int = 1024,
        limits: QueryLimits | None = None,
    ) -> None:
        """Internal; use `open` or `hold`, which locate the database."""
        refuse_missing()
        refuse_too_many(graph, names)
        self.graph = graph
        self._names = names
        self._limits = limits or QueryLimits()
        self._worker = Worker(
            _ENGINE,
            _settings(heap_mb, graph, place, names),
            name=f"ArcadeDB in {str(place)!r}" if place else "ArcadeDB",
            memory_mb=heap_mb + _BESIDE_HEAP_MB,
            start_timeout_s=_START_S,
            env=_ENV,
        )
        self._heap_mb = heap_mb
        self._scratch: Path | None = None
        self._round = 0

    @classmethod
    def open(cls, folder: str | Path, heap_mb: int = 1024, limits: QueryLimits | None = None) -> Self:
        """Open a graph folder to which `build_arcade` has added a database.

        Args:
            folder: the folder of the graph.
            heap_mb: heap limit of the Java machine; a query that needs more ends as `QueryTooLarge`.
            limits: what a query may use unless `run` is told otherwise.

        Raises:
            GraphNotFound: there is no graph in `folder`.
            GraphError: the graph has no database yet.
            GraphCorrupt: graph or database cannot be read, or the database was built from another graph.
        """
        graph = ColumnarGraph.open(folder)
        place = Path(folder).absolute() / FOLDER
        return cls(graph, place, _read_build(place, graph), heap_mb, limits)

    @classmethod
    def hold(cls, graph: ColumnarGraph, heap_mb: int = 1024, limits: QueryLimits | None = None) -> Self:
        """Load a small graph, such as the subgraph around one question, into a temporary folder.

        `replace` then puts another graph in its place within a fraction of a second, as the engine keeps running.
        """
        scratch = Path(tempfile.mkdtemp(prefix="byokg-"))
        try:
            store = cls(graph, None, NameMapping(), heap_mb, limits)
            store._scratch = scratch
            weakref.finalize(store, shutil.rmtree, scratch, ignore_errors=True)
            store.replace(graph)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        return store

    def replace(self, graph: ColumnarGraph) -> None:
        """Let go of the graph that is held, and load another; on an error, keep the one that is held.

        Only for a store made by `hold`, and not while other threads query it: either graph may answer them.
        """
        if self._scratch is None:
            raise GraphError(f"{self.name} was opened from a folder, and is read-only; make a store with hold(graph)")
        names = names_of(graph)
        refuse_too_many(graph, names)
        before, self._round = self._scratch / str(self._round), self._round + 1
        folder = self._scratch / str(self._round)
        graph.save(folder)
        new = _settings(self._heap_mb, graph, folder / FOLDER, names)
        try:
            self._worker.call("build", str(folder), new["folder"], new["names"], new["files"])
            self._worker.call("switch", new["folder"], new["names"], new["files"], new["types"])
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            self._round -= 1
            raise
        self._worker.update(new)
        self.graph, self._names = graph, names
        shutil.rmtree(before, ignore_errors=True)

    def close(self) -> None:
        """End the engine's process, and remove what `hold` wrote."""
        self._worker.close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    @property
    def id_property(self) -> str:
        """Return the property that holds the id of every node in queries."""
        return self._names.id_key

    @property
    def name_key(self) -> str:
        """Return the property that holds the name of every node in queries."""
        return self._names.name_key

    @property
    def notes(self) -> str:
        """Return notes for the author of a query; see `QueryStore`."""
        held = f"{self.id_property} and {self.name_key}"
        return f"In openCypher, every node has the label {BASE}, and the properties {held}.\n"

    @property
    def worker(self) -> Worker:
        """Return the engine's process, for those who watch its memory."""
        return self._worker

    @property
    def memory_mb(self) -> int:
        """Return the memory at which the engine's process is killed; the heap limit is part of it."""
        return self._heap_mb + _BESIDE_HEAP_MB

    # Methods of QueryStore

    def run(self, text: str, parameters: Mapping[str, Cell] | None = None, limits: QueryLimits | None = None) -> Rows:
        """Run one reading query. See `QueryStore.run` for its errors.

        Nodes carry the graph's own ids, so they can be looked up in this store. A result without rows may come without
        columns.
        """
        limits = limits or self._limits
        # One row more than wanted shows whether there are more, and lets the engine stop there.
        checked = check_cypher(text, limits.max_rows + 1).text
        values = plain_parameters(parameters)
        columns, rows, truncated = self._worker.call(
            "run",
            self._names.fit(checked),
            checked,
            values,
            limits.timeout_s,
            limits.max_rows,
            timeout_s=limits.timeout_s,
        )
        return Rows(columns, self._in_order(rows), truncated)

    def _in_order(self, rows: tuple[tuple[Cell, ...], ...]) -> tuple[tuple[Cell, ...], ...]:
        """Give the types of nodes in the order of the graph, which a composite type does not keep."""
        if not len(self.graph.node_types.further):
            return rows
        lost = bool(self._names.base_type)  # a type of that name is implied by any other
        several = list(dict.fromkeys(cell.id for cell in _nodes_in(rows) if lost or cell.further_types))
        ordered = {node.id: node for node in self.graph.nodes(several)}
        return tuple(tuple(_with_types(cell, ordered) for cell in row) for row in rows)

    # Methods of GraphStore: the columnar arrays answer

    @property
    def name(self) -> str:
        """Return the graph's name for messages."""
        return self.graph.name

    @property
    def relations(self) -> Sequence[str]:
        """Return relation labels; a relation number is a position in this list."""
        return self.graph.relations

    @property
    def folder(self) -> Path | None:
        """Return the graph's folder; None for one in memory."""
        return self.graph.folder

    @property
    def checksum(self) -> str | None:
        """Return the checksum of the graph; None for one that is held in memory."""
        return self.graph.checksum

    @property
    def columnar(self) -> ColumnarGraph:
        """Return the graph's arrays."""
        return self.graph

    @property
    def node_count(self) -> int:
        """Return the number of nodes."""
        return self.graph.node_count

    @property
    def edge_count(self) -> int:
        """Return the number of edges."""
        return self.graph.edge_count

    def names_of_nodes(self) -> Texts:
        """Return the name of each node: (N,)."""
        return self.graph.names_of_nodes()

    def names_at(self, nodes: NodeArray) -> list[str]:
        """Return the name of each node number, in the order given."""
        return self.graph.names_at(nodes)

    def schema(self) -> Schema:
        """Return node types and relations, and properties as queries must write them."""
        schema = self.graph.schema()
        nodes, edges = self._names.node_properties, self._names.edge_properties
        if not nodes and not edges:
            return schema
        return replace(
            schema,
            relations=tuple(
                replace(relation, properties=tuple(edges.get(key, key) for key in relation.properties))
                for relation in schema.relations
            ),
            node_properties={
                kind: tuple(nodes.get(key, key) for key in keys) for kind, keys in schema.node_properties.items()
            },
        )

    def entities(self) -> Iterator[EntityId]:
        """Yield each entity once, in node-number order."""
        return self.graph.entities()

    def numbers(self, ids: Collection[EntityId]) -> NodeArray:
        """Return the node number of each id. Raises `EntityNotFound` for an unknown one."""
        return self.graph.numbers(ids)

    def ids(self, nodes: NodeArray) -> list[EntityId]:
        """Return the id of each node number."""
        return self.graph.ids(nodes)

    def nodes(self, ids: Collection[EntityId]) -> list[Node]:
        """Return nodes with name, type and properties, in the order of `ids`. Raises `EntityNotFound`."""
        return self.graph.nodes(ids)

    def edges(
        self, nodes: NodeArray, direction: Direction = Direction.BOTH, relations: RelationArray | None = None
    ) -> EdgeBatch:
        """Return the edges touching `nodes`, optionally of some relations only."""
        return self.graph.edges(nodes, direction, relations)

    def relation_counts(self, nodes: NodeArray) -> RelationCounts:
        """Return how many edges of each relation touch each of `nodes`."""
        return self.graph.relation_counts(nodes)

    def undirected_relations(self) -> RelationArray:
        """Return the relations that have undirected edges, ascending."""
        return self.graph.undirected_relations()

    def edge_properties(self, edges: npt.NDArray[np.int64]) -> list[Properties]:
        """Return the properties of each edge number, in the order given."""
        return self.graph.edge_properties(edges)

    def sample_edges(self, per_relation: int) -> EdgeBatch:
        """Return up to `per_relation` edges of each relation, by relation, spread evenly over the stored ones."""
        return self.graph.sample_edges(per_relation)


class BothEngines(ArcadeStore):
    """A graph with both of its engines: openCypher by ArcadeDB, SPARQL by Oxigraph.

    It is walked in its arrays, as every graph in a folder.
    """

    sparql: OxigraphStore

    @classmethod
    def open(
        cls, folder: str | Path, heap_mb: int = 1024, limits: QueryLimits | None = None, memory_mb: int = 2048
    ) -> Self:
        """Open a graph folder that has both engines.

        Args:
            folder: the folder of the graph.
            heap_mb: heap limit of ArcadeDB's Java machine.
            limits: default limits of queries.
            memory_mb: memory at which Oxigraph's process is stopped.

        Raises:
            GraphNotFound: there is no graph in `folder`.
            GraphError: it lacks an engine.
            GraphCorrupt: a part of it cannot be read.
        """
        from byokg.graph.engines.oxigraph import OxigraphStore

        store = super().open(folder, heap_mb, limits)
        place = Path(folder) / ENGINE_FOLDERS["sparql"]
        if not place.is_dir():
            raise GraphError(f"{store.name} has no SPARQL engine; build one: byokg graph engine {folder} --sparql")
        store.sparql = OxigraphStore(place, memory_mb=memory_mb)
        return store

    @property
    def engines(self) -> Sequence[QueryableGraph]:
        """Return the query engines, openCypher first."""
        return (self, self.sparql)

    def close(self) -> None:
        """End the engines' processes."""
        super().close()
        self.sparql.close()


def names_of(graph: ColumnarGraph) -> NameMapping:
    """Choose the labels and property names of a graph in ArcadeDB."""
    schema = graph.schema()
    return NameMapping.of(
        schema.node_types,
        [relation.name for relation in schema.relations],
        {key for kind in schema.node_properties.values() for key in kind},
        {key for relation in schema.relations for key in relation.properties},
        _own_types(graph),
        graph.node_types.sets,
    )


def _own_types(graph: ColumnarGraph) -> dict[str, tuple[str, ...]]:
    """Return, for `id` and `name`, the types with a property of that name, if it ever differs from id or name."""
    held = graph.schema().node_properties
    left = {key for named in held.values() for key in named} & {"id", "name"}
    found = set[str]()
    entities = graph.entities()
    while left and (block := list(islice(entities, 1 << 15))):
        for node in graph.nodes(block):
            own = {"id": node.id, "name": node.name}
            found |= {key for key in left if node.properties.get(key, own[key]) != own[key]}
        left -= found
    return {key: tuple(type for type, named in held.items() if key in named) for key in sorted(found)}


def refuse_too_many(graph: ColumnarGraph, names: NameMapping) -> None:
    """Raise `OpenFileLimit` when ArcadeDB could not open all of its files for this graph."""
    needed = _files_for(graph, names)
    hard = open_file_limits()[1]
    if hard is not None and needed > hard:
        types = len(graph.schema().node_types) + len(names.composites)
        raise OpenFileLimit(len(graph.relations), types, needed, hard)


def _files_for(graph: ColumnarGraph, names: NameMapping) -> int:
    """Return how many descriptors are needed: a node type has three files and two indexes, a relation one file."""
    types = len(graph.schema().node_types) + len(names.composites) + 1
    return 5 * types + len(graph.relations) + _SPARE_FILES


def _nodes_in(value: Cell | tuple[tuple[Cell, ...], ...]) -> Iterator[NodeCell]:
    """Find every node inside an answer."""
    if isinstance(value, NodeCell):
        yield value
    elif isinstance(value, PathCell):
        yield from value.nodes
    elif isinstance(value, Mapping):
        yield from _nodes_in(tuple(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _nodes_in(item)


def _with_types(cell: Cell, known: Mapping[EntityId, Node]) -> Cell:
    """Return a cell whose nodes have the types of nodes that are known."""
    if isinstance(cell, NodeCell):
        node = known.get(cell.id)
        return cell if node is None else replace(cell, type=node.type, further_types=node.further_types)
    if isinstance(cell, PathCell):
        return replace(cell, nodes=tuple(cast(NodeCell, _with_types(node, known)) for node in cell.nodes))
    if isinstance(cell, Mapping):
        return {key: _with_types(value, known) for key, value in cell.items()}
    return tuple(_with_types(value, known) for value in cell) if isinstance(cell, list | tuple) else cell


def refuse_missing() -> None:
    """Raise `MissingExtra` when ArcadeDB is not installed."""
    if importlib.util.find_spec("arcadedb_embedded") is None:
        raise MissingExtra("arcadedb-embedded", "cypher", "Cypher over an embedded graph")


def _settings(heap_mb: int, graph: ColumnarGraph, place: Path | None, names: NameMapping) -> dict[str, Any]:
    labels = {names.stored_type([label]) for label in graph.schema().node_types} | {BASE, *names.composites}
    return {
        "heap_mb": heap_mb,
        "folder": None if place is None else str(place),
        "names": names.to_json(),
        "files": _files_for(graph, names),
        "types": len(labels) + len(graph.relations),
    }


def _build(saved: Path, place: Path, heap_mb: int) -> None:
    """Load the graph saved in one folder into a database in another, which does not exist yet."""
    graph = ColumnarGraph.open(saved)
    names = names_of(graph)
    worker = Worker(
        _ENGINE, _settings(heap_mb, graph, None, names), "ArcadeDB", memory_mb=heap_mb + _BUILDING_MB, env=_ENV
    )
    try:
        worker.call("build", str(saved), str(place), names.to_json(), _files_for(graph, names))
    finally:
        worker.close()
    content = {
        "format": FORMAT,
        "version": VERSION,
        "engine": importlib.metadata.version("arcadedb-embedded"),
        "graph": graph.checksum,
        "names": names.to_json(),
    }
    write_json(place / BUILD, content)


def _read_build(place: Path, graph: ColumnarGraph) -> NameMapping:
    """Check that a database belongs to the graph, and return its names."""
    try:
        content = json.loads((place / BUILD).read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise GraphError(
            f"the graph in {graph.name!r} has no Cypher database; add one: byokg graph engine {graph.name} --cypher"
        ) from error
    except (OSError, ValueError) as error:
        raise GraphCorrupt(place, f"{BUILD}: {error}") from error
    try:
        if (content["format"], content["version"]) != (FORMAT, VERSION):
            reason = f"{BUILD} says {content['format']} {content['version']}, this byokg reads {FORMAT} {VERSION}"
            raise GraphCorrupt(place, reason)
        if content["graph"] != graph.checksum:
            raise GraphCorrupt(place, "the database was built from another state of the graph")
        return NameMapping.from_json(content["names"])
    except (KeyError, TypeError) as error:
        raise GraphCorrupt(place, f"{BUILD} is damaged: {error!r}") from error


def _holds(folder: Path, graph: ColumnarGraph) -> bool:
    """True if exactly this graph is saved in a folder."""
    if graph.checksum is None or not (folder / META).exists():
        return False
    try:
        return ColumnarGraph.open(folder).checksum == graph.checksum
    except GraphCorrupt:
        return False
