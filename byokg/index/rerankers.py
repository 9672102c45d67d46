"""Rerankers: how well each of some texts fits a question.

A bi-encoder compares the vectors of an embedder. A cross-encoder reads question and text together, which is slower and
better. A layerwise reranker is a language model with a score behind each layer, such as
bge-reranker-v2-minicpm-layerwise: transformers has no such architecture, and the model's own code was written for its
version 4.38, but MiniCPM is Llama with two constant factors, on the embeddings and on what each layer adds, and factors
can be multiplied into the weights.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from byokg.errors import ConfigError, at_least, requires
from byokg.index.embedders import Embedder, Vectors, exact
from byokg.text.names import encodable

Scores = npt.NDArray[np.float64]


class Reranker(Protocol):
    """Rates texts against a question; scores of two rerankers do not compare."""

    @property
    def name(self) -> str:
        """Identify model and settings, for run records."""

    def score(self, question: str, texts: Sequence[str]) -> Scores:
        """Return how well each of N texts fits, higher is better: (N,) float64."""


class BiEncoder:
    """Rates by cosine, question and text encoded apart: the quickest reranker, and it needs no model of its own.

    Args:
        embedder: encodes both.
        kept: vectors of texts that are kept, since a graph's relations come up in every question.
    """

    def __init__(self, embedder: Embedder, kept: int = 20_000) -> None:
        self._embedder = embedder
        self._kept = kept
        self._vectors: dict[str, Vectors] = {}

    @property
    def name(self) -> str:
        """Identify the embedder."""
        return f"bi-encoder-{self._embedder.name}"

    def score(self, question: str, texts: Sequence[str]) -> Scores:
        """Return cosines, rounded to six decimals: (N,) in [-1, 1]; 0 if the embedder has no vector for any word."""
        if not texts:
            return np.zeros(0)
        cosines: Scores = exact(self._encoded(texts)) @ exact(self._encoded([question])[0])
        return np.round(cosines, 6)

    def _encoded(self, texts: Sequence[str]) -> Vectors:
        vectors = {text: found for text in texts if (found := self._vectors.get(text)) is not None}
        new = [text for text in dict.fromkeys(texts) if text not in vectors]
        if new:
            encoded = dict(zip(new, self._embedder.encode(new), strict=True))
            vectors |= encoded
            if len(self._vectors) + len(encoded) > self._kept:
                self._vectors = {}
            self._vectors.update(encoded)
        return np.concatenate([vectors[text] for text in texts]).reshape(len(texts), -1)  # quicker than `np.stack`


class _ModelReranker(ABC):
    """Rates with a model that is loaded when it is first needed; threads that share it wait for each other."""

    def __init__(self, model: str, device: str | None, revision: str | None, **settings: int) -> None:
        at_least(1, "rates nothing", **settings)
        self._model = model
        self._device = device
        self._revision = revision
        self._batch_size = settings["batch_size"]
        self._max_length = settings["max_length"]
        self._place = f"{model}@{revision}" if revision else model
        self._loaded: Any = None
        self._lock = Lock()

    def score(self, question: str, texts: Sequence[str]) -> Scores:
        """Return the model's scores, rounded to six decimals: (N,).

        Raises:
            MissingExtra: the model's library is not installed.
            ConfigError: the model cannot be loaded, or is no reranker of this kind.
        """
        if not texts:
            return np.zeros(0)
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return np.round(self._rate(self._loaded, encodable(question), [encodable(text) for text in texts]), 6)

    @abstractmethod
    def _load(self) -> Any:
        """Return the model with its tokenizer and settings."""

    @abstractmethod
    def _rate(self, loaded: Any, question: str, texts: Sequence[str]) -> Scores:
        """Return the score of each text: (N,)."""


BGE_BASE = "BAAI/bge-reranker-base"


class CrossEncoderReranker(_ModelReranker):
    """Rates with a sentence-transformers cross-encoder, loaded on first use.

    Args:
        model: a folder, or a model-hub name.
        device: `cpu`, `cuda`, `cuda:1`, …; None lets sentence-transformers choose.
        batch_size: pairs per forward pass.
        max_length: tokens of question and text together; the longer one is cut to it.
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
        super().__init__(model, device, revision, batch_size=batch_size, max_length=max_length)

    @property
    def name(self) -> str:
        """Identify the model."""
        return f"cross-encoder-{self._place}"

    def _rate(self, loaded: Any, question: str, texts: Sequence[str]) -> Scores:
        """Return the model's raw scores (logits)."""
        pairs = [(question, text) for text in texts]
        return np.asarray(loaded.predict(pairs, batch_size=self._batch_size, show_progress_bar=False), np.float64)

    def _load(self) -> Any:
        with requires("sentence-transformers", "embeddings", f"the reranker {self._model!r}"):
            import torch
            from sentence_transformers import CrossEncoder
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
        return model


