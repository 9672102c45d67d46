"""Graphs as JSON, one triple, node or edge a line.

| line                                                                        | is                                |
|-----------------------------------------------------------------------------|-----------------------------------|
| `["Alien", "directed_by", "Scott"]`                                         | an edge                           |
| `{"head": …, "relation": …, "tail": …, "since": 1979}`                      | an edge with properties           |
| `{"id": …, "name": …, "type": …, "born": 1937}`                             | a node with properties            |
| `{"type": "node", "id": …, "labels": […], "properties": {…}}`               | a node as APOC exports it         |
| `{"type": "relationship", "label": …, "start": {"id": …}, "end": {…}, …}`   | an edge as APOC exports it        |

Properties may also stand together under `properties`. Ids are texts or numbers. A null is no property; a list is kept
as the text `a;b;c`, anything deeper as its JSON. Where no line is a node, the ends of edges are the nodes, and exact
repetitions of an edge without properties are dropped and counted. Where some are, both ends of every edge must be.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from byokg.errors import GraphError, ImportFailed
from byokg.graph.columnar import ColumnarGraph
from byokg.graph.delimited import TextFile
from byokg.types import NO_PROPERTIES, EntityId, Node, Properties, Triple, Value

_EDGE_KEYS = ("head", "relation", "tail")
_NODE_KEYS = ("id", "name", "type")


def import_json_lines(path: Path) -> ColumnarGraph:
    """Read a file of nodes and edges. Raises `ImportFailed`, naming the line."""
    file = TextFile(path)
    nodes: dict[str, tuple[Node, int]] = {}
    edges: list[tuple[Triple, int]] = []
    for line, text in file.lines():
        if not text.strip():
            continue
        record = _record(path, line, text)
        if isinstance(record, Triple):
            edges.append((record, line))
            continue
        before, before_line = nodes.setdefault(record.id, (record, line))
        if before != record:
            reason = f"node id {record.id!r} is on line {before_line} already, with other content; keep one of the two"
            raise ImportFailed(path, line, reason)
    if not nodes and not edges:
        raise ImportFailed(path, None, "holds no records; expected lines such as " + '["head", "relation", "tail"]')
    source = {"kind": "JSON lines", "files": [file.description()]}
    kept, dropped = [edge for edge, _ in edges], 0
    if nodes:
        for edge, line in edges:
            for end in (edge.head, edge.tail):
                if end not in nodes:
                    raise ImportFailed(path, line, f"{end!r} is the id of no node; add a line for it, or correct it")
    else:
        distinct: dict[tuple[str, str, str, int], Triple] = {}
        for edge, line in edges:
            distinct.setdefault((edge.head, edge.relation, edge.tail, line if edge.properties else 0), edge)
        dropped, kept = len(edges) - len(distinct), list(distinct.values())
        for edge in kept:
            for end in (edge.head, edge.tail):
                nodes.setdefault(end, (Node(end, end), 0))
    try:
        return ColumnarGraph.from_records(
            (node for node, _ in nodes.values()), kept, str(path), source=source, dropped_duplicates=dropped
        )
    except (GraphError, UnicodeEncodeError) as error:
        raise ImportFailed(path, None, str(error)) from error


def _record(path: Path, line: int, text: str) -> Node | Triple:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ImportFailed(path, line, f"this is no JSON: {error}; one record stands on each line") from error
    if isinstance(value, list) and len(value) == 3:
        return _edge(path, line, value[0], value[1], value[2], NO_PROPERTIES)
    if isinstance(value, dict):
        inner = value.get("properties", {})
        if not isinstance(inner, dict):
            raise ImportFailed(path, line, f"properties is {inner!r}; it holds names and values")
        if value.get("type") == "relationship" and {"start", "end", "label"} <= value.keys():
            ends = [end.get("id") if isinstance(end, dict) else end for end in (value["start"], value["end"])]
            return _edge(path, line, ends[0], value["label"], ends[1], inner)
        if all(key in value for key in _EDGE_KEYS):
            own = {key: item for key, item in value.items() if key not in (*_EDGE_KEYS, "properties")}
            return _edge(path, line, value["head"], value["relation"], value["tail"], {**own, **inner})
        if value.get("type") == "node" and isinstance(value.get("labels", []), list) and "id" in value:
            labels = [str(label) for label in value.get("labels", [])]
            more = {"labels": labels} if len(labels) > 1 else {}
            return _node(path, line, value["id"], inner.get("name"), labels[0] if labels else "", {**inner, **more})
        if "id" in value:
            own = {key: item for key, item in value.items() if key not in (*_NODE_KEYS, "properties")}
            return _node(path, line, value["id"], value.get("name"), value.get("type"), {**own, **inner})
    raise ImportFailed(
        path,
        line,
        f"{_short(text)} is neither a triple, nor an object with head, relation and tail, nor one with an id",
    )


def _node(path: Path, line: int, id_: object, name: object, type_: object, properties: Mapping[str, Any]) -> Node:
    entity = _text(path, line, "id", id_)
    shown = entity if name in (None, "") else _text(path, line, "name", name)
    kind = "" if type_ is None else str(type_)
    return Node(EntityId(entity), shown, kind, _properties(path, line, properties, leave_out="name"))


def _edge(path: Path, line: int, head: object, relation: object, tail: object, properties: Mapping[str, Any]) -> Triple:
    ends = [EntityId(_text(path, line, name, end)) for name, end in (("head", head), ("tail", tail))]
    label = _text(path, line, "relation", relation)
    return Triple(ends[0], label, ends[1], properties=_properties(path, line, properties))


def _text(path: Path, line: int, name: str, value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value.strip():
        return value
    raise ImportFailed(path, line, f"the {name} is {value!r}; give it a text or a number")


def _properties(path: Path, line: int, values: Mapping[str, Any], leave_out: str = "") -> Properties:
    found: dict[str, Value] = {}
    for key, value in values.items():
        if value is None or key == leave_out:
            continue
        if isinstance(value, float) and not math.isfinite(value):
            raise ImportFailed(path, line, f"property {key!r} is {value}; give it a finite number or null")
        found[key] = value if isinstance(value, str | int | float | bool) else _flat(value)
    return found or NO_PROPERTIES


def _flat(value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, str | int | float | bool) for item in value):
        return ";".join(str(item) for item in value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= 80 else f"{text[:77]}..."
