"""Values of one node's predicates, and descriptions of mediators.

A value is the node at the other end of an edge. A mediator is a node without a name that stands for an event or a role:
`France → governing_officials → m.0abc` means nothing by itself, so a mediator comes with the values of its own
predicates, `about`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.graph.bfsql.protocol import EDGE_FIELDS, Json, NeighborsRequest, full_edge, stub_node
from byokg.graph.cancellation import check
from byokg.graph.sorted_ids import contains, distinct
from byokg.graph.store import Direction, EdgeBatch, GraphStore, NodeArray
from byokg.graph.traversal import relation_numbers
from byokg.text.names import is_identifier
from byokg.types import EntityId, Node

_MEDIATOR_EDGES = 50
"""A node without a name that has more edges is no mediator."""

MEDIATORS, _ABOUT, _NAMES = 40, 6, 3
"""Mediators of a page with a description, predicates of each, and values of each of these."""

_READ = 20_000
"""Edges of one predicate and direction that are fetched for a few examples."""


def is_nameless(node: Node) -> bool:
    """True if a node has no name of its own, but a blank or an identifier."""
    return not node.name.strip() or is_identifier(node.name)


def nameless(nodes: Sequence[Node], asked: npt.NDArray[np.bool_] | None = None) -> list[int]:
    """Return the positions of nodes without a name, of the given ones: (N,), None for all."""
    looked_at = range(len(nodes)) if asked is None else asked.nonzero()[0].tolist()
    return [at for at in looked_at if is_nameless(nodes[at])]


def about(
    store: GraphStore, numbers: NodeArray, places: Sequence[int], known: NodeArray, ranks: Int64 | None
) -> Iterator[tuple[int, Json]]:
    """Yield descriptions of mediators among some nodes: the names at their other ends, by predicate.

    Args:
        store: the graph, read at most four times.
        numbers: (N,) node numbers.
        places: positions of nodes without a name, of which the first `MEDIATORS` are described.
        known: node numbers left out of descriptions, such as the seeds.
        ranks: (R,) places of relations by relevance; None takes them by label.

    Yields:
        The position of a mediator, and its values: those of the most relevant predicates.
    """
    places = places[:MEDIATORS]
    if not places:
        return
    own = numbers[np.array(places)]
    small = np.flatnonzero(store.relation_counts(own).degrees(len(own)) <= _MEDIATOR_EDGES)
    batch = store.edges(own[small], Direction.BOTH)
    batch = batch.take(np.flatnonzero(~contains(distinct(known), batch.other)))
    ends = store.ids(batch.other)
    names = {node.id: node.name for node in store.nodes(list(dict.fromkeys(ends))) if not is_nameless(node)}
    labels = store.relations
    found: dict[int, dict[tuple[int, str, bool], dict[str, None]]] = {}
    rows = zip(batch.origin.tolist(), batch.relation.tolist(), batch.inverse.tolist(), ends, strict=True)
    for origin, relation, inverse, end in rows:
        if (name := names.get(end)) is None:
            continue
        said = found.setdefault(origin, {})
        if inverse and any(name in some for (_, _, back), some in said.items() if not back):
            continue  # many graphs hold each edge in both directions
        rank = 0 if ranks is None else int(ranks[relation])
        said.setdefault((rank, labels[relation], inverse), {})[name] = None
    for origin, said in found.items():
        chosen = sorted(said)[:_ABOUT]
        texts = {f"^{label}" if back else label: _few(list(said[rank, label, back])) for rank, label, back in chosen}
        yield places[int(small[origin])], texts


def _few(names: Sequence[str]) -> str | list[str]:
    """Return one name as it is, and of several the first."""
    return names[0] if len(names) == 1 else list(names[:_NAMES])


@dataclass(frozen=True)
class PredicateValues:
    """The values of one predicate of a node, in one direction."""

    predicate: str
    direction: str
    """`out` if the node is the subject, `in` if it is the object, `both` if the edges are undirected."""
    count: int
    values: list[Json]
    """Each a node, with the properties of the edge; in the order of ids. Empty if there are too many to read."""

    def as_json(self, start: int, stop: int) -> Json:
        """Return some of the values."""
        return {
            "predicate": self.predicate,
            "direction": self.direction,
            "count": self.count,
            "values": self.values[start:stop],
        }


def groups(
    store: GraphStore, node: EntityId, request: NeighborsRequest, ranks: Int64 | None
) -> list[tuple[int, bool, int]]:
    """Return predicate, direction and number of the edges of a node, in the order of output.

    Requested predicates keep the request's order; others go by relevance, then the rarer first, since they inform more.

    Raises:
        RelationNotFound: a predicate is not in the graph.
    """
    numbers = store.numbers([node])
    wanted = relation_numbers(store, request.predicates or None)
    order = {} if wanted is None else {number: at for at, number in enumerate(wanted.tolist())}
    counts = store.relation_counts(numbers)
    columns = (counts.relation.tolist(), counts.inverse.tolist(), counts.count.tolist())
    met = [group for group in zip(*columns, strict=True) if wanted is None or group[0] in order]
    found = [group for group in met if request.direction == "both" or group[1] == (request.direction == "in")]
    if request.direction == "in":  # undirected edges come in as well, and are counted as edges that go out
        either = set(store.undirected_relations().tolist()) & {relation for relation, *_ in met}
        coming = {relation: len(store.edges(numbers, Direction.IN, np.array([relation]))) for relation in either}
        found = [group for group in found if group[0] not in either]
        found += [(relation, True, count) for relation, count in coming.items() if count]
    labels = store.relations

    def key(group: tuple[int, bool, int]) -> tuple[object, ...]:
        relation, inverse, count = group
        rank = order.get(relation, 0) if ranks is None or order else int(ranks[relation])
        return rank, count if not order else 0, labels[relation], inverse

    return sorted(found, key=key)


def values(
    store: GraphStore, node: EntityId, group: tuple[int, bool, int], few: int | None, ranks: Int64 | None
) -> PredicateValues:
    """Return the values of one group: all of them, or the first few.

    Args:
        store: the graph.
        node: owner of the values.
        group: predicate, direction and number of edges, as `groups` returns them.
        few: wanted number of examples; None reads everything.
        ranks: for descriptions of mediators.
    """
    relation, inverse, count = group
    check()
    direction, label = Direction.IN if inverse else Direction.OUT, store.relations[relation]
    way = "in" if inverse else "out"
    if relation in store.undirected_relations() and store.schema().relations[relation].symmetric:
        way = "both"
    if few is not None and count > _READ:
        return PredicateValues(label, way, count, [])
    batch = store.edges(store.numbers([node]), direction, np.array([relation]))
    ids = store.ids(batch.other)
    edges = batch.edge.tolist()
    order = sorted(range(len(ids)), key=lambda at: (ids[at], edges[at]))[:few]
    return PredicateValues(label, way, count, _items(store, batch.take(np.array(order, np.int64)), node, ranks))


def _items(store: GraphStore, batch: EdgeBatch, node: EntityId, ranks: Int64 | None) -> list[Json]:
    """Return the far ends of some edges, with the edges' properties."""
    numbers = batch.other
    nodes = store.nodes(store.ids(numbers))
    fields: Collection[str] = EDGE_FIELDS
    items = []
    for end, said in zip(nodes, store.edge_properties(batch.edge), strict=True):
        properties = {key: value for key, value in full_edge(node, "", end.id, said).items() if key not in fields}
        items.append({**stub_node(end), **properties})
    for at, told in about(store, numbers, nameless(nodes), store.numbers([node]), ranks):
        items[at]["about"] = told
    return items
