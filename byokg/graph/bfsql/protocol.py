"""BFS-QL requests as language models write them in JSON, and the items of responses.

A schema shows the few arguments that a model needs. All of these are accepted as well, wherever they fit:

| argument                                         | equivalent or effect                                      |
|--------------------------------------------------|-----------------------------------------------------------|
| `node_types`, `predicates`                       | the lists in `node_filter`, `edge_filter`; `[]` is none   |
| `seed`, `ids`; `hops`, `depth`, `k`              | `seeds`; `max_hops`                                       |
| `topology_only`                                  | everything is a stub                                      |
| `exclude_entity_types`, `exclude_node_types`     | types that are neither shown nor walked through           |
| `min_confidence`, `min_mentions`, `max_degree`   | leave out unsure edges, rare nodes; go through no hubs    |
| `limit`, `max_nodes`, `max_edges`                | bounds of one response; `truncated.cursor` continues      |
| `budget_tokens`                                  | the same, as estimated                                    |
| `direction`                                      | `out`, `in` or `both`: which edges are walked             |
| `offset`                                         | nodes to skip, with the edges between them                |

Topology and presentation are apart: seeds, hops and the options in `SearchScope` decide the subgraph, the nodes within
some edges of the seeds (or of several seeds at once) and every edge among them; all else decides the presentation
(`pages`).

Objects and lists may come as JSON text, and a list of one as the text in it: clients send their models' output as it
is.

Source: "A BFS-based graph query language" (BFS-QL), "Query Format" and "Response Format".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

from byokg.arrays import Int64
from byokg.errors import RequestInvalid
from byokg.graph.cancellation import check
from byokg.graph.guard.allowlist import nearest_names
from byokg.graph.sorted_ids import contains, distinct
from byokg.graph.store import Direction, EdgeBatch, GraphStore, InducedEdges, NodeArray
from byokg.graph.traversal import expand
from byokg.text.names import estimate_tokens, estimated_quarters
from byokg.types import EntityId, Node, Properties, Value, of_any

Model = TypeVar("Model", bound=BaseModel)

MOST_SEEDS = 100
"""More than a model has reason to write."""

EXAMPLE = '{"seeds": ["id"], "max_hops": 1, "edge_filter": {"predicates": ["name"]}}'
"""Example in the message for an unreadable request."""


_WANTED = {
    "tuple_type": "should be a list",
    "model_type": "should be an object",
    "too_short": "should hold {min_length} or more",
    "too_long": "should hold {max_length} or fewer",
}
"""Messages for wrong values, in place of pydantic's Python types."""


def _listed(given: Any) -> Any:
    """Read a list that came as JSON text, or as the one text that is in it."""
    if not isinstance(given, str):
        return given
    found = _structured(given)
    return found if isinstance(found, list) else [given]


def _object(given: Any) -> Any:
    """Read an object that came as JSON text."""
    return _structured(given) if isinstance(given, str) else given


_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}

Texts = Annotated[tuple[str, ...], BeforeValidator(_listed), WithJsonSchema(_TEXTS)]
MaybeTexts = Annotated[tuple[str, ...] | None, BeforeValidator(_listed), WithJsonSchema(_TEXTS)]
MaybeText = Annotated[str | None, WithJsonSchema(_TEXT)]
"""Lists of texts, and texts; a schema shows no null, since that is an argument left out."""


class Strict(BaseModel):
    """Refuses fields that it does not know, so that a misspelt filter is not silently no filter."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    aliases: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Other names of fields, which are understood and not shown."""

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        said = {key: value for key, value in given.items() if value is not None}  # a null is an argument left out
        named = {cls.aliases.get(key, key): value for key, value in said.items() if key not in cls.model_fields}
        return {**named, **{key: value for key, value in said.items() if key in cls.model_fields}}


class NodeFilter(Strict):
    """Which nodes come with all their data."""

    entity_types: MaybeTexts = None
    """A node matches if any of its types is in the list."""


class ValueFilter(NodeFilter):
    """The same, by values of properties as well."""

    properties: Annotated[Mapping[str, Value] | None, BeforeValidator(_object)] = None
    """A node matches if each of these properties of it has the value."""


class EdgeFilter(Strict):
    """Which edges come with all their data."""

    predicates: MaybeTexts = None
    """An edge matches if its predicate is in the list."""


_TYPES: dict[str, Any] = {"type": "object", "properties": {"entity_types": _TEXTS, "properties": {"type": "object"}}}
_PREDICATES: dict[str, Any] = {"type": "object", "properties": {"predicates": _TEXTS}}

