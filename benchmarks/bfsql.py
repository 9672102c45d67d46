"""How long BFS-QL takes on half a million triples, and how many tokens filters save.

python benchmarks/bfsql.py [--data DIR] [--json FILE] [--topics N] [--repeat N]

Times are for two hops around topics of WebQSP's dev questions and around the largest hub, from the request to the text
of the response; the best of several runs each, then the median over topics.

Tokens are those of a response of up to 200 nodes, once in full and once with filters: the three relations nearest to
the question, and the node types at their ends. What stubs save is what the graph says beyond topology. The Freebase
graph says nothing more, so it is measured again with sources for each edge, written as in the article that BFS-QL comes
from: one, and three. The atlas that ships with the package has few properties.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from byokg.graph.columnar.schema import NodeColumns

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.rows import Row, labelled, show  # noqa: E402
from byokg.evaluation.datasets.base import Example, by_name  # noqa: E402
from byokg.evaluation.datasets.folder import SHIPPED, Folder, atlas  # noqa: E402
from byokg.graph.bfsql.engine import (  # noqa: E402
    Reach,
    bfs_query,
    breadth_first,
    known_seeds,
)
from byokg.graph.bfsql.protocol import (  # noqa: E402
    BfsRequest,
    EdgeFilter,
    NodeFilter,
    compact,
)
from byokg.graph.columnar.graph import ColumnarGraph  # noqa: E402
from byokg.graph.importers.choose import import_graph  # noqa: E402
from byokg.graph.store import Direction  # noqa: E402
from byokg.index.embedders import StaticEmbedder  # noqa: E402
from byokg.retrieval.bfsql import BfsqlRetriever  # noqa: E402
from byokg.text import estimate_tokens  # noqa: E402
from byokg.types import (  # noqa: E402
    Artifacts,
    Context,
    EntityId,
    Linked,
    LinkedEntity,
    Mention,
    Question,
    Request,
)

QUESTIONS, NODES, PREDICATES = 100, 200, 3

SOURCE = {
    "source_doc": "PMC2386281",
    "section": "metadata",
    "method": "structured_extraction",
    "evidence_type": "primary_authorship",
}
"""What the article's example says of one edge."""


