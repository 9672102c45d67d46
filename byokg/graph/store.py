"""The base class of graph stores, and the records and arrays of their results.

There are two roles: a `GraphStore` is walked by ids and numbers, a `QueryableGraph` also runs the text of a query.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import cache, cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from byokg.arrays import Bools, Int64, Integers
from byokg.errors import EntityNotFound
from byokg.graph.sorted_ids import changes, distinct, match_rows, positions
from byokg.text.tabular import TableView, Tabular, listed
from byokg.types import NO_PROPERTIES, Cell, EntityId, Language, Node, Properties, Value

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from byokg.graph.columnar.graph import ColumnarGraph
    from byokg.graph.rdf.terms import Prefixes
    from byokg.graph.read_cache import SchemaCache
    from byokg.index.vocabulary import Texts

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

    def take(self, rows: Int64 | slice) -> EdgeBatch:
        """Return some of the edges, in the given order."""
        return EdgeBatch(
            self.head[rows],
            self.relation[rows],
            self.tail[rows],
            self.edge[rows],
            self.origin[rows],
            self.inverse[rows],
            self.space,
            None if self.undirected is None else self.undirected[rows],
        )

    def cap(self, limit: int | None, per_relation: bool = False) -> tuple[EdgeBatch, bool]:
        """Keep the first `limit` edges of each node, or of each node, direction and relation; True if that cut any."""
        if limit is None or len(self) <= limit:
            return self, False
        # Edges under one cap are contiguous.
        together = (self.origin << 1 | self.inverse, self.relation) if per_relation else (self.origin,)
        starts = np.flatnonzero(changes(*together))
        rank = np.arange(len(self)) - np.repeat(starts, np.diff(starts, append=len(self)))
        kept = np.flatnonzero(rank < limit)
        return self.take(kept), len(kept) < len(self)

    @classmethod
    def concatenate(cls, batches: Sequence[EdgeBatch]) -> EdgeBatch:
        """Return the edges of one store's batches; their origins stay as they are."""
        if not batches:
            none = np.empty(0, np.int64)
            return cls(none, none, none, none, none, none.astype(np.bool_))
        head, relation, tail, edge, origin = (
            np.concatenate([getattr(batch, name) for batch in batches])
            for name in ("head", "relation", "tail", "edge", "origin")
        )
        flags = [np.zeros(len(batch), np.bool_) if batch.undirected is None else batch.undirected for batch in batches]
        undirected = np.concatenate(flags) if any(batch.undirected is not None for batch in batches) else None
        inverse = np.concatenate([batch.inverse for batch in batches])
        return cls(head, relation, tail, edge, origin, inverse, batches[0].space, undirected)


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


@dataclass(frozen=True, repr=False)
class Schema(Tabular):
    """Node types with counts, relations with ends and counts, node properties by type."""

    node_types: dict[str, int]
    """Nodes of each type, most first; a node counts for each of its types."""
    relations: tuple[RelationSchema, ...]
    node_properties: dict[str, tuple[str, ...]]
    node_property_details: dict[str, tuple[PropertySchema, ...]] = field(default_factory=dict)
    """Kinds and examples by type, in the order of `node_properties`; types it knows nothing of are missing."""
    sampled: str = ""
    """Extent of the sample and its uncertainty; empty after a full scan."""

    @cached_property
    def relations_by_name(self) -> Mapping[str, RelationSchema]:
        """The relations by their names."""
        return {relation.name: relation for relation in self.relations}

    def _table(self) -> TableView:
        sampled = f" ({self.sampled})" if self.sampled else ""
        rows = (
            (one.name, one.count, ", ".join(one.domain), ", ".join(one.range), ", ".join(one.properties))
            for one in sorted(self.relations, key=lambda one: (-one.count, one.name))
        )
        types = listed([f"{name or '(no type)'} {count:,}" for name, count in self.node_types.items()], 6)
        summary = f"{len(self.relations):,} relations, {len(self.node_types):,} node types: {types}{sampled}"
        return TableView(summary, ("relation", "edges", "from", "to", "properties"), rows)


def schema_from_json(data: Mapping[str, Any]) -> Schema:
    """Read what `dataclasses.asdict` made of a schema. Raises `ValueError` for anything else."""
    return _schema_type().validate_python(data)


@cache
def _schema_type() -> TypeAdapter[Schema]:
    from pydantic import TypeAdapter

    return TypeAdapter(Schema)


