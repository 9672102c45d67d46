"""Genuine graph servers for tests, started on loopback by the `start` of `../shared/servers`, or of BYOKG_SERVERS_DIR.

A server is started once for a file of tests. Where it cannot be had, its tests are skipped with the reason, and those
of other servers run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.rdf.files import graph_quads
from byokg.types import Node, Triple
from tests.graph.bolt_server import free_port

FOLDER = Path(os.environ.get("BYOKG_SERVERS_DIR", Path(__file__).parents[3] / "shared" / "servers"))
GRAPH = "http://example.org/graph"
"""The graph that Virtuoso holds the triples in."""
_OPTIONS = {"fuseki": ["update"]}


@contextmanager
def started(kind: str, folder: Path) -> Iterator[str]:
    """Run a server that keeps its files in `folder`, and give its address; skips where it cannot run."""
    if not (FOLDER / "start").exists():
        pytest.skip(f"no servers in {FOLDER}: set BYOKG_SERVERS_DIR to the folder that has them")
    port = free_port()
    command = [str(FOLDER / "start"), kind, str(port), str(folder), *_OPTIONS.get(kind, [])]
    # Oxigraph's server is a program beside the interpreter, which need not be on the path.
    where = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=where) as process:
        assert process.stdout is not None and process.stderr is not None
        said, _, address = process.stdout.readline().strip().partition(" ")
        try:
            if said != "ready":
                process.wait(30)
                pytest.skip(f"{kind} does not start: {process.stderr.read().strip().splitlines()[-1:]}")
            yield address
        finally:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)


class RdfServer:
    """A SPARQL server whose triples can be replaced."""

    def __init__(self, kind: str, address: str, folder: Path) -> None:
        self.kind, self.address, self._folder = kind, address, folder
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

    def _sql(self, text: str) -> None:
        port = int(self.address.rsplit(":", 1)[1].split("/")[0]) + 1
        command = ["isql-vt", f"127.0.0.1:{port}", "dba", "dba", f"exec={text}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if "Error" in done.stderr + done.stdout:
            raise RuntimeError(done.stderr + done.stdout)


def _lines(graph: ColumnarGraph) -> Iterator[str]:
    for quad in graph_quads(graph):
        yield f"{quad.subject} {quad.predicate} {quad.object}"
