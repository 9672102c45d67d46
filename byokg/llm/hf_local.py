"""A causal language model of the Hugging Face format, run in this process with transformers."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from byokg.errors import ConfigError, LlmInvalidRequest, MissingExtra

_ROLES = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}


class LocalChatModel(BaseChatModel):
    """Generates with a model that is loaded at the first call, one reply at a time.

    Prompts are written with the tokenizer's chat template; a model without one (a base model) gets the messages' texts
    with blank lines between. Sampling is seeded from the prompt and the sample's number (`sample` in the metadata of
    the call), so equal calls give equal replies on equal hardware.

    Attributes:
        model: folder, or name on the model hub.
        device: `cpu`, `cuda`, `cuda:1`; None takes a GPU where there is one.
        dtype: `bfloat16`, `float16`, `float32`; None takes what the model was saved with.
        max_tokens: longest reply.
        temperature: 0 always takes the likeliest token.
        revision: branch, tag or commit on the model hub.

    Raises:
        MissingExtra: torch or transformers is not installed.
    """

    model: str
    device: str | None = None
    dtype: str | None = None
    max_tokens: int = 1024
    temperature: float = 0.0
    revision: str | None = None

    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _loaded: tuple[Any, Any] | None = PrivateAttr(default=None)

    @property
    def _llm_type(self) -> str:
        return "hf_local"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "dtype": self.dtype,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "revision": self.revision,
        }

    def load(self) -> tuple[Any, Any]:
        """Return model and tokenizer, loaded once; constrained decoding works on these.

        Raises:
            MissingExtra: torch or transformers is not installed.
            ConfigError: there is no such model, or it cannot be loaded.
        """
        with self._lock:
            return self._load()

    def get_token_ids(self, text: str) -> list[int]:
        """Return the tokens of a text by the model's own tokenizer; loads the model. Raises like `load`."""
        _, tokenizer = self.load()
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is not None:
            return self._loaded
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            raise MissingExtra(error.name or "transformers", "local", "llm=hf_local") from error
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        dtype = "auto" if self.dtype is None else getattr(torch, self.dtype, None)
        if dtype is None:
            raise ConfigError(f"llm.dtype={self.dtype} is unknown to torch; give bfloat16, float16 or float32")
        place = str(Path(self.model).expanduser()) if Path(self.model).expanduser().exists() else self.model
        try:
            tokenizer = AutoTokenizer.from_pretrained(place, revision=self.revision)
            model = AutoModelForCausalLM.from_pretrained(place, revision=self.revision, torch_dtype=dtype)
            model = model.to(device).eval()
        except (OSError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:300]
            raise ConfigError(f"llm.model={self.model} cannot be loaded on {device}: {reason}") from error
        self._loaded = (model, tokenizer)
        return self._loaded

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        with self._lock:
            model, tokenizer = self._load()
            sample = int((run_manager.metadata if run_manager else {}).get("sample", 0))
            return self._decoded(model, tokenizer, messages, sample)

    def _decoded(self, model: Any, tokenizer: Any, messages: list[BaseMessage], sample: int) -> ChatResult:
        import torch

        turns = [{"role": _ROLES.get(message.type, "user"), "content": str(message.content)} for message in messages]
        if tokenizer.chat_template:
            prompt = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
            encoded = tokenizer(prompt, return_tensors="pt", add_special_tokens=False)
        else:
            prompt = "\n\n".join(turn["content"] for turn in turns)
            encoded = tokenizer(prompt, return_tensors="pt")
        ids = encoded["input_ids"].to(model.device)  # (1, T)
        longest = getattr(model.config, "max_position_embeddings", None)
        if longest is not None and ids.shape[1] + self.max_tokens > longest:
            raise LlmInvalidRequest(
                f"hf_local/{self.model}",
                f"the prompt has {ids.shape[1]:,} tokens, and with max_tokens={self.max_tokens:,} exceeds the model's "
                f"{longest:,}; shorten the context, or lower llm.max_tokens",
            )
        sampling = {"do_sample": True, "temperature": self.temperature} if self.temperature else {"do_sample": False}
        if self.temperature:
            digest = hashlib.sha256(f"{sample} {prompt}".encode("utf-8", "replace")).digest()
            torch.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
        with torch.inference_mode():
            generated = model.generate(
                ids,
                attention_mask=encoded["attention_mask"].to(model.device),
                max_new_tokens=self.max_tokens,
                pad_token_id=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id,
                **sampling,
            )
        new = generated[0, ids.shape[1] :]
        ends = model.generation_config.eos_token_id
        ends = set(ends) if isinstance(ends, list) else {ends}
        finished = len(new) > 0 and int(new[-1]) in ends
        usage = {"input_tokens": ids.shape[1], "output_tokens": len(new), "total_tokens": ids.shape[1] + len(new)}
        message = AIMessage(
            tokenizer.decode(new, skip_special_tokens=True),
            response_metadata={"finish_reason": "stop" if finished else "length", "model_name": self.model},
            usage_metadata=usage,
        )
        return ChatResult(generations=[ChatGeneration(message=message)])
