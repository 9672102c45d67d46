"""Tests of `byokg.llm.usage`."""

from __future__ import annotations

import math
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from byokg.errors import BudgetExceeded, ConfigError
from byokg.llm.chat_models import ScriptedChatModel
from byokg.llm.messages import Call, Message, Meter, Reply, Usage
from byokg.llm.usage import (
    Budget,
    PriceTable,
    QuestionUsage,
    Range,
    UsageMeter,
    canonical_model,
    dollars,
    estimate_run,
    estimate_text,
    token_counter,
)
from byokg.text.names import estimate_tokens
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


def test_a_question_that_waits_for_replies_counts_what_it_replays_once() -> None:
    meter = UsageMeter()
    first, second = call("first"), call("second")
    for late in (True, True, False):  # two passes that end at the second call, and one that goes through
        meter.after(first, REPLY, "link", "q1", replayed=True)
        if late:
            meter.wait("q1")
    assert meter.total.replayed.calls == 1
    meter.after(second, REPLY, "answer", "q1", replayed=True)
    took = meter.take("q1")
    assert [one.call for one in took.calls] == [first, second]
    assert sum(each.replayed.calls for each in took.stages.values()) == 2


def test_replies_of_a_batch_are_counted_as_asked_once_and_stand_among_the_calls() -> None:
    meter = UsageMeter()
    meter.after(call(), REPLY, "link", "q1", replayed=False, batch=True)
    for _ in range(2):
        meter.after(call(), REPLY, "link", "q1", replayed=True)
        meter.wait("q1")
    for _ in range(2):  # asked twice in one question: the second time nothing is paid
        meter.after(call(), REPLY, "link", "q1", replayed=True)
    meter.after(call(), REPLY, "link", "q2", replayed=True)
    took, other = meter.take("q1"), meter.take("q2")
    assert (took.stages["link"].asked.calls, took.stages["link"].replayed.calls, len(took.calls)) == (1, 1, 2)
    assert (other.stages["link"].asked.calls, other.stages["link"].replayed.calls, len(other.calls)) == (0, 1, 1)
    assert (meter.total.asked.calls, meter.total.replayed.calls) == (1, 2)


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


# Prices


@pytest.mark.parametrize(
    ("model", "rate"),
    [
        ("claude-sonnet-4-5", 3),
        ("claude-sonnet-4-5-20250929", 3),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 3),
        ("global.anthropic.claude-sonnet-4-20250514-v1:0", 3),
        ("arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.anthropic.claude-haiku-4-5-20251001-v1:0", 1),
        ("anthropic/claude-opus-5", 5),
        ("claude-opus-5-5", 4),
        ("claude-3-5-sonnet-latest", 3),
        ("claude-3-5-haiku@20241022", 0.8),
        ("gpt-5-2025-08-07", 1.25),
        ("GPT-5-mini", 0.25),
        ("us.meta.llama3-3-70b-instruct-v1:0", 0.72),
        ("amazon.nova-pro-v1:0:300k", 0.8),
    ],
)
def test_models_are_found_wherever_they_run(model: str, rate: float) -> None:
    price = PriceTable().find(model)
    assert price is not None and price.rates.input == rate
    assert price.date and price.source.startswith("https://")


@pytest.mark.parametrize(
    "model", ["claude-opus-6", "claude-sonnet-4-9", "gpt-5-enormous", "llama3.3:70b", "my-model", ""]
)
def test_no_price_is_made_up(model: str) -> None:
    assert PriceTable().find(model) is None


def test_what_a_call_costs() -> None:
    price = PriceTable().find("claude-sonnet-4-5")
    assert price is not None
    # 1,000 fresh at 3, 2,000 read at 0.3, 500 written at 3.75, 100 out at 15, all per million
    usage = Usage(3500, 100, 2000, 500)
    assert price.usd(usage) == pytest.approx((3000 + 600 + 1875 + 1500) / 1e6)
    assert price.usd(usage, batch=True) == pytest.approx(price.usd(usage) / 2)
    assert price.most(3500, 100) == pytest.approx((3500 * 3.75 + 1500) / 1e6)
    assert price.usd(Usage()) == 0.0


def test_long_prompts_cost_more_where_the_table_says_so() -> None:
    price = PriceTable().find("claude-haiku-5-5")
    assert price is not None
    assert price.usd(Usage(100_000, 0)) == pytest.approx(0.01)
    assert price.usd(Usage(200_000, 1000)) == pytest.approx(0.1 + 0.0025)
    assert price.most(100, 100) == pytest.approx((100 * 0.625 + 100 * 2.5) / 1e6)


