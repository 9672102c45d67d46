"""Recall, calls and time of agentic retrieval on a part of Freebase, with good selections of relations and entities.

python benchmarks/agentic.py [--data DIR] [--json FILE] [--split dev] [--questions N]

WebQSP questions on the graph in `freebase_core` (all of it), from their annotated topic entities. Stand-ins reply to
the prompts instead of a language model:

- `gold` selects the listed relations of an annotation (`webqsp_labels`; without one the first three listed),
  continues with entities of annotated triples, and finishes when its prompt has an answer. Its recall is an upper
  bound for models within the limits.
- `listed` selects the first five relations of each entity, in the embedder's order, and never finishes.
- `embedder` makes no calls (`calls=0`): the embedder selects the relations of one hop.

Found: an answer is at an end of a triple. Listed: the first prompt has one of the topic entity's annotated
relations. The time includes the stand-in. The last rows walk from the node of most edges.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from pydantic import Field
from rich.console import Console
from rich.table import Table

from benchmarks.measure import read_labels
from benchmarks.rows import labelled, make_parser, write_rows
from byokg.errors import EntityNotFound
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.folder import Folder
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.index.embedders import StaticEmbedder
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import Parts, RelationMatcher
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.pipelines.context import ContextWriter
from byokg.retrieval.agentic import AgenticRetriever
from byokg.text.names import estimate_tokens, normalize_name
from byokg.types import Artifacts, Context, EntityId, Linked, LinkedEntity, Mention, Question, Request, TripleEvidence

FINISH = "<next-entities>\nFINISH\n</next-entities>"


class StandIn(ScriptedChatModel):
    """Reads a prompt as a model would, knowing the annotation of the question at hand."""

    gold: bool = True
    relations: frozenset[str] = frozenset()
    nodes: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    prompts: list[str] = Field(default_factory=list)

    def _rule(self, prompt: str) -> Rule:
        self.prompts.append(prompt)
        if "Entities and their relations:" in prompt:
            return Rule("<selected>\n{}\n</selected>".format("\n".join(self._selected(prompt))))
        shown = prompt.rpartition("Graph context:")[2]
        if not self.gold:
            lines = shown.split("\n\nQuestion:")[0].strip().splitlines()
            ends = [line.rpartition(" → ")[2] for line in lines]
            return Rule("<next-entities>\n{}\n</next-entities>".format("\n".join(dict.fromkeys(ends))))
        folded = normalize_name(shown)
        if any(answer in folded for answer in self.answers):
            return Rule(FINISH)
        following = [node for node in self.nodes if node in shown]
        return Rule("<next-entities>\n{}\n</next-entities>".format("\n".join(following)) if following else FINISH)

    def _selected(self, prompt: str) -> list[str]:
        if not self.gold:
            return [relation for of in _listed(prompt) for relation in of[:5]]
        relations = list(dict.fromkeys(relation for of in _listed(prompt) for relation in of))
        return [relation for relation in relations if relation in self.relations] or relations[:3]


def _listed(prompt: str) -> list[list[str]]:
    """Return the relations listed in a prompt for each entity."""
    entities: list[list[str]] = []
    for line in prompt.rpartition("Entities and their relations:\n")[2].split("\n\nQuestion:")[0].splitlines():
        if not line.startswith("  "):
            entities.append([])
        elif not line.startswith("  … "):
            entities[-1].append(line.strip())
    return entities


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, and write the rows."""
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--split", default="dev", choices=("dev", "test"))
    parser.add_argument("--questions", type=int, help="the first N only")
    options = parser.parse_args(arguments)
    source = options.data / "freebase_core" / "graph_full.tsv.xz"
    examples = list(Folder(options.data / "webqsp", split=options.split, graph=source, ids="names").examples())
    annotations = read_labels(options.data / "webqsp")
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        graph = build_graph(source, Path(folder) / "graph")
        bench = _Bench(graph, [_asked(graph, example, annotations) for example in examples][: options.questions])
        for name, gold, calls in (("gold", True, 5), ("listed", False, 5), ("embedder", False, 0)):
            for budget in (500, 1000, 2000) if calls else (2000,):
                figures[f"{name}, {budget:,} tokens" if calls else name] = bench.measured(gold, budget, calls)
        figures["largest hub"] = bench.hub()
    table = Table(
        title=f"agentic retrieval, {len(bench.asked)} {options.split} questions of WebQSP", title_justify="left"
    )
    table.add_column("")
    labels = dict.fromkeys(label for of in figures.values() for label in of)
    for label in labels:
        table.add_column(label, justify="right")
    for subject, of in figures.items():
        table.add_row(subject, *(f"{of[label]:,.1f}" if label in of else "" for label in labels))
    Console(highlight=False).print(table)
    rows = [labelled(subject, label, value) for subject, of in figures.items() for label, value in of.items()]
    write_rows(rows, options.json)


