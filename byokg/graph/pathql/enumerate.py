"""Paths in order of length under a restrictor: between two nodes, or out of one node to others.

Between two nodes the possible steps of a path of a given length are found from both ends first, so that every prefix
leads to the end, unless it violates the restrictor. Out of one node prefixes grow a step at a time, all of one length
together. Neither depends on the total number of paths: the quota and the budget end it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.graph.pathql.expander import Expander
from byokg.graph.pathql.query import PathQuery, Restrictor, Selector
from byokg.graph.pathql.search import (
    Layer,
    PairSearch,
    PathRows,
    Search,
    SearchBudget,
    among,
    arriving,
    follow,
    prune,
    sort_layer,
)
from byokg.graph.sorted_ids import VisitedSet, borrow_visited, distinct

_BLOCK = 1 << 13
"""Beginnings of paths followed together."""
_PATIENCE = 1_000_000
"""Steps looked at without finding a path before paths are sought by deviations."""
_FAR = 16
"""Each so many steps it is seen whether anything new is still reached."""


class Quota:
    """How many paths of a pair are still wanted."""

    def __init__(self, selector: Selector, count: int) -> None:
        self._groups = selector in (Selector.SHORTEST_GROUPS, Selector.ALL_SHORTEST)
        self.left: int | None = None if selector is Selector.ALL else count
        """How many, or how many lengths; None for all."""
        self._last = -1.0

    def take(self, length: float, found: int = 1) -> int:
        """Count the paths of a length, or cost, none of them shorter than earlier ones; return the number wanted."""
        if self.left is None or found == 0:
            return found
        if self._groups:
            if length != self._last:
                if self.left == 0:
                    return 0
                self.left, self._last = self.left - 1, length
            return found
        taken = min(found, self.left)
        self.left -= taken
        return taken

    def wanted(self, room: int) -> int:
        """Return the number of paths of the next length to find, if any."""
        return room if self.left is None or self._groups else min(room, self.left)

    @property
    def filled(self) -> bool:
        """True if no longer paths are wanted."""
        return self.left == 0

    def closed(self, length: float) -> bool:
        """True if no path of at least this length, or cost, is wanted."""
        return self.filled and (not self._groups or length > self._last)


def allowed(
    rows: PathRows, row: Int64, far: Int64, label: Int64, restrictor: Restrictor, moves: Expander, last: bool
) -> npt.NDArray[np.bool_]:
    """Return a mask of the steps allowed after each row; `last` is True for the path's last step."""
    if restrictor is Restrictor.WALK:
        return np.ones(len(row), np.bool_)
    states, first = moves.states, 0
    if restrictor is Restrictor.TRAIL:
        table, item = moves.edge(rows.labels), moves.edge(label)
    else:
        table, item = (rows.vertices, far) if states == 1 else (rows.vertices // states, far // states)
        first = int(last and restrictor is Restrictor.SIMPLE)
    kept = np.ones(len(row), np.bool_)
    for column in range(first, table.shape[1]):
        kept &= table[:, column].take(row) != item
    return kept


def fulfils(rows: PathRows, restrictor: Restrictor, moves: Expander) -> npt.NDArray[np.bool_]:
    """Return a mask of the whole paths that fulfil a restrictor."""
    kept = np.ones(len(rows), np.bool_)
    if restrictor is Restrictor.WALK:
        return kept
    table = moves.edge(rows.labels) if restrictor is Restrictor.TRAIL else rows.vertices // moves.states
    width = table.shape[1]
    for one in range(width):
        for other in range(one + 1, width):
            ends = one == 0 and other == width - 1
            if not (ends and restrictor is Restrictor.SIMPLE):
                kept &= table[:, one] != table[:, other]
    return kept


class _Front:
    """The steps that lead from one end to any vertex in a given number of steps, visited or not."""

    def __init__(self, moves: Expander, start: Int64, closed: tuple[int, ...], backward: bool) -> None:
        self.layers: list[Layer] = []
        self.vertices = start
        self._moves = moves
        self._closed = closed
        self._backward = backward

    @property
    def open(self) -> Int64:
        """Return the vertices that are left next; a path does not go on from nodes that it may only end at."""
        if not self.layers or not self._closed:
            return self.vertices
        states = self._moves.states
        nodes = self.vertices if states == 1 else self.vertices // states
        return self.vertices[~among(nodes, np.array(self._closed))]

    def effort(self) -> int:
        """Estimate the steps to come."""
        return self._moves.effort(self.open, self._backward)

    def longest(self, by_node: bool) -> int | None:
        """Return how many steps a path without repetition can have, once nothing new is reached; None before that."""
        left = distinct(np.concatenate([layer.far if self._backward else layer.near for layer in self.layers]))
        if not np.isin(self.open, left).all():
            return None
        if by_node:
            return len(distinct(left // self._moves.states))
        return len(distinct(self._moves.edge(np.concatenate([layer.label for layer in self.layers]))))

    def grow(self, budget: SearchBudget) -> Search[bool]:
        """Go one step further; return whether the budget allowed it."""
        vertices = self.open
        effort = self._moves.effort(vertices, self._backward)
        if sum(len(layer.near) for layer in self.layers) + effort > budget.rows(0):
            budget.truncated = True
            return False
        if not budget.spend(effort):
            return False
        steps = yield vertices, self._backward
        near = vertices.take(steps.origin)
        self.layers.append(
            Layer(steps.far, near, steps.label) if self._backward else Layer(near, steps.far, steps.label)
        )
        with borrow_visited(1) as (marks,):
            self.vertices = steps.far.take(marks.add(steps.far))
        return True


class _Fronts:
    """The steps out of both ends of the paths of a pair."""

    def __init__(self, pair: PairSearch) -> None:
        self._pair, moves = pair, pair.moves
        closed = (pair.source, pair.target) if pair.restrictor.by_node else ()
        self.near = _Front(moves, pair.start, closed, False)
        self.far = _Front(moves, pair.target * moves.states + np.flatnonzero(moves.accepting), closed, True)

    @property
    def middle(self) -> Int64:
        """Return the vertices in which both meet."""
        return self.near.vertices[among(self.near.vertices, self.far.vertices)]

    def ahead(self, middle: Int64) -> list[Layer]:
        """Return the steps from the source to some vertices."""
        return prune(self.near.layers, middle, backward=True)

    def behind(self, middle: Int64) -> list[Layer]:
        """Return the steps from some vertices to the target."""
        return prune(self.far.layers[::-1], middle, backward=False)

    def exhausted(self, length: int) -> bool:
        """True if a path without repetition cannot be so long, as far as that is known."""
        by_node = self._pair.restrictor.by_node
        bounds = [front.longest(by_node) for front in (self.near, self.far) if front.layers]
        return any(bound is not None and length > bound for bound in bounds)


def between(
    pair: PairSearch, quota: Quota, longest: int, may_give_up: bool = False
) -> Search[tuple[list[PathRows], bool]]:
    """Find the paths from one node to another, by length and then in order of a depth-first search.

    Args:
        pair: the search.
        quota: number of wanted paths; counted down.
        longest: largest number of steps of a path under the restrictor.
        may_give_up: stop after much work without a result.

    Returns:
        The paths, those of each length together, and whether it gave up before the next length.
    """
    restrictor, budget = pair.restrictor, pair.budget
    found: list[PathRows] = []
    if pair.source == pair.target and pair.moves.empty and quota.take(0, 1) and budget.wanted > 0:
        budget.wanted -= 1
        found.append(PathRows.at(pair.start))
    if restrictor is Restrictor.ACYCLIC and pair.source == pair.target:
        return found, False
    fronts = _Fronts(pair)
    near, far = fronts.near, fronts.far
    until = budget.spent + _PATIENCE if may_give_up else None
    for length in range(1, (longest if pair.most is None else min(pair.most, longest)) + 1):
        if quota.filled:
            break
        side = far if far.effort() < near.effort() else near
        if until is not None and budget.spent + side.effort() > until:
            return found, True
        if len(side.vertices) == 0 or not (yield from side.grow(budget)) or len(side.vertices) == 0:
            break
        if length % _FAR == 0 and restrictor is not Restrictor.WALK and fronts.exhausted(length):
            break
        middle = fronts.middle
        if len(middle) == 0:
            continue
        if budget.wanted <= 0:
            budget.full = True
            break
        wanted = quota.wanted(budget.wanted)
        layers = [*fronts.ahead(middle), *fronts.behind(middle)]
        rows = _through(layers, pair.start, pair, restrictor, wanted + (wanted == budget.wanted), until)
        budget.full |= len(rows) > budget.wanted
        taken = quota.take(length, min(len(rows), budget.wanted))
        budget.wanted -= taken
        if taken:
            found.append(rows.take(slice(taken)))
        if until is not None and budget.spent >= until and not quota.filled and budget.wanted > 0:
            return found, True
        if taken and until is not None:
            until = budget.spent + _PATIENCE
    return found, False


def count_paths(pair: PairSearch) -> Search[int]:
    """Count the paths of at most `pair.most` steps from one node to another without putting them together.

    Halves of paths are listed from both ends, and those that meet are counted if they have nothing in common that may
    not be repeated: by inclusion and exclusion, so that pairs of halves are never listed.
    """
    moves, restrictor, budget = pair.moves, pair.restrictor, pair.budget
    total = int(pair.source == pair.target and moves.empty)
    if restrictor is Restrictor.ACYCLIC and pair.source == pair.target:
        return total
    fronts = _Fronts(pair)
    near, far = fronts.near, fronts.far
    for _ in range(pair.most or 0):
        side = min((near, far), key=lambda each: (len(each.layers), each.effort()))
        if not (yield from side.grow(budget)) or len(side.vertices) == 0:
            break
        middle = fronts.middle
        halves = restrictor.by_node and bool(near.layers and far.layers)
        if halves:
            middle = middle[~among(middle // moves.states, np.array((pair.source, pair.target)))]
        if len(middle) == 0:
            continue
        half = Restrictor.ACYCLIC if halves else restrictor
        room = budget.rows(len(near.layers) + 1)
        ahead = _through(fronts.ahead(middle), pair.start, pair, half, room)
        behind = _through(fronts.behind(middle), middle, pair, half, room)
        budget.truncated |= len(ahead) >= room or len(behind) >= room
        total += _apart(ahead, behind, restrictor, moves)
    return total


def _apart(ahead: PathRows, behind: PathRows, restrictor: Restrictor, moves: Expander) -> int:
    """Count the pairs of halves that meet and have nothing in common that may not be repeated."""
    if restrictor is Restrictor.TRAIL:
        items = [moves.edge(ahead.labels), moves.edge(behind.labels)]
    elif restrictor is Restrictor.WALK:
        items = [rows.labels[:, :0] for rows in (ahead, behind)]
    else:
        items = [rows.vertices[:, 1:-1] // moves.states for rows in (ahead, behind)]
    meeting = np.concatenate((ahead.vertices[:, -1], behind.vertices[:, 0]))
    place = np.unique(meeting, return_inverse=True)[1].reshape(-1)
    distinct, flat = np.unique(np.concatenate([each.reshape(-1) for each in items]), return_inverse=True)
    split = items[0].size
    numbers = [
        np.sort(part.reshape(each.shape), axis=1)
        for part, each in zip((flat[:split], flat[split:]), items, strict=True)
    ]
    places = place[: len(ahead)], place[len(ahead) :]
    total = 0
    for size in range(min(each.shape[1] for each in items) + 1):
        keys = []
        for number, at in zip(numbers, places, strict=True):
            chosen = [list(each) for each in combinations(range(number.shape[1]), size)]
            keys.append(np.concatenate([np.column_stack((at, number[:, columns])) for columns in chosen]))
        key = np.concatenate([each[:, 0] for each in keys])
        for column in range(1, size + 1):
            key = key * len(distinct) + np.concatenate([each[:, column] for each in keys])
            key = np.unique(key, return_inverse=True)[1].reshape(-1)
        one, other = (
            np.bincount(part, minlength=int(key.max()) + 1 if len(key) else 1)
            for part in (key[: len(keys[0])], key[len(keys[0]) :])
        )
        total += (-1) ** size * int((one * other).sum())
    return total


def _through(
    layers: list[Layer], start: Int64, pair: PairSearch, restrictor: Restrictor, limit: int, until: int | None = None
) -> PathRows:
    """Return the first paths through layers that fulfil a restrictor, or those found within the budget."""
    layers, moves, budget = [sort_layer(layer) for layer in layers], pair.moves, pair.budget
    found: list[PathRows] = []
    count = 0
    stack = [(PathRows.at(start), 0, 0)]
    while stack and count < limit and (until is None or budget.spent < until):
        rows, depth, begin = stack.pop()
        if depth == len(layers):
            found.append(rows)
            count += len(rows)
            continue
        layer = layers[depth]
        row, step, more = follow(rows.vertices[:, -1], layer, begin + _BLOCK)
        if more:
            stack.append((rows, depth, begin + _BLOCK))
        row, step = row[begin:], step[begin:]
        far, label = layer.far.take(step), layer.label.take(step)
        if not budget.spend(len(row) * (depth + 1)):
            break
        kept = np.flatnonzero(allowed(rows, row, far, label, restrictor, moves, depth + 1 == len(layers)))
        if len(kept):
            stack.append((rows.longer(row[kept], far[kept], label[kept]), depth + 1, 0))
    if not found:
        return PathRows(np.empty((0, len(layers) + 1), np.int64), np.empty((0, len(layers)), np.int64))
    return PathRows(
        np.concatenate([rows.vertices for rows in found])[:limit],
        np.concatenate([rows.labels for rows in found])[:limit],
    )


def outward(
    moves: Expander, starts: Int64, backward: bool, ends: Int64 | None, query: PathQuery, budget: SearchBudget
) -> Search[list[PathRows]]:
    """Find the paths out of nodes to others, or from others to them, by start and then by length.

    Args:
        moves: the steps.
        starts: common nodes of the paths, ascending.
        backward: True if paths end there instead.
        ends: the nodes at the other end, ascending; None for any.
        query: selector of the paths of each pair.
        budget: limits of the search.
    """
    most, states = query.max_length, moves.states
    first = np.flatnonzero(moves.accepting) if backward else np.zeros(1, np.int64)
    rows, length = PathRows.at((starts[:, None] * states + first).reshape(-1)), 0
    shares, passed = _Shares(query, starts, states), _Shares(query, starts, 1)
    found: list[PathRows] = []
    with ExitStack() as stack:
        away = None
        if ends is not None:
            away = yield from _away(moves, ends, not backward, most, budget, stack.enter_context(borrow_visited(1))[0])
        if moves.empty:
            at_once = PathRows.at((starts if ends is None else np.intersect1d(starts, ends)) * states)
            found += shares.wanted(at_once, budget)
        while len(rows) and (most is None or length < most) and budget.wanted > 0:
            length += 1
            vertices, which = np.unique(rows.vertices[:, -1], return_inverse=True)
            if not budget.spend(moves.effort(vertices, backward)):
                break
            steps = yield vertices, backward
            row, step, cut = follow(which.reshape(-1), Layer(*steps), budget.rows(length + 1))
            budget.truncated |= cut
            if not budget.spend(len(row) * length):
                break
            grown = row, steps.far.take(step), steps.label.take(step)
            if away is not None:
                near = away.within(grown[1], None if most is None else most - length)
                grown = grown[0][near], grown[1][near], grown[2][near]
            done = _selected(grown, arriving(grown[1], moves, backward, ends))
            found += shares.wanted(rows.longer(*_allowed(rows, done, query.restrictor, moves, last=True)), budget)
            if ends is not None and shares.filled(len(starts) * len(ends)):
                break
            on = _allowed(rows, grown, query.restrictor, moves, last=False)
            if query.restrictor is Restrictor.WALK and query.selector is not Selector.ALL:
                # None of the k shortest begins with more than the k shortest to a vertex.
                on = _selected(on, passed.take(rows.vertices[on[0], 0] // states, on[1], length))
            rows = rows.longer(*on)
        if len(rows) and budget.wanted <= 0:
            budget.full = True
    return _by_start(found, starts, states, backward)


_Grown: TypeAlias = tuple[Int64, Int64, Int64]
"""Steps behind rows of paths: row, far vertex and label of each."""


def _selected(grown: _Grown, kept: npt.NDArray[np.bool_]) -> _Grown:
    return grown[0][kept], grown[1][kept], grown[2][kept]


def _allowed(rows: PathRows, grown: _Grown, restrictor: Restrictor, moves: Expander, last: bool) -> _Grown:
    """Return the steps that may follow; `last` is True for the last ones of paths."""
    return _selected(grown, allowed(rows, *grown, restrictor, moves, last))


def _by_start(found: list[PathRows], starts: Int64, states: int, backward: bool) -> list[PathRows]:
    """Return paths in their own direction, those of each start together."""
    if len(starts) > 1:
        own = [(each, each.vertices[:, 0] // states) for each in found]
        found = [each.take(np.flatnonzero(of == start)) for start in starts.tolist() for each, of in own if start in of]
    return [PathRows(each.vertices[:, ::-1], each.labels[:, ::-1]) for each in found] if backward else found


class _Shares:
    """How many paths of each pair of a start and an end are still wanted."""

    def __init__(self, query: PathQuery, starts: Int64, states: int) -> None:
        self._query, self._starts, self.states = query, starts, states
        self._quotas: dict[int, Quota] = {}

    def take(self, starts: Int64, ends: Int64, length: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the wanted paths of a length, by their start nodes and end vertices."""
        if self._query.selector is Selector.ALL:
            return np.ones(len(starts), np.bool_)
        keys = ends // self.states * len(self._starts) + np.searchsorted(self._starts, starts)
        selector, count = self._query.selector, self._query.count
        quotas = self._quotas
        taken = [quotas.setdefault(key, Quota(selector, count)).take(length) == 1 for key in keys.tolist()]
        return np.array(taken, np.bool_)

    def filled(self, pairs: int) -> bool:
        """True if no path of so many pairs is wanted any more."""
        return len(self._quotas) == pairs and all(quota.filled for quota in self._quotas.values())

    def wanted(self, rows: PathRows, budget: SearchBudget) -> Iterator[PathRows]:
        """Yield those of the paths of a length that are wanted of each pair."""
        if len(rows) == 0:
            return
        starts, ends = rows.vertices[:, 0] // self.states, rows.vertices[:, -1]
        kept = np.flatnonzero(self.take(starts, ends, rows.labels.shape[1]))
        if len(kept) > budget.wanted:
            budget.full = True
            kept = kept[: budget.wanted]
        budget.wanted -= len(kept)
        if len(kept):
            yield rows.take(kept)


@dataclass(frozen=True)
class _Away:
    """How far vertices are from any of some ends."""

    marks: VisitedSet
    bounds: list[int]
    """How many vertices are at most so many steps away."""

    def within(self, vertices: Int64, steps: int | None) -> Int64:
        """Return the positions of the vertices from which an end can be reached in so many steps."""
        if len(vertices):
            self.marks.room(int(vertices.max()))
        position = self.marks.position(vertices)
        kept = position >= 0
        if steps is not None:
            kept &= position < self.bounds[min(steps, len(self.bounds) - 1)]
        return np.flatnonzero(kept)


def _away(
    moves: Expander, ends: Int64, backward: bool, most: int | None, budget: SearchBudget, marks: VisitedSet
) -> Search[_Away | None]:
    """Search from `ends`, against the direction of the paths if `backward`; None if the budget forbids it."""
    starts = np.flatnonzero(moves.accepting) if backward else np.zeros(1, np.int64)
    frontier = (ends[:, None] * moves.states + starts).reshape(-1)
    marks.add(frontier)
    bounds = [len(frontier)]
    while len(frontier) and (most is None or len(bounds) <= most):
        if not budget.spend(moves.effort(frontier, backward)):
            return None
        steps = yield frontier, backward
        frontier = steps.far.take(marks.add(steps.far))
        bounds.append(bounds[-1] + len(frontier))
    return _Away(marks, bounds)


@dataclass(frozen=True)
class _PathPrefix:
    """The beginning of a path, and the step that made it longer."""

    vertex: int
    length: int
    label: int = -1
    before: _PathPrefix | None = None

    def rows(self) -> PathRows:
        """Return it as a path."""
        chain = list(self.chain())[::-1]
        labels = [each.label for each in chain[1:]]
        return PathRows(np.array([[each.vertex for each in chain]], np.int64), np.array([labels], np.int64))

    def chain(self) -> Iterator[_PathPrefix]:
        """Yield the beginning and all that it grew from."""
        each: _PathPrefix | None = self
        while each is not None:
            yield each
            each = each.before


def cheapest(
    moves: Expander,
    source: int,
    targets: frozenset[int] | None,
    prices: Callable[[Int64], list[float | None]],
    query: PathQuery,
    budget: SearchBudget,
) -> Iterator[tuple[PathRows, float]]:
    """Yield paths out of a node, the cheapest first: the cost of a path is the sum of its steps' costs.

    Args:
        moves: the steps.
        source: node where paths start.
        targets: nodes where they end; None for any.
        prices: returns the cost of steps of some labels; none below 0, and None for one that is not walked.
        query: selector of the paths.
        budget: limits of the search.
    """
    states, restrictor, selector, count = moves.states, query.restrictor, query.selector, query.count
    # Where every beginning of a wanted path is one of the cheapest to its vertex, the others need not be followed.
    one_each = selector in (Selector.ANY_SHORTEST, Selector.ALL_SHORTEST) or (selector is Selector.ANY and count == 1)
    pruned_ = restrictor is Restrictor.WALK or (one_each and states == 1 and restrictor is not Restrictor.TRAIL)
    wanted: dict[int, Quota] = {}
    passed: dict[tuple[int, int], Quota] = {}
    order = 0
    heap: list[tuple[float, int, int, _PathPrefix]] = [(0.0, 0, 0, _PathPrefix(source * states, 0))]
    while heap:
        cost, _, _, begun = heapq.heappop(heap)
        if not budget.spend(begun.length + 1):
            return
        node, state = divmod(begun.vertex, states)
        ends = (begun.length or moves.empty) and moves.accepting[state] and (targets is None or node in targets)
        if ends and wanted.setdefault(node, Quota(selector, count)).take(cost):
            if budget.wanted <= 0:
                budget.full = True
                return
            budget.wanted -= 1
            yield begun.rows(), cost
        if targets is not None and len(wanted) == len(targets) and all(each.closed(cost) for each in wanted.values()):
            return
        closed = begun.length > 0 and node == source and restrictor.by_node
        if closed or (query.max_length is not None and begun.length >= query.max_length):
            continue
        if pruned_ and begun.length:
            key = (begun.vertex, 0 if query.max_length is None else begun.length)
            if not passed.setdefault(key, Quota(selector, count)).take(cost):
                continue
        steps = moves.forward(np.array([begun.vertex], np.int64))
        for far, label, price in zip(steps.far.tolist(), steps.label.tolist(), prices(steps.label), strict=True):
            if price is not None and _may_follow(begun, far, label, restrictor, moves):
                order += 1
                longer = _PathPrefix(far, begun.length + 1, label, begun)
                heapq.heappush(heap, (cost + price, longer.length, order, longer))


def _may_follow(begun: _PathPrefix, far: int, label: int, restrictor: Restrictor, moves: Expander) -> bool:
    """True if a step may follow the beginning of a path."""
    if restrictor is Restrictor.WALK:
        return True
    if restrictor is Restrictor.TRAIL:
        edge = int(moves.edge(np.array([label]))[0])
        walked = [each.label for each in begun.chain() if each.before is not None]
        return edge not in moves.edge(np.array(walked, np.int64)).tolist()
    node = far // moves.states
    return all(
        each.vertex // moves.states != node or (each.before is None and restrictor is Restrictor.SIMPLE)
        for each in begun.chain()
    )
