"""What a metric profile is: one publication's way of scoring a prediction, under its own name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Literal

from byokg.evaluation.cases import Case
from byokg.evaluation.metrics import UNSTATED

UNBOUNDED = inf


@dataclass(frozen=True)
class Metric:
    """One figure of a profile; every question's value is in [0, `top`]."""

    name: str
    """Equal names in different profiles are figures that publications call the same, however they are made."""
    meaning: str
    top: float = 1.0
    pooled: bool = False
    """Questions count by `Profile.weigh` in its mean, not each the same (micro average)."""


def _type_alone(case: Case) -> tuple[str, ...]:
    return (case.type or UNSTATED,)


def _always(case: Case) -> bool:
    return True


def _equally(case: Case) -> float:
    return 1.0


@dataclass(frozen=True)
class Profile:
    """A way of scoring. Profiles are compared side by side, so none of them changes a prediction."""

    name: str
    source: str
    """The publication whose figures are made this way."""
    metrics: tuple[Metric, ...]
    score: Callable[[Case], tuple[float, ...]]
    """Return one value for each of `metrics`. Asked only about cases that have a prediction and are `scorable`."""
    nulls: Literal["zero", "skipped"] = "zero"
    """What becomes of a question without a prediction. Skipping is what some publications do: it makes the denominator
    smaller, so the number skipped stands beside the figure."""
    scorable: Callable[[Case], bool] = _always
    """Tell whether a case has what this profile compares."""
    needs: str = ""
    """What a case lacks that is not scorable."""
    weigh: Callable[[Case], float] = _equally
    """How much a question counts in pooled metrics; above 0."""
    groups: Callable[[Case], tuple[str, ...]] = _type_alone
    """The rows of the breakdown in which a question counts."""
