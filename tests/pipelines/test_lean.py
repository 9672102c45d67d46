"""Tests of `byokg.pipelines.lean`: one or two calls a question."""

from __future__ import annotations

from typing import Any

import pytest

from byokg.errors import ConfigError
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.store import GraphStore
from byokg.graph.traversal import neighbours, triples
from byokg.linking.parts import Parts
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.messages import to_langchain
from byokg.llm.model import LanguageModel
from byokg.pipelines.lean import STAGE, lean_pipeline
from byokg.types import Answer, EntityId, Node, Question, Triple
from tests.linking.graphs import EMBEDDER, films
from tests.llm.memory import CountingMeter

WHO = Question("q1", "who directed Alien")
LAST = "Nothing more can be retrieved"


def asked(question: Question, *rules: Rule, **settings: Any) -> tuple[Answer, CountingMeter]:
    meter = CountingMeter()
    model = LanguageModel(ScriptedChatModel(rules=rules), meter=meter)
    return lean_pipeline(Parts(films(), model, EMBEDDER), **settings).run(question), meter


def cited(name: str) -> Rule:
    """Answer where a fact holds the name; the script cites the first lines."""
    return Rule(f"<answers>\n{name} [e1-e9]\n</answers>", contains=(f"] {name} ",))


def supported(graph: GraphStore, question: str, *rules: Rule) -> list[str]:
    """Return the answers to a question over a graph that a shown fact supports."""
    model = LanguageModel(ScriptedChatModel(rules=rules))
    answer = lean_pipeline(Parts(graph, model, EMBEDDER)).run(Question("q", question))
    return [item.name for item in answer.items if item.support == "supported"]


ASKS = Rule("<entities>\nTitanic\n</entities>\n<paths>\ndirected_by\n</paths>")


def test_one_call_answers_what_was_found_without_a_model() -> None:
    answer, meter = asked(WHO, cited("Ridley Scott"), ASKS)
    assert [(item.name, item.support) for item in answer.items] == [("Ridley Scott", "supported")]
    assert len(meter.sent) == 1 and len(answer.rounds) == 1
    assert set(answer.seconds) == {"link", "retrieve", "answer"}


def test_properties_of_linked_entities_precede_the_first_call_and_support_answers() -> None:
    graph = ColumnarGraph.from_records(
        [Node(EntityId("m1"), "Alien", "Film", {"runtime_min": 117}), Node(EntityId("p1"), "Ridley Scott", "Person")],
        [Triple(EntityId("m1"), "directed_by", EntityId("p1"))],
        name="runtimes",
    )
    reply = Rule("<answers>117 [e2]</answers>", contains=("[e2] Alien (Film) runtime_min: 117\n[e3]",))
    assert supported(graph, "how long is Alien", reply) == ["117"]


def test_a_query_read_from_the_question_is_shown_with_its_rows_until_the_models_own() -> None:
    nodes = [
        Node(EntityId(f"p{at}"), name, "Product", {"price": at}) for at, name in enumerate(("Chai", "Tofu", "Ikura"))
    ]
    graph = ColumnarGraph.from_records(nodes, [], name="products")
    shown = "RETURN DISTINCT x0\n  returned 2 rows (a reading of the question that nobody checked): Product\n  Tofu\n"
    reply = Rule("<answers>Tofu [e1]\nIkura [e1]</answers>", contains=(shown,))
    assert supported(graph, "which products have a price above 0", reply) == ["Tofu", "Ikura"]


def test_the_node_with_a_value_that_the_question_names_is_walked_from() -> None:
    officer = Node(EntityId("o1"), "o1", "Officer", {"badge_no": "70-5119724"})
    graph = ColumnarGraph.from_records(
        [officer, Node(EntityId("c1"), "Burglary", "Crime")],
        [Triple(EntityId("c1"), "investigated_by", EntityId("o1"))],
        name="badges",
    )
    reply = Rule("<answers>Burglary [e1-e9]</answers>", contains=("investigated_by ← Burglary", "70-5119724"))
    assert supported(graph, "what was investigated by badge 70-5119724", reply) == ["Burglary"]


def test_an_edge_between_two_linked_entities_is_the_first_fact() -> None:
    graph = ColumnarGraph.from_records(
        [
            Node(EntityId(id), name, "Thing", {})
            for id, name in (("p1", "Ada Byron"), ("p2", "Bob Carr"), ("a", "Lark Prize"))
        ],
        [
            Triple(EntityId("p1"), "won", EntityId("a"), properties={"start": "1984"}),
            Triple(EntityId("p2"), "won", EntityId("a"), properties={"start": "1990"}),
        ],
        name="prizes",
    )
    reply = Rule("<answers>1984 [e1]</answers>", contains=("[e1] Ada Byron → won → Lark Prize [1984",))
    assert supported(graph, "when did Ada Byron win the Lark Prize", reply) == ["1984"]


def test_properties_that_the_question_names_of_nodes_that_it_leads_to_precede_the_first_call() -> None:
    graph = ColumnarGraph.from_records(
        [
            Node(EntityId("m1"), "Alien", "Film"),
            Node(EntityId("p1"), "Ridley Scott", "Person", {"birth_year": 1937, "height": 174}),
        ],
        [Triple(EntityId("m1"), "directed_by", EntityId("p1"))],
        name="births",
    )
    reply = Rule("<answers>1937 [e2]</answers>", contains=("[e2] Ridley Scott (Person) birth_year: 1937\n",))
    assert supported(graph, "birth year of who directed alien", reply) == ["1937"]


