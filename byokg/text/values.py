"""Mentions read as literals or identifiers: dates, years, numbers, MIDs, QIDs, IRIs, UUIDs.

RDF literals are read by `byokg.graph.rdf.terms`. Ambiguous forms follow American usage, which most question sets share:

- `12/05/1990` has two readings. Month first (`1990-12-05`) is the value; if only the other reading is a node, that
  node is found. `25/12/1990` has one. With dots (`12.05.1990`) the day comes first, as wherever dots are used.
- `1,234` is one thousand two hundred and thirty-four, `1.234` is a little more than one: commas, spaces and apostrophes
  group digits by three, a dot begins the fraction. Only forms without that reading are read the other way round:
  `1.234.567`, `1.234,56`, `1,5`.
- Four digits alone, 1000 to 2999, are a year; the same with a separator (`1,990`) is a number.
- Units are not read: `5 km`, `50 %` and `$3` are names.
"""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass
from typing import Literal

from byokg.text.names import is_identifier
from byokg.types import Value

Kind = Literal["date", "year", "decade", "number", "id"]

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH_NUMBERS = {name[:length]: number for number, name in enumerate(_MONTHS, 1) for length in (3, len(name))} | {
    "sept": 9
}
_MONTH = "(?P<month>" + "|".join(sorted(_MONTH_NUMBERS, key=len, reverse=True)) + r")\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[12]\d{3})"
_TIME = r"(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"

_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d){_TIME}",
        rf"{_YEAR}[/.](?P<month>\d{{1,2}})[/.](?P<day>\d{{1,2}})",
        rf"{_DAY}(?: of)?[ -]{_MONTH},?[ -]{_YEAR}",
        rf"{_MONTH} {_DAY},? {_YEAR}",
        rf"{_DAY}\.(?P<month>\d{{1,2}})\.{_YEAR}",
        rf"{_MONTH},? (?:of )?{_YEAR}",
        r"(?P<year>\d{4})-(?P<month>\d\d)",
    )
)
_SLASHED = re.compile(rf"(?P<first>\d{{1,2}})[/-](?P<second>\d{{1,2}})[/-]{_YEAR}")
_YEAR_ALONE = re.compile(rf"(?:the )?(?:year )?{_YEAR}(?: (?:ad|ce))?|(?:ad ){_YEAR.replace('year', 'after')}", re.I)
_YEAR_BEFORE = re.compile(r"(?:the )?(?:year )?(?P<year>[1-9]\d{0,3}) ?(?:bce?|b\.c\.(?:e\.)?)", re.IGNORECASE)
_DECADE = re.compile(r"(?:the )?(?P<year>[12]\d\d0)['\u2019]?s", re.IGNORECASE)
_ENGLISH = re.compile(r"[+-]?(?:\d+|\d{1,3}(?P<mark>[, '\u2019])\d{3}(?:(?P=mark)\d{3})*)(?:\.\d+)?")
_CONTINENTAL = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3}){2,}|\d{1,3}(?:[. ]\d{3})+,\d+|\d+,(?:\d{1,2}|\d{4,}))")
_IRI = re.compile(r"<?(?:https?://|urn:[a-z0-9][a-z0-9-]*:)[^\s<>\"]+>?", re.IGNORECASE)
_FREEBASE = re.compile(
    r"(?:ns:|fb:|https?://(?:rdf|www)\.freebase\.com/(?:ns/)?)?/?(?P<space>[mg])[./](?P<key>[0-9a-z_]{2,})"
)
_WIKIDATA = re.compile(
    r"(?:wdt?:|https?://www\.wikidata\.org/(?:entity|wiki|prop/direct)/)(?P<key>[QP][1-9]\d*)|(?P<bare>[QP][1-9]\d+)"
)
_WIDE_SPACE = re.compile("[ \u00a0\u2009\u202f]+")
_LONGEST = 400
"""Characters of anything read here; longer texts are none of these."""


@dataclass(frozen=True)
class ReadLiteral:
    """Value or identifier read from a text."""

    kind: Kind
    value: Value
    """As in `types.LinkedLiteral`."""
    spellings: tuple[str, ...]
    """How a node may be called that is this value, or its id if it is an identifier; the text itself comes first."""


def read_literal(text: str) -> ReadLiteral | None:
    """Read a text as an identifier, a date, a year, a decade or a number; None for any other text.

    An impossible date (`31 February 1990`) is none. The module's text states the choice between two readings.

    >>> read_literal("12 May 1990").value, read_literal("1,234").value, read_literal("Heat")
    ('1990-05-12', 1234, None)
    """
    stripped = text.strip()
    plain = _WIDE_SPACE.sub(" ", stripped).replace("\u2212", "-")
    if len(stripped) > _LONGEST or not plain.isprintable():
        return None
    read = _identifier(stripped)
    if read is None and any(map(_is_digit, stripped)):
        read = _date(plain) or _year(plain) or _number(plain)
    if read is None:
        return None
    return ReadLiteral(read.kind, read.value, tuple(dict.fromkeys((stripped, *read.spellings))))


_TIME_OF_DAY = re.compile(
    r"(\d{1,2})[:.](\d\d)(?::(\d\d))?(?: ?([ap])\.?m\.?)?|(\d{1,2}) ?([ap])\.?m\.?", re.IGNORECASE
)
_ISO = re.compile(r"\d{4}-\d\d(-\d\d)?")


