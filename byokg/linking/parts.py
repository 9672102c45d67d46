"""Parts that a pipeline, its linker and its retrievers share, and budgets of prompts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from rapidfuzz import fuzz, process

from byokg.arrays import Float64
from byokg.errors import ConfigError, shares
from byokg.graph.schema_text import Nearness, SchemaRenderer
from byokg.graph.store import GraphStore, query_notes, schema_ahead
from byokg.graph.value_indexes import values_at_hand
from byokg.index.embedders import Embedder, LabelTranslator, compare_rows, exact, is_multilingual, shipped_embedder
from byokg.linking.entities import EntityLinker
from byokg.llm.shown_names import ShownNames
from byokg.prompts import PromptLibrary
from byokg.text.languages import LanguageChoice, QuestionTranslator
from byokg.text.names import ESTIMATE, estimate_tokens, normalize_label, split_label
from byokg.types import INVERSE, Context, Language, Retriever

if TYPE_CHECKING:
    from byokg.linking.grounding import LiteralGrounder
    from byokg.llm.model import LanguageModel

MatchMethod = Literal["exact", "folded", "fuzzy", "dense"]

_REMEMBERED = 1 << 14


_UNPLAIN = re.compile(r"[^\w.:/ -]|\s[/-]|[/-]\s|\bthen\b|^[^:/]*/[^:]*$")


@dataclass(frozen=True)
class RelationMatch:
    """Match of a written label."""

    written: str
    """Without the sign of inversion."""
    relation: str
    method: MatchMethod
    score: float
    """In [0, 1]; 1 when equal, also after folding."""


class RelationMatcher:
    """Finds the relation that a written label means: exactly, folded, by letters, then by meaning.

    Args:
        relations: R labels of the graph; of equally good ones the first counts.
        embedder: compares meanings; None compares letters only.
        fuzzy_cutoff: lowest similarity in letters, in [0, 1].
        dense_cutoff: lowest cosine.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Path Retrieval".
    Differs: the paper follows only labels that the graph has; models misspell and shorten them.
    """

    def __init__(
        self,
        relations: Sequence[str],
        embedder: Embedder | None = None,
        fuzzy_cutoff: float = 0.86,
        dense_cutoff: float = 0.7,
    ) -> None:
        shares(fuzzy_cutoff=fuzzy_cutoff, dense_cutoff=dense_cutoff)
        self._given = relations
        self._fuzzy_cutoff = fuzzy_cutoff
        self._dense_cutoff = dense_cutoff
        self._embedder = embedder
        self.match = lru_cache(_REMEMBERED)(self._match)
        """Return the relation for a written label, None if none is similar; see the class."""

    # Compared data is read on the first label that needs it.

    @cached_property
    def _relations(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._given))

    @cached_property
    def unplain(self) -> ShownNames:
        """Relations whose labels hold separators of path steps: arrows, commas, slashes."""
        return ShownNames(relation for relation in self._relations if _UNPLAIN.search(relation))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self._relations)

    @cached_property
    def _texts(self) -> list[str]:
        return [normalize_label(relation) for relation in self._relations]

    @cached_property
    def _folded(self) -> dict[str, str]:
        folded: dict[str, str] = {}
        for text, relation in zip(self._texts, self._relations, strict=True):
            folded.setdefault(text, relation)
        return folded

    @cached_property
    def _vectors(self) -> Float64 | None:
        return exact(self._embedder.encode(self._texts)) if self._embedder is not None and self._relations else None

    def nearest(self, written: str, count: int = 3) -> list[str]:
        """Return the `count` relations most like a label: in meaning with an embedder, else in letters."""
        text = normalize_label(written.removeprefix(INVERSE).strip())
        if self._embedder is not None and self._vectors is not None:
            scores = compare_rows(self._vectors, exact(self._embedder.encode([text])[0]))
        else:
            scores = np.array([fuzz.ratio(text, each) for each in self._texts])
        order = np.argsort(-scores, kind="stable")[:count].tolist()
        return [self._relations[at] for at in order]

    def spelled(self, written: str) -> bool:
        """True if a label is one of the graph's, exactly, folded, or but for a few letters."""
        match = self.match(written)
        return match is not None and match.method != "dense"

    def _match(self, written: str) -> RelationMatch | None:
        written = written.removeprefix(INVERSE).strip()
        if written in self._known:
            return RelationMatch(written, written, "exact", 1.0)
        text = normalize_label(written)
        if not text:
            return None
        if text in self._folded:
            return RelationMatch(written, self._folded[text], "folded", 1.0)
        found = process.extractOne(text, self._texts, scorer=fuzz.ratio, score_cutoff=100 * self._fuzzy_cutoff)
        if found is not None:
            return RelationMatch(written, self._relations[found[2]], "fuzzy", found[1] / 100)
        if self._embedder is None or self._vectors is None:
            return None
        cosines = compare_rows(self._vectors, exact(self._embedder.encode([text])[0]))
        best = int(np.argmax(cosines))
        if cosines[best] < self._dense_cutoff:
            return None
        return RelationMatch(written, self._relations[best], "dense", min(1.0, float(cosines[best])))


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
        values, edge_values = lambda: self.entities.values, partial(values_at_hand, self.store, of_edges=True)
        return SchemaRenderer(schema, self.embedder, self.count_tokens, notes, near, values, edge_values)

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
