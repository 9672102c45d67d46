"""Tables of nodes and edges with properties: their headers, in our own manner or that of `neo4j-admin import`.

Own manner: `id,name,type,<property>[:kind],…` for nodes, of which only `id` must be there, and
`head,relation,tail,<property>[:kind],…` for edges, or the other names that `columns` lists. Kinds are string, int,
float, bool, date, and flag for 1 or 0. If a header gives any kind, columns without one are texts; if it gives none, the
values decide. Files of edges need no header; one that may be read in several ways is refused. Several types of
a node are separated by `|`: `Person|Songwriter`; a `|` within a type is written `\\|`. A column `name_` beside `name`
holds a property `name`; so do `id_` and `type_`.

Manner of `neo4j-admin import`:

| column of a node file   | becomes                                                                                |
|-------------------------|----------------------------------------------------------------------------------------|
| `:ID`, `key:ID(Space)`  | the id; `Space:id` where the files name several spaces. With a name, a property, too.   |
| `:LABEL`                | the types, separated by `;`; the first is shown                                         |
| `name`, else `title`    | the name, where it is not empty; else the id. `title` stays a property, too.           |
| `:IGNORE`               | nothing                                                                                |

| column of an edge file        | becomes                                                                          |
|-------------------------------|----------------------------------------------------------------------------------|
| `:START_ID(A)`, `:END_ID(B)`  | head and tail                                                                    |
| `:TYPE`                       | the relation; a file without it is one relation, named as the file               |

Both kinds know its types, too: `long`, `int`, `short`, `byte`; `float`, `double`; `boolean`; `char`; `date`. The others
(`datetime`, `duration`, `point`, …) and arrays such as `string[]` are kept as the text of the cell, `a;b;c`: a
property has one value.

Graphs in tables that were not made for graphs: a file `graph.yaml` says what each column means.

    nodes:
      Product:                                # the type
        file: products.csv
        id: productID                         # the node's id is `Product:<productID>`
        name: productName                     # or a template, "{firstName} {lastName}"; if left out, one is chosen
        kinds: {unitPrice: float, discontinued: flag}
        leave_out: [picture]
    edges:
      PART_OF: {file: products.csv, head: {Product: productID}, tail: {Category: categoryID}}
      ORDERS:
        file: order-details.csv
        head: {Order: orderID}
        tail: {Product: productID}
        properties: {quantity: int, discount: string}
    files:
      orders.csv: {surplus: drop}

A table of nodes gives one node a row, and every column is a property unless it is left out; kinds are string (where
nothing is said), int, float, bool, flag (1 or 0) and date. Empty cells are no property. A table of edges gives one edge
a row, from the node whose id stands in one column to that in another; a foreign key is an edge out of the table it
stands in. It has the properties that are listed. `undirected: true` states that its edges lead both ways.
`missing: skip` leaves out rows where an end is empty or no node; otherwise they are refused. `separator: '|'` reads
several ids from a cell of the tail's column, an edge for each; an empty cell is none. A type or relation that comes
from several tables is a list of such entries.

The tables lie beside `graph.yaml`, or in the folder it names as `folder`.

`surplus: drop` reads a file by position whose records may have more fields than the header, as a plain import does
where commas were not quoted: the surplus fields are dropped, so the values before them may stand in the wrong column.
How many records that are is kept in the graph's `source`.
`delimiter` and `comment` of a file decide what is detected otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from byokg.arrays import Integers
from byokg.errors import ConfigError, ImportFailed
from byokg.files import COMPRESSIONS, TextFile
from byokg.graph.columnar.node_types import SEPARATOR, cells_of_texts, write_types
from byokg.graph.columnar.schema import KINDS, TEXT, Clash, Problem, blank, property_batch, typed, whole
from byokg.graph.columnar.writer import EdgeBlock, ahead
from byokg.graph.display_names import placeholders
from byokg.graph.importers.columns import (
    Column,
    InferredKinds,
    Rows,
    as_kind,
    edge_header,
    end_columns,
    is_number,
    names_relation,
    node_header,
    node_role,
    read_directions,
    seems_header,
    split_kind,
    with_kinds,
)
from byokg.graph.importers.delimited import RecordFile, raise_first
from byokg.graph.importers.dialects import DETECTED, TableOptions
from byokg.graph.importers.table_stream import DEFAULT_RELATION, NAME, TYPE, TableStream, common_types, same_label

NODE_COLUMNS = ("id", "name", "type")
EDGE_COLUMNS = ("head", "relation", "tail")
TIME_COLUMNS = {4: (*EDGE_COLUMNS, "time"), 5: (*EDGE_COLUMNS, "start", "end")}
"""Columns by their number, where triples without a header have times."""

MAPPING = "graph.yaml"

YEAR = r"-?[0-9]{1,6}"
DAY = r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?([T ][0-9:.]+(Z|[+-][0-9:]+)?)?"
TIME = re.compile(rf"({YEAR}|{DAY})?")

_MARKED = re.compile(r"(.*?):(ID|LABEL|START_ID|END_ID|TYPE|IGNORE)(?:\(([^)]*)\))?(?:\{.*\})?", re.DOTALL)
_ROLES = {"ID": "id", "LABEL": "type", "START_ID": "head", "END_ID": "tail", "TYPE": "relation", "IGNORE": ""}


@dataclass(frozen=True)
class Table:
    """A file of nodes or edges and the roles of its columns."""

    file: RecordFile
    fields: Sequence[str]
    """The header as written; names of the columns if the header stands in another file."""
    columns: Sequence[Column]
    label: str = ""
    """Type of all nodes, or relation of all edges, if no column has it."""
    marked: bool = False
    """Whether the header is in the manner of neo4j-admin."""
    partial: bool = False
    """Whether edges without both ends are left out; otherwise they are refused."""
    undirected: bool = False
    """Whether edges lead both ways, if no column states it."""
    separator: str = ""
    """Text between the ids in a cell of the tail's column; empty if each holds one."""
    header: str = "header"
    """Where the names of the columns are from, in words; empty for a table that a mapping explains."""


