"""MedQA (USMLE): exam questions with four or five options, asked with the options or without.

Read are the official `questions/US/SPLIT.jsonl` (`question`, `options`, `answer`), QA-GNN's statements (`question` with
`stem` and `choices`, `answerKey`), and `questions.jsonl` with `topic_entities` and `answer_ids` besides.

Source: Jin et al., "What Disease does this Patient Have?" (arXiv:2009.13081).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.question_set import Loaded, QuestionSet, graph_finder, scorable
from byokg.evaluation.datasets.record_file import Record, read_records
from byokg.evaluation.datasets.text import found
from byokg.types import EntityId


def medqa(
    root: str | Path,
    split: str = "test",
    graph: str | Path | None = None,
    options: bool = False,
    questions: str = "",
) -> QuestionSet:
    """Return the questions of one split; the text of the right option is the gold answer.

    Args:
        root: folder that holds the questions, and the graph as `graph.tsv`.
        split: `train`, `dev` or `test`; of a file that notes the split of each question, those of this one, and with
            an empty split all.
        graph: file or folder of the graph, when it is not `graph.tsv` in `root`.
        options: whether the options follow the question, one a line.
        questions: name of the question file, where it is none of the above.
    """
    names = (f"questions/US/{split}.jsonl", f"US/{split}.jsonl", f"{split}.jsonl", f"{split}.statement.jsonl")

    def read() -> Loaded:
        file = read_records(found(Path(root), *((questions,) if questions else (*names, "questions.jsonl"))))
        kept = [record for record in file.records if record.fields.get("split", split) == split or not split]
        return scorable(file, [_example(record, split, options) for record in kept])

    return QuestionSet(f"medqa {split}".rstrip(), read, graph_finder(root, graph, "graph.tsv", "graph.csv"))


def _example(record: Record, split: str, options: bool) -> Example:
    asked = record.fields.get("question")
    if isinstance(asked, dict):  # QA-GNN's
        choices = {str(each.get("label")): str(each.get("text")) for each in asked.get("choices", ())}
        text, key = str(asked.get("stem", "")), str(record.fields.get("answerKey", ""))
    else:
        choices = {label: str(option) for label, option in record.mapping("options").items()}
        text, key = record.text("question"), str(record.fields.get("answer_idx", ""))
    answer = choices.get(key) or str(record.fields.get("answer") or "")
    if not answer:
        raise record.wrong(f"the answer {key!r} is none of the options {', '.join(choices)}")
    topics = tuple(map(str, record.several("topic_entities")))
    id = record.fields.get("id")
    return Example(
        id=str(id) if id else f"medqa-{split}-{record.place:05d}",
        question=_with_options(text, choices) if options else text,
        answers=(answer,),
        answer_ids=tuple(EntityId(str(each)) for each in record.several("answer_ids")),
        topic_entities=topics,
        topic_ids=tuple(map(EntityId, topics)),
        split=str(record.fields.get("split") or split),
        type=str(record.fields.get("meta_info") or record.fields.get("type") or ""),
    )


def _with_options(text: str, choices: Mapping[str, str]) -> str:
    return "\n".join([text, *(f"{label}. {option}" for label, option in choices.items())])
