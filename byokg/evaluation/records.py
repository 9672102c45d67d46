"""The lines and files of a run folder, and their formats. Scoring and comparing read nothing else.

- `config.yaml`: settings of the run (`RunSettings`, code version, checksums) and their hash.
- `questions.jsonl`, one line per question: its text, with gold answers and annotations.
- `predictions.jsonl`, one line per question: `schema`, `id`, `status` (`ok`, `abstained`, `failed`, `skipped`),
  `answers` (names, best first), `answer_ids`, `grounded`, `citations` and `scores` (parallel to `answers`; an id is
  null if the answer is no node, and a higher score is surer), `error` (null, or `type` and `message`), `linked`
  (null if topic entities are not annotated or were granted; else their ids as `gold`, and as `found` those among them
  that any round linked), `drafts` (draft answers of the language model in its first round, without the graph),
  `retrieved` (null if the question failed; else the fields of `metrics.Retrieved`: how far gold answers came),
  `grounding` (likewise of `metrics.Grounding`); `keys`, if an answer is a node that is named by its key; and
  `columns` and `rows`, if a query was answered from: its result, with a node as `{"node": ID, "name": NAME, "type":
  TYPE}`.
- `trace.jsonl`, one line per question: `schema`, `id`, and the stages behind the answers; see below.
- `timings.jsonl`, one line per question: `schema`, `id`, `seconds` by stage, `total` included, and with language
  models `usage` by stage: `asked` and `replayed` with the fields of `types.Consumption`, `failed`,
  `retries`. Values that may differ between two equal runs are here, so the two files above are equal byte for byte.
- `unfinished.json`, if a run was stopped: `schema`, and the `usage` by stage of questions that were cut off.
- `metrics.json`: scores of the run; see `evaluation/run_folder.py`.

JSON lines keep the order of keys given above and are UTF-8 without escapes, save for lone surrogates.

A line of `trace.jsonl` holds, after `schema` and `id`:

- `rounds`, each with `number`, `artifacts` (output of the KG-Linker), `linked` (the linked entities, with
  scores), `evidence` and `steps` (steps of retrievers, in order: `stage`, `given`, `got`), all fields of
  these records as in `byokg/types.py`. Evidence begins with its `id` and `kind`; it has `retriever`, `score`, `round`
  and the fields of its kind. A walk is a list of steps `[head, relation, tail, edge, inverse]`, with a sixth entry for
  the edge's properties if it has any, and a seventh, `undirected`, for an undirected edge. Of a metapath's ends, and of
  a query's rows, the first 20 are written, and `n_ends` or `n_rows` says how many there are.
- `calls`, if language models were called, in order: `stage`, `prompt` (digest of the messages), `shown` (ids of the
  lines of evidence in it, see `pipelines/context.py`) and `reply` (key of the recorded reply).
- `answers`, best first, each with `name`, `id`, `score`, `citations`, `cited` and `miscited`, and with
  `value_of` if known (see `types.AnswerItem`).
- `note`, if there is one: missing support of an unsure answer, or the reason for none.
- `rules`, if any: hand-made rules of the offline pipeline that fired.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import yaml

from byokg.errors import RunError
from byokg.evaluation.metrics import Grounding, Retrieved
from byokg.files import json_line
from byokg.llm.usage import QuestionUsage
from byokg.pipelines.context import shown_lines
from byokg.types import (
    Answer,
    AnswerItem,
    Artifacts,
    Cell,
    ComputedEvidence,
    Consumption,
    EdgeCell,
    EntityId,
    Evidence,
    Feedback,
    Node,
    NodeCell,
    NodeEvidence,
    PathCell,
    PathEvidence,
    Round,
    RowsEvidence,
    Spending,
    Step,
    Triple,
    TripleEvidence,
)
from byokg.types import Path as GraphPath

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SCHEMA = 1

CONFIG = "config.yaml"
PREDICTIONS = "predictions.jsonl"
TRACE = "trace.jsonl"
TIMINGS = "timings.jsonl"
UNFINISHED = "unfinished.json"

Status = Literal["ok", "abstained", "failed", "skipped"]
"""`abstained`: the pipeline ran and gave no answer. `skipped`: the question was not run."""

OUTCOMES: tuple[Status, ...] = ("ok", "abstained")
"""With these there is something to score."""

_ID = re.compile(rb'\{"schema":(\d+),"id":("(?:[^"\\]|\\.)*")')
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")

_PLAIN = frozenset({str, int, bool, tuple, type(None)})
"""Types of most fields, which are written as they are; looking at each more closely would take longer than the rest."""

_DIGITS = 6
"""Digits behind the point: enough to read."""

ENTRIES_SHOWN = 20
"""Ends of a metapath, and rows of a query, that are written; there may be thousands."""


def trace_fields(rounds: Sequence[Round], usage: QuestionUsage, answers: Sequence[AnswerItem]) -> dict[str, object]:
    """Return the fields of a line of the trace, for `encode`."""
    calls = [
        {
            "stage": one.stage,
            "prompt": one.call.prompt_digest,
            "shown": shown_lines("\n".join(message.text for message in one.call.messages if message.role == "user")),
            "reply": one.call.key,
        }
        for one in usage.calls
    ]
    return {"rounds": rounds, **({"calls": calls} if calls else {}), "answers": answers}


def _jsonable(value: object) -> object:
    """Turn one record into what JSON holds, field by field, so that a field added later is not lost.

    Raises:
        TypeError: `value` is neither a record nor a mapping nor a number.
    """
    if isinstance(value, GraphPath):
        return [_step(triple, inverse) for triple, inverse in zip(value.triples, value.inverse, strict=True)]
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        names, values = _fields(kind)
        record: dict[str, object] = dict(zip(names, values(value), strict=True))
        for name, field in record.items():
            of = type(field)
            if of in _PLAIN:
                continue
            if of is float:
                record[name] = round(cast("float", field), _DIGITS)
            elif of is Triple:
                record[name] = _jsonable(field)  # at once: the encoder would come back for it
            elif of is MappingProxyType or isinstance(field, Mapping):
                record[name] = dict(cast("Mapping[str, object]", field))
            elif isinstance(field, np.floating):
                record[name] = _rounded(field)
        if kind in (Node, NodeCell) and not record["further_types"]:
            del record["further_types"]
        if kind is AnswerItem and not record["value_of"]:
            del record["value_of"]
        if kind is Artifacts and not record["unknown"]:
            del record["unknown"]
        if isinstance(value, Triple) and not value.undirected:
            del record["undirected"]  # nearly always
        if isinstance(value, Evidence):
            if isinstance(value, PathEvidence):
                record |= {"ends": value.ends[:ENTRIES_SHOWN], "n_ends": len(value.ends)}
                if not value.walks:
                    del record["walks"]
            elif isinstance(value, RowsEvidence):
                del record["unseen"]
                for name in ("readings", "left_out", "following"):
                    if not record[name]:
                        del record[name]
                record |= {"rows": value.rows[:ENTRIES_SHOWN], "n_rows": len(value.rows)}
            return {"id": value.id, "kind": kind.__name__, **record}
        if kind is Step:
            record |= {"given": _rounded(record["given"]), "got": _rounded(record["got"])}
        return record
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be written to the trace: {value!r}")


def _rounded(value: object) -> object:
    """Round numbers with a fraction, so that the last bits of a sum are left out."""
    if type(value) in _PLAIN and type(value) is not tuple:
        return value
    if isinstance(value, float | np.floating):
        return round(float(value), _DIGITS)
    if isinstance(value, Mapping):
        return {key: _rounded(entry) for key, entry in value.items()}
    return [_rounded(entry) for entry in value] if isinstance(value, list | tuple) else value


@cache
def _fields(kind: Hashable) -> tuple[tuple[str, ...], Callable[[object], tuple[object, ...]]]:
    """Return the names of a record's fields and a getter of all of them, which returns a tuple even for a single
    field."""
    names = tuple(field.name for field in dataclasses.fields(cast("type[DataclassInstance]", kind)))
    if len(names) > 1:
        return names, attrgetter(*names)
    return names, lambda record: tuple(getattr(record, name) for name in names)


def _step(triple: Triple, inverse: bool) -> list[object]:
    step: list[object] = [triple.head, triple.relation, triple.tail, triple.edge, inverse]
    if triple.properties or triple.undirected:
        step.append(triple.properties)
    if triple.undirected:
        step.append("undirected")
    return step


def read_evidence(record: Mapping[str, Any]) -> Evidence:
    """Return a piece of evidence as a trace holds it; of an unknown kind, its common fields.

    Ends of a metapath that are only counted in the trace have empty ids.

    Raises:
        KeyError, TypeError: the record is none of evidence.
    """
    kind = _EVIDENCE.get(record["kind"], Evidence)
    fields = {each.name: as_tuples(record[each.name]) for each in dataclasses.fields(kind) if each.name in record}
    if kind is PathEvidence:
        unrecorded = record["n_ends"] - len(record["ends"])
        fields["ends"] += (EntityId(""),) * unrecorded
        fields["paths"] = tuple(_read_walk(record["source"], steps) for steps in record["paths"])
    elif kind is TripleEvidence:
        fields["triple"] = Triple(**fields["triple"])
    elif kind is NodeEvidence:
        fields["node"] = Node(**fields["node"])
    elif kind is RowsEvidence:
        fields["total"] = max(fields.get("total", 0), record["n_rows"])
        fields["readings"] = tuple(fields.get("readings", ()))
        for name in {"rows", "unseen"} & fields.keys():
            fields[name] = tuple(tuple(map(_read_cell, row)) for row in fields[name])
        fields["following"] = tuple(map(_read_cell, fields.get("following", ())))
    return kind(**fields)


_EVIDENCE: Mapping[str, type[Evidence]] = {
    kind.__name__: kind
    for kind in (PathEvidence, TripleEvidence, NodeEvidence, RowsEvidence, ComputedEvidence, Feedback)
}


def _read_walk(source: str, steps: Sequence[Sequence[Any]]) -> GraphPath:
    triples = []
    for head, relation, tail, edge, _, *more in steps:
        triples.append(Triple(head, relation, tail, edge, more[0] if more else {}, undirected=len(more) > 1))
    return GraphPath(EntityId(source), tuple(triples), tuple(step[4] for step in steps))


def _read_cell(cell: Any) -> Cell:
    if isinstance(cell, tuple):
        return tuple(map(_read_cell, cell))
    if not isinstance(cell, Mapping):
        return cast(Cell, cell)
    for kind in (NodeCell, EdgeCell, PathCell):
        names = {each.name for each in dataclasses.fields(kind)}
        if cell.keys() - {"further_types"} == names - {"further_types"}:
            held: dict[str, Any] = {name: _read_cell(value) for name, value in cell.items()}
            return kind(**held)
    return {key: _read_cell(value) for key, value in cell.items()}


encode = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False, default=_jsonable
).encode
"""Writes records, mappings and sequences as JSON on one line. Raises `ValueError` for a number that is not finite, and
`TypeError` for a value that is no record."""


@dataclass(frozen=True)
class RecordLines:
    """One question's three lines, each ending in a newline."""

    predictions: bytes
    trace: bytes
    timings: bytes


