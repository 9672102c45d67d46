"""Tests of the pipelines that ask a language model: the context's text, the answerer, the loop, the direct baseline."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from byokg.errors import ConfigError
from byokg.linking.parts import Budgets, Parts, RetrieverFactory
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.pipelines.byokg import Direct, Rounds, byokg_pipeline
from byokg.pipelines.lean import lean_pipeline
from byokg.retrieval.agentic import AgenticRetriever
from byokg.retrieval.bfsql import BfsqlRetriever
from byokg.retrieval.path import PathRetriever
from byokg.retrieval.query import QueryRetriever
from byokg.retrieval.text import RerankRetriever, TextRetriever
from byokg.types import (
    Answer,
    Artifacts,
    Context,
    EntityId,
    Feedback,
    Linked,
    LinkedEntity,
    Mention,
    PathEvidence,
    ProposedPath,
    Question,
    Request,
)
from tests.linking.graphs import films
from tests.llm.memory import CountingMeter

if TYPE_CHECKING:
    from byokg.graph.engines.arcadedb import ArcadeStore

QUESTION = Question("q1", "Which films are by the director of Alien?")


def found(*paths: tuple[str, ...], source: str = "Alien") -> list[PathEvidence]:
    entity = LinkedEntity(EntityId(source), source, Mention(source), "exact", 1.0)
    artifacts = Artifacts(paths=tuple(ProposedPath(path) for path in paths))
    request = Request(QUESTION, artifacts, Linked((entity,)), Context())
    return [item for item in PathRetriever(Parts(films())).retrieve(request) if isinstance(item, PathEvidence)]


def context(*rounds: list[PathEvidence]) -> Context:
    gathered = Context()
    for evidence in rounds:
        gathered = gathered.add(Artifacts(), Linked(), [evidence])
    return gathered


# Round one names Alien and one hop; what it finds names Ridley Scott, from whom round two goes on.
RULES = (
    Rule("<answers>Blade Runner [e2]\nAlien 3 [e1]\nRidley Scott</answers>", contains=("Each fact begins",)),
    Rule(
        "<entities>Ridley Scott</entities><paths>directed_by</paths>",
        contains=("Next entities", "→ directed_by → Ridley Scott"),
    ),
    Rule("<entities>Alien</entities><paths>directed by</paths><answers></answers>", contains=("Entity extraction",)),
)


def answered(rules: tuple[Rule, ...], **settings: Any) -> Answer:
    """Answer the question with paths alone."""
    model = LanguageModel(ScriptedChatModel(rules=rules))
    return byokg_pipeline(Parts(films(), model), retrievers={"path": PathRetriever}, **settings).run(QUESTION)


class TestLoop:
    def test_the_second_round_starts_from_what_the_first_found(self) -> None:
        answer = answered(RULES)
        assert [[item.relations for item in one.evidence] for one in answer.rounds] == [  # type: ignore[attr-defined]
            [("directed_by",)],
            [("^directed_by",)],
        ]
        assert [one.linked.entities[0].id for one in answer.rounds] == ["Alien", "Ridley Scott"]

    def test_answers_cite_the_evidence_that_holds_them_and_only_that(self) -> None:
        answer = answered(RULES)
        assert [(item.name, item.id, item.citations, item.grounded) for item in answer.items] == [
            ("Blade Runner", "Blade Runner", ("e2",), True),
            ("Alien 3", None, (), False),
            ("Ridley Scott", "Ridley Scott", ("e1", "e2"), True),
        ]


class TestUnitedDrafts:
    RULES = (
        Rule("<answers>Blade Runner [e1]\nAlien</answers>", contains=("Each fact begins",)),
        Rule("<entities>FINISH</entities><answers>Alien 3</answers>", contains=("Next entities",)),
        Rule(
            "<entities>Ridley Scott</entities><paths>directed_by</paths>"
            "<answers>Gladiator\nalien\nBlade Runner</answers>",
            contains=("Entity extraction",),
        ),
    )

    def test_what_the_model_knew_before_stands_beside_what_it_found_each_name_once(self) -> None:
        answer = answered(self.RULES, merge_drafts=True)
        assert [(item.name, item.citations) for item in answer.items] == [
            ("Blade Runner", ("e1", "e3")),  # e3, the shortest path to a draft answer, says the same
            ("Gladiator", ()),
            ("Alien", ("e1", "e2")),
        ]

    def test_they_have_to_be_asked_for(self) -> None:
        with pytest.raises(ConfigError, match="add 'answers' to tasks: entities,answers"):
            answered(self.RULES, merge_drafts=True, tasks=("entities",))

    def test_else_drafts_are_no_answers(self) -> None:
        assert [item.name for item in answered(self.RULES).items] == ["Blade Runner", "Alien"]


class TestModes:
    def test_without_tasks_nobody_is_asked_before_the_answer(self) -> None:
        given = Question("q1", QUESTION.text, topic_ids=(EntityId("Alien"),))
        rules = (Rule("<answers>Ridley Scott</answers>", contains=("Each fact begins",)),)
        pipeline = byokg_pipeline(
            Parts(films(), LanguageModel(ScriptedChatModel(rules=rules))), retrievers={}, tasks=()
        )
        answer = pipeline.run(given)
        assert [one.linked.entities[0].id for one in answer.rounds] == ["Alien", "Alien"]
        assert [item.name for item in answer.items] == ["Ridley Scott"]

    def test_queries_come_first_only_where_the_graph_runs_them(self) -> None:
        model = LanguageModel(ScriptedChatModel(replies=("yes",)))
        with pytest.raises(ConfigError, match="films runs none; choose graph=arcadedb"):
            byokg_pipeline(Parts(films(), model), rounds=Rounds(queries=2))
        with pytest.raises(ConfigError, match="films runs none; choose graph=arcadedb"):
            byokg_pipeline(Parts(films(), model), retrievers={"query": QueryRetriever})

    def test_queries_cannot_come_first_where_they_are_switched_off(self, atlas_store: ArcadeStore) -> None:
        model = LanguageModel(ScriptedChatModel(replies=("yes",)))
        with pytest.raises(ConfigError, match=r"rounds\.queries=2 needs the retriever 'query', which is off"):
            byokg_pipeline(Parts(atlas_store, model), retrievers={"query": None}, rounds=Rounds(queries=2))

    def test_the_query_retriever_is_left_out_where_the_graph_runs_none(self) -> None:
        pipeline = byokg_pipeline(Parts(films(), LanguageModel(ScriptedChatModel(replies=("yes",)))))
        assert QueryRetriever not in [type(one) for one in pipeline.stages[0].retrievers]

    def test_tokens_are_counted_as_is_said(self) -> None:
        model = LanguageModel(ScriptedChatModel(replies=("yes",)))
        with pytest.raises(ConfigError, match="tokens=model needs a language model that brings its tokenizer"):
            byokg_pipeline(Parts(films(), model), budgets=Budgets(tokens="model"))


class TestCalls:
    """A model that never has enough: it names someone new in each round, and goes on wherever it can."""

    RULES = (
        Rule("<answers>Horror</answers>", contains=("Each fact begins",)),
        Rule("<selected>directed_by\nstarred_actors</selected>", contains=("Select the relations to follow",)),
        Rule(
            "<next-entities>Ridley Scott\nSigourney Weaver\nJames Cameron\nAliens\nBlade Runner</next-entities>",
            contains=("Select the entities to explore next",),
        ),
        Rule("<entities>Titanic</entities><answers>Drama</answers>", contains=("part of its content",)),
        Rule("<entities>Alien</entities><answers>1979</answers>", contains=("not its content",)),
    )

    @pytest.mark.parametrize(("retriever", "most"), [("agentic", 11), ("rerank", 3), ("text", 3)])
    def test_a_question_takes_no_more_than_the_retrievers_are_meant_to(self, retriever: str, most: int) -> None:
        makers: dict[str, RetrieverFactory] = {
            "agentic": AgenticRetriever,
            "rerank": RerankRetriever,
            "text": TextRetriever,
        }
        meter = CountingMeter()
        model = LanguageModel(ScriptedChatModel(rules=self.RULES), meter=meter)
        chosen = {"path": PathRetriever, retriever: makers[retriever]}
        answer = byokg_pipeline(Parts(films(), model), retrievers=chosen).run(QUESTION)
        assert len(answer.rounds) == 2
        assert len(meter.sent) == most


class TestDirect:
    def test_answers_are_the_models_own_and_rest_on_nothing(self) -> None:
        model = LanguageModel(ScriptedChatModel(replies=("<answers>\n- Blade Runner\n- Gladiator\n</answers>",)))
        answer = Direct(Parts(None, model)).run(QUESTION)
        assert [(item.name, item.grounded) for item in answer.items] == [("Blade Runner", False), ("Gladiator", False)]

    def test_thinking_aloud_is_no_answer(self) -> None:
        rule = Rule("Step by step: Alien is by Ridley Scott.\n<answers>Gladiator</answers>", contains=("step by step",))
        answer = Direct(Parts(None, LanguageModel(ScriptedChatModel(rules=(rule,)))), thinking=True).run(QUESTION)
        assert [item.name for item in answer.items] == ["Gladiator"]


@pytest.mark.parametrize("hops", [1, 3])
def test_the_prompt_allows_the_hops_that_the_setting_walks(hops: int) -> None:
    request = f'<bfsql>{{"seeds": ["Alien"], "max_hops": {hops}}}</bfsql>'
    rules = (
        Rule(request, contains=(f"at most {hops}:", f'"max_hops": {hops},')),
        Rule("<answers>Ridley Scott</answers>", contains=("Each fact begins",)),
        Rule("<answers>Ridley Scott</answers>", contains=("Nothing more can be retrieved",)),
    )
    retrievers: dict[str, RetrieverFactory | None] = {"bfsql": partial(BfsqlRetriever, max_hops=hops)}
    model = LanguageModel(ScriptedChatModel(rules=rules))
    for pipeline in (
        byokg_pipeline(Parts(films(), model), retrievers=retrievers, tasks=["bfsql"], rounds=Rounds(most=1)),
        lean_pipeline(Parts(films(), model), retrievers=retrievers, tasks=["bfsql"], calls=2),
    ):
        evidence = [item for one in pipeline.run(QUESTION).rounds for item in one.evidence]
        assert evidence and not any(isinstance(item, Feedback) for item in evidence)
