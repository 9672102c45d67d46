"""Tests of `byokg.graph.bfsql.protocol`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.graph.bfsql.protocol import clip, compact, fitting_items, item_tokens, within
from byokg.text.names import estimate_tokens

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "item",
    [
        {"id": "a", "entity_type": "X", "text": "x" * 10_000},
        {"subject": "a", "predicate": "r", "object": "b", "provenance": [{"source": "s" * 90}] * 500},
        [["x" * 100] * 300, {str(key): "y" * 50 for key in range(300)}],
    ],
)
def test_what_is_cut_fits_and_uses_what_it_may(item: Any) -> None:
    cut = clip(item, 400)
    assert 100 < estimate_tokens(compact(cut)) <= 400


def test_it_is_said_how_much_is_missing_and_identity_stays() -> None:
    cut = clip({"id": "i" * 40, "text": "x" * 1000, "list": list(range(500))}, 60)
    assert cut["id"] == "i" * 40
    shown, said = cut["text"].split("… ")
    assert said == f"({1000 - len(shown)} more characters)"
    assert cut["list"][-1] == f"… ({500 - (len(cut['list']) - 1)} more)"


@settings(deadline=None, max_examples=25)
@given(values)
def test_what_fits_stays_as_it_is_and_everything_stays_json(value: Any) -> None:
    assert clip(value, estimate_tokens(compact(value))) == value
    json.dumps(clip(value, 5))


def test_the_first_items_that_fit_are_kept_and_one_always_is() -> None:
    # {"n":1} is 7 marks, digits and letters: 6 1/4 tokens, so 7 and one for the comma
    items = [{"n": 1}, {"n": 2}, {"n": 3}]
    assert fitting_items(items, 16) == 2 and fitting_items(items, 0) == 1 and fitting_items([], 0) == 0
    assert within(items, 16) == items[:2]
    assert within([{"t": "x" * 900}, *items], 50)[0]["t"].startswith("xxx")


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.text(), values, max_size=3), max_size=5))
def test_many_items_are_as_large_as_each_by_itself(items: list[Any]) -> None:
    assert item_tokens(items) == [estimate_tokens(compact(item)) for item in items]


@pytest.mark.parametrize("text", ["}\0{", "\ud800", "é, 漢字", '"\\', ""])
def test_no_text_is_taken_for_what_stands_between_items(text: str) -> None:
    items: list[Any] = [{"id": text}, {text: [{"a": text}, {"b": text}]}, {"id": text}]
    assert item_tokens(items[::2]) == [estimate_tokens(compact(item)) for item in items[::2]]
    assert item_tokens(items) == [estimate_tokens(compact(item)) for item in items]
