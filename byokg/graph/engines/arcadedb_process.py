"""The part of the ArcadeDB store that runs in the worker process, beside the Java machine.

Only `byokg.graph.engines.arcadedb` starts it. The Java machine is started once for each process and keeps its heap
limit; when the heap is used up, it ends the process, and the parent reports it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byokg.errors import (
    GraphCorrupt,
    GraphNotFound,
    QueryFailed,
    QueryInvalid,
    QueryRefused,
    QueryTimeout,
    QueryTooLarge,
    StoreUnavailable,
)
from byokg.files import allow_open_files, lock_file
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb_names import BASE, NameMapping, labels_of
from byokg.graph.store import Direction
from byokg.types import Cell, EdgeCell, EntityId, NodeCell, PathCell

DATABASE = "database"
"""Name of ArcadeDB's own folder inside the folder that we build."""

_NODE_BLOCK = 50_000
_EDGE_BLOCK = 500_000
_ANSWER_CHARACTERS = 64 << 20
_DIRECT_MB = 256

_TOO_LARGE = ("OutOfMemoryError", "HeapLimitExceededException", "QueryHeapBudgetExceededException")
_TIMEOUT = ("TimeoutException", "PartialResultTimeoutException", "QueryTerminatedException")
_WRITES = ("QueryNotIdempotentException", "DatabaseIsReadOnlyException", "SecurityException")


