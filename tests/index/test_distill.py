"""Tests of `byokg.index.embedders`: with a tiny BERT made here, where torch is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from byokg.errors import ConfigError, GraphExists, MissingExtra
from byokg.files import new_folder
from byokg.index.embedders import FILES, SHIPPED, StaticEmbedder, distill, refuse_taken

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"red blue green film river city".split()]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a BERT of 11 words and 16 dimensions with random weights."""
    pytest.importorskip("skeletoken", reason="model2vec's distillation is not installed: pip install 'byokg[distill]'")
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("model") / "tiny-bert"
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    transformers.BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", "utf-8")
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def test_what_is_distilled_loads_as_a_static_embedder(tiny: Path, tmp_path: Path) -> None:
    distill(str(tiny), tmp_path, dimensions=4, quantize="float32")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    embedder = StaticEmbedder(tmp_path)
    assert embedder.name.startswith("static-4-float32-")
    red, blue, nothing = embedder.encode(["red", "blue", ""])
    assert red @ red == pytest.approx(1) and red @ blue < 0.999 and not nothing.any()


def test_two_runs_give_equal_bytes(tiny: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        distill(str(tiny), tmp_path / name, dimensions=4)
    for file in FILES:
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()


def test_the_record_names_the_model_and_no_folder(tiny: Path, tmp_path: Path) -> None:
    distill(str(tiny), tmp_path, dimensions=4)
    config = (tmp_path / "config.json").read_text("utf-8")
    assert "tiny-bert-" in config and str(tiny.parent) not in config


def test_more_dimensions_than_the_model_has_are_refused(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"17 dimensions are asked for, .* has 16"):
        distill(str(tiny), tmp_path, dimensions=17)
    assert not any(tmp_path.iterdir())


def test_a_folder_without_a_model_is_refused(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "out").mkdir()
    with pytest.raises(ConfigError, match="cannot be loaded"):
        distill(str(tmp_path / "empty"), tmp_path / "out")


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "model").mkdir()
    with pytest.raises(MissingExtra, match=r"byokg\[distill\]"):
        distill(str(tmp_path / "model"), tmp_path)


def test_only_an_embedder_may_be_overwritten(tmp_path: Path) -> None:
    with pytest.raises(GraphExists, match="an embedder is already there"):
        refuse_taken(SHIPPED, overwrite=False)
    refuse_taken(SHIPPED, overwrite=True)
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    with pytest.raises(GraphExists, match="something else"), new_folder(tmp_path, True, refuse_taken):
        pass
    assert (tmp_path / "notes.txt").read_text("utf-8") == "mine"
    assert np.all([(SHIPPED / file).is_file() for file in FILES])
