"""Metapaths out of a node, grown hop by hop, and the shortest paths between given nodes.

`grow` is for ranking metapaths before any of them is followed to the end: where a metapath reaches many nodes, only a
sample of them is walked on from, so a step out of a hub's far corner can be missed and ends are not complete. Follow
the metapath that wins with `traversal.follow_metapath`.

`shortest_paths` searches from both ends. Each pair of a source and a target is treated on its own, but all pairs are
searched together: one store call takes several sources, or several targets, one hop further, of each pair the end that
has met fewer nodes so far. The paths of a pair come in order of length, and those of one length in the order in which
a depth-first search over the store's edges would meet them. So which paths are found depends neither on the other
pairs nor on which end was searched deeper.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from byokg.graph.int_sets import changes, common, contains, distinct, sort_distinct
from byokg.graph.stopping import check
from byokg.graph.store import Direction, EdgeBatch, GraphStore, NodeArray, RelationArray
from byokg.graph.traversal import PathRows, cap, relation_numbers, select, spelled_paths
from byokg.types import INVERSE, EntityId, Metapath, Path

Int64 = npt.NDArray[np.int64]


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

    def __len__(self) -> int:
        return len(self.steps)

    def reached(self, path: int) -> NodeArray:
        """Return the nodes at the end of one metapath."""
        return self.ends[self.bounds[path] : self.bounds[path + 1]]


def start(node: int) -> Growth:
    """Return the one metapath of no steps, standing at `node`."""
    return Growth(np.empty((1, 0), np.int64), np.array([0, 1]), np.array([node], np.int64))


def grow(store: GraphStore, growth: Growth, chosen: Sequence[int] | Int64, avoid: NodeArray, sample: int) -> Growth:
    """Lengthen some metapaths by every step that exists out of where they end.

    Args:
        store: graph to read, asked once.
        growth: what was reached so far.
        chosen: positions in `growth` of the metapaths to lengthen, C of them.
        avoid: node numbers that walks do not come back to (the topic entities).
        sample: nodes of each metapath to walk on from; if it reaches more, this many of them, evenly spread.

    Returns:
        The lengthened metapaths, in the order of `chosen`, then by step. Metapaths that reach nothing are left out.
    """
    frontiers = []
    for path in chosen:
        reached = growth.reached(int(path))
        if len(reached) > sample:
            reached = reached[np.linspace(0, len(reached) - 1, sample).astype(np.int64)]
        frontiers.append(reached)
    sizes = [len(frontier) for frontier in frontiers]
    nothing = Growth(np.empty((0, growth.steps.shape[1] + 1), np.int64), np.zeros(1, np.int64), np.empty(0, np.int64))
    if sum(sizes) == 0:
        return nothing
    # A node may stand in many frontiers; its edges are fetched once, and then repeated for each.
    nodes, place = np.unique(np.concatenate(frontiers), return_inverse=True)
    batch = store.edges(nodes, Direction.BOTH)
    other = batch.other.astype(np.int64)
    step = batch.relation.astype(np.int64) << 1 | batch.inverse
    kept = np.ones(len(other), np.bool_)
    for node in np.asarray(avoid).tolist():
        kept &= other != node
    other, step, origin = other[kept], step[kept], batch.origin[kept]
    first, last = np.searchsorted(origin, (place, place + 1))
    counts = last - first
    edge = np.arange(counts.sum()) + np.repeat(first - counts.cumsum() + counts, counts)
    other, step, owner = other[edge], step[edge], np.repeat(np.repeat(np.arange(len(sizes)), sizes), counts)
    if len(other) == 0:
        return nothing
    owners, taken, ends = sort_distinct(owner, step, other)
    first = np.flatnonzero(changes(owners, taken))
    parents = np.asarray(chosen, np.int64)[owners[first]]
    steps: Int64 = np.concatenate((growth.steps[parents], taken[first, None]), axis=1, dtype=np.int64)
    return Growth(steps, np.append(first, len(ends)), ends)


def labels(store: GraphStore, steps: Sequence[int] | Int64) -> Metapath:
    """Spell out the steps of one metapath as relation labels."""
    return tuple(
        f"{INVERSE}{store.relations[step >> 1]}" if step & 1 else store.relations[step >> 1]
        for step in np.asarray(steps).tolist()
    )


Kind = TypeVar("Kind", bound=np.generic)

_ROWS = (1 << 12, 1 << 20)
"""Partial paths kept while paths that visit nodes twice are sorted out; the second where the first was too few."""

_REVERSED = {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT, Direction.BOTH: Direction.BOTH}


@dataclass(frozen=True)
class PairPaths:
    """The paths found from one source to one target, shortest first."""

    source: EntityId
    target: EntityId
    paths: tuple[Path, ...]
    truncated: bool = False
    """True where a cap or limit may have left a path out."""


def shortest_paths(
    store: GraphStore,
    sources: Collection[EntityId],
    targets: Collection[EntityId],
    k: int = 1,
    max_hops: int = 4,
    relations: Collection[str] | None = None,
    direction: Direction = Direction.BOTH,
    per_node_cap: int | None = None,
) -> list[PairPaths]:
    """Find the `k` shortest paths from every source to every target.

    Args:
        store: graph to read, at most twice for each hop.
        sources: where paths start; naming one twice changes nothing.
        targets: where paths end.
        k: paths of each pair. They visit no node twice; with k above 1 they may differ in length, and in one edge only.
        max_hops: edges in a path at most.
        relations: labels to walk; None walks all.
        direction: which way edges are walked, seen from the source.
        per_node_cap: edges to walk out of one node, and into one node, the first in edge order; None walks all.

    Returns:
        One entry for each pair, by source and then by target. A node has one path to itself, of no edges.

    Raises:
        EntityNotFound: an id is not in the store.
        RelationNotFound: a label is not in the store.
    """
    search = _Search(store, sources, targets, k, relation_numbers(store, relations), direction, per_node_cap)
    return search.run(max_hops)


@dataclass(frozen=True)
class _Layer:
    """The edges that lead from one frontier to the next."""

    frontier: NodeArray
    """Nodes left, ascending."""
    batch: EdgeBatch
    """Their edges; `origin` counts the frontier."""
    other: NodeArray
    """(E,) the node each edge leads to."""


class _Side:
    """The search from one source, or from one target."""

    def __init__(self, node: int, once: bool) -> None:
        self.start = np.array([node], np.int64)
        self.frontier: NodeArray = self.start
        self.layers: list[_Layer] = []
        """One for each hop taken."""
        self.truncated = False
        self._once = once
        self._seen: NodeArray = self.start

    def met(self, hops: int) -> NodeArray:
        """Return the nodes met at some hop, ascending."""
        return self.layers[hops].frontier if hops < len(self.layers) else self.frontier

    def grow(self, batch: EdgeBatch, truncated: bool) -> None:
        """Go one hop further along the edges of the frontier."""
        other = batch.other
        # No path comes back to where it starts. Shortest paths come back to no node at all, which ends the search.
        fresh = distinct(other)
        fresh = fresh[~contains(self._seen, fresh)]
        self.layers.append(_Layer(self.frontier, batch, other))
        if self._once:
            self._seen = distinct(np.concatenate((self._seen, fresh)))
        self.frontier = fresh
        self.truncated |= truncated


@dataclass(frozen=True)
class _Steps:
    """Edges that may be the step of a path at one place, in the order of a search from the source."""

    near: NodeArray
    far: NodeArray
    relation: RelationArray
    edge: Int64
    inverse: npt.NDArray[np.bool_]


def _standing(node: int) -> PathRows:
    """Return the beginning of a path at a node, of no edges."""
    none = np.empty((1, 0), np.int64)
    return PathRows(np.array([[node]], np.int64), none, none, np.empty((1, 0), np.bool_))


def _extended(rows: PathRows, steps: _Steps, limit: int) -> tuple[PathRows, bool]:
    """Return the first `limit` continuations by one step to a node not visited; tell whether that cut any."""
    ends = rows.nodes[:, -1]
    starts = np.searchsorted(steps.near, ends)
    bounds = (np.searchsorted(steps.near, ends, "right") - starts).cumsum()
    total = int(bounds[-1]) if len(bounds) else 0
    # The last row that has room for all of its continuations is the last one that is continued.
    taken = np.arange(min(total, limit))
    row = np.searchsorted(bounds, taken, "right")
    step = taken - np.concatenate(([0], bounds))[row] + starts[row]
    fresh = (rows.nodes[row] != steps.far[step][:, None]).all(axis=1)
    row, step = row[fresh], step[fresh]
    longer = PathRows(
        _longer(rows.nodes, row, steps.far[step]),
        _longer(rows.relation, row, steps.relation[step]),
        _longer(rows.edge, row, steps.edge[step]),
        _longer(rows.inverse, row, steps.inverse[step]),
    )
    return longer, total > limit


def _longer(table: npt.NDArray[Kind], row: Int64, column: npt.NDArray[np.generic]) -> npt.NDArray[Kind]:
    """Return some rows with one more column."""
    longer = np.empty((len(row), table.shape[1] + 1), table.dtype)
    longer[:, :-1], longer[:, -1] = table[row], column
    return longer


class _Search:
    """All pairs of some sources and targets while they are being searched."""

    def __init__(
        self,
        store: GraphStore,
        sources: Collection[EntityId],
        targets: Collection[EntityId],
        k: int,
        relations: RelationArray | None,
        direction: Direction,
        per_node_cap: int | None,
    ) -> None:
        self._store, self._k, self._relations = store, k, relations
        self._cap = per_node_cap
        self._ids = list(dict.fromkeys(sources)), list(dict.fromkeys(targets))
        self._ways = direction, _REVERSED[direction]
        # The shortest paths alone need each node once; others may come to it by way of more hops.
        self._sides = [
            [_Side(node, once=k == 1) for node in store.numbers(ids).tolist()] if ids else [] for ids in self._ids
        ]
        self._found: dict[tuple[int, int], list[PathRows]] = {
            (source, target): [] for source in range(len(self._ids[0])) for target in range(len(self._ids[1]))
        }
        self._cut: set[tuple[int, int]] = set()

    def run(self, max_hops: int) -> list[PairPaths]:
        """Search, and spell out what was found."""
        open_: dict[tuple[int, int], int] = {}  # and up to which length each pair has been joined
        for pair in self._found:
            source, target = self._pair(pair)
            if source.start[0] == target.start[0]:
                self._found[pair].append(_standing(int(source.start[0])))
            elif self._k > 0:
                open_[pair] = 0
        while open_:
            check()
            self._grow(open_)
            for pair, joined in list(open_.items()):
                source, target = self._pair(pair)
                together = len(source.layers) + len(target.layers)
                for length in range(joined + 1, min(together, max_hops) + 1):
                    self._join(pair, length)
                    if self._lacking(pair) == 0:
                        break
                open_[pair] = together
                ended = len(source.frontier) == 0 or len(target.frontier) == 0 or together >= max_hops
                if ended or self._lacking(pair) == 0:
                    del open_[pair]
        return self._spelled()

    def _lacking(self, pair: tuple[int, int]) -> int:
        """Return how many paths are still to be found."""
        return self._k - sum(len(rows.nodes) for rows in self._found[pair])

    def _pair(self, pair: tuple[int, int]) -> tuple[_Side, _Side]:
        return self._sides[0][pair[0]], self._sides[1][pair[1]]

    def _grow(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Take the smaller side of each pair one hop further, with one call to the store for each end."""
        chosen: tuple[set[int], set[int]] = set(), set()
        for pair in pairs:
            source, target = self._pair(pair)
            end = int(len(target.frontier) < len(source.frontier))
            chosen[end].add(pair[end])
        for end in (0, 1):
            check()
            sides = [self._sides[end][at] for at in sorted(chosen[end])]
            if not sides:
                continue
            batch = self._store.edges(
                np.concatenate([side.frontier for side in sides]), self._ways[end], self._relations
            )
            bounds = np.cumsum([0, *(len(side.frontier) for side in sides)])
            cuts = np.searchsorted(batch.origin, bounds).tolist()
            for number, side in enumerate(sides):
                part = select(batch, slice(cuts[number], cuts[number + 1]))
                part = replace(part, origin=part.origin - bounds[number])
                side.grow(*cap(part, self._cap, per_relation=False))

    def _join(self, pair: tuple[int, int], length: int) -> None:
        """Find the paths of one pair that have so many edges."""
        source, target = self._pair(pair)
        hops = min(len(source.layers), length)
        forth, back = source.layers[:hops], target.layers[: length - hops]
        meeting = common(source.met(hops), target.met(length - hops))
        if len(meeting) == 0:
            return
        steps = [_forward(layer, rows) for layer, rows in _pruned(forth, meeting)[::-1]]
        steps += [_backward(layer, rows) for layer, rows in _pruned(back, meeting)]
        wanted = self._lacking(pair)
        # Paths of the first length visit no node twice, so no beginning is in vain.
        limits = (wanted,) if not self._found[pair] else tuple(max(limit, wanted) for limit in _ROWS)
        for limit in limits:
            rows, cut = _standing(int(source.start[0])), False
            for step in steps:
                check()
                rows, cut_here = _extended(rows, step, limit)
                cut |= cut_here
            if not cut or len(rows.nodes) >= wanted:
                break
        if cut and len(rows.nodes) < wanted:
            self._cut.add(pair)
        first = slice(wanted)
        self._found[pair].append(
            PathRows(rows.nodes[first], rows.relation[first], rows.edge[first], rows.inverse[first])
        )

    def _spelled(self) -> list[PairPaths]:
        spelled = iter(spelled_paths(self._store, [rows for found in self._found.values() for rows in found]))
        result = []
        for pair, found in self._found.items():
            paths = tuple(path for _ in found for path in next(spelled))
            truncated = pair in self._cut or (len(paths) < self._k and any(side.truncated for side in self._pair(pair)))
            result.append(PairPaths(self._ids[0][pair[0]], self._ids[1][pair[1]], paths, truncated))
        return result


def _pruned(layers: Sequence[_Layer], ends: NodeArray) -> list[tuple[_Layer, Int64]]:
    """Return, from the last layer to the first, the edges by which the search came to some of its last nodes."""
    found = []
    for layer in reversed(layers):
        rows = np.flatnonzero(contains(ends, layer.other))
        ends = layer.frontier[distinct(layer.batch.origin[rows])]
        found.append((layer, rows))
    return found


def _forward(layer: _Layer, rows: Int64) -> _Steps:
    batch = select(layer.batch, rows)
    return _Steps(layer.frontier[batch.origin], layer.other[rows], batch.relation, batch.edge, batch.inverse)


def _backward(layer: _Layer, rows: Int64) -> _Steps:
    """Turn edges found from the target into steps towards it."""
    batch = select(layer.batch, rows)
    near, far, inverse = layer.other[rows], layer.frontier[batch.origin], ~batch.inverse
    order = np.lexsort((batch.edge, far, batch.relation, inverse, near))
    return _Steps(near[order], far[order], batch.relation[order], batch.edge[order], inverse[order])
