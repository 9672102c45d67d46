"""Tests of `byokg.linking.scanned_names`."""

from __future__ import annotations

import pytest

from byokg.linking.scanned_names import ScannedNames
from tests.linking.graphs import EMBEDDER

NAMES = ["The Godfather", "Car", "Automobile", "Car", ""]


def test_names_near_in_meaning_come_best_first_each_text_apart() -> None:
    vehicles, films = ScannedNames(NAMES, EMBEDDER).search(["car", "godfather film"], 3)
    assert [(match.owner, match.name) for match in vehicles] == [(1, "Car"), (3, "Car"), (2, "Automobile")]
    assert vehicles[0].score == pytest.approx(1.0)
    assert films[0].owner == 0


def test_fewer_names_than_wanted_give_fewer_matches_and_none_of_score_zero() -> None:
    (found,) = ScannedNames(NAMES, EMBEDDER).search(["car"], 100)
    assert len({match.owner for match in found}) == len(found) < 5
    assert all(0 < match.score <= 1 for match in found)


@pytest.mark.parametrize("text", ["", " ", "\x00\x1b"])
def test_a_text_of_nothing_finds_nothing(text: str) -> None:
    assert ScannedNames(NAMES, EMBEDDER).search([text], 3) == [[]]
