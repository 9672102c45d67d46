"""Accuracy of the offline pipeline with a trained path ranker, and without one.

python benchmarks/ranker.py [--data DIR] [--json FILE] [--questions N] [--split test] [--workers N] [--seeds N]
                            [--rankers DIR] [--pipelines offline,graphraft_offline]

MetaQA with gold topic entities and the hop count unknown, trained on its dev questions; WebQSP with gold topic
entities on the graph in `freebase_core` (not the published one), trained on the chains of `webqsp_train` and the dev
questions. Rows named `untrained` are of the pipeline without ranker, with the weights that ship with the package.
Existing rankers in
`--rankers` are reused.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from rich.console import Console

from benchmarks.offline import Bench
from benchmarks.rows import Row, make_parser, show
from byokg.evaluation.datasets.base import Dataset, Example
from byokg.evaluation.datasets.benchmarks import MetaQA
from byokg.evaluation.datasets.folder import Folder
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.index.embedders import StaticEmbedder
from byokg.linking.parts import Parts
from byokg.offline.linker import OfflineLinker
from byokg.offline.path_scorer import Weights
from byokg.offline.pipeline import offline_pipeline
from byokg.offline.schema_linking import RelationSimilarity
from byokg.offline.training.ranker import (
    FitSettings,
    RankingExample,
    answer_cases,
    chain_cases,
    fit_ranker,
    read_chains,
    read_inverses,
    write_ranker,
)
from byokg.pipelines.graphraft import CandidateScope, graphraft_offline_pipeline
from byokg.pipelines.loop import Loop
from byokg.types import EntityId


def measure(
    bench: Bench,
    name: str,
    graph: ColumnarGraph,
    max_hops: int,
    cases: Callable[[OfflineLinker], Iterable[RankingExample]],
    tested: dict[str, Dataset],
) -> None:
    """Train a ranker for each seed, and answer test questions with and without it."""
    linker = offline_pipeline(Parts(graph), max_hops=max_hops).stages[0].linker
    assert isinstance(linker, OfflineLinker)
    embedder = StaticEmbedder()
    steps = RelationSimilarity(graph, embedder)
    kept = bench.options.rankers or bench.folder
    rankers = {f"seed{seed}": kept / f"{name}-ranker-{seed}" for seed in range(bench.options.seeds)}
    held: list[RankingExample] = []
    for seed, folder in enumerate(rankers.values()):
        if folder.is_dir():
            continue
        if not held:
            began = time.perf_counter()
            held += cases(linker)
            bench.add(Row(f"{name}_enumeration", time.perf_counter() - began, "s"))
        settings = FitSettings(seed=seed)
        began = time.perf_counter()
        fitted = fit_ranker(held, graph, steps, embedder, settings)
        bench.add(Row(f"{name}_training_seed{seed}", time.perf_counter() - began, "s"))
        write_ranker(folder, fitted, embedder, settings, name, Weights())
        bench.add(Row(f"{name}_held_out_f1_seed{seed}", fitted.after, "share"))
    tried: dict[str, Path | None] = {"untrained": None, **rankers} if bench.options.untrained else {**rankers}
    for (told, ranker), pipeline, (part, dataset) in itertools.product(
        tried.items(), bench.options.pipelines.split(","), tested.items()
    ):
        made = PIPELINES[pipeline](graph, max_hops, ranker)
        row = f"{part}_{pipeline}_{told}"
        bench.evaluate(row, made, bench.examples(dataset), "gold", metrics=("hits@1", "hit", "f1"))


PIPELINES: dict[str, Callable[[ColumnarGraph, int, Path | None], Loop]] = {
    "offline": lambda graph, hops, weights: offline_pipeline(Parts(graph), max_hops=hops, weights=weights),
    "graphraft_offline": lambda graph, hops, weights: graphraft_offline_pipeline(
        Parts(graph), weights=weights, candidates=CandidateScope(hops=hops)
    ),
}


def gold(example: Example) -> tuple[EntityId, ...]:
    """Return the answers' ids."""
    return example.answer_ids


def metaqa(bench: Bench) -> None:
    """Train on the dev questions of all hops together."""
    root = bench.options.data / "metaqa"
    graph = bench.graph("metaqa", MetaQA(root, hops=1).graph_source())
    dev = [example for hops in (1, 2, 3) for example in MetaQA(root, hops, "dev").examples()]
    tested = {f"metaqa_{hops}hop": MetaQA(root, hops, bench.options.split) for hops in (1, 2, 3)}
    measure(bench, "metaqa", graph, 3, lambda linker: answer_cases(linker, graph, dev, gold), dict(tested))


def webqsp(bench: Bench) -> None:
    """Train on chains of the published train split and on dev questions of the assembled graph."""
    data = bench.options.data
    source = data / "freebase_core" / "graph.tsv.xz"
    graph = bench.graph("freebase_core", source)
    chains, _ = read_chains(data / "webqsp_train" / "questions.jsonl")
    inverses = read_inverses(data / "freebase_ontology" / "inverses.tsv")
    dev, tested = (
        Folder(data / "webqsp", split=split, graph=source, ids="names") for split in ("dev", bench.options.split)
    )

    def cases(linker: OfflineLinker) -> Iterable[RankingExample]:
        yield from chain_cases(linker, graph, chains, inverses)
        yield from answer_cases(linker, graph, dev.examples(), gold)

    measure(bench, "webqsp", graph, 2, cases, {"webqsp": tested})


def main() -> None:
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--questions", type=int, help="questions per set (default: all)")
    parser.add_argument("--split", default="test", choices=["dev", "test"])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1, help="rankers to train")
    parser.add_argument("--untrained", action="store_true", help="answer without ranker as well")
    parser.add_argument("--rankers", type=Path, help="folder that keeps the rankers")
    parser.add_argument("--pipelines", default="offline", help=f"of {', '.join(PIPELINES)}, separated by commas")
    parser.add_argument("--only", choices=["metaqa", "webqsp"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder), Console())
        for name, run in (("webqsp", webqsp), ("metaqa", metaqa)):
            if options.only in (None, name):
                run(bench)
    show(bench.rows, f"trained path ranker, {options.split} split", options.json)


if __name__ == "__main__":
    main()
