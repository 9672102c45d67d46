"""Following proposed metapaths to their ends."""

from __future__ import annotations

from collections.abc import Sequence

from byokg.errors import ConfigError
from byokg.graph.store import GraphStore
from byokg.graph.traversal import Walks, follow_metapath
from byokg.retrieval.base import Request
from byokg.types import INVERSE, EntityId, Metapath, PathEvidence, ProposedPath


class PathRetriever:
    """Walks each proposed metapath out of the entity it starts from, or out of every linked one.

    Of a metapath whose directions are a guess, every combination of directions that reaches something is followed,
    the written directions first at each hop.

    Args:
        store: graph to walk.
        max_ends: ends kept for one metapath, those of most walks first.
        shown: ends for which a concrete walk is kept.
        hub_cap: edges to walk out of one node at each hop; None walks all.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Path Retrieval".
    Differs: walks never come back to a linked entity, since a topic entity is no answer.
    """

    def __init__(self, store: GraphStore, max_ends: int = 10_000, shown: int = 3, hub_cap: int | None = None) -> None:
        for name, value in (("max_ends", max_ends), ("shown", shown)):
            if value < 1:
                raise ConfigError(f"{name}={value} keeps nothing; use 1 or more")
        self._store = store
        self._max_ends = max_ends
        self._shown = shown
        self._hub_cap = hub_cap

    def retrieve(self, request: Request) -> list[PathEvidence]:
        """Return one item for each metapath and start that reaches something, in the order proposed.

        Raises:
            EntityNotFound: a metapath starts at an entity that is not in the store.
            RelationNotFound: a metapath names a relation that is not in the store.
        """
        entities = request.linked.entities
        found = []
        for path in request.artifacts.paths:
            sources = [path.source] if path.source is not None else list(dict.fromkeys(one.id for one in entities))
            for source in sources:
                mention = {one.mention for one in entities if one.id == source}
                avoid = [source, *(one.id for one in entities if one.mention not in mention)]
                for relations, walks in self._followed(path, source, avoid):
                    ends = walks.ends[: self._max_ends]
                    found.append(
                        PathEvidence(
                            retriever="path",
                            score=path.score,
                            source=source,
                            relations=relations,
                            ends=tuple(self._store.ids(ends)),
                            paths=tuple(walks.paths(ends[: self._shown])),
                            truncated=walks.truncated or len(ends) < len(walks.ends),
                        )
                    )
        return found

    def _followed(
        self, path: ProposedPath, source: EntityId, avoid: Sequence[EntityId]
    ) -> list[tuple[Metapath, Walks]]:
        """Return what a path leads to: the walks of each choice of directions that ends somewhere."""

        def walk(way: Metapath) -> Walks:
            return follow_metapath(self._store, [source], way, hub_cap=self._hub_cap, avoid=avoid)

        if path.directed:
            walks = walk(path.relations)
            return [(path.relations, walks)] if len(walks.ends) else []
        reached: dict[Metapath, Walks] = {}
        ways: list[Metapath] = [()]
        for step in path.relations:
            walked = {way: walk(way) for before in ways for way in ((*before, step), (*before, _turned(step)))}
            reached = {way: walks for way, walks in walked.items() if len(walks.ends)}
            ways = list(reached)
        return list(reached.items())


def _turned(step: str) -> str:
    return step.removeprefix(INVERSE) if step.startswith(INVERSE) else f"{INVERSE}{step}"
