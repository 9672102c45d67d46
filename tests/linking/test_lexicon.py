"""Tests of `byokg.linking.relation_meaning`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.linking.relation_meaning import Lexicon, related

WORD = st.text(st.sampled_from("abers"), max_size=6) | st.lists(
    st.sampled_from(["screen", "home", "town", "writ", "direct", "act", "s", "er", "or", "ing", "ress", "ten"]),
    max_size=3,
).map("".join)


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("films", "film"),
        ("written", "writers"),
        ("directed", "director"),
        ("married", "marriage"),
        ("actress", "actor"),
        ("screenwriter", "written"),
        ("hometown", "towns"),
        ("country", "countries"),
    ],
)
def test_words_that_differ_in_endings_or_compounds_are_related(word: str, other: str) -> None:
    assert related(word, other)


@pytest.mark.parametrize(
    ("word", "other"),
    [("start", "star"), ("card", "cardinal"), ("capital", "captain"), ("us", "use"), ("", ""), ("a", "as")],
)
def test_words_that_only_begin_alike_are_not(word: str, other: str) -> None:
    assert not related(word, other)


@given(WORD, WORD)
def test_being_related_goes_both_ways(word: str, other: str) -> None:
    assert related(word, other) == related(other, word)


@given(st.lists(WORD, max_size=12, unique=True), WORD)
def test_a_lexicon_finds_the_relatives_that_comparing_with_every_word_finds(words: list[str], word: str) -> None:
    expected = [1.0 if word == other else 0.5 if related(word, other) else 0.0 for other in words]
    assert Lexicon(words).kin(word, 0.5).tolist() == expected


def test_a_compound_is_found_by_its_second_half_and_the_other_way_round() -> None:
    assert Lexicon(["director", "screenwriter"]).kin("written", 0.5).tolist() == [0.0, 0.5]
    assert Lexicon(["director", "written"]).kin("screenwriter", 0.5).tolist() == [0.0, 0.5]


def test_an_empty_lexicon_has_no_relatives() -> None:
    assert Lexicon([]).kin("film", 0.5).tolist() == []
