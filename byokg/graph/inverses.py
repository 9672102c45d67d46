"""Inverse relations, as `capital` and `capital_of`: stated in the graph, or detected from edges and signatures.

Two relations that often join the same nodes, one each way, need not be inverses: most films' directors produced some of
them. An edge `A directed B` counts as evidence if B has any edge `directed_by` at all: if one of them leads back to A,
for the pair; if none does, against it. So gaps of a graph, which has an edge one way only, do not count.

A relation has at most one twin, the best of its inverses: both store one set of facts, and a list is complete only with
the edges of both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.graph.sorted_ids import distinct, match_rows
from byokg.graph.store import EdgeBatch, GraphStore, RelationCounts
from byokg.text.names import FUNCTION_WORDS, normalize_label
from byokg.types import INVERSE

if TYPE_CHECKING:
    from byokg.graph.columnar.graph import ColumnarGraph

_SAMPLE = 32
"""Edges of each relation that are looked at."""

_LEAST, _SHARE_OF_BEST = 0.5, 0.5
"""How often two relations have to turn each other's edges round (the product of both shares), and how often beside the
pair that either does so best with. Found on a part of Freebase, with Freebase's own list of inverses."""

_SHARE_OF_NAMESAKES, _SHARE_OF_NAMED = 0.3, 0.7
"""Minimum of the larger of both shares: if the names are one word (`contains`, `containedby`), or belong to one type
and are those of inverse relations elsewhere (`character.parents`, `character.children`); and if each is named after the
other's type (`film.produced_by`, `producer.film`). Long lists are cut in many graphs, and then few edges of the one
side are inverted."""

_STEM = 4
"""Letters by which words are compared."""
_FEWEST = 2
"""Edges that have to be turned round: one may be chance."""

_OF_TYPE = 0.3
"""Share of a relation's sampled tails that have relations of a type, from which it leads to that type."""
_CONFIRMED, _CONFIRMED_SHARE = 10, 0.5
"""Only pairs with mirrored signatures that edges confirm as inverses, from which the others are inverses as well."""

_STATED = frozenset({"inverseof", "reverseproperty", "inverseproperty", "p1696"})
"""Own names of relations that state the inverse of another one (OWL and schema.org, Freebase, Wikidata)."""


@dataclass(frozen=True)
class Inverses:
    """Inverse relations of a graph."""

    every: Mapping[str, frozenset[str]]
    """For each relation its inverses, itself if it is symmetric."""
    twins: Mapping[str, str]
    """For each relation that has a twin, this twin, itself if it is symmetric."""


_NONE = Inverses({}, {})

_FOUND: WeakKeyDictionary[GraphStore, Inverses] = WeakKeyDictionary()
"""By graph, since several parts of a pipeline ask for the same."""


def inverse_relations(store: GraphStore) -> Mapping[str, frozenset[str]]:
    """Return for each relation its inverses, itself if it is symmetric.

    Empty for a graph on a server: edges among many nodes are expensive there, and few such graphs store facts twice.
    Computed once for a graph, from a sample of its edges.
    """
    return _inverses(store).every


def twin_relations(store: GraphStore) -> Mapping[str, str]:
    """Return for each relation with a twin the one that stores the same facts the other way, itself if symmetric.

    Empty as `inverse_relations` is.
    """
    return _inverses(store).twins


def unite_step(step: str, twins: Mapping[str, str]) -> str:
    """Return one label for a step and the step along its twin: the one without `^`."""
    label = step.removeprefix(INVERSE)
    return twins.get(label, step) if label != step else step


def twin_steps(store: GraphStore, relations: Sequence[str]) -> Int64:
    """Return for each step out of R relations the one along its twin, itself if there is none: (2 R,).

    A step is twice the number of a relation, plus one if it is walked from tail to head.
    """
    steps = np.arange(2 * len(relations))
    number = {label: place for place, label in enumerate(relations)}
    for one, other in twin_relations(store).items():
        if one in number and other in number:
            steps[2 * number[one]], steps[2 * number[one] + 1] = 2 * number[other] + 1, 2 * number[other]
    return steps


