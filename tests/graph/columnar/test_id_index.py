from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.graph.columnar import ids as id_index
from byokg.graph.columnar.ids import IdIndex


def one_by_one(index: IdIndex, texts: list[str]) -> list[int]:
    return [int(index.find_all([text])[0]) for text in texts]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), unique=True, max_size=60))
def test_every_id_is_found_and_no_other(texts: list[str]) -> None:
    index = IdIndex.build(pa.array(texts, pa.large_string()))
    expected = list(range(len(texts)))
    assert one_by_one(index, texts) == expected
    assert index.find_all(texts).tolist() == expected
    assert index.get(np.arange(len(texts))) == texts
    absent = [text + "!" for text in texts if text + "!" not in texts]
    assert set(index.find_all(absent).tolist()) <= {-1}


def test_ids_of_equal_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    # The remainder by 1 is always 0, so that only the length counts.
    monkeypatch.setattr(id_index, "_PRIMES", (1, 1))
    texts = ["abc", "cab", "bca", "xyz", "ad", "da", *(f"pad{number}" for number in range(20))]
    index = IdIndex.build(pa.array(texts, pa.large_string()))
    assert len(np.unique(index.hashes)) < len(texts)
    assert index.find_all(texts).tolist() == one_by_one(index, texts) == list(range(len(texts)))
    assert one_by_one(index, ["acb"]) == [-1]
    assert index.find_all(["acb"] * 20).tolist() == [-1] * 20


def test_long_ids_and_many_blocks_hash_alike_one_by_one_and_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_index, "_BLOCK_BYTES", 1000)
    texts = ["", "\0", "\0\0", "a" * 5000, "b" * 1024, "c" * 512, "d" * 511, *(f"é{number}" for number in range(500))]
    index = IdIndex.build(pa.array(texts, pa.large_string()))
    assert one_by_one(index, texts) == list(range(len(texts)))
    assert index.find_all(texts).tolist() == list(range(len(texts)))
