"""Tests of `byokg.llm.usage`."""

from __future__ import annotations

from pathlib import Path

import pytest

from byokg.errors import ConfigError
from byokg.llm.messages import Usage
from byokg.llm.usage import PriceTable, canonical_model


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
