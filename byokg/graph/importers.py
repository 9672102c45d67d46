"""Reading graph files into a `ColumnarGraph`: triples, or a folder of nodes and edges.

| source                        | content                                                                     |
|-------------------------------|-----------------------------------------------------------------------------|
| `kb.txt`, any `.txt`          | `head|relation|tail`, no quoting                                            |
| `graph.tsv`, any `.tsv`       | head, relation, tail separated by tabs, no quoting                          |
| `graph.csv`, any `.csv`       | head,relation,tail with the quoting of RFC 4180                             |
| folder                        | `nodes.csv` with `edges.csv`, or one of `kb.txt`, `graph.tsv`, `graph.csv`  |

Each file may be compressed as `.gz` or `.xz`; `delimited` tells more about the text. A triple file may start with the
line head, relation, tail. Its exact repetitions are dropped and counted, an entity's id is its name, and it has no
type.

`nodes.csv` has a header `id,name,type,<property>[:int|float|bool|date|string],…` of which only `id` must be there.
A missing name is the id. The same row may come twice, another row with the same id may not. `edges.csv` has
`head,relation,tail,<property>[:type],…`, and both ends must be in `nodes.csv`; parallel edges are all kept. An empty
cell means that the node or edge lacks the property. A bool is `true` or `false`, a date `2001-09-30`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.errors import ImportFailed
from byokg.graph.columnar import ColumnarGraph
from byokg.graph.delimited import COMPRESSIONS, RecordFile
from byokg.graph.folder import META, refuse_taken

TRIPLE_NAMES = ("kb.txt", "graph.tsv", "graph.csv")
TRIPLE_COLUMNS = ("head", "relation", "tail")

_TEXT = pa.large_string()
_CODED = pa.dictionary(pa.int32(), pa.large_string())

_TYPES: dict[str, tuple[pa.DataType, str | None, str]] = {
    "string": (pa.large_string(), None, "text"),
    "int": (pa.int64(), r"^-?[0-9]+$", "a whole number such as 42, within 64 bits"),
    "float": (pa.float64(), r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$", "a finite number such as 4.2"),
    "bool": (pa.bool_(), r"^(?i:true|false)$", "true or false"),
    "date": (
        pa.date32(),
        r"^([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)-[0-9]{2}-[0-9]{2}$",
        "a date such as 2001-09-30, years 0001 to 9999",
    ),
}
"""Column type in a header: how it is stored, what a cell must look like, and how to say that."""


def build_graph(source: str | Path, out: str | Path, overwrite: bool = False) -> ColumnarGraph:
    """Import `source`, save it as a graph folder, and open that.

    Args:
        source: a file or folder as described at the top of this module.
        out: folder to write; appears only when complete.
        overwrite: replace a graph that is already there. Anything else is never replaced.

    Raises:
        ImportFailed: the source cannot become a graph; names file, line and reason.
        GraphExists: `out` is taken.
    """
    refuse_taken(out, overwrite)
    import_graph(source).save(out, overwrite)
    return ColumnarGraph.open(out)


def import_graph(source: str | Path) -> ColumnarGraph:
    """Read `source` into memory.

    Args:
        source: a file or folder as described at the top of this module.

    Raises:
        ImportFailed: the source cannot become a graph; names file, line and reason.
    """
    source = Path(source)
    if not source.exists():
        raise ImportFailed(source, None, "no such file or folder")
    if not source.is_dir():
        return _import_triples(source)
    if (source / META).exists():
        raise ImportFailed(source, None, "this is a built graph already; open it, or give the files it was built from")
    tables = {name: _present(source, name) for name in ("nodes.csv", "edges.csv", *TRIPLE_NAMES)}
    found = [path for paths in tables.values() for path in paths]
    nodes, edges = tables["nodes.csv"], tables["edges.csv"]
    if len(nodes) == 1 and len(edges) == 1 and len(found) == 2:
        return _import_records(nodes[0], edges[0])
    if len(found) == 1 and not nodes and not edges:
        return _import_triples(found[0])
    if not found:
        raise ImportFailed(
            source, None, f"holds neither nodes.csv with edges.csv nor one of {', '.join(TRIPLE_NAMES)} (also .gz, .xz)"
        )
    names = ", ".join(path.name for path in found)
    if found in (nodes, edges):
        lacking = "edges.csv" if found == nodes else "nodes.csv"
        raise ImportFailed(source, None, f"holds {names} but no {lacking}; both are needed")
    raise ImportFailed(source, None, f"holds several graphs ({names}); name one file, or keep one graph in a folder")


def _present(folder: Path, name: str) -> list[Path]:
    """List the files of this name in a folder, plain or compressed."""
    return [path for ending in COMPRESSIONS if (path := folder / f"{name}{ending}").exists()]


# The two kinds of source


def _import_triples(path: Path) -> ColumnarGraph:
    file = RecordFile.at(path)
    line, fields = file.first("lines of head, relation, tail")
    titled = tuple(field.strip().lower() for field in fields[:3]) == TRIPLE_COLUMNS
    if titled and len(fields) > len(TRIPLE_COLUMNS):
        reason = "the header has property columns; name the file edges.csv, add a nodes.csv, and import the folder"
        raise ImportFailed(path, line, reason)
    if len(fields) != len(TRIPLE_COLUMNS):
        raise file.ragged(len(TRIPLE_COLUMNS), line, fields)
    file = replace(file, titled=titled)
    table = file.read(fields, [_CODED] * len(TRIPLE_COLUMNS))
    if table.num_rows == 0:
        raise ImportFailed(path, None, "holds no triples; expected lines of head, relation, tail")
    head, relation, tail = (_coded(column) for column in table.columns)
    columns = dict(zip(TRIPLE_COLUMNS, (head, relation, tail), strict=True))
    _raise_first(file, [problem for name, column in columns.items() if (problem := _blank(name, column))])
    ids, head_numbers, tail_numbers = _number_ends(head, tail)
    relations, relation_numbers = _number(relation)
    return ColumnarGraph.assemble(
        name=str(path),
        ids=ids,
        relations=relations.to_pylist(),
        head=head_numbers,
        relation=relation_numbers,
        tail=tail_numbers,
        drop_duplicates=True,
        source={"kind": "triples", "files": [file.description()]},
    )


def _import_records(nodes_path: Path, edges_path: Path) -> ColumnarGraph:
    nodes_file, edges_file = RecordFile.at(nodes_path), RecordFile.at(edges_path)
    ids, names, types, node_properties = _read_nodes(nodes_file)
    columns, fields = _header(edges_file, TRIPLE_COLUMNS, TRIPLE_COLUMNS)
    table = edges_file.read(fields, [_TEXT if column.kind else _CODED for column in columns])
    table = table.rename_columns([column.name for column in columns])
    head, relation, tail = (_coded(table.column(name)) for name in TRIPLE_COLUMNS)
    problems: list[_Problem | None] = []
    for name, coded in zip(TRIPLE_COLUMNS, (head, relation, tail), strict=True):
        problems.append(_blank(name, coded))
    ends = []
    for name, coded in (("head", head), ("tail", tail)):
        numbers, problem = _look_up(name, coded, ids, nodes_path.name)
        ends.append(numbers)
        problems.append(problem)
    edge_properties = _typed_columns(table, columns, problems)
    _raise_first(edges_file, problems)
    relations, relation_numbers = _number(relation)
    return ColumnarGraph.assemble(
        name=str(nodes_path.parent),
        ids=ids,
        names=names,
        types=types,
        node_properties=node_properties,
        relations=relations.to_pylist(),
        head=ends[0],
        relation=relation_numbers,
        tail=ends[1],
        edge_properties=edge_properties,
        drop_duplicates=False,
        source={"kind": "nodes and edges", "files": [nodes_file.description(), edges_file.description()]},
    )


def _read_nodes(file: RecordFile) -> tuple[pa.Array, pa.Array | None, pa.Array | None, dict[str, pa.Array]]:
    """Return ids (distinct), names, types and properties, one row for each node."""
    columns, fields = _header(file, ("id", "name", "type"), ("id",))
    kinds = {"id": _CODED, "type": _CODED}
    table = file.read(fields, [kinds.get(column.name, _TEXT) if not column.kind else _TEXT for column in columns])
    table = table.rename_columns([column.name for column in columns])
    coded = _coded(table.column("id"))
    problems: list[_Problem | None] = [_blank("id", coded)]
    properties = _typed_columns(table, columns, problems)
    _raise_first(file, problems)
    ids = coded.dictionary_decode()
    content: dict[str, pa.Array] = {}
    if "name" in table.column_names:
        content["name"] = pc.coalesce(_whole(table.column("name"), _TEXT), ids)
    if "type" in table.column_names:
        content["type"] = _without_null(_coded(table.column("type")))
    content |= properties
    if len(coded.dictionary) < len(ids):
        kept = _distinct_rows(file, coded, content)
        ids, content = ids.take(kept), {name: column.take(kept) for name, column in content.items()}
    return ids, content.pop("name", None), content.pop("type", None), content


def _distinct_rows(file: RecordFile, coded: pa.DictionaryArray, content: Mapping[str, pa.Array]) -> pa.Array:
    """Return the rows where an id occurs first, refusing later rows of the same id with other content."""
    codes = coded.indices.to_numpy()
    first = _first_rows(codes, len(coded.dictionary))[codes]
    later = np.flatnonzero(first != np.arange(len(codes)))
    problems: list[_Problem | None] = []
    for name, column in content.items():
        column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        here, there = column.take(pa.array(later)), column.take(pa.array(first[later]))
        both_lack = pc.and_(here.is_null(), there.is_null())
        same = pc.or_(pc.fill_null(pc.equal(here, there), False), both_lack).to_numpy(zero_copy_only=False)
        for position in np.flatnonzero(~same)[:1].tolist():
            entity, row = coded[later[position]].as_py(), int(later[position])
            line, before, now = file.line_of(int(first[row])), there[position].as_py(), here[position].as_py()
            reason = f"node id {entity!r} is on line {line} already, with {name} {before!r}, here with {now!r}"
            problems.append(_Problem(row, f"{reason}; keep one of the two, or give them different ids"))
    _raise_first(file, problems)
    return pa.array(np.flatnonzero(first == np.arange(len(codes))))


# Headers and typed cells


@dataclass(frozen=True)
class _Column:
    """One column of a header; `kind` is empty for those that are not properties."""

    name: str
    kind: str = ""


def _header(file: RecordFile, known: Sequence[str], needed: Sequence[str]) -> tuple[list[_Column], list[str]]:
    """Read and check the header; return its columns, and its fields as they are written."""
    line, fields = file.first(f"a header such as {','.join(known)}")
    columns: list[_Column] = []
    for field in fields:
        name, colon, kind = field.strip().rpartition(":")
        if not colon:
            name, kind = kind, "string"
        if not name:
            raise ImportFailed(file.path, line, f"the header has a column without a name in {','.join(fields)!r}")
        if kind not in _TYPES:
            raise ImportFailed(
                file.path, line, f"column {field!r} has the unknown type {kind!r}; types are {', '.join(_TYPES)}"
            )
        if name in (column.name for column in columns):
            raise ImportFailed(file.path, line, f"column {name!r} stands twice in the header; rename one")
        if name in known and kind != "string":
            raise ImportFailed(file.path, line, f"column {name!r} is always text; leave out its type {kind!r}")
        columns.append(_Column(name, "" if name in known else kind))
    for name in needed:
        if _Column(name) not in columns:
            raise ImportFailed(
                file.path, line, f"the header {','.join(fields)!r} has no column {name!r}; it starts {','.join(known)}"
            )
    return columns, fields


def _typed_columns(table: pa.Table, columns: Sequence[_Column], problems: list[_Problem | None]) -> dict[str, pa.Array]:
    """Convert the property columns, noting the first bad cell of each in `problems`."""
    typed = {}
    for column in columns:
        if column.kind:
            typed[column.name], problem = _typed(column, table.column(column.name))
            problems.append(problem)
    return typed


def _typed(column: _Column, texts: pa.ChunkedArray) -> tuple[pa.Array, _Problem | None]:
    kind, pattern, wording = _TYPES[column.kind]
    if pattern is None:
        return _whole(texts, kind), None
    fits = pc.match_substring_regex(texts, pattern)
    bad = _whole(pc.invert(pc.fill_null(fits, True)), pa.bool_())
    if not bad.true_count:
        try:
            values = _whole(pc.equal(pc.utf8_lower(texts), "true") if kind == pa.bool_() else texts.cast(kind), kind)
        except pa.ArrowInvalid:
            bad = pa.array([text is not None and not _casts(text, kind) for text in texts.to_pylist()])
        else:
            if kind != pa.float64():
                return values, None
            bad = pc.invert(pc.fill_null(pc.is_finite(values), True))
            if not bad.true_count:
                return values, None
    row = pc.index(bad, True).as_py()
    return None, _Problem(row, f"{texts[row].as_py()!r} in column {column.name!r} is not {wording}; correct the cell")


def _casts(text: str, kind: pa.DataType) -> bool:
    try:
        pa.scalar(text).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


# Rows that cannot be used


@dataclass(frozen=True, order=True)
class _Problem:
    """Why one record cannot be used; records count from 0."""

    row: int
    reason: str


def _raise_first(file: RecordFile, problems: Sequence[_Problem | None]) -> None:
    """Report the earliest problem in the file, if any."""
    found = [problem for problem in problems if problem]
    if found:
        first = min(found)
        raise ImportFailed(file.path, file.line_of(first.row), first.reason)


def _blank(name: str, coded: pa.DictionaryArray) -> _Problem | None:
    """Find the first cell that is empty or holds only white space."""
    blank = pc.equal(pc.utf8_trim_whitespace(coded.dictionary), "").to_numpy(zero_copy_only=False)
    rows = coded.is_null().to_numpy(zero_copy_only=False)
    if not blank.any() and not coded.null_count:
        return None
    rows[~rows] = blank[coded.indices.drop_null().to_numpy()]
    return _Problem(int(rows.argmax()), f"the {name} is empty; fill it in or delete the line")


def _look_up(
    name: str, coded: pa.DictionaryArray, ids: pa.Array, nodes_name: str
) -> tuple[npt.NDArray[np.integer], _Problem | None]:
    """Find the node number of each end in `ids`; an end that is null is `_blank`'s to report."""
    numbers = pc.fill_null(pc.index_in(coded.dictionary, ids), -1).to_numpy()
    if len(numbers) == 0:
        return np.empty(0, np.int32), None
    rows = numbers[pc.fill_null(coded.indices, 0).to_numpy()]
    missing = (rows < 0) & coded.is_valid().to_numpy(zero_copy_only=False)
    if not missing.any():
        return rows, None
    row = int(missing.argmax())
    return rows, _Problem(
        row, f"{name} {coded[row].as_py()!r} is not an id in {nodes_name}; add the node or correct it"
    )