@dataclass(frozen=True)
class _Asked:
    """A question, where its walk begins, and what an annotation says of it."""

    question: Question
    linked: Linked
    answers: frozenset[str]
    relations: frozenset[str]
    nodes: tuple[str, ...]


def _asked(graph: ColumnarGraph, example: Example, labels: Mapping[str, Any]) -> _Asked:
    label = labels[example.id]
    relations = {relation for path in label["gold_relation_paths"] for relation in path}
    relations |= {relation for _, relation, _ in label["support_triples"]}
    nodes = dict.fromkeys(node for head, _, tail in label["support_triples"] for node in (head, tail))
    topics = [id for id in example.topic_ids if _holds(graph, id)]
    entities = tuple(LinkedEntity(id, id, Mention(id), "given", 1.0) for id in topics)
    answers = frozenset(map(normalize_name, example.answers))
    return _Asked(example.to_question(), Linked(entities), answers, frozenset(relations), tuple(nodes))


def _holds(graph: ColumnarGraph, id: EntityId) -> bool:
    try:
        graph.numbers([id])
    except EntityNotFound:
        return False
    return True


class _Bench:
    """Holds what all measurements share."""

    def __init__(self, graph: ColumnarGraph, asked: Sequence[_Asked]) -> None:
        self.asked = tuple(asked)
        self._graph = graph
        self._embedder = StaticEmbedder()
        self._entities = EntityLinker(graph)
        self._entities.link_all([Mention("warm up")])
        self._relations = RelationMatcher(graph.relations, self._embedder)
        self._context = ContextWriter(graph)

    def measured(self, gold: bool, budget: int, calls: int) -> dict[str, float]:
        """Walk for every question."""
        counts: list[int] = []
        found: list[float] = []
        listed: list[float] = []
        prompts: list[int] = []
        times: list[float] = []
        for one in self.asked:
            seen, ends, took = self._walked(one, gold, budget, calls)
            counts.append(len(seen))
            found.append(100.0 * (not one.answers.isdisjoint(ends)))
            times.append(1000 * took)
            prompts += map(estimate_tokens, seen)
            there = self._present(one)
            if there and seen:
                listed.append(100.0 * any(relation in there for of in _listed(seen[0]) for relation in of))
        return {
            "found %": fmean(found),
            **({"listed %": fmean(listed)} if listed else {}),
            "calls, mean": fmean(counts),
            "calls, most": max(counts),
            **({"longest prompt, tokens": max(prompts)} if prompts else {}),
            "median ms": median(times),
            "95th percentile ms": float(np.percentile(times, 95)),
        }

    def hub(self) -> dict[str, float]:
        """Walk from the node of most edges."""
        numbers = np.arange(self._graph.node_count)
        degrees = self._graph.relation_counts(numbers).degrees(len(numbers))
        (hub,) = self._graph.ids(numbers[[int(degrees.argmax())]])
        start = Linked((LinkedEntity(hub, hub, Mention(hub), "given", 1.0),))
        seen, _, took = self._walked(
            _Asked(Question("hub", "What is there?"), start, frozenset(), frozenset(), ()), False, 2000, 5
        )
        return {
            "edges": int(degrees.max()),
            "calls, most": len(seen),
            "longest prompt, tokens": max(map(estimate_tokens, seen)),
            "median ms": 1000 * took,
        }

    def _walked(self, one: _Asked, gold: bool, budget: int, calls: int) -> tuple[list[str], set[str], float]:
        """Return the prompts, the folded names at ends of triples, and the seconds that one question took."""
        model = StandIn(gold=gold, relations=one.relations, nodes=one.nodes, answers=tuple(one.answers))
        retriever = AgenticRetriever(
            Parts(self._graph, LanguageModel(model), self._embedder, entities=self._entities),
            relation_tokens=budget,
            calls=calls,
        )
        began = time.perf_counter()
        evidence = retriever.retrieve(Request(one.question, Artifacts(), one.linked, Context()))
        took = time.perf_counter() - began
        triples = [item.triple for item in evidence if isinstance(item, TripleEvidence)]
        ends = dict.fromkeys(id for triple in triples for id in (triple.head, triple.tail))
        return model.prompts, {normalize_name(node.name) for node in self._graph.nodes(list(ends))}, took

    def _present(self, one: _Asked) -> frozenset[str]:
        """Return the annotated relations that a topic entity has."""
        numbers = self._graph.numbers([entity.id for entity in one.linked.entities])
        counts = self._graph.relation_counts(numbers).relation.tolist()
        return one.relations & {self._graph.relations[number] for number in counts}


if __name__ == "__main__":
    main()
