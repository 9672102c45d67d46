"""Grounding of queries: literals that no value equals as written, and the stored values that they may mean.

Source: value grounding of Text2Cypher, as in CyANCHOR and Text-to-SQL's value linking.
Differs: the nearest values come from the index over all values of the graph, without a call of a language model.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product

import numpy as np

from byokg.graph.guard.literals import LiteralUse, literals_in
from byokg.graph.guard.tokens import Edit, apply, shorten
from byokg.graph.name_indexes import name_index
from byokg.graph.servers.cypher_schema import quote
from byokg.graph.store import GraphStore
from byokg.graph.value_indexes import value_index
from byokg.index.names import NameIndex
from byokg.index.values import IndexedProperty, ValueIndex, ValueMatch, likeness
from byokg.types import Language, Node, Value

_CERTAIN = 0.8
"""Score from which on a similar value is the certain reading, if no other comes near."""
_LIKE = 0.72
"""Lowest score of a similar name."""
_AHEAD = 0.04
"""Lead that it needs before the next."""
_READINGS = 4
"""Readings of a literal at most."""
_POOL = 40
"""Similar values that are compared."""
_QUERIES, _UNCERTAIN = 12, 3
"""Substituted queries at most, and literals with several readings in them; of further ones the best is taken."""
_LITERALS = 100
"""Literals of a query from which on none is compared."""


@dataclass(frozen=True)
class GroundedLiteral:
    """A literal that no value equals as written, and its readings."""

    use: LiteralUse
    readings: tuple[ValueMatch, ...]
    """Best first; none if nothing in the graph comes near."""
    certain: bool
    """True if the first reading stands alone."""

    @property
    def exact(self) -> bool:
        """Return True if the certain reading is the same value of the property in other letters or another format."""
        same = self.readings and _local(self.readings[0].property) == _local(self.use.property)
        return bool(same) and self.certain and self.readings[0].exact

    def format_reading(self, reading: ValueMatch) -> str:
        """Return one line: the literal, the value that it is read as, and the place and number of nodes or edges."""
        key = _local(reading.property)
        place = f"{reading.type}.{key}" if reading.type else key
        count = f"{reading.count:,} {'edge' if self.use.edge else 'node'}{'s' if reading.count != 1 else ''}"
        return f"{shorten(self.use.text)!r} read as {reading.value!r} ({place}, {count})"

    def format_problem(self) -> str:
        """Return feedback for a model: the literal, and the nearest values with their numbers of nodes or edges."""
        key = _local(self.use.property)
        place = f"{'|'.join(self.use.types)}.{key}" if self.use.types else key
        text = shorten(self.use.text)
        if not self.readings:
            return f"no {place} equals {text!r}, nor does any value come near"
        nearest = "; ".join(
            f"{one.value!r} ({f'{one.type}.' if one.type else ''}{_local(one.property)}, {one.count:,})"
            for one in self.readings
        )
        return f"no {place} equals {text!r}; nearest: {nearest}"


class LiteralGrounder:
    """Compares the literals of queries with the values of the graph. Threads may share it.

    Args:
        store: the graph.
        index: its values; None takes `value_index` at the first literal.
        names: its names; None takes `name_index` at the first literal compared with a name.
        of_edges: True if `index` has the values of edges, with relations for types.
    """

    def __init__(
        self, store: GraphStore, index: ValueIndex | None = None, names: NameIndex | None = None, of_edges: bool = False
    ) -> None:
        self.store = store
        self._of_edges = of_edges
        self._index = index
        self._given_names = names

    @cached_property
    def index(self) -> ValueIndex:
        """Return the index over the values of the graph."""
        return value_index(self.store, self._of_edges) if self._index is None else self._index

    @cached_property
    def _edges(self) -> LiteralGrounder:
        return LiteralGrounder(self.store, of_edges=True)

    @cached_property
    def _names(self) -> NameIndex:
        return name_index(self.store) if self._given_names is None else self._given_names

    @cached_property
    def _keys(self) -> dict[str, list[IndexedProperty]]:
        keys: dict[str, list[IndexedProperty]] = {}
        for column in self.index.properties():
            keys.setdefault(_local(column.property), []).append(column)
        return keys

    @cached_property
    def _unread(self) -> dict[str, set[str]]:
        """Return the types whose values of a property are not in the index, as when a server did not return them."""
        unread: dict[str, set[str]] = {}
        schema = self.store.schema()
        of_relations = {one.name: one.properties for one in schema.relations}
        for type, keys in (of_relations if self._of_edges else schema.node_properties).items():
            for key in keys:
                if self.index.property(type, key) is None:
                    unread.setdefault(_local(key), set()).add(type)
        return unread

    def ground(self, language: Language, text: str) -> list[GroundedLiteral]:
        """Return the literals of a query that no value equals as written, in its order.

        Literals that the graph holds, and those of properties that are not wholly indexed, are left out. A query with
        more than a hundred literals has none.

        Raises:
            QueryRefused: the text cannot be read.
        """
        uses = literals_in(language, text)
        if len(uses) > _LITERALS:
            return []
        found = [(self._edges if use.edge else self)._grounded(use) for use in uses]
        held = {use.property_start for use, one in zip(uses, found, strict=True) if one is None}
        return [one for one in found if one is not None and (one.exact or one.use.property_start not in held)]

    def substituted(
        self, language: Language, text: str, literals: Sequence[GroundedLiteral]
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield queries with readings in place of the literals, best first, each with a line per substitution.

        Literals without readings stay as they are. There is one query if all readings are certain, and up to twelve
        otherwise.
        """
        open_to_change = [one for one in literals if one.readings]
        several = [one for one in open_to_change if not one.certain][:_UNCERTAIN]
        choices = [one.readings if one in several else one.readings[:1] for one in open_to_change]
        ranked = sorted(product(*choices), key=lambda some: -sum(one.score for one in some))
        for readings in islice(ranked if open_to_change else (), _QUERIES):
            edits: dict[int, Edit] = {}
            for literal, reading in zip(open_to_change, readings, strict=True):
                for edit in _edits(language, literal.use, reading, text[literal.use.start]):
                    edits[edit.start] = edit
            lines = tuple(
                literal.format_reading(reading) for literal, reading in zip(open_to_change, readings, strict=True)
            )
            yield apply(text, [edits[start] for start in sorted(edits)]), lines

    # Inside

    def _grounded(self, use: LiteralUse) -> GroundedLiteral | None:
        """Return the readings of a literal; None if the graph holds it, or not enough is indexed."""
        if not use.text.strip():
            return None
        columns = self._keys.get(_local(use.property), [])
        if use.types and any(column.type in use.types for column in columns):
            columns = [column for column in columns if column.type in use.types]
        elif use.types and columns and not _is_name(use):
            columns = []
        unread = self._unread.get(_local(use.property), set())
        if not _is_name(use) and (unread.intersection(use.types) if use.types else unread):
            return None
        if not columns:
            return self._named(use) if _is_name(use) else self._of_other_property(use, ())
        if not all(column.whole for column in columns):
            return None
        if any(self._holds(column, use) for column in columns):
            return None
        types = {column.type for column in columns}
        keys = {column.property for column in columns}
        matches = self.index.find(use.text, types=types, properties=keys, limit=_POOL)
        if matches:
            return _ranked(use, matches)
        return self._of_other_property(use, types) or GroundedLiteral(use, (), False)

    def _holds(self, column: IndexedProperty, use: LiteralUse) -> bool:
        """True if a value of a property compares with a literal as the query demands."""
        if use.comparison == "=" and not use.folded:
            if (column.storage in ("int", "float")) != use.number:
                return False
            equal = self.index.find(use.text, types=[column.type], properties=[column.property], limit=_POOL)
            return any(one.exact and (use.number or str(one.value) == use.text) for one in equal)
        return self.index.holds(column, use.text, use.comparison)

    def _of_other_property(self, use: LiteralUse, types: Collection[str]) -> GroundedLiteral | None:
        """Return the readings of a literal as a value of another property: of the same types, or else of any."""
        if use.comparison != "=" or not use.alone or use.property.startswith("<"):
            return None
        own = tuple(types) or use.types
        for wanted in (own, None) if own else (None,):
            matches = [one for one in self.index.find(use.text, types=wanted, limit=_POOL) if one.exact]
            if matches:
                places = {(one.type, one.property) for one in matches}
                certain = wanted is not None and len(places) == 1 and len(matches) == 1
                return GroundedLiteral(use, tuple(matches[:_READINGS]) if wanted is not None else (), certain)
        return None

    def _named(self, use: LiteralUse) -> GroundedLiteral | None:
        """Return the readings of a literal that is compared with names of nodes."""
        names = self._names
        if use.comparison != "=" or use.folded or len(names.spelled(use.text)):
            return None
        equal = names.exact(use.text).tolist()[:_POOL]
        nodes = self._nodes(equal)
        found = [(node, 1.0) for node in nodes]
        if not found:
            similar = names.search([use.text], _POOL)[0]
            held = self._nodes([one.owner for one in similar])
            found = [(node, likeness(use.text, one.name)) for node, one in zip(held, similar, strict=True)]
        counted: dict[str, tuple[float, int, str]] = {}
        for node, score in found:
            if node.name and score >= _LIKE and (not use.types or set(use.types) & set(node.types)):
                best, count, type = counted.get(node.name, (0.0, 0, ""))
                counted[node.name] = (max(best, score), count + 1, type or next(iter(node.types), ""))
        matches = [
            ValueMatch(type, use.property, name, score, score == 1.0, count)
            for name, (score, count, type) in counted.items()
        ]
        matches.sort(key=lambda one: (-one.score, -one.count, str(one.value)))
        return _ranked(use, matches) if matches else None

    def _nodes(self, numbers: Sequence[int]) -> list[Node]:
        return self.store.nodes(self.store.ids(np.array(numbers, np.int64))) if numbers else []


