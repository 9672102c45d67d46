from __future__ import annotations

import pytest

from byokg.graph.engines.arcadedb_names import NameMapping

PLAIN = NameMapping.of(["", "Film"], ["directed_by"], ["year"], ["since"])
ODD = NameMapping.of(
    ["film", "a, b"],
    ["film", "x, y", "plain"],
    ["name", "id", "@rid", "year", "display_name"],
    ["@in", "since"],
    {"name": ["film"]},
)


class TestNames:
    def test_ordinary_names_stay(self) -> None:
        assert NameMapping(types={"": "Entity"}) == PLAIN

    def test_relations_named_like_a_type_and_commas_are_stored_under_other_names(self) -> None:
        assert set(ODD.types) == {"", "a, b"}
        assert set(ODD.relations) == {"film", "x, y"}
        stored = [*ODD.types.values(), *ODD.relations.values(), "film", "plain"]
        assert len(set(stored)) == len(stored)
        assert not any("," in name for name in stored)

    def test_properties_that_collide_get_a_prefix(self) -> None:
        assert ODD.node_properties == {"@rid": "property_rid"}
        assert ODD.edge_properties == {"@in": "property_in"}

    def test_a_prefix_never_makes_two_properties_one(self) -> None:
        names = NameMapping.of([], [], ["rid", "property_rid", "@rid"], [])
        assert names.node_properties == {"@rid": "property_property_rid"}

    def test_a_property_called_name_keeps_its_name_and_names_of_nodes_have_another(self) -> None:
        assert (PLAIN.id_key, PLAIN.name_key) == ("id", "name")
        assert (ODD.id_key, ODD.name_key) == ("id", "property_display_name")
        assert (ODD.implied(["film"]), ODD.implied([]), PLAIN.implied([])) == ([], ["name"], [])

    def test_the_base_label_is_a_type_where_the_graph_has_one_of_its_name(self) -> None:
        assert PLAIN.base_type == ""
        assert NameMapping.of(["Entity"], [], [], []).base_type == "Entity"
        both = NameMapping.of(["", "Entity"], [], [], [])
        assert both.base_type == "Entity"
        assert both.types[""] != "Entity"

    def test_they_survive_json(self) -> None:
        assert NameMapping.from_json(ODD.to_json()) == ODD


class TestFit:
    @pytest.mark.parametrize(
        ("query", "fitted"),
        [
            ("MATCH (n {name: 'x'}) RETURN n", "MATCH (n:Entity {name: 'x'}) RETURN n"),
            ("MATCH ({id: 'x'})-->(m) RETURN m", "MATCH (:Entity{id: 'x'})-->(m) RETURN m"),
            ("match (a)-[:r]->(b {name: $x}) return a", "match (a:Entity)-[:r]->(b:Entity {name: $x}) return a"),
            ("MATCH (n)-->(m) WHERE n.name = 'x' RETURN m", "MATCH (n:Entity)-->(m) WHERE n.name = 'x' RETURN m"),
            ("MATCH (n) WHERE n.id IN ['x'] RETURN n", "MATCH (n:Entity) WHERE n.id IN ['x'] RETURN n"),
            (
                "MATCH p = shortestPath((a {id: 1})-[*]-(b {id: 2})) RETURN p",
                "MATCH p = shortestPath((a:Entity {id: 1})-[*]-(b:Entity {id: 2})) RETURN p",
            ),
            # the planner can only turn a chain round when all of its nodes have labels
            (
                "MATCH (m)-[:r]->(k)<-[x:s]-(n {name: 'x'}), (o)-->(q) RETURN m",
                "MATCH (m:Entity)-[:r]->(k:Entity)<-[x:s]-(n:Entity {name: 'x'}), (o)-->(q) RETURN m",
            ),
            (
                "MATCH (m)-[:r]->(n) WHERE n.name = 'x' MATCH (m)-[:r]->(o) RETURN o",
                "MATCH (m:Entity)-[:r]->(n:Entity) WHERE n.name = 'x' MATCH (m)-[:r]->(o) RETURN o",
            ),
            ("MATCH (m)-[:r|s]->(n {id: 1}) RETURN m", "MATCH (m)-[:r|s]->(n:Entity {id: 1}) RETURN m"),
            ("MATCH (m)-[:r*2]->(n {id: 1}) RETURN m", "MATCH (m)-[:r*2]->(n:Entity {id: 1}) RETURN m"),
            (
                "MATCH (m)-[:r]->(:Film {name: 'x'})<-[:r]-() RETURN m",
                "MATCH (m:Entity)-[:r]->(:Film {name: 'x'})<-[:r]-(:Entity) RETURN m",
            ),
            ("MATCH (m)--(n {id: 1}) RETURN m", "MATCH (m)--(n:Entity {id: 1}) RETURN m"),
            ("MATCH (n {id: 1})-[:r]->(m) RETURN m", "MATCH (n:Entity {id: 1})-[:r]->(m) RETURN m"),
        ],
    )
    def test_a_look_up_by_name_or_id_gets_the_label_that_has_an_index(self, query: str, fitted: str) -> None:
        assert PLAIN.fit(query) == fitted

    @pytest.mark.parametrize(
        "query",
        [
            "MATCH (n:Film {name: 'x'}) RETURN n",
            "MATCH (n) WHERE n.year = 1979 RETURN n",
            "MATCH (m)-[:r]->(n:Film) RETURN m",
            "MATCH (n) RETURN collect(n {name: n.name})",
            "MATCH (n:Film) WHERE n.name = 'x' RETURN n.id, (n)",
            "RETURN point({x: 1, y: 2})",
            "RETURN '(n {name: 1})' AS a // MATCH (n {name: 1})",
            "MATCH (n:Film) /* (n {name: 1}) */ RETURN n.name",
            "RETURN 'it''s' + \"(n {name: 'x'})\"",
            "",
            "MATCH (n",
            "'unclosed",
            "/* unclosed",
            ")]}",
        ],
    )
    def test_everything_else_stays_as_it_is(self, query: str) -> None:
        assert PLAIN.fit(query) == query

    def test_labels_and_relations_are_told_apart_by_where_they_stand(self) -> None:
        film = ODD.relations["film"]
        assert ODD.fit("MATCH (a:film)-[r:film|plain]->(b:film) RETURN a") == (
            f"MATCH (a:film)-[r:`{film}`|plain]->(b:film) RETURN a"
        )
        assert ODD.fit("MATCH (a)-[:`x, y`*1..2]->(b:`a, b`) RETURN [(a)-[:film]->(c) | c.name]") == (
            f"MATCH (a)-[:`{ODD.relations['x, y']}`*1..2]->(b:`{ODD.types['a, b']}`) "
            f"RETURN [(a)-[:`{film}`]->(c) | c.name]"
        )

    def test_properties_variables_and_strings_of_the_same_name_stay(self) -> None:
        query = "MATCH (film:film {film: 'film'}) WHERE film.film = ':film' RETURN film.`x, y` AS film"
        assert ODD.fit(query) == query
