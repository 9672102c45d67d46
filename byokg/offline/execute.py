"""Execution of constraints and aggregations on a path's nodes: filter, compare, subtract, order, count.

An operation is executed only if question and graph agree: there is a property like the word, a temporal edge, a number
to compare. Otherwise `ConstraintExecutor.execute` returns None, and the question is a path question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from byokg.graph.paths import follow
from byokg.graph.property_view import is_value, name_of_value
from byokg.graph.sorted_ids import distinct
from byokg.graph.store import GraphStore
from byokg.offline.facts import (
    LinkedProperty,
    PropertyLinker,
    WalkTable,
    branching,
    described,
    is_point,
    listing,
    make_result,
    measure,
    passes,
    period,
    walk_table,
)
from byokg.offline.lexicon import load_lexicon
from byokg.offline.parse_constraints import QueryConstraints, Superlative, TemporalConstraint, Threshold
from byokg.offline.ranking import Candidate
from byokg.text.dates import Period, read_date
from byokg.text.names import related, split_label, split_words
from byokg.types import INVERSE, ComputedEvidence, EntityId, PathEvidence, Properties


@dataclass(frozen=True)
class ExecutionSettings:
    """Thresholds and limits of executed constraints."""

    listed: int = 10
    """Names written out in the description of an operation."""
    counted: int = 1_000_000
    """Ends of one path that are counted; more give a lower bound."""
    type: float = 0.3
    """Similarity from which a noun may name nodes of a type."""
    step: float = 0.5
    """Similarity from which a word means a step (`the most neighbours`)."""
    named_property: float = 0.9
    """Similarity from which a word for countable things names a property (`the most goals`)."""
    implausible: int = 20
    """Multiple of the most edges of any candidate from which a number is no count of them (`a population below
    523000`)."""


_SETTINGS = ExecutionSettings()

_OF_NODES = ("born", "birth", "founded", "released", "published", "built")
"""Events of nodes, not of edges."""


@dataclass
class _State:
    """A candidate while it is narrowed down."""

    candidate: Candidate
    ends: list[EntityId]
    tables: list[WalkTable] | None = None
    """The walks of each path, to the remaining ends."""
    done: list[str] = field(default_factory=list)
    operations: list[str] = field(default_factory=list)


class _CandidateReader:
    """Reads properties, degrees and walks of a candidate's nodes; arguments as for `ConstraintExecutor`."""

    def __init__(
        self, store: GraphStore, properties: PropertyLinker, reach: Callable[[str], npt.NDArray[np.float32]]
    ) -> None:
        self._store, self._property_linker, self._reach = store, properties, reach

    def _measured(self, state: _State, nouns: Sequence[str], dates: bool) -> tuple[int, LinkedProperty] | None:
        """Return the hop whose nodes have a property like the nouns, counted back from the ends, and the property."""
        found = self._property(state.ends, nouns, dates)
        if found is not None:
            return 0, found
        for table in self._tables(state)[:1]:
            for back in range(1, table.nodes.shape[1] - 1):
                ids = self._store.ids(distinct(table.nodes[:, -1 - back]))
                found = self._property_linker.find(self._store.nodes(ids), nouns, dates)
                if found is not None:
                    return back, found
        return None

    def _property(
        self, nodes: Sequence[EntityId], nouns: Sequence[str], dates: bool = False, least: int = 2
    ) -> LinkedProperty | None:
        """Return the compared value: one of the nodes' properties, or a number or date behind an edge."""
        read, find = self._store.nodes(nodes), self._property_linker.find
        return find(read, nouns, dates, least) or find(described(self._store, read, least), nouns, dates, least)

    def _keep(
        self, state: _State, nodes: Collection[EntityId], operation: str, text: str, counted: bool = False
    ) -> Literal[True]:
        """Keep some of the ends, and describe the operation; `counted` adds how many are left of how many."""
        before = len(state.ends)
        state.ends = [end for end in state.ends if end in nodes]
        state.tables = None if state.tables is None else self._ending(state.tables, state.ends)
        state.done.append(f"{text}: {len(state.ends)} of {before}" if counted else text)
        state.operations.append(operation)
        return True

    def _keep_at(self, state: _State, hop: int, nodes: set[EntityId], operation: str, text: str) -> bool:
        """Keep the ends that walks through some nodes reach; the nodes stand so many hops before the ends."""
        if hop:
            table, *rest = self._tables(state)
            numbers = np.asarray(self._store.numbers(sorted(nodes)), np.int64)
            state.tables = [table.taken(np.isin(table.nodes[:, -1 - hop], numbers)), *rest]
            nodes = set(self._store.ids(distinct(state.tables[0].nodes[:, -1])))
        return self._keep(state, nodes, operation, text)

    def _degrees(self, nodes: Sequence[EntityId], nouns: Sequence[str]) -> tuple[str, dict[EntityId, int]] | None:
        """Return how many edges each node has of the kind that the nouns mean, and that kind."""
        numbers = np.asarray(self._store.numbers(nodes), np.int64)
        counts = self._store.relation_counts(numbers)
        relations = self._store.relations
        many = 2 * len(relations)
        reach = np.max([self._reach(noun) for noun in nouns], axis=0)
        steps = counts.relation.astype(np.int64) * 2 + counts.inverse
        known = distinct(steps) if len(nodes) > 1 else steps
        known = known[known < len(reach)]  # a server may know more relations than were linked to words
        if not len(known):
            known = np.arange(many)
        # `players` is a relation before it is the class of things with `teams`.
        known = known[np.argsort(known & 1, kind="stable")]
        best = int(known[np.argmax(reach[known])])
        everything = int(np.argmax(reach[:many]))
        if reach[best] < _SETTINGS.step or reach[best] < 0.7 * reach[everything]:
            if reach[everything] < _SETTINGS.step:
                return None
            best = everything
        if not best & 1 and best + 1 in known and _received(nouns, relations[best >> 1]):
            best += 1
        of = np.zeros(len(numbers), np.int64)
        rows = steps == best
        of[counts.origin[rows]] = counts.count[rows]
        label = f"{INVERSE if best & 1 else ''}{relations[best >> 1]}"
        return label, dict(zip(nodes, of.tolist(), strict=True))

    def _tables(self, state: _State) -> list[WalkTable]:
        if state.tables is None:
            topics = {path.source for path in state.candidate.paths}
            made = [walk_table(self._store, path.source, path.relations, topics) for path in state.candidate.paths]
            state.tables = self._ending([table for table in made if table is not None], state.ends)
        return state.tables

    def _ending(self, tables: Sequence[WalkTable], ends: Sequence[EntityId]) -> list[WalkTable]:
        numbers = np.asarray(self._store.numbers(ends), np.int64)
        return [table.taken(np.isin(table.nodes[:, -1], numbers)) for table in tables]

    def _dated(self, table: WalkTable) -> int | None:
        """Return the last hop with temporal edges."""
        for column in reversed(range(len(table.steps))):
            if any(period(each) is not None for each in self._store.edge_properties(table.edges[:50, column])):
                return column
        return None

    def _named(self, nodes: Sequence[EntityId]) -> list[str]:
        return [node.name for node in self._store.nodes(list(nodes))]


