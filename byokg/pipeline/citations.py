"""Which evidence holds an answer: what makes an answer grounded, and a citation right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from byokg.graph.store import GraphStore
from byokg.linking.question_words import read_literal
from byokg.text import normalize_name
from byokg.types import (
    Cell,
    EdgeCell,
    EntityId,
    Evidence,
    NodeCell,
    NodeEvidence,
    PathCell,
    PathEvidence,
    Properties,
    RowsEvidence,
    TripleEvidence,
)

_ENDS_FIRST = 100
"""Ends of a metapath that are looked at before all of them are: answers are mostly among those that were shown."""

_LONGEST_VALUE = 40
"""Characters of the longest text that is read as a date or a number."""

_Said = tuple[str | None, EntityId | None]
"""A text, the node it names, or both; a node without its text is called by its name in the store."""


class Grounds:
    """Finds the evidence that holds an answer, by name or by value.

    A node holds its name; properties of nodes and edges and the cells of a query's rows hold their values. Names are
    compared folded (`normalize_name`), dates and numbers by what they mean: `12 May 1990` is held by `1990-05-12`, and
    so is `1990`, but not the other way round.

    Args:
        store: gives the names of nodes.
        evidence: numbered items, those that the answers may rest on.
    """

    def __init__(self, store: GraphStore, evidence: Sequence[Evidence]) -> None:
        self._store = store
        self._evidence = tuple(evidence)
        self._holders: dict[str, dict[str, EntityId | None]] = defaultdict(dict)
        self._read(_ENDS_FIRST)
        self._complete = not any(
            isinstance(item, PathEvidence) and len(item.ends) > _ENDS_FIRST for item in self._evidence
        )

    def of(self, answer: str) -> Mapping[str, EntityId | None]:
        """Return the ids of the items that hold an answer, in the order of the evidence, and the node it is in each."""
        held = self._held(answer)
        if not held and not self._complete:
            self._read(None)
            self._complete = True
            held = self._held(answer)
        return held

    def _held(self, answer: str) -> Mapping[str, EntityId | None]:
        for key in _meanings(answer)[:2]:  # the name, and what it means as a value; not what it is more precise than
            if key in self._holders:
                return self._holders[key]
        return {}

    def _read(self, ends: int | None) -> None:
        """Fill in what holds what, of a metapath for so many of its ends."""
        said = {item.id: list(dict.fromkeys(_said(item, ends))) for item in self._evidence}
        nodes = dict.fromkeys(id for each in said.values() for text, id in each if text is None and id is not None)
        names = {node.id: node.name for node in self._store.nodes(list(nodes))}
        keys: dict[str, tuple[str, ...]] = {}
        for item, each in said.items():
            for text, id in each:
                name = text if text is not None else names[id] if id is not None else ""
                if name not in keys:
                    keys[name] = _meanings(name)
                for key in keys[name]:
                    self._holders[key].setdefault(item, id)


def _meanings(text: str) -> tuple[str, ...]:
    """Return what a text is compared by: its folded words, and of a date or number its value, precisest first."""
    folded = normalize_name(text)
    if len(text) > _LONGEST_VALUE or not any("0" <= character <= "9" for character in text):
        return (folded,)
    read = read_literal(text)
    if read is None or read.kind in ("id", "decade"):
        return (folded,)
    if read.kind == "date":
        parts = str(read.value).split("-")
        return (folded, *(f"= {'-'.join(parts[:count])}" for count in range(len(parts), 0, -1)))
    return folded, f"= {read.value:g}" if isinstance(read.value, float) else f"= {read.value}"


def _said(item: Evidence, ends: int | None) -> Iterator[_Said]:
    """Yield what an item holds: what it is about before what it passes."""
    if isinstance(item, PathEvidence):
        yield from ((None, end) for end in item.ends[:ends])
        for path in item.paths:
            yield from ((None, node) for node in path.nodes)
            for triple in path.triples:
                yield from _values(triple.properties)
    elif isinstance(item, TripleEvidence):
        yield None, item.triple.tail
        yield None, item.triple.head
        yield from _values(item.triple.properties)
    elif isinstance(item, NodeEvidence):
        yield item.node.name, item.node.id
        yield from _values(item.node.properties)
    elif isinstance(item, RowsEvidence):
        for row in item.rows:
            for cell in row:
                yield from _of_cell(cell)


def _values(properties: Properties) -> Iterator[_Said]:
    for value in properties.values():
        yield from _of_cell(value)


def _of_cell(cell: Cell) -> Iterator[_Said]:
    if isinstance(cell, NodeCell):
        yield cell.name, cell.id
        yield from _values(cell.properties)
    elif isinstance(cell, EdgeCell):
        yield None, cell.head
        yield None, cell.tail
        yield from _values(cell.properties)
    elif isinstance(cell, PathCell):
        for node in cell.nodes:
            yield from _of_cell(node)
        for edge in cell.edges:
            yield from _of_cell(edge)
    elif isinstance(cell, bool):
        yield ("true" if cell else "false"), None
    elif isinstance(cell, str | int | float):
        yield str(cell), None
    elif cell is not None:
        for value in cell.values() if isinstance(cell, Mapping) else cell:
            yield from _of_cell(value)
