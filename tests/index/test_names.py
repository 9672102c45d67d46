"""Tests of `byokg.index.names`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.errors import ConfigError
from byokg.index.names import LONGEST, NameIndex, compared, scores
from byokg.text.names import fold_words, normalize_name

NAMES = st.lists(st.text(st.sampled_from("aAbé. -the"), max_size=8) | st.text(max_size=8), max_size=12)
WORDS = st.lists(st.sampled_from("silver river stone bank lake red new york house".split()), min_size=2, max_size=4)
PHRASES = st.lists(WORDS.map(" ".join), min_size=1, max_size=20)

FILMS = ["The Godfather", "Alien", "Aliens", "Ridley Scott", "ALIEN", "Barack Obama", "U", "House"]


@pytest.fixture
def films() -> NameIndex:
    return NameIndex.build(FILMS)


def found(index: NameIndex, text: str, k: int = 3, cutoff: float = 0.6) -> list[tuple[int, float]]:
    (matches,) = index.search([text], k, cutoff)
    return [(match.owner, round(match.score, 3)) for match in matches]


class TestBuild:
    def test_names_may_come_with_owners_who_have_several(self) -> None:
        index = NameIndex.of([(7, "New York"), (7, "Big Apple"), (3, "new york"), (7, "New York")])
        assert len(index) == 3
        assert index.exact("new york").tolist() == [3, 7]
        assert index.exact("the big apple").tolist() == [7]

    def test_a_column_may_hold_nulls_and_blanks(self) -> None:
        index = NameIndex.build(pa.array(["Alien", None, " ", "Alien"]))
        assert index.exact("alien").tolist() == [0, 3] and len(index) == 1

    def test_owners_and_names_go_together(self) -> None:
        with pytest.raises(ConfigError, match="1 owners for 2 names"):
            NameIndex.build(["a", "b"], [0])

    def test_half_a_surrogate_pair_does_no_harm(self) -> None:
        assert NameIndex.build(["a\ud800b"]).search(["a\ud800b"]) != []


class TestExact:
    def test_all_owners_of_names_equal_after_folding_are_found_in_order(self, films: NameIndex) -> None:
        assert films.exact("álien!").tolist() == [1, 4]
        assert films.exact("godfather").tolist() == films.exact("the  GODFATHER").tolist() == [0]

    def test_nothing_is_found_for_unknown_or_empty_text(self, films: NameIndex) -> None:
        assert [films.exact(text).tolist() for text in ("Blade", "", "  ")] == [[], [], []]
        assert NameIndex.build(["", " "]).exact("").tolist() == []

    def test_the_order_of_words_and_how_often_they_come_matter(self) -> None:
        index = NameIndex.build(["New York New York", "York New", "New York"])
        assert index.exact("new york").tolist() == [2]
        assert index.exact("new york new york").tolist() == [0]

    @given(NAMES)
    def test_every_name_that_is_not_blank_is_found_and_nothing_else(self, names: list[str]) -> None:
        index = NameIndex.build(names)
        folded = [normalize_name(name) for name in names]
        for name, key in zip(names, folded, strict=True):
            assert index.exact(name).tolist() == [at for at, other in enumerate(folded) if key and other == key]

    def test_names_written_just_so_can_be_told_from_others(self, films: NameIndex) -> None:
        assert films.spelled("ALIEN").tolist() == [4]
        assert films.spelled("alien").tolist() == films.spelled("Blade").tolist() == []


class TestWords:
    def test_words_and_lengths_are_those_of_folded_names(self, films: NameIndex) -> None:
        assert films.has_word("godfather") and films.has_word("obama") and films.has_word("the")
        assert not films.has_word("Alien") and not films.has_word("")
        assert [films.longest_from(word) for word in ("ridley", "alien", "scott", "the", "")] == [2, 1, 0, 0, 0]

    def test_of_several_names_with_one_first_word_the_longest_counts(self) -> None:
        assert NameIndex.build(["new", "New York City", "New York"]).longest_from("new") == 3

    @given(NAMES)
    def test_no_name_is_longer_than_the_longest_from_its_first_word(self, names: list[str]) -> None:
        index = NameIndex.build(names)
        for name in names:
            words = normalize_name(name).split()
            assert not words or len(words) <= index.longest_from(words[0])
            assert all(map(index.has_word, fold_words(name)))


class TestLoosely:
    def test_runs_in_other_forms_are_found_by_their_places(self) -> None:
        index = NameIndex.build(["Battle of the Alamo", "James A. Garfield", "The Alamo", "World War I"])
        assert index.loosely("the battle of alamo".split()) == [(1, 3, "Battle of the Alamo")]
        assert index.loosely("james garfield".split()) == [(0, 1, "James A. Garfield")]

    def test_a_last_word_that_is_missing_makes_another_name(self) -> None:
        assert NameIndex.build(["World War I", "Government of Ohio"]).loosely("world war government ohio".split()) == []

    def test_nothing_is_found_in_a_text_without_words_of_names(self, films: NameIndex) -> None:
        assert films.loosely(["who", "is", "nobody"]) == films.loosely([]) == []


class TestSearch:
    @pytest.mark.parametrize("text", ["ridlay scott", "ridly scott", "rildey scott", "ridleyscott", "ri dley scott"])
    def test_letters_and_spaces_may_be_wrong_missing_or_swapped(self, films: NameIndex, text: str) -> None:
        assert found(films, text)[0][0] == 3

    def test_a_score_is_that_of_thefuzz(self, films: NameIndex) -> None:
        # "huse" and "house": 4 letters in common of 9.
        assert found(films, "huse") == [(7, 0.889)]
        # The same words in another order, and a part.
        assert found(films, "Scott, Ridley") == [(3, 0.95)]
        assert found(films, "Obama") == [(5, 0.9)]

    def test_accents_do_not_matter(self) -> None:
        index = NameIndex.build(["Côte d'Ivoire", "Łódź"])
        assert found(index, "cote d'ivoire") == [(0, 1.0)]
        assert found(index, "Côte d'Ivoire") == [(0, 1.0)]

    def test_a_short_name_is_not_found_in_a_long_text(self) -> None:
        index = NameIndex.build(["US", "u", "Jo", "Business School"])
        assert found(index, "Jo's business plan of the US") == [(3, 0.855)]
        assert found(index, "us", cutoff=0.86) == [(0, 1.0)]

    def test_a_short_text_is_found_as_a_whole_word_only(self) -> None:
        index = NameIndex.build(["IBM Corporation", "Timber Ibmore"])
        assert found(index, "IBM") == [(0, 0.9)]
        assert found(index, "imb", cutoff=0.86) == []

    def test_of_equal_scores_the_lower_number_comes_first(self) -> None:
        index = NameIndex.build(["Jordan", "Jordan", "Jordan", "Jordania"])
        assert [match.owner for match in index.search(["jordn"], 3)[0]] == [0, 1, 2]

    def test_an_owner_comes_once_with_its_best_name(self) -> None:
        index = NameIndex.of([(0, "Bill Clinton"), (0, "Bill Clintone"), (0, "Bil Clinton"), (1, "Hillary Clinton")])
        matches = index.search(["Bill Clinton"], 2)[0]
        assert [(match.owner, match.name) for match in matches] == [(0, "Bill Clinton"), (1, "Hillary Clinton")]

    def test_each_text_has_results_of_its_own(self, films: NameIndex) -> None:
        assert [[match.owner for match in matches] for matches in films.search(["huse", "", "aliens"], 1)] == [
            [7],
            [],
            [2],
        ]

    def test_nothing_below_the_cutoff_is_given(self, films: NameIndex) -> None:
        assert found(films, "huse", cutoff=0.9) == []
        assert NameIndex.build([]).search(["alien"]) == [[]]

    @pytest.mark.parametrize(
        "text", ["", "  ", "?!", "...", "\x00\x01", "\u202e", "😀", "x" * (LONGEST + 1), "word " * 2000, "zzqqj"]
    )
    def test_what_resembles_nothing_finds_nothing(self, films: NameIndex, text: str) -> None:
        assert films.search([text], 3, 0.0) == [[]]

    def test_scripts_without_spaces_and_from_right_to_left_are_searched(self) -> None:
        index = NameIndex.build(["北京大学", "محمد علي", "Владимир Путин"])
        assert found(index, "北京大")[0][0] == 0
        assert found(index, "محد علي")[0][0] == 1
        assert found(index, "Владимр Путин")[0][0] == 2

    @pytest.mark.parametrize(("k", "cutoff"), [(0, 0.5), (1, -0.1), (1, 1.1)])
    def test_settings_out_of_range_are_refused(self, films: NameIndex, k: int, cutoff: float) -> None:
        with pytest.raises(ConfigError):
            films.search(["alien"], k, cutoff)

    @given(NAMES, st.text(max_size=8), st.integers(1, 4))
    def test_matches_are_few_scored_and_best_first(self, names: list[str], text: str, k: int) -> None:
        (matches,) = NameIndex.build(names).search([text], k)
        assert len(matches) <= k
        scores = [match.score for match in matches]
        assert scores == sorted(scores, reverse=True)
        assert all(0.6 <= score <= 1 for score in scores)
        assert len({match.owner for match in matches}) == len(matches)

    @given(PHRASES, WORDS.map(" ".join), st.integers(0, 30), st.sampled_from(" xe"))
    def test_the_best_score_is_that_of_comparing_with_every_name(
        self, names: list[str], text: str, at: int, letter: str
    ) -> None:
        text = text[:at] + letter + text[at + 1 :]
        best = max((score for _, score in scores(compared(text), names, 0.0)), default=0.0)
        if best >= 0.9:
            (matches,) = NameIndex.build(names).search([text], 1)
            assert [match.score for match in matches] == [best]

    def test_threads_may_share_an_index(self, films: NameIndex) -> None:
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda _: found(films, "ridly scott"), range(64)))
        assert results == [results[0]] * 64


class TestHolding:
    def test_names_with_all_words_of_a_text_are_found_the_shortest_first(self) -> None:
        names = NameIndex.build(
            ["Barack Hussein Obama", "Obama", "Barack Obama", "Barracks", "Obama", "Michelle Obama"]
        )
        assert [match.owner for match in names.holding(["obama"], 9)[0]] == [1, 4, 2, 5, 0]
        assert [match.owner for match in names.holding(["OBAMA, barack"], 9)[0]] == [2, 0]
        assert [match.owner for match in names.holding(["obama"], 2)[0]] == [
            1,
            4,
            2,
        ]  # two names, one of them of two owners

    def test_a_score_is_that_of_searching(self, films: NameIndex) -> None:
        ((match,), (same,)) = films.holding(["scott"], 9)[0], films.search(["scott"], 1)[0]
        assert match == same
        assert films.holding(["scott", "alien"], 9, cutoff=0.95) == [[], films.search(["alien"], 3, 0.95)[0]]

    def test_nothing_is_found_for_unknown_or_empty_text(self, films: NameIndex) -> None:
        assert films.holding(["", "?!", "xenomorph", "ridley xenomorph"], 9) == [[], [], [], []]


class TestShortForms:
    """Names less their article, titles and middle names, for texts that resemble no whole name."""

    @pytest.fixture
    def people(self) -> NameIndex:
        return NameIndex.build(
            ["The Beatles", "Sir Isaac Newton", "Queen Elizabeth II", "Barack Hussein Obama", "Beetles"]
        )

    @pytest.mark.parametrize(
        ("text", "owner", "score"),
        [
            ("Beattles", 0, 0.933),  # 7 letters in common of 8 and 7
            ("Isac Newton", 1, 0.957),
            ("Elisabeth II", 2, 0.917),
            ("Barak Obama", 3, 0.909),  # 0.95 for the first and last word alone
        ],
    )
    def test_a_misspelt_text_is_compared_with_them(
        self, people: NameIndex, text: str, owner: int, score: float
    ) -> None:
        assert found(people, text, 1, cutoff=0.86) == [(owner, score)]

    def test_two_different_titles_are_no_resemblance(self, people: NameIndex) -> None:
        assert found(NameIndex.build(["Saint George"]), "King Gorge", cutoff=0.86) == []

    def test_titles_hide_no_name_in_a_sentence(self, people: NameIndex) -> None:
        for text, word, name in (("isac newton", "isac", "Sir Isaac Newton"), ("beattles", "beattles", "The Beatles")):
            (match,) = people.closest([text], word)
            assert match is not None and match.name == name


class TestClosest:
    def test_letters_may_be_wrong_missing_or_swapped(self, films: NameIndex) -> None:
        for misspelt in ("ridlay", "ridly", "rildey"):
            (match,) = films.closest([f"{misspelt} scott"], misspelt)
            assert match is not None and match.name == "Ridley Scott"

    def test_each_text_is_compared_and_the_score_is_the_share_of_common_letters(self, films: NameIndex) -> None:
        # "huse" and "house": 4 letters in common of 9; with "the" before it, which is no part of a name, too.
        matches = films.closest(["huse", "the huse", "huse of cards"], "huse")
        assert [match and (match.owner, round(match.score, 3)) for match in matches] == [(7, 0.889), (7, 0.889), None]

    def test_of_equal_names_the_one_of_the_first_owner_is_given(self, films: NameIndex) -> None:
        (match,) = films.closest(["alien"], "alien")
        assert match is not None and (match.owner, match.name, match.score) == (1, "Alien", 1.0)

    def test_nothing_below_the_cutoff_is_given(self, films: NameIndex) -> None:
        assert films.closest(["huse", ""], "huse", cutoff=0.9) == [None, None]
        assert films.closest([], "huse") == []
        assert NameIndex.build([]).closest(["alien"], "alien") == [None]
