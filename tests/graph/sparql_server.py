"""A SPARQL endpoint for tests: pyoxigraph behind the SPARQL protocol, on loopback. It misbehaves on demand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

pyoxigraph = pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'byokg[sparql]'")

JSON = "application/sparql-results+json"


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    method: str
    query: str
    graphs: tuple[str, ...]
    headers: dict[str, str]
    arrived: float


Fault = Callable[["Handler"], None]
"""Answers a request in place of the engine."""


@dataclass
class Endpoint:
    """A server and how it behaves."""

    store: Any
    cut_at: int | None = None
    """Rows after which answers are cut, silently, as public endpoints do."""
    faults: list[Fault] = field(default_factory=list)
    """What to do with the next requests, one each."""
    requests: list[Request] = field(default_factory=list)
    password: str | None = None
    """Value of the Authorization header to insist on."""
    url: str = ""
    called: str = ""
    """What it calls itself; one that is known not to cut its answers is not asked for their number."""


class Handler(BaseHTTPRequestHandler):
    """The SPARQL 1.1 protocol over pyoxigraph."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one segment, which is acknowledged at once
    endpoint: Endpoint

    def version_string(self) -> str:
        return self.endpoint.called or super().version_string()

    def do_GET(self) -> None:
        self.respond(parse_qs(urlsplit(self.path).query))

    def do_POST(self) -> None:
        assert self.headers["Content-Type"] == "application/x-www-form-urlencoded"
        self.respond(parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()))

    def respond(self, form: dict[str, list[str]]) -> None:
        endpoint, query = self.endpoint, form["query"][0]
        graphs = tuple(form.get("default-graph-uri", ()))
        headers = {name.lower(): value for name, value in self.headers.items()}
        endpoint.requests.append(Request(self.command, query, graphs, headers, time.monotonic()))
        if endpoint.password is not None and self.headers["Authorization"] != endpoint.password:
            return self.reply(401, "text/plain", b"who are you?")
        if endpoint.faults:
            return endpoint.faults.pop(0)(self)
        try:
            default = [pyoxigraph.NamedNode(graph) for graph in graphs] or None
            answer = endpoint.store.query(query, default_graph=default)
        except SyntaxError as error:
            return self.reply(400, "text/plain", str(error).encode())
        if isinstance(answer, pyoxigraph.QueryTriples):
            assert self.headers["Accept"].startswith("application/n-triples")
            return self.reply(200, "application/n-triples", answer.serialize(format=pyoxigraph.RdfFormat.N_TRIPLES))
        body = answer.serialize(format=pyoxigraph.QueryResultsFormat.JSON)
        if endpoint.cut_at is not None and isinstance(answer, pyoxigraph.QuerySolutions):
            body = first_rows(body, endpoint.cut_at)
        return self.reply(200, JSON, body)

    def reply(self, status: int, kind: str, body: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def first_rows(body: bytes, count: int) -> bytes:
    """Cut SPARQL's JSON results after some rows."""
    reply = json.loads(body)
    reply["results"]["bindings"] = reply["results"]["bindings"][:count]
    return json.dumps(reply).encode()


@contextmanager
def serving(store: Any) -> Iterator[Endpoint]:
    """Serve a store, and stop afterwards."""
    endpoint = Endpoint(store)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"endpoint": endpoint}))
    server.daemon_threads = True
    endpoint.url = f"http://127.0.0.1:{server.server_port}/sparql"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
