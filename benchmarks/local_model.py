"""A language model fine-tuned here, answering alone: plans and GraphRAFT's queries, constrained and free.

python benchmarks/local_model.py [--data DIR] [--json FILE] [--questions N] [--split test] [--cache DIR]
    [--plans NAME=DIR …] [--mixed] [--ranker DIR --share X] [--queries NAME=DIR …] [--beams N] [--checker DIR]
    [--free NAME=DIR …] [--curve NAME=DIR …] [--trie MODEL] [--threads N] [--dtype bfloat16]
python benchmarks/local_model.py --labels NAME[=N] --out FILE [--checks]

NAME is webqsp, cwq, metaqa, metaqa_1hop, metaqa_2hop, metaqa_3hop; DIR a folder of `byokg train sft`. Gold topics, the
hop count unknown, WebQSP and CWQ on the graph in `freebase_core` (not the published one).
`--labels` writes training pairs: for `webqsp` of the chains of `webqsp_train` and of its dev questions, for `cwq` and
`metaqa` of N dev questions, each with the plan that finds its answers best; `--checks` makes those of the second model,
with wrong plans beside it (train them with `train.prompt={question} train.model=DIR`, DIR being the first model).
`--plans` is `pipeline=planner` with the model alone (`planner`), and together with the ranker of benchmarks/ranker.py
(`mixed`), or, with `--mixed` alone, with the shipped weights. `--queries` is `pipeline=graphraft` from question to
answer, with `--checker` also with the second model; a query that it ran is parsed, passed through the guard and run in
ArcadeDB. `--free` lets the same weights write plans without constraints: `free_hits@1` is the share of right answers at
the end of the written path, `free_not_runnable` the share of paths that the graph lacks. `--curve` does `--plans` and
`--free` on the same questions for each folder in DIR, which is named by its number of training examples (`0` may be the
base model). `--trie` times building and masking of 10,000 candidates with a model's tokenizer, in processor time.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.graphraft import outcome
from benchmarks.offline import Bench
from benchmarks.rows import Row, make_parser, show
from byokg.evaluation.datasets.base import Dataset, Example
from byokg.evaluation.datasets.benchmarks import MetaQA
from byokg.evaluation.datasets.folder import Folder
from byokg.evaluation.metrics import normalise
from byokg.evaluation.records import TRACE
from byokg.files import json_line
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.paths import labels
from byokg.linking.parts import Parts
from byokg.llm.decoding import PROMPT, ConstrainedRanker, TokenTrie, constrain, encode, load_tuned
from byokg.offline.linker import OfflineLinker
from byokg.offline.pipeline import offline_pipeline
from byokg.offline.planner import Planner
from byokg.offline.training.ranker import ChainStarts, f1_of_paths, read_chains, read_inverses
from byokg.pipelines.graphraft import CandidateScope, CheckedResults, check_prompt, graphraft_pipeline
from byokg.retrieval.candidates import Templates
from byokg.retrieval.enumerate_candidates import CandidateFinder
from byokg.retrieval.subgraph import results
from byokg.text.names import plan_text
from byokg.types import EntityId

CANDIDATES = 10_000
BATCH = 16
"""Questions that free decoding answers together."""


def opened(bench: Bench, name: str, split: str) -> tuple[ColumnarGraph, Dataset, int]:
    """Return the graph of a data set, its questions, and the edges in a path at most."""
    data = bench.options.data
    if name.startswith("metaqa"):
        root, hops = data / "metaqa", int(name[7]) if name[6:] else "all"
        asked = MetaQA(root, hops, split)  # type: ignore[arg-type]
        return bench.graph("metaqa", MetaQA(root, hops=1).graph_source()), asked, 3
    source = data / "freebase_core" / "graph.tsv.xz"
    return bench.graph("freebase_core", source), Folder(data / name, split=split, graph=source, ids="names"), 2


# Labels


@dataclass(frozen=True)
class JudgedPath:
    """A path of a question, and how well its ends fit the gold answers."""

    topic: str
    metapath: tuple[str, ...]
    f1: float
    ends: tuple[str, ...]
    total: int


def judged(linker: OfflineLinker, graph: ColumnarGraph, example: Example) -> list[JudgedPath]:
    """Return the paths around a question's topics that end at named nodes, those that schema linking likes first."""
    known = set(graph.entities())
    if not any(topic in known for topic in example.topic_ids):
        return []
    found = linker.score_candidates(example.to_question("gold"))
    answers = list(dict.fromkeys(example.answer_ids))
    if not found.growths:
        return []
    f1 = f1_of_paths(found, graph.numbers([one for one in answers if one in known]), len(answers))
    places = [
        (growth, topic, row)
        for growth, topic in zip(found.growths, found.topics, strict=True)
        for row in range(len(growth))
    ]
    liked = found.features @ np.array(linker.scorer.columns, np.float32)
    paths = []
    for at in np.argsort(-liked, kind="stable").tolist():
        growth, topic, row = places[at]
        if found.named[at]:
            ends = growth.reached(row)
            shown = tuple(node.name for node in graph.nodes(graph.ids(ends[:5])))
            name = graph.nodes([topic])[0].name
            paths.append(JudgedPath(name, labels(graph, growth.steps[row]), float(f1[at]), shown, len(ends)))
    return paths


