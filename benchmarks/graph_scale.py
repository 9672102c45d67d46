"""Scaling of build, open and walks with graph size: synthetic graphs of 0.3, 3 and (--large) 35 million triples.

python benchmarks/graph_scale.py [--large] [--formats] [--only WHAT] [--folder DIR] [--json FILE]
python benchmarks/graph_scale.py --huge [--edges N] [--form tsv|nt] [--kills N] [--folder DIR] [--json FILE]

Each build and each opening runs in a process of its own. CPU seconds count all threads; they vary less than wall-clock
seconds on a busy machine. The largest graph needs 4 GB of disk and a few minutes; that of `--huge`, by default 250
million edges between 40 million named nodes, 25 GB and an hour. It is built by the command line, after one of
10 million for comparison; `--kills` builds the smaller one again, killed at so many random moments.

Bars, for the machine the project was planned on (2 cores): 3M build 10 s, open 50 ms, private 100 MB, mapped 400 MB;
35M build 120 s below 4 GB, open 1 s; tables with properties 3 times the seconds of triples.
At 3M two hops from 10 hubs 60 ms, paths 5 x 5 20 ms, one hop from 10 0.05 ms.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import private_mb, run_apart, timed
from benchmarks.rows import labelled, make_parser, shown, write_rows
from benchmarks.synthetic_graph import FORMATS, Size, write, write_as

SIZES = {"0.3M": Size(300_000, 100_000), "3M": Size(3_000_000, 1_000_000), "35M": Size(35_000_000, 10_000_000)}
HOPS = 8


def build(source: Path, out: Path) -> dict[str, float]:
    """Build a graph, and tell seconds and the highest memory use in MB."""
    from byokg.graph.importers.choose import build_graph

    seconds, graph = timed(lambda: build_graph(source, out, overwrite=True))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    size = sum(file.stat().st_size for file in out.iterdir())
    millions = graph.edge_count / 1e6
    return {
        "triples": graph.edge_count,
        "entities": graph.node_count,
        "build s": seconds,
        "build s / M triples": seconds / millions,
        "build CPU s": usage.ru_utime + usage.ru_stime,
        "build peak MB": usage.ru_maxrss / 1024,
        "disk MB": size / 1e6,
        "disk MB / M triples": size / 1e6 / millions,
    }


def use(folder: Path) -> dict[str, float]:
    """Open a graph and walk it, and tell times and memory."""
    import numpy as np

    from byokg.graph.columnar.graph import ColumnarGraph
    from byokg.graph.pathql.evaluate import paths
    from byokg.graph.pathql.query import connecting
    from byokg.graph.store import Direction
    from byokg.graph.traversal import k_hop_edges, neighbours

    ColumnarGraph.open(folder)  # so that code and folder are warm
    imported = private_mb()
    opened, graph = fastest(lambda: ColumnarGraph.open(folder), 9)
    private, (mapped, resident) = private_mb(), mapped_mb(folder)
    found = {
        "open ms": opened,
        "private MB before opening": imported,
        "private MB after opening": private,
        "mapped MB": mapped,
        "mapped and resident MB": resident,
    }
    rng = np.random.default_rng(11)
    ten = graph.ids(rng.integers(0, graph.node_count, 10))
    found["one hop from 10 random entities ms"], _ = fastest(lambda: neighbours(graph, ten, Direction.OUT), 2000)
    every = np.arange(graph.node_count)
    for direction, way in ((Direction.OUT, "outgoing"), (Direction.BOTH, "both ways")):
        hubs = graph.ids(np.argsort(-graph.degree(every, direction), kind="stable")[:10])
        key = f"two hops from the 10 biggest hubs, {way}"
        found[f"{key} ms"], reached = fastest(lambda: k_hop_edges(graph, hubs, 2, direction), 7)  # noqa: B023
        found[f"{key}, triples"] = len(reached.edges)
        sources, targets = (graph.ids(rng.integers(0, graph.node_count, 5)) for _ in range(2))
        for hops in (4, HOPS):
            milliseconds, pairs = fastest(
                lambda: list(paths(graph, connecting(sources, targets, 1, hops, None, direction))),  # noqa: B023
                7,
            )
            key = f"shortest paths 5 x 5 within {hops} hops, {way}"
            found[f"{key} ms"] = milliseconds
            found[f"{key}, pairs joined"] = len(pairs)
    return found


def fastest(action: Callable[[], Any], runs: int) -> tuple[float, Any]:
    """Return the milliseconds of the fastest of some runs, and what it returned."""
    best, result = float("inf"), None
    for _ in range(runs):
        seconds, result = timed(action)
        best = min(best, seconds)
    return best * 1e3, result


def mapped_mb(folder: Path) -> tuple[float, float]:
    """Return how much of a folder's files is mapped, and how much of that is in memory, shared with the page cache."""
    size = resident = 0
    ours = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            ours = len(words) > 5 and words[5].startswith(str(folder.resolve()))
        elif ours and words[0] == "Size:":
            size += int(words[1])
        elif ours and words[0] == "Rss:":
            resident += int(words[1])
    return size / 1024, resident / 1024