@dataclass(frozen=True)
class Failure:
    """Why a question has no answer: the error's class and message."""

    type: str
    message: str


@dataclass(frozen=True)
class LinkedTopics:
    """Which of a question's annotated topic entities were linked."""

    gold: tuple[str, ...]
    """Ids, each once, in the order of the annotation."""
    found: tuple[str, ...]
    """Those of `gold` that are among the linked entities of any round, however they were ranked."""


@dataclass(frozen=True)
class Prediction:
    """Prediction of a run for one question, with the fields of its line in `predictions.jsonl` in their order."""

    id: str
    status: Status
    answers: tuple[str, ...] = ()
    answer_ids: tuple[str | None, ...] = ()
    grounded: tuple[bool, ...] = ()
    citations: tuple[tuple[str, ...], ...] = ()
    scores: tuple[float, ...] = ()
    """How sure the pipeline is of each answer; without a language model, that the first is right, in [0, 1]."""
    error: Failure | None = None
    linked: LinkedTopics | None = None
    drafts: tuple[str, ...] = ()
    retrieved: Retrieved | None = None
    grounding: Grounding | None = None
    keys: tuple[str | None, ...] = ()
    """Of each answer that is a node named by its key alone, the key (`10307` of `Order 10307`); empty without any."""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[object, ...], ...] = ()
    """Result of the query that the answers rest on; empty if there is none."""

    @property
    def has_outcome(self) -> bool:
        """True if the pipeline answered or abstained."""
        return self.status in OUTCOMES


