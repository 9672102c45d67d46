"""Tests of `byokg.index.name_table`."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.index import name_table as name_words
from byokg.index.name_table import split_names
from byokg.text.names import fold_words

TEXTS = st.text(st.sampled_from("aZ9 .-_é…ß\tकि"), max_size=6) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=6
)


def words_of(names: list[str]) -> list[list[str]]:
    texts, counts = split_names(pa.array(names, pa.large_string()))
    words = iter(texts.to_pylist())
    split = [[next(words) for _ in range(count)] for count in counts.tolist()]
    assert next(words, None) is None
    return split


def test_names_are_split_at_what_is_no_letter_and_folded() -> None:
    assert words_of(["The Côte-d'Ivoire", "", "?! -", "ALIEN 3"]) == [
        ["the", "cote", "d", "ivoire"],
        [],
        ["?!", "-"],
        ["alien", "3"],
    ]


@given(st.lists(TEXTS, max_size=8))
def test_every_name_is_split_as_it_would_be_alone(names: list[str]) -> None:
    assert words_of(names) == [fold_words(name) for name in names]


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["a b", "Ö", "", "c", "...", "d e f"]
    whole = words_of(names)
    monkeypatch.setattr(name_words, "_BLOCK", 2)
    assert words_of(names) == whole
