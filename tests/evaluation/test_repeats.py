"""Tests of `byokg.evaluation.compare`, and of runs that ask each question several times."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest

from byokg.evaluation.cases import Case
from byokg.evaluation.comparability import comparison_key, find_differences, run_conditions
from byokg.evaluation.compare import compare_runs, majority, pass_at, repeat, repeat_figures, score_cases
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.profiles import PROFILES
from byokg.evaluation.report.comparison_tables import comparison_json, paper_table, written
from byokg.evaluation.run_folder import Run, read_runs
from byokg.evaluation.runner import RunSettings, Shard, merge_runs, run_evaluation
from byokg.llm.retry import current_sample
from byokg.types import Answer, AnswerItem, Question

STRICT = PROFILES["strict"]
EXAMPLES = (
    Example("a", "Where is Oslo?", ("Norway",)),
    Example("b", "Where is Rome?", ("Italy",)),
    Example("c", "Where is Lima?", ("Peru",)),
    Example("d", "Where is Bern?", ("Switzerland",)),
)
REPLIES = {
    "a": ["Norway", "Norway", "Norway"],
    "b": ["Spain", "Italy", "Italy"],
    "c": ["Chile", "Chile", "Peru"],
    "d": ["Austria", "Austria", "Austria"],
}
"""By question, what is replied the first, second and third time: 3, 2, 1 and 0 are right."""


class Says:
    """Replies as the list says, by the number of the sample."""

    def run(self, question: Question) -> Answer:
        """Return the reply of the sample that is asked for."""
        assert current_sample() == question.repeat
        replies = REPLIES[question.id.partition("#")[0]]
        return Answer(question.id, (AnswerItem(replies[question.repeat], None, 1.0),), ())


def settings(repeats: int, shard: Shard | None = None) -> RunSettings:
    return RunSettings("towns test", "0" * 64, "1" * 64, shard=shard, config={"repeats": repeats})


def asked(folder: Path, times: int) -> Run:
    run_evaluation(Says(), repeat(EXAMPLES, times), folder, settings(times), workers=2)
    [run] = read_runs([folder])
    return run


def case(answers: Sequence[str], number: int = 0) -> Case:
    return Case(f"q#{number + 1}", ("Rome",), tuple(answers), first_id="q")


def test_a_question_is_asked_under_an_id_of_its_own_each_time() -> None:
    assert [one.id for one in repeat(EXAMPLES[:2], 3)] == ["a", "a#2", "a#3", "b", "b#2", "b#3"]
    assert {one.first_id for one in repeat(EXAMPLES[:1], 12)} == {"a"}
    assert Example("x#2", "An id that ends like a repeat's", ("y",)).first_id == "x#2"


def test_pass_at_k_is_the_share_of_draws_that_hold_a_right_reply() -> None:
    for n in range(1, 7):
        for right in range(n + 1):
            for k in range(1, n + 1):
                draws = list(combinations(range(n), k))
                assert pass_at(k, n, right) == pytest.approx(sum(min(draw) < right for draw in draws) / len(draws))


def test_the_majority_is_of_first_answers_and_keeps_what_half_of_the_replies_hold() -> None:
    cases = [case(["rome", "Turin"]), case(["Paris", "Turin"]), case(["The Rome"]), case([]), case(["Oslo", "Paris"])]
    assert majority(cases).answers == ("rome", "Turin", "Paris")
    assert majority([case(["Oslo"]), case(["Paris"])]).answers == ("Oslo", "Paris")
    assert majority([case([]), case([])]).answers == ()


def test_the_figures_of_repeats_are_those_worked_out_by_hand(tmp_path: Path) -> None:
    found = repeat_figures(asked(tmp_path / "run", 3).cases, STRICT)
    assert found is not None
    assert (found.questions, found.repeats, found.metric) == (4, 3, "hits@1")
    assert {k: one.value for k, one in found.pass_at.items()} == {
        1: pytest.approx(6 / 12),
        2: pytest.approx((1 + 1 + 2 / 3 + 0) / 4),
        3: pytest.approx(3 / 4),
    }
    assert found.majority["hits@1"].value == 0.5
    # Within b and c the variance is 1/3; the questions' means 1, 2/3, 1/3, 0 have the variance 5/27.
    within = (1 / 3 + 1 / 3) / 4
    assert found.within == pytest.approx(within**0.5)
    assert found.between == pytest.approx((5 / 27 - within / 3) ** 0.5)
    assert found.one_round == pytest.approx((within / 4) ** 0.5)
    assert (found.always, found.never) == (0.25, 0.25)
    assert repeat_figures(asked(tmp_path / "once", 1).cases, STRICT) is None


def test_intervals_draw_a_question_with_its_repeats(tmp_path: Path) -> None:
    run = asked(tmp_path / "run", 3)
    assert run.metrics is not None
    overall = run.metrics.overall
    assert (overall.n, overall.clusters, overall.effective_n) == (12, 4, 4.0)
    [scored] = score_cases(run.cases, [STRICT])
    assert scored.estimates["hits@1"].value == overall.estimates["hits@1"].value == 0.5
    low, high = scored.estimates["hits@1"].ci95
    assert high - low > 0.5, "twelve questions apart would give a narrower one"


def test_the_record_counts_questions_once_and_says_how_often_they_are_asked(tmp_path: Path) -> None:
    once, thrice = asked(tmp_path / "once", 1), asked(tmp_path / "thrice", 3)
    assert thrice.config["questions"] == {**once.config["questions"], "repeats": 3}
    assert comparison_key(once, "strict") == comparison_key(thrice, "strict")
    assert find_differences(once, thrice) == ()
    assert run_conditions(thrice).n == 4


def test_runs_are_compared_by_question_however_often_each_asks(tmp_path: Path) -> None:
    once, thrice = asked(tmp_path / "once", 1), asked(tmp_path / "thrice", 3)
    [one] = compare_runs([once, thrice], STRICT)
    assert (one.n, one.won, one.lost) == (4, ("b", "c"), ())
    difference = one.differences["hits@1"]
    assert difference.value == pytest.approx(0.25)
    assert difference.test == "permutation"
    assert comparison_json(one)["repeats"] == [1, 3]
    [same] = compare_runs([thrice, asked(tmp_path / "again", 3)], STRICT)
    assert (same.n, same.differences["hits@1"].value, same.differences["hits@1"].p) == (4, 0.0, 1.0)


def test_a_folder_grows_to_more_repeats_and_comes_out_the_same(tmp_path: Path) -> None:
    asked(tmp_path / "grown", 1)
    asked(tmp_path / "grown", 3)
    whole = asked(tmp_path / "whole", 3)
    for name in ("predictions.jsonl", "trace.jsonl", "questions.jsonl", "metrics.json"):
        assert (tmp_path / "grown" / name).read_bytes() == (whole.folder / name).read_bytes()


def test_shards_of_repeats_are_merged_to_the_same_run(tmp_path: Path) -> None:
    whole = asked(tmp_path / "whole", 3)
    for number in (1, 2):
        shard = Shard(number, 2)
        examples = repeat(shard.of(EXAMPLES[:3]), 3)
        run_evaluation(Says(), examples, tmp_path / str(number), settings(3, shard))
    merge_runs([tmp_path / "1", tmp_path / "2"], tmp_path / "merged")
    lines = (whole.folder / "predictions.jsonl").read_bytes().splitlines()
    assert (tmp_path / "merged" / "predictions.jsonl").read_bytes().splitlines() == lines[:9]


def test_the_table_for_papers_has_pass_at_k_and_the_majority(tmp_path: Path) -> None:
    runs = [asked(tmp_path / "once", 1), asked(tmp_path / "thrice", 3)]
    made = paper_table(runs, STRICT)
    assert [column for column in made.columns if column not in made.metrics][:2] == ["pass@3", "majority"]
    text = written(made, "markdown")
    assert "| pass@3 | Majority |" in text and "| 75.0 | 50.0 |" in text
    assert "asked several times: thrice 3 times" in text
    assert "\\times" not in written(made, "latex")
    shutil.rmtree(runs[0].folder)
