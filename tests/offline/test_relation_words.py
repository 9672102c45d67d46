"""Labels of relations, and what the list of synonyms does on small graphs of several domains."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import byokg
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.offline.schema_linking import RelationSimilarity
from byokg.text.names import synonyms, verb_forms
from byokg.types import EntityId, Question
from tests.linking.graphs import EMBEDDER

LINES = [
    line
    for line in (Path(byokg.__file__).parent / "data" / "words" / "synonyms.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def test_each_line_of_the_list_is_a_group_of_words_or_two_ends_of_one_relation() -> None:
    for line in LINES:
        sides = line.split(" | ")
        assert len(sides) <= 2 and all(re.fullmatch(r"[a-z]+~?( [a-z]+~?)*", side) for side in sides), line
        assert len(line.split()) > 1 and len(set(line.split())) == len(line.split()), line


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("employer", "hired"),
        ("boss", "supervised"),
        ("physician", "treated"),
        ("judge", "presiding"),
        ("ship", "vessel"),
    ],
)
def test_words_of_a_group_are_alike_whatever_their_form(word: str, other: str) -> None:
    assert other in synonyms()[word].alike and word in synonyms()[other].alike


@pytest.mark.parametrize(
    ("word", "other"), [("child", "parent"), ("pupil", "teacher"), ("employee", "hire"), ("patient", "ward")]
)
def test_words_for_two_ends_are_opposite_and_not_alike(word: str, other: str) -> None:
    assert other in synonyms()[word].converse and word in synonyms()[other].converse
    assert other not in synonyms()[word].alike


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("hire", "hire hires hired hiring"),
        ("carry", "carry carries carried carrying"),
        ("play", "play plays played playing"),
        ("reach", "reach reaches reached reaching"),
        ("admit", "admit admits admitted admitting"),
        ("visit", "visit visits visited visiting"),
        ("run", "run runs runned running"),  # only regular ones
    ],
)
def test_a_verb_has_its_regular_forms(verb: str, forms: str) -> None:
    assert verb_forms(verb) == forms.split()


def test_a_word_for_the_other_end_names_what_a_relation_is_walked_back_to() -> None:
    steps = RelationSimilarity(
        ColumnarGraph.from_triples([("Ann", "teacher", "Bob"), ("Cid", "teacher", "Dea")]), EMBEDDER
    )
    along, back = steps.range_similarity("pupil").tolist()
    assert back > 0.2 > along
    along, back = steps.range_similarity("instructor").tolist()
    assert along > back


def test_a_name_with_of_says_what_its_head_is() -> None:
    steps = RelationSimilarity(ColumnarGraph.from_triples([("Oslo", "capital_of", "Norway")]), EMBEDDER)
    along, back = steps.range_similarity("capital").tolist()
    assert back == 1 and along < 0.2


# Bo -line_manager-> Al, Cy -line_manager-> Al; Bo -current_assignment-> Dam; Dam -purchaser-> Zed;
# Ivo -home_town-> Rye; Ivo -physician-> Una; Una -infirmary-> Mercy
@pytest.mark.parametrize(
    ("question", "topic", "answers"),
    [
        ("who is the boss of Bo", "Bo", {"Al"}),
        ("who are the subordinates of Al", "Al", {"Bo", "Cy"}),
        ("what is the project of Bo", "Bo", {"Dam"}),
        ("who is the customer of Dam", "Dam", {"Zed"}),
        ("the customer of the project of Bo", "Bo", {"Zed"}),
        ("who treats Ivo", "Ivo", {"Una"}),
        ("who is the patient of Una", "Una", {"Ivo"}),
        ("what is the hospital of the doctor of Ivo", "Ivo", {"Mercy"}),
    ],
)
def test_questions_in_other_words_than_those_of_the_graph_are_answered(
    question: str, topic: str, answers: set[str]
) -> None:
    facts = """Bo line_manager Al|Cy line_manager Al|Bo current_assignment Dam|Dam purchaser Zed|Ivo home_town Rye
        |Ivo physician Una|Una infirmary Mercy"""
    graph = ColumnarGraph.from_triples((head, label, tail) for head, label, tail in map(str.split, facts.split("|")))
    answer = offline_pipeline(Parts(graph)).run(Question("q", question, (EntityId(topic),)))
    assert {item.name for item in answer.items} == answers


DRUGS = [("A", "indicatedFor", "flu"), ("B", "contraindicatedIn", "flu"), ("C", "contraindicatedIn", "flu")]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which drugs are indicated for flu?", {"A"}),
        ("Which drugs treat flu?", {"A"}),
        ("drugs for flu", {"A"}),
        ("Which drugs are contraindicated in flu?", {"B", "C"}),
        ("Which drugs should be avoided with flu?", {"B", "C"}),
        ("Which drugs must not be given to people with flu?", {"B", "C"}),
    ],
)
def test_a_relation_that_says_the_opposite_of_another_is_meant_where_a_question_says_so(
    question: str, expected: set[str]
) -> None:
    pipeline = offline_pipeline(Parts(ColumnarGraph.from_triples(DRUGS)))
    assert {item.name for item in pipeline.run(Question("q", question)).items} == expected
