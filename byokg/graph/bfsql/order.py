"""Order of the edges of a subgraph, and the nodes that precede all of them.

Edges precede others if a filter matches them (or the far end), if their predicate is more relevant to the question, if
they are nearer to the seeds, and if their far end has more edges within the subgraph; then by ids, predicate, and
number in the store. With a question, hops weigh as much as relevance, and the first edges of each predicate precede the
others. Each end is shown before its first edge; nodes without any edge, and a few seeds, before all. So all pages
together are the whole, and no edge has an end that was not shown.

Edges with equal filters, predicate and hops form a class. There are few classes, so a page counts them, and sorts only
edges that may fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.graph.bfsql.protocol import Selection, Subgraph
from byokg.graph.store import GraphStore

Ranks = npt.NDArray[np.int64]
"""(R,) for each relation of the store its place by relevance to a question, 0 for the most relevant."""

Relevance = Callable[[str], Ranks]

WAYS = ("out", "in", "level")
"""An edge leads away from the seeds, towards them, or between nodes that are equally far."""

_FEW_SEEDS = 10
"""So many are shown first, whether or not an edge of them is."""

_TYPED = 1 << 14
"""Nearest nodes whose types are read to detect edges to a wanted type."""

_TURN_BITS, _RANK_BITS, _HOP_BITS = 1, 16, 6
_LAST_RANK = (1 << _RANK_BITS) - 1
_MOST_HOPS = (1 << _HOP_BITS) - 1

_FARTHER, _FAR = 16, 4
"""How many times farther back a question's predicate stands for each hop that it is away, up to so many."""

_TURNS, _AT_A_TURN = 64, 5
"""Number of classes whose first edges precede all others, if a question ranks them; and edges of each.

More hops' worth, and turns, help on WebQSP's dev split; fewer than five at a turn hurt on that of CWQ.
"""

_MANY = 16
"""Where a list is so many times longer, its first members are sought in a heap; otherwise, all of it is sorted."""

_SPARE = 1 << 16
"""Possible classes, beside four for each edge, up to which they are counted in a table of all."""


