"""STaRK (prime and mag) in its official layout: questions whose answers are nodes of a semi-structured graph.

`KB/stark_qa/stark_qa.csv` has the columns `id`, `query` and `answer_ids`; `KB/split/SPLIT.index` lists the ids of a
split. Nodes are known by number only, so an answer's name is its number.

Source: Wu et al., "STaRK" (arXiv:2404.13207).
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from byokg.errors import DatasetError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.question_set import Loaded, QuestionSet, graph_finder, one_of, scorable
from byokg.evaluation.datasets.record_file import Record, read_records
from byokg.evaluation.datasets.text import found, read_text
from byokg.types import EntityId

_KBS = ("prime", "mag", "amazon")


def stark(root: str | Path, kb: str = "prime", split: str = "test", graph: str | Path | None = None) -> QuestionSet:
    """Return the questions of one split, in the order of `stark_qa.csv`.

    Args:
        root: folder that holds `prime`, `mag` or `amazon`, there or in `qa`.
        kb: which of them.
        split: `train`, `val`, `test`, or `test-0.1` where that index is there.
        graph: file or folder of the graph, whose node ids are the numbers; the questions come without one.
    """
    folder = one_of("dataset.kb", kb, _KBS)

    def read() -> Loaded:
        table = found(Path(root), f"{folder}/stark_qa/stark_qa.csv", f"qa/{folder}/stark_qa/stark_qa.csv")
        index = read_text(found(table.parents[1], f"split/{split}.index"))
        file = read_records(table)
        wanted = {line.strip() for _, line in index.lines}
        examples = [_example(record, split) for record in file.records if record.fields.get("id") in wanted]
        missing = sorted(wanted - {example.id for example in examples})
        if missing:
            raise DatasetError(index.path, None, f"lists question {missing[0]!r}, which {table.name} does not hold")
        return scorable(file, examples)

    return QuestionSet(f"stark {kb} {split}", read, graph_finder(root, graph))


def _example(record: Record, split: str) -> Example:
    try:
        answers = [str(number) for number in json.loads(record.text("answer_ids"))]
    except (ValueError, TypeError) as error:
        raise record.wrong(f"answer_ids are no list of numbers: {record.fields['answer_ids']!r}") from error
    ids = tuple(Counter(answers))
    return Example(
        id=record.text("id"),
        question=record.text("query"),
        answers=ids,
        answer_ids=tuple(map(EntityId, ids)),
        split=split,
    )
