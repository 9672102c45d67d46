"""The same request gets the same answer from every kind of store, real engines and servers all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from byokg.graph.bfsql.engine import bfs_query, intersect_subgraphs
from byokg.graph.bfsql.protocol import BfsRequest, IntersectRequest, Json
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.store import Direction, GraphStore
from byokg.graph.traversal import neighbours, triples
from byokg.types import Node, Triple
from tests.graph.bfsql.graphs import biomedical
from tests.graph.bolt_server import PASSWORD, BoltDatabases

REQUESTS: list[Json] = [
    {"seeds": ["PERSON:ferrand"], "max_hops": 1, "node_types": ["Publication"], "predicates": ["AUTHORED"]},
    {"seeds": ["DIS:cushing-syndrome"], "max_hops": 2, "node_filter": {"entity_types": ["Drug"]}},
    {"seeds": ["PERSON:ferrand", "PERSON:okoye"], "max_hops": 2, "limit": 7, "max_edges": 9},
    {"seeds": ["DRUG:pasireotide"], "max_hops": 2, "direction": "out"},
    {"seeds": ["DRUG:pasireotide"], "max_hops": 2, "direction": "in"},
    {"seeds": ["PUB:3"], "max_hops": 3, "exclude_entity_types": ["Gene", "Disease"]},
    {"seeds": ["GENE:POMC"], "max_hops": 2, "min_confidence": 0.7},
    {"seeds": ["PUB:1"], "max_hops": 2, "max_degree": 4, "budget_tokens": 900},
    {"seeds": ["nobody", "PUB:1"], "max_hops": 0, "predicates": ["unheard of"]},
    {"seeds": ["nobody"], "max_hops": 1},
]


def records(graph: ColumnarGraph) -> tuple[list[Node], list[Triple]]:
    every = list(graph.entities())
    return graph.nodes(every), triples(graph, neighbours(graph, every, Direction.OUT))


@pytest.fixture
def arcadedb(arcade_process: ArcadeStore) -> GraphStore:
    arcade_process.replace(biomedical())
    return arcade_process


@pytest.fixture
def oxigraph(tmp_path: Path) -> Iterator[GraphStore]:
    pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")
    from byokg.graph.engines.oxigraph import build_oxigraph

    with build_oxigraph(biomedical(), tmp_path / "oxigraph") as store:
        yield store


@pytest.fixture
def neo4j(bolt: BoltDatabases) -> Iterator[GraphStore]:
    pytest.importorskip("neo4j", reason="needs neo4j: pip install 'byokg[neo4j]'")
    from byokg.graph.servers.bolt import Neo4jStore

    database = bolt.new_database()
    bolt.load(database, *records(biomedical()), True)
    store = Neo4jStore(bolt.uri, database, "root", PASSWORD, "id", "name")
    yield store
    store.close()


@pytest.mark.parametrize("kind", ["arcadedb", "oxigraph", "neo4j"])
def test_a_store_answers_as_the_columnar_one_does(kind: str, request: pytest.FixtureRequest) -> None:
    store: GraphStore = request.getfixturevalue(kind)
    graph = biomedical()
    for asked in REQUESTS:
        wanted, found = (bfs_query(each, BfsRequest.model_validate(asked)) for each in (graph, store))
        for answer in (wanted, found):
            answer.get("truncated", {}).pop("cursor", None)  # which belongs to one graph
        assert found == wanted, asked
    shared = IntersectRequest(seeds=("PERSON:ferrand", "PERSON:lindholm"), k=2)
    assert intersect_subgraphs(store, shared) == intersect_subgraphs(graph, shared)
