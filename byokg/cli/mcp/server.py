"""Graphs as an MCP server: the tools of `retrieval.graph_tools` in the terms of the Model Context Protocol.

Tools return structured content, and the same as text; a faulty call returns a text with a correction. Schemas and
entities are resources as well, and a prompt explains how to explore a graph. Log lines are JSON objects that hold names
of tools, seconds, sizes and classes of errors, and no data of the graph or the calls.
"""

from __future__ import annotations

import asyncio
import ctypes
import hmac
import json
import logging
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from byokg.cli.mcp.addresses import LOOPBACK
from byokg.errors import ByokgError, CallStopped, ConfigError, RequestInvalid
from byokg.graph.bfsql.protocol import Json, compact
from byokg.graph.cancellation import CancelToken, check
from byokg.graph.schema_text import SchemaRenderer
from byokg.graph.store import GraphStore
from byokg.open import mask
from byokg.retrieval.graph_tools import GraphTools, SearchArguments
from byokg.text.names import estimate_tokens, normalize_name

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server.context import ServerRequestContext
    from starlette.types import ASGIApp, Receive, Scope, Send

SCHEMA_URI, ENTITY_URI = "byokg://schema", "byokg://entity"

INSTRUCTIONS = """\
These tools read {graphs}. They change nothing.

1. describe_schema with your question shows which types and predicates matter; filters must spell them so.
2. search_entities turns names into ids, find_values codes, dates and other values; all other tools take ids.
3. neighbors lists the values of a predicate of a node. That is most often the answer.
4. bfs_query shows what is around nodes, what matters for the question first; describe_entity shows one node. \
intersect_subgraphs and shortest_paths tell how nodes hang together.

Stop as soon as you have the answer. Answer from what the tools return, and name the edges that it rests on."""

EXPLORE = """\
Answer a question from the knowledge graph {name}: {question}

{start}
{steps}"""

_STEPS = INSTRUCTIONS.partition("\n\n")[2]

_BEAT_S = 1.0
"""Seconds between two words on progress."""

_COMPLETIONS = 20

_LARGE_S = 0.2
"""A call that takes longer may have needed much memory."""

_log = logging.getLogger("byokg.mcp")


@dataclass(frozen=True)
class Served:
    """A graph, its name, and the tools over it."""

    name: str
    store: GraphStore
    tools: GraphTools

    @cached_property
    def about(self) -> str:
        """Describe its size, unless that would need a request to a server at the start."""
        if self.store.remote:
            return f"the knowledge graph {self.name}"
        schema = self.store.schema()
        count = getattr(self.store, "node_count", None) or sum(schema.node_types.values())
        nodes = f"{count:,} nodes, " if schema.node_types and not schema.sampled else ""
        edges = sum(relation.count for relation in schema.relations)
        return f"the knowledge graph {self.name}: {nodes}{edges:,} edges of {len(schema.relations):,} predicates"


