"""Sets of node or edge numbers as ascending arrays, and the sort orders of the columnar graph's edges.

A table of marks replaces sorting if numbers are small. A `VisitedSet` is the growing visited set of a search.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from byokg.arrays import Bools, Int64, Integers

Kind = TypeVar("Kind", bound=np.integer)

_MARKED, _LOOKED_UP = 2, 256
"""A table is used for numbers below so many times their count. To find distinct ones, all of it is read, and sorting
a few is quicker; to look numbers up, only some of it is."""


_FEW = 8
"""Number of members up to which they are compared one by one; and ratio of members to numbers from which each number is
searched."""


def distinct(numbers: npt.NDArray[Kind]) -> npt.NDArray[Kind]:
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


def fold_repeats(numbers: Int64) -> tuple[Int64, Int64]:
    """Return numbers with each once, and the place of each given one among them; a few are left as they are."""
    if len(numbers) <= _FEW:
        return numbers, np.arange(len(numbers))
    return np.unique(numbers, return_inverse=True)


def changes(*columns: Integers) -> Bools:
    """Return a mask of the rows of some parallel columns that differ from the one before; True for the first."""
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


def rows_at(column: Integers, places: Int64) -> tuple[Int64, Int64]:
    """Join places with the rows of an ascending column of places: the position of each among `places`, and the row."""
    bounds = np.searchsorted(column, np.arange(int(places.max(initial=-1)) + 2))
    starts = bounds.take(places)
    return spread(starts, bounds.take(places + 1) - starts)


def match_rows(column: Integers, numbers: Integers) -> tuple[Int64, Int64]:
    """Join numbers with the equal rows of an ascending column: the position of each among `numbers`, and the row."""
    starts = np.searchsorted(column, numbers)
    return spread(starts, np.searchsorted(column, numbers, "right") - starts)


def portions(counts: Int64, most: int) -> Iterator[tuple[int, int]]:
    """Cut places into ranges whose counts add up to `most`, or less, or that hold one place with more."""
    ends = counts.cumsum()
    first = read = 0
    while first < len(counts):
        last = max(first + 1, int(np.searchsorted(ends, read + most, "right")))
        yield first, last
        first, read = last, int(ends[last - 1])


def rank_of(ascending: Integers) -> Int64:
    """Return how many equal numbers stand before each of some ascending ones."""
    return np.arange(len(ascending)) - np.searchsorted(ascending, ascending)


_BLOCK = 1 << 22
"""Places that are sorted at a time by their groups."""


def sample_positions(group: Integers, groups: int, most: int) -> npt.NDArray[np.int64]:
    """Return places of up to `most` members of each group, spread evenly over all of its members.

    Args:
        group: (N,) the group of each place, in [0, groups).

    Returns:
        Places by group, ascending. Memory grows with the sample and not with N.
    """
    blocks = range(0, len(group), _BLOCK)
    inside = [np.bincount(group[first : first + _BLOCK], minlength=groups) for first in blocks]
    counts: npt.NDArray[np.int64] = np.zeros(groups, np.int64) + sum(inside)
    of, rank = spread(np.zeros(groups, np.int64), np.minimum(counts, most))
    wanted = rank * counts[of] // np.minimum(counts, most)[of]  # which member of its group, counted from 0
    key = of * (len(group) + 1) + wanted
    places, met = np.empty(len(of), np.int64), np.arange(groups) * (len(group) + 1)
    for first, counted in zip(blocks, inside, strict=True):
        begin, end = np.searchsorted(key, (met, met + counted))
        here, chosen = spread(begin, end - begin)
        order = np.argsort(group[first : first + _BLOCK], kind="stable")
        places[chosen] = first + order[(counted.cumsum() - counted)[here] + key[chosen] - met[here]]
        met += counted
    return places


def group_of(groups: Sequence[Integers], asked: Integers) -> npt.NDArray[np.uint8]:
    """Return for each number the disjoint ascending set that contains it: counted from 1, 0 for none."""
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


def contains(members: Integers, asked: Integers) -> Bools:
    """Return a mask of the numbers among the members, which are ascending: (len(asked),)."""
    if len(members) == 0 or len(asked) == 0:
        return np.zeros(len(asked), np.bool_)
    if len(members) <= _FEW:
        found: Bools = asked == members[0]
        for member in members[1:]:
            found |= asked == member
        return found
    size = max(int(members[-1]), int(asked.max())) + 1
    if len(members) > _FEW * len(asked) or size > _LOOKED_UP * (len(members) + len(asked)):
        within: Bools = members.take(np.searchsorted(members, asked), mode="clip") == asked
        return within
    marks = np.zeros(size, np.bool_)
    marks[members] = True
    return marks.take(asked)


def common(one: Integers, other: Integers) -> Integers:
    """Return the numbers that stand in both of two ascending sets."""
    few, many = (one, other) if len(one) < len(other) else (other, one)
    return few[contains(many, few)]


def positions(members: Integers, asked: Integers) -> npt.NDArray[np.integer]:
    """Return the position of each number among the members, which are distinct, -1 for none: (len(asked),)."""
    return finder(members, len(asked))(asked)


def finder(members: Integers, count: int) -> Callable[[Integers], npt.NDArray[np.integer]]:
    """Return a function like `positions`, for numbers that come in several portions, `count` in all."""
    if len(members) == 0 or count == 0:
        return lambda asked: np.full(len(asked), -1)
    beyond = int(members.max()) + 1
    if beyond > _LOOKED_UP * (len(members) + count):
        order = np.argsort(members)

        def search(asked: Integers) -> npt.NDArray[np.integer]:
            place = order.take(np.searchsorted(members, asked, sorter=order), mode="clip")
            return np.where(members.take(place) == asked, place, -1)

        return search
    table = np.full(beyond + 1, -1, np.int32)  # the last one is for all numbers beyond
    table[members] = np.arange(len(members), dtype=np.int32)
    return lambda asked: table.take(asked, mode="clip")


_KEY_BITS = 63
"""Columns that fit together into so many bits are sorted as one integer, which is several times quicker."""


def sort_distinct(head: Integers, relation: Integers, tail: Integers) -> tuple[Integers, Integers, Integers]:
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


def sort_order(head: Integers, relation: Integers, tail: Integers) -> Int64:
    """Return the order that sorts edges by (head, relation, tail, input order)."""
    relation_bits, tail_bits = _bits(relation), _bits(tail)
    if _bits(head) + relation_bits + tail_bits > _KEY_BITS:
        return np.lexsort((tail, relation, head))
    return np.argsort(_key(head, relation, tail, relation_bits, tail_bits), kind="stable")


def first_of_each(order: Int64, head: Integers, relation: Integers, tail: Integers, apart: Integers) -> Int64:
    """Leave repetitions out of an order that `sort_order` returned.

    Args:
        order: (E,) edges by (head, relation, tail, input order).
        head: (E,) in input order, as the next two.
        relation: (E,).
        tail: (E,).
        apart: (E,) distinguishes edges between the same nodes: of those equal in this too, the first one stays.
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


