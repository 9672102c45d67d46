"""The connection of a SPARQL store to its engine: an endpoint, or an engine in a process of this machine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from byokg.graph.guard.sparql import Sent
from byokg.graph.servers import sparql_text as sparql
from byokg.graph.servers.sparql_text import Binding, SparqlResult
from byokg.graph.store import QueryLimits

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_ROWS = 100_000
"""Rows of an answer."""


class SparqlClient(ABC):
    """Sends query text to one RDF graph. Its attributes decide how a store writes and divides its queries."""

    batch = 1000
    """Nodes per request."""
    lookup = sparql.PLAIN
    joins = joins_all = False
    """Whether the engine gives the edges of some nodes, or of all, faster as one text than row by row."""
    repeats = False
    """True if a triple may stand in several graphs."""
    samples_predicates = False
    """True if one triple of each predicate is found faster than all objects."""

    def __init__(self, name: str, timeout_s: float, key: Sequence[object] = ()) -> None:
        """Begin.

        Args:
            name: the graph, for messages.
            timeout_s: limit of each request of the traversal.
            key: identity of the graph, for caches; empty takes the name.
        """
        self.name, self.timeout_s = name, timeout_s
        self.key = tuple(key) or (name,)

    @abstractmethod
    def select(
        self, variables: str, where: str, timeout_s: float, page: tuple[int, int | None] | None = None
    ) -> tuple[Sequence[Binding], bool]:
        """Run a query of ours and return its rows, and whether they are all there are.

        `page` asks for so many rows from some offset on, in order, or with the offset None for any of them.
        """

    @abstractmethod
    def query(self, query: Sent, limits: QueryLimits) -> SparqlResult:
        """Run a checked query of a user and return up to one row more than allowed."""

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterable[Result]:
        """Do something for each item, perhaps several at a time, and return the results in order."""
        return [work(item) for item in items]

    def settle(self, timeout_s: float | None) -> bool:
        """Adapt to the server after the first answer; True if it reads other graphs from now on."""
        return False

    def page_rows(self) -> int:
        """Return how many rows one request may give."""
        return MOST_ROWS

    def sortable_rows(self, problem: str, wanted: int) -> int:
        """Return how many rows the engine sorts if it refused to sort more; 0 if that was not the problem."""
        return 0

    def fingerprint(self) -> str | None:
        """Return a mark that a change of the graph changes; None if the engine gives none quickly."""
        return None

    def close(self) -> None:  # noqa: B027
        """Release connections and processes."""
