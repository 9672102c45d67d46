"""The parts of a columnar graph: assembled from numbered edges, mapped from a folder, and written into one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from tokenize import TokenError
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from byokg.arrays import Bools, Integers
from byokg.errors import EntityNotFound, GraphCorrupt, GraphError, GraphNotFound
from byokg.graph.columnar.folder import (
    NO_COLUMNS,
    NODES,
    Arrays,
    BatchFile,
    edge_width,
    map_array,
    map_batches,
    read_meta,
    relation_width,
    stamp,
    write_meta,
    write_nodes,
)
from byokg.graph.columnar.node_ids import IdColumn, IdIndex, write_ids
from byokg.graph.columnar.node_properties import NodeProperties, write_properties
from byokg.graph.columnar.node_types import read_types, write_types
from byokg.graph.columnar.schema import (
    NodeColumns,
    count_schema,
    of_all_nodes,
    property_batch,
    property_columns,
    text_column,
)
from byokg.graph.columnar.undirected import lower_end_first, undirected_arrays
from byokg.graph.sorted_ids import incoming_order, ranges, sort_edges
from byokg.graph.store import Schema, schema_from_json
from byokg.types import Node, Triple

_EDGE_PROPERTIES = "edge_properties.arrow"

_TRIES = 20
"""How often a folder is opened that is replaced by another process meanwhile."""


@dataclass(frozen=True)
class GraphParts:
    """Content of a graph of N nodes and E edges."""

    arrays: Arrays
    ids: IdColumn
    nodes: pa.RecordBatch
    """(N,) names and first types, as far as there are any."""
    node_properties: NodeProperties
    edge_properties: Sequence[pa.RecordBatch]
    """E rows in all; empty without properties."""
    schema: Schema
    source: Mapping[str, Any]
    """Origin of the graph."""
    dropped_duplicates: int = 0
    """Exact repetitions of a triple that were left out."""


_Mapped: TypeAlias = tuple[GraphParts, Path, Mapping[str, Mapping[str, Any]]]


class EdgeTable(NamedTuple):
    """E edges in any order."""

    triples: Integers
    """(E, 3) head, relation and tail numbers."""
    properties: Mapping[str, pa.Array] | None = None
    """Columns of E values, null if an edge lacks the property."""
    apart: Integers | None = None
    """(E,) edges of the same triple that differ in this are no repetitions; the first of those equal in this too stays.
    Needed with `distinct` if edges have properties."""
    undirected: Bools | None = None
    """(E,) True for undirected edges; with `distinct`, listing one from its other end repeats it."""


def assemble_parts(
    nodes: NodeColumns,
    relations: Sequence[str],
    edges: EdgeTable,
    source: Mapping[str, Any],
    distinct: bool = False,
    dropped_duplicates: int = 0,
) -> GraphParts:
    """Sort and index edges whose nodes and relations are already numbered.

    Args:
        nodes: N nodes; a node's number is its position.
        relations: R relation labels, all different.
        edges: the edges.
        source: origin of the graph.
        distinct: leave out repetitions of the same triple.
        dropped_duplicates: repetitions that were left out before.

    Raises:
        GraphError: a relation label is no text that UTF-8 can hold.
    """
    text_column(relations)
    triples, properties, apart, undirected = edges
    flags = undirected if undirected is not None and undirected.any() else None
    if flags is not None and distinct:
        triples = lower_end_first(triples, flags)
    head, relation, tail, flags, order = sort_edges(triples[:, 0], triples[:, 1], triples[:, 2], flags, apart, distinct)
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
    schema = count_schema(arrays.edge_columns, len(index), *counted, relations, nodes.further)
    dropped_duplicates += len(triples) - len(head)
    return GraphParts(arrays, index.ids, batch, of_nodes, of_edges, schema, source, dropped_duplicates)


def number_triples(triples: Iterable[tuple[str, str, str]], undirected: Collection[str]) -> GraphParts:
    """Number the ends and labels of triples as they come, and leave out repetitions."""
    ids: dict[str, int] = {}
    labels: dict[str, int] = {}
    codes = [
        (ids.setdefault(head, len(ids)), labels.setdefault(label, len(labels)), ids.setdefault(tail, len(ids)))
        for head, label, tail in triples
    ]
    numbers = np.array(codes, np.int64).reshape(-1, 3)
    both_ways = np.array([label in undirected for label in labels], np.bool_)
    edges = EdgeTable(numbers, undirected=both_ways.take(numbers[:, 1]))
    return assemble_parts(
        NodeColumns(text_column(list(ids))), list(labels), edges, {"kind": "triples in memory"}, distinct=True
    )


def number_records(
    nodes: Sequence[Node], edges: Sequence[Triple], source: Mapping[str, Any] | None, dropped_duplicates: int
) -> GraphParts:
    """Number nodes and edges as they come.

    Raises:
        EntityNotFound: an edge ends at a node that is not among `nodes`.
        GraphError: an id occurs twice, one property holds values of several types, or a text is no UTF-8.
    """
    ids: dict[str, int] = {}
    for number, node in enumerate(nodes):
        if ids.setdefault(node.id, number) != number:
            raise GraphError(f"node id {node.id!r} occurs twice in the records; give each node its own id")
    labels: dict[str, int] = {}
    codes = np.empty((len(edges), 3), np.int64)
    for row, edge in enumerate(edges):
        for end in (edge.head, edge.tail):
            if end not in ids:
                raise EntityNotFound(end, "the nodes given to from_records")
        codes[row] = ids[edge.head], labels.setdefault(edge.relation, len(labels)), ids[edge.tail]
    types, further = read_types(text_column([write_types(node.types) for node in nodes]))
    described = NodeColumns(
        ids=text_column([node.id for node in nodes]),
        names=text_column([node.name for node in nodes]),
        types=types,
        properties=of_all_nodes(property_columns([node.properties for node in nodes])),
        further=further,
    )
    table = EdgeTable(
        codes,
        property_columns([edge.properties for edge in edges]),
        undirected=np.array([edge.undirected for edge in edges], np.bool_),
    )
    return assemble_parts(
        described, list(labels), table, source or {"kind": "records in memory"}, dropped_duplicates=dropped_duplicates
    )


def open_parts(folder: Path) -> _Mapped:
    """Map the files of a folder, which another process may replace meanwhile.

    Returns:
        The parts, the folder, and its files with their checksums.

    Raises:
        GraphNotFound: there is no graph in `folder`.
        GraphCorrupt: files are missing, cut short, or of another format.
    """
    for _ in range(_TRIES):
        before = stamp(folder)
        try:
            mapped = _map_parts(folder)
        except (GraphCorrupt, GraphNotFound):
            if stamp(folder) == before:
                raise
        else:
            if stamp(folder) == before:
                return mapped
    raise GraphCorrupt(folder, "another process keeps replacing it")


def _map_parts(folder: Path) -> _Mapped:
    meta = read_meta(folder)
    files = meta["files"]
    try:
        names = [field.name for field in fields(Arrays) if field.default is MISSING or f"{field.name}.npy" in files]
        arrays = Arrays(**{name: map_array(folder / f"{name}.npy") for name in names})
        arrays.check(meta["nodes"], meta["edges"])
        parts = GraphParts(
            arrays=arrays,
            ids=IdColumn.map(folder, files, meta["nodes"]),
            nodes=map_batches(folder / NODES)[0] if NODES in files else NO_COLUMNS,
            node_properties=NodeProperties.map(folder, files),
            edge_properties=map_batches(folder / _EDGE_PROPERTIES) if _EDGE_PROPERTIES in files else (),
            schema=schema_from_json(meta["schema"]),
            source=meta["source"],
            dropped_duplicates=meta["dropped_duplicates"],
        )
    # numpy reports a faulty header of a .npy file with the errors of Python's own parser and tokenizer.
    except (OSError, ValueError, LookupError, TypeError, SyntaxError, TokenError, pa.ArrowException) as error:
        raise GraphCorrupt(folder, str(error)) from error
    return parts, folder, files


def write_parts(folder: Path, parts: GraphParts, ids: IdColumn) -> None:
    """Write a graph into an empty folder."""
    for field in fields(Arrays):
        if (array := getattr(parts.arrays, field.name)) is not None:
            with (folder / f"{field.name}.npy").open("wb") as file:
                np.save(file, array, allow_pickle=False)
    if ids.spaces is None:
        write_ids(folder, ids.texts, "name" not in parts.nodes.schema.names)
    else:
        ids.write(folder)
    nodes, edges = len(parts.arrays.out_index) - 1, parts.arrays.edge_count
    write_nodes(folder, parts.nodes)
    write_properties(folder, parts.node_properties.columns(), nodes)
    if parts.edge_properties:
        with BatchFile(folder / _EDGE_PROPERTIES, parts.edge_properties[0].schema) as held:
            for batch in parts.edge_properties:
                held.append(batch)
    write_meta(folder, nodes, edges, parts.dropped_duplicates, parts.source, parts.schema)
