"""Statistics of relations and of the nodes at their ends: sampled from the graph, or collected by walks.

`SampledStatistics` reads all relations and a sample of their edges once. That takes minutes on a server, where listing
the relations alone takes seconds: `SchemaStatistics` holds only relations and ends that walks have met.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float64, Int64
from byokg.graph.inverses import inverse_relations
from byokg.graph.paths import Growth
from byokg.graph.property_view import PropertyView
from byokg.graph.sorted_ids import distinct
from byokg.graph.store import Direction, GraphStore
from byokg.graph.traversal import steps_at_ends
from byokg.index.embedders import exact
from byokg.offline.label_similarity import leading_verb, subject_verbs
from byokg.types import EntityId

Labels = Sequence[tuple[Sequence[str], Sequence[str]]]
"""Words of each relation's namespace, and of its own name."""

Pairs = tuple[Int64, Int64]
"""Parallel arrays: a place in an array of nodes, and a relation; each pair once, ascending."""


@dataclass(frozen=True)
class StepEnds:
    """P pairs of a step and a node that it leads to, of N nodes."""

    steps: Int64
    """(P,)"""
    nodes: Int64
    """(N,) node numbers."""
    places: Int64
    """(P,) places in `nodes`."""


_NO_ENDS = StepEnds(*(np.empty(0, np.int64) for _ in range(3)))


class SchemaStatistics:
    """Relations of a graph, and the nodes that they lead to: those that walks have met, as on a server.

    Args:
        store: the graph.
        near: ends of each step that are read, evenly spread over their ids, so that results depend on the graph alone.
    """

    grows = True
    """True if walks add relations and ends."""

    def __init__(self, store: GraphStore, near: int = 8) -> None:
        self.store = store
        self._near = near

    @property
    def relations(self) -> Sequence[str]:
        """Return the labels of the relations known so far, by number."""
        return self.store.met_relations

    def list_relations(self) -> None:
        """Number all relations of the graph, by a request for their list."""
        len(self.store.relations)

    def inverses(self) -> Mapping[str, frozenset[str]]:
        """Return for each label the relations that store the same facts the other way; empty if unknown."""
        return {}

    def verbs(self, labels: Labels) -> Sequence[str]:
        """Return the verb of each relation's heads, here of its label; empty for a relation without one."""
        return [leading_verb(own) for _, own in labels]

    def ends(self) -> StepEnds:
        """Return the ends known before a walk."""
        return _NO_ENDS

    def observe(self, ends: StepEnds, growth: Growth) -> StepEnds:
        """Return ends with those of metapaths added, as far as these were missing."""
        owner = np.repeat(growth.steps[:, -1], np.diff(growth.bounds))
        fresh = ~np.isin(owner, ends.steps)
        if not fresh.any():
            return ends
        met, place = np.unique(np.asarray(growth.ends, np.int64)[fresh], return_inverse=True)
        by_id = np.argsort(np.argsort(np.array(self.store.ids(met), object), kind="stable"), kind="stable")
        pairs = distinct(owner[fresh] * len(met) + by_id[place])
        step, rank = pairs // len(met), pairs % len(met)
        first = np.searchsorted(step, step)
        size, at = np.searchsorted(step, step, "right") - first, np.arange(len(step)) - first
        kept = at * self._near // size != (at - 1) * self._near // size
        step, new = step[kept], met[np.argsort(by_id)][rank[kept]]
        nodes, places = np.unique(np.concatenate((ends.nodes[ends.places], new)), return_inverse=True)
        return StepEnds(np.concatenate((ends.steps, step)), nodes, places)

    def outgoing(self, nodes: Int64, typed: bool) -> Pairs:
        """Return the relations out of nodes; of typed ones none. A server counts faster than it returns edges."""
        if typed:
            return _NO_ENDS.steps, _NO_ENDS.places
        counts = self.store.relation_counts(nodes)
        return _distinct_pairs(counts.origin[~counts.inverse], counts.relation[~counts.inverse])

    def incoming(self, nodes: Int64) -> Pairs:
        """Return the relations into nodes; here none, since they would take a request for each question."""
        return _NO_ENDS.steps, _NO_ENDS.places

    def step_count(self, steps: Int64) -> int:
        """Return the number of steps, here of those with ends."""
        return len(np.unique(steps))

    def name_ambiguity(self, ids: Sequence[EntityId]) -> float:
        """Return the ambiguity of nodes that may stand for several things of one name: in [0, 1], the largest."""
        return 0.0

    def drop_duplicates(self, growth: Growth) -> Growth:
        """Return metapaths without those that end against a symmetric relation, as far as a server reveals it.

        There the step against it has no ends but those of the step along it from the same nodes; at least several,
        since a few may be chance (see `graph.inverses`, which reads edges everywhere in a graph in files).
        """
        return growth.taken(drop_symmetric_duplicates(growth))


