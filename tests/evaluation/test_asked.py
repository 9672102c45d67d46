"""Tests of `byokg.evaluation.run_folder`."""

from __future__ import annotations

from pathlib import Path

import pytest

from byokg.errors import RunError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.folder import Folder
from byokg.evaluation.run_folder import QUESTIONS, questions_jsonl, read_questions
from byokg.types import EntityId

EXAMPLES = (
    Example(
        "q1", "Wo liegt Zürich?", ("Schweiz",), (EntityId("c/ch"),), ("Zürich",), (EntityId("z"),), 1, "dev", "1-hop"
    ),
    Example(
        "q2",
        "lone \udc80 surrogate",
        ("a", "b"),
        aliases=(("A",), ()),
        parses=(("x",), ()),
        support=(("a", "r", "b"),),
        rows=(("a", 1, None), ("b", {"of": (2.5, True)})),
        hops=0,
    ),
)


def test_what_was_asked_reads_back_equal(tmp_path: Path) -> None:
    (tmp_path / QUESTIONS).write_bytes(questions_jsonl(EXAMPLES))
    assert read_questions(tmp_path) == EXAMPLES


def test_the_file_can_be_asked_again_as_a_data_set(tmp_path: Path) -> None:
    (tmp_path / QUESTIONS).write_bytes(questions_jsonl(EXAMPLES[:1]))
    assert Folder(tmp_path).examples() == EXAMPLES[:1]


def test_fields_without_a_value_are_left_out() -> None:
    assert questions_jsonl([Example("q", "Who?", ("Ann",))]) == b'{"id":"q","question":"Who?","answers":["Ann"]}\n'


def test_a_missing_file_and_a_broken_line_are_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no questions.jsonl in .*give the folder that an evaluation wrote"):
        read_questions(tmp_path)
    (tmp_path / QUESTIONS).write_bytes(questions_jsonl(EXAMPLES) + b'{"id":"q"}\n')
    with pytest.raises(RunError, match=r"questions.jsonl:3: is no question"):
        read_questions(tmp_path)
