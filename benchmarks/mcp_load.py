"""Resources of an MCP server after many calls, and times of cancellation and shutdown.

python benchmarks/mcp_load.py [--data DIR] [--json FILE] [--calls N] [--clients N]

The server runs in a process of its own over the WebQSP graph; clients are those of the protocol's own SDK, over HTTP.
Threads, open files and memory are the server's, as Linux counts them, after the first 200 calls and at the end. The
first `run_query` is one of a small graph with an ArcadeDB engine, as soon as the server listens and ten seconds later.

Work is ended a fifth of a second after it began, in this process: the time is that until its thread has returned.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.rows import Bar, Row, make_parser, show, show_bars  # noqa: E402
from byokg.errors import CallStopped  # noqa: E402
from byokg.graph.cancellation import CancelToken  # noqa: E402
from byokg.graph.columnar.graph import ColumnarGraph  # noqa: E402
from byokg.graph.importers.choose import import_graph  # noqa: E402
from byokg.graph.pathql.evaluate import prepare  # noqa: E402
from byokg.retrieval.graph_tools import GraphTools  # noqa: E402

WARM, BEGUN_S = 200, 0.2

BARS = [
    Bar("threads grown since", "≤", 0),
    Bar("files grown since", "≤", 0),
    Bar("memory grown since", "≤", 20),
    Bar("memory grown by 16 intersections of 100 hubs at once", "≤", 5),
    Bar("intersection of 100 hubs: ended after", "≤", 500),
    Bar("search of 3 hops: ended after", "≤", 500),
    Bar("paths between hubs: ended after", "≤", 500),
    Bar("all paths: ended after", "≤", 500),
    Bar("told to end amid 16 such intersections: gone after", "≤", 2),
    Bar("first run_query, 0 s after the start", "≤", 1),
    Bar("first run_query, 10 s after the start", "≤", 1),
]


def held(pid: int) -> tuple[int, int, float]:
    """Return how many threads and files a process has, and its memory in MB, without the pages of files it reads."""
    process = Path(f"/proc/{pid}")
    status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines())
    own = int(status["RssAnon"].split()[0]) / 1000
    return len(list((process / "task").iterdir())), len(list((process / "fd").iterdir())), own


@contextmanager
def served(graph: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server; yields its process and its address."""
    command = [sys.executable, "-m", "byokg", "mcp", "serve", str(graph), "--http", "--port", "0", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    while "serving at " not in (line := process.stderr.readline()):
        assert line, "the server did not start"
    threading.Thread(target=process.stderr.read, daemon=True).start()
    yield process, line.split()[2].removesuffix(";")
    if process.poll() is None:
        process.kill()
    process.wait()


def requests(store: ColumnarGraph) -> list[tuple[str, dict[str, Any]]]:
    """Return calls of every tool, around nodes of many and of few edges."""
    order = np.argsort(-store.degree(np.arange(store.node_count)), kind="stable")
    ids = store.ids(order[:: len(order) // 40][:40])
    calls: list[tuple[str, dict[str, Any]]] = []
    for at, id in enumerate(ids):
        other = ids[(at + 7) % len(ids)]
        calls += [
            ("bfs_query", {"seeds": [id], "max_hops": 1 + at % 2, "question": "where was it made?"}),
            ("neighbors", {"id": id}),
            ("describe_entity", {"id": id}),
            ("search_entities", {"query": id[:20]}),
            ("intersect_subgraphs", {"seeds": [id, other], "k": 1}),
            ("shortest_paths", {"sources": [id], "targets": [other]}),
        ]
    return calls


async def load(url: str, pid: int, calls: Sequence[tuple[str, dict[str, Any]]], count: int, clients: int) -> list[Row]:
    """Call the tools from many clients at once."""
    from mcp import Client

    took: list[float] = []
    failed = 0
    marks: list[tuple[int, int, float]] = []

    async def one(number: int) -> None:
        nonlocal failed
        async with Client(url) as client:
            for at in range(number, count, clients):
                tool, arguments = calls[at % len(calls)]
                began = time.perf_counter()
                result = await client.call_tool(tool, arguments)
                took.append(time.perf_counter() - began)
                failed += bool(result.is_error)
                if len(took) == WARM:
                    marks.append(held(pid))

    began = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(clients)))
    seconds = time.perf_counter() - began
    await asyncio.sleep(1.0)
    marks.append(held(pid))
    names = [("threads", ""), ("files", ""), ("memory", "MB")]
    rows = [Row(f"{count:,} calls by {clients} clients: failed", failed), Row("calls a second", count / seconds)]
    rows.append(Row("one call, median", 1000 * median(took), "ms"))
    for place, (name, unit) in enumerate(names):
        rows += [
            Row(f"{name} after {WARM} calls", marks[0][place], unit),
            Row(f"{name} at the end", marks[-1][place], unit),
        ]
    rows += [
        Row("threads grown since", marks[-1][0] - marks[0][0]),
        Row("files grown since", marks[-1][1] - marks[0][1]),
        Row("memory grown since", 100 * (marks[-1][2] / marks[0][2] - 1), "%"),
    ]
    return rows


def heavy(store: ColumnarGraph) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return calls that take long."""
    order = np.argsort(-store.degree(np.arange(store.node_count)), kind="stable")
    hubs = store.ids(order[:100])
    return {
        "intersection of 100 hubs": ("intersect_subgraphs", {"seeds": hubs, "k": 3}),
        "search of 3 hops": ("bfs_query", {"seeds": hubs, "max_hops": 3}),
        "paths between hubs": ("shortest_paths", {"sources": hubs[:10], "targets": hubs[10:20], "k": 50}),
        "all paths": ("path_query", {"query": f"PATHS ALL START ?x = <{hubs[0]}> END ?y = <{hubs[1]}> VIA ?p"}),
    }


def endings(store: ColumnarGraph) -> list[Row]:
    """End work that has begun."""
    tools = GraphTools(store, path_queries=True)
    prepare()  # as the server does when it starts
    rows = []
    for name, (tool, arguments) in heavy(store).items():
        stop = CancelToken()

        def work(tool: str = tool, arguments: dict[str, Any] = arguments, stop: CancelToken = stop) -> None:
            with stop.work(), suppress(CallStopped):
                while True:
                    tools.call(tool, arguments)

        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(BEGUN_S)
        began = time.perf_counter()
        stop.end()
        thread.join()
        rows.append(Row(f"{name}: ended after", 1000 * (time.perf_counter() - began), "ms"))
    return rows


async def gathered(url: str, calls: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Make calls at once, a client for each, whatever comes of them."""
    from mcp import Client

    async def one(tool: str, arguments: dict[str, Any]) -> None:
        async with Client(url) as client:
            await client.call_tool(tool, arguments)

    await asyncio.gather(*(one(*call) for call in calls))


async def leaving(url: str, process: subprocess.Popen[str], calls: Sequence[tuple[str, dict[str, Any]]]) -> float:
    """Return how long a server takes to go while clients wait for its calls, in seconds."""
    waiting = asyncio.create_task(gathered(url, calls))
    await asyncio.sleep(1.0)
    began = time.perf_counter()
    process.send_signal(signal.SIGTERM)
    while process.poll() is None:
        await asyncio.sleep(0.01)
    took = time.perf_counter() - began
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    return took


def first_queries(place: Path) -> list[Row]:
    """Return how long the first `run_query` takes, at once and after what a model takes to think."""
    from mcp import Client

    from byokg.graph.engines.arcadedb import build_arcade

    build_arcade(ColumnarGraph.from_triples([("a", "r", "b")]), place)

    async def asked(url: str, after_s: float) -> float:
        async with Client(url) as client:
            await client.list_tools()
            await asyncio.sleep(after_s)
            began = time.perf_counter()
            await client.call_tool("run_query", {"query": "MATCH ()-[r]->() RETURN count(r) AS n"})
            return time.perf_counter() - began

    rows = []
    for after_s in (0.0, 10.0):
        with served(place) as (_, url):
            rows.append(Row(f"first run_query, {after_s:g} s after the start", asyncio.run(asked(url, after_s)), "s"))
    return rows


def main() -> int:
    parser = make_parser(__doc__, "folder with freebase_core")
    parser.add_argument("--calls", type=int, default=2000, help="calls in all (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=20, help="clients at once (default: %(default)s)")
    options = parser.parse_args()
    store = import_graph(options.data / "freebase_core" / "graph_full.tsv.xz")
    rows = endings(store)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "webqsp.graph"
        store.save(place)
        with served(place) as (process, url):
            rows += asyncio.run(load(url, process.pid, requests(store), options.calls, options.clients))
            intersection = heavy(store)["intersection of 100 hubs"]
            before = held(process.pid)[2]
            asyncio.run(gathered(url, [intersection] * 16))
            grown = 100 * (held(process.pid)[2] / before - 1)
            rows.append(Row("memory grown by 16 intersections of 100 hubs at once", grown, "%"))
            began = time.perf_counter()
            asyncio.run(gathered(url, [("neighbors", {"id": store.ids(np.array([0]))[0]})]))
            rows.append(Row("next call, with its connection", 1000 * (time.perf_counter() - began), "ms"))
            took = asyncio.run(leaving(url, process, [intersection] * 16))
            rows.append(Row("told to end amid 16 such intersections: gone after", took, "s"))
        rows += first_queries(Path(folder) / "small.graph")
    show(rows, "MCP server", options.json)
    show_bars(rows, BARS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
