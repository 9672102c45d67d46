"""The kind of answer that a question names: «which publisher» is answered by publishers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache

from byokg.graph.property_view import is_value
from byokg.graph.store import GraphStore
from byokg.operators.reading import read
from byokg.operators.words import idea
from byokg.questions import read_question
from byokg.text import related, split_label, split_words
from byokg.types import EntityId, Mention

_LOOKED_AT = 20
"""Nodes whose types say what kind a path leads to: evenly spread over their ids, whatever order they come in."""


class Kinds:
    """Compares the noun that a question asks for with the types of nodes.

    Args:
        store: the graph; one without types has nothing to compare.
        by_need: compare with the types of the nodes at hand, and not with all types of the schema, for which a server
            looks at its whole graph.
    """

    def __init__(self, store: GraphStore, by_need: bool = False) -> None:
        self._store = store
        self._by_need = by_need
        self._nouns = lru_cache(1 << 10)(_nouns)
        self.named = lru_cache(1 << 10)(lambda noun: _named(noun, self._types))
        """Return the type, of all that the graph has, that a noun names; empty where none has such a name."""
        self.led_to = lru_cache(1 << 10)(lambda noun: _named(noun, self._relations))
        """Return the relation whose tails a noun names, in a graph in files without types; else empty."""

    def asked(self, text: str, mentions: tuple[Mention, ...], ends: Iterable[Sequence[EntityId]]) -> str:
        """Return the type that a question asks for, by its noun; empty where there is none of that name.

        Args:
            text: the question.
            mentions: what it names.
            ends: where the paths to choose from lead: the nodes at hand.
        """
        nouns = self._nouns(text, mentions)
        if not nouns:
            return ""
        types = self._types_of(ends) if self._by_need else None
        found = (self.named(noun) if types is None else _named(noun, types) for noun in nouns)
        return next(filter(None, found), "")

    @cached_property
    def _types(self) -> Mapping[str, Sequence[str]]:
        return _worded(self._store.schema().node_types)

    @cached_property
    def _relations(self) -> Mapping[str, Sequence[str]]:
        return {} if self._by_need or self._types else _worded(self._store.relations)

    def _types_of(self, ends: Iterable[Sequence[EntityId]]) -> Mapping[str, Sequence[str]]:
        looked_at = dict.fromkeys(end for some in ends for end in _spread(some) if not is_value(end))
        return _worded(sorted({node.type for node in self._store.nodes(list(looked_at))}))

    def only(self, ends: Sequence[EntityId], kind: str) -> tuple[EntityId, ...]:
        """Return the nodes that are of a type; all, where none is, or some are values."""
        if not kind or any(map(is_value, ends)):
            return tuple(ends)
        return self.among(ends, kind) or tuple(ends)

    def fits(self, ends: Sequence[EntityId], kind: str) -> bool:
        """Tell whether a third of some nodes are of a type, and at least as many as are of others or are values."""
        some = _spread(ends)
        types = [node.type for node in self._store.nodes([end for end in some if not is_value(end)])]
        of_it, typed = types.count(kind), len(some) - types.count("")
        return of_it > 0 and 3 * of_it >= len(some) and 2 * of_it >= typed

    def among(self, ends: Sequence[EntityId], kind: str) -> tuple[EntityId, ...]:
        """Return the nodes that are of a type, in their order."""
        nodes = [end for end in ends if not is_value(end)]
        return tuple(node.id for node in self._store.nodes(nodes) if node.type == kind)


def _spread(ends: Sequence[EntityId]) -> Sequence[EntityId]:
    """Return some of many nodes."""
    if len(ends) <= _LOOKED_AT:
        return ends
    by_id = sorted(ends)
    return [by_id[place * len(by_id) // _LOOKED_AT] for place in range(_LOOKED_AT)]


def _worded(types: Iterable[str]) -> dict[str, list[str]]:
    """Return the words of each type."""
    return {name: split_words(split_label(name)) for name in types if name}


def _nouns(text: str, mentions: tuple[Mention, ...]) -> tuple[str, ...]:
    """Return the nouns that may name what is asked for, the likeliest first."""
    demand = read(text, mentions)
    if demand.count and demand.counted:
        return (demand.counted,)
    reading, nouns = read_question(demand.rest, mentions), list[str]()
    for place in reversed(reading.focus or reading.headed):
        if reading.words[place + 1 : place + 2] == ("s",):  # which country's capital
            break
        nouns.append(reading.words[place])
    return tuple(nouns)


def _named(noun: str, types: Mapping[str, Sequence[str]]) -> str:
    """Return the first type that a noun names; empty where it names none."""
    noun = idea("count")["singular"].get(noun, noun)
    for name, words in types.items():
        if words and (noun == words[-1] or (len(noun) > 3 and related(noun, words[-1]))):
            return name
    return ""
