"""Tests of `byokg.evaluation.profiles`: what every profile promises, then each profile."""

from __future__ import annotations

import json
import lzma
import re
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import ConfigError
from byokg.evaluation.cases import Case, read_external
from byokg.evaluation.compare import score_cases
from byokg.evaluation.profiles import (
    BYOKG,
    CRON,
    GCR,
    GNN_RAG,
    PROFILES,
    ROG,
    STARK,
    STRICT,
    STRUCTGPT,
    SUBGRAPHRAG,
    TEXT2CYPHER,
    TOG,
    WEBQSP_OFFICIAL,
    Profile,
    normalise_letters,
    select_profiles,
)

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
@settings(max_examples=20)
@given(case=cases())
def test_every_figure_is_in_its_range(profile: Profile, case: Case) -> None:
    assert profile.scorable(case)
    for metric, value in zip(profile.metrics, profile.score(case), strict=True):
        assert 0.0 <= value <= metric.top, metric.name
    assert profile.weigh(case) > 0


@every_profile
@settings(max_examples=20)
@given(case=cases(), order=st.randoms(use_true_random=False))
def test_the_order_of_gold_answers_does_not_matter(profile: Profile, case: Case, order: Random) -> None:
    gold = sorted(case.gold, key=lambda _: order.random())
    assert figures(profile, made(list(case.answers), gold)) == pytest.approx(figures(profile, case))


@every_profile
@settings(max_examples=20)
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
@settings(max_examples=20)
@given(case=cases(least=1))
def test_a_wrong_answer_added_raises_nothing_and_lowers_no_recall(profile: Profile, case: Case) -> None:
    before, after = figures(profile, case), figures(profile, made([*case.answers, WRONG], list(case.gold)))
    for name, value in after.items():
        assert value <= before[name] + 1e-12, name
    for name in ("recall", "accuracy", "recall@20", "hits@1"):
        assert after.get(name) == pytest.approx(before.get(name))


@every_profile
@settings(max_examples=20)
@given(case=cases(least=1))
def test_a_right_answer_added_lowers_no_recall(profile: Profile, case: Case) -> None:
    more = list(dict.fromkeys((*case.answers, case.gold[0])))
    before, after = figures(profile, case), figures(profile, made(more, list(case.gold)))
    for name in ("recall", "accuracy", "recall@20", "hits@10", "mrr"):
        if name in before:
            assert after[name] >= before[name] - 1e-12, name


@every_profile
@settings(max_examples=20)
@given(case=cases(least=1))
def test_an_answer_said_twice_counts_once_but_where_lines_are_counted(profile: Profile, case: Case) -> None:
    by_lines = profile.name in ("rog", "gnn-rag", "gcr", "tog")
    before, after = figures(profile, case), figures(profile, made([*case.answers, case.answers[-1]], list(case.gold)))
    for name in ("recall", "hit") if by_lines else before:
        if name in before and profile.name != "tog":
            assert after[name] == pytest.approx(before[name]), name


@every_profile
@settings(max_examples=20)
@given(case=cases())
def test_capital_letters_do_not_matter(profile: Profile, case: Case) -> None:
    loud = replace(case, answers=tuple(name.upper() for name in case.answers))
    before, after = figures(profile, case), figures(profile, loud)
    for name in before:
        if not name.startswith("execution"):  # a result holds texts as the graph does
            assert after[name] == pytest.approx(before[name]), name


@every_profile
@settings(max_examples=20)
@given(case=cases())
def test_nothing_predicted_is_worth_nothing(profile: Profile, case: Case) -> None:
    for name, value in figures(profile, made([], list(case.gold))).items():
        assert value == float((profile.name, name) in PUBLISHED_FOR_NOTHING), name


@every_profile
@settings(max_examples=20)
@given(gold=st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
def test_the_gold_answers_themselves_score_best(profile: Profile, gold: list[str]) -> None:
    ranked = {"precision", "f1"} if profile.name in ("rog", "gnn-rag") else set()  # "Tirana" holds "Iran" as well
    for name, value in figures(profile, made(gold, gold)).items():
        assert value >= 1.0 if name in ranked else value == 1.0, name


def test_all_stands_for_every_profile_once() -> None:
    assert [profile.name for profile in select_profiles(["rog", "all"])] == list(PROFILES)
    assert [profile.name for profile in select_profiles(["rog", "strict", "rog"])] == ["rog", "strict"]


def test_an_unknown_profile_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"--profile rogue is not known; use all, or some of strict, byokg, rog"):
        select_profiles(["rogue"])


