"""Tests of `byokg.evaluation.retrieval_metrics` and `byokg.evaluation.metrics`."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.evaluation.datasets.base import Example
from byokg.evaluation.metrics import ZERO, QuestionScores, Retrieved, aggregate
from byokg.evaluation.retrieval_metrics import answered_prompt, context_tokens, retrieved
from byokg.llm.messages import Call, Message
from byokg.llm.usage import AnsweredCall, QuestionUsage
from byokg.text.names import estimate_tokens
from byokg.types import (
    AnswerItem,
    EdgeCell,
    EntityId,
    Evidence,
    Feedback,
    Node,
    NodeCell,
    NodeEvidence,
    Path,
    PathCell,
    PathEvidence,
    RowsEvidence,
    Triple,
    TripleEvidence,
)

# heat -directed_by-> mann <-directed_by- ali;  ali -release_year-> 2001
HEAT, MANN, ALI, Y2001 = (EntityId(id) for id in ("heat", "mann", "ali", "2001"))
DIRECTED = Triple(HEAT, "directed_by", MANN, 1)
ALSO = Triple(ALI, "directed_by", MANN, 2)
RELEASED = Triple(ALI, "release_year", Y2001, 3, {"source": "IMDb"})


def example(answers: tuple[str, ...], *ids: str, support: tuple[tuple[str, str, str], ...] = ()) -> Example:
    """Return a question with these gold answers."""
    return Example("q", "?", answers, tuple(map(EntityId, ids)), ("Heat",), (HEAT,), support=support)


def one_hop(source: EntityId, relation: str, *ends: EntityId) -> PathEvidence:
    """Return everything that one relation reaches, no walk shown."""
    return PathEvidence("path", 1.0, source=source, relations=(relation,), ends=ends, paths=())


def rows(*cells: object) -> RowsEvidence:
    """Return one row."""
    return RowsEvidence("query", 1.0, language="cypher", query="…", columns=("x",), rows=((*cells,),))  # type: ignore[arg-type]


def test_each_gold_answer_has_the_rank_of_the_first_item_that_holds_it() -> None:
    evidence = [one_hop(HEAT, "directed_by", MANN), one_hop(MANN, "^directed_by", HEAT, ALI)]
    found = retrieved(example(("Ali", "Michael Mann", "Thief"), "ali", "mann", "thief"), evidence)
    assert found.ranks == (2, 1, None)
    assert (found.recall(1), found.recall(2), found.recall()) == (1 / 3, 2 / 3, 2 / 3)


def test_a_node_within_a_walk_is_held_too() -> None:
    walk = Path(HEAT, (DIRECTED, ALSO), (False, True))
    item = PathEvidence("path", 1.0, source=HEAT, relations=("directed_by", "^directed_by"), ends=(ALI,), paths=(walk,))
    assert retrieved(example(("Michael Mann",), "mann"), [item]).ranks == (1,)


@pytest.mark.parametrize(
    "item",
    [
        TripleEvidence("text", 1.0, triple=DIRECTED),
        TripleEvidence("text", 1.0, triple=Triple(HEAT, "r", ALI, 9, {"by": "michael mann"})),
        NodeEvidence("bfs", 1.0, node=Node(MANN, "Michael Mann")),
        NodeEvidence("bfs", 1.0, node=Node(HEAT, "Heat", properties={"director": "Michael Mann"})),
        rows("Michael Mann"),
        rows(None, ["x", "MICHAEL MANN"]),
        rows({"who": NodeCell(MANN, "M. M.")}),
        rows(NodeCell(EntityId("m1"), "Michael Mann")),
        rows(EdgeCell(HEAT, "directed_by", MANN)),
        rows(PathCell((NodeCell(MANN, "M"),), ())),
    ],
)
def test_every_kind_of_evidence_is_searched_by_id_and_by_value(item: Evidence) -> None:
    assert retrieved(example(("Michael Mann",), "mann"), [item]).ranks == (1,)


def test_a_part_of_a_value_is_not_the_answer() -> None:
    assert retrieved(example(("Iran",)), [rows("Tirana", "The capital of Iran")]).ranks == (None,)


def test_feedback_is_no_evidence_and_has_no_rank() -> None:
    problem = Feedback("query", 0.0, subject="MATCH …", problem="no label Mann")
    assert retrieved(example(("Mann",)), [problem, rows("Mann")]).ranks == (1,)


def test_without_ids_a_node_is_an_answer_by_its_id_being_the_name() -> None:
    assert retrieved(example(("MANN!",)), [one_hop(HEAT, "directed_by", MANN)]).ranks == (1,)


def test_where_ids_and_names_do_not_pair_the_ids_are_the_answers() -> None:
    found = retrieved(example(("Michael Mann",), "mann", "ali"), [one_hop(HEAT, "directed_by", MANN)])
    assert found.ranks == (1, None)


def test_numbers_in_rows_are_answers() -> None:
    assert retrieved(example(("3",)), [rows(3)]).ranks == (1,)


def test_support_triples_are_found_in_one_hop_paths_walks_triples_and_rows() -> None:
    support = (
        ("heat", "directed_by", "mann"),
        ("ali", "directed_by", "mann"),
        ("ali", "release_year", "2001"),
        ("heat", "release_year", "1995"),
    )
    evidence = [
        one_hop(MANN, "^directed_by", HEAT),
        rows(EdgeCell(ALI, "directed_by", MANN)),
        TripleEvidence("text", 1.0, triple=RELEASED),
    ]
    assert retrieved(example(("2001",), support=support), evidence).support == (3, 4)
    assert retrieved(example(("2001",)), evidence).support is None


def test_gold_answers_without_ids_are_found_by_the_nodes_of_their_names() -> None:
    evidence = [one_hop(HEAT, "directed_by", MANN)]
    named = example(("Michael Mann",))
    assert retrieved(named, evidence).ranks == (None,)
    assert retrieved(named, evidence, nodes=[[EntityId("other"), MANN]]).ranks == (1,)
    assert retrieved(example(("Michael Mann",), "other"), evidence, nodes=[[MANN]]).ranks == (None,)


def test_support_that_names_annotated_entities_is_found_by_their_ids() -> None:
    support = (("Heat", "directed_by", "Michael Mann"),)
    found = retrieved(example(("Michael Mann",), "mann", support=support), [one_hop(HEAT, "directed_by", MANN)])
    assert found.support == (1, 1)


def test_retrieval_is_averaged_over_all_questions_and_support_over_those_that_have_it() -> None:
    outcomes = [
        QuestionScores(ZERO, retrieved=Retrieved((1, 7), (1, 2), 100)),
        QuestionScores(ZERO, retrieved=Retrieved((None,), None, 300)),
        QuestionScores(ZERO, failed=True),
    ]
    overall = aggregate(outcomes).overall
    figures = {name: (one.n, one.value) for name, one in overall.retrieval.items()}
    assert figures == {
        "recall@1": (3, pytest.approx(0.5 / 3)),
        "recall@5": (3, pytest.approx(0.5 / 3)),
        "recall@10": (3, pytest.approx(1 / 3)),
        "recall@20": (3, pytest.approx(1 / 3)),
        "recall": (3, pytest.approx(1 / 3)),
        "support": (1, 0.5),
        "tokens": (2, 200.0),
    }
    assert overall.median_tokens == 200.0
    assert {stage: n for stage, n in overall.loss.items() if n} == {"failed": 1, "not_retrieved": 1, "not_answered": 1}


def numbered(*items: Evidence) -> list[Evidence]:
    """Return items with ids, as a context gives them."""
    return [replace(item, id=f"e{at}") for at, item in enumerate(items, start=1)]


def test_what_stood_in_the_prompt_is_shown_and_what_answers_rest_on_is_cited() -> None:
    evidence = numbered(one_hop(HEAT, "directed_by", MANN), one_hop(MANN, "^directed_by", ALI))
    asked = example(("Michael Mann", "Ali", "Thief"), "mann", "ali", "thief")
    prompt = "[e1] Heat → directed_by → Michael Mann\n[e2] Al, Ali! | Alien"
    found = retrieved(asked, evidence, None, (), prompt, [AnswerItem("Ali", ALI, 1.0, ("e2",))])
    assert (found.ranks, found.shown, found.cited) == ((1, 2, None), (True, True, False), (False, True, False))
    assert retrieved(asked, evidence).shown is None
    assert retrieved(example(("Alien",)), evidence, None, (), prompt).shown == (False,)  # there, but not retrieved


def test_a_wrong_answer_that_cites_the_line_with_the_right_one_cites_it() -> None:
    evidence = numbered(one_hop(HEAT, "directed_by", MANN), one_hop(MANN, "^directed_by", ALI))
    prompt = "[e1] Heat → directed_by → Michael Mann\n[e2] Ali"
    for line, expected in (("e1", (True,)), ("e2", (False,)), ("e7", (False,))):
        answers = [AnswerItem("Val Kilmer", None, 1.0, (), 1, (line,))]
        asked = example(("Michael Mann",), "mann")
        assert retrieved(asked, evidence, None, (), prompt, answers).cited == expected


def test_a_run_that_recorded_no_evidence_has_neither_retrieval_nor_loss() -> None:
    overall = aggregate([QuestionScores(ZERO), QuestionScores(ZERO, failed=True)]).overall
    assert (overall.retrieval, overall.loss) == ({}, {})


def test_tokens_are_those_of_the_context_in_the_last_prompt_that_had_one() -> None:
    context = "[e1] Heat → directed_by → Mann\n[e4] name | year\nAli | 2001"

    def call(text: str) -> AnsweredCall:
        return AnsweredCall("answer", Call("scripted", "m", (Message("system", "[e9] no"), Message("user", text)), {}))

    prompts = (f"# Context\n\n{context}\n\n# Question\n\nWho?", "Which relation?")
    assert context_tokens(QuestionUsage({}, tuple(map(call, prompts)))) == estimate_tokens(context)
    assert context_tokens(QuestionUsage({}, tuple(map(call, prompts))), lambda text: len(text.split())) == 13
    assert context_tokens(QuestionUsage({}, (call("Which relation?"),))) is None


def test_what_was_answered_is_the_last_call_of_a_stage_that_answers() -> None:
    def call(stage: str, text: str) -> AnsweredCall:
        return AnsweredCall(stage, Call("scripted", "m", (Message("system", "Paris"), Message("user", text)), {}))

    written = call("answer", "Such as: [Rome]\n\n[e1] Heat → by → Mann\n\nWho made Heat?")
    usage = QuestionUsage({}, (call("kg_linker", "[e9] Ali"), written))
    assert answered_prompt(usage, "Who made Heat?") == "[e1] Heat → by → Mann"
    assert answered_prompt(QuestionUsage({}, (call("subgraph", "Heat. Who?"),)), "Who?") == "Heat.  "
    assert answered_prompt(QuestionUsage({}, (call("answer", "Rome (nothing was found)"),)), "Who?") == ""
    assert answered_prompt(QuestionUsage({}, (written, call("candidates", "[e1] Ali"))), "Who?") is None
    assert answered_prompt(QuestionUsage(), "Who?") is None


def test_the_median_of_tokens_is_that_of_the_questions_with_context() -> None:
    outcomes = [QuestionScores(ZERO, retrieved=Retrieved((1,), None, tokens)) for tokens in (10, 1000, 20, None)]
    overall = aggregate(outcomes).overall
    assert overall.median_tokens == 20.0
    assert aggregate(outcomes[3:]).overall.median_tokens is None


ITEMS = st.lists(st.sampled_from("abcdefgh"), max_size=6)
GOLD = st.lists(st.sampled_from("abcdxyz"), min_size=1, max_size=4, unique=True)


def items(values: list[str]) -> list[Evidence]:
    """Return one row of one value for each."""
    return [rows(value) for value in values]


@given(ITEMS, GOLD)
def test_recall_is_a_share_that_grows_with_k(values: list[str], gold: list[str]) -> None:
    found = retrieved(example(tuple(gold)), items(values))
    shares = [found.recall(k) for k in range(8)]
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert shares[-1] == found.recall() == len({*gold} & {*values}) / len(gold)


@given(ITEMS, GOLD, st.randoms(use_true_random=False))
def test_recall_knows_no_order_of_gold_answers_and_only_recall_at_k_one_of_evidence(
    values: list[str], gold: list[str], order: Random
) -> None:
    found = retrieved(example(tuple(gold)), items(values))
    turned = retrieved(example(tuple(gold[::-1])), items(values))
    assert [turned.recall(k) for k in range(8)] == [found.recall(k) for k in range(8)]
    shuffled = sorted(values, key=lambda _: order.random())
    assert retrieved(example(tuple(gold)), items(shuffled)).recall() == found.recall()


@given(ITEMS, GOLD)
def test_more_evidence_behind_the_rest_changes_no_rank_found_before(values: list[str], gold: list[str]) -> None:
    before = retrieved(example(tuple(gold)), items(values)).ranks
    after = retrieved(example(tuple(gold)), [*items(values), *items(["x", "q"])]).ranks
    assert all(new == old for new, old in zip(after, before, strict=True) if old is not None)
