"""Evaluate two settings on the same questions and compare them with a paired interval and test."""

import tempfile
from pathlib import Path

from byokg import Byokg, KnowledgeGraph, RunSettings, atlas, run_evaluation
from byokg.evaluation.compare import compare_runs
from byokg.evaluation.profiles import PROFILES
from byokg.evaluation.run_folder import read_runs
from byokg.open import fingerprint

with tempfile.TemporaryDirectory() as folder:
    dataset = atlas(split="dev")
    questions = dataset.examples()[:30]
    graph = KnowledgeGraph.build(dataset.graph_source(), Path(folder, "graph"))

    runs = []
    for hops in (1, 3):
        runs.append(Path(folder, f"max_hops={hops}"))
        config = {"pipeline": {"max_hops": hops}}
        settings = RunSettings(dataset.name, dataset.checksum, fingerprint(graph.store), config=config)
        run_evaluation(Byokg(graph, max_hops=hops), questions, runs[-1], settings)

    (comparison,) = compare_runs(read_runs(runs), PROFILES["strict"], "hits@1")
    change = comparison.differences["hits@1"]
    low, high = change.ci95
    print(f"{comparison.first.name} -> {comparison.second.name}, {comparison.n} questions")
    print(
        f"Hits@1 {change.value:+.2f} [{low:+.2f}, {high:+.2f}], {change.won} won, {change.lost} lost, p {change.p:.1g}"
    )
