"""Tests of `byokg.types`."""

from __future__ import annotations

from byokg.types import AnswerItem, Artifacts, Context, EntityId, Evidence, Linked, LinkedEntity, Mention, Path, Triple


def entity(id: str) -> LinkedEntity:
    return LinkedEntity(EntityId(id), id, Mention(id), "exact", 1.0)


class TestContext:
    def test_evidence_is_numbered_on_over_rounds_and_retrievers(self) -> None:
        context = Context()
        context = context.add(
            Artifacts(), Linked(), [[Evidence("a", 3.0), Evidence("a", 2.0)], [], [Evidence("b", 1.0)]]
        )
        context = context.add(Artifacts(), Linked(), [[Evidence("a", 0.5)]])
        assert [(item.id, item.round, item.retriever, item.score) for item in context.evidence] == [
            ("e1", 0, "a", 3.0),
            ("e2", 0, "a", 2.0),
            ("e3", 0, "b", 1.0),
            ("e4", 1, "a", 0.5),
        ]

    def test_rounds_keep_what_belongs_to_them(self) -> None:
        first, second = Artifacts(draft_answers=("one",)), Artifacts(draft_answers=("two",))
        linked = Linked((entity("Alien"),))
        context = Context().add(first, linked, [[Evidence("a", 1.0)]]).add(second, Linked(), [])
        assert [one.number for one in context.rounds] == [0, 1]
        assert [one.artifacts for one in context.rounds] == [first, second]
        assert [one.linked for one in context.rounds] == [linked, Linked()]
        assert [len(one.evidence) for one in context.rounds] == [1, 0]

    def test_adding_leaves_the_earlier_context_as_it_was(self) -> None:
        empty = Context()
        empty.add(Artifacts(), Linked(), [[Evidence("a", 1.0)]])
        assert empty == Context()
        assert empty.evidence == ()


class TestLinked:
    def test_an_entity_is_unseen_until_a_round_has_linked_it(self) -> None:
        alien, blade = Linked((entity("Alien"),)), Linked((entity("Alien"), entity("Blade")))
        context = Context()
        assert alien.unseen(context)
        context = context.add(Artifacts(), alien, [])
        assert not alien.unseen(context)
        assert blade.unseen(context)

    def test_drafts_and_nothing_bring_nothing_new(self) -> None:
        assert not Linked(drafts=(entity("Alien"),)).unseen(Context())
        assert not Linked().unseen(Context())

    def test_what_was_only_a_draft_has_not_been_seen(self) -> None:
        context = Context().add(Artifacts(), Linked(drafts=(entity("Alien"),)), [])
        assert Linked((entity("Alien"),)).unseen(context)


def test_a_path_visits_heads_where_it_goes_against_the_arrow() -> None:
    #   Weaver <-starred- Alien -directed_by-> Scott
    alien, weaver, scott = EntityId("Alien"), EntityId("Weaver"), EntityId("Scott")
    path = Path(weaver, (Triple(alien, "starred", weaver), Triple(alien, "directed_by", scott)), (True, False))
    assert path.nodes == (weaver, alien, scott)
    assert path.end == scott
    assert Path(weaver, (), ()).end == weaver


def test_an_answer_with_citations_is_grounded() -> None:
    assert AnswerItem("Scott", EntityId("Scott"), 1.0, ("e1",)).grounded
    assert not AnswerItem("Scott", None, 1.0).grounded
