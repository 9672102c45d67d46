"""One question with its gold answers and a system's prediction, as every metric profile reads it.

Answers come from a run of ours, or from a file of predictions of another system: JSON lines as RoG, GNN-RAG, GCR,
SubgraphRAG, ToG and others write them.

| field | read as |
|---|---|
| `id`, `qid`, `question_id`, `QuestionId`, `uniq_id` | the question's id |
| `question`, `RawQuestion` | the question's text, which replaces a missing id |
| `prediction`, `predictions`, `pred`, `answers`, `response` | a list of answers, or a text cut into lines |
| `results` | as the ToG family writes it: JSON that holds an `Answer`, or a sentence with the answer in braces |
| `answer_ids`, `prediction_ids` | ids of predicted answers, best first, if a system gives them |
| `ground_truth`, `gold`, `a_entity`, `answer` | gold names, a list or one |
| `gold_ids` | ids of gold answers, if present |
| `type`, `answer_type` | as in `Example`, if present |

A line whose prediction is null is a question without a prediction; an empty line of a text is no answer. Gold answers
of a data set take precedence over those of the file. Files may be compressed (`.xz`, `.gz`); a JSON list of such
records is read, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from byokg.errors import RunError
from byokg.evaluation.datasets.base import Example, read_text
from byokg.evaluation.datasets.result_sets import NODE
from byokg.evaluation.metrics import match_gold
from byokg.evaluation.records import OUTCOMES, Prediction, Status
from byokg.types import EntityId

_IDS = ("id", "qid", "question_id", "QuestionId", "uniq_id")
_QUESTIONS = ("question", "RawQuestion")
_RESULTS = "results"
_PREDICTIONS = ("prediction", "predictions", "pred", "answers", _RESULTS, "response")
_PREDICTED_IDS = ("answer_ids", "prediction_ids")
_GOLDS = ("ground_truth", "gold", "a_entity", "answer")

_BRACES = re.compile(r"\{([^{}]*)\}")
_SUFFICIENT = frozenset(("yes", "no"))
"""Text in braces before the answer in predictions of the ToG family."""

_STRANGERS = 0.05
"""Share of a file's questions, known by their text alone, that a data set may lack: it may be a part of the whole."""

_LISTED = 3


@dataclass(frozen=True)
class Case:
    """A question, its gold answers, and the answers to be scored."""

    id: str
    gold: tuple[str, ...]
    """Gold names, at least one."""
    answers: tuple[str, ...] = ()
    """Predicted names best first; of a text in another system's file, its lines, or the answers marked in it."""
    status: Status = "ok"
    """`failed` and `skipped` have no prediction; a question that is missing from the file failed."""
    answer_ids: tuple[str | None, ...] = ()
    """One for each of `answers`; empty if the system gives names alone."""
    answer_keys: tuple[str | None, ...] = ()
    """As `Prediction.keys`."""
    drafts: tuple[str, ...] = ()
    """Draft answers of the language model, without the graph, if recorded."""
    reply: str | None = None
    """The prediction as one text that a language model wrote; None if it is a list of answers."""
    question: str = ""
    gold_ids: tuple[str, ...] = ()
    parses: tuple[tuple[str, ...], ...] = ()
    """Gold ids of each annotated reading; empty if there is one reading, which is `gold_ids`."""
    aliases: tuple[tuple[str, ...], ...] = ()
    """Other names of each gold answer, parallel to `gold`; or empty."""
    rows: tuple[tuple[object, ...], ...] = ()
    """Result of the gold query, if there is one."""
    row_count: int | None = None
    query: str = ""
    """The gold query."""
    result: tuple[tuple[object, ...], ...] = ()
    """Result of the system's query; empty if it has none."""
    type: str = ""
    answer_type: str = ""
    cluster: str = ""
    """Shared by questions that belong together; empty if the question stands alone."""
    first_id: str = ""
    """Id of the repeated question; empty if no question is repeated."""

    @property
    def written(self) -> bool:
        """True if the prediction is a text and not a list of answers."""
        return self.reply is not None

    @property
    def has_outcome(self) -> bool:
        """True if there is a prediction, possibly an empty one."""
        return self.status in OUTCOMES

    @property
    def text(self) -> str:
        """Return the prediction as one text; of a list, a line an answer."""
        return "\n".join(self.answers) if self.reply is None else self.reply

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the answers as publications count them: the list, or all lines of the text, empty ones included."""
        return self.answers if not self.reply else tuple(self.reply.split("\n"))

    @property
    def matched_answers(self) -> list[str]:
        """Return the predicted names, those that are gold answers as these are named; see `match_gold`."""
        return match_gold(self.answers, self.gold, self.answer_ids, self.gold_ids, self.answer_keys)

    @property
    def answer_rows(self) -> tuple[tuple[object, ...], ...]:
        """Return the result of the system's query, or else its answers as rows of one column, each once."""
        if self.result or not self.answers:
            return self.result
        ids = self.answer_ids or (None,) * len(self.answers)
        pairs = dict.fromkeys(zip(ids, self.answers, strict=True))
        return tuple((name,) if id is None else ({NODE: id, "name": name},) for id, name in pairs)

    @property
    def ranked_ids(self) -> tuple[str, ...]:
        """Return the predicted ids best first, each once; an answer that is no node stands under its name."""
        if not self.answer_ids:
            return tuple(dict.fromkeys(self.answers))
        pairs = zip(self.answer_ids, self.answers, strict=True)
        return tuple(dict.fromkeys(name if id is None else id for id, name in pairs))


