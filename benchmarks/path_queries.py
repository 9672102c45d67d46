"""Times of path queries against their bars, and against libraries and engines on the same graphs.

python benchmarks/path_queries.py FREEBASE_CORE [--edges N] [--large N] [--pairs N] [--limit S] [--peers]
    [--neo4j URI] [--json FILE]

FREEBASE_CORE is `graph_full.tsv` or `.tsv.xz`, or a graph folder made of it. Pairs lie at distances 2, 3 and 4 along
the edges. Every figure of byokg includes parsing, execution and conversion of paths to text; paths to all
nodes are counted only. The generated graph has a million nodes, five relations, uniform
heads, and tails by Zipf (rank^-0.75); --large makes another of so many edges and a third as many nodes, for the line
that has a bar there.

Figures are milliseconds, median / 95th percentile: processor time in this process (equal to wall-clock time on
an idle machine), wall-clock time for servers and for queries that end at their limit.
The bar follows, if there is one, with `met` or `missed`. Hard queries are run to their limit of 10 seconds;
their memory is the peak of the process beyond the graphs.

With --peers, installed libraries answer the supported queries on the first graph, and igraph and rustworkx on the
generated one: they hold the nodes' numbers only, and their own results. They are igraph, networkx, rustworkx,
Oxigraph, and ArcadeDB, which runs in a process of its own with one relation for all; so does an empty Neo4j at URI,
which is filled first.
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.rows import Row, make_parser, write_rows
from byokg.errors import MissingExtra
from byokg.graph.columnar.assembly import EdgeTable, assemble_parts
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.schema import NodeColumns
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.importers.choose import import_graph
from byokg.graph.pathql.evaluate import count, paths
from byokg.graph.pathql.search import PathLimits

Pair = tuple[str, str]
Times = tuple[float, float]
"""Median and 95th percentile in milliseconds."""
NO_BOUND = PathLimits(max_paths=1 << 40)

REACHABLE = "more than 100,000 nodes reachable"
BARS: dict[str, dict[str, tuple[float, ...]]] = {
    "freebase_core": {
        "any shortest": (0.4, 1.0),
        "all shortest": (1, 3),
        "(r1|r2)+": (0.5, 0.6),
        "!r": (0.4, 1.0),
        "all relations as alternatives": (0.4, 1.0),
        "any trail of at most 4": (0.5, 30),
        "any simple path of at most 4": (0.5, 30),
        "all trails of at most 4, counted": (27,),
        "reachable by r+": (1.8,),
        "one shortest path to every node": (120,),
    },
    "generated": {
        "any shortest": (0.4, 3),
        "all shortest": (1, 3),
        "(r1|r2)+": (1.1,),
        "!r": (0.4, 3),
        "all relations as alternatives": (0.4, 3),
        REACHABLE: (40,),
        "VIA r1/r2, one edge, from 10 nodes": (1,),
        "VIA r1/r2 from 10 nodes": (1,),
        "MATCHING r1/r2 from 10 nodes": (1,),
        "SHORTEST 10": (50,),
    },
    "large": {"any shortest": (2, 15)},
}
"""For graph and line the most that the median, and the 95th percentile, may be. A wildcard, a negation and thousands of
alternatives may not cost more than one another."""
LIMIT_S, LIMIT_MB = 10.0, 512


def generated(edges: int, nodes: int = 1_000_000) -> ColumnarGraph:
    """Make a graph up; the same numbers give the same graph."""
    chance = np.random.default_rng(7)
    weights = np.arange(1, nodes + 1) ** -0.75
    ranks = np.searchsorted(np.cumsum(weights / weights.sum()), chance.random(edges))
    tail = chance.permutation(nodes)[np.minimum(ranks, nodes - 1)]
    head, relation = chance.integers(0, nodes, edges), chance.integers(0, 5, edges)
    ids = pa.array([f"n{number}" for number in range(nodes)], pa.large_string())
    triples = np.column_stack((head, relation, tail))
    names = [f"r{number}" for number in range(1, 6)]
    return ColumnarGraph(
        "generated", assemble_parts(NodeColumns(ids), names, EdgeTable(triples), source={}, distinct=True)
    )


def pairs(graph: ColumnarGraph, count: int) -> list[Pair]:
    """Return pairs of ids at distances 2, 3 and 4, as many of each, or one less."""
    chance = random.Random(3)
    wanted = {2: -(-count // 3), 3: -(-(count - 1) // 3), 4: count // 3}
    found: dict[int, list[Pair]] = {distance: [] for distance in wanted}
    while any(len(found[distance]) < wanted[distance] for distance in wanted):
        (source,) = graph.ids(np.array([chance.randrange(graph.node_count)]))
        reached = paths(graph, f"PATHS ANY SHORTEST START ?x = <{source}> END ?y VIA ?p MAX LENGTH 4", NO_BOUND)
        ends: dict[int, list[str]] = {}
        for path in [reached[chance.randrange(len(reached))] for _ in range(12)] if len(reached) else []:
            ends.setdefault(len(path.edges), []).append(path.end)
        for distance, chosen in ends.items():
            if distance in wanted and len(found[distance]) < wanted[distance] and chosen[0] != source:
                found[distance].append((source, chosen[0]))
    return [pair for each in found.values() for pair in each]


def timed(
    work: Callable[[Pair], object], asked: Sequence[Pair], repeats: int, clock: Callable[[], float] = time.process_time
) -> Times:
    """Return the median and the 95th percentile of the pairs' median times."""
    figures = []
    for pair in asked:
        times = []
        for _ in range(repeats):
            began = clock()
            work(pair)
            times.append(clock() - began)
        figures.append(float(np.median(times)) * 1e3)
    return float(np.median(figures)), float(np.percentile(figures, 95))


