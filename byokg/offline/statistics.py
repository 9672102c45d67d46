"""Statistics of relations and of the nodes at their ends: sampled from the graph, or collected by walks.

`SampledStatistics` reads all relations and a sample of their edges once. That takes minutes on a server, where listing
the relations alone takes seconds: `SchemaStatistics` holds only relations and ends that walks have met.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.graph.inverses import inverse_relations
from byokg.graph.paths import Growth
from byokg.graph.property_view import PropertyView
from byokg.graph.sorted_ids import distinct
from byokg.graph.store import Direction, GraphStore

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


class SampledStatistics(SchemaStatistics):
    """Statistics of a graph in files: all relations, and a sample of their ends.

    Args:
        store: the graph.
        sample: sampled edges of each relation.
    """

    grows = False

    def __init__(self, store: GraphStore, sample: int = 48) -> None:
        super().__init__(store)
        self._relations: Sequence[str] = store.relations
        self._plain = store.store if isinstance(store, PropertyView) else store
        self._sample = sample

    @property
    def relations(self) -> Sequence[str]:
        """Return the labels of all relations."""
        return self._relations

    def list_relations(self) -> None:
        """Do nothing: all relations have numbers."""

    def inverses(self) -> Mapping[str, frozenset[str]]:
        """Return for each label the relations that store the same facts the other way."""
        return inverse_relations(self._plain)

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


def _distinct_pairs(owner: npt.NDArray[np.integer], relation: npt.NDArray[np.integer]) -> Pairs:
    """Return each pair of an owner and a relation once, ascending."""
    many = int(relation.max(initial=0)) + 1
    pairs = distinct(owner.astype(np.int64) * many + relation)
    return pairs // many, pairs % many
