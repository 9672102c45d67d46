"""Searching nodes by their text, without looking at an edge: the baselines of STaRK.

Source: Wu et al., "STaRK" (arXiv:2404.13207), "Retrieval models": BM25, and a dense retriever over one vector a node.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice
from typing import Literal

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float64
from byokg.errors import ConfigError, at_least
from byokg.index.embedders import exact
from byokg.linking.parts import Parts
from byokg.text.names import split_words
from byokg.types import Answer, AnswerItem, Node, Question, of_any

_BLOCK = 1 << 14
"""Nodes whose texts are read, or whose vectors are compared, together."""


def node_text(node: Node) -> str:
    """Return a node's data in one line: its name, types and properties."""
    return " ".join([node.name, *(node.types or ("",)), *(f"{key} {value}" for key, value in node.properties.items())])


class NodeSearch:
    """Answers a question with the nodes whose text fits it best; all of them are read at once.

    Args:
        parts: the graph, and the embedder, which makes the vectors of `vector`.
        method: `bm25` compares words, `vector` meanings.
        k: answers.
        types: node types that may be answers; empty for all.
        k1, b: how much repetition and length of a text count in BM25.

    Raises:
        ConfigError: a setting is out of range.

    Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009).
    """

    def __init__(
        self,
        parts: Parts,
        method: Literal["bm25", "vector"] = "bm25",
        k: int = 20,
        types: Sequence[str] = (),
        k1: float = 1.5,
        b: float = 0.75,
    ) -> None:
        if method not in ("bm25", "vector"):
            raise ConfigError(f"method={method} is not known; use bm25 or vector")
        at_least(1, "answers nothing", k=k)
        self._store = store = parts.store
        self._k = k
        self._numbers: list[int] = []
        self._embedder = parts.embedder if method == "vector" else None
        self._vectors: list[npt.NDArray[np.float32]] = []
        words: dict[str, int] = {}
        postings: list[list[int]] = []
        lengths: list[int] = []
        entities = store.entities()
        at = 0
        while block := list(islice(entities, _BLOCK)):
            nodes = [(at + place, node) for place, node in enumerate(store.nodes(block))]
            at += len(block)
            kept = [(number, node) for number, node in nodes if not types or of_any(node, types)]
            self._numbers += [number for number, _ in kept]
            if self._embedder is not None:
                self._vectors.append(self._embedder.encode([node_text(node) for _, node in kept]))
                continue
            for _, node in kept:
                found = [words.setdefault(word, len(words)) for word in split_words(node_text(node))]
                postings.append(found)
                lengths.append(len(found))
        if self._embedder is None:
            self._index(words, postings, np.array(lengths, np.float64), k1, b)

    def _index(self, words: dict[str, int], postings: list[list[int]], lengths: Float64, k1: float, b: float) -> None:
        """Index for each word its texts and its weight in each."""
        text = np.repeat(np.arange(len(postings)), lengths.astype(np.int64))
        word = np.array([number for own in postings for number in own], np.int64)
        pairs, counts = np.unique(word * max(1, len(postings)) + text, return_counts=True)
        word, self._texts = pairs // max(1, len(postings)), pairs % max(1, len(postings))
        self._words = words
        self._bounds = np.searchsorted(word, np.arange(len(words) + 1))
        having = np.diff(self._bounds)[word]
        rarity = np.log1p((len(postings) - having + 0.5) / (having + 0.5))
        mean = max(1.0, float(lengths.mean())) if len(lengths) else 1.0
        held = counts + k1 * (1 - b + b * lengths[self._texts] / mean)
        # Rounded, since libraries differ in the last bit of a logarithm.
        self._worth = np.round(rarity * counts * (k1 + 1) / held, 9)

    def run(self, question: Question) -> Answer:
        """Answer one question with ids best first, equal ones in the order of the graph."""
        began = time.perf_counter()
        scores = self._scores(question.text)
        best = np.argsort(-scores, kind="stable")[: self._k]
        best = best[scores[best] > 0]
        ids = self._store.ids(np.array([self._numbers[at] for at in best.tolist()], np.int64))
        items = tuple(
            AnswerItem(node.name, node.id, float(scores[at]))
            for node, at in zip(self._store.nodes(ids), best.tolist(), strict=True)
        )
        return Answer(question.id, items, (), {"retrieve": time.perf_counter() - began})

    def _scores(self, text: str) -> Float64:
        if self._embedder is not None:
            asked = exact(self._embedder.encode([text])[0])
            return np.round(np.concatenate([np.empty(0), *(exact(block) @ asked for block in self._vectors)]), 6)
        scores = np.zeros(len(self._numbers))
        for word in dict.fromkeys(split_words(text)):
            if (number := self._words.get(word)) is not None:
                rows = slice(self._bounds[number], self._bounds[number + 1])
                scores[self._texts[rows]] += self._worth[rows]
        return np.round(scores, 6)
