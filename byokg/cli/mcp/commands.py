"""`byokg bfs`: one BFS-QL request. `byokg paths`: one path query. `byokg mcp`: graphs for MCP clients.

Heavy modules are imported on demand.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from byokg.cli.mcp.addresses import LOOPBACK
from byokg.cli.options import ServerOptions, expand_records
from byokg.cli.terminal import Place, note, print_json
from byokg.errors import ConfigError, EntityNotFound, MissingExtra

if TYPE_CHECKING:
    from byokg.cli.mcp.server import GraphServer, Served
    from byokg.graph.store import GraphStore, QueryStore
    from byokg.types import Language


class PathFormat(StrEnum):
    """Output format of `byokg paths`."""

    TABLE = "table"
    TEXT = "text"
    JSON = "json"
    SVG = "svg"
    HTML = "html"


TOKEN = "BYOKG_MCP_TOKEN"
"""Environment variable that holds the bearer token of the HTTP server."""

INTERRUPTED = 130
"""Exit code of what Ctrl-C has ended, as shells have it."""

_LEAST_MCP = 2
"""The first major version of the package `mcp` that will do."""

_PATIENCE_S = 1.5
"""Grace period in seconds for running calls when the process is stopped."""

app = typer.Typer(no_args_is_help=True, help="Serve a graph to programs that speak the Model Context Protocol (MCP).")


@app.callback()
def _group() -> None:
    pass


@dataclass(frozen=True)
class HttpOptions:
    """Where clients reach the server."""

    http: Annotated[bool, typer.Option("--http", help="Streamable HTTP at /mcp, instead of stdio.")] = False
    host: Annotated[str, typer.Option(help="Address to listen at; beyond this machine needs a token.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 takes a free one.")] = 8000
    cors: Annotated[list[str] | None, typer.Option(metavar="ORIGIN", help="Web pages that may call it.")] = None


@dataclass(frozen=True)
class CallLimits:
    """Limits of a call of a tool, and the form of `bfs_query`."""

    timeout: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Longest time of one call.")] = 30.0
    budget_tokens: Annotated[int, typer.Option(min=200, help="Size of one result at most, as estimated.")] = 4000
    page_tokens: Annotated[int, typer.Option(min=200, help="Size of one page, unless a call asks for more.")] = 1500
    strict: Annotated[bool, typer.Option("--strict", help="bfs_query as the article has it.")] = False


@app.command("serve")
@expand_records
def serve(
    places: Annotated[list[str], typer.Argument(metavar="GRAPH…", help="Folders of graphs, or addresses of servers.")],
    web: HttpOptions,
    limits: CallLimits,
    server: ServerOptions,
) -> None:
    """Serve the tools over graphs: on standard input and output, or with --http to many clients.

    In a client's settings: {"command": "byokg", "args": ["mcp", "serve", "DIR"]}

    With --http, requests must carry the token in BYOKG_MCP_TOKEN, if it is set
    (Authorization: Bearer …). Set it where other machines reach the server.

    A folder's query engines, if it has any, answer run_query. Settings of a server's store are for all servers named.
    """
    token = os.environ.get(TOKEN) or None
    if web.http and web.host not in LOOPBACK and token is None:
        raise ConfigError(
            f"--host {web.host} can be reached from other machines; set {TOKEN} to what clients shall send"
        )
    from byokg.open import is_address

    _refuse_other_mcp()
    servers = [place for place in places if is_address(place)]
    settings = {place: server.settings(place) for place in servers or places}
    with ExitStack() as stack:
        engines = [_starting(place, stack) for place in places]  # before all that takes time to import
        import asyncio

        from byokg.cli.mcp.server import GraphServer, serve_stdio
        from byokg.retrieval.graph_tools import GraphTools

        _prepare_process()
        tools = partial(
            GraphTools,
            budget_tokens=limits.budget_tokens,
            page_tokens=limits.page_tokens,
            path_queries=True,
            strict=limits.strict,
        )
        served = [
            _opened(place, settings.get(place, {}), started, stack, tools)
            for place, started in zip(places, engines, strict=True)
        ]
        graph = GraphServer(served, limits.timeout, limits.budget_tokens)
        stack.callback(graph.close)
        if web.http:
            _serve_http(graph, web, token, stack.close)
        else:
            for told in (signal.SIGINT, signal.SIGTERM):
                signal.signal(told, lambda number, _: _leave(stack.close, 128 + number))
            names = ", ".join(each.name for each in served)
            note(f"serving {names} on standard input and output; end it with Ctrl-D or Ctrl-C")
            asyncio.run(serve_stdio(graph))
            _leave(stack.close, 0)  # threads of calls that a store keeps busy are not waited for


def _prepare_process() -> None:
    """Share memory between threads, load the path engine in the background, and write logs to standard error."""
    import logging

    from byokg.cli.mcp.server import LogLines, share_heaps
    from byokg.graph.pathql.evaluate import prepare

    share_heaps()
    threading.Thread(target=prepare, daemon=True).start()  # a call that is over cannot wait for it
    logs = logging.StreamHandler()  # standard error: standard output belongs to the protocol
    logs.setFormatter(LogLines())
    logging.getLogger().addHandler(logs)
    logging.getLogger("byokg.mcp").setLevel(logging.INFO)


def _refuse_other_mcp() -> None:
    """Raise if the package of the protocol is missing, or too old."""
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtra("mcp", "mcp", "an MCP server")
    found = version("mcp")
    if int(found.partition(".")[0]) < _LEAST_MCP:
        raise ConfigError(
            f"mcp {found} is installed, and the server needs {_LEAST_MCP}; run: pip install 'byokg[mcp]' "
            "(langchain-mcp-adapters that want mcp 1 need an environment of their own, see docs/bfs-ql.md)"
        )


def _starting(place: str, stack: ExitStack) -> list[QueryStore]:
    """Start the engines of a graph's folder in the background; an engine without its packages is left out."""
    from byokg.cli.mcp.engines import StartingEngine
    from byokg.open import engines_in, is_address, refuse_missing

    queries: list[QueryStore] = []
    for language in () if is_address(place) else engines_in(place):
        try:
            refuse_missing([language])
        except MissingExtra as error:
            note(f"{place} is served without run_query for {language}: {error}")
            continue
        engine = StartingEngine(language, _starter(place, language))
        stack.callback(engine.close)
        queries.append(engine)
    return queries


