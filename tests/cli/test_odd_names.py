"""Folders and files with odd names: every command takes them, whatever a sweep or a person has called them."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from byokg.cli import main
from byokg.cli.terminal import part_words
from byokg.evaluation.datasets import testset
from byokg.evaluation.report.server import ViewServer
from tests.cli.conftest import Run

ODD = ["pipeline.max_hops=2", "--out=1", "a=b=c'd\", (x)=[y]", "größe=名 100%${x}"]
"""Each is the name of a run folder."""


@pytest.fixture
def run(films: Path, graph: Path, byokg: Run) -> Path:
    """Return a finished run over `films`."""
    done = byokg("eval", "dataset=folder", f"dataset.root={films}", f"graph.path={graph}", "out=run", "-q")
    assert done.code == 0, done.err
    return Path("run")


def test_a_word_is_a_path_by_its_separator_or_because_it_exists(tmp_path: Path) -> None:
    (tmp_path / "beam=8").mkdir()
    words = ["beam=8", "beam=9", "runs", "runs/beam=8", r"runs\beam=8", "graph.path=a/b=c", "x=C:\\y", "~/z=1"]
    paths, settings = part_words(words)
    assert settings == ["beam=9", "graph.path=a/b=c", "x=C:\\y"]
    assert paths == [Path(each).expanduser() for each in ("beam=8", "runs", "runs/beam=8", r"runs\beam=8", "~/z=1")]


@pytest.mark.parametrize("name", ODD)
def test_commands_take_run_folders_of_any_name(run: Path, films: Path, byokg: Run, name: str) -> None:
    odd = run.rename(name)
    shutil.copytree(odd, "other")
    for words in (
        ("score", "--profile", "all", "--", odd),
        ("score", "--", odd / "predictions.jsonl", "dataset=folder", f"dataset.root={films}"),
        ("compare", "--", "other", odd),
        ("table", "--csv", "--", "other", odd),
        ("table", "--latex", "--", odd),
        ("trace", "--", odd, "q1"),
        ("report", "--out", f"{name}.html", "--", odd, "other"),
    ):
        done = byokg(*words)
        assert done.code == 0, (words, done.err)
    assert Path(f"{name}.html").is_file()
    refused = byokg("merge", "--out", "merged=1", "--", odd)
    assert "shard" in refused.err, refused.err


@pytest.mark.parametrize("name", ODD)
def test_outputs_graphs_data_sets_and_questions_have_any_name(
    films: Path, byokg: Run, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(testset, "_TRIES", 100)  # the small graph lacks most kinds
    root, graph = films.rename(films.with_name(name)), Path("graphs") / name
    assert byokg("graph", "build", "--out", graph, "--", root).code == 0
    assert byokg("graph", "info", "--", graph).code == 0
    assert byokg("link", "--", graph, "Heat").code == 0
    out = Path("runs") / name
    words = ("dataset=folder", f"dataset.root={root}", f"graph.path={graph}")
    done = byokg("eval", *words, f"out={out}", "-q")
    assert done.code == 0 and (out / "metrics.json").is_file(), done.err
    assert byokg("ask", "Who directed Heat?", f"graph.path={graph}").code == 0
    asked = Path(f"{name}.txt")
    asked.write_text("Who directed Heat?\n", "utf-8")
    done = byokg("answer", "--graph", graph, "--out", f"{name}.csv", "--", asked)
    assert done.code == 0 and Path(f"{name}.csv").is_file(), done.err
    ids = Path(f"ids {name}")
    ids.write_text("q1\n", "utf-8")
    assert byokg("eval", *words, f"ids=@{ids}", f"out={out}-one", "-q").code == 0
    for more in (
        ("testset", "--out", f"made {name}", "--questions", 5, "--", graph),
        ("graph", "export", "--out", f"exported {name}", "--", graph),
        ("train", "labels", *words, "--out", f"labels {name}", "-q"),
        ("data", "info", *words),
        ("paths", "--", graph, "PATHS START ?a = <Heat> END ?b = <1995> VIA ?p"),
    ):
        done = byokg(*more)
        assert done.code == 0, (more, done.err)


def test_a_graph_in_the_current_folder_may_be_called_like_a_setting(films: Path, byokg: Run) -> None:
    assert byokg("graph", "build", films, "--out", "dir=1").code == 0
    done = byokg("ask", "Who directed Heat?", "graph.path=dir=1")
    assert done.code == 0 and "Michael Mann" in done.out


def test_a_sweep_writes_into_a_folder_of_any_name_and_its_runs_are_read(films: Path, graph: Path, byokg: Run) -> None:
    words = ("dataset=folder", f"dataset.root={films}", f"graph.path={graph}", "pipeline.beam=4,8")
    done = byokg("eval", "-m", *words, "out=a b='c,d", "-q")
    assert done.code == 0, done.err
    runs = sorted(Path("a b='c,d").iterdir())
    assert [run.name for run in runs] == ["pipeline.beam=4", "pipeline.beam=8"]
    assert byokg("compare", *runs).code == 0


@contextlib.contextmanager
def viewed(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> Iterator[Any]:
    """Start `byokg view`, and give what fetches JSON from it."""
    held: list[ViewServer] = []
    ready = threading.Event()

    class Kept(ViewServer):
        def serve_forever(self, poll_interval: float = 0.5) -> None:
            held.append(self)
            ready.set()
            super().serve_forever(0.01)

    monkeypatch.setattr("byokg.evaluation.report.server.ViewServer", Kept)
    thread = threading.Thread(target=main.main, args=(["view", "--no-open", *map(str, words)],))
    thread.start()
    assert ready.wait(60)

    def fetch(path: str) -> Any:
        address = re.fullmatch(r"http://([^/]+)(/.*)", held[0].address)
        assert address is not None
        connection = http.client.HTTPConnection(address[1])
        connection.request("GET", address[2] + path)
        return json.loads(connection.getresponse().read())

    try:
        yield fetch
    finally:
        held[0].shutdown()
        thread.join()


@pytest.mark.parametrize("name", ODD)
def test_runs_of_any_name_are_viewed(run: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    odd = run.rename(name)
    with viewed(monkeypatch, "--", odd) as fetch:
        assert [each["name"] for each in fetch("runs")["runs"]] == [name]


def test_what_is_no_folder_is_refused_by_its_name(byokg: Run) -> None:
    assert "there is no folder 'runs/beam=8'" in byokg("view", "runs/beam=8").err
    assert "there is no folder 'runs', nor 'beam=8'; name run folders" in byokg("view", "beam=8").err
    refused = byokg("eval", "dataset=atlas", "runs/beam=8")
    assert refused.err == (
        "error: ConfigError: 'runs/beam=8' is a path where a setting is wanted; settings are written KEY=VALUE\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("evl", "dataset=atlas"), "Did you mean 'eval'"),
        (("graph", "biuld"), "Did you mean 'build'"),
        (("eval", "--shw"), "--show"),
        (("eval", "--limt", "3"), "settings are written without dashes: limit=…"),
        (("eval", "--limit", "3"), "settings are written without dashes: limit=…"),
        (("ask", "Q?", "--graph-path", "x"), "settings are written without dashes: graph.path=…"),
        (("compare", "--metrc", "f1", "a", "b"), "--metric"),
    ],
)
def test_a_mistyped_command_or_option_gets_the_nearest_in_one_line(
    byokg: Run, words: tuple[str, ...], said: str
) -> None:
    refused = byokg(*words)
    assert refused.code == 2 and said in refused.err and refused.err.count("\n") == 1
