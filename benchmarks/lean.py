"""Calls per question of `pipeline=byokg_lean`, with a scripted model that answers as soon as possible.

python benchmarks/lean.py [--data DIR] [--graph DIR] [--questions 400] [--rounds 2] [--split test] [--json FILE]

WebQSP and CWQ questions on `freebase_core/graph_full` (497,495 triples), topic entities not given, no query engine. A
script replaces the language model: it answers with the gold answers among the facts of the prompt, citing their
lines; without any, it requests the labelled topic entities and gold relation paths, as a strong model would. The
figures measure the sufficiency of the first evidence, an upper bound for models, not the accuracy of a model.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
import re
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from benchmarks.rows import Row, show
from byokg.evaluation.metrics import score
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.linking.parts import Parts
from byokg.llm.model import LanguageModel
from byokg.pipelines.lean import lean_pipeline
from byokg.text.names import estimate_tokens
from byokg.types import Question

_FACT = re.compile(r"^\[(e\d+)\] (.*(?:\n(?!\[e\d+\] |\n).*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Gold:
    """What is known of a question."""

    id: str
    text: str
    topics: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    answers: tuple[str, ...]


class Script(BaseChatModel):
    """Answers with gold answers that the prompt's facts hold; else asks for the gold topics and paths."""

    gold: Mapping[str, Any]
    """By question text."""
    model: str = "script"
    prompts: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "script"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        user = str(messages[-1].content)
        self.prompts.append("\n".join(str(message.content) for message in messages))
        gold: Gold = self.gold[user.rsplit("# Question\n", 1)[1].strip()]
        facts = _FACT.findall(user.split("# Facts\n", 1)[1].rsplit("# Question\n", 1)[0])
        lines = [f"{answer} [{', '.join(held[:3])}]" for answer in gold.answers if (held := _holding(answer, facts))]
        if lines:
            text = "<answers>\n{}\n</answers>".format("\n".join(lines))
        else:
            paths = "\n".join(" -> ".join(path) for path in gold.paths)
            topics = "\n".join(gold.topics)
            text = f"<entities>\n{topics}\n</entities>\n<paths>\n{paths}\n</paths>"
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        message = AIMessage(text, response_metadata={"finish_reason": "stop"}, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])


def _holding(answer: str, facts: list[tuple[str, str]]) -> list[str]:
    whole = re.compile(rf"(?<!\w){re.escape(answer.casefold())}(?!\w)")
    return [id for id, line in facts if whole.search(line.casefold())]


def read_gold(data: Path, name: str, split: str, count: int) -> list[Gold]:
    """Return a seeded sample of the questions of a split, with their annotations."""
    with lzma.open(data / name / f"{name}_labels.jsonl.xz", "rt", encoding="utf-8") as file:
        paths = {record["id"]: record.get("gold_relation_paths") or [] for record in map(json.loads, file)}
    with lzma.open(data / name / "questions.jsonl.xz", "rt", encoding="utf-8") as file:
        records = [record for record in map(json.loads, file) if record["split"] == split and record["answers"]]
    chosen = random.Random(0).sample(records, min(count, len(records)))
    return [
        Gold(
            record["id"],
            record["question"].strip(),
            tuple(record["topic_entities"]),
            tuple(tuple(path) for path in paths.get(record["id"], []) if path)[:5],
            tuple(record["answers"]),
        )
        for record in chosen
    ]


def measure(name: str, graph: ColumnarGraph, gold: list[Gold], rounds: int) -> list[Row]:
    """Ask all questions."""
    script = Script(gold={one.text: one for one in gold})
    pipeline = lean_pipeline(Parts(graph, LanguageModel(script)), calls=rounds)
    calls, hits, f1, times, first = [], [], [], [], []
    for one in gold:
        before, began = len(script.prompts), time.perf_counter()
        answer = pipeline.run(Question(one.id, one.text))
        times.append(1000 * (time.perf_counter() - began))
        calls.append(len(script.prompts) - before)
        first.append(float(bool(answer.items) and calls[-1] == 1))
        scores = score([item.name for item in answer.items], one.answers)
        hits.append(scores.hit)
        f1.append(scores.f1)
    tokens = [estimate_tokens(prompt) for prompt in script.prompts]
    return [
        Row(f"{name}_calls", statistics.mean(calls), "calls a question"),
        Row(f"{name}_answered_at_first", statistics.mean(first), "share"),
        Row(f"{name}_held_in_the_end", statistics.mean(hits), "share"),
        Row(f"{name}_f1_bound", statistics.mean(f1), "share"),
        Row(f"{name}_prompt_tokens", statistics.mean(tokens), "tokens a call"),
        Row(f"{name}_median", statistics.median(times), "ms"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BYOKG_DATA", "../shared/data")))
    parser.add_argument("--graph", type=Path, help="folder written by `byokg graph build`; built by default")
    parser.add_argument("--questions", type=int, default=400, help="questions per set")
    parser.add_argument("--rounds", type=int, default=2, help="maximum calls per question")
    parser.add_argument("--split", default="test", choices=["dev", "test"])
    parser.add_argument("--json", type=Path, help="write rows of name, value, unit")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = options.graph
        if place is None:
            place = Path(folder) / "full.graph"
            build_graph(options.data / "freebase_core" / "graph_full.tsv.xz", place)
        graph = ColumnarGraph.open(place)
        rows = []
        for name in ("webqsp", "cwq"):
            rows += measure(
                name, graph, read_gold(options.data, name, options.split, options.questions), options.rounds
            )
    show(rows, f"byokg_lean with a scripted model, {options.split} split", options.json)


if __name__ == "__main__":
    main()