MaybeNodeFilter = Annotated[ValueFilter | None, BeforeValidator(_object), WithJsonSchema(_TYPES)]
MaybeEdgeFilter = Annotated[EdgeFilter | None, BeforeValidator(_object), WithJsonSchema(_PREDICATES)]
Way = Literal["both", "out", "in"]


_MISSING = object()


class Selection(Strict):
    """Common part of all requests for a subgraph: its extent and the bounds of the response."""

    aliases = MappingProxyType({"seed": "seeds", "ids": "seeds", "id": "seeds", "entity_types": "node_types"})

    seeds: Texts = Field(min_length=1, max_length=MOST_SEEDS, description="Ids to start from.")
    question: str = Field(default="", description="Puts the relevant first.")
    node_filter: MaybeNodeFilter = Field(default=None, description="Node types, and values, to show in full.")
    edge_filter: MaybeEdgeFilter = Field(default=None, description="Predicates to show first and in full.")
    direction: SkipJsonSchema[Way] = "both"
    cursor: MaybeText = None

    node_types: SkipJsonSchema[Texts | None] = None
    predicates: SkipJsonSchema[Texts | None] = None
    topology_only: SkipJsonSchema[bool] = False
    exclude_entity_types: SkipJsonSchema[Texts] = ()
    exclude_node_types: SkipJsonSchema[Texts] = ()
    min_confidence: SkipJsonSchema[Annotated[float, Field(ge=0, le=1)] | None] = None
    min_mentions: SkipJsonSchema[Annotated[int, Field(ge=1)] | None] = None
    max_degree: SkipJsonSchema[Annotated[int, Field(ge=1)] | None] = None
    limit: SkipJsonSchema[Annotated[int, Field(ge=1)] | None] = None
    offset: SkipJsonSchema[Annotated[int, Field(ge=0)]] = 0
    max_nodes: SkipJsonSchema[Annotated[int, Field(ge=1)] | None] = None
    max_edges: SkipJsonSchema[Annotated[int, Field(ge=1)] | None] = None
    budget_tokens: SkipJsonSchema[Annotated[int, Field(ge=100)] | None] = None

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
    def full_values(self) -> Mapping[str, Value]:
        """Return the values of properties that nodes with all their data have; empty for any."""
        return (self.node_filter.properties or {}) if self.node_filter is not None else {}

    def shows_in_full(self, node: Node) -> bool:
        """True if a node comes with all its data: it has one of the types, and the values."""
        types = self.full_types
        held = node.properties
        return (types is None or of_any(node, types)) and all(
            held.get(key, _MISSING) == value for key, value in self.full_values.items()
        )

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
    """A breadth-first search from seeds, with filters that select nodes and edges in full.

    Source: "A BFS-based graph query language" (BFS-QL), "Query Format".
    Differs: fields that the article does not have are optional. An empty list of types or predicates matches nothing,
    an omitted one everything.
    """

    aliases = MappingProxyType({**Selection.aliases, "hops": "max_hops", "depth": "max_hops", "k": "max_hops"})

    max_hops: int = Field(default=1, ge=0, description="1 or 2; 0 for the seeds alone.")


class StrictBfsRequest(Strict):
    """The article's request and nothing else."""

    seeds: tuple[str, ...] = Field(min_length=1, max_length=MOST_SEEDS)
    max_hops: int = Field(ge=0)
    node_filter: NodeFilter | None = None
    edge_filter: EdgeFilter | None = None


class IntersectRequest(Selection):
    """The nodes that are near every seed, and the edges among them."""

    aliases = MappingProxyType({**Selection.aliases, "hops": "k", "depth": "k", "max_hops": "k"})

    seeds: Texts = Field(min_length=2, max_length=MOST_SEEDS)
    k: int = Field(default=1, ge=0)
    node_filter: SkipJsonSchema[MaybeNodeFilter] = None
    edge_filter: SkipJsonSchema[MaybeEdgeFilter] = None
    direction: SkipJsonSchema[Way] = "both"


class NeighborsRequest(Strict):
    """The values of some predicates of one node."""

    aliases = MappingProxyType(
        {"seed": "id", "seeds": "id", "entity": "id", "entity_id": "id", "predicate": "predicates"}
    )

    id: Annotated[str, BeforeValidator(lambda given: given[0] if isinstance(given, list) and given else given)]
    predicates: Texts = ()
    direction: SkipJsonSchema[Way] = "both"
    question: str = ""
    cursor: MaybeText = None
    budget_tokens: SkipJsonSchema[Annotated[int, Field(ge=100)] | None] = None


_UNSHOWN = ("title", "minItems", "maxItems", "minLength", "minimum", "maximum")
"""Arguments that the schema omits and the message about a wrong call explains."""