MINICPM = "BAAI/bge-reranker-v2-minicpm-layerwise"

PROMPT = (
    "Given a query A and a passage B, determine whether the passage contains an answer to the query by providing a "
    "prediction of either 'Yes' or 'No'."
)
"""Prompt of the model's training; it stands behind query and passage."""


class LayerwiseReranker(_ModelReranker):
    """Rates with a causal language model that stops after one of its later layers.

    A pair is read as `A: question`, `B: text` and the prompt, on a line each, after the token that begins a text; the
    score is that of the last token. Pairs are padded on the left, so that it stands at the end of each. The model is
    loaded on first use, and of its layers only those that are computed.

    Args:
        model: a folder, or a model-hub name.
        cutoff_layer: the layer whose score counts. 28 of 40 is the example of the model's card, 8 the first with a
            score.
        device: `cpu`, `cuda`, …; None takes a GPU if there is one.
        batch_size: pairs per forward pass.
        max_length: tokens of question and text together; a question is cut at three quarters of them.
        revision: branch, tag or commit of a model-hub name.

    Raises:
        ConfigError: a setting is out of range.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Graph Reranker", the more powerful reranker; prompt and layers are those
    of the model's card.
    """

    def __init__(
        self,
        model: str = MINICPM,
        cutoff_layer: int = 28,
        device: str | None = None,
        batch_size: int = 16,
        max_length: int = 1024,
        revision: str | None = None,
    ) -> None:
        super().__init__(
            model, device, revision, cutoff_layer=cutoff_layer, batch_size=batch_size, max_length=max_length
        )
        self._cutoff_layer = cutoff_layer

    @property
    def name(self) -> str:
        """Identify model and layer."""
        return f"layerwise-{self._place}-layer{self._cutoff_layer}"

    def _rate(self, loaded: Any, question: str, texts: Sequence[str]) -> Scores:
        """Return the scores of the chosen layer."""
        model, head, tokenizer = loaded
        pairs = self._encoded(tokenizer, question, texts)
        # Pairs of like length go together, so that little is padded.
        order = np.argsort([len(pair) for pair in pairs], kind="stable")
        scores = np.empty(len(texts))
        for start in range(0, len(order), self._batch_size):
            part = order[start : start + self._batch_size]
            scores[part] = _forward(model, head, [pairs[at] for at in part.tolist()])
        return scores

    def _encoded(self, tokenizer: Any, question: str, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each pair, prompt and all."""

        def tokens(text: str) -> list[int]:
            return list(tokenizer(text, add_special_tokens=False)["input_ids"])

        line, prompt = tokens("\n"), tokens(PROMPT)
        start = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
        asked = [*start, *tokens(f"A: {question}")[: self._max_length * 3 // 4], *line]
        room = max(1, self._max_length - len(asked))
        return [[*asked, *tokens(f"B: {text}")[:room], *line, *prompt] for text in texts]

    def _load(self) -> tuple[Any, Any, Any]:
        """Return the model's first layers, the (1, D) weights that make a score of their output, and the tokenizer."""
        with requires("transformers", "local", f"the reranker {self._model!r}"):
            import torch
            from transformers import LlamaModel, PreTrainedTokenizerFast
        device = self._device or ("cuda" if torch.cuda.is_available() else "cpu")
        folder = Path(self._model).expanduser()
        place = str(folder) if folder.is_dir() else self._model
        # The model was trained in half precision, which is slow without a GPU.
        dtype = torch.float32 if torch.device(device).type == "cpu" else torch.bfloat16
        try:
            said = _read_model_config(place, self._revision)
            config, head_name = self._described(said)
            model = LlamaModel.from_pretrained(place, config=config, revision=self._revision, torch_dtype=dtype)
            head = _tensor(place, self._revision, head_name).to(device, dtype)
            tokenizer = PreTrainedTokenizerFast.from_pretrained(place, revision=self._revision)
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            reason = " ".join(str(error).split())[:300]
            raise ConfigError(
                f"the reranker {self._model!r} cannot be loaded: {reason}; give {MINICPM} or a folder that holds it"
            ) from error
        with torch.no_grad():
            model.embed_tokens.weight.mul_(said["scale_emb"])
            share = said["scale_depth"] / math.sqrt(said["num_hidden_layers"])
            for layer in model.layers:
                layer.self_attn.o_proj.weight.mul_(share)
                layer.mlp.down_proj.weight.mul_(share)
        return model.to(device).eval(), head, tokenizer

    def _described(self, said: Mapping[str, Any]) -> tuple[Any, str]:
        """Return the configuration of the layers up to the chosen one, and the name of the score's weights."""
        from transformers import LlamaConfig

        if said.get("architectures") != [_ARCHITECTURE] or not said["head_multi"] or said["head_type"] != "simple":
            raise ConfigError(
                f"the model {self._model!r} has the architecture {', '.join(said.get('architectures') or ['(none)'])}, "
                f"and not {_ARCHITECTURE} with a score a layer; give {MINICPM} or one made from it, or use "
                "CrossEncoderReranker"
            )
        first, last = said["start_layer"], said["num_hidden_layers"]
        if not first <= self._cutoff_layer <= last:
            raise ConfigError(
                f"layer {self._cutoff_layer} of the reranker {self._model!r} has no score; "
                f"give a cutoff_layer from {first} to {last}"
            )
        config = LlamaConfig(**{key: said[key] for key in _TAKEN if key in said})
        config.num_hidden_layers = self._cutoff_layer
        return config, f"lm_head.{self._cutoff_layer - first}.linear_head.weight"


_ARCHITECTURE = "LayerWiseMiniCPMForCausalLM"

_TAKEN = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "hidden_act"),
    *("max_position_embeddings", "rms_norm_eps", "rope_theta", "attention_bias"),
)
"""What MiniCPM's configuration shares with Llama's."""

