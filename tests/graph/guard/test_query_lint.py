"""What a query asks of its graph that the graph does not have, against real engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from byokg.errors import QueryRefused
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.engines.oxigraph import OxigraphStore, build_oxigraph
from byokg.graph.guard.lint import lint_query
from byokg.graph.servers.sparql_store import SparqlStore
from byokg.types import EntityId, Node, Triple
from tests.graph.bolt_server import PASSWORD, BoltDatabases
from tests.graph.contract import edge

# (alien:Film {released}) -directed_by {since}-> (scott:Person)
NODES = [
    Node(EntityId("alien"), "Alien", "Film", {"released": 1979}),
    Node(EntityId("scott"), "Scott", "Person"),
]
EDGES: list[Triple] = [edge("alien", "directed_by", "scott", since=1979)]


@pytest.fixture(scope="module")
def arcade(arcade_process: ArcadeStore) -> ArcadeStore:
    arcade_process.replace(ColumnarGraph.from_records(NODES, EDGES))
    return arcade_process


@pytest.fixture(scope="module")
def oxigraph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OxigraphStore]:
    pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")
    folder = tmp_path_factory.mktemp("lint") / "store"
    with build_oxigraph(ColumnarGraph.from_records(NODES, EDGES), folder) as store:
        yield store


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (f:Film)-[r:directed_by]->(p:Person {name: 'Scott'}) RETURN f.id, f.released, r.since",
        "MATCH (f:Entity)-[:directed_by]->(p:Entity) RETURN f.name, p.id",
        "MATCH (f:Film:Entity) RETURN f",
    ],
)
def test_what_an_embedded_graph_has_is_not_reported(arcade: ArcadeStore, text: str) -> None:
    assert lint_query(arcade, text) == []


def test_unknown_names_come_with_the_nearest_and_their_place(arcade: ArcadeStore) -> None:
    text = "MATCH (f:Flim)-[:directd_by]->(p:Person)\nWHERE p.nam = 'Scott' RETURN f"
    found = [(one.kind, one.name, one.line, one.column, one.nearest) for one in lint_query(arcade, text)]
    assert found == [
        ("label", "Flim", 1, 10, ("Film",)),
        ("relation", "directd_by", 1, 18, ("directed_by",)),
    ]
    (turned,) = lint_query(arcade, "MATCH (p:Person)-[:directed_by]->(f:Film) RETURN f")
    assert turned.kind == "direction" and "points the other way" in turned.message
    (unknown,) = lint_query(arcade, "MATCH (f:Film) RETURN f.relased")
    assert (unknown.kind, unknown.nearest[0]) == ("property", "released")


def test_what_an_rdf_store_has_is_not_reported(oxigraph: SparqlStore) -> None:
    text = "SELECT ?p { ?f a kg:Film ; kg:directed_by ?p ; kg:released ?y ; rdfs:label 'Alien' . ?s kg:since 1979 }"
    assert lint_query(oxigraph, text) == []


def test_sparql_names_are_reported_as_a_query_would_write_them(oxigraph: SparqlStore) -> None:
    text = "SELECT ?p {\n  ?f a kg:Flim ; kg:directd_by ?p }"
    found = [(one.kind, one.name, one.line, one.column, one.nearest[:1]) for one in lint_query(oxigraph, text)]
    assert found == [
        ("label", "kg:Flim", 2, 8, ("kg:Film",)),
        ("relation", "kg:directd_by", 2, 18, ("kg:directed_by",)),
    ]
    assert "nearest: kg:Film" in lint_query(oxigraph, text)[0].message


def test_a_sample_is_said_to_be_one(oxigraph: SparqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oxigraph, "_schema", replace(oxigraph.schema(), sampled="10 triples"))
    (finding,) = lint_query(oxigraph, "SELECT ?p { ?f kg:directd_by ?p }")
    assert finding.message.endswith("(as far as a sample of the graph shows)")


def test_a_text_that_is_no_query_is_refused(arcade: ArcadeStore) -> None:
    with pytest.raises(QueryRefused):
        lint_query(arcade, "MATCH (n RETURN n")


def test_nodes_with_several_labels_and_samples_are_no_ground_for_a_direction(bolt: BoltDatabases) -> None:
    from byokg.graph.servers.bolt import Neo4jStore

    database = bolt.new_database()
    bolt.query(database, "CREATE (:Person:Actor {key: 'w'})-[:acted_in]->(:Film {key: 'a'}), (:Person {key: 'x'})")
    with Neo4jStore(bolt.uri, database, "root", PASSWORD, "key") as store:
        assert lint_query(store, "MATCH (p:Person)-[:acted_in]->(f:Film) RETURN p.key") == []
        assert [one.kind for one in lint_query(store, "MATCH (p:Persn) RETURN p.kee")] == ["label", "property"][:1]
        store._schema = replace(store.schema(), sampled="some")
        assert lint_query(store, "MATCH (p:Actor)<-[:acted_in]-(f:Film) RETURN p.whatever") == []
