"""Tests of `byokg.evaluation.linking_quality`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from byokg.errors import ConfigError, RunError, StoreUnavailable
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.linking_quality import evaluate_linking
from byokg.linking.entities import EntityLinker
from byokg.types import EntityId, LinkedEntity, Mention
from tests.linking.graphs import films


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
