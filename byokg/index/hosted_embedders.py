"""Hosted embedding models through LangChain: Amazon Bedrock, and whatever speaks OpenAI's protocol.

Any langchain-core `Embeddings` as an embedder: hosted models, local servers, whatever has a LangChain class.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import SecretStr

from byokg.errors import ConfigError, EmbedderFailed, MissingExtra
from byokg.index.embedders import Vectors, unit_rows
from byokg.text import encodable

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

MODEL_ATTRIBUTES = ("model", "model_name", "model_id", "deployment")
"""Where LangChain's classes keep the model's name; they agree on no single place."""

_PASSING_CODES = frozenset(
    {
        "ThrottlingException",
        "TooManyRequestsException",
        "ServiceUnavailableException",
        "InternalServerException",
        "ModelNotReadyException",
        "ModelTimeoutException",
    }
)
"""What AWS calls failures that may pass."""

_CONNECTION = re.compile(r"Connect|Timeout|Network|Transport|ReadError|WriteError|Protocol|HTTPClient|Closed")
_DEEPEST_CHAIN = 8
_SHORTEST_SECRET = 8


class LangChainEmbedder:
    """Encodes texts through a LangChain embeddings object.

    Args:
        embeddings: what answers; texts are sent to it as documents.
        name: identifies model and settings in caches and run records; None takes class and model name.
        batch_size: texts per call.

    Raises:
        ConfigError: `batch_size` is below 1.
    """

    def __init__(self, embeddings: Embeddings, name: str | None = None, batch_size: int = 256) -> None:
        if batch_size < 1:
            raise ConfigError(f"batch_size of the embedder is {batch_size}; give 1 or more")
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
            reason = _without_secrets(f"{type(error).__name__}: {error}", self._embeddings)
            raise EmbedderFailed(self._name, reason, retryable=_passing(error)) from error
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


def _passing(error: BaseException) -> bool:
    """Tell whether a provider's failure may pass: no connection, a timeout, a rate limit, a server's fault."""
    cause: BaseException | None = error
    for _ in range(_DEEPEST_CHAIN):
        if cause is None:
            break
        if isinstance(cause, (ConnectionError, TimeoutError)):
            return True
        status, code = _said(cause)
        if status is not None or code:
            return code in _PASSING_CODES or (status is not None and (status in {408, 409, 429} or status >= 500))
        # No provider's package is imported here; their names for these agree.
        if _CONNECTION.search(type(cause).__name__):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _said(error: BaseException) -> tuple[int | None, str]:
    """Return HTTP status and error code of what a service said; neither where it said nothing."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return status if isinstance(status, int) else None, str(response.get("Error", {}).get("Code", ""))
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None, ""


def _without_secrets(text: str, embeddings: Embeddings) -> str:
    """Leave out of a message what the embeddings object keeps secret."""
    for value in vars(embeddings).values():
        reveal = getattr(value, "get_secret_value", None)
        if callable(reveal) and len(secret := str(reveal())) >= _SHORTEST_SECRET:
            text = text.replace(secret, "…")
    return text


_NO_KEY = "none"
"""Sent where no key is given to a server of one's own: the client insists on some."""


def openai_compatible(
    model: str,
    base_url: str | None = None,
    api_key: str | None = None,
    dimensions: int | None = None,
    batch_size: int = 256,
    timeout_s: float = 60.0,
    max_retries: int = 5,
) -> LangChainEmbedder:
    """Return an embedder that asks OpenAI, or a server that speaks its protocol (vLLM, Ollama, TEI, LiteLLM, …).

    Args:
        model: as the server calls it, for instance `text-embedding-3-small`.
        base_url: address up to `/v1`; None is OpenAI's own.
        api_key: None takes `OPENAI_API_KEY` from the environment; a server of one's own may need none.
        dimensions: length of a vector, where the model leaves a choice.
        batch_size: texts per request.
        timeout_s: for one request.
        max_retries: after a failure that may pass, with growing pauses.

    Raises:
        MissingExtra: langchain-openai is not installed.
        ConfigError: neither key nor address is there.
    """
    try:
        from langchain_openai import OpenAIEmbeddings
    except ImportError as error:
        raise MissingExtra("langchain-openai", "openai", "embedding=openai_compatible") from error
    key = api_key or os.environ.get("OPENAI_API_KEY")
    if key is None and base_url is None:
        raise ConfigError(
            "embedding=openai_compatible has no key; set OPENAI_API_KEY, or name your own server with "
            "embedding.base_url=http://HOST:PORT/v1"
        )
    embeddings = OpenAIEmbeddings(
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
    return LangChainEmbedder(embeddings, _named("openai", model, dimensions), batch_size)


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
    """Return an embedder that asks Amazon Bedrock; credentials are found as by every AWS tool.

    Args:
        model: Bedrock's id, for instance `amazon.titan-embed-text-v2:0` or `cohere.embed-multilingual-v3`.
        region: AWS region; None takes that of the environment or the profile.
        profile: profile in `~/.aws/credentials`.
        endpoint_url: address other than the region's own.
        dimensions: length of a vector, where the model leaves a choice.
        batch_size: texts per call; Titan still gets one text a request.
        timeout_s: for one request.
        max_retries: after a failure that may pass, with growing pauses.

    Raises:
        MissingExtra: langchain-aws is not installed.
        ConfigError: AWS finds no region or profile.
    """
    try:
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
        from langchain_aws import BedrockEmbeddings
    except ImportError as error:
        raise MissingExtra("langchain-aws", "bedrock", "embedding=bedrock") from error
    config = Config(
        connect_timeout=timeout_s,
        read_timeout=timeout_s,
        retries={"total_max_attempts": max_retries + 1, "mode": "standard"},
    )
    try:
        embeddings = BedrockEmbeddings(
            model_id=model,
            region_name=region,
            credentials_profile_name=profile,
            endpoint_url=endpoint_url,
            dimensions=dimensions,
            config=config,
        )
    except (BotoCoreError, ValueError) as error:
        raise ConfigError(
            f"embedding=bedrock cannot start: {error}; set AWS_REGION and credentials, or embedding.region=…"
        ) from error
    return LangChainEmbedder(embeddings, _named("bedrock", model, dimensions), batch_size)


def _named(service: str, model: str, dimensions: int | None) -> str:
    return f"{service}-{model}" if dimensions is None else f"{service}-{model}-{dimensions}"
