"""What graph stores promise, and the records and arrays in which they answer.

There are two roles: a `GraphStore` is walked by ids and numbers, a `QueryStore` also runs the text of a query.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from byokg.types import Cell, EntityId, Language, Node, Properties, Value

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from byokg.index.string_hashes import Texts

NodeArray = npt.NDArray[np.integer]
"""Node numbers: (N,) integers that mean something only within the store that gave them."""

RelationArray = npt.NDArray[np.integer]
"""Relation numbers: (N,) integers indexing `GraphStore.relations`."""


ALL_VALUES = "[]"
"""Suffix of the property with all values of an RDF node, in Turtle, if one value is not the whole."""


class Direction(Enum):
    """Which edges touching a node are meant, seen from that node."""

    OUT = "out"
    IN = "in"
    BOTH = "both"


class NumberSpace:
    """Whose numbers an array holds: each store object has one, and two are never equal."""

    __slots__ = ("store",)

    def __init__(self, store: str) -> None:
        """Begin a space of numbers; `store` names it in messages."""
        self.store = store


@dataclass(frozen=True)
class EdgeBatch:
    """E edges in stored orientation, as four parallel arrays of shape (E,).

    Ordered by the position of the touching node in the request, then outgoing before incoming,
    then relation, then the other end, then edge number; so the same request gives the same bytes.
    A self-loop requested in both directions appears twice, once for each.

    An undirected edge goes out of both of its ends, so its head is the node that it was found from, whichever end that
    is (as an incoming edge: its tail). Requested in both directions, it appears once at each end.

    `origin` holds the position (index into the requested `nodes`) of the node that each edge was
    found from, and `inverse` is True if it was found from its tail.

    Numbers are valid only within `space`, so `traversal.join` refuses batches of two stores.
    """

    head: NodeArray
    relation: RelationArray
    tail: NodeArray
    edge: npt.NDArray[np.int64]
    origin: npt.NDArray[np.int64]
    inverse: npt.NDArray[np.bool_]
    space: NumberSpace | None = None
    """None for a batch that no store gave."""
    undirected: npt.NDArray[np.bool_] | None = None
    """(E,) edges that are stored once and walked from either end; None if there are none."""

    def __len__(self) -> int:
        return len(self.edge)

    @property
    def other(self) -> NodeArray:
        """Return the node at the far end of each edge, seen from its origin: (E,)."""
        # Arithmetic, because choosing by a mask that jumps to and fro is ten times slower.
        return self.tail + (self.head - self.tail) * self.inverse


@dataclass(frozen=True)
class InducedEdges:
    """The E edges that have both ends among N nodes, each once, by the position of the head."""

    outgoing: npt.NDArray[np.int64]
    """(N,) how many of them have each node as their head."""
    tail: npt.NDArray[np.integer]
    """(E,) where among the nodes the tail stands."""
    relation: RelationArray
    """(E,)."""
    edge: npt.NDArray[np.integer]
    """(E,) the number in the store."""
    undirected: npt.NDArray[np.bool_] | None = None
    """(E,) edges that lead from either end to the other; None if there are none."""

    @cached_property
    def head(self) -> npt.NDArray[np.integer]:
        """Return where among the nodes the head stands: (E,), ascending."""
        return np.arange(len(self.outgoing), dtype=np.int32).repeat(self.outgoing)

    def __len__(self) -> int:
        return len(self.edge)


@dataclass(frozen=True)
class RelationCounts:
    """How many edges of each relation touch some nodes, seen from these: C groups as parallel arrays of shape (C,).

    Ordered by the position of the node in the request, then outgoing before incoming, then relation. A self-loop
    counts once in each direction.
    """

    origin: npt.NDArray[np.int64]
    """Position in the request."""
    relation: RelationArray
    inverse: npt.NDArray[np.bool_]
    """True for edges that come in."""
    count: npt.NDArray[np.int64]
    """1 or more."""

    @classmethod
    def spread(
        cls,
        places: npt.NDArray[np.int64],
        origin: npt.NDArray[np.int64],
        relation: npt.NDArray[np.int64],
        inverse: npt.NDArray[np.bool_],
        count: npt.NDArray[np.int64],
    ) -> RelationCounts:
        """Map groups of distinct nodes, in any order, to the requested nodes.

        Args:
            places: (N,) for each node of the request its position among the distinct ones.
            origin: (C,) position among the distinct nodes; parallel to the others.
        """
        order = np.lexsort((relation, inverse, origin))
        bounds = np.searchsorted(origin[order], np.stack((places, places + 1)))
        counts = bounds[1] - bounds[0]
        taken = order[np.repeat(bounds[0] - counts.cumsum() + counts, counts) + np.arange(counts.sum())]
        return cls(np.repeat(np.arange(len(places)), counts), relation[taken], inverse[taken], count[taken])

    def degrees(self, nodes: int) -> npt.NDArray[np.int64]:
        """Return the number of edges of each of the `nodes` requested nodes: (nodes,)."""
        return np.bincount(self.origin, self.count, nodes).astype(np.int64)


@dataclass(frozen=True)
class PropertySchema:
    """One property of the nodes of a type, or of the edges of a relation."""

    name: str
    kind: str = ""
    """`string`, `int`, `float`, `bool` or `date`; empty if unknown."""
    examples: tuple[Value, ...] = ()
    """A few short values that occur."""


@dataclass(frozen=True)
class RelationSchema:
    """One relation: how many edges, and all types of the nodes at its ends, most frequent first."""

    name: str
    count: int
    domain: tuple[str, ...]
    range: tuple[str, ...]
    properties: tuple[str, ...] = ()
    property_details: tuple[PropertySchema, ...] = ()
    """Kinds and examples, in the order of `properties`; empty if unknown."""
    undirected: int = 0
    """How many of the edges are undirected; `domain` and `range` hold the types at both of their ends."""

    @property
    def symmetric(self) -> bool:
        """Return True if all of its edges are undirected."""
        return 0 < self.count == self.undirected


@dataclass(frozen=True)
class Schema:
    """Node types with counts, relations with ends and counts, node properties by type."""

    node_types: dict[str, int]
    """Nodes of each type, most first; a node counts for each of its types."""
    relations: tuple[RelationSchema, ...]
    node_properties: dict[str, tuple[str, ...]]
    node_property_details: dict[str, tuple[PropertySchema, ...]] = field(default_factory=dict)
    """Kinds and examples by type, in the order of `node_properties`; types it knows nothing of are missing."""
    sampled: str = ""
    """Extent of the sample and its uncertainty; empty after a full scan."""


def schema_from_json(data: Mapping[str, Any]) -> Schema:
    """Read what `dataclasses.asdict` made of a schema. Raises `ValueError` for anything else."""
    return _schema_type().validate_python(data)


@cache
def _schema_type() -> TypeAdapter[Schema]:
    from pydantic import TypeAdapter

    return TypeAdapter(Schema)


@runtime_checkable
class SavedGraph(Protocol):
    """A store whose node numbers are those of a graph folder, so that the indexes in the folder are for it, too."""

    @property
    def folder(self) -> Path | None:
        """Return the graph's folder; None for one in memory."""

    @property
    def checksum(self) -> str | None:
        """Return the checksum of the graph; None for one in memory."""

    def names_of_nodes(self) -> Texts:
        """Return the name of each node: (N,), as a column that may be mapped from a file."""