def is_marked(fields: Sequence[str]) -> bool:
    """True if a header is in the manner of neo4j-admin."""
    roles = {match.group(2) for field in fields if (match := _MARKED.fullmatch(field.strip()))}
    return "ID" in roles or {"START_ID", "END_ID"} <= roles


def is_node_header(fields: Sequence[str]) -> bool:
    """True if a header in the manner of neo4j-admin is one of nodes."""
    return any((match := _MARKED.fullmatch(field.strip())) and match.group(2) == "ID" for field in fields)


def node_table(file: RecordFile, header: RecordFile | None = None) -> Table:
    """Read the header of a file of nodes. Raises `ImportFailed` if it is none.

    Args:
        file: the records.
        header: the file that holds the header and nothing else; None if `file` starts with it.
    """
    titled = header or file
    line, fields = titled.first(f"a header such as {','.join(NODE_COLUMNS)}")
    below = [row for _, row in file.sample()[int(header is None) :]]
    fields = _fitted(fields, below)
    marked = is_marked(fields)
    columns = _marked_columns(fields) if marked else node_header(fields, below)
    if columns is None:
        reason = f"the header {','.join(fields)!r} has no column 'id' or one of its other names (node, key, uri, …)"
        raise ImportFailed(titled.path, line, f"{reason}; rename one, or explain the tables in a file {MAPPING}")
    used = _checked(titled, line, fields, below, columns)
    return Table(replace(file, titled=header is None), fields, used, marked=marked, header=_place(header))


def edge_table(file: RecordFile, options: TableOptions = DETECTED, header: RecordFile | None = None) -> Table:
    """Decide the roles of the columns of a file of edges, by its header or by their number.

    Args:
        file: the records.
        options: decisions of the caller.
        header: the file that holds the header and nothing else; None if `file` starts with it, if it has one.

    Raises:
        ImportFailed: the file holds no edges, or may be read in several ways; the message has the deciding option.
    """
    names = header.first(f"a header such as {','.join(EDGE_COLUMNS)}") if header else None
    records = file.sample()
    if not names and not file.dialect.names:
        file.first("lines of head, relation, tail, or a header such as head,relation,tail")
    if not names and file.dialect.names:
        names = 1, list(file.dialect.names)
    titled = not names and bool(records) and _has_header(file, records, options)
    line, fields = names or records[0]
    below = [row for _, row in records[int(titled) :]]
    fields = _fitted(fields, below)
    file, undirected = replace(file, titled=titled), options.undirected or file.dialect.undirected
    if not names and not titled:
        columns = [Column(at, f"column {at + 1}", "") for at in range(len(fields))]
        columns = _by_options(file, line, columns, below, options) or _by_number(file, line, fields, below)
        used = [one for one in columns if one.role]
        place = "no header"
        if options.header is None and len(below) > 1 and not any(_recurring(fields, below[1:])):
            place += f" (first: {', '.join(fields)[:_FIRST_SHOWN]})"
        return Table(file, fields, used, DEFAULT_RELATION, undirected=undirected, header=place)
    used = _checked(header or file, line, fields, below, _by_name(file, line, fields, below, options))
    marked = is_marked(fields)
    label = file.path.name.partition(".")[0] if marked else DEFAULT_RELATION
    place = "header in a comment" if file.dialect.names else _place(header)
    return Table(file, fields, used, label, marked, undirected=undirected, header=place)


def _by_name(
    file: RecordFile, line: int, fields: Sequence[str], below: Rows, options: TableOptions
) -> Sequence[Column]:
    """Return the roles of the columns under a header. Raises `ImportFailed` if it is none of edges, or it is in
    doubt."""
    found = None
    if is_marked(fields):
        columns = _marked_columns(fields)
    else:
        found = edge_header(fields, below)
        columns = list(found.columns) if found else []
    if options.columns:
        plain = [Column(at, name, "property", kind) for at, (name, kind) in enumerate(map(split_kind, fields))]
        return _by_options(file, line, columns or plain, below, options)
    if not {"head", "tail"} <= {column.role for column in columns}:
        reason = f"the header {','.join(fields)!r} names no two ends of an edge; decide with {_proposed(fields)}"
        reason += f"; {OF_NODES} {file.path.name} --write"
        raise ImportFailed(file.path, line, reason)
    if found and found.rivals:
        reason = f"columns {' and '.join(map(repr, found.rivals))} may each hold the relation; decide with"
        raise ImportFailed(file.path, line, f"{reason} --columns relation={found.rivals[0]}")
    return columns


def _place(header: RecordFile | None) -> str:
    return f"header in {header.path.name}" if header else "header"


def _fitted(fields: Sequence[str], below: Rows) -> list[str]:
    """Return a header as wide as the records, where these or it end with a separator."""
    widths = {len(row) for row in below}
    if widths == {len(fields) - 1} and not fields[-1].strip():
        return list(fields[:-1])
    if widths == {len(fields) + 1} and not any(row[-1].strip() for row in below):
        return [*fields, ""]
    return list(fields)