def told(name: str, times: Times, bar: tuple[float, ...] = ()) -> None:
    """Print one line of figures beside its bar."""
    line = f"  {name:36} {f'{times[0]:.2f} / {times[1]:.2f}':>17}"
    if bar:
        met = all(figure <= most for figure, most in zip(times, bar, strict=False))
        line += f"   bar {' / '.join(f'{most:g}' for most in bar):9} {'met' if met else 'missed'}"
    print(line.rstrip(), flush=True)


def rows(subject: str, times: Times) -> list[Row]:
    """Return the rows of one line of figures."""
    return [Row(f"{subject}, median", times[0], "ms"), Row(f"{subject}, 95th percentile", times[1], "ms")]


def queries(graph: ColumnarGraph) -> Iterator[tuple[str, Callable[[Pair], object], int]]:
    """Yield what is measured: a name, the work for one pair, and how often it is repeated."""
    counts = np.bincount(graph.topology.relation[: graph.edge_count], minlength=len(graph.relations))
    first, second = (f"<{graph.relations[number]}>" for number in np.argsort(-counts)[:2])
    every = "|".join(f"<{name}>" for name in graph.relations)

    def between(mode: str, via: str, more: str = "") -> Callable[[Pair], object]:
        return lambda pair: list(paths(graph, f"PATHS {mode} START ?x = <{pair[0]}> END ?y = <{pair[1]}> {via} {more}"))

    def out(mode: str, via: str) -> Callable[[Pair], object]:
        return lambda pair: len(paths(graph, f"PATHS {mode} START ?x = <{pair[0]}> END ?y {via}", NO_BOUND))

    yield "any shortest", between("ANY SHORTEST", "VIA ?p"), 7
    yield "all shortest", between("ALL SHORTEST", "VIA ?p"), 7
    yield "(r1|r2)+", between("ANY SHORTEST", f"VIA {first}|{second}"), 7
    yield "!r", between("ANY SHORTEST", f"VIA !{first}"), 7
    yield "all relations as alternatives", between("ANY SHORTEST", f"VIA {every}"), 3
    yield "any trail of at most 4", between("ANY TRAIL", "VIA ?p", "MAX LENGTH 4"), 7
    yield "any simple path of at most 4", between("ANY SIMPLE", "VIA ?p", "MAX LENGTH 4"), 7
    yield "SHORTEST 10", between("SHORTEST 10 WALK", "VIA ?p"), 3
    yield "SHORTEST 10 TRAIL", between("SHORTEST 10 TRAIL", "VIA ?p", "MAX LENGTH 6"), 3
    trails = "PATHS ALL TRAIL START ?x = <{}> END ?y = <{}> VIA ?p MAX LENGTH 4"
    yield "all trails of at most 4, counted", lambda pair: count(graph, trails.format(*pair)), 3
    yield "reachable by r+", out("ANY SHORTEST", f"VIA {first}"), 3
    yield "one shortest path to every node", out("ANY SHORTEST", "VIA ?p"), 3
    yield "MATCHING r1/r2", out("ANY", f"MATCHING {first}/{second}"), 7
    some = " ".join(f"<{one}>" for one in graph.ids(np.random.default_rng(5).integers(0, graph.node_count, 10)))
    for name, via in (
        ("MATCHING r1/r2 from 10 nodes", f"MATCHING {first}/{second}"),
        ("VIA r1/r2 from 10 nodes", f"VIA {first}/{second}"),
        ("VIA r1/r2, one edge, from 10 nodes", f"VIA {first}/{second} MAX LENGTH 1"),
        ("VIA pattern, one edge, from 10 nodes", f"VIA {{ ?x {first} ?m . ?m {second} ?y }} MAX LENGTH 1"),
    ):
        text = f"PATHS START ?x {{ VALUES ?x {{ {some} }} }} END ?y {via}"
        yield name, partial(counted, graph, text), 7


