"""Tests of `byokg.pipelines.loop`: the loop, run with parts that follow a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

import pytest

from byokg.errors import ConfigError
from byokg.linking.entities import EntityLinker
from byokg.pipelines.answers import answered_rows
from byokg.pipelines.loop import ENDED, Loop, Stage
from byokg.types import (
    Answer,
    AnswerItem,
    AnswerRow,
    Artifacts,
    Context,
    Evidence,
    Feedback,
    GraphQuery,
    Linked,
    Mention,
    ProposedPath,
    Question,
    Request,
    RowsEvidence,
)
from tests.linking.graphs import films

QUESTION = Question("q7", "who directed Alien")

FINISHED = Artifacts(finished=True)


def mentioning(*names: str) -> Artifacts:
    return Artifacts(mentions=tuple(map(Mention, names)))


@dataclass
class ScriptedLinker:
    """Proposes what the script says, round by round."""

    script: Sequence[Artifacts]
    seen: list[int] = field(default_factory=list)
    """Rounds in the context at each call."""

    def propose(self, question: Question, context: Context) -> Artifacts:
        self.seen.append(len(context.rounds))
        return self.script[len(context.rounds)]


@dataclass
class OneEach:
    """Finds one piece of evidence for each linked entity."""

    name: str
    requests: list[Request] = field(default_factory=list)

    def retrieve(self, request: Request) -> list[Evidence]:
        self.requests.append(request)
        return [Evidence(self.name, float(position)) for position, _ in enumerate(request.linked.entities)]


class LastEvidence:
    """Answers with the ids of all evidence."""

    def answer(self, question: Question, context: Context) -> list[AnswerItem]:
        return [AnswerItem(question.id, None, item.score, (item.id,)) for item in context.evidence]


def pipeline(script: Sequence[Artifacts], rounds: int = 3, retrievers: Sequence[OneEach] = ()) -> Loop:
    stage = Stage(ScriptedLinker(script), tuple(retrievers) or (OneEach("a"),), rounds)
    return Loop(EntityLinker(films()), [stage], LastEvidence())


def retrieved(answer: Answer) -> int:
    """Count the rounds that came to retrieval."""
    return sum(all(step.stage != ENDED for step in one.steps) for one in answer.rounds)


class TestRounds:
    def test_evidence_is_numbered_on_over_rounds_and_retrievers(self) -> None:
        script = [mentioning("Alien", "Titanic"), mentioning("Aliens")]
        answer = pipeline(script, 2, [OneEach("a"), OneEach("b")]).run(QUESTION)
        found = [(item.id, item.round, item.retriever) for one in answer.rounds for item in one.evidence]
        assert found == [("e1", 0, "a"), ("e2", 0, "a"), ("e3", 0, "b"), ("e4", 0, "b"), ("e5", 1, "a"), ("e6", 1, "b")]
        assert [item.citations for item in answer.items] == [(id,) for id, *_ in found]

    def test_it_stops_when_nothing_new_is_linked(self) -> None:
        script = [mentioning("Alien"), mentioning("alien"), mentioning("Titanic")]
        assert retrieved(pipeline(script).run(QUESTION)) == 1

    def test_it_stops_when_the_linker_has_finished(self) -> None:
        assert retrieved(pipeline([mentioning("Alien"), mentioning("Titanic"), FINISHED]).run(QUESTION)) == 2
        assert retrieved(pipeline([FINISHED]).run(QUESTION)) == 0

    @pytest.mark.parametrize(
        ("last", "because"),
        [(FINISHED, "the KG-Linker has finished"), (mentioning("alien"), "nothing was proposed that is new")],
    )
    def test_the_round_that_ends_it_is_kept_with_the_reason(self, last: Artifacts, because: str) -> None:
        ended = pipeline([mentioning("Alien"), last]).run(QUESTION).rounds[1]
        assert (ended.artifacts, ended.evidence) == (last, ())
        assert [(step.stage, step.got) for step in ended.steps] == [(ENDED, {"because": because})]

    @pytest.mark.parametrize(
        "new",
        [
            {"paths": (ProposedPath(("directed_by",), 1.0),)},
            {"queries": (GraphQuery("cypher", "MATCH (n) RETURN n"),)},
            {"bfsql": '{"seeds": ["Alien"]}'},
        ],
    )
    def test_a_new_path_query_or_request_is_worth_a_round_and_an_old_one_is_not(self, new: dict[str, Any]) -> None:
        proposed = replace(mentioning("Alien"), **new)
        assert retrieved(pipeline([mentioning("Alien"), proposed, proposed]).run(QUESTION)) == 2
        stage = Stage(ScriptedLinker([mentioning("Alien"), proposed]), (OneEach("a"),), 3, stop_when="no_new_entity")
        assert retrieved(Loop(EntityLinker(films()), [stage], LastEvidence()).run(QUESTION)) == 1

    def test_a_query_that_differs_in_spaces_alone_is_an_old_one(self) -> None:
        first, second = (
            Artifacts(queries=(GraphQuery("cypher", text),)) for text in ("MATCH (n)\nRETURN n;", "MATCH (n) RETURN n")
        )
        assert retrieved(pipeline([first, second]).run(QUESTION)) == 1

    def test_it_stops_after_the_rounds_allowed(self) -> None:
        script = [mentioning("Alien"), mentioning("Titanic"), mentioning("Aliens")]
        for rounds in (1, 2, 3):
            assert len(pipeline(script, rounds).run(QUESTION).rounds) == rounds

    def test_the_first_round_is_kept_even_if_nothing_is_linked(self) -> None:
        answer = pipeline([mentioning("Predator"), mentioning("Alien")], 1).run(QUESTION)
        assert [one.linked.entities for one in answer.rounds] == [()]
        assert answer.items == ()

    def test_linker_and_retrievers_see_the_rounds_before(self) -> None:
        retriever = OneEach("a")
        chain = pipeline([mentioning("Alien"), mentioning("Titanic"), FINISHED], retrievers=[retriever])
        chain.run(QUESTION)
        linker = chain.stages[0].linker
        assert isinstance(linker, ScriptedLinker) and linker.seen == [0, 1, 2]
        assert [len(request.context.rounds) for request in retriever.requests] == [0, 1]
        assert [request.linked.entities[0].id for request in retriever.requests] == ["Alien", "Titanic"]
        assert all(request.question == QUESTION for request in retriever.requests)


@dataclass
class Queries:
    """Returns rows in a round of one's choice, and before it feedback."""

    rows_in: int
    truncated: bool = True

    def retrieve(self, request: Request) -> list[Evidence]:
        if len(request.context.rounds) < self.rows_in:
            return [Feedback("query", 0.0, "MATCH", "no rows")]
        return [RowsEvidence("query", 1.0, "cypher", "MATCH", ("name",), (("Alien",),), self.truncated)]