def formats(folder: Path | None, triples: int) -> dict[str, dict[str, float]]:
    """Build the same triples from other formats: peak memory and seconds beside those of plain triples."""
    found: dict[str, dict[str, float]] = {}
    size = Size(triples, triples // 3)
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        sources = {"triples": place / f"formats-{triples}.tsv"}
        if not sources["triples"].exists():
            write(sources["triples"], size)
        for form in FORMATS:
            sources[FORMATS[form]] = write_as(form, place / f"formats-{triples}-{form}", size)
        for name, source in sources.items():
            files = source.iterdir() if source.is_dir() else [source]
            text_mb = sum(file.stat().st_size for file in files) / 1e6
            found[name] = {
                "text MB": text_mb,
                **run_apart(__file__, "build", source, place / f"formats-{triples}-graph"),
            }
            found[name]["build s / that of triples"] = found[name]["build s"] / found["triples"]["build s"]
            found[name]["build CPU s / that of triples"] = found[name]["build CPU s"] / found["triples"]["build CPU s"]
    show(f"Formats, {triples:,} edges", found)
    return found


def huge(options: argparse.Namespace, folder: Path) -> dict[str, dict[str, float]]:
    """Build and ask the graph of 10 million edges and the one asked for."""
    from benchmarks import graph_huge

    found: dict[str, dict[str, float]] = {}
    for form in options.form or graph_huge.FORMS:
        sizes = sorted({min(options.edges, graph_huge.SMALLEST), options.edges})
        names = [f"{edges // 1_000_000}M {form}" for edges in sizes]
        for edges, name in zip(sizes, names, strict=True):
            text, out = graph_huge.source(folder, form, edges), folder / name.replace(" ", "-")
            shutil.rmtree(out, ignore_errors=True)
            found[name] = {**graph_huge.build(text, out, options.memory), **run_apart(__file__, "use-huge", out)}
            print(name, json.dumps(found[name]), flush=True)
            if options.kills and name == names[0]:
                took = found[name]["build s"]
                found[name] |= graph_huge.killed(text, folder, options.memory, options.kills, out, took)
            if not options.folder:
                shutil.rmtree(out)
        rows = [labelled(name, key, value) for name in names for key, value in found[name].items()]
        graph_huge.bars(form, names[-1], names[0], rows)
    show("Larger than memory", found)
    return found


def show(title: str, columns: dict[str, dict[str, float]]) -> None:
    """Print figures, a row for each measurement."""
    from rich.console import Console
    from rich.table import Table

    table = Table("measurement", *columns, title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for key in list(columns.values())[-1]:
        table.add_row(key, *(shown(found.get(key)) for found in columns.values()))
    Console(width=120).print(table)


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--large", action="store_true", help="the graph of 35 million triples, too")
    parser.add_argument("--huge", action="store_true", help="a graph larger than memory, alone")
    parser.add_argument("--edges", type=int, default=250_000_000, help="number of its edges (default: %(default)s)")
    parser.add_argument("--form", action="append", choices=["tsv", "nt"], help="read from this alone; may be repeated")
    parser.add_argument("--memory", default="4G", help="for building it (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=0, metavar="N", help="build the smallest again, killed N times")
    parser.add_argument("--formats", action="store_true", help="other formats, too")
    parser.add_argument(
        "--triples", type=int, default=3_000_000, help="edges in each of the other formats (default: %(default)s)"
    )
    parser.add_argument("--only", choices=[*SIZES, "formats"], help="one size, or the other formats alone")
    parser.add_argument("--folder", type=Path, help="folder in which texts and graphs are kept; texts are reused")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step, *paths = options.step
        from benchmarks.graph_huge import use as use_huge

        steps: dict[str, Callable[..., dict[str, float]]] = {"build": build, "use": use, "use-huge": use_huge}
        print(json.dumps(steps[step](*map(Path, paths))))
        return 0
    names = [name for name in SIZES if options.large or name != "35M"]
    if options.only:
        names = [options.only] if options.only in SIZES else []
    columns: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if options.huge:
            names = []
            columns = huge(options, folder)
        for name in names:
            source, out = folder / f"{name}.tsv", folder / name
            if not source.exists():
                write(source, SIZES[name])
            text_mb = source.stat().st_size / 1e6
            columns[name] = {
                "text MB": text_mb,
                **run_apart(__file__, "build", source, out),
                **run_apart(__file__, "use", out),
            }
    if names:
        show("Growth", columns)
    figures = dict(columns)
    if options.formats or options.only == "formats":
        figures |= formats(options.folder, options.triples)
    rows = (labelled(name, key, value) for name, found in figures.items() for key, value in found.items())
    write_rows(rows, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