def counted(graph: ColumnarGraph, text: str, _: object) -> int:
    """Return how many paths a query finds."""
    return len(paths(graph, text, NO_BOUND))


def libraries(graph: ColumnarGraph, asked: Sequence[Pair]) -> Iterator[tuple[str, str, Times]]:
    """Yield library, what was asked, and its time, for those that hold a graph of millions of edges."""
    bounds, _, tail = graph.outgoing
    edges = np.column_stack((np.arange(graph.node_count).repeat(np.diff(bounds)), tail))
    numbers = {pair: tuple(graph.numbers(list(pair)).tolist()) for pair in asked}  # type: ignore[arg-type]
    try:
        import igraph

        held = igraph.Graph(n=graph.node_count, edges=edges, directed=True)
        yield "igraph", "one shortest path to every node", timed(lambda pair: held.bfs(numbers[pair][0]), asked, 1)
        yield "igraph", "any shortest", timed(lambda pair: held.get_shortest_path(*numbers[pair]), asked, 5)
        yield "igraph", "all shortest", timed(lambda pair: held.get_all_shortest_paths(*numbers[pair]), asked, 1)
    except ImportError:
        print("igraph is not installed", file=sys.stderr)
    try:
        import rustworkx

        rust = rustworkx.PyDiGraph()
        rust.add_nodes_from(range(graph.node_count))
        rust.add_edges_from_no_data(list(map(tuple, edges.tolist())))

        def search(pair: Pair) -> object:
            source, target = numbers[pair]
            return rustworkx.digraph_dijkstra_shortest_paths(rust, source, target=target, default_weight=1.0)

        yield "rustworkx", "any shortest", timed(search, asked, 1)
    except ImportError:
        print("rustworkx is not installed", file=sys.stderr)


