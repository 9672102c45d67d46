"""Metapaths out of a node: grown hop by hop while they are ranked, or followed to their ends.

`grow` serves the ranking of metapaths before any of them is followed to the end: if a metapath reaches many nodes, only
a sample of them is extended, so a step out of a hub's far corner can be missed and ends are not complete. `follow`
walks the selected metapaths, with the steps of a path query.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float64, Int64
from byokg.graph.cancellation import check
from byokg.graph.columnar.folder import slots
from byokg.graph.pathql.automaton import single_steps
from byokg.graph.pathql.expander import EdgeExpander, StepOptions, steps_along
from byokg.graph.pathql.query import NameTerm
from byokg.graph.pathql.result import NameResolver
from byokg.graph.sorted_ids import changes, contains, distinct, rank_of, rows_at, sort_distinct, spread
from byokg.graph.store import Direction, EdgeBatch, GraphStore, NodeArray
from byokg.graph.traversal import Caps, expand
from byokg.types import INVERSE, EntityId, Metapath, Path

NO_TWINS: Mapping[str, str] = MappingProxyType({})

_MOST_EDGES = 1 << 20
"""Edges that metapaths are lengthened by at a time; of the relations of hubs no more are looked at."""


@dataclass(frozen=True)
class Growth:
    """P metapaths of L steps out of one node, each with the nodes it reaches.

    A step is `2 * relation number + 1` when walked from tail to head, `2 * relation number` otherwise.
    """

    steps: Int64
    """(P, L) steps."""
    bounds: Int64
    """(P + 1,) metapath p reaches ends[bounds[p]] up to ends[bounds[p + 1]]."""
    ends: NodeArray
    """Distinct node numbers of each metapath, ascending."""
    parents: Int64
    """(P,) position, in the previous growth, of the metapath that each one extends."""

    def __len__(self) -> int:
        return len(self.steps)

    def reached(self, path: int) -> NodeArray:
        """Return the nodes at the end of one metapath."""
        return self.ends[self.bounds[path] : self.bounds[path + 1]]

    def taken(self, paths: Int64) -> Growth:
        """Return some of the metapaths, by their positions in ascending order."""
        if len(paths) == len(self):
            return self
        counts = np.diff(self.bounds)[paths]
        _, place = spread(self.bounds[paths], counts)
        return Growth(self.steps[paths], np.append(0, counts.cumsum()), self.ends[place], self.parents[paths])


def start(node: int) -> Growth:
    """Return the one metapath of no steps, standing at `node`."""
    return Growth(np.empty((1, 0), np.int64), np.array([0, 1]), np.array([node], np.int64), np.zeros(1, np.int64))


def grow(store: GraphStore, growth: Growth, chosen: Sequence[int] | Int64, avoid: NodeArray, sample: int) -> Growth:
    """Extend some metapaths by every step that exists at their ends.

    Args:
        store: graph to read, in one call.
        growth: metapaths so far.
        chosen: positions in `growth` of the metapaths to extend, C of them.
        avoid: node numbers that walks do not revisit (the topic entities).
        sample: nodes of each metapath to extend; if it reaches more, this many of them, evenly spread over their
            numbers, on a server over their ids.

    Of the relations of hubs, only the first edges are read if there are more than a million in all.

    Returns:
        The extended metapaths, in the order of `chosen`, then by the label of the step. Metapaths without ends are left
        out.
    """
    frontiers = []
    for path in chosen:
        reached = growth.reached(int(path))
        if len(reached) > sample:
            reached = reached[store.lasting_order(reached)[np.linspace(0, len(reached) - 1, sample).astype(np.int64)]]
        frontiers.append(reached)
    sizes = [len(frontier) for frontier in frontiers]
    none = np.empty(0, np.int64)
    nothing = Growth(np.empty((0, growth.steps.shape[1] + 1), np.int64), np.zeros(1, np.int64), none, none)
    if sum(sizes) == 0:
        return nothing
    # A node may stand in many frontiers; its edges are fetched once, and then repeated for each.
    nodes, place = np.unique(np.concatenate(frontiers, dtype=np.int64), return_inverse=True)
    origin, step, other = _steps_out(store, nodes, np.bincount(place), avoid)
    if len(other) == 0:
        return nothing
    row, edge = rows_at(origin, place)
    step, other, owner = step.take(edge), other.take(edge), np.arange(len(sizes)).repeat(sizes).take(row)
    known = _in_order(store, step)
    place_of = np.zeros(int(known.max()) + 1, np.int64)
    place_of[known] = np.arange(len(known))
    owners, taken, ends = sort_distinct(owner, place_of.take(step), other)
    first = changes(owners, taken).nonzero()[0]
    parents = np.asarray(chosen, np.int64)[owners[first]]
    steps: Int64 = np.concatenate((growth.steps[parents], known[taken[first], None]), axis=1, dtype=np.int64)
    return Growth(steps, np.append(first, len(ends)), ends, parents)


def _steps_out(store: GraphStore, nodes: Int64, times: Int64, avoid: NodeArray) -> tuple[Int64, Int64, Int64]:
    """Return for each edge of nodes, but those to nodes to avoid, the position of its node, its step and its far end.

    If there are many, each node's counted `times`, the relations of hubs lack some.
    """
    graph = store.columnar
    if graph is not None and graph.topology.undirected is None and times @ graph.degree(nodes) <= _MOST_EDGES:
        segment, slot = slots(*graph.topology.slots_of(nodes, Direction.BOTH))
        origin, relation, inverse = segment >> 1, graph.topology.relation.take(slot), segment & 1
        other = graph.topology.other.take(slot).astype(np.int64)
    else:
        batch = _edges(store, nodes, times)
        origin, relation, inverse = batch.origin, batch.relation, batch.inverse.astype(np.int64)
        other = batch.other.astype(np.int64)
    rows = np.flatnonzero(~contains(np.sort(avoid), other))
    return origin.take(rows), (relation.astype(np.int64) << 1 | inverse).take(rows), other.take(rows)


def _edges(store: GraphStore, nodes: NodeArray, times: Int64) -> EdgeBatch:
    """Return the edges of nodes; of the relations of hubs so many that all of them, each node's `times`, stay few."""
    degrees = store.degrees(nodes)
    if degrees is None or int((times * degrees).sum()) <= _MOST_EDGES:
        return expand(store, nodes).edges
    counts = store.relation_counts(nodes)
    weight = times[counts.origin]
    order = np.argsort(counts.count, kind="stable")
    size, weight = counts.count[order], weight[order]
    left = weight[::-1].cumsum()[::-1]  # of this relation of a node and all larger ones
    total = (weight * size).cumsum() - weight * size + left * size
    # The remainder below the largest whole cap is shared among the larger ones.
    place = int(np.searchsorted(total, _MOST_EDGES, "right"))
    smaller = int((weight * size)[:place].sum())
    most = (_MOST_EDGES - smaller) // int(left[place])
    return expand(store, nodes, caps=Caps(per_relation=max(1, most))).edges


