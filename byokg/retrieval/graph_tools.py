"""Tools over one graph for a language model that explores it.

    tools = GraphTools(store)
    tools.call("bfs_query", {"seeds": ["Q42"], "max_hops": 1})

Whoever offers them to a model reads `GraphTools.tools`: names, descriptions, and argument models with a JSON Schema.
`langchain_tools` offers them to LangChain's chat models and agents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field

from byokg.errors import ByokgError, ConfigError, RequestInvalid
from byokg.graph.bfsql import engine
from byokg.graph.bfsql.engine import known_seeds
from byokg.graph.bfsql.protocol import (
    NODE_FIELDS,
    BfsRequest,
    IntersectRequest,
    Json,
    Strict,
    clipped,
    compact,
    full_edge,
    full_node,
    problems,
    read_request,
    renamed,
    within,
)
from byokg.graph.pathql.budget import PathLimits
from byokg.graph.pathql.evaluate import paths
from byokg.graph.pathql.query import connecting
from byokg.graph.schema_text import SchemaRenderer
from byokg.graph.store import Direction, GraphStore, QueryLimits, QueryStore, RelationSchema, as_json
from byokg.linking.entities import EntityLinker
from byokg.text import estimate_tokens
from byokg.types import Language, LinkedEntity, Mention, Node


class SchemaArguments(Strict):
    """Arguments of `describe_schema`."""

    question: str = Field(
        default="", description="Shows the predicates that matter for it first; else the most frequent."
    )


class SearchArguments(Strict):
    """Arguments of `search_entities`."""

    query: str = Field(
        min_length=1, description="A name, an alias or an id, such as Marie Curie; no type, no question."
    )
    entity_types: tuple[str, ...] = Field(default=(), description="Nodes of these types only; empty for all.")
    limit: int = Field(default=10, ge=1, le=50, description="Nodes at most.")


class EntityArguments(Strict):
    """Arguments of `describe_entity`."""

    id: str = Field(description="Id of a node.")


class EntitiesArguments(Strict):
    """Arguments of `describe_entities`."""

    ids: tuple[str, ...] = Field(min_length=1, max_length=100, description="Ids of nodes.")


class PathArguments(Strict):
    """Arguments of `shortest_paths`."""

    sources: tuple[str, ...] = Field(min_length=1, max_length=10, description="Ids of nodes where paths start.")
    targets: tuple[str, ...] = Field(min_length=1, max_length=10, description="Ids of nodes where paths end.")
    k: int = Field(
        default=3, ge=1, le=50, description="Paths for each pair of a source and a target, the shortest first."
    )
    max_hops: int = Field(default=4, ge=1, le=8, description="Edges in a path at most.")
    predicates: tuple[str, ...] = Field(default=(), description="Walk edges of these predicates only; empty for all.")
    direction: Literal["both", "out", "in"] = Field(
        default="both", description="Walk edges both ways, from subject to object, or back."
    )


class PathQueryArguments(Strict):
    """Arguments of `path_query`."""

    query: str = Field(min_length=1, description="PATHS START ... END ... VIA ...")


class QueryArguments(Strict):
    """Arguments of `run_query`."""

    query: str = Field(min_length=1, description="One query that only reads.")
    language: Language | None = Field(default=None, description="Needed only where the graph takes several.")
    max_rows: int = Field(default=100, ge=1, le=1000, description="Rows at most.")


BFS_DESCRIPTION = """\
Fetch the part of the graph around one or more nodes. A breadth-first search from the seeds, up to max_hops edges \
away, decides which nodes and edges are in it: every edge between two nodes of it is there. Filters do not change \
that; they decide what is shown in full, with all properties and provenance, and what as a stub: a node's id and \
entity_type, an edge's subject, predicate and object. A stub is not missing: ask for it with describe_entity, or in \
another request. Without a filter everything is shown in full, which is long around well-connected nodes.

One node's publications, and what connects it to them: {"seeds": ["P1"], "max_hops": 1, "node_filter": \
{"entity_types": ["Publication"]}, "edge_filter": {"predicates": ["AUTHORED"]}}
What two nodes share: {"seeds": ["P1", "P2"], "max_hops": 2, "edge_filter": {"predicates": ["AUTHORED", "DISCUSSES"]}}

