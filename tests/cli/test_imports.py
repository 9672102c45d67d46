"""What a command imports and runs of the package: as much as it uses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.name_indexes import build_names
from tests.cli.conftest import ROOT

MODULES = 116
"""Modules of the package that an answer without a language model may import, packages among them."""

FILES = 88
"""Files of the package of which a function may run for an answer with a language model, imports apart."""

ABSENT = ("servers", "rdf", "engines", "importers", "guard", "bfsql")
"""What an answer from a graph in a folder has no use for."""

FOREIGN = {"langchain_core", "pandas", "torch", "httpx", "huggingface_hub"}

PROGRAM = """
import json, sys
ran, package = set(), sys.argv.pop(1)
def notice(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and code.co_filename.startswith(package) and not importing(frame):
        ran.add(code.co_filename)  # of a function, since class bodies have no such flag
def importing(frame):
    while frame is not None and frame.f_code.co_filename != "<string>":
        if frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False
from byokg.cli.main import main
sys.setprofile(notice)
code = main()
sys.setprofile(None)
print(json.dumps([code, sorted(sys.modules), sorted(ran)]))
"""


def asked(*words: str | Path) -> tuple[list[str], list[str]]:
    """Ask a question in a process of its own; return the modules it imported, and the files in which something ran."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT / "byokg"), "ask", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    code, modules, files = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    return modules, files


@pytest.fixture
def built(graph: Path) -> Path:
    """Return the graph of `films` with its index of names, as `byokg graph build` makes it."""
    build_names(ColumnarGraph.open(graph))
    return graph


def test_an_answer_from_a_folder_imports_neither_servers_nor_rdf_nor_engines(built: Path) -> None:
    modules, _ = asked("Who directed Heat?", f"graph.path={built}")
    ours = [name for name in modules if name.partition(".")[0] == "byokg"]
    assert len(ours) <= MODULES
    assert [name for name in ours if any(f".{word}" in name for word in ABSENT)] == []
    assert FOREIGN & set(modules) == set()


def test_an_answer_with_a_language_model_runs_few_files(built: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    reply = "<entities>Heat</entities><paths>directed_by</paths><answers>Michael Mann</answers>"
    rules.write_text(f"- reply: '{reply}'\n", "utf-8")
    modules, files = asked(
        *("Who directed Heat?", f"graph.path={built}", "pipeline=byokg", "llm=scripted", f"llm.rules={rules}")
    )
    assert len(files) <= FILES, "\n".join(files)
    assert [name for name in modules if name.startswith("byokg.graph.servers")] == []


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_imports_no_command(words: list[str]) -> None:
    program = f"import sys; from byokg.cli.main import main; main({words!r}); print([*sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    ours = [name for name in eval(done.stdout.splitlines()[-1]) if name.startswith("byokg.cli.")]
    assert sorted(ours) == ["byokg.cli.main", "byokg.cli.terminal"]