def _in_order(store: GraphStore, steps: Int64) -> Int64:
    """Return the distinct steps by label, each on the way out first: an order that no numbering changes."""
    distinct = np.flatnonzero(np.bincount(steps))
    named = store.met_relations
    return np.array(sorted(distinct.tolist(), key=lambda step: (named[step >> 1], step & 1)), np.int64)


def labels(store: GraphStore, steps: Sequence[int] | Int64) -> Metapath:
    """Spell out the steps of one metapath as relation labels."""
    return tuple(
        f"{INVERSE}{store.relations[step >> 1]}" if step & 1 else store.relations[step >> 1]
        for step in np.asarray(steps).tolist()
    )


@dataclass(frozen=True)
class _Level:
    """What all walks of one search reach with their n-th step: V vertices, those of one metapath together."""

    bounds: Int64
    """(M + 1,) the vertices of metapath m are bounds[m] up to bounds[m + 1]."""
    nodes: Int64
    """(V,) within a metapath ascending."""
    counts: Float64
    """(V,) how many walks reach it."""
    parents: Int64
    """(V,) where in the level before it each is reached from: by the first step in edge order."""
    labels: Int64
    """(V,) that step."""
    cut: npt.NDArray[np.bool_]
    """(M,) whether a cap left walks out."""


