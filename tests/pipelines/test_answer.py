"""Tests of `byokg.pipelines.loop`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from byokg.offline.answerer import ExtractiveAnswerer
from byokg.types import (
    Artifacts,
    Context,
    EntityId,
    Evidence,
    JoinedPaths,
    Linked,
    LinkedEntity,
    Mention,
    PathEvidence,
    ProposedPath,
    Question,
)
from tests.linking.graphs import countries, marriages

QUESTION = Question("q", "which country borders Peru and speaks Quechua")


def reaching(source: str, score: float, *ends: str) -> PathEvidence:
    return PathEvidence("path", score, EntityId(source), (f"r{score:g}",), tuple(map(EntityId, ends)), ())


def context(evidence: Sequence[Evidence], **meant: str) -> Context:
    """Gather evidence; each keyword says which mention an entity was linked from.

    Each two paths from different mentions are proposed as a pair, worth their mean and 40.
    """
    entities = [LinkedEntity(EntityId(id), id, Mention(text), "exact", 1.0) for id, text in meant.items()]
    paths = [
        ProposedPath(item.relations, item.score, item.source) for item in evidence if isinstance(item, PathEvidence)
    ]
    joined = [
        JoinedPaths((one, other), (one.score + other.score) / 2 + 40)
        for one, other in combinations(paths, 2)
        if meant.get(str(one.source)) != meant.get(str(other.source))
    ]
    return Context().add(Artifacts(paths=tuple(paths), joined=tuple(joined)), Linked(tuple(entities)), [evidence])


def answered(
    context: Context, answerer: ExtractiveAnswerer | None = None
) -> list[tuple[str | None, float, tuple[str, ...]]]:
    items = (answerer or ExtractiveAnswerer(countries())).answer(QUESTION, context)
    return [(item.id, item.score, item.citations) for item in items]


class TestBestPath:
    def test_its_ends_are_the_answers_in_order_and_cite_it(self) -> None:
        found = context([reaching("pe", 1.0, "lima"), reaching("pe", 2.0, "cl", "bo")], pe="Peru")
        assert answered(found) == [("cl", 2.0, ("e2",)), ("bo", 2.0, ("e2",))]
        assert [item.name for item in ExtractiveAnswerer(countries()).answer(QUESTION, found)] == ["Chile", "Bolivia"]

    def test_of_equal_scores_the_first_is_taken(self) -> None:
        assert answered(context([reaching("pe", 1.0, "lima"), reaching("pe", 1.0, "cl")], pe="Peru")) == [
            ("lima", 1.0, ("e1",))
        ]

    def test_there_is_no_answer_without_path_evidence(self) -> None:
        assert answered(Context()) == []
        assert answered(context([Evidence("other", 9.0)])) == []


class TestAgreement:
    def test_nodes_that_two_topics_lead_to_are_the_answers(self) -> None:
        # Peru borders Chile and Bolivia; Quechua is spoken in Peru and Bolivia.
        found = context([reaching("pe", 10.0, "cl", "bo"), reaching("que", 6.0, "bo")], pe="Peru", que="Quechua")
        # (10 + 6) / 2 + 40
        assert answered(found) == [("bo", 48.0, ("e1", "e2"))]

    def test_common_nodes_keep_the_order_of_the_first_topic(self) -> None:
        found = context(
            [reaching("pe", 1.0, "cl", "bo", "es"), reaching("que", 1.0, "es", "cl")], pe="Peru", que="Quechua"
        )
        assert [id for id, *_ in answered(found)] == ["cl", "es"]

    def test_a_much_better_single_path_wins(self) -> None:
        found = context(
            [reaching("pe", 90.0, "cl"), reaching("pe", 1.0, "bo"), reaching("que", 1.0, "bo")], pe="P", que="Q"
        )
        assert answered(found) == [("cl", 90.0, ("e1",))]

    def test_two_readings_of_one_mention_do_not_confirm_each_other(self) -> None:
        found = context([reaching("pe", 2.0, "cl"), reaching("bo", 1.0, "cl")], pe="it", bo="it")
        assert answered(found) == [("cl", 2.0, ("e1",))]

    def test_topics_that_lead_nowhere_common_do_not_agree(self) -> None:
        found = context([reaching("pe", 2.0, "cl"), reaching("que", 1.0, "bo")], pe="Peru", que="Quechua")
        assert answered(found) == [("cl", 2.0, ("e1",))]


class TestNamelessEnds:
    def test_they_are_no_answers(self) -> None:
        answerer = ExtractiveAnswerer(marriages())
        assert answered(context([reaching("Ann", 2.0, "m.0m1", "Bob")]), answerer) == [("Bob", 2.0, ("e1",))]

    def test_a_path_that_has_no_others_is_passed_over(self) -> None:
        answerer = ExtractiveAnswerer(marriages())
        found = context([reaching("Ann", 2.0, "m.0m1"), reaching("Ann", 1.0, "Lima")])
        assert answered(found, answerer) == [("Lima", 1.0, ("e2",))]

    def test_agreeing_on_one_is_worth_nothing(self) -> None:
        answerer = ExtractiveAnswerer(marriages())
        found = context(
            [reaching("Ann", 2.0, "m.0m1"), reaching("Bob", 2.0, "m.0m1"), reaching("Ann", 1.0, "Lima")],
            Ann="a",
            Bob="b",
        )
        assert answered(found, answerer) == [("Lima", 1.0, ("e3",))]
