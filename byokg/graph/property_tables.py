"""Tables of nodes and edges with properties: their headers, in our own manner or that of `neo4j-admin import`.

Own manner: `id,name,type,<property>[:kind],…` for nodes, of which only `id` must be there, and
`head,relation,tail,<property>[:kind],…` for edges. Kinds are string (the default), int, float, bool,
date, and flag for 1 or 0.

Manner of `neo4j-admin import`:

| column of a node file   | becomes                                                                                |
|-------------------------|----------------------------------------------------------------------------------------|
| `:ID`, `key:ID(Space)`  | the id; `Space:id` where the files name several spaces. With a name, a property, too.   |
| `:LABEL`                | the type: its first label; all of them as property `labels` where there are several     |
| `name`, else `title`    | the name, where it is not empty; else the id. `title` stays a property, too.           |
| `:IGNORE`               | nothing                                                                                |

| column of an edge file        | becomes                                                                          |
|-------------------------------|----------------------------------------------------------------------------------|
| `:START_ID(A)`, `:END_ID(B)`  | head and tail                                                                    |
| `:TYPE`                       | the relation; a file without it is one relation, named as the file               |

Both kinds know its types, too: `long`, `int`, `short`, `byte`; `float`, `double`; `boolean`; `char`; `date`. The others
(`datetime`, `duration`, `point`, …) and arrays such as `string[]` are kept as the text of the cell, `a;b;c`: a
property has one value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from byokg.errors import ImportFailed
from byokg.graph.cells import (
    KINDS,
    TEXT,
    Numbers,
    Problem,
    blank,
    first_rows,
    number,
    raise_first,
    typed,
    whole,
    without_null,
)
from byokg.graph.columnar import ColumnarGraph
from byokg.graph.delimited import RecordFile

NODE_COLUMNS = ("id", "name", "type")
EDGE_COLUMNS = ("head", "relation", "tail")

_ALIASES = {
    **dict.fromkeys(("long", "short", "byte"), "int"),
    "double": "float",
    "boolean": "bool",
    **dict.fromkeys(("char", "point", "time", "localtime", "datetime", "localdatetime", "duration"), "string"),
}
_MARKED = re.compile(r"(.*?):(ID|LABEL|START_ID|END_ID|TYPE|IGNORE)(?:\(([^)]*)\))?(?:\{.*\})?", re.DOTALL)
_ROLES = {"ID": "id", "LABEL": "type", "START_ID": "head", "END_ID": "tail", "TYPE": "relation", "IGNORE": ""}
_LABELS = "labels"


@dataclass(frozen=True)
class Column:
    """What one column of a file is used for."""

    position: int
    name: str
    role: str
    """What it is: `id`, `name`, `type`, `head`, `relation`, `tail`, `property`, or empty for one to leave out."""
    kind: str = "string"
    """One of `KINDS`."""
    space: str = ""
    """Id space of an id, head or tail."""


@dataclass(frozen=True)
class Table:
    """A file of nodes or edges and what its columns are."""

    file: RecordFile
    fields: Sequence[str]
    """The header as written; names of the columns where the header stands in another file."""
    columns: Sequence[Column]
    label: str = ""
    """Type of all nodes, or relation of all edges, where no column says it."""
    marked: bool = False
    """Whether the header is in the manner of neo4j-admin."""
    partial: bool = False
    """Whether edges without both ends are left out; otherwise they are refused."""


def is_marked(fields: Sequence[str]) -> bool:
    """Tell whether a header is in the manner of neo4j-admin."""
    roles = {match.group(2) for field in fields if (match := _MARKED.fullmatch(field.strip()))}
    return "ID" in roles or {"START_ID", "END_ID"} <= roles


def is_node_header(fields: Sequence[str]) -> bool:
    """Tell whether a header in the manner of neo4j-admin is one of nodes."""
    return any((match := _MARKED.fullmatch(field.strip())) and match.group(2) == "ID" for field in fields)


def table(file: RecordFile, nodes: bool, header: RecordFile | None = None) -> Table:
    """Read a header. Raises `ImportFailed` when it is none.

    Args:
        file: the records.
        nodes: whether they are nodes; otherwise edges.
        header: the file that holds the header and nothing else; None when `file` starts with it.
    """
    known = NODE_COLUMNS if nodes else EDGE_COLUMNS
    needed = ("id",) if nodes else EDGE_COLUMNS
    titled = header or file
    line, fields = titled.first(f"a header such as {','.join(known)}")
    marked = is_marked(fields)
    columns: list[Column] = []
    for field in fields:
        column = _column(titled, line, fields, field, known, marked)
        if column.role and any(column.name == other.name and other.role for other in columns):
            raise ImportFailed(titled.path, line, f"column {column.name!r} stands twice in the header; rename one")
        columns.append(replace(column, position=len(columns)))
    roles = [column.role for column in columns]
    for name in needed:
        if name == "relation" and marked:
            continue
        if name not in roles:
            reason = f"the header {','.join(fields)!r} has no column {name!r}; it starts {','.join(known)}"
            raise ImportFailed(titled.path, line, reason)
    label = "" if nodes else file.path.name.partition(".")[0]
    used = [column for column in columns if column.role]
    return Table(replace(file, titled=header is None), fields, used, label, marked)


def _column(
    file: RecordFile, line: int, fields: Sequence[str], field: str, known: Sequence[str], marked: bool
) -> Column:
    match = _MARKED.fullmatch(field.strip()) if marked else None
    if match:
        name, mark, space = match.groups()
        return Column(0, name or f":{mark}", _ROLES[mark], space=space or "")
    plain = field.strip()
    if marked and plain.endswith("}"):
        plain = plain.partition("{")[0]  # options of a type, such as its time zone
    name, colon, kind = plain.rpartition(":")
    if not colon:
        name, kind = kind, "string"
    if not name:
        raise ImportFailed(file.path, line, f"the header has a column without a name in {','.join(fields)!r}")
    element = kind.removesuffix("[]")
    if element not in KINDS and element not in _ALIASES:
        raise ImportFailed(
            file.path, line, f"column {field!r} has the unknown type {kind!r}; types are {', '.join(KINDS)}"
        )
    role = name if name in known and not (marked and name != "name") else "property"
    if role != "property" and kind != "string":
        if not marked:
            raise ImportFailed(file.path, line, f"column {name!r} is always text; leave out its type {kind!r}")
        role = "property"
    return Column(0, name, role, "string" if kind.endswith("[]") else _ALIASES.get(kind, kind))


# Reading


@dataclass(frozen=True)
class _Nodes:
    """The rows of one node file."""

    table: Table
    ids: pa.Array
    content: Mapping[str, pa.Array]
    """Columns beside the id; `name` and `type` stand under keys that no property has."""


_NAME, _TYPE = "\0name", "\0type"
_SHOWN = {_NAME: "name", _TYPE: "type"}


def several_spaces(tables: Sequence[Table]) -> bool:
    """Tell whether ids come from several spaces, so that only space and id together are unique."""
    ends = [column for one in tables for column in one.columns if column.role in ("id", "head", "tail")]
    return len({column.space for column in ends}) > 1


def import_tables(
    name: str, nodes: Sequence[Table], edges: Sequence[Table], source: Mapping[str, Any], spaced: bool
) -> ColumnarGraph:
    """Read tables of nodes and edges into one graph. Parallel edges are all kept.

    Args:
        name: what to call the graph.
        nodes: where the nodes are; a row may be repeated, another row of the same id is refused.
        edges: where the edges are; both ends must be among the nodes.
        source: what the graph says it was made from.
        spaced: whether an id's space becomes part of it, as `space:id`.

    Raises:
        ImportFailed: names file, line and reason.
    """
    parts = [_read_nodes(one, spaced) for one in nodes]
    ids = pa.concat_arrays([part.ids for part in parts])
    content = _joined([(part.table, part.content, len(part.ids)) for part in parts])
    coded = ids.dictionary_encode()
    if len(coded.dictionary) < len(ids):
        kept = _distinct_rows(parts, coded, content)
        ids, content = ids.take(kept), {key: column.take(kept) for key, column in content.items()}
    place = nodes[0].file.path.name if len(nodes) == 1 else "any node file"
    ends = [_read_edges(one, spaced, ids, place) for one in edges]
    edge_properties = _joined([(one, read.properties, len(read.head)) for one, read in zip(edges, ends, strict=True)])
    relations, relation = number(pa.concat_arrays([read.relation for read in ends]).dictionary_encode())
    names, types = content.pop(_NAME, None), content.pop(_TYPE, None)
    return ColumnarGraph.assemble(
        name=name,
        ids=ids,
        names=None if names is None else pc.coalesce(names, ids),
        types=None if types is None else without_null(types.dictionary_encode()),
        node_properties=content,
        relations=relations.to_pylist(),
        head=np.concatenate([read.head for read in ends]),
        relation=relation,
        tail=np.concatenate([read.tail for read in ends]),
        edge_properties=edge_properties,
        drop_duplicates=False,
        source=source,
    )


def _read_nodes(one: Table, spaced: bool) -> _Nodes:
    table = one.file.read(one.fields, [TEXT] * len(one.fields))
    problems: list[Problem | None] = []
    content: dict[str, pa.Array] = {}
    for column in one.columns:
        texts = table.column(column.position)
        if column.role == "id":
            coded = whole(texts, TEXT).dictionary_encode()
            problems.append(blank("id", coded))
            ids = _spaced(whole(texts, TEXT), column, spaced)
            if one.marked and not column.name.startswith(":"):
                content[column.name] = whole(texts, TEXT)
        elif column.role == "name":
            content[_NAME] = whole(texts, TEXT)
        elif column.role == "type":
            labels = whole(texts, TEXT)
            content[_TYPE] = labels
            if one.marked and (several := pc.fill_null(pc.match_substring(labels, ";"), False)).true_count:
                content[_TYPE] = pc.replace_substring_regex(labels, ";.*", "")
                content[_LABELS] = pc.if_else(several, labels, pa.scalar(None, TEXT))
        elif column.role == "property":
            content[column.name], problem = typed(column.name, column.kind, texts)
            problems.append(problem)
    raise_first(one.file, problems)
    if one.label:
        content[_TYPE] = _repeated(one.label, len(ids))
    if one.marked and _NAME not in content and "title" in content and content["title"].type == TEXT:
        content[_NAME] = content["title"]
    return _Nodes(one, ids, content)


@dataclass(frozen=True)
class _Edges:
    """The rows of one edge file."""

    head: Numbers
    relation: pa.Array
    tail: Numbers
    properties: Mapping[str, pa.Array]


def _read_edges(one: Table, spaced: bool, ids: pa.Array, place: str) -> _Edges:
    table = one.file.read(one.fields, [TEXT] * len(one.fields))
    problems: list[Problem | None] = []
    ends: dict[str, Numbers] = {}
    properties: dict[str, pa.Array] = {}
    relation = None
    for column in one.columns:
        texts = table.column(column.position)
        if column.role in EDGE_COLUMNS:
            coded = whole(texts, TEXT).dictionary_encode()
            if not one.partial:
                problems.append(blank(column.role, coded))
            if column.role == "relation":
                relation = whole(texts, TEXT)
            else:
                spelled = pa.DictionaryArray.from_arrays(coded.indices, _spaced(coded.dictionary, column, spaced))
                ends[column.role], problem = _look_up(column.role, spelled, ids, place)
                problems.append(None if one.partial else problem)
        elif column.role == "property":
            properties[column.name], problem = typed(column.name, column.kind, texts)
            problems.append(problem)
    raise_first(one.file, problems)
    if relation is None:
        relation = _repeated(one.label, table.num_rows)
    if one.partial:
        kept = np.flatnonzero((ends["head"] >= 0) & (ends["tail"] >= 0))
        rows = pa.array(kept)
        ends = {role: numbers[kept] for role, numbers in ends.items()}
        relation, properties = relation.take(rows), {key: column.take(rows) for key, column in properties.items()}
    return _Edges(ends["head"], relation, ends["tail"], properties)


def _repeated(text: str, count: int) -> pa.Array:
    return pa.array([text], TEXT).take(pa.array(np.zeros(count, np.int64)))


def _spaced(ids: pa.Array, column: Column, spaced: bool) -> pa.Array:
    if not (spaced and column.space):
        return ids
    return pc.binary_join_element_wise(pa.scalar(column.space, TEXT), ids, pa.scalar(":", TEXT))


def _joined(parts: Sequence[tuple[Table, Mapping[str, pa.Array], int]]) -> dict[str, pa.Array]:
    """Put columns of several files below each other, null where a file lacks one."""
    types: dict[str, pa.DataType] = {}
    for one, columns, _ in parts:
        for key, column in columns.items():
            before = types.setdefault(key, column.type)
            if {before, column.type} == {pa.int64(), pa.float64()}:
                types[key] = pa.float64()
            elif before != column.type:
                reason = f"column {key!r} is {column.type} here and {before} in another file; give it one type"
                raise ImportFailed(one.file.path, None, reason)
    return {
        key: pa.concat_arrays(
            [columns[key].cast(kind) if key in columns else pa.nulls(rows, kind) for _, columns, rows in parts]
        )
        for key, kind in types.items()
    }


def _distinct_rows(parts: Sequence[_Nodes], coded: pa.DictionaryArray, content: Mapping[str, pa.Array]) -> pa.Array:
    """Return the rows where an id occurs first, refusing later rows of the same id with other content."""
    codes = coded.indices.to_numpy()
    first = first_rows(codes, len(coded.dictionary))[codes]
    later = np.flatnonzero(first != np.arange(len(codes)))
    found: list[tuple[int, str]] = []
    for key, column in content.items():
        here, there = column.take(pa.array(later)), column.take(pa.array(first[later]))
        both_lack = pc.and_(here.is_null(), there.is_null())
        same = pc.or_(pc.fill_null(pc.equal(here, there), False), both_lack).to_numpy(zero_copy_only=False)
        found += [(position, key) for position in np.flatnonzero(~same)[:1].tolist()]
    if found:
        position, key = min(found, key=lambda one: one[0])
        row, before = int(later[position]), int(first[later[position]])
        values = [content[key][place].as_py() for place in (before, row)]
        file, line = _place(parts, row)
        earlier, earlier_line = _place(parts, before)
        where = f"line {earlier_line}" if earlier == file else f"line {earlier_line} of {earlier.name}"
        raise ImportFailed(
            file,
            line,
            f"node id {coded[row].as_py()!r} is on {where} already, with {_SHOWN.get(key, key)} {values[0]!r}, "
            f"here with {values[1]!r}; keep one of the two, or give them different ids",
        )
    return pa.array(np.flatnonzero(first == np.arange(len(codes))))


def _place(parts: Sequence[_Nodes], row: int) -> tuple[Path, int]:
    """Return file and line of a row counted over all files."""
    for part in parts:
        if row < len(part.ids):
            return part.table.file.path, part.table.file.line_of(row)
        row -= len(part.ids)
    raise AssertionError("the row is behind the last file")


def _look_up(name: str, coded: pa.DictionaryArray, ids: pa.Array, place: str) -> tuple[Numbers, Problem | None]:
    """Find the node number of each end in `ids`; an end that is null is `blank`'s to report."""
    numbers = np.append(pc.fill_null(pc.index_in(coded.dictionary, ids), -1).to_numpy(), np.int32(-1))
    rows = numbers[pc.fill_null(coded.indices, -1).to_numpy()]
    missing = (rows < 0) & coded.is_valid().to_numpy(zero_copy_only=False)
    if not missing.any():
        return rows, None
    row = int(missing.argmax())
    return rows, Problem(row, f"{name} {coded[row].as_py()!r} is not an id in {place}; add the node or correct it")
