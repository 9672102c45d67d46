"""Tests of `byokg.index.hosted_embedders`: any embeddings object, and client libraries against a local server."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from langchain.embeddings import base
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from byokg.errors import ConfigError, EmbedderFailed, MissingExtra
from byokg.index.embedders import unit_rows
from byokg.index.hosted_embedders import LangChainEmbedder, bedrock, openai_compatible
from tests.index.embedder_contract import EmbedderContract
from tests.index.embedding_server import EmbeddingServer, serving, vector


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


# Clients


needs_openai = pytest.mark.skipif(
    importlib.util.find_spec("langchain_openai") is None, reason="langchain-openai is not installed"
)
needs_aws = pytest.mark.skipif(
    importlib.util.find_spec("langchain_aws") is None, reason="langchain-aws is not installed"
)

KEY = "sk-only-for-tests"


@pytest.fixture(autouse=True)
def _no_credentials_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTESTTESTTESTTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "only-for-tests/secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with serving() as running:
        yield running


def openai_embedder(server: EmbeddingServer, max_retries: int = 0, batch_size: int = 256) -> LangChainEmbedder:
    return openai_compatible(
        "small", base_url=f"{server.url}/v1", api_key=KEY, batch_size=batch_size, max_retries=max_retries
    )


def bedrock_embedder(server: EmbeddingServer, model: str = "amazon.titan-embed-text-v2:0") -> LangChainEmbedder:
    return bedrock(model, region="eu-test-1", endpoint_url=server.url, max_retries=0)


@needs_openai
class TestOpenAIContract(EmbedderContract):
    @pytest.fixture
    def embedder(self, server: EmbeddingServer) -> LangChainEmbedder:
        return openai_embedder(server)


@needs_aws
class TestTitanContract(EmbedderContract):
    @pytest.fixture
    def embedder(self, server: EmbeddingServer) -> LangChainEmbedder:
        return bedrock_embedder(server)


@needs_aws
class TestCohereContract(EmbedderContract):
    @pytest.fixture
    def embedder(self, server: EmbeddingServer) -> LangChainEmbedder:
        return bedrock_embedder(server, "cohere.embed-multilingual-v3")


@needs_openai
def test_an_openai_server_gets_texts_in_batches_with_model_and_key(server: EmbeddingServer) -> None:
    vectors = openai_embedder(server, batch_size=2).encode(["Tirana", "New York", "Oslo"])
    np.testing.assert_allclose(vectors, unit_rows([vector("Tirana"), vector("New York"), vector("Oslo")]), atol=1e-6)
    assert [body["input"] for _, body, _ in server.requests] == [["Tirana", "New York"], ["Oslo"]]
    path, body, headers = server.requests[0]
    assert (path, body["model"], headers["authorization"]) == ("/v1/embeddings", "small", f"Bearer {KEY}")


@needs_openai
def test_a_server_of_ones_own_needs_no_key_and_openai_does(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert openai_compatible("small", base_url=f"{server.url}/v1").encode(["a"]).shape == (1, 3)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        openai_compatible("small")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    openai_compatible("small", base_url=f"{server.url}/v1").encode(["a"])
    assert server.requests[-1][2]["authorization"] == f"Bearer {KEY}"


@needs_openai
def test_dimensions_are_asked_for_and_part_of_the_name(server: EmbeddingServer) -> None:
    embedder = openai_compatible("small", base_url=f"{server.url}/v1", dimensions=3)
    embedder.encode(["a"])
    assert server.requests[0][1]["dimensions"] == 3
    assert embedder.name == "openai-small-3"
    assert openai_embedder(server).name == "openai-small"


@needs_openai
@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (429, "rate_limit_exceeded", True),
        (500, "server_error", True),
        (503, "overloaded", True),
        (401, "invalid_api_key", False),
        (404, "model_not_found", False),
    ],
)
def test_an_openai_failure_is_typed_and_says_whether_to_retry(
    server: EmbeddingServer, status: int, code: str, retryable: bool
) -> None:
    server.faults.append((status, code))
    with pytest.raises(EmbedderFailed, match=code) as caught:
        openai_embedder(server).encode(["a"])
    assert caught.value.retryable is retryable
    assert KEY not in str(caught.value)


@needs_openai
def test_a_throttled_openai_request_is_sent_again_by_the_client(server: EmbeddingServer) -> None:
    server.faults.append((429, "rate_limit_exceeded"))
    assert openai_embedder(server, max_retries=1).encode(["a"]).shape == (1, 3)
    assert len(server.requests) == 2


@needs_openai
def test_no_openai_server_is_a_failure_that_may_pass() -> None:
    with serving() as server:
        embedder = openai_embedder(server)
    with pytest.raises(EmbedderFailed) as caught:
        embedder.encode(["a"])
    assert caught.value.retryable


@needs_aws
def test_titan_gets_one_text_a_request_and_cohere_many(server: EmbeddingServer) -> None:
    titan = bedrock("amazon.titan-embed-text-v2:0", "eu-test-1", endpoint_url=server.url, dimensions=3)
    titan.encode(["Tirana", "Oslo"])
    assert [body for _, body, _ in server.requests] == [
        {"inputText": "Tirana", "dimensions": 3},
        {"inputText": "Oslo", "dimensions": 3},
    ]
    assert {path for path, _, _ in server.requests} == {"/model/amazon.titan-embed-text-v2:0/invoke"}
    assert titan.name == "bedrock-amazon.titan-embed-text-v2:0-3"
    server.requests.clear()
    bedrock_embedder(server, "cohere.embed-multilingual-v3").encode(["Tirana", "Oslo"])
    assert [body["texts"] for _, body, _ in server.requests] == [["Tirana", "Oslo"]]


@needs_aws
@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (429, "ThrottlingException", True),
        (400, "ThrottlingException", True),
        (503, "ServiceUnavailableException", True),
        (500, "InternalServerException", True),
        (403, "AccessDeniedException", False),
        (400, "ValidationException", False),
    ],
)
def test_a_bedrock_failure_is_typed_and_says_whether_to_retry(
    server: EmbeddingServer, status: int, code: str, retryable: bool
) -> None:
    server.faults.append((status, code))
    with pytest.raises(EmbedderFailed, match=code) as caught:
        bedrock_embedder(server).encode(["a"])
    assert caught.value.retryable is retryable
    assert "only-for-tests" not in str(caught.value)


@needs_aws
def test_no_bedrock_endpoint_is_a_failure_that_may_pass() -> None:
    with serving() as server:
        embedder = bedrock_embedder(server)
    with pytest.raises(EmbedderFailed) as caught:
        embedder.encode(["a"])
    assert caught.value.retryable


@needs_aws
def test_an_unknown_profile_is_named() -> None:
    with pytest.raises(ConfigError, match="nobodys-profile"):
        bedrock("amazon.titan-embed-text-v2:0", "eu-test-1", profile="nobodys-profile")


def test_a_missing_package_names_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_openai", None)
    monkeypatch.setitem(sys.modules, "langchain_aws", None)
    base._get_embeddings_class_creator.cache_clear()  # it remembers what it imported
    with pytest.raises(MissingExtra, match=r"byokg\[openai\]"):
        openai_compatible("small", api_key=KEY)
    with pytest.raises(MissingExtra, match=r"byokg\[bedrock\]"):
        bedrock("amazon.titan-embed-text-v2:0")
