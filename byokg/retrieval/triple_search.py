"""The triples of a whole graph that are most similar to a question, exactly, looking at few of them.

A triple scores what its head, its relation and its tail score, so one of its ends is at least as similar as the other.
Nodes are taken in order of their similarity, with all their edges; once twice the similarity of the next node and
that of the best relation cannot reach the k-th best score, no other triple can.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from byokg.graph.columnar import ColumnarGraph
from byokg.graph.node_sets import contains, distinct
from byokg.graph.store import Direction, EdgeBatch, GraphStore
from byokg.graph.traversal import join
from byokg.index.embedder import Embedder, Vectors
from byokg.index.similarity import UNIT, Millionths, Similarity, millionths
from byokg.linking.steps import label_words

Int64 = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.integer]

_FIRST, _FIRST_SHARE = 16_384, 64
"""Names whose bearers are looked at first, at most so many and at most one in so many."""
_SPARE = 1.25
"""How many more are looked at than a sample says are needed."""
_SCAN_FROM = 8
"""All triples are read where more than one in so many names would have to be looked at."""
_NODES_FIRST, _NODES_AT_ONCE = 64, 4096
_EDGES_AT_ONCE = 1 << 18
_EVERY = 64
"""One in so many edges is looked at first, to see what the best will score at least."""
SCAN_UP_TO = 1 << 18
"""Names up to which all triples are read: choosing among nodes would take longer."""

_UNREACHED = -(1 << 40)
"""Below every score."""


@dataclass(frozen=True)
class ScoredEdges:
    """The K best edges, best first, equal scores by edge number."""

    edges: EdgeBatch
    scores: Int64
    """(K,) in millionths; the three parts are cosines, so they lie in [-3,000,000, 3,000,000]."""


class TripleSearch:
    """Finds the k triples of a graph with the highest sum of cosines to a question.

    Safe to share between threads.

    Args:
        store: the graph; its nodes have the numbers 0 to N - 1.
        embedder: the one whose vectors `nodes` compares.
        nodes: how similar nodes are.
        scan_up_to: names up to which all triples are read for every question.
    """

    def __init__(self, store: GraphStore, embedder: Embedder, nodes: Similarity, scan_up_to: int = SCAN_UP_TO) -> None:
        self._store = store
        self._nodes = nodes
        self._scan_up_to = scan_up_to
        self._all = _all_edges(store, nodes.owners)
        self._may_choose = isinstance(store, ColumnarGraph)  # elsewhere each look at some nodes is a journey
        self._relations: Vectors = embedder.encode([relation_text(label) for label in store.relations])

    def relations(self, question: Vectors) -> Millionths:
        """Return how similar each relation is to a (D,) question, in millionths: (R,)."""
        return millionths(self._relations, question)

    def best(self, question: Vectors, k: int) -> ScoredEdges:
        """Return the k best triples; fewer where the graph has fewer.

        Args:
            question: (D,) unit vector.
            k: 1 or more.
        """
        relations = self.relations(question)
        found = _Found(k, _UNREACHED)
        if len(self._nodes) <= self._scan_up_to or not self._may_choose:
            self._scan(found, question, relations)
            return found.ordered()
        top = int(relations.max(initial=-UNIT))
        names = min(_FIRST, 1 + len(self._nodes) // _FIRST_SHARE)
        while names * _SCAN_FROM < len(self._nodes):
            chosen = self._nodes.best(question, names)
            outside = max(chosen.bound, 0)  # of a node without a name the similarity is 0
            found = _Found(k, found.least)
            self._look(found, question, relations, chosen.owners, outside)
            if 2 * outside + top < found.least:
                return found.ordered()
            share = self._nodes.share_above(question, (found.least - top) // 2)
            names = max(4 * names, int(_SPARE * share * len(self._nodes)))
        found = _Found(k, found.least)
        self._scan(found, question, relations)
        return found.ordered()

    def _look(self, found: _Found, question: Vectors, relations: Millionths, owners: Int64, outside: int) -> None:
        """Go through the edges of some nodes, those of the most similar first; others score `outside` at most."""
        similar = self._nodes.of(question, owners)
        table = np.full(self._nodes.owners, outside, np.int32)
        table[owners] = similar
        order = np.lexsort((owners, -similar))
        top = int(relations.max())
        stop, size = 0, _NODES_FIRST
        while stop < len(order):
            # Few at first: what they find saves looking at the ends of the others' edges.
            part = order[stop : stop + size]
            stop, size = stop + size, min(2 * size, _NODES_AT_ONCE)
            if 2 * int(similar[part[0]]) + top < found.least:
                return
            batch = self._store.edges(owners[part], Direction.BOTH)
            near = similar[part].take(batch.origin)
            near += relations.take(batch.relation)
            other = batch.other
            rows = np.flatnonzero(near + table.take(other) >= found.least)
            near, other = near[rows], other[rows]
            scores = near + table[other]
            unknown = np.flatnonzero(~contains(owners, other))
            scores[unknown] = near[unknown] + self._nodes.of(question, other[unknown])
            found.add(batch.edge[rows], batch.head[rows], batch.relation[rows], batch.tail[rows], scores)

    def _scan(self, found: _Found, question: Vectors, relations: Millionths) -> None:
        """Go through all edges."""
        edges = self._all
        similar = self._nodes.all(question)
        cuts = np.searchsorted(edges.bounds, np.arange(0, len(edges.tail), _EDGES_AT_ONCE)[1:])
        for first, last in pairwise([0, *distinct(cuts).tolist(), self._nodes.owners]):
            bounds = edges.bounds[first : last + 1]
            part = slice(int(bounds[0]), int(bounds[-1]))
            scores = np.repeat(similar[first:last], np.diff(bounds))
            scores += relations.take(edges.relation[part])
            scores += similar.take(edges.tail[part])
            found.expect(scores[::_EVERY])
            rows = np.flatnonzero(scores >= found.least)
            at = rows + part.start
            head = np.searchsorted(edges.bounds, at, "right") - 1
            number = at if edges.number is None else edges.number[at]
            found.add(number, head, edges.relation[at], edges.tail[at], scores[rows])


class _Found:
    """The best edges so far, each once."""

    def __init__(self, k: int, least: int) -> None:
        self._k = k
        self.least = least
        """What an edge has to score to be among the best."""
        self._scores = np.zeros(0, np.int64)
        self._columns: Int64 = np.zeros((4, 0), np.int64)

    def expect(self, scores: npt.NDArray[np.integer]) -> None:
        """Take note of the scores of different edges that will be added."""
        if len(scores) >= self._k:
            self.least = max(self.least, int(np.partition(scores, -self._k)[-self._k]))

    def add(
        self, number: Numbers, head: Numbers, relation: Numbers, tail: Numbers, scores: npt.NDArray[np.integer]
    ) -> None:
        """Add edges, which may have been added before with the same score: (A,) each."""
        rows = np.arange(len(scores))
        if len(rows) > 2 * self._k:  # an edge comes twice at most, once from either end
            rows = np.flatnonzero(scores >= np.partition(scores, -2 * self._k)[-2 * self._k])
        added = [column[rows].astype(np.int64) for column in (number, head, relation, tail)]
        columns = np.concatenate((self._columns, np.stack(added)), axis=1)
        both = np.concatenate((self._scores, scores[rows]))
        order = np.lexsort((columns[0], -both))
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = columns[0, order[1:]] != columns[0, order[:-1]]
        order = order[fresh][: self._k]
        self._scores, self._columns = both[order], columns[:, order]
        if len(order) == self._k:
            self.least = max(self.least, int(self._scores[-1]))

    def ordered(self) -> ScoredEdges:
        """Return what was found."""
        number, head, relation, tail = self._columns
        count = len(number)
        batch = EdgeBatch(head, relation, tail, number, np.arange(count), np.zeros(count, np.bool_))
        return ScoredEdges(batch, self._scores)


@dataclass(frozen=True)
class _AllEdges:
    """E edges by head."""

    bounds: Int64
    """(N + 1,) node n has those from bounds[n] up to bounds[n + 1]."""
    relation: Numbers
    tail: Numbers
    number: Int64 | None
    """None where each edge stands at the place of its number."""


def _all_edges(store: GraphStore, nodes: int) -> _AllEdges:
    """Return a graph's edges: those of a columnar graph as they lie, others read once."""
    if isinstance(store, ColumnarGraph):
        return _AllEdges(*store.outgoing, None)
    parts = [
        store.edges(np.arange(start, min(start + _NODES_AT_ONCE, nodes)), Direction.OUT)
        for start in range(0, nodes, _NODES_AT_ONCE)
    ]
    edges, _ = join([(part, np.arange(len(part))) for part in parts], [0] * len(parts))
    bounds = np.concatenate(([0], np.bincount(edges.head, minlength=nodes).cumsum()))
    return _AllEdges(bounds, edges.relation.astype(np.int32), edges.tail.astype(np.int32), edges.edge)


@lru_cache(1 << 16)
def relation_text(label: str) -> str:
    """Write a relation as words, with the last part of its namespace (`location.country.capital`: country capital)."""
    namespace, own = label_words(label)
    return " ".join((*namespace, *own))


def node_count(store: GraphStore) -> int:
    """Return how many nodes a graph has."""
    return store.node_count if isinstance(store, ColumnarGraph) else sum(1 for _ in store.entities())
