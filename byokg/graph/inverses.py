"""Relations that say the same the other way round, as `capital` and `capital_of` do; found in the edges themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np

from byokg.graph.store import GraphStore, InducingStore
from byokg.text import normalize_label

_SAMPLE = 8
"""Edges of each relation that are looked at."""

_SHARE, _SHARE_OF_NAMESAKES = 0.5, 0.1
"""Which share of them another relation has to turn round, and where both names have a word in common: graphs are
incomplete, and what is decided is only whether two edges that join the same two nodes say one thing."""


def inverse_relations(store: GraphStore) -> Mapping[str, frozenset[str]]:
    """Return for each relation those that turn its edges round, itself where it means the same both ways.

    Empty for a graph on a server: edges among many nodes are dear there, and few such graphs say things twice.
    """
    graph = getattr(store, "graph", store)
    if not isinstance(graph, InducingStore):
        return {}
    sample = store.sample_edges(_SAMPLE)
    nodes = np.unique(np.concatenate((sample.head, sample.tail)))
    among = graph.edges_among(nodes)
    many = max(1, len(nodes))
    keys = among.head.astype(np.int64) * many + among.tail
    order = np.argsort(keys, kind="stable")
    turned = np.searchsorted(nodes, sample.tail).astype(np.int64) * many + np.searchsorted(nodes, sample.head)
    first, last = (np.searchsorted(keys[order], turned, side=side).tolist() for side in ("left", "right"))
    relations = np.asarray(among.relation)[order].tolist()
    loops = (sample.head == sample.tail).tolist()  # which any relation turns round
    size, pairs = Counter(sample.relation.tolist()), Counter[tuple[int, int]]()
    for place, relation in enumerate(sample.relation.tolist()):
        if loops[place]:
            continue
        for other in set(relations[first[place] : last[place]]):
            pairs[relation, other] += 1
    labels = store.relations
    words = [frozenset(normalize_label(label).split()) for label in labels]
    found: dict[str, set[str]] = defaultdict(set)
    for (one, other), count in pairs.items():
        namesakes = one != other and words[one] & words[other]
        if count >= (_SHARE_OF_NAMESAKES if namesakes else _SHARE) * size[one]:
            found[labels[one]].add(labels[other])
            found[labels[other]].add(labels[one])
    return {relation: frozenset(others) for relation, others in found.items()}
