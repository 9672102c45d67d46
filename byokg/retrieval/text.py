"""Text-based retrieval: the triples of the whole graph that read most like the question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path as FilePath
from threading import Lock

import numpy as np

from byokg.errors import ConfigError
from byokg.graph.dense_index import dense_names
from byokg.graph.store import EdgeBatch, GraphStore
from byokg.graph.traversal import select, triples
from byokg.index.embedder import Embedder, Vectors
from byokg.index.similarity import UNIT, Similarity
from byokg.retrieval.base import Request
from byokg.retrieval.mediators import continuations, is_named, joined, metapath
from byokg.retrieval.triple_search import ScoredEdges, TripleSearch, node_count
from byokg.types import PathEvidence, Triple, TripleEvidence

RETRIEVER = "text"

ON_FREEBASE, ELSEWHERE = 50, 10
"""Triples that the paper takes where text retrieval is all there is."""


class TextRetriever:
    """Returns the k triples whose head, relation and tail are together most similar to the question.

    The score of a triple is cos(q, head) + cos(q, relation) + cos(q, tail), in [-3, 3]; of equal ones the edge that
    the store numbers lower comes first. The result is exact for vectors in half precision, which is how they are
    kept, and a graph's size is hardly felt: see `TripleSearch`. Linked entities are not looked at.

    Vectors of names are those of the graph's dense index (`byokg graph embed`) where there is one for this embedder;
    otherwise they are computed at the first question.

    Args:
        store: the graph.
        embedder: compares question, names and relations.
        k: triples; None takes 50 on Freebase, told by its relations (`film.film.directed_by`), and 10 elsewhere, which
            is what the paper does where text retrieval is all there is.
        through: statements shown in place of a triple that ends in a mediator; 0 shows the triple as it is.
        most_names: names that are embedded where there is no index.
        cache: folder where vectors are kept from one time to the next; None keeps none.

    Raises:
        ConfigError: a setting is out of range.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Text-based Retrieval".
    Differs: a node without a name of its own (see `is_identifier`) scores 0, where its id would be embedded as if it
    said something. A triple that ends in one is shown with the other edges of this node, those that score highest.
    """

    def __init__(
        self,
        store: GraphStore,
        embedder: Embedder,
        k: int | None = 10,
        through: int = 3,
        most_names: int = 1_000_000,
        cache: FilePath | None = None,
    ) -> None:
        if k is None:
            k = ON_FREEBASE if _is_freebase(store.relations) else ELSEWHERE
        for name, value, lowest in (("k", k, 1), ("through", through, 0), ("most_names", most_names, 1)):
            if value < lowest:
                raise ConfigError(f"{name}={value} of the text retriever is too low; use {lowest} or more")
        self._store = store
        self._embedder = embedder
        self._k = k
        self._through = through
        self._most_names = most_names
        self._cache = cache
        self._made: tuple[Similarity, TripleSearch] | None = None
        self._lock = Lock()

    def retrieve(self, request: Request) -> list[TripleEvidence | PathEvidence]:
        """Return the best triples; a path of two edges stands for one that ends in a mediator.

        A question of which the embedder knows no word finds nothing; nor does a later round, which would find the same
        again.

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
        return evidence

    def _search(self) -> tuple[Similarity, TripleSearch]:
        with self._lock:  # threads that come while it is made wait, instead of making it again
            if self._made is None:
                names = dense_names(self._store, self._embedder, self._cache, most=self._most_names, layout="flat")
                nodes = Similarity(names, node_count(self._store))
                self._made = nodes, TripleSearch(self._store, self._embedder, nodes)
            return self._made

    def _evidence(self, found: ScoredEdges, question: Vectors) -> list[TripleEvidence | PathEvidence]:
        """Spell out what was found, each statement once."""
        onward = self._onward(found.edges, question)
        spelled = triples(self._store, found.edges)
        evidence: list[TripleEvidence | PathEvidence] = []
        shown: set[frozenset[int]] = set()
        for row, (triple, score) in enumerate(zip(spelled, (found.scores / UNIT).tolist(), strict=True)):
            paths = [joined(triple, second) for second in onward.get(row, ())]
            for path in paths:
                walked = frozenset(each.edge for each in path.triples)
                if walked not in shown:
                    shown.add(walked)
                    evidence.append(PathEvidence(RETRIEVER, score, path.source, metapath(path), (path.end,), (path,)))
            if not paths:
                evidence.append(TripleEvidence(RETRIEVER, score, triple))
        return evidence

    def _onward(self, edges: EdgeBatch, question: Vectors) -> dict[int, list[Triple]]:
        """Return the best edges behind the mediator that some of the edges end in, by the row of these."""
        nodes, search = self._search()
        named = is_named(self._store, np.concatenate((edges.head, edges.tail))).reshape(2, -1)
        rows = np.flatnonzero(named[0] ^ named[1]) if self._through else np.zeros(0, np.int64)
        if not len(rows):
            return {}
        mediators = np.where(named[0], edges.tail, edges.head)[rows]
        further = continuations(self._store, select(edges, rows), mediators)
        scores = search.relations(question)[further.edges.relation] + nodes.of(question, further.edges.other)
        best = [some[np.lexsort((further.edges.edge[some], -scores[some]))][: self._through] for some in further.rows]
        return {
            row: triples(self._store, select(further.edges, some))
            for row, some in zip(rows.tolist(), best, strict=True)
            if len(some)
        }


def _is_freebase(relations: Sequence[str]) -> bool:
    """Tell whether most relations are written as Freebase's: domain, type and property, joined by dots."""
    return sum(relation.count(".") >= 2 for relation in relations) * 2 > len(relations)
