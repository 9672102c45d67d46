"""Questions with a gold Cypher query each: neo4j-labs' Text2Cypher tables, or `questions.jsonl` with the same fields.

`cypher` is the query; `gold_rows` its result, where somebody recorded one. With `require=executable` a run executes the
queries itself, on the graph that is asked, keeps the questions whose query runs and finds something, and takes what it
finds as gold; engines differ in types, order and number formats, so that is the way to score another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.question_line import as_cell
from byokg.evaluation.datasets.question_set import Loaded, QuestionSet, graph_finder
from byokg.evaluation.datasets.record_file import Record, read_records
from byokg.evaluation.datasets.text import found
from byokg.types import Cell

_NONDETERMINISTIC = "gold query with LIMIT and no ORDER BY"


def text2cypher(
    root: str | Path,
    split: str = "",
    graph: str | Path | None = None,
    database: str = "",
    questions: str = "questions.jsonl",
    nondeterministic: bool = False,
) -> QuestionSet:
    """Return the questions of one split and database.

    Args:
        root: folder that holds the question file.
        split: of a file that notes the split of each question; empty keeps all.
        graph: file or folder of the graph, when it does not lie in `root`, as `graph.yaml` does for Northwind.
        database: of a table that holds questions about several; empty keeps all.
        questions: JSON lines or a CSV table.
        nondeterministic: keep questions whose gold query may rightly give other rows (a LIMIT without ORDER BY).
    """

    def read() -> Loaded:
        file = read_records(found(Path(root), questions))
        kept = [
            record
            for record in file.records
            if (not split or record.fields.get("split") == split)
            and (not database or record.fields.get("database") == database)
        ]
        examples = [_example(record, split) for record in kept if nondeterministic or not _loose(record)]
        loose = len(kept) - len(examples)
        return Loaded(file, tuple(examples), {_NONDETERMINISTIC: loose} if loose else {})

    label = " ".join(filter(None, ("text2cypher", database or Path(root).resolve().name, split)))
    return QuestionSet(label, read, graph_finder(root, graph, "graph.yaml", "graph.jsonl"))


def _loose(record: Record) -> bool:
    flag = record.fields.get("nondeterministic")
    if isinstance(flag, bool):
        return flag
    words = record.text("cypher").upper().split()
    return "LIMIT" in words and "ORDER" not in words


def _example(record: Record, split: str) -> Example:
    rows = tuple(tuple(map(as_cell, row)) for row in record.several("gold_rows"))
    answers = tuple(map(str, record.several("answers"))) or first_column(rows)
    id = record.fields.get("id")
    return Example(
        id=str(id) if id else f"t2c-{record.place:05d}",
        question=record.text("question"),
        answers=answers,
        split=str(record.fields.get("split") or split),
        type=str(record.fields.get("type") or ""),
        query=record.text("cypher"),
        rows=rows,
    )


def first_column(rows: Sequence[Sequence[Cell]]) -> tuple[str, ...]:
    """Return the distinct values of a result's first column, as text, in its order."""
    return tuple(dict.fromkeys(str(row[0]) for row in rows if row and row[0] is not None))
