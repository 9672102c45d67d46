"""Content of a language model's prompts, measured without a model: schema, evidence, and their cost.

python benchmarks/prompts.py [--data DIR] [--graph DIR] [--split test] [--questions 400] [--part all] [--json FILE]

`schema` and `evidence` on `freebase_core/graph_full` (497,495 triples, 4,045 relations).

`schema`: for the first questions of a split of WebQSP and CWQ that have a labelled gold path, the share for which all
relations of one labelled path are shown within 2,000 tokens; in the first round, around the entities that the offline
spotter finds, and in the second, around the annotated topic entities.

`evidence`: the replies of a strong language model to the first version's prompts (`llm_replies`) are replayed stage by
stage, so that retrieval is as with a real model; the measurements are of the evidence in its last
prompt. They use the text alone: a fact is two named nodes and their connection, in any notation
(inverse relations after `freebase_ontology`; through a nameless node or by the shortcut `a..b`). A hub path goes
through a node by an unrequested relation that more than 100 nodes share there.

`values`: on property graphs (Northwind, Movies, Mind-the-Query `er`, ZOGRASCOPE), the share of the gold query's
properties that the first prompt of `byokg_cypher` and `byokg_lean` shows under their type, and of its texts compared
with a property that the prompt spells as the graph does, in quotes outside the question. Left out are properties and
texts that the graph lacks, parts of texts, and numbers.
"""

from __future__ import annotations

import lzma
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks.dropped_constraints import importable
from benchmarks.grounding import SETS, renamed
from benchmarks.measure import read_labels, read_lines, read_questions
from benchmarks.property_graphs import half_of
from benchmarks.rows import Bar, Row, make_parser, show, show_bars
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.guard.cypher import parse_cypher
from byokg.graph.guard.literals import literals_in
from byokg.graph.guard.tokens import Unreadable
from byokg.graph.importers.choose import build_graph
from byokg.graph.name_indexes import name_index
from byokg.graph.schema_text import Nearness, SchemaRenderer
from byokg.graph.store import GraphStore, QueryableGraph, query_notes
from byokg.graph.value_indexes import build_indexes, value_index
from byokg.index.embedders import StaticEmbedder
from byokg.index.names import NameIndex
from byokg.index.values import ValueIndex
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import Parts
from byokg.llm.messages import Message, Reply
from byokg.llm.model import LanguageModel
from byokg.offline import entity_spotter
from byokg.open import add_engine
from byokg.pipelines.byokg import Rounds, byokg_pipeline
from byokg.pipelines.context import shown_text
from byokg.pipelines.lean import Lean, lean_pipeline
from byokg.pipelines.loop import Loop
from byokg.retrieval.agentic import AgenticRetriever
from byokg.retrieval.bfsql import BfsqlRetriever
from byokg.retrieval.path import PathRetriever
from byokg.retrieval.query import QueryRetriever
from byokg.retrieval.text import RerankRetriever, TextRetriever
from byokg.text.names import estimate_tokens, normalize_name
from byokg.types import EntityId, Question

SCHEMA_TOKENS = 2000


def schema_rows(store: GraphStore, data: Path, split: str, count: int) -> list[Row]:
    """Measure how often the schema shows a whole labelled path."""
    embedder, entities = StaticEmbedder(), EntityLinker(store)
    renderer = SchemaRenderer(store.schema(), embedder, notes=query_notes(store), near=Nearness(store))
    spotted = entity_spotter(Parts(store, embedder=embedder, entities=entities))
    known = set(store.entities())
    rows = []
    for name in ("webqsp", "cwq"):
        labels = read_labels(data / name)
        found: dict[str, list[bool]] = {"round 1": [], "round 1, 2 hops": [], "round 2": []}
        tokens, relations = [], []
        for record in read_questions(data / name):
            label = labels.get(record["id"], {})
            paths = [path for path in label.get("gold_relation_paths", ()) if path]
            if record["split"] != split or not paths:
                continue
            topics = [EntityId(topic) for topic in record["topic_entities"] if topic in known]
            for around, part in ((spotted(record["question"]), "round 1"), (topics, "round 2")):
                shown = renderer.render(record["question"], SCHEMA_TOKENS, around)
                whole = any(set(path) <= set(shown.relations) for path in paths)
                found[part].append(whole)
                if part == "round 1":
                    tokens.append(shown.tokens)
                    relations.append(len(shown.relations))
                    if label["hops"] == 2:
                        found["round 1, 2 hops"].append(whole)
            if len(tokens) == count:
                break
        rows += [Row(f"{name} {part}: a whole path shown", float(np.mean(each))) for part, each in found.items()]
        rows += [
            Row(f"{name} schema", float(np.mean(tokens)), "tokens"),
            Row(f"{name} schema", float(np.mean(relations)), "relations"),
        ]
    return rows


