"""`byokg` and `text2cypher`: the figures of ByoKG-RAG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields

from byokg.evaluation.cases import Case
from byokg.evaluation.metrics import normalise
from byokg.evaluation.profiles.base import Metric, Profile
from byokg.types import NodeCell

_NODE = frozenset(field.name for field in fields(NodeCell))
"""What a node in a result is recorded with (`requirements.executed`)."""


def _byokg(case: Case) -> tuple[float, ...]:
    gold = set(map(normalise, case.gold))
    hit = any(normalise(answer) in gold for answer in case.answers)
    either = any(normalise(answer) in gold for answer in (*case.answers[:1], *case.drafts[:1]))
    return float(hit), float(either)


def _value(value: object) -> str:
    """Return a form in which a number in a row equals the same number written in an answer."""
    text = str(value)
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return normalise(text)


def _values(cells: Iterable[object]) -> Iterator[object]:
    """Yield the values in rows, from within lists and maps; a node is its name, and a missing value is none."""
    for cell in cells:
        if isinstance(cell, Mapping) and cell.keys() == _NODE:
            yield cell["name"]
        elif isinstance(cell, Mapping):
            yield from _values(cell.values())
        elif isinstance(cell, list | tuple):
            yield from _values(cell)
        elif cell is not None:
            yield cell


def _text2cypher(case: Case) -> tuple[float, ...]:
    gold = set(map(_value, _values(case.rows)))
    said = set(map(_value, case.answers))
    return 1.0 if said == gold else 0.5 * bool(said & gold), float(said == gold)


def _has_rows(case: Case) -> bool:
    return any(True for _ in _values(case.rows))


BYOKG = Profile(
    name="byokg",
    source='ByoKG-RAG (arXiv:2507.04127v1), "Metrics"',
    metrics=(
        Metric("hit", "any answer equals a gold answer once both are normalised"),
        # Differs: the paper adds the original prediction to the answer; of lists, the first of each is taken, so that
        # there are two.
        Metric("h@2", "the first answer, or the first that the model gave without the graph, equals a gold answer"),
    ),
    score=_byokg,
)

TEXT2CYPHER = Profile(
    name="text2cypher",
    # Differs: the paper has a language model judge; this compares the values, and `judge` asks one.
    source='ByoKG-RAG (arXiv:2507.04127v1), "Metrics" (Text2Cypher)',
    metrics=(
        Metric("graded", "1 where the answers are the values of the gold rows, 0.5 where some are, else 0"),
        Metric("em", "the answers are the values of the gold rows"),
    ),
    score=_text2cypher,
    scorable=_has_rows,
    needs="rows of the gold query",
)
