"""Pipelines that ask a language model: KG-Linker, retrieval, and an answer with citations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from byokg.graph.schema_text import SchemaRenderer
from byokg.graph.store import GraphStore
from byokg.index.embedder import Embedder
from byokg.index.static import StaticEmbedder
from byokg.linking.entities import EntityLinker
from byokg.linking.kg_linker import PAPER_TASKS, LlmLinker, Task
from byokg.linking.relations import RelationMatcher
from byokg.llm.model import LanguageModel
from byokg.pipeline.context import ContextWriter
from byokg.pipeline.direct import Direct
from byokg.pipeline.llm_answer import LlmAnswerer
from byokg.pipeline.loop import Loop, Stage
from byokg.pipeline.parts import Parts
from byokg.prompts.template import PromptLibrary
from byokg.retrieval.base import Retriever
from byokg.retrieval.path import PathRetriever

PATHS_ONLY: Mapping[str, Callable[..., Retriever] | None] = MappingProxyType({"path": PathRetriever})


def byokg_pipeline(
    store: GraphStore,
    model: LanguageModel,
    embedder: Embedder | None = None,
    entities: EntityLinker | None = None,
    retrievers: Mapping[str, Callable[..., Retriever] | None] = PATHS_ONLY,
    rounds: int = 2,
    tasks: Sequence[Task] = PAPER_TASKS,
    schema_tokens: int = 2000,
    context_tokens: int = 6000,
    prompts: PromptLibrary | None = None,
) -> Loop:
    """Put the parts together for one graph and one language model.

    Args:
        store: the graph; its schema is read at once.
        model: who writes the artifacts and the answer.
        embedder: compares relations with questions and with what the model wrote; None takes the shipped one.
        entities: links mentions; None links fuzzily with its defaults.
        retrievers: by name, what makes each; None switches one off. They are given what they take by name (`Parts`).
        rounds: iterations at most (T_R).
        tasks: what the KG-Linker is asked to write.
        schema_tokens: budget of the schema in a prompt.
        context_tokens: budget of the evidence in a prompt.
        prompts: what is asked; None takes the prompts that ship with the package.

    Raises:
        ConfigError: a setting is out of range, or a retriever needs what this pipeline does not have.
    """
    embedder = embedder or StaticEmbedder()
    parts = Parts(
        store=store,
        embedder=embedder,
        entities=entities or EntityLinker(store),
        prompts=prompts or PromptLibrary(),
        context=ContextWriter(store, context_tokens),
        schema=SchemaRenderer(store.schema(), embedder),
        relations=RelationMatcher(store.relations, embedder),
        model=model,
    )
    linker = LlmLinker(model, parts.schema, parts.relations, parts.context, tasks, parts.prompts, schema_tokens)
    answerer = LlmAnswerer(model, store, parts.context, parts.prompts)
    return Loop(parts.entities, [Stage(linker, parts.retrievers(retrievers), rounds)], answerer)


def direct_pipeline(model: LanguageModel, thinking: bool = False, prompts: PromptLibrary | None = None) -> Direct:
    """Put together what answers without a graph.

    Args:
        model: who is asked.
        thinking: let the model think step by step first.
        prompts: what is asked; None takes the prompts that ship with the package.
    """
    return Direct(model, thinking, prompts)
