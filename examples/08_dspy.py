"""Use the graph as a DSPy module: `answers` and `evidence` of a question.

Needs dspy. The module calls no language model; put `dspy.Predict` behind it, or give `Byokg` one.
"""

import tempfile
from pathlib import Path

import dspy

from byokg import Byokg, KnowledgeGraph, atlas
from byokg.retrieval.langchain import documents


class GraphAnswer(dspy.Module):  # type: ignore[misc]
    """Answers a question from a graph."""

    def __init__(self, byokg: Byokg) -> None:
        super().__init__()
        self.byokg = byokg

    def forward(self, question: str) -> dspy.Prediction:
        """Return the answers, best first, and the evidence that they cite."""
        answer = self.byokg.ask(question)
        cited = {id for item in answer.items for id in item.citations}
        found = [item for one in answer.rounds for item in one.evidence if item.id in cited]
        evidence = [one.page_content for one in documents(self.byokg.graph.store, found)]
        return dspy.Prediction(answers=[item.name for item in answer.items], evidence=evidence)


with tempfile.TemporaryDirectory() as folder:
    graph = KnowledgeGraph.build(atlas().graph_source(), Path(folder, "graph"))
    found = GraphAnswer(Byokg(graph))(question="Which countries does the Danube flow through?")
    print(len(found.answers), "answers, such as", found.answers[0])
    print(found.evidence[0])