def answer_labels(bench: Bench, name: str, most: int | None) -> Iterator[dict[str, Any]]:
    """Yield dev questions with the plan that finds their answers best; for checks beside up to three wrong plans."""
    graph, dataset, hops = opened(bench, name, "dev")
    linker = offline_pipeline(Parts(graph), max_hops=hops).stages[0].linker
    assert isinstance(linker, OfflineLinker)
    examples = list(dataset.examples())
    draw = random.Random(0)
    if most is not None and most < len(examples):
        draw.shuffle(examples)
        examples = examples[:most]
    for example in examples:
        paths = judged(linker, graph, example)
        best = min(
            paths,
            key=lambda one: (-round(one.f1, 4), len(one.metapath), len(" ".join(one.metapath)), one.metapath),
            default=None,
        )
        if best is None:
            continue
        if not bench.options.checks:
            if best.f1 >= 0.1:
                yield _label(example.id, example.question, plan_text(best.topic, best.metapath))
            continue
        wrong = [one for one in paths if one.f1 < 0.2][:8]
        if best.f1 >= 0.5 and wrong:
            right, *rivals = (
                check_prompt(example.question, plan_text(one.topic, walked), one.ends, one.total)
                for one in [best, *draw.sample(wrong, min(3, len(wrong)))]
                for walked in [tuple(label.lstrip("^") for label in one.metapath)]
            )
            yield {**_label(example.id, right, "yes"), "rivals": rivals}


def chain_labels(bench: Bench) -> Iterator[dict[str, Any]]:
    """Yield the questions of `webqsp_train` with their chains as the graph has them, or else as annotated."""
    data = bench.options.data
    graph, _, hops = opened(bench, "webqsp", "dev")
    starts = ChainStarts(graph, read_inverses(data / "freebase_ontology" / "inverses.tsv"))
    known = set(graph.entities())
    for chain in read_chains(data / "webqsp_train" / "questions.jsonl")[0]:
        name = chain.name or chain.topic.text
        if not name or len(chain.relations) > hops:
            continue
        walked = [(one, starts.starts(one)) for one in starts.spelled(chain.relations)]
        walked = [(one, nodes) for one, nodes in walked if len(nodes)]
        own = int(graph.numbers([EntityId(chain.name)])[0]) if chain.name in known else -1
        walked.sort(key=lambda pair: own not in pair[1])
        metapath = labels(graph, np.array(walked[0][0])) if walked else chain.relations
        yield _label(chain.id, chain.question, plan_text(name, metapath))


def _label(id: str, question: str, text: str) -> dict[str, Any]:
    return {"id": id, "question": question, "queries": [{"plan": text, "query": text}]}


# Answers


