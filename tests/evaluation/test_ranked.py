"""Tests of `byokg.evaluation.profiles`."""

from __future__ import annotations

from byokg.evaluation.cases import Case
from byokg.evaluation.profiles import CRON, STARK


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
