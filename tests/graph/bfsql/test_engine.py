"""Tests of `byokg.graph.bfsql.engine`, among them the article's worked examples."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import RequestInvalid
from byokg.graph.bfsql.engine import bfs_query, intersect_subgraphs
from byokg.graph.bfsql.protocol import BfsRequest, IntersectRequest, Json, compact
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.text import estimate_tokens
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
        assert [node["id"] for node in full(response["nodes"], 2)] == ["PUB:1", "PUB:2"]
        assert response["nodes"][3] == {
            "id": "PUB:1",
            "entity_type": "Publication",
            "name": "Diagnosing cortisol excess",
            "year": 2008,
            "journal": "Journal of Imagined Endocrinology",
            "abstract_snippet": "Screening tests are compared in a cohort of 212 patients.",
        }
        assert {"id": "PERSON:lindholm", "entity_type": "Person"} in response["nodes"]
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
        request: Json = {
            "seeds": ["DIS:cushing-syndrome"],
            "max_hops": 2,
            "node_filter": {"entity_types": ["Drug"]},
        }
        response = query(biomedical(), **request)
        assert {node["entity_type"] for node in full(response["nodes"], 2)} == {"Drug"}
        # Four treat it, pasireotide treats its subtype, and hydrocortisone activates a gene associated with it.
        assert len(full(response["nodes"], 2)) == 6
        # Without an edge filter all edges come in full, as the article's "Query Format" says.
        assert {"subject", "predicate", "object", "confidence"} <= set(response["edges"][0])
        stubs = query(biomedical(), **request, edge_filter={"predicates": []})
        assert full(stubs["edges"], 3) == []
        assert spelled(stubs) == spelled(response)

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
        assert shared["nodes"] == [{"id": "PUB:2", "entity_type": "Publication"}]

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
            "nodes": [{"id": "f", "entity_type": "Z", "name": "f"}],
            "edges": [],
        }

    def test_nodes_come_by_hops_then_degree_then_id_and_edges_with_their_later_end(self) -> None:
        # degrees within two hops of a: a 4, b 6, c 3, d 1
        response = query(small(), seeds=["a"], max_hops=2)
        assert ids(response) == ["a", "b", "c", "d"]
        assert spelled(response) == ["a r b", "a s b", "a s b", "b s b", "c s a", "b r c", "c r d"]

    def test_properties_called_like_a_field_are_prefixed(self) -> None:
        response = query(small(), seeds=["c"], max_hops=0)
        assert response["nodes"] == [
            {
                "id": "c",
                "entity_type": "Y",
                "name": "c",
                "property_id": "own id",
                "property_name": "own name",
            }
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
        assert ids(first) == ["a", "b"] and spelled(first) == ["a r b", "a s b", "a s b", "b s b"]
        assert (first["node_count"], first["edge_count"]) == (4, 7)
        cursor = first["truncated"]["cursor"]
        assert first["truncated"] == {"by": ["limit"], "nodes_left": 2, "edges_left": 3, "cursor": cursor}
        second = query(small(), seeds=["a"], max_hops=2, limit=2, cursor=cursor)
        assert ids(second) == ["c", "d"] and spelled(second) == ["c s a", "b r c", "c r d"]
        assert "truncated" not in second

    def test_filters_and_bounds_may_change_between_pages(self) -> None:
        cursor = query(small(), seeds=["a"], max_hops=2, max_edges=1)["truncated"]["cursor"]
        rest = query(small(), seeds=["a"], max_hops=2, cursor=cursor, topology_only=True)
        assert rest["nodes"] == [] and len(rest["edges"]) == 6

    def test_an_offset_skips_nodes_and_the_edges_among_them(self) -> None:
        response = query(small(), seeds=["a"], max_hops=2, offset=2)
        assert ids(response) == ["c", "d"] and spelled(response) == ["c s a", "b r c", "c r d"]
        assert query(small(), seeds=["a"], max_hops=2, offset=99)["nodes"] == []

    @pytest.mark.parametrize("other", [{"seeds": ["b"]}, {"max_hops": 3}, {"direction": "out"}])
    def test_a_cursor_of_another_subgraph_is_refused(self, other: Json) -> None:
        cursor = query(small(), seeds=["a"], max_hops=2, limit=1)["truncated"]["cursor"]
        with pytest.raises(RequestInvalid, match="belongs to another subgraph"):
            query(small(), **{"seeds": ["a"], "max_hops": 2, **other, "cursor": cursor})

    def test_a_cursor_is_refused_when_the_graph_has_changed(self) -> None:
        cursor = query(small(), seeds=["a"], max_hops=2, limit=1)["truncated"]["cursor"]
        grown = ColumnarGraph.from_records([node(name) for name in "abcde"], [edge("a", "r", name) for name in "bcde"])
        with pytest.raises(RequestInvalid, match="belongs to another subgraph"):
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