def _ranked(use: LiteralUse, matches: Sequence[ValueMatch]) -> GroundedLiteral:
    """Return the readings of a literal: of each value one, and none far behind the best."""
    best: dict[Value, ValueMatch] = {}
    for match in matches:
        best.setdefault(match.value, match)
    readings = [one for one in best.values() if one.score >= matches[0].score - 0.15][:_READINGS]
    first, rest = readings[0], readings[1:]
    certain = first.score >= _CERTAIN and all(first.score - one.score > _AHEAD for one in rest)
    return GroundedLiteral(use, tuple(readings), certain)


def _edits(language: Language, use: LiteralUse, reading: ValueMatch, sign: str) -> Iterator[Edit]:
    """Yield the changes of a query that put a reading in place of a literal, and its property beside it."""
    value = reading.value
    if isinstance(value, str):
        text = _quoted(_lowered(use, value), sign if sign in "'\"" else '"')
    else:
        text = str(value).lower() if isinstance(value, bool) else str(value)
    yield Edit(use.start, use.stop, text)
    if language == "cypher" and reading.property != use.property and not _is_name(use):
        yield Edit(use.property_start, use.property_stop, quote(reading.property))


def _lowered(use: LiteralUse, value: str) -> str:
    """Return a value in the letters of a literal that the query compares in one case."""
    if not use.folded:
        return value
    return value.upper() if use.text.isupper() else value.lower()


def _quoted(text: str, sign: str) -> str:
    """Write a text as a literal of Cypher or SPARQL, in a kind of quotes."""
    for character, escape in (("\\", "\\\\"), (sign, f"\\{sign}"), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(character, escape)
    return f"{sign}{text}{sign}"


def _local(property: str) -> str:
    """Return the last part of a predicate's IRI, or of a prefixed name; any other key as it is."""
    return re.split(r"[/#:]", property.strip("<>"))[-1] if property else property


_NAMES = ("name", "display_name", "label", "prefLabel")


def _is_name(use: LiteralUse) -> bool:
    return not use.edge and _local(use.property) in _NAMES
