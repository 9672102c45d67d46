"""Accuracy and speed of the offline pipeline on real graphs. Nothing is trained or tuned on these questions.

python benchmarks/offline.py [--data DIR] [--json FILE] [--questions N] [--split test] [--workers N]

MetaQA (by default all questions of the split) and WebQSP with gold topic entities, atlas with
linked ones. WebQSP runs on the graph in `freebase_core`, which is not the published one: its figures are not
comparable with published ones. Each accuracy is a Hits@1, Hit or F1 of the `strict` profile with its 95 % interval.
AUROC and calibration error are of the scores of first answers; their weights were fitted on dev and train questions of
these graphs, among others: `scripts/fit_confidence.py` prints both without the set's own graph.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from rich.console import Console

from benchmarks.measure import read_lines
from benchmarks.rows import Row, make_parser, show
from byokg.evaluation.datasets.base import Dataset, Example
from byokg.evaluation.datasets.benchmarks import MetaQA, pathquestion
from byokg.evaluation.datasets.folder import Folder, atlas
from byokg.evaluation.metrics import normalise
from byokg.evaluation.records import TRACE
from byokg.evaluation.runner import RunSettings, run_evaluation
from byokg.evaluation.significance import auroc, calibration_error
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.pipelines.loop import Loop
from byokg.types import EntityId, PathEvidence, Question

TOP_PATHS = 20
WARM_UP = 100
CRON_QUESTIONS = 600
"""Questions of CronQuestions that are asked unless --questions says otherwise: the whole test split takes an hour."""
PATH_QUESTIONS = 500
"""Questions of each PathQuestion set, likewise."""


class Bench:
    """Graphs and options shared by all measurements; collects rows."""

    def __init__(self, options: argparse.Namespace, folder: Path, console: Console) -> None:
        self.options = options
        self.folder = folder
        self.console = console
        self.rows: list[Row] = []

    def graph(self, name: str, source: Path) -> ColumnarGraph:
        """Build a graph once and open it."""
        out = self.folder / f"{name}.graph"
        return ColumnarGraph.open(out) if out.exists() else build_graph(source, out)

    def examples(self, dataset: Dataset) -> list[Example]:
        """Return all examples, or a seeded sample of the size asked for."""
        found = list(dataset.examples())
        if self.options.questions and self.options.questions < len(found):
            found = random.Random(0).sample(found, self.options.questions)
        return found

    def evaluate(
        self,
        name: str,
        pipeline: Loop,
        examples: Sequence[Example],
        entities: Literal["gold", "linked"],
        hops: Literal["gold", "predicted"] = "predicted",
        metrics: Sequence[str] = ("hits@1", "hit", "f1"),
    ) -> None:
        """Run an evaluation as `byokg eval` does, and keep some of its metrics and its speed."""
        settings = RunSettings(name, "", "", entities=entities, hops=hops)
        began = time.perf_counter()
        result = run_evaluation(pipeline, examples, self.folder / name, settings, self.options.workers)
        seconds = time.perf_counter() - began
        for metric in metrics:
            estimate = result.overall.estimates[metric]
            self.add(Row(f"{name}_{metric}", estimate.value, "share", *estimate.ci95))
        gold = {example.id: set(map(normalise, example.answers)) for example in examples}
        with (self.folder / name / TRACE).open(encoding="utf-8") as lines:
            traced = [json.loads(line) for line in lines]
        firsts = [(one["answers"][0], gold[one["id"]]) for one in traced if one["answers"]]
        self.confidence(name, [(first["score"], normalise(first["name"]) in right) for first, right in firsts])
        if result.overall.failed:
            self.add(Row(f"{name}_failed", result.overall.failed, "questions"))
        self.add(Row(f"{name}_speed", len(examples) / seconds, "questions/s"))

    def confidence(self, name: str, answered: Sequence[tuple[float, bool]]) -> None:
        """Keep how well the scores of first answers tell right from wrong ones, and how near they are to the truth."""
        said, right = (np.array(column, np.float64) for column in zip(*answered, strict=True))
        if 0 < right.sum() < len(right):
            self.add(Row(f"{name}_score_auroc", auroc(said, right), "share"))
        self.add(Row(f"{name}_score_calibration_error", calibration_error(said, right), "share"))

    def add(self, row: Row) -> None:
        """Keep a row and say it at once, since the next one may take minutes."""
        self.rows.append(row)
        self.console.print(f"{row.name} {row.value:.4g} {row.unit}", highlight=False)


def metaqa(bench: Bench) -> None:
    """Measure 1, 2 and 3 hops, with the hop count predicted and given; then the speed of 2 hops after a warm-up."""
    root = bench.options.data / "metaqa"
    pipeline = offline_pipeline(Parts(bench.graph("metaqa", MetaQA(root, hops=1).graph_source())))
    for hops in (1, 2, 3):
        examples = bench.examples(MetaQA(root, hops=hops, split=bench.options.split))
        bench.evaluate(f"metaqa_{hops}hop", pipeline, examples, "gold")
        bench.evaluate(f"metaqa_{hops}hop_given", pipeline, examples, "gold", "gold")
        if hops == 2:
            questions = [example.to_question("gold") for example in examples[: WARM_UP + 1000]]
            for question in questions[:WARM_UP]:
                pipeline.run(question)
            began = time.perf_counter()
            for question in questions[WARM_UP:]:
                pipeline.run(question)
            rate = (len(questions) - WARM_UP) / (time.perf_counter() - began)
            bench.add(Row("metaqa_2hop_warm_speed_one_thread", rate, "questions/s"))


def webqsp(bench: Bench) -> None:
    """Measure answers, and whether the ends of the first paths hold one."""
    source = bench.options.data / "freebase_core" / "graph.tsv.xz"
    graph = bench.graph("freebase_core", source)
    dataset = Folder(bench.options.data / "webqsp", split=bench.options.split, graph=source, ids="names")
    examples = bench.examples(dataset)
    bench.evaluate("webqsp", offline_pipeline(Parts(graph), max_hops=2), examples, "gold")
    bench.evaluate("webqsp_linked", offline_pipeline(Parts(graph), max_hops=2), examples, "linked")
    wide = offline_pipeline(Parts(graph), max_hops=2, top_k=TOP_PATHS)
    reached = 0
    for example in examples:
        rounds = wide.run(example.to_question("gold")).rounds
        paths = [item for step in rounds for item in step.evidence if isinstance(item, PathEvidence)][:TOP_PATHS]
        ends = list(dict.fromkeys(end for path in paths for end in path.ends))
        gold = {normalise(answer) for answer in example.answers}
        reached += any(normalise(node.name) in gold for node in graph.nodes(ends))
    bench.add(Row(f"webqsp_answer_in_top{TOP_PATHS}_paths", reached / len(examples), "share"))


def shipped(bench: Bench) -> None:
    """Measure atlas, entities linked by name."""
    dataset = atlas(bench.options.split)
    pipeline = offline_pipeline(Parts(bench.graph("atlas", dataset.graph_source())))
    bench.evaluate("atlas_linked", pipeline, bench.examples(dataset), "linked")


def cronquestions(bench: Bench) -> None:
    """Measure questions of time, their entities given by name, on the graph rebuilt from the gold answers.

    An oracle scores 100 % there by construction: no figure stands beside a published one.
    """
    root = bench.options.data / "cronquestions"
    source = bench.folder / "cronquestions.tsv"
    with lzma.open(root / "graph_quads.tsv.xz", "rt", encoding="utf-8") as quads:
        source.write_text("head\trelation\ttail\tstart\tend\n" + quads.read(), encoding="utf-8")
    graph = bench.graph("cronquestions", source)
    split = "train" if bench.options.split == "dev" else "test"
    records = list(read_lines(root / f"questions_{split}.jsonl.xz"))
    records = random.Random(0).sample(records, min(len(records), bench.options.questions or CRON_QUESTIONS))
    pipeline = offline_pipeline(Parts(graph))
    right: dict[str, list[bool]] = {}
    answered: list[tuple[float, bool]] = []
    for record in records:
        topics = tuple(EntityId(name) for name in record["topic_entities"])
        items = pipeline.run(Question(record["id"], record["question"], topics)).items
        hit = bool(items) and items[0].name in record["answers"]
        for kind in ("all", "simple" if record["type"].startswith("simple") else "first_last"):
            right.setdefault(kind, []).append(hit)
        answered += [(item.score, hit) for item in items[:1]]
    bench.confidence("cronquestions_rebuilt", answered)
    for kind, hits in sorted(right.items()):
        bench.add(Row(f"cronquestions_rebuilt_{kind}_hits@1", sum(hits) / len(hits), "share"))


def pathquestions(bench: Bench) -> None:
    """Measure questions of 2 and 3 hops; the set has no splits, so topics are divided by a checksum of their names."""
    root = bench.options.data / "pathquestion"
    for hops in (2, 3):
        dataset = pathquestion(root, hops)
        (source := bench.folder / f"{hops}H.tsv").write_text((root / f"{hops}H-kb.txt").read_text("utf-8"), "utf-8")
        kept = [one for one in dataset.examples() if _half(str(one.topic_ids)) == bench.options.split]
        asked = random.Random(0).sample(kept, min(len(kept), bench.options.questions or PATH_QUESTIONS))
        pipeline = offline_pipeline(Parts(bench.graph(f"pathquestion_{hops}", source)))
        bench.evaluate(f"pathquestion_{hops}hop", pipeline, asked, "gold", metrics=("hits@1",))


def _half(key: str) -> str:
    """Return the split of what belongs together, as `scripts/fit_confidence.py` does."""
    return "dev" if hashlib.sha256(key.encode()).hexdigest()[0] < "8" else "test"


def main() -> None:
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--questions", type=int, help="questions per set (default: all)")
    parser.add_argument("--split", default="test", choices=["dev", "test"])
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder), console)
        shipped(bench)
        if (options.data / "cronquestions").is_dir():
            cronquestions(bench)
        if (options.data / "pathquestion").is_dir():
            pathquestions(bench)
        if (options.data / "metaqa").is_dir():
            webqsp(bench)
            metaqa(bench)
        else:
            console.print(f"no data in {options.data}: only atlas was measured; name the folder with --data")
    show(bench.rows, f"offline pipeline, {options.split} split", options.json)


if __name__ == "__main__":
    main()