class GraphServer:
    """Answers MCP requests from the tools over some graphs; `server` implements the protocol.

    Calls run in threads, so that none waits for another. A call that takes longer than allowed, or that the client
    gives up, is answered or dropped at once, and its thread ends at the next `graph.cancellation.check`.

    Args:
        graphs: served graphs; calls choose one by `graph`, if there are several, and use the first one otherwise.
        timeout_s: longest time of one call.
        schema_tokens: size of a schema resource; the tools have budgets of their own.
        threads: concurrent calls; more wait for their turn, which counts as their time.
    """

    def __init__(
        self, graphs: Sequence[Served], timeout_s: float = 30.0, schema_tokens: int = 4000, threads: int = 8
    ) -> None:
        from mcp.server.lowlevel import Server

        self._graphs = {graph.name: graph for graph in graphs}
        if len(self._graphs) < len(graphs):
            raise ConfigError(f"two graphs are called alike ({', '.join(graph.name for graph in graphs)}); rename one")
        self._timeout_s = timeout_s
        self._schema_tokens = schema_tokens
        self._pool = ThreadPoolExecutor(threads, "mcp-call")
        self._running: set[CancelToken] = set()
        self.server: Server[Any] = Server(
            "byokg",
            version=version("byokg"),
            instructions=INSTRUCTIONS.format(graphs=", and ".join(graph.about for graph in graphs)),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )

    def close(self) -> None:
        """Begin no further calls, and end those that run; they are not waited for."""
        for stop in list(self._running):
            stop.end()
        self._pool.shutdown(wait=False, cancel_futures=True)

    # Tools

    @cached_property
    def tools(self) -> list[types.Tool]:
        """Return the list of tools, those of all graphs together."""
        import mcp_types as types

        found: dict[str, types.Tool] = {}
        for graph in self._graphs.values():
            for tool in graph.tools.tools.values():
                taken = tool.input_schema
                if len(self._graphs) > 1:
                    taken["properties"]["graph"] = {"type": "string", "enum": list(self._graphs)}
                found.setdefault(
                    tool.name,
                    types.Tool(
                        name=tool.name,
                        description=tool.description,
                        input_schema=taken,
                        output_schema=tool.output_schema,
                        annotations=types.ToolAnnotations(read_only_hint=True),
                    ),
                )
        return list(found.values())

    async def _list_tools(
        self, context: ServerRequestContext[Any], page: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        import mcp_types as types

        return types.ListToolsResult(tools=self.tools)

    async def _call_tool(
        self, context: ServerRequestContext[Any], call: types.CallToolRequestParams
    ) -> types.CallToolResult:
        import mcp_types as types

        began = time.perf_counter()
        stop = CancelToken(self._timeout_s)
        outcome, text = "cancelled", ""
        result: Json | None = None
        try:
            outcome, result, text = await self._in_thread(context, stop, self._answer, call.name, call.arguments or {})
        except CallStopped:
            outcome = "TimeoutError"
            text = f"{call.name} took longer than {self._timeout_s:g} s; ask for fewer hops or nodes, or filter more"
        finally:
            known = call.name if any(call.name in graph.tools.tools for graph in self._graphs.values()) else "unknown"
            seconds = round(time.perf_counter() - began, 4)
            line = {"event": "call", "tool": known, "outcome": outcome, "seconds": seconds}
            _log.info(json.dumps({**line, "tokens": estimate_tokens(text)}))
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
        return types.CallToolResult(content=content, structured_content=result, is_error=outcome != "ok")

    async def _in_thread(
        self, context: ServerRequestContext[Any], stop: CancelToken, work: Callable[..., Any], *given: Any
    ) -> Any:
        """Run a function in a thread, with progress notifications to interested clients.

        Raises:
            CallStopped: it took too long. It is cancelled, as it is when the client gives up.
        """

        def run() -> Any:
            began = time.perf_counter()
            try:
                with stop.work():
                    check()  # its time may have passed while it waited for its turn
                    return work(*given)
            finally:
                if time.perf_counter() - began > _LARGE_S:
                    _give_back()

        self._running.add(stop)
        task = asyncio.get_running_loop().run_in_executor(self._pool, run)
        try:
            beats = 0
            while (left := stop.left_s(_BEAT_S)) > 0:
                done, _ = await asyncio.wait([task], timeout=left)
                if done:
                    return task.result()
                beats += 1
                await context.session.report_progress(beats * _BEAT_S, self._timeout_s, "still at work")
            raise CallStopped
        finally:
            stop.end()
            task.cancel()
            task.add_done_callback(_taken)
            self._running.discard(stop)

    def _graph(self, name: str | None) -> Served:
        """Return the graph that is meant."""
        found = next(iter(self._graphs.values())) if name is None else self._graphs.get(name)
        if found is None:
            raise RequestInvalid([f"graph: there is none called {name!r}; there are {', '.join(self._graphs)}"])
        return found

    def _answer(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, Json | None, str]:
        """Run a tool; return what became of it (`ok` or the class of the error), its result, and its text."""
        given = dict(arguments)
        try:
            graph = self._graph(given.pop("graph", None) if len(self._graphs) > 1 else None)
            result = graph.tools.call(name, given)
            return "ok", result, compact(result)
        except CallStopped:
            raise
        except ByokgError as error:
            return type(error).__name__, None, mask(str(error))
        except Exception as error:  # the client gets no traceback, and the server stays
            _log.error(json.dumps({"event": "bug", "outcome": type(error).__name__, "at": _places(error)}))
            return type(error).__name__, None, f"{name} failed ({type(error).__name__}); this is a bug of the server"

    # Resources

    def _uri(self, base: str, graph: Served) -> str:
        return base if len(self._graphs) == 1 else f"{base}/{quote(graph.name, safe='')}"

    async def _list_resources(
        self, context: ServerRequestContext[Any], page: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        import mcp_types as types

        about = "Node types, predicates and properties, those of most edges first."

        def resource(graph: Served) -> types.Resource:
            uri, name = self._uri(SCHEMA_URI, graph), f"schema of {graph.name}"
            return types.Resource(uri=uri, name=name, description=about, mime_type="text/plain")

        return types.ListResourcesResult(resources=[resource(graph) for graph in self._graphs.values()])

    async def _list_templates(
        self, context: ServerRequestContext[Any], page: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        import mcp_types as types

        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=f"{self._uri(ENTITY_URI, graph)}/{{id}}",
                    name=f"entity of {name}",
                    description="One node: its properties and the values of its predicates.",
                    mime_type="application/json",
                )
                for name, graph in self._graphs.items()
            ]
        )

    async def _read_resource(
        self, context: ServerRequestContext[Any], wanted: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        import mcp_types as types
        from mcp.shared.exceptions import MCPError

        uri = str(wanted.uri)
        for graph in self._graphs.values():
            entity = f"{self._uri(ENTITY_URI, graph)}/"
            if uri == self._uri(SCHEMA_URI, graph):
                kind, work = "text/plain", partial(self._schema_text, graph)
            elif uri.startswith(entity):
                kind, work = "application/json", partial(self._entity_text, graph, unquote(uri.removeprefix(entity)))
            else:
                continue
            try:
                text = await self._in_thread(context, CancelToken(self._timeout_s), work)
            except ByokgError as error:
                raise MCPError(types.INVALID_PARAMS, mask(str(error))) from error
            return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)])
        known = ", ".join(self._uri(SCHEMA_URI, graph) for graph in self._graphs.values())
        raise MCPError(types.INVALID_PARAMS, f"no resource {uri!r}; there is {known}, and {ENTITY_URI}/ with an id")

    def _schema_text(self, graph: Served) -> str:
        return SchemaRenderer(graph.store.schema()).render("", self._schema_tokens).text

    def _entity_text(self, graph: Served, id: str) -> str:
        found = graph.tools.call("describe_entity", {"id": id})
        if "errors" in found:
            raise RequestInvalid([error["message"] for error in found["errors"]])
        return compact(found)

    # Prompts

    async def _list_prompts(
        self, context: ServerRequestContext[Any], page: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        import mcp_types as types

        arguments = [
            types.PromptArgument(name="question", description="What to find out.", required=True),
            types.PromptArgument(name="entity", description="Name or id of the node to begin with."),
            types.PromptArgument(name="predicate", description="The predicate to begin with."),
        ]
        if len(self._graphs) > 1:
            arguments.append(types.PromptArgument(name="graph", description="Which graph."))
        about = "How to explore the graph until a question is answered."
        return types.ListPromptsResult(prompts=[types.Prompt(name="explore", description=about, arguments=arguments)])

    async def _get_prompt(
        self, context: ServerRequestContext[Any], wanted: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        import mcp_types as types
        from mcp.shared.exceptions import MCPError

        given = dict(wanted.arguments or {})
        if wanted.name != "explore" or not given.get("question"):
            raise MCPError(types.INVALID_PARAMS, "there is one prompt, explore; it takes a question")
        try:
            graph = self._graph(given.get("graph"))
        except RequestInvalid as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        begin = [f"{name} {given[name]}" for name in ("entity", "predicate") if given.get(name)]
        start = f"Begin with the {' and the '.join(begin)}.\n" if begin else ""
        text = EXPLORE.format(name=graph.name, question=given["question"], start=start, steps=_STEPS)
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(messages=[message])

    # Completions

    async def _complete(
        self, context: ServerRequestContext[Any], wanted: types.CompleteRequestParams
    ) -> types.CompleteResult:
        import mcp_types as types

        chosen = dict(wanted.context.arguments or {}) if wanted.context is not None else {}
        name = chosen.get("graph")
        if isinstance(wanted.ref, types.ResourceTemplateReference):
            uri = str(wanted.ref.uri)
            name = next(
                (each.name for each in self._graphs.values() if uri.startswith(self._uri(ENTITY_URI, each))), None
            )
        graph = self._graphs.get(name or "") or next(iter(self._graphs.values()))
        kind, begun = wanted.argument.name, wanted.argument.value
        found = await self._in_thread(context, CancelToken(self._timeout_s), self._completions, graph, kind, begun)
        completion = types.Completion(values=found[:_COMPLETIONS], total=len(found), has_more=len(found) > _COMPLETIONS)
        return types.CompleteResult(completion=completion)

    def _completions(self, graph: Served, kind: str, begun: str) -> list[str]:
        """Return completions of an argument: predicates and graphs by substring, entities by name."""
        if kind == "graph":
            return [name for name in self._graphs if begun.casefold() in name.casefold()]
        if kind == "predicate":
            wanted = normalize_name(begun)
            return [label for label in sorted(graph.store.relations) if wanted in normalize_name(label)]
        if kind not in ("entity", "id") or not begun.strip():
            return []
        matches = graph.tools.search_entities(SearchArguments(query=begun, limit=50))["matches"]
        return list(dict.fromkeys(match["id"] for match in matches))


def _taken(task: asyncio.Future[Any]) -> None:
    """Look at how abandoned work ended, so that nobody complains that nobody did."""
    if not task.cancelled():
        task.exception()


_ARENA_MAX, _ARENAS = -8, 2
"""The C library's name for how many heaps threads allocate from, and how many are enough for them."""


def share_heaps() -> None:
    """Let the threads of this process share heaps; by default the C library gives each its own, with fragmentation."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(_ARENA_MAX, _ARENAS)


def _give_back() -> None:
    """Return memory freed by large calls to the system; by default the C library keeps it for this thread."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


class BearerGate:
    """Passes requests with a bearer token; an ASGI application around another.

    Args:
        app: the protected application.
        token: required value of `Authorization: Bearer …`.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 unless the token is right; health checks and anything but requests pass."""
        if scope["type"] == "http" and scope["path"] != HEALTH:
            kind, _, given = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
            if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
                _log.info(json.dumps({"event": "refused", "outcome": "no or wrong bearer token"}))
                headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"a bearer token is needed\n"})
                return
        await self._app(scope, receive, send)


