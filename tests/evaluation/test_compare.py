"""Tests of `byokg.evaluation.compare`, on run folders as evaluations write them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from byokg.errors import RunError
from byokg.evaluation.compare import compare_runs, differing
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.profiles import PROFILES
from byokg.evaluation.run_folder import METRICS_FILE, Run, read_runs
from byokg.evaluation.runner import RunSettings, run_evaluation
from byokg.types import Answer, AnswerItem, Question

EXAMPLES = (
    Example("a", "Where is Oslo?", ("Norway",), type="x"),
    Example("b", "Where is Rome?", ("Italy",), type="x"),
    Example("c", "Where is Lima?", ("Peru",), type="y"),
    Example("d", "Where is Perth?", ("Australia", "Scotland"), type="y"),
)
SETTINGS = RunSettings("towns test", "0" * 64, "1" * 64, config={"pipeline": {"rounds": 1}})


class Says:
    """Answers each question with what it is given for its id; raises where that is nothing."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self._answers = answers

    def run(self, question: Question) -> Answer:
        """Return the one answer."""
        return Answer(question.id, (AnswerItem(self._answers[question.id], None, 1.0),), ())


def recorded(folder: Path, answers: Mapping[str, str], settings: RunSettings = SETTINGS, count: int = 4) -> Run:
    """Run an evaluation and read its folder."""
    run_evaluation(Says(answers), EXAMPLES[:count], folder, settings)
    [run] = read_runs([folder])
    return run


@pytest.fixture
def before(tmp_path: Path) -> Run:
    """Return a run with a and d right; c fails."""
    return recorded(tmp_path / "before", {"a": "Norway", "b": "Spain", "d": "Australia"})


@pytest.fixture
def after(tmp_path: Path) -> Run:
    """Return a run with a, b and c right."""
    settings = replace(SETTINGS, config={"pipeline": {"rounds": 2}})
    return recorded(tmp_path / "after", {"a": "norway", "b": "Italy", "c": "Peru", "d": "Austria"}, settings)


def test_questions_won_and_lost_are_listed_and_counted(before: Run, after: Run) -> None:
    [found] = compare_runs([before, after], PROFILES["strict"], resamples=200)
    assert (found.metric, found.won, found.lost) == ("hit", ("b", "c"), ("d",))
    hit = found.differences["hit"]
    assert (hit.value, hit.won, hit.lost, hit.test, hit.p) == (0.25, 2, 1, "McNemar", 1.0)
    recall = found.differences["recall"]  # 1, 0, 0, 1/2 before; 1, 1, 1, 0 after
    assert recall.value == pytest.approx(0.75 - 0.375)
    assert recall.ci95[0] <= recall.value <= recall.ci95[1]


def test_types_are_compared_one_by_one(before: Run, after: Run) -> None:
    [found] = compare_runs([before, after], PROFILES["strict"], resamples=200)
    assert {name: (one.n, one.first, one.second, one.difference.value) for name, one in found.by_type.items()} == {
        "x": (2, 0.5, 1.0, 0.5),
        "y": (2, 0.5, 0.5, 0.0),
    }


def test_a_pooled_metric_is_pooled_in_each_type_too(before: Run, after: Run) -> None:
    [found] = compare_runs([before, after], PROFILES["subgraphrag"], "micro f1", resamples=10)
    for one in found.by_type.values():
        assert one.second - one.first == pytest.approx(one.difference.value)
    assert found.by_type["y"].first == pytest.approx(2 * 1 / (1 + 2 + 1))  # of d; c failed, and has one gold answer


def test_settings_that_differ_are_named(before: Run, after: Run) -> None:
    [found] = compare_runs([before, after], PROFILES["strict"], resamples=10)
    assert found.settings == {"config.pipeline.rounds": ("1", "2")}


def test_another_metric_and_profile_may_be_asked_for(before: Run, after: Run) -> None:
    [found] = compare_runs([before, after], PROFILES["rog"], "recall", resamples=10)
    # rog skips the question that failed in one run, so it is left out of both.
    assert (found.won, found.lost, found.left_out, len(found.scores[1].values)) == (("b",), ("d",), 1, 3)
    with pytest.raises(RunError, match="profile rog has no metric 'em'; it has accuracy, hit"):
        compare_runs([before, after], PROFILES["rog"], "em")


def test_a_profile_that_can_score_nothing_is_refused(before: Run, after: Run) -> None:
    with pytest.raises(RunError, match="stark can score none of the questions in both runs"):
        compare_runs([before, after], PROFILES["stark"])


def test_other_questions_are_refused_unless_forced(before: Run, tmp_path: Path) -> None:
    fewer = recorded(tmp_path / "fewer", {"a": "Norway", "b": "Italy", "c": "Peru"}, count=3)
    with pytest.raises(RunError, match=r"'before' and 'fewer' cannot be compared: .*3 in both, 1 and 0 in one alone"):
        compare_runs([before, fewer], PROFILES["strict"])
    [found] = compare_runs([before, fewer], PROFILES["strict"], force=True, resamples=10)
    assert len(found.scores[0].values) == 3
    assert (found.won, found.lost) == (("b", "c"), ())


def test_another_split_gold_answer_or_an_unfinished_run_is_objected_to(before: Run, after: Run) -> None:
    assert differing(before, after) == ()
    for dataset, reason in (
        ({"name": "towns dev", "checksum": "0" * 64}, "one asked 'towns test', the other 'towns dev'"),
        ({"name": "towns test", "checksum": "2" * 64}, "the question files of 'towns test' differ"),
    ):
        assert differing(before, replace(after, config={**after.config, "dataset": dataset})) == (reason,)
    assert differing(before, replace(after, metrics=None)) == (f"'after' is not finished: it has no {METRICS_FILE}",)
    changed = (replace(EXAMPLES[0], answers=("Sweden",)), *EXAMPLES[1:])
    assert differing(before, replace(after, questions=changed)) == (
        "the gold answers of 1 questions differ ('a' first)",
    )


def test_one_run_alone_is_refused(before: Run) -> None:
    with pytest.raises(RunError, match="give two run folders or more"):
        compare_runs([before], PROFILES["strict"])


def test_runs_that_share_no_question_are_refused(before: Run, after: Run) -> None:
    with pytest.raises(RunError, match="share no question"):
        compare_runs([before, replace(after, questions=(), predictions={})], PROFILES["strict"], force=True)


def test_a_folder_of_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no config.yaml"):
        read_runs([tmp_path])


def test_runs_are_called_by_what_tells_their_folders_apart(before: Run, tmp_path: Path) -> None:
    (tmp_path / "sweep").mkdir()
    shutil.copytree(tmp_path / "before", tmp_path / "sweep" / "before")
    names = [run.name for run in read_runs([tmp_path / "before", tmp_path / "sweep" / "before"])]
    assert names == [f"{tmp_path.name}/before", "sweep/before"]
    with pytest.raises(RunError, match="is given twice"):
        read_runs([tmp_path / "before", tmp_path / "sweep" / ".." / "before"])
