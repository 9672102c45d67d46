"""Protocol of openCypher servers, quoting of names and parameters, and reading of their schema.

A schema is read with Cypher that every server supports: no plugin needed. Up to `EXACT_SIZE` nodes and edges, two
queries scan everything and all counts are exact: a scan of half a million edges takes less time than planning
queries for a few dozen relations. Above that, labels and relation types are listed and counted one by one, which
servers answer from counters of their own, and the ends of relations and the properties are sampled; with more than
`MANY_NAMES` of them, the first nodes and edges stand for all. Kinds and examples of properties come from a few nodes
and edges in either case.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from byokg.errors import QueryFailed, QueryInvalid, QueryTooLarge
from byokg.graph.store import Direction, PropertySchema, RelationSchema, Schema
from byokg.text.names import encodable
from byokg.types import Cell, Value


def plain_parameters(parameters: Mapping[str, Cell] | None) -> dict[str, Any]:
    """Return None, bool, int, float, str, and lists and dicts of them. Raises `QueryInvalid` for anything else."""
    return {_check_parameter(name, name): _check_parameter(name, value) for name, value in (parameters or {}).items()}


def _check_parameter(name: str, value: object) -> Any:
    if isinstance(value, str) and encodable(value) != value:
        raise QueryInvalid(f"parameter {name!a} holds half of a character (a lone surrogate); pass whole characters")
    if value is None or isinstance(value, bool | float | str):
        return value
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise QueryInvalid(f"parameter {name!r} is {value}, which does not fit into 64 bits; pass it as text")
        return value
    if isinstance(value, Mapping):
        return {_check_parameter(name, str(key)): _check_parameter(name, entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_check_parameter(name, entry) for entry in value]
    raise QueryInvalid(
        f"parameter {name!r} holds a {type(value).__name__}; pass text, numbers, true or false, lists or maps of them, "
        "and instead of a node its id"
    )


MAX_WRITTEN = 200
"""Relation types written into one pattern; more are passed as a parameter, so that the text stays short."""


def quote(name: str) -> str:
    """Return a name in backticks, whatever it holds."""
    return f"`{name.replace('`', '``')}`"


def writable(name: str) -> bool:
    r"""True if a name keeps its meaning when quoted.

    Neo4j decodes `\u0060` before it looks for backticks, so a name that holds such a sequence could end its quotes
    early. `node_pattern` and `edge_pattern` have other forms for such a name.
    """
    return bool(name) and "\\u" not in name


def node_pattern(variable: str, label: str, parameter: str) -> str:
    """Return `(n:label)`, or the same by a condition on `$parameter`, which must then hold the label."""
    if writable(label):
        return f"({variable}:{quote(label)})"
    return f"({variable}) WHERE ${parameter} IN labels({variable})"


def edge_pattern(left: str, right: str, labels: Sequence[str] | None, parameter: str, inverse: bool = False) -> str:
    """Return `(left)-[r:a|b]->(right)`, with every type when `labels` is None.

    Labels that cannot be written stand in a condition on `$parameter`, which must then hold the list of labels.
    """
    written, condition = "", ""
    if labels is not None:
        if len(labels) <= MAX_WRITTEN and all(map(writable, labels)):
            written = ":" + "|".join(map(quote, labels))
        else:
            condition = f" WHERE type(r) IN ${parameter}"
    arrow = f"<-[r{written}]-" if inverse else f"-[r{written}]->"
    return f"({left}){arrow}({right}){condition}"


def union_all(parts: Iterable[str]) -> str:
    """Join queries with the same columns into one."""
    return "\nUNION ALL\n".join(parts)


EXACT_SIZE = 10_000_000
"""Nodes and edges together, up to which everything is counted."""

MANY_NAMES = 200
"""Labels or relation types that get a query each, so that the number of queries has a bound."""

FIRST = 1_000_000
"""Nodes, and edges, that stand for all of a large graph with many labels or relation types."""

SAMPLE = 100
"""Nodes looked at for each label, and edges for each relation type, in a larger graph."""

_NODE_PAGE = 10_000
"""Nodes in a page of all nodes."""

LISTING_S = 10.0
"""How long a server may list all property names; some look at the whole graph for it, and a sample does as well."""
EXAMPLE_SAMPLE = 25
"""Nodes of each label, and edges of each relation type, whose values are looked at."""

_EXAMPLES, _EXAMPLE_LENGTH = 3, 60
"""Values shown of a property, and characters in one."""

_TOGETHER = 50
"""Labels or relation types per round trip."""

_DATE = re.compile(r"-?\d{4,}-\d\d-\d\d")

_Writer = Callable[[str, int], str]


@dataclass(frozen=True)
class Records:
    """Result of a server: column names, rows of plain values and of `ServerNode`, `ServerEdge`, `ServerPath`."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    truncated: bool = False


