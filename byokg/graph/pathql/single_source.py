"""Shortest paths out of nodes to all others, or from all others to them.

Searches out of several nodes go together while they are small, in a graph that is there once for each of them: vertex
v of copy c is `c * size + v`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.graph.pathql.expander import Expander, StepRows
from byokg.graph.pathql.search import (
    Layer,
    PathRows,
    Result,
    Search,
    SearchBudget,
    Side,
    among,
    arriving,
    follow,
    sort_layer,
    start_side,
)
from byokg.graph.sorted_ids import VisitedSet, borrow_visited

_SMALL = 20_000
"""Steps up to which searches go together; a larger one takes most of the time by itself."""
_A_FEW = 3
"""Steps after which looking ahead, which takes two calls, is likely to save some."""
_NARROW = 30
"""Number of vertices up to which a step takes a call's time; beyond, transfer dominates for any way of calling."""
_MOST_VERTICES = 1 << 26
"""Vertices of all copies of the graph."""


@dataclass(frozen=True)
class Fan:
    """Shortest paths out of nodes to all others, or from all others to them."""

    starts: Sequence[int]
    """The common node of the paths; several nodes are searched each for itself."""
    backward: bool
    """True if it is their end."""
    ends: Int64 | None
    """The nodes at the other end, ascending; None for any."""
    most: int | None
    """Steps at most; None for no bound."""
    every: bool
    """True for all shortest paths, False for one to each node."""
    cycles: bool
    """True if paths of one step or more may return to their start."""
    size: int = 0
    """Vertices of the graph; read for several starts."""


