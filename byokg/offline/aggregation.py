"""Aggregation stage of the offline pipeline: a retriever that computes on the ends of paths.

The first stage has answered the rest of the question as a path question. `AggregationLinker` lets the stage run if the
question has constraints or an aggregation; `AggregationRetriever` takes the likeliest candidates that support them.

«Is Paris the capital of France?» is answered with yes if an edge between the two has the question's meaning. Otherwise
the answer is no if the relation of the question leads from one of the two to other nodes: a node with edges of a
relation is taken to have all of them (the partial completeness assumption of AMIE: Galárraga et al., WWW 2013). A node
without any proves nothing, nor does a relation that often has several ends, if an edge of another one joins the two:
then there is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, pairwise

import numpy as np

from byokg.arrays import Float32
from byokg.graph.property_view import is_value, name_of_value
from byokg.graph.store import Direction, GraphStore
from byokg.offline.answer_type import AnswerTypePredictor
from byokg.offline.execute import ConstraintExecutor, countable
from byokg.offline.facts import TemporalNeighbors, branching, make_result, passes, period
from byokg.offline.lexicon import SILENT
from byokg.offline.parse import ParsedQuestion, Role, has_unknown_relative, parse_question
from byokg.offline.parse_constraints import QueryConstraints, TemporalConstraint, expected_literal, parse_constraints
from byokg.offline.ranking import Candidate
from byokg.offline.schema_linking import RelationSimilarity
from byokg.retrieval.verbalize import fold_ends
from byokg.text.names import FUNCTION_WORDS, LABEL_PARTS, WORD, singular, split_label, split_words
from byokg.types import (
    INVERSE,
    Artifacts,
    ComputedEvidence,
    Context,
    EntityId,
    Evidence,
    Mention,
    PathEvidence,
    Question,
    Request,
)


@dataclass(frozen=True)
class BooleanThresholds:
    """Thresholds of yes/no questions."""

    confirming: float = 0.5
    """Similarity from which a word may mean an edge that exists."""
    refuting: float = 0.8
    """Similarity from which a word means edges that lead elsewhere."""
    unique: float = 0.1
    """Largest share of nodes with several ends of a relation that is taken to have one."""
    named: int = 3
    """Ends of a refuting relation that the text names."""


_THRESHOLDS = BooleanThresholds()

_NOTHING = "the graph has nothing that says yes or no"


Sides = tuple[Sequence[EntityId], Sequence[EntityId]]


def answer_boolean(
    store: GraphStore,
    steps: RelationSimilarity,
    parsed: ParsedQuestion,
    second: int,
    sides: Sides,
    times: Sequence[TemporalConstraint],
) -> ComputedEvidence:
    """Return yes, no, or an outcome without an answer.

    Args:
        store: the graph.
        steps: schema linking.
        parsed: the question parse; its masked words are the two mentions.
        second: first word of the second mention.
        sides: candidate nodes of each of the two.
        times: temporal constraints.
    """
    # «is Cid the grandparent of Ann» in a graph with parents only: no edge states it.
    if has_unknown_relative(parsed, steps.has_relation):
        return make_result("verification", _NOTHING)
    refuted: ComputedEvidence | None = None
    for one, other in ((one, other) for one in sides[0] for other in sides[1]):
        numbers = np.asarray(store.numbers([one, other]), np.int64)
        names = [node.name for node in store.nodes([one, other])]
        batch = store.edges(numbers, Direction.BOTH)
        if not len(batch.other):
            continue
        joins = batch.other == numbers[1 - batch.origin]
        steps = steps.refresh()  # of relations that were met just now, too
        fits = _said(steps, parsed, second)[batch.origin, batch.relation.astype(np.int64) * 2 + batch.inverse]
        dated = passed = np.ones(len(joins), np.bool_)
        if times:
            held = [period(properties) for properties in store.edge_properties(batch.edge)]
            dated = np.array([each is not None for each in held], np.bool_)
            passed = np.array(
                [each is not None and all(passes(each, test) for test in times) for each in held], np.bool_
            )
        place = int(np.argmax(np.where(joins & passed, fits, -1.0)))
        if joins[place] and passed[place] and fits[place] >= _THRESHOLDS.confirming:
            label = steps.labels[int(batch.relation[place])]
            return make_result("verification", f"{label} joins {names[0]} and {names[1]}", values=("yes",))
        place = int(np.argmax(np.where(dated, fits, -1.0)))
        same = batch.relation == batch.relation[place]
        if refuted or not dated[place] or fits[place] < _THRESHOLDS.refuting or np.any(joins & same & ~dated):
            continue
        step = 2 * int(batch.relation[place]) + int(batch.inverse[place])
        if np.any(joins & ~same) and step in branching(store, _THRESHOLDS.unique):
            continue
        here = same & (batch.inverse == batch.inverse[place]) & (batch.origin == batch.origin[place]) & passed
        ends = [node.name for node in store.nodes(store.ids(batch.other[here][: _THRESHOLDS.named]))]
        when = "".join(f" {test.words}" for test in times)
        label = f"{steps.labels[int(batch.relation[place])]} of {names[int(batch.origin[place])]}{when}"
        text = f"{label}: {fold_ends(ends, int(here.sum()) - len(ends))}, no other" if ends else f"{label}: nothing"
        refuted = make_result("verification", text, values=("no",))
    return refuted or make_result("verification", _NOTHING)


def _turned(values: Float32) -> Float32:
    """Return values of each step as values of its inverse."""
    turned: Float32 = values.reshape(-1, 2)[:, ::-1].ravel()
    return turned


def _said(steps: RelationSimilarity, parsed: ParsedQuestion, second: int) -> Float32:
    """Return the similarity of each step out of the first mention, and out of the second, to the question."""
    found = np.zeros((2, steps.count), np.float32)
    told = False
    of = np.array([_words(label)[-1:] == ["of"] for label in steps.labels], np.bool_)
    back = np.stack((of, ~of), axis=1).ravel()
    """Steps away from the referent of a noun: against `capital`, and along `capital_of`."""
    for place, word in enumerate(parsed.words):
        if parsed.masked[place] or word in SILENT:
            continue
        told = True
        tie = parsed.roles[place]
        means = steps.label_similarity(word)
        if tie.use == "noun":  # the capital of the second, or the first's capital
            side = int(place > second or "of" in parsed.words[place:second])
            found[side] = np.maximum(found[side], np.where(back, 0, means))
            continue
        # The first is the subject.
        ways = np.where(steps.direction_mismatch(word, Role(tie.use, outward=True)), 0, means)
        found[0] = np.maximum(found[0], ways)
        found[1] = np.maximum(found[1], _turned(ways))
    if not told:  # is Lyon in France
        small = {word for word, hidden in zip(parsed.words, parsed.masked, strict=True) if not hidden}
        named = np.repeat([not small.isdisjoint(_words(label)) for label in steps.labels], 2)
        found[0, ::2] = named[::2]
    return found


def _words(label: str) -> list[str]:
    """Return the words of a relation's own name."""
    return split_words(split_label(LABEL_PARTS.split(label)[-1]))


