"""How many tokens a text has, for budgets and reports."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from byokg.errors import ConfigError, MissingExtra
from byokg.graph.schema_text import estimate_tokens

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel

ESTIMATE = "estimate"
"""Counts without a tokenizer, mostly a little too many; see `estimate_tokens`."""

MODEL = "model"
"""Counts with the tokenizer of a model that runs in this process."""


def token_counter(name: str = ESTIMATE, model: BaseChatModel | None = None) -> Callable[[str], int]:
    """Return what counts the tokens of a text.

    The choice decides which evidence fits a prompt, so it is made by name and never by what happens to be installed.

    Args:
        name: `estimate`; `model`, for models that run in this process; or an encoding of tiktoken (`o200k_base`,
            `cl100k_base`), which is downloaded once, or read from the folder named by `TIKTOKEN_CACHE_DIR`.
        model: whose tokenizer `model` means.

    Raises:
        MissingExtra: an encoding is named, and tiktoken is not installed.
        ConfigError: there is no such encoding, it cannot be had, or `model` has no tokenizer here.
    """
    if name == ESTIMATE:
        return estimate_tokens
    if name == MODEL:
        return _counter_of(model)
    encoding = _encoding(name)
    return lambda text: len(encoding.encode_ordinary(text))


def _counter_of(model: BaseChatModel | None) -> Callable[[str], int]:
    # LangChain's default counts with the tokenizer of GPT-2, whatever the model is, and downloads it.
    from langchain_core.language_models.base import BaseLanguageModel

    if model is None or type(model).get_token_ids is BaseLanguageModel.get_token_ids:
        raise ConfigError(
            "tokens=model needs a language model that brings its tokenizer (llm=hf_local); "
            f"use tokens={ESTIMATE}, or an encoding of tiktoken such as tokens=o200k_base"
        )
    return model.get_num_tokens


@lru_cache(maxsize=4)
def _encoding(name: str) -> Any:
    try:
        import tiktoken
    except ImportError as error:
        raise MissingExtra("tiktoken", "openai", f"counting tokens with {name}") from error
    known = tiktoken.list_encoding_names()
    if name not in known:
        raise ConfigError(f"tokens={name} is no way to count; choose {ESTIMATE}, {MODEL}, {', '.join(known)}")
    try:
        return tiktoken.get_encoding(name)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(
            f"the encoding {name} cannot be downloaded: {reason}; copy its file into the folder named by "
            f"TIKTOKEN_CACHE_DIR, or use tokens={ESTIMATE}"
        ) from error
