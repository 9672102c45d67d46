"""Enumeration of candidate queries around linked entities, with their statistics, in numpy over any graph store.

Walks are grown hop by hop as sets: a group is one metapath out of one anchor, and holds each node it reaches once, with
its number of walks. Every group is a candidate. Steps beyond the read budget are not walked, as
`CandidateQueries.truncated` states; the statistics of all returned candidates are exact.

Walks are those of a Cypher MATCH: no edge twice, and never back to the anchor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from byokg.arrays import Bools, Float64, Int64
from byokg.errors import EntityNotFound
from byokg.graph.sorted_ids import distinct, rows_at
from byokg.graph.store import Direction, GraphStore
from byokg.graph.traversal import expand
from byokg.graph.value_indexes import nodes_holding
from byokg.retrieval.candidates import (
    PATHS,
    Anchor,
    Attribute,
    CandidateQueries,
    CandidateQuery,
    Conditions,
    EdgeSample,
    Leg,
    NodeIdSyntax,
    QueryHop,
    Template,
    Templates,
    anchors_of,
    attributes_of,
    dialect_of,
)
from byokg.retrieval.walk_groups import WalkGroups, group_walks
from byokg.text.dates import DATE
from byokg.types import EntityId, LinkedValue, Node, Value

_WAYS = (Direction.BOTH, Direction.OUT, Direction.IN, Direction.BOTH)
"""By two bits: some walk goes with the edge, some walk goes against it."""
_ALONG, _AGAINST, _EITHER = 1, 2, 3
_STARTS = 1000
"""Nodes with a value that candidates start from at most; of more of them, targets alone are compared with it."""
_EVENT_READS = 200_000
"""Pairs of a walk's beginning and an edge that are read at most behind event nodes."""


