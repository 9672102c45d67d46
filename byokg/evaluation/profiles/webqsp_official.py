"""`webqsp-official`: sets of ids, against whichever annotated reading of the question fits best."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from byokg.evaluation.cases import Case
from byokg.evaluation.profiles.base import Metric, Profile


def _agreement(said: AbstractSet[str], gold: AbstractSet[str]) -> tuple[float, float, float]:
    """Return F1, precision and recall; what is empty has nothing wrong in it."""
    if not gold:
        return (0.0, 0.0, 1.0) if said else (1.0, 1.0, 1.0)
    if not said:
        return 0.0, 1.0, 0.0
    matched = len(said & gold)
    return 2 * matched / (len(said) + len(gold)), matched / len(said), matched / len(gold)


def _score(case: Case) -> tuple[float, ...]:
    said = set(case.ranked_ids)
    best = max((_agreement(said, set(parse)) for parse in case.parses or (case.gold_ids,)), key=lambda each: each[0])
    return (*best, float(best[0] == 1.0))


def _has_ids(case: Case) -> bool:
    """Tell whether both sides have ids; of nothing predicted there are none to have."""
    return bool(case.gold_ids or case.parses) and bool(case.answer_ids or not case.answers)


WEBQSP_OFFICIAL = Profile(
    name="webqsp-official",
    # Differs: the official script leaves out questions without a prediction; here they score zero.
    source="WebQSP (Yih et al., ACL 2016, the script that comes with the data)",
    metrics=(
        Metric("f1", "the best F1 over the readings"),
        Metric("precision", "precision for that reading; 1 where nothing is predicted"),
        Metric("recall", "recall for that reading"),
        Metric("em", "the best F1 is 1"),
    ),
    score=_score,
    scorable=_has_ids,
    needs="ids of gold and predicted answers",
)
