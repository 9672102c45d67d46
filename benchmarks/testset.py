"""Time of making a question set from a real graph, and accuracy of the offline pipeline on it, by type.

python benchmarks/testset.py [--data DIR] [--questions N] [--seed N] [--json FILE]

The graph is `freebase_core/graph_full.tsv.xz`. Every gold query is run again. Hits@1 is of the `strict` profile, over
the test split with gold topic entities, with its 95 % interval; unanswerable questions require an abstention.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.rows import Row, make_parser, show
from byokg.evaluation.datasets.folder import Folder, unanswered
from byokg.evaluation.datasets.sampled_graph import execute
from byokg.evaluation.datasets.testset import UNANSWERABLE, make_testset, write_testset
from byokg.evaluation.runner import RunSettings, run_evaluation
from byokg.graph.importers.choose import build_graph
from byokg.graph.name_indexes import build_names
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline


def measure(options: argparse.Namespace, folder: Path) -> list[Row]:
    """Make the set, check its gold, and ask its questions."""
    graph = build_graph(options.data / "freebase_core" / "graph_full.tsv.xz", folder / "graph")
    build_names(graph)
    began = time.perf_counter()
    made = make_testset(graph, options.questions, options.seed)
    write_testset(made, folder / "set")
    rows = [Row("made and written", time.perf_counter() - began, "s")]
    rows += [Row(f"questions, {kind}", count) for kind, count in made.counts()["types"].items()]
    wrong = sum(
        execute(graph, each.query, each.reduce) != (tuple(sorted(each.answer_ids)) or each.answers)
        for each in made.questions
    )
    rows.append(Row("gold answers that the engine does not reproduce", wrong))
    pipeline = offline_pipeline(Parts(graph), max_hops=3)
    examples = list(Folder(folder / "set", split="test").examples())
    result = run_evaluation(pipeline, examples, folder / "run", RunSettings("testset", "", "", entities="gold"))
    for name, summary in {**result.by_type, "all": result.overall}.items():
        found = summary.estimates["hits@1"]
        rows.append(Row(f"Hits@1, {name} ({summary.n})", 100 * found.value, "%", *(100 * end for end in found.ci95)))
    if made.unanswerable:
        asked = unanswered(folder / "set" / UNANSWERABLE).examples
        silent = sum(not pipeline.run(example.to_question("gold")).items for example in asked)
        rows.append(Row(f"not answered, unanswerable ({len(asked)})", 100 * silent / len(asked), "%"))
    return rows


def main() -> None:
    """Measure and print."""
    parser = make_parser(__doc__, "folder that holds freebase_core")
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        show(measure(options, Path(folder)), "questions made from freebase_core", options.json)


if __name__ == "__main__":
    main()