@runtime_checkable
class NumberedNames(Protocol):
    """A store that reads the names of nodes by their numbers, without their other data."""

    def names_at(self, nodes: NodeArray) -> list[str]:
        """Return the name of each node, in the order given. Raises `EntityNotFound`."""


@runtime_checkable
class UndirectedStore(Protocol):
    """A store that may hold undirected edges."""

    def undirected_relations(self) -> RelationArray:
        """Return the relations that have undirected edges, ascending."""


def undirected_relations(store: GraphStore) -> RelationArray:
    """Return the relations that have undirected edges, ascending; none of a store of directed edges."""
    graph = getattr(store, "graph", store)
    return graph.undirected_relations() if isinstance(graph, UndirectedStore) else np.empty(0, np.int64)


@runtime_checkable
class FirstEdgesStore(Protocol):
    """A store that reads some edges of a node without reading all of them, however many a hub has."""

    def first_edges(self, nodes: NodeArray, direction: Direction, most: int) -> tuple[EdgeBatch, bool]:
        """Return up to `most` edges of each node, the first in the order of `edges`, and whether any were left out."""


@runtime_checkable
class HoldersStore(Protocol):
    """A store that knows which nodes have a property that few have."""

    def some_holders(self, most: int) -> npt.NDArray[np.int64]:
        """Return up to `most` nodes, at least one, of each property that few nodes have: numbers, ascending."""


