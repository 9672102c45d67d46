"""Enumerating candidate queries around linked entities, with their statistics, in numpy over any graph store.

Walks are grown hop by hop as sets: a group is one metapath out of one anchor, and holds each node it reaches once, with
the number of walks that lead there. Every group is a candidate. What a step would read beyond a budget is not walked,
which `Candidates.truncated` says; the statistics of all candidates that are returned are exact.

Walks are those of a Cypher MATCH: no edge twice, and never back to the anchor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from byokg.errors import ConfigError, EntityNotFound
from byokg.graph.store import Direction, GraphStore, NodeArray
from byokg.retrieval.candidates import PATHS, TEMPLATES, Anchor, Candidate, Dialect, Leg, Step, Template
from byokg.types import EntityId

Int64 = npt.NDArray[np.int64]
Kind = TypeVar("Kind", bound=np.generic)

_WAYS = (Direction.BOTH, Direction.OUT, Direction.IN, Direction.BOTH)
"""By two bits: some walk goes with the edge, some walk goes against it."""


@dataclass(frozen=True)
class Candidates:
    """What was found around the anchors of one question."""

    items: tuple[Candidate, ...]
    truncated: tuple[str, ...] = ()
    """What was not walked because it exceeds the budget, a sentence each."""


@dataclass(frozen=True)
class Templates:
    """Which candidates are looked for, and how much may be read for them.

    Raises:
        ConfigError: a template is unknown, or the budget leaves nothing.
    """

    names: tuple[Template, ...] = ("one_hop", "two_hop", "between", "intersection", "mediated")
    typed: bool = True
    """Also those whose ends are of one type, where ends have several."""
    directed: bool = False
    """Whether a relation walked one way and the other makes two candidates; A.2 makes one."""
    budget: int = 2_000_000
    """Pairs of a walk's beginning and an edge that lengthens it, for each hop; a hub is not walked through beyond."""

    def __post_init__(self) -> None:
        if unknown := [name for name in self.names if name not in TEMPLATES]:
            raise ConfigError(f"template {unknown[0]!r} is not known; choose from {', '.join(TEMPLATES)}")
        if self.budget < 1:
            raise ConfigError(f"budget={self.budget} walks nothing; use 1 or more")


def find_candidates(
    store: GraphStore,
    anchors: Sequence[EntityId],
    gold: Collection[EntityId] = (),
    templates: Templates | None = None,
    dialect: Dialect | None = None,
) -> Candidates:
    """Enumerate the candidates around some entities.

    Args:
        store: the graph; asked once a hop for all anchors.
        anchors: linked entities, each once.
        gold: correct answers, which hits are counted of; unknown ones make recall smaller.
        templates: which candidates; None takes the defaults.
        dialect: how their Cypher names nodes; None names them as a graph of ours does.

    Returns:
        Candidates in order of anchors, hops and relations; empty where the anchors have no edges.

    Raises:
        EntityNotFound: an anchor is not in the store.
    """
    distinct = list(dict.fromkeys(anchors))
    return _Search(store, distinct, frozenset(gold), templates or Templates(), dialect or Dialect()).run()