@dataclass
class Finishing:
    """Notes that its model has finished, and finds evidence or feedback."""

    found: Evidence
    calls: int = 0

    def retrieve(self, request: Request) -> list[Evidence]:
        self.calls += 1
        request.note("entity_selection", {}, {"finished": True})
        return [self.found]


class TestFinish:
    """A retriever's model that has enough ends the loop, all stages of it."""

    @pytest.mark.parametrize(
        ("found", "stop_when", "calls"),
        [
            (Evidence("a", 1.0), "nothing_new", 1),
            (Feedback("a", 0.0, "a hub", "too many edges"), "nothing_new", 2),  # nothing was found that is enough
            (Evidence("a", 1.0), "no_new_entity", 2),  # the paper's letter: its walk ends, the rounds go on
        ],
    )
    def test_what_was_found_decides(self, found: Evidence, stop_when: Literal["nothing_new"], calls: int) -> None:
        retriever, later = Finishing(found), OneEach("b")
        script = [mentioning("Alien"), mentioning("Titanic"), mentioning("Aliens")]
        stages = [Stage(ScriptedLinker(script), (retriever,), 2, stop_when), Stage(ScriptedLinker(script), (later,), 1)]
        rounds = Loop(EntityLinker(films()), stages, LastEvidence()).run(QUESTION).rounds
        assert (retriever.calls, len(later.requests)) == (calls, int(calls > 1))
        ended = [step.got for step in rounds[0].steps if step.stage == ENDED]
        assert ended == ([{"because": "a retriever has finished"}] if calls == 1 else [])


class TestAnswered:
    """Rows that came back whole end the loop, before the retrievers behind the query's and before other stages."""

    @pytest.mark.parametrize(
        ("stop_when", "truncated", "suffice"), product(("rows", "nothing_new"), *[(True, False)] * 2)
    )
    def test_whole_rows_are_enough(
        self, stop_when: Literal["rows", "nothing_new"], truncated: bool, suffice: bool
    ) -> None:
        later = OneEach("a")
        script = [mentioning(name) for name in ("Alien", "Aliens", "Titanic", "Blade Runner")]
        stage = Stage(ScriptedLinker(script), (Queries(0, truncated), later), 2, stop_when, suffice)
        found = Loop(EntityLinker(films()), [stage, stage], LastEvidence()).run(QUESTION).rounds
        if suffice and not truncated:
            assert [item.retriever for item in found[0].evidence] == ["query"] and len(found) == 1
            assert [step.got for step in found[0].steps] == [{"because": "a query has returned all of its rows"}]
        else:
            assert [len(one.evidence) for one in found[:2]] == [2, 2]

    def test_a_retriever_sees_what_those_before_it_found(self) -> None:
        later = OneEach("b")
        stage = Stage(ScriptedLinker([mentioning("Alien")]), (OneEach("a"), later), 1)
        Loop(EntityLinker(films()), [stage], LastEvidence()).run(QUESTION)
        assert [item.retriever for item in later.requests[0].found] == ["a"]


