"""Metapaths out of a node: grown hop by hop while they are ranked, or followed to their ends.

`grow` is for ranking metapaths before any of them is followed to the end: where a metapath reaches many nodes, only a
sample of them is walked on from, so a step out of a hub's far corner can be missed and ends are not complete. `follow`
walks the metapath that wins, as the path expression that it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byokg.graph.int_sets import changes, sort_distinct
from byokg.graph.pathql.automaton import compile_expression
from byokg.graph.pathql.budget import PathLimits, SearchBudget
from byokg.graph.pathql.moves import Moves, steps_along
from byokg.graph.pathql.names import Names
from byokg.graph.pathql.query import Inverse, Link, NameTerm, PathExpression
from byokg.graph.pathql.query import Sequence as Chain
from byokg.graph.stopping import check
from byokg.graph.store import Direction, GraphStore, NodeArray
from byokg.types import INVERSE, EntityId, Metapath, Path

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


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
    """(P,) position, in what was grown, of the metapath that each one lengthens."""

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
        bounds = np.append(0, counts.cumsum())
        place = np.arange(bounds[-1]) + np.repeat(self.bounds[paths] - bounds[:-1], counts)
        return Growth(self.steps[paths], bounds, self.ends[place], self.parents[paths])


def start(node: int) -> Growth:
    """Return the one metapath of no steps, standing at `node`."""
    return Growth(np.empty((1, 0), np.int64), np.array([0, 1]), np.array([node], np.int64), np.zeros(1, np.int64))


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
    none = np.empty(0, np.int64)
    nothing = Growth(np.empty((0, growth.steps.shape[1] + 1), np.int64), np.zeros(1, np.int64), none, none)
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
    return Growth(steps, np.append(first, len(ends)), ends, parents)


def labels(store: GraphStore, steps: Sequence[int] | Int64) -> Metapath:
    """Spell out the steps of one metapath as relation labels."""
    return tuple(
        f"{INVERSE}{store.relations[step >> 1]}" if step & 1 else store.relations[step >> 1]
        for step in np.asarray(steps).tolist()
    )


@dataclass(frozen=True)
class Walks:
    """All walks along one metapath of L hops, kept as the nodes reached at each hop.

    A walk may visit a node or an edge twice: `directed_by`, then `^directed_by` comes back to the film it left.
    """

    store: GraphStore
    metapath: Metapath
    ends: Int64
    """(M,) distinct nodes where walks end, those of most walks first, then by node number."""
    counts: Float64
    """(M,) how many walks end there; parallel edges count apart. Exact up to 2^53."""
    truncated: bool
    """True where a cap left walks out."""
    _moves: Moves
    _levels: tuple[Int64, ...]
    """For each hop, the vertices reached, ascending; the sources first."""
    _parents: tuple[Int64, ...]
    """For each hop, where in the level before it each vertex is reached from: by the first step in edge order."""
    _labels: tuple[Int64, ...]
    """For each hop, that step."""

    def path(self, end: int) -> Path:
        """Return one walk that ends at node number `end`."""
        return self.paths([end])[0]

    def paths(self, ends: Sequence[int] | NodeArray) -> list[Path]:
        """Return one walk to each of P ends, the same one at every call; costs P · L whatever the fan-out.

        Raises:
            ValueError: no walk ends at one of them.
        """
        states, hops = self._moves.states, len(self.metapath)
        asked = np.asarray(ends, np.int64)
        vertices = asked * states + hops
        place = np.searchsorted(self._levels[-1], vertices)
        lost = np.flatnonzero(np.append(self._levels[-1], -1)[place] != vertices)
        if len(lost):
            raise ValueError(f"no walk along {self.metapath} ends at node number {asked[lost[0]]}")
        nodes = np.empty((len(asked), hops + 1), np.int64)
        labels = np.empty((len(asked), hops), np.int64)
        for hop in range(hops, 0, -1):
            nodes[:, hop] = self._levels[hop][place] // states
            labels[:, hop - 1] = self._labels[hop - 1][place]
            place = self._parents[hop - 1][place]
        nodes[:, 0] = self._levels[0][place] // states
        steps = self._moves.spell(nodes[:, :-1].reshape(-1), nodes[:, 1:].reshape(-1), labels.reshape(-1))
        found = []
        for row, source in enumerate(self.store.ids(nodes[:, 0])):
            walked = [(step.triples[0], step.inverse[0]) for step in steps[row * hops : (row + 1) * hops]]
            found.append(Path(source, tuple(triple for triple, _ in walked), tuple(inverse for _, inverse in walked)))
        return found


def expression(store: GraphStore, metapath: Sequence[str]) -> PathExpression:
    """Return a metapath as the expression that a path query matches.

    A leading `^` walks a relation from tail to head. A relation whose own label starts with `^` is found when there is
    none of the label after it.
    """
    links: list[PathExpression] = []
    for step in metapath:
        label = step.removeprefix(INVERSE)
        turned = label != step and (label in store.relations or step not in store.relations)
        links.append(Inverse(Link(NameTerm(label))) if turned else Link(NameTerm(step)))
    return Chain(tuple(links))


def follow(
    store: GraphStore,
    sources: Collection[EntityId],
    metapath: Sequence[str],
    max_frontier: int | None = None,
    hub_cap: int | None = None,
    avoid: Collection[EntityId] = (),
) -> Walks:
    """Walk one relation sequence out of every source, with the steps that a path query takes.

    Args:
        store: graph to read; asked once per hop, whatever the fan-out.
        sources: start entities; naming one twice changes nothing.
        metapath: L relation labels, one per hop; see `expression`.
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
    relation = Names(store, {}).relation
    automaton = compile_expression(expression(store, metapath), len(store.relations), lambda name: (relation(name),))
    budget = SearchBudget(PathLimits(hub_cap=hub_cap), 0)
    moves = steps_along(store, automaton, None, budget.capped)
    states = moves.states
    levels = [np.unique(store.numbers(sources)).astype(np.int64) * states]
    avoided = np.asarray(store.numbers(avoid), np.int64) * states if avoid else levels[0][:0]
    counts = np.ones(len(levels[0]))
    parents, labels, cut = [], [], False
    for hop in range(1, len(metapath) + 1):
        check()
        steps = moves.forward(levels[-1])
        reached, first, group = np.unique(steps.far, return_index=True, return_inverse=True)
        counts = np.bincount(group, counts[steps.origin], len(reached)).astype(np.float64)
        if len(avoided):
            kept = np.flatnonzero(np.isin(reached, avoided + hop, invert=True, kind="sort"))
            reached, first, counts = reached[kept], first[kept], counts[kept]
        if max_frontier is not None and len(reached) > max_frontier:
            kept = np.sort(np.lexsort((reached, -counts))[:max_frontier])
            reached, first, counts, cut = reached[kept], first[kept], counts[kept], True
        levels.append(reached)
        parents.append(steps.origin[first])
        labels.append(steps.label[first])
    order = np.lexsort((levels[-1], -counts))
    return Walks(
        store,
        tuple(metapath),
        levels[-1][order] // states,
        counts[order],
        cut or budget.truncated,
        moves,
        tuple(levels),
        tuple(parents),
        tuple(labels),
    )
