"""One question with its gold answers and what a system answered, as every metric profile reads it.

Answers come from a run of ours, or from a file of predictions of another system: JSON lines as RoG, GNN-RAG, GCR,
SubgraphRAG, ToG and others write them.

| field | read as |
|---|---|
| `id`, `qid`, `question_id`, `QuestionId`, `uniq_id` | the question's id; if there is none, its `question` |
| `prediction`, `predictions`, `pred`, `answers`, `results`, `response` | a list of answers, or a text cut into lines |
| `answer_ids`, `prediction_ids` | ids of predicted answers, best first, if a system gives them |
| `ground_truth`, `gold`, `a_entity`, `answer` | gold names, a list or one |
| `gold_ids` | ids of gold answers, if they are there |
| `question`, `type`, `answer_type` | as in `Example`, if they are there |

A line whose prediction is null is a question without a prediction. Gold answers of a data set go before those of the
file. Files may be compressed (`.xz`, `.gz`); a JSON list of such records is read, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byokg.errors import RunError
from byokg.evaluation.datasets.base import Example, read_text
from byokg.evaluation.records import Prediction, Status
from byokg.types import EntityId

_IDS = ("id", "qid", "question_id", "QuestionId", "uniq_id")
_PREDICTIONS = ("prediction", "predictions", "pred", "answers", "results", "response")
_PREDICTED_IDS = ("answer_ids", "prediction_ids")
_GOLDS = ("ground_truth", "gold", "a_entity", "answer")


@dataclass(frozen=True)
class Case:
    """A question, its gold answers, and the answers to be scored."""

    id: str
    gold: tuple[str, ...]
    """Gold names, at least one."""
    answers: tuple[str, ...] = ()
    """Predicted names best first; of another system's file, the lines of its prediction."""
    status: Status = "ok"
    """Without `ok` there is no prediction: the question failed, or is missing from the file."""
    answer_ids: tuple[str | None, ...] = ()
    """One for each of `answers`; empty if the system gives names alone."""
    drafts: tuple[str, ...] = ()
    """What the language model answered before it saw the graph, if that was recorded."""
    written: bool = False
    """The prediction is one text that a language model wrote, cut into lines, and not a list of answers."""
    question: str = ""
    gold_ids: tuple[str, ...] = ()
    parses: tuple[tuple[str, ...], ...] = ()
    """Gold ids of each annotated reading; empty if there is one reading, which is `gold_ids`."""
    aliases: tuple[tuple[str, ...], ...] = ()
    """Other names of each gold answer, parallel to `gold`; or empty."""
    rows: tuple[tuple[object, ...], ...] = ()
    """What the gold query returned, if there is one."""
    type: str = ""
    answer_type: str = ""
    cluster: str = ""
    """Shared by questions that belong together; empty if the question stands alone."""

    @property
    def text(self) -> str:
        """Return the prediction as one text, a line an answer."""
        return "\n".join(self.answers)

    @property
    def ranked_ids(self) -> tuple[str, ...]:
        """Return the predicted ids best first, each once; an answer that is no node stands under its name."""
        if not self.answer_ids:
            return tuple(dict.fromkeys(self.answers))
        pairs = zip(self.answer_ids, self.answers, strict=True)
        return tuple(dict.fromkeys(name if id is None else id for id, name in pairs))


def join(examples: Sequence[Example], predictions: Iterable[Prediction]) -> list[Case]:
    """Put questions and predictions together, in the order of the questions.

    Args:
        examples: the questions asked; one without a prediction becomes a failed case.
        predictions: at most one for each question, in any order.

    Raises:
        RunError: a prediction is for a question that was not asked.
    """
    found = by_question(examples, predictions)
    return [case_of(example, found.get(example.id)) for example in examples]


def by_question(examples: Sequence[Example], predictions: Iterable[Prediction]) -> dict[str, Prediction]:
    """Return predictions by the question they are for. Raises `RunError` for one that was not asked."""
    found = {prediction.id: prediction for prediction in predictions}
    strangers = found.keys() - {example.id for example in examples}
    if strangers:
        raise RunError(
            f"there is a prediction for {min(strangers)!r} (and {len(strangers) - 1:,} more like it), which is no "
            "question of this data set; name the data set, and the split, that was predicted"
        )
    return found


def case_of(example: Example, prediction: Prediction | None, written: bool = False) -> Case:
    """Put one question and its prediction together; without one, the case counts as failed."""
    made = prediction or Prediction(example.id, "failed")
    return Case(
        id=example.id,
        gold=example.answers,
        answers=made.answers,
        status=made.status,
        answer_ids=made.answer_ids,
        drafts=made.drafts,
        written=written,
        question=example.question,
        gold_ids=example.answer_ids,
        parses=example.parses,
        aliases=example.aliases,
        rows=example.rows,
        type=example.type,
        answer_type=example.answer_type,
        cluster=example.cluster,
    )


def read_external(path: Path, examples: Sequence[Example] | None = None, left_out: int = 0) -> list[Case]:
    """Read another system's file of predictions.

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
        if example.id in records:
            place, record = records[example.id]
            cases.append(case_of(example, *_prediction(example.id, record, place)))
        else:
            cases.append(case_of(example, None))
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
