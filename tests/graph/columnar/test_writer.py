from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from byokg import files
from byokg.errors import GraphError, GraphExists
from byokg.graph.columnar import external_sort
from byokg.graph.columnar import folder as columnar_folder
from byokg.graph.columnar import graph as columnar
from byokg.graph.columnar import schema as columnar_schema
from byokg.graph.columnar import writer as graph_writer
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers import choose, delimited
from byokg.graph.importers.choose import build_graph, import_graph
from byokg.graph.rdf import importer
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


@pytest.mark.parametrize(
    ("block_bytes", "portion", "scan", "bits"), [(1 << 26, 1 << 27, 1 << 21, 17), (900, 3200, 70, 3)]
)
def test_a_graph_written_in_portions_has_the_bytes_of_one_that_was_saved_from_memory(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int, portion: int, scan: int, bits: int
) -> None:
    import_graph(source).save(tmp_path / "memory")
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(choose, "_LEAST_PORTION", portion)
    monkeypatch.setattr(choose, "_PORTIONS", 1 << 32)
    monkeypatch.setattr(external_sort, "READ", scan)
    monkeypatch.setattr(external_sort, "RANGE_BITS", bits)
    graph = build_graph(source, tmp_path / "portions")
    assert graph.dropped_duplicates > 0
    assert contents(tmp_path / "portions") == contents(tmp_path / "memory")
    graph.verify()


def tables(folder: Path) -> Path:
    """300 nodes in two files and 4,000 edges in two, with properties of every kind, some missing; parallel edges."""
    rng = random.Random(6)
    folder.mkdir()
    for part in range(2):
        lines = ["id,name,type,born:int,note\n"]
        for number in range(150 * part, 150 * part + 150):
            lines.append(f"n{number},Name {number},T{number % 3},{rng.choice(['', number])},{'x' * (number % 7)}\n")
        (folder / f"nodes{part}.csv").write_text("".join(lines))
    for part, header in enumerate(("since:int,share:float", "since:float,sure:bool,day:date,source")):
        lines = [f"head,relation,tail,{header}\n"]
        for _ in range(2000):
            head = 7 if rng.random() < 0.2 else rng.randrange(300)
            said = (
                f"{rng.choice(['', 3])},{rng.choice(['', 0.5])}" if part == 0 else f"1.5,true,2001-09-30,{'s' * head}"
            )
            lines.append(f"n{head},r{rng.randrange(5)},n{rng.randrange(300)},{said}\n")
        (folder / f"edges{part}.csv").write_text("".join(lines))
    return folder


def quadruples(folder: Path) -> Path:
    """3,000 facts with years, days in a later block, and repetitions."""
    rng = random.Random(7)
    folder.mkdir()
    lines = []
    for number in range(3000):
        day = "2001-09-30" if number > 2900 else rng.choice(["1999", "2004", ""])
        lines.append(f"n{rng.randrange(20)}\tr{rng.randrange(3)}\tn{rng.randrange(20)}\t{rng.choice([1, 2])}\t{day}\n")
    (folder / "graph.tsv").write_text("".join(lines))
    return folder


def json_lines(folder: Path) -> Path:
    """3,000 edges, with and without properties, whose kinds differ from block to block."""
    rng = random.Random(8)
    folder.mkdir()
    lines = []
    for number in range(3000):
        ends = {"head": f"n{rng.randrange(30)}", "relation": f"r{rng.randrange(3)}", "tail": f"n{rng.randrange(30)}"}
        said = {"w": 1 if number < 1500 else 0.5} if rng.random() < 0.5 else {"late": True} if number > 2000 else {}
        lines.append(json.dumps({**ends, **said}) + "\n")
    (folder / "graph.jsonl").write_text("".join(lines))
    return folder


