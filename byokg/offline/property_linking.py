"""Which property of some nodes a question compares: by its name, among those of numbers and dates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from byokg.graph.store import ALL_VALUES, Direction, GraphStore
from byokg.index.embedders import Embedder, exact
from byokg.text.dates import read_date
from byokg.text.labels import LABEL_PARTS, split_label
from byokg.text.names import related, split_words
from byokg.types import EntityId, Node, Value


@dataclass(frozen=True)
class PropertyThresholds:
    """Thresholds of property linking."""

    similar: float = 0.4
    """Cosine from which a word means a property."""
    stem: float = 0.9
    """Similarity of a word that shares a stem with a property's name; an equal one has 1."""
    known: float = 0.5
    """Share of nodes with a property from which they are compared by it, unless a question names it."""
    named: float = 0.95
    """Similarity from which a question names a property."""
    values: int = 3
    """Values of one relation per node, if edges lead to values."""
    later: float = 0.02
    """Discount of each further word for a measure."""


_SETTINGS = PropertyThresholds()

_AGE = frozenset(("age", "aged", "ages"))


@dataclass(frozen=True)
class LinkedProperty:
    """A property, and its value for each node that has it."""

    name: str
    values: Mapping[EntityId, float]
    shown: Mapping[EntityId, Value]
    likeness: float
    dates: bool = False

    @property
    def age(self) -> bool:
        """True for an age, of which the oldest has the most, and not the earliest."""
        return not self.dates and not _AGE.isdisjoint(split_words(split_label(self.name)))


class PropertyLinker:
    """Links words of a question to properties.

    Args:
        embedder: compares words.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.likeness = lru_cache(1 << 14)(self._likeness)
        """Returns the similarity of a word and a property's name, in [-1, 1]."""
        self._vector = lru_cache(1 << 12)(self._encoded)

    def find(
        self, nodes: Sequence[Node], nouns: Sequence[str], dates: bool = False, least: int = 2
    ) -> LinkedProperty | None:
        """Return the property most similar to the nouns; None if none of the nodes' is similar.

        Args:
            nodes: compared nodes.
            nouns: words for the measure, the best first.
            dates: take a date if no name is like the nouns and there is just one date.
            least: number of the nodes, if there are as many, that must have it.
        """
        columns: dict[str, dict[EntityId, Value]] = {}
        for node in nodes:
            for key, value in node.properties.items():
                if not key.endswith(ALL_VALUES):
                    columns.setdefault(key, {})[node.id] = value
        best: LinkedProperty | None = None
        timed: list[LinkedProperty] = []
        for key, shown in columns.items():
            if len(shown) < min(least, len(nodes)) or measure(next(iter(shown.values()))) is None:
                continue
            likeness = max(
                (self.likeness(noun, key) - _SETTINGS.later * place for place, noun in enumerate(nouns)), default=-1.0
            )
            if likeness < _SETTINGS.named and len(shown) < _SETTINGS.known * len(nodes):
                continue
            if likeness < _SETTINGS.similar and not dates:
                continue
            values = _measures(shown)
            if values is None:
                continue
            is_date = all(looks_dated(value) for value in shown.values())
            found = LinkedProperty(key, values, shown, likeness, is_date)
            if is_date:
                timed.append(found)
            if likeness >= _SETTINGS.similar and (best is None or likeness > best.likeness):
                best = found
        if best is None and dates and len(timed) == 1:
            return timed[0]
        return best

    def _likeness(self, noun: str, name: str) -> float:
        words = split_words(split_label(name.rpartition(":")[2].replace("_", " ")))
        if noun in words:
            return 1.0
        stem = _SETTINGS.stem if any(related(noun, word) for word in words if len(word) > 3) else -1.0
        vector = self._vector(noun)
        return max(
            stem, *(float(self._vector(text) @ vector) for text in (" ".join(words), *words) if len(text) > 2), -1.0
        )

    def _encoded(self, text: str) -> npt.NDArray[np.float64]:
        return exact(self._embedder.encode([text])[0])


def described(store: GraphStore, nodes: Sequence[Node], least: int = 2) -> Sequence[Node]:
    """Return nodes with the numbers and dates behind edges among their properties.

    If values are nodes of their own, as in RDF and Freebase, `River -discharge-> 250` acts as a property.

    Args:
        store: the graph.
        nodes: its nodes.
        least: number of the nodes, if there are as many, that must have such edges of a relation.
    """
    numbers = np.asarray(store.numbers([node.id for node in nodes]), np.int64)
    counts = store.relation_counts(numbers)
    out = ~counts.inverse & (counts.count <= _SETTINGS.values)
    having = np.bincount(counts.relation[out], minlength=len(store.relations))
    relations = np.flatnonzero(having >= max(1, min(least, len(nodes))))
    if not len(relations):
        return nodes
    batch = store.edges(numbers, Direction.OUT, relations)
    ends, place = np.unique(batch.other, return_inverse=True)
    names = [node.name for node in store.nodes(store.ids(ends))]
    rows = np.flatnonzero(np.array([measure(name) is not None for name in names], np.bool_)[place])
    told: dict[int, dict[str, Value]] = {}
    for origin, relation, end in zip(
        batch.origin[rows].tolist(), batch.relation[rows].tolist(), place[rows].tolist(), strict=True
    ):
        properties = told.setdefault(origin, dict(nodes[origin].properties))
        properties.setdefault(LABEL_PARTS.split(store.relations[relation])[-1], names[end])
    return [replace(node, properties=told.get(at, node.properties)) for at, node in enumerate(nodes)] if told else nodes


def _measures(shown: Mapping[EntityId, Value]) -> dict[EntityId, float] | None:
    """Return the number of each value; None if a value has none."""
    found = {}
    for id, value in shown.items():
        number = measure(value)
        if number is None:
            return None
        found[id] = number
    return found


def measure(value: Value) -> float | None:
    """Return a number for a value that can be compared: numbers as they are, dates as years with a fraction."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(value)
    except ValueError:
        pass
    date = read_date(value)
    if date is None or date.start is None:
        return None
    year, month, day = date.start
    return year + (month - 1) / 12 + (day - 1) / 372


def looks_dated(value: Value) -> bool:
    """True if a value may be a date: ISO 8601 text, or a whole number that could be a year."""
    if isinstance(value, bool | float):
        return False
    if isinstance(value, int):
        return 1000 <= value <= 2100
    return ("-" in value[1:] and read_date(value) is not None) or (value.isdigit() and 1000 <= int(value) <= 2100)
