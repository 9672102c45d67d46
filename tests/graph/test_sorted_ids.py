from __future__ import annotations

from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.graph import sorted_ids as edge_order
from byokg.graph.sorted_ids import (
    VisitedSet,
    borrow_visited,
    common,
    contains,
    distinct,
    distinct_rows,
    first_of_each,
    group_of,
    incoming_order,
    match_rows,
    portions,
    positions,
    ranges,
    rank_of,
    rows_at,
    sample_positions,
    sort_distinct,
    sort_order,
)


def drawn(size: int, highest: int) -> st.SearchStrategy[list[int]]:
    """Return lists of up to `size` numbers, drawn from a seed, since drawing them one by one takes long."""
    chance = st.builds(np.random.default_rng, st.integers(0, 1 << 32))
    return st.builds(lambda draw, size: draw.integers(0, highest, size).tolist(), chance, st.integers(0, size))


few = st.lists(st.integers(0, 40), max_size=10)
any_numbers = few | drawn(400, 500) | drawn(400, 1 << 40)


@settings(max_examples=50, deadline=None)
@given(any_numbers)
def test_distinct_numbers_ascend(numbers: list[int]) -> None:
    assert distinct(np.array(numbers, np.int64)).tolist() == sorted(set(numbers))


@settings(max_examples=50, deadline=None)
@given(any_numbers, any_numbers)
def test_contains_agrees_with_sets(members: list[int], asked: list[int]) -> None:
    found = contains(np.array(sorted(set(members)), np.int64), np.array(asked, np.int64))
    assert found.tolist() == [number in set(members) for number in asked]


@settings(max_examples=50, deadline=None)
@given(any_numbers, any_numbers)
def test_what_two_sets_have_in_common_ascends(one: list[int], other: list[int]) -> None:
    found = common(np.array(sorted(set(one)), np.int64), np.array(sorted(set(other)), np.int64))
    assert found.tolist() == sorted(set(one) & set(other))


@settings(max_examples=50, deadline=None)
@given(any_numbers, any_numbers, any_numbers)
def test_each_number_is_in_one_of_several_sets_or_none(one: list[int], other: list[int], asked: list[int]) -> None:
    groups = [set(one), set(other) - set(one)]
    found = group_of([np.array(sorted(group), np.int64) for group in groups], np.array(asked, np.int64))
    assert found.tolist() == [next((at for at, group in enumerate(groups, 1) if n in group), 0) for n in asked]


@settings(max_examples=50, deadline=None)
@given(any_numbers, any_numbers)
def test_each_number_stands_somewhere_among_the_members_or_nowhere(members: list[int], asked: list[int]) -> None:
    distinct_members = list(dict.fromkeys(members))
    found = positions(np.array(distinct_members, np.int64), np.array(asked, np.int64))
    place = {number: at for at, number in enumerate(distinct_members)}
    assert found.tolist() == [place.get(number, -1) for number in asked]


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_the_integer_type_stays(kind: type[np.integer]) -> None:
    assert distinct(np.arange(1000, dtype=kind)).dtype == kind


@pytest.mark.parametrize("key_bits", [63, 0], ids=["one key", "several columns"])
def test_both_ways_of_sorting_give_the_order_that_is_promised(key_bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_order, "_KEY_BITS", key_bits)
    rng = np.random.default_rng(5)
    head, relation, tail = rng.integers(0, 9, 500), rng.integers(0, 3, 500), rng.integers(0, 9, 500)
    edges = list(zip(head.tolist(), relation.tolist(), tail.tolist(), strict=True))
    order = sort_order(head, relation, tail).tolist()
    assert order == sorted(range(500), key=lambda row: (edges[row], row))
    distinct = zip(*(column.tolist() for column in sort_distinct(head, relation, tail)), strict=True)
    assert list(distinct) == sorted(set(edges))
    back = incoming_order(relation, tail).tolist()
    assert back == sorted(range(500), key=lambda row: (edges[row][2], edges[row][1], row))


@pytest.mark.parametrize("marks", [1, 3, 500])
def test_of_edges_that_are_equal_in_their_mark_too_the_first_one_stays(marks: int) -> None:
    rng = np.random.default_rng(6)
    head, relation, tail, mark = (rng.integers(0, bound, 500) for bound in (5, 2, 5, marks))
    order = sort_order(head, relation, tail)
    edges = list(zip(head.tolist(), relation.tolist(), tail.tolist(), mark.tolist(), strict=True))
    seen: dict[tuple[int, ...], int] = {}
    for row in range(500):
        seen.setdefault(edges[row], row)
    kept = first_of_each(order, head, relation, tail, mark).tolist()
    assert kept == sorted(seen.values(), key=lambda row: (edges[row][:3], row))
    assert distinct_rows(head, relation, tail, mark).tolist() == sorted(seen.values())


