"""Typed view of a property graph: node types, their properties, and the steps that edges make between types.

A query graph (`query_ranking`) is built of these. All of it is read from the arrays of a columnar graph; node
sets are ascending arrays of node numbers. `ValueSpotter` finds words of a question that name a
node or a property's value. Settings were chosen on the dev halves of ZOGRASCOPE, Mind-the-Query `er` and atlas.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from threading import RLock
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Float64, Int64, values_of
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.schema import PropertyColumn
from byokg.graph.sorted_ids import distinct
from byokg.graph.store import ALL_VALUES, Direction
from byokg.index.names import NameIndex
from byokg.index.values import ValueIndex, ValueMatch
from byokg.linking.values import question_words
from byokg.offline.lexicon import SILENT, load_lexicon
from byokg.offline.schema_linking import content_words
from byokg.text.dates import read_date
from byokg.text.names import fold, singular, split_label, split_words
from byokg.text.values import read_literal
from byokg.types import Value


@dataclass(frozen=True)
class SchemaSettings:
    """How a typed schema is read."""

    first_year: int = 1000
    """Least whole number of a property of years, and"""
    last_year: int = 2100
    """greatest."""
    values: int = 200
    """Distinct values from which the kind of a text property is read."""
    edges: int = 4_000_000
    """Edges up to which all are read for the types at their ends, and"""
    sampled: int = 500
    """edges of each relation that are read beyond."""
    remembered: int = 1 << 10
    """Steps whose start nodes are remembered."""


@dataclass(frozen=True)
class LabelMatchSettings:
    """How words are compared with labels; all similarities are in [0, 1]."""

    equal: float = 1.0
    """The same word."""
    stem: float = 0.9
    """A common stem."""
    synonym: float = 0.8
    """A synonym."""
    abbreviation: float = 0.8
    """A label's word that begins the word (`reg`, `registration`), or initials (`LW`, `lives with`)."""
    person: float = 0.7
    """A pronoun and a type of persons, `where` and a type of places."""
    unlike: float = 0.3
    """Cosine that counts as none."""
    like: float = 0.75
    """Worth of the largest cosine."""
    modifier: float = 0.8
    """Worth of a word that is not the head of a label, against its head."""
    heard: float = 0.5
    """Similarity from which a word may mean an element."""
    some: float = 0.4
    """Similarity from which a word names the step of a query graph, if none names it better."""
    named: float = 0.6
    """Similarity from which a word names a type."""
    typo: float = 0.8
    """Similarity from which a word is a misspelt word of a label."""
    again: float = 0.3
    """Worth of a word for a second element of one kind."""
    far: int = 8
    """Words from which a distance no longer grows."""
    remembered: int = 1 << 13
    """Words whose similarities are remembered."""


@dataclass(frozen=True)
class ValueSettings:
    """How values and names are found in a question."""

    longest: int = 8
    """Words of a name."""
    window: int = 5
    """Words of a misspelt value, and of a date."""
    letters: int = 3
    """Letters of a misspelt value at least."""
    value: float = 0.74
    """Lowest similarity of a misspelt value, in [0, 1], and"""
    name: float = 0.88
    """of a misspelt name."""
    longer: float = 0.84
    """Lowest similarity of a misspelt value that holds an equal one."""
    counted: int = 10_000
    """Number from which things are not counted, but measured."""
    naming: int = 2
    """Words before an unknown value among which its property, type or relation stands."""
    nearest: float = 0.5
    """Lowest similarity of a value that is shown for one that is nowhere."""
    compared: int = 16
    """Spans that are compared with values, the longest ones."""
    near: int = 4
    """Words between a value and the name of its property, at most."""
    alternatives: int = 6
    """Properties that a span may name a value of, the best ones."""
    spans: int = 6
    """Spans of values of one question."""
    type: float = 0.8
    """Similarity of a word and a type from which a lower-case word is no value."""


