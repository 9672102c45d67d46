"""Unsatisfiable constraints of a question: the shares that are named in the answer and lower its score.

python benchmarks/dropped_constraints.py [--data DIR] [--questions N] [--json FILE]

Two measurements over dev questions without a language model, entities linked unless a set comes with them:

- Original: answers that are wrong, have a score of 0.8 or more, and no note; right answers with a note of an unused
  part (false alarms); AUROC and calibration error of the scores.
- Perturbed: each rightly answered question is repeated with a constraint that no graph here can satisfy (a
  year, a place, a season, a person, an exception, a quoted text). Share of the answers that name the constraint and
  have a lower score than the question without it; an abstention that names it counts, too, and so does an operation
  that used it (a count of 0 in a year).

Sets: atlas; the eight graphs of `natural_questions.tar.xz`; with DIR also movies, Northwind, Mind the Query (questions
of one column), ZOGRASCOPE, MetaQA, PathQuestion, WebQSP and CWQ.
"""

from __future__ import annotations

import csv
import lzma
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.measure import read_questions
from benchmarks.natural_questions import READ, UNREAD, opened, unpacked
from benchmarks.rows import Row, make_parser, show
from byokg.errors import ByokgError
from byokg.evaluation.datasets.benchmarks import MetaQA, pathquestion
from byokg.evaluation.datasets.folder import Folder, atlas
from byokg.evaluation.metrics import normalise
from byokg.evaluation.significance import auroc, calibration_error
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.graph.name_indexes import build_names
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.pipelines.loop import Loop
from byokg.types import Answer, ComputedEvidence, Question

SURE = 0.8
"""Score from which an answer is taken for right."""

CONSTRAINTS: Mapping[str, tuple[str, str]] = {
    "year": ("in 1213", "1213"),
    "place": ("in Zubrowka", "Zubrowka"),
    "season": ("in winter", "winter"),
    "person": ("according to Veldrin Osk", "Veldrin"),
    "exception": ("except Narnia", "Narnia"),
    "quoted": ('named "Qworble"', "Qworble"),
}
"""What is added to a question, and the word of it that the answer is to name."""

Asked = tuple[Question, frozenset[str]]


@dataclass(frozen=True)
class QuestionsOfGraph:
    """The questions of one set, each with its folded gold answers."""

    name: str
    pipeline: Loop
    questions: Sequence[Asked]


def open_sets(data: Path, count: int, folder: Path) -> Iterator[QuestionsOfGraph]:
    """Open all sets that are there, one after the other."""
    shipped = atlas("dev")
    pipeline = offline_pipeline(Parts(built(shipped.graph_source(), folder / "atlas.graph")))
    yield QuestionsOfGraph("atlas", pipeline, _with_gold(shipped.examples(), count))
    natural = unpacked(folder / "natural")
    for name in (*READ, *UNREAD):
        pipeline, examples = opened(natural / name, folder / f"{name}.graph")
        yield QuestionsOfGraph(name, pipeline, _with_gold(examples, count))
    yield from _property_graphs(data, count, folder)
    yield from _triples(data, count, folder)


def _property_graphs(data: Path, count: int, folder: Path) -> Iterator[QuestionsOfGraph]:
    for name in ("movies", "northwind", "mind_the_query_er", "zograscope"):
        if not (data / name).is_dir():
            continue
        graph = built(importable(data / name, folder), folder / f"{name}.graph")
        records = [record for record in read_questions(data / name) if record.get("split", "dev") == "dev"]
        asked = [(Question(one["id"], one["question"]), frozenset(_gold(one))) for one in records]
        yield QuestionsOfGraph(name, offline_pipeline(Parts(graph)), _sampled([one for one in asked if one[1]], count))


