"""Tests of `byokg.graph.guard.guard`: names that a graph does not have, and steps against a relation's direction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from byokg.errors import QueryRefused
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.engines.oxigraph import OxigraphStore, build_oxigraph
from byokg.graph.guard.guard import Finding, lint_cypher, lint_query, lint_sparql
from byokg.graph.servers.sparql_store import SparqlStore
from byokg.graph.store import RelationSchema, Schema
from byokg.types import EntityId, Node, Triple
from tests.graph.bolt_server import PASSWORD, BoltDatabases
from tests.graph.contract import edge

# Person -ACTED_IN {role}-> Movie     Person -DIRECTED-> Movie     Person -KNOWS {since}-> Person
# Person {born}, Movie {title, released}; every node has id and name.
FILMS = Schema(
    node_types={"Person": 3, "Movie": 2},
    relations=(
        RelationSchema("ACTED_IN", 4, ("Person",), ("Movie",), ("role",)),
        RelationSchema("DIRECTED", 2, ("Person",), ("Movie",)),
        RelationSchema("KNOWS", 2, ("Person",), ("Person",), ("since",)),
    ),
    node_properties={"Person": ("born",), "Movie": ("title", "released")},
)

EX = "http://example.org/"
RDF = Schema(
    node_types={f"{EX}Person": 3, f"{EX}Movie": 2},
    relations=(RelationSchema(f"{EX}actedIn", 4, (), ()), RelationSchema(f"{EX}v/directed", 2, (), ())),
    node_properties={},
)


def found(text: str, schema: Schema = FILMS) -> list[tuple[str, str]]:
    return [(finding.kind, finding.name) for finding in lint_cypher(text, schema)]


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (p:Person)-[r:ACTED_IN]->(m:Movie) WHERE r.role = 'x' RETURN p.name, p.born, m.title, m.id",
        "MATCH (m:Movie)<-[:DIRECTED|ACTED_IN]-(p) RETURN p {.born, .name, other: m.title}",
        "MATCH (p:Person {born: 1})-[:KNOWS {since: 2}]-(q:Person) RETURN q",
        "MATCH (m:Movie)--(p:Person)-[:ACTED_IN]-(m) RETURN p",
        "MATCH (a)-[:KNOWS*1..3]->(b)-[:DIRECTED]->(c) RETURN a.born, c.released",
        "MATCH (n) WHERE n:Movie OR n:Person RETURN n.title, n.born",
        "MATCH (n:Person|Movie) RETURN n.title",
        "MATCH (p:Person) RETURN p.born.year, p['born'], date(p.born).month",
        "UNWIND [{x: 1}] AS row MATCH (p:Person) RETURN row.x, p.name",
        "MATCH (p:Person) WITH p.born AS p RETURN p.year",
        "MATCH (p:Person) WITH collect(p) AS ps UNWIND ps AS p RETURN p.anything",
        "MATCH (p:Person) RETURN [p IN [{x: 1}] | p.x], any(p IN [{x: 1}] WHERE p.x = 1)",
        "MATCH (m:Movie) CALL { MATCH (m:Person) RETURN m.born AS born } RETURN m.title, born",
        "MATCH (n:Person) RETURN n.born AS x UNION MATCH (n:Movie) RETURN n.title AS x",
        "MATCH (n:!Movie) RETURN n.born",
        "MATCH p = (a:Person)-->(b) RETURN p, length(p)",
        "CALL db.labels() YIELD label RETURN label.anything",
        "MATCH (a:Person)-[r:KNOWS*]->(b) RETURN r.anything",
    ],
)
def test_what_the_graph_holds_is_not_reported(text: str) -> None:
    assert lint_cypher(text, FILMS) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MATCH (p:Actor) RETURN p", [("label", "Actor")]),
        ("MATCH (n:Person&Film) RETURN n", [("label", "Film")]),
        ("MATCH (n) WHERE n:Film RETURN n", [("label", "Film")]),
        ("MATCH (n:ACTED_IN) RETURN n", [("label", "ACTED_IN")]),
        ("MATCH (a)-[:ActedIn]->(b) RETURN b", [("relation", "ActedIn")]),
        ("MATCH (a)-[:ACTED_IN|PLAYED_IN*1..2]->(b) RETURN b", [("relation", "PLAYED_IN")]),
        ("MATCH (p:Person) WHERE p.birth = 1 RETURN p", [("property", "birth")]),
        ("MATCH (p:Person {titel: 'x'}) RETURN p", [("property", "titel")]),
        ("MATCH (p:Person) RETURN p.title", [("property", "title")]),
        ("MATCH (p:Person) RETURN p['title'], p {.title}", [("property", "title"), ("property", "title")]),
        ("MATCH (n) RETURN n.nothing", [("property", "nothing")]),
        ("MATCH (a)-[r:KNOWS]->(b) RETURN r.role", [("property", "role")]),
        ("MATCH (p:Person) WITH p AS q ORDER BY q.x RETURN q.y", [("property", "x"), ("property", "y")]),
        ("MATCH (p:Person) CALL (p) { RETURN p.x AS x } RETURN x", [("property", "x")]),
        ("MATCH (p:Person) WHERE EXISTS { (p)-[:DIRECTS]->() } RETURN p", [("relation", "DIRECTS")]),
        ("MATCH (p:Person) RETURN [(p)-[:DIRECTED]->(m) | m.name2]", [("property", "name2")]),
        ("MATCH (m:Movie)-[:DIRECTED]->(p:Person) RETURN p", [("direction", "DIRECTED")]),
        ("MATCH (p)<-[:DIRECTED]-(m:Movie) RETURN p", [("direction", "DIRECTED")]),
        ("MATCH (m:Movie) MATCH (m)-[:DIRECTED]->(p) RETURN p", [("direction", "DIRECTED")]),
        ("MATCH (a:Movie)-[:KNOWS]-(b) RETURN b", [("direction", "KNOWS")]),
        ("MATCH (p:Person) WHERE (p)<-[:DIRECTED]-() RETURN p", [("direction", "DIRECTED")]),
    ],
)
def test_what_it_lacks_is_reported_in_the_order_of_the_text(text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text) == expected


def test_a_finding_names_the_place_and_the_nearest_names() -> None:
    assert lint_cypher("MATCH (p:Person)\n  -[:ACTS_IN]->(m) RETURN m.titel", FILMS) == [
        Finding(
            "relation", "ACTS_IN", 2, 6, "this graph has no relation type 'ACTS_IN'; nearest: ACTED_IN", ("ACTED_IN",)
        ),
        Finding("property", "titel", 2, 29, "no node has a property 'titel'; nearest: title", ("title",)),
    ]


def test_a_property_of_another_label_says_whose_it_is() -> None:
    (finding,) = lint_cypher("MATCH (p:Person) RETURN p.title", FILMS)
    assert finding.message.startswith("Person has no property 'title'")
    assert finding.message.endswith("(Movie has it)")


def test_a_wrong_direction_says_how_the_relation_is_stored() -> None:
    (finding,) = lint_cypher("MATCH (m:Movie)-[:DIRECTED]->(p) RETURN p", FILMS)
    assert finding.message == ("'DIRECTED' points the other way: (Person)-[:DIRECTED]->(Movie); turn the arrow round")
    (finding,) = lint_cypher("MATCH (m:Movie)-[:KNOWS]->(p:Movie) RETURN p", FILMS)
    assert finding.message == "no 'KNOWS' goes from Movie to Movie; the graph has (Person)-[:KNOWS]->(Person)"


def test_a_graph_without_properties_or_types_says_nothing_of_them() -> None:
    bare = Schema({"": 5}, (RelationSchema("r", 3, ("",), ("",)),), {})
    assert lint_cypher("MATCH (a)-[e:r]->(b) WHERE a.x = 1 AND e.y = 2 RETURN b.z", bare) == []
    assert found("MATCH (a:Person)-[:s]->(b) RETURN b", bare) == [("label", "Person"), ("relation", "s")]


def test_properties_that_every_node_has_can_be_named() -> None:
    assert lint_cypher("MATCH (p:Person) RETURN p.uri", FILMS, known_properties=("uri",)) == []
    assert found("MATCH (p:Person) RETURN p.name") == []


def test_names_of_several_thousand_relations_are_searched() -> None:
    many = Schema({}, tuple(RelationSchema(f"people.person.thing_{n}", 1, (), ()) for n in range(4_000)), {})
    (finding,) = lint_cypher("MATCH (a)-[:`people.person.thing_17x`]->(b) RETURN b", many)
    assert finding.nearest[0] == "people.person.thing_17"


def test_iris_of_sparql_are_compared_by_their_last_part() -> None:
    text = (
        "PREFIX ex: <http://example.org/> SELECT ?x { ?x a ex:Person ; ex:actedIn ?m ; ex:directed ?n ; ex:acted ?o }"
    )
    assert [(one.kind, one.name, one.nearest) for one in lint_sparql(text, RDF)] == [
        ("relation", f"{EX}directed", (f"{EX}v/directed",)),
        ("relation", f"{EX}acted", (f"{EX}actedIn", f"{EX}v/directed")),
    ]
    (finding,) = lint_sparql("SELECT ?x { ?x a <http://other.org/Movie> }", RDF)
    assert (finding.kind, finding.line, finding.column) == ("label", 1, 18)
    assert finding.message == f"this graph has no class <http://other.org/Movie>, but <{EX}Movie>"


def test_sparql_is_not_compared_with_names_that_are_no_iris() -> None:
    assert lint_sparql("SELECT ?x { ?x <http://example.org/q> ?y }", FILMS) == []


def test_standard_vocabularies_are_not_reported() -> None:
    text = "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> SELECT ?x { ?x rdfs:label ?y ; a ?z }"
    assert lint_sparql(text, RDF) == []


def test_text_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(QueryRefused):
        lint_cypher("MATCH (n) SET n.x = 1", FILMS)
    with pytest.raises(QueryRefused):
        lint_sparql("DROP ALL", RDF)


# (alien:Film {released}) -directed_by {since}-> (scott:Person)
NODES = [Node(EntityId("alien"), "Alien", "Film", {"released": 1979}), Node(EntityId("scott"), "Scott", "Person")]
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
    assert found == [("label", "Flim", 1, 10, ("Film",)), ("relation", "directd_by", 1, 18, ("directed_by",))]
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