class SubgraphOrder:
    """The order of one subgraph for one request.

    Args:
        store: the graph.
        subgraph: N nodes and E edges.
        request: source of the filters.
        ranks: of the relations; None without a question.
    """

    def __init__(self, store: GraphStore, subgraph: Subgraph, request: Selection, ranks: Ranks | None) -> None:
        self._store, self._subgraph, self.ranks = store, subgraph, ranks
        self._request, self._predicates = request, request.full_predicates
        self._filtered = request.full_types is not None or bool(request.full_values)
        self._hops = np.minimum(subgraph.hops, _MOST_HOPS).astype(np.int8)
        edges, rings, wanted = subgraph.edges, int(self._hops.max(initial=0)) + 1, 1 + self._filtered
        size = len(store.relations) * rings * rings * wanted
        begins = np.searchsorted(self._hops, np.arange(1, rings))
        """Where among the nodes each hop begins, but the first."""
        bounds = np.concatenate(([0], edges.outgoing.cumsum()))[begins].tolist()
        cell = edges.relation.astype(np.min_scalar_type(size))
        cell *= rings
        for start in bounds:
            cell[start:] += 1
        cell *= rings
        last = np.ones(len(edges), np.bool_)
        for begin in begins.tolist():
            last = edges.tail >= begin
            cell += last
        outer = bounds[-1] if bounds else 0
        self._inner = np.concatenate((np.arange(outer), (~last[outer:]).nonzero()[0] + outer))
        """Edges with an end that is not of the farthest nodes: often few, and all that a page is about."""
        if self._filtered:
            cell *= wanted
            cell += ~self._wanted_nodes.take(self.far(np.arange(len(edges))))
        if size <= 4 * len(edges) + _SPARE:
            counts = np.bincount(cell, minlength=size)
            self._classes = found = counts.nonzero()[0]
            counts = counts[found]
        else:
            found, cell, counts = np.unique(cell, return_inverse=True, return_counts=True)
            size, found, self._classes = len(found), found.astype(np.int64), np.arange(len(found))
        self._cell, self._size = cell, size
        """(E,) the class of each edge, and how many classes are possible; C of them are there."""
        self.counts = counts
        """(C,) edges of each class."""
        self.relation = found // (wanted * rings * rings)
        of_head, of_tail = np.divmod(found // wanted % (rings * rings), rings)
        self.hops = np.minimum(of_head, of_tail)
        """(C,) how far the nearer end is."""
        self.way = np.where(of_head == of_tail, 2, of_head > of_tail)
        """(C,) a position in `WAYS`."""
        keys = self._unasked.take(self.relation) << 1 | found % wanted
        keys <<= _TURN_BITS + _RANK_BITS
        if ranks is not None:
            rank = ranks.take(self.relation) * _FARTHER ** np.minimum(self.hops, _FAR)
            keys |= np.minimum(rank, _LAST_RANK)
        self._keys = keys << 2 * _HOP_BITS | self.hops << _HOP_BITS | np.maximum(of_head, of_tail)
        """(C,) lower for preceding classes. Only degree and id decide within one."""
        self._is_inner = self.hops < rings - 1
        if ranks is not None:
            self._take_turns()

    def _take_turns(self) -> None:
        """Let the first edges of each of the most relevant classes come before all others: one may have very many."""
        first = np.argsort(self._keys, kind="stable")[:_TURNS]
        marks = np.zeros(len(self.counts), np.uint8)
        marks[first] = np.arange(1, len(first) + 1)
        rows, group = self.marked(marks)
        order = np.argsort(group, kind="stable")
        stops = np.searchsorted(group[order], np.arange(1, len(first) + 1), "right").tolist()
        self._cell = self._cell.astype(np.int64)
        start = 0
        for at, stop in enumerate(stops):
            few = rows[order[start:stop]]
            self._cell[self._first(few, _AT_A_TURN) if len(few) > _AT_A_TURN else few] = self._size + at
            start = stop
        taken = np.bincount(self._cell[rows], minlength=self._size + len(first))[self._size :]
        self.counts = np.concatenate((self.counts, taken))
        self.counts[first] -= taken
        self._classes = np.concatenate((self._classes, self._size + np.arange(len(first))))
        self._size += len(first)
        self.relation, self.hops, self.way, self._is_inner = (
            np.concatenate((column, column[first])) for column in (self.relation, self.hops, self.way, self._is_inner)
        )
        later = 1 << _RANK_BITS + 2 * _HOP_BITS
        self._keys = np.concatenate((self._keys | later, self._keys[first]))

    def ends(self, rows: Int64) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]:
        """Return for some edges the end that is nearer to the seeds and the other one, as positions among the nodes."""
        head, tail = self._subgraph.edges.head.take(rows), self._subgraph.edges.tail.take(rows)
        turned = self._hops.take(head) > self._hops.take(tail)
        return np.where(turned, tail, head), np.where(turned, head, tail)

    def far(self, rows: Int64) -> npt.NDArray[np.integer]:
        """Return which end of some edges is farther from the seeds, as positions among the nodes."""
        return self.ends(rows)[1]

    @cached_property
    def _wanted_nodes(self) -> npt.NDArray[np.bool_]:
        """Return a mask of nodes that the filter wants, as far as they were read: (N,)."""
        found = np.zeros(len(self._subgraph.nodes), np.bool_)
        if self._request.full_types or self._request.full_values:
            nodes = self._store.nodes(self._store.ids(self._subgraph.nodes[:_TYPED]))
            found[: len(nodes)] = [self._request.shows_in_full(node) for node in nodes]
        return found

    @cached_property
    def _unasked(self) -> Int64:
        """Return a mask of the relations that a filter leaves out: (R,), 0 or 1."""
        if self._predicates is None:
            return np.zeros(len(self._store.relations), np.int64)
        return np.array([label not in self._predicates for label in self._store.relations], np.int64)

    @cached_property
    def relation_keys(self) -> Int64:
        """Return a number for each relation, lower for those that come before: (R,)."""
        keys = self._unasked << _RANK_BITS
        return keys if self.ranks is None else keys | np.minimum(self.ranks, _LAST_RANK)

    @cached_property
    def matching(self) -> int:
        """Return the number of edges that match some filter; they come first. All match without a filter."""
        filters = (self._predicates is not None) * 2 + self._filtered
        stubbed = filters << _TURN_BITS + _RANK_BITS + 2 * _HOP_BITS
        return int(self.counts.sum() if not filters else self.counts[self._keys < stubbed].sum())

    def class_of(self, rows: Int64) -> Int64:
        """Return the class of some edges, as a position among the C classes."""
        return np.searchsorted(self._classes, self._cell[rows])

    def marked(self, marks: npt.NDArray[np.uint8]) -> tuple[Int64, npt.NDArray[np.uint8]]:
        """Return the edges whose class has a mark, which is not 0, and their marks; `marks` is (C,)."""
        table = np.zeros(self._size, np.uint8)
        table[self._classes] = marks
        if marks[~self._is_inner].any():
            found = table.take(self._cell)
            rows = (found > 0).nonzero()[0]
            return rows, found[rows]
        found = table.take(self._cell.take(self._inner))
        kept = (found > 0).nonzero()[0]
        return self._inner[kept], found[kept]

    def refined(self, rows: Int64) -> Int64:
        """Return for some edges of the same class a number, lower for those whose far end has more edges."""
        return -self._subgraph.degrees.take(self.far(rows))

    def rows(self, count: int) -> Int64:
        """Return the first edges, in order, as positions among those of the subgraph: (count,)."""
        count = min(count, len(self._cell))
        if count == 0:
            return np.empty(0, np.int64)
        ascending = np.argsort(self._keys, kind="stable")
        last = int(np.searchsorted(self.counts[ascending].cumsum(), count))
        bound = self._keys[ascending[last]]
        rows, mark = self.marked((self._keys < bound) + (self._keys <= bound).view(np.uint8))
        before, tied = rows[mark == 2], rows[mark == 1]
        if (lacking := count - len(before)) < len(tied):
            tied = self._first(tied, lacking)
        rows = np.concatenate((before, tied))
        classes, (near, far) = self.class_of(rows), self.ends(rows)
        labels = self._store.relations
        columns = zip(
            self._keys[classes].tolist(),
            (-self._subgraph.degrees.take(far)).tolist(),
            self._store.ids(self._subgraph.nodes[far]),
            self._store.ids(self._subgraph.nodes[near]),
            [labels[number] for number in self.relation[classes].tolist()],
            self.way[classes].tolist(),
            self._subgraph.edges.edge[rows].tolist(),
            strict=True,
        )
        sequence = [at for _, at in sorted(zip(columns, range(len(rows)), strict=True))]
        return rows[sequence[:count]]

    def _first(self, tied: Int64, count: int) -> Int64:
        """Leave out of edges of the same class most of those that are not among the first `count`."""
        degrees = self.refined(tied)
        bound = np.partition(degrees, count - 1)[count - 1]
        before, tied = tied[degrees < bound], tied[degrees == bound]
        ids = self._store.ids(self._subgraph.nodes[self.far(tied)])
        lacking = count - len(before)
        last = nsmallest(lacking, ids)[-1] if lacking * _MANY < len(ids) else sorted(ids)[lacking - 1]
        return np.concatenate((before, tied[[at for at, id in enumerate(ids) if id <= last]]))

    @cached_property
    def leading(self) -> Int64:
        """Return the nodes that precede all edges: those without one, and the seeds if there are few."""
        subgraph = self._subgraph
        seeds = subgraph.hops == 0
        first = subgraph.degrees == 0
        if seeds.sum() <= _FEW_SEEDS:
            first |= seeds
        places = np.flatnonzero(first)
        ids = self._store.ids(subgraph.nodes[places])
        marks = zip((~self._wanted_nodes[places]).tolist(), subgraph.hops[places].tolist(), ids, strict=True)
        order = [at for _, at in sorted(zip(marks, range(len(places)), strict=True))]
        return places[order]


@dataclass(frozen=True)
class SubgraphPrefix:
    """The beginning of a subgraph in order: nodes, and edges that each come behind both of their ends."""

    nodes: Int64
    rows: Int64
    later: Int64
    """For each edge, which node of `nodes` it comes behind."""

    @classmethod
    def of(cls, order: SubgraphOrder, leading: Int64, rows: Int64) -> SubgraphPrefix:
        ends = np.concatenate((leading, np.stack(order.ends(rows), axis=1).ravel()))
        distinct, first, group = np.unique(ends, return_index=True, return_inverse=True)
        sequence = np.argsort(first, kind="stable")
        rank = np.empty(len(distinct), np.int64)
        rank[sequence] = np.arange(len(distinct))
        later = rank[group[len(leading) :]].reshape(-1, 2).max(axis=1, initial=0)
        return cls(distinct[sequence].astype(np.int64), rows, np.maximum.accumulate(later))
