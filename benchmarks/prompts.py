"""What a language model is shown, measured without one: schema, evidence, and what both cost.

python benchmarks/prompts.py [--data DIR] [--graph DIR] [--split test] [--questions 400] [--part all] [--json FILE]

All on `freebase_core/graph_full` (497,495 triples, 4,045 relations).

`schema`: for the first questions of a split of WebQSP and CWQ that have a labelled gold path, the share for which all
relations of one labelled path are shown within 2,000 tokens; in the first round, around the entities that the offline
spotter finds, and in the second, around the annotated topic entities.

`evidence`: the replies of a strong language model to the first version's prompts (`llm_replies`) are put in, stage by
stage, so that the pipeline retrieves what it would with a real one; what is measured is the evidence that its last
prompt shows. It reads the text alone: a fact is two named nodes and what joins them, whichever way it is written
(inverse relations after `freebase_ontology`; through a nameless node or by the shortcut `a..b`). A hub path goes through
a node by a relation that more than 100 nodes share there, and that nobody asked for.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rows import Row, show
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.graph.schema_text import Nearness, SchemaRenderer
from byokg.graph.store import GraphStore, query_notes
from byokg.index.embedders import StaticEmbedder
from byokg.linking.entities import EntityLinker
from byokg.open import add_engine
from byokg.pipeline.offline import entity_spotter
from byokg.types import EntityId

SCHEMA_TOKENS = 2000


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a compressed file."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def schema_rows(store: GraphStore, data: Path, split: str, count: int) -> list[Row]:
    """Measure how often the schema shows a whole labelled path."""
    embedder, entities = StaticEmbedder(), EntityLinker(store)
    renderer = SchemaRenderer(store.schema(), embedder, notes=query_notes(store), near=Nearness(store))
    spotted = entity_spotter(store, embedder, entities)
    known = set(store.entities())
    rows = []
    for name in ("webqsp", "cwq"):
        labels = {record["id"]: record for record in read_lines(data / name / f"{name}_labels.jsonl.xz")}
        found: dict[str, list[bool]] = {"round 1": [], "round 1, 2 hops": [], "round 2": []}
        tokens, relations = [], []
        for record in read_lines(data / name / "questions.jsonl.xz"):
            label = labels.get(record["id"], {})
            paths = [path for path in label.get("gold_relation_paths", ()) if path]
            if record["split"] != split or not paths:
                continue
            topics = [EntityId(topic) for topic in record["topic_entities"] if topic in known]
            for around, part in ((spotted(record["question"]), "round 1"), (topics, "round 2")):
                shown = renderer.render(record["question"], SCHEMA_TOKENS, around)
                whole = any(set(path) <= set(shown.relations) for path in paths)
                found[part].append(whole)
                if part == "round 1":
                    tokens.append(shown.tokens)
                    relations.append(len(shown.relations))
                    if label["hops"] == 2:
                        found["round 1, 2 hops"].append(whole)
            if len(tokens) == count:
                break
        rows += [Row(f"{name} {part}: a whole path shown", float(np.mean(each))) for part, each in found.items()]
        rows += [
            Row(f"{name} schema", float(np.mean(tokens)), "tokens"),
            Row(f"{name} schema", float(np.mean(relations)), "relations"),
        ]
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BYOKG_DATA", "../shared/data")))
    parser.add_argument("--graph", type=Path, help="a graph folder with its openCypher engine; built when left out")
    parser.add_argument("--split", choices=("dev", "test"), default="test")
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--part", choices=("schema", "evidence", "all"), default="all")
    parser.add_argument("--json", type=Path, help="write rows of name, value, unit")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    with ExitStack() as stack:
        place = options.graph
        if place is None:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "full.graph"
            build_graph(options.data / "freebase_core" / "graph_full.tsv.xz", place)
            add_engine(place, "cypher")
        if options.part in ("schema", "all"):
            rows += schema_rows(ColumnarGraph.open(place), options.data, options.split, options.questions)
    show(rows, "what a language model is shown", options.json)


if __name__ == "__main__":
    main()
