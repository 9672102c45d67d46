"""Graphs that Python libraries hold: NetworkX, pandas, and the records of RoG's data sets."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from byokg.errors import GraphError
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.export_formats import DIRECTED
from byokg.graph.importers.tables import EDGE_COLUMNS, NODE_COLUMNS
from byokg.types import NO_PROPERTIES, EntityId, Node, Properties, Triple, Value

if TYPE_CHECKING:
    import networkx
    import pandas


def from_networkx(
    graph: networkx.Graph,
    relation: str | None = None,
    default_relation: str = "related_to",
    name: str = "name",
    type: str = "type",
) -> ColumnarGraph:
    """Hold a NetworkX graph of any kind; the nodes' keys become ids, as text.

    Args:
        graph: edges of an undirected graph are undirected; of a directed one those whose attribute `directed` is False.
        relation: edge attribute that holds the relation; by default `relation`, `label` or `type`, the first that an
            edge has, and the key of a multigraph's edge if that is a text.
        default_relation: relation of edges that have none of these.
        name: node attribute that holds the name.
        type: node attribute that holds the type, or a list of types; a list under `types` gives further ones.

    Returns:
        The graph; all other attributes are properties, those that are None or not a number are absent.

    Raises:
        GraphError: two nodes have the same text as their key, or an attribute holds values of several types.
    """
    records = list(networkx_records(graph, relation, default_relation, name, type))
    nodes = [each for each in records if isinstance(each, Node)]
    edges = [each for each in records if isinstance(each, Triple)]
    return ColumnarGraph.from_records(nodes, edges, graph.name or "networkx", source={"kind": "NetworkX"})


def networkx_records(
    graph: networkx.Graph,
    relation: str | None = None,
    default_relation: str = "related_to",
    name: str = "name",
    type: str = "type",
) -> Iterator[Node | Triple]:
    """Yield the nodes and edges of a NetworkX graph. Arguments and errors as for `from_networkx`."""
    for key, attributes in graph.nodes(data=True):
        yield _node(key, attributes.get(name), attributes.get(type), attributes, (name, type))
    listed = graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True)
    named = ("relation", "label", "type") if relation is None else (relation,)
    for head, tail, *key, attributes in listed:
        attribute = next((attribute for attribute in named if attributes.get(attribute) is not None), None)
        label = attributes[attribute] if attribute else default_relation
        if attribute is None and relation is None and key and isinstance(key[0], str):
            label = key[0]
        undirected = not graph.is_directed() or attributes.get(DIRECTED) is False
        named_so = (attribute, DIRECTED) if undirected else (attribute,)
        yield replace(_edge(head, label, tail, attributes, named_so), undirected=undirected)


def from_pandas(
    edges: pandas.DataFrame, nodes: pandas.DataFrame | None = None, columns: Mapping[str, str] | None = None
) -> ColumnarGraph:
    """Hold the graph in two data frames.

    Args:
        edges: columns `head`, `relation`, `tail`; all others are properties.
        nodes: columns `id`, and `name`, `type` and `types` if there are such; all others are properties. A `type` may
            be a list of types, and `types` are lists of further ones. Without this frame the ends of edges are the
            nodes, and exact repetitions of an edge without properties are dropped.
        columns: other names of these columns in the frames, by the names above.

    Raises:
        GraphError: a column is missing, an end is no node, or a column holds values of several types.
    """
    called = dict(columns or {})
    _refuse_missing("edges", edges, EDGE_COLUMNS, called)
    if nodes is None and len(edges.columns) == len(EDGE_COLUMNS):
        rows = zip(*(edges[called.get(column, column)] for column in EDGE_COLUMNS), strict=True)
        spelled = ((str(_id(head)), str(label), str(_id(tail))) for head, label, tail in rows)
        return ColumnarGraph.from_triples(spelled, "pandas")
    links = [
        _edge(row.pop("head"), row.pop("relation"), row.pop("tail"), row) for row in _rows(edges, EDGE_COLUMNS, called)
    ]
    if nodes is None:
        ends = dict.fromkeys(end for link in links for end in (link.head, link.tail))
        found = [Node(end, end) for end in ends]
    else:
        _refuse_missing("nodes", nodes, ("id",), called)
        found = [
            _node(row.pop("id"), row.pop("name", None), row.pop("type", None), row)
            for row in _rows(nodes, NODE_COLUMNS, called)
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
    listed = list(type_) if isinstance(type_, list | tuple) else [type_]
    if isinstance(further := attributes.get("types"), list | tuple):
        listed, named = [*listed, *further], (*named, "types")
    types = list(dict.fromkeys(str(each) for each in listed if not _absent(each) and each != ""))
    return Node(
        entity,
        entity if _absent(name) else str(name),
        types[0] if types else "",
        _properties(attributes, named),
        tuple(types[1:]),
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
    """True if a cell is empty: None, not a number, or pandas' NA and NaT, which differ from themselves."""
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