@dataclass(frozen=True)
class _Reach:
    """G groups of walks and the P pairs of a group and a node that they reach, by group, then by node."""

    anchors: Int64
    """(G, 2) node numbers that walks do not come back to; -1 where there is one."""
    before: tuple[Int64, ...]
    """For each reach that these groups lengthen or join, (G,) the group there."""
    relation: Int64
    """(G,) relation of the last hop; -1 where groups were joined."""
    bounds: Int64
    """(G + 1,) group g has the pairs from bounds[g] up to bounds[g + 1]."""
    nodes: Int64
    walks: npt.NDArray[np.float64]
    """(P,) how many walks lead there."""
    ways: Int64
    """(P,) two bits for each hop, the last one lowest; see `_WAYS`."""
    hops: int

    def __len__(self) -> int:
        return len(self.relation)

    @property
    def group(self) -> Int64:
        """Return the group of each pair: (P,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.bounds))

    def only(self, groups: Int64) -> _Reach:
        """Return some groups, in the order given."""
        sizes = np.diff(self.bounds)[groups]
        pairs = np.arange(sizes.sum()) + np.repeat(self.bounds[groups] - sizes.cumsum() + sizes, sizes)
        return _Reach(
            self.anchors[groups],
            tuple(column[groups] for column in self.before),
            self.relation[groups],
            np.append(0, sizes.cumsum()),
            self.nodes[pairs],
            self.walks[pairs],
            self.ways[pairs],
            self.hops,
        )


class _Search:
    """One enumeration."""

    def __init__(
        self,
        store: GraphStore,
        anchors: list[EntityId],
        gold: frozenset[EntityId],
        templates: Templates,
        dialect: Dialect,
    ) -> None:
        self._store = store
        self._templates = templates
        self._dialect = dialect
        self._anchors = [Anchor(node.id, node.name, node.type) for node in store.nodes(anchors)]
        self._numbers = np.asarray(store.numbers(anchors), np.int64)
        self._gold_size = len(gold)
        self._gold = _known(store, gold)
        self._labels = store.relations
        self._truncated: list[str] = []

    def run(self) -> Candidates:
        """Return everything."""
        names = self._templates.names
        found: list[Candidate] = []
        count = len(self._anchors)
        start = _Reach(
            anchors=np.stack((self._numbers, np.full(count, -1)), axis=1),
            before=(np.arange(count),),
            relation=np.full(count, -1),
            bounds=np.arange(count + 1),
            nodes=self._numbers,
            walks=np.ones(count),
            ways=np.zeros(count, np.int64),
            hops=0,
        )
        levels = [start]
        pairs = len(self._anchors) > 1
        most = max([PATHS.index(name) + 1 for name in names if name in PATHS], default=0)
        if pairs and {"between", "mediated"} & set(names):
            most = max(most, 1)
        if pairs and "intersection" in names:
            most = max(most, 2)
        for hop in range(1, most + 1):
            levels.append(self._lengthen(levels, f"{hop}-hop paths"))
            if PATHS[hop - 1] in names:
                found += self._paths(PATHS[hop - 1], levels)
        if pairs and most:
            found += self._joined(levels)
        return Candidates(tuple(found), tuple(self._truncated))

    # Growing

    def _lengthen(self, levels: Sequence[_Reach], what: str) -> _Reach:
        """Walk every group of the last level one hop further."""
        reach = levels[-1]
        nodes, place = np.unique(reach.nodes, return_inverse=True)
        degrees = self._store.relation_counts(nodes).degrees(len(nodes)) if len(nodes) > 64 else None
        group = reach.group
        if degrees is not None:
            reads = np.bincount(group, degrees[place], len(reach))
            if reads.sum() > self._templates.budget:
                # The cheapest groups first, as many as the budget allows.
                order = np.argsort(reads, kind="stable")
                kept = np.sort(order[reads[order].cumsum() <= self._templates.budget])
                self._truncated.append(
                    f"{len(reach) - len(kept):,} of {len(reach):,} beginnings of {what} lead through too many edges"
                )
                reach = reach.only(kept)
                parents: Int64 = kept
                nodes, place = np.unique(reach.nodes, return_inverse=True)
                group = reach.group
            else:
                parents = np.arange(len(reach))
        else:
            parents = np.arange(len(reach))
        batch = self._store.edges(nodes, Direction.BOTH)
        stops = np.searchsorted(batch.origin, np.arange(len(nodes)), "right")
        starts = np.append(0, stops[:-1]) if len(stops) else stops
        counts = (stops - starts)[place]
        pair = np.repeat(np.arange(len(place)), counts)
        edge = np.arange(len(pair)) + np.repeat(starts[place] - counts.cumsum() + counts, counts)
        node = batch.other.astype(np.int64)[edge]
        inverse = batch.inverse[edge]
        owner = group[pair]
        kept_rows = (node != reach.anchors[owner, 0]) & (node != reach.anchors[owner, 1])
        kept_rows &= ~(inverse & (node == reach.nodes[pair]))  # a loop is one edge, and walked once
        rows = np.flatnonzero(kept_rows)
        pair, node, inverse, owner = pair[rows], node[rows], inverse[rows], owner[rows]
        relation = batch.relation[edge[rows]].astype(np.int64)
        walks = reach.walks[pair].copy()
        if reach.hops >= 2 and len(reach.before) == 1:
            self._leave_out_returns(levels[-2], reach, walks, owner, node, relation, inverse)
            rows = np.flatnonzero(walks > 0)
            pair, node, inverse, owner = pair[rows], node[rows], inverse[rows], owner[rows]
            relation, walks = relation[rows], walks[rows]
        way = 1 + inverse.astype(np.int64)
        made = _grouped(owner, relation, way if self._templates.directed else None, node)
        order, first_pair, first_group, of_pair = made
        ways = (reach.ways[pair] << 2) | way
        merged_ways = np.bitwise_or.reduceat(ways[order], first_pair) if len(order) else ways
        merged_walks = np.add.reduceat(walks[order], first_pair) if len(order) else walks
        heads = order[first_group]
        return _Reach(
            anchors=reach.anchors[owner[heads]],
            before=(parents[owner[heads]],),
            relation=relation[heads],
            bounds=np.append(of_pair, len(first_pair)),
            nodes=node[order[first_pair]],
            walks=merged_walks,
            ways=merged_ways,
            hops=reach.hops + 1,
        )

    def _leave_out_returns(
        self,
        earlier: _Reach,
        reach: _Reach,
        walks: npt.NDArray[np.float64],
        owner: Int64,
        node: Int64,
        relation: Int64,
        inverse: npt.NDArray[np.bool_],
    ) -> None:
        """Take away the walks that come straight back over the edge they came by."""
        back = np.flatnonzero(relation == reach.relation[owner])
        if self._templates.directed:
            last = reach.ways[reach.bounds[owner[back]]] & 3
            back = back[last != 1 + inverse[back]]
        size = 1 + max(int(earlier.nodes.max(initial=0)), int(node.max(initial=0)))
        held = earlier.group * size + earlier.nodes
        asked = reach.before[0][owner[back]] * size + node[back]
        place = np.minimum(np.searchsorted(held, asked), max(0, len(held) - 1))
        met = held[place] == asked if len(held) else np.zeros(len(asked), np.bool_)
        walks[back[met]] -= earlier.walks[place[met]]

    # Joining

    def _joined(self, levels: list[_Reach]) -> Iterator[Candidate]:
        """Yield what two anchors have in common."""
        names = self._templates.names
        for one, another in combinations(range(len(self._anchors)), 2):
            if {"between", "mediated"} & set(names):
                sides = [self._of_anchor(levels, 1, number) for number in (one, another)]
                met = self._meet(sides, levels, (1, 1))
                if "between" in names:
                    yield from self._meetings("between", levels, met, (1, 1))
                if "mediated" in names and len(met):
                    tails = self._lengthen([met], "paths through a node between two entities")
                    yield from self._meetings("mediated", levels, met, (1, 1), tails)
            if "intersection" in names:
                for hops in ((1, 2), (2, 1), (2, 2)):
                    sides = [self._of_anchor(levels, hops[0], one), self._of_anchor(levels, hops[1], another)]
                    yield from self._meetings("intersection", levels, self._meet(sides, levels, hops), hops)

    def _of_anchor(self, levels: Sequence[_Reach], hops: int, anchor: int) -> Int64:
        """Return the groups of one anchor."""
        return np.flatnonzero(levels[hops].anchors[:, 0] == self._numbers[anchor])

    def _meet(self, sides: Sequence[Int64], levels: Sequence[_Reach], hops: tuple[int, int]) -> _Reach:
        """Join the groups of two anchors in the nodes that both reach."""
        reaches = [levels[count].only(groups) for count, groups in zip(hops, sides, strict=True)]
        groups = [reach.group for reach in reaches]
        orders = [np.argsort(reach.nodes, kind="stable") for reach in reaches]
        left, right = (reach.nodes[order] for reach, order in zip(reaches, orders, strict=True))
        first, last = np.searchsorted(right, left), np.searchsorted(right, left, "right")
        counts = last - first
        if counts.sum() > self._templates.budget:
            self._truncated.append(f"{counts.sum():,} pairs of paths of {hops[0]} and {hops[1]} hops meet: too many")
            counts[:] = 0
        one = np.repeat(orders[0], counts)
        another = orders[1][np.arange(len(one)) + np.repeat(first - counts.cumsum() + counts, counts)]
        node = reaches[0].nodes[one]
        far = [reach.anchors[group[row], 0] for reach, group, row in zip(reaches, groups, (one, another), strict=True)]
        rows = np.flatnonzero((node != far[0]) & (node != far[1]))
        one, another, node = one[rows], another[rows], node[rows]
        a, b = groups[0][one], groups[1][another]
        order, _, first_group, of_pair = _grouped(a, b, None, node)
        heads = order[first_group]
        return _Reach(
            anchors=np.stack((reaches[0].anchors[a[heads], 0], reaches[1].anchors[b[heads], 0]), axis=1),
            before=(sides[0][a[heads]], sides[1][b[heads]]),
            relation=np.full(len(heads), -1),
            bounds=np.append(of_pair, len(order)),
            nodes=node[order],
            walks=(reaches[0].walks[one] * reaches[1].walks[another])[order],
            ways=((reaches[0].ways[one] << 2 * hops[1]) | reaches[1].ways[another])[order],
            hops=sum(hops),
        )

    # Writing candidates

    def _paths(self, template: Template, levels: Sequence[_Reach]) -> Iterator[Candidate]:
        reach = levels[-1]
        hops = reach.hops
        groups = [np.arange(len(reach))]
        for level in reversed(levels[1:]):
            groups.append(level.before[0][groups[-1]])
        relations = [level.relation[group].tolist() for level, group in zip(levels[:0:-1], groups, strict=False)][::-1]
        anchors = groups[-1].tolist()
        ways, total, hits = self._statistics(reach)
        for row in range(len(reach)):
            steps = self._steps([column[row] for column in relations], ways[row], hops)
            leg = Leg(self._anchors[anchors[row]], steps)
            yield from self._with_types(reach, row, self._candidate(template, (leg,), total[row], hits[row]))

    def _meetings(
        self,
        template: Template,
        levels: Sequence[_Reach],
        met: _Reach,
        hops: tuple[int, int],
        tails: _Reach | None = None,
    ) -> Iterator[Candidate]:
        reach = met if tails is None else tails
        ways, total, hits = self._statistics(reach)
        for row in range(len(reach)):
            joined = row if tails is None else int(tails.before[0][row])
            tail = () if tails is None else self._steps([int(tails.relation[row])], ways[row], 1)
            bits = ways[row] if tails is None else ways[row] >> 2
            legs = []
            for side, count in enumerate(hops):
                relations, group = [], int(met.before[side][joined])
                for level in levels[count:0:-1]:
                    relations.append(int(level.relation[group]))
                    group = int(level.before[0][group])
                of_side = bits >> 2 * hops[1] if side == 0 else bits & (4 ** hops[1] - 1)
                legs.append(Leg(self._anchors[group], self._steps(relations[::-1], of_side, count)))
            candidate = self._candidate(template, tuple(legs), total[row], hits[row], tail)
            yield from self._with_types(reach, row, candidate)

    def _statistics(self, reach: _Reach) -> tuple[list[int], list[int], list[int]]:
        """Return for each group its ways, how many nodes it reaches, and how many of them are correct."""
        if not len(reach):
            return [], [], []
        ways = np.bitwise_or.reduceat(reach.ways, reach.bounds[:-1])
        hits = np.add.reduceat(np.isin(reach.nodes, self._gold).astype(np.int64), reach.bounds[:-1])
        return ways.tolist(), np.diff(reach.bounds).tolist(), hits.tolist()

    def _steps(self, relations: Sequence[int], ways: int, hops: int) -> tuple[Step, ...]:
        labels = self._labels
        return tuple(
            Step(labels[relation], _WAYS[ways >> 2 * (hops - 1 - at) & 3]) for at, relation in enumerate(relations)
        )

    def _candidate(
        self, template: Template, legs: tuple[Leg, ...], total: int, hits: int, tail: tuple[Step, ...] = ()
    ) -> Candidate:
        return Candidate(
            template,
            legs,
            total,
            hits,
            self._gold_size,
            tail,
            directed=self._templates.directed,
            dialect=self._dialect,
        )

    def _with_types(self, reach: _Reach, row: int, candidate: Candidate) -> Iterator[Candidate]:
        yield candidate


def _known(store: GraphStore, ids: Collection[EntityId]) -> Int64:
    """Return the numbers of those entities that the store has, ascending."""
    known = []
    for id in sorted(ids):
        try:
            known.append(int(store.numbers([id])[0]))
        except EntityNotFound:
            continue
    return np.array(sorted(known), np.int64)


def _grouped(first: Int64, second: Int64, third: Int64 | None, node: NodeArray) -> tuple[Int64, Int64, Int64, Int64]:
    """Sort rows into groups of equal (first, second, third), and nodes within them.

    Returns:
        The order of rows; where in it each distinct pair of group and node begins; where in it each group begins; and
        which pair each group begins with.
    """
    if not len(node):
        none = np.empty(0, np.int64)
        return none, none, none, none
    keys = first
    for column, size in ((second, int(second.max()) + 1), (third, 3)):
        if column is not None:
            keys = keys * size + column
    size = int(node.max()) + 1
    if int(keys.max()) < (1 << 62) // size:
        whole = keys * size + node
        order = np.argsort(whole)
        fresh = np.append(True, np.diff(whole[order]) != 0)
    else:
        order = np.lexsort((node, keys))
        fresh = np.append(True, (np.diff(keys[order]) != 0) | (np.diff(node[order]) != 0))
    first_pair = np.flatnonzero(fresh)
    of_group = keys[order[first_pair]]
    of_pair = np.flatnonzero(np.append(True, np.diff(of_group) != 0))
    return order, first_pair, first_pair[of_pair], of_pair
