"""A language model walks the graph: at each hop it selects relations to follow, then entities to go on from.

It chooses among the relations nearest to the question (`RelationRanker`), as many as its prompt has room for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache

from byokg.errors import ConfigError, at_least
from byokg.graph.store import GraphStore
from byokg.index.embedders import Embedder, compare_rows, exact
from byokg.linking.parts import Parts
from byokg.llm.messages import prompt_messages
from byokg.llm.parsing import read_list
from byokg.llm.reply_blocks import blocks, reply_schema
from byokg.llm.shown_names import ShownNames
from byokg.retrieval.frontier import Frontier, TooMany, expand_relations
from byokg.retrieval.verbalize import names_of, verbalize
from byokg.text.names import normalize_name, on_one_line, relation_text
from byokg.types import (
    EntityId,
    Evidence,
    Feedback,
    Mention,
    Node,
    PathEvidence,
    Request,
    RowsEvidence,
    TripleEvidence,
    best_first,
)

_HELD = 64
"""Cached questions with distances of relations: each is used several times."""


class RelationRanker:
    """Orders relations by how near their words are to a question's."""

    def __init__(self, store: GraphStore, embedder: Embedder) -> None:
        self._labels = store.relations
        self._embedder = embedder
        self._vectors = exact(embedder.encode([relation_text(label) for label in self._labels]))
        self._near = lru_cache(_HELD)(self._nearness)

    def ranked(self, question: str, counts: Sequence[Mapping[int, object]]) -> list[list[int]]:
        """Return the relation numbers of each node, the nearest first, equally near ones by their labels.

        Args:
            question: its text.
            counts: what each node's relations count, by relation number.
        """
        nearness = self._near(question)
        return [sorted(of, key=lambda number: (-nearness[number], self._labels[number])) for of in counts]

    def _nearness(self, question: str) -> list[float]:
        nearness: list[float] = compare_rows(self._vectors, exact(self._embedder.encode([question])[0])).tolist()
        return nearness


def list_relations(
    names: Sequence[str], relations: Sequence[Sequence[str]], budget_tokens: int, count: Callable[[str], int]
) -> tuple[str, int]:
    """List the relations of each entity, the first of each before the second of any, as many as fit.

    Args:
        names: of N entities; one without relations is left out.
        relations: labels for each, the most important first: (N,) sequences.
        budget_tokens: largest size of the text.
        count: tokens of a text.

    Returns:
        The text, and the number of relations left out, which it also states for each entity.
    """
    relations = [list(map(on_one_line, of)) for of in relations]
    shown = [0] * len(names)
    left = budget_tokens - sum(count(f"{name}\n  … and 999 more\n") for name in names)
    longest = max(map(len, relations), default=0)
    for at, place in ((at, place) for place in range(longest) for at in range(len(names))):
        if place < len(relations[at]):
            left -= count(f"  {relations[at][place]}\n")
            if left < 0:
                break
            shown[at] += 1
    lines = []
    for name, of, many in zip(names, relations, shown, strict=True):
        if of:
            lines += [name, *(f"  {relation}" for relation in of[:many])]
            lines += [f"  … and {len(of) - many:,} more"] if many < len(of) else []
    return "\n".join(lines), sum(map(len, relations)) - sum(shown)


RETRIEVER = "agentic"
RELATION_STAGE = "relation_selection"
ENTITY_STAGE = "entity_selection"
RANKING_STAGE = "relation_ranking"

_LONGEST_NAME = 100
"""Characters of an entity's name that stand above its relations."""

_EXPLORED = 30
"""Entities that a prompt names as explored, the last ones."""

_LISTED = 30
"""Relations of one entity that a prompt lists, those nearest to the question."""

_SHOWN = 10
"""Rows, and ends of a path, that a prompt for relations shows."""

_ABSENT = re.compile(r"\W*not in (?:the |this )?(?:knowledge )?graph\b.*", re.IGNORECASE)
"""Reply of the model if the graph lacks the answer."""


def _is_absent(reply: str, tag: str) -> bool:
    """True if a reply, or its list, states that the graph lacks the answer."""
    written = [line for text in (reply, *blocks(reply, tag)) for line in text.strip().splitlines()]
    return any(map(_ABSENT.fullmatch, written))


