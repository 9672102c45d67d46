"""A graph in the formats of other tools, written a block of columns at a time.

Each format gives a folder, which appears only when complete:

| format        | files                            | read by                                             |
|---------------|----------------------------------|-----------------------------------------------------|
| `neo4j-admin` | `nodes.csv`, `edges.csv`         | `neo4j-admin database import full`, and byokg       |
| `neptune`     | `vertices.csv`, `edges.csv`      | Neptune's bulk loader (Gremlin layout)              |
| `ntriples`    | `graph.nt`                       | any RDF store, and byokg; written by `byokg[sparql]` |
| `parquet`     | `nodes.parquet`, `edges.parquet` | pandas, Spark, DuckDB, and byokg                    |
| `graphml`     | `graph.graphml`                  | NetworkX, igraph, Gephi, yEd, and byokg             |

All types of a node are written: as labels in the first two, as `rdf:type`, as the list `types` beside the first one in
Parquet, and as `A|B` in GraphML. A property named like a fixed column of the format gets an underscore behind its name,
as in `exporter`. A bool is `true` or `false`, a date ISO 8601.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from xml.sax.saxutils import quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from byokg.errors import GraphError, import_extra, one_of
from byokg.files import new_folder
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.node_types import lists_of_cells, rewrite_cells
from byokg.graph.columnar.schema import TEXT, text_column
from byokg.graph.exporter import Progress, copy_graph, csv_line, export_graph, free_names, refuse_taken
from byokg.graph.store import GraphStore

if TYPE_CHECKING:
    import networkx
    import torch_geometric

_ROWS = 1 << 16
"""Nodes or edges that are columns at the same time."""

_Blocks = Iterator[pa.RecordBatch]


def write_graph_as(store: GraphStore, format: str, out: str | Path, progress: Progress | None = None) -> None:
    """Write a graph in one of `FORMATS`.

    A saved graph is read from its mapped files, so memory stays small at any size. One on a server is copied into
    memory first, but for `csv`.

    Args:
        store: the graph.
        format: `csv` is `export_graph`; see the top of this module for the others.
        out: folder to write; appears only when complete.
        progress: called with the number of nodes and edges done from time to time.

    Raises:
        ConfigError: there is no such format.
        GraphExists: `out` exists and is not empty.
        GraphError: the format cannot hold a part of the graph, or the place is not writable.
        MissingExtra: `ntriples` without pyoxigraph.
    """
    if format == "csv":
        return export_graph(store, out, progress)
    one_of("--format ", format, ("csv", *FORMATS, "rog"))
    with new_folder(out, overwrite=False, refuse=refuse_taken) as partial:
        graph = store.columnar or copy_graph(store, progress)
        FORMATS[format](graph, partial)
    if progress:
        progress(graph.node_count, graph.edge_count)


def node_blocks(graph: ColumnarGraph) -> _Blocks:
    """Yield the nodes as columns id, name and type, with those of their properties behind; null is absent.

    At least one block comes. A node's name is null if it equals its id and no node has properties, of which an import
    would make a name; its type if it has none. A type is a cell, as `node_types` has them, which holds all types of a
    node.
    """
    nodes, properties = graph.node_columns
    for start in _starts(graph.node_count):
        some, stop = nodes.slice(start, _ROWS), min(start + _ROWS, graph.node_count)
        ids = graph.node_ids.take(np.arange(start, stop))
        names, types = ids, graph.node_types.cells(start, stop)
        if "name" in nodes.schema.names:
            names = some.column("name").cast(TEXT)
        held = properties.rows(start, stop)
        if not held:
            names = pc.if_else(pc.equal(names, ids), pa.scalar(None, TEXT), names)
        yield _with_properties(dict(zip(NODE_COLUMNS, (ids, names, types), strict=True)), held)


def edge_blocks(graph: ColumnarGraph) -> _Blocks:
    """Yield the edges in their order as columns head, relation and tail, with those of their properties behind.

    At least one block comes; of an edge's properties null is absent. A graph with undirected edges has a fourth column
    before them, `directed`.
    """
    bounds, relation, tail = graph.outgoing
    both_ways = graph.topology.undirected is not None
    ids, labels = graph.node_ids, text_column(list(graph.relations))
    held = graph.edge_columns
    before = 0
    for rows, batch in [(batch.num_rows, batch) for batch in held] or [(graph.edge_count, None)]:
        for start in _starts(rows):
            edges = np.arange(before + start, before + min(start + _ROWS, rows))
            heads = np.searchsorted(bounds, edges, "right") - 1
            columns = {
                "head": ids.take(heads),
                "relation": labels.take(pa.array(relation[edges])),
                "tail": ids.take(tail[edges]),
            }
            if both_ways:
                columns[DIRECTED] = pa.array(~graph.topology.are_undirected(edges, relation[edges]))
            some = None if batch is None else batch.slice(start, _ROWS)
            yield _with_properties(columns, dict(zip(some.schema.names, some.columns, strict=True)) if some else {})
        before += rows


NODE_COLUMNS, EDGE_COLUMNS = ("id", "name", "type"), ("head", "relation", "tail")
DIRECTED = "directed"
"""Column or attribute that is false for undirected edges."""


def _starts(rows: int) -> range:
    return range(0, max(rows, 1), _ROWS)


def _with_properties(fixed: Mapping[str, pa.Array], properties: Mapping[str, pa.Array]) -> pa.RecordBatch:
    columns = [*fixed.values(), *properties.values()]
    return pa.RecordBatch.from_arrays(columns, [*fixed, *free_names(tuple(fixed), list(properties))])


# Objects of Python libraries


def networkx_graph(store: GraphStore) -> networkx.MultiGraph:
    """Return a graph for NetworkX: in memory, as Python objects.

    Nodes are ids with attributes `name`, `type` and properties, edges have the attribute `relation` and properties;
    absent values are no attributes. If any node has several types, all of them are in the list `types`. The result is a
    `MultiDiGraph`, or a `MultiGraph` if all edges are undirected; NetworkX has no graphs of both kinds, so that
    otherwise undirected edges have the attribute `directed=False`. `from_networkx` is the inverse. Raises
    `MissingExtra` without networkx.
    """
    library, held = import_extra("networkx", "networkx", "a NetworkX graph"), _in_memory(store)
    undirected = _is_undirected(held)
    graph: networkx.MultiGraph = library.MultiGraph() if undirected else library.MultiDiGraph()
    for block in _listed_types(held):
        ids, names = block.column("id"), block.column("name")
        own = pc.if_else(pc.equal(names, ids), pa.scalar(None, TEXT), names)
        graph.add_nodes_from(_records(block.set_column(1, "name", own), ["id"]))
    for block in edge_blocks(held):
        edges = _records(block, ["head", "tail"])
        plain = held.topology.undirected is None
        graph.add_edges_from(edges if plain else _undirected_marked(edges, not undirected))
    return graph


def _is_undirected(graph: ColumnarGraph) -> bool:
    """Return True if all edges of a graph are undirected, and there are some."""
    relations = graph.schema().relations
    return graph.edge_count > 0 and all(each.symmetric for each in relations if each.count)


def _undirected_marked(edges: Iterator[tuple[Any, ...]], marked: bool) -> Iterator[tuple[Any, ...]]:
    """Yield edges, of which the undirected ones keep the attribute `directed=False` if `marked`."""
    for head, tail, attributes in edges:
        if attributes.get(DIRECTED) is True or not marked:
            attributes.pop(DIRECTED, None)
        yield head, tail, attributes


def pyg_data(store: GraphStore) -> torch_geometric.data.Data:
    """Return the topology of a graph for PyTorch Geometric: N nodes, E edges, R relations.

    `edge_index` is (2, E) and `edge_type` (E,), both int64; the lists `node_ids` and `relations` give the meaning of
    the numbers. An undirected edge is listed from either end. Names and properties are not in it. Raises
    `MissingExtra` without torch-geometric.
    """
    torch = import_extra("torch", "pyg", "a PyTorch Geometric graph")
    made = import_extra("torch_geometric.data", "pyg", "a PyTorch Geometric graph")
    held = _in_memory(store)
    bounds, relation, tail = held.outgoing
    head = np.repeat(np.arange(held.node_count), np.diff(bounds))
    flags = held.topology.are_undirected(np.arange(held.edge_count), relation)
    turned = np.flatnonzero(flags & (head != tail))
    ends = np.stack((head, tail.astype(np.int64)))
    ends = np.concatenate((ends, ends[::-1, turned]), axis=1)
    types = np.concatenate((relation, relation[turned])).astype(np.int64)
    data = made.Data(edge_index=torch.from_numpy(ends), edge_type=torch.from_numpy(types), num_nodes=held.node_count)
    data.node_ids, data.relations = list(held.entities()), list(held.relations)
    return data


def _in_memory(store: GraphStore) -> ColumnarGraph:
    return store.columnar or copy_graph(store)


def _records(block: pa.RecordBatch, ends: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield for each row these columns, and a mapping of the others as far as they hold anything; dates as text."""
    columns = [(each.cast(TEXT) if pa.types.is_date(each.type) else each).to_pylist() for each in block.columns]
    for row in zip(*columns, strict=True):
        held = dict(zip(block.schema.names, row, strict=True))
        yield *(held.pop(end) for end in ends), {key: value for key, value in held.items() if value is not None}