@dataclass(frozen=True)
class Timing:
    """Cost of one question: seconds by stage, `total` included, and language-model usage by stage."""

    id: str
    seconds: Mapping[str, float]
    usage: Mapping[str, Spending]


def record_answer(
    answer: Answer,
    seconds: float,
    usage: QuestionUsage | None = None,
    topics: Sequence[EntityId] = (),
    retrieved: Retrieved | None = None,
    keys: Sequence[str | None] = (),
) -> RecordLines:
    """Write the lines of a question that has an outcome.

    Args:
        answer: the pipeline's answer; one without items is an outcome, too.
        seconds: wall time of the whole question; the pipeline's own stages are added to it.
        usage: metered language-model usage; None takes the answer's own.
        topics: annotated topic entities that the pipeline had to link; empty if none are annotated.
        retrieved: gold answers in the evidence.
        keys: as `Prediction.keys`.

    Raises:
        ValueError: a score is not finite.
        TypeError: a record holds a value without a JSON form.
    """
    items = answer.items
    cited, wrong = sum(item.cited for item in items), sum(len(item.miscited) for item in items)
    usage = usage or QuestionUsage(answer.usage)
    further: dict[str, object] = {name: text for name in ("note", "translation") if (text := getattr(answer, name))}
    further |= {"rules": list(answer.rules)} if answer.rules else {}
    prediction = Prediction(
        id=answer.question_id,
        status="ok" if items else "abstained",
        answers=tuple(item.name for item in items),
        answer_ids=tuple(item.id for item in items),
        grounded=tuple(item.grounded for item in items),
        citations=tuple(item.citations for item in items),
        scores=tuple(round(float(item.score), _DIGITS) for item in items),
        linked=_linked_topics(topics, {one.id for each in answer.rounds for one in each.linked.entities}),
        drafts=answer.rounds[0].artifacts.draft_answers if answer.rounds else (),
        retrieved=retrieved,
        grounding=Grounding(tuple(item.support for item in items), cited, cited - wrong),
        keys=tuple(keys) if any(keys) else (),
        columns=answer.columns,
        rows=tuple(tuple(map(_recorded_cell, row.cells)) for row in answer.rows),
    )
    return RecordLines(
        predictions=_prediction_line(prediction),
        trace=_line(prediction.id, **trace_fields(answer.rounds, usage, items), **further),
        timings=_timing(prediction.id, answer.seconds, seconds, usage),
    )