def _marked_columns(fields: Sequence[str]) -> list[Column]:
    """Read a header in the manner of neo4j-admin; an unmarked column is a property, or the name."""
    columns = []
    for position, field in enumerate(fields):
        if match := _MARKED.fullmatch(field.strip()):
            name, mark, space = match.groups()
            columns.append(Column(position, name or f":{mark}", _ROLES[mark], space=space or ""))
            continue
        name, kind = split_kind(field)
        role = "name" if name == "name" and kind in ("", "string") and is_node_header(fields) else "property"
        columns.append(Column(position, name, role, kind or "string"))
    return columns


def _checked(
    file: RecordFile, line: int, fields: Sequence[str], below: Rows, columns: Sequence[Column]
) -> list[Column]:
    """Return the columns that are used. Raises `ImportFailed` for one without a name, of an unknown kind, or twice."""
    used: list[Column] = []
    for column in columns:
        field = fields[column.position].strip()
        if not field:
            held = [row[column.position].strip() for row in below if len(row) == len(fields)]
            counts = ([str(at + first) for at in range(len(held))] for first in (0, 1))
            if held and (not any(held) or (column.position == 0 and held in counts)):
                continue
            raise ImportFailed(file.path, line, f"the header has a column without a name in {','.join(fields)!r}")
        _, colon, kind = field.partition("{")[0].rpartition(":")
        if colon and column.kind in ("", "string") and not split_kind(field)[1] and not _MARKED.fullmatch(field):
            raise ImportFailed(
                file.path, line, f"column {field!r} has the unknown type {kind!r}; types are {', '.join(KINDS)}"
            )
        if column.role not in ("property", "time", "direction", "") and column.kind not in ("", "string"):
            reason = f"column {column.name!r} is always text; leave out its type {column.kind!r}"
            raise ImportFailed(file.path, line, reason)
        same = [other for other in used if other.name == column.name and not _is_own(fields, other, column)]
        if column.role and same:
            raise ImportFailed(file.path, line, f"column {column.name!r} stands twice in the header; rename one")
        if column.role:
            used.append(column)
    return used if is_marked(fields) else with_kinds(used)


def _is_own(fields: Sequence[str], one: Column, other: Column) -> bool:
    """Return True if one of two columns is a property that is named like the other, a fixed column of nodes."""
    named = [split_kind(fields[column.position])[0] for column in (one, other)]
    return named[0] != named[1] and "property" in (one.role, other.role) and one.role != other.role


def end_tables(one: Table) -> tuple[list[Table], list[Table]] | None:
    """Return tables of the nodes at both ends of edges, and of the edges; None unless columns describe the ends.

    So PrimeKG has `x_index`, `x_name` and `x_type` beside `y_index`, `y_name` and `y_type`.
    """
    sides = end_columns(one.columns) if one.file.titled else None
    if sides is None:
        return None
    nodes = []
    for role, side in zip(("head", "tail"), sides, strict=True):
        id_ = next(column for column in one.columns if column.role == role)
        roles = [replace(column, name=name, role=node_role(name)) for name, column in side.items()]
        fixed = [column if column.role == "property" else replace(column, kind="string") for column in roles]
        nodes.append(replace(one, columns=[replace(id_, role="id"), *fixed], label="", header=one.header))
    described = {column.position for side in sides for column in side.values()}
    return nodes, [replace(one, columns=[column for column in one.columns if column.position not in described])]


# Files of edges with or without a header


def _has_header(file: RecordFile, records: Sequence[tuple[int, list[str]]], options: TableOptions) -> bool:
    """Decide whether the first record names the columns. Raises `ImportFailed` if it may as well be an edge."""
    if options.header is not None:
        return options.header
    if any("=" in column for column in options.columns):
        return True
    line, first = records[0]
    below = [row for _, row in records[1:]]
    first = [field.strip() for field in first]
    if is_marked(first):
        return True
    held = [{row[at].strip() for row in below if at < len(row)} for at in range(len(first))]
    again = _recurring(first, below)
    found = edge_header(first, below)
    shown = ", ".join(map(repr, first))
    decide = "decide with --header or --no-header"
    if found is None:
        seems = seems_header(first, below) or (file.separator != "|" and _above_numbers(first, below))
        if below and not any(again) and seems and len(first) > 1:
            reason = f"the first line ({shown}) may be a header whose names are not known, or an edge; decide with"
            told = f"{reason} --no-header, or --header and {_proposed(first)}; {OF_NODES} {file.path.name} --write"
            raise ImportFailed(file.path, line, told)
        return False
    if any(again[at] for at in found.strange):
        return False
    if not below:
        return not found.weak
    ends = set().union(*(held[column.position] for column in found.columns if column.role in ("head", "tail")))
    named = {first[column.position] for column in found.columns if column.role in ("head", "relation", "tail")}
    if named & ends or any(again) or (found.weak and all(len(end) < 2 for end in ends)):
        raise ImportFailed(file.path, line, f"the first line ({shown}) may be a header or an edge; {decide}")
    between = [at for at in found.strange if len(first) == 3 and at == 1]
    if between and not all(is_number(row[1]) for row in below if len(row) > 1):
        reason = f"the first line ({shown}) may be an edge, or a header, {first[1]!r} being the relation or a property"
        raise ImportFailed(file.path, line, f"{reason}; decide with --no-header or --columns relation={first[1]}")
    return True


OF_NODES = "if each line is a node: byokg graph sniff"
"""Advice that stands in the errors of files whose header names no two ends."""


def _recurring(first: Sequence[str], below: Rows) -> list[bool]:
    """Return which cells of a record stand in their columns again, as names of columns hardly do."""
    return [
        bool(cell) and any(at < len(row) and row[at].strip() == cell for row in below) for at, cell in enumerate(first)
    ]


