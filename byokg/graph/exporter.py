"""Bringing any store's graph out: as `nodes.csv` and `edges.csv`, which `import_graph` reads back, or into memory."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from byokg.arrays import Bools, Int64
from byokg.errors import GraphError, GraphExists, QueryTooLarge
from byokg.files import new_folder
from byokg.graph.columnar.assembly import EdgeTable, assemble_parts
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.node_types import read_types, write_types
from byokg.graph.columnar.schema import KINDS, NodeColumns, PropertyColumn, is_date, place, text_column
from byokg.graph.store import EdgeBatch, GraphStore
from byokg.graph.traversal import triples
from byokg.types import Node, Properties, Triple, Value

Progress = Callable[[int, int], None]
"""Progress callback: number of nodes and of edges done, after each batch."""

_BATCH = 4096
"""Nodes read at once, and then the edges out of them."""

_NEEDS_QUOTES = re.compile('[",\\r\\n]|^\\s|\\s$')
_INT64 = range(-(1 << 63), 1 << 63)
_NODE_COLUMNS, _EDGE_COLUMNS = ("id", "name", "type"), ("head", "relation", "tail")


def export_graph(store: GraphStore, out: str | Path, progress: Progress | None = None) -> None:
    """Write a graph as a folder with `nodes.csv` and `edges.csv`.

    Ids, names, all types, relations, properties and parallel edges survive. Nodes come in the store's order and edges
    in the order of their heads, so the same graph gives the same bytes. A property whose values are of several types is
    written as text, and one whose texts are all dates as dates. An empty text is no property. A property named like a
    fixed column (`id`, `name`, `type`, `head`, `relation`, `tail`) gets an underscore behind its name. A graph with
    undirected edges has a further column `directed`, which is `false` for these.

    Args:
        store: the graph; some thousand nodes at a time, so any size goes.
        out: folder to write; appears only when complete.
        progress: called from time to time.

    Raises:
        GraphExists: `out` exists and is not empty.
        GraphError: the place is not writable.
    """
    with new_folder(out, overwrite=False, refuse=refuse_taken) as partial:
        marked = len(store.undirected_relations()) > 0
        fixed = (*_EDGE_COLUMNS, "directed") if marked else _EDGE_COLUMNS
        nodes, edges = _TableWriter(partial / "nodes.csv", _NODE_COLUMNS), _TableWriter(partial / "edges.csv", fixed)
        with nodes, edges:
            for some, leaving in _batches(store, progress):
                for node in some:
                    # Without a name, an import would make one of properties.
                    name = "" if node.name == node.id and not node.properties else node.name
                    nodes.add((node.id, name, write_types(node.types)), node.properties)
                for edge in leaving:
                    mark = "false" if edge.undirected else ""
                    edges.add((edge.head, edge.relation, edge.tail, *([mark] if marked else [])), edge.properties)


def copy_graph(store: GraphStore, progress: Progress | None = None) -> ColumnarGraph:
    """Copy any store's graph into memory: to save it, or to walk it faster than over a network.

    Nothing is lost, but a property whose values are of several types becomes text. All nodes are listed first, so that
    concurrent additions are noticed.

    Args:
        store: the graph; some thousand nodes at a time, with the edges out of them.
        progress: called from time to time.

    Raises:
        GraphError: the graph changed while it was copied.
    """
    nodes = list[Node]()
    for page in store.all_nodes():
        nodes += page
        if progress:
            progress(len(nodes), 0)
    rows = _rows(np.asarray(store.numbers([node.id for node in nodes]), np.int64))
    try:
        codes, edges, undirected = _placed_edges(store, rows, store.all_edges(), progress)
    except QueryTooLarge:  # a server refuses; its edges are read by their nodes
        codes, edges, undirected = _placed_edges(store, rows, GraphStore.all_edges(store), progress)
    order = np.lexsort((edges, codes[:, 2], codes[:, 1], codes[:, 0]))
    codes, undirected = codes[order], undirected[order]
    of_edges = store.edge_properties(edges[order])
    types, further = read_types(text_column([write_types(node.types) for node in nodes]))
    used, first, relation = np.unique(codes[:, 1], return_index=True, return_inverse=True)
    order = np.argsort(first)  # relations are numbered as they are met
    labels = store.relations
    codes[:, 1] = np.argsort(order)[relation]
    parts = assemble_parts(
        NodeColumns(
            text_column([node.id for node in nodes]),
            text_column([node.name for node in nodes]),
            types,
            _columns([node.properties for node in nodes]),
            further=further,
        ),
        [labels[number] for number in used[order].tolist()],
        EdgeTable(
            codes,
            {one.name: place(one.values, one.held()[0], len(of_edges)) for one in _columns(of_edges)},
            undirected=undirected,
        ),
        source={"kind": "copy", "store": store.name},
    )
    return ColumnarGraph(store.name, parts)


def _rows(numbers: Int64) -> Int64:
    """Return the row of each node number; -1 for others."""
    rows = np.full(int(numbers.max(initial=-1)) + 1, -1, np.int64)
    rows[numbers] = np.arange(len(numbers))
    return rows


def _placed_edges(
    store: GraphStore, rows: Int64, batches: Iterator[EdgeBatch], progress: Progress | None
) -> tuple[Int64, Int64, Bools]:
    """Return (E, 3) rows of head, relation and tail, (E,) edge numbers, and True for undirected edges.

    Raises `GraphError` for a node that was not there before.
    """
    codes, edges, undirected = [np.empty((0, 3), np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.bool_)]
    nodes, done = int(np.count_nonzero(rows >= 0)), 0
    for batch in batches:
        head, tail = np.asarray(batch.head, np.int64), np.asarray(batch.tail, np.int64)
        ends = np.concatenate((head, tail))
        if len(ends) and (int(ends.max()) >= len(rows) or int(rows[ends].min()) < 0):
            raise GraphError(f"{store.name} got new nodes while it was copied; copy it again when nobody writes to it")
        codes.append(np.stack((rows[head], np.asarray(batch.relation, np.int64), rows[tail]), axis=1))
        edges.append(batch.edge)
        undirected.append(np.zeros(len(batch), np.bool_) if batch.undirected is None else batch.undirected)
        done += len(batch)
        if progress:
            progress(nodes, done)
    return np.concatenate(codes), np.concatenate(edges), np.concatenate(undirected)


def refuse_taken(folder: Path, overwrite: bool) -> None:
    """Raise `GraphExists` for an export to anything but an empty folder."""
    if folder.exists() and not (folder.is_dir() and next(folder.iterdir(), None) is None):
        raise GraphExists(folder, "something is there already; choose another folder")


def _columns(rows: Sequence[Properties]) -> list[PropertyColumn]:
    """Return each property, of the rows that have it."""
    held: dict[str, tuple[list[int], list[Value]]] = {}
    for row, properties in enumerate(rows):
        for key, value in properties.items():
            places, values = held.setdefault(key, ([], []))
            places.append(row)
            values.append(value)
    columns = []
    for key, (places, values) in held.items():
        kind = _common({"float" if isinstance(value, float) else _kind(value) for value in values})
        stored = KINDS[kind][0]
        textual = kind in ("string", "date")
        column = text_column([_text(value) for value in values]).cast(stored) if textual else pa.array(values, stored)
        columns.append(PropertyColumn(key, column, np.array(places, np.int32)))
    return columns


def _batches(store: GraphStore, progress: Progress | None) -> Iterator[tuple[list[Node], list[Triple]]]:
    """Yield some nodes with the edges out of them, until all have been."""
    entities = store.entities()
    nodes_done, edges_done = 0, 0
    while ids := list(islice(entities, _BATCH)):
        leaving = triples(store, store.edges_once(store.numbers(ids)))
        yield store.nodes(ids), leaving
        nodes_done, edges_done = nodes_done + len(ids), edges_done + len(leaving)
        if progress:
            progress(nodes_done, edges_done)


class _TableWriter:
    """A table whose header is known only after its last row, so that rows wait in a file of their own."""

    def __init__(self, path: Path, fixed: Sequence[str]) -> None:
        self._path, self._fixed = path, fixed
        self._waiting = path.with_suffix(".rows")
        self._kinds: dict[str, set[str]] = {}

    def __enter__(self) -> _TableWriter:
        self._rows = self._waiting.open("w", encoding="utf-8", newline="\n")
        return self

    def add(self, cells: Sequence[str], properties: Properties) -> None:
        """Write one row."""
        for key, value in properties.items():
            self._kinds.setdefault(key, set()).add(_kind(value))
        self._rows.write(json.dumps([*cells, dict(properties)]) + "\n")

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Write the header and then all rows."""
        self._rows.close()
        if error is None:
            keys = list(self._kinds)
            names = free_names(self._fixed, keys)
            kinds = [_common(self._kinds[key]) for key in keys]
            # Without any kind in the header, the importer would find the kinds of texts such as 1979 in the values.
            plain = set(kinds) == {"string"}
            header = [
                f"{name}:string" if plain else _titled(name, kind) for name, kind in zip(names, kinds, strict=True)
            ]
            with (
                self._path.open("w", encoding="utf-8", newline="") as file,
                self._waiting.open(encoding="utf-8") as rows,
            ):
                file.write(csv_line([*self._fixed, *header]))
                for row in rows:
                    *cells, properties = json.loads(row)
                    file.write(csv_line([*cells, *(_text(properties.get(key)) for key in keys)]))
        self._waiting.unlink()


def free_names(fixed: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Return properties' names as columns beside fixed ones: with underscores behind taken names."""
    names = [*fixed]
    for key in keys:
        while key in names:
            key += "_"
        names.append(key)
    return names[len(fixed) :]


def _common(kinds: set[str]) -> str:
    """Return the kind that fits values of all these kinds."""
    if kinds == {"int", "float"}:
        return "float"
    return next(iter(kinds)) if len(kinds) == 1 else "string"


def _kind(value: Value) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if value in _INT64 else "string"
    if isinstance(value, float):
        return "float" if math.isfinite(value) else "string"
    return "date" if is_date(value) else "string"


def _titled(name: str, kind: str) -> str:
    return name if kind == "string" and ":" not in name else f"{name}:{kind}"


def _text(value: Value | None) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def csv_line(cells: Sequence[str]) -> str:
    """Return cells as a line with the quoting of RFC 4180, only as needed."""
    quoted = [f'"{cell.replace(chr(34), chr(34) * 2)}"' if _NEEDS_QUOTES.search(cell) else cell for cell in cells]
    return ",".join(quoted) + "\n"
