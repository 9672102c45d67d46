"""What retrievers are made of, and how they get it: by the names of their arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from byokg.errors import ConfigError
from byokg.graph.schema_text import SchemaRenderer, estimate_tokens
from byokg.graph.store import GraphStore
from byokg.index.embedder import Embedder
from byokg.linking.entities import EntityLinker
from byokg.linking.relations import RelationMatcher
from byokg.llm.model import LanguageModel
from byokg.pipeline.context import ContextWriter
from byokg.prompts.template import PromptLibrary
from byokg.retrieval.base import Retriever

RetrieverMaker: TypeAlias = Callable[..., Retriever]
"""A retriever's class, with or without some of its settings (`functools.partial`), or any function that makes one."""


@dataclass(frozen=True)
class Parts:
    """What a pipeline makes once and its retrievers share. An argument of such a name is filled in."""

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

    def retrievers(self, makers: Mapping[str, RetrieverMaker | None]) -> dict[str, Retriever]:
        """Make the retrievers that are switched on; return them by name, in order.

        Args:
            makers: by name; None switches one off.

        Raises:
            ConfigError: a retriever needs a language model where there is none, or an argument that nobody gives.
        """
        return {name: self._made(name, make) for name, make in makers.items() if make is not None}

    def _made(self, name: str, make: RetrieverMaker) -> Retriever:
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
        return make(**{part: value for part, value in shared.items() if part in parameters and part not in chosen})
