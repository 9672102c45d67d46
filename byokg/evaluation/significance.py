"""Intervals of means over questions, and tests of the difference between two systems on the same questions.

Related questions (paraphrases of one, instances of one template) form a cluster: a system tends to get all of them
right or none, so they carry less information than as many independent questions. Intervals draw whole clusters, tests
swap the two systems of whole clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

RESAMPLES = 1000

PAIRED_RESAMPLES = 10_000

_Z = 1.959963984540054
"""Of a 95 % interval."""

_DRAWN_AT_ONCE = 1 << 13
"""Rows times resamples that are held in memory."""

_SWAPS_AT_ONCE = 1 << 20
"""Clusters times draws that are held in memory."""

_ROUNDING = 1e-12
"""A swap that leaves the same difference may differ from it in the last bits of a sum."""


def cluster_codes(clusters: Sequence[str]) -> Codes:
    """Return the number of each question's cluster, (N,), as they come; a question with an empty name stands alone."""
    numbers: dict[object, int] = {}
    return np.array(
        [numbers.setdefault(name or position, len(numbers)) for position, name in enumerate(clusters)], np.intp
    )


def effective_n(codes: Codes) -> float:
    """Return the effective number of independent questions, if each cluster is answered alike.

    Source: Kish, "Survey Sampling" (1965): the square of the sum of weights over the sum of their squares.
    """
    sizes = np.unique(codes, return_counts=True)[1].astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share of n independent questions.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
    """
    middle, spread = share + _Z**2 / (2 * n), _Z * sqrt(share * (1 - share) / n + _Z**2 / (4 * n * n))
    low, high = ((middle + side * spread) / (1 + _Z**2 / n) for side in (-1, 1))
    return (0.0 if share == 0 else low), (1.0 if share == 1 else high)


def intervals(
    table: Values, seed: int, resamples: int, weights: Values, codes: Codes | None = None
) -> tuple[Values, Values]:
    """Return the ends of the 95 % interval of each column's mean, (M,) each; NaN for a column without weight.

    Those of `bootstrap`, whose arguments these are; Wilson's for a column that is 0 throughout, or 1 throughout.
    """
    low, high = bootstrap(table, seed, resamples, weights, codes)
    for column in range(table.shape[1]):
        counted = weights[:, column] > 0
        seen = table[counted, column]
        if len(seen) and seen[0] in (0.0, 1.0) and (seen == seen[0]).all():
            independent = effective_n(codes[counted]) if codes is not None else float(len(seen))
            low[column], high[column] = wilson(float(seen[0]), independent)
    return low, high


def bootstrap(
    table: Values, seed: int = 0, resamples: int = RESAMPLES, weights: Values | None = None, codes: Codes | None = None
) -> tuple[Values, Values]:
    """Return the 2.5th and 97.5th percentile of each column's mean under resampling of the rows.

    Arguments as for `resample_means`.

    Returns:
        Lower and upper ends, (M,) each; NaN for a column without weight.
    """
    means = resample_means(table, seed, resamples, weights, codes)
    if not np.isnan(means).any():
        low, high = np.quantile(means, (0.025, 0.975), axis=0)
        return low, high
    ends = np.full((2, table.shape[1]), np.nan)
    for column in range(table.shape[1]):
        known = means[~np.isnan(means[:, column]), column]
        if len(known):
            ends[:, column] = np.quantile(known, (0.025, 0.975))
    return ends[0], ends[1]


def resample_means(
    table: Values, seed: int = 0, resamples: int = RESAMPLES, weights: Values | None = None, codes: Codes | None = None
) -> Values:
    """Return each column's mean in every resample of the rows, or of the clusters that they form.

    A resample is held as how often it drew each row, a few at a time, so memory stays at O(N); all columns see the same
    resamples.

    Args:
        table: (N, M) scores, N questions by M metrics.
        seed: of the generator.
        resamples: R, how many times as many rows (clusters) as there are are drawn with replacement.
        weights: (N, M), how much each score counts in its column's mean, 0 or more; None weighs all equally.
        codes: (N,), the cluster of each row, as `cluster_codes` counts them; None draws rows.

    Returns:
        (R, M); NaN if a resample has no weight in a column.
    """
    generator = np.random.default_rng(seed)
    clustered = codes is not None and len(np.unique(codes)) < len(codes)
    if clustered and weights is None:
        weights = np.ones_like(table)
    columns = table.shape[1]
    summed, kinds = table, np.zeros(0, np.intp)
    if weights is not None:
        # Most columns are weighed alike: each kind of weights is summed once.
        distinct, kinds = np.unique(weights, axis=1, return_inverse=True)
        summed = np.hstack((table * weights, distinct))
    if clustered and codes is not None:
        summed = cluster_sums(summed, codes)
    n = len(summed)
    by_column = np.ascontiguousarray(summed.T)
    means = np.empty((resamples, columns))
    at_once = max(1, _DRAWN_AT_ONCE // n)
    for start in range(0, resamples, at_once):
        rows = min(at_once, resamples - start)
        places = generator.integers(0, n, size=(rows, n), dtype=np.int32) + n * np.arange(rows, dtype=np.int32)[:, None]
        drawn = np.bincount(places.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)
        # Not a matrix product: on a busy machine its threads wait for each other, and their sums differ in last bits.
        sums = np.einsum("cn,rn->rc", by_column, drawn)
        total = sums[:, columns:][:, kinds.ravel()] if weights is not None else np.full((rows, columns), float(n))
        held = means[start : start + rows]
        held[:] = np.nan
        np.divide(sums[:, :columns], total, out=held, where=total > 0)
    return means


def cluster_sums(values: Values, codes: Codes) -> Values:
    """Return the sum of the rows of each cluster, (C, M), in the order of the clusters' numbers."""
    numbers = np.unique(codes, return_inverse=True)[1].ravel()
    sums = np.zeros((int(numbers.max()) + 1, values.shape[1]))
    np.add.at(sums, numbers, values)
    return sums


