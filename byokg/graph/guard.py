"""The guard: decides whether query text only reads, before any engine sees it.

Every `QueryStore` runs `check_cypher(text).text` or `check_sparql(text).text`, never the text it was given: comments
are gone from it, and what engines could read in two ways has been written in one. The guard is strict: it parses the
text, and refuses what it does not understand. It needs no schema; `lint_cypher` and `lint_sparql` compare a query
with one, and refuse nothing.

What it cannot know is what an engine's procedures really do, so those go by a list (`graph.syntax.names`); and it
does not bound time or memory, which are the engine's to bound.

Decisions:
- Only SPARQL's SELECT and ASK pass: CONSTRUCT and DESCRIBE answer with a graph, for which rows have no place.
- FROM and FROM NAMED are refused like SERVICE, since some engines fetch the document named; GRAPH does the same job.
- A UNION, and a query that ends without RETURN, gets no LIMIT: it would bind to the last part only, and wrapping the
  whole in a subquery reorders columns. The store's own row cap applies.
- Plain unknown functions are the engine's to refuse; unknown functions with a namespace may be plug-ins and are not let
  through.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from byokg.errors import QueryRefused
from byokg.graph.lint import Finding, lint_cypher, lint_sparql
from byokg.graph.syntax.cypher import parse_cypher
from byokg.graph.syntax.sparql import parse_sparql
from byokg.graph.syntax.tokens import Unreadable, apply, place, readings, shortened

__all__ = ["CheckedQuery", "Finding", "check_cypher", "check_sparql", "lint_cypher", "lint_sparql"]

T = TypeVar("T")


@dataclass(frozen=True)
class CheckedQuery:
    """A query that only reads."""

    text: str
    """What to hand to the engine: no comments, no semicolon at the end, a LIMIT where one was added."""
    limit_added: bool = False
    """The guard added the LIMIT; where it could not, or there was one, only the store's own row cap applies."""


def check_cypher(text: str, row_cap: int | None = None) -> CheckedQuery:
    """Check that openCypher text is one query that only reads.

    Args:
        text: the query, as a person or a language model wrote it.
        row_cap: add ``LIMIT row_cap`` to a final RETURN that has none; ask for one row more than wanted to learn
            whether there were more. None adds nothing.

    Raises:
        QueryRefused: it is not; the error says which part, where, and what to write instead.
    """
    query = _read(text, parse_cypher)
    clean = apply(text, query.edits).rstrip(" \t\r\n;")
    if row_cap is None or not query.open_ended:
        return CheckedQuery(clean)
    return CheckedQuery(f"{clean} LIMIT {row_cap:d}", limit_added=True)


def check_sparql(text: str, row_cap: int | None = None) -> CheckedQuery:
    """Check that SPARQL text is one SELECT or ASK query that stays within its store.

    Args:
        text: the query, as a person or a language model wrote it.
        row_cap: add ``LIMIT row_cap`` to a SELECT that has none; ask for one row more than wanted to learn whether
            there were more. None adds nothing.

    Raises:
        QueryRefused: it is not; the error says which part, where, and what to write instead.
    """
    query = _read(text, parse_sparql)
    at = query.limit_at
    if row_cap is None or at is None:
        return CheckedQuery(apply(text, query.edits).rstrip(" \t\r\n;"))
    before = apply(text[:at], [edit for edit in query.edits if edit.stop <= at]).rstrip(" \t\r\n;")
    after = apply(text, [edit for edit in query.edits if edit.stop > at])[at:].rstrip(" \t\r\n;")
    return CheckedQuery(f"{before} LIMIT {row_cap:d} {after}".rstrip(), limit_added=True)


def _read(text: str, parse: Callable[[str], T]) -> T:
    """Parse a text in every way an engine may read it; what is forbidden in one is refused.

    A reading that is merely wrong does not count: the engine is handed text that has the first reading only.
    """
    try:
        query = parse(text)
        for reading in readings(text):
            try:
                parse(reading)
            except Unreadable as error:
                if error.forbidden:
                    raise Unreadable(
                        error.found,
                        min(error.start, len(text)),
                        f"with its escapes and line ends read as some engines do: {error.reason}",
                        True,
                    ) from None
    except Unreadable as error:
        line, column = place(text, error.start)
        raise QueryRefused(error.found, line, column, error.reason) from None
    except RecursionError:
        raise QueryRefused(shortened(text), 1, 1, "nested too deep to be read; write the query flatter") from None
    return query
