"""Tests of `byokg.evaluation.scoring`, with the scripted chat model."""

from __future__ import annotations

import pytest

from byokg.errors import LlmInvalidRequest
from byokg.evaluation.cases import Case
from byokg.evaluation.scoring import judge_cases, judge_profile, score_cases
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.model import LanguageModel

CASES = (
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
    verdicts = judge_cases(CASES, judge(*RULES), workers=workers, on_progress=told.append)
    assert verdicts.scores == {"a": 1.0, "b": 0.5, "c": 0.0, "d": 0.0}
    assert verdicts.unreadable == ("c",)
    assert told == [1, 2, 3]  # nothing predicted is not asked about


def test_verdicts_are_a_profile_beside_others_in_which_failed_questions_score_zero() -> None:
    [scores] = score_cases(CASES, [judge_profile(judge_cases(CASES, judge(*RULES)))])
    assert (scores.n, scores.failed) == (5, 1)
    assert scores.estimates["judged"].value == pytest.approx(1.5 / 5)


def test_a_judge_that_cannot_be_asked_is_an_error() -> None:
    with pytest.raises(LlmInvalidRequest):
        judge_cases(CASES, judge(RULES[0]))