def record_failure(
    id: str, error: Exception, seconds: float, usage: QuestionUsage | None = None, topics: Sequence[EntityId] = ()
) -> RecordLines:
    """Write the lines of a question whose pipeline raised; memory addresses are cut from the message."""
    usage = usage or QuestionUsage()
    failure = Failure(type(error).__name__, _ADDRESS.sub("0x…", str(error)))
    prediction = Prediction(id, "failed", error=failure, linked=_linked_topics(topics, set()))
    return RecordLines(
        predictions=_prediction_line(prediction),
        trace=_line(id, **trace_fields((), usage, ())),
        timings=_timing(id, {}, seconds, usage),
    )


def line_id(line: bytes, place: str) -> str | None:
    """Return the question a line of any of the three files is about; None when it is torn or no record.

    Raises:
        RunError: the line was written by a newer byokg; the message gives `place`.
    """
    found = _ID.match(line)
    if found is None or not line.endswith(b"}\n") or b"\0" in line:
        return None
    if int(found[1]) > SCHEMA:
        raise RunError(f"{place}: schema {int(found[1])}, this byokg reads up to {SCHEMA}; upgrade byokg")
    return cast(str, json.loads(found[2]))


def read_predictions(folder: Path) -> Iterator[Prediction]:
    """Yield the predictions of a run folder in file order.

    Raises:
        RunError: the file is missing, or a line of it is not a prediction.
    """
    for line, place in _lines(folder / PREDICTIONS):
        yield parse_prediction(line, place)


