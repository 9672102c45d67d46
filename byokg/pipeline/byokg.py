"""The door to answers for notebooks and scripts: a graph, a language model, and a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from byokg.graph.knowledge_graph import KnowledgeGraph
from byokg.graph.store import GraphStore
from byokg.llm.model import LanguageModel
from byokg.pipeline.loop import Loop
from byokg.pipeline.offline import offline_pipeline
from byokg.pipeline.prompted import byokg_pipeline
from byokg.types import Answer, Question

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel


class Byokg:
    """Answers questions over a graph: by ByoKG-RAG with a language model, and without one by the offline pipeline.

    kg = KnowledgeGraph.open("graphs/films")
    answer = Byokg(kg, llm=ChatAnthropic(model="claude-sonnet-5")).ask("Who directed Heat?")

    Args:
        graph: what to ask.
        llm: any LangChain chat model; or a `LanguageModel`, which also records, counts and limits.
        settings: those of `byokg_pipeline`, or of `offline_pipeline` where there is no language model.

    Raises:
        ConfigError: a setting is out of range.
    """

    def __init__(
        self,
        graph: KnowledgeGraph | GraphStore,
        llm: BaseChatModel | LanguageModel | None = None,
        **settings: Any,
    ) -> None:
        store = graph.store if isinstance(graph, KnowledgeGraph) else graph
        self.pipeline: Loop
        """The parts, which can be looked at and exchanged."""
        if llm is None:
            self.pipeline = offline_pipeline(store, **settings)
        else:
            model = llm if isinstance(llm, LanguageModel) else LanguageModel(llm)
            self.pipeline = byokg_pipeline(store, model, **settings)

    def run(self, question: Question) -> Answer:
        """Answer one question. Raises what `Loop.run` raises."""
        return self.pipeline.run(question)

    def ask(self, text: str) -> Answer:
        """Answer a question given as text."""
        return self.pipeline.ask(text)
