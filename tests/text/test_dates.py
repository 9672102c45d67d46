"""Tests of `byokg.text.dates`."""

from __future__ import annotations

from byokg.text.dates import Period, read_date, read_periods
from tests.corpora import each_of


@each_of(
    ("question", "periods"),
    [
        ("films from 1996", [("1996", "1997")]),
        ("What was made in 1998 or 1999?", [("1998", "1999"), ("1999", "2000")]),
        ("films before 1990", [(None, "1990")]),
        ("films after the year 1990?", [("1991", None)]),
        ("after the 1990 merger", [("1991", None)]),
        ("who led it since 1990", [("1990", None)]),
        ("from 1990 onwards", [("1990", None)]),
        ("1990 or later", [("1990", None)]),
        ("until 1990", [(None, "1991")]),
        ("by 1990", [(None, "1991")]),
        ("between 1990 and 1995", [("1990", "1996")]),
        ("between the years 1990 and 1995, and in 2001", [("1990", "1996"), ("2001", "2002")]),
        ("from 1990 to 1995", [("1990", "1996")]),
        ("in 1990-1995", [("1990", "1996")]),
        ("1990\u20131995", [("1990", "1996")]),
        ("in 1990 and 1995", [("1990", "1991"), ("1995", "1996")]),
        ("in the 1990s", [("1990", "2000")]),
        ("in the mid-1990s", [("1990", "2000")]),
        ("before the 1990s", [(None, "1990")]),
        ("after the 90s", [("2000", None)]),
        ("the '60s to the 1980s", [("1960", "1990")]),
        ("a man in his 90s", []),
        ("19th-century poets", [("1801", "1901")]),
        ("in the 20th century", [("1901", "2001")]),
        ("on 3 May 1998", [("1998-05-03", "1998-05-04")]),
        ("after May 31st, 1998?", [("1998-06-01", None)]),
        ("before December 1998", [(None, "1998-12")]),
        ("in December 1998", [("1998-12", "1999-01")]),
        ("between 1998-05-03 and 12 June 1999", [("1998-05-03", "1999-06-13")]),
        ("since 9999-12-31", []),
        ("44 BC", []),
        ("in 1200 BC", []),
        ("5,000 people, room 12345, 31 February", []),
        ("", []),
    ],
)
def test_a_question_names_periods(question: str, periods: list[tuple[str | None, str | None]]) -> None:
    assert [(one.begin, one.end) for one in read_periods(question)] == periods


def test_a_period_holds_years_and_dates_and_nothing_else() -> None:
    nineties = Period("1990", "2000")
    held: list[object] = [1990, 1999, "1990", "1999-12-31", "1995-05", "1999-12-31T23:59:59Z"]
    out: list[object] = [
        1989,
        2000,
        "1989-12-31",
        "2000-01-01",
        19955,
        1995.0,
        "199",
        "1995 AD",
        "in 1995",
        True,
        "-1995",
    ]
    assert all(nineties.holds(value) for value in held)  # type: ignore[arg-type]
    assert not any(nineties.holds(value) for value in out)  # type: ignore[arg-type]
    assert Period(None, "0100").holds("-0044-03-15") and not Period("0001").holds("-0044")
    # A year counts as its first day.
    assert not Period("1998-06").holds(1998) and Period(None, "1998-06").holds(1998)


@each_of(
    ("value", "begin", "end"),
    [
        (1906, "1906", "1907"),
        (1906.0, "1906", "1907"),
        ("1906-12", "1906-12", "1907-01"),
        ("1906-04-18", "1906-04-18", "1906-04-19"),
        ("1906-04-18T05:12:00", "1906-04-18", "1906-04-19"),
        ("1906-04-18+02:00", "1906-04-18", "1906-04-19"),
        ("2000-02-29", "2000-02-29", "2000-03-01"),
        ("1999-12-31", "1999-12-31", "2000-01-01"),
        ("-0044-03-15", "-044-03-15", "-044-03-16"),
        ("12000-12-31", "12000-12-31", "12001-01-01"),
    ],
)
def test_a_date_lasts_as_long_as_it_is_said_precisely(value: str | float, begin: str, end: str) -> None:
    read = read_date(value)
    assert read == Period(begin, end) and read.point


@each_of("value", ["1906-13", "1906-02-30", "in 1906", "", True, 1906.5, "1906-4"])
def test_what_is_no_date_is_none(value: str | float) -> None:
    assert read_date(value) is None


def test_days_of_a_period_are_its_first_and_last() -> None:
    assert (Period("1990", "2000").start, Period("1990", "2000").last) == ((1990, 1, 1), (1999, 12, 31))
    assert Period("1990-05-02", "1990-06").last == (1990, 5, 31) and Period(None, "1990-05-02").last == (1990, 5, 1)
    assert Period("1990").last is None and Period(None, "1990").start is None and not Period("1990").point
