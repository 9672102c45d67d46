"""Query graphs: trees of typed variables with constraints and one operation; their text in Cypher, and their execution.

Since a query graph is a tree, the nodes of each variable are those of its constraints that every child's nodes lead
back to, bottom up; the nodes of a variable below the root that a result uses, top down after that (Yannakakis,
"Algorithms for Acyclic Database Schemes", VLDB 1981). No rows are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float64, Int64
from byokg.offline.query_schema import SCHEMA, Constraint, Property, Test, TypedSchema, TypedStep
from byokg.types import Value

Operation = Literal["list", "count", "average", "sum"]


@dataclass(frozen=True, eq=False)
class CountTest:
    """A test of a number of things (`more than two films`), and its words."""

    test: Test
    number: int
    start: int
    end: int


class Extremum(NamedTuple):
    """The most or least of a property, or of the nodes that a step leads to."""

    most: bool
    place: int
    property: Property | None
    step: TypedStep | None
    size: int = 1
    """Number of best nodes, those of ties beside them."""


class Counted(NamedTuple):
    """A test of the number of nodes that a step leads to."""

    test: CountTest
    step: TypedStep


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

    def children(self, at: int) -> Iterator[int]:
        """Yield the children of a variable."""
        return (place for place, one in enumerate(self.variables) if one.parent == at)

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
        return QueryGraph(tuple(variables), self.operation, self.projected, self.edge)

    def exchanged(self, at: int, variable: QueryVariable) -> QueryGraph:
        """Return the query graph with another variable in a place."""
        changed = (*self.variables[:at], variable, *self.variables[at + 1 :])
        return QueryGraph(changed, self.operation, self.projected, self.edge)


def cypher(schema: TypedSchema, graph: QueryGraph) -> str:
    """Write a query graph as Cypher; a superlative is an ORDER BY after what it orders, also below the root."""
    patterns, tests, orders = [], [], []
    for at, one in enumerate(graph.variables):
        label = f"(x{at}:{_quoted(schema.types[one.type])})"
        if one.step is None:
            patterns.append(label)
        else:
            edge = f"r{at}" if one.on_edge or graph.edge == at else ""
            patterns.append(_arrow(schema, f"(x{one.parent})", one.step, label, edge))
        tests += [_tested(f"x{at}", test) for test in one.constraints]
        tests += [_tested(f"r{at}", test) for test in one.on_edge]
        if one.counted is not None:
            tests.append(f"{_number(schema, at, one.counted.step)} {one.counted.test.test} {one.counted.test.number}")
        if one.extremum is not None:
            made = one.extremum
            by = "" if made.property is None else f"x{at}.{_quoted(made.property.name)}"
            by = by if made.step is None else _number(schema, at, made.step)
            skipped = "" if made.place == 1 else f" SKIP {made.place - 1}"
            orders.append(f"ORDER BY {by}{' DESC' if made.most else ''}{skipped} LIMIT {made.size}")
    owner = "x0" if graph.edge < 0 else f"r{graph.edge}"
    shown = "x0" if graph.projected is None else f"{owner}.{_quoted(graph.projected.name)}"
    returned = {"list": "DISTINCT {}", "count": "count(DISTINCT {})", "average": "avg({})", "sum": "sum({})"}
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    return " ".join([f"MATCH {', '.join(patterns)}{where} RETURN {returned[graph.operation].format(shown)}", *orders])


def _number(schema: TypedSchema, at: int, step: TypedStep) -> str:
    return f"COUNT {{ {_arrow(schema, f'(x{at})', step, f'(:{_quoted(schema.types[step.end])})')} }}"


def _arrow(schema: TypedSchema, start: str, step: TypedStep, end: str, edge: str = "") -> str:
    left, right = {"out": ("-", "->"), "in": ("<-", "-"), "both": ("-", "-")}[step.turn]
    return f"{start}{left}[{edge}:{_quoted(schema.graph.relations[step.relation])}]{right}{end}"


def _tested(variable: str, test: Constraint) -> str:
    shown = f"'{test.shown}'" if test.codes or test.nodes is not None else test.shown
    return f"{variable}.{_quoted(test.property.name or 'name')} {test.test} {shown}"


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


@dataclass(frozen=True)
class QueryResult:
    """The result of a query graph: nodes, and values if it projects or computes some."""

    nodes: Int64
    """Nodes of the root, ascending; of a superlative the best."""
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
        nodes = self._schema.members(graph.variables[0].type) if found is None else found
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
        values = tuple(dict.fromkeys(value for value in shown if value is not None))
        return QueryResult(nodes if values else nodes[:0], values)

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
            (graph.variables[child].step, graph.variables[child].on_edge, self._key(graph, child))
            for child in graph.children(at)
        )
        return one.type, one.constraints, one.extremum, one.counted, below

    def _nodes(self, graph: QueryGraph, at: int) -> Int64 | None:
        """Return the nodes of a variable that its subtree leaves, ascending; None for all of its type."""
        key = self._key(graph, at)
        if key not in self._known:
            self._known[key] = self._found(graph, at)
        return self._known[key]

    def _found(self, graph: QueryGraph, at: int) -> Int64 | None:
        one = graph.variables[at]
        parts = [self._holders(test) for test in one.constraints]
        parts += [self._leading(graph, child) for child in graph.children(at)]
        nodes: Int64 | None = None
        for part in sorted(parts, key=len):
            nodes = part if nodes is None else np.intersect1d(nodes, part, assume_unique=True)
        if one.counted is not None:
            nodes = self._members(nodes, one.type)
            nodes = nodes[_compared(self._schema.counted(nodes, one.counted.step), one.counted.test)]
        if one.extremum is not None:
            nodes = self._best(one.extremum, self._members(nodes, one.type))
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

    def _best(self, made: Extremum, nodes: Int64) -> Int64:
        if made.property is not None:
            measures = self._schema.column(made.property.name).measures(nodes)
        else:
            assert made.step is not None
            measures = self._schema.counted(nodes, made.step).astype(np.float64)
        signed = measures if made.most else -measures
        known = signed[~np.isnan(signed)]
        ranked = np.unique(known) if made.size == 1 else np.sort(known)
        place = made.place if made.size == 1 else min(made.size, len(ranked))
        if not 0 < place <= len(ranked):
            return nodes[:0]
        chosen: Int64 = nodes[signed == ranked[-place] if made.size == 1 else signed >= ranked[-place]]
        return chosen


def _compared(counts: Int64, test: CountTest) -> npt.NDArray[np.bool_]:
    compare = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}[test.test]
    return np.asarray(compare(counts, test.number), np.bool_)