@dataclass(eq=False)
class AgenticRetriever:
    """Explores the graph from linked entities and drafts; a language model selects relations and entities.

    The model sees the relations of all entities of a hop in one call, those nearest to the question if not all fit, and
    selects; their edges are fetched both ways, through mediators. It then sees the triples found, with the context of
    earlier rounds, and selects the next entities, or finishes. Its selections are matched to existing relations and
    nodes, or dropped with a step in the trace.

    Args:
        parts: language model and prompts; the embedder ranks relations by similarity to the question, the entity linker
            links selected entities that were not shown.
        iterations: hops at most (T_A).
        starts: entities to start from at most: the best candidate of each mention, then of each draft answer, then
            the second ones.
        relations_per_entity: relations followed from one entity at most.
        next_entities: entities to expand after a hop, as many as the prompt allows.
        compared: as many if the question compares them; more are left out.
        max_triples: triples kept of one hop at most.
        calls: calls of the model in one round; None sets no limit. If they run out after entities were selected, the
            embedder selects the relations of one more hop.
        hub_cap: edges of one relation and direction at one entity from which on none is read.
        relation_tokens: budget of the relations in a prompt.

    Raises:
        ConfigError: a setting is out of range.

    Source: ByoKG-RAG (arXiv:2507.04127v1), Algorithm 1, Figures 8 and 9.
    Differs: relations of all entities of a hop are selected in one call, the paper has one call for each entity; both
    directions are followed; there is no call after the last hop, since no hop would use it; calls are limited; the
    model may select nothing, may report that the graph lacks the answer, and sees the explored entities.
    """

    parts: Parts
    iterations: int = 3
    starts: int = 10
    relations_per_entity: int = 5
    next_entities: int = 3
    compared: int = 20
    max_triples: int = 50
    calls: int | None = 5
    hub_cap: int = 10_000
    relation_tokens: int = 2000

    def __post_init__(self) -> None:
        counts = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("parts", "calls")}
        at_least(1, "explores nothing", **counts)
        if self.calls is not None and self.calls < 0:
            raise ConfigError(f"calls={self.calls} is no number of calls; use 0 or more, or null for no limit")
        self.compared = max(self.compared, self.next_entities)
        self._model, self._store = self.parts.model, self.parts.store
        self._ranker = RelationRanker(self._store, self.parts.embedder)

    def retrieve(self, request: Request) -> list[Evidence]:
        """Return the triples found, hop by hop, of each hop those of the relation selected first.

        A triple's score is 1 / n for the n-th relation selected in its hop; it counts as requested if the model
        selected its relation, and has the number of edges beside it that `max_triples` left out. Feedback names the
        relations that were not followed from a hub.

        Raises:
            LlmError: the model gave no usable reply.
            EntityNotFound: an entity was linked that is not in the store.
        """
        walk = _Exploration(request, followed=_followed(request))
        standing = best_first(request.linked.entities, request.linked.drafts)[: self.starts]
        for hop in range(1, self.iterations + 1):
            if not standing:
                break
            walk.explored |= dict.fromkeys(standing)
            found = self._follow(walk, hop, standing)
            if not found or walk.absent or walk.finished or hop == self.iterations or not self._may_ask(walk):
                break
            standing = self._next(walk, hop)
        return walk.found

    def _may_ask(self, walk: _Exploration) -> bool:
        return self.calls is None or walk.calls < self.calls

    def _follow(self, walk: _Exploration, hop: int, standing: Sequence[EntityId]) -> bool:
        """Follow the selected relations of the current entities; True if that found anything."""
        labels = self._store.relations
        frontier = Frontier.of(self._store, standing)
        ranked = self._ranker.ranked(walk.request.question.text, frontier.counts)
        given: dict[str, object] = {"hop": hop, "entities": list(standing)}
        if self._may_ask(walk):
            stage, (chosen, dropped, left_out) = RELATION_STAGE, self._selected(walk, frontier, ranked)
            given["left_out"] = left_out
        else:
            stage, dropped = RANKING_STAGE, []
            chosen = [of[: self.relations_per_entity] for of in ranked]
        known = [*walk.explored, *(one.id for one in (*walk.request.linked.entities, *walk.request.linked.drafts))]
        found = expand_relations(self._store, frontier, chosen, self.max_triples, self.hub_cap, dict.fromkeys(known))
        new = [(triple, place) for triple, place in found.triples if triple.edge not in walk.edges]
        walk.edges |= {triple.edge for triple, _ in new}
        for triple, place in new:
            inverse, left_out = found.cut.get(triple.edge, (False, 0))
            walk.found.append(
                TripleEvidence(
                    RETRIEVER,
                    1 / (1 + place),
                    triple=triple,
                    asked=stage == RELATION_STAGE,
                    inverse=inverse,
                    left_out=left_out,
                )
            )
        walk.found += self._hubs(found.too_many)
        walk.ends |= dict.fromkeys(found.ends)
        for id, of in zip(standing, chosen, strict=True):
            walk.followed[id] = list(dict.fromkeys([*walk.followed.get(id, []), *(labels[n] for n in of)]))
        got = {
            "relations": {id: [labels[n] for n in of] for id, of in zip(standing, chosen, strict=True) if of},
            "dropped": dropped,
            "triples": len(new),
            "left_out": found.left_out,
            "too_many": [
                {"entity": one.id, "relation": labels[one.relation], "inverse": one.inverse, "count": one.count}
                for one in found.too_many
            ],
            **({"absent": True} if walk.absent else {}),
            **({"finished": True} if walk.finished else {}),
        }
        walk.request.note(stage, given, got)
        return bool(new)

    def _hubs(self, too_many: Sequence[TooMany]) -> list[Feedback]:
        """Return feedback on relations that were not followed, with an alternative."""
        ids = list(dict.fromkeys(one.id for one in too_many))
        names = dict(zip(ids, self._names(ids), strict=True))
        labels = self._store.relations
        return [
            Feedback(
                RETRIEVER,
                0.0,
                subject=f"{names[one.id]} {'←' if one.inverse else '→'} {labels[one.relation]}",
                problem=f"{one.count:,} edges are too many to look at; start from another entity, or count in a query",
            )
            for one in too_many
        ]

    def _selected(
        self, walk: _Exploration, frontier: Frontier, ranked: Sequence[Sequence[int]]
    ) -> tuple[list[list[int]], list[str], int]:
        """Let the model select relations.

        Returns:
            For each entity the numbers of its selected relations, in the order written; selections that match none of
            them; number of relations left out for lack of room.
        """
        labels = self._store.relations
        text, left_out = list_relations(
            self._names(frontier.ids),
            [[labels[number] for number in of[:_LISTED]] for of in ranked],
            self.relation_tokens,
            self.parts.count_tokens,
        )
        reply = self._ask(
            walk,
            "relation_selection",
            RELATION_STAGE,
            limit=str(self.relations_per_entity),
            graph_context=self._requested(walk.request),
            relations=text,
        )
        chosen: list[list[int]] = [[] for _ in frontier.ids]
        dropped = []
        numbers = {labels[number]: number for counts in frontier.counts for number in counts}
        listing = read_list(reply, "selected", bare=True, shown=text, known=ShownNames(numbers))
        written_ones = listing.items
        walk.finished = listing.finished
        walk.absent = _is_absent(reply, "selected")
        for written in written_ones:
            match = self.parts.relations.match(written)
            at = numbers.get(match.relation) if match is not None else None
            having = [of for of, counts in zip(chosen, frontier.counts, strict=True) if at is not None and at in counts]
            for of in having:
                if at is not None and at not in of and len(of) < self.relations_per_entity:
                    of.append(at)
            if not having:
                dropped.append(written)
        return chosen, dropped, left_out

    def _next(self, walk: _Exploration, hop: int) -> list[EntityId]:
        """Let the model select the next entities; none if it finishes, or names nothing new."""
        request = walk.request
        shown = self.parts.context(request.context.add(request.artifacts, request.linked, [request.found, walk.found]))
        reply = self._ask(
            walk,
            "entity_selection",
            ENTITY_STAGE,
            limit=str(self.next_entities),
            most=str(self.compared),
            graph_context=shown,
        )
        listing = read_list(reply, "next-entities", bare=True, shown=shown)
        absent = _is_absent(reply, "next-entities")
        selected: dict[EntityId, None] = {}
        dropped = []
        if not listing.finished and not absent:
            met = self._store.nodes([*walk.ends, *(id for id in walk.explored if id not in walk.ends)])
            known = ShownNames(node.name for node in met)
            listing = read_list(reply, "next-entities", bare=True, shown=shown, known=known)
            for written, ids in zip(listing.items, self._identified(walk, met, listing.items), strict=True):
                fresh = [id for id in ids if id not in walk.explored]
                if not fresh:
                    dropped.append(written)
                selected |= dict.fromkeys(fresh)
        following = list(selected)[: self.compared]
        got = {"selected": following, "dropped": dropped, "finished": listing.finished}
        request.note(ENTITY_STAGE, {"hop": hop, "entities": len(walk.ends)}, {**got, "absent": True} if absent else got)
        return following

    def _identified(self, walk: _Exploration, nodes: Sequence[Node], written: Sequence[str]) -> list[list[EntityId]]:
        """Return the nodes of each name: among those of this walk, else from the entity linker."""
        exact: dict[str, list[EntityId]] = {}
        folded: dict[str, list[EntityId]] = {}
        for node in nodes:
            exact.setdefault(node.name, []).append(node.id)
            folded.setdefault(normalize_name(node.name), []).append(node.id)
        met = [exact.get(name) or folded.get(normalize_name(name)) or [] for name in written]
        elsewhere = [name for name, ids in zip(written, met, strict=True) if not ids]
        linked = self.parts.entities.link_all([Mention(name) for name in elsewhere], walk.request.question.text)
        found = dict(zip(elsewhere, ([one.id for one in candidates[:1]] for candidates in linked), strict=True))
        return [ids or found[name] for name, ids in zip(written, met, strict=True)]

    def _ask(self, walk: _Exploration, prompt: str, stage: str, **values: str) -> str:
        question = walk.request.question
        walk.calls += 1
        filled = self.parts.prompts[prompt].fill(question=question.text, explored=self._explored(walk), **values)
        schema = reply_schema(self.parts.prompts[prompt].tags)
        return self._model.reply(prompt_messages(filled), stage=stage, question_id=question.id, schema=schema).text

    def _requested(self, request: Request) -> str:
        """Write the rows of queries and the ends of requested paths, of all rounds and so far in this one."""
        every = (*request.context.evidence, *request.found)
        found = [
            item for item in every if isinstance(item, RowsEvidence) or (isinstance(item, PathEvidence) and item.asked)
        ]
        names = names_of(self._store, found, _SHOWN)
        return "\n".join(dict.fromkeys(verbalize(item, names, _SHOWN) for item in found)) or "(nothing)"

    def _explored(self, walk: _Exploration) -> str:
        """Write the entities that were stood on in all rounds, each with the relations that were followed."""
        followed = list(walk.followed.items())[-_EXPLORED:]
        names = self._names([id for id, _ in followed])
        labels = [", ".join(map(on_one_line, of)) or "(none)" for _, of in followed]
        earlier = len(walk.followed) - len(followed)
        lines = [f"… (+{earlier:,} before these)"] if earlier else []
        lines += [f"{name}: {of}" for name, of in zip(names, labels, strict=True)]
        return "\n".join(lines) or "(nothing)"

    def _names(self, ids: Sequence[EntityId]) -> list[str]:
        """Return a name for each node; namesakes get their id behind it."""
        names = [on_one_line(node.name, _LONGEST_NAME) for node in self._store.nodes(ids)]
        return [f"{name} ({id})" if names.count(name) > 1 else name for name, id in zip(names, ids, strict=True)]


@dataclass
class _Exploration:
    """An exploration on its way."""

    request: Request
    followed: dict[EntityId, list[str]]
    """The relations followed from each entity, in this round and before."""
    calls: int = 0
    """Calls of the model in this round."""
    absent: bool = False
    """True if the model reported that the graph lacks the answer."""
    finished: bool = False
    """The model wrote FINISH in the place of relations."""
    explored: dict[EntityId, None] = field(default_factory=dict)
    ends: dict[EntityId, None] = field(default_factory=dict)
    edges: set[int] = field(default_factory=set)
    found: list[Evidence] = field(default_factory=list)


def _followed(request: Request) -> dict[EntityId, list[str]]:
    """Return what earlier rounds followed from each entity."""
    followed: dict[EntityId, list[str]] = {}
    for step in (step for earlier in request.context.rounds for step in earlier.steps):
        relations = step.got.get("relations")
        if step.stage in (RELATION_STAGE, RANKING_STAGE) and isinstance(relations, Mapping):
            for id, labels in relations.items():
                followed[id] = list(dict.fromkeys([*followed.get(id, []), *labels]))
    return followed