def join(examples: Sequence[Example], predictions: Iterable[Prediction]) -> list[Case]:
    """Join questions and predictions, in the order of the questions.

    Args:
        examples: the questions; one without a prediction becomes a failed case.
        predictions: at most one for each question, in any order.

    Raises:
        RunError: a prediction belongs to no question of the run.
    """
    found = by_question(examples, predictions)
    return [case_of(example, found.get(example.id)) for example in examples]


def by_question(examples: Sequence[Example], predictions: Iterable[Prediction]) -> dict[str, Prediction]:
    """Return predictions by question. Raises `RunError` for a prediction without a question."""
    found = {prediction.id: prediction for prediction in predictions}
    strangers = found.keys() - {example.id for example in examples}
    if strangers:
        raise RunError(
            f"there is a prediction for {min(strangers)!r} (and {len(strangers) - 1:,} more like it), which is no "
            "question of this data set; name the data set, and the split, that was predicted"
        )
    return found


def case_of(example: Example, prediction: Prediction | None, reply: str | None = None) -> Case:
    """Put one question and its prediction together; without one, the case counts as failed."""
    made = prediction or Prediction(example.id, "failed")
    return Case(
        id=example.id,
        gold=example.answers,
        answers=made.answers,
        status=made.status,
        answer_ids=made.answer_ids,
        answer_keys=made.keys,
        drafts=made.drafts,
        reply=reply,
        question=example.question,
        gold_ids=example.answer_ids,
        parses=example.parses,
        aliases=example.aliases,
        rows=example.rows,
        row_count=example.row_count,
        query=example.query,
        result=made.rows,
        type=example.type,
        answer_type=example.answer_type,
        cluster=example.group,
        first_id=example.first_id,
    )


def read_external(
    path: Path,
    examples: Sequence[Example] | None = None,
    left_out: int = 0,
    note: Callable[[str], None] = lambda text: None,
) -> list[Case]:
    """Read another system's file of predictions.

    Args:
        path: the file.
        examples: questions with gold answers; all of them count, also those missing from the file. Without them the
            gold answers come from the file, and missing questions are unknown. Predictions without an id are matched by
            the question's text.
        left_out: number of questions that the data set excludes for want of gold answers; as many predictions for
            questions outside `examples` are skipped.
        note: called with one line on skipped records: repeated predictions, and texts that are no question of the set.

    Returns:
        Cases in the order of the questions, or of the file.

    Raises:
        RunError: a record has another shape, two predictions for one question differ, a record belongs to no question,
            or there is nothing to score.
        DatasetError: the file cannot be read.
    """
    records = _distinct(path, note)
    if examples is None:
        return [_case(id, each.record, each.place) for id, each in records.items()]
    asked: dict[str, str] = {example.id: example.id for example in examples}
    by_text = {id for id, each in records.items() if each.is_text}
    if by_text:
        asked |= {
            example.id: _normalize_question(example.question) for example in examples if example.id not in records
        }
    strangers = [id for id in records if id not in set(asked.values())]
    unknown = [id for id in strangers if id not in by_text]
    allowed = left_out if unknown else max(left_out, int(_STRANGERS * len(records)))
    if len(strangers) > allowed:
        first = (unknown or strangers)[0]
        raise RunError(
            f"{records[first].place}: question {first!r} is not in the data set, nor are "
            f"{len(strangers) - 1:,} more; name the data set, and the split, that was predicted"
        )
    if by_text.intersection(strangers):
        passed = f"{len(strangers):,} questions are not in the data set, and passed over"
        note(f"{path.name}: {passed}: {_quote_ids(strangers)}")
    found = [(example, records.get(asked[example.id])) for example in examples]
    return [
        case_of(example, None) if each is None else case_of(example, *_prediction(example.id, each.record, each.place))
        for example, each in found
    ]


class _Placed(NamedTuple):
    """A record, its place in the file, and True if its id is the text of the question."""

    record: Mapping[str, Any]
    place: str
    is_text: bool