def test_a_reply_without_answers_asks_for_another_round_and_the_last_one_must_answer() -> None:
    answer, meter = asked(WHO, Rule("<answers>James Cameron [e1-e99]</answers>", contains=(LAST,)), ASKS)
    assert [(item.name, item.id, item.support) for item in answer.items] == [
        ("James Cameron", "James Cameron", "supported")
    ]
    assert len(meter.sent) == 2
    assert [one.linked.entities[0].id for one in answer.rounds] == ["Alien", "Titanic", "Titanic"]


def test_entities_that_only_the_model_names_are_walked_from_as_topic_entities() -> None:
    graph = films()
    lost = Question("q1", "who starred in that film about a ship")
    names = Rule("<entities>Titanic</entities>\n<paths>\n</paths>")
    [actor, *_] = [
        triple.tail for triple in triples(graph, neighbours(graph, [EntityId("Titanic")], relations=["starred_actors"]))
    ]
    answer, meter = asked(lost, Rule(f"<answers>{actor} [e1-e99]</answers>", contains=(LAST, "starred_actors")), names)
    assert [(item.name, item.support) for item in answer.items] == [(actor, "supported")] and len(meter.sent) == 2


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_no_question_takes_more_calls_than_allowed(rounds: int) -> None:
    films_asked = iter(["Titanic", "Aliens", "Blade Runner"])

    class Asking(ScriptedChatModel):
        def _rule(self, prompt: str) -> Rule:
            return Rule(f"<entities>{next(films_asked)}</entities><paths>starred_actors</paths>")

    meter = CountingMeter()
    answer = lean_pipeline(Parts(films(), LanguageModel(Asking(), meter=meter), EMBEDDER), calls=rounds).run(WHO)
    assert len(meter.sent) == rounds and answer.items == ()


def test_drafts_without_citation_are_no_answer_while_more_can_be_asked() -> None:
    draft = Rule("<answers>Ann</answers><entities>Titanic</entities>", contains=("it is retrieved, and shown to you",))
    answer, meter = asked(WHO, draft, Rule("<answers>Ridley Scott [e1-e99]</answers>", contains=(LAST,)))
    assert [item.name for item in answer.items] == ["Ridley Scott"] and len(meter.sent) == 2
    answer, meter = asked(WHO, Rule("<answers>Ann</answers>"))  # asks for nothing else
    assert [(item.name, item.support) for item in answer.items] == [("Ann", "unsupported")] and len(meter.sent) == 1


@pytest.mark.parametrize("reply", ["<answers>\n</answers>", "<answers>The facts do not hold it.</answers>"])
def test_it_may_abstain_at_once(reply: str) -> None:
    answer, meter = asked(WHO, Rule(reply))
    assert answer.items == () and len(meter.sent) == 1


def test_what_was_retrieved_before_is_not_retrieved_again() -> None:
    again = Rule("<entities>Alien</entities>")
    answer, meter = asked(WHO, again)
    assert len(meter.sent) == 1
    assert [step.got for step in answer.rounds[-1].steps] == [{"because": "nothing new was asked for"}]


def test_prompts_of_all_questions_begin_alike_and_the_last_ones_with_the_same_words() -> None:
    seen: list[Any] = []

    class Seeing(ScriptedChatModel):
        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            seen.append(messages)
            return super()._generate(messages, *args, **kwargs)

    pipeline = lean_pipeline(Parts(films(), LanguageModel(Seeing(rules=(ASKS,))), EMBEDDER))
    for text in ("who directed Alien", "which actors starred in Blade Runner"):
        pipeline.run(Question(text, text))
    first, last = ({messages[0].text for messages in seen[at::2]} for at in (0, 1))
    assert len(seen) == 4 and len(first) == len(last) == 1
    (whole,), (rest,) = first, last
    assert len(whole) > 1500 and "Alien" not in whole
    assert whole.startswith(rest) and "<entities>" not in rest and "Nothing more can be retrieved" in seen[1][1].text


def test_the_beginning_is_marked_for_anthropic_s_cache() -> None:
    meter = CountingMeter()
    model = LanguageModel(ScriptedChatModel(rules=(ASKS,)), meter=meter)
    messages: list[Any] = []
    original = model.reply

    def keeping(sent: Any, **kept: Any) -> Any:
        messages.extend(sent)
        return original(sent, **kept)

    model.reply = keeping  # type: ignore[method-assign, assignment]
    lean_pipeline(Parts(films(), model, EMBEDDER), calls=1).run(WHO)
    system, user = to_langchain(messages, "anthropic")
    assert system.content[0]["cache_control"] == {"type": "ephemeral"}  # type: ignore[index]
    assert isinstance(user.content, str)


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="calls=0 asks nobody"):
        asked(WHO, calls=0)


def test_usage_is_counted_under_its_own_stage() -> None:
    _, meter = asked(WHO, cited("Ridley Scott"))
    assert {stage for stage, _ in meter.stages} == {STAGE}
