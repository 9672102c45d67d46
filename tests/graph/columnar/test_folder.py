"""A graph's folder is complete or not there, whatever happens to those who write it and those who read it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import GraphCorrupt, GraphError
from byokg.files import sha256
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.types import EntityId, Node
from tests.graph.contract import edge, node

TRIPLES = "a|r|b\nb|r|c\n"

HANGING_BUILD = """
import sys, time
from byokg.graph.columnar import writer as graph_writer
from byokg.graph.importers.choose import build_graph

def hang(*_):
    print("half written", flush=True)
    time.sleep(60)

graph_writer._write_way_back = hang
build_graph(sys.argv[1], sys.argv[2], overwrite=True)
"""

REBUILDING = """
import sys, time
from byokg.graph.columnar.graph import ColumnarGraph

graphs = [ColumnarGraph.from_triples((f"n{i}", "r", f"n{i + 1}") for i in range(count)) for count in (3, 40)]
for turn in range(30):
    graphs[turn % 2].save(sys.argv[1], overwrite=True)
    time.sleep(0.03)
"""

FULL_DISK = """
import resource, sys
from byokg.errors import GraphError
from byokg.graph.importers.choose import build_graph

resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    build_graph(sys.argv[1], sys.argv[2], overwrite=True)
except GraphError as error:
    print(error)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "kb.txt"
    path.write_text(TRIPLES)
    return path


