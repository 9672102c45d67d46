"""Parts that a pipeline, its linker and its retrievers share, and budgets of prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias

from byokg.errors import ConfigError
from byokg.graph.schema_text import Nearness, SchemaRenderer
from byokg.graph.store import GraphStore, query_notes, schema_ahead
from byokg.index.embedders import Embedder, LabelTranslator, is_multilingual, shipped_embedder
from byokg.linking.entities import EntityLinker
from byokg.linking.relation_matcher import RelationMatcher
from byokg.prompts import PromptLibrary
from byokg.text.labels import split_label
from byokg.text.languages import LanguageChoice, QuestionTranslator
from byokg.text.names import ESTIMATE, estimate_tokens
from byokg.types import Context, Language, Retriever

if TYPE_CHECKING:
    from byokg.linking.grounding import LiteralGrounder
    from byokg.llm.model import LanguageModel

NO_GRAPH = "no graph is named; add graph.path=DIR, or dataset=atlas for the graph that ships with byokg"


@dataclass(frozen=True)
class Budgets:
    """Sizes of the parts of a prompt.

    Args:
        schema_tokens: of the schema.
        context_tokens: of the evidence.
        tokens: tokenizer, see `token_counter`.
    """

    schema_tokens: int = 2000
    context_tokens: int = 6000
    tokens: str = ESTIMATE


class Parts:
    """Shared parts over one graph. Pipelines and retrievers are made of them and of their own settings.

    Example:
        parts = Parts(graph.store, model)
        loop = byokg_pipeline(parts, retrievers={"text": partial(TextRetriever, k=5)})

    Args:
        store: the graph; None for a pipeline that reads none.
        model: the language model, or a function that opens it on first use; None for a pipeline that calls none.
        embedder: compares words; None takes the shipped one.
        entities: links mentions; None links fuzzily with its defaults.
        prompts: the prompts; None takes those of the package.
        language: of the questions, see `byokg.text.languages`; `auto` detects that of each.
    """

    def __init__(
        self,
        store: GraphStore | None,
        model: LanguageModel | Callable[[], LanguageModel] | None = None,
        embedder: Embedder | None = None,
        entities: EntityLinker | None = None,
        prompts: PromptLibrary | None = None,
        language: LanguageChoice = "auto",
    ) -> None:
        self._store = store
        self._model = model
        self._embedder = embedder
        self._entities = entities
        self.prompts = prompts or PromptLibrary(language=language)
        self.language = language
        self.context: Callable[[Context], str] = lambda context: ""
        """Writes the evidence so far for a prompt; set by pipelines that show it."""
        self.count_tokens: Callable[[str], int] = estimate_tokens
        """Tokens of a text, by the tokenizer of the pipeline's budgets."""

    def replace(
        self,
        store: GraphStore | None = None,
        context: Callable[[Context], str] | None = None,
        count_tokens: Callable[[str], int] | None = None,
    ) -> Parts:
        """Return the same parts over another view of the graph, or with a writer of evidence and a tokenizer."""
        store = self.store if store is None else store
        parts = Parts(store, self._model, self._embedder, self.entities, self.prompts, self.language)
        parts.context = context or self.context
        parts.count_tokens = count_tokens or self.count_tokens
        return parts

    @cached_property
    def store(self) -> GraphStore:
        """The graph. Raises `ConfigError` if there is none."""
        if self._store is None:
            raise ConfigError(NO_GRAPH)
        return self._store

    @cached_property
    def model(self) -> LanguageModel:
        """The language model. Raises `ConfigError` if there is none."""
        if self._model is None:
            raise ConfigError(
                "a part calls a language model, and the pipeline has none; choose one with a model "
                "(pipeline=byokg llm=…), or switch the part off, for instance pipeline.retrievers.agentic=null"
            )
        return self._model() if callable(self._model) else self._model

    @cached_property
    def embedder(self) -> Embedder:
        """Compares words."""
        return self._embedder or shipped_embedder()

    @cached_property
    def entities(self) -> EntityLinker:
        """Links mentions to nodes."""
        return self._entities or EntityLinker(self.store)

    @cached_property
    def translate(self) -> QuestionTranslator:
        """Translates questions into the English that mentions and words are found in."""
        return QuestionTranslator(lambda text: self.entities.names.knows(text), self.language, self._nearest_label)

    def _nearest_label(self, word: str) -> str:
        if self._labels is None or self.entities.names.search([word], 1, self.entities.cutoff)[0]:
            return ""  # a name, perhaps misspelt
        return self._labels.nearest(word) or self.entities.nearest_name(word)

    @cached_property
    def _labels(self) -> LabelTranslator | None:
        """The labels of the schema for words of other languages, if the embedder compares these."""
        if not is_multilingual(self.embedder):
            return None
        schema = self.store.schema()
        properties = (name for names in schema.node_properties.values() for name in names)
        labels = [split_label(label) for label in (*schema.node_types, *self.store.relations, *properties)]
        return LabelTranslator(labels, self.embedder) if labels else None

    @cached_property
    def grounder(self) -> LiteralGrounder:
        """Compares literals of queries with the values of the graph."""
        from byokg.linking.grounding import LiteralGrounder  # of which most pipelines need nothing

        return LiteralGrounder(self.store)

    @cached_property
    def schema(self) -> SchemaRenderer:
        """Renders the part of the graph's schema that is relevant to a question; the schema is read at once."""
        notes = partial(query_notes, self.store)
        schema, near = schema_ahead(self.store), Nearness(self.store)
        return SchemaRenderer(
            schema, self.embedder, self.count_tokens, notes, near, values=lambda: self.entities.values
        )

    @cached_property
    def relations(self) -> RelationMatcher:
        """Matches written labels to the graph's relations."""
        return RelationMatcher(self.store.relations, self.embedder)

    @cached_property
    def languages(self) -> tuple[Language, ...]:
        """Query languages of the graph."""
        return tuple(engine.language for engine in self.store.engines)

    def retrievers(self, factories: Mapping[str, RetrieverFactory | None]) -> dict[str, Retriever]:
        """Make the retrievers that are switched on; return them by name, in order.

        Args:
            factories: by name; None switches one off.

        Raises:
            ConfigError: a retriever calls a language model and there is none, or lacks a setting.
        """
        return {name: self._made(name, make) for name, make in factories.items() if make is not None}

    def _made(self, name: str, make: RetrieverFactory) -> Retriever:
        try:
            retriever = make(self)
        except TypeError as error:
            raise ConfigError(
                f"retriever {name!r} cannot be made of the parts of a pipeline, its first argument: {error}; for a "
                f"missing setting add pipeline.retrievers.{name}.SETTING=…"
            ) from error
        if not callable(getattr(retriever, "retrieve", None)):
            raise ConfigError(
                f"retriever {name!r} is a {type(retriever).__name__}, which has no method retrieve(request)"
            )
        return retriever


RetrieverFactory: TypeAlias = Callable[[Parts], Retriever]
"""A retriever's class, possibly with some of its settings (`functools.partial`), or a function that returns one."""
