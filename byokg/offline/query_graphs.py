"""Query graphs: trees of typed variables with constraints and one operation; their text in Cypher, and their execution.

Since a query graph is a tree, the nodes of each variable are those of its constraints that every child's nodes lead
back to, bottom up; the nodes of a variable below the root that a result uses, top down after that (Yannakakis,
"Algorithms for Acyclic Database Schemes", VLDB 1981). No rows are joined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float64, Int64
from byokg.graph.sorted_ids import distinct, rows_at
from byokg.offline.query_schema import SCHEMA, Constraint, Property, Test, TypedSchema, TypedStep
from byokg.text.values import read_literal
from byokg.types import Value

Operation = Literal["list", "count", "average", "sum"]


@dataclass(frozen=True, eq=False)
class CountTest:
    """A test of a number of things (`more than two films`), and its words."""

    test: Test
    number: int
    start: int
    end: int


class Quantity(NamedTuple):
    """A number of each node of a variable: a property, or the count of nodes that a step leads to.

    Along a branch of the root it is the count of the nodes at the branch's end, or the sum or average of a property of
    these nodes, or of the edges to them; each node or edge counts once.
    """

    property: Property | None = None
    step: TypedStep | None = None
    end: int = 0
    """Last variable of the branch; 0 for none."""
    operation: Operation = "count"

    def of_edges(self) -> bool:
        """True for a property of edges."""
        return self.property is not None and self.property.relation >= 0


class Extremum(NamedTuple):
    """The nodes of a variable that have the most or least of a quantity."""

    most: bool
    place: int
    quantity: Quantity
    size: int = 1
    """Number of best nodes, those of ties beside them."""


class Counted(NamedTuple):
    """A test of a number of nodes."""

    test: CountTest
    quantity: Quantity


@dataclass(frozen=True)
class QueryVariable:
    """A variable of a query graph, and the step from its parent."""

    type: int
    parent: int = -1
    step: TypedStep | None = None
    constraints: tuple[Constraint, ...] = ()
    on_edge: tuple[Constraint, ...] = ()
    """Constraints of the edge that the step walks."""
    extremum: Extremum | None = None
    counted: Counted | None = None
    absent: bool = False
    """Whether nodes of the parent have no such branch: those of a denial."""

    @property
    def within_type(self) -> bool:
        """True if the step leads to nodes of the type that it comes from."""
        return self.step is not None and self.step.start == self.step.end


@dataclass(frozen=True)
class QueryGraph:
    """A tree of variables, parents before children; the first is the root, and the answer."""

    variables: tuple[QueryVariable, ...]
    operation: Operation = "list"
    projected: Property | None = None
    """Property of the root, or of the edges to `edge`, that is the answer; None if the root is."""
    edge: int = -1
    """QueryVariable whose edges have the projected property; -1 if the root has it."""
    frequent: int = 0
    """Number of values of the projected property, the most frequent ones; 0 for all."""

    def children(self, at: int) -> Iterator[int]:
        """Yield the children of a variable."""
        return (place for place, one in enumerate(self.variables) if one.parent == at)

    def above(self, at: int) -> Iterator[int]:
        """Yield a variable and those that lead to it, the root last."""
        while at >= 0:
            yield at
            at = self.variables[at].parent

    def is_absent(self, at: int) -> bool:
        """True for a variable of a denied branch."""
        return any(self.variables[each].absent for each in self.above(at))

    def below_root(self) -> list[int]:
        """Return the variables below the root, without those of denied branches."""
        return [at for at in range(1, len(self.variables)) if not self.is_absent(at)]

    @property
    def constraints(self) -> list[Constraint]:
        """Return all constraints."""
        return [test for one in self.variables for test in (*one.constraints, *one.on_edge)]

    def constrained(self, at: int, test: Constraint) -> QueryGraph:
        """Return the query graph with one more constraint of a variable, or of its edge."""
        one = self.variables[at]
        if test.property.relation >= 0:
            return self.exchanged(at, replace(one, on_edge=(*one.on_edge, test)))
        return self.exchanged(at, replace(one, constraints=(*one.constraints, test)))

    def extended(self, at: int, path: Sequence[TypedStep]) -> QueryGraph:
        """Return the query graph with a path out of a variable; its end is the last variable."""
        variables = list(self.variables)
        for step in path:
            variables.append(QueryVariable(step.end, at, step))
            at = len(variables) - 1
        return replace(self, variables=tuple(variables))

    def exchanged(self, at: int, variable: QueryVariable) -> QueryGraph:
        """Return the query graph with another variable in a place."""
        return replace(self, variables=(*self.variables[:at], variable, *self.variables[at + 1 :]))


def cypher(schema: TypedSchema, graph: QueryGraph) -> str:
    """Write a query graph as Cypher; a superlative is an ORDER BY after what it orders, also below the root."""
    patterns, tests, orders = list[str](), list[str](), list[str]()
    carried, kept = list[str](), list[str]()
    for at, one in enumerate(graph.variables):
        if graph.is_absent(at):
            continue
        pattern, conditions = _pattern(schema, graph, at)
        patterns.append(pattern)
        tests += conditions
        for child in graph.children(at):
            if graph.variables[child].absent:
                tests.append(f"NOT EXISTS {{ {_branch(schema, graph, child)} }}")
        if one.counted is not None:
            test, made = one.counted
            number = _quantity(schema, graph, at, made)
            if made.end:
                carried.append(f"{number} AS n")
            (kept if made.end else tests).append(f"{'n' if made.end else number} {test.test} {test.number}")
        if one.extremum is not None:
            by = _quantity(schema, graph, at, one.extremum.quantity)
            if one.extremum.quantity.end:
                carried.append(f"{by} AS m")
                by = "m"
            skipped = "" if one.extremum.place == 1 else f" SKIP {one.extremum.place - 1}"
            orders.append(f"ORDER BY {by}{' DESC' if one.extremum.most else ''}{skipped} LIMIT {one.extremum.size}")
    owner = "x0" if graph.edge < 0 else f"r{graph.edge}"
    shown = "x0" if graph.projected is None else f"{owner}.{_quoted(graph.projected.name)}"
    returned = {"list": "DISTINCT {}", "count": "count(DISTINCT {})", "average": "avg({})", "sum": "sum({})"}
    where = _where(tests)
    if carried:
        where += f" WITH x0, {', '.join(carried)}{_where(kept)}"
        returned["list"] = "{}"
    if graph.frequent:
        returned["list"] = "{}, count(*) AS f"
        orders = [f"ORDER BY f DESC LIMIT {graph.frequent}"]
    return " ".join([f"MATCH {', '.join(patterns)}{where} RETURN {returned[graph.operation].format(shown)}", *orders])


def _where(tests: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(tests)}" if tests else ""


def _pattern(schema: TypedSchema, graph: QueryGraph, at: int) -> tuple[str, list[str]]:
    """Return the pattern of a variable with the step from its parent, and its tests."""
    one, order = graph.variables[at], graph.variables[0].extremum
    tests = [_tested(schema, f"x{at}", test) for test in one.constraints]
    tests += [_tested(schema, f"r{at}", test) for test in one.on_edge]
    label = f"(x{at}:{_quoted(schema.types[one.type])})"
    if one.step is None:
        return label, tests
    summed = order is not None and order.quantity.of_edges() and order.quantity.end == at
    named = one.on_edge or graph.edge == at or summed
    return _arrow(schema, f"(x{one.parent})", one.step, label, f"r{at}" if named else ""), tests


def _branch(schema: TypedSchema, graph: QueryGraph, at: int) -> str:
    """Return a variable and those below it as a pattern of their own."""
    patterns, tests, waiting = list[str](), list[str](), [at]
    for each in waiting:
        pattern, conditions = _pattern(schema, graph, each)
        patterns.append(pattern)
        tests += conditions
        waiting += graph.children(each)
    return ", ".join(patterns) + _where(tests)


def _quantity(schema: TypedSchema, graph: QueryGraph, at: int, made: Quantity) -> str:
    """Return the quantity of a variable's nodes."""
    if made.step is not None:
        return f"COUNT {{ {_arrow(schema, f'(x{at})', made.step, f'(:{_quoted(schema.types[made.step.end])})')} }}"
    if made.property is None:
        return f"count(DISTINCT x{made.end})"
    value = f"{'r' if made.of_edges() else 'x'}{made.end or at}.{_quoted(made.property.name)}"
    return {"count": value, "average": f"avg({value})", "sum": f"sum({value})"}[made.operation]


