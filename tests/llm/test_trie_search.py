"""Tests of `byokg.llm.decoding.TrieSearch`, with models of random weights."""

from __future__ import annotations

import random
from typing import Any

import pytest

from byokg.errors import ConfigError
from byokg.llm.decoding import TokenTrie, TrieSearch
from tests.corpora import require

require("train", "torch", "transformers")

END, SIZE = 1, 60


def gemma() -> Any:
    """Return a model with sliding and full attention, as Gemma 3 has."""
    import transformers

    return transformers.Gemma3ForCausalLM(
        transformers.Gemma3TextConfig(
            vocab_size=SIZE,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=4,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=16,
            layer_types=["sliding_attention", "full_attention"] * 2,
        )
    )


def gpt() -> Any:
    import transformers

    config = transformers.GPT2Config(vocab_size=SIZE, n_positions=64, n_embd=32, n_layer=2, n_head=2)
    return transformers.GPT2LMHeadModel(config)


def sequences(count: int) -> list[tuple[int, ...]]:
    draw = random.Random(0)
    made = [tuple(draw.choice((5, 6, 7, 8 + at)) for at in range(draw.randint(1, 8))) for _ in range(count)]
    return list(dict.fromkeys(made))


def likelihoods(model: Any, prompt: list[int], rows: list[tuple[int, ...]], tokens: list[int] | None) -> list[float]:
    """Return the log-likelihood of each sequence with its end, read alone; over some tokens if there are any."""
    import torch

    found = []
    for row in rows:
        ids = torch.tensor([[*prompt, *row, END]])
        with torch.inference_mode():
            logits = model(ids).logits[0, len(prompt) - 1 : -1]
        if tokens is not None:
            shut = torch.full((SIZE,), -torch.inf)
            shut[tokens] = 0
            logits = logits + shut
        told = torch.log_softmax(logits, -1).gather(1, ids[0, len(prompt) :, None])
        found.append(float(told.sum()))
    return found


@pytest.mark.parametrize("make", [gemma, gpt])
@pytest.mark.parametrize("whole", [False, True])
def test_the_order_and_the_scores_are_those_of_each_sequence_read_alone(make: Any, whole: bool) -> None:
    import torch

    torch.manual_seed(0)
    model, rows, prompt = make().eval(), sequences(40), [2, 9, 4]
    for part in model.parameters():
        part.data *= 3  # so that some sequences are much likelier than others
    trie = TokenTrie(rows, END)
    used = None if whole else sorted({END, *(token for row in rows for token in row)})
    told = likelihoods(model, prompt, rows, used)
    order = sorted(range(len(rows)), key=lambda at: -told[at])
    for width in (1, 4, 100):
        found = TrieSearch(model, width=width, whole=whole).search(prompt, trie, 7)
        assert [at for at, _ in found] == order[:7]
        assert [score for _, score in found] == pytest.approx([told[at] for at in order[:7]], abs=1e-3)
    every = TrieSearch(model).search(prompt, trie, 1000)
    assert sorted(at for at, _ in every) == list(range(len(rows)))


def test_a_budget_ends_the_search_with_what_was_found() -> None:
    import torch

    torch.manual_seed(0)
    rows = sequences(40)
    found = TrieSearch(gpt().eval(), width=4, budget=8).search([2], TokenTrie(rows, END), 40)
    assert 0 < len(found) < len(rows)
    with pytest.raises(ConfigError, match="width=0"):
        TrieSearch(gpt(), width=0)
