"""A graph as an MCP server: the tools of `retrieval.graph_tools` over stdio or streamable HTTP.

Tools answer with compact JSON; what is wrong with a call comes back as a text that says what to change. The schema is
a resource as well. Log lines are JSON objects that hold names of tools, seconds, sizes and classes of errors, and
nothing of the graph or of what was asked.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byokg.errors import ByokgError
from byokg.graph.address import masked
from byokg.graph.bfsql.response import compact
from byokg.graph.schema_text import SchemaRenderer, estimate_tokens
from byokg.graph.store import GraphStore
from byokg.retrieval.graph_tools import GraphTools

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server.context import ServerRequestContext
    from starlette.types import ASGIApp, Receive, Scope, Send

SCHEMA_URI = "byokg://schema"

INSTRUCTIONS = """\
These tools read one knowledge graph, {name}: {nodes}{edges}. They change nothing.

1. describe_schema shows which types of nodes and which predicates there are; filters must spell them so.
2. search_entities turns names into ids; all other tools take ids.
3. bfs_query fetches what is around nodes. Begin with max_hops 1, and filter by types and predicates that matter for \
the question: what does not match comes back as stubs, ids without data, which tell what could be asked for next.
4. describe_entity and describe_entities show what a stub stands for. intersect_subgraphs and shortest_paths tell how \
nodes hang together.

Answer from what the tools return, and name the edges that an answer rests on."""

_log = logging.getLogger("byokg.mcp")


class GraphServer:
    """Answers MCP requests from the tools over one graph; `server` speaks the protocol.

    Calls run in threads, so that one waits for no other. A call that takes longer than allowed, or that the client
    gives up, is answered or dropped at once; its thread ends when the store has answered, and takes a place among
    `threads` until then.

    Args:
        store: the graph.
        tools: over it.
        timeout_s: longest time of one call.
        budget_tokens: size of the schema resource; the tools have a budget of their own.
        threads: calls that run at the same time; more wait for their turn, which counts as their time.
    """

    def __init__(
        self, store: GraphStore, tools: GraphTools, timeout_s: float, budget_tokens: int, threads: int = 16
    ) -> None:
        from mcp.server.lowlevel import Server

        self._store = store
        self._tools = tools
        self._timeout_s = timeout_s
        self._budget_tokens = budget_tokens
        self._pool = ThreadPoolExecutor(threads, "mcp-call")
        self.server: Server[Any] = Server(
            "byokg",
            instructions=_instructions(store),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
        )

    def close(self) -> None:
        """Begin no further calls; those that run are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _list_tools(
        self, context: ServerRequestContext[Any], page: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        import mcp_types as types

        reading = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema=tool.arguments.model_json_schema(),
                    annotations=reading,
                )
                for tool in self._tools.tools.values()
            ]
        )

    async def _call_tool(
        self, context: ServerRequestContext[Any], call: types.CallToolRequestParams
    ) -> types.CallToolResult:
        import mcp_types as types

        began = time.perf_counter()
        outcome, text = "cancelled", ""
        try:
            work = asyncio.get_running_loop().run_in_executor(self._pool, self._answer, call.name, call.arguments or {})
            outcome, text = await asyncio.wait_for(work, self._timeout_s)
        except TimeoutError:
            outcome = "TimeoutError"
            text = f"{call.name} took longer than {self._timeout_s:g} s; ask for fewer hops or nodes, or filter more"
        finally:
            known = call.name if call.name in self._tools.tools else "unknown"
            _log.info(
                json.dumps(
                    {
                        "event": "call",
                        "tool": known,
                        "outcome": outcome,
                        "seconds": round(time.perf_counter() - began, 4),
                        "tokens": estimate_tokens(text),
                    }
                )
            )
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=outcome != "ok")

    def _answer(self, name: str, arguments: dict[str, Any]) -> tuple[str, str]:
        """Run a tool; return what became of it (`ok` or the class of the error), and its text."""
        try:
            return "ok", compact(self._tools.call(name, arguments))
        except ByokgError as error:
            return type(error).__name__, masked(str(error))
        except Exception as error:  # the client gets no traceback, and the server stays
            _log.error(json.dumps({"event": "bug", "outcome": type(error).__name__, "at": _places(error)}))
            return type(error).__name__, f"{name} failed ({type(error).__name__}); this is a bug of the server"

    async def _list_resources(
        self, context: ServerRequestContext[Any], page: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        import mcp_types as types

        about = "Node types, predicates and properties of the graph, those of most edges first."
        schema = types.Resource(uri=SCHEMA_URI, name="schema", description=about, mime_type="text/plain")
        return types.ListResourcesResult(resources=[schema])

    async def _read_resource(
        self, context: ServerRequestContext[Any], wanted: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        import mcp_types as types
        from mcp.shared.exceptions import MCPError

        if str(wanted.uri) != SCHEMA_URI:
            raise MCPError(types.INVALID_PARAMS, f"no resource {str(wanted.uri)!r}; there is {SCHEMA_URI}")
        text = await asyncio.get_running_loop().run_in_executor(self._pool, self._schema_text)
        content = types.TextResourceContents(uri=SCHEMA_URI, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[content])

    def _schema_text(self) -> str:
        return SchemaRenderer(self._store.schema()).render("", self._budget_tokens).text


class BearerGate:
    """Lets requests through that carry a token; an ASGI application around another.

    Args:
        app: what is behind.
        token: what `Authorization: Bearer …` must hold.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 unless the token is right; what is no request (the start, the end) goes through."""
        if scope["type"] == "http":
            kind, _, given = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
            if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
                _log.info(json.dumps({"event": "refused", "outcome": "no or wrong bearer token"}))
                headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"a bearer token is needed\n"})
                return
        await self._app(scope, receive, send)


async def serve_stdio(graph: GraphServer) -> None:
    """Answer one client on standard input and output, until it closes them."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        await graph.server.run(reading, writing, graph.server.create_initialization_options())


def http_app(graph: GraphServer, host: str, token: str | None) -> ASGIApp:
    """Return the server as an ASGI application at `/mcp`.

    Args:
        graph: what to serve.
        host: address it will be bound to; on the loopback interface, requests that name another host are refused.
        token: a bearer token that every request must carry; None lets all in.
    """
    app: ASGIApp = graph.server.streamable_http_app(host=host)
    return app if token is None else BearerGate(app, token)


class LogLines(logging.Formatter):
    """Writes what this file logs as it is, and of what other libraries log who said it: they quote what was asked."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON."""
        if record.name == _log.name:
            return record.getMessage()
        return json.dumps({"event": "log", "logger": record.name, "level": record.levelname})


def _places(error: BaseException) -> list[str]:
    """Return where an error came from, innermost last, as files and lines: its text may hold data."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]


def _instructions(store: GraphStore) -> str:
    schema = store.schema()
    nodes = f"{sum(schema.node_types.values()):,} nodes, " if schema.node_types and not schema.sampled else ""
    relations = sum(relation.count for relation in schema.relations)
    return INSTRUCTIONS.format(
        name=store.name, nodes=nodes, edges=f"{relations:,} edges of {len(schema.relations):,} predicates"
    )