@dataclass(frozen=True)
class SearchSettings:
    """Sizes of the beam search."""

    hops: int = 4
    """Steps of a metapath between two constraints."""
    of_length: tuple[int, ...] = (0, 4, 4, 3, 2)
    """Metapaths between two types that are tried, by their steps."""
    partial: int = 60
    """Partial metapaths that are continued."""
    beam: int = 40
    """Query graphs that are continued, and"""
    per_root: int = 8
    """those of one root type."""
    grown: int = 90
    """Query graphs that are scored after each extension, the likeliest ones."""
    roots: int = 8
    """Types that the answer may have, the likeliest ones."""
    named: int = 2
    """Types or relations that are added because the question names them."""
    measured: int = 2
    """Metapaths to nodes that a superlative counts, or whose properties it adds up."""
    executed: int = 60
    """Query graphs that are executed for a question."""
    alternatives: int = 3
    """Further query graphs that the trace shows."""
    nearest: int = 3
    """Values that are shown for one that is nowhere."""
    covered: float = 0.33
    """Share of the question's content that a query graph must explain."""
    listed: float = 0.05
    """Largest probability of an answer by paths to a question for a sum or an average, which is no list."""
    margin: float = 0.9
    """Log-odds by which query graphs must be likelier right than paths."""
    valued: int = 3
    """Constraints of property values that the choice between query graphs and paths counts at most."""
    surely: float = 0.01
    """Probabilities closer to 0 or 1 count as this close."""
    characters: int = 1_000
    """Characters of a question; query graphs answer no longer text, which takes quadratic time."""
    shown: float = 0.3
    """Probability from which a language model is shown the likeliest query, with this many"""
    rows: int = 30
    """rows."""
    remembered: int = 1 << 7
    """Questions whose answers are remembered."""
    grid: float = 2.0**20
    """Features and weights are multiples of its inverse, so that their sums are equal on every CPU."""


SCHEMA, WORDS, VALUES, SEARCH = SchemaSettings(), LabelMatchSettings(), ValueSettings(), SearchSettings()


Kind = Literal["text", "number", "year", "date", "time", "flag"]

Turn = Literal["out", "in", "both"]

_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d)?")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")

SLASHED = re.compile(r"(\d{1,2})[/.-](\d{1,2})[/.-](\d{4})")
"""A date of day, month and year, or of month, day and year."""


_ABBREVIATED = {**dict.fromkeys(("no", "nr", "num"), "number"), "qty": "quantity", "addr": "address", "lat": "latitude"}
"""Abbreviations in labels that do not begin as the word does."""


def words_of(label: str) -> tuple[str, ...]:
    """Return the content words of a label, the head last, abbreviations in full.

    >>> words_of("badge_no"), words_of("INVESTIGATED_BY"), words_of("PhoneCall")
    (('badge', 'number'), ('investigated',), ('phone', 'call'))
    """
    words = content_words([_ABBREVIATED.get(word, word) for word in split_words(split_label(label).replace("_", " "))])
    return tuple(words) or (label.casefold(),)


KEYS = frozenset("id ids key uuid guid identifier".split())


@dataclass(frozen=True, eq=False)
class Property:
    """One property of the nodes of a type, of the edges of a relation, or the name of nodes."""

    number: int
    type: int
    """-1 for a property of edges."""
    name: str
    """Empty for the name of a node."""
    words: tuple[str, ...]
    kind: Kind
    relation: int = -1
    """-1 for a property of nodes."""

    @property
    def is_key(self) -> bool:
        """True for an identifier (`categoryID`), which is neither compared nor added up."""
        return self.words[-1] in KEYS


@dataclass(frozen=True, eq=False)
class TypedStep:
    """The edges of a relation between two types, walked one way, or both ways within one type."""

    number: int
    start: int
    end: int
    relation: int
    turn: Turn
    words: tuple[str, ...]
    count: int
    """Edges that make it."""
    reverse: int = -1
    """Number of the step that leads back."""


Test = Literal["=", ">", ">=", "<", "<=", "between", "STARTS WITH", "ENDS WITH", "CONTAINS"]


