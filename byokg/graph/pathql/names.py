"""Resolution of the names of a query in a graph, and notation of a graph's ids and labels in results.

A prefix is declared in the query, or else known to the graph from the RDF it was made from. On a graph without IRIs the
empty prefix stands for the graph's own ids and labels: `:Alice`, `:knows`; other names are written `<Tom Hanks>`.

The module of RDF terms is imported on demand, since most graphs have no IRIs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from byokg.errors import EntityNotFound, NameAmbiguous, PathQueryInvalid, RelationNotFound
from byokg.graph.pathql.expander import Bound
from byokg.graph.pathql.query import NameTerm, Variable
from byokg.graph.store import GraphStore
from byokg.types import EntityId, Value

if TYPE_CHECKING:
    from byokg.graph.rdf.terms import Prefixes

_WORD = re.compile(r"[^\W_][\w-]*(?:\.[\w-]+)*|_[\w-]+")


class NameResolver:
    """The names of one graph, with the prefixes of one query."""

    def __init__(self, store: GraphStore, prefixes: Mapping[str, str]) -> None:
        self._store = store
        self._declared = dict(prefixes)
        source = store.source
        self._own: Mapping[str, str] = source.get("prefixes") or {}
        self._types: Mapping[str, str] = source.get("types") or {}
        self._known: dict[NameTerm, tuple[int | None, Bound]] = {}

    @property
    def _prefixes(self) -> Prefixes:
        """Return the prefixes of the graph; a server learns more of them while it is read."""
        return self._store.prefixes or self._own_prefixes

    @cached_property
    def _own_prefixes(self) -> Prefixes:
        from byokg.graph.rdf.terms import Prefixes

        return Prefixes(dict(self._own))

    @property
    def _graph(self) -> Mapping[str, str]:
        known = self._store.prefixes
        return self._own if known is None else known.namespaces

    # From a query

    def iris(self, name: NameTerm) -> Iterator[str]:
        """Yield the full forms of a name, the likeliest first."""
        if name.prefix is None:
            yield name.text
            return
        if name.prefix in self._declared:
            yield self._declared[name.prefix] + name.text
            return
        if name.prefix in self._graph:
            yield self._graph[name.prefix] + name.text
        if name.prefix == "":
            yield name.text
            if "%" in name.text:
                from byokg.graph.rdf.terms import decode

                yield decode(name.text)
            for space in self._graph.values():
                yield space + name.text
            return
        yield f"{name.prefix}:{name.text}"
        from byokg.graph.rdf.terms import WELL_KNOWN

        if name.prefix in WELL_KNOWN:
            yield WELL_KNOWN[name.prefix] + name.text

    def node(self, name: NameTerm) -> int:
        """Return the number of a node. Raises `EntityNotFound`."""
        missing: EntityNotFound | None = None
        for iri in self.iris(name):
            try:
                return int(self._store.numbers([EntityId(iri)])[0])
            except EntityNotFound as error:
                missing = missing or error
        assert missing is not None
        raise missing

    def named(self, name: NameTerm) -> int:
        """Return the number of a node, given by id or by a name that no other node has.

        Raises:
            EntityNotFound: there is no such node.
            NameAmbiguous: several nodes have the name.
        """
        from byokg.graph.name_indexes import named_node

        try:
            return self.node(name)
        except EntityNotFound as missing:
            if name.prefix:
                raise
            try:
                return named_node(self._store, name.text)
            except NameAmbiguous:
                raise
            except EntityNotFound:
                raise missing from None

    def node_or_none(self, name: NameTerm) -> int | None:
        """Return the number of a node; None if there is none."""
        try:
            return self.node(name)
        except EntityNotFound:
            return None

    def labels(self, name: NameTerm) -> Iterator[str]:
        """Yield the labels that a relation or property of this name may have."""
        for iri in self.iris(name):
            yield iri
            if self._graph:
                yield self._prefixes.label(iri)
        if name.prefix:
            yield f"{name.prefix}:{name.text}"

    def relation_or_none(self, name: NameTerm) -> int | None:
        """Return the number of a relation; None if there is none."""
        known = self._store.relations
        for label in self.labels(name):
            try:
                return known.index(label)
            except ValueError:
                continue
        return None

    def relation(self, name: NameTerm) -> int:
        """Return the number of a relation. Raises `RelationNotFound`."""
        number = self.relation_or_none(name)
        if number is None:
            label = name.text if name.prefix in (None, "") else str(name)
            raise RelationNotFound(label, self._store.name, self._store.relations)
        return number

    def is_type(self, name: NameTerm) -> bool:
        """True if a name is `rdf:type`."""
        from byokg.graph.rdf.terms import RDF_TYPE

        return next(self.iris(name)) == RDF_TYPE or str(name) == "rdf:type"

    def types(self, name: NameTerm) -> frozenset[str]:
        """Return the node types that a name may stand for."""
        from byokg.graph.rdf.terms import local_name

        found = set()
        for iri in self.iris(name):
            found |= {iri, local_name(iri)}
            found |= {label for label, full in self._types.items() if full == iri}
        return frozenset(found)

    def iri(self, label: str) -> str:
        """Return the term that the label of a relation, property or type stands for: its IRI, if the graph has IRIs."""
        if label in self._types:
            return self._types[label]
        if not self._graph:
            return label
        from byokg.graph.rdf.terms import TERM

        iri = self._prefixes.expand(label)
        return label if iri.startswith(TERM) else iri

    def term(self, name: NameTerm, properties: Collection[str]) -> tuple[int | None, Bound]:
        """Return the term that a name stands for, and its number if it is a node.

        Of several readings in different namespaces a node comes first, then a relation, a property and a type. A name
        that the graph does not hold is a term that equals no other.
        """
        if name in self._known:
            return self._known[name]
        number = self.node_or_none(name)
        if number is not None:
            bound = Bound("node", self._store.ids(np.array([number]))[0])
        else:
            relation = self.relation_or_none(name)
            labels = [] if relation is None else [self._store.relations[relation]]
            labels += [label for label in self.labels(name) if label in properties]
            labels += sorted(self.types(name) & self._store.schema().node_types.keys())
            bound = Bound("relation", labels[0]) if labels else Bound("node", self._written_out(name))
        self._known[name] = number, bound
        return number, bound

    def _written_out(self, name: NameTerm) -> str:
        """Return a name in full; a well known prefix counts unless the graph defines another."""
        from byokg.graph.rdf.terms import WELL_KNOWN

        if name.prefix in WELL_KNOWN and name.prefix not in self._declared and name.prefix not in self._graph:
            return WELL_KNOWN[name.prefix] + name.text
        return next(self.iris(name))

    # Into an answer

    def shown(self, entity: str) -> str:
        """Return how an id or a label is written: `:Alice`, `dbo:birthPlace`, `<Tom Hanks>`."""
        written = self.shown_iri(entity, "")
        if written:
            return written
        if self._graph and "://" in entity:
            label = self._prefixes.label(entity)
            return label if label != entity else f"<{entity}>"
        if "" not in self._declared and _WORD.fullmatch(entity):
            return f":{entity}"
        prefix, _, local = entity.partition(":")
        if prefix in self._graph and _WORD.fullmatch(local):
            return self.shown_iri(self._graph[prefix] + local, entity)
        return f"<{entity}>"

    def shown_iri(self, iri: str, label: str) -> str:
        """Return how an IRI is written with the prefixes of the query, or else its label in the graph."""
        for prefix, space in self._declared.items():
            if space and iri.startswith(space) and _WORD.fullmatch(iri[len(space) :]):
                return f"{prefix}:{iri[len(space) :]}"
        return label


def shown_literal(value: Value, datatype: str = "", language: str = "") -> str:
    """Return a literal as a query writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float) and datatype in ("", "integer", "decimal", "double", "float"):
        return str(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    if language:
        return f'"{text}"@{language}'
    return f'"{text}"^^xsd:{datatype}' if datatype else f'"{text}"'


def check_bound(wanted: Sequence[Variable], bound: set[str], where: str) -> None:
    """Raise `PathQueryInvalid` if a pattern does not bind its end variables."""
    missing = [f"?{variable.name}" for variable in wanted if variable.name not in bound]
    if missing:
        lacking = " and ".join(missing)
        raise PathQueryInvalid(f"the pattern of {where} does not bind {lacking}; use it in a triple there")