def _above_numbers(first: Sequence[str], below: Rows) -> bool:
    """Return True if a text stands above a column of numbers."""
    for at, cell in enumerate(first):
        held = [row[at] for row in below if at < len(row) and row[at].strip()]
        if cell and not is_number(cell) and len(held) > 1 and all(map(is_number, held)):
            return True
    return False


def _proposed(fields: Sequence[str]) -> str:
    """Return options that read some columns as most files have them."""
    relation = next((at for at, field in enumerate(fields) if names_relation(field)), None)
    if relation is not None and len(fields) > 2:
        head, tail = [field for at, field in enumerate(fields) if at != relation][:2]
        return f"--columns source={head},relation={fields[relation]},target={tail}"
    if len(fields) == 3:
        return f"--columns source={fields[0]},relation={fields[1]},target={fields[2]}"
    return f"--columns source={fields[0]},target={fields[1]}"


def _by_options(
    file: RecordFile, line: int, columns: Sequence[Column], below: Rows, options: TableOptions
) -> list[Column]:
    """Return the columns as they are named by the user; none if they are not."""
    given = options.columns
    if not given:
        return []
    named = [column.name for column in columns]
    if any("=" in one for one in given):
        wanted: dict[int, str] = {}
        for one in given:
            role, _, name = one.partition("=")
            if role.strip().lower() not in _GIVEN_ROLES or name not in named:
                reason = f"--columns {one}: write source=, relation= or target= and one of {', '.join(named)}"
                raise ImportFailed(file.path, line, reason)
            wanted[named.index(name)] = _GIVEN_ROLES[role.strip().lower()]
        chosen = [
            replace(one, role=wanted[at], kind="string")
            if at in wanted
            else replace(one, role="property" if one.role in wanted.values() else one.role)
            for at, one in enumerate(columns)
        ]
    else:
        if len(given) != len(columns):
            reason = f"--columns names {len(given)} columns, the line has {len(columns)}; write - for one to leave out"
            raise ImportFailed(file.path, line, reason)
        header = edge_header(given, below)
        chosen = [replace(one, role="" if one.name == "-" else one.role) for one in header.columns] if header else []
    if not {"head", "tail"} <= {column.role for column in chosen}:
        reason = f"--columns {','.join(given)} names no source and target; write, for example, --columns source,target"
        raise ImportFailed(file.path, line, reason)
    return with_kinds(chosen)


_GIVEN_ROLES = {
    **dict.fromkeys(("source", "head", "subject", "from"), "head"),
    **dict.fromkeys(("relation", "predicate", "type"), "relation"),
    **dict.fromkeys(("target", "tail", "object", "to"), "tail"),
}


def _by_number(file: RecordFile, line: int, fields: Sequence[str], below: Rows) -> list[Column]:
    """Return the roles of the columns of records without a header. Raises `ImportFailed` if their number is none."""
    width = len(fields)
    if width > 2 and all(len(row) == width and not row[-1].strip() for row in below) and len(below) > 1:
        width -= 1  # lines end with a separator
    if any(field.startswith("{") for field in fields[2:3]):
        reason = "attributes stand in braces, as NetworkX writes them; write the edges with data=False or as GraphML"
        raise ImportFailed(file.path, line, reason)
    roles = {2: ("head", "tail"), 3: EDGE_COLUMNS, 4: (*EDGE_COLUMNS, "time"), 5: (*EDGE_COLUMNS, "time", "time")}
    if width == 3 and file.dialect.counted:
        roles[3] = ("head", "tail", "relation")  # as OpenKE orders them
    elif width == 3 and _may_be_weights(below, file.separator == "|"):
        reason = f"the third of {', '.join(map(repr, fields[:3]))} may be a weight or a node; decide with"
        raise ImportFailed(
            file.path, line, f"{reason} --columns source,target,weight or --columns source,relation,target"
        )
    if width not in roles or not all(map(TIME.fullmatch, fields[3:width])):
        error = file.ragged(len(EDGE_COLUMNS), line, fields)
        if width > 3:
            error = ImportFailed(file.path, line, f"{error.reason}; or name the columns with --columns")
        raise error
    names = TIME_COLUMNS.get(width, ())
    return [
        Column(at, names[at] if role == "time" else f"column {at + 1}", role) for at, role in enumerate(roles[width])
    ]


def _may_be_weights(below: Rows, barred: bool) -> bool:
    """Return True if a third column of numbers may as well be weights: nothing shows that the second is a relation.

    Bars show it, unless the second column has nodes of the first.
    """
    rows = [row for row in below if len(row) == 3]
    if not rows or not all(is_number(row[2]) for row in rows):
        return False
    if len(rows) == 1:
        return not barred and "." in rows[0][2]
    first, second, third = ({row[at] for row in rows} for at in range(3))
    if barred:
        return bool(second & first)
    if all(number.isdigit() for number in third) and 5 * len(second) <= len(rows) and len(second) < len(third):
        return False  # numbers of nodes, and a few of relations
    return 2 * len(second) > len(rows) or bool(second & first)


