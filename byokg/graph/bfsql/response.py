"""What a BFS-QL response looks like: full nodes and edges, stubs, and what is said beside them.

Also how many items fit into a response, and cutting one that alone is more than it may hold.

Source: "A BFS-based graph query language" (BFS-QL), "Response Format".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from byokg.text import estimate_tokens
from byokg.types import EntityId, Node, Properties, Value

NODE_FIELDS = ("id", "entity_type", "name")
EDGE_FIELDS = ("subject", "predicate", "object")
"""Fields that mean the same in every response; a property called like one gets `PREFIX` before its name."""

PREFIX = "property_"

PROVENANCE = "provenance"
"""The property of an edge that may hold its sources as JSON text, which is then given as what it says."""

Json = dict[str, Any]

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class NodeItem(BaseModel):
    """A node: as a stub its id and type; in full also its name and properties, each under its own name."""

    model_config = ConfigDict(extra="allow")

    id: str
    entity_type: str = Field(description="Empty where the graph has no types.")
    name: str | None = Field(default=None, description="Of a full node.")


class EdgeItem(BaseModel):
    """An edge, in stored orientation: as a stub its ends and predicate; in full also its properties and provenance."""

    model_config = ConfigDict(extra="allow")

    subject: str
    predicate: str
    object: str


class Near(BaseModel):
    """A node whose name is like one that was not found."""

    id: str
    entity_type: str
    name: str


class SeedError(BaseModel):
    """A seed that is not in the graph; the other seeds are answered all the same."""

    seed: str
    message: str
    nearest: list[Near]


class Truncated(BaseModel):
    """What a response left out, and how to get it."""

    by: list[str] = Field(description="The bounds that were reached: limit, max_nodes, max_edges, budget_tokens.")
    nodes_left: int = Field(description="Nodes that come after those shown.")
    edges_left: int = Field(description="Edges that come after those shown.")
    cursor: str = Field(description="Send the same request with this cursor for what follows.")


class Response(BaseModel):
    """A subgraph. Fields beyond the article's are there only where they have something to say."""

    model_config = ConfigDict(extra="forbid")

    seeds: list[str]
    node_count: int = Field(description="Nodes in the subgraph, shown here or not.")
    edge_count: int = Field(description="Edges in the subgraph, shown here or not.")
    nodes: list[NodeItem]
    edges: list[EdgeItem]
    restricted_by: list[str] | None = Field(
        default=None, description="What made the subgraph smaller than hops alone would."
    )
    truncated: Truncated | None = Field(default=None, description="Missing where nothing follows.")
    errors: list[SeedError] | None = Field(default=None, description="Seeds that are not in the graph.")
    warnings: list[str] | None = Field(
        default=None,
        description="Types and predicates that the graph does not have, and how many errors are not shown.",
    )


class BfsResponse(Response):
    """What a breadth-first search reached."""

    max_hops: int


class IntersectResponse(Response):
    """What is near every seed."""

    k: int


def full_node(node: Node) -> Json:
    """Return a node with everything that the graph says of it."""
    return {"id": node.id, "entity_type": node.type, "name": node.name, **renamed(node.properties, NODE_FIELDS)}


def stub_node(node: Node) -> Json:
    """Return a node's identity."""
    return {"id": node.id, "entity_type": node.type}


def full_edge(head: EntityId, relation: str, tail: EntityId, properties: Properties) -> Json:
    """Return an edge with its properties and provenance; without any it is as a stub."""
    item = stub_edge(head, relation, tail)
    if properties:
        item.update(renamed(properties, EDGE_FIELDS))
        if PROVENANCE in item:
            item[PROVENANCE] = _structured(item[PROVENANCE])
    return item


def stub_edge(head: EntityId, relation: str, tail: EntityId) -> Json:
    """Return the ends and the predicate of an edge."""
    return {"subject": head, "predicate": relation, "object": tail}


def renamed(properties: Properties, reserved: Iterable[str]) -> dict[str, Value]:
    """Return properties under names that are not reserved, and all different."""
    taken = {*reserved, *properties}
    named = {}
    for name, value in properties.items():
        if name in reserved:
            while name in taken:
                name = f"{PREFIX}{name}"
            taken.add(name)
        named[name] = value
    return named


def compact(item: Any) -> str:
    """Write an item as it is sent: JSON without spaces."""
    return _ENCODER.encode(item)


def _structured(value: Value) -> Any:
    """Return what a property says that holds JSON; any other value as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


IDENTITY = frozenset(["id", "entity_type", "subject", "predicate", "object", "source", "target", "nodes"])
"""Fields that are never cut: what is cut is no id any more."""

_SHORTEST, _FEWEST = 16, 4
"""Characters of a text, and members of a list or object, that always stay."""
_CHARACTERS_A_MEMBER = 16
"""A list or object keeps a member for so many characters that a text would keep."""


def fitting_items(items: Sequence[Any], budget_tokens: int) -> int:
    """Return how many of the first items fit, one at least."""
    for at, item in enumerate(items):
        budget_tokens -= estimate_tokens(compact(item)) + 1
        if budget_tokens < 0 and at > 0:
            return at
    return len(items)


def within(items: Sequence[Any], budget_tokens: int) -> list[Any]:
    """Return the first items that fit; the first one alone is cut until it does."""
    count = fitting_items(items, budget_tokens)
    return [clipped(item, budget_tokens) for item in items[:1]] if count == 1 else list(items[:count])


def clipped(item: Any, budget_tokens: int) -> Any:
    """Return what JSON holds with its long texts and lists cut, each with a word on how much is missing.

    What fits stays as it is; fields of `IDENTITY` always do, so an item of long ids may be too long all the same.

    Args:
        item: a node, an edge, a row, as a response shows it.
        budget_tokens: as estimated.
    """
    length = 4 * max(budget_tokens, 1)
    found = item
    while estimate_tokens(compact(found)) > budget_tokens and length >= _SHORTEST:
        found = _cut(item, length)
        length //= 2
    return found


def _cut(value: Any, length: int) -> Any:
    """Cut each text to some characters, and each list and object in proportion."""
    members = max(_FEWEST, length // _CHARACTERS_A_MEMBER)
    if isinstance(value, str) and len(value) > length:
        return f"{value[:length]}… ({len(value) - length:,} more characters)"
    if isinstance(value, list):
        left = [f"… ({len(value) - members:,} more)"] if len(value) > members else []
        return [*(_cut(each, length) for each in value[:members]), *left]
    if isinstance(value, dict):
        shown = dict(list(value.items())[:members])
        cut = {key: each if key in IDENTITY else _cut(each, length) for key, each in shown.items()}
        return cut | ({"…": f"{len(value) - members:,} more"} if len(value) > members else {})
    return value
