"""VIA and MATCHING of a path query as steps: edges that an expression allows, its whole matches, or solutions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from byokg.arrays import Int64
from byokg.graph.pathql.automaton import Automaton, compile_expression
from byokg.graph.pathql.budget import PathLimits, SearchBudget, run
from byokg.graph.pathql.expander import Expander, MatchExpander, StepOptions, steps_along
from byokg.graph.pathql.names import NameResolver, check_bound
from byokg.graph.pathql.query import (
    AnyLink,
    Group,
    PathExpression,
    PathQuery,
    Variable,
    as_expression,
    both_roles,
    is_step,
    variables,
)
from byokg.graph.pathql.search import shortest
from byokg.graph.store import GraphStore

if TYPE_CHECKING:
    from byokg.graph.pathql.extras.pattern_expander import PatternExpander
    from byokg.graph.pathql.extras.patterns import PatternSolver

_AUTOMATA: WeakKeyDictionary[GraphStore, dict[Hashable, tuple[PathExpression, Automaton]]] = WeakKeyDictionary()
"""Cached automata of the last expressions on each graph."""
_KEPT_AUTOMATA = 64

_ANY = AnyLink()


class Via:
    """The steps of one query, and the solver of its patterns."""

    def __init__(
        self,
        store: GraphStore,
        query: PathQuery,
        names: NameResolver,
        budget: SearchBudget,
        types: Mapping[str, Int64],
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
                from byokg.graph.pathql.extras.pattern_expander import PatternExpander

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
