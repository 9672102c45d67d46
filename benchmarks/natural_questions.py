"""Natural questions over eight small graphs, by other authors than those of the parsing rules.

python benchmarks/natural_questions.py [--json FILE]

`natural_questions.tar.xz` holds a folder for each graph, as `byokg eval dataset=folder` reads it: 494 to 1,105 nodes
of a world cup, a supply chain, papers, films, medicines, families, politics and a software company, each with 300 or
305 questions in some 210 wordings: one to three hops, two constraints, counts, superlatives, times, comparisons,
properties and yes or no. Their authors saw neither code nor word lists; gold answers were computed by programs. Wrong
answers over the graphs in `READ` were inspected afterwards for new rules; those over `UNREAD` were not. Figures are
of first answers, with gold topic entities and with linked ones, and of calibration.
"""

from __future__ import annotations

import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.offline import Bench
from benchmarks.rows import Row, make_parser, show
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.folder import Folder
from byokg.evaluation.metrics import normalise
from byokg.graph.importers.choose import build_graph
from byokg.graph.name_indexes import build_names
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.pipelines.loop import Loop

PACKED = Path(__file__).with_name("natural_questions.tar.xz")

READ = ("worldcup", "papers", "supply", "films", "pharma", "genealogy")
UNREAD = ("politics", "infra")


def unpacked(folder: Path) -> Path:
    """Unpack the questions, and return where: in a folder for each graph."""
    with tarfile.open(PACKED) as packed:
        packed.extractall(folder, filter="data")
    return folder


def opened(root: Path, out: Path, query_graphs: bool = True) -> tuple[Loop, Sequence[Example]]:
    """Return the pipeline over one graph, which is built in `out`, and the questions."""
    triples = root / "graph.tsv"
    source = triples if triples.exists() else root
    graph = build_graph(source, out)
    build_names(graph)
    return offline_pipeline(Parts(graph), query_graphs=query_graphs), Folder(root, graph=source).examples()


def measured(bench: Bench, root: Path) -> dict[str, list[bool]]:
    """Ask the questions over one graph, and return whether first answers are right, by type of question."""
    pipeline, examples = opened(root, bench.folder / f"{root.name}.graph")
    for entities in ("gold", "linked"):
        name = root.name if entities == "gold" else f"{root.name}_linked"
        bench.evaluate(name, pipeline, examples, entities, metrics=("hits@1", "f1"))
    right: dict[str, list[bool]] = defaultdict(list)
    for example in examples:
        items = pipeline.run(example.to_question("gold")).items
        gold = set(map(normalise, example.answers))
        right[example.type].append(bool(items) and normalise(items[0].name) in gold)
    return right


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder), Console())
        root = unpacked(Path(folder))
        for group, names in (("read", READ), ("unread", UNREAD)):
            by_type: dict[str, list[bool]] = defaultdict(list)
            for name in names:
                for kind, right in measured(bench, root / name).items():
                    by_type[kind] += right
            for kind, right in sorted(by_type.items()):
                bench.add(Row(f"{group}_{kind}_hits@1", sum(right) / len(right), "share"))
    show(bench.rows, "questions over graphs of others", options.json)


if __name__ == "__main__":
    main()
