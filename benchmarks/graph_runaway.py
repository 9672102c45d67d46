"""Twenty queries that never end or never stop growing, against each embedded engine.

Each must end as a typed error within its timeout and one second, with the engine's process below its memory cap, and
the query after it must be answered. Exit code 1 means that a query violated this.

python benchmarks/graph_runaway.py [--engine arcadedb|oxigraph] [--timeout 2] [--json FILE]
"""

from __future__ import annotations

import importlib.util
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.rows import Row, make_parser, write_rows
from byokg.errors import QueryFailed
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.worker import Worker
from byokg.graph.store import QueryLimits, QueryStore

NODES, EDGES, RELATIONS = 2000, 20_000, 12
SLACK_S = 1.0

DOUBLED = "reduce(s = 'ab', i IN range(1, {}) | s + s)"

CYPHER = {
    "10 hops, any direction": "MATCH (a)" + "-[]-()" * 9 + "-[]-(b) RETURN count(*)",
    "10 hops, one relation": "MATCH (a)" + "-[:r0]->()" * 9 + "-[:r0]->(b) WHERE a.name = b.name RETURN count(*)",
    "paths of 1 to 30 hops": "MATCH p = (a)-[*1..30]-(b) RETURN count(p)",
    "collected paths": "MATCH p = (a)-[*1..12]-(b) RETURN collect(p)",
    "all shortest paths": "MATCH p = allShortestPaths((a)-[*..12]-(b)) RETURN count(p)",
    "cartesian product": "MATCH (a), (b), (c), (d) WHERE a.name + b.name = c.name + d.name + 'x' RETURN count(*)",
    "cartesian product, sorted": "MATCH (a), (b), (c) RETURN a.name + b.name + c.name AS x ORDER BY x DESC LIMIT 5",
    "cartesian product, distinct": "MATCH (a), (b), (c) RETURN count(DISTINCT a.name + b.name + c.name)",
    "cartesian product, grouped": "MATCH (a), (b), (c) RETURN a.name, b.name, collect(c.name)",
    "string doubling": f"RETURN size({DOUBLED.format(60)})",
    "string growing by replace": "RETURN size(reduce(s = 'a', i IN range(1, 40) | replace(s, 'a', 'aaaa')))",
    "list doubling": "RETURN size(reduce(l = [1], i IN range(1, 60) | l + l))",
    "huge range": "RETURN size(range(1, 2000000000))",
    "huge UNWIND, nested": "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b RETURN sum(a * b % 7)",
    "huge UNWIND, collected": "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN size(collect(a * b))",
    "nested list comprehensions": "RETURN size([x IN range(1, 100000) | [y IN range(1, 100000) | x * y]])",
    "subquery for each of a million": (
        "UNWIND range(1, 1000000) AS x CALL { WITH x MATCH (a)-[*1..4]-(b) RETURN count(b) AS c } RETURN sum(c + x)"
    ),
    "NOT EXISTS over long paths": "MATCH (a), (b) WHERE NOT EXISTS { MATCH (a)-[*8..12]-(b) } RETURN count(*)",
    "regular expression that backtracks": f"RETURN '{'a' * 80}' =~ '{'(.*)' * 10}b' AS x",
    "a thousand long texts": f"UNWIND range(1, 1000) AS x RETURN {DOUBLED.format(21)} + x AS text",
}


def _hops(count: int) -> str:
    return " ".join(f"?n{hop} ?p{hop} ?n{hop + 1} ." for hop in range(count))


def _named(*variables: str) -> str:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    return " ".join(f"?{variable} {label} ?{variable}n ." for variable in variables)


def _doubled(times: int, start: str = '"ab"') -> str:
    steps = [f"BIND({start} AS ?s0)"]
    steps += [f"BIND(CONCAT(?s{step}, ?s{step}) AS ?s{step + 1})" for step in range(times)]
    return " ".join(steps)


_FORTH_AND_BACK = "(!<x:none>|^!<x:none>)"

