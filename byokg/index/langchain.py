"""Any langchain-core `Embeddings` as an embedder: hosted models, local servers, whatever has a LangChain class."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from byokg.errors import ConfigError, EmbedderFailed
from byokg.index.embedder import Vectors, unit_rows

if TYPE_CHECKING:  # half a second to import, and only the annotations need it
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
            vectors = self._call([texts[i] for i in rows])
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