def _listed_types(graph: ColumnarGraph) -> _Blocks:
    """Yield the nodes with their first type as `type` and, if any has several, all of them as the list `types`."""
    several = len(graph.node_types.further) > 0
    for block in node_blocks(graph):
        ids, names, cells = block.columns[:3]
        columns = {"id": ids, "name": names, "type": rewrite_cells(cells, None)}
        if several:
            columns["types"] = lists_of_cells(cells)
        yield _with_properties(columns, dict(zip(block.schema.names[3:], block.columns[3:], strict=True)))


# Tables


def _write_parquet(graph: ColumnarGraph, folder: Path) -> None:
    import pyarrow.parquet as parquet

    for name, blocks in (("nodes", _listed_types(graph)), ("edges", edge_blocks(graph))):
        first = next(blocks)
        with parquet.ParquetWriter(folder / f"{name}.parquet", first.schema, compression="zstd") as file:
            file.write_batch(first)
            for block in blocks:
                file.write_batch(block)


_NEO4J = {pa.int64(): "long", pa.float64(): "double", pa.bool_(): "boolean", pa.date32(): "date"}
_NEPTUNE = {pa.int64(): "Long", pa.float64(): "Double", pa.bool_(): "Bool", pa.date32(): "Date"}


def _write_neo4j(graph: ColumnarGraph, folder: Path) -> None:
    def titled(fixed: Sequence[str], block: pa.RecordBatch) -> list[str]:
        return [*fixed, *(f"{one.name}:{_NEO4J.get(one.type, 'string')}" for one in list(block.schema)[3:])]

    _write_csv(folder / "nodes.csv", _labelled(graph), lambda b: titled(("id:ID", "name", ":LABEL"), b))
    _write_csv(folder / "edges.csv", edge_blocks(graph), lambda b: titled((":START_ID", ":TYPE", ":END_ID"), b))


