"""Embedding models of LangChain as embedders: Amazon Bedrock and servers with OpenAI's protocol by their settings, and
any other as an object.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import SecretStr

from byokg.errors import ConfigError, EmbedderFailed, MissingExtra, at_least, requires
from byokg.index.embedders import Vectors, unit_rows
from byokg.service_errors import known_secrets, may_pass, without_secrets
from byokg.text.names import encodable

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

MODEL_ATTRIBUTES = ("model", "model_name", "model_id", "deployment")
"""Where LangChain's classes keep the model's name; they agree on no single place."""


class LangChainEmbedder:
    """Encodes texts through a LangChain embeddings object.

    Args:
        embeddings: LangChain object; texts are sent to it as documents.
        name: identifies model and settings in caches and run records; None takes class and model name.
        batch_size: texts per call.

    Raises:
        ConfigError: `batch_size` is below 1.

    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> LangChainEmbedder(DeterministicFakeEmbedding(size=8)).encode(["river", "stream"]).shape
    (2, 8)
    """

    def __init__(self, embeddings: Embeddings, name: str | None = None, batch_size: int = 256) -> None:
        at_least(1, "encodes nothing", batch_size=batch_size)
        self._embeddings = embeddings
        self._batch_size = batch_size
        self._name = name if name is not None else _described(embeddings)
        self._dimensions: int | None = None

    @property
    def name(self) -> str:
        """Identify model and settings."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Return the length D of a vector; asks the model once if nothing was encoded yet."""
        if self._dimensions is None:
            self._dimensions = self._call(["dimensions"]).shape[1]
        return self._dimensions

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the model's vectors, normalised.

        Args:
            texts: N texts; blank ones are not sent, since several services refuse them.

        Returns:
            (N, D) float32, rows of length 1; zeros for a text of nothing but white space.

        Raises:
            EmbedderFailed: the model raised, or its reply does not fit the texts.
        """
        filled = [i for i, text in enumerate(texts) if text.strip()]
        parts = []
        for start in range(0, len(filled), self._batch_size):
            rows = filled[start : start + self._batch_size]
            vectors = self._call([encodable(texts[i]) for i in rows])
            if self._dimensions is None:
                self._dimensions = vectors.shape[1]
            if vectors.shape[1] != self._dimensions:
                reason = f"vectors of {vectors.shape[1]} numbers after {self._dimensions} before"
                raise EmbedderFailed(self._name, reason)
            parts.append((rows, vectors))
        out = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for rows, vectors in parts:
            out[rows] = vectors
        return out

    def _call(self, texts: list[str]) -> Vectors:
        """Return (N, D) unit rows for N texts from one call."""
        try:
            reply = self._embeddings.embed_documents(texts)
        except Exception as error:  # every provider has its own exception tree
            reason = without_secrets(f"{type(error).__name__}: {error}", known_secrets(self._embeddings))
            raise EmbedderFailed(self._name, reason, retryable=may_pass(error)) from error
        if len(reply) != len(texts):
            raise EmbedderFailed(self._name, f"{len(reply)} vectors for {len(texts)} texts")
        if len({len(vector) for vector in reply}) != 1:
            raise EmbedderFailed(self._name, "vectors of different lengths in one reply")
        vectors = np.asarray(reply, dtype=np.float64)
        if not np.isfinite(vectors).all():
            raise EmbedderFailed(self._name, "a vector holds a number that is not finite")
        return unit_rows(vectors)


def _described(embeddings: Embeddings) -> str:
    """Name an embeddings object by its class and model."""
    for attribute in MODEL_ATTRIBUTES:
        model = getattr(embeddings, attribute, None)
        if isinstance(model, str) and model:
            return f"langchain-{type(embeddings).__name__}-{model}"
    return f"langchain-{type(embeddings).__name__}"


_NO_KEY = "none"
"""Placeholder for the key of a private server without one: the client requires some text."""


def openai_compatible(
    model: str,
    base_url: str | None = None,
    api_key: str | None = None,
    dimensions: int | None = None,
    batch_size: int = 256,
    timeout_s: float = 60.0,
    max_retries: int = 5,
) -> LangChainEmbedder:
    """Return an embedder for OpenAI, or a server with its protocol (vLLM, Ollama, TEI, LiteLLM, …).

    Args:
        model: the server's name of the model, for instance `text-embedding-3-small`.
        base_url: address up to `/v1`; None is OpenAI's own.
        api_key: None takes `OPENAI_API_KEY` from the environment; a private server may need none.
        dimensions: length of a vector, if the model leaves a choice.
        batch_size: texts per request.
        timeout_s: for one request.
        max_retries: after a transient failure, with growing pauses.

    Raises:
        MissingExtra: langchain-openai is not installed.
        ConfigError: neither key nor address is given.
    """
    key = api_key or os.environ.get("OPENAI_API_KEY")
    if key is None and base_url is None:
        raise ConfigError(
            "embedding=openai_compatible has no key; set OPENAI_API_KEY, or name your own server with "
            "embedding.base_url=http://HOST:PORT/v1"
        )
    embeddings = _embeddings(
        "openai",
        "langchain-openai",
        "embedding=openai_compatible",
        model=model,
        base_url=base_url,
        api_key=SecretStr(key or _NO_KEY),
        dimensions=dimensions,
        chunk_size=batch_size,
        timeout=timeout_s,
        max_retries=max_retries,
        # Otherwise token numbers of OpenAI's own tokenizer are sent, which is fetched first, and no other server reads.
        check_embedding_ctx_length=False,
        model_kwargs={"encoding_format": "float"},
    )
    return LangChainEmbedder(embeddings, _join_name("openai", model, dimensions), batch_size)


def bedrock(
    model: str,
    region: str | None = None,
    profile: str | None = None,
    endpoint_url: str | None = None,
    dimensions: int | None = None,
    batch_size: int = 64,
    timeout_s: float = 60.0,
    max_retries: int = 5,
) -> LangChainEmbedder:
    """Return an embedder for Amazon Bedrock; credentials are found as by every AWS tool.

    Args:
        model: Bedrock's id, for instance `amazon.titan-embed-text-v2:0` or `cohere.embed-multilingual-v3`.
        region: AWS region; None takes that of the environment or the profile.
        profile: profile in `~/.aws/credentials`.
        endpoint_url: address other than the region's own.
        dimensions: length of a vector, if the model leaves a choice.
        batch_size: texts per call; Titan still gets one text a request.
        timeout_s: for one request.
        max_retries: after a transient failure, with growing pauses.

    Raises:
        MissingExtra: langchain-aws is not installed.
        ConfigError: AWS finds no region or profile.
    """
    with requires("langchain-aws", "bedrock", "embedding=bedrock"):
        from botocore.config import Config
    config = Config(
        connect_timeout=timeout_s,
        read_timeout=timeout_s,
        retries={"total_max_attempts": max_retries + 1, "mode": "standard"},
    )
    embeddings = _embeddings(
        "bedrock",
        "langchain-aws",
        "embedding=bedrock",
        model=model,
        region_name=region,
        credentials_profile_name=profile,
        endpoint_url=endpoint_url,
        dimensions=dimensions,
        config=config,
    )
    return LangChainEmbedder(embeddings, _join_name("bedrock", model, dimensions), batch_size)


def _embeddings(provider: str, package: str, option: str, **settings: Any) -> Embeddings:
    """Make LangChain's object; `provider` is also the name of the extra that brings its package."""
    try:
        from langchain.embeddings import init_embeddings

        made: Embeddings = init_embeddings(provider=provider, **settings)
    except ImportError as error:
        raise MissingExtra(package, provider, option) from error
    except Exception as error:  # pydantic's, botocore's and openai's
        raise ConfigError(
            f"{option} cannot start: {' '.join(str(error).split())}"
            + ("; set AWS_REGION and credentials, or embedding.region=…" if provider == "bedrock" else "")
        ) from error
    return made


def _join_name(service: str, model: str, dimensions: int | None) -> str:
    return f"{service}-{model}" if dimensions is None else f"{service}-{model}-{dimensions}"
