"""Comparison of byokg with networkx, igraph, rustworkx and the reference toolkit on the same graph and questions.

python benchmarks/graph_peers.py [--triples N] [--entities N] [--reference PYTHON] [--only NAME ...] [--json FILE]

Each library loads the text and answers in a process of its own, one after the other; those not installed are skipped.
PYTHON is an interpreter in whose environment `graphrag-byokg` is installed (it needs torch and numpy < 2).

All walk outgoing edges, as the reference toolkit does. "Triples" are edges in the library's own form:
arrays of numbers (byokg, with texts in a row of its own), edge numbers (igraph), tuples of objects (the others).
Shortest paths are one for each pair; the reference toolkit finds one for each target, from whichever source is
nearest.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROWS = {
    "load s": "load s",
    "memory": "memory MB",
    "one": "one hop from 10 random entities ms",
    "two": "two hops from the 10 biggest hubs ms",
    "two texts": "the same, each triple spelled out ms",
    "paths": "shortest paths 5 x 5 ms",
    "one triples": "triples of one hop",
    "two triples": "triples of two hops",
    "joined": "pairs (targets) joined by a path",
}

Answers = dict[str, Callable[[], Any]]


class Asked:
    """What every library is asked about: the same names."""

    def __init__(self, source: Path) -> None:
        degree = Counter(head for head, _, _ in triples(source))
        names = sorted(degree)
        self.hubs = [name for name, _ in sorted(degree.items(), key=lambda item: (-item[1], item[0]))[:10]]
        chance = random.Random(11)
        self.ten, self.sources, self.targets = (chance.sample(names, count) for count in (10, 5, 5))

    @classmethod
    def read(cls, file: Path) -> Asked:
        """Return what was written to a file."""
        asked = cls.__new__(cls)
        vars(asked).update(json.loads(file.read_text("utf-8")))
        return asked


def triples(source: Path) -> Iterator[list[str]]:
    """Yield the lines of a file of triples."""
    with source.open(encoding="utf-8", newline="") as file:
        yield from csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


# One function for each library: load the file, and return what answers the questions


def byokg(source: Path, asked: Asked) -> Answers:
    """Build the graph in a process of its own, which counts as loading, and open it."""
    from byokg.graph.columnar.graph import ColumnarGraph
    from byokg.graph.pathql.evaluate import paths
    from byokg.graph.pathql.query import connecting
    from byokg.graph.store import Direction
    from byokg.graph.traversal import k_hop_edges, neighbours
    from byokg.types import EntityId

    folder = source.with_suffix(".graph")
    program = "import sys; from byokg.graph.importers.choose import build_graph; build_graph(sys.argv[1], sys.argv[2])"
    subprocess.run([sys.executable, "-c", program, str(source), str(folder)], check=True)
    graph = ColumnarGraph.open(folder)
    hubs, ten, sources, targets = (
        [EntityId(name) for name in names] for names in (asked.hubs, asked.ten, asked.sources, asked.targets)
    )

    def two_texts() -> list[tuple[str, str, str]]:
        edges = k_hop_edges(graph, hubs, 2, Direction.OUT).edges
        labels = [graph.relations[number] for number in edges.relation.tolist()]
        return list(zip(graph.ids(edges.head), labels, graph.ids(edges.tail), strict=True))

    return {
        "one": lambda: neighbours(graph, ten, Direction.OUT),
        "two": lambda: k_hop_edges(graph, hubs, 2, Direction.OUT).edges,
        "two texts": two_texts,
        "paths": lambda: list(paths(graph, connecting(sources, targets, 1, 100, None, Direction.OUT))),
    }


def networkx(source: Path, asked: Asked) -> Answers:
    """A MultiDiGraph keyed by relation, so that repeated triples fall together."""
    import networkx as nx

    graph = nx.MultiDiGraph()
    graph.add_edges_from((head, tail, relation) for head, relation, tail in triples(source))

    def edges(nodes: Sequence[str]) -> set[tuple[str, str, str]]:
        return set(graph.out_edges(nodes, keys=True))

    def two() -> set[tuple[str, str, str]]:
        first = edges(asked.hubs)
        return first | edges(list({tail for _, tail, _ in first}))

    def paths() -> list[list[str]]:
        found = []
        for start in asked.sources:
            for end in asked.targets:
                try:
                    found.append(nx.bidirectional_shortest_path(graph, start, end))
                except nx.NetworkXNoPath:
                    continue
        return found

    return {"one": lambda: edges(asked.ten), "two": two, "paths": paths}


def igraph(source: Path, asked: Asked) -> Answers:
    """Numbered nodes with names beside them; repeated triples are dropped while reading."""
    import igraph as ig

    numbers, relations, rows = numbered(source)
    graph = ig.Graph(n=len(numbers), edges=[(head, tail) for head, _, tail in rows], directed=True)
    graph.es["relation"] = [relation for _, relation, _ in rows]
    del relations, rows
    hubs, ten, sources, targets = (
        [numbers[name] for name in names] for names in (asked.hubs, asked.ten, asked.sources, asked.targets)
    )

    def edges(nodes: Sequence[int]) -> set[int]:
        return {edge for node in nodes for edge in graph.incident(node, mode="out")}

    def two() -> set[int]:
        first = edges(hubs)
        ends = {end for node in hubs for end in graph.neighbors(node, mode="out")}
        return first | edges(list(ends))

    def paths() -> list[list[int]]:
        found = (path for start in sources for path in graph.get_shortest_paths(start, targets, output="vpath"))
        return [path for path in found if path]

    return {"one": lambda: edges(ten), "two": two, "paths": paths}


def rustworkx(source: Path, asked: Asked) -> Answers:
    """Numbered nodes with names beside them; repeated triples are dropped while reading."""
    import rustworkx as rx

    numbers, relations, rows = numbered(source)
    graph = rx.PyDiGraph()
    graph.add_nodes_from(list(numbers))
    graph.add_edges_from([(head, tail, relation) for head, relation, tail in rows])
    del relations, rows
    hubs, ten, sources, targets = (
        [numbers[name] for name in names] for names in (asked.hubs, asked.ten, asked.sources, asked.targets)
    )

    def edges(nodes: Sequence[int]) -> set[tuple[int, int, int]]:
        return {edge for node in nodes for edge in graph.out_edges(node)}

    def two() -> set[tuple[int, int, int]]:
        first = edges(hubs)
        return first | edges(list({tail for _, tail, _ in first}))

    def paths() -> list[Any]:
        found: list[Any] = []
        for start in sources:
            for end in targets:
                found += rx.digraph_dijkstra_shortest_paths(graph, start, target=end, default_weight=1.0).values()
        return found

    return {"one": lambda: edges(ten), "two": two, "paths": paths}


def reference(source: Path, asked: Asked) -> Answers:
    """graphrag-byokg's local store and traversal."""
    from graphrag_toolkit.byokg_rag.graph_retrievers.graph_traversal import GTraversal
    from graphrag_toolkit.byokg_rag.graphstore.graphstore import LocalKGStore

    store = LocalKGStore()
    store.read_from_csv(str(source), delimiter="\t", has_header=False)
    walk = GTraversal(store)
    return {
        "one": lambda: walk.one_hop_triplets(asked.ten),
        "two": lambda: walk.multi_hop_triplets(asked.hubs, hop=2),
        "paths": lambda: walk.shortest_paths(asked.sources, asked.targets),
    }


