"""What stores promise that run query text: the second graph role, beside `GraphStore`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard, runtime_checkable

from byokg.graph.store import GraphStore
from byokg.types import Cell, Language


@dataclass(frozen=True)
class Limits:
    """What one query may use; every store enforces all of it."""

    timeout_s: float = 10.0
    """Wall time; a query that takes longer ends as `QueryTimeout` at most a second later."""
    max_rows: int = 1000
    """Rows returned; `Rows.truncated` says that there were more."""


@dataclass(frozen=True)
class Rows:
    """The answer to a query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    truncated: bool = False

    def __len__(self) -> int:
        return len(self.rows)


class QueryStore(Protocol):
    """Runs query text. A store that cannot does not have these."""

    @property
    def language(self) -> Language:
        """Say which language `run` takes."""

    @property
    def notes(self) -> str:
        """Say what a query's writer has to know besides the schema, in lines; empty where that is nothing."""

    def run(self, text: str, parameters: Mapping[str, Cell] | None = None, limits: Limits | None = None) -> Rows:
        """Run one reading query. `graph.guard` checks the text first, whatever safety the engine has of its own.

        Raises:
            QueryRefused: the text is not one reading query; says which part, where, and what to do instead.
            QueryInvalid: the engine does not understand it.
            QueryTimeout: it took longer than the limits allow.
            QueryTooLarge: it needed more memory than the store allows.
            StoreUnavailable: the store could not be reached (`retryable`).
        """


class QueryableGraph(GraphStore, QueryStore, Protocol):
    """A graph that can be walked and queried."""


@runtime_checkable
class ManyEngines(Protocol):
    """A graph that takes queries in several languages."""

    @property
    def engines(self) -> Sequence[QueryableGraph]:
        """Return what runs them, one for each language; all know the same nodes by the same ids."""


def takes_queries(store: GraphStore) -> TypeGuard[QueryableGraph]:
    """Tell whether a graph also runs query text."""
    return callable(getattr(store, "run", None))


def query_engines(store: GraphStore) -> tuple[QueryableGraph, ...]:
    """Return what runs queries over a graph, one for each language it takes; none where it takes no queries."""
    if isinstance(store, ManyEngines):
        return tuple(store.engines)
    return (store,) if takes_queries(store) else ()


def query_notes(store: GraphStore) -> str:
    """Return what the writer of a query has to know of a graph besides its schema."""
    return "".join(each.notes for each in query_engines(store))
