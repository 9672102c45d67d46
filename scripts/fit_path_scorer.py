"""Fit the weights of the offline path scorer on dev splits, and print them.

    python scripts/fit_path_scorer.py --data DIR

DIR holds `metaqa`, `webqsp` and `freebase_core` (default: $BYOKG_DATA or ../shared/data); atlas comes with the
package. Only dev questions are read. The weights maximise the expected share of right answers among the ends of the
metapath that a softmax over the scores would draw: over all lengths, and for MetaQA also with the hop count given.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from byokg.evaluation.datasets.base import Dataset, Example
from byokg.evaluation.datasets.benchmarks import MetaQA
from byokg.evaluation.datasets.folder import Folder, atlas
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.linking.kg_linker import OfflineLinker
from byokg.linking.path_scorer import Weights
from byokg.pipeline.offline import offline_pipeline
from byokg.types import EntityId

Array = npt.NDArray[np.float64]

NAMES = tuple(field.name for field in fields(Weights))
STEPS, RATE = 250, 0.5


@dataclass(frozen=True)
class Case:
    """The metapaths considered for one question."""

    group: str
    features: Array
    """(P, F) in the order of `Weights`."""
    right: Array
    """(P,) share of right answers among the ends."""
    weight: float


def cases(linker: OfflineLinker, store: ColumnarGraph, examples: Sequence[Example], group: str) -> Iterator[Case]:
    """Yield a case for each question whose answer some metapath reaches."""
    known = set(store.entities())
    for example in examples:
        gold = store.numbers([EntityId(one) for one in dict.fromkeys(example.answer_ids) if one in known])
        question = example.asked("gold")
        if not set(question.topic_ids) <= known:
            continue
        considered = linker.considered(question)
        grown, features, named = considered.growths, considered.features, considered.named
        if not grown:
            continue
        right = np.concatenate([_right(part.bounds, part.ends, gold) for part in grown])
        hops = np.concatenate([np.full(len(part), part.steps.shape[1]) for part in grown])
        for name, kept, weight in (
            (group, named, 1.0),
            (f"{group}, hops given", named & (hops == example.hops) & group.startswith("metaqa"), 0.3),
        ):
            if right[kept].max(initial=0.0) > 0:
                yield Case(name, features[kept].astype(np.float64), right[kept], weight)


def _right(bounds: npt.NDArray[np.int64], ends: npt.NDArray[np.integer], gold: npt.NDArray[np.integer]) -> Array:
    owner = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    return np.bincount(owner, np.isin(ends, gold), len(bounds) - 1) / np.diff(bounds)


def fit(data: Sequence[Case], start: Array) -> Array:
    """Climb by Adam; returns the best weights met, judged by the metapath of highest score."""
    weights, first, second = start.copy(), np.zeros_like(start), np.zeros_like(start)
    best, best_score = start, _score(data, start)
    for step in range(1, STEPS + 1):
        slope = np.zeros_like(start)
        for case in data:
            values = case.features @ weights
            chance = np.exp(values - values.max())
            chance /= chance.sum()
            slope += case.weight * ((chance * (case.right - chance @ case.right)) @ case.features) / len(data)
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
        weights = weights + RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-9)
        score = _score(data, weights)
        if score > best_score:
            best, best_score = weights.copy(), score
    return best


def _score(data: Sequence[Case], weights: Array) -> float:
    return float(np.mean([case.weight * case.right[np.argmax(case.features @ weights)] for case in data]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BYOKG_DATA", "../shared/data")))
    parser.add_argument("--questions", type=int, default=300, help="of each set")
    options = parser.parse_args()
    shuffle = random.Random(0)
    data: list[Case] = []
    freebase, films = options.data / "freebase_core" / "graph.tsv.xz", options.data / "metaqa" / "kb.txt.xz"
    shipped = atlas("dev")
    sets: list[tuple[str, Path, Dataset]] = [
        ("metaqa 1-hop", films, MetaQA(options.data / "metaqa", hops=1, split="dev")),
        ("metaqa 2-hop", films, MetaQA(options.data / "metaqa", hops=2, split="dev")),
        ("metaqa 3-hop", films, MetaQA(options.data / "metaqa", hops=3, split="dev")),
        ("webqsp", freebase, Folder(options.data / "webqsp", split="dev", graph=freebase, ids="names")),
        ("atlas", shipped.graph_source(), shipped),
    ]
    for group, source, dataset in sets:
        store = import_graph(source)
        examples = list(dataset.examples())
        if group == "atlas":
            examples = [example for example in examples if example.type in ("1-hop", "2-hop", "3-hop")]
        shuffle.shuffle(examples)
        linker = offline_pipeline(store, max_hops=2 if group == "webqsp" else 3).stages[0].linker
        assert isinstance(linker, OfflineLinker)
        data += cases(linker, store, examples[: options.questions], group)
    weights = fit(data, np.array(astuple(Weights())))
    weights *= Weights().coverage / weights[0]  # only ratios matter; this keeps the unit of the scores
    for name, before, after in zip(NAMES, astuple(Weights()), weights, strict=True):
        print(f"{name:20}{before:8.1f}{after:8.1f}")
    for group in dict.fromkeys(case.group for case in data):
        mine = [case for case in data if case.group == group]
        shares = [
            np.mean([c.right[np.argmax(c.features @ w)] for c in mine]) for w in (np.array(astuple(Weights())), weights)
        ]
        print(f"{group:28}{len(mine):6}{shares[0]:8.3f}{shares[1]:8.3f}")


if __name__ == "__main__":
    main()
