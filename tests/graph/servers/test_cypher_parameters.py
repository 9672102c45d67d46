"""What may be passed to a Cypher query as a parameter."""

from __future__ import annotations

from typing import Any

import pytest

from byokg.errors import QueryInvalid
from byokg.graph.servers.cypher_schema import plain_parameters
from byokg.types import EntityId, NodeCell


def test_sequences_and_mappings_become_lists_and_dicts() -> None:
    assert plain_parameters(None) == {}
    given: dict[str, Any] = {"a": (1, [None, True]), "b": {"c": ({"d": 0.5},)}, "e": "x"}
    assert plain_parameters(given) == {"a": [1, [None, True]], "b": {"c": [{"d": 0.5}]}, "e": "x"}


@pytest.mark.parametrize("given", [{"p": "\ud800"}, {"p": [{"a": ("\udfff",)}]}, {"p": {"\ud800": 1}}, {"\ud800": 1}])
def test_half_a_character_is_refused_wherever_it_stands(given: dict[str, Any]) -> None:
    with pytest.raises(QueryInvalid, match="half of a character"):
        plain_parameters(given)


@pytest.mark.parametrize(
    "value", [1 << 63, -(1 << 63) - 1, b"x", {1}, object(), NodeCell(EntityId("a"), "a"), [{"deep": {1}}]]
)
def test_what_has_no_type_in_cypher_is_named(value: Any) -> None:
    with pytest.raises(QueryInvalid, match="'p'"):
        plain_parameters({"p": value})
