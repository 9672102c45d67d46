"""Graphs that other Python libraries hold, and records that carry a graph of their own.

Files of triples, with or without a time: read a block at a time while entities and relations are numbered.

Numbers are given in order of first appearance, reading line by line, head before tail.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from byokg.errors import GraphError, ImportFailed
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.ids import Interner, row_by_row
from byokg.graph.columnar.schema import KINDS, TEXT, NodeColumns, Numbers, Problem, blank, typed, whole, without_null
from byokg.graph.columnar.writer import EdgeBlock, Triples, ahead
from byokg.graph.importers.delimited import RecordFile, raise_first
from byokg.types import NO_PROPERTIES, EntityId, Node, Properties, Triple, Value

if TYPE_CHECKING:
    import networkx
    import pandas

TRIPLE_COLUMNS = ("head", "relation", "tail")
TIME_COLUMNS = {4: (*TRIPLE_COLUMNS, "time"), 5: (*TRIPLE_COLUMNS, "start", "end")}
"""Columns by their number, where triples have times."""

_YEAR = r"-?[0-9]{1,6}"
_DAY = r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?([T ][0-9:.]+(Z|[+-][0-9:]+)?)?"
_TIME = re.compile(rf"({_YEAR}|{_DAY})?")


class TripleFile:
    """A file whose lines are head, relation and tail, or these with one or two times; a `GraphStream`."""

    distinct = True
    left_out = 0

    def __init__(self, path: Path) -> None:
        """Read the first line. Raises `ImportFailed` when it is neither a header nor a triple."""
        self.file = RecordFile.at(path)
        self._entities, self._relations = Interner(), Interner()
        line, self._fields = self.file.first("lines of head, relation, tail")
        names = tuple(field.strip().lower() for field in self._fields)
        self._columns = TIME_COLUMNS.get(len(names), TRIPLE_COLUMNS)
        titled = names[:3] == TRIPLE_COLUMNS
        if titled and names != self._columns:
            reason = (
                "the header has property columns other than time, or start and end; "
                "name the file edges.csv, add a nodes.csv, and import the folder"
            )
            raise ImportFailed(path, line, reason)
        times = self._fields[3:]
        if len(names) != len(self._columns) or not (titled or all(map(_TIME.fullmatch, times))):
            raise self.file.ragged(len(TRIPLE_COLUMNS), line, self._fields)
        self.file = replace(self.file, titled=titled)
        names = self._columns[len(TRIPLE_COLUMNS) :]
        self._times = _Times(self.file, names) if names else None

    @property
    def name(self) -> str:
        """Name the file."""
        return str(self.file.path)

    def blocks(self) -> Iterator[EdgeBlock]:
        """Yield the edges. Raises `ImportFailed` for a line that is no triple, or whose time is none."""
        rows = 0
        for table in ahead(self.file.blocks(self._fields, [TEXT] * len(self._fields))):
            triples = self._numbered(table, rows)
            times = self._times.read(table.columns[3:], rows) if self._times else None
            yield EdgeBlock(triples, *(times or ()))
            rows += table.num_rows
        if rows == 0:
            raise ImportFailed(self.file.path, None, "holds no triples; expected lines of head, relation, tail")

    def nodes(self) -> NodeColumns:
        """Return the entities."""
        return NodeColumns(self._entities.strings, hashes=self._entities.hashes)

    def relations(self) -> list[str]:
        """Return the relation labels."""
        labels: list[str] = self._relations.strings.to_pylist()
        return labels

    def property_types(self) -> Mapping[str, pa.DataType]:
        """Return the columns that hold times."""
        return self._times.types() if self._times else {}

    def source(self) -> dict[str, Any]:
        """Return what a graph's `source` says about the file."""
        return {"kind": "triples with time" if self._times else "triples", "files": [self.file.description()]}

    def _numbered(self, table: pa.Table, rows: int) -> Triples:
        """Return head, relation and tail numbers of some lines, before which there were so many."""
        head, relation, tail = (whole(column, TEXT) for column in table.columns[:3])
        ends, labels = pa.concat_arrays([head, tail]).dictionary_encode(), relation.dictionary_encode()
        if blank("", ends) or blank("", labels):
            columns = zip(TRIPLE_COLUMNS, (head, relation, tail), strict=True)
            raise_first(self.file, [blank(name, column.dictionary_encode()) for name, column in columns], rows)
        triples = np.empty((table.num_rows, 3), np.int32)
        triples[:, [0, 2]] = self._entities.encode(ends.dictionary, row_by_row(ends)).reshape(-1, 2)
        triples[:, 1] = self._relations.encode(labels.dictionary, labels.indices.to_numpy())
        return triples