def columns_read(columns: Sequence[Column], label: str, kinds: Mapping[str, str]) -> str:
    """Describe the roles of the columns in one line.

    Args:
        columns: of nodes or of edges.
        label: the relation of all edges, if no column holds it.
        kinds: those of the properties whose columns do not give them; one without any value is not among them.
    """
    shown = {column.role: column.name for column in columns if column.role not in ("property", "time")}
    if "id" in shown:
        parts = [f"{role}={shown[role]}" for role in NODE_COLUMNS if role in shown]
    else:
        none = f'(none: "{label}")'
        parts = [f"source={shown['head']}", f"relation={shown.get('relation', none)}", f"target={shown['tail']}"]
        parts += [f"direction={shown['direction']}"] if "direction" in shown else []
    held = [
        (column.name, column.kind or kinds.get(column.name, "no values"))
        for column in columns
        if column.role in ("property", "time")
    ]
    if held:
        listed = ", ".join(f"{name} ({_KIND_NAMES.get(kind, kind)})" for name, kind in held[:_PROPERTIES_SHOWN])
        more = f", +{len(held) - _PROPERTIES_SHOWN}" if len(held) > _PROPERTIES_SHOWN else ""
        parts.append(f"{'property' if len(held) == 1 else 'properties'} {listed}{more}")
    return ", ".join(parts)


_KIND_NAMES = {"string": "text"}
_PROPERTIES_SHOWN, _FIRST_SHOWN = 12, 60


# Reading


_SHOWN = {NAME: "name", TYPE: "type"}


def several_spaces(tables: Sequence[Table]) -> bool:
    """True if ids come from several spaces, so that only space and id together are unique."""
    ends = [column for one in tables for column in one.columns if column.role in ("id", "head", "tail")]
    return len({column.space for column in ends}) > 1


class PropertyTables(TableStream):
    """Tables of nodes and edges as one `GraphStream`."""

    def __init__(
        self, name: str, nodes: Sequence[Table], edges: Sequence[Table], source: Mapping[str, Any], spaced: bool
    ) -> None:
        """Set the tables.

        Args:
            name: the graph's name.
            nodes: files of nodes; a row may be repeated, another row of the same id is refused.
            edges: files of edges; both ends must be among the nodes. Parallel edges are all kept.
            source: the graph's `source`.
            spaced: True if an id's space becomes part of it, as `space:id`.

        Raises:
            ImportFailed: files give columns of one name several types.
        """
        super().__init__(name)
        self._node_tables, self._edge_tables, self._source, self._spaced = nodes, edges, source, spaced
        self._node_types = common_types((one.file.path, _node_types(one)) for one in nodes)
        self._edge_types = common_types((one.file.path, property_types(one)) for one in edges)
        self._node_kinds, self._edge_kinds = InferredKinds(to_infer(nodes)), InferredKinds(to_infer(edges))
        self._rows: dict[str, int] = {}
        self._ends: list[int] = []
        """Rows of each file of nodes."""

    def blocks(self) -> Iterator[EdgeBlock]:
        """Read the nodes, and yield the edges. Raises `ImportFailed`, naming file, line and reason."""
        self._read_nodes()
        for one in self._edge_tables:
            yield from self._edges(one)

    def property_types(self) -> Mapping[str, pa.DataType]:
        """Return the edges' properties."""
        return inferred_types(self._edge_types, self._edge_kinds)

    def _origin(self) -> dict[str, Any]:
        """Return the graph's `source`."""
        told = dict(self._source)
        tables = {one.file.path.name: (one, self._node_kinds) for one in self._node_tables}
        tables |= {one.file.path.name: (one, self._edge_kinds) for one in self._edge_tables}
        if all(one.header for one, _ in tables.values()):
            told["files"] = [
                file | describe(*tables[file["name"]], self._rows[file["name"]]) if file["name"] in tables else file
                for file in told["files"]
            ]
        return told

    def _read_nodes(self) -> None:
        for one in self._node_tables:
            rows = 0
            for table in ahead(one.file.blocks(one.fields, [TEXT] * len(one.fields))):
                coded, content = _node_columns(one, table, rows, self._spaced)
                self._add_nodes(coded, content)
                for name in content.keys() & self._node_kinds.names:
                    self._node_kinds.see(name, content[name])
                rows += table.num_rows
            self._ends.append(rows)
            self._rows[one.file.path.name] = rows
        self._merge_nodes(self._node_types)
        types = inferred_types(self._node_types, self._node_kinds)
        self._content = {name: as_kind(self._content[name], kind) for name, kind in types.items()}

    def _clash(self, clash: Clash, held: pa.RecordBatch) -> ImportFailed:
        column = held.column(clash.key)
        values = [column[row].as_py() for row in (clash.before, clash.row)]
        (file, line), (earlier, earlier_line) = (self._place(row) for row in (clash.row, clash.before))
        where = f"line {earlier_line}" if earlier == file else f"line {earlier_line} of {earlier.name}"
        entity = self._ids.strings[clash.number].as_py()
        return ImportFailed(
            file,
            line,
            f"node id {entity!r} is on {where} already, with {_SHOWN.get(clash.key, clash.key)} {values[0]!r}, "
            f"here with {values[1]!r}; keep one of the two, or give them different ids",
        )

    def _place(self, row: int) -> tuple[Path, int]:
        """Return file and line of a row counted over all node files."""
        before = 0
        for one, rows in zip(self._node_tables, self._ends, strict=True):
            if row < before + rows:
                return one.file.path, one.file.line_of(row - before)
            before += rows
        raise AssertionError("the row is behind the last file")

    def _edges(self, one: Table) -> Iterator[EdgeBlock]:
        place = self._node_tables[0].file.path.name if len(self._node_tables) == 1 else "any node file"
        rows = 0
        for block in ahead(one.file.blocks(one.fields, [TEXT] * len(one.fields))):
            table, row_of = _apart(one, block)
            problems: list[Problem | None] = []
            ends = np.empty((table.num_rows, 2), np.int32)
            labels = same_label(one.label, table.num_rows)
            properties: dict[str, pa.Array] = {}
            stated = [table.column(column.position) for column in one.columns if column.role == "direction"]
            for column in one.columns:
                texts = table.column(column.position)
                if column.role in EDGE_COLUMNS:
                    coded = whole(texts, TEXT).dictionary_encode()
                    if not one.partial:
                        problems.append(blank(column.role, coded))
                    if column.role == "relation":
                        labels = coded
                    else:
                        numbers = self._look_up(column, coded)
                        if not one.partial:
                            problems.append(_unknown(column.role, coded, numbers, place))
                        ends[:, int(column.role == "tail")] = numbers
                elif column.role == "property":
                    properties[column.name], problem = typed(column.name, column.kind or "string", texts)
                    problems.append(problem)
                    if column.name in self._edge_kinds.names:
                        self._edge_kinds.see(column.name, properties[column.name])
            found = [problem and replace(problem, row=int(row_of[problem.row])) for problem in problems]
            raise_first(one.file, found, rows)
            undirected = undirected_edges(one, stated, rows, table.num_rows)
            rows += block.num_rows
            self._rows[one.file.path.name] = rows
            batch = property_batch(properties)
            if one.partial:
                kept = np.flatnonzero((ends >= 0).all(axis=1))
                ends, taken = ends[kept], pa.array(kept)
                labels = labels.take(taken)
                batch = batch.take(taken) if batch else None
                undirected = None if undirected is None else undirected[kept]
            yield EdgeBlock(self._triples(ends, labels), batch, undirected=undirected)

    def _look_up(self, column: Column, coded: pa.DictionaryArray) -> Integers:
        """Return the node number of each end, -1 if the cell is empty or names no node."""
        numbers = np.append(self._ids.find(_spaced(coded.dictionary, column, self._spaced)), np.int32(-1))
        rows: Integers = numbers[pc.fill_null(coded.indices, -1).to_numpy()]
        return rows


