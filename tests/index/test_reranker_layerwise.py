"""Tests of `byokg.index.rerankers`; most need the extra `local`."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byokg.errors import ConfigError, MissingExtra
from byokg.index.rerankers import MINICPM, PROMPT, LayerwiseReranker

INSTALLED = importlib.util.find_spec("torch") is not None and importlib.util.find_spec("transformers") is not None
needs_transformers = pytest.mark.skipif(
    not INSTALLED, reason="torch and transformers are not installed: pip install 'byokg[local]'"
)

TEXTS = ["Lima capital of Peru", "the river", "a film of Peru and the river and the film", "Lima"]
QUESTION = "what is the capital of Peru"

Array = npt.NDArray[np.float64]


def minicpm(weights: Mapping[str, Any], said: Mapping[str, Any], ids: list[int], layers: int) -> float:
    """Compute what the model's paper and card define, step by step, for one text of T tokens."""
    of = {name: tensor.numpy().astype(np.float64) for name, tensor in weights.items()}
    width, heads = said["hidden_size"], said["num_attention_heads"]
    size, length = width // heads, len(ids)
    share = said["scale_depth"] / math.sqrt(said["num_hidden_layers"])

    def norm(states: Array, name: str) -> Array:
        scaled: Array = states / np.sqrt((states**2).mean(-1, keepdims=True) + said["rms_norm_eps"]) * of[name]
        return scaled

    angles = np.arange(length)[:, None] / said["rope_theta"] ** (np.arange(0, size, 2) / size)  # (T, size / 2)
    cos, sin = (np.concatenate((part, part), -1) for part in (np.cos(angles), np.sin(angles)))

    def turned(states: Array) -> Array:
        half = np.concatenate((-states[..., size // 2 :], states[..., : size // 2]), -1)
        rotated: Array = states * cos + half * sin
        return rotated

    states = of["model.embed_tokens.weight"][ids] * said["scale_emb"]
    for layer in range(layers):
        place = f"model.layers.{layer}"
        given = norm(states, f"{place}.input_layernorm.weight")
        query, key, value = (
            (given @ of[f"{place}.self_attn.{part}_proj.weight"].T).reshape(length, heads, size).swapaxes(0, 1)
            for part in "qkv"
        )
        scores = turned(query) @ turned(key).swapaxes(1, 2) / math.sqrt(size)
        scores[:, np.triu(np.ones((length, length), np.bool_), 1)] = -np.inf
        attention = np.exp(scores - scores.max(-1, keepdims=True))
        attention /= attention.sum(-1, keepdims=True)
        mixed = (attention @ value).swapaxes(0, 1).reshape(length, width)
        states = states + share * mixed @ of[f"{place}.self_attn.o_proj.weight"].T
        given = norm(states, f"{place}.post_attention_layernorm.weight")
        gate = given @ of[f"{place}.mlp.gate_proj.weight"].T
        inner = gate / (1 + np.exp(-gate)) * (given @ of[f"{place}.mlp.up_proj.weight"].T)
        states = states + share * inner @ of[f"{place}.mlp.down_proj.weight"].T
    head = of[f"lm_head.{layers - said['start_layer']}.linear_head.weight"]
    return float((norm(states, "model.norm.weight")[-1] @ head.T)[0])


def tokens(question: str, text: str) -> list[int]:
    from tests.index.tiny_rerankers import tokenizer

    encode = tokenizer()
    pair = f"A: {question}\nB: {text}\n{PROMPT}"  # the tokenizer drops white space, the line ends too
    return [0, *encode(pair, add_special_tokens=False)["input_ids"]]


@needs_transformers
@pytest.mark.parametrize("layer", [2, 3, 4])
def test_scores_are_those_that_the_architecture_defines(layer: int, tmp_path: Path) -> None:
    from tests.index.tiny_rerankers import MINICPM as SAID
    from tests.index.tiny_rerankers import save_layerwise

    weights = save_layerwise(tmp_path)
    expected = [minicpm(weights, SAID, tokens(QUESTION, text), layer) for text in TEXTS]
    scores = LayerwiseReranker(str(tmp_path), cutoff_layer=layer, device="cpu").score(QUESTION, TEXTS)
    assert scores.tolist() == pytest.approx(expected, abs=1e-4)
    assert len(set(scores.tolist())) == len(TEXTS)


@needs_transformers
def test_weights_may_lie_in_several_files(tmp_path: Path) -> None:
    from tests.index.tiny_rerankers import save_layerwise

    save_layerwise(tmp_path / "one")
    save_layerwise(tmp_path / "several", files=3)
    one, several = (
        LayerwiseReranker(str(tmp_path / name), cutoff_layer=4, device="cpu").score(QUESTION, TEXTS)
        for name in ("one", "several")
    )
    assert one.tolist() == several.tolist()


@needs_transformers
def test_padding_changes_nothing(tmp_path: Path) -> None:
    from tests.index.tiny_rerankers import save_layerwise

    save_layerwise(tmp_path)
    whole = LayerwiseReranker(str(tmp_path), cutoff_layer=3, device="cpu").score(QUESTION, TEXTS)
    alone = LayerwiseReranker(str(tmp_path), cutoff_layer=3, device="cpu", batch_size=1).score(QUESTION, TEXTS)
    assert alone.tolist() == pytest.approx(whole.tolist(), abs=1e-4)


@needs_transformers
def test_long_texts_are_cut_and_the_prompt_is_not(tmp_path: Path) -> None:
    from tests.index.tiny_rerankers import save_layerwise

    save_layerwise(tmp_path)
    # Of 12 tokens the question has 9 (<s> apart), so 2 are left: `B` and `:`. What follows them is of no matter.
    reranker = LayerwiseReranker(str(tmp_path), cutoff_layer=2, device="cpu", max_length=12)
    one, other = reranker.score("what is the capital of the film and the river", ["Lima", "Peru film"])
    assert one == other


@needs_transformers
@pytest.mark.parametrize("layer", [1, 5])
def test_a_layer_without_a_score_is_refused(layer: int, tmp_path: Path) -> None:
    from tests.index.tiny_rerankers import save_layerwise

    save_layerwise(tmp_path)
    with pytest.raises(ConfigError, match=f"layer {layer} of .* from 2 to 4"):
        LayerwiseReranker(str(tmp_path), cutoff_layer=layer, device="cpu").score(QUESTION, TEXTS)


@needs_transformers
def test_another_architecture_is_refused(tmp_path: Path) -> None:
    from tests.index.tiny_rerankers import save_layerwise

    save_layerwise(tmp_path, architectures=["LlamaForCausalLM"])
    with pytest.raises(ConfigError, match="the architecture LlamaForCausalLM, and not"):
        LayerwiseReranker(str(tmp_path), cutoff_layer=2, device="cpu").score(QUESTION, TEXTS)


@needs_transformers
def test_a_folder_that_is_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{tmp_path.name}.* architecture .none."):
        LayerwiseReranker(str(tmp_path), device="cpu").score(QUESTION, TEXTS)


@pytest.mark.skipif(INSTALLED, reason="torch and transformers are installed")
def test_without_the_packages_the_extra_is_named() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'byokg\[local\]'"):
        LayerwiseReranker().score(QUESTION, TEXTS)


def test_nothing_is_loaded_for_no_texts() -> None:
    reranker = LayerwiseReranker()
    assert len(reranker.score(QUESTION, [])) == 0
    assert reranker.name == f"layerwise-{MINICPM}-layer28"


@pytest.mark.parametrize("setting", ["cutoff_layer", "batch_size", "max_length"])
def test_settings_below_one_are_named(setting: str) -> None:
    given: dict[str, Any] = {setting: 0}
    with pytest.raises(ConfigError, match=f"{setting}=0 rates nothing"):
        LayerwiseReranker(**given)
