"""Limits and results of a search, and its requests for steps.

A search is a generator that yields requests for the steps out of vertices and receives them, so that several searches
share calls to a server.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.errors import QueryTimeout
from byokg.graph.cancellation import check
from byokg.graph.pathql.expander import Expander, StepRows
from byokg.graph.pathql.query import Restrictor
from byokg.graph.sorted_ids import rank_of, rows_at


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
        vertices = np.empty((len(row), self.vertices.shape[1] + 1), np.int64)
        labels = np.empty((len(row), self.labels.shape[1] + 1), np.int64)
        vertices[:, :-1], vertices[:, -1] = self.vertices[row], far
        labels[:, :-1], labels[:, -1] = self.labels[row], label
        return PathRows(vertices, labels)