def shown_schema(model: type[BaseModel]) -> Json:
    """Return the JSON Schema of arguments as a language model is shown it: short, without references and nulls."""
    schema = model.model_json_schema()
    properties = {name: _shown(each) for name, each in schema["properties"].items()}
    return {"type": "object", "properties": properties} | (
        {"required": schema["required"]} if "required" in schema else {}
    )


def _shown(schema: Json) -> Json:
    return {key: value for key, value in schema.items() if key not in _UNSHOWN and (key != "default" or value)}


def read_request(model: type[Model], given: str | Mapping[str, Any]) -> Model:
    """Validate a request with a model.

    Args:
        model: expected record, `BfsRequest` for instance.
        given: JSON text, or its value.

    Raises:
        RequestInvalid: it is no JSON object, or has wrong fields; the message has every problem with a correction.
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
    """Return the problem of each field of a request, with a correction."""
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
    nested: dict[str, type[BaseModel]] = {"node_filter": ValueFilter, "edge_filter": EdgeFilter}
    return list((nested.get(str(place[0]), model) if place else model).model_fields)


NODE_FIELDS = ("id", "entity_type", "entity_types", "name", "about")
EDGE_FIELDS = ("subject", "predicate", "object", "undirected")
"""Fields that mean the same in every response; a property called like one gets `PREFIX` before its name."""

PREFIX = "property_"

Json = dict[str, Any]

_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))
_APART = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=("\0", ":"))
"""Separator written between items and never within one, since JSON escapes it in texts."""
_BETWEEN = b"}\0{"
_QUARTERS = np.array([estimated_quarters(byte) for byte in range(256)], np.uint8)
"""Quarters of a token that each byte of UTF-8 is estimated at."""


def full_node(node: Node) -> Json:
    """Return a node with all its data."""
    return {**stub_node(node), **_dump_properties(node.properties, NODE_FIELDS)} if node.properties else stub_node(node)


def stub_node(node: Node) -> Json:
    """Return a node's id, with type, all types of several, and name if they add to it."""
    item: Json = {"id": node.id}
    if node.type:
        item["entity_type"] = node.type
    if node.further_types:
        item["entity_types"] = list(node.types)
    if node.name != node.id:
        item["name"] = node.name
    return item


def article_node(node: Node, full: bool) -> Json:
    """Return a node as the article writes it: the id and type, and in full the properties.

    The name is one of them if it is neither the id nor the value of another.
    """
    item: Json = {"id": node.id, "entity_type": node.type}
    if full:
        if node.name != node.id and node.name not in node.properties.values():
            item["name"] = node.name
        item.update(_dump_properties(node.properties, ("id", "entity_type")))
    return item


def full_edge(head: EntityId, relation: str, tail: EntityId, properties: Properties, undirected: bool = False) -> Json:
    """Return an edge with its properties and provenance; without any it is as a stub."""
    item = stub_edge(head, relation, tail)
    if undirected:
        item["undirected"] = True
    if properties:
        item.update(_dump_properties(properties, EDGE_FIELDS))
    return item


def stub_edge(head: EntityId, relation: str, tail: EntityId) -> Json:
    """Return the ends and the predicate of an edge."""
    return {"subject": head, "predicate": relation, "object": tail}


def _dump_properties(properties: Properties, reserved: Iterable[str]) -> Json:
    """Return properties as JSON: the stored text of a list or object becomes that list or object."""
    return {name: _structured(value) for name, value in rename(properties, reserved).items()}


def rename(properties: Properties, reserved: Iterable[str]) -> dict[str, Value]:
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
    """Return the list or object that a text holds; any other value as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


IDENTITY = frozenset(["id", "entity_type", "subject", "predicate", "object", "source", "target", "nodes"])
"""Fields that are never cut: a cut id is no id any more."""

_SHORTEST, _FEWEST = 16, 4
"""Characters of a text, and members of a list or object, that always stay."""
_CHARACTERS_A_MEMBER = 16
"""A list or object keeps a member for so many characters that a text would keep."""


def item_tokens(items: Sequence[Json]) -> list[int]:
    """Return `estimate_tokens` of each item as written by `compact`, in one pass over all of them."""
    text = np.frombuffer(_APART.encode(items).encode(errors="surrogatepass"), np.uint8)[1:-1]
    between = [text[at : len(text) - 2 + at] == byte for at, byte in enumerate(_BETWEEN)]
    starts = np.flatnonzero(between[0] & between[1] & between[2]) + 1
    if len(starts) != len(items) - 1:  # lists of objects within an item look alike
        return [estimate_tokens(compact(item)) for item in items]
    sums = np.add.reduceat(_QUARTERS.take(text), np.concatenate(([0], starts)), dtype=np.int64)
    sums[1:] -= _QUARTERS[0]  # what stands before an item
    sizes: list[int] = ((sums + 3) // 4).tolist()
    return sizes


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
    return [clip(item, budget_tokens) for item in items[:1]] if count == 1 else list(items[:count])


def clip(item: Any, budget_tokens: int) -> Any:
    """Return a JSON value with its long texts and lists cut, each with a note on the missing amount.

    A value that fits stays as it is; fields of `IDENTITY` always do, so an item of long ids may still be too long.

    Args:
        item: a node, an edge, a row of a response.
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


