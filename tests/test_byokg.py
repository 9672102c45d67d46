"""Tests of `byokg.api`: ten lines in a notebook."""

from __future__ import annotations

import pytest

from byokg import Byokg, KnowledgeGraph
from byokg.errors import ConfigError
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.pipelines.byokg import Rounds
from byokg.types import Question

FILMS = [
    ("Heat", "directed_by", "Michael Mann"),
    ("Heat", "starred_actors", "Al Pacino"),
    ("Ali", "directed_by", "Michael Mann"),
]

RULES = (
    Rule("<selected></selected>", contains=("Select the relations to follow",)),
    Rule("<answers>Michael Mann [e1]</answers>", contains=("Each fact begins",)),
    Rule("<entities>FINISH</entities>", contains=("Next entities",)),
    Rule("<entities>Heat</entities><paths>directed_by</paths>", contains=("Entity extraction",)),
)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_chat_model_and_a_graph_are_all_it_takes(wrapped: bool) -> None:
    chat_model = ScriptedChatModel(rules=RULES)
    kg = KnowledgeGraph.from_triples(FILMS)
    answer = Byokg(kg, llm=LanguageModel(chat_model) if wrapped else chat_model).ask("Who directed Heat?")
    assert [(item.name, item.id, item.grounded) for item in answer.items] == [("Michael Mann", "Michael Mann", True)]


def test_without_a_model_it_answers_offline() -> None:
    kg = KnowledgeGraph.from_triples(FILMS)
    assert [item.name for item in Byokg(kg).ask("Who directed Heat?").items] == ["Michael Mann"]
    assert Byokg(kg.store, max_hops=1).run(Question("q", "Who directed Heat?")).question_id == "q"


def test_settings_are_those_of_the_pipeline() -> None:
    kg = KnowledgeGraph.from_triples(FILMS)
    assert Byokg(kg, llm=ScriptedChatModel(rules=RULES), rounds=Rounds(1)).pipeline.stages[0].rounds == 1
    with pytest.raises(ConfigError, match="rounds=0"):
        Byokg(kg, llm=ScriptedChatModel(rules=RULES), rounds=Rounds(0))


def test_what_is_no_setting_and_no_model_is_refused_by_name() -> None:
    kg = KnowledgeGraph.from_triples(FILMS)
    with pytest.raises(ConfigError, match="no setting 'round'; there is retrievers, rounds"):
        Byokg(kg, llm=ScriptedChatModel(rules=RULES), round=1)
    with pytest.raises(ConfigError, match="no setting 'rounds' without a language model; there is max_hops"):
        Byokg(kg, rounds=1)
    with pytest.raises(ConfigError, match="llm='gpt-5' is a name; pass a LangChain chat model"):
        Byokg(kg, llm="gpt-5")  # type: ignore[arg-type]