class ArcadeEngine:
    """Builds ArcadeDB folders, and reads one at a time."""

    def __init__(self, heap_mb: int, folder: str | None, names: Mapping[str, Any], files: int, types: int) -> None:
        """Keep the settings.

        Args:
            heap_mb: heap limit of the Java machine.
            folder: what to read; None starts with nothing open.
            names: `NameMapping.to_json` of that folder.
            files: descriptors that will be needed.
            types: how many node and edge types there are in that folder.
        """
        self._heap_mb = heap_mb
        self._folder = folder
        self._names = NameMapping.from_json(names) if names else NameMapping()
        self._needed_files = files
        self._types = types
        self._database: Any = None
        self._seconds: float | None = None

    def open(self) -> None:
        """Start the Java machine and open the folder read-only."""
        allow_open_files(self._needed_files)
        from arcadedb_embedded import jvm

        jvm.start_jvm(
            heap_size=f"{self._heap_mb}m",
            jvm_args=[
                f"-XX:MaxDirectMemorySize={_DIRECT_MB}m",
                "-XX:+ExitOnOutOfMemoryError",
                "-XX:+UseSerialGC",  # one query at a time; other collectors keep more threads and memory
                f"-Djava.util.logging.config.file={os.devnull}",  # or it writes logs into the current folder
            ],
        )
        jpype = jvm.jpype
        self._java = jpype.JClass
        self._factory = jpype.JClass("com.arcadedb.database.DatabaseFactory")
        self._mode = jpype.JClass("com.arcadedb.engine.ComponentFile$MODE")
        self._timeout = jpype.JClass("com.arcadedb.GlobalConfiguration").COMMAND_TIMEOUT
        self._long = jpype.JLong
        self._converters: dict[type, Callable[[Any, _CellConverter], Cell]] = {}
        if self._folder is not None:
            self._database = self._open_database(Path(self._folder), self._types)

    def close(self) -> None:
        """Close database and server."""
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def run(
        self, text: str, original: str, parameters: dict[str, Any], timeout_s: float, max_rows: int
    ) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...], bool]:
        """Run one query and return columns, rows, and whether there were more of them.

        Args:
            text: the query as `NameMapping.fit` wrote it.
            original: the query as it was given; tried when the engine does not understand the other.
            parameters: values of its parameters, as plain data.
            timeout_s: when the engine itself is to give up.
            max_rows: how many rows to return.
        """
        if self._seconds != timeout_s:
            self._database.getConfiguration().setValue(self._timeout, self._long(max(1, round(timeout_s * 1000))))
            self._seconds = timeout_s
        try:
            return self._run(text, parameters, timeout_s, max_rows)
        except QueryInvalid:
            if text == original:
                raise
            return self._run(original, parameters, timeout_s, max_rows)

    def _run(
        self, text: str, parameters: dict[str, Any], timeout_s: float, max_rows: int
    ) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...], bool]:
        throwable = self._java("java.lang.Throwable")
        columns: tuple[str, ...] = ()
        rows: list[tuple[Cell, ...]] = []
        truncated = False
        try:
            answer = _CellConverter(self)
            results = self._database.query("opencypher", text, self._java_value(parameters))
            try:
                while results.hasNext():
                    if len(rows) == max_rows:
                        truncated = True
                        break
                    result = results.next()
                    if not rows:
                        columns = tuple(str(name) for name in result.getPropertyNames())
                    rows.append(tuple(answer.cell(result.getProperty(name)) for name in columns))
            finally:
                results.close()
        except throwable as error:
            raise _translated(error, text, timeout_s) from error
        return columns, tuple(rows), truncated

    def switch(self, folder: str, names: Mapping[str, Any], files: int, types: int) -> None:
        """Read another folder from now on."""
        allow_open_files(files)
        database = self._open_database(Path(folder), types)
        self.close()
        self._database, self._names, self._seconds = database, NameMapping.from_json(names), None

    def build(self, graph: str, folder: str, names: Mapping[str, Any], files: int) -> None:
        """Load a saved columnar graph into a new database.

        Args:
            graph: folder of the columnar graph.
            folder: new folder of the database.
            names: names that differ in ArcadeDB.
            files: number of file descriptors needed.
        """
        allow_open_files(files)
        throwable = self._java("java.lang.Throwable")
        try:
            database = self._factory(os.path.join(folder, DATABASE)).create()
            try:
                _Load(database, self._java, ColumnarGraph.open(graph), NameMapping.from_json(names)).run()
            finally:
                database.close()
        except throwable as error:
            raise StoreUnavailable(
                "ArcadeDB", f"loading the graph failed: {error.getClass().getSimpleName()}: {_first_line(error)}"
            ) from error

    def _open_database(self, folder: Path, types: int) -> Any:
        """Open a folder read-only, after recovery from a process that was killed while writing."""
        place = folder / DATABASE
        if not place.is_dir():
            raise GraphNotFound(folder)
        throwable = self._java("java.lang.Throwable")
        try:
            if (place / "database.lck").exists():
                self._recover(place)
            database = self._factory(str(place)).open(self._mode.READ_ONLY)
        except throwable as error:
            causes = list(_causes(error))
            if any("Lock" in str(cause.getClass().getName()) or "locked" in str(cause) for cause in causes):
                reason = f"another process has it open for writing ({_first_line(causes[-1])})"
                raise StoreUnavailable(f"ArcadeDB in {str(folder)!r}", reason) from error
            raise GraphCorrupt(folder, _first_line(causes[-1])) from error
        found = database.getSchema().getTypes().size()
        if found != types:  # a damaged schema is read as an empty one, without a word
            database.close()
            raise GraphCorrupt(folder, f"its schema holds {found} types, {types} were written")
        return database

    def _recover(self, place: Path) -> None:
        """Open once for writing and close, which replays the log; one process at a time does this."""
        with lock_file(place.parent / "recovery.lock", -1):
            if (place / "database.lck").exists():
                self._factory(str(place)).open(self._mode.READ_WRITE).close()

    def _java_value(self, value: Any) -> Any:
        """Convert plain data: None, bool, int, float, str, list, dict."""
        if isinstance(value, bool):
            return self._java("java.lang.Boolean")(value)
        if isinstance(value, int):
            return self._java("java.lang.Long")(value)
        if isinstance(value, float):
            return self._java("java.lang.Double")(value)
        if isinstance(value, str):
            return self._java("java.lang.String")(value)
        if isinstance(value, dict):
            entries = self._java("java.util.LinkedHashMap")()
            for key, entry in value.items():
                entries.put(key, self._java_value(entry))
            return entries
        if isinstance(value, list):
            items = self._java("java.util.ArrayList")()
            for item in value:
                items.add(self._java_value(item))
            return items
        return value


