"""Tests of `byokg.evaluation.linking_quality`: gold mentions, scores, and whole evaluations."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.errors import ConfigError, RunError, StoreUnavailable
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.linking_quality import (
    LINKING_METRICS,
    MENTION_TYPES,
    NOTHING_LINKED,
    TOPIC_METRICS,
    LinkingOutcome,
    aggregate_linking,
    evaluate_linking,
    gold_mention,
    mention_type,
    score_linking,
    score_topic,
)
from byokg.linking.entities import EntityLinker
from byokg.types import EntityId, LinkedEntity, Mention
from tests.linking.graphs import films


@pytest.mark.parametrize(
    ("question", "name", "words"),
    [
        ("who directed Heat?", "Heat", "Heat"),
        ("what is the capital of the côte d'ivoire", "Cote d'Ivoire", "côte d'ivoire"),
        ("where did obama go to school?", "Barack Obama", "obama"),
        ("who did john kennedy have affairs with?", "John F. Kennedy", "john kennedy"),
        ("where is the thames river source?", "River Thames", "thames river"),
        ("what did nicholas copernicus discover?", "Nicolaus Copernicus", "nicholas copernicus"),
        ("which city is Jesusalem near?", "Jerusalem", "Jesusalem"),
        ("where does vivaldi compose?", "Antonio Vivaldi", "vivaldi"),
        ("who are the judges in the supreme court?", "Supreme Court of the United States", "supreme court"),
    ],
)
def test_the_words_that_name_an_entity_are_found(question: str, name: str, words: str) -> None:
    mention = gold_mention(name, question)
    assert mention is not None and mention.text == words
    assert question[mention.start : mention.end] == words and mention.ids == ()


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("what war did the us lose", "United States of America"),
        ("who is the president", "Theodore Lesieg"),
        ("", "Heat"),
        ("who directed it?", "!!!"),
        ("of the in", "Of the In Between"),
    ],
)
def test_nothing_is_found_where_nothing_names_it(question: str, name: str) -> None:
    assert gold_mention(name, question) is None


@given(st.text(max_size=40), st.text(max_size=40))
def test_what_is_found_is_a_piece_of_any_question(name: str, question: str) -> None:
    mention = gold_mention(name, question)
    if mention is not None:
        assert question[mention.start : mention.end] == mention.text != ""
    assert mention_type(mention, name) in MENTION_TYPES


@pytest.mark.parametrize(
    ("text", "name", "aliases", "kind"),
    [
        ("the heat", "Heat", (), "exact name"),
        ("usa", "United States of America", ("USA",), "alias"),
        ("usa", "United States of America", (), "other words"),
        ("obama", "Barack Obama", (), "part of name"),
        ("President Barack Obama", "Barack Obama", (), "part of name"),
        ("Jesusalem", "Jerusalem", (), "misspelt"),
        ("1984", "1984", (), "literal or id"),
        ("12 May 1990", "1990-05-12", (), "literal or id"),
        ("m.0abc", "m.0abc", (), "literal or id"),
    ],
)
def test_how_an_entity_is_mentioned(text: str, name: str, aliases: tuple[str, ...], kind: str) -> None:
    assert mention_type(Mention(text), name, aliases) == kind


def test_no_mention_is_a_type_of_its_own() -> None:
    assert mention_type(None, "Heat") == "not in question"


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


def asked(id: str, question: str, *topics: str) -> Example:
    return Example(id, question, ("x",), topic_ids=tuple(map(EntityId, topics)))


STORE = films()
EXAMPLES = [
    asked("q1", "Who directed Alien?", "Alien"),
    asked("q2", "Which films by Ridly Scott starred Sigourney Weaver?", "Ridley Scott", "Sigourney Weaver"),
    asked("q3", "Who made it?", "Titanic"),
    asked("q4", "Who directed Predator?", "Predator"),
    asked("q5", "Who knows?"),
]


class Unreachable(EntityLinker):
    """Fails at every question about aliens."""

    def link_all(self, mentions: Sequence[Mention], question: str = "") -> list[tuple[LinkedEntity, ...]]:
        if "Alien" in question:
            raise StoreUnavailable("the store", "gone")
        return super().link_all(mentions, question)


class Words:
    """Takes the last word for a mention."""

    def spot(self, text: str) -> list[Mention]:
        return [Mention(text.rstrip("?").split()[-1])]


def test_each_linker_is_scored_on_the_same_mentions_with_one_denominator() -> None:
    measured = evaluate_linking(
        {"exact": EntityLinker(STORE, "exact"), "fuzzy": EntityLinker(STORE, "fuzzy")}, EXAMPLES, STORE
    )
    # Four questions have topics. exact finds 1, 1 of 2, 0, 0; fuzzy finds 1, 2 of 2, 0, 0.
    assert [(one.n, one.topics, one.failed) for one in measured.values()] == [(4, 5, 0), (4, 5, 0)]
    assert measured["exact"].estimates["recall@3"].value == pytest.approx(1.5 / 4)
    assert measured["fuzzy"].estimates["recall@3"].value == pytest.approx(2 / 4)
    assert {kind: one.n for kind, one in measured["fuzzy"].by_type.items()} == {
        "exact name": 2,
        "misspelt": 1,
        "not in question": 1,
        "not in graph": 1,
    }
    assert measured["fuzzy"].by_type["misspelt"].estimates["recall@1"].value == 1.0
    assert measured["exact"].by_type["misspelt"].estimates["recall@1"].value == 0.0


def test_a_question_whose_linking_fails_scores_zero_and_is_counted() -> None:
    measured = evaluate_linking({"exact": Unreachable(STORE, "exact")}, EXAMPLES, STORE)["exact"]
    assert (measured.n, measured.failed) == (4, 1)
    assert measured.estimates["recall@1"].value == pytest.approx(0.5 / 4)


def test_mentions_may_be_spotted_instead() -> None:
    told: list[tuple[str, int, int]] = []
    measured = evaluate_linking(
        {"exact": EntityLinker(STORE, "exact")},
        EXAMPLES[:2],
        STORE,
        "spotted",
        Words(),
        on_progress=lambda *progress: told.append(progress),
    )["exact"]
    # "Alien" is found; "Weaver" is no name.
    assert measured.estimates["recall@1"].value == 1 / 2
    assert told == [("exact", 1, 2), ("exact", 2, 2)]


def test_what_cannot_be_scored_is_refused() -> None:
    linkers = {"exact": EntityLinker(STORE, "exact")}
    with pytest.raises(RunError, match="no question of this data set has its topic entities"):
        evaluate_linking(linkers, EXAMPLES[4:], STORE)
    with pytest.raises(ConfigError, match="mentions=spotted needs a spotter"):
        evaluate_linking(linkers, EXAMPLES, STORE, "spotted")
