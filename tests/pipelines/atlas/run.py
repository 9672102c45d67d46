"""Answers the questions of `replies.yaml` over atlas, with ArcadeDB for the queries: `python -m … OUT WORKERS…`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.folder import atlas
from byokg.evaluation.runner import RunSettings, run_evaluation
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.importers.choose import import_graph
from byokg.linking.parts import Parts
from byokg.llm.chat_models import ScriptedChatModel, read_rules
from byokg.llm.model import LanguageModel
from byokg.pipelines.byokg import RETRIEVERS as DEFAULT
from byokg.pipelines.byokg import Rounds, byokg_pipeline
from byokg.pipelines.loop import Loop
from byokg.retrieval.bfsql import BfsqlRetriever
from byokg.retrieval.text import TextRetriever

REPLIES = Path(__file__).parent / "replies.yaml"

QUESTIONS = {
    "good": "What money is used in the countries that surround Norway?",
    "no-entity": "Which river is the longest?",
    "two-rounds": "Which head of government did Canada have in the year of Richard E. Taylor's Nobel Prize?",
    "wrong-relations": "What currencies are used in the countries next to the one Tomsk is in?",
    "invented-entities": "What are the mountains of Zamunda?",
    "invalid-queries": "Brazzaville is the capital of which country?",
    "empty-tags": "Who has a share in the waters of Lake Rukwa?",
    "prose": "Kuwait and Oman have which neighbours in common?",
}


def store() -> ArcadeStore:
    """Hold atlas, in an engine of its own."""
    return ArcadeStore.hold(import_graph(atlas().graph_source()), heap_mb=512)


RETRIEVERS = {
    **DEFAULT,
    "text": partial(TextRetriever, k=3),
    "bfsql": partial(BfsqlRetriever, max_edges=10, max_stubs=3, max_nodes=3),
}
"""All of them; those that bring much bring less, so that traces can be read."""


def pipeline(graph: ArcadeStore, **settings: Any) -> Loop:
    """Put all parts together, the language model playing the script; all retrievers run, whatever rows there are."""
    model = LanguageModel(ScriptedChatModel(rules=read_rules(REPLIES)))
    rounds = Rounds(stop_when="nothing_new")
    return byokg_pipeline(Parts(graph, model), **{"retrievers": RETRIEVERS, "rounds": rounds, **settings})


def record(graph: ArcadeStore, out: str | Path, workers: int) -> None:
    """Answer all questions, and leave the run's records in a folder."""
    examples = [Example(id, text, answers=("none is looked at",)) for id, text in QUESTIONS.items()]
    run_evaluation(pipeline(graph), examples, out, RunSettings("scripted", "", ""), workers)


if __name__ == "__main__":
    with store() as atlas_graph:
        for workers in sys.argv[2:]:
            record(atlas_graph, Path(sys.argv[1]) / workers, int(workers))