RUNS: Mapping[str, tuple[str, Mapping[str, Any], Sequence[Any]]] = {
    "full_cwq": (
        "cwq",
        {
            "path": PathRetriever,
            "query": QueryRetriever,
            "agentic": AgenticRetriever,
            "text": TextRetriever,
            "bfsql": BfsqlRetriever,
        },
        ("entities", "paths", "query", "answers", "bfsql"),
    ),
    **{
        f"scoring_{short}": (
            name,
            {"path": PathRetriever, "query": QueryRetriever, "rerank": RerankRetriever, "text": TextRetriever},
            ("entities", "paths", "query", "answers"),
        )
        for short, name in (("cwq", "cwq"), ("web", "webqsp"))
    },
}
"""The recorded runs: their data set, retrievers and tasks."""


class Recorded:
    """Stands for a language model: gives the recorded replies of a question, in their order, and keeps the prompts."""

    chat_model = None

    def __init__(self, file: Path, questions: Mapping[str, str]) -> None:
        self._replies: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.recorded: dict[str, str] = {}
        """The last prompt of each question as it was."""
        self.shown: dict[str, str] = {}
        """The last prompt of each question now."""
        for record in sorted(read_lines(file), key=lambda record: str(record["recorded"])):
            prompt = record["call"]["messages"][-1]["text"]
            id = questions[prompt.strip().splitlines()[-1].removeprefix("Question: ")]
            self._replies[id, record["stage"]].append(record["reply"]["text"])
            self.recorded[id] = prompt if record["stage"] == "answer" else self.recorded.get(id, "")

    def reply(self, messages: Sequence[Message], *, stage: str, question_id: str, **_: object) -> Reply:
        """Return the next recorded reply; nothing where the run asked less often."""
        self.shown[question_id] = messages[-1].text
        left = self._replies[question_id, stage]
        return Reply(left.pop(0) if left else "")


_NUMBER = re.compile(r"\[e\d+\] ")
_HOP = re.compile(r" (→|←) ")
_QUOTED = re.compile(r'"[^"]*"')

Fact = tuple[str, frozenset[str], str]


def facts_of(line: str) -> Iterator[tuple[str, str, str, bool]]:
    """Yield head, relations, tail of each fact of a line, and whether it goes on from a node with a name."""
    line = _NUMBER.sub("", line, count=1)
    parts = _HOP.split(line)
    table = ": " in parts[0] and len(parts) > 1 and " " not in parts[0].split(": ")[0]
    if table:
        relation, rest = line.split(": ", 1)
        for entry in rest.split(" | "):
            if " → " in entry:
                head, tail = entry.split(" → ", 1)
                yield head, relation, _bare(tail), False
        return
    nodes, hops, arrows = parts[0::4], parts[2::4], parts[1::4]
    for at, (hop, arrow) in enumerate(zip(hops, arrows, strict=True)):
        if at + 1 >= len(nodes):
            return
        ends = nodes[at + 1].split(" | ")
        for start in nodes[at].split(" | "):
            for end in ends:
                ways = (start, end) if arrow == "→" else (end, start)
                yield _bare(ways[0]), hop, _bare(ways[1]), at > 0


def _bare(name: str) -> str:
    return re.sub(r" \[.*\]$", "", name.split("; ")[0])


def evidence_rows(store: QueryableGraph, data: Path, run: str, turned: Mapping[str, str], recorded: bool) -> list[Row]:
    """Put recorded replies in and measure what the last prompt shows of the graph."""
    name, retrievers, tasks = RUNS[run]
    examples = {record["question"].strip(): record for record in read_questions(data / name)}
    model = Recorded(
        data / "llm_replies" / f"{run}.jsonl.xz", {text: example["id"] for text, example in examples.items()}
    )
    pipeline = byokg_pipeline(Parts(store, cast(LanguageModel, model)), retrievers=retrievers, tasks=tasks)
    by_id = {example["id"]: example for example in examples.values()}
    figures: dict[str, list[float]] = defaultdict(list)
    for id in sorted(model.recorded):
        example = by_id[id]
        if not recorded:
            pipeline.run(Question(id, example["question"]))
        text = shown_text(model.recorded[id] if recorded else model.shown[id])
        golds = {normalize_name(answer) for answer in example["answers"]}
        lines = re.split(r"\n(?=\[e\d+\] )", text)
        held = [any(f" {gold} " in f" {normalize_name(line)} " for gold in golds) for line in lines]
        whole = f" {normalize_name(text)} "
        figures["gold answers shown"].append(sum(f" {gold} " in whole for gold in golds))
        figures["questions with one"].append(any(held))
        figures["tokens"].append(estimate_tokens(text))
        figures["lines"].append(len(lines))
        if any(held):
            figures["first line with one among the first five"].append(held.index(True) < 5)
        seen: set[object] = set()
        loops = doubles = hubs = many = 0
        for line in lines:
            if "\n" in line:
                continue  # rows of a query
            hub = False
            for head, relation, tail, goes_on in facts_of(line):
                if "…" in (head, tail):  # a walk whose parts are not told one by one
                    continue
                many += 1
                loops += head == tail
                keys = _keys(head, relation, tail, turned)
                doubles += bool(keys & seen)
                seen |= keys
                hub |= goes_on and _is_hub(store, head, relation)
            hubs += hub
        figures["facts"].append(many)
        figures["facts said again"].append(doubles)
        figures["self loops"].append(loops)
        figures["hub paths"].append(hubs)
    title = f"{run}{' as recorded' if recorded else ''}"
    total = ("gold answers shown", "facts said again", "self loops", "hub paths")
    return [
        Row(f"{title}: {figure}", float(np.sum(each) if figure in total else np.mean(each)))
        for figure, each in figures.items()
    ]


