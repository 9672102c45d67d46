"""Tests of `byokg.text.values`."""

from __future__ import annotations

import datetime

from hypothesis import example, given
from hypothesis import strategies as st

from byokg.text.values import is_wordless, read_literal
from byokg.types import Value
from tests.corpora import each_of


def read(text: str) -> tuple[str, Value] | None:
    found = read_literal(text)
    return None if found is None else (found.kind, found.value)


@each_of(
    "text",
    [
        *("1990-05-12", "12 May 1990", "12 may 1990", "12th of May, 1990", "12 May, 1990", "May 12, 1990"),
        *("May 12th 1990", "12-May-1990", "12.05.1990", "12.5.1990", "1990/05/12", "1990.5.12", "05/12/1990"),
        *("1990-05-12T00:00:00Z", "1990-05-12 08:30", "  12 May 1990 ", "12\u00a0May\u00a01990"),
    ],
)
def test_a_day_is_read_however_it_is_written(text: str) -> None:
    assert read(text) == ("date", "1990-05-12")


@each_of("text", ["May 1990", "May, 1990", "May of 1990", "1990-05"])
def test_a_month_keeps_its_precision(text: str) -> None:
    assert read(text) == ("date", "1990-05")


def test_an_ambiguous_day_is_month_first_and_found_under_both_readings() -> None:
    found = read_literal("12/05/1990")
    assert found is not None and found.value == "1990-12-05"
    assert {"1990-12-05", "1990-05-12", "12 May 1990", "December 5, 1990"} <= set(found.spellings)


def test_a_day_that_only_one_order_allows_has_one_reading() -> None:
    for text in ("25/12/1990", "12/25/1990", "25-12-1990"):
        found = read_literal(text)
        assert found is not None and found.value == "1990-12-25"
        assert not any("1990-25" in spelling for spelling in found.spellings)


@each_of("text", ["31 February 1990", "1990-13-01", "31/31/1990", "0000-01-01", "May 32, 1990"])
def test_a_day_that_is_in_no_calendar_is_none(text: str) -> None:
    assert read(text) is None


@each_of(
    ("text", "kind", "value"),
    [
        ("1990", "year", 1990),
        ("the year 1990", "year", 1990),
        ("AD 1066", "year", 1066),
        ("1066 CE", "year", 1066),
        ("300 BC", "year", -300),
        ("44 b.c.", "year", -44),
        ("1990s", "decade", 1990),
        ("the 1990's", "decade", 1990),
        ("3000", "number", 3000),
        ("0", "number", 0),
        ("12", "number", 12),
        ("-5", "number", -5),
        ("\u22125", "number", -5),
        ("3.5", "number", 3.5),
        # Thousands and fractions: English unless that is impossible.
        ("1,234", "number", 1234),
        ("1,234,567.5", "number", 1234567.5),
        ("1'234'567", "number", 1234567),
        ("1 234 567", "number", 1234567),
        ("1.234", "number", 1.234),
        ("1.234.567", "number", 1234567),
        ("1.234,56", "number", 1234.56),
        ("1,5", "number", 1.5),
        ("1,990", "number", 1990),
    ],
)
def test_years_decades_and_numbers(text: str, kind: str, value: Value) -> None:
    assert read(text) == (kind, value)
    assert type(read_literal(text).value) is type(value)  # type: ignore[union-attr]


@each_of(
    ("text", "value"),
    [
        ("m.0abc", "m.0abc"),
        ("/m/0abc", "m.0abc"),
        ("ns:m.0abc", "m.0abc"),
        ("http://rdf.freebase.com/ns/m.0abc", "m.0abc"),
        ("g.11b66h2c4", "g.11b66h2c4"),
        ("Q42", "Q42"),
        ("wd:Q5", "Q5"),
        ("https://www.wikidata.org/wiki/Q42", "Q42"),
        ("wdt:P31", "P31"),
        ("<http://example.org/a>", "http://example.org/a"),
        ("urn:isbn:0451450523", "urn:isbn:0451450523"),
        ("_:b0", "_:b0"),
        ("550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"),
    ],
)
def test_identifiers_come_in_their_shortest_spelling(text: str, value: str) -> None:
    found = read_literal(text)
    assert found is not None and (found.kind, found.value) == ("id", value)
    assert found.spellings[0] == text and value in found.spellings


def test_an_identifier_is_looked_up_under_the_spellings_that_graphs_use() -> None:
    assert read_literal("m.0abc").spellings == (  # type: ignore[union-attr]
        *("m.0abc", "/m/0abc", "ns:m.0abc", "fb:m.0abc", "http://rdf.freebase.com/ns/m.0abc"),
    )


@each_of(
    "text",
    [
        *("", " ", "Heat", "Jordan", "2001: A Space Odyssey", "Blink-182", "U2", "Q5", "5 km", "50 %", "$3", "1/2"),
        *("May", "May 12", "1,234,56", "12:30", "1e6", "()", "\u0661\u0669\u0669\u0660", "\x00", "1990\x07", "1\n2"),
        "9" * 500,
    ],
)
def test_names_and_nonsense_are_none(text: str) -> None:
    assert read_literal(text) is None


@given(st.text())
@example("\ud800")
@example("1" * 399)
@example("²")
def test_any_text_is_read_or_not_and_its_value_reads_as_itself(text: str) -> None:
    found = read_literal(text)
    if found is not None:
        assert found.spellings[0] == text.strip()
        assert len(set(found.spellings)) == len(found.spellings)
        if found.kind in ("date", "id"):
            assert read(str(found.value)) in ((found.kind, found.value), None)


@given(st.dates(datetime.date(1000, 1, 1), datetime.date(2999, 12, 31)))
def test_every_spelling_of_a_day_reads_as_that_day(day: datetime.date) -> None:
    found = read_literal(day.isoformat())
    assert found is not None
    for spelling in found.spellings:
        assert read(spelling) == ("date", day.isoformat())


@given(st.integers(-(10**15), 10**15))
def test_a_number_with_and_without_separators_is_the_same(number: int) -> None:
    for spelling in (str(number), f"{number:,}"):
        found = read(spelling)
        assert found is not None and found[1] == number


def test_what_has_no_letter_is_wordless() -> None:
    assert is_wordless("1990") and is_wordless("?!") and is_wordless("") and is_wordless("😀")
    assert not is_wordless("U2") and not is_wordless("東京")
