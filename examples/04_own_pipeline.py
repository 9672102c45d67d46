"""Write a pipeline: one method that takes a question and returns an answer, and measure it like any other."""

import tempfile
from pathlib import Path

from byokg import Answer, AnswerItem, EntityLinker, KnowledgeGraph, Question, RunSettings, atlas, run_evaluation
from byokg.graph.store import Direction, GraphStore
from byokg.graph.traversal import neighbours, triples
from byokg.open import fingerprint
from byokg.types import Mention


class NeighbourPipeline:
    """Answers with the nodes that the last capitalised word of the question points at."""

    def __init__(self, store: GraphStore) -> None:
        self.store, self.entities = store, EntityLinker(store)

    def run(self, question: Question) -> Answer:
        """Answer one question."""
        names = [word.strip("?'s") for word in question.text.split() if word[0].isupper()]
        topics = [entity.id for entity in self.entities.candidates(Mention(names[-1]))[:1]]
        edges = triples(self.store, neighbours(self.store, topics, Direction.OUT))
        nodes = self.store.nodes([edge.tail for edge in edges])
        return Answer(question.id, tuple(AnswerItem(node.name, node.id, 1.0) for node in nodes), ())


with tempfile.TemporaryDirectory() as folder:
    dataset = atlas(split="dev")
    graph = KnowledgeGraph.build(dataset.graph_source(), Path(folder, "graph"))
    settings = RunSettings(dataset.name, dataset.checksum, fingerprint(graph.store))
    metrics = run_evaluation(NeighbourPipeline(graph.store), dataset.examples()[:50], Path(folder, "run"), settings)
    print(f"Hits@1 {metrics.overall.estimates['hits@1'].value:.2f} on {metrics.overall.n} questions")
