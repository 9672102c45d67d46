"""Tests of `byokg.llm.usage`."""

from __future__ import annotations

from pathlib import Path

import pytest

from byokg.errors import ConfigError
from byokg.llm.chat_models import ScriptedChatModel
from byokg.llm.usage import token_counter
from byokg.text import estimate_tokens


class Spelling(ScriptedChatModel):
    """A model whose tokens are letters."""

    def get_token_ids(self, text: str) -> list[int]:
        """Return the letters' numbers."""
        return [ord(letter) for letter in text]


def test_without_a_tokenizer_tokens_are_estimated() -> None:
    assert token_counter() is estimate_tokens


def test_a_model_that_brings_its_tokenizer_counts_itself() -> None:
    assert token_counter("model", Spelling(replies=("x",)))("Heat") == 4


@pytest.mark.parametrize("model", [None, ScriptedChatModel(replies=("x",))])
def test_a_model_without_a_tokenizer_here_is_no_counter(model: ScriptedChatModel | None) -> None:
    with pytest.raises(ConfigError, match="tokens=model needs a language model that brings its tokenizer"):
        token_counter("model", model)


def test_an_unknown_way_to_count_names_the_others() -> None:
    pytest.importorskip("tiktoken")
    with pytest.raises(ConfigError, match=r"tokens=words is no way to count; choose estimate, model, .*o200k_base"):
        token_counter("words")


def test_an_encoding_of_tiktoken_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every byte a token, and one for `at`: Heat is H, e, at.
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"at": 256}
    encoding = tiktoken.Encoding("bytes", pat_str=r"\S+|\s", mergeable_ranks=ranks, special_tokens={"<|end|>": 257})
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, "gpt2", encoding)
    assert token_counter("gpt2")("Heat <|end|>") == 3 + 1 + 7  # what looks like a special token is text


def test_an_encoding_that_cannot_be_downloaded_says_where_to_put_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tiktoken = pytest.importorskip("tiktoken")

    def refused(*_: object) -> bytes:
        raise OSError("no network")

    monkeypatch.setattr(tiktoken.load, "read_file", refused)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(ConfigError, match=r"r50k_base cannot be downloaded: no network; .*TIKTOKEN_CACHE_DIR"):
        token_counter("r50k_base")