class CandidateFinder:
    """Enumerates the candidates of one graph; threads may share it.

    Args:
        store: the graph; read once a hop for all anchors.
        templates: kinds of candidates; None takes the defaults.
        dialect: identification of nodes in their Cypher; None takes the store's.
    """

    def __init__(
        self, store: GraphStore, templates: Templates | None = None, dialect: NodeIdSyntax | None = None
    ) -> None:
        self.store = store
        self.templates = templates or Templates()
        self.dialect = dialect or dialect_of(store)

    @cached_property
    def _sample(self) -> EdgeSample:
        return EdgeSample.of(self.store)

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return where this graph holds years, dates and numbers; found by the schema and a sample, once."""
        return attributes_of(self.store, self._sample)

    @cached_property
    def event_ends(self) -> Bools:
        """Return whether the heads (0) and the tails (1) of each relation are mostly event nodes: (2, R)."""
        return self._sample.event_ends(len(self.store.relations))

    @cached_property
    def end_types(self) -> Mapping[str, Mapping[Direction, frozenset[str]]]:
        """Return for each relation the types of its tails, of its heads, and of both."""
        return {
            each.name: {
                Direction.OUT: frozenset(each.range),
                Direction.IN: frozenset(each.domain),
                Direction.BOTH: frozenset((*each.range, *each.domain)),
            }
            for each in self.store.schema().relations
        }

    def find(
        self,
        anchors: Sequence[EntityId],
        gold: Collection[EntityId] = (),
        conditions: Conditions | None = None,
        gold_values: Collection[str] = (),
    ) -> CandidateQueries:
        """Enumerate the candidates around some entities.

        Args:
            anchors: linked entities.
            gold: correct answers, for hits; unknown ones make recall smaller.
            conditions: constraints of the question beyond paths; None for none.
            gold_values: correct answers as text, for candidates that count.

        Returns:
            Candidates in order of templates, anchors, relations; empty if the anchors have no edges.

        Raises:
            EntityNotFound: an anchor is not in the store.
        """
        distinct = list(dict.fromkeys(anchors))
        return _CandidateSearch(
            self, distinct, frozenset(gold), conditions or Conditions(), frozenset(gold_values)
        ).run()


class _EdgeRows(NamedTuple):
    """E edges that lengthen walks, (E,) each."""

    pair: Int64
    """Pair of group and node that is lengthened."""
    node: Int64
    """Node that is reached."""
    relation: Int64
    way: Int64
    number: Int64

    def take(self, rows: Int64) -> _EdgeRows:
        """Return the edges in some rows."""
        return _EdgeRows(*(column[rows] for column in self))


@dataclass(frozen=True)
class HeldValues:
    """Values that a question names, and the nodes that hold all of them."""

    anchor: Anchor
    holders: Int64
    """(H,) node numbers, ascending."""


def held_values(store: GraphStore, values: Sequence[LinkedValue], most: int) -> list[HeldValues]:
    """Return the values of a question with their holders, at most so many; those that one node holds together are one.

    Values without a holder are left out.
    """
    found: list[HeldValues] = []
    for value in values:
        holders = np.asarray(nodes_holding(store, value.type, value.property, value.value, most), np.int64)
        anchor = Anchor(EntityId(""), value.mention.text, value.type, None, ((value.property, value.value),))
        for place, other in enumerate(found):
            both = np.intersect1d(holders, other.holders)
            keys = {key for key, _ in other.anchor.values}
            if other.anchor.type == value.type and len(both) and value.property not in keys:
                found[place] = HeldValues(replace(other.anchor, values=other.anchor.values + anchor.values), both)
                break
        else:
            found += [HeldValues(anchor, holders)] if len(holders) else []
    return found


class _CandidateSearch:
    """One enumeration."""

    def __init__(
        self,
        finder: CandidateFinder,
        anchors: list[EntityId],
        gold: frozenset[EntityId],
        conditions: Conditions,
        gold_values: frozenset[str],
    ) -> None:
        self._store = store = finder.store
        self._templates = finder.templates
        self._dialect = finder.dialect
        self._held = held_values(store, conditions.values, finder.templates.described)
        starts = [one for one in self._held if len(one.holders) <= _STARTS]
        self._anchors = [*anchors_of(store, anchors), *(one.anchor for one in starts)]
        numbers = np.asarray(store.numbers(anchors), np.int64)
        self._starts = [*numbers.reshape(-1, 1), *(one.holders for one in starts)]
        self._numbers = np.concatenate((numbers, -2 - np.arange(len(starts))))
        """(A,) node of each anchor; of nodes with values a negative number of their own, which no walk meets."""
        self._gold_size = len(gold) or len(gold_values)
        self._gold = _known(store, gold)
        self._labels = store.relations
        self._finder = finder
        self._truncated: list[str] = []
        asked = _ConditionedCandidates(finder, conditions, self._gold, gold_values, self._truncated, self._held)
        self._conditioned = asked

    def run(self) -> CandidateQueries:
        """Return everything."""
        names = self._templates.names
        found: list[CandidateQuery] = []
        count = len(self._anchors)
        start = WalkGroups(
            anchors=np.stack((self._numbers, np.full(count, -1)), axis=1),
            before=(np.arange(count),),
            relation=np.full(count, -1),
            bounds=np.cumsum([0, *map(len, self._starts)]),
            nodes=np.concatenate([np.empty(0, np.int64), *self._starts]),
            walks=np.ones(sum(map(len, self._starts))),
            ways=np.zeros(sum(map(len, self._starts)), np.int64),
            hops=0,
        )
        levels = [start]
        if len(holders := np.flatnonzero(self._numbers < 0)):
            found += self._paths("holders", [start.only(holders)])
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
        if self._templates.events and "two_hop" in names and "three_hop" not in names:
            found += self._through_events(levels[:3])
        if pairs and most:
            found += self._joined(levels)
        return CandidateQueries(tuple(found), tuple(self._truncated))

    def _through_events(self, levels: Sequence[WalkGroups]) -> Iterator[CandidateQuery]:
        """Yield the paths of three edges whose first or second edge leads to event nodes, as far as they are cheap."""
        start, first, second = levels
        at_event = self._at_events(second) | self._at_events(first)[second.before[0]]
        kept = second.only(np.flatnonzero(at_event))
        if len(kept):
            last = self._lengthen([start, first, kept], "3-hop paths through events", _EVENT_READS)
            yield from self._paths("three_hop", [start, first, kept, last])

    def _at_events(self, reach: WalkGroups) -> Bools:
        """Return whether the last edge of each group leads mostly to event nodes: (G,)."""
        heads, tails = self._finder.event_ends[:, reach.relation[reach.group]]
        way = reach.ways & _EITHER
        events = np.where(way == _ALONG, tails, np.where(way == _AGAINST, heads, heads & tails))
        return np.bincount(reach.group, events, len(reach)) * 2 > np.diff(reach.bounds)

    # Growing

    def _lengthen(self, levels: Sequence[WalkGroups], what: str, budget: int | None = None) -> WalkGroups:
        """Walk every group of the last level one hop further, as far as a budget of reads allows."""
        reach = levels[-1]
        group = reach.group
        affordable = self._affordable(reach, what, min(budget or self._templates.budget, self._templates.budget))
        columns = [self._edges(reach, groups, relations) for groups, relations in affordable]
        steps = _EdgeRows(*(np.concatenate(each) for each in zip(*columns, strict=True)))
        kept_rows = np.ones(len(steps.pair), np.bool_)
        if not self._templates.directed:  # a loop is one edge, and walked once
            kept_rows = (steps.way != _AGAINST) | (steps.node != reach.nodes[steps.pair])
        if reach.hops:  # an anchor that loops back to itself is walked on from, and is no result
            ends = reach.anchors[group[steps.pair]]
            kept_rows &= (steps.node != ends[:, 0]) & (steps.node != ends[:, 1])
        steps = steps.take(np.flatnonzero(kept_rows))
        walks = reach.walks[steps.pair].copy()
        if reach.hops >= (1 if self._held else 2) and len(reach.before) == 1:
            self._leave_out_returns(levels[-2], reach, walks, steps)
            rows = np.flatnonzero(walks > 0)
            steps, walks = steps.take(rows), walks[rows]
        pair, node, relation, way, number = steps
        owner = group[pair]
        made = group_walks(owner, relation, way if self._templates.directed else None, node)
        order, first_pair, first_group, of_pair = made
        ways = (reach.ways[pair] << 2) | way
        merged_ways = np.bitwise_or.reduceat(ways[order], first_pair) if len(order) else ways
        merged_walks = np.add.reduceat(walks[order], first_pair) if len(order) else walks
        heads = order[first_group]
        edges = None
        if self._conditioned.asks("edge"):
            leads = np.repeat(np.arange(len(first_pair)), np.diff(first_pair, append=len(order)))
            edges = leads, number[order]
        return WalkGroups(
            edges=edges,
            anchors=reach.anchors[owner[heads]],
            before=(owner[heads],),
            relation=relation[heads],
            bounds=np.append(of_pair, len(first_pair)),
            nodes=node[order[first_pair]],
            walks=merged_walks,
            ways=merged_ways,
            hops=reach.hops + 1,
        )

    def _edges(self, reach: WalkGroups, groups: Int64, relations: Int64 | None) -> tuple[npt.NDArray[Any], ...]:
        """Read the edges that lengthen some groups: pair, node reached, relation, way and number of each, (E,)."""
        pairs = reach.pairs(groups)
        nodes, place = np.unique(reach.nodes[pairs], return_inverse=True)
        batch = expand(self._store, nodes, Direction.BOTH, relations).edges
        row, edge = rows_at(batch.origin, place)
        node, relation = batch.other.astype(np.int64)[edge], batch.relation[edge].astype(np.int64)
        way = np.where(batch.inverse, _AGAINST, _ALONG)
        if batch.undirected is not None:
            way = np.where(batch.undirected & (batch.head != batch.tail), _EITHER, way)
        return pairs[row], node, relation, way[edge], batch.edge[edge]

    def _affordable(self, reach: WalkGroups, what: str, budget: int) -> list[tuple[Int64, Int64 | None]]:
        """Return the groups within the budget: the cheapest with all edges, the others with the rarest relations."""
        nodes, place = np.unique(reach.nodes, return_inverse=True)
        counts = self._store.relation_counts(nodes)
        reads = np.bincount(reach.group, counts.degrees(len(nodes))[place], len(reach))
        if reads.sum() <= budget:
            return [(np.arange(len(reach)), None)]
        order = np.argsort(reads, kind="stable")
        cheap = reads[order].cumsum() <= budget
        whole, rest = np.sort(order[cheap]), np.sort(order[~cheap])
        standing = np.bincount(place[reach.pairs(rest)], minlength=len(nodes))
        cost = np.bincount(counts.relation, counts.count * standing[counts.origin])
        rarest = np.argsort(cost, kind="stable")
        rarest = rarest[cost[rarest] > 0]
        followed = np.sort(rarest[cost[rarest].cumsum() <= budget - reads[whole].sum()])
        self._truncated.append(
            f"{len(rest):,} of {len(reach):,} beginnings of {what} lead through too many edges: "
            f"{len(followed):,} of their {len(rarest):,} relations are followed"
        )
        return [(whole, None), (rest, followed)] if len(followed) else [(whole, None)]

    def _leave_out_returns(self, earlier: WalkGroups, reach: WalkGroups, walks: Float64, steps: _EdgeRows) -> None:
        """Take away the walks that come straight back over the edge they came by."""
        owner = reach.group[steps.pair]
        back = np.flatnonzero(steps.relation == reach.relation[owner])
        if self._templates.directed:
            last = reach.ways[reach.bounds[owner[back]]] & 3
            loops = steps.node[back] == reach.nodes[steps.pair[back]]
            back = back[(last != steps.way[back]) | (last == _EITHER) | loops]
        size = 1 + max(int(earlier.nodes.max(initial=0)), int(steps.node.max(initial=0)))
        held = earlier.group * size + earlier.nodes
        asked = reach.before[0][owner[back]] * size + steps.node[back]
        place = np.minimum(np.searchsorted(held, asked), max(0, len(held) - 1))
        met = held[place] == asked if len(held) else np.zeros(len(asked), np.bool_)
        walks[back[met]] -= earlier.walks[place[met]]

    # Joining

    def _joined(self, levels: list[WalkGroups]) -> Iterator[CandidateQuery]:
        """Yield what two anchors have in common."""
        names = self._templates.names
        for one, another in combinations(range(len(self._anchors)), 2):
            if len(np.intersect1d(self._starts[one], self._starts[another])):
                continue
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

    def _of_anchor(self, levels: Sequence[WalkGroups], hops: int, anchor: int) -> Int64:
        """Return the groups of one anchor."""
        return np.flatnonzero(levels[hops].anchors[:, 0] == self._numbers[anchor])

    def _meet(self, sides: Sequence[Int64], levels: Sequence[WalkGroups], hops: tuple[int, int]) -> WalkGroups:
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
        order, _, first_group, of_pair = group_walks(a, b, None, node)
        heads = order[first_group]
        return WalkGroups(
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

    def _paths(self, template: Template, levels: Sequence[WalkGroups]) -> Iterator[CandidateQuery]:
        reach = levels[-1]
        hops = reach.hops
        groups = [np.arange(len(reach))]
        for level in reversed(levels[1:]):
            groups.append(level.before[0][groups[-1]])
        relations = [level.relation[group].tolist() for level, group in zip(levels[:0:-1], groups, strict=False)][::-1]
        anchors = levels[0].before[0][groups[-1]].tolist()
        made = []
        for row, (ways, *counts) in enumerate(self._statistics(reach)):
            steps = self._steps([column[row] for column in relations], ways, hops)
            made.append(self._candidate(template, (Leg(self._anchors[anchors[row]], steps),), counts))
        yield from self._conditioned.of(reach, made)

    def _meetings(
        self,
        template: Template,
        levels: Sequence[WalkGroups],
        met: WalkGroups,
        hops: tuple[int, int],
        tails: WalkGroups | None = None,
    ) -> Iterator[CandidateQuery]:
        reach = met if tails is None else tails
        made = []
        for row, (ways, *counts) in enumerate(self._statistics(reach)):
            joined = row if tails is None else int(tails.before[0][row])
            tail = () if tails is None else self._steps([int(tails.relation[row])], ways, 1)
            bits = ways if tails is None else ways >> 2
            legs = []
            for side, count in enumerate(hops):
                relations, group = [], int(met.before[side][joined])
                for level in levels[count:0:-1]:
                    relations.append(int(level.relation[group]))
                    group = int(level.before[0][group])
                of_side = bits >> 2 * hops[1] if side == 0 else bits & (4 ** hops[1] - 1)
                legs.append(Leg(self._anchors[group], self._steps(relations[::-1], of_side, count)))
            made.append(self._candidate(template, tuple(legs), counts, tail))
        yield from self._conditioned.of(reach, made)

    def _statistics(self, reach: WalkGroups) -> list[tuple[int, int, int, int]]:
        """Return for each group its ways, how many nodes it reaches, how many of them are correct, and a checksum."""
        if not len(reach):
            return []
        away = reach.nodes != reach.anchors[reach.group, 0]
        starts = reach.bounds[:-1]
        columns = (
            np.bitwise_or.reduceat(reach.ways * away, starts),
            np.add.reduceat(away.astype(np.int64), starts),
            np.add.reduceat((np.isin(reach.nodes, self._gold) & away).astype(np.int64), starts),
            np.add.reduceat(_checksums(reach.nodes) * away, starts),
        )
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _steps(self, relations: Sequence[int], ways: int, hops: int) -> tuple[QueryHop, ...]:
        labels = self._labels
        return tuple(
            QueryHop(labels[relation], _WAYS[ways >> 2 * (hops - 1 - at) & 3]) for at, relation in enumerate(relations)
        )

    def _candidate(
        self, template: Template, legs: tuple[Leg, ...], counts: Sequence[int], tail: tuple[QueryHop, ...] = ()
    ) -> CandidateQuery:
        total, hits, checksum = counts
        directed, dialect = self._templates.directed, self._dialect
        return CandidateQuery(
            template, legs, total, hits, self._gold_size, tail, directed=directed, results=checksum, dialect=dialect
        )


class _ConditionedCandidates:
    """Adds conditions to candidates: a type, a period, an order, a count."""

    def __init__(
        self,
        finder: CandidateFinder,
        conditions: Conditions,
        gold: Int64,
        gold_values: frozenset[str],
        truncated: list[str],
        held: Sequence[HeldValues],
    ) -> None:
        self._finder = finder
        self._store = finder.store
        self._labels = finder.store.relations
        self._templates = finder.templates
        self._conditions = conditions
        self._gold = gold
        self._gold_values = gold_values
        self._truncated = truncated
        self._held = held

    def of(self, reach: WalkGroups, made: Sequence[CandidateQuery]) -> Iterator[CandidateQuery]:
        """Yield the candidates of a reach, and the same with conditions that some results fulfil."""
        yield from (one for one in made if one.total)
        if self._templates.typed:
            yield from self._typed(reach, made)
        for held in self._held:
            yield from self._holding(reach, made, held)
        if asked := self._asked_properties():
            yield from self._projected(reach, made, asked)
        if self._conditions.count:
            for one in made:
                if one.total:
                    yield replace(one, count=True, hits=int(str(one.total) in self._gold_values), total=1)
        if not self._conditions.periods and not self._conditions.extremes:
            return
        readable = self._readable(reach, np.arange(len(reach)), "values")
        reach, made = reach.only(readable), [made[row] for row in readable.tolist()]
        group = reach.group
        for attribute, pairs, values in self._read_values(reach):
            texts, place = np.unique([str(value) for value in values], return_inverse=True)
            for period in self._conditions.periods:
                says = np.array([period.holds(text) for text in texts.tolist()], np.bool_)
                kept = distinct(pairs[says[place]])
                yield from (
                    replace(made[row], period=(attribute, period), total=total, hits=hits, results=checksum)
                    for row, total, hits, checksum in self._counted(group[kept], reach.nodes[kept])
                )
            if self._conditions.orders(attribute):
                for highest in self._conditions.extremes:
                    kept = self._foremost(reach, group, pairs, values, highest)
                    yield from (
                        replace(made[row], extreme=(attribute, highest), total=1, hits=hits, results=checksum)
                        for row, _, hits, checksum in self._counted(group[kept], reach.nodes[kept])
                    )

    def _readable(self, reach: WalkGroups, groups: Int64, what: str) -> Int64:
        """Return those of some groups whose results may be read: all, or the smallest that the budget allows."""
        sizes = np.diff(reach.bounds)
        if reach.edges is not None:
            sizes = np.bincount(reach.group[reach.edges[0]], minlength=len(reach))
        order = groups[np.argsort(sizes[groups], kind="stable")]
        kept = np.sort(order[sizes[order].cumsum() <= self._templates.described])
        if len(kept) < len(groups) and len(distinct(reach.nodes[reach.pairs(groups)])) <= self._templates.described:
            kept = groups
        if len(kept) < len(groups):
            self._truncated.append(
                f"{len(groups) - len(kept):,} of {len(groups):,} paths end at too many nodes to look at their {what}"
            )
        return kept

    def _counted(self, group: Int64, nodes: Int64) -> Iterator[tuple[int, int, int, int]]:
        """Yield each group among distinct pairs with its results, hits and checksum."""
        correct = np.isin(nodes, self._gold)
        rows, place, totals = np.unique(group, return_inverse=True, return_counts=True)
        hits = np.bincount(place, correct, len(rows)).astype(np.int64)
        checksums = np.zeros(len(rows), np.int64)
        np.add.at(checksums, place, _checksums(nodes))
        yield from zip(rows.tolist(), totals.tolist(), hits.tolist(), checksums.tolist(), strict=True)

    def _typed(self, reach: WalkGroups, made: Sequence[CandidateQuery]) -> Iterator[CandidateQuery]:
        """Yield candidates with results of one type, for those with several."""
        types = self._finder.end_types
        ends = [types[step.relation][step.direction] if step else () for step in map(_last, made)]
        mixed = np.array(
            [one.total > 1 and len(several) > 1 for one, several in zip(made, ends, strict=True)], np.bool_
        )
        if not mixed.any():
            return
        rows = self._readable(reach, np.flatnonzero(mixed), "types")
        part = reach.only(rows)
        nodes, place = np.unique(part.nodes, return_inverse=True)
        members: dict[str, list[int]] = {}
        for at, node in enumerate(self._read_nodes(nodes)):
            for name in node.types:
                members.setdefault(name, []).append(at)
        group = rows[part.group]
        away = part.nodes != part.anchors[part.group, 0]
        for name in sorted(members):
            of_it = np.zeros(len(nodes), np.bool_)
            of_it[members[name]] = True
            kept = of_it[place] & away
            for row, total, hits, checksum in self._counted(group[kept], part.nodes[kept]):
                if total < made[row].total:
                    yield replace(made[row], end_type=name, total=total, hits=hits, results=checksum)

    def _holding(self, reach: WalkGroups, made: Sequence[CandidateQuery], held: HeldValues) -> Iterator[CandidateQuery]:
        """Yield the candidates whose results hold some values, for those with other results beside."""
        away = reach.nodes != reach.anchors[reach.group, 0]
        kept = away & np.isin(reach.nodes, held.holders)
        for row, total, hits, checksum in self._counted(reach.group[kept], reach.nodes[kept]):
            if total < made[row].total and all(leg.anchor != held.anchor for leg in made[row].legs):
                filtered = replace(made[row], end_type=held.anchor.type, end_values=held.anchor.values)
                yield replace(filtered, total=total, hits=hits, results=checksum)

    def _asked_properties(self) -> list[str]:
        """Return the properties that the question asks for: those whose names it has, but for properties of its
        values."""
        own = {key for held in self._held for key, _ in held.anchor.values}
        names = {name for names in self._finder.store.schema().node_properties.values() for name in names}
        return [name for name in sorted(names - own) if name != "name" and self._conditions.asks_for(name)]

    def _projected(
        self, reach: WalkGroups, made: Sequence[CandidateQuery], asked: Sequence[str]
    ) -> Iterator[CandidateQuery]:
        """Yield the candidates that return values of properties of their results."""
        rows = self._readable(reach, np.arange(len(reach)), "properties")
        part = reach.only(rows)
        nodes, place = np.unique(part.nodes, return_inverse=True)
        held = [node.properties for node in self._read_nodes(nodes)]
        away = part.nodes != part.anchors[part.group, 0]
        for name in asked:
            found: dict[int, set[str]] = {}
            for pair in np.flatnonzero(np.array([name in each for each in held], np.bool_)[place] & away).tolist():
                found.setdefault(int(rows[part.group[pair]]), set()).add(str(held[place[pair]][name]))
            for row, values in sorted(found.items()):
                checksum = crc32(repr((name, sorted(values))).encode())
                hits = len(values & self._gold_values)
                yield replace(made[row], asked=name, total=len(values), hits=hits, results=checksum)

    def asks(self, place: str) -> bool:
        """True if conditions use values at that place."""
        asked = self._conditions.periods or self._conditions.extremes
        return bool(asked) and any(one.place == place for one in self._finder.attributes)

    def _read_nodes(self, nodes: Int64) -> list[Node]:
        return self._store.nodes(self._store.ids(nodes))

    def _read_values(self, reach: WalkGroups) -> Iterator[tuple[Attribute, Int64, list[Value]]]:
        """Yield for each attribute the pairs that have a value, and the values."""
        away = reach.nodes != reach.anchors[reach.group, 0]
        nodes, place = np.unique(reach.nodes, return_inverse=True)
        if self.asks("node"):
            held = [node.properties for node in self._read_nodes(nodes)]
            for attribute in self._of_place("node"):
                having = np.array([attribute.key in properties for properties in held], np.bool_)
                pairs = np.flatnonzero(having[place] & away)
                yield attribute, pairs, [held[at][attribute.key] for at in place[pairs].tolist()]
        if reach.edges is not None:
            pairs, edges = (column[away[reach.edges[0]]] for column in reach.edges)
            each, at_edge = np.unique(edges, return_inverse=True)
            held = self._store.edge_properties(each)
            for attribute in self._of_place("edge"):
                rows = np.flatnonzero(np.array([attribute.key in one for one in held], np.bool_)[at_edge])
                yield attribute, pairs[rows], [held[at][attribute.key] for at in at_edge[rows].tolist()]
        if beside := self._of_place("neighbour"):
            yield from self._neighbour_values(beside, nodes, place, away)

    def _neighbour_values(
        self, attributes: Sequence[Attribute], nodes: Int64, place: Int64, away: Bools
    ) -> Iterator[tuple[Attribute, Int64, list[Value]]]:
        """Yield for each attribute the pairs with a dated neighbour, and its name; all are read at once.

        Args:
            attributes: relations that lead to dates.
            nodes: distinct ends of the pairs.
            place: (P,) end of each pair.
            away: (P,) False for pairs that end at their anchor.
        """
        counts = self._store.relation_counts(nodes)
        reads = np.bincount(counts.relation, counts.count, len(self._labels)).astype(np.int64)
        read = {self._labels.index(attribute.key): attribute for attribute in attributes}
        for number, attribute in list(read.items()):
            if reads[number] > self._templates.described:
                self._truncated.append(
                    f"{reads[number]:,} edges of {attribute.key} lead to values of results: too many"
                )
            if not 0 < reads[number] <= self._templates.described:
                del read[number]
        if not read:
            return
        batch = self._store.edges(nodes, Direction.BOTH, np.array(sorted(read)))
        other, of_other = np.unique(batch.other.astype(np.int64), return_inverse=True)
        names = [node.name for node in self._read_nodes(other)]
        dated = np.array([DATE.fullmatch(name) is not None for name in names], np.bool_)
        fits = dated[of_other] & (batch.other != nodes[batch.origin])
        for number, attribute in read.items():
            edges = np.flatnonzero(fits & (batch.relation == number))
            pairs, chosen = rows_at(batch.origin[edges], place)
            kept = np.flatnonzero(away[pairs])
            values: list[Value] = [names[at] for at in of_other[edges[chosen[kept]]].tolist()]
            yield attribute, pairs[kept], values

    def _of_place(self, place: str) -> list[Attribute]:
        return [one for one in self._finder.attributes if one.place == place] if self.asks(place) else []

    def _foremost(self, reach: WalkGroups, group: Int64, pairs: Int64, values: Sequence[Value], highest: bool) -> Int64:
        """Return for each group the pair with the highest or lowest value, the lower id of equal ones."""
        if not len(pairs) or len({isinstance(value, str) for value in values}) > 1:
            return np.empty(0, np.int64)
        ranks = np.unique(np.array(values), return_inverse=True)[1]
        nodes, place = np.unique(reach.nodes[pairs], return_inverse=True)
        by_id = np.argsort(np.argsort(np.array(self._store.ids(nodes), object)))[place]
        order = np.lexsort((by_id, -ranks if highest else ranks, group[pairs]))
        sorted_groups = group[pairs[order]]
        first = np.append(True, np.diff(sorted_groups) != 0)
        kept: Int64 = pairs[order[first]]
        return kept


def _checksums(nodes: Int64) -> Int64:
    """Return numbers whose sum differs from set to set of nodes: (N,), by the mixing function of SplitMix64."""
    mixed = nodes.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed ^ (mixed >> np.uint64(31))).view(np.int64)


def _last(candidate: CandidateQuery) -> QueryHop | None:
    steps = candidate.tail or candidate.legs[0].steps
    return steps[-1] if steps else None


def _known(store: GraphStore, ids: Collection[EntityId]) -> Int64:
    """Return the numbers of those entities that the store has, ascending."""
    known = []
    for id in sorted(ids):
        try:
            known.append(int(store.numbers([id])[0]))
        except EntityNotFound:
            continue
    return np.array(sorted(known), np.int64)
