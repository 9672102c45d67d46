"""The guard: proves that query text only reads, before any engine sees it.

Every `QueryStore` runs `check_cypher(text).text` or `check_sparql(text).text`, never the original text: comments are
removed, and ambiguous syntax is rewritten unambiguously. The guard is strict: it parses the text, and refuses text that
it cannot parse. It needs no schema.

The effects of an engine's procedures are beyond it, so those go by a list (`allowlist.toml`); and it does not bound
time or memory, which are the engine's to bound.

Decisions:
- SPARQL's CONSTRUCT and DESCRIBE, which return a graph, pass unchanged; stores read their triples.
- FROM may name graphs, but no files, and no addresses within a network: some servers fetch the document named.
- EXPLAIN, PROFILE and options such as ``CYPHER 25`` are removed: rows are wanted, and no plan.
- A UNION, and a query that ends without RETURN, gets no LIMIT: it would bind to the last part only, and wrapping the
  whole in a subquery reorders columns. The store's own row cap applies, as it does to a LIMIT that is computed.
- Plain unknown functions are the engine's to refuse; unknown functions with a namespace may be plug-ins and are
  refused.

`lint_query` finds names in a query that its graph does not have, and steps against a relation's direction. An engine
answers such a query with no rows and no error, so its author gets no hint. A finding has the fault and the nearest
existing names; the caller decides whether the query runs. `lint_query` takes any store that runs queries; `lint_cypher`
and `lint_sparql` take a schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, cast

from byokg.errors import QueryInvalid
from byokg.graph.guard.allowlist import Binding, EdgeUse, IriUse, LabelUse, Name, PropertyUse, nearest_names
from byokg.graph.guard.cypher import parse_cypher
from byokg.graph.guard.sparql import complete, parse_sparql
from byokg.graph.guard.tokens import (
    Edit,
    RowLimit,
    Unreadable,
    apply,
    place,
    read,
    readings,
    tokenise_cypher,
    tokenise_sparql,
)
from byokg.graph.store import RelationSchema, Schema
from byokg.types import Language

if TYPE_CHECKING:
    from byokg.graph.rdf.terms import Prefixes

T = TypeVar("T")


@dataclass(frozen=True)
class CheckedQuery:
    """A query that only reads."""

    text: str
    """Text for the engine: no comments, no semicolon at the end, no LIMIT above the cap."""
    capped: bool = False
    """The guard added a LIMIT, or lowered it; elsewhere only the store's own row cap applies."""


def check_cypher(text: str, row_cap: int | None = None) -> CheckedQuery:
    """Check that openCypher text is one query that only reads.

    Args:
        text: the query, as a person or a language model wrote it.
        row_cap: highest LIMIT of a final RETURN, added if there is none; one row more than wanted reveals
            whether there were more. None changes nothing.

    Raises:
        QueryRefused: it does not; the error has the part, its place, and an alternative.
    """
    query = read(text, lambda text: _parse(text, parse_cypher))
    return _checked(text, query.edits, query.limit, row_cap)


def check_sparql(text: str, row_cap: int | None = None) -> CheckedQuery:
    """Check that SPARQL text is one query that only reads and stays within its store.

    Args:
        text: the query, as a person or a language model wrote it.
        row_cap: highest LIMIT, added if there is none; one row more than wanted reveals whether there
            were more. None changes nothing.

    Raises:
        QueryRefused: it does not; the error has the part, its place, and an alternative.
    """
    query = read(text, lambda text: _parse(text, parse_sparql))
    return _checked(text, query.edits, query.limit, row_cap)


def check_query(language: Language, text: str) -> str:
    """Return a query as it may be run, without a cap of rows. Raises `QueryRefused`."""
    return (check_cypher if language == "cypher" else check_sparql)(text).text


def _checked(text: str, edits: Sequence[Edit], limit: RowLimit | None, row_cap: int | None) -> CheckedQuery:
    """Write a query as it is handed on."""
    capped = row_cap is not None and limit is not None and (limit.rows is None or limit.rows > row_cap)
    if limit is not None and capped:
        written = f" LIMIT {row_cap:d}" if limit.rows is None else f"{row_cap:d}"
        edits = sorted([*edits, Edit(limit.start, limit.stop, written)], key=lambda edit: edit[:2])
    return CheckedQuery(apply(text, edits).rstrip(" \t\r\n;"), capped)