class _CellConverter:
    """Turns Java values into cells; one for each query, because it caches nodes and counts the values read."""

    def __init__(self, engine: ArcadeEngine) -> None:
        names = engine._names
        self._java = engine._java
        self._converters = engine._converters
        self._labels = names.original_labels()
        self._types = {stored: name for name, stored in names.types.items()} | {BASE: names.base_type}
        self._relations = {stored: name for name, stored in names.relations.items()}
        self._node_properties = {stored: name for name, stored in names.node_properties.items()}
        self._edge_properties = {stored: name for name, stored in names.edge_properties.items()}
        self._names = names
        self._ids: dict[str, EntityId] = {}
        self._characters = 0

    def cell(self, value: Any) -> Cell:
        """Convert one value."""
        if value is None:
            return None
        kind = type(value)
        convert = self._converters.get(kind)
        if convert is None:
            convert = self._converters[kind] = self._converter(value)
        return convert(value, self)

    def _converter(self, value: Any) -> Callable[[Any, _CellConverter], Cell]:
        """Find out how to convert values of this class."""
        table: tuple[tuple[str, Callable[[Any, _CellConverter], Cell]], ...] = (
            ("java.lang.String", lambda v, answer: answer._text(v)),
            ("java.lang.Character", lambda v, answer: answer._text(v)),
            ("java.lang.Boolean", lambda v, answer: bool(v)),
            ("java.math.BigInteger", lambda v, answer: int(str(v))),
            ("java.math.BigDecimal", lambda v, answer: float(str(v))),
            ("java.lang.Double", lambda v, answer: float(v)),
            ("java.lang.Float", lambda v, answer: float(str(v))),  # by its digits: 0.1, not 0.10000000149
            ("java.lang.Number", lambda v, answer: int(v)),
            ("com.arcadedb.graph.Vertex", lambda v, answer: answer._node(v)),
            ("com.arcadedb.graph.Edge", lambda v, answer: answer._edge(v)),
            ("com.arcadedb.query.opencypher.traversal.TraversalPath", lambda v, answer: answer._path(v)),
            ("com.arcadedb.query.sql.executor.Result", lambda v, answer: answer._map(v.toMap())),
            ("com.arcadedb.database.Document", lambda v, answer: answer._map(v.propertiesAsMap())),
            ("java.util.Map", lambda v, answer: answer._map(v)),
            ("java.lang.Iterable", lambda v, answer: tuple(answer.cell(item) for item in v)),
        )
        for name, convert in table:
            if isinstance(value, self._java(name)):
                return convert
        if value.getClass().isArray():
            return lambda v, answer: tuple(answer.cell(item) if hasattr(item, "getClass") else item for item in list(v))
        if isinstance(value, self._java("java.util.Date")):
            return lambda v, answer: answer._text(v.toInstant())
        return lambda v, answer: answer._text(v)  # dates, times and durations write themselves in ISO 8601

    def _text(self, value: Any) -> str:
        text = str(value)
        self._characters += len(text)
        if self._characters > _ANSWER_CHARACTERS:
            raise QueryTooLarge(f"the answer has more than {_ANSWER_CHARACTERS >> 20} million characters")
        return self._labels.get(text, text)

    def _map(self, value: Any) -> dict[str, Cell]:
        return {self._text(entry.getKey()): self.cell(entry.getValue()) for entry in value.entrySet()}

    def _node(self, vertex: Any) -> NodeCell:
        properties = self._map(vertex.propertiesAsMap())
        first, *further = (self._types.get(label, label) for label in labels_of(str(vertex.getTypeName())))
        identity = EntityId(str(properties.pop(self._names.id_key, vertex.getIdentity())))
        name = str(properties.pop(self._names.name_key, identity))
        for key in self._names.implied((first, *further)):
            properties.pop(key, None)
        renamed = {self._node_properties.get(key, key): value for key, value in properties.items()}
        return NodeCell(identity, name, first, renamed, tuple(further))  # type: ignore[arg-type]

    def _edge(self, edge: Any) -> EdgeCell:
        properties = self._map(edge.propertiesAsMap())
        renamed = {self._edge_properties.get(key, key): value for key, value in properties.items()}
        relation = str(edge.getTypeName())
        head, tail = self._id(edge.getOutVertex()), self._id(edge.getInVertex())
        return EdgeCell(head, self._relations.get(relation, relation), tail, renamed)  # type: ignore[arg-type]

    def _id(self, vertex: Any) -> EntityId:
        place = str(vertex.getIdentity())
        if place not in self._ids:
            found = vertex.get(self._names.id_key)
            self._ids[place] = EntityId(place if found is None else str(found))
        return self._ids[place]

    def _path(self, path: Any) -> PathCell:
        nodes = tuple(self._node(vertex) for vertex in path.getVertices())
        return PathCell(nodes, tuple(self._edge(edge) for edge in path.getEdges()))


