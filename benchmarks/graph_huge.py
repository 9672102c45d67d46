"""Measurements of `graph_scale.py --huge`: a graph larger than memory is built by the command line, and then queried.

The input is generated: edges and their names as compressed triples, and the same as N-Triples with an `rdfs:label` for
each node. Both processor and wall-clock seconds are printed, since other programs may run meanwhile.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.rows import Bar, Row, show_bars
from benchmarks.synthetic_graph import Size, write, write_labelled
from benchmarks.synthetic_names import typo

EDGES, NAMED, SMALLEST = 250_000_000, 0.16, 10_000_000
"""Edges of the largest graph, how many nodes there are for each, and the edges of that with which growth begins."""

FORMS = {"tsv": write, "nt": write_labelled}
_MINUTES = {"tsv": 25, "nt": 60}

_TOPOLOGY = ("relation.npy", "other.npy", "in_edge.npy", "out_index.npy", "in_index.npy", "edge_properties.arrow")
"""Files that hold edges; all others are about nodes and their names."""

_HUB_CAP, _MOST_NODES = 100, 1000
"""What the retriever of texts reads of a hub, and goes on from, unless told otherwise."""

_LOOK_S = 0.25
_PROGRAM = "from byokg.cli.main import main; main()"


def source(folder: Path, form: str, edges: int) -> Path:
    """Return a file with so many edges; made unless it is there."""
    path = folder / f"{edges // 1_000_000}M.{form}.zst"
    if not path.exists():
        making = path.with_name(f"partial-{path.name}")
        FORMS[form](making, Size(edges, int(edges * NAMED)))
        making.rename(path)
    return path


def command(text: Path, out: Path, memory: str) -> list[str]:
    """Return what builds a graph, as on the command line."""
    return [sys.executable, "-c", _PROGRAM, "graph", "build", str(text), "--out", str(out), "--memory", memory]


def build(text: Path, out: Path, memory: str) -> dict[str, float]:
    """Build a graph with its names in a process of its own; return what that took, and what lies on the disk."""
    began, most, anonymous = time.perf_counter(), 0, 0
    log = out.with_suffix(".log")
    with log.open("wb") as said:
        process = subprocess.Popen(command(text, out, memory), stdout=said, stderr=subprocess.STDOUT)
        while True:
            found, status, usage = os.wait4(process.pid, os.WNOHANG)
            if found:
                break
            with suppress(OSError, StopIteration):  # the process may end meanwhile, and its folder be renamed
                anonymous = max(anonymous, _anonymous(process.pid))
                most = max(most, _size(out.parent.glob(f".{out.name}.partial-*/**/*")))
            time.sleep(_LOOK_S)
    if status:
        raise SystemExit(log.read_text())
    seconds = time.perf_counter() - began
    counts = re.search(r"([0-9,]+) nodes, ([0-9,]+) edges.* in ([0-9.]+) s", log.read_text())
    names = re.search(r"indexed ([0-9,]+) .* in ([0-9.]+) s", log.read_text())
    assert counts and names, log.read_text()
    nodes, edges = (int(number.replace(",", "")) for number in counts.groups()[:2])
    about_edges = _size(out / name for name in _TOPOLOGY)
    return {
        "edges": edges,
        "nodes": nodes,
        "text MB": text.stat().st_size / 1e6,
        "build s": seconds,
        "build CPU s": usage.ru_utime + usage.ru_stime,
        "build CPU µs an edge": 1e6 * (usage.ru_utime + usage.ru_stime) / edges,
        "of it names s": float(names[2]),
        "peak resident MB": usage.ru_maxrss / 1024,
        "peak anonymous MB": anonymous / 1024,
        "most on disk meanwhile MB": most / 1e6,
        "bytes an edge": about_edges / edges,
        "bytes a name": (_size(out.rglob("*")) - about_edges) / nodes,
    }


def _anonymous(process: int) -> int:
    """Return the memory of a process that is no file's, in KB."""
    lines = Path(f"/proc/{process}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def _size(paths: Any) -> int:
    total = 0
    for path in paths:
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def use(folder: Path) -> dict[str, float]:
    """Ask a graph what the bars are about: milliseconds of the processor, of several tries the median."""
    import numpy as np

    from byokg.graph.columnar.graph import ColumnarGraph
    from byokg.graph.name_indexes import name_index
    from byokg.graph.pathql.evaluate import paths
    from byokg.graph.pathql.query import connecting
    from byokg.graph.store import Direction
    from byokg.graph.traversal import k_hop_edges, neighbours

    ColumnarGraph.open(folder)
    found = {"open ms": _median([lambda: ColumnarGraph.open(folder)] * 9)}
    graph = ColumnarGraph.open(folder)
    rng = np.random.default_rng(11)

    def some(count: int) -> list[Any]:
        return graph.ids(rng.integers(0, graph.node_count, count))

    ten = some(10)
    found["one hop of 10 nodes ms"] = _median([lambda: neighbours(graph, ten, Direction.BOTH)] * 200)
    degree = np.diff(graph.topology.out_index) + np.diff(graph.topology.in_index)
    hubs = graph.ids(np.argpartition(-degree, 10)[:10])
    found["edges of the 10 hubs"] = int(np.partition(-degree, 10)[:10].sum() * -1)
    del degree

    def two_hops() -> int:
        caps = {"per_node_cap": _HUB_CAP, "per_hop_cap": _MOST_NODES}
        return len(k_hop_edges(graph, hubs, 2, Direction.BOTH, None, **caps).edges)

    found["two hops of 10 hubs, edges"] = two_hops()
    found["two hops of 10 hubs ms"] = _median([two_hops] * 5)

    def join(ends: tuple[Any, Any]) -> list[Any]:
        return list(paths(graph, connecting(*ends, 1, 8, None, Direction.BOTH)))

    pairs = [(some(1), some(1)) for _ in range(20)]
    found["pairs of 20 joined"] = sum(bool(join(pair)) for pair in pairs)
    found["shortest path ms"] = _median([partial(join, pair) for pair in pairs])
    index, chance = name_index(graph), random.Random(5)
    texts = [[typo(node.name, chance) for node in graph.nodes(some(5))] for _ in range(20)]
    index.search(texts[0])
    found["five misspelt names ms"] = _median([partial(index.search, five) for five in texts[1:]])
    found["private MB"] = _private_mb()
    return found


def _median(actions: Sequence[Callable[[], object]]) -> float:
    times = []
    for action in actions:
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return sorted(times)[len(times) // 2] * 1e3


def _private_mb() -> float:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty")) / 1024


def killed(text: Path, folder: Path, memory: str, times: int, whole: Path, build_s: float) -> dict[str, float]:
    """Build a graph that is killed again and again at random moments; tell whether it ends with the same bytes."""
    chance, out, kills = random.Random(3), folder / f"{text.name}.killed", 0
    shutil.rmtree(out, ignore_errors=True)
    began = time.perf_counter()
    while not out.exists():
        with out.with_suffix(".log").open("wb") as said:
            process = subprocess.Popen(command(text, out, memory), stdout=said, stderr=subprocess.STDOUT)
            try:
                status = process.wait(chance.uniform(0.02, 0.3) * build_s if kills < times else None)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
                continue
        if status:
            raise SystemExit(out.with_suffix(".log").read_text())
    same = _contents(out) == _contents(whole)
    shutil.rmtree(out)
    return {"kills": kills, "same bytes after kills": int(same), "with kills s": time.perf_counter() - began}


def _contents(folder: Path) -> dict[str, bytes]:
    import hashlib

    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).digest() for path in files}


def bars(form: str, largest: str, first: str, rows: Sequence[Row]) -> None:
    """Say which bars the figures reach."""
    of = {row.name: row.value for row in rows}
    asked = [
        Bar(f"{largest}: build CPU", "≤", 2 * 60 * _MINUTES[form]),
        Bar(f"{largest}: peak resident", "≤", 4096),
        Bar(f"{largest}: bytes an edge", "≤", 20),
        Bar(f"{largest}: bytes a name", "≤", 70),
        Bar(f"{largest}: open", "≤", 50),
        Bar(f"{largest}: one hop of 10 nodes", "≤", 0.2),
        Bar(f"{largest}: two hops of 10 hubs", "≤", 100),
        Bar(f"{largest}: shortest path", "≤", 50),
        Bar(f"{largest}: five misspelt names", "≤", 50),
        Bar(f"{largest}: private", "≤", 200),
    ]
    if first != largest:
        grown = Bar(f"{largest}: build CPU µs an edge", "≤", round(1.2 * of[f"{first}: build CPU µs an edge"], 2))
        asked.append(grown)
    show_bars(rows, [bar for bar in asked if bar.name in of])
