"""Time of importing the MetaQA graph, and of opening it again. Library imports are not counted.

python benchmarks/graph_open.py [--data DIR] [--json FILE] [--repeat N]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.measure import timed
from benchmarks.rows import Row, make_parser, write_rows
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.graph.paths import follow, grow, start
from byokg.types import EntityId

FILM = [EntityId("Inception")]
NOWHERE = np.empty(0, np.int64)
METAPATH = ["starred_actors", "^starred_actors", "directed_by"]


@dataclass(frozen=True)
class Measurement:
    """One thing measured, over several runs; a plain count has the same best and median."""

    name: str
    best: float
    median: float
    unit: str


def times(action: Callable[[], object], repeat: int) -> list[float]:
    """Return the seconds each of `repeat` calls took."""
    return [timed(action)[0] for _ in range(repeat)]


def shown(value: float) -> str:
    """Write a number with three digits, counts in full."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def measure(source: Path, repeat: int) -> list[Measurement]:
    """Import, open and walk the graph in `source`."""
    found: list[Measurement] = []

    def record(name: str, action: Callable[[], object], runs: int, scale: float, unit: str) -> None:
        seconds = times(action, runs)
        found.append(Measurement(name, min(seconds) * scale, median(seconds) * scale, unit))

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "graph"
        record("import and save", lambda: build_graph(source, out, overwrite=True), repeat, 1, "s")
        record("open", lambda: ColumnarGraph.open(out), 4 * repeat, 1e3, "ms")

        def open_and_ask() -> None:
            graph = ColumnarGraph.open(out)
            graph.schema()
            graph.edges(graph.numbers(FILM))

        record("open, schema, edges of one film", open_and_ask, 4 * repeat, 1e3, "ms")
        graph = ColumnarGraph.open(out)
        record("verify checksums", graph.verify, repeat, 1e3, "ms")
        film = graph.numbers(FILM)
        hub = np.array([graph.degree(np.arange(graph.node_count)).argmax()])
        entities = list(graph.entities())
        record("number of one id", lambda: graph.numbers(FILM), 1000 * repeat, 1e6, "µs")
        record(f"numbers of {len(entities):,} ids", lambda: graph.numbers(entities), repeat, 1e3, "ms")
        record("edges of one film", lambda: graph.edges(film), 1000 * repeat, 1e6, "µs")
        for name, node, runs in (("one film", film, 1000), (str(graph.ids(hub)[0]), hub, 100)):
            standing = start(int(node[0]))
            record(
                f"every step out of {name}",
                lambda standing=standing: grow(graph, standing, [0], NOWHERE, 1),  # type: ignore[misc]
                runs * repeat,
                1e6,
                "µs",
            )
        record("one 3-hop metapath", lambda: follow(graph, FILM, METAPATH), 100 * repeat, 1e6, "µs")
        size = sum(file.stat().st_size for file in out.iterdir()) / 1e6
    counts = [("triples", graph.edge_count, ""), ("entities", graph.node_count, ""), ("size on disk", size, "MB")]
    return found + [Measurement(name, value, value, unit) for name, value, unit in counts]


def main() -> int:
    parser = make_parser(__doc__, "folder that holds metaqa")
    parser.add_argument("--repeat", type=int, default=5, help="imports to time (default: %(default)s)")
    options = parser.parse_args()
    source = options.data / "metaqa"
    if not source.is_dir():
        print(f"no MetaQA graph in {source}; set BYOKG_DATA or pass --data", file=sys.stderr)
        return 2
    found = measure(source, options.repeat)
    table = Table("measurement", "best", "median", "unit", title="The MetaQA graph")
    for row in found:
        table.add_row(row.name, shown(row.best), shown(row.median), row.unit)
    Console().print(table)
    write_rows(
        (
            Row(f"{row.name}, {which}", value, row.unit)
            for row in found
            for which, value in (("best", row.best), ("median", row.median))
        ),
        options.json,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
