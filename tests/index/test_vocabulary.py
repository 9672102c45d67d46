"""Tests of `byokg.index.vocabulary`."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.index import vocabulary as words_alike
from byokg.index.vocabulary import Vocabulary

WORDS = sorted("river rivers rover stone stones international internationally back bank lake 北京 大学 é".split())
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def vocabulary(words: list[str]) -> Vocabulary:
    return Vocabulary.build(pa.array(sorted(words, key=str.encode), pa.large_string()))


@pytest.fixture
def english() -> Vocabulary:
    return vocabulary(WORDS)


def alike(words: Vocabulary, word: str) -> list[tuple[str, int, float]]:
    found = words.alike(word)
    texts = words.words.take(pa.array(found.words)).to_pylist()
    return list(zip(texts, found.common.tolist(), found.likeness.round(3).tolist(), strict=True))


class TestFind:
    @given(st.sets(TEXTS | st.sampled_from(["abcdefgh", "abcdefghi", "abcdefg"]), max_size=12), TEXTS)
    def test_every_word_is_found_and_no_other(self, words: set[str], other: str) -> None:
        index = vocabulary(list(words))
        ordered = index.words.to_pylist()
        assert index.find(ordered).tolist() == list(range(len(words)))
        assert index.find([other, ""]).tolist() == [ordered.index(other) if other in words else -1, -1]

    def test_words_that_share_eight_bytes_are_told_apart(self, english: Vocabulary) -> None:
        first = WORDS.index("international")
        asked = ["international", "internationally", "internat", "internationals"]
        assert english.find(asked).tolist() == [first, first + 1, -1, -1]

    def test_short_words_that_end_in_a_zero_byte_are_told_apart(self) -> None:
        assert vocabulary(["-", "-\0"]).find(["-\0", "-"]).tolist() == [1, 0]
        assert vocabulary(["-\0\0"]).find(["-", "-\0", "-\0\0"]).tolist() == [-1, -1, 0]


class TestParts:
    def test_words_that_start_alike_are_a_range(self, english: Vocabulary) -> None:
        ordered = english.words.to_pylist()
        ranges = english.starting(["riv", "x", "b", "北"])
        assert [ordered[start:stop] for start, stop in ranges] == [["river", "rivers"], [], ["back", "bank"], ["北京"]]

    def test_words_with_a_letter_are_found(self, english: Vocabulary) -> None:
        ordered = english.words.to_pylist()
        assert {ordered[number] for number in english.containing("k").tolist()} == {"back", "bank", "lake"}
        assert english.containing("q").tolist() == vocabulary([]).containing("a").tolist() == []


class TestAlike:
    def test_words_come_by_the_letters_they_share(self, english: Vocabulary) -> None:
        # "rivr": 4 of 4 + 5 letters with "river", 4 of 4 + 6 with "rivers", 3 of 4 + 5 with "rover".
        assert alike(english, "rivr") == [("river", 4, 0.889), ("rivers", 4, 0.8), ("rover", 3, 0.667)]

    def test_a_known_word_is_most_like_itself(self, english: Vocabulary) -> None:
        assert alike(english, "stone")[0] == ("stone", 5, 1.0)

    def test_nothing_is_like_what_shares_no_letters_or_is_too_long(self, english: Vocabulary) -> None:
        assert alike(english, "zzz") == alike(english, "") == alike(english, "r" * 65) == []
        assert alike(vocabulary([]), "river") == []

    @given(st.sets(TEXTS, min_size=1, max_size=12), TEXTS)
    def test_likeness_is_what_letters_in_common_make_it(self, words: set[str], word: str) -> None:
        scores = [score for *_, score in alike(vocabulary(list(words)), word)]
        assert scores == sorted(scores, reverse=True)
        assert all(0.5 <= score <= 1 for score in scores)
        for text, common, score in alike(vocabulary(list(words)), word):
            assert score == pytest.approx(2 * common / (len(text) + len(word)), abs=0.001)

    def test_of_very_many_words_as_many_are_kept_and_the_same_ones_each_time(self) -> None:
        letters = "abcdefghijklmnopqrs"
        many = vocabulary([f"stone{one}{two}" for one in letters for two in letters])
        found = many.alike("stonebb").words.tolist()
        assert len(found) == 64 and found[0] == many.find(["stonebb"])[0]
        assert vocabulary(many.words.to_pylist()).alike("stonebb").words.tolist() == found

    def test_words_of_very_many_letters_are_words_like_none(self) -> None:
        long = vocabulary(["stone", "s" * 193, "stone" * 100_000])
        assert long.number("stone" * 100_000) >= 0
        assert [text for text, _, _ in alike(long, "stome")] == ["stone"]
        assert alike(vocabulary(["s" * 192]), "s" * 64) == [("s" * 192, 64, 0.5)]

    @settings(max_examples=30)
    @given(st.sampled_from(["bodega", "bodegabi", "dobega", "gabo", "badogebibo"]))
    def test_words_that_share_few_pairs_of_letters_are_left_out_without_changing_what_is_found(self, word: str) -> None:
        parts = ["bo", "de", "ga", "bi", "do", "be", "gi"]
        texts = sorted({"".join(some) for count in (2, 3, 4) for some in product(parts, repeat=count)})
        many = vocabulary(texts)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(words_alike, "_MANY", len(texts))
            expected = vocabulary(texts).alike(word)
            patch.setattr(words_alike, "_MANY", 0)
            found = many.alike(word)
        assert found.words.tolist() == expected.words.tolist()
        assert found.likeness.tolist() == expected.likeness.tolist()
