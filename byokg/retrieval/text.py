"""Triples as texts: those of the whole graph that are most similar to a question, and those around linked entities.

`TripleSearch` finds the most similar ones exactly, reading few. A triple's score is the sum of those of its head,
relation and tail, so one of its ends is at least as similar as the other. Nodes are taken in order of their similarity,
with all their edges; once twice the similarity of the next node and that of the best relation cannot reach the k-th
best score, no other triple can. `TextRetriever` returns them as evidence.

The graph reranker takes the triples around the linked entities: a light reranker filters them, a strong one chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path as FilePath
from threading import Lock

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64, Integers
from byokg.errors import at_least
from byokg.graph.name_indexes import dense_names
from byokg.graph.property_view import is_value
from byokg.graph.sorted_ids import contains, distinct
from byokg.graph.store import Direction, EdgeBatch, GraphStore
from byokg.graph.traversal import join, triples
from byokg.index.dense import SLACK, UNIT, Millionths, Similarity, millionths
from byokg.index.embedders import Embedder, Vectors, exact
from byokg.index.rerankers import BiEncoder, Reranker, Scores
from byokg.linking.parts import Parts
from byokg.retrieval.frontier import Limits, as_evidence, continuations, is_named, neighbourhood
from byokg.text.names import relation_text
from byokg.types import Evidence, NodeEvidence, PathEvidence, Request, Triple, TripleEvidence

_FIRST, _FIRST_SHARE = 16_384, 64
"""Names whose bearers are looked at first, at most so many and at most one in so many."""
_SPARE = 1.25
"""Safety factor on the number of triples that a sample suggests."""
_SCAN_FROM = 8
"""All triples are read where more than one in so many names would have to be looked at."""
_NODES_FIRST, _NODES_AT_ONCE = 64, 4096
_EDGES_AT_ONCE = 1 << 18
_EVERY = 64
"""Sampling rate of edges for an estimate of the lowest score to reach."""
SCAN_UP_TO = 1 << 18
"""Names up to which a question is compared with all nodes: an index of names would not be quicker."""
_LOOK_FROM = 4
"""All triples are read where more than one in so many would have to be looked at by their nodes."""

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
        scan_up_to: names up to which every question is compared with all nodes.
    """

    def __init__(self, store: GraphStore, embedder: Embedder, nodes: Similarity, scan_up_to: int = SCAN_UP_TO) -> None:
        self._store = store
        self._nodes = nodes
        self._scan_up_to = scan_up_to
        self._all = _all_edges(store, nodes.owners)
        self._relations = exact(embedder.encode([relation_text(label) for label in store.relations]))

    def relations(self, question: Vectors) -> Millionths:
        """Return how similar each relation is to a (D,) question, in millionths: (R,)."""
        return millionths(self._relations, question)

    def best(self, question: Vectors, k: int) -> ScoredEdges:
        """Return the k best triples; fewer if the graph has fewer.

        Args:
            question: (D,) unit vector.
            k: 1 or more.
        """
        relations = self.relations(question)
        found = _TopEdges(k, _UNREACHED)
        graph = self._store.columnar
        if graph is None:  # each look at some nodes is a journey
            self._scan(found, question, relations, self._nodes.roughly(question))
            return found.ordered()
        if len(self._nodes) <= self._scan_up_to:
            self._look_or_scan(found, question, relations, graph.degree)
            return found.ordered()
        top = int(relations.max(initial=-UNIT))
        names = min(_FIRST, 1 + len(self._nodes) // _FIRST_SHARE)
        while names * _SCAN_FROM < len(self._nodes):
            chosen = self._nodes.best(question, names)
            outside = max(chosen.bound, 0)  # of a node without a name the similarity is 0
            found = _TopEdges(k, found.least)
            self._look(found, question, relations, chosen.owners, outside)
            if 2 * outside + top < found.least:
                return found.ordered()
            share = self._nodes.share_above(question, (found.least - top) // 2)
            names = max(4 * names, int(_SPARE * share * len(self._nodes)))
        found = _TopEdges(k, found.least)
        self._scan(found, question, relations, self._nodes.roughly(question))
        return found.ordered()

    def _look_or_scan(
        self, found: _TopEdges, question: Vectors, relations: Millionths, degree: Callable[[Int64], Int64]
    ) -> None:
        """Compare all nodes, and go through the edges of those of which each of the best triples holds one."""
        similar, top = self._nodes.roughly(question), int(relations.max(initial=-UNIT))
        if len(similar) > _NODES_FIRST:
            first = np.argpartition(similar, -_NODES_FIRST)[-_NODES_FIRST:]
            self._look(found, question, relations, np.sort(first), int(similar[first].min()) + SLACK)
            outside = (found.least - top) // 2
            near = np.flatnonzero(similar >= outside - SLACK)
            if int(degree(near).sum()) * _LOOK_FROM < len(self._all.tail):
                self._look(found, question, relations, near, outside)
                return
        self._scan(found, question, relations, similar)

    def _look(self, found: _TopEdges, question: Vectors, relations: Millionths, owners: Int64, outside: int) -> None:
        """Go through the edges of some nodes, those of the most similar first; others score `outside` at most."""
        similar = self._nodes.of(question, owners)
        table = np.full(self._nodes.owners, outside, np.int32)
        table[owners] = similar
        order = np.lexsort((owners, -similar))
        top = int(relations.max())
        stop, size = 0, _NODES_FIRST
        while stop < len(order):
            # Few at first: their scores rule out the ends of most other edges.
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

    def _scan(self, found: _TopEdges, question: Vectors, relations: Millionths, similar: Millionths) -> None:
        """Go through all edges, of which the nodes are roughly so similar: (N,)."""
        edges = self._all
        cuts = np.searchsorted(edges.bounds, np.arange(0, len(edges.tail), _EDGES_AT_ONCE)[1:])
        for first, last in pairwise([0, *distinct(cuts).tolist(), self._nodes.owners]):
            bounds = edges.bounds[first : last + 1]
            part = slice(int(bounds[0]), int(bounds[-1]))
            scores = np.repeat(similar[first:last], np.diff(bounds))
            scores += relations.take(edges.relation[part])
            scores += similar.take(edges.tail[part])
            found.expect(scores[::_EVERY] - 2 * SLACK)
            at = np.flatnonzero(scores >= found.least - 2 * SLACK) + part.start
            head = np.searchsorted(edges.bounds, at, "right") - 1
            relation, tail = edges.relation[at], edges.tail[at]
            ends = self._nodes.of(question, np.concatenate((head, tail))).reshape(2, -1)
            number = at if edges.number is None else edges.number[at]
            found.add(number, head, relation, tail, ends[0] + ends[1] + relations.take(relation))


class _TopEdges:
    """The best edges so far, each once."""

    def __init__(self, k: int, least: int) -> None:
        self._k = k
        self.least = least
        """Lowest score of the best edges so far."""
        self._scores = np.zeros(0, np.int64)
        self._columns: Int64 = np.zeros((4, 0), np.int64)

    def expect(self, scores: npt.NDArray[np.integer]) -> None:
        """Take note of the scores of different edges that will be added."""
        if len(scores) >= self._k:
            self.least = max(self.least, int(np.partition(scores, -self._k)[-self._k]))

    def add(
        self, number: Integers, head: Integers, relation: Integers, tail: Integers, scores: npt.NDArray[np.integer]
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
        """Return the triples found, in order."""
        number, head, relation, tail = self._columns
        count = len(number)
        batch = EdgeBatch(head, relation, tail, number, np.arange(count), np.zeros(count, np.bool_))
        return ScoredEdges(batch, self._scores)


@dataclass(frozen=True)
class _AllEdges:
    """E edges by head."""

    bounds: Int64
    """(N + 1,) node n has those from bounds[n] up to bounds[n + 1]."""
    relation: Integers
    tail: Integers
    number: Int64 | None
    """None where each edge stands at the place of its number."""


def _all_edges(store: GraphStore, nodes: int) -> _AllEdges:
    """Return a graph's edges: those of a columnar graph as they lie, others read once."""
    if store.columnar is not None:
        return _AllEdges(*store.columnar.outgoing, None)
    parts = [
        store.edges_once(np.arange(start, min(start + _NODES_AT_ONCE, nodes)))
        for start in range(0, nodes, _NODES_AT_ONCE)
    ]
    edges, _ = join([(part, np.arange(len(part))) for part in parts], [0] * len(parts))
    bounds = np.concatenate(([0], np.bincount(edges.head, minlength=nodes).cumsum()))
    return _AllEdges(bounds, edges.relation.astype(np.int32), edges.tail.astype(np.int32), edges.edge)


def node_count(store: GraphStore) -> int:
    """Return how many nodes a graph has."""
    return sum(1 for _ in store.entities()) if store.columnar is None else store.columnar.node_count


RETRIEVER = "text"

ON_FREEBASE, ELSEWHERE = 50, 10
"""Triples that the paper takes where text retrieval is all there is."""


class TextRetriever:
    """Returns the k triples whose head, relation and tail are together most similar to the question.

    The score of a triple is cos(q, head) + cos(q, relation) + cos(q, tail), in [-3, 3]; of equal ones the edge that
    the store numbers lower comes first. The result is exact for the stored half-precision vectors, and time hardly
    grows with the graph: see `TripleSearch`. Linked entities are not used.

    Vectors of names are those of the graph's dense index (`byokg graph embed`) if there is one for this embedder;
    otherwise they are computed at the first question.

    Args:
        parts: the graph; the embedder compares question, names and relations.
        k: triples; None takes 50 on Freebase, detected by its relations (`film.film.directed_by`), and 10 elsewhere, as
            the paper does for text retrieval alone.
        through: statements shown in place of a triple that ends in a mediator; 0 shows the triple as it is.
        described: nodes of the triples, those of the best first, whose properties are returned as well; 0 returns none.
        most_names: names that are embedded without an index.
        cache: folder of cached vectors; None keeps none.

    Raises:
        ConfigError: a setting is out of range.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Text-based Retrieval".
    Differs: a node without a name of its own (see `is_identifier`) scores 0; its id is not embedded as if it had a
    meaning. A triple that ends in one is shown with the other edges of this node, those with the highest scores.
    """

    def __init__(
        self,
        parts: Parts,
        k: int | None = 10,
        through: int = 3,
        described: int = 0,
        most_names: int = 1_000_000,
        cache: FilePath | None = None,
    ) -> None:
        if k is None:
            k = ON_FREEBASE if _is_freebase(parts.store.relations) else ELSEWHERE
        at_least(1, "of the text retriever is too low", k=k, most_names=most_names)
        at_least(0, "of the text retriever is too low", through=through, described=described)
        self._store = parts.store
        self._embedder = parts.embedder
        self._k = k
        self._through = through
        self._described = described
        self._most_names = most_names
        self._cache = cache
        self._made: tuple[Similarity, TripleSearch] | None = None
        self._lock = Lock()

    def retrieve(self, request: Request) -> list[Evidence]:
        """Return the best triples, and the nodes in them that have properties.

        A path of two edges stands for a triple that ends in a mediator. A question of which the embedder knows no word
        finds nothing; nor does a later round, which would find the same again.

        Raises:
            IndexUnusable: the graph's dense index is damaged, or there is none and too many names.
            EmbedderFailed: the embedder failed.
        """
        if any(item.retriever == RETRIEVER for item in request.context.evidence):
            return []
        _, search = self._search()
        question = self._embedder.encode([request.question.text])[0]
        if not question.any():
            request.note(
                RETRIEVER, {"k": self._k}, {"found": 0, "problem": "the embedder knows no word of the question"}
            )
            return []
        found = search.best(question, self._k)
        evidence = self._evidence(found, question)
        lowest = int(found.scores[-1]) / UNIT if len(found.scores) else None
        request.note(RETRIEVER, {"k": self._k}, {"found": len(evidence), "lowest_score": lowest})
        return [*evidence, *self._properties(found.edges)]

    def _properties(self, edges: EdgeBatch) -> list[NodeEvidence]:
        """Return the first nodes of some edges that have properties."""
        if not self._described:
            return []
        numbers = dict.fromkeys(np.stack((edges.head, edges.tail), axis=1).ravel().tolist())
        nodes = self._store.nodes(self._store.ids(np.array(list(numbers), np.int64)))
        known = [node for node in nodes if node.properties and not is_value(node.id)]
        return [NodeEvidence(RETRIEVER, 0.0, node) for node in known[: self._described]]

    def _search(self) -> tuple[Similarity, TripleSearch]:
        with self._lock:  # threads that come while it is made wait, instead of making it again
            if self._made is None:
                names = dense_names(self._store, self._embedder, self._cache, most=self._most_names, layout="flat")
                nodes = Similarity(names, node_count(self._store))
                self._made = nodes, TripleSearch(self._store, self._embedder, nodes)
            return self._made

    def _evidence(self, found: ScoredEdges, question: Vectors) -> list[TripleEvidence | PathEvidence]:
        """Return evidence of the triples, each statement once."""
        onward = self._onward(found.edges, question)
        spelled = triples(self._store, found.edges)
        evidence: list[TripleEvidence | PathEvidence] = []
        shown: set[frozenset[int]] = set()
        for row, (triple, score) in enumerate(zip(spelled, (found.scores / UNIT).tolist(), strict=True)):
            for edges in [[triple, second] for second in onward.get(row, ())] or [[triple]]:
                said = frozenset(each.edge for each in edges)
                if said not in shown:
                    shown.add(said)
                    evidence.append(as_evidence(RETRIEVER, score, edges))
        return evidence

    def _onward(self, edges: EdgeBatch, question: Vectors) -> dict[int, list[Triple]]:
        """Return the best edges behind the mediator that some of the edges end in, by the row of these."""
        nodes, search = self._search()
        named = is_named(self._store, np.concatenate((edges.head, edges.tail))).reshape(2, -1)
        rows = np.flatnonzero(named[0] ^ named[1]) if self._through else np.zeros(0, np.int64)
        if not len(rows):
            return {}
        mediators = np.where(named[0], edges.tail, edges.head)[rows]
        further = continuations(self._store, edges.take(rows), mediators)
        scores = search.relations(question)[further.edges.relation] + nodes.of(question, further.edges.other)
        best = [some[np.lexsort((further.edges.edge[some], -scores[some]))][: self._through] for some in further.rows]
        return {
            row: triples(self._store, further.edges.take(some))
            for row, some in zip(rows.tolist(), best, strict=True)
            if len(some)
        }


def _is_freebase(relations: Sequence[str]) -> bool:
    """True if most relations look like Freebase's: domain, type and property, joined by dots."""
    return sum(relation.count(".") >= 2 for relation in relations) * 2 > len(relations)


RERANKER = "rerank"
_NO_COUNTS = ("parts", "first", "second")


Statement = tuple[int, ...]
"""Rows of the edges that make one statement: one edge, or two that meet in a mediator."""


@dataclass(eq=False)
class RerankRetriever:
    """Returns the k triples within some hops of the linked entities that fit the question best.

    The first reranker keeps the best relations, and of their triples the best; the second chooses among these. Both
    read a triple as `head → relation → tail`, by names, the relation as words with the last part of its namespace
    (`location.country.capital`: country capital). The score of a triple is the second's.

    At a hub, only so many edges of each relation are read, and relations are rated before any edge is; the trace has
    `truncated` if something was left out.

    Args:
        parts: the graph; the embedder makes the bi-encoder in place of a missing reranker.
        first: the light one; in the paper bge-reranker-base (`CrossEncoderReranker`).
        second: the strong one; in the paper bge-reranker-v2-minicpm-layerwise (`LayerwiseReranker`).
        k: triples.
        hops: distance from the linked entities (L).
        top_relations: relations that the first reranker keeps (k_r).
        top_triples: triples that it keeps (k_t).
        hub_cap: edges of one node, relation and direction that are read.
        max_nodes: nodes to expand after each hop, those behind the best relations.
        max_triples: triples that the first reranker rates.

    Raises:
        ConfigError: a setting is below 1.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Graph Reranker".
    Differs: the paper reads the whole neighbourhood, here there are limits. A triple that ends in a mediator, a node
    without a name of its own, is joined with each other edge of this node to a named one, and rated as one
    statement (`A → r1 → r2 → B`); a mediator is no hop.
    """

    parts: Parts
    first: Reranker | None = None
    second: Reranker | None = None
    k: int = 10
    hops: int = 2
    top_relations: int = 20
    top_triples: int = 100
    hub_cap: int = 100
    max_nodes: int = 1000
    max_triples: int = 500

    def __post_init__(self) -> None:
        counts = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _NO_COUNTS}
        at_least(1, "of the graph reranker keeps nothing", **counts)
        self._store = self.parts.store
        shared = BiEncoder(self.parts.embedder)  # which caches texts of the first reranker for the second
        self._first = self.first or shared
        self._second = self.second or shared
        self._limits = Limits(self.hub_cap, self.max_nodes, self.max_triples)

    def retrieve(self, request: Request) -> list[TripleEvidence | PathEvidence]:
        """Return the best triples; a path of two edges replaces one that ends in a mediator.

        Nothing is found without a linked entity.

        Raises:
            EntityNotFound: a linked entity is not in the store.
            ConfigError: the model of a reranker cannot be loaded.
        """
        question = request.question.text
        sources = list(dict.fromkeys(entity.id for entity in request.linked.entities))
        if not sources:
            return []

        def rate(relations: Int64) -> Scores:
            return self._first.score(question, [relation_text(self._store.relations[each]) for each in relations])

        around = neighbourhood(
            self._store, self._store.numbers(sources), self.hops, self.top_relations, rate, self._limits
        )
        edges, statements = self._statements(around.edges)
        texts = self._texts(edges, statements)
        rated = self._first.score(question, texts)
        sifted = _best(rated, self.top_triples)
        again = self._second is not self._first
        scores = self._second.score(question, [texts[at] for at in sifted]) if again else rated[sifted]
        chosen = _best(scores, self.k)
        request.note(
            RERANKER,
            {"entities": sources, "first": self._first.name, "second": self._second.name},
            {
                "relations": around.rated,
                "kept_relations": [self._store.relations[each] for each in around.relations],
                "triples": len(texts),
                "kept_triples": len(sifted),
                "found": len(chosen),
                "truncated": around.truncated,
            },
        )
        return self._evidence(edges, [(statements[sifted[at]], float(scores[at])) for at in chosen])

    def _statements(self, reached: EdgeBatch) -> tuple[EdgeBatch, list[Statement]]:
        """Return edges, and the statements that they make, in the order in which they were reached."""
        named = is_named(self._store, np.concatenate((reached.head, reached.tail))).reshape(2, -1)
        rows = np.flatnonzero(named[0] ^ named[1])
        further = continuations(self._store, reached.take(rows), np.where(named[0], reached.tail, reached.head)[rows])
        onward = dict(zip(rows.tolist(), further.rows, strict=True))
        count = len(reached)
        edges, _ = join([(reached, np.arange(count)), (further.edges, np.arange(len(further.edges)))], [0, 0])
        numbers = edges.edge.tolist()
        found: dict[tuple[int, int], Statement] = {}
        for row in range(count):
            number = numbers[row]
            further_rows = onward.get(row)
            if further_rows is None or not len(further_rows):
                found.setdefault((number, number), (row,))
                if len(found) >= self._limits.edges:
                    break
                continue
            for each in further_rows.tolist():
                other = numbers[count + each]
                found.setdefault((min(number, other), max(number, other)), (row, count + each))
            if len(found) >= self._limits.edges:
                break
        return edges, list(found.values())[: self._limits.edges]

    def _texts(self, edges: EdgeBatch, statements: list[Statement]) -> list[str]:
        """Write statements for the rerankers."""
        used = np.array([row for statement in statements for row in statement], np.int64)
        numbers = distinct(np.concatenate((edges.head[used], edges.tail[used])))
        names = dict(zip(numbers.tolist(), self._store.names_at(numbers), strict=True))
        words = {each: relation_text(self._store.relations[each]) for each in distinct(edges.relation[used]).tolist()}
        head, relation, tail = (column.tolist() for column in (edges.head, edges.relation, edges.tail))
        texts = []
        for statement in statements:
            row = statement[0]
            if len(statement) == 1:
                texts.append(f"{names[head[row]]} → {words[relation[row]]} → {names[tail[row]]}")
                continue
            last = statement[1]
            middle = head[row] if head[row] in (head[last], tail[last]) else tail[row]
            start, end = head[row] + tail[row] - middle, head[last] + tail[last] - middle
            texts.append(f"{names[start]} → {words[relation[row]]} → {words[relation[last]]} → {names[end]}")
        return texts

    def _evidence(self, edges: EdgeBatch, chosen: list[tuple[Statement, float]]) -> list[TripleEvidence | PathEvidence]:
        spelled = triples(self._store, edges.take(np.array([r for rows, _ in chosen for r in rows], np.int64)))
        each = iter(spelled)
        return [as_evidence(RERANKER, score, [next(each) for _ in rows]) for rows, score in chosen]


def _best(scores: Scores, k: int) -> list[int]:
    """Return the places of the k highest scores, highest first, equal ones in their order."""
    order: list[int] = np.argsort(-scores, kind="stable")[:k].tolist()
    return order
