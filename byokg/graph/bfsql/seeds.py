"""Seeds of a request: those that the graph has, and what to say of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from byokg.errors import EntityNotFound
from byokg.graph.bfsql.response import Json
from byokg.graph.store import GraphStore
from byokg.types import EntityId, Node

_HELPED = 20
"""Seeds that names are searched for: whoever has more unknown ones has no ids of this graph."""

_SHOWN = 80
"""Characters of a seed in a message."""

Nearest = Callable[[str], Sequence[Node]]
"""Finds nodes whose names are like a text, the most similar first."""


def known_seeds(store: GraphStore, seeds: Iterable[str], nearest: Nearest | None) -> tuple[list[EntityId], list[Json]]:
    """Return the seeds that are in the graph, each once, and an error for each other one (see `response.SeedError`).

    Args:
        store: the graph.
        seeds: ids, or what somebody took for ids.
        nearest: proposes nodes for the first few others; None proposes none.
    """
    asked = [EntityId(seed) for seed in dict.fromkeys(seeds)]
    lost: list[str] = []
    while True:
        try:
            store.numbers(asked)
            break
        except EntityNotFound as error:
            asked = [seed for seed in asked if seed != error.entity]
            lost.append(error.entity)
    return asked, [_seed_error(seed, nearest if at < _HELPED else None) for at, seed in enumerate(lost)]


def _seed_error(seed: str, nearest: Nearest | None) -> Json:
    """Say that a seed is not in the graph, and which nodes may have been meant."""
    found = [] if nearest is None else nearest(seed)
    step = "use the id of one of the nearest nodes" if found else "find ids with search_entities"
    return {
        "seed": seed,
        "message": f"no node has the id {seed[:_SHOWN]!r}; {step}",
        "nearest": [{"id": node.id, "entity_type": node.type, "name": node.name} for node in found],
    }