# Numbering


def _first_rows(codes: npt.NDArray[np.integer], count: int) -> npt.NDArray[np.int64]:
    """Return the row where each of `count` codes occurs first."""
    first = np.empty(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of repeated assignments the last one stays
    return first


def _number(coded: pa.DictionaryArray) -> tuple[pa.Array, npt.NDArray[np.integer]]:
    """Return distinct values in order of first appearance, and which one each row holds."""
    codes = coded.indices.to_numpy()
    order = np.argsort(_first_rows(codes, len(coded.dictionary)))
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return coded.dictionary.take(pa.array(order)), rank[codes]


def _number_ends(
    head: pa.DictionaryArray, tail: pa.DictionaryArray
) -> tuple[pa.Array, npt.NDArray[np.integer], npt.NDArray[np.integer]]:
    """Number heads and tails together, in order of first appearance reading row by row, head before tail."""
    both = pa.concat_arrays([head.dictionary, tail.dictionary]).dictionary_encode()
    merged = both.indices.to_numpy()
    of_head, of_tail = merged[: len(head.dictionary)], merged[len(head.dictionary) :]
    head_codes, tail_codes = head.indices.to_numpy(), tail.indices.to_numpy()
    first = np.full(len(both.dictionary), 2 * len(head_codes), np.int64)
    first[of_head] = 2 * _first_rows(head_codes, len(of_head))
    first[of_tail] = np.minimum(first[of_tail], 2 * _first_rows(tail_codes, len(of_tail)) + 1)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return both.dictionary.take(pa.array(order)), rank[of_head][head_codes], rank[of_tail][tail_codes]


# Arrow columns


def _whole(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Return a chunked column as one array, also when it has no chunks at all."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], kind)


def _coded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a dictionary-encoded column as one array over one dictionary."""
    return _whole(column.unify_dictionaries(), _CODED)


def _without_null(coded: pa.DictionaryArray) -> pa.DictionaryArray:
    """Replace null by the empty text."""
    if not coded.null_count:
        return coded
    dictionary = pa.concat_arrays([coded.dictionary, pa.array([""], coded.dictionary.type)])
    return pa.DictionaryArray.from_arrays(pc.fill_null(coded.indices, len(dictionary) - 1), dictionary)
