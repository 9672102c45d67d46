"""Tests of `byokg.evaluation.datasets.folder`."""

from __future__ import annotations

from collections import Counter

from byokg.evaluation.datasets.base import Dataset
from byokg.evaluation.datasets.folder import atlas, graph_keys
from byokg.graph.importers.choose import import_graph


def test_the_shipped_questions_need_nothing_but_the_package() -> None:
    dataset: Dataset = atlas("test")
    assert dataset.name == "atlas test"
    assert len(atlas("").examples()) >= 300
    counts = Counter(example.split for example in atlas("").examples())
    assert counts == {"dev": len(atlas("dev").examples()), "test": len(dataset.examples())}
    assert all(example.type and example.hops is not None for example in dataset.examples())


def test_topics_and_answers_are_in_the_shipped_graph() -> None:
    dataset = atlas("")
    graph = import_graph(dataset.graph_source())
    assert graph_keys(dataset.examples(), graph) == "ids"
    for example in dataset.examples():
        names = {node.id: node.name for node in graph.nodes(example.topic_ids + example.answer_ids)}
        assert [names[id] for id in example.topic_ids] == list(example.topic_entities)
        assert {names[id] for id in example.answer_ids} <= set(example.answers)