def seconds(run: Callable[[], object], repeat: int) -> float:
    """Return the time of the quickest of some runs."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def known(store: ColumnarGraph, ids: Sequence[EntityId]) -> list[EntityId]:
    """Return the ids that the graph has, each once."""
    return known_seeds(store, ids, None)[0]


def times(store: ColumnarGraph, topics: Sequence[EntityId], repeat: int) -> list[Row]:
    """Measure two hops around each topic, and around the largest hub."""
    rows = []

    def answered(seed: EntityId, **bounds: int) -> str:
        return compact(bfs_query(store, BfsRequest.model_validate({"seeds": [seed], "max_hops": 2, **bounds})))

    subgraphs = [breadth_first(store, store.numbers([topic]), Reach(2)) for topic in topics]
    rows.append(labelled("two hops, median of topics", "nodes", median(len(each.nodes) for each in subgraphs)))
    rows.append(labelled("two hops, median of topics", "edges", median(len(each.edges) for each in subgraphs)))
    cases: list[tuple[str, Callable[[EntityId], object]]] = [
        ("search alone ms", lambda seed: breadth_first(store, store.numbers([seed]), Reach(2))),
        ("20 nodes ms", lambda seed: answered(seed, limit=20)),
        ("8,000 tokens ms", lambda seed: answered(seed, budget_tokens=8000)),
        ("200 nodes ms", lambda seed: answered(seed, limit=200)),
    ]
    degrees = store.degree(np.arange(store.node_count))
    hub = store.ids(np.array([int(degrees.argmax())]))[0]
    for label, run in cases:
        took = [seconds(partial(run, topic), repeat) for topic in topics]
        rows.append(labelled("two hops, median of topics", label, 1000 * median(took)))
        rows.append(labelled("two hops, largest hub", label, 1000 * seconds(partial(run, hub), repeat)))
    rows.append(labelled("two hops, largest hub", "edges of it", float(degrees.max())))
    return rows


def savings(name: str, store: ColumnarGraph, examples: Sequence[Example], hops: int) -> list[Row]:
    """Compare responses in full with those filtered for the question, as the retriever does it."""
    retriever = BfsqlRetriever(store, StaticEmbedder(), max_hops=hops, predicates=PREDICATES)
    ends = {relation.name: {*relation.domain, *relation.range} for relation in store.schema().relations}
    plain, filtered = [], []
    for example in examples:
        seeds = known(store, example.topic_ids)
        linked = tuple(LinkedEntity(id, id, Mention(id), "given", 1.0) for id in seeds)
        request = Request(Question(example.id, example.question), Artifacts(), Linked(linked), Context())
        retriever.retrieve(request)
        sent: Any = request.steps[0].given["request"]
        chosen = sent["edge_filter"]["predicates"]
        types = sorted(set().union(*(ends[label] for label in chosen)) - {""})
        asked = BfsRequest(seeds=tuple(seeds), max_hops=hops, limit=NODES)
        narrow = asked.model_copy(
            update={
                "node_filter": NodeFilter(entity_types=tuple(types)),
                "edge_filter": EdgeFilter(predicates=tuple(chosen)),
            }
        )
        plain.append(estimate_tokens(compact(bfs_query(store, asked))))
        filtered.append(estimate_tokens(compact(bfs_query(store, narrow))))
    saved = [100 * (1 - less / more) for less, more in zip(filtered, plain, strict=True)]
    subject = f"{name}, {hops} {'hop' if hops == 1 else 'hops'}"
    return [
        labelled(subject, "questions", len(saved)),
        labelled(subject, "median tokens without filters", median(plain)),
        labelled(subject, "median tokens with filters", median(filtered)),
        labelled(subject, "median saving %", median(saved)),
    ]


def with_sources(store: ColumnarGraph, sources: int) -> ColumnarGraph:
    """Return the same graph with a confidence and some sources for each edge."""
    ids = list(store.entities())
    batch = store.edges(np.arange(len(ids)), Direction.OUT)
    count = len(batch)
    return ColumnarGraph.assemble(
        "with sources",
        NodeColumns(pa.array(ids, pa.large_string())),
        list(store.relations),
        np.column_stack((batch.head, batch.relation, batch.tail)),
        source={"kind": "benchmark"},
        properties={
            "confidence": pa.array(np.full(count, 0.97)),
            "provenance": pa.array([json.dumps([SOURCE] * sources)] * count, pa.large_string()),
        },
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("BYOKG_DATA") or ROOT.parent / "shared" / "data"
    parser.add_argument(
        "--data", type=Path, default=Path(default), help="holds freebase_core and webqsp (default: %(default)s)"
    )
    parser.add_argument("--json", type=Path, help="write the rows to this file, too")
    parser.add_argument("--topics", type=int, default=100, help="topics to time (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=7, help="runs of each, of which the best counts")
    options = parser.parse_args()
    store = import_graph(options.data / "freebase_core" / "graph_full.tsv.xz")
    examples = [by_name(example) for example in Folder(options.data / "webqsp", split="dev").examples()]
    examples = [example for example in examples if known(store, example.topic_ids)]
    topics = known(store, sorted(id for example in examples for id in example.topic_ids))
    topics = topics[:: max(1, len(topics) // options.topics)][: options.topics]
    rows = times(store, topics, options.repeat)
    asked = examples[:: max(1, len(examples) // QUESTIONS)][:QUESTIONS]
    places = [example for example in atlas("dev").examples() if example.topic_ids][:QUESTIONS]
    measured: list[tuple[str, ColumnarGraph, Sequence[Example]]] = [
        ("WebQSP dev, as it is", store, asked),
        ("WebQSP dev, 1 source an edge", with_sources(store, 1), asked),
        ("WebQSP dev, 3 sources an edge", with_sources(store, 3), asked),
        ("atlas dev", import_graph(SHIPPED), places),
    ]
    for name, graph, questions in measured:
        for hops in (1, 2):
            rows += savings(name, graph, questions, hops)
    show(rows, "BFS-QL", options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