def _arrow(schema: TypedSchema, start: str, step: TypedStep, end: str, edge: str = "") -> str:
    left, right = {"out": ("-", "->"), "in": ("<-", "-"), "both": ("-", "-")}[step.turn]
    return f"{start}{left}[{edge}:{_quoted(schema.graph.relations[step.relation])}]{right}{end}"


def _tested(schema: TypedSchema, variable: str, test: Constraint) -> str:
    """Write a test; a part of a date that the graph holds as a text in order is compared with as many characters."""
    column, name = schema.column_of(test.property), f"{variable}.{_quoted(test.property.name or 'name')}"
    if test.test == "between":
        bounds: tuple[Test, Test] = (">=", "<=")
        parts = zip(bounds, test.shown.split(" and "), strict=True)
        return " AND ".join(_tested(schema, variable, replace(test, test=each, shown=part)) for each, part in parts)
    if test.property.kind == "flag" and test.codes:
        value = column.distinct[test.codes[0]]
        return f"{name} = {_literal(value) if isinstance(value, str) else str(value).lower()}"
    if test.codes or test.nodes is not None:
        return f"{name} {test.test} {_literal(test.shown)}"
    if not isinstance(next(iter(column.distinct), None), str):
        return f"{name} {test.test} {test.shown}"
    if test.property.kind == "number":
        return f"{name} = {_literal(test.shown)}" if test.test == "=" else f"toFloat({name}) {test.test} {test.shown}"
    date = _iso_date(test.shown)
    return f"left({name}, {len(date)}) {test.test} {_literal(date)}" if date else f"{name} {test.test} {test.shown}"