@dataclass(frozen=True)
class Walks:
    """All walks along one metapath of L hops, kept as the nodes reached at each hop.

    A walk may visit a node or an edge twice: `directed_by`, then `^directed_by` comes back to the film it left.
    """

    store: GraphStore
    metapath: Metapath
    ends: Int64
    """(M,) distinct nodes where walks end, those of most walks first, then by node number, on a server by id."""
    counts: Float64
    """(M,) how many walks end there; parallel edges count apart. Exact up to 2^53."""
    truncated: bool
    """True if a limit left walks out."""
    _moves: EdgeExpander
    _levels: tuple[_Level, ...]
    """The sources, and what each hop reaches; walks that were followed together share them."""
    _number: int
    """Which metapath of the last level this is."""

    def path(self, end: int) -> Path:
        """Return one walk that ends at node number `end`."""
        return self.paths([end])[0]

    def paths(self, ends: Sequence[int] | NodeArray) -> list[Path]:
        """Return one walk to each of P ends, the same one at every call; costs P · L whatever the fan-out.

        Raises:
            ValueError: no walk ends at one of them.
        """
        return paths_of([(self, ends)])[0]

    def _traced(self, ends: Sequence[int] | NodeArray) -> tuple[Int64, Int64]:
        """Return the nodes of one walk to each of P ends, (P, L + 1), and its steps, (P, L)."""
        hops, last = len(self.metapath), self._levels[-1]
        asked = np.asarray(ends, np.int64)
        first, stop = last.bounds[self._number : self._number + 2].tolist()
        own = last.nodes[first:stop]
        place = np.searchsorted(own, asked)
        lost = np.flatnonzero(np.append(own, -1)[place] != asked)
        if len(lost):
            raise ValueError(f"no walk along {self.metapath} ends at node number {asked[lost[0]]}")
        place += first
        nodes = np.empty((len(asked), hops + 1), np.int64)
        steps = np.empty((len(asked), hops), np.int64)
        nodes[:, hops] = asked
        for hop in range(hops, 0, -1):
            level = self._levels[hop]
            steps[:, hop - 1] = level.labels[place]
            place = level.parents[place]
            nodes[:, hop - 1] = self._levels[hop - 1].nodes[place]
        return nodes, steps


def paths_of(asked: Sequence[tuple[Walks, Sequence[int] | NodeArray]]) -> list[list[Path]]:
    """Return one walk to each of some ends of walks that were followed together; see `Walks.paths`.

    Raises:
        ValueError: no walk ends at one of them.
    """
    if not asked:
        return []
    walks = asked[0][0]
    traced = [each._traced(ends) for each, ends in asked]
    near, far, steps = (
        np.concatenate(parts)
        for parts in zip(
            *((nodes[:, :-1].ravel(), nodes[:, 1:].ravel(), steps.ravel()) for nodes, steps in traced), strict=True
        )
    )
    edges, inverse = walks._moves.walked_edges(near, far, steps)
    triples, turned = iter(edges), iter(inverse)
    sources = iter(walks.store.ids(np.concatenate([nodes[:, 0] for nodes, _ in traced])))
    return [
        [Path(next(sources), tuple(islice(triples, len(walk))), tuple(islice(turned, len(walk)))) for walk in own]
        for _, own in traced
    ]


