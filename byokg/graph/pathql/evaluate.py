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
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice, product
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from byokg.arrays import Int64
from byokg.errors import PathQueryInvalid
from byokg.graph.pathql.automaton import Automaton, compile_expression
from byokg.graph.pathql.enumerate import Quota, between, cheapest, count_paths, fulfils, outward
from byokg.graph.pathql.expander import Bound, Expander, MatchExpander, StepOptions, StoreExpander, steps_along
from byokg.graph.pathql.query import (
    AnyLink,
    Endpoint,
    Group,
    InferenceRule,
    PathExpression,
    PathQuery,
    Restrictor,
    Selector,
    Variable,
    as_expression,
    both_roles,
    check_variables,
    is_step,
    variables,
)
from byokg.graph.pathql.result import FoundRows, NameResolver, PathResult, PathSpeller, check_bound
from byokg.graph.pathql.search import (
    PairSearch,
    PathLimits,
    PathRows,
    Search,
    SearchBudget,
    Sides,
    deviations,
    run,
    shortest,
    together,
)
from byokg.graph.pathql.single_source import Fan, single_source_paths
from byokg.graph.property_view import without_values
from byokg.graph.sorted_ids import distinct
from byokg.graph.store import GraphStore
from byokg.types import Value

if TYPE_CHECKING:
    from byokg.graph.pathql.extras.patterns import PatternExpander, PatternSolver
    from byokg.graph.pathql.extras.rules import Inferred

_AUTOMATA: WeakKeyDictionary[GraphStore, dict[Hashable, tuple[PathExpression, Automaton]]] = WeakKeyDictionary()
"""Cached automata of the last expressions on each graph."""
_KEPT_AUTOMATA = 64

_ANY = AnyLink()


class Via:
    """The steps of one query, and the solver of its patterns."""

    def __init__(
        self, store: GraphStore, query: PathQuery, names: NameResolver, budget: SearchBudget, types: Mapping[str, Int64]
    ) -> None:
        """Compile VIA or MATCHING; `types` are nodes with inferred types."""
        self._store, self._query, self._names, self._budget, self._types = store, query, names, budget, types
        self.finite = False
        """True if a whole path has a bounded number of edges."""
        self._either_way: bool | None = False
        """None if that depends on undirected edges in the graph."""
        self.bound: list[str] = []
        """Variables other than start and end."""
        self.pattern: PatternExpander | None = None
        """The steps, if they are solutions of a pattern."""
        self.moves = self._compiled()

    def _compiled(self) -> Expander:
        query = self._query
        via: PathExpression | Group
        if isinstance(query.via, Variable):
            via, variable = _ANY, query.via
            self.bound = [variable.name]
        else:
            via, variable = query.via, None
        ends = query.start.variable.name, query.end.variable.name
        if isinstance(via, Group):
            check_bound([query.start.variable, query.end.variable], set(variables(via)), "VIA")
            simple = as_expression(via, *ends)
            if simple is None:
                self.patterns.check(via)
                from byokg.graph.pathql.extras.patterns import PatternExpander

                self.pattern = PatternExpander(self.patterns, via, *ends, self._budget.spend)
                self.bound = self.pattern.bound
                return self.pattern
            via, variable = simple
            self.bound = [] if variable is None else [variable.name]
        name = None if variable is None else variable.name
        if not query.whole and is_step(via):
            automaton = self._automaton(via, repeated=True)
            self._either_way = automaton.either_way or None
            return self._edges(automaton, name)
        automaton = self._automaton(via, repeated=False)
        if query.whole:
            self.finite = automaton.longest is not None
            self._either_way = automaton.either_way or None
            return self._edges(automaton)
        return self._matches(automaton)

    @cached_property
    def either_way(self) -> bool:
        """True if some edge may be walked in both directions."""
        return len(self._store.undirected_relations()) > 0 if self._either_way is None else self._either_way

    def _matches(self, automaton: Automaton) -> MatchExpander:
        return MatchExpander(self._edges(automaton), _shortest_walk, self._budget.spend)

    @cached_property
    def patterns(self) -> PatternSolver:
        """Return the solver of graph patterns."""
        from byokg.graph.pathql.extras.patterns import PatternSolver

        return PatternSolver(
            self._store,
            self._names,
            lambda path: self._matches(self._automaton(path, False)),
            self._types,
            both_roles(self._query, self._names.is_type),
            self._budget.go_on,
        )

    def _automaton(self, path: PathExpression, repeated: bool) -> Automaton:
        known = _AUTOMATA.setdefault(self._store, {})
        # By identity, because to compare thousands of alternatives takes longer than a search.
        key = (id(path), self._query.undirected, repeated, frozenset(self._query.prefixes.items()))
        if key not in known:
            if len(known) >= _KEPT_AUTOMATA:
                known.clear()
            count = len(self._store.relations)
            known[key] = (
                path,
                compile_expression(
                    path, count, lambda name: (self._names.relation(name),), self._query.undirected, repeated
                ),
            )
        return known[key][1]

    def _edges(self, automaton: Automaton, variable: str | None = None) -> Expander:
        return steps_along(self._store, automaton, StepOptions(variable, self._budget.capped))


