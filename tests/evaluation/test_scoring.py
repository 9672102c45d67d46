"""Tests of `byokg.evaluation.compare`, the judge included."""

from __future__ import annotations

import numpy as np
import pytest

from byokg.errors import LlmInvalidRequest
from byokg.evaluation.cases import Case
from byokg.evaluation.compare import judge_cases, judge_profile, score_cases
from byokg.evaluation.metrics import QuestionScores, Scores, aggregate
from byokg.evaluation.profiles import PROFILES, select_profiles
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.model import LanguageModel

CASES = (
    Case("a", ("Oslo",), ("Oslo",), type="x"),
    Case("b", ("Rome", "Lima"), ("Rome", "Perth"), type="y"),
    Case("c", ("Lima",), status="failed", type="y"),
    Case("d", ("Quito",), ("Perth",), answer_ids=("p",), gold_ids=("q",), type="x"),
)


def test_a_question_without_a_prediction_scores_zero_unless_the_publication_skips_it() -> None:
    strict, rog = score_cases(CASES, select_profiles(["strict", "rog"]))
    assert (strict.n, strict.skipped, strict.failed) == (4, 0, 1)
    assert (rog.n, rog.skipped, rog.failed) == (3, 1, 1)
    assert strict.estimates["hit"].value == 2 / 4
    assert rog.estimates["hit"].value == pytest.approx(2 / 3)


def test_questions_that_lack_what_a_profile_compares_are_counted_apart() -> None:
    [stark] = score_cases(CASES, select_profiles(["stark"]))
    assert (stark.n, stark.unscorable) == (1, 3)
    assert stark.estimates["mrr"].value == 0.0


def test_a_profile_that_can_score_nothing_has_no_figures() -> None:
    [stark] = score_cases(CASES[:2], [PROFILES["stark"]])
    assert (stark.n, stark.unscorable, dict(stark.estimates)) == (0, 2, {})


def test_micro_f1_pools_the_answers_of_all_questions() -> None:
    # Right 1 + 1 + 0 of said 1 + 2 + 1 and gold 1 + 2 + 1, and 1 more gold of the failed question: 2 · 2 / (4 + 5).
    [scores] = score_cases(CASES, select_profiles(["subgraphrag"]))
    assert scores.estimates["micro f1"].value == pytest.approx(4 / 9)
    assert scores.estimates["f1"].value == pytest.approx((1 + 0.5 + 0 + 0) / 4)


def test_groups_count_failed_questions() -> None:
    [scores] = score_cases(CASES, select_profiles(["strict"]))
    assert {group: (some.n, some.figures["hit"]) for group, some in scores.groups.items()} == {
        "x": (2, 0.5),
        "y": (2, 0.5),
    }


def test_the_strict_figures_and_intervals_are_those_of_a_run() -> None:
    cases = [Case(str(number), ("Oslo",), ("Oslo",) if number % 3 else ("Rome",)) for number in range(40)]
    [scores] = score_cases(cases, select_profiles(["strict"]), seed=4)
    right, wrong = Scores(1.0, 1.0, 1.0, 1.0, 1.0, 1.0), Scores(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    overall = aggregate([QuestionScores(right if number % 3 else wrong) for number in range(40)], seed=4).overall
    for name, estimate in overall.estimates.items():
        assert scores.estimates[name].value == pytest.approx(estimate.value)
        assert scores.estimates[name].ci95 == pytest.approx(estimate.ci95)


def test_scoring_together_or_alone_gives_the_same() -> None:
    together = score_cases(CASES, select_profiles(["all"]), seed=1)
    for scores in together:
        [alone] = score_cases(CASES, [scores.profile], seed=1)
        assert np.array_equal(alone.values, scores.values)
        for name, estimate in scores.estimates.items():
            assert alone.estimates[name].ci95 == pytest.approx(estimate.ci95)


def test_scoring_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no questions to score"):
        score_cases([], select_profiles(["strict"]))


JUDGED = (
    Case("a", ("Oslo",), ("It is Oslo",), question="Capital of Norway?"),
    Case("b", ("1", "2"), ("1",), question="Which?", rows=(("one", 1), ("two", None))),
    Case("c", ("Rome",), ("Rome",), question="Capital of Italy?"),
    Case("d", ("Lima",), (), question="Capital of Peru?"),
    Case("e", ("Bern",), status="failed", question="Capital of Switzerland?"),
)
RULES = (
    Rule("<reason>\nright\n</reason>\n<score>\n1\n</score>", contains=("It is Oslo", "Capital of Norway?")),
    Rule("<score>0.5</score>", contains=("one | 1\ntwo | null", "Which?")),
    Rule("I would rather not.", contains=("Italy",)),
)


def judge(*rules: Rule) -> LanguageModel:
    """Return a judge that follows rules."""
    return LanguageModel(ScriptedChatModel(rules=rules))


@pytest.mark.parametrize("workers", [1, 3])
def test_answers_are_judged_against_gold_answers_or_the_rows_of_the_gold_query(workers: int) -> None:
    told: list[int] = []
    verdicts = judge_cases(JUDGED, judge(*RULES), workers=workers, on_progress=told.append)
    assert verdicts.scores == {"a": 1.0, "b": 0.5, "c": 0.0, "d": 0.0}
    assert verdicts.unreadable == ("c",)
    assert told == [1, 2, 3]  # nothing predicted is not asked about


def test_verdicts_are_a_profile_beside_others_in_which_failed_questions_score_zero() -> None:
    [scores] = score_cases(JUDGED, [judge_profile(judge_cases(JUDGED, judge(*RULES)))])
    assert (scores.n, scores.failed) == (5, 1)
    assert scores.estimates["judged"].value == pytest.approx(1.5 / 5)


def test_a_judge_that_cannot_be_asked_is_an_error() -> None:
    with pytest.raises(LlmInvalidRequest):
        judge_cases(JUDGED, judge(RULES[0]))