def follow(
    store: GraphStore,
    sources: Collection[EntityId],
    metapath: Sequence[str],
    max_frontier: int | None = None,
    hub_cap: int | None = None,
    avoid: Collection[EntityId] = (),
    twins: Mapping[str, str] = NO_TWINS,
) -> Walks:
    """Walk one relation sequence out of every source; see `follow_all`."""
    return follow_all(store, sources, [metapath], max_frontier, hub_cap, avoid, twins)[0]


def follow_all(
    store: GraphStore,
    sources: Collection[EntityId],
    metapaths: Sequence[Sequence[str]],
    max_frontier: int | None = None,
    hub_cap: int | None = None,
    avoid: Collection[EntityId] = (),
    twins: Mapping[str, str] = NO_TWINS,
) -> list[Walks]:
    """Walk relation sequences out of every source, with the steps of a path query.

    Args:
        store: graph to read; one call per hop and distinct step, for any fan-out and common prefix.
        sources: start entities; naming one twice changes nothing.
        metapaths: relation labels, one per hop. A leading `^` walks a relation from tail to head; a relation whose own
            label starts with `^` is found if there is none of the label after it.
        max_frontier: nodes to extend after each hop, those of most walks, then of lowest number.
        hub_cap: edges to walk out of one node at each hop, the first in edge order.
        avoid: entities that walks may start from and never enter (topic entities, which are no answers).
        twins: relations that store the same facts the other way (`inverses.twin_relations`); a step is walked along
            both, and an edge of the twin between nodes that the relation joins already counts as no further walk.

    Returns:
        For each metapath its ends and their walks. No ends when a hop matches nothing.

    Raises:
        EntityNotFound: a source is not in the store.
        RelationNotFound: a label is not in the store.

    Source: BYOKG-RAG (arXiv:2507.04127v1), "Path Retrieval".
    """
    walked = [tuple(metapath) for metapath in metapaths]
    begun = sorted(
        {path[:hop] for path in walked for hop in range(1, len(path) + 1)}, key=lambda path: (len(path), path)
    )
    steps, index = _number_steps(store, dict.fromkeys(path[-1] for path in begun), twins)
    read = None if hub_cap is None else hub_cap + 1  # one more tells that there are more
    moves = steps_along(store, single_steps(len(store.met_relations), steps), StepOptions(most=read))
    sources_of = distinct(store.numbers(sources)).astype(np.int64)
    avoided = distinct(np.asarray(store.numbers(avoid), np.int64))
    levels = [_beginning(sources_of)]
    place_of: dict[Metapath, int] = {(): 0}
    for _, paths in groupby(begun, len):
        check()
        longer = list(paths)
        place_of |= {path: place for place, path in enumerate(longer)}
        before = np.array([place_of[path[:-1]] for path in longer])
        step, twin = np.array([index[path[-1]] for path in longer]).T
        levels.append(_lengthened(moves, levels[-1], before, (step, twin), max_frontier, hub_cap, avoided))
    found = []
    for path in walked:
        level, place = levels[len(path)], place_of[path]
        own = slice(*level.bounds[place : place + 2].tolist())
        ends, counts = level.nodes[own], level.counts[own]
        order = store.lasting_order(ends)
        order = order[np.argsort(-counts[order], kind="stable")]
        held = tuple(levels[: len(path) + 1])
        found.append(Walks(store, path, ends[order], counts[order], bool(level.cut[place]), moves, held, place))
    return found


def _number_steps(
    store: GraphStore, labels: Iterable[str], twins: Mapping[str, str]
) -> tuple[list[tuple[int, bool]], dict[str, tuple[int, int]]]:
    """Return the steps of labels and of the twins of their relations, and the index of both, -1 without a twin."""
    names = NameResolver(store, {})
    numbers: dict[tuple[int, bool], int] = {}
    index: dict[str, tuple[int, int]] = {}
    for label in labels:
        relation, turned = step = _step(store, names, label)
        twin = twins.get(store.met_relations[relation])
        both = [step] if twin is None else [step, _step(store, names, twin if turned else f"{INVERSE}{twin}")]
        first, *other = [numbers.setdefault(each, len(numbers)) for each in both]
        index[label] = (first, other[0] if other else -1)
    return list(numbers), index