def schema_ahead(store: GraphStore) -> Callable[[], Schema]:
    """Return a getter of the schema, which a server begins to read now."""
    store.read_ahead()
    return store.schema


def _of_type(store: GraphStore, type: str) -> Iterator[Node]:
    """Yield the nodes of a type, or without one."""
    return (node for node in chain.from_iterable(store.all_nodes()) if type in (node.types or ("",)))


class GraphStore(ABC):
    """A directed, labelled multigraph. Everything else is built on these methods.

    A store of your own defines `name`, `relations`, `entities`, `nodes` and `edges` (`read_cache.around` brings edges
    into order) and inherits the other methods, which read by these. A store with a quicker way overrides a method.

    >>> from byokg import ColumnarGraph; list(ColumnarGraph.from_triples([("a", "knows", "b")]).relations)
    ['knows']
    """

    source: Mapping[str, Any] = {}
    """Source of the graph: kind, and the files it was read from, if known."""
    remote: bool = False
    """True if every read is a request to a server, which numbers nodes and relations as they are met."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Return the graph's name for messages."""

    @property
    @abstractmethod
    def relations(self) -> Sequence[str]:
        """Return relation labels; a relation number is a position in this list."""

    @abstractmethod
    def entities(self) -> Iterator[EntityId]:
        """Yield each entity once, heads and tails alike, in node-number order."""

    @abstractmethod
    def nodes(self, ids: Collection[EntityId]) -> list[Node]:
        """Return nodes with name, type and properties, in the order of `ids`. Raises `EntityNotFound`."""

    @abstractmethod
    def edges(
        self, nodes: NodeArray, direction: Direction = Direction.BOTH, relations: RelationArray | None = None
    ) -> EdgeBatch:
        """Return the edges touching `nodes`, optionally of some relations only, in the order of `EdgeBatch`.

        Raises `EntityNotFound` and `RelationNotFound` for a number out of range.
        """

    # Nodes and edges

    @cached_property
    def _entity_list(self) -> list[EntityId]:
        return list(self.entities())

    @cached_property
    def _entity_places(self) -> dict[EntityId, int]:
        return {entity: place for place, entity in enumerate(self._entity_list)}

    def numbers(self, ids: Collection[EntityId]) -> NodeArray:
        """Return the node number of each id. Raises `EntityNotFound` for an unknown one."""
        if lost := next((entity for entity in ids if entity not in self._entity_places), None):
            raise EntityNotFound(lost, self.name)
        return np.array([self._entity_places[entity] for entity in ids], np.int64)

    def ids(self, nodes: NodeArray) -> list[EntityId]:
        """Return the id of each node number. Raises `EntityNotFound` for a number out of range."""
        numbers = np.asarray(nodes, np.int64)
        if len(outside := numbers[(numbers < 0) | (numbers >= len(self._entity_list))]):
            raise EntityNotFound(f"number {outside[0]}", self.name)
        return [self._entity_list[number] for number in numbers.tolist()]

    def names_at(self, nodes: NodeArray) -> list[str]:
        """Return the names of N nodes, in the order given. Raises `EntityNotFound` for a number out of range."""
        return [node.name for node in self.nodes(self.ids(nodes))]

    def all_nodes(self) -> Iterator[list[Node]]:
        """Yield every node once, in pages, in an order of the store's own."""
        entities = self.entities()
        while ids := list(islice(entities, _PAGE)):
            yield self.nodes(ids)

    def every_node(self) -> NodeArray:
        """Return the numbers of all nodes, in the order of `entities`."""
        return self.numbers(list(self.entities()))

    def some_holders(self, most: int) -> Int64:
        """Return up to `most` nodes of each property that few have: numbers, ascending; none without an index."""
        return np.empty(0, np.int64)

    @property
    def display_names(self) -> Mapping[str, str]:
        """Return the display templates of node types; see `graph.display_names`."""
        return {} if self.columnar is None else self.columnar.source.get("display_names", {})

    def distinct_values(self, type: str, property: str, most: int) -> tuple[list[tuple[Value, int]], bool]:
        """Return up to `most` values of a type's property with their numbers of nodes, and True if these are all."""
        found = Counter(node.properties[property] for node in _of_type(self, type) if property in node.properties)
        return found.most_common(most), len(found) <= most

    def distinct_edge_values(self, relation: str, property: str, most: int) -> tuple[list[tuple[Value, int]], bool]:
        """Return values of a relation's property as `distinct_values` does, for graphs on servers; none by default."""
        return [], False

    def holders(self, type: str, property: str, value: Value, most: int) -> NodeArray:
        """Return up to `most` nodes of a type with a value of a property: numbers, ascending."""
        found = (node.id for node in _of_type(self, type) if node.properties.get(property) == value)
        return np.sort(self.numbers(list(islice(found, most))))

    def lasting_order(self, nodes: NodeArray) -> Int64:
        """Return the places of some nodes, ascending, in an order of ids or numbers that no earlier request changes."""
        return np.arange(len(nodes))

    @property
    def met_relations(self) -> Sequence[str]:
        """Return the labels of the relations that have numbers so far: on a server of those met, elsewhere of all."""
        return self.relations

    def undirected_relations(self) -> RelationArray:
        """Return the relations that have undirected edges, ascending."""
        return np.flatnonzero([relation.undirected for relation in self.schema().relations])

    def edge_properties(self, edges: Int64) -> list[Properties]:
        """Return the properties of each edge number, in the order given."""
        return [NO_PROPERTIES] * len(edges)

    def all_edges(self) -> Iterator[EdgeBatch]:
        """Yield every edge once, in pages, in stored orientation; `origin` and `inverse` mean nothing."""
        entities = self.entities()
        while ids := list(islice(entities, _PAGE)):
            yield self.edges_once(self.numbers(ids))

    def edges_once(self, nodes: NodeArray) -> EdgeBatch:
        """Return the edges out of some nodes; over all nodes that is every edge once, undirected ones included."""
        batch = self.edges(nodes, Direction.OUT)
        if batch.undirected is None:
            return batch
        return batch.take(np.flatnonzero(~batch.undirected | (batch.head <= batch.tail)))

    def first_edges(self, nodes: NodeArray, direction: Direction, most: int) -> tuple[EdgeBatch, bool]:
        """Return up to `most` edges of each node, the first in the order of `edges`, and whether any were left out."""
        return self.edges(nodes, direction).cap(most)

    def capped_edges(
        self, nodes: NodeArray, direction: Direction, relations: RelationArray | None, most: int
    ) -> EdgeBatch:
        """Return of each relation and direction of each node the first `most` edges, or all if that needs all."""
        return self.edges(nodes, direction, relations)

    def degrees(self, nodes: NodeArray) -> Int64 | None:
        """Return the number of edges of each of `nodes`: (N,). None if that takes a look at the edges."""
        return None

    def relation_counts(self, nodes: NodeArray) -> RelationCounts:
        """Return how many edges of each relation touch each of `nodes`. Raises `EntityNotFound`."""
        batch = self.edges(nodes)
        first = np.flatnonzero(changes(batch.origin << 1 | batch.inverse, batch.relation))
        counts = np.diff(first, append=len(batch))
        return RelationCounts(batch.origin[first], batch.relation[first], batch.inverse[first], counts)

    @cached_property
    def _samples(self) -> dict[int, EdgeBatch]:
        return {}

    def sample_edges(self, per_relation: int) -> EdgeBatch:
        """Return up to `per_relation` edges of each relation, spread evenly over them, by relation; `origin` counts."""
        if per_relation not in self._samples:  # all edges are read for it
            self._samples[per_relation] = _sample_edges(self, per_relation)
        return self._samples[per_relation]

    def far_ends(self, nodes: NodeArray, direction: Direction = Direction.BOTH) -> NodeArray:
        """Return the other ends of the edges that touch `nodes`, each once, ascending. Raises `EntityNotFound`."""
        return distinct(self.edges(nodes, direction).other)

    def edges_among(self, nodes: NodeArray, direction: Direction = Direction.OUT) -> InducedEdges:
        """Return the edges with both ends among `nodes`, which are distinct. Raises `EntityNotFound`.

        `direction` is that of a search for the nodes, whose edges a server has cached; the result is the same.
        """
        return _find_edges_among(self, nodes, direction is Direction.IN)

    def shortest_paths(
        self,
        source: int,
        target: int,
        direction: Direction,
        relations: RelationArray | None,
        most: int | None,
        limit: int,
        timeout_s: float,
    ) -> Int64 | None:
        """Return all shortest paths between two nodes, in any order: head, relation, tail and edge, (P, L, 4).

        None if no engine finds them by itself, or if it gives up, at `limit` paths or after `timeout_s`. Parallel edges
        make different paths. `most` bounds their steps.
        """
        return None

    def reached(
        self, node: int, direction: Direction, relations: RelationArray, limit: int, timeout_s: float
    ) -> NodeArray | None:
        """Return the far ends of one or more edges from a node, each once, in any order.

        None if no engine finds them by itself, or if it gives up, at more than `limit` nodes or after `timeout_s`.
        """
        return None

    # Schema

    @property
    def prefixes(self) -> Prefixes | None:
        """Return the abbreviations of IRIs in labels of an RDF graph; None elsewhere."""
        return None

    def schema(self) -> Schema:
        """Return node types and the relations between them."""
        return self._scanned_schema

    @cached_property
    def _scanned_schema(self) -> Schema:
        return _scan_schema(self)

    def holds_schema(self) -> bool:
        """True if the schema was read, or is cached, so that it needs no scan of a server's graph."""
        return True

    def keep_schema(self, cache: SchemaCache) -> None:  # noqa: B027
        """Look for a server's schema in a cache before it is read, and keep it there afterwards."""

    def watch(self, told: Callable[[str], None]) -> None:  # noqa: B027
        """Register a callback for progress lines: the part of the schema being read, and the number of nodes listed."""

    def read_ahead(self) -> None:  # noqa: B027
        """Begin to read a server's schema in the background; `schema` waits for it, and raises its errors."""

    # Where the graph and its indexes lie

    @property
    def columnar(self) -> ColumnarGraph | None:
        """Return the arrays of the graph, if this process holds them."""
        return None

    @property
    def folder(self) -> Path | None:
        """Return the graph's folder, whose indexes have the store's node numbers; None without one."""
        return None

    @property
    def checksum(self) -> str | None:
        """Return the checksum of the graph; None for one that is not saved."""
        return None

    def names_of_nodes(self) -> Texts:
        """Return the name of each node: (N,), as a column that may be mapped from a file."""
        import pyarrow as pa

        return pa.array([node.name for page in self.all_nodes() for node in page], pa.large_string())

    def close(self) -> None:  # noqa: B027
        """Release connections and processes; a graph in files has none."""

    # Names on a server

    @property
    def names_key(self) -> str:
        """Return a key that differs between graphs with other ids or names."""
        return self.name

    def named(self, texts: Sequence[str]) -> list[list[int]]:
        """Return, for each text, the numbers of the nodes that are called just so."""
        found: dict[str, list[EntityId]] = {text: [] for text in texts}
        for entity, name in chain.from_iterable(self.named_pages()):
            if name in found:
                found[name].append(entity)
        return [self.numbers(found[text]).tolist() for text in texts]

    def resembling(self, texts: Sequence[str], k: int) -> list[list[tuple[int, str]]] | None:
        """Return, for each text, number and name of up to `k` nodes with similar names, in any order.

        None if a server has no index for that.
        """
        return None

    def named_pages(self) -> Iterator[list[tuple[EntityId, str]]]:
        """Yield ids with their names and further names, in pages."""
        for page in self.all_nodes():
            yield [(node.id, node.name) for node in page]

    @property
    def vector_index(self) -> str | None:
        """Return the name of a server's vector index over the names of its nodes; None for none."""
        return None

    def embedded(self, count: int) -> list[tuple[str, Sequence[float]]]:
        """Return name and vector of up to `count` nodes in the vector index. Raises `ConfigError` if it is missing."""
        return []

    def nearest(self, vectors: npt.NDArray[np.floating], k: int) -> list[list[tuple[int, str, Sequence[float]]]]:
        """Return, for each vector, number, name and vector of up to `k` nodes near it, in any order."""
        return [[] for _ in vectors]

    # Queries

    @property
    def engines(self) -> Sequence[QueryableGraph]:
        """Return the query engines, one for each language, with the same nodes under the same ids; empty for none."""
        return ()