class _Times:
    """The columns that say when an edge holds: years are int, days date, and a mixture with other times text."""

    def __init__(self, file: RecordFile, names: Sequence[str]) -> None:
        self._file, self._names = file, names
        self._kinds: dict[str, list[str]] = {name: ["int", "date", "string"] for name in names}
        """What each column may still be, best first."""
        self._strange: dict[str, Problem] = {}
        """The first cell of each column that is neither a year nor a date; a long number is, in a column of numbers."""
        self._texts = Interner()

    def read(self, columns: Sequence[pa.ChunkedArray], rows: int) -> tuple[pa.RecordBatch, Numbers]:
        """Return times as texts, and for each row a number that says which they are; rows count those before."""
        marks = np.zeros(len(columns[0]), np.int64)
        texts = [whole(column, TEXT) for column in columns]
        coded = [column.dictionary_encode() for column in texts]
        raise_first(self._file, [self._check(*column, rows) for column in zip(self._names, coded, strict=True)])
        for column in map(without_null, coded):
            marks = marks << 32 | self._texts.encode(column.dictionary, column.indices.to_numpy())
        return pa.RecordBatch.from_arrays(texts, list(self._names)), marks

    def _check(self, name: str, coded: pa.DictionaryArray, rows: int) -> Problem | None:
        """Find out what a column may still be; return the cell that leaves nothing."""
        distinct = pa.chunked_array([coded.dictionary])
        fits = pc.match_substring_regex(distinct, f"^({_YEAR}|{_DAY})$").to_numpy()
        if not fits.all() and name not in self._strange:
            row = int(np.isin(pc.fill_null(coded.indices, -1).to_numpy(), np.flatnonzero(~fits)).argmax())
            reason = f"{name} {coded[row].as_py()!r} is neither a year nor an ISO 8601 date"
            self._strange[name] = Problem(rows + row, f"{reason}; correct the cell or empty it")
        self._kinds[name] = [
            kind
            for kind in self._kinds[name]
            if (fits.all() if kind == "string" else typed(name, kind, distinct)[1] is None)
        ]
        return None if self._kinds[name] else self._strange[name]

    def types(self) -> dict[str, pa.DataType]:
        """Return what each column holds."""
        return {name: KINDS[kinds[0]][0] for name, kinds in self._kinds.items()}


_NODE_COLUMNS, _EDGE_COLUMNS = ("id", "name", "type"), ("head", "relation", "tail")


def from_networkx(
    graph: networkx.Graph,
    relation: str | None = None,
    default_relation: str = "related_to",
    name: str = "name",
    type: str = "type",
) -> ColumnarGraph:
    """Hold a NetworkX graph of any kind; the nodes' keys become ids, as text.

    Args:
        graph: an edge of an undirected graph is kept once, in the direction in which it is listed.
        relation: edge attribute that holds the relation; by default `relation`, `label` or `type`, the first that an
            edge has, and the key of a multigraph's edge where that is a text.
        default_relation: relation of edges that have none of these.
        name: node attribute that holds the name.
        type: node attribute that holds the type.

    Returns:
        The graph; all other attributes are properties, those that are None or not a number are absent.

    Raises:
        GraphError: two nodes have the same text as their key, or an attribute holds values of several types.
    """
    nodes = [
        _node(key, attributes.get(name), attributes.get(type), attributes, (name, type))
        for key, attributes in graph.nodes(data=True)
    ]
    listed = graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True)
    named = ("relation", "label", "type") if relation is None else (relation,)
    edges = []
    for head, tail, *key, attributes in listed:
        attribute = next((attribute for attribute in named if attributes.get(attribute) is not None), None)
        label = attributes[attribute] if attribute else default_relation
        if attribute is None and relation is None and key and isinstance(key[0], str):
            label = key[0]
        edges.append(_edge(head, label, tail, attributes, (attribute,)))
    return ColumnarGraph.from_records(nodes, edges, graph.name or "networkx", source={"kind": "NetworkX"})


