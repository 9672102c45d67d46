"""Whether two systems that answered the same questions differ by more than chance."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt

from byokg.evaluation.metrics import resampled_means

RESAMPLES = 10_000

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """The mean of the second system less that of the first, in the metric's own unit."""

    value: float
    ci95: tuple[float, float]
    """Percentile interval of the paired bootstrap."""
    p: float
    """Two-sided: McNemar's exact test where every value is 0 or 1, else the paired bootstrap."""
    test: str
    won: int
    """Questions on which the second system has the higher value."""
    lost: int


def mcnemar(won: int, lost: int) -> float:
    """Return the two-sided p value of McNemar's exact test, in (0, 1].

    The binomial probability, with one half each, of a split of the questions that only one of two systems has right at
    least as uneven as this one. Questions that both have right, or neither, say nothing.

    Args:
        won: questions that only the second system has right.
        lost: those that only the first has right.

    Source: McNemar, "Note on the sampling error of the difference between correlated proportions or percentages",
        Psychometrika 12 (1947); exact form.
    """
    n = won + lost
    tail = sum(comb(n, k) for k in range(min(won, lost) + 1))
    return min(1.0, tail / (1 << max(n - 1, 0)))


def paired_difference(
    first: Values, second: Values, weights: tuple[Values, Values], seed: int = 0, resamples: int = RESAMPLES
) -> list[Difference]:
    """Compare two systems on the same questions, metric by metric.

    Each resample draws questions, and with them what both systems made of them. The p value of the paired bootstrap is
    the share of resamples whose difference is as far from the observed one as that is from none.

    Args:
        first: (N, M) values of the first system, N questions by M metrics.
        second: likewise of the second, the same questions in the same order.
        weights: (N, M) each, what each value counts in its mean.
        seed: of the bootstrap.
        resamples: drawn.

    Returns:
        One difference for each metric.

    Source: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), "Hypothesis testing with the bootstrap".
    """
    columns = first.shape[1]
    means = resampled_means(np.hstack((first, second)), seed, resamples, np.hstack(weights))
    drawn = means[:, columns:] - means[:, :columns]
    differences = []
    for column in range(columns):
        one, other = first[:, column], second[:, column]
        value = _mean(other, weights[1][:, column]) - _mean(one, weights[0][:, column])
        known = drawn[~np.isnan(drawn[:, column]), column]
        won, lost = int((other > one).sum()), int((other < one).sum())
        if np.isin((one, other), (0.0, 1.0)).all():
            p, test = mcnemar(won, lost), "McNemar"
        else:
            # One is added to both, so that no finite number of resamples makes the chance none.
            p, test = (1 + int((np.abs(known - value) >= abs(value)).sum())) / (len(known) + 1), "bootstrap"
        low, high = np.quantile(known, (0.025, 0.975)) if len(known) else (0.0, 0.0)
        differences.append(Difference(value, (float(low), float(high)), p, test, won, lost))
    return differences


def _mean(values: Values, weights: Values) -> float:
    total = float(weights.sum())
    return float(values @ weights) / total if total else 0.0
