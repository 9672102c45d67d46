"""Shortest paths, searched breadth first: between two nodes from both ends at once, or out of one node to all others.

A search stops at the depth of the first meeting on both sides. Its nodes are in a `VisitedSet`: the cost grows with
the visited part and not with the graph. It is a generator that yields requests for the steps out of vertices and
receives them, so that several searches share calls to a server.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from byokg.arrays import Bools, Int64
from byokg.errors import QueryTimeout
from byokg.graph.cancellation import check
from byokg.graph.pathql.expander import Expander, StepRows
from byokg.graph.pathql.query import Restrictor
from byokg.graph.sorted_ids import VisitedSet, borrow_visited, contains, rank_of, rows_at


@dataclass(frozen=True)
class PathLimits:
    """Limits of a path query; a limit that left paths out sets `truncated`."""

    timeout_s: float = 10.0
    max_paths: int = 10_000
    """Paths at most, unless the query has a LIMIT of its own."""
    max_steps: int = 8_000_000
    """Nodes on the paths that are held at a time, at most; ten times as many steps are looked at."""
    hub_cap: int | None = None
    """Steps walked out of one node, or back from it, the first in edge order; None walks all."""


class SearchBudget:
    """Remaining limits while a query runs."""

    def __init__(self, limits: PathLimits, wanted: int, whole: SearchBudget | None = None) -> None:
        """Begin now; `wanted` paths are enough. A part of a `whole` spends what that has."""
        self.limits, self._whole = limits, whole or self
        self._until: float = time.perf_counter() + limits.timeout_s if whole is None else whole._until
        self._steps = 10 * limits.max_steps
        self._truncated = False
        self.wanted = wanted
        self.full = False
        """Whether there are more paths than wanted."""

    def part(self, wanted: int | None = None) -> SearchBudget:
        """Return the budget of one of several searches; it counts its own paths."""
        return SearchBudget(self.limits, self.wanted if wanted is None else wanted, self._whole)

    @property
    def truncated(self) -> bool:
        """True if a limit may have left a path out."""
        return self._whole._truncated

    @truncated.setter
    def truncated(self, truncated: bool) -> None:
        self._whole._truncated = truncated

    @property
    def spent(self) -> int:
        """Return the steps looked at."""
        return 10 * self.limits.max_steps - self._whole._steps

    def spend(self, steps: int) -> bool:
        """Count steps; True if the search may continue. Records the limit otherwise."""
        check()
        whole = self._whole
        whole._steps -= steps
        if whole._steps < 0 or time.perf_counter() > self._until:
            whole._truncated = True
            return False
        return True

    def go_on(self) -> None:
        """Raise `QueryTimeout` if the time is over."""
        if not self.spend(0):
            raise QueryTimeout(self.limits.timeout_s)

    def open(self) -> bool:
        """True if another search may begin; records the limit otherwise."""
        if self.wanted <= 0:
            self.full = True
            return False
        return self.spend(1)

    @property
    def left_s(self) -> float:
        """Return how many seconds are left."""
        return self._until - time.perf_counter()

    def rows(self, width: int) -> int:
        """Return how many rows of a width may be held at a time."""
        return max(1, self.limits.max_steps // (2 * width + 2))

    def capped(self, steps: StepRows) -> StepRows:
        """Leave out steps beyond `hub_cap`, and record whether there were any."""
        cap = self.limits.hub_cap
        if cap is None or len(steps.origin) <= cap:
            return steps
        kept = np.flatnonzero(rank_of(steps.origin) < cap)
        if len(kept) == len(steps.origin):
            return steps
        self.truncated = True
        return steps.take(kept)


@dataclass(frozen=True)
class PairSearch:
    """A search for paths from one node to another."""

    moves: Expander
    source: int
    target: int
    restrictor: Restrictor
    most: int | None
    """Steps of a path at most; None for no bound."""
    budget: SearchBudget
    """Limits of the search, and number of wanted paths."""

    @property
    def start(self) -> Int64:
        """Return the vertex where paths start: (1,)."""
        return np.array([self.source * self.moves.states], np.int64)


Result = TypeVar("Result")

Search: TypeAlias = Generator[tuple[Int64, bool], StepRows, Result]
"""A search under way. It yields requests for the steps out of some vertices, or into them (True), and returns its
paths; so several searches share calls to a server."""


def run(moves: Expander, search: Search[Result]) -> Result:
    """Return the result of one search."""
    try:
        vertices, backward = next(search)
        while True:
            vertices, backward = search.send(moves.backward(vertices) if backward else moves.forward(vertices))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def together(moves: Expander, searches: Sequence[Search[Result]]) -> list[Result]:
    """Return the results of searches; those of one direction share calls."""
    if len(searches) == 1:
        return [run(moves, searches[0])]
    found: dict[int, Result] = {}
    asked: dict[int, tuple[Int64, bool]] = {}

    def go_on(number: int, steps: StepRows | None) -> None:
        try:
            asked[number] = next(searches[number]) if steps is None else searches[number].send(steps)
        except StopIteration as end:
            found[number] = end.value

    for number in range(len(searches)):
        go_on(number, None)
    while asked:
        for backward in (False, True):
            some = {number: vertices for number, (vertices, way) in asked.items() if way == backward}
            walk = moves.backward if backward else moves.forward
            if len(some) == 1:
                ((number, vertices),) = some.items()
                del asked[number]
                go_on(number, walk(vertices))
            elif some:
                vertices, place = np.unique(np.concatenate(list(some.values())), return_inverse=True)
                steps = walk(vertices)
                for number, its in zip(
                    some, np.split(place, np.cumsum([len(each) for each in some.values()])[:-1]), strict=True
                ):
                    origin, row = rows_at(steps.origin, its)
                    del asked[number]
                    go_on(number, StepRows(origin, steps.far.take(row), steps.label.take(row)))
    return [found[number] for number in range(len(searches))]


class PathRows:
    """P paths, or beginnings of paths, of L steps each."""

    def __init__(self, vertices: Int64, labels: Int64) -> None:
        """Hold vertices (P, L + 1) and labels (P, L)."""
        self._both = vertices, labels

    @property
    def vertices(self) -> Int64:
        """Return the vertices: (P, L + 1)."""
        return self._both[0]

    @property
    def labels(self) -> Int64:
        """Return the labels of the steps: (P, L)."""
        return self._both[1]

    @classmethod
    def at(cls, vertices: Int64) -> PathRows:
        """Return paths of no steps."""
        return cls(vertices[:, None], np.empty((len(vertices), 0), np.int64))

    def __len__(self) -> int:
        return len(self.vertices)

    def take(self, rows: npt.NDArray[np.generic] | slice) -> PathRows:
        """Return some of them."""
        return PathRows(self.vertices[rows], self.labels[rows])

    def longer(self, row: Int64, far: Int64, label: Int64) -> PathRows:
        """Return some rows, each with one more step."""
        return PathRows(np.column_stack((self.vertices[row], far)), np.column_stack((self.labels[row], label)))


_PIECE = 1 << 16
"""Vertices that are left together."""


class Layer(NamedTuple):
    """The steps from one level of a search to the next, in the direction of the paths."""

    near: Int64
    far: Int64
    label: Int64

    def take(self, rows: Int64) -> Layer:
        """Return some of them."""
        return Layer(self.near.take(rows), self.far.take(rows), self.label.take(rows))


@dataclass(frozen=True)
class Ban:
    """Forbidden elements of a path: vertices, edges anywhere, and first steps by label."""

    moves: Expander
    vertices: Int64
    edges: Int64
    first: Int64

    def exclude(self, steps: StepRows, first: bool) -> StepRows:
        """Return the steps that are not banned; `first` is True for first steps."""
        kept = ~among(self.moves.edge(steps.label), self.edges)
        if first:
            kept &= ~among(steps.label, self.first)
        return steps.take(np.flatnonzero(kept))


@dataclass
class Side:
    """A search from one end."""

    marks: VisitedSet
    backward: bool
    frontier: Int64
    """The vertices of the last level."""
    levels: list[Int64] = field(default_factory=list)
    """The vertices first met at each level, that of the start first."""
    parents: list[Int64] = field(default_factory=list)
    """For each level but the first, the position in the level before that each vertex was met from first."""
    labels: list[Int64] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)
    """All steps to vertices first visited at the level, if all shortest paths are wanted."""
    _effort: tuple[Int64, int] | None = None

    def effort(self, moves: Expander) -> int:
        """Estimate the number of steps out of the last level; computed once for each."""
        if self._effort is None or self._effort[0] is not self.frontier:
            self._effort = self.frontier, moves.effort(self.frontier, self.backward)
        return self._effort[1]

    def grow(self, budget: SearchBudget, every: bool, ban: Ban | None = None) -> Search[bool]:
        """Go one step further, and return whether the budget allowed it; wide levels are left a piece at a time."""
        left, before = self.frontier, self.marks.count
        parts: list[StepRows] = []
        layers: list[Layer] = []
        for first in range(0, max(1, len(left)), _PIECE):
            vertices = left[first : first + _PIECE]
            steps = yield vertices, self.backward
            if not budget.spend(len(steps.far)):
                self.frontier = left[:0]
                return False
            if ban is not None:
                steps = ban.exclude(steps, len(self.levels) == 1 and not self.backward)
            if every:
                kept = np.flatnonzero(self.marks.not_met_before(steps.far, before))
                near, far = vertices.take(steps.origin.take(kept)), steps.far.take(kept)
                layers.append(Layer(*((far, near) if self.backward else (near, far)), steps.label.take(kept)))
            fresh = self.marks.add(steps.far)
            parts.append(StepRows(steps.origin.take(fresh) + first, steps.far.take(fresh), steps.label.take(fresh)))
        if every:
            self.layers.append(Layer(*_concatenate(layers)))
        parents, self.frontier, labels = _concatenate(parts)
        self.levels.append(self.frontier)
        self.parents.append(parents)
        self.labels.append(labels)
        return True

    def chain(self, vertex: int, level: int) -> tuple[list[int], list[int]]:
        """Return the vertices and labels from a vertex of a level back to the start."""
        place = int(np.flatnonzero(self.levels[level] == vertex)[0])
        return chain_back(self.levels[: level + 1], self.parents, self.labels, place)


def _concatenate(parts: Sequence[Iterable[Int64]]) -> Iterable[Int64]:
    """Put the columns of several parts together."""
    return parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))


def chain_back(
    levels: Sequence[Int64], parents: Sequence[Int64], walked: Sequence[Int64], place: int
) -> tuple[list[int], list[int]]:
    """Return the vertices and labels from a place in the last level back to the first level."""
    vertices, labels = [int(levels[-1][place])], []
    for level in range(len(levels) - 1, 0, -1):
        labels.append(int(walked[level - 1][place]))
        place = int(parents[level - 1][place])
        vertices.append(int(levels[level - 1][place]))
    return vertices, labels


class Sides:
    """Searches from ends shared by several pairs, each continued from its last state."""

    def __init__(self, moves: Expander, stack: ExitStack) -> None:
        """Keep them until the stack is left."""
        self._moves, self._stack = moves, stack
        self._sides: dict[tuple[int, bool], Side] = {}

    def of(self, node: int, backward: bool) -> Side:
        """Return the search from a node, or back from it."""
        if (node, backward) not in self._sides:
            (marks,) = self._stack.enter_context(borrow_visited(1))
            self._sides[node, backward] = start_side(self._moves, marks, np.array([node]), backward, False)
        return self._sides[node, backward]


def start_side(moves: Expander, marks: VisitedSet, nodes: Int64, backward: bool, cycles: bool) -> Side:
    """Begin a search from nodes, or back from them; `cycles` lets paths return to their start."""
    states = moves.states
    start = nodes * states
    if backward and not (states == 1 and moves.accepting[0]):
        start = (start[:, None] + np.flatnonzero(moves.accepting)).reshape(-1)
    marks.room((max(nodes.tolist()) + 1) * states)
    marks.add(start[start % states != 0] if cycles and moves.accepting[0] else start)
    return Side(marks, backward, start, [start])


def shortest(
    moves: Expander,
    source: int,
    target: int,
    most: int | None,
    budget: SearchBudget,
    every: bool,
    ban: Ban | None = None,
    sides: Sides | None = None,
) -> Search[PathRows | None]:
    """Find one shortest path between two nodes, or all of them.

    Args:
        moves: the steps.
        source: node where paths start.
        target: node where they end; if it is the source, the path of no steps if that counts, else cycles.
        most: steps at most; None for no bound.
        budget: limits of the search, and number of wanted paths.
        every: find all shortest paths.
        ban: forbidden elements; only if vertices are nodes.
        sides: searches begun for other pairs.

    Returns:
        The paths in order of a depth-first search; None if there are none.
    """
    cycle = source == target
    if cycle and moves.empty:
        return PathRows.at(np.array([source * moves.states], np.int64))
    with ExitStack() as stack:
        if sides is None or cycle or ban is not None:
            near_marks, far_marks = stack.enter_context(borrow_visited(2))
            near = start_side(moves, near_marks, np.array([source]), False, cycle)
            far = start_side(moves, far_marks, np.array([target]), True, False)
        else:
            near, far = sides.of(source, False), sides.of(target, True)
        if ban is not None:
            for side, vertices in ((near, ban.vertices), (far, np.append(ban.vertices, source))):
                side.marks.add(vertices)
        length, hops = len(near.levels) + len(far.levels) - 2, 0
        middle = near.frontier[:0]
        if length:
            length, hops, middle = _meeting(near, far)
        while not len(middle) and len(near.frontier) and len(far.frontier) and (most is None or length < most):
            # Only a step forward finds a loop, because the far side has met the start already.
            first = length == 0 and (cycle or ban is not None)
            backward = not first and far.effort(moves) < near.effort(moves)
            side, other = (far, near) if backward else (near, far)
            if not (yield from side.grow(budget, every, ban)):
                return None
            length, hops = length + 1, len(near.levels) - 1
            middle = side.frontier[other.marks.met(side.frontier)]
        if not len(middle) or (most is not None and length > most):
            return None
        if every:
            return _all(near, far, middle, hops, length - hops, budget)
        behind, walked = near.chain(int(middle[0]), hops)
        onward, labels = far.chain(int(middle[0]), length - hops)
        return PathRows(np.array([behind[::-1] + onward[1:]], np.int64), np.array([walked[::-1] + labels], np.int64))


def _meeting(near: Side, far: Side) -> tuple[int, int, Int64]:
    """Return the length of the shortest paths found by two searches, the near side's steps on them, and their meeting
    vertices; without a meeting, the sum of their depths, and no vertices."""
    best = len(near.levels) + len(far.levels) - 2, 0, near.frontier[:0]
    turned = near.marks.count > far.marks.count
    one, other = (far, near) if turned else (near, far)
    for hops, level in enumerate(one.levels):
        met = other.marks.met(level).nonzero()[0]
        if len(met) == 0:
            continue
        bounds = np.cumsum([len(level) for level in other.levels])
        depth = np.searchsorted(bounds, other.marks.position(level.take(met)), "right")
        least = int(depth.min())
        if not len(best[2]) or hops + least < best[0]:
            best = hops + least, least if turned else hops, level.take(met[depth == least])
    return best


def find_cycle(moves: Expander, node: int, most: int | None, budget: SearchBudget, ban: Ban) -> Search[PathRows | None]:
    """Find a shortest trail of one step or more from a node back to it, with edges walked in both directions.

    Its last edge is another than its first, so each vertex is visited up to twice, with different first edges: one of
    the two can continue wherever a third could.

    Args:
        moves: steps between nodes: of one state.
        node: where it starts and ends.
        most: steps at most; None for no bound.
        budget: limits of the search.
        ban: forbidden elements of the trail.
    """
    levels = [np.array([node], np.int64)]
    parents: list[Int64] = []
    walked: list[Int64] = []
    branches = known = levels[0][:0]
    while len(levels[-1]) and (most is None or len(walked) < most):
        left, begins = levels[-1], not walked
        parts: list[tuple[Int64, Int64, Int64, Int64]] = []
        for first in range(0, len(left), _PIECE):
            steps = yield left[first : first + _PIECE], False
            if not budget.spend(len(steps.far)):
                return None
            steps = ban.exclude(steps, begins)
            edge, origin = moves.edge(steps.label), steps.origin + first
            branch = edge if begins else branches.take(origin)
            home = steps.far == node
            back = np.flatnonzero(home if begins else home & (edge != branch))
            if len(back):
                vertices, labels = chain_back(levels, parents, walked, int(origin[back[0]]))
                last = int(steps.label[back[0]])
                return PathRows(
                    np.array([[*vertices[::-1], node]], np.int64), np.array([[*labels[::-1], last]], np.int64)
                )
            keys, rows = np.unique(steps.far << 32 | branch, return_index=True)
            fresh = np.flatnonzero(~(home.take(rows) | among(keys, known)))
            keys, rows = keys.take(fresh), rows.take(fresh)
            of_node = keys >> 32 << 32
            before = np.searchsorted(known, of_node + (1 << 32)) - np.searchsorted(known, of_node)
            some = np.flatnonzero(before + np.arange(len(keys)) - np.searchsorted(keys, of_node) < 2)
            rows = rows.take(some)
            known = np.sort(np.concatenate((known, keys.take(some))))
            parts.append((steps.far[rows], origin[rows], steps.label[rows], branch[rows]))
        far, parent, label, branches = _concatenate(parts)
        levels.append(far)
        parents.append(parent)
        walked.append(label)
    return None


def deviations(
    pair: PairSearch, known: Sequence[PathRows], wanted: int | None, either_way: bool
) -> Search[list[PathRows]]:
    """Find the paths between two nodes beside some known ones, the shortest first.

    Each costs a search for every possible deviation, so this ends soon if there are few, for any number of prefixes
    without a continuation.

    Args:
        pair: the search, over steps between nodes: of one state, with a restrictor other than WALK.
        known: first paths.
        wanted: paths to find; None for all.
        either_way: True if an edge may be walked in both directions.

    Source: J. Y. Yen, "Finding the K Shortest Loopless Paths in a Network" (1971).
    """
    search, budget = _DeviationSearch(pair, either_way), pair.budget
    yield from search.begin(known)
    found: list[PathRows] = []
    while search.heap and (wanted is None or len(found) < wanted) and budget.spend(0):
        if budget.wanted <= 0:
            budget.full = True
            break
        _, _, vertices, labels, place = heappop(search.heap)
        found.append(PathRows(np.array([vertices], np.int64), np.array([labels], np.int64)))
        budget.wanted -= 1
        yield from search.leave(vertices, labels, place)
    return found


class _DeviationSearch:
    """Deviations from the paths of a pair, the shortest of each."""

    def __init__(self, pair: PairSearch, either_way: bool) -> None:
        self._pair, self._either_way = pair, either_way
        self._trail = pair.restrictor is Restrictor.TRAIL
        self._leaving: dict[tuple[int, ...], set[int]] = {}
        """For each beginning of a path that was found, the steps by which one goes on."""
        self.heap: list[tuple[int, list[tuple[int, int]], list[int], list[int], int]] = []
        """Length, order, vertices, labels and place of deviation of the paths to come."""

    def begin(self, known: Sequence[PathRows]) -> Search[None]:
        """Leave each of the first paths, behind what it has in common with one before."""
        seen: set[tuple[int, ...]] = set()
        paths = [path for rows in known for path in zip(rows.vertices.tolist(), rows.labels.tolist(), strict=True)]
        for _, labels in paths:
            self._note(labels)
        for vertices, labels in paths:
            if not self._pair.budget.spend(0):
                self.heap.clear()
                return
            first = next((place for place in range(len(labels) + 1) if tuple(labels[:place]) not in seen), len(labels))
            seen.update(tuple(labels[:place]) for place in range(len(labels) + 1))
            yield from self.leave(vertices, labels, first)
        if not paths:
            yield from self.leave([self._pair.source], [], 0)

    def leave(self, vertices: list[int], labels: list[int], first: int) -> Search[None]:
        """Look for the shortest path that leaves a path at each of its nodes from the first on."""
        pair, trail = self._pair, self._trail
        self._note(labels)
        for place in range(first, max(1, len(labels) + trail)):
            if not pair.budget.spend(0):
                return
            node, before = vertices[place], np.array(labels[:place], np.int64)
            ban = Ban(
                pair.moves,
                _NONE if trail else np.array([each for each in vertices[:place] if each != pair.target], np.int64),
                pair.moves.edge(before) if trail else _NONE,
                np.array(sorted(self._leaving.get(tuple(labels[:place]), ())), np.int64),
            )
            onward = yield from self._onward(node, None if pair.most is None else pair.most - place, ban)
            if onward is not None:
                longer = labels[:place] + onward.labels[0].tolist()
                order = [(label & 1, label >> 1) for label in longer]
                nodes = vertices[:place] + onward.vertices[0].tolist()
                heappush(self.heap, (len(longer), order, nodes, longer, place))

    def _note(self, labels: list[int]) -> None:
        for place, label in enumerate(labels):
            self._leaving.setdefault(tuple(labels[:place]), set()).add(label)

    def _onward(self, node: int, most: int | None, ban: Ban) -> Search[PathRows | None]:
        """Find the shortest way to the target."""
        if self._trail and node == self._pair.target:
            return (yield from self._cycle(node, most, ban))
        onward = yield from self._straight(node, most, ban)
        if self._trail:
            bound = most if onward is None else onward.labels.shape[1] - 1
            onward = (yield from self._around(node, bound, ban)) or onward
        return onward

    def _straight(self, node: int, most: int | None, ban: Ban) -> Search[PathRows | None]:
        return (yield from shortest(self._pair.moves, node, self._pair.target, most, self._pair.budget, False, ban))

    def _cycle(self, node: int, most: int | None, ban: Ban) -> Search[PathRows | None]:
        """Find the shortest trail back to a node."""
        moves, budget = self._pair.moves, self._pair.budget
        if self._either_way or moves.empty:
            return (yield from find_cycle(moves, node, most, budget, ban))
        return (yield from shortest(moves, node, node, most, budget, False, ban))

    def _around(self, node: int, most: int | None, ban: Ban) -> Search[PathRows | None]:
        """Find the shortest trail to the target that comes back to its start before."""
        onward = yield from self._straight(node, most, replace(ban, first=_NONE))
        if onward is None:
            return None
        # Where the two had an edge in common, there would be a shorter trail that does not come back.
        back = yield from self._cycle(node, None if most is None else most - onward.labels.shape[1], ban)
        if back is None:
            return None
        vertices = np.concatenate((back.vertices, onward.vertices[:, 1:]), axis=1)
        return PathRows(vertices, np.concatenate((back.labels, onward.labels), axis=1))


_NONE = np.empty(0, np.int64)


def _all(near: Side, far: Side, middle: Int64, hops: int, onward: int, budget: SearchBudget) -> PathRows:
    """Return all shortest paths through some vertices so many steps from both ends, as many as are wanted."""
    layers = prune(near.layers[:hops], middle, backward=True)
    layers += prune(far.layers[:onward][::-1], middle, backward=False)
    rows, cut = spell_paths(layers, near.levels[0], budget.wanted + 1)
    if cut or len(rows) > budget.wanted:
        rows = rows.take(slice(budget.wanted))
        budget.full = True
    return rows


def prune(layers: list[Layer], vertices: Int64, backward: bool) -> list[Layer]:
    """Return the steps of layers that lead to some vertices behind the last of them, or come from some before."""
    kept: list[Layer] = []
    for layer in reversed(layers) if backward else layers:
        rows = np.flatnonzero(among(layer.far if backward else layer.near, vertices))
        kept.append(chosen := layer.take(rows))
        vertices = chosen.near if backward else chosen.far
    return kept[::-1] if backward else kept


def arriving(vertices: Int64, moves: Expander, backward: bool, ends: Int64 | None) -> Bools:
    """Return a mask of the vertices at which paths may end, or from which they may start if `backward`.

    `ends` are the allowed nodes; None allows all.
    """
    states = moves.states
    found: Bools = vertices % states == 0 if backward else moves.accepting[vertices % states]
    return found if ends is None else found & among(vertices if states == 1 else vertices // states, ends)


def among(asked: Int64, members: Int64) -> Bools:
    """Return a mask of the numbers among some others, in any order and with repetitions."""
    return contains(np.sort(members), asked)


def sort_layer(layer: Layer) -> Layer:
    """Return the steps by the vertex left, then out of it before into it, then by edge."""
    return layer.take(np.lexsort((layer.label >> 1, layer.label & 1, layer.near)))


def spell_paths(layers: list[Layer], starts: Int64, limit: int) -> tuple[PathRows, bool]:
    """Return the first paths through layers of which every step leads to the end, and whether that cut any."""
    rows, cut = PathRows.at(starts), False
    for layer in map(sort_layer, layers):
        row, step, more = follow(rows.vertices[:, -1], layer, limit)
        cut |= more
        rows = rows.longer(row, layer.far.take(step), layer.label.take(step))
    return rows, cut


def follow(ends: Int64, layer: Layer, limit: int) -> tuple[Int64, Int64, bool]:
    """Return the first pairs of a row that ends in a vertex and a step out of it, and whether that cut any."""
    first = np.searchsorted(layer.near, ends)
    counts = np.searchsorted(layer.near, ends, "right") - first
    bounds = counts.cumsum()
    total = int(bounds[-1]) if len(bounds) else 0
    if total <= limit:
        row = np.arange(len(ends)).repeat(counts)
        return row, np.arange(total) + (first - bounds + counts).take(row), False
    taken = np.arange(limit)
    row = np.searchsorted(bounds, taken, "right")
    return row, taken + (first - bounds + counts).take(row), True
