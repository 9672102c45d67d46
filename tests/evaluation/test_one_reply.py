"""Tests of `byokg.evaluation.profiles`."""

from __future__ import annotations

import pytest

from byokg.evaluation.cases import Case
from byokg.evaluation.profiles import STRUCTGPT, TOG


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("The answer is {New York}, I think", 1.0),
        ("{ne wyork} or {Oslo}", 1.0),
        ("{York}", 1.0),  # part of the gold answer
        ("{Oslo}, not New York", 0.0),  # only the braces count
        ("It is New York.", 1.0),
        ("", 0.0),
        ("{}", 0.0),
    ],
)
def test_tog_compares_what_stands_in_the_first_braces(reply: str, right: float) -> None:
    assert TOG.score(Case("q", ("New York",), (reply,))) == (right,)


def test_structgpt_takes_aliases() -> None:
    case = Case("q", ("New York", "Oslo"), ("They live in the Big Apple",), aliases=(("Big Apple", ""), ()))
    assert STRUCTGPT.score(case) == (1.0,)
    assert STRUCTGPT.score(Case("q", ("New York",), ("newyork",))) == (0.0,)
