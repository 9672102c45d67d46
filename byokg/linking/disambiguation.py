"""Which of several nodes a question means, by what is around each of them: its type and its relations.

Seven nodes may be called Jordan; a question about a capital means one that has a capital.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byokg.graph.store import GraphStore, RelationCounts
from byokg.index.embedder import Embedder, Vectors
from byokg.index.function_words import FUNCTION_WORDS
from byokg.linking.reading import QUESTION_WORDS, split_words
from byokg.linking.steps import label_words
from byokg.types import Mention

Float = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]

_THRESHOLD = 0.3
"""Cosines up to here count as none; the rest is stretched to [0, 1]."""


@dataclass(frozen=True)
class Surroundings:
    """What is around N nodes, as T texts that describe it."""

    vectors: Vectors
    """(T, D) unit rows."""
    bounds: Int64
    """(N + 1,) node n is described by texts[bounds[n]] up to texts[bounds[n + 1]]."""
    texts: Int64
    """Rows of `vectors`, node after node."""


class ContextScorer:
    """Rates how well the neighbourhood of a node fits a question.

    Each word of the question outside the mention is compared with everything that describes the node: its type, and
    the relations of its edges in both directions, each by its own name and together with its namespace
    (`government.country.capital` is `capital` and `country capital`). The best counts for the word; all words count
    alike. Edges are counted by the store, so a hub costs no more than its relations.

    Safe to share between threads.

    Args:
        store: the graph, for the labels of its relations.
        embedder: compares words.
    """

    def __init__(self, store: GraphStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._known: dict[str, Float] = {}

    def around(self, counts: RelationCounts, types: Sequence[str]) -> Surroundings:
        """Describe nodes.

        Args:
            counts: the relations of N nodes.
            types: their types, empty where there is none: (N,).
        """
        described: list[list[str]] = [[type] if type else [] for type in types]
        labels = self._store.relations
        spelled = {number: _descriptions(labels[number]) for number in np.unique(counts.relation).tolist()}
        for origin, number in zip(counts.origin.tolist(), counts.relation.tolist(), strict=True):
            described[origin] += spelled[number]
        row: dict[str, int] = {}
        texts = [[row.setdefault(text, len(row)) for text in dict.fromkeys(own)] for own in described]
        bounds = np.cumsum([0, *map(len, texts)])
        return Surroundings(self._vectors(list(row)), bounds, np.array([n for own in texts for n in own], np.int64))

    def fit(self, question: str, mention: Mention, around: Surroundings, nodes: Sequence[int]) -> Float:
        """Rate nodes that one mention may mean.

        Args:
            question: its text.
            mention: the piece of it that is left out of account.
            around: describes the nodes.
            nodes: positions in it, N of them.

        Returns:
            (N,) in [0, 1]: mean over the question's words of how well the best description fits; 0 for a node that
            nothing describes, and for all when no other word says anything.
        """
        out = np.zeros(len(nodes), np.float32)
        words = _other_words(question, mention)
        if not words or not len(around.vectors):
            return out
        cosines = self._embedder.encode(words) @ around.vectors.T
        fits = np.clip((cosines - _THRESHOLD) / (1 - _THRESHOLD), 0, 1)
        for place, node in enumerate(nodes):
            texts = around.texts[around.bounds[node] : around.bounds[node + 1]]
            if len(texts):
                out[place] = fits[:, texts].max(axis=1).mean()
        return out

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of descriptions, of which a graph has no more than twice its relations and types."""
        new = [text for text in texts if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedder.encode(new), strict=True))
        return np.stack([self._known[text] for text in texts]) if texts else np.empty((0, 0), np.float32)


def _descriptions(label: str) -> list[str]:
    """Write a relation as words: its own, and those with its namespace."""
    namespace, own = label_words(label)
    return [" ".join(own), " ".join((*namespace, *own))]


def _other_words(question: str, mention: Mention) -> list[str]:
    """Return the words of a question that say something, outside the mention and not in it."""
    rest = f"{question[: mention.start]} {question[mention.end :]}" if mention.start >= 0 else question
    left_out = FUNCTION_WORDS | QUESTION_WORDS | set(split_words(mention.text))
    return [word for word in split_words(rest) if word not in left_out]