def _step(store: GraphStore, names: NameResolver, label: str) -> tuple[int, bool]:
    """Return the number of a step's relation, and whether it is walked from tail to head."""
    plain = label.removeprefix(INVERSE)
    turned = plain != label and (plain in store.relations or label not in store.relations)
    return names.relation(NameTerm(plain if turned else label)), turned


def _beginning(nodes: Int64) -> _Level:
    none = np.empty(0, np.int64)
    return _Level(np.array([0, len(nodes)]), nodes, np.ones(len(nodes)), none, none, np.zeros(1, np.bool_))


def _lengthened(
    moves: EdgeExpander,
    level: _Level,
    before: Int64,
    steps: tuple[Int64, Int64],
    max_frontier: int | None,
    hub_cap: int | None,
    avoid: Int64,
) -> _Level:
    """Return the ends of N metapaths.

    Args:
        moves: single steps.
        level: ends of the metapaths without their last steps.
        before: (N,) index of the metapath that each of them extends, and
        steps: (N,) index of its last step, and of the twin of that; -1 if there is none.
        max_frontier, hub_cap: see `follow_all`.
        avoid: nodes that walks never enter, ascending.
    """
    firsts = level.bounds[before]
    owner, near = spread(firsts, level.bounds[before + 1] - firsts)
    cut = level.cut[before]
    origin, far, label = _walked(moves, level.nodes[near], steps[0][owner], hub_cap, cut, owner)
    if (other := np.flatnonzero(steps[1][owner] >= 0)).size:
        more = _walked(moves, level.nodes[near[other]], steps[1][owner[other]], hub_cap, cut, owner[other])
        span = int(max(far.max(initial=0), more[1].max(initial=0))) + 1
        fresh = np.flatnonzero(~np.isin(other[more[0]] * span + more[1], origin * span + far))
        origin, far, label = (
            np.concatenate(columns)
            for columns in ((origin, other[more[0][fresh]]), (far, more[1][fresh]), (label, more[2][fresh]))
        )
    span = int(far.max(initial=0)) + 1
    key = owner[origin] * span + far
    order = key.argsort(kind="stable")
    begins = changes(key.take(order)).nonzero()[0]
    first, walks = order.take(begins), level.counts.take(near.take(origin.take(order)))
    reached, counts = key.take(first), np.add.reduceat(walks, begins) if len(begins) else walks
    nodes = reached % span
    kept = np.flatnonzero(~contains(avoid, nodes))
    of = (reached // span)[kept]
    for large in np.flatnonzero(np.bincount(of) > max_frontier).tolist() if max_frontier is not None else ():
        own = kept[of == large]
        most = np.lexsort((nodes[own], -counts[own]))[:max_frontier]
        kept = np.sort(np.concatenate((kept[of != large], own[most])))
        of, cut[large] = (reached // span)[kept], True
    bounds = np.searchsorted(of, np.arange(len(before) + 1))
    return _Level(bounds, nodes[kept], counts[kept], near[origin[first[kept]]], label[first[kept]], cut)


def _walked(
    moves: EdgeExpander, nodes: Int64, step: Int64, hub_cap: int | None, cut: npt.NDArray[np.bool_], owner: Int64
) -> tuple[Int64, Int64, Int64]:
    """Return origin, far node and label of each edge along a step out of each node; note what `hub_cap` cuts."""
    steps = moves.forward(nodes * moves.states + step + 1)
    if hub_cap is not None and len(steps.origin) > hub_cap:
        rank = rank_of(steps.origin)
        cut[owner[steps.origin[rank >= hub_cap]]] = True
        steps = steps.take(np.flatnonzero(rank < hub_cap))
    return steps.origin, steps.far // moves.states, steps.label
