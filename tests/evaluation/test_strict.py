"""Tests of `byokg.evaluation.profiles`."""

from __future__ import annotations

from byokg.evaluation.cases import Case
from byokg.evaluation.profiles import STRICT


def test_strict_gives_no_credit_for_letters_in_a_row() -> None:
    assert STRICT.score(Case("q", ("Iran",), ("Tirana",))) == (0.0,) * 6
