"""Numbers are given out once and for all."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.graph.columnar.ids import Interner, Numbering
from byokg.graph.columnar.node_ids import IdIndex
from byokg.index import vocabulary
from byokg.index.vocabulary import hash_column


def one_by_one(index: IdIndex, texts: list[str]) -> list[int]:
    return [int(index.find_all([text])[0]) for text in texts]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), unique=True, max_size=60))
def test_every_id_is_found_and_no_other(texts: list[str]) -> None:
    index = IdIndex.build(pa.array(texts, pa.large_string()))
    expected = list(range(len(texts)))
    assert one_by_one(index, texts) == expected
    assert index.find_all(texts).tolist() == expected
    assert index.ids.get(np.arange(len(texts))) == texts
    absent = [text + "!" for text in texts if text + "!" not in texts]
    assert set(index.find_all(absent).tolist()) <= {-1}


def test_ids_of_equal_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    # The remainder by 1 is always 0, so that only the length counts.
    monkeypatch.setattr(vocabulary, "_PRIMES", (1, 1))
    texts = ["abc", "cab", "bca", "xyz", "ad", "da", *(f"pad{number}" for number in range(20))]
    index = IdIndex.build(pa.array(texts, pa.large_string()))
    assert len(np.unique(index.hashes)) < len(texts)
    assert index.find_all(texts).tolist() == one_by_one(index, texts) == list(range(len(texts)))
    assert one_by_one(index, ["acb"]) == [-1]
    assert index.find_all(["acb"] * 20).tolist() == [-1] * 20


def test_long_ids_and_many_blocks_hash_alike_one_by_one_and_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_BLOCK_BYTES", 1000)
    texts = ["", "\0", "\0\0", "a" * 5000, "b" * 1024, "c" * 512, "d" * 511, *(f"é{number}" for number in range(500))]
    index = IdIndex.build(pa.array(texts, pa.large_string()))
    assert one_by_one(index, texts) == list(range(len(texts)))
    assert index.find_all(texts).tolist() == list(range(len(texts)))


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
    interner.release()
    assert numbers(interner, *strings[::-1]) == list(range(5000))[::-1]
    assert interner.strings.to_pylist() == strings


def test_a_slice_of_a_column_is_read_from_where_it_starts() -> None:
    interner = Interner()
    column = pa.array(["x", "y", "longer than a word", "z"], pa.large_string())
    assert interner.numbers(column.slice(1, 2)).tolist() == [0, 1]
    assert interner.strings.to_pylist() == ["y", "longer than a word"]
    assert interner.numbers(column.slice(2)).tolist() == [1, 2]


@pytest.mark.parametrize("primes", [vocabulary._PRIMES, (1, 1)], ids=["usual hashes", "equal hashes"])
@settings(max_examples=30, deadline=None)
@given(columns=st.lists(st.lists(texts, unique=True, max_size=12), max_size=5))
def test_it_agrees_with_a_dict_also_when_all_strings_of_one_length_have_one_hash(
    primes: tuple[int, int], columns: list[list[str]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary, "_PRIMES", primes)
        interner, expected = Interner(), dict[str, int]()
        for column in columns:
            assert numbers(interner, *column) == [expected.setdefault(text, len(expected)) for text in column]
        assert interner.strings.to_pylist() == list(expected)


def test_keys_are_numbered_in_the_order_they_come_and_only_once() -> None:
    numbering: Numbering[str] = Numbering()
    assert numbering.add(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert numbering.add(["c", "a"]).tolist() == [2, 1]
    assert (len(numbering), list(numbering.keys()), list(numbering.keys(1))) == (3, ["b", "a", "c"], ["a", "c"])
    assert "a" in numbering and "z" not in numbering
    assert numbering.add([]).tolist() == []


def test_numbers_lead_back_to_their_keys() -> None:
    numbering: Numbering[str] = Numbering()
    numbering.add(["a", "b"])
    assert numbering.key(1) == "b"
    for wrong in (2, -1):
        with pytest.raises(IndexError):
            numbering.key(wrong)


def test_threads_agree_on_numbers() -> None:
    numbering: Numbering[int] = Numbering()
    threads = [threading.Thread(target=lambda start=start: numbering.add(range(start, 2000))) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(numbering) == 2000
    assert all(numbering.add([numbering.key(number)]).tolist() == [number] for number in range(2000))
