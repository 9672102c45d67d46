"""PathQuestion: questions of two and three hops with their gold paths.

`PQ-2H.txt` has a question, its answers and its path in each line, separated by tabs; `2H-kb.txt` holds the triples.

Source: Zhou, Huang and Zhu, "An Interpretable Reasoning Network for Multi-Relation Question Answering"
(arXiv:1801.04726).
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from byokg.errors import ConfigError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.question_set import Loaded, QuestionSet, graph_finder, scorable
from byokg.evaluation.datasets.record_file import Record, RecordFile
from byokg.evaluation.datasets.text import found, read_text
from byokg.types import EntityId

_ANSWERS = re.compile(r"[^(]*\((.*)\)")
_COLUMNS = 3
_END = "#<end>#"


def pathquestion(root: str | Path, hops: int = 2, graph: str | Path | None = None) -> QuestionSet:
    """Return the questions of one length; there are no splits. Names are ids, and words are joined by `_`.

    Args:
        root: folder that holds both files.
        hops: 2 or 3.
        graph: file or folder of the graph, when it is another one.
    """
    if hops not in (2, 3):
        raise ConfigError(f"PathQuestion has questions of 2 or 3 hops, not dataset.hops={hops!r}")
    folder = Path(root)

    def read() -> Loaded:
        text = read_text(found(folder, f"PQ-{hops}H.txt"))
        records = [Record(text.path, number, {"line": line}) for number, line in text.lines]
        return scorable(RecordFile(text.path, text.checksum, records), [_example(each, hops) for each in records])

    def write(out: Path) -> None:
        out.mkdir(parents=True, exist_ok=True)
        lines = read_text(found(folder, f"{hops}H-kb.txt")).lines
        (out / "graph.tsv").write_text("".join(f"{line}\n" for _, line in lines), encoding="utf-8")

    return QuestionSet(
        f"pathquestion {hops}-hop", read, graph_finder(root, graph, convert=f"{hops}H-graph"), write=write
    )


def _example(record: Record, hops: int) -> Example:
    fields = record.text("line").split("\t")
    listed = _ANSWERS.fullmatch(fields[1]) if len(fields) == _COLUMNS else None
    if listed is None or _END not in fields[2]:
        raise record.wrong("is not QUESTION<tab>ANSWER(ANSWER/…)<tab>TOPIC#RELATION#…#<end>#ANSWER")
    walk = fields[2].partition(_END)[0].split("#")
    nodes, relations = walk[::2], walk[1::2]
    answers = tuple(dict.fromkeys(answer for answer in listed[1].split("/") if answer))
    steps = zip(pairwise(nodes), relations, strict=False)
    return Example(
        id=f"pq-{hops}-{record.place:05d}",
        question=fields[0],
        answers=answers,
        answer_ids=tuple(map(EntityId, answers)),
        topic_entities=(nodes[0],),
        topic_ids=(EntityId(nodes[0]),),
        hops=hops,
        support=tuple((head, relation, tail) for (head, tail), relation in steps),
    )