def test_strict_gives_no_credit_for_letters_in_a_row() -> None:
    assert STRICT.score(Case("q", ("Iran",), ("Tirana",))) == (0.0,) * 6


def test_hit_at_2_adds_the_first_draft_to_the_first_answer() -> None:
    assert BYOKG.score(Case("q", ("Rome",), ("Oslo", "Lima"), drafts=("rome", "Quito"))) == (0.0, 1.0)
    assert BYOKG.score(Case("q", ("Rome",), ("Oslo", "Rome"), drafts=("Lima",))) == (1.0, 0.0)


def test_text2cypher_compares_the_values_of_the_gold_rows() -> None:
    rows = (("Chai", 18.0), ("Chang", None))
    assert TEXT2CYPHER.score(Case("q", ("-",), ("chai", "18", "Chang"), rows=rows))[:2] == (1.0, 1.0)
    assert TEXT2CYPHER.score(Case("q", ("-",), ("Chai",), rows=rows))[:2] == (0.5, 0.0)
    assert TEXT2CYPHER.score(Case("q", ("-",), ("Tofu",), rows=rows))[:2] == (0.0, 0.0)
    assert not TEXT2CYPHER.scorable(Case("q", ("-",), ("Chai",)))


def test_text2cypher_has_execution_accuracy_of_the_query_or_of_the_answers_as_a_column() -> None:
    rows = (("Chai", 18.0), ("Chang", 19.0))
    gold = Case("q", ("Chai", "Chang"), rows=rows, row_count=2)
    run = replace(gold, answers=("Chai",), result=((18, "Chai", 1), (19, "Chang", 2)))
    assert TEXT2CYPHER.score(run)[2:] == (0.0, 1.0, 0.0)
    assert TEXT2CYPHER.score(replace(run, result=rows[::-1]))[2:] == (1.0, 1.0, 1.0)
    nodes = replace(gold, rows=(({"node": "1", "name": "Chai"},),), row_count=1, answers=("Tee",), answer_ids=("1",))
    assert TEXT2CYPHER.score(nodes) == (0.0, 0.0, 1.0, 1.0, 1.0)


def test_values_within_lists_and_maps_of_a_row_count_each() -> None:
    rows = ((("Chai", "Chang"), {"unit": "box", "price": None}),)
    assert TEXT2CYPHER.score(Case("q", ("-",), ("Chang", "Chai", "Box"), rows=rows))[:2] == (1.0, 1.0)
    assert not TEXT2CYPHER.scorable(Case("q", ("-",), rows=((None, (None,)),)))


def test_a_node_in_a_row_is_its_name() -> None:
    node = {"id": "Product/1", "name": "Chai", "type": "Product", "properties": {"unitPrice": 18.0}}
    assert TEXT2CYPHER.score(Case("q", ("-",), ("Chai",), rows=((node,),)))[:2] == (1.0, 1.0)
    assert TEXT2CYPHER.score(Case("q", ("-",), ("18",), rows=((node,),)))[:2] == (0.0, 0.0)


PUBLISHED = {
    "Accuracy": "accuracy",
    "Hit": "hit",
    "Hit1": "hits@1",
    "F1": "f1",
    "Precision": "precision",
    "Recall": "recall",
}
"""Our name of each published figure."""


def case(answers: list[str], gold: list[str]) -> Case:
    """Return a case of names alone."""
    return Case("q", tuple(gold), tuple(answers))


@pytest.mark.parametrize(
    ("text", "normal"), [("The U.S.A.!", "usa"), ("a  cat  and an   axe", "cat and axe"), ("Éire", "éire"), ("!!!", "")]
)
def test_letters_are_normalised_as_published(text: str, normal: str) -> None:
    assert normalise_letters(text) == normal


def test_a_gold_answer_matches_within_a_word() -> None:
    assert ROG.score(case(["Tirana"], ["Iran"])) == (1.0, 1.0, 1.0, 1.0, 1.0)


def test_precision_of_rog_exceeds_one_where_a_line_holds_two_gold_answers() -> None:
    # One line, two golds in it: precision 2 / 1, recall 2 / 2, F1 = 2 · 2 · 1 / 3.
    assert ROG.score(case(["Rome and Oslo"], ["Rome", "Oslo"])) == pytest.approx((1.0, 1.0, 2.0, 1.0, 4 / 3))


