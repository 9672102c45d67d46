"""Add a retriever: one method that takes a request and returns evidence."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from byokg import Byokg, KnowledgeGraph, atlas
from byokg.graph.store import Direction
from byokg.graph.traversal import neighbours, triples
from byokg.linking.parts import Parts
from byokg.types import Request, TripleEvidence


class Around:
    """Returns the first `k` edges around the linked entities."""

    def __init__(self, parts: Parts, k: int = 5) -> None:
        self.store, self.k = parts.store, k

    def retrieve(self, request: Request) -> Sequence[TripleEvidence]:
        """Return one evidence item per edge."""
        linked = [entity.id for entity in request.linked.entities]
        edges = triples(self.store, neighbours(self.store, linked, Direction.BOTH))
        return [TripleEvidence(retriever="around", score=1.0, triple=edge) for edge in edges[: self.k]]


with tempfile.TemporaryDirectory() as folder:
    graph = KnowledgeGraph.build(atlas().graph_source(), Path(folder, "graph"))
    answer = Byokg(graph, retrievers={"around": Around}).ask("What is the capital of Austria?")
    for item in answer.rounds[0].evidence:
        print(item.id, item.retriever, getattr(item, "triple", ""))
