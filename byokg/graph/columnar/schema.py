"""Columns of a graph: typed cells, properties of nodes, and the schema counted from them.

Importers pass cells as text in Arrow columns; `typed` turns them into numbers, truth values and dates, or names
the first invalid one. `count_schema` reads the finished columns once, some edges at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple, Protocol, SupportsIndex, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Int64, Integers, values_of
from byokg.errors import GraphError
from byokg.graph.columnar.ids import first_rows
from byokg.graph.columnar.node_types import NO_FURTHER, FurtherTypes
from byokg.graph.sorted_ids import portions, ranges, spread
from byokg.graph.store import PropertySchema, RelationSchema, Schema
from byokg.index.vocabulary import narrow, positions
from byokg.types import NO_PROPERTIES, Properties, Value


class Labels(tuple[str, ...]):
    """Distinct labels; the number of each is its position. A tuple in all but the time that `index` and `in` take."""

    _places: dict[str, int]

    def __new__(cls, labels: Iterable[str]) -> Labels:
        """Number the labels."""
        made = super().__new__(cls, labels)
        made._places = {label: place for place, label in enumerate(made)}
        return made

    def index(self, label: Any, start: SupportsIndex = 0, stop: SupportsIndex | None = None, /) -> int:
        """Return the number of a label. Raises `ValueError` for one that is not here."""
        found = self._places.get(label, -1)
        bounds = range(*slice(start, stop).indices(len(self)))
        if found not in bounds:
            raise ValueError(f"no label {label!r}")
        return found

    def __contains__(self, label: object) -> bool:
        return label in self._places


TEXT = pa.large_string()

KINDS: dict[str, tuple[pa.DataType, str | None, str]] = {
    "string": (pa.large_string(), None, "text"),
    "int": (pa.int64(), r"^-?[0-9]+$", "a whole number such as 42, within 64 bits"),
    "float": (pa.float64(), r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$", "a finite number such as 4.2"),
    "bool": (pa.bool_(), r"^(?i:true|false)$", "true or false"),
    "date": (pa.date32(), r"^-?[0-9]{4}-[0-9]{2}-[0-9]{2}$", "a date such as 2001-09-30, years -9999 to 9999"),
    "flag": (pa.bool_(), r"^[01]$", "1 for true or 0 for false"),
}
"""Kind of a column: storage, pattern of a cell, and a description of that for messages."""


@dataclass(frozen=True, order=True)
class Problem:
    """Why one record cannot be used; records count from 0."""

    row: int
    reason: str


def typed(name: str, kind: str, texts: pa.ChunkedArray) -> tuple[pa.Array, Problem | None]:
    """Convert a column of texts to one of `KINDS`; return the values, or the first cell that is none."""
    type_, pattern, wording = KINDS[kind]
    if pattern is None:
        return whole(texts, type_), None
    fits = pc.match_substring_regex(texts, pattern)
    bad = whole(pc.invert(pc.fill_null(fits, True)), pa.bool_())
    if not bad.true_count:
        try:
            if type_ == pa.bool_():
                values = whole(pc.equal(pc.utf8_lower(texts), "1" if kind == "flag" else "true"), type_)
            else:
                values = _dates(texts) if kind == "date" else whole(texts.cast(type_), type_)
        except pa.ArrowInvalid:
            bad = pa.array([text is not None and not _casts(text, type_) for text in texts.to_pylist()])
        else:
            if kind != "float":
                return values, None
            bad = pc.invert(pc.fill_null(pc.is_finite(values), True))
            if not bad.true_count:
                return values, None
    row = pc.index(bad, True).as_py()
    return None, Problem(row, f"{texts[row].as_py()!r} in column {name!r} is not {wording}; correct the cell")


def _dates(texts: pa.ChunkedArray) -> pa.Array:
    """Convert dates, those before the year 1 too, of which Arrow reads none but writes all."""
    early = pc.match_substring_regex(texts, "^(-|0000)")
    if not pc.any(early).as_py():
        return whole(texts.cast(pa.date32()), pa.date32())
    coded = whole(texts, TEXT).dictionary_encode()
    try:
        days = np.array(coded.dictionary.to_pylist(), "datetime64[D]").astype(np.int32)
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from error
    return pa.array(days).cast(pa.date32()).take(coded.indices)


def _casts(text: str, kind: pa.DataType) -> bool:
    try:
        _ = _dates(pa.chunked_array([[text]])) if kind == pa.date32() else pa.scalar(text).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def blank(name: str, coded: pa.DictionaryArray) -> Problem | None:
    """Find the first cell that is empty or holds only white space."""
    empty = pc.equal(pc.utf8_trim_whitespace(coded.dictionary), "").to_numpy(zero_copy_only=False)
    if not empty.any() and not coded.null_count:
        return None
    rows = coded.is_null().to_numpy(zero_copy_only=False)
    rows[~rows] = empty[coded.indices.drop_null().to_numpy()]
    return Problem(int(rows.argmax()), f"the {name} is empty; fill it in or delete the line")


def text_column(texts: Sequence[str | None]) -> pa.LargeStringArray:
    """Return texts as a column. Raises `GraphError` for one that UTF-8 cannot hold."""
    try:
        return pa.array(texts, TEXT)
    except UnicodeEncodeError as error:
        raise GraphError(
            f"the text {error.object!a} holds half of a surrogate pair; write the whole character, or leave it out"
        ) from error


def whole(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Return a chunked column as one array, also when it has no chunks at all."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], kind)


def arrow_buffer(text: memoryview) -> pa.Buffer:
    buffer = pa.allocate_buffer(len(text))
    memoryview(buffer).cast("B")[:] = text
    return buffer


class Clash(NamedTuple):
    """Two rows for one node that contradict each other."""

    row: int
    before: int
    """The row that stands first."""
    number: int
    """Of the node."""
    key: str
    """A column in which they differ."""


def merge_repeated(codes: Integers, count: int, content: pa.RecordBatch) -> tuple[Int64, Clash | None]:
    """Return the row where each of `count` nodes occurs first, and the first later row with other content, if any."""
    rows = first_rows(codes, count)
    first = rows[codes]
    later = np.flatnonzero(first != np.arange(len(codes)))
    found: list[tuple[int, str]] = []
    for key, column in zip(content.schema.names, content.columns, strict=True):
        here, there = column.take(pa.array(later)), column.take(pa.array(first[later]))
        both_lack = pc.and_(here.is_null(), there.is_null())
        same = pc.or_(pc.fill_null(pc.equal(here, there), False), both_lack).to_numpy(zero_copy_only=False)
        found += [(position, key) for position in np.flatnonzero(~same)[:1].tolist()]
    if not found:
        return rows, None
    position, key = min(found, key=lambda one: one[0])
    row = int(later[position])
    return rows, Clash(row, int(first[row]), int(codes[row]), key)


class PropertyColumn(NamedTuple):
    """A property of nodes."""

    name: str
    values: pa.Array
    """Of each of `nodes`, or of all nodes, null for nodes without one."""
    nodes: npt.NDArray[np.int32] | None = None
    """Numbers of the nodes that have it, ascending; None for all nodes."""

    def held(self) -> tuple[npt.NDArray[np.int32], pa.Array]:
        """Return the nodes that have it, ascending, and their values."""
        if self.nodes is not None:
            return self.nodes, self.values
        nodes = np.flatnonzero(values_of(self.values.is_valid()))
        return nodes.astype(np.int32), self.values if len(nodes) == len(self.values) else self.values.drop_null()


def of_all_nodes(columns: Mapping[str, pa.Array]) -> list[PropertyColumn]:
    """Name columns of all nodes, null for nodes without a value."""
    return [PropertyColumn(name, values) for name, values in columns.items()]


@dataclass(frozen=True)
class NodeColumns:
    """N nodes, in the order of their numbers."""

    ids: pa.LargeStringArray
    names: pa.Array | None = None
    """None if the ids are the names."""
    types: pa.Array | None = None
    """The first type of each, plain or dictionary-encoded; None if nodes are untyped."""
    properties: Iterable[PropertyColumn] = ()
    """May be used up once; then all else is read already."""
    hashes: npt.NDArray[np.uint64] | None = None
    """Those of `ids.hash_column`, if they are known."""
    set_aside: Callable[[], object] = field(default=lambda: None)
    """Gives back the memory of columns that are mapped from files, until they are read again."""
    further: FurtherTypes = NO_FURTHER
    """The other types of nodes with several; numbers are positions in the dictionary of `types`."""

    def batch(self) -> pa.RecordBatch:
        """Return the content of `nodes.arrow`: names unless they are the ids, types if nodes have any."""
        columns: dict[str, pa.Array] = {}
        if self.names is not None and not self.names.equals(self.ids):
            columns["name"] = narrow(self.names)
        if self.types is not None:
            columns["type"] = self.types if pa.types.is_dictionary(self.types.type) else self.types.dictionary_encode()
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def property_batch(columns: Mapping[str, pa.Array]) -> pa.RecordBatch | None:
    """Put property columns together; None if there are none."""
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns)) if columns else None


def place(values: pa.Array, rows: Sequence[int] | Integers, count: int) -> pa.Array:
    """Return a column of `count` values, null but in the given rows."""
    place = np.full(count, -1, np.int64)
    place[rows] = np.arange(len(values))
    return values.take(pa.array(place, mask=place < 0))


def is_date(text: str) -> bool:
    """True if a text is a date such as 2001-09-30."""
    if len(text) != 10 or not text[4] == text[7] == "-":
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def convert(batch: pa.RecordBatch | None, types: Mapping[str, pa.DataType], rows: int) -> pa.RecordBatch:
    """Give a block's properties the columns of the whole stream, null if the block lacks one."""
    given = {} if batch is None else dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = [given[name].cast(kind) if name in given else pa.nulls(rows, kind) for name, kind in types.items()]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(types.items()))


