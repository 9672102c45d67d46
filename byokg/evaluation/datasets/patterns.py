"""Question patterns sampled from a graph: walks, constraints, counts, superlatives, comparisons, each with its gold.

`testset` defines gold queries and `reduce`.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeVar, get_args

import numpy as np

from byokg.arrays import Int64
from byokg.evaluation.datasets.phrasing import Phrases, RelationStep
from byokg.evaluation.datasets.sampled_graph import (
    DATED,
    MOST_SUPPORT,
    POOLED_OF_ONE,
    UNQUOTED,
    Measure,
    SampledGraph,
    Triples,
    comparable,
    comparable_label,
    execute,
    select_keys,
)
from byokg.graph.columnar.folder import BATCH_ROWS
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.store import Direction, EdgeBatch
from byokg.text.names import split_words
from byokg.text.values import read_literal

Kind = Literal[
    "1-hop", "2-hop", "3-hop", "conjunction", "count", "superlative", "comparison", "temporal", "unanswerable"
]
KINDS: tuple[Kind, ...] = get_args(Kind)

MOST_ANSWERS = 10
"""Answers of a question at most; of one that counts, twice as many."""
_VALUED = 0.9
"""Share of a relation's tails that are numbers or dates, from which it gives its heads a value."""


@dataclass(frozen=True)
class Pattern:
    """A question before it has words."""

    kind: Kind
    query: str
    reduce: str
    topics: tuple[int, ...]
    answers: tuple[int, ...]
    """Node numbers; none for a count and for an unanswerable question."""
    support: Triples
    hops: int
    relations: tuple[str, ...]
    texts: tuple[str, ...]
    """The question in other words each time."""
    count: int | None = None


class _Unfit(Exception):
    """A draw that gives no question."""


Found = TypeVar("Found")


def _need(fit: bool) -> None:
    if not fit:
        raise _Unfit


def _given(found: Found | None) -> Found:
    if found is None:
        raise _Unfit
    return found


