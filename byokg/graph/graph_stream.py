"""What an importer hands over: a graph as a stream of numbered edges, and the nodes and relations behind the numbers.

A stream is used up once, either by `collected`, which holds the graph in memory, or by `graph_writer.write_graph`,
which writes it to a folder whatever its size. Both give the same graph, to the byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from byokg.graph.columnar import ColumnarGraph

T = TypeVar("T")

Triples = npt.NDArray[np.int32]
"""(E, 3) head, relation and tail numbers."""


@dataclass(frozen=True)
class EdgeBlock:
    """B edges, as they stand in a file."""

    triples: Triples
    properties: pa.RecordBatch | None = None
    """B rows; columns may differ from block to block, and are converted to the stream's `property_types`."""
    apart: npt.NDArray[np.int64] | None = None
    """(B,) in a stream without repetitions: edges of the same triple that differ in this are no repetitions."""


@dataclass(frozen=True)
class NodeColumns:
    """N nodes, in the order of their numbers."""

    ids: pa.LargeStringArray
    names: pa.Array | None = None
    """None says that the ids are the names."""
    types: pa.Array | None = None
    """Plain or dictionary-encoded; None says that nodes are untyped."""
    properties: Mapping[str, pa.Array] = field(default_factory=dict)
    hashes: npt.NDArray[np.uint64] | None = None
    """Those of `id_index.hash_column`, where they are known."""


class GraphStream(Protocol):
    """A source being read. Everything but `name` means something only when the last block has come."""

    @property
    def name(self) -> str:
        """What to call the graph in messages."""

    @property
    def distinct(self) -> bool:
        """Whether repetitions of an edge are left out, and counted."""

    @property
    def left_out(self) -> int:
        """How many repetitions are not among the blocks any more."""

    def blocks(self) -> Iterator[EdgeBlock]:
        """Yield the edges. Raises `ImportFailed`, at any block, when the source cannot become a graph."""

    def nodes(self) -> NodeColumns:
        """Return the nodes, whose numbers the edges hold."""

    def relations(self) -> Sequence[str]:
        """Return the labels behind relation numbers."""

    def property_types(self) -> Mapping[str, pa.DataType]:
        """Return the columns that edge properties have, in order: each holds what any block gave it."""

    def source(self) -> dict[str, Any]:
        """Return what the graph is made from."""


def collected(stream: GraphStream) -> ColumnarGraph:
    """Read a stream into memory. Raises `ImportFailed`."""
    blocks = list(stream.blocks())
    nodes, types = stream.nodes(), stream.property_types()
    triples = np.concatenate([np.empty((0, 3), np.int32), *(block.triples for block in blocks)])
    properties = joined([converted(block.properties, types, len(block.triples)) for block in blocks], types)
    marks = [block.apart for block in blocks if block.apart is not None]
    return ColumnarGraph.assemble(
        name=stream.name,
        ids=nodes.ids,
        names=nodes.names,
        types=nodes.types,
        node_properties=nodes.properties,
        relations=stream.relations(),
        head=triples[:, 0],
        relation=triples[:, 1],
        tail=triples[:, 2],
        edge_properties=dict(zip(types, properties.columns, strict=True)),
        apart=np.concatenate(marks) if marks else None,
        drop_duplicates=stream.distinct,
        source=stream.source(),
        dropped_duplicates=stream.left_out,
    )


def converted(batch: pa.RecordBatch | None, types: Mapping[str, pa.DataType], rows: int) -> pa.RecordBatch:
    """Give a block's properties the columns of the whole stream, null where the block lacks one."""
    given = {} if batch is None else dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = [given[name].cast(kind) if name in given else pa.nulls(rows, kind) for name, kind in types.items()]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(types.items()))


def joined(batches: Sequence[pa.RecordBatch], types: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """Put batches that have these columns below each other."""
    columns = [
        pa.concat_arrays([pa.array([], kind), *(batch.column(name) for batch in batches)])
        for name, kind in types.items()
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(types.items()))


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the same items, making the next one in a thread while one is worked on."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item