def plan(bench: Bench, name: str, folder: Path) -> None:
    """Answer with plans, alone and mixed with a trained ranker."""
    graph, dataset, hops = opened(bench, name, bench.options.split)
    examples = bench.examples(dataset)
    tried: list[tuple[str, float, Path | None]] = [] if bench.options.mixed else [("planner", 0.0, None)]
    if bench.options.mixed or bench.options.ranker is not None:
        tried.append(("mixed", bench.options.share, bench.options.ranker))
    for told, share, ranker in tried:
        planner = Planner(str(folder), ranker, share=share, dtype=bench.options.dtype)
        pipeline = offline_pipeline(Parts(graph), max_hops=hops, weights=planner)
        bench.evaluate(f"{name}_{told}", pipeline, examples, "gold")


def query(bench: Bench, name: str, folder: Path) -> None:
    """Answer with GraphRAFT, the first model alone and with the second, and run each query in ArcadeDB."""
    graph, dataset, hops = opened(bench, name, bench.options.split)
    examples, options = bench.examples(dataset), bench.options
    ranker = ConstrainedRanker(path=str(folder), beams=options.beams, spelling="plan", dtype=options.dtype)
    tried: dict[str, str | CheckedResults] = {"graphraft": "ranking"}
    if options.checker is not None:
        tried["checked"] = CheckedResults(str(options.checker), dtype=options.dtype)
    for told, answerer in tried.items():
        pipeline = graphraft_pipeline(Parts(graph), ranker, candidates=CandidateScope(hops=hops), answerer=answerer)
        bench.evaluate(f"{name}_{told}", pipeline, examples, "gold")
    became, asked = Counter[str](), set[str]()
    texts = {example.id: example.question for example in examples}
    with (
        (bench.folder / f"{name}_graphraft" / TRACE).open(encoding="utf-8") as lines,
        ArcadeStore.hold(graph) as engine,
    ):
        for line in lines:
            traced = json.loads(line)
            queries = [one["query"] for round in traced["rounds"] for one in round["evidence"] if "query" in one]
            became.update(outcome(engine, one) for one in queries)
            asked |= {texts[traced["id"]]} if queries else set()
    bench.add(Row(f"{name}_distinct_questions_with_a_query", len(asked), "questions"))
    for kind, count in became.items():
        bench.add(Row(f"{name}_queries_{kind}", count, "queries"))


def free(bench: Bench, name: str, folder: Path, told: str = "") -> None:
    """Let the weights write plans by greedy decoding without constraints."""
    import torch

    graph, dataset, hops = opened(bench, name, bench.options.split)
    model, tokenizer = load_tuned(str(folder), dtype=bench.options.dtype)
    tokenizer.padding_side = "left"
    finder = CandidateFinder(graph, Templates.of(hops))
    right, runs, examples = [], [], bench.examples(dataset)
    for at in range(0, len(examples), BATCH):
        several = examples[at : at + BATCH]
        asked = tokenizer([PROMPT.replace("{question}", one.question) for one in several], padding=True)
        ids, mask = torch.tensor(asked["input_ids"]), torch.tensor(asked["attention_mask"])
        with torch.inference_mode():
            out = model.generate(ids, attention_mask=mask, max_new_tokens=40, do_sample=False)
        for example, row in zip(several, out, strict=True):
            text = tokenizer.decode(row[ids.shape[1] :], skip_special_tokens=True).strip()
            plans = {one.plan: one for one in finder.find(example.topic_ids).items}
            runs.append(text in plans)
            found = [node.name for node in graph.nodes(results(graph, plans[text])[:1])] if text in plans else []
            right.append(any(normalise(one) in set(map(normalise, example.answers)) for one in found))
    bench.add(Row(f"{name}{told}_free_hits@1", float(np.mean(right)), "share"))
    bench.add(Row(f"{name}{told}_free_not_runnable", 1 - float(np.mean(runs)), "share"))