def parse_prediction(line: bytes, place: str) -> Prediction:
    """Read one line of `predictions.jsonl`.

    Raises:
        RunError: it is not one; the message gives `place`.
    """
    try:
        record = as_tuples(json.loads(line))
        if record["schema"] > SCHEMA:
            raise RunError(f"{place}: schema {record['schema']}, this byokg reads up to {SCHEMA}; upgrade byokg")
        # Runs of earlier versions have no scores, linked, drafts, retrieved and grounding.
        linked, retrieved, grounding = record.get("linked"), record.get("retrieved"), record.get("grounding")
        return Prediction(
            **{name: record[name] for name in ("id", "status", "answers", "answer_ids", "grounded", "citations")},
            scores=record.get("scores", ()),
            error=None if record["error"] is None else Failure(**record["error"]),
            linked=None if linked is None else LinkedTopics(**linked),
            drafts=record.get("drafts", ()),
            retrieved=None if retrieved is None else Retrieved(**retrieved),
            grounding=None if grounding is None else Grounding(**grounding),
            keys=record.get("keys", ()),
            columns=record.get("columns", ()),
            rows=record.get("rows", ()),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{place}: is not a prediction ({error!r}); remove the line and start the run again") from error


def read_usage(folder: Path) -> list[Mapping[str, Spending]]:
    """Return the language-model usage of each recorded question, by stage; empty if there was none.

    Raises:
        RunError: the file is missing, or a line of it is not a timing.
    """
    return [timing.usage for timing in read_timings(folder)]


def read_timings(folder: Path) -> Iterator[Timing]:
    """Yield what each recorded question took, in file order.

    Raises:
        RunError: the file is missing, or a line of it is not a timing.
    """
    for record in _records(folder / TIMINGS):
        try:
            yield Timing(record["id"], record["seconds"], record.get("usage", {}))
        except KeyError as error:
            raise RunError(f"{folder / TIMINGS}: a record lacks {error}; start the run again") from error


def reply_keys(folder: Path) -> set[str]:
    """Return the keys of all recorded replies that a run used.

    Raises:
        RunError: the file is missing, or a line of it is not a trace.
    """
    return {call["reply"] for record in _records(folder / TRACE) for call in record.get("calls", ())}


def read_trace(folder: Path, id: str) -> dict[str, Any]:
    """Return what led to the answers of one question; see the module's text for the fields.

    Raises:
        RunError: the file is missing, a line of it is not a trace, or the question is not in the run.
    """
    near: list[str] = []
    for record in _records(folder / TRACE):
        if record.get("id") == id:
            return record
        near.append(str(record.get("id")))
    close = difflib.get_close_matches(id, near, 3) or near[:3]
    raise RunError(f"{folder / TRACE}: no question {id!r}; there are {', '.join(close) or 'none at all'}")


def config_yaml(config: Mapping[str, Any]) -> str:
    """Return the content of `config.yaml`: keys in the order given."""
    # Escapes for all but ASCII: PyYAML reads some characters (\x85) back changed.
    return yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=False, width=120)


