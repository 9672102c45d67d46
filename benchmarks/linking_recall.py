"""Recall of annotated topic entities by entity linking, by method, on real questions.

python benchmarks/linking_recall.py [--data DIR] [--json FILE] [--split test] [--questions N]

WebQSP and CWQ on the graph in `freebase_core`, MetaQA (1 to 3 hops) and atlas. Mentions are given: the words of the
question that name the annotated entity (`byokg.evaluation.linking_quality`; MetaQA's and atlas's names stand in the
text as they are). A topic that no word of the question names, or that the graph lacks, counts as not found. A figure
is recall@3 over topic entities averaged by question, with its 95 % interval. `equal` uses equal names alone; the
columns `+` also consider names similar to an exactly matched mention (`extend`), as the paper does.

`context_weight` and the cutoffs were tuned on the dev splits; report the test splits. The graph of WebQSP and CWQ is
not the published one: their figures are not comparable with published ones.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.rows import Row, write_rows
from byokg.evaluation.datasets.base import Dataset, Example
from byokg.evaluation.datasets.benchmarks import MetaQA
from byokg.evaluation.datasets.folder import Folder, atlas
from byokg.evaluation.linking_quality import evaluate_linking
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.graph.name_indexes import dense_names
from byokg.index.embedders import StaticEmbedder
from byokg.linking.entities import EntityLinker, Method

METRICS = ("recall@1", "recall@3", "recall", "precision", "mrr")

SETTINGS: dict[str, tuple[Method, bool, bool]] = {
    "equal": ("exact", False, False),
    "fuzzy": ("fuzzy", False, False),
    "dense": ("dense", False, False),
    "both": ("both", False, False),
    "both, disambiguated": ("both", False, True),
    "fuzzy +": ("fuzzy", True, False),
    "dense +": ("dense", True, False),
    "both +": ("both", True, False),
    "both +, disambiguated": ("both", True, True),
}
"""Method, `extend`, `disambiguate`."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BYOKG_DATA", "../shared/data")))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--split", default="test", choices=("dev", "test"))
    parser.add_argument("--questions", type=int, help="maximum questions per set, drawn with seed 0")
    options = parser.parse_args(arguments)
    console = Console(highlight=False)
    embedder = StaticEmbedder()
    rows: list[Row] = []
    table = Table(title=f"recall@3 of topic entities, {options.split} splits, %", title_justify="left")
    table.add_column("")
    table.add_column("questions", justify="right")
    for name in SETTINGS:
        table.add_column(name, justify="right")
    graphs: dict[Path, ColumnarGraph] = {}
    linkers: dict[Path, dict[str, EntityLinker]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for title, dataset in _datasets(options.data, options.split):
            source = dataset.graph_source()
            if source not in graphs:
                graphs[source] = build_graph(source, Path(folder) / str(len(graphs)))
                linkers[source] = _linkers(graphs[source], embedder)
            examples = _drawn(dataset.examples(), options.questions)
            began = time.perf_counter()
            measured = evaluate_linking(linkers[source], examples, graphs[source])
            cells = []
            for name, metrics in measured.items():
                for metric in METRICS:
                    estimate = metrics.estimates[metric]
                    label = f"{title}, {name}: {metric}"
                    rows.append(Row(label, 100 * estimate.value, "%", *(100 * end for end in estimate.ci95)))
                shown = metrics.estimates["recall@3"]
                cells.append(f"{100 * shown.value:.1f}\n±{50 * (shown.ci95[1] - shown.ci95[0]):.1f}")
            for kind, summary in next(iter(measured.values())).by_type.items():
                rows.append(Row(f"{title}: topic entities, {kind}", summary.n, ""))
            rows.append(Row(f"{title}: seconds for all", time.perf_counter() - began, "s"))
            table.add_row(title, f"{len(examples):,}", *cells)
    console.print(table)
    write_rows(rows, options.json)


def _datasets(data: Path, split: str) -> Iterator[tuple[str, Dataset]]:
    """Yield the sets that are there."""
    for name in ("webqsp", "cwq"):
        if (data / name).is_dir():
            graph = data / "freebase_core" / "graph.tsv.xz"
            yield name, Folder(data / name, split=split, graph=graph, ids="names", name=name)
    if (data / "metaqa").is_dir():
        for hops in (1, 2, 3):
            yield f"metaqa {hops}-hop", MetaQA(data / "metaqa", hops, split)
    yield "atlas", atlas(split)


def _linkers(graph: ColumnarGraph, embedder: StaticEmbedder) -> dict[str, EntityLinker]:
    """Make one linker for each setting, over the same indexes."""
    dense = cache(lambda: dense_names(graph, embedder))
    names = EntityLinker(graph).names
    return {
        name: EntityLinker(
            graph, method, embedder=embedder, extend=extend, disambiguate=disambiguate, known_names=names, dense=dense
        )
        for name, (method, extend, disambiguate) in SETTINGS.items()
    }


def _drawn(examples: Sequence[Example], count: int | None) -> list[Example]:
    """Return all questions, or some drawn at random, in the order of the data set."""
    if count is None or count >= len(examples):
        return list(examples)
    return [examples[at] for at in sorted(random.Random(0).sample(range(len(examples)), count))]


if __name__ == "__main__":
    main()
