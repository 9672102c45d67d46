"""How much of a data set's gold annotation a graph holds: topics, answers, triples and relations, before a run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from byokg.errors import EntityNotFound
from byokg.evaluation.datasets.audit import is_value
from byokg.evaluation.datasets.base import Example
from byokg.graph.guard.sparql import parse_sparql
from byokg.graph.guard.tokens import Unreadable
from byokg.graph.rdf.terms import NAME_PREDICATES, RDF_TYPE
from byokg.graph.store import Direction, GraphStore
from byokg.index.names import NameIndex
from byokg.types import EntityId

_LOOKED_UP = 1000
"""Number of ids per lookup."""

_NO_RELATIONS = frozenset([*NAME_PREDICATES, RDF_TYPE])
"""Predicates of queries that graphs keep as names and types."""

_LOCAL = re.compile(r"[^/#:]+$")


@dataclass(frozen=True)
class Share:
    """How many of some things are there."""

    present: int = 0
    total: int = 0

    def __add__(self, other: Share) -> Share:
        return Share(self.present + other.present, self.total + other.total)


@dataclass(frozen=True)
class SplitCoverage:
    """Coverage of one split: number of questions, and shares of their gold annotation in the graph."""

    questions: int
    topics: Share
    """Topic entities that are nodes."""
    answers: Share
    """Gold answers that are nodes, by id or by name; those that are numbers, dates or times are not looked for."""
    triples: Share
    """Triples that answers rest on, for data sets that list them (`support`)."""
    relations: Share
    """Relations that a question's gold query or triples name, counted in each question that does."""
    all: Share
    """Questions of which all of this is there."""


@dataclass(frozen=True)
class Coverage:
    """Coverage of a data set by a graph."""

    splits: Mapping[str, SplitCoverage]
    missing_relations: Mapping[str, int]
    """In how many questions each relation is named that the graph lacks, most often first, then by name."""
    unread_queries: int
    """Gold queries whose relations are not known, since they are no SPARQL that can be parsed."""

    @property
    def full(self) -> bool:
        """True if nothing is missing."""
        return all(each.all.present == each.all.total for each in self.splits.values())


def coverage(examples: Sequence[Example], store: GraphStore, names: Callable[[], NameIndex]) -> Coverage:
    """Look up the gold annotation of all questions in a graph.

    Ids are looked up a thousand at a time, and triples by question, so a server needs few round trips. A relation
    counts as present if the graph has its name or the last part of its IRI: `people.person.profession` for
    `http://rdf.freebase.com/ns/people.person.profession`.

    Args:
        examples: their topics as ids of the graph.
        store: folder or server.
        names: builds an index of the graph's names; called only if a gold answer or an end of a triple is no id.
    """
    looked_up = {id for each in examples for id in (*each.topic_ids, *each.answer_ids, *_ends(each))}
    held = present(store, sorted(looked_up))
    index: NameIndex | None = None

    def nodes(text: str) -> list[EntityId]:
        nonlocal index
        if text in held:
            return [EntityId(text)]
        index = index or names()
        return store.ids(index.exact(text))

    local = {_local(relation) for relation in store.relations}
    splits: dict[str, list[tuple[Share, Share, Share, Share]]] = {}
    missing, unread = Counter[str](), 0
    for example in examples:
        wanted = {relation for _, relation, _ in example.support}
        if example.query:
            try:
                wanted |= {use.iri for use in parse_sparql(example.query).predicates} - _NO_RELATIONS
            except Unreadable:
                unread += 1
        lacking = sorted(_local(relation) for relation in wanted if _local(relation) not in local)
        missing.update(lacking)
        rows = splits.setdefault(example.split, [])
        rows.append(
            (
                Share(sum(id in held for id in example.topic_ids), len(example.topic_ids)),
                _answers(example, held, nodes),
                Share(sum(_has(store, triple, nodes) for triple in example.support), len(example.support)),
                Share(len(wanted) - len(lacking), len(wanted)),
            )
        )
    ordered = sorted(missing.items(), key=lambda one: (-one[1], one[0]))
    return Coverage({split: _summed(rows) for split, rows in splits.items()}, dict(ordered), unread)


def present(store: GraphStore, ids: Sequence[EntityId]) -> set[EntityId]:
    """Return those of the ids that are nodes; parts of which all are take one round trip."""
    found: set[EntityId] = set()
    waiting = [ids[start : start + _LOOKED_UP] for start in range(0, len(ids), _LOOKED_UP)]
    while waiting:
        some = waiting.pop()
        try:
            store.numbers(some)
        except EntityNotFound:
            half = len(some) // 2
            waiting += [some[:half], some[half:]] if half else []
        else:
            found.update(some)
    return found


def _ends(example: Example) -> list[EntityId]:
    return [EntityId(end) for head, _, tail in example.support for end in (head, tail)]


def _answers(example: Example, held: set[EntityId], nodes: Callable[[str], list[EntityId]]) -> Share:
    if example.answer_type == "time" or (example.query and not example.answer_ids):
        return Share()
    by_id = [id in held for id in example.answer_ids]
    if any(by_id):
        return Share(sum(by_id), len(by_id))
    found = [bool(nodes(name)) for name in example.answers]
    looked_for = [
        here or bool(example.answer_ids) or not is_value(a) for here, a in zip(found, example.answers, strict=True)
    ]
    return Share(sum(found), sum(looked_for))


def _has(store: GraphStore, triple: tuple[str, str, str], nodes: Callable[[str], list[EntityId]]) -> bool:
    head, relation, tail = triple
    heads, tails = nodes(head), nodes(tail)
    labels = [number for number, label in enumerate(store.relations) if _local(label) == _local(relation)]
    if not (heads and tails and labels):
        return False
    batch = store.edges(store.numbers(heads), Direction.OUT, np.array(labels))
    return bool(np.isin(batch.tail, store.numbers(tails)).any())


def _local(relation: str) -> str:
    found = _LOCAL.search(relation)
    return found.group() if found else relation


def _summed(rows: Sequence[tuple[Share, Share, Share, Share]]) -> SplitCoverage:
    topics, answers, triples, relations = (sum(column, Share()) for column in zip(*rows, strict=True))
    complete = sum(all(share.present == share.total for share in row) for row in rows)
    return SplitCoverage(len(rows), topics, answers, triples, relations, Share(complete, len(rows)))
