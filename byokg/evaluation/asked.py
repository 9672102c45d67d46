"""`questions.jsonl` of a run folder: what was asked, with gold answers and annotations.

So the folder can be scored again, compared and shown without the data set.

One line a question, in the order asked: the fields of `Example` that are not empty, under their names. Lists are as in
the `folder` layout, so the file can be asked again with `dataset=folder`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from byokg.errors import RunError
from byokg.evaluation.datasets.base import Example
from byokg.llm.reply_files import json_line

QUESTIONS = "questions.jsonl"

_FIELDS = frozenset(field.name for field in dataclasses.fields(Example))


def questions_jsonl(examples: Sequence[Example]) -> bytes:
    """Return the content of the file."""
    return b"".join(map(_line, examples))


def read_questions(folder: Path) -> tuple[Example, ...]:
    """Read what a run asked.

    Raises:
        RunError: the file is missing, or a line of it is no question.
    """
    path = folder / QUESTIONS
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError as error:
        raise RunError(
            f"no {QUESTIONS} in {str(folder)!r}; give the folder that an evaluation wrote, or name the data set"
        ) from error
    return tuple(_example(line, f"{path}:{number}") for number, line in enumerate(lines, start=1) if line)


def _line(example: Example) -> bytes:
    fields = {name: value for name, value in dataclasses.asdict(example).items() if value not in ("", (), None)}
    return json_line(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))


def _example(line: bytes, place: str) -> Example:
    try:
        fields = {name: _tuples(value) for name, value in json.loads(line).items() if name in _FIELDS}
        return Example(**fields)
    except (ValueError, TypeError, AttributeError) as error:
        raise RunError(f"{place}: is no question ({error}); start the run again in another folder") from error


def _tuples(value: Any) -> Any:
    """Return lists as the tuples that records hold."""
    if isinstance(value, dict):
        return {key: _tuples(entry) for key, entry in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