class SortedEdges(NamedTuple):
    """E edges by head, relation, tail and input order."""

    head: Integers
    relation: Integers
    tail: Integers
    undirected: Bools | None
    """(E,) None if none is."""
    order: Int64 | None
    """(E,) their rows in the input; None where repetitions were left out without it."""


def sort_edges(
    head: Integers, relation: Integers, tail: Integers, undirected: Bools | None, apart: Integers | None, distinct: bool
) -> SortedEdges:
    """Sort edges by head, relation, tail and input order.

    Args:
        head: (E,) as all of these.
        relation: numbers.
        tail: numbers.
        undirected: which edges are; None if none is.
        apart: edges that differ in this are no repetitions; see `first_of_each`.
        distinct: leave out repetitions. An undirected edge repeats no directed one.
    """
    if undirected is None and apart is None and distinct:
        return SortedEdges(*sort_distinct(head, relation, tail), None, None)
    order = sort_order(head, relation, tail)
    if undirected is None:
        if apart is not None:
            order = first_of_each(order, head, relation, tail, apart)
        return SortedEdges(head[order], relation[order], tail[order], None, order)
    if distinct or apart is not None:
        code = relation.astype(np.int64) << 1 | undirected
        marks = np.zeros(len(head), np.int64) if apart is None else apart
        kept = first_of_each(sort_order(head, code, tail), head, code, tail, marks)
        order = kept[sort_order(head[kept], relation[kept], tail[kept])]
    return SortedEdges(head[order], relation[order], tail[order], undirected[order], order)


