"""A graph folder that answers queries in both languages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from byokg.errors import GraphError
from byokg.graph import oxigraph
from byokg.graph.arcadedb import ArcadeStore
from byokg.graph.oxigraph import OxigraphStore
from byokg.graph.query import Limits, QueryableGraph


class BothEngines(ArcadeStore):
    """A graph with both of its engines: openCypher by ArcadeDB, SPARQL by Oxigraph; implements `ManyEngines`.

    It is walked in its arrays, as every graph in a folder.
    """

    sparql: OxigraphStore

    @classmethod
    def open(cls, folder: str | Path, heap_mb: int = 1024, limits: Limits | None = None, memory_mb: int = 2048) -> Self:
        """Open a graph folder that has both engines.

        Args:
            folder: the folder of the graph.
            heap_mb: heap limit of ArcadeDB's Java machine.
            limits: what a query may use unless `run` is told otherwise.
            memory_mb: memory at which Oxigraph's process is stopped.

        Raises:
            GraphNotFound: there is no graph in `folder`.
            GraphError: it lacks an engine.
            GraphCorrupt: something in it cannot be read.
        """
        store = super().open(folder, heap_mb, limits)
        place = Path(folder) / oxigraph.FOLDER
        if not place.is_dir():
            raise GraphError(f"{store.name} has no SPARQL engine; build one: byokg graph engine {folder} --sparql")
        store.sparql = OxigraphStore(place, memory_mb=memory_mb)
        return store

    @property
    def engines(self) -> Sequence[QueryableGraph]:
        """Return what runs queries, openCypher first."""
        return (self, self.sparql)

    def close(self) -> None:
        """End the engines' processes."""
        super().close()
        self.sparql.close()
