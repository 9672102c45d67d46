"""Any langchain-core `Embeddings` as an embedder: hosted models, local servers, whatever has a LangChain class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from byokg.errors import ConfigError, EmbedderFailed
from byokg.index.embedder import Vectors, unit_rows

if TYPE_CHECKING:  # half a second to import, and only the annotations need it
    from langchain_core.embeddings import Embeddings

MODEL_ATTRIBUTES = ("model", "model_name", "model_id", "deployment")
"""Where LangChain's classes keep the model's name; they agree on no single place."""


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
            raise EmbedderFailed(self._name, f"{type(error).__name__}: {error}", retryable=_passing(error)) from error
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


def _passing(error: Exception) -> bool:
    """Tell whether a provider's failure may pass: no connection, a timeout, a rate limit, a server's fault."""
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    status = getattr(error, "status_code", None)
    return isinstance(status, int) and (status in {408, 409, 429} or status >= 500)
