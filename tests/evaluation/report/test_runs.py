"""Tests of `byokg.evaluation.report.summary`: which folders make a report, and what is read of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from byokg.errors import RunError
from byokg.evaluation.report.summary import Traces, asked_by, read_reported
from byokg.evaluation.run_folder import Run, run_names
from byokg.evaluation.runner import RunSettings, run_evaluation
from tests.evaluation.report.conftest import BASE, EXAMPLES, Told


def test_a_run_is_read_with_its_questions_and_what_they_took(runs: list[Run]) -> None:
    base, other = runs
    assert (base.name, other.name) == ("base", "other")
    assert base.questions == EXAMPLES
    assert list(base.predictions) == list(base.timings) == ["q1", "q2", "q3", "q4", "q5"]
    assert base.predictions["q5"].status == "failed"
    assert base.timings["q1"].seconds["total"] >= 0 and base.timings["q1"].usage == {}


def test_runs_are_named_by_as_much_of_their_paths_as_tells_them_apart() -> None:
    assert run_names([Path("/runs/a"), Path("/runs/b")]) == ["a", "b"]
    assert run_names([Path("/x/a/run"), Path("/x/b/run"), Path("/x/c")]) == ["a/run", "b/run", "x/c"]


def test_a_run_given_twice_is_refused(folders: tuple[Path, Path]) -> None:
    with pytest.raises(RunError, match="is given twice"):
        read_reported([folders[0], folders[0].parent / "other" / ".." / "base"])


def test_runs_over_different_data_sets_are_refused(folders: tuple[Path, Path], tmp_path: Path) -> None:
    run_evaluation(Told(BASE), EXAMPLES, tmp_path / "run", RunSettings("films test", "2" * 64, "1" * 64))
    with pytest.raises(RunError, match="make one report for each data set"):
        read_reported([folders[0], tmp_path / "run"])


def test_a_run_that_is_not_finished_is_refused(folders: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(folders[0], tmp_path / "run")
    (tmp_path / "run" / "metrics.json").unlink()
    with pytest.raises(RunError, match="the run is not finished"):
        read_reported([tmp_path / "run"])


def test_questions_of_all_runs_are_put_together(folders: tuple[Path, Path], tmp_path: Path) -> None:
    first = EXAMPLES[1:3]
    run_evaluation(Told(BASE), first, tmp_path / "run", RunSettings("films test", "0" * 64, "1" * 64))
    assert [example.id for example in asked_by(read_reported([tmp_path / "run", folders[0]]))] == [
        "q2", "q3", "q1", "q4", "q5",
    ]  # fmt: skip


def test_runs_that_disagree_on_a_question_are_refused(folders: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(folders[0], tmp_path / "run")
    questions = tmp_path / "run" / "questions.jsonl"
    questions.write_bytes(questions.read_bytes().replace(b"Michael Mann", b"Mike Mann"))
    with pytest.raises(RunError, match=r"question 'q1' of .* differs in text or gold answers"):
        asked_by(read_reported([folders[0], tmp_path / "run"]))


def test_traces_are_read_one_at_a_time_in_any_order(folders: tuple[Path, Path], tmp_path: Path) -> None:
    with Traces(folders[0]) as traces:
        assert [len(traces.read(id).get("rounds", [])) for id in ("q3", "q1", "q5", "q9")] == [2, 2, 0, 0]
    with pytest.raises(RunError, match=r"no trace\.jsonl"):
        Traces(tmp_path)
