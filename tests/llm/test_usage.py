"""Tests of `byokg.llm.usage`."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from byokg.errors import BudgetExceeded, ConfigError
from byokg.llm.messages import Call, Message, Meter, Reply, Usage
from byokg.llm.usage import Budget, PriceTable, QuestionUsage, UsageMeter
from byokg.types import Consumption, Spending

REPLY = Reply("Mann", usage=Usage(1000, 100, 400, 200), seconds=0.5, retries=2)

USD = (400 * 3 + 400 * 0.3 + 200 * 3.75 + 100 * 15) / 1e6
"""What `REPLY` costs at Claude Sonnet 4.5's prices."""


def call(text: str = "Who?", model: str = "claude-sonnet-4-5", max_tokens: int = 100) -> Call:
    """Return a call."""
    return Call("anthropic", model, (Message("user", text),), {"max_tokens": max_tokens})


def ask(meter: Meter, asked: Call, reply: Reply = REPLY, question: str = "q1", stage: str = "link") -> None:
    """Do what a language model does around a call."""
    meter.before(asked, stage, question)
    meter.after(asked, reply, stage, question, replayed=False)


def test_calls_are_counted_by_question_and_stage() -> None:
    meter = UsageMeter()
    ask(meter, call("a"))
    ask(meter, call("b"))
    ask(meter, call("c"), stage="answer")
    meter.after(call("d"), REPLY, "answer", "q1", replayed=True)
    meter.before(call("e"), "answer", "q1")
    meter.failed(call("e"), 3, "answer", "q1")
    ask(meter, call("f"), question="q2")
    one = Consumption(1, 1000, 100, 400, 200, 0.5, USD)
    two = one + one
    found = meter.take("q1")
    assert found.stages == {"link": Spending(two, retries=4), "answer": Spending(one, one, failed=1, retries=5)}
    assert [(one.stage, one.call) for one in found.calls] == [
        ("link", call("a")),
        ("link", call("b")),
        ("answer", call("c")),
        ("answer", call("d")),
    ]
    assert meter.take("q1") == QuestionUsage()
    assert meter.total.asked.calls == 4 and meter.total.calls == 6
    assert meter.unpriced_models == ()


def test_a_model_without_a_price_is_counted_in_tokens_and_named() -> None:
    meter = UsageMeter()
    ask(meter, call(model="my-model"))
    spent = meter.total.asked
    assert (spent.calls, spent.input_tokens, spent.usd, spent.unpriced) == (1, 1000, 0.0, 1)
    assert meter.unpriced_models == ("anthropic/my-model",)


def test_replayed_calls_cost_nothing_and_are_counted_apart() -> None:
    meter = UsageMeter(budget=Budget(max_usd=0, max_calls=0))
    meter.after(call(), REPLY, "link", "q1", replayed=True)
    assert meter.total.asked == Consumption()
    assert meter.total.replayed.usd == pytest.approx(USD)
    with pytest.raises(BudgetExceeded):
        meter.before(call(), "link", "q1")


def test_a_budget_of_calls_is_kept_and_ends_the_run() -> None:
    meter = UsageMeter(budget=Budget(max_calls=2))
    ask(meter, call("a"))
    meter.before(call("b"), "link", "q1")
    meter.failed(call("b"), 0, "link", "q1")  # it was sent
    for _ in range(2):
        with pytest.raises(
            BudgetExceeded, match=r"claude-sonnet-4-5: budget.max_calls=2 is used up \(2 calls\); what is"
        ):
            meter.before(call("c"), "link", "q2")


def test_a_budget_of_dollars_reserves_the_most_a_call_can_cost() -> None:
    # 100 tokens of reply at 15 and about 15 of prompt at 3.75, per million: between 0.0015 and 0.0016.
    meter = UsageMeter(budget=Budget(max_usd=0.0015))
    with pytest.raises(BudgetExceeded, match=r"a call of up to \$0.0016 any more \(\$0.0000 spent\)"):
        meter.before(call(), "link", "q1")
    meter = UsageMeter(budget=Budget(max_usd=0.0016))
    ask(meter, call(), Reply("x", usage=Usage(10, 1)))  # much cheaper than reserved
    asked = 1
    while asked < 100:
        try:
            ask(meter, call(), Reply("x", usage=Usage(10, 5)))
        except BudgetExceeded:
            break
        asked += 1
    assert asked < 100
    assert 0 < meter.total.asked.usd <= 0.0016


def test_a_budget_of_dollars_needs_a_price() -> None:
    meter = UsageMeter(budget=Budget(max_usd=5))
    meter.check("claude-sonnet-4-5")
    with pytest.raises(ConfigError, match=r"the price of my-model is not known, so budget\.max_usd cannot be kept"):
        meter.check("my-model")
    with pytest.raises(BudgetExceeded, match="the price of my-model is not known"):
        meter.before(call(model="my-model"), "link", "q1")
    UsageMeter(budget=Budget(max_calls=5)).check("my-model")


def test_what_a_continued_run_spent_before_counts() -> None:
    meter = UsageMeter(budget=Budget(max_calls=5))
    meter.carry(Spending(Consumption(calls=3), failed=1))
    ask(meter, call("a"))
    with pytest.raises(BudgetExceeded, match="5 calls"):
        ask(meter, call("b"))
    assert meter.total.asked.calls == 1


def test_many_workers_never_spend_more_than_the_budget_and_use_it_up(tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("- models: [m]\n  input: 0\n  output: 1000000\n")  # a token out is a dollar
    meter = UsageMeter(PriceTable(prices), Budget(max_usd=100))
    in_flight, most = 0, 0
    lock = threading.Lock()
    chance = random.Random(0)

    def work(number: int) -> bool:
        nonlocal in_flight, most
        asked = call(f"q{number}", "m", max_tokens=10)
        try:
            meter.before(asked, "link", f"q{number}")
        except BudgetExceeded:
            return False
        with lock:
            in_flight += 1
            most = max(most, in_flight)
            tokens = chance.randint(1, 10)
        time.sleep(0.001)
        with lock:
            in_flight -= 1
        meter.after(asked, Reply("x", usage=Usage(0, tokens)), "link", f"q{number}", replayed=False)
        return True

    with ThreadPoolExecutor(32) as pool:
        done = list(pool.map(work, range(200)))
    assert most <= 10  # ten reservations of ten dollars
    assert 90 < meter.total.asked.usd <= 100
    assert sum(done) == meter.total.asked.calls


def test_a_call_budget_lets_through_exactly_its_number_from_many_workers() -> None:
    meter = UsageMeter(budget=Budget(max_calls=37))

    def work(number: int) -> bool:
        try:
            ask(meter, call(f"q{number}"))
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(32) as pool:
        assert sum(pool.map(work, range(200))) == 37


@pytest.mark.parametrize(
    "budget", [{"max_usd": -1.0}, {"max_calls": -1}, {"max_usd": float("inf")}, {"max_usd": float("nan")}]
)
def test_a_budget_that_is_none_is_refused(budget: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="is no budget"):
        Budget(**budget)  # type: ignore[arg-type]
