"""Evidence, tokens and calls of pipelines with a language model, its recorded replies put in again.

python benchmarks/replay.py [--data DIR] [--graph DIR] [--runs NAME …] [--json FILE]

The replies of a strong language model (`llm_replies_2`: `byokg_lean` on WebQSP, CWQ and Northwind, `byokg` on WebQSP,
20 or 30 questions each) stand for the model, stage by stage, so that retrieval is as with a real one. Measured are the
prompts as recorded and now: calls, tokens (characters / 4), and gold answers in the facts of the first prompt with
facts, and of the richest one. Questions that hold fewer gold answers now than then are printed.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import numpy as np

from benchmarks.dropped_constraints import importable
from benchmarks.measure import read_lines, read_questions
from benchmarks.rows import Bar, Row, make_parser, show, show_bars
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.importers.choose import build_graph
from byokg.graph.store import GraphStore
from byokg.linking.parts import Parts
from byokg.llm.messages import Message, Reply
from byokg.llm.model import LanguageModel
from byokg.open import add_engine
from byokg.pipelines.byokg import byokg_pipeline
from byokg.pipelines.context import shown_text
from byokg.pipelines.lean import Lean, lean_pipeline
from byokg.pipelines.loop import Loop
from byokg.text.names import normalize_name
from byokg.types import Question

RUNS: Mapping[str, tuple[str, Callable[[Parts], Lean | Loop]]] = {
    "lean_web_b": ("webqsp", lean_pipeline),
    "lean_web_c": ("webqsp", lean_pipeline),
    "lean_cwq_b": ("cwq", lean_pipeline),
    "lean_cwq_c": ("cwq", lean_pipeline),
    "lean_nw": ("northwind", lean_pipeline),
    "full_web_c": ("webqsp", byokg_pipeline),
}
"""Each run with its data set and pipeline."""

BARS = (
    Bar("lean: median of a prompt", "≤", 1300),
    Bar("lean_nw: mean of a question", "≤", 3000),
    *(Bar(f"{run}: questions with fewer gold answers than recorded", "≤", 0) for run in RUNS),
)

Calls = dict[str, list[list[str]]]
"""The texts of the messages of each prompt, by question."""


class Replaying:
    """Stands for a language model: gives the recorded replies of a question and stage in order, then empty ones."""

    chat_model = None

    def __init__(self, file: Path, questions: Mapping[str, str]) -> None:
        self._replies: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.recorded: Calls = defaultdict(list)
        self.now: Calls = defaultdict(list)
        for record in sorted(read_lines(file), key=lambda record: str(record["recorded"])):
            texts = [message["text"] for message in record["call"]["messages"]]
            id = questions[texts[-1].strip().splitlines()[-1].removeprefix("Question: ")]
            self._replies[id, record["stage"]].append(record["reply"]["text"])
            self.recorded[id].append(texts)

    def reply(self, messages: Sequence[Message], *, stage: str, question_id: str, **_: object) -> Reply:
        """Return the next recorded reply."""
        self.now[question_id].append([message.text for message in messages])
        left = self._replies[question_id, stage]
        return Reply(left.pop(0) if left else "")


def tokens(prompt: Sequence[str]) -> float:
    """Return the estimated tokens of a prompt."""
    return sum(map(len, prompt)) / 4


def measure(run: str, store: GraphStore, data: Path, prompts: list[float]) -> Iterator[Row]:
    """Replay a run; add the tokens of its prompts to `prompts`."""
    name, make = RUNS[run]
    examples = {record["id"]: record for record in read_questions(data / name)}
    ids = {record["question"].strip(): id for id, record in examples.items()}
    model = Replaying(data / "llm_replies_2" / f"{run}.jsonl.xz", ids)
    pipeline = make(Parts(store, cast(LanguageModel, model)))
    for id in model.recorded:
        pipeline.run(Question(id, examples[id]["question"]))

    def held(id: str, prompt: Sequence[str]) -> int:
        whole = f" {normalize_name(shown_text(prompt[-1]))} "
        return sum(f" {normalize_name(answer)} " in whole for answer in examples[id]["answers"])

    most = []
    for title, calls in ((f"{run} as recorded", model.recorded), (run, model.now)):
        sizes = [tokens(prompt) for some in calls.values() for prompt in some]
        found = {id: [held(id, prompt) for prompt in some] for id, some in calls.items()}
        facts = {id: [bool(shown_text(prompt[-1])) for prompt in some] for id, some in calls.items()}
        first = [next((n for n, any_ in zip(found[id], facts[id], strict=True) if any_), 0) for id in found]
        most.append({id: max(each) for id, each in found.items()})
        yield Row(f"{title}: calls", len(sizes) / len(calls), "calls a question")
        yield Row(f"{title}: median of a prompt", float(np.median(sizes)), "tokens")
        yield Row(f"{title}: mean of a question", sum(sizes) / len(calls), "tokens")
        yield Row(f"{title}: gold answers in the first facts", sum(first))
        yield Row(f"{title}: gold answers in the facts", sum(most[-1].values()))
        yield Row(f"{title}: questions with one", sum(map(bool, most[-1].values())))
        prompts += sizes if title == run else []
    then, now = most
    for id in (id for id in then if now[id] < then[id]):
        print(f"{run} {id}: {then[id]} gold answers in the facts, now {now[id]}")
    yield Row(f"{run}: questions with fewer gold answers than recorded", sum(now[id] < then[id] for id in then))


def main() -> None:
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--graph", type=Path, help="graph folder with its openCypher engine (default: built)")
    parser.add_argument("--runs", nargs="+", default=list(RUNS), choices=list(RUNS))
    options = parser.parse_args()
    rows: list[Row] = []
    prompts: list[float] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        freebase = options.graph or folder / "freebase.graph"
        if options.graph is None:
            build_graph(options.data / "freebase_core" / "graph_full.tsv.xz", freebase)
            add_engine(freebase, "cypher")
        for run in options.runs:
            place = freebase
            if run == "lean_nw":
                place = folder / "northwind.graph"
                build_graph(importable(options.data / "northwind", folder), place)
                add_engine(place, "cypher")
            if run in ("lean_nw", "full_web_c"):
                engine = ArcadeStore.open(place)
                stack.callback(engine.close)
                rows += measure(run, engine, options.data, [])
            else:
                rows += measure(run, ColumnarGraph.open(place), options.data, prompts)
    if prompts:
        rows.append(Row("lean: median of a prompt", float(np.median(prompts)), "tokens"))
    show(rows, "recorded replies put in again", options.json)
    names = {row.name for row in rows}
    show_bars(rows, [bar for bar in BARS if bar.name in names])


if __name__ == "__main__":
    main()
