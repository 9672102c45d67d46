"""Accuracy and speed of the offline pipeline on property graphs: properties name things, and questions ask for them.

python benchmarks/property_graphs.py [--data DIR] [--json FILE] [--questions N] [--split test] [--sets NAME …]

ZOGRASCOPE (split by query template, so that a template occurs in one half alone), the same with one letter of one value
misspelt, and with one value that is nowhere (the share of questions for which it is named as unknown); Mind-the-Query
`er` (questions of one column), Northwind and Movies. Entities and values are linked.
Questions whose answer depends on the order of the engine are left out.
"""

from __future__ import annotations

import hashlib
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.dropped_constraints import importable
from benchmarks.measure import read_questions, timed
from benchmarks.rows import Row, make_parser, show
from byokg.evaluation.metrics import normalise
from byokg.evaluation.significance import RESAMPLES, cluster_codes, intervals
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.types import Question

Record = Mapping[str, Any]

SETS = ("zograscope", "mind_the_query_er", "northwind", "movies")
_SHORTEST = 4
"""Characters of a value that is misspelt."""


def records(root: Path, name: str, split: str) -> list[Record]:
    """Return the questions of a half that can be scored."""
    kept = (one for one in read_questions(root / name) if one.get("answers") and not one.get("nondeterministic"))
    return [one for one in kept if half_of(one) == split]


def half_of(one: Record) -> str:
    """Return the half of a question: its split where the set has two, else by the checksum of its template or id."""
    if "source_split" in one:
        return str(one["split"])
    key = one.get("template") or one["id"]
    return "dev" if hashlib.sha256(key.encode()).hexdigest()[0] < "8" else "test"


def misspelt(one: Record, seed: int = 0) -> Record | None:
    """Return a question with one letter or digit of one value dropped, doubled, changed, or swapped with the next.

    None without a value that is long enough.
    """
    chance = random.Random(f"{seed} {one['id']}")
    named = [each["text"] for each in one.get("mentions", ()) if len(each["text"]) >= _SHORTEST]
    named = [text for text in named if text in one["question"]]
    if not named:
        return None
    value = chance.choice(named)
    places = [at for at in range(1, len(value) - 1) if value[at].isalnum() and value[at + 1].isalnum()]
    if not places:
        return None
    at = chance.choice(places)
    letter = chance.choice("0123456789" if value[at].isdigit() else "abcdefghijklmnopqrstuvwxyz")
    edits = (
        value[:at] + value[at + 1 :],
        value[:at] + value[at] + value[at:],
        value[:at] + letter + value[at + 1 :],
        value[:at] + value[at + 1] + value[at] + value[at + 2 :],
    )
    wrong = chance.choice([edit for edit in edits if edit != value] or [value[:at] + value[at + 1 :]])
    return {**one, "question": one["question"].replace(value, wrong, 1)}


def invented(one: Record, seed: int = 0) -> Record | None:
    """Return a question with each digit, vowel and consonant of one value replaced; None without a value."""
    chance = random.Random(f"{seed} {one['id']}")
    named = [text for each in one["mentions"] if len(text := each["text"]) >= _SHORTEST and text in one["question"]]
    if not named:
        return None
    value = chance.choice(named)
    kinds = ("0123456789", "aeiou", "bcdfghklmnprstvw", "AEIOU", "BCDFGHKLMNPRSTVW")
    drawn = "".join(chance.choice(next((kind for kind in kinds if sign in kind), sign)) for sign in value)
    return {**one, "question": one["question"].replace(value, drawn, 1)}


def unknown_share(name: str, graph: ColumnarGraph, asked: Sequence[Record]) -> Row:
    """Return the share of questions for which an unknown value is named."""
    pipeline = offline_pipeline(Parts(graph))
    found = [bool(pipeline.run(Question(one["id"], one["question"])).unknown) for one in asked]
    return Row(f"{name}_unknown", float(np.mean(found)), "share")


def measure(name: str, graph: ColumnarGraph, asked: Sequence[Record], show_wrong: bool) -> Iterator[Row]:
    """Yield Hits@1 and F1 with their intervals, and the time of a question."""
    pipeline = offline_pipeline(Parts(graph))
    pipeline.run(Question("first", "Which one is first?"))  # builds indexes
    first, overlap, seconds = [], [], []
    for one in asked:
        took, answer = timed(lambda: pipeline.run(Question(one["id"], one["question"])))  # noqa: B023
        seconds.append(took)
        items = answer.items
        gold, said = set(map(normalise, one["answers"])), {normalise(item.name) for item in items}
        first.append(bool(items) and normalise(items[0].name) in gold)
        overlap.append(2 * len(gold & said) / (len(gold) + len(said)))
        if show_wrong and not first[-1]:
            print(f"{one['id']} | {one['question']} | {sorted(gold)[:3]} | {[item.name for item in items[:3]]}")
    table = np.array([first, overlap], np.float64).T
    codes = cluster_codes([one.get("template") or one["id"] for one in asked])
    low, high = intervals(table, 0, RESAMPLES, np.ones_like(table), codes)
    for at, metric in enumerate(("hits@1", "f1")):
        yield Row(f"{name}_{metric}", float(table[:, at].mean()), "share", float(low[at]), float(high[at]))
    yield Row(f"{name}_time_median", float(np.median(seconds)) * 1000, "ms")
    yield Row(f"{name}_time_p95", float(np.quantile(seconds, 0.95)) * 1000, "ms")


def main() -> None:
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--questions", type=int, default=300, help="questions per set (default: 300)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample and the misspellings")
    parser.add_argument("--split", default="test", choices=["dev", "test"])
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--wrong", action="store_true", help="print the questions answered wrongly")
    options = parser.parse_args()
    rows: list[Row] = []
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.sets:
            if not (options.data / name).is_dir():
                console.print(f"no {name} in {options.data}; name the folder with --data")
                continue
            asked = records(options.data, name, options.split)
            asked = random.Random(options.seed).sample(asked, min(options.questions, len(asked)))
            graph = build_graph(importable(options.data / name, Path(folder)), Path(folder) / f"{name}.graph")
            variants = {name: asked}
            if asked and "mentions" in asked[0]:
                variants[f"{name}_typo"] = [each for one in asked if (each := misspelt(one, options.seed))]
            for variant, some in variants.items():
                for row in measure(variant, graph, some, options.wrong):
                    rows.append(row)
                    console.print(f"{row.name} {row.value:.4g} {row.unit}", highlight=False)
            if len(variants) > 1:
                strange = [each for one in asked if (each := invented(one, options.seed))]
                rows.append(unknown_share(f"{name}_nowhere", graph, strange))
    show(rows, f"offline pipeline on property graphs, {options.split} half", options.json)


if __name__ == "__main__":
    main()
