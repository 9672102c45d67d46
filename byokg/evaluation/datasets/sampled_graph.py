"""A graph as a generator of questions reads it: edges to begin with, nodes that can be named, and bounded steps.

`execute` runs the gold queries of a generated test set; `testset` defines `query` and `reduce`.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

from byokg.arrays import Int64
from byokg.evaluation.datasets.phrasing import RelationStep
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.name_indexes import name_index
from byokg.graph.pathql.evaluate import paths
from byokg.graph.store import Direction, EdgeBatch
from byokg.text.names import fold_words, is_identifier, split_label, split_words
from byokg.text.values import is_wordless, read_literal
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


Triples = tuple[tuple[str, str, str], ...]

MOST_SUPPORT = 60
"""Triples behind one question at most."""
POOLED_OF_ONE = 512
"""Edges of one relation drawn to begin with at most."""
UNQUOTED = frozenset('<>{}|\\^`\n"')
"""Characters that a path query cannot hold within angle brackets."""

_HUB_AT_LEAST, _HUB_SHARE = 200, 0.001
"""A hub has more edges than this, and than all but this share of the nodes."""
_WALKED = 2000
"""Edges of one step at most."""
_POOLED = 1 << 19
"""Edges of all relations drawn to begin with."""
_EDGES_AT_ONCE = 1 << 22
_LONGEST = 60
"""Characters of a name at most."""
_NOT_ASKED = ("common.", "base.", "type.", "freebase.", "user.", "kg.", "rdf:", "rdfs:", "owl:", "http://www.w3.org/")
"""Prefixes of administrative relations, which hold no facts about the world."""

T = TypeVar("T")


class SampledGraph:
    """A graph with edges drawn from each relation.

    The edges are read once, in pieces, to draw start edges; after that only the neighbourhoods of drawn edges are read,
    so time depends on the number of questions and hardly on the graph.

    Args:
        graph: the graph.
        draw: source of all draws.
    """

    def __init__(self, graph: ColumnarGraph, draw: random.Random) -> None:
        self.graph = graph
        self.draw = draw
        self._names = name_index(graph)
        index = graph.topology
        self.degree = np.diff(index.out_index) + np.diff(index.in_index)
        rank = min(len(self.degree) - 1, int(len(self.degree) * (1 - _HUB_SHARE)))
        self._hub = max(_HUB_AT_LEAST, int(np.partition(self.degree, rank)[rank])) if len(self.degree) else 0
        self.pool = self._pooled()
        self.used: Counter[int] = Counter()
        """How often each relation is part of a pattern."""
        self._mirrors: dict[tuple[int, int], bool] = {}
        self.name = cache(lambda node: graph.nodes(graph.ids(np.array([node])))[0].name)

    def pick(self, choice: Sequence[T]) -> T:
        """Draw one of several."""
        return choice[int(self.draw.random() * len(choice))]

    # Beginnings

    def _pooled(self) -> dict[int, Int64]:
        """Draw edges of each relation, by its number."""
        _, relation, _ = self.graph.outgoing
        labels = len(self.graph.relations)
        starts = range(0, len(relation), _EDGES_AT_ONCE)
        counts = [np.bincount(relation[at : at + _EDGES_AT_ONCE], minlength=labels) for at in starts]
        total = sum(counts, np.zeros(labels, np.int64))
        most = max(16, min(POOLED_OF_ONE, _POOLED // max(labels, 1)))
        ranks = [sorted({int(self.draw.random() * n) for _ in range(most)}) if n else [] for n in total.tolist()]
        of = np.repeat(np.arange(labels), [len(each) for each in ranks])
        rank = np.array([one for each in ranks for one in each], np.int64)
        edges = np.zeros(len(of), np.int64)
        before = np.zeros(labels, np.int64)
        for at, count in zip(starts, counts, strict=True):
            order = np.argsort(relation[at : at + _EDGES_AT_ONCE], kind="stable")
            local = rank - before[of]
            here = (local >= 0) & (local < count[of])
            edges[here] = at + order[(count.cumsum() - count)[of[here]] + local[here]]
            before += count
        first = np.searchsorted(of, np.arange(labels + 1)).tolist()
        return {number: edges[first[number] : first[number + 1]] for number in range(labels) if ranks[number]}

    def askable(self, relation: int) -> bool:
        """True if questions may be about a relation."""
        label = self.graph.relations[relation]
        return not label.startswith(_NOT_ASKED) and not UNQUOTED & set(label)

    def begin(self, among: Sequence[int]) -> tuple[int, int, int] | None:
        """Draw an edge of one of some relations that was used least: head, relation, tail."""
        if not among:
            return None
        relation = min([self.pick(among) for _ in range(8)], key=lambda r: (self.used[r], r))
        head, tail = self.ends(self.pool[relation][[int(self.draw.random() * len(self.pool[relation]))]])
        return int(head[0]), relation, int(tail[0])

    def ends(self, edges: Int64) -> tuple[Int64, Int64]:
        """Return the heads and tails of edges."""
        bounds, _, tails = self.graph.outgoing
        return np.searchsorted(bounds, edges, "right") - 1, tails[edges].astype(np.int64)

    # Nodes that may be named

    def ids(self, nodes: Collection[int]) -> list[EntityId]:
        """Return the ids of nodes."""
        return self.graph.ids(np.array(list(nodes), np.int64))

    def is_hub(self, node: int) -> bool:
        """True if a node has too many edges to be asked about."""
        return bool(self.degree[node] > self._hub)

    def nameless(self, node: int) -> bool:
        """True if a node has no name that a question can hold."""
        name = self.name(node)
        unfit = not name.strip() or is_identifier(name) or len(name) > _LONGEST or not name.isprintable()
        return unfit or bool(UNQUOTED & set(name))

    def is_topic(self, node: int) -> bool:
        """True if a question may name this node: its name is unique and it is no hub."""
        name = self.name(node)
        if self.is_hub(node) or self.nameless(node) or is_wordless(name) or read_literal(name):
            return False
        return len(self._names.exact(name)) == 1

    def is_answer(self, node: int) -> bool:
        """True if a node can be an answer."""
        return not self.is_hub(node) and not self.nameless(node)

    def contains_answer(self, text: str, answers: Collection[int]) -> bool:
        """True if the question contains an answer."""
        words = f" {' '.join(fold_words(text))} "
        return any(f" {' '.join(fold_words(self.name(node)))} " in words for node in answers)

    # Walks

    def relation(self, number: int, inverse: bool) -> RelationStep:
        """Return the step along a relation."""
        return RelationStep(number, self.graph.relations[number], inverse)

    def relations_at(self, node: int) -> list[tuple[int, bool]]:
        """Return the relations of a node, each with True if the node is its tail."""
        counts = self.graph.relation_counts(np.array([node]))
        return list(zip(counts.relation.tolist(), counts.inverse.tolist(), strict=True))

    def step(self, nodes: Collection[int], step: RelationStep) -> EdgeBatch | None:
        """Return the edges of one step, or None if there are too many to answer for."""
        numbers = np.array(sorted(nodes), np.int64)
        if not len(numbers) or int(self.degree[numbers].sum()) > 50 * _WALKED:
            return None
        direction = Direction.IN if step.inverse else Direction.OUT
        batch = self.graph.edges(numbers, direction, np.array([step.number]))
        return batch if len(batch) <= _WALKED else None

    def walk(self, start: int, steps: Sequence[RelationStep]) -> list[EdgeBatch] | None:
        """Return the edges of each step; None if one leads nowhere, or has too many."""
        layers, nodes = [], {start}
        for step in steps:
            batch = self.step(nodes, step)
            if batch is None or not len(batch):
                return None
            layers.append(batch)
            nodes = set(batch.other.tolist())
        return layers

    def support(self, layers: Sequence[EdgeBatch], ends: set[int]) -> Triples:
        """Return the triples on the way to some ends, the first step first."""
        kept: list[tuple[int, int, int]] = []
        for batch in reversed(layers):
            rows = [i for i, other in enumerate(batch.other.tolist()) if other in ends][: MOST_SUPPORT + 1]
            kept[:0] = [(int(batch.head[i]), int(batch.relation[i]), int(batch.tail[i])) for i in rows]
            ends = {int((batch.tail if batch.inverse[i] else batch.head)[i]) for i in rows}
        return self.spelled(kept)

    def spelled(self, edges: Sequence[tuple[int, int, int]]) -> Triples:
        """Return edges as ids and labels, each once."""
        edges = list(dict.fromkeys(edges))
        heads, tails = self.ids([e[0] for e in edges]), self.ids([e[2] for e in edges])
        return tuple(zip(heads, [self.graph.relations[e[1]] for e in edges], tails, strict=True))

    def note(self, steps: Collection[RelationStep]) -> tuple[str, ...]:
        """Count the relations of a pattern as used, and return their labels."""
        self.used.update(step.number for step in steps)
        return tuple(dict.fromkeys(step.label for step in steps))

    def are_inverse(self, one: RelationStep, two: RelationStep) -> bool:
        """True if two relations walked in the same direction are inverses."""
        if one.inverse != two.inverse:
            return False
        key = (min(one.number, two.number), max(one.number, two.number))
        if key not in self._mirrors:
            heads, tails = self.ends(self.pool[key[0]][:20])
            back = self.graph.edges(tails, Direction.OUT, np.array([key[1]]))
            pairs = set(zip(back.head.tolist(), back.tail.tolist(), strict=True))
            met = sum((t, h) in pairs for h, t in zip(heads.tolist(), tails.tolist(), strict=True))
            self._mirrors[key] = 2 * met > len(heads)
        return self._mirrors[key]
