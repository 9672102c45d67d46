"""The indexes over the property values of a graph, of nodes and of edges: in the graph's folder, or made in memory.

`values/` and `edge_values/` belong to the graph as it was when they were built: they hold the graph's checksum.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Int64, values_of
from byokg.errors import ConfigError, GraphCorrupt, GraphError, QueryTimeout
from byokg.files import new_folder, user_cache
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.name_indexes import build_names, numbered_nodes
from byokg.graph.property_view import without_values
from byokg.graph.read_cache import digest
from byokg.graph.store import ALL_VALUES, GraphStore, NodeArray
from byokg.index.names import NameIndex
from byokg.index.values import MOST_VALUES, IndexedProperty, ValueColumn, ValueIndex, kind_of
from byokg.types import Value

_LOG = logging.getLogger(__name__)

VALUE_FOLDERS = ("values", "edge_values")
"""Folders of the values of nodes and of edges."""
_PREVIEW, _READ = 100, 20_000
"""Distinct values of a property that are read from a server first, and at most, unless they are long texts."""
_PATIENCE_S = 120.0
"""Seconds after which no further property of a server is read."""
_MOST = 20_000_000
"""Largest graph, in nodes, whose values are indexed without being asked."""
_HOLDERS = 1000
"""Nodes with a value that are returned at most, by default."""


def value_index(store: GraphStore, of_edges: bool = False) -> ValueIndex:
    """Return the index over the values of a graph's properties: the one in its folder, else one made in memory.

    The values of a graph on a server are read once, up to 20,000 of each property and for two minutes in all, and kept
    in the user's cache as long as its schema stays the same, or until `keep_values` reads them anew. Those of a read
    that was cut short serve the store that read them alone. The index of a graph of more than 20 million nodes, or
    edges, is empty until it is saved.

    Args:
        store: the graph.
        of_edges: index properties of edges, with relations in place of node types.

    Raises:
        GraphCorrupt: the saved index is damaged, or belongs to another graph.
        QueryFailed, StoreUnavailable: errors of the store.
    """
    store = without_values(store)
    if store.remote:
        found = values_at_hand(store, of_edges)
        return keep_values(store, of_edges) if found is None else found
    if store.folder is not None and (folder := store.folder / VALUE_FOLDERS[of_edges]).exists():
        return ValueIndex.open(folder, store.checksum)
    graph = store.columnar
    if graph is None:
        return ValueIndex.build([] if of_edges else list(_collected(store)))
    size, held = (graph.edge_count, graph.edge_columns) if of_edges else (graph.node_count, graph.node_columns[1])
    if size > _MOST and len(held):
        command = f"byokg graph names {graph.folder or 'DIR'}"
        _LOG.warning("%s: values of properties are not found; index them once with: %s", store.name, command)
        return ValueIndex.build([])
    made = _MADE[of_edges]
    with _LOCK:
        if graph not in made:
            made[graph] = ValueIndex.build(list(_edge_columns(graph) if of_edges else _columns(graph)))
        return made[graph]


_LOCK = Lock()
_MADE: tuple[WeakKeyDictionary[GraphStore, ValueIndex], ...] = (WeakKeyDictionary(), WeakKeyDictionary())
"""Indexes made in memory or read from a server, one for each graph: of nodes, and of edges."""


def _places(store: GraphStore, of_edges: bool) -> list[tuple[str, str, int]]:
    """Return the types, or relations, of a graph with each of their properties and their number of nodes, or edges."""
    schema = store.schema()
    sizes = {one.name: one.count for one in schema.relations} if of_edges else schema.node_types
    names = {one.name: one.properties for one in schema.relations} if of_edges else schema.node_properties
    return [(of, key, sizes.get(of, 0)) for of in names for key in names[of] if not key.endswith(ALL_VALUES)]


def values_at_hand(store: GraphStore, of_edges: bool = False) -> ValueIndex | None:
    """Return the index over the values of a graph, if it has properties and the index costs no scan of a server."""
    store = without_values(store)
    if store.remote:
        return _MADE[of_edges][store] if store in _MADE[of_edges] else kept_values(store, of_edges)
    return value_index(store, of_edges) if _places(store, of_edges) else None


def kept_values(store: GraphStore, of_edges: bool = False) -> ValueIndex | None:
    """Return the cached values of a graph on a server; None if there are none, or its schema was another one then."""
    folder, made_for = _kept_for(store, of_edges)
    try:
        return ValueIndex.open(folder, made_for) if folder.exists() else None
    except GraphCorrupt:
        return None


def keep_values(store: GraphStore, of_edges: bool = False) -> ValueIndex:
    """Read the values of a graph on a server, and keep an index of them in the user's cache if all properties were
    read.

    Raises:
        QueryFailed, StoreUnavailable: errors of the store.
    """
    store = without_values(store)
    if _places(store, of_edges):
        whose = "edges" if of_edges else "nodes"
        again = "(byokg graph names ADDRESS reads them anew)"
        _LOG.warning("%s: reading the values of properties of %s, once %s", store.name, whose, again)
    unread: list[str] = []
    index = _MADE[of_edges][store] = ValueIndex.build(list(_read(store, of_edges, unread.append)))
    folder, made_for = _kept_for(store, of_edges)
    with suppress(OSError, GraphError):
        if unread:
            return index
        folder.parent.mkdir(parents=True, exist_ok=True)
        with new_folder(folder, overwrite=True, refuse=None) as partial:
            index.write(partial, made_for)
    return index


def _kept_for(store: GraphStore, of_edges: bool) -> tuple[Path, str]:
    """Return the folder of a server graph's values, and the mark of its schema."""
    folder = user_cache() / VALUE_FOLDERS[of_edges] / store.names_key[:24]
    return folder, digest(store.names_key, asdict(store.schema()))