@dataclass(frozen=True)
class Difference:
    """The mean of the second system less that of the first, in the metric's own unit."""

    value: float
    ci95: tuple[float, float]
    """Percentile interval of the paired bootstrap."""
    p: float
    """Two-sided, of the test named: chance of a difference as large if each cluster's two systems could be swapped."""
    test: str
    """`McNemar` (exact), where every value is 0 or 1 and no question belongs with others; else `permutation`, 10,000
    draws of swaps of whole clusters."""
    won: int
    """Questions on which the second system has the higher value."""
    lost: int
    clusters: tuple[int, int]
    """Clusters on which the second system has the higher sum, and the lower one; p rests on these alone."""


def mcnemar(won: int, lost: int) -> float:
    """Return the two-sided exact p value of McNemar's test, in (0, 1]: at most 5 % of null draws have one up to .05.

    Args:
        won: questions that only the second system has right; each stands alone.
        lost: questions that only the first has right.

    Source: McNemar, "Note on the sampling error of the difference between correlated proportions or percentages",
        Psychometrika 12 (1947). Not mid-p, which on 6 to 100 such questions rejects in up to 7.7 % of null draws.
    """
    n = won + lost
    tail, at = 0, 1  # whole numbers, so that thousands of questions lose nothing: places of the binomial distribution
    for k in range(min(won, lost) + 1):
        tail, at = tail + at, at * (n - k) // (k + 1)
    return min(1.0, 2 * tail / (1 << n))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p values of several comparisons corrected for their number, in the same order.

    Source: Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6
        (1979).
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = highest
    return corrected


def paired_difference(
    first: Values,
    second: Values,
    weights: tuple[Values, Values],
    seed: int = 0,
    resamples: int = PAIRED_RESAMPLES,
    codes: Codes | None = None,
) -> list[Difference]:
    """Compare two systems on the same questions, metric by metric.

    Each resample draws clusters, and with them what both systems made of their questions. The test swaps the two
    systems of each cluster, or does not, at random.

    Args:
        first: (N, M) values of the first system, N questions by M metrics.
        second: likewise of the second, the same questions in the same order.
        weights: (N, M) each, what each value counts in its mean.
        seed: of the bootstrap and of the permutations.
        resamples: drawn of each.
        codes: (N,), the cluster of each question, as `cluster_codes` counts them; None if each stands alone.

    Returns:
        One difference for each metric.

    Source: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993); for the test Smucker, Allan and Carterette,
        "A comparison of statistical significance tests for information retrieval evaluation", CIKM 2007.
    """
    codes = np.arange(len(first)) if codes is None else codes
    columns = first.shape[1]
    means = resample_means(np.hstack((first, second)), seed, resamples, np.hstack(weights), codes)
    drawn = means[:, columns:] - means[:, :columns]
    differences = []
    for column in range(columns):
        one, other = first[:, column], second[:, column]
        counts = weights[0][:, column], weights[1][:, column]
        value = _mean(other, counts[1]) - _mean(one, counts[0])
        won, lost = int((other > one).sum()), int((other < one).sum())
        p, test = chance(one, other, counts, codes, seed, resamples)
        gained = cluster_sums((other * counts[1] - one * counts[0])[:, None], codes)[:, 0]
        clusters = int((gained > _ROUNDING).sum()), int((gained < -_ROUNDING).sum())
        known = drawn[~np.isnan(drawn[:, column]), column]
        low, high = np.quantile(known, (0.025, 0.975)) if len(known) else (0.0, 0.0)
        differences.append(Difference(value, (float(low), float(high)), p, test, won, lost, clusters))
    return differences


