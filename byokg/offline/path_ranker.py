"""A ranker of metapaths that was trained on questions: how well a question's words go with each step of a path.

A score is a weighted sum of the path scorer's features plus a product of low rank: the question's vector is made of
its embedding and its words, pairs and triples of words; the path's of one vector a step, which the step's place in the
path, its relation's text, the names at its end and its label decide. A step whose label was never seen still has its
text and the names.

All is computed on a grid of binary fractions, so that sums are exact in whatever order they are taken, and the
exponential with additions and products only: the same input makes the same bytes on every CPU.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from byokg.arrays import Float64, Int64
from byokg.errors import ConfigError
from byokg.files import write_json
from byokg.graph.paths import labels
from byokg.graph.store import GraphStore
from byokg.index.embedders import Embedder, exact
from byokg.offline.parse import ParsedQuestion
from byokg.offline.schema_linking import RelationSimilarity

SCHEMA = 2
PLACES = 6
"""Places of a step: the first of one, of two, of three, and so on, for paths of at most three steps."""

_SETTINGS, _WEIGHTS = "ranker.json", "ranker.safetensors"
_MANTISSA = 53
_SMALLEST = 400


def product(one: Float64, other: Float64) -> Float64:
    """Multiply matrices (N, K) and (K, M), rounded to a grid on which every sum is exact in float64.

    Each factor is scaled by a power of two to whole numbers of as many bits as K products leave room for: at least 20
    for K up to 8,192.
    """
    bits = (_MANTISSA - max(1, one.shape[-1]).bit_length()) // 2
    scales = [2.0 ** (bits - max(-_SMALLEST, int(np.frexp(np.abs(part).max(initial=0.0))[1]))) for part in (one, other)]
    whole: Float64 = np.rint(one * scales[0]) @ np.rint(other * scales[1])
    unscaled: Float64 = whole / (scales[0] * scales[1])
    return unscaled


def on_grid(values: Float64, bits: int = 20) -> Float64:
    """Round to multiples of 2⁻ᵇⁱᵗˢ, whose sums are exact as long as they are below 2⁵³⁻ᵇⁱᵗˢ."""
    rounded: Float64 = np.rint(values * 2.0**bits) / 2.0**bits
    return rounded


def ngrams(parsed: ParsedQuestion) -> list[str]:
    """Return the words, pairs and triples of a question, each once; a mention is one `_`."""
    words = ["^"]
    for word, hidden in zip(parsed.words, parsed.masked, strict=True):
        if not hidden or words[-1] != "_":
            words.append("_" if hidden else word)
    words.append("$")
    several = [" ".join(words[at : at + size]) for size in (2, 3) for at in range(len(words) - size + 1)]
    return list(dict.fromkeys([*words[1:-1], *several]))


@dataclass(frozen=True)
class RankerWeights:
    """Trained weights; D is the embedder's dimensions, r the rank."""

    features: Float64
    """(F,) one weight for each feature of `path_scorer.Weights`."""
    question: Float64
    """(D, r) for the question's embedding."""
    ngrams: Float64
    """(N, r) one vector for each n-gram known."""
    texts: Float64
    """(PLACES, 3 D, r) for a step's description, see `describe_steps`."""
    labels: Float64
    """(L, r) one vector for each step label at each place that is known."""


def describe_steps(steps: RelationSimilarity, some: Int64 | None = None) -> Float64:
    """Describe the S steps of a graph, or some of them: (S, 3 D).

    The relation's text in one of two places, by the way it is walked, and the names at the end.
    """
    some = np.arange(steps.count) if some is None else some
    texts, inverse = steps.relations.text_vectors[some >> 1], (some & 1)[:, None]
    return np.concatenate((texts * (1 - inverse), texts * inverse, steps.name_vectors[some]), axis=1)


