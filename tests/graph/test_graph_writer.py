from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

from byokg.errors import GraphError
from byokg.graph import delimited, graph_writer
from byokg.graph.columnar import ColumnarGraph
from byokg.graph.importers import build_graph, import_graph
from byokg.graph.store import Direction


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """4,000 triples with repetitions, one node that has more edges than a portion, and long and short names."""
    rng = random.Random(5)
    lines = []
    for _ in range(4000):
        head, tail = rng.randrange(200), rng.randrange(200)
        head = 7 if rng.random() < 0.2 else head
        lines.append(f"{'n' * (head % 30)}{head}\tr{rng.randrange(12)}\t{'n' * (tail % 30)}{tail}\n")
    path = tmp_path / "graph.tsv"
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize(("block_bytes", "portion", "scan"), [(1 << 26, 1 << 29, 1 << 21), (900, 3200, 70)])
def test_a_graph_written_in_portions_has_the_bytes_of_one_that_was_saved_from_memory(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int, portion: int, scan: int
) -> None:
    import_graph(source).save(tmp_path / "memory")
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(graph_writer, "_PORTION_BYTES", portion)
    monkeypatch.setattr(graph_writer, "_SCAN", scan)
    graph = build_graph(source, tmp_path / "portions")
    assert graph.dropped_duplicates > 0
    assert contents(tmp_path / "portions") == contents(tmp_path / "memory")
    graph.verify()


def test_one_triple_is_enough(tmp_path: Path) -> None:
    (tmp_path / "kb.txt").write_text("a|r|a\n")
    graph = build_graph(tmp_path / "kb.txt", tmp_path / "graph")
    assert graph.edges(np.array([0]), Direction.BOTH).edge.tolist() == [0, 0]
    ColumnarGraph.from_triples([("a", "r", "a")]).save(tmp_path / "memory")
    assert set(contents(tmp_path / "graph")) == set(contents(tmp_path / "memory"))


def test_a_disk_that_is_full_half_way_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(graph_writer, "_write_way_back", refuse)
    with pytest.raises(GraphError, match="No space left"):
        build_graph(source, tmp_path / "deep" / "graph")
    assert os.listdir(tmp_path) == ["graph.tsv"]
