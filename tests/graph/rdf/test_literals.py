"""Literals and property values stand for each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.graph.rdf.literals import Literal, listed, of_value, preferred
from byokg.graph.rdf.terms import XSD

values = (
    st.text(st.characters(exclude_categories=["Cs"]))
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
)


@given(values)
def test_every_value_comes_back_from_its_literal(value: str | int | float | bool) -> None:
    literal = of_value(value)
    assert literal.value == value
    assert type(literal.value) is type(value)
    assert literal.plain


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_can_be_written_and_parsed(text: str) -> None:
    pyoxigraph = pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'byokg[sparql]'")
    (quad,) = pyoxigraph.parse(f"<x:s> <x:p> {Literal(text)} .", pyoxigraph.RdfFormat.N_TRIPLES)
    assert quad.object.value == text


@pytest.mark.parametrize(
    ("literal", "kind"),
    [
        (Literal("1", XSD + "short"), "int"),
        (Literal("1.5", XSD + "decimal"), "float"),
        (Literal("true", XSD + "boolean"), "bool"),
        (Literal("2001-09-30", XSD + "date"), "date"),
        (Literal("x", language="en"), "string"),
        (Literal("x", XSD + "integer"), "string"),
    ],
)
def test_kinds_are_those_of_the_values(literal: Literal, kind: str) -> None:
    assert literal.kind == kind


@pytest.mark.parametrize(
    ("text", "value"), [("7", 7.0), ("1.5", 1.5), ("12345678901234567890", "12345678901234567890")]
)
def test_a_whole_decimal_keeps_its_digits(text: str, value: float | str) -> None:
    assert Literal(text, XSD + "decimal").value == value


@pytest.mark.parametrize(
    "literal", [Literal("x", language="en"), Literal("1990", XSD + "gYear"), Literal("x", "http://example.org/type")]
)
def test_a_literal_that_says_more_than_its_value_is_not_plain(literal: Literal) -> None:
    assert not literal.plain


def test_english_is_preferred_then_untagged_then_regional_english_then_the_first() -> None:
    english, untagged, british = Literal("a", language="en"), Literal("b"), Literal("c", language="en-gb")
    french, german = Literal("d", language="fr"), Literal("e", language="de")
    ranked = [english, untagged, british, french, german]
    for place, best in enumerate(ranked[:-1]):
        assert preferred([*ranked[place + 1 :], best] if place < 3 else ranked[place:]) == best


def test_lists_are_written_as_turtle_does() -> None:
    assert listed([Literal("a", language="en"), Literal('"\n'), of_value(1)]) == (
        '"a"@en, "\\"\\n", "1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    )