def canonical_forms(text: str) -> tuple[str, ...]:
    """Return the canonical forms of a number, a date or a time of day; none for any other text.

    Numbers are plain digits, dates ISO 8601 of their precision, times `HH:MM` or `HH:MM:SS`. A date with two readings
    has both, month first.

    >>> canonical_forms("1,000"), canonical_forms("5/8/2017"), canonical_forms("7:19 PM"), canonical_forms("Heat")
    (('1000',), ('2017-05-08', '2017-08-05'), ('19:19',), ())
    """
    if not any(map(_is_digit, text)):
        return ()
    if (found := _TIME_OF_DAY.fullmatch(text.strip())) and (time := _time_of_day(found)):
        return (time,)
    read = read_literal(text)
    if read is None or read.kind in ("id", "decade"):
        return ()
    if read.kind == "date":
        return tuple(form for form in read.spellings if _ISO.fullmatch(form))
    if isinstance(read.value, float) and read.value.is_integer() and abs(read.value) < 1e15:
        return (str(int(read.value)),)
    return (str(read.value),)


def _time_of_day(found: re.Match[str]) -> str:
    """Write a time of day; empty where there is none, or for a number such as 7.30."""
    hour, minute, second, half, alone, its_half = found.groups()
    half, hour, minute = half or its_half, int(hour or alone), int(minute or 0)
    if ("." in found[0] and not half) or minute > 59 or hour > 23 or (half and not 1 <= hour <= 12):
        return ""
    if half:
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    return f"{hour:02d}:{minute:02d}" + (f":{second}" if second else "")


def is_wordless(text: str) -> bool:
    """True if a text has no letter: it has no approximate matches (1990 is not 1991)."""
    return not any(map(str.isalpha, text))


def _is_digit(character: str) -> bool:
    return "0" <= character <= "9"


def _identifier(text: str) -> ReadLiteral | None:
    """Read an identifier; its spellings are the shorthands that graphs use for it."""
    freebase, wikidata = _FREEBASE.fullmatch(text), _WIKIDATA.fullmatch(text)
    if freebase is not None:
        space, key = freebase["space"], freebase["key"]
        short = f"{space}.{key}"
        iri = f"http://rdf.freebase.com/ns/{short}"
        return ReadLiteral("id", short, (short, f"/{space}/{key}", f"ns:{short}", f"fb:{short}", iri))
    if wikidata is not None:
        key = wikidata["key"] or wikidata["bare"]
        return ReadLiteral("id", key, (key, f"wd:{key}", f"http://www.wikidata.org/entity/{key}"))
    if _IRI.fullmatch(text):
        bare = text.removeprefix("<").removesuffix(">")
        return ReadLiteral("id", bare, (bare, f"<{bare}>"))
    if is_identifier(text):
        return ReadLiteral("id", text, (text.lower(), text.upper()) if not text.startswith("_:") else ())
    return None


def _date(text: str) -> ReadLiteral | None:
    """Read a day or a month of a year."""
    slashed = _SLASHED.fullmatch(text)
    if slashed is not None:
        year, first, second = int(slashed["year"]), int(slashed["first"]), int(slashed["second"])
        readings = [iso for iso in (_iso(year, first, second), _iso(year, second, first)) if iso]
        if not readings:
            return None
        spelled = (spelling for iso in readings for spelling in _date_spellings(iso))
        return ReadLiteral("date", readings[0], tuple(spelled))
    for pattern in _DATES:
        found = pattern.fullmatch(text)
        if found is None:
            continue
        parts = found.groupdict()
        named = _MONTH_NUMBERS.get(parts["month"].lower())
        month = int(parts["month"]) if named is None else named
        day = None if parts.get("day") is None else int(parts["day"])
        value = _iso(int(parts["year"]), month, day)
        return None if value is None else ReadLiteral("date", value, _date_spellings(value))
    return None


def _iso(year: int, month: int, day: int | None) -> str | None:
    """Write a date, or a month; None when there is no such."""
    try:
        datetime.date(year, month, 1 if day is None else day)
    except ValueError:
        return None
    return f"{year:04d}-{month:02d}" if day is None else f"{year:04d}-{month:02d}-{day:02d}"


def _date_spellings(iso: str) -> tuple[str, ...]:
    """Write a date as names of nodes have it."""
    year, month, *rest = iso.split("-")
    name = _MONTHS[int(month) - 1].capitalize()
    if not rest:
        return iso, f"{name} {year}"
    day = int(rest[0])
    return iso, f"{day} {name} {year}", f"{name} {day}, {year}", f"{iso}T00:00:00Z", f"{iso}T00:00:00"


def _year(text: str) -> ReadLiteral | None:
    """Read a year, before or after Christ, or a decade."""
    if found := _YEAR_ALONE.fullmatch(text):
        year = int(found["year"] or found["after"])
        return ReadLiteral("year", year, (str(year),)) if year < 3000 else None
    if found := _YEAR_BEFORE.fullmatch(text):
        year = int(found["year"])
        return ReadLiteral("year", -year, (f"{year} BC", f"{year} BCE", f"-{year:04d}", f"-{year}"))
    if found := _DECADE.fullmatch(text):
        return ReadLiteral("decade", int(found["year"]), (f"{found['year']}s",))
    return None


def _number(text: str) -> ReadLiteral | None:
    """Read a number in digits."""
    if _ENGLISH.fullmatch(text):
        digits = re.sub(r"[^\d.+-]", "", text)
    elif _CONTINENTAL.fullmatch(text):
        digits = re.sub(r"[. ]", "", text).replace(",", ".")
    else:
        return None
    value = float(digits) if "." in digits else int(digits)
    if isinstance(value, int):
        return ReadLiteral("number", value, (str(value), f"{value:,}"))
    if not math.isfinite(value):
        return None
    whole = (str(int(value)), f"{int(value):,}") if value.is_integer() and abs(value) < 1e15 else ()
    return ReadLiteral("number", value, (digits, repr(value), *whole))
