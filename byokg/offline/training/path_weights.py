"""Fitting the weights of the path scorer: how much each feature of a metapath counts, from questions with answers.

The weights maximise the logarithm of the share of right answers that a softmax over the scores draws. numpy alone, and
sums on a grid: the same questions make the same weights on every CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float64
from byokg.errors import ConfigError
from byokg.evaluation.datasets.base import Example
from byokg.graph.store import GraphStore
from byokg.offline.linker import OfflineLinker
from byokg.offline.path_ranker import on_grid, product
from byokg.offline.path_scorer import UNIT, Weights
from byokg.offline.training.ranker import exponential
from byokg.types import EntityId


@dataclass(frozen=True)
class WeightFit:
    """Settings of the fit of path weights."""

    kept: int = 40
    """Metapaths of a question: the most promising ones, and as many that are right."""
    soft: float = 0.02
    """Share of right answers that a wrong choice counts as: no question is worth giving up all others."""
    penalty: float = 5e-4
    """Squared-distance penalty to the prior."""
    rounds: int = 300
    """Updates."""
    rate: float = 0.1
    """First learning rate; falls linearly."""


_FIT = WeightFit()

_NAMES = tuple(field.name for field in fields(Weights))
_COSTS = frozenset(
    {"unexplained", "missing_hops", "extra_hops", "log_branching", "log_unexplained_branching", "zigzag"}
)
"""Features that can only count against a metapath."""
_FREE = frozenset({"hop", "third", "backtracks"})
"""Features that may count for or against it."""
_MOMENTS = (0.9, 0.99)


@dataclass(frozen=True)
class CandidateSet:
    """Possible answers to one question: P metapaths, and pairs of them that meet."""

    features: Float64
    """(P, F) in the order of `Weights`."""
    right: Float64
    """(P,) share of right answers among the ends."""


def candidate_sets(
    linker: OfflineLinker,
    store: GraphStore,
    examples: Iterable[Example],
    gold: Callable[[Example], Sequence[EntityId]] = lambda example: example.answer_ids,
) -> Iterator[CandidateSet]:
    """Yield a record for each question with an answer that a metapath reaches from its topic entities.

    A question without topic entities starts from the entities that the linker finds in it.

    Args:
        linker: proposes metapaths; its weights select the most promising.
        store: the graph, as the linker walks it (`linker.store`).
        examples: questions, whose topic ids are those of the graph.
        gold: returns the answer nodes of a question.
    """
    known = set(store.entities())
    promising = np.array(astuple(linker.scorer.weights))
    for example in examples:
        right_nodes = store.numbers([EntityId(one) for one in dict.fromkeys(gold(example)) if one in known])
        question = example.to_question("gold")
        if not len(right_nodes) or (question.topic_ids and not set(question.topic_ids) & known):
            continue
        found = linker.score_candidates(question)
        if not found.growths:
            continue
        parts = [_right(growth.bounds, np.isin(growth.ends, right_nodes)) for growth in found.growths]
        joined = [float(np.isin(nodes, right_nodes).mean()) for nodes in found.common]
        right = np.concatenate((np.concatenate(parts)[found.named], joined))
        features = np.concatenate((found.features[found.named], found.joined)).astype(np.float64)
        promise = product(features, promising[:, None])[:, 0]
        best, reaching = np.argsort(-promise, kind="stable"), np.lexsort((-promise, right <= 0))
        kept = np.union1d(best[: _FIT.kept], reaching[: _FIT.kept])
        if right.max(initial=0.0) > 0:
            yield CandidateSet(features[kept], on_grid(right[kept]))


def _right(bounds: npt.NDArray[np.int64], hit: npt.NDArray[np.bool_]) -> Float64:
    owner = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    return np.bincount(owner, hit, len(bounds) - 1) / np.diff(bounds)


def rightness(asked: Sequence[CandidateSet], weights: Weights) -> float:
    """Return how right the best choices are, on average: share of right answers, in [0, 1]."""
    column = np.array(astuple(weights))[:, None]
    return sum(float(one.right[np.argmax(product(one.features, column)[:, 0])]) for one in asked) / max(1, len(asked))


def fit_weights(sets: Sequence[tuple[float, Sequence[CandidateSet]]], near: Weights | None = None) -> Weights:
    """Return the maximum-likelihood weights.

    Args:
        sets: questions, and the total weight of each set.
        near: weights of the prior, which counts the more, the fewer questions there are; none when left out.

    Raises:
        ConfigError: no question is usable for training.
    """
    sets = [(worth, asked) for worth, asked in sets if asked]
    if not sets:
        raise ConfigError(
            "no question can be fitted on: none has a relation path from its topic to its answers in this graph; "
            "check that graph, dataset and dataset.ids belong together"
        )
    parts = [(one, worth / len(asked)) for worth, asked in sets for one in asked]
    features = np.concatenate([one.features for one, _ in parts])
    right = np.concatenate([one.right for one, _ in parts])
    sizes = np.array([len(one.right) for one, _ in parts])
    starts, owner = np.cumsum(sizes) - sizes, np.repeat(np.arange(len(sizes)), sizes)
    worth = np.array([share for _, share in parts])
    worth = on_grid(worth / worth.sum(), 40)
    scale = np.maximum(_deviation(features), 1e-3)
    scaled = on_grid(features / scale, 12)  # of so few bits that all sums below are exact in any order
    centre = np.zeros(len(scale)) if near is None else np.array(astuple(near)) / UNIT * scale
    penalty = _FIT.penalty if near is None else max(_FIT.penalty, 1 / len(parts))
    lowest = np.array([-np.inf if name in _COSTS | _FREE else 0.0 for name in _NAMES])
    highest = np.array([0.0 if name in _COSTS else np.inf for name in _NAMES])
    weights, first, second = centre.copy(), np.zeros(len(scale)), np.zeros(len(scale))
    for number in range(1, _FIT.rounds + 1):
        scores = scaled @ on_grid(weights, 16)
        chance = on_grid(exponential(scores - np.maximum.reduceat(scores, starts)[owner]), 30)
        chance = on_grid(chance / np.add.reduceat(chance, starts)[owner], 30)
        drawn = on_grid(chance * right, 30)
        total = np.add.reduceat(drawn, starts)
        share = total / (total + _FIT.soft)
        slope = (chance * share[owner] - drawn / (total + _FIT.soft)[owner]) * worth[owner]
        gradient = scaled.T @ on_grid(slope, 33) + 2 * penalty * (weights - centre)
        first = _MOMENTS[0] * first + (1 - _MOMENTS[0]) * gradient
        second = _MOMENTS[1] * second + (1 - _MOMENTS[1]) * gradient * gradient
        step = first / (1 - _MOMENTS[0] ** number) / (np.sqrt(second / (1 - _MOMENTS[1] ** number)) + 1e-6)
        weights = np.clip(weights - _FIT.rate * (1 - (number - 1) / _FIT.rounds) * step, lowest, highest)
    return Weights(*(float(round(UNIT * value, 1)) + 0.0 for value in (weights / scale).tolist()))


def _deviation(features: Float64) -> Float64:
    """Return the standard deviation of each feature, rounded, so that it is the same in any order of adding."""
    rounded = on_grid(features)
    mean = on_grid(rounded.sum(axis=0) / len(rounded), 10)
    return on_grid(np.sqrt(on_grid((rounded - mean) ** 2).sum(axis=0) / len(rounded)), 10)
