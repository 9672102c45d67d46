"""`byokg bfs`: one BFS-QL request. What is heavy is imported when it runs.

A graph as an MCP server: the tools of `retrieval.graph_tools` over stdio or streamable HTTP.

Tools answer with compact JSON; what is wrong with a call comes back as a text that says what to change. The schema is
a resource as well. Log lines are JSON objects that hold names of tools, seconds, sizes and classes of errors, and
nothing of the graph or of what was asked.

`byokg mcp`: a graph for programs that speak the Model Context Protocol. What is heavy is imported when it runs.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import signal
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from byokg.cli.terminal import note, print_json
from byokg.errors import ByokgError, ConfigError, MissingExtra
from byokg.graph.bfsql.protocol import compact
from byokg.graph.schema_text import SchemaRenderer
from byokg.graph.store import GraphStore
from byokg.open import masked
from byokg.retrieval.graph_tools import GraphTools
from byokg.text import estimate_tokens

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
4. describe_entity and describe_entities show what a stub stands for. intersect_subgraphs, shortest_paths and \
path_query tell how nodes hang together.

Answer from what the tools return, and name the edges that an answer rests on."""

_log = logging.getLogger("byokg.mcp")


class PathFormat(StrEnum):
    """How `byokg paths` writes what it found."""

    TABLE = "table"
    TEXT = "text"
    JSON = "json"
    SVG = "svg"
    HTML = "html"


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


TOKEN = "BYOKG_MCP_TOKEN"
"""Environment variable that holds the bearer token of the HTTP server."""

