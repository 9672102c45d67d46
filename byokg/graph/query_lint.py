"""What a query asks of its graph that the graph does not have, for any store: `lint`, fed with what the store knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from byokg.errors import QueryInvalid, QueryRefused
from byokg.graph.iris import Prefixes
from byokg.graph.lint import Finding, Kind, lint_cypher, lint_sparql
from byokg.graph.sparql_store import SparqlStore
from byokg.graph.sparql_text import complete
from byokg.graph.store import RelationSchema, Schema
from byokg.graph.syntax.cypher_tokens import tokenise_cypher
from byokg.graph.syntax.sparql_tokens import tokenise_sparql
from byokg.graph.syntax.tokens import Unreadable, place
from byokg.types import Language

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
    try:
        tokens, _ = (tokenise_cypher if language == "cypher" else tokenise_sparql)(text)
    except Unreadable as error:
        raise QueryRefused(error.found, *place(text, error.start), error.reason) from None
    written = (token.text for token in tokens if token.key == "string")
    return list(dict.fromkeys(_ESCAPE.sub(_character, _QUOTES.sub("", text)) for text in written))


def _character(escape: re.Match[str]) -> str:
    return {"n": "\n", "r": "\r", "t": "\t"}.get(escape[1], escape[1])


class LintedStore(Protocol):
    """What is asked of a store: `GraphStore` and `QueryStore` have it."""

    @property
    def language(self) -> Language:
        """Say in which language queries are written."""

    def schema(self) -> Schema:
        """Return node types and the relations between them."""


def lint_query(store: LintedStore, text: str) -> list[Finding]:
    """Find names in a query that its graph does not have, and steps against a relation's direction.

    An engine answers such a query with no rows and no error. What only a sample of the graph was looked at for is not
    held against a query, or said to be so; nor are directions where nodes have several labels, of which a schema names
    one.

    Args:
        store: what the query is for. Its schema is read if it was not before.
        text: one that the guard lets through.

    Returns:
        Findings in the order of the text, each with the nearest names there are.

    Raises:
        QueryRefused: the text cannot be parsed.
        StoreUnavailable: the schema could not be read.
    """
    if isinstance(store, SparqlStore):
        return list(_sparql(store, text))
    schema = store.schema()
    return [finding for finding in _cypher(store, schema, text) if finding.kind not in _uncertain(store, schema)]


def _cypher(store: LintedStore, schema: Schema, text: str) -> list[Finding]:
    everywhere: tuple[str, ...] = ()
    if base := getattr(store, "base_label", None):
        # Every node of an embedded engine has this label besides its own one. Of thousands of relations few are asked.
        relations = [
            replace(relation, domain=(*relation.domain, base), range=(*relation.range, base))
            if relation.name.replace("`", "``") in text
            else relation
            for relation in schema.relations
        ]
        schema = replace(schema, relations=tuple(relations), node_types={**schema.node_types, base: 0})
        everywhere = _EVERYWHERE
    elif identity := getattr(store, "id_property", None):
        everywhere = (identity,)
    return lint_cypher(text, schema, everywhere)


def _uncertain(store: LintedStore, schema: Schema) -> set[Kind]:
    """Return the kinds of finding that the schema of a Cypher store is no ground for."""
    if schema.sampled:
        return {"property", "direction"}  # labels and relation types come from the server's own lists
    several = sum(schema.node_types.values()) > getattr(store, "node_count", 0)
    return {"direction"} if several else set()


def _sparql(store: SparqlStore, text: str) -> Iterator[Finding]:
    schema, prefixes = store.schema(), store.prefixes
    try:
        sent = complete(text, {}, prefixes)
    except QueryInvalid:  # the engine says better what is wrong
        return
    labels = {name for names in schema.node_properties.values() for name in names}
    labels |= {name for relation in schema.relations for name in relation.properties}
    known = [*store.relation_iris, *map(prefixes.expand, sorted(labels))]
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