Seeds are ids: find them with search_entities. Spell types and predicates as describe_schema does. Begin with max_hops \
1; take 2 for what lies behind one other node, and 3 only with filters. Where the response has a truncated block, send \
the same request with its cursor for what follows."""
"""Source: "A BFS-based graph query language" (BFS-QL), "LLM Prompt Template", in other words."""

PATH_DESCRIPTION = """\
Find paths by a pattern. PATHS [ALL | ANY | SHORTEST k] START ?x = <id> END ?y = <id> VIA what one step is \
[MAX LENGTH n] [LIMIT n]. Leave out = <id> to let an end be any node, or give it a pattern: END ?y { ?y a <Film> }. \
VIA ?p steps along any predicate and tells which; VIA <knows>|^<likes> along these, ^ from object to subject; VIA \
UNDIRECTED ?p either way; VIA { ?m <starring> ?x , ?y . ?m <year> ?d FILTER(?d > 1990) } along matches of a pattern. \
Without ALL only shortest paths are found, but all of these.

How two people are connected by films: PATHS START ?x = <P1> END ?y = <P2> VIA { ?film <starring> ?x , ?y }"""

_TOOLS: Mapping[str, tuple[str, type[BaseModel]]] = MappingProxyType(
    {
        "describe_schema": (
            "List the node types and predicates of the graph, with counts and what they connect. Call this first.",
            SchemaArguments,
        ),
        "search_entities": (
            "Find the ids of nodes by name. Names are not unique: choose by entity_type and score.",
            SearchArguments,
        ),
        "bfs_query": (BFS_DESCRIPTION, BfsRequest),
        "describe_entity": (
            "Show all that the graph says of one node: its properties, and its edges counted by predicate.",
            EntityArguments,
        ),
        "describe_entities": (
            "Show the properties of several nodes, stubs of another response for instance.",
            EntitiesArguments,
        ),
        "intersect_subgraphs": (
            "Fetch what several nodes have in common: the nodes within k edges of every seed, and the edges among "
            "them. Filters and bounds are those of bfs_query.",
            IntersectRequest,
        ),
        "shortest_paths": (
            "Show how nodes are connected: the shortest paths from each source to each target.",
            PathArguments,
        ),
    }
)
"""Description and arguments of each tool that any graph has; methods of `GraphTools` have their names."""

_NEAREST = 3
"""Nodes proposed for an id that is not in the graph."""
_CUTOFF = 0.7
"""Lowest likeness of a name that `search_entities` returns; a model sees the scores, and chooses."""
_MOST_MATCHES, _MOST_BEFORE_TYPES = 50, 1000
"""Nodes that a name is looked for among; where only some types are wanted, more have to be."""
_FRAME_TOKENS = 60
"""What a result takes beside the items in it."""
_TIMEOUT_S = 10.0
_MOST_PATHS = 200


@dataclass(frozen=True)
class Tool:
    """One tool: what a caller has to know of it, and what does it."""

    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[[Any], Json]
    """Takes an instance of `arguments`."""


class GraphTools:
    """Eight tools over one graph; each takes its arguments as a model, and returns what JSON can hold.

    Args:
        store: the graph.
        entities: knows the names of its nodes; None indexes them when a name is first looked for.
        schema: ranks predicates for a question; None compares words.
        queries: what runs query text on the same graph; without any there is no `run_query`.
        budget_tokens: size of one result at most, as estimated; a request may ask for less.
        path_queries: add `path_query`, which takes queries in the language of docs/path-queries.md.

    Raises:
        ConfigError: the budget is too small for a result.
    """

    def __init__(
        self,
        store: GraphStore,
        entities: EntityLinker | None = None,
        schema: SchemaRenderer | None = None,
        queries: Sequence[QueryStore] = (),
        budget_tokens: int = 8000,
        path_queries: bool = False,
    ) -> None:
        if budget_tokens < 200:
            raise ConfigError(f"budget_tokens={budget_tokens} leaves no room for a result; use 200 or more")
        self._store = store
        self._entities = entities or EntityLinker(store)
        self._given_schema = schema
        self._queries = {each.language: each for each in queries}
        self._budget = budget_tokens
        self._room = budget_tokens - _FRAME_TOKENS
        self._path_queries = path_queries

    @cached_property
    def tools(self) -> dict[str, Tool]:
        """Return the tools by name; `run_query` only where something runs queries."""
        described = dict(_TOOLS)
        if self._path_queries:
            described["path_query"] = (PATH_DESCRIPTION, PathQueryArguments)
        if self._queries:
            languages = " or ".join({"cypher": "openCypher", "sparql": "SPARQL"}[each] for each in self._queries)
            run = f"Run one {languages} query that only reads, for what needs counting, sorting or arithmetic."
            described["run_query"] = (run, QueryArguments)
        return {name: Tool(name, text, kind, getattr(self, name)) for name, (text, kind) in described.items()}

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> Json:
        """Run a tool by name.

        Args:
            name: of the tool.
            arguments: JSON text, or what it holds.

        Raises:
            RequestInvalid: there is no such tool, or the arguments are not what it takes.
            GraphError: what the tool raises.
        """
        if name not in self.tools:
            raise RequestInvalid([f"no tool {name!r}; there are {', '.join(self.tools)}"])
        tool = self.tools[name]
        return tool.run(read_request(tool.arguments, arguments))

    def nearest(self, text: str) -> list[Node]:
        """Return a few nodes whose names are like a text, the most similar first: what an unknown id may have meant."""
        return self._store.nodes([one.id for one in self._search.candidates(Mention(text))[:_NEAREST]])

    # The tools

    def describe_schema(self, arguments: SchemaArguments) -> Json:
        """Return node types and predicates, the most relevant first, as many as fit."""
        schema = self._store.schema()
        shown = self._schema.render(arguments.question, self._budget).relations
        named = {relation.name: relation for relation in schema.relations}
        counts = sorted(schema.node_types.items(), key=lambda item: (-item[1], item[0]))
        types = [
            {"entity_type": name, "count": count, "properties": list(schema.node_properties.get(name, ()))}
            for name, count in counts
            if name
        ]
        types_shown = within(types, self._room // 3)
        predicates = within([_predicate(named[name]) for name in shown], self._room // 3 * 2)
        result: Json = {"entity_types": types_shown, "predicates": predicates}
        left_out = {
            "entity_types": len(types) - len(types_shown),
            "predicates": len(schema.relations) - len(predicates),
        }
        if any(left_out.values()):
            result["left_out"] = left_out
        if schema.sampled:
            result["note"] = schema.sampled
        return result

    def search_entities(self, arguments: SearchArguments) -> Json:
        """Return nodes whose names are like a text, the most similar first; of equal ones that of more edges."""
        search = self._wide_search if arguments.entity_types else self._search
        found = search.candidates(Mention(arguments.query))
        nodes = self._store.nodes([one.id for one in found])
        wanted = frozenset(arguments.entity_types)
        matches = [_match(one, node) for one, node in zip(found, nodes, strict=True)]
        matches = [match for match in matches if not wanted or match["entity_type"] in wanted]
        shown = within(matches[: arguments.limit], self._room - estimate_tokens(arguments.query))
        result: Json = {"query": arguments.query, "matches": shown}
        if len(shown) < len(matches):
            result["left_out"] = len(matches) - len(shown)
        return result

    def bfs_query(self, arguments: BfsRequest) -> Json:
        """Return the subgraph around some seeds (see `bfsql.engine`). Raises `RequestInvalid` for a wrong cursor."""
        return engine.bfs_query(self._store, self._bounded(arguments), self.nearest)

    def describe_entity(self, arguments: EntityArguments) -> Json:
        """Return a node's properties, and its edges counted by predicate and direction."""
        known, errors = known_seeds(self._store, [arguments.id], self.nearest)
        if not known:
            return {"errors": errors}
        (node,) = self._store.nodes(known)
        counts = self._store.relation_counts(self._store.numbers(known))
        groups = zip(counts.relation.tolist(), counts.inverse.tolist(), counts.count.tolist(), strict=True)
        edges = [
            {"predicate": self._store.relations[relation], "as": "object" if inverse else "subject", "count": count}
            for relation, inverse, count in groups
        ]
        edges.sort(key=lambda edge: (-int(edge["count"]), str(edge["predicate"]), str(edge["as"])))
        reserved = (*NODE_FIELDS, "edges", "left_out")
        result: Json = {
            "id": node.id,
            "entity_type": node.type,
            "name": node.name,
            **renamed(node.properties, reserved),
        }
        result = clipped(result, self._room * 3 // 4)
        result["edges"] = within(edges, self._room - estimate_tokens(compact(result)))
        if len(result["edges"]) < len(edges):
            result["left_out"] = len(edges) - len(result["edges"])
        return result

    def describe_entities(self, arguments: EntitiesArguments) -> Json:
        """Return the properties of several nodes, in the order asked; what is left out are the last ones."""
        known, errors = known_seeds(self._store, arguments.ids, self.nearest)
        entities = [full_node(node) for node in self._store.nodes(known)]
        told = within(errors, self._room // 2)
        shown = within(entities, self._room - estimate_tokens(compact(told)))
        result: Json = {"entities": shown}
        if len(shown) < len(entities):
            result["left_out"] = len(entities) - len(shown)
        if errors:
            result["errors"] = told
        if len(told) < len(errors):
            result["errors_left_out"] = len(errors) - len(told)
        return result

    def intersect_subgraphs(self, arguments: IntersectRequest) -> Json:
        """Return what is near every seed (see `bfsql.engine`). Raises `RequestInvalid` for a wrong cursor."""
        return engine.intersect_subgraphs(self._store, self._bounded(arguments), self.nearest)

    def shortest_paths(self, arguments: PathArguments) -> Json:
        """Return the shortest paths between nodes, edges in stored orientation.

        Raises:
            RelationNotFound: a predicate is not in the graph.
        """
        sources, errors = known_seeds(self._store, arguments.sources, self.nearest)
        targets, more = known_seeds(self._store, arguments.targets, self.nearest)
        query = connecting(
            sources,
            targets,
            arguments.k,
            arguments.max_hops,
            arguments.predicates or None,
            Direction(arguments.direction),
        )
        found = paths(self._store, query, PathLimits(_TIMEOUT_S)) if sources and targets else ()
        pairs: dict[tuple[str, str], list[Json]] = {(one, other): [] for one in sources for other in targets}
        for path in found:
            edges = [full_edge(each.head, each.relation, each.tail, each.properties) for each in path.path.triples]
            pairs[path.start, path.end].append({"nodes": list(path.nodes), "edges": edges})
        connected = [{"source": one, "target": other, **path} for (one, other), each in pairs.items() for path in each]
        apart = [{"source": one, "target": other} for (one, other), each in pairs.items() if not each]
        said: Json = {"unconnected": within(apart, self._room // 3)}
        if errors or more:
            said["errors"] = within(errors + more, self._room // 3)
        shown = within(connected, self._room - estimate_tokens(compact(said)))
        cut = len(shown) < len(connected) or len(said["unconnected"]) < len(apart)
        return {"paths": shown, "truncated": cut or bool(found and found.truncated), **said}

    def path_query(self, arguments: PathQueryArguments) -> Json:
        """Return the paths that a path query finds, each with the edges of the graph that it walks.

        Raises:
            PathQueryInvalid: the text is no path query.
            EntityNotFound: a start or end is not in the graph.
            RelationNotFound: a predicate is not in the graph.
        """
        found = paths(self._store, arguments.query, PathLimits(_TIMEOUT_S, _MOST_PATHS))
        listed = found.as_json()["paths"]
        shown = within(listed, self._room)
        return {"paths": shown, "truncated": found.truncated or len(shown) < len(listed)}

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
        rows = self._queries[language].run(arguments.query, limits=QueryLimits(_TIMEOUT_S, arguments.max_rows))
        result = as_json(rows)
        shown = within(result["rows"], self._room)
        result["truncated"] = rows.truncated or shown != result["rows"]
        result["rows"] = shown
        return result

    # Inside

    @cached_property
    def _schema(self) -> SchemaRenderer:
        return self._given_schema or SchemaRenderer(self._store.schema())

    @cached_property
    def _search(self) -> EntityLinker:
        """Finds more, and less similar, than what links the mentions of a question."""
        return self._searching(_MOST_MATCHES)

    @cached_property
    def _wide_search(self) -> EntityLinker:
        return self._searching(_MOST_BEFORE_TYPES)

    def _searching(self, most: int) -> EntityLinker:
        return EntityLinker(self._store, top_k=most, cutoff=_CUTOFF, extend=True, names=self._entities.names)

    def _bounded(self, request: Any) -> Any:
        """Hold a request to the size of one result; it may ask for less."""
        return request.model_copy(update={"budget_tokens": min(request.budget_tokens or self._budget, self._budget)})


def _predicate(relation: RelationSchema) -> Json:
    return {
        "predicate": relation.name,
        "count": relation.count,
        "subject_types": [name for name in relation.domain if name],
        "object_types": [name for name in relation.range if name],
        "properties": list(relation.properties),
    }


def _match(found: LinkedEntity, node: Node) -> Json:
    return {
        "id": node.id,
        "entity_type": node.type,
        "name": node.name,
        "score": round(found.score, 3),
        "method": found.method,
    }


def langchain_tools(tools: GraphTools) -> list[BaseTool]:
    """Return the tools as LangChain has them: each answers with JSON, or with a text that says what went wrong."""
    return [_langchain_tool(tool) for tool in tools.tools.values()]


def _langchain_tool(tool: Tool) -> BaseTool:
    def run(**arguments: Any) -> str:
        try:
            return compact(tool.run(tool.arguments.model_validate(arguments)))
        except ByokgError as error:
            raise ToolException(str(error)) from error

    def explain(error: Any) -> str:
        return str(RequestInvalid(problems(tool.arguments, error)))

    return StructuredTool.from_function(
        func=run,
        name=tool.name,
        description=tool.description,
        args_schema=tool.arguments,
        infer_schema=False,
        handle_tool_error=True,
        handle_validation_error=explain,
    )
