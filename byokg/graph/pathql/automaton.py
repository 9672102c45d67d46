"""Path expressions as finite automata over a graph's relations.

A symbol is a class of relations (those that the expression nowhere distinguishes) with a direction. So a wildcard, a
negation or thousands of alternatives are one arc each, like a single relation. The automaton is deterministic: an
ambiguous expression such as `(:a*)*` yields no path twice.

A loop (an edge from a node to itself) can be walked either way and is one step all the same, so loops are a symbol of
their own: if an expression allows both directions, a loop counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from byokg.arrays import Bools, Int64
from byokg.errors import PathQueryInvalid
from byokg.graph.pathql.query import (
    Alternatives,
    AnyLink,
    Inverse,
    Link,
    NameTerm,
    NotLink,
    PathExpression,
    Repeat,
    Sequence,
)
from byokg.graph.store import Direction

_MOST_ARCS, _MOST_STATES = 5000, 500
"""How large an automaton may become."""

_BITS = 60
"""So many sets of relations fit into one integer for each relation."""

FORWARD, BACKWARD, LOOP = 0, 1, 2


@dataclass(frozen=True)
class Arc:
    """Which relations lead from one state to another: (R,) each, or True for all of them, or False for none."""

    forward: Bools | bool
    backward: Bools | bool
    loop: Bools | bool


@dataclass(frozen=True)
class Automaton:
    """A deterministic automaton of S states over C classes of R relations; it starts in state 0."""

    classes: npt.NDArray[np.int32]
    """(R,) the class of each relation."""
    arcs: npt.NDArray[np.int32]
    """(S, C, 3) the state that follows by an edge of a class walked forward, backward, or a loop; -1 for none."""
    accepting: Bools
    """(S,) states in which a path may end."""
    empty: bool
    """Whether the path of no edges matches; where not, one that ends in state 0 has come back to it."""
    single: Int64 | None = None
    """(3, S) the one step out of each state, if no state has several: number of its relation, -1 for no step; 1 if it
    is walked from tail to head; the state that follows. None if this is not known."""
    _arcs: dict[tuple[int, int], Arc] = field(default_factory=dict)

    @property
    def states(self) -> int:
        """Return the number of states."""
        return len(self.accepting)

    @cached_property
    def ways(self) -> tuple[bool, bool]:
        """Return whether edges are walked forward, and whether backward."""
        return bool((self.arcs[:, :, FORWARD] >= 0).any()), bool((self.arcs[:, :, BACKWARD] >= 0).any())

    @property
    def both_ways(self) -> bool:
        """True if edges are walked in both directions."""
        return all(self.ways)

    @cached_property
    def either_way(self) -> bool:
        """True if an edge of some relation may be walked in both directions, on one path or another."""
        forward, backward = ((self.arcs[:, :, way] >= 0).any(axis=0) for way in (FORWARD, BACKWARD))
        return bool(np.any(forward & backward))

    @cached_property
    def one_way(self) -> tuple[Direction, npt.NDArray[np.int64] | None] | None:
        """Return how edges are walked, and of which relations (None for all), if every step allows the same."""
        if self.states > 1:
            return None
        arc = self.arc(0, 0)
        ways = [way for way in (arc.forward, arc.backward) if way is not False]
        if not ways or not np.array_equal(ways[0], ways[-1]):
            return None
        direction = Direction.BOTH if len(ways) == 2 else Direction.IN if arc.forward is False else Direction.OUT
        return direction, None if ways[0] is True else np.flatnonzero(ways[0])

    @cached_property
    def longest(self) -> int | None:
        """Return the largest number of edges of a match; None without a bound."""
        order: dict[int, int] = {}

        following = [set(self.arcs[state][self.arcs[state] >= 0].tolist()) for state in range(self.states)]
        useful = _useful(following, self.accepting)
        stack: list[tuple[int, bool]] = [(0, False)]
        open_: set[int] = set()
        while stack:
            state, done = stack.pop()
            after = following[state] & useful
            if done:
                open_.discard(state)
                order[state] = max((order[each] + 1 for each in after), default=0)
            elif state not in order:
                open_.add(state)
                stack.append((state, True))
                if after & open_:
                    return None
                stack += [(each, False) for each in after if each not in order]
        return order[0]

    def arc(self, near: int, far: int) -> Arc:
        """Return the relations along which one state follows another."""
        if (near, far) not in self._arcs:
            table = self.arcs[near] == far
            forward, backward, loop = (table[:, way] for way in (FORWARD, BACKWARD, LOOP))
            walked = self._walked(forward), self._walked(backward)
            same = [mask for mask, way in zip(walked, (forward, backward), strict=True) if (way == loop).all()]
            self._arcs[near, far] = Arc(*walked, same[0] if same else self._walked(loop))
        return self._arcs[near, far]

    def _walked(self, classes: Bools) -> Bools | bool:
        if classes.all():
            return True
        return classes[self.classes] if classes.any() else False

    @cached_property
    def _following(self) -> list[list[int]]:
        return [sorted({far for far in arcs.reshape(-1).tolist() if far >= 0}) for arcs in self.arcs]

    def leaving(self, state: int) -> list[int]:
        """Return the states that follow a state."""
        return self._following[state]

    def entering(self, state: int) -> list[int]:
        """Return the states that a state follows."""
        return list(np.flatnonzero((self.arcs == state).any(axis=(1, 2))).tolist())


def _useful(following: list[set[int]], accepting: Bools) -> set[int]:
    """Return the states from which a path may still end."""
    useful = set(np.flatnonzero(accepting).tolist())
    while True:
        more = {state for state, after in enumerate(following) if after & useful} | useful
        if more == useful:
            return useful
        useful = more


def compile_expression(
    path: PathExpression,
    relations: int,
    number: Callable[[NameTerm], Iterable[int]],
    undirected: bool = False,
    repeated: bool = False,
) -> Automaton:
    """Build the automaton of an expression.

    Args:
        path: the expression.
        relations: how many the graph has.
        number: finds the numbers of the relations of a name.
        undirected: let each step be walked either way.
        repeated: match the expression once or more, one match after the other.

    Raises:
        PathQueryInvalid: the automaton would be too large.
    """
    parts = path.parts if isinstance(path, Sequence) else (path,)
    single = [part.path if isinstance(part, Inverse) else part for part in parts]
    if not undirected and not repeated and all(isinstance(part, Link) for part in single):
        numbers = [list(number(part.name)) for part in single if isinstance(part, Link)]
        return _chain(relations, numbers, [isinstance(part, Inverse) for part in parts])
    builder = _AutomatonBuilder(relations, number, undirected)
    start, end = builder.add(path, False)
    if repeated:
        builder.silent[end].append(start)
    return builder.determined(start, end)


def _chain(relations: int, steps: list[list[int]], inverse: list[bool]) -> Automaton:
    """Build the automaton of edges one after the other, which metapaths are."""
    kinds, classes = _classify(relations, (number for step in steps for number in step))
    arcs = np.full((len(steps) + 1, len(kinds) + 1, 3), -1, np.int32)
    for place, (step, back) in enumerate(zip(steps, inverse, strict=True)):
        for number in step:
            arcs[place, kinds[number], [BACKWARD if back else FORWARD, LOOP]] = place + 1
    accepting = np.zeros(len(steps) + 1, np.bool_)
    accepting[-1] = True
    return Automaton(classes, arcs, accepting, not steps)


def single_steps(relations: int, steps: list[tuple[int, bool]]) -> Automaton:
    """Build an automaton that walks one step and ends in state 0: step n, counted from 1, out of state n.

    Args:
        relations: how many the graph has.
        steps: number of a relation, and whether it is walked from tail to head.
    """
    kinds, classes = _classify(relations, (number for number, _ in steps))
    arcs = np.full((len(steps) + 1, len(kinds) + 1, 3), -1, np.int32)
    for state, (number, back) in enumerate(steps, 1):
        arcs[state, kinds[number], [BACKWARD if back else FORWARD, LOOP]] = 0
    accepting = np.zeros(len(steps) + 1, np.bool_)
    accepting[0] = True
    single = [(-1, 0, 0), *((number, back, 0) for number, back in steps)]
    return Automaton(classes, arcs, accepting, False, np.array(single, np.int64).T)


def _classify(relations: int, numbers: Iterable[int]) -> tuple[dict[int, int], npt.NDArray[np.int32]]:
    """Return a class of its own for each of some relations, and the class of every relation: (R,)."""
    kinds = {number: kind for kind, number in enumerate(dict.fromkeys(numbers))}
    classes = np.full(relations, len(kinds), np.int32)
    classes[list(kinds)] = list(kinds.values())
    return kinds, classes


class _AutomatonBuilder:
    """An automaton with silent steps while it is put together (Thompson's construction)."""

    def __init__(self, relations: int, number: Callable[[NameTerm], Iterable[int]], undirected: bool) -> None:
        self._relations = relations
        self._number = number
        self._undirected = undirected
        self.silent: list[list[int]] = []
        self._arcs: list[tuple[int, int, int]] = []
        """State, atom, state."""
        self._atoms: dict[bytes, int] = {}
        self._masks: list[Bools] = []
        """(2, R) for each atom: relations walked forward, and backward."""

    def _state(self) -> int:
        self.silent.append([])
        return len(self.silent) - 1

    def add(self, path: PathExpression, inverse: bool) -> tuple[int, int]:
        """Add an expression; return its first and last states."""
        match path:
            case Inverse(inner):
                return self.add(inner, not inverse)
            case Sequence(parts):
                ends = [self.add(part, inverse) for part in (reversed(parts) if inverse else parts)]
                for (_, before), (after, _) in pairwise(ends):
                    self.silent[before].append(after)
                return ends[0][0], ends[-1][1]
            case Repeat(inner, least, most):
                return self._repeat(inner, inverse, least, most)
            case Alternatives(parts):
                return self._alternatives(parts, inverse)
        start, end = self._state(), self._state()
        self._arc(start, self._mask(path, inverse), end)
        return start, end

    def _alternatives(self, parts: tuple[PathExpression, ...], inverse: bool) -> tuple[int, int]:
        """Add alternatives; those of one edge become one arc."""
        start, end = self._state(), self._state()
        mask = np.zeros((2, self._relations), np.bool_)
        steps = False
        for part in parts:
            single = part.path if isinstance(part, Inverse) else part
            if isinstance(single, Link | AnyLink | NotLink):
                mask |= self._mask(single, inverse ^ isinstance(part, Inverse))
                steps = True
            else:
                first, last = self.add(part, inverse)
                self.silent[start].append(first)
                self.silent[last].append(end)
        if steps:
            self._arc(start, mask, end)
        return start, end

    def _repeat(self, path: PathExpression, inverse: bool, least: int, most: int | None) -> tuple[int, int]:
        start = end = self._state()
        skipping = []
        for _ in range(least):
            first, last = self.add(path, inverse)
            self.silent[end].append(first)
            end = last
        if most is None:
            first, last = self.add(path, inverse)
            after = self._state()
            self.silent[end] += [first, after]
            self.silent[last] += [first, after]
            return start, after
        for _ in range(most - least):
            skipping.append(end)
            first, last = self.add(path, inverse)
            self.silent[end].append(first)
            end = last
        after = self._state()
        for state in (*skipping, end):
            self.silent[state].append(after)
        return start, after

    def _arc(self, start: int, mask: Bools, end: int) -> None:
        if self._undirected:
            mask = mask | mask[::-1]
        atom = self._atoms.setdefault(mask.tobytes(), len(self._masks))
        if atom == len(self._masks):
            self._masks.append(mask)
        self._arcs.append((start, atom, end))
        if len(self._arcs) > _MOST_ARCS:
            raise PathQueryInvalid(f"the expression has more than {_MOST_ARCS:,} steps; use + or smaller {{m,n}}")

    def _mask(self, path: PathExpression, inverse: bool) -> Bools:
        """Return which relations a step walks forward, and backward: (2, R)."""
        mask = np.zeros((2, self._relations), np.bool_)
        match path:
            case Link(name):
                mask[0, list(self._number(name))] = True
            case NotLink(forward, backward):
                for row, names in enumerate((forward, backward)):
                    if names:
                        mask[row] = True
                        mask[row, [number for name in names for number in self._number(name)]] = False
            case _:
                mask[0] = True
        return mask[::-1] if inverse else mask

    def determined(self, start: int, end: int) -> Automaton:
        """Return the automaton without silent steps and without choices (subset construction)."""
        classes, allowed = self._classes()
        count = allowed.shape[2]
        leaving: list[list[tuple[int, int]]] = [[] for _ in self.silent]
        for source, atom, target in self._arcs:
            leaving[source].append((atom, target))
        first = self._closed({start})
        numbers = {first: 0}
        queue, arcs = [first], []
        for states in queue:  # grows while it is gone through
            table = np.full((count, 3), -1, np.int32)
            moves = sorted({move for state in states for move in leaving[state]})
            # Classes and directions that allow the same moves lead to the same state.
            ways = np.zeros((len(moves), count, 3), np.bool_)
            for row, (atom, _) in enumerate(moves):
                ways[row, :, :2] = allowed[atom].T
                ways[row, :, LOOP] = allowed[atom].any(axis=0)
            flat = ways.reshape(len(moves), 3 * count)
            if len(moves):
                kinds, which = np.unique(flat, axis=1, return_inverse=True)
                for kind in range(kinds.shape[1]):
                    targets = {moves[row][1] for row in np.flatnonzero(kinds[:, kind]).tolist()}
                    if targets:
                        following = self._closed(targets)
                        if following not in numbers:
                            if len(numbers) >= _MOST_STATES:
                                raise PathQueryInvalid(f"the expression needs more than {_MOST_STATES:,} states")
                            numbers[following] = len(numbers)
                            queue.append(following)
                        table.reshape(-1)[which.reshape(-1) == kind] = numbers[following]
            arcs.append(table)
        accepting = np.array([end in states for states in queue], np.bool_)
        return _smallest(classes, np.stack(arcs), accepting)

    def _classes(self) -> tuple[npt.NDArray[np.int32], Bools]:
        """Return the class of each relation, and which classes each atom walks forward, and backward: (A, 2, C)."""
        masks = np.concatenate(self._masks) if self._masks else np.zeros((0, self._relations), np.bool_)
        if len(masks) <= _BITS:
            keys = (masks * (1 << np.arange(len(masks)))[:, None]).sum(axis=0)
            _, first, classes = np.unique(keys, return_index=True, return_inverse=True)
        else:
            _, first, classes = np.unique(masks, axis=1, return_index=True, return_inverse=True)
        return classes.reshape(-1).astype(np.int32), masks[:, first].reshape(len(self._masks), 2, len(first))

    def _closed(self, states: set[int]) -> frozenset[int]:
        """Return states with all that silent steps lead to."""
        found, queue = set(states), list(states)
        while queue:
            for state in self.silent[queue.pop()]:
                if state not in found:
                    found.add(state)
                    queue.append(state)
        return frozenset(found)


def _smallest(classes: npt.NDArray[np.int32], arcs: npt.NDArray[np.int32], accepting: Bools) -> Automaton:
    """Merge states that accept the same continuations, and drop arcs to dead states.

    The start may differ from an otherwise equal state by `Automaton.empty` alone: so `(:a)+` has one state, and a
    search visits every node once.
    """
    empty = bool(accepting[0])
    following = [set(state[state >= 0].tolist()) for state in arcs]
    useful = np.zeros(len(accepting), np.bool_)
    useful[list(_useful(following, accepting))] = True
    arcs, accepting = _merged(np.where((arcs >= 0) & useful[arcs], arcs, -1), accepting)
    if not accepting[0] and not (arcs == 0).any():
        twins = np.flatnonzero(accepting & (arcs == arcs[0]).all(axis=(1, 2)))
        if len(twins):
            accepting[0] = True
            arcs, accepting = _merged(arcs, accepting)
    return Automaton(classes, arcs, accepting, empty)


def _merged(arcs: npt.NDArray[np.int32], accepting: Bools) -> tuple[npt.NDArray[np.int32], Bools]:
    """Merge states that accept the same continuations (Moore's algorithm), in order of first appearance."""
    states = len(accepting)
    group = np.unique(accepting, return_inverse=True)[1].reshape(-1)
    for _ in range(states):
        rows = np.concatenate((group[:, None], np.where(arcs >= 0, group[arcs], -1).reshape(states, -1)), axis=1)
        refined = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        if refined.max() == group.max():
            break
        group = refined
    order, queue = {int(group[0]): 0}, [0]
    for state in queue:  # grows while it is gone through
        for target in arcs[state].reshape(-1).tolist():
            if target >= 0 and int(group[target]) not in order:
                order[int(group[target])] = len(order)
                queue.append(target)
    renumber = np.full(int(group.max()) + 1, -1, np.int32)
    renumber[list(order)] = list(order.values())
    return np.where(arcs[queue] >= 0, renumber[group[arcs[queue]]], -1).astype(np.int32), accepting[queue]