_AT_ONCE = 1 << 16
"""Nodes walked from between two looks at whether anybody still waits."""

CONFIDENCE, MENTIONS = "confidence", "total_mentions"
"""Properties that `min_confidence` and `min_mentions` read."""


@dataclass(frozen=True)
class SearchScope:
    """How far a search goes, and through what."""

    max_hops: int
    direction: Direction = Direction.BOTH
    """Which edges are walked, seen from the node left. Edges are shown in stored orientation all the same."""
    excluded_types: frozenset[str] = frozenset()
    """Nodes of these types are neither shown nor walked through, unless they are seeds."""
    min_confidence: float | None = None
    """Edges of lower confidence are neither shown nor walked; those without a confidence stay."""
    min_mentions: int | None = None
    """Nodes of fewer mentions are neither shown nor walked through, unless they are seeds; those without a number
    stay."""
    max_degree: int | None = None
    """Nodes with more edges are shown but not walked through, unless they are seeds."""

    @classmethod
    def of(cls, selection: Selection, hops: int) -> SearchScope:
        """Return the reach of a request."""
        return cls(
            hops,
            Direction(selection.direction),
            selection.excluded_types,
            selection.min_confidence,
            selection.min_mentions,
            selection.max_degree,
        )

    def restrictions(self) -> list[str]:
        """Return the restrictions of the subgraph beyond seeds and hops."""
        said = [] if self.direction is Direction.BOTH else [f"direction={self.direction.value}"]
        if self.excluded_types:
            said.append(f"exclude_entity_types={','.join(sorted(self.excluded_types))}")
        for name in ("min_confidence", "min_mentions", "max_degree"):
            if (value := getattr(self, name)) is not None:
                said.append(f"{name}={value}")
        return said


@dataclass(frozen=True)
class Subgraph:
    """N nodes, and the E edges that have both ends among them, each once."""

    nodes: NodeArray
    """(N,) node numbers, by hops and then by number."""
    hops: Int64
    """(N,) the fewest edges from any seed; of an intersection from the seed that is farthest away."""
    edges: InducedEdges

    @cached_property
    def degrees(self) -> Int64:
        """Return how many edges of the subgraph touch each node: (N,). A self-loop counts twice."""
        return self.edges.outgoing + np.bincount(self.edges.tail, minlength=len(self.nodes))

    def batch(self, rows: Int64) -> EdgeBatch:
        """Return some of the edges, in the given order, as a store does: found from their heads among the nodes."""
        head = self.edges.head[rows].astype(np.int64)
        return EdgeBatch(
            self.nodes[head],
            self.edges.relation[rows],
            self.nodes[self.edges.tail[rows]],
            self.edges.edge[rows].astype(np.int64),
            head,
            np.zeros(len(head), np.bool_),
            undirected=None if self.edges.undirected is None else self.edges.undirected[rows],
        )


def breadth_first(store: GraphStore, seeds: NodeArray, reach: SearchScope) -> Subgraph:
    """Return the nodes within some hops of any seed, with every edge among them, parallel ones and those of the last
    hop too.

    Args:
        store: graph to read; one call for each hop and one more, for any fan-out.
        seeds: (S,) node numbers.
        reach: extent of the search.

    Source: "A BFS-based graph query language" (BFS-QL), "Topology and presentation are orthogonal".
    """
    nodes, hops = _reached(store, seeds, reach)
    return _induced(store, nodes, hops, reach)


def intersection(store: GraphStore, seeds: NodeArray, reach: SearchScope) -> Subgraph:
    """Return the nodes within some hops of every seed, with every edge among them.

    Args:
        store: graph to read.
        seeds: (S,) node numbers, one or more.
        reach: extent of the search from each.
    """
    order = np.argsort(store.relation_counts(seeds).degrees(len(seeds)), kind="stable")
    nodes, hops = _reached_in_order(store, seeds[order[:1]], reach)
    for at in order[1:].tolist():  # the smallest neighbourhood first, and never more than two of them in memory
        others, taken = _reached_in_order(store, seeds[at : at + 1], reach)
        kept = np.flatnonzero(contains(others, nodes))
        nodes = nodes[kept]
        hops = np.maximum(hops[kept], taken[np.searchsorted(others, nodes)])
        if len(nodes) == 0:
            break
    order = np.lexsort((nodes, hops))
    return _induced(store, nodes[order], hops[order], reach)