def _write_neptune(graph: ColumnarGraph, folder: Path) -> None:
    def titled(fixed: Sequence[str], block: pa.RecordBatch, single: str) -> list[str]:
        keys = [(one.name.replace(":", "\\:"), _NEPTUNE.get(one.type, "String")) for one in block.schema]
        return [*fixed, *(f"{key}:{kind}{single}" for key, kind in keys[len(fixed) :])]

    def vertices() -> _Blocks:
        for block in _labelled(graph):
            yield block.select(["id", "type", "name", *block.schema.names[3:]])

    def edges() -> _Blocks:
        done = 0
        for block in edge_blocks(graph):
            numbers = pa.array(np.arange(done, done + block.num_rows)).cast(TEXT)
            ids = pc.binary_join_element_wise(pa.scalar("e", TEXT), numbers, pa.scalar("", TEXT))
            done += block.num_rows
            columns = [ids, block.column("head"), block.column("tail"), block.column("relation"), *block.columns[3:]]
            yield pa.RecordBatch.from_arrays(columns, ["~id", "~from", "~to", "~label", *block.schema.names[3:]])

    _write_csv(folder / "vertices.csv", vertices(), lambda block: titled(("~id", "~label"), block, "(single)"))
    _write_csv(folder / "edges.csv", edges(), lambda block: titled(("~id", "~from", "~to", "~label"), block, ""))


def _labelled(graph: ColumnarGraph) -> _Blocks:
    """Yield the nodes with their names written out, and all of their labels as `A;B`."""
    if wrong := next((label for label in graph.schema().node_types if ";" in label), None):
        raise GraphError(
            f"the type {wrong!r} holds ';', which separates labels in this format; export as parquet or graphml instead"
        )
    for nodes in node_blocks(graph):
        ids, names, cells = nodes.columns[:3]
        columns = [ids, pc.coalesce(names, ids), rewrite_cells(cells, ";"), *nodes.columns[3:]]
        yield pa.RecordBatch.from_arrays(columns, nodes.schema.names)


def _write_csv(path: Path, blocks: _Blocks, header: Callable[[pa.RecordBatch], Sequence[str]]) -> None:
    """Write texts in quotes, and absent values as nothing at all."""
    first = next(blocks)
    with path.open("wb") as file:
        file.write(csv_line(header(first)).encode())
        with arrow_csv.CSVWriter(
            file, first.schema, write_options=arrow_csv.WriteOptions(include_header=False)
        ) as rows:
            rows.write_batch(first)
            for block in blocks:
                rows.write_batch(block)


# RDF


def _write_ntriples(graph: ColumnarGraph, folder: Path) -> None:
    pyoxigraph = import_extra("pyoxigraph", "sparql", "writing RDF")
    from byokg.graph.rdf.files import graph_quads

    with (folder / "graph.nt").open("wb") as file:
        triples = (quad.triple for quad in graph_quads(graph))
        pyoxigraph.serialize(triples, file, pyoxigraph.RdfFormat.N_TRIPLES)


