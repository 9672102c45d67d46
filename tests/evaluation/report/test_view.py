"""Tests of `byokg.evaluation.report.view`: which folders make a report, figures of runs, and their differences."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from byokg.errors import RunError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.records import Timing
from byokg.evaluation.report.view import asked_by, differences, read_reported, summarise
from byokg.evaluation.run_folder import GrowingLines, Run, read_trace_line, run_names
from byokg.evaluation.runner import RunSettings, run_evaluation
from byokg.types import Consumption, Spending
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
    traces = GrowingLines(folders[0] / "trace.jsonl")
    assert [len(read_trace_line(traces, id).get("rounds", [])) for id in ("q3", "q1", "q5", "q9")] == [2, 2, 0, 0]


def summary(*runs: Run, baseline: int = 0) -> dict[str, Any]:
    """Summarise runs and read the result back from JSON."""
    made = summarise(runs, asked_by(runs), baseline) | {"deltas": differences(runs, baseline)}
    found: dict[str, Any] = json.loads(json.dumps(made))
    return found


def test_the_leaderboard_repeats_the_metrics_of_the_runs(runs: list[Run]) -> None:
    found = summary(*runs)
    assert found["dataset"] == "films test"
    for run, shown in zip(runs, found["runs"], strict=True):
        assert run.metrics is not None
        assert shown["name"] == run.name
        assert (shown["n"], shown["failed"]) == (5, 1)
        assert shown["metrics"]["hit"]["value"] == run.metrics.overall.estimates["hit"].value == 0.6
        assert shown["by"]["type"].keys() == run.metrics.by_type.keys()
        assert shown["loss"] == dict(run.metrics.overall.loss)


def test_scores_that_differ_are_told_with_what_they_are_worth(runs: list[Run]) -> None:
    base, other = (run["by_score"] for run in summary(*runs)["runs"])
    # Scores 1, 1, 1 are right and 0.5 is wrong; the fifth question failed.
    assert base == {
        "points": [{"least": 1.0, "coverage": 0.6, "accuracy": 1.0}, {"least": 0.5, "coverage": 0.8, "accuracy": 0.75}],
        "auroc": 1.0,
        "calibration_error": 0.125,
    }
    assert other is None  # all scores are 1


def only(run: Run, questions: tuple[Example, ...]) -> Run:
    """Return a run that asked some of the questions."""
    return replace(run, questions=questions, predictions={one.id: run.predictions[one.id] for one in questions})


def test_runs_are_compared_on_each_question(runs: list[Run]) -> None:
    # q1 is lost and q3 won, so no metric of five questions moves, but the interval knows that questions did.
    [delta] = summary(*runs)["deltas"]
    assert (delta["run"], delta["n"]) == (1, 5)
    hit = delta["metrics"]["hit"]
    assert (hit["value"], hit["won"], hit["lost"], hit["p"], hit["test"]) == (0, 1, 1, 1, "McNemar")
    low, high = hit["ci95"]
    assert low < 0 < high
    assert delta["changed"] == [["pipeline.max_hops", "2", "3"]]


def test_the_baseline_may_be_any_run(runs: list[Run]) -> None:
    [delta] = summary(*runs, baseline=1)["deltas"]
    assert delta["run"] == 0
    assert delta["changed"] == [["pipeline.max_hops", "3", "2"]]


def test_only_common_questions_are_compared(runs: list[Run]) -> None:
    base, other = runs
    less = only(other, other.questions[:2])
    [delta] = summary(base, less)["deltas"]
    hit = delta["metrics"]["hit"]
    assert (delta["n"], hit["value"], hit["won"], hit["lost"]) == (2, -0.5, 0, 1)
    none = only(other, ())
    [delta] = summary(base, none)["deltas"]
    assert (delta["n"], delta["metrics"]) == (0, {})


def test_another_option_is_told_without_the_settings_that_come_with_it(runs: list[Run]) -> None:
    base, other = runs
    config = {"options": {"pipeline": "bold"}, "pipeline": {"max_hops": 3, "beam": 2}, "seed": 1}
    [delta] = summary(base, replace(other, config={**other.config, "config": config, "seed": 1}))["deltas"]
    assert delta["changed"] == [["pipeline", "told", "bold"], ["seed", "0", "1"]]


def test_the_list_of_questions_has_each_runs_outcome(runs: list[Run]) -> None:
    base, other = runs
    less = replace(only(other, other.questions[1:]), timings={})
    questions = summary(base, less)["questions"]
    assert questions["id"] == ["q1", "q2", "q3", "q4", "q5"]
    assert questions["hops"] == [1, 2, 1, None, 1]
    first, second = questions["runs"]
    assert (first["hit"], second["hit"]) == ([1, 1, 0, 1, 0], [None, 1, 1, 1, 0])
    assert first["f1"] == [1.0, 0.667, 0.0, 1.0, 0.0]
    assert second["seconds"] == [None] * 5
    assert (first["answers"][0], first["answers"][4], second["answers"][0]) == ("Michael Mann", "", None)
    assert questions["gold"][1] == "Ali, Thief"


def test_replayed_replies_count_as_if_they_had_been_asked_for(runs: list[Run]) -> None:
    asked, replayed = Consumption(1, 100, 10, seconds=0.5, usd=0.02), Consumption(1, 100, 10, seconds=1.5, usd=0.03)
    timing = Timing("q1", {"total": 2.0}, {"answer": Spending(asked, replayed)})
    [shown] = summary(replace(runs[0], timings={"q1": timing}))["runs"]
    assert shown["took"] == {
        "calls": 2, "tokens": 220, "usd": 0.05, "seconds": 3.5,
    }  # fmt: skip
    unpriced = Timing("q1", {"total": 2.0}, {"answer": Spending(replace(asked, unpriced=1))})
    [shown] = summary(replace(runs[0], timings={"q1": unpriced}))["runs"]
    assert shown["took"]["usd"] is None


def test_equal_runs_give_equal_bytes(runs: list[Run]) -> None:
    assert summary(*runs) == summary(*runs)
    with pytest.raises(IndexError):
        summary(*runs, baseline=7)
