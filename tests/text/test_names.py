"""Tests of `byokg.text.names`."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from byokg.text.names import (
    WORD,
    Lexicon,
    encodable,
    estimate_tokens,
    is_identifier,
    normalize_label,
    normalize_name,
    related,
    split_words,
)
from tests.corpora import each_of

ARTICLES = st.lists(st.sampled_from(["The", "the ", "a ", "An ", "A. ", "A-", " "]), max_size=3).map("".join)


@each_of(
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


@each_of(
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


# Words and labels


def test_words_are_casefolded_runs_of_letters_and_digits() -> None:
    assert split_words("The Straße_42 l'Été İ") == ["the", "strasse", "42", "l", "été", "i̇"]


@each_of(
    ("label", "folded"),
    [("directedBy", "directed by"), ("DIRECTED_BY", "directed by"), ("film.URLPath", "film url path"), ("P31", "p31")],
)
def test_labels_are_split_at_marks_and_capitals(label: str, folded: str) -> None:
    assert normalize_label(label) == folded


@given(st.text(st.characters() | st.characters(categories=["Cs"])))
def test_any_text_can_be_encoded_and_what_can_be_already_stays(text: str) -> None:
    assert len(encodable(text)) == len(text)
    assert encodable(text).encode().decode() == encodable(encodable(text))


def test_halves_of_surrogate_pairs_become_question_marks() -> None:
    assert encodable("Al\ud800ien 🎬") == "Al?ien 🎬"


# Stems

STEMS = st.text(st.sampled_from("abers"), max_size=6) | st.lists(
    st.sampled_from(["screen", "home", "town", "writ", "direct", "act", "s", "er", "or", "ing", "ress", "ten"]),
    max_size=3,
).map("".join)


@each_of(
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


@each_of(
    ("word", "other"),
    [("start", "star"), ("card", "cardinal"), ("capital", "captain"), ("us", "use"), ("", ""), ("a", "as")],
)
def test_words_that_only_begin_alike_are_not(word: str, other: str) -> None:
    assert not related(word, other)


@given(STEMS, STEMS)
def test_being_related_goes_both_ways(word: str, other: str) -> None:
    assert related(word, other) == related(other, word)


@given(st.lists(STEMS, max_size=12, unique=True), STEMS)
def test_a_lexicon_finds_the_relatives_that_comparing_with_every_word_finds(words: list[str], word: str) -> None:
    expected = [place for place, other in enumerate(words) if word == other or related(word, other)]
    assert Lexicon(words).related(word) == expected


def test_a_compound_is_found_by_its_second_half_and_the_other_way_round() -> None:
    assert Lexicon(["director", "screenwriter"]).related("written") == [1]
    assert Lexicon(["director", "written"]).related("screenwriter") == [1]


def test_an_empty_lexicon_has_no_relatives() -> None:
    assert Lexicon([]).related("film") == []


# Identifiers


@each_of(
    "text",
    [
        "m.0abc_1",
        "g.11b66h2c7t",
        "/m/02mjmr",
        "Q42000",
        "Q101",
        "P31000",
        "_:b0",
        "123e4567-e89b-12d3-a456-426614174000",
        "123E4567-E89B-12D3-A456-426614174000",
    ],
)
def test_machine_identifiers_are_recognised(text: str) -> None:
    assert is_identifier(text)


@each_of(
    "text",
    ["", "Alien", "m", "m.", "M. Butterfly", "M.A.S.H.", "g.i. joe", "Q", "Q5", "P51 Mustang", "1984", "_", "a m.0abc"],
)
def test_names_are_not(text: str) -> None:
    assert not is_identifier(text)


# Tokens


def test_tokens_are_estimated_by_letters_marks_and_other_characters() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("film and book") == 3  # 11 letters
    assert estimate_tokens("a.b 12\n") == 5  # 2 letters; a mark, two digits and a line end
    assert estimate_tokens("北京市\ud800") == 5
