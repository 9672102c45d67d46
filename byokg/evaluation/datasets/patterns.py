"""Question patterns sampled from a graph: walks, constraints, counts, superlatives, comparisons, each with its gold.

`testset` defines gold queries and `reduce`.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from byokg.arrays import Int64
from byokg.evaluation.datasets.gold import DATED, Measure, comparable, comparable_label, execute, select_keys
from byokg.evaluation.datasets.phrasing import Phrases, RelationStep
from byokg.graph.columnar.folder import BATCH_ROWS
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.name_indexes import name_index
from byokg.graph.store import Direction, EdgeBatch
from byokg.text.names import fold_words, is_identifier, split_words
from byokg.text.values import is_wordless, read_literal
from byokg.types import EntityId

Kind = Literal[
    "1-hop", "2-hop", "3-hop", "conjunction", "count", "superlative", "comparison", "temporal", "unanswerable"
]
KINDS: tuple[Kind, ...] = get_args(Kind)

Triples = tuple[tuple[str, str, str], ...]

MOST_ANSWERS = 10
"""Answers of a question at most; of one that counts, twice as many."""
_HUB_AT_LEAST, _HUB_SHARE = 200, 0.001
"""A hub has more edges than this, and than all but this share of the nodes."""
_WALKED, _SUPPORT = 2000, 60
"""Edges of one step, and triples behind one question, at most."""
_POOLED, _POOLED_OF_ONE = 1 << 19, 512
"""Edges drawn to begin patterns with, of all relations and of one."""
_EDGES_AT_ONCE = 1 << 22
_LONGEST = 60
_VALUED = 0.9
"""Share of a relation's tails that are numbers or dates, from which it gives its heads a value."""
_NOT_ASKED = ("common.", "base.", "type.", "freebase.", "user.", "kg.", "rdf:", "rdfs:", "owl:", "http://www.w3.org/")
"""Prefixes of administrative relations, which hold no facts about the world."""


_SELDOM = 5
"""Fewest edges of a relation of a large graph that questions use."""
_UNQUOTED = frozenset('<>{}|\\^`\n"')
"""Characters that a path query cannot hold within angle brackets."""


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


