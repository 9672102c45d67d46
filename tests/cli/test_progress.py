"""Tests of `byokg.cli.terminal`."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from byokg.cli import terminal
from byokg.cli.terminal import Output, building, embedding_shown, shown
from byokg.evaluation.runner import Progress
from byokg.index.dense import Embedded


def printed(total: int, terminal: bool, quiet: bool = False, start: int = 0) -> str:
    """Return what is printed for a run of `total` questions, of which every second one is hit."""
    target = io.StringIO()
    console = Console(file=target, force_terminal=terminal, width=100, color_system=None)
    with shown("[films] test", total, Output(console, console, quiet)) as tell:
        for done in range(start + 1, total + 1):
            tell(Progress(done, total, failed=done // 20, hit=(done // 2) / done))
    return target.getvalue()


def test_without_a_terminal_ten_lines_are_printed_however_many_questions_there_are() -> None:
    lines = printed(1000, terminal=False).splitlines()
    assert len(lines) == 10
    assert lines[0] == "[films] test: 100/1,000  Hit 50.0 %, 5 failed"
    assert lines[-1] == "[films] test: 1,000/1,000  Hit 50.0 %, 50 failed"


def test_few_questions_get_a_line_each() -> None:
    assert printed(3, terminal=False).splitlines() == [
        "[films] test: 1/3  Hit 0.0 %",
        "[films] test: 2/3  Hit 50.0 %",
        "[films] test: 3/3  Hit 33.3 %",
    ]


def test_a_continued_run_starts_where_it_is() -> None:
    assert printed(100, terminal=False, start=54).splitlines()[0].startswith("[films] test: 55/100")


def test_on_a_terminal_a_bar_shows_title_count_and_running_hit() -> None:
    text = printed(40, terminal=True)
    assert "[films] test" in text and "40/40" in text and "Hit 50.0 %, 2 failed" in text


def test_quiet_prints_nothing() -> None:
    assert printed(40, terminal=True, quiet=True) == printed(40, terminal=False, quiet=True) == ""


def embedding_printed(terminal: bool, quiet: bool = False) -> str:
    target = io.StringIO()
    console = Console(file=target, force_terminal=terminal, width=100, color_system=None)
    with embedding_shown("embedding", Output(console, console, quiet)) as tell:
        for done in range(100, 1001, 100):
            tell(Embedded(done, 1000))
    return target.getvalue()


def test_embedding_tells_how_many_how_fast_and_how_long_yet() -> None:
    lines = embedding_printed(terminal=False).splitlines()
    assert len(lines) == 10
    assert re.fullmatch(r"embedding: 100/1,000  [\d,]+ names/s, \d+:\d\d:\d\d left", lines[0])
    assert lines[-1].endswith("names/s, 0:00:00 left")
    assert "1000/1000" in embedding_printed(terminal=True) and "names/s" in embedding_printed(terminal=True)
    assert embedding_printed(terminal=True, quiet=True) == ""


def test_a_build_says_how_far_it_is_how_long_it_takes_and_what_space_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "graph.tsv"
    source.write_bytes(b"x" * 1000)
    monkeypatch.setattr(terminal, "_EVERY_S", 0.0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Disk", (), {"free": 10**9}))
    said: list[str] = []
    told = building([source], tmp_path / "graph", said.append)
    with source.open("rb", buffering=0) as file:
        file.read(100)  # which is not yet edges
        for count in (10_000_000, 20_000_000):
            file.read(200)
            told("read", count)
    told("sorted", 10_000_000)
    assert re.fullmatch(r"read 10,000,000 edges, 30% \(0/s\)", said[0])
    assert said[1] == (
        "about 45.0 million edges: the graph will take 1.1 GB, and building it 1.4 GB more until it is done; "
        "1.0 GB are free; THAT IS NOT ENOUGH"
    )
    assert re.fullmatch(r"read 20,000,000 edges, 50% \([\d,]+/s, 0 s left of this\)", said[2])
    assert re.fullmatch(r"sorted 10,000,000 edges, 50% \(0/s\)", said[3])
