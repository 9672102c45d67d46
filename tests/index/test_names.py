"""Tests of `byokg.index.names`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.index.names import NameIndex
from byokg.index.normalize import normalize_name

NAMES = st.lists(st.text(st.sampled_from("aAbé. -the"), max_size=8) | st.text(max_size=8), max_size=12)

FILMS = ["The Godfather", "Alien", "Aliens", "Ridley Scott", "ALIEN", "Barack Obama", "U", "House"]


@pytest.fixture
def films() -> NameIndex:
    return NameIndex(FILMS)


class TestExact:
    def test_all_names_equal_after_folding_are_found_in_list_order(self, films: NameIndex) -> None:
        assert films.exact("álien!").tolist() == [1, 4]
        assert films.exact("godfather").tolist() == films.exact("the  GODFATHER").tolist() == [0]

    def test_nothing_is_found_for_unknown_or_empty_text(self, films: NameIndex) -> None:
        assert [films.exact(text).tolist() for text in ("Blade", "", "  ")] == [[], [], []]
        assert NameIndex(["", " "]).exact("").tolist() == []

    @given(NAMES)
    def test_every_name_that_is_not_blank_is_found_and_nothing_else(self, names: list[str]) -> None:
        index = NameIndex(names)
        folded = [normalize_name(name) for name in names]
        for name, key in zip(names, folded, strict=True):
            assert index.exact(name).tolist() == [at for at, other in enumerate(folded) if key and other == key]

    def test_a_name_is_given_back_as_it_was_written(self, films: NameIndex) -> None:
        assert films.name(0) == "The Godfather"
        assert films.spells("ALIEN") and not films.spells("alien")


class TestWords:
    def test_words_and_lengths_are_those_of_folded_names(self, films: NameIndex) -> None:
        assert films.has_word("godfather") and films.has_word("obama")
        assert not films.has_word("the") and not films.has_word("Alien")
        assert [films.longest_from(word) for word in ("ridley", "alien", "scott", "")] == [2, 1, 0, 0]

    def test_of_several_names_with_one_first_word_the_longest_counts(self) -> None:
        assert NameIndex(["new", "New York City", "New York"]).longest_from("new") == 3

    @given(NAMES)
    def test_no_name_is_longer_than_the_longest_from_its_first_word(self, names: list[str]) -> None:
        index = NameIndex(names)
        for name in names:
            words = normalize_name(name).split(" ")
            assert len(words) <= index.longest_from(words[0])
            assert all(map(index.has_word, words))


class TestClosest:
    def test_letters_may_be_wrong_missing_or_swapped(self, films: NameIndex) -> None:
        for misspelt in ("ridlay scott", "ridly scott", "rildey scott"):
            found = films.closest(misspelt)
            assert found is not None and found.name == "Ridley Scott"

    def test_the_score_is_the_share_of_common_letters(self, films: NameIndex) -> None:
        # "huse" and "house": 4 letters in common of 9.
        found = films.closest("huse")
        assert found is not None and found.owner == 7
        assert found.score == pytest.approx(8 / 9)

    def test_of_equal_names_the_first_is_given(self, films: NameIndex) -> None:
        found = films.closest("alien")
        assert found is not None and (found.owner, found.name, found.score) == (1, "Alien", 1.0)

    def test_nothing_below_the_cutoff_is_given(self, films: NameIndex) -> None:
        assert films.closest("huse", cutoff=0.9) is None
        assert films.closest("") is None
        assert NameIndex([]).closest("alien") is None


class TestFuzzy:
    def test_a_whole_name_comes_before_parts(self, films: NameIndex) -> None:
        # "U" is a part of "huse", and would score 0.9 against 0.89 of "House".
        assert [match.name for match in films.fuzzy("huse")] == ["House"]

    def test_words_may_come_in_another_order(self, films: NameIndex) -> None:
        assert [(match.name, match.score) for match in films.fuzzy("Scott, Ridley")] == [("Ridley Scott", 1.0)]

    def test_a_part_of_a_name_finds_it_when_nothing_whole_is_alike(self, films: NameIndex) -> None:
        (match,) = films.fuzzy("Obama")
        assert match.name == "Barack Obama"
        assert match.score == pytest.approx(0.9)

    def test_a_name_much_shorter_or_longer_than_the_text_is_no_part(self, films: NameIndex) -> None:
        assert films.fuzzy("ubuntu") == []
        assert NameIndex(["a lazy brown dog"]).fuzzy("lazy") == []

    def test_equal_scores_come_in_list_order_and_namesakes_count(self, films: NameIndex) -> None:
        # "alienz" is as near to "aliens" (10/12 letters) as to nothing else; "alien" has 10 of 11.
        assert [match.owner for match in films.fuzzy("alienz", k=3, cutoff=0.8)] == [1, 4, 2]
        assert [match.owner for match in films.fuzzy("alienz", k=1, cutoff=0.8)] == [1]
        same = NameIndex(["abcdx", "abcdy", "abcdz"])
        assert [match.owner for match in same.fuzzy("abcd", k=2)] == [0, 1]

    def test_empty_text_finds_nothing(self, films: NameIndex) -> None:
        assert films.fuzzy("") == films.fuzzy("   ") == NameIndex([]).fuzzy("alien") == []

    @given(NAMES, st.text(max_size=8), st.integers(1, 4))
    def test_matches_are_few_scored_and_best_first(self, names: list[str], text: str, k: int) -> None:
        matches = NameIndex(names).fuzzy(text, k)
        assert len(matches) <= k
        scores = [match.score for match in matches]
        assert scores == sorted(scores, reverse=True)
        assert all(0.86 <= score <= 1 for score in scores)
        assert all(names[match.owner] == match.name for match in matches)
        if normalize_name(text) in map(normalize_name, names) and normalize_name(text):
            assert scores[0] == 1.0 and normalize_name(matches[0].name) == normalize_name(text)
