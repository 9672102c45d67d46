"""Tests of `byokg.index.embedders`."""

from __future__ import annotations

import runpy
import shutil
from copy import copy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model2vec import StaticModel
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from byokg.errors import ConfigError
from byokg.index.embedders import SHIPPED, TEXTS_AT_ONCE, StaticEmbedder
from tests.index.embedder_contract import EmbedderContract

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "build_embedder.py"

EMBEDDER = StaticEmbedder()
"""Shared by the property tests, which cannot take function-scoped fixtures."""


@pytest.fixture(scope="module")
def shipped() -> StaticEmbedder:
    """Return the embedder that comes with the package."""
    return EMBEDDER


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Save a model of three words: red (3, 4), blue (0, 2), and an unknown-word entry (9, 9)."""
    vocabulary = {"[UNK]": 0, "red": 1, "blue": 2}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    model = StaticModel(np.array([[9, 9], [3, 4], [0, 2]], dtype=np.float32), tokenizer, normalize=True)
    model.save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


class TestShipped(EmbedderContract):
    @pytest.fixture
    def embedder(self, shipped: StaticEmbedder) -> StaticEmbedder:
        return shipped


def test_the_shipped_embedder_has_128_dimensions_and_is_named_by_content(shipped: StaticEmbedder) -> None:
    assert shipped.dimensions == 128
    assert shipped.name == "static-128-int8-65d26be1dd0e"


def test_vectors_are_those_of_model2vec(shipped: StaticEmbedder) -> None:
    texts: list[str] = list(runpy.run_path(str(SCRIPT))["TEXTS"])
    expected = StaticModel.from_pretrained(SHIPPED).encode(texts, normalize=True)
    np.testing.assert_allclose(shipped.encode(texts), expected, atol=1e-4)


def test_related_texts_are_nearer_than_unrelated_ones(shipped: StaticEmbedder) -> None:
    film, movie, river = shipped.encode(["film director", "who directed the movie", "length of the river"])
    assert film @ movie > film @ river + 0.3


def test_the_mean_is_taken_over_known_tokens_with_their_lengths_as_weights(tiny: Path) -> None:
    # red + blue = (3, 6), whose unit vector is (1, 2) / sqrt(5); "green" is unknown and counts for nothing.
    embedder = StaticEmbedder(tiny)
    vectors = embedder.encode(["red", "red blue", "green red green", "green", "blue blue"])
    half = 1 / np.sqrt(5)
    np.testing.assert_allclose(vectors, [[0.6, 0.8], [half, 2 * half], [0.6, 0.8], [0, 0], [0, 1]], atol=1e-6)


def test_tokens_are_known_pieces_with_their_unscaled_vectors(tiny: Path) -> None:
    pieces, vectors = StaticEmbedder(tiny).tokens("blue green red")
    assert pieces == ["blue", "red"]
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, [[0, 2], [3, 4]])


def test_a_text_without_known_tokens_has_no_tokens(shipped: StaticEmbedder, tiny: Path) -> None:
    for embedder, text, width in ((shipped, "", 128), (StaticEmbedder(tiny), "green", 2)):
        pieces, vectors = embedder.tokens(text)
        assert pieces == []
        assert vectors.shape == (0, width)


def test_weights_and_a_token_mapping_are_applied(tmp_path: Path, tiny: Path) -> None:
    # Both words share the row (1, 1) except that "red" maps to (0, 5); blue counts ten times.
    model = StaticModel(
        np.array([[1, 1], [0, 5]], dtype=np.float32),
        Tokenizer.from_file(str(tiny / "tokenizer.json")),
        normalize=True,
        weights=np.array([1.0, 1.0, 10.0]),
        token_mapping=np.array([0, 1, 0]),
    )
    model.save_pretrained(tmp_path / "mapped")
    pieces, vectors = StaticEmbedder(tmp_path / "mapped").tokens("red blue")
    assert pieces == ["red", "blue"]
    np.testing.assert_array_equal(vectors, [[0, 5], [10, 10]])


@given(st.text(max_size=60))
def test_the_token_vectors_add_up_to_the_text_vector(text: str) -> None:
    _, vectors = EMBEDDER.tokens(text)
    total = vectors.sum(axis=0)
    length = np.linalg.norm(total)
    expected = total / length if length else total
    np.testing.assert_allclose(EMBEDDER.encode([text])[0], expected, atol=1e-5)


@given(
    st.lists(st.text(st.sampled_from("ab éΣς→中ﬁ.-'\t\n\x1c\x85\xa0\u200b\u0301[UNK]") | st.characters(), max_size=20))
)
def test_words_are_cut_alike_in_a_text_and_by_themselves(texts: list[str]) -> None:
    few = EMBEDDER.encode([*texts, ""])  # not one alone, which is never cut at its spaces
    many = EMBEDDER.encode([*texts, *["" for _ in range(2000)]])
    assert few[: len(texts)].tobytes() == many[: len(texts)].tobytes()


def test_more_words_than_are_kept_change_nothing(shipped: StaticEmbedder) -> None:
    texts = [f"film {number} of {number + 1}" for number in range(30_000)]
    whole = shipped.encode(texts)
    for start in range(0, len(texts), 1000):
        assert shipped.encode(texts[start : start + 1000]).tobytes() == whole[start : start + 1000].tobytes()


@given(st.lists(st.text(max_size=20), max_size=12))
def test_rows_are_the_same_bytes_alone_and_in_any_batch(texts: list[str]) -> None:
    together = EMBEDDER.encode(texts)
    for text, row in zip(texts, together, strict=True):
        assert EMBEDDER.encode([text])[0].tobytes() == row.tobytes()


def test_batches_beyond_one_chunk_keep_their_order(shipped: StaticEmbedder) -> None:
    texts = [f"film {number}" for number in range(TEXTS_AT_ONCE + 5)]
    vectors = shipped.encode(texts)
    np.testing.assert_array_equal(vectors[-5:], shipped.encode(texts[-5:]))


def test_what_follows_the_512th_token_still_counts(shipped: StaticEmbedder) -> None:
    long = "film " * 600
    np.testing.assert_allclose(shipped.encode([long])[0], shipped.encode(["film"])[0], atol=1e-6)
    assert not np.allclose(shipped.encode([long + "river " * 600])[0], shipped.encode([long])[0], atol=0.1)


def test_a_missing_folder_is_refused_without_asking_a_model_hub(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no static embedder in .*elsewhere.*byokg embedder distill"):
        StaticEmbedder(tmp_path / "elsewhere")


def test_a_torn_weights_file_is_named(tiny: Path) -> None:
    weights = tiny / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:10])
    with pytest.raises(ConfigError, match="cannot be read"):
        StaticEmbedder(tiny)


def test_a_folder_without_a_tokenizer_is_named(tiny: Path) -> None:
    (tiny / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        StaticEmbedder(tiny)


def test_the_rebuild_script_accepts_a_copy_and_refuses_changed_vectors(tmp_path: Path, tiny: Path) -> None:
    check = runpy.run_path(str(SCRIPT))["check"]
    shutil.copytree(SHIPPED, tmp_path / "copy")
    assert check(tmp_path / "copy")
    assert not check(tiny)

    changed = copy(StaticModel.from_pretrained(SHIPPED))  # which all tests share
    changed.embedding = np.ascontiguousarray(changed.embedding[:, ::-1])  # safetensors takes nothing else
    changed.save_pretrained(tmp_path / "changed")
    assert not check(tmp_path / "changed")


def test_the_rebuild_script_refuses_a_folder_without_an_embedder(tmp_path: Path) -> None:
    assert not runpy.run_path(str(SCRIPT))["check"](tmp_path)