def numbered(source: Path) -> tuple[dict[str, int], dict[str, int], list[tuple[int, int, int]]]:
    """Number entities and relations in order of appearance, and return each triple once."""
    numbers: dict[str, int] = {}
    relations: dict[str, int] = {}
    rows = dict.fromkeys(
        (
            numbers.setdefault(head, len(numbers)),
            relations.setdefault(relation, len(relations)),
            numbers.setdefault(tail, len(numbers)),
        )
        for head, relation, tail in triples(source)
    )
    return numbers, relations, list(rows)


PEERS = {"byokg": byokg, "networkx": networkx, "igraph": igraph, "rustworkx": rustworkx, "reference": reference}


def answer(name: str, source: Path, asked: Asked) -> dict[str, float]:
    """Load the graph into one library and time its answers."""
    before = memory_mb()
    start = time.perf_counter()
    answers = PEERS[name](source, asked)
    found: dict[str, float] = {"load s": time.perf_counter() - start}
    gc.collect()
    found["memory"] = memory_mb() - before
    for key, action in answers.items():
        seconds: list[float] = []
        while not seconds or (sum(seconds) < 2 and len(seconds) < 1000):
            start = time.perf_counter()
            result = action()
            seconds.append(time.perf_counter() - start)
        found[key] = min(seconds) * 1e3
        if key in ("one", "two"):
            found[f"{key} triples"] = len(result)
        elif key == "paths":
            found["joined"] = len(result)
    return found


def memory_mb() -> float:
    """Return the memory that is in use; where the system does not say, the highest so far."""
    status = Path("/proc/self/smaps_rollup")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return sum(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("Private_")) / 1024


def shown(key: str, value: float | None, ours: float | None) -> str:
    """Write a figure, and how many times ours it is."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{text} ({value / ours:.3g} x)" if ours and key != "memory" and value != ours else text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=300_000, help="(default: %(default)s)")
    parser.add_argument("--entities", type=int, help="(default: a third of the triples)")
    parser.add_argument("--source", type=Path, help="a .tsv file of triples to use instead")
    parser.add_argument("--reference", help="interpreter that has graphrag-byokg")
    parser.add_argument("--only", nargs="+", choices=list(PEERS), help="libraries to compare")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--peer", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        name, source, asked = options.peer
        print(json.dumps(answer(name, Path(source), Asked.read(Path(asked)))))
        return 0
    from rich.console import Console
    from rich.table import Table

    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        source, questions = Path(folder) / "graph.tsv", Path(folder) / "questions.json"
        if options.source:
            source.symlink_to(options.source.resolve())
        else:
            sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
            from benchmarks.synthetic_graph import Size, write

            write(source, Size(options.triples, options.entities or options.triples // 3))
        questions.write_text(json.dumps(vars(Asked(source))), "utf-8")
        for name in options.only or PEERS:
            if name == "reference" and not options.reference:
                continue
            python = options.reference if name == "reference" else sys.executable
            command = [python, __file__, "--peer", name, str(source), str(questions)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            else:
                found[name] = json.loads(done.stdout.splitlines()[-1])
    table = Table("measurement", *found, title="The same graph in several libraries")
    ours = found.get("byokg", {})
    for key, label in ROWS.items():
        if any(key in figures for figures in found.values()):
            table.add_row(label, *(shown(key, figures.get(key), ours.get(key)) for figures in found.values()))
    Console(width=140).print(table)
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from benchmarks.rows import labelled, write_rows

    rows = (labelled(name, ROWS[key], value) for name, of in found.items() for key, value in of.items())
    write_rows(rows, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
