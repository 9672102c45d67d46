"""Use the graph as a LlamaIndex retriever: evidence of a question as nodes with scores.

Needs llama-index-core.
"""

import tempfile
from pathlib import Path

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from byokg import Byokg, KnowledgeGraph, atlas
from byokg.retrieval.langchain import documents


class GraphEvidence(BaseRetriever):  # type: ignore[misc]
    """Returns the evidence that a pipeline found, best first."""

    def __init__(self, byokg: Byokg, k: int = 5) -> None:
        super().__init__()
        self._byokg, self._k = byokg, k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._byokg.ask(query_bundle.query_str).rounds[0].evidence[: self._k]
        texts = documents(self._byokg.graph.store, found)
        return [NodeWithScore(node=TextNode(text=one.page_content), score=one.metadata["score"]) for one in texts]


with tempfile.TemporaryDirectory() as folder:
    graph = KnowledgeGraph.build(atlas().graph_source(), Path(folder, "graph"))
    for node in GraphEvidence(Byokg(graph)).retrieve("What is the capital of Austria?"):
        print(f"{node.score:.1f} {node.text}")