@dataclass(frozen=True)
class AggregationLimits:
    """Limits of the aggregation stage."""

    candidates: int = 40
    """Candidates that operations are tried on, the likeliest first."""
    nodes: int = 200_000
    """Nodes of a type that are scanned for a question without mentions."""
    cached_types: int = 8
    """Types, and relations, whose nodes are cached."""


_LIMITS = AggregationLimits()

_LAST = "9999-12-31"
"""Last day of a period that has not ended."""

_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?(?!\d)")


def _there_and_back(path: PathEvidence) -> bool:
    """True if a path goes straight back over a relation: things founded when others were, say."""
    return any(f"{INVERSE}{one}" == other or f"{INVERSE}{other}" == one for one, other in pairwise(path.relations))


def _dates(ends: Sequence[EntityId]) -> bool:
    """True if a path ends at date values."""
    return all(is_value(end) and _DATE.match(name_of_value(end)) is not None for end in ends)


@dataclass(frozen=True)
class _Task:
    """A question with the results of the first stage."""

    text: str
    constraints: QueryConstraints
    mentions: tuple[Mention, ...]
    linked: Mapping[int, Sequence[EntityId]]
    """Candidate nodes of each mention, by its number."""
    paths: Sequence[PathEvidence]


def grouping(store: GraphStore, context: Context) -> str:
    """Return the noun by which a question groups its result, if it names a type, relation or property; else "".

    One result per group takes a query with a GROUP BY, which only a language model writes; `quantityPerUnit` has none.
    """
    mentions = context.rounds[0].artifacts.mentions if context.rounds else ()
    noun = parse_constraints(context.question, mentions).grouped.casefold()
    if not noun:
        return ""
    schema = store.schema()
    properties = (name for names in schema.node_properties.values() for name in names)
    labels = [split_words(split_label(label)) for label in (*schema.node_types, *store.relations, *properties)]
    grouped = any(singular(noun) == singular(words[-1]) for words in labels if words)
    return noun if grouped and not any(("per", noun) in pairwise(words) for words in labels) else ""


