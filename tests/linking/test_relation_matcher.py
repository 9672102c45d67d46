"""Tests of `byokg.linking.parts`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.errors import ConfigError
from byokg.linking.parts import RelationMatcher
from tests.linking.graphs import EMBEDDER

RELATIONS = ["directed_by", "starred_actors", "release_year", "people.person.place_of_birth", "Directed_By"]


@pytest.mark.parametrize(
    ("written", "relation", "method"),
    [
        ("directed_by", "directed_by", "exact"),
        ("Directed_By", "Directed_By", "exact"),
        ("DIRECTED BY", "directed_by", "folded"),
        ("directedBy", "directed_by", "folded"),
        ("^starred_actors", "starred_actors", "exact"),
        ("starred_actor", "starred_actors", "fuzzy"),
        ("people.person.birth_place_of", None, None),
    ],
)
def test_a_label_is_matched_exactly_then_folded_then_by_letters(
    written: str, relation: str | None, method: str | None
) -> None:
    match = RelationMatcher(RELATIONS).match(written)
    assert (match and match.relation, match and match.method) == (relation, method)


def test_a_label_of_other_words_is_matched_by_meaning() -> None:
    match = RelationMatcher(RELATIONS, EMBEDDER, dense_cutoff=0.5).match("year of release date")
    assert match is not None and (match.relation, match.method) == ("release_year", "dense")
    assert 0.5 <= match.score <= 1


def test_a_label_like_nothing_is_matched_with_nothing() -> None:
    matcher = RelationMatcher(RELATIONS, EMBEDDER)
    assert [matcher.match(text) for text in ("", "^", "…", "zzzz qqqq")] == [None] * 4
    assert RelationMatcher([], EMBEDDER).match("directed_by") is None


def test_impossible_cutoffs_are_refused() -> None:
    with pytest.raises(ConfigError, match="fuzzy_cutoff=86"):
        RelationMatcher(RELATIONS, fuzzy_cutoff=86)


@given(st.text(max_size=20))
def test_a_match_is_a_relation_of_the_graph_with_a_score_in_range(written: str) -> None:
    match = RelationMatcher(RELATIONS, EMBEDDER).match(written)
    assert match is None or (match.relation in RELATIONS and 0 <= match.score <= 1)