def peers(graph: ColumnarGraph, asked: Sequence[Pair]) -> Iterator[tuple[str, str, Times]]:
    """Yield library, what was asked, and its time, for those that are installed."""
    yield from libraries(graph, asked)
    bounds, _, tail = graph.outgoing
    head = np.arange(graph.node_count).repeat(np.diff(bounds))
    edges = list(zip(head.tolist(), tail.tolist(), strict=True))
    numbers = {pair: tuple(graph.numbers(list(pair)).tolist()) for pair in asked}  # type: ignore[arg-type]
    import networkx

    plain = networkx.DiGraph(edges)
    yield "networkx", "any shortest", timed(lambda pair: networkx.shortest_path(plain, *numbers[pair]), asked, 5)
    relation = graph.topology.relation[: graph.edge_count].tolist()
    try:
        triples = np.column_stack((head, np.zeros_like(head), tail)).astype(np.int64)
        for name, times in arcadedb(graph, triples, asked):
            yield "ArcadeDB", name, times
    except MissingExtra:
        print("ArcadeDB is not installed", file=sys.stderr)
    try:
        import pyoxigraph

        engine = pyoxigraph.Store()
        node = pyoxigraph.NamedNode
        engine.bulk_extend(
            pyoxigraph.Quad(node(f"urn:n{one}"), node(f"urn:r{kind}"), node(f"urn:n{other}"))
            for (one, other), kind in zip(edges, relation, strict=True)
        )
        kinds = np.bincount(relation)
        first = int(np.argmax(kinds))

        def reach(pair: Pair) -> object:
            query = f"SELECT ?y WHERE {{ <urn:n{numbers[pair][0]}> <urn:r{first}>+ ?y }}"
            return sum(1 for _ in cast("Iterable[object]", engine.query(query)))

        yield "Oxigraph", "reachable by r+", timed(reach, asked, 3)
    except ImportError:
        print("pyoxigraph is not installed", file=sys.stderr)


def arcadedb(
    graph: ColumnarGraph, triples: npt.NDArray[np.int64], asked: Sequence[Pair]
) -> Iterator[tuple[str, Times]]:
    """Yield what ArcadeDB was asked and its time, in a graph with one relation for all."""
    ids = pa.array([str(number) for number in range(graph.node_count)], pa.large_string())
    held = ColumnarGraph("plain", assemble_parts(NodeColumns(ids), ["r"], EdgeTable(triples), source={}, distinct=True))
    numbers = {pair: [str(number) for number in graph.numbers(list(pair)).tolist()] for pair in asked}  # type: ignore[arg-type]
    with ArcadeStore.hold(held) as store:

        def search(function: str, pair: Pair) -> object:
            text = (
                f"MATCH (a:{store.base_label} {{id: $a}}), (b:{store.base_label} {{id: $b}}) "
                f"MATCH p = {function}((a)-[*]->(b)) RETURN p"
            )
            found = store.run(text, dict(zip("ab", numbers[pair], strict=True)))
            assert len(found) > 0
            return found

        for function, name in (("shortestPath", "any shortest"), ("allShortestPaths", "all shortest")):
            yield name, timed(partial(search, function), asked, 3, time.perf_counter)


def neo4j(uri: str, graph: ColumnarGraph, asked: Sequence[Pair]) -> Iterator[tuple[str, Times]]:
    """Fill an empty Neo4j with the nodes' numbers, and yield what it was asked and its time."""
    from neo4j import GraphDatabase

    bounds, _, tail = graph.outgoing
    edges = np.column_stack((np.arange(graph.node_count).repeat(np.diff(bounds)), tail)).tolist()
    numbers = {pair: graph.numbers(list(pair)).tolist() for pair in asked}  # type: ignore[arg-type]
    with GraphDatabase.driver(uri) as driver, driver.session() as session:
        session.run("CREATE CONSTRAINT FOR (n:N) REQUIRE n.id IS UNIQUE").consume()
        session.run("UNWIND range(0, $last) AS i CREATE (:N {id: i})", last=graph.node_count - 1).consume()
        text = "UNWIND $rows AS r MATCH (a:N {id: r[0]}), (b:N {id: r[1]}) CREATE (a)-[:R]->(b)"
        for first in range(0, len(edges), 50_000):
            session.run(text, rows=edges[first : first + 50_000]).consume()

        def search(function: str, pair: Pair) -> None:
            match = f"MATCH (a:N {{id: $a}}), (b:N {{id: $b}}) MATCH p = {function}((a)-[*]->(b)) RETURN p"
            assert list(session.run(match, dict(zip("ab", numbers[pair], strict=True))))

        for function, name in (("shortestPath", "any shortest"), ("allShortestPaths", "all shortest")):
            yield name, timed(partial(search, function), asked, 5, time.perf_counter)


