"""Tests of `byokg.evaluation.linking_quality`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.evaluation.linking_quality import (
    LINKING_METRICS,
    NOTHING_LINKED,
    TOPIC_METRICS,
    LinkingOutcome,
    aggregate_linking,
    score_linking,
    score_topic,
)

IDS = st.sampled_from("abcdefgh")
CANDIDATES = st.lists(st.lists(IDS, unique=True, max_size=6), max_size=4)


def test_one_topic_in_second_place_of_one_mention() -> None:
    # Linked: a, b, c, d; only b is gold. First candidates: a, none of them gold.
    assert score_linking(["b"], [["a", "b", "c", "d"]]) == {
        "precision@1": 0.0,
        "recall@1": 0.0,
        "precision@3": 1 / 3,
        "recall@3": 1.0,
        "precision": 1 / 4,
        "recall": 1.0,
        "mrr": 1 / 2,
    }


def test_two_topics_of_two_mentions_one_of_them_too_far_down() -> None:
    # First candidates: a and x. a is gold. The first three: a, x, y, z. All: a, x, y, z, b.
    assert score_linking(["a", "b"], [["a"], ["x", "y", "z", "b"]]) == {
        "precision@1": 1 / 2,
        "recall@1": 1 / 2,
        "precision@3": 1 / 4,
        "recall@3": 1 / 2,
        "precision": 2 / 5,
        "recall": 1.0,
        "mrr": (1 + 1 / 4) / 2,
    }


def test_a_topic_counts_where_it_ranks_best_and_a_node_of_two_mentions_once() -> None:
    scores = score_linking(["a", "a"], [["x", "a"], ["a", "x"]])
    assert (scores["mrr"], scores["precision@1"], scores["precision"], scores["recall"]) == (1.0, 1 / 2, 1 / 2, 1.0)


def test_nothing_linked_scores_nothing() -> None:
    assert score_linking(["a"], []) == score_linking(["a"], [[], []]) == NOTHING_LINKED


def test_a_question_without_topics_cannot_be_scored() -> None:
    with pytest.raises(ValueError, match="without annotated"):
        score_linking([], [["a"]])
    with pytest.raises(ValueError, match="no questions"):
        aggregate_linking([])


@given(st.lists(IDS, min_size=1), CANDIDATES)
def test_scores_are_in_range_and_grow_with_k(topics: list[str], candidates: list[list[str]]) -> None:
    scores = score_linking(topics, candidates)
    assert all(0 <= value <= 1 for value in scores.values())
    assert scores["recall@1"] <= scores["recall@3"] <= scores["recall"]
    assert scores["recall@1"] <= scores["mrr"] <= scores["recall"]
    assert (scores["recall"] > 0) == (scores["precision"] > 0) == (scores["mrr"] > 0)
    each = [score_topic(topic, candidates) for topic in dict.fromkeys(topics)]
    assert scores["recall"] == pytest.approx(sum(one["recall"] for one in each) / len(each))
    # Neither the order of the topics nor that of the mentions matters.
    for turned in (score_linking(topics[::-1], candidates), score_linking(topics, candidates[::-1])):
        assert turned == pytest.approx(scores)


def test_failures_and_types_are_counted_in_the_order_given() -> None:
    right, wrong = dict.fromkeys(TOPIC_METRICS, 1.0), dict.fromkeys(TOPIC_METRICS, 0.0)
    perfect = dict.fromkeys(LINKING_METRICS, 1.0)
    metrics = aggregate_linking(
        [
            LinkingOutcome(perfect, (("exact name", right),)),
            LinkingOutcome(perfect, (("exact name", right), ("alias", right))),
            LinkingOutcome(NOTHING_LINKED, (("exact name", wrong), ("zzz", wrong)), failed=True),
        ],
        types=("alias", "exact name", "misspelt"),
        resamples=200,
    )
    assert (metrics.n, metrics.topics, metrics.failed) == (3, 5, 1)
    assert tuple(metrics.estimates) == LINKING_METRICS
    assert metrics.estimates["recall@3"].value == pytest.approx(2 / 3)
    low, high = metrics.estimates["recall@3"].ci95
    assert 0 <= low <= 2 / 3 <= high <= 1
    assert [(kind, one.n) for kind, one in metrics.by_type.items()] == [("alias", 1), ("exact name", 3), ("zzz", 1)]
    assert tuple(metrics.by_type["alias"].estimates) == TOPIC_METRICS
    assert metrics.by_type["exact name"].estimates["mrr"].value == pytest.approx(2 / 3)


def test_equal_outcomes_and_seed_give_equal_intervals() -> None:
    outcomes = [LinkingOutcome(score_linking(["a"], [["a"], ["b"]] if number % 3 else []), ()) for number in range(30)]
    assert aggregate_linking(outcomes, seed=1) == aggregate_linking(outcomes, seed=1)