@runtime_checkable
class CappedEdgesStore(Protocol):
    """A store that reads some edges of each relation of a node without reading all of them."""

    def degrees(self, nodes: NodeArray) -> npt.NDArray[np.int64] | None:
        """Return the number of edges of each of `nodes`: (N,). None if that takes a request.

        Raises:
            EntityNotFound: a node number is out of range.
        """

    def capped_edges(
        self, nodes: NodeArray, direction: Direction, relations: RelationArray | None, most: int
    ) -> EdgeBatch:
        """Return of each relation, and direction, of each node up to `most` edges, the first in the order of `edges`.

        Args:
            nodes, direction, relations: as those of `edges`.

        Raises:
            EntityNotFound: a node number is out of range.
            RelationNotFound: a relation number is out of range.
        """


def capped_edges(
    store: GraphStore, nodes: NodeArray, direction: Direction, relations: RelationArray | None = None, *, most: int
) -> EdgeBatch:
    """Return `CappedEdgesStore.capped_edges`, or all edges if a store cannot read some of them."""
    if isinstance(store, CappedEdgesStore):
        return store.capped_edges(nodes, direction, relations, most)
    return store.edges(nodes, direction, relations)


@runtime_checkable
class InducingStore(Protocol):
    """A store that returns an induced subgraph without materialising incident edges."""

    def far_ends(self, nodes: NodeArray, direction: Direction) -> NodeArray:
        """Return the other ends of the edges that touch `nodes`, each once, ascending. Raises `EntityNotFound`."""

    def edges_among(self, nodes: NodeArray) -> InducedEdges:
        """Return the edges with both ends among `nodes`, which are distinct. Raises `EntityNotFound`."""


@runtime_checkable
class ScannedStore(Protocol):
    """A store that gives everything faster than by asking about one node after another."""

    def all_nodes(self) -> Iterator[list[Node]]:
        """Yield every node once, in pages, in an order of the store's own."""

    def all_edges(self) -> Iterator[EdgeBatch]:
        """Yield every edge once, in pages; `origin` counts and `inverse` is false.

        Raises `QueryTooLarge` before the first if there are too many.
        """


@runtime_checkable
class NamedStore(Protocol):
    """A store on a server, which finds nodes by their names without giving out all names."""

    @property
    def name(self) -> str:
        """Return the graph's name for messages."""

    @property
    def names_key(self) -> str:
        """Return a key that differs between graphs with other ids or names."""

    @property
    def met_relations(self) -> Sequence[str]:
        """Return the labels of the relations that have numbers so far, without a look at the whole graph for others.

        The first of `relations`: numbers are given out as relations are met.
        """

    def named(self, texts: Sequence[str]) -> list[list[int]]:
        """Return, for each text, the numbers of the nodes that are called just so."""

    def resembling(self, texts: Sequence[str], k: int) -> list[list[tuple[int, str]]] | None:
        """Return, for each text, number and name of up to `k` nodes with similar names, in any order.

        None if the server has no index for that.
        """

    def named_pages(self) -> Iterator[list[tuple[EntityId, str]]]:
        """Yield ids with their names and further names, in pages."""


def numbered_relations(store: GraphStore) -> Sequence[str]:
    """Return the labels of the relations that have numbers: of a graph in files, all."""
    return store.met_relations if isinstance(store, NamedStore) else store.relations


def lasting_order(store: GraphStore, nodes: NodeArray) -> npt.NDArray[np.int64]:
    """Return the places of some nodes, ascending, in an order that no earlier request changes.

    In files that is the order of their numbers, in which they have to be; on a server, that of their ids.
    """
    if not isinstance(store, NamedStore) or len(nodes) < 2:
        return np.arange(len(nodes))
    return np.argsort(np.array(store.ids(nodes), object), kind="stable")


