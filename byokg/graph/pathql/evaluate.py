"""Execution of path queries on a graph.

    for path in paths(graph, "PATHS START ?x = :Alice END ?y VIA ?p"):
        print(path.nodes)

By default every shortest path of each pair of a start and an end is found, and no node repeats on a path but that its
start may be its end.

Source: Stardog's documentation, "Path Queries", "Path Query Evaluation Semantics".
Differs: each edge starts at the end of the previous one, as its condition (3) demands; the definition in prose swaps s
and t. If VIA is a variable or an expression of one step, parallel edges make different paths, as in GQL: in JSON they
differ by the edge.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from byokg.arrays import Int64
from byokg.errors import PathQueryInvalid
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.pathql.budget import PairSearch, PathLimits, SearchBudget, run
from byokg.graph.pathql.enumerate import count_paths
from byokg.graph.pathql.expander import Bound
from byokg.graph.pathql.names import NameResolver, check_bound
from byokg.graph.pathql.query import (
    Endpoint,
    InferenceRule,
    PathQuery,
    Restrictor,
    Selector,
    check_variables,
    variables,
)
from byokg.graph.pathql.result import FoundRows, PathResult, PathSpeller
from byokg.graph.pathql.searches import PathSearches
from byokg.graph.pathql.via import Via
from byokg.graph.property_view import without_values
from byokg.graph.sorted_ids import distinct
from byokg.graph.store import GraphStore

if TYPE_CHECKING:
    from byokg.graph.pathql.extras.rules import Inferred


def paths(
    store: GraphStore,
    query: str | PathQuery,
    limits: PathLimits | None = None,
    rules: str | Sequence[InferenceRule] | Inferred | None = None,
) -> PathResult:
    """Run a path query.

    Args:
        store: the graph.
        query: text, or the result of `parse`.
        limits: limits of the query.
        rules: infer edges that paths may walk as well: rules as text, or `Inferred` of the graph for several queries.

    Raises:
        PathQueryInvalid: the text is no path query, or has infinitely many paths.
        EntityNotFound: a start or end is not in the graph.
        RelationNotFound: a relation is not in the graph.
        QueryTimeout: the patterns of START and END take longer than the limit.
        QueryTooLarge: a pattern has too many solutions.
    """
    parsed, store = _parse_query(query), _arrays(store)
    inferred = _inferred(store, parsed, rules) if rules or parsed.graphs else None
    return _QueryEvaluation(
        store if inferred is None else inferred.graph, parsed, limits or PathLimits(), inferred
    ).result()


def _inferred(store: GraphStore, parsed: PathQuery, rules: str | Sequence[InferenceRule] | Inferred | None) -> Inferred:
    """Return the inferences of the rules on the graphs that a query names. Raises `PathQueryInvalid`."""
    from byokg.graph.pathql.extras.rules import Inferred
    from byokg.graph.pathql.grammar import parse_rules

    if isinstance(rules, Inferred):
        if parsed.graphs:
            raise PathQueryInvalid("FROM goes with rules as text, because what follows depends on the data set")
        return rules
    if not isinstance(store, ColumnarGraph):
        raise PathQueryInvalid("rules and FROM are for graphs in files or in memory")
    names = NameResolver(store, parsed.prefixes)
    listed = parse_rules(rules) if isinstance(rules, str) else rules
    return Inferred(store, listed or (), [iri for name in parsed.graphs for iri in names.iris(name)])


def _arrays(store: GraphStore) -> GraphStore:
    """Return the arrays of a graph that an engine in this process holds beside them; other stores as they are.

    Of a view of properties it is the graph itself: a shared value is no connection, and conditions look at properties.
    """
    store = without_values(store)
    held = getattr(store, "graph", None)
    return held if isinstance(held, ColumnarGraph) else store


def prepare() -> None:
    """Make the parser now, which takes some tenths of a second, and not with the first query; for servers."""
    _parse_query("PATHS START ?x END ?y VIA ?p")


def _parse_query(query: str | PathQuery) -> PathQuery:
    if isinstance(query, PathQuery):
        return query
    from byokg.graph.pathql.grammar import parse  # with the parser generator, which only texts need

    return parse(query)


def count(store: GraphStore, query: str | PathQuery, limits: PathLimits | None = None) -> tuple[int, bool]:
    """Count the paths of a query; also return whether a limit may have left some out.

    All paths of at most six steps between two nodes are counted without listing them.

    Raises:
        PathQueryInvalid, EntityNotFound, RelationNotFound: as `paths` does.
    """
    limits = limits or PathLimits()
    parsed, store = _parse_query(query), _arrays(store)
    ends = (parsed.start, parsed.end)
    plain = all(len(end.names) == 1 and end.pattern is None for end in ends) and not parsed.graphs and not parsed.cost
    short = parsed.max_length is not None and parsed.max_length <= _COUNTED_STEPS
    whole = parsed.limit is None and not parsed.offset and not parsed.cyclic
    if parsed.selector is Selector.ALL and plain and short and whole:
        return _QueryEvaluation(store, parsed, limits, None).counted()
    found = paths(store, parsed, replace(limits, max_paths=_NO_BOUND))
    return len(found), found.truncated


_COUNTED_STEPS, _NO_BOUND = 6, 1 << 40


_NOTHING: Sequence[Mapping[str, Bound]] = ({},)


@dataclass
class _Ends:
    """The nodes that a start or an end may be."""

    nodes: Int64 | None
    """Ascending; None for any."""
    bound: list[str] = field(default_factory=list)
    """Names of the other variables that its pattern binds."""
    solutions: dict[int, list[Mapping[str, Bound]]] | None = None
    """Solutions of the pattern, for each node."""

    def at(self, node: int) -> Sequence[Mapping[str, Bound]]:
        """Return the solutions at a node: one without further bindings, if there is no pattern."""
        return _NOTHING if self.solutions is None else self.solutions[node]


class _QueryEvaluation:
    """One query while it runs."""

    def __init__(self, store: GraphStore, query: PathQuery, limits: PathLimits, inferred: Inferred | None) -> None:
        self._began = time.perf_counter()
        self._store, self._query, self._limits = store, query, limits
        self._names = NameResolver(store, query.prefixes)
        wanted = limits.max_paths if query.limit is None else query.limit
        self._budget = SearchBudget(limits, wanted + query.offset)
        self._inferred = inferred
        self._end_names = query.start.variable.name, query.end.variable.name
        self._linked = False
        """Whether the pattern of one end binds the other end too."""
        check_variables(query)
        self._via = Via(store, query, self._names, self._budget, inferred.types if inferred else {})
        self._moves = self._via.moves

    def result(self) -> PathResult:
        """Search, and join the paths with the patterns of start and end."""
        query, budget = self._query, self._budget
        every_walk = query.selector is Selector.ALL and query.restrictor is Restrictor.WALK
        if every_walk and query.max_length is None and not self._via.finite:
            raise PathQueryInvalid(
                "ALL WALK may find infinitely many paths, since a walk can go round a cycle for ever; "
                "add MAX LENGTH, or ask for TRAIL, ACYCLIC or SIMPLE paths, or for SHORTEST k"
            )
        starts, ends = self._ends(query.start, "START"), self._ends(query.end, "END")
        room = budget.wanted
        self._linked = not {*starts.bound, *ends.bound}.isdisjoint(self._end_names)
        linked = self._linked or not set(starts.bound).isdisjoint(ends.bound)
        if linked:  # not every path agrees with both patterns, so that any number may be needed
            budget.wanted = max(budget.wanted, self._limits.max_paths)
        searches = PathSearches(self._store, query, self._names, self._via, budget)
        pair = starts.nodes, ends.nodes
        searched = searches.priced(*pair) if query.cost else map(FoundRows, searches.paths(*pair))
        found: list[FoundRows] = []
        for each in searched:
            found.append(self._with_patterns(each, starts, ends, room))
            room -= len(found[-1].rows)
            if room <= 0 and linked:
                budget.full = True
                break
        found = self._cut(found)
        truncated = budget.truncated or (budget.full and (query.limit is None or (linked and room > 0)))
        bound = (
            [name for name in starts.bound if name not in self._end_names],
            self._via.bound,
            [name for name in ends.bound if name not in {*starts.bound, *self._end_names}],
        )
        speller = PathSpeller(self._store, self._names, self._moves, self._inferred)
        return PathResult(query, speller, found, bound, truncated, time.perf_counter() - self._began)

    def counted(self) -> tuple[int, bool]:
        """Count all paths between two nodes."""
        source, target = (self._names.node(end.names[0]) for end in (self._query.start, self._query.end))
        query, budget = self._query, self._budget
        search = count_paths(PairSearch(self._moves, source, target, query.restrictor, query.max_length, budget))
        return run(self._moves, search), budget.truncated

    def _with_patterns(self, found: FoundRows, starts: _Ends, ends: _Ends, room: int) -> FoundRows:
        """Join paths with the solutions of the patterns of their ends, up to some of them.

        Source: Stardog's documentation, "Path Queries", Join(PS, Join(PE, eval(PQ))).
        """
        if starts.solutions is None and ends.solutions is None:
            return found
        names = self._end_names
        rows = found.rows
        nodes = rows.vertices[:, [0, -1]] // self._moves.states
        kept: list[int] = []
        joined: list[Mapping[str, Bound]] = []
        for row, pair in enumerate(nodes.tolist()):
            if len(kept) > room or not self._budget.spend(1):
                break
            # The pattern of one end may bind the other end as well.
            at = dict(zip(names, map(self._node, pair), strict=True)) if self._linked else {}
            for one, other in product(starts.at(pair[0]), ends.at(pair[1])):
                if all(each.get(name, value) == value for each in (one, other) for name, value in at.items()) and all(
                    other.get(name, value) == value for name, value in one.items()
                ):
                    kept.append(row)
                    joined.append({name: value for name, value in {**one, **other}.items() if name not in names})
                    if len(kept) > room:
                        self._budget.full = True
                        break
        return FoundRows(
            rows.take(np.array(kept[:room], np.int64)),
            joined[:room],
            [found.costs[row] for row in kept[:room] if found.costs],
        )

    def _node(self, number: int) -> Bound:
        return Bound("node", self._store.ids(np.array([number]))[0])

    def _cut(self, found: Sequence[FoundRows]) -> list[FoundRows]:
        """Apply OFFSET and LIMIT."""
        query = self._query
        if not query.offset and query.limit is None:
            return list(found)
        kept, before = [], 0
        last = None if query.limit is None else query.offset + query.limit
        for each in found:
            first = max(query.offset - before, 0)
            stop = len(each.rows) if last is None else min(len(each.rows), last - before)
            before += len(each.rows)
            if first < stop:
                part = slice(first, stop)
                kept.append(FoundRows(each.rows.take(part), each.bindings[part], each.costs[part]))
        return kept

    # Ends

    def _ends(self, end: Endpoint, where: str) -> _Ends:
        name = end.variable.name
        given = np.unique(np.array([self._names.node(each) for each in end.names], np.int64)) if end.names else None
        if end.pattern is None:
            return _Ends(given)
        from byokg.graph.pathql.extras.solutions import SolutionTable

        check_bound([end.variable], set(variables(end.pattern)), where)
        self._via.patterns.check(end.pattern)
        begun = SolutionTable({}, 1) if given is None else SolutionTable({name: given}, len(given))
        table = self._via.patterns.solve(end.pattern, begun).distinct()
        table = table.take(np.flatnonzero(table.column(name) >= 0))
        bound = [each for each in dict.fromkeys(variables(end.pattern)) if each != name]
        nodes = table.column(name)
        if not bound:
            return _Ends(distinct(nodes))
        solutions: dict[int, list[Mapping[str, Bound]]] = {}
        columns = [self._via.patterns.bound(table.column(each)) for each in bound]
        for row, node in enumerate(nodes.tolist()):
            values = {each: column[row] for each, column in zip(bound, columns, strict=True)}
            solution = {each: value for each, value in values.items() if value is not None}
            solutions.setdefault(node, []).append(solution)
        return _Ends(distinct(nodes), bound, solutions)