def n_triples(folder: Path) -> Path:
    """3,000 statements: edges, types, names, and values."""
    pytest.importorskip("pyoxigraph")
    rng = random.Random(9)
    folder.mkdir()
    type_of = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    lines = []
    for _ in range(3000):
        node, other = (f"<http://example.org/n{rng.randrange(90)}>" for _ in range(2))
        lines.append(
            rng.choice(
                [
                    f"{node} <http://example.org/r{rng.randrange(3)}> {other} .\n",
                    f"{node} {type_of} <http://example.org/T{rng.randrange(3)}> .\n",
                    f'{node} <http://www.w3.org/2000/01/rdf-schema#label> "N {rng.randrange(3)}"@en .\n',
                    f'{node} <http://example.org/p> "{rng.randrange(9)}" .\n',
                ]
            )
        )
    (folder / "graph.nt").write_text("".join(lines))
    return folder


@pytest.mark.parametrize("made", [tables, quadruples, json_lines, n_triples])
def test_every_format_gives_the_same_bytes_in_portions_and_in_memory(
    made: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = made(tmp_path / "in")
    monkeypatch.setattr(columnar_folder, "BATCH_ROWS", 512)
    monkeypatch.setattr(columnar, "BATCH_ROWS", 512)
    import_graph(source).save(tmp_path / "memory")
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", 2000)
    monkeypatch.setattr(files, "_LINES_BYTES", 2000)
    monkeypatch.setattr(choose, "_LEAST_PORTION", 20_000)
    monkeypatch.setattr(choose, "_PORTIONS", 1 << 32)
    monkeypatch.setattr(external_sort, "READ", 700)
    monkeypatch.setattr(external_sort, "RANGE_BITS", 4)
    monkeypatch.setattr(columnar_schema, "_SCAN", 700)
    graph = build_graph(source, tmp_path / "portions")
    assert contents(tmp_path / "portions") == contents(tmp_path / "memory")
    graph.verify()
    memory = import_graph(source)
    every = np.arange(graph.edge_count)
    assert graph.edge_properties(every[::-1]) == memory.edge_properties(every[::-1])
    assert graph.schema() == memory.schema()


def test_what_is_said_of_edges_can_be_left_out(tmp_path: Path) -> None:
    source, out = tmp_path / "graph.tsv", tmp_path / "graph"
    source.write_text("a\tr\tb\t2001\na\tr\tb\t2002\nb\tr\tc\t\n")
    with choose.graph_folder(source, out, edge_properties=False) as partial:
        choose.import_into(source, partial, edge_properties=False)
    graph = ColumnarGraph.open(out)
    assert (graph.edge_count, graph.dropped_duplicates) == (2, 1)
    assert graph.edge_properties(np.arange(2)) == [{}, {}]
    assert not [name for name in ("edge_properties.arrow", "in_edge.npy") if (out / name).exists()]
    whole = ColumnarGraph.from_triples([("a", "r", "b"), ("b", "r", "c")])
    for way in Direction:
        found, same = (each.edges(np.arange(3), way) for each in (graph, whole))
        assert found.edge.tolist() == same.edge.tolist() and found.head.tolist() == same.head.tolist()
    graph.save(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(out)
    ColumnarGraph.open(tmp_path / "again").verify()


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
    with pytest.raises(GraphError, match="the disk is full"):
        build_graph(source, tmp_path / "deep" / "graph")
    assert os.listdir(tmp_path) == ["graph.tsv"]


KILLED_BUILDS = """
import os, signal, sys
from byokg import files
from byokg.graph.columnar import external_sort, writer
from byokg.graph.importers import choose, delimited
from byokg.graph.rdf import importer

source, out = sys.argv[1], sys.argv[2]
delimited._BLOCK_BYTES, delimited._PARSE_BYTES, writer._KEPT_EVERY_S, external_sort.RANGE_BITS = 2000, 2000, 0, 3
choose._LEAST_PORTION, choose._PORTIONS, files._LINES_BYTES, importer._TOGETHER = 9000, 1 << 32, 9000, 200

def build(calls):
    def told(doing, edges):
        nonlocal calls
        print(doing, edges, flush=True)
        calls -= 1
        if calls == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with choose.graph_folder(source, out) as partial:
        choose.import_into(source, partial, 9, progress=told)
        told("built", 0)

for calls in map(int, sys.argv[3:]):
    child = os.fork()  # a process of its own for each build, that has imported everything already
    if child == 0:
        try:
            build(calls)
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print("ended", code, flush=True)
    if code == 0:
        break
"""
"""Builds a graph, killed at the given numbers of calls of its progress, until one is not."""


def killed_builds(source: Path, out: Path, *calls: int) -> list[list[str]]:
    """Build as `KILLED_BUILDS` does; return the lines that each build printed."""
    command = [sys.executable, "-c", KILLED_BUILDS, str(source), str(out), *map(str, calls)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said: list[list[str]] = [[]]
    for line in done.stdout.splitlines():
        if line.startswith("ended"):
            assert line in ("ended 0", f"ended {-signal.SIGKILL}"), done.stderr
            said.append([])
        else:
            said[-1].append(line)
    return said[:-1]


@pytest.mark.parametrize("made", [None, quadruples, n_triples])
def test_a_build_that_is_killed_again_and_again_ends_with_the_same_bytes(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[Path], Path] | None
) -> None:
    source = made(tmp_path / "in") if made else source
    monkeypatch.setattr(importer, "_TOGETHER", 200)
    build_graph(source, tmp_path / "whole")
    said = killed_builds(source, tmp_path / "graph", 1, 3, 5, 9, 14, 5, 2, 25, 40, -1)
    assert contents(tmp_path / "graph") == contents(tmp_path / "whole")
    assert not list(tmp_path.glob(".*"))
    assert any(int(lines[0].split()[1]) > int(said[0][0].split()[1]) for lines in said[1:])
    assert sum(line.startswith("read") for line in said[-1]) == 0


def test_a_killed_build_of_another_source_is_not_gone_on_with(source: Path, tmp_path: Path) -> None:
    [_] = killed_builds(source, tmp_path / "graph", 9)
    assert len(list(tmp_path.glob(".graph.partial-????????????"))) == 1
    source.write_text("a\tr\tb\n")
    assert build_graph(source, tmp_path / "graph").edge_count == 1
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("stopped", "raised", "said"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt, None),
        (MemoryError(), MemoryError, None),
        (OSError(errno.ENOSPC, "No space left on device"), GraphError, "the disk is full; free space"),
        (OSError("70 requested and 12 written"), GraphError, "the disk is full; free space"),
    ],
)
def test_of_a_long_build_that_is_stopped_what_was_done_is_kept(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stopped: BaseException,
    raised: type[BaseException],
    said: str | None,
) -> None:
    def stop(doing: str, _: int) -> None:
        if doing == "sorted":
            raise stopped

    for worth, left in ((60.0, 0), (0.0, 1)):
        monkeypatch.setattr(files, "_WORTH_KEEPING_S", worth)
        with pytest.raises(raised, match=said), choose.graph_folder(source, tmp_path / "graph") as partial:
            choose.import_into(source, partial, progress=stop)
        assert len(list(tmp_path.glob(".graph.partial-????????????"))) == left
    doings: list[str] = []
    with choose.graph_folder(source, tmp_path / "graph") as partial:
        choose.import_into(source, partial, progress=lambda doing, _: doings.append(doing))
    assert doings[0] == "sorted" and not list(tmp_path.glob(".*"))


def test_when_names_cannot_be_indexed_a_long_build_is_kept_and_gone_on_with_behind_the_graph(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_WORTH_KEEPING_S", 0.0)

    def build() -> None:
        with choose.graph_folder(source, tmp_path / "graph") as partial:
            choose.import_into(source, partial)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        build()
    doings: list[str] = []
    with choose.graph_folder(source, tmp_path / "graph") as partial:
        choose.import_into(source, partial, progress=lambda doing, _: doings.append(doing))
    assert doings == [] and ColumnarGraph.open(tmp_path / "graph").edge_count > 0


def test_of_two_builds_of_one_folder_the_second_is_told(source: Path, tmp_path: Path) -> None:
    def build_two() -> None:
        with choose.graph_folder(source, tmp_path / "graph") as partial:
            choose.import_into(source, partial)
            build_graph(source, tmp_path / "graph")

    with pytest.raises(GraphExists, match="another process has written there meanwhile"):
        build_two()
    assert ColumnarGraph.open(tmp_path / "graph").edge_count > 0
