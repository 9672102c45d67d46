"""One line of JSON as nodes and edges, or the reason why it is neither; the formats are told in `json_lines`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from byokg.errors import ImportFailed
from byokg.types import NO_PROPERTIES, EntityId, Node, Properties, Triple, Value

EDGE_KEYS = ("head", "relation", "tail")
NODE_KEYS = ("id", "name", "type")


def records(path: Path, line: int, text: str) -> Sequence[Node | Triple]:
    """Return what stands on a line: a node, an edge, or all edges of a question. Raises `ImportFailed`."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ImportFailed(path, line, f"this is no JSON: {error}; one record stands on each line") from error
    graph = value.get("graph") if isinstance(value, dict) else None
    if not isinstance(graph, list) or not all(isinstance(triple, list) for triple in graph):
        return [_record(path, line, value, text)]
    if not graph and "question" not in value:
        return [_record(path, line, value, text)]
    for triple in graph:
        if len(triple) != 3:
            raise ImportFailed(path, line, f"{_short(json.dumps(triple))} in graph is not [head, relation, tail]")
    return [_edge(path, line, head, relation, tail, NO_PROPERTIES) for head, relation, tail in graph]


def _record(path: Path, line: int, value: Any, text: str) -> Node | Triple:
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
            own = {key: item for key, item in value.items() if key not in (*EDGE_KEYS, "properties")}
            return _edge(path, line, value["head"], value["relation"], value["tail"], {**own, **inner})
        if value.get("type") == "node" and isinstance(value.get("labels", []), list) and "id" in value:
            labels = [str(label) for label in value.get("labels", [])]
            more = {"labels": labels} if len(labels) > 1 else {}
            return _node(path, line, value["id"], inner.get("name"), labels[0] if labels else "", {**inner, **more})
        if "id" in value:
            own = {key: item for key, item in value.items() if key not in (*NODE_KEYS, "properties")}
            name = value.get("name", inner.get("name"))
            return _node(path, line, value["id"], name, value.get("type"), {**own, **inner})
    raise ImportFailed(
        path,
        line,
        f"{_short(text)} is neither a triple, nor an object with head, relation and tail, nor one with an id",
    )


def _is_node(value: Mapping[str, Any]) -> bool:
    """Tell whether an object with all keys of both is a node: one row of a table that holds both, empty cells null."""
    return value.get("id") is not None and all(value[key] is None for key in EDGE_KEYS)


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
