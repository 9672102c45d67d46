"""Graph patterns on any store: tables of solutions, joined a triple at a time.

A solution is a row of numbers: a node's own number, a negative one for relations and literals, `UNBOUND` for none. A
triple of a pattern is an edge or, where the object is no node, a property of a node; `a` asks for a node's type, and
`rdfs:label` for its name where the graph has no such property.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from byokg.errors import EntityNotFound, PathQueryInvalid, QueryTooLarge, RelationNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.int_sets import distinct, spread
from byokg.graph.pathql.conditions import Conditions, check, check_literal
from byokg.graph.pathql.moves import Bound, Int64, Moves
from byokg.graph.pathql.names import Names
from byokg.graph.pathql.query import (
    Bind,
    Element,
    Filter,
    Group,
    Inverse,
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
    inside,
    mentioned,
    seedable,
    variables,
)
from byokg.graph.store import ALL_VALUES, Direction, GraphStore
from byokg.types import EntityId, Triple, Value

UNBOUND = -1
_MOST_ROWS = 3_000_000
_TOO_MANY = f"a pattern has more than {_MOST_ROWS:,} solutions on the way"

_LABEL = NameTerm("http://www.w3.org/2000/01/rdf-schema#label")


class SolutionTable:
    """S solutions: a column (S,) for each variable. Columns that begin with a zero byte hold edges, for evidence."""

    def __init__(self, columns: Mapping[str, Int64], rows: int) -> None:
        self.columns = dict(columns)
        self.rows = rows
        if rows > _MOST_ROWS:
            raise QueryTooLarge(_TOO_MANY)

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


def _alike(table: SolutionTable, names: Sequence[str]) -> list[Int64]:
    """Return the rows of a table in groups, in each of which the same variables have values."""
    if not names or not table.rows:
        return [np.arange(table.rows)]
    missing = np.stack([table.columns[name] == UNBOUND for name in names], axis=1)
    if not missing.any():
        return [np.arange(table.rows)]
    kinds, which = np.unique(missing, axis=0, return_inverse=True)
    return [np.flatnonzero(which.reshape(-1) == kind) for kind in range(len(kinds))]


def _agreeing(one: SolutionTable, other: SolutionTable) -> Iterator[tuple[Int64, Int64, bool]]:
    """Yield the pairs of rows of two tables that differ in no variable, and whether they have a value in common."""
    shared = [name for name in other.visible if name in one.columns]
    for some in _alike(one, shared):
        for more in _alike(other, shared):
            left, right = one.taken(some), other.taken(more)
            names = [
                name for name in shared if not any((side.columns[name] == UNBOUND).any() for side in (left, right))
            ]
            keys = np.zeros(left.rows + right.rows, np.int64)
            if names:
                rows = np.stack([np.concatenate((left.columns[name], right.columns[name])) for name in names], axis=1)
                keys = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
            asked, held = keys[: left.rows], keys[left.rows :]
            order = np.argsort(held, kind="stable")
            first = np.searchsorted(held[order], asked)
            row, place = _spread(first, np.searchsorted(held[order], asked, "right") - first)
            yield some[row], more[order[place]], bool(names)


def _spread(first: Int64, counts: Int64) -> tuple[Int64, Int64]:
    """Return for each member of some ranges the position of its range, and the member. Raises `QueryTooLarge`."""
    if int(counts.sum()) > _MOST_ROWS:
        raise QueryTooLarge(_TOO_MANY)
    return spread(first.astype(np.int64), counts.astype(np.int64))


def _crossed(rows: int, members: int) -> tuple[Int64, Int64]:
    """Return all pairs of some rows and some members. Raises `QueryTooLarge`."""
    return _spread(np.zeros(rows, np.int64), np.full(rows, members))


def _merged(one: SolutionTable, other: SolutionTable) -> SolutionTable:
    """Return solutions that agree, row by row, as one; the edges of the second come after those of the first."""
    place = sum(name.startswith("\0edge") for name in one.columns)
    columns = {}
    for name, column in other.columns.items():
        if name.startswith("\0"):
            kind = name.rstrip("0123456789")
            columns[f"{kind}{int(name[len(kind) :]) + place}"] = column
        else:
            known = one.columns.get(name)
            columns[name] = column if known is None else np.where(known == UNBOUND, column, known)
    return one.with_columns(columns)


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


class Patterns:
    """Solves the patterns of one query on a graph.

    A nested group, a branch of UNION and MINUS are solved by themselves, as in SPARQL: their conditions read their own
    variables only. Values that are known already only narrow down what is looked at.
    """

    def __init__(
        self,
        store: GraphStore,
        names: Names,
        matches: Callable[[PathExpression], Moves],
        types: Mapping[str, Int64],
        both_roles: frozenset[str],
    ) -> None:
        """Read a graph.

        Args:
            store: the graph.
            names: what names stand for.
            matches: gives the steps that are whole matches of an expression.
            types: nodes that have a type besides those that the store says.
            both_roles: variables that stand for a relation or type in one place, and for any term in another.
        """
        self._store, self._names, self._matches, self._more_types = store, names, matches, types
        self._both_roles = both_roles
        self._terms: list[Bound] = []
        self._codes: dict[tuple[str, Value], int] = {}
        self._placed: dict[str, int] = {}
        self._expressions: dict[PathExpression, Moves] = {}
        self._everything: Int64 | None = None
        schema = store.schema()
        self._dates = {
            detail.name
            for details in schema.node_property_details.values()
            for detail in details
            if detail.kind == "date"
        }
        self._properties = {name for names in schema.node_properties.values() for name in names}
        self._conditions = Conditions(lambda name: names.term(name, self._properties)[1], names.iri, self._has_solution)

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
                self._labels(predicate)
        elif not isinstance(predicate, Variable):
            if triple.annotations:
                raise PathQueryInvalid(
                    "properties are said about edges of one relation, or of a variable: ?x :r ?y {| :p ?v |}"
                )
            self._pairs_of(predicate)

    # Terms

    def code(self, bound: Bound) -> int:
        """Return the number of a term that is no node, or of a literal."""
        key: tuple[str, Value]
        if bound.kind == "literal":
            key = ("truth" if isinstance(bound.value, bool) else "literal", bound.value)
        else:
            key = ("term", self._conditions.text(bound))
        if key not in self._codes:
            self._codes[key] = -2 - len(self._terms)
            self._terms.append(bound)
        return self._codes[key]

    def _number(self, bound: Bound) -> int:
        """Return the number of the node that a term is; of another term, or a literal, its code."""
        if bound.kind == "literal":
            return self.code(bound)
        text = self._conditions.text(bound)
        if text not in self._placed:
            try:
                self._placed[text] = int(self._store.numbers([EntityId(text)])[0])
            except EntityNotFound:
                self._placed[text] = self.code(bound)
        return self._placed[text]

    def _label_code(self, label: str, variable: str) -> int:
        """Return the number of a relation, property or type that a variable stands for."""
        bound = Bound("relation", label)
        return self._number(bound) if variable in self._both_roles else self.code(bound)

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
        """Return the number of a constant at an end of a triple; `UNBOUND` for a node that is not there."""
        if isinstance(term, LiteralTerm):
            return self.code(Bound("literal", term.value, term.datatype))
        number = self._names.node_or_none(term)
        return UNBOUND if number is None else number

    def _value(self, term: NameTerm | LiteralTerm | None) -> int:
        """Return the number of a constant in VALUES; `UNBOUND` for UNDEF."""
        if term is None:
            return UNBOUND
        if isinstance(term, LiteralTerm):
            return self._constant(term)
        number, bound = self._names.term(term, self._properties)
        return self.code(bound) if number is None else number

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

    def solve(self, group: Group, table: SolutionTable, fixed: frozenset[str] = frozenset()) -> SolutionTable:
        """Return the solutions of a group joined with given ones; it is solved by itself, but for `fixed` variables."""
        known = seedable(group) | fixed
        if known.issuperset(table.columns) and not any((column == UNBOUND).any() for column in table.columns.values()):
            return self._solved(group, table, fixed)
        return stacked(
            [_merged(table.taken(rows), found.taken(its)) for rows, found, its, _ in self._pairs(group, table, fixed)]
        )

    def _pairs(
        self, group: Group, table: SolutionTable, fixed: frozenset[str]
    ) -> Iterator[tuple[Int64, SolutionTable, Int64, bool]]:
        """Yield rows of a table, and solutions of a group, that agree.

        Yields:
            Rows of the table, the solutions, rows of these (as many), and whether they have a value in common.
        """
        known = seedable(group) | fixed
        for some in _alike(table, [name for name in table.visible if name in known]):
            part = table.taken(some)
            given = [name for name in part.visible if name in known and not (part.columns[name] == UNBOUND).any()]
            seeds = SolutionTable({name: part.columns[name] for name in given}, part.rows).distinct()
            found = self._solved(group, seeds, fixed)
            for rows, its, common in _agreeing(part, found):
                yield some[rows], found, its, common

    def _solved(self, group: Group, table: SolutionTable, fixed: frozenset[str]) -> SolutionTable:
        """Return the solutions of a group that agree with some given ones, all of whose values it may read."""
        filters = [element.condition for element in group.elements if isinstance(element, Filter)]
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
        columns = {name: np.array([self._code_of(value)]) for name, value in row.items()}
        return self._solved(group, SolutionTable(columns, 1), frozenset(columns)).rows > 0

    def _joined(self, element: Element, table: SolutionTable, fixed: frozenset[str]) -> SolutionTable:
        match element:
            case TriplePattern():
                return self._triple(element, table)
            case Group():
                return self.solve(element, table, fixed)
            case Union(groups):
                return stacked([self.solve(group, table, fixed) for group in groups])
            case Optional(group):
                return self._lengthened(group, table, fixed)
            case Minus(group):
                kept = np.ones(table.rows, np.bool_)
                for rows, _, _, common in self._pairs(group, table, fixed):
                    if common:
                        kept[rows] = False
                return table.taken(np.flatnonzero(kept))
            case Bind(expression, variable):
                read = [name for name in table.visible if name in set(mentioned(expression))]
                codes = self._each(table, read, lambda row: self._code_of(self._conditions.bound(expression, row)))
                return self._equal(table, variable.name, np.asarray(codes, np.int64))
            case Values(names, rows):
                terms = [[self._value(term) for term in row] for row in rows]
                codes = np.array(terms, np.int64).reshape(len(rows), len(names))
                said = SolutionTable({name.name: codes[:, place] for place, name in enumerate(names)}, len(rows))
                pairs = _agreeing(table, said)
                return stacked([_merged(table.taken(rows), said.taken(its)) for rows, its, _ in pairs])
        raise PathQueryInvalid(f"{element} cannot stand in a pattern")

    def _lengthened(self, group: Group, table: SolutionTable, fixed: frozenset[str]) -> SolutionTable:
        """Join with an OPTIONAL group, whose own conditions read the solution that it lengthens as well."""
        body = Group(tuple(element for element in group.elements if not isinstance(element, Filter)))
        conditions = [element.condition for element in group.elements if isinstance(element, Filter)]
        marked = table.with_columns({"\0row": np.arange(table.rows)})
        found, _ = self._filtered(self.solve(body, marked, fixed), conditions, last=True)
        kept = np.ones(table.rows, np.bool_)
        kept[found.columns.pop("\0row", np.empty(0, np.int64))] = False
        return stacked([found, table.taken(np.flatnonzero(kept))])

    def _code_of(self, bound: Bound | None) -> int:
        if bound is None:
            return UNBOUND
        return self._number(bound) if bound.kind == "node" else self.code(bound)

    def _equal(self, table: SolutionTable, name: str, codes: Int64) -> SolutionTable:
        """Keep the solutions in which a variable has a value, or gets it."""
        if name not in table.columns:
            return table.with_columns({name: codes})
        column = table.columns[name]
        kept = np.flatnonzero((column == codes) | (column == UNBOUND) | (codes == UNBOUND))
        return table.taken(kept).with_columns({name: np.where(column == UNBOUND, codes, column)[kept]})

    # Triples

    def _triple(self, triple: TriplePattern, table: SolutionTable) -> SolutionTable:
        """Return the solutions with one more triple."""
        ends = (triple.subject, triple.object)
        if table.rows == 0:
            none = np.empty(0, np.int64)
            return table.with_columns({name: none for name in variables(triple) if name not in table.columns})
        known = self._known(triple, table)
        for column, end in zip(known, ends, strict=True):
            # After an OPTIONAL a variable may have a value in some of the solutions only.
            if column is not None and isinstance(end, Variable) and (column == UNBOUND).any():
                some = table.taken(np.flatnonzero(column != UNBOUND))
                others = table.taken(np.flatnonzero(column == UNBOUND))
                del others.columns[end.name]
                return stacked([self._triple(triple, part) for part in (some, others) if part.rows])
        predicate = triple.predicate
        parts = []
        if isinstance(predicate, Link):
            if self._names.is_type(predicate.name):
                relation = self._names.relation_or_none(predicate.name)
                properties: list[str | None] = []
                if not triple.annotations:
                    parts.append(self._types(triple, table, known))
            else:
                relation, properties = self._labels(predicate)
            if relation is not None:
                parts.append(self._edges(triple, table, known, np.array([relation])))
            if not triple.annotations:
                parts += [self._property(triple, table, known, label) for label in properties]
        elif isinstance(predicate, Variable):
            parts.append(self._edges(triple, table, known, self._relations_of(predicate, table)))
            if not triple.annotations:
                for label in sorted(self._properties):
                    code = self._label_code(label, predicate.name)
                    named = self._equal(table, predicate.name, np.full(table.rows, code))
                    if named.rows:
                        parts.append(self._property(triple, named, self._known(triple, named), label))
        elif isinstance(predicate, Inverse) and isinstance(predicate.path, Link):
            turned = TriplePattern(triple.object, predicate.path, triple.subject, triple.annotations)
            return self._triple(turned, table)
        else:
            parts.append(self._expression(triple, predicate, table, known))
        return stacked(parts)

    def _labels(self, predicate: Link) -> tuple[int | None, list[str | None]]:
        """Return the relation, and the property, that a name stands for; None for the names of nodes.

        Raises `RelationNotFound`.
        """
        relation = self._names.relation_or_none(predicate.name)
        properties: list[str | None] = [
            label for label in self._names.labels(predicate.name) if label in self._properties
        ]
        if relation is None and not properties:
            if next(self._names.labels(predicate.name)) != _LABEL.text and str(predicate.name) != "rdfs:label":
                labels = [*self._store.relations, *sorted(self._properties)]
                shown = predicate.name.text if predicate.name.prefix in (None, "") else str(predicate.name)
                raise RelationNotFound(shown, self._store.name, labels)
            properties = [None]
        return relation, properties[:1]

    def _relations_of(self, predicate: Variable, table: SolutionTable) -> Int64 | None:
        """Return the relations that a variable may stand for; None for all."""
        column = table.columns.get(predicate.name)
        if column is None or (column == UNBOUND).any():
            return None
        texts = {self._conditions.text(bound) for bound in self.bound(np.unique(column)) if bound is not None}
        return np.array([place for place, text in enumerate(self._relation_texts) if text in texts], np.int64)

    @functools.cached_property
    def _relation_texts(self) -> list[str]:
        """Return the term of each relation."""
        return [self._names.iri(label) for label in self._store.relations]

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
            pair_row, edge_row = _crossed(table.rows, len(batch))
        else:
            near = nodes[batch.origin]
            first = np.searchsorted(near, column)
            pair_row, edge_row = _spread(first, np.searchsorted(near, column, "right") - first)
        head, tail = batch.head.astype(np.int64)[edge_row], batch.tail.astype(np.int64)[edge_row]
        found, kept = self._ends(triple, table, pair_row, head, tail)
        found = found.with_columns({"\0head": head[kept], "\0tail": tail[kept]})
        edge = batch.edge[edge_row[kept]]
        relation = batch.relation[edge_row[kept]].astype(np.int64)
        if isinstance(triple.predicate, Variable):
            name = triple.predicate.name
            each, which = np.unique(relation, return_inverse=True)
            codes = [self._label_code(self._store.relations[number], name) for number in each.tolist()]
            found = found.with_columns({"\0edge": edge, "\0relation": relation})
            found = self._equal(found, name, np.array(codes, np.int64)[which.reshape(-1)])
            edge, relation = found.columns.pop("\0edge"), found.columns.pop("\0relation")
        for label, term in triple.annotations:
            found, edge, relation = self._annotated(found, edge, relation, label, term)
        place = sum(name.startswith("\0edge") for name in found.columns)
        evidence = {"edge": edge, "relation": relation}
        if batch.undirected is not None:
            undirected = np.isin(edge, batch.edge[batch.undirected])
            evidence["undirected"] = undirected.astype(np.int64)
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
                wanted &= (table.columns[term.name] == column) | (table.columns[term.name] == UNBOUND)
        else:
            wanted &= column == self._constant(term)
        kept = np.flatnonzero(wanted)
        found = table.taken(kept)
        if isinstance(term, Variable):
            found = found.with_columns({term.name: column[kept]})
        return found, edge[kept], relation[kept]

    def _pairs_of(self, path: PathExpression) -> Moves:
        """Return the pairs of nodes that an expression connects, as steps."""
        if path not in self._expressions:
            self._expressions[path] = self._matches(path)
        return self._expressions[path]

    def _expression(
        self, triple: TriplePattern, path: PathExpression, table: SolutionTable, known: Sequence[Int64 | None]
    ) -> SolutionTable:
        """Join with the pairs of nodes that an expression connects."""
        moves = self._pairs_of(path)
        backward = known[0] is None and known[1] is not None
        column = known[1] if backward else known[0]
        nodes = self.every_node() if column is None else distinct(column[column >= 0])
        steps = moves.backward(nodes) if backward else moves.forward(nodes)
        near = nodes[steps.origin]
        if column is None:
            row, step = _crossed(table.rows, len(near))
        else:
            first = np.searchsorted(near, column)
            row, step = _spread(first, np.searchsorted(near, column, "right") - first)
        one, other = near[step], steps.far[step]
        return self._ends(triple, table, row, *((other, one) if backward else (one, other)))[0]

    def _types(self, triple: TriplePattern, table: SolutionTable, known: Sequence[Int64 | None]) -> SolutionTable:
        """Join with the types of nodes."""
        wanted = self._names.types(triple.object) if isinstance(triple.object, NameTerm) else None
        variable = triple.object.name if isinstance(triple.object, Variable) else ""
        return self._facts(
            triple, table, known[0], lambda nodes: self._type_codes(nodes, wanted, variable), wanted is not None
        )

    def _type_codes(self, nodes: Int64, wanted: frozenset[str] | None, variable: str) -> list[Sequence[int]]:
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
                found.append([self._label_code(each, variable) for each in kinds])
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
            row, fact = _crossed(table.rows, len(one))
            subject, object_ = nodes[one][fact], values[fact]
        else:
            place = np.searchsorted(nodes, subjects)
            place[subjects < 0] = 0
            times = np.where(subjects >= 0, counts[place] if len(counts) else 0, 0)
            first = (counts.cumsum() - counts)[place] if len(counts) else np.zeros(len(place), np.int64)
            row, fact = _spread(first, times)
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
                undirected = table.columns.get(f"\0undirected{place}")
                both_ways = undirected is not None and bool(undirected[row])
                found.append(Triple(head, relation, tail, edge, properties, both_ways))
        return found


def _datatype(value: Value) -> str:
    is_date = isinstance(value, str) and len(value) == 10 and value[4:5] == value[7:8] == "-" and value[:4].isdigit()
    return "date" if is_date else ""