def _parse(text: str, parse: Callable[[str], T]) -> T:
    """Parse a text in every way an engine may read it; a forbidden operation in one of them is refused.

    A parse that merely fails does not count: the engine gets text with the first parse only.
    """
    others = readings(text)
    query = parse(text)
    for reading in others:
        try:
            parse(reading)
        except Unreadable as error:
            if error.forbidden:
                reason = f"with its escapes and line ends read as some engines do: {error.reason}"
                raise Unreadable(error.found, min(error.start, len(text)), reason, True) from None
    return query


Kind = Literal["label", "relation", "property", "direction"]

_STANDARD_VOCABULARIES = (
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "http://www.w3.org/2000/01/rdf-schema#",
    "http://www.w3.org/2002/07/owl#",
)
"""Never reported: an RDF store may hold them without counting them as relations."""


@dataclass(frozen=True)
class Finding:
    """One name or step that the schema contradicts."""

    kind: Kind
    name: str
    line: int
    column: int
    message: str
    """Fault and existing alternatives, fit for the language model that wrote the query."""
    nearest: tuple[str, ...] = ()
    """Existing names, the most similar first."""


def lint_cypher(
    text: str, schema: Schema, known_properties: Collection[str] = ("id", "name"), base_label: str = ""
) -> list[Finding]:
    """Compare an openCypher query with a schema.

    Args:
        text: a query that passed `check_cypher`.
        schema: the graph's schema.
        known_properties: properties that every node has, in the schema or not.
        base_label: label that every node has besides its own ones, if there is one.

    Returns:
        Findings in the order of the text; none if the schema is empty.

    Raises:
        QueryRefused: the text cannot be parsed.
    """
    query = read(text, parse_cypher)
    return _placed(
        text,
        _labels(query.labels, schema, base_label),
        _properties(query.properties, schema, frozenset(known_properties)),
        _directions(query.edges, schema, base_label),
    )


def lint_sparql(text: str, schema: Schema) -> list[Finding]:
    """Compare a SPARQL query's predicates and classes with a schema whose names are IRIs.

    Returns:
        Findings in the order of the text; none if the schema's names are no IRIs.

    Raises:
        QueryRefused: the text cannot be parsed.
    """
    query = read(text, parse_sparql)
    relations = [relation.name for relation in schema.relations]
    return _placed(
        text,
        _iris(query.predicates, relations, "relation", "predicate"),
        _iris(query.classes, list(schema.node_types), "label", "class"),
    )


@dataclass(frozen=True)
class _UnplacedFinding:
    """A finding that still knows the character and not yet the line."""

    kind: Kind
    name: Name
    message: str
    nearest: tuple[str, ...] = ()


_MOST = 50
"""Findings of each sort that are worth telling."""


def _placed(text: str, *found: Iterator[_UnplacedFinding]) -> list[Finding]:
    first = (one for some in found for one in islice(some, _MOST))
    ordered = sorted(first, key=lambda one: one.name.start)
    findings = [
        Finding(one.kind, one.name.text, *place(text, one.name.start), one.message, one.nearest) for one in ordered
    ]
    return list(dict.fromkeys(findings))


def _unknown(kind: Kind, what: str, name: Name, known: Collection[str], where: str = "this graph") -> _UnplacedFinding:
    near = tuple(nearest_names(name.text, known))
    hint = f"; nearest: {', '.join(near)}" if near else f"; there are: {', '.join(sorted(known)[:10])}" if known else ""
    return _UnplacedFinding(kind, name, f"{where} has no {what} {name.text!r}{hint}", near)


def _labels(uses: tuple[LabelUse, ...], schema: Schema, base: str) -> Iterator[_UnplacedFinding]:
    node_types = {label for label in (*schema.node_types, base) if label}
    relations = schema.relations_by_name
    for use in uses:
        name = use.name
        if use.kind == "edge":
            if name.text not in relations:
                yield _unknown("relation", "relation type", name, relations)
        elif name.text not in node_types and not (use.kind is None and name.text in relations):
            yield _unknown("label", "label", name, node_types)