SPARQL = {
    "10 hops, any relation": f"SELECT (COUNT(*) AS ?n) {{ {_hops(10)} }}",
    "10 hops that meet": f"SELECT (COUNT(*) AS ?n) {{ {_hops(10)} FILTER(STR(?n0) = STR(?n10)) }}",
    "property path, any length": f"SELECT (COUNT(*) AS ?n) {{ ?a {_FORTH_AND_BACK}+ ?b . ?b {_FORTH_AND_BACK}+ ?c }}",
    "property paths, distinct ends": (
        f"SELECT (COUNT(DISTINCT ?x) AS ?n) {{ ?a {_FORTH_AND_BACK}* ?b . ?c {_FORTH_AND_BACK}* ?d "
        "BIND(CONCAT(STR(?a), STR(?b), STR(?c), STR(?d)) AS ?x) }"
    ),
    "property path of 8 hops": f"SELECT (COUNT(*) AS ?n) {{ ?a {'/'.join([_FORTH_AND_BACK] * 8)} ?b }}",
    "cartesian product": (
        f"SELECT (COUNT(*) AS ?n) {{ {_named(*'abcd')} FILTER(CONCAT(?an, ?bn) = CONCAT(?cn, ?dn, 'x')) }}"
    ),
    "cartesian product, sorted": (
        f"SELECT ?x {{ {_named(*'abc')} BIND(CONCAT(?an, ?bn, ?cn) AS ?x) }} ORDER BY DESC(?x) LIMIT 5"
    ),
    "cartesian product, distinct": f"SELECT (COUNT(DISTINCT CONCAT(?an, ?bn, ?cn)) AS ?n) {{ {_named(*'abc')} }}",
    "cartesian product, grouped": (
        f"SELECT ?an ?bn (GROUP_CONCAT(?cn) AS ?all) {{ {_named(*'abc')} }} GROUP BY ?an ?bn"
    ),
    "everything concatenated": f"SELECT (GROUP_CONCAT(CONCAT(?an, ?bn)) AS ?all) {{ {_named(*'abc')} }}",
    "string doubling": f"SELECT (STRLEN(?s60) AS ?n) {{ {_doubled(60)} }}",
    "string growing by REPLACE": (
        "SELECT (STRLEN(?s40) AS ?n) { BIND('a' AS ?s0) "
        + " ".join(f"BIND(REPLACE(?s{step}, 'a', 'aaaa') AS ?s{step + 1})" for step in range(40))
        + " }"
    ),
    "VALUES multiplied": "SELECT (COUNT(*) AS ?n) { "
    + " ".join(f"VALUES ?v{number} {{ {' '.join(map(str, range(40)))} }}" for number in range(10))
    + " }",
    "OPTIONAL multiplied": "SELECT (COUNT(*) AS ?n) { ?a ?p ?b "
    + " ".join(f"OPTIONAL {{ ?a{number} ?p{number} ?b{number} }}" for number in range(4))
    + " }",
    "UNION multiplied": "SELECT (COUNT(*) AS ?n) { "
    + " ".join(f"{{ ?a{n} ?p{n} ?b }} UNION {{ ?b ?q{n} ?c{n} }}" for n in range(6))
    + " }",
    "MINUS over products": f"SELECT (COUNT(*) AS ?n) {{ {_named(*'abc')} MINUS {{ {_named(*'abc')} ?a ?p ?c }} }}",
    "NOT EXISTS over long paths": (
        f"SELECT (COUNT(*) AS ?n) {{ {_named(*'ab')} FILTER NOT EXISTS {{ ?a {'/'.join([_FORTH_AND_BACK] * 6)} ?b . "
        "FILTER(STR(?a) = 'nobody') } }"
    ),
    "subqueries multiplied": "SELECT (COUNT(*) AS ?n) { "
    + " ".join(f"{{ SELECT ?a{n} ?b{n} {{ ?a{n} ?p ?b{n} }} }}" for n in range(3))
    + " FILTER(STR(?a0) > STR(?b2)) }",
    "regular expression for each pair": (
        f"SELECT (COUNT(*) AS ?n) {{ {_named(*'abc')} FILTER(REGEX(CONCAT(?an, ?bn), CONCAT('(', ?cn, '|.*)*$'))) }}"
    ),
    "a thousand long texts": (
        f"SELECT ?text {{ {_doubled(20)} {_named(*'a')} BIND(CONCAT(?s20, ?an) AS ?text) }} LIMIT 1000"
    ),
}


@dataclass(frozen=True)
class Contestant:
    """An engine: how to get a store with a graph in it, and what to throw at it."""

    name: str
    package: str
    queries: dict[str, str]
    harmless: str
    open: Callable[[ColumnarGraph, Path], tuple[QueryStore, Worker, int, Callable[[], None]]]
    """Returns the store, its worker, the memory cap in MB, and how to close it."""


@dataclass(frozen=True)
class Outcome:
    """How one query ended."""

    name: str
    error: str
    seconds: float
    peak_mb: float
    recovered: bool

    def good(self, timeout_s: float, cap_mb: int) -> bool:
        """Tell whether the engine kept all promises."""
        typed = self.error not in ("", "answered")
        return typed and self.seconds <= timeout_s + SLACK_S and self.peak_mb <= cap_mb and self.recovered