def closures(graph: ColumnarGraph, subject: str) -> list[Row]:
    """Measure the largest of the closures of 20 nodes along one, two and three relations of most edges.

    The bar is one for about 100,000 nodes: the smallest closure of so many is held to it, or else the largest there is.
    """
    numbers = np.argsort(-np.bincount(graph.topology.relation[: graph.edge_count], minlength=len(graph.relations)))
    figures, held = [], False
    for width in (1, 2, 3, 4):
        via = "|".join(f"<{graph.relations[number]}>" for number in numbers[:width])
        texts = [
            f"PATHS ANY SHORTEST START ?x = <{node}> END ?y VIA {via}"
            for node in graph.ids(np.random.default_rng(6).integers(0, graph.node_count, 20))
        ]
        size, text = max((len(paths(graph, each, NO_BOUND)), each) for each in texts)
        name = f"{size:,} nodes by {width} relation{'s' * (width > 1)}"
        times = timed(lambda _, text=text: counted(graph, text, _), [("", "")], 15)  # type: ignore[misc]
        told(name, times, BARS.get(subject, {}).get(REACHABLE, ()) if size > 100_000 and not held else ())
        held = held or size > 100_000
        figures += rows(f"{subject}: {name}", times)
    return figures


def hard(graph: ColumnarGraph) -> Iterator[tuple[str, str]]:
    """Yield queries between the two nodes of most edges, and between any, that have too many paths to find them all."""
    degree = np.diff(graph.topology.in_index) + np.diff(graph.topology.out_index)
    one, other = (f"<{name}>" for name in graph.ids(np.argsort(-degree)[:2]))
    counts = np.bincount(graph.topology.relation[: graph.edge_count], minlength=len(graph.relations))
    first, second = (f"<{graph.relations[number]}>" for number in np.argsort(-counts)[:2])
    ends, out = f"START ?x = {one} END ?y = {other}", f"START ?x = {one} END ?y"
    for mode in ("SHORTEST 5 TRAIL", "SHORTEST 20000 TRAIL", "ALL TRAIL", "ALL", "ALL SHORTEST"):
        for via in ("VIA ?p", "VIA UNDIRECTED ?p", f"MATCHING UNDIRECTED ({first}/{second}|!{first})+"):
            yield f"{mode} {via}", f"PATHS {mode} {ends} {via}"
    for mode in ("SHORTEST 5 TRAIL", "ALL TRAIL", "ALL SHORTEST", "SHORTEST 3 GROUPS"):
        yield f"{mode} to any", f"PATHS {mode} {out} VIA UNDIRECTED ?p"
    yield "between any two", "PATHS START ?x END ?y VIA UNDIRECTED ?p"
    yield "by matches", f"PATHS START ?x END ?y VIA ^{first}/{first}"
    yield "by a pattern", f"PATHS START ?x END ?y VIA {{ ?m {first} ?x . ?m {first} ?y }}"
    yield "cyclic", "PATHS ALL TRAIL CYCLIC START ?x END ?y VIA UNDIRECTED ?p"


