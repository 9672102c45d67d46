"""Sets of node or edge numbers as ascending arrays, and the orders in which the columnar graph sorts its edges.

A table of marks replaces sorting where numbers are small.
"""

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
        return ascending[changes(ascending)]
    marks = np.zeros(size, np.bool_)
    marks[numbers] = True
    return marks.nonzero()[0].astype(numbers.dtype)


def changes(*columns: Numbers) -> Marks:
    """Tell for each row of some parallel columns whether it differs from the one before it; the first one does."""
    fresh = np.ones(len(columns[0]), np.bool_)
    np.not_equal(columns[0][1:], columns[0][:-1], out=fresh[1:])
    for column in columns[1:]:
        fresh[1:] |= column[1:] != column[:-1]
    return fresh


def spread(
    starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return for each member of some ranges the position of its range, and the member."""
    ends = counts.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    if len(counts) == 1:
        return np.zeros(total, np.int64), np.arange(starts[0], starts[0] + total)
    origin = np.arange(len(counts)).repeat(counts)
    member = np.arange(total)
    member += (starts - ends + counts).take(origin)
    return origin, member


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


Int64 = npt.NDArray[np.int64]

_KEY_BITS = 63
"""Columns that fit together into so many bits are sorted as one integer, which is several times quicker."""


def sort_distinct(head: Numbers, relation: Numbers, tail: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return edges sorted by (head, relation, tail), each once."""
    relation_bits, tail_bits = _bits(relation), _bits(tail)
    if _bits(head) + relation_bits + tail_bits > _KEY_BITS:
        order = np.lexsort((tail, relation, head))
        head, relation, tail = head[order], relation[order], tail[order]
        fresh = changes(head, relation, tail)
        return head[fresh], relation[fresh], tail[fresh]
    # Sorting the values themselves is several times quicker than sorting an order, and takes half the memory.
    key = _key(head, relation, tail, relation_bits, tail_bits)
    key.sort()
    key = key[changes(key)]
    return (
        key >> (relation_bits + tail_bits),
        (key >> tail_bits) & ((1 << relation_bits) - 1),
        key & ((1 << tail_bits) - 1),
    )


def sort_order(head: Numbers, relation: Numbers, tail: Numbers) -> Int64:
    """Return the order that sorts edges by (head, relation, tail, input order)."""
    relation_bits, tail_bits = _bits(relation), _bits(tail)
    if _bits(head) + relation_bits + tail_bits > _KEY_BITS:
        return np.lexsort((tail, relation, head))
    return np.argsort(_key(head, relation, tail, relation_bits, tail_bits), kind="stable")


def first_of_each(order: Int64, head: Numbers, relation: Numbers, tail: Numbers, apart: Numbers) -> Int64:
    """Leave repetitions out of an order that `sort_order` returned.

    Args:
        order: (E,) edges by (head, relation, tail, input order).
        head: (E,) in input order, as the next two.
        relation: (E,).
        tail: (E,).
        apart: (E,) what distinguishes edges between the same nodes: of those equal in this too, the first one stays.
    """
    again = ~changes(*(column[order] for column in (head, relation, tail)))
    run = np.cumsum(~again)
    rows = np.flatnonzero(again | np.append(again[1:], False))  # those in runs of several, usually few
    by_mark = rows[np.lexsort((apart[order[rows]], run[rows]))]
    marks, runs = apart[order[by_mark]], run[by_mark]
    repeats = by_mark[1:][(marks[1:] == marks[:-1]) & (runs[1:] == runs[:-1])]
    kept = np.ones(len(order), np.bool_)
    kept[repeats] = False
    return order[kept]


def distinct_rows(head: Numbers, relation: Numbers, tail: Numbers, apart: Numbers) -> Int64:
    """Return the edges that repeat no earlier one, in input order; the arguments are those of `first_of_each`."""
    return np.sort(first_of_each(sort_order(head, relation, tail), head, relation, tail, apart))


def incoming_order(relation: Numbers, tail: Numbers) -> Int64:
    """Return the order that sorts edges by (tail, relation, input order): the way back, when sorted by head before."""
    relation_bits, edge_bits = _bits(relation), len(tail).bit_length()
    if _bits(tail) + relation_bits + edge_bits > _KEY_BITS:
        return np.lexsort((relation, tail))
    key = _key(tail, relation, np.arange(len(tail)), relation_bits, edge_bits)
    key.sort()
    key &= (1 << edge_bits) - 1
    return key


def ranges(counts: Numbers) -> Int64:
    """Return where each node's edges start, and after the last one their number: (N + 1,) for N counts."""
    index = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=index[1:])
    return index


def _bits(numbers: Numbers) -> int:
    return int(numbers.max(initial=0)).bit_length()


def _key(first: Numbers, second: Numbers, third: Numbers, second_bits: int, third_bits: int) -> Int64:
    key = first.astype(np.int64)
    key <<= second_bits
    key |= second
    key <<= third_bits
    key |= third
    return key
