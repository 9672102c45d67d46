"""Requests to a graph on a server, by hops: for walks, paths and questions.

python benchmarks/round_trips.py [--questions N] [--json FILE]

The server is the SPARQL endpoint of the tests, on loopback, with the atlas graph; it counts requests. Walks and
paths start at ten entities together, with the schema in the cache. Questions are those of the atlas with one given
topic, as with `byokg ask --entity`: for each number of hops the first N pure path questions. They run on a new store
with an empty cache, behind an address of a kind without row limits. Most take three requests and two for each hop:
the predicates of names, the topic, and properties of the edges in the answer; edges, and their ends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pyoxigraph

from benchmarks.rows import Row, make_parser, show
from byokg.evaluation.datasets.folder import atlas
from byokg.graph.importers.choose import import_graph
from byokg.graph.pathql.evaluate import paths
from byokg.graph.pathql.query import connecting
from byokg.graph.rdf.files import graph_quads
from byokg.graph.read_cache import SchemaCache
from byokg.graph.store import Direction
from byokg.graph.traversal import k_hop_edges
from byokg.linking.parts import Parts
from byokg.offline.parse_constraints import parse_constraints
from byokg.offline.pipeline import offline_pipeline
from byokg.open import use_graph
from byokg.types import EntityId, Question
from tests.graph.sparql_server import Endpoint, serving

HOPS = (1, 2, 3)


def requests(endpoint: Endpoint, folder: Path, action: Callable[[Any], object], schema: bool = True) -> int:
    """Return how many requests an action takes on a new store, which may know the schema."""
    with use_graph(f"sparql+{endpoint.url}", SchemaCache(folder)) as store:
        if schema:
            store.schema()
        before = len(endpoint.requests)
        action(store)
        return len(endpoint.requests) - before


def walks(endpoint: Endpoint, folder: Path, ids: Sequence[EntityId]) -> list[Row]:
    """Count requests of k hops around entities, and of paths between two groups of them."""
    rows = []
    for hops in HOPS:

        def around(store: Any, hops: int = hops) -> object:
            return k_hop_edges(store, ids[:10], hops, Direction.BOTH)

        def between(store: Any, hops: int = hops) -> object:
            return list(paths(store, connecting(ids[:5], ids[5:10], 1, hops, None, Direction.BOTH)))

        for name, action in (("k_hop_edges", around), ("paths 5 x 5", between)):
            rows.append(Row(f"{name}, {hops} hops: requests", requests(endpoint, folder, action)))
    return rows


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--questions", type=int, default=10, help="questions per number of hops (default: %(default)s)")
    options = parser.parse_args()
    data = atlas()
    graph, triples = import_graph(data.graph_source()), pyoxigraph.Store()
    triples.bulk_extend(graph_quads(graph))
    ids = list(graph.entities())[:: graph.node_count // 10][:10]
    rows = []
    with serving(triples) as endpoint, TemporaryDirectory() as temporary:
        folder, endpoint.called = Path(temporary) / "walks", "Oxigraph"
        requests(endpoint, folder, lambda _: None)
        rows += walks(endpoint, folder, ids)
        for hops in HOPS:
            chosen = [
                example
                for example in data.examples()
                if example.hops == hops
                and len(example.topic_ids) == 1
                and parse_constraints(example.question, ()).plain
            ]
            counts = []
            for number, example in enumerate(chosen[: options.questions]):
                question = Question(example.id, example.question, example.topic_ids, hops)

                def ask(store: Any, question: Question = question) -> object:
                    return offline_pipeline(Parts(store), max_hops=max(HOPS)).run(question)

                counts.append(requests(endpoint, Path(temporary) / f"{hops} {number}", ask, schema=False))
            if counts:
                rows.append(Row(f"questions of {hops} hops: requests each", fmean(counts)))
                rows.append(Row(f"questions of {hops} hops: most requests", max(counts)))
    show(rows, f"{graph.edge_count:,} edges behind a SPARQL endpoint", options.json)


if __name__ == "__main__":
    main()
