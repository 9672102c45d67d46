"""Genuine graph servers for tests, started on loopback by the `start` of `../shared/servers`, or of BYOKG_SERVERS_DIR.

A server is started once for a file of tests. Where it cannot be had, its tests are skipped with the reason, and those
of other servers run.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import httpx
import pytest

from byokg.errors import QueryTimeout, StoreUnavailable
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.rdf.files import graph_quads
from byokg.types import Node, Triple
from tests.graph.bolt_server import free_port

FOLDER = Path(os.environ.get("BYOKG_SERVERS_DIR", Path(__file__).parents[3] / "shared" / "servers"))
GRAPH = "http://example.org/graph"
"""The graph that Virtuoso holds the triples in."""
PATIENCE_S = 300.0
"""In which a server starts, however busy the machine is."""
_OPTIONS = {"fuseki": ["update"]}
_LOOK_S, _RESTS = 1.0, 0.2
"""How long a server is looked at, and the share of a processor below which it rests."""

Result = TypeVar("Result")


class Genuine:
    """A server on a port of its own, that keeps its files in a folder, so that it can be started again."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder, self.port = kind, folder, free_port()
        self.address = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers; skips where it cannot run."""
        command = [str(FOLDER / "start"), self.kind, str(self.port), str(self.folder), *_OPTIONS.get(self.kind, [])]
        # Oxigraph's server is a program beside the interpreter, which need not be on the path.
        where = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=where)
        assert self._process.stdout is not None and self._process.stderr is not None
        said, _, self.address = self._process.stdout.readline().strip().partition(" ")
        if said != "ready":
            self._process.wait(30)
            pytest.skip(f"{self.kind} does not start: {self._process.stderr.read().strip().splitlines()[-1:]}")

    def processes(self) -> list[int]:
        """Return the numbers of its processes."""
        found = [] if self._process is None else [self._process.pid]
        for number in found:  # which grows by the children
            with suppress(OSError):
                found += map(int, Path(f"/proc/{number}/task/{number}/children").read_text("utf-8").split())
        return found

    def processor_s(self) -> float:
        """Return the seconds of processor that it has used."""
        ticks = 0
        for number in self.processes():
            with suppress(OSError):
                fields = Path(f"/proc/{number}/stat").read_text("utf-8").rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        """Return the memory that it holds."""
        pages = 0
        for number in self.processes():
            with suppress(OSError):
                pages += int(Path(f"/proc/{number}/statm").read_text("utf-8").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def rests(self, within_s: float, memory_mb: float = math.inf) -> bool:
        """Tell whether it comes to use next to nothing of a processor within some seconds, and not too much memory."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline and self.memory_mb() < memory_mb:
            began, used = time.monotonic(), self.processor_s()
            time.sleep(_LOOK_S)
            if self.processor_s() - used < _RESTS * (time.monotonic() - began):
                return True
        return False

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Let it say nothing: its connections stay open, and new ones are taken by its machine."""
        held = self.processes()
        for number in held:
            os.kill(number, signal.SIGSTOP)
        try:
            while not all(map(_stopped, held)):
                time.sleep(0.01)
            yield
        finally:
            for number in held:
                os.kill(number, signal.SIGCONT)

    def stop(self) -> None:
        """End it; what it holds stays in its folder."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@contextmanager
def started(kind: str, folder: Path) -> Iterator[Genuine]:
    """Run a server that keeps its files in `folder`; skips where it cannot run."""
    if not (FOLDER / "start").exists():
        pytest.skip(f"no servers in {FOLDER}: set BYOKG_SERVERS_DIR to the folder that has them")
    server = Genuine(kind, folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def waits_for_a_restart(server: Genuine, ask: Callable[[], Result]) -> Result:
    """Stop a server, start it again in a second, and return what is answered to something asked meanwhile."""
    server.stop()
    again = threading.Timer(1.0, server.start)
    again.start()
    try:
        return ask()
    finally:
        again.join()


def _stopped(process: int) -> bool:
    """Tell whether each thread of a process stands still."""
    states = [
        task.read_text("utf-8").rpartition(")")[2].split()[0] for task in Path(f"/proc/{process}/task").glob("*/stat")
    ]
    return set(states) == {"T"}


def refused_while_silent(server: Genuine, ask: Callable[[], object]) -> float:
    """Let a server say nothing while it is asked something; return after how long that ended, with an error of ours."""
    with server.silent():
        began = time.monotonic()
        with pytest.raises((QueryTimeout, StoreUnavailable)):
            ask()
        return time.monotonic() - began


class RdfServer:
    """A SPARQL server whose triples can be replaced."""

    def __init__(self, genuine: Genuine) -> None:
        self.genuine, self.kind, self.address, self._folder = genuine, genuine.kind, genuine.address, genuine.folder
        self._loaded = 0

    def fill(self, nodes: Sequence[Node], edges: Sequence[Triple]) -> None:
        """Hold a graph, and nothing else."""
        self.load(f"{line} .\n" for line in _lines(ColumnarGraph.from_records(nodes, edges)))

    def load(self, lines: Iterable[str]) -> None:
        """Hold the triples in some lines of N-Triples, and nothing else."""
        text = "".join(lines)
        if self.kind == "virtuoso":
            self._loaded += 1
            file = self._folder / f"load{self._loaded}.nt"
            file.write_text(text, "utf-8")
            self._sql(f"sparql clear graph <{GRAPH}>; ttlp_mt(file_to_string_output('{file}'), '', '{GRAPH}', 255);")
            return
        store = self.address.replace("/kg/query", "/kg/data").replace("/query", "/store")
        answer = httpx.put(
            f"{store}?default",
            content=text.encode(),
            headers={"Content-Type": "application/n-triples"},
            timeout=120,
            trust_env=False,
        )
        answer.raise_for_status()

    def content(self) -> set[str]:
        """Return all triples of the graph, as lines."""
        query = f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ GRAPH <{GRAPH}> {{ ?s ?p ?o }} }}"
        if self.kind != "virtuoso":
            query = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
        headers = {"Accept": "application/n-triples, text/plain"}
        answer = httpx.get(self.address, params={"query": query}, headers=headers, timeout=60, trust_env=False)
        return set(answer.raise_for_status().text.splitlines())

    def keep(self) -> None:
        """Let what was loaded outlast the server's end."""
        if self.kind == "virtuoso":
            self._sql("checkpoint;")

    def _sql(self, text: str) -> None:
        port = int(self.address.rsplit(":", 1)[1].split("/")[0]) + 1
        command = ["isql-vt", f"127.0.0.1:{port}", "dba", "dba", f"exec={text}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if "Error" in done.stderr + done.stdout:
            raise RuntimeError(done.stderr + done.stdout)


def _lines(graph: ColumnarGraph) -> Iterator[str]:
    for quad in graph_quads(graph):
        yield f"{quad.subject} {quad.predicate} {quad.object}"
