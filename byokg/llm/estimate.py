"""What a run will take, from a sample of its questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from byokg.errors import ConfigError
from byokg.types import Consumption, Spending

_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t, two-sided 95 %, for 1 to 30 degrees of freedom."""


@dataclass(frozen=True)
class Range:
    """What to expect, and a 95 % prediction interval; both ends equal the sample where nothing is left to guess."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class RunEstimate:
    """What all questions of a run will take, as if no reply were recorded yet."""

    sampled: int
    questions: int
    calls: Range
    input_tokens: Range
    output_tokens: Range
    usd: Range
    unpriced: bool
    """Some calls were of models whose price is not known; `usd` leaves them out."""


def estimate_run(sample: Sequence[Spending], questions: int) -> RunEstimate:
    """Estimate a run from the questions that were answered so far, which are part of it.

    Replayed calls count as if they had been asked, so an estimate does not depend on what is recorded already.

    Args:
        sample: what each sampled question took, at least one; drawn at random, or the figures are off.
        questions: of the whole run, at least as many as were sampled.

    Raises:
        ConfigError: the sample is empty, or larger than the run.
    """
    if not 1 <= len(sample) <= questions:
        raise ConfigError(f"{questions:,} questions cannot be estimated from {len(sample):,}; sample between 1 and all")
    took = [each.asked + each.replayed for each in sample]

    def extrapolated(measure: Callable[[Consumption], float]) -> Range:
        return _predicted([float(measure(each)) for each in took], questions)

    return RunEstimate(
        len(sample),
        questions,
        extrapolated(lambda each: each.calls),
        extrapolated(lambda each: each.input_tokens),
        extrapolated(lambda each: each.output_tokens),
        extrapolated(lambda each: each.usd),
        any(each.unpriced for each in took),
    )


def estimate_text(estimate: RunEstimate) -> str:
    """Return an estimate in a few lines."""
    lines = [
        f"{estimate.questions:,} questions, estimated from {estimate.sampled:,} (95 % interval in brackets):",
        f"  calls       {_shown(estimate.calls, _count)}",
        f"  tokens in   {_shown(estimate.input_tokens, _count)}",
        f"  tokens out  {_shown(estimate.output_tokens, _count)}",
    ]
    if estimate.unpriced and estimate.usd.expected == 0:
        lines.append("  US dollars  unknown: the model has no price; add it with prices=FILE")
    else:
        some = ", without models that have no price" if estimate.unpriced else ""
        lines.append(f"  US dollars  {_shown(estimate.usd, dollars)}{some}")
    return "\n".join(lines)


def dollars(usd: float) -> str:
    """Return an amount with enough digits to tell it from nothing."""
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}" if usd >= 0.0001 else "<$0.0001"


def _predicted(values: Sequence[float], total: int) -> Range:
    """Return the sum over `total` draws of which `values` are known.

    The rest is predicted with the uncertainty of the mean and the scatter of the questions themselves (normal theory).
    """
    n, rest = len(values), total - len(values)
    known = sum(values)
    mean = known / n
    expected = known + rest * mean
    if rest == 0:
        return Range(expected, expected, expected)
    if n == 1:
        return Range(expected, known, math.inf)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    t = _T95[n - 2] if n - 1 <= len(_T95) else 1.96 + 2.5 / (n - 1)
    half = t * deviation * math.sqrt(rest * (1 + rest / n))
    return Range(expected, max(known, expected - half), expected + half)


def _shown(found: Range, form: Callable[[float], str]) -> str:
    if found.low == found.high:
        return form(found.expected)
    high = "any number" if found.high == math.inf else form(found.high)
    return f"{form(found.expected)} ({form(found.low)} to {high})"


def _count(value: float) -> str:
    return f"{value:,.0f}"
