"""What README and docs show works: every command, every Python block, the output below them, every path and name.

A block is run where it stands, the blocks of a page in order and in one folder. A comment before a block says that it
is a file (`<!-- file: mine.py -->`), or what it needs that a test does not have (`<!-- needs: key -->`): its commands,
options and settings are then checked, and not run. In the output that a page shows, `…` stands for anything.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

NEEDS = {
    "key": "a key of a provider of language models",
    "data": "data sets that are not in the repository",
    "files": "files of the reader's own",
    "make": "an environment that make builds",
    "network": "packages from the network",
    "server": "a server, or that somebody ends it",
}
"""What a page may say that a block needs; blocks that need it are checked and not run."""

BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>needs|file): (?P<words>[^>]*?) -->\n+)?"
    r"^```(?P<kind>\w+)\n(?P<body>.*?)^```$"
    r"(?:\n+prints\n+```text\n(?P<printed>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
FENCE = re.compile(r"^```(\w*)$", re.MULTILINE)
NAMED_PATH = re.compile(r"`((?:byokg|configs|scripts|benchmarks|tests|notebooks|docs)/[\w./-]*)`")
NAMED_MODULE = re.compile(r"\b(byokg(?:\.[a-zA-Z_]\w*)+)\b")
ENTRY_POINTS = {"byokg.pipelines", "byokg.retrievers", "byokg.stores", "byokg.datasets"}

each_page = pytest.mark.parametrize("page", PAGES, ids=[path.relative_to(ROOT).as_posix() for path in PAGES])


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and the output that the page says it prints (empty if it shows none)."""

    kind: str
    body: str
    needs: str
    file: str
    """Where the block lies when it is a file, and nothing to run."""
    line: int
    printed: str


@dataclass(frozen=True)
class Command:
    """A line after `$`, and the output below it."""

    text: str
    printed: str


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page that are files, or can be run or checked."""
    text = page.read_text("utf-8")
    for match in BLOCK.finditer(text):
        words = {match["mark"]: match["words"]}
        line = text.count("\n", 0, match.start("body"))
        if "file" in words or match["kind"] in ("console", "python"):
            needs, file = words.get("needs", ""), words.get("file", "")
            yield Block(match["kind"], match["body"], needs, file, line, match["printed"] or "")


def commands(body: str) -> Iterator[Command]:
    """Cut a console block into its commands; a line that ends in a backslash goes on."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        text, _, printed = part.replace("\\\n", "").partition("\n")
        yield Command(text, printed)


def like(printed: str, shown: str) -> bool:
    """Tell whether what was printed is what a page shows, where `…` stands for anything, also for whole lines."""
    pattern = "".join(
        "(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*?") + "\n" for line in trimmed(shown)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in trimmed(printed))) is not None


