"""No text of up to 200,000 characters is judged in time that grows with its square, whatever it is made of.

`benchmarks/graph_guard.py` holds the guard to a second for each; here a slow machine must not fail.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import QueryRefused
from byokg.graph.guard.guard import CheckedQuery, check_cypher, check_sparql, lint_cypher, lint_sparql
from byokg.graph.guard.tokens import MAX_CHARACTERS
from byokg.graph.store import RelationSchema, Schema
from tests.graph.guard.hostile_texts import PARTS, QUERIES, TAILS, grown, nested, repeated

CHECKS: dict[str, Callable[[str, int], CheckedQuery]] = {"cypher": check_cypher, "sparql": check_sparql}
SECONDS = 15.0
"""Of processor time: a hundred times what most texts take. What grows with the square takes minutes."""


def seconds(language: str, text: str) -> float:
    """Judge a text; return what that took."""
    assert len(text) <= MAX_CHARACTERS
    start = time.thread_time()
    try:
        checked = CHECKS[language](text, 1001)
    except QueryRefused as error:
        handed_on, told = "", str(error)
    else:
        handed_on, told = checked.text, ""
    taken = time.thread_time() - start
    assert len(told) < 1000
    assert len(handed_on) < MAX_CHARACTERS + 100  # nothing is blown up
    return taken


@st.composite
def hostile(draw: st.DrawFn) -> tuple[str, str]:
    """Draw fragments that are repeated or nested, or a query of the corpus with a part repeated."""
    language = draw(st.sampled_from(["cypher", "sparql"]))
    heads, fragments = PARTS[language]
    fragment = st.sampled_from(fragments) | st.text(min_size=1, max_size=6)
    head, tail = draw(st.sampled_from(heads)), draw(st.sampled_from(TAILS))
    match draw(st.sampled_from(["repeated", "mixed", "nested", "grown"])):
        case "repeated":
            return language, repeated(head, draw(fragment), tail)
        case "mixed":
            return language, repeated(head, "".join(draw(st.lists(fragment, min_size=2, max_size=4))), tail)
        case "nested":
            opening, closing = draw(
                st.sampled_from(["()", "[]", "{}", ("CASE WHEN ", " END"), ("{ SELECT * { ", " } }")])
            )
            return language, nested(head, opening, closing, tail, draw(st.integers(1, 10_000)))
    query = draw(st.sampled_from(QUERIES[language]))
    return language, grown(query, random.Random(draw(st.integers(0, 1 << 30))))


@settings(max_examples=15)
@given(hostile())
def test_no_text_is_judged_in_time_that_grows_with_its_square(drawn: tuple[str, str]) -> None:
    assert seconds(*drawn) < SECONDS


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("cypher", "RETURN a" + ".b" * 95_000 + "()"),
        ("cypher", "CALL " + "b." * 95_000 + "b()"),
        ("cypher", "MATCH " + ", ".join(f"(n:A{number})" for number in range(16_000)) + " RETURN n"),
        ("cypher", "MATCH " + ", ".join(f"(n{number})" for number in range(9000)) + " RETURN 1" + ", [x]" * 20_000),
        ("cypher", "RETURN 1 AS x LIMIT " + "9" * 5000),
        ("cypher", "RETURN a" + "--" * 90_000 + "\r\\u0041"),
        ("sparql", "ASK { ?s " + "a." * 75_000 + " }"),
        ("sparql", "ASK { ?s " + "a-" * 75_000 + " }"),
        ("sparql", "CONSTRUCT { ?s ?p (" + " 1" * 90_000 + ") } { ?s ?p ?o }"),
        ("sparql", "SELECT * {} LIMIT " + "9" * 5000),
        ("sparql", f"BASE <http://e/{'a/' * 90_000}> ASK {{ ?s <b> ?o }}"),
    ],
)  # fmt: skip
def test_what_once_took_longer_does_not(language: str, text: str) -> None:
    assert seconds(language, text) < SECONDS


def test_a_limit_of_any_length_is_a_number() -> None:
    assert check_cypher("RETURN 1 AS x LIMIT " + "9" * 5000, 10).text == "RETURN 1 AS x LIMIT 10"
    assert check_sparql("SELECT * {} LIMIT " + "0" * 5000 + "7", 10).text.endswith("07")


def test_of_thousands_of_unknown_names_the_first_are_told() -> None:
    relations = tuple(RelationSchema(f"http://e/r{number}", 1, ("A",), ("A",)) for number in range(4000))
    schema = Schema({"A": 1}, relations, {"A": tuple(f"p{number}" for number in range(1000))})
    text = "MATCH " + ", ".join(f"(n{i}:B{i})-[:R{i}]->(m {{q{i}: 1}})" for i in range(4000)) + " RETURN m"
    start = time.thread_time()
    found = lint_cypher(text, schema)
    assert [sum(one.kind == kind for one in found) for kind in ("label", "relation", "property")] == [25, 25, 50]
    assert len(lint_sparql("ASK { " + "".join(f"?s <http://e/x{i}> ?o . " for i in range(6000)) + "}", schema)) == 50
    assert time.thread_time() - start < SECONDS