@dataclass(frozen=True, eq=False)
class Constraint:
    """A test that a property of a node or edge has to pass, and its span of the question."""

    property: Property
    test: Test
    start: int
    end: int
    """First and last word, the latter exclusive."""
    codes: tuple[int, ...] = ()
    """Numbers of the values in the property's column that pass; empty for a test of numbers, dates or names."""
    nodes: Int64 | None = None
    """Nodes of a name, ascending."""
    low: float = -np.inf
    high: float = np.inf
    """Least and greatest measure that passes."""
    quality: float = 1.0
    """Similarity of span and value, in [0, 1]."""
    near: float = 0.0
    """Similarity of words near the span to the property, in [0, 1]."""
    shown: str = ""

    def span(self) -> tuple[int, int]:
        """Return first and last word, the latter exclusive."""
        return self.start, self.end


class TypedSchema:
    """The types, properties and typed steps of a graph; safe to share between threads."""

    def __init__(self, graph: ColumnarGraph) -> None:
        self.graph = graph
        self._lock = RLock()
        schema = graph.schema()
        self.types = tuple(name for name in schema.node_types if name and not name.startswith("_"))  # technical ones do
        self.type_words = tuple(words_of(name) for name in self.types)
        self._members: dict[int, Int64] = {}
        self._masks: dict[int, npt.NDArray[np.bool_]] = {}
        self._columns: dict[str, _DistinctValues] = {}
        self.properties = self._read_properties()
        self.of_type = tuple(
            tuple(one for one in self.properties if one.type == number) for number in range(len(self.types))
        )
        self.of_relation = tuple(
            tuple(one for one in self.properties if one.relation == number) for number in range(len(graph.relations))
        )
        self.steps = self._read_steps()
        self.steps_from = tuple(
            tuple(step for step in self.steps if step.start == number) for number in range(len(self.types))
        )

    # Types

    def members(self, type: int) -> Int64:
        """Return the nodes of a type, ascending."""
        with self._lock:
            if type not in self._members:
                self._members[type] = self.graph.node_types.members(self.types[type])
            return self._members[type]

    def only(self, nodes: Int64, type: int) -> Int64:
        """Return the nodes that are of a type."""
        with self._lock:
            mask = self._masks.get(type)
            if mask is None:
                mask = np.zeros(self.graph.node_count, np.bool_)
                mask[self.members(type)] = True
                self._masks[type] = mask
        return nodes[mask[nodes]]

    # Properties

    def _read_properties(self) -> tuple[Property, ...]:
        found: list[Property] = []
        for type, label in enumerate(self.types):
            found.append(Property(len(found), type, "", ("name",), "text"))
            for name in self.graph.schema().node_properties.get(label, ()):
                if not name.endswith(ALL_VALUES):
                    kind = self.column(name).kind
                    own = tuple(word for word in words_of(name) if word not in self.type_words[type])
                    found.append(Property(len(found), type, name, own or words_of(name), kind))
        for relation, each in enumerate(self.graph.schema().relations):
            for name in each.properties:
                if not name.endswith(ALL_VALUES):
                    kind = self.edge_column(name).kind
                    found.append(Property(len(found), -1, name, words_of(name), kind, relation))
        return tuple(found)

    def edge_column(self, name: str) -> _DistinctValues:
        """Return the values of a property of edges, of any relation."""
        with self._lock:
            key = f"edge {name}"
            if key not in self._columns:
                batches = [batch.column(name) for batch in self.graph.edge_columns]
                values = pa.concat_arrays(batches) if batches else pa.nulls(0)
                self._columns[key] = _DistinctValues(PropertyColumn(name, values))
            return self._columns[key]

    def column_of(self, property: Property) -> _DistinctValues:
        """Return the values of a property."""
        return self.column(property.name) if property.relation < 0 else self.edge_column(property.name)

    def column(self, name: str) -> _DistinctValues:
        """Return the values of a property of nodes, of any type; those of the empty name are the names of nodes."""
        with self._lock:
            if name not in self._columns:
                if name:
                    held = self.graph.node_columns[1].column(name)
                    assert held is not None
                else:
                    held = PropertyColumn("", self.graph.names_of_nodes())
                self._columns[name] = _DistinctValues(held)
            return self._columns[name]

    def holders(self, property: Property, codes: Sequence[int]) -> Int64:
        """Return the nodes whose property has any of some values, by the numbers of these in its column."""
        return self.only(self.column(property.name).nodes_of(codes), property.type)

    def holds(self, text: str) -> bool:
        """True if a name, a value of nodes or edges, or a label of the schema contains a text, in any case.

        Also if it resembles a word of a label.
        """
        return (
            any(text.casefold() in label for label in self._labels)
            or bool(get_close_matches(singular(text.casefold()), self._label_words, 1, WORDS.typo))
            or any(self.column_of(one).contains(text) for one in self.properties)
        )

    @cached_property
    def _labels(self) -> tuple[str, ...]:
        labels = (*self.types, *self.graph.relations, *(one.name for one in self.properties))
        return tuple(each.casefold() for label in labels for each in (label, split_label(label)))

    @cached_property
    def _label_words(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word for label in self._labels for word in split_words(label)))

    @cached_property
    def _forms(self) -> frozenset[tuple[bool, str]]:
        """Return the forms of values with digits and other characters, and whether these are dates."""
        forms = {
            (one.kind in ("date", "time"), _form(str(value)))
            for one in self.properties
            if one.kind not in ("number", "year", "flag")
            for value in self.column_of(one).distinct[: SCHEMA.values]
        }
        return frozenset((dated, form) for dated, form in forms if "0" in form and form != "0")

    def has_form(self, text: str) -> bool:
        """True if values are written like a text, with digits and other characters at the same places.

        A number or date is compared with dates alone.
        """
        form = _form(text)
        return (True, form) in self._forms or (read_literal(text) is None and (False, form) in self._forms)

    def passing(self, tests: Sequence[Constraint], edges: Int64) -> npt.NDArray[np.bool_]:
        """Mask the edges whose properties lie within bounds, or are of some values: (M,)."""
        kept = np.ones(len(edges), np.bool_)
        for test in tests:
            column = self.edge_column(test.property.name)
            if test.codes:
                kept &= np.isin(edges, column.nodes_of(test.codes))
            else:
                measures = column.measures(edges)
                kept &= (measures >= test.low) & (measures <= test.high)
        return kept

    def shown(self, property: Property, nodes: Int64) -> list[Value | None]:
        """Return the value of each node, None for nodes without one."""
        if not property.name:
            return list(self.graph.names_at(nodes))
        return self.graph.node_columns[1].of_property(property.name, nodes)

    # Steps

    def _read_steps(self) -> tuple[TypedStep, ...]:
        head, relation, tail = self._edges()
        found: list[tuple[int, int, int, int]] = []
        for type in range(len(self.types)):
            heads = self._is(head, type)
            for other in range(len(self.types)):
                both = heads & self._is(tail, other)
                counts = np.bincount(relation[both], minlength=len(self.graph.relations))
                found += [(number, type, other, int(counts[number])) for number in np.flatnonzero(counts).tolist()]
        steps: list[TypedStep] = []
        for number, start, end, count in sorted(found):
            words = words_of(self.graph.relations[number])
            at = len(steps)
            if start == end:
                steps.append(TypedStep(at, start, end, number, "both", words, count, at))
                at += 1
            steps.append(TypedStep(at, start, end, number, "out", words, count, at + 1))
            steps.append(TypedStep(at + 1, end, start, number, "in", words, count, at))
        return tuple(steps)

    def _edges(self) -> tuple[Int64, Int64, Int64]:
        graph = self.graph
        if graph.edge_count > SCHEMA.edges:
            batch = graph.sample_edges(SCHEMA.sampled)
            return batch.head.astype(np.int64), batch.relation.astype(np.int64), batch.tail.astype(np.int64)
        bounds, relations, tails = graph.outgoing
        heads = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        return heads, relations.astype(np.int64), tails.astype(np.int64)

    def _is(self, nodes: Int64, type: int) -> npt.NDArray[np.bool_]:
        self.only(nodes[:0], type)
        return self._masks[type][nodes]

    def edges(self, nodes: Int64, step: TypedStep) -> tuple[Int64, Int64, Int64]:
        """Return the edges that a step walks out of nodes: position of the node, far end, and number; (M,) each."""
        batch = self.graph.edges(nodes, _DIRECTIONS[step.turn], np.array([step.relation]))
        other = batch.other.astype(np.int64)
        kept = self._is(other, step.end)
        return batch.origin[kept], other[kept], batch.edge[kept]

    def follow(self, nodes: Int64, step: TypedStep, tests: Sequence[Constraint] = ()) -> Int64:
        """Return the nodes that a step leads to from any of some nodes, ascending; over edges that pass tests."""
        if not len(nodes):
            return nodes
        _, other, edge = self.edges(nodes, step)
        return distinct(other[self.passing(tests, edge)] if tests else other)

    def counted(self, nodes: Int64, step: TypedStep) -> Int64:
        """Return for each of some nodes the number of distinct nodes that a step leads to: (N,)."""
        origin, other, _ = self.edges(nodes, step)
        pairs = distinct(origin * self.graph.node_count + other)
        return np.bincount(pairs // self.graph.node_count, minlength=len(nodes)).astype(np.int64)


_DIRECTIONS = {"out": Direction.OUT, "in": Direction.IN, "both": Direction.BOTH}


def _form(text: str) -> str:
    """Return a text with each number as 0 and each word as A.

    >>> _form("WA15 7PT"), _form("7-(151)166-1074")
    ('A0 0A', '0-(0)0-0')
    """
    return re.sub(r"[^\W\d_]+", "A", re.sub(r"\d+", "0", text))


class _DistinctValues:
    """The values of a property, its distinct ones numbered."""

    def __init__(self, column: PropertyColumn) -> None:
        self._nodes, values = column.held()
        self._values = values
        self._lock = RLock()
        if pa.types.is_boolean(values.type):
            self.kind: Kind = "flag"
        elif pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            self.kind = _number_kind(values)
        elif pa.types.is_temporal(values.type):
            self.kind = "date"
        else:
            self.kind = _text_kind(
                [text for text in values[: 4 * SCHEMA.values].unique().to_pylist() if text][: SCHEMA.values]
            )

    @cached_property
    def distinct(self) -> list[Value]:
        """Return the distinct values; the number of each is its position."""
        return [value.isoformat() if hasattr(value, "isoformat") else value for value in self._encoded[0]]

    @cached_property
    def _encoded(self) -> tuple[list[Value], npt.NDArray[np.int32]]:
        values = self._values
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        return coded.dictionary.to_pylist(), values_of(coded.indices).astype(np.int32)

    @cached_property
    def _by_code(self) -> tuple[npt.NDArray[np.int32], Int64]:
        codes = self._encoded[1]
        order = np.argsort(codes, kind="stable")
        counts = np.bincount(codes, minlength=len(self._encoded[0]))
        return self._nodes[order], np.concatenate(([0], counts.cumsum())).astype(np.int64)

    def nodes_of(self, codes: Sequence[int]) -> Int64:
        """Return the nodes with any of some values, ascending."""
        with self._lock:
            nodes, bounds = self._by_code
        parts = [nodes[bounds[code] : bounds[code + 1]] for code in codes]
        return np.sort(np.concatenate(parts)).astype(np.int64) if parts else np.empty(0, np.int64)

    @cached_property
    def _codes(self) -> dict[Value, int]:
        return {value: code for code, value in enumerate(self.distinct)}

    def code(self, value: Value) -> int | None:
        """Return the number of a value; None if no node has it."""
        with self._lock:
            return self._codes.get(value)

    @cached_property
    def flags(self) -> dict[bool, int]:
        """Return the numbers of the values that stand for true and false."""
        texts = (_flags().get(value.casefold()) if isinstance(value, str) else value for value in self.distinct)
        return {value: code for code, value in enumerate(texts) if isinstance(value, bool)}

    @cached_property
    def identifying(self) -> bool:
        """Return True if no two holders share a value."""
        return len(self._encoded[0]) == len(self._nodes)

    def contains(self, text: str) -> bool:
        """True if a value contains a text, in any case."""
        values = self._values.cast(pa.large_string())
        return bool(pc.any(pc.match_substring(values, text, ignore_case=True)).as_py())

    def matching(self, test: str, part: str) -> tuple[int, ...]:
        """Return the numbers of the values that start with, end with or contain a part."""
        tests = {"STARTS WITH": str.startswith, "ENDS WITH": str.endswith, "CONTAINS": str.__contains__}
        held = tests[test]
        return tuple(code for code, value in enumerate(self.distinct) if value is not None and held(str(value), part))

    @cached_property
    def _sorted_order(self) -> Float64:
        return np.sort(self.order[~np.isnan(self.order)])

    def any_within(self, low: float, high: float) -> bool:
        """True if a value lies between two measures, both inclusive."""
        with self._lock:
            return bool(self._sorted_order.searchsorted(high, "right") > self._sorted_order.searchsorted(low))

    def within(self, low: float, high: float) -> Int64:
        """Return the nodes with a measure between two, both inclusive, ascending."""
        with self._lock:
            fits, codes = (self.order >= low) & (self.order <= high), self._encoded[1]
        return self._nodes[fits[codes]].astype(np.int64)

    @cached_property
    def order(self) -> Float64:
        """Return a number for each distinct value, by which they are ordered; NaN for one that has no order."""
        texts = (value for value in self.distinct if isinstance(value, str))
        first = any(int(found[1]) > 12 for text in texts if (found := SLASHED.fullmatch(text)))
        return np.array([measure_of(value, first) for value in self.distinct], np.float64)

    def measures(self, nodes: Int64) -> Float64:
        """Return the order of the value of each of some nodes; NaN for nodes without one."""
        with self._lock:
            order, codes = self.order, self._encoded[1]
        if not len(self._nodes):
            return np.full(len(nodes), np.nan)
        place = np.minimum(self._nodes.searchsorted(nodes), len(self._nodes) - 1)
        return np.where(self._nodes[place] == nodes, order[codes[place]], np.nan)


def _number_kind(values: pa.Array) -> Kind:
    """Tell years from other numbers."""
    if pa.types.is_floating(values.type) or not len(values):
        return "number"
    bounds = pc.min_max(values)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    return "year" if SCHEMA.first_year <= low and high <= SCHEMA.last_year and high - low > 0 else "number"


@cache
def _flags() -> dict[str, bool]:
    """Return the texts that stand for true and false."""
    return {text: flag for flag in (True, False) for text in load_lexicon("sets")[str(flag).lower()]}


def _text_kind(texts: Sequence[str]) -> Kind:
    if texts and all(text.casefold() in _flags() for text in texts):
        return "flag"
    if texts and all(_TIME.fullmatch(text) for text in texts):
        return "time"
    if texts and sum(SLASHED.fullmatch(text) is not None or _iso(text) for text in texts) > 0.9 * len(texts):
        return "date"
    if texts and all(_NUMBER.fullmatch(text) for text in texts):
        return "number"
    return "text"


def _iso(text: str) -> bool:
    return text[:4].isdigit() and "-" in text and read_date(text) is not None


def measure_of(value: Value, day_first: bool = True) -> float:
    """Return a number by which values of one property are ordered: days of dates, minutes of times.

    >>> measure_of("09:27"), measure_of("2/01/2000") - measure_of("1/01/2000"), measure_of(7)
    (567.0, 1.0, 7.0)
    """
    if isinstance(value, bool | int | float):
        return float(value)
    if found := _TIME.fullmatch(value):
        return 60.0 * int(found[1]) + int(found[2])
    if found := SLASHED.fullmatch(value):
        day, month = (found[1], found[2]) if day_first else (found[2], found[1])
        return day_number(int(found[3]), int(month), int(day))
    if (date := read_date(value) if "-" in value[1:] else None) is not None and date.start is not None:
        return day_number(*date.start)
    try:
        return float(value)
    except ValueError:
        return np.nan


def day_number(year: int, month: int = 0, day: int = 0) -> float:
    """Return a number by which dates are ordered."""
    return float(year * 372 + max(month, 1) * 31 + max(day, 1))


_BARE = frozenset("first last second many most least one two three number name type".split())
"""Words that are no values by themselves, unless in capitals."""


_QUOTED = re.compile(r"\"[^\"]{1,200}\"|\u201c[^\u201d]{1,200}\u201d|(?<!\w)'[^']{1,200}'(?!\w)")


def quoted_spans(text: str, pieces: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the first and last word of each text in quotes, the latter exclusive; `pieces` bound the words."""
    found = []
    for quote in _QUOTED.finditer(text):
        within = [at for at, (start, end) in enumerate(pieces) if quote.start() <= start and end <= quote.end()]
        if within:
            found.append((within[0], within[-1] + 1))
    return found


class ValueSpotter:
    """Finds the values of a graph's properties, and names of its nodes, in questions; thread-safe.

    Numbers and dates are left out: `QuestionReader` reads them together with comparisons.
    """

    def __init__(
        self, schema: TypedSchema, values: ValueIndex, names: NameIndex, familiar: Callable[[str], bool]
    ) -> None:
        """Take the graph and its indexes.

        Args:
            schema: typed schema of the graph.
            values: index of its values.
            names: index of its names.
            familiar: True for a common word, which is no misspelt one.
        """
        self._schema, self._values, self._names, self._familiar = schema, values, names, familiar

    @cached_property
    def _by_key(self) -> dict[tuple[str, str], Property]:
        types = self._schema.types
        return {(types[one.type], one.name): one for one in self._schema.properties if one.type >= 0}

    def find(self, text: str, pieces: Sequence[tuple[int, int]]) -> list[Constraint]:
        """Return the tests of names and values in a question, of those that overlap the longest; misspelt ones last.

        Args:
            text: the question.
            pieces: where its words begin and end.
        """
        words = [text[start:end] for start, end in pieces]
        exact = list(self._exact(text, pieces, words))
        misspelt = list(self._misspelt(text, pieces, words, exact))
        longer = {at for one in misspelt for at in range(one.start, one.end)}
        return [*(one for one in exact if one.start not in longer), *misspelt]

    def _exact(self, text: str, pieces: Sequence[tuple[int, int]], words: Sequence[str]) -> Iterator[Constraint]:
        spans = []
        for start, word in enumerate(words):
            folded = fold(word)
            longest = max(self._values.starting(folded), min(VALUES.longest, self._names.longest_from(folded)), 1)
            spans += [(start, end) for end in range(start + 1, min(len(words), start + longest) + 1)]
        covered: list[tuple[int, int]] = []
        for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
            if any(low <= start and end <= high for low, high in covered):
                continue
            piece = text[pieces[start][0] : pieces[end - 1][1]]
            bare = end - start == 1 and (words[start].casefold() in SILENT | _BARE | KEYS)
            if bare and (not words[start].isupper() or words[start].casefold() in KEYS):
                continue
            for each in dict.fromkeys((piece, piece[: -len(words[end - 1])] + singular(words[end - 1]))):
                found = self._distinct(
                    [*self._of_values(start, end, self._values.equal(each)), *self._named(start, end, each)]
                )
                if found:
                    covered.append((start, end))
                    yield from found
                    break

    def _of_values(
        self, start: int, end: int, matches: Sequence[ValueMatch], dates: bool = False
    ) -> Iterator[Constraint]:
        codes: dict[Property, list[int]] = defaultdict(list)
        best: dict[Property, ValueMatch] = {}
        for match in matches:
            one = self._by_key.get((match.type, match.property))
            if one is None or one.kind in ("number", "year", "flag") or (one.kind == "date" and not dates):
                continue
            code = self._schema.column(one.name).code(match.value)
            if code is not None and (one not in best or match.score == best[one].score):
                codes[one].append(code)
                best.setdefault(one, match)
        for one, held in codes.items():
            yield Constraint(one, "=", start, end, tuple(held), quality=best[one].score, shown=str(best[one].value))

    def _named(self, start: int, end: int, text: str, quality: float = 1.0) -> Iterator[Constraint]:
        nodes = self._names.exact(text).astype(np.int64)
        for type in range(len(self._schema.types)) if len(nodes) else ():
            own = self._schema.only(nodes, type)
            if len(own):
                name = self._by_key[self._schema.types[type], ""]
                shown = self._schema.graph.names_at(own[:1])[0]
                yield Constraint(name, "=", start, end, (), own, quality=quality, shown=shown)

    def _distinct(self, found: Sequence[Constraint]) -> list[Constraint]:
        """Leave out names of the very nodes that have a value of the same text."""
        held = [
            (one.property.type, self._schema.holders(one.property, one.codes)) for one in found if one.nodes is None
        ]
        return [
            one
            for one in found
            if one.nodes is None
            or all(type != one.property.type or not np.array_equal(nodes, one.nodes) for type, nodes in held)
        ]

    def _misspelt(
        self, text: str, pieces: Sequence[tuple[int, int]], words: Sequence[str], exact: Sequence[Constraint]
    ) -> Iterator[Constraint]:
        """Yield misspelt values, around words that are no value, or longer than one that is; a code stays whole."""
        codes = [(code.start, code.end) for code in question_words(text) if code.code]
        within = {at for at, (start, _) in enumerate(pieces) if any(low < start < high for low, high in codes)}
        inside = {(one.start, one.end) for one in exact}
        taken = {at for start, end in inside for at in range(start, end)}
        marked = [_is_marked(text, start, end) for start, end in pieces]
        rare = [at not in taken and self.is_rare(word) for at, word in enumerate(words)]
        spans = [
            (start, end)
            for start in range(len(words))
            for end in range(min(len(words), start + VALUES.window), start, -1)
            if within.isdisjoint((start, end))
            and marked[start]
            and marked[end - 1]
            and any(rare[start:end])
            and all(start <= low and high <= end for low, high in inside if low < end and start < high)
            and not _begins_sentence(text, pieces[start][0], end - start)
        ]
        spans += [span for span in quoted_spans(text, pieces) if span not in inside and any(rare[slice(*span)])]
        spans.sort(key=lambda span: (span[0] - span[1], span[0]))
        for start, end in dict.fromkeys(spans[: VALUES.compared]):
            piece = text[pieces[start][0] : pieces[end - 1][1]]
            if any(rare[start:end]) and len(piece) >= VALUES.letters and read_literal(piece) is None:
                inner = {one.shown for one in exact if start <= one.start and one.end <= end}
                found = self._similar(start, end, piece, any(at in taken for at in range(start, end)))
                found = [one for one in found if one.shown not in inner]
                if found:
                    rare[start:end] = [False] * (end - start)
                    yield from self._distinct(found)

    def _similar(self, start: int, end: int, piece: str, strict: bool) -> list[Constraint]:
        least = VALUES.longer if strict else VALUES.value
        matches = [one for one in self._values.find(piece) if one.score >= least]
        found = list(self._of_values(start, end, matches, dates=True))
        for match in self._names.search([piece], 3, max(least, VALUES.name))[0]:
            found += self._named(start, end, match.name, match.score)
        return found

    def is_rare(self, word: str) -> bool:
        """True for a word that is none of everyday."""
        return not word.isalpha() or not self._familiar(word.casefold())


def _is_marked(text: str, start: int, end: int) -> bool:
    """True if a word, with what it is joined to without a space, has a capital in front, a digit or an @."""
    low = text.rfind(" ", 0, start) + 1
    high = text.find(" ", end)
    token = text[low : high if high >= 0 else len(text)]
    return text[start].isupper() or any(map(str.isdigit, token)) or "@" in token


def _begins_sentence(text: str, start: int, length: int) -> bool:
    """True for a single word at the start of a sentence, whose capital means nothing."""
    before = text[:start].rstrip(" '\"\u201c\u2018")
    return length == 1 and (not before or before[-1] in ".?!:")