# GraphML


DATE_MARK = "urn:byokg:graphml"
"""Namespace of the attribute `kind`, which marks a key whose texts are dates."""

_GRAPHML = {pa.int64(): "long", pa.float64(): "double", pa.bool_(): "boolean"}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}


def _write_graphml(graph: ColumnarGraph, folder: Path) -> None:
    nodes, edges = node_blocks(graph), edge_blocks(graph)
    first_nodes, first_edges = next(nodes), next(edges)
    with (folder / "graph.graphml").open("wb") as file:
        file.write(b'<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns"')
        file.write(f' xmlns:byokg="{DATE_MARK}">\n'.encode())
        own = 4 if graph.topology.undirected is not None else 3
        for letter, kind, block, fixed in (("n", "node", first_nodes, 1), ("e", "edge", first_edges, own)):
            for number, one in enumerate(block.schema):
                if number >= fixed or one.name == "relation":
                    mark = ' byokg:kind="date"' if pa.types.is_date(one.type) else ""
                    name = quoteattr(_xml(one.name), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
                    told = f'attr.name={name} attr.type="{_GRAPHML.get(one.type, "string")}"'
                    file.write(f' <key id="{letter}{number}" for="{kind}" {told}{mark}/>\n'.encode())
        undirected = _is_undirected(graph)
        file.write(f' <graph edgedefault="{"undirected" if undirected else "directed"}">\n'.encode())
        for block in _chain(first_nodes, nodes):
            _write_elements(file, '  <node id="', [block.column(0)], "n", block, range(1, block.num_columns))
        for block in _chain(first_edges, edges):
            held = (1, *range(own, block.num_columns))
            ends = [block.column(0), block.column(2)]
            marks = _direction_marks(block.column(3)) if own == 4 and not undirected else None
            _write_elements(file, '  <edge source="', ends, "e", block, held, marks)
        file.write(b" </graph>\n</graphml>\n")


def _chain(first: pa.RecordBatch, others: _Blocks) -> _Blocks:
    yield first
    yield from others


def _direction_marks(directed: pa.Array) -> pa.Array:
    """Return the attribute of undirected edges in a document whose edges are directed, and nothing for the others."""
    return pc.if_else(directed, pa.scalar("", TEXT), pa.scalar('" directed="false', TEXT))


def _write_elements(
    file: BinaryIO,
    opening: str,
    ends: Sequence[pa.Array],
    letter: str,
    block: pa.RecordBatch,
    held: Sequence[int],
    marks: pa.Array | None = None,
) -> None:
    """Write a node or edge on a line, with `marks` as further attributes, and a `data` for each value that is there."""
    parts: list[Any] = [pa.scalar(opening, TEXT), _escaped(ends[0])]
    if len(ends) > 1:
        parts += [pa.scalar('" target="', TEXT), _escaped(ends[1])]
    if marks is not None:
        parts.append(marks)
    parts.append(pa.scalar('">', TEXT))
    end = "</node>\n" if letter == "n" else "</edge>\n"
    for number in held:
        text = _escaped(block.column(number))
        cell = [pa.scalar(f'<data key="{letter}{number}">', TEXT), text, pa.scalar("</data>", TEXT)]
        parts.append(pc.coalesce(pc.binary_join_element_wise(*cell, pa.scalar("", TEXT)), pa.scalar("", TEXT)))
    lines = pc.binary_join_element_wise(*parts, pa.scalar(end, TEXT), pa.scalar("", TEXT))
    if len(lines):
        _, offsets, text = lines.buffers()
        bounds = np.frombuffer(offsets, np.int64)
        file.write(memoryview(text)[int(bounds[lines.offset]) : int(bounds[lines.offset + len(lines)])])


def _escaped(values: pa.Array) -> pa.Array:
    if values.type != TEXT:
        return values.cast(TEXT)
    if pc.any(pc.match_substring_regex(values, r"[\x00-\x08\x0b\x0c\x0e-\x1f\x{fffe}\x{ffff}]")).as_py():
        for text in values.to_pylist():
            _xml(text or "")
    for sign, escape in _ESCAPES.items():
        values = pc.replace_substring(values, sign, escape)
    return values


def _xml(text: str) -> str:
    if _NO_XML.search(text):
        raise GraphError(f"the text {text!a} holds a control character, which XML cannot; export as parquet instead")
    return text


FORMATS: dict[str, Callable[[ColumnarGraph, Path], None]] = {
    "neo4j-admin": _write_neo4j,
    "neptune": _write_neptune,
    "ntriples": _write_ntriples,
    "parquet": _write_parquet,
    "graphml": _write_graphml,
}
"""Writers of graphs in memory or mapped from disk, by the name of the format."""
