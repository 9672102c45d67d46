"""Tests of `byokg.evaluation.datasets.audit`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from byokg.evaluation.datasets.audit import KINDS, Audit, audit, execute, with_answer
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.benchmarks import medqa
from byokg.evaluation.datasets.folder import Folder
from byokg.evaluation.datasets.freebase import Rog
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.importers.choose import build_graph, import_graph
from byokg.graph.name_indexes import name_index
from byokg.graph.store import QueryLimits
from byokg.types import EntityId, Node, Triple

# a -r-> b -r-> c -r-> d    x -r-> y
TRIPLES = [("a", "r", "b"), ("b", "r", "c"), ("c", "r", "d"), ("x", "r", "y")]


def example(id: str, *answers: str, topic: str = "a", question: str = "") -> Example:
    """Return a question whose names are ids."""
    topics = (topic,) if topic else ()
    return Example(
        id, question or f"question {id}?", answers, tuple(map(EntityId, answers)), topics, tuple(map(EntityId, topics))
    )


def looked(*examples: Example, max_hops: int = 3) -> dict[str, tuple[str, ...]]:
    """Audit questions over the graph above."""
    graph = ColumnarGraph.from_triples(TRIPLES)
    names = name_index(graph)
    return dict(audit(examples, lambda each: (graph, names), max_hops).findings)


def test_a_sound_set_has_no_findings() -> None:
    assert looked(example("1", "b"), example("2", "d", "c")) == {}


def test_answers_that_are_missing_or_too_far_are_found() -> None:
    found = looked(example("1", "nobody"), example("2", "b", "nobody"), example("3", "y"), example("4", "a", topic="d"))
    assert found == {"answer not in graph": ("1",), "some answers not in graph": ("2",), "answer out of reach": ("3",)}
    assert looked(example("5", "d"), max_hops=2) == {"answer out of reach": ("5",)}


def test_the_value_of_a_property_is_in_the_graph_where_it_is_within_reach() -> None:
    nodes = [Node(EntityId(id), id, "", {"code": f"X-{id}"}) for id in "abc"]
    graph = ColumnarGraph.from_records(nodes, [Triple(EntityId("a"), "r", EntityId("b"))])
    names = name_index(graph)
    asked = [replace(example(answer, answer), answer_ids=()) for answer in ("X-a", "X-b", "X-c")]
    assert dict(audit(asked, lambda each: (graph, names), 2).findings) == {"answer not in graph": ("X-c",)}
    assert audit(asked, lambda each: (graph, names), 1).findings == {"answer not in graph": ("X-b", "X-c")}


def test_topics_that_are_missing_are_found() -> None:
    assert looked(example("1", "b", topic=""), example("2", "b", topic="nobody")) == {
        "no topic entity": ("1",),
        "topic not in graph": ("2",),
    }


def test_templates_repetitions_and_contradictions_are_found_in_the_text() -> None:
    questions = [
        example("1", "b", question="Who was the {tail2} before?"),
        example("2", "b", question="Who is  B?"),
        example("3", "b", question="who is b?"),
        example("4", "c", question="Who is b?"),
    ]
    result = audit(questions, left_out={"no gold answer": 2})
    assert result == Audit(
        questions=4,
        by_split={},
        by_type={},
        left_out={"no gold answer": 2},
        findings={"unresolved template": ("1",), "repeated question": ("3",), "contradicting question": ("4",)},
        max_hops=3,
        graph=False,
    )
    assert list(result.findings) == [kind for kind in KINDS if kind in result.findings]


def test_times_and_results_of_queries_are_no_nodes() -> None:
    year = replace(example("1", "1999"), answer_type="time")
    query = replace(example("2", "7"), answer_ids=(), query="RETURN 7")
    assert looked(year, query) == {}


def test_a_count_is_worked_out_and_not_missing() -> None:
    asked = (example("1", "7"), example("2", "1984"), example("3", "nobody"))
    assert looked(*(replace(each, answer_ids=()) for each in asked)) == {"answer not in graph": ("3",)}


def test_answers_without_ids_are_looked_for_by_name() -> None:
    assert looked(replace(example("1", "B"), answer_ids=())) == {}


def test_webqsp_over_the_assembled_graph_has_the_documented_gaps(real_data: Path, tmp_path: Path) -> None:
    source = real_data / "freebase_core/graph.tsv.xz"
    graph = build_graph(source, tmp_path / "graph")
    names = name_index(graph)
    questions = Folder(real_data / "webqsp", graph=source, ids="names").examples()
    found = audit(questions, lambda each: (graph, names)).findings
    assert {kind: len(ids) for kind, ids in found.items()} == {
        "answer not in graph": 19,
        "some answers not in graph": 101,
        "answer out of reach": 7,
    }


def test_subgraphs_of_rog_have_the_documented_gaps(real_data: Path) -> None:
    dataset = Rog(real_data / "rog_samples", questions="webqsp_samples.jsonl")

    def own(each: Example) -> tuple[ColumnarGraph, object]:
        graph = dataset.subgraph(each.id)
        return graph, name_index(graph)

    found = audit(dataset.examples(), own).findings  # type: ignore[arg-type]
    assert found == {
        "answer not in graph": ("WebQTest-3", "WebQTest-31"),
        "some answers not in graph": ("WebQTest-12",),
    }


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
    result = execute(questions, store, QueryLimits(timeout_s=30.0))
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
    result = execute([asked("all", "MATCH (n) RETURN n.name")], store, QueryLimits(timeout_s=30.0, max_rows=2))
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
    assert len(with_answer(dataset.examples(), graph, name_index(graph))) == 557
