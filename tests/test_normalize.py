"""Tests of `byokg.text`."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.text import WORD, normalize_name

ARTICLES = st.lists(st.sampled_from(["The", "the ", "a ", "An ", "A. ", "A-", " "]), max_size=3).map("".join)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("The  Côte-d'Ivoire", "cote d ivoire"),
        ("the_godfather (1972)", "godfather 1972"),
        ("An American in Paris", "american in paris"),
        ("Straße", "strasse"),
        ("İstanbul", "istanbul"),
        ("𝐀lien", "alien"),
        ("ガス", "ガス"),
        ("Another", "another"),
        ("the", "the"),
        ("  ", ""),
        ("", ""),
    ],
)
def test_case_accents_punctuation_and_a_leading_article_are_folded(text: str, folded: str) -> None:
    assert normalize_name(text) == folded


def test_initials_are_no_article() -> None:
    assert normalize_name("A. A. Milne") == "a a milne"


def test_names_of_punctuation_alone_stay_apart() -> None:
    assert [normalize_name(name) for name in ("!!!", "???", " ´ ", "🎬")] == ["!!!", "???", "´", "🎬"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("กิน", "กัน"),  # Thai: eat, together
        ("राम", "रोम"),  # Hindi: Ram, Rome
        ("ガス", "カス"),  # Japanese: gas, scum
    ],
)
def test_marks_that_make_another_word_are_kept(one: str, other: str) -> None:
    assert normalize_name(one) != normalize_name(other)
    assert " " not in normalize_name(one) + normalize_name(other)


def test_optional_vowel_points_are_dropped() -> None:
    assert normalize_name("שָׁלוֹם") == normalize_name("שלום")


@given(ARTICLES, st.text())
def test_folding_twice_gives_the_same_as_folding_once(start: str, rest: str) -> None:
    folded = normalize_name(start + rest)
    assert normalize_name(folded) == folded


@given(st.text())
def test_composed_and_decomposed_spellings_fold_alike(text: str) -> None:
    if WORD.search(text):
        assert normalize_name(unicodedata.normalize("NFC", text)) == normalize_name(unicodedata.normalize("NFD", text))


@given(st.text())
def test_every_letter_and_digit_belongs_to_a_word_and_no_space_does(text: str) -> None:
    found = "".join(WORD.findall(text))
    assert [char for char in found if char.isalnum()] == [char for char in text if char.isalnum()]
    assert not any(char.isspace() for char in found)


def test_a_decomposed_accent_does_not_cut_a_word() -> None:
    assert WORD.findall("Gre\u0301goire Colin") == ["Gre\u0301goire", "Colin"]
