"""Tests of `byokg.evaluation.metrics`."""

from __future__ import annotations

from dataclasses import astuple
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.evaluation.metrics import (
    METRICS,
    UNSTATED,
    ZERO,
    Estimate,
    Outcome,
    Scores,
    aggregate,
    bootstrap,
    normalise,
    score,
)

NAMES = st.lists(st.sampled_from(["Paris", "paris!", "The Rome", "Rome", "Oslo", "Lima", "!!!", ""]), max_size=6)
GOLD = st.lists(st.sampled_from(["Paris", "Rome", "the oslo", "Quito", "!!!"]), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Beatles", "beatles"),
        ("  Once  Upon a Time\tin the West ", "once upon time in west"),
        ("O’Hara", "ohara"),
        ("Spider-Man", "spiderman"),
        ("Barack_Obama", "barack obama"),
        ("«München»", "münchen"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("ﬁlm", "film"),
        ("Cafe\u0301", "café"),
        ("Saint\u00adDenis", "saintdenis"),
        ("Xi´an", "xian"),
        ("हिन्दी।", "हिन्दी"),
        ("東京、", "東京"),
        ("١٢٣", "١٢٣"),
    ],
)
def test_spelling_that_does_not_tell_answers_apart_is_dropped(text: str, normal: str) -> None:
    assert normalise(text) == normal


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("3.5", "3.5"),
        ("1,000,000", "1000000"),
        ("1’000", "1000"),
        ("1,5", "1,5"),
        ("-5", "-5"),
        ("−5", "-5"),
        ("1990–1995", "1990-1995"),
        ("2001-09-30", "2001-09-30"),
        ("3.", "3"),
        ("50%", "50%"),
    ],
)
def test_numbers_keep_what_tells_them_apart(text: str, normal: str) -> None:
    assert normalise(text) == normal


