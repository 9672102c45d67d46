"""Tests of `byokg.offline.path_scorer`."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from byokg.errors import ConfigError
from byokg.index.embedders import StaticEmbedder
from byokg.offline.path_scorer import FILE, SHIPPED, STATIC, Weights, read_weights, save_weights, weights_for
from tests.linking.graphs import EMBEDDER


class _Other:
    name = "an embedder that nobody fitted weights for"


def test_the_shipped_embedder_has_the_default_weights() -> None:
    assert StaticEmbedder().name == STATIC
    assert weights_for(EMBEDDER) == Weights()


class _MiniLm:
    name = "minilm-6fceb34132ad"


def test_an_embedder_that_weights_ship_for_gets_its_own(caplog: pytest.LogCaptureFixture) -> None:
    own = weights_for(_MiniLm())  # type: ignore[arg-type]
    assert own == read_weights(SHIPPED / _MiniLm.name, _MiniLm.name).weights != Weights()
    assert not caplog.records


def test_all_weights_that_ship_are_of_the_features_of_today() -> None:
    for folder in SHIPPED.glob("*"):
        assert read_weights(folder, json.loads((folder / FILE).read_text("utf-8"))["embedder"]).ranker is None


def test_an_embedder_without_weights_is_named_once_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert weights_for(_Other()) == weights_for(_Other()) == Weights()  # type: ignore[arg-type]
    assert len(caplog.records) == 1
    assert _Other.name in caplog.text and "byokg fit" in caplog.text


def test_weights_are_read_back_and_only_for_their_embedder_and_features(tmp_path: Path) -> None:
    weights = replace(Weights(), joined=12.5)
    save_weights(tmp_path, weights, "one", {"source": "here"})
    assert read_weights(tmp_path, "one").weights == read_weights(tmp_path / FILE, "one").weights == weights
    with pytest.raises(ConfigError, match=r"'one', and this run has 'two'; .*byokg fit"):
        read_weights(tmp_path, "two")
    held = json.loads((tmp_path / FILE).read_text("utf-8"))
    held["weights"]["luck"] = held["weights"].pop("hop")
    (tmp_path / FILE).write_text(json.dumps(held), "utf-8")
    with pytest.raises(ConfigError, match=r"features that only one has: hop, luck.*byokg fit"):
        read_weights(tmp_path, "one")
