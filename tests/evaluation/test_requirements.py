"""Tests of `byokg.evaluation.audit`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from byokg.evaluation.audit import executed, with_answer
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.benchmarks import medqa
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.importers.choose import import_graph
from byokg.graph.name_indexes import name_index
from byokg.graph.store import QueryLimits
from byokg.types import EntityId, Node, Triple

NODES = [Node(EntityId("1"), "Ulm", "Town"), Node(EntityId("2"), "Bonn", "Town"), Node(EntityId("3"), "Rhine", "River")]
EDGES = [Triple(EntityId("2"), "lies_on", EntityId("3"), 0)]


@pytest.fixture(scope="module")
def store(arcade_process: ArcadeStore) -> ArcadeStore:
    """Hold two towns and a river, of which one town lies on it."""
    arcade_process.replace(ColumnarGraph.from_records(NODES, EDGES, "towns"))
    return arcade_process


def asked(id: str, query: str) -> Example:
    """Return a question with a gold query and an answer that somebody else's engine gave."""
    return Example(id, "?", ("theirs",), query=query)


def test_gold_queries_are_executed_and_only_those_that_find_something_are_kept(store: ArcadeStore) -> None:
    questions = [
        asked("names", "MATCH (t:Town) RETURN t.name, t.id ORDER BY t.name"),
        asked("node", "MATCH (r:River) RETURN r"),
        asked("nothing", "MATCH (t:Town {name: 'Rome'}) RETURN t.name"),
        asked("wrong", "MATCH (t:Town RETURN t"),
        asked("writes", "MATCH (t:Town) DETACH DELETE t"),
        replace(asked("none", ""), query=""),
    ]
    result = executed(questions, store, QueryLimits(timeout_s=30.0))
    assert [example.id for example in result.examples] == ["names", "node"]
    names, node = result.examples
    assert names.answers == ("Bonn", "Ulm")
    assert [row[0] for row in names.rows] == ["Bonn", "Ulm"]
    assert (node.answers, node.answer_ids) == (("Rhine",), ("3",))
    assert names.answer_ids == ()
    assert node.rows[0][0]["name"] == "Rhine"  # type: ignore[index, call-overload]
    assert result.left_out["no gold query"] == 1
    assert result.left_out["the gold query finds nothing"] == 1
    assert sum(result.left_out.values()) == 4


def test_a_result_that_is_cut_off_is_no_gold(store: ArcadeStore) -> None:
    result = executed([asked("all", "MATCH (n) RETURN n.name")], store, QueryLimits(timeout_s=30.0, max_rows=2))
    assert result.examples == ()
    assert result.left_out == {"the gold query finds more rows than the graph's limit": 1}


def test_an_answer_is_in_the_graph_by_id_or_by_an_equal_name() -> None:
    graph = ColumnarGraph.from_records(NODES, EDGES, "towns")
    questions = [
        Example("id", "?", ("somewhere",), (EntityId("1"),)),
        Example("name", "?", ("BONN",)),
        Example("part", "?", ("Bonn am Rhein",)),
    ]
    assert [example.id for example in with_answer(questions, graph, name_index(graph))] == ["id", "name"]


def test_medqa_keeps_the_questions_whose_answer_is_in_the_graph(real_data: Path) -> None:
    dataset = medqa(real_data / "medqa_ddb", split="")
    graph = import_graph(dataset.graph_source())
    assert len(with_answer(dataset.examples(), graph, name_index(graph))) == 556