@dataclass(frozen=True)
class Catalogue:
    """How large a graph is, and which labels and relation types the server knows; some may have nothing left."""

    nodes: int
    edges: int
    labels: tuple[str, ...]
    relations: tuple[str, ...]


@dataclass(frozen=True)
class PropertyNames:
    """Property names by label and by relation type."""

    of_labels: Mapping[str, frozenset[str]]
    of_relations: Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class ServerNode:
    """A node as the server sees it; `element` is the server's own id."""

    element: str
    labels: tuple[str, ...]
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class ServerEdge:
    """A relationship as the server sees it, between the elements `start` and `end`."""

    element: str
    type: str
    start: str
    end: str
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class ServerPath:
    """A path as the server sees it."""

    nodes: tuple[ServerNode, ...]
    edges: tuple[ServerEdge, ...]


def records_in(value: Any) -> Iterator[ServerNode | ServerEdge]:
    """Find every node and edge inside an answer."""
    if isinstance(value, ServerNode | ServerEdge):
        yield value
    elif isinstance(value, ServerPath):
        yield from value.nodes
        yield from value.edges
    elif isinstance(value, Mapping):
        yield from records_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from records_in(item)


class CypherServer(ABC):
    """Sends query text to one server. Errors come out as those of `byokg.errors`; nothing is tried twice.

    Values in rows are None, bool, int, float, str, lists and mappings of them, and the `Server…` records. Dates and
    times are ISO 8601 strings.
    """

    name: str
    """Which server and database this is, without credentials."""
    identity: str
    """The function that gives the id of an element."""
    anchor: str
    """The clause that binds `n` to the nodes whose ids are in `$ids`, by look-up and not by a scan."""
    samples_at_once = False
    """All relations of a graph that is not large may be sampled by one query."""

    @abstractmethod
    def ask(self, text: str, parameters: Mapping[str, Any], timeout_s: float, max_rows: int | None = None) -> Records:
        """Run one query."""

    @abstractmethod
    def close(self) -> None:
        """Let go of connections."""

    def check_plan(self, text: str, parameters: Mapping[str, Any], timeout_s: float) -> None:  # noqa: B027
        """Check by the planner, if trusted, that the query only reads. Raises `QueryRefused`."""

    def finds_shortest_paths(self, timeout_s: float) -> bool:
        """True if the server's `allShortestPaths` is known to equal a step-by-step search."""
        return False

    def finds_reached(self, timeout_s: float) -> bool:
        """True if the server visits each node once on paths of any length."""
        return False

    def node_pages(self, columns: Sequence[str], timeout_s: float) -> Iterator[Sequence[Sequence[Any]]]:
        """Yield some expressions of each node `n`, in the order of the server's ids: one query for each page."""
        identity = f"{self.identity}(n)"
        returned = ", ".join(f"{column} AS c{place}" for place, column in enumerate(columns))
        page = f"WITH n ORDER BY {identity} LIMIT {_NODE_PAGE} RETURN {identity} AS id"
        after = ""
        while rows := self.ask(
            f"MATCH (n) WHERE {identity} > $after {page}, {returned}", {"after": after}, timeout_s
        ).rows:
            yield [row[1:] for row in rows]
            after = max(row[0] for row in rows)

    def edge_pages(self, columns: Sequence[str], timeout_s: float) -> Iterator[Sequence[Sequence[Any]]]:
        """Yield some expressions of each edge `r` from `a` to `b`. Raises `QueryTooLarge` if there are too many."""
        raise QueryTooLarge(f"{self.name} gives edges by their nodes only")

    def catalogue(self, timeout_s: float) -> Catalogue:
        """Return the labels and relation types with their counts."""
        return Catalogue(*self.sizes(timeout_s), tuple(self.labels(timeout_s)), tuple(self.relations(timeout_s)))

    def labels(self, timeout_s: float) -> list[str]:
        """List the labels, by a scan of all nodes if the server keeps no list."""
        text = "MATCH (n) UNWIND labels(n) AS label RETURN DISTINCT label"
        return [row[0] for row in self.ask(text, {}, timeout_s).rows]

    def relations(self, timeout_s: float) -> list[str]:
        """List the relation types, likewise."""
        return [row[0] for row in self.ask("MATCH ()-[r]->() RETURN DISTINCT type(r) AS type", {}, timeout_s).rows]

    def sizes(self, timeout_s: float) -> tuple[int, int]:
        """Count nodes and edges."""
        nodes = self.ask("MATCH (n) RETURN count(n) AS nodes", {}, timeout_s).rows
        edges = self.ask("MATCH ()-[r]->() RETURN count(r) AS edges", {}, timeout_s).rows
        return int(nodes[0][0]), int(edges[0][0])

    def property_names(self, timeout_s: float) -> PropertyNames | None:
        """List all property names; None if the server keeps no list."""
        return None