def place_steps(metapaths: Int64, count: int) -> Int64:
    """Number each step of P metapaths of L steps with its place: (P, 3), filled up with -1."""
    length = metapaths.shape[1]
    placed = np.full((len(metapaths), 3), -1, np.int64)
    placed[:, :length] = (length * (length - 1) // 2 + np.arange(length)) * count + metapaths
    return placed


class PathRanker:
    """Scores metapaths of one graph; thread-safe.

    Args:
        weights: trained weights.
        known: numbers of n-grams, rows of `weights.ngrams`.
        places: numbers of placed labels (`2 ^directed_by`: place, label), rows of `weights.labels`.
        store: the graph.
        steps: its schema linking.
        embedder: encodes questions; the one that the ranker was trained with.
    """

    def __init__(
        self,
        weights: RankerWeights,
        known: dict[str, int],
        places: dict[str, int],
        store: GraphStore,
        steps: RelationSimilarity,
        embedder: Embedder,
    ) -> None:
        self._weights, self._known, self._embedder = weights, known, embedder
        self._count = steps.count
        self._labels: dict[int, int] = {}
        """Rows of the table whose label is known at their place, and which label that is."""
        for step, name in enumerate(labels(store, np.arange(steps.count))):
            for place in range(PLACES):
                row = places.get(f"{place} {name}")
                if row is not None:
                    self._labels[place * steps.count + step] = row
        self._table = np.empty((0, 0)) if steps.statistics.grows else self._rows(steps, np.arange(PLACES * steps.count))

    def _rows(self, steps: RelationSimilarity, placed: Int64) -> Float64:
        """Return the vectors of placed steps, and a last row of zeros."""
        described = describe_steps(steps, some := np.unique(placed % max(1, self._count)))
        table = np.zeros((len(placed) + 1, self._weights.question.shape[1]))
        for place, texts in enumerate(self._weights.texts):
            rows = np.flatnonzero(placed // max(1, self._count) == place)
            table[rows] = product(described, texts)[np.searchsorted(some, placed[rows] % max(1, self._count))]
        for row, number in enumerate(placed.tolist()):
            if (label := self._labels.get(number)) is not None:
                table[row] += self._weights.labels[label]
        return on_grid(table)

    @classmethod
    def load(cls, folder: str | Path, store: GraphStore, steps: RelationSimilarity, embedder: Embedder) -> PathRanker:
        """Read a ranker that `byokg fit` wrote.

        Raises:
            ConfigError: the folder holds none, or one that was trained with another embedder.
        """
        folder = Path(folder)
        try:
            settings = json.loads((folder / _SETTINGS).read_text(encoding="utf-8"))
            tensors = load_file(folder / _WEIGHTS)
            weights = RankerWeights(**{name: tensor.astype(np.float64) for name, tensor in tensors.items()})
            schema, trained_with = settings["schema"], settings["embedder"]
            known, places = ({name: row for row, name in enumerate(settings[part])} for part in ("ngrams", "labels"))
        except Exception as error:  # safetensors raises one of its own
            raise ConfigError(
                f"no ranker can be read in {str(folder)!r} ({error}); fit anew with: byokg fit dataset=… --out DIR"
            ) from error
        if schema != SCHEMA or trained_with != embedder.name:
            raise ConfigError(
                f"the ranker in {str(folder)!r} was trained with the embedder {trained_with!r} (schema {schema}), and "
                f"this run has {embedder.name!r} (schema {SCHEMA}); choose that embedding, or train it anew"
            )
        return cls(weights, known, places, store, steps, embedder)

    def question(self, parsed: ParsedQuestion) -> Float64:
        """Return the vector of a question: (r,)."""
        vector = exact(self._embedder.encode([" ".join(parsed.unmasked)]))
        rows = [self._known[ngram] for ngram in ngrams(parsed) if ngram in self._known]
        words = on_grid(self._weights.ngrams[rows]).sum(axis=0) / np.sqrt(max(1, len(rows)))
        return on_grid(product(vector, self._weights.question)[0] + words)

    def fits(self, question: Float64, metapaths: Sequence[Int64], steps: RelationSimilarity | None = None) -> Float64:
        """Return the fit of metapaths with a question, apart from their features.

        Args:
            question: (r,) from `question`.
            metapaths: their steps in parts, each (P', L).
            steps: schema statistics so far, if they are collected per question.

        Returns:
            (P,) log-odds of each.
        """
        placed = np.concatenate([place_steps(part, self._count) for part in metapaths])
        table = self._table
        if steps is not None and steps.statistics.grows:
            used, place = np.unique(placed, return_inverse=True)  # -1 for none comes first
            table, placed = np.roll(self._rows(steps, used[used >= 0]), 1, axis=0), place.reshape(placed.shape)
            placed = placed if used[0] < 0 else placed + 1
        return product(table[placed].sum(axis=1), question[:, None])[:, 0]

    def weigh(self, features: Float64) -> Float64:
        """Return the score of the features of P metapaths: (P, F) to (P,)."""
        return product(features, self._weights.features[:, None])[:, 0]


def save_ranker(
    folder: Path, weights: RankerWeights, known: Sequence[str], places: Sequence[str], record: dict[str, object]
) -> None:
    """Write a ranker into a folder that exists; `record` describes its training, with the embedder's name."""
    tensors = {name: np.ascontiguousarray(part.astype(np.float32)) for name, part in vars(weights).items()}
    save_file(tensors, folder / _WEIGHTS)
    write_json(folder / _SETTINGS, {"schema": SCHEMA, **record, "ngrams": list(known), "labels": list(places)})
