"""Question patterns sampled from a graph: walks, constraints, counts, superlatives, comparisons, each with its gold.

`testset` defines gold queries and `reduce`.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, get_args

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

    def bearer(self, measure: Measure | None) -> int | None:
        """Draw a node that has the value."""
        if measure is None:
            return None
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
        self._makers: dict[Kind, Callable[[], Pattern | None]] = {
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
        found = self._makers[kind]()
        if found is None or len(found.support) > MOST_SUPPORT:
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

    def _further(self, node: int, last: RelationStep | None) -> RelationStep | None:
        """Draw a relation that leads on from a node, but for the way back."""
        view = self._view
        if view.is_hub(node):
            return None
        valued = read_literal(view.name(node)) is not None
        choice = [
            (view.used[r], r, back)
            for r, back in view.relations_at(node)
            if r in view.pool
            and view.askable(r)
            and (last is None or (r, back) != (last.number, not last.inverse))
            and not (back and (r in self._measures.relations or view.nameless(node) or valued))
        ]
        if not choice:
            return None
        _, relation, back = min([view.pick(choice) for _ in range(3)])
        return view.relation(relation, back)

    def _ways(self, start: int, step: RelationStep) -> list[EdgeBatch] | None:
        """Return the edges of one step from a node that a question may name; None if there are none, or too many."""
        return self._view.walk(start, [step]) if self._view.is_topic(start) else None

    def _query(self, start: int, steps: Sequence[RelationStep], condition: str = "", via: str = "") -> str:
        """Return the path query of some steps from a node, with a condition on the answer."""
        (topic,) = self._view.ids([start])
        via = via or "/".join(f"{'^' * step.inverse}<{step.label}>" for step in steps)
        return f"PATHS WALK START ?x = <{topic}> END ?answer {condition}VIA {via} MAX LENGTH 1"

    def _extreme(self) -> str:
        return "greatest" if self._draw.random() < 0.5 else "least"

    def _year(self, values: Mapping[int, float]) -> str:
        """Draw a year that parts some values from others; empty if there is none."""
        years = sorted({int(value) for value in values.values()})
        if len(years) < 2 or not all(0 < year < 3000 for year in years):
            return ""
        place = int(self._draw.random() * (len(years) - 1))
        return f"after {years[place]}" if self._draw.random() < 0.5 else f"before {years[place + 1]}"

    # Patterns

    def _chain(self, kind: Kind, hops: int) -> Pattern | None:
        view = self._view
        if (begun := view.begin(self._asked)) is None:
            return None
        head, relation, tail = begun
        inverse = self._draw.random() < 0.5 and relation not in self._measures.relations
        start, at = (tail, head) if inverse else (head, tail)
        if not view.is_topic(start):
            return None
        steps = [view.relation(relation, inverse)]
        while len(steps) < hops:
            further = self._further(at, steps[-1])
            batch = None if further is None else view.step([at], further)
            if further is None or batch is None or not len(batch):
                return None
            at = view.pick(batch.other.tolist())
            steps.append(further)
        layers = view.walk(start, steps)
        if layers is None or len({(s.label, s.inverse) for s in steps}) < len(steps):
            return None
        ends = sorted(set(layers[-1].other.tolist()))
        if not 1 <= len(ends) <= MOST_ANSWERS or start in ends or not all(map(view.is_answer, ends)):
            return None
        if any(view.are_inverse(a, b) for a, b in pairwise(steps)):
            return None
        support, relations = view.support(layers, set(ends)), view.note(steps)
        texts = self.phrases.chain(view.name(start), steps, len(ends))
        query = self._query(start, steps)
        return Pattern(kind, query, "ends", (start,), tuple(ends), support, hops, relations, texts)

    def _conjunction(self) -> Pattern | None:
        view = self._view
        if (begun := view.begin(self._asked)) is None:
            return None
        head, relation, tail = begun
        inverse = self._draw.random() < 0.5
        first = view.relation(relation, inverse)
        start, target = (tail, head) if inverse else (head, tail)
        if not view.is_topic(start) or not view.is_answer(target):
            return None
        # The second way to the target, seen from the target.
        back = self._further(target, None)
        if back is None or (back.number in self._measures.relations and back.inverse):
            return None
        second = replace(back, inverse=not back.inverse)
        batch = view.step([target], back)
        others = [] if batch is None else [n for n in dict.fromkeys(batch.other.tolist()) if n != start]
        if not others:
            return None
        other = view.pick(others)
        if not view.is_topic(other):
            return None
        left, right = view.walk(start, [first]), view.walk(other, [second])
        if left is None or right is None:
            return None
        here, there = set(left[0].other.tolist()), set(right[0].other.tolist())
        both = here & there
        if not 1 <= len(both) <= MOST_ANSWERS or len(here) == len(both) or len(there) == len(both):
            return None
        if both & {start, other} or not all(map(view.is_answer, both)):
            return None
        (two,) = view.ids([other])
        third = f"?answer <{second.label}> <{two}>" if second.inverse else f"<{two}> <{second.label}> ?answer"
        query = self._query(start, [first], f"{{ {third} }} ")
        support = tuple(dict.fromkeys((*view.support(left, both), *view.support(right, both))))
        texts = self.phrases.conjunction((view.name(start), first), (view.name(other), second), len(both))
        relations, topics = view.note((first, second)), (start, other)
        return Pattern("conjunction", query, "ends", topics, tuple(sorted(both)), support, 1, relations, texts)

    def _count(self) -> Pattern | None:
        view = self._view
        if (begun := view.begin([r for r in self._asked if r not in self._measures.relations])) is None:
            return None
        head, relation, tail = begun
        inverse = self._draw.random() < 0.5
        start, step = (tail if inverse else head), view.relation(relation, inverse)
        if (layers := self._ways(start, step)) is None:
            return None
        ends = set(layers[0].other.tolist())
        if not 2 <= len(ends) <= 2 * MOST_ANSWERS or start in ends or any(map(view.nameless, ends)):
            return None
        texts, support = self.phrases.count(view.name(start), step), view.support(layers, ends)
        query = self._query(start, [step])
        return Pattern("count", query, "count", (start,), (), support, 1, view.note([step]), texts, len(ends))

    def _by_value(self, kind: Literal["superlative", "temporal"]) -> Pattern | None:
        view, measures = self._view, self._measures
        measure = measures.draw(True if kind == "temporal" else None)
        node = measures.bearer(measure)
        if measure is None or node is None:
            return None
        back = self._further(node, None)
        if back is None or back.number in measures.relations:
            return None
        batch = view.step([node], back)
        if batch is None or not len(batch):
            return None
        start, step = view.pick(batch.other.tolist()), replace(back, inverse=not back.inverse)
        if (layers := self._ways(start, step)) is None:
            return None
        ends = sorted(set(layers[0].other.tolist()))
        if not 2 <= len(ends) <= 4 * MOST_ANSWERS or start in ends:
            return None
        values = measures.values(ends, measure)
        if values is None:
            return None
        reduce = self._extreme() if kind == "superlative" else self._year(values)
        answers = sorted(select_keys(values, reduce)) if reduce else []
        most = 1 if kind == "superlative" else MOST_ANSWERS
        if not 1 <= len(answers) <= min(most, len(values) - 1) or not all(map(view.is_answer, answers)):
            return None
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

    def _temporal(self) -> Pattern | None:
        """Draw from edges with a validity time, or from nodes with a date."""
        if not self._dated or self._draw.random() < 0.5:
            return self._by_value("temporal")
        view = self._view
        label, edges = view.pick(self._dated)
        edge = edges[[int(self._draw.random() * len(edges))]]
        heads, tails = view.ends(edge)
        step = view.relation(int(self._graph.outgoing[1][edge][0]), self._draw.random() < 0.5)
        start = int((tails if step.inverse else heads)[0])
        batch = view.step([start], step) if view.askable(step.number) and view.is_topic(start) else None
        others = batch.other.tolist() if batch else []
        distinct = start not in others and len(set(others)) == len(others)
        if batch is None or not 2 <= len(others) <= 4 * MOST_ANSWERS or not distinct:
            return None
        said = [record.get(label) for record in self._graph.edge_properties(batch.edge)]
        values = {node: comparable(str(v)) for node, v in zip(others, said, strict=True) if v is not None}
        reduce = self._year(values) if all(value == value for value in values.values()) else ""
        answers = sorted(select_keys(values, reduce)) if reduce else []
        if not 1 <= len(answers) <= MOST_ANSWERS or not all(map(view.is_answer, answers)):
            return None
        third = f"?answer <{step.label}> ?x" if step.inverse else f"?x <{step.label}> ?answer"
        query = self._query(start, [step], via=f"{{ {third} {{| <{label}> ?value |}} }}")
        texts = self.phrases.by_value(view.name(start), step, f"{label}_date", True, reduce, len(answers))
        support, relations = view.support([batch], set(values)), view.note([step])
        return Pattern("temporal", query, reduce, (start,), tuple(answers), support, 1, relations, texts)

    def _comparison(self) -> Pattern | None:
        view, measures = self._view, self._measures
        measure = measures.draw()
        one, two = measures.bearer(measure), measures.bearer(measure)
        if measure is None or one is None or two is None or one == two:
            return None
        pair = [one, two]
        first, second = (set(node.types or ("",)) for node in self._graph.nodes(view.ids(pair)))
        alike = all(map(view.is_topic, pair)) and not first.isdisjoint(second)
        values = measures.values(sorted(pair), measure) if alike else None
        if values is None:
            return None
        reduce = self._extreme()
        answers = select_keys(values, reduce)
        if len(answers) != 1:
            return None
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

    def _unanswerable(self) -> Pattern | None:
        view, labels = self._view, self._graph.relations
        if (begun := view.begin(self._asked)) is None:
            return None
        head, relation, _ = begun
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
        beside = view.begin(shared)
        if beside is None or view.nameless(head):
            return None
        start, step = beside[0], view.relation(relation, False)
        if not view.is_topic(start) or len(self._graph.edges(np.array([start]), Direction.OUT, np.array([relation]))):
            return None
        coming = [view.relation(r, False) for r, back in view.relations_at(start) if back]
        if any(view.are_inverse(other, step) for other in coming):
            return None
        texts, relations = self.phrases.chain(view.name(start), [step], 1), view.note([step])
        return Pattern("unanswerable", self._query(start, [step]), "ends", (start,), (), (), 1, relations, texts)