def from_pandas(
    edges: pandas.DataFrame, nodes: pandas.DataFrame | None = None, columns: Mapping[str, str] | None = None
) -> ColumnarGraph:
    """Hold the graph in two data frames.

    Args:
        edges: columns `head`, `relation`, `tail`; all others are properties.
        nodes: columns `id`, and `name` and `type` if there are such; all others are properties. Without this frame
            the ends of edges are the nodes, and exact repetitions of an edge without properties are dropped.
        columns: what these columns are called in the frames, by the names above, where they are called otherwise.

    Raises:
        GraphError: a column is missing, an end is no node, or a column holds values of several types.
    """
    called = dict(columns or {})
    _refuse_missing("edges", edges, _EDGE_COLUMNS, called)
    if nodes is None and len(edges.columns) == len(_EDGE_COLUMNS):
        rows = zip(*(edges[called.get(column, column)] for column in _EDGE_COLUMNS), strict=True)
        spelled = ((str(_id(head)), str(label), str(_id(tail))) for head, label, tail in rows)
        return ColumnarGraph.from_triples(spelled, "pandas")
    links = [
        _edge(row.pop("head"), row.pop("relation"), row.pop("tail"), row) for row in _rows(edges, _EDGE_COLUMNS, called)
    ]
    if nodes is None:
        ends = dict.fromkeys(end for link in links for end in (link.head, link.tail))
        found = [Node(end, end) for end in ends]
    else:
        _refuse_missing("nodes", nodes, ("id",), called)
        found = [
            _node(row.pop("id"), row.pop("name", None), row.pop("type", None), row)
            for row in _rows(nodes, _NODE_COLUMNS, called)
        ]
    return ColumnarGraph.from_records(found, links, "pandas", source={"kind": "pandas"})


def from_record(record: Mapping[str, Any]) -> ColumnarGraph:
    """Hold the graph that a question brings along, in the layout of the RoG data sets.

    Args:
        record: `graph` is a list of [head, relation, tail], and `id` names it in messages.

    Returns:
        The graph; a record without triples is a graph without nodes. Exact repetitions are dropped and counted.

    Raises:
        GraphError: the record has no such list.
    """
    triples = record.get("graph")
    place = f"record {record.get('id')!r}"
    if not isinstance(triples, Iterable) or isinstance(triples, str | Mapping):
        raise GraphError(f"{place} has no list of triples under 'graph'; its keys are {', '.join(map(str, record))}")
    spelled = []
    for position, triple in enumerate(triples):
        if len(triple) != 3 or not all(isinstance(part, str) for part in triple):
            raise GraphError(f"{place}: triple {position} is {triple!r}; it is three texts: head, relation, tail")
        spelled.append((triple[0], triple[1], triple[2]))
    return ColumnarGraph.from_triples(spelled, place)


def _rows(frame: pandas.DataFrame, fixed: Sequence[str], called: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return rows under the names that we use."""
    names = {called.get(column, column): column for column in fixed}
    columns = [names.get(str(column), str(column)) for column in frame.columns]
    values = [frame[column].tolist() for column in frame.columns]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def _refuse_missing(what: str, frame: pandas.DataFrame, needed: Sequence[str], called: Mapping[str, str]) -> None:
    for column in needed:
        if called.get(column, column) not in frame.columns:
            have = ", ".join(map(str, frame.columns))
            raise GraphError(
                f"the frame of {what} has no column {called.get(column, column)!r}; it has {have}: "
                f"say which one it is with columns={{{column!r}: ...}}"
            )


def _node(key: Hashable, name: object, type_: object, attributes: Mapping[Any, Any], named: Sequence[str] = ()) -> Node:
    entity = _id(key)
    return Node(
        entity,
        entity if _absent(name) else str(name),
        "" if _absent(type_) else str(type_),
        _properties(attributes, named),
    )


def _edge(
    head: Hashable, label: object, tail: Hashable, attributes: Mapping[Any, Any], named: Sequence[str | None] = ()
) -> Triple:
    if _absent(label):
        raise GraphError(f"the edge from {head!r} to {tail!r} has no relation; give it one")
    return Triple(_id(head), str(label), _id(tail), properties=_properties(attributes, named))


def _id(key: Hashable) -> EntityId:
    if _absent(key) or key == "":
        raise GraphError(f"a node has the id {key!r}; give it a text or a number")
    return EntityId(str(key))


def _properties(attributes: Mapping[Any, Any], named: Sequence[str | None]) -> Properties:
    found = {str(key): _value(value) for key, value in attributes.items() if key not in named and not _absent(value)}
    return found or NO_PROPERTIES


def _absent(value: object) -> bool:
    """Tell whether a cell is empty: None, not a number, or pandas' NA and NaT, which differ from themselves."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or repr(value) in ("<NA>", "NaT")


def _value(value: object) -> Value:
    if isinstance(value, str | bool):
        return value
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if hasattr(value, "isoformat"):
        text = str(value.isoformat())
        return text.removesuffix("T00:00:00")
    if isinstance(value, list | tuple) and all(isinstance(item, str | int | float) for item in value):
        return ";".join(map(str, value))
    return str(value)
