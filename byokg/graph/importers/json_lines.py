"""Graphs as JSON, one triple, node or edge a line.

| line                                                                        | is                                |
|-----------------------------------------------------------------------------|-----------------------------------|
| `["Alien", "directed_by", "Scott"]`                                         | an edge                           |
| `{"head": …, "relation": …, "tail": …, "since": 1979}`                      | an edge with properties           |
| `{"id": …, "name": …, "type": …, "born": 1937}`                             | a node with properties            |
| `{"type": "node", "id": …, "labels": […], "properties": {…}}`               | a node as APOC exports it         |
| `{"type": "relationship", "label": …, "start": {"id": …}, "end": {…}, …}`   | an edge as APOC exports it        |
| `{"id": …, "question": …, "graph": [["Alien", "directed_by", "Scott"], …]}` | a question's own edges (RoG)      |

A node's `type` may be a list of types; a list `types`, or `labels` if there is no type, gives further ones.
Keys may be in any case, and those of edges may have the other names that `columns` lists (`source`, `target`, …). An
edge without a relation is `related_to` its tail; one with `"directed": false` or `"type": "Undirected"` leads both
ways. Properties may also stand together under `properties`. Ids are texts or numbers. A null is no property; a list or
object is kept as its JSON. Where no line is a node, the ends of edges are the nodes, and exact repetitions of an edge
without properties are dropped and counted. Where some are, both ends of every edge must be.
The graphs that questions bring along become one; `python_graphs.from_record` holds each by itself.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from byokg.arrays import Int64
from byokg.errors import GraphError, ImportFailed
from byokg.files import TextFile
from byokg.graph.columnar.node_types import cells_of_texts, write_types
from byokg.graph.columnar.schema import (
    TEXT,
    Clash,
    arrow_buffer,
    property_batch,
    property_columns,
    several_types,
    text_column,
)
from byokg.graph.columnar.writer import EdgeBlock, ahead
from byokg.graph.importers.columns import (
    EdgeHeader,
    direction_keys,
    edge_keys,
    is_direction,
    is_undirected,
    may_state_direction,
    node_keys,
    undirected_rows,
    words,
)
from byokg.graph.importers.table_stream import DEFAULT_RELATION, NAME, TYPE, TableStream
from byokg.graph.importers.tables import columns_read
from byokg.types import NO_PROPERTIES, EntityId, Node, Properties, Triple, Value

EDGE_KEYS = ("head", "relation", "tail")
NODE_KEYS = ("id", "name", "type")


def records(path: Path, line: int, text: str) -> Sequence[Node | Triple]:
    """Return the content of a line: a node, an edge, or all edges of a question. Raises `ImportFailed`."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ImportFailed(path, line, f"this is no JSON: {error}; one record stands on each line") from error
    return read_record(path, line, value, text)


def read_record(path: Path, line: int | None, value: Any, text: str = "") -> Sequence[Node | Triple]:
    """Return the content of a JSON value, as of a line with some `text`. Raises `ImportFailed`."""
    graph = value.get("graph") if isinstance(value, dict) else None
    if not isinstance(graph, list) or not all(isinstance(triple, list) for triple in graph):
        return [_record(path, line, value, text)]
    if not graph and "question" not in value:
        return [_record(path, line, value, text)]
    for triple in graph:
        if len(triple) != 3:
            raise ImportFailed(path, line, f"{_short(json.dumps(triple))} in graph is not [head, relation, tail]")
    return [_edge(path, line, head, relation, tail, NO_PROPERTIES) for head, relation, tail in graph]