def _opened(
    place: str, settings: dict[str, Any], queries: list[QueryStore], stack: ExitStack, tools: Callable[..., Any]
) -> Served:
    """Open a graph that has some engines; at an address, one is there."""
    from byokg.cli.mcp.server import Served
    from byokg.open import is_address, open_graph, open_queryable

    store = open_graph(place, **settings)
    stack.callback(store.close)
    if is_address(place):
        server = open_queryable(place, **settings)
        stack.callback(server.close)
        queries = [server]
        store.watch(note)
        store.read_ahead()
    name = store.name if is_address(place) else Path(place).name or store.name
    return Served(name.removesuffix(".graph"), store, tools(store, queries=queries))


def _starter(place: str, language: Language) -> Callable[[], QueryStore]:
    """Return a function that starts an engine, and runs a first query on it."""
    from byokg.open import open_queryable

    def start() -> QueryStore:
        engine = open_queryable(place, language)
        engine.run({"cypher": "RETURN 1 AS one", "sparql": "ASK {}"}[language])
        return engine

    return start


def _leave(close: Callable[[], None], code: int) -> None:
    """End the process soon, whatever its threads do: one that waits for standard input cannot be interrupted."""
    threading.Timer(_PATIENCE_S, os._exit, [code]).start()
    close()
    sys.stdout.flush()
    os._exit(code)


def _serve_http(graph: GraphServer, web: HttpOptions, token: str | None, close: Callable[[], None]) -> None:
    """Serve until the process is stopped (Ctrl-C, or SIGTERM), which takes at most two seconds."""
    import socket

    import uvicorn

    from byokg.cli.mcp.server import http_app

    class Ending(uvicorn.Server):
        """Ends running calls, and itself when its time is over."""

        def handle_exit(self, sig: int, frame: Any) -> None:
            graph.close()
            leaving = threading.Timer(_PATIENCE_S, os._exit, [0])
            leaving.daemon = True
            leaving.start()
            super().handle_exit(sig, frame)

    host, port = web.host, web.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        if sys.platform != "win32":  # where it would let others take a port that is in use
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            raise ConfigError(f"cannot listen at {host}:{port} ({error.strerror}); take another --port") from error
        listening.listen(128)  # from here on, clients wait to be accepted
        shown = f"[{host}]" if ":" in host else host
        note(f"serving at http://{shown}:{listening.getsockname()[1]}/mcp; end it with Ctrl-C")
        app = http_app(graph, host, token, web.cors or [])
        config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1)
        try:
            Ending(config).run(sockets=[listening])
        except KeyboardInterrupt:
            _leave(close, INTERRUPTED)
        _leave(close, 0)