class _Load:
    """Copies a columnar graph into an empty database."""

    def __init__(self, database: Any, java: Callable[[str], Any], graph: ColumnarGraph, names: NameMapping) -> None:
        self._database = database
        self._java = java
        self._graph = graph
        self._names = names
        # Where each node went, in the order of node numbers: bucket and position make up its address.
        self._bucket: npt.NDArray[np.int32] = np.empty(graph.node_count, np.int32)
        self._position: npt.NDArray[np.int64] = np.empty(graph.node_count, np.int64)

    def run(self) -> None:
        """Make types, nodes, edges and indexes."""
        from arcadedb_embedded.graph_batch import GraphBatch

        for setting in ("loadCsv.allowFileUrls", "loadCsv.allowRemoteUrls"):
            self._database.command("sql", f"ALTER DATABASE `arcadedb.opencypher.{setting}` false")
        self._types()
        batch = GraphBatch.create(self._database)
        try:
            self._nodes(batch)
        finally:
            batch.close()
        batch = GraphBatch.create(self._database, expected_edge_count=max(1, self._graph.edge_count))
        try:
            self._edges(batch)
        finally:
            batch.close()
        for field, kind in ((self._names.name_key, "NOTUNIQUE"), (self._names.id_key, "UNIQUE")):
            self._database.command("sql", f"CREATE INDEX ON {BASE} ({field}) {kind}")

    def _types(self) -> None:
        """Create all types in one transaction, each with one file, whose name is ours and thus harmless."""
        schema = self._database.getSchema()
        string = self._java("com.arcadedb.schema.Type").STRING

        def buckets(name: str) -> Any:
            return self._java("java.util.ArrayList")([schema.createBucket(name)])

        self._database.begin()
        base = schema.buildVertexType().withName(BASE).withBuckets(buckets("node")).create()
        for field in (self._names.id_key, self._names.name_key):
            base.createProperty(field, string)
        labels = sorted({self._names.stored_type([label]) for label in self._graph.schema().node_types} - {BASE})
        for number, stored in enumerate([*labels, *self._names.composites]):
            kind = schema.buildVertexType().withName(stored).withBuckets(buckets(f"node{number}"))
            parts = labels_of(stored)
            for parent in parts if len(parts) > 1 else [BASE]:
                kind = kind.withSuperType(parent)
            kind.create()
        for number, relation in enumerate(self._graph.relations):
            stored = self._names.relations.get(relation, relation)
            schema.buildEdgeType().withName(stored).withBuckets(buckets(f"edge{number}")).create()
        self._database.commit()

    def _nodes(self, batch: Any) -> None:
        renamed, same = self._names.node_properties, {"id", "name"} - self._names.own.keys()
        start = 0
        for ids in _blocks(self._graph.entities(), _NODE_BLOCK):
            nodes = self._graph.nodes(ids)
            rows: dict[str, list[dict[str, Any]]] = {}
            numbers: dict[str, list[int]] = {}
            for number, node in enumerate(nodes, start):
                own = {"id": node.id, "name": node.name}
                row: dict[str, Any] = {self._names.id_key: node.id, self._names.name_key: node.name}
                row |= {key: own[key] for key in self._names.implied(node.types)}
                for key, value in node.properties.items():
                    if key not in same:
                        row[renamed.get(key, key)] = value
                label = self._names.stored_type(node.types)
                rows.setdefault(label, []).append(row)
                numbers.setdefault(label, []).append(number)
            for label, group in rows.items():
                places = [place[1:].split(":") for place in batch.create_vertices(label, group)]
                self._bucket[numbers[label]] = [int(bucket) for bucket, _ in places]
                self._position[numbers[label]] = [int(position) for _, position in places]
            start += len(nodes)

    def _edges(self, batch: Any) -> None:
        graph, renamed = self._graph, self._names.edge_properties
        relations = [self._names.relations.get(relation, relation) for relation in graph.relations]
        described = {number for number, relation in enumerate(graph.schema().relations) if relation.properties}
        bounds = graph.degree(np.arange(graph.node_count), Direction.OUT).cumsum()
        first = 0
        while first < graph.node_count:
            done = 0 if first == 0 else int(bounds[first - 1])
            last = max(first + 1, int(np.searchsorted(bounds, done + _EDGE_BLOCK, "right")))
            edges = graph.edges_once(np.arange(first, last))
            order = np.argsort(edges.relation, kind="stable")
            sorted_relations = edges.relation[order].tolist()
            at = 0
            for number, group in groupby(sorted_relations):
                rows = order[at : (at := at + sum(1 for _ in group))]
                properties = None
                if number in described:
                    properties = [
                        {renamed.get(key, key): value for key, value in row.items()}
                        for row in graph.edge_properties(edges.edge[rows])
                    ]
                batch.new_edges(
                    self._places(edges.head[rows]), relations[number], self._places(edges.tail[rows]), properties
                )
            first = last

    def _places(self, nodes: npt.NDArray[np.integer]) -> list[str]:
        """Return the addresses of nodes."""
        pairs = zip(self._bucket[nodes].tolist(), self._position[nodes].tolist(), strict=True)
        return [f"#{bucket}:{position}" for bucket, position in pairs]


