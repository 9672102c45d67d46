"""Predictions of other systems: JSON lines as RoG, GNN-RAG, GCR, SubgraphRAG, ToG and others write them.

| field | read as |
|---|---|
| `id`, `qid`, `question_id`, `QuestionId`, `uniq_id` | the question's id; where there is none, its `question` |
| `prediction`, `predictions`, `pred`, `answers`, `results`, `response` | a list of answers, or a text cut into lines |
| `answer_ids`, `prediction_ids` | ids of predicted answers, best first, where a system gives them |
| `ground_truth`, `gold`, `a_entity`, `answer` | gold names, a list or one |
| `gold_ids` | ids of gold answers, where they are there |
| `question`, `type`, `answer_type` | as in `Example`, where they are there |

A line whose prediction is null is a question without a prediction. Gold answers of a data set go before those of the
file. Files may be compressed (`.xz`, `.gz`); a JSON list of such records is read, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from byokg.errors import RunError
from byokg.evaluation.cases import Case, case_of
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.question_files import read_text
from byokg.evaluation.records import Prediction
from byokg.types import EntityId

_IDS = ("id", "qid", "question_id", "QuestionId", "uniq_id")
_PREDICTIONS = ("prediction", "predictions", "pred", "answers", "results", "response")
_PREDICTED_IDS = ("answer_ids", "prediction_ids")
_GOLDS = ("ground_truth", "gold", "a_entity", "answer")


def read_foreign(path: Path, examples: Sequence[Example] | None = None, left_out: int = 0) -> list[Case]:
    """Read a file of predictions.

    Args:
        path: the file.
        examples: questions with gold answers; all of them count, also those that the file leaves out. Without them the
            gold answers are taken from the file, and what it leaves out is not known.
        left_out: questions that the data set leaves out, having no gold answers; so many predictions for questions that
            are not among `examples` are passed over.

    Returns:
        Cases in the order of the questions, or of the file.

    Raises:
        RunError: a record is not of the shape above, two have one id, a record is for a question that was not asked, or
            there is nothing to score.
        DatasetError: the file cannot be read.
    """
    records: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for place, record in _records(path):
        id = _id(record, place)
        if id in records:
            raise RunError(f"{place}: id {id!r} is already used in {records[id][0]}; keep one prediction a question")
        records[id] = place, record
    if not records:
        raise RunError(f"{path}: holds no prediction; give the file that a system wrote, or a run folder")
    if examples is None:
        return [_case(id, record, place) for id, (place, record) in records.items()]
    asked = {example.id for example in examples}
    strangers = [id for id in records if id not in asked]
    if len(strangers) > left_out:
        raise RunError(
            f"{records[strangers[0]][0]}: question {strangers[0]!r} is not in the data set, nor are "
            f"{len(strangers) - 1:,} more; name the data set, and the split, that was predicted"
        )
    cases = []
    for example in examples:
        found = records.get(example.id)
        if found is None:
            cases.append(case_of(example, None))
        else:
            prediction, written = _prediction(example.id, found[1], found[0])
            cases.append(case_of(example, prediction, written))
    return cases


def _records(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """Return each record with its place."""
    file = read_text(path)
    try:
        if file.lines and file.lines[0][1].lstrip().startswith("["):
            listed = json.loads("\n".join(line for _, line in file.lines))
            found = [(f"{path}, record {number}", record) for number, record in enumerate(listed, start=1)]
        else:
            found = [(f"{path}:{number}", json.loads(line)) for number, line in file.lines]
    except ValueError as error:
        raise RunError(f"{path}: is neither JSON lines nor a JSON list ({error})") from error
    for place, record in found:
        if not isinstance(record, Mapping):
            raise RunError(f"{place}: is {str(record)[:60]!r}; a prediction is an object with id and prediction")
    return found


def _id(record: Mapping[str, Any], place: str) -> str:
    for name in (*_IDS, "question"):
        if isinstance(record.get(name), str | int):
            return str(record[name])
    raise RunError(f"{place}: has no id; it is read from {', '.join(_IDS)} or question")


def _case(id: str, record: Mapping[str, Any], place: str) -> Case:
    """Make a case of a record that brings its own gold answers."""
    gold = next((_texts(record[name], name, place) for name in _GOLDS if record.get(name) is not None), ())
    if not gold:
        raise RunError(
            f"{place}: has no gold answers in {', '.join(_GOLDS)}; name the data set: dataset=folder dataset.root=DIR"
        )
    example = Example(
        id=id,
        question=str(record.get("question") or ""),
        answers=gold,
        answer_ids=tuple(map(EntityId, _texts(record.get("gold_ids") or [], "gold_ids", place))),
        type=str(record.get("type") or ""),
        answer_type=str(record.get("answer_type") or ""),
    )
    prediction, written = _prediction(id, record, place)
    return case_of(example, prediction, written)


def _prediction(id: str, record: Mapping[str, Any], place: str) -> tuple[Prediction, bool]:
    """Return what was predicted, and whether it is one text."""
    name = next((name for name in _PREDICTIONS if name in record), None)
    if name is None:
        raise RunError(f"{place}: has no prediction; it is read from {', '.join(_PREDICTIONS)}")
    value = record[name]
    if value is None:
        return Prediction(id, "failed"), False
    written = isinstance(value, str)
    answers = tuple(value.split("\n")) if written else _texts(value, name, place)
    if answers == ("",):
        answers = ()
    given = next((record[field] for field in _PREDICTED_IDS if record.get(field)), None)
    ids = () if given is None else _texts(given, "answer_ids", place)
    if ids and len(ids) != len(answers):
        raise RunError(f"{place}: has {len(ids)} ids for {len(answers)} answers; give one id for each, or none")
    return Prediction(id, "ok", answers, ids), written


def _texts(value: Any, name: str, place: str) -> tuple[str, ...]:
    """Return a field that lists texts or numbers, or is one."""
    values = value if isinstance(value, list) else [value]
    for one in values:
        if isinstance(one, bool) or not isinstance(one, str | int | float):
            raise RunError(f"{place}: field {name!r} should list texts, not {str(one)[:60]!r}")
    return tuple(map(str, values))
