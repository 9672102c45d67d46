"""Tests of `byokg.index.hosted_embedders`: the real client libraries against a local server."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from langchain.embeddings import base

from byokg.errors import ConfigError, EmbedderFailed, MissingExtra
from byokg.index.embedders import unit_rows
from byokg.index.hosted_embedders import LangChainEmbedder, bedrock, openai_compatible
from tests.index.embedder_contract import EmbedderContract
from tests.index.embedding_server import EmbeddingServer, serving, vector

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