@runtime_checkable
class SlowSchemaStore(Protocol):
    """A store that looks at its whole graph for the schema, which can begin before anybody waits for it."""

    def holds_schema(self) -> bool:
        """True if the schema was read, or is cached, so that it needs no scan."""

    def watch(self, told: Callable[[str], None]) -> None:
        """Register a callback for progress lines: the part of the schema being read, and the number of nodes listed."""

    def read_ahead(self) -> None:
        """Begin to read the schema in the background; `schema` waits for it, and raises its errors."""


def schema_ahead(store: GraphStore) -> Callable[[], Schema]:
    """Return a getter of the schema, which a server begins to read now."""
    if isinstance(store, SlowSchemaStore):
        store.read_ahead()
    return store.schema


@runtime_checkable
class VectorStore(Protocol):
    """A store on a server that may hold vectors of its nodes' names in an index of its own.

    Raises `ConfigError` if the configured index does not exist.
    """

    @property
    def name(self) -> str:
        """Return the graph's name for messages."""

    @property
    def vector_index(self) -> str | None:
        """Return the name of the vector index; None for none."""

    def embedded(self, count: int) -> list[tuple[str, Sequence[float]]]:
        """Return name and vector of up to `count` nodes in the index."""

    def nearest(self, vectors: npt.NDArray[np.floating], k: int) -> list[list[tuple[int, str, Sequence[float]]]]:
        """Return, for each vector, number, name and vector of up to `k` nodes near it, in any order."""


@runtime_checkable
class ShortestPathStore(Protocol):
    """A store whose engine finds shortest paths by itself."""

    def shortest_paths(
        self,
        source: int,
        target: int,
        direction: Direction,
        relations: RelationArray | None,
        most: int | None,
        limit: int,
        timeout_s: float,
    ) -> npt.NDArray[np.int64] | None:
        """Return all shortest paths between two nodes, in any order: head, relation, tail and edge, (P, L, 4).

        Args:
            source: node where paths start.
            target: node where they end.
            direction: of the edges; BOTH is either way.
            relations: walked relations; None for all.
            most: steps at most; None for no bound.
            limit: give up at so many paths.
            timeout_s: give up after so long.

        Returns:
            None if the engine has no such search, or gave up. Parallel edges make different paths.
        """


@runtime_checkable
class ReachingStore(Protocol):
    """A store whose engine finds by itself which nodes edges lead to, however many of them."""

    def reached(
        self, node: int, direction: Direction, relations: RelationArray, limit: int, timeout_s: float
    ) -> NodeArray | None:
        """Return the far ends of one or more edges from a node, each once, in any order.

        Args:
            node: where edges start.
            direction: of the edges; BOTH is either way.
            relations: walked relations.
            limit: give up at more nodes.
            timeout_s: give up after so long.

        Returns:
            None if the engine has no such search, or gave up.
        """


class GraphStore(Protocol):
    """Reads a directed, labelled multigraph. Everything else is built on these."""

    @property
    def name(self) -> str:
        """Return the graph's name for messages."""

    @property
    def relations(self) -> Sequence[str]:
        """Return relation labels; a relation number is a position in this list."""

    def schema(self) -> Schema:
        """Return node types and the relations between them."""

    def entities(self) -> Iterator[EntityId]:
        """Yield each entity once, heads and tails alike, in node-number order."""

    def numbers(self, ids: Collection[EntityId]) -> NodeArray:
        """Return the node number of each id. Raises `EntityNotFound` for an unknown one."""

    def ids(self, nodes: NodeArray) -> list[EntityId]:
        """Return the id of each node number."""

    def nodes(self, ids: Collection[EntityId]) -> list[Node]:
        """Return nodes with name, type and properties, in the order of `ids`. Raises `EntityNotFound`."""

    def edges(
        self, nodes: NodeArray, direction: Direction = Direction.BOTH, relations: RelationArray | None = None
    ) -> EdgeBatch:
        """Return the edges touching `nodes`, optionally of some relations only."""

    def relation_counts(self, nodes: NodeArray) -> RelationCounts:
        """Return how many edges of each relation touch each of `nodes`, without fetching a hub's edges.

        Raises `EntityNotFound` for an unknown number.
        """

    def edge_properties(self, edges: npt.NDArray[np.int64]) -> list[Properties]:
        """Return the properties of each edge number, in the order given."""

    def sample_edges(self, per_relation: int) -> EdgeBatch:
        """Return up to `per_relation` edges of each relation, by relation, spread evenly over the stored ones.

        `origin` counts the edges; `inverse` is false throughout.
        """


