"""Tests of `byokg.index.name_candidates`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from byokg.index import name_candidates
from byokg.index.name_candidates import USUAL, NameCandidates
from byokg.index.name_table import NameTable
from byokg.text.names import fold_words

NAMES = ["Silver River Bank", "River Bank", "Bank", "Gold Mine", "Thomas Edison", "Silver Bank of the River Thames"]


def candidates(names: list[str]) -> tuple[NameCandidates, NameTable]:
    table = NameTable.build(pa.array(names, pa.large_string()), np.arange(len(names)))
    return NameCandidates(table), table


def like(names: list[str], text: str) -> list[str]:
    search, table = candidates(names)
    rows, bounds = search.like(fold_words(text))
    assert bounds.tolist() == sorted(bounds.tolist(), reverse=True)
    return table.spelled(rows)


class TestLike:
    def test_the_most_promising_name_comes_first(self) -> None:
        assert like(NAMES, "silver rivr bank")[0] == "Silver River Bank"

    def test_names_of_some_of_the_words_are_there_whatever_their_order(self) -> None:
        assert {"River Bank", "Bank"} <= set(like(NAMES, "bank of silver river"))

    @pytest.mark.parametrize("text", ["thomasedison", "thomasxedison", "tho mas edison", "htomas edison"])
    def test_spaces_may_be_wrong(self, text: str) -> None:
        assert like(NAMES, text)[0] == "Thomas Edison"

    def test_a_part_may_end_inside_a_word(self) -> None:
        assert "River Bank" in like(NAMES, "driver banking")

    def test_an_initial_stands_for_words_with_its_letter(self) -> None:
        assert like(NAMES, "t edison")[0] == "Thomas Edison"

    def test_nothing_is_like_words_of_no_name(self) -> None:
        assert like(NAMES, "zzz qqq") == []
        assert like([], "silver") == []

    def test_a_text_of_many_words_is_looked_for_by_some(self) -> None:
        long = " ".join(f"w{number}" for number in range(40))
        assert like([*NAMES, long], long.replace("w30", "w3x"))[0] == long

    def test_of_long_lists_names_of_like_length_are_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        names = [f"stone {'x' * number}" for number in range(1, 60)]
        monkeypatch.setattr(name_candidates, "_READ", 8)
        monkeypatch.setattr(name_candidates, "USUAL", replace(USUAL, weighed=4))
        found = like(names, f"stone {'x' * 30}y")
        assert f"stone {'x' * 30}" in found

    @pytest.mark.parametrize("setting", [("_ADDED_UP", 0), ("_LOOK_UP", 0)])
    @pytest.mark.parametrize("text", ["silver rivr bank", "tomas edison", "stone riveer gold", "bank", "silverbank"])
    def test_many_names_are_searched_as_few_are(
        self, monkeypatch: pytest.MonkeyPatch, setting: tuple[str, int], text: str
    ) -> None:
        words = ["silver", "river", "rivers", "bank", "stone", "golden", "thomas", "edison"]
        names = [*NAMES, *(f"{one} {other} {last}" for one in words for other in words for last in words)]
        expected = sorted(like(names, text))
        monkeypatch.setattr(name_candidates, *setting)
        assert sorted(like(names, text)) == expected

    def test_a_search_leaves_nothing_behind_for_the_next(self) -> None:
        search, _ = candidates(NAMES)
        first = search.like(["silver", "rivr"])
        search.like(["gold", "mine"])
        again = search.like(["silver", "rivr"])
        assert [part.tolist() for part in first] == [part.tolist() for part in again]


class TestAround:
    def test_a_name_needs_the_word_and_most_letters_from_the_others(self) -> None:
        search, table = candidates(NAMES)
        rows = search.around("rivr", ["the", "silver", "bank"], 0.8)
        assert table.spelled(rows) == ["River Bank", "Silver River Bank"]
