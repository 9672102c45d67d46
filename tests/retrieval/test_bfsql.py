"""Tests of `byokg.retrieval.bfsql`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from byokg.errors import ConfigError
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.index.embedders import StaticEmbedder
from byokg.linking.parts import Parts
from byokg.retrieval.bfsql import BfsqlRetriever
from byokg.types import (
    Artifacts,
    Context,
    EntityId,
    Evidence,
    Feedback,
    Linked,
    LinkedEntity,
    Mention,
    NodeEvidence,
    Question,
    Request,
    TripleEvidence,
)
from tests.graph.bfsql.graphs import biomedical

EMBEDDER = StaticEmbedder()


def linked(entity: str, mention: str, score: float = 1.0) -> LinkedEntity:
    return LinkedEntity(EntityId(entity), entity, Mention(mention), "exact", score)


def asked(*entities: LinkedEntity, question: str = "?", bfsql: Any = None) -> Request:
    written = bfsql if bfsql is None or isinstance(bfsql, str) else json.dumps(bfsql)
    return Request(Question("q", question), Artifacts(bfsql=written), Linked(entities), Context())


def retriever(**settings: Any) -> BfsqlRetriever:
    return BfsqlRetriever(Parts(biomedical(), embedder=EMBEDDER), **settings)


def spelled(found: list[Evidence], stub: bool) -> list[str]:
    return [
        f"{item.triple.head} {item.triple.relation} {item.triple.tail}"
        for item in found
        if isinstance(item, TripleEvidence) and item.stub == stub
    ]


def nodes(found: list[Evidence]) -> list[str]:
    return [item.node.id for item in found if isinstance(item, NodeEvidence)]


def problems(found: list[Evidence]) -> list[str]:
    return [item.problem for item in found if isinstance(item, Feedback)]


SYNDROME = linked("DIS:cushing-syndrome", "Cushing syndrome")


class TestOfLinkedEntities:
    def test_relations_near_to_the_question_come_in_full_and_others_as_stubs(self) -> None:
        request = asked(SYNDROME, question="Which symptoms does Cushing syndrome have?")
        found = retriever(predicates=1, max_hops=1).retrieve(request)
        assert spelled(found, stub=False) == [
            "DIS:cushing-syndrome HAS_SYMPTOM SYM:hypertension",
            "DIS:cushing-syndrome HAS_SYMPTOM SYM:weight-gain",
            "DIS:cushing-syndrome HAS_SYMPTOM SYM:muscle-weakness",
        ]
        assert "DRUG:metyrapone TREATS DIS:cushing-syndrome" in spelled(found, stub=True)
        edges = [item for item in found if isinstance(item, TripleEvidence)]
        assert [item.stub for item in edges] == sorted(item.stub for item in edges)
        assert [bool(item.triple.properties) for item in edges] == [not item.stub for item in edges]

    def test_what_is_nearer_to_the_seeds_comes_first(self) -> None:
        request = asked(SYNDROME, question="Which drugs treat Cushing syndrome?")
        found = spelled(retriever(predicates=1).retrieve(request), stub=False)
        assert all("cushing-syndrome" in edge for edge in found[:5])
        assert "DRUG:pasireotide TREATS DIS:cushing-disease" in found[5:]

    def test_edges_keep_their_properties_and_parallel_ones_are_apart(self) -> None:
        written = {"seeds": ["ketoconazole"], "max_hops": 1, "predicates": ["TREATS"]}
        found = retriever().retrieve(asked(bfsql=written))
        edges = [item.triple for item in found if isinstance(item, TripleEvidence) and not item.stub]
        treats = [triple for triple in edges if triple.head == "DRUG:ketoconazole"]
        assert [triple.properties["confidence"] for triple in treats] == [0.9, 0.7]
        assert len({triple.edge for triple in treats}) == 2

    def test_nodes_with_properties_come_seeds_first(self) -> None:
        request = asked(linked("PUB:1", "the paper"), question="Who authored it?")
        assert nodes(retriever(predicates=1, max_hops=2).retrieve(request))[:2] == ["PUB:1", "PUB:2"]

    def test_what_the_limits_leave_out_is_counted_beside_the_edges_and_in_the_step(self) -> None:
        request = asked(SYNDROME, question="Which symptoms does Cushing syndrome have?")
        found = retriever(predicates=1, max_hops=1, max_edges=1, max_stubs=0).retrieve(request)
        (edge,) = (item for item in found if isinstance(item, TripleEvidence))
        assert (edge.inverse, edge.left_out) == (False, 2)  # two of its three symptoms
        left_out = request.steps[0].got["left_out"]
        assert isinstance(left_out, dict) and left_out["edges_in_full"] == 2 and left_out["stubs"] > 0

    def test_only_the_best_candidates_of_a_mention_are_seeds(self) -> None:
        request = asked(SYNDROME, linked("DIS:acromegaly", "Cushing syndrome", 0.9), linked("PUB:1", "paper", 0.5))
        retriever(max_hops=1).retrieve(request)
        (step,) = request.steps
        assert step.given["request"]["seeds"] == ["DIS:cushing-syndrome", "PUB:1"]  # type: ignore[index]

    def test_nothing_linked_brings_nothing(self) -> None:
        request = asked(question="Who?")
        assert retriever().retrieve(request) == [] and request.steps == []

    def test_bounds_hold(self) -> None:
        found = retriever(max_edges=3, max_stubs=2, max_nodes=1, predicates=2).retrieve(asked(SYNDROME))
        assert (len(spelled(found, stub=False)), len(spelled(found, stub=True))) == (3, 2)
        assert len(nodes(found)) <= 1

    def test_hubs_on_the_way_are_not_walked_through(self) -> None:
        # seed - hub - 50 others
        store = ColumnarGraph.from_triples([("seed", "r", "hub"), *(("hub", "r", f"n{at}") for at in range(50))])
        request = asked(linked("seed", "seed"))
        found = BfsqlRetriever(Parts(store, embedder=EMBEDDER), max_degree=10).retrieve(request)
        assert spelled(found, stub=False) == ["seed r hub"]

    def test_the_step_says_what_was_asked_and_what_came(self) -> None:
        request = asked(linked("PUB:4", "paper"), question="What is discussed?")
        retriever(predicates=1, max_hops=1).retrieve(request)
        (step,) = request.steps
        assert step.stage == "bfsql"
        assert step.given["request"] == {
            "seeds": ["PUB:4"],
            "max_hops": 1,
            "max_degree": 500,
            "edge_filter": {"predicates": ["DISCUSSES"]},
        }
        assert step.got == {"nodes": 4, "edges": 4, "edges_in_full": 2, "stubs": 2, "nodes_in_full": 1}
        json.dumps(step.given)


class TestOfWrittenRequests:
    def test_seeds_are_names_that_are_linked(self) -> None:
        written = {"seeds": ["Acromegaly"], "max_hops": 1, "edge_filter": {"predicates": ["TREATS"]}}
        found = retriever().retrieve(asked(SYNDROME, bfsql=written))
        assert spelled(found, stub=False) == [
            "DRUG:pasireotide TREATS DIS:acromegaly",
            "DRUG:octreotide TREATS DIS:acromegaly",
        ]
        assert problems(found) == []

    def test_a_name_linked_as_a_mention_means_the_same(self) -> None:
        written = {"seeds": ["THE PAPER"], "max_hops": 0}
        request = asked(linked("PUB:3", "the paper"), bfsql=written)
        assert nodes(retriever().retrieve(request)) == ["PUB:3"]

    def test_a_node_filter_narrows_the_nodes(self) -> None:
        written = {"seeds": ["Ines Ferrand"], "max_hops": 1, "node_filter": {"entity_types": ["Publication"]}}
        assert nodes(retriever().retrieve(asked(bfsql=written))) == ["PUB:1", "PUB:2"]

    def test_a_value_that_no_node_has_becomes_feedback_with_the_nearest(self) -> None:
        year: dict[str, object] = {"seeds": ["Ines Ferrand"], "max_hops": 1}
        year["node_filter"] = {"properties": {"year": "2008"}}
        found = retriever().retrieve(asked(bfsql=year))
        assert nodes(found) == ["PUB:1"] and problems(found) == []
        year["node_filter"] = {"properties": {"year": 1776}}
        found = retriever().retrieve(asked(bfsql=year))
        assert nodes(found) == []
        (problem,) = problems(found)
        assert problem.startswith("no node has year = 1776, so it matches nothing; nearest: ")

    def test_misspelt_relations_are_tied_to_those_of_the_graph(self) -> None:
        written = {"seeds": ["Acromegaly"], "max_hops": 1, "predicates": ["hasSymptom"]}
        found = retriever().retrieve(asked(bfsql=written))
        assert {edge.split()[1] for edge in spelled(found, stub=False)} == {"HAS_SYMPTOM"}

    def test_what_the_graph_does_not_have_becomes_feedback_and_the_rest_is_answered(self) -> None:
        written = {
            "seeds": ["Acromegaly", "Nobody at all"],
            "max_hops": 1,
            "node_filter": {"entity_types": ["Drugs"]},
            "edge_filter": {"predicates": ["TEACHES", "HAS_SYMPTOM"]},
        }
        found = retriever().retrieve(asked(bfsql=written))
        assert problems(found) == [
            "no node is called 'Nobody at all'; seeds are names as the graph or the question spells them",
            "no entity type 'Drugs' in the graph; nearest: 'Drug'",
            "no predicate 'TEACHES' in the graph; nearest: 'TREATS'",
        ]
        assert len(spelled(found, stub=False)) == 2

    @pytest.mark.parametrize(
        ("written", "problem"),
        [
            ('{"max_hops": 1}', "seeds: missing"),
            ('{"seeds": ["Acromegaly"], "max_hops": 1, "filter": {}}', "filter: no such field"),
            ("Acromegaly", "no JSON"),
        ],
    )
    def test_one_that_cannot_be_read_becomes_feedback_and_the_linked_entities_are_asked_about(
        self, written: str, problem: str
    ) -> None:
        found = retriever(max_hops=1).retrieve(asked(linked("PUB:1", "paper"), bfsql=written))
        assert problem in problems(found)[0]
        assert "PUB:1 DISCUSSES DIS:cushing-syndrome" in spelled(found, stub=False)

    def test_more_hops_than_allowed_are_not_walked(self) -> None:
        request = asked(bfsql={"seeds": ["Acromegaly"], "max_hops": 5})
        found = retriever(max_hops=1).retrieve(request)
        assert problems(found) == [
            "max_hops 5 is above the limit: 1 were walked; to see further, ask from the nodes that they lead to"
        ]
        assert request.steps[0].given["request"]["max_hops"] == 1  # type: ignore[index]

    def test_bounds_of_the_request_lower_those_of_the_retriever(self) -> None:
        written = {"seeds": ["Cushing syndrome"], "max_hops": 1, "predicates": ["TREATS"], "max_edges": 3}
        found = retriever().retrieve(asked(bfsql=written))
        assert len(spelled(found, stub=False)) + len(spelled(found, stub=True)) == 3
        written = {"seeds": ["Ines Ferrand"], "max_hops": 1, "limit": 1, "cursor": "n1-e1-0", "budget_tokens": 100}
        request = asked(bfsql=written)
        assert len(nodes(retriever().retrieve(request))) == 1
        assert "cursor" not in request.steps[0].given["request"]  # type: ignore[operator]

    def test_topology_alone_comes_as_stubs(self) -> None:
        written = {"seeds": ["PUB:4"], "max_hops": 1, "topology_only": True}
        found = retriever().retrieve(asked(linked("PUB:4", "PUB:4"), bfsql=written))
        assert spelled(found, stub=False) == [] and nodes(found) == [] and len(spelled(found, stub=True)) == 4


@pytest.mark.parametrize("setting", ["max_hops", "predicates", "max_degree"])
def test_settings_that_reach_nothing_are_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match=f"{setting}=0 reaches nothing"):
        retriever(**{setting: 0})
