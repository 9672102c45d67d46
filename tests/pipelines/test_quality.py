"""How right the offline pipeline is, to the last question: the figures that README and `docs/measured.md` rest on.

A change that is meant to move them writes the new ones here. Where there are many questions, the first of the dev split
are asked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pytest

from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.benchmarks import MetaQA
from byokg.evaluation.datasets.folder import Folder
from byokg.evaluation.metrics import Metrics
from byokg.evaluation.run_folder import read_runs
from byokg.evaluation.runner import RunSettings, run_evaluation
from byokg.graph.importers.choose import import_graph
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.pipelines.loop import Loop

DATA = Path(os.environ.get("BYOKG_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
FIRST = 300


def needed(name: str) -> Path:
    if not (DATA / name).is_dir():
        pytest.skip(
            f"no folder {name} in {DATA}; set BYOKG_DATA to the folder that holds metaqa, webqsp and freebase_core"
        )
    return DATA / name


def figures(
    pipeline: Loop, examples: Sequence[Example], out: Path, entities: Literal["gold", "linked"]
) -> Mapping[str, float]:
    """Return the metrics of the strict profile in percent, with four decimals."""
    return rounded(
        run_evaluation(pipeline, examples, out, RunSettings("quality", "", "", entities=entities), workers=1)
    )


def rounded(metrics: Metrics) -> Mapping[str, float]:
    return {name: round(100 * one.value, 4) for name, one in metrics.overall.estimates.items()}


def table(hit: float, hits: float, precision: float, recall: float, f1: float, em: float) -> Mapping[str, float]:
    return {"hit": hit, "hits@1": hits, "precision": precision, "recall": recall, "f1": f1, "em": em}


def test_the_demo_prints_the_table_that_readme_shows(demo: Path) -> None:
    [run] = read_runs([demo / "offline"])
    assert run.metrics is not None
    assert rounded(run.metrics) == table(95.2012, 93.9628, 93.494, 94.7265, 93.6641, 89.6285)


@pytest.fixture(scope="module")
def metaqa() -> Loop:
    return offline_pipeline(Parts(import_graph(MetaQA(needed("metaqa"), hops=1).graph_source())))


# No question of MetaQA was fitted on since the weights are fitted on other graphs: 1 hop was at 98.6667 with
# them, 2 and 3 hops at 94.6667. Freebase, whose dev questions are among them, was at 62.6667, atlas at 83.7461.
@pytest.mark.parametrize(
    ("hops", "expected"),
    [
        (1, table(99.6667, 99.6667, 99.6667, 99.6667, 99.6667, 99.6667)),
        (2, table(99.3333, 99.3333, 99.3333, 99.2, 99.25, 99.0)),
        (3, table(96.6667, 96.6667, 96.1439, 95.0917, 95.27, 94.6667)),
    ],
)
def test_movie_questions_are_answered_as_well_as_ever(
    metaqa: Loop, hops: int, expected: Mapping[str, float], tmp_path: Path
) -> None:
    examples = MetaQA(needed("metaqa"), hops, "dev").examples()[:FIRST]
    assert figures(metaqa, examples, tmp_path, "linked") == expected


def test_freebase_questions_are_answered_as_well_as_ever(tmp_path: Path) -> None:
    source = needed("freebase_core") / "graph.tsv.xz"
    examples = Folder(needed("webqsp"), split="dev", graph=source, ids="names").examples()[:FIRST]
    found = figures(offline_pipeline(Parts(import_graph(source)), max_hops=2), examples, tmp_path, "gold")
    assert found == table(78.6667, 71.3333, 67.6474, 71.7919, 65.6341, 50.6667)
