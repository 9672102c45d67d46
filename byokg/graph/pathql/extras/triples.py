"""Triples of graph patterns on any store: joins of a table of solutions with a graph.

A triple of a pattern is an edge or, if the object is no node, a property of a node; `a` matches a node's type, and
`rdfs:label` its name if the graph has no such property. A solution is a row of numbers: a node's own number, a negative
one for relations and literals, `UNBOUND` for none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.errors import EntityNotFound, QueryTooLarge, RelationNotFound
from byokg.graph.pathql.expander import Bound, Expander
from byokg.graph.pathql.query import (
    Inverse,
    Link,
    LiteralTerm,
    NameTerm,
    PathExpression,
    Term,
    TriplePattern,
    Variable,
    variables,
)
from byokg.graph.pathql.result import NameResolver
from byokg.graph.sorted_ids import distinct, spread
from byokg.graph.store import ALL_VALUES, Direction, GraphStore
from byokg.graph.traversal import expand
from byokg.types import EntityId, Value

UNBOUND = -1
_MOST_ROWS = 3_000_000
_TOO_MANY = f"a pattern has more than {_MOST_ROWS:,} solutions on the way"


class SolutionTable:
    """S solutions: a column (S,) for each variable. Columns that begin with a zero byte hold edges, for evidence."""

    def __init__(self, columns: Mapping[str, Int64], rows: int) -> None:
        self.columns = dict(columns)
        self.rows = rows
        if rows > _MOST_ROWS:
            raise QueryTooLarge(_TOO_MANY)

    def take(self, rows: npt.NDArray[Any]) -> SolutionTable:
        """Return some solutions."""
        return SolutionTable({name: column[rows] for name, column in self.columns.items()}, len(rows))

    def column(self, name: str) -> Int64:
        """Return the value of a variable in each solution."""
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
            return self.take(np.arange(min(self.rows, 1)))
        stacked = np.stack([self.columns[name] for name in names], axis=1)
        first = np.unique(stacked, axis=0, return_index=True)[1]
        return self.take(np.sort(first))


def stack(tables: Sequence[SolutionTable]) -> SolutionTable:
    """Return the solutions of several tables, one after the other."""
    names = dict.fromkeys(name for table in tables for name in table.columns)
    return SolutionTable(
        {name: np.concatenate([table.column(name) for table in tables]) for name in names},
        sum(table.rows for table in tables),
    )


def alike(table: SolutionTable, names: Sequence[str]) -> list[Int64]:
    """Return the rows of a table in groups, in each of which the same variables have values."""
    if not names or not table.rows:
        return [np.arange(table.rows)]
    missing = np.stack([table.columns[name] == UNBOUND for name in names], axis=1)
    if not missing.any():
        return [np.arange(table.rows)]
    kinds, which = np.unique(missing, axis=0, return_inverse=True)
    return [np.flatnonzero(which.reshape(-1) == kind) for kind in range(len(kinds))]


def agreeing(one: SolutionTable, other: SolutionTable) -> Iterator[tuple[Int64, Int64, bool]]:
    """Yield the pairs of rows of two tables that differ in no variable, and whether they have a value in common."""
    shared = [name for name in other.visible if name in one.columns]
    for some in alike(one, shared):
        for more in alike(other, shared):
            left, right = one.take(some), other.take(more)
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
            row, place = ranges(first, np.searchsorted(held[order], asked, "right") - first)
            yield some[row], more[order[place]], bool(names)


def ranges(first: Int64, counts: Int64) -> tuple[Int64, Int64]:
    """Return for each member of some ranges the position of its range, and the member. Raises `QueryTooLarge`."""
    if int(counts.sum()) > _MOST_ROWS:
        raise QueryTooLarge(_TOO_MANY)
    return spread(first.astype(np.int64), counts.astype(np.int64))


def crossed(rows: int, members: int) -> tuple[Int64, Int64]:
    """Return all pairs of some rows and some members. Raises `QueryTooLarge`."""
    return ranges(np.zeros(rows, np.int64), np.full(rows, members))


def merge(one: SolutionTable, other: SolutionTable) -> SolutionTable:
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


def equal(table: SolutionTable, name: str, codes: Int64) -> SolutionTable:
    """Keep the solutions in which a variable has a value, or gets it."""
    if name not in table.columns:
        return table.with_columns({name: codes})
    column = table.columns[name]
    kept = np.flatnonzero((column == codes) | (column == UNBOUND) | (codes == UNBOUND))
    return table.take(kept).with_columns({name: np.where(column == UNBOUND, codes, column)[kept]})


_LABEL = NameTerm("http://www.w3.org/2000/01/rdf-schema#label")


def property_labels(store: GraphStore) -> frozenset[str]:
    """Return the labels of the properties of nodes; one that lists all values of another is no property of its own."""
    labels = frozenset(name for names in store.schema().node_properties.values() for name in names)
    return frozenset(label for label in labels if label.removesuffix(ALL_VALUES) not in labels - {label})


class TermCodes:
    """Numbers of the terms and literals in the patterns of one query."""

    def __init__(
        self, store: GraphStore, names: NameResolver, properties: Collection[str], both_roles: frozenset[str]
    ) -> None:
        """Begin with none; see `PatternSolver`."""
        self._store, self._names, self._properties, self._both_roles = store, names, properties, both_roles
        self._terms: list[Bound] = []
        self._codes: dict[tuple[str, Value], int] = {}
        self._placed: dict[str, int] = {}
        self._everything: Int64 | None = None

    def text(self, bound: Bound) -> str:
        """Return the text of a term, which is the same for equal ones."""
        return self._names.iri(str(bound.value)) if bound.kind == "relation" else str(bound.value)

    def code(self, bound: Bound) -> int:
        """Return the number of a term that is no node, or of a literal."""
        key: tuple[str, Value]
        if bound.kind == "literal":
            key = ("truth" if isinstance(bound.value, bool) else "literal", bound.value)
        else:
            key = ("term", self.text(bound))
        if key not in self._codes:
            self._codes[key] = -2 - len(self._terms)
            self._terms.append(bound)
        return self._codes[key]

    def number(self, bound: Bound) -> int:
        """Return the number of the node that a term is; of another term, or a literal, its code."""
        if bound.kind == "literal":
            return self.code(bound)
        text = self.text(bound)
        if text not in self._placed:
            try:
                self._placed[text] = int(self._store.numbers([EntityId(text)])[0])
            except EntityNotFound:
                self._placed[text] = self.code(bound)
        return self._placed[text]

    def label_code(self, label: str, variable: str) -> int:
        """Return the number of a relation, property or type that a variable stands for."""
        bound = Bound("relation", label)
        return self.number(bound) if variable in self._both_roles else self.code(bound)

    def bound(self, codes: Int64) -> list[Bound | None]:
        """Return the values of numbers; None for unbound ones."""
        found: list[Bound | None] = [None] * len(codes)
        nodes = np.flatnonzero(codes >= 0)
        for place, entity in zip(nodes.tolist(), self._store.ids(codes[nodes]), strict=True):
            found[place] = Bound("node", entity)
        for place in np.flatnonzero(codes < UNBOUND).tolist():
            found[place] = self._terms[-2 - int(codes[place])]
        return found

    def constant(self, term: NameTerm | LiteralTerm) -> int:
        """Return the number of a constant at an end of a triple; `UNBOUND` for a node that is not there."""
        if isinstance(term, LiteralTerm):
            return self.code(Bound("literal", term.value, term.datatype))
        number = self._names.node_or_none(term)
        return UNBOUND if number is None else number

    def value(self, term: NameTerm | LiteralTerm | None) -> int:
        """Return the number of a constant in VALUES; `UNBOUND` for UNDEF."""
        if term is None:
            return UNBOUND
        if isinstance(term, LiteralTerm):
            return self.constant(term)
        number, bound = self._names.term(term, self._properties)
        return self.code(bound) if number is None else number

    def every_node(self) -> Int64:
        """Return the numbers of all nodes."""
        if self._everything is None:
            self._everything = self._store.every_node().astype(np.int64)
        return self._everything

    def code_of(self, bound: Bound | None) -> int:
        """Return the number of a computed value; `UNBOUND` for none."""
        if bound is None:
            return UNBOUND
        return self.number(bound) if bound.kind == "node" else self.code(bound)


class TripleJoiner:
    """Joins solutions with edges, properties and types of nodes, one triple of a pattern at a time."""

    def __init__(
        self,
        store: GraphStore,
        names: NameResolver,
        codes: TermCodes,
        matches: Callable[[PathExpression], Expander],
        types: Mapping[str, Int64],
    ) -> None:
        """Read a graph; see `PatternSolver`."""
        self._store, self._names, self._codes, self._matches, self._more_types = store, names, codes, matches, types
        self._expressions: dict[PathExpression, Expander] = {}
        schema = store.schema()
        self._dates = {
            detail.name
            for details in schema.node_property_details.values()
            for detail in details
            if detail.kind == "date"
        }
        self._properties = property_labels(store)

    def join(self, triple: TriplePattern, table: SolutionTable) -> SolutionTable:
        """Return the solutions with one more triple."""
        ends = (triple.subject, triple.object)
        if table.rows == 0:
            none = np.empty(0, np.int64)
            return table.with_columns({name: none for name in variables(triple) if name not in table.columns})
        known = self._known(triple, table)
        for column, end in zip(known, ends, strict=True):
            # After an OPTIONAL a variable may have a value in some of the solutions only.
            if column is not None and isinstance(end, Variable) and (column == UNBOUND).any():
                some = table.take(np.flatnonzero(column != UNBOUND))
                others = table.take(np.flatnonzero(column == UNBOUND))
                del others.columns[end.name]
                return stack([self.join(triple, part) for part in (some, others) if part.rows])
        predicate = triple.predicate
        parts = []
        if isinstance(predicate, Link):
            if self._names.is_type(predicate.name):
                relation = self._names.relation_or_none(predicate.name)
                properties: list[str | None] = []
                if not triple.annotations:
                    parts.append(self._types(triple, table, known))
            else:
                relation, properties = self.labels(predicate)
            if relation is not None:
                parts.append(self._edges(triple, table, known, np.array([relation])))
            if not triple.annotations:
                parts += [self._property(triple, table, known, label) for label in properties]
        elif isinstance(predicate, Variable):
            parts.append(self._edges(triple, table, known, self._relations_of(predicate, table)))
            if not triple.annotations:
                for label in sorted(self._properties):
                    code = self._codes.label_code(label, predicate.name)
                    named = equal(table, predicate.name, np.full(table.rows, code))
                    if named.rows:
                        parts.append(self._property(triple, named, self._known(triple, named), label))
        elif isinstance(predicate, Inverse) and isinstance(predicate.path, Link):
            turned = TriplePattern(triple.object, predicate.path, triple.subject, triple.annotations)
            return self.join(turned, table)
        else:
            parts.append(self._expression(triple, predicate, table, known))
        return stack(parts)

    def labels(self, predicate: Link) -> tuple[int | None, list[str | None]]:
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
        texts = {self._codes.text(bound) for bound in self._codes.bound(np.unique(column)) if bound is not None}
        return np.array([place for place, text in enumerate(self._relation_texts) if text in texts], np.int64)

    @functools.cached_property
    def _relation_texts(self) -> list[str]:
        """Return the term of each relation."""
        return [self._names.iri(label) for label in self._store.relations]

    def _known(self, triple: TriplePattern, table: SolutionTable) -> list[Int64 | None]:
        """Return what subject and object stand for in each solution; None for a variable without values."""
        return [
            table.columns.get(end.name) if isinstance(end, Variable) else np.full(table.rows, self._codes.constant(end))
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
                kept = kept[codes[kept] == self._codes.constant(end)]
        if isinstance(triple.subject, Variable) and triple.subject == triple.object:
            kept = kept[subject[kept] == object_[kept]]
        found = table.take(row[kept])
        for end, codes in ((triple.subject, subject), (triple.object, object_)):
            if isinstance(end, Variable):
                found.columns[end.name] = codes[kept]
        return found, kept

    def _edges(
        self, triple: TriplePattern, table: SolutionTable, known: Sequence[Int64 | None], relations: Int64 | None
    ) -> SolutionTable:
        """Join with edges."""
        backward, column, nodes = self._known_end(known)
        batch = expand(self._store, nodes, Direction.IN if backward else Direction.OUT, relations).edges
        pair_row, edge_row = _matched(table, column, nodes[batch.origin])
        head, tail = batch.head.astype(np.int64)[edge_row], batch.tail.astype(np.int64)[edge_row]
        found, kept = self._ends(triple, table, pair_row, head, tail)
        found = found.with_columns({"\0head": head[kept], "\0tail": tail[kept]})
        edge = batch.edge[edge_row[kept]]
        relation = batch.relation[edge_row[kept]].astype(np.int64)
        if isinstance(triple.predicate, Variable):
            name = triple.predicate.name
            each, which = np.unique(relation, return_inverse=True)
            codes = [self._codes.label_code(self._store.relations[number], name) for number in each.tolist()]
            found = found.with_columns({"\0edge": edge, "\0relation": relation})
            found = equal(found, name, np.array(codes, np.int64)[which.reshape(-1)])
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

    def _known_end(self, known: Sequence[Int64 | None]) -> tuple[bool, Int64 | None, Int64]:
        """Return whether edges are read from their object, the values of that end, and the nodes among these or all."""
        backward = known[0] is None and known[1] is not None
        column = known[1] if backward else known[0]
        return backward, column, self._codes.every_node() if column is None else distinct(column[column >= 0])

    def _annotated(
        self, table: SolutionTable, edge: Int64, relation: Any, name: NameTerm, term: Term
    ) -> tuple[SolutionTable, Int64, Any]:
        """Join with a property of the edge of each solution."""
        each, which = np.unique(edge, return_inverse=True)
        labels = list(self._names.labels(name))
        codes = []
        for properties in self._store.edge_properties(each):
            value = next((properties[label] for label in labels if label in properties), None)
            codes.append(UNBOUND if value is None else self._codes.code(Bound("literal", value, _datatype(value))))
        column = np.array(codes, np.int64)[which.reshape(-1)] if codes else edge
        wanted = column != UNBOUND
        if isinstance(term, Variable):
            if term.name in table.columns:
                wanted &= (table.columns[term.name] == column) | (table.columns[term.name] == UNBOUND)
        else:
            wanted &= column == self._codes.constant(term)
        kept = np.flatnonzero(wanted)
        found = table.take(kept)
        if isinstance(term, Variable):
            found = found.with_columns({term.name: column[kept]})
        return found, edge[kept], relation[kept]

    def pairs_of(self, path: PathExpression) -> Expander:
        """Return the pairs of nodes that an expression connects, as steps."""
        if path not in self._expressions:
            self._expressions[path] = self._matches(path)
        return self._expressions[path]

    def _expression(
        self, triple: TriplePattern, path: PathExpression, table: SolutionTable, known: Sequence[Int64 | None]
    ) -> SolutionTable:
        """Join with the pairs of nodes that an expression connects."""
        moves = self.pairs_of(path)
        backward, column, nodes = self._known_end(known)
        steps = moves.backward(nodes) if backward else moves.forward(nodes)
        near = nodes[steps.origin]
        row, step = _matched(table, column, near)
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
        for node, types in zip(nodes.tolist(), self._types_of(nodes), strict=True):
            kinds = list(dict.fromkeys([*types, *more.get(node, ())]))
            if wanted is not None:
                found.append((0,) if wanted.intersection(kinds) else ())
            else:
                found.append([self._codes.label_code(each, variable) for each in kinds])
        return found

    def _types_of(self, nodes: Int64) -> list[tuple[str, ...]]:
        """Return all types of nodes."""
        if (graph := self._store.columnar) is None:
            return [node.types for node in self._store.nodes(self._store.ids(nodes))]
        first, further = graph.node_types.of_nodes(nodes)
        return [(one, *others) if one else () for one, others in zip(first, further, strict=True)]

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
                    self._codes.code(Bound("literal", each.value, each.kind if each.kind == "date" else ""))
                    for each in unlisted(several)
                ]
                if isinstance(several, str)
                else ()
                if value is None
                else (self._codes.code(Bound("literal", value, datatype)),)
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
        """Join with properties of nodes; `constant` is True if the object has been compared already."""
        nodes = self._codes.every_node() if subjects is None else distinct(subjects[subjects >= 0])
        said = codes(nodes)
        counts = np.array([len(each) for each in said], np.int64)
        values = np.array([code for each in said for code in each], np.int64)
        near = nodes.repeat(counts)
        row, fact = _matched(table, subjects, near)
        subject, object_ = near[fact], values[fact]
        if constant:
            found = table.take(row)
            return found.with_columns({triple.subject.name: subject}) if isinstance(triple.subject, Variable) else found
        return self._ends(triple, table, row, subject, object_)[0]

    def _column(self, nodes: Int64, label: str, of_node: bool = True) -> list[Any]:
        """Return the name or a property of nodes; None for nodes without one."""
        named = of_node and label == "name"
        if (graph := self._store.columnar) is not None:
            return list(graph.names_at(nodes)) if named else graph.node_columns[1].of_property(label, nodes)
        found = self._store.nodes(self._store.ids(nodes))
        return [(node.name or None) if named else node.properties.get(label) for node in found]


def _matched(table: SolutionTable, column: Int64 | None, near: Int64) -> tuple[Int64, Int64]:
    """Return the pairs of a solution and an ascending row with its value in a column; all pairs if that is None."""
    if column is None:
        return crossed(table.rows, len(near))
    first = np.searchsorted(near, column)
    return ranges(first, np.searchsorted(near, column, "right") - first)


def _datatype(value: Value) -> str:
    is_date = isinstance(value, str) and len(value) == 10 and value[4:5] == value[7:8] == "-" and value[:4].isdigit()
    return "date" if is_date else ""