def order_types(labels: Iterable[str], counts: Mapping[str, int]) -> list[str]:
    """Return the labels of a node, the most specific first: the rarest one, then by name."""
    return sorted(labels, key=lambda label: (counts.get(label, 0), label))


def read_schema(
    server: CypherServer,
    timeout_s: float,
    exact_size: int = EXACT_SIZE,
    catalogue: Catalogue | None = None,
    reading: Callable[[str], None] = lambda what: None,
) -> Schema:
    """Read node types, relations and properties.

    A node with several labels counts for each of them, so counts may add up to more than there are nodes, and all of
    them stand at the ends of its relations. Nodes without a label stand under ``""``.

    Args:
        server: executes the queries.
        timeout_s: for each round trip.
        exact_size: largest number of nodes and edges for a full scan.
        catalogue: the server's catalogue, if it was read already.
        reading: called with the part that is read next.

    Raises:
        QueryTimeout: even a sample took too long.
        StoreUnavailable: the server cannot be reached.
    """
    catalogue = catalogue or server.catalogue(timeout_s)
    findings: _Findings | None = None
    if catalogue.nodes + catalogue.edges <= exact_size:
        reading(f"{catalogue.nodes:,} nodes and {catalogue.edges:,} edges")
        with suppress(QueryFailed):  # it may be too much after all
            findings = _everything(server, timeout_s)
    if findings is None:
        reading(f"samples of {len(catalogue.labels):,} labels and {len(catalogue.relations):,} relation types")
        findings = _sample(server, catalogue, timeout_s)
    reading("values of properties")
    _look_at_values(server, findings, timeout_s)
    return findings.schema()


@dataclass
class _Findings:
    """Collected counts and samples."""

    types: Counter[str] = field(default_factory=Counter)
    type_properties: dict[str, set[str]] = field(default_factory=dict)
    relations: Counter[str] = field(default_factory=Counter)
    relation_properties: dict[str, set[str]] = field(default_factory=dict)
    ends: list[tuple[str, Sequence[str], Sequence[str], int]] = field(default_factory=list)
    type_values: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    relation_values: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    sampled: str = ""

    def schema(self) -> Schema:
        """Put it into order: types by count, relations by name."""
        domains: dict[str, Counter[str]] = {}
        ranges: dict[str, Counter[str]] = {}
        for relation, head, tail, count in self.ends:
            for ends, labels in ((domains, head), (ranges, tail)):
                counts = ends.setdefault(relation, Counter())
                for label in labels or [""]:
                    counts[label] += count
        types = _by_count(+self.types)
        details = {label: _details(self.type_properties.get(label, ()), self.type_values.get(label)) for label in types}
        return Schema(
            node_types={label: self.types[label] for label in types},
            relations=tuple(
                RelationSchema(
                    relation,
                    self.relations[relation],
                    tuple(_by_count(domains.get(relation, Counter()))),
                    tuple(_by_count(ranges.get(relation, Counter()))),
                    tuple(sorted(self.relation_properties.get(relation, ()))),
                    _details(self.relation_properties.get(relation, ()), self.relation_values.get(relation)),
                )
                for relation in sorted(+self.relations)
            ),
            node_properties={
                label: tuple(sorted(self.type_properties[label])) for label in types if self.type_properties.get(label)
            },
            node_property_details={label: found for label, found in details.items() if found},
            sampled=self.sampled,
        )


def _details(names: Iterable[str], values: Mapping[str, Sequence[Any]] | None) -> tuple[PropertySchema, ...]:
    """Describe each property by its sampled values; empty if none was sampled."""
    return tuple(property_schema(name, values.get(name, ())) for name in sorted(names)) if values else ()