_PAGE = 5000
"""Nodes of one page of a scan."""


def spread_evenly(groups: Integers, most: int) -> Bools:
    """Mark up to `most` members of each group, evenly spread over it; the groups are ascending: (N,)."""
    first, last = (np.searchsorted(groups, groups, side) for side in ("left", "right"))
    rank, size = np.arange(len(groups)) - first, np.maximum(last - first, 1)
    kept: Bools = (rank * most // size != (rank - 1) * most // size) | (size <= most)
    return kept


def _sample_edges(store: GraphStore, per_relation: int) -> EdgeBatch:
    batch = EdgeBatch.concatenate(list(store.all_edges()))
    batch = batch.take(np.argsort(batch.relation, kind="stable"))
    batch = batch.take(np.flatnonzero(spread_evenly(batch.relation, per_relation)))
    return replace(batch, origin=np.arange(len(batch)), inverse=np.zeros(len(batch), np.bool_))


def _find_edges_among(store: GraphStore, nodes: NodeArray, back: bool) -> InducedEdges:
    """Return the edges with both ends among nodes, reading incoming edges if `back`, else outgoing ones."""
    batch = store.edges(nodes, Direction.IN if back else Direction.OUT)
    other = positions(nodes, batch.other)
    kept = other >= 0
    if batch.undirected is not None:  # these are found from both ends
        kept &= ~batch.undirected | (batch.head <= batch.tail)
    rows = np.flatnonzero(kept)
    if back:
        rows = rows[np.argsort(other[rows], kind="stable")]
    far, near = other.take(rows), batch.origin.take(rows)
    head, tail = (far, near) if back else (near, far)
    outgoing = np.bincount(head, minlength=len(nodes))
    undirected = None if batch.undirected is None else batch.undirected.take(rows)
    return InducedEdges(outgoing, tail, batch.relation.take(rows), batch.edge.take(rows), undirected)


def _scan_schema(store: GraphStore) -> Schema:
    """Count the types of all nodes, and the relations of all edges with the types at their ends, page by page."""
    types: dict[str, int] = {}
    properties: dict[str, set[str]] = {}
    numbers, codes = list[int](), list[int]()
    for page in store.all_nodes():
        for number, node in zip(store.numbers([node.id for node in page]).tolist(), page, strict=True):
            for kind in node.types or ("",):
                numbers.append(number)
                codes.append(types.setdefault(kind, len(types)))
                properties.setdefault(kind, set()).update(node.properties)
    order = np.argsort(numbers, kind="stable")
    owner, code = np.array(numbers, np.int64)[order], np.array(codes, np.int64)[order]
    labels, many = store.relations, max(len(types), 1)
    edges, either = np.zeros((2, len(labels)), np.int64)
    keys: list[set[str]] = [set() for _ in labels]
    heads, tails = Counter[int](), Counter[int]()
    for batch in store.all_edges():
        both = np.zeros(len(batch), np.bool_) if batch.undirected is None else batch.undirected
        edges += np.bincount(batch.relation, minlength=len(labels))
        either += np.bincount(batch.relation[both], minlength=len(labels))
        relation = np.concatenate((batch.relation, batch.relation[both])).astype(np.int64)
        for counted, end, other in ((heads, batch.head, batch.tail), (tails, batch.tail, batch.head)):
            place, row = match_rows(owner, np.concatenate((end, other[both])))
            pairs, counts = np.unique(relation[place] * many + code[row], return_counts=True)
            counted.update(dict(zip(pairs.tolist(), counts.tolist(), strict=True)))
        for kind_of, held in zip(batch.relation.tolist(), store.edge_properties(batch.edge), strict=True):
            keys[kind_of].update(held)
    names = list(types)
    ends: list[tuple[Counter[str], Counter[str]]] = [(Counter(), Counter()) for _ in labels]
    for side, counted in enumerate((heads, tails)):
        for pair, count in counted.items():
            ends[pair // many][side][names[pair % many]] = count
    relations = tuple(
        RelationSchema(
            label,
            int(edges[number]),
            _by_count(ends[number][0]),
            _by_count(ends[number][1]),
            tuple(sorted(keys[number])),
            undirected=int(either[number]),
        )
        for number, label in enumerate(labels)
    )
    counts_of = Counter(dict(zip(names, np.bincount(code, minlength=len(names)).tolist(), strict=True)))
    kinds = _by_count(counts_of)
    return Schema(
        {kind: counts_of[kind] for kind in kinds},
        relations,
        {kind: tuple(sorted(properties[kind])) for kind in kinds if properties[kind]},
    )


def _by_count(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(counts, key=lambda key: (-counts[key], key)))


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
    """Runs query text in one language."""

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


class QueryableGraph(GraphStore, QueryStore):
    """A graph that can be walked and queried."""

    @property
    def notes(self) -> str:
        """Return notes for a query's author beyond the schema, in lines; empty if there are none."""
        return ""

    @property
    def engines(self) -> Sequence[QueryableGraph]:
        """Return the store itself."""
        return (self,)


def query_notes(store: GraphStore) -> str:
    """Return notes for the author of a query beyond the graph's schema."""
    return "".join(each.notes for each in store.engines)


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