class _TimeExecutor(_CandidateReader):
    """Executes constraints and orders in time."""

    def _timed(self, state: _State, test: TemporalConstraint, strict: bool) -> bool:
        """Keep ends within a time: by the edges into them, or by dates of the nodes themselves."""
        tables, of_node = self._tables(state), test.near in _OF_NODES
        dated = [None if of_node else self._dated(table) for table in tables]
        if any(column is not None for column in dated):
            left = set(state.ends)
            for place, (table, column) in enumerate(zip(tables, dated, strict=True)):
                if column is not None:
                    properties = self._store.edge_properties(table.edges[:, column])
                    held = [period(each) for each in properties]
                    fits = np.array([one is not None and passes(one, test) for one in held], np.bool_)
                    if not fits.any() and _may_hold(properties, held, test):
                        return False
                    tables[place] = table.taken(fits)
                left.intersection_update(self._store.ids(distinct(tables[place].nodes[:, -1])))
            return self._keep(state, left, "time", test.words or "time", counted=True)
        if strict and not of_node:
            return False
        nodes = self._store.nodes(state.ends)
        named = self._property(state.ends, (test.near,), least=1) if test.near else None
        held_by: dict[EntityId, Period | None]
        if named is not None and named.dates:  # `opened` before 1900, by the property of that name
            held_by = {id: read_date(value) for id, value in named.shown.items()}
        else:
            held_by = {node.id: period(node.properties) for node in nodes}
            if not any(held_by.values()):
                held_by = {node.id: period(node.properties) for node in described(self._store, nodes, least=1)}
            if sum(one is not None for one in held_by.values()) * 2 < len(nodes) or not nodes:
                return False
        kept = {id for id, one in held_by.items() if one is not None and passes(one, test)}
        return self._keep(state, kept, "time", f"{test.near} {test.words}".strip(), counted=True)

    def _by_date(self, state: _State, order: Superlative) -> bool:
        """Keep the first or the last, by the edges that lead there, or by a date of the nodes."""
        when: dict[EntityId, tuple[int, int, int]] = {}
        for table in self._tables(state):
            column = self._dated(table)
            if column is None or when:
                continue
            held = map(period, self._store.edge_properties(table.edges[:, column]))
            for end, one in zip(self._store.ids(table.nodes[:, -1]), held, strict=True):
                if one is not None and (start := one.start or one.last) is not None:
                    when[end] = (max if order.most else min)(when.get(end, start), start)
        when = {end: when[end] for end in state.ends if end in when}
        if not when:
            found = self._property(state.ends, (), True)
            if found is None:
                return False
            when = {id: (int(value), round(value % 1 * 372), 0) for id, value in found.values.items()}
        best = _best(when.values(), order.most, order)
        if not best:
            return False
        kept = {end for end, day in when.items() if day in best}
        _rank(state, when, order.most, order)
        return self._keep(state, kept, "superlative", f"{order.words} of {len(when)} by date: {best[-1][0]}")


