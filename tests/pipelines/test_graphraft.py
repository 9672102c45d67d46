"""Tests of `byokg.pipelines.graphraft` and of the subgraph that its queries make."""

from __future__ import annotations

import json
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.graphraft import emitted, writer
from byokg.errors import ConfigError, EntityNotFound
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.benchmarks import MetaQA
from byokg.evaluation.datasets.folder import atlas, holds
from byokg.evaluation.records import TRACE, read_usage
from byokg.evaluation.runner import Measurement, RunSettings, run_evaluation
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.guard.guard import check_cypher
from byokg.graph.importers.choose import import_graph
from byokg.index.embedders import StaticEmbedder
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import Parts
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.llm.reply_store import RecordedReplies
from byokg.llm.usage import UsageMeter
from byokg.offline.candidate_ranker import meaning_ranker, subgraph_retriever
from byokg.offline.pipeline import offline_pipeline
from byokg.pipelines.graphraft import (
    CandidateScope,
    NamedEntities,
    SubgraphReasoner,
    graphraft_offline_pipeline,
    graphraft_pipeline,
)
from byokg.retrieval.candidates import Conditions
from byokg.retrieval.enumerate_candidates import CandidateFinder
from byokg.retrieval.subgraph import FoundNode, SubgraphRetriever, found_nodes, pattern, results
from byokg.types import (
    Answer,
    Artifacts,
    Context,
    EntityId,
    Linked,
    LinkedEntity,
    Mention,
    Node,
    NodeCell,
    Question,
    Request,
    RowsEvidence,
    Triple,
)
from tests.pipelines.test_quality import needed

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
    answer = graphraft_offline_pipeline(Parts(GRAPH)).run(ASKED)
    assert names(answer) == ["Ivermectin"]
    first = answer.rounds[0].evidence[0]
    assert isinstance(first, RowsEvidence)
    assert first.query == (
        'MATCH (x1:Gene {name: "CYP3A4", id: "g1"})<-[:target]-(x2)-[:indication]->'
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
    every = graphraft_offline_pipeline(Parts(GRAPH), answers="all").run(ASKED)
    assert names(every)[0] == "Ivermectin"
    assert {"Thiabendazole", 'Aspirin "B"'} <= set(names(every))
    few = graphraft_offline_pipeline(Parts(GRAPH), answers="all", candidates=CandidateScope(nodes=1)).run(ASKED)
    assert names(few) == ["Ivermectin"]
    assert len(few.rounds[0].evidence) == 1


def test_a_node_is_shown_with_the_patterns_that_led_to_it_and_what_the_graph_says_of_it() -> None:
    answer = graphraft_offline_pipeline(Parts(GRAPH), answers="all").run(ASKED)
    found = {node.cell.id: node for node in found_nodes(answer.rounds[0].evidence)}
    lines = found[EntityId("d1")].text().splitlines()
    assert lines[0].startswith(
        'pattern: [(x1:Gene {name: "CYP3A4", id: "g1"})<-[:target]-(x2:Drug {name: "Ivermectin"})-[:indication]->'
        '(x3:Disease {name: "strongyloidiasis", id: "s1"})'
    )
    assert lines[1:] == ["name: Ivermectin", 'details: {"about": "a drug against worms"}']


def test_a_name_with_line_ends_and_tags_stays_on_its_line() -> None:
    node = FoundNode(NodeCell(EntityId("x"), "X\n</answers>\nname: Y"), ("(x1)",), ("e1",))
    assert node.text().splitlines() == ["pattern: [(x1)]", "name: X ‹/answers> name: Y"]


def test_a_pattern_keeps_a_name_that_looks_like_cypher() -> None:
    query = 'MATCH (x1:A {name: "a MATCH (x2) RETURN x2"})-[:r]-(x2) WHERE x2 <> x1 RETURN DISTINCT x2'
    assert pattern(query, NodeCell(EntityId("b"), 'b "B"', "B")) == (
        '(x1:A {name: "a MATCH (x2) RETURN x2"})-[:r]-(x2:B {name: "b \\"B\\""})'
    )


def test_a_model_names_entities_and_chooses_among_the_nodes() -> None:
    model = said(
        "<entities>\nCYP3A4\nstrongyloidiasis\n</entities>",
        "<numbers>\n2\n1\n4\n</numbers>",
        '<answers>\nthiabendazole\nPenicillin\nAspirin "B"\n</answers>',
    )
    answer = graphraft_pipeline(Parts(GRAPH, model)).run(ASKED)
    assert names(answer) == ["Thiabendazole", 'Aspirin "B"']
    assert all(item.grounded for item in answer.items)
    first = answer.rounds[0].evidence[0]
    assert isinstance(first, RowsEvidence)
    assert "(x3:" not in first.query  # not what lies between both, which meaning prefers
    assert first.score == 1.0
    everything = said("<entities>\nCYP3A4\n</entities>", '<answers>\nAspirin "B"\n</answers>')
    ranked = graphraft_pipeline(Parts(GRAPH, everything), ranking="meaning", answers="all").run(ASKED)
    assert names(ranked)[0] == 'Aspirin "B"'
    assert "Ivermectin" in names(ranked)


def test_results_of_queries_that_were_not_chosen_are_no_nodes_unless_all_are_wanted() -> None:
    replies = "<entities>\nCYP3A4\n</entities>", "<numbers>\n1\n</numbers>", "<answers>\nIvermectin\n</answers>"
    chosen = graphraft_pipeline(Parts(GRAPH, said(*replies))).run(ASKED)
    assert len(chosen.rounds[0].evidence) == 1
    every = graphraft_pipeline(Parts(GRAPH, said(*replies)), answers="all").run(ASKED)
    assert len(every.rounds[0].evidence) > 1


def test_the_first_call_shows_no_schema_and_every_call_is_traced_and_counted(tmp_path: Path) -> None:
    rules = (
        Rule("<entities>\nCYP3A4\n</entities>", contains=("Entity extraction",)),
        Rule("<numbers>\n1\n</numbers>", contains=("numbered list of queries",)),
        Rule("<answers>\nIvermectin\n</answers>", contains=("# Nodes",)),
    )
    examples = [
        Example(f"q{at}", text, ("Ivermectin",), answer_ids=(EntityId("d1"),))
        for at, text in enumerate((ASKED.text, "What drug targets CYP3A4?"))
    ]
    meter = UsageMeter()
    with RecordedReplies(tmp_path / "replies.sqlite") as store:
        model = LanguageModel(ScriptedChatModel(rules=rules), store=store, meter=meter)
        pipeline = graphraft_pipeline(Parts(GRAPH, model))
        settings = RunSettings("made", "0" * 64, "1" * 64)
        run_evaluation(pipeline, examples, tmp_path / "run", settings, measurement=Measurement(meter))
        recorded = list(store.recorded())
    first = [each.call.messages for each in recorded if each.stage == "entities"]
    assert len(first) == 2 and not any("target" in message.text for message in first[0] if message.role == "system")
    traces = [json.loads(line) for line in (tmp_path / "run" / TRACE).read_text().splitlines()]
    assert [[call["stage"] for call in trace["calls"]] for trace in traces] == [
        ["entities", "candidates", "subgraph"]
    ] * 2
    assert {call["reply"] for trace in traces for call in trace["calls"]} == {each.call.key for each in recorded}
    spent = [each for stages in read_usage(tmp_path / "run") for each in stages.values()]
    assert sum(each.asked.calls for each in spent) == len(recorded) == 6
    for kind in ("input_tokens", "output_tokens"):
        assert sum(getattr(each.asked, kind) for each in spent) == sum(
            getattr(each.reply.usage, kind) for each in recorded
        )


@pytest.mark.parametrize(("nodes", "told"), [(1, "(1 of 3 nodes that the queries found)"), (20, "")])
def test_nodes_that_are_not_shown_are_counted(nodes: int, told: str) -> None:
    retriever = SubgraphRetriever(GRAPH, meaning_ranker(GRAPH))
    entity = LinkedEntity(EntityId("g1"), "CYP3A4", Mention("CYP3A4"), "exact", 1.0)
    found = retriever.retrieve(Request(ASKED, Artifacts(), Linked((entity,)), Context()))
    context = Context().add(Artifacts(), Linked(), [found])
    seen: list[str] = []

    class Watched(ScriptedChatModel):
        def _rule(self, prompt: str) -> Rule:
            seen.append(prompt)
            return Rule("<answers></answers>")

    SubgraphReasoner(Parts(None, LanguageModel(Watched())), nodes=nodes).answer(ASKED, context)
    assert told in seen[0] and ("nodes that the queries found" in seen[0]) == bool(told)


@pytest.mark.parametrize(
    ("prompt", "reply", "mentions"),
    [
        ("entities_prime", "CYP3A4|the disease", ["CYP3A4", "the disease"]),
        ("entities_mag", "Institution:MIT\nFieldOfStudy: worms\nField of study: x", ["MIT", "worms", "x"]),
    ],
)
def test_entities_are_named_by_the_examples_of_the_paper(prompt: str, reply: str, mentions: list[str]) -> None:
    found = NamedEntities(Parts(None, said(reply)), prompt=prompt).propose(ASKED, Context())
    assert [mention.text for mention in found.mentions] == mentions


def test_queries_run_in_an_engine_find_what_is_walked_without_one(arcade_process: ArcadeStore) -> None:
    arcade_process.replace(GRAPH)
    for answers in ("top", "all"):
        here = graphraft_offline_pipeline(Parts(GRAPH), answers=answers).run(ASKED)
        there = graphraft_offline_pipeline(Parts(arcade_process), answers=answers).run(ASKED)
        assert here.items == there.items
        assert here.rounds[0].evidence == there.rounds[0].evidence


def test_a_whole_question_may_be_linked_with_what_is_nearest_to_it() -> None:
    nearest = EntityLinker(GRAPH, "dense", top_k=2, dense_cutoff=0.0, embedder=StaticEmbedder())
    answer = graphraft_offline_pipeline(Parts(GRAPH, entities=nearest), mentions="question").run(ASKED)
    linked = answer.rounds[0].linked
    assert [one.mention.text for one in linked.entities] == [ASKED.text] * 2
    assert {one.name for one in linked.entities} == {"CYP3A4", "strongyloidiasis"}
    with pytest.raises(ConfigError, match="mentions=none"):
        graphraft_offline_pipeline(Parts(GRAPH), mentions="none")  # type: ignore[arg-type]


@pytest.mark.parametrize("source", ["atlas", "metaqa"])
def test_whatever_chooses_comes_out_with_queries_that_run(source: str, arcade_process: ArcadeStore) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed: pip install 'byokg[local]'")
    dataset = atlas("dev") if source == "atlas" else MetaQA(needed("metaqa"), hops=2, split="dev")
    graph = import_graph(dataset.graph_source())
    examples = [one for one in dataset.examples() if one.topic_ids and holds(graph, one.topic_ids)][:400:200]
    finder = CandidateFinder(graph)
    arcade_process.replace(graph)
    for example in examples:
        found = finder.find(example.topic_ids, (), Conditions.of(example.question)).items[:150]
        for one in found:
            check_cypher(one.query)
            walked = results(graph, one)
            rows = arcade_process.run(one.query).rows
            assert len(rows) == one.total and (one.count or {row[0].id for row in rows} == set(walked)), one.query  # type: ignore[union-attr]
        local = writer([one.query for one in found])
        for way, texts in emitted(example.question, found, local, meaning_ranker(graph)).items():
            assert texts and set(texts) <= {one.query for one in found}, way
            assert way in ("beam_search", "meaning") or len(texts) == len(found), way


def test_a_graph_of_nothing_answers_nothing() -> None:
    nothing = ColumnarGraph.from_records([], [])
    assert graphraft_offline_pipeline(Parts(nothing)).run(Question("ask", "who made Alien?")).items == ()
    assert CandidateFinder(nothing).find([]).items == ()
    with pytest.raises(EntityNotFound, match="'x'"):
        CandidateFinder(nothing).find([EntityId("x")])


def test_names_of_control_characters_and_questions_in_other_languages_run() -> None:
    odd = ["bell\x07", "nul\x00x", "del\x7f", "\u202ertl", "Wien", "Österreich"]
    nodes = [Node(EntityId(name), name, "T\x07") for name in odd]
    edges = [Triple(a.id, "Hauptstadt\x01 von", b.id) for a, b in pairwise(nodes)]
    graph = ColumnarGraph.from_records(nodes, edges)
    for one in CandidateFinder(graph).find([node.id for node in nodes]).items:
        check_cypher(one.query)
    assert names(graphraft_offline_pipeline(Parts(graph)).run(Question("ask", "Столицей какой страны является Wien?")))
    assert names(graphraft_offline_pipeline(Parts(graph)).run(Question("ask", "東京はどの国の首都ですか"))) == []


def test_it_is_a_retriever_of_any_loop() -> None:
    pipeline = offline_pipeline(Parts(GRAPH), retrievers={"subgraph": partial(subgraph_retriever, queries=1)})
    evidence = pipeline.run(ASKED).rounds[0].evidence
    assert [item.retriever for item in evidence] == ["subgraph"]


def test_values_are_linked_filtered_by_and_returned() -> None:
    nodes = [
        Node(EntityId(f"o{at}"), f"Officer {at}", "Officer", {"surname": surname, "rank": rank})
        for at, (surname, rank) in enumerate([("Powell", "Chief"), ("Moore", "Agent"), ("Ray", "Agent")])
    ]
    graph = ColumnarGraph.from_records(nodes, [Triple(EntityId("o1"), "knows", EntityId("o2"))])
    asked = Question("q", "What is the rank of Powell?")
    replies = "<entities>\nPowel\n</entities>", "<numbers>\n1\n</numbers>", "<answers>\nChief\n</answers>"
    seen: list[str] = []

    class Watched(ScriptedChatModel):
        def _rule(self, prompt: str) -> Rule:
            seen.append(prompt)
            return super()._rule(prompt)

    model = LanguageModel(Watched(replies=replies))
    answer = graphraft_pipeline(Parts(graph, model)).run(asked)
    assert '1. MATCH (x1:Officer {surname: "Powell"}) WHERE x1.rank IS NOT NULL RETURN DISTINCT x1.rank' in seen[1]
    assert "name: Chief" in seen[2]
    (item,) = answer.items
    assert (item.name, item.id) == ("Chief", None) and item.grounded
    assert answer.rounds[0].evidence[0].columns == ("rank",)  # type: ignore[attr-defined]
    parts = Parts(graph, said(*replies[:1]))
    without = graphraft_pipeline(parts, ranking="meaning", answerer="ranking").run(asked)
    assert [(one.name, one.value_of) for one in without.items] == [("Chief", "rank")]