def _properties(
    uses: tuple[PropertyUse, ...], schema: Schema, everywhere: frozenset[str]
) -> Iterator[_UnplacedFinding]:
    @cache
    def of_owner(owner: Binding) -> tuple[Mapping[str, tuple[str, ...]], list[str], set[str]] | None:
        """Return the properties of each label, those of the labels that there are, and the properties they have."""
        tables: Mapping[str, tuple[str, ...]] = schema.node_properties
        if owner.kind != "node":
            tables = {name: relation.properties for name, relation in schema.relations_by_name.items()}
        owners = [name for name in owner.names if name in tables]
        if len(owners) < len(owner.names) or not any(tables[name] for name in owners or tables):
            return None  # an unknown label is a finding of its own
        return tables, owners, {prop for name in owners or tables for prop in tables[name]}

    for use in uses:
        node = use.owner.kind == "node"
        told = of_owner(use.owner)
        if told is None:
            continue
        tables, owners, known = told
        if use.name.text in known or (node and use.name.text in everywhere):
            continue
        known = known | everywhere if node else known
        elsewhere = sorted(owner for owner in tables if owner and use.name.text in tables[owner])
        where = " or ".join(owners) or ("no node" if node else "no relation")
        found = _unknown("property", "property", use.name, known, where)
        message = found.message if owners else found.message.replace(" has no property", " has a property", 1)
        if owners and elsewhere:
            message += f" ({', '.join(elsewhere[:3])} has it)"
        yield _UnplacedFinding("property", use.name, message, found.nearest)


def _directions(edges: tuple[EdgeUse, ...], schema: Schema, base: str) -> Iterator[_UnplacedFinding]:
    relations = schema.relations_by_name
    for edge in edges:
        if not edge.single or not edge.types or any(name.text not in relations for name in edge.types):
            continue
        if any(label not in schema.node_types and label != base for label in (*edge.head.names, *edge.tail.names)):
            continue
        of = [relations[name.text] for name in edge.types]
        if base:
            of = [replace(each, domain=(*each.domain, base), range=(*each.range, base)) for each in of]
        if edge.directed and all(relation.symmetric for relation in of):
            name = edge.types[0]
            message = (
                f"edges of {name.text!r} are undirected and lead both ways; match them without an arrow head, as in "
                f"-[:{name.text}]-, and count them as count(DISTINCT r)"
            )
            yield _UnplacedFinding("direction", name, message)
            continue
        if any(_fits(relation, edge.head.names, edge.tail.names, edge.directed) for relation in of):
            continue
        relation, name = of[0], edge.types[0]
        arrow = "-" if relation.symmetric else "->"
        stored = f"({'|'.join(relation.domain)})-[:{relation.name}]{arrow}({'|'.join(relation.range)})"
        if any(_fits(relation, edge.tail.names, edge.head.names, True) for relation in of):
            yield _UnplacedFinding(
                "direction", name, f"{relation.name!r} points the other way: {stored}; turn the arrow round"
            )
        else:
            ends = f"{'|'.join(edge.head.names) or 'any'} to {'|'.join(edge.tail.names) or 'any'}"
            yield _UnplacedFinding("direction", name, f"no {relation.name!r} goes from {ends}; the graph has {stored}")


def _fits(relation: RelationSchema, head: tuple[str, ...], tail: tuple[str, ...], directed: bool) -> bool:
    forward = _end_fits(head, relation.domain) and _end_fits(tail, relation.range)
    return forward or (not directed and _end_fits(tail, relation.domain) and _end_fits(head, relation.range))


def _end_fits(asked: tuple[str, ...], stored: tuple[str, ...]) -> bool:
    """True if a node with one of the labels may stand at an end; always True without labels."""
    return not asked or not any(stored) or len(asked) > _MOST or any(label in stored for label in asked)


def _iris(uses: tuple[IriUse, ...], known: list[str], kind: Kind, what: str) -> Iterator[_UnplacedFinding]:
    iris = [name for name in known if "://" in name or name.startswith("urn:")]
    if not iris:
        return
    locals_ = {iri: _local(iri) for iri in iris}
    by_local: dict[str, list[str]] = {}
    for iri, local in locals_.items():
        by_local.setdefault(local, []).append(iri)
    for use in uses:
        if use.iri in locals_ or use.iri.startswith(_STANDARD_VOCABULARIES):
            continue
        name = Name(use.iri, use.start)
        if same := by_local.get(_local(use.iri)):
            yield _UnplacedFinding(kind, name, f"this graph has no {what} <{use.iri}>, but <{same[0]}>", tuple(same))
            continue
        near = nearest_names(_local(use.iri), by_local)
        close = tuple(iri for local in near for iri in by_local[local])[:3]
        hint = f"; nearest: {', '.join(f'<{iri}>' for iri in close)}" if close else ""
        yield _UnplacedFinding(kind, name, f"this graph has no {what} <{use.iri}>{hint}", close)


def _local(iri: str) -> str:
    """Return the part of an IRI behind the last # or /."""
    return iri.rstrip("#/").replace("#", "/").rpartition("/")[2]