def _record(path: Path, line: int | None, value: Any, text: str) -> Node | Triple:
    if isinstance(value, list) and len(value) == 3:
        return _edge(path, line, value[0], value[1], value[2], NO_PROPERTIES)
    if isinstance(value, dict):
        inner = value.get("properties", {})
        if not isinstance(inner, dict):
            raise ImportFailed(path, line, f"properties is {inner!r}; it holds names and values")
        if value.get("type") == "relationship" and {"start", "end", "label"} <= value.keys():
            ends = [end.get("id") if isinstance(end, dict) else end for end in (value["start"], value["end"])]
            return _edge(path, line, ends[0], value["label"], ends[1], inner)
        if all(key in value for key in EDGE_KEYS) and not _is_node(value):
            return _keyed_edge(path, line, value, {key: key for key in EDGE_KEYS}, inner)
        if value.get("type") == "node" and isinstance(value.get("labels", []), list) and "id" in value:
            return _node(path, line, value["id"], inner.get("name"), value.get("labels", []), inner)
        stated = _stated_direction(value)
        given = tuple(key for key, item in value.items() if item is not None and key not in ("properties", stated))
        if header := edge_keys(given):
            if header.rivals:
                names = " and ".join(map(repr, header.rivals))
                raise ImportFailed(path, line, f"{names} may each hold the relation; rename one of the keys relation")
            return _keyed_edge(path, line, value, _role_names(header), inner)
        named = {**node_keys(given), **({"id": "id"} if "id" in value else {})}
        if "id" in named:
            types, listed = _types(value, named.get("type", "type"))
            left_out = {*named.values(), *NODE_KEYS, "properties", *listed}
            own = {key: item for key, item in value.items() if key not in left_out}
            name = value.get(named.get("name", "name"), inner.get("name"))
            return _node(path, line, value[named["id"]], name, types, {**own, **inner})
    shown = _short(text or json.dumps(value, ensure_ascii=False))
    reason = f"{shown} is neither a triple, nor an object with head, relation and tail, nor one with an id"
    raise ImportFailed(path, line, reason)


def _keyed_edge(
    path: Path, line: int | None, value: Mapping[str, Any], keys: Mapping[str, str], inner: Mapping[str, Any]
) -> Triple:
    """Return the edge of an object, given the keys of head, relation and tail."""
    stated = _stated_direction(value)
    own = {key: item for key, item in value.items() if key not in (*keys.values(), "properties", stated)}
    label = value[keys["relation"]] if "relation" in keys else DEFAULT_RELATION
    edge = _edge(path, line, value[keys["head"]], label, value[keys["tail"]], {**own, **inner})
    return replace(edge, undirected=True) if stated and is_undirected(value[stated]) else edge


def _stated_direction(value: Mapping[str, Any]) -> str:
    """Return the key that states whether an edge is directed, empty if none does."""
    for key in direction_keys(tuple(value)):
        item = value[key]
        if isinstance(item, str | bool) and is_direction("".join(words(key)), [str(item)]):
            return key
    return ""


def _is_node(value: Mapping[str, Any]) -> bool:
    """True if an object with all keys of both is a node: one row of a table that holds both, empty cells null."""
    return value.get("id") is not None and all(value[key] is None for key in EDGE_KEYS)


def _types(value: Mapping[str, Any], key: str) -> tuple[list[object], list[str]]:
    """Return the types of a node, and the keys besides `key` that hold some."""
    held = value.get(key)
    types = held if isinstance(held, list) else [] if held is None else [held]
    lists = [name for name in ("types", "labels") if name == "types" or not types]
    lists = [name for name in lists if name != key and _is_list_of_texts(value.get(name))]
    return [*types, *(each for name in lists for each in value[name])], lists


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _node(
    path: Path, line: int | None, id_: object, name: object, types: Sequence[object], properties: Mapping[str, Any]
) -> Node:
    entity = _text(path, line, "id", id_)
    shown = entity if name in (None, "") else _text(path, line, "name", name)
    kinds = list(dict.fromkeys(str(each) for each in types if each not in (None, "")))
    first, further = kinds[0] if kinds else "", tuple(kinds[1:])
    return Node(EntityId(entity), shown, first, _properties(path, line, properties, leave_out="name"), further)