def _blocks(items: Iterator[EntityId], size: int) -> Iterator[list[EntityId]]:
    block: list[EntityId] = []
    for item in items:
        block.append(item)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block


def _translated(error: Any, text: str, timeout_s: float) -> QueryFailed:
    """Translate the engine's exception, or one behind it."""
    for cause in _causes(error):
        name = str(cause.getClass().getSimpleName())
        if name in _TIMEOUT:
            return QueryTimeout(timeout_s)
        if name in _TOO_LARGE:
            return QueryTooLarge(f"ArcadeDB: {_first_line(cause)}")
        if name in _WRITES:
            return QueryRefused(text.strip()[:60], 1, 1, "it would change the graph, and queries here only read")
        if name == "StackOverflowError":
            return QueryInvalid("the query is nested too deeply; write it flatter")
    message = _first_line(error)
    if "exceeding the max" in message:
        return QueryTooLarge(message)
    return QueryInvalid(message)


def _causes(error: Any) -> Iterator[Any]:
    """Yield an exception and those behind it."""
    while error is not None:
        yield error
        error = error.getCause()


def _first_line(error: Any) -> str:
    """Return the first line of an exception's message, without Java's class names."""
    message = str(error.getMessage() or error.getClass().getSimpleName())
    return message.strip().splitlines()[0][:500] if message.strip() else str(error.getClass().getSimpleName())
