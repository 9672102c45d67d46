"""Dates and periods of graph values and of questions.

`read_date` reads a value of any precision, `read_periods` the years, dates, decades and centuries of a question, with
`before`, `after` and `between`. Both return a `Period`: a year spans the year, so that `1906` holds
`1906-04-18T05:12:00`, and a moment is the day that it falls on.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

from byokg.text.values import ReadLiteral, read_literal
from byokg.types import Value

DATES = r"-?[0-9]{4}(-[0-9][0-9](-[0-9][0-9]([T ].*)?)?)?"
"""Pattern of a year, a date or a moment as text; the same expression in Python and in Cypher."""
DATE = re.compile(DATES)


Day = tuple[int, int, int]
"""Year, month and day."""

_VALUE = re.compile(r"(-?\d{1,6})(?:-(\d\d)(?:-(\d\d)(?:[T ].*)?)?)?(?:Z|[+-]\d\d:\d\d)?")
_CYCLE, _SOME_CYCLE = 400, 2000
"""Years after which the calendar repeats itself, and the first year of a cycle that `datetime` supports."""


@dataclass(frozen=True)
class Period:
    """Period from a beginning to an exclusive end: ISO 8601 text of any precision.

    For years after Christ such text sorts in the order of time, so engines compare it as text. A value that is less
    precise than an end counts as its own beginning there.
    """

    begin: str | None = None
    """None if there is no beginning."""
    end: str | None = None
    """None if there is no end."""

    @property
    def start(self) -> Day | None:
        """Return the first day."""
        return None if self.begin is None else _day(self.begin)

    @property
    def last(self) -> Day | None:
        """Return the last day; of a month the 31st, however long it is."""
        if self.end is None:
            return None
        year, month, day = _day(self.end)
        if day > 1:
            return year, month, day - 1
        return (year, month - 1, 31) if month > 1 else (year - 1, 12, 31)

    @property
    def point(self) -> bool:
        """True for one date of any precision."""
        return self.begin is not None and read_date(self.begin) == self

    def holds(self, value: Value) -> bool:
        """True if a value is a year or a date within the period; False for other text."""
        text = str(value)
        inside = (self.begin is None or text >= self.begin) and (self.end is None or text < self.end)
        return inside and DATE.fullmatch(text) is not None


def _day(text: str) -> Day:
    year, month, day = (*(int(part) for part in re.findall(r"^-?\d+|\d+", text)), 1, 1)[:3]
    return year, month, day


def read_date(value: Value) -> Period | None:
    """Return the period of a year, a month, a date or a moment; None for any other value.

    >>> read_date("1906-04-18T05:12:00"), read_date(1906)
    (Period(begin='1906-04-18', end='1906-04-19'), Period(begin='1906', end='1907'))
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return read_date(int(value)) if value.is_integer() else None
    match = _VALUE.fullmatch(str(value))
    if match is None:
        return None
    year = int(match[1])
    if match[2] is None:
        return Period(f"{year:04d}", f"{year + 1:04d}")
    cycle = year - (_SOME_CYCLE + year % _CYCLE)
    try:
        first = datetime.date(year - cycle, int(match[2]), int(match[3] or 1))
    except ValueError:
        return None
    if match[3] is None:
        return Period(f"{year:04d}-{match[2]}", f"{year + first.month // 12:04d}-{first.month % 12 + 1:02d}")
    after = first + datetime.timedelta(days=1)
    return Period(f"{year:04d}-{match[2]}-{match[3]}", f"{after.year + cycle:04d}-{after.month:02d}-{after.day:02d}")


def read_periods(question: str) -> tuple[Period, ...]:
    """Return the periods that a question names, each once, in its order; those before Christ are left out.

    >>> read_periods("Which films came out between 1990 and 1995, or in the 2000s?")
    (Period(begin='1990', end='1996'), Period(begin='2000', end='2010'))
    """
    for pattern, said in _REWRITTEN:
        question = pattern.sub(said, question)
    periods: list[Period] = []
    joined = False
    moments = _moments(question)
    for (moment, before), after in zip(moments, [*moments[1:], None], strict=False):
        if joined:  # it is the end of the period before
            joined = False
        elif after is not None and _joins(before, after[1]):
            periods.append(Period(moment.begin, after[0].end))
            joined = True
        elif _BEFORE.search(before):
            periods.append(Period(None, moment.begin))
        elif _AFTER.search(before):
            periods.append(Period(moment.end, None))
        elif _SINCE.search(before):
            periods.append(Period(moment.begin, None))
        elif _UNTIL.search(before):
            periods.append(Period(None, moment.end))
        else:
            periods.append(moment)
    return tuple(dict.fromkeys(periods))