def read_config(folder: Path) -> dict[str, Any]:
    """Read `config.yaml` back.

    Raises:
        RunError: the file is missing, or is no YAML mapping.
    """
    path = folder / CONFIG
    try:
        config = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except FileNotFoundError as error:
        raise RunError(f"no {CONFIG} in {str(folder)!r}; give the folder that an evaluation wrote") from error
    except (ValueError, yaml.YAMLError) as error:
        raise RunError(f"{path}: cannot be read ({error}); use another out=") from error
    if not isinstance(config, dict):
        raise RunError(f"{path}: is not a mapping; use another out=")
    return config


def unfinished_json(usage: Mapping[str, Spending]) -> str:
    """Return the content of `unfinished.json`."""
    return encode({"schema": SCHEMA, "usage": usage}) + "\n"


def read_unfinished(folder: Path) -> dict[str, Spending]:
    """Return the usage of questions that were cut off when the run was stopped, by stage.

    Raises:
        RunError: the file exists and cannot be read.
    """
    if not (folder / UNFINISHED).exists():
        return {}
    [record] = _records(folder / UNFINISHED)
    return dict(record["usage"])


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file of JSON lines, with language-model usage by stage as `Spending`."""
    for line, place in _lines(path):
        try:
            record = json.loads(line)
            if usage := record.get("usage"):
                record["usage"] = {stage: _spending(**each) for stage, each in usage.items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise RunError(f"{place}: is no record of a run ({error!r})") from error
        yield record


def _lines(path: Path) -> Iterator[tuple[bytes, str]]:
    """Yield the lines of a file, each with its place."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield line, f"{path}:{number}"
    except FileNotFoundError as error:
        raise RunError(f"no {path.name} in {str(path.parent)!r}; give the folder that an evaluation wrote") from error


def as_tuples(value: Any) -> Any:
    """Return a value read from JSON with tuples, as records hold them, in place of its lists."""
    if isinstance(value, dict):
        return {key: as_tuples(entry) for key, entry in value.items()}
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def _line(id: str, **fields: object) -> bytes:
    return json_line({"schema": SCHEMA, "id": id, **fields}, encode)


def _prediction_line(prediction: Prediction) -> bytes:
    absent = (*(() if prediction.keys else ("keys",)), *(() if prediction.rows else ("columns", "rows")))
    return _line(**{name: value for name, value in vars(prediction).items() if name not in absent})


def _recorded_cell(cell: Cell) -> object:
    """Return a cell of an answer's rows as a prediction holds it, without the properties of nodes."""
    if isinstance(cell, NodeCell):
        return {"node": cell.id, "name": cell.name, "type": cell.type}
    if isinstance(cell, EdgeCell):
        return {**vars(cell), "properties": dict(cell.properties)}
    if isinstance(cell, PathCell):
        return {"nodes": _recorded_cell(cell.nodes), "edges": _recorded_cell(cell.edges)}
    if isinstance(cell, Mapping):
        return {key: _recorded_cell(value) for key, value in cell.items()}
    if isinstance(cell, float) and not math.isfinite(cell):
        return str(cell)
    return [_recorded_cell(each) for each in cell] if isinstance(cell, list | tuple) else cell


def _linked_topics(topics: Sequence[EntityId], linked: Collection[EntityId]) -> LinkedTopics | None:
    gold = tuple(dict.fromkeys(topics))
    return LinkedTopics(gold, tuple(id for id in gold if id in linked)) if gold else None


def _timing(id: str, stages: Mapping[str, float], total: float, usage: QuestionUsage) -> bytes:
    seconds = {stage: round(float(value), 6) for stage, value in {**stages, "total": total}.items()}
    return _line(id, seconds=seconds, **({"usage": usage.stages} if usage.stages else {}))


def _spending(asked: Mapping[str, Any], replayed: Mapping[str, Any], failed: int, retries: int) -> Spending:
    return Spending(Consumption(**asked), Consumption(**replayed), failed, retries)
