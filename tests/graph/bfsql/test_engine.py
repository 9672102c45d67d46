"""Tests of `byokg.graph.bfsql.engine`, among them the article's worked examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.arrays import Int64
from byokg.errors import CallStopped, RequestInvalid
from byokg.graph.bfsql.engine import bfs_query, intersect_subgraphs
from byokg.graph.bfsql.protocol import BfsRequest, IntersectRequest, Json, StrictBfsRequest, compact, read_request
from byokg.graph.cancellation import CancelToken
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.graph.store import Direction
from byokg.graph.traversal import triples
from byokg.text.names import estimate_tokens
from byokg.types import EntityId, Node
from tests.graph.bfsql.graphs import biomedical, small
from tests.graph.contract import edge, node


def query(store: ColumnarGraph, **request: Any) -> Json:
    return bfs_query(store, BfsRequest.model_validate(request))


def ids(response: Json) -> list[str]:
    return [node["id"] for node in response["nodes"]]


def spelled(response: Json) -> list[str]:
    return [f"{edge['subject']} {edge['predicate']} {edge['object']}" for edge in response["edges"]]


def full(items: list[Json], stub: int) -> list[Json]:
    """Return the items that say more than a stub of so many fields."""
    return [item for item in items if len(item) > stub]


class TestWorkedExamples:
    """The examples of the article, on a graph of our own."""

    def test_an_authors_publications_with_provenance(self) -> None:
        response = query(
            biomedical(),
            seeds=["PERSON:ferrand"],
            max_hops=1,
            node_filter={"entity_types": ["Publication"]},
            edge_filter={"predicates": ["AUTHORED"]},
        )
        assert [node["id"] for node in full(response["nodes"], 3)] == ["PUB:1", "PUB:2"]
        assert response["nodes"][1] == {
            "id": "PUB:1",
            "entity_type": "Publication",
            "name": "Diagnosing cortisol excess",
            "year": 2008,
            "journal": "Journal of Imagined Endocrinology",
            "abstract_snippet": "Screening tests are compared in a cohort of 212 patients.",
        }
        assert {"id": "PERSON:lindholm", "entity_type": "Person", "name": "Sara Lindholm"} in response["nodes"]
        authored = full(response["edges"], 3)
        assert [edge["object"] for edge in authored] == ["PUB:1", "PUB:2"]
        assert authored[0] == {
            "subject": "PERSON:ferrand",
            "predicate": "AUTHORED",
            "object": "PUB:1",
            "confidence": 0.97,
            "provenance": [
                {
                    "source_doc": "PUB:1",
                    "section": "metadata",
                    "method": "structured_extraction",
                    "evidence_type": "primary_authorship",
                }
            ],
        }
        # an edge between two nodes of the last hop
        assert {"subject": "PERSON:lindholm", "predicate": "AFFILIATED_WITH", "object": "INST:rivermouth"} in response[
            "edges"
        ]

    def test_a_diseases_neighbourhood_with_its_drugs_in_full(self) -> None:
        request: Json = {"seeds": ["DIS:cushing-syndrome"], "max_hops": 2, "node_filter": {"entity_types": ["Drug"]}}
        response = query(biomedical(), **request)
        # Four treat it, pasireotide treats its subtype, and hydrocortisone activates a gene associated with it.
        assert sum(node["entity_type"] == "Drug" for node in response["nodes"]) == 6
        assert [node["entity_type"] for node in response["nodes"][1:5]] == ["Drug"] * 4
        # Without an edge filter all edges come in full, as the article's "Query Format" says.
        assert {"subject", "predicate", "object", "confidence"} <= set(response["edges"][0])
        stubs = query(biomedical(), **request, edge_filter={"predicates": []})
        assert full(stubs["edges"], 3) == []
        assert sorted(spelled(stubs)) == sorted(spelled(response))

    def test_nodes_with_a_value_come_in_full_and_one_that_none_has_gets_the_nearest(self) -> None:
        nodes = [Node(EntityId(f"o{at}"), f"o{at}", "Officer", {"calls": 7 + at, "city": "Wien"}) for at in range(3)]
        graph = ColumnarGraph.from_records(nodes, [edge("o0", "knows", "o1"), edge("o0", "knows", "o2")])
        request: Json = {"seeds": ["o0"], "node_filter": {"properties": {"calls": "8", "city": "Wien"}}}
        response = query(graph, **request)
        assert [node["id"] for node in full(response["nodes"], 2)] == ["o1"] and "warnings" not in response
        missing = query(graph, seeds=["o0"], node_filter={"entity_types": ["Officer"], "properties": {"city": "Wein"}})
        assert full(missing["nodes"], 2) == []
        assert missing["warnings"] == ["no node has city = 'Wein', so it matches nothing; nearest: 'Wien' (Officer, 3)"]
        (warning,) = query(graph, seeds=["o0"], node_filter={"properties": {"town": "Wien"}})["warnings"]
        assert warning.startswith("no property 'town' in the graph, so it matches nothing; nearest: ")

    def test_shared_connections_of_two_researchers(self) -> None:
        response = query(
            biomedical(),
            seeds=["PERSON:ferrand", "PERSON:okoye"],
            max_hops=2,
            node_filter={"entity_types": ["Publication", "Disease"]},
            edge_filter={"predicates": ["AUTHORED", "DISCUSSES"]},
        )
        assert ids(response)[:2] == ["PERSON:ferrand", "PERSON:okoye"]
        assert len(ids(response)) == len(set(ids(response)))
        authors = [edge["subject"] for edge in response["edges"] if edge["object"] == "PUB:2"]
        assert authors == ["PERSON:ferrand", "PERSON:okoye"]
        assert {edge["predicate"] for edge in full(response["edges"], 3)} == {"AUTHORED", "DISCUSSES"}
        shared = intersect_subgraphs(
            biomedical(), IntersectRequest(seeds=("PERSON:ferrand", "PERSON:okoye"), k=1, topology_only=True)
        )
        name = "Enzyme inhibitors in Cushing syndrome"
        assert shared["nodes"] == [{"id": "PUB:2", "entity_type": "Publication", "name": name}]

    def test_parallel_edges_keep_their_own_provenance(self) -> None:
        response = query(biomedical(), seeds=["DRUG:ketoconazole"], max_hops=1)
        treats = [edge for edge in response["edges"] if edge["predicate"] == "TREATS"]
        assert [edge["provenance"][0]["source_doc"] for edge in treats if edge["subject"] == "DRUG:ketoconazole"] == [
            "PUB:2",
            "PUB:1",
        ]


class TestTheResponse:
    def test_it_has_the_articles_fields_and_no_others_where_nothing_else_is_to_be_said(self) -> None:
        assert query(small(), seeds=["f"], max_hops=2) == {
            "seeds": ["f"],
            "max_hops": 2,
            "node_count": 1,
            "edge_count": 0,
            "nodes": [{"id": "f", "entity_type": "Z"}],
            "edges": [],
        }

    def test_edges_come_by_hops_then_the_degree_of_the_far_end_and_nodes_before_them(self) -> None:
        # degrees within two hops of a: a 4, b 6, c 3, d 1; c r d leads away, b s b and b r c stay where they are
        response = query(small(), seeds=["a"], max_hops=2)
        assert ids(response) == ["a", "b", "c", "d"]
        assert spelled(response) == ["a r b", "a s b", "a s b", "c s a", "b s b", "b r c", "c r d"]

    def test_what_a_filter_asks_for_comes_first_with_its_ends(self) -> None:
        response = query(small(), seeds=["a"], max_hops=2, edge_filter={"predicates": ["r"]}, max_edges=3)
        assert spelled(response) == ["a r b", "b r c", "c r d"]
        assert ids(response) == ["a", "b", "c", "d"]
        assert response["truncated"]["matching_left"] == 0
        by_type = query(small(), seeds=["a"], max_hops=1, node_types=["Y"])
        assert spelled(by_type)[:2] == ["c s a", "b r c"]

    def test_what_has_no_room_is_folded_by_predicate_and_direction_with_a_sample(self) -> None:
        response = query(small(), seeds=["a"], max_hops=2, edge_filter={"predicates": ["r"]}, max_edges=1)
        assert response["folded"] == [
            {"predicate": "r", "direction": "out", "count": 1, "sample": [{"id": "d"}]},
            {"predicate": "r", "direction": "level", "count": 1, "sample": [{"id": "c"}]},
            {"predicate": "s", "direction": "out", "count": 2, "sample": [{"id": "b"}]},
            {"predicate": "s", "direction": "in", "count": 1, "sample": [{"id": "c"}]},
            {"predicate": "s", "direction": "level", "count": 1, "sample": [{"id": "b"}]},
        ]

    def test_a_question_puts_relevant_predicates_before_nearer_edges(self) -> None:
        def relevance(question: str) -> Int64:
            return np.array([{"r": 1, "s": 0}[label] for label in small().relations])

        asked = BfsRequest(seeds=("a",), max_hops=2, question="what is s of a?")
        response = bfs_query(small(), asked, relevance=relevance)
        assert spelled(response) == ["a s b", "a s b", "c s a", "b s b", "a r b", "b r c", "c r d"]
        assert spelled(bfs_query(small(), asked))[0] == "a r b"

    def test_a_mediator_says_what_it_stands_for(self) -> None:
        # Ann -spouse_s-> m.0m1 -spouse-> Bob, and it has a year
        graph = ColumnarGraph.from_triples(
            [
                ("Ann", "spouse_s", "m.0m1"),
                ("m.0m1", "spouse", "Bob"),
                ("m.0m1", "from", "1999"),
                ("Bob", "^x", "m.0m1"),
            ]
        )
        [ann, mediator] = query(graph, seeds=["Ann"], max_hops=1)["nodes"]
        assert ann == {"id": "Ann"}
        assert mediator == {"id": "m.0m1", "about": {"from": "1999", "spouse": "Bob"}}
        [group] = query(graph, seeds=["Ann"], max_hops=1, predicates=["from"], budget_tokens=130)["folded"]
        assert group["sample"] == [{"id": "m.0m1", "about": {"from": "1999"}}]

    def test_properties_called_like_a_field_are_prefixed(self) -> None:
        response = query(small(), seeds=["c"], max_hops=0)
        assert response["nodes"] == [
            {"id": "c", "entity_type": "Y", "property_id": "own id", "property_name": "own name"}
        ]
        response = query(small(), seeds=["e"], max_hops=1)
        assert response["edges"][0] == {
            "subject": "d",
            "predicate": "r",
            "object": "e",
            "property_subject": "own subject",
        }

    def test_topology_only_leaves_stubs_whatever_the_filters_say(self) -> None:
        response = query(small(), seeds=["a"], max_hops=1, topology_only=True, node_types=["X"])
        assert full(response["nodes"], 2) == [] and full(response["edges"], 3) == []

    def test_what_changed_the_topology_is_said(self) -> None:
        assert query(small(), seeds=["b"], max_hops=1, direction="out")["restricted_by"] == ["direction=out"]

    def test_names_that_the_graph_does_not_have_are_warned_of_with_the_nearest(self) -> None:
        response = query(biomedical(), seeds=["PUB:1"], max_hops=0, predicates=["DISCUSS"], node_types=["Ship"])
        assert response["warnings"] == [
            "no entity type 'Ship' in the graph, so it matches nothing; see describe_schema",
            "no predicate 'DISCUSS' in the graph, so it matches nothing; nearest: 'DISCUSSES'",
        ]


class TestSeeds:
    def test_an_unknown_one_is_reported_with_the_nearest_and_the_others_are_answered(self) -> None:
        def nearest(text: str) -> list[Node]:
            return [Node(EntityId("f"), f"like {text}", "Z")]

        response = bfs_query(small(), BfsRequest(seeds=("x", "f", "y"), max_hops=1), nearest)
        assert ids(response) == ["f"]
        assert [error["seed"] for error in response["errors"]] == ["x", "y"]
        assert response["errors"][0] == {
            "seed": "x",
            "message": "no node has the id 'x'; use the id of one of the nearest nodes",
            "nearest": [{"id": "f", "entity_type": "Z", "name": "like x"}],
        }

    def test_none_known_is_an_empty_subgraph(self) -> None:
        response = query(small(), seeds=["x"], max_hops=1)
        assert (response["node_count"], response["edge_count"]) == (0, 0)
        assert response["errors"][0]["message"] == "no node has the id 'x'; find ids with search_entities"

    def test_one_said_twice_changes_nothing(self) -> None:
        once, twice = (query(small(), seeds=seeds, max_hops=1) for seeds in (["a"], ["a", "a"]))
        assert (once["nodes"], once["edges"]) == (twice["nodes"], twice["edges"])

    def test_nothing_is_near_every_seed_when_one_is_unknown(self) -> None:
        response = intersect_subgraphs(small(), IntersectRequest(seeds=("a", "x"), k=2))
        assert response["nodes"] == [] and response["errors"][0]["seed"] == "x"


class TestPages:
    def test_a_limit_counts_nodes_and_says_how_to_go_on(self) -> None:
        first = query(small(), seeds=["a"], max_hops=2, limit=2)
        assert ids(first) == ["a", "b"] and spelled(first) == ["a r b", "a s b", "a s b"]
        assert (first["node_count"], first["edge_count"]) == (4, 7)
        cursor = first["truncated"].pop("cursor")
        assert first["truncated"] == {"by": ["limit"], "matching_left": 4, "nodes_left": 2, "edges_left": 4}
        second = query(small(), seeds=["a"], max_hops=2, limit=2, cursor=cursor)
        assert ids(second) == ["c", "d"] and spelled(second) == ["c s a", "b s b", "b r c", "c r d"]
        assert "truncated" not in second

    def test_bounds_may_change_between_pages_and_filters_may_not(self) -> None:
        cursor = query(small(), seeds=["a"], max_hops=2, max_edges=1)["truncated"]["cursor"]
        rest = query(small(), seeds=["a"], max_hops=2, cursor=cursor, topology_only=True)
        assert len(rest["edges"]) == 6
        for other in ({"predicates": ["r"]}, {"node_types": ["Y"]}):
            with pytest.raises(RequestInvalid, match="keep all arguments"):
                query(small(), seeds=["a"], max_hops=2, cursor=cursor, **other)

    def test_a_cursor_of_another_graph_is_refused_though_the_subgraph_is_the_same(self, tmp_path: Path) -> None:
        small().save(tmp_path / "one")
        other = [*small().nodes(list(small().entities())), node("g")]
        edges = triples(small(), small().edges(np.arange(6), Direction.OUT))
        ColumnarGraph.from_records(other, edges).save(tmp_path / "other")
        stores = [ColumnarGraph.open(tmp_path / name) for name in ("one", "other")]
        cursor = query(stores[0], seeds=["a"], max_hops=2, limit=1)["truncated"]["cursor"]
        with pytest.raises(RequestInvalid, match="belongs to another graph"):
            query(stores[1], seeds=["a"], max_hops=2, cursor=cursor)

    def test_an_offset_skips_nodes_and_the_edges_among_them(self) -> None:
        response = query(small(), seeds=["a"], max_hops=2, offset=2)
        assert ids(response) == ["c", "d"] and spelled(response) == ["c s a", "b s b", "b r c", "c r d"]
        assert query(small(), seeds=["a"], max_hops=2, offset=99)["nodes"] == []

    @pytest.mark.parametrize("other", [{"seeds": ["b"]}, {"max_hops": 3}, {"direction": "out"}])
    def test_a_cursor_of_another_subgraph_is_refused(self, other: Json) -> None:
        cursor = query(small(), seeds=["a"], max_hops=2, limit=1)["truncated"]["cursor"]
        with pytest.raises(RequestInvalid, match="belongs to another graph"):
            query(small(), **{"seeds": ["a"], "max_hops": 2, **other, "cursor": cursor})

    def test_a_cursor_is_refused_when_the_graph_has_changed(self) -> None:
        cursor = query(small(), seeds=["a"], max_hops=2, limit=1)["truncated"]["cursor"]
        grown = ColumnarGraph.from_records([node(name) for name in "abcde"], [edge("a", "r", name) for name in "bcde"])
        with pytest.raises(RequestInvalid, match="belongs to another graph"):
            query(grown, seeds=["a"], max_hops=2, cursor=cursor)

    def test_text_that_is_no_cursor_is_refused(self) -> None:
        with pytest.raises(RequestInvalid, match="copy truncated"):
            query(small(), seeds=["a"], max_hops=1, cursor="page 2")

    @settings(deadline=None, max_examples=40)
    @given(st.integers(150, 6000))
    def test_a_budget_is_kept_and_used(self, budget: int) -> None:
        response = query(biomedical(), seeds=["DIS:cushing-syndrome"], max_hops=2, budget_tokens=budget)
        size = estimate_tokens(compact(response))
        assert size <= budget or len(response["nodes"]) + len(response["edges"]) == 1
        if "truncated" in response:
            assert response["truncated"]["by"] == ["budget_tokens"]
            assert size > budget - 400  # the next item has no room


def test_the_same_request_gives_the_same_bytes() -> None:
    answers = {json.dumps(query(biomedical(), seeds=["PUB:2", "PUB:3"], max_hops=2)) for _ in range(3)}
    assert len(answers) == 1


class TestStrict:
    """The article's own request and response, of its own nodes and edges."""

    REQUEST = """{
  "seeds": ["PERSON:12345"],
  "max_hops": 1,
  "node_filter": {
    "entity_types": ["Publication"]
  },
  "edge_filter": {
    "predicates": ["AUTHORED"]
  }
}"""
    PROVENANCE = (
        '[{"source_doc":"PMC2386281","section":"metadata","method":"structured_extraction",'
        '"evidence_type":"primary_authorship"}]'
    )
    RESPONSE = (
        '{"seeds":["PERSON:12345"],"max_hops":1,"node_count":3,"edge_count":2,"nodes":['
        '{"id":"PERSON:12345","entity_type":"Person"},'
        '{"id":"PUB:PMC2386281","entity_type":"Publication","title":"The Diagnosis of Cushing\'s Syndrome",'
        '"canonical_id":"PMID:18493314","year":2008,"journal":"Reviews in Endocrine and Metabolic Disorders",'
        '"authors":["Stewart PM"],"abstract_snippet":"..."},'
        '{"id":"PERSON:67890","entity_type":"Person"}],"edges":['
        '{"subject":"PERSON:12345","predicate":"AUTHORED","object":"PUB:PMC2386281","confidence":0.97,'
        f'"provenance":{PROVENANCE}}},'
        '{"subject":"PERSON:12345","predicate":"COLLEAGUE_OF","object":"PERSON:67890"}]}'
    )

    def graph(self, tmp_path: Path) -> ColumnarGraph:
        publication = {
            "title": "The Diagnosis of Cushing's Syndrome",
            "canonical_id": "PMID:18493314",
            "year": 2008,
            "journal": "Reviews in Endocrine and Metabolic Disorders",
            "authors": ["Stewart PM"],
            "abstract_snippet": "...",
        }
        lines: list[Json] = [
            {"id": "PERSON:12345", "type": "Person", "name": "Paul Stewart"},
            {"id": "PERSON:67890", "type": "Person", "name": "A. Jones"},
            {"id": "PUB:PMC2386281", "type": "Publication", "name": publication["title"], **publication},
            {
                "head": "PERSON:12345",
                "relation": "AUTHORED",
                "tail": "PUB:PMC2386281",
                "confidence": 0.97,
                "provenance": json.loads(self.PROVENANCE),
            },
            {"head": "PERSON:12345", "relation": "COLLEAGUE_OF", "tail": "PERSON:67890", "confidence": 0.6},
        ]
        (tmp_path / "article.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
        return import_graph(tmp_path / "article.jsonl")

    def test_the_articles_request_is_answered_in_its_form_byte_for_byte(self, tmp_path: Path) -> None:
        request = read_request(StrictBfsRequest, self.REQUEST)
        asked = BfsRequest.model_validate(request.model_dump(exclude_none=True))
        assert compact(bfs_query(self.graph(tmp_path), asked, strict=True)) == self.RESPONSE

    def test_what_the_article_does_not_have_is_refused(self) -> None:
        with pytest.raises(RequestInvalid, match="question: no such field"):
            read_request(StrictBfsRequest, {"seeds": ["a"], "max_hops": 1, "question": "who?"})
        with pytest.raises(RequestInvalid, match="no node has the id 'x'"):
            bfs_query(small(), BfsRequest(seeds=("a", "x"), max_hops=1), strict=True)


def test_a_search_that_is_over_ends() -> None:
    with CancelToken(timeout_s=-1).work():
        with pytest.raises(CallStopped):
            query(small(), seeds=["a"], max_hops=2)
        with pytest.raises(CallStopped):
            intersect_subgraphs(small(), IntersectRequest(seeds=("a", "b"), k=2))
