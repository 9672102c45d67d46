"""Cross-encoders as rerankers: question and text are read together, which is slower and better than apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from byokg.errors import ConfigError, MissingExtra
from byokg.index.reranker import Scores

BGE_BASE = "BAAI/bge-reranker-base"


class CrossEncoderReranker:
    """Rates with a sentence-transformers cross-encoder; it is loaded when it is first needed.

    Safe to share between threads, which wait for each other.

    Args:
        model: a folder, or a model-hub name.
        device: `cpu`, `cuda`, `cuda:1`, …; None lets sentence-transformers choose.
        batch_size: pairs per forward pass.
        max_length: tokens of question and text together; what exceeds them is cut off the longer one.
        revision: branch, tag or commit of a model-hub name.

    Raises:
        ConfigError: a setting is out of range.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Graph Reranker", the lightweight reranker.
    """

    def __init__(
        self,
        model: str = BGE_BASE,
        device: str | None = None,
        batch_size: int = 64,
        max_length: int = 512,
        revision: str | None = None,
    ) -> None:
        for name, value in (("batch_size", batch_size), ("max_length", max_length)):
            if value < 1:
                raise ConfigError(f"{name} of the reranker is {value}; give 1 or more")
        self._model = model
        self._device = device
        self._batch_size = batch_size
        self._max_length = max_length
        self._revision = revision
        self._loaded: Any = None
        self._lock = Lock()

    @property
    def name(self) -> str:
        """Identify the model."""
        return f"cross-encoder-{self._model}" + (f"@{self._revision}" if self._revision else "")

    def score(self, question: str, texts: Sequence[str]) -> Scores:
        """Return the model's raw scores (logits), rounded to six decimals: (N,).

        Raises:
            MissingExtra: sentence-transformers is not installed.
            ConfigError: the model cannot be loaded, or gives several scores for a pair.
        """
        if not texts:
            return np.zeros(0)
        with self._lock:
            model = self._load()
            scores = model.predict(
                [(question, text) for text in texts], batch_size=self._batch_size, show_progress_bar=False
            )
        rated: Scores = np.asarray(scores, np.float64)
        return np.round(rated, 6)

    def _load(self) -> Any:
        if self._loaded is not None:
            return self._loaded
        try:
            import torch
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise MissingExtra("sentence-transformers", "embeddings", f"the reranker {self._model!r}") from error
        folder = Path(self._model).expanduser()
        try:
            model = CrossEncoder(
                str(folder) if folder.is_dir() else self._model,
                device=self._device,
                revision=self._revision,
                max_length=self._max_length,
                local_files_only=folder.is_dir(),  # a folder is complete by itself
                # By default one number a pair goes through a sigmoid, in which the best ones become equal.
                activation_fn=torch.nn.Identity(),
            )
        except (OSError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:300]
            raise ConfigError(
                f"the cross-encoder {self._model!r} cannot be loaded: {reason}; give a folder or a model-hub name"
            ) from error
        if model.num_labels != 1:
            raise ConfigError(
                f"the cross-encoder {self._model!r} gives {model.num_labels} scores for a pair; give a reranker, "
                f"which gives one, such as {BGE_BASE}"
            )
        self._loaded = model
        return model
