"""What led to a question's answers, as a line of `trace.jsonl` holds it after `schema` and `id`.

- `rounds`, each with `number`, `artifacts` (what the KG-Linker wrote), `linked` (what that turned out to be, with
  scores), `evidence` and `steps` (what retrievers noted on their way, in order: `stage`, `given`, `got`), all fields of
  these records as in `byokg/types.py`. Evidence begins with its `id` and `kind`; it has `retriever`, `score`, `round`
  and what its kind has. A walk is a list of steps `[head, relation, tail, edge, inverse]`, with a sixth entry for the
  edge's properties where it has any. Of a metapath's ends, and of a query's rows, the first 20 are written, and
  `n_ends` or `n_rows` says how many there are.
- `calls`, where language models were asked, in order: `stage`, `prompt` (digest of the messages), `shown` (ids of the
  lines of evidence in it, see `pipeline/context.py`) and `reply` (key of the recorded reply).
- `answers`, best first, each with `name`, `id`, `score` and `citations`.

Equal runs write equal bytes: seconds, tokens and money are in `timings.jsonl`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, cast

import numpy as np

from byokg.llm.usage import QuestionUsage
from byokg.pipeline.context import shown_lines
from byokg.types import AnswerItem, Evidence, Path, PathEvidence, Round, RowsEvidence, Step, Triple

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_PLAIN = frozenset({str, int, bool, tuple, Triple, type(None)})
"""Types of most fields, which are written as they are; looking at each more closely would take longer than the rest."""

ENTRIES_SHOWN = 20
"""Ends of a metapath, and rows of a query, that are written; there may be thousands."""


def trace_fields(rounds: Sequence[Round], usage: QuestionUsage, answers: Sequence[AnswerItem]) -> dict[str, object]:
    """Return what a line of the trace holds, to be written with `encode`."""
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
    if isinstance(value, Path):
        return [_step(triple, inverse) for triple, inverse in zip(value.triples, value.inverse, strict=True)]
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        names, values = _fields(kind)
        record: dict[str, object] = dict(zip(names, values(value), strict=True))
        for name, field in record.items():
            if type(field) not in _PLAIN:
                if isinstance(field, float | np.floating):
                    record[name] = _rounded(field)
                elif isinstance(field, Mapping):
                    record[name] = dict(field)
        if isinstance(value, PathEvidence):
            record |= {"ends": value.ends[:ENTRIES_SHOWN], "n_ends": len(value.ends)}
        elif isinstance(value, RowsEvidence):
            record |= {"rows": value.rows[:ENTRIES_SHOWN], "n_rows": len(value.rows)}
        elif isinstance(value, Step):
            record |= {"given": _rounded(value.given), "got": _rounded(value.got)}
        return {"id": value.id, "kind": kind.__name__, **record} if isinstance(value, Evidence) else record
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be written to the trace: {value!r}")


def _rounded(value: object) -> object:
    """Round numbers with a fraction: six digits are enough to read, and leave out the last bits of a sum."""
    if isinstance(value, float | np.floating):
        return round(float(value), 6)
    if isinstance(value, Mapping):
        return {key: _rounded(entry) for key, entry in value.items()}
    return [_rounded(entry) for entry in value] if isinstance(value, list | tuple) else value


@cache
def _fields(kind: Hashable) -> tuple[tuple[str, ...], Callable[[object], tuple[object, ...]]]:
    """Return the names of a record's fields, and what reads all of them: of a single one a tuple as well."""
    names = tuple(field.name for field in dataclasses.fields(cast("type[DataclassInstance]", kind)))
    if len(names) > 1:
        return names, attrgetter(*names)
    return names, lambda record: tuple(getattr(record, name) for name in names)


def _step(triple: Triple, inverse: bool) -> list[object]:
    step: list[object] = [triple.head, triple.relation, triple.tail, triple.edge, inverse]
    if triple.properties:
        step.append(triple.properties)
    return step


encode = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False, default=_jsonable
).encode
"""Writes records, mappings and sequences as JSON on one line. Raises `ValueError` for a number that is not finite, and
`TypeError` for what is no record."""
