"""Change single operators and constants of the code that decides, and count the changes that its tests notice.

python scripts/mutants.py [--changes N] [--seed N] [--part metrics]

Each change is made in a copy of the repository, on which the tests of that part run. Changes that no test notices are
listed; the exit status is 1 if they are more than `ACCEPTED` of a part: some make no difference that a caller sees.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parents[1]

COPIED = ("byokg", "configs", "tests", "scripts", "benchmarks", "pyproject.toml")
"""What the tests of a part read."""

ACCEPTED = 0.3
"""Largest share of changes that may go unnoticed in a part."""


@dataclass(frozen=True)
class Part:
    """Files that are changed, and the tests of them."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


GUARD = "allowlist cypher cypher_expressions guard sparql tokens".split()
LINKING = ("tests/linking", "tests/offline/test_linker.py", "tests/offline/test_languages.py")
SCORING = ("tests/offline/test_path_scorer.py", "tests/offline/test_ranking.py")
METRICS = ("tests/evaluation/test_metrics.py", "tests/evaluation/test_retrieval_metrics.py")
PARTS = {
    "metrics": Part(("byokg/evaluation/metrics.py",), METRICS),
    "guard": Part(
        tuple(f"byokg/graph/guard/{name}.py" for name in GUARD),
        ("tests/graph/guard/test_guard.py", "tests/graph/guard/test_sparql.py"),
    ),
    "linking": Part(("byokg/linking/entities.py",), LINKING),
    "path scoring": Part(("byokg/offline/path_scorer.py",), SCORING),
}

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def change(node: ast.AST) -> bool:
    """Change a node in place, if it is an operator or a constant."""
    match node:
        case ast.Compare(ops=[operator, *_]) if type(operator) in SWAPPED:
            node.ops[0] = cast(ast.cmpop, SWAPPED[type(operator)]())
        case ast.BinOp() if type(node.op) in SWAPPED:
            node.op = cast(ast.operator, SWAPPED[type(node.op)]())
        case ast.BoolOp():
            node.op = cast(ast.boolop, SWAPPED[type(node.op)]())
        case ast.UnaryOp(op=ast.Not()):
            node.op = ast.UAdd()
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value) | float(value)):
            node.value = value + 1
        case _:
            return False
    return True


def changed(source: str) -> Iterator[tuple[str, str]]:
    """Yield the place and the whole source of each single change inside functions."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = dict.fromkeys(node for function in functions for part in function.body for node in ast.walk(part))
    before = ast.unparse(tree).splitlines()
    for node in inside:
        fields = dict(vars(node), ops=list(getattr(node, "ops", ())))
        if change(node):
            after = ast.unparse(tree)
            new = next((new for old, new in zip(before, after.splitlines(), strict=False) if old != new), "")
            yield f"{getattr(node, 'lineno', 0)}: {new.strip()}", after
            vars(node).update({name: value for name, value in fields.items() if name in node._fields})


def noticed(copy: Path, tests: tuple[str, ...]) -> bool:
    """Run the tests of a part in the copy; True if one fails."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=1800)
    if done.returncode not in (0, 1, 2):
        sys.exit(done.stdout + done.stderr)
    return done.returncode != 0


def unnoticed(copy: Path, part: Part, count: int, seed: int) -> list[str]:
    """Make some changes, each alone; return those that no test notices."""
    every = [(file, place, after) for file in part.files for place, after in changed((ROOT / file).read_text("utf-8"))]
    left = []
    for file, place, after in random.Random(seed).sample(every, count):
        (copy / file).write_text(after, "utf-8")
        if not noticed(copy, part.tests):
            left.append(f"{file}:{place}")
        shutil.copy(ROOT / file, copy / file)
    return left


def main() -> None:
    """Read the command line, change, and print the changes that went unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=12, help="number of changes in each part")
    parser.add_argument("--seed", type=int, default=0, help="of the draw of changes")
    parser.add_argument("--part", choices=PARTS, action="append", help="only these parts")
    given = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as place:
        for name in COPIED:
            copied = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copied(ROOT / name, Path(place) / name)
        for name in given.part or PARTS:
            if noticed(Path(place), PARTS[name].tests):
                sys.exit(f"{name}: the tests fail without any change")
            left = unnoticed(Path(place), PARTS[name], given.changes, given.seed)
            failed |= len(left) > ACCEPTED * given.changes
            caught = given.changes - len(left)
            print(f"{name}: {caught} of {given.changes} changes noticed", *left, sep="\n  ", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
