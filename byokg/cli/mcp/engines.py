"""Query engines that start while a server does other things; little is imported, so that they start at once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from byokg.graph.cancellation import check
from byokg.types import Language

if TYPE_CHECKING:
    from byokg.graph.store import QueryStore


class StartingEngine:
    """A query engine that starts in the background; earlier calls wait for it.

    Args:
        language: of its queries.
        start: starts it, and runs a query, so that the first call finds it warm.
    """

    def __init__(self, language: Language, start: Callable[[], QueryStore]) -> None:
        self.language = language
        self._pool = ThreadPoolExecutor(1, "engine-start")
        self._engine = self._pool.submit(start)
        self._pool.shutdown(wait=False)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the engine."""
        while not self._engine.done():
            check()
            with contextlib.suppress(TimeoutError):
                self._engine.result(0.1)
        return getattr(self._engine.result(), name)

    def close(self) -> None:
        """End it; one that is still starting is ended with this process."""
        if self._engine.done() and self._engine.exception() is None:
            self._engine.result().close()  # type: ignore[attr-defined]
