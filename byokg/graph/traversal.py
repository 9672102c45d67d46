"""Walking any `GraphStore`: one hop, k hops, or along one metapath; paths between nodes are found by `paths`.

Each function asks the store for edges once per hop, whatever the fan-out, and works on the arrays it answers. A dead
end is an empty result, not an error. Where a cap left something out, the result says `truncated`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byokg.errors import RelationNotFound, StoresMixed
from byokg.graph.int_sets import changes, contains, distinct, group_of
from byokg.graph.stopping import check
from byokg.graph.store import Direction, EdgeBatch, GraphStore, NodeArray, NumberSpace, RelationArray
from byokg.types import INVERSE, EntityId, Metapath, Path, Triple

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


# One hop


def neighbours(
    store: GraphStore,
    ids: Collection[EntityId],
    direction: Direction = Direction.BOTH,
    relations: Collection[str] | None = None,
) -> EdgeBatch:
    """Return the edges that touch some entities; `triples` spells them out.

    Args:
        store: graph to read.
        ids: entities; `EdgeBatch.origin` counts them in the order given.
        direction: which edges, seen from the entities.
        relations: labels to keep; None keeps all.

    Raises:
        EntityNotFound: an id is not in the store.
        RelationNotFound: a label is not in the store.
    """
    return store.edges(store.numbers(ids), direction, relation_numbers(store, relations))


def triples(store: GraphStore, batch: EdgeBatch) -> list[Triple]:
    """Spell out edges with ids, labels and properties, in the order of the batch."""
    labels = store.relations
    return [
        Triple(head, labels[relation], tail, edge, properties)
        for head, relation, tail, edge, properties in zip(
            store.ids(batch.head),
            batch.relation.tolist(),
            store.ids(batch.tail),
            batch.edge.tolist(),
            store.edge_properties(batch.edge),
            strict=True,
        )
    ]


def relation_numbers(store: GraphStore, labels: Collection[str] | None) -> RelationArray | None:
    """Return the number of each label, None for None. Raises `RelationNotFound`."""
    return None if labels is None else np.array([_relation_number(store, label) for label in labels], np.int64)


def _relation_number(store: GraphStore, label: str) -> int:
    try:
        return store.relations.index(label)
    except ValueError as error:
        raise RelationNotFound(label, store.name, store.relations) from error


# Several hops, any relation


@dataclass(frozen=True)
class ReachedEdges:
    """The E edges within some hops of the sources, each once, by hop and then in edge order."""

    truncated_hops: tuple[bool, ...]
    """For each hop taken, whether a cap left something out."""
    edges: EdgeBatch
    """`origin` counts `nodes`, from which each edge was found."""
    hops: Int64
    """(E,) the hop at which each edge was found, from 1."""
    nodes: NodeArray
    """The nodes whose edges were asked for: the sources, then those reached with fewer hops than were allowed."""

    @property
    def truncated(self) -> bool:
        """Tell whether any hop left something out."""
        return any(self.truncated_hops)


def k_hop_edges(
    store: GraphStore,
    ids: Collection[EntityId],
    hops: int,
    direction: Direction = Direction.BOTH,
    relations: Collection[str] | None = None,
    per_hop_cap: int | None = None,
    per_node_cap: int | None = None,
    per_relation_cap: int | None = None,
) -> ReachedEdges:
    """Find every edge within `hops` hops; `triples` spells them out.

    Args:
        store: graph to read.
        ids: where to start.
        hops: edges to walk at most.
        direction: which edges to walk, seen from the node left.
        relations: labels to walk; None walks all.
        per_hop_cap: new nodes to go on from after each hop, those of lowest number.
        per_node_cap: edges to walk out of one node, the first in edge order.
        per_relation_cap: edges of one relation and direction to walk out of one node, the first in edge order.

    Returns:
        The edges walked. Where one is met from both of its ends, the first time counts.

    Raises:
        EntityNotFound: an id is not in the store.
        RelationNotFound: a label is not in the store.
    """
    wanted = relation_numbers(store, relations)
    frontier = distinct(store.numbers(ids))
    left = frontier[:0]
    walked: list[tuple[EdgeBatch, Int64]] = []
    cuts: list[bool] = []
    nodes = [left]
    for _ in range(hops):
        check()
        batch, cut = cap(store.edges(frontier, direction, wanted), per_relation_cap, per_relation=True)
        batch, cut_more = cap(batch, per_node_cap, per_relation=False)
        cuts.append(cut or cut_more)
        if direction is Direction.BOTH and not any(cuts):
            # An edge to a node left earlier was met from there; one inside the frontier is met from both ends now.
            rows = (group_of((frontier, left), batch.other) + batch.inverse < 2).nonzero()[0]
        else:
            rows = np.arange(len(batch))
        walked.append((batch, rows))
        nodes.append(frontier)
        if len(cuts) == hops:
            break
        left = distinct(np.concatenate((left, frontier)))
        frontier = distinct(batch.other)
        frontier = frontier[~contains(left, frontier)]
        if per_hop_cap is not None and len(frontier) > per_hop_cap:
            frontier, cuts[-1] = frontier[:per_hop_cap], True
        if len(frontier) == 0:
            break
    edges, hop_of = join(walked, [len(frontier) for frontier in nodes[1:]])
    if direction is Direction.BOTH and any(cuts):
        # Caps may have left out an edge at one of its ends, so every edge is looked at.
        _, first = np.unique(edges.edge, return_index=True)
        first.sort()
        edges, hop_of = select(edges, first), hop_of[first]
    return ReachedEdges(tuple(cuts), edges, hop_of, np.concatenate(nodes))


def join(parts: Sequence[tuple[EdgeBatch, Int64]], sizes: Sequence[int]) -> tuple[EdgeBatch, Int64]:
    """Put rows of one store's batches one behind the other, as if all their nodes had been asked about together.

    Args:
        parts: what the store answered, and which rows of it.
        sizes: how many nodes each was asked about, so that `origin` can go on counting.

    Returns:
        The batch, and for each edge which part it came from, counted from 1: (E,).

    Raises:
        StoresMixed: they come from two stores.
    """
    counts = [len(rows) for _, rows in parts]
    bounds = np.cumsum([0, *counts]).tolist()

    def column(name: str, kind: type[np.generic] = np.int64) -> npt.NDArray[Any]:
        arrays = [getattr(batch, name) for batch, _ in parts]
        whole = np.empty(bounds[-1], np.result_type(*arrays) if arrays else kind)
        for array, (_, rows), start, stop in zip(arrays, parts, bounds, bounds[1:], strict=False):
            if array.dtype == whole.dtype:
                np.take(array, rows, out=whole[start:stop], mode="clip")  # "raise" would take through a copy
            else:
                whole[start:stop] = array.take(rows)
        return whole

    origin = column("origin")
    for start, stop, before in zip(bounds, bounds[1:], np.cumsum([0, *sizes]).tolist(), strict=False):
        origin[start:stop] += before
    edges = EdgeBatch(
        column("head"),
        column("relation"),
        column("tail"),
        column("edge"),
        origin,
        column("inverse", np.bool_),
        _one_space([batch for batch, _ in parts]),
    )
    return edges, np.repeat(np.arange(1, len(parts) + 1), counts)


# Paths


@dataclass(frozen=True)
class PathRows:
    """P paths, or beginnings of paths, of L edges each."""

    nodes: NodeArray
    """(P, L + 1)."""
    relation: npt.NDArray[np.integer]
    """(P, L)."""
    edge: Int64
    """(P, L)."""
    inverse: npt.NDArray[np.bool_]
    """(P, L)."""


def spelled_paths(store: GraphStore, tables: Sequence[PathRows]) -> list[list[Path]]:
    """Spell out tables of paths with ids, labels and properties, asking the store once for all of them."""
    ids = iter(store.ids(_flat([rows.nodes for rows in tables])))
    edges = _flat([rows.edge for rows in tables])
    numbers, properties = iter(edges.tolist()), iter(store.edge_properties(edges))
    labels = store.relations
    spelled = []
    for rows in tables:
        paths = []
        for relations, inverse in zip(rows.relation.tolist(), rows.inverse.tolist(), strict=True):
            visited = [next(ids) for _ in range(len(relations) + 1)]
            triples = []
            for at, relation in enumerate(relations):
                head, tail = (visited[at + 1], visited[at]) if inverse[at] else (visited[at], visited[at + 1])
                triples.append(Triple(head, labels[relation], tail, next(numbers), next(properties)))
            paths.append(Path(visited[0], tuple(triples), tuple(inverse)))
        spelled.append(paths)
    return spelled


def _flat(tables: Sequence[npt.NDArray[np.integer]]) -> Int64:
    return np.concatenate([np.empty(0, np.int64), *(table.ravel() for table in tables)])


# One metapath


@dataclass(frozen=True)
class Walks:
    """All walks along one metapath of L hops, kept as the nodes reached at each hop.

    A walk may visit a node or an edge twice: `directed_by`, then `^directed_by` comes back to the film it left.
    """

    store: GraphStore
    metapath: Metapath
    ends: NodeArray
    """(M,) distinct nodes where walks end, those of most walks first, then by node number."""
    counts: Float64
    """(M,) how many walks end there; parallel edges count apart. Exact up to 2^53."""
    frontiers: tuple[NodeArray, ...]
    """L + 1 arrays of distinct node numbers, ascending: the sources, then what each hop reaches."""
    truncated: bool
    """True where a cap left walks out."""
    _inverse: tuple[bool, ...]
    _edges: tuple[Int64, ...]
    """For each hop, one edge by which each node of the next frontier is reached: the first in edge order."""
    _parents: tuple[Int64, ...]
    """For each hop, where in the frontier before it that edge leaves from."""

    def path(self, end: int) -> Path:
        """Return one walk that ends at node number `end`."""
        return self.paths([end])[0]

    def paths(self, ends: Sequence[int] | NodeArray) -> list[Path]:
        """Return one walk to each of P ends, the same one at every call; costs P · L whatever the fan-out.

        Raises:
            ValueError: no walk ends at one of them.
        """
        asked = np.asarray(ends, np.int64)
        places = np.searchsorted(self.frontiers[-1], asked)
        lost = np.flatnonzero(np.append(self.frontiers[-1], -1)[places] != asked)
        if len(lost):
            raise ValueError(f"no walk along {self.metapath} ends at node number {asked[lost[0]]}")
        hops = len(self.metapath)
        nodes = np.empty((hops + 1, len(asked)), np.int64)
        edges = np.empty((hops, len(asked)), np.int64)
        for hop in range(hops, 0, -1):
            nodes[hop] = self.frontiers[hop][places]
            edges[hop - 1] = self._edges[hop - 1][places]
            places = self._parents[hop - 1][places]
        nodes[0] = self.frontiers[0][places]
        numbers = [_relation_number(self.store, _split_step(self.store, step)[0]) for step in self.metapath]
        shape = (len(asked), hops)
        steps = PathRows(nodes.T, np.broadcast_to(numbers, shape), edges.T, np.broadcast_to(self._inverse, shape))
        (paths,) = spelled_paths(self.store, [steps])
        return paths


def follow_metapath(
    store: GraphStore,
    sources: Collection[EntityId],
    metapath: Sequence[str],
    max_frontier: int | None = None,
    hub_cap: int | None = None,
    avoid: Collection[EntityId] = (),
) -> Walks:
    """Walk one relation sequence out of every source.

    Args:
        store: graph to read; asked once per hop, whatever the fan-out.
        sources: start entities; naming one twice changes nothing.
        metapath: L relation labels, one per hop; a leading `^` walks the relation from tail to head. A relation whose
            own label starts with `^` is found when there is none of the label after it.
        max_frontier: nodes to go on from after each hop, those of most walks, then of lowest number.
        hub_cap: edges to walk out of one node at each hop, the first in edge order.
        avoid: entities that walks may start from and never come to (topic entities, which are no answers).

    Returns:
        The ends and how they are reached. No ends when a hop matches nothing.

    Raises:
        EntityNotFound: a source is not in the store.
        RelationNotFound: a label is not in the store.

    Source: BYOKG-RAG (arXiv:2507.04127v1), "Path Retrieval".
    """
    steps = [_split_step(store, step) for step in metapath]
    frontiers: list[NodeArray] = [np.unique(store.numbers(sources))]
    counts = np.ones(len(frontiers[0]))
    avoided = store.numbers(avoid)
    edges, parents, truncated = [], [], False
    for label, inverse in steps:
        check()
        relation = np.array([_relation_number(store, label)])
        batch = store.edges(frontiers[-1], Direction.IN if inverse else Direction.OUT, relation)
        batch, cut = cap(batch, hub_cap, per_relation=True)
        reached, first, group = np.unique(batch.other, return_index=True, return_inverse=True)
        counts = np.bincount(group, counts[batch.origin], len(reached)).astype(np.float64)
        if len(avoided):
            kept = np.flatnonzero(np.isin(reached, avoided, invert=True, kind="sort"))
            reached, first, counts = reached[kept], first[kept], counts[kept]
        if max_frontier is not None and len(reached) > max_frontier:
            kept = np.sort(np.lexsort((reached, -counts))[:max_frontier])
            reached, first, counts, cut = reached[kept], first[kept], counts[kept], True
        frontiers.append(reached)
        edges.append(batch.edge[first])
        parents.append(batch.origin[first])
        truncated |= cut
    order = np.lexsort((frontiers[-1], -counts))
    return Walks(
        store=store,
        metapath=tuple(metapath),
        ends=frontiers[-1][order],
        counts=counts[order],
        frontiers=tuple(frontiers),
        truncated=truncated,
        _inverse=tuple(inverse for _, inverse in steps),
        _edges=tuple(edges),
        _parents=tuple(parents),
    )


def _split_step(store: GraphStore, step: str) -> tuple[str, bool]:
    """Return the relation label of a metapath step, and whether it is walked from tail to head."""
    if not step.startswith(INVERSE):
        return step, False
    label = step.removeprefix(INVERSE)
    if label not in store.relations and step in store.relations:
        return step, False
    return label, True


# Caps, and putting batches together


def cap(batch: EdgeBatch, limit: int | None, per_relation: bool) -> tuple[EdgeBatch, bool]:
    """Keep the first `limit` edges of each node, or of each node, direction and relation; tell whether that cut any."""
    if limit is None or len(batch) <= limit:
        return batch, False
    # The batch is ordered by node, direction and relation, so what is capped together stands together.
    together = (batch.origin, batch.inverse, batch.relation) if per_relation else (batch.origin,)
    starts = np.flatnonzero(changes(*together))
    rank = np.arange(len(batch)) - np.repeat(starts, np.diff(starts, append=len(batch)))
    kept = np.flatnonzero(rank < limit)
    return select(batch, kept), len(kept) < len(batch)


def select(batch: EdgeBatch, rows: Int64 | slice) -> EdgeBatch:
    """Return some edges of a batch, in the order asked."""
    return EdgeBatch(
        batch.head[rows],
        batch.relation[rows],
        batch.tail[rows],
        batch.edge[rows],
        batch.origin[rows],
        batch.inverse[rows],
        batch.space,
    )


def _one_space(batches: Sequence[EdgeBatch]) -> NumberSpace | None:
    """Return whose numbers these batches hold, all of them the same store's."""
    spaces = {id(batch.space): batch.space for batch in batches}
    if len(spaces) > 1:
        one, other = (space.store if space else "no store" for space in list(spaces.values())[:2])
        raise StoresMixed(one, other)
    return batches[0].space if batches else None
