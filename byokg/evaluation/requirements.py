"""What a question may have to fulfil to be asked, which only the graph can tell."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from byokg.errors import EntityNotFound, QueryFailed
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.question_line import as_cell
from byokg.evaluation.datasets.text2cypher import first_column
from byokg.graph.query import Limits, QueryStore
from byokg.graph.store import GraphStore
from byokg.index.names import NameIndex
from byokg.types import Cell, EntityId, NodeCell

NOTHING_FOUND = "the gold query finds nothing"
TOO_MANY = "the gold query finds more rows than the graph's limit"


def with_answer(examples: Sequence[Example], store: GraphStore, names: NameIndex) -> list[Example]:
    """Return the questions with an answer that is a node, by an id of the annotation or by an equal name.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Experimental Setup": MedQA questions "whose answer candidates appear in the
    KG (via entity matching)". Differs: of the candidates, the right one counts, and the name has to be equal.
    """
    return [
        example
        for example in examples
        if any(holds(store, id) for id in example.answer_ids) or any(len(names.exact(name)) for name in example.answers)
    ]


@dataclass(frozen=True)
class Executed:
    """Questions whose gold query was run."""

    examples: tuple[Example, ...]
    """Those whose query found something, with what it found as `rows`, and its first column as `answers`: names and ids
    where it holds nodes."""
    left_out: Mapping[str, int]
    """How many others there are, by reason."""


def executed(examples: Sequence[Example], store: QueryStore, limits: Limits | None = None) -> Executed:
    """Run the gold query of each question, and take what it finds as gold.

    Args:
        examples: those without a query are left out.
        store: reads queries in the language they are written in.
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
            rows = tuple(tuple(map(_plain, row)) for row in found.rows)
            kept.append(replace(example, rows=rows, answers=answers, answer_ids=tuple(nodes)))
        else:
            left_out[NOTHING_FOUND] += 1
    return Executed(tuple(kept), dict(sorted(left_out.items())))


def holds(store: GraphStore, id: EntityId) -> bool:
    """Tell whether a graph has a node of this id."""
    try:
        store.numbers((id,))
    except EntityNotFound:
        return False
    return True


def _plain(cell: Cell) -> Cell:
    """Return a cell as JSON holds it: nodes and edges become mappings of their fields."""
    return as_cell(json.loads(json.dumps(cell, default=_fields)))


def _fields(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return dict(value) if isinstance(value, Mapping) else str(value)