def _reached_in_order(store: GraphStore, seeds: NodeArray, reach: SearchScope) -> tuple[NodeArray, Int64]:
    """Return what `_reached` does, by node number."""
    nodes, hops = _reached(store, seeds, reach)
    order = np.argsort(nodes, kind="stable")
    return nodes[order], hops[order]


def _reached(store: GraphStore, seeds: NodeArray, reach: SearchScope) -> tuple[NodeArray, Int64]:
    """Return the nodes within some hops, and how many each takes."""
    frontier = seen = distinct(seeds)
    rings = [frontier]
    for hop in range(reach.max_hops):
        if reach.max_degree is not None and hop > 0:
            frontier = frontier[store.relation_counts(frontier).degrees(len(frontier)) <= reach.max_degree]
        found = [_behind(store, frontier[at : at + _AT_ONCE], reach) for at in range(0, len(frontier), _AT_ONCE)]
        fresh = distinct(np.concatenate(found)) if len(found) > 1 else found[0] if found else frontier[:0]
        fresh = fresh[~contains(seen, fresh)]
        if len(fresh) == 0:
            break
        seen = distinct(np.concatenate((seen, fresh)))
        frontier = _admitted(store, fresh, reach)
        rings.append(frontier)
    return np.concatenate(rings), np.repeat(np.arange(len(rings)), [len(ring) for ring in rings])


def _behind(store: GraphStore, nodes: NodeArray, reach: SearchScope) -> NodeArray:
    """Return the other ends of the edges that are walked from some nodes, ascending."""
    if reach.min_confidence is None:
        check()
        return store.far_ends(nodes, reach.direction)
    batch = expand(store, nodes, reach.direction).edges
    return distinct(batch.take(_confident(store, batch.edge, reach.min_confidence)).other)


def _induced(store: GraphStore, nodes: NodeArray, hops: Int64, reach: SearchScope) -> Subgraph:
    """Add the edges that have both ends among the nodes."""
    check()
    edges = _outward(store.edges_among(nodes, reach.direction), len(nodes))
    if reach.min_confidence is not None:
        rows = _confident(store, edges.edge, reach.min_confidence)
        outgoing = np.bincount(edges.head[rows], minlength=len(nodes))
        undirected = None if edges.undirected is None else edges.undirected[rows]
        edges = InducedEdges(outgoing, edges.tail[rows], edges.relation[rows], edges.edge[rows], undirected)
    return Subgraph(nodes, hops, edges)


def _outward(edges: InducedEdges, nodes: int) -> InducedEdges:
    """Return the undirected ones of some edges from the end that stands first among the nodes, nearer to the seeds."""
    if edges.undirected is None:
        return edges
    head, tail = edges.head.astype(np.int64), edges.tail.astype(np.int64)
    turned = edges.undirected & (tail < head)
    head, tail = np.where(turned, tail, head), np.where(turned, head, tail)
    order = np.lexsort((edges.edge, tail, edges.relation, head))
    outgoing = np.bincount(head, minlength=nodes)
    return InducedEdges(outgoing, tail[order], edges.relation[order], edges.edge[order], edges.undirected[order])


def _confident(store: GraphStore, edges: npt.NDArray[np.integer], least: float) -> Int64:
    """Return the positions of the edges without a confidence below the minimum."""
    said = store.edge_properties(edges.astype(np.int64))
    return np.array([at for at, properties in enumerate(said) if not _below(properties, CONFIDENCE, least)], np.int64)


def _admitted(store: GraphStore, nodes: NodeArray, reach: SearchScope) -> NodeArray:
    """Leave out the nodes of excluded types or few mentions."""
    if not reach.excluded_types and reach.min_mentions is None:
        return nodes
    least = reach.min_mentions or 0
    kept = [
        at
        for at, node in enumerate(store.nodes(store.ids(nodes)))
        if not of_any(node, reach.excluded_types) and not _below(node.properties, MENTIONS, least)
    ]
    return nodes[np.array(kept, np.int64)]


def _below(properties: Properties, name: str, least: float) -> bool:
    """True if a property is a number that is too low; False for text and None."""
    value = properties.get(name)
    return isinstance(value, int | float) and value < least
