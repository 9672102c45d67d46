"""Execution of query graphs on a columnar graph.

Since a query graph is a tree, the nodes of each variable are those of its constraints that every child's nodes lead
back to, bottom up; the nodes of a variable below the root that a result uses, top down after that (Yannakakis,
"Algorithms for Acyclic Database Schemes", VLDB 1981). No rows are joined.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float64, Int64
from byokg.offline.query_graphs import Constraint, CountTest, Extremum, QueryGraph, QueryVariable
from byokg.offline.query_schema import EdgeTest, TypedSchema
from byokg.offline.query_settings import SCHEMA
from byokg.types import Value


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
            return self._schema.measured(graph.projected, nodes)
        one = graph.variables[graph.edge]
        assert one.step is not None
        above = self._reduced(graph, one.parent)
        _, other, edges = self._schema.edges(above, one.step)
        below = self._members(self._nodes(graph, graph.edge), one.type)
        kept = np.isin(other, below) & self._schema.passing(_edge_tests(one), edges)
        return self._schema.edge_column(graph.projected.name).measures(edges[kept])

    def _reduced(self, graph: QueryGraph, at: int) -> Int64:
        """Return the nodes of a variable that the whole query graph leaves."""
        one = graph.variables[at]
        nodes = self._members(self._nodes(graph, at), one.type)
        if one.step is None:
            return nodes
        reached = self._schema.follow(self._reduced(graph, one.parent), one.step, _edge_tests(one))
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
        return self._schema.follow(self._members(below, one.type), back, _edge_tests(one))

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
            measures = self._schema.measured(made.property, nodes)
        else:
            assert made.step is not None
            measures = self._schema.counted(nodes, made.step).astype(np.float64)
        ranked = np.unique(measures[~np.isnan(measures)])
        if len(ranked) < made.place:
            return nodes[:0]
        best = float(ranked[-made.place] if made.most else ranked[made.place - 1])
        chosen: Int64 = nodes[measures == best]
        return chosen


def _edge_tests(one: QueryVariable) -> list[EdgeTest]:
    return [(test.property, test.low, test.high, test.codes) for test in one.on_edge]


def _compared(counts: Int64, test: CountTest) -> npt.NDArray[np.bool_]:
    number = test.number
    if test.test in (">", ">="):
        return counts > number if test.test == ">" else counts >= number
    return counts < number if test.test == "<" else counts <= number
