"""Graph patterns on any store: tables of solutions, joined a triple at a time.

A solution is a row of numbers: a node's own number, a negative one for relations and literals, `UNBOUND` for none. A
triple of a pattern is an edge or, where the object is no node, a property of a node; `a` asks for a node's type, and
`rdfs:label` for its name where the graph has no such property.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from byokg.errors import PathQueryInvalid, QueryTooLarge, RelationNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.int_sets import distinct
from byokg.graph.pathql.conditions import Conditions, check, names_in
from byokg.graph.pathql.moves import Bound, Int64, Moves
from byokg.graph.pathql.names import Names
from byokg.graph.pathql.query import (
    Bind,
    Element,
    Filter,
    Group,
    Link,
    LiteralTerm,
    Minus,
    NameTerm,
    Optional,
    PathExpression,
    Term,
    TriplePattern,
    Union,
    Values,
    Variable,
    variables,
)
from byokg.graph.store import ALL_VALUES, Direction, GraphStore
from byokg.types import EntityId, Triple, Value

UNBOUND = -1
_MOST_ROWS = 3_000_000

_LABEL = NameTerm("http://www.w3.org/2000/01/rdf-schema#label")


class SolutionTable:
    """S solutions: a column (S,) for each variable. Columns that begin with a zero byte hold edges, for evidence."""

    def __init__(self, columns: Mapping[str, Int64], rows: int) -> None:
        self.columns = dict(columns)
        self.rows = rows
        if rows > _MOST_ROWS:
            raise QueryTooLarge(f"a pattern has more than {_MOST_ROWS:,} solutions on the way")

    def taken(self, rows: npt.NDArray[Any]) -> SolutionTable:
        """Return some solutions."""
        return SolutionTable({name: column[rows] for name, column in self.columns.items()}, len(rows))

    def column(self, name: str) -> Int64:
        """Return what a variable stands for in each solution."""
        return self.columns.get(name, np.full(self.rows, UNBOUND))

    def with_columns(self, columns: Mapping[str, Int64]) -> SolutionTable:
        """Return the solutions with more variables."""
        return SolutionTable(self.columns | dict(columns), self.rows)

    @property
    def visible(self) -> list[str]:
        """Return the names of the variables."""
        return [name for name in self.columns if not name.startswith("\0")]

    def distinct(self) -> SolutionTable:
        """Return each solution once, in order; edges are of its first appearance."""
        names = self.visible
        if not names or self.rows < 2:
            return self.taken(np.arange(min(self.rows, 1)))
        stacked = np.stack([self.columns[name] for name in names], axis=1)
        first = np.unique(stacked, axis=0, return_index=True)[1]
        return self.taken(np.sort(first))


def stacked(tables: Sequence[SolutionTable]) -> SolutionTable:
    """Return the solutions of several tables, one after the other."""
    names = dict.fromkeys(name for table in tables for name in table.columns)
    return SolutionTable(
        {name: np.concatenate([table.column(name) for table in tables]) for name in names},
        sum(table.rows for table in tables),
    )


class Patterns:
    """Solves the patterns of one query on a graph."""

    def __init__(
        self,
        store: GraphStore,
        names: Names,
        matches: Callable[[PathExpression], Moves],
        types: Mapping[str, Int64],
    ) -> None:
        """Read a graph.

        Args:
            store: the graph.
            names: what names stand for.
            matches: gives the steps that are whole matches of an expression.
            types: nodes that have a type besides those that the store says.
        """
        self._store, self._names, self._matches, self._more_types = store, names, matches, types
        self._terms: list[Bound] = []
        self._codes: dict[tuple[str, Value], int] = {}
        self._expressions: dict[PathExpression, Moves] = {}
        self._everything: Int64 | None = None
        self._conditions = Conditions(self._id_of, self._has_solution)
        schema = store.schema()
        self._dates = {
            detail.name
            for details in schema.node_property_details.values()
            for detail in details
            if detail.kind == "date"
        }
        self._properties = {name for names in schema.node_properties.values() for name in names}

    # Terms

    def code(self, bound: Bound) -> int:
        """Return the number of a relation or literal."""
        kind = bound.kind
        if kind == "literal":
            kind = "truth" if isinstance(bound.value, bool) else "literal"
        key = (kind, bound.value)
        if key not in self._codes:
            self._codes[key] = -2 - len(self._terms)
            self._terms.append(bound)
        return self._codes[key]

    def bound(self, codes: Int64) -> list[Bound | None]:
        """Return what numbers stand for; None where nothing."""
        found: list[Bound | None] = [None] * len(codes)
        nodes = np.flatnonzero(codes >= 0)
        for place, entity in zip(nodes.tolist(), self._store.ids(codes[nodes]), strict=True):
            found[place] = Bound("node", entity)
        for place in np.flatnonzero(codes < UNBOUND).tolist():
            found[place] = self._terms[-2 - int(codes[place])]
        return found

    def _constant(self, term: NameTerm | LiteralTerm) -> int:
        """Return the number of a constant; `UNBOUND` for a node that is not there."""
        if isinstance(term, LiteralTerm):
            return self.code(Bound("literal", term.value, term.datatype))
        number = self._names.node_or_none(term)
        return UNBOUND if number is None else number

    def _id_of(self, name: NameTerm) -> str:
        number = self._names.node_or_none(name)
        return str(name) if number is None else str(self._store.ids(np.array([number]))[0])

    def every_node(self) -> Int64:
        """Return the numbers of all nodes."""
        if self._everything is None:
            if isinstance(self._store, ColumnarGraph):
                self._everything = np.arange(self._store.node_count)
            else:
                self._everything = self._store.numbers(list(self._store.entities())).astype(np.int64)
        return self._everything

    # Groups

    def begun(self, name: str, nodes: Int64) -> SolutionTable:
        """Return solutions in which a variable stands for each of some nodes."""
        return SolutionTable({name: nodes}, len(nodes))

    def solve(self, group: Group, table: SolutionTable) -> SolutionTable:
        """Return the solutions of a group that agree with some given ones."""
        waiting = list(group.elements)
        filters = [element.condition for element in waiting if isinstance(element, Filter)]
        for condition in filters:
            check(condition)
        waiting = [element for element in waiting if not isinstance(element, Filter)]
        while waiting:
            table, filters = self._filtered(table, filters, last=False)
            element = self._next(waiting, table)
            waiting.remove(element)
            table = self._joined(element, table)
        table, _ = self._filtered(table, filters, last=True)
        return table

    def _next(self, waiting: Sequence[Element], table: SolutionTable) -> Element:
        """Return what to join next: of the triples up to the next other element the one with most that is known."""
        triples: list[TriplePattern] = []
        for element in waiting:
            if not isinstance(element, TriplePattern):
                break
            triples.append(element)
        if not triples:
            return waiting[0]

        def open_ends(triple: TriplePattern) -> tuple[int, bool]:
            ends = (triple.subject, triple.object)
            unknown = [end for end in ends if isinstance(end, Variable) and end.name not in table.columns]
            return len(unknown), isinstance(triple.predicate, Variable)

        return min(triples, key=open_ends)

    def _filtered(self, table: SolutionTable, filters: list[Any], last: bool) -> tuple[SolutionTable, list[Any]]:
        """Apply the conditions whose variables are all there, or all that are left."""
        left = []
        for condition in filters:
            names = set(names_in(condition))
            if not last and not names <= set(table.columns):
                left.append(condition)
                continue
            if table.rows:
                read = [name for name in table.visible if name in names]
                test = functools.partial(self._conditions.holds, condition)
                table = table.taken(np.flatnonzero(self._each(table, read, test)))
        return table, left

    def _each(self, table: SolutionTable, names: Sequence[str], compute: Callable[[Mapping[str, Bound]], Any]) -> Any:
        """Compute something for each solution, once for equal values of the variables that it reads."""
        if not names:
            return np.array([compute({})] * table.rows)
        rows = np.stack([table.columns[name] for name in names], axis=1)
        each, which = np.unique(rows, axis=0, return_inverse=True)
        columns = [self.bound(each[:, place]) for place in range(len(names))]
        values = [
            compute({name: value for name, value in zip(names, row, strict=True) if value is not None})
            for row in zip(*columns, strict=True)
        ]
        return np.array(values)[which.reshape(-1)]

    def _has_solution(self, group: Group, row: Mapping[str, Bound]) -> bool:
        columns = {}
        for name, value in row.items():
            number = int(self._store.numbers([EntityId(str(value.value))])[0]) if value.kind == "node" else None
            columns[name] = np.array([self.code(value) if number is None else number])
        return self.solve(group, SolutionTable(columns, 1)).rows > 0

    def _joined(self, element: Element, table: SolutionTable) -> SolutionTable:
        match element:
            case TriplePattern():
                return self._triple(element, table)
            case Group():
                return self.solve(element, table)
            case Union(groups):
                return stacked([self.solve(group, table) for group in groups])
            case Optional(group):
                marked = table.with_columns({"\0row": np.arange(table.rows)})
                found = self.solve(group, marked)
                kept = np.ones(table.rows, np.bool_)
                kept[found.column("\0row")] = False
                return stacked([found, marked.taken(np.flatnonzero(kept))])
            case Minus(group):
                shared = [name for name in dict.fromkeys(variables(group)) if name in table.columns]
                if not shared:
                    return table
                marked = table.with_columns({"\0row": np.arange(table.rows)})
                kept = np.ones(table.rows, np.bool_)
                kept[self.solve(group, marked).column("\0row")] = False
                return table.taken(np.flatnonzero(kept))
            case Bind(expression, variable):
                check(expression)
                if variable.name in table.columns:
                    raise PathQueryInvalid(f"BIND gives ?{variable.name} a value, which has one already")
                read = [name for name in table.visible if name in set(names_in(expression))]
                codes = self._each(table, read, lambda row: self._code_of(self._conditions.bound(expression, row)))
                return table.with_columns({variable.name: np.asarray(codes, np.int64)})
            case Values(names, rows):
                return self._values(names, rows, table)
        raise PathQueryInvalid(f"{element} cannot stand in a pattern")

    def _code_of(self, bound: Bound | None) -> int:
        if bound is None:
            return UNBOUND
        if bound.kind == "node":
            return int(self._store.numbers([EntityId(str(bound.value))])[0])
        return self.code(bound)

    def _values(
        self, names: Sequence[Variable], rows: Iterable[Sequence[NameTerm | LiteralTerm | None]], table: SolutionTable
    ) -> SolutionTable:
        tables = []
        for row in rows:
            terms = zip(names, row, strict=True)
            known = [(name.name, self._constant(term)) for name, term in terms if term is not None]
            if any(code == UNBOUND for _, code in known):
                continue
            part = table
            for name, code in known:
                part = self._equal(part, name, np.full(part.rows, code))
            tables.append(part)
        return stacked(tables) if tables else table.taken(np.arange(0))

    def _equal(self, table: SolutionTable, name: str, codes: Int64) -> SolutionTable:
        """Keep the solutions in which a variable has a value, or gets it."""
        if name not in table.columns:
            return table.with_columns({name: codes})
        column = table.columns[name]
        kept = np.flatnonzero((column == codes) | (column == UNBOUND))
        return table.taken(kept).with_columns({name: codes[kept]})

    # Triples

    def _triple(self, triple: TriplePattern, table: SolutionTable) -> SolutionTable:
        """Return the solutions with one more triple."""
        ends = (triple.subject, triple.object)
        known = self._known(triple, table)
        for column, end in zip(known, ends, strict=True):
            # After an OPTIONAL a variable may have a value in some of the solutions only.
            if column is not None and isinstance(end, Variable) and (column == UNBOUND).any():
                some = table.taken(np.flatnonzero(column != UNBOUND))
                none = table.taken(np.flatnonzero(column == UNBOUND))
                del none.columns[end.name]
                return stacked([self._triple(triple, part) for part in (some, none) if part.rows] or [some])
        predicate = triple.predicate
        parts = []
        if isinstance(predicate, Link):
            is_type = self._names.is_type(predicate.name)
            relation = self._names.relation_or_none(predicate.name)
            properties = [label for label in self._names.labels(predicate.name) if label in self._properties][:1]
            if is_type:
                parts.append(self._types(triple, table, known))
            elif relation is None and not properties:
                if next(self._names.labels(predicate.name)) != _LABEL.text and str(predicate.name) != "rdfs:label":
                    labels = [*self._store.relations, *sorted(self._properties)]
                    shown = predicate.name.text if predicate.name.prefix in (None, "") else str(predicate.name)
                    raise RelationNotFound(shown, self._store.name, labels)
                parts.append(self._property(triple, table, known, None))
            if relation is not None:
                parts.append(self._edges(triple, table, known, np.array([relation])))
            if properties and not triple.annotations:
                parts.append(self._property(triple, table, known, properties[0]))
        elif isinstance(predicate, Variable):
            parts.append(self._edges(triple, table, known, None))
            if not triple.annotations:
                for label in sorted(self._properties):
                    code = self.code(Bound("relation", label))
                    named = self._equal(table, predicate.name, np.full(table.rows, code))
                    if named.rows:
                        parts.append(self._property(triple, named, self._known(triple, named), label))
        else:
            parts.append(self._expression(triple, predicate, table, known))
        return parts[0] if len(parts) == 1 else stacked(parts)

    def _known(self, triple: TriplePattern, table: SolutionTable) -> list[Int64 | None]:
        """Return what subject and object stand for in each solution; None for a variable without values."""
        return [
            table.columns.get(end.name) if isinstance(end, Variable) else np.full(table.rows, self._constant(end))
            for end in (triple.subject, triple.object)
        ]

    def _ends(
        self, triple: TriplePattern, table: SolutionTable, row: Int64, subject: Int64, object_: Int64
    ) -> tuple[SolutionTable, Int64]:
        """Give both ends their values in the rows of a table; return which of the pairs agree with it, too."""
        kept = np.arange(len(row))
        for end, codes in ((triple.subject, subject), (triple.object, object_)):
            if isinstance(end, Variable):
                if end.name in table.columns:
                    kept = kept[table.columns[end.name][row[kept]] == codes[kept]]
            else:
                kept = kept[codes[kept] == self._constant(end)]
        if isinstance(triple.subject, Variable) and triple.subject == triple.object:
            kept = kept[subject[kept] == object_[kept]]
        found = table.taken(row[kept])
        for end, codes in ((triple.subject, subject), (triple.object, object_)):
            if isinstance(end, Variable):
                found.columns[end.name] = codes[kept]
        return found, kept

    def _edges(
        self, triple: TriplePattern, table: SolutionTable, known: Sequence[Int64 | None], relations: Int64 | None
    ) -> SolutionTable:
        """Join with edges."""
        backward = known[0] is None and known[1] is not None
        column = known[1] if backward else known[0]
        nodes = self.every_node() if column is None else distinct(column[column >= 0])
        batch = self._store.edges(nodes, Direction.IN if backward else Direction.OUT, relations)
        if column is None:
            pair_row = np.arange(table.rows).repeat(len(batch)) if table.rows != 1 else np.zeros(len(batch), np.int64)
            edge_row = np.tile(np.arange(len(batch)), table.rows)
        else:
            near = nodes[batch.origin]
            first = np.searchsorted(near, column)
            counts = np.searchsorted(near, column, "right") - first
            pair_row = np.arange(table.rows).repeat(counts)
            edge_row = np.arange(len(pair_row)) + (first - counts.cumsum() + counts).repeat(counts)
        head, tail = batch.head.astype(np.int64)[edge_row], batch.tail.astype(np.int64)[edge_row]
        found, kept = self._ends(triple, table, pair_row, head, tail)
        found = found.with_columns({"\0head": head[kept], "\0tail": tail[kept]})
        edge = batch.edge[edge_row[kept]]
        relation = batch.relation[edge_row[kept]].astype(np.int64)
        if isinstance(triple.predicate, Variable) and found.rows:
            each, which = np.unique(relation, return_inverse=True)
            codes = [self.code(Bound("relation", self._store.relations[number])) for number in each.tolist()]
            found = found.with_columns({"\0edge": edge, "\0relation": relation})
            found = self._equal(found, triple.predicate.name, np.array(codes, np.int64)[which.reshape(-1)])
            edge, relation = found.columns.pop("\0edge"), found.columns.pop("\0relation")
        elif isinstance(triple.predicate, Variable):
            found = found.with_columns({triple.predicate.name: relation})
        for name, term in triple.annotations:
            found, edge, relation = self._annotated(found, edge, relation, name, term)
        place = sum(name.startswith("\0edge") for name in found.columns)
        evidence = {"edge": edge, "relation": relation}
        evidence |= {end: found.columns.pop(f"\0{end}") for end in ("head", "tail")}
        return found.with_columns({f"\0{name}{place}": column for name, column in evidence.items()})

    def _annotated(
        self, table: SolutionTable, edge: Int64, relation: Any, name: NameTerm, term: Term
    ) -> tuple[SolutionTable, Int64, Any]:
        """Join with a property of the edge of each solution."""
        each, which = np.unique(edge, return_inverse=True)
        labels = list(self._names.labels(name))
        codes = []
        for properties in self._store.edge_properties(each):
            value = next((properties[label] for label in labels if label in properties), None)
            codes.append(UNBOUND if value is None else self.code(Bound("literal", value, _datatype(value))))
        column = np.array(codes, np.int64)[which.reshape(-1)] if codes else edge
        wanted = column != UNBOUND
        if isinstance(term, Variable):
            if term.name in table.columns:
                wanted &= table.columns[term.name] == column
        else:
            wanted &= column == self._constant(term)
        kept = np.flatnonzero(wanted)
        found = table.taken(kept)
        if isinstance(term, Variable):
            found = found.with_columns({term.name: column[kept]})
        return found, edge[kept], relation[kept]

    def _expression(
        self, triple: TriplePattern, path: PathExpression, table: SolutionTable, known: Sequence[Int64 | None]
    ) -> SolutionTable:
        """Join with the pairs of nodes that an expression connects."""
        if path not in self._expressions:
            self._expressions[path] = self._matches(path)
        moves = self._expressions[path]
        backward = known[0] is None and known[1] is not None
        column = known[1] if backward else known[0]
        nodes = self.every_node() if column is None else distinct(column[column >= 0])
        steps = moves.backward(nodes) if backward else moves.forward(nodes)
        near = nodes[steps.origin]
        if column is None:
            row = np.arange(table.rows).repeat(len(near))
            step = np.tile(np.arange(len(near)), table.rows)
        else:
            first, last = np.searchsorted(near, column), np.searchsorted(near, column, "right")
            counts = last - first
            row = np.arange(table.rows).repeat(counts)
            step = np.arange(len(row)) + (first - counts.cumsum() + counts).repeat(counts)
        one, other = near[step], steps.far[step]
        return self._ends(triple, table, row, *((other, one) if backward else (one, other)))[0]

    def _types(self, triple: TriplePattern, table: SolutionTable, known: Sequence[Int64 | None]) -> SolutionTable:
        """Join with the types of nodes."""
        wanted = self._names.types(triple.object) if isinstance(triple.object, NameTerm) else None
        return self._facts(triple, table, known[0], lambda nodes: self._type_codes(nodes, wanted), wanted is not None)

    def _type_codes(self, nodes: Int64, wanted: frozenset[str] | None) -> list[Sequence[int]]:
        more: dict[int, list[str]] = {}
        for name, members in self._more_types.items():
            for node in np.intersect1d(members, nodes).tolist():
                more.setdefault(node, []).append(name)
        found: list[Sequence[int]] = []
        for node, kind in zip(nodes.tolist(), self._column(nodes, "type"), strict=True):
            kinds = [each for each in (kind, *more.get(node, ())) if each]
            if wanted is not None:
                found.append((0,) if wanted.intersection(kinds) else ())
            else:
                found.append([self.code(Bound("relation", each)) for each in kinds])
        return found

    def _property(
        self, triple: TriplePattern, table: SolutionTable, known: Sequence[Int64 | None], label: str | None
    ) -> SolutionTable:
        """Join with a property of nodes, or with their names."""
        datatype = "date" if label in self._dates else ""

        def codes(nodes: Int64) -> list[Sequence[int]]:
            from byokg.graph.rdf.literals import unlisted

            values = self._column(nodes, "name" if label is None else label, of_node=label is None)
            lists = self._column(nodes, f"{label}{ALL_VALUES}")
            return [
                [
                    self.code(Bound("literal", each.value, each.kind if each.kind == "date" else ""))
                    for each in unlisted(several)
                ]
                if isinstance(several, str)
                else ()
                if value is None
                else (self.code(Bound("literal", value, datatype)),)
                for value, several in zip(values, lists, strict=True)
            ]

        return self._facts(triple, table, known[0], codes, False)

    def _facts(
        self,
        triple: TriplePattern,
        table: SolutionTable,
        subjects: Int64 | None,
        codes: Callable[[Int64], list[Sequence[int]]],
        constant: bool,
    ) -> SolutionTable:
        """Join with what is said of nodes; `constant` says that the object has been compared already."""
        nodes = self.every_node() if subjects is None else distinct(subjects[subjects >= 0])
        said = codes(nodes)
        counts = np.array([len(each) for each in said], np.int64)
        values = np.array([code for each in said for code in each], np.int64)
        if subjects is None:
            one = np.arange(len(nodes)).repeat(counts)
            row, fact = np.arange(table.rows).repeat(len(one)), np.tile(np.arange(len(one)), table.rows)
            subject, object_ = nodes[one][fact], values[fact]
        else:
            place = np.searchsorted(nodes, subjects)
            place[subjects < 0] = 0
            times = np.where(subjects >= 0, counts[place] if len(counts) else 0, 0)
            row = np.arange(table.rows).repeat(times)
            first = (counts.cumsum() - counts)[place] if len(counts) else np.zeros(len(place), np.int64)
            fact = np.arange(len(row)) + (first - times.cumsum() + times).repeat(times)
            subject, object_ = subjects[row], values[fact]
        if constant:
            found = table.taken(row)
            return found.with_columns({triple.subject.name: subject}) if isinstance(triple.subject, Variable) else found
        return self._ends(triple, table, row, subject, object_)[0]

    def _column(self, nodes: Int64, label: str, of_node: bool = True) -> list[Any]:
        """Return the name, type or a property of nodes; None where a node has none."""
        if isinstance(self._store, ColumnarGraph):
            own, properties = self._store.node_columns
            if not of_node or label not in ("name", "type"):
                return properties.of_property(label, nodes)
            if label in own.schema.names:
                return list(own.column(label).take(pa.array(nodes)).to_pylist())
            return list(self._store.ids(nodes)) if label == "name" else [None] * len(nodes)
        found = self._store.nodes(self._store.ids(nodes))
        if of_node and label in ("name", "type"):
            return [getattr(node, label) or None for node in found]
        return [node.properties.get(label) for node in found]

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
                found.append(Triple(head, relation, tail, edge, properties))
        return found


def _datatype(value: Value) -> str:
    is_date = isinstance(value, str) and len(value) == 10 and value[4:5] == value[7:8] == "-" and value[:4].isdigit()
    return "date" if is_date else ""