def unite_steps(twins: Int64) -> Int64:
    """Return the step that stands for each step and its twin, the one walked from head to tail: (S,) to (S,)."""
    return np.where(twins & 1, np.arange(len(twins)), twins)


def _inverses(store: GraphStore) -> Inverses:
    graph = store.columnar
    if graph is None:
        return _NONE
    found = _FOUND.get(store)
    if found is None:
        found = _FOUND[store] = _found_in(store, graph)
    return found


def _found_in(store: GraphStore, graph: ColumnarGraph) -> Inverses:
    """Look at a sample of the edges of each relation; those of undirected ones lead both ways."""
    sample, labels = store.sample_edges(_SAMPLE), store.relations
    turned = _TurnedEdges.of(store, graph, sample)
    accepted = turned.accepted(labels)
    symmetric = {one for one, other in accepted if one == other}
    symmetric.update(store.undirected_relations().tolist())
    mirrored = _mirrored(sample, turned.counts, labels)
    stated = _stated(store, graph, labels)
    partner: dict[int, int] = {}

    def pair(pairs: Iterable[tuple[int, int]]) -> None:
        """Make twins of pairs, those before others, as far as neither has a twin."""
        for one, other in pairs:
            if one not in partner and other not in partner:
                partner[one], partner[other] = other, one

    pair(stated)
    apart = sorted((one, other) for one, other in accepted if one < other)
    apart.sort(key=lambda two: (two not in mirrored, *(-share for share in turned.shares(*two))))
    pair(two for two in apart if ".." not in labels[two[0]])
    only = _only_ones(mirrored)
    if sum(two in accepted for two in only) >= max(_CONFIRMED, _CONFIRMED_SHARE * len(only)):
        pair(sorted(only))
    pair((number, number) for number in sorted(symmetric) if ".." not in labels[number])
    pair(_shortcuts(labels, partner, apart))
    every: dict[str, set[str]] = defaultdict(set)
    for one, other in [*accepted, *partner.items(), *((number, number) for number in symmetric)]:
        every[labels[one]].add(labels[other])
        every[labels[other]].add(labels[one])
    return Inverses(
        {relation: frozenset(others) for relation, others in every.items()},
        {labels[one]: labels[other] for one, other in partner.items()},
    )


