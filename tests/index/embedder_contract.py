"""What every embedder promises, written once. Subclass, provide an `embedder`, inherit the checks."""

from __future__ import annotations

import numpy as np

from byokg.index.embedders import Embedder

TEXTS = ["Tirana", "which films did the director of Casablanca write", "directed_by", "São Tomé and Príncipe"]


class EmbedderContract:
    """Inherit and define a fixture `embedder`."""

    def test_rows_are_unit_float32(self, embedder: Embedder) -> None:
        vectors = embedder.encode(TEXTS)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)

    def test_there_is_one_row_for_each_text_in_the_order_given(self, embedder: Embedder) -> None:
        vectors = embedder.encode(TEXTS)
        assert vectors.shape[0] == len(TEXTS)
        np.testing.assert_allclose(embedder.encode(TEXTS[::-1]), vectors[::-1], atol=1e-5)

    def test_a_text_encodes_the_same_alone_and_in_a_batch(self, embedder: Embedder) -> None:
        vectors = embedder.encode(TEXTS)
        for text, vector in zip(TEXTS, vectors, strict=True):
            np.testing.assert_allclose(embedder.encode([text])[0], vector, atol=1e-5)

    def test_an_empty_text_gives_a_zero_row_and_leaves_its_neighbours_alone(self, embedder: Embedder) -> None:
        vectors = embedder.encode([TEXTS[0], "", "  \n", TEXTS[1]])
        assert not vectors[1:3].any()
        np.testing.assert_allclose(vectors[[0, 3]], embedder.encode(TEXTS[:2]), atol=1e-5)

    def test_only_empty_texts_give_only_zero_rows(self, embedder: Embedder) -> None:
        width = embedder.encode(["a text"]).shape[1]
        vectors = embedder.encode(["", ""])
        assert vectors.shape == (2, width)
        assert not vectors.any()

    def test_no_texts_give_no_rows_of_the_usual_width(self, embedder: Embedder) -> None:
        vectors = embedder.encode([])
        assert vectors.dtype == np.float32
        assert vectors.shape == (0, embedder.encode(["a text"]).shape[1])

    def test_equal_texts_give_equal_rows(self, embedder: Embedder) -> None:
        first, second = embedder.encode(["born in", "born in"])
        np.testing.assert_array_equal(first, second)

    def test_half_a_character_is_read_as_a_question_mark(self, embedder: Embedder) -> None:
        vectors = embedder.encode(["\ud800", "born\udfff in", "born in", "?", "born? in"])
        np.testing.assert_array_equal(vectors[:2], vectors[3:])
        assert np.isfinite(vectors).all()

    def test_the_name_is_a_non_empty_line(self, embedder: Embedder) -> None:
        assert embedder.name.strip()
        assert "\n" not in embedder.name