_REWRITTEN = tuple(
    (re.compile(pattern, re.IGNORECASE), said)
    for pattern, said in (
        (r"(?<![\d-])([12]\d{3}) ?[-\u2013\u2014] ?([12]\d{3})(?![\d-])", r"\1 to \2"),
        (r"\bfrom (?:the year )?([12]\d{3}) on(?:wards?)?\b", r"since \1"),
        (r"\b([12]\d{3}) (?:or|and) (?:later|after)\b", r"since \1"),
        (r"\b([12]\d{3}) (?:or|and) (?:earlier|before)\b", r"until \1"),
        (r"\b\d+ ?(?:bce?\b|b\.c\.(?:e\.)?)", ""),
        (r"\b(?:early|mid|late)-(?=['\u2019\d])", ""),
    )
)
"""Rewrites of variant expressions before parsing."""

_WORD = re.compile(r"[^\s()]+")
_LONGEST = 4
"""Words of a date."""
_SHORT_DECADE = re.compile(r"['\u2019]?([2-9])0s")
_CENTURY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)[ -]century", re.IGNORECASE)
_THE = r"(?: the)?(?: year)?$"
_BEFORE = re.compile(r"\b(?:before|prior to|earlier than|preceding)" + _THE, re.IGNORECASE)
_AFTER = re.compile(r"\b(?:after|later than|following)" + _THE, re.IGNORECASE)
_SINCE = re.compile(r"\b(?:since|starting|starting in|starting from)" + _THE, re.IGNORECASE)
_UNTIL = re.compile(r"\b(?:until|till|up to|through|by|no later than)" + _THE, re.IGNORECASE)
_TO = re.compile(r"(?:to|until|till|through)" + _THE, re.IGNORECASE)
_AND = re.compile(r"and" + _THE, re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween(?: the)?(?: years?)?$", re.IGNORECASE)


def _joins(before: str, between: str) -> bool:
    """True if two moments are the ends of one period, by the words before and between them."""
    if _TO.fullmatch(between):
        return True
    return _AND.fullmatch(between) is not None and _BETWEEN.search(before) is not None


def _moments(text: str) -> list[tuple[Period, str]]:
    """Return each moment in a text, with the words between it and the previous one."""
    spans = [found.span() for found in _WORD.finditer(text)]
    moments = []
    done, word = 0, 0
    while word < len(spans):
        start = spans[word][0]
        for size in range(min(_LONGEST, len(spans) - word), 0, -1):
            written = text[start : spans[word + size - 1][1]].rstrip(",.;:?!")
            moment = _moment(written, text[:start])
            if moment is not None:
                moments.append((moment, text[done:start].strip()))
                done = start + len(written)
                word += size
                break
        else:
            word += 1
    return moments


def _moment(text: str, before: str) -> Period | None:
    """Parse a text that is a time expression and nothing else."""
    if century := _CENTURY.fullmatch(text):
        last = 100 * int(century[1])
        return Period(f"{last - 99:04d}", f"{last + 1:04d}") if last else None
    if (decade := _SHORT_DECADE.fullmatch(text)) and before.lower().split()[-1:] == ["the"]:
        return Period(f"19{decade[1]}0", str(1910 + 10 * int(decade[1])))
    read = read_literal(text) if re.search(r"[12]\d{3}", text) and text.lower()[:3] != "the" else None
    return _period(read) if read is not None else None


def _period(read: ReadLiteral) -> Period | None:
    """Return the period of a literal: after Christ, and with four digits also at its end."""
    if read.kind == "decade" and isinstance(read.value, int) and read.value > 0:
        return Period(f"{read.value:04d}", f"{read.value + 10:04d}")
    lasts = read_date(read.value) if read.kind in ("date", "year") else None
    return lasts if lasts is not None and lasts.start is not None and 0 < lasts.start[0] < 9999 else None
