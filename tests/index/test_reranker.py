"""Tests of `byokg.index.rerankers`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from byokg.index.embedders import Vectors
from byokg.index.rerankers import BiEncoder
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


def test_what_was_rated_before_is_not_encoded_again() -> None:
    class Counting(WordAxes):
        encoded = 0

        def encode(self, texts: Sequence[str]) -> Vectors:
            self.encoded += len(texts)
            return super().encode(texts)

    embedder = Counting("lima capital peru")
    reranker = BiEncoder(embedder)
    first = reranker.score("capital peru", ["lima", "capital", "lima"]).tolist()
    assert reranker.score("capital peru", ["lima", "capital", "lima"]).tolist() == first
    assert embedder.encoded == 3  # the question once, too


def test_more_texts_than_are_remembered_are_rated_all_the_same() -> None:
    reranker = BiEncoder(WORDS)
    reranker.score("lima", [f"lima {number}" for number in range(10_000)])
    many = [f"peru {number}" for number in range(20_000)]
    assert reranker.score("peru", [*many, "lima"]).tolist() == [1.0] * len(many) + [0.0]


def test_no_texts_are_no_scores() -> None:
    assert len(BiEncoder(WORDS).score("capital", [])) == 0


def test_the_name_says_which_embedder() -> None:
    assert BiEncoder(WORDS).name == "bi-encoder-word-axes"
