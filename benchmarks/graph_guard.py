"""Writes refused and reads admitted by the query guard, and its time for each.

python benchmarks/graph_guard.py [--data DIR] [--json FILE] [--repeat N] [--heads N]

Runs the corpus of the tests, and the gold queries of Northwind and movies if DIR holds them; then adversarial texts of
200,000 characters: each fragment of `tests/graph/guard/hostile_texts.py` behind N heads, and
queries of the corpus with a part repeated. Exit code 1 when a write passes, a read is refused, or a text takes longer
than a second of processor time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.measure import read_questions  # noqa: E402
from benchmarks.rows import Row as Figure  # noqa: E402
from benchmarks.rows import labelled, make_parser, write_rows  # noqa: E402
from byokg.errors import QueryRefused  # noqa: E402
from byokg.graph.guard.guard import check_cypher, check_sparql  # noqa: E402
from tests.graph.guard import corpus_cypher, corpus_sparql, corpus_tck, hostile_texts  # noqa: E402


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
    parser = make_parser(__doc__, "folder that holds northwind and movies")
    parser.add_argument("--repeat", type=int, default=5, help="checks of each query to time (default: %(default)s)")
    parser.add_argument("--heads", type=int, default=2, help="number of heads before each long fragment")
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
        if (options.data / name).is_dir():
            gold = [record["cypher"] for record in read_questions(options.data / name)]
            groups.append((f"Cypher: gold of {name}", "pass", check_cypher, gold))
    rows = [measure(*group, options.repeat) for group in groups]
    found_large, kind = large(options.heads)
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
    for figure in found_large:
        print(f"{figure.name}: {figure.value:.3g} {figure.unit}")
    print(f"the slowest: {kind}")
    write_rows([*found, *found_large], options.json)
    return 1 if any(row.wrong for row in rows) or any(one.unit == "s" and one.value > 1 for one in found_large) else 0


def large(heads: int) -> tuple[list[Figure], str]:
    """Judge texts of full length; return figures, and which text took longest."""
    taken: dict[str, list[float]] = {"cypher": [], "sparql": []}
    slowest, which = 0.0, ""
    for language, kind, text in hostile_texts.texts(seed=0, heads=heads, queries=100 * heads):
        start = time.thread_time()
        with suppress(QueryRefused):
            (check_cypher if language == "cypher" else check_sparql)(text, 1001)
        taken[language].append(time.thread_time() - start)
        if taken[language][-1] > slowest:
            slowest, which = taken[language][-1], kind
    rows: list[Figure] = []
    for language, seconds in taken.items():
        name = f"{language}, up to 200,000 characters"
        rows += Figure(f"{name}: texts", len(seconds)), Figure(f"{name}: median", median(seconds), "s")
        rows += (Figure(f"{name}: slowest", max(seconds), "s"),)
    return rows, which


if __name__ == "__main__":
    sys.exit(main())
