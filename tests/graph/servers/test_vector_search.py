"""The two ways to ask Neo4j for the nearest vectors: a clause of Cypher 25, and the procedure of older servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import pytest

from byokg.errors import QueryInvalid
from byokg.graph.servers.cypher_reads import CypherNames, CypherReads

ROW = ["0", "a", ["Thing"], {"name": "a"}, [1.0, 0.0], 0]


class ScriptedReads:
    """Answers like a server with the index `my index` over Thing.meant, and notes the queries for vectors."""

    def __init__(self, searches: bool) -> None:
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self._searches = searches

    def ask(self, text: str, parameters: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        if text.startswith("SHOW VECTOR INDEXES"):
            return [["my index", ["Thing"], ["meant"], "ONLINE"]]
        self.asked.append((text, parameters))
        if "SEARCH" in text and not self._searches:
            raise QueryInvalid(text, "Invalid input 'SEARCH'")
        return [ROW]

    def identified(self, variable: str) -> str:
        return f"elementId({variable}), {variable}.id"


@pytest.mark.parametrize("searches", [True, False])
def test_the_clause_is_asked_first_and_the_procedure_where_it_is_unknown(searches: bool) -> None:
    reads = ScriptedReads(searches)
    names = CypherNames(cast(CypherReads, reads), None, "my index")
    vectors = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert names.nearest(vectors, 3) == [ROW] == names.nearest(vectors, 3)
    ways = ["SEARCH" if "SEARCH" in text else "CALL db.index" for text, _ in reads.asked]
    assert [way in text for way, (text, _) in zip(ways, reads.asked, strict=True)] == [True] * len(ways)
    assert ways == (["SEARCH", "SEARCH"] if searches else ["SEARCH", "CALL db.index", "CALL db.index"])
    text, given = reads.asked[0]
    assert text.startswith("CYPHER 25 UNWIND range(0, size($vectors) - 1) AS at CALL (at) { MATCH (n:`Thing`)")
    assert "SEARCH n IN (VECTOR INDEX `my index` FOR $vectors[at] LIMIT $k) RETURN n }" in text
    assert given == {"k": 3, "vectors": vectors.tolist()}
    assert searches or reads.asked[1][1] == {"index": "my index", **given}
