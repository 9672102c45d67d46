"""Local HTTP server of one page about runs in their present state.

`GET` reads; `POST ask` runs a pipeline, and `POST pause` marks the folder of a run, the one thing that is written. The
address grants all of it, so it holds a secret that is made anew at every start, and only requests to this machine by
its own name are answered: a page of another site has neither. Data of runs and graphs travels as JSON, and becomes text
in the page, never markup.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from byokg.errors import ByokgError
from byokg.evaluation.metrics import PROFILE
from byokg.evaluation.report.live import Ask, Event, LiveRuns
from byokg.evaluation.report.page import json_bytes, live_page

Describe = Callable[[str], Event]
"""Returns a node's description from the graph."""

_EVERY_S = 0.25
"""How often folders are looked at."""

_ALIVE_S = 15.0
"""Interval of keep-alive messages, which detect closed connections."""

_LONGEST_BODY = 100_000

_log = logging.getLogger(__name__)


class ViewServer(ThreadingHTTPServer):
    """The page's server; `serve_forever` runs it.

    Args:
        runs: the runs on the page.
        port: on 127.0.0.1; 0 takes any free port.
        ask: answers questions over a graph; None without a graph.
        describe: describes nodes; None without an open graph.
    """

    daemon_threads = True

    def __init__(self, runs: LiveRuns, port: int = 0, ask: Ask | None = None, describe: Describe | None = None) -> None:
        self._ended = threading.Event()  # before the port is taken: if it is not free, the server is closed at once
        super().__init__(("127.0.0.1", port), _Handler)
        self.runs = runs
        self.ask = ask
        self.describe = describe
        self.secret = secrets.token_urlsafe(16)
        self.page = live_page().encode("utf-8")
        self.profile = PROFILE
        """The profile last viewed: figures of others are counted on demand."""
        runs.look()
        for work in (self._watch, self._count):
            threading.Thread(target=work, daemon=True).start()

    @property
    def address(self) -> str:
        """Return what to open in a browser."""
        return f"http://127.0.0.1:{self.server_port}/{self.secret}/"

    def server_close(self) -> None:
        """Stop looking at folders, and close."""
        self._ended.set()
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log request errors; ignore client disconnects."""
        _log.debug("a request was not answered", exc_info=True)

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY_S):
            try:
                self.runs.look()
            except ByokgError as error:  # a folder that is being written: the next look finds it whole
                _log.info("%s", error)

    def _count(self) -> None:
        self._ended.wait(1.0)  # the page comes first
        while not self._ended.is_set():
            try:
                idle = not self.runs.count(self.profile)
            except ByokgError as error:
                _log.info("%s", error)
                idle = True
            self._ended.wait(_EVERY_S if idle else 0.01)


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    timeout = 60

    def do_GET(self) -> None:
        path, query = self._asked_for()
        if path is None:
            return
        runs = self.server.runs
        routes: dict[str, Callable[[], Mapping[str, Any]]] = {
            "runs": lambda: self._leaderboard(_one(query, "profile", PROFILE)),
            "summary": lambda: runs.summary(query.get("run", [])),
            "differences": lambda: runs.differences(query.get("run", [])),
            "question": lambda: self._drawn(runs.question(query.get("run", []), _one(query, "id"))),
        }
        if self.server.describe is not None:
            describe = self.server.describe
            routes["node"] = lambda: describe(_one(query, "id"))
        if path == "":
            self._send(200, "text/html; charset=utf-8", self.server.page)
        elif path == "events":
            self._events()
        elif path in routes:
            self._send_json(routes[path])
        else:
            self._send(404, "text/plain", b"there is nothing here")

    def do_POST(self) -> None:
        path, _ = self._asked_for()
        if path is None:
            return
        said = self.headers.get("Content-Length") or ""
        length = int(said) if said.isascii() and said.isdigit() else 0
        if path not in ("ask", "pause"):
            self._send(404, "text/plain", b"there is nothing here")
        elif path == "ask" and self.server.ask is None:
            self._send(404, "text/plain", b"no graph is open: byokg view RUNS graph.path=DIR")
        elif not 0 < length <= _LONGEST_BODY or self.headers.get_content_type() != "application/json":
            self._send(400, "text/plain", b"a request is sent as JSON")
        elif path == "pause":
            self._pause(self.rfile.read(length))
        elif self.server.ask is not None:
            self._ask(self.server.ask, self.rfile.read(length))

    def _pause(self, body: bytes) -> None:
        try:
            wanted = json.loads(body)
            name, paused = str(wanted["run"]), bool(wanted["paused"])
        except (ValueError, KeyError, TypeError):
            self._send(400, "text/plain", b"name a run, and whether it is paused")
            return

        def pause() -> Mapping[str, Any]:
            self.server.runs.named([name])[0].pause(paused)
            return {}

        self._send_json(pause)

    def _asked_for(self) -> tuple[str | None, dict[str, list[str]]]:
        """Return the path behind the secret, and the query; no path if the request was answered with a refusal."""
        port = self.server.server_port
        if self.headers.get("Host") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            self._send(403, "text/plain", b"this address is none of this machine's own")
            return None, {}
        address = urlsplit(self.path)
        _, secret, *rest = f"{address.path}/".split("/", 2)
        if not secrets.compare_digest(unquote(secret).encode("utf-8", "replace"), self.server.secret.encode()):
            self._send(403, "text/plain", b"open the address that byokg view printed; it changes with every start")
            return None, {}
        return rest[0].strip("/") if rest else "", parse_qs(address.query, keep_blank_values=True)

    def _leaderboard(self, profile: str) -> Mapping[str, Any]:
        made = self.server.runs.leaderboard(profile)
        self.server.profile = profile
        return {**made, "ask": self.server.ask is not None}

    def _drawn(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add to a question's record whether its nodes can be looked up."""
        return {**record, "graph": self.server.describe is not None}

    def _events(self) -> None:
        """Send the page the version of its data at every change."""
        self._head(200, "text/event-stream")
        version = -1
        while True:
            now, names = self.server.runs.wait(version, _ALIVE_S)
            line = b"data: " + _encoded({"version": now, "changed": names}) if now != version else b": nothing new"
            version = now
            if not self._write(line + b"\n\n"):
                return

    def _ask(self, ask: Ask, body: bytes) -> None:
        try:
            question = str(json.loads(body)["question"]).strip()
        except (ValueError, KeyError, TypeError):
            question = ""
        if not question:
            self._send(400, "text/plain", b"the question is empty")
            return
        self._head(200, "application/x-ndjson")

        def tell(event: Event) -> None:
            self._write(_encoded(event) + b"\n")

        try:
            tell({"record": self._drawn(ask(question, tell))})
        except ByokgError as error:
            tell({"error": f"{type(error).__name__}: {error}"})

    def _send_json(self, make: Callable[[], Mapping[str, Any]]) -> None:
        try:
            status, made = 200, make()
        except ByokgError as error:
            status, made = 404, {"error": str(error)}
        self._send(status, "application/json", _encoded(made))

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self._head(status, kind, len(body))
        self._write(body)

    def _head(self, status: int, kind: str, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in (
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ):
            self.send_header(name, value)
        self.end_headers()

    def _write(self, data: bytes) -> bool:
        """Send; True if the client is still connected."""
        try:
            self.wfile.write(data)
            self.wfile.flush()
        except OSError:
            return False
        return True

    def log_message(self, format: str, *values: Any) -> None:
        """Keep requests, which hold the secret, out of logs."""


def _encoded(value: Mapping[str, Any]) -> bytes:
    return json_bytes(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=list))


def _one(query: Mapping[str, list[str]], name: str, otherwise: str = "") -> str:
    return query.get(name, [otherwise])[-1]