@expand_records
def bfs(
    *,
    place: Annotated[str | None, typer.Argument(metavar="GRAPH", help="A graph's folder, or an address.")] = None,
    request: Annotated[str | None, typer.Argument(metavar="REQUEST", help="JSON; - reads it from input.")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of requests and exit.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Request and response as the article has them.")] = False,
    server: ServerOptions,
) -> None:
    """Print the part of a graph around some nodes, as BFS-QL selects it.

    byokg bfs GRAPH '{"seeds": ["city/paris"], "max_hops": 1}'

    byokg bfs GRAPH '{"seeds": ["Heat"], "max_hops": 2, "edge_filter": {"predicates": ["directed_by"]}, "limit": 50}'

    Seeds are ids, or names that one node has; find ids with: byokg link GRAPH NAME. Filters select items that come
    first and in full; the rest are stubs.
    """
    from byokg.graph.bfsql.protocol import BfsRequest, StrictBfsRequest, read_request, shown_schema

    if schema:
        print_json(shown_schema(BfsRequest))
        return
    if place is None or request is None:
        raise ConfigError('give a graph and a request: byokg bfs GRAPH \'{"seeds": ["ID"], "max_hops": 1}\'')
    from byokg.graph.bfsql.engine import bfs_query
    from byokg.open import use_graph
    from byokg.retrieval.graph_tools import GraphTools

    text = sys.stdin.read() if request == "-" else request
    if strict:
        asked = BfsRequest.model_validate(read_request(StrictBfsRequest, text).model_dump(exclude_none=True))
    else:
        asked = read_request(BfsRequest, text)
    with use_graph(place, **server.settings(place)) as store:
        tools = GraphTools(store)
        print_json(bfs_query(store, asked, tools.nearest, tools.relevance, strict))


@dataclass(frozen=True)
class PathOptions:
    """Limits of a path search, and the edges that are inferred for it."""

    timeout: Annotated[float, typer.Option(help="Seconds at most.")] = 10.0
    rules: Annotated[Path | None, typer.Option(help="Infer edges by the rules in this file: IF {…} THEN {…}.")] = None
    schema: Annotated[bool, typer.Option("--schema", help="Infer edges by the graph's own RDFS and OWL.")] = False
    counts: Annotated[bool, typer.Option("--count", help="Print how many paths there are, and no path.")] = False
    most: Annotated[int, typer.Option("--max-paths", help="Paths at most, where the query has no LIMIT.")] = 10_000


@expand_records
def paths(
    *,
    place: Place,
    query: Annotated[str, typer.Argument(help="PATHS START … END … VIA …, @FILE, or - for standard input.")],
    form: Annotated[PathFormat, typer.Option("--format", help="How paths are written.")] = PathFormat.TABLE,
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
    search: PathOptions,
    server: ServerOptions,
) -> None:
    """Find paths between nodes with a path query, and print or draw them.

    byokg paths GRAPH 'PATHS START ?x = <Danube> END ?y = <Paris> VIA UNDIRECTED ?p'

    Start and end are ids, or names that one node has.
    """
    from byokg.files import write_file
    from byokg.graph.pathql.evaluate import count
    from byokg.graph.pathql.evaluate import paths as run
    from byokg.graph.pathql.extras import drawing
    from byokg.graph.pathql.extras.rules import schema_rules
    from byokg.graph.pathql.grammar import parse_rules
    from byokg.graph.pathql.search import PathLimits
    from byokg.open import use_graph

    text = sys.stdin.read() if query == "-" else query
    if query.startswith("@"):
        text = _text_of(Path(query[1:]))
    with use_graph(place, **server.settings(place)) as store, _proposals(store):
        wanted = [] if search.rules is None else parse_rules(_text_of(search.rules))
        if search.schema:
            if store.columnar is None:
                raise ConfigError("--schema is for graph folders; a server infers by itself")
            wanted += schema_rules(store.columnar)
        if search.counts:
            if wanted:
                raise ConfigError("--count counts paths along stored edges; leave --rules and --schema out")
            number, truncated = count(store, text, PathLimits(search.timeout))
            print(f"{number:,}{' or more: a limit was reached' if truncated else ''}")
            return
        found = run(store, text, PathLimits(search.timeout, search.most), wanted)
        match form:
            case PathFormat.SVG:
                written = drawing.svg(found)
            case PathFormat.HTML:
                from byokg.evaluation.report.page import build_paths_page

                written = build_paths_page(drawing.describe(found))
            case PathFormat.TABLE | PathFormat.TEXT | PathFormat.JSON:
                written = getattr(found, form.value)()
    if out is None:
        print(written)
    else:
        write_file(out, [written.encode(), b"\n"])
        note(f"wrote {out}")


@contextmanager
def _proposals(store: GraphStore) -> Iterator[None]:
    """Have an unknown node reported with the nearest ones."""
    try:
        yield
    except EntityNotFound as error:
        from byokg.retrieval.graph_tools import GraphTools

        raise GraphTools(store).propose(error) from None


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {str(file)!r}: {error}") from error
