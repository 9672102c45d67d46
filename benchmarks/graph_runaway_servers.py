"""The runaway queries of `graph_runaway.py` against genuine servers, started here with `../shared/servers/start`.

Each must end within its timeout and one second, with an error of ours or an answer. The server's own stop is measured,
not required: it rests if its processor use falls to almost zero within some seconds (`--rest`). A server that
exceeds its memory limit, or does not answer the next query, is restarted, which counts as not
resting.
Exit code 1 means that a query did not end in time.

python benchmarks/graph_runaway_servers.py [--server KIND] [--timeout 2] [--rest 20] [--json FILE]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from benchmarks.graph_runaway import CYPHER, SLACK_S, SPARQL, graph
from benchmarks.rows import Row, make_parser, write_rows
from byokg.errors import ByokgError
from byokg.graph.servers.bolt import Neo4jStore
from byokg.graph.servers.sparql import SparqlEndpoint
from byokg.graph.store import Direction, QueryLimits, QueryStore
from byokg.graph.traversal import neighbours, triples
from tests.graph.bolt_server import load_graph
from tests.graph.genuine_servers import Genuine, RdfServer, started

KINDS = ("neo4j", "fuseki", "virtuoso", "oxigraph")
HARMLESS = {"cypher": "MATCH (n) RETURN n.name LIMIT 1", "sparql": "SELECT ?s { ?s ?p ?o } LIMIT 1"}
ALLOWED_MB = 3000
"""Memory at which a server is ended: its own limits are those of `start`."""
PATIENCE_S = 30.0
"""How long the query after may take."""


@dataclass(frozen=True)
class Outcome:
    """How one query ended."""

    name: str
    error: str
    seconds: float
    rests: bool
    memory_mb: float
    recovered: bool


def fill(server: Genuine) -> None:
    """Put the graph into a server."""
    small = graph()
    ids = list(small.entities())
    if server.kind != "neo4j":
        RdfServer(server).fill(small.nodes(ids), triples(small, neighbours(small, ids, Direction.OUT)))
        return
    import neo4j

    with neo4j.GraphDatabase.driver(server.address) as driver:
        edges = triples(small, neighbours(small, ids, Direction.OUT))
        load_graph(driver.execute_query, small.nodes(ids), edges, True)


def opened(server: Genuine) -> Neo4jStore | SparqlEndpoint:
    """Open a server's graph."""
    return Neo4jStore(server.address) if server.kind == "neo4j" else SparqlEndpoint(server.address)


def ended(store: QueryStore, text: str, timeout_s: float) -> tuple[str, float]:
    """Run a query; return how it ended, and after how long."""
    began = time.perf_counter()
    try:
        store.run(text, limits=QueryLimits(timeout_s=timeout_s))
        error = "answered"
    except ByokgError as failed:
        error = type(failed).__name__
    return error, time.perf_counter() - began


def attack(kind: str, folder: Path, timeout_s: float, rest_s: float) -> Iterator[Outcome]:
    """Run each query; a server that did not bear one is replaced before the next."""
    language = "cypher" if kind == "neo4j" else "sparql"
    queries = list((CYPHER if language == "cypher" else SPARQL).items())
    while queries:
        with started(kind, Path(tempfile.mkdtemp(dir=folder))) as server:
            fill(server)
            with closing(opened(server)) as store:
                well = True
                while queries and well:
                    name, text = queries.pop(0)
                    store.run(HARMLESS[language], limits=QueryLimits(timeout_s=PATIENCE_S))
                    error, seconds = ended(store, text, timeout_s)
                    rests = server.rests(rest_s, ALLOWED_MB)
                    memory = server.memory_mb()
                    answer, _ = ended(store, HARMLESS[language], PATIENCE_S) if memory < ALLOWED_MB else ("", 0.0)
                    well = rests and answer == "answered"
                    yield Outcome(name, error, seconds, rests, memory, answer == "answered")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--server", choices=KINDS, help="run only this one")
    parser.add_argument("--timeout", type=float, default=2.0, help="seconds for each query (default: %(default)s)")
    parser.add_argument(
        "--rest", type=float, default=20.0, help="seconds until the server should rest (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    kept = True
    for kind in [options.server] if options.server else KINDS:
        table = Table("query", "ended as", "seconds", "server rests", "its MB", "next query", title=kind)
        outcomes: list[Outcome] = []
        with tempfile.TemporaryDirectory() as folder:
            try:
                for outcome in attack(kind, Path(folder), options.timeout, options.rest):
                    outcomes.append(outcome)
                    table.add_row(
                        outcome.name,
                        outcome.error,
                        f"{outcome.seconds:.2f}",
                        "yes" if outcome.rests else "no",
                        f"{outcome.memory_mb:,.0f}",
                        "works" if outcome.recovered else "fails",
                    )
            except pytest.skip.Exception as reason:
                print(f"{kind} is left out: {reason}", file=sys.stderr)
                continue
        Console().print(table)
        rests = sum(one.rests for one in outcomes)
        in_time = sum(one.seconds <= options.timeout + SLACK_S for one in outcomes)
        print(f"{kind}: {in_time} of {len(outcomes)} ended in time; after {rests} the server rests")
        kept &= in_time == len(outcomes)
        rows += [
            Row(f"{kind}: ended in time", in_time, f"of {len(outcomes)}"),
            Row(f"{kind}: longest", max(one.seconds for one in outcomes), "s"),
            Row(f"{kind}: server rests after", rests, f"of {len(outcomes)}"),
            Row(f"{kind}: next query answered", sum(one.recovered for one in outcomes), f"of {len(outcomes)}"),
        ]
    write_rows(rows, options.json)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
