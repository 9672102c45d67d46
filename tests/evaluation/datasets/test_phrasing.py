"""Tests of `byokg.evaluation.datasets.phrasing`: questions over made-up relations, each with its direction."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from byokg.evaluation.datasets.phrasing import Phrases, RelationStep
from byokg.evaluation.datasets.testset import make_testset
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.store import RelationSchema, Schema

TYPES = {
    "capital": ("Country", "City"),
    "borders": ("Country", "Country"),
    "born_in": ("Person", "Country"),
    "symptom": ("Disease", "Symptom"),
    "ORDERS": ("Order", "Product"),
}


@pytest.fixture(scope="module")
def phrases() -> Phrases:
    relations = [RelationSchema(name, 1, (domain,), (range_,)) for name, (domain, range_) in TYPES.items()]
    return Phrases(Schema({}, tuple(relations), {}))


def steps(*labels: str) -> list[RelationStep]:
    """Return the steps of a path; `^` walks from tail to head."""
    return [RelationStep(0, label.removeprefix("^"), label.startswith("^")) for label in labels]


@pytest.mark.parametrize(
    ("path", "answers", "asked", "named"),
    [
        ("capital", 1, "What is the capital of X?", "Name the capital of X."),
        ("^capital", 1, "Which country has X as its capital?", "Name the country whose capital is X."),
        ("^born_in", 2, "Who was born in X?", "Name the people born in X."),
        ("may_cause", 2, "What may X cause?", "Name the things that X may cause."),
        ("^may_cause", 2, "What may cause X?", "Name the things that may cause X."),
        ("is_associated_with", 1, "What is X associated with?", "Name the thing that X is associated with."),
        ("^is_associated_with", 2, "What is associated with X?", "Name the things associated with X."),
        ("is_a_subtype_of", 1, "What is X a subtype of?", "Name the thing that X is a subtype of."),
        ("^is_a_subtype_of", 2, "What is a subtype of X?", "Name the things that are subtypes of X."),
        ("interacts_with", 1, "What does X interact with?", "Name the thing that X interacts with."),
        ("^interacts_with", 2, "What interacts with X?", "Name the things that interact with X."),
        (
            "belongs_to_the_category_of",
            2,
            "Which categories does X belong to?",
            "Name the categories that X belongs to.",
        ),
        (
            "^belongs_to_the_category_of",
            2,
            "What belongs to the category of X?",
            "Name the things that belong to the category of X.",
        ),
        ("see_also", 2, "What are the see-also references of X?", "Name the see-also references of X."),
        ("^see_also", 1, "What has X as its see-also reference?", "Name the thing whose see-also reference is X."),
        ("ORDERS", 2, "Which products does X order?", "Name the products that X orders."),
        ("^ORDERS", 2, "Which orders order X?", "Name the orders that order X."),
    ],
)
def test_one_step_is_asked_for_from_either_end(
    phrases: Phrases, path: str, answers: int, asked: str, named: str
) -> None:
    assert phrases.chain("X", steps(path), answers) == (asked, named)


@pytest.mark.parametrize(
    ("path", "asked", "named"),
    [
        (
            "is_associated_with ^may_cause",
            "What may cause the thing that X is associated with?",
            "Name the thing that may cause the thing that X is associated with.",
        ),
        (
            "^capital borders",
            "Which country does the country whose capital is X border?",
            "Given the country whose capital is X, name the country that it borders.",
        ),
        (
            "is_associated_with is_a_subtype_of",
            "Given the thing that X is associated with, what is it a subtype of?",
            "Given the thing that X is associated with, name the thing that it is a subtype of.",
        ),
        (
            "^born_in ORDERS",
            "Which product does the person born in X order?",
            "Given the person born in X, name the product that this person orders.",
        ),
        (
            "is_associated_with belongs_to_the_category_of ^may_treat",
            "What may treat the category of the thing that X is associated with?",
            "Name the thing that may treat the category of the thing that X is associated with.",
        ),
        (
            "is_associated_with ^belongs_to_the_category_of",
            "What belongs to the category that X is associated with?",
            "Name the thing that belongs to the category that X is associated with.",
        ),
        (
            "capital ^belongs_to_the_category_of",
            "What belongs to the category that is X's capital?",
            "Name the thing that belongs to the category that is X's capital.",
        ),
        (
            "may_cause may_cause interacts_with",
            "Given the thing that X may cause and the thing that the former may cause, "
            "what does the latter interact with?",
            "Given the thing that X may cause and the thing that the former may cause, "
            "name the thing that the latter interacts with.",
        ),
        (
            "born_in borders capital",
            "Given the country that X was born in, what is the capital of the country that it borders?",
            "Given the country that X was born in, name the capital of the country that it borders.",
        ),
        (
            "is_associated_with ^see_also",
            "What has as its see-also reference the thing that X is associated with?",
            "Name the thing whose see-also reference is the thing that X is associated with.",
        ),
    ],
)
def test_a_chain_has_no_verb_after_a_verb(phrases: Phrases, path: str, asked: str, named: str) -> None:
    assert phrases.chain("X", steps(*path.split()), 1) == (asked, named)


@pytest.mark.parametrize(
    ("one", "two", "answers", "asked"),
    [
        ("^may_cause", "^interacts_with", 2, "What are the things that may cause X and that interact with Y?"),
        ("^is_associated_with", "may_cause", 1, "What is the thing that is associated with X and that Y may cause?"),
        ("^born_in", "^ORDERS", 2, "What are both the people born in X and the orders that order Y?"),
        ("^is_near", "^is_associated_with", 2, "What are the things near X and associated with Y?"),
        ("may_cause", "may_cause", 2, "What may both X and Y cause?"),
        ("is_a_subtype_of", "is_a_subtype_of", 1, "What are both X and Y subtypes of?"),
        ("^may_cause", "^may_cause", 2, "What may cause both X and Y?"),
        ("^is_in_city", "^is_in_city", 1, "What is in both the city X and the city Y?"),
        ("^does_not_treat", "^does_not_treat", 1, "What does not treat either X or Y?"),
        ("^symptom", "^symptom", 2, "Which diseases have both X and Y among their symptoms?"),
    ],
)
def test_two_constraints_agree_with_what_they_are_said_of(
    phrases: Phrases, one: str, two: str, answers: int, asked: str
) -> None:
    (left,), (right,) = steps(one), steps(two)
    assert phrases.conjunction(("X", left), ("Y", right), answers)[0] == asked


@pytest.mark.parametrize(
    ("label", "asked", "number"),
    [
        ("may_cause", "How many things may X cause?", "things that X may cause"),
        ("^may_cause", "How many things may cause X?", "things that may cause X"),
        ("^belongs_to_family", "How many things belong to the family X?", "things that belong to the family X"),
        ("belongs_to_family", "How many families does X belong to?", "families that X belongs to"),
        ("^is_a_subtype_of", "How many things are subtypes of X?", "things that are subtypes of X"),
        ("^born_in", "How many people were born in X?", "people born in X"),
        ("^capital", "How many countries have X as their capital?", "countries whose capital is X"),
        ("capital", "How many capitals does X have?", "capitals of X"),
    ],
)
def test_a_number_is_asked_for_in_the_plural(phrases: Phrases, label: str, asked: str, number: str) -> None:
    assert phrases.count("X", steps(label)[0]) == (asked, f"What is the number of {number}?")


def test_of_what_there_are_several_one_has_the_greater_number(phrases: Phrases) -> None:
    stock = phrases.comparison(("A", "B"), "units_in_stock", False, "greatest")
    height = phrases.comparison(("A", "B"), "height_m", False, "least")
    assert stock[0] == "Which has the greater number of units in stock, A or B?"
    assert height[0] == "Which has the smaller height, A or B?"


def test_a_graph_of_verbs_gives_questions_without_doubled_verbs() -> None:
    # Eight drugs, diseases and kinds; `is_a_category` says neither what is of what nor how, and is not asked about.
    triples = []
    for number in range(8):
        drug, disease, sort = f"Drug{number}", f"Disease{number}", f"Sort{number % 3}"
        triples += [(drug, "may_treat", disease), (drug, "may_cause", f"Disease{(number + 3) % 8}")]
        triples += [(drug, "interacts_with", f"Drug{(number + 1) % 8}"), (drug, "belongs_to_the_family_of", sort)]
        triples += [(disease, "is_associated_with", f"Disease{(number + 2) % 8}"), (disease, "is_a_category", sort)]
        triples += [(disease, "is_a_subtype_of", f"Disease{(number + 5) % 8}")]
    made = make_testset(ColumnarGraph.from_triples(triples), 200)
    assert len(made.questions) > 150
    for asked in (*made.questions, *made.unanswerable):
        verbs = r"(is|are|may|does|do|belongs|belong|interacts|interact)"
        assert not re.search(rf"\b{verbs} {verbs}\b", asked.question), asked.question
        assert "is_a_category" not in asked.relations and "category" not in asked.question
    wordings = Counter(Counter(asked.cluster for asked in made.questions).values())
    assert wordings[2] > 0.9 * wordings.total()
