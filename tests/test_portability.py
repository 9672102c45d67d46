"""Other systems: nothing that Linux alone has is used unguarded, and a whole day of work passes without it."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from byokg.evaluation.run_folder import is_written
from tests.cli.conftest import KB, QUESTIONS, ROOT, Outcome
from tests.elsewhere import FUNCTIONS, MODULES, environment

FILES = sorted((ROOT / "byokg").rglob("*.py"))

ABSENT = MODULES.union(*FUNCTIONS.values())
WORD = re.compile(r"\w+")
OPENERS = frozenset(("open", "fdopen", "read_text", "write_text"))

FORKS = """
import importlib, json, os, pkgutil, sys
import byokg
from byokg.cli.main import main
failed = []
for module in pkgutil.walk_packages(byokg.__path__, "byokg."):
    try:
        importlib.import_module(module.name)
    except Exception as error:
        failed.append([module.name, type(error).__name__, str(getattr(error, "name", error))])
print(json.dumps(failed), flush=True)
for line in sys.stdin:
    words, folder, environment = json.loads(line)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.environ.update(environment)
            os.chdir(folder)
            for stream, name in ((1, "out"), (2, "err")):
                os.dup2(os.open("." + name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
            code = main(words)
            sys.stdout.flush()
        finally:
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Imports every module, prints which failed, and runs commands: each in a process of its own, forked from this one."""

HOLD = """
import sys
from pathlib import Path
from byokg.evaluation.run_folder import RunFolder
with RunFolder(Path(sys.argv[1]), {"a": 1}, [], b""):
    print("held", flush=True)
    sys.stdin.read()
"""

Elsewhere = Callable[..., Outcome]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of programs on another system."""
    return {**environment(tmp_path_factory.mktemp("site")), "COLUMNS": "100", "NO_COLOR": "1"}


@pytest.fixture(scope="module")
def forks(started: dict[str, str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start `FORKS`; return it, with what it printed of the modules."""
    command = [sys.executable, "-c", FORKS]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=started, stdin=pipe, stdout=pipe, text=True, encoding="utf-8") as process:
        assert process.stdin is not None and process.stdout is not None
        yield process, process.stdout.readline()
        process.stdin.close()


@pytest.fixture
def byokg(forks: tuple[subprocess.Popen[str], str], tmp_path: Path) -> Elsewhere:
    """Run `byokg` on another system, in the folder of the test."""
    stdin, stdout = forks[0].stdin, forks[0].stdout
    assert stdin is not None and stdout is not None

    def run(*words: str | Path) -> Outcome:
        request = [list(map(str, words)), str(tmp_path), {"XDG_CACHE_HOME": str(tmp_path / "cache")}]
        print(json.dumps(request), file=stdin, flush=True)
        code = int(stdout.readline())
        return Outcome(code, *((tmp_path / name).read_text("utf-8") for name in (".out", ".err")))

    return run


def functions(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the functions of a module, and the module itself for what stands outside of them."""
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def unguarded(file: Path) -> list[str]:
    """Return what a file uses, of what POSIX alone has, without `hasattr` in the same function."""
    text = file.read_text("utf-8")
    if ABSENT.isdisjoint(WORD.findall(text)):
        return []
    tree = ast.parse(text)
    guarded = {
        inner
        for function in functions(tree)
        if any(isinstance(node, ast.Name) and node.id == "hasattr" for node in ast.walk(function))
        for inner in ast.walk(function)
    }
    late = {inner for function in functions(tree) for inner in ast.walk(function)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else [str(node.module)]
            # Functions of `files` are the one place to ask the system for its limits.
            allowed = {"resource"} if file.name == "files.py" and node in late else set()
            found += [name for name in names if name.partition(".")[0] in MODULES - allowed]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node not in guarded:
            found += [f"{node.value.id}.{node.attr}"] if node.attr in FUNCTIONS.get(node.value.id, ()) else []
    return found


def test_what_only_posix_has_is_used_behind_a_guard() -> None:
    assert [(file.name, found) for file in FILES if (found := unguarded(file))] == []


MODES = {f"{first}{rest}" for first in "rwax" for rest in ("", "b", "+", "b+", "+b", "t")}


def text_mode(call: ast.Call) -> str | None:
    """Return the mode in which a call opens a text file; None if it opens none."""
    values = [each.value if isinstance(each, ast.Constant) else None for each in call.args]
    given = {each.arg: ast.unparse(each.value) for each in call.keywords}
    match call.func:
        case ast.Attribute(attr="write_text"):
            return "w"
        case ast.Attribute(attr="read_text"):
            return "r"
        case ast.Name(id="open") | ast.Attribute(attr="fdopen"):
            mode = str(values[1]) if len(values) > 1 else given.get("mode", "r")
        case ast.Attribute(attr="open", value=place):
            opens = not values and (bool(given) or ast.unparse(place).endswith("path"))
            if not opens and not (values and values[0] in MODES):
                return None  # a graph or an index, at a place
            mode = str(values[0]) if values else given.get("mode", "r")
        case _:
            return None
    return None if "b" in mode else mode


def unspecified(file: Path) -> list[str]:
    """Return where a file opens a text without an encoding, or writes one with the line ends of the system."""
    text, found = file.read_text("utf-8"), []
    for node in ast.walk(ast.parse("" if OPENERS.isdisjoint(WORD.findall(text)) else text)):
        if isinstance(node, ast.Call) and (mode := text_mode(node)) is not None:
            given = {each.arg for each in node.keywords}
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            encoded = "encoding" in given or len(node.args) > {"write_text": 1, "read_text": 0}.get(name, 9)
            if not encoded or (set("wax+") & set(mode) and "newline" not in given):
                found.append(ast.unparse(node))
    return found


def test_texts_are_opened_with_an_encoding_and_written_with_plain_line_ends() -> None:
    assert [(file.name, found) for file in FILES if (found := unspecified(file))] == []


def test_every_module_is_imported_on_another_system(forks: tuple[subprocess.Popen[str], str]) -> None:
    failed = json.loads(forks[1])
    extras = [each for each in failed if each[1] in ("ModuleNotFoundError", "MissingExtra")]
    assert failed == extras and not {each[2] for each in extras} & MODULES


def test_the_stand_in_takes_away_what_it_says(started: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "byokg_stand_in.py").write_text(
        "import os, sys\nprint(sys.platform, os.name, hasattr(os, 'fork'))\nimport fcntl\n", "utf-8"
    )
    own = {**started, "PYTHONPATH": os.pathsep.join((started["PYTHONPATH"], str(tmp_path)))}
    done = subprocess.run(
        [sys.executable, "-c", "import byokg_stand_in"], env=own, capture_output=True, check=False, text=True
    )
    assert done.stdout == "win32 nt False\n" and "No module named 'fcntl'" in done.stderr


def test_help_is_shown_and_the_doctor_says_what_is_limited(byokg: Elsewhere) -> None:
    assert byokg("--help").code == 0
    done = byokg("doctor")
    assert done.code == 0, done.err
    assert "open files" in done.out and "no limit" in done.out


def test_a_day_of_work_passes_on_another_system(byokg: Elsewhere, tmp_path: Path) -> None:
    films = tmp_path / "films"
    films.mkdir()
    (films / "kb.txt").write_text(KB, "utf-8")
    (films / "questions.jsonl").write_text(QUESTIONS, "utf-8")
    (tmp_path / "asked.txt").write_text("Who directed Heat?\n", "utf-8")
    words = ("dataset=folder", "dataset.root=films", "graph.path=graph")
    for command in (
        ("graph", "build", "films", "--out", "graph"),
        ("graph", "build", "films", "--out", "graph", "--overwrite"),
        ("graph", "info", "graph"),
        ("ask", "Who directed Heat?", "graph.path=graph"),
        ("eval", *words, "workers=2", "limit=1", "out=run", "-q"),
        ("eval", *words, "workers=2", "out=run", "-q"),  # goes on with it
        ("eval", *words, "workers=2", "out=run", "-q"),  # and shows it
        ("eval", "-m", *words, "pipeline.beam=4,8", r"out=runs\sweep", "-q"),
        ("answer", "asked.txt", "--graph", "graph", "--out", "said.csv"),
        ("answer", "asked.txt", "--graph", "graph", "--out", "said.csv", "--overwrite"),
        ("testset", "graph", "--out", "made", "--questions", "5"),
        ("testset", "graph", "--out", "made", "--questions", "5", "--overwrite"),
        ("graph", "export", "graph", "--out", "exported", "--format", "csv"),
        ("graph", "names", "graph"),
        ("score", "run", "--profile", "all"),
        ("report", "run", "--out", "report.html"),
    ):
        done = byokg(*command)
        assert done.code == 0, (command, done.err)
    assert (tmp_path / "said.csv").read_bytes().count(b"\r") == 0
    left = [str(path) for path in tmp_path.rglob(".*.partial-*")]
    assert left == []


@pytest.mark.parametrize(
    ("engine", "option", "query"),
    [
        ("arcadedb_embedded", "--cypher", "MATCH (n {name: 'Heat'})-[:directed_by]->(d) RETURN d.name"),
        ("pyoxigraph", "--sparql", "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }"),
    ],
)
def test_engines_answer_on_another_system(
    byokg: Elsewhere, tmp_path: Path, engine: str, option: str, query: str
) -> None:
    pytest.importorskip(engine)
    (tmp_path / "kb.txt").write_text(KB, "utf-8")
    built = byokg("graph", "build", "kb.txt", "--out", "graph", option)
    assert built.code == 0, built.err
    done = byokg("graph", "query", "graph", query)
    assert done.code == 0, done.err
    assert byokg("graph", "build", "kb.txt", "--out", "graph", option, "--overwrite").code == 0


def test_a_run_folder_is_held_by_one_process_and_free_once_that_is_killed(
    started: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path / "run")]
    with subprocess.Popen(command, env=started, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        second = subprocess.run(command, env=started, input=b"", capture_output=True, check=False)
        assert second.returncode == 1
        assert f"is being written by another process (pid {holder.pid})".encode() in second.stderr
        assert is_written(tmp_path / "run")
        os.kill(holder.pid, signal.SIGKILL)
    assert not is_written(tmp_path / "run")
    third = subprocess.run(command, env=started, input=b"", capture_output=True, check=True)
    assert third.stdout == b"held\n"
