"""Shared components of a pipeline, and the making of its retrievers from them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from byokg.errors import ConfigError
from byokg.graph.schema_text import SchemaRenderer
from byokg.graph.store import GraphStore
from byokg.index.embedders import Embedder
from byokg.linking.entities import EntityLinker
from byokg.linking.relation_matcher import RelationMatcher
from byokg.llm.model import LanguageModel
from byokg.pipelines.context import ContextWriter
from byokg.prompts import PromptLibrary
from byokg.text.names import estimate_tokens
from byokg.types import Retriever

RetrieverFactory: TypeAlias = Callable[..., Retriever]
"""A retriever's class, possibly with some of its settings (`functools.partial`), or a function that returns one."""


@dataclass(frozen=True)
class PipelineComponents:
    """Shared components of a pipeline. A factory's argument of such a name is filled in."""

    store: GraphStore
    embedder: Embedder
    entities: EntityLinker
    prompts: PromptLibrary
    context: ContextWriter
    schema: SchemaRenderer
    relations: RelationMatcher
    count_tokens: Callable[[str], int] = estimate_tokens
    model: LanguageModel | None = None
    """None in a pipeline that asks no language model."""

    def retrievers(self, factories: Mapping[str, RetrieverFactory | None]) -> dict[str, Retriever]:
        """Make the retrievers that are switched on; return them by name, in order.

        Args:
            factories: by name; None switches one off.

        Raises:
            ConfigError: a retriever needs a language model that the pipeline lacks, or has an unknown argument.
        """
        return {name: self._make(name, make) for name, make in factories.items() if make is not None}

    def _make(self, name: str, make: RetrieverFactory) -> Retriever:
        parameters = inspect.signature(make).parameters
        shared: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        needed = [
            parameter.name
            for parameter in parameters.values()
            if parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]
        if "model" in needed and self.model is None:
            raise ConfigError(
                f"retriever {name!r} asks a language model, and this pipeline has none; choose a pipeline with one "
                f"(pipeline=byokg llm=…), or switch it off: pipeline.retrievers.{name}=null"
            )
        missing = [argument for argument in needed if argument not in shared]
        if missing:
            raise ConfigError(
                f"retriever {name!r} needs {', '.join(missing)}; set pipeline.retrievers.{name}.{missing[0]}=…, or "
                f"rename it to what a pipeline can give: {', '.join(shared)}"
            )
        chosen = getattr(make, "keywords", {})  # of a partial: the settings
        made = make(**{part: value for part, value in shared.items() if part in parameters and part not in chosen})
        if not callable(getattr(made, "retrieve", None)):
            raise ConfigError(f"retriever {name!r} is a {type(made).__name__}, which has no method retrieve(request)")
        return made
