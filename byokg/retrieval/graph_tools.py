"""Tools over one graph for a language model that explores it.

    tools = GraphTools(store)
    tools.call("bfs_query", {"seeds": ["Q42"], "max_hops": 1})

Whoever offers them to a model reads `GraphTools.tools`: names, descriptions, and argument models with a JSON Schema.
`langchain_tools` offers them to LangChain's chat models and agents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from byokg.errors import ByokgError, ConfigError, EntityNotFound, NameAmbiguous, RequestInvalid
from byokg.graph.bfsql import engine, pages
from byokg.graph.bfsql.engine import known_seeds
from byokg.graph.bfsql.order import Ranks
from byokg.graph.bfsql.pages import PagePosition as Place
from byokg.graph.bfsql.pages import fingerprint, read_cursor, write_cursor
from byokg.graph.bfsql.protocol import (
    BfsRequest,
    IntersectRequest,
    Json,
    NeighborsRequest,
    Strict,
    StrictBfsRequest,
    Texts,
    Way,
    clip,
    compact,
    fitting_items,
    full_edge,
    full_node,
    read_request,
    shown_schema,
    within,
)
from byokg.graph.cancellation import left_s
from byokg.graph.guard.guard import lint_query, strings_in
from byokg.graph.inverses import twin_relations
from byokg.graph.pathql.evaluate import paths
from byokg.graph.pathql.query import connecting
from byokg.graph.pathql.search import PathLimits
from byokg.graph.schema_text import Nearness, SchemaRenderer
from byokg.graph.store import Direction, GraphStore, QueryLimits, QueryStore, RelationSchema, Schema, as_json
from byokg.graph.value_indexes import nodes_holding
from byokg.index.embedders import StaticEmbedder
from byokg.linking.entities import EntityLinker
from byokg.linking.values import ValueLinker
from byokg.text.names import estimate_tokens
from byokg.types import Language, LinkedEntity, Mention, Node, of_any

if TYPE_CHECKING:
    from byokg.graph.guard.guard import LintedStore


class SchemaArguments(Strict):
    """Arguments of `describe_schema`."""

    question: str = ""


class SearchArguments(Strict):
    """Arguments of `search_entities`."""

    aliases = MappingProxyType({"name": "query", "text": "query", "node_types": "entity_types", "k": "limit"})

    query: str = Field(min_length=1)
    entity_types: Texts = ()
    limit: SkipJsonSchema[Annotated[int, Field(ge=1, le=50)]] = 10


class ValueArguments(Strict):
    """Arguments of `find_values`."""

    aliases = MappingProxyType(
        {"value": "query", "text": "query", "node_types": "entity_types", "property": "properties"}
    )

    query: str = Field(min_length=1)
    question: str = ""
    entity_types: Texts = ()
    properties: Texts = ()
    limit: SkipJsonSchema[Annotated[int, Field(ge=1, le=50)]] = 5


class EntityArguments(Strict):
    """Arguments of `describe_entity`."""

    aliases = NeighborsRequest.aliases

    id: str
    question: str = ""


class PathArguments(Strict):
    """Arguments of `shortest_paths`."""

    aliases = MappingProxyType({"source": "sources", "target": "targets", "seeds": "sources"})

    sources: Texts = Field(min_length=1, max_length=10)
    targets: Texts = Field(min_length=1, max_length=10)
    k: int = Field(default=3, ge=1, le=50)
    max_hops: SkipJsonSchema[Annotated[int, Field(ge=1, le=8)]] = 4
    predicates: Texts = ()
    direction: SkipJsonSchema[Way] = "both"


class PathQueryArguments(Strict):
    """Arguments of `path_query`."""

    query: str = Field(min_length=1)


class QueryArguments(Strict):
    """Arguments of `run_query`."""

    query: str = Field(min_length=1)
    language: SkipJsonSchema[Language | None] = None
    """Needed only if the graph takes several."""
    max_rows: SkipJsonSchema[Annotated[int, Field(ge=1, le=1000)]] = 100


BFS_DESCRIPTION = """\
Fetch the graph around nodes: all within max_hops edges of the seeds. Filters change what comes first and in full, not \
what is there; the rest is folded into counts with samples. {"seeds": ["P1"], "max_hops": 1, "edge_filter": \
{"predicates": ["AUTHORED"]}}"""
"""Source: "A BFS-based graph query language" (BFS-QL), "LLM Prompt Template", in other words."""

PATH_DESCRIPTION = """\
Find paths by pattern: PATHS [ALL | SHORTEST k] START ?x = <id> END ?y = <id> VIA step [MAX LENGTH n]. A step is ?p, \
<a>|^<b>, UNDIRECTED ?p, or { ?m <a> ?x , ?y }."""

_LIST: Json = {"type": "array"}

_PAGE: Json = {"nodes": _LIST, "edges": _LIST}

_TOOLS: Mapping[str, tuple[str, type[BaseModel], Json]] = MappingProxyType(
    {
        "describe_schema": (
            "List node types and predicates, the relevant first. Begin here.",
            SchemaArguments,
            {"predicates": _LIST},
        ),
        "search_entities": (
            "Find ids by name. Several nodes may share one: mind type and score.",
            SearchArguments,
            {"matches": _LIST},
        ),
        "bfs_query": (BFS_DESCRIPTION, BfsRequest, _PAGE),
        "neighbors": (
            "List all values of predicates of one node: the quickest way to an answer.",
            NeighborsRequest,
            {"values": _LIST},
        ),
        "describe_entity": (
            "Show one node: properties, and each predicate with count and first values.",
            EntityArguments,
            {"values": _LIST},
        ),
        "intersect_subgraphs": (
            "Fetch what nodes have in common: all within k edges of every seed.",
            IntersectRequest,
            _PAGE,
        ),
        "shortest_paths": ("Find the shortest paths from each source to each target.", PathArguments, {"paths": _LIST}),
    }
)
"""Description, arguments and result of each tool that any graph has; methods of `GraphTools` have their names."""

VALUES_DESCRIPTION = (
    "Find which properties hold a value (a code, surname, date, category) and nodes with it, also if it is misspelt."
)
_SHOWN_HOLDERS = 3
"""Nodes shown of each value."""

_NEAREST = 3
"""Nodes proposed for an id that is not in the graph."""
_CUTOFF = 0.7
"""Lowest likeness of a name that `search_entities` returns; a model sees the scores, and chooses."""
_MOST_MATCHES, _MOST_BEFORE_TYPES = 50, 1000
"""Candidate nodes of a name; a search restricted to types needs more."""
_FRAME_TOKENS = 60
"""Tokens of a result beside its items."""
_TIMEOUT_S = 10.0
_MOST_PATHS = 200
_FEW_VALUES = 3
"""Values of each predicate that `describe_entity` shows."""
_HELD = 64
"""Questions whose relevant predicates are remembered."""
_LOOKED_UP = 5
"""Texts of a query without rows that are looked up among the names."""


@dataclass(frozen=True)
class Tool:
    """One tool: its description for a caller, and its implementation."""

    name: str
    description: str
    arguments: type[BaseModel]
    properties: Json
    """JSON Schemas of the fields that a result always has, unless there is no such node."""
    run: Callable[[Any], Json]
    """Takes an instance of `arguments`."""

    @property
    def input_schema(self) -> Json:
        """Return the JSON Schema of the arguments, as a language model is shown it."""
        return shown_schema(self.arguments)

    @property
    def output_schema(self) -> Json:
        """Return the JSON Schema of results."""
        return {"type": "object", "properties": self.properties}


@dataclass(eq=False)
class GraphTools:
    """Tools over one graph; each takes its arguments as a model, and returns JSON values.

    Args:
        store: the graph.
        entities: links names to nodes; None indexes them on first use.
        schema: ranks predicates for a question; None makes one with the shipped embedder.
        queries: engines of the same graph; without any there is no `run_query`.
        budget_tokens: size of one result at most, as estimated.
        page_tokens: size of a page of `bfs_query`, `intersect_subgraphs`, `neighbors` and `describe_entity`, unless a
            request has another one.
        strict: `bfs_query` takes the article's request alone, and responds in the article's form.
        path_queries: add `path_query`, which takes queries in the language of docs/path-queries.md.

    Raises:
        ConfigError: the budget is too small for a result.
    """

    store: GraphStore
    entities: EntityLinker | None = None
    schema: SchemaRenderer | None = None
    queries: Sequence[QueryStore] = ()
    budget_tokens: int = 4000
    page_tokens: int = 1500
    path_queries: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        if self.budget_tokens < 200:
            raise ConfigError(f"budget_tokens={self.budget_tokens} leaves no room for a result; use 200 or more")
        self._entities = self.entities or EntityLinker(self.store)
        self._queries = {each.language: each for each in self.queries}
        self._page = min(self.page_tokens, self.budget_tokens)
        self._room = self.budget_tokens - _FRAME_TOKENS
        self.relevance = lru_cache(_HELD)(self._ranked)
        """Ranks predicates for a question, as `engine.bfs_query` wants it."""

    @cached_property
    def tools(self) -> dict[str, Tool]:
        """Return the tools by name; `run_query` only where something runs queries."""
        described = dict(_TOOLS)
        if self.strict:
            described["bfs_query"] = (BFS_DESCRIPTION, StrictBfsRequest, _PAGE)
        if self.store.remote or any(self.store.schema().node_properties.values()):
            described["find_values"] = (VALUES_DESCRIPTION, ValueArguments, {"matches": _LIST})
        if self.path_queries:
            described["path_query"] = (PATH_DESCRIPTION, PathQueryArguments, {"paths": _LIST})
        if self._queries:
            languages = " or ".join({"cypher": "openCypher", "sparql": "SPARQL"}[each] for each in self._queries)
            run = f"Run one reading {languages} query: to count, sort, compute."
            described["run_query"] = (run, QueryArguments, {"rows": _LIST})
        return {
            name: Tool(name, text, kind, result, getattr(self, name))
            for name, (text, kind, result) in described.items()
        }

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> Json:
        """Run a tool by name.

        Args:
            name: of the tool.
            arguments: JSON text, or its value.

        Raises:
            RequestInvalid: there is no such tool, or the arguments do not fit it.
            GraphError: errors of the tool.
        """
        if name not in self.tools:
            raise RequestInvalid([f"no tool {name!r}; there are {', '.join(self.tools)}"])
        tool = self.tools[name]
        return tool.run(read_request(tool.arguments, arguments))

    def nearest(self, text: str) -> list[Node]:
        """Return a few nodes with names similar to a text, the most similar first: alternatives to an unknown id."""
        return self.store.nodes([one.id for one in self._search.candidates(Mention(text))[:_NEAREST]])

    def propose(self, missing: EntityNotFound) -> EntityNotFound:
        """Return the error about an unknown id with the ids and names of the nearest nodes."""
        if isinstance(missing, NameAmbiguous):
            return missing
        near = [
            repr(node.id) if node.name in ("", node.id) else f"{node.id!r} ({node.name})"
            for node in self.nearest(missing.entity) or self.nearest(re.split("[/#]", missing.entity)[-1])
        ]
        return EntityNotFound(missing.entity, missing.store, near)

    # The tools

    def describe_schema(self, arguments: SchemaArguments) -> Json:
        """Return node types and predicates, the most relevant first, as many as fit."""
        schema = self.store.schema()
        return _schema_page(schema, self._schema.render(arguments.question, self.budget_tokens).relations, self._room)

    def search_entities(self, arguments: SearchArguments) -> Json:
        """Return nodes whose names are like a text, the most similar first; of equal ones that of more edges."""
        search = self._wide_search if arguments.entity_types else self._search
        found = search.candidates(Mention(arguments.query))
        nodes = self.store.nodes([one.id for one in found])
        wanted = frozenset(arguments.entity_types)
        pairs = zip(found, nodes, strict=True)
        matches = [_match(one, node) for one, node in pairs if not wanted or of_any(node, wanted)]
        shown = within(matches[: arguments.limit], self._room - estimate_tokens(arguments.query))
        result: Json = {"query": arguments.query, "matches": shown}
        if len(shown) < len(matches):
            result["left_out"] = len(matches) - len(shown)
        return result

    def find_values(self, arguments: ValueArguments) -> Json:
        """Return property values that equal a text or resemble it, the best first, each with a few of its nodes."""
        found = self._values.link_text(
            arguments.query,
            arguments.question,
            arguments.limit,
            types=arguments.entity_types or None,
            properties=arguments.properties or None,
        )
        matches = []
        for one in found:
            place = {"relation" if one.edge else "entity_type": one.type, "property": one.property, "value": one.value}
            match: Json = {**place, "score": round(one.score, 3), "count": one.count}
            if not one.edge:
                numbers = nodes_holding(self.store, one.type, one.property, one.value, _SHOWN_HOLDERS)
                held = self.store.nodes(self.store.ids(numbers))
                match["nodes"] = [{"id": node.id, "name": node.name} for node in held]
            matches.append(match)
        shown = within(matches, self._room - estimate_tokens(arguments.query))
        result: Json = {"query": arguments.query, "matches": shown}
        if len(shown) < len(matches):
            result["left_out"] = len(matches) - len(shown)
        return result

    @cached_property
    def _values(self) -> ValueLinker:
        return ValueLinker(self.store, edges=True)

    def bfs_query(self, arguments: BfsRequest | StrictBfsRequest) -> Json:
        """Return the subgraph around some seeds (see `bfsql.engine`).

        Raises:
            RequestInvalid: the cursor is of another request; or a strict answer is larger than a result may be.
        """
        if isinstance(arguments, StrictBfsRequest):
            request = BfsRequest.model_validate(arguments.model_dump(exclude_none=True))
            whole = engine.bfs_query(self.store, request, self.nearest, strict=True)
            if (tokens := estimate_tokens(compact(whole))) > self.budget_tokens:
                raise RequestInvalid(
                    [f"max_hops: the subgraph takes {tokens:,} tokens of {self.budget_tokens:,}; ask for less"]
                )
            return whole
        return engine.bfs_query(self.store, self._bounded(arguments), self.nearest, self.relevance)

    def neighbors(self, arguments: NeighborsRequest) -> Json:
        """Return all values of some predicates of a node, by predicate and direction, page by page.

        In both directions, those of their inverse twins are included, which store the same facts the other way.

        Raises:
            RequestInvalid: the cursor is of another request.
        """
        if arguments.direction == "both" and arguments.predicates:
            twins = twin_relations(self.store)
            asked = [*arguments.predicates, *(twins.get(label, label) for label in arguments.predicates)]
            arguments = arguments.model_copy(update={"predicates": tuple(dict.fromkeys(asked))})
        return self._show_values(arguments, None)

    def describe_entity(self, arguments: EntityArguments) -> Json:
        """Return a node's properties, and each of its predicates with a count and the first values."""
        return self._show_values(NeighborsRequest(id=arguments.id, question=arguments.question), _FEW_VALUES)

    def _show_values(self, arguments: NeighborsRequest, few: int | None) -> Json:
        known, errors = known_seeds(self.store, [arguments.id], self.nearest)
        if not known:
            return {"id": arguments.id, "values": [], "errors": errors}
        (node,) = self.store.nodes(known)
        budget: int = self._bounded(arguments).budget_tokens
        result: Json = clip(full_node(node), budget // 2)
        labels = frozenset(self.store.relations)
        asked = tuple(label for label in arguments.predicates if label in labels)
        if asked != arguments.predicates:
            result["warnings"] = engine.unknown_names(
                "predicate", frozenset(arguments.predicates), self.store.relations
            )
        ranks = self.relevance(arguments.question) if arguments.question else None
        request = arguments.model_copy(update={"predicates": asked})
        found = [] if arguments.predicates and not asked else pages.groups(self.store, node.id, request, ranks)
        about = (node.id, asked, arguments.direction, arguments.question)
        mark = fingerprint(self.store, "values", few, *about, sum(count for *_, count in found))
        start = read_cursor(arguments.cursor, mark) if arguments.cursor else Place()
        room = budget - _FRAME_TOKENS - estimate_tokens(compact(result))
        shown: list[Json] = []
        at, within_group = start.nodes, start.edges
        while at < len(found) and room > 0:
            group = pages.values(self.store, node.id, found[at], few, ranks)
            frame = estimate_tokens(compact(group.as_json(0, 0)))
            left = group.values[within_group:]
            count = fitting_items(left, room - frame) if left else 0
            item = group.as_json(within_group, within_group + count)
            if count == 1:
                item["values"] = [clip(left[0], max(room - frame, budget // 2))]
            room -= estimate_tokens(compact(item)) + 1
            if room < 0 and shown:
                break
            shown.append(item)
            within_group += count
            if few is None and within_group < len(group.values):
                break
            at, within_group = at + 1, 0
        result["values"] = shown
        if at < len(found):
            left_over = sum(count for *_, count in found[at:]) - within_group
            result["truncated"] = {
                "predicates_left": len(found) - at,
                "values_left": left_over,
                "cursor": write_cursor(Place(at, within_group), mark),
            }
        return result

    def intersect_subgraphs(self, arguments: IntersectRequest) -> Json:
        """Return the nodes near every seed (see `bfsql.engine`). Raises `RequestInvalid` for a wrong cursor."""
        return engine.intersect_subgraphs(self.store, self._bounded(arguments), self.nearest, self.relevance)

    def shortest_paths(self, arguments: PathArguments) -> Json:
        """Return the shortest paths between nodes, edges in stored orientation.

        Raises:
            RelationNotFound: a predicate is not in the graph.
        """
        sources, errors = known_seeds(self.store, arguments.sources, self.nearest)
        targets, more = known_seeds(self.store, arguments.targets, self.nearest)
        query = connecting(
            sources,
            targets,
            arguments.k,
            arguments.max_hops,
            arguments.predicates or None,
            Direction(arguments.direction),
        )
        found = paths(self.store, query, PathLimits(left_s(_TIMEOUT_S))) if sources and targets else ()
        pairs: dict[tuple[str, str], list[Json]] = {(one, other): [] for one in sources for other in targets}
        for path in found:
            edges = [
                full_edge(each.head, each.relation, each.tail, each.properties, each.undirected)
                for each in path.path.triples
            ]
            pairs[path.start, path.end].append({"nodes": list(path.nodes), "edges": edges})
        connected = [{"source": one, "target": other, **path} for (one, other), each in pairs.items() for path in each]
        apart = [{"source": one, "target": other} for (one, other), each in pairs.items() if not each]
        said: Json = {"unconnected": within(apart, self._room // 3)}
        if errors or more:
            said["errors"] = within(errors + more, self._room // 3)
        shown = within(connected, self._room - estimate_tokens(compact(said)))
        left_out = {"paths": len(connected) - len(shown), "unconnected": len(apart) - len(said["unconnected"])}
        if any(left_out.values()):
            said["left_out"] = left_out
        return {"paths": shown, "truncated": "left_out" in said or bool(found and found.truncated), **said}

    def path_query(self, arguments: PathQueryArguments) -> Json:
        """Return the paths that a path query finds, each with the edges of the graph that it walks.

        Raises:
            PathQueryInvalid: the text is no path query.
            EntityNotFound: a start or end is not in the graph.
            RelationNotFound: a predicate is not in the graph.
        """
        try:
            found = paths(self.store, arguments.query, PathLimits(left_s(_TIMEOUT_S), _MOST_PATHS))
        except EntityNotFound as error:
            raise self.propose(error) from None
        listed = found.as_json()["paths"]
        shown = within(listed, self._room)
        left_out = len(listed) - len(shown)
        return {
            "paths": shown,
            "truncated": found.truncated or left_out > 0,
            **({"left_out": left_out} if left_out else {}),
        }

    def run_query(self, arguments: QueryArguments) -> Json:
        """Return the rows of one guarded query.

        Raises:
            RequestInvalid: the graph does not take the language.
            QueryFailed: the query was refused, or gave no answer.
        """
        language = arguments.language or next(iter(self._queries), None)
        if language is None or language not in self._queries:
            taken = f"it takes {', '.join(self._queries)}" if self._queries else "it takes no queries; use bfs_query"
            raise RequestInvalid([f"language: the graph does not take {language or 'queries'}; {taken}"])
        queryable = self._queries[language]
        limits = QueryLimits(left_s(_TIMEOUT_S), arguments.max_rows)
        rows = queryable.run(arguments.query, limits=limits)
        result = as_json(rows)
        notes = _notes(self, queryable, arguments.query, empty=not rows.rows)
        shown = within(result["rows"], self._room - estimate_tokens(compact(notes)))
        result["truncated"] = rows.truncated or shown != result["rows"]
        if len(shown) < len(rows):
            result["left_out"] = len(rows) - len(shown)
        result["rows"] = shown
        if notes:
            result["notes"] = notes
        return result

    # Inside

    @cached_property
    def _schema(self) -> SchemaRenderer:
        return self.schema or SchemaRenderer(self.store.schema, StaticEmbedder(), near=Nearness(self.store))

    def _ranked(self, question: str) -> Ranks:
        """Return for each relation of the store its place by relevance to a question."""
        place = {name: at for at, name in enumerate(self._schema.ranked(question))}
        return np.array([place.get(name, len(place)) for name in self.store.relations], np.int64)

    @cached_property
    def _search(self) -> EntityLinker:
        """A search with more, and less similar, results than the linking of mentions."""
        return self._searching(_MOST_MATCHES)

    @cached_property
    def _wide_search(self) -> EntityLinker:
        return self._searching(_MOST_BEFORE_TYPES)

    def _searching(self, most: int) -> EntityLinker:
        return EntityLinker(self.store, top_k=most, cutoff=_CUTOFF, extend=True, known_names=self._entities.names)

    def _bounded(self, request: Any) -> Any:
        """Hold a request to the size of one result; it may ask for less than that, and more than a page."""
        return request.model_copy(
            update={"budget_tokens": min(request.budget_tokens or self._page, self.budget_tokens)}
        )


def _notes(tools: GraphTools, queryable: QueryStore, query: str, empty: bool) -> list[str]:
    """Return notes on unknown names in a query, with the nearest ones; for one without rows, on texts as well."""
    findings = lint_query(cast("LintedStore", queryable), query)
    notes = [f"line {found.line}, column {found.column}: {found.message}" for found in findings]
    for text in strings_in(queryable.language, query)[:_LOOKED_UP] if empty else ():
        names = [node.name for node in tools.nearest(text)]
        if names and text not in names:
            notes.append(f"no node is called {text!r}; nearest: {', '.join(map(repr, names))}")
    return notes


def _schema_page(schema: Schema, relations: Sequence[str], room: int) -> Json:
    """Return node types by their number, and some predicates, as many as fit into a number of tokens."""
    named = schema.relations_by_name
    counts = sorted(schema.node_types.items(), key=lambda item: (-item[1], item[0]))
    types = [
        {"entity_type": name, "count": count, "properties": list(schema.node_properties.get(name, ()))}
        for name, count in counts
        if name
    ]
    types_shown = within(types, room // 3)
    predicates = within([_predicate(named[name]) for name in relations], room // 3 * 2)
    result: Json = {"entity_types": types_shown, "predicates": predicates}
    left_out = {"entity_types": len(types) - len(types_shown), "predicates": len(schema.relations) - len(predicates)}
    if any(left_out.values()):
        result["left_out"] = left_out
    if schema.sampled:
        result["note"] = schema.sampled
    return result


def _predicate(relation: RelationSchema) -> Json:
    undirected = {} if not relation.undirected else {"undirected": relation.symmetric or relation.undirected}
    return {
        "predicate": relation.name,
        "count": relation.count,
        **undirected,
        "subject_types": [name for name in relation.domain if name],
        "object_types": [name for name in relation.range if name],
        "properties": list(relation.properties),
    }


def _match(found: LinkedEntity, node: Node) -> Json:
    return {
        "id": node.id,
        "entity_type": node.type,
        **({"entity_types": list(node.types)} if node.further_types else {}),
        "name": node.name,
        "score": round(found.score, 3),
        "method": found.method,
    }


def langchain_tools(tools: GraphTools) -> list[BaseTool]:
    """Return the tools for LangChain: each returns JSON, or a text that describes the error."""
    return [_langchain_tool(tool) for tool in tools.tools.values()]


def _langchain_tool(tool: Tool) -> BaseTool:
    def run(**arguments: Any) -> str:
        try:
            return compact(tool.run(read_request(tool.arguments, arguments)))
        except ByokgError as error:
            raise ToolException(str(error)) from error

    return StructuredTool.from_function(
        func=run,
        name=tool.name,
        description=tool.description,
        args_schema=tool.input_schema,
        infer_schema=False,
        handle_tool_error=True,
    )
