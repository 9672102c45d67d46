"""Nodes that were read lately, so that a question does not read them again: each of its stages names the same few."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from byokg.types import EntityId, Node


class NodeMemory:
    """Holds nodes by their ids; forgets all of them where they would be too many. Threads may share it.

    Args:
        read: fetches nodes, as `GraphStore.nodes` does.
        most: nodes held.
    """

    def __init__(self, read: Callable[[Sequence[EntityId]], list[Node]], most: int = 10_000) -> None:
        self._read = read
        self._most = most
        self._held: dict[EntityId, Node] = {}

    def __len__(self) -> int:
        """Return how many nodes are held."""
        return len(self._held)

    def nodes(self, ids: Sequence[EntityId]) -> list[Node]:
        """Return the nodes in the order asked, reading those that are not held. Raises what `read` raises."""
        held = self._held  # another thread may put a new one in its place; this one only grows
        missing = list(dict.fromkeys(id for id in ids if id not in held))
        if not missing:
            return [held[id] for id in ids]
        read = dict(zip(missing, self._read(missing), strict=True))
        found = [held.get(id) or read[id] for id in ids]
        if len(held) + len(read) > self._most:
            self._held = {}
        if len(read) <= self._most:
            self._held.update(read)
        return found
