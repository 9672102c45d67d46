"""Tests of `byokg.pipeline.graphraft` and of the subgraph that its queries make."""

from __future__ import annotations

from functools import partial

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.llm.chat_models import ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.pipeline.graphraft import NamedEntities, graphraft_offline_pipeline, graphraft_pipeline
from byokg.pipeline.offline import offline_pipeline
from byokg.retrieval.subgraph import SubgraphRetriever, found_nodes, pattern
from byokg.types import Answer, Context, EntityId, Node, NodeCell, Question, RowsEvidence, Triple

# Ivermectin -target-> CYP3A4, -indication-> strongyloidiasis <-indication- Thiabendazole; Aspirin -target-> CYP3A4
NODES = [
    Node(EntityId("d1"), "Ivermectin", "Drug", {"about": "a drug against worms"}),
    Node(EntityId("d2"), "Thiabendazole", "Drug"),
    Node(EntityId("d3"), 'Aspirin "B"', "Drug"),
    Node(EntityId("g1"), "CYP3A4", "Gene"),
    Node(EntityId("s1"), "strongyloidiasis", "Disease"),
]
EDGES = [
    Triple(EntityId(head), relation, EntityId(tail))
    for head, relation, tail in [
        ("d1", "target", "g1"),
        ("d1", "indication", "s1"),
        ("d2", "indication", "s1"),
        ("d3", "target", "g1"),
    ]
]
GRAPH = ColumnarGraph.from_records(NODES, EDGES)
ASKED = Question("q", "What drugs target CYP3A4 and have the indication strongyloidiasis?")


def names(answer: Answer) -> list[str]:
    return [item.name for item in answer.items]


def said(*replies: str) -> LanguageModel:
    return LanguageModel(ScriptedChatModel(replies=replies))


def test_two_entities_are_answered_by_what_lies_between_them() -> None:
    answer = graphraft_offline_pipeline(GRAPH).run(ASKED)
    assert names(answer) == ["Ivermectin"]
    first = answer.rounds[0].evidence[0]
    assert isinstance(first, RowsEvidence)
    assert first.query == (
        'MATCH (x1:Gene {name: "CYP3A4", id: "g1"})-[:target]-(x2)-[:indication]-'
        '(x3:Disease {name: "strongyloidiasis", id: "s1"}) WHERE x2 <> x1 AND x2 <> x3 RETURN DISTINCT x2'
    )
    assert (
        answer.items[0].citations
        == tuple(
            item.id for item in answer.rounds[0].evidence if isinstance(item, RowsEvidence) and ("d1" in ids(item))
        )[:1]
    )


def ids(item: RowsEvidence) -> list[str]:
    return [cell.id for (cell,) in item.rows if isinstance(cell, NodeCell)]


def test_less_likely_queries_follow_until_there_are_enough_nodes() -> None:
    every = graphraft_offline_pipeline(GRAPH, taken="all").run(ASKED)
    assert names(every)[0] == "Ivermectin"
    assert {"Thiabendazole", 'Aspirin "B"'} <= set(names(every))
    few = graphraft_offline_pipeline(GRAPH, taken="all", nodes=1).run(ASKED)
    assert names(few) == ["Ivermectin"]
    assert len(few.rounds[0].evidence) == 1


def test_a_node_is_shown_with_the_patterns_that_led_to_it_and_what_the_graph_says_of_it() -> None:
    answer = graphraft_offline_pipeline(GRAPH, taken="all").run(ASKED)
    found = {node.cell.id: node for node in found_nodes(answer.rounds[0].evidence)}
    lines = found[EntityId("d1")].text().splitlines()
    assert lines[0].startswith(
        'pattern: [(x1:Gene {name: "CYP3A4", id: "g1"})-[:target]-(x2:Drug {name: "Ivermectin"})-[:indication]-'
        '(x3:Disease {name: "strongyloidiasis", id: "s1"})'
    )
    assert lines[1:] == ["name: Ivermectin", 'details: {"about": "a drug against worms"}']


def test_a_pattern_keeps_a_name_that_looks_like_cypher() -> None:
    query = 'MATCH (x1:A {name: "a MATCH (x2) RETURN x2"})-[:r]-(x2) WHERE x2 <> x1 RETURN DISTINCT x2'
    assert pattern(query, NodeCell(EntityId("b"), 'b "B"', "B")) == (
        '(x1:A {name: "a MATCH (x2) RETURN x2"})-[:r]-(x2:B {name: "b \\"B\\""})'
    )


def test_a_model_names_entities_and_chooses_among_the_nodes() -> None:
    model = said(
        "<entities>\nCYP3A4\nstrongyloidiasis\n</entities>",
        "<numbers>\n2\n1\n</numbers>",
        '<answers>\nthiabendazole\nPenicillin\nAspirin "B"\n</answers>',
    )
    answer = graphraft_pipeline(GRAPH, model).run(ASKED)
    assert names(answer) == ["Thiabendazole", 'Aspirin "B"']
    assert all(item.grounded for item in answer.items)
    first = answer.rounds[0].evidence[0]
    assert isinstance(first, RowsEvidence)
    assert "(x3:" not in first.query  # not what lies between both, which meaning prefers
    assert first.score == 1.0
    everything = said("<entities>\nCYP3A4\n</entities>", '<answers>\nAspirin "B"\n</answers>')
    ranked = graphraft_pipeline(GRAPH, everything, ranking="meaning", taken="all").run(ASKED)
    assert names(ranked)[0] == 'Aspirin "B"'
    assert "Ivermectin" in names(ranked)


@pytest.mark.parametrize(
    ("prompt", "reply", "mentions"),
    [
        ("entities_prime", "CYP3A4|the disease", ["CYP3A4", "the disease"]),
        ("entities_mag", "Institution:MIT\nFieldOfStudy: worms\nField of study: x", ["MIT", "worms", "x"]),
    ],
)
def test_entities_are_named_by_the_examples_of_the_paper(prompt: str, reply: str, mentions: list[str]) -> None:
    found = NamedEntities(said(reply), prompt).propose(ASKED, Context())
    assert [mention.text for mention in found.mentions] == mentions


def test_queries_run_in_an_engine_find_what_is_walked_without_one() -> None:
    pytest.importorskip("arcadedb_embedded")
    with ArcadeStore.hold(GRAPH) as store:
        for taken in ("first", "all"):
            here = graphraft_offline_pipeline(GRAPH, taken=taken).run(ASKED)
            there = graphraft_offline_pipeline(store, taken=taken).run(ASKED)
            assert here.items == there.items
            assert here.rounds[0].evidence == there.rounds[0].evidence


def test_it_is_a_retriever_of_any_loop() -> None:
    pipeline = offline_pipeline(GRAPH, retrievers={"subgraph": partial(SubgraphRetriever, queries=1)})
    evidence = pipeline.run(ASKED).rounds[0].evidence
    assert [item.retriever for item in evidence] == ["subgraph"]