@dataclass(frozen=True)
class _TurnedEdges:
    """How often relations turn each other's edges round, in a sample."""

    share: Mapping[tuple[int, int], float]
    """Share of the edges of the first, at tails that have the second, that the second turns round."""
    counts: RelationCounts
    """Relations at the nodes of the sample."""

    @classmethod
    def of(cls, store: GraphStore, graph: ColumnarGraph, sample: EdgeBatch) -> _TurnedEdges:
        """Compare sampled edges with all edges among their nodes."""
        head, relation, tail = (
            np.asarray(each).astype(np.int64) for each in (sample.head, sample.relation, sample.tail)
        )
        nodes = distinct(np.concatenate((head, tail)))
        counts = store.relation_counts(nodes)
        kept = np.flatnonzero(head != tail)  # a loop is turned round by any relation
        head, relation, tail = head[kept], relation[kept], tail[kept]
        place, many = np.searchsorted(nodes, tail), len(store.relations)
        among = graph.edges_among(nodes)
        back = _matches(
            place * len(nodes) + np.searchsorted(nodes, head),
            np.asarray(among.head).astype(np.int64) * len(nodes) + among.tail,
        )
        out = np.flatnonzero(~np.asarray(counts.inverse))
        onward = _matches(place, np.asarray(counts.origin)[out])
        turned = _pairs(relation, back, np.asarray(among.relation), many)
        able = _pairs(relation, onward, np.asarray(counts.relation)[out], many)
        return cls({pair: count / able[pair] for pair, count in turned.items() if count >= _fewest(*pair)}, counts)

    def shares(self, one: int, other: int) -> tuple[float, float]:
        """Return the product of both shares, and the larger one."""
        there, back = self.share.get((one, other), 0.0), self.share.get((other, one), 0.0)
        return there * back, max(there, back)

    def accepted(self, labels: Sequence[str]) -> set[tuple[int, int]]:
        """Return the pairs of inverse relations, each both ways."""
        best: dict[int, float] = defaultdict(float)
        for one, other in self.share:
            best[one] = max(best[one], self.shares(one, other)[0])
        found: set[tuple[int, int]] = set()
        for one, other in self.share:
            both, larger = self.shares(one, other)
            # A shortcut over a mediator (`a..b`) is turned round by another one.
            if labels[one].count("..") == labels[other].count("..") and (
                both >= max(_LEAST, _SHARE_OF_BEST * max(best[one], best[other]))
                or (_same_word(labels[one], labels[other]) and larger >= _SHARE_OF_NAMESAKES)
                or (_named_after(labels[one], labels[other]) and larger >= _SHARE_OF_NAMED)
            ):
                found |= {(one, other), (other, one)}
        called = {frozenset((_own(labels[one]), _own(labels[other]))) for one, other in found}
        for one, other in self.share:
            alike = _prefix(labels[one]) == _prefix(labels[other]) != "" and _own(labels[one]) != _own(labels[other])
            named = alike and frozenset((_own(labels[one]), _own(labels[other]))) in called
            if named and self.shares(one, other)[1] >= _SHARE_OF_NAMESAKES:
                found |= {(one, other), (other, one)}
        return found