class TestStages:
    def stages(self, rows_in: int, script: Sequence[Artifacts]) -> Loop:
        queries, whole = ScriptedLinker([Artifacts()] * 2), ScriptedLinker(script)
        stages = [Stage(queries, (Queries(rows_in),), 2, stop_when="rows"), Stage(whole, (OneEach("a"),))]
        return Loop(EntityLinker(films()), stages, LastEvidence())

    def test_queries_are_tried_until_one_returns_rows_and_what_was_found_is_handed_on(self) -> None:
        for rows_in, tried in ((0, 1), (1, 2), (5, 2)):
            later = [mentioning("Alien"), mentioning("Titanic")]
            rounds = self.stages(rows_in, [Artifacts()] * tried + later).run(QUESTION).rounds
            assert [[item.retriever for item in one.evidence] for one in rounds] == [["query"]] * tried + [["a"]] * 2

    def test_the_next_stage_may_see_that_the_rows_are_enough(self) -> None:
        loop = self.stages(1, [Artifacts(), Artifacts(), FINISHED])
        assert retrieved(loop.run(QUESTION)) == 2

    def test_the_first_round_of_a_stage_retrieves_whatever_was_linked_before(self) -> None:
        first, second = ScriptedLinker([mentioning("Alien")]), ScriptedLinker([FINISHED, mentioning("Alien"), FINISHED])
        stages = [Stage(first, (OneEach("a"),), 1), Stage(second, (OneEach("b"),))]
        rounds = Loop(EntityLinker(films()), stages, LastEvidence()).run(QUESTION).rounds
        assert [one.evidence[0].retriever for one in rounds if one.evidence] == ["a", "b"]


class TestAnswer:
    def test_it_names_the_question_and_the_seconds_of_each_stage(self) -> None:
        answer = pipeline([mentioning("Alien"), FINISHED]).run(QUESTION)
        assert answer.question_id == "q7"
        assert set(answer.seconds) == {"link", "retrieve", "answer"}
        assert min(answer.seconds.values()) >= 0

    def test_two_runs_give_equal_answers(self) -> None:
        chain = pipeline([mentioning("Alien"), mentioning("Titanic"), FINISHED])
        assert chain.run(QUESTION) == chain.run(QUESTION)


def test_no_rounds_at_all_is_a_wrong_setting() -> None:
    with pytest.raises(ConfigError, match="rounds=0"):
        pipeline([], rounds=0)
    with pytest.raises(ConfigError, match="without a stage"):
        Loop(EntityLinker(films()), [], LastEvidence())


def test_an_answer_has_the_rows_that_it_cites_most_else_those_of_the_last_query() -> None:
    def rows(retriever: str, name: str, **more: Any) -> RowsEvidence:
        return RowsEvidence(retriever, 1.0, "cypher", name, ("name",), ((name,),), **more)

    found = [rows("query", "a"), rows("query", "b"), rows("subgraph", "c")]
    context = Context().add(Artifacts(), Linked(), [found])
    cited = AnswerItem("a", None, 1.0, ("e1",))
    assert answered_rows(context, [cited]) == (("name",), (AnswerRow(("a",)),))
    assert answered_rows(context, [cited, AnswerItem("c", None, 1.0, ("e3",))])[1] == (AnswerRow(("c",)),)
    assert answered_rows(context, [])[1] == (AnswerRow(("b",)),)
    assert answered_rows(Context(), [cited]) == ((), ())


def test_rows_that_no_prompt_shows_belong_to_the_answer_and_a_result_read_in_part_is_none() -> None:
    def answered(**more: Any) -> tuple[AnswerRow, ...]:
        item = RowsEvidence("query", 1.0, "cypher", "q", ("n",), ((1,),), truncated=True, **more)
        return answered_rows(Context().add(Artifacts(), Linked(), [[item]]), [])[1]

    assert answered(total=2, unseen=((2,),)) == (AnswerRow((1,)), AnswerRow((2,)))
    assert answered(total=2, exact=False, unseen=((2,),)) == ()
    assert answered() == ()
