"""Fit the weights of the offline path scorer, and print them with what they would be without each graph.

    python scripts/fit_path_scorer.py --data DIR

The shipped weights are fitted on `GRAPHS`: four made-up domains (`benchmarks/domain_questions.py`), atlas, and
Freebase with the dev questions of WebQSP and CWQ. MetaQA and PathQuestion are asked, and never fitted on. For each
graph a row says how right the best choice is on its questions with the weights fitted on all of `GRAPHS`, and with
those fitted on the other ones. Only dev questions are read. The weights maximise the logarithm of the share of right
answers that a softmax over the scores would draw; needs scipy.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from benchmarks.domain_questions import FITTED, make
from byokg.evaluation.datasets.base import Dataset, Example
from byokg.evaluation.datasets.benchmarks import MetaQA, pathquestion
from byokg.evaluation.datasets.folder import Folder, atlas
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.linking.kg_linker import OfflineLinker
from byokg.linking.path_scorer import Weights
from byokg.pipeline.offline import offline_pipeline
from byokg.types import EntityId

Array = npt.NDArray[np.float64]

NAMES = tuple(field.name for field in fields(Weights))
COSTS = frozenset({"unexplained", "choice", "guess", "to_and_fro"})
"""Features that can only count against a metapath."""
FREE = frozenset({"back"})
KEPT = 80
"""Metapaths of a question at most: the most promising ones."""
UNIT = 8.0
"""Scores are natural logarithms times this."""
GRAPHS = (*(domain.name for domain in FITTED), "atlas", "freebase")


@dataclass(frozen=True)
class Case:
    """What may be the answer to one question."""

    features: Array
    """(P, F) in the order of `Weights`."""
    right: Array
    """(P,) share of right answers among the ends."""


@dataclass(frozen=True)
class Asked:
    """One set of questions over a graph."""

    graph: str
    name: str
    cases: list[Case]
    count: int


def cases(linker: OfflineLinker, store: ColumnarGraph, examples: Sequence[Example]) -> Iterator[Case]:
    """Yield a case for each question whose answer something reaches."""
    known = set(store.entities())
    for example in examples:
        gold = store.numbers([EntityId(one) for one in dict.fromkeys(example.answer_ids) if one in known])
        question = example.asked("gold")
        if not len(gold) or not set(question.topic_ids) & known:
            continue
        found = linker.considered(question)
        if not found.growths:
            continue
        shares = np.concatenate([_right(part.bounds, part.ends, gold) for part in found.growths])[found.named]
        joined = [np.isin(nodes, gold).mean() for nodes in found.common]
        features = np.concatenate((found.features[found.named], found.joined)).astype(np.float64)
        right = np.concatenate((shares, joined))
        promise = features @ np.array(astuple(Weights()))
        kept = np.lexsort((-promise, right <= 0))[:KEPT] if len(right) > KEPT else np.arange(len(right))
        kept = np.union1d(kept, np.argsort(-promise, kind="stable")[:KEPT])
        if right.max(initial=0.0) > 0:
            yield Case(features[kept], right[kept])


def _right(bounds: npt.NDArray[np.int64], ends: npt.NDArray[np.integer], gold: npt.NDArray[np.integer]) -> Array:
    owner = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    return np.bincount(owner, np.isin(ends, gold), len(bounds) - 1) / np.diff(bounds)


def fit(sets: Sequence[Asked]) -> Array:
    """Return the weights that make the right metapaths likeliest; a graph counts by the root of its sets."""
    parts = [(case, asked) for asked in sets for case in asked.cases]
    features = np.concatenate([case.features for case, _ in parts])
    right = np.concatenate([case.right for case, _ in parts])
    sizes = np.array([len(case.right) for case, _ in parts])
    starts, owner = np.cumsum(sizes) - sizes, np.repeat(np.arange(len(sizes)), sizes)
    beside = {asked.name: sum(other.graph == asked.graph for other in sets) for asked in sets}
    weight = np.array([1 / len(asked.cases) / beside[asked.name] ** 0.5 for _, asked in parts])
    weight /= weight.sum()
    scale = features.std(axis=0) + 1e-9
    scaled = features / scale

    def loss(weights: Array) -> tuple[float, Array]:
        values = scaled @ weights
        values = np.exp(values - np.maximum.reduceat(values, starts)[owner])
        chance = values / np.add.reduceat(values, starts)[owner]
        drawn = chance * right
        total = np.add.reduceat(drawn, starts)
        slope = (chance * (total / (total + 0.02))[owner] - drawn / (total + 0.02)[owner]) * weight[owner]
        cost = -(weight * np.log(total + 0.02)).sum() + 5e-4 * (weights @ weights)
        return float(cost), scaled.T @ slope + 1e-3 * weights

    bounds = [(None, None) if name in FREE else (None, 0) if name in COSTS else (0, None) for name in NAMES]
    found = minimize(loss, np.zeros(len(NAMES)), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 120})
    weights: Array = found.x / scale
    return weights


def share(asked: Asked, weights: Array) -> float:
    """Return how right the best choices are."""
    return sum(case.right[np.argmax(case.features @ weights)] for case in asked.cases) / max(1, asked.count)


def sets(data: Path, folder: Path) -> Iterator[tuple[str, str, Path, Sequence[Example], int]]:
    """Yield graph, name, source, questions and edges of a path of each set."""
    for domain in FITTED:
        (folder / domain.name).mkdir()
        made = make(domain, 300)
        yield domain.name, domain.name, made.write(folder / domain.name), made.examples, 3
    freebase, films = data / "freebase_core" / "graph.tsv.xz", data / "metaqa" / "kb.txt.xz"
    shipped: Dataset = atlas("dev")
    yield "atlas", "atlas", shipped.graph_source(), list(shipped.examples()), 3
    for name, hops in (("webqsp", 2), ("cwq", 3)):
        examples = Folder(data / name, split="dev", graph=freebase, ids="names").examples()
        yield "freebase", name, freebase, list(examples), hops
    for hops in (1, 2, 3):
        yield "metaqa", f"metaqa {hops}", films, list(MetaQA(data / "metaqa", hops, "dev").examples()), 3
    for hops in (2, 3):
        questions = pathquestion(data / "pathquestion", hops)
        dev = [e for e in questions.examples() if hashlib.sha256(e.cluster.encode()).hexdigest()[0] in "01234567"]
        source = folder / f"pq{hops}.tsv"
        source.write_text((data / "pathquestion" / f"{hops}H-kb.txt").read_text("utf-8"), "utf-8")
        yield f"pathquestion {hops}", f"pathquestion {hops}", source, dev, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BYOKG_DATA", "../shared/data")))
    parser.add_argument("--questions", type=int, default=250, help="of each set")
    options = parser.parse_args()
    asked: list[Asked] = []
    stores: dict[Path, ColumnarGraph] = {}
    with tempfile.TemporaryDirectory() as folder:
        for graph, name, source, found, hops in sets(options.data, Path(folder)):
            examples = list(found)
            random.Random(0).shuffle(examples)
            examples = examples[: options.questions]
            store = stores.setdefault(source, stores.get(source) or import_graph(source))
            linker = offline_pipeline(store, max_hops=hops).stages[0].linker
            assert isinstance(linker, OfflineLinker)
            asked.append(Asked(graph, name, list(cases(linker, store, examples)), len(examples)))
    fitted = [one for one in asked if one.graph in GRAPHS]
    everything = fit(fitted)
    for name, before, after in zip(NAMES, astuple(Weights()), UNIT * everything, strict=True):
        print(f"{name:20}{before:8.1f}{after:8.1f}")
    apart: Mapping[str, Array] = {graph: fit([one for one in fitted if one.graph != graph]) for graph in GRAPHS}
    print(f"{'':20}{'questions':>10}{'shipped':>9}{'fitted':>9}{'without its graph':>19}")
    for one in asked:
        shares = [share(one, weights) for weights in (np.array(astuple(Weights())), everything)]
        without = share(one, apart.get(one.graph, everything))
        print(f"{one.name:20}{one.count:10}{shares[0]:9.3f}{shares[1]:9.3f}{without:19.3f}")


if __name__ == "__main__":
    main()
