"""Inferred edges: rules applied until nothing new follows, beside a graph that stays as it is.

    IF { ?x :partOf ?y . ?y :locatedIn ?z } THEN { ?x :partOf ?z }

Sub-properties, inverse, symmetric and transitive properties, property chains and sub-classes are rules of this kind;
`schema_rules` reads them from a graph's own RDFS and OWL statements.

Each round joins the inferences of the previous round with everything known so far (semi-naive evaluation), so no
conclusion is drawn twice from the same premises. Every inferred edge keeps the first rule and premises that produced
it.

Source: Stardog's documentation, "Path Queries With Reasoning".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Int64
from byokg.errors import PathQueryInvalid, QueryTooLarge
from byokg.graph.columnar.assembly import EdgeTable, assemble_parts
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.schema import NodeColumns
from byokg.graph.pathql.query import (
    InferenceRule,
    Inverse,
    Link,
    NameTerm,
    PathExpression,
    Term,
    TriplePattern,
    Variable,
    variables,
)
from byokg.graph.pathql.result import NameResolver
from byokg.graph.rdf.importer import GRAPH
from byokg.graph.rdf.terms import OWL, RDFS
from byokg.graph.sorted_ids import distinct, match_rows
from byokg.graph.store import Direction
from byokg.types import Triple

_MOST = 5_000_000
"""Edges that rules may infer."""

_SHIFT = 32
_LOW = (1 << _SHIFT) - 1


@dataclass(frozen=True)
class Derivation:
    """Why an edge was inferred."""

    rule: str
    premises: tuple[Triple, ...]
    """Edges that the rule was applied to; those that were inferred themselves have a derivation of their own."""


_Relation: TypeAlias = "int | str"
"""The number of a relation; or the name of a type, whose members count as loops."""


@dataclass(frozen=True)
class _Atom:
    """One triple of a rule."""

    relation: _Relation
    subject: str | int
    """A variable, or the number of a node."""
    object: str | int


@dataclass(frozen=True)
class _Compiled:
    """A rule over the relations of a graph."""

    rule: InferenceRule
    body: tuple[_Atom, ...]
    head: tuple[_Atom, ...]


class Inferred:
    """A graph with the edges that rules infer; the graph itself is not changed.

    `graph` holds both kinds of edges, numbered anew; nodes have the numbers of the original graph. `types` are the
    nodes with an inferred type.
    """

    def __init__(self, stored: ColumnarGraph, rules: Sequence[InferenceRule], named_graphs: Sequence[str] = ()) -> None:
        """Apply the rules.

        Args:
            stored: the graph.
            rules: the inference rules.
            named_graphs: read edges of these named graphs only; empty for all edges.

        Raises:
            PathQueryInvalid: a rule has other elements than triples of named relations.
            RelationNotFound: the IF of a rule names a relation that neither the graph nor any THEN has.
            QueryTooLarge: there are more inferences than `Inferred` can hold.
        """
        self.stored = stored
        self._edges = _edges_of(stored, named_graphs)
        self._relations = list(stored.relations)
        self._facts: dict[_Relation, Int64] = {}
        self._why: dict[tuple[_Relation, int], tuple[int, tuple[tuple[_Relation, int], ...]]] = {}
        compiled = self._compiled(rules)
        self._rules = compiled
        self._load(compiled)
        self._saturate(compiled)
        self.types: Mapping[str, Int64] = {
            name: np.array([key >> _SHIFT for relation, key in self._why if relation == name], np.int64)
            for name in {relation for relation, _ in self._why if isinstance(relation, str)}
        }
        self.graph = self._assembled()

    # Rules

    def _compiled(self, rules: Sequence[InferenceRule]) -> list[_Compiled]:
        names = [NameResolver(self.stored, rule.prefixes) for rule in rules]
        for rule, known in zip(rules, names, strict=True):
            given = {name for triple in rule.when for name in variables(triple)}
            for triple in rule.then:
                for unknown in (name for name in variables(triple) if name not in given):
                    raise PathQueryInvalid(f"the THEN of a rule has ?{unknown}, which its IF does not bind")
                name = self._predicate(triple)[0]
                if not known.is_type(name) and known.relation_or_none(name) is None:
                    label = next(known.labels(name))
                    if label not in self._relations:
                        self._relations.append(label)
        return [
            _Compiled(
                rule,
                tuple(self._atom(triple, known) for triple in rule.when),
                tuple(self._atom(triple, known) for triple in rule.then),
            )
            for rule, known in zip(rules, names, strict=True)
        ]

    @staticmethod
    def _predicate(triple: TriplePattern) -> tuple[NameTerm, bool]:
        """Return the relation of a rule's triple, and whether it is walked backward."""
        path: Variable | PathExpression = triple.predicate
        back = isinstance(path, Inverse)
        if isinstance(path, Inverse):
            path = path.path
        if not isinstance(path, Link) or triple.annotations:
            raise PathQueryInvalid("a rule is made of triples with named relations: IF { ?x :a ?y } THEN { ?y :b ?x }")
        return path.name, back

    def _atom(self, triple: TriplePattern, names: NameResolver) -> _Atom:
        name, back = self._predicate(triple)
        ends: list[str | int] = []
        if names.is_type(name):
            if not isinstance(triple.object, NameTerm) or not isinstance(triple.subject, Variable):
                raise PathQueryInvalid("a rule about types is made of triples such as ?x a :Film")
            known = names.types(triple.object) & self.stored.schema().node_types.keys()
            kind = min(known) if known else min(names.types(triple.object), key=lambda each: (len(each), each))
            return _Atom(kind, triple.subject.name, triple.subject.name)
        for term in (triple.object, triple.subject) if back else (triple.subject, triple.object):
            if isinstance(term, Variable):
                ends.append(term.name)
            elif isinstance(term, NameTerm):
                ends.append(names.node(term))
            else:
                raise PathQueryInvalid(f"a rule is about nodes, not about values such as {term.value!r}")
        number = names.relation_or_none(name)
        if number is None:
            label = next((label for label in names.labels(name) if label in self._relations), None)
            number = names.relation(name) if label is None else self._relations.index(label)
        return _Atom(number, *ends)

    # Facts: pairs of nodes, as ascending keys

    def _load(self, rules: Sequence[_Compiled]) -> None:
        """Read the edges and types that the rules use."""
        wanted = {atom.relation for rule in rules for atom in (*rule.body, *rule.head)}
        bounds, relation, tail = self.stored.outgoing
        numbers = sorted(each for each in wanted if isinstance(each, int))
        edges = self._edges[np.isin(relation[self._edges], numbers)]
        head = np.searchsorted(bounds, edges, "right") - 1
        keys, kinds_of = (head << _SHIFT) | tail[edges].astype(np.int64), relation[edges]
        either = np.flatnonzero(self.stored.topology.are_undirected(edges, kinds_of))
        keys = np.concatenate((keys, tail[edges][either].astype(np.int64) << _SHIFT | head[either]))
        kinds_of = np.concatenate((kinds_of, kinds_of[either]))
        for number in numbers:
            self._facts[number] = distinct(keys[kinds_of == number])
        kinds = [each for each in wanted if isinstance(each, str)]
        for kind in kinds:
            members = self.stored.node_types.members(kind)
            self._facts[kind] = (members << _SHIFT) | members

    def _saturate(self, rules: Sequence[_Compiled]) -> None:
        """Apply the rules to the inferences of the previous round, until there are none."""
        fresh = dict(self._facts)
        while any(map(len, fresh.values())):
            found: dict[_Relation, list[Int64]] = {}
            for number, compiled in enumerate(rules):
                for place, atom in enumerate(compiled.body):
                    if len(fresh.get(atom.relation, ())):
                        for relation, keys in self._applied(number, compiled, place, fresh[atom.relation]):
                            found.setdefault(relation, []).append(keys)
            fresh = {relation: distinct(np.concatenate(parts)) for relation, parts in found.items()}
            for relation, keys in fresh.items():
                self._facts[relation] = np.union1d(self._facts[relation], keys)

    def _applied(self, number: int, compiled: _Compiled, place: int, fresh: Int64) -> Iterator[tuple[_Relation, Int64]]:
        """Yield the new inferences of a rule with one of its triples among the fresh facts."""
        columns: dict[str, Int64] = {}
        columns, rows = self._joined(columns, 1, compiled.body[place], fresh)
        waiting = [atom for other, atom in enumerate(compiled.body) if other != place]
        while waiting and rows:
            # A triple that shares a variable with those before comes before one that does not.
            atom = min(waiting, key=lambda each: not {each.subject, each.object} & columns.keys())
            waiting.remove(atom)
            columns, rows = self._joined(columns, rows, atom, self._facts[atom.relation])
        if not rows:
            return
        for atom in compiled.head:
            ends = []
            for end in (atom.subject, atom.object):
                ends.append(columns[end] if isinstance(end, str) else np.full(rows, end))
            keys = (ends[0] << _SHIFT) | ends[1]
            keys, first = np.unique(keys, return_index=True)
            known = self._facts[atom.relation]
            place_ = np.searchsorted(known, keys)
            new = np.flatnonzero(known.take(place_, mode="clip") != keys) if len(known) else np.arange(len(keys))
            self._note(number, compiled, atom.relation, keys[new], {k: v[first[new]] for k, v in columns.items()})
            yield atom.relation, keys[new]

    def _joined(self, columns: dict[str, Int64], rows: int, atom: _Atom, facts: Int64) -> tuple[dict[str, Int64], int]:
        """Join solutions with the facts of a triple."""
        head, tail = facts >> _SHIFT, facts & _LOW
        kept = np.full(len(facts), True) if atom.subject != atom.object else head == tail
        for end, values in ((atom.subject, head), (atom.object, tail)):
            if not isinstance(end, str):
                kept &= values == end
        head, tail = head[kept], tail[kept]
        if isinstance(atom.subject, str) and atom.subject in columns:
            near, far, by, new = head, tail, atom.subject, atom.object
        elif isinstance(atom.object, str) and atom.object in columns:
            near, far, by, new = tail, head, atom.object, atom.subject
        else:
            row, fact = np.arange(rows).repeat(len(head)), np.tile(np.arange(len(head)), rows)
            joined = {name: column[row] for name, column in columns.items()}
            for end, values in ((atom.subject, head), (atom.object, tail)):
                if isinstance(end, str):
                    joined[end] = values[fact]
            return joined, len(row)
        order = np.argsort(near, kind="stable")
        near, far = near[order], far[order]
        row, fact = match_rows(near, columns[by])
        values = far[fact]
        if isinstance(new, str) and new in columns:
            kept = columns[new][row] == values
            row, values = row[kept], values[kept]
        joined = {name: column[row] for name, column in columns.items()}
        if isinstance(new, str):
            joined[new] = values
        return joined, len(row)

    def _note(
        self, number: int, compiled: _Compiled, relation: _Relation, keys: Int64, columns: Mapping[str, Int64]
    ) -> None:
        """Remember from what each new fact followed first."""
        if len(self._why) + len(keys) > _MOST:
            raise QueryTooLarge(f"the rules infer more than {_MOST:,} edges")
        for row, key in enumerate(keys.tolist()):
            if (relation, key) not in self._why:
                premises = tuple(
                    (
                        atom.relation,
                        self._end(atom.subject, columns, row) << _SHIFT | self._end(atom.object, columns, row),
                    )
                    for atom in compiled.body
                )
                self._why[relation, key] = (number, premises)

    @staticmethod
    def _end(end: str | int, columns: Mapping[str, Int64], row: int) -> int:
        return int(columns[end][row]) if isinstance(end, str) else end

    # The graph with both

    def _assembled(self) -> ColumnarGraph:
        bounds, relation, tail = self.stored.outgoing
        edges = self._edges
        head = np.searchsorted(bounds, edges, "right") - 1
        relation, tail = relation[edges], tail[edges]
        undirected = self.stored.topology.are_undirected(edges, relation)
        new = [(relation_, key) for relation_, key in self._why if isinstance(relation_, int)]
        keys = np.array([key for _, key in new], np.int64)
        columns, about = self.stored.node_columns
        held = dict(zip(columns.schema.names, columns.columns, strict=True))
        more = len(new)
        number = np.concatenate((edges, -1 - np.arange(more)))
        heads, tails = np.concatenate((head, keys >> _SHIFT)), np.concatenate((tail, keys & _LOW))
        relations = np.concatenate((relation, np.array([each for each, _ in new], np.int64)))
        parts = assemble_parts(
            NodeColumns(
                self.stored.node_ids.whole(),
                held.get("name"),
                held.get("type"),
                about.columns(),
                further=self.stored.node_types.further,
            ),
            self._relations,
            EdgeTable(
                np.column_stack((heads, relations, tails)).astype(np.int64),
                {**self._edge_properties(more), _ORIGIN: pa.array(number)},
                undirected=np.concatenate((undirected, np.zeros(more, np.bool_))),
            ),
            source=self.stored.source,
        )
        graph = ColumnarGraph(f"{self.stored.name} with {len(self._rules)} rules", parts)
        self._inferred = new
        return graph

    def _edge_properties(self, more: int) -> dict[str, pa.Array]:
        """Return the properties of the stored edges, and nothing for those that are new."""
        batches = self.stored.edge_columns
        if not batches:
            return {}
        table = pa.Table.from_batches(batches)
        return {
            name: pa.concat_arrays([*column.take(pa.array(self._edges)).chunks, pa.nulls(more, column.type)])
            for name, column in zip(table.schema.names, table.columns, strict=True)
        }

    def restore(self, triple: Triple) -> Triple:
        """Return an edge of `graph` with the number and the properties that it has in the stored graph.

        An inferred edge has a negative number, and no properties.
        """
        origin = int(triple.properties[_ORIGIN])
        properties = {name: value for name, value in triple.properties.items() if name != _ORIGIN}
        return replace(triple, edge=origin, properties=properties)

    def derivation(self, triple: Triple) -> Derivation | None:
        """Return why an edge was inferred; None for a stored one."""
        if triple.edge >= 0:
            return None
        number, premises = self._why[self._inferred[-1 - triple.edge]]
        return Derivation(str(self._rules[number].rule), tuple(self._premise(*premise) for premise in premises))

    def _premise(self, relation: _Relation, key: int) -> Triple:
        head, tail = self.stored.ids(np.array([key >> _SHIFT, key & _LOW]))
        if isinstance(relation, str):
            return Triple(head, "a", type(head)(relation))
        if (relation, key) in self._why:
            return Triple(head, self._relations[relation], tail, -1 - self._inferred.index((relation, key)))
        leaving = self.stored.edges(np.array([key >> _SHIFT]), Direction.OUT, np.array([relation]))
        first = int(np.flatnonzero(leaving.tail == key & _LOW)[0])
        undirected = leaving.undirected is not None and bool(leaving.undirected[first])
        edge = int(leaving.edge[first])
        return Triple(head, self._relations[relation], tail, edge, undirected=undirected)