def distinct_rows(head: Integers, relation: Integers, tail: Integers, apart: Integers) -> Int64:
    """Return the edges that repeat no earlier one, in input order; the arguments are those of `first_of_each`."""
    return np.sort(first_of_each(sort_order(head, relation, tail), head, relation, tail, apart))


def incoming_order(relation: Integers, tail: Integers) -> Int64:
    """Return the order that sorts edges by (tail, relation, input order): the way back, when sorted by head before."""
    relation_bits, edge_bits = _bits(relation), len(tail).bit_length()
    if _bits(tail) + relation_bits + edge_bits > _KEY_BITS:
        return np.lexsort((relation, tail))
    key = _key(tail, relation, np.arange(len(tail)), relation_bits, edge_bits)
    key.sort()
    key &= (1 << edge_bits) - 1
    return key


def ranges(counts: Integers) -> Int64:
    """Return where each node's edges start, and after the last one their number: (N + 1,) for N counts."""
    index = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=index[1:])
    return index


def _bits(numbers: Integers) -> int:
    return int(numbers.max(initial=0)).bit_length()


def _key(first: Integers, second: Integers, third: Integers, second_bits: int, third_bits: int) -> Int64:
    key = first.astype(np.int64)
    key <<= second_bits
    key |= second
    key <<= third_bits
    key |= third
    return key


# Visited set of a search

_NEVER = (1 << 31) - 1
_EACH = 1 << 23
"""Vertices up to which each has its place among the marks. In larger graphs searches meet few of them all over."""
_PAGE_BITS = 6
_PAGE = 1 << _PAGE_BITS
_KEPT_BYTES, _KEPT_IN_PAGES = 1 << 30, 1 << 26
"""Limits of the marks that a thread keeps for its next search: those with a place for each vertex, of which there is a
bound, and those in pages."""

_ROOM = threading.local()


