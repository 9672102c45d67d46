"""Tests of `byokg.index.dense`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from byokg.errors import ConfigError
from byokg.index.dense import SLACK, UNIT, DenseNames, Similarity
from byokg.index.embedders import Vectors, unit_rows
from byokg.index.vectors import Layout, VectorIndex
from tests.index.word_axes import WordAxes

# Owners 0 to 5; the name of 3 has no known word, 4 has none at all, and 1 and 5 share theirs.
WORDS = WordAxes("lima peru capital river")
NAMES = [(0, "Lima"), (1, "Peru"), (2, "Lima River"), (3, "Zamunda"), (5, "Peru")]


@pytest.fixture
def similarity() -> Similarity:
    return Similarity(DenseNames.build(NAMES, WORDS), owners=6)


def asked(text: str) -> Vectors:
    vector: Vectors = WORDS.encode([text])[0]
    return vector


def test_similarities_are_cosines_in_millionths(similarity: Similarity) -> None:
    # Lima is one of the two words: 1/√2 = 0.707107; of Lima River both: 1. Half precision is off by 0.0001 or so.
    found = similarity.of(asked("Lima river"), np.arange(6)) / UNIT
    np.testing.assert_allclose(found, [0.707107, 0, 1, 0, 0, 0], atol=2e-4)


def test_whoever_has_no_name_or_one_of_unknown_words_scores_nothing(similarity: Similarity) -> None:
    assert similarity.of(asked("Zamunda peru"), np.array([3, 4])).tolist() == [0, 0]


def test_a_name_has_one_similarity_whatever_is_asked_with_it(similarity: Similarity) -> None:
    whole = similarity.of(asked("capital of Peru"), np.arange(6))
    assert np.abs(similarity.roughly(asked("capital of Peru")) - whole).max() <= SLACK
    assert whole[1] == whole[5] > 0
    for owner in range(6):
        assert similarity.of(asked("capital of Peru"), np.array([owner])).tolist() == [whole[owner]]


def test_the_best_names_come_with_all_who_bear_them_and_a_bound_for_the_rest(similarity: Similarity) -> None:
    best = similarity.best(asked("Peru Lima"), names=2)
    assert best.owners.tolist() == [0, 1, 5]
    rest = [owner for owner in range(6) if owner not in best.owners]
    assert similarity.of(asked("Peru Lima"), np.array(rest)).max() <= best.bound < UNIT


def test_where_all_names_are_among_the_best_nothing_is_above_the_bound(similarity: Similarity) -> None:
    best = similarity.best(asked("Peru"), names=10)
    assert (best.owners.tolist(), best.bound) == ([0, 1, 2, 5], -UNIT)


def test_fewer_than_one_name_is_refused(similarity: Similarity) -> None:
    with pytest.raises(ConfigError, match="names=0"):
        similarity.best(asked("Peru"), names=0)


def test_the_share_of_similar_names_is_estimated(similarity: Similarity) -> None:
    # Of Lima, Peru and Lima River, two hold the word.
    assert similarity.share_above(asked("Lima"), UNIT // 2) == pytest.approx(2 / 3)


def test_no_names_are_no_error() -> None:
    nothing = Similarity(DenseNames.build([], WORDS), owners=2)
    assert (len(nothing), nothing.owners) == (0, 2)
    assert nothing.roughly(asked("Lima")).tolist() == [0, 0]
    assert nothing.best(asked("Lima"), 3).owners.tolist() == []
    assert nothing.share_above(asked("Lima"), 0) == 0


@pytest.mark.parametrize("layout", ["flat", "hnsw", "pq", "ivf"])
def test_every_layout_is_scanned_exactly_also_from_a_file(layout: Layout, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    vectors = unit_rows(random.standard_normal((5000, 16)))
    index = VectorIndex.build(vectors, layout)
    question = unit_rows(random.standard_normal((1, 16)))[0]
    expected = np.argsort(-(vectors.astype(np.float16) @ question), kind="stable")[:50]
    opened = VectorIndex.open(tmp_path, **index.write(tmp_path))
    for one in (index, opened):
        places, products = one.scan(question, 50)
        assert set(places.tolist()) == set(expected.tolist())
        np.testing.assert_allclose(products, vectors[places] @ question, atol=1e-3)
        np.testing.assert_allclose(one.stored, vectors, atol=1e-3)