def trimmed(text: str) -> list[str]:
    """Return a text's lines without the spaces behind them and the empty lines around them."""
    return "\n".join(map(str.rstrip, text.splitlines())).strip("\n").splitlines()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder that looks like the repository to whoever reads it, with an empty cache."""
    for name in ("byokg", "configs", "notebooks"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("BYOKG_CONFIG_DIR", "")
    monkeypatch.delenv("BYOKG_DEBUG", raising=False)
    return tmp_path


@each_page
def test_what_a_page_shows_works(
    page: Path,
    place: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if "byokg demo --out runs/demo" in page.read_text("utf-8"):  # once is enough
        (place / "runs").mkdir()
        (place / "runs" / "demo").symlink_to(request.getfixturevalue("demo"))
    names: dict[str, Any] = {}
    for block in blocks(page):
        where = f"{page.relative_to(ROOT)}:{block.line + 1}"
        needs = [need for need in block.needs.split(", ") if need]
        extras = [need.removeprefix("extra ") for need in needs if need.startswith("extra ")]
        if any(importlib.util.find_spec(module) is None for module in extras):
            continue
        runs = len(extras) == len(needs)
        capfd.readouterr()
        if block.file:
            (place / block.file).parent.mkdir(parents=True, exist_ok=True)
            (place / block.file).write_text(block.body, "utf-8")
        elif block.kind == "python" and runs:
            exec(compile(block.body, where, "exec"), names)
            printed = capfd.readouterr().out
            assert not block.printed or like(printed, block.printed), f"{where} prints\n{printed}"
        elif block.kind == "python":
            checked_python(block.body, where)
        else:
            for command in commands(block.body):
                if runs:
                    run(command, where, capfd, monkeypatch)
                else:
                    checked(command.text, where)


def run(command: Command, where: str, capfd: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
    """Run one line of a console: what is nothing but `byokg` in this process, all else in a shell."""
    from byokg.cli.main import main

    words = shlex.split(command.text, comments=True)
    if words[0] == "PYTHONPATH=.":
        patch.syspath_prepend(words.pop(0).partition("=")[2])
        for own in Path().glob("*.py"):  # another test may have imported a module of the same name, or will
            patch.setitem(sys.modules, own.stem, None)
            del sys.modules[own.stem]
    if words[0] == "byokg" and not {"|", ">", "&&", "&"} & set(words):
        code = main(words[1:])
        captured = capfd.readouterr()
        printed, errors = captured.out, captured.err
    else:
        function = f'byokg() {{ PYTHONPATH="$PYTHONPATH:{ROOT}" "{sys.executable}" -P -m byokg "$@"; }}\n'
        done = subprocess.run(["bash", "-c", function + command.text], capture_output=True, text=True, check=False)
        code, printed, errors = done.returncode, done.stdout, done.stderr
    assert code == 0, f"{where}: {command.text}\n{printed}{errors}"
    assert not command.printed.strip() or like(printed, command.printed), f"{where}: {command.text}\nprints\n{printed}"


def checked(text: str, where: str) -> None:
    """Check a command that cannot be run: it exists, and so do its options and settings."""
    words = [word for word in shlex.split(text, comments=True) if word != "…"]
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words.pop(0)  # variables of the environment
    program, *rest = words
    if program == "byokg":
        checked_byokg(rest, f"{where}: {text}")
    elif program == "make":
        targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        unknown = [word for word in rest if "=" not in word and word not in targets]
        assert unknown == [], f"{where}: the Makefile has no {unknown}"
    elif program == "pip" or program.endswith("/pip"):
        declared = (ROOT / "pyproject.toml").read_text("utf-8")
        for extra in re.findall(r"\[([\w,]+)\]", text):
            assert all(re.search(rf"^{each} = \[", declared, re.MULTILINE) for each in extra.split(",")), where
    elif program in ("python", "bash", "sh") or program.startswith("scripts/"):
        [file, *_] = [word for word in words if word.endswith((".py", ".sh"))]
        assert (ROOT / file).is_file(), f"{where}: there is no {file}"
    else:
        assert program in (".", "export", "cd", "git"), f"{where}: say how to check {program!r}"


def checked_byokg(words: list[str], where: str) -> None:
    from byokg.cli.config import read_settings
    from byokg.cli.main import COMMANDS, load

    assert words and words[0] in COMMANDS, f"{where}: no such command"
    name, *words = words
    command = load(name)
    while hasattr(command, "commands"):
        assert words and words[0] in command.commands, f"{where}: no such command"
        name, *words = words
        command = command.commands[name]
    context = command.make_context(name, list(words))
    settings = [
        value
        for each in command.params
        if each.param_type_name == "argument" and (each.metavar or "").startswith("KEY=VALUE")
        for value in context.params.get(each.name) or ()
    ]
    several = context.params.get("multirun")
    single = [each.partition(",")[0] if several else each for each in settings if not each.startswith("hydra")]
    read_settings(single)


def checked_python(body: str, where: str) -> None:
    """Check a block that cannot be run: it is Python, and what it imports from byokg is there."""
    for node in ast.walk(ast.parse(body, where)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("byokg"):
            module = importlib.import_module(node.module or "")
            assert [each.name for each in node.names if not hasattr(module, each.name)] == [], where


@each_page
def test_blocks_that_are_not_run_say_why_and_all_blocks_say_what_they_are(page: Path) -> None:
    for block in blocks(page):
        for need in filter(None, block.needs.split(", ")):
            assert need in NEEDS or need.startswith("extra "), f"{page.name}:{block.line + 1}: unknown need {need!r}"
    opened = FENCE.findall(page.read_text("utf-8"))[::2]
    assert [kind for kind in opened if not kind] == []


@each_page
def test_paths_and_modules_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text("utf-8")
    missing = [path for path in NAMED_PATH.findall(text) if not (ROOT / path).exists()]
    missing += sorted({name for name in NAMED_MODULE.findall(text) if not importable(name)} - ENTRY_POINTS)
    assert missing == []


def importable(name: str) -> bool:
    """Tell whether a dotted name is a module, or something in one."""
    words = name.split(".")
    for cut in range(len(words), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(words[:cut]))
        except ModuleNotFoundError:
            continue
        for word in words[cut:]:
            if not hasattr(found, word):
                return False
            found = getattr(found, word)
        return True
    return False


@pytest.mark.parametrize(
    ("printed", "shown", "same"),
    [
        ("a\nb", "a\nb", True),
        ("a\nb", "a", False),
        ("a 1.5 s", "a … s", True),
        ("a\nb\nc\nd", "a\n…\nd", True),
        ("a\nd", "a\n…\nd", True),
        ("a\nb\nc", "a\n…", True),
        ("a\nb\nc", "b\n…", False),
    ],
)
def test_an_ellipsis_stands_for_anything(printed: str, shown: str, same: bool) -> None:
    assert like(printed, shown) is same


def test_what_can_be_run_passes_the_check_too() -> None:
    checked("byokg eval -m dataset=atlas pipeline.beam=8,32 out=runs/x", "here")
    checked("BYOKG_MCP_TOKEN=… byokg mcp serve atlas.graph --http --port 8000      # a comment", "here")
    checked("pip install 'byokg[cypher,sparql]'", "here")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("byokg evaluate", "no such command"),
        ("byokg ask Q --tracing", "--tracing"),
        ("byokg eval pipeline.beem=3", "nearest: pipeline.beam"),
        ("make coffee", "the Makefile has no"),
        ("pip install 'byokg[coffee]'", "here"),
        ("python benchmarks/coffee.py", "there is no benchmarks/coffee.py"),
        ("rm -rf x", "say how to check 'rm'"),
    ],
)
def test_what_is_not_there_is_noticed(text: str, complaint: str) -> None:
    with pytest.raises(Exception, match=complaint):
        checked(text, "here")