def _gold(record: Mapping[str, object]) -> set[str]:
    """Return the folded answers of a record; none where its rows have several columns."""
    if isinstance(answers := record.get("answers"), list):
        return {normalise(str(answer)) for answer in answers}
    rows = record["rows"]
    assert isinstance(rows, list)
    return {normalise(str(row[0])) for row in rows} if all(len(row) == 1 for row in rows) else set()


def importable(source: Path, folder: Path) -> Path:
    """Return what the importer reads of a folder with a property graph."""
    made = folder / f"{source.name}_source"
    if source.name == "northwind":
        shipped = Path(offline_pipeline.__code__.co_filename).parent.parent / "data" / "northwind" / "graph.yaml"
        made.with_suffix(".yaml").write_text(f"folder: {source.resolve()}\n{shipped.read_text('utf-8')}", "utf-8")
        return made.with_suffix(".yaml")
    made.mkdir()
    if source.name == "movies":
        _write_movies((source / "movies.cypher").read_text("utf-8"), made)
    else:
        for part in ("nodes", "edges"):
            (made / f"{part}.csv").write_bytes(lzma.decompress((source / f"{part}.csv.xz").read_bytes()))
    return made


def _write_movies(script: str, folder: Path) -> None:
    """Write the nodes and edges of a script that creates them, without lists among properties."""
    nodes, columns = dict[str, dict[str, str]](), dict[str, None](id=None, name=None, type=None)
    for variable, label, properties in re.findall(r"\((\w+):(\w+) \{(.*?)\}\)", script):
        plain = {key: (text or other or number) for key, text, other, number in _PROPERTY.findall(properties)}
        name = plain.pop("name", "") or plain.pop("title", variable)
        nodes[variable] = {"id": variable, "name": name, "type": label, **plain}
        columns.update(dict.fromkeys(plain))
    with (folder / "nodes.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(columns))
        writer.writeheader()
        writer.writerows(nodes.values())
    with (folder / "edges.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(("head", "relation", "tail"))
        out.writerows(re.findall(r"\((\w+)\)-\[:(\w+)[^\]]*(?:\[[^\]]*\][^\]]*)?\]->\s*\((\w+)\)", script))


_PROPERTY = re.compile(r"""(\w+):\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\d+))""")


def _triples(data: Path, count: int, folder: Path) -> Iterator[QuestionsOfGraph]:
    if (data / "metaqa").is_dir():
        source = MetaQA(data / "metaqa", hops=1).graph_source()
        pipeline = offline_pipeline(Parts(built(source, folder / "metaqa.graph")))
        for hops in (1, 2, 3):
            examples = MetaQA(data / "metaqa", hops=hops, split="dev").examples()
            yield QuestionsOfGraph(f"metaqa_{hops}hop", pipeline, _with_gold(examples, count, gold=True))
    if (data / "pathquestion").is_dir():
        (source := folder / "2H.tsv").write_bytes((data / "pathquestion" / "2H-kb.txt").read_bytes())
        pipeline = offline_pipeline(Parts(built(source, folder / "pathquestion.graph")))
        examples = pathquestion(data / "pathquestion", 2).examples()
        yield QuestionsOfGraph("pathquestion_2hop", pipeline, _with_gold(examples, count, gold=True))
    source = data / "freebase_core" / "graph.tsv.xz"
    if source.is_file():
        pipeline = offline_pipeline(Parts(built(source, folder / "freebase.graph")), max_hops=2)
        for name in ("webqsp", "cwq"):
            examples = Folder(data / name, split="dev", graph=source, ids="names").examples()
            yield QuestionsOfGraph(name, pipeline, _with_gold(examples, count, gold=True))


def built(source: Path, out: Path) -> ColumnarGraph:
    graph = build_graph(source, out)
    build_names(graph)
    return graph


def _with_gold(examples: Sequence[object], count: int, gold: bool = False) -> list[Asked]:
    asked = [
        (one.to_question("gold" if gold else "linked"), frozenset(map(normalise, one.answers)))  # type: ignore[attr-defined]
        for one in examples
    ]
    return _sampled(asked, count)


def _sampled(asked: list[Asked], count: int) -> list[Asked]:
    return random.Random(0).sample(asked, min(count, len(asked)))


def constrained(question: Question, constraint: str) -> Question:
    """Return a question with a constraint at its end."""
    text = question.text.rstrip()
    mark = text[-1:] if text[-1:] in "?." else ""
    return replace(question, text=f"{text.removesuffix(mark).rstrip()} {constraint}{mark}")


def ask(pipeline: Loop, question: Question) -> Answer | None:
    """Answer a question; None where that fails, as for a topic that the graph lacks."""
    try:
        return pipeline.run(question)
    except ByokgError:
        return None


def measure(asked: QuestionsOfGraph) -> tuple[list[Row], dict[str, list[float]]]:
    """Return the figures of one set, and what they are of, to be pooled."""
    counts: dict[str, list[float]] = defaultdict(list)
    for question, gold in asked.questions:
        answer = ask(asked.pipeline, question)
        if answer is None:
            continue
        right = bool(answer.items) and normalise(answer.items[0].name) in gold
        counts["right"].append(right)
        score = answer.items[0].score if answer.items else 0.0
        counts["silent_wrong"].append(bool(answer.items) and not right and score >= SURE and not answer.note)
        if answer.items:
            counts["score"].append(score)
            counts["score_right"].append(right)
        if not right:
            continue
        counts["false_alarms"].append("not used" in answer.note)
        for name, (constraint, word) in CONSTRAINTS.items():
            other = ask(asked.pipeline, constrained(question, constraint))
            if other is not None:
                below = not other.items or other.items[0].score < score
                counts[f"named_{name}"].append((below and word in other.note) or _was_used(other, word))
    return _rows(asked.name, counts), counts


def _was_used(answer: Answer, word: str) -> bool:
    """Return True if an operation used a word, such as a year that nothing falls into, so that a count is 0."""
    evidence = (item for one in answer.rounds for item in one.evidence)
    return any(isinstance(item, ComputedEvidence) and word in item.text for item in evidence)


def _rows(name: str, counts: Mapping[str, Sequence[float]]) -> list[Row]:
    rows = [
        Row(f"{name} questions", len(counts["right"]), "questions"),
        Row(f"{name} right", float(np.mean(counts["right"])), "share"),
        Row(f"{name} wrong, score ≥ {SURE}, no note", int(sum(counts["silent_wrong"])), "answers"),
        Row(f"{name} right with a note of what was not used", float(np.mean(counts["false_alarms"] or [0])), "share"),
    ]
    scores, right = np.array(counts["score"], np.float64), np.array(counts["score_right"], np.float64)
    if 0 < right.sum() < len(right):
        rows.append(Row(f"{name} AUROC", auroc(scores, right), "share"))
        rows.append(Row(f"{name} calibration error", calibration_error(scores, right), "share"))
    named = [share for key, shares in counts.items() if key.startswith("named_") for share in shares]
    rows.append(Row(f"{name} added constraint named, score lower", float(np.mean(named or [0])), "share"))
    return rows


def main() -> None:
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--questions", type=int, default=150, help="questions per set")
    parser.add_argument("--sets", default="", help="only sets whose names contain this")
    options = parser.parse_args()
    rows: list[Row] = []
    pooled: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for asked in open_sets(options.data, options.questions, Path(folder)):
            if options.sets not in asked.name:
                continue
            own, counts = measure(asked)
            rows += own
            for key, some in counts.items():
                pooled[key] += some
    rows += _rows("all", pooled)
    rows += [
        Row(f"all {name} named, score lower", float(np.mean(pooled[f"named_{name}"] or [0])), "share")
        for name in CONSTRAINTS
    ]
    show(rows, "constraints that a graph cannot satisfy", options.json)


if __name__ == "__main__":
    main()