def memory_mb(what: str) -> float:
    """Return what the process holds (`VmRSS`), or held at most (`VmHWM`)."""
    found = re.search(rf"{what}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def limits(graph: ColumnarGraph, subject: str, most_s: float) -> list[Row]:
    """Run the hard queries, and see how long the longest takes, and the memory of the one that needs most."""
    longest, largest, unsaid = (0.0, ""), (0.0, ""), []
    for name, text in hard(graph):
        Path("/proc/self/clear_refs").write_text("5")  # the most held is counted from now
        held = memory_mb("VmRSS")
        began = time.perf_counter()
        found = paths(graph, text, PathLimits(timeout_s=most_s))
        took = time.perf_counter() - began
        longest = max(longest, (took, name))
        largest = max(largest, (memory_mb("VmHWM") - held, name))
        if took > most_s and not found.truncated:
            unsaid.append(name)
    for name, figure, unit, most, slack, which in (
        ("longest of the hard queries", longest[0], "s ", most_s, most_s * 0.05 + 0.2, longest[1]),
        ("most memory of the hard queries", largest[0], "MB", LIMIT_MB, 0, largest[1]),
    ):
        verdict = "met" if figure <= most + slack else "missed"
        print(f"  {name:36} {figure:>14.1f} {unit}   bar {most:<9g} {verdict} ({which})")
    print(f"  {'a limit was reached and not told':36} {', '.join(unsaid) or 'never':>17}")
    return [Row(f"{subject}: longest hard query", longest[0], "s"), Row(f"{subject}: its memory", largest[0], "MB")]


def measured(graph: ColumnarGraph, subject: str, asked: Sequence[Pair], limit_s: float) -> list[Row]:
    """Measure every kind of query on a graph, and print it."""
    figures = []
    for name, work, repeats in queries(graph):
        times = timed(work, asked, repeats)
        told(name, times, BARS[subject].get(name, ()))
        figures += rows(f"{subject}: {name}", times)
    return [*figures, *closures(graph, subject), *limits(graph, subject, limit_s)]


def main() -> None:
    """Measure, and print or write the figures."""
    parser = make_parser(__doc__)
    parser.add_argument("graph", type=Path, help="graph_full.tsv(.xz), or a graph folder")
    parser.add_argument("--edges", type=int, default=3_000_000, help="of the generated graph; 0 leaves it out")
    parser.add_argument("--large", type=int, default=0, help="edges of a larger one, for any shortest path only")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds that each hard query may take")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--neo4j", metavar="URI", help="an empty Neo4j, among the peers")
    chosen = parser.parse_args()
    figures: list[Row] = []
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        first = ColumnarGraph.open(chosen.graph) if chosen.graph.is_dir() else import_graph(chosen.graph)
        if not chosen.graph.is_dir():
            first.save(Path(folder) / "graph")
            first = ColumnarGraph.open(Path(folder) / "graph")
        print(first)
        asked = pairs(first, chosen.pairs)
        figures += measured(first, "freebase_core", asked, chosen.limit)
        for library, what, times in peers(first, asked) if chosen.peers else ():
            told(f"{library}: {what}", times)
            figures += rows(f"freebase_core, {library}: {what}", times)
        for what, times in neo4j(chosen.neo4j, first, asked) if chosen.neo4j else ():
            told(f"Neo4j: {what}", times)
            figures += rows(f"freebase_core, Neo4j: {what}", times)
        if chosen.edges:
            second = generated(chosen.edges)
            print(second)
            asked = pairs(second, chosen.pairs)
            figures += measured(second, "generated", asked, chosen.limit)
            for library, what, times in libraries(second, asked) if chosen.peers else ():
                told(f"{library}: {what}", times)
                figures += rows(f"generated, {library}: {what}", times)
            del second
        if chosen.large:
            third = generated(chosen.large, chosen.large // 3)
            print(third)
            asked = pairs(third, chosen.pairs)
            name, work, repeats = next(queries(third))
            times = timed(work, asked, repeats)
            told(name, times, BARS["large"][name])
            figures += rows(f"{chosen.large:,} edges: {name}", times)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    write_rows(figures, chosen.json)


if __name__ == "__main__":
    main()
