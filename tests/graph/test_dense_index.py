"""Tests of `byokg.graph.name_indexes`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from byokg.errors import ConfigError, EmbedderFailed, GraphExists, IndexUnusable
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.name_indexes import (
    DENSE,
    DenseFacts,
    build_dense,
    dense_names,
    embedded_entries,
    index_folder,
    verify_dense,
)
from byokg.index.dense import Embedded
from byokg.index.embedders import StaticEmbedder, Vectors
from byokg.types import EntityId, Node

STATIC = StaticEmbedder()


class Counting:
    """The shipped embedder, which keeps what it was asked and fails on demand."""

    name = STATIC.name

    def __init__(self, fails: bool = False) -> None:
        self.asked: list[str] = []
        self.fails = fails

    def encode(self, texts: Sequence[str]) -> Vectors:
        if self.fails and texts:
            raise EmbedderFailed(self.name, "no connection", retryable=True)
        self.asked += texts
        return STATIC.encode(texts)


def records() -> ColumnarGraph:
    """Jordan (0, a country) and Jordan (1, a player); a mediator without a name (2); Amman (3)."""
    ids = [("m.0a", "Jordan"), ("m.0b", "Jordan"), ("m.0cvt", "m.0cvt"), ("m.0d", "Amman")]
    return ColumnarGraph.from_records([Node(EntityId(id), name, "", {}) for id, name in ids], [])


@pytest.fixture
def graph(tmp_path: Path) -> ColumnarGraph:
    records().save(tmp_path / "graph")
    return ColumnarGraph.open(tmp_path / "graph")


def test_nodes_without_a_name_of_their_own_are_left_out() -> None:
    assert list(embedded_entries(records())) == [(0, "Jordan"), (1, "Jordan"), (3, "Amman")]


def test_numbers_go_on_from_one_batch_of_nodes_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("byokg.graph.name_indexes._NODES_AT_ONCE", 2)
    assert list(embedded_entries(records())) == [(0, "Jordan"), (1, "Jordan"), (3, "Amman")]


def test_without_a_saved_index_one_is_made_in_memory() -> None:
    told: list[Embedded] = []
    (matches,) = dense_names(records(), STATIC, progress=told.append).search(["jordan"], k=5)
    assert [(match.owner, match.name, match.score) for match in matches[:2]] == [(0, "Jordan", 1.0), (1, "Jordan", 1.0)]
    assert told == [Embedded(2, 2)]


def test_too_many_names_are_not_embedded_unasked() -> None:
    with pytest.raises(IndexUnusable, match=r"more than 2 names.*byokg graph embed"):
        dense_names(records(), STATIC, most=2)
    assert len(dense_names(records(), STATIC, most=3)) == 2


def test_a_saved_index_is_opened_and_embeds_nothing(graph: ColumnarGraph) -> None:
    build_dense(graph, STATIC)
    counting = Counting()
    names = dense_names(graph, counting, most=0)
    assert counting.asked == []
    assert [match.owner for match in names.search(["Amman"], k=1)[0]] == [3]


def test_a_second_build_takes_all_vectors_from_the_cache(graph: ColumnarGraph, tmp_path: Path) -> None:
    build_dense(graph, STATIC, cache=tmp_path / "cache")
    counting = Counting()
    build_dense(graph, counting, cache=tmp_path / "cache", overwrite=True)
    assert counting.asked == []


def test_an_index_that_is_there_is_kept_unless_told_otherwise(graph: ColumnarGraph) -> None:
    build_dense(graph, STATIC)
    counting = Counting()
    with pytest.raises(GraphExists, match="overwrite=True"):
        build_dense(graph, counting)
    assert counting.asked == []
    build_dense(graph, counting, overwrite=True)


def test_a_failed_build_leaves_what_was_there(graph: ColumnarGraph) -> None:
    with pytest.raises(EmbedderFailed):
        build_dense(graph, Counting(fails=True))
    assert graph.folder is not None and not (graph.folder / DENSE).exists()
    build_dense(graph, STATIC)
    with pytest.raises(EmbedderFailed):
        build_dense(graph, Counting(fails=True), overwrite=True)
    assert [path.name for path in (graph.folder / DENSE).iterdir()] == [STATIC.name]
    assert len(dense_names(graph, STATIC, most=0)) == 2


def test_a_graph_in_memory_has_no_place_for_an_index() -> None:
    with pytest.raises(ConfigError, match="in memory only"):
        build_dense(records(), STATIC)


def test_verifying_tells_what_is_there_and_finds_damage(graph: ColumnarGraph) -> None:
    assert verify_dense(graph) == []
    build_dense(graph, STATIC)
    assert verify_dense(graph) == [DenseFacts(STATIC.name, 2, "flat", 128)]
    assert graph.folder is not None
    file = index_folder(graph.folder, STATIC) / "vectors.faiss"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(IndexUnusable, match=r"vectors\.faiss has changed"):
        verify_dense(graph)


def test_an_index_of_another_graph_is_refused(graph: ColumnarGraph, tmp_path: Path) -> None:
    build_dense(graph, STATIC)
    ColumnarGraph.from_triples([("a", "r", "b")]).save(tmp_path / "other")
    other = ColumnarGraph.open(tmp_path / "other")
    assert graph.folder is not None
    (graph.folder / DENSE).rename(tmp_path / "other" / DENSE)
    with pytest.raises(IndexUnusable, match="made for"):
        dense_names(other, STATIC)
    with pytest.raises(IndexUnusable, match="another graph"):
        verify_dense(other)