def _iso_date(shown: str) -> str:
    literal = read_literal(shown)
    return str(literal.value) if literal is not None and literal.kind in ("date", "year") else ""


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


@dataclass(frozen=True)
class QueryResult:
    """The result of a query graph: nodes, and values if it projects or computes some."""

    nodes: Int64
    """Nodes of the root, ascending; of a superlative the best, several with the very best first."""
    values: tuple[Value, ...] = ()
    """Values of the projected property, distinct, or a computed number."""


class QueryExecutor:
    """Executes query graphs over one schema; thread-safe."""

    def __init__(self, schema: TypedSchema) -> None:
        self.schema = schema
        self.having = lru_cache(SCHEMA.remembered)(self._starts)
        """Returns the nodes that a step, by number, leads away from: ascending."""

    def _starts(self, number: int) -> Int64:
        back = self.schema.steps[self.schema.steps[number].reverse]
        return self.schema.follow(self.schema.members(back.start), back)


class QueryExecution:
    """Executes the query graphs of one question, remembering the nodes of equal subtrees."""

    def __init__(self, executor: QueryExecutor) -> None:
        self._executor, self._schema = executor, executor.schema
        self._known: dict[object, Int64 | None] = {}
        self._held: dict[Constraint, Int64] = {}

    def run(self, graph: QueryGraph) -> QueryResult:
        """Return the result of a query graph."""
        found = self._nodes(graph, 0)
        nodes = self._schema.members(graph.variables[0].type) if found is None else self._ranked(graph, found)
        if graph.operation == "count":
            return QueryResult(nodes, (len(nodes),))
        if graph.operation in ("average", "sum"):
            measures = self._measures(graph, nodes)
            measures = measures[~np.isnan(measures)]
            if not len(measures):
                return QueryResult(nodes[:0])
            total = float(measures.sum())
            return QueryResult(nodes, (total / len(measures) if graph.operation == "average" else total,))
        if graph.projected is None:
            return QueryResult(nodes)
        shown = self._schema.shown(graph.projected, nodes)
        counts = Counter(value for value in shown if value is not None)
        least = sorted(counts.values())[-graph.frequent :][0] if graph.frequent and counts else 0
        values = tuple(value for value, count in counts.items() if count >= least)
        return QueryResult(nodes if values else nodes[:0], values)

    def _ranked(self, graph: QueryGraph, nodes: Int64) -> Int64:
        """Return the nodes of the root, those of a superlative of several with the best first."""
        made = graph.variables[0].extremum
        if made is None or made.size == 1:
            return nodes
        measures = self._quantities(graph, nodes, made.quantity)
        return nodes[np.argsort(-measures if made.most else measures, kind="stable")]

    def _measures(self, graph: QueryGraph, nodes: Int64) -> Float64:
        """Return the values to aggregate: of the root, or of the edges to a variable."""
        assert graph.projected is not None
        if graph.edge < 0:
            return self._schema.column(graph.projected.name).measures(nodes)
        one = graph.variables[graph.edge]
        assert one.step is not None
        above = self._reduced(graph, one.parent)
        _, other, edges = self._schema.edges(above, one.step)
        below = self._members(self._nodes(graph, graph.edge), one.type)
        kept = np.isin(other, below) & self._schema.passing(one.on_edge, edges)
        return self._schema.edge_column(graph.projected.name).measures(edges[kept])

    def _reduced(self, graph: QueryGraph, at: int) -> Int64:
        """Return the nodes of a variable that the whole query graph leaves."""
        one = graph.variables[at]
        nodes = self._members(self._nodes(graph, at), one.type)
        if one.step is None:
            return nodes
        reached = self._schema.follow(self._reduced(graph, one.parent), one.step, one.on_edge)
        return np.intersect1d(nodes, reached, assume_unique=True)

    def _members(self, nodes: Int64 | None, type: int) -> Int64:
        return self._schema.members(type) if nodes is None else nodes

    def _key(self, graph: QueryGraph, at: int) -> object:
        one = graph.variables[at]
        below = tuple(
            (
                graph.variables[child].step,
                graph.variables[child].on_edge,
                graph.variables[child].absent,
                self._key(graph, child),
            )
            for child in graph.children(at)
        )
        made = (one.extremum and one.extremum.quantity, one.counted and one.counted.quantity)
        tree = graph.variables if any(each and each.end for each in made) else ()  # a branch is known by its number
        return one.type, one.constraints, one.extremum, one.counted, below, tree

    def _nodes(self, graph: QueryGraph, at: int) -> Int64 | None:
        """Return the nodes of a variable that its subtree leaves, ascending; None for all of its type."""
        key = self._key(graph, at)
        if key not in self._known:
            self._known[key] = self._found(graph, at)
        return self._known[key]

    def _found(self, graph: QueryGraph, at: int) -> Int64 | None:
        one = graph.variables[at]
        parts = [self._holders(test) for test in one.constraints]
        parts += [self._leading(graph, child) for child in graph.children(at) if not graph.variables[child].absent]
        nodes: Int64 | None = None
        for part in sorted(parts, key=len):
            nodes = part if nodes is None else np.intersect1d(nodes, part, assume_unique=True)
        for child in (child for child in graph.children(at) if graph.variables[child].absent):
            nodes = np.setdiff1d(self._members(nodes, one.type), self._leading(graph, child), assume_unique=True)
        if one.counted is not None:
            nodes = self._members(nodes, one.type)
            nodes = nodes[_compared(self._quantities(graph, nodes, one.counted.quantity), one.counted.test)]
        if one.extremum is not None:
            nodes = self._best(graph, one.extremum, self._members(nodes, one.type))
        return nodes

    def _leading(self, graph: QueryGraph, child: int) -> Int64:
        """Return the nodes from which the step to a child leads to nodes of the child."""
        one = graph.variables[child]
        assert one.step is not None
        below = self._nodes(graph, child)
        if below is None and not one.on_edge:
            return self._executor.having(one.step.number)
        back = self._schema.steps[one.step.reverse]
        return self._schema.follow(self._members(below, one.type), back, one.on_edge)

    def _holders(self, test: Constraint) -> Int64:
        if test not in self._held:
            schema = self._schema
            if test.nodes is not None:
                self._held[test] = test.nodes
            elif test.codes:
                self._held[test] = schema.holders(test.property, test.codes)
            else:
                within = schema.column(test.property.name).within(test.low, test.high)
                self._held[test] = schema.only(within, test.property.type)
        return self._held[test]

    def _quantities(self, graph: QueryGraph, nodes: Int64, made: Quantity) -> Float64:
        """Return the quantity of each of some nodes of a variable; NaN without a value."""
        schema, property = self._schema, made.property
        if made.step is not None:
            return schema.counted(nodes, made.step).astype(np.float64)
        if property is not None and not made.end:
            return schema.column(property.name).measures(nodes)
        reached = self._reached(graph, nodes, made)
        if reached is None:
            return np.full(len(nodes), np.nan)
        start, ends = reached
        if property is None:
            return np.bincount(start, minlength=len(nodes)).astype(np.float64)
        values = schema.column_of(property).measures(ends)
        start, values = start[~np.isnan(values)], values[~np.isnan(values)]
        counts = np.bincount(start, minlength=len(nodes))
        sums = np.where(counts > 0, np.bincount(start, values, len(nodes)), np.nan)
        return sums / np.maximum(counts, 1) if made.operation == "average" else sums

    def _reached(self, graph: QueryGraph, nodes: Int64, made: Quantity) -> tuple[Int64, Int64] | None:
        """Return the pairs of a node's place and an end of the branch from it, or of an edge to that; None of too many.

        Pairs are distinct, and ascend.
        """
        start, ends = np.arange(len(nodes)), nodes
        for at in [*graph.above(made.end)][-2::-1]:
            one, below = graph.variables[at], self._nodes(graph, at)
            assert one.step is not None
            known, back = np.unique(ends, return_inverse=True)
            origin, other, edge = self._schema.edges(known, one.step)
            kept = self._schema.passing(one.on_edge, edge)
            if below is not None:
                kept &= np.isin(other, below)
            origin, held = origin[kept], (edge if made.of_edges() and at == made.end else other)[kept]
            if int(np.bincount(origin, minlength=len(known))[back].sum()) > SCHEMA.edges:
                return None
            row, member = rows_at(origin, back)
            size = int(held.max(initial=0)) + 1
            start, ends = np.divmod(distinct(start[row] * size + held[member]), size)
        return start, ends

    def _best(self, graph: QueryGraph, made: Extremum, nodes: Int64) -> Int64:
        measures = self._quantities(graph, nodes, made.quantity)
        signed = measures if made.most else -measures
        known = signed[~np.isnan(signed)]
        ranked = np.unique(known) if made.size == 1 else np.sort(known)
        place = made.place if made.size == 1 else min(made.size, len(ranked))
        if not 0 < place <= len(ranked):
            return nodes[:0]
        chosen: Int64 = nodes[signed == ranked[-place] if made.size == 1 else signed >= ranked[-place]]
        return chosen


def _compared(counts: Float64, test: CountTest) -> npt.NDArray[np.bool_]:
    compare = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}[test.test]
    return np.asarray(compare(counts, test.number), np.bool_)
