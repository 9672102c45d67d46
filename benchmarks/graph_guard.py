"""How many writes the query guard refuses, how many reads it lets through, and how long it takes over each.

python benchmarks/graph_guard.py [--data DIR] [--json FILE] [--repeat N]

Runs the corpus of the tests, and the gold queries of Northwind and movies where DIR holds them. Exit code 1 when a
write passes or a read is refused.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.rows import labelled, write_rows  # noqa: E402
from byokg.errors import QueryRefused  # noqa: E402
from byokg.graph.guard.guard import check_cypher, check_sparql  # noqa: E402
from tests.graph.guard import corpus_cypher, corpus_sparql, corpus_tck  # noqa: E402


@dataclass(frozen=True)
class Row:
    """What became of one group of queries; microseconds are per query, the best of several runs."""

    name: str
    expected: str
    passed: int
    refused: int
    median_us: float
    slowest_us: float

    @property
    def wrong(self) -> int:
        """Return how many went the other way than expected."""
        return self.refused if self.expected == "pass" else self.passed


def measure(name: str, expected: str, check: Callable[[str, int], object], queries: Iterable[str], repeat: int) -> Row:
    """Check every query `repeat` times."""
    passed = refused = 0
    best: list[float] = []
    for query in queries:
        seconds = []
        for _ in range(repeat):
            start = time.perf_counter()
            try:
                check(query, 1001)
                through = True
            except QueryRefused:
                through = False
            seconds.append(time.perf_counter() - start)
        passed, refused = passed + through, refused + (not through)
        best.append(min(seconds) * 1e6)
    return Row(name, expected, passed, refused, median(best), max(best))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("BYOKG_DATA") or ROOT.parent / "shared" / "data"
    parser.add_argument(
        "--data", type=Path, default=Path(default), help="folder that holds northwind and movies (default: %(default)s)"
    )
    parser.add_argument("--json", type=Path, help="write the rows to this file, too")
    parser.add_argument("--repeat", type=int, default=5, help="checks of each query to time (default: %(default)s)")
    options = parser.parse_args()
    groups = [
        ("Cypher: reads that look hostile", "pass", check_cypher, corpus_cypher.READS),
        ("Cypher: reads after the openCypher TCK", "pass", check_cypher, corpus_tck.READS),
        ("Cypher: writes, calls outside, several statements", "refuse", check_cypher, corpus_cypher.WRITES),
        ("Cypher: neither", "refuse", check_cypher, corpus_cypher.UNREADABLE),
        ("SPARQL: reads", "pass", check_sparql, corpus_sparql.READS),
        ("SPARQL: updates, calls outside, several statements", "refuse", check_sparql, corpus_sparql.WRITES),
        ("SPARQL: neither", "refuse", check_sparql, corpus_sparql.UNREADABLE),
    ]
    for name in ("northwind", "movies"):
        file = options.data / name / "questions.jsonl.xz"
        if file.exists():
            with lzma.open(file, "rt", encoding="utf-8") as lines:
                groups.append(
                    (f"Cypher: gold of {name}", "pass", check_cypher, [json.loads(x)["cypher"] for x in lines])
                )
    rows = [measure(*group, options.repeat) for group in groups]
    table = Table("queries", "expected", "passed", "refused", "wrong", "median µs", "slowest µs", title="Query guard")
    for row in rows:
        counts = (row.passed, row.refused, row.wrong)
        table.add_row(row.name, row.expected, *map(str, counts), f"{row.median_us:.0f}", f"{row.slowest_us:.0f}")
    Console().print(table)
    found = [
        labelled(row.name, label, value)
        for row in rows
        for label, value in (
            ("queries", row.passed + row.refused),
            ("passed", row.passed),
            ("refused", row.refused),
            ("wrong", row.wrong),
            ("median µs", row.median_us),
            ("slowest µs", row.slowest_us),
        )
    ]
    write_rows(found, options.json)
    return 1 if any(row.wrong for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