def _distinct(path: Path, note: Callable[[str], None]) -> dict[str, _Placed]:
    """Return the records by id, each once. Raises `RunError` if two predictions for one question differ."""
    records: dict[str, _Placed] = {}
    repeated = []
    for place, record in _records(path):
        id, is_text = _id(record, place)
        before = records.setdefault(id, _Placed(record, place, is_text))
        if before.place == place:
            continue
        if _prediction(id, before.record, before.place) != _prediction(id, record, place):
            raise RunError(
                f"{place}: id {id!r} is already used in {before.place}, for another prediction; keep one a question"
            )
        repeated.append(id)
    if not records:
        raise RunError(f"{path}: holds no prediction; give the file that a system wrote, or a run folder")
    if repeated:
        note(f"{path.name}: {len(repeated):,} predictions stand there twice, and count once: {_quote_ids(repeated)}")
    return records


def _quote_ids(ids: Sequence[str]) -> str:
    more = f" (+{len(ids) - _LISTED:,} more)" if len(ids) > _LISTED else ""
    return ", ".join(map(repr, ids[:_LISTED])) + more


def _normalize_question(question: str) -> str:
    """Return a question's text as it is matched: without case, outer marks and repeated spaces."""
    return " ".join(question.casefold().split()).rstrip(" ?.!")


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


def _id(record: Mapping[str, Any], place: str) -> tuple[str, bool]:
    """Return a record's id, or its question's text if it has none, and which of the two it is."""
    for name in _IDS:
        if isinstance(record.get(name), str | int):
            return str(record[name]), False
    for name in _QUESTIONS:
        if isinstance(record.get(name), str):
            return _normalize_question(record[name]), True
    raise RunError(f"{place}: has no id; it is read from {', '.join((*_IDS, *_QUESTIONS))}")


def _case(id: str, record: Mapping[str, Any], place: str) -> Case:
    """Make a case of a record that brings its own gold answers."""
    gold = next((_texts(record[name], name, place) for name in _GOLDS if record.get(name) is not None), ())
    if not gold:
        raise RunError(
            f"{place}: has no gold answers in {', '.join(_GOLDS)}; name the data set: dataset=folder dataset.root=DIR"
        )
    example = Example(
        id=id,
        question=next((str(record[name]) for name in _QUESTIONS if record.get(name)), ""),
        answers=gold,
        answer_ids=tuple(map(EntityId, _texts(record.get("gold_ids") or [], "gold_ids", place))),
        type=str(record.get("type") or ""),
        answer_type=str(record.get("answer_type") or ""),
    )
    return case_of(example, *_prediction(id, record, place))


def _prediction(id: str, record: Mapping[str, Any], place: str) -> tuple[Prediction, str | None]:
    """Return the predicted answers, and the whole text if the prediction is one."""
    name = next((name for name in _PREDICTIONS if name in record), None)
    if name is None:
        raise RunError(f"{place}: has no prediction; it is read from {', '.join(_PREDICTIONS)}")
    value = record[name]
    if value is None:
        return Prediction(id, "failed"), None
    reply: str | None = None
    if not isinstance(value, str):
        answers = _texts(value, name, place)
    elif name == _RESULTS:
        answers, reply = _marked(value)
    else:
        answers, reply = _lines(value), value
    given = next((record[field] for field in _PREDICTED_IDS if record.get(field)), None)
    ids = () if given is None else _texts(given, "answer_ids", place)
    if ids and len(ids) != len(answers):
        raise RunError(f"{place}: has {len(ids)} ids for {len(answers)} answers; give one id for each, or none")
    return Prediction(id, "ok", answers, ids), reply


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.split("\n") if line.strip())


def _marked(text: str) -> tuple[tuple[str, ...], str]:
    """Return the answers marked in a text of the ToG family, and the text for its metric.

    JSON holds them as `Answer`, a sentence in braces, where a first `{Yes}` only marks the evidence as sufficient.
    """
    try:
        held = _answer_in(json.loads(text))
    except ValueError:
        braced = (each.strip() for each in _BRACES.findall(text))
        named = [each for each in braced if each and each.casefold() not in _SUFFICIENT]
        return tuple(named[:1]) or _lines(text), text
    if held is None:
        return (), "null"
    answers = tuple(str(each) for each in (held if isinstance(held, list) else [held]) if str(each).strip())
    return answers, "\n".join(answers)


def _answer_in(value: object) -> object:
    """Return the first field `Answer` of nested objects; None if there is none."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name.casefold() in ("answer", "answers") and not isinstance(each, dict):
                return each
        return next((found for each in value.values() if (found := _answer_in(each)) is not None), None)
    return None


def _texts(value: Any, name: str, place: str) -> tuple[str, ...]:
    """Return a field that lists texts or numbers, or is one."""
    values = value if isinstance(value, list) else [value]
    for one in values:
        if isinstance(one, bool) or not isinstance(one, str | int | float):
            raise RunError(f"{place}: field {name!r} should list texts, not {str(one)[:60]!r}")
    return tuple(map(str, values))