def test_a_gold_answer_may_be_put_together_of_two_lines() -> None:
    assert ROG.score(case(["New", "York"], ["New York"])) == pytest.approx((1.0, 1.0, 0.5, 1.0, 2 / 3))
    # GCR looks for precision in each line by itself.
    assert GCR.score(case(["New", "York"], ["New York"])) == (1.0, 1.0, 0.0, 1.0, 0.0)


def test_hits_at_1_of_gnn_rag_looks_at_the_first_line() -> None:
    assert GNN_RAG.score(case(["The answers are:", "Rome"], ["Rome"]))[-1] == 0.0
    assert GNN_RAG.score(case(["It is Rome."], ["Rome"]))[-1] == 1.0


def test_gcr_counts_a_gold_answer_once_and_lines_that_hold_any() -> None:
    # Golds rome, oslo (rome twice); lines 2 of 3 hold one; recall 1 of 2.
    assert GCR.score(case(["Rome", "in Rome", "Lima"], ["Rome", "Rome", "Oslo"])) == pytest.approx(
        (0.5, 1.0, 2 / 3, 0.5, 4 / 7)
    )


@pytest.mark.parametrize("name", ["gnnrag-lmsr_webqsp_llama2-chat", "gnnrag-sbert_webqsp_rog", "gnnrag-sbert_cwq_rog"])
def test_published_figures_are_recomputed_to_the_last_digit(real_data: Path, name: str) -> None:
    folder = real_data / "metric_parity"
    cases = read_external(folder / f"{name}.predictions.jsonl.xz")
    [scores] = score_cases(cases, [GNN_RAG], resamples=10)
    expected = dict(re.findall(r"(\w+): ([\d.]+)", (folder / f"{name}.expected.txt").read_text("utf-8")))
    assert expected.keys() == PUBLISHED.keys()
    for published, ours in PUBLISHED.items():
        assert 100 * scores.estimates[ours].value == pytest.approx(float(expected[published]), abs=1e-9), published
    assert (scores.n, scores.skipped, scores.failed) == (len(cases), 0, 0)


def test_published_figures_of_each_question_are_recomputed(real_data: Path) -> None:
    path = real_data / "metric_parity" / "gnnrag-sbert_webqsp_rog.predictions.jsonl.xz"
    records = [json.loads(line) for line in lzma.decompress(path.read_bytes()).decode("utf-8").splitlines()]
    for record, one in zip(records, read_external(path), strict=True):
        published = [record[key] for key in ("acc", "hit", "precission", "recall", "f1", "hit1")]
        assert GNN_RAG.score(one) == pytest.approx(published, abs=1e-12), record["id"]


def test_a_file_of_the_tog_family_scores_as_its_own_metric_has_it(real_data: Path) -> None:
    from byokg.evaluation.datasets.folder import Folder

    asked = Folder(real_data / "webqsp").examples()
    notes: list[str] = []
    path = real_data / "foreign_predictions" / "pog_webqsp_gpt-3.5.jsonl.xz"
    cases = read_external(path, asked, note=notes.append)
    tog, strict = score_cases(cases, [PROFILES["tog"], PROFILES["strict"]], resamples=2)
    assert (tog.n, round(100 * tog.estimates["hit"].value, 1)) == (1628, 79.5)
    assert round(100 * strict.estimates["hit"].value, 1) == 59.2
    assert len(notes) == 1
    assert "11 questions are not in the data set" in notes[0]


def test_subgraphrag_reads_marked_lines_and_pairs_each_gold_answer_with_one() -> None:
    # Lines: new york city, york. Golds longest first: new york takes the first, york the second, oslo none.
    said = ("Let me think about York.", "ans: New York City", "ans: York", "ans: york")
    case = Case("q", ("York", "New York", "Oslo"), said)
    hit, precision, recall, f1, micro, em = SUBGRAPHRAG.score(case)
    assert (hit, precision, recall, em) == pytest.approx((1.0, 1.0, 2 / 3, 0.0))
    assert f1 == micro == pytest.approx(4 / 5)
    assert SUBGRAPHRAG.weigh(case) == 5.0


