"""Tests of `byokg.retrieval.agentic`, with scripted chat models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from byokg.errors import ConfigError, LlmEmpty
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.retrieval.agentic import ENTITY_STAGE, RANKING_STAGE, RELATION_STAGE, AgenticRetriever
from byokg.types import (
    Artifacts,
    Context,
    EntityId,
    Evidence,
    Feedback,
    Linked,
    LinkedEntity,
    Mention,
    Question,
    Request,
    Step,
    Triple,
    TripleEvidence,
)
from tests.linking.graphs import EMBEDDER, countries, films, marriages

QUESTION = Question("q1", "What are the capitals of the countries that Peru borders?")


class Prompts(ScriptedChatModel):
    """A scripted model that remembers the prompts it saw."""

    def _rule(self, prompt: str) -> Rule:
        SEEN.append(prompt)
        return super()._rule(prompt)


SEEN: list[str] = []


def agent(store: ColumnarGraph, *replies: str, rules: tuple[Rule, ...] = (), **settings: Any) -> AgenticRetriever:
    SEEN.clear()
    parts = Parts(store, LanguageModel(Prompts(replies=replies, rules=rules)), EMBEDDER)
    return AgenticRetriever(parts.replace(context=shown), **settings)


def shown(context: Context) -> str:
    """Write triples as lines."""
    lines = []
    for item in context.evidence:
        if isinstance(item, TripleEvidence):
            lines.append(f"[{item.id}] {item.triple.head} → {item.triple.relation} → {item.triple.tail}")
    return "\n".join(lines)


def linked(id: str, mention: str | None = None) -> LinkedEntity:
    return LinkedEntity(EntityId(id), id, Mention(mention or id), "exact", 1.0)


def request(
    entities: Sequence[str] = (), drafts: Sequence[str] = (), context: Context | None = None, question: str = ""
) -> Request:
    met = Linked(tuple(map(linked, entities)), tuple(map(linked, drafts)))
    return Request(Question("q1", question or QUESTION.text), Artifacts(), met, context or Context())


def selected(*relations: str) -> str:
    return "<selected>\n{}\n</selected>".format("\n".join(relations))


def following(*entities: str) -> str:
    return "<next-entities>\n{}\n</next-entities>".format("\n".join(entities))


FINISH = following("FINISH")


def written(found: Sequence[Evidence]) -> list[str]:
    return [f"{triple.head} {triple.relation} {triple.tail}" for triple in triples(found)]


def triples(found: Sequence[Evidence]) -> list[Triple]:
    assert all(isinstance(item, TripleEvidence) for item in found)
    return [item.triple for item in found if isinstance(item, TripleEvidence)]


def got(steps: Sequence[Step], stage: str, name: str) -> list[object]:
    return [step.got[name] for step in steps if step.stage == stage]


def test_it_walks_until_the_model_finishes() -> None:
    asked = request(["pe"])
    replies = (selected("borders"), following("Chile", "Bolivia"), selected("capital"), FINISH)
    found = agent(countries(), *replies).retrieve(asked)
    assert written(found) == ["pe borders cl", "pe borders bo", "cl capital scl", "bo capital sre"]
    assert [step.stage for step in asked.steps] == [RELATION_STAGE, ENTITY_STAGE, RELATION_STAGE, ENTITY_STAGE]
    assert got(asked.steps, ENTITY_STAGE, "selected") == [["cl", "bo"], []]
    assert got(asked.steps, ENTITY_STAGE, "finished") == [False, True]


def test_finish_in_the_place_of_relations_ends_the_walk() -> None:
    asked = request(["pe"])
    found = agent(countries(), selected("borders"), following("Chile"), selected("FINISH")).retrieve(asked)
    assert written(found) == ["pe borders cl", "pe borders bo"]
    assert asked.finished and asked.steps[-1].got["finished"] is True


def test_a_node_and_a_relation_called_finish_are_no_end() -> None:
    # kitchen -FINISH-> FINISH -made by-> Reckitt
    store = ColumnarGraph.from_triples([("kitchen", "FINISH", "FINISH"), ("FINISH", "made by", "Reckitt")])
    asked = request(["kitchen"])
    replies = (selected("FINISH"), following("FINISH"), selected("made by"), following("Finish"))
    assert written(agent(store, *replies).retrieve(asked)) == ["kitchen FINISH FINISH", "FINISH made by Reckitt"]
    assert got(asked.steps, ENTITY_STAGE, "selected") == [["FINISH"], []]
    assert got(asked.steps, ENTITY_STAGE, "finished") == [False, True]  # no node is called Finish


def test_all_entities_of_a_hop_stand_in_one_call() -> None:
    agent(countries(), selected("borders"), FINISH).retrieve(request(["pe", "es"], ["lima"]))
    assert len(SEEN) == 2
    listing = SEEN[0].split("Entities and their relations:")[-1].split("Question:")[0]
    assert {line for line in listing.splitlines() if line and not line.startswith(" ")} == {"Peru", "Spain", "Lima"}
    assert QUESTION.text in SEEN[0]


def test_scores_follow_the_order_in_which_relations_were_selected() -> None:
    found = agent(countries(), selected("capital", "borders"), FINISH).retrieve(request(["pe"]))
    assert [(triple.relation, item.score) for triple, item in zip(triples(found), found, strict=True)] == [
        ("capital", 1.0),
        ("borders", 0.5),
        ("borders", 0.5),
    ]
    assert {item.retriever for item in found} == {"agentic"}


def test_entities_and_drafts_are_both_starts_best_candidates_first() -> None:
    # "Georgia" may be pe or cl; the draft is es.
    entities = (linked("pe", "Georgia"), linked("cl", "Georgia"))
    asked = Request(QUESTION, Artifacts(), Linked(entities, (linked("es"),)), Context())
    agent(countries(), selected("capital"), FINISH, starts=2).retrieve(asked)
    assert asked.steps[0].given["entities"] == ["pe", "es"]


def test_nothing_linked_asks_nothing() -> None:
    assert agent(countries()).retrieve(request()) == [] and SEEN == []


def test_earlier_rounds_and_what_this_walk_found_stand_in_the_prompt() -> None:
    first = agent(countries(), selected("capital"), FINISH).retrieve(request(["cl"]))
    context = Context().add(Artifacts(), Linked(), [first])
    agent(countries(), selected("borders"), FINISH).retrieve(request(["pe"], context=context))
    told = SEEN[1].split("Graph context:")[-1]
    assert "[e1] cl → capital → scl\n[e2] pe → borders → cl\n[e3] pe → borders → bo" in told


def test_edges_are_followed_against_their_direction() -> None:
    found = agent(films(), selected("directed_by"), FINISH).retrieve(request(["Ridley Scott"]))
    assert written(found) == ["Alien directed_by Ridley Scott", "Blade Runner directed_by Ridley Scott"]


def test_mediators_cost_no_hop() -> None:
    # Ann -spouse_s-> m.0m1 -spouse-> Bob -place_of_birth-> Cusco: two hops for the model.
    asked = request(["Ann"], question="Where was Ann's husband born?")
    replies = (selected("people.person.spouse_s"), following("Bob"), selected("people.person.place_of_birth"), FINISH)
    found = agent(marriages(), *replies).retrieve(asked)
    assert "m.0m1 people.marriage.spouse Bob" in written(found)
    assert written(found)[-1] == "Bob people.person.place_of_birth Cusco"
    assert len(SEEN) == 4


class TestWhatTheModelMaySay:
    @pytest.mark.parametrize("reply", [selected(), selected("None of them helps."), "<selected/>"])
    def test_no_relation_helps(self, reply: str) -> None:
        asked = request(["pe"])
        assert agent(countries(), reply).retrieve(asked) == []
        assert got(asked.steps, RELATION_STAGE, "dropped") == [[]]

    @pytest.mark.parametrize("said", ["NOT IN GRAPH", "Not in the graph."])
    def test_the_graph_does_not_hold_it(self, said: str) -> None:
        asked = request(["pe"])
        assert agent(countries(), selected(said)).retrieve(asked) == []
        assert got(asked.steps, RELATION_STAGE, "absent") == [True]
        asked = request(["pe"])
        assert len(agent(countries(), selected("borders"), following(said)).retrieve(asked)) == 2
        assert got(asked.steps, ENTITY_STAGE, "absent") == [True] and len(SEEN) == 2

    def test_it_is_told_what_was_explored_in_this_round_and_before(self) -> None:
        asked = request(["pe"])
        replies = (selected("borders"), following("Chile"), selected("capital"), FINISH)
        found = agent(countries(), *replies).retrieve(asked)
        told = [prompt.split("with the relations followed:\n")[1].split("\n\n")[0] for prompt in SEEN]
        assert told == ["(nothing)", "Peru: borders", "Peru: borders", "Peru: borders\nChile: capital"]
        before = Context().add(asked.artifacts, asked.linked, [found], asked.steps)
        agent(countries(), selected()).retrieve(request(["es"], context=before))
        assert "Peru: borders\nChile: capital" in SEEN[0]


class TestWhatTheModelWrites:
    def test_relations_are_tied_to_those_that_exist_and_others_dropped(self) -> None:
        asked = request(["pe"])
        agent(countries(), selected("Official Language", "bordrs", "^capital", "ruled_by"), FINISH).retrieve(asked)
        assert got(asked.steps, RELATION_STAGE, "relations") == [{"pe": ["official_language", "borders", "capital"]}]
        assert got(asked.steps, RELATION_STAGE, "dropped") == [["ruled_by"]]

    def test_a_relation_of_no_entity_at_hand_is_dropped(self) -> None:
        asked = request(["lima"])
        assert agent(countries(), selected("borders")).retrieve(asked) == []
        assert got(asked.steps, RELATION_STAGE, "dropped") == [["borders"]]

    def test_selected_names_mean_entities_that_were_shown(self) -> None:
        # Two nodes are called Lima: the city that was met, and another that was not.
        store = ColumnarGraph.from_triples([("Peru", "capital", "Lima"), ("Lima", "twin", "Bonn"), ("lima", "is", "x")])
        asked = request(["Peru"])
        found = agent(store, selected("capital"), following("LIMA"), selected("twin"), FINISH).retrieve(asked)
        assert written(found)[-1] == "Lima twin Bonn"

    def test_other_names_go_through_the_entity_linker(self) -> None:
        asked = request(["pe"])
        replies = (selected("borders"), following("Portugall"), selected("borders"), FINISH)
        assert written(agent(countries(), *replies).retrieve(asked))[-1] == "pt borders es"

    def test_invented_names_are_dropped_and_told(self) -> None:
        asked = request(["pe"])
        found = agent(countries(), selected("borders"), following("Atlantis", "El Dorado")).retrieve(asked)
        assert len(found) == 2
        assert got(asked.steps, ENTITY_STAGE, "dropped") == [["Atlantis", "El Dorado"]]

    @pytest.mark.parametrize("reply", ["<selected>\n</selected>", "I cannot tell which relations would help here."])
    def test_nothing_selected_ends_the_walk(self, reply: str) -> None:
        assert agent(countries(), reply).retrieve(request(["pe"])) == [] and len(SEEN) == 1

    def test_an_entity_that_was_explored_ends_the_walk(self) -> None:
        agent(countries(), selected("borders"), following("Peru")).retrieve(request(["pe"]))
        assert len(SEEN) == 2

    def test_a_hop_that_finds_nothing_new_ends_the_walk(self) -> None:
        agent(countries(), selected("capital"), following("Lima"), selected("capital")).retrieve(request(["pe"]))
        assert len(SEEN) == 3

    def test_an_empty_reply_is_an_error(self) -> None:
        with pytest.raises(LlmEmpty):
            agent(countries(), " ").retrieve(request(["pe"]))


class TestLimits:
    #   s -r0 … r9-> a0 … a9, each a -t-> z
    WIDE = ColumnarGraph.from_triples(
        [*(("s", f"r{at}", f"a{at}") for at in range(10)), *((f"a{at}", "t", "z") for at in range(10))]
    )

    def test_relations_of_one_entity(self) -> None:
        found = agent(self.WIDE, selected(*(f"r{at}" for at in range(10))), FINISH).retrieve(request(["s"]))
        assert [triple.relation for triple in triples(found)] == ["r0", "r1", "r2", "r3", "r4"]
        assert "at most 5 relations for each entity" in " ".join(SEEN[0].split())

    def test_entities_of_the_next_hop(self) -> None:
        asked = request(["s"])
        replies = (selected("r0", "r1", "r2", "r3"), following("a3", "a2", "a1", "a0"), selected("t"), FINISH)
        agent(self.WIDE, *replies, compared=3).retrieve(asked)
        assert got(asked.steps, ENTITY_STAGE, "selected")[0] == ["a3", "a2", "a1"]
        assert "at most 3. Where the question compares" in SEEN[1]

    def test_a_question_that_compares_goes_on_from_more_entities(self) -> None:
        asked = request(["s"])
        replies = (selected("r0", "r1", "r2", "r3"), following("a3", "a2", "a1", "a0"), selected("t"), FINISH)
        agent(self.WIDE, *replies).retrieve(asked)
        assert got(asked.steps, ENTITY_STAGE, "selected")[0] == ["a3", "a2", "a1", "a0"]

    def test_triples_of_one_hop(self) -> None:
        asked = request(["z"])
        found = agent(self.WIDE, selected("t"), FINISH, max_triples=4).retrieve(asked)
        assert len(found) == 4 and got(asked.steps, RELATION_STAGE, "left_out") == [6]

    def test_hops(self) -> None:
        chain = ColumnarGraph.from_triples([("a", "r", "b"), ("b", "r", "c"), ("c", "r", "d"), ("d", "r", "e")])
        replies = (selected("r"), following("b"), selected("r"), following("c"), selected("r"))
        found = agent(chain, *replies, calls=None).retrieve(request(["a"]))
        assert written(found) == ["a r b", "b r c", "c r d"]
        assert len(SEEN) == 5  # nothing is asked after the last hop

    @pytest.mark.parametrize(("budget", "shown", "left_out"), [(16, 10, 0), (9, 4, 6)])
    def test_relations_shown(self, budget: int, shown: int, left_out: int) -> None:
        asked = request(["s"], question="What is r7 of s?")
        exploring = agent(self.WIDE, selected("r7"), FINISH, relation_tokens=budget)
        exploring.parts.count_tokens = lambda text: len(text.split())
        exploring.retrieve(asked)
        listing = SEEN[0].split("Entities and their relations:")[-1].split("Question:")[0].strip().split("\n")
        assert listing[0] == "s" and len([line for line in listing if line.startswith("  r")]) == shown
        assert (listing[-1] == "  … and 6 more") == (left_out == 6)
        assert asked.steps[0].given["left_out"] == left_out

    def test_a_hub_is_neither_listed_nor_read(self) -> None:
        hub = ColumnarGraph.from_triples(
            [*((f"film {at}", "genre", "Drama") for at in range(300)), ("Drama", "is", "x")]
        )
        asked = request(["Drama"])
        *found, told = agent(hub, selected("genre", "is"), FINISH, hub_cap=200).retrieve(asked)
        assert written(found) == ["Drama is x"]
        assert isinstance(told, Feedback) and told.subject == "Drama ← genre"
        assert told.problem.startswith("300 edges are too many to look at")
        assert got(asked.steps, RELATION_STAGE, "too_many") == [
            [{"entity": "Drama", "relation": "genre", "inverse": True, "count": 300}]
        ]

    @pytest.mark.parametrize("setting", ["iterations", "starts", "next_entities", "max_triples", "hub_cap"])
    def test_settings_that_explore_nothing_are_named(self, setting: str) -> None:
        settings: dict[str, Any] = {setting: 0}
        with pytest.raises(ConfigError, match=f"{setting}=0"):
            agent(self.WIDE, **settings)


class TestCalls:
    CHAIN = ColumnarGraph.from_triples([(f"n{at}", "next", f"n{at + 1}") for at in range(9)])

    def rounds(self, calls: int | None) -> tuple[int, list[list[str]], list[Step]]:
        """Let a model that never finishes walk along the chain for two rounds."""
        rules = (
            Rule(selected("next"), contains=("Entities and their relations:",)),
            *(Rule(following(f"n{at + 1}"), contains=(f"n{at} → next → n{at + 1}",)) for at in reversed(range(9))),
        )
        retriever = agent(self.CHAIN, rules=rules, calls=calls)
        context, found = Context(), []
        for start in ("n0", "n3"):
            asked = request([start], context=context)
            evidence = retriever.retrieve(asked)
            found.append(written(evidence))
            context = context.add(asked.artifacts, asked.linked, [evidence], asked.steps)
        return len(SEEN), found, [step for earlier in context.rounds for step in earlier.steps]

    def test_each_round_of_a_model_that_never_finishes_keeps_to_the_limit(self) -> None:
        calls, found, steps = self.rounds(2)
        assert calls == 4
        assert found == [["n0 next n1", "n1 next n2"], ["n3 next n4", "n2 next n3", "n4 next n5"]]
        assert [step.stage for step in steps] == [RELATION_STAGE, ENTITY_STAGE, RANKING_STAGE] * 2

    def test_without_a_limit_every_hop_is_asked_about(self) -> None:
        calls, found, _ = self.rounds(None)
        assert calls == 10 and len(found[1]) == 4

    def test_without_calls_the_embedder_selects_one_hop(self) -> None:
        asked = request(["pe"], question="Which languages are official in Peru?")
        found = agent(countries(), calls=0, relations_per_entity=1).retrieve(asked)
        assert written(found) == ["pe official_language spa", "pe official_language que"]
        assert SEEN == [] and [step.stage for step in asked.steps] == [RANKING_STAGE]
