"""Graph reranker: triples around the linked entities, sifted by a light reranker and chosen by a strong one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from byokg.errors import at_least
from byokg.graph.int_sets import distinct
from byokg.graph.store import EdgeBatch, GraphStore
from byokg.graph.traversal import join, select, triples
from byokg.index.embedders import Embedder
from byokg.index.rerankers import BiEncoder, Reranker, Scores
from byokg.linking.relation_meaning import relation_text
from byokg.retrieval.base import Request
from byokg.retrieval.frontier import Limits, as_evidence, continuations, is_named, neighbourhood
from byokg.types import PathEvidence, TripleEvidence

RETRIEVER = "rerank"

Int64 = npt.NDArray[np.int64]

Statement = tuple[int, ...]
"""Rows of the edges that make one statement: one edge, or two that meet in a mediator."""


class RerankRetriever:
    """Returns the k triples within some hops of the linked entities that fit the question best.

    The first reranker keeps the best relations, and of their triples the best; the second chooses among these. Both
    read a triple as `head → relation → tail`, by names, the relation as words with the last part of its namespace
    (`location.country.capital`: country capital). The score of a triple is the second's.

    At a hub, only so many edges of each relation are read, and relations are rated before any edge is; the trace says
    `truncated` where something was left out.

    Args:
        store: the graph.
        embedder: makes the bi-encoder that stands for a reranker that is not given.
        first: the light one; in the paper bge-reranker-base (`CrossEncoderReranker`).
        second: the strong one; in the paper bge-reranker-v2-minicpm-layerwise (`LayerwiseReranker`).
        k: triples.
        hops: how far from the linked entities (L).
        top_relations: relations that the first reranker keeps (k_r).
        top_triples: triples that it keeps (k_t).
        hub_cap: edges of one node, relation and direction that are read.
        max_nodes: nodes to go on from after each hop, those behind the best relations.
        max_triples: triples that the first reranker rates.

    Raises:
        ConfigError: a setting is below 1.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Graph Reranker".
    Differs: the paper reads the whole neighbourhood, here there are limits. A triple that ends in a mediator, a node
    without a name of its own, is joined with each other edge of this node that leads to a name, and rated as one
    statement (`A → r1 → r2 → B`); a mediator is no hop.
    """

    def __init__(
        self,
        store: GraphStore,
        embedder: Embedder,
        first: Reranker | None = None,
        second: Reranker | None = None,
        k: int = 10,
        hops: int = 2,
        top_relations: int = 20,
        top_triples: int = 100,
        hub_cap: int = 100,
        max_nodes: int = 1000,
        max_triples: int = 500,
    ) -> None:
        nothing = "of the graph reranker keeps nothing"
        at_least(1, nothing, k=k, hops=hops, top_relations=top_relations, top_triples=top_triples)
        at_least(1, nothing, hub_cap=hub_cap, max_nodes=max_nodes, max_triples=max_triples)
        self._store = store
        shared = BiEncoder(embedder)  # which keeps what the first has encoded for the second
        self._first = first or shared
        self._second = second or shared
        self._k = k
        self._hops = hops
        self._top_relations = top_relations
        self._top_triples = top_triples
        self._limits = Limits(hub_cap, max_nodes, max_triples)

    def retrieve(self, request: Request) -> list[TripleEvidence | PathEvidence]:
        """Return the best triples; a path of two edges stands for one that ends in a mediator.

        Nothing is found where no entity is linked.

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
            self._store, self._store.numbers(sources), self._hops, self._top_relations, rate, self._limits
        )
        edges, statements = self._statements(around.edges)
        texts = self._texts(edges, statements)
        sifted = _best(self._first.score(question, texts), self._top_triples)
        scores = self._second.score(question, [texts[at] for at in sifted])
        chosen = _best(scores, self._k)
        request.note(
            RETRIEVER,
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
        further = continuations(
            self._store, select(reached, rows), np.where(named[0], reached.tail, reached.head)[rows]
        )
        onward = dict(zip(rows.tolist(), further.rows, strict=True))
        count = len(reached)
        edges, _ = join([(reached, np.arange(count)), (further.edges, np.arange(len(further.edges)))], [0, 0])
        numbers = edges.edge.tolist()
        found: dict[tuple[int, ...], Statement] = {}
        for row in range(count):
            statements: list[Statement] = [(row, count + each) for each in onward.get(row, _NONE).tolist()]
            for statement in statements or [(row,)]:
                found.setdefault(tuple(sorted(numbers[each] for each in statement)), statement)
        return edges, list(found.values())[: self._limits.edges]

    def _texts(self, edges: EdgeBatch, statements: list[Statement]) -> list[str]:
        """Write statements for the rerankers."""
        used = np.array([row for statement in statements for row in statement], np.int64)
        numbers = distinct(np.concatenate((edges.head[used], edges.tail[used])))
        nodes = self._store.nodes(self._store.ids(numbers))
        names = {number: node.name for number, node in zip(numbers.tolist(), nodes, strict=True)}
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
        spelled = triples(self._store, select(edges, np.array([r for rows, _ in chosen for r in rows], np.int64)))
        each = iter(spelled)
        return [as_evidence(RETRIEVER, score, [next(each) for _ in rows]) for rows, score in chosen]


_NONE = np.zeros(0, np.int64)


def _best(scores: Scores, k: int) -> list[int]:
    """Return the places of the k highest scores, highest first, equal ones in their order."""
    order: list[int] = np.argsort(-scores, kind="stable")[:k].tolist()
    return order
