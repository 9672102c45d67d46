"""What stores promise that run query text: the second graph role, beside `GraphStore`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeGuard

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


def takes_queries(store: GraphStore) -> TypeGuard[QueryableGraph]:
    """Tell whether a graph also runs query text."""
    return callable(getattr(store, "run", None))
