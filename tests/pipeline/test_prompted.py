"""Tests of the pipelines that ask a language model: the context's text, the answerer, the loop, the direct baseline."""

from __future__ import annotations

from byokg.llm.model import LanguageModel
from byokg.llm.scripted import Rule, ScriptedChatModel
from byokg.pipeline.prompted import byokg_pipeline, direct_pipeline
from byokg.retrieval.base import Request
from byokg.retrieval.path import PathRetriever
from byokg.types import (
    Artifacts,
    Context,
    EntityId,
    Linked,
    LinkedEntity,
    Mention,
    PathEvidence,
    ProposedPath,
    Question,
)
from tests.linking.graphs import films

QUESTION = Question("q1", "Which films are by the director of Alien?")


def found(*paths: tuple[str, ...], source: str = "Alien") -> list[PathEvidence]:
    entity = LinkedEntity(EntityId(source), source, Mention(source), "exact", 1.0)
    artifacts = Artifacts(paths=tuple(ProposedPath(path) for path in paths))
    return PathRetriever(films()).retrieve(Request(QUESTION, artifacts, Linked((entity,)), Context()))


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


class TestLoop:
    def test_the_second_round_starts_from_what_the_first_found(self) -> None:
        answer = byokg_pipeline(films(), LanguageModel(ScriptedChatModel(rules=RULES))).run(QUESTION)
        assert [[item.relations for item in one.evidence] for one in answer.rounds] == [  # type: ignore[attr-defined]
            [("directed_by",)],
            [("^directed_by",)],
        ]
        assert [one.linked.entities[0].id for one in answer.rounds] == ["Alien", "Ridley Scott"]

    def test_answers_cite_the_evidence_that_holds_them_and_only_that(self) -> None:
        answer = byokg_pipeline(films(), LanguageModel(ScriptedChatModel(rules=RULES))).run(QUESTION)
        assert [(item.name, item.id, item.citations, item.grounded) for item in answer.items] == [
            ("Blade Runner", "Blade Runner", ("e2",), True),
            ("Alien 3", None, (), False),
            ("Ridley Scott", "Ridley Scott", ("e1", "e2"), True),
        ]


class TestDirect:
    def test_answers_are_the_models_own_and_rest_on_nothing(self) -> None:
        model = LanguageModel(ScriptedChatModel(replies=("<answers>\n- Blade Runner\n- Gladiator\n</answers>",)))
        answer = direct_pipeline(model).run(QUESTION)
        assert [(item.name, item.grounded) for item in answer.items] == [("Blade Runner", False), ("Gladiator", False)]

    def test_thinking_aloud_is_no_answer(self) -> None:
        rule = Rule("Step by step: Alien is by Ridley Scott.\n<answers>Gladiator</answers>", contains=("step by step",))
        answer = direct_pipeline(LanguageModel(ScriptedChatModel(rules=(rule,))), thinking=True).run(QUESTION)
        assert [item.name for item in answer.items] == ["Gladiator"]
