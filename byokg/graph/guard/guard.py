"""The guard: decides whether query text only reads, before any engine sees it.

Every `QueryStore` runs `check_cypher(text).text` or `check_sparql(text).text`, never the text it was given: comments
are gone from it, and what engines could read in two ways has been written in one. The guard is strict: it parses the
text, and refuses what it does not understand. It needs no schema; `lint_cypher` and `lint_sparql` compare a query
with one, and refuse nothing.

What it cannot know is what an engine's procedures really do, so those go by a list (`allowlist.toml`); and it
does not bound time or memory, which are the engine's to bound.

Decisions:
- SPARQL's CONSTRUCT and DESCRIBE, which answer with a graph, are handed on as the SELECT of the same triples.
- FROM may name graphs, but no files, and no addresses within a network: some servers fetch the document named.
- EXPLAIN, PROFILE and options such as ``CYPHER 25`` are taken away: an answer is wanted, and no plan.
- A UNION, and a query that ends without RETURN, gets no LIMIT: it would bind to the last part only, and wrapping the
  whole in a subquery reorders columns. The store's own row cap applies, as it does to a LIMIT that is computed.
- Plain unknown functions are the engine's to refuse; unknown functions with a namespace may be plug-ins and are not let
  through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from byokg.graph.guard.cypher import parse_cypher
from byokg.graph.guard.sparql import parse_sparql
from byokg.graph.guard.tokens import Edit, RowLimit, Unreadable, apply, read, readings

T = TypeVar("T")


@dataclass(frozen=True)
class CheckedQuery:
    """A query that only reads."""

    text: str
    """What to hand to the engine: no comments, no semicolon at the end, no higher LIMIT than asked for."""
    capped: bool = False
    """The guard added a LIMIT, or lowered it; elsewhere only the store's own row cap applies."""


def check_cypher(text: str, row_cap: int | None = None) -> CheckedQuery:
    """Check that openCypher text is one query that only reads.

    Args:
        text: the query, as a person or a language model wrote it.
        row_cap: highest LIMIT of a final RETURN, added where there is none; ask for one row more than wanted to
            learn whether there were more. None changes nothing.

    Raises:
        QueryRefused: it is not; the error says which part, where, and what to write instead.
    """
    query = read(text, lambda text: _parse(text, parse_cypher))
    return _checked(text, query.edits, query.limit, row_cap)


def check_sparql(text: str, row_cap: int | None = None) -> CheckedQuery:
    """Check that SPARQL text is one query that only reads and stays within its store.

    Args:
        text: the query, as a person or a language model wrote it.
        row_cap: highest LIMIT, added where there is none; ask for one row more than wanted to learn whether there
            were more. None changes nothing.

    Raises:
        QueryRefused: it is not; the error says which part, where, and what to write instead.
    """
    query = read(text, lambda text: _parse(text, parse_sparql))
    return _checked(text, query.edits, query.limit, row_cap)


def _checked(text: str, edits: Sequence[Edit], limit: RowLimit | None, row_cap: int | None) -> CheckedQuery:
    """Write a query as it is handed on."""
    capped = row_cap is not None and limit is not None and (limit.rows is None or limit.rows > row_cap)
    if limit is not None and capped:
        written = f" LIMIT {row_cap:d}" if limit.rows is None else f"{row_cap:d}"
        edits = sorted([*edits, Edit(limit.start, limit.stop, written)], key=lambda edit: edit[:2])
    return CheckedQuery(apply(text, edits).rstrip(" \t\r\n;"), capped)


def _parse(text: str, parse: Callable[[str], T]) -> T:
    """Parse a text in every way an engine may read it; what is forbidden in one is refused.

    A reading that is merely wrong does not count: the engine is handed text that has the first reading only.
    """
    query = parse(text)
    for reading in readings(text):
        try:
            parse(reading)
        except Unreadable as error:
            if error.forbidden:
                reason = f"with its escapes and line ends read as some engines do: {error.reason}"
                raise Unreadable(error.found, min(error.start, len(text)), reason, True) from None
    return query