def chance(
    one: Values, other: Values, weights: tuple[Values, Values], codes: Codes, seed: int, draws: int
) -> tuple[float, str]:
    """Return the p value of one metric, and which test it is of; arguments as for `paired_difference`, (N,) each."""
    alone = len(np.unique(codes)) == len(codes)
    if alone and np.isin((one, other, *weights), (0.0, 1.0)).all():
        return mcnemar(int((other > one).sum()), int((other < one).sum())), "McNemar"
    return _permuted(one, other, weights, codes, seed, draws), "permutation"


def _permuted(one: Values, other: Values, weights: tuple[Values, Values], codes: Codes, seed: int, draws: int) -> float:
    """Return the share of random swaps with a difference at least as far from 0 as the observed one, in (0, 1].

    Of two swaps with the same difference, the one with a system ahead on more clusters counts as further: differences
    that are whole numbers of questions have many ties, and the test would seldom reject.

    Source: Cohen and Sackrowitz, "Methods of reducing loss of efficiency due to discreteness of distributions",
        Statistical Methods in Medical Research 12 (2003), on a second statistic that breaks ties of the first.
    """
    both = np.column_stack((one * weights[0], weights[0], other * weights[1], weights[1]))
    sums, total = cluster_sums(both, codes), both.sum(axis=0)
    gains = sums[:, 2:] - sums[:, :2]  # what the first has from a swap
    moved = np.column_stack((gains, np.sign(gains[:, 0])))[gains.any(axis=1)]

    def apart(gain: Values) -> tuple[Values, Values]:
        mine, theirs = total[:2] + gain[:, :2], total[2:] - gain[:, :2]
        known = (mine[:, 1] > 0) & (theirs[:, 1] > 0)
        means = [np.divide(sides[:, 0], sides[:, 1], out=np.zeros(len(gain)), where=known) for sides in (mine, theirs)]
        return np.abs(means[1] - means[0]), np.abs(moved[:, 2].sum() - 2 * gain[:, 2])

    [observed], [ahead] = apart(np.zeros((1, 3)))
    generator = np.random.default_rng(seed)
    as_far, at_once = 0, max(1, _SWAPS_AT_ONCE // max(len(moved), 1))
    for start in range(0, draws, at_once):
        swaps = generator.integers(0, 2, size=(min(at_once, draws - start), len(moved)), dtype=np.int8)
        distance, lead = apart(np.einsum("rc,cn->rn", swaps.astype(np.float64), moved))
        level = np.abs(distance - observed) <= _ROUNDING
        as_far += int(np.where(level, lead >= ahead, distance > observed).sum())
    # One is added to both, so that no finite number of draws makes the chance none.
    return (1 + as_far) / (draws + 1)


def _mean(values: Values, weights: Values) -> float:
    total = float(weights.sum())
    return float(values @ weights) / total if total else 0.0


_BINS = 10
"""Of equal width, in which a calibration error compares probabilities with shares."""


def auroc(scores: Values, right: Values) -> float:
    """Return the probability that a right answer has a higher score than a wrong one; nan if all are right or all
    wrong.

    Args:
        scores: (N,) score of each answer, higher for surer.
        right: (N,) 1 for a right answer, else 0.

    Source: the Mann-Whitney U statistic; ties count half.
    """
    yes, no = scores[right > 0], scores[right <= 0]
    if not len(yes) or not len(no):
        return float("nan")
    order = np.sort(no)
    below, upto = np.searchsorted(order, yes, "left"), np.searchsorted(order, yes, "right")
    return float((below + upto).mean() / 2 / len(no))


def calibration_error(chances: Values, right: Values) -> float:
    """Return the expected calibration error: mean distance of probabilities from the shares that were right, in [0, 1].

    Args:
        chances: (N,) probabilities in [0, 1].
        right: (N,) 1 for a right answer, else 0.

    Source: Naeini, Cooper and Hauskrecht, "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015.
    """
    place = np.minimum((chances * _BINS).astype(np.intp), _BINS - 1)
    gaps = np.bincount(place, chances - right, _BINS)
    return float(np.abs(gaps).sum() / max(1, len(chances)))
