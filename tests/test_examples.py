"""Every script in `examples` runs in a process of its own, is short, and prints its result."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MOST_LINES = 40

PRINTED = {
    "01_ask": "Anton Zeilinger",
    "02_own_graph": "Al Pacino, ",
    "03_own_retriever": "around",
    "04_own_pipeline": "Hits@1 ",
    "05_evaluate": "max_hops=1 -> max_hops=3, 30 questions",
    "06_language_model": "replayed: ['Prague', 'Berlin']",
    "07_llama_index": "source: common-knowledge] → Vienna",
    "08_dspy": "10 answers, such as Austria",
}
NEEDED = {"07_llama_index": ("llama_index.core", "llama-index-core"), "08_dspy": ("dspy", "dspy")}
"""Packages that are no dependency of byokg's."""

each = pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)


@each
def test_an_example_runs_and_prints_its_result(example: Path, tmp_path: Path) -> None:
    module, package = NEEDED.get(example.stem, ("byokg", "byokg"))
    pytest.importorskip(module, reason=f"{package} is not installed: pip install {package}")
    done = subprocess.run(
        [sys.executable, example], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert PRINTED[example.stem] in done.stdout
    assert list(tmp_path.iterdir()) == []


@each
def test_an_example_is_short(example: Path) -> None:
    assert len(example.read_text("utf-8").splitlines()) <= MOST_LINES
