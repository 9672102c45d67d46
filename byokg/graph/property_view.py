"""A view of a graph with property values as nodes: a question's answer may be a number or a date.

`PropertyView` extends any store by one relation for each property of nodes (`population`, from a country to a number),
and for each property of edges that holds numbers or dates (`won.start`, from both ends of such an edge). Traversal then
finds values as it finds nodes. A value's id is its text in quotation marks, so equal values of different nodes are one
node; no edge leads out of a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np

from byokg.arrays import Int64
from byokg.graph.sorted_ids import distinct
from byokg.graph.store import (
    ALL_VALUES,
    Direction,
    EdgeBatch,
    GraphStore,
    NodeArray,
    NumberSpace,
    RelationArray,
    RelationCounts,
    Schema,
    spread_evenly,
)
from byokg.index.vocabulary import hash_one
from byokg.text.names import WORD
from byokg.types import NO_PROPERTIES, EntityId, Node, Properties, Value

if TYPE_CHECKING:
    from byokg.graph.rdf.terms import Prefixes
    from byokg.index.vocabulary import Texts


FIRST_VALUE = 1 << 31
"""Numbers of values are this and more; a graph has fewer nodes."""

_VALUE_BITS = 46
"""Bits of a value's hash, which is its number from there on, so that it is the same in every run and in any order."""

FIRST_EDGE = 1 << 48
"""Number of the first edge to a value."""

_SAMPLED = 2000
"""Nodes sampled for values of properties, beside those at sampled edges."""

_HOLDERS = 20_000
"""Nodes sampled besides, of rare properties, if the store has an index of them; one of each at least."""

_LONGEST = 200
"""Characters of a value that answers a question; a longer text describes its node."""

_REMEMBERED = 200_000
"""Nodes whose values are kept."""

_VALUES = 1_000_000
"""Values that are remembered at least, those met last; at most twice as many."""

_DATE = re.compile(r"-?\d{4}(-\d\d(-\d\d.*)?)?")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def value_id(value: Value) -> EntityId:
    """Return the id of a value: its text between quotation marks."""
    return EntityId(f'"{value_name(value)}"')


