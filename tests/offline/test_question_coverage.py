"""Tests of `byokg.offline.question_coverage`: what a question asks and its answer does not use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.pipelines.context import ContextWriter
from byokg.pipelines.loop import Loop
from byokg.types import Answer, Artifacts, Context, EntityId, Linked, LinkedEntity, Mention, Node, Question, Triple
from tests.linking.graphs import EMBEDDER, films

FILMS = offline_pipeline(Parts(films(), embedder=EMBEDDER))

# Countries, and rivers that flow through countries, not through cities:
#   Lyon, Paris, Nice, Lille, Metz -located_in-> France
#   Loire, Rhone -flows_through-> France    Rhine -flows_through-> Italy
#   Ann -won {start}-> Prize (1950), Bob -won-> Prize (1960), Cid -won-> Prize (1970)
CITIES = ("Lyon", "Paris", "Nice", "Lille", "Metz")
NODES = [
    Node(EntityId("fr"), "France", "Country"),
    Node(EntityId("it"), "Italy", "Country"),
    *(Node(EntityId(name.lower()), name, "City") for name in CITIES),
    *(Node(EntityId(name.lower()), name, "River") for name in ("Loire", "Rhone", "Rhine")),
    *(Node(EntityId(name.lower()), name, "Person") for name in ("Ann", "Bob", "Cid")),
    Node(EntityId("prize"), "Golden Prize", "Award"),
]
EDGES = [
    *(Triple(EntityId(name.lower()), "located_in", EntityId("fr")) for name in CITIES),
    Triple(EntityId("loire"), "flows_through", EntityId("fr")),
    Triple(EntityId("rhone"), "flows_through", EntityId("fr")),
    Triple(EntityId("rhine"), "flows_through", EntityId("it")),
    Triple(EntityId("ann"), "won", EntityId("prize"), properties={"start": 1950, "end": 1950}),
    Triple(EntityId("bob"), "won", EntityId("prize"), properties={"start": 1960, "end": 1960}),
    Triple(EntityId("cid"), "won", EntityId("prize"), properties={"start": 1970, "end": 1970}),
]
RIVERS = offline_pipeline(Parts(ColumnarGraph.from_records(NODES, EDGES), embedder=EMBEDDER))


def score(answer: Answer) -> float:
    return answer.items[0].score if answer.items else 0.0


@pytest.mark.parametrize(
    ("constraint", "word"),
    [
        ("in 1913", "1913"),
        ("in Zubrowka", "Zubrowka"),
        ("in winter", "winter"),
        ("according to Veldrin Osk", "Veldrin Osk"),
        ('named "Qworble"', "Qworble"),
        ("except Narnia", "Narnia"),
    ],
)
def test_a_constraint_that_the_graph_cannot_satisfy_is_named_and_lowers_the_score(constraint: str, word: str) -> None:
    plain = RIVERS.run(Question("ask", "Which rivers flow through France?"))
    assert [item.name for item in plain.items] == ["Loire", "Rhone"] and "not used" not in plain.note
    answer = RIVERS.run(Question("ask", f"Which rivers flow through France {constraint}?"))
    assert "not used" in answer.note and f"{word}" in answer.note
    assert score(answer) < score(plain)


@pytest.mark.parametrize("constraint", ["in Zubrowka", "in winter"])
def test_a_constraint_behind_a_negation_is_named(constraint: str) -> None:
    question = "Which rivers flow through France but not through Italy"
    answer = RIVERS.run(Question("ask", f"{question} {constraint}?"))
    assert constraint.split()[-1] in answer.note and score(answer) < score(RIVERS.run(Question("ask", f"{question}?")))


def test_a_question_with_many_names_is_no_title() -> None:
    assert '"Veldrin Osk"' in FILMS.run(Question("ask", "who directed Blade Runner according to Veldrin Osk")).note


def test_a_title_or_type_before_a_name_is_used() -> None:
    # Kilimanjaro, a mountain -mountain_in-> Tanzania
    nodes = [Node(EntityId("k"), "Kilimanjaro", "Mountain"), Node(EntityId("t"), "Tanzania", "Country")]
    edges = [Triple(EntityId("k"), "mountain_in", EntityId("t"))]
    pipeline = offline_pipeline(Parts(ColumnarGraph.from_records(nodes, edges), embedder=EMBEDDER))
    assert "not used" not in pipeline.run(Question("ask", "Which country does Mount Kilimanjaro lie in?")).note
    assert '"Osk"' in pipeline.run(Question("ask", "Which country does Kilimanjaro Osk lie in?")).note


def test_a_word_that_restricts_is_named() -> None:
    assert 'not used: "only"' in RIVERS.run(Question("ask", "Which rivers only flow through France?")).note


@pytest.mark.parametrize(
    "question",
    [
        "who directed Alien",
        "which films were directed by Ridley Scott",
        "what is the genre of the movie Titanic?",
        "who starred in the films that were directed by James Cameron",
        "when was Aliens released",
    ],
)
def test_function_words_and_paraphrases_are_used(question: str) -> None:
    answer = FILMS.run(Question("ask", question))
    assert answer.items and "not used" not in answer.note


def test_a_time_that_edges_tell_is_used() -> None:
    answer = RIVERS.run(Question("ask", "Who won the Golden Prize in 1960?"))
    assert [item.name for item in answer.items] == ["Bob"] and not answer.note


def test_a_time_that_no_edge_falls_into_leaves_no_answer() -> None:
    answer = RIVERS.run(Question("ask", "Who won the Golden Prize in 1921?"))
    assert not answer.items
    assert answer.note == "nothing is left: in 1921: 0 of 3"


def test_what_something_is_part_of_does_not_stand_for_it_unsaid() -> None:
    answer = RIVERS.run(Question("ask", "Which rivers flow through Paris?"))
    assert '"Paris" (instead: France)' in answer.note
    assert score(answer) < score(RIVERS.run(Question("ask", "Which rivers flow through France?")))


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("When was the Loire found?", "the question asks when, and no date was found that fits it"),
        ("How much does the Loire cost?", "the question asks how much, and no number was found that fits it"),
    ],
)
def test_dates_and_numbers_that_are_asked_for_are_never_answered_by_entities(question: str, reason: str) -> None:
    answer = RIVERS.run(Question("ask", question))
    assert not answer.items and answer.note == reason


def test_all_nodes_of_a_type_are_no_answer_to_what_restricts_them() -> None:
    answer = RIVERS.run(Question("ask", "How many rivers were discovered by Zoltan?"))
    assert '"Zoltan"' in answer.note and '"discovered"' in answer.note
    assert score(answer) < 0.5


# Todd, born 1970 -works_for-> Acme -based_in-> Lyon    Todd, born 1980 -works_for-> Bolt
# the first -married_to-> Ann
TODDS = [
    Node(EntityId("p7"), "Todd", "Person", {"born": 1970}),
    Node(EntityId("p9"), "Todd", "Person", {"born": 1980}),
    Node(EntityId("p1"), "Ann", "Person", {"born": 1990}),
    Node(EntityId("c1"), "Acme", "Company"),
    Node(EntityId("c2"), "Bolt", "Company"),
    Node(EntityId("x1"), "Lyon", "City"),
]
TODD_EDGES = [
    Triple(EntityId("p7"), "works_for", EntityId("c1")),
    Triple(EntityId("p9"), "works_for", EntityId("c2")),
    Triple(EntityId("p7"), "married_to", EntityId("p1")),
    Triple(EntityId("p1"), "works_for", EntityId("c1")),
    Triple(EntityId("c1"), "based_in", EntityId("x1")),
]


@pytest.fixture(scope="module")
def namesakes() -> Loop:
    return offline_pipeline(Parts(ColumnarGraph.from_records(TODDS, TODD_EDGES), embedder=EMBEDDER))


def test_of_namesakes_one_is_taken_and_both_are_listed(namesakes: Loop) -> None:
    answer = namesakes.run(Question("ask", "Which company does Todd work for?"))
    assert len(answer.items) == 1 and answer.items[0].score <= 0.5
    assert '"Todd" taken as Todd (Person, id ' in answer.note
    assert "id p7, born 1970" in answer.note and "id p9, born 1980" in answer.note


def test_a_number_of_one_namesake_is_not_that_of_both(namesakes: Loop) -> None:
    answer = namesakes.run(Question("ask", "How many companies does Todd work for?"))
    assert [item.name for item in answer.items] == ["1"] and "also Todd" in answer.note


def test_the_only_namesake_with_the_relation_is_meant(namesakes: Loop) -> None:
    answer = namesakes.run(Question("ask", "Who is Todd married to?"))
    assert [item.name for item in answer.items] == ["Ann"]
    assert "taken as" not in answer.note and answer.items[0].score > 0.8


def test_one_name_of_one_node_is_not_ambiguous(namesakes: Loop) -> None:
    assert not namesakes.run(Question("ask", "Which company does Ann work for?")).note


def test_prompts_list_linked_namesakes_apart() -> None:
    graph = ColumnarGraph.from_records(TODDS, TODD_EDGES)
    todd = Mention("Todd", 0, 4)
    linked = tuple(LinkedEntity(EntityId(id), "Todd", todd, "exact", 1.0) for id in ("p7", "p9"))
    context = Context(question="Todd?").add(Artifacts(), Linked(linked), [])
    text = ContextWriter(graph).write_for_round(context).notes
    assert "Todd (Person, id p7, born 1970) | Todd (Person, id p9, born 1980)" in text
    untyped = ColumnarGraph.from_records([replace(node, type="") for node in TODDS], TODD_EDGES)
    assert "Todd (id p7, born 1970)" in ContextWriter(untyped).write_for_round(context).notes


@pytest.mark.parametrize(
    "text", ["How do golden retrievers sleep at night?", "Which songs did the nice orchestra rehearse?"]
)
def test_a_question_about_something_else_has_no_answer(text: str) -> None:
    answer = RIVERS.run(Question("ask", text))
    assert not answer.items
    assert answer.note.startswith("the question seems to be about something else")
    assert RIVERS.run(Question("ask", text, (EntityId("prize"),))).items  # its topic is given
