"""The door to answers for notebooks and scripts: a graph, a language model, and a question."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from byokg.errors import ConfigError
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
        ConfigError: a setting is out of range or not known, or `llm` is no model.
    """

    def __init__(
        self,
        graph: KnowledgeGraph | GraphStore,
        llm: BaseChatModel | LanguageModel | None = None,
        **settings: Any,
    ) -> None:
        store = graph.store if isinstance(graph, KnowledgeGraph) else graph
        _check_names(settings, asks=llm is not None)
        if isinstance(llm, str):
            raise ConfigError(f"llm={llm!r} is a name; pass a LangChain chat model, such as ChatOpenAI(model={llm!r})")
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


def _check_names(settings: Mapping[str, object], asks: bool) -> None:
    """Refuse settings that the pipeline does not have."""
    with_model = _settings_of(byokg_pipeline)
    known = with_model if asks else _settings_of(offline_pipeline)
    for name in settings:
        if name not in known:
            place = " without a language model" if name in with_model else ""
            raise ConfigError(f"no setting {name!r}{place}; there is {', '.join(known)}")


def _settings_of(make: Callable[..., Loop]) -> list[str]:
    return [name for name in inspect.signature(make).parameters if name not in ("store", "model")]
