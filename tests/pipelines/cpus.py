"""Answers atlas questions with every part that compares vectors, and prints a digest of what was recorded.

python -m tests.pipelines.cpus OUT
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np

from byokg.evaluation.datasets.folder import atlas
from byokg.evaluation.runner import RunSettings, run_evaluation
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.graph.schema_text import SchemaRenderer
from byokg.index.dense import DenseNames, Similarity
from byokg.index.embedders import StaticEmbedder, unit_rows
from byokg.index.vectors import VectorIndex
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import Parts, RelationMatcher
from byokg.offline.pipeline import offline_pipeline
from byokg.retrieval.agentic import RelationRanker
from byokg.retrieval.bfsql import BfsqlRetriever
from byokg.retrieval.path import PathRetriever
from byokg.retrieval.text import RerankRetriever, TextRetriever, TripleSearch

QUESTIONS = 12


def answered(store: ColumnarGraph, embedder: StaticEmbedder, out: Path) -> None:
    """Answer questions without a language model, and leave predictions and trace in a folder."""
    asked = atlas("test").examples()[:QUESTIONS]
    pipeline = offline_pipeline(
        Parts(
            store,
            embedder=embedder,
            entities=EntityLinker(store, method="both", embedder=embedder, extend=True, disambiguate=True),
        ),
        retrievers={"path": PathRetriever, "text": TextRetriever, "bfsql": BfsqlRetriever, "rerank": RerankRetriever},
    )
    run_evaluation(pipeline, asked, out, RunSettings("cpus", "", ""), workers=1)


def compared(store: ColumnarGraph, embedder: StaticEmbedder) -> bytes:
    """Compare random vectors, whose products nothing makes exact by chance, and texts, in all other ways there are."""
    random = np.random.default_rng(0)
    vectors = unit_rows(random.standard_normal((3000, 64)))
    found: list[object] = []
    index = VectorIndex.build(vectors)
    for nearest in index.search(vectors[:50] + vectors[50:100], 20):
        found.append((nearest.rows.tolist(), nearest.cosines.tolist()))
    nodes = Similarity(DenseNames.build(enumerate(map(str, store.entities())), embedder), store.node_count)
    search = TripleSearch(store, embedder, nodes, scan_up_to=0)
    matcher, ranker = RelationMatcher(store.relations, embedder), RelationRanker(store, embedder)
    schema = SchemaRenderer(store.schema(), embedder)
    for example in atlas("test").examples()[:QUESTIONS]:
        best = search.best(embedder.encode([example.question])[0], 30)
        ranked = ranker.ranked(example.question, [dict.fromkeys(range(len(store.relations)))])
        found.append((best.edges.edge.tolist(), best.scores.tolist(), ranked, matcher.nearest(example.question, 10)))
        found.append(
            (schema.render(example.question, 200).text, [embedder.importance(w) for w in example.question.split()])
        )
    return repr(found).encode()


if __name__ == "__main__":
    folder, graph, static = Path(sys.argv[1]), import_graph(atlas().graph_source()), StaticEmbedder()
    answered(graph, static, folder)
    digest = hashlib.sha256(compared(graph, static))
    for name in ("predictions.jsonl", "trace.jsonl"):
        digest.update((folder / name).read_bytes())
    print(digest.hexdigest())
