"""Tests of `byokg.index.hosted_embedders`."""

from __future__ import annotations

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from byokg.errors import ConfigError, EmbedderFailed
from byokg.index.hosted_embedders import LangChainEmbedder
from tests.index.embedder_contract import EmbedderContract


class Lengths(Embeddings):
    """Embeds a text as (its length, 1) and keeps what it was asked."""

    def __init__(self) -> None:
        self.model = "lengths-v1"
        self.calls: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(texts)
        return [[float(len(text)), 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class Refused(Exception):
    """A provider's error with an HTTP status."""

    def __init__(self, status_code: int) -> None:
        super().__init__(f"status {status_code}")
        self.status_code = status_code


class Broken(Lengths):
    """Answers with what it was made with, or raises it."""

    def __init__(self, reply: list[list[float]] | Exception) -> None:
        super().__init__()
        self.reply = reply

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


class TestDeterministicFake(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> LangChainEmbedder:
        return LangChainEmbedder(DeterministicFakeEmbedding(size=16))


def test_vectors_are_scaled_to_length_one() -> None:
    np.testing.assert_allclose(
        LangChainEmbedder(Lengths()).encode(["abc"]), [[3 / np.sqrt(10), 1 / np.sqrt(10)]], atol=1e-6
    )


def test_texts_travel_in_batches_and_blank_ones_stay_here() -> None:
    model = Lengths()
    vectors = LangChainEmbedder(model, batch_size=2).encode(["a", "", "bb", "ccc", " "])
    assert model.calls == [["a", "bb"], ["ccc"]]
    assert [bool(row.any()) for row in vectors] == [True, False, True, True, False]


def test_the_width_is_asked_for_once_and_only_when_no_text_told_it() -> None:
    model = Lengths()
    embedder = LangChainEmbedder(model)
    assert embedder.encode([]).shape == (0, 2)
    assert embedder.encode([""]).shape == (1, 2)
    assert len(model.calls) == 1


def test_the_name_holds_class_and_model_unless_one_is_given() -> None:
    assert LangChainEmbedder(Lengths()).name == "langchain-Lengths-lengths-v1"
    assert LangChainEmbedder(DeterministicFakeEmbedding(size=3)).name == "langchain-DeterministicFakeEmbedding"
    assert LangChainEmbedder(Lengths(), name="mine").name == "mine"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ([[1.0, 0.0]], "1 vectors for 2 texts"),
        ([[1.0], [1.0, 2.0]], "different lengths"),
        ([[1.0, float("nan")], [1.0, 2.0]], "not finite"),
    ],
)
def test_a_reply_that_does_not_fit_is_refused(reply: list[list[float]], message: str) -> None:
    with pytest.raises(EmbedderFailed, match=message) as caught:
        LangChainEmbedder(Broken(reply)).encode(["a", "b"])
    assert not caught.value.retryable


def test_a_width_that_changes_between_calls_is_refused() -> None:
    model = Broken([[1.0, 0.0]])
    embedder = LangChainEmbedder(model)
    embedder.encode(["a"])
    model.reply = [[1.0, 0.0, 0.0]]
    with pytest.raises(EmbedderFailed, match="3 numbers after 2 before"):
        embedder.encode(["b"])


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (ConnectionError("refused"), True),
        (TimeoutError("late"), True),
        (Refused(429), True),
        (Refused(503), True),
        (Refused(401), False),
        (KeyError("model"), False),
    ],
)
def test_a_providers_error_is_translated_and_says_whether_to_retry(error: Exception, retryable: bool) -> None:
    with pytest.raises(EmbedderFailed, match=type(error).__name__) as caught:
        LangChainEmbedder(Broken(error)).encode(["a"])
    assert caught.value.retryable is retryable
    assert caught.value.__cause__ is error


def test_a_batch_size_below_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="batch_size"):
        LangChainEmbedder(Lengths(), batch_size=0)