@pytest.mark.parametrize("key_bits", [63, 0])
def test_no_edges_can_be_sorted(key_bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_order, "_KEY_BITS", key_bits)
    none = np.empty(0, np.int64)
    assert [len(column) for column in sort_distinct(none, none, none)] == [0, 0, 0]
    assert len(sort_order(none, none, none)) == len(incoming_order(none, none)) == 0
    assert len(distinct_rows(none, none, none, none)) == 0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 4)), st.integers(0, 6), st.sampled_from((1, 3, 1 << 22)))
def test_a_sample_is_spread_evenly_over_the_members_of_each_group(group: list[int], most: int, block: int) -> None:
    with patch.object(edge_order, "_BLOCK", block):
        places = sample_positions(np.array(group, np.int16), 5, most)
    expected = []
    for one in range(5):
        members = [place for place, each in enumerate(group) if each == one]
        taken = min(most, len(members))
        expected += [members[rank * len(members) // taken] for rank in range(taken)]
    assert places.tolist() == expected


def test_ranges_lie_one_behind_the_other() -> None:
    # nodes with 2, 0 and 3 edges
    index = ranges(np.array([2, 0, 3]))
    assert list(pairwise(index.tolist())) == [(0, 2), (2, 2), (2, 5)]
    assert ranges(np.empty(0, np.int64)).tolist() == [0]


_VERTICES = st.lists(
    st.lists(st.one_of(st.integers(0, 300), st.integers(0, 1 << 23), st.integers((1 << 26) - 5, 1 << 26)), max_size=8),
    max_size=6,
)


@settings(deadline=None)
@given(st.lists(_VERTICES, min_size=1, max_size=4))
def test_marks_tell_what_a_search_has_met_and_in_which_order_in_small_and_large_graphs(
    searches: list[list[list[int]]],
) -> None:
    marks = VisitedSet()
    for levels in searches:
        marks.begin()
        met: dict[int, int] = {}
        for level in levels:
            before = len(met)
            fresh = []
            for at, vertex in enumerate(level):
                if vertex not in met:
                    met[vertex] = len(met)
                    fresh.append(at)
            vertices = np.array(level, np.int64)
            assert marks.add(vertices).tolist() == fresh
            assert marks.count == len(met)
            asked = np.array([0, 1 << 27, *level, *met], np.int64)
            places = [met.get(vertex, -1) for vertex in asked.tolist()]
            assert marks.met(asked).tolist() == [place >= 0 for place in places]
            assert np.maximum(marks.position(asked), -1).tolist() == places
            assert marks.not_met_before(asked, before).tolist() == [not 0 <= place < before for place in places]


def test_marks_of_a_large_graph_take_memory_for_what_was_met() -> None:
    marks = VisitedSet()
    marks.add(np.arange(0, 40_000_000, 40_000))
    assert marks.count == 1000
    assert marks.bytes < 4_000_000


def test_marks_lent_within_one_search_are_not_lent_twice() -> None:
    with borrow_visited(1) as (one,), borrow_visited(1) as (other,):
        one.add(np.array([3]))
        assert not other.met(np.array([3]))[0]


@given(st.lists(st.integers(0, 6), max_size=12), st.lists(st.integers(0, 8), max_size=12))
def test_numbers_are_joined_with_all_equal_rows(column: list[int], numbers: list[int]) -> None:
    ascending = sorted(column)
    pairs = [(place, row) for place, one in enumerate(numbers) for row, other in enumerate(ascending) if one == other]
    for join in (match_rows, rows_at):
        place, row = join(np.array(ascending, np.int64), np.array(numbers, np.int64))
        assert list(zip(place.tolist(), row.tolist(), strict=True)) == pairs
    assert rank_of(np.array(ascending, np.int64)).tolist() == [
        row - ascending.index(one) for row, one in enumerate(ascending)
    ]


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 12))
def test_portions_follow_each_other_and_hold_so_much_or_one_place(counts: list[int], most: int) -> None:
    found = list(portions(np.array(counts, np.int64), most))
    assert [place for first, last in found for place in range(first, last)] == list(range(len(counts)))
    for first, last in found:
        assert last == first + 1 or sum(counts[first:last]) <= most
