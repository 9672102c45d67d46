"""Sets of node or edge numbers as ascending arrays; a table of marks stands in for sorting where numbers are small."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.integer]
Marks = npt.NDArray[np.bool_]

_MARKED, _LOOKED_UP = 2, 256
"""A table is used for numbers below so many times their count. To find distinct ones, all of it is read, and sorting
a few is quicker; to look numbers up, only some of it is."""


_FEW = 8
"""So many members are compared one by one; and from so many times as many members as asked, each asked is searched."""


def distinct(numbers: Numbers) -> Numbers:
    """Return each number once, ascending."""
    if len(numbers) < 2:
        return numbers
    size = int(numbers.max()) + 1
    if size > _MARKED * len(numbers):
        ascending = np.sort(numbers)
        fresh = np.ones(len(ascending), np.bool_)
        np.not_equal(ascending[1:], ascending[:-1], out=fresh[1:])
        return ascending[fresh]
    marks = np.zeros(size, np.bool_)
    marks[numbers] = True
    return marks.nonzero()[0].astype(numbers.dtype)


def group_of(groups: Sequence[Numbers], asked: Numbers) -> npt.NDArray[np.uint8]:
    """Tell for each number asked which of some disjoint ascending sets it is in: counted from 1, 0 for none."""
    found = np.zeros(len(asked), np.uint8)
    members = sum(map(len, groups))
    if members == 0 or len(asked) == 0:
        return found
    size = 1 + max(int(asked.max()), *(int(group[-1]) for group in groups if len(group)))
    if size > _LOOKED_UP * (members + len(asked)):
        for number, group in enumerate(groups, 1):
            found[contains(group, asked)] = number
        return found
    table = np.zeros(size, np.uint8)
    for number, group in enumerate(groups, 1):
        table[group] = number
    return table.take(asked)


def contains(members: Numbers, asked: Numbers) -> Marks:
    """Tell for each number asked whether it is among the members, which are ascending: (len(asked),)."""
    if len(members) == 0 or len(asked) == 0:
        return np.zeros(len(asked), np.bool_)
    if len(members) <= _FEW:
        found: Marks = asked == members[0]
        for member in members[1:]:
            found |= asked == member
        return found
    size = max(int(members[-1]), int(asked.max())) + 1
    if len(members) > _FEW * len(asked) or size > _LOOKED_UP * (len(members) + len(asked)):
        within: Marks = members.take(np.searchsorted(members, asked), mode="clip") == asked
        return within
    marks = np.zeros(size, np.bool_)
    marks[members] = True
    return marks.take(asked)


def common(one: Numbers, other: Numbers) -> Numbers:
    """Return the numbers that stand in both of two ascending sets."""
    few, many = (one, other) if len(one) < len(other) else (other, one)
    return few[contains(many, few)]


def positions(members: Numbers, asked: Numbers) -> npt.NDArray[np.integer]:
    """Tell for each number asked where it stands among the members, which are distinct, -1 for none: (len(asked),)."""
    return finder(members, len(asked))(asked)


def finder(members: Numbers, count: int) -> Callable[[Numbers], npt.NDArray[np.integer]]:
    """Return what does as `positions`, for numbers that come in several portions, `count` in all."""
    if len(members) == 0 or count == 0:
        return lambda asked: np.full(len(asked), -1)
    beyond = int(members.max()) + 1
    if beyond > _LOOKED_UP * (len(members) + count):
        order = np.argsort(members)

        def search(asked: Numbers) -> npt.NDArray[np.integer]:
            place = order.take(np.searchsorted(members, asked, sorter=order), mode="clip")
            return np.where(members.take(place) == asked, place, -1)

        return search
    table = np.full(beyond + 1, -1, np.int32)  # the last one is for all numbers beyond
    table[members] = np.arange(len(members), dtype=np.int32)
    return lambda asked: table.take(asked, mode="clip")