def kill_half_way(source: Path, out: Path) -> None:
    """Build in another process, and kill that between two files."""
    command = [sys.executable, "-c", HANGING_BUILD, str(source), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half written\n"
        process.send_signal(signal.SIGKILL)


def test_a_killed_build_leaves_no_graph_and_the_next_build_what_it_left(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kill_half_way(source, out)
    assert not out.exists()
    left, lock = sorted(name for name in os.listdir(tmp_path) if name != "in")
    assert left.startswith(".out.partial-") and lock == f"{left}.lock"
    build_graph(source, out)
    assert sorted(os.listdir(tmp_path)) == ["in", "out"]


def test_a_killed_rebuild_leaves_the_graph_that_was_there(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build_graph(source, out)
    source.write_text("x|r|y\n")
    kill_half_way(source, out)
    graph = ColumnarGraph.open(out)
    graph.verify()
    assert list(graph.entities()) == ["a", "b", "c"]


def test_what_a_living_process_is_writing_is_left_alone(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-c", HANGING_BUILD, str(source), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        build_graph(source, out)
        assert len([name for name in os.listdir(tmp_path) if name.startswith(".out.partial-")]) == 2  # and its lock
        process.kill()


def test_whoever_opens_a_graph_that_is_being_replaced_gets_one_of_the_two(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ColumnarGraph.from_triples([("a", "r", "b")]).save(out)
    seen = set()
    with subprocess.Popen([sys.executable, "-c", REBUILDING, str(out)]) as process:
        while process.poll() is None:
            graph = ColumnarGraph.open(out)
            seen.add((graph.node_count, graph.edge_count, len(list(graph.entities()))))
            time.sleep(0.001)
        assert process.returncode == 0
    assert seen <= {(2, 1, 2), (4, 3, 4), (41, 40, 41)}
    assert len(seen) > 1


def test_a_disk_that_is_full_leaves_what_was_there(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build_graph(source, out)
    source.write_text("".join(f"n{number}|r|n{number + 1}\n" for number in range(5000)))
    command = [sys.executable, "-c", FULL_DISK, str(source), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "cannot write to" in done.stdout and "free space" in done.stdout
    assert sorted(os.listdir(tmp_path)) == ["in", "out"]
    assert ColumnarGraph.open(out).node_count == 3


def test_no_damaged_byte_goes_unnoticed(tmp_path: Path) -> None:
    nodes = [node(f"n{number}", "T", x=number, s="t" * number) for number in range(20)]
    edges = [edge(f"n{number % 20}", f"r{number % 3}", f"n{number * 7 % 20}", w=number / 2) for number in range(40)]
    ColumnarGraph.from_records(nodes, edges).save(tmp_path / "graph")
    ColumnarGraph.open(tmp_path / "graph").verify()
    chance = random.Random(3)
    for path in sorted((tmp_path / "graph").iterdir()):
        content = path.read_bytes()
        for _ in range(40):
            damaged = bytearray(content)
            damaged[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            cut = content[: chance.randrange(len(content))]
            path.write_bytes(cut if chance.random() < 0.3 else damaged)
            with pytest.raises((GraphCorrupt, GraphError)):
                ColumnarGraph.open(tmp_path / "graph").verify()
        path.write_bytes(content)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a graph with all the files there are."""
    names = ["Ann", "Bob", "Åsa", "日本", "Émile Zola"] * 40
    nodes = [Node(EntityId(f"n{i}"), name, "Person" if i % 3 else "", {"age": i}) for i, name in enumerate(names)]
    edges = [edge(f"n{i}", f"r{i % 7}", f"n{(i * 7) % len(nodes)}", since=i) for i in range(len(nodes))]
    folder = tmp_path_factory.mktemp("saved") / "graph"
    ColumnarGraph.from_records(nodes, edges).save(folder)
    return folder


FILES = sorted("meta.json nodes.arrow node_values.arrow node_values.json edge_properties.arrow".split()) + [
    f"{name}.npy" for name in "relation other out_index in_index in_edge id_hash id_order id_offsets id_bytes".split()
]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(FILES), st.sampled_from(["flip", "truncate", "swap", "empty", "zero"]), st.randoms())
def test_whatever_happens_to_a_file_the_graph_is_corrupt_and_nothing_else(
    saved: Path, name: str, how: str, chance: random.Random
) -> None:
    with TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(saved, Path(folder) / "copy"))
        content = bytearray((copy / name).read_bytes())
        at = chance.randrange(len(content))
        if how == "flip":
            content[at] ^= 1 << chance.randrange(8)
        elif how == "truncate":
            del content[at:]
        elif how == "empty":
            content.clear()
        elif how == "zero":
            content[at : at + 64] = bytes(len(content[at : at + 64]))
        else:
            other = chance.choice([file for file in FILES if file != name])
            (copy / name).rename(copy / "aside")
            (copy / other).rename(copy / name)
            content = bytearray((copy / "aside").read_bytes())
            name = other
        if content == (saved / name).read_bytes():
            return
        (copy / name).write_bytes(content)
        with pytest.raises(GraphCorrupt, match="byokg graph info"):
            ColumnarGraph.open(copy)


def test_files_are_read_through_only_where_they_are_others_than_before(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def noted(path: Path) -> str:
        read.append(path.name)
        return sha256(path)

    monkeypatch.setattr("byokg.graph.columnar.folder.SMALL_BYTES", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ColumnarGraph.open(saved).save(tmp_path / "graph")
    monkeypatch.setattr("byokg.files.sha256", noted)
    ColumnarGraph.open(tmp_path / "graph")  # whoever wrote it knows it
    assert read == []
    copy = shutil.copytree(saved, tmp_path / "copy")
    ColumnarGraph.open(copy)
    assert len(read) == len(FILES) - 1
    ColumnarGraph.open(copy)
    ColumnarGraph.open(tmp_path / "graph")
    assert len(read) == len(FILES) - 1
    (tmp_path / "graph" / "other.npy").rename(tmp_path / "aside")
    (tmp_path / "graph" / "relation.npy").rename(tmp_path / "graph" / "other.npy")
    (tmp_path / "aside").rename(tmp_path / "graph" / "relation.npy")
    with pytest.raises(GraphCorrupt):
        ColumnarGraph.open(tmp_path / "graph")


def test_a_graph_opens_where_nothing_can_be_remembered(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("byokg.graph.columnar.folder.SMALL_BYTES", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert ColumnarGraph.open(saved).node_count == 200


READER = """
import os, sys
import numpy as np
from byokg.graph.columnar.graph import ColumnarGraph

graph = ColumnarGraph.open(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
tails = graph.topology.other
print(int(tails.sum(dtype=np.int64)), flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not let a mapped file be cut")
@pytest.mark.parametrize("cut", [False, True], ids=["replaced", "cut short"])
def test_a_reader_keeps_the_graph_that_it_opened_and_never_reads_what_is_not_there(cut: bool, tmp_path: Path) -> None:
    folder = tmp_path / "graph"
    triples = [(f"n{number}", "r", f"n{number * 7 % 9000}") for number in range(9000)]  # 72 KB, 18 pages of tails
    graph = ColumnarGraph.from_triples(triples)
    graph.save(folder)
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdin is not None and reader.stdout is not None
        assert reader.stdout.readline() == "open\n"
        if cut:  # as another program may; nothing of ours shortens or rewrites a file that may be mapped
            os.truncate(folder / "other.npy", 4096)
        else:
            ColumnarGraph.from_triples([("a", "r", "b")]).save(folder, overwrite=True)
        said, _ = reader.communicate("\n")
    if cut:
        assert (reader.returncode, said) == (-signal.SIGBUS, "")
        with pytest.raises(GraphCorrupt, match=r"other\.npy has"):
            ColumnarGraph.open(folder)
    else:
        assert (reader.returncode, int(said)) == (0, int(graph.topology.other.sum(dtype=np.int64)))
