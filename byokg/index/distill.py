"""Static embedders made from sentence-transformers models."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from byokg.errors import ConfigError, GraphExists, MissingExtra
from byokg.index.sentence import located_model

Numbers = Literal["float32", "float16", "int8"]

FILES = ("config.json", "model.safetensors", "tokenizer.json")
"""What a static embedder consists of."""


def distill(
    model: str,
    folder: Path,
    dimensions: int = 128,
    quantize: Numbers = "int8",
    revision: str | None = None,
    device: str = "cpu",
    called: str | None = None,
) -> None:
    """Write a static embedder: each token's vector is what the model makes of the token alone, reduced by PCA.

    Tokens are weighted by their rank in the vocabulary, so that frequent words count less. Two runs on one machine
    give equal bytes (on a CPU); on another processor single numbers may differ in the last place.

    Args:
        model: `minilm`, a folder, or a model-hub name such as `BAAI/bge-m3`.
        folder: an empty one; what is written appears file by file, so give one that is renamed afterwards
            (`graph.folder.new_folder`).
        dimensions: length of a vector, at most the model's own.
        quantize: how numbers are kept.
        revision: branch, tag or commit of a model-hub name.
        device: `cpu`, `cuda`, …
        called: what to record as the model's name; None takes that of a folder, or the hub's.

    Raises:
        MissingExtra: model2vec's distillation, or for `minilm` its package, is not installed.
        ConfigError: the model cannot be loaded or distilled, or has fewer dimensions.

    Source: model2vec (MinishLab), https://github.com/MinishLab/model2vec.
    """
    place, name = located_model(model, revision)
    try:
        import torch
        from model2vec.distill import distill_from_model
        from transformers import AutoModel, AutoTokenizer
    except ImportError as error:
        raise MissingExtra("model2vec[distill]", "distill", "making a static embedder") from error

    with _reproducible(torch, strictly=device == "cpu"):
        # A folder is complete by itself, so nothing may be looked up on a hub for it.
        local = isinstance(place, Path)
        try:
            network = AutoModel.from_pretrained(str(place), revision=revision, local_files_only=local)
            tokenizer = AutoTokenizer.from_pretrained(str(place), revision=revision, local_files_only=local)
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise ConfigError(
                f"the model {model!r} cannot be loaded: {reason}; give minilm, a folder, or a model-hub name"
            ) from error
        width = int(network.config.hidden_size)
        if dimensions > width:
            raise ConfigError(f"{dimensions} dimensions are asked for, {model!r} has {width}; use {width} or fewer")
        try:
            static = distill_from_model(network, tokenizer, device=device, pca_dims=dimensions, quantize_to=quantize)
        except (OSError, ValueError, RuntimeError, TypeError, KeyError) as error:
            raise ConfigError(f"the model {model!r} cannot be distilled: {error}") from error
    # Long texts are averaged whole; model2vec would silently drop what follows token 512.
    static.max_length = None
    with tempfile.TemporaryDirectory() as scratch:
        static.save_pretrained(scratch)
        config = json.loads((Path(scratch) / "config.json").read_text("utf-8"))
        # model2vec records the folder it read, which may name a machine.
        config["tokenizer_name"] = called or name
        (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", "utf-8")
        for file in ("model.safetensors", "tokenizer.json"):
            shutil.copyfile(Path(scratch) / file, folder / file)


def refuse_taken(folder: Path, overwrite: bool) -> None:
    """Raise `GraphExists` unless a place is free, or holds a static embedder that may be overwritten."""
    if not folder.exists() or (folder.is_dir() and next(folder.iterdir(), None) is None):
        return
    if not folder.is_dir() or not all((folder / file).is_file() for file in FILES):
        raise GraphExists(folder, "something else is there; choose another folder")
    if not overwrite:
        raise GraphExists(folder, "an embedder is already there; pass overwrite=True or choose another folder")


@contextmanager
def _reproducible(torch: Any, strictly: bool) -> Iterator[None]:
    """Have sums added in the same order in every run (where the device can), and leave torch as it was."""
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=not strictly)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(deterministic)