INTERRUPTED = 130
"""Exit code of what Ctrl-C has ended, as shells have it."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")

app = typer.Typer(no_args_is_help=True, help="Serve a graph to programs that speak the Model Context Protocol (MCP).")


@app.callback()
def _group() -> None:
    pass


@app.command("serve")
def serve(
    place: Annotated[str, typer.Argument(metavar="GRAPH", help="A graph's folder, or a server's address.")],
    http: Annotated[bool, typer.Option("--http", help="Streamable HTTP at /mcp, instead of stdio.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen at; beyond this machine needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 takes a free one.")] = 8000,
    timeout: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Longest time of one call.")] = 30.0,
    budget_tokens: Annotated[int, typer.Option(min=200, help="Size of one result, as estimated.")] = 8000,
) -> None:
    """Serve the tools over a graph: on standard input and output, or with --http to many clients.

    In a client's settings: {"command": "byokg", "args": ["mcp", "serve", "DIR"]}

    With --http, requests must carry the token in BYOKG_MCP_TOKEN, if it is set
    (Authorization: Bearer …). Set it where other machines reach the server.

    A folder's query engines, if it has any, answer run_query.
    """
    token = os.environ.get(TOKEN) or None
    if http and host not in LOOPBACK and token is None:
        raise ConfigError(f"--host {host} can be reached from other machines; set {TOKEN} to what clients shall send")
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise MissingExtra("mcp", "mcp", "an MCP server") from error
    import asyncio
    import logging

    from byokg.graph.store import QueryStore
    from byokg.open import close, engines_in, is_address, open_graph, open_queryable
    from byokg.retrieval.graph_tools import GraphTools

    logs = logging.StreamHandler()  # standard error: standard output belongs to the protocol
    logs.setFormatter(LogLines())
    logging.getLogger().addHandler(logs)
    logging.getLogger("byokg.mcp").setLevel(logging.INFO)
    with ExitStack() as stack:
        store = open_graph(place)
        stack.callback(close, store)
        queries: list[QueryStore] = []
        if is_address(place):
            server = open_queryable(place)
            stack.callback(close, server)
            queries.append(server)
        else:
            for language in engines_in(place):
                engine = open_queryable(place, language)
                stack.callback(close, engine)
                queries.append(engine)
        tools = GraphTools(store, queries=queries, budget_tokens=budget_tokens, path_queries=True)
        graph = GraphServer(store, tools, timeout, budget_tokens)
        stack.callback(graph.close)
        if http:
            _serve_http(graph, host, port, token)
        else:
            signal.signal(signal.SIGINT, lambda *_: _leave(stack))
            note(f"serving {store.name} on standard input and output; end it with Ctrl-D or Ctrl-C")
            asyncio.run(serve_stdio(graph))


def _leave(open_things: ExitStack) -> None:
    """End the process: the thread that waits for standard input cannot be told to stop, and would be waited for."""
    open_things.close()
    os._exit(INTERRUPTED)


def _serve_http(graph: GraphServer, host: str, port: int, token: str | None) -> None:
    """Serve until the process is told to end (Ctrl-C, or SIGTERM)."""
    import socket

    import uvicorn

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            raise ConfigError(f"cannot listen at {host}:{port} ({error.strerror}); take another --port") from error
        listening.listen(128)  # from here on, clients wait to be accepted
        shown = f"[{host}]" if ":" in host else host
        note(f"serving at http://{shown}:{listening.getsockname()[1]}/mcp; end it with Ctrl-C")
        config = uvicorn.Config(http_app(graph, host, token), log_config=None, timeout_graceful_shutdown=5)
        uvicorn.Server(config).run(sockets=[listening])


def bfs(
    place: Annotated[str | None, typer.Argument(metavar="GRAPH", help="A graph's folder, or an address.")] = None,
    request: Annotated[str | None, typer.Argument(metavar="REQUEST", help="JSON; - reads it from input.")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schemas and exit.")] = False,
) -> None:
    """Print the part of a graph around some nodes, as BFS-QL selects it.

    byokg bfs GRAPH '{"seeds": ["city/paris"], "max_hops": 1}'

    byokg bfs GRAPH '{"seeds": ["Heat"], "max_hops": 2, "edge_filter": {"predicates": ["directed_by"]}, "limit": 50}'

    Seeds are ids; find them with: byokg link GRAPH NAME. Filters decide what is shown in full; the rest are stubs.
    """
    from byokg.graph.bfsql.protocol import BfsRequest, BfsResponse, read_request

    if schema:
        print_json({"request": BfsRequest.model_json_schema(), "response": BfsResponse.model_json_schema()})
        return
    if place is None or request is None:
        raise ConfigError('give a graph and a request: byokg bfs GRAPH \'{"seeds": ["ID"], "max_hops": 1}\'')
    from byokg.graph.bfsql.engine import bfs_query
    from byokg.open import opened
    from byokg.retrieval.graph_tools import GraphTools

    asked = read_request(BfsRequest, sys.stdin.read() if request == "-" else request)
    with opened(place) as store:
        print_json(bfs_query(store, asked, GraphTools(store).nearest))


def paths(
    place: Annotated[str, typer.Argument(metavar="GRAPH", help="A graph folder, or the address of a server.")],
    query: Annotated[str, typer.Argument(help="PATHS START … END … VIA …, @FILE, or - for standard input.")],
    form: Annotated[PathFormat, typer.Option("--format", help="How paths are written.")] = PathFormat.TABLE,
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds at most.")] = 10.0,
    rules: Annotated[Path | None, typer.Option(help="Infer edges by the rules in this file: IF {…} THEN {…}.")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Infer edges by the graph's own RDFS and OWL.")] = False,
    counts: Annotated[bool, typer.Option("--count", help="Print how many paths there are, and no path.")] = False,
    most: Annotated[int, typer.Option("--max-paths", help="Paths at most, where the query has no LIMIT.")] = 10_000,
) -> None:
    """Find paths between nodes with a path query, and print or draw them."""
    from byokg.files import write_file
    from byokg.graph.columnar.graph import ColumnarGraph
    from byokg.graph.pathql import drawing
    from byokg.graph.pathql.budget import PathLimits
    from byokg.graph.pathql.evaluate import count
    from byokg.graph.pathql.evaluate import paths as run
    from byokg.graph.pathql.grammar import parse_rules
    from byokg.graph.pathql.rules import schema_rules
    from byokg.open import opened

    text = sys.stdin.read() if query == "-" else query
    if query.startswith("@"):
        text = _text_of(Path(query[1:]))
    with opened(place) as store:
        wanted = [] if rules is None else parse_rules(_text_of(rules))
        if schema:
            if not isinstance(store, ColumnarGraph):
                raise ConfigError("--schema is for graph folders; a server infers by itself")
            wanted += schema_rules(store)
        if counts:
            if wanted:
                raise ConfigError("--count counts paths along stored edges; leave --rules and --schema out")
            number, truncated = count(store, text, PathLimits(timeout))
            print(f"{number:,}{' or more: a limit was reached' if truncated else ''}")
            return
        found = run(store, text, PathLimits(timeout, most), wanted)
        match form:
            case PathFormat.SVG:
                written = drawing.svg(found)
            case PathFormat.HTML:
                written = drawing.page(found)
            case PathFormat.TABLE | PathFormat.TEXT | PathFormat.JSON:
                written = getattr(found, form.value)()
    if out is None:
        print(written)
    else:
        write_file(out, [written.encode(), b"\n"])
        note(f"wrote {out}")


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {str(file)!r}: {error}") from error
