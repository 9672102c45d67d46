"""Candidate queries: how fast they are found, whether all of them run, and how well ranking them answers.

python benchmarks/graphraft.py [--data DIR] [--json FILE] [--questions N] [--parts enumerate,execute,answer]

`enumerate`: all candidates with their statistics around the gold topics of N WebQSP dev questions on
`freebase_core/graph_full`, and how good the best candidate is. `execute`: every candidate of some questions of MetaQA
and WebQSP goes through the guard and runs in ArcadeDB as a language model would write it; beside it, the queries that
a strong language model wrote freely (`llm_replies`). `answer`: `pipeline=graphraft_offline` on test questions with gold
topics.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.offline import Bench
from benchmarks.rows import Row, show
from byokg.errors import QueryFailed, QueryRefused
from byokg.evaluation.datasets.base import Example, read_text
from byokg.evaluation.datasets.benchmarks import MetaQA
from byokg.evaluation.datasets.folder import Folder, holds
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore, build_arcade
from byokg.graph.guard.guard import lint_query
from byokg.graph.store import QueryLimits
from byokg.llm.parsing import read_query
from byokg.pipeline.graphraft import graphraft_offline_pipeline
from byokg.retrieval.candidate_counts import CandidateFinder
from byokg.retrieval.candidates import Candidate, Conditions, Templates

WRITTEN = ("scoring_web", "scoring_cwq", "full_cwq")
LIMITS = QueryLimits(timeout_s=30.0, max_rows=20_000)


def webqsp(bench: Bench, split: str) -> tuple[ColumnarGraph, list[Example]]:
    """Return the whole assembled graph and the questions of a split that have a topic in it."""
    source = bench.options.data / "freebase_core" / "graph_full.tsv.xz"
    graph = bench.graph("freebase_full", source)
    examples = Folder(bench.options.data / "webqsp", split=split, graph=source, ids="names").examples()
    return graph, [one for one in examples if holds(graph, one.topic_ids)]


def enumerate_(bench: Bench) -> None:
    """Measure the time of one enumeration, in CPU seconds of its thread, and what the best candidate is worth."""
    graph, examples = webqsp(bench, "dev")
    finder = CandidateFinder(graph)
    seconds, counts, best, recalls = [], [], [], []
    for example in examples[: bench.options.questions or None]:
        began = time.thread_time()
        found = finder.find(example.topic_ids, example.answer_ids).items
        seconds.append(time.thread_time() - began)
        counts.append(len(found))
        top = max(found, key=lambda one: one.f1, default=None)
        best.append(top.f1 if top else 0.0)
        recalls.append(top.recall if top else 0.0)
    for name, share in (("median", 50), ("p95", 95), ("slowest", 100)):
        bench.add(Row(f"enumeration_{name}", float(np.percentile(seconds, share)) * 1000, "ms"))
    bench.add(Row("candidates_median", float(np.median(counts)), "candidates"))
    bench.add(Row("best_candidate_f1", float(np.mean(best)), "share"))
    bench.add(Row("best_candidate_recall", float(np.mean(recalls)), "share"))


def sampled(finder: CandidateFinder, examples: list[Example], questions: int, each: int) -> Iterator[Candidate]:
    """Yield some candidates of some questions, conditions included."""
    draw = random.Random(0)
    for example in draw.sample(examples, min(questions, len(examples))):
        found = list(finder.find(example.topic_ids, (), Conditions.of(example.question)).items)
        yield from draw.sample(found, min(each, len(found)))


def execute(bench: Bench) -> None:
    """Run candidates, and queries that were written freely."""
    graph, examples = webqsp(bench, "dev")
    kb = bench.graph("metaqa", MetaQA(bench.options.data / "metaqa", hops=1).graph_source())
    hops = [one for count in (1, 2, 3) for one in MetaQA(bench.options.data / "metaqa", count, "dev").examples()[:2000]]
    everything = Templates(("one_hop", "two_hop", "three_hop", "between", "intersection", "mediated"))
    for name, store, finder, questions in (
        ("metaqa", kb, CandidateFinder(kb, everything), hops),
        ("freebase", graph, CandidateFinder(graph), examples),
    ):
        build_arcade(store, bench.folder / f"{name}.arcade")
        with ArcadeStore.open(bench.folder / f"{name}.arcade", limits=LIMITS) as engine:
            engine.run("RETURN 1")
            outcomes: Counter[str] = Counter()
            for one in sampled(finder, list(questions), 60, 10):
                outcomes[outcome(engine, one.query, one)] += 1
            bench.add(Row(f"{name}_candidates_run", sum(outcomes.values()), "queries"))
            bench.add(Row(f"{name}_candidates_right", outcomes["right"] / sum(outcomes.values()), "share"))
            for problem in sorted(outcomes.keys() - {"right"}):
                bench.add(Row(f"{name}_candidates_{problem}", outcomes[problem], "queries"))
            if name == "freebase":
                free: Counter[str] = Counter(outcome(engine, text) for text in written(bench.options.data))
                bench.add(Row("free_queries_run", sum(free.values()), "queries"))
                for problem in sorted(free):
                    bench.add(Row(f"free_queries_{problem}", free[problem] / sum(free.values()), "share"))


def outcome(engine: ArcadeStore, text: str, candidate: Candidate | None = None) -> str:
    """Say what became of a query: refused, failed, unknown names, no rows, other rows than counted, or right."""
    try:
        rows = engine.run(text, limits=LIMITS)
    except QueryRefused:
        return "refused"
    except QueryFailed:
        return "failed"
    if candidate is not None:
        return "right" if candidate.count or len(rows) == candidate.total else "miscounted"
    if not rows.rows:
        return "unknown_names" if lint_query(engine, text) else "no_rows"
    return "with_rows"


def written(data: Path) -> Iterator[str]:
    """Yield the queries in recorded replies, each once."""
    found: dict[str, None] = {}
    for name in WRITTEN:
        for _, line in read_text(data / "llm_replies" / f"{name}.jsonl.xz").lines:
            query = read_query(json.loads(line)["reply"]["text"], "opencypher")
            found |= {query: None} if query else {}
    yield from found


def answer(bench: Bench) -> None:
    """Measure answers on test questions, gold topics."""
    root = bench.options.data / "metaqa"
    pipeline = graphraft_offline_pipeline(bench.graph("metaqa", MetaQA(root, hops=1).graph_source()), hops=3)
    for hops in (1, 2, 3):
        examples = bench.examples(MetaQA(root, hops=hops, split="test"))
        bench.evaluate(f"metaqa_{hops}hop", pipeline, examples, "gold", metrics=("hits@1", "hit", "f1"))
    source = bench.options.data / "freebase_core" / "graph.tsv.xz"
    examples = bench.examples(Folder(bench.options.data / "webqsp", split="test", graph=source, ids="names"))
    graph = bench.graph("freebase_core", source)
    bench.evaluate("webqsp", graphraft_offline_pipeline(graph), examples, "gold", metrics=("hits@1", "hit", "f1"))


PARTS = {"enumerate": enumerate_, "execute": execute, "answer": answer}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BYOKG_DATA", "../shared/data")))
    parser.add_argument("--json", type=Path, help="write rows of name, value, unit")
    parser.add_argument("--questions", type=int, help="of each set; all when left out")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--parts", default=",".join(PARTS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder), Console())
        for part in options.parts.split(","):
            PARTS[part](bench)
    show(bench.rows, "GraphRAFT without training", options.json)


if __name__ == "__main__":
    main()