def open_arcadedb(graph: ColumnarGraph, folder: Path) -> tuple[QueryStore, Worker, int, Callable[[], None]]:
    from byokg.graph.engines.arcadedb import ArcadeStore, build_arcade

    build_arcade(graph, folder)
    store = ArcadeStore.open(folder, heap_mb=512)
    return store, store.worker, store.memory_mb, store.close


def open_oxigraph(graph: ColumnarGraph, folder: Path) -> tuple[QueryStore, Worker, int, Callable[[], None]]:
    from byokg.graph.engines.oxigraph import OxigraphStore, build_oxigraph

    build_oxigraph(graph, folder).close()
    store = OxigraphStore(folder, memory_mb=1024)
    return store, store.worker, 1024, store.close


CONTESTANTS = (
    Contestant("arcadedb", "arcadedb_embedded", CYPHER, "MATCH (n {name: 'node 7'}) RETURN n.id", open_arcadedb),
    Contestant("oxigraph", "pyoxigraph", SPARQL, "SELECT ?s { ?s ?p ?o } LIMIT 1", open_oxigraph),
)


def graph() -> ColumnarGraph:
    """Make a small graph in which almost everything reaches everything."""
    pick = random.Random(1)
    names = [f"node {number}" for number in range(NODES)]
    triples = [
        (pick.choice(names), f"r{int(pick.random() ** 2 * RELATIONS)}", names[int(pick.random() ** 2 * NODES)])
        for _ in range(EDGES)
    ]
    return ColumnarGraph.from_triples(triples)


@contextmanager
def opened(contestant: Contestant) -> Iterator[tuple[QueryStore, Worker, int]]:
    """Build the graph for one engine in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        store, worker, cap_mb, close = contestant.open(graph(), Path(folder) / "graph")
        try:
            yield store, worker, cap_mb
        finally:
            close()


def attack(
    store: QueryStore, worker: Worker, queries: dict[str, str], harmless: str, timeout_s: float
) -> Iterator[Outcome]:
    """Run each query, and after each the harmless one."""
    store.run(harmless)
    for name, text in queries.items():
        start = time.perf_counter()
        try:
            store.run(text, limits=QueryLimits(timeout_s=timeout_s))
            error = "answered"
        except QueryFailed as failed:
            error = type(failed).__name__
        seconds = time.perf_counter() - start
        recovered = len(store.run(harmless, limits=QueryLimits(timeout_s=30))) == 1
        yield Outcome(name, error, seconds, worker.peak_bytes / 2**20, recovered)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--engine", choices=[contestant.name for contestant in CONTESTANTS], help="run only this one")
    parser.add_argument("--timeout", type=float, default=2.0, help="seconds for each query (default: %(default)s)")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    kept = True
    for contestant in CONTESTANTS:
        if options.engine not in (None, contestant.name):
            continue
        if importlib.util.find_spec(contestant.package) is None:
            print(f"{contestant.name} is left out: {contestant.package} is not installed", file=sys.stderr)
            continue
        with opened(contestant) as (store, worker, cap_mb):
            table = Table(
                *("query", "ended as", "seconds", "peak MB so far", "next query"),
                title=f"{contestant.name}: {options.timeout:g} s, {cap_mb:,} MB allowed",
            )
            outcomes = []
            for outcome in attack(store, worker, contestant.queries, contestant.harmless, options.timeout):
                outcomes.append(outcome)
                good = outcome.good(options.timeout, cap_mb)
                table.add_row(
                    outcome.name,
                    outcome.error,
                    f"{outcome.seconds:.2f}",
                    f"{outcome.peak_mb:,.0f}",
                    "works" if outcome.recovered else "fails",
                    style=None if good else "red",
                )
        Console().print(table)
        held = sum(outcome.good(options.timeout, cap_mb) for outcome in outcomes)
        worst = max(outcome.seconds for outcome in outcomes)
        print(f"{contestant.name}: {held} of {len(outcomes)} kept within limits; the longest took {worst:.2f} s")
        kept &= held == len(outcomes)
        rows += [
            Row(f"{contestant.name}: {outcome.name}, {outcome.error}", outcome.seconds, "s") for outcome in outcomes
        ]
        rows += [
            Row(f"{contestant.name}: queries kept within limits", held, f"of {len(outcomes)}"),
            Row(f"{contestant.name}: longest", worst, "s"),
            Row(f"{contestant.name}: peak resident memory", outcomes[-1].peak_mb, "MB"),
            Row(f"{contestant.name}: memory allowed", cap_mb, "MB"),
        ]
    write_rows(rows, options.json)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
