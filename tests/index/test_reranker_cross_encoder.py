"""Tests of `byokg.index.rerankers`; most need the extra `embeddings`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from byokg.errors import ConfigError, MissingExtra
from byokg.index.rerankers import BGE_BASE, CrossEncoderReranker

INSTALLED = importlib.util.find_spec("sentence_transformers") is not None
needs_sentence_transformers = pytest.mark.skipif(
    not INSTALLED, reason="sentence-transformers is not installed: pip install 'byokg[embeddings]'"
)

TEXTS = ["Lima capital of Peru", "the river", "a film of Peru and the river", "Lima"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hold a tiny reranker of the architecture of bge-reranker-base."""
    from tests.index.tiny_rerankers import save_cross_encoder

    place = tmp_path_factory.mktemp("cross-encoder")
    save_cross_encoder(place)
    return place


@needs_sentence_transformers
def test_scores_are_what_the_model_says_of_question_and_text_together(folder: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        encoded = [tokenizer("what is the capital", text, return_tensors="pt") for text in TEXTS]
        expected = [float(model(**each).logits) for each in encoded]
    scores = CrossEncoderReranker(str(folder), device="cpu").score("what is the capital", TEXTS)
    assert scores.tolist() == pytest.approx(expected, abs=1e-5)
    assert len(set(scores.tolist())) == len(TEXTS)


@needs_sentence_transformers
def test_batches_change_nothing(folder: Path) -> None:
    whole = CrossEncoderReranker(str(folder), device="cpu").score("Lima", TEXTS)
    parts = CrossEncoderReranker(str(folder), device="cpu", batch_size=1).score("Lima", TEXTS)
    assert parts.tolist() == pytest.approx(whole.tolist(), abs=1e-5)


@needs_sentence_transformers
def test_a_model_of_several_scores_is_refused(tmp_path: Path) -> None:
    from tests.index.tiny_rerankers import save_cross_encoder

    save_cross_encoder(tmp_path, labels=3)
    with pytest.raises(ConfigError, match="3 scores for a pair"):
        CrossEncoderReranker(str(tmp_path), device="cpu").score("Lima", TEXTS)


@needs_sentence_transformers
def test_a_folder_that_is_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{tmp_path.name}.*cannot be loaded"):
        CrossEncoderReranker(str(tmp_path), device="cpu").score("Lima", TEXTS)


@pytest.mark.skipif(INSTALLED, reason="sentence-transformers is installed")
def test_without_the_package_the_extra_is_named() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'byokg\[embeddings\]'"):
        CrossEncoderReranker().score("Lima", TEXTS)


def test_nothing_is_loaded_for_no_texts() -> None:
    reranker = CrossEncoderReranker(revision="main")
    assert len(reranker.score("Lima", [])) == 0
    assert reranker.name == f"cross-encoder-{BGE_BASE}@main"


@pytest.mark.parametrize("setting", ["batch_size", "max_length"])
def test_settings_below_one_are_named(setting: str) -> None:
    given: dict[str, Any] = {setting: 0}
    with pytest.raises(ConfigError, match=f"{setting}=0 rates nothing"):
        CrossEncoderReranker(**given)
