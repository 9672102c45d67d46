from __future__ import annotations

import os
from pathlib import Path

import pytest

from byokg.errors import ConfigError, GraphExists
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.freebase import Rog, write_subgraphs
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.traversal import neighbours, triples
from byokg.types import EntityId, Node, Triple

# m.1 Ann -knows-> m.2 Bob -knows-> m.3 Bob -knows-> m.4 Cid
NODES = [Node(EntityId(f"m.{n}"), name) for n, name in enumerate(("Ann", "Bob", "Bob", "Cid"), 1)]
GRAPH = ColumnarGraph.from_records(
    NODES, [Triple(EntityId(f"m.{n}"), "knows", EntityId(f"m.{n + 1}")) for n in (1, 2, 3)]
)


def example(id: str, topics: dict[str, str], answers: dict[str, str], split: str = "test") -> Example:
    ids = [tuple(map(EntityId, each)) for each in (answers, topics)]
    return Example(id, f"{id}?", tuple(answers.values()), ids[0], tuple(topics.values()), ids[1], split=split)


def test_a_question_gets_the_edges_around_its_topics_by_name_and_namesakes_by_id(tmp_path: Path) -> None:
    asked = [
        example("near", {"m.1": "Ann"}, {"m.3": "Robert", "m.9": "Zoe"}),
        example("lost", {"m.9": "Zoe"}, {"m.1": "Ann"}),
        example("own", {"m.1": "Ann"}, {"m.2": "Bob"}, "train"),
    ]
    assert write_subgraphs(asked, GRAPH, tmp_path / "out", hops=2) == {"test": 2, "train": 1}
    read = Rog(tmp_path / "out")
    near, lost = read.examples()
    assert (near.topic_ids, near.answers, near.answer_ids) == (("Ann",), ("Robert", "Zoe"), ("m.3", "Zoe"))
    around = read.subgraph("near")
    edges = triples(around, neighbours(around, list(around.entities())))
    assert {(each.head, each.tail) for each in edges} == {("Ann", "m.2"), ("m.2", "m.3")}
    assert lost.topic_ids == ("Zoe",) and read.subgraph("lost").edge_count == 0
    write_subgraphs(asked[2:], GRAPH, tmp_path / "one", hops=1)
    assert list(Rog(tmp_path / "one", "train").subgraph("own").entities()) == ["Ann", "Bob"]
    with pytest.raises(GraphExists):
        write_subgraphs(asked, GRAPH, tmp_path / "out")


def test_a_repeated_id_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    twice = [example("x", {"m.1": "Ann"}, {"m.2": "Bob"})] * 2
    with pytest.raises(ConfigError, match="two questions of test have the id 'x'"):
        write_subgraphs(twice, GRAPH, tmp_path / "out")
    assert os.listdir(tmp_path) == []
