"""What a BFS-QL request may say, as a language model wrote it in JSON, and what a response looks like.

The article's request is nested; a later protocol of its author takes flat parameters. Both are understood:

| flat parameter       | the same as, or what it does                                                              |
|----------------------|-------------------------------------------------------------------------------------------|
| `node_types`         | `node_filter.entity_types`; an empty list is no filter                                    |
| `predicates`         | `edge_filter.predicates`; an empty list is no filter                                      |
| `exclude_node_types` | `exclude_entity_types`                                                                    |
| `min_mentions`       | leaves out nodes whose property `total_mentions` is lower; nodes without it stay          |
| `topology_only`      | everything is a stub                                                                      |
| `limit`              | nodes in one response; `truncated.cursor` leads to the next                               |
| `offset`             | nodes to skip, in the order of the response, with the edges between them                  |

A response has full nodes and edges, stubs, and what is said beside them. An item that alone is more than a response may
hold is cut.

Source: "A BFS-based graph query language" (BFS-QL), "Query Format" and "Response Format".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from byokg.errors import RequestInvalid
from byokg.graph.guard.allowlist import nearest_names
from byokg.text import estimate_tokens
from byokg.types import EntityId, Node, Properties, Value

Model = TypeVar("Model", bound=BaseModel)

MOST_SEEDS = 1000
"""More than a model has reason to write, and as many as can be looked up one by one."""

EXAMPLE = '{"seeds": ["id"], "max_hops": 1, "edge_filter": {"predicates": ["name"]}}'
"""Shown where a request cannot be read at all."""


_WANTED = {
    "tuple_type": "should be a list",
    "model_type": "should be an object",
    "too_short": "should hold {min_length} or more",
    "too_long": "should hold {max_length} or fewer",
}
"""What is wrong with a value, where pydantic would speak of Python's types."""