def _keys(head: str, relation: str, tail: str, turned: Mapping[str, str]) -> set[object]:
    """Return what a fact is known by: its relation, the inverse, and both with what they are short for."""
    relation = relation.replace(" / ", "..")
    if re.search(r" \[", relation):
        relation = relation.split(" [")[0]
    back = "..".join(turned.get(part, part) for part in reversed(relation.split("..")))
    return {(head, relation, tail), (tail, back, head)} if head != tail else set()


def _is_hub(store: GraphStore, name: str, relation: str) -> bool:
    try:
        counts = store.relation_counts(store.numbers([EntityId(name)]))
    except Exception:
        return False
    labels = store.relations
    return any(
        labels[number] == relation and count > 100
        for number, count in zip(counts.relation.tolist(), counts.count.tolist(), strict=True)
    )


SHOWN = 0.97
"""Least share of gold properties and values in a first prompt."""

TOKENS = 3000
"""Most tokens of a first prompt of `byokg_lean` on Northwind."""


class FirstPrompt(Exception):
    """The first prompt of a question, in place of a reply to it."""


class Asked:
    """Stands for a language model: raises the first prompt."""

    chat_model = None

    def reply(self, messages: Sequence[Message], **_: object) -> Reply:
        """Raise `FirstPrompt`."""
        raise FirstPrompt("\n".join(message.text for message in messages))


_TYPE_LINE = re.compile(r"(\S.*?) \([\d,]+\)(?:, .*)?")
_RELATION_LINE = re.compile(r"\(.*?\)-\[:?(.+?)\]-")


def shown_properties(schema: str) -> set[tuple[str, str]]:
    """Return the properties in the text of a schema, each with its type or relation."""
    found, type_ = set(), ""
    for line in schema.splitlines():
        if line.startswith("  "):
            found.add((type_, re.split(r"[:,]", line.strip())[0]))
        elif match := _TYPE_LINE.fullmatch(line):
            type_ = match[1]
        elif match := _RELATION_LINE.match(line):
            found |= {(match[1], name) for name in re.findall(r", (\w+): ", line)}
    return found


Gold = tuple[set[tuple[tuple[str, ...], str]], set[str]]
"""Properties with the types or relations that may hold them, and texts that are compared with one."""


def gold_items(store: GraphStore, index: ValueIndex, names: NameIndex, query: str) -> Gold:
    """Return what a query needs of a prompt, as far as the graph holds it."""
    schema = store.schema()
    holders: dict[str, list[str]] = defaultdict(list)
    for type_, properties in schema.node_properties.items():
        for name in properties:
            holders[name].append(type_)
    for relation in schema.relations:
        for name in relation.properties:
            holders[name].append(relation.name)
    used = set()
    for use in parse_cypher(query).properties:
        types = [each for each in use.owner.names or holders[use.name.text] if each in holders[use.name.text]]
        if types:
            used.add((tuple(types), use.name.text))
    texts: set[str] = set()
    for literal in literals_in("cypher", query):
        if literal.comparison == "=" and not literal.number and not literal.edge:
            held = index.find(literal.text, types=literal.types or None, properties=[literal.property])
            texts |= {
                one.value
                for one in held
                if one.exact and isinstance(one.value, str) and (literal.folded or one.value == literal.text)
            }
            if literal.property == "name" and not held:
                owned = store.nodes([store.ids(np.array([each]))[0] for each in names.exact(literal.text).tolist()[:9]])
                texts |= {node.name for node in owned if literal.folded or node.name == literal.text}
    return used, texts


def _section(prompt: str, heading: str) -> str:
    """Return the text below a heading, up to the next one."""
    return prompt.partition(f"\n# {heading}\n")[2].partition("\n# ")[0]