def _mirrored(sample: EdgeBatch, counts: RelationCounts, labels: Sequence[str]) -> set[tuple[int, int]]:
    """Return the pairs of relations that lead to each other's types: `producer.film` and `film.produced_by`.

    The type of a relation is its namespace; it leads to the types of the relations out of its tails.
    """
    prefixes = [_prefix(label) for label in labels]
    number = {name: place for place, name in enumerate(sorted(set(prefixes)))}
    type_of = np.array([number[name] for name in prefixes], np.int64)
    out = np.flatnonzero(~np.asarray(counts.inverse))
    nodes = distinct(np.concatenate((sample.head, sample.tail)).astype(np.int64))
    held = distinct(np.asarray(counts.origin)[out].astype(np.int64) * len(number) + type_of[counts.relation[out]])
    relation = np.asarray(sample.relation).astype(np.int64)
    rows, places = _matches(np.searchsorted(nodes, np.asarray(sample.tail).astype(np.int64)), held // len(number))
    keys, times = np.unique(relation[rows] * len(number) + held[places] % len(number), return_counts=True)
    size = np.bincount(relation, minlength=len(labels))
    kept = keys[times >= _OF_TYPE * size[keys // len(number)]]
    leads = {divmod(key, len(number)) for key in kept.tolist()}
    plain = [place for place, label in enumerate(labels) if prefixes[place] and ".." not in label]
    of_type: dict[int, list[int]] = defaultdict(list)
    for place in plain:
        of_type[int(type_of[place])].append(place)
    return {
        (one, other)
        for one, type_ in leads
        if prefixes[one] and ".." not in labels[one]
        for other in of_type[type_]
        if one != other and (other, int(type_of[one])) in leads
    }


def _only_ones(pairs: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the pairs, each once, of which neither is in another pair."""
    others: dict[int, set[int]] = defaultdict(set)
    for one, other in pairs:
        others[one].add(other)
        others[other].add(one)
    return {(one, other) for one, other in pairs if one < other and len(others[one]) == len(others[other]) == 1}


def _stated(store: GraphStore, graph: ColumnarGraph, labels: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs that the graph itself states, between nodes whose ids are relations."""
    number = {label: place for place, label in enumerate(labels)}
    said = [place for place, label in enumerate(labels) if _is_statement(label)]
    found: list[tuple[int, int]] = []
    if not said:
        return found
    bounds, relation, tail = graph.outgoing
    edges = np.flatnonzero(np.isin(relation, said))
    heads = store.ids(np.searchsorted(bounds, edges, "right") - 1)
    for one, other in zip(heads, store.ids(tail[edges]), strict=True):
        if one in number and other in number:
            found.append((number[one], number[other]))
    return found


def _shortcuts(
    labels: Sequence[str], partner: Mapping[int, int], turned: Iterable[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the pairs of shortcuts over mediators, `a..b`: with the one made of twins, `b'..a'`, or by their edges.

    Args:
        labels: of the relations.
        partner: twins of relations that are no shortcuts.
        turned: pairs that turn each other's edges round; ignored if a part has another twin.
    """
    number = {label: place for place, label in enumerate(labels)}
    parts = {place: [number.get(part, -1) for part in label.split("..")] for label, place in number.items()}
    found = []
    for place, own in parts.items():
        if len(own) > 1 and all(part in partner for part in own):
            other = number.get("..".join(labels[partner[part]] for part in reversed(own)))
            found += [] if other is None else [(place, other)]
    for one, other in turned:
        against = list(zip(parts[one], reversed(parts[other]), strict=False))
        if len(against) > 1 and all(partner.get(a, b) == b and partner.get(b, a) == a for a, b in against):
            found.append((one, other))
    return found


def _matches(wanted: Int64, keys: Int64) -> tuple[Int64, Int64]:
    """Return all pairs of a place in `wanted` and one in `keys` that hold the same."""
    order = np.argsort(keys, kind="stable")
    rows, places = match_rows(keys[order], wanted)
    return rows, order[places]


def _pairs(
    relation: Int64, matches: tuple[Int64, Int64], other: npt.NDArray[np.integer], many: int
) -> dict[tuple[int, int], int]:
    """Count by two relations how many edges of the one have the other among their matches."""
    rows, places = matches
    found = distinct(rows * many + other[places])  # an edge and a relation, each pair once
    pairs, counts = np.unique(relation[found // many] * many + found % many, return_counts=True)
    return {divmod(pair, many): count for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True)}


def _fewest(one: int, other: int) -> int:
    """Return how many edges have to be turned round; one that is, and its turn, are two of one relation."""
    return 2 * _FEWEST if one == other else _FEWEST


def _same_word(one: str, other: str) -> bool:
    """True if two relations have one name but for endings and words such as `of` and `by`."""
    return one != other and _own(one) == _own(other)


def _named_after(one: str, other: str) -> bool:
    """True if the name of each of two relations has a word of the other's type."""
    there, back = _own(one) & _owner(other), _own(other) & _owner(one)
    return bool(there and back) and len(there | back) > 1


@lru_cache(1 << 14)
def _own(label: str) -> frozenset[str]:
    """Return the stems of a relation's own name."""
    return _stems(label.rpartition(".")[2])


def _is_statement(label: str) -> bool:
    """True if a relation states inverses: by its own name, behind the last `/`, `#`, `:` or `.` of its label."""
    return re.split(r"[/#:.]", label)[-1].replace("_", "").casefold() in _STATED


def _prefix(label: str) -> str:
    """Return the namespace before a relation's own name."""
    return label.rpartition(".")[0]


@lru_cache(1 << 14)
def _owner(label: str) -> frozenset[str]:
    """Return the stems of a relation's type: `producer` of `film.producer.film`."""
    return _stems(label.rpartition(".")[0].rpartition(".")[2])


def _stems(text: str) -> frozenset[str]:
    words = (word for word in normalize_label(text).split() if word not in FUNCTION_WORDS)
    return frozenset(("person" if word == "people" else word)[:_STEM] for word in words)
