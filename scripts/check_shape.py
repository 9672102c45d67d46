"""Print figures of the code's shape and language, each with its limit: `python scripts/check_shape.py [--json FILE]`.

The exit status is 1 if a figure exceeds its limit. `tests/test_shape.py` runs the same comparison, so that no figure
grows unnoticed; lower a limit when the code has improved, never raise one.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.count_code import code_lines, statements  # noqa: E402

PACKAGE = ROOT / "byokg"

LONG_FUNCTION, LONG_CLASS, MANY_PARAMETERS, LONG_TITLE, RECENT_COMMITS = 60, 300, 8, 72, 100

OFFLINE_ROOM = re.compile(r"byokg\.offline(\.|$)")
"""Modules that parse English, score paths without a model, execute aggregations or calibrate the answer."""

ARRAY_ALIASES = {"Int64", "Float", "Float32", "Float64", "Bools"}

_NOUN_AFTER_WHAT = "is was a an the it they one of are were may can has had else comes? came stands? [a-z]+s"
_AFTER_WHERE = (
    "there that it they one a an the nothing some none only no any nodes? two all what several its everything nobody"
)
PROSE = {
    "what": re.compile(rf"\b[Ww]hat (?:{'|'.join(_NOUN_AFTER_WHAT.split())})\b"),
    "where": re.compile(rf"\bwhere (?:{'|'.join(_AFTER_WHERE.split())})\b"),
    "say, tell, ask": re.compile(r"\b(?:[Tt]old|[Tt]ells?|[Ss]aid|[Ss]ays?|[Ss]peaks?|[Aa]sked)\b"),
}
"""Free relative clauses, conditional `where`, and verbs of speech with code as their subject."""

LIMITS: dict[str, float] = {
    "what per 1,000 docstring words": 0.5,
    "where per 1,000 docstring words": 0.5,
    "say, tell, ask per 1,000 docstring words": 0.5,
    "class names in two modules": 0,
    "imports of the offline room from outside": 6,
    "modules outside that import the offline room": 5,
    "module-level numbers in the offline room": 24,
    f"functions with more than {MANY_PARAMETERS} parameters": 4,
    f"functions over {LONG_FUNCTION} lines": 3,
    f"classes over {LONG_CLASS} lines": 4,
    "protocols in graph/store.py": 1,
    "array aliases": 0,
    "code lines": 61_920,
    "code lines of scripts and benchmarks": 10_000,
    f"commit titles over {LONG_TITLE} characters, of the last {RECENT_COMMITS}": 5,
}
"""Largest value of each figure that the suite accepts."""


@dataclass(frozen=True)
class Module:
    """A parsed file of the package."""

    name: str
    source: str
    tree: ast.Module

    @property
    def in_room(self) -> bool:
        """True if the module belongs to the offline room."""
        return OFFLINE_ROOM.match(self.name) is not None


@cache
def modules() -> tuple[Module, ...]:
    """Parse all files of the package, in order of their paths."""
    parsed = []
    for file in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        source = file.read_text("utf-8")
        parsed.append(Module(name, source, ast.parse(source)))
    return tuple(parsed)


def docstrings(tree: ast.AST) -> Iterator[str]:
    """Yield docstrings of modules, classes and functions, and the strings below assignments."""
    for node in statements(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield ast.get_docstring(node) or ""
        for before, after in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(before, ast.Assign | ast.AnnAssign)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            ):
                yield after.value.value


def measure_prose() -> Iterator[tuple[str, float]]:
    """Yield each fault of `PROSE` per 1,000 words of docstrings."""
    texts = [text for module in modules() for text in docstrings(module.tree)]
    words = sum(len(text.split()) for text in texts)
    for fault, pattern in PROSE.items():
        found = sum(len(pattern.findall(text)) for text in texts)
        yield f"{fault} per 1,000 docstring words", round(1000 * found / words, 1)


def measure_sizes() -> Iterator[tuple[str, float]]:
    """Yield counts of large functions, classes and signatures."""
    nodes = [node for module in modules() for node in statements(module.tree)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    parameters = [len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs) for node in functions]
    yield f"functions with more than {MANY_PARAMETERS} parameters", sum(n > MANY_PARAMETERS for n in parameters)
    yield f"functions over {LONG_FUNCTION} lines", sum(lines(node) > LONG_FUNCTION for node in functions)
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    yield f"classes over {LONG_CLASS} lines", sum(lines(node) > LONG_CLASS for node in classes)
    yield "code lines", sum(code_lines(module.source, module.tree) for module in modules())
    files = (file for folder in ("scripts", "benchmarks") for file in (ROOT / folder).rglob("*.py"))
    sources = (file.read_text("utf-8") for file in files)
    yield "code lines of scripts and benchmarks", sum(code_lines(source, ast.parse(source)) for source in sources)


def lines(node: ast.stmt) -> int:
    """Return the number of lines of a statement."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def measure_names() -> Iterator[tuple[str, float]]:
    """Yield counts of repeated class names, array aliases outside `byokg.arrays`, and store protocols."""
    classes: Counter[str] = Counter()
    aliases = 0
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                classes[node.name.lstrip("_")] += 1
        if module.name != "byokg.arrays":
            aliases += sum(name in ARRAY_ALIASES for name, _ in assignments(module.tree))
    yield "class names in two modules", sum(count > 1 for count in classes.values())
    yield "array aliases", aliases
    store = next((module.source for module in modules() if module.name == "byokg.graph.store"), "")
    yield "protocols in graph/store.py", len(re.findall(r"^class \w+\(.*Protocol", store, re.MULTILINE))


def assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield name and value of assignments at module level; "" for a target that is no single name."""
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and value is not None:
            yield target.id if isinstance(target, ast.Name) else "", value


def measure_room() -> Iterator[tuple[str, float]]:
    """Yield the leaks of the offline room and the numbers in it."""
    leaks = [
        module.name
        for module in modules()
        if not module.in_room
        for node in statements(module.tree)
        if isinstance(node, ast.ImportFrom) and node.module and OFFLINE_ROOM.match(node.module)
    ]
    yield "imports of the offline room from outside", len(leaks)
    yield "modules outside that import the offline room", len(set(leaks))
    values = (value for module in modules() if module.in_room for _, value in assignments(module.tree))
    numbers = (part for value in values for part in (value.elts if isinstance(value, ast.Tuple) else [value]))
    yield "module-level numbers in the offline room", sum(is_number(part) for part in numbers)


def is_number(node: ast.expr) -> bool:
    """True for a literal int or float, signed or not."""
    value = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def measure_commits() -> Iterator[tuple[str, float]]:
    """Yield the number of long titles among recent commits; nothing outside a git checkout."""
    command = ["git", "-C", str(ROOT), "log", f"-{RECENT_COMMITS}", "--no-merges", "--format=%s"]
    try:
        log = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    except (OSError, subprocess.CalledProcessError):
        return
    long_titles = sum(len(title) > LONG_TITLE for title in log.splitlines())
    yield f"commit titles over {LONG_TITLE} characters, of the last {RECENT_COMMITS}", long_titles


def measure() -> dict[str, float]:
    """Return all figures by name, in the order of `LIMITS`."""
    figures = dict(
        figure
        for group in (measure_prose, measure_sizes, measure_names, measure_room, measure_commits)
        for figure in group()
    )
    return {name: figures[name] for name in LIMITS if name in figures}


def main() -> int:
    """Print the table; return 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for rows of name, value, unit and limit")
    options = parser.parse_args()
    figures = measure()
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name:{width}}  {value:>9,g}  limit {LIMITS[name]:>9,g}{'' if value <= LIMITS[name] else '  exceeded'}")
    if options.json:
        rows = [
            {"name": name, "value": value, "unit": "count", "limit": LIMITS[name]} for name, value in figures.items()
        ]
        options.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return any(value > LIMITS[name] for name, value in figures.items())


if __name__ == "__main__":
    sys.exit(main())