def _edges_of(graph: ColumnarGraph, named: Sequence[str]) -> Int64:
    """Return the numbers of the edges of some named graphs; of all edges if none is named."""
    if not named:
        return np.arange(graph.edge_count)
    batches = graph.edge_columns
    if not batches or GRAPH not in batches[0].schema.names:
        raise PathQueryInvalid(f"FROM: the edges of {graph.name} do not say which named graph they are in")
    column = pa.Table.from_batches(batches).column(GRAPH)
    return np.flatnonzero(pc.is_in(column, pa.array(named, column.type)).to_numpy())


_ORIGIN = "\0edge"
"""Property of the edges of `Inferred.graph`: the number in the stored graph, or -1 and below for inferred ones."""

_SUB_PROPERTY, _SUB_CLASS = NameTerm(RDFS + "subPropertyOf"), NameTerm(RDFS + "subClassOf")
_TYPE = NameTerm("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_INVERSE = NameTerm(OWL + "inverseOf")
_KINDS = {"SymmetricProperty": "symmetric", "TransitiveProperty": "transitive"}


def schema_rules(graph: ColumnarGraph) -> list[InferenceRule]:
    """Return the rules that a graph states of its own relations and types in RDFS and OWL.

    Sub-properties, sub-classes, inverse, symmetric and transitive properties; nodes that are relations are found by
    the IRI, or by the name of the relation.
    """
    names = NameResolver(graph, {})
    x, y, z = Variable("x"), Variable("y"), Variable("z")
    rules: list[InferenceRule] = []

    def add(*triples: tuple[Term, NameTerm, Term]) -> None:
        """Add a rule of some premises and a conclusion."""
        *when, then = (TriplePattern(start, Link(name), end) for start, name, end in triples)
        rules.append(InferenceRule(tuple(when), (then,)))

    def pairs(name: NameTerm) -> Iterator[tuple[NameTerm, NameTerm]]:
        number = names.relation_or_none(name)
        if number is None:
            return
        bounds, relation, tail = graph.outgoing
        edges = np.flatnonzero(relation == number)
        heads = graph.ids(np.searchsorted(bounds, edges, "right") - 1)
        for head, end in zip(heads, graph.ids(tail[edges]), strict=True):
            yield NameTerm(head), NameTerm(end)

    for one, other in pairs(_SUB_PROPERTY):
        add((x, one, y), (x, other, y))
    for one, other in pairs(_INVERSE):
        add((x, one, y), (y, other, x))
        add((x, other, y), (y, one, x))
    for one, other in pairs(_SUB_CLASS):
        add((x, _TYPE, one), (x, _TYPE, other))
    members = {kind: graph.node_types.members(kind).tolist() for kind in _KINDS}
    for number, kind in sorted((number, name) for name, some in members.items() for number in some):
        name = NameTerm(graph.ids(np.array([number]))[0])
        if _KINDS[kind] == "symmetric":
            add((x, name, y), (y, name, x))
        else:
            add((x, name, y), (y, name, z), (x, name, z))
    return [rule for rule in rules if all(_is_known(names, triple, rules) for triple in rule.when)]


def _is_known(names: NameResolver, triple: TriplePattern, rules: Sequence[InferenceRule]) -> bool:
    """True if a graph, or the THEN of a rule, has the relation of a triple."""
    predicate = triple.predicate
    assert isinstance(predicate, Link)
    if names.is_type(predicate.name) or names.relation_or_none(predicate.name) is not None:
        return True
    return any(predicate == each.predicate for rule in rules for each in rule.then)