class SampledStatistics(SchemaStatistics):
    """Statistics of a graph in files: all relations, and a sample of their ends.

    Args:
        store: the graph.
        sample: sampled edges of each relation.
        usual: factor on the share of nodes with a single end of a step: only nearly all are informative.
        single: least weight of the single-ended steps of a node together.
    """

    grows = False

    def __init__(self, store: GraphStore, sample: int = 48, usual: int = 16, single: float = 0.5) -> None:
        super().__init__(store)
        self._relations: Sequence[str] = store.relations
        self._plain = store.store if isinstance(store, PropertyView) else store
        self._sample = sample
        self._usual = usual
        self._least = single

    @property
    def relations(self) -> Sequence[str]:
        """Return the labels of all relations."""
        return self._relations

    def list_relations(self) -> None:
        """Do nothing: all relations have numbers."""

    def inverses(self) -> Mapping[str, frozenset[str]]:
        """Return for each label the relations that store the same facts the other way."""
        return inverse_relations(self._plain)

    def verbs(self, labels: Labels) -> Sequence[str]:
        """Return the verb of each relation's heads, as far as sampled heads agree."""
        return subject_verbs(self.store, labels)

    def ends(self) -> StepEnds:
        """Sample the ends of each step."""
        batch = self.store.sample_edges(self._sample)
        ends, place = np.unique(np.concatenate((batch.tail, batch.head)), return_inverse=True)
        step = np.concatenate((2 * batch.relation.astype(np.int64), 2 * batch.relation.astype(np.int64) + 1))
        if batch.undirected is not None:  # either step leads to either end
            twice = np.concatenate((batch.undirected, batch.undirected))
            step, place = np.concatenate((step, step[twice] ^ 1)), np.concatenate((place, place[twice]))
        many = max(1, len(ends))
        pairs = distinct(step * many + place)
        return StepEnds(pairs // many, ends.astype(np.int64), pairs % many)

    def observe(self, ends: StepEnds, growth: Growth) -> StepEnds:
        """Return the same ends: a sample of all is known."""
        return ends

    def outgoing(self, nodes: Int64, typed: bool) -> Pairs:
        """Return the relations out of nodes."""
        batch = self.store.capped_edges(nodes, Direction.OUT, None, 1)
        return _distinct_pairs(batch.origin, batch.relation)

    def incoming(self, nodes: Int64) -> Pairs:
        """Return the relations into nodes."""
        counts = self.store.relation_counts(nodes)
        return _distinct_pairs(counts.origin[counts.inverse], counts.relation[counts.inverse])

    def step_count(self, steps: Int64) -> int:
        """Return the number of all steps."""
        return 2 * len(self.relations)

    def name_ambiguity(self, ids: Sequence[EntityId]) -> float:
        """Return the ambiguity of nodes that may stand for several things of one name: in [0, 1], the largest.

        A film has one year; one with two may be two films. So it is the share, among the steps out of a node with a
        single end for nearly every other node, of those with several ends.
        """
        if not ids:
            return 0.0
        counts = self.store.relation_counts(self.store.numbers(ids))
        step = 2 * counts.relation.astype(np.int64) + counts.inverse
        weight = self._single[step]
        several = np.bincount(counts.origin, weight * (counts.count > 1), len(ids))
        whole = np.bincount(counts.origin, weight, len(ids))
        return round(float((several / np.maximum(self._least, whole)).max()), 6)

    @cached_property
    def _single(self) -> Float64:
        """(S,) certainty that each step has a single end: its share in a sample, scaled by `usual`.

        A sample of edges has a node the oftener, the more edges it has, and so each counts the less.
        """
        batch, many = self.store.sample_edges(self._sample), 2 * len(self.relations)
        ends, place = np.unique(np.concatenate((batch.head, batch.tail)).astype(np.int64), return_inverse=True)
        step = np.concatenate(steps_at_ends(batch))
        # Values of properties are counted by node.
        pairs = distinct((place * many + step)[step < 2 * len(self._plain.relations)])
        counts = self.store.relation_counts(ends)
        found = counts.origin.astype(np.int64) * many + 2 * counts.relation.astype(np.int64) + counts.inverse
        order = np.argsort(found)
        edges = counts.count[order][np.searchsorted(found[order], pairs)]
        step = pairs % many
        nodes = np.bincount(step, minlength=many)
        single = np.bincount(step, edges == 1, many)
        share = single / np.maximum(1e-9, np.bincount(step, 1 / edges, many))
        likely = share * nodes / (nodes + 1)
        return exact(np.multiply.reduce([likely] * self._usual))  # a power differs from CPU to CPU

    def drop_duplicates(self, growth: Growth) -> Growth:
        """Return metapaths without those that end against a symmetric relation."""
        if not len(self._symmetric):
            return growth
        return growth.taken(np.flatnonzero(~np.isin(growth.steps[:, -1], self._symmetric)))

    @cached_property
    def _symmetric(self) -> Int64:
        """Steps against symmetric relations, whose ends are those of the steps along them."""
        turned, labels = self.inverses(), list(self.relations)
        return 2 * np.array([labels.index(label) for label in sorted(turned) if label in turned[label]], np.int64) + 1


def drop_symmetric_duplicates(growth: Growth, fewest: int = 4) -> Int64:
    """Return the metapaths that do not end against a symmetric relation, by the ends of both its steps.

    Args:
        growth: the metapaths.
        fewest: common ends of a step and its inverse from which they may be the same.
    """
    steps = growth.steps[:, -1]
    keys = growth.parents * (int(steps.max(initial=0)) + 2) + steps
    order = np.argsort(keys)
    against = np.flatnonzero((steps & 1 == 1) & np.isin(keys - 1, keys) & (np.diff(growth.bounds) >= fewest))
    along = order[np.searchsorted(keys[order], keys[against] - 1)]
    twice = [
        row
        for row, other in zip(against.tolist(), along.tolist(), strict=True)
        if np.isin(growth.reached(row), growth.reached(other)).all()
    ]
    return np.setdiff1d(np.arange(len(growth)), twice)


def _distinct_pairs(owner: npt.NDArray[np.integer], relation: npt.NDArray[np.integer]) -> Pairs:
    """Return each pair of an owner and a relation once, ascending."""
    many = int(relation.max(initial=0)) + 1
    pairs = distinct(owner.astype(np.int64) * many + relation)
    return pairs // many, pairs % many