_INDEX, _WEIGHTS = "model.safetensors.index.json", "model.safetensors"


def _read_model_config(place: str, revision: str | None) -> dict[str, Any]:
    """Read `config.json`; no code is run for it."""
    from transformers import PretrainedConfig

    said: dict[str, Any] = PretrainedConfig.get_config_dict(place, revision=revision)[0]
    return said


def _tensor(place: str, revision: str | None, name: str) -> Any:
    """Read one tensor out of a model's weights."""
    from safetensors import safe_open
    from transformers.utils import cached_file

    index = cached_file(place, _INDEX, revision=revision, _raise_exceptions_for_missing_entries=False)
    file = _WEIGHTS if index is None else json.loads(Path(index).read_bytes())["weight_map"][name]
    with safe_open(cached_file(place, file, revision=revision), "pt") as tensors:
        return tensors.get_tensor(name)


def _forward(model: Any, head: Any, pairs: Sequence[Sequence[int]]) -> Scores:
    """Return the score of each of B pairs of tokens: (B,)."""
    import torch

    longest = max(map(len, pairs))
    ids = [[0] * (longest - len(pair)) + list(pair) for pair in pairs]  # what stands for nothing is masked
    mask = [[0] * (longest - len(pair)) + [1] * len(pair) for pair in pairs]
    with torch.inference_mode():
        states = model(
            input_ids=torch.tensor(ids, device=model.device),
            attention_mask=torch.tensor(mask, device=model.device),
            use_cache=False,
        ).last_hidden_state
        scores = states[:, -1] @ head.T
    return np.asarray(scores.float().cpu().numpy().reshape(-1), np.float64)