def _shortest_walk(moves: Expander, source: int, target: int) -> tuple[Int64, Int64]:
    """Return the vertices and the labels of a shortest path that is known to be there."""
    rows = run(moves, shortest(moves, source, target, None, SearchBudget(PathLimits(), 1), every=False))
    assert rows is not None
    return rows.vertices[0], rows.labels[0]


_ONE_EACH = (Selector.ANY_SHORTEST, Selector.ALL_SHORTEST)
_FEW_PATHS = 1000
"""Shortest paths that an engine may send if one is wanted: their order is known only here."""
_FEW_PAIRS = 100
"""Pairs of a start and an end that are each searched from both ends."""
_FEW_NODES = 20_000
"""Largest number of nodes per call for edges."""
_TOGETHER = 16
"""Searches that ask a server together."""


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
        EntityNotFound: no node has the id or name of a start or end.
        NameAmbiguous: several nodes have its name.
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
    graph = store.columnar
    if graph is None:
        raise PathQueryInvalid("rules and FROM are for graphs in files or in memory")
    names = NameResolver(store, parsed.prefixes)
    listed = parse_rules(rules) if isinstance(rules, str) else rules
    return Inferred(graph, listed or (), [iri for name in parsed.graphs for iri in names.iris(name)])


def _arrays(store: GraphStore) -> GraphStore:
    """Return the arrays of a graph that an engine in this process holds beside them; other stores as they are.

    Of a view of properties it is the graph itself: a shared value is no connection, and conditions look at properties.
    """
    store = without_values(store)
    return store.columnar or store


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
        return PathResult(
            query, speller, found, bound, truncated, time.perf_counter() - self._began, self._against_direction
        )

    def _against_direction(self) -> bool:
        """True if some path exists once edges may be walked either way."""
        query = self._query
        if query.undirected or isinstance(query.via, Group) or query.graphs:
            return False
        via = AnyLink() if isinstance(query.via, Variable) else query.via
        either = replace(query, via=via, undirected=True, limit=1, offset=0, cost=None)
        return (
            len(_QueryEvaluation(self._store, either, replace(self._limits, timeout_s=1.0), self._inferred).result())
            > 0
        )

    def counted(self) -> tuple[int, bool]:
        """Count all paths between two nodes."""
        source, target = (self._names.named(end.names[0]) for end in (self._query.start, self._query.end))
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
        given = distinct(np.array([self._names.named(each) for each in end.names], np.int64)) if end.names else None
        if end.pattern is None:
            return _Ends(given)
        from byokg.graph.pathql.extras.triples import SolutionTable

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
                both = self._store.every_node().astype(np.int64) if both is None else both
            else:
                both = np.intersect1d(sources, targets)
            self._moves.empty = False
            return self._searches(partial(self._pair, node, node) for node in both.tolist())
        if sources is None and targets is None:
            sources = self._store.every_node().astype(np.int64)
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
        apart = shortest_each and self._store.columnar is None
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
            if self._store.columnar is not None and len(sources) * len(targets) > 1:
                self._sides = Sides(self._moves, stack)
            yield from self._searches(partial(self._pair, source, target) for source, target in pairs)

    def _searches(self, searches: Iterable[Callable[[SearchBudget], Search[list[PathRows]]]]) -> Iterator[PathRows]:
        """Yield the results of searches, in their order; on servers several of them share calls."""
        whole, waiting = self._budget, iter(searches)
        at_once = _TOGETHER if self._store.columnar is None else 1
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
        for source in (self._store.every_node().astype(np.int64) if sources is None else sources).tolist():
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
        if (graph := self._store.columnar) is None:
            return 1 << 20
        nodes = graph.node_count
        if self._query.restrictor in (Restrictor.ACYCLIC, Restrictor.SIMPLE):
            return nodes
        if self._query.restrictor is Restrictor.TRAIL and not self._via.pattern:
            return nodes * nodes if isinstance(self._moves, MatchExpander) else graph.edge_count
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
        graph = self._store.columnar
        size = 0 if graph is None else graph.node_count * moves.states
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
