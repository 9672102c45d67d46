"""Yes/no questions: verification of a statement about two mentions.

«Is Paris the capital of France?» is answered with yes if an edge between the two has the question's meaning. A graph is
incomplete, so a missing edge proves nothing: the answer is no only if the relation has another tail there and never
several, and otherwise there is none. If the question presupposes uniqueness (`the capital of France`), and the graph
has one tail there, it is enough that the relation seldom has several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from byokg.arrays import Float32
from byokg.graph.store import Direction, GraphStore
from byokg.offline.constraints import Outcome, TemporalConstraint
from byokg.offline.parse import ParsedQuestion, Role, has_unknown_relative
from byokg.offline.schema_linking import RelationSimilarity
from byokg.offline.temporal import passes, period
from byokg.offline.walks import branching
from byokg.text.labels import LABEL_PARTS, split_label
from byokg.text.names import FUNCTION_WORDS, QUESTION_WORDS, split_words
from byokg.types import EntityId


@dataclass(frozen=True)
class BooleanThresholds:
    """Thresholds of yes/no questions."""

    confirming: float = 0.5
    """Similarity from which a word may mean an edge that exists."""
    refuting: float = 0.8
    """Similarity from which a word means an edge that leads elsewhere."""
    unique: float = 0.1
    """Largest share of nodes with several tails of a presumed unique relation."""


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
) -> Outcome:
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
        return Outcome("verification", _NOTHING)
    several: frozenset[int] | None = None
    seldom = _the_one(parsed)
    for one, other in ((one, other) for one in sides[0] for other in sides[1]):
        numbers = np.asarray(store.numbers([one, other]), np.int64)
        names = [node.name for node in store.nodes([one, other])]
        batch = store.edges(numbers, Direction.BOTH)
        step = batch.relation.astype(np.int64) * 2 + batch.inverse
        joins = batch.other == numbers[1 - batch.origin]
        steps = steps.refresh()  # of relations that were met just now, too
        fits = _said(steps, parsed, second)[batch.origin, step]
        if times:
            held = [period(properties) for properties in store.edge_properties(batch.edge)]
            joins &= np.array([each is not None and all(passes(each, test) for test in times) for each in held], bool)
        place = int(np.argmax(np.where(joins, fits, -1.0))) if len(step) else -1
        if place >= 0 and joins[place] and fits[place] >= _THRESHOLDS.confirming:
            label = steps.labels[int(batch.relation[place])]
            return Outcome("verification", f"{label} joins {names[0]} and {names[1]}", values=("yes",))
        several = branching(store, _THRESHOLDS.unique if seldom else 0.0) if several is None else several
        for place in np.argsort(-fits, kind="stable")[:1].tolist():
            others = np.flatnonzero((step == step[place]) & (batch.origin == batch.origin[place]))
            single = int(step[place]) not in several and len(others) == 1
            if fits[place] >= _THRESHOLDS.refuting and single and not times:
                label = steps.labels[int(batch.relation[place])]
                far = store.nodes(store.ids(batch.other[place : place + 1]))[0].name
                text = f"{label} of {names[int(batch.origin[place])]} is {far}, and only that"
                return Outcome("verification", text, values=("no",))
    return Outcome("verification", _NOTHING)


def _the_one(parsed: ParsedQuestion) -> bool:
    """True if the question presupposes uniqueness: `the capital of`, `the first lady of`."""
    nouns = [place for place, tie in enumerate(parsed.roles) if tie.use == "noun" and not parsed.masked[place]]
    return bool(nouns) and parsed.words[nouns[0] - 1 : nouns[0]] == ("the",)


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
        if parsed.masked[place] or word in FUNCTION_WORDS or word in QUESTION_WORDS:
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
