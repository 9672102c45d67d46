"""How many calls of a language model a question takes, and what the agent is shown of what it found."""

from __future__ import annotations

import re

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.pipelines.byokg import Rounds, byokg_pipeline
from byokg.retrieval.agentic import AgenticRetriever
from byokg.types import Question
from tests.linking.graphs import EMBEDDER, marriages

AGENTIC = {"agentic": AgenticRetriever}

CHAIN = ColumnarGraph.from_triples([(f"node {at}", "next", f"node {at + 1}") for at in range(12)])


class Restless(ScriptedChatModel):
    """Never finishes: it goes on from the last node that it is shown."""

    def _rule(self, prompt: str) -> Rule:
        SEEN.append(prompt)
        last = max(map(int, re.findall(r"node (\d+)", prompt)), default=0)
        if "Entities and their relations:" in prompt:
            return Rule("<selected>next</selected>")
        if "<next-entities>" in prompt:
            return Rule(f"<next-entities>node {last}</next-entities>")
        return Rule(f"<entities>node {last}</entities><answers>node {last}</answers>")


class Told(ScriptedChatModel):
    """Answers by rules, and remembers the prompts."""

    def _rule(self, prompt: str) -> Rule:
        SEEN.append(prompt)
        return super()._rule(prompt)


SEEN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


def test_a_model_that_never_finishes_is_asked_thirteen_times_at_most() -> None:
    pipeline = byokg_pipeline(Parts(CHAIN, LanguageModel(Restless()), EMBEDDER), retrievers=AGENTIC)
    answer = pipeline.run(Question("ask", "What is at the end of node 0?"))
    assert len(answer.rounds) == 2
    assert len(SEEN) == 13  # two of the KG-Linker, five a round of the agent, one of the answerer
    # Three hops of the first round; one of the second, chosen by the embedder, to where it was not yet.
    assert [len(each.evidence) for each in answer.rounds] == [3, 4]


def test_a_model_that_finishes_early_is_asked_less() -> None:
    rules = (
        Rule("<selected>people.person.spouse_s</selected>", contains=("Entities and their relations:",)),
        Rule("<next-entities>FINISH</next-entities>", contains=("Select the entities to explore next",)),
        Rule("<entities>FINISH</entities>", contains=("Next entities",)),
        Rule("<entities>Ann</entities>", contains=("Entity extraction",)),
        Rule("<answers>Bob [e1]</answers>", contains=("Each fact begins",)),
    )
    answer = byokg_pipeline(Parts(marriages(), LanguageModel(Told(rules=rules)), EMBEDDER), retrievers=AGENTIC).run(
        Question("ask", "Who is Ann married to?")
    )
    assert len(SEEN) == 4 and len(answer.rounds) == 1
    (item,) = answer.items
    assert (item.name, item.id) == ("Bob", "Bob") and item.grounded


def test_by_the_paper_s_letter_the_agent_ends_its_walk_alone() -> None:
    rules = (
        Rule("<selected>people.person.spouse_s</selected>", contains=("Entities and their relations:",)),
        Rule("<next-entities>FINISH</next-entities>", contains=("Select the entities to explore next",)),
        Rule("<entities>FINISH</entities>", contains=("Next entities",)),
        Rule("<entities>Ann</entities>", contains=("Entity extraction",)),
        Rule("<answers>Bob [e1]</answers>", contains=("Each fact begins",)),
    )
    model = LanguageModel(Told(rules=rules))
    pipeline = byokg_pipeline(
        Parts(marriages(), model, EMBEDDER), retrievers=AGENTIC, rounds=Rounds(stop_when="no_new_entity")
    )
    answer = pipeline.run(Question("ask", "Who is Ann married to?"))
    assert len(SEEN) == 5 and [each.artifacts.finished for each in answer.rounds] == [False, True]


def test_the_agent_reads_through_mediators() -> None:
    rules = (
        Rule("<selected>people.person.spouse_s</selected>", contains=("Entities and their relations:",)),
        Rule("<next-entities>FINISH</next-entities>", contains=("Select the entities to explore next",)),
        Rule("<entities>Ann</entities>", contains=("Entity extraction",)),
        Rule("<entities>FINISH</entities>", contains=("Next entities",)),
        Rule("<answers>Bob</answers>"),
    )
    byokg_pipeline(Parts(marriages(), LanguageModel(Told(rules=rules)), EMBEDDER), retrievers=AGENTIC).run(
        Question("ask", "Who?")
    )
    (prompt,) = [seen for seen in SEEN if "Select the entities to explore next" in seen]
    shown = prompt.rpartition("Graph context:")[2]
    assert "Ann" in shown and "Bob" in shown and "1999" in shown and "m.0m1" not in shown
