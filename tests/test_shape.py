"""The figures of `scripts/check_shape.py` stay within their limits."""

from __future__ import annotations

import ast

import pytest

from scripts.check_shape import LIMITS, PROSE, docstrings, measure


@pytest.fixture(scope="module")
def figures() -> dict[str, float]:
    """Measure the package once."""
    return measure()


@pytest.mark.parametrize("name", LIMITS)
def test_no_figure_exceeds_its_limit(name: str, figures: dict[str, float]) -> None:
    if name not in figures:
        pytest.skip("no git history here")
    assert figures[name] <= LIMITS[name], "python scripts/check_shape.py prints all figures"


@pytest.mark.parametrize(
    ("fault", "text", "found"),
    [
        ("what", "Return what is left, and what comes of it.", 2),
        ("what", "Return the rest.", 0),
        ("where", "Empty where there is none.", 1),
        ("where", "The place where edges start.", 0),
        ("say, tell, ask", "Tell whether a node says so.", 2),
        ("say, tell, ask", "True if a node matches the task.", 0),
    ],
)
def test_prose_faults_are_counted(fault: str, text: str, found: int) -> None:
    assert len(PROSE[fault].findall(text)) == found


def test_docstrings_include_strings_below_assignments() -> None:
    source = '"""Module."""\nLIMIT = 3\n"""Largest value."""\n\ndef f():\n    """Function."""\n    return "none"\n'
    assert list(docstrings(ast.parse(source))) == ["Module.", "Largest value.", "Function."]
