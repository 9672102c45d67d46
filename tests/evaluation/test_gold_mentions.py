"""Tests of `byokg.evaluation.linking_quality`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.evaluation.linking_quality import MENTION_TYPES, gold_mention, mention_type
from byokg.types import Mention


@pytest.mark.parametrize(
    ("question", "name", "words"),
    [
        ("who directed Heat?", "Heat", "Heat"),
        ("what is the capital of the côte d'ivoire", "Cote d'Ivoire", "côte d'ivoire"),
        ("where did obama go to school?", "Barack Obama", "obama"),
        ("who did john kennedy have affairs with?", "John F. Kennedy", "john kennedy"),
        ("where is the thames river source?", "River Thames", "thames river"),
        ("what did nicholas copernicus discover?", "Nicolaus Copernicus", "nicholas copernicus"),
        ("which city is Jesusalem near?", "Jerusalem", "Jesusalem"),
        ("where does vivaldi compose?", "Antonio Vivaldi", "vivaldi"),
        ("who are the judges in the supreme court?", "Supreme Court of the United States", "supreme court"),
    ],
)
def test_the_words_that_name_an_entity_are_found(question: str, name: str, words: str) -> None:
    mention = gold_mention(name, question)
    assert mention is not None and mention.text == words
    assert question[mention.start : mention.end] == words and mention.ids == ()


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("what war did the us lose", "United States of America"),
        ("who is the president", "Theodore Lesieg"),
        ("", "Heat"),
        ("who directed it?", "!!!"),
        ("of the in", "Of the In Between"),
    ],
)
def test_nothing_is_found_where_nothing_names_it(question: str, name: str) -> None:
    assert gold_mention(name, question) is None


@given(st.text(max_size=40), st.text(max_size=40))
def test_what_is_found_is_a_piece_of_any_question(name: str, question: str) -> None:
    mention = gold_mention(name, question)
    if mention is not None:
        assert question[mention.start : mention.end] == mention.text != ""
    assert mention_type(mention, name) in MENTION_TYPES


@pytest.mark.parametrize(
    ("text", "name", "aliases", "kind"),
    [
        ("the heat", "Heat", (), "exact name"),
        ("usa", "United States of America", ("USA",), "alias"),
        ("usa", "United States of America", (), "other words"),
        ("obama", "Barack Obama", (), "part of name"),
        ("President Barack Obama", "Barack Obama", (), "part of name"),
        ("Jesusalem", "Jerusalem", (), "misspelt"),
        ("1984", "1984", (), "literal or id"),
        ("12 May 1990", "1990-05-12", (), "literal or id"),
        ("m.0abc", "m.0abc", (), "literal or id"),
    ],
)
def test_how_an_entity_is_mentioned(text: str, name: str, aliases: tuple[str, ...], kind: str) -> None:
    assert mention_type(Mention(text), name, aliases) == kind


def test_no_mention_is_a_type_of_its_own() -> None:
    assert mention_type(None, "Heat") == "not in question"