def property_schema(name: str, values: Sequence[Any]) -> PropertySchema:
    """Return the kind of a property's values, with a few short examples."""
    kinds = {_kind(value) for value in values}
    if kinds == {"int", "float"}:
        kinds = {"float"}
    shown: dict[Value, None] = {
        value: None for value in values if isinstance(value, str | int | float) and len(str(value)) <= _EXAMPLE_LENGTH
    }
    return PropertySchema(name, kinds.pop() if len(kinds) == 1 else "", tuple(shown)[:_EXAMPLES])


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "int" if isinstance(value, int) else "float"
    return "date" if isinstance(value, str) and _DATE.fullmatch(value) else "string"


def _by_count(counts: Mapping[str, int]) -> list[str]:
    return sorted(counts, key=lambda name: (-counts[name], name))


def _everything(server: CypherServer, timeout_s: float, first: int | None = None) -> _Findings:
    """Look at all nodes and edges, or the `first` of them, grouped by the server."""
    findings = _Findings()
    nodes, edges = ("", "") if first is None else (f" WITH n LIMIT {first}", f" WITH a, r, b LIMIT {first}")
    text = f"MATCH (n){nodes} RETURN labels(n) AS labels, keys(n) AS keys, count(*) AS count"
    for labels, keys, count in server.ask(text, {}, timeout_s).rows:
        for label in labels or [""]:
            findings.types[label] += count
            findings.type_properties.setdefault(label, set()).update(keys)
    text = (
        f"MATCH (a)-[r]->(b){edges} "
        "RETURN type(r) AS type, labels(a) AS head, labels(b) AS tail, keys(r) AS keys, count(*) AS count"
    )
    for relation, head, tail, keys, count in server.ask(text, {}, timeout_s).rows:
        findings.relations[relation] += count
        findings.relation_properties.setdefault(relation, set()).update(keys)
        findings.ends.append((relation, head, tail, count))
    return findings


def _sample(server: CypherServer, catalogue: Catalogue, timeout_s: float) -> _Findings:
    """Count by label and by relation type, and look at a few of each."""
    if max(len(catalogue.labels), len(catalogue.relations)) > MANY_NAMES:
        findings = _everything(server, timeout_s, FIRST)
        findings.sampled = f"the first {FIRST:,} nodes and edges: all counts are theirs, and anything may be missing"
        return findings
    findings = _Findings()
    findings.sampled = (
        f"{SAMPLE} nodes of each label and {SAMPLE} edges of each relation: types at the ends of a relation, and "
        "properties, may be missing"
    )
    labels, relations = sorted(catalogue.labels), sorted(catalogue.relations)
    seen: Counter[str] = Counter()
    names = _known_names(server, timeout_s)
    if names is None:
        for label, keys, count in _ask_each(
            server, labels, _of_nodes("keys(n) AS keys, count(*) AS count", SAMPLE), timeout_s
        ):
            seen[label] += count
            findings.type_properties.setdefault(label, set()).update(keys)
    else:
        findings.type_properties = {label: set(keys) for label, keys in names.of_labels.items()}
        findings.relation_properties = {relation: set(keys) for relation, keys in names.of_relations.items()}
    findings.types = _counts(server, labels, _of_nodes("count(n) AS count"), timeout_s, seen)
    bare = catalogue.nodes - findings.types.total()
    if bare > 0:
        findings.types[""] = bare
    seen = Counter()
    text = "labels(a) AS head, labels(b) AS tail, keys(r) AS keys, count(*) AS count"
    for relation, head, tail, keys, count in _ask_each(server, relations, _of_edges(text, SAMPLE, "a", "b"), timeout_s):
        seen[relation] += count
        findings.relation_properties.setdefault(relation, set()).update(keys)
        findings.ends.append((relation, head, tail, count))
    findings.relations = _counts(server, relations, _of_edges("count(r) AS count"), timeout_s, seen)
    return findings


def _look_at_values(server: CypherServer, findings: _Findings, timeout_s: float) -> None:
    """Sample values of a few nodes and edges; on a failure kinds and examples stay unknown."""
    labels = _by_count({label: findings.types[label] for label, names in findings.type_properties.items() if names})
    labels = sorted([label for label in labels if label][:MANY_NAMES])
    described = [relation for relation, names in findings.relation_properties.items() if names]
    relations = sorted(_by_count({each: findings.relations[each] for each in described})[:MANY_NAMES])
    with suppress(QueryFailed):
        nodes = _of_nodes("properties(n) AS held", EXAMPLE_SAMPLE)
        _add_values(findings.type_values, _ask_each(server, labels, nodes, timeout_s))
        edges = _of_edges("properties(r) AS held", EXAMPLE_SAMPLE)
        _add_values(findings.relation_values, _ask_each(server, relations, edges, timeout_s))
        if findings.type_properties.get(""):
            text = f"MATCH (n) WHERE size(labels(n)) = 0 WITH n LIMIT {EXAMPLE_SAMPLE} RETURN properties(n) AS held"
            _add_values(findings.type_values, (("", held) for (held,) in server.ask(text, {}, timeout_s).rows))