@dataclass(frozen=True)
class QueryLimits:
    """Limits of one query; every store enforces all of them."""

    timeout_s: float = 10.0
    """Wall time; a query that takes longer ends as `QueryTimeout` at most a second later."""
    max_rows: int = 1000
    """Rows returned; `Rows.truncated` is True if there were more."""


@dataclass(frozen=True)
class Rows:
    """The answer to a query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    truncated: bool = False

    def __len__(self) -> int:
        return len(self.rows)


class QueryStore(Protocol):
    """Runs query text. A store that cannot does not have these."""

    @property
    def language(self) -> Language:
        """Return the language of `run`."""

    @property
    def notes(self) -> str:
        """Return notes for a query's author beyond the schema, in lines; empty if there are none."""

    def run(self, text: str, parameters: Mapping[str, Cell] | None = None, limits: QueryLimits | None = None) -> Rows:
        """Run one reading query. `graph.guard` checks the text first, whatever the engine's own protection.

        Raises:
            QueryRefused: the text is not one reading query; the message has the part, its place and an alternative.
            QueryInvalid: the engine cannot parse it.
            QueryTimeout: it took longer than the limits allow.
            QueryTooLarge: it needed more memory than the store allows.
            StoreUnavailable: the store could not be reached (`retryable`).
        """


class QueryableGraph(GraphStore, QueryStore, Protocol):
    """A graph that can be walked and queried."""


@runtime_checkable
class ManyEngines(Protocol):
    """A graph that takes queries in several languages."""

    @property
    def engines(self) -> Sequence[QueryableGraph]:
        """Return the engines, one for each language; all have the same nodes under the same ids."""


def takes_queries(store: GraphStore) -> TypeGuard[QueryableGraph]:
    """True if a graph also runs query text."""
    return callable(getattr(store, "run", None))


def query_engines(store: GraphStore) -> tuple[QueryableGraph, ...]:
    """Return the query engines of a graph, one for each language; empty if it runs no queries."""
    if isinstance(store, ManyEngines):
        return tuple(store.engines)
    return (store,) if takes_queries(store) else ()


def query_notes(store: GraphStore) -> str:
    """Return notes for the author of a query beyond the graph's schema."""
    return "".join(each.notes for each in query_engines(store))


def as_json(rows: Rows) -> dict[str, Any]:
    """Return columns, rows and whether rows were cut off."""
    return {
        "columns": list(rows.columns),
        "rows": [[_dump_cell(cell) for cell in row] for row in rows.rows],
        "truncated": rows.truncated,
    }


def _dump_cell(cell: Any) -> Any:
    if is_dataclass(cell) and not isinstance(cell, type):
        held = {field.name: _dump_cell(getattr(cell, field.name)) for field in fields(cell)}
        return {key: value for key, value in held.items() if key != "further_types" or value}
    if isinstance(cell, Mapping):
        return {key: _dump_cell(value) for key, value in cell.items()}
    if isinstance(cell, list | tuple):
        return [_dump_cell(value) for value in cell]
    return cell


class NodeCache:
    """Cache of nodes by id; cleared when it would grow too large. Threads may share it.

    Args:
        read: fetches nodes, as `GraphStore.nodes` does.
        most: largest number of nodes.
    """

    def __init__(self, read: Callable[[Sequence[EntityId]], list[Node]], most: int = 10_000) -> None:
        self._read = read
        self._most = most
        self._held: dict[EntityId, Node] = {}

    def __len__(self) -> int:
        """Return how many nodes are held."""
        return len(self._held)

    def nodes(self, ids: Sequence[EntityId]) -> list[Node]:
        """Return the nodes in the order of `ids`, reading missing ones. Raises the errors of `read`."""
        held = self._held  # another thread may put a new one in its place; this one only grows
        missing = list(dict.fromkeys(id for id in ids if id not in held))
        if not missing:
            return [held[id] for id in ids]
        read = dict(zip(missing, self._read(missing), strict=True))
        found = [held.get(id) or read[id] for id in ids]
        if len(held) + len(read) > self._most:
            self._held = {}
        if len(read) <= self._most:
            self._held.update(read)
        return found
