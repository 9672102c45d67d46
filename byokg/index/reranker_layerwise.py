"""Rerankers that are language models with a score behind each layer, such as bge-reranker-v2-minicpm-layerwise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from byokg.errors import ConfigError, MissingExtra
from byokg.index.reranker import Scores

MINICPM = "BAAI/bge-reranker-v2-minicpm-layerwise"

PROMPT = (
    "Given a query A and a passage B, determine whether the passage contains an answer to the query by providing a "
    "prediction of either 'Yes' or 'No'."
)
"""What the model was trained with; it stands behind query and passage."""


class LayerwiseReranker:
    """Rates with a causal language model that can stop after any of its later layers.

    A pair is read as `A: question`, `B: text` and the prompt, on a line each, with the token that begins a text in
    front; the score is that of the last token. Pairs are padded on the left, so that it stands at the end of each. The
    model is loaded when it is first needed. Safe to share between threads, which wait for each other.

    Args:
        model: a folder, or a model-hub name.
        cutoff_layer: the layer whose score counts; later ones are not computed. 28 of 40 is what the model's card
            shows, 8 the first that has a score.
        trust_remote_code: let the model's own Python code run, without which it cannot be loaded: transformers has no
            such architecture. Read it first, and name a `revision`, so that it stays what was read.
        device: `cpu`, `cuda`, …; None takes a GPU where there is one.
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
        trust_remote_code: bool = False,
        device: str | None = None,
        batch_size: int = 16,
        max_length: int = 1024,
        revision: str | None = None,
    ) -> None:
        for name, value in (("cutoff_layer", cutoff_layer), ("batch_size", batch_size), ("max_length", max_length)):
            if value < 1:
                raise ConfigError(f"{name} of the reranker is {value}; give 1 or more")
        self._model = model
        self._cutoff_layer = cutoff_layer
        self._trust_remote_code = trust_remote_code
        self._device = device
        self._batch_size = batch_size
        self._max_length = max_length
        self._revision = revision
        self._loaded: tuple[Any, Any] | None = None
        self._lock = Lock()

    @property
    def name(self) -> str:
        """Identify model and layer."""
        revision = f"@{self._revision}" if self._revision else ""
        return f"layerwise-{self._model}{revision}-layer{self._cutoff_layer}"

    def score(self, question: str, texts: Sequence[str]) -> Scores:
        """Return the scores of the chosen layer, rounded to six decimals: (N,).

        Raises:
            MissingExtra: torch or transformers is not installed.
            ConfigError: the model cannot be loaded, or gives no scores layer by layer.
        """
        if not texts:
            return np.zeros(0)
        with self._lock:
            model, tokenizer = self._load()
            pairs = self._encoded(tokenizer, question, texts)
            # Pairs of like length go together, so that little is padded.
            order = np.argsort([len(pair) for pair in pairs], kind="stable")
            scores = np.empty(len(texts))
            for start in range(0, len(order), self._batch_size):
                part = order[start : start + self._batch_size]
                scores[part] = self._forward(model, tokenizer, [pairs[at] for at in part.tolist()])
        return np.round(scores, 6)

    def _encoded(self, tokenizer: Any, question: str, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each pair, prompt and all."""

        def tokens(text: str) -> list[int]:
            return list(tokenizer(text, add_special_tokens=False)["input_ids"])

        line, prompt = tokens("\n"), tokens(PROMPT)
        start = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
        asked = [*start, *tokens(f"A: {question}")[: self._max_length * 3 // 4], *line]
        room = max(1, self._max_length - len(asked))
        return [[*asked, *tokens(f"B: {text}")[:room], *line, *prompt] for text in texts]

    def _forward(self, model: Any, tokenizer: Any, pairs: Sequence[Sequence[int]]) -> Scores:
        """Return the score of each of B pairs: (B,)."""
        import torch

        longest = max(map(len, pairs))
        padding = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id or 0
        ids = [[padding] * (longest - len(pair)) + list(pair) for pair in pairs]
        mask = [[0] * (longest - len(pair)) + [1] * len(pair) for pair in pairs]
        with torch.inference_mode():
            found = model(
                input_ids=torch.tensor(ids, device=model.device),
                attention_mask=torch.tensor(mask, device=model.device),
                cutoff_layers=[self._cutoff_layer],
                return_dict=True,
            )
        # One tensor for each layer asked for, (B, T) or (B, T, 1).
        layers = found.logits if isinstance(found.logits, (tuple, list)) else [found.logits]
        scores = layers[-1][:, -1].float().cpu().numpy()
        if scores.size != len(pairs):
            raise ConfigError(
                f"the model {self._model!r} gives {scores.size // len(pairs):,} numbers where a layerwise reranker "
                f"gives one; give one such as {MINICPM}"
            )
        return np.asarray(scores.reshape(-1), np.float64)

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is not None:
            return self._loaded
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            raise MissingExtra(error.name or "transformers", "local", f"the reranker {self._model!r}") from error
        device = self._device or ("cuda" if torch.cuda.is_available() else "cpu")
        folder = Path(self._model).expanduser()
        place = str(folder) if folder.is_dir() else self._model
        chosen = {"revision": self._revision, "trust_remote_code": self._trust_remote_code}
        # Half precision is what the model was made in, and slow without a GPU.
        dtype = torch.float32 if torch.device(device).type == "cpu" else torch.bfloat16
        try:
            tokenizer = AutoTokenizer.from_pretrained(place, **chosen)
            model = AutoModelForCausalLM.from_pretrained(place, torch_dtype=dtype, **chosen).to(device).eval()
        except (OSError, ValueError, RuntimeError, ImportError, AttributeError, TypeError) as error:
            reason = " ".join(str(error).split())[:300]
            hint = "" if self._trust_remote_code else "; it may need trust_remote_code=true, which runs its own code"
            raise ConfigError(f"the reranker {self._model!r} cannot be loaded on {device}: {reason}{hint}") from error
        self._loaded = (model, tokenizer)
        return self._loaded
