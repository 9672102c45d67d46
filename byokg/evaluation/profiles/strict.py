"""`strict`, the default: whole normalised names compared as sets; see `byokg.evaluation.metrics`."""

from __future__ import annotations

from dataclasses import astuple

from byokg.evaluation.cases import Case
from byokg.evaluation.metrics import score
from byokg.evaluation.profiles.base import Metric, Profile


def _score(case: Case) -> tuple[float, ...]:
    return astuple(score(case.answers, case.gold))


STRICT = Profile(
    name="strict",
    source="byokg",
    metrics=(
        Metric("hit", "any predicted answer equals a gold answer"),
        Metric("hits@1", "the first predicted answer equals a gold answer"),
        Metric("precision", "right answers over distinct predicted answers"),
        Metric("recall", "right answers over distinct gold answers"),
        Metric("f1", "harmonic mean of the question's precision and recall"),
        Metric("em", "predicted and gold answers are equal as sets"),
    ),
    score=_score,
)
