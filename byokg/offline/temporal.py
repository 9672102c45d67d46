"""Validity periods of edges and nodes, and their comparison with a question's temporal constraint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from byokg.offline.constraints import SuccessorConstraint, TemporalConstraint
from byokg.offline.lexicon import load_lexicon
from byokg.text.dates import Day, Period, read_date
from byokg.text.labels import split_label
from byokg.text.names import split_words
from byokg.types import EntityId, Properties

_EVER: Day = (1 << 20, 12, 31)
_NEVER: Day = (-(1 << 20), 1, 1)


def period(properties: Properties) -> Period | None:
    """Return the validity period of an edge or a node, from its properties; None without one."""
    found: dict[str, Period] = {}
    for key, value in properties.items():
        role = _role(key)
        if role and (date := read_date(value)) is not None:
            found.setdefault(role, date)
    begin, end, point = found.get("begin_keys"), found.get("end_keys"), found.get("point_keys")
    if begin is None and point is not None:
        return point
    if begin is None and end is None:
        return None
    return Period(begin.begin if begin else None, end.end if end else None)


@lru_cache(1 << 10)
def _role(key: str) -> str:
    """Return the list of the lexicon that names a property's role in a period; empty if there is none."""
    names, words = load_lexicon("time"), split_words(split_label(key.rpartition(":")[2]))
    roles = ("begin_keys", "end_keys", "point_keys")
    return next((role for role in roles if not set(names[role]).isdisjoint(words)), "")


def is_point(properties: Properties) -> bool:
    """True if an edge has one date, so that a continuing state is open."""
    names = load_lexicon("time")
    words = {word for key in properties for word in split_words(split_label(key.rpartition(":")[2]))}
    ends = {*names["begin_keys"], *names["end_keys"]}
    return not words.isdisjoint(names["point_keys"]) and words.isdisjoint(ends)


def united(periods: Iterable[Period]) -> Period | None:
    """Return the time from the first beginning to the last end."""
    known = [one for one in periods if one.start is not None]
    if not known:
        return None
    first, last = min(known, key=lambda one: one.start or _NEVER), max(known, key=lambda one: one.last or _EVER)
    return Period(first.begin, last.end)


def passes(held: Period, test: TemporalConstraint, own: Period | None = None) -> bool:
    """True if a validity period passes a constraint; `own` is the time of the constraint's entity."""
    if test.mention is not None:
        if own is None or own.start is None:
            return False
        low, high = own.start, own.last or _EVER
    else:
        first = read_date(test.first) if test.first is not None else None
        last = read_date(test.last) if test.last is not None else None
        low = _NEVER if first is None else (first.last if test.strict else first.start) or _NEVER
        high = _EVER if last is None else (last.start if test.strict else last.last) or _EVER
    start, end = held.start, held.last
    if test.first is None or test.last is None or test.edge == "begin":
        if test.edge == "end" and end is not None:
            return low <= end <= high
        if test.mention is None or test.edge == "begin":
            if start is None:
                return False
            return (low < start if test.strict and test.first else low <= start) and (
                start < high if test.strict and test.last else start <= high
            )
    if test.edge == "end":
        return end is not None and low <= end <= high
    return (start or _NEVER) <= high and (end or _EVER) >= low


def adjacent(asked: SuccessorConstraint, own: Period, rivals: Sequence[tuple[EntityId, Period]]) -> list[EntityId]:
    """Return those next to a period: at the nearest beginning, or at the same time."""
    assert own.start is not None
    if asked.step == 0:
        return [other for other, one in rivals if one.start == own.start]
    if asked.years is not None:
        year = own.start[0] + asked.step * asked.years
        return [other for other, one in rivals if one.start is not None and one.start[0] == year]
    if asked.step > 0:
        later = [(one.start, other) for other, one in rivals if one.start is not None and one.start > own.start]
        if not later:
            return []
        nearest = min(start for start, _ in later)
        return [other for start, other in later if start == nearest]
    earlier = [(one.start, other) for other, one in rivals if one.start is not None and one.start < own.start]
    if not earlier:
        return []
    nearest = max(start for start, _ in earlier)
    return [other for start, other in earlier if start == nearest]