def _edge(
    path: Path, line: int | None, head: object, relation: object, tail: object, properties: Mapping[str, Any]
) -> Triple:
    ends = [EntityId(_text(path, line, name, end)) for name, end in (("head", head), ("tail", tail))]
    label = _text(path, line, "relation", relation)
    return Triple(ends[0], label, ends[1], properties=_properties(path, line, properties))


def _text(path: Path, line: int | None, name: str, value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value.strip():
        return value
    raise ImportFailed(path, line, f"the {name} is {value!r}; give it a text or a number")


def _properties(path: Path, line: int | None, values: Mapping[str, Any], leave_out: str = "") -> Properties:
    found: dict[str, Value] = {}
    for key, value in values.items():
        if value is None or key == leave_out:
            continue
        if isinstance(value, float) and not math.isfinite(value):
            raise ImportFailed(path, line, f"property {key!r} is {value}; give it a finite number or null")
        flat = isinstance(value, str | int | float | bool)
        found[key] = value if flat else json.dumps(value, ensure_ascii=False)
    return found or NO_PROPERTIES


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= 80 else f"{text[:77]}..."


_EXPECTED = 'lines such as ["head", "relation", "tail"]'

_ID = re.compile(b'"id"', re.IGNORECASE)
"""Part of each line that is a node."""

_SAMPLE_LINES = 1000
"""Lines sampled to describe how the file is read."""

_PARSE_BYTES = 1 << 22
"""Arrow parses a block in pieces of this size."""

_PYTHON_TYPES = {TEXT: str, pa.int64(): int, pa.float64(): float, pa.bool_(): bool}

_WHOLE = 1 << 63
"""From here on a number that Arrow calls a float may be a whole number, which is refused."""


@dataclass(frozen=True)
class _ParsedLines:
    """The records of some lines."""

    ends: pa.Array
    """(2 E,) heads and then tails of the E edges."""
    labels: pa.Array
    """(E,) relations."""
    edge_properties: Mapping[str, pa.Array]
    undirected: npt.NDArray[np.bool_] | None
    """(E,) the edges that lead both ways; None if none does."""
    ids: pa.Array
    """(N,) ids of the N nodes."""
    names: pa.Array
    """(N,) null if the id is the name."""
    types: pa.Array
    """(N,) cells, as `node_types` has them; empty for nodes without one."""
    node_properties: Mapping[str, pa.Array]


class JsonLinesFile(TableStream):
    """A file of nodes and edges; a `GraphStream`.

    Lines of one kind, such as edges with the same keys, are read by Arrow. Lines that it refuses are read one by one in
    Python, which decides their validity.
    """

    def __init__(self, path: Path, left_out: frozenset[int] = frozenset()) -> None:
        """Name the file, and lines of it that are not to be read."""
        super().__init__(str(path))
        self._file = TextFile(path, left_out=left_out)
        self.distinct = True
        self._edges = 0
        self._kinds: dict[str, pa.DataType] = {}
        self._fields: dict[str, pa.DataType] = {}
        """Types that Arrow found, so that a text that looks like a date stays one in all blocks."""

    def blocks(self) -> Iterator[EdgeBlock]:
        """Yield the edges. Raises `ImportFailed`, naming the line."""
        self._read_nodes()
        row = 0
        for line, text, block in ahead(self._read_blocks(re.compile(b""))):
            ends, labels = block.ends.dictionary_encode(), block.labels.dictionary_encode()
            numbers = self._numbers(ends, known=not self.distinct)
            if (numbers < 0).any():
                self._refuse_unknown_end(line, text)
            properties = property_batch(block.edge_properties)
            self._widen(self._kinds, block.edge_properties)
            marks = self._marks(properties, row, len(labels))
            yield EdgeBlock(self._triples(numbers, labels), properties, marks, block.undirected)
            row += len(labels)
        self._edges = row
        if row == 0 and self.distinct:
            raise ImportFailed(self._file.path, None, f"holds no records; expected {_EXPECTED}")

    def _marks(self, properties: pa.RecordBatch | None, row: int, count: int) -> Int64 | None:
        """Number the edges that have properties, so that none of them is a repetition."""
        if not self.distinct:
            return None
        marks = np.zeros(count, np.int64)
        for column in properties.columns if properties else ():
            marks[column.is_valid().to_numpy(zero_copy_only=False)] = 1
        return marks * np.arange(row + 1, row + 1 + count)

    def property_types(self) -> Mapping[str, pa.DataType]:
        """Return the edges' properties."""
        return self._kinds

    def _origin(self) -> dict[str, Any]:
        """Return the entry of the file in a graph's `source`."""
        nodes = 0 if self.distinct else len(self._ids)
        told = {"read_as": f"JSON lines; {self._read_as()}", "rows": self._edges + nodes}
        return {"kind": "JSON lines", "files": [self._file.description() | told]}

    def _read_as(self) -> str:
        """Describe the roles of the keys, by the first edge among the first lines that has keys."""
        lines = itertools.chain.from_iterable(text.split(b"\n") for text in self._file.line_blocks())
        for line in itertools.islice(lines, _SAMPLE_LINES):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            header = (
                edge_keys(tuple(key for key, item in value.items() if item is not None))
                if isinstance(value, dict)
                else None
            )
            if header:
                columns = [column for column in header.columns if column.role in EDGE_KEYS]
                return columns_read(columns, DEFAULT_RELATION, {})
        return "source, relation, target"

    def _read_nodes(self) -> None:
        """Read the lines that are nodes."""
        kinds: dict[str, pa.DataType] = {}
        for _, _, block in ahead(self._read_blocks(_ID)):
            if len(block.ids):
                own = pc.fill_null(pc.equal(block.names, block.ids), False)
                names = pc.if_else(own, pa.scalar(None, TEXT), block.names)
                columns = {NAME: names, TYPE: block.types, **block.node_properties}
                self._widen(kinds, columns)
                self._add_nodes(block.ids.dictionary_encode(), columns)
        if kinds:
            self.distinct = False
            self._merge_nodes(kinds)
            if pc.all(pc.equal(self._content[TYPE], "")).as_py():
                del self._content[TYPE]

    def _widen(self, kinds: dict[str, pa.DataType], columns: Mapping[str, pa.Array]) -> None:
        """Find types that hold the columns of one more block."""
        for key, column in columns.items():
            before = kinds.setdefault(key, column.type)
            if {before, column.type} == {pa.int64(), pa.float64()}:
                kinds[key] = pa.float64()
            elif before != column.type:
                found = [_PYTHON_TYPES[kind] for kind in (before, column.type)]
                raise ImportFailed(self._file.path, None, several_types(key, found))

    # Blocks of lines

    def _read_blocks(self, marker: re.Pattern[bytes]) -> Iterator[tuple[int, bytes, _ParsedLines]]:
        """Yield the records of each block of lines that match, with the number of its first line."""
        line = 1
        for text in self._file.line_blocks():
            if marker.search(text) or b"\\u" in text:
                yield line, text, self._by_arrow(text) or self._by_line(line, text)
            line += text.count(b"\n")

    def _by_line(self, line: int, text: bytes) -> _ParsedLines:
        nodes: list[Node] = []
        edges: list[Triple] = []
        for _, record in self._records(line, text):
            if isinstance(record, Triple):
                edges.append(record)
            else:
                nodes.append(record)
        ends = [edge.head for edge in edges] + [edge.tail for edge in edges]
        try:
            return _ParsedLines(
                ends=text_column(ends),
                labels=text_column([edge.relation for edge in edges]),
                edge_properties=property_columns([edge.properties for edge in edges]),
                undirected=_any(np.array([edge.undirected for edge in edges], np.bool_)),
                ids=text_column([node.id for node in nodes]),
                names=text_column([node.name for node in nodes]),
                types=text_column([write_types(node.types) for node in nodes]),
                node_properties=property_columns([node.properties for node in nodes]),
            )
        except GraphError as error:
            raise ImportFailed(self._file.path, None, str(error)) from error

    def _records(self, line: int, text: bytes) -> Iterator[tuple[int, Node | Triple]]:
        """Yield number and record of each line that is not blank."""
        path = self._file.path
        for number, raw in enumerate(text.split(b"\n"), line):
            content = raw.decode(errors="surrogateescape")
            self._file.check_text(number, content)
            if content.strip():
                try:
                    found = records(path, number, content)
                except RecursionError:
                    reason = "brackets are nested too deep to be read; store such a value as a text"
                    raise ImportFailed(path, number, reason) from None
                for record in found:
                    yield number, record

    def _refuse_unknown_end(self, line: int, text: bytes) -> None:
        for number, record in self._records(line, text):
            if isinstance(record, Triple):
                ends = list(dict.fromkeys([record.head, record.tail]))
                for end, known in zip(ends, self._ids.find(pa.array(ends, TEXT)).tolist(), strict=True):
                    if known < 0:
                        reason = f"{end!r} is the id of no node; add a line for it, or correct it"
                        raise ImportFailed(self._file.path, number, reason)

    def _clash(self, clash: Clash, held: pa.RecordBatch) -> ImportFailed:
        """Find the lines of two nodes, which count from 0."""
        lines: dict[int, int] = {}
        at, line = 0, 1
        for text in self._file.line_blocks():
            for where, record in self._records(line, text):
                if isinstance(record, Node):
                    lines[at] = where
                    at += 1
            line += text.count(b"\n")
            lines = {node: where for node, where in lines.items() if node in (clash.row, clash.before)}
        entity = self._ids.strings[clash.number].as_py()
        reason = f"node id {entity!r} is on line {lines[clash.before]} already, with other content; keep one of the two"
        return ImportFailed(self._file.path, lines[clash.row], reason)

    def _by_arrow(self, text: bytes) -> _ParsedLines | None:
        """Read lines that are all lists, or all objects with plain values; None for any others."""
        body = text.rstrip(b"\r\n")
        lines = body.count(b"\n") + 1
        try:
            text.decode()
        except UnicodeDecodeError:
            return None
        if _brackets(body) > _DEEP:
            return None
        starts = {sign: body.count(b"\n" + sign) + body.startswith(sign) for sign in (b"[", b"{")}
        if starts[b"["] == lines:
            return _listed(body, lines)
        table = self._parsed(body) if starts[b"{"] == lines else None
        return _objects(table) if table is not None and table.num_rows == lines else None

    def _parsed(self, body: bytes) -> pa.Table | None:
        """Parse objects to columns in order of appearance; texts are texts, whatever they look like."""
        known, order = dict(self._fields), list(self._fields)
        for _ in range(3):
            try:
                table = _parse(body, known)
            except pa.ArrowInvalid:
                if not known:
                    return None
                known, order = {}, []
                continue
            order += [name for name in table.schema.names if name not in order]
            texts = {field.name: kind for field in table.schema if (kind := _as_text(field.type))}
            if not any(_has_stamps(kind) for kind in table.schema.types):
                self._fields = {**self._fields, **texts}
                return table.select([name for name in order if name in table.schema.names])
            known |= texts
        return None


_DEEP = 200
"""Brackets within one another from which on a line is not given to Arrow, which crashes at some thousands."""


def _brackets(text: bytes) -> int:
    """Return how many brackets are opened on one line at most, which is as deep as they can be nested."""
    if text.count(b"[") + text.count(b"{") <= _DEEP:
        return 0
    signs = np.frombuffer(text, np.uint8)
    lines = np.concatenate(([0], np.flatnonzero(signs == ord("\n"))))
    opened = ((signs == ord("[")) | (signs == ord("{"))).view(np.uint8)
    return int(np.add.reduceat(opened, lines, dtype=np.int64).max())


def _parse(body: bytes, fields: Mapping[str, pa.DataType]) -> pa.Table:
    # In Arrow's own memory, whose threads may read on for a moment after an error.
    parse = arrow_json.ParseOptions(explicit_schema=pa.schema(fields.items()), unexpected_field_behavior="infer")
    return arrow_json.read_json(
        pa.BufferReader(arrow_buffer(memoryview(body))), arrow_json.ReadOptions(block_size=_PARSE_BYTES), parse
    )


def _as_text(kind: pa.DataType) -> pa.DataType | None:
    """Return the type to ask Arrow for so that a column stays text; None for a column that is no text."""
    if pa.types.is_struct(kind):
        inner = [(field.name, text) for field in kind if (text := _as_text(field.type))]
        return pa.struct(inner) if inner else None
    texts = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_timestamp(kind)
    return TEXT if texts else None


def _has_stamps(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_stamps(field.type) for field in kind)
    return bool(pa.types.is_timestamp(kind))


def _listed(body: bytes, lines: int) -> _ParsedLines | None:
    """Read lines that are lists, made into objects with one list each."""
    text = b'{"t":' + body.replace(b"\n[", b'\n{"t":[').replace(b"]\n", b"]}\n") + b"}"
    try:
        table = _parse(text, {"t": pa.list_(TEXT)})
    except pa.ArrowInvalid:
        return None
    lists = pa.concat_arrays(table.column("t").chunks)
    if table.num_columns > 1 or len(lists) != lines or not pc.all(pc.equal(pc.list_value_length(lists), 3)).as_py():
        return None
    head, relation, tail = (pc.list_element(lists, at) for at in range(3))
    return _edges_and_nodes(head, relation, tail, {}, None)


def _objects(table: pa.Table) -> _ParsedLines | None:
    """Sort rows into edges and nodes; None if `records` might make something else of one."""
    columns = {name: _array(table.column(name)) for name in table.schema.names}
    inner = columns.pop("properties", None)
    if inner is not None and pa.types.is_struct(inner.type):
        fields = dict(zip((field.name for field in inner.type), inner.flatten(), strict=True))
        if fields.keys() & {*columns, "name"}:
            return None
        columns |= fields
    elif inner is not None:
        return None
    columns = {name: column for name, column in columns.items() if column.null_count < len(column)}
    if not all(map(_is_plain, columns.values())):
        return None
    types = columns.get("type", pa.array([], TEXT))
    if types.type == TEXT and pc.any(pc.is_in(types, pa.array(["node", "relationship"], TEXT))).as_py():
        return None  # as APOC exports them
    count = table.num_rows
    stated = [name for name, column in columns.items() if _states_direction(name, column)]
    undirected = undirected_rows(columns.pop(stated[0]).cast(TEXT)) if stated else pa.repeat(False, count)
    named = _standard(columns)
    if named is None or undirected.null_count or len(stated) > 1:
        return None
    columns = named
    keys = [columns.get(key, pa.nulls(count, TEXT)) for key in EDGE_KEYS]
    given = np.array([key.is_valid().to_numpy(zero_copy_only=False) for key in keys]).sum(axis=0)
    nodes = (given == 0) & columns.get("id", pa.nulls(count, TEXT)).is_valid().to_numpy(zero_copy_only=False)
    edges = given == len(EDGE_KEYS)
    if not (edges | nodes).all() or (stated and nodes.any()):
        return None
    head, relation, tail = (key.filter(pa.array(edges)) for key in keys)
    node_columns = _select_rows(columns, nodes, EDGE_KEYS) if nodes.any() else None
    flags = undirected.filter(pa.array(edges)).to_numpy(zero_copy_only=False)
    return _edges_and_nodes(head, relation, tail, _select_rows(columns, edges, EDGE_KEYS), node_columns, _any(flags))


def _states_direction(name: str, column: pa.Array) -> bool:
    """Return True for a column in which any value may state whether an edge is directed."""
    joined = "".join(words(name))
    if column.type not in (TEXT, pa.bool_()) or not may_state_direction(joined):
        return False
    return any(is_direction(joined, [value]) for value in pc.unique(column.cast(TEXT)).drop_null().to_pylist())


def _any(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_] | None:
    return flags if flags.any() else None


def _standard(columns: dict[str, pa.Array]) -> dict[str, pa.Array] | None:
    """Rename columns that have other names than our own; None if records might do so in different ways."""
    if all(key in columns for key in EDGE_KEYS):
        return columns
    full = tuple(name for name, column in columns.items() if not column.null_count)
    header, sure = edge_keys(tuple(columns)), edge_keys(full)
    if (header and _role_names(header)) != (sure and _role_names(sure)):
        return None
    if header is None:
        renamed = {key: name for name, key in node_keys(tuple(columns)).items() if name != key}
        if not renamed:
            return columns
        if node_keys(tuple(columns)) != node_keys(full) or columns.keys() & {*renamed.values()}:
            return None
        return {renamed.get(key, key): column for key, column in columns.items()}
    names = {key: role for role, key in _role_names(header).items()}
    if header.rivals or any(key in columns and key not in names for key in EDGE_KEYS):
        return None
    found = {names.get(key, key): column for key, column in columns.items()}
    if "relation" not in found:
        count = len(found["head"])
        found["relation"] = pa.repeat(pa.scalar(DEFAULT_RELATION, TEXT), count)
    return found


def _role_names(header: EdgeHeader) -> dict[str, str]:
    """Return the names of head, relation and tail."""
    return {column.role: column.name for column in header.columns if column.role in EDGE_KEYS}


def _array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece, texts as `TEXT`."""
    array = pa.concat_arrays(column.chunks)
    return array.cast(TEXT) if pa.types.is_string(array.type) else array


def _is_plain(column: pa.Array) -> bool:
    """True if a column is text, int, bool, or float without possibly rounded whole numbers."""
    if column.type == pa.float64():
        return bool(pc.all(pc.less(pc.abs(column), float(_WHOLE))).as_py())  # false for NaN, too
    return column.type in (TEXT, pa.int64(), pa.bool_())


def _select_rows(
    columns: Mapping[str, pa.Array], rows: npt.NDArray[np.bool_], left_out: Sequence[str]
) -> dict[str, pa.Array]:
    """Return some rows, without the columns in which all of them are null."""
    kept = {name: column.filter(pa.array(rows)) for name, column in columns.items() if name not in left_out}
    return {name: column for name, column in kept.items() if column.null_count < len(column)}


def _edges_and_nodes(
    head: pa.Array,
    relation: pa.Array,
    tail: pa.Array,
    properties: Mapping[str, pa.Array],
    nodes: Mapping[str, pa.Array] | None,
    undirected: npt.NDArray[np.bool_] | None = None,
) -> _ParsedLines | None:
    """Put a block together; None if a text is empty, or is a number that Arrow and Python write differently."""
    told = dict(nodes or {})
    ids, names, types = (told.pop(key, None) for key in NODE_KEYS)
    none = pa.array([], TEXT)
    count = 0 if ids is None else len(ids)
    named = [head, relation, tail, *(column for column in (ids, names, types) if column is not None)]
    if not all(column.type in (TEXT, pa.int64()) for column in named):
        return None
    ends = pa.concat_arrays([head.cast(TEXT), tail.cast(TEXT)]).dictionary_encode()
    labels = relation.cast(TEXT).dictionary_encode()
    given = none if ids is None else ids.cast(TEXT)
    shown = pa.nulls(count, TEXT) if names is None else names.cast(TEXT)
    shown = pc.if_else(pc.equal(shown, ""), pa.scalar(None, TEXT), shown)
    for texts in (ends.dictionary, labels.dictionary, given, shown):
        if pc.any(pc.equal(pc.utf8_trim_whitespace(texts), "")).as_py():
            return None
    if ends.null_count or labels.null_count:
        return None
    return _ParsedLines(
        ends=ends,
        labels=labels,
        edge_properties=properties,
        undirected=undirected,
        ids=given,
        names=shown,
        types=pa.repeat(pa.scalar("", TEXT), count)
        if types is None
        else cells_of_texts(pc.fill_null(types.cast(TEXT), "")),
        node_properties=told,
    )
