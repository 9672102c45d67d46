"""Times, memory, steps in processes of their own, and recorded questions: what several benchmarks need."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")


def timed(action: Callable[[], Result]) -> tuple[float, Result]:
    """Return the seconds a call took, and its result."""
    began = time.perf_counter()
    result = action()
    return time.perf_counter() - began, result


def private_mb() -> float:
    """Return the memory that this process alone has and the system cannot drop: its dirty private pages."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Dirty", "Private_Hugetlb"))) / 1024


def run_apart(script: str, step: str, *words: object) -> Any:
    """Run one step of a benchmark in a process of its own; return the JSON that it prints."""
    command = [sys.executable, script, "--step", step, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a compressed file of JSON lines."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def read_questions(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the questions of a data set of our own layout."""
    return read_lines(folder / "questions.jsonl.xz")


def read_labels(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the annotations of such a data set by question."""
    return {record["id"]: record for record in read_lines(folder / f"{folder.name}_labels.jsonl.xz")}
