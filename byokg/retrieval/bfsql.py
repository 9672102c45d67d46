"""The part of the graph around the linked entities, as a BFS-QL request selects it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float64, Int64
from byokg.errors import RequestInvalid, at_least
from byokg.graph.bfsql.engine import grounded
from byokg.graph.bfsql.protocol import (
    BfsRequest,
    EdgeFilter,
    SearchScope,
    Subgraph,
    ValueFilter,
    breadth_first,
    read_request,
)
from byokg.graph.guard.allowlist import nearest_names
from byokg.graph.sorted_ids import distinct
from byokg.graph.traversal import triples
from byokg.index.embedders import exact
from byokg.linking.llm_linker import BFSQL_HOPS
from byokg.linking.parts import Parts
from byokg.text.names import normalize_label
from byokg.types import (
    NO_PROPERTIES,
    EntityId,
    Evidence,
    Feedback,
    LinkedEntity,
    Mention,
    NodeEvidence,
    Request,
    TripleEvidence,
)

_QUESTIONS_KEPT = 64
"""Questions of which it is remembered how near the relations are: each comes once a round."""

NAME = "bfsql"


@dataclass(eq=False)
class BfsqlRetriever:
    """Runs the KG-Linker's BFS-QL request; without one, a request for the linked entities.

    The request decides the nodes and edges of the subgraph, and their priority. Evidence of the selected ones comes in
    full, nearest to the seeds first, and of equally near ones the edges whose relation is most similar to the question.
    Edges that only connect the subgraph follow as stubs.

    A written request names its seeds, which are linked like mentions. Its `max_edges`, `max_nodes` and `limit` lower
    the bounds set here; pages and budgets belong to responses and are ignored. A malformed request, an unknown seed, an
    unknown relation or type, and too many hops become feedback.

    Args:
        parts: the graph; the embedder compares relations with the question, the entity linker links seeds.
        max_hops: edges from a seed, of a request of our own; of a written one at most.
        predicates: relations shown in full, in a request of our own: those most similar to the question. On the dev
            split of WebQSP 20 bring an answer more often than 10, or than twice the edges.
        max_edges: edges in full, at most.
        max_stubs: edges as stubs, at most.
        max_nodes: nodes with properties, at most.
        max_degree: nodes with more edges are not walked through, unless they are seeds.

    Source: "A BFS-based graph query language" (BFS-QL).
    """

    parts: Parts
    max_hops: int = BFSQL_HOPS
    predicates: int = 20
    max_edges: int = 100
    max_stubs: int = 20
    max_nodes: int = 20
    max_degree: int = 500

    def __post_init__(self) -> None:
        at_least(1, "reaches nothing", max_hops=self.max_hops, predicates=self.predicates, max_degree=self.max_degree)
        at_least(
            0, "is no number of items", max_edges=self.max_edges, max_stubs=self.max_stubs, max_nodes=self.max_nodes
        )
        self._store = store = self.parts.store
        self._vectors = exact(self.parts.embedder.encode([normalize_label(label) for label in store.relations]))
        self._numbers = {label: number for number, label in enumerate(store.relations)}
        self._ranked = lru_cache(_QUESTIONS_KEPT)(self._likeness)

    def retrieve(self, request: Request) -> list[Evidence]:
        """Return feedback, edges in full, nodes with properties, and stubs, each kind best first."""
        written, feedback = self._written(request)
        asked = written or self._own(request)
        if asked is None:
            return list(feedback)
        numbers = self._store.numbers([EntityId(seed) for seed in asked.seeds])
        subgraph = breadth_first(self._store, numbers, SearchScope.of(asked, asked.max_hops))
        likeness, rank = self._ranked(request.question.text)
        filtered = self._filtered(asked, subgraph, rank)
        full, stubs = self._rows(filtered, subgraph, rank)
        matching = self._matching(filtered, subgraph)
        found = self._edges(subgraph, full, stubs, likeness, np.flatnonzero(matching))
        nodes, more_nodes = self._nodes(filtered, subgraph, full)
        left_out = {
            "edges_in_full": int(matching.sum()) - len(full),
            "stubs": int((~matching).sum()) - len(stubs),
            "nodes_in_full": more_nodes,
        }
        request.note(
            NAME,
            {"request": {**filtered.model_dump(mode="json", exclude_defaults=True), "max_hops": filtered.max_hops}},
            {
                "nodes": len(subgraph.nodes),
                "edges": len(subgraph.edges),
                "edges_in_full": len(full),
                "stubs": len(stubs),
                "nodes_in_full": len(nodes),
                **({"left_out": left_out} if any(left_out.values()) else {}),
            },
        )
        return [*feedback, *found[: len(full)], *nodes, *found[len(full) :]]

    # The request

    def _own(self, request: Request) -> BfsRequest | None:
        """Return a request around the linked entities, if there are any."""
        seeds = _best(request.linked.entities)
        if not seeds:
            return None
        return BfsRequest(seeds=tuple(seeds), max_hops=self.max_hops, max_degree=self.max_degree)

    def _written(self, request: Request) -> tuple[BfsRequest | None, list[Feedback]]:
        """Read the request that the KG-Linker wrote, if it has a seed; its names become those of the graph."""
        text = request.artifacts.bfsql
        if text is None:
            return None, []
        try:
            written = read_request(BfsRequest, text)
        except RequestInvalid as error:
            return None, [_feedback(text, str(error))]
        problems = []
        seeds: dict[EntityId, None] = {}
        for seed, candidates in zip(written.seeds, self._linked(written.seeds, request), strict=True):
            if candidates:
                seeds[candidates[0].id] = None
            else:
                problems.append(f"no node is called {seed!r}; seeds are names as the graph or the question spells them")
        written, unheld = grounded(self._store, written)
        types, more = self._types(written)
        predicates, still_more = self._written_predicates(written)
        if written.max_hops > self.max_hops:
            problems.append(
                f"max_hops {written.max_hops} is above the limit: {self.max_hops} were walked; "
                "to see further, ask from the nodes that they lead to"
            )
        bounded = written.model_copy(
            update={
                "seeds": tuple(seeds),
                "max_hops": min(written.max_hops, self.max_hops),
                "max_degree": min(written.max_degree or self.max_degree, self.max_degree),
                "node_filter": types,
                "edge_filter": predicates,
                **dict.fromkeys(("node_types", "predicates", "cursor", "budget_tokens")),
                "offset": 0,
            }
        )
        feedback = [_feedback(text, problem) for problem in (*problems, *more, *unheld, *still_more)]
        return (bounded if seeds else None), feedback

    def _linked(self, seeds: Sequence[str], request: Request) -> list[tuple[LinkedEntity, ...]]:
        """Link the seeds; a name that was linked as a mention already means the same."""
        known: dict[str, tuple[LinkedEntity, ...]] = {}
        for entity in request.linked.entities:
            known.setdefault(entity.mention.text.casefold(), (entity,))
        asked = [seed for seed in seeds if seed.casefold() not in known]
        found = self.parts.entities.link_all([Mention(seed) for seed in asked], request.question.text)
        linked = dict(zip(asked, found, strict=True))
        return [known.get(seed.casefold()) or linked[seed] for seed in seeds]

    def _types(self, written: BfsRequest) -> tuple[ValueFilter | None, list[str]]:
        if written.full_types is None:
            return written.node_filter, []
        known = self._store.schema().node_types
        problems = [
            f"no entity type {name!r} in the graph{_near(name, known)}"
            for name in sorted(written.full_types)
            if name not in known
        ]
        types = tuple(sorted(written.full_types))
        return ValueFilter(entity_types=types, properties=written.full_values or None), problems

    def _written_predicates(self, written: BfsRequest) -> tuple[EdgeFilter | None, list[str]]:
        if written.full_predicates is None:
            return None, []
        found, problems = [], []
        for name in sorted(written.full_predicates):
            match = self.parts.relations.match(name)
            if match is not None:
                found.append(match.relation)
            else:
                problems.append(f"no predicate {name!r} in the graph{_near(name, self._store.relations)}")
        return EdgeFilter(predicates=tuple(dict.fromkeys(found))), problems

    def _filtered(self, request: BfsRequest, subgraph: Subgraph, rank: Int64) -> BfsRequest:
        """Give a request without any filter those that the question asks for."""
        if request.topology_only:
            nothing: dict[str, object] = {
                "node_filter": ValueFilter(entity_types=()),
                "edge_filter": EdgeFilter(predicates=()),
            }
            return request.model_copy(update=nothing)
        if request.full_predicates is not None or request.full_types is not None or request.full_values:
            return request
        present = distinct(subgraph.edges.relation)
        order = np.argsort(rank[present])[: self.predicates]
        names = tuple(self._store.relations[number] for number in present[order].tolist())
        return request.model_copy(update={"edge_filter": EdgeFilter(predicates=names)})

    # Selected items

    def _likeness(self, question: str) -> tuple[Float64, Int64]:
        """Return how near each relation is to the question, in [0, 1], and its place in that order: (R,) and (R,)."""
        asked = exact(self.parts.embedder.encode([normalize_label(question)])[0])
        likeness: Float64 = np.clip(self._vectors @ asked, 0.0, 1.0)
        rank = np.empty(len(likeness), np.int64)
        rank[np.argsort(-likeness, kind="stable")] = np.arange(len(likeness))
        return likeness, rank

    def _rows(self, request: BfsRequest, subgraph: Subgraph, rank: Int64) -> tuple[Int64, Int64]:
        """Return the edges shown in full and as stubs, as positions among those of the subgraph, best first."""
        relation, edge = subgraph.edges.relation, subgraph.edges.edge
        near = np.minimum(subgraph.hops[subgraph.edges.head], subgraph.hops[subgraph.edges.tail])
        order = near * len(rank) + rank[relation]
        matters = self._matching(request, subgraph)
        full, stubs = np.flatnonzero(matters), np.flatnonzero(~matters)
        edges = min(len(full), self.max_edges, request.max_edges or len(full))
        left = min(self.max_stubs, (request.max_edges or len(order)) - edges)
        return full[_first(order[full], edge[full], edges)], stubs[_first(order[stubs], edge[stubs], left)]

    def _matching(self, request: BfsRequest, subgraph: Subgraph) -> npt.NDArray[np.bool_]:
        """Return for each edge of the subgraph whether it matches the filter of a request: (E,)."""
        wanted = request.full_predicates
        matter = np.full(len(self._numbers), wanted is None)
        matter[[self._numbers[label] for label in sorted(wanted or ()) if label in self._numbers]] = True
        return matter[subgraph.edges.relation]

    # Evidence

    def _edges(
        self, subgraph: Subgraph, full: Int64, stubs: Int64, likeness: Float64, matching: Int64
    ) -> list[Evidence]:
        """Return the edges in full, each with how many of the matching ones are left out beside it, and the stubs."""
        inverse, left_out = _beside(subgraph, full, matching)
        batch = subgraph.batch(np.concatenate((full, stubs)))
        scores = np.round(likeness[batch.relation], 6).tolist()
        found: list[Evidence] = []
        for at, triple in enumerate(triples(self._store, batch)):
            if at < len(full):
                found.append(TripleEvidence(NAME, scores[at], triple, inverse=inverse[at], left_out=left_out[at]))
            else:
                found.append(TripleEvidence(NAME, 0.0, replace(triple, properties=NO_PROPERTIES), stub=True))
        return found

    def _nodes(self, request: BfsRequest, subgraph: Subgraph, full: Int64) -> tuple[list[Evidence], int]:
        """Return the nodes with properties, the seeds first, then the ends of the edges in full; and how many more."""
        ends = np.stack((subgraph.edges.head[full], subgraph.edges.tail[full]), axis=1).ravel()
        seeds = np.flatnonzero(subgraph.hops == 0)
        places = list(dict.fromkeys(np.concatenate((seeds, ends)).tolist()))
        nodes = self._store.nodes(self._store.ids(subgraph.nodes[np.array(places, np.int64)]))
        kept = [node for node in nodes if node.properties and request.shows_in_full(node)]
        most = min(self.max_nodes, request.most_nodes or len(kept))
        return [NodeEvidence(NAME, 0.0, node) for node in kept[:most]], max(0, len(kept) - most)


def _best(entities: Iterable[LinkedEntity]) -> list[EntityId]:
    """Return the best candidates of each mention: those whose score none of its others exceeds."""
    best: dict[Mention, float] = {}
    for entity in entities:
        best[entity.mention] = max(best.get(entity.mention, 0.0), entity.score)
    return list(dict.fromkeys(entity.id for entity in entities if entity.score == best[entity.mention]))


def _first(order: Int64, edge: npt.NDArray[np.integer], count: int) -> Int64:
    """Return the places of the `count` lowest of `order`, lowest first, equal ones by edge number."""
    places = np.arange(len(order))
    if count < len(order):  # sorting all edges around a hub would take longer than finding them
        places = np.flatnonzero(order <= np.partition(order, count)[count])
    return places[np.lexsort((edge[places], order[places]))][:count]


def _beside(subgraph: Subgraph, kept: Int64, all_: Int64) -> tuple[list[bool], list[int]]:
    """Return for each kept edge whether its tail is nearer to the seeds, and how many edges are not kept that have the
    same relation and direction at the same nearer node: (K,) and (K,).
    """
    edges = subgraph.edges
    inverse = subgraph.hops[edges.tail] < subgraph.hops[edges.head]
    near = np.where(inverse, edges.tail, edges.head).astype(np.int64)
    key = (near << 32 | edges.relation.astype(np.int64)) << 1 | inverse
    groups, group = np.unique(key[all_], return_inverse=True)
    missing = np.bincount(group, minlength=len(groups))
    place = np.searchsorted(groups, key[kept])
    np.subtract.at(missing, place, 1)
    return inverse[kept].tolist(), missing[place].tolist()


def _feedback(subject: str, problem: str) -> Feedback:
    return Feedback(NAME, 0.0, subject, problem)


def _near(name: str, known: Iterable[str]) -> str:
    near = nearest_names(name, known)
    return f"; nearest: {', '.join(map(repr, near))}" if near else ""