def _apart(one: Table, block: pa.Table) -> tuple[pa.Table, Integers]:
    """Return the rows of a block with one id in each cell of the tail's column, and the row that each comes from."""
    if not one.separator:
        return block, np.arange(block.num_rows)
    [tail] = [column.position for column in one.columns if column.role == "tail"]
    ids = pc.split_pattern(block.column(tail).combine_chunks(), one.separator)
    row_of, texts = pc.list_parent_indices(ids), pc.utf8_trim_whitespace(pc.list_flatten(ids))
    held = pc.not_equal(texts, "")
    row_of, texts = row_of.filter(held), texts.filter(held)
    return block.take(row_of).set_column(tail, block.field(tail), texts), row_of.to_numpy()


def _node_columns(
    one: Table, table: pa.Table, rows: int, spaced: bool
) -> tuple[pa.DictionaryArray, dict[str, pa.Array]]:
    """Return the ids and columns of some nodes, after so many rows of the file."""
    problems: list[Problem | None] = []
    content: dict[str, pa.Array] = {}
    for column in one.columns:
        texts = table.column(column.position)
        if column.role == "id":
            coded = whole(texts, TEXT).dictionary_encode()
            problems.append(blank("id", coded))
            if one.marked and not column.name.startswith(":"):
                content[column.name] = whole(texts, TEXT)
            ids = pa.DictionaryArray.from_arrays(coded.indices, _spaced(coded.dictionary, column, spaced))
        elif column.role == "name":
            content[NAME] = whole(texts, TEXT)
        elif column.role == "type":
            labels = whole(texts, TEXT)
            content[TYPE] = pc.replace_substring(cells_of_texts(labels), ";", SEPARATOR) if one.marked else labels
        elif column.role == "property":
            content[column.name], problem = typed(column.name, column.kind or "string", texts)
            problems.append(problem)
    raise_first(one.file, problems, rows)
    if one.label:
        content[TYPE] = pa.repeat(pa.scalar(write_types([one.label]), TEXT), table.num_rows)
    if NAME in _node_types(one) and NAME not in content:
        content[NAME] = content["title"]
    return ids, content


def _node_types(one: Table) -> dict[str, pa.DataType]:
    """Return the columns that a node file gives, ids left out."""
    types: dict[str, pa.DataType] = {}
    for column in one.columns:
        if column.role == "id" and one.marked and not column.name.startswith(":"):
            types[column.name] = TEXT
        elif column.role == "name":
            types[NAME] = TEXT
        elif column.role == "type":
            types[TYPE] = TEXT
        elif column.role == "property":
            types[column.name] = KINDS[column.kind or "string"][0]
    if one.label:
        types[TYPE] = TEXT
    if one.marked and types.get("title") == TEXT:
        types.setdefault(NAME, TEXT)
    return types


def property_types(one: Table) -> dict[str, pa.DataType]:
    """Return the properties that an edge file gives; those whose kind is inferred are texts."""
    return {column.name: KINDS[column.kind or "string"][0] for column in one.columns if column.role == "property"}


def to_infer(tables: Sequence[Table]) -> list[str]:
    """Return the properties whose kind no table gives."""
    columns = [column for one in tables for column in one.columns if column.role == "property"]
    given = {column.name for column in columns if column.kind}
    return list(dict.fromkeys(column.name for column in columns if column.name not in given))


def inferred_types(types: Mapping[str, pa.DataType], kinds: InferredKinds) -> dict[str, pa.DataType]:
    """Return types of columns with those that were inferred, without columns that hold no value."""
    found = kinds.types()
    return {name: found.get(name, kind) for name, kind in types.items() if name in found or name not in kinds.names}


def describe(table: Table, kinds: InferredKinds, rows: int) -> dict[str, Any]:
    """Return how a file was read, and how many records it holds, for a graph's `source`."""
    inferred = {name: kinds.kind(name) for name in kinds.types()}
    told = f"{table.file.dialect}, {table.header}; {columns_read(table.columns, table.label, inferred)}"
    told += ", undirected" if table.undirected else ""
    return {"read_as": told, "rows": rows}


