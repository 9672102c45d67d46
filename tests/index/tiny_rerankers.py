"""Rerankers small enough to be made on the spot, in the layout of the published ones. Needs torch and transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaForSequenceClassification

WORDS = "<s> <pad> </s> <unk> a b : given query and passage lima capital of peru film river what is the".split()

MINICPM: dict[str, Any] = {
    "architectures": ["LayerWiseMiniCPMForCausalLM"],
    "model_type": "minicpm",
    "vocab_size": len(WORDS),
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "attention_bias": False,
    "scale_depth": 1.4,
    "scale_emb": 12,
    "dim_model_base": 256,
    "start_layer": 2,
    "head_multi": True,
    "head_type": "simple",
}
"""The published configuration, with smaller numbers."""


def tokenizer() -> PreTrainedTokenizerFast:
    """Split at spaces and punctuation."""
    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.normalizer = normalizers.Lowercase()
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=words, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>"
    )


def save_cross_encoder(folder: Path, labels: int = 1) -> None:
    """Write a reranker of the architecture of bge-reranker-base."""
    torch.manual_seed(0)
    config = XLMRobertaConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
        pad_token_id=1,
        num_labels=labels,
        initializer_range=0.5,
    )
    XLMRobertaForSequenceClassification(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)


def save_layerwise(folder: Path, files: int = 1, **changes: Any) -> dict[str, torch.Tensor]:
    """Write a reranker of the architecture of bge-reranker-v2-minicpm-layerwise, and return its weights."""
    torch.manual_seed(0)
    said = MINICPM | changes
    width, inner = said["hidden_size"], said["intermediate_size"]
    shapes = {"model.embed_tokens.weight": (said["vocab_size"], width), "model.norm.weight": (width,)}
    for layer in range(said["num_hidden_layers"]):
        place = f"model.layers.{layer}"
        shapes |= {f"{place}.self_attn.{part}_proj.weight": (width, width) for part in "qkvo"}
        shapes |= {f"{place}.mlp.{part}_proj.weight": (inner, width) for part in ("gate", "up")}
        shapes |= {f"{place}.mlp.down_proj.weight": (width, inner)}
        shapes |= {f"{place}.{part}_layernorm.weight": (width,) for part in ("input", "post_attention")}
    heads = said["num_hidden_layers"] - said["start_layer"] + 1
    shapes |= {f"lm_head.{head}.linear_head.weight": (1, width) for head in range(heads)}
    weights = {name: torch.randn(shape) * 0.5 + (1.0 if "norm" in name else 0.0) for name, shape in shapes.items()}
    folder.mkdir(exist_ok=True)
    if files == 1:
        save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    else:
        lying = {name: f"model-{number % files}.safetensors" for number, name in enumerate(weights)}
        for file in sorted(set(lying.values())):
            part = {name: tensor for name, tensor in weights.items() if lying[name] == file}
            save_file(part, str(folder / file), metadata={"format": "pt"})
        index = {"metadata": {}, "weight_map": lying}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    (folder / "config.json").write_text(json.dumps(said), "utf-8")
    tokenizer().save_pretrained(folder)
    return weights