_IRI = re.compile(r"<([^<>\s]+)>")

_QUOTES = re.compile(r"""^(?:'{3}|"{3}|'|")|(?:'{3}|"{3}|'|")$""")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)

_EVERYWHERE = ("id", "name")
"""Properties that an embedded Cypher engine gives every node."""


def strings_in(language: Language, text: str) -> list[str]:
    """Return the texts that stand between quotes in a query, unescaped, each once, in order.

    Raises:
        QueryRefused: the text cannot be read.
    """
    tokens, _ = read(text, tokenise_cypher if language == "cypher" else tokenise_sparql)
    return list(dict.fromkeys(unquoted(token.text) for token in tokens if token.key == "string"))


def unquoted(text: str) -> str:
    """Return the value of a literal: its quotes removed, its escapes read."""
    return _ESCAPE.sub(_character, _QUOTES.sub("", text))


def _character(escape: re.Match[str]) -> str:
    return {"n": "\n", "r": "\r", "t": "\t"}.get(escape[1], escape[1])


class LintedStore(Protocol):
    """Part of `GraphStore` and `QueryStore` that the linter needs."""

    @property
    def language(self) -> Language:
        """Return the query language."""

    def schema(self) -> Schema:
        """Return node types and the relations between them."""


class LintedRdfStore(LintedStore, Protocol):
    """Part of an RDF store that the linter needs."""

    @property
    def prefixes(self) -> Prefixes:
        """Return how IRIs and labels turn into each other."""

    @property
    def relation_iris(self) -> Sequence[str]:
        """Return the IRIs of the relations."""

    @property
    def naming_iris(self) -> Sequence[str]:
        """Return the IRIs of predicates of names and classes."""

    @property
    def class_iris(self) -> Sequence[str]:
        """Return the IRIs of the classes."""


def lint_query(store: LintedStore, text: str) -> list[Finding]:
    """Find names in a query that its graph does not have, and steps against a relation's direction.

    An engine answers such a query with no rows and no error. Names missing from a sampled schema are no findings, or
    are marked as uncertain.

    Args:
        store: the query's graph. Its schema is read on first use.
        text: a query that passed the guard.

    Returns:
        Findings in the order of the text, each with the nearest existing names.

    Raises:
        QueryRefused: the text cannot be parsed.
        StoreUnavailable: the schema could not be read.
    """
    if store.language == "sparql":
        return list(_sparql(cast(LintedRdfStore, store), text))
    schema = store.schema()
    # Labels and relation types of a sampled schema are from the server's own lists.
    uncertain = ("property", "direction") if schema.sampled else ()
    return [finding for finding in _cypher(store, schema, text) if finding.kind not in uncertain]


def _cypher(store: LintedStore, schema: Schema, text: str) -> list[Finding]:
    everywhere: tuple[str, ...] = ()
    if base := getattr(store, "base_label", ""):
        keys = (getattr(store, key, "") for key in ("id_property", "name_key"))
        everywhere = tuple(dict.fromkeys((*_EVERYWHERE, *filter(None, keys))))
    elif identity := getattr(store, "id_property", None):
        everywhere = (identity,)
    return lint_cypher(text, schema, everywhere, base)


def _sparql(store: LintedRdfStore, text: str) -> Iterator[Finding]:
    schema, prefixes = store.schema(), store.prefixes
    try:
        sent = complete(text, {}, prefixes)
    except QueryInvalid:  # the engine's own message is better
        return
    labels = {name for names in schema.node_properties.values() for name in names}
    labels |= {name for relation in schema.relations for name in relation.properties}
    known = [*store.relation_iris, *store.naming_iris, *map(prefixes.expand, sorted(labels))]
    relations = tuple(RelationSchema(iri, 1, (), ()) for iri in dict.fromkeys(known))
    for finding in lint_sparql(sent.text, Schema(dict.fromkeys(store.class_iris, 1), relations, {})):
        line, column = sent.written(finding.line, finding.column)
        message = _spelled(finding.message, prefixes)
        if schema.sampled:
            message += " (as far as a sample of the graph shows)"
        nearest = tuple(prefixes.spelled(iri) for iri in finding.nearest)
        name = prefixes.spelled(finding.name)
        yield replace(finding, name=name, line=line, column=column, message=message, nearest=nearest)


def _spelled(message: str, prefixes: Prefixes) -> str:
    """Write the IRIs in a message as a query would."""
    return _IRI.sub(lambda found: prefixes.spelled(found[1]), message)
