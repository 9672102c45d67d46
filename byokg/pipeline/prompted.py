"""Pipelines that ask a language model: KG-Linker, retrieval, and an answer with citations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from byokg.errors import ConfigError
from byokg.graph.schema_text import SchemaRenderer
from byokg.graph.store import GraphStore, query_engines, query_notes
from byokg.index.embedders import Embedder, StaticEmbedder
from byokg.linking.entities import EntityLinker
from byokg.linking.kg_linker import TASKS, GivenEntities, LlmLinker, PathLanguage, Task
from byokg.linking.relation_meaning import RelationMatcher
from byokg.llm.model import LanguageModel
from byokg.llm.usage import ESTIMATE, token_counter
from byokg.pipeline.context import ContextWriter
from byokg.pipeline.direct import Direct, LlmAnswerer
from byokg.pipeline.loop import KGLinker, Loop, Parts, RetrieverMaker, Stage
from byokg.prompts.template import PromptLibrary
from byokg.retrieval.agentic import AgenticRetriever
from byokg.retrieval.bfsql import BfsqlRetriever
from byokg.retrieval.path import PathRetriever
from byokg.retrieval.query import QueryRetriever
from byokg.retrieval.text import TextRetriever

QUERY = "query"

RETRIEVERS: Mapping[str, RetrieverMaker | None] = MappingProxyType(
    {
        "path": PathRetriever,
        QUERY: QueryRetriever,
        "agentic": AgenticRetriever,
        "text": TextRetriever,
        "bfsql": BfsqlRetriever,
    }
)
"""Those of `pipeline=byokg`, with their default settings."""


def byokg_pipeline(
    store: GraphStore,
    model: LanguageModel,
    embedder: Embedder | None = None,
    entities: EntityLinker | None = None,
    retrievers: Mapping[str, RetrieverMaker | None] = RETRIEVERS,
    rounds: int = 2,
    cypher_rounds: int = 0,
    tasks: Sequence[Task] = TASKS,
    schema_tokens: int = 2000,
    context_tokens: int = 6000,
    tokens: str = ESTIMATE,
    unite_drafts: bool = False,
    prompts: PromptLibrary | None = None,
    path_language: PathLanguage = "metapaths",
) -> Loop:
    """Put the parts together for one graph and one language model.

    Args:
        store: the graph; its schema is read at once.
        model: who writes the artifacts and the answer.
        embedder: compares relations with questions and with what the model wrote; None takes the shipped one.
        entities: links mentions; None links fuzzily with its defaults.
        retrievers: by name, what makes each; None switches one off. They are given what they take by name (`Parts`).
            The one named `query` is left out where the graph runs no queries.
        rounds: iterations at most (T_R).
        cypher_rounds: rounds before these in which the model writes nothing but a query, and is told what became of the
            one before, until one returns rows.
        tasks: what the KG-Linker is asked to write; nothing at all asks nobody, and only entities that come with the
            question are linked. A query is asked for in each language that the graph speaks.
        schema_tokens: budget of the schema in a prompt.
        context_tokens: budget of the evidence in a prompt.
        tokens: how they are counted, see `token_counter`.
        unite_drafts: add the draft answers of the first round, which know nothing of the graph, to the answers: what
            Hit@2 counts. Needs the task `answers`, which `cypher_rounds` then ask for as well.
        prompts: what is asked; None takes the prompts that ship with the package.
        path_language: what the KG-Linker's task `paths` asks for: relation paths (`metapaths`), or a path query
            (`paths`, see docs/path-queries.md).

    Raises:
        ConfigError: a setting is out of range, or a retriever needs what this pipeline does not have.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "ByoKG-RAG Implementation"; `unite_drafts` after "Datasets & Metrics".
    """
    embedder = embedder or StaticEmbedder()
    count = token_counter(tokens, model.chat_model)
    parts = Parts(
        store=store,
        embedder=embedder,
        entities=entities or EntityLinker(store),
        prompts=prompts or PromptLibrary(),
        context=ContextWriter(store, context_tokens, count_tokens=count),
        schema=SchemaRenderer(store.schema(), embedder, count, query_notes(store)),
        relations=RelationMatcher(store.relations, embedder),
        count_tokens=count,
        model=model,
    )
    languages = tuple(engine.language for engine in query_engines(store))

    def linker(asked: Sequence[Task]) -> KGLinker:
        if not asked:
            return GivenEntities()
        return LlmLinker(
            model, parts.schema, parts.context, asked, languages, parts.prompts, schema_tokens, path_language
        )

    if unite_drafts and "answers" not in tasks:
        raise ConfigError(
            "unite_drafts=true needs draft answers, and nobody is asked for any; add 'answers' to tasks: "
            f"{','.join([*tasks, 'answers'])}"
        )
    made = parts.retrievers({name: make for name, make in retrievers.items() if name != QUERY or languages})
    stages = [Stage(linker(tasks), tuple(made.values()), rounds)]
    alone = not made and retrievers.get(QUERY) is not None
    if not languages and (cypher_rounds or alone):
        raise ConfigError(
            f"this pipeline asks for queries, and {store.name} runs none; choose graph=arcadedb (openCypher) or "
            "graph=oxigraph (SPARQL)"
        )
    if cypher_rounds:
        if QUERY not in made:
            raise ConfigError(f"cypher_rounds={cypher_rounds} needs the retriever 'query', which is off; use 0")
        first: Sequence[Task] = ["query", "answers"] if unite_drafts else ["query"]
        stages.insert(0, Stage(linker(first), (made[QUERY],), cypher_rounds, until="rows"))
    answerer = LlmAnswerer(model, store, parts.context, parts.prompts, unite_drafts)
    return Loop(parts.entities, stages, answerer)


def direct_pipeline(model: LanguageModel, thinking: bool = False, prompts: PromptLibrary | None = None) -> Direct:
    """Put together what answers without a graph.

    Args:
        model: who is asked.
        thinking: let the model think step by step first.
        prompts: what is asked; None takes the prompts that ship with the package.
    """
    return Direct(model, thinking, prompts)