class AggregationLinker:
    """Ends the stage if the question has neither constraints nor an aggregation."""

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Return the mentions of the first round again; finished if there is nothing to compute."""
        mentions = context.rounds[0].artifacts.mentions if context.rounds else ()
        return Artifacts(finished=parse_constraints(question.text, mentions).plain)


class AggregationRetriever:
    """Applies a question's constraints and aggregation to the results of the first stage.

    Args:
        store: the graph, without values as nodes.
        executor: executes the operations.
        neighbors: finds temporal neighbours.
        candidates: answer candidates of all evidence but that of some mentions, best first.
        answer_types: predicts the answer type.
        steps: schema linking; without it, yes/no questions are parsed as any other.
        margin: largest difference of a candidate's log-odds from the best one's.
    """

    def __init__(
        self,
        store: GraphStore,
        executor: ConstraintExecutor,
        neighbors: TemporalNeighbors,
        candidates: Callable[[Context, Collection[Mention]], Sequence[Candidate]],
        answer_types: AnswerTypePredictor,
        margin: float = 3.0,
        steps: RelationSimilarity | None = None,
    ) -> None:
        self._store, self._steps, self._executor, self._neighbors = store, steps, executor, neighbors
        self._candidates, self._margin, self._answer_types = candidates, margin, answer_types
        self._of_type = lru_cache(_LIMITS.cached_types)(self._read_type)

    def retrieve(self, request: Request) -> list[Evidence]:
        """Return one item with the result; empty if the operations fit no candidate."""
        first, text = request.context.rounds[0], request.question.text
        mentions, linked = first.artifacts.mentions, first.linked.entities
        task = _Task(
            text,
            parse_constraints(text, mentions),
            mentions,
            {place: [one.id for one in linked if one.mention == mention] for place, mention in enumerate(mentions)},
            [item for item in first.evidence if isinstance(item, PathEvidence)],
        )
        outcome, score = self._without_paths(task), 0.0
        if outcome is None and task.constraints.union:
            outcome, score = self._united(task)
        elif outcome is None:
            outcome, score = self._on_candidates(task, request.context)
        return [] if outcome is None else [replace(outcome, score=score)]

    def _without_paths(self, task: _Task) -> ComputedEvidence | None:
        """Compare two mentions, verify a statement, or find dates, neighbours in time or the most of a type."""
        constraints, linked, order = task.constraints, task.linked, task.constraints.order
        if order is not None and order.words == "compared":
            nodes = [id for place in constraints.union or tuple(linked) for id in linked[place][:1]]
            if (found := self._executor.among(order, nodes)) is not None:
                return found
        if constraints.verify and self._steps is not None and len(linked) == 2:
            return self._verified(task, self._steps)
        if constraints.next is not None:
            near = " ".join(word for word in split_words(constraints.rest) if word not in FUNCTION_WORDS)
            for mention in constraints.next.mentions:
                others = [id for place, ids in linked.items() if place != mention for id in ids]
                found = self._neighbors.following(constraints.next, linked.get(mention, ()), others, near)
                if found is not None:
                    return found
        return None

    def _verified(self, task: _Task, steps: RelationSimilarity) -> ComputedEvidence:
        """Answer yes or no about two mentions."""
        one, other = sorted(task.linked, key=lambda place: task.mentions[place].start)
        rest = task.constraints.rest
        before = len(WORD.findall(rest[: task.mentions[other].start]))
        parsed, sides = parse_question(rest, task.mentions), (task.linked[one], task.linked[other])
        return answer_boolean(self._store, steps, parsed, before, sides, task.constraints.times)

    def _on_candidates(self, task: _Task, context: Context) -> tuple[ComputedEvidence | None, float]:
        """Execute the constraints on the likeliest candidate that supports them; return its score, too."""
        times = tuple(filter(None, (self._dated(test, task) for test in task.constraints.times)))
        if len(times) < len(task.constraints.times):
            return None, 0.0
        constraints = replace(task.constraints, times=times)
        candidates, likely = self._likely(task, context)
        asked = self._answer_types.predict(task.text, task.mentions, [one.nodes for one in likely])
        empty: ComputedEvidence | None = None
        """The likeliest candidate's outcome, if no node of it is left."""
        for strict in (True, False) if constraints.times or constraints.count else (True,):
            for place, one in enumerate(likely):
                nodes = self._answer_types.filter_or_all(one.nodes, asked)
                kind = bool(asked) and bool(constraints.count) and self._answer_types.is_compatible(nodes, asked)
                narrowed = replace(one, nodes=nodes)
                found = self._executor.execute(constraints, narrowed, task.linked, task.paths, strict, kind)
                if found is not None and (found.nodes or found.values):
                    return found, one.score
                empty = empty or (found if strict and place == 0 else None)
        if empty is not None:
            return empty, candidates[0].score
        if not candidates and (ends := self._named(constraints.rest)):
            return self._executor.execute(constraints, Candidate(0.0, ends), task.linked, task.paths), 0.0
        return None, 0.0

    def _dated(self, test: TemporalConstraint, task: _Task) -> TemporalConstraint | None:
        """Return a time with the dates of its event; None if these are unknown."""
        if not test.mentions:
            return test
        first, *others = (task.linked[place] for place in test.mentions)
        held = self._neighbors.time_of(first, [id for ids in others for id in ids], test.near.split())
        if held is None or held.start is None:
            return None
        last = _LAST if held.last is None else "{:04}-{:02}-{:02}".format(*held.last)
        return replace(test, first=held.begin, last=last, near="")

    def _likely(self, task: _Task, context: Context) -> tuple[Sequence[Candidate], list[Candidate]]:
        """Return the candidates that the constraints may apply to, and the likeliest of them."""
        constraints = task.constraints
        bounds = (bound.mention for bound in constraints.thresholds if bound.mention is not None)
        events = (place for test in constraints.times for place in test.mentions)
        left_out = [task.mentions[place] for place in (*constraints.without, *bounds, *events)]
        gone = (one for one in task.mentions if one.start >= 0)
        left_out += [one for one in gone if not constraints.rest[one.start : one.end].strip()]
        candidates = self._candidates(context, left_out)
        if constraints.count:
            candidates = [one for one in candidates if countable(one.nodes)]
        # Entities with a date, not the date itself.
        if constraints.times and expected_literal(task.text, task.mentions)[0] != "date":
            candidates = [one for one in candidates if not _dates(one.nodes)] or candidates
        best = candidates[0].odds if candidates else 0.0
        likely = [one for one in candidates[: _LIMITS.candidates] if one.odds >= best - self._margin]
        if constraints.times:
            likely = [one for one in likely if not any(map(_there_and_back, one.paths))]
        if constraints.order is not None and constraints.order.edge != "any":
            # One node's own history comes before that of others.
            likely.sort(key=lambda one: max((len(path.relations) for path in one.paths), default=0))
        return candidates, likely

    def _united(self, task: _Task) -> tuple[ComputedEvidence | None, float]:
        """Return the union of one metapath's ends from either of two mentions, of the answer type if there is one."""
        best: tuple[bool, float, ComputedEvidence] | None = None
        sides = (task.linked[place] for place in task.constraints.union)
        first, second = ([path for path in task.paths if path.source in side] for side in sides)
        pairs = [(one, other) for one in first for other in second if other.relations == one.relations]
        asked = self._answer_types.predict(task.text, task.mentions, [path.ends for pair in pairs for path in pair])
        for one, other in pairs:
            score, ends = (one.score + other.score) / 2, tuple(dict.fromkeys((*one.ends, *other.ends)))
            if any(map(is_value, ends)):
                continue
            fitting = self._answer_types.filter_candidates(ends, asked) if asked else ()
            if best is None or (bool(fitting), score) > best[:2]:
                ends = fitting or ends
                text = f"either of {len(one.ends)} and {len(other.ends)}: {len(ends)}"
                cut = one.truncated or other.truncated
                best = bool(fitting), score, make_result("union", text, ends, uses=(one.id, other.id), truncated=cut)
        if best is None:
            return None, 0.0
        _, score, united = best
        candidate = Candidate(score, united.nodes)
        further = self._executor.execute(task.constraints, candidate, task.linked, task.paths)
        return further if further is not None and (further.nodes or further.values) else united, score

    def _named(self, question: str) -> tuple[EntityId, ...]:
        """Return all nodes of the type that a question without mentions names."""
        words = [word for word in split_words(question) if word not in FUNCTION_WORDS]
        type = next((found for word in words if (found := self._answer_types.type_named(word))), "")
        return self._of_type(type) if type else ()

    def _read_type(self, type: str) -> tuple[EntityId, ...]:
        """Return the nodes of one type; none if they, or on a server all nodes, are too many."""
        if (graph := self._store.columnar) is not None:
            rows = graph.node_types.members(type)
            return () if len(rows) > _LIMITS.nodes else tuple(self._store.ids(rows))
        ids = list(islice(self._store.entities(), _LIMITS.nodes + 1))
        few = self._store.nodes(ids) if len(ids) <= _LIMITS.nodes else []
        return tuple(node.id for node in few if type in node.types)
