"""Recall of annotated topic entities by entity linking, by method, on real questions.

python benchmarks/linking_recall.py [--data DIR] [--json FILE] [--split test] [--questions N] [--seeds]

WebQSP and CWQ on the graph in `freebase_core`, MetaQA (1 to 3 hops) and atlas. Mentions are given: the words of the
question that name the annotated entity (`byokg.evaluation.linking_quality`; MetaQA's and atlas's names stand in the
text as they are). A topic that no word of the question names, or that the graph lacks, counts as not found. A figure
is recall@3 over topic entities averaged by question, with its 95 % interval. `equal` uses equal names alone; the
columns `+` also consider names similar to an exactly matched mention (`extend`), as the paper does.

`--seeds` instead measures what a pipeline starts from on WebQSP and CWQ: share of the topic entities, averaged by
question, among the first five seeds (linked nodes, each once), and seeds among these that are none, for given mentions,
mentions found in the question without a model (`spotted`), and those in recorded first replies of models
(`llm_replies_2`, the questions answered there). For given mentions it adds the share of topic entities that are missed
by cause: not in the graph; by no word of the question, of these by an alias that equal names cover (`the uk`); among
100 candidates of the mentions, which a better order alone would find; or not even there. `ceiling` is recall with all
that an order or an alias would find.

`context_weight` and the cutoffs were tuned on the dev splits; report the test splits. The graph of WebQSP and CWQ is
not the published one: their figures are not comparable with published ones.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

from benchmarks.measure import read_lines, timed
from benchmarks.rows import Row, make_parser, show, write_rows
from byokg.evaluation.datasets.base import Dataset, Example
from byokg.evaluation.datasets.benchmarks import MetaQA
from byokg.evaluation.datasets.folder import Folder, atlas, holds
from byokg.evaluation.linking_quality import evaluate_linking, gold_mention
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.graph.name_indexes import dense_names
from byokg.index.embedders import StaticEmbedder, shipped_embedder
from byokg.linking.entities import EntityLinker, Method
from byokg.llm.parsing import read_list
from byokg.offline.pipeline import build_parser_and_ranker
from byokg.text.names import WORD, locate
from byokg.types import Mention

SEEDS = 5
WIDE, WIDE_CUTOFF = 100, 0.6
"""Candidates of a mention, and their lowest score, among which a topic entity counts as within reach."""
CAUSES = ("not in the graph", "not named", "named by an alias", "among many candidates", "named, no candidate")
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
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--split", default="test", choices=("dev", "test"))
    parser.add_argument("--questions", type=int, help="maximum questions per set, drawn with seed 0")
    parser.add_argument("--seeds", action="store_true")
    options = parser.parse_args(arguments)
    console = Console(highlight=False)
    if options.seeds:
        show(_seed_rows(options.data, options.split, options.questions), "seeds of questions", options.json)
        return
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


def _seed_rows(data: Path, split: str, count: int | None) -> list[Row]:
    """Measure recall, wrong seeds and time of each origin of mentions."""
    source, rows = data / "freebase_core" / "graph.tsv.xz", list[Row]()
    with tempfile.TemporaryDirectory() as folder:
        graph = build_graph(source, Path(folder))
        linker = EntityLinker(graph)
        spotter, _ = build_parser_and_ranker(graph, shipped_embedder(), linker)
        for name in ("webqsp", "cwq"):
            examples = [one for one in Folder(data / name, graph=source, ids="names").examples() if one.topic_ids]
            written = _written(data / "llm_replies_2", examples)
            asked = _drawn([one for one in examples if one.split == split], count)
            origins: dict[str, list[tuple[Example, list[Mention]]]] = {
                "given": [(one, _given(one)) for one in asked],
                "spotted": [(one, spotter.spot(one.question)) for one in asked],
                "replies": written,
            }
            for origin, mentions in origins.items():
                rows += _seed_figures(f"{name}, {origin}", linker, mentions)
            rows += _missed_topics(f"{name}, given", graph, linker, origins["given"])
            began = time.perf_counter()
            for one in asked:
                spotter.spot(f"{one.question} ")  # another text, and so no remembered one
            rows.append(Row(f"{name}, spotted: spotting", 1000 * (time.perf_counter() - began) / len(asked), "ms"))
    return rows


def _seed_figures(title: str, linker: EntityLinker, mentions: Sequence[tuple[Example, list[Mention]]]) -> list[Row]:
    recall, wrong, times = [], [], []
    for example, some in mentions:
        seconds, linked = timed(lambda: linker.link_all(some, example.question))  # noqa: B023
        times.append(1000 * seconds)
        seeds = list(dict.fromkeys(one.id for candidates in linked for one in candidates))[:SEEDS]
        topics = set(example.topic_ids)
        recall.append(len(topics.intersection(seeds)) / len(topics))
        wrong.append(len(set(seeds) - topics))
    return [
        Row(f"{title}: questions", len(mentions)),
        Row(f"{title}: recall", mean(recall)),
        Row(f"{title}: wrong seeds", mean(wrong)),
        Row(f"{title}: linking", mean(times), "ms"),
    ]


def _missed_topics(
    title: str, graph: ColumnarGraph, linker: EntityLinker, mentions: Sequence[tuple[Example, list[Mention]]]
) -> list[Row]:
    """Measure why topic entities are not among the first seeds: share of the topic entities by cause, and the best
    recall that another order of candidates and a better detection of aliases would give."""
    wide = EntityLinker(graph, top_k=WIDE, cutoff=WIDE_CUTOFF, extend=True, known_names=linker.names)
    shares = dict.fromkeys(CAUSES, 0.0)
    for example, some in mentions:
        seeds = list(dict.fromkeys(one.id for each in linker.link_all(some, example.question) for one in each))
        missed = set(example.topic_ids).difference(seeds[:SEEDS])
        if not missed:
            continue
        near = {one.id for each in wide.link_all(some, example.question) for one in each}
        called = {one.id for run in _runs(example.question) for one in linker.candidates(run) if one.method == "exact"}
        for topic in missed:
            named = gold_mention(topic, example.question) is not None
            cause = (
                "not in the graph" if not holds(graph, (topic,))
                else "among many candidates" if topic in near
                else "named by an alias" if topic in called
                else "named, no candidate" if named
                else "not named"
            )  # fmt: skip
            shares[cause] += 1 / len(set(example.topic_ids)) / len(mentions)
    found = 1 - sum(shares.values())
    rows = [Row(f"{title}: missed, {cause}", share) for cause, share in shares.items()]
    return [*rows, Row(f"{title}: ceiling", found + shares["among many candidates"] + shares["named by an alias"])]


def _runs(question: str) -> list[Mention]:
    """Return all runs of one to three words of a question."""
    words = list(WORD.finditer(question))
    ends = [(one.start(), words[at].end()) for place, one in enumerate(words) for at in range(place, len(words))[:3]]
    return [Mention(question[start:end], start, end) for start, end in ends]


def _given(example: Example) -> list[Mention]:
    """Return the words of a question that name its topic entities, which have their names for ids."""
    found = (gold_mention(topic, example.question) for topic in example.topic_ids)
    return list(dict.fromkeys(mention for mention in found if mention is not None))


def _written(folder: Path, examples: Sequence[Example]) -> list[tuple[Example, list[Mention]]]:
    """Return the mentions of a model's first reply to each question that it answered."""
    by_text, found = {one.question: one for one in examples}, dict[str, list[Mention]]()
    for path in sorted(folder.glob("*.jsonl.xz")):
        for record in read_lines(path):
            prompt = record["call"]["messages"][-1]["text"]
            listed = read_list(record["reply"]["text"], "entities").items
            asked = next((text for text in map(str.strip, prompt.splitlines()[::-1]) if text in by_text), None)
            if listed and asked is not None:
                found.setdefault(asked, [locate(name, asked) for name in listed])
    return [(by_text[text], mentions) for text, mentions in found.items()]


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
