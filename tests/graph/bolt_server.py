"""A real Bolt server for tests: ArcadeDB's, which comes in a wheel with everything that it needs to run."""

from __future__ import annotations

import base64
import contextlib
import json
import signal
import socket
import subprocess
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from byokg.types import Node, Triple

PASSWORD = "only-for-tests"
COMMAND_TIMEOUT_S = 2.0
"""After which the server ends a query by itself."""

_START_S = 60.0


class BoltDatabases:
    """A running server, and databases in it that come and go."""

    def __init__(self, process: subprocess.Popen[bytes], http_port: int, bolt_port: int, log: Path) -> None:
        import neo4j

        self._process = process
        self._http_port = http_port
        self._log = log
        self.uri = f"bolt://127.0.0.1:{bolt_port}"
        self.port = bolt_port
        self.http = f"127.0.0.1:{http_port}"
        self._driver = neo4j.GraphDatabase.driver(self.uri, auth=("root", PASSWORD))
        self._made: list[str] = []

    def wait(self) -> None:
        """Return when the server answers."""
        deadline = time.monotonic() + _START_S
        while True:
            try:
                self.query("graph", "RETURN 1")
                return
            except Exception as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server did not start: {self._log.read_text()[-2000:]}") from error
                time.sleep(0.1)

    def query(self, database: str, text: str, /, **parameters: Any) -> list[list[Any]]:
        """Run one query as root, outside the code under test."""
        return [record.values() for record in self.records(database, text, **parameters)]

    def records(self, database: str, text: str, /, **parameters: Any) -> list[Any]:
        """Run one query as `query` does, and return the driver's records."""
        return list(self._driver.execute_query(text, parameters, database_=database).records)

    def command(self, text: str) -> None:
        """Send a command to the server itself."""
        request = urllib.request.Request(
            f"http://{self.http}/api/v1/server",
            json.dumps({"command": text}).encode(),
            {"Authorization": f"Basic {base64.b64encode(f'root:{PASSWORD}'.encode()).decode()}"},
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            answer.read()

    def new_database(self) -> str:
        """Make an empty database."""
        name = f"t{uuid.uuid4().hex[:12]}"
        self.command(f"create database {name}")
        self._made.append(name)
        return name

    def drop_databases(self) -> None:
        """Drop what `new_database` made."""
        while self._made:
            self.command(f"drop database {self._made.pop()}")

    def load(self, database: str, nodes: Sequence[Node], edges: Sequence[Triple], name_always: bool) -> None:
        """Put a graph into a database: ids in the property `id`, names in `name`, the type as the label."""
        load_graph(lambda text, **parameters: self.query(database, text, **parameters), nodes, edges, name_always)

    def close(self) -> None:
        """End the server."""
        self._driver.close()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def load_graph(query: Any, nodes: Sequence[Node], edges: Sequence[Triple], name_always: bool) -> None:
    """Create nodes and edges through the driver, neighbours that are alike together.

    Args:
        query: runs a text with parameters.
        nodes: each gets its types as labels.
        edges: in the order in which they are created.
        name_always: give a node a name also where that is its id.
    """
    types = {node.id: "".join(f":{quoted(label)}" for label in node.types) for node in nodes}
    for label, alike in groupby(nodes, lambda node: types[node.id]):
        rows = [
            {**node.properties, "id": node.id} | ({"name": node.name} if name_always or node.name != node.id else {})
            for node in alike
        ]
        query(f"UNWIND $rows AS held CREATE (n{label}) SET n = held", rows=rows)
    for (head, relation, tail), some in groupby(edges, lambda e: (types[e.head], e.relation, types[e.tail])):
        query(
            f"UNWIND $rows AS row MATCH (a{head} {{id: row.head}}), (b{tail} {{id: row.tail}}) "
            f"CREATE (a)-[r:{quoted(relation)}]->(b) SET r = row.held",
            rows=[{"head": edge.head, "tail": edge.tail, "held": dict(edge.properties)} for edge in some],
        )


def quoted(name: str) -> str:
    """Write a name in backticks."""
    return f"`{name.replace('`', '``')}`"


def start(folder: Path) -> BoltDatabases:
    """Start a server that keeps its files in `folder`."""
    package = pytest.importorskip("arcadedb_embedded", reason="needs arcadedb-embedded: pip install 'byokg[cypher]'")
    pytest.importorskip("neo4j", reason="needs neo4j: pip install 'byokg[neo4j]'")
    home = Path(package.__file__).parent
    http_port, bolt_port = free_port(), free_port()
    settings = {
        "server.rootPath": str(folder),
        "server.rootPassword": PASSWORD,
        "server.httpIncomingHost": "127.0.0.1",
        "server.httpIncomingPort": str(http_port),
        "server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "bolt.host": "127.0.0.1",
        "bolt.port": str(bolt_port),
        "server.defaultDatabases": "graph[root]",
        "command.timeout": str(round(COMMAND_TIMEOUT_S * 1000)),
        "opencypher.loadCsv.allowFileUrls": "false",
        "opencypher.loadCsv.allowRemoteUrls": "false",
    }
    command = [
        str(home / "jre/bin/java"),
        "-Xmx512m",
        "--add-modules=jdk.incubator.vector",
        "--enable-native-access=ALL-UNNAMED",
        "-cp",
        str(home / "jars/*"),
        *(f"-Darcadedb.{key}={value}" for key, value in settings.items()),
        "com.arcadedb.server.ArcadeDBServer",
    ]
    log = folder / "output.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    server = BoltDatabases(process, http_port, bolt_port, log)
    try:
        server.wait()
    except BaseException:
        server.close()
        raise
    return server


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def running(folder: Path) -> Iterator[BoltDatabases]:
    """Start a server, and end it afterwards."""
    server = start(folder)
    try:
        yield server
    finally:
        server.close()


class BreakableWire:
    """Passes bytes on to a server, until it is told to drop its connections."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.accepted = 0
        self.said = bytearray()
        """What clients sent."""
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def break_all(self) -> None:
        """Drop every connection; new ones are accepted."""
        while self._sockets:
            with contextlib.suppress(OSError):
                self._sockets.pop().shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop accepting, and drop every connection."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.break_all()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            server = socket.create_connection(("127.0.0.1", self._port))
            self._sockets += [client, server]
            for source, target, heard in ((client, server, self.said), (server, client, None)):
                threading.Thread(target=_pass_on, args=(source, target, heard), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, heard: bytearray | None) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            if heard is not None:
                heard += data
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
