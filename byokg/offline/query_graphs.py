"""Query graphs: trees of typed variables with constraints, one operation, and their text in Cypher."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from byokg.arrays import Int64
from byokg.offline.query_schema import Property, TypedSchema, TypedStep

Operation = Literal["list", "count", "average", "sum"]

Test = Literal["=", ">", ">=", "<", "<=", "STARTS WITH", "ENDS WITH", "CONTAINS"]


@dataclass(frozen=True, eq=False)
class Constraint:
    """A test that a property of a node or edge has to pass, and its span of the question."""

    property: Property
    test: Test
    start: int
    end: int
    """First and last word, the latter exclusive."""
    codes: tuple[int, ...] = ()
    """Numbers of the values in the property's column that pass; empty for a test of numbers, dates or names."""
    nodes: Int64 | None = None
    """Nodes of a name, ascending."""
    low: float = -np.inf
    high: float = np.inf
    """Least and greatest measure that passes."""
    quality: float = 1.0
    """Similarity of span and value, in [0, 1]."""
    near: float = 0.0
    """Similarity of words near the span to the property, in [0, 1]."""
    shown: str = ""

    def span(self) -> tuple[int, int]:
        """Return first and last word, the latter exclusive."""
        return self.start, self.end


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
            orders.append(f"ORDER BY {by}{' DESC' if made.most else ''}{skipped} LIMIT 1")
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
