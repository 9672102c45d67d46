"""`cron` and `stark`: what stands where in a ranking."""

from __future__ import annotations

from collections.abc import Sequence

from byokg.evaluation.cases import Case
from byokg.evaluation.metrics import UNSTATED, normalise
from byokg.evaluation.profiles.base import Metric, Profile

_SIMPLE = ("simple_entity", "simple_time")
_COMPLEX = ("before_after", "first_last", "time_join")


def _has_ids(case: Case) -> bool:
    """Tell whether both sides have ids; of nothing predicted there are none to have."""
    return bool(case.gold_ids) and bool(case.answer_ids or not case.answers)


def _first_right(ranking: Sequence[str], gold: set[str]) -> int:
    """Return the rank, from 1, of the first gold answer; 0 where there is none."""
    return next((rank for rank, one in enumerate(ranking, start=1) if one in gold), 0)


def _cron(case: Case) -> tuple[float, ...]:
    if _has_ids(case):
        rank = _first_right(case.ranked_ids, set(case.gold_ids))
    else:
        ranking = list(dict.fromkeys(map(normalise, case.answers)))
        rank = _first_right(ranking, set(map(normalise, case.gold)))
    return float(rank == 1), float(1 <= rank <= 10)


def _cron_groups(case: Case) -> tuple[str, ...]:
    """Return the type, whether it is simple or complex, and what kind of thing the answer is."""
    groups = [case.type or UNSTATED]
    if case.type in _SIMPLE:
        groups.append("simple")
    elif case.type in _COMPLEX:
        groups.append("complex")
    if case.answer_type:
        groups.append(f"{case.answer_type} answer")
    return tuple(groups)


def _stark(case: Case) -> tuple[float, ...]:
    gold, ranking = set(case.gold_ids), case.ranked_ids
    rank = _first_right(ranking, gold)
    found = len(gold.intersection(ranking[:20]))
    return float(rank == 1), float(1 <= rank <= 5), found / len(gold), 1 / rank if rank else 0.0


CRON = Profile(
    name="cron",
    source="CronQuestions (arXiv:2106.01515)",
    metrics=(
        Metric("hits@1", "a gold answer, by id or year, is the first of the ranking"),
        Metric("hits@10", "a gold answer is among the first ten"),
    ),
    score=_cron,
    groups=_cron_groups,
)

STARK = Profile(
    name="stark",
    source="STaRK (arXiv:2404.13207)",
    metrics=(
        Metric("hits@1", "the first node is a gold answer"),
        Metric("hits@5", "a gold answer is among the first five nodes"),
        Metric("recall@20", "share of gold answers among the first twenty nodes"),
        Metric("mrr", "1 over the rank of the first gold answer, 0 where there is none"),
    ),
    score=_stark,
    scorable=_has_ids,
    needs="ids of gold and predicted answers",
)
