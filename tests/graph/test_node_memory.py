"""Nodes that were read are remembered, and nobody can tell from the answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.errors import EntityNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.read_cache import NodeMemory
from byokg.types import EntityId, Node


class Reader:
    """Gives every node its id in capitals as name, and notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, ids: Sequence[EntityId]) -> list[Node]:
        self.asked.append(list(ids))
        return [Node(id, id.upper()) for id in ids]


def ids(text: str) -> list[EntityId]:
    return [EntityId(letter) for letter in text]


def test_only_what_is_not_held_is_read_and_each_once() -> None:
    reader = Reader()
    memory = NodeMemory(reader)
    assert [node.name for node in memory.nodes(ids("aba"))] == ["A", "B", "A"]
    assert [node.name for node in memory.nodes(ids("cbac"))] == ["C", "B", "A", "C"]
    assert reader.asked == [["a", "b"], ["c"]]


@given(st.lists(st.text("abcdef", max_size=8), max_size=8), st.integers(0, 7))
def test_every_answer_is_what_was_asked_for_however_little_is_held(requests: list[str], most: int) -> None:
    memory = NodeMemory(Reader(), most)
    for asked in requests:
        assert [(node.id, node.name) for node in memory.nodes(ids(asked))] == [(id, id.upper()) for id in asked]
        assert len(memory) <= most


def test_an_id_that_is_nowhere_is_refused_every_time() -> None:
    graph = ColumnarGraph.from_triples([("a", "r", "b")])
    for _ in range(2):
        with pytest.raises(EntityNotFound):
            graph.nodes(ids("ax"))
    assert [node.id for node in graph.nodes(ids("ab"))] == ["a", "b"]
