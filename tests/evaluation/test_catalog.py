"""What every metric profile promises: ranges, and how scores answer to changed predictions."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import ConfigError
from byokg.evaluation.cases import Case
from byokg.evaluation.profiles import PROFILES, Profile, chosen

NAMES = ("Paris", "Rome", "Oslo", "Lima", "Quito", "Perth", "Iran", "Tirana")
WRONG = "Xyzzy"
"""Has no letters in a row in common with any name, so no profile can match it."""

PUBLISHED_FOR_NOTHING = {("webqsp-official", "precision")}
"""Figures that are 1 where nothing is predicted, as published."""

every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)


@st.composite
def cases(draw: st.DrawFn, least: int = 0) -> Case:
    """Return a case that every profile can score: ids, rows and drafts are there."""
    gold = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    return made(draw(st.lists(st.sampled_from(NAMES), min_size=least, max_size=6, unique=True)), gold)


def made(answers: list[str], gold: list[str]) -> Case:
    """Return a case whose ids are the names with a mark."""
    return Case(
        id="q",
        gold=tuple(gold),
        answers=tuple(answers),
        answer_ids=tuple(f"m/{name}" for name in answers),
        gold_ids=tuple(f"m/{name}" for name in gold),
        rows=tuple((name,) for name in gold),
    )


def figures(profile: Profile, case: Case) -> dict[str, float]:
    """Return a case's figures by metric."""
    return dict(zip((metric.name for metric in profile.metrics), profile.score(case), strict=True))


@every_profile
@settings(max_examples=30)
@given(case=cases())
def test_every_figure_is_in_its_range(profile: Profile, case: Case) -> None:
    assert profile.scorable(case)
    for metric, value in zip(profile.metrics, profile.score(case), strict=True):
        assert 0.0 <= value <= metric.top, metric.name
    assert profile.weigh(case) > 0


@every_profile
@settings(max_examples=30)
@given(case=cases(), order=st.randoms(use_true_random=False))
def test_the_order_of_gold_answers_does_not_matter(profile: Profile, case: Case, order: Random) -> None:
    gold = sorted(case.gold, key=lambda _: order.random())
    assert figures(profile, made(list(case.answers), gold)) == pytest.approx(figures(profile, case))


@every_profile
@settings(max_examples=30)
@given(case=cases(least=1), order=st.randoms(use_true_random=False))
def test_the_order_of_answers_matters_to_rankings_and_to_one_reply_alone(
    profile: Profile, case: Case, order: Random
) -> None:
    answers = sorted(case.answers, key=lambda _: order.random())
    before, after = figures(profile, case), figures(profile, made(answers, list(case.gold)))
    ranked = {"hits@1", "hits@5", "hits@10", "recall@20", "mrr", "h@2"}
    for name in before.keys() - ranked:
        assert after[name] == pytest.approx(before[name]), name


@every_profile
@settings(max_examples=30)
@given(case=cases(least=1))
def test_a_wrong_answer_added_raises_nothing_and_lowers_no_recall(profile: Profile, case: Case) -> None:
    before, after = figures(profile, case), figures(profile, made([*case.answers, WRONG], list(case.gold)))
    for name, value in after.items():
        assert value <= before[name] + 1e-12, name
    for name in ("recall", "accuracy", "recall@20", "hits@1"):
        assert after.get(name) == pytest.approx(before.get(name))


@every_profile
@settings(max_examples=30)
@given(case=cases(least=1))
def test_a_right_answer_added_lowers_no_recall(profile: Profile, case: Case) -> None:
    more = list(dict.fromkeys((*case.answers, case.gold[0])))
    before, after = figures(profile, case), figures(profile, made(more, list(case.gold)))
    for name in ("recall", "accuracy", "recall@20", "hits@10", "mrr"):
        if name in before:
            assert after[name] >= before[name] - 1e-12, name


@every_profile
@settings(max_examples=30)
@given(case=cases(least=1))
def test_an_answer_said_twice_counts_once_but_where_lines_are_counted(profile: Profile, case: Case) -> None:
    by_lines = profile.name in ("rog", "gnn-rag", "gcr", "tog")
    before, after = figures(profile, case), figures(profile, made([*case.answers, case.answers[-1]], list(case.gold)))
    for name in ("recall", "hit") if by_lines else before:
        if name in before and profile.name != "tog":
            assert after[name] == pytest.approx(before[name]), name


@every_profile
@settings(max_examples=30)
@given(case=cases())
def test_capital_letters_do_not_matter(profile: Profile, case: Case) -> None:
    loud = replace(case, answers=tuple(name.upper() for name in case.answers))
    assert figures(profile, loud) == pytest.approx(figures(profile, case))


@every_profile
@settings(max_examples=30)
@given(case=cases())
def test_nothing_predicted_is_worth_nothing(profile: Profile, case: Case) -> None:
    for name, value in figures(profile, made([], list(case.gold))).items():
        assert value == float((profile.name, name) in PUBLISHED_FOR_NOTHING), name


@every_profile
@settings(max_examples=30)
@given(gold=st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
def test_the_gold_answers_themselves_score_best(profile: Profile, gold: list[str]) -> None:
    ranked = {"precision", "f1"} if profile.name in ("rog", "gnn-rag") else set()  # "Tirana" holds "Iran" as well
    for name, value in figures(profile, made(gold, gold)).items():
        assert value >= 1.0 if name in ranked else value == 1.0, name


def test_all_stands_for_every_profile_once() -> None:
    assert [profile.name for profile in chosen(["rog", "all"])] == list(PROFILES)
    assert [profile.name for profile in chosen(["rog", "strict", "rog"])] == ["rog", "strict"]


def test_an_unknown_profile_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"--profile rogue is not known; use all, or some of strict, byokg, rog"):
        chosen(["rogue"])