def test_a_users_table_goes_first_and_the_rest_stays(tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text(
        "- models: [gpt-*, my-model]\n  input: 1\n  output: 2\n"
        "- models: [gpt-5]\n  input: 7\n  output: 8\n  date: 2026-01-02\n"
    )
    table = PriceTable(own)
    inputs = {
        name: price.rates.input
        for name in ("gpt-5", "gpt-9", "my-model", "claude-opus-5")
        if (price := table.find(name))
    }
    assert inputs == {"gpt-5": 7.0, "gpt-9": 1.0, "my-model": 1.0, "claude-opus-5": 5.0}
    price = table.find("my-model")
    assert price is not None and price.usd(Usage(1_000_000, 0, 400_000, 100_000)) == 1.0
    dated = table.find("gpt-5")
    assert dated is not None and dated.date == "2026-01-02"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models: [x]", "prices are a list of entries"),
        ("- x", "entry 1: is no mapping"),
        ("- models: [x]\n  input: 1\n  output: 1\n- models: x\n", "entry 2: models is no list of ids"),
        ("- models: [x]\n  input: 1\n", "entry 1: output is missing"),
        ("- models: [x]\n  output: 1\n", "entry 1: input=None is no price"),
        ("- models: [x]\n  input: -1\n  output: 1\n", "entry 1: input=-1 is no price"),
        ("- models: [x]\n  inputs: 1\n  output: 1\n", "entry 1: has no field inputs; there are models, input"),
        ("- models: [x]\n  input: 1\n  output: 1\n  batch: 50\n", r"batch=50 is no share in \(0, 1\]"),
        ("- models: [x]\n  input: 1\n  output: 1\n  long_prompt: {input: 2}\n", "long_prompt needs above"),
        ("- [", "cannot be read"),
    ],
)
def test_a_wrong_table_is_refused_with_file_and_entry(tmp_path: Path, text: str, message: str) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        PriceTable(own)
    assert str(own) in str(caught.value)


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml' cannot be read"):
        PriceTable(tmp_path / "none.yaml")


def test_ids_without_a_vendor_are_left_alone() -> None:
    assert canonical_model("us.my-team.model") == "my-team.model"
    assert canonical_model("usable-model") == "usable-model"
    assert canonical_model("meta.llama3-3-70b-instruct-v1:0") == "meta.llama3-3-70b-instruct-v1:0"


# Tokens


class Spelling(ScriptedChatModel):
    """A model whose tokens are letters."""

    def get_token_ids(self, text: str) -> list[int]:
        """Return the letters' numbers."""
        return [ord(letter) for letter in text]


def test_without_a_tokenizer_tokens_are_estimated() -> None:
    assert token_counter() is estimate_tokens


def test_a_model_that_brings_its_tokenizer_counts_itself() -> None:
    assert token_counter("model", Spelling(replies=("x",)))("Heat") == 4


@pytest.mark.parametrize("model", [None, ScriptedChatModel(replies=("x",))])
def test_a_model_without_a_tokenizer_here_is_no_counter(model: ScriptedChatModel | None) -> None:
    with pytest.raises(ConfigError, match="tokens=model needs a language model that brings its tokenizer"):
        token_counter("model", model)


def test_an_unknown_way_to_count_names_the_others() -> None:
    pytest.importorskip("tiktoken")
    with pytest.raises(ConfigError, match=r"tokens=words is no way to count; choose estimate, model, .*o200k_base"):
        token_counter("words")


def test_an_encoding_of_tiktoken_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every byte a token, and one for `at`: Heat is H, e, at.
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"at": 256}
    encoding = tiktoken.Encoding("bytes", pat_str=r"\S+|\s", mergeable_ranks=ranks, special_tokens={"<|end|>": 257})
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, "gpt2", encoding)
    assert token_counter("gpt2")("Heat <|end|>") == 3 + 1 + 7  # what looks like a special token is text


def test_an_encoding_that_cannot_be_downloaded_says_where_to_put_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tiktoken = pytest.importorskip("tiktoken")

    def refused(*_: object) -> bytes:
        raise OSError("no network")

    monkeypatch.setattr(tiktoken.load, "read_file", refused)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(ConfigError, match=r"r50k_base cannot be downloaded: no network; .*TIKTOKEN_CACHE_DIR"):
        token_counter("r50k_base")


# Estimates


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
