"""Tests of `byokg.evaluation.metrics`: scores, means, and loss attribution."""

from __future__ import annotations

from dataclasses import astuple
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.evaluation.metrics import (
    METRICS,
    STAGES,
    UNSTATED,
    ZERO,
    Estimate,
    Grounding,
    QuestionScores,
    Retrieved,
    Scores,
    Stage,
    aggregate,
    count_stages,
    match_gold,
    normalise,
    score,
    selective,
    selective_by_score,
    stage,
)
from byokg.types import Support
from tests.corpora import each_of

NAMES = st.lists(st.sampled_from(["Paris", "paris!", "The Rome", "Rome", "Oslo", "Lima", "!!!", ""]), max_size=6)
GOLD = st.lists(st.sampled_from(["Paris", "Rome", "the oslo", "Quito", "!!!"]), min_size=1, max_size=5)


@each_of(
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


@each_of(
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


@each_of(("one", "other"), [("C", "C++"), ("C", "C#"), ("Iran", "Tirana"), ("F", "F#"), ("a", "the")])
def test_different_answers_stay_different(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


@each_of(("text", "kept"), [("!!!", "!!!"), ("The The", "the the"), (" ? ", "?"), ("A", "a"), ("", "")])
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
    right = QuestionScores(Scores(1.0, 1.0, 1.0, 1.0, 1.0, 1.0))
    metrics = aggregate([right, right, right, QuestionScores(ZERO, failed=True)])
    assert (metrics.overall.n, metrics.overall.failed) == (4, 1)
    assert {metric: metrics.overall.estimates[metric].value for metric in METRICS} == dict.fromkeys(METRICS, 0.75)


def test_breakdowns_count_each_question_once() -> None:
    right, wrong = Scores(1.0, 1.0, 1.0, 1.0, 1.0, 1.0), ZERO
    metrics = aggregate(
        [
            QuestionScores(wrong, type="count", hops=10),
            QuestionScores(right, type="count", hops=2),
            QuestionScores(wrong, failed=True, type="", hops=2),
            QuestionScores(right, type="after", hops=None),
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
    metrics = aggregate([QuestionScores(ZERO), QuestionScores(ZERO)])
    assert metrics.by_type == {}
    assert metrics.by_hops == {}


def test_averaging_over_no_questions_is_refused() -> None:
    with pytest.raises(ValueError, match="no questions"):
        aggregate([])


def test_seven_right_answers_of_seven_do_not_prove_that_all_are() -> None:
    overall = aggregate([QuestionScores(Scores(1.0, 0.0, 0.5, 1.0, 0.75, 0.0))] * 7).overall
    # Wilson: z² / (n + z²) = 3.8415 / 10.8415
    assert overall.estimates["hit"].ci95 == pytest.approx((1 - 0.3543, 1.0), abs=1e-4)
    assert overall.estimates["hits@1"].ci95 == pytest.approx((0.0, 0.3543), abs=1e-4)
    assert overall.estimates["f1"] == Estimate(0.75, (0.75, 0.75))


def test_paraphrases_count_as_what_they_are() -> None:
    right, wrong = Scores(1.0, 1.0, 1.0, 1.0, 1.0, 1.0), ZERO
    outcomes = [
        QuestionScores(right if fact % 2 else wrong, cluster=f"fact {fact}") for fact in range(40) for _ in range(4)
    ]
    alone = aggregate([QuestionScores(each.scores) for each in outcomes]).overall
    together = aggregate(outcomes).overall
    assert (together.clusters, together.effective_n, alone.clusters, alone.effective_n) == (40, 40.0, None, None)
    widths = [each.estimates["hit"].ci95[1] - each.estimates["hit"].ci95[0] for each in (together, alone)]
    assert widths[0] / widths[1] == pytest.approx(2.0, rel=0.1)  # the square root of four questions a fact
    assert together.estimates["hit"].value == alone.estimates["hit"].value == 0.5


def test_linking_is_averaged_over_the_questions_that_have_topics_failed_ones_included() -> None:
    outcomes = [
        QuestionScores(ZERO, linked=1.0),
        QuestionScores(ZERO, linked=0.5),
        QuestionScores(ZERO, failed=True, linked=0.0),
        QuestionScores(ZERO),
    ]
    linked = aggregate(outcomes).overall.linked
    assert linked is not None
    assert (linked.n, linked.value) == (3, 0.5)
    assert 0 <= linked.ci95[0] <= 0.5 <= linked.ci95[1] <= 1
    assert aggregate([QuestionScores(ZERO)]).overall.linked is None


NOTHING = Retrieved((None,), cited=(False,))


@each_of(
    ("hit", "failed", "linked", "retrieved", "expected"),
    [
        (False, True, 0.0, None, "failed"),
        (False, False, 0.0, NOTHING, "not_linked"),
        (False, False, 0.5, NOTHING, "not_retrieved"),  # one of two topics is enough to go on
        (False, False, None, NOTHING, "not_retrieved"),  # granted topics cannot be lost
        (False, False, 1.0, Retrieved((None, 2), shown=(False, False), cited=(False, False)), "not_shown"),
        (False, False, 0.0, Retrieved((1,), shown=(False,), cited=(True,)), "not_shown"),  # found without topics
        (False, False, 1.0, Retrieved((1, 2), shown=(False, True), cited=(False, False)), "not_cited"),
        (False, False, 1.0, Retrieved((1, 2), shown=(False, True), cited=(False, True)), "not_answered"),
        (False, False, 1.0, Retrieved((1,), cited=(False,)), "not_cited"),  # no model, so all is shown
        (False, False, 1.0, Retrieved((1,)), "not_answered"),  # recorded before these were
        (True, False, 1.0, Retrieved((1,), shown=(False,)), "answered"),
        (True, False, 0.0, NOTHING, "answered"),  # the model knew
    ],
)
def test_a_question_is_lost_at_the_first_stage_that_fails(
    hit: bool, failed: bool, linked: float | None, retrieved: Retrieved | None, expected: Stage
) -> None:
    assert stage(hit, failed, linked, retrieved) == expected


@each_of(("right", "expected"), [(0.0, "not_retrieved"), (0.5, "answered"), (1.0, "answered")])
def test_a_question_with_any_right_answer_is_answered(right: float, expected: Stage) -> None:
    outcome = QuestionScores(Scores(float(right > 0), 0.0, right, right, right, 0.0), linked=1.0, retrieved=NOTHING)
    assert outcome.stage == expected


def test_all_stages_are_counted_in_order() -> None:
    counts = count_stages(["answered", "failed", "answered"])
    assert tuple(counts) == STAGES
    assert {stage: count for stage, count in counts.items() if count} == {"failed": 1, "answered": 2}


def resting(support: tuple[Support, ...], hits_at_1: float, cited: int = 0, right: int = 0) -> QuestionScores:
    return QuestionScores(Scores(hits_at_1, hits_at_1, 0, 0, 0, 0), grounding=Grounding(support, cited, right))


class TestGrounding:
    OUTCOMES = (
        resting(("supported", "found"), 1.0, 3, 1),
        resting(("found",), 1.0),
        resting(("unsupported",), 0.0, 1, 0),
        resting((), 0.0),  # abstained
    )

    def test_citations_are_averaged_over_questions_that_have_any(self) -> None:
        found = aggregate(self.OUTCOMES).overall.grounding
        assert {name: (one.value, one.n) for name, one in found.items()} == {
            "answered": (0.75, 4),
            "supported": (pytest.approx(1 / 3), 3),
            "citation_precision": (pytest.approx(1 / 6), 2),
            "citation_recall": (0.25, 2),
        }

    def test_a_question_without_a_record_of_support_counts_as_unanswered_beside_others(self) -> None:
        found = aggregate((*self.OUTCOMES, QuestionScores(Scores(0, 0, 0, 0, 0, 0)))).overall.grounding
        assert (found["answered"].value, found["answered"].n) == (0.6, 5) and found["supported"].n == 3

    def test_the_curve_says_what_is_right_when_only_so_much_is_answered(self) -> None:
        points = [(point.least, point.coverage, point.accuracy) for point in selective(self.OUTCOMES)]
        assert points == [("supported", 0.25, 1.0), ("found", 0.5, 1.0), ("unsupported", 0.75, pytest.approx(2 / 3))]

    def test_runs_that_do_not_say_what_answers_rest_on_have_neither(self) -> None:
        plain = [QuestionScores(Scores(1, 1, 1, 1, 1, 1))]
        assert aggregate(plain).overall.grounding == {} and selective(plain) == ()
        assert selective([resting(("unsupported",), 1.0)]) == ()


def scored(score: float | None, hits_at_1: float) -> QuestionScores:
    return QuestionScores(Scores(hits_at_1, hits_at_1, 0, 0, 0, 0), score=score)


class TestSelectiveByScore:
    def test_what_is_surest_is_answered_first_and_equal_scores_together(self) -> None:
        outcomes = [scored(0.5, 0), scored(0.9, 1), scored(0.5, 1), scored(0.8, 1), scored(None, 0)]
        points = [(point.least, point.coverage, point.accuracy) for point in selective_by_score(outcomes)]
        assert points == [(0.9, 0.2, 1.0), (0.8, 0.4, 1.0), (0.5, 0.8, 0.75)]  # the last abstained

    def test_scores_that_are_all_alike_order_nothing(self) -> None:
        assert selective_by_score([scored(1.0, 1), scored(1.0, 0), scored(None, 0)]) == ()

    def test_a_long_curve_keeps_both_ends(self) -> None:
        points = selective_by_score([scored(1 - place / 1000, 1) for place in range(1000)])
        assert len(points) == 100
        assert (points[0].coverage, points[-1].coverage) == (0.001, 1.0)


def test_answers_match_gold_ones_by_id_by_six_digits_and_by_key() -> None:
    assert match_gold(["Ann", "Bo"], ["Ann Abt", "Bea"], ["1", "2"], ["1", "3"]) == ["Ann Abt", "Bo"]
    assert match_gold(["2.4799999999999986"], ["2.48"]) == ["2.48"]
    assert match_gold(["112492.0", "7.50"], ["112492", "7.5"]) == ["112492", "7.5"]
    assert match_gold(["Order 10307"], ["10307"], ["o"], keys=["10307"]) == ["10307"]
    assert match_gold(["10307"], ["Order 10307"], ["Order:10307"], keys=["Order 10307"]) == ["Order 10307"]
    assert match_gold(["Order 10307"], ["Order:10307"], ["Order:10307"], keys=["10307"]) == ["Order:10307"]
    assert match_gold(["10307"], ["Order 10307"], [None]) == ["10307"]


def test_answers_match_by_nothing_else() -> None:
    assert match_gold(["Ann Abt"], ["Abt"], ["1"]) == ["Ann Abt"]
    assert match_gold(["Apollo 13"], ["13"], ["m"], keys=[None]) == ["Apollo 13"]
    assert match_gold(["2.5", "1000001"], ["2.48", "1000000"]) == ["2.5", "1000001"]
    assert match_gold(["2.48000001"], ["2.48"], ["a node"]) == ["2.48000001"]
    assert match_gold(["7.0"], ["007"]) == ["7.0"], "a code is no number"
    assert match_gold(["Ann"], ["Bo", "Bea"], ["1"], ["1"]) == ["Ann"], "ids that are not those of the gold answers"
