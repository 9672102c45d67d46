"""Calls per question of `pipeline=byokg_lean`, with a scripted model that answers as soon as possible.

python benchmarks/lean.py [--data DIR] [--graph DIR] [--questions 400] [--lists 200] [--rounds 2] [--split test]
    [--json FILE]

WebQSP and CWQ questions on `freebase_core/graph_full` (497,495 triples), topic entities not given, no query engine. A
script replaces the language model: it answers with the gold answers among the facts of the prompt, citing their
lines; without any, it requests the labelled topic entities and gold relation paths, as a strong model would. The
figures measure the sufficiency of the first evidence, an upper bound for models, not the accuracy of a model.

`lists`: of questions with 3 to 50 gold answers that are names in the graph, the mean share of these in the evidence of
the first round, and in the facts of its prompt. `northwind`: the same of all questions whose result is certain, on its
property graph, where a query is read without the model. `twins`: inverse twins found in the graph, against Freebase's
own list of inverses, for relations that occur in that.
"""

from __future__ import annotations

import lzma
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from benchmarks.dropped_constraints import importable
from benchmarks.measure import read_labels, read_questions, timed
from benchmarks.property_graphs import records
from benchmarks.rows import Row, make_parser, show
from byokg.evaluation.metrics import score
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.graph.inverses import twin_relations
from byokg.linking.parts import Parts
from byokg.llm.model import LanguageModel
from byokg.pipelines.lean import lean_pipeline
from byokg.text.names import estimate_tokens, normalize_name
from byokg.types import PathEvidence, Question