class Sampler:
    """Samples patterns from a graph, with about equally many for each relation.

    The edges are read once, in pieces, to draw start edges; after that only the neighbourhoods of drawn edges are read,
    so time depends on the number of questions and hardly on the graph.
    """

    def __init__(self, graph: ColumnarGraph, seed: int = 0) -> None:
        self.graph = graph
        self._draw = random.Random(seed)
        self._names = name_index(graph)
        index = graph.topology
        degree = np.diff(index.out_index) + np.diff(index.in_index)
        rank = min(len(degree) - 1, int(len(degree) * (1 - _HUB_SHARE)))
        self._hub = max(_HUB_AT_LEAST, int(np.partition(degree, rank)[rank])) if len(degree) else 0
        self._degree = degree
        self._pool = self._pooled()
        self._used: Counter[int] = Counter()
        self._bearers: dict[str, list[int]] = {}
        self._mirrors: dict[tuple[int, int], bool] = {}
        self._name = cache(lambda node: graph.nodes(graph.ids(np.array([node])))[0].name)
        relations = [r for r in sorted(self._pool) if self._askable(r)]
        self._measures = self._found_measures(relations)
        self.phrases = Phrases(graph.schema(), [m.label for m in self._measures if m.dated])
        unsaid = {r for r in relations if not self.phrases.sayable(graph.relations[r])}
        self._pool = {r: edges for r, edges in self._pool.items() if r not in unsaid}
        self._asked = [r for r in relations if r not in unsaid]
        self._value_relations = {m.relation: m for m in self._measures if m.relation is not None}
        self._dated = self._found_dated()
        self._measured: Counter[str] = Counter()
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
        if found is None or len(found.support) > _SUPPORT:
            return None
        texts = tuple(
            text for text in found.texts if kind == "comparison" or not self._contains_answer(text, found.answers)
        )
        ids = self._ids(found.answers)
        if not texts or any(set('<>{}|\\^`\n"') & set(each) for each in (*ids, *self._ids(found.topics))):
            return None
        wanted = (str(found.count),) if found.count is not None else tuple(sorted(ids))
        # The walk's ends are gold only if the engine returns the same for the written query.
        return replace(found, texts=texts) if execute(self.graph, found.query, found.reduce) == wanted else None

    # Beginnings

    def _pooled(self) -> dict[int, Int64]:
        """Draw edges of each relation, by its number."""
        _, relation, _ = self.graph.outgoing
        labels = len(self.graph.relations)
        starts = range(0, len(relation), _EDGES_AT_ONCE)
        counts = [np.bincount(relation[at : at + _EDGES_AT_ONCE], minlength=labels) for at in starts]
        total = sum(counts, np.zeros(labels, np.int64))
        most = max(16, min(_POOLED_OF_ONE, _POOLED // max(labels, 1)))
        ranks = [sorted({int(self._draw.random() * n) for _ in range(most)}) if n else [] for n in total.tolist()]
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

    def _askable(self, relation: int) -> bool:
        label = self.graph.relations[relation]
        return not label.startswith(_NOT_ASKED) and not set('<>{}|\\^`\n"') & set(label)

    def _found_measures(self, relations: Sequence[int]) -> list[Measure]:
        found = []
        for relation in relations:
            if not comparable_label(self.graph.relations[relation]):
                continue
            _, tails = self._ends(self._pool[relation][:50])
            kinds = [read.kind if (read := read_literal(self._name(t))) else "" for t in tails.tolist()]
            if sum(kind in ("date", "year", "number") for kind in kinds) >= _VALUED * len(kinds):
                dated = sum(kind in ("date", "year") for kind in kinds) >= _VALUED * len(kinds)
                dated |= any(word in self.graph.relations[relation] for word in ("date", "year"))
                found.append(Measure(self.graph.relations[relation], dated, relation))
        _, properties = self.graph.node_columns
        for column in properties.columns():
            kind = str(column.values.type)
            if kind.startswith(("int", "double", "float", "date")) and comparable_label(column.name):
                dated = "year" in column.name or "date" in column.name or kind.startswith("date")
                found.append(Measure(column.name, dated, None))
        return found

    def _found_dated(self) -> list[tuple[str, Int64]]:
        """Return temporal edge properties, with edges that have them."""
        found: dict[str, list[Int64]] = defaultdict(list)
        for number, batch in enumerate(self.graph.edge_columns):
            for name in batch.schema.names:
                if set(split_words(name.replace("_", " "))) & DATED and name.isidentifier():
                    known = np.flatnonzero(batch.column(name).is_valid()) + number * BATCH_ROWS
                    found[name].append(known[:: max(1, len(known) // _POOLED_OF_ONE)])
        return [(name, edges) for name, parts in found.items() if len(edges := np.concatenate(parts))]

    def _ends(self, edges: Int64) -> tuple[Int64, Int64]:
        bounds, _, tails = self.graph.outgoing
        return np.searchsorted(bounds, edges, "right") - 1, tails[edges].astype(np.int64)

    def _begin(self, among: Sequence[int] | None = None) -> tuple[int, int, int] | None:
        """Draw an edge of a relation that was used least: head, relation, tail."""
        choice = self._asked if among is None else among
        if not choice:
            return None
        few = [choice[int(self._draw.random() * len(choice))] for _ in range(8)]
        relation = min(few, key=lambda r: (self._used[r], r))
        head, tail = self._ends(self._pool[relation][[int(self._draw.random() * len(self._pool[relation]))]])
        return int(head[0]), relation, int(tail[0])

    # What may be named

    def _ids(self, nodes: Collection[int]) -> list[EntityId]:
        return self.graph.ids(np.array(list(nodes), np.int64))

    def _nameless(self, node: int) -> bool:
        name = self._name(node)
        return (
            not name.strip()
            or is_identifier(name)
            or len(name) > _LONGEST
            or bool(_UNQUOTED & set(name))
            or not name.isprintable()
        )

    def _topic(self, node: int) -> bool:
        """True if a question may name this node: its name is unique and it is no hub."""
        name = self._name(node)
        if self._degree[node] > self._hub or self._nameless(node) or is_wordless(name) or read_literal(name):
            return False
        return len(self._names.exact(name)) == 1

    def _answer(self, node: int) -> bool:
        return self._degree[node] <= self._hub and not self._nameless(node)

    def _contains_answer(self, text: str, answers: Collection[int]) -> bool:
        """True if the question contains an answer."""
        words = f" {' '.join(fold_words(text))} "
        return any(f" {' '.join(fold_words(self._name(node)))} " in words for node in answers)

    # Walking

    def _step(self, nodes: Collection[int], step: RelationStep) -> EdgeBatch | None:
        """Return the edges of one step, or None if there are too many to answer for."""
        numbers = np.array(sorted(nodes), np.int64)
        if not len(numbers) or int(self._degree[numbers].sum()) > 50 * _WALKED:
            return None
        direction = Direction.IN if step.inverse else Direction.OUT
        batch = self.graph.edges(numbers, direction, np.array([step.number]))
        return batch if len(batch) <= _WALKED else None

    def _walk(self, start: int, steps: Sequence[RelationStep]) -> list[EdgeBatch] | None:
        layers, nodes = [], {start}
        for step in steps:
            batch = self._step(nodes, step)
            if batch is None or not len(batch):
                return None
            layers.append(batch)
            nodes = set(batch.other.tolist())
        return layers

    def _support(self, layers: Sequence[EdgeBatch], ends: set[int]) -> Triples:
        """Return the triples on the way to some ends, the first step first."""
        kept: list[tuple[int, int, int]] = []
        for batch in reversed(layers):
            rows = [i for i, other in enumerate(batch.other.tolist()) if other in ends]
            if len(rows) > _SUPPORT:
                rows = rows[: _SUPPORT + 1]
            kept[:0] = [(int(batch.head[i]), int(batch.relation[i]), int(batch.tail[i])) for i in rows]
            ends = {int((batch.tail if batch.inverse[i] else batch.head)[i]) for i in rows}
        return self._spelled(kept)

    def _spelled(self, edges: Sequence[tuple[int, int, int]]) -> Triples:
        edges = list(dict.fromkeys(edges))
        heads, tails = self._ids([e[0] for e in edges]), self._ids([e[2] for e in edges])
        labels = [self.graph.relations[e[1]] for e in edges]
        return tuple(zip(heads, labels, tails, strict=True))

    def _made(self, step: int, inverse: bool) -> RelationStep:
        return RelationStep(step, self.graph.relations[step], inverse)

    def _further(self, node: int, last: RelationStep | None) -> RelationStep | None:
        """Draw a relation that leads on from a node, but for the way back."""
        if self._degree[node] > self._hub:
            return None
        counts = self.graph.relation_counts(np.array([node]))
        valued = read_literal(self._name(node)) is not None
        choice = [
            (self._used[r], r, back)
            for r, back in zip(counts.relation.tolist(), counts.inverse.tolist(), strict=True)
            if r in self._pool
            and self._askable(r)
            and (last is None or (r, back) != (last.number, not last.inverse))
            and not (back and (r in self._value_relations or self._nameless(node) or valued))
        ]
        if not choice:
            return None
        few = [choice[int(self._draw.random() * len(choice))] for _ in range(3)]
        _, relation, back = min(few)
        return self._made(relation, back)

    def _note(self, steps: Collection[RelationStep]) -> tuple[str, ...]:
        self._used.update(step.number for step in steps)
        return tuple(dict.fromkeys(step.label for step in steps))

    # Patterns

    def _chain(self, kind: Kind, hops: int) -> Pattern | None:
        if (begun := self._begin()) is None:
            return None
        head, relation, tail = begun
        inverse = self._draw.random() < 0.5 and relation not in self._value_relations
        start, at = (tail, head) if inverse else (head, tail)
        if not self._topic(start):
            return None
        steps = [self._made(relation, inverse)]
        while len(steps) < hops:
            further = self._further(at, steps[-1])
            if further is None:
                return None
            batch = self._step([at], further)
            if batch is None or not len(batch):
                return None
            others = batch.other.tolist()
            at = others[int(self._draw.random() * len(others))]
            steps.append(further)
        layers = self._walk(start, steps)
        if layers is None or len({(s.label, s.inverse) for s in steps}) < len(steps):
            return None
        ends = sorted(set(layers[-1].other.tolist()))
        if not 1 <= len(ends) <= MOST_ANSWERS or start in ends or not all(map(self._answer, ends)):
            return None
        if any(self._inverse(a, b) for a, b in pairwise(steps)):
            return None
        (topic,) = self._ids([start])
        query = f"PATHS WALK START ?x = <{topic}> END ?answer VIA {_expression(steps)} MAX LENGTH 1"
        return Pattern(
            kind,
            query,
            "ends",
            (start,),
            tuple(ends),
            self._support(layers, set(ends)),
            hops,
            self._note(steps),
            self.phrases.chain(self._name(start), steps, len(ends)),
        )

    def _conjunction(self) -> Pattern | None:
        if (begun := self._begin()) is None:
            return None
        head, relation, tail = begun
        inverse = self._draw.random() < 0.5
        first = self._made(relation, inverse)
        start, target = (tail, head) if inverse else (head, tail)
        if not self._topic(start) or not self._answer(target):
            return None
        # The second way to the target, seen from the target.
        back = self._further(target, None)
        if back is None or (back.number in self._value_relations and back.inverse):
            return None
        second = replace(back, inverse=not back.inverse)
        batch = self._step([target], back)
        if batch is None:
            return None
        others = [n for n in dict.fromkeys(batch.other.tolist()) if n != start]
        if not others:
            return None
        other = others[int(self._draw.random() * len(others))]
        if not self._topic(other):
            return None
        left, right = self._walk(start, [first]), self._walk(other, [second])
        if left is None or right is None:
            return None
        here, there = set(left[0].other.tolist()), set(right[0].other.tolist())
        both = here & there
        if not 1 <= len(both) <= MOST_ANSWERS or len(here) == len(both) or len(there) == len(both):
            return None
        if both & {start, other} or not all(map(self._answer, both)):
            return None
        one, two = self._ids([start, other])
        third = f"?answer <{second.label}> <{two}>" if second.inverse else f"<{two}> <{second.label}> ?answer"
        query = f"PATHS WALK START ?x = <{one}> END ?answer {{ {third} }} VIA {_expression([first])} MAX LENGTH 1"
        support = dict.fromkeys((*self._support(left, both), *self._support(right, both)))
        texts = self.phrases.conjunction((self._name(start), first), (self._name(other), second), len(both))
        relations = self._note((first, second))
        return Pattern(
            "conjunction", query, "ends", (start, other), tuple(sorted(both)), tuple(support), 1, relations, texts
        )

    def _count(self) -> Pattern | None:
        if (begun := self._begin([r for r in self._asked if r not in self._value_relations])) is None:
            return None
        head, relation, tail = begun
        inverse = self._draw.random() < 0.5
        start, step = (tail if inverse else head), self._made(relation, inverse)
        if not self._topic(start) or (layers := self._walk(start, [step])) is None:
            return None
        ends = set(layers[0].other.tolist())
        if not 2 <= len(ends) <= 2 * MOST_ANSWERS or start in ends or any(map(self._nameless, ends)):
            return None
        (topic,) = self._ids([start])
        query = f"PATHS WALK START ?x = <{topic}> END ?answer VIA {_expression([step])} MAX LENGTH 1"
        texts = self.phrases.count(self._name(start), step)
        support = self._support(layers, ends)
        return Pattern("count", query, "count", (start,), (), support, 1, self._note([step]), texts, len(ends))

    def _measure(self, dated: bool | None = None) -> Measure | None:
        choice = [m for m in self._measures if dated is None or m.dated == dated]
        if not choice:
            return None
        few = [choice[int(self._draw.random() * len(choice))] for _ in range(4)]
        return min(few, key=lambda m: (self._measured[m.label], m.label))

    def _measure_nodes(self, nodes: Sequence[int], measure: Measure) -> dict[int, float] | None:
        """Return the value of each node; None if a node has several values, or one that is neither number nor date."""
        found: dict[int, float] = {}
        if measure.relation is None:
            for node, record in zip(nodes, self.graph.nodes(self._ids(nodes)), strict=True):
                value = record.properties.get(measure.label)
                if value is not None:
                    found[node] = comparable(str(value))
        else:
            batch = self._step(nodes, self._made(measure.relation, False))
            for head, tail in zip(*((batch.head.tolist(), batch.tail.tolist()) if batch else ((), ())), strict=True):
                if head in found:
                    return None
                found[head] = comparable(self._name(tail))
        return found if len(found) > 1 and all(v == v for v in found.values()) else None

    def _valued(self, measure: Measure) -> int | None:
        """Draw a node that has the value."""
        if measure.relation is not None:
            begun = self._begin([measure.relation])
            return begun[0] if begun else None
        if measure.label not in self._bearers:
            _, properties = self.graph.node_columns
            column = properties.column(measure.label)
            known = np.empty(0, np.int64) if column is None else column.held()[0]
            self._bearers[measure.label] = known[:: max(1, len(known) // _POOLED_OF_ONE)].tolist()
        bearers = self._bearers[measure.label]
        return bearers[int(self._draw.random() * len(bearers))] if bearers else None

    def _measured_edges(self, nodes: Collection[int], measure: Measure) -> Triples:
        if measure.relation is None:
            return ()
        batch = self._step(nodes, self._made(measure.relation, False))
        rows = zip(batch.head.tolist(), batch.relation.tolist(), batch.tail.tolist(), strict=True) if batch else ()
        return self._spelled(list(rows))

    def _by_value(self, kind: Literal["superlative", "temporal"]) -> Pattern | None:
        measure = self._measure(True if kind == "temporal" else None)
        node = self._valued(measure) if measure else None
        if measure is None or node is None:
            return None
        back = self._further(node, None)
        if back is None or back.number in self._value_relations:
            return None
        batch = self._step([node], back)
        if batch is None or not len(batch):
            return None
        others = batch.other.tolist()
        start = others[int(self._draw.random() * len(others))]
        step = replace(back, inverse=not back.inverse)
        if not self._topic(start) or (layers := self._walk(start, [step])) is None:
            return None
        ends = sorted(set(layers[0].other.tolist()))
        if not 2 <= len(ends) <= 4 * MOST_ANSWERS or start in ends:
            return None
        values = self._measure_nodes(ends, measure)
        if values is None:
            return None
        reduce = self._extreme() if kind == "superlative" else self._year(values)
        answers = sorted(select_keys(values, reduce)) if reduce else []
        if not all(map(self._answer, answers)):
            return None
        most = 1 if kind == "superlative" else MOST_ANSWERS
        if not 1 <= len(answers) <= min(most, len(values) - 1):
            return None
        (topic,) = self._ids([start])
        if measure.relation is None:
            condition = f"END ?answer {{ ?answer <{measure.label}> ?value }}"
            query = f"PATHS WALK START ?x = <{topic}> {condition} VIA {_expression([step])} MAX LENGTH 1"
        else:
            third = f"?answer <{step.label}> <{topic}>" if step.inverse else f"<{topic}> <{step.label}> ?answer"
            query = f"PATHS WALK START ?answer {{ {third} }} END ?value VIA <{measure.label}> MAX LENGTH 1"
        support = (*self._support(layers, set(ends)), *self._measured_edges(ends, measure))
        self._measured[measure.label] += 1
        relations = (*self._note([step]), measure.label)
        texts = self.phrases.by_value(self._name(start), step, measure.label, measure.dated, reduce, len(answers))
        return Pattern(kind, query, reduce, (start,), tuple(answers), support, 1, relations, texts)

    def _extreme(self) -> str:
        return "greatest" if self._draw.random() < 0.5 else "least"

    def _year(self, values: Mapping[int, float]) -> str:
        """Draw a year that parts some values from others; empty if there is none."""
        years = sorted({int(value) for value in values.values()})
        if len(years) < 2 or not all(0 < year < 3000 for year in years):
            return ""
        place = int(self._draw.random() * (len(years) - 1))
        return f"after {years[place]}" if self._draw.random() < 0.5 else f"before {years[place + 1]}"

    def _temporal(self) -> Pattern | None:
        """Draw from edges with a validity time, or from nodes with a date."""
        if not self._dated or self._draw.random() < 0.5:
            return self._by_value("temporal")
        label, edges = self._dated[int(self._draw.random() * len(self._dated))]
        edge = edges[[int(self._draw.random() * len(edges))]]
        heads, tails = self._ends(edge)
        step = self._made(int(self.graph.outgoing[1][edge][0]), self._draw.random() < 0.5)
        start = int((tails if step.inverse else heads)[0])
        batch = self._step([start], step) if self._askable(step.number) and self._topic(start) else None
        others = batch.other.tolist() if batch else []
        if (
            batch is None
            or not 2 <= len(others) <= 4 * MOST_ANSWERS
            or start in others
            or len(set(others)) < len(others)
        ):
            return None
        said = [record.get(label) for record in self.graph.edge_properties(batch.edge)]
        values = {node: comparable(str(v)) for node, v in zip(others, said, strict=True) if v is not None}
        reduce = self._year(values) if all(value == value for value in values.values()) else ""
        answers = sorted(select_keys(values, reduce)) if reduce else []
        if not 1 <= len(answers) <= MOST_ANSWERS or not all(map(self._answer, answers)):
            return None
        third = f"?answer <{step.label}> ?x" if step.inverse else f"?x <{step.label}> ?answer"
        (topic,) = self._ids([start])
        via = f"VIA {{ {third} {{| <{label}> ?value |}} }}"
        query = f"PATHS WALK START ?x = <{topic}> END ?answer {via} MAX LENGTH 1"
        texts = self.phrases.by_value(self._name(start), step, f"{label}_date", True, reduce, len(answers))
        support, relations = self._support([batch], set(values)), self._note([step])
        return Pattern("temporal", query, reduce, (start,), tuple(answers), support, 1, relations, texts)

    def _comparison(self) -> Pattern | None:
        measure = self._measure()
        one, two = (self._valued(measure), self._valued(measure)) if measure else (None, None)
        if measure is None or one is None or two is None or one == two:
            return None
        pair = [one, two]
        first, second = (set(node.types or ("",)) for node in self.graph.nodes(self._ids(pair)))
        alike = not first.isdisjoint(second)
        values = self._measure_nodes(sorted(pair), measure) if all(map(self._topic, pair)) and alike else None
        if values is None:
            return None
        reduce = self._extreme()
        answers = select_keys(values, reduce)
        if len(answers) != 1:
            return None
        listed = " ".join(f"<{id}>" for id in self._ids(pair))
        start = f"START ?answer {{ VALUES ?answer {{ {listed} }}"
        if measure.relation is None:
            query = f"PATHS WALK {start} ?answer <{measure.label}> ?value }} END ?x VIA UNDIRECTED !() MAX LENGTH 1"
        else:
            query = f"PATHS WALK {start} }} END ?value VIA <{measure.label}> MAX LENGTH 1"
        self._measured[measure.label] += 1
        names = (self._name(one), self._name(two))
        texts = self.phrases.comparison(names, measure.label, measure.dated, reduce)
        support = self._measured_edges(pair, measure)
        return Pattern("comparison", query, reduce, tuple(pair), tuple(answers), support, 1, (measure.label,), texts)

    def _unanswerable(self) -> Pattern | None:
        if (begun := self._begin()) is None:
            return None
        head, relation, _ = begun
        # Another node that has what the head of such an edge has, so that the question makes sense of it.
        counts = self.graph.relation_counts(np.array([head]))
        shared = [
            r
            for r, back in zip(counts.relation.tolist(), counts.inverse.tolist(), strict=True)
            if r != relation
            and not back
            and r in self._pool
            and self._askable(r)
            and self.phrases.domain(self.graph.relations[r]) == self.phrases.domain(self.graph.relations[relation])
        ]
        beside = self._begin(shared)
        if beside is None or self._nameless(head):
            return None
        start, step = beside[0], self._made(relation, False)
        if not self._topic(start) or len(self.graph.edges(np.array([start]), Direction.OUT, np.array([relation]))):
            return None
        around = self.graph.relation_counts(np.array([start]))
        coming = [
            self._made(r, True) for r, b in zip(around.relation.tolist(), around.inverse.tolist(), strict=True) if b
        ]
        if any(self._inverse(replace(other, inverse=False), step) for other in coming):
            return None
        (topic,) = self._ids([start])
        query = f"PATHS WALK START ?x = <{topic}> END ?answer VIA {_expression([step])} MAX LENGTH 1"
        texts = self.phrases.chain(self._name(start), [step], 1)
        return Pattern("unanswerable", query, "ends", (start,), (), (), 1, self._note([step]), texts)

    def _inverse(self, one: RelationStep, two: RelationStep) -> bool:
        """True if two relations walked in the same direction are inverses."""
        return one.inverse == two.inverse and self._mirrored(one.number, two.number)

    def _mirrored(self, one: int, two: int) -> bool:
        key = (min(one, two), max(one, two))
        if key not in self._mirrors:
            heads, tails = self._ends(self._pool[key[0]][:20])
            back = self.graph.edges(tails, Direction.OUT, np.array([key[1]]))
            pairs = set(zip(back.head.tolist(), back.tail.tolist(), strict=True))
            met = sum((t, h) in pairs for h, t in zip(heads.tolist(), tails.tolist(), strict=True))
            self._mirrors[key] = 2 * met > len(heads)
        return self._mirrors[key]


def _expression(steps: Sequence[RelationStep]) -> str:
    return "/".join(f"{'^' * step.inverse}<{step.label}>" for step in steps)