def _read(store: GraphStore, of_edges: bool, leave_out: Callable[[str], object]) -> Iterator[ValueColumn]:
    """Yield the most frequent values of each property of a graph on a server.

    Properties that time out have none, nor do those that are left when time is up; `leave_out` receives each.
    """
    until = time.monotonic() + _PATIENCE_S
    late = False
    read = store.distinct_edge_values if of_edges else store.distinct_values
    for type, name, size in _places(store, of_edges):
        if time.monotonic() > until:
            if not late:
                _LOG.warning("%s: the values from %s.%s on are not indexed: time is up", store.name, type, name)
            late = True
            leave_out(f"{type}.{name}")
            continue
        try:
            found, whole = read(type, name, _PREVIEW)
            column = _counted(type, name, dict(found), size, of_edges)
            if not whole and kind_of(column.values, column.counts) is not None:
                found, whole = read(type, name, _READ)
                column = _counted(type, name, dict(found), size, of_edges)
        except QueryTimeout as error:
            _LOG.warning("%s: the values of %s.%s are not indexed: %s", store.name, type, name, error)
            leave_out(f"{type}.{name}")
            continue
        if found:
            yield replace(column, whole=whole)


def build_values(graph: ColumnarGraph, most: int = MOST_VALUES) -> tuple[ValueIndex, ValueIndex]:
    """Index the values of a saved graph, and write them into the graph's folder: completely, or not at all.

    An index that is there already is replaced. A graph without properties gets no file. Values of edges have an index
    of their own, of as many entries as those of nodes leave.

    Returns:
        The values of nodes, and those of edges.

    Raises:
        ConfigError: the graph lies in no folder.
        GraphError: the folder cannot be written.
    """
    if graph.folder is None:
        raise ConfigError(f"{graph.name} is in memory only; save it and open the folder, or use value_index")
    index = ValueIndex.build(list(_columns(graph)), most)
    of_edges = ValueIndex.build(list(_edge_columns(graph)), most - len(index))
    for name, made in zip(VALUE_FOLDERS, (index, of_edges), strict=True):
        if made.properties():
            with new_folder(graph.folder / name, overwrite=True, refuse=None) as partial:
                made.write(partial, graph.checksum or "")
    return index, of_edges


def build_indexes(graph: ColumnarGraph, aliases: Sequence[str] = ()) -> tuple[NameIndex, ValueIndex, ValueIndex]:
    """Index the names and the values of a saved graph in its folder; see `build_names` and `build_values`."""
    return build_names(graph, aliases), *build_values(graph)


@dataclass(frozen=True)
class ValueFacts:
    """A saved index of values whose files were found to agree with their checksums."""

    properties: tuple[IndexedProperty, ...]
    entries: int
    """Distinct values of a property of a type."""
    bytes: int
    """Size of the files."""


def verify_value_index(graph: ColumnarGraph) -> ValueFacts | None:
    """Compare the checksums of a graph's indexes of values; None if it has no index. Raises `GraphCorrupt`."""
    folders = [] if graph.folder is None else [graph.folder / name for name in VALUE_FOLDERS]
    found = [folder for folder in folders if folder.exists()]
    size = sum(ValueIndex.verify(folder, graph.checksum) for folder in found)
    return _facts([ValueIndex.open(folder, graph.checksum) for folder in found], size)


def cached_value_facts(store: GraphStore) -> ValueFacts | None:
    """Return the cached values of a graph on a server; None if it has none. Their size is not measured: 0 bytes."""
    return _facts([one for way in (False, True) if (one := values_at_hand(store, way)) is not None], 0)


def _facts(indexes: Sequence[ValueIndex], size: int) -> ValueFacts | None:
    properties = tuple(one for index in indexes for one in index.properties())
    return ValueFacts(properties, sum(map(len, indexes)), size) if indexes else None


