"""Dates of any precision, and the periods that edges and nodes say they hold for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from byokg.operators.reading import TimeTest
from byokg.operators.words import idea
from byokg.text import split_label, split_words
from byokg.types import Properties, Value

Day = tuple[int, int, int]
"""Year, month and day."""

_EVER: Day = (1 << 20, 12, 31)
_NEVER: Day = (-(1 << 20), 1, 1)

_DATE = re.compile(r"(-?\d{1,6})(?:-(\d\d)(?:-(\d\d)(?:[T ].*)?)?)?")


@dataclass(frozen=True)
class Period:
    """From one day to another, both included; unknown ends are None."""

    start: Day | None
    start_until: Day | None
    """The last day that the start may be: of a year its last."""
    end: Day | None

    @property
    def point(self) -> bool:
        """Tell whether it is one date, however precise."""
        return self.start is not None and self.end == self.start_until


def read_date(value: Value) -> tuple[Day, Day] | None:
    """Return the first and the last day that a date may mean: `1906-04-18T05:12:00` is `1906-04-18`."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return read_date(int(value)) if value.is_integer() else None
    match = _DATE.fullmatch(str(value))
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2] or 0), int(match[3] or 0)
    return (year, month or 1, day or 1), (year, month or 12, day or 31)


def period(properties: Properties) -> Period | None:
    """Return when something holds, from what an edge or a node says; None where it says nothing of time."""
    names = idea("time")
    found: dict[str, tuple[Day, Day]] = {}
    for key, value in properties.items():
        words = set(split_words(split_label(key.rpartition(":")[2])))
        for role in ("begin_keys", "end_keys", "point_keys"):
            if words & set(names[role]):
                dates = read_date(value)
                if dates is not None:
                    found.setdefault(role, dates)
                break
    begin, end, point = found.get("begin_keys"), found.get("end_keys"), found.get("point_keys")
    if begin is None and point is not None:
        return Period(point[0], point[1], point[1])
    if begin is None and end is None:
        return None
    return Period(begin and begin[0], begin and begin[1], end and end[1])


def united(periods: Iterable[Period]) -> Period | None:
    """Return the time from the first beginning to the last end."""
    known = [one for one in periods if one.start is not None]
    if not known:
        return None
    first = min(known, key=lambda one: one.start or _NEVER)
    ends = [one.end for one in known]
    return Period(first.start, first.start_until, None if None in ends else max(end for end in ends if end))


def passes(held: Period, test: TimeTest, own: Period | None = None) -> bool:
    """Tell whether something that held for a period passes a test; `own` is the time of what the test names."""
    if test.mention is not None:
        if own is None or own.start is None:
            return False
        low, high = own.start, own.end or _EVER
    else:
        first = read_date(test.first) if test.first is not None else None
        last = read_date(test.last) if test.last is not None else None
        low = _NEVER if first is None else first[1] if test.strict else first[0]
        high = _EVER if last is None else last[0] if test.strict else last[1]
    if test.first is None or test.last is None or test.edge == "begin":
        if test.edge == "end" and held.end is not None:
            return low <= held.end <= high
        if test.mention is None or test.edge == "begin":
            if held.start is None:
                return False
            return (low < held.start if test.strict and test.first else low <= held.start) and (
                held.start < high if test.strict and test.last else held.start <= high
            )
    if test.edge == "end":
        return held.end is not None and low <= held.end <= high
    return (held.start or _NEVER) <= high and (held.end or _EVER) >= low