def test_a_written_text_without_marked_lines_has_no_answers_for_subgraphrag() -> None:
    assert SUBGRAPHRAG.score(Case("q", ("York",), ("York",), reply="York")) == (0.0,) * 6
    assert SUBGRAPHRAG.score(Case("q", ("York",), ("York",))) == (1.0,) * 6


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("The answer is {New York}, I think", 1.0),
        ("{ne wyork} or {Oslo}", 1.0),
        ("{York}", 1.0),  # part of the gold answer
        ("{Oslo}, not New York", 0.0),  # only the braces count
        ("It is New York.", 1.0),
        ("", 0.0),
        ("{}", 0.0),
    ],
)
def test_tog_compares_what_stands_in_the_first_braces(reply: str, right: float) -> None:
    assert TOG.score(Case("q", ("New York",), (reply,))) == (right,)


def test_structgpt_takes_aliases() -> None:
    case = Case("q", ("New York", "Oslo"), ("They live in the Big Apple",), aliases=(("Big Apple", ""), ()))
    assert STRUCTGPT.score(case) == (1.0,)
    assert STRUCTGPT.score(Case("q", ("New York",), ("newyork",))) == (0.0,)


def test_webqsp_takes_the_reading_that_fits_best() -> None:
    # Said a, b. Against {a, b, c}: P 1, R 2/3, F1 4/5. Against {a}: P 1/2, R 1, F1 2/3.
    case = Case("q", ("A",), ("A", "B"), answer_ids=("a", "b"), gold_ids=("a",), parses=(("a",), ("a", "b", "c")))
    assert WEBQSP_OFFICIAL.score(case) == pytest.approx((4 / 5, 1.0, 2 / 3, 0.0))


def test_webqsp_counts_nothing_said_of_nothing_expected_as_right() -> None:
    assert WEBQSP_OFFICIAL.score(Case("q", ("A",), parses=((), ("a",)))) == (1.0, 1.0, 1.0, 1.0)
    assert WEBQSP_OFFICIAL.score(Case("q", ("A",), gold_ids=("a",))) == (0.0, 1.0, 0.0, 0.0)


def test_a_value_that_is_no_node_stands_under_its_name() -> None:
    case = Case("q", ("1999",), ("1999", "Oslo"), answer_ids=(None, "o"), gold_ids=("1999",))
    assert case.ranked_ids == ("1999", "o")
    assert WEBQSP_OFFICIAL.score(case) == pytest.approx((2 / 3, 0.5, 1.0, 0.0))


def test_names_are_not_scored() -> None:
    names = Case("q", ("Oslo",), ("Oslo",), gold_ids=("o",))
    assert not WEBQSP_OFFICIAL.scorable(names)
    # Nothing was predicted, which is scored as such.
    assert WEBQSP_OFFICIAL.scorable(Case("q", ("Oslo",), gold_ids=("o",)))


def test_cron_looks_for_a_gold_answer_among_the_first_ten() -> None:
    years = tuple(str(year) for year in range(1990, 2001))
    assert CRON.score(Case("q", ("1999",), years)) == (0.0, 1.0)
    assert CRON.score(Case("q", ("2000",), years)) == (0.0, 0.0)
    assert CRON.score(Case("q", ("Oslo",), ("Rome",), answer_ids=("o",), gold_ids=("o",))) == (1.0, 1.0)


def test_cron_breaks_down_by_type_difficulty_and_answer() -> None:
    case = Case("q", ("1999",), type="time_join", answer_type="time")
    assert CRON.groups(case) == ("time_join", "complex", "time answer")
    assert CRON.groups(Case("q", ("1999",), type="simple_time")) == ("simple_time", "simple")
    assert CRON.groups(Case("q", ("1999",), type="2-hop")) == ("2-hop",)


def test_stark_scores_a_ranking_of_nodes() -> None:
    # Gold n3 (rank 4) and n30 (rank 31, beyond 20): hits@1 0, hits@5 1, recall@20 1/2, mrr 1/4.
    ids = tuple(f"n{number}" for number in range(40))
    case = Case("q", ("x", "y"), ids, answer_ids=ids, gold_ids=("n30", "n3"))
    assert STARK.score(case) == (0.0, 1.0, 0.5, 0.25)


def test_stark_does_not_score_names() -> None:
    assert not STARK.scorable(Case("q", ("Oslo",), ("Oslo",), gold_ids=("o",)))
    assert STARK.scorable(Case("q", ("Oslo",), gold_ids=("o",)))
