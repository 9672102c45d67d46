"""Tying mentions to nodes of the graph."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from byokg.errors import ConfigError
from byokg.graph.store import GraphStore
from byokg.index.names import NameIndex
from byokg.types import Artifacts, Linked, LinkedEntity, Mention


class EntityLinker:
    """Finds the nodes that a mention may mean, best first, each mention apart.

    Args:
        store: the graph; all of its names are read once, at the first mention that is not given by id.
        top_k: nodes for one mention at most.
        cutoff: lowest score of a fuzzy match, in [0, 1].

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Entity Linking"; m = 3 there and here.
    """

    def __init__(self, store: GraphStore, top_k: int = 3, cutoff: float = 0.86) -> None:
        if top_k < 1:
            raise ConfigError(f"top_k={top_k} links nothing; use 1 or more")
        if not 0 <= cutoff <= 1:
            raise ConfigError(f"cutoff={cutoff} is no share; use a number from 0 to 1")
        self._store = store
        self._top_k = top_k
        self._cutoff = cutoff
        self._names: NameIndex | None = None

    @property
    def names(self) -> NameIndex:
        """Return the index over the names of all nodes, by node number."""
        if self._names is None:
            ids = list(self._store.entities())
            self._names = NameIndex([node.name for node in self._store.nodes(ids)])
        return self._names

    def link(self, artifacts: Artifacts) -> Linked:
        """Link a round's mentions and draft answers."""
        return Linked(
            entities=self._all(artifacts.mentions),
            drafts=self._all(Mention(text) for text in artifacts.draft_answers),
        )

    def candidates(self, mention: Mention) -> tuple[LinkedEntity, ...]:
        """Return the nodes one mention may mean: those given, else exact matches, else fuzzy ones.

        Raises:
            EntityNotFound: an id given with the mention is not in the store.
        """
        if mention.ids:
            return tuple(
                LinkedEntity(node.id, node.name, mention, "given", 1.0) for node in self._store.nodes(mention.ids)
            )
        exact = self.names.exact(mention.text)[: self._top_k]
        if len(exact):
            return self._linked(mention, "exact", exact.tolist(), [1.0] * len(exact))
        matches = self.names.fuzzy(mention.text, self._top_k, self._cutoff)[: self._top_k]
        return self._linked(mention, "fuzzy", [match.position for match in matches], [match.score for match in matches])

    def _all(self, mentions: Iterable[Mention]) -> tuple[LinkedEntity, ...]:
        return tuple(candidate for mention in mentions for candidate in self.candidates(mention))

    def _linked(
        self, mention: Mention, method: str, numbers: list[int], scores: list[float]
    ) -> tuple[LinkedEntity, ...]:
        nodes = self._store.nodes(self._store.ids(np.array(numbers, np.int64)))
        return tuple(
            LinkedEntity(node.id, node.name, mention, method, score) for node, score in zip(nodes, scores, strict=True)
        )
