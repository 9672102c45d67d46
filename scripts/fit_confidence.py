"""Fit the weights of the offline pipeline's ranker of candidates, and evaluate them on unseen graphs.

    python scripts/fit_confidence.py --data DIR [--questions N] [--signs FILE]

DIR holds `metaqa`, `webqsp`, `cwq`, `freebase_core`, `pathquestion`, `cronquestions`, `medqa_ddb` and `northwind`
(default: $BYOKG_DATA or ../shared/data; missing ones are skipped); atlas and biomedical come with the package, and
synthetic domains with `benchmarks/domain_questions.py`, whose questions are not in the table. Of the graphs of
`benchmarks/natural_questions.py` the inspected ones are used for fitting, and the others for testing.
Weights are fitted on dev and train questions of all graphs and written to `byokg/data/confidence.json`; questions over
the domains with few answering paths (`benchmarks/hard_questions.py`) count a twentieth. The table is of
test questions: for each set Hits@1 of answered questions, AUROC and expected calibration error (ten bins of equal
width) with weights fitted without any question over the set's graph, and with the written ones. `--signs` caches the
features, so that a second fit takes a minute.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.domain_questions import FITTED as DOMAINS
from benchmarks.domain_questions import HELD_OUT, make
from benchmarks.hard_questions import make_hard
from benchmarks.measure import read_lines
from benchmarks.natural_questions import READ, UNREAD, opened, unpacked
from byokg.errors import EntityNotFound
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.benchmarks import MetaQA, pathquestion
from byokg.evaluation.datasets.folder import Folder, atlas
from byokg.evaluation.datasets.testset import make_testset, write_testset
from byokg.evaluation.metrics import normalise
from byokg.evaluation.significance import auroc, calibration_error
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.graph.name_indexes import build_names
from byokg.linking.parts import Parts
from byokg.offline.answerer import Confidence
from byokg.offline.pipeline import offline_pipeline
from byokg.offline.ranking import FITTED, NAMES, RankingWeights, save_weights
from byokg.offline.training.calibration import first_answers, fit_ranking, judged
from byokg.offline.training.path_weights import CandidateSet
from byokg.pipelines.loop import Loop
from byokg.types import Context, EntityId, Question

Array = npt.NDArray[np.float64]

PACKAGE = FITTED.parent

HARD = 0.05
"""What a set of hard questions counts beside another: they show how answers are wrong, and not how many are."""


@dataclass(frozen=True)
class Asked:
    """The questions of one set and split that were answered."""

    name: str
    graph: str
    split: str
    """`dev`, `test`, or `hard`: fitted on, too."""
    judged: list[CandidateSet]


def examine(name: str, graph: str, split: str, pipeline: Loop, examples: Sequence[tuple[Question, set[str]]]) -> Asked:
    """Answer questions, and keep the features of their candidates."""
    judge = pipeline.estimator
    assert isinstance(judge, Confidence)
    found, right = [], 0
    for question, gold in examples:
        try:
            answer = pipeline.run(question)
        except EntityNotFound:  # a topic that the graph lacks
            continue
        if answer.items:
            found.append(judged(judge, Context(answer.rounds, question.text), answer.items, gold))
            right += normalise(answer.items[0].name) in gold
    print(f"{name} {split}: {len(found)} of {len(examples)} answered, {right} right", flush=True)
    return Asked(name, graph, split, found)


def with_gold(examples: Sequence[Example], count: int, entities: str) -> list[tuple[Question, set[str]]]:
    """Draw questions, with the names of their gold answers."""
    drawn = random.Random(0).sample(list(examples), min(count, len(examples)))
    return [
        (one.to_question("gold" if entities == "gold" else "linked"), set(map(normalise, one.answers))) for one in drawn
    ]


def half(key: str) -> str:
    """Return the split of a cluster."""
    return "dev" if hashlib.sha256(key.encode()).hexdigest()[0] < "8" else "test"


def sets(data: Path, count: int, folder: Path) -> Iterator[Asked]:
    """Answer the questions of all sets that are there."""
    shipped = atlas("dev")
    pipeline = offline_pipeline(Parts(_graph(shipped.graph_source(), folder / "atlas")), query_graphs=False)
    for split in ("dev", "test"):
        yield examine("atlas", "atlas", split, pipeline, with_gold(atlas(split).examples(), 2 * count, "linked"))
    made = {"biomedical": PACKAGE / "biomedical"}
    if (data / "medqa_ddb").is_dir():
        made["medqa_ddb"] = data / "medqa_ddb" / "graph.tsv.xz"
    if (data / "northwind").is_dir():
        source = folder / "northwind.yaml"
        text = (PACKAGE / "northwind" / "graph.yaml").read_text("utf-8")
        source.write_text(f"folder: {data / 'northwind'}\n{text}", "utf-8")
        made["northwind"] = source
    for name, source in made.items():
        graph = _graph(source, folder / name)
        write_testset(make_testset(graph, min(300, count)), folder / f"{name}_set")
        pipeline = offline_pipeline(Parts(graph), query_graphs=False)
        for split in ("dev", "test"):
            examples = Folder(folder / f"{name}_set", split=split).examples()
            yield examine(f"{name}, made", name, split, pipeline, with_gold(examples, count, "gold"))
    if (data / "cronquestions").is_dir():
        yield from _cronquestions(data / "cronquestions", count, folder)
    for hops in (2, 3) if (data / "pathquestion").is_dir() else ():
        dataset = pathquestion(data / "pathquestion", hops)
        (source := folder / f"{hops}H.tsv").write_text((data / "pathquestion" / f"{hops}H-kb.txt").read_text("utf-8"))
        pipeline = offline_pipeline(Parts(_graph(source, folder / f"pathquestion{hops}")))
        for split in ("dev", "test"):
            mine = [one for one in dataset.examples() if half(str(one.topic_ids)) == split]
            yield examine(f"pathquestion {hops}-hop", "pathquestion", split, pipeline, with_gold(mine, count, "gold"))
    source = data / "freebase_core" / "graph.tsv.xz"
    if source.is_file():
        graph = _graph(source, folder / "freebase")
        for hops, names in ((2, ("webqsp", "webqsp, linked")), (2, ("cwq",))):
            pipeline = offline_pipeline(Parts(graph), max_hops=hops)
            for name in names:
                entities = "linked" if "linked" in name else "gold"
                for split in ("dev", "test"):
                    dataset = Folder(data / name.split(",")[0], split=split, graph=source, ids="names")
                    found = with_gold(dataset.examples(), count, entities)
                    yield examine(name, "freebase", split, pipeline, found)
    if (data / "metaqa").is_dir():
        pipeline = offline_pipeline(Parts(_graph(MetaQA(data / "metaqa", 1).graph_source(), folder / "metaqa")))
        for hops in (1, 2, 3):
            for split in ("dev", "test"):
                examples = MetaQA(data / "metaqa", hops, split).examples()
                yield examine(f"metaqa {hops}-hop", "metaqa", split, pipeline, with_gold(examples, count, "gold"))

    for domain in (*DOMAINS, *HELD_OUT):
        (place := folder / f"domain {domain.name}").mkdir()
        made_up = make(domain, 200)
        pipeline = offline_pipeline(Parts(_graph(made_up.write(place), place / "graph")))
        hard = make_hard(domain, 150)
        for split, examples in (("dev", made_up.examples), ("hard", hard.examples)):
            yield examine(domain.name, domain.name, split, pipeline, with_gold(examples, 200, "gold"))

    natural = unpacked(folder / "natural")
    for name in (*READ, *UNREAD):
        pipeline, questions = opened(natural / name, folder / f"{name}.graph", query_graphs=False)
        for entities in ("gold", "linked"):
            drawn = with_gold(questions, count, entities)
            yield examine(f"{name}, {entities}", name, "dev" if name in READ else "test", pipeline, drawn)


def _graph(source: Path, out: Path) -> ColumnarGraph:
    graph = build_graph(source, out)
    build_names(graph)
    return graph


def _cronquestions(root: Path, count: int, folder: Path) -> Iterator[Asked]:
    source = folder / "cronquestions.tsv"
    with lzma.open(root / "graph_quads.tsv.xz", "rt", encoding="utf-8") as quads:
        source.write_text("head\trelation\ttail\tstart\tend\n" + quads.read(), encoding="utf-8")
    pipeline = offline_pipeline(Parts(_graph(source, folder / "cronquestions")))
    for split, file in (("dev", "train"), ("test", "test")):
        records = random.Random(0).sample(list(read_lines(root / f"questions_{file}.jsonl.xz")), count)
        examples = [
            (
                Question(record["id"], record["question"], tuple(EntityId(name) for name in record["topic_entities"])),
                set(map(normalise, map(str, record["answers"]))),
            )
            for record in records
        ]
        yield examine("cronquestions", "cronquestions", split, pipeline, examples)


def _keep(file: Path, asked: Sequence[Asked]) -> None:
    arrays: dict[str, Array] = {}
    for one in asked:
        key = f"{one.name}|{one.graph}|{one.split}"
        arrays[f"{key}|sizes"] = np.array([len(each.right) for each in one.judged], np.float64)
        rows = [np.column_stack((each.features, each.right)) for each in one.judged]
        arrays[f"{key}|rows"] = np.concatenate(rows) if rows else np.empty((0, len(NAMES) + 1))
    np.savez(file, allow_pickle=False, **arrays)


def _kept(file: Path) -> list[Asked]:
    with np.load(file) as held:
        found = []
        for key in [name.removesuffix("|rows") for name in held.files if name.endswith("|rows")]:
            parts = np.split(held[f"{key}|rows"], held[f"{key}|sizes"].cumsum().astype(int)[:-1])
            name, graph, split = key.split("|")
            found.append(Asked(name, graph, split, [CandidateSet(part[:, :-1], part[:, -1]) for part in parts]))
        return found


def fitted(asked: Sequence[Asked], without: str = "") -> RankingWeights:
    """Fit on all questions but those of test splits and of one graph.

    Each set counts as one, several over one graph by the root of their number, and hard ones less.
    """
    seen = [one for one in asked if one.split != "test" and one.graph != without]
    plain = [one.graph for one in seen if one.split != "hard"]
    return fit_ranking([(HARD if one.split == "hard" else plain.count(one.graph) ** -0.5, one.judged) for one in seen])


def report(asked: Sequence[Asked], shipped: RankingWeights) -> None:
    """Print how good the weights are on each test set."""
    print(f"\n{'test set':24}{'n':>6}  without its graph{'':15}all graphs")
    print(f"{'':32}{'Hits@1':>8}{'AUROC':>8}{'ECE':>7}   {'Hits@1':>8}{'AUROC':>8}{'ECE':>7}")
    rows = []
    for one in (each for each in asked if each.split == "test"):
        found = []
        for weights in (fitted(asked, without=one.graph), shipped):
            said, right = first_answers(weights, one.judged)
            found += [right.mean(), auroc(said, right), calibration_error(said, right)]
        rows.append(found)
        print(f"{one.name:24}{len(one.judged):6}{'':2}{_cells(found)}", flush=True)
    print(f"{'mean':32}{_cells(np.nanmean(np.array(rows), axis=0).tolist())}")


def _cells(found: Sequence[float]) -> str:
    return "   ".join("".join(f"{value:8.3f}" for value in part) for part in (found[:3], found[3:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BYOKG_DATA", "../shared/data")))
    parser.add_argument("--questions", type=int, default=500, help="questions per set and split")
    parser.add_argument("--signs", type=Path, help="cache file of features, reused if it exists")
    options = parser.parse_args()
    if options.signs and options.signs.exists():
        asked = _kept(options.signs)
    else:
        asked = []
        with tempfile.TemporaryDirectory() as folder:
            for one in sets(options.data, options.questions, Path(folder)):
                asked.append(one)
                if options.signs:
                    _keep(options.signs, asked)
    weights = fitted(asked)
    save_weights(FITTED, weights)
    report(asked, weights)


if __name__ == "__main__":
    main()