class VisitedSet:
    """Visited set of a search with the order of visits: an array that is reused without being cleared.

    In a small graph each vertex has its place in it. In a large one a vertex gets a place when one of the `_PAGE`
    vertices of its page is visited, so that memory grows with the visited part, not with the graph.
    """

    __slots__ = ("_marks", "_next", "_opened", "_pages", "_places", "base")

    def __init__(self) -> None:
        self._marks = np.zeros(0, np.int32)
        """`base` plus the position of a vertex among the visited ones; values below `base` are unvisited."""
        self._pages: npt.NDArray[np.int32] | None = None
        """Start of each page's marks, counted in pages: 0, which is never marked, until one is visited."""
        self._opened: list[npt.NDArray[np.integer]] = []
        """The pages that have a place."""
        self._places = 1
        """How many places of pages are taken, that of 0 among them."""
        self.base = 1
        self._next = 1

    def begin(self) -> None:
        """Clear the set."""
        self.base = self._next
        if self.base > _NEVER // 2:
            self._marks.fill(0)
            self.base = 1
        self._next = self.base
        if self._pages is not None:
            for opened in self._opened:
                self._pages[opened] = 0
            self._opened.clear()
            self._places = 1

    def room(self, highest: int) -> None:
        """Make room for a vertex."""
        if self._pages is not None:
            if highest >= len(self._pages) * _PAGE:
                self._pages = _longer(self._pages, max(highest // _PAGE + 1, 2 * len(self._pages)))
        elif highest >= _EACH:
            met = len(self._marks) // _PAGE if self.count else 0
            self._pages, self._places = np.zeros(highest // _PAGE + 1, np.int32), 1 + met
            self._pages[:met] = np.arange(1, 1 + met)
            self._opened = [np.arange(met)]
            self._marks = np.concatenate((np.zeros(_PAGE, np.int32), self._marks[: met * _PAGE]))
        elif highest >= len(self._marks):
            size = min(max(highest // _PAGE * _PAGE + _PAGE, 2 * len(self._marks), 1 << 12), _EACH)
            # Marks of earlier searches are not kept: they would use memory that nothing needs.
            self._marks = _longer(self._marks, size) if self.count else np.zeros(size, np.int32)

    def add(self, vertices: Int64) -> Int64:
        """Mark vertices; return the positions (in `vertices`) of those not met before, each once, in order."""
        if len(vertices) == 0:
            return vertices
        try:
            at = vertices if self._pages is None else self._opened_for(vertices, self._pages)
            fresh = (self._marks.take(at) < self.base).nonzero()[0]
        except IndexError:  # seldom, so that room is not checked each time
            self.room(int(vertices.max()))
            return self.add(vertices)
        base, marks = self._next, self._marks
        if len(fresh) > 1:
            found = at.take(fresh)
            numbers = np.arange(base, base + len(fresh), dtype=np.int32)
            marks[found[::-1]] = numbers[::-1]
            first = marks.take(found) == numbers
            if not first.all():
                fresh = fresh[first]
                marks[at.take(fresh)] = numbers[: len(fresh)]
        elif len(fresh):
            marks[at[fresh]] = base
        self._next = base + len(fresh)
        return fresh

    def met(self, vertices: Int64) -> npt.NDArray[np.bool_]:
        """Return a mask of visited vertices."""
        return self._found(vertices) >= self.base

    @property
    def count(self) -> int:
        """Return how many vertices were met."""
        return self._next - self.base

    @property
    def paged(self) -> bool:
        """True if vertices get a place only when visited."""
        return self._pages is not None

    @property
    def bytes(self) -> int:
        """Return how much memory this takes, at most."""
        return self._marks.nbytes + (0 if self._pages is None else self._pages.nbytes)

    def not_met_before(self, vertices: Int64, count: int) -> npt.NDArray[np.bool_]:
        """Return a mask of vertices outside the first visited ones."""
        found = self._found(vertices)
        return (found < self.base) | (found >= self.base + count)

    def position(self, vertices: Int64) -> Int64:
        """Return the positions of vertices among all that were met, below 0 for others."""
        return (self._found(vertices) - self.base).astype(np.int64)

    def _found(self, vertices: Int64) -> npt.NDArray[np.int32]:
        """Return the mark of each vertex."""
        try:
            return self._marks.take(vertices if self._pages is None else _places(vertices, self._pages))
        except IndexError:
            self.room(int(vertices.max()))
            return self._found(vertices)

    def _opened_for(self, vertices: Int64, pages: npt.NDArray[np.int32]) -> Int64:
        """Return where each vertex is marked, on pages that have a place."""
        of = vertices >> _PAGE_BITS
        new = of[pages.take(of) == 0]
        if len(new):
            new = distinct(new)
            first = self._places
            self._places += len(new)
            pages[new] = np.arange(first, self._places)
            self._opened.append(new)
            if self._places * _PAGE > len(self._marks):
                self._marks = _longer(self._marks, max(self._places * _PAGE, 2 * len(self._marks)))
        return _places(vertices, pages)


def _places(vertices: Int64, pages: npt.NDArray[np.int32]) -> Int64:
    place = pages.take(vertices >> _PAGE_BITS).astype(np.int64)
    place <<= _PAGE_BITS
    place |= vertices & (_PAGE - 1)
    return place


def _longer(numbers: npt.NDArray[np.int32], size: int) -> npt.NDArray[np.int32]:
    longer = np.zeros(size, np.int32)
    longer[: len(numbers)] = numbers
    return longer


@contextmanager
def borrow_visited(count: int) -> Iterator[list[VisitedSet]]:
    """Borrow visited sets that no other search of this thread uses meanwhile."""
    free: list[VisitedSet] = _ROOM.__dict__.setdefault("free", [])
    marks = [free.pop() if free else VisitedSet() for _ in range(count)]
    for each in marks:
        each.begin()
    try:
        yield marks
    finally:
        for each in marks:
            most = _KEPT_IN_PAGES if each.paged else _KEPT_BYTES
            if each.bytes + sum(one.bytes for one in free if one.paged == each.paged) <= most:
                free.append(each)
