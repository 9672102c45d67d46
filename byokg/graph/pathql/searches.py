"""The searches of a path query: between pairs of nodes, out of nodes to others, or by cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import islice, product

import numpy as np

from byokg.arrays import Int64
from byokg.errors import PathQueryInvalid
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.pathql.budget import PairSearch, PathRows, Search, SearchBudget, together
from byokg.graph.pathql.enumerate import Quota, between, cheapest, fulfils, outward
from byokg.graph.pathql.expander import MatchExpander, StoreExpander
from byokg.graph.pathql.names import NameResolver
from byokg.graph.pathql.query import PathQuery, Restrictor, Selector, Variable
from byokg.graph.pathql.result import FoundRows
from byokg.graph.pathql.search import Sides, deviations, shortest
from byokg.graph.pathql.single_source import Fan, single_source_paths
from byokg.graph.pathql.via import Via
from byokg.graph.store import GraphStore
from byokg.types import Value

_ONE_EACH = (Selector.ANY_SHORTEST, Selector.ALL_SHORTEST)
_FEW_PATHS = 1000
"""Shortest paths that an engine may send if one is wanted: their order is known only here."""
_FEW_PAIRS = 100
"""Pairs of a start and an end that are each searched from both ends."""
_FEW_NODES = 20_000
"""Largest number of nodes per call for edges."""
_TOGETHER = 16
"""Searches that ask a server together."""


class PathSearches:
    """Finds the paths of one query between nodes."""

    def __init__(
        self, store: GraphStore, query: PathQuery, names: NameResolver, via: Via, budget: SearchBudget
    ) -> None:
        self._store, self._query, self._names, self._via, self._budget = store, query, names, via, budget
        self._moves = via.moves
        self._sides: Sides | None = None
        self._looks_ahead = False

    def paths(self, sources: Int64 | None, targets: Int64 | None) -> Iterator[PathRows]:
        """Yield the paths between some nodes, by start (or by end, if the starts are free) and then by length.

        Args:
            sources: nodes where paths start, ascending; None for any.
            targets: nodes where they end, ascending; None for any.
        """
        if self._query.cyclic:
            if sources is None or targets is None:
                both = targets if sources is None else sources
                both = self._every_node() if both is None else both
            else:
                both = np.intersect1d(sources, targets)
            self._moves.empty = False
            return self._searches(partial(self._pair, node, node) for node in both.tolist())
        if sources is None and targets is None:
            sources = self._every_node()
        if sources is not None and targets is not None and len(sources) * len(targets) <= _FEW_PAIRS:
            return self._pairs(sources, targets)
        if sources is not None and (targets is None or len(sources) <= len(targets)):
            return self._searches(self._fans(sources, False, targets))
        assert targets is not None
        return self._searches(self._fans(targets, True, sources))

    def _fans(
        self, nodes: Int64, backward: bool, others: Int64 | None
    ) -> Iterator[Callable[[SearchBudget], Search[list[PathRows]]]]:
        """Yield the searches out of nodes, or back from them; some nodes in one, unless few paths may be enough."""
        query, moves = self._query, self._moves
        shortest_each = (query.selector in _ONE_EACH or self._one) and self._fulfils_restrictor(cycle=False)
        # On servers, searches out of single nodes ask together.
        apart = shortest_each and not isinstance(self._store, ColumnarGraph)
        at_once = _TOGETHER if query.limit is None and not apart else 1
        # Several starts share calls in any case, a step at a time.
        no_bound = query.max_length is None and others is None and self._budget.limits.hub_cap is None
        self._looks_ahead = len(nodes) == 1 and no_bound
        for first in range(0, len(nodes), at_once):
            some = nodes[first : first + at_once]
            if shortest_each:
                yield partial(self._fan, some.tolist(), backward, others)
            else:
                yield partial(outward, moves, some, backward, others, query)

    def _look_ahead(self, moves: StoreExpander, node: int, backward: bool, budget: SearchBudget, met: Int64) -> None:
        """Let a server's engine compute the reachable nodes, in a fifth of the remaining time."""
        if budget.left_s > 0:
            moves.look_ahead(node, met, backward, min(budget.wanted, _FEW_NODES), budget.left_s / 5)

    def _pairs(self, sources: Int64, targets: Int64) -> Iterator[PathRows]:
        """Yield the paths between each of some nodes and each of others."""
        pairs = product(sources.tolist(), targets.tolist())
        with ExitStack() as stack:
            if isinstance(self._store, ColumnarGraph) and len(sources) * len(targets) > 1:
                self._sides = Sides(self._moves, stack)
            yield from self._searches(partial(self._pair, source, target) for source, target in pairs)

    def _searches(self, searches: Iterable[Callable[[SearchBudget], Search[list[PathRows]]]]) -> Iterator[PathRows]:
        """Yield the results of searches, in their order; on servers several of them share calls."""
        whole, waiting = self._budget, iter(searches)
        at_once = 1 if isinstance(self._store, ColumnarGraph) else _TOGETHER
        while some := list(islice(waiting, at_once)):
            if not self._budget.open():
                return
            parts = [whole.part() for _ in some]
            found = together(self._moves, [search(part) for search, part in zip(some, parts, strict=True)])
            for rows in (rows for each in found for rows in each):
                whole.full |= len(rows) > whole.wanted
                kept = rows.take(slice(whole.wanted)) if len(rows) > whole.wanted else rows
                whole.wanted -= len(kept)
                yield kept
            whole.full |= any(part.full for part in parts)

    def priced(self, sources: Int64 | None, targets: Int64 | None) -> Iterator[FoundRows]:
        """Yield the paths by start and then by cost; see `paths`."""
        query, moves = self._query, self._moves
        wanted = None if targets is None else frozenset(targets.tolist())
        if query.cyclic:
            moves.empty = False
        for source in (self._every_node() if sources is None else sources).tolist():
            ends = wanted
            if query.cyclic:
                ends = frozenset((source,)) if wanted is None else wanted & {source}
            if not self._budget.open():
                return
            for rows, cost in cheapest(moves, source, ends, self._prices, query, self._budget):
                yield FoundRows(rows, (), (cost,))

    def _prices(self, labels: Int64) -> list[float | None]:
        """Return the costs of steps; None for one without a cost, which is not walked."""
        cost, moves = self._query.cost, self._moves
        values: list[Value | None]
        if isinstance(cost, Variable):
            pattern = self._via.pattern
            if pattern is None or cost.name not in pattern.bound:
                raise PathQueryInvalid(f"COST ?{cost.name}: no pattern in VIA binds ?{cost.name}")
            bound = [pattern.value(label, cost.name) for label in labels.tolist()]
            values = [None if each is None else each.value for each in bound]
        else:
            assert cost is not None
            if self._via.pattern or isinstance(moves, MatchExpander):
                raise PathQueryInvalid(
                    f"COST {cost} is a property of single edges; bind it in a pattern instead: "
                    f"VIA {{ ?x :r ?y {{| {cost} ?cost |}} }} COST ?cost"
                )
            keys = list(self._names.labels(cost))
            found = self._store.edge_properties(moves.edge(labels))
            values = [next((each[key] for key in keys if key in each), None) for each in found]
        prices: list[float | None] = []
        for value in values:
            if value is not None and (isinstance(value, bool | str) or not value >= 0):
                raise PathQueryInvalid(f"COST: an edge costs {value!r}, and costs are numbers from 0 on")
            prices.append(None if value is None else float(value))
        return prices

    def _fulfils_restrictor(self, cycle: bool) -> bool:
        """True if a shortest walk always fulfils the restrictor; a cycle may return along its first edge."""
        if self._query.restrictor is Restrictor.WALK:
            return True
        return self._moves.states == 1 and not (cycle and self._query.restrictor is Restrictor.TRAIL)

    def _pair(self, source: int, target: int, budget: SearchBudget) -> Search[list[PathRows]]:
        """Find the paths between two nodes."""
        query, moves = self._query, self._moves
        most, restrictor = query.max_length, query.restrictor
        if restrictor is Restrictor.ACYCLIC and source == target and not moves.empty:
            return []
        if query.selector not in _ONE_EACH and not self._one:
            if (yield from shortest(moves, source, target, most, budget, False, None, self._sides)) is None:
                return []
            return (yield from self._between(source, target, budget))
        every, stored = query.selector is Selector.ALL_SHORTEST, isinstance(moves, StoreExpander)
        if isinstance(moves, StoreExpander) and budget.left_s > 0 and self._budget.limits.hub_cap is None:
            # Half of the time, so that the search has the other half if the engine does not end.
            limit = min(budget.wanted if every else _FEW_PATHS, self._budget.limits.max_steps) + 1
            pushed = moves.all_shortest(source, target, most, limit, budget.left_s / 2)
            if pushed is not None:
                return [PathRows(*pushed).take(slice(None if every else 1))]
        # The first of all on servers, so that it is the one that an engine's answer begins with.
        part = budget.part(1) if stored and not every else budget.part()
        rows = yield from shortest(moves, source, target, most, part, every or stored, None, self._sides)
        if rows is None:
            return []
        plain, cut = self._fulfils_restrictor(source == target), every and part.full
        if not plain:
            rows = rows.take(np.flatnonzero(fulfils(rows, restrictor, moves)))
        if plain or (len(rows) and not cut):
            budget.full |= cut
            return [rows]
        return (yield from self._between(source, target, budget))

    def _between(self, source: int, target: int, budget: SearchBudget) -> Search[list[PathRows]]:
        """Find paths between two nodes by length, and by deviations from those found where most beginnings fail."""
        query = self._query
        pair = PairSearch(self._moves, source, target, query.restrictor, query.max_length, budget)
        quota = Quota(query.selector, query.count)
        deviates, longest = self._deviates(source, target), self._longest()
        found, given_up = yield from between(pair, quota, longest, deviates)
        if given_up:
            found += yield from deviations(pair, found, quota.left, self._via.either_way)
        return found

    def _deviates(self, source: int, target: int) -> bool:
        """True if the paths can be found by deviations: a shortest walk is a path, and so many are wanted."""
        query = self._query
        return (
            query.selector in (Selector.ALL, Selector.ANY, Selector.SHORTEST)
            and query.restrictor is not Restrictor.WALK
            and self._moves.states == 1
            and not (source == target and self._moves.empty and query.restrictor is not Restrictor.TRAIL)
        )

    @property
    def _one(self) -> bool:
        """True if any one path is wanted."""
        return self._query.selector is Selector.ANY and self._query.count == 1

    def _longest(self) -> int:
        """Return a bound on the length of paths under the restrictor."""
        if not isinstance(self._store, ColumnarGraph):
            return 1 << 20
        nodes = self._store.node_count
        if self._query.restrictor in (Restrictor.ACYCLIC, Restrictor.SIMPLE):
            return nodes
        if self._query.restrictor is Restrictor.TRAIL and not self._via.pattern:
            return nodes * nodes if isinstance(self._moves, MatchExpander) else self._store.edge_count
        return 1 << 20

    def _fan(
        self, nodes: Sequence[int], backward: bool, others: Int64 | None, budget: SearchBudget
    ) -> Search[list[PathRows]]:
        """Find the paths from nodes to others, or from others to them."""
        query, moves, most = self._query, self._moves, self._query.max_length
        every = query.selector is Selector.ALL_SHORTEST
        # The shortest way back to the start of a trail may be its first edge.
        back = query.restrictor is Restrictor.TRAIL and self._via.either_way and not moves.empty
        cycles = not (moves.empty or back or query.restrictor is Restrictor.ACYCLIC)
        size = self._store.node_count * moves.states if isinstance(self._store, ColumnarGraph) else 0
        fan = Fan(nodes, backward, others, most, every, cycles, size)
        if len(nodes) > 1 and not back:
            found = yield from single_source_paths(moves, fan, budget)
            if found is not None:
                return found
        paths_: list[PathRows] = []
        for node in nodes:
            part = budget.part(budget.wanted - sum(map(len, paths_)))
            if part.wanted <= 0:
                budget.full = True
                break
            ahead = None
            if isinstance(moves, StoreExpander) and self._looks_ahead:
                ahead = partial(self._look_ahead, moves, node, backward, part)
            paths_ += (yield from single_source_paths(moves, replace(fan, starts=[node]), part, ahead)) or ()
            budget.full |= part.full
            if back and (others is None or node in others):
                paths_ += yield from self._pair(node, node, budget)
        return paths_

    def _every_node(self) -> Int64:
        if isinstance(self._store, ColumnarGraph):
            return np.arange(self._store.node_count)
        return self._store.numbers(list(self._store.entities())).astype(np.int64)
