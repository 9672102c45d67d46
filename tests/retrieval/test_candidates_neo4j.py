"""Candidate queries on a genuine Neo4j."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.servers.bolt import Neo4jStore
from byokg.retrieval.candidates import TEMPLATES, Templates
from byokg.retrieval.enumerate_candidates import CandidateFinder
from byokg.types import NodeCell
from tests.graph.bolt_server import load_graph
from tests.graph.genuine_servers import Genuine
from tests.retrieval.test_candidates import ASKED, asked, records_of, whole

neo4j = pytest.importorskip("neo4j", reason="needs neo4j: pip install 'byokg[neo4j]'")


@pytest.fixture(params=[0, 1, 2])
def both(request: pytest.FixtureRequest, neo4j_server: Genuine) -> Iterator[tuple[ColumnarGraph, Neo4jStore, int]]:
    """The same graph here and there, and the seed it was made from."""
    nodes, edges = records_of(request.param)
    uri = neo4j_server.address
    with neo4j.GraphDatabase.driver(uri) as driver:
        driver.execute_query("MATCH (n) DETACH DELETE n")
        load_graph(driver.execute_query, nodes, edges, True)
    with Neo4jStore(uri, id_property="id") as store:
        yield ColumnarGraph.from_records(nodes, edges), store, request.param


def test_candidates_are_those_of_a_graph_in_files_and_every_query_returns_as_many_results(
    both: tuple[ColumnarGraph, Neo4jStore, int],
) -> None:
    graph, store, seed = both
    directed = seed == 1
    anchors, gold = asked(graph, seed)
    templates = Templates(TEMPLATES, directed=directed)
    here = CandidateFinder(graph, templates).find(anchors, gold).items
    assert whole(here) == whole(CandidateFinder(store, templates).find(anchors, gold).items)
    assert {one.template for one in here} == set(TEMPLATES)
    few = Templates(("two_hop", "mediated"), directed=directed)
    asking = CandidateFinder(graph, few).find(anchors, gold, ASKED, ["3"]).items
    assert whole(asking) == whole(CandidateFinder(store, few).find(anchors, gold, ASKED, ["3"]).items)
    for one in [*here[::101], *asking[::101]]:
        for rows in (store.run(one.query).rows, store.run(one.text, one.parameters).rows):
            found = {row[0].id for row in rows if isinstance(row[0], NodeCell)}
            assert one.count or (len(found), len(found & set(gold))) == (one.total, one.hits), one.query
