"""Tests of `byokg.index.names`."""

from __future__ import annotations

import pytest
from thefuzz import process
from thefuzz.utils import full_process

from byokg.index.names import compared, scores

NAMES = ["Ridley Scott", "The Godfather", "J. R. R. Tolkien", "AC/DC", "Scott Ridley Jr.", "Alien 3"]


@pytest.mark.parametrize("text", ["Ridly Scot", "J. Tolkien", "godfather, the", "ac dc"])
def test_scores_are_those_of_thefuzz_at_most_and_of_what_resembles_the_same(text: str) -> None:
    found = {NAMES[at]: round(100 * score) for at, score in scores(compared(text), NAMES, 0.0)}
    others = dict(process.extract(text, NAMES, limit=None))
    assert all(score <= others[name] for name, score in found.items())
    assert {name: score for name, score in found.items() if score >= 75} == {
        name: score for name, score in others.items() if score >= 75
    }


@pytest.mark.parametrize(
    ("text", "name"),
    [("love", "Slovene"), ("Laras", "Aras"), ("Tamera", "Mera"), ("Republic", "Public"), ("Paul", "Constable Pauly D")],
)
def test_nothing_is_found_inside_a_word(text: str, name: str) -> None:
    assert scores(compared(text), [name], 0.86) == []
    assert scores(compared(name), [text], 0.86) == []


def test_parts_of_whole_words_are_found_also_in_the_plural() -> None:
    names = ["Pittsburgh Steelers", "University of St Andrews", "Danube"]
    assert [at for at, _ in scores("steeler", names, 0.86)] == [0]
    assert [at for at, _ in scores("st andrews", names, 0.86)] == [1]
    assert [at for at, _ in scores("danub", names, 0.86)] == [2]


def test_scripts_without_spaces_are_searched_for_parts() -> None:
    assert [at for at, _ in scores(compared("東京大学"), ["国立東京大学医学部附属病院"], 0.86)] == [0]
    assert [at for at, _ in scores(compared("กรุงเทพ"), ["สถานีรถไฟกรุงเทพมหานคร"], 0.5)] == [0]


def test_texts_are_processed_as_thefuzz_does_but_for_accents() -> None:
    for text in ("J. Smith", "AC/DC", "a_b", " x "):
        assert compared(text) == full_process(text)
    assert compared("Çá!") == "ca"
    assert compared("?!") == compared("") == ""


def test_scores_of_nothing_are_not_told() -> None:
    assert scores("xyz", ["abc"], 0.0) == []


def test_short_names_are_whole_names_or_whole_words() -> None:
    names = ["us", "the us army", "business", "U.S."]
    # Equal, and a word of a name; of wholes, 2 letters in common of 10, and 2 of 5.
    assert [(at, round(score, 2)) for at, score in sorted(scores("us", names, 0.0))] == [
        (0, 1.0),
        (1, 0.9),
        (2, 0.4),
        (3, 0.8),
    ]
    assert sorted(at for at, _ in scores("business of us", names, 0.6)) == [2]
