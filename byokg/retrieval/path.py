"""Following proposed metapaths to their ends, and the shortest paths to answers that were guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

import numpy as np

from byokg.errors import GraphError, at_least
from byokg.graph.inverses import twin_relations, unite_step
from byokg.graph.pathql.query import Endpoint, NameTerm, connecting
from byokg.graph.paths import NO_TWINS, follow_all, paths_of
from byokg.linking.parts import Parts, RelationMatch
from byokg.retrieval.frontier import metapath
from byokg.retrieval.query_feedback import path_dead_end
from byokg.types import (
    INVERSE,
    EntityId,
    Evidence,
    Feedback,
    LinkedEntity,
    Metapath,
    Path,
    PathEvidence,
    ProposedPath,
    Request,
    best_first,
)

RETRIEVER = "path"

_MOST_PATHS = 200
"""Paths of one path query kept as evidence."""

_NOTED = 300
"""Ends with a concrete walk if edges have properties, such as years: a list lacks facts without them."""


@dataclass(eq=False)
class PathRetriever:
    """Walks each proposed metapath out of its start entity, or out of every linked one, and finds the shortest paths
    between linked entities and linked draft answers.

    Relations of a metapath that a language model wrote are matched to the graph's first. Its directions are a guess, so
    every combination of directions that reaches something is followed, the written directions first at each hop.
    Matches are recorded; a path with an unknown relation, or without ends, becomes `Feedback`. A path query is run
    unchanged, but for names in START and END that are those of linked entities.

    Args:
        parts: the graph, and the matcher of written relations to its own.
        max_ends: ends kept for one metapath, those of most walks first.
        shown: ends with a concrete walk.
        hub_cap: edges of one relation to walk out of one node at each hop, and of all relations on shortest paths; None
            walks all.
        max_frontier: nodes to extend after each hop, those of most walks first; None extends all.
        max_hops: edges in a metapath that a language model wrote; a longer one becomes `Feedback`.
        shortest: paths kept for each pair of an entity and a draft answer (k); 0 looks for none.
        shortest_hops: edges in such a path at most.
        anchors: entities, and draft answers, that such paths run between at most: the best candidate of each mention
            first, then the second of each.
        twins: whether a step is walked along the twin of its relation as well, which stores the same facts the other
            way (`graph/inverses.py`), and more ends have a walk if edges have properties. A ranking of answers takes
            both ways apart, as votes for them.

    Raises:
        ConfigError: a setting is out of range.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Path Retrieval".
    Differs: walks of a graph's own metapaths never enter another linked entity, since a topic entity is no
    answer; those that a language model wrote may, but never return to their start. Shortest paths are searched
    breadth first from both ends, since edges have no weights.
    """

    parts: Parts
    max_ends: int = 10_000
    shown: int = 10
    hub_cap: int | None = 10_000
    max_frontier: int | None = 100_000
    max_hops: int = 4
    shortest: int = 2
    shortest_hops: int = 3
    anchors: int = 10
    twins: bool = True

    def __post_init__(self) -> None:
        at_least(1, "keeps nothing", max_ends=self.max_ends, shown=self.shown, max_hops=self.max_hops)
        at_least(1, "keeps nothing", shortest_hops=self.shortest_hops, anchors=self.anchors)
        at_least(0, "is no number of paths", shortest=self.shortest)
        self._store, self._relations = self.parts.store, self.parts.relations
        self._twins = twin_relations(self._store) if self.twins else NO_TWINS

    def retrieve(self, request: Request) -> list[Evidence]:
        """Return an item for each metapath and start that reaches something, in the order proposed, then the shortest
        paths by pair, then what went wrong.

        Raises:
            EntityNotFound: a metapath starts at an entity that is not in the store.
            RelationNotFound: a metapath that is taken as it is names a relation that is not in the store.
        """
        found: list[Evidence] = []
        tied, problems, written = self._tied(request)
        for path, walked in zip(tied, self._walked(tied, request.linked.entities), strict=True):
            found += walked
            if not walked and not path.directed and request.linked.entities:
                starts = best_first(request.linked.entities)[: self.anchors]
                dead_end = path_dead_end(self._store, path.relations, starts)
                problems.append(_problem(path.relations, dead_end, written.get(path.relations)))
        for text in dict.fromkeys(query.text for query in request.artifacts.queries if query.language == "paths"):
            found += self._queried(text, request)
        return [*found, *self._connected(request), *problems]

    # Metapaths

    def _tied(self, request: Request) -> tuple[list[ProposedPath], list[Evidence], dict[Metapath, Metapath]]:
        """Return the proposed paths in the graph's relations, each once; the faults of others; what was written."""
        tied: dict[tuple[Metapath, EntityId | None], ProposedPath] = {}
        problems: list[Evidence] = []
        written: dict[Metapath, Metapath] = {}
        matches: dict[str, RelationMatch | None] = {}
        for path in request.artifacts.paths:
            if path.directed:
                tied.setdefault((path.relations, path.source), path)
                continue
            if len(path.relations) > self.max_hops:
                problems.append(_problem(path.relations, f"it has more than {self.max_hops} relations"))
                continue
            labels = [step.removeprefix(INVERSE) for step in path.relations]
            matches |= {label: self._relations.match(label) for label in labels if label not in matches}
            unknown = [label for label in dict.fromkeys(labels) if matches[label] is None]
            if unknown:
                near = "; ".join(
                    f"the graph has no relation {label!r}, nearest: {', '.join(self._relations.nearest(label))}"
                    for label in unknown
                )
                problems.append(_problem(path.relations, near))
                continue
            guessed = {
                label: match.relation for label in labels if (match := matches[label]) and match.method == "dense"
            }
            if guessed:
                told = (f"the graph has no relation {label!r}; {near} was walked" for label, near in guessed.items())
                problems.append(_problem(path.relations, "; ".join(told)))
            own = _in_relations(path, matches)
            tied.setdefault((own.relations, own.source), own)
            written.setdefault(own.relations, path.relations)
        if matches:
            got = {
                label: match and {"relation": match.relation, "method": match.method, "score": round(match.score, 4)}
                for label, match in matches.items()
            }
            request.note("path.relations", {"written": list(matches)}, {"matched": got})
        return list(tied.values()), problems, written

    def _walked(self, tied: Sequence[ProposedPath], entities: Sequence[LinkedEntity]) -> list[list[PathEvidence]]:
        """Return for each path an item for each start and each choice of directions that ends somewhere."""
        linked = list(dict.fromkeys(one.id for one in entities))
        starts = [linked if path.source is None else [path.source] for path in tied]
        ways: dict[tuple[EntityId, bool], dict[Metapath, None]] = {}
        for path, sources in zip(tied, starts, strict=True):
            for source in sources:
                ways.setdefault((source, path.directed), {}).update(dict.fromkeys(self._ways(path)))
        found = {
            (source, directed): self._followed(source, list(some), entities if directed else ())
            for (source, directed), some in ways.items()
        }
        return [
            [
                replace(item, score=path.score)
                for source in sources
                for way in self._ways(path)
                if (item := found[source, path.directed].get(way)) is not None
            ]
            for path, sources in zip(tied, starts, strict=True)
        ]

    def _ways(self, path: ProposedPath) -> list[Metapath]:
        """Return every choice of directions, the written ones first at each hop; a directed path is walked as it is.

        Of those that are the same by twins, the first.
        """
        if path.directed:
            return [path.relations]
        ways: dict[Metapath, Metapath] = {}
        for way in product(*((step, _invert_step(step)) for step in path.relations)):
            ways.setdefault(tuple(unite_step(step, self._twins) for step in way), way)
        return list(ways.values())

    def _followed(
        self, source: EntityId, ways: Sequence[Metapath], entities: Sequence[LinkedEntity]
    ) -> dict[Metapath, PathEvidence]:
        """Return what some metapaths lead to, those that end somewhere; they never come to other mentions' entities."""
        mention = {one.mention for one in entities if one.id == source}
        avoid = [source, *(one.id for one in entities if one.mention not in mention)]
        walks = follow_all(self._store, [source], ways, self.max_frontier, self.hub_cap, avoid, self._twins)
        walks = [each for each in walks if len(each.ends)]
        kept = [each.ends[: self.max_ends] for each in walks]
        ids = iter(self._store.ids(np.concatenate(kept)) if kept else ())
        shown = paths_of([(each, ends[: self.shown]) for each, ends in zip(walks, kept, strict=True)])
        if self.twins:
            noted = [
                at
                for at, paths in enumerate(shown)
                if len(kept[at]) > self.shown
                and all(path.triples[0].properties for path in paths)
                and len(walks[at].metapath) == 1
            ]
            further = paths_of([(walks[at], kept[at][self.shown : _NOTED]) for at in noted])
            for at, paths in zip(noted, further, strict=True):
                shown[at] += paths
        return {
            each.metapath: PathEvidence(
                retriever=RETRIEVER,
                score=0.0,
                source=source,
                relations=each.metapath,
                ends=tuple(islice(ids, len(ends))),
                paths=tuple(paths),
                truncated=each.truncated or len(ends) < len(each.ends),
                asked=True,
                walks=int(each.counts.sum()),
            )
            for each, ends, paths in zip(walks, kept, shown, strict=True)
        }

    # Path queries

    def _queried(self, text: str, request: Request) -> list[Evidence]:
        """Return the paths that a path query finds, those along the same relations from one node in one item."""
        from byokg.graph.pathql.evaluate import paths
        from byokg.graph.pathql.grammar import parse  # with the parser generator, which only texts need
        from byokg.graph.pathql.search import PathLimits

        try:
            query = parse(text)
            query = replace(query, start=self._ended(query.start, request), end=self._ended(query.end, request))
            if not (query.start.names or query.start.pattern or query.end.names or query.end.pattern):
                linked = tuple(NameTerm(id) for id in best_first(request.linked.entities)[: self.anchors])
                query = replace(query, start=replace(query.start, names=linked))
            found = paths(self._store, query, PathLimits(max_paths=_MOST_PATHS))
        except GraphError as error:
            request.note("path.query", {"query": text}, {"problem": str(error)})
            return [Feedback(RETRIEVER, 0.0, subject=text, problem=str(error))]
        groups: dict[tuple[EntityId, Metapath], list[Path]] = {}
        for path in (each.path for each in found):
            groups.setdefault((path.source, metapath(path)), []).append(path)
        request.note("path.query", {"query": text}, {"paths": len(found), "truncated": found.truncated})
        if not groups:
            return [Feedback(RETRIEVER, 0.0, subject=text, problem="the query is right, but finds no path")]
        return [
            PathEvidence(
                retriever=RETRIEVER,
                score=1.0,
                source=source,
                relations=relations,
                ends=tuple(dict.fromkeys(path.end for path in same)),
                paths=tuple(same[: self.shown]),
                truncated=found.truncated,
                asked=True,
            )
            for (source, relations), same in groups.items()
        ]

    def _ended(self, end: Endpoint, request: Request) -> Endpoint:
        """Return a start or end in which names of linked mentions are replaced by the ids of their candidates."""
        linked = (*request.linked.entities, *request.linked.drafts)
        ids: list[str] = []
        for name in end.names:
            said = {name.text.casefold(), name.text.replace("_", " ").casefold()}
            of_name = [one.id for one in linked if {one.id, one.name.casefold(), one.mention.text.casefold()} & said]
            ids += of_name or [name.text]
        return replace(end, names=tuple(NameTerm(id) for id in dict.fromkeys(ids))) if ids else end

    # Shortest paths

    def _connected(self, request: Request) -> list[PathEvidence]:
        """Return the shortest paths from linked entities to linked draft answers."""
        sources = best_first(request.linked.entities)[: self.anchors]
        targets = best_first(request.linked.drafts)[: self.anchors]
        if not sources or not targets or self.shortest == 0:
            return []
        from byokg.graph.pathql.evaluate import paths
        from byokg.graph.pathql.search import PathLimits

        query = connecting(sources, targets, self.shortest, self.shortest_hops)
        most = self.shortest * len(sources) * len(targets)
        result = paths(self._store, query, PathLimits(max_paths=most + 1, hub_cap=self.hub_cap))
        pairs: dict[tuple[EntityId, EntityId], list[Path]] = {
            (source, target): [] for source in sources for target in targets
        }
        for each in result:
            pairs[each.start, each.end].append(each.path)
        found = [
            PathEvidence(
                retriever=RETRIEVER,
                score=1 / len(path.triples),
                source=path.source,
                relations=metapath(path),
                ends=(path.end,),
                paths=(path,),
                truncated=result.truncated and len(same) < self.shortest,
            )
            for same in pairs.values()
            for path in same
            if path.triples  # a draft answer that is a linked entity, too, needs no path
        ]
        request.note("path.shortest", {"entities": sources, "drafts": targets}, {"paths": len(found)})
        return found


def _problem(path: Metapath, problem: str, written: Metapath | None = None) -> Feedback:
    """Return feedback on a path; one that was written otherwise is marked as substituted."""
    subject = " -> ".join(path)
    if written is not None and written != path:
        subject = f"{' -> '.join(written)} (taken as {subject})"
    return Feedback(retriever=RETRIEVER, score=0.0, subject=subject, problem=problem)


def _in_relations(path: ProposedPath, matches: dict[str, RelationMatch | None]) -> ProposedPath:
    """Return a path in the graph's relations; a worse match of names scores lower."""
    steps, score = [], path.score
    for step in path.relations:
        match = matches[step.removeprefix(INVERSE)]
        assert match is not None
        steps.append(f"{INVERSE}{match.relation}" if step.startswith(INVERSE) else match.relation)
        score *= match.score
    return replace(path, relations=tuple(steps), score=score)


def _invert_step(step: str) -> str:
    return step.removeprefix(INVERSE) if step.startswith(INVERSE) else f"{INVERSE}{step}"
