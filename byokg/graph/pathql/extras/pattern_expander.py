"""Solutions of a graph pattern as steps of a path: what `VIA { … }` walks along."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from byokg.arrays import Int64
from byokg.errors import QueryTimeout
from byokg.graph.pathql.expander import Bound, Spelled, StepRows
from byokg.graph.pathql.extras.patterns import PatternSolver
from byokg.graph.pathql.extras.solutions import SolutionTable
from byokg.graph.pathql.query import Group, seedable, variables
from byokg.graph.pathql.search import among
from byokg.types import Triple

_LEARNED_TOGETHER = 4096
"""Nodes whose solutions are found together."""


class PatternExpander:
    """Solutions of a graph pattern as steps, from the value of its start variable to that of its end variable."""

    def __init__(
        self, patterns: PatternSolver, group: Group, start: str, end: str, spend: Callable[[int], bool]
    ) -> None:
        self._spend = spend
        self._patterns, self._group = patterns, group
        self._start, self._end = start, end
        self.states, self.accepting, self.empty = 1, np.ones(1, np.bool_), False
        self.bound = [name for name in dict.fromkeys(variables(group)) if name not in (start, end)]
        """The other variables."""
        self._solutions: dict[tuple[int, ...], int] = {}
        self._evidence: list[tuple[SolutionTable, int]] = []
        self._seedable = seedable(group)
        self._whole: SolutionTable | None = None
        """All solutions, if an end cannot be given before."""
        self._known: tuple[dict[int, tuple[Int64, Int64]], dict[int, tuple[Int64, Int64]]] = ({}, {})
        """For each direction and expanded node, the far ends of its solutions, and their numbers."""

    def edge(self, labels: Int64) -> Int64:
        """Return the identity of each solution."""
        return labels

    def effort(self, vertices: Int64, backward: bool) -> int:
        """Return the number of nodes."""
        return len(vertices)

    def forward(self, vertices: Int64) -> StepRows:
        """Return the solutions whose start is among some nodes."""
        return self._steps(vertices, False)

    def backward(self, vertices: Int64) -> StepRows:
        """Return the solutions whose end is among some nodes."""
        return self._steps(vertices, True)

    def value(self, label: int, variable: str) -> Bound | None:
        """Return the value of a variable in a solution."""
        table, row = self._evidence[label]
        return self._patterns.bound(table.column(variable)[row : row + 1])[0]

    def _steps(self, vertices: Int64, backward: bool) -> StepRows:
        known = self._known[backward]
        fresh = np.array([node for node in dict.fromkeys(vertices.tolist()) if node not in known], np.int64)
        for first in range(0, len(fresh), _LEARNED_TOGETHER):
            some = fresh[first : first + _LEARNED_TOGETHER]
            try:
                learned = self._spend(len(some))
                if learned:
                    self._learn(some, backward)
            except QueryTimeout:  # as the budget has noted
                learned = False
            if not learned:
                none = np.empty(0, np.int64)
                known.update((node, (none, none)) for node in fresh[first:].tolist())
                break
        parts = [known[node] for node in vertices.tolist()]
        counts = [len(far) for far, _ in parts]
        none = np.empty(0, np.int64)
        return StepRows(
            np.arange(len(parts)).repeat(counts),
            np.concatenate([far for far, _ in parts]) if parts else none,
            np.concatenate([label for _, label in parts]) if parts else none,
        )

    def _learn(self, nodes: Int64, backward: bool) -> None:
        near, far = (self._end, self._start) if backward else (self._start, self._end)
        table = self._solutions_at(near, nodes)
        table = table.take(np.flatnonzero((table.column(far) >= 0) & (table.column(near) >= 0))).distinct()
        names = [self._start, self._end, *self.bound]
        rows = np.stack([table.column(name) for name in names], axis=1).tolist() if table.rows else []
        labels = np.empty(table.rows, np.int64)
        for row, values in enumerate(rows):
            if row % _LEARNED_TOGETHER == 0 and not self._spend(1):
                table, labels = table.take(np.arange(row)), labels[:row]
                break
            key = tuple(values)
            label = self._solutions.setdefault(key, len(self._evidence))
            if label == len(self._evidence):
                self._evidence.append((table, row))
            labels[row] = label
        order = np.argsort(table.column(near), kind="stable")
        ascending = table.column(near)[order]
        for node in nodes.tolist():
            first, last = np.searchsorted(ascending, (node, node + 1))
            chosen = order[first:last]
            self._known[backward][node] = (table.column(far)[chosen], labels[chosen])

    def _solutions_at(self, near: str, nodes: Int64) -> SolutionTable:
        """Return the solutions in which a variable stands for one of some nodes."""
        if near in self._seedable:
            return self._patterns.solve(self._group, self._patterns.begun(near, nodes))
        if self._whole is None:
            self._whole = self._patterns.solve(self._group, SolutionTable({}, 1))
        return self._whole.take(np.flatnonzero(among(self._whole.column(near), nodes)))

    def spell(self, near: Int64, far: Int64, labels: Int64) -> list[Spelled]:
        """Return what each solution binds, and the edges that lead from its start to its end."""
        spelled = []
        ids = self._patterns.bound(np.concatenate((near, far)))
        for place, (table, row) in enumerate(self._evidence[label] for label in labels.tolist()):
            bindings = {}
            for name in self.bound:
                value = self._patterns.bound(table.column(name)[row : row + 1])[0]
                if value is not None:
                    bindings[name] = value
            one, other = ids[place], ids[place + len(near)]
            assert one is not None and other is not None
            walk = _walk(self._patterns.triples(table, row), str(one.value), str(other.value))
            spelled.append(Spelled(bindings, tuple(t for t, _ in walk), tuple(back for _, back in walk)))
        return spelled


def _walk(triples: Sequence[Triple], start: str, end: str) -> list[tuple[Triple, bool]]:
    """Return the shortest walk along some edges from one node to another; empty if there is none."""
    queue: list[tuple[str, list[tuple[Triple, bool]]]] = [(start, [])]
    met = set()
    for node, walked in queue:  # grows while it is gone through
        for triple in triples:
            for near, far, back in ((triple.head, triple.tail, False), (triple.tail, triple.head, True)):
                if near == node:
                    longer = [*walked, (triple, back)]
                    if far == end:
                        return longer
                    if far not in met:
                        met.add(far)
                        queue.append((far, longer))
    return []