def curve(bench: Bench, name: str, folder: Path) -> None:
    """Answer the same questions after each number of training examples, with constraints and without."""
    graph, dataset, hops = opened(bench, name, bench.options.split)
    examples = bench.examples(dataset)
    for size in sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit()):
        planner = Planner(str(folder / str(size)), dtype=bench.options.dtype)
        pipeline = offline_pipeline(Parts(graph), max_hops=hops, weights=planner)
        bench.evaluate(f"{name}_{size}_examples_planner", pipeline, examples, "gold", metrics=("hits@1",))
        free(bench, name, folder / str(size), f"_{size}_examples")


def trie(bench: Bench, model: str) -> None:
    """Time the trie of 10,000 candidates of WebQSP's graph, and the mask of a step with ten beams."""
    import torch
    from transformers import AutoTokenizer

    graph, dataset, _ = opened(bench, "webqsp", "dev")
    finder, made = CandidateFinder(graph), dict[str, None]()
    for example in dataset.examples():
        made |= dict.fromkeys(one.plan for one in finder.find(example.topic_ids).items)
        if len(made) >= CANDIDATES:
            break
    tokenizer = AutoTokenizer.from_pretrained(model)
    began = time.process_time()
    rows = encode(tokenizer, list(made)[:CANDIDATES])
    bench.add(Row("tokens_of_candidates", 1000 * (time.process_time() - began), "ms"))
    times = []
    for _ in range(15):
        began = time.process_time()
        built = TokenTrie(rows, tokenizer.eos_token_id)
        times.append(1000 * (time.process_time() - began))
    bench.add(Row("trie_of_candidates", float(np.median(times)), "ms"))
    mask, masked = constrain(built, 0), []
    scores = torch.zeros((1, len(tokenizer)))
    for row in random.Random(0).sample(rows, 100):
        for size in range(len(row)):
            ids = torch.tensor([row[:size]], dtype=torch.long)
            began = time.process_time()
            mask(ids, scores)
            masked.append(1000 * (time.process_time() - began))
    bench.add(Row("mask_p95", float(np.percentile(masked, 95)), "ms"))


def main() -> None:
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--questions", type=int, help="questions per set (default: all)")
    parser.add_argument("--split", default="test", choices=["dev", "test"])
    parser.add_argument("--labels", metavar="NAME[=N]", help="write training pairs, and measure nothing")
    parser.add_argument("--checks", action="store_true", help="training pairs of the second model")
    parser.add_argument("--out", type=Path, help="file of the training pairs")
    parser.add_argument("--ranker", type=Path, help="folder of a trained ranker, for the mix")
    parser.add_argument("--share", type=float, default=1.0, help="weight of the ranker's scores in the mix")
    parser.add_argument("--mixed", action="store_true", help="the mix alone")
    parser.add_argument("--beams", type=int, default=5, help="queries of a question that GraphRAFT decodes and runs")
    parser.add_argument("--checker", type=Path, help="folder of the second model")
    parser.add_argument("--trie", metavar="MODEL", help="time the trie and its mask with the tokenizer of a model")
    parser.add_argument("--threads", type=int, help="of torch")
    parser.add_argument("--dtype", help="of the weights in use")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cache", type=Path, help="folder that keeps graphs and runs")
    for task in TASKS:
        parser.add_argument(f"--{task}", nargs="*", default=[], metavar="NAME=DIR")
    options = parser.parse_args()
    if options.threads:
        import torch

        torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, options.cache or Path(folder), Console())
        if options.labels:
            name, _, most = options.labels.partition("=")
            made = list(answer_labels(bench, name, int(most) if most else None))
            if name == "webqsp" and not options.checks:
                made = [*chain_labels(bench), *made]
            options.out.write_bytes(b"".join(map(json_line, made)))
            return
        if options.trie:
            trie(bench, options.trie)
        for task, run in TASKS.items():
            for each in getattr(options, task):
                name, _, path = each.partition("=")
                run(bench, name, Path(path))
    show(bench.rows, f"fine-tuned language model, {options.split} split", options.json)


TASKS = {"plans": plan, "queries": query, "free": free, "curve": curve}


if __name__ == "__main__":
    main()
