"""`byokg mcp`: a graph for programs that speak the Model Context Protocol. What is heavy is imported when it runs."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from byokg.cli.terminal import note
from byokg.errors import ConfigError, MissingExtra

if TYPE_CHECKING:
    from byokg.cli.mcp_server import GraphServer

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

    from byokg.cli.mcp_server import GraphServer, LogLines, serve_stdio
    from byokg.graph.address import is_address
    from byokg.graph.engines import engines_in
    from byokg.graph.places import close, open_graph, open_queryable
    from byokg.graph.query import QueryStore
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
        tools = GraphTools(store, queries=queries, budget_tokens=budget_tokens)
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

    from byokg.cli.mcp_server import http_app

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
