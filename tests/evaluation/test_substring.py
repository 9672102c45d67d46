"""Tests of `byokg.evaluation.profiles`, among them the published figures of three published files."""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path

import pytest

from byokg.evaluation.cases import Case, read_external
from byokg.evaluation.profiles import GCR, GNN_RAG, ROG, normalise_letters
from byokg.evaluation.scoring import score_cases

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
    ("text", "normal"),
    [("The U.S.A.!", "usa"), ("a  cat  and an   axe", "cat and axe"), ("Éire", "éire"), ("!!!", "")],
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