def value_rows(name: str, store: QueryableGraph, records: Sequence[Mapping[str, Any]], show_missing: int) -> list[Row]:
    """Measure the share of properties and values of gold queries in the first prompts, and the tokens of these."""
    parts = Parts(store, cast(LanguageModel, Asked()))
    pipelines: Mapping[str, Loop | Lean] = {
        "cypher": byokg_pipeline(parts, rounds=Rounds(queries=2)),
        "lean": lean_pipeline(parts),
    }
    index, names = value_index(store), name_index(store)
    rows: list[Row] = []
    for short, pipeline in pipelines.items():
        shown: dict[str, list[bool]] = {"properties": [], "values": []}
        tokens = []
        for record in records:
            try:
                properties, texts = gold_items(store, index, names, renamed(record["cypher"], name))
            except Unreadable:
                continue
            try:
                pipeline.run(Question(record["id"], record["question"]))
            except FirstPrompt as prompt:
                text = str(prompt)
            tokens.append(estimate_tokens(text))
            schema, facts = (_section(text, heading) for heading in ("Schema of the graph", "Facts"))
            there = shown_properties(schema)
            missing = [one for one in sorted(properties) if there.isdisjoint((type_, one[1]) for type_ in one[0])]
            unspelt = [
                one
                for one in sorted(texts)
                if f'"{one}"' not in schema and not re.search(rf"(?<!\w){re.escape(one)}(?!\w)", facts)
            ]
            shown["properties"] += [one not in missing for one in sorted(properties)]
            shown["values"] += [one not in unspelt for one in sorted(texts)]
            if (missing or unspelt) and show_missing > 0:
                show_missing -= 1
                print(f"{name} {short} {record['id']} {record['question']}\n  {missing} {unspelt}")
        both = [*shown["properties"], *shown["values"]]
        rows += [
            Row(f"{name} {short}: gold {kind} shown", float(np.mean(each)), f"of {len(each)}")
            for kind, each in (*shown.items(), ("properties and values", both))
        ]
        rows.append(Row(f"{name} {short}: median prompt", float(np.median(tokens)), "tokens"))
    return rows


def property_graph_rows(name: str, data: Path, split: str, count: int, show_missing: int) -> list[Row]:
    """Build the graph of one set, and measure a sample of its questions."""
    records = [one for one in read_questions(data / name) if one.get("cypher") and half_of(one) == split]
    records = random.Random(0).sample(records, min(count, len(records)))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        graph = build_graph(importable(data / name, folder), folder / "graph")
        build_indexes(graph)
        add_engine(folder / "graph", "cypher")
        with ArcadeStore.open(folder / "graph") as store:
            return value_rows(name, store, records, show_missing)


def freebase_rows(data: Path, graph: Path | None, split: str, count: int, part: str) -> list[Row]:
    """Measure schema, evidence, or both, on the part of Freebase."""
    rows: list[Row] = []
    with ExitStack() as stack:
        place = graph
        if place is None:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "full.graph"
            build_graph(data / "freebase_core" / "graph_full.tsv.xz", place)
            add_engine(place, "cypher")
        if part in ("schema", "all"):
            rows += schema_rows(ColumnarGraph.open(place), data, split, count)
        if part in ("evidence", "all"):
            engine = ArcadeStore.open(place)
            stack.callback(engine.close)
            turned: dict[str, str] = {}
            with lzma.open(data / "freebase_ontology" / "inverses.tsv.xz", "rt", encoding="utf-8") as file:
                for one, other in (line.rstrip("\n").split("\t")[:2] for line in file):
                    turned |= {one: other, other: one}
            for run in RUNS:
                for recorded in (True, False):
                    rows += evidence_rows(engine, data, run, turned, recorded)
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--graph", type=Path, help="graph folder with its openCypher engine (default: built)")
    parser.add_argument("--split", choices=("dev", "test"), default="test")
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--part", choices=("schema", "evidence", "values", "all"), default="all")
    parser.add_argument("--show", type=int, default=0, help="questions of each set whose missing items are printed")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    if options.part in ("values", "all"):
        for name in SETS:
            rows += property_graph_rows(name, options.data, options.split, options.questions // 4, options.show)
    if options.part != "values":
        rows += freebase_rows(options.data, options.graph, options.split, options.questions, options.part)
    show(rows, "what a language model is shown", options.json)
    bars = [Bar(row.name, "≥", SHOWN) for row in rows if row.name.endswith("properties and values shown")]
    bars += [Bar(row.name, "≤", TOKENS) for row in rows if row.name == "northwind lean: median prompt"]
    show_bars(rows, bars)


if __name__ == "__main__":
    main()
