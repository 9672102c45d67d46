"""Tests of `byokg.index.reranker`."""

from __future__ import annotations

import pytest

from byokg.index.reranker import BiEncoder
from tests.index.word_axes import WordAxes

WORDS = WordAxes("lima capital peru")


def test_texts_are_rated_by_cosine() -> None:
    # One word of two is shared, then both, then none.
    scores = BiEncoder(WORDS).score("capital peru", ["lima capital", "Peru capital", "lima", "Zamunda"])
    assert scores.tolist() == pytest.approx([0.5, 1.0, 0.0, 0.0], abs=1e-6)


def test_a_text_is_rated_the_same_alone_and_in_company() -> None:
    texts = ["lima capital", "Peru capital", "lima"]
    together = BiEncoder(WORDS).score("capital of peru", texts).tolist()
    assert [BiEncoder(WORDS).score("capital of peru", [text])[0] for text in texts] == together


def test_no_texts_are_no_scores() -> None:
    assert len(BiEncoder(WORDS).score("capital", [])) == 0


def test_the_name_says_which_embedder() -> None:
    assert BiEncoder(WORDS).name == "bi-encoder-word-axes"
