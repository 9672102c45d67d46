"""The kind of answer that a question names: «which publisher» is answered by publishers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from byokg.graph.property_view import is_value
from byokg.graph.store import GraphStore
from byokg.operators.reading import read
from byokg.operators.words import idea
from byokg.questions import read_question
from byokg.text import related, split_label, split_words
from byokg.types import EntityId, Mention

_LOOKED_AT = 20
"""Nodes whose types say what kind a path leads to."""


class Kinds:
    """Compares the noun that a question asks for with the types of nodes.

    Args:
        store: the graph; one without types has nothing to compare.
    """

    def __init__(self, store: GraphStore) -> None:
        self._store = store
        self._types = {name: split_words(split_label(name)) for name in store.schema().node_types if name}
        self.asked = lru_cache(1 << 10)(self._asked)
        """Return the type that a question asks for, by its noun; empty where there is none of that name."""

    def _asked(self, text: str, mentions: tuple[Mention, ...]) -> str:
        if not self._types:
            return ""
        demand = read(text, mentions)
        if demand.count and demand.counted:
            return self.named(demand.counted)
        reading = read_question(demand.rest, mentions)
        for place in reversed(reading.focus):
            if reading.words[place + 1 : place + 2] == ("s",):  # which country's capital
                return ""
            found = self.named(reading.words[place])
            if found:
                return found
        return ""

    def named(self, noun: str) -> str:
        """Return the type that a noun names; empty where none has such a name."""
        noun = idea("count")["singular"].get(noun, noun)
        for name, words in self._types.items():
            if words and (noun == words[-1] or (len(noun) > 3 and related(noun, words[-1]))):
                return name
        return ""

    def only(self, ends: Sequence[EntityId], kind: str) -> tuple[EntityId, ...]:
        """Return the nodes that are of a type; all, where none is, or some are values."""
        if not kind or any(map(is_value, ends)):
            return tuple(ends)
        return tuple(node.id for node in self._store.nodes(ends) if node.type == kind) or tuple(ends)

    def fits(self, ends: Sequence[EntityId], kind: str) -> bool:
        """Tell whether at least half of some nodes are of a type."""
        nodes = self._store.nodes([end for end in ends[:_LOOKED_AT] if not is_value(end)])
        return sum(node.type == kind for node in nodes) * 2 >= max(1, len(ends[:_LOOKED_AT]))