HEALTH = "/health"


async def serve_stdio(graph: GraphServer) -> None:
    """Answer one client on standard input and output, until it closes them."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        await graph.server.run(reading, writing, graph.server.create_initialization_options())


def http_app(graph: GraphServer, host: str, token: str | None, origins: Sequence[str] = ()) -> ASGIApp:
    """Return the server as an ASGI application at `/mcp`, with `/health` beside it.

    Args:
        graph: what to serve.
        host: address it will be bound to; on the loopback interface, requests that name another host are refused.
        token: a bearer token that every request must carry; None lets all in.
        origins: web pages that may call it from a browser, such as `https://example.org`.
    """
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.middleware.cors import CORSMiddleware
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": version("byokg")})

    security = None
    if host in LOOPBACK:
        hosts = ["127.0.0.1:*", "localhost:*", "[::1]:*"]
        allowed = [*(f"http://{each}" for each in hosts), *origins]
        security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=allowed)
    routes = [Route(HEALTH, health)]
    app: ASGIApp = graph.server.streamable_http_app(
        host=host, transport_security=security, custom_starlette_routes=routes
    )
    if token is not None:
        app = BearerGate(app, token)
    if origins:
        methods, shown = ["GET", "POST", "DELETE"], ["Mcp-Session-Id", "WWW-Authenticate"]
        app = CORSMiddleware(app, list(origins), methods, ["*"], expose_headers=shown)
    return app


class LogLines(logging.Formatter):
    """Writes this file's log records unchanged, and of other libraries' records only the logger: they quote calls."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON."""
        if record.name == _log.name:
            return record.getMessage()
        return json.dumps({"event": "log", "logger": record.name, "level": record.levelname})


def _places(error: BaseException) -> list[str]:
    """Return the places of an error, innermost last, as files and lines: its text may hold data."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]