Measure = TypeVar("Measure", float, tuple[int, int, int])


def _best(values: Iterable[Measure], most: bool, order: Superlative) -> list[Measure]:
    """Return the distinct values of the best ones, the last one least; empty if there are fewer than their place."""
    ranked = sorted(values, reverse=most)
    if order.size > 1:
        return list(dict.fromkeys(ranked[: order.size]))
    return list(dict.fromkeys(ranked))[order.place - 1 : order.place]


def _rank(state: _State, values: Mapping[EntityId, Measure], most: bool, order: Superlative) -> None:
    """Keep the ends that have a value, the best first, if several are asked for."""
    if order.size > 1:
        state.ends = sorted(filter(values.__contains__, state.ends), key=lambda end: values[end], reverse=most)


class ConstraintExecutor(_TimeExecutor):
    """Executes operations on one graph; thread-safe.

    Args:
        store: the graph, without values as nodes.
        properties: links words to properties.
        reach: similarity of each step's range to a word: (S,) in [0, 1], as `RelationSimilarity.reach`.
    """

    def execute(
        self,
        constraints: QueryConstraints,
        candidate: Candidate,
        linked: Mapping[int, Sequence[EntityId]],
        paths: Sequence[PathEvidence],
        strict: bool = False,
        kind: bool = False,
    ) -> ComputedEvidence | None:
        """Execute the constraints on a candidate; None if it does not support them.

        An outcome without nodes and values is an empty result.

        Args:
            constraints: the constraints.
            candidate: nodes, and the paths to them; some paths may be unknown.
            linked: candidate nodes of each mention of the question.
            paths: all paths found.
            strict: times are those of edges, unless the question names birth or founding; and a count has more than a
                single node, and is not a constant 1.
            kind: True if the nodes are known to be of the answer type.
        """
        ends = list(candidate.nodes)
        if any(map(is_value, ends)):
            return self._of_value(constraints, candidate)
        state = _State(candidate, ends)
        filtered = (
            all(self._timed(state, times, strict) for times in constraints.times)
            and all(self._bounded(state, threshold, linked) for threshold in constraints.thresholds)
            and all(self._without(state, linked.get(mention, ()), paths) for mention in constraints.without)
            and (not constraints.lacking or self._lacking(state, constraints.lacking))
        )
        if not filtered or (constraints.order is not None and not self._ordered(state, constraints.order)):
            return None
        names, cut = self._named(state.ends[: _SETTINGS.listed]), any(path.truncated for path in candidate.paths)
        if constraints.count:
            if strict and not (state.ends and self._of_kind(state.ends, constraints.counted)):
                return None
            if strict and len(state.ends) == 1 and not kind and self._single(candidate.paths):
                number = names[0]
                if not state.done and measure(number) is not None and "-" not in number[1:]:
                    text = f"the number itself: {number}"
                    return make_result("property", text, tuple(state.ends), uses=candidate.evidence_ids)
                return None
            count = len(state.ends)
            if cut and not state.done and len(candidate.paths) == 1 and candidate.nodes == candidate.paths[0].ends:
                count, cut = self._counted(candidate.paths[0], linked)
            text = "; ".join([*state.done, f"count of {'at least ' if cut else ''}{count}: {listing(names, count)}"])
            return make_result("count", text, values=(count,), uses=candidate.evidence_ids, truncated=cut)
        if not state.operations:
            return None
        text = "; ".join([*state.done, listing(names, len(state.ends))] if state.ends else state.done)
        return make_result(state.operations[-1], text, tuple(state.ends), uses=candidate.evidence_ids, truncated=cut)

    def _counted(self, path: PathEvidence, linked: Mapping[int, Sequence[EntityId]]) -> tuple[int, bool]:
        """Return how many ends a path has of which only some were kept, and whether there are still more."""
        own = next((ids for ids in linked.values() if path.source in ids), ())
        avoid = [path.source, *(id for ids in linked.values() if ids is not own for id in ids)]
        walks = follow(self._store, [path.source], path.relations, _SETTINGS.counted, _SETTINGS.counted, avoid)
        return len(walks.ends), walks.truncated

    def among(self, order: Superlative, nodes: Sequence[EntityId]) -> ComputedEvidence | None:
        """Return the greatest of some named nodes; None if they have nothing to compare."""
        state = _State(Candidate(0.0, tuple(nodes)), list(dict.fromkeys(nodes)))
        if not self._ordered(state, order):
            return None
        return make_result("comparison", "; ".join([*state.done, listing(self._named(state.ends))]), tuple(state.ends))

    def _of_kind(self, nodes: Sequence[EntityId], noun: str) -> bool:
        """True if nodes may be the referents of a noun, unless that is a measure of others (`inhabitants`)."""
        if noun not in load_lexicon("order")["units"]:
            return True
        types = [(self._property_linker.likeness(noun, type), type) for type in self._store.schema().node_types if type]
        likeness, best = max(types, key=lambda one: one[0], default=(0.0, ""))
        some = self._store.nodes(nodes[: _SETTINGS.listed])
        return likeness < _SETTINGS.type or any(best in node.types for node in some)

    def _single(self, paths: Sequence[PathEvidence]) -> bool:
        """True if paths have one end from any start: nobody asks for their number."""
        number = {label: number for number, label in enumerate(self._store.relations)}
        labels = [label for path in paths for label in path.relations]
        steps = [2 * number.get(label.removeprefix(INVERSE), -1) + label.startswith(INVERSE) for label in labels]
        return bool(steps) and not self._branching.intersection(steps) and min(steps) >= 0

    @cached_property
    def _branching(self) -> frozenset[int]:
        return branching(self._store)

    def _of_value(self, constraints: QueryConstraints, candidate: Candidate) -> ComputedEvidence | None:
        """Return a value that is the number in question itself, and no end to count."""
        values = [name_of_value(end) for end in candidate.nodes]
        filters = constraints.times or constraints.thresholds or constraints.without or constraints.lacking
        if not constraints.count or constraints.order is not None or filters or len(values) != 1:
            return None
        text = f"the number itself: {values[0]}"
        return (
            None
            if measure(values[0]) is None
            else make_result("property", text, (), tuple(values), candidate.evidence_ids)
        )

    def _bounded(self, state: _State, bound: Threshold, linked: Mapping[int, Sequence[EntityId]]) -> bool:
        """Keep ends above or below a number."""
        column = self._measured(state, bound.nouns, bound.dates)
        if column is None:
            degree = self._degrees(state.ends, bound.nouns) if bound.nouns and bound.mention is None else None
            if degree is None:
                return False
            label, counts = degree
            if bound.value > _SETTINGS.implausible * max(counts.values(), default=0):
                return False
            fits = {id for id, count in counts.items() if (count > bound.value if bound.more else count < bound.value)}
            return self._keep(state, fits, "comparison", f"{label} {bound.words}")
        hop, found = column
        value = bound.value
        if bound.mention is not None:
            named = self._store.nodes(list(linked.get(bound.mention, ()))[:1])
            values = [measure(node.properties[found.name]) for node in named if found.name in node.properties]
            if not values or values[0] is None:
                return False
            value = values[0]
        more = bound.more != (bound.dates and found.age)
        fits = {id for id, number in found.values.items() if (number > value if more else number < value)}
        return self._keep_at(state, hop, fits, "comparison", f"{found.name} {'>' if more else '<'} {value:,.12g}")

    def _without(self, state: _State, negated: Sequence[EntityId], paths: Sequence[PathEvidence]) -> bool:
        """Subtract the ends of a path from another node, the best path that reaches any of the candidates."""
        ends = frozenset(state.ends)
        if ends & frozenset(negated) or self._reached(state, negated):
            text = f"without {listing(self._named(negated))}"
            return self._keep(state, ends - frozenset(negated), "difference", text)
        own = [path for path in paths if path.source in negated]
        for path in sorted(own, key=lambda path: (len(path.relations), -path.score)):
            if common := ends & frozenset(path.ends):
                text = f"without {len(common)} of {len(ends)} that {self._named([path.source])[0]} leads to"
                return self._keep(state, ends - common, "difference", text)
        return False

    def _reached(self, state: _State, nodes: Sequence[EntityId]) -> bool:
        """True if a candidate's path leads to some nodes as well; as topic entities they were left out."""
        numbers = np.asarray(self._store.numbers(list(nodes)), np.int64)
        for path in state.candidate.paths:
            table = walk_table(self._store, path.source, path.relations)
            if table is not None and np.isin(table.nodes[:, -1], numbers).any():
                return True
        return False

    def _lacking(self, state: _State, thing: str) -> bool:
        """Keep the nodes that have no edge of a kind."""
        degree = self._degrees(state.ends, tuple(thing.split()))
        if degree is None:
            return False
        label, counts = degree
        kept = {id for id in state.ends if counts[id] == 0}
        return self._keep(state, kept, "difference", f"without {label}", counted=True)

    def _ordered(self, state: _State, order: Superlative) -> bool:
        """Keep the most, by a property, by time, or by how many edges there are."""
        if not state.ends:
            return False
        column = self._measured(state, order.nouns, order.dates) if order.nouns else None
        several = any(noun.endswith(("s", "ed")) or noun in load_lexicon("count")["singular"] for noun in order.nouns)
        if order.counted and (column is None or (column[1].likeness < _SETTINGS.named_property and several)):
            counts = (self._passed(state, order.nouns) if several else None) or self._degrees(state.ends, order.nouns)
            if counts is not None:
                return self._most_of(state, order, *counts)
            if column is not None and column[1].dates:
                return False  # the most papers are not those with the latest year of a paper
        if column is not None:
            hop, found = column
            most = order.most != (order.dates and found.age)
            best = _best(found.values.values(), most, order)
            if not best:
                return False
            if not hop:
                _rank(state, found.values, most, order)
            chosen = {id for id, value in found.values.items() if value in best}
            shown = next(found.shown[id] for id, value in found.values.items() if value == best[-1])
            text = f"{order.words or 'compared'} by {found.name} of {len(found.values)}: {shown}"
            return self._keep_at(state, hop, chosen, "superlative", text)
        return order.dates and self._by_date(state, order)

    def _most_of(self, state: _State, order: Superlative, label: str, counts: Mapping[EntityId, int]) -> bool:
        """Keep the ends that have the most of something that is counted."""
        if not any(counts[id] for id in state.ends):
            return False
        numbers = [counts[id] for id in state.ends]
        best = _best(numbers, order.most, order)
        if not best or len(set(numbers)) == 1 < len(numbers):
            return False
        text = f"{order.words} by number of {label} of {len(state.ends)}: {best[-1]}"
        _rank(state, counts, order.most, order)
        return self._keep(state, {id for id in state.ends if counts[id] in best}, "superlative", text)

    def _passed(self, state: _State, nouns: Sequence[str]) -> tuple[str, dict[EntityId, int]] | None:
        """Return the number of intermediate nodes of each end, if these are the referents of the nouns.

        `Which club has the most players of Spain` goes from Spain over its players to their clubs.
        """
        for table in self._tables(state)[:1]:
            for column in range(len(table.steps) - 1, 0, -1):
                step = table.steps[column - 1]
                if max(float(self._reach(noun)[step]) for noun in nouns) >= _SETTINGS.step:
                    ways = np.unique(table.nodes[:, [column, -1]], axis=0)
                    ends, counts = np.unique(ways[:, 1], return_counts=True)
                    found = dict(zip(self._store.ids(ends), counts.tolist(), strict=True))
                    label = f"{INVERSE if step & 1 else ''}{self._store.relations[step >> 1]}"
                    return label, {id: found.get(id, 0) for id in state.ends}
        return None


def _may_hold(told: Sequence[Properties], held: Sequence[Period | None], test: TemporalConstraint) -> bool:
    """True if the validity of some edges may include a time under any reading: an open period may continue."""
    within = TemporalConstraint(test.first or "0001", test.last or "9999")
    points = map(is_point, told)
    spans = ((Period(one.begin, None) if point else one) for one, point in zip(held, points, strict=True) if one)
    return any(passes(one, within) for one in spans)


def _received(nouns: Sequence[str], relation: str) -> bool:
    """True if nouns name the far end of a relation: `most cited`, `most citations` of `cites`."""
    words = split_words(split_label(relation))
    passive = [noun for noun in nouns if noun.endswith(("ed", "tion", "tions"))]
    return any(related(noun, word) for noun in passive for word in words)


def countable(ends: Sequence[EntityId]) -> bool:
    """True if nodes can be counted, or are the number itself, as 1049 is; dates and texts are neither."""
    values = [name_of_value(end) for end in ends if is_value(end)]
    return not values or (len(ends) == 1 and "-" not in values[0][1:] and measure(values[0]) is not None)
