"""The door to a graph for notebooks and scripts: open or build one, look at a node, walk a relation path."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from byokg.graph.columnar import ColumnarGraph
from byokg.graph.importers import build_graph
from byokg.graph.places import close, open_graph, open_queryable
from byokg.graph.store import Direction, GraphStore, Schema
from byokg.graph.traversal import Walks, follow_metapath, neighbours, triples
from byokg.types import EntityId, Node, Triple


class KnowledgeGraph:
    """Asks any store about single entities by id; whatever asks for many uses `store` and `traversal`."""

    def __init__(self, store: GraphStore) -> None:
        self.store = store

    @classmethod
    def open(cls, place: str | Path, queries: bool = False) -> KnowledgeGraph:
        """Open a saved graph, or one on a server (see `places`). Raises what `open_graph` raises.

        With `queries`, the engine that was built into a folder is started (`byokg graph engine DIR --cypher`), so that
        pipelines can ask it; raises what `open_queryable` raises. A server is queried anyway.

        `close` a graph on a server or with an engine, or open it in a `with` statement.
        """
        return cls(open_queryable(place) if queries else open_graph(place))

    @classmethod
    def build(cls, source: str | Path, out: str | Path, overwrite: bool = False) -> KnowledgeGraph:
        """Import a file or folder (see `importers`), save it to `out`, and open that."""
        return cls(build_graph(source, out, overwrite))

    @classmethod
    def from_triples(cls, triples: Iterable[tuple[str, str, str]]) -> KnowledgeGraph:
        """Hold (head, relation, tail) triples in memory."""
        return cls(ColumnarGraph.from_triples(triples))

    def close(self) -> None:
        """Let go of a server's connections, or end an engine; a saved graph holds neither."""
        close(self.store)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def schema(self) -> Schema:
        """Return node types and relations with counts."""
        return self.store.schema()

    def node(self, entity: str) -> Node:
        """Return name, type and properties of one entity. Raises `EntityNotFound`."""
        return self.store.nodes([EntityId(entity)])[0]

    def triples(
        self, entity: str, direction: Direction = Direction.BOTH, relations: Collection[str] | None = None
    ) -> list[Triple]:
        """Return the edges touching one entity. Raises `EntityNotFound` or `RelationNotFound`."""
        return triples(self.store, neighbours(self.store, [EntityId(entity)], direction, relations))

    def follow(self, entity: str, metapath: Sequence[str]) -> Walks:
        """Walk a relation path out of one entity. Raises `EntityNotFound` or `RelationNotFound`."""
        return follow_metapath(self.store, [EntityId(entity)], metapath)