def value_name(value: Value) -> str:
    """Return a value as an answer shows it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def is_value(id: str) -> bool:
    """True if an id is that of a value, which exists only in a `PropertyView`."""
    return len(id) > 1 and id[0] == id[-1] == '"'


def name_of_value(id: str) -> str:
    """Return the text of a value from its id."""
    return id[1:-1]


def node_names(store: GraphStore, ids: Collection[EntityId]) -> dict[EntityId, str]:
    """Return the names of nodes, of which some may be values."""
    return {node.id: node.name for node in known_nodes(store, ids)}


def known_nodes(store: GraphStore, ids: Collection[EntityId]) -> list[Node]:
    """Return nodes, of which some may be values; a value has no type. The order is another one."""
    values = [id for id in ids if is_value(id)]
    found = store.nodes([id for id in ids if not is_value(id)] if values else ids)
    return [*found, *(Node(id, name_of_value(id)) for id in values)]


class PropertyValues:
    """Reads the values of properties and gives them numbers, which are the same in every run. Threads may share it.

    Args:
        store: the graph.
        of_nodes: number of the relation that stands for each property of nodes.
        of_edges: for each relation with properties, the number of the relation that stands for each of them.
    """

    def __init__(
        self, store: GraphStore, of_nodes: Mapping[str, int], of_edges: Mapping[int, Mapping[str, int]]
    ) -> None:
        self._store, self._of_nodes, self._of_edges = store, of_nodes, of_edges
        self.lock = RLock()
        self._met: dict[int, EntityId] = {}
        """Values by number that were met lately,"""
        self._met_before: dict[int, EntityId] = {}
        """and those before them, which are forgotten when the former are too many."""
        self._values_of: dict[int, tuple[Int64, Int64]] = {}
        self._edge_values: dict[int, tuple[Int64, Int64]] = {}

    def number(self, id: EntityId) -> int:
        """Return the number of a value, and remember whose it is; the lock is held."""
        number = FIRST_VALUE + (hash_one(id.encode(errors="surrogatepass")) >> 64 - _VALUE_BITS)
        while (known := self._met.get(number) or self._met_before.get(number)) is not None and known != id:
            number += 1  # hardly ever
        self._remember(number, id)
        return number

    def id_of(self, number: int) -> EntityId:
        """Return the value of a number that was given out."""
        id = self._met.get(number)
        if id is None:
            with self.lock:
                id = self._met.get(number) or self._met_before[number]
                self._remember(number, id)
        return id

    def _remember(self, number: int, id: EntityId) -> None:
        if len(self._met) >= _VALUES and number not in self._met:
            # Reads that return numbers again have to read values again, so that these are cached again.
            self._met, self._met_before = {}, self._met
            self._values_of, self._edge_values = {}, {}
        self._met[number] = id

    def led_to(
        self, nodes: Int64, relations: Int64 | None, sample: EdgeBatch | None = None
    ) -> tuple[Int64, Int64, Int64]:
        """Return the values that nodes lead to: position of the node, relation and number of the value.

        Args:
            nodes: numbers of nodes that are no values, N of them, distinct.
            relations: those wanted; None for all.
            sample: edges to look at in place of all that touch the nodes.
        """
        wanted = None if relations is None else frozenset(relations.tolist())
        parts: list[tuple[Int64, Int64, Int64]] = []
        if self._of_nodes and (wanted is None or not wanted.isdisjoint(self._of_nodes.values())):
            found = self._node_values(nodes)
            counts = [len(relation) for relation, _ in found]
            if sum(counts):
                origin = np.repeat(np.arange(len(nodes)), counts)
                parts.append(
                    (origin, np.concatenate([one for one, _ in found]), np.concatenate([one for _, one in found]))
                )
        kinds = [
            number
            for number, named in self._of_edges.items()
            if wanted is None or not wanted.isdisjoint(named.values())
        ]
        if kinds:
            parts += self._at_edges(nodes, np.array(kinds, np.int64), sample)
        if not parts:
            none = np.empty(0, np.int64)
            return none, none, none
        origin, relation, value = (np.concatenate(column) for column in zip(*parts, strict=True))
        if relations is not None:
            kept = np.isin(relation, relations)
            origin, relation, value = origin[kept], relation[kept], value[kept]
        return origin, relation, value

    def _node_values(self, nodes: Int64) -> list[tuple[Int64, Int64]]:
        """Return relations and numbers of the values of each node."""
        with self.lock:
            if len(self._values_of) > _REMEMBERED:
                self._values_of = {}
            known = self._values_of
            new = [number for number in nodes.tolist() if number not in known]
            if new:
                for number, node in zip(new, self._store.nodes(self._store.ids(np.array(new))), strict=True):
                    known[number] = self._interned(node.properties, self._of_nodes)
            return [known[number] for number in nodes.tolist()]

    def _at_edges(self, nodes: Int64, kinds: Int64, sample: EdgeBatch | None) -> list[tuple[Int64, Int64, Int64]]:
        """Return the values of the properties of edges that touch nodes, once for each node."""
        if sample is None:
            batch = self._store.edges(nodes, Direction.BOTH, kinds)
            near, edges, kind = batch.origin, batch.edge, batch.relation
        else:
            kept = np.isin(sample.relation, kinds)
            edges, kind = np.tile(sample.edge[kept], 2), np.tile(sample.relation[kept], 2)
            near = np.searchsorted(nodes, np.concatenate((sample.head[kept], sample.tail[kept])))
        if not len(edges):
            return []
        with self.lock:
            if len(self._edge_values) > _REMEMBERED:
                self._edge_values = {}
            known = self._edge_values
            of = dict(zip(edges.tolist(), kind.tolist(), strict=True))
            new = [edge for edge in of if edge not in known]
            for edge, properties in zip(new, self._store.edge_properties(np.array(new, np.int64)), strict=True):
                timed = {key: value for key, value in properties.items() if _measures(value)}
                known[edge] = self._interned(timed, self._of_edges.get(of[edge], {}))
            found = [known[edge] for edge in edges.tolist()]
        counts = [len(relation) for relation, _ in found]
        relation, value = (np.concatenate(column) for column in zip(*found, strict=True))
        rows = np.unique(np.stack((np.repeat(near, counts), relation, value), axis=1), axis=0)
        return [(rows[:, 0], rows[:, 1], rows[:, 2])]

    def _interned(self, properties: Properties, relations: Mapping[str, int]) -> tuple[Int64, Int64]:
        told = [
            (relations[key], self.number(value_id(value)))
            for key, value in properties.items()
            if key in relations and len(str(value)) <= _LONGEST
        ]
        return np.array([one for one, _ in told], np.int64), np.array([one for _, one in told], np.int64)


class PropertyView(GraphStore):
    """A store, and the values of its properties as nodes.

    Values are read when they are first walked to: a call to the store for the nodes, one for the edges. Threads may
    share it.

    Args:
        store: the graph.
    """

    def __init__(self, store: GraphStore) -> None:
        self.store = store
        self.source = store.source
        self._schema = store.schema()
        real = list(store.relations)
        known = set(real)
        self._own: dict[str, int] = {}
        """Number of the relation that stands for each property of nodes."""
        labels: list[str] = []
        for name in _node_properties(self._schema):
            label = name if name not in known else f"property.{name}"
            self._own[name] = len(real) + len(labels)
            labels.append(label)
        self.meanings: dict[int, str] = {}
        """Words for the relation of an edge's property: `won start`."""
        self.owners: dict[int, int] = {}
        """Relation whose edges have the property, for the relation that stands for it."""
        of_edges: dict[int, dict[str, int]] = {}
        for number, relation in enumerate(self._schema.relations):
            for name in relation.properties:
                if not name.endswith(ALL_VALUES):
                    of_edges.setdefault(number, {})[name] = len(real) + len(labels)
                    self.owners[len(real) + len(labels)] = number
                    self.meanings[len(real) + len(labels)] = f"{relation.name.rpartition('.')[2]} {name}"
                    labels.append(f"{relation.name}.{name}")
        self.real_relations = len(real)
        self._relations = [*real, *labels]
        self._space = NumberSpace(store.name)
        self._values = PropertyValues(store, self._own, of_edges)

    @property
    def prefixes(self) -> Prefixes | None:
        """Return the abbreviations of IRIs in labels."""
        return self.store.prefixes

    @property
    def empty(self) -> bool:
        """True if the graph has no properties at all."""
        return len(self._relations) == self.real_relations

    # Methods of GraphStore

    @property
    def name(self) -> str:
        """Return the graph's name for messages."""
        return self.store.name

    @property
    def relations(self) -> Sequence[str]:
        """Return the relations of the graph, then one for each property."""
        return self._relations

    def schema(self) -> Schema:
        """Return the schema of the graph."""
        return self._schema

    def entities(self) -> Iterator[EntityId]:
        """Yield the entities of the graph, without values."""
        return self.store.entities()

    def numbers(self, ids: Collection[EntityId]) -> NodeArray:
        """Return the node number of each id. Raises `EntityNotFound` for one that is neither known nor a value."""
        asked = list(ids)
        if not any(map(is_value, asked)):
            return np.asarray(self.store.numbers(asked), np.int64)
        with self._values.lock:
            known = iter(self.store.numbers([id for id in asked if not is_value(id)]).tolist())
            return np.array([self._values.number(id) if is_value(id) else next(known) for id in asked], np.int64)

    def ids(self, nodes: NodeArray) -> list[EntityId]:
        """Return the id of each node number."""
        numbers = np.asarray(nodes, np.int64)
        value = numbers >= FIRST_VALUE
        if not value.any():
            return self.store.ids(numbers)
        known = iter(self.store.ids(numbers[~value]))
        return [self._values.id_of(number) if number >= FIRST_VALUE else next(known) for number in numbers.tolist()]

    def nodes(self, ids: Collection[EntityId]) -> list[Node]:
        """Return nodes with name, type and properties, in the order of `ids`; of a value its text. Raises
        `EntityNotFound`."""
        asked = list(ids)
        known = iter(self.store.nodes([id for id in asked if not is_value(id)]))
        return [Node(id, name_of_value(id)) if is_value(id) else next(known) for id in asked]

    def edges(
        self, nodes: NodeArray, direction: Direction = Direction.BOTH, relations: RelationArray | None = None
    ) -> EdgeBatch:
        """Return the edges touching `nodes`, those to values among them, optionally of some relations only."""
        return self._edges(nodes, direction, relations, self.store.edges)

    def degrees(self, nodes: NodeArray) -> Int64 | None:
        """Return how many edges of the graph touch each of `nodes`."""
        numbers = np.asarray(nodes, np.int64)
        real = numbers < FIRST_VALUE
        known = self.store.degrees(numbers[real])
        if known is None:
            return None
        found = np.zeros(len(numbers), np.int64)
        found[real] = known
        return found

    def capped_edges(
        self, nodes: NodeArray, direction: Direction, relations: RelationArray | None, most: int
    ) -> EdgeBatch:
        """Return up to `most` edges of each relation of each node, and all to values."""
        return self._edges(nodes, direction, relations, partial(self.store.capped_edges, most=most))

    def _edges(
        self,
        nodes: NodeArray,
        direction: Direction,
        relations: RelationArray | None,
        read: Callable[[NodeArray, Direction, RelationArray | None], EdgeBatch],
    ) -> EdgeBatch:
        """Return edges that are read from the graph, and those to values."""
        numbers = np.asarray(nodes, np.int64)
        place = np.flatnonzero(numbers < FIRST_VALUE)
        wanted = None if relations is None else np.asarray(relations, np.int64)
        real = wanted if wanted is None else wanted[wanted < self.real_relations]
        virtual = wanted if wanted is None else wanted[wanted >= self.real_relations]
        some = numbers[place]
        none = np.empty(0, np.int64)
        if real is None or len(real):
            batch = read(some, direction, real)
            head, tail = batch.head.astype(np.int64), batch.tail.astype(np.int64)
            columns = [head, batch.relation.astype(np.int64), tail, batch.edge, place[batch.origin]]
            inverse, undirected = batch.inverse, batch.undirected
        else:
            columns, inverse, undirected = [none] * 5, np.empty(0, np.bool_), None
        if direction is Direction.IN or (virtual is not None and len(virtual) == 0):
            added = none
        else:
            origin, relation, value = self._values.led_to(some, virtual)
            added = origin
        if len(added):
            edge = FIRST_EDGE + (some[added] << 16) + (relation - self.real_relations)
            more = [some[added], relation, value, edge, place[added]]
            columns = [np.concatenate(pair) for pair in zip(columns, more, strict=True)]
            inverse = np.concatenate((inverse, np.zeros(len(added), np.bool_)))
            order = np.lexsort((columns[3], np.where(inverse, columns[0], columns[2]), columns[1], inverse, columns[4]))
            columns, inverse = [column[order] for column in columns], inverse[order]
            if undirected is not None:
                undirected = np.concatenate((undirected, np.zeros(len(added), np.bool_)))[order]
        head, kind, tail, edge, origin = columns
        return EdgeBatch(head, kind, tail, edge, origin, inverse, self._space, undirected)

    def relation_counts(self, nodes: NodeArray) -> RelationCounts:
        """Return how many edges of each relation of the graph touch each of `nodes`; those to values do not count."""
        numbers = np.asarray(nodes, np.int64)
        place = np.flatnonzero(numbers < FIRST_VALUE)
        counts = self.store.relation_counts(numbers[place])
        return RelationCounts(place[counts.origin], counts.relation, counts.inverse, counts.count)

    def undirected_relations(self) -> RelationArray:
        """Return the relations of the graph that have undirected edges, ascending."""
        return self.store.undirected_relations()

    def edge_properties(self, edges: Int64) -> list[Properties]:
        """Return the properties of each edge number; an edge to a value has none."""
        numbers = np.asarray(edges, np.int64)
        real = numbers < FIRST_EDGE
        known = iter(self.store.edge_properties(numbers[real]))
        return [next(known) if one else NO_PROPERTIES for one in real.tolist()]

    def sample_edges(self, per_relation: int) -> EdgeBatch:
        """Return up to `per_relation` edges of each relation, by relation; of a property, of nodes that were met."""
        batch = self.store.sample_edges(per_relation)
        ends = distinct(np.concatenate((batch.head, batch.tail)).astype(np.int64))
        alone = list(islice(self.store.entities(), _SAMPLED))
        parts = [ends, np.asarray(self.store.numbers(alone), np.int64)]
        if self._own:
            parts.append(self.store.some_holders(min(per_relation, max(1, _HOLDERS // len(self._own)))))
        met = distinct(np.concatenate(parts))
        origin, relation, value = self._values.led_to(met, None, batch)
        order = np.argsort(relation, kind="stable")
        origin, relation, value = origin[order], relation[order], value[order]
        kept = spread_evenly(relation, per_relation)
        origin, relation, value = origin[kept], relation[kept], value[kept]
        added = EdgeBatch(
            met[origin], relation, value, np.full(len(value), FIRST_EDGE), origin, np.zeros(len(value), np.bool_)
        )
        sample = EdgeBatch.concatenate([batch, added])
        return replace(
            sample, origin=np.arange(len(sample)), inverse=np.zeros(len(sample), np.bool_), space=self._space
        )

    # Where the indexes of the graph lie

    @property
    def folder(self) -> Path | None:
        """Return the graph's folder."""
        return self.store.folder

    @property
    def checksum(self) -> str | None:
        """Return the checksum of the graph."""
        return self.store.checksum

    def names_of_nodes(self) -> Texts:
        """Return the name of each node of the graph, which lies in a folder."""
        return self.store.names_of_nodes()


def viewed(store: GraphStore) -> GraphStore:
    """Return a store with its values as nodes; the store itself if it has no properties."""
    view = PropertyView(store)
    return store if view.empty else view


def without_values(store: GraphStore) -> GraphStore:
    """Return the graph behind a view of properties; any other store as it is."""
    return store.store if isinstance(store, PropertyView) else store


def _node_properties(schema: Schema) -> list[str]:
    names = dict.fromkeys(name for named in schema.node_properties.values() for name in named)
    return [name for name in names if not name.endswith(ALL_VALUES) and WORD.search(name)]


def _measures(value: Value) -> bool:
    """True if a value is a number or a date, rather than a remark."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float) or bool(_DATE.fullmatch(value) or _NUMBER.fullmatch(value))
