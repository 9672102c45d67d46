from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.graph.columnar import ids as id_index
from byokg.graph.columnar.ids import Interner, hash_column

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def numbers(interner: Interner, *strings: str) -> list[int]:
    found: list[int] = interner.numbers(pa.array(strings, pa.large_string())).tolist()
    return found


def test_numbers_are_given_in_order_of_first_appearance_and_kept() -> None:
    interner = Interner()
    assert numbers(interner, "b", "a", "") == [0, 1, 2]
    assert numbers(interner, "c", "a", "d", "b") == [3, 1, 4, 0]
    assert interner.strings.to_pylist() == ["b", "a", "", "c", "d"]
    assert len(interner) == 5
    assert numbers(interner) == []


def test_hashes_are_those_of_the_strings() -> None:
    interner = Interner()
    numbers(interner, "eins", "zwei")
    numbers(interner, "drei")
    assert interner.hashes.tolist() == hash_column(interner.strings).tolist()


def test_many_strings_outgrow_the_first_table() -> None:
    interner = Interner()
    strings = [f"entity number {number}" for number in range(5000)]
    for start in range(0, 5000, 700):
        numbers(interner, *strings[start : start + 700])
    assert numbers(interner, *strings[::-1]) == list(range(5000))[::-1]
    assert interner.strings.to_pylist() == strings


def test_a_slice_of_a_column_is_read_from_where_it_starts() -> None:
    interner = Interner()
    column = pa.array(["x", "y", "longer than a word", "z"], pa.large_string())
    assert interner.numbers(column.slice(1, 2)).tolist() == [0, 1]
    assert interner.strings.to_pylist() == ["y", "longer than a word"]
    assert interner.numbers(column.slice(2)).tolist() == [1, 2]


@pytest.mark.parametrize("primes", [id_index._PRIMES, (1, 1)], ids=["usual hashes", "equal hashes"])
@settings(max_examples=60, deadline=None)
@given(columns=st.lists(st.lists(texts, unique=True, max_size=12), max_size=5))
def test_it_agrees_with_a_dict_also_when_all_strings_of_one_length_have_one_hash(
    primes: tuple[int, int], columns: list[list[str]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(id_index, "_PRIMES", primes)
        interner, expected = Interner(), dict[str, int]()
        for column in columns:
            assert numbers(interner, *column) == [expected.setdefault(text, len(expected)) for text in column]
        assert interner.strings.to_pylist() == list(expected)
