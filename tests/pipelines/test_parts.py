"""Tests of `byokg.pipelines.loop`: retrievers get what they take, by name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from byokg.errors import ConfigError
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.schema_text import SchemaRenderer
from byokg.graph.store import GraphStore
from byokg.index.embedders import StaticEmbedder
from byokg.linking.entities import EntityLinker
from byokg.linking.relation_matcher import RelationMatcher
from byokg.llm.chat_models import ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.pipelines.components import PipelineComponents
from byokg.pipelines.context import ContextWriter
from byokg.prompts import PromptLibrary
from byokg.types import Evidence, Request

# a -r-> b
STORE = ColumnarGraph.from_triples([("a", "r", "b")])


def parts(model: LanguageModel | None = None) -> PipelineComponents:
    embedder = StaticEmbedder()
    return PipelineComponents(
        store=STORE,
        embedder=embedder,
        entities=EntityLinker(STORE),
        prompts=PromptLibrary(),
        context=ContextWriter(STORE),
        schema=SchemaRenderer(STORE.schema()),
        relations=RelationMatcher(STORE.relations),
        model=model,
    )


class Retrieves:
    """Finds nothing."""

    def retrieve(self, request: Request) -> Sequence[Evidence]:
        return []


class Mine(Retrieves):
    """Takes the graph and two settings."""

    def __init__(self, store: GraphStore, k: int = 3, name: str = "mine") -> None:
        self.taken = (store, k, name)


class Asking(Retrieves):
    """Cannot do without a language model."""

    def __init__(self, store: GraphStore, model: LanguageModel) -> None:
        self.model = model


class Everything(Retrieves):
    """Takes all that a pipeline shares."""

    def __init__(
        self,
        store: Any,
        embedder: Any,
        entities: Any,
        prompts: Any,
        context: Any,
        schema: Any,
        relations: Any,
        count_tokens: Any,
        model: Any = None,
    ) -> None:
        self.taken = PipelineComponents(
            store, embedder, entities, prompts, context, schema, relations, count_tokens, model
        )


class Demanding(Retrieves):
    """Takes what nobody gives."""

    def __init__(self, store: GraphStore, database: str) -> None:
        self.database = database


def test_arguments_are_filled_in_by_name_beside_the_settings() -> None:
    mine = parts().retrievers({"mine": partial(Mine, k=7)})["mine"]
    assert isinstance(mine, Mine) and mine.taken == (STORE, 7, "mine")
    shared = parts(LanguageModel(ScriptedChatModel(replies=("yes",))))
    everything = shared.retrievers({"everything": Everything})["everything"]
    assert isinstance(everything, Everything) and everything.taken == shared


def test_they_come_in_order_and_those_that_are_switched_off_do_not() -> None:
    found = parts().retrievers({"b": Mine, "off": None, "a": Everything})
    assert [(name, type(each)) for name, each in found.items()] == [("b", Mine), ("a", Everything)]


def test_a_setting_replaces_what_would_be_shared() -> None:
    other = ColumnarGraph.from_triples([("c", "r", "d")])
    mine = parts().retrievers({"mine": partial(Mine, store=other)})["mine"]
    assert isinstance(mine, Mine) and mine.taken[0] is other


def test_a_language_model_that_is_missing_is_told_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match=r"'agentic' asks a language model.*pipeline.retrievers.agentic=null"):
        parts().retrievers({"agentic": Asking})


def test_an_argument_that_nobody_gives_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'mine' needs database; set pipeline.retrievers.mine.database="):
        parts().retrievers({"mine": Demanding})
    assert parts().retrievers({"mine": partial(Demanding, database="here")})
