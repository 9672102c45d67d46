from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.graph.int_sets import common, contains, distinct, group_of, positions

few = st.lists(st.integers(0, 40), max_size=10)
many = st.lists(st.integers(0, 500), min_size=300, max_size=400)
far = st.lists(st.integers(0, 1 << 40), max_size=400)
any_numbers = few | many | far


@settings(max_examples=150, deadline=None)
@given(any_numbers)
def test_distinct_numbers_ascend(numbers: list[int]) -> None:
    assert distinct(np.array(numbers, np.int64)).tolist() == sorted(set(numbers))


@settings(max_examples=150, deadline=None)
@given(any_numbers, any_numbers)
def test_contains_agrees_with_sets(members: list[int], asked: list[int]) -> None:
    found = contains(np.array(sorted(set(members)), np.int64), np.array(asked, np.int64))
    assert found.tolist() == [number in set(members) for number in asked]


@settings(max_examples=150, deadline=None)
@given(any_numbers, any_numbers)
def test_what_two_sets_have_in_common_ascends(one: list[int], other: list[int]) -> None:
    found = common(np.array(sorted(set(one)), np.int64), np.array(sorted(set(other)), np.int64))
    assert found.tolist() == sorted(set(one) & set(other))


@settings(max_examples=150, deadline=None)
@given(any_numbers, any_numbers, any_numbers)
def test_each_number_is_in_one_of_several_sets_or_none(one: list[int], other: list[int], asked: list[int]) -> None:
    groups = [set(one), set(other) - set(one)]
    found = group_of([np.array(sorted(group), np.int64) for group in groups], np.array(asked, np.int64))
    assert found.tolist() == [next((at for at, group in enumerate(groups, 1) if n in group), 0) for n in asked]


@settings(max_examples=150, deadline=None)
@given(any_numbers, any_numbers)
def test_each_number_stands_somewhere_among_the_members_or_nowhere(members: list[int], asked: list[int]) -> None:
    distinct_members = list(dict.fromkeys(members))
    found = positions(np.array(distinct_members, np.int64), np.array(asked, np.int64))
    place = {number: at for at, number in enumerate(distinct_members)}
    assert found.tolist() == [place.get(number, -1) for number in asked]


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_the_integer_type_stays(kind: type[np.integer]) -> None:
    assert distinct(np.arange(1000, dtype=kind)).dtype == kind