_FACT = re.compile(r"^\[(e\d+)\] (.*(?:\n(?!\[e\d+\] |\n).*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Gold:
    """What is known of a question."""

    id: str
    text: str
    topics: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    answers: tuple[str, ...]


class GoldModel(BaseChatModel):
    """A model that knows the gold annotations; a subclass writes its replies."""

    gold: Mapping[str, Any]
    """By question text."""
    model: str = "gold"

    @property
    def _llm_type(self) -> str:
        return self.model

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
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        text = self.written(str(messages[0].content), str(messages[-1].content))
        message = AIMessage(text, response_metadata={"finish_reason": "stop"}, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def written(self, system: str, user: str) -> str:
        """Return the reply to a prompt."""
        raise NotImplementedError


class Script(GoldModel):
    """Answers with gold answers that the prompt's facts hold; else asks for the gold topics and paths."""

    prompts: list[str] = Field(default_factory=list)

    def written(self, system: str, user: str) -> str:
        """Return the reply to a prompt."""
        self.prompts.append(f"{system}\n{user}")
        gold: Gold = self.gold[user.rsplit("# Question\n", 1)[1].strip()]
        facts = _FACT.findall(user.split("# Facts\n", 1)[1].rsplit("# Question\n", 1)[0])
        lines = [f"{answer} [{', '.join(held[:3])}]" for answer in gold.answers if (held := _holding(answer, facts))]
        if lines:
            return "<answers>\n{}\n</answers>".format("\n".join(lines))
        paths, topics = "\n".join(" -> ".join(path) for path in gold.paths), "\n".join(gold.topics)
        return f"<entities>\n{topics}\n</entities>\n<paths>\n{paths}\n</paths>"


def _holding(answer: str, facts: list[tuple[str, str]]) -> list[str]:
    whole = re.compile(rf"(?<!\w){re.escape(answer.casefold())}(?!\w)")
    return [id for id, line in facts if whole.search(line.casefold())]


def read_gold(data: Path, name: str, split: str, count: int) -> list[Gold]:
    """Return a seeded sample of the questions of a split, with their annotations."""
    paths = {id: label.get("gold_relation_paths") or [] for id, label in read_labels(data / name).items()}
    records = [record for record in read_questions(data / name) if record["split"] == split and record["answers"]]
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


def read_northwind(data: Path, split: str, count: int) -> list[Gold]:
    """Return a seeded sample of the questions on Northwind, with their answers."""
    asked = records(data, "northwind", split)
    chosen = random.Random(0).sample(asked, min(count, len(asked)))
    return [Gold(one["id"], one["question"].strip(), (), (), tuple(map(str, one["answers"]))) for one in chosen]


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


def completeness(name: str, graph: ColumnarGraph, gold: list[Gold]) -> list[Row]:
    """Retrieve for the first prompt of each question, and compare with its gold answers."""
    script = Script(gold={one.text: one for one in gold})
    pipeline = lean_pipeline(Parts(graph, LanguageModel(script)), calls=1)
    retrieved, shown, tokens, facts = [], [], [], []
    for one in gold:
        answer = pipeline.run(Question(one.id, one.text))
        [first] = answer.rounds
        paths = [item for item in first.evidence if isinstance(item, PathEvidence)]
        ends = dict.fromkeys(end for item in paths for end in item.ends)
        ends |= dict.fromkeys(node for item in paths for path in item.paths for node in path.nodes)
        names = {normalize_name(node.name) for node in graph.nodes(list(ends))}
        prompt = script.prompts[-1]
        text = prompt.split("# Facts\n", 1)[1].rsplit("# Question\n", 1)[0]
        lines = _FACT.findall(text)
        retrieved.append(statistics.mean(normalize_name(each) in names for each in one.answers))
        shown.append(statistics.mean(bool(_holding(each, lines)) for each in one.answers))
        tokens.append(estimate_tokens(prompt))
        facts.append(estimate_tokens(text))
    return [
        Row(f"{name}_lists", len(gold), "questions"),
        Row(f"{name}_lists_retrieved", statistics.mean(retrieved), "share"),
        Row(f"{name}_lists_shown", statistics.mean(shown), "share"),
        Row(f"{name}_lists_prompt_median", statistics.median(tokens), "tokens"),
        Row(f"{name}_lists_facts_median", statistics.median(facts), "tokens"),
    ]


def lists(gold: list[Gold], names: Container[str], most: int) -> list[Gold]:
    """Return the questions with 3 to 50 gold answers that are names in the graph, with these, at most so many."""
    held = [replace(one, answers=tuple(a for a in one.answers if normalize_name(a) in names)) for one in gold]
    return [one for one in held if 3 <= len(one.answers) <= 50][:most]


def twin_precision(data: Path, graph: ColumnarGraph) -> list[Row]:
    """Compare inverse twins found in the graph with Freebase's own list of inverses."""
    with lzma.open(data / "freebase_ontology" / "inverses.tsv.xz", "rt", encoding="utf-8") as file:
        stated = {tuple(line.rstrip("\n").split("\t")[:2]) for line in file}
    stated |= {(other, one) for one, other in stated}
    listed = {one for one, _ in stated}
    known = {pair for pair in stated if set(pair) <= set(graph.relations)}
    seconds, twins = timed(lambda: twin_relations(graph))
    found = {pair for pair in twins.items() if set(pair) <= listed}
    return [
        Row("twins_precision", len(found & known) / len(found), "share"),
        Row("twins_recall", len(found & known) / len(known), "share"),
        Row("twins_relations", len(twins), "relations"),
        Row("twins_time", 1000 * seconds, "ms"),
    ]


def main() -> None:
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--graph", type=Path, help="folder written by `byokg graph build`; built by default")
    parser.add_argument("--questions", type=int, default=400, help="questions per set")
    parser.add_argument("--lists", type=int, default=200, help="questions with lists of answers per set")
    parser.add_argument("--rounds", type=int, default=2, help="maximum calls per question")
    parser.add_argument("--split", default="test", choices=["dev", "test"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = options.graph
        if place is None:
            place = Path(folder) / "full.graph"
            build_graph(options.data / "freebase_core" / "graph_full.tsv.xz", place)
        graph = ColumnarGraph.open(place)
        rows = twin_precision(options.data, graph)
        names = {normalize_name(node.name) for nodes in graph.all_nodes() for node in nodes}
        for name in ("webqsp", "cwq"):
            if options.lists:
                every = read_gold(options.data, name, options.split, sys.maxsize)
                rows += completeness(name, graph, lists(every, names, options.lists))
            if options.questions:
                gold = read_gold(options.data, name, options.split, options.questions)
                rows += measure(name, graph, gold, options.rounds)
        if options.lists:
            trade = build_graph(importable(options.data / "northwind", Path(folder)), Path(folder) / "northwind.graph")
            rows += completeness("northwind", trade, read_northwind(options.data, options.split, options.lists))
    show(rows, f"byokg_lean with a scripted model, {options.split} split", options.json)


if __name__ == "__main__":
    main()