def undirected_edges(
    one: Table, columns: Sequence[pa.ChunkedArray], rows: int, count: int
) -> npt.NDArray[np.bool_] | None:
    """Return which of `count` edges, before which the file has so many rows, are undirected; None if none is.

    Args:
        one: the table.
        columns: the one that states it, if there is one.
        rows: those before.
        count: of the edges.
    """
    if not columns:
        return np.ones(count, np.bool_) if one.undirected else None
    flags, problem = read_directions(whole(columns[0], TEXT))
    raise_first(one.file, [problem], rows)
    return flags


def _spaced(ids: pa.Array, column: Column, spaced: bool) -> pa.Array:
    if not (spaced and column.space):
        return ids
    return pc.binary_join_element_wise(pa.scalar(column.space, TEXT), ids, pa.scalar(":", TEXT))


def _unknown(name: str, coded: pa.DictionaryArray, numbers: Integers, place: str) -> Problem | None:
    """Find the first end that is no node; an empty one is `blank`'s to report."""
    missing = (numbers < 0) & coded.is_valid().to_numpy(zero_copy_only=False)
    if not missing.any():
        return None
    row = int(missing.argmax())
    return Problem(row, f"{name} {coded[row].as_py()!r} is not an id in {place}; add the node or correct it")


# Tables that a mapping explains


_NODE_KEYS = ("file", "id", "name", "kinds", "leave_out")
_EDGE_KEYS = ("file", "head", "tail", "properties", "missing", "undirected", "separator")


def mapped_tables(mapping: Path) -> PropertyTables:
    """Read a mapping and the headers of the tables that it names. Raises `ImportFailed`."""
    reader = _MappingReader(mapping)
    nodes, edges = reader.tables()
    source = {"kind": "mapped tables", "files": reader.descriptions()}
    tables = PropertyTables(str(mapping.parent), nodes, edges, source, spaced=True)
    tables.given_names = reader.names
    return tables


def mapped_files(mapping: Path) -> list[Path]:
    """Return the mapping and the files it names. Raises `ImportFailed`."""
    reader = _MappingReader(mapping)
    reader.tables()
    return [mapping, *(file.path for file in reader.files.values())]


