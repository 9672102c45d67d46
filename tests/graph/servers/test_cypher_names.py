"""Display names of nodes on Cypher servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from byokg.errors import QueryFailed
from byokg.graph.servers.cypher_reads import CypherNames, CypherReads


class RefusingReads:
    """Refuses the first samples, then returns two officers."""

    def __init__(self, refused: int, id_property: str | None = None) -> None:
        self.left, self.id_property = refused, id_property
        self.asked: list[str] = []

    def ask(self, text: str, parameters: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        self.asked.append(text)
        self.left -= 1
        if self.left >= 0:
            raise QueryFailed(text, "busy")
        return [[{"given_name": "Ada", "surname": "Powell"}], [{"given_name": "Max", "surname": "Roe"}]]

    def identity_of(self, variable: str) -> tuple[str, str]:
        return f"elementId({variable})", f"{variable}.`{self.id_property}`"


def names(reads: RefusingReads) -> CypherNames:
    return CypherNames(cast(CypherReads, reads), None, None)


def test_a_failed_sample_is_taken_again() -> None:
    reads = RefusingReads(1)
    found = names(reads)
    assert [found.template("Officer") for _ in range(3)] == ["", *["{given_name} {surname}"] * 2]
    assert len(reads.asked) == 2


def test_a_sample_that_fails_three_times_is_given_up() -> None:
    reads = RefusingReads(9)
    found = names(reads)
    assert [found.template("Officer") for _ in range(5)] == [""] * 5
    assert len(reads.asked) == 3


@pytest.mark.parametrize(("id_property", "order"), [(None, "elementId(n)"), ("badge", "n.`badge`")])
def test_the_sample_is_of_the_first_nodes_by_id(id_property: str | None, order: str) -> None:
    reads = RefusingReads(0, id_property)
    names(reads).template("Officer")
    assert reads.asked[0].startswith(f"MATCH (n:`Officer`) WITH n ORDER BY {order} LIMIT")
