"""What tests of the command line share: small graphs, and `byokg` run in this process or in one of its own."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main
from pydantic import TypeAdapter

from byokg.cli import main as commands
from byokg.cli.components import CONFIG_DIR
from byokg.cli.main import main
from byokg.cli.terminal import DEBUG
from byokg.graph.importers.choose import build_graph

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
from byokg.cli.main import main
sys.exit(main())
"""
"""What an installed `byokg` runs."""

KB = """\
Heat|directed_by|Michael Mann
Collateral|directed_by|Michael Mann
Heat|starred_actors|Al Pacino
Heat|starred_actors|Robert De Niro
Heat|release_year|1995
Collateral|starred_actors|Tom Cruise
Collateral|release_year|2004
The Insider|directed_by|Michael Mann
The Insider|starred_actors|Al Pacino
Ali|directed_by|Michael Mann
Ali|release_year|2001
"""
"""Four films of one director: Heat, Collateral, The Insider, Ali."""

QUESTIONS = """\
{"id": "q1", "question": "Who directed Heat?", "answers": ["Michael Mann"], "topic_entities": ["Heat"], "hops": 1}
{"id": "q2", "question": "When was Collateral released?", "answers": ["2004"], "topic_entities": ["Collateral"]}
{"id": "q3", "question": "Which films starred Al Pacino?", "answers": ["Heat", "The Insider"], "split": "dev"}
"""


@dataclass(frozen=True)
class Outcome:
    """How a run of `byokg` ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture(scope="session", autouse=True)
def _made_once() -> Iterator[None]:
    """Make each command from its function once, and the check of a run's settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        patch.setattr(commands, "load", functools.cache(commands.load))
        patch.setattr("byokg.cli.config.TypeAdapter", functools.cache(TypeAdapter))
        yield


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep each test in its own folder, with its own cache and a terminal of known width."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv(DEBUG, raising=False)
    monkeypatch.setenv(CONFIG_DIR, "")


@pytest.fixture
def byokg(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process."""

    def run(*words: str | Path) -> Outcome:
        capsys.readouterr()
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


def start(words: Sequence[str | Path], **environment: str) -> subprocess.Popen[str]:
    """Start the command line in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def finish(process: subprocess.Popen[str]) -> Outcome:
    """Wait for such a process to end."""
    out, err = process.communicate()
    return Outcome(process.returncode, out, err)


@pytest.fixture
def films(tmp_path: Path) -> Path:
    """Return a folder with the graph's source and three questions about it."""
    folder = tmp_path / "films"
    folder.mkdir()
    (folder / "kb.txt").write_text(KB, "utf-8")
    (folder / "questions.jsonl").write_text(QUESTIONS, "utf-8")
    return folder


@pytest.fixture
def graph(films: Path, tmp_path: Path) -> Path:
    """Return the built graph of `films`."""
    build_graph(films, tmp_path / "graph")
    return tmp_path / "graph"
