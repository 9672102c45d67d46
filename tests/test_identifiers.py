"""Tests of `byokg.text`."""

from __future__ import annotations

import pytest

from byokg.text import is_identifier


@pytest.mark.parametrize(
    "text",
    [
        "m.0abc_1",
        "g.11b66h2c7t",
        "/m/02mjmr",
        "Q42000",
        "Q101",
        "P31000",
        "_:b0",
        "123e4567-e89b-12d3-a456-426614174000",
        "123E4567-E89B-12D3-A456-426614174000",
    ],
)
def test_machine_identifiers_are_recognised(text: str) -> None:
    assert is_identifier(text)


@pytest.mark.parametrize(
    "text",
    ["", "Alien", "m", "m.", "M. Butterfly", "M.A.S.H.", "g.i. joe", "Q", "Q5", "P51 Mustang", "1984", "_", "a m.0abc"],
)
def test_names_are_not(text: str) -> None:
    assert not is_identifier(text)
