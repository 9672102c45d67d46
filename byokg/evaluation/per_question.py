"""Asks each question of its own graph, as data sets with subgraphs are published (RoG's WebQSP and CWQ)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from byokg.evaluation.datasets.base import SubgraphDataset
from byokg.evaluation.runner import Pipeline
from byokg.graph.store import GraphStore
from byokg.types import Answer, Question

_HELD = 32
"""Pipelines kept with their graphs: enough for the questions in flight, and for those asked again soon."""


class PerQuestionPipeline:
    """A pipeline that is made anew for each question, over the graph that comes with it; a `Pipeline`.

    The question stays what it is, so no pipeline knows whether the graph it reads is one question's.

    Args:
        dataset: whose questions are asked.
        make: builds a pipeline over a graph; what does not depend on the graph it shares between all.
    """

    def __init__(self, dataset: SubgraphDataset, make: Callable[[GraphStore], Pipeline]) -> None:
        self._pipeline = lru_cache(_HELD)(lambda id: make(dataset.subgraph(id)))

    def run(self, question: Question) -> Answer:
        """Answer the question from its graph. Raises `DatasetError` where the data set has none for it."""
        return self._pipeline(question.id).run(question)
