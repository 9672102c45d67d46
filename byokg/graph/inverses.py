"""Inverse relations, as `capital` and `capital_of`, detected from the edges themselves.

Two relations that often join the same nodes, one each way, need not be inverses: most films' directors produced some of
them. An edge `A directed B` counts as evidence if B has any edge `directed_by` at all: if one of them leads back to A,
for the pair; if none does, against it. So gaps of a graph, which has an edge one way only, do not count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.graph.sorted_ids import distinct
from byokg.graph.store import GraphStore
from byokg.text.labels import normalize_label
from byokg.text.names import FUNCTION_WORDS

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


_FOUND: WeakKeyDictionary[GraphStore, Mapping[str, frozenset[str]]] = WeakKeyDictionary()
"""By graph, since several parts of a pipeline ask for the same."""


def inverse_relations(store: GraphStore) -> Mapping[str, frozenset[str]]:
    """Return for each relation its inverses, itself if it is symmetric.

    Empty for a graph on a server: edges among many nodes are expensive there, and few such graphs store facts twice.
    Computed once for a graph.
    """
    graph = store.columnar
    if graph is None:
        return {}
    found = _FOUND.get(store)
    if found is None:
        found = _FOUND[store] = _found_in(store, graph)
    return found


def _found_in(store: GraphStore, graph: ColumnarGraph) -> Mapping[str, frozenset[str]]:
    """Look at a sample of the edges of each relation; those of undirected ones lead both ways."""
    sample, labels = store.sample_edges(_SAMPLE), store.relations
    kept = np.flatnonzero(sample.head != sample.tail)  # a loop is turned round by any relation
    head, relation, tail = (
        np.asarray(column)[kept].astype(np.int64) for column in (sample.head, sample.relation, sample.tail)
    )
    nodes = distinct(np.concatenate((head, tail)))
    place = np.searchsorted(nodes, tail)
    among = graph.edges_among(nodes)
    back = _matches(
        place * len(nodes) + np.searchsorted(nodes, head),
        np.asarray(among.head).astype(np.int64) * len(nodes) + among.tail,
    )
    counts = store.relation_counts(nodes)
    out = np.flatnonzero(~np.asarray(counts.inverse))
    onward = _matches(place, np.asarray(counts.origin)[out])
    turned = _pairs(relation, back, np.asarray(among.relation), len(labels))
    able = _pairs(relation, onward, np.asarray(counts.relation)[out], len(labels))
    share = {pair: count / able[pair] for pair, count in turned.items() if count >= _fewest(*pair)}
    both = {(one, other): value * share.get((other, one), 0.0) for (one, other), value in share.items()}
    best: dict[int, float] = defaultdict(float)
    for (one, _), value in both.items():
        best[one] = max(best[one], value)
    found: dict[str, set[str]] = defaultdict(set)
    for number in store.undirected_relations().tolist():
        found[labels[number]].add(labels[number])
    for (one, other), one_way in share.items():
        larger, best_of_both = max(one_way, share.get((other, one), 0.0)), max(best[one], best[other])
        # A shortcut over a mediator (`a..b`) is turned round by another one.
        if labels[one].count("..") == labels[other].count("..") and (
            both[one, other] >= max(_LEAST, _SHARE_OF_BEST * best_of_both)
            or (_same_word(labels[one], labels[other]) and larger >= _SHARE_OF_NAMESAKES)
            or (_named_after(labels[one], labels[other]) and larger >= _SHARE_OF_NAMED)
        ):
            found[labels[one]].add(labels[other])
            found[labels[other]].add(labels[one])
    called = {frozenset((_own(one), _own(other))) for one, others in found.items() for other in others}
    for (one, other), one_way in share.items():
        alike = _prefix(labels[one]) == _prefix(labels[other]) != "" and _own(labels[one]) != _own(labels[other])
        if (
            alike
            and frozenset((_own(labels[one]), _own(labels[other]))) in called
            and max(one_way, share.get((other, one), 0.0)) >= _SHARE_OF_NAMESAKES
        ):
            found[labels[one]].add(labels[other])
            found[labels[other]].add(labels[one])
    return {relation: frozenset(others) for relation, others in found.items()}


def _matches(wanted: Int64, keys: Int64) -> tuple[Int64, Int64]:
    """Return all pairs of a place in `wanted` and one in `keys` that hold the same."""
    order = np.argsort(keys, kind="stable")
    first, last = (np.searchsorted(keys[order], wanted, side=side) for side in ("left", "right"))
    size = last - first
    rows = np.repeat(np.arange(len(wanted)), size)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(size) - size, size)
    return rows, order[np.repeat(first, size) + within]


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
