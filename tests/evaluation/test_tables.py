"""Tests of `byokg.evaluation.tables`."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from rich.console import Console

from byokg.evaluation.metrics import ZERO, Metrics, QuestionScores, Retrieved, Scores, aggregate
from byokg.evaluation.tables import metrics_tables, usage_table
from byokg.types import Consumption, Spending


def shown(metrics: Metrics, width: int = 80) -> str:
    """Return the tables as plain text."""
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as capture:
        console.print(metrics_tables(metrics, "offline on [atlas] test"))
    return capture.get()


RIGHT = Scores(1.0, 1.0, 0.5, 1.0, 2 / 3, 0.0)


def test_all_metrics_are_shown_with_their_interval_and_the_failures() -> None:
    text = shown(aggregate([QuestionScores(RIGHT)] * 3))
    assert "offline on [atlas] test" in text
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert {"Hit 100.0 43.9 to 100.0", "Hits@1 100.0 43.9 to 100.0", "Recall 100.0 43.9 to 100.0"} <= set(lines)
    assert {"Prec. 50.0 50.0 to 50.0", "F1 66.7 66.7 to 66.7", "EM 0.0 0.0 to 56.1"} <= set(lines)
    assert "3 questions, 0 failed" in text
    assert "by type" not in text


def test_clusters_are_told_with_what_they_are_worth() -> None:
    pairs = [QuestionScores(RIGHT, cluster=f"pair {number // 2}") for number in range(20)]
    assert "20 questions in 10 clusters (effective n 10), 0 failed" in " ".join(shown(aggregate(pairs)).split())


def test_each_type_and_hop_count_has_its_line_within_80_columns() -> None:
    kinds = ["constraints", "superlative", "[temporal]"]
    outcomes = [QuestionScores(RIGHT, type=kind, hops=2) for kind in kinds] * 2000 + [QuestionScores(ZERO, failed=True)]
    text = shown(aggregate(outcomes, resamples=100))
    assert "6,001 questions, 1 failed" in text
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    for kind in kinds:
        (line,) = [line for line in lines if line.strip().startswith(kind)]
        assert line.split()[-8:] == ["2,000", "0", "100.0", "100.0", "50.0", "100.0", "66.7", "0.0"]
    (unstated, hopless) = [line for line in lines if line.strip().startswith("(none)")]
    assert unstated.split() == hopless.split() == ["(none)", "1", "1", "0.0", "0.0", "0.0", "0.0", "0.0", "0.0"]
    assert "±39.7" in text  # of one question


def test_linking_has_its_line_and_its_own_denominator_where_topics_had_to_be_found() -> None:
    all_of_them = shown(aggregate([QuestionScores(RIGHT, linked=0.5)] * 3))
    assert "Linked 50.0 50.0 to 50.0" in " ".join(all_of_them.split())
    assert "share of topic entities found, of all questions with any" in " ".join(all_of_them.split())
    assert "of the 1 questions with any" in " ".join(
        shown(aggregate([QuestionScores(RIGHT, linked=1.0), QuestionScores(RIGHT)])).split()
    )
    assert "Linked" not in shown(aggregate([QuestionScores(RIGHT)]))


def usage(questions: Sequence[Mapping[str, Spending]], unfinished: Mapping[str, Spending] | None = None) -> list[str]:
    """Return the lines of the table of what language models took, without those that only draw."""
    table = usage_table(questions, unfinished or {})
    assert table is not None
    console = Console(file=io.StringIO(), width=80)
    with console.capture() as capture:
        console.print(table)
    lines = [line.strip() for line in capture.get().splitlines()]
    return [" ".join(line.split()) for line in lines if line and not line.startswith("─")]


def test_calls_tokens_and_money_are_shown_per_question() -> None:
    link = Spending(Consumption(2, 3000, 200, 1000, 0, 1.5, 0.03), retries=1)
    answer = Spending(replayed=Consumption(1, 1000, 20, 0, 0, 0.5, 0.01))
    assert usage([{"link": link, "answer": answer}, {"link": link}], {"link": Spending(Consumption(1, usd=0.5))}) == [
        "language models, per question",
        "calls tokens in cached tokens out seconds US dollars",
        "link 2.00 3,000 1,000 200 1.50 $0.0300",
        "answer 0.50 500 0 10 0.25 $0.00",
        "all 2.50 3,500 1,000 210 1.75 $0.0300",
        "5 calls asked, 1 replayed, 2 retries, $0.5600 in all",
    ]


def test_a_model_without_a_price_is_said() -> None:
    asked = Spending(Consumption(1, 10, 1, unpriced=1), failed=1)
    assert usage([{"answer": asked}])[2:] == [
        "answer 2.00 10 0 1 0.00 unknown",
        "1 calls asked, 0 replayed, 1 failed, 1 of a model without a price",
    ]


def test_without_a_language_model_there_is_no_such_table() -> None:
    assert usage_table([{}, {}], {}) is None


def test_evidence_and_losses_are_shown_where_anything_was_retrieved() -> None:
    outcomes = [
        QuestionScores(RIGHT, type="x", linked=1.0, retrieved=Retrieved((1, 12), (1, 2), 250)),
        QuestionScores(ZERO, type="y", linked=0.0, retrieved=Retrieved((None,), None, 150)),
        QuestionScores(ZERO, type="y", failed=True),
    ]
    text = shown(aggregate(outcomes, resamples=100))
    lines = [line.split() for line in text.splitlines()]
    assert max(map(len, text.splitlines())) <= 80
    assert [line[2] for line in lines if line[:2] in (["first", "item"], ["first", "20"])] == ["16.7", "33.3"]
    assert ["support", "triples", "(1", "questions)", "50.0", "50.0", "to", "50.0"] in lines
    assert "200 tokens of graph context in the last prompt (median; mean 200)" in " ".join(text.split())
    assert ["all", "1", "1", "0", "0", "0", "0", "1"] in lines
    assert ["y", "1", "1", "0", "0", "0", "0", "0"] in lines
    assert "where questions are lost" not in shown(aggregate([QuestionScores(RIGHT, retrieved=Retrieved((None,)))]))