def single_source_paths(
    moves: Expander, fan: Fan, budget: SearchBudget, look_ahead: Callable[[Int64], None] | None = None
) -> Search[list[PathRows] | None]:
    """Find shortest paths out of a node to all others, or from all others to it; or the same for each of several nodes.

    Args:
        moves: the steps.
        fan: the paths.
        budget: limits of the search, and number of wanted paths.
        look_ahead: called if few vertices remain after a few steps, with all visited vertices but the first.

    Returns:
        The paths, those of each length together, by start. None if several searches do not stay small, or find more
        than wanted.
    """
    starts, ends, size, several = fan.starts, fan.ends, fan.size, len(fan.starts) > 1
    if several and (size * len(starts) > _MOST_VERTICES or (ends is not None and len(ends) > _SMALL // len(starts))):
        return None
    first, copies = np.array(starts, np.int64), np.arange(len(starts)) * size // moves.states
    nodes = first + copies
    if several and ends is not None:
        ends = (copies[:, None] + ends).reshape(-1)
    found: list[list[PathRows]] = [[] for _ in starts]
    with borrow_visited(2) as (marks, settled):
        side = start_side(moves, marks, nodes, fan.backward, fan.cycles)
        settled.room(int(nodes.max()))
        if moves.empty:
            for place in np.flatnonzero(among(nodes, nodes if ends is None else ends)).tolist():
                found[place].append(PathRows.at(first[place : place + 1] * moves.states))
        if not fan.cycles:
            settled.add(nodes)
        search = _FanSearch(moves, replace(fan, ends=ends), budget, side, settled)
        if not (yield from search.run(nodes, look_ahead)):
            return None
    if not several:
        rows = _dag(side, search.arrivals, budget) if fan.every else _tree(side, search.arrivals, budget, None)
        return [*found[0], *rows]
    if not search.reached:
        return [rows for each in found for rows in each]
    if fan.every:
        return _dags(side, search.arrivals, budget, size, found)
    of = [arrived // size for arrived in search.arrivals]
    for copy, each in enumerate(found):
        own = [arrived[which == copy] for arrived, which in zip(search.arrivals, of, strict=True)]
        each += _tree(side, own, budget, size)
    return [rows for each in found for rows in each]


@dataclass
class _FanSearch:
    """The levels of a search and the vertices of each at which paths end."""

    moves: Expander
    fan: Fan
    budget: SearchBudget
    side: Side
    settled: VisitedSet
    """Nodes that have their paths."""
    arrivals: list[Int64] = field(default_factory=list)
    reached: int = 0

    def run(self, nodes: Int64, look_ahead: Callable[[Int64], None] | None) -> Search[bool]:
        """Search level by level; False if several searches do not stay small, or find more than wanted."""
        moves, fan, side, several = self.moves, self.fan, self.side, len(self.fan.starts) > 1
        before, states = self.budget.spent, moves.states
        missing = None
        if fan.ends is not None:
            missing = set(fan.ends.tolist()).difference(nodes.tolist() if not fan.cycles else ())
        while len(side.frontier) and (fan.most is None or len(side.levels) <= fan.most):
            if look_ahead is not None and len(side.levels) == _A_FEW + 1 and len(side.frontier) <= _NARROW:
                look_ahead(np.concatenate(side.levels[1:-1]))
            grown = side.grow(self.budget, fan.every)
            if not (yield from _of_copies(grown, fan.size) if several else grown):
                break
            arrived = self._arrived()
            self.arrivals.append(arrived)
            self.reached += len(arrived)
            if several and (self.reached > self.budget.wanted or self.budget.spent - before > _SMALL):
                return False
            if self.reached > self.budget.wanted:  # each has a path at least, so that longer ones are not wanted
                break
            if missing is not None:
                missing.difference_update((arrived // states).tolist())
                if not missing:
                    break
        return True

    def _arrived(self) -> Int64:
        """Return the vertices of the last level that end paths: a node may be reached at several lengths."""
        moves, ends, vertices = self.moves, self.fan.ends, self.side.frontier
        if moves.states == 1 and ends is None and (self.fan.backward or moves.accepting[0]):
            return vertices
        arrived = vertices[arriving(vertices, moves, self.fan.backward, ends)]
        if moves.states == 1 or not len(arrived):
            return arrived
        count, nodes = self.settled.count, arrived // moves.states
        fresh = self.settled.add(nodes)
        return arrived[self.settled.not_met_before(nodes, count)] if self.fan.every else arrived[fresh]


def _dags(
    side: Side, arrivals: list[Int64], budget: SearchBudget, size: int, found: list[list[PathRows]]
) -> list[PathRows] | None:
    """Spell out all shortest paths in copies of the graph, behind those found, by copy; None if they are too many."""
    part, truncated = budget.part(), budget.truncated
    for rows in _dag(side, arrivals, part):
        which = rows.vertices[:, -1 if side.backward else 0] // size
        for copy in np.unique(which).tolist():
            some = np.flatnonzero(which == copy)
            found[copy].append(PathRows(rows.vertices[some] % size, rows.labels[some]))
    if part.full or budget.truncated > truncated:
        budget.truncated = truncated
        return None
    budget.wanted = part.wanted
    return [rows for each in found for rows in each]


def _of_copies(search: Search[Result], size: int) -> Search[Result]:
    """Let a search of copies of the graph ask for steps of the graph."""
    try:
        vertices, backward = next(search)
        while True:
            copied = vertices % size
            steps = yield copied, backward
            far = steps.far + (vertices - copied).take(steps.origin)
            vertices, backward = search.send(StepRows(steps.origin, far, steps.label))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _tree(side: Side, arrivals: list[Int64], budget: SearchBudget, size: int | None) -> Iterator[PathRows]:
    """Spell out one path to each arrival, by length; `size` is that of one of several copies of the graph."""
    for length, arrived in enumerate(arrivals, 1):
        if len(arrived) > budget.wanted:
            budget.full = True
            arrived = arrived[: budget.wanted]
        if len(arrived) > budget.rows(length):
            budget.truncated = True
            arrived = arrived[: budget.rows(length)]
        budget.wanted -= len(arrived)
        if len(arrived) == 0:
            continue
        yield _TreeRows(side, length, _positions(side.levels[length], arrived), size)


class _TreeRows(PathRows):
    """Paths of one length that are put together when they are looked at: most callers look at few of very many."""

    def __init__(self, side: Side, length: int, places: Int64, size: int | None) -> None:
        self._side, self._length, self._places, self._size = side, length, places, size

    def __len__(self) -> int:
        return len(self._places)

    def take(self, rows: npt.NDArray[np.generic] | slice) -> PathRows:
        """Return some of them."""
        return _TreeRows(self._side, self._length, self._places[rows], self._size)

    @cached_property
    def _both(self) -> tuple[Int64, Int64]:  # type: ignore[override]
        side, length, place = self._side, self._length, self._places
        vertices = np.empty((len(place), length + 1), np.int64)
        labels = np.empty((len(place), length), np.int64)
        for level in range(length, 0, -1):
            vertices[:, level] = side.levels[level].take(place)
            labels[:, level - 1] = side.labels[level - 1].take(place)
            place = side.parents[level - 1].take(place)
        vertices[:, 0] = side.levels[0].take(place)
        if self._size is not None:
            vertices %= self._size
        return (vertices[:, ::-1], labels[:, ::-1]) if side.backward else (vertices, labels)


def _positions(members: Int64, asked: Int64) -> Int64:
    """Return where distinct numbers stand among others."""
    if len(members) == len(asked):
        return np.arange(len(members))
    order = members.argsort(kind="stable")
    return order[np.searchsorted(members, asked, sorter=order)]


def _dag(side: Side, arrivals: list[Int64], budget: SearchBudget) -> Iterator[PathRows]:
    """Spell out all shortest paths to each arrival, by length."""
    layers = side.layers[: len(arrivals)]
    side.layers.clear()
    needed = np.empty(0, np.int64)
    kept: list[Layer] = []
    for arrived in reversed(arrivals):
        layer = layers.pop()
        ends = layer.near if side.backward else layer.far
        rows = np.flatnonzero(among(ends, np.concatenate((needed, arrived))))
        chosen = layer.take(rows)
        if side.backward:
            chosen = Layer(chosen.far, chosen.near, chosen.label)
        kept.append(chosen)
        needed = chosen.near
    rows_ = PathRows.at(side.levels[0])
    for length, arrived in enumerate(arrivals, 1):
        layer = sort_layer(kept.pop())
        room = budget.rows(length)
        row, step, cut = follow(rows_.vertices[:, -1], layer, room)
        rows_ = rows_.longer(row, layer.far.take(step), layer.label.take(step))
        budget.truncated |= cut
        done = rows_.take(np.flatnonzero(among(rows_.vertices[:, -1], arrived)))
        if len(done) > budget.wanted:
            budget.full = True
            done = done.take(slice(budget.wanted))
        budget.wanted -= len(done)
        if len(done):
            yield PathRows(done.vertices[:, ::-1], done.labels[:, ::-1]) if side.backward else done
        if budget.wanted <= 0:
            budget.full |= any(map(len, arrivals[length:]))
            return