class Strict(BaseModel):
    """Refuses fields that it does not know, so that a misspelt filter is not silently no filter."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NodeFilter(Strict):
    """Which nodes come with all their data."""

    entity_types: tuple[str, ...] | None = Field(
        default=None,
        description="Node types as describe_schema spells them. A node matches if its type is in the list.",
    )


class EdgeFilter(Strict):
    """Which edges come with all their data."""

    predicates: tuple[str, ...] | None = Field(
        default=None,
        description="Relations as describe_schema spells them. An edge matches if its predicate is in the list.",
    )


class Selection(Strict):
    """What all requests for a subgraph have in common: what is in it, and how much of it is shown."""

    seeds: tuple[str, ...] = Field(
        min_length=1, max_length=MOST_SEEDS, description="Ids of the nodes to start from, all at once."
    )
    node_filter: NodeFilter | None = Field(
        default=None,
        description="Which nodes come with all their data; the others are stubs. Omit for all data on all nodes.",
    )
    edge_filter: EdgeFilter | None = Field(
        default=None,
        description="Which edges come with all their data and provenance; the others are stubs. Omit for all data on "
        "all edges.",
    )
    node_types: tuple[str, ...] | None = Field(default=None, description="Short for node_filter.entity_types.")
    predicates: tuple[str, ...] | None = Field(default=None, description="Short for edge_filter.predicates.")
    topology_only: bool = Field(default=False, description="Show stubs only, whatever the filters say.")

    direction: Literal["both", "out", "in"] = Field(
        default="both",
        description="Changes which nodes are reached: walk edges both ways, from subject to object, or back.",
    )
    exclude_entity_types: tuple[str, ...] = Field(
        default=(), description="Changes which nodes are reached: these types are left out and not walked through."
    )
    exclude_node_types: tuple[str, ...] = Field(default=(), description="The same as exclude_entity_types.")
    min_confidence: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Changes which nodes are reached: edges whose property `confidence` is lower are left out. Edges "
        "without it stay.",
    )
    min_mentions: int | None = Field(
        default=None,
        ge=1,
        description="Changes which nodes are reached: nodes whose property `total_mentions` is lower are left out. "
        "Nodes without it stay.",
    )
    max_degree: int | None = Field(
        default=None,
        ge=1,
        description="Changes which nodes are reached: nodes with more edges, other than seeds, are not walked through.",
    )

    limit: int | None = Field(
        default=None, ge=1, description="Nodes in this response at most; a cursor leads to the rest."
    )
    offset: int = Field(default=0, ge=0, description="Nodes to skip. A cursor is better: it skips no edge.")
    cursor: str | None = Field(
        default=None, description="`truncated.cursor` of an earlier response to the same request."
    )
    max_nodes: int | None = Field(default=None, ge=1, description="The same as limit; the lower of both counts.")
    max_edges: int | None = Field(default=None, ge=1, description="Edges in this response at most.")
    budget_tokens: int | None = Field(
        default=None, ge=100, description="Size of this response, in tokens as estimated."
    )

    @model_validator(mode="after")
    def _say_things_once(self) -> Selection:
        nested = self.node_filter.entity_types if self.node_filter else None
        if self.node_types and nested is not None and set(nested) != set(self.node_types):
            raise ValueError("node_types and node_filter.entity_types differ; give one of them")
        listed = self.edge_filter.predicates if self.edge_filter else None
        if self.predicates and listed is not None and set(listed) != set(self.predicates):
            raise ValueError("predicates and edge_filter.predicates differ; give one of them")
        if self.cursor is not None and self.offset:
            raise ValueError("cursor and offset both say where to go on; give one of them")
        return self

    @property
    def full_types(self) -> frozenset[str] | None:
        """Return the types of the nodes that come with all their data; None for all types."""
        if self.node_filter is not None and self.node_filter.entity_types is not None:
            return frozenset(self.node_filter.entity_types)
        return frozenset(self.node_types) if self.node_types else None

    @property
    def full_predicates(self) -> frozenset[str] | None:
        """Return the predicates of the edges that come with all their data; None for all."""
        if self.edge_filter is not None and self.edge_filter.predicates is not None:
            return frozenset(self.edge_filter.predicates)
        return frozenset(self.predicates) if self.predicates else None

    @property
    def excluded_types(self) -> frozenset[str]:
        """Return the types of the nodes that are left out."""
        return frozenset((*self.exclude_entity_types, *self.exclude_node_types))

    @property
    def most_nodes(self) -> int | None:
        """Return how many nodes a response may hold; None for any number."""
        return min((bound for bound in (self.limit, self.max_nodes) if bound is not None), default=None)


class BfsRequest(Selection):
    """A breadth-first search from seeds, and filters that say which nodes and edges come with all their data.

    Source: "A BFS-based graph query language" (BFS-QL), "Query Format".
    Differs: what the article does not have is optional. A list of types or predicates that is empty matches nothing,
    where an omitted one matches everything.
    """

    max_hops: int = Field(
        ge=0, description="Edges between a seed and a node at most: 1 for what is said of the seeds, 1 to 3 as a rule."
    )


class IntersectRequest(Selection):
    """The nodes that are near every seed, and the edges among them."""

    seeds: tuple[str, ...] = Field(min_length=2, max_length=MOST_SEEDS, description="Ids of two or more nodes.")
    k: int = Field(ge=0, description="Edges between each seed and a node at most.")


def read_request(model: type[Model], given: str | Mapping[str, Any]) -> Model:
    """Check a request against a model.

    Args:
        model: what is expected, `BfsRequest` for instance.
        given: JSON text, or what it holds.

    Raises:
        RequestInvalid: it is no JSON object, or not the one expected; says every problem, and what to write instead.
    """
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise RequestInvalid([f"no JSON ({error}); write one object such as {EXAMPLE}"]) from error
    if not isinstance(given, Mapping):
        raise RequestInvalid([f"{json.dumps(given)[:80]} is no JSON object; write one such as {EXAMPLE}"])
    try:
        json.dumps(dict(given), ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        raise RequestInvalid([f"half a character ({error.reason}) stands in it; write the whole one"]) from error
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        raise RequestInvalid(problems(model, error)) from error


def problems(model: type[BaseModel], error: ValidationError) -> list[str]:
    """Say what is wrong with each field of a request, and what would be right."""
    return [_problem(model, problem) for problem in error.errors()]


def _problem(model: type[BaseModel], error: Mapping[str, Any]) -> str:
    place = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f"{place}: missing; it is required"
    if error["type"] == "extra_forbidden":
        known = _fields(model, error["loc"][:-1])
        near = nearest_names(str(error["loc"][-1]), known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
        return f"{place}: no such field; {hint}"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    said = error["msg"][:1].lower() + error["msg"][1:]
    if error["type"] in _WANTED:
        said = _WANTED[error["type"]].format(**error.get("ctx", {}))
    return f"{place}: {said}, not {json.dumps(error['input'], default=str, ensure_ascii=False)[:80]}"


def _fields(model: type[BaseModel], place: tuple[str | int, ...]) -> list[str]:
    """Return the fields known at a place within a model."""
    nested: dict[str, type[BaseModel]] = {"node_filter": NodeFilter, "edge_filter": EdgeFilter}
    return list((nested.get(str(place[0]), model) if place else model).model_fields)


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
