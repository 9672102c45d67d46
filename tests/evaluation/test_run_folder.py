"""Tests of `byokg.evaluation.run_folder`: its questions, its metrics, and the version of the code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from byokg.errors import RunError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.folder import Folder
from byokg.evaluation.metrics import ZERO, Metrics, QuestionScores, Retrieved, Scores, aggregate
from byokg.evaluation.records import CONFIG, PREDICTIONS
from byokg.evaluation.run_folder import (
    METRICS_FILE,
    QUESTIONS,
    code_version,
    is_finished,
    metrics_json,
    questions_jsonl,
    read_metrics,
    read_questions,
)
from byokg.evaluation.runner import RunSettings, run_evaluation
from byokg.types import Answer, AnswerItem, EntityId, Question

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


def test_metrics_read_back_equal(tmp_path: Path) -> None:
    scores = Scores(1.0, 0.0, 1 / 3, 0.1, 0.2, 0.0)
    metrics = aggregate(
        [QuestionScores(scores, type="count", hops=1, linked=0.5), QuestionScores(scores, failed=True, type="Länge")]
    )
    (tmp_path / METRICS_FILE).write_text(metrics_json(metrics), encoding="utf-8")
    assert read_metrics(tmp_path) == metrics
    written = json.loads((tmp_path / METRICS_FILE).read_text(encoding="utf-8"))
    assert list(written) == [
        *("schema", "profile", "n", "failed"),
        *("hit", "hits@1", "precision", "recall", "f1", "em"),
        *("linked", "by_type", "by_hops"),
    ]
    assert written["linked"] == {"n": 1, "value": 0.5, "ci95": [0.5, 0.5]}
    assert list(written["by_type"]) == ["Länge", "count"]
    assert "linked" in written["by_type"]["count"] and "linked" not in written["by_type"]["Länge"]


def test_a_metrics_file_that_is_missing_or_broken_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no metrics\.json in .*not finished"):
        read_metrics(tmp_path)
    for text in ("{", "{}", '{"schema":1,"profile":"lenient"}', "[]"):
        (tmp_path / METRICS_FILE).write_text(text)
        with pytest.raises(RunError, match=r"metrics\.json: .*cannot be read"):
            read_metrics(tmp_path)


def test_retrieval_and_losses_are_in_the_metrics_file_and_read_back(tmp_path: Path) -> None:
    measured = aggregate(
        [QuestionScores(ZERO, retrieved=Retrieved((3,), (1, 2), 90), type=kind) for kind in ("x", "y")]
    )
    (tmp_path / METRICS_FILE).write_text(metrics_json(measured), "utf-8")
    assert read_metrics(tmp_path) == measured
    record = json.loads(metrics_json(measured))
    assert record["retrieval"]["recall@5"] == {"n": 2, "value": 1.0, "ci95": [pytest.approx(0.3424, abs=1e-4), 1.0]}
    assert record["median_tokens"] == 90.0
    assert {stage: count for stage, count in record["loss"].items() if count} == {"not_answered": 2}
    assert record["by_type"]["x"]["loss"]["not_answered"] == 1


def test_a_run_is_finished_once_its_metrics_are_written_and_a_broken_file_is_named(tmp_path: Path) -> None:
    assert not is_finished(tmp_path)
    (tmp_path / METRICS_FILE).write_text(metrics_json(aggregate([QuestionScores(ZERO)])), "utf-8")
    assert is_finished(tmp_path)
    (tmp_path / METRICS_FILE).write_text("[]", "utf-8")
    with pytest.raises(RunError, match=r"metrics.json: cannot be read"):
        read_metrics(tmp_path)


def test_the_running_code_is_identified() -> None:
    version = code_version()
    assert version.version
    assert len(version.digest) == 16
    assert int(version.digest, 16) >= 0
    assert version.commit is None or len(version.commit.rstrip("+")) == 40


def test_the_same_code_has_the_same_digest() -> None:
    first = code_version()
    code_version.cache_clear()
    assert code_version() == first


class Here:
    """Answers every question alike, and remembers which it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def run(self, question: Question) -> Answer:
        """Return the one answer."""
        self.asked.append(question.id)
        return Answer(question.id, (AnswerItem("here", None, 1.0),), ())


def test_a_larger_limit_goes_on_where_the_smaller_one_ended(tmp_path: Path) -> None:
    examples = [Example(f"q{number}", f"Where is {number}?", ("here",)) for number in range(6)]
    here = Here()

    def run(limit: int | None, out: str, **config: object) -> Metrics:
        settings = RunSettings("towns", "0" * 64, "1" * 64, config={"limit": limit, **config})
        return run_evaluation(here, examples[:limit], tmp_path / out, settings)

    assert run(2, "grown").overall.n == 2
    assert run(4, "grown").overall.n == 4
    assert run(None, "grown").overall.n == 6
    assert here.asked == [f"q{number}" for number in range(6)]
    run(None, "whole")
    for name in (CONFIG, QUESTIONS, PREDICTIONS, METRICS_FILE):
        assert (tmp_path / "grown" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    with pytest.raises(RunError, match="belongs to run"):
        run(4, "grown")  # a run does not shrink
    run(2, "other", beam=1)
    with pytest.raises(RunError, match="belongs to run"):
        run(4, "other", beam=2)


def test_a_larger_run_with_other_first_questions_is_another_run(tmp_path: Path) -> None:
    examples = [Example(f"q{number}", f"Where is {number}?", ("here",)) for number in range(6)]

    for chosen, refused in ((examples[:2], False), (examples[1:5], True)):
        settings = RunSettings("towns", "0" * 64, "1" * 64, config={"limit": len(chosen)})
        if refused:
            with pytest.raises(RunError, match="belongs to run"):
                run_evaluation(Here(), chosen, tmp_path / "run", settings)
        else:
            run_evaluation(Here(), chosen, tmp_path / "run", settings)