def read_mapping(mapping: Path) -> dict[str, Any]:
    """Return the content of a `graph.yaml`. Raises `ImportFailed`."""
    try:
        content = yaml.safe_load(mapping.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise ImportFailed(mapping, None, f"cannot be read: {error or 'nested too deep'}") from error
    if not isinstance(content, dict):
        raise ImportFailed(mapping, None, f"the file: a mapping of names is needed, found {content!r}")
    return content


def source_of(mapping: Path, content: Mapping[str, Any]) -> tuple[Path, TableOptions]:
    """Return the source that a `graph.yaml` names, and how its tables are read. Raises `ImportFailed`."""
    for key in content:
        if key not in _SOURCE_KEYS:
            raise ImportFailed(
                mapping, None, f"unknown key {key!r}; keys beside source are {', '.join(_SOURCE_KEYS[1:])}"
            )
    for key, (kind, shape) in _SOURCE_SHAPES.items():
        if not isinstance(content.get(key, kind()), kind):
            raise ImportFailed(mapping, None, f"{key}: it is {shape}, not {content[key]!r}")
    header, undirected = content.get("header"), content.get("undirected", False)
    if not isinstance(header, bool | None) or not isinstance(undirected, bool):
        raise ImportFailed(mapping, None, "header and undirected are true or false")
    place = mapping.parent / content["source"]
    if not place.exists():
        raise ImportFailed(mapping, None, f"source: there is no {place}")
    columns = tuple(str(column) for column in content.get("columns", ()))
    names = tuple((str(type_), str(template)) for type_, template in content.get("names", {}).items())
    try:
        options = TableOptions(columns, header, content.get("delimiter", ""), content.get("comment"), undirected, names)
    except ConfigError as error:
        raise ImportFailed(mapping, None, str(error)) from error
    return place, options


_SOURCE_KEYS = ("source", "columns", "header", "delimiter", "comment", "undirected", "names")
_SOURCE_SHAPES: Mapping[str, tuple[type, str]] = {
    "source": (str, "the name of a file or folder"),
    "columns": (list, "a list of roles, such as [source, relation, target]"),
    "delimiter": (str, "one character in quotes"),
    "comment": (str, "one character in quotes"),
    "names": (dict, "a mapping of types to templates"),
}


class _MappingReader:
    """The content of a mapping, checked key by key."""

    def __init__(self, mapping: Path) -> None:
        self.mapping = mapping
        self.files: dict[str, RecordFile] = {}
        self.names: dict[str, str] = {}
        """Display templates by type."""
        self._content = self._mapping("the file", read_mapping(mapping), ("nodes", "edges", "files", "folder"))
        self._options = {
            name: self._mapping(f"files: {name}", options, ("surplus", "delimiter", "comment"))
            for name, options in self._mapping("files", self._content.get("files", {})).items()
        }

    def tables(self) -> tuple[list[Table], list[Table]]:
        """Return the tables of nodes and of edges, in the order written."""
        nodes = [
            self._nodes(type_, entry)
            for type_, entries in self._mapping("nodes", self._content.get("nodes")).items()
            for entry in (entries if isinstance(entries, list) else [entries])
        ]
        types = {table.label for table in nodes}
        edges = [
            self._edges(relation, entry, types)
            for relation, entries in self._mapping("edges", self._content.get("edges")).items()
            for entry in (entries if isinstance(entries, list) else [entries])
        ]
        for name in self._options:
            if name not in self.files:
                raise self._wrong(f"files: {name}", "no table uses this file")
        return nodes, edges

    def descriptions(self) -> list[dict[str, Any]]:
        """Describe the mapping and its files for a graph's `source`."""
        found = [TextFile(self.mapping).description()]
        for file in self.files.values():
            found.append(file.description())
            if file.cut:
                found[-1]["cut_records"] = file.surplus()
        return found

    def _nodes(self, type_: str, entry: object) -> Table:
        place = f"nodes: {type_}"
        entry = self._mapping(place, entry, _NODE_KEYS)
        file, fields = self._file(place, entry)
        kinds = self._mapping(f"{place}: kinds", entry.get("kinds", {}))
        left_out = entry.get("leave_out", [])
        if not isinstance(left_out, list):
            raise self._wrong(f"{place}: leave_out", "it is a list of columns")
        for name in left_out:
            self._position(f"{place}: leave_out", file, fields, name)
        columns = [Column(self._position(f"{place}: id", file, fields, entry.get("id")), ":ID", "id", space=type_)]
        if "{" in str(name := entry.get("name", "{")):
            for used in placeholders(name) if "name" in entry else ():
                self._position(f"{place}: name", file, fields, used)
                self.names[type_] = name
        else:
            columns.append(Column(self._position(f"{place}: name", file, fields, name), ":NAME", "name"))
        for name in kinds:
            self._position(f"{place}: kinds", file, fields, name)
        for position, name in enumerate(fields):
            if name not in left_out:
                kind = self._kind(f"{place}: kinds: {name}", kinds.get(name, "string"))
                columns.append(Column(position, name, "property", kind))
        return Table(file, fields, columns, type_, header="")

    def _edges(self, relation: str, entry: object, types: set[str]) -> Table:
        place = f"edges: {relation}"
        entry = self._mapping(place, entry, _EDGE_KEYS)
        file, fields = self._file(place, entry)
        columns = []
        for role in ("head", "tail"):
            end = self._mapping(f"{place}: {role}", entry.get(role))
            if len(end) != 1 or not end.keys() <= types:
                raise self._wrong(f"{place}: {role}", f"it is {{TYPE: COLUMN}} with one of the types {sorted(types)}")
            [(type_, name)] = end.items()
            columns.append(Column(self._position(f"{place}: {role}", file, fields, name), role, role, space=type_))
        properties = self._mapping(f"{place}: properties", entry.get("properties", {}))
        for name, kind in properties.items():
            position = self._position(f"{place}: properties", file, fields, name)
            columns.append(Column(position, name, "property", self._kind(f"{place}: properties: {name}", kind)))
        if entry.get("missing", "refuse") not in ("refuse", "skip"):
            raise self._wrong(f"{place}: missing", "it is refuse or skip")
        undirected = entry.get("undirected", False)
        if not isinstance(undirected, bool):
            raise self._wrong(f"{place}: undirected", "it is true or false")
        if not isinstance(separator := entry.get("separator", ""), str):
            raise self._wrong(f"{place}: separator", "it is a text between the ids of a cell, such as '|'")
        partial, label = entry.get("missing") == "skip", relation
        return Table(file, fields, columns, label, False, partial, undirected, separator, header="")

    def _file(self, place: str, entry: Mapping[str, Any]) -> tuple[RecordFile, list[str]]:
        name = entry.get("file")
        if not isinstance(name, str):
            raise self._wrong(f"{place}: file", "name the file that holds the table")
        if name not in self.files:
            folder = self.mapping.parent / str(self._content.get("folder", ""))
            found = [path for ending in COMPRESSIONS if (path := folder / f"{name}{ending}").is_file()]
            if not found:
                raise self._wrong(f"{place}: file", f"there is no {folder / name} (nor .gz, .xz, .bz2, .zst)")
            given = self._options.get(name, {})
            try:
                options = TableOptions(delimiter=str(given.get("delimiter", "")), comment=given.get("comment"))
            except ConfigError as error:
                raise self._wrong(f"files: {name}", str(error)) from error
            surplus = given.get("surplus", "refuse")
            if surplus not in ("refuse", "drop"):
                raise self._wrong(f"files: {name}: surplus", "it is refuse or drop")
            self.files[name] = replace(RecordFile.at(found[0], options=options), cut=surplus == "drop")
        file = self.files[name]
        line, fields = file.first("a header")
        for position, column in enumerate(fields):
            if column in fields[:position]:
                raise ImportFailed(file.path, line, f"column {column!r} stands twice in the header; rename one")
        return file, fields

    def _position(self, place: str, file: RecordFile, fields: Sequence[str], name: object) -> int:
        if name not in fields:
            raise self._wrong(place, f"{file.path.name} has no column {name!r}; it has {', '.join(fields)}")
        return fields.index(str(name))

    def _kind(self, place: str, kind: object) -> str:
        if kind not in KINDS:
            raise self._wrong(place, f"{kind!r} is no kind; kinds are {', '.join(KINDS)}")
        return str(kind)

    def _mapping(self, place: str, value: object, keys: Sequence[str] | None = None) -> dict[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise self._wrong(place, f"a mapping of names is needed, found {value!r}")
        for key in value:
            if keys is not None and key not in keys:
                raise self._wrong(place, f"unknown key {key!r}; keys are {', '.join(keys)}")
        return value

    def _wrong(self, place: str, reason: str) -> ImportFailed:
        return ImportFailed(self.mapping, None, f"{place}: {reason}")
