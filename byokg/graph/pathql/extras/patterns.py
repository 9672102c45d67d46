"""Graph patterns on any store: groups, alternatives and conditions, solved on tables of solutions.

`triples` has the tables, and joins them with a graph. `PatternExpander` walks solutions as steps:
`VIA { … }`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.errors import PathQueryInvalid, QueryTimeout
from byokg.graph.pathql.expander import Bound, Expander, Spelled, StepRows
from byokg.graph.pathql.extras.conditions import ExpressionEvaluator, check, check_literal
from byokg.graph.pathql.extras.triples import (
    UNBOUND,
    SolutionTable,
    TermCodes,
    TripleJoiner,
    agreeing,
    alike,
    equal,
    merge,
    property_labels,
    stack,
)
from byokg.graph.pathql.query import (
    Bind,
    Element,
    Exists,
    Expression,
    Filter,
    FunctionCall,
    Group,
    Inverse,
    Link,
    LiteralTerm,
    Minus,
    Optional,
    PathExpression,
    TriplePattern,
    Union,
    Values,
    Variable,
    inside,
    mentioned,
    seedable,
    variables,
)
from byokg.graph.pathql.result import NameResolver
from byokg.graph.pathql.search import among
from byokg.graph.store import GraphStore
from byokg.types import Triple

_TOGETHER = 1 << 12
"""Rows for which conditions are computed together."""


def _check_bind(members: Sequence[Element]) -> None:
    """Raise `PathQueryInvalid` where BIND gives a value to a variable that its group has used before."""
    seen: set[str] = set()
    for element in members:
        if isinstance(element, Bind):
            if element.variable.name in seen:
                raise PathQueryInvalid(f"BIND gives ?{element.variable.name} a value, which has one already")
            seen.add(element.variable.name)
        elif not isinstance(element, Filter | Minus):
            seen.update(variables(element))


def _conditions(group: Group) -> Iterator[Expression]:
    """Yield what has to hold of each solution of a group; parts joined by && apart, since each reads fewer values."""
    waiting = [element.condition for element in reversed(group.elements) if isinstance(element, Filter)]
    while waiting:
        condition = waiting.pop()
        if isinstance(condition, FunctionCall) and condition.operator == "&&":
            waiting += reversed(condition.arguments)
        else:
            yield condition


def _different(table: SolutionTable, names: Sequence[str]) -> tuple[SolutionTable, Int64]:
    """Return the different values of some variables, and which of them each solution has."""
    if not names or not table.rows:
        return SolutionTable({name: table.columns[name] for name in names}, min(table.rows, 1)), np.zeros(
            table.rows, np.int64
        )
    rows = np.stack([table.columns[name] for name in names], axis=1)
    each, which = np.unique(rows, axis=0, return_inverse=True)
    columns = {name: each[:, place] for place, name in enumerate(names)}
    return SolutionTable(columns, len(each)), which.reshape(-1)


class PatternSolver:
    """Solves the patterns of one query on a graph.

    A nested group, a branch of UNION and MINUS are solved by themselves, as in SPARQL: their conditions read their own
    variables only. Known values only narrow down the search.
    """

    def __init__(
        self,
        store: GraphStore,
        names: NameResolver,
        matches: Callable[[PathExpression], Expander],
        types: Mapping[str, Int64],
        both_roles: frozenset[str],
        go_on: Callable[[], None],
    ) -> None:
        """Read a graph.

        Args:
            store: the graph.
            names: resolves names.
            matches: returns the steps that are whole matches of an expression.
            types: nodes with inferred types, beside the store's own.
            both_roles: variables that stand for a relation or type in one place, and for any term in another.
            go_on: raises an error where the time is over.
        """
        self._store, self._names, self._go_on = store, names, go_on
        properties = property_labels(store)
        self._codes = TermCodes(store, names, properties, both_roles)
        self._triples = TripleJoiner(store, names, self._codes, matches, types)
        self._conditions = ExpressionEvaluator(lambda name: names.term(name, properties)[1], names.iri)

    def check(self, group: Group) -> None:
        """Raise an error for what cannot be solved in a group, also in parts that no solution may come to.

        Raises:
            PathQueryInvalid: an unknown function, a variable with two values, or what no edge can have.
            RelationNotFound: neither a relation nor a property has the name.
        """
        for element in inside(group):
            match element:
                case Filter(expression) | Bind(expression, _):
                    check(expression)
                case Group(members):
                    _check_bind(members)
                case Values(_, rows):
                    for term in (term for row in rows for term in row if isinstance(term, LiteralTerm)):
                        check_literal(term)
                case TriplePattern():
                    self._check_triple(element)

    def _check_triple(self, triple: TriplePattern) -> None:
        for term in (triple.subject, triple.object, *(value for _, value in triple.annotations)):
            if isinstance(term, LiteralTerm):
                check_literal(term)
        predicate = triple.predicate.path if isinstance(triple.predicate, Inverse) else triple.predicate
        if isinstance(predicate, Link):
            if self._names.is_type(predicate.name):
                if triple.annotations and self._names.relation_or_none(predicate.name) is None:
                    raise PathQueryInvalid("a type has no properties; they are said about edges: ?x :r ?y {| :p ?v |}")
            else:
                self._triples.labels(predicate)
        elif not isinstance(predicate, Variable):
            if triple.annotations:
                raise PathQueryInvalid(
                    "properties are said about edges of one relation, or of a variable: ?x :r ?y {| :p ?v |}"
                )
            self._triples.pairs_of(predicate)

    def bound(self, codes: Int64) -> list[Bound | None]:
        """Return the values of numbers; None for unbound ones."""
        return self._codes.bound(codes)

    # Groups

    def begun(self, name: str, nodes: Int64) -> SolutionTable:
        """Return solutions in which a variable stands for each of some nodes."""
        return SolutionTable({name: nodes}, len(nodes))

    def solve(self, group: Group, table: SolutionTable, fixed: frozenset[str] = frozenset()) -> SolutionTable:
        """Return the solutions of a group joined with given ones; it is solved by itself, but for `fixed` variables."""
        known = seedable(group) | fixed
        if known.issuperset(table.columns) and not any((column == UNBOUND).any() for column in table.columns.values()):
            return self._solved(group, table, fixed)
        return stack(
            [merge(table.take(rows), found.take(its)) for rows, found, its, _ in self._pairs(group, table, fixed)]
        )

    def _pairs(
        self, group: Group, table: SolutionTable, fixed: frozenset[str]
    ) -> Iterator[tuple[Int64, SolutionTable, Int64, bool]]:
        """Yield rows of a table, and solutions of a group, that agree.

        Yields:
            Rows of the table, the solutions, rows of these (as many), and whether they have a value in common.
        """
        known = seedable(group) | fixed
        for some in alike(table, [name for name in table.visible if name in known]):
            part = table.take(some)
            given = [name for name in part.visible if name in known and not (part.columns[name] == UNBOUND).any()]
            seeds = SolutionTable({name: part.columns[name] for name in given}, part.rows).distinct()
            found = self._solved(group, seeds, fixed)
            for rows, its, common in agreeing(part, found):
                yield some[rows], found, its, common

    def _solved(self, group: Group, table: SolutionTable, fixed: frozenset[str]) -> SolutionTable:
        """Return the solutions of a group that agree with some given ones, all of whose values it may read."""
        filters = list(_conditions(group))
        waiting: list[Element] = [element for element in group.elements if not isinstance(element, Filter)]
        while waiting:
            table, filters = self._filtered(table, filters, last=False)
            element = self._next(waiting, table)
            waiting.remove(element)
            table = self._joined(element, table, fixed)
        return self._filtered(table, filters, last=True)[0]

    def _next(self, waiting: Sequence[Element], table: SolutionTable) -> Element:
        """Return what to join next: of the triples up to the next other element the one with most that is known."""
        triples: list[TriplePattern] = []
        for element in waiting:
            if not isinstance(element, TriplePattern):
                break
            triples.append(element)
        if not triples:
            return waiting[0]

        def open_ends(triple: TriplePattern) -> tuple[int, bool, bool]:
            of_type = isinstance(triple.predicate, Link) and self._names.is_type(triple.predicate.name)
            ends = (triple.subject, triple.object)
            unknown = [end for end in ends if isinstance(end, Variable) and end.name not in table.columns]
            # Edges are looked up at either end, types at the node.
            looked_up = ends[:1] if of_type else ends
            return len(unknown), all(end in unknown for end in looked_up), isinstance(triple.predicate, Variable)

        return min(triples, key=open_ends)

    def _filtered(self, table: SolutionTable, filters: list[Any], last: bool) -> tuple[SolutionTable, list[Any]]:
        """Apply the conditions whose variables have values in all solutions, or all that are left."""
        left = []
        for condition in filters:
            names = set(mentioned(condition))
            if not last and not all(name in table.columns and (table.columns[name] != UNBOUND).all() for name in names):
                left.append(condition)
                continue
            if table.rows:
                table = table.take(np.flatnonzero(self._computed(condition, table, self._conditions.holds)))
        return table, left

    def _computed(
        self, expression: Expression, table: SolutionTable, compute: Callable[[Expression, Mapping[str, Bound]], Any]
    ) -> Any:
        """Compute an expression for each solution, once for equal values of the variables that it reads."""
        marks: dict[str, Int64] = {}
        expression = self._answered(expression, table, marks)
        table = table.with_columns(marks)
        names = set(mentioned(expression))
        read = [name for name in table.columns if name in names]
        each, which = _different(table, read)
        columns = [self._codes.bound(each.columns[name]) for name in read]
        values = []
        for first in range(0, each.rows, _TOGETHER):
            self._go_on()
            for row in zip(*(column[first : first + _TOGETHER] for column in columns), strict=True) if read else [()]:
                known = {name: value for name, value in zip(read, row, strict=True) if value is not None}
                values.append(compute(expression, known))
        return np.array(values)[which]

    def _answered(self, expression: Expression, table: SolutionTable, marks: dict[str, Int64]) -> Expression:
        """Return an expression with variables in the place of EXISTS, and add what these stand for to `marks`."""
        match expression:
            case Exists(group, negated):
                found = self._has_solutions(group, table) != negated
                codes = [self._codes.code(Bound("literal", truth)) for truth in (False, True)]
                name = f"\0exists{len(marks)}"
                marks[name] = np.array(codes, np.int64)[found.astype(np.int64)]
                return Variable(name)
            case FunctionCall(operator, arguments):
                return FunctionCall(operator, tuple(self._answered(each, table, marks) for each in arguments))
        return expression

    def _has_solutions(self, group: Group, table: SolutionTable) -> npt.NDArray[np.bool_]:
        """Tell for each solution whether a group has one that agrees with it."""
        names = set(mentioned(group))
        each, which = _different(table, [name for name in table.visible if name in names])
        found = np.zeros(each.rows, np.bool_)
        for first in range(0, each.rows, _TOGETHER):
            self._go_on()
            rows = np.arange(first, min(first + _TOGETHER, each.rows))
            marked = each.take(rows).with_columns({"\0marked": rows})
            found[self._solved(group, marked, frozenset(each.columns)).column("\0marked")] = True
        return found[which]

    def _joined(self, element: Element, table: SolutionTable, fixed: frozenset[str]) -> SolutionTable:
        match element:
            case TriplePattern():
                return self._triples.join(element, table)
            case Group():
                return self.solve(element, table, fixed)
            case Union(groups):
                return stack([self.solve(group, table, fixed) for group in groups])
            case Optional(group):
                return self._lengthened(group, table, fixed)
            case Minus(group):
                kept = np.ones(table.rows, np.bool_)
                if set(variables(group)).isdisjoint(table.columns):
                    return table
                for rows, _, _, common in self._pairs(group, table, fixed):
                    if common:
                        kept[rows] = False
                return table.take(np.flatnonzero(kept))
            case Bind(expression, variable):
                codes = self._computed(
                    expression, table, lambda part, row: self._codes.code_of(self._conditions.bound(part, row))
                )
                return equal(table, variable.name, codes.astype(np.int64))
            case Values(names, rows):
                terms = [[self._codes.value(term) for term in row] for row in rows]
                codes = np.array(terms, np.int64).reshape(len(rows), len(names))
                said = SolutionTable({name.name: codes[:, place] for place, name in enumerate(names)}, len(rows))
                pairs = agreeing(table, said)
                return stack([merge(table.take(rows), said.take(its)) for rows, its, _ in pairs])
        raise PathQueryInvalid(f"{element} cannot stand in a pattern")

    def _lengthened(self, group: Group, table: SolutionTable, fixed: frozenset[str]) -> SolutionTable:
        """Join with an OPTIONAL group, whose own conditions read the solution that it lengthens as well."""
        body = Group(tuple(element for element in group.elements if not isinstance(element, Filter)))
        conditions = list(_conditions(group))
        marked = table.with_columns({"\0row": np.arange(table.rows)})
        found, _ = self._filtered(self.solve(body, marked, fixed), conditions, last=True)
        kept = np.ones(table.rows, np.bool_)
        kept[found.columns.pop("\0row", np.empty(0, np.int64))] = False
        return stack([found, table.take(np.flatnonzero(kept))])

    # Evidence

    def triples(self, table: SolutionTable, row: int) -> list[Triple]:
        """Return the edges that a solution stands on, as they are stored."""
        found = []
        for place in range(sum(name.startswith("\0edge") for name in table.columns)):
            edge = int(table.columns[f"\0edge{place}"][row])
            if edge >= 0:
                ends = [int(table.columns[f"\0{end}{place}"][row]) for end in ("head", "tail")]
                head, tail = self._store.ids(np.array(ends))
                relation = self._store.relations[int(table.columns[f"\0relation{place}"][row])]
                (properties,) = self._store.edge_properties(np.array([edge]))
                undirected = table.columns.get(f"\0undirected{place}")
                both_ways = undirected is not None and bool(undirected[row])
                found.append(Triple(head, relation, tail, edge, properties, both_ways))
        return found


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
