"""Print counts of files and code lines of the package per folder: `python scripts/count_code.py [--files]`.

A line of code is one that is not blank, comment, docstring or part of an import.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "byokg"


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a module and all statements, handlers and cases inside, and no expressions, which are ten times as many."""
    found = [tree]
    for node in found:  # grows by the statements inside
        yield node
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            found += getattr(node, name, ())


def code_lines(source: str, tree: ast.Module) -> int:
    """Return the number of lines of `source`, parsed into `tree`, that hold code."""
    lines: set[int] = set()
    passed = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in passed:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in statements(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", action="store_true", help="a row a file, too")
    shown = parser.parse_args()
    folders: dict[Path, list[tuple[Path, int, int]]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        source = file.read_text("utf-8")
        row = (file, code_lines(source, ast.parse(source)), len(source.splitlines()))
        folders.setdefault(file.parent.relative_to(PACKAGE.parent), []).append(row)
    print(f"{'files':>6} {'code':>7} {'lines':>7}  folder")
    for folder, rows in folders.items():
        print(f"{len(rows):6,} {sum(r[1] for r in rows):7,} {sum(r[2] for r in rows):7,}  {folder}")
        if shown.files:
            for file, code, lines in rows:
                print(f"{'':6} {code:7,} {lines:7,}    {file.name}")
    every = [row for rows in folders.values() for row in rows]
    longest = max(every, key=lambda row: row[2])
    print(f"{len(every):6,} {sum(r[1] for r in every):7,} {sum(r[2] for r in every):7,}  in all")
    print(f"longest file: {longest[0].relative_to(PACKAGE.parent)}, {longest[2]} lines")


if __name__ == "__main__":
    main()
