"""Execution of the gold queries of a generated test set; `testset` defines `query` and `reduce`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.pathql.evaluate import paths
from byokg.text.labels import split_label
from byokg.text.names import split_words
from byokg.text.values import read_literal
from byokg.types import EntityId, Value

_NOT_COMPARED = frozenset("id ids iso isbn issn code key identifier phone zip latitude longitude".split())
DATED = frozenset("start end begin since until from to year date time".split())
"""Words in names of temporal edge properties."""


@dataclass(frozen=True)
class Measure:
    """Source of comparable values of nodes: a relation to numbers or dates, or a property."""

    label: str
    dated: bool
    relation: int | None
    """None for a property."""


def execute(graph: ColumnarGraph, query: str, reduce: str) -> tuple[str, ...]:
    """Return the result of a gold query of a test set: ids of nodes ascending, or the count.

    Raises:
        PathQueryInvalid, EntityNotFound, RelationNotFound: as `paths` does.
    """
    at_end = " END ?answer" in query
    found: dict[str, list[Value]] = defaultdict(list)
    for path in paths(graph, query):
        bound = path.bindings.get("value") or (path.edges[0].bindings.get("value") if path.edges else None)
        other = path.start if at_end else path.end
        value = bound.value if bound else graph.nodes([EntityId(other)])[0].name if reduce != "ends" else ""
        found[path.end if at_end else path.start].append(value)
    if reduce == "count":
        return (str(len(found)),)
    if reduce == "ends":
        return tuple(sorted(found))
    return tuple(sorted(select_keys({id: comparable(max(map(str, values))) for id, values in found.items()}, reduce)))


def select_keys(values: Mapping[Any, float], reduce: str) -> list[Any]:
    """Return the keys whose values are the greatest or least, or after or before a year."""
    word, _, year = reduce.partition(" ")
    if word in ("greatest", "least"):
        best = (max if word == "greatest" else min)(values.values(), default=0.0)
        return [key for key, value in values.items() if value == best]
    if word == "after":
        return [key for key, value in values.items() if value >= int(year) + 1]
    return [key for key, value in values.items() if value < int(year)]


def comparable(text: str) -> float:
    """Return a number, or a date as the year with a fraction for month and day; NaN for anything else."""
    try:
        return float(text)
    except ValueError:
        pass
    read = read_literal(text)
    if read is None or read.kind in ("id", "decade"):
        return float("nan")
    if read.kind == "date":
        year, month, day = (*str(read.value).split("-"), "1", "1")[:3]
        return int(year) + (int(month) * 32 + int(day)) / 512
    return float(read.value)


def comparable_label(label: str) -> bool:
    """True if values of this label can be ordered meaningfully: False for an ISBN or a calling code."""
    words = set(split_words(split_label(label).replace("_", " ")))
    return not words & _NOT_COMPARED
