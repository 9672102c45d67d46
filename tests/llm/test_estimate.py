"""Tests of `byokg.llm.usage`."""

from __future__ import annotations

import math
import random

import pytest

from byokg.errors import ConfigError
from byokg.llm.usage import Range, dollars, estimate_run, estimate_text
from byokg.types import Consumption, Spending


def question(calls: int, usd: float = 0.0, unpriced: int = 0) -> Spending:
    """Return what a question took: 1,000 tokens in and 50 out a call."""
    return Spending(Consumption(calls, 1000 * calls, 50 * calls, usd=usd, unpriced=unpriced))


def test_a_sample_is_extrapolated_with_an_interval() -> None:
    # Mean 4, variance 2 (n - 1); 96 left: t(3 df) = 3.182, half width 3.182 * sqrt(2) * sqrt(96 * (1 + 96 / 4))
    estimate = estimate_run([question(3), question(3), question(4), question(6)], 100)
    half = 3.182 * math.sqrt(2) * math.sqrt(96 * 25)
    assert estimate.calls.expected == 400
    assert estimate.calls.high == pytest.approx(400 + half)
    assert estimate.calls.low == pytest.approx(400 - half)
    assert estimate.input_tokens.expected == 400_000 and estimate.output_tokens.expected == 20_000
    assert (estimate.sampled, estimate.questions, estimate.unpriced) == (4, 100, False)


def test_questions_that_are_all_alike_leave_nothing_open() -> None:
    assert estimate_run([question(4, 0.5)] * 3, 10).usd == Range(5.0, 5.0, 5.0)


def test_a_run_that_was_sampled_whole_is_known() -> None:
    assert estimate_run([question(1), question(5)], 2).calls == Range(6, 6, 6)


def test_one_question_gives_no_upper_end() -> None:
    assert estimate_run([question(4)], 10).calls == Range(40, 4, math.inf)


def test_replayed_calls_count_as_if_they_were_asked() -> None:
    asked = Consumption(2, 2000, 100, usd=1.0)
    assert estimate_run([Spending(replayed=asked), Spending(asked)], 10).usd.expected == 10.0


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    chance = random.Random(0)
    inside = 0
    for _ in range(400):
        run = [question(chance.choice([2, 3, 3, 4, 4, 4, 8])) for _ in range(200)]
        found = estimate_run(run[:20], 200).calls
        inside += found.low <= sum(each.calls for each in run) <= found.high
    assert 0.91 <= inside / 400 <= 0.99


@pytest.mark.parametrize(("sample", "total"), [(0, 10), (3, 2)])
def test_a_sample_has_to_be_part_of_the_run(sample: int, total: int) -> None:
    with pytest.raises(ConfigError, match="sample between 1 and all"):
        estimate_run([question(1)] * sample, total)


def test_an_estimate_is_shown_in_words() -> None:
    text = estimate_text(estimate_run([question(3, 0.03), question(5, 0.05)] * 5, 1000))
    assert text.splitlines() == [
        "1,000 questions, estimated from 10 (95 % interval in brackets):",
        "  calls       4,000 (3,250 to 4,750)",
        "  tokens in   4,000,000 (3,249,779 to 4,750,221)",
        "  tokens out  200,000 (162,489 to 237,511)",
        "  US dollars  $40.00 ($32.50 to $47.50)",
    ]


def test_unknown_prices_are_said() -> None:
    unknown = estimate_text(estimate_run([question(3, 0.0, 3)] * 2, 10))
    assert unknown.endswith("US dollars  unknown: the model has no price; add it with prices=FILE")
    some = estimate_text(estimate_run([question(3, 0.5, 1)] * 2, 10))
    assert some.endswith("US dollars  $5.00, without models that have no price")


def test_small_amounts_are_told_from_nothing() -> None:
    assert [dollars(usd) for usd in (0, 0.00001, 0.0123, 0.5, 1, 1234.5)] == [
        "$0.00", "<$0.0001", "$0.0123", "$0.5000", "$1.00", "$1,234.50",
    ]  # fmt: skip
