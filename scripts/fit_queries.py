"""Fit the weights of query graphs: their ranking, its confidence, and the choice between a query graph and paths.

    python scripts/fit_queries.py --data DIR [--questions N] [--rounds N]

DIR holds `zograscope`, `mind_the_query_er`, `northwind` and `movies`, of which the dev halves of
`benchmarks/property_graphs.py` are used; atlas (dev) comes with the package, and `benchmarks/natural_questions.py` has
further graphs. A query graph is right if its result has the largest F1 of all candidates, and one above one half. Each
round generates candidates with the weights of the round before and adds them to its own. Printed are Hits@1 of each set
with all weights and with weights fitted without the set's graph. Weights go to `byokg/data/query_weights.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.dropped_constraints import importable
from benchmarks.natural_questions import READ, UNREAD, unpacked
from benchmarks.property_graphs import SETS, Record, misspelt, records
from byokg.arrays import Float64
from byokg.evaluation.datasets.folder import SHIPPED
from byokg.evaluation.metrics import normalise
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.graph.property_view import value_name
from byokg.index.embedders import shipped_embedder
from byokg.linking.parts import Parts
from byokg.offline.pipeline import has_valued_properties, offline_pipeline
from byokg.offline.query_answers import QueryAnswers, RankedQuery, choice_features, count_valued, features_of
from byokg.offline.query_ranking import CHOICE, CONFIDENCE, FEATURES, WEIGHTS, QueryWeights, shipped_weights
from byokg.types import Question

NEGATIVE = frozenset(
    "uncovered steps unheard_steps unheard_types unheard_root unheard_leaves spans_unused value_number leaves "
    "inversions distance operators_unused mentions_extra empty everything projected_fixed projected".split()
)
"""Features that count against a query graph, and"""
POSITIVE = frozenset(
    "covered root_asked root_first value_quality value_near value_type_near projected_heard projected_asked "
    "projected_first superlative_heard value_part".split()
)
"""for it."""
PRIOR = {"value_quality": 4.0, "spans_unused": -1.0, "value_near": 0.5, "value_part": 0.5}
"""Weights that rare features stay near."""
WORTH = {"zograscope": 3.0, "mind_the_query_er": 2.0, "zograscope_typo": 1.5}
"""What a set counts beside another."""


@dataclass(frozen=True)
class Judged:
    """The candidates of one question."""

    features: Float64
    """(C, F) in the order of `FEATURES`."""
    f1: Float64
    """(C,) of each result."""
    hit: Float64
    """(C,) 1 if the first answer is right."""


def question_sets(data: Path, count: int, folder: Path) -> Iterator[tuple[str, ColumnarGraph, list[Record]]]:
    """Yield graphs with dev questions."""
    for name in SETS:
        if not (data / name).is_dir():
            continue
        graph = build_graph(importable(data / name, folder), folder / f"{name}.graph")
        asked = records(data, name, "dev")[:count]
        yield name, graph, asked
        if "mentions" in asked[0]:
            yield f"{name}_typo", graph, [each for one in asked if (each := misspelt(one))][: count // 3]
    natural = unpacked(folder / "natural")
    for root in (SHIPPED, *(natural / name for name in (*READ, *UNREAD))):
        if (root / "nodes.csv").exists():
            read = [json.loads(line) for line in (root / "questions.jsonl").read_text("utf-8").splitlines()]
            asked = [one for one in read if one.get("split", "dev") == "dev"][: count // 3]
            yield root.name, build_graph(root, folder / f"{root.name}.graph"), asked


def judged(queries: QueryAnswers, one: Record) -> tuple[Judged, list[RankedQuery]]:
    """Return the candidates of a question, judged by its gold answers."""
    gold = {_shown(str(answer)) for answer in one["answers"]}
    _, found = queries.ranked(one["question"])
    said = [[_shown(name) for name in _names(queries.graph, each)] for each in found]
    f1 = [2 * len(gold & set(names)) / max(1, len(gold) + len(set(names))) for names in said]
    hit = [float(bool(names) and names[0] in gold) for names in said]
    features = np.array([each.features for each in found]).reshape(len(found), len(FEATURES))
    return Judged(features, np.array(f1), np.array(hit)), found


def _names(graph: ColumnarGraph, one: RankedQuery) -> list[str]:
    if one.result.values or one.graph.projected is not None:
        return [value_name(value) for value in one.result.values]
    return graph.names_at(one.result.nodes)


def _shown(text: str) -> str:
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return normalise(text)


def descend(
    loss: Callable[[Float64], Float64], start: Float64, spread: Float64, bound: Callable[[Float64], Float64]
) -> Float64:
    """Return the weights after projected gradient descent with momentum on standardised features.

    Args:
        loss: returns the gradient at some weights.
        start: first weights.
        spread: standard deviation of each feature.
        bound: puts weights within their bounds.
    """
    found, speed, mean = start, np.zeros(len(start)), np.zeros(len(start))
    for step in range(1, 1500):
        gradient = loss(found) / spread
        mean = 0.9 * mean + 0.1 * gradient
        speed = 0.99 * speed + 0.01 * gradient**2
        move = (mean / (1 - 0.9**step)) / (np.sqrt(speed / (1 - 0.99**step)) + 1e-8)
        found = bound(found - 0.05 * 0.998**step * move / spread)
    return found


def fit_ranking(sets: Mapping[str, Sequence[Judged]]) -> Float64:
    """Return weights that maximise the likelihood of right query graphs among all candidates of a question."""
    data = []
    for name, questions in sets.items():
        good = [one for one in questions if len(one.f1) and one.f1.max() > 0.5]
        data += [(one.features, one.f1 >= one.f1.max() - 1e-9, WORTH.get(name, 1.0) / len(good)) for one in good]
    spread = np.maximum(np.concatenate([features for features, _, _ in data]).std(axis=0), 0.05)
    prior = np.array([PRIOR.get(name, 0.0) for name in FEATURES])

    def gradient(weights: Float64) -> Float64:
        found = 0.04 * (weights - prior) * spread**2
        for features, right, worth in data:
            scores = features @ weights
            share = np.exp(scores - scores.max())
            among, of = share * right, share / share.sum()
            found -= worth * features.T @ (among / max(among.sum(), 1e-12) - of)
        return np.asarray(found, np.float64)

    def bound(weights: Float64) -> Float64:
        low = np.array([0.0 if name in POSITIVE else -np.inf for name in FEATURES])
        high = [0.0 if name in NEGATIVE else np.inf for name in FEATURES]
        return np.asarray(np.clip(weights, low, high), np.float64)

    return descend(gradient, prior, spread, bound)


def fit_logistic(rows: Float64, right: Float64, worth: Float64) -> Float64:
    """Return the weights of a logistic regression of N rows, each of some worth; the first feature is a constant."""
    spread = np.maximum(rows.std(axis=0), 0.05)

    def gradient(weights: Float64) -> Float64:
        chance = 1 / (1 + np.exp(-(rows @ weights)))
        return np.asarray(rows.T @ (worth * (chance - right)) / worth.sum() + 0.002 * weights * spread**2, np.float64)

    return descend(gradient, np.zeros(rows.shape[1]), spread, lambda weights: weights)


def choices(queries: QueryAnswers, asked: Sequence[Record]) -> Iterator[tuple[Float64, float, Float64, float]]:
    """Yield features of confidence, whether the query graph is right, features of the choice, and whether paths are.

    The confidence of the query graph in the choice is left open.
    """
    paths = offline_pipeline(Parts(queries.graph), query_graphs=False)
    for one in asked:
        candidates, found = judged(queries, one)
        if not found or not len(found[0].result.nodes):
            continue
        items = paths.run(Question(one["id"], one["question"])).items
        right = bool(items) and _shown(items[0].name) in {_shown(str(answer)) for answer in one["answers"]}
        choice = choice_features(count_valued(found[0].graph), 0.5, items[0].score if items else 0.0)
        yield features_of(found), float(candidates.hit[0]), choice, float(right)


def fit_choice(sets: Sequence[tuple[QueryAnswers, Sequence[Record]]]) -> tuple[Float64, Float64]:
    """Return the weights of confidence and of the choice."""
    parts = [list(choices(queries, asked)) for queries, asked in sets]
    rows = [row for part in parts for row in part]
    worth = np.concatenate([np.full(len(part), 1 / max(1, len(part))) for part in parts])
    signs, right = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    confidence = fit_logistic(signs, right, worth)
    chosen = np.array([row[2] for row in rows])
    chosen[:, CHOICE.index("confidence")] = np.clip(signs @ confidence, -4.6, 4.6)
    apart = right != np.array([row[3] for row in rows])
    return confidence, fit_logistic(chosen[apart], right[apart], worth[apart])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BYOKG_DATA", "../shared/data")))
    parser.add_argument("--questions", type=int, default=300, help="per set at most (default: 300)")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--output", type=Path, default=WEIGHTS, help="weights to write (default: those of the package)")
    options = parser.parse_args()
    weights = shipped_weights()
    with tempfile.TemporaryDirectory() as folder:
        opened = list(question_sets(options.data, options.questions, Path(folder)))
        opened = [one for one in opened if has_valued_properties(one[1])]
        held: dict[str, list[Judged]] = {name: [] for name, _, _ in opened}

        def queries(graph: ColumnarGraph) -> QueryAnswers:
            return QueryAnswers(graph, shipped_embedder(), weights)

        for _ in range(options.rounds):
            for name, graph, asked in opened:
                made = queries(graph)
                held[name] += [judged(made, one)[0] for one in asked]
            weights = QueryWeights(fit_ranking(held), weights.confidence, weights.choice)
        for name, questions in held.items():
            without = fit_ranking({other: some for other, some in held.items() if other.split("_typo")[0] != name})
            for label, used in (("all", weights.ranking), ("without the graph", without)):
                hits = [one.hit[int(np.argmax(one.features @ used))] for one in questions if len(one.hit)]
                print(f"{name}: Hits@1 {np.mean(hits):.3f} ({label})")
        confidence, choice = fit_choice([(queries(graph), asked) for _, graph, asked in opened])
    parts = (("ranking", FEATURES, weights.ranking), ("confidence", CONFIDENCE, confidence), ("choice", CHOICE, choice))
    written = {part: dict(zip(names, np.round(some, 4).tolist(), strict=True)) for part, names, some in parts}
    options.output.write_text(json.dumps(written, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
