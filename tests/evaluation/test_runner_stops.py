"""Tests of `byokg.evaluation.runner` where a run stops on purpose: its budget is spent, or it waits for replies."""

from __future__ import annotations

from pathlib import Path

import pytest

from byokg.errors import BudgetExceeded, ReplyPending, RunIncomplete
from byokg.evaluation.records import PREDICTIONS, TRACE, read_predictions
from byokg.evaluation.run_folder import METRICS_FILE
from byokg.evaluation.runner import run_evaluation
from byokg.types import Answer, Question
from tests.evaluation.scripted import SETTINGS, Scripted, examples


class Waiting(Scripted):
    """A scripted pipeline that gets no reply for odd questions until it is told otherwise."""

    waits = True

    def run(self, question: Question) -> Answer:
        """Answer, or wait."""
        if self.waits and int(question.id[1:]) % 2:
            raise ReplyPending("m", question.id, "answer", "0" * 64)
        return super().run(question)


class Spending(Scripted):
    """A scripted pipeline whose budget is spent after some questions."""

    def __init__(self, afford: int) -> None:
        super().__init__()
        self.afford = afford

    def run(self, question: Question) -> Answer:
        """Answer, or stop."""
        if self.afford == 0:
            raise BudgetExceeded("m", "budget.max_calls=3 is spent")
        self.afford -= 1
        return super().run(question)


@pytest.mark.parametrize("workers", [1, 4])
def test_questions_that_wait_are_neither_recorded_nor_failed(tmp_path: Path, workers: int) -> None:
    pipeline = Waiting()
    with pytest.raises(RunIncomplete, match="5 of 10 questions are answered; 5 wait for replies") as stopped:
        run_evaluation(pipeline, examples(10), tmp_path / "run", SETTINGS, workers)
    assert (stopped.value.answered, stopped.value.total, stopped.value.pending) == (5, 10, 5)
    assert {prediction.id for prediction in read_predictions(tmp_path / "run")} == {"q0", "q2", "q4", "q6", "q8"}
    assert not (tmp_path / "run" / METRICS_FILE).exists()


def test_a_run_that_waited_ends_as_if_it_had_not(tmp_path: Path) -> None:
    pipeline = Waiting()
    with pytest.raises(RunIncomplete):
        run_evaluation(pipeline, examples(10), tmp_path / "waited", SETTINGS)
    pipeline.waits = False
    run_evaluation(pipeline, examples(10), tmp_path / "waited", SETTINGS)
    run_evaluation(Scripted(), examples(10), tmp_path / "straight", SETTINGS)
    for name in (PREDICTIONS, TRACE, METRICS_FILE):
        assert (tmp_path / "waited" / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()


@pytest.mark.parametrize("workers", [1, 3])
def test_a_spent_budget_stops_the_run_and_keeps_what_was_answered(tmp_path: Path, workers: int) -> None:
    with pytest.raises(RunIncomplete, match=r"3 of 10 questions are answered; m: .*=3 is spent"):
        run_evaluation(Spending(3), examples(10), tmp_path / "run", SETTINGS, workers)
    assert len(list(read_predictions(tmp_path / "run"))) == 3
    metrics = run_evaluation(Spending(99), examples(10), tmp_path / "run", SETTINGS, workers)
    assert metrics.overall.n == 10