def join_batches(batches: Sequence[pa.RecordBatch], types: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """Put batches that have these columns below each other."""
    columns = [
        pa.concat_arrays([pa.array([], kind), *(batch.column(name) for batch in batches)])
        for name, kind in types.items()
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(types.items()))


def property_columns(rows: Sequence[Properties]) -> dict[str, pa.Array]:
    """Turn property mappings into typed columns, null for rows without the key."""
    keys = dict.fromkeys(key for row in rows for key in row)
    text_column(list(keys))
    kinds: dict[frozenset[type], pa.DataType] = {
        frozenset({str}): pa.large_string(),
        frozenset({bool}): pa.bool_(),
        frozenset({int}): pa.int64(),
        frozenset({float}): pa.float64(),
        frozenset({int, float}): pa.float64(),
    }
    columns = {}
    for key in keys:
        values = [row.get(key) for row in rows]
        found = frozenset(type(value) for value in values if value is not None)
        if found not in kinds:
            raise GraphError(several_types(key, found))
        try:
            columns[key] = (
                text_column(cast("list[str | None]", values)) if found == {str} else pa.array(values, kinds[found])
            )
        except (OverflowError, pa.ArrowInvalid) as error:
            raise GraphError(
                f"property {key!r} holds a number that does not fit into 64 bits; store it as str"
            ) from error
    return columns


def several_types(key: str, found: Iterable[type]) -> str:
    """Return the reason why a property cannot be a column."""
    names = ", ".join(sorted(kind.__name__ for kind in found))
    return f"property {key!r} holds values of types {names}; give it one of str, int, float, bool"


def read_rows(batches: Sequence[pa.RecordBatch], rows: Int64, size: int) -> list[Properties]:
    """Read properties row by row, leaving out nulls; dates become ISO 8601 strings.

    Args:
        batches: of `size` rows each, the last one of the rest.
        rows: numbers of rows, counted over all batches.
        size: rows per batch, unless there is only one.
    """
    if not batches:
        return [NO_PROPERTIES] * len(rows)
    found: list[dict[str, Value]] = [{} for _ in range(len(rows))]
    which = rows // size if len(batches) > 1 else np.zeros_like(rows)
    for number in np.unique(which).tolist():
        batch, places = batches[number], np.flatnonzero(which == number)
        within = positions(rows[places] - number * size)
        for key, column in zip(batch.schema.names, batch.columns, strict=True):
            for place, value in zip(places.tolist(), plain(column.take(within)), strict=True):
                if value is not None:
                    found[place][key] = value
    return [row or NO_PROPERTIES for row in found]


_EXAMPLES, _EXAMPLE_ROWS, _EXAMPLE_LENGTH = 3, 16, 60
"""Values of a property that the schema shows, rows it looks at for them, and characters in one."""

_SCAN = 1 << 21
"""Edges looked at together."""


class EdgeColumns(NamedTuple):
    """All E edges of a graph, and all of them again for the way back."""

    relation: Stored
    """(2E,) relation numbers."""
    other: Stored
    """(2E,) the tails, and then the heads."""
    undirected: npt.NDArray[np.bool_] | None = None
    """(R,) relations with undirected edges; None if there are none."""
    undirected_edges: Stored | npt.NDArray[np.bool_] | None = None
    """(2E,) the undirected edges; None unless a relation has directed edges as well."""

    def flags(self, part: slice, relation: Integers) -> npt.NDArray[np.bool_]:
        """Return True for each undirected edge of a part, whose relations are given."""
        if self.undirected is None:
            return np.zeros(len(relation), np.bool_)
        if self.undirected_edges is None:
            return self.undirected[relation]
        return self.undirected_edges[part].astype(np.bool_)


def count_schema(
    edge_columns: EdgeColumns,
    count: int,
    nodes: pa.RecordBatch,
    node_properties: Iterable[PropertyColumn],
    edge_properties: Sequence[pa.RecordBatch],
    relations: Sequence[str],
    further: FurtherTypes = NO_FURTHER,
) -> Schema:
    """Count node types, relations, the types at their ends, and owners of each property.

    A node of several types counts for each of them.

    Args:
        edge_columns: the edges.
        count: of nodes, N.
        nodes: N rows, with the column `type` if nodes have types; else it may have no columns.
        node_properties: of the N nodes.
        edge_properties: E rows in all.
        relations: R labels.
        further: types of nodes besides their first.
    """
    if "type" in nodes.schema.names:
        types: list[str] = nodes.column("type").dictionary.to_pylist()
        codes = values_of(nodes.column("type").indices)
    else:
        types, codes = [""], np.zeros(count, np.int32)
    relation = edge_columns.relation
    edges = len(relation) // 2
    of_ends = EndTypes(codes, further)
    type_counts = np.bincount(codes, minlength=len(types)) + np.bincount(further.type, minlength=len(types))
    edge_counts, undirected = np.zeros(len(relations), np.int64), np.zeros(len(relations), np.int64)
    for part in _parts(0, edges):
        some = relation[part]
        edge_counts += np.bincount(some, minlength=len(relations))
        if edge_columns.undirected is not None:
            undirected += np.bincount(some[edge_columns.flags(part, some)], minlength=len(relations))
    ranges = _ends(edge_columns, False, of_ends, types, edge_counts)
    domains = _ends(edge_columns, True, of_ends, types, edge_counts)
    of_nodes = ((one.name, _by_type(one, codes, further)) for one in node_properties)
    of_types = _property_schemas(of_nodes, len(types))
    of_relations = _property_schemas(_of_edges(edge_properties, relation), len(relations))
    by_count = sorted((n for n in range(len(types)) if type_counts[n]), key=lambda n: (-type_counts[n], types[n]))
    return Schema(
        node_types={types[n]: int(type_counts[n]) for n in by_count},
        relations=tuple(
            RelationSchema(name, count, domain, range_, _names(found), found, both_ways)
            for name, count, domain, range_, found, both_ways in zip(
                relations, edge_counts.tolist(), domains, ranges, of_relations, undirected.tolist(), strict=True
            )
        ),
        node_properties={types[n]: _names(of_types[n]) for n in by_count if of_types[n]},
        node_property_details={types[n]: of_types[n] for n in by_count if of_types[n]},
    )


class Stored(Protocol):
    """Numbers of which some are read at a time: an array, or one that stays in a file."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Integers: ...


def _parts(start: int, stop: int) -> Iterator[slice]:
    for first in range(start, stop, _SCAN):
        yield slice(first, min(first + _SCAN, stop))


def _names(properties: Sequence[PropertySchema]) -> tuple[str, ...]:
    return tuple(found.name for found in properties)


class EndTypes:
    """The types of nodes at the ends of edges."""

    def __init__(self, first: Integers, further: FurtherTypes) -> None:
        """Take the number of the first type of each of N nodes, and the further ones."""
        self._first, self._further = first, further
        self._bounds = ranges(np.bincount(further.node, minlength=len(first))) if len(further) else None

    def pairs(self, relation: Integers, ends: Integers) -> Iterator[tuple[Integers, Integers]]:
        """Yield relations and types of some edges at one end, an edge as often as its end has types."""
        yield relation, self._first[ends]
        if self._bounds is None:
            return
        counts = self._bounds[ends + 1] - self._bounds[ends]
        several = np.flatnonzero(counts)
        for start, stop in portions(counts[several], _SCAN):
            some = several[start:stop]
            place, rows = spread(self._bounds[ends[some]], counts[some])
            yield relation[some[place]], self._further.type[rows]


def _by_type(column: PropertyColumn, codes: Integers, further: FurtherTypes) -> list[_Part]:
    """Return the values of a property with the type of the node of each, and again for each further type."""
    parts: list[_Part] = [(column.values, codes if column.nodes is None else codes[column.nodes])]
    if len(further):
        rows: Integers = further.node
        kinds = further.type
        if column.nodes is not None:
            place = np.searchsorted(column.nodes, rows)
            held = np.flatnonzero(column.nodes[np.minimum(place, len(column.nodes) - 1)] == rows)
            rows, kinds = place[held], kinds[held]
        parts.append((column.values.take(positions(rows)), kinds))
    return parts


def _end_codes(edges: EdgeColumns, heads: bool, of_ends: EndTypes, types: int) -> Iterator[Int64]:
    """Yield `relation * types + type` of the nodes at one end of edges, of undirected ones at both."""
    half = len(edges.relation) // 2
    for own, (start, stop) in ((heads, (half, 2 * half)), (not heads, (0, half))):
        if not own and edges.undirected is None:
            continue
        for part in _parts(start, stop):
            relation, end = edges.relation[part], edges.other[part]
            if not own:
                kept = np.flatnonzero(edges.flags(part, relation))
                relation, end = relation[kept], end[kept]
            for some, codes in of_ends.pairs(relation, end):
                yield some.astype(np.int64) * types + codes


def _ends(
    edges: EdgeColumns, heads: bool, of_ends: EndTypes, types: Sequence[str], edge_counts: Int64
) -> list[tuple[str, ...]]:
    """List for each relation the node types at one of its ends, most frequent first, then by name."""
    if len(types) == 1:
        return [(types[0],) if count else () for count in edge_counts.tolist()]
    size = len(edge_counts) * len(types)
    dense = size <= 2 * len(edges.relation) + 1_000_000
    counted = np.zeros(size if dense else 0, np.int64)
    pairs, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    for found in _end_codes(edges, heads, of_ends, len(types)):
        if dense:
            counted += np.bincount(found, minlength=size)
        else:
            fresh, times = np.unique(found, return_counts=True)
            pairs, place = np.unique(np.concatenate((pairs, fresh)), return_inverse=True)
            counts = np.bincount(place, np.concatenate((counts, times))).astype(np.int64)
    if dense:
        pairs = counted.nonzero()[0]
        counts = counted[pairs]
    rows = [(*divmod(pair, len(types)), count) for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True)]
    listed: list[list[str]] = [[] for _ in edge_counts]
    for number, code, _ in sorted(rows, key=lambda row: (row[0], -row[2], types[row[1]])):
        listed[number].append(types[code])
    return [tuple(names) for names in listed]


def _of_edges(batches: Sequence[pa.RecordBatch], relation: Stored) -> Iterator[tuple[str, list[_Part]]]:
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)]).tolist()
    for name in batches[0].schema.names if batches else ():
        held = [batch.column(name) for batch in batches]
        groups = [relation[start : start + len(column)] for start, column in zip(starts, held, strict=False)]
        yield name, list(zip(held, groups, strict=True))


_Part: TypeAlias = tuple[pa.Array, Integers]
"""Some values of a property, and the group of each."""


def _property_schemas(
    properties: Iterable[tuple[str, Sequence[_Part]]], group_count: int
) -> list[tuple[PropertySchema, ...]]:
    """List for each group of rows the properties that at least one of them has, in order."""
    found: list[list[PropertySchema]] = [[] for _ in range(group_count)]
    for name, parts in properties:
        counts = np.array([np.bincount(part[_valid(column)], minlength=group_count) for column, part in parts])
        totals, before = counts.sum(axis=0), counts.cumsum(axis=0) - counts
        having = totals.nonzero()[0]
        # Which of its rows each group shows, counted from 0 over all parts: some, spread evenly.
        shown = [
            np.linspace(0, total - 1, min(total, _EXAMPLE_ROWS)).astype(np.int64) for total in totals[having].tolist()
        ]
        owner = having.repeat([len(some) for some in shown])
        rank = np.concatenate([np.empty(0, np.int64), *shown])
        values: dict[int, list[Value]] = {number: [] for number in having.tolist()}
        for number, (column, part) in enumerate(parts):
            place = rank - before[number][owner]
            here = np.flatnonzero((place >= 0) & (place < counts[number][owner]))
            rows = np.flatnonzero(_valid(column))
            narrow = part.astype(np.uint16) if group_count < 1 << 16 else part  # which sorts quicker
            order = rows[np.argsort(narrow[rows], kind="stable")]
            first = counts[number].cumsum() - counts[number]
            taken = column.take(pa.array(order[first[owner[here]] + place[here]]))
            for member, value in zip(owner[here].tolist(), plain(taken), strict=True):
                values[member].append(value)
        kind = _kind(parts[0][0].type)
        for number, some in values.items():
            found[number].append(PropertySchema(name, kind, _examples(some)))
    return [tuple(properties) for properties in found]


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    marks: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return marks


def _kind(type_: pa.DataType) -> str:
    return {pa.int64(): "int", pa.float64(): "float", pa.bool_(): "bool", pa.date32(): "date"}.get(type_, "string")


def plain(values: pa.Array) -> list[Any]:
    """Return values as Python has them, dates as ISO 8601 texts and null as None."""
    found: list[Any] = (values.cast(pa.string()) if pa.types.is_date(values.type) else values).to_pylist()
    return found


def _examples(values: Sequence[Value]) -> tuple[Value, ...]:
    """Return the first few different values that are short."""
    return tuple(dict.fromkeys(value for value in values if len(str(value)) <= _EXAMPLE_LENGTH))[:_EXAMPLES]
