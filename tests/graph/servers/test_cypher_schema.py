"""Reading a schema with queries, against a real Bolt server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from byokg.errors import QueryInvalid
from byokg.graph.servers.bolt import BoltServer
from byokg.graph.servers.cypher_schema import (
    MAX_WRITTEN,
    Catalogue,
    PropertyNames,
    edge_pattern,
    node_pattern,
    order_types,
    plain_parameters,
    quote,
    read_schema,
    union_all,
    writable,
)
from byokg.graph.store import PropertySchema, RelationSchema
from byokg.types import EntityId, NodeCell
from tests.graph.bolt_server import PASSWORD, BoltDatabases

#   (:Person {born})-[:`acted in` {role}]->(:Film {title})    twice, to two films
#   (:Person)-[:knows]->(:Person)    (:Film)-[:`\u0041`]->({loose})    and an unlabelled node
GRAPH = (
    "CREATE (a:Person {born: 1970})-[:`acted in` {role: 'x'}]->(:Film {title: 'Alien'}), "
    "(a)-[:`acted in`]->(f:Film), (a)-[:knows]->(:Person), (f)-[:`\\u0041`]->({loose: true}), (:`\\u0042` {odd: 1})"
)


@pytest.mark.parametrize("exact_size", [0, 1000])
def test_a_sampled_schema_of_a_small_graph_says_the_same_as_an_exact_one(bolt: BoltDatabases, exact_size: int) -> None:
    database = bolt.new_database()
    bolt.query(database, GRAPH)
    server = BoltServer(bolt.uri, database, "root", PASSWORD)
    schema = read_schema(server, 30, exact_size)
    server.close()
    assert schema.node_types == {"Film": 2, "Person": 2, "": 1, odd_label(bolt, database): 1}
    assert list(schema.node_types)[:2] == ["Film", "Person"]
    expected = {"Film": ("title",), "Person": ("born",), odd_label(bolt, database): ("odd",)}
    found = dict(schema.node_properties)
    if exact_size:
        expected[""] = ("loose",)  # a sample is taken of each label, so not of nodes without any
    assert found == expected
    relations = {relation.name: relation for relation in schema.relations}
    role = PropertySchema("role", "string", ("x",))
    assert relations["acted in"] == RelationSchema("acted in", 2, ("Person",), ("Film",), ("role",), (role,))
    assert relations["knows"] == RelationSchema("knows", 1, ("Person",), ("Person",))
    (odd,) = set(relations) - {"acted in", "knows"}
    assert relations[odd] == RelationSchema(odd, 1, ("Film",), ("",))
    assert [relation.name for relation in schema.relations] == sorted(relations)


def odd_label(bolt: BoltDatabases, database: str) -> str:
    """Return what the server made of a label with an escape in it."""
    ((labels,),) = bolt.query(database, "MATCH (n {odd: 1}) RETURN labels(n)")
    return str(labels[0])


def test_labels_and_relations_that_have_nothing_left_are_not_listed(bolt: BoltDatabases) -> None:
    database = bolt.new_database()
    bolt.query(database, "CREATE (:Gone)-[:gone]->(:Gone), (:Here)")
    bolt.query(database, "MATCH (n:Gone) DETACH DELETE n")
    server = BoltServer(bolt.uri, database, "root", PASSWORD)
    assert "gone" in server.catalogue(30).relations
    for exact_size in (0, 1000):
        schema = read_schema(server, 30, exact_size)
        assert (schema.node_types, schema.relations) == ({"Here": 1}, ())
    server.close()


def test_property_names_that_the_server_lists_take_the_place_of_a_sample(bolt: BoltDatabases) -> None:
    class Listing(BoltServer):
        """Lists as a genuine Neo4j does, which this server cannot."""

        def property_names(self, timeout_s: float) -> PropertyNames:
            return PropertyNames({"Film": frozenset({"rare", "title"})}, {"knows": frozenset({"since"})})

    database = bolt.new_database()
    bolt.query(database, GRAPH)
    server = Listing(bolt.uri, database, "root", PASSWORD)
    schema = read_schema(server, 30, 0)
    server.close()
    assert schema.node_properties == {"Film": ("rare", "title")}
    assert {relation.name: relation.properties for relation in schema.relations}["knows"] == ("since",)


def test_more_labels_than_fit_into_one_round_trip_are_all_counted(bolt: BoltDatabases) -> None:
    database = bolt.new_database()
    for start in range(0, 60, 10):  # the server stops a query that takes longer than two seconds
        created = ", ".join(f"(:`L{number}`)-[:`r{number}`]->(:`M{number}`)" for number in range(start, start + 10))
        bolt.query(database, f"CREATE {created}")
    server = BoltServer(bolt.uri, database, "root", PASSWORD)
    sampled = read_schema(server, 30, 0)
    assert "100 nodes of each label" in sampled.sampled
    assert replace(sampled, sampled="") == read_schema(server, 30)
    server.close()


def test_properties_come_with_kinds_and_a_few_short_examples(bolt: BoltDatabases) -> None:
    database = bolt.new_database()
    bolt.query(
        database,
        "UNWIND range(1, 40) AS i CREATE (:Film {title: 'film ' + i, year: 1970 + i, long: $text})",
        text="x" * 99,
    )
    bolt.query(
        database,
        "CREATE (:Odd {mixed: 1, when: date('1999-12-31')}), (:Odd {mixed: 'two', list: [1, 2]}), ({free: true})",
    )
    server = BoltServer(bolt.uri, database, "root", PASSWORD)
    details = read_schema(server, 30).node_property_details
    server.close()
    film = {detail.name: detail for detail in details["Film"]}
    assert (film["title"].kind, film["year"].kind, film["long"].kind) == ("string", "int", "string")
    assert len(film["title"].examples) == 3 and all(str(title).startswith("film ") for title in film["title"].examples)
    assert film["long"].examples == ()
    odd = {detail.name: (detail.kind, set(detail.examples)) for detail in details["Odd"]}
    assert odd == {"mixed": ("", {1, "two"}), "when": ("date", {"1999-12-31"}), "list": ("string", set())}
    assert details[""] == (PropertySchema("free", "bool", (True,)),)


def test_the_type_of_a_node_is_its_rarest_label() -> None:
    counts = {"Thing": 100, "Person": 10, "Actor": 10}
    assert order_types(["Thing", "Person", "Actor"], counts) == ["Actor", "Person", "Thing"]
    assert order_types(["Thing", "Unheard"], counts) == ["Unheard", "Thing"]


def test_a_catalogue_is_what_the_server_says(bolt: BoltDatabases) -> None:
    database = bolt.new_database()
    bolt.query(database, "CREATE (:A)-[:r]->(:B), (:A)")
    server = BoltServer(bolt.uri, database, "root", PASSWORD)
    found = server.catalogue(30)
    server.close()
    assert found == Catalogue(3, 1, found.labels, ("r",))
    assert sorted(found.labels) == ["A", "B"]


def test_sequences_and_mappings_become_lists_and_dicts() -> None:
    assert plain_parameters(None) == {}
    given: dict[str, Any] = {"a": (1, [None, True]), "b": {"c": ({"d": 0.5},)}, "e": "x"}
    assert plain_parameters(given) == {"a": [1, [None, True]], "b": {"c": [{"d": 0.5}]}, "e": "x"}


@pytest.mark.parametrize("given", [{"p": "\ud800"}, {"p": [{"a": ("\udfff",)}]}, {"p": {"\ud800": 1}}, {"\ud800": 1}])
def test_half_a_character_is_refused_wherever_it_stands(given: dict[str, Any]) -> None:
    with pytest.raises(QueryInvalid, match="half of a character"):
        plain_parameters(given)


@pytest.mark.parametrize(
    "value", [1 << 63, -(1 << 63) - 1, b"x", {1}, object(), NodeCell(EntityId("a"), "a"), [{"deep": {1}}]]
)
def test_what_has_no_type_in_cypher_is_named(value: Any) -> None:
    with pytest.raises(QueryInvalid, match="'p'"):
        plain_parameters({"p": value})


def test_a_name_cannot_leave_its_backticks() -> None:
    assert quote("plain") == "`plain`"
    assert quote("a`]->() DETACH DELETE n //") == "`a``]->() DETACH DELETE n //`"
    assert quote("``") == "``````"


def test_a_name_that_neo4j_would_decode_is_not_written() -> None:
    assert writable("directed by 😀\n`x`")
    assert not writable("a\\u0060]-() DELETE n //")
    assert not writable("")


def test_labels_and_relations_are_written_where_that_is_safe_and_otherwise_passed_as_parameters() -> None:
    assert node_pattern("n", "Data Set", "p") == "(n:`Data Set`)"
    assert node_pattern("n", "\\u0060", "p") == "(n) WHERE $p IN labels(n)"
    assert edge_pattern("a", "b", None, "p") == "(a)-[r]->(b)"
    assert edge_pattern("a", "b", ["x", "y z"], "p", inverse=True) == "(a)<-[r:`x`|`y z`]-(b)"
    assert edge_pattern("a", "b", ["x", "\\u0060"], "p") == "(a)-[r]->(b) WHERE type(r) IN $p"
    many = [f"r{number}" for number in range(MAX_WRITTEN + 1)]
    assert edge_pattern("a", "b", many, "p") == "(a)-[r]->(b) WHERE type(r) IN $p"


def test_queries_are_joined_so_that_no_row_is_lost() -> None:
    assert union_all(["RETURN 1 AS x", "RETURN 1 AS x"]) == "RETURN 1 AS x\nUNION ALL\nRETURN 1 AS x"
