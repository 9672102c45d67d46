"""Tests of `byokg.linking.parts`: pipelines and retrievers are made of shared parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from byokg.errors import ConfigError
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.llm.chat_models import ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.types import Evidence, Request

# a -r-> b
STORE = ColumnarGraph.from_triples([("a", "r", "b")])


class Retrieves:
    """Finds nothing."""

    def retrieve(self, request: Request) -> Sequence[Evidence]:
        return []


class Mine(Retrieves):
    """Takes the graph and two settings."""

    def __init__(self, parts: Parts, k: int = 3, name: str = "mine") -> None:
        self.taken = (parts.store, k, name)


class Asking(Retrieves):
    """Cannot do without a language model."""

    def __init__(self, parts: Parts) -> None:
        self.model = parts.model


class Demanding(Retrieves):
    """Has a setting without a default."""

    def __init__(self, parts: Parts, database: str) -> None:
        self.database = database


def test_a_retriever_is_made_of_the_parts_and_its_settings() -> None:
    mine = Parts(STORE).retrievers({"mine": partial(Mine, k=7)})["mine"]
    assert isinstance(mine, Mine) and mine.taken == (STORE, 7, "mine")


def test_they_come_in_order_and_those_that_are_switched_off_do_not() -> None:
    parts = Parts(STORE, LanguageModel(ScriptedChatModel(replies=("yes",))))
    found = parts.retrievers({"b": Mine, "off": None, "a": Asking})
    assert [(name, type(each)) for name, each in found.items()] == [("b", Mine), ("a", Asking)]


def test_a_missing_language_model_is_reported_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match=r"calls a language model.*pipeline.retrievers.agentic=null"):
        Parts(STORE).retrievers({"agentic": Asking})


def test_a_missing_setting_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'mine' cannot be made .*'database'.*pipeline.retrievers.mine.SETTING="):
        Parts(STORE).retrievers({"mine": Demanding})  # type: ignore[dict-item]
    assert Parts(STORE).retrievers({"mine": partial(Demanding, database="here")})


def test_a_model_is_opened_when_it_is_first_wanted() -> None:
    opened = []

    def model() -> LanguageModel:
        opened.append(LanguageModel(ScriptedChatModel(replies=("yes",))))
        return opened[-1]

    parts = Parts(STORE, model)
    parts.retrievers({"mine": Mine})
    assert not opened
    assert parts.model is parts.model is opened[0]


def test_parts_without_a_graph_name_the_setting() -> None:
    with pytest.raises(ConfigError, match=r"graph\.path=DIR"):
        _ = Parts(None).store


def test_a_replacement_keeps_the_other_parts() -> None:
    parts = Parts(STORE)
    other = ColumnarGraph.from_triples([("c", "s", "d")])
    replaced = parts.replace(other, context=lambda context: "seen", count_tokens=len)
    assert (replaced.store, replaced.entities, replaced.embedder) == (other, parts.entities, parts.embedder)
    assert replaced.count_tokens("four") == 4 and list(replaced.relations.match("s").written) == ["s"]  # type: ignore[union-attr]
