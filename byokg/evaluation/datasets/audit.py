"""Checks of questions against their graph before a run: unanswerable questions and faulty records.

Every finding lowers every score over the data set, for all systems alike.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from byokg.errors import QueryFailed
from byokg.evaluation.datasets.base import Example, as_cell
from byokg.evaluation.datasets.benchmarks import first_column
from byokg.evaluation.datasets.folder import holds
from byokg.graph.pathql.evaluate import paths
from byokg.graph.pathql.query import connecting
from byokg.graph.store import GraphStore, QueryLimits, QueryStore
from byokg.graph.traversal import k_hop_edges
from byokg.index.names import NameIndex
from byokg.text.values import read_literal
from byokg.types import Cell, EntityId, NodeCell

NOTHING_FOUND = "the gold query finds nothing"
TOO_MANY = "the gold query finds more rows than the graph's limit"


Graph = Callable[[Example], tuple[GraphStore, NameIndex]]
"""Returns the graph of a question and the names in it."""

KINDS = {
    "unresolved template": "the text still holds a slot such as {tail2}",
    "repeated question": "the same text with the same answers stands further up",
    "contradicting question": "the same text with other answers stands further up",
    "no topic entity": "none is annotated, so granting gold entities gives nothing",
    "topic not in graph": "no annotated topic entity is a node",
    "answer not in graph": "no gold answer is a node, by id or by name",
    "some answers not in graph": "full recall cannot be reached",
    "answer out of reach": "no gold answer is within so many hops of a topic entity, edges walked either way",
}
"""Kinds of findings and their meaning, in listing order."""

_SLOT = re.compile(r"\{\w+\}")
_LOOKED_AT = 5000
"""Nodes whose properties are compared with an answer."""
_TARGETS = 20
"""Gold answers tried for one question; one within reach is enough."""


def with_answer(examples: Sequence[Example], store: GraphStore, names: NameIndex) -> list[Example]:
    """Return the questions with an answer that is a node, by an id of the annotation or by an equal name.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Experimental Setup": MedQA questions "whose answer candidates appear in the
    KG (via entity matching)". Differs: of the candidates, the right one counts, and the name has to be equal.
    """
    return [example for example in examples if any(_answer_nodes(example, store, names))]


@dataclass(frozen=True)
class Executed:
    """Questions whose gold query was run."""

    examples: tuple[Example, ...]
    """Questions whose query returned rows. `rows` hold them; `answers` is the first column: names, and ids for
    nodes."""
    left_out: Mapping[str, int]
    """How many others there are, by reason."""


def execute(examples: Sequence[Example], store: QueryStore, limits: QueryLimits | None = None) -> Executed:
    """Run the gold query of each question and take its result as gold.

    Args:
        examples: questions; those without a query are left out.
        store: executes queries in their language.
        limits: of each query; None takes the store's.

    Raises:
        StoreUnavailable: the store cannot be reached.
    """
    kept, left_out = [], Counter[str]()
    for example in examples:
        if not example.query:
            left_out["no gold query"] += 1
            continue
        try:
            found = store.run(example.query, limits=limits)
        except QueryFailed as error:
            left_out[f"the gold query fails ({type(error).__name__})"] += 1
            continue
        if found.truncated:
            left_out[TOO_MANY] += 1
            continue
        first = [row[0] for row in found.rows if row]
        nodes = dict.fromkeys(cell.id for cell in first if isinstance(cell, NodeCell))
        answers = first_column([(cell.name,) if isinstance(cell, NodeCell) else (cell,) for cell in first])
        if answers:
            rows = tuple(tuple(map(_convert_cell, row)) for row in found.rows)
            kept.append(replace(example, rows=rows, row_count=len(rows), answers=answers, answer_ids=tuple(nodes)))
        else:
            left_out[NOTHING_FOUND] += 1
    return Executed(tuple(kept), dict(sorted(left_out.items())))


def _convert_cell(cell: Cell) -> Cell:
    """Return a cell as JSON holds it: nodes and edges become mappings of their fields."""
    return as_cell(json.loads(json.dumps(cell, default=_fields)))


def _fields(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return dict(value) if isinstance(value, Mapping) else str(value)


@dataclass(frozen=True)
class Audit:
    """Number of questions checked, and findings."""

    questions: int
    by_split: Mapping[str, int]
    by_type: Mapping[str, int]
    left_out: Mapping[str, int]
    """Questions of the file that are not among those, by reason."""
    findings: Mapping[str, tuple[str, ...]]
    """Ids of the questions, by kind; kinds without any are missing."""
    max_hops: int
    graph: bool
    """Whether the graph was looked at."""


def audit(
    examples: Sequence[Example],
    graph: Graph | None = None,
    max_hops: int = 3,
    left_out: Mapping[str, int] | None = None,
) -> Audit:
    """Check all questions against their graph.

    Answers that are times (`answer_type`) or come from a gold query are no nodes and are not searched. Numbers and
    dates without an id that match no node are computed answers and are not searched either. Other texts without an id
    may be property values within reach of a topic entity.

    Args:
        examples: the questions.
        graph: of each question; None skips findings about the graph.
        max_hops: largest distance of an answer from a topic entity.
        left_out: examples that the data set excluded, by reason.
    """
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    texts: dict[str, frozenset[str]] = {}
    for example in examples:
        if _SLOT.search(example.question):
            found["unresolved template"].append(example.id)
        text, answers = " ".join(example.question.casefold().split()), frozenset(example.answers)
        if text in texts:
            kind = "repeated question" if texts[text] == answers else "contradicting question"
            found[kind].append(example.id)
        texts.setdefault(text, answers)
        if not example.topic_ids:
            found["no topic entity"].append(example.id)
        if graph is not None:
            for kind in _in_graph(example, *graph(example), max_hops):
                found[kind].append(example.id)
    return Audit(
        questions=len(examples),
        by_split=dict(Counter(example.split for example in examples if example.split)),
        by_type=dict(Counter(example.type for example in examples if example.type)),
        left_out=left_out or {},
        findings={kind: tuple(ids) for kind, ids in found.items() if ids},
        max_hops=max_hops,
        graph=graph is not None,
    )


def _in_graph(example: Example, store: GraphStore, names: NameIndex, max_hops: int) -> list[str]:
    """Return the kinds of findings about the graph for one question."""
    kinds = []
    topics = [id for id in example.topic_ids if holds(store, (id,))]
    if example.topic_ids and not topics:
        kinds.append("topic not in graph")
    if example.answer_type == "time" or (example.query and not example.answer_ids):
        return kinds
    nodes = _answer_nodes(example, store, names)
    present = [each for each in nodes if each]
    if not present:
        worked_out = not example.answer_ids and all(map(is_value, example.answers))
        told = not example.answer_ids and not _collect_property_texts(store, topics, max_hops).isdisjoint(
            example.answers
        )
        return kinds if worked_out or told else [*kinds, "answer not in graph"]
    if len(present) < len(nodes):
        kinds.append("some answers not in graph")
    targets = list(dict.fromkeys(id for each in present for id in each))[:_TARGETS]
    if topics and not paths(store, connecting(topics, targets, max_hops=max_hops)):
        kinds.append("answer out of reach")
    return kinds


def _collect_property_texts(store: GraphStore, topics: Sequence[EntityId], max_hops: int) -> set[str]:
    """Return the texts of the properties of nodes within reach; their properties are the last step."""
    near = k_hop_edges(store, topics, max_hops - 1, per_hop_cap=_LOOKED_AT).edges
    ends = store.ids(np.unique(np.concatenate((near.head, near.tail)))[:_LOOKED_AT])
    return {str(value) for node in store.nodes(list({*topics, *ends})) for value in node.properties.values()}


def is_value(answer: str) -> bool:
    """True if an answer is a number or a date."""
    read = read_literal(answer)
    return read is not None and read.kind != "id"


def _answer_nodes(example: Example, store: GraphStore, names: NameIndex) -> list[list[EntityId]]:
    """Return the nodes that each gold answer means: by id if the set gives ids, else by an equal name."""
    by_id = [[id] if holds(store, (id,)) else [] for id in example.answer_ids]
    return by_id if any(by_id) else [store.ids(names.exact(name)) for name in example.answers]
