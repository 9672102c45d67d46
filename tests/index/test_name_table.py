"""Tests of `byokg.index.name_table`."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.index import name_table
from byokg.index.name_table import NameTable, members, set_hash, word_hashes
from byokg.index.vocabulary import _PRIMES
from byokg.text.names import fold_words, leads_with_article


@pytest.fixture
def table() -> NameTable:
    names = ["River Stone", "Stone", "Stone River Stone", "stone", "River Stone", "The Bank"]
    return NameTable.build(pa.array(names, pa.large_string()), np.array([4, 1, 2, 3, 0, 5]))


class TestRows:
    def test_distinct_spellings_are_ordered_by_length_and_then_as_they_came(self, table: NameTable) -> None:
        assert table.spellings().to_pylist() == ["Stone", "stone", "The Bank", "River Stone", "Stone River Stone"]
        assert table.arrays.letters.tolist() == [5, 5, 8, 11, 17]

    def test_rows_hold_words_and_words_their_rows(self, table: NameTable) -> None:
        # The vocabulary: bank 0, river 1, stone 2, the 3.
        assert [table.words_of(row) for row in range(5)] == [[2], [2], [3, 0], [1, 2], [2, 1, 2]]
        assert [table.holders(word).tolist() for word in range(4)] == [[2], [3, 4], [0, 1, 3, 4], [2]]
        assert table.frequency(np.array([2, 0])).tolist() == [4, 1]

    def test_owners_of_a_row_are_ascending(self, table: NameTable) -> None:
        assert table.arrays.owners.tolist() == [1, 3, 5, 0, 2]
        assert (table.arrays.further_rows.tolist(), table.arrays.further_owners.tolist()) == ([3], [4])
        assert [found.tolist() for found in table.bearers(np.array([3, 0]))] == [[0, 1, 4], [0, 1, 0]]

    def test_a_leading_article_does_not_make_a_name_longer(self, table: NameTable) -> None:
        assert table.arrays.longest.tolist() == [1, 2, 3, 0]

    def test_rows_are_found_by_the_set_of_their_words(self, table: NameTable) -> None:
        hashes = np.array([set_hash([1, 2]), set_hash([2]), set_hash([0])], np.uint64)
        assert sorted(table.rows_of(hashes).tolist()) == [0, 1, 3, 4]

    @pytest.mark.parametrize("names", [[], [None], [""], [None, "", " "]])
    def test_nothing_makes_an_empty_table(self, names: list[str | None]) -> None:
        empty = NameTable.build(pa.array(names, pa.large_string()), np.arange(len(names)))
        assert len(empty) == 0 and empty.rows_of(np.array([1], np.uint64)).tolist() == []


NAMES = st.lists(
    st.text("ab é-.", max_size=6) | st.sampled_from(["The A", "the a", "A the", "an", None, "", " ", "a" * 70000]),
    max_size=30,
)


@settings(max_examples=40, deadline=None)
@given(NAMES, st.randoms())
def test_a_table_made_in_small_parts_is_that_of_plain_python(names: list[str | None], rng: random.Random) -> None:
    numbered = rng.random() < 0.5
    owners = list(range(len(names))) if numbered else [rng.randrange(9) for _ in names]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(name_table, "_BLOCK", 3)
        patch.setattr(name_table, "_GROUPED", 4)
        patch.setattr("byokg.index.vocabulary._PRIMES", rng.choice([(1, 1), _PRIMES]))
        column = pa.array(names, pa.large_string())
        table = NameTable.build(column, None if numbered else np.array(owners, np.int64))
    spelt = [name for name in dict.fromkeys(names) if name and fold_words(name)]
    spelt.sort(key=lambda name: len(" ".join(fold_words(name))))
    assert table.spellings().to_pylist() == spelt
    vocabulary = sorted({word for name in spelt for word in fold_words(name)}, key=str.encode)
    assert table.vocabulary.words.to_pylist() == vocabulary
    split = [[vocabulary.index(word) for word in fold_words(name)] for name in spelt]
    assert [table.words_of(row) for row in range(len(spelt))] == split
    for number in range(len(vocabulary)):
        assert table.holders(number).tolist() == [row for row, words in enumerate(split) if number in words]
        plain = [len(words) - at for words in split if words[at := leads(words, vocabulary)] == number]
        assert int(table.arrays.longest[number]) == max(plain, default=0)
    for row, name in enumerate(spelt):
        borne = {owner for owner, given in zip(owners, names, strict=True) if given == name}
        assert table.bearers(np.array([row]))[0].tolist() == sorted(borne)
        assert row in table.rows_of(np.array([set_hash(set(split[row]))], np.uint64))


def leads(words: list[int], vocabulary: list[str]) -> int:
    return leads_with_article([vocabulary[word] for word in words])


@given(st.sets(st.integers(0, 1 << 31), max_size=6))
def test_one_hash_of_a_set_is_that_of_many(words: set[int]) -> None:
    assert int(word_hashes(np.array(sorted(words), np.int64)).sum()) == set_hash(words)


def test_members_of_ranges_follow_each_other() -> None:
    assert members(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]