@pytest.mark.parametrize(("one", "other"), [("C", "C++"), ("C", "C#"), ("Iran", "Tirana"), ("F", "F#"), ("a", "the")])
def test_different_answers_stay_different(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


@pytest.mark.parametrize(("text", "kept"), [("!!!", "!!!"), ("The The", "the the"), (" ? ", "?"), ("A", "a"), ("", "")])
def test_a_text_that_would_vanish_only_loses_case_and_outer_space(text: str, kept: str) -> None:
    assert normalise(text) == kept


@given(st.text())
def test_normalising_again_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(st.text())
def test_only_blank_text_normalises_to_nothing(text: str) -> None:
    assert bool(normalise(text)) == bool(text.strip())


def test_scores_of_one_question() -> None:
    # Predicted, as a set: rome, paris, oslo. Gold: paris, oslo, lima, quito. Right: two of three and of four.
    scores = score(["Rome", "Paris", "PARIS.", "Oslo"], ["Paris", "Oslo", "Lima", "Quito"])
    assert scores == Scores(hit=1.0, hits_at_1=0.0, precision=2 / 3, recall=2 / 4, f1=4 / 7, em=0.0)


def test_a_perfect_answer_scores_one_everywhere() -> None:
    assert score(["the Rome", "Paris"], ["Paris", "Rome", "rome"]) == Scores(1.0, 1.0, 1.0, 1.0, 1.0, 1.0)


def test_no_answer_scores_zero_everywhere() -> None:
    assert score([], ["Paris"]) == ZERO


def test_a_part_of_an_answer_is_no_answer() -> None:
    assert score(["Tirana"], ["Iran"]) == ZERO
    assert score(["The capital is Paris"], ["Paris"]) == ZERO


def test_a_question_without_gold_answers_is_refused() -> None:
    with pytest.raises(ValueError, match="without gold answers"):
        score(["Paris"], [])


@given(NAMES, GOLD)
def test_every_score_is_between_0_and_1(answers: list[str], gold: list[str]) -> None:
    assert all(0.0 <= value <= 1.0 for value in astuple(score(answers, gold)))


@given(NAMES, GOLD, st.randoms(use_true_random=False))
def test_order_matters_to_the_first_answer_only(answers: list[str], gold: list[str], order: Random) -> None:
    shuffled = sorted(answers, key=lambda _: order.random())
    one, other = astuple(score(answers, gold)), astuple(score(shuffled, gold[::-1]))
    assert one[:1] + one[2:] == other[:1] + other[2:]


@given(NAMES, GOLD)
def test_a_wrong_answer_added_raises_nothing_and_costs_precision(answers: list[str], gold: list[str]) -> None:
    before, after = score(answers, gold), score([*answers, "Atlantis"], gold)
    assert all(new <= old for new, old in zip(astuple(after), astuple(before), strict=True))
    assert after.precision < before.precision or before.precision == 0.0
    assert after.recall == before.recall


@given(NAMES, GOLD)
def test_a_right_answer_added_lowers_nothing(answers: list[str], gold: list[str]) -> None:
    before, after = score(answers, gold), score([*answers, gold[0]], gold)
    assert after.recall >= before.recall
    assert after.precision >= before.precision
    assert after.f1 >= before.f1
    assert after.hit == 1.0


@given(NAMES, GOLD)
def test_exact_match_means_that_precision_and_recall_are_one(answers: list[str], gold: list[str]) -> None:
    scores = score(answers, gold)
    assert (scores.em == 1.0) == (scores.precision == 1.0 and scores.recall == 1.0)
    assert (scores.hit == 1.0) == (scores.f1 > 0.0)


def test_failed_questions_count_in_every_denominator() -> None:
    right = Outcome(Scores(1.0, 1.0, 1.0, 1.0, 1.0, 1.0))
    metrics = aggregate([right, right, right, Outcome(ZERO, failed=True)])
    assert (metrics.overall.n, metrics.overall.failed) == (4, 1)
    assert {metric: metrics.overall.estimates[metric].value for metric in METRICS} == dict.fromkeys(METRICS, 0.75)


def test_breakdowns_count_each_question_once() -> None:
    right, wrong = Scores(1.0, 1.0, 1.0, 1.0, 1.0, 1.0), ZERO
    metrics = aggregate(
        [
            Outcome(right, type="count", hops=2),
            Outcome(wrong, type="count", hops=10),
            Outcome(wrong, failed=True, type="", hops=2),
            Outcome(right, type="after", hops=None),
        ]
    )
    assert [(key, s.n, s.failed, s.estimates["em"].value) for key, s in metrics.by_type.items()] == [
        (UNSTATED, 1, 1, 0.0),
        ("after", 1, 0, 1.0),
        ("count", 2, 0, 0.5),
    ]
    assert [(key, s.n, s.estimates["em"].value) for key, s in metrics.by_hops.items()] == [
        ("2", 2, 0.5),
        ("10", 1, 0.0),
        (UNSTATED, 1, 1.0),
    ]


def test_there_is_no_breakdown_where_no_question_states_a_type() -> None:
    metrics = aggregate([Outcome(ZERO), Outcome(ZERO)])
    assert metrics.by_type == {}
    assert metrics.by_hops == {}


def test_averaging_over_no_questions_is_refused() -> None:
    with pytest.raises(ValueError, match="no questions"):
        aggregate([])


def test_equal_outcomes_have_an_interval_of_no_width() -> None:
    overall = aggregate([Outcome(Scores(1.0, 0.0, 0.5, 1.0, 0.75, 0.0))] * 7).overall
    assert overall.estimates["hit"] == Estimate(1.0, (1.0, 1.0))
    assert overall.estimates["hits@1"] == Estimate(0.0, (0.0, 0.0))
    assert overall.estimates["f1"] == Estimate(0.75, (0.75, 0.75))


def test_the_interval_is_as_wide_as_theory_says() -> None:
    # The mean of 400 fair coins has a standard error of sqrt(0.25 / 400) = 0.025, so the interval is 0.5 ± 0.049.
    coins = np.repeat([[0.0], [1.0]], 200, axis=0)
    low, high = bootstrap(coins, seed=3, resamples=4000)
    assert low[0] == pytest.approx(0.451, abs=0.005)
    assert high[0] == pytest.approx(0.549, abs=0.005)


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for seed in range(200):
        low, high = bootstrap((generator.random((200, 1)) < 0.3).astype(np.float64), seed, resamples=300)
        covered += bool(low[0] <= 0.3 <= high[0])
    assert 180 <= covered <= 199


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=2), min_size=1, max_size=20),
    st.integers(0, 2**32),
)
def test_the_interval_lies_within_the_scores(rows: list[list[float]], seed: int) -> None:
    table = np.array(rows)
    low, high = bootstrap(table, seed, resamples=50)
    assert (low <= high).all()
    assert (low >= table.min(axis=0) - 1e-12).all()
    assert (high <= table.max(axis=0) + 1e-12).all()
    assert (high <= 1.0).all()


def test_the_bootstrap_depends_on_its_seed_alone() -> None:
    table = np.random.default_rng(1).random((50, 6))
    assert np.array_equal(bootstrap(table, seed=5), bootstrap(table, seed=5))
    assert not np.array_equal(bootstrap(table, seed=5), bootstrap(table, seed=6))


def test_linking_is_averaged_over_the_questions_that_have_topics_failed_ones_included() -> None:
    outcomes = [
        Outcome(ZERO, linked=1.0),
        Outcome(ZERO, linked=0.5),
        Outcome(ZERO, failed=True, linked=0.0),
        Outcome(ZERO),
    ]
    linked = aggregate(outcomes).overall.linked
    assert linked is not None
    assert (linked.n, linked.value) == (3, 0.5)
    assert 0 <= linked.ci95[0] <= 0.5 <= linked.ci95[1] <= 1
    assert aggregate([Outcome(ZERO)]).overall.linked is None
