"""Tying mentions to nodes of the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Literal

import numpy as np

from byokg.errors import ConfigError
from byokg.graph.name_index import name_index
from byokg.graph.store import GraphStore
from byokg.index.names import NameIndex
from byokg.types import Artifacts, Linked, LinkedEntity, Mention

_NAMESAKES = 1000
"""Nodes of one name among which those written just like the mention are looked for."""


class EntityLinker:
    """Finds the nodes that a mention may mean, best first, each mention apart.

    Args:
        store: the graph. Where there is no index of its names, one is made at the first mention not given by id.
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
        self._lock = Lock()

    @property
    def names(self) -> NameIndex:
        """Return the index over the names of all nodes, by node number."""
        with self._lock:  # threads that come while it is made wait, instead of making it again
            if self._names is None:
                self._names = name_index(self._store)
            return self._names

    def link(self, artifacts: Artifacts) -> Linked:
        """Link a round's mentions and draft answers."""
        return Linked(
            entities=self._all(artifacts.mentions),
            drafts=self._all(Mention(text) for text in artifacts.draft_answers),
        )

    def candidates(self, mention: Mention) -> tuple[LinkedEntity, ...]:
        """Return the nodes one mention may mean: those given, else exact matches, else fuzzy ones.

        Of exact matches, those written just like the mention come first, then those of lower node number.

        Raises:
            EntityNotFound: an id given with the mention is not in the store.
        """
        if mention.ids:
            return tuple(
                LinkedEntity(node.id, node.name, mention, "given", 1.0) for node in self._store.nodes(mention.ids)
            )
        names = self.names
        exact = names.exact(mention.text)[:_NAMESAKES].tolist()
        if exact:
            spelled = set(names.spelled(mention.text).tolist())
            exact.sort(key=lambda number: number not in spelled)
            return self._linked(mention, "exact", [(number, 1.0) for number in exact[: self._top_k]])
        (matches,) = names.search([mention.text], self._top_k, self._cutoff)
        return self._linked(mention, "fuzzy", [(match.owner, match.score) for match in matches])

    def _all(self, mentions: Iterable[Mention]) -> tuple[LinkedEntity, ...]:
        return tuple(candidate for mention in mentions for candidate in self.candidates(mention))

    def _linked(
        self, mention: Mention, method: Literal["exact", "fuzzy"], found: Sequence[tuple[int, float]]
    ) -> tuple[LinkedEntity, ...]:
        nodes = self._store.nodes(self._store.ids(np.array([number for number, _ in found], np.int64)))
        return tuple(
            LinkedEntity(node.id, node.name, mention, method, score)
            for node, (_, score) in zip(nodes, found, strict=True)
        )