class Measures:
    """Relations and properties that give nodes a number or a date.

    Args:
        view: the graph.
        relations: those that questions may be about.
    """

    def __init__(self, view: SampledGraph, relations: Sequence[int]) -> None:
        self._view = view
        self._all = [*self._relations(relations), *self._properties()]
        self.dates = [measure.label for measure in self._all if measure.dated]
        self.relations = {measure.relation for measure in self._all if measure.relation is not None}
        self._used: Counter[str] = Counter()
        self._bearers: dict[str, list[int]] = {}

    def _relations(self, relations: Sequence[int]) -> list[Measure]:
        found = []
        for relation in relations:
            label = self._view.graph.relations[relation]
            if not comparable_label(label):
                continue
            _, tails = self._view.ends(self._view.pool[relation][:50])
            kinds = [read.kind if (read := read_literal(self._view.name(t))) else "" for t in tails.tolist()]
            if sum(kind in ("date", "year", "number") for kind in kinds) >= _VALUED * len(kinds):
                dated = sum(kind in ("date", "year") for kind in kinds) >= _VALUED * len(kinds)
                found.append(Measure(label, dated or "date" in label or "year" in label, relation))
        return found

    def _properties(self) -> list[Measure]:
        found = []
        for column in self._view.graph.node_columns[1].columns():
            kind = str(column.values.type)
            if kind.startswith(("int", "double", "float", "date")) and comparable_label(column.name):
                dated = "year" in column.name or "date" in column.name or kind.startswith("date")
                found.append(Measure(column.name, dated, None))
        return found

    def draw(self, dated: bool | None = None) -> Measure | None:
        """Draw one that was used least; only of dates, or of numbers, if that is given."""
        choice = [measure for measure in self._all if dated is None or measure.dated == dated]
        if not choice:
            return None
        return min([self._view.pick(choice) for _ in range(4)], key=lambda m: (self._used[m.label], m.label))

    def note(self, measure: Measure) -> None:
        """Count it as used."""
        self._used[measure.label] += 1

    def bearer(self, measure: Measure) -> int | None:
        """Draw a node that has the value."""
        if measure.relation is not None:
            begun = self._view.begin([measure.relation])
            return begun[0] if begun else None
        if measure.label not in self._bearers:
            column = self._view.graph.node_columns[1].column(measure.label)
            known = np.empty(0, np.int64) if column is None else column.held()[0]
            self._bearers[measure.label] = known[:: max(1, len(known) // POOLED_OF_ONE)].tolist()
        bearers = self._bearers[measure.label]
        return self._view.pick(bearers) if bearers else None

    def values(self, nodes: Sequence[int], measure: Measure) -> dict[int, float] | None:
        """Return the value of each node; None if a node has several values, or one that is neither number nor date."""
        found: dict[int, float] = {}
        if measure.relation is None:
            for node, record in zip(nodes, self._view.graph.nodes(self._view.ids(nodes)), strict=True):
                value = record.properties.get(measure.label)
                if value is not None:
                    found[node] = comparable(str(value))
        else:
            for head, _, tail in self._edges(nodes, measure):
                if head in found:
                    return None
                found[head] = comparable(self._view.name(tail))
        return found if len(found) > 1 and all(v == v for v in found.values()) else None

    def support(self, nodes: Collection[int], measure: Measure) -> Triples:
        """Return the triples that give nodes their values."""
        return self._view.spelled(self._edges(nodes, measure))

    def _edges(self, nodes: Collection[int], measure: Measure) -> list[tuple[int, int, int]]:
        if measure.relation is None:
            return []
        batch = self._view.step(nodes, self._view.relation(measure.relation, False))
        return (
            list(zip(batch.head.tolist(), batch.relation.tolist(), batch.tail.tolist(), strict=True)) if batch else []
        )


class Sampler:
    """Samples patterns from a graph, with about equally many for each relation."""

    def __init__(self, graph: ColumnarGraph, seed: int = 0) -> None:
        self._graph = graph
        self._draw = random.Random(seed)
        self._view = view = SampledGraph(graph, self._draw)
        relations = [r for r in sorted(view.pool) if view.askable(r)]
        self._measures = Measures(view, relations)
        self.phrases = Phrases(graph.schema(), self._measures.dates)
        unsaid = {r for r in relations if not self.phrases.sayable(graph.relations[r])}
        view.pool = {r: edges for r, edges in view.pool.items() if r not in unsaid}
        self._asked = [r for r in relations if r not in unsaid]
        self._dated = self._found_dated()
        self._makers: dict[Kind, Callable[[], Pattern]] = {
            "1-hop": lambda: self._chain("1-hop", 1),
            "2-hop": lambda: self._chain("2-hop", 2),
            "3-hop": lambda: self._chain("3-hop", 3),
            "conjunction": self._conjunction,
            "count": self._count,
            "superlative": lambda: self._by_value("superlative"),
            "comparison": self._comparison,
            "temporal": self._temporal,
            "unanswerable": self._unanswerable,
        }

    def pattern(self, kind: Kind) -> Pattern | None:
        """Draw one pattern, or None if this draw gave no question."""
        try:
            found = self._makers[kind]()
            _need(len(found.support) <= MOST_SUPPORT)
        except _Unfit:
            return None
        view = self._view
        texts = tuple(
            text for text in found.texts if kind == "comparison" or not view.contains_answer(text, found.answers)
        )
        ids = view.ids(found.answers)
        if not texts or any(UNQUOTED & set(each) for each in (*ids, *view.ids(found.topics))):
            return None
        wanted = (str(found.count),) if found.count is not None else tuple(sorted(ids))
        # The walk's ends are gold only if the engine returns the same for the written query.
        return replace(found, texts=texts) if execute(self._graph, found.query, found.reduce) == wanted else None

    def _found_dated(self) -> list[tuple[str, Int64]]:
        """Return temporal edge properties, with edges that have them."""
        found: dict[str, list[Int64]] = defaultdict(list)
        for number, batch in enumerate(self._graph.edge_columns):
            for name in batch.schema.names:
                if set(split_words(name.replace("_", " "))) & DATED and name.isidentifier():
                    known = np.flatnonzero(batch.column(name).is_valid()) + number * BATCH_ROWS
                    found[name].append(known[:: max(1, len(known) // POOLED_OF_ONE)])
        return [(name, edges) for name, parts in found.items() if len(edges := np.concatenate(parts))]

    # Parts of patterns

    def _further(self, node: int, last: RelationStep | None) -> RelationStep:
        """Draw a relation that leads on from a node, but for the way back."""
        view = self._view
        _need(not view.is_hub(node))
        valued = read_literal(view.name(node)) is not None
        choice = [
            (view.used[r], r, back)
            for r, back in view.relations_at(node)
            if r in view.pool
            and view.askable(r)
            and (last is None or (r, back) != (last.number, not last.inverse))
            and not (back and (r in self._measures.relations or view.nameless(node) or valued))
        ]
        _need(bool(choice))
        _, relation, back = min([view.pick(choice) for _ in range(3)])
        return view.relation(relation, back)

    def _ways(self, start: int, step: RelationStep) -> list[EdgeBatch]:
        """Return the edges of one step from a node that a question may name, if there are some, and not too many."""
        _need(self._view.is_topic(start))
        return _given(self._view.walk(start, [step]))

    def _query(self, start: int, steps: Sequence[RelationStep], condition: str = "", via: str = "") -> str:
        """Return the path query of some steps from a node, with a condition on the answer."""
        (topic,) = self._view.ids([start])
        via = via or "/".join(f"{'^' * step.inverse}<{step.label}>" for step in steps)
        return f"PATHS WALK START ?x = <{topic}> END ?answer {condition}VIA {via} MAX LENGTH 1"

    def _extreme(self) -> str:
        return "greatest" if self._draw.random() < 0.5 else "least"

    def _year(self, values: Mapping[int, float]) -> str:
        """Draw a year that parts some values from others."""
        years = sorted({int(value) for value in values.values()})
        _need(len(years) > 1 and all(0 < year < 3000 for year in years))
        place = int(self._draw.random() * (len(years) - 1))
        return f"after {years[place]}" if self._draw.random() < 0.5 else f"before {years[place + 1]}"

    # Patterns

    def _chain(self, kind: Kind, hops: int) -> Pattern:
        view = self._view
        head, relation, tail = _given(view.begin(self._asked))
        inverse = self._draw.random() < 0.5 and relation not in self._measures.relations
        start, at = (tail, head) if inverse else (head, tail)
        _need(view.is_topic(start))
        steps = [view.relation(relation, inverse)]
        while len(steps) < hops:
            further = self._further(at, steps[-1])
            batch = _given(view.step([at], further))
            _need(len(batch) > 0)
            at = view.pick(batch.other.tolist())
            steps.append(further)
        layers = _given(view.walk(start, steps))
        _need(len({(s.label, s.inverse) for s in steps}) == len(steps))
        ends = sorted(set(layers[-1].other.tolist()))
        _need(1 <= len(ends) <= MOST_ANSWERS and start not in ends and all(map(view.is_answer, ends)))
        _need(not any(view.are_inverse(a, b) for a, b in pairwise(steps)))
        support, relations = view.support(layers, set(ends)), view.note(steps)
        texts = self.phrases.chain(view.name(start), steps, len(ends))
        query = self._query(start, steps)
        return Pattern(kind, query, "ends", (start,), tuple(ends), support, hops, relations, texts)

    def _conjunction(self) -> Pattern:
        view = self._view
        head, relation, tail = _given(view.begin(self._asked))
        inverse = self._draw.random() < 0.5
        first = view.relation(relation, inverse)
        start, target = (tail, head) if inverse else (head, tail)
        _need(view.is_topic(start) and view.is_answer(target))
        # The second way to the target, seen from the target.
        back = self._further(target, None)
        _need(back.number not in self._measures.relations or not back.inverse)
        second = replace(back, inverse=not back.inverse)
        others = [n for n in dict.fromkeys(_given(view.step([target], back)).other.tolist()) if n != start]
        _need(bool(others))
        other = view.pick(others)
        _need(view.is_topic(other))
        left, right = _given(view.walk(start, [first])), _given(view.walk(other, [second]))
        here, there = set(left[0].other.tolist()), set(right[0].other.tolist())
        both = here & there
        _need(1 <= len(both) <= MOST_ANSWERS and len(both) not in (len(here), len(there)))
        _need(both.isdisjoint((start, other)) and all(map(view.is_answer, both)))
        (two,) = view.ids([other])
        third = f"?answer <{second.label}> <{two}>" if second.inverse else f"<{two}> <{second.label}> ?answer"
        query = self._query(start, [first], f"{{ {third} }} ")
        support = tuple(dict.fromkeys((*view.support(left, both), *view.support(right, both))))
        texts = self.phrases.conjunction((view.name(start), first), (view.name(other), second), len(both))
        relations, topics = view.note((first, second)), (start, other)
        return Pattern("conjunction", query, "ends", topics, tuple(sorted(both)), support, 1, relations, texts)

    def _count(self) -> Pattern:
        view = self._view
        begun = view.begin([r for r in self._asked if r not in self._measures.relations])
        head, relation, tail = _given(begun)
        inverse = self._draw.random() < 0.5
        start, step = (tail if inverse else head), view.relation(relation, inverse)
        layers = self._ways(start, step)
        ends = set(layers[0].other.tolist())
        _need(2 <= len(ends) <= 2 * MOST_ANSWERS and start not in ends and not any(map(view.nameless, ends)))
        texts, support = self.phrases.count(view.name(start), step), view.support(layers, ends)
        query = self._query(start, [step])
        return Pattern("count", query, "count", (start,), (), support, 1, view.note([step]), texts, len(ends))

    def _by_value(self, kind: Literal["superlative", "temporal"]) -> Pattern:
        view, measures = self._view, self._measures
        measure = _given(measures.draw(True if kind == "temporal" else None))
        node = _given(measures.bearer(measure))
        back = self._further(node, None)
        _need(back.number not in measures.relations)
        batch = _given(view.step([node], back))
        _need(len(batch) > 0)
        start, step = view.pick(batch.other.tolist()), replace(back, inverse=not back.inverse)
        layers = self._ways(start, step)
        ends = sorted(set(layers[0].other.tolist()))
        _need(2 <= len(ends) <= 4 * MOST_ANSWERS and start not in ends)
        values = _given(measures.values(ends, measure))
        reduce = self._extreme() if kind == "superlative" else self._year(values)
        answers = sorted(select_keys(values, reduce))
        most = 1 if kind == "superlative" else MOST_ANSWERS
        _need(1 <= len(answers) <= min(most, len(values) - 1) and all(map(view.is_answer, answers)))
        if measure.relation is None:
            query = self._query(start, [step], f"{{ ?answer <{measure.label}> ?value }} ")
        else:
            (topic,) = view.ids([start])
            third = f"?answer <{step.label}> <{topic}>" if step.inverse else f"<{topic}> <{step.label}> ?answer"
            query = f"PATHS WALK START ?answer {{ {third} }} END ?value VIA <{measure.label}> MAX LENGTH 1"
        support = (*view.support(layers, set(ends)), *measures.support(ends, measure))
        measures.note(measure)
        relations = (*view.note([step]), measure.label)
        texts = self.phrases.by_value(view.name(start), step, measure.label, measure.dated, reduce, len(answers))
        return Pattern(kind, query, reduce, (start,), tuple(answers), support, 1, relations, texts)

    def _temporal(self) -> Pattern:
        """Draw from edges with a validity time, or from nodes with a date."""
        if not self._dated or self._draw.random() < 0.5:
            return self._by_value("temporal")
        view = self._view
        label, edges = view.pick(self._dated)
        edge = edges[[int(self._draw.random() * len(edges))]]
        heads, tails = view.ends(edge)
        step = view.relation(int(self._graph.outgoing[1][edge][0]), self._draw.random() < 0.5)
        start = int((tails if step.inverse else heads)[0])
        _need(view.askable(step.number) and view.is_topic(start))
        batch = _given(view.step([start], step))
        others = batch.other.tolist()
        _need(2 <= len(others) <= 4 * MOST_ANSWERS and start not in others and len(set(others)) == len(others))
        said = [record.get(label) for record in self._graph.edge_properties(batch.edge)]
        values = {node: comparable(str(v)) for node, v in zip(others, said, strict=True) if v is not None}
        _need(all(value == value for value in values.values()))
        reduce = self._year(values)
        answers = sorted(select_keys(values, reduce))
        _need(1 <= len(answers) <= MOST_ANSWERS and all(map(view.is_answer, answers)))
        third = f"?answer <{step.label}> ?x" if step.inverse else f"?x <{step.label}> ?answer"
        query = self._query(start, [step], via=f"{{ {third} {{| <{label}> ?value |}} }}")
        texts = self.phrases.by_value(view.name(start), step, f"{label}_date", True, reduce, len(answers))
        support, relations = view.support([batch], set(values)), view.note([step])
        return Pattern("temporal", query, reduce, (start,), tuple(answers), support, 1, relations, texts)

    def _comparison(self) -> Pattern:
        view, measures = self._view, self._measures
        measure = _given(measures.draw())
        found = measures.bearer(measure), measures.bearer(measure)
        one, two = map(_given, found)
        _need(one != two)
        pair = [one, two]
        first, second = (set(node.types or ("",)) for node in self._graph.nodes(view.ids(pair)))
        _need(all(map(view.is_topic, pair)) and not first.isdisjoint(second))
        values = _given(measures.values(sorted(pair), measure))
        reduce = self._extreme()
        answers = select_keys(values, reduce)
        _need(len(answers) == 1)
        listed = " ".join(f"<{id}>" for id in view.ids(pair))
        start = f"START ?answer {{ VALUES ?answer {{ {listed} }}"
        if measure.relation is None:
            query = f"PATHS WALK {start} ?answer <{measure.label}> ?value }} END ?x VIA UNDIRECTED !() MAX LENGTH 1"
        else:
            query = f"PATHS WALK {start} }} END ?value VIA <{measure.label}> MAX LENGTH 1"
        measures.note(measure)
        texts = self.phrases.comparison((view.name(one), view.name(two)), measure.label, measure.dated, reduce)
        support = measures.support(pair, measure)
        return Pattern("comparison", query, reduce, tuple(pair), tuple(answers), support, 1, (measure.label,), texts)

    def _unanswerable(self) -> Pattern:
        view, labels = self._view, self._graph.relations
        head, relation, _ = _given(view.begin(self._asked))
        # Another node that has what the head of such an edge has, so that the question makes sense of it.
        shared = [
            r
            for r, back in view.relations_at(head)
            if r != relation
            and not back
            and r in view.pool
            and view.askable(r)
            and self.phrases.domain(labels[r]) == self.phrases.domain(labels[relation])
        ]
        start, step = _given(view.begin(shared))[0], view.relation(relation, False)
        _need(not view.nameless(head) and view.is_topic(start))
        _need(not len(self._graph.edges(np.array([start]), Direction.OUT, np.array([relation]))))
        coming = [view.relation(r, False) for r, back in view.relations_at(start) if back]
        _need(not any(view.are_inverse(other, step) for other in coming))
        texts, relations = self.phrases.chain(view.name(start), [step], 1), view.note([step])
        return Pattern("unanswerable", self._query(start, [step]), "ends", (start,), (), (), 1, relations, texts)
