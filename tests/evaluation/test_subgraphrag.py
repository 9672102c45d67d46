"""Tests of `byokg.evaluation.profiles`."""

from __future__ import annotations

import pytest

from byokg.evaluation.cases import Case
from byokg.evaluation.profiles import SUBGRAPHRAG


def test_subgraphrag_reads_marked_lines_and_pairs_each_gold_answer_with_one() -> None:
    # Lines: new york city, york. Golds longest first: new york takes the first, york the second, oslo none.
    said = ("Let me think about York.", "ans: New York City", "ans: York", "ans: york")
    case = Case("q", ("York", "New York", "Oslo"), said)
    hit, precision, recall, f1, micro, em = SUBGRAPHRAG.score(case)
    assert (hit, precision, recall, em) == pytest.approx((1.0, 1.0, 2 / 3, 0.0))
    assert f1 == micro == pytest.approx(4 / 5)
    assert SUBGRAPHRAG.weigh(case) == 5.0


def test_a_written_text_without_marked_lines_has_no_answers_for_subgraphrag() -> None:
    assert SUBGRAPHRAG.score(Case("q", ("York",), ("York",), written=True)) == (0.0,) * 6
    assert SUBGRAPHRAG.score(Case("q", ("York",), ("York",))) == (1.0,) * 6
