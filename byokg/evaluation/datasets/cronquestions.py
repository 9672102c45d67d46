"""CronQuestions in its official layout: pickled questions about a graph whose facts hold for years.

`questions/SPLIT.pickle` is a list of dictionaries, `kg/full.txt` has the columns head, relation, tail, start and end,
and `kg/wd_id2entity_text.txt` and `kg/wd_id2relation_text.txt` name the ids. The pickles are read without importing
anything; JSON and JSON lines with the same fields, sets as lists, are read, too.

Source: Saxena et al., "Question Answering Over Temporal Knowledge Graphs" (arXiv:2106.01515).
"""

from __future__ import annotations

import csv
import hashlib
import io
import pickle
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from byokg.errors import DatasetError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.question_set import Loaded, QuestionSet, graph_finder, one_of, scorable
from byokg.evaluation.datasets.record_file import Record, RecordFile, read_records
from byokg.evaluation.datasets.text import found, locate, read_bytes, read_text
from byokg.types import EntityId

Times = Literal["property", "relation", "both"]

_FACTS = ("kg/full.txt", "full.txt", "full.tsv")
_ENTITY_NAMES = ("kg/wd_id2entity_text.txt", "wd_id2entity_text.txt")
_RELATION_NAMES = ("kg/wd_id2relation_text.txt", "wd_id2relation_text.txt")
_COLUMNS = 5
_ID = re.compile(r"\bQ[0-9]+\b")


def cronquestions(
    root: str | Path,
    split: str = "test",
    graph: str | Path | None = None,
    questions: str = "",
    times: Times = "property",
) -> QuestionSet:
    """Return the questions of one split.

    Ids are Wikidata's; a year is its own id. The text is the first paraphrase, or in the early release, which has none,
    the question with the names put in. An example's id counts the records from 1: `cron-test-000017`, since the
    published `uniq_id` is not unique.

    Args:
        root: folder that holds the files above.
        split: `train`, `valid` or `test`.
        graph: file or folder of the graph, when it is none of these.
        questions: name of the question file, where it is another one.
        times: what `write_graph` makes of the years: properties `start` and `end` of the edge, part of the relation
            (`position held: 2001`), as in ByoKG-RAG, or both.
    """
    one_of("dataset.times", times, get_args(Times))
    names = (questions,) if questions else (f"questions/{split}.pickle", f"{split}.pickle", f"{split}.jsonl")
    folder = Path(root)

    def read() -> Loaded:
        path = found(folder, *names)
        file = _unpickled(path) if ".pickle" in path.suffixes or ".pkl" in path.suffixes else read_records(path)
        entities = _names(found(folder, *_ENTITY_NAMES))
        return scorable(file, [_example(record, split, entities) for record in file.records])

    def write(out: Path) -> None:
        write_graph(folder, out, times)

    return QuestionSet(f"cronquestions {split}", read, graph_finder(root, graph, convert="graph"), write=write)


def write_graph(root: Path, out: Path, times: Times = "property") -> None:
    """Write `nodes.csv` and `edges.csv` from the published facts and names, every fact as one edge.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Experimental Setup", for years as part of the relation.

    Raises:
        DatasetError: a file is missing, or a line is no fact.
    """
    facts = read_text(found(root, *_FACTS))
    relation_file = locate(root, *_RELATION_NAMES)
    entities = _names(found(root, *_ENTITY_NAMES))
    relations = {} if relation_file is None else _names(relation_file)
    out.mkdir(parents=True, exist_ok=True)
    nodes: dict[str, None] = {}
    with (out / "edges.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("head", "relation", "tail", *(() if times == "relation" else ("start:int", "end:int"))))
        for number, line in facts.lines:
            fields = line.split("\t")
            if len(fields) != _COLUMNS:
                reason = f"has {len(fields)} fields; expected head, relation, tail, start, end separated by tabs"
                raise DatasetError(facts.path, number, reason)
            head, relation, tail, start, end = fields
            nodes |= {head: None, tail: None}
            label = relations.get(relation, relation)
            years = start if start == end else f"{start}-{end}"
            if times != "property" and years:
                label = f"{label}: {years}"
            table.writerow((head, label, tail, *(() if times == "relation" else (start, end))))
    with (out / "nodes.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("id", "name"))
        table.writerows((id, entities.get(id, id)) for id in nodes)


class _Plain(pickle.Unpickler):
    """Reads numbers, texts and containers; a pickle can name any function to be called, and none is."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in (("builtins", "set"), ("builtins", "frozenset"), ("__builtin__", "set")):
            return set
        raise pickle.UnpicklingError(f"it refers to {module}.{name}, and a question file holds plain data only")


def _unpickled(path: Path) -> RecordFile:
    content = read_bytes(path)
    try:
        held = _Plain(io.BytesIO(content)).load()
    except Exception as error:  # a damaged pickle raises almost anything
        raise DatasetError(path, None, f"cannot be unpickled: {error}") from error
    if not isinstance(held, list) or not all(isinstance(each, dict) for each in held):
        raise DatasetError(path, None, "is a pickle of something else than a list of dictionaries")
    records = [Record(path, place, each) for place, each in enumerate(held, start=1)]
    return RecordFile(path, hashlib.sha256(content).hexdigest(), records)


def _names(path: Path) -> dict[str, str]:
    return dict(_pairs(path))


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in read_text(path).lines:
        id, tab, name = line.partition("\t")
        if not tab:
            raise DatasetError(path, number, "has no tab between id and name")
        yield id, name


def _example(record: Record, split: str, names: Mapping[str, str]) -> Example:
    paraphrases = record.several("paraphrases")
    text = str(paraphrases[0]) if paraphrases else _ID.sub(lambda id: names.get(id[0], id[0]), record.text("question"))
    answers = [str(each) for each in record.several("answers")]
    topics = [str(each) for each in record.several("entities")]
    return Example(
        id=f"cron-{split}-{record.place:06d}",
        question=text,
        answers=tuple(names.get(id, id) for id in answers),
        answer_ids=tuple(map(EntityId, answers)),
        topic_entities=tuple(names.get(id, id) for id in topics),
        topic_ids=tuple(map(EntityId, topics)),
        split=split,
        type=str(record.fields.get("type") or ""),
        answer_type=str(record.fields.get("answer_type") or ""),
    )