def _add_values(found: dict[str, dict[str, list[Any]]], rows: Iterable[Sequence[Any]]) -> None:
    """Group the properties of nodes or edges by their owner."""
    for owner, held in rows:
        values = found.setdefault(owner, {})
        for key, value in sorted(held.items()):
            values.setdefault(key, []).append(value)


def _of_nodes(returned: str, limit: int | None = None) -> _Writer:
    """Return a query builder for the nodes `n` of a label, or for some of them."""
    some = "" if limit is None else f" WITH n LIMIT {limit}"
    return lambda label, number: (
        f"MATCH {node_pattern('n', label, f'name{number}')}{some} RETURN $name{number} AS name, {returned}"
    )


def _of_edges(returned: str, limit: int | None = None, head: str = "", tail: str = "") -> _Writer:
    """Return a query builder for the edges `r` of a relation type, or for some of them; ends may have names."""
    some = "" if limit is None else f" WITH {', '.join(filter(None, (head, 'r', tail)))} LIMIT {limit}"
    return lambda relation, number: (
        f"MATCH {edge_pattern(head, tail, [relation], f'list{number}')}{some} RETURN $name{number} AS name, {returned}"
    )


def _known_names(server: CypherServer, timeout_s: float) -> PropertyNames | None:
    try:
        return server.property_names(min(timeout_s, LISTING_S))
    except QueryFailed:
        return None  # a list of everything is welcome, but not needed


def _counts(
    server: CypherServer, names: Sequence[str], write: _Writer, timeout_s: float, seen: Counter[str]
) -> Counter[str]:
    """Count each name; if the server is too slow for that, sampled names count as present."""
    try:
        return Counter(dict(map(tuple, _ask_each(server, names, write, timeout_s))))
    except QueryFailed:
        return seen


def _ask_each(server: CypherServer, names: Sequence[str], write: _Writer, timeout_s: float) -> Iterator[Sequence[Any]]:
    """Ask one question about many names, several names to a round trip.

    `write` gets a name and its number n, and may use the parameters `name<n>`, and `list<n>` with the name in a list.
    """
    for start in range(0, len(names), _TOGETHER):
        group = names[start : start + _TOGETHER]
        parameters: dict[str, Any] = {f"name{number}": name for number, name in enumerate(group)}
        parameters |= {f"list{number}": [name] for number, name in enumerate(group)}
        text = union_all(write(name, number) for number, name in enumerate(group))
        yield from server.ask(text, parameters, timeout_s).rows


def _arrow(direction: Direction, steps: str) -> str:
    return {Direction.OUT: f"-{steps}->", Direction.IN: f"<-{steps}-", Direction.BOTH: f"-{steps}-"}[direction]


def shortest_paths(
    direction: Direction, labels: Sequence[str] | None, most: int | None, limit: int, entity: Callable[[str], str]
) -> str:
    """Write the query for all shortest paths, each a list of what `CypherStore` remembers of edges."""
    kinds = "" if labels is None else ":" + "|".join(map(quote, labels))
    steps = f"[{kinds}*{'' if most is None else f'..{most}'}]"
    arrow = _arrow(direction, steps)
    ends = ", ".join(f"elementId({end}), {entity(end)}" for end in ("startNode(r)", "endNode(r)"))
    return (
        "MATCH (a), (b) WHERE elementId(a) = $source AND elementId(b) = $target "
        f"MATCH path = allShortestPaths((a){arrow}(b)) "
        f"RETURN [r IN relationships(path) | [elementId(r), type(r), {ends}, properties(r)]] AS edges LIMIT {limit}"
    )


def reached_nodes(direction: Direction, labels: Sequence[str], limit: int, entity: str) -> str:
    """Write the query for the nodes that edges lead to from one; Neo4j meets each once, since they are distinct."""
    arrow = _arrow(direction, f"[:{'|'.join(map(quote, labels))}*]")
    return (
        f"MATCH (a) WHERE elementId(a) = $source MATCH (a){arrow}(b) "
        f"RETURN DISTINCT elementId(b), {entity} LIMIT {limit}"
    )