def nodes_holding(store: GraphStore, type: str, property: str, value: Value, most: int = _HOLDERS) -> NodeArray:
    """Return the nodes of a type with a value of a property: up to `most` numbers, ascending.

    Args:
        store: the graph.
        type: a node type; empty for nodes without one.
        property: name of the property.
        value: as stored.
        most: nodes at most.
    """
    store = without_values(store)
    graph = store.columnar
    if graph is None:
        return store.holders(type, property, value, most)
    _, properties = graph.node_columns
    column = properties.column(property)
    sought = None if column is None else _comparable(value, column.values.type)
    if column is None or sought is None:
        return np.empty(0, np.int64)
    rows = np.flatnonzero(pc.equal(column.values, sought).fill_null(False).to_numpy(zero_copy_only=False))
    held = rows if column.nodes is None else column.nodes[rows].astype(np.int64)
    codes, places = graph.node_types.codes_of(held)
    labels = graph.node_types.labels or ("",)
    code = labels.index(type) if type in labels else -1
    found: Int64 = held[np.unique(places[codes == code])]
    return found[:most]


def _comparable(value: Value, kind: pa.DataType) -> pa.Scalar | None:
    """Return a value that can be compared with a column; None if its type has no such value, such as `abc` of int64."""
    try:
        if isinstance(value, str):
            return pa.scalar(value, pa.large_string()).cast(kind)
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        fits = pa.types.is_boolean(kind) if isinstance(value, bool) else number
        return pa.scalar(value) if fits else None
    except (pa.ArrowInvalid, OverflowError):
        return None


def _columns(graph: ColumnarGraph) -> Iterator[ValueColumn]:
    """Yield the distinct values of each property of each type of a graph in columns."""
    _, properties = graph.node_columns
    kinds = graph.node_types
    sizes = graph.schema().node_types
    for column in properties.columns():
        if column.name.endswith(ALL_VALUES):
            continue
        held, values = column.held()
        type_codes, rows = kinds.codes_of(held)
        for label, distinct, counts in _distinct(values, type_codes, rows):
            type = kinds.labels[label] if kinds.labels else ""
            yield ValueColumn(type, column.name, distinct, counts, sizes.get(type, len(held)))


def _edge_columns(graph: ColumnarGraph) -> Iterator[ValueColumn]:
    """Yield the distinct values of each property of each relation of a graph in columns."""
    relations = graph.schema().relations
    table = pa.Table.from_batches(graph.edge_columns) if graph.edge_columns else pa.table({})
    for key in table.schema.names:
        if key.endswith(ALL_VALUES):
            continue
        column = table.column(key)
        kept = values_of(column.is_valid().combine_chunks())
        codes = graph.outgoing[1][kept].astype(np.int64)
        coded = column.drop_null().dictionary_encode().combine_chunks()  # texts of over 2 GiB fit into no single array
        for label, distinct, counts in _distinct(coded, codes, np.arange(len(codes))):
            one = relations[label]
            yield ValueColumn(one.name, key, distinct, counts, one.count, edge=True)


def _distinct(values: pa.Array, owners: Int64, rows: Int64) -> Iterator[tuple[int, pa.Array, Int64]]:
    """Yield each owner, ascending, with its distinct values and their counts; `owners[n]` has `values[rows[n]]`."""
    coded = values.dictionary_encode()
    codes, size = coded.indices.to_numpy().astype(np.int64), len(coded.dictionary)
    pairs, counts = np.unique(owners * size + codes[rows], return_counts=True)
    found, starts = np.unique(pairs // max(size, 1), return_index=True)
    for owner, start, stop in zip(found.tolist(), starts.tolist(), [*starts[1:].tolist(), len(pairs)], strict=True):
        yield owner, coded.dictionary.take(pa.array(pairs[start:stop] % size)), counts[start:stop]


def _collected(store: GraphStore) -> Iterator[ValueColumn]:
    """Yield the distinct values of each property of each type of any graph, by a look at every node."""
    found: dict[tuple[str, str], Counter[Value]] = {}
    sizes: Counter[str] = Counter()
    for _, node in numbered_nodes(store):
        for type in node.types or ("",):
            sizes[type] += 1
            for key, value in node.properties.items():
                if not key.endswith(ALL_VALUES):
                    found.setdefault((type, key), Counter())[value] += 1
    for (type, key), counted in found.items():
        yield _counted(type, key, counted, sizes[type])


def _counted(type: str, key: str, counted: Mapping[Value, int], of: int, edge: bool = False) -> ValueColumn:
    """Return a column of values of any kinds; of several kinds as text."""
    kinds = {bool if isinstance(value, bool) else value.__class__ for value in counted}
    stored = list(counted) if len(kinds) == 1 else [str(value) for value in counted]
    values = pa.array(stored) if stored and not isinstance(stored[0], str) else pa.array(stored, pa.large_string())
    return ValueColumn(type, key, values, np.fromiter(counted.values(), np.int64, len(counted)), of, edge=edge)
